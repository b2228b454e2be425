"""`Session`: ask what to measure next, tell what came, at any time the answer."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task, boundary_of, flag, integer, measurements, number

from ..core.optional import pandas
from .book import Book
from .repeated import refuse_repeated
from .setup import Setup, checked_name
from .store import ADDED, ASKED, NOTE, TOLD, UNDONE, WITHDRAWN, Event, Store

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Ask", "Session"]


STEPS = 256  # results between two states that are kept


class Ask(NamedTuple):
    """A question that waits for its result."""

    number: int  # of the event
    arm: int
    who: str | None


class Session:
    """A real experiment: what to measure next, what has been measured, and the answer as of now.

    Everything is kept in a database: opened again, by this or another process, the session goes on where it was.
    Several processes, and threads, may use one at the same time. A measurement is asked for once: a question is in the
    database before it is returned.

    With one question and one result at a time the agent makes the very decisions of a simulated episode. Questions
    that wait for their results count as if these had come, each as its arm's present mean.

    Args:
        agent: as for `agents.make`: a name, "module:Class", a class, an agent, a function of the task. None: that of
            the session in the store.
        task: an environment, a `Task`, or plain facts as a dict: `problem` and its parameters; `arms`, how many or
            their names; `range` of a measurement, `sigma` of its noise, or `binary=True`; `budget`, `delta`, both or
            neither. None: that of the session in the store.
        store: path of a file for SQLite, or another address of SQLAlchemy, as "postgresql+psycopg://user@host/name".
        names: of the arms, where the facts do not tell them; None: their numbers.
        public_seed: from which agents draw at random; None: a fresh one.
        trust: import the modules of an agent "module:Class" or of such a problem that the store names, or load the
            saved model that it names: their makers may run any code.

    Raises:
        ValueError: naming what is wrong, and where the store holds another session than the one that is described.
        FileNotFoundError: if there is no session in the store, and none is described. ImportError: without SQLAlchemy.
    """

    def __init__(
        self,
        agent: Any = None,
        task: Any = None,
        *,
        store: str | Path,
        names: Sequence[str] | None = None,
        public_seed: int | None = None,
        trust: bool = False,
    ) -> None:
        self._store = Store(store, must_exist=task is None)
        facts, new = self._store.facts(), None
        if task is not None:
            if agent is None:
                raise ValueError("a session needs an agent, see agents.names()")
            new = Setup.of(agent, task, names, public_seed, trust)
        if facts is None:
            if new is None:
                raise FileNotFoundError(f"there is no session in {store}: tell the agent and the task of a new one")
            if not self._store.create(new.facts()):
                facts = self._store.facts()  # somebody else was quicker
        if facts is not None and new is not None:
            _same(facts, new.facts(), names is not None, public_seed is not None)
        self._setup = new if facts is None and new is not None else Setup.from_facts(facts or {}, agent, trust)
        self._lock, self._kept = threading.RLock(), 0
        self._book = self._opened()

    # --- the experiment -----------------------------------------------------------------------------------------------

    def ask(self, n: int = 1, who: str | None = None) -> list[int]:
        """The arms to measure next, by number; an arm may be there several times.

        There are fewer than `n` where there is nothing more to ask for now: the session is over, see `done`, or it
        waits for the results of questions that are `pending`.

        Args:
            n: how many measurements.
            who: asks, for the history, and so that results find their questions.
        """
        n, who = integer("n", n, 1, 10**6), _person(who)
        with self._lock:
            with self._store.writing() as connection:
                self._catch_up(connection)
                asked = [Event(0, ASKED, arm, who=who) for arm in self._book.wanted(n)]
                added = self._store.append(connection, asked)
            self._take(added)
        return [int(event.arm or 0) for event in added]

    def tell(self, arm: int | str, value: Any, who: str | None = None) -> None:
        """Record a result: it answers the oldest question about this arm, if any waits.

        Args:
            arm: its number or its name.
            value: what was measured: a number, or as many numbers as an arm has dimensions.
            who: has measured it, for the history.

        Raises:
            ValueError: for an unknown or withdrawn arm, and for what is no number in the support; nothing is recorded.
        """
        self.tell_all([(arm, value)], who)

    def tell_all(self, results: Iterable[tuple[int | str, Any]], who: str | None = None) -> int:
        """Record results, all of them or, where one is wrong, none.

        Args:
            results: pairs of an arm and a value, as for `tell`.
            who: has measured them.

        Returns:
            How many there were.

        Raises:
            ValueError: as `tell`, naming the first row, from 1, where there are several.
        """
        rows = list(results)
        places = [f"row {i}: " if len(rows) > 1 else "" for i in range(1, len(rows) + 1)]
        return self._record([(place, *row) for place, row in zip(places, rows, strict=True)], who)

    def tell_table(
        self,
        table: Any,
        *,
        arm: str | None = None,
        value: str | Sequence[str] | None = None,
        index: str | int | None = None,
        who: str | None = None,
        again: bool = False,
    ) -> int:
        """Record the results in a table, all of them or, where one is wrong, none.

        A table that begins with results which are recorded already, as one that is read a second time, is refused:
        they would count twice. So is one that has grown since, and one that this session has exported.

        Args:
            table, arm, value, index: path of a CSV or Parquet file, or a DataFrame, and its columns: see
                `bandit_envs.measurements`.
            who: has measured them.
            again: record it all the same.

        Returns:
            How many there were.

        Raises:
            ValueError: naming the row and the column. FileNotFoundError: if there is no such file.
        """
        found, one_number = measurements(table, arm=arm, value=value, index=index), self.task.D == 1
        rows = [
            (f"{found.of}, {row.place}: ", row.arm, row.value[0] if one_number and len(row.value) == 1 else row.value)
            for row in found.rows
        ]
        return self._record(rows, who, found.of, flag("again", again))

    def _record(
        self, rows: Sequence[tuple[str, int | str, Any]], who: str | None, table: str | None = None, again: bool = False
    ) -> int:
        """Record results.

        Args:
            rows: triples of their place for errors, an arm and a value.
            who: has measured them.
            table: in which they stand, for the history. again: whether they may have been recorded from there before.
        """
        who, text = _person(who), None if table is None else f"from {Path(table).name}"
        with self._lock:
            with self._store.writing() as connection:
                self._catch_up(connection)
                told, taken = [], set[int]()
                for place, arm, value in rows:
                    try:
                        one, sample = self.arm(arm), self._sample(value)
                    except ValueError as error:
                        raise ValueError(f"{place}{error}") from None
                    about = self._book.ask_answered_by(one, who, taken)
                    if about is not None:
                        taken.add(about)
                    told.append(Event(0, TOLD, one, sample, about, who, text))
                if table is not None and not again:
                    refuse_repeated(table, told, self._store.events(connection, kinds=[TOLD]), self._undone(connection))
                added = self._store.append(connection, told)
            self._take(added)
        return len(added)

    def answer(self) -> NDArray[np.bool_]:
        """The answer as of now, a mask of all arms, (K,); the final one where the session is `done`."""
        with self._lock:
            self._look()
            return self._book.answer()

    @property
    def done(self) -> bool:
        """Whether the agent has stopped, or the budget is spent. Later results are recorded; the answer stays."""
        with self._lock:
            self._look()
            return self._book.run.over

    @property
    def remaining(self) -> int | None:
        """How many measurements the budget leaves; None where there is no budget."""
        with self._lock:
            self._look()
            return self._book.remaining

    @property
    def certificate(self) -> float | None:
        """The probability with which the answer of now is right, at least, whenever it is looked at.

        It is 1 - the level of the certificate (`Problem.certified_level`), whatever has chosen the measurements. None
        where the problem tells no evidence, and where arms are compared and are too many to be looked at in pairs.
        """
        with self._lock:
            self._look()
            book = self._book
            task, seen, answer = book.run.task, book.statistics.at(book.active), book.answer()[book.active]
        if (certifier := task.level_certifier()) is None:
            return None
        D = () if task.D == 1 else (task.D,)
        means, variances = (x.reshape(1, task.K, *D) for x in (seen.mean, seen.variance))
        return 1.0 - float(certifier.levels(seen.pulls[None], means, variances, answer[None].astype(np.int8))[0])

    @property
    def boundary(self) -> float | None:
        """The mean that parts the arms of the answer from the others; None where there is none, or not yet.

        Where the problem knows no such mean, it is halfway between the two kinds of arms.
        """
        with self._lock:
            self._look()
            problem, seen = self._book.run.problem, self._book.statistics.at(self._book.active)
        if problem.boundary is None and (self.task.D > 1 or not seen.pulls.all()):
            return None
        return boundary_of(problem, seen.seen()[0])

    def unsure(self) -> NDArray[np.float64]:
        """How many standard errors each arm's mean is from the boundary, (K,); 0 where it has not been measured.

        The noise is as the task tells it. Withdrawn arms have NaN.
        """
        with self._lock:
            self._look()
            book, found = self._book, np.full(len(self._book.names), np.nan)
            seen = book.statistics.at(book.active)
            margin = np.nan_to_num(np.abs(book.run.problem.margin(seen.seen())[0]), nan=0.0, posinf=0.0, neginf=0.0)
            found[book.active] = margin * np.sqrt(seen.pulls) / self.task.sigma
        return found

    @property
    def label(self) -> str:
        """The agent as it was named."""
        return self._setup.agent or str(getattr(self.agent, "name", type(self.agent).__name__))

    @property
    def pending(self) -> list[Ask]:
        """The questions that wait for their results, in order."""
        with self._lock:
            self._look()
            return [Ask(number, arm, who) for number, (arm, who) in self._book.asks.items()]

    def next(self) -> int | None:
        """The arm that would be asked for next, without asking; None where there is none."""
        with self._lock:
            self._look()
            return next(iter(self._book.wanted(1)), None)

    # --- the arms -----------------------------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """What is asked, of the arms that there were at the beginning."""
        return self._setup.task

    @property
    def agent(self) -> Any:
        """The agent, made for the arms that there are."""
        with self._lock:
            self._look()
            return self._book.run.agent

    @property
    def names(self) -> list[str]:
        """The names of all arms, by number."""
        with self._lock:
            self._look()
            return list(self._book.names)

    @property
    def active(self) -> NDArray[np.int64]:
        """The numbers of the arms that have not been withdrawn."""
        with self._lock:
            self._look()
            return self._book.active.copy()

    def arm(self, arm: int | str) -> int:
        """The number of an arm that can be measured.

        Args:
            arm: its number or its name.

        Raises:
            ValueError: for an arm that there is not, or no longer.
        """
        book, found = self._book, None
        if isinstance(arm, str):
            found = book.number.get(arm.strip())
            if found is None and arm.strip().isdecimal() and int(arm) < len(book.names):
                found = int(arm)
            if found is None:
                known = ", ".join(book.names[:8]) + (", ..." if len(book.names) > 8 else "")
                raise ValueError(f"there is no arm {arm!r:.200}; the arms are {known}")
        else:
            found = integer("arm", arm, 0, len(book.names) - 1)
        if found in book.withdrawn:
            raise ValueError(f"the arm {book.names[found]!r:.200} has been withdrawn")
        return found

    def add_arm(self, name: str | None = None) -> int:
        """Add an arm; the agent begins anew on all arms, with all results that there are.

        Returns:
            Its number.

        Raises:
            ValueError: where the name is taken, or the agent does not take one more arm; nothing is recorded.
        """
        with self._lock:
            with self._store.writing() as connection:
                self._catch_up(connection)
                book = self._book
                new = str(len(book.names)) if name is None else checked_name(name)
                if new in book.number:
                    raise ValueError(f"there is an arm {new!r:.200} already")
                self._setup.made_for(len(book.active) + 1, 0)
                added = self._store.append(connection, [Event(0, ADDED, len(book.names), text=new)])
            self._take(added)
            return int(added[0].arm or 0)

    def withdraw_arm(self, arm: int | str) -> None:
        """Withdraw an arm: it is neither asked for nor answered any more. The agent begins anew on the others.

        Its results stay in the history, and count as part of the budget.

        Raises:
            ValueError: for an arm that there is not, and where the agent cannot do with one arm less; nothing is
                recorded.
        """
        with self._lock:
            with self._store.writing() as connection:
                self._catch_up(connection)
                one = self.arm(arm)
                self._setup.made_for(len(self._book.active) - 1, 0)
                added = self._store.append(connection, [Event(0, WITHDRAWN, one)])
            self._take(added)

    # --- the history --------------------------------------------------------------------------------------------------

    def undo(self, event: int | None = None) -> int:
        """Undo a result, a question that waits, or the withdrawal of an arm, as if it had never been; with a trace.

        Args:
            event: its number in the history; None: the last result that has not been undone.

        Returns:
            The number of the event that was undone. The question that a result has answered waits again.

        Raises:
            ValueError: where there is no such event, or it cannot be undone; nothing is recorded.
        """
        with self._lock:
            with self._store.writing() as connection:
                self._catch_up(connection)
                undone = self._undone(connection)
                if event is None:
                    told = self._store.events(connection, kinds=[TOLD])
                    event = next((one.number for one in reversed(told) if one.number not in undone), None)
                    if event is None:
                        raise ValueError("there is no result to undo")
                found = self._store.one(connection, integer("event", event, 1))
                if found is None:
                    raise ValueError(f"there is no event {event}")
                waits = found.kind == ASKED and found.number in self._book.asks
                if found.number in undone or not (waits or found.kind in (TOLD, WITHDRAWN)):
                    why = "it has been undone already" if found.number in undone else f"it is {found.kind!r}"
                    if found.kind == ASKED and found.number not in undone:
                        why = "its result has come: undo that"
                    raise ValueError(f"the event {event} cannot be undone: {why}")
                added = self._store.append(connection, [Event(0, UNDONE, found.arm, about=found.number)])
            self._take(added)
            return found.number

    def note(self, text: str, who: str | None = None) -> None:
        """Write a remark into the history."""
        with self._lock:
            with self._store.writing() as connection:
                self._catch_up(connection)
                added = self._store.append(connection, [Event(0, NOTE, text=str(text), who=_person(who))])
            self._take(added)

    def history(self, last: int | None = None) -> DataFrame:
        """All events, or the last ones, as a table: number, time, kind, arm and its name, value, and what was undone.

        `value` is what was measured (`value_0`, `value_1`, ... of arms of several dimensions), `about` the number of
        the event that this one answers or undoes, `undone` whether it was undone later.
        """
        with self._lock:
            with self._store.reading() as connection:
                after = 0 if last is None else max(self._store.last(connection) - integer("last", last, 0), 0)
                events, undone = self._store.events(connection, after), self._undone(connection)
            self._look()
            names = self._book.names
        pd, D = pandas(), self.task.D
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

    def arms(self) -> DataFrame:
        """A table of the arms: pulls, mean, standard deviation, an interval, the answer, and questions that wait.

        `low` and `high` are the ends of a 95 % interval of the arm's mean by the scale of the noise that the task
        tells, at its present number of measurements.
        """
        with self._lock:
            self._look()
            book, task = self._book, self.task
            seen, answer = book.statistics, book.answer()
            waiting = np.bincount([arm for arm, _ in book.asks.values()], minlength=len(book.names))
            withdrawn = np.isin(np.arange(len(book.names)), list(book.withdrawn))
            names = list(book.names)
        columns: dict[str, Any] = {"name": names, "pulls": seen.pulls}
        for d in range(task.D):
            tail = "" if task.D == 1 else f"_{d}"
            with np.errstate(divide="ignore"):
                radius = task.sigma * np.sqrt(2 * math.log(2 / 0.05) / seen.pulls)
            mean = np.where(seen.pulls > 0, seen.mean[:, d], np.nan)
            low, high = mean - radius, mean + radius
            if task.support is not None and task.law != "gaussian":
                low, high = np.maximum(low, task.support[0]), np.minimum(high, task.support[1])
            sd = np.where(seen.pulls > 1, np.sqrt(seen.variance[:, d]), np.nan)
            columns |= {f"mean{tail}": mean, f"sd{tail}": sd, f"low{tail}": low, f"high{tail}": high}
        columns |= {"answer": answer, "pending": waiting, "withdrawn": withdrawn}
        table: DataFrame = pandas().DataFrame(columns)
        return table

    def close(self) -> None:
        """Give back what the database has lent."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """How many results there are."""
        with self._lock:
            self._look()
            return self._book.count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        task = self._setup.task
        return f"Session({self._setup.agent}, {task.problem}, {len(self._book.active)} arms, {self._store.address!r})"

    # --- the book -----------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The number of the last event; it grows with everything that happens."""
        with self._lock:
            self._look()
            return self._book.upto

    def _sample(self, value: Any) -> Any:
        """What was measured, checked: a float, or a tuple of those of the dimensions.

        Raises:
            ValueError: naming the value and what is allowed.
        """
        task = self.task
        low, high = task.support if task.support is not None and task.law != "gaussian" else (-math.inf, math.inf)
        if task.D == 1:
            found = number("a measurement", value, low, high)
            if task.law == "bernoulli" and found not in (low, high):
                raise ValueError(f"a measurement must be {low:g} or {high:g}, got {value!r:.200}")
            return found
        try:
            values = list(value)
        except TypeError:
            values = []
        if isinstance(value, str) or len(values) != task.D:
            raise ValueError(f"a measurement must be {task.D} numbers, got {value!r:.200}")
        return tuple(number("a measurement", one, low, high) for one in values)

    def _undone(self, connection: Any) -> set[int]:
        """The numbers of the events that were undone."""
        return {int(event.about or 0) for event in self._store.events(connection, kinds=[UNDONE])}

    def _opened(self) -> Book:
        """The book as the store has it, from the latest state that was kept and still holds."""
        with self._store.reading() as connection:
            undoings = self._store.events(connection, kinds=[UNDONE])
            undone, book = {int(event.about or 0) for event in undoings}, None
            for upto, data in self._store.snapshots(connection):
                if all(event.number <= upto or int(event.about or 0) > upto for event in undoings):
                    book = Book.restored(self._setup, undone, data)
                    if book is not None:
                        self._kept = book.count
                        break
            if book is None:
                book, self._kept = Book(self._setup, undone), 0
            book.apply_all(self._store.events(connection, book.upto))
            return book

    def _catch_up(self, connection: Any) -> None:
        """Take in what others have done."""
        if not self._book.apply_all(self._store.events(connection, self._book.upto)):
            self._book = self._opened()

    def _look(self) -> None:
        """Take in what others have done, without writing."""
        with self._store.reading() as connection:
            self._catch_up(connection)

    def _take(self, events: Sequence[Event]) -> None:
        """Take in one's own events; keep the state from time to time."""
        if not self._book.apply_all([event for event in events if event.number > self._book.upto]):
            self._book = self._opened()
        if self._book.count >= self._kept + STEPS:
            self._kept = self._book.count
            if (data := self._book.snapshot()) is not None:
                self._store.keep(self._book.upto, data)


def _person(who: Any) -> str | None:
    """Who asks or tells.

    Raises:
        ValueError: unless it is text or None.
    """
    if who is not None and not isinstance(who, str):
        raise ValueError(f"who must be a name or None, got {who!r:.200}")
    return who or None


def _same(known: Mapping[str, Any], new: Mapping[str, Any], names: bool, seed: bool) -> None:
    """Refuse to go on with a session of another agent or task.

    Raises:
        ValueError: naming what differs.
    """
    asked = ["agent", "parameters", "task", *(["names"] if names else []), *(["public_seed"] if seed else [])]
    told = list[str]()
    for name in asked:
        there, wanted = known[name], new[name]
        if name == "task":
            there, wanted = json.loads(there), json.loads(wanted)
        told += _differing(name, there, wanted)
    if told:
        raise ValueError(
            f"the store holds another session: {'; '.join(told)}. Choose another store, or leave out the agent and the "
            "task to go on with this one"
        )


def _differing(name: str, there: Any, wanted: Any) -> list[str]:
    """What differs between two facts, in words; of objects, entry by entry."""
    if there == wanted:
        return []
    if isinstance(there, Mapping) and isinstance(wanted, Mapping):
        keys = dict.fromkeys([*there, *wanted])
        return [told for key in keys for told in _differing(key, there.get(key), wanted.get(key))]
    return [f"{name} is {there!r:.80} there, {wanted!r:.80} asked for"]
