"""The tables whose results a session has: one that is read twice would count twice; one that was wrong is undone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from os import PathLike
from pathlib import Path

from .store import Event

__all__ = ["last_read", "read_from", "refuse_repeated"]

FEW = 3  # fewer results that agree, as those of two small tables may by chance, are no sign of a repetition


def read_from(table: str | Path) -> str:
    """What the history says of a result that stands in a table.

    Raises:
        ValueError: for what is neither a name nor a path.
    """
    if not isinstance(table, (str, PathLike)):
        raise ValueError(f"a table must be the name of its file, or its path, got {table!r:.200}")
    return f"from {Path(table).name}"


def refuse_repeated(table: str, new: Sequence[Event], known: Sequence[Event], undone: Collection[int]) -> None:
    """Refuse results of a table that begins as an earlier one did, or as the session itself.

    So a table that is read twice is refused, also when it has grown meanwhile, and what the session has exported.
    Results that were undone, all of them, may come again; and so may fewer than `FEW`.

    Args:
        table: in which they stand, for the error. new: the results in it.
        known: all results that have been recorded, in order. undone: the numbers of those that were undone.

    Raises:
        ValueError: telling how many results of the table are known, and since when.
    """
    for before in [[event for event in known if event.number not in undone], *_tables(known)]:
        count = min(len(before), len(new))
        alike = all(_result(one) == _result(other) for one, other in zip(before, new, strict=False))
        if count >= FEW and alike and any(event.number not in undone for event in before[:count]):
            first = before[0]
            which = "its results" if count == len(new) else f"the first {count} of its {len(new)} results"
            since = "" if first.at is None else f" since {first.at:%Y-%m-%d %H:%M} UTC"
            raise ValueError(
                f"{table}: {which} are in the session already{since}, from event {first.number} on, and would count "
                "twice. Leave them out; or, if they were measured once more, say again=True (--again)"
            )


def last_read(table: str | Path, known: Sequence[Event], undone: Collection[int]) -> list[Event]:
    """The results of the table of this name that was recorded last, without those that were undone.

    Args:
        table: its name. known: all results, in order. undone: the numbers of those that were undone.

    Raises:
        ValueError: where there are none.
    """
    blocks = [[one for one in block if one.number not in undone] for block in _tables(known)]
    tables = {block[0].text: block for block in blocks if block}
    if read_from(table) not in tables:
        names = ", ".join(str(text).removeprefix("from ") for text in tables) or "none"
        raise ValueError(
            f"no results were recorded from a table {Path(table).name!r:.200}; there are those of: {names}"
        )
    return tables[read_from(table)]


def _tables(known: Sequence[Event]) -> list[list[Event]]:
    """The results of each table that was recorded: all of one table have the same text and time."""
    blocks = groupby(known, key=lambda event: (event.text, event.at))
    return [list(block) for (text, _), block in blocks if text is not None]


def _result(event: Event) -> tuple[object, object]:
    return event.arm, event.value
