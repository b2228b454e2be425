"""`Session`: ask what to measure next, tell the result, read the answer at any time."""

from __future__ import annotations

import contextlib
import math
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from bandit_envs import Task, measurements
from bandit_envs.envs import boundary_of
from bandit_envs.instances import Count, Measurements, uneven, within
from bandit_envs.kernels import Bools, Floats, Ints, choice, flag, integer, number, orders, root_key
from bandit_envs.stopping import RATES

from ..evaluation.plots import save
from . import tables
from .design import batch_of, code_of, in_wells, map_of, plated, refuse_code, refuse_stranger
from .doubts import about_failures, about_noise, doubts, rounded
from .fold import FEWEST_ARMS, State, fold, limits_of
from .log import ADDED, ASKED, FAILED, LARGEST, NOTE, RESULTS, TOLD, UNDONE, WITHDRAWN, Event, Log
from .questions import Ask, Question, Row, events_of, placed, refuse_beyond_budget
from .rehearsal import Rehearsal, rehearse, studies_of
from .running import Running
from .setup import Setup, checked_name
from .statements import contradictions
from .strata import StrataRun
from .tables import compares, drawn, results_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from sqlalchemy.engine import Connection

Seen = TypeVar("Seen")
Asked = TypeVar("Asked", Ask, Question)


class Session:
    """A real experiment: what to measure next, what has been measured, and the answer as of now.

    A database keeps everything: opened again, the session goes on where it was. Several processes and threads may use
    one at the same time. A question is in the database before it is returned, so no measurement is asked for twice.

    With one question and one result at a time the agent makes the very decisions of a simulated episode. Questions
    that wait count as if their results had come, each as its arm's present mean.

    Args:
        agent: which one decides, as for `agents.make`: a name, "module:Class", a class, an agent, a function of the
            task. None: the agent in the store.
        task: an environment, a `Task`, or the facts of `task_from_facts`. None: the task in the store.
        store: path of a file for SQLite, or another address of SQLAlchemy, as "postgresql+psycopg://user@host/name";
            ":memory:" keeps the session as long as this object.
        names: of the arms, where the facts do not name them; None: their numbers.
        public_seed: from which agents draw at random; None: a fresh one.
        order: in which results count. "asked": as they were asked for, so that an early result waits for results of
            earlier questions; "arrival": as they come: no guarantee holds where the value of a result delays it.
            None: "asked", or the order in the store.
        trust: import what the store names as "module:Class", or load its saved model: their makers may run any code.

    Warns:
        UserWarning: of a new session whose facts go together badly: a budget that does not reach each arm once, or with
            which nothing can be certified at delta; a delta above .5; an epsilon as wide as the range.

    Raises:
        ValueError: naming what is wrong, and where the store holds another session than the one that is described.
        FileNotFoundError: if there is no session in the store, and none is described. ImportError: without SQLAlchemy.
    """

    def __init__(
        self,
        agent: object = None,
        task: object = None,
        *,
        store: str | Path,
        names: Sequence[str] | None = None,
        public_seed: int | None = None,
        order: str | None = None,
        trust: bool = False,
    ) -> None:
        self._log, self._lock = Log(store), threading.RLock()
        facts, new = self._log.facts(), None
        if task is not None:
            if agent is None:
                raise ValueError("a session needs an agent, see agents.names()")
            new = replace(Setup.of(agent, task, names, public_seed, trust), order="asked" if order is None else order)
        if facts is None:
            if new is None:
                how = "bandit-envs session new, or agents.Session(agent, task, store=...)"
                raise FileNotFoundError(f"there is no session {store}: {how}")
            for sentence in doubts(new.task, State(new).run.delta, new.own_task):  # before anything is written
                warnings.warn(sentence, UserWarning, stacklevel=2)
            if not self._log.create(new.facts()):
                facts = self._log.facts()  # another process was quicker
        if facts is None and new is not None:
            self._setup = new
        else:
            self._setup = Setup.from_facts(facts or {}, agent, trust, new)
            if new is not None:
                self._setup.refuse_other(new, {"names": names, "public_seed": public_seed, "order": order})
        self._state = self._folded()
        self._read = ""
        self._warned = False  # that `sigma` is refuted
        self._forecast: tuple[object, Rehearsal] | None = None  # of what, and the last one

    # --- the log and its fold: other processes may write into the same store at any time ------------------------------

    @contextlib.contextmanager
    def _now(self) -> Iterator[State]:
        """The state as of now; within this, no other thread changes it."""
        with self._lock:
            with self._log.reading() as connection:
                self._catch_up(connection)
            yield self._state

    def _look(self, at: Callable[[State], Seen]) -> Seen:
        """What a function makes of the state as of now."""
        with self._now() as state:
            return at(state)

    def _append(self, events: Callable[[State], Sequence[Event]]) -> list[Event]:
        """Add what `events` makes of the state of now to log and state, or nothing; returns it with its numbers."""
        added = list[Event]()
        with self._lock:
            try:
                with self._log.writing() as connection:
                    self._catch_up(connection)
                    added = self._log.append(connection, events(self._state), self._state.upto)
                    self._state = self._state.after(added)
                    self._log.marked(connection, self._state.mark())
            except BaseException:
                if added:  # the state may have taken what the log has not
                    self._state = self._folded()
                raise
        return added

    def _catch_up(self, connection: Connection) -> None:
        """Take in what others have done."""
        if events := self._log.events(connection, self._state.upto):
            self._state = self._state.after(events)

    def _folded(self) -> State:
        """The state of all that the log has."""
        with self._log.reading() as connection:
            self._log.refuse_gaps(connection)
            (since, seal), events = self._log.marked(connection), self._log.events(connection)
        state = fold(self._setup, events, since if isinstance(since, int) else 0)
        return state if state.run.skips == 0 or state.mark(since) == (since, seal) else fold(self._setup, events)

    # --- the experiment -----------------------------------------------------------------------------------------------

    def ask(
        self, n: int = 1, who: str | None = None, *, take_over: float = math.inf, run: str | None = None
    ) -> list[Question]:
        """The arms to measure next, by number; an arm may be there several times.

        Of a table, each question has the `item` on which the arm is to be measured, and no cell is asked for twice.
        There are fewer than `n` where the session is `done`, waits for the results of `pending` questions, or has asked
        this person for all that the raters' rules allow. With blocks they are whole ones, at least one.

        Args:
            n: how many measurements.
            who: the person who asks, for the history, and so that results find their questions.
            take_over: seconds without an event of another person, after which that person's open questions are asked
                again first, in their places in the order; later results of that person are refused. A `run` that has
                promised rarer signs of life has so much more time. Questions of `raters` stay theirs.
            run: which `run` asks, for the history.
        """
        n, who = integer("n", n, 1, 10**6), _person(who)
        refuse_stranger(self.wishes, who)
        lease = take_over if take_over == math.inf else number("take_over", take_over, 0, above=True)

        def asked(state: State) -> list[Event]:
            old = [] if {"raters", "repeats"} & set(self.wishes) else state.orphans(who, lease)[:n]
            new = state.cells_wanted(n - len(old), who)
            if new and state.strata is not None:
                state.strata.refuse_late(Event(0, ASKED))
            if "blind" in self.wishes and "plate" not in self.wishes and len(new) > 1:  # places would give arms away
                key, call = root_key(self._setup.public_seed)[:, None], np.array([state.upto], np.uint64)
                new = [new[place] for place in orders(key, call, len(new))[0]]
            return [*state.asked_again(old, who, run), *(Event(0, ASKED, arm, row, None, who, run) for arm, row in new)]

        added, wells = self._append(asked), self._look(plated)
        return [self._filled(Question(one.arm or 0, one.number), one, wells) for one in added]

    def _filled(self, question: Asked, event: Event, wells: dict[int, tuple[int, str | None]]) -> Asked:
        """A question with the item, the code and the well that its event gives it."""
        setup, (question.plate, question.well) = self._setup, wells.get(event.number, (None, None))
        question.item = self._state.item(int(event.value)) if setup.task.items else None
        question.code = code_of(event.number, setup.public_seed) if setup.wishes.get("blind") else None
        return question

    def tell(
        self,
        arm: object,
        value: object = None,
        who: str | None = None,
        item: int | str | None = None,
        *,
        n: int | None = None,
        successes: int | None = None,
        mean: float | None = None,
        sd: float | None = None,
    ) -> None:
        """Record a result: it answers the question that is handed over, else the oldest about this arm, if any waits.

        Or record a count, n results at once, which answers no question, and has its place behind those that are open.
        Agents that go by rounds, items, blocks, designs and several dimensions need single results.

        Args:
            arm: its number or name, or a question of `ask` or `pending`, or the code of one that waits. Where names
                are numbers, a number is a name. A name does not say which of several open questions about this arm
                is answered: it is refused, unless order="arrival", or one call has the results of all.
            value: what was measured: a number, or as many numbers as an arm has dimensions.
            who: the person who has measured it, for the history. None: who has asked, of a question of `pending`.
            item: of a table, the row, by its name or number, asked for or not; None: the row of the oldest question.
                With blocks of a control, the name of the day or plate; None: of a result without a question, today.
            n: of a count, how many measurements, up to 10^9, of the budget. successes: how many of them were 1.
            mean: of a count without successes, the mean. Less is certified within a range, as higher moments are
                unknown. sd: the sample standard deviation (divisor n - 1), by which noise is judged, where n > 1.

        Raises:
            ValueError: for an unknown or withdrawn arm, a value outside the support, a cell that the table lacks or
                that has a result, a question that was asked again, and a count that is impossible, beyond the budget,
                or where single results are needed; nothing is recorded.
        """
        count = Count(n, successes, mean, sd)
        if (given := any(one is not None for one in count)) and value is not None:
            raise ValueError(f"a result is a value or a count, got both, {value!r:.80} and {count}")
        self._record([("", arm, count if given else value, item)], who)

    def tell_all(self, results: Iterable[tuple[object, ...]], who: str | None = None) -> int:
        """Record results, pairs of an arm and a value as for `tell`: all of them or, where one is wrong, none.

        Of a table they may be triples, with an item; a value may be a `Count`. Returns how many there were.

        Raises:
            ValueError: as `tell`, naming the first row, from 1, where there are several.
        """
        return self._record(placed(results, bool(self.task.items) or self._state.strata is not None), who)

    def tell_table(
        self, table: Any, *, who: str | None = None, again: bool = False, plate: int | None = None, **columns: Any
    ) -> int:
        """Record the results, or counts, in a table, all or, where one is wrong, none. Returns how many results.

        Arms that are the columns of a table take that table, half filled: wide with the items' names in its index, or
        long with a column of items. Cells that are known with the same value are left out, so it may be read again.

        `read` says then what the columns were taken for, and what was left out.

        Any other table that begins with recorded results, read again or exported, is refused: they would count twice.
        So is a table with more results than the budget leaves. The agent decides after the last result.

        Args:
            table: path of a file (CSV, Excel, JSON Lines, Parquet), or a dataframe.
            who: the person who has measured them. again: record a table that begins with recorded results.
            plate: the number of the plate whose wells these are, where several wait, or wells lack a result. Each
                answers the question of its well, whose name it must have.
            columns: `arm`, `value`, `index`, `wide`, `item`, `sep`, `decimal`, `sheet`, `layout`, `n`, `successes`,
                see `bandit_envs.measurements`. Words such as yes and no, or C and I, are 1 and 0 on a range of 0 to 1.

        Raises:
            ValueError: naming the row and the column, of a value beyond the range also the arm and the item;
                for arms whose share of traffic changes by day.
            FileNotFoundError: if there is no such file.

        Warns:
            UserWarning: of a column that is ignored.
        """
        columns = {"binary": limits_of(self.task) == (0, 1)} | columns
        found, again = measurements(table, **columns), flag("again", again)
        self._read = found.read
        if found.events:
            return self._record([], who, found.of, again, found)
        if columns.get("item") is not None and not self.task.items and self._state.strata is None:
            text = f"{found.of}: the column {columns['item']!r:.80} is ignored: there are neither items nor blocks"
            warnings.warn(text, UserWarning, stacklevel=2)
        strata = self._state.strata
        if found.days and any(one.several for one in found.rows) and strata is None:
            text = f"{found.of}: the column {found.days[0]!r} is ignored: counts come in the order of the rows"
            warnings.warn(text, UserWarning, stacklevel=2)
        control, local = self._look(lambda state: state.control_arm), self.task.make_problem().local
        compared = bool(found.arms) and not (self.task.items or local)
        first = self.names[control] if control is not None else found.arms[0] if compared else ""
        for name, why in uneven(found, first).items() if strata is None else ():
            if control is not None or any(repr(day) in why for day in found.days):
                text = "where means are alike in all its cells, leave the column out"
                raise ValueError(f"{found.of}: of {name} {why}; {text}")
        found = within(found, self.task.ranges or limits_of(self.task))
        rows, asks = list[tuple[str, Any, Any, Any]](), {one.number: one for one in self.pending}
        about = [0] * len(found.rows) if plate is None else self._look(lambda state: in_wells(state, found, plate))
        for one, asked in zip(found.rows, about, strict=True):
            place = f"{found.of}, {one.place}: "
            if self.task.items and not one.item and one.several is None:
                raise ValueError(f"{place}a result of a table needs its item: a column 'item' (item=), or a wide row")
            value = one.value[0] if self.task.D == 1 and len(one.value) == 1 else one.value
            arm = asks.get(asked, one.arm)
            rows.append((place, arm, one.several or value, one.item if self.task.items else None))
        if strata is not None and plate is None:
            rows = strata.ordered(found, rows)
            rows = rows if again else self._look(lambda _: strata.fresh(rows, found.of))
        return self._record(rows, who, found.of, again)

    def _record(
        self,
        rows: Sequence[Row],
        who: str | None,
        table: str | None = None,
        again: bool = False,
        history: Measurements | None = None,
    ) -> int:
        """Record rows of a `table`, or a `history`."""
        who, text, results = _person(who), None if table is None else tables.read_from(table), list[Event]()

        def events(state: State) -> list[Event]:
            new = events_of(state, rows, who, text)
            results[:] = new
            if history is not None:
                new, results[:] = tables.replayed(state, history, who)
                if any(one.kind in (ADDED, WITHDRAWN) for one in new):
                    _refuse_changes(state)
            refuse_beyond_budget(state, results, "" if table is None else f"{table}: ")
            if table is not None and not again and not self.task.items:
                tables.refuse_repeated(state, table, results)
            return new

        single = sum(one.kind in (TOLD, FAILED) for one in self._append(events))
        if (state := self._state).run.wary:
            noise, news = about_noise(state), [rounded(state, single)]
            if noise and noise[0] == "refuted" and not self._warned:
                self._warned = True
                news.append(noise[1])
            for sentence in filter(None, news):
                warnings.warn(sentence, UserWarning, stacklevel=3)
        return sum(one.size for one in results)

    @property
    def read(self) -> str:
        """What the last `tell_table` of this object has read: columns, rows, arms, and what was left out."""
        return self._read

    @property
    def doubts(self) -> list[str]:
        """Sentences, the gravest first, that are to be read before anything else.

        Where two statements about an arm cannot both be, so that means have changed or results depend on each other;
        where results vary more, or far less, than `sigma` says, or do not bear it out yet; where some failed.
        """
        with self._now() as state:
            found = about_noise(state)
            strata = state.run.doubts(state.names) if isinstance(state.run, StrataRun) else []
            return [*strata, *contradictions(state), *([found[1]] if found else []), *about_failures(state)]

    @property
    def contradictions(self) -> list[str]:
        """The first of `doubts`: of each arm of which two things are said that cannot both be, a sentence."""
        return self._look(contradictions)

    def answer(self) -> Bools:
        """The answer as of now, a mask of all arms, (K,); the final one where the session is `done`."""
        return self._look(State.answer)

    @property
    def tied(self) -> list[int]:
        """The numbers of the arms that the answer leaves out though their means equal the lowest in it, by chance.

        Where arms are compared; [] where each counts by itself.
        """
        with self._now() as state:
            answer, seen = state.answer(), state.statistics
            there = (seen.scored > 0) & np.isin(np.arange(len(answer)), state.active)
            if state.run.problem.local or state.blocks or self._setup.task.D > 1 or not (answer & there).any():
                return []
            least = seen.mean[answer & there, 0].min()
            near = np.abs(seen.mean[:, 0] - least) <= 1e-9 * max(state.spread, abs(least))
            near[[] if state.control_arm is None else state.control_arm] = False
            return [int(arm) for arm in np.flatnonzero(near & there & ~answer)]

    @property
    def done(self) -> bool:
        """Whether the agent has stopped, or the budget is spent. Later results are recorded; the answer stays."""
        return self._look(lambda state: state.run.over)

    @property
    def ended(self) -> int | None:
        """How many results counted when the session was over, of withdrawn arms too; None before."""
        with self._now() as state:
            lost = int(state.statistics.pulls[sorted(state.withdrawn)].sum())
            return None if state.run.final is None else state.run.final.spent + lost

    @property
    def remaining(self) -> int | None:
        """How many measurements the budget leaves, with `cost` how much money; None where there is no budget."""
        return self._look(lambda state: state.remaining)

    @property
    def progress(self) -> str:
        """How far it is: "120 of about 400 cells, money 35 of about 120", of tables if evidence grows as until now."""
        with self._now() as state:
            task, level, delta, money = self._setup.task, 1.0 - (state.certificate or 0.0), state.run.delta, state.money
            N, rows = task.items, task.items if task.cost == "row" else math.inf
            known = N and delta and 0.0 < level < 1.0 and not state.run.over
            times = max(math.log(delta or 1.0) / math.log(level), 1.0) if known else 1.0
            ends = (state.count, (N or 0) * len(state.names)), (money or 0.0, rows)
            cells, paid = (f" of about {min(x * times, most or 0):,.0f}" if known else "" for x, most in ends)
            found = f"{state.count:,}{cells} {'cell' if N else 'measurement'}{'s' * (state.count != 1)}"
            return found if money is None else f"{found}, money {money:,g}{paid}"

    @property
    def money(self) -> float | None:
        """What the measurements have cost, by the fact `cost`; None without it."""
        return self._look(lambda state: state.money)

    @property
    def certificate(self) -> float | None:
        """The probability with which the answer of now is right, at least, whenever it is looked at.

        It is 1 - the level of the certificate by which the agent stops (of another agent, `Task.certifier`), for any
        choice of measurements. It stays once the session is `done`. None where the problem has no evidence, and
        where arms are compared and are too many to look at all pairs.

        All arms that there have ever been share delta, in the order of their coming. Where the fact `reserve` keeps a
        part of delta for later arms, 1 - delta is what is reached in the end. Without it a change spends delta once
        more: a session that stops at delta ends at 1 - 2 delta, which is right for who has not relied on a lower
        certificate before; without a delta too it is None. So it is for an agent that goes by rounds, after a change.
        """
        return self._look(lambda state: state.certificate)

    @property
    def delta(self) -> float | None:
        """The error probability that is allowed: the agent's own, or the fact; None where there is none."""
        return self._look(lambda state: state.run.delta)

    @property
    def boundary(self) -> float | None:
        """The mean that parts the arms of the answer from the others; None where there is none, or not yet.

        Where the problem knows no such mean, it is halfway between the two kinds of arms.
        """
        with self._now() as state:
            problem, seen, D = state.run.problem, state.statistics.at(state.active), self.task.D
            known = problem.boundary is not None or problem.control_arm is not None and D == 1
            if state.strata is not None:  # means of different strata do not compare
                return None
            found = boundary_of(problem, seen.means()[0]) if known or D == 1 and seen.scored.all() else None
            return None if found is None else float(self._setup.turned(found))

    def unsure(self) -> Floats:
        """How many standard errors each arm's mean is from the boundary, (K,); 0 where it has not been measured.

        The spread is of all results around their arms' means, or the task's; withdrawn arms and a control have NaN.
        """
        with self._now() as state:
            found, seen = np.full(len(state.names), np.nan), state.statistics.at(state.active)
            if isinstance(run := state.run, StrataRun):
                found[state.active] = np.sqrt(2.0 * np.maximum(run.evidence.max(axis=1), 0.0))
                found[state.control_arm or 0] = np.nan
                return found
            margin = np.nan_to_num(np.abs(state.run.problem.margin(seen.means())[0]), nan=0.0, posinf=0.0, neginf=0.0)
            found[state.active] = margin * np.sqrt(seen.scored) / (state.spread or self._setup.task.sigma)
            found[[] if state.control_arm is None else state.control_arm] = np.nan
            return found

    @property
    def label(self) -> str:
        """The agent as it was named."""
        return self._setup.agent or str(getattr(self.agent, "name", type(self.agent).__name__))

    @property
    def pending(self) -> list[Ask]:
        """The questions that wait for their results, in order."""
        with self._now() as state:
            wells = plated(state)
            return [self._filled(Ask(one, *ask), state.events[one], wells) for one, ask in state.asks.items()]

    @property
    def owed(self) -> list[dict[str, Any]]:
        """Who has open questions: `who`, how many `questions`, `results` that wait for them, and `silent`, seconds."""
        return self._look(State.owed)

    @property
    def waiting(self) -> dict[int, int]:
        """Results that have come, and wait for the result of an earlier question: {its number: how many wait}."""
        return self._look(lambda state: state.waiting)

    def plate_map(self, plate: int) -> DataFrame:
        """The names, or codes, of what has been asked for on a plate, from 1: rows A, B, .. and columns 1, 2, ...

        Wells are filled row by row; those that were not asked for, or were undone, are "". A plate of another size than
        6, 12, 24, 48, 96, 384 or 1536 wells is a part of the next larger one. As CSV it is a `layout` of `tell_table`.
        A ValueError names plates that there are not, and more wells.
        """
        return self._look(lambda state: map_of(state, plate))

    def next(self) -> int | None:
        """The arm that would be asked for next, without asking; None where there is none."""
        return self._look(lambda state: next(iter(state.wanted(1)), None))

    # --- the arms -----------------------------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """What is asked, of the arms that there were at the beginning."""
        return self._setup.own_task

    @property
    def minimize(self) -> bool:
        """Whether a lower value is better."""
        return self._setup.own is not None

    @property
    def asks(self) -> str:
        """What is asked, in a line."""
        asks = str(self.task.make_problem().asks)
        return asks if self._setup.own is None else f"{asks.replace('least', 'most')}, where a lower value is better"

    @property
    def wishes(self) -> dict[str, Any]:
        """The facts that change neither task nor certificate, by their names, such as title, unit and noun."""
        return dict(self._setup.wishes)

    @property
    def agent(self) -> Any:
        """The agent, made for the arms that there are."""
        return self._look(lambda state: state.run.agent)

    @property
    def names(self) -> list[str]:
        """The names of all arms, by number."""
        return self._look(lambda state: list(state.names))

    @property
    def active(self) -> Ints:
        """The numbers of the arms that have not been withdrawn."""
        return self._look(lambda state: state.active.copy())

    def arm(self, arm: int | str) -> int:
        """The number of an arm that can be measured, of its number or name."""
        return self._look(lambda state: state.arm(arm))

    def add_arm(self, name: str | None = None) -> int:
        """Add an arm, and return its number; the agent begins again on all arms, with all results.

        The arms of now share delta from then on, see `certificate`.

        Raises:
            ValueError: where the name is taken, the session is over, or the agent does not take one more arm; nothing
                is recorded.
        """

        def added(state: State) -> list[Event]:
            _refuse_changes(state)
            new = str(len(state.names)) if name is None else checked_name(name)
            refuse_code(self._setup.wishes, new)
            if (known := state.number.get(new)) is not None:
                back = ", which has been withdrawn: undo that to have it back" if known in state.withdrawn else ""
                raise ValueError(f"there is an arm {new!r:.200} already{back}")
            return [Event(0, ADDED, len(state.names), text=new)]

        return int(self._append(added)[0].arm or 0)

    def withdraw_arm(self, arm: int | str) -> None:
        """Withdraw an arm: it is neither asked for nor answered any more. The agent begins again on the others.

        Its results stay in the history, and count in the budget. The arms of now share delta, see `certificate`.

        Raises:
            ValueError: for an unknown arm, where the session is over, and where the agent cannot do with one arm less;
                nothing is recorded.
        """

        def withdrawn(state: State) -> list[Event]:
            one = state.arm(arm)
            _refuse_changes(state)
            state.refuse_control(one)
            if len(state.active) == FEWEST_ARMS:
                raise ValueError(f"{state.names[one]!r:.200} cannot go: there must be {FEWEST_ARMS} arms at least")
            return [Event(0, WITHDRAWN, one)]

        self._append(withdrawn)

    def run(
        self,
        measure: Callable[..., object],
        workers: int | None = None,
        *,
        executor: Executor | None = None,
        retries: int = 5,
        timeout: float | None = None,
        failed: float | str | None = None,
        take_over: float | None = 600,
        who: str | None = None,
    ) -> int:
        """Measure by a function until the session is `done`, record each result as it comes, and return how many.

        It can be killed and called again: questions of this `who` that wait are measured first, and no cell of a table
        that has a result is measured again. Ctrl-C (SIGINT), or SIGTERM, stops asking, and waits for the calls that
        still run; the second one leaves them. Results are recorded, by further tries where the store fails.

        Args:
            measure: `measure(arm, item)`, of the arm's name, and the item's name or number; `measure(arm)` where there
                is no table. It returns the value, or is a coroutine function that does.
            workers: how many at a time: in threads, as tasks of one event loop, or in the executor. None: 1, or as many
                as the executor has.
            executor: any `concurrent.futures.Executor`, as of processes or Dask's `client.get_executor()`; it is not
                shut down. Where it breaks, since a process has died, the run ends, and its questions wait.
            retries: how often a measurement that fails, or takes too long, is tried again, after 0.1, 0.2, 0.4, .. s.
            timeout: seconds that one try may take from when it is handed over; None: any. What takes longer is left
                alone.
            failed: a measurement fails by an error, None or NaN every time. "skip": it has no score, and is not asked
                for again. A number counts as its score. The history marks both as "failed". None: the error is raised
                after the other running calls; its question waits. After 10 failures in a row the run ends in any case.
            take_over: seconds after which questions of silent others are asked again, see `ask`. This run writes three
                remarks into the history in so many seconds. None: questions of others are not waited for.
            who: asks and tells. Runs at the same time need different names; a second one of a name is refused.

        Raises:
            ValueError: for bad arguments, a value that is no measurement, and where a run of this name still runs.
            KeyboardInterrupt, SystemExit: after Ctrl-C, SIGTERM.
            RuntimeError: after 10 failures in a row, and of an executor that is broken.
            Exception: what `measure` has raised, with a note of the arm and the item.

        Warns:
            UserWarning: at once, of others who are silent for half of `take_over`, and of what waits for them; at the
                end, of the share of each arm that has failed.
        """
        refuse_stranger(self.wishes, who)
        return Running(self, measure, workers, executor, retries, timeout, failed, take_over, who).run()

    def _fail(self, question: int, value: float | None, who: str | None, why: str) -> None:
        """Record that the measurement of a question has failed, which counts as a value; None: it has no score."""

        def failure(state: State) -> list[Event]:
            if question not in state.asks:  # asked again, withdrawn, or answered
                return []
            arm, row = state.asks[question][0], state.row_asked.get(question)
            failed = value if row is None else (*(value if isinstance(value, tuple) else (value,) * self.task.D), row)
            return [Event(0, FAILED, arm, failed, question, who, why)]

        self._append(failure)

    def forecast(self, agents: object = None, *, episodes: int = 100, seconds: float = 5.0, **how: Any) -> Rehearsal:
        """How many more measurements it will take: rehearsals that go on from the results, and the evidence, of now.

        The arms are drawn from what the results leave open. It is made once for each number of results.

        Args:
            agents: others, in place of the session's own. episodes, seconds, how: as for `rehearse`; with `prior`, the
                arms are believed to be as that says.

        Raises:
            ValueError: where the session is over, or might never be.
        """
        with self._now() as state:
            changed = len(state.undone), len(state.names), len(state.withdrawn)
            key, kept = (state.statistics.spent, *changed, str(agents), episodes, str(how)), self._forecast
            if kept is not None and kept[0] == key and not state.run.over and how.get("prior") is None:
                return kept[1]
            studies = studies_of(state, agents)
        found = rehearse(studies, episodes=episodes, seconds=seconds, **how)
        self._forecast = key, found
        return found

    # --- the history --------------------------------------------------------------------------------------------------

    def undo(self, event: int | None = None, *, plate: int | None = None) -> int:
        """Undo a result, a question that waits, or the withdrawal of an arm, as if it had never been; with a trace.

        Args:
            event: its number in the history; None: the last result that has not been undone.
            plate: the number of a plate, whose results and questions are undone in place of one event.

        Returns the number of the event, of a plate how many were undone. A question whose result is undone waits again.

        Raises:
            ValueError: where there is no such event, or it cannot be undone; nothing is recorded.
        """
        if plate is not None:
            return self.undo_batch(event, plate=plate)

        def undoing(state: State) -> list[Event]:
            if event is None:
                if not (known := state.not_undone):
                    raise ValueError("there is no result to undo")
                return [_undoing(known[-1])]
            number = integer("event", event, 1, LARGEST)
            if (found := state.events.get(number)) is None:
                raise ValueError(f"there is no event {number}: they are 1 to {max(state.events, default=0)}")
            if found.kind == WITHDRAWN:
                _refuse_changes(state)
            if number not in state.undone and (found.kind in (*RESULTS, WITHDRAWN) or number in state.asks):
                return [_undoing(found)]
            why = "its result has come, or it was asked again" if found.kind == ASKED else f"it is {found.kind!r}"
            why = "it has been undone already" if number in state.undone else why
            raise ValueError(f"the event {number} cannot be undone: {why}")

        return int(self._append(undoing)[0].about or 0)

    def undo_batch(self, event: int | None = None, *, results: bool = True, plate: int | None = None) -> int:
        """Undo a whole plate, or batch: all that one call of `ask` asked for, where there are no plates.

        Args:
            event: the number of a question of it, or of a result; None: the last question that was not undone.
            results: False: only its questions that wait are given back; results stay.
            plate: the number of the plate, in place of an event.

        Returns how many events were undone.

        Raises:
            ValueError: where there is nothing of this kind to undo; nothing is recorded.
        """
        if None not in (event, plate):
            raise ValueError(f"what is undone is an event or a plate, got event={event!r:.80} and plate={plate!r:.80}")
        number = None if event is None else integer("event", event, 1, LARGEST)

        def undoing(state: State) -> list[Event]:
            batch = batch_of(state, number, plate)
            found = [one for one in state.not_undone if one.about in batch] * results
            found += [state.events[one] for one, now in batch.items() if results or now in state.asks]
            if not found:
                raise ValueError("no question of this plate, or batch, waits for a result")
            return [_undoing(one) for one in found]

        return len(self._append(undoing))

    def undo_table(self, table: str | Path) -> int:
        """Undo all results, no questions, of the last table of this name, or path, recorded; returns how many."""
        return len(self._append(lambda state: [_undoing(one) for one in tables.last_read(state, table)]))

    def note(self, text: str, who: str | None = None) -> None:
        """Write a remark into the history."""
        said = _text("a remark", text).strip()
        if not said:
            raise ValueError(f"a remark must say something, got {text!r:.200}")
        who = _person(who)

        def noted(state: State) -> list[Event]:
            if state.strata is not None and state.strata.filling in state.strata.said_over(said):
                raise ValueError(f"{state.strata.filling!r} is not over: ask for its other wells first")
            return [Event(0, NOTE, text=said, who=who)]

        self._append(noted)

    def history(self, last: int | None = None, *, event: int | None = None) -> DataFrame:
        """A table of all events, of the `last` so many, or of the one with the number `event`, empty where it is none.

        `value` is what was measured (`value_0`, `value_1`, ... of arms of several dimensions), of counts `n`,
        `successes`, `mean` and `sd`; `about` the number of the event that this one answers or undoes, `undone` whether
        it was undone later. In a blind session `code` is that of the question, or of the one that is answered.
        """
        number = None if event is None else integer("event", event, 1, LARGEST)
        most = LARGEST if last is None else integer("last", last, 0, LARGEST)
        with self._now() as state:
            events = list(state.events.values())[max(len(state.events) - most, 0) :]
            events = events if number is None else [state.events[number]] if number in state.events else []
            return tables.history_table(state, events)

    def arms(self, single: bool = False) -> DataFrame:
        """A table of the arms: pulls, mean, `sd` of a sample (n - 1), interval, answer, claim, open questions.

        `low` and `high` hold at all times at once: with probability 1 - delta (.95 without one) no interval of any arm
        ever excludes its mean; `single`: so for each arm by itself, with shorter intervals. The table's attribute
        `intervals` says which, `level` has the delta: twice that of the facts after `add_arm` without a `reserve`. Of a
        table of scores it is the mean of all rows that can be scored. Whether results bear out `sigma`: see `doubts`.

        `claim` is that of `claims`, "" where there are none. A claim about a threshold cuts the interval there, which
        is right as long as the claims are: again with probability 1 - delta.
        """
        one = flag("single", single)
        return self._look(lambda state: tables.arms_table(state, one))

    def results(self) -> DataFrame:
        """The table of `arms`, with a control that of `comparison` beside it, `difference_low` and `_high` its ends."""
        return self._look(results_table)

    def plot(self, path: str | Path | None = None) -> Figure:
        """The arms by their means, or differences or odds against the control, with intervals, and the boundary.

        Colours and markers are by `claim` or, without claims, by the answer; withdrawn arms are left out. Arrows: an
        interval goes on.

        Args:
            path: a file to write as well, PNG, SVG or PDF.

        Raises:
            ValueError: without a control of arms of several dimensions, and with blocks, where means do not compare;
                and where no mean is known yet.
        """
        figure = self._look(lambda state: drawn(state, self.boundary))
        if path is not None:
            save(figure, path)
        return figure

    @property
    def compares(self) -> bool:
        """Whether there is a control that arms are compared with."""
        return self._look(compares)

    def comparison(self, rate: str = "familywise") -> DataFrame:
        """A table of the arms that there are against the control, of `BetterThanControl`, at any time.

        `name`, `pulls`, `mean`, and the columns of `BetterThanControl.comparison`: differences and lifts with their
        intervals, p-values, and which arms are `better` or `worse`. With probability 1 - delta all intervals of one
        kind are right at all times. `attrs` has `level`, `rate` and the name of the `control`.

        Args:
            rate: of `better`. "familywise": no arm that is ever found is wrong, with probability 1 - delta; "fdr": of
                the arms found when you stop, a share of delta is wrong at most, on average; the set may shrink.

        Raises:
            ValueError: for other problems.
        """
        return self._look(lambda state: tables.comparison_table(state, choice("rate", rate, RATES)))

    def claims(self, rate: str = "familywise") -> DataFrame:
        """A table of what is already certain of single arms, so that a clear winner can be used before the rest is.

        Of each arm `name`; `claim`: "in" the answer, "out" of it, or "open"; `since`: how many results counted then;
        `event`: what it rests on. With probability 1 - `level` neither a claim nor the certified answer is ever wrong.
        A claim stays, unless results refute `sigma`. It is of the arms that there are: where arms come or go it is made
        anew, and `event` keeps the sentence of before, with its moment and its arms. It allows for a tolerance, slack
        or epsilon: "in" is within epsilon of the (k-th) best; "out" has k better ones, or, in AllGood, one that is
        clearly better.

        Args:
            rate: "fdr": the arms that are found by the results of now, of which a share of `level` is wrong at most, on
                average, when you stop. They may change, and none is "out". For Threshold, AllGood, BetterThanControl.

        Raises:
            ValueError: without a delta or certificate; of a table; for TopK by "aggregate" with an epsilon.
        """
        return self._look(lambda state: tables.claims_table(state, rate))

    @property
    def version(self) -> int:
        """The number of the last event; it grows with everything that happens."""
        return self._look(lambda state: state.upto)

    def close(self) -> None:
        """Give back what the database has lent."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """How many results there are."""
        return self._look(lambda state: state.count)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        problem, K = self._setup.task.problem, len(self._state.active)
        return f"Session({self._setup.agent}, {problem}, {K} arms, {self._log.address!r})"


def _refuse_changes(state: State) -> None:
    """Refuse to change the arms of a table, whose certificate is of all of them, and of a session that is over."""
    if state.setup.task.items:
        raise ValueError("arms of a table, or of blocks, cannot come or go: begin another session with them")
    if state.setup.wishes.get("common"):
        raise ValueError("with sigma='common', which all arms show together, arms cannot come or go")
    if state.run.over:
        raise ValueError(
            "the session is over, and its answer stays: arms cannot come or go any more. Begin another session with "
            "the arms that you want, and measure them again: results by which arms were chosen would mislead it"
        )


def _undoing(event: Event) -> Event:
    """The event that undoes this one."""
    return Event(0, UNDONE, event.arm, about=event.number)


def _person(who: object) -> str | None:
    """Who asks or tells; None where no name is given."""
    return None if who is None else _text("who", who) or None


def _text(what: str, text: object) -> str:
    """Text that every database can hold: without half a character (a surrogate), and without the character 0."""
    if not isinstance(text, str) or "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{what} must be text without the character 0 and halves of characters, got {text!r:.200}")
    return text
