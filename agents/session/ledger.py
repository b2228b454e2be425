"""The store of a session and its book, in step: other processes may write into the same store at any time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from .book import Book
from .setup import Setup
from .store import UNDONE, Event, Store

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["Ledger"]

STEPS = 256  # results between two states that are kept


class Ledger:
    """What has happened, and what it adds up to; threads may share one.

    Args:
        store: of the events. setup: the facts.
    """

    def __init__(self, store: Store, setup: Setup) -> None:
        self.store, self.setup = store, setup
        self._lock, self._kept = threading.RLock(), 0
        self.book = self.opened()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Book]:
        """The book as of now; within this, no other thread changes it."""
        with self._lock:
            with self.store.reading() as connection:
                self._catch_up(connection)
            yield self.book

    def append(self, events: Callable[[Book, Connection], Sequence[Event]]) -> list[Event]:
        """Add events to the book and to the store; nobody else writes meanwhile.

        What the book does not take is not recorded: a session that has been written can be read.

        Args:
            events: makes them, by the book as of now and a connection to the store. Where it raises, nothing is added.

        Returns:
            The events as they were added, with their numbers.
        """
        added = list[Event]()
        with self._lock:
            try:
                with self.store.writing() as connection:
                    self._catch_up(connection)
                    added = self.store.append(connection, events(self.book, connection))
                    self._apply(connection, added)
            except BaseException:
                if added:  # the book has taken what the store has not
                    self.book = self.opened()
                raise
            self._keep()
        return added

    def opened(self) -> Book:
        """The book as the store has it."""
        with self.store.reading() as connection:
            return self._read(connection)

    def _read(self, connection: Connection) -> Book:
        """The book, from the latest state that was kept and still holds."""
        self.store.refuse_damaged(connection)
        while True:
            undoings = self.store.events(connection, kinds=[UNDONE])
            undone, book = {int(event.about or 0) for event in undoings}, None
            for upto, data in self.store.snapshots(connection):
                if all(event.number <= upto or int(event.about or 0) > upto for event in undoings):
                    book = Book.restored(self.setup, undone, data)
                    if book is not None:
                        self._kept = book.count
                        break
            if book is None:
                book, self._kept = Book(self.setup, undone), 0
            if book.apply_all(self.store.events(connection, book.upto)):
                return book
            # Others have undone something since the first query.

    def _catch_up(self, connection: Connection) -> None:
        """Take in what others have done."""
        if events := self.store.events(connection, self.book.upto):
            self.store.refuse_damaged(connection, self.book.upto)
            self._apply(connection, events)

    def _apply(self, connection: Connection, events: Sequence[Event]) -> None:
        """Take in events; the book is made anew where they undo what it has."""
        if not self.book.apply_all(events):
            self.book = self._read(connection)

    def _keep(self) -> None:
        """Keep the state from time to time."""
        if self.book.count >= self._kept + STEPS:
            self._kept = self.book.count
            if (data := self.book.snapshot()) is not None:
                with contextlib.suppress(ValueError):  # the events are in the store, with or without this state
                    self.store.keep(self.book.upto, data)
