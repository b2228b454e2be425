"""The store of a session: its facts, its events, and states that it has passed through, in an SQL database.

A table `session` of one row holds the facts. The table `event` is appended to and never changed. The table `snapshot`
holds states, so that opening a session need not go through all events; it can be deleted at any time.

Whoever writes first locks the row of the facts, by counting its writes. So writers come one after another, in SQLite
as in any other database, and the numbers of events are in the order in which they became visible.

The numbers may have gaps: PostgreSQL gives those of a transaction that was rolled back to nobody else. So the row of
the facts counts the events. Versions that do not count them may write into the same store, and leave `counted` behind
`writes`; nothing is concluded from the count then, and the next writer that counts counts anew. Stores of such versions
have neither column.
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
# What the columns of an event hold; SQLite lets anything be written into any of them.
TYPES: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "at": (str, datetime),
    "arm": (int, type(None)),
    "value": (int, float, type(None)),
    "vector": (str, type(None)),
    "about": (int, type(None)),
    "who": (str, type(None)),
    "text": (str, type(None)),
}


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
        ImportError: without SQLAlchemy. ValueError: for what is neither. FileNotFoundError: as said.
        IsADirectoryError: where the path is a folder.
    """

    def __init__(self, address: str | Path, must_exist: bool = False) -> None:
        self.sql: Any = require("sqlalchemy", "a session", "session")
        if not isinstance(address, (str, Path)) or "\0" in str(address):
            raise ValueError(f"a session is kept at a path or an address of a database, got {address!r:.200}")
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
            self.sql.event.listen(self.engine, "connect", _connected)
        self._tables()
        self._counts = False  # whether the store counts its events

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
            sql.Column("events", number),  # how many there are
            sql.Column("counted", number),  # `writes` when they were counted
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
        if self._file is not None and not self._file.exists():  # looking would create it
            return None
        try:
            if not self.sql.inspect(self.engine).has_table("session"):
                return None
            with self.engine.connect() as connection:
                rows = connection.execute(self.sql.select(self.session.c.facts).limit(2)).all()
        except self.sql.exc.DatabaseError as error:
            raise ValueError(f"{self.address} holds no session: {error.orig or error}") from error
        if not rows:
            return None
        if len(rows) > 1:
            raise ValueError(f"{self.address} is damaged: it holds the facts of several sessions")
        (row,) = rows
        self._look_for_a_count()
        try:
            found = json.loads(row[0] if isinstance(row[0], str) else row[0].decode())
        except (ValueError, AttributeError) as error:
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
        self._look_for_a_count()
        return True

    def _look_for_a_count(self) -> None:
        """Whether the store counts its events; what begins a session without a count, leaves it to its first writer."""
        columns = {column["name"] for column in self.sql.inspect(self.engine).get_columns("session")}
        self._counts = {"events", "counted"} <= columns

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction in which nobody else writes."""
        with self._used(), self.engine.begin() as connection:
            row = self.session.c
            values = {"writes": row.writes + 1}
            if self._counts:
                values["counted"] = self.sql.case((row.counted == row.writes, row.writes + 1), else_=row.counted)
            connection.execute(self.session.update().values(values))
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
        if self._counts:
            row = self.session.c
            events = self.sql.case((row.counted == row.writes, row.events + len(rows)), else_=self._number_of_events())
            connection.execute(self.session.update().values(events=events, counted=row.writes))
        return self.events(connection, last)

    def events(self, connection: Connection, after: int = 0, kinds: Sequence[str] | None = None) -> list[Event]:
        """The events with larger numbers than `after`, in order; of some kinds only."""
        row = self.event.c
        query = self._rows().where(row.number > after).order_by(row.number)
        if kinds is not None:
            query = query.where(row.kind.in_(kinds))
        return [self._event(dict(found)) for found in connection.execute(query).mappings()]

    def _rows(self) -> Any:
        """The query of all events, with times as the database has them: `_event` reads them, and can name the event."""
        sql, columns = self.sql, dict(self.event.c.items())
        columns["at"] = sql.type_coerce(columns["at"], sql.String).label("at")
        return sql.select(*columns.values())

    def _event(self, row: Mapping[str, Any]) -> Event:
        """A row as an event.

        Raises:
            ValueError: naming the event and what is wrong with it.
        """
        try:
            return _event(row)
        except (ValueError, TypeError, RecursionError) as error:
            told = f"its event {row['number']} ({row['kind']!r:.40}) cannot be read: {error}"
            raise ValueError(f"{self.address} is damaged: {told}") from error

    def refuse_damaged(self, connection: Connection, after: int = 0) -> None:
        """Refuse events that refer to none, or to one of another kind or arm; and a store that lacks some.

        Args:
            connection: to the store.
            after: only events with larger numbers; their count is that of all, and is compared where this is 0.

        Raises:
            ValueError: naming the event.
        """
        sql, one, other = self.sql, self.event.c, (table := self.event.alias()).c
        undone = sql.or_(one.about.is_(None), other.kind.not_in((ASKED, TOLD, WITHDRAWN)), other.arm != one.arm)
        wrong = sql.or_(
            sql.and_(one.about.is_not(None), other.number.is_(None)),
            other.number >= one.number,
            sql.and_(one.kind == TOLD, sql.or_(other.kind != ASKED, other.arm != one.arm)),
            sql.and_(one.kind == UNDONE, undone),
        )
        query = sql.select(one.number, one.kind, one.about, other.kind, other.arm).limit(1).order_by(one.number)
        query = query.select_from(self.event.outerjoin(table, one.about == other.number)).where(
            wrong, one.number > after
        )
        if (found := connection.execute(query).first()) is not None:
            number, kind, about, *known = found
            told = "which there is not" if known[0] is None else "which is {!r:.40} of the arm {}".format(*known)
            told = f"its event {number} ({kind!r:.40}) refers to the event {about!r:.40}, {told}"
            raise ValueError(f"{self.address} is damaged: {told}")
        if after or not self._counts:
            return
        row = self.session.c  # all in one query: others may write meanwhile
        there, events, holds = connection.execute(
            sql.select(self._number_of_events(), row.events, row.counted == row.writes)
        ).one()
        if holds and there != events:
            numbers = set(connection.execute(sql.select(one.number)).scalars())
            missing = next(number for number in range(1, len(numbers) + 2) if number not in numbers)
            told = f"there is no event {missing}" if there < events else "others have been put among them"
            raise ValueError(f"{self.address} is damaged: it has {there} events, and {events} were recorded: {told}")

    def _number_of_events(self) -> Any:
        """The query of how many events there are."""
        sql, number = self.sql, self.event.c.number
        return sql.select(sql.func.count()).where(number > 0).select_from(self.event).scalar_subquery()

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
        found = connection.execute(self._rows().where(self.event.c.number == number)).mappings().first()
        return None if found is None else self._event(dict(found))

    def last(self, connection: Connection) -> int:
        """The number of the last event, 0 if there is none."""
        return int(connection.execute(self.sql.select(self.sql.func.max(self.event.c.number))).scalar() or 0)

    def snapshots(self, connection: Connection) -> Iterator[tuple[int, bytes]]:
        """The states that are kept, the latest first: after which event each was, and what it was."""
        upto = self.snapshot.c.upto
        for number in connection.execute(self.sql.select(upto).order_by(upto.desc())).scalars().all():
            data = connection.execute(self.sql.select(self.snapshot.c.data).where(upto == number)).scalar()
            if isinstance(data, bytes):
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

    def exists(self) -> bool:
        """Whether there is one, or anything else in its place."""
        return os.path.lexists(self._path)

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


def _connected(connection: Any, record: Any) -> None:
    """Let SQLite write ahead, so that a commit waits for the disk once; on network drives it goes on without."""
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
    """A row as an event.

    Raises:
        ValueError, TypeError: for what is of another type than its column.
    """
    for name, kinds in TYPES.items():
        if not isinstance(row[name], kinds):
            raise ValueError(f"its {name!r} is {row[name]!r:.80}")
    value, vector, at = row["value"], row["vector"], row["at"]
    if vector is not None:
        if value is not None or not isinstance(found := json.loads(vector), list):
            raise ValueError(f"its 'vector' is {vector!r:.80}, and its 'value' {value!r:.80}")
        value = tuple(found)
    if isinstance(value, float) and math.isnan(value):
        value = None
    at = datetime.fromisoformat(at) if isinstance(at, str) else at
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return Event(row["number"], row["kind"], row["arm"], value, row["about"], row["who"], row["text"], at)
