"""ADAPTIVETOPK: Chen, Chen, Zhang & Zhou, ICML 2017, Algorithm 1, for a confidence level and for a budget.

symbols     n arms, K = k wanted, S the undecided arms, A the accepted ones, K' = K - |A|; r the round, in which each
            arm of S is pulled 2^(2r) ln(2 n r^2 / delta) times; theta_a, theta_b the means of rank K' + 1 and K'.
            The margin of round 1 is W, and no two means of rewards in an interval differ by more: it decides no arm
departures  D1 fractional numbers of pulls are rounded up
            D2 one pass accepts and rejects all arms of a round: theta_a and theta_b do not change as the paper's inner
               loop takes them one by one
            D3 samples of sub-Gaussian scale sigma count as rewards in an interval of width W = 2 sigma
            D4 budget: the paper drops the outer loop's test and stops when the budget is spent. Where what is left does
               not pay a round, it is spread evenly over S (the lowest arms get one pull more) and pooled with the
               samples of the round before; where no arm is undecided, the rest stays unspent
            D5 constants="practical", which are ours: after round r an undecided arm has 2^(r+2) pulls, the means are
               those of all of them, and the margin is 1.1 W / sqrt(2^(r+2)); nothing is proved of them

Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import PULLS_LIMIT, choice, part

from ..core.agent import Floats, Ints
from ..core.confidence import delta_of, scale_of, tolerance_of
from ..core.declared import per_episode, setting
from ..core.largest import nth_largest, size_of
from ..core.plans import pull
from .elimination import SetAlgorithm, finish, measure, pull_round, pull_undecided

ROUNDS = 40  # by then a round takes more pulls than an arm may have
SLACK = 1.1  # D5: smaller, and good arms are lost early now and then; larger, and arms are decided later


def pulls_per_arm(r: int, n: int, delta: float) -> int:
    """ceil(2^(2r) ln(2 n r^2 / delta)). [line 5]"""
    return math.ceil(4.0**r * math.log(2 * n * r**2 / delta))


@part
def accept_and_reject(m, S, A, k, margin, work):
    """Decide on the undecided arms after a round with means m; margin = 2 * 2^-r.   [lines 7 to 13]"""
    wanted = k - size_of(A)  # K'; here 0 < K' < |S|
    a, b = nth_largest(m, S, wanted + 1, work), nth_largest(m, S, wanted, work)
    for i in range(len(S)):
        if S[i] and m[i] - a > margin:
            S[i], A[i] = False, True
        elif S[i] and b - m[i] > margin:
            S[i] = False


@part
def is_over(ep, own):
    """Line 3; or no arm is undecided: all places are taken, or as many arms are left as places."""
    wanted = own.k - size_of(own.A)
    decided = wanted == 0 or size_of(own.S) == wanted
    return decided or own.margin[ep.now.round] * wanted <= own.tolerance * own.k


@part
def pulls_in(r, own):
    """Pulls of each undecided arm in round r."""
    return own.times[r] - own.times[r - 1] if own.reuse else own.times[r]


class AcceptReject(SetAlgorithm):
    """Rounds r = 1, 2, ... of `times[r]` pulls of each undecided arm, while `margin[r]` K' > `tolerance` k.

    After each round, arms further than `margin[r]` from the boundary are accepted and rejected.
    """

    times = setting(Ints)  # (rounds,) pulls of an arm in round r, with `reuse` in rounds 1 .. r; entry 0 is unused
    margin = setting(Floats)  # (rounds,) 2 W 2^-r
    tolerance = setting(float)  # of the mean loss of the answer; < 0: no such test
    limited = setting(bool, False)  # by a budget
    ending = per_episode(bool)  # the last pulls of a budget have begun
    owed = per_episode(int)  # arms that get one pull more then
    reads = ("total", "remaining")

    def observe(ep, own):
        """A round is over, or the last pulls of a budget are."""
        measure(ep, own)
        if not ep.now.ending:
            accept_and_reject(own.m, own.S, own.A, own.k, own.margin[ep.now.round], own.work)

    def stops(ep, own):
        """The stopping rule.   [lines 3, 16, 17] D4"""
        over = ep.now.owed == 0 if ep.now.ending else is_over(ep, own)
        return over and finish(own, own.k)

    def sample(ep, own):
        """The sampling rule.   [line 5] D4"""
        size = size_of(own.S)
        if not ep.now.ending:
            ep.now.round += 1
            times = pulls_in(ep.now.round, own)
            if not own.limited or times * size <= ep.remaining:
                pull_round(ep, own, times)
                return
            ep.now.ending, ep.now.owed = True, ep.remaining % size
            if ep.remaining >= size:  # not marked: the samples of the round before still count
                pull_undecided(ep, own, ep.remaining // size)
                return
        if ep.now.owed == 0:
            finish(own, own.k)
        for i in range(len(own.S)):
            if own.S[i] and ep.now.owed > 0:
                pull(ep, i)
                ep.now.owed -= 1


class AdaptiveTopK(AcceptReject):
    """ADAPTIVETOPK (Chen et al. 2017): k arms of aggregate regret <= epsilon, with probability 1 - delta.

    Args:
        task: a task or an environment; with a budget it stops when that is spent.
        delta: None takes the task's; with a budget 0.01 where there is none, as in the paper's experiments.
        constants: "theory", the paper's; or "practical", which know no delta: with them nothing is guaranteed.
    """

    name, source = "adaptive-top-k", "Chen, Chen, Zhang & Zhou, ICML 2017, Algorithm 1"
    anytime = False
    needs = "delta or budget"
    promises = ("aggregate",)

    def __init__(
        self, task: Any, delta: float | None = None, sigma: float | None = None, constants: str = "theory"
    ) -> None:
        super().__init__(task)
        if choice("constants", constants, ["theory", "practical"]) == "practical" and delta is not None:
            raise ValueError(f"{self.name}(constants='practical') uses no delta, got {delta!r:.200}")
        delta, width = delta_of(self.name, self.task, delta, with_budget=0.01), 2 * scale_of(self.task, sigma)  # D3
        self.reuse, self.limited = constants == "practical", self.task.budget is not None
        if constants == "theory":
            pulls = [pulls_per_arm(r, self.task.K, delta) for r in range(1, ROUNDS)]
            self.times = np.array([0, *(min(p, PULLS_LIMIT - 1) for p in pulls)])
            self.margin = np.ldexp(2 * width, -np.arange(ROUNDS))
        else:
            self.times = np.append(0, 8 << np.arange(ROUNDS - 1))
            self.margin = np.append(2 * width, SLACK * width / np.sqrt(self.times[1:]))
        self.tolerance = -1.0 if self.limited else tolerance_of(self)  # D4
