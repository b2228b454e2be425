"""CLUCB-PAC for the k best: Chen, Lin, King, Lyu & Chen, NIPS 2014, Algorithm 1 and Appendix B.2.

symbols     M the k arms with the largest empirical means, rad_i = sigma sqrt(2 ln(4 n t^3 / delta) / N_i) with t the
            pulls so far, w_i = m_i - rad_i in M and m_i + rad_i outside, M' the k arms with the largest w
departures  D1 the tolerance is that of the problem's criterion: k epsilon for the aggregate regret, epsilon where each
               arm counts (a set that loses at most epsilon in sum holds no worse arm), 0 for the exact set
            D2 with a budget it stops only where M' = M, as there is nothing to pull then, and delta is 0.01 where
               nobody names one, as in Chen et al. 2017
            D3 ties go to the lowest arm

The largest radius is the least-pulled arm, and only the difference of M and M' is summed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs import episode_kernel, lean

from ..core.agent import Fields, Floats, Ints, Observation
from ..core.confidence import delta_of, scale_of
from ..core.plan_policy import Seen, add, following, planned
from ..core.reductions import largest, sum_of
from .selection import High, TopKAgent, count_pulls, plan_anew, rank, smallest

__all__ = ["CLUCB"]


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    k: int
    tolerance: float
    level: float  # 4 n / delta
    factor: float  # 2 sigma^2


class Kept(NamedTuple):
    """What is kept from round to round, and room for the round at hand."""

    root: Floats  # (E, K) 1 / sqrt(N_i)
    kth: Ints  # (E,) the k-th arm by w of the last round
    boundary: Floats  # (E,) its w
    gain: Floats  # (K,), filled up with 0 to a multiple of 4
    room: Floats  # (K,), filled up with -inf

    @classmethod
    def of(cls, E: int, K: int) -> Kept:
        """Before the first round of E episodes."""
        length = (K + 3) // 4 * 4
        room = np.zeros(length), np.full(length, -np.inf)
        return cls(np.zeros((E, K)), np.zeros(E, np.int64), np.zeros(E), *room)


@dataclass
class Memory:
    """Memory of CLUCB for E episodes."""

    plans: Any  # (E,) the arm of this round
    high: High  # M
    kept: Kept


@lean
def weigh(seen: Any, e: Any, plan: Any, M: Any, kept: Any, rules: Any) -> Any:
    """Set w = m_i - rad_i in M and m_i + rad_i outside; returns a guess of its k-th largest number."""
    n, w, root = seen.mean.shape[1], M.room, kept.root
    if plan.beginning:
        for i in range(n):
            root[e, i] = 1.0 / math.sqrt(float(seen.pulls[e, i]))
    for i in planned(plan):
        root[e, i] = 1.0 / math.sqrt(float(seen.pulls[e, i]))
    scale = math.sqrt(rules.factor * (math.log(rules.level) + 3.0 * math.log(float(count_pulls(seen, e)))))
    for i in range(n):
        w[i] = seen.mean[e, i] + (-scale if M.inside[e, i] else scale) * root[e, i]
    if plan.beginning:
        for i in range(n):
            kept.room[i] = w[i]
        return smallest(kept.room, n, n - rules.k + 1)
    return kept.boundary[e] if kept.kth[e] == plan.last else w[kept.kth[e]]  # an arm just pulled may have moved far


@lean
def kth_of(w: Any, k: Any, x: Any, room: Any) -> Any:
    """The k-th arm by w, ties to the lowest: from the guess x of its value by steps to the next value up or down."""
    K, above, equal = len(w), 0, 0
    for i in range(K):
        above += w[i] > x
    for i in range(K):
        equal += w[i] == x
    while above >= k or above + equal < k:
        up = above >= k
        for i in range(K):
            room[i] = (-w[i] if w[i] > x else -math.inf) if up else (w[i] if w[i] < x else -math.inf)
        x = -largest(room) if up else largest(room)
        before, equal = equal, 0
        for i in range(K):
            equal += w[i] == x
        above += -equal if up else before
    place, i = k - above, 0
    while True:
        place -= w[i] == x
        if place == 0:
            return i
        i += 1


@lean
def compare(e: Any, M: Any, kept: Any, b: Any) -> Any:
    """w(M') - w(M), where b is the last arm of M'; the arm of one of the two with the largest radius, -1 if M' = M."""
    w, x, gain, radius = M.room, M.room[b], kept.gain, kept.room
    for i in range(len(w)):
        chosen = (w[i] > x) | ((w[i] == x) & (i <= b))
        differs, change, root = chosen != M.inside[e, i], w[i] if chosen else -w[i], kept.root[e, i]
        gain[i] = change if differs else 0.0
        radius[i] = root if differs else -1.0
    widest, p = largest(radius), 0
    if widest < 0.0:
        return 0.0, -1
    while radius[p] != widest:
        p += 1
    return sum_of(gain), p


@lean
def plan_round(seen: Any, e: Any, plan: Any, M: Any, kept: Any, rules: Any) -> Any:
    """Plan the pull of the next round; nothing if w(M') - w(M) is within the tolerance."""
    rank(seen, e, plan, M, rules.k)  # M
    x = weigh(seen, e, plan, M, kept, rules)
    b = kth_of(M.room, rules.k, x, kept.room)  # M'
    kept.kth[e], kept.boundary[e] = b, M.room[b]
    gain, p = compare(e, M, kept, b)
    plan_anew(plan)
    if p >= 0 and gain > rules.tolerance:
        add(plan, p)


@episode_kernel
def next_arm(e: int, seen: Seen, rules: Rules, M: High, plans: Any, kept: Kept) -> Any:
    """The next arm of episode e, K to stop."""
    plan = plans[e]
    arm = following(seen, e, plan)
    if arm < 0:
        plan_round(seen, e, plan, M, kept, rules)
        arm = following(seen, e, plan)
    return arm if arm >= 0 else seen.pulls.shape[1]


class CLUCB(TopKAgent):
    """CLUCB-PAC (Chen et al. 2014) for the k best arms.

    Args:
        task: a task or an environment. delta: None takes the task's, or 0.01 with a budget.
        sigma: sub-Gaussian scale; None takes the task's.
    """

    name, source, stops = "clucb", "Chen, Lin, King, Lyu & Chen, NIPS 2014", True

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        level = 4.0 * self.task.K / delta_of(self.name, self.task, delta, with_budget=0.01)
        weight = {"aggregate": self.k, "each": 1.0, "exact": 0.0}[self.problem.criterion]  # type: ignore[attr-defined]
        tolerance = -math.inf if self.budgeted else weight * self.epsilon  # D1
        self.rules = Rules(self.k, tolerance, level, 2.0 * scale_of(self.task, sigma) ** 2)

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        return Memory(self.new_plans(observation), High.of(E, K), Kept.of(E, K))

    def next_arms(self, seen: Fields, observation: Observation, state: Memory, out: Ints) -> None:
        state.high.check(observation["pulls"])
        next_arm(*seen, *self.rules, *state.high, state.plans, *state.kept, out)
