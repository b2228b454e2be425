"""CLUCB-PAC for the k best: Chen, Lin, King, Lyu & Chen, NIPS 2014, Algorithm 1 and Appendix B.2.

symbols     M the k arms with the largest empirical means, rad_i = sigma sqrt(2 ln(4 n t^3 / delta) / N_i) with t the
            pulls so far, w_i the adjusted mean (w with a tilde in the paper): m_i - rad_i in M and m_i + rad_i
            outside, M' the k arms with the largest w, w(M) the sum of w over M, p the arm to pull
rules       sampling `clucb`, stopping `stops`, recommendation `Agent.recommend`: the plug-in answer, M
departures  D1 the tolerance is that of the problem's criterion: k epsilon for the aggregate regret, epsilon where each
               arm counts (a set that loses at most epsilon in sum holds no worse arm), 0 for the exact set
            D2 with a budget it stops only where M' = M, as there is nothing to pull then, and delta is 0.01 where
               nobody names one, as in Chen et al. 2017
            D3 ties go to the lowest arm

Of several arms the one that has been pulled least has the largest radius. In w(M') - w(M) the arms of both cancel, so
that the sum is over the symmetric difference of M and M' only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import fleeting, inlined, part

from ..core.agent import Floats, Ints, Observation
from ..core.confidence import delta_of, scale_of
from ..core.largest import smallest
from ..core.plan_policy import Seen, add, count_pulls, planned, round_rule
from ..core.reductions import largest, sum_of
from ..core.spellings import AgentState
from .selection import High, TopKAgent, rank

__all__ = ["CLUCB"]


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    k: int
    tolerance: float
    level: float  # 4 n / delta
    factor: float  # 2 sigma^2


class Kept(NamedTuple):
    """What a round hands on to the next one, and the arrays that it works on.

    The radius of an arm is 1 / sqrt(N_i) times a factor that all arms of a round have in common.
    """

    inverse_root: Floats  # (E, K) 1 / sqrt(N_i)
    kth: Ints  # (E,) the arm with the k-th largest adjusted mean in the last round
    kth_adjusted: Floats  # (E,) its adjusted mean then
    adjusted: Floats  # (K,) the adjusted means w of the episode at hand
    changes: Floats  # (K,) what each arm contributes to w(M') - w(M), filled up with 0 to a multiple of 4
    candidates: Floats  # (K,) the numbers of which the largest is wanted, filled up with -inf to a multiple of 4

    @classmethod
    def of(cls, E: int, K: int) -> Kept:
        """Before the first round of E episodes."""
        length = (K + 3) // 4 * 4
        last_round = np.zeros((E, K)), np.zeros(E, np.int64), np.zeros(E)
        return cls(*last_round, np.zeros(K), np.zeros(length), np.full(length, -np.inf))


@fleeting
class Own(NamedTuple):
    """The rules of CLUCB and its state."""

    rules: Rules
    M: High
    kept: Kept


class Difference(NamedTuple):
    """How M and M' differ."""

    difference: float  # w(M') - w(M)
    p: int  # the arm of the symmetric difference with the largest radius, -1 if M' = M


@dataclass
class State(AgentState):
    """State of CLUCB for E episodes."""

    plans: Any  # (E,) the arm of this round
    high: High  # M
    kept: Kept


@part
def adjust_means(seen, e, plan, M, kept, rules):
    """Set the adjusted means w: m_i - rad_i in M, m_i + rad_i outside. Returns a guess of the k-th largest of them."""
    n, w, inverse_root = seen.mean.shape[1], kept.adjusted, kept.inverse_root
    if plan.beginning:
        for i in range(n):
            inverse_root[e, i] = 1.0 / math.sqrt(float(seen.pulls[e, i]))
    for i in planned(plan):  # only these have been pulled since the last round
        inverse_root[e, i] = 1.0 / math.sqrt(float(seen.pulls[e, i]))
    t = float(count_pulls(seen, e))
    factor = math.sqrt(rules.factor * (math.log(rules.level) + 3.0 * math.log(t)))  # rad_i = factor / sqrt(N_i)
    for i in range(n):
        w[i] = seen.mean[e, i] + (-factor if M.inside[e, i] else factor) * inverse_root[e, i]
    if plan.beginning:
        for i in range(n):
            kept.candidates[i] = w[i]
        return smallest(kept.candidates, n, n - rules.k + 1)
    # The k-th arm of the last round, unless it is the one just pulled, whose adjusted mean may have moved far.
    return kept.kth_adjusted[e] if kept.kth[e] == plan.last else w[kept.kth[e]]


@part
def kth_largest(w, k, guess, candidates):
    """The arm with the k-th largest w (K,), k >= 1, where of equal arms the lowest comes first.

    From the guess it goes to the next larger or smaller number among the w until it is at the k-th largest: from one
    round to the next that is a step or two. It overwrites `candidates`.
    """
    K, x, above, equal = len(w), guess, 0, 0  # how many w are larger than x, and equal to it
    for i in range(K):
        above += w[i] > x
    for i in range(K):
        equal += w[i] == x
    for _ in range(K + 1):  # it takes no more steps, unless some w are no numbers
        if above < k <= above + equal:
            break
        up = above >= k
        for i in range(K):
            candidates[i] = (-w[i] if w[i] > x else -math.inf) if up else (w[i] if w[i] < x else -math.inf)
        x = -largest(candidates) if up else largest(candidates)
        before, equal = equal, 0
        for i in range(K):
            equal += w[i] == x
        above += -equal if up else before
    place, i = k - above, 0  # the place of the arm among those whose w is x
    while i < K - 1:
        place -= w[i] == x
        if place == 0:
            return i
        i += 1
    return i


@part
def compare(e, M, kept, kth):
    """The `Difference` of M, the k largest means, and M', whose last arm is kth; `kept` holds the adjusted means."""
    w, kth_adjusted, changes, candidates = kept.adjusted, kept.adjusted[kth], kept.changes, kept.candidates
    for i in range(len(w)):
        chosen = (w[i] > kth_adjusted) | ((w[i] == kth_adjusted) & (i <= kth))  # whether the arm is in M'
        differs, change, inverse_root = chosen != M.inside[e, i], w[i] if chosen else -w[i], kept.inverse_root[e, i]
        changes[i] = change if differs else 0.0
        candidates[i] = inverse_root if differs else -1.0  # the largest radius has the largest 1 / sqrt(N_i)
    widest, p = largest(candidates), 0
    if widest < 0.0:
        return Difference(0.0, -1)
    while p < len(w) - 1 and candidates[p] != widest:
        p += 1
    return Difference(sum_of(changes), p)


@inlined
def observe(ep, own):
    """M and M', and how they differ."""
    e, seen, plan, M, kept, rules = ep.e, ep.seen, ep.plan, own.M, own.kept, own.rules
    rank(seen, e, plan, M, rules.k)  # M
    guess = adjust_means(seen, e, plan, M, kept, rules)
    kth = kth_largest(kept.adjusted, rules.k, guess, kept.candidates)  # M' are the arms down to this one
    kept.kth[e], kept.kth_adjusted[e] = kth, kept.adjusted[kth]
    return compare(e, M, kept, kth)


@inlined
def stops(ep, own, found):
    """The stopping rule: w(M') - w(M) <= the tolerance, as where M' = M."""
    return found.p < 0 or not found.difference > own.rules.tolerance


@round_rule(Own, observe=observe, stops=stops)
def clucb(ep, own, found):
    """The sampling rule: pull p."""
    add(ep.plan, found.p)


class CLUCB(TopKAgent):
    """CLUCB-PAC (Chen et al. 2014) for the k best arms. With a budget, delta is 0.01 where the task has none."""

    name, source, stops = "clucb", "Chen, Lin, King, Lyu & Chen, NIPS 2014", True
    needs = "delta or budget"
    promises = ("aggregate", "each", "exact")

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        level = 4.0 * self.task.K / delta_of(self.name, self.task, delta, with_budget=0.01)
        weight = {"aggregate": self.k, "each": 1.0, "exact": 0.0}[self.problem.criterion]  # type: ignore[attr-defined]
        tolerance = -math.inf if self.budgeted else weight * self.task.parameters["epsilon"]  # D1
        self.rules = Rules(self.k, tolerance, level, 2.0 * scale_of(self.task, sigma) ** 2)

    def initial_state(self, observation: Observation) -> State:
        E, K = observation["pulls"].shape
        return State(self.new_plans(observation), High.of(E, K), Kept.of(E, K))

    def rule(self, seen: Seen, observation: Observation, state: State, out: Ints) -> Any:
        return clucb, (seen, state.plans, Own(self.rules, state.high, state.kept), out)
