"""The best policy within a budget, and what an agent reaches: dynamic programming from the last pull to the first."""

from __future__ import annotations

import dataclasses
from typing import Any

from agents.core.agent import Agent, task_of
from agents.thresholding.opt_kg import prior_of
from bandit_envs import Task

from .answers import Answers, answers_of
from .states import Level, look_back

__all__ = ["best", "reached"]


def best(task: Any, prior: tuple[float, float] = (1.0, 1.0), loss: str = "score") -> float:
    """The expected loss of the best policy with the best answer.

    Args:
        task: a task or an environment with a budget and Bernoulli arms: Threshold, TopK or BestArm.
        prior: (a0, b0), the distribution from which the mean of each arm is drawn; whole numbers for TopK and BestArm.
        loss: "score": 1 - score; "error": 1 if the answer is not correct; or one of the problem's metrics.

    Raises:
        ValueError: for another task, and for more states than fit into memory.
    """
    task, answers, prior, budget = _asked(task, prior, loss)
    later = Level.of(task.K, budget, True)
    values = answers.least(later)
    for spent in range(budget - 1, -1, -1):
        level = Level.of(task.K, spent, True)
        values, later = look_back(level, later, prior, values, None), level
    return float(values[0])


def reached(
    agent: Agent, prior: tuple[float, float] = (1.0, 1.0), loss: str = "score", *, best_answer: bool = False
) -> float:
    """The expected loss of an agent whose choices and answers follow from the statistics alone, such as `evolved`.

    An agent whose state is more than the statistics, or that draws lots, must be simulated.

    Args:
        agent: made for a task as of `best`. prior, loss: as of `best`.
        best_answer: with the answer of least expected loss in place of the agent's own.

    Raises:
        ValueError: as `best`.
    """
    task, answers, prior, budget = _asked(agent.task, prior, loss)
    agent = agent if task.actions == "arm" else agent.for_task(task)
    later = Level.of(task.K, budget, False)
    if best_answer:
        alike = Level.of(task.K, budget, True)
        values = answers.least(alike)[later.ordered(alike)[0]]
    else:
        values = answers.of(later, agent.recommend(later.observation(budget)))
    for spent in range(budget - 1, -1, -1):
        level = Level.of(task.K, spent, False)
        arms, _ = agent.predict(level.observation(budget))
        values, later = look_back(level, later, prior, values, arms), level
    return float(values[0])


def _asked(source: Any, prior: Any, loss: str) -> tuple[Task, Answers, tuple[float, float], int]:
    """What is asked for, checked: the task in which an action is an arm, its answers, the prior and the budget."""
    task = task_of(source)
    if task.budget is None or task.distribution != "bernoulli" or task.D != 1:
        raise ValueError(f"bounds need a budget and scalar Bernoulli arms, got {task!r:.300}")
    prior = prior_of(prior)
    answers = answers_of(task.make_problem(), task.K, loss, prior, task.budget)
    return dataclasses.replace(task, actions="arm"), answers, prior, task.budget
