"""What people say of a session's arms, checked: which arm, what was measured, and who."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bandit_envs import Task, integer

from .book import Book
from .statistics import sample_of
from .store import TOLD, Event

__all__ = ["arm_of", "pairs_of", "person", "remark", "results_of"]

MOST_DIGITS = 9  # of the number of an arm


def arm_of(book: Book, arm: int | str) -> int:
    """The number of an arm that can be measured.

    Raises:
        ValueError: for an arm that there is not, or no longer.
    """
    if isinstance(arm, str):
        text = arm.strip()
        found = book.number.get(text)
        if found is None and text.isdecimal() and len(text) <= MOST_DIGITS and int(text) < len(book.names):
            found = int(text)
        if found is None:
            known = ", ".join(book.names[:8]) + (", ..." if len(book.names) > 8 else "")
            raise ValueError(f"there is no arm {arm!r:.200}; the arms are {known}")
    else:
        found = integer("arm", arm, 0, len(book.names) - 1)
    if found in book.withdrawn:
        raise ValueError(f"the arm {book.names[found]!r:.200} has been withdrawn")
    return found


def pairs_of(results: Any) -> list[tuple[Any, Any]]:
    """Results as pairs of an arm and a value.

    Raises:
        ValueError: naming the first that is no pair, from 1.
    """
    try:
        rows = list(results)
    except TypeError:
        raise ValueError(f"results must be pairs of an arm and a value, got {results!r:.200}") from None
    for i, row in enumerate(rows, 1):
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__") or len(row) != 2:
            raise ValueError(f"row {i}: a result must be a pair of an arm and a value, got {row!r:.200}")
    return [(arm, value) for arm, value in rows]


def results_of(
    book: Book, task: Task, rows: Sequence[tuple[str, int | str, Any]], who: str | None, text: str | None
) -> list[Event]:
    """Results as events, each with the question that it answers, if any waits.

    Args:
        book: as of now. task: of the session.
        rows: triples of their place for errors, an arm and a value.
        who: has measured them. text: for the history.

    Raises:
        ValueError: naming the place and what is wrong.
    """
    told, taken = [], set[int]()
    for place, arm, value in rows:
        try:
            one, sample = arm_of(book, arm), sample_of(task, value)
        except ValueError as error:
            raise ValueError(f"{place}{error}") from None
        about = book.ask_answered_by(one, who, taken)
        if about is not None:
            taken.add(about)
        told.append(Event(0, TOLD, one, sample, about, who, text))
    return told


def person(who: Any) -> str | None:
    """Who asks or tells.

    Raises:
        ValueError: unless it is text or None.
    """
    if who is not None and not isinstance(who, str):
        raise ValueError(f"who must be a name or None, got {who!r:.200}")
    return _text_of("who", who) if who else None


def remark(text: Any) -> str:
    """What somebody writes into the history.

    Raises:
        ValueError: for what is no text, or blank.
    """
    found = _text_of("a remark", text).strip()
    if not found:
        raise ValueError(f"a remark must say something, got {text!r:.200}")
    return found


def _text_of(what: str, text: Any) -> str:
    """Text that every database can hold.

    Raises:
        ValueError: for what is no text, for half a character (a surrogate), and for the character 0.
    """
    if not isinstance(text, str) or "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(
            f"{what} must be text without the character 0 and without halves of characters, got {text!r:.200}"
        )
    return text
