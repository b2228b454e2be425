"""What goes wrong with disks, files and stores of sessions; and a store without a disk."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest


@contextlib.contextmanager
def full_disk(left: int) -> Iterator[None]:
    """A disk on which no file grows beyond so many bytes: a write that would raises OSError, as on a full one."""
    resource = pytest.importorskip("resource", reason="limits on files are those of Unix")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Killed(BaseException):
    """Stands for a kill: no code may come after it."""


def interrupted(call: Callable[[], None], moment: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a call is over before a kill at its step number `moment` on the disk; nothing is done after the kill."""
    steps = 0

    def step(function: Any) -> Any:
        def taken(*arguments: Any, **keywords: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps >= moment:
                raise Killed
            return function(*arguments, **keywords)

        return taken

    with monkeypatch.context() as patch:
        for owner, name in ((os, "replace"), (os, "fsync"), (Path, "write_text"), (Path, "unlink")):
            patch.setattr(owner, name, step(getattr(owner, name)))
        try:
            call()
        except Killed:
            return False
    return True


def sql(place: Path, *statements: str) -> Path:
    """The store in this file of SQLite, after these statements."""
    with contextlib.closing(sqlite3.connect(place)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return place


@contextlib.contextmanager
def rewritten(place: Path) -> Iterator[dict[str, Any]]:
    """The facts of a store, to be changed."""
    with contextlib.closing(sqlite3.connect(place)) as connection:
        (text,) = connection.execute("select facts from session").fetchone()
        facts = json.loads(text)
        yield facts
        connection.execute("update session set facts = ?", (json.dumps(facts),))
        connection.commit()


class Listed:
    """A store in a list, for many sessions: a database takes most of the time of one."""

    def __init__(self, address: Any) -> None:
        self.address, self._facts, self._events, self._mark = str(address), None, list[Any](), (0, 0)

    def facts(self) -> Any:
        return self._facts

    def create(self, facts: Any) -> bool:
        self._facts = facts
        return True

    @contextlib.contextmanager
    def reading(self) -> Any:
        yield None

    writing = reading

    def append(self, _: Any, events: Any, after: int) -> list[Any]:
        now, numbers = datetime.now(UTC), dict[int, int]()
        for number, event in enumerate(events, after + 1):
            numbers |= {event.number: number} if event.number < 0 else {}  # of an import, whose events refer to these
            about = numbers.get(event.about, event.about)
            self._events.append(event._replace(number=number, at=event.at or now, about=about))
        return self._events[after:]

    def events(self, _: Any, after: int = 0) -> list[Any]:
        return self._events[after:]

    def marked(self, _: Any, mark: Any = None) -> Any:
        self._mark = mark or self._mark
        return self._mark

    def refuse_gaps(self, _: Any) -> None:
        pass

    def close(self) -> None:
        pass
