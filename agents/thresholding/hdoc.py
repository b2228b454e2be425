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

from bandit_envs import choice, episode_kernel, inlined, part

from ..core.agent import Bools, Ints, Observation
from ..core.confidence import delta_of, scale_of
from ..core.plan_policy import PlanPolicy, Seen, add, clear, following, planned

__all__ = ["HDoC"]

SAMPLING = ("hdoc", "lucb-g", "apt-g")


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    xi: float
    tolerance: float
    level: float  # 4 K / delta
    factor: float  # W^2 / 2
    sampling: int  # its place in `SAMPLING`


@dataclass
class Memory:
    """Memory of HDoC for E episodes."""

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


@part
def plan_round(seen, e, plan, undecided, rules):
    """Plan the pull of the next round; nothing if no arm is left."""
    K, arm, best, log_t = seen.pulls.shape[1], -1, 0.0, 0.0
    if plan.beginning:
        for i in range(K):
            undecided[e, i] = is_open(seen, e, i, rules)
    for i in planned(plan):
        undecided[e, i] = is_open(seen, e, i, rules)
    plan.beginning = 0
    clear(plan)
    if rules.sampling == 0:
        t = 0
        for i in range(K):
            t += seen.pulls[e, i]
        log_t = rules.factor * math.log(float(t))
    for i in range(K):
        if not undecided[e, i]:
            continue
        N = float(seen.pulls[e, i])
        if rules.sampling == 0:
            index = seen.mean[e, i] + math.sqrt(log_t / N)
        elif rules.sampling == 1:
            index = seen.mean[e, i] + half_width(N, rules)
        else:
            index = -math.sqrt(N) * abs(seen.mean[e, i] - rules.xi)
        if arm < 0 or index > best:
            arm, best = i, index
    if arm >= 0:
        add(plan, arm)


@episode_kernel
def next_arm(e: int, seen: Seen, rules: Rules, plans, undecided):
    """The next arm of episode e, K to stop."""
    plan = plans[e]
    arm = following(seen, e, plan)
    if arm < 0:
        plan_round(seen, e, plan, undecided, rules)
        arm = following(seen, e, plan)
    return arm if arm >= 0 else seen.pulls.shape[1]


class HDoC(PlanPolicy):
    """HDoC (Kano et al. 2019), run until every arm is known to be good or not, with probability 1 - delta.

    Args:
        task: a task or an environment. delta: None takes the task's, or 0.01 with a budget.
        sampling: "hdoc", "lucb-g" or "apt-g".
        sigma: sub-Gaussian scale of a sample; None takes the task's.
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

    def remember(self, observation: Observation) -> Memory:
        return Memory(self.new_plans(observation), np.ones(observation["pulls"].shape, np.bool_))

    def rule(self, seen: Seen, observation: Observation, state: Memory, out: Ints) -> Any:
        if observation["pulls"].shape != state.undecided.shape:
            raise ValueError(
                f"pulls {observation['pulls'].shape} do not fit a memory of episodes and arms {state.undecided.shape}"
            )
        return next_arm, (seen, self.rules, state.plans, state.undecided, out)
