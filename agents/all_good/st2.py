"""(ST)^2, Sample the Threshold, Split the Threshold: Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 1.

symbols     m_i empirical mean, T_i pulls, C = C_{delta/n}(T_i) = sigma sqrt(c ln(log2(2 T_i) n / delta) / T_i)
            gamma slack; Ghat empirically good arms; U, L upper and lower bounds on the threshold; K (here: Known) arms
            that are known to be good or bad
departures  D1 ties go to the lowest arm
            D2 in the multiplicative form the factor applies to mean and width, which the proof needs (lost in print)
            D3 bounds="running": bounds never widen again, as in the authors' experiments; c = 2.08 there
            D4 multiplicative, while max m < 0: Ghat holds the best arms (as printed it would be empty)

With slack 0 no arm of Ghat is known to be bad, nor one outside known to be good, so that line 7 is the least lower
bound of all of Ghat if that is at most U, and line 8 the largest upper bound outside if that is at least L. Where slack
(or a negative best mean) breaks this, the round falls back to a scan over the unknown arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs import Task
from bandit_envs.kernels import episode_kernel, inlined, number, part

from ..core import trees
from ..core.agent import Bools, Floats, Ints, Observation
from ..core.confidence import bounds_of, delta_of, lil_table, scale_of, tabulated
from ..core.plan_policy import PlanPolicy, Seen, add, clear, following, planned
from ..core.spellings import AgentState
from ..core.trees import Forest, is_inside, lower, tree_of, upper

__all__ = ["ST2", "Rules", "measure", "plan_unknown", "threshold_of"]


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    epsilon: float
    gamma: float
    multiplicative: bool
    running: bool  # bounds never widen again
    level: float  # delta / n
    factor: float  # c sigma^2
    table: Floats  # C after 0, 1, ... pulls


def rules_of(task: Task, delta: float, c: float, bounds: str, sigma: float | None) -> Rules:
    """The rules for a task, whose bounds fail with probability delta in all."""
    level = delta / task.K
    factor = number("c", c, 0, above=True) * scale_of(task, sigma) ** 2
    p, table = task.parameters, lil_table(level, factor)
    epsilon, gamma = float(p["epsilon"]), float(p["slack"])
    return Rules(epsilon, gamma, p["multiplicative"], bounds_of(bounds), level, factor, table)


@dataclass
class State(AgentState):
    """State of (ST)^2 for E episodes."""

    plans: Any  # (E,) the arms of this round
    forest: Forest  # the bounds of the arms; those of Ghat are inside
    threshold: Floats  # (E,) U of the last round where all arms are known; NaN elsewhere


@part
def measure(seen, e, i, tree, rules):
    """Put m_i and its bounds m_i -+ C into the tree."""
    m, C = seen.mean[e, i], tabulated(seen.pulls[e, i], rules.level, rules.factor, rules.table)
    low, high = m - C, m + C
    if rules.running:  # D3
        low, high = max(low, lower(tree, i)), min(high, upper(tree, i))
    trees.put(tree, i, m, low, high, is_inside(tree, i))


@inlined
def threshold_of(best, gamma, rules):
    """The threshold that goes with a best mean (or a bound on it), lowered by the slack.   D2"""
    return (1.0 - rules.epsilon - gamma) * best if rules.multiplicative else best - rules.epsilon - gamma


@part
def scan(tree, K, U, L, inside):
    """The unknown arm inside with the least lower bound, or outside with the largest upper bound; -1 if none."""
    best, which = math.inf, -1
    for i in range(K):
        value = lower(tree, i) if inside else -upper(tree, i)
        if upper(tree, i) >= L and lower(tree, i) <= U and is_inside(tree, i) == inside and value < best:
            best, which = value, i
    return which


@part
def plan_unknown(tree, K, U, L, plan):
    """Plan to pull the unknown arm inside with the least lower bound, and the one outside with the largest upper."""
    i = trees.argmin_lower_inside(tree)  # line 7
    if i >= 0 and upper(tree, i) < L:
        i = scan(tree, K, U, L, True)
    if i >= 0 and lower(tree, i) <= U:
        add(plan, i)
    i = trees.argmax_upper_outside(tree)  # line 8
    if i >= 0 and lower(tree, i) > U:
        i = scan(tree, K, U, L, False)
    if i >= 0 and upper(tree, i) >= L:
        add(plan, i)


@part
def plan_round(seen, e, tree, plan, rules):
    """Take in the samples of the last round, and plan the next one; nothing if all arms are known. Returns U."""
    n = seen.pulls.shape[1]
    if plan.beginning:  # line 1 is over: each arm has been pulled once
        plan.beginning = 0
        for i in range(n):
            trees.put(tree, i, 0.0, -math.inf, math.inf, False)
            measure(seen, e, i, tree, rules)
        trees.build(tree)
    for i in planned(plan):
        measure(seen, e, i, tree, rules)
        trees.refresh(tree, i)
    clear(plan)
    best = trees.max_estimate(tree)
    trees.settle(tree, min(threshold_of(best, 0.0, rules), best))  # line 2: Ghat; D4
    U = threshold_of(trees.max_upper(tree), rules.gamma, rules)  # line 3, multiplicative: line 4
    L = threshold_of(trees.max_lower(tree), 0.0, rules)
    plan_unknown(tree, n, U, L, plan)  # lines 7 and 8
    if plan.size > 0:
        add(plan, trees.argmax_upper(tree))  # line 9
    return U


@episode_kernel
def next_arm(e: int, seen: Seen, rules: Rules, forest: Forest, plans, threshold):
    """The next arm of episode e, K to stop."""
    plan = plans[e]
    threshold[e] = math.nan
    arm = following(seen, e, plan)
    if arm < 0:
        U = plan_round(seen, e, tree_of(forest, e), plan, rules)
        if plan.size == 0:  # lines 5 and 6: all arms are known
            threshold[e] = U
            return seen.pulls.shape[1]
        arm = following(seen, e, plan)
    return arm


class ST2(PlanPolicy):
    """(ST)^2 (Mason et al. 2020): all epsilon-good arms, none worse than epsilon + slack, with probability 1 - delta.

    Args:
        c: constant of the width, > 0 (the paper's proof: 4; its experiments: 2.08). bounds: "current" or "running".

    Until it stops, `recommend` gives the plug-in answer, as in the paper's figures; then the certified set.
    """

    name, source, solves, stops = "st2", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 1", ("AllGood",), True
    needs = "delta"
    shares = 1  # of delta: the bounds have one of them

    def __init__(
        self, task: Any, delta: float | None = None, c: float = 4.0, bounds: str = "current", sigma: float | None = None
    ) -> None:
        super().__init__(task)
        self.delta = delta_of(self.name, self.task, delta)
        self.rules = rules_of(self.task, self.delta / self.shares, c, bounds, sigma)

    def initial_state(self, observation: Observation) -> Any:
        E, K = observation["pulls"].shape
        return State(self.new_plans(observation), Forest.of(E, K), np.full(E, np.nan))

    def rule(self, seen: Seen, observation: Observation, state: Any, out: Ints) -> Any:
        return next_arm, (seen, self.rules, state.forest, state.plans, state.threshold, out)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        answer = super().recommend(observation, state, slots)
        if state is not None:
            rows = np.arange(len(state.plans)) if slots is None else slots
            undecided = np.isnan(state.threshold[rows, None])
            answer = np.where(undecided, answer, self.above_threshold(state, rows)).reshape(answer.shape)
        return answer

    def above_threshold(self, state: Any, rows: Ints) -> Bools:
        """The arms above the threshold, (n, K), in these rows of a batch, where all arms are known."""
        lower = state.forest.leaves(len(state.plans), self.task.K)[rows, :, int(trees.LOWER)]
        above: Bools = lower > state.threshold[rows, None]
        return above
