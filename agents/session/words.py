"""What a session asks, in words of those who measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bandit_envs import Task

ENDINGS = {"s": "es", "x": "es", "ch": "es", "sh": "es"}  # of words that take more than an "s"
EITHER = "may be put on either side"


def plural(noun: str) -> str:
    """The plural of a word: compound, compounds; dish, dishes; assay, assays; category, categories."""
    if noun.endswith("y") and noun[-2:-1] not in ("", *"aeiou"):
        return f"{noun[:-1]}ies"
    return noun + next((more for end, more in ENDINGS.items() if noun.endswith(end)), "s")


def meaning(
    task: Task, wishes: Mapping[str, Any], K: int | None = None, noun: str = "option", minimize: bool = False
) -> str:
    """The question of a task in one or two sentences, with its parameters.

    Args:
        task: what is asked; one that is not of this package has its own line, and its parameters.
        wishes: of the session; without a noun an arm is a `noun`.
        K: how many arms there are now; None: those of the task.
        minimize: whether a lower value is better.
    """
    problem: Any = task.make_problem()
    kind = task.problem if type(problem).__module__.startswith("bandit_envs.") else ""
    many, unit, near = plural(wishes.get("noun", noun)), f" {wishes['unit']}" if "unit" in wishes else "", ""
    which = f"Which of the {K or task.K} {many}"
    if kind == "Threshold":
        question = f"{which} have a mean of {problem.threshold:g}{unit} or {'less' if minimize else 'more'}?"
        near = f"Those within {problem.tolerance:g}{unit} of it {EITHER}." if problem.tolerance else ""
    elif kind == "AllGood":
        most, more = (
            f"{100 * x:g} %" if problem.multiplicative else f"{x:g}{unit}" for x in (problem.epsilon, problem.slack)
        )
        question = f"{which} are at most {most} worse than the best one?"
        near = f"Those up to {more} worse than that {EITHER}." if problem.slack else ""
    elif kind in ("TopK", "BestArm"):
        k, off = problem.k, f"{problem.epsilon:g}{unit}"
        question = f"{which} is the best?" if k == 1 else f"Which {k} of the {K or task.K} {many} are the best?"
        near = f"The mean of those in the answer may be {off} below that of the best {k}."
        near = near if problem.criterion == "aggregate" else f"Those in it may be {off} worse than the best {k}."
        near = f"One that is at most {off} worse is right, too." if k == 1 else near
        near = near if problem.epsilon and problem.criterion != "exact" else ""
    elif kind == "Feasible":
        limits = [_limit(row, end, unit) for row, end in zip(problem.A, problem.b, strict=True)]
        question = f"{which} keep all limits of their means: {'; '.join(limits)}?"
        near = f"Those nearer than {problem.tolerance:g} to a limit {EITHER}." if problem.tolerance else ""
    else:
        settings = ", ".join(f"{name} {value!s:.40}" for name, value in task.parameters.items())
        question = f"{problem.asks}: {settings}".rstrip(": ")
    if minimize and kind != "Threshold":
        near = f"A lower value is better. {near.replace(' below ', ' above ')}"
    return f"{question} {near}".rstrip()


def _limit(row: Sequence[float], end: float, unit: str) -> str:
    """A constraint of a polyhedron, row x <= end."""
    terms = [(d, x) for d, x in enumerate(row, 1) if x]
    if len(terms) == 1:
        ((d, x),) = terms
        return f"value {d} is {end / x + 0.0:g}{unit} or {'less' if x > 0 else 'more'}"
    total = " + ".join(f"{x:g} x value {d}" for d, x in terms).replace("+ -", "- ") or "0"
    return f"{total} is {end:g}{unit} or less"
