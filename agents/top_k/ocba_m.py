"""OCBA-m, Optimal Computing Budget Allocation for the m best: Chen, He, Fu & Lee, INFORMS J. on Computing 2008.

symbols     m_(j) the j-th largest empirical mean, se_j = s_j / sqrt(N_j) its standard error, c the cutoff between
            m_(m+1) and m_(m), Delta pulls per allotment; m is the problem's k
departures  D1 the 2010 paper's sequential form (Delta = 1): of the arms below their targets one is drawn, with
               probability proportional to its target; Delta > 1 is the original, by whole allotments
            D2 s_i^2 >= 1e-12, |m_i - c| >= 1e-9
            D3 targets are rounded to the nearest integer, halves up; an allotment that rounds to nothing is drawn as D1
            D4 ties go to the lowest arm
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import fleeting, inlined, integer, part
from bandit_envs.problems import Samples, at_boundary, cutoff

from ..core.agent import Ints, Observation
from ..core.plan_policy import add, count_pulls, round_rule
from .draws import draw, uniform
from .selection import High, SelectionState, TopKAgent, rank

__all__ = ["OCBAm"]

LEAST_VARIANCE, LEAST_DISTANCE = 1e-12, 1e-9


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    k: int
    n0: int
    Delta: int


@fleeting
class Allotment(NamedTuple):
    """What is still to be pulled of the current allotment where Delta > 1, and what arms are drawn from."""

    owed: Ints  # (E, K) pulls that are still to be made
    debt: Ints  # (E,) how many
    public_seed: Ints  # (E, 1), and seed: see `Seeds`
    seed: int


@fleeting
class Own(NamedTuple):
    """The rules of OCBA-m and its state."""

    rules: Rules
    high: High
    allotment: Allotment


@dataclass
class State(SelectionState):
    """State of OCBA-m for E episodes."""

    owed: Ints  # (E, K) pulls of the current allotment that are still to be made
    debt: Ints  # (E,) how many


@part
def share(seen, e, inside, total, target):
    """Fill target (K,) with the allotment of `total` pulls, in proportion to s_i^2 / (m_i - c)^2."""
    K, weights = seen.mean.shape[1], 0.0
    for i in range(K):
        N = float(seen.pulls[e, i])
        target[i] = max(seen.variance[e, i] * (N / (N - 1.0)), LEAST_VARIANCE)  # s_i^2; D2
    l, h = at_boundary(seen.mean, e, inside)  # noqa: E741
    error_low = math.sqrt(target[l] / float(seen.pulls[e, l]))
    error_high = math.sqrt(target[h] / float(seen.pulls[e, h]))
    c = cutoff(seen.mean[e, l], seen.mean[e, h], error_low, error_high)
    for i in range(K):
        gap = max(abs(seen.mean[e, i] - c), LEAST_DISTANCE)  # D2
        target[i] = target[i] / (gap * gap)
        weights += target[i]
    for i in range(K):
        target[i] = total * (target[i] / weights)


@part
def owe(seen, e, allotment, target):
    """Owe each arm what it lacks of its rounded target."""
    for i in range(len(target)):
        allotment.owed[e, i] = max(int(math.floor(target[i] + 0.5)) - seen.pulls[e, i], 0)  # D3
        allotment.debt[e] += allotment.owed[e, i]


@part
def pay(e, allotment):
    """The lowest arm that is owed a pull, which it gets."""
    i = 0
    while i < allotment.owed.shape[1] - 1 and allotment.owed[e, i] == 0:
        i += 1
    allotment.owed[e, i] -= 1
    allotment.debt[e] -= 1
    return i


@part
def draw_below_target(seen, e, target, u):
    """An arm that has not been pulled as often as its target, with probability proportional to that; -1 if none."""
    total = 0.0
    for i in range(len(target)):
        target[i] = target[i] if float(seen.pulls[e, i]) < target[i] else 0.0
    for i in range(len(target)):
        total += target[i]
    return draw(target, total, u) if total > 0.0 else -1


@inlined
def observe(ep, own):
    """Rank the arms, and count the pulls so far; a new episode owes nothing."""
    rank(ep.seen, ep.e, ep.plan, own.high, own.rules.k)
    if ep.plan.beginning:
        own.allotment.debt[ep.e] = 0
    return count_pulls(ep.seen, ep.e)


@part
def passes(own):
    """How often every arm is pulled first."""
    return own.rules.n0


@round_rule(Own, Samples, observe=observe, passes=passes)
def ocba_m(ep, own, t):
    """The sampling rule: pay what the allotment owes, or draw an arm below its target."""
    e, seen, target, allotment, rules = ep.e, ep.seen, own.high.scratch, own.allotment, own.rules
    if allotment.debt[e] == 0:
        share(seen, e, own.high.inside, float(t + rules.Delta), target)
        if rules.Delta > 1:
            owe(seen, e, allotment, target)
    if allotment.debt[e] > 0:
        i = pay(e, allotment)  # D1
    else:
        i = draw_below_target(seen, e, target, uniform(allotment, e, t))
    if i >= 0:
        add(ep.plan, i)


class OCBAm(TopKAgent):
    """OCBA-m (Chen, He, Fu & Lee 2008), in the sequential form of Kalyanakrishnan & Stone 2010 unless Delta > 1.

    Args:
        n0: first pulls of each arm, >= 2 (the authors: 20, at least 5). Delta: pulls per allotment, >= 1.

    It promises nothing and never stops by itself. Up to n0 pulls of each arm it is uniform sampling, to the pull: a
    budget of at most n0 K needs a smaller n0, and `agents.make` warns of it.
    """

    name, source = "ocba-m", "Chen, He, Fu & Lee, INFORMS Journal on Computing 2008"

    def __init__(self, task: Any, n0: int = 20, Delta: int = 1, seed: int = 0) -> None:
        super().__init__(task)
        n0, Delta = integer("n0", n0, 2, 2**31 - 1), integer("Delta", Delta, 1, 2**31 - 1)
        self.rules, self.seed = Rules(self.k, n0, Delta), integer("seed", seed, 0, 2**32 - 1)

    def cautions(self) -> Iterator[str]:
        yield from super().cautions()
        n0, K, budget = self.rules.n0, self.task.K, self.task.budget
        if budget is not None and budget <= n0 * K:
            yield (
                f"{self.name} begins with n0={n0} pulls of each of {K} arms, which takes the budget of {budget}: so it "
                "is uniform sampling; take a smaller n0, of 5 or more"
            )

    def initial_state(self, observation: Observation) -> State:
        owed = np.zeros(observation["pulls"].shape, np.int64)
        return State(**self.blank(observation), owed=owed, debt=np.zeros(len(owed), np.int64))

    def rule(self, seen: Any, observation: Observation, state: State, out: Ints) -> Any:
        m, (variance, public_seed) = state, self.beside(observation)
        samples, allotment = Samples(seen.pulls, seen.mean, variance), Allotment(m.owed, m.debt, public_seed, self.seed)
        return ocba_m, (samples, m.plans, Own(self.rules, m.high, allotment), out)
