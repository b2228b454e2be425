"""HDoC, LUCB-G and APT-G: Kano, Honda, Sakamaki, Matsuura, Nakamura & Sugiyama, Machine Learning 2019.

symbols     K arms, xi the threshold, N_i pulls, t the pulls of all arms; an arm is output as good where
            mean_i - C_i >= xi, and deleted where mean_i + C_i < xi, C_i = W sqrt(ln(4 K N_i^2 / delta) / (2 N_i)); of
            the arms that are left, the next one is
            "hdoc"    argmax of mean_i + W sqrt(ln t / (2 N_i))
            "lucb-g"  argmax of mean_i + C_i
            "apt-g"   argmin of sqrt(N_i) |mean_i - xi|
departures  D1 ties go to the lowest arm
            D2 samples of sub-Gaussian scale sigma: W = 2 sigma
            D3 the problem's tolerance, under which an arm may be answered either way, widens both sides: an arm is
               left where C_i < |mean_i - xi| + tolerance, and answered by its mean

Good arm identification outputs arms one by one; Threshold asks for all of them at the end, when every arm has been
output or deleted. An arm is left by its own samples alone, and so all three rules need the same pulls to the end, as
round robin over the arms that are left would: they differ in when which arm is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import choice, fleeting, inlined

from ..core.agent import Bools, Ints, Observation
from ..core.confidence import delta_of, scale_of
from ..core.plan_policy import PlanPolicy, Seen, add, count_pulls, planned, round_rule
from ..core.spellings import AgentState

__all__ = ["HDoC"]

SAMPLING = ("hdoc", "lucb-g", "apt-g")


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    xi: float
    tolerance: float
    level: float  # 4 K / delta
    factor: float  # W^2 / 2
    sampling: int  # its place in `SAMPLING`


@fleeting
class Own(NamedTuple):
    """The rules of HDoC and its state."""

    rules: Rules
    undecided: Bools  # (E, K)


@dataclass
class State(AgentState):
    """State of HDoC for E episodes."""

    plans: Any  # (E,) the arm of this round
    undecided: Bools  # (E, K) the arms that are neither output nor deleted


@inlined
def half_width(N, rules):
    """C_i after N pulls."""
    n = float(N)
    return math.sqrt(rules.factor * (math.log(rules.level) + 2.0 * math.log(n)) / n)


@inlined
def is_open(seen, e, i, rules):
    """Whether arm i can be neither output nor deleted yet."""
    return half_width(seen.pulls[e, i], rules) >= abs(seen.mean[e, i] - rules.xi) + rules.tolerance


@inlined
def observe(ep, own):
    """The arms that are left. Returns how many they are."""
    seen, e, left = ep.seen, ep.e, 0
    if ep.plan.beginning:
        for i in range(seen.pulls.shape[1]):
            own.undecided[e, i] = is_open(seen, e, i, own.rules)
    for i in planned(ep.plan):
        own.undecided[e, i] = is_open(seen, e, i, own.rules)
    for i in range(seen.pulls.shape[1]):
        left += own.undecided[e, i]
    return left


@inlined
def stops(ep, own, left):
    """The stopping rule: no arm is left."""
    return left == 0


@round_rule(Own, observe=observe, stops=stops)
def hdoc(ep, own, left):
    """The sampling rule: pull the arm with the largest index of those that are left."""
    seen, e, rules, arm, best, log_t = ep.seen, ep.e, own.rules, 0, -math.inf, 0.0
    if rules.sampling == 0:
        log_t = rules.factor * math.log(float(count_pulls(seen, e)))
    for i in range(seen.pulls.shape[1]):
        if not own.undecided[e, i]:
            continue
        N = float(seen.pulls[e, i])
        if rules.sampling == 0:
            index = seen.mean[e, i] + math.sqrt(log_t / N)
        elif rules.sampling == 1:
            index = seen.mean[e, i] + half_width(N, rules)
        else:
            index = -math.sqrt(N) * abs(seen.mean[e, i] - rules.xi)
        if index > best:
            arm, best = i, index
    add(ep.plan, arm)


class HDoC(PlanPolicy):
    """HDoC (Kano et al. 2019), run until every arm is known to be good or not, with probability 1 - delta.

    Args:
        delta: None takes the task's, or 0.01 with a budget. sampling: "hdoc", "lucb-g" or "apt-g".
    """

    name, source, stops = "hdoc", "Kano et al., Machine Learning 2019", True
    solves = ("Threshold",)
    needs = "delta or budget"

    def __init__(
        self, task: Any, delta: float | None = None, sampling: str = "hdoc", sigma: float | None = None
    ) -> None:
        super().__init__(task)
        place = SAMPLING.index(choice("sampling", sampling, SAMPLING))
        level = 4.0 * self.task.K / delta_of(self.name, self.task, delta, with_budget=0.01)
        p: Any = self.problem
        factor = (2.0 * scale_of(self.task, sigma)) ** 2 / 2.0
        self.rules = Rules(float(p.threshold), float(p.tolerance), level, factor, place)

    def initial_state(self, observation: Observation) -> State:
        return State(self.new_plans(observation), np.ones(observation["pulls"].shape, np.bool_))

    def rule(self, seen: Seen, observation: Observation, state: State, out: Ints) -> Any:
        return hdoc, (seen, state.plans, Own(self.rules, state.undecided), out)
