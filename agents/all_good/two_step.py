"""Best arm, then threshold: the two-step procedure of Mason, Jain, Tripathy & Nowak, NeurIPS 2020, section 1.3.

The paper names the two steps and leaves both algorithms open. Here both use the bounds of its section 3:

step 1      the best arm at delta / 2, by LUCB: pull h, the arm with the largest empirical mean, and the other arm with
            the largest upper bound, until the lower bound of h is above that
step 2      the arms above the threshold at delta / 2, by (ST)^2's lines 7 and 8, and beside them h: its bounds, less
            epsilon, are the bounds U and L on the threshold; stop when every other arm is above U or below L
symbols     m_i empirical mean, T_i pulls, C = C_{delta/2n}(T_i) = sigma sqrt(c ln(log2(2 T_i) 2n / delta) / T_i); gamma
            slack, which lowers U
departures  D1 ties go to the lowest arm
            D2 both steps use all samples, so that the answer is wrong with probability delta / 2 rather than delta
            D3 in the multiplicative form the factor applies to mean and width, as in `st2`

Where several arms are best it never stops, as no best arm can be told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs.kernels import episode_kernel, part

from ..core import trees
from ..core.agent import Bools, Floats, Ints, Observation
from ..core.confidence import tabulated
from ..core.plan_policy import Seen, add, clear, following, planned
from ..core.spellings import AgentState
from ..core.trees import Forest, lower, tree_of, upper
from .st2 import ST2, Rules, measure, plan_unknown, threshold_of

__all__ = ["TwoStep"]

# What step 1 has found: the best arm, -1 while it goes on; its mean and its bounds.
FOUND = np.dtype([("best", np.int64), ("mean", np.float64), ("lower", np.float64), ("upper", np.float64)])


@dataclass
class State(AgentState):
    """State of the two steps for E episodes."""

    plans: Any  # (E,) the arms of this round
    forest: Forest  # the bounds of the arms, in step 2 of all but h
    found: Any  # (E,) of FOUND
    threshold: Floats  # (E,) U of the last round where all arms are known; NaN elsewhere


@part
def measure_best(seen, e, found, rules):
    """The mean of h and its bounds."""
    m, C = seen.mean[e, found.best], tabulated(seen.pulls[e, found.best], rules.level, rules.factor, rules.table)
    low, high = m - C, m + C
    if rules.running:
        low, high = max(low, found.lower), min(high, found.upper)
    found.mean, found.lower, found.upper = m, low, high


@part
def plan_first(tree, plan, found):
    """Plan a round of step 1; nothing if it is over, and then h leaves the tree."""
    trees.settle_best(tree)
    h, rival = trees.argmin_lower_inside(tree), trees.argmax_upper_outside(tree)  # one arm is inside
    if h < 0:  # the state is of another episode
        return
    if rival >= 0 and upper(tree, rival) >= lower(tree, h):
        add(plan, h)
        add(plan, rival)
        return
    found.best, found.mean, found.lower, found.upper = h, trees.max_estimate(tree), lower(tree, h), upper(tree, h)
    trees.leave_out(tree, h)
    trees.refresh(tree, h)


@part
def plan_round(seen, e, tree, plan, found, rules):
    """Take in the samples of the last round, and plan the next; nothing if all arms are known. Returns U, or NaN."""
    n = seen.pulls.shape[1]
    if plan.beginning:  # each arm has been pulled once
        plan.beginning = 0
        found.best = -1
        for i in range(n):
            trees.put(tree, i, 0.0, -math.inf, math.inf, i == 0)
            measure(seen, e, i, tree, rules)
        trees.build(tree)
    for i in planned(plan):
        if i == found.best:
            measure_best(seen, e, found, rules)
        else:
            measure(seen, e, i, tree, rules)
            trees.refresh(tree, i)
    clear(plan)
    if found.best < 0:
        plan_first(tree, plan, found)
    if found.best < 0:
        return math.nan
    trees.settle(tree, min(threshold_of(found.mean, 0.0, rules), found.mean))
    U, L = threshold_of(found.upper, rules.gamma, rules), threshold_of(found.lower, 0.0, rules)
    plan_unknown(tree, n, U, L, plan)
    if plan.size > 0:
        add(plan, found.best)
    return U


@episode_kernel
def next_arm(e: int, seen: Seen, rules: Rules, forest: Forest, plans, finds, threshold):
    """The next arm of episode e, K to stop."""
    plan = plans[e]
    threshold[e] = math.nan
    arm = following(seen, e, plan)
    if arm < 0:
        U = plan_round(seen, e, tree_of(forest, e), plan, finds[e], rules)
        if plan.size == 0:
            threshold[e] = U
            return seen.pulls.shape[1]
        arm = following(seen, e, plan)
    return arm


class TwoStep(ST2):
    """The best arm, then the arms above the threshold that it gives (Mason et al. 2020, section 1.3).

    Args:
        delta: None takes the task's; each step has half of it. bounds, and what it recommends: as for `st2`.
    """

    name, source = "two-step", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, section 1.3"
    shares = 2

    def initial_state(self, observation: Observation) -> State:
        E, K = observation["pulls"].shape
        found = np.zeros(E, FOUND)
        found["best"] = -1
        return State(self.new_plans(observation), Forest.of(E, K), found, np.full(E, np.nan))

    def rule(self, seen: Seen, observation: Observation, state: State, out: Ints) -> Any:
        return next_arm, (seen, self.rules, state.forest, state.plans, state.found, state.threshold, out)

    def above_threshold(self, state: State, rows: Ints) -> Bools:
        best: Bools = np.arange(self.task.K) == state.found["best"][rows, None]
        return super().above_threshold(state, rows) | best
