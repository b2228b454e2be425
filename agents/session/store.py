"""The store of a session: its facts, its events, and states that it has passed through, in an SQL database.

A table `session` of one row holds the facts. The table `event` is appended to and never changed. The table `snapshot`
holds states, so that opening a session need not go through all events; it can be deleted at any time.

Whoever writes first locks the row of the facts, by counting its writes. So writers come one after another, in SQLite
as in any other database, and the numbers of events are in the order in which they became visible.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bandit_envs import integer

from ..core.optional import require

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["ADDED", "ASKED", "NOTE", "TOLD", "UNDONE", "WITHDRAWN", "Event", "Store", "event_number"]

ASKED, TOLD, UNDONE, ADDED, WITHDRAWN, NOTE = "asked", "told", "undone", "arm added", "arm withdrawn", "note"
PATIENCE = 60  # seconds that a writer waits for others, in SQLite
KEPT = 3  # snapshots
LARGEST = 2**63 - 1  # integer that a column holds


class Event(NamedTuple):
    """A row of the table of events.

    Attributes:
        number: of the event, in order. kind: one of `ASKED`, `TOLD` and so on.
        arm: which it is about. value: what was measured, a number, or a tuple of those of several dimensions.
        about: the event that this one answers or undoes. who: who has asked or told. text: of a note, a new arm's name.
        at: when, in UTC.
    """

    number: int
    kind: str
    arm: int | None = None
    value: Any = None
    about: int | None = None
    who: str | None = None
    text: str | None = None
    at: datetime | None = None

    def undoing(self) -> Event:
        """The event that undoes this one."""
        return Event(0, UNDONE, self.arm, about=self.number)


class Store:
    """A database.

    Args:
        address: of SQLAlchemy, "postgresql+psycopg://...", or the path of a file for SQLite.
        must_exist: refuse a path where there is no file.

    Raises:
        ImportError: without SQLAlchemy. FileNotFoundError: as said. IsADirectoryError: where the path is a folder.
    """

    def __init__(self, address: str | Path, must_exist: bool = False) -> None:
        self.sql: Any = require("sqlalchemy", "a session", "session")
        text = str(address)
        if "://" in text:
            url, given = self.sql.make_url(text), {}
        else:
            path = Path(text)
            if path.is_dir():
                raise IsADirectoryError(f"a session is kept in a file: {text} is a folder")
            if must_exist and not path.is_file():
                raise FileNotFoundError(f"there is no session {text}: bandit-envs session new, or agents.Session(...)")
            if not path.absolute().parent.is_dir():
                raise FileNotFoundError(f"there is no folder {path.absolute().parent} for the session {path.name}")
            url, given = self.sql.URL.create("sqlite", database=text), {"connect_args": {"timeout": PATIENCE}}
        self.address, self._file = text, None if "://" in text else _File(Path(text))
        self.engine = self.sql.create_engine(url, **given)
        if url.get_backend_name() == "sqlite":
            self.sql.event.listen(self.engine, "connect", _write_ahead)
        self._tables()

    def _tables(self) -> None:
        """Describe the tables."""
        sql = self.sql
        self.tables = data = sql.MetaData()
        number, when = sql.BigInteger().with_variant(sql.Integer, "sqlite"), sql.DateTime(timezone=True)
        exact = sql.Float(53)
        self.session = sql.Table(
            "session",
            data,
            sql.Column("id", sql.Integer, primary_key=True, autoincrement=False),
            sql.Column("writes", number, nullable=False),
            sql.Column("facts", sql.Text, nullable=False),  # JSON
        )
        self.event = sql.Table(
            "event",
            data,
            sql.Column("number", number, primary_key=True),
            sql.Column("at", when, nullable=False),
            sql.Column("kind", sql.String(20), nullable=False),
            sql.Column("arm", number),
            sql.Column("value", exact),
            sql.Column("vector", sql.Text),  # JSON, of arms of several dimensions
            sql.Column("about", number),
            sql.Column("who", sql.Text),
            sql.Column("text", sql.Text),
            sqlite_autoincrement=True,  # numbers are never given twice
        )
        self.snapshot = sql.Table(
            "snapshot",
            data,
            sql.Column("upto", number, primary_key=True, autoincrement=False),
            sql.Column("data", sql.LargeBinary, nullable=False),
        )

    def close(self) -> None:
        """Give back what the database has lent."""
        self.engine.dispose()

    def facts(self) -> dict[str, Any] | None:
        """The facts of the session; None if there is none yet.

        Raises:
            ValueError: where the file, or the database, is something else.
        """
        try:
            if not self.sql.inspect(self.engine).has_table("session"):
                return None
            with self.engine.connect() as connection:
                row = connection.execute(self.sql.select(self.session.c.facts)).first()
        except self.sql.exc.DatabaseError as error:
            raise ValueError(f"{self.address} holds no session: {error.orig or error}") from error
        if row is None:
            return None
        try:
            found = json.loads(row[0])
        except ValueError as error:
            raise ValueError(f"{self.address} is damaged: its facts are no JSON ({error})") from None
        if lost := [name for name in self.tables.tables if not self.sql.inspect(self.engine).has_table(name)]:
            raise ValueError(f"{self.address} is damaged: it has no table {lost[0]!r}")
        if not isinstance(found, dict) or "task" not in found:
            raise ValueError(f"{self.address} holds no session of bandit-envs")
        return found

    def create(self, facts: Mapping[str, Any]) -> bool:
        """Begin a session; False if somebody else has begun one meanwhile.

        Raises:
            ValueError: where the facts have no JSON form, or the file is no database.
        """
        text, exc = json.dumps(facts), self.sql.exc
        create = self.sql.schema.CreateTable
        for attempt in range(2):
            try:
                with self.engine.begin() as connection:
                    for table in self.tables.sorted_tables:
                        connection.execute(create(table, if_not_exists=True))
                break
            except exc.DatabaseError as error:
                if attempt or not isinstance(error, (exc.IntegrityError, exc.ProgrammingError)):
                    raise ValueError(f"{self.address} cannot hold a session: {error.orig or error}") from error
        try:
            with self.engine.begin() as connection:
                connection.execute(self.session.insert().values(id=1, writes=0, facts=text))
        except exc.IntegrityError:
            return False
        return True

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction in which nobody else writes."""
        with self._used(), self.engine.begin() as connection:
            connection.execute(self.session.update().values(writes=self.session.c.writes + 1))
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read from."""
        with self._used(), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def _used(self) -> Iterator[None]:
        """While the database is used, its errors are told in a sentence.

        Raises:
            ValueError: naming the store and what it says. FileNotFoundError: where the file is no longer there.
        """
        if self._file is not None:
            self._file.check()
        try:
            yield
        except self.sql.exc.DBAPIError as error:
            raise ValueError(f"{self.address} cannot be read or written: {error.orig or error}") from error

    def append(self, connection: Connection, events: Sequence[Event]) -> list[Event]:
        """Add events, which get numbers and a time."""
        if not events:
            return []
        rows, now, last = [], datetime.now(UTC), self.last(connection)
        for event in events:
            vector = event.value if isinstance(event.value, tuple) else None
            row = event._replace(value=None if vector is not None else event.value, at=now)._asdict()
            del row["number"]
            rows.append({**row, "vector": None if vector is None else json.dumps(vector)})
        connection.execute(self.event.insert(), rows)
        return self.events(connection, last)

    def events(self, connection: Connection, after: int = 0, kinds: Sequence[str] | None = None) -> list[Event]:
        """The events with larger numbers than `after`, in order; of some kinds only."""
        row = self.event.c
        query = self.sql.select(self.event).where(row.number > after).order_by(row.number)
        if kinds is not None:
            query = query.where(row.kind.in_(kinds))
        try:
            return [_event(dict(found)) for found in connection.execute(query).mappings()]
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.address} is damaged: an event cannot be read ({error})") from error

    def undone(self, connection: Connection) -> set[int]:
        """The numbers of the events that were undone."""
        row = self.event.c
        return set(connection.execute(self.sql.select(row.about).where(row.kind == UNDONE)).scalars())

    def last_told(self, connection: Connection) -> int | None:
        """The number of the last result that has not been undone."""
        row = self.event.c
        undone = self.sql.select(row.about).where(row.kind == UNDONE, row.about.is_not(None))
        query = self.sql.select(self.sql.func.max(row.number)).where(row.kind == TOLD, row.number.not_in(undone))
        number = connection.execute(query).scalar()
        return None if number is None else int(number)

    def one(self, connection: Connection, number: int) -> Event | None:
        """The event of this number."""
        found = connection.execute(self.sql.select(self.event).where(self.event.c.number == number)).mappings().first()
        return None if found is None else _event(dict(found))

    def last(self, connection: Connection) -> int:
        """The number of the last event, 0 if there is none."""
        return int(connection.execute(self.sql.select(self.sql.func.max(self.event.c.number))).scalar() or 0)

    def snapshots(self, connection: Connection) -> Iterator[tuple[int, bytes]]:
        """The states that are kept, the latest first: after which event each was, and what it was."""
        upto = self.snapshot.c.upto
        for number in connection.execute(self.sql.select(upto).order_by(upto.desc())).scalars().all():
            data = connection.execute(self.sql.select(self.snapshot.c.data).where(upto == number)).scalar()
            if data is not None:
                yield int(number), bytes(data)

    def keep(self, upto: int, data: bytes) -> None:
        """Keep a state, and drop old ones."""
        column = self.snapshot.c.upto
        with self.writing() as connection:
            known = connection.execute(self.sql.select(column).order_by(column.desc())).scalars().all()
            if upto in known:
                return
            connection.execute(self.snapshot.insert().values(upto=upto, data=data))
            if len(known) >= KEPT:
                connection.execute(self.snapshot.delete().where(column <= known[KEPT - 1]))


class _File:
    """A file that is written as long as it has its place.

    One that is deleted, or replaced by another, while it is open would take what is told, and nobody would find it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: os.stat_result | None = None

    def check(self) -> None:
        """Refuse to go on where another file is in its place, or none.

        Raises:
            FileNotFoundError: as said.
        """
        try:
            found = self._path.stat()
        except FileNotFoundError:
            raise FileNotFoundError(
                f"the session {self._path} has been deleted or moved: nothing was recorded"
            ) from None
        self._known = self._known or found
        if not os.path.samestat(found, self._known):
            raise FileNotFoundError(f"another file has taken the place of the session {self._path}: open it anew")


def event_number(name: str, value: Any, low: int = 1) -> int:
    """The number of an event, or how many events, as a column of a database can hold it.

    Raises:
        ValueError: naming the value and the range.
    """
    return integer(name, value, low, LARGEST)


def _write_ahead(connection: Any, record: Any) -> None:
    """Let SQLite write ahead, so that a commit waits for the disk once; on network drives it goes on without."""
    with contextlib.suppress(sqlite3.OperationalError):  # a file that may only be read
        connection.execute("PRAGMA journal_mode=WAL").close()
    connection.execute("PRAGMA synchronous=FULL").close()


def _event(row: Mapping[str, Any]) -> Event:
    """A row as an event."""
    value = row["value"] if row["vector"] is None else tuple(json.loads(row["vector"]))
    if isinstance(value, float) and math.isnan(value):
        value = None
    at = row["at"]
    at = at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)
    return Event(row["number"], row["kind"], row["arm"], value, row["about"], row["who"], row["text"], at)
