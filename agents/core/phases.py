"""What algorithms with a budget, or for tables, need: the phases in which they leave out arms, and checks."""

from __future__ import annotations

import functools
import math
from typing import Any

from bandit_envs import Task
from bandit_envs.kernels import PULLS_LIMIT, jit


def rows_of(name: str, task: Task) -> int:
    """The number of rows N of a table; for other arms a ValueError, by the agent's name."""
    if not task.items:
        text = f"{name} needs arms that are the columns of one table,"
        raise ValueError(f"{text} as from_table(.., shared=True) makes them")
    return task.items


def budget_for(name: str, task: Task, least: int) -> int:
    """The budget, at least `least`; else a ValueError, by the agent's name."""
    if task.budget is None or task.budget < least:
        raise ValueError(f"{name} needs a budget >= {least} for K = {task.K} arms, got {task.budget}")
    return task.budget


@functools.lru_cache(maxsize=64)
def phase_ends(K: int, T: int) -> tuple[int, ...]:
    """Pulls of a surviving arm after phases 0 .. K - 1: 0, then ceil((T - K) / (logbar(K) (K + 1 - k))), exactly."""
    unit = math.lcm(*range(1, K + 1))
    logbar = unit // 2 + sum(unit // i for i in range(2, K + 1))  # times unit
    return (0, *(-(-(T - K) * unit // (logbar * (K + 1 - k))) for k in range(1, K)))


@jit
def whole(pulls: Any) -> Any:
    """A number of pulls, rounded up; at most `PULLS_LIMIT`, which no arm reaches."""
    return math.ceil(pulls) if pulls < PULLS_LIMIT else PULLS_LIMIT
