"""What the round-based algorithms for the k best arms share: a set of undecided arms, and a set of accepted ones.

Empirical means are those of the samples since a mark. An algorithm that takes fresh samples in each round sets the mark
at the beginning of every round; one that pools the samples of all its rounds sets it once, when it begins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np

from bandit_envs.kernels import PULLS_LIMIT, inlined

from ..core.agent import Bools, Floats, Ints, Observation, seen_means
from ..core.algorithm import Algorithm
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.largest import keep_largest, size_of
from ..core.plans import pull


def with_best(m: Floats, S: Bools, A: Bools, k: int) -> Bools:
    """A and the best k - |A| arms of S by m, (..., K); ties go to the lowest arm."""
    order = np.argsort(np.where(S, -m, np.inf), axis=-1, kind="stable")
    best = np.zeros(order.shape, np.bool_)
    np.put_along_axis(best, order, np.arange(order.shape[-1]) < k - A.sum(axis=-1, keepdims=True), axis=-1)
    return A | best


def affordable(name: str, epsilon: float, times: Sequence[int]) -> Ints:
    """Pulls of an arm in each round, checked."""
    if max(times) >= PULLS_LIMIT:
        text = f"{name} at epsilon={epsilon} needs {max(times):.3g} pulls of an arm, at most 2^40 are possible:"
        raise ValueError(f"{text} raise epsilon or delta, or lower sigma")
    return np.array(times, np.int64)


@inlined
def activate(ep, own):
    """All arms are undecided, and samples count from now on."""
    for i in range(len(own.S)):
        own.S[i], own.m[i] = True, 0.0
    mark(ep, own)


@inlined
def mark(ep, own):
    """Samples from now on count for `measure`."""
    for i in range(len(ep.pulls)):
        own.origin[i], own.drawn[i] = ep.total[i], ep.pulls[i]


@inlined
def measure(ep, own):
    """Fill own.m with the means of the samples since the mark; 0 where there are none."""
    for i in range(len(ep.pulls)):
        own.m[i] = (ep.total[i] - own.origin[i]) / max(ep.pulls[i] - own.drawn[i], 1)


@inlined
def pull_undecided(ep, own, times):
    """Plan to pull each undecided arm so many times."""
    for i in range(len(own.S)):
        if own.S[i]:
            pull(ep, i, times)


@inlined
def pull_round(ep, own, times):
    """The same for a round, which has fresh samples unless `own.reuse` pools those of all rounds."""
    if not own.reuse:
        mark(ep, own)
    pull_undecided(ep, own, times)


@inlined
def finish(own, k):
    """The answer: A, and the best k - |A| arms of S by own.m. Returns True: the algorithm stops."""
    for i in range(len(own.S)):
        own.answer[i] = own.S[i]
    keep_largest(own.m, own.answer, k - size_of(own.A), own.work)
    for i in range(len(own.S)):
        own.answer[i] |= own.A[i]
    return True


class SetAlgorithm(Algorithm):
    """An algorithm in rounds that narrows the undecided arms down.

    Until it has stopped, its answer is the accepted arms and the best of the undecided ones by their empirical means.
    """

    solves: ClassVar[Collection[str]] = ("TopK", "BestArm")
    bulk, passes, resumes = True, 0, False
    reads: ClassVar[tuple[str, ...]] = ("total",)
    k = setting(int)
    S, A, answer = per_arm(bool), per_arm(bool), per_arm(bool)  # undecided and accepted arms; the answer at the end
    round = per_episode(int)
    origin, drawn = per_arm(float), per_arm(int)  # sums of samples, and pulls, at the mark
    m, work = scratch(float), scratch(float)
    reuse = setting(bool, False)  # see `pull_round`

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        self.k = self.problem.k  # type: ignore[attr-defined]

    def begin(ep, own):
        """All arms are undecided."""
        activate(ep, own)

    def current(self, m: Floats, S: Bools, A: Bools) -> Bools:
        """The answer by estimates m of the means, (..., K)."""
        return with_best(m, S, A, self.k)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The algorithm's answer as of now; the plug-in one without its state."""
        if state is None:
            return super().recommend(observation, state, slots)
        means = seen_means(observation, slots)
        rows: Any = (0 if means.ndim == 1 else slice(None)) if slots is None else slots
        unseen = np.where(np.isnan(means), np.finfo(np.float64).min, means)  # arms never pulled come last
        now = self.current(unseen, state.S[rows], state.A[rows])
        return np.where(state.now["stopped"][rows][..., None] != 0, state.answer[rows], now)


class Halvings(SetAlgorithm):
    """Rounds that are known beforehand: in each, so many pulls of each arm of S, of which the best ones stay."""

    sizes, times = setting(Ints), setting(Ints)  # arms of S in each round, with k at the end; pulls of each of them

    def arms_of(self, rounds: Sequence[tuple[int, int]]) -> Ints:
        """`sizes`, of pairs (arms, pulls of each)."""
        return np.array([*(size for size, _ in rounds), self.k])

    def observe(ep, own):
        """A round is over."""
        ep.now.round += 1
        measure(ep, own)
        keep_largest(own.m, own.S, own.sizes[ep.now.round], own.work)

    def sample(ep, own):
        """The next round; after the last one none, and then the answer."""
        if ep.now.round == len(own.times):
            finish(own, own.k)
        else:
            pull_round(ep, own, own.times[ep.now.round])
