"""EAST and uniform elimination: Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 4.1 (good filter), section 5.

symbols     m_i empirical mean, N_i pulls, t their common number among the active arms
            C = C_{delta/n}(t) = sigma sqrt(c ln(log2(2t) n / delta) / t)
            A active arms, G arms declared good; U, L bounds on the threshold; gamma slack
departures  D1 t is the common number of pulls of the active arms
            D2 in the multiplicative form the factor applies to mean and width, which the proof needs (lost in print)
            D3 EAST does not use the slack: its answer holds good arms only

Line numbers are those of Algorithm 4.1, as in `fareast`. No set B is kept: the arms outside A and G are bad. Called
without their state in the middle of an episode (`state=None`), both bring all arms to a common number of pulls first,
and use all samples.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from bandit_envs.kernels import episode_kernel, inlined, number, part

from ..core import bulk
from ..core.agent import Ints, Observation
from ..core.bulk import Plans, Sums, Times
from ..core.confidence import delta_of, lil_width, scale_of
from ..core.round_policy import BulkPolicy

__all__ = ["East", "UniformElimination", "activate_all", "all_decided", "sort_out"]


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    epsilon: float
    gamma: float
    multiplicative: bool
    level: float  # delta / n
    factor: float  # c sigma^2
    uniform: bool  # uniform elimination, else EAST


@part
def activate_all(plan):
    """All arms are active, and none is declared good: A is the plan, and G its answer.   [lines 3, 4]"""
    bulk.clear(plan)
    for i in range(len(plan.arms)):
        bulk.add(plan, i)
        plan.answer[i] = False


@inlined
def threshold(best, gamma, rules):
    """The threshold that goes with a bound on the best mean, lowered by the slack.   D2"""
    return (1.0 - rules.epsilon - gamma) * best if rules.multiplicative else best - rules.epsilon - gamma


@inlined
def sort_out(plan, total, t, rules):
    """Lines 17 to 22, after t samples of each active arm beyond the base: update G and A. Returns U and L."""
    G, C, top, left = plan.answer, lil_width(t, rules.level, rules.factor), -math.inf, 0
    for j in range(plan.book.size):
        i = bulk.arm_at(plan, j)
        top = max(top, (total[i] - plan.base[i]) / t)
    U, L = threshold(top + C, 0.0, rules), threshold(top - C, 0.0, rules)  # line 17
    for j in range(plan.book.size):  # line 18
        i = bulk.arm_at(plan, j)
        m = (total[i] - plan.base[i]) / t
        if m - C >= U:  # line 19
            G[i] = True
        if m + C > L and not (G[i] and m + C <= top - C):  # lines 20 to 22
            bulk.put_at(plan, left, i)
            left += 1
    plan.book.size = left
    return U, L


@inlined
def all_decided(plan):
    """Whether A is a subset of G; then every arm is known to be good or bad.   [line 23]"""
    j = 0
    while j < plan.book.size and plan.answer[bulk.arm_at(plan, j)]:
        j += 1
    return j == plan.book.size


@part
def all_known(plan, total, t, rules):
    """Whether every arm is known to be good, as those of G, or bad, after t samples of each: (ST)^2's test."""
    G, known = plan.answer, True
    C, top = lil_width(t, rules.level, rules.factor), -math.inf
    for i in range(len(total)):
        top = max(top, total[i] / t)
    U, L = threshold(top + C, rules.gamma, rules), threshold(top - C, 0.0, rules)
    for i in range(len(total)):
        m = total[i] / t
        G[i] = m - C > U
        known &= G[i] or m + C < L
    return known


@part
def level(plan, pulls):
    """Plan a pull of each arm with the fewest pulls; no arm where all have equally many, at least one."""
    least = most = pulls[0]
    for i in range(len(pulls)):
        least, most = min(least, pulls[i]), max(most, pulls[i])
    bulk.clear(plan)
    for i in range(len(pulls)):
        if pulls[i] == least and (least < most or least == 0):
            bulk.add(plan, i)


@part
def look(plan, pulls, total, rules):
    """Test where all active arms have equally many pulls; stop, or plan to pull the active arms once more."""
    if plan.book.beginning:
        level(plan, pulls)
        if plan.book.size > 0:
            bulk.repeat(plan, 1)
            return
        bulk.begin(plan)
        activate_all(plan)
    t = float(pulls[plan.arms[0]])  # line 16: that of all active arms
    if rules.uniform:
        over = all_known(plan, total, t, rules)
    else:
        sort_out(plan, total, t, rules)  # lines 17 to 22
        over = all_decided(plan)
    if over:
        bulk.stop(plan)  # line 23
    else:
        bulk.repeat(plan, 1)  # line 15


@episode_kernel
def next_pull(e: int, sums: Sums, rules: Rules, plans: Plans, times: Times):
    """The next arm of episode e, K to stop."""
    plan = bulk.plan_of(plans, e)
    bulk.watch(plan, sums.pulls, e)
    arm = bulk.following(plan, e, times)
    if arm < 0:
        look(plan, sums.pulls[e], sums.total[e], rules)
        arm = bulk.following(plan, e, times)
    return arm


class _Elimination(BulkPolicy):
    """Pull the active arms with the fewest pulls; whenever all active arms have equally many, test."""

    solves, stops, resumes = ("AllGood",), True, True  # the next arm is one of those with the fewest pulls
    needs = "delta"
    uniform: ClassVar[bool]

    def __init__(self, task: Any, delta: float | None = None, c: float = 4.0, sigma: float | None = None) -> None:
        super().__init__(task)
        level = delta_of(self.name, self.task, delta) / self.task.K
        factor = number("c", c, 0, above=True) * scale_of(self.task, sigma) ** 2
        p = self.task.parameters
        epsilon, gamma = float(p["epsilon"]), float(p["slack"])
        self.rules = Rules(epsilon, gamma, p["multiplicative"], level, factor, self.uniform)

    def rule(self, sums: Sums, observation: Observation, state: Any, times: Times, out: Ints) -> Any:
        return next_pull, (sums, self.rules, state.plans, times, out)


class East(_Elimination):
    """EAST, the good filter of FAREAST alone (Mason et al. 2020): all epsilon-good arms with probability 1 - delta."""

    name, source = "east", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 4.1 without its bad filter"
    uniform = False


class UniformElimination(_Elimination):
    """Round robin over all arms until all are known, (ST)^2's answer: right with probability 1 - delta."""

    name, source = "uniform-elimination", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, section 5"
    uniform = True
