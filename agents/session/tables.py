"""The tables of a session: it shows tables of events and of arms, and records the results of a user's table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.optional import pandas
from .doubts import about_noise
from .fold import State
from .log import ASKED, Event

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["arms_table", "history_table", "last_read", "read_from", "refuse_repeated"]

FEW = 3  # fewer results that agree, as those of two small tables may by chance, are no sign of a repetition


def history_table(state: State, events: Sequence[Event]) -> DataFrame:
    """The table of some events; see `Session.history`."""
    pd, D, arms = pandas(), state.setup.task.D, [event.arm for event in events]
    tabled = bool(state.setup.task.items)  # a question has its row in the place of a value, a result behind it
    shown = [None if event.value is None or tabled and event.kind == ASKED else event.value for event in events]
    values = np.array([np.full(D, np.nan) if one is None else np.atleast_1d(one)[:D] for one in shown])
    values = values.reshape(len(events), D)
    rows = [None if event.value is None or not tabled else int(np.atleast_1d(event.value)[-1]) for event in events]
    columns: dict[str, Any] = {
        "event": np.array([event.number for event in events], np.int64),
        "at": pd.to_datetime([event.at for event in events], utc=True),
        "kind": [event.kind for event in events],
        "arm": pd.array(arms, dtype="Int64"),
        "name": [None if arm is None else state.names[arm] for arm in arms],
        **({"item": _items(state, rows)} if tabled else {}),
        **{"value" if D == 1 else f"value_{d}": values[:, d] for d in range(D)},
        "about": pd.array([event.about for event in events], dtype="Int64"),
        "who": [event.who for event in events],
        "text": [event.text for event in events],
        "undone": [event.number in state.undone for event in events],
    }
    table: DataFrame = pd.DataFrame(columns)
    return table


def _items(state: State, rows: Sequence[int | None]) -> Any:
    """A column of the rows of a table, by their names or numbers."""
    if state.setup.items is None:
        return pandas().array(rows, dtype="Int64")
    return [None if row is None else state.item(row) for row in rows]


def arms_table(state: State) -> DataFrame:
    """The table of the arms; see `Session.arms`."""
    task, seen, arms = state.setup.task, state.statistics, len(state.names)
    found = about_noise(state)
    sigma = task.known_sigma if found is not None and found[0] == "refuted" else task.sigma
    columns: dict[str, Any] = {"name": list(state.names), "pulls": seen.pulls}
    for d in range(task.D):
        tail = "" if task.D == 1 else f"_{d}"
        with np.errstate(divide="ignore"):
            radius = sigma * np.sqrt(2 * math.log(2 / 0.05) / seen.pulls)
        if task.items:  # without replacement (Serfling, Annals of Statistics 1974); with all its rows an arm is known
            left = np.clip(1 - (seen.pulls - 1) / task.items, 0, 1)
            radius = np.where(seen.pulls < task.items, radius * np.sqrt(left), 0.0)
        mean = np.where(seen.pulls > 0, seen.mean[:, d], np.nan)
        low, high = mean - radius, mean + radius
        if task.support is not None and task.distribution != "gaussian":
            low, high = np.maximum(low, task.support[0]), np.minimum(high, task.support[1])
        sd = np.where(seen.pulls > 1, np.sqrt(seen.variance[:, d]), np.nan)
        columns |= {f"mean{tail}": mean, f"sd{tail}": sd, f"low{tail}": low, f"high{tail}": high}
    columns |= {
        "answer": state.answer(),
        "pending": np.bincount([arm for arm, _ in state.asks.values()], minlength=arms),
        "withdrawn": np.isin(np.arange(arms), list(state.withdrawn)),
    }
    table: DataFrame = pandas().DataFrame(columns)
    return table


def read_from(table: str | Path) -> str:
    """The text of the events whose results stand in a table."""
    if not isinstance(table, (str, PathLike)):
        raise ValueError(f"a table must be the name of its file, or its path, got {table!r:.200}")
    return f"from {Path(table).name}"


def refuse_repeated(state: State, table: str, new: Sequence[Event]) -> None:
    """Refuse the new results of a table that begins as an earlier one did, or as the session itself.

    So a table that is read twice is refused, also when it has grown meanwhile, and what the session has exported.
    Results that were undone, all of them, may come again; and so may fewer than `FEW`.
    """
    for before in [[event for event in state.told if event.number not in state.undone], *_tables(state)]:
        count = min(len(before), len(new))
        alike = all(one[1:4] == other[1:4] for one, other in zip(before, new, strict=False))  # kind, arm and value
        if count >= FEW and alike and any(event.number not in state.undone for event in before[:count]):
            which = "its results" if count == len(new) else f"the first {count} of its {len(new)} results"
            raise ValueError(
                f"{table}: {which} are in the session already since {before[0].at:%Y-%m-%d %H:%M} UTC, from event "
                f"{before[0].number} on, and would count twice. Leave them out; or, if they were measured once more, "
                "say again=True (--again)"
            )


def last_read(state: State, table: str | Path) -> list[Event]:
    """The results of the table of this name that was recorded last, without those that were undone."""
    blocks = [[one for one in block if one.number not in state.undone] for block in _tables(state)]
    tables = {block[0].text: block for block in blocks if block}
    if read_from(table) not in tables:
        names = ", ".join(str(text).removeprefix("from ") for text in tables) or "none"
        raise ValueError(
            f"no results were recorded from a table {Path(table).name!r:.200}; there are those of: {names}"
        )
    return tables[read_from(table)]


def _tables(state: State) -> list[list[Event]]:
    """The results of each table that was recorded: all of one table have the same text and time."""
    blocks = groupby(state.told, key=lambda event: (event.text, event.at))
    return [list(block) for (text, _), block in blocks if text is not None]
