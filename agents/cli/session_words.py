"""What is printed of a session."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bandit_envs import PROBLEMS

from .options import note

__all__ = ["answer", "asked", "print_certainty", "print_state", "question", "tell_why", "undone"]

MOST_NAMES = 40  # of arms in a line


def tell_why(session: Any) -> None:
    """Why there is nothing to ask for."""
    if session.done:
        note(f"the session is over; the answer: {answer(session)}")
    else:
        note(f"nothing more to ask for until these have been told: {asked(session, session.pending)}")


def asked(session: Any, asks: Sequence[Any]) -> str:
    """The arms of some questions."""
    names = session.names
    return _some([names[ask.arm] for ask in asks])


def answer(session: Any) -> str:
    """The arms of the answer."""
    return _some([name for name, inside in zip(session.names, session.answer(), strict=True) if inside]) or "no arm"


def _some(names: Sequence[str]) -> str:
    """Names in a line; of many the first ones, and how many there are."""
    rest = f", ... ({len(names):,})" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + rest


def question(task: Any) -> str:
    """What a session asks, and what is known of its measurements, in a line."""
    parts = [f"{PROBLEMS.find(task.problem).asks}: {', '.join(f'{k} {v!s:.40}' for k, v in task.parameters.items())}"]
    if task.support is None or task.law == "gaussian":
        parts.append(f"noise {task.sigma:g}")
    else:
        low, high = task.support
        parts.append(f"measurements {f'{low:g} or' if task.law == 'bernoulli' else f'from {low:g} to'} {high:g}")
        if task.law != "bernoulli" and task.sigma != (high - low) / 2:
            parts.append(f"noise {task.sigma:g}")
    for name in ("budget", "delta", "max_pulls"):
        if (value := getattr(task, name)) is not None:
            parts.append(f"{name} {value:g}" if name == "delta" else f"{name} {value:,}")
    return " · ".join(part.rstrip(": ") for part in parts)


def print_certainty(session: Any) -> None:
    """How sure the answer is, where that is defined; and whether its `sigma` holds."""
    sure, delta = session.certificate, session.delta
    wanted = "" if delta is None else f"; {100 * (1 - delta):g} % was asked for"
    if sure is not None and sure > 0:
        short = " only" if delta is not None and session.done and sure < 1 - delta else ""
        sure = math.floor(1000 * min(sure, 0.999)) / 10
        print(f"the answer is right with a probability of {sure:g} % at least{short}{wanted}")
    elif delta is not None:
        print(f"nothing can be promised of the answer{'' if session.done else ' yet'}{wanted}")
    for sentence in session.doubts:
        note(sentence)


def undone(session: Any, number: int) -> str:
    """An event that was undone, in words."""
    row = session.history(event=number).iloc[0]
    values = " ".join(f"{row[name]:g}" for name in row.index if name.startswith("value"))
    what = {"told": f"the result {values} of", "asked": "the question about"}.get(row["kind"], "the withdrawal of")
    who = f", by {row['who']}" if isinstance(row["who"], str) and row["who"] else ""
    return f"{what} {row['name']} (event {number}{who})"


def print_state(session: Any) -> None:
    """Where a session stands, in a line."""
    left = session.remaining
    rest = "" if left is None else f", {left} left"
    over = "; it is over" if session.done else ""
    count = len(session)
    print(f"{count} measurement{'' if count == 1 else 's'}{rest}; answer: {answer(session)}{over}")
