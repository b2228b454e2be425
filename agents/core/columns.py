"""What the algorithms for tables have in common: they need one."""

from __future__ import annotations

from bandit_envs import Task


def rows_of(name: str, task: Task) -> int:
    """The number of rows N."""
    if not task.items:
        raise ValueError(
            f"{name} needs arms that are the columns of one table, as from_table(.., shared=True) makes them"
        )
    return task.items


def budget_for(name: str, task: Task, least: int) -> int:
    """The budget."""
    if task.budget is None or task.budget < least:
        raise ValueError(f"{name} needs a budget >= {least} for K = {task.K} arms, got {task.budget}")
    return task.budget
