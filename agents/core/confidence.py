"""Confidence widths that hold at all times, shared by the algorithms of the fixed-confidence setting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs import Task
from bandit_envs.kernels import choice, inlined, jit, number

from .agent import Agent, Floats

BOUNDS = ("current", "running")
TABULATED = 8192  # widths in a table
LEAST, MOST = 1e-100, 1e100  # of deltas, epsilons and scales: their squares and inverses are numbers too


@jit
def lil_width(t, level, factor):
    """sqrt(factor ln(log2(2t) / level) / t), the width after t pulls; factor = c sigma^2. [Mason et al. 2020]"""
    return math.sqrt(factor * math.log(math.log2(2.0 * t) / level) / t)


@jit
def _tabulate(level, factor, table):
    for t in range(1, len(table)):
        table[t] = lil_width(float(t), level, factor)


def lil_table(level: float, factor: float, length: int = TABULATED) -> Floats:
    """`lil_width` after 0 .. length - 1 pulls, infinite after none."""
    table = np.full(length, np.inf)
    _tabulate(level, factor, table)
    return table


@inlined
def tabulated(t, level, factor, table):
    """`lil_width` after t pulls, an integer: from its table, or computed where t lies beyond the table."""
    return table[np.uint64(t)] if 0 <= t < len(table) else lil_width(float(max(t, 1)), level, factor)


def delta_of(name: str, task: Task, delta: float | None, with_budget: float | None = None) -> float:
    """The error probability that an algorithm is run at: its own, or the task's, or `with_budget` if that is given."""
    delta = task.delta if delta is None else delta
    if delta is None and task.budget is not None:
        delta = with_budget
    if delta is None:
        raise ValueError(f"{name} needs delta, of the environment or its own")
    delta = number("delta", delta, 0, 1, above=True, below=True)
    if delta < LEAST:
        raise ValueError(f"{name} needs a delta of at least {LEAST:g}, got {delta!r}")
    return delta


def tolerance_of(agent: Agent) -> float:
    """The tolerance at which an algorithm for the k best arms answers right by the problem's criterion.

    Where it promises the aggregate regret only, it is epsilon / k by "each": k arms that lose at most epsilon together
    hold none that loses more.
    """
    problem: Any = agent.problem
    if problem.criterion in agent.promises:
        return float(problem.epsilon)
    if problem.criterion == "exact":
        return 0.0
    if problem.criterion == "each" and "aggregate" in agent.promises:
        return float(problem.epsilon) / problem.k  # type: ignore[no-any-return]
    text = f"{agent.name} promises nothing by criterion={problem.criterion!r} of {problem.name};"
    raise ValueError(f"{text} it does by {' and '.join(map(repr, agent.promises)) or 'none'}")


def positive_tolerance_of(agent: Agent) -> float:
    """`tolerance_of` an algorithm that never ends without one."""
    tolerance, problem = tolerance_of(agent), agent.task.problem
    if tolerance == 0 and agent.problem.epsilon > 0:  # type: ignore[attr-defined]
        raise ValueError(
            f"{agent.name} needs a tolerance > 0, which criterion='exact' of {problem} does not leave: take another "
            "criterion, or an agent that finds the exact set, such as lucb, kl-lucb, clucb or racing"
        )
    if tolerance == 0:
        raise ValueError(f"{agent.name} needs epsilon > 0 of the problem {problem}, got epsilon=0")
    if tolerance < LEAST:
        raise ValueError(f"{agent.name} needs an epsilon of at least {LEAST:g}, got {tolerance!r}")
    return tolerance


def zone_of(agent: Agent, zone: float | None) -> float:
    """The indifference zone of ranking and selection: the one given, or `positive_tolerance_of` the agent."""
    return positive_tolerance_of(agent) if zone is None else _scale("zone", zone)


def scale_of(task: Task, sigma: float | None) -> float:
    """The sub-Gaussian scale of a sample: the one given, or the task's."""
    return _scale("sigma", task.sigma if sigma is None else sigma)


def certified_scale_of(task: Task, sigma: float | None) -> float:
    """The scale that a certificate counts on; see `scale_of`."""
    scale = scale_of(task, sigma)
    if task.distribution == "bernoulli" and scale < 0.5:
        raise ValueError(f"sigma must be at least 0.5 where samples are 0 or 1, got {scale!r}: leave it out")
    return scale


def width_of(task: Task, width: float | None) -> float:
    """The range W of a sample: the one given, or the task's."""
    return _scale("width", task.width if width is None else width)


def _scale(name: str, value: Any) -> float:
    scale = number(name, value, 0, above=True)
    if not LEAST <= scale <= MOST:
        raise ValueError(f"{name} must be between {LEAST:g} and {MOST:g}, got {scale!r}")
    return scale


def bounds_of(bounds: str) -> bool:
    """Whether bounds never widen again."""
    return choice("bounds", bounds, BOUNDS) == "running"


def comparison_of(agent: Agent, share: float | None = None) -> tuple[int, float, float, float]:
    """The control c, a and b, and the least share of the control, see `control.differences`; guardrails are refused."""
    problem: Any = agent.problem
    refuse_guardrails(agent.name, agent.task)
    usual = 1 / (1 + math.sqrt(agent.task.K - 1))
    share = usual if share is None else number("control_share", share, 0, 1, below=True)
    return (problem.control_arm, *problem.spaces[0], share)


def refuse_guardrails(name: str, task: Task) -> None:
    """Refuse guardrails of `BetterThanControl`; name: of what is asked for."""
    if guardrails := getattr(task.make_problem(), "guardrails", None):
        raise ValueError(f"{name} takes no guardrails, got {guardrails}: the agent uniform does")
