"""Whether a table begins with results that a session has already, so that they would count twice."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

from .store import Event

__all__ = ["refuse_repeated"]


def refuse_repeated(table: str, new: Sequence[Event], known: Sequence[Event], undone: Collection[int]) -> None:
    """Refuse results of a table that begins as an earlier one did, or as the session itself.

    So a table that is read twice is refused, also when it has grown meanwhile, and what the session has exported.
    Results that were undone, all of them, may come again.

    Args:
        table: in which they stand, for the error. new: the results in it.
        known: all results that have been recorded, in order. undone: the numbers of those that were undone.

    Raises:
        ValueError: telling how many results of the table are known, and since when.
    """
    for before in [[event for event in known if event.number not in undone], *_tables(known)]:
        count = min(len(before), len(new))
        alike = all(_result(one) == _result(other) for one, other in zip(before, new, strict=False))
        if count and alike and any(event.number not in undone for event in before[:count]):
            first, which = (
                before[0],
                "its results" if count == len(new) else f"the first {count} of its {len(new)} results",
            )
            since = "" if first.at is None else f" since {first.at:%Y-%m-%d %H:%M} UTC"
            raise ValueError(
                f"{table}: {which} are in the session already{since}, from event {first.number} on, and would count "
                "twice. Leave them out; or, if they were measured once more, say again=True (--again)"
            )


def _tables(known: Sequence[Event]) -> list[list[Event]]:
    """The results of each table that was recorded: all of one table have the same text and time."""
    blocks = groupby(known, key=lambda event: (event.text, event.at))
    return [list(block) for (text, _), block in blocks if text is not None]


def _result(event: Event) -> tuple[object, object]:
    return event.arm, event.value
