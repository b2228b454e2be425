"""What a session shows of its book: the tables of events and of arms, and how sure the answer is."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import boundary_of

from ..core.optional import pandas
from .book import Book
from .doubts import about_noise
from .store import Event

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["arms_table", "boundary", "certificate", "history_table", "unsure"]


def history_table(events: Sequence[Event], undone: Collection[int], names: Sequence[str], D: int) -> DataFrame:
    """The table of some events; see `Session.history`.

    Args:
        events: in order. undone: the numbers of those that were undone.
        names: of all arms. D: numbers that a measurement has.
    """
    pd = pandas()
    arms = [event.arm for event in events]
    columns: dict[str, Any] = {
        "event": np.array([event.number for event in events], np.int64),
        "at": pd.to_datetime([event.at for event in events], utc=True),
        "kind": [event.kind for event in events],
        "arm": pd.array(arms, dtype="Int64"),
        "name": [None if arm is None else names[arm] for arm in arms],
    }
    told = np.array([np.full(D, np.nan) if event.value is None else np.atleast_1d(event.value) for event in events])
    told = told.reshape(len(events), D)
    columns |= {"value" if D == 1 else f"value_{d}": told[:, d] for d in range(D)}
    columns |= {
        "about": pd.array([event.about for event in events], dtype="Int64"),
        "who": [event.who for event in events],
        "text": [event.text for event in events],
        "undone": [event.number in undone for event in events],
    }
    table: DataFrame = pd.DataFrame(columns)
    return table


def arms_table(book: Book) -> DataFrame:
    """The table of the arms; see `Session.arms`."""
    task, seen, answer = book.setup.task, book.statistics, book.answer()
    found = about_noise(book)
    sigma = task.known_sigma if found is not None and found[0] == "refuted" else task.sigma
    waiting = np.bincount([arm for arm, _ in book.asks.values()], minlength=len(book.names))
    columns: dict[str, Any] = {"name": list(book.names), "pulls": seen.pulls}
    for d in range(task.D):
        tail = "" if task.D == 1 else f"_{d}"
        with np.errstate(divide="ignore"):
            radius = sigma * np.sqrt(2 * math.log(2 / 0.05) / seen.pulls)
        mean = np.where(seen.pulls > 0, seen.mean[:, d], np.nan)
        low, high = mean - radius, mean + radius
        if task.support is not None and task.law != "gaussian":
            low, high = np.maximum(low, task.support[0]), np.minimum(high, task.support[1])
        sd = np.where(seen.pulls > 1, np.sqrt(seen.variance[:, d]), np.nan)
        columns |= {f"mean{tail}": mean, f"sd{tail}": sd, f"low{tail}": low, f"high{tail}": high}
    withdrawn = np.isin(np.arange(len(book.names)), list(book.withdrawn))
    columns |= {"answer": answer, "pending": waiting, "withdrawn": withdrawn}
    table: DataFrame = pandas().DataFrame(columns)
    return table


def certificate(book: Book) -> float | None:
    """The probability with which the answer is right, at least; see `Session.certificate`."""
    run = book.run
    level = run.kept_level if run.over else run.level_of(book.answer()[book.active], book.statistics.at(book.active))
    return None if level is None else 1.0 - level


def boundary(book: Book) -> float | None:
    """The mean that parts the arms of the answer from the others; see `Session.boundary`."""
    problem, seen = book.run.problem, book.statistics.at(book.active)
    if problem.boundary is None and (book.setup.task.D > 1 or not seen.pulls.all()):
        return None
    return boundary_of(problem, seen.seen()[0])


def unsure(book: Book) -> NDArray[np.float64]:
    """How many standard errors each arm's mean is from the boundary, (K,); see `Session.unsure`."""
    found, seen = np.full(len(book.names), np.nan), book.statistics.at(book.active)
    margin = np.nan_to_num(np.abs(book.run.problem.margin(seen.seen())[0]), nan=0.0, posinf=0.0, neginf=0.0)
    found[book.active] = margin * np.sqrt(seen.pulls) / book.setup.task.sigma
    return found
