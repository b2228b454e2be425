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
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs.kernels import PULLS_LIMIT, choice

from ..core.agent import Bools, Floats, Ints, Observation
from ..core.confidence import delta_of, scale_of, tolerance_of
from .elimination import SetPolicy, SetState

__all__ = ["AcceptReject", "AdaptiveTopK", "accept_and_reject", "pulls_per_arm"]

ROUNDS = 40  # by then a round takes more pulls than an arm may have
SLACK = 1.1  # D5: smaller, and good arms are lost early now and then; larger, and arms are decided later


def pulls_per_arm(r: int, n: int, delta: float) -> int:
    """ceil(2^(2r) ln(2 n r^2 / delta)). [line 5]"""
    return math.ceil(4.0**r * math.log(2 * n * r**2 / delta))


def accept_and_reject(m: Floats, S: Bools, A: Bools, k: int, margin: Any) -> tuple[Bools, Bools]:
    """The undecided and the accepted arms after a round with means m, (..., K); margin (...,) = 2 * 2^-r. [7-13]"""
    wanted = k - A.sum(axis=-1, keepdims=True)  # K'; here 0 < K' < |S|
    ranked = -np.sort(np.where(S, -m, np.inf), axis=-1)
    a, b = np.take_along_axis(ranked, wanted, -1), np.take_along_axis(ranked, wanted - 1, -1)
    margin = np.asarray(margin)[..., None]
    promoted, rejected = S & (m - a > margin), S & (b - m > margin)
    return S & ~(promoted | rejected), A | promoted


class AcceptReject(SetPolicy):
    """Rounds r = 1, 2, ... of `times[r]` pulls of each undecided arm, while `margin[r]` K' > `tolerance` k.

    After each round, arms further than `margin[r]` from the boundary are accepted and rejected.
    """

    times: Ints  # (rounds,) pulls of an arm in round r; entry 0 is unused
    margin: Floats  # (rounds,) 2 W 2^-r
    tolerance: float  # of the mean loss of the answer; < 0: no such test
    reuse: bool = False  # pool the samples of all rounds; `times` are then pulls of an arm in all rounds together

    def proceed(self, observation: Observation, state: Any, slots: Ints) -> None:
        r, wanted = state.round[slots], self.k - state.A[slots].sum(axis=1)
        over = (self.margin[r] * wanted <= self.tolerance * self.k) | self.decided(state, slots)  # line 3
        done, slots = slots[over], slots[~over]
        self.finish(state, done, state.means_since(done, observation))  # lines 16, 17
        state.round[slots] += 1
        self.pull_round(observation, state, slots)

    def decided(self, state: Any, slots: Ints) -> Bools:
        """Whether no arm is undecided: all places are taken, or as many arms are left as places."""
        wanted = self.k - state.A[slots].sum(axis=1)
        decided: Bools = (wanted == 0) | (state.S[slots].sum(axis=1) == wanted)
        return decided

    def pull_round(self, observation: Observation, state: Any, slots: Ints) -> None:
        """Line 5."""
        r = state.round[slots]
        if not self.reuse:
            state.mark(slots, observation)
        state.pull(slots, self.pulls_in(r), observation)

    def pulls_in(self, r: Ints) -> Ints:
        """Pulls of each undecided arm in rounds r."""
        return self.times[r] - self.times[r - 1] if self.reuse else self.times[r]

    def look(self, observation: Observation, state: Any, slots: Ints) -> None:
        m = state.means_since(slots, observation)
        margin = self.margin[state.round[slots]]
        S, A = accept_and_reject(m, state.S[slots], state.A[slots], self.k, margin)
        state.S[slots], state.A[slots] = S, A
        self.proceed(observation, state, slots)


@dataclass
class State(SetState):
    """State of ADAPTIVETOPK for E episodes."""

    owed: Ints  # (E,) arms that get one pull more when the budget ends; -1 before its last round

    @classmethod
    def blank(cls, E: int, K: int) -> dict[str, Any]:
        return {**super().blank(E, K), "owed": np.full(E, -1)}


class AdaptiveTopK(AcceptReject):
    """ADAPTIVETOPK (Chen et al. 2017): k arms of aggregate regret <= epsilon, with probability 1 - delta.

    Args:
        task: a task or an environment; with a budget it stops when that is spent.
        delta: None takes the task's; with a budget 0.01 where there is none, as in the paper's experiments.
        constants: "theory", the paper's; or "practical", which know no delta: with them nothing is guaranteed.
    """

    name, source = "adaptive-top-k", "Chen, Chen, Zhang & Zhou, ICML 2017, Algorithm 1"
    solves, stops, anytime, state_class = ("TopK", "BestArm"), True, False, State
    needs = "delta or budget"
    promises = ("aggregate",)

    def __init__(
        self, task: Any, delta: float | None = None, sigma: float | None = None, constants: str = "theory"
    ) -> None:
        super().__init__(task)
        if choice("constants", constants, ["theory", "practical"]) == "practical" and delta is not None:
            raise ValueError(f"{self.name}(constants='practical') uses no delta, got {delta!r:.200}")
        delta, width = delta_of(self.name, self.task, delta, with_budget=0.01), 2 * scale_of(self.task, sigma)  # D3
        if constants == "theory":
            pulls = [pulls_per_arm(r, self.task.K, delta) for r in range(1, ROUNDS)]
            self.times = np.array([0, *(min(p, PULLS_LIMIT - 1) for p in pulls)])
            self.margin = np.ldexp(2 * width, -np.arange(ROUNDS))
        else:
            self.reuse = True
            self.times = np.append(0, 8 << np.arange(ROUNDS - 1))
            self.margin = np.append(2 * width, SLACK * width / np.sqrt(self.times[1:]))
        self.tolerance = tolerance_of(self) if self.task.budget is None else -1.0  # D4

    def start(self, observation: Observation, state: State, slots: Ints) -> None:
        state.owed[slots] = -1
        super().start(observation, state, slots)

    def pull_round(self, observation: Observation, state: State, slots: Ints) -> None:
        if self.task.budget is not None:
            left, size = observation["remaining"][slots, 0], state.S[slots].sum(axis=1)
            poor = self.pulls_in(state.round[slots]) * size > left
            self._spread(observation, state, slots[poor], left[poor], size[poor])
            slots = slots[~poor]
        super().pull_round(observation, state, slots)

    def _spread(self, observation: Observation, state: State, slots: Ints, left: Ints, size: Ints) -> None:
        """The last pulls of a budget, not marked: the samples of the round before still count.   # D4"""
        state.owed[slots] = left % size
        some = left >= size
        state.pull(slots[some], (left // size)[some], observation)
        self._top_up(observation, state, slots[~some])

    def _top_up(self, observation: Observation, state: State, slots: Ints) -> None:
        """One pull more for the lowest arms, as many as are owed; where none are, the end."""
        owed, S = state.owed[slots], state.S[slots]
        state.owed[slots] = 0
        lowest = S & (np.cumsum(S, axis=1) <= owed[:, None])
        state.write_all(slots, lowest, 1, np.asarray(observation["total"], np.float64))
        done = slots[owed == 0]
        self.finish(state, done, state.means_since(done, observation))

    def look(self, observation: Observation, state: State, slots: Ints) -> None:
        last = state.owed[slots] >= 0
        self._top_up(observation, state, slots[last])
        super().look(observation, state, slots[~last])
