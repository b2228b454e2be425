"""The log of a session: its facts, and its events in order, in an SQL database.

A table `session` of one row holds the facts. The table `event` is appended to and never changed.

A writer first locks the row of the facts, by counting its writes. So writers come one after another, in any database,
and the numbers of events are in the order in which they became visible. They may have gaps: PostgreSQL does not use the
numbers of a cancelled transaction again. So the row of the facts counts the events.
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

from bandit_envs.kernels import json_of

from ..core.optional import require

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

ASKED, TOLD, UNDONE, ADDED, WITHDRAWN, NOTE = "asked", "told", "undone", "arm added", "arm withdrawn", "note"
FAILED = "failed"  # a measurement, with the number that it counts as, or without one
COUNTED = "counted"  # a count of several measurements, without a question
RESULTS = (TOLD, FAILED, COUNTED)
PATIENCE = 60  # seconds that a writer waits for others, in SQLite
LARGEST = 2**63 - 1  # integer that a column holds
# What the columns of an event hold; SQLite lets anything be written into any of them.
TYPES: dict[str, Any] = {"kind": str, "at": str | datetime, "arm": int | None, "value": int | float | None}
TYPES |= {"about": int | None, **dict.fromkeys(("vector", "who", "text"), str | None)}


class Event(NamedTuple):
    """A row of the table of events."""

    number: int  # in order
    kind: str  # `ASKED`, `TOLD` and so on
    arm: int | None = None
    value: Any = None  # what was measured: a number, or a tuple: of each dimension, with the row of a table, a `Count`
    about: int | None = None  # the event that this one answers or undoes
    who: str | None = None  # has asked or told
    text: str | None = None  # of a note, or a new arm's name
    at: datetime | None = None  # in UTC

    @property
    def size(self) -> int:
        """How many measurements it is."""
        return int(self.value[0]) if self.kind == COUNTED else 1

    @property
    def stratum(self) -> str | None:
        """The name of the day or plate that stands behind a result; None where none does."""
        return self.value[-1] if isinstance(self.value, tuple) and isinstance(self.value[-1], str) else None

    @property
    def result(self) -> Any:
        """The value without that."""
        if self.stratum is None:
            return self.value
        return self.value[:-1] if self.kind == COUNTED else self.value[0]


class Log:
    """A database.

    `address` is of SQLAlchemy, "postgresql+psycopg://...", or the path of a file for SQLite; ":memory:" keeps nothing.

    Raises:
        ImportError: without SQLAlchemy. ValueError: for what is neither. FileNotFoundError: without a folder for it.
        IsADirectoryError: where the path is a folder.
    """

    def __init__(self, address: str | Path) -> None:
        self.sql = require("sqlalchemy", "a session", "session")
        if not isinstance(address, (str, Path)) or not str(address) or "\0" in str(address):
            raise ValueError(f"store must be a path or an address of a database, got {address!r:.200}")
        self.address = text = str(address)
        fleeting = text in (":memory:", "sqlite://", "sqlite:///:memory:")  # gone with this object
        self._path = None if "://" in text or fleeting else Path(text)
        self._file: os.stat_result | None = None  # which file has been used
        if fleeting:  # one connection for all threads: another one would see a database of its own
            url, threads = self._url("sqlite://"), {"check_same_thread": False}
            given: dict[str, object] = {"poolclass": self.sql.pool.StaticPool, "connect_args": threads}
        elif self._path is None:
            url, given = self._url(text), {}
        else:
            if self._path.is_dir():
                raise IsADirectoryError(f"a session is kept in a file: {text} is a folder")
            if not (folder := self._path.absolute().parent).is_dir():
                raise FileNotFoundError(f"there is no folder {folder} for the session {self._path.name}")
            url, given = self.sql.URL.create("sqlite", database=text), {"connect_args": {"timeout": PATIENCE}}
        self._marks = False  # whether the store has this table
        self._describe_tables()
        tables = {"session": {"facts", "events"}, "event": {*self.event.c.keys()}, "mark": {"since", "sum"}}
        self.engine = self.sql.create_engine(url, **given)
        if url.get_backend_name() == "sqlite":
            self.sql.event.listen(self.engine, "connect", lambda one, _: _connected(one, text, tables))

    def _url(self, text: str) -> Any:
        try:
            url = self.sql.make_url(text)
            url.get_dialect()
        except (self.sql.exc.ArgumentError, self.sql.exc.NoSuchModuleError) as error:
            some = "a path or an address of a database, as postgresql+psycopg://user@host/name"
            raise ValueError(f"store must be {some}, got {text!r:.200}: {error}") from error
        return url

    def _describe_tables(self) -> None:
        sql = self.sql
        self.tables = data = sql.MetaData()
        number, when = sql.BigInteger().with_variant(sql.Integer, "sqlite"), sql.DateTime(timezone=True)
        self.session = sql.Table(
            "session",
            data,
            sql.Column("id", sql.Integer, primary_key=True, autoincrement=False),
            sql.Column("writes", number, nullable=False),
            sql.Column("facts", sql.Text, nullable=False),  # JSON
            sql.Column("events", number),  # how many there are, None before the first
        )
        self.event = sql.Table(
            "event",
            data,
            sql.Column("number", number, primary_key=True),
            sql.Column("at", when, nullable=False),
            sql.Column("kind", sql.String(20), nullable=False),
            sql.Column("arm", number),
            sql.Column("value", sql.Float(53)),  # of arms of one dimension
            sql.Column("vector", sql.Text),  # JSON, of arms of several dimensions
            sql.Column("about", number),
            sql.Column("who", sql.Text),
            sql.Column("text", sql.Text),
            sqlite_autoincrement=True,  # numbers are never given twice
        )
        self.mark = sql.Table("mark", data, sql.Column("since", number), sql.Column("sum", number))  # see `State.mark`
        columns = dict(self.event.c.items())  # with times as the database has them: `_event` reads them, and names it
        columns["at"] = sql.type_coerce(columns["at"], sql.String).label("at")
        self._rows = sql.select(*columns.values()).order_by(self.event.c.number)

    def close(self) -> None:
        """Give back the connections."""
        self.engine.dispose()

    def facts(self) -> dict[str, Any] | None:
        """The facts of the session; None if there is none yet."""
        if self._path is not None and not self._path.exists():  # looking would create it
            return None
        try:
            if not self.sql.inspect(self.engine).has_table("session"):
                return None
            with self.engine.connect() as connection:
                rows = connection.execute(self.sql.select(self.session.c.facts).limit(2)).scalars().all()
        except self.sql.exc.DatabaseError as error:
            raise ValueError(f"{self.address} holds no session: {error.orig or error}") from error
        if not rows:
            return None
        if len(rows) > 1:
            raise ValueError(f"{self.address} is damaged: it holds the facts of several sessions")
        try:
            found = json_of(rows[0] if isinstance(rows[0], str) else rows[0].decode())
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{self.address} is damaged: its facts are no JSON ({error})") from None
        if lost := [name for name in ("session", "event") if not self.sql.inspect(self.engine).has_table(name)]:
            raise ValueError(f"{self.address} is damaged: it has no table {lost[0]!r}")
        if not isinstance(found, dict) or "task" not in found:
            raise ValueError(f"{self.address} holds no session of bandit-envs")
        return found

    def create(self, facts: Mapping[str, Any]) -> bool:
        """Begin a session; False if another process has begun one meanwhile."""
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
        """A transaction in which no other process writes."""
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
        """Turn errors of the database into a ValueError; refuse a file that was deleted or replaced meanwhile."""
        if self._path is not None:
            try:
                found = self._path.stat()
            except FileNotFoundError:
                text = f"the session {self._path} has been deleted or moved: nothing was recorded"
                raise FileNotFoundError(text) from None
            self._file = self._file or found
            if not os.path.samestat(found, self._file):
                raise FileNotFoundError(f"another file has taken the place of the session {self._path}: open it again")
        try:
            yield
        except self.sql.exc.DBAPIError as error:
            raise ValueError(f"{self.address} cannot be read or written: {error.orig or error}") from error

    def append(self, connection: Connection, events: Sequence[Event], after: int) -> list[Event]:
        """Add events, after the event `after`, and return them with their numbers, and the time where they have none.

        Those of an import have negative numbers, by which later ones refer to them.
        """
        if not events:
            return []
        rows, now, numbers = [], datetime.now(UTC), dict[int | None, int]()
        for event in events:
            row = event._replace(at=event.at or now, about=numbers.get(event.about, event.about))._asdict()
            is_vector = isinstance(event.value, tuple)
            row |= {"value": None, "vector": json.dumps(event.value)} if is_vector else {"vector": None}
            if (number := row.pop("number")) < 0:
                numbers[number] = connection.execute(self.event.insert(), row).inserted_primary_key[0]  # type: ignore[index]
            rows.append(row)
        if not numbers:
            connection.execute(self.event.insert(), rows)
        before = self.sql.func.coalesce(self.session.c.events, 0)
        connection.execute(self.session.update().values(events=before + len(rows)))
        return self.events(connection, after)

    def events(self, connection: Connection, after: int = 0) -> list[Event]:
        """The events with larger numbers than `after`, in order."""
        found = []
        for row in connection.execute(self._rows.where(self.event.c.number > after)).mappings():
            try:
                found.append(_event(dict(row)))
            except (ValueError, TypeError) as error:
                text = f"its event {row['number']} ({row['kind']!r:.40}) cannot be read: {error}"
                raise ValueError(f"{self.address} is damaged: {text}") from error
        return found

    def marked(self, connection: Connection, mark: tuple[int, int] | None = None) -> tuple[Any, Any]:
        """The mark that was written with the last event, or a new one; (0, 0) where there is no place for one."""
        self._marks = self._marks or self.sql.inspect(connection).has_table("mark")
        if not self._marks:  # it is of an earlier version
            if mark is None or self.engine.dialect.name != "sqlite":
                return 0, 0
            self.mark.create(connection)
        if mark is not None:
            connection.execute(self.mark.delete())
            connection.execute(self.mark.insert().values(since=mark[0], sum=mark[1]))
        return mark or next((tuple(row) for row in connection.execute(self.sql.select(self.mark))), (0, 0))

    def refuse_gaps(self, connection: Connection) -> None:
        """Refuse a store that lacks events which were recorded, or has others."""
        number, many = self.event.c.number, self.sql.func
        recorded = self.sql.select(many.coalesce(self.session.c.events, 0)).scalar_subquery()
        found = self.sql.select(many.count(), many.max(number), recorded).where(number > 0)
        there, last, events = connection.execute(found).one()  # in one query: others may write meanwhile
        renumbered = self.engine.dialect.name == "sqlite" and last not in (None, there)  # which leaves no gaps
        if there != events or renumbered:
            numbers = set(connection.execute(self.sql.select(self.event.c.number)).scalars())
            missing = next(number for number in range(1, len(numbers) + 2) if number not in numbers)
            reason = f"there is no event {missing}" if there <= events else "others have been put among them"
            raise ValueError(f"{self.address} is damaged: it has {there} events, and {events} were recorded: {reason}")


def _connected(connection: Any, address: str, tables: Mapping[str, set[str]]) -> None:
    """Refuse a file of SQLite that is no session's, or runs something when it is read.

    Then let it write ahead, so that a commit waits for the disk once; on network drives it goes on without.
    """
    rows = connection.execute("SELECT type, name, rootpage FROM sqlite_master").fetchall()
    there = [name for kind, name, _ in rows if kind == "table" and not name.startswith("sqlite_")]
    odd = [f"the {kind} {name!r:.80}" for kind, name, page in rows if not page]  # views, triggers, virtual tables
    if "session" not in there:
        odd += [f"the table {name!r:.80}" for name in there if name not in tables]
    for name in tables.keys() & {*there} if not odd else ():
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
        odd += [f"a table {name!r} without {column!r}" for column in sorted(tables[name] - columns)]
    if odd:
        connection.close()
        raise ValueError(f"{address} is no session's store: it has {odd[0]}")
    connection.text_factory = _text
    with contextlib.suppress(sqlite3.OperationalError):  # a file that may only be read
        connection.execute("PRAGMA journal_mode=WAL").close()
    connection.execute("PRAGMA synchronous=FULL").close()


def _text(data: bytes) -> str | bytes:
    """Text of SQLite; the bytes as they are where they are none, so that the event can be named."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _event(row: Mapping[str, Any]) -> Event:
    """A row as an event; ValueError or TypeError for what is of another type than its column."""
    for name, kinds in TYPES.items():
        if not isinstance(row[name], kinds):
            raise ValueError(f"its {name!r} is {row[name]!r:.80}")
    value, vector, at = row["value"], row["vector"], row["at"]
    if vector is not None:
        if value is not None or not isinstance(found := json_of(vector), list):
            raise ValueError(f"its 'vector' is {vector!r:.80}, and its 'value' {value!r:.80}")
        value = tuple(found)
    if isinstance(value, float) and math.isnan(value):
        value = None
    at = datetime.fromisoformat(at) if isinstance(at, str) else at
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return Event(row["number"], row["kind"], row["arm"], value, row["about"], row["who"], row["text"], at)
