"""What a session asks, in words of those who measure."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from bandit_envs import Problem

if TYPE_CHECKING:
    from .session import Session

ENDINGS = {"s": "es", "x": "es", "ch": "es", "sh": "es"}  # of words that take more than an "s"


def plural(noun: str) -> str:
    """The plural of a word: compound, compounds; dish, dishes; assay, assays; category, categories."""
    if noun.endswith("y") and noun[-2:-1] not in ("", *"aeiou"):
        return f"{noun[:-1]}ies"
    return noun + next((more for end, more in ENDINGS.items() if noun.endswith(end)), "s")


def said(row: Any) -> list[str]:
    """The count in a row of a history, as "41 of 1204"; nothing where it has none."""
    ones = str(row["successes"]) if row["kind"] == "counted" else ""
    return [f"{ones if ones.isdecimal() else 'mean {:g}'.format(row['mean'])} of {row['n']}"] if ones else []


def meaning(session: Session, noun: str = "option") -> str:
    """The question of a session in one or two sentences; an arm is a `noun` where no wish says otherwise.

    A problem that is not of this package has its own line, and its parameters.
    """
    problem, wishes, K = session.task.make_problem(), session.wishes, len(session.active)
    nouns, unit = f"{K} {plural(wishes.get('noun', noun))}", f" {wishes['unit']}" if "unit" in wishes else ""
    ours = type(problem).__module__.startswith("bandit_envs.")  # what derives from these may ask something else
    ask = problem.in_words if ours else functools.partial(Problem.in_words, problem)
    question = ask(f"Which of the {nouns}", nouns, unit, session.minimize)
    lower = session.minimize and not problem.local
    return question.replace("?", "? A lower value is better.", 1) if lower else question
