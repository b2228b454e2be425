"""`State`, the sum of a session's events: the arms, the questions and results, and the state of the agent.

A `State` is a function of the events in order, without those that were undone: `fold`.

Results count in the order in which they were asked for. One that comes sooner than the result of an earlier question
waits in line for it; in problems in which an arm counts by itself, only for earlier questions about its own arm. A
result without a question has its place where it is recorded. So no result counts, or counts sooner, because of its
value: docs/certificates-theory.md has the proof. The rows of a table have an order of their own, see `course`.
"""

from __future__ import annotations

import functools
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby, islice, takewhile
from typing import Any

import numpy as np

from bandit_envs import PROBLEMS, Task
from bandit_envs.instances import Count
from bandit_envs.kernels import integer, number, orders, root_key, within_ends
from bandit_envs.problems import BLOCKS

from ..core.agent import Agent, Bools
from ..core.confidence import MOST
from ..evaluation.identity import described, versions
from .claims import Claimed, note_claims
from .course import Part, Result, Run, Statistics
from .design import Rules, cells_of_blocks, refuse_counts
from .log import ADDED, ASKED, COUNTED, FAILED, NOTE, RESULTS, TOLD, UNDONE, WITHDRAWN, Event
from .promise import Share, share_of
from .setup import MOST_DIGITS, WHOLE, Setup, arm_of
from .strata import Blocks, StrataRun

AHEAD = 32  # rows of a table that an arm is asked for beyond the first that lacks a result, and one for each question
EACH = 8  # results that may wait in line for each question without a result, and AHEAD more, before none is asked for
FEW_ROWS = 8  # of a table, that all arms have: with fewer the answer of now rests on all cells
FEWEST_ARMS = 2
RUN = re.compile(r"(.+) (\d{1,9}) \w+ (\d+(?:\.\d+)?(?:e[-+]?\d+)?)")  # what a run writes of itself: see `Running`
KINDS = (ASKED, TOLD, FAILED, COUNTED, UNDONE, ADDED, WITHDRAWN, NOTE)
# The kinds of events that a result answers, and that can be undone.
REFERS = {ASKED: (ASKED,), TOLD: (ASKED,), FAILED: (ASKED,), COUNTED: (), UNDONE: (ASKED, *RESULTS, WITHDRAWN)}


class State:
    """The state of a session.

    Args:
        setup: its facts. undone: numbers of the events that are left out, since later ones undo them.

    Attributes:
        events: {number: event}, all of them, undone ones too. upto: the number of the last one.
        names: of all arms that there have ever been. withdrawn: numbers of those that are no longer there.
        active: (K,) the numbers of the others. place: {number: its place among those}.
        statistics: of all arms. results: what they rest on, in order.
        asks: {number of an event that asked: (arm, who)}, those not answered yet, in order.
        lines: {arm, or 0 where there is one line for all: {place: its result, None before it has come}}, in order. The
            place is the number of the event that asked first, or of the result without a question.
        places: {number of an event that asked: its place}, but for those asked again. signs: {who: their last event}.
        order: of a table, its rows in the order of the session, (N,); rank: the place of each in it, (N,).
        cells: {(arm, row): the result}. row_asked: {number of an event that asked: the row}.
        changed: whether an arm has ever been added or withdrawn, also where that was undone.
        together: whether several questions have ever waited at the same time.
        run: the agent's course, over the active arms. claims: what is certain of single arms.
        resets: where the run's state was given up, as far as is known: (event, results so far).
        sum: a checksum of the events.
    """

    def __init__(self, setup: Setup, undone: Collection[int] = ()) -> None:
        self.setup, self.undone = setup, set(undone)
        self.events: dict[int, Event] = {}
        self.names, self.withdrawn = list(setup.names), set[int]()
        self.number = {name: arm for arm, name in enumerate(self.names)}
        self.statistics = Statistics.of(setup.task, len(self.names))
        self.results: list[Result] = []
        self.asks: dict[int, tuple[int, str | None]] = {}
        self.lines: defaultdict[int, dict[int, Event | None]] = defaultdict(dict)
        self.places: dict[int, int] = {}
        self.signs: dict[str | None, datetime] = {}
        self.in_order = setup.order == "asked" and not setup.task.items
        self.apart = PROBLEMS.find(setup.task.problem).local  # a line for each arm
        self.upto, self.changed, self.together = 0, False, False
        self.contradicted: tuple[int, list[str]] = (0, [])  # the event up to which `contradictions` has looked
        self.cells: dict[tuple[int, int], Any] = {}
        self.row_asked: dict[int, int] = {}
        self.order = self.rank = np.empty(0, np.int64)
        self.blocks = setup.task.distribution == BLOCKS  # rows without an end, in the order of their numbers
        if self.blocks:
            self.order = self.rank = np.arange(setup.task.items or 0)
        elif setup.task.items:
            self.order = orders(root_key(setup.public_seed)[:, None], np.zeros(1, np.uint64), setup.task.items)[0]
            self.rank = np.argsort(self.order)
        self.claims, self.sum, self.resets = Claimed(), 0, [(0, 0)]
        self.strata = Blocks(self) if "blocks" in setup.wishes and not self.blocks else None
        self._begin()

    # --- the fold -----------------------------------------------------------------------------------------------------

    def after(self, events: Sequence[Event]) -> State:
        """The state after further events: this one, moved on; or a new one where they undo what it has counted."""
        undone = undone_by(events)
        if counted := undone & self.events.keys():
            known = max((since for number, since in self.resets if number < min(counted)), default=0)
            return fold(self.setup, [*self.events.values(), *events], known)
        self.undone |= undone
        self.sum = zlib.crc32("".join(map(repr, events)).encode(), self.sum)
        self._take_in(events)
        return self

    def _take_in(self, events: Iterable[Event]) -> None:
        for _, together in groupby(events, key=_table):
            due: list[Event] = []
            for event in together:
                if what := self._damage(event):
                    raise ValueError(f"the store is damaged: its event {event.number} ({event.kind!r:.40}) {what}")
                self.upto, self.events[event.number] = event.number, event
                if event.at is not None:  # imported events are old
                    self.signs[event.who] = max(event.at, self.signs.get(event.who, event.at))
                self._count(event, due)
            for _, block in groupby(due, key=_table if self.strata is None else bool):  # a stratum closes as a whole
                if results := [result for one in block if (result := self._counted(one)) is not None]:
                    self.run.tell(results)
                self.claims.looks.add(len(self.results))
            if self.strata is not None and not due:  # a question closes one, too
                self.run.tell([])
            known = not self.changed and self.strata is None and not self.setup.task.items
            if known and self.run.fresh >= max(self.resets[-1][1] + 1, self.run.skips):
                self.resets.append((self.upto, self.run.fresh))

    def _count(self, event: Event, due: list[Event]) -> None:
        """Take in an event; the results that count from now on are added to `due`."""
        kind, arm = event.kind, int(event.arm or 0)
        if kind in (ADDED, WITHDRAWN) and event.number not in self.undone:
            note_claims(self)
        if kind in (ADDED, WITHDRAWN) and not self.changed:  # whether or not it was undone later
            self.changed = True
            if event.number in self.undone and self._share() != self.run.share:
                self._begin()
        if self.strata is not None and kind == ASKED and event.about is None:
            self.strata.asked(event)
        if self.strata is not None and kind == NOTE:
            self.strata.remark(event.text or "")
        if event.number in self.undone:
            if self.blocks and kind == ASKED and event.about is None:  # its place in the block stays empty
                due.append(event._replace(kind=FAILED, value=(math.nan, event.value)))
            return
        line = self.lines[arm if self.apart else 0]
        if kind in (ASKED, *RESULTS):
            self.asks.pop(event.about or 0, None)
            place = self.places.get(event.about or 0, event.number)
        if kind == ASKED:
            self.together |= len(self.asks) > 0
            self.run.together = self.together
            self.asks[event.number] = arm, event.who
            self.places.pop(event.about or 0, None)
            self.places[event.number] = place
            if self.in_order:
                line[place] = None
            if self.setup.task.items:
                self.row_asked[event.number] = int(event.value)
        elif kind in RESULTS and event.value is None:  # failed, and no row is left out
            line.pop(place, None)
        elif kind in RESULTS:
            line[place] = event
            if self.setup.task.items:  # no cell has two results
                found = np.asarray(event.value[:-1], np.float64).tolist()
                self.cells[arm, int(event.value[-1])] = tuple(found) if len(found) > 1 else found[0]
        elif kind == ADDED:
            self.number[str(event.text)] = len(self.names)
            self.names.append(str(event.text))
            self.statistics = self.statistics.with_one_more()
            self._begin()
        elif kind == WITHDRAWN:
            self.withdrawn.add(arm)
            self.asks = {number: ask for number, ask in self.asks.items() if ask[0] != arm}
            for place in [place for place in line if self.events[place].arm == arm]:
                if (result := line.pop(place)) is not None:  # it counts in the budget alone
                    self._counted(result)
            self._begin()
        while line and (first := line[next(iter(line))]) is not None:
            del line[next(iter(line))]
            due.append(first)

    def _counted(self, event: Event) -> Result | None:
        """Let a result count; what it means to the agent, None where the arm is no longer there."""
        arm, turned, D = int(event.arm or 0), self.setup.turned, self.setup.task.D
        sample: Any = event.result
        if event.kind == COUNTED:
            sample = Part.of(Count(*sample), self.statistics.ends[0], turned)
        else:
            sample = np.atleast_1d(np.asarray(sample, np.float64))
            sample[:D] = turned(sample[:D])
        self.results.append((arm, sample))
        if self.strata is not None:
            self.strata.told(event, arm, sample)
        if self.setup.task.items:
            sample = np.append(sample[:D], self.rank[int(sample[D])])
        self.statistics.add(arm, sample[:D] if self.setup.task.items else sample)
        return (self.place[arm], sample) if arm in self.place else None

    def _damage(self, event: Event) -> str:
        """What is wrong with an event that comes next, "" if nothing is."""
        kind, arm = event.kind, event.arm
        if kind not in KINDS:
            return "is none that this version knows"
        if event.about is not None or kind == UNDONE:
            about = self.events.get(event.about or 0)
            if about is None:
                return f"refers to the event {event.about!r:.40}, which there is not before it"
            if kind in REFERS and (about.kind not in REFERS[kind] or about.arm != arm):
                return f"refers to the event {about.number}, which is {about.kind!r:.40} of the arm {about.arm}"
            if kind in (ASKED, *RESULTS) and about.number not in self.asks and event.number not in self.undone:
                return f"answers the question {about.number}, which does not wait for a result"
        if kind == ADDED:
            known = arm != len(self.names) or not event.text or event.text in self.number
            return "adds no new arm" if known else ""
        if kind not in (ASKED, *RESULTS, WITHDRAWN):
            return ""
        if arm is None or not 0 <= arm < len(self.names):
            return f"names the arm {arm!r:.40}, and there are {len(self.names)}"
        if arm in self.withdrawn:
            return f"names the arm {arm}, which has been withdrawn"
        if kind == WITHDRAWN and arm == self.control_arm and event.number not in self.undone:
            return f"withdraws the arm {arm}, the control"
        if kind == WITHDRAWN and len(self.active) <= FEWEST_ARMS and event.number not in self.undone:
            return f"leaves fewer than {FEWEST_ARMS} arms"
        N, D = self.setup.task.items, self.setup.task.D
        if N and kind != WITHDRAWN:
            is_result = kind in RESULTS
            if isinstance(event.value, tuple) is not is_result or is_result and len(event.value) != D + 1:
                return f"has the value {event.value!r:.80}, and needs {'a score and a row' if is_result else 'a row'}"
            row = event.value[-1] if is_result else event.value
            if isinstance(row, bool) or not isinstance(row, (int, float)) or not 0 <= row < N or row != int(row):
                return f"is of the row {row!r:.40}, and there are {N}"
            waits = not is_result and event.about is None and self.ask_answered_by(arm, None, row=int(row)) is not None
            if event.number not in self.undone and (waits or (arm, int(row)) in self.cells):
                return f"is of a cell that has a result or a question, the arm {arm} in the row {row:g}"
            if event.about is not None and self.row_asked.get(event.about, row) != row:
                return f"answers the question {event.about}, which is of another row"
        if kind in RESULTS:
            try:
                value = event.value[:-1] if N else event.result
                if event.stratum is not None and self.strata is None:
                    return f"has the day or plate {event.stratum!r:.80}, and the session has none"
                value = value[0] if N and (D == 1 or value[0] is None) else value
                if kind == COUNTED:
                    count_of(self.setup.own_task, Count(*value), self)
                elif kind == TOLD or value is not None:
                    sample_of(self.setup.own_task, value)
            except (ValueError, TypeError) as error:
                return f"has the value {event.value!r:.80}: {error}"
        return ""

    def _begin(self) -> None:
        """The agent begins on the arms that there are, with their results."""
        self.active = np.array([arm for arm in range(len(self.names)) if arm not in self.withdrawn], np.int64)
        self.place = {int(arm): place for place, arm in enumerate(self.active)}
        share = self._share()
        agent, task, delta = self.setup.made_for(self.place, self.statistics.pulls, share.ratio)
        facts = agent, task, self.setup.public_seed, share, delta, self.changed
        self.run = Run(*facts) if self.strata is None else StrataRun(*facts, strata=self.strata)
        self.run.together = self.together
        if (off := self.setup.taken_off) is not None:  # means stay those of the scores themselves
            less, ends = np.zeros((*off.shape, 1)), self.statistics.ends
            self.run.seen = self.run.seen._replace(off=off[:, self.order], less=less, ends=ends)
        self.claims.now = None
        if self.results:
            self.run.begin([(self.place[arm], sample) for arm, sample in self.results if arm in self.place])

    @functools.cached_property
    def control_arm(self) -> int | None:
        """The control, where there is one."""
        return self.setup.task.make_problem().control_arm

    def refuse_control(self, arm: int) -> None:
        """Refuse to withdraw the control."""
        if arm == self.control_arm:
            raise ValueError(f"the control, {self.names[arm]!r:.200}, cannot be withdrawn: others are compared with it")

    def _share(self) -> Share:
        """What the arms that there are have of delta."""
        setup, first = self.setup, len(self.setup.names)
        return share_of(setup.task, first, self.active, self.changed, len(self.names), setup.reserve)

    @functools.cached_property
    def _identity(self) -> str:
        """All that decisions depend on, but for the events."""
        return repr((self.setup.facts(), versions(), described(self.run.agent, alike=True)))

    def mark(self, since: int | None = None) -> tuple[int, int]:
        """After how many results decisions leave no trace in what follows, and a checksum of that and of all events.

        The agent's state was given up then, and is built again from the statistics, so that a fold may leave out the
        decisions before. The checksum tells whether the events, the facts, the agent and the version are those of then.
        """
        if since is None:
            ours = isinstance(self.run.agent, Agent) and not self.run.agent._brought and not self.changed
            since = self.resets[-1][1] if ours else 0
        return since, zlib.crc32(f"{since} {self.sum} {self._identity}".encode()) if since else 0

    # --- what follows -------------------------------------------------------------------------------------------------

    @property
    def told(self) -> list[Event]:
        """All results, those that were undone too, in order."""
        return [event for event in self.events.values() if event.kind in RESULTS]

    @property
    def not_undone(self) -> list[Event]:
        """The results of `told` that were not undone."""
        return [event for event in self.told if event.number not in self.undone]

    @property
    def remaining(self) -> int | None:
        """Measurements, or money, that the budget leaves, or measurements of `max_pulls`; None without one."""
        task = self.setup.task
        if task.cost is not None and task.budget is not None:
            return max(int(task.purse - (self.money or 0.0)), 0)
        limits = [limit for limit in (task.budget, task.max_pulls) if limit is not None]
        return max(min(limits) - self.count, 0) if limits else None

    @property
    def money(self) -> float | None:
        """What the measurements have cost; None without prices."""
        if not isinstance(self.setup.task.cost, tuple):
            return None if self.setup.task.cost is None else float(len({row for _, row in self.cells}))
        pulls = self.statistics.pulls.copy()
        for event in self.late:
            pulls[event.arm or 0] += event.size
        return float(np.dot(self.setup.prices(len(pulls)), pulls))

    @property
    def count(self) -> int:
        """How many measurements there are."""
        return self.statistics.spent + sum(event.size for event in self.late)

    @property
    def late(self) -> list[Event]:
        """The results that wait in line, line by line."""
        return [event for line in self.lines.values() for event in line.values() if event is not None]

    @property
    def waiting(self) -> dict[int, int]:
        """How many results wait for a question, the first of its line: {number of the event that asked: how many}."""
        if self.setup.task.items:  # a row, for earlier ones of its arm
            ends = {arm: (arm, int(self.order[self.run.rows(arm)])) for arm, rows in self.run.ahead.items() if rows}
            asked = {(arm, self.row_asked[number]): number for number, (arm, _) in self.asks.items()}
            return {asked[cell]: len(self.run.ahead[arm]) for arm, cell in ends.items() if cell in asked}
        now = {self.places.get(number): number for number in self.asks}
        found = [(next(iter(line)), sum(x.size for x in line.values() if x)) for line in self.lines.values() if line]
        return {now[place]: count for place, count in found if count}

    def orphans(self, who: str | None, seconds: float) -> list[int]:
        """The numbers of the questions of others who have given no sign for so long."""
        now, asks = datetime.now(UTC).timestamp(), () if self.run.over else self.asks.items()
        silent = {one: now - at.timestamp() for one, at in self.signs.items() if one != who}
        return [n for n, (_, one) in asks if silent.get(one, 0.0) > max(seconds, run_of(self.events[n])[2])]

    def asked_again(self, numbers: Iterable[int], who: str | None, run: str | None = None) -> list[Event]:
        """Open questions, asked once more in their places."""
        return [Event(0, ASKED, self.asks[n][0], self.row_asked.get(n), n, who, run) for n in numbers]

    def owed(self) -> list[dict[str, Any]]:
        """See `Session.owed`."""
        now, waiting = datetime.now(UTC), self.waiting
        found: dict[str | None, dict[str, Any]] = {}
        for about, (_, who) in self.asks.items():
            silent = max((now - self.signs.get(who, now)).total_seconds(), 0.0)
            one = found.setdefault(who, {"who": who, "questions": 0, "results": 0, "silent": silent})
            one["questions"] += 1
            one["results"] += waiting.get(about, 0)
        return [*found.values()]

    def cells_wanted(self, count: int, who: str | None = None) -> list[tuple[int, int | None]]:
        """The arms to ask for next, each with its row of a table, the next without a result or question; else None."""
        if not self.setup.task.items:
            return [(arm, None) for arm in self.wanted(count, who)]
        if self.blocks:
            return cells_of_blocks(self, count, who)
        found = list[tuple[int, int | None]]()
        taken = {(arm, self.row_asked[number]) for number, (arm, _) in self.asks.items()}
        for arm in self.wanted(count):
            first = int(self.run.seen.pulls[self.place[arm]])  # those before have results
            near = self.order[first : first + AHEAD + len(taken)].tolist()
            row = next((row for row in near if (arm, row) not in self.cells and (arm, row) not in taken), None)
            if row is not None:
                taken.add((arm, row))
                found.append((arm, row))
        return found

    def wanted(self, count: int, who: str | None = None) -> list[int]:
        """The arms to ask a person for next; fewer than `count` where there is nothing more to ask for now."""
        left, paid = self.remaining, self.setup.task.cost  # what can be paid the run looks at
        left = count if left is None or paid else min(count, left - len(self.asks))
        if left <= 0 or self.run.over or len(self.late) > AHEAD + EACH * len(self.asks):
            return []
        pending = [self.place[arm] for arm in self._expected()]
        free = {"per_plate", "controls", "raters", "repeats"}.isdisjoint(self.setup.wishes)  # any arm at any time
        wishes = self.run.wishes(pending) if free else Rules(self, who).choices(self.run, pending)
        return [int(self.active[arm]) for arm in islice(wishes, left)]

    def _expected(self) -> list[int]:
        """The arms of results that do not count yet, one for a count; of a table, up to the first row not asked."""
        if not self.setup.task.items:
            return [arm for arm, _ in self.asks.values()] + [int(event.arm or 0) for event in self.late]
        known, found = {(arm, self.row_asked[number]) for number, (arm, _) in self.asks.items()}, list[int]()
        for arm in self.active.tolist():
            cells = ((arm, int(row)) for row in self.order[self.run.rows(self.place[arm]) :])
            found += [arm for _ in takewhile(lambda cell: cell in self.cells or cell in known, cells)]
        return found

    def answer(self) -> Bools:
        """The answer as of now, of all arms."""
        found, run = np.zeros(len(self.names), np.bool_), self.run
        tabled = self.setup.task.items and not self.blocks
        if tabled and not run.over and run.seen.pulls.min() < FEW_ROWS:  # more is known of later rows
            found[self.active] = run.problem.plug_in(self.statistics.at(self.active).means())[0]
        else:
            found[self.active] = run.present_answer(self.seen)
        return found

    @property
    def seen(self) -> Statistics:
        """What the arms that there are have shown; of a table, as far as no earlier row is missing."""
        return self.run.all_seen() if self.setup.task.items else self.statistics.at(self.active)

    @property
    def certificate(self) -> float | None:
        """The probability with which the answer is right, at least; see `Session.certificate`."""
        answer, seen = self.run.answer, self.run.final
        if answer is None or seen is None:
            answer, seen = self.answer()[self.active], self.seen
        level = self.run.level_of(answer, seen)
        return None if level is None else 1.0 - level

    @property
    def spread(self) -> float:
        """The standard deviation of the results of one arm, of all arms together; 0 where none was repeated."""
        seen = self.statistics.at(self.active)
        spare = int(np.maximum(seen.scored - 1, 0).sum())
        return float(np.sqrt((seen.scored[:, None] * seen.variance).sum(axis=0).max() / spare)) if spare else 0.0

    # --- what people say ----------------------------------------------------------------------------------------------

    def arm(self, arm: int | str) -> int:
        """The number of an arm that can be measured, by its number or name; where a name is a number, by its name."""
        try:
            found = arm_of(arm, self.number)
        except LookupError:
            known = "the arms are " + ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
            known = "no open question has this code either" if self.setup.wishes.get("blind") else known
            raise ValueError(f"there is no arm {arm!r:.200}; {known}") from None
        return self.present(found)

    def present(self, found: int) -> int:
        """The number of an arm, if it has not been withdrawn."""
        if found in self.withdrawn:
            raise ValueError(f"{self.called(found)} has been withdrawn")
        return found

    def called(self, arm: int) -> str:
        """An arm in an error, whose name a blind session keeps from those who measure."""
        return f"arm {arm}" if self.setup.wishes.get("blind") else f"the arm {self.names[arm]!r:.200}"

    def row(self, arm: int, item: object, who: str | None, taken: Collection[int] = ()) -> int:
        """The row of a result of this arm, by its number or name; None: that of the oldest question not yet `taken`."""
        items, N, name = self.setup.items, self.setup.task.items or 0, self.called(arm)
        if item is None:
            about = self.ask_answered_by(arm, who, taken)
            if about is None:
                raise ValueError(f"which item is the result of {name} of? No question about it waits: say item=")
            return self.row_asked[about]
        text = str(item).strip()
        text = text if items is not None and text in items else WHOLE.sub(r"\1", text)
        if items is not None and text in items:
            return items.index(text)
        if items is not None or isinstance(item, str) and not (text.isdecimal() and len(text) <= MOST_DIGITS):
            known = f"0 .. {N - 1}" if items is None else ", ".join(items[:8]) + ", ..." * (N > 8)
            raise ValueError(f"there is no item {item!r:.200}; they are {known:.200}")
        return integer("item", int(text) if isinstance(item, str) else item, 0, N - 1)

    def item(self, row: int) -> int | str:
        """The name of a row of a table, or its number where it has none."""
        return row if self.setup.items is None else self.setup.items[row]

    def ask_answered_by(
        self, arm: int, who: str | None, taken: Collection[int] = (), row: int | None = None, stratum: Any = None
    ) -> int | None:
        """The question that a result of an arm, and row or stratum, answers: the oldest of this person, or of all."""
        asks = [
            (asked != who, one)
            for one, (at, asked) in self.asks.items()
            if at == arm
            and one not in taken
            and row in (None, self.row_asked.get(one))
            and (self.strata is None or self.strata.is_of(one, stratum))
        ]
        return min(asks)[1] if asks else None

    def refuse_unnamed(self, arm: int, who: str | None, taken: Collection[int], place: str = "") -> None:
        """Refuse results of an arm that name no question, where one of several is left open: which came late?"""
        asks = [one for one, (at, asked) in self.asks.items() if at == arm and asked == who]
        asks = asks or [one for one, (at, _) in self.asks.items() if at == arm]
        if len(asks) > 1 and not set(asks) <= set(taken):
            text = f"{place}{len(asks)} questions about {self.called(arm)} are open, {', '.join(map(str, asks[:5]))}"
            how = "hand over the question (--question) that it answers, or all their results in one call"
            how += "; of a table of wells say plate= (--plate)" * ("plate" in self.setup.wishes)
            raise ValueError(f"{text}{', ..' * (len(asks) > 5)}, and results count in the order of asking: {how}")


def fold(setup: Setup, events: Sequence[Event], skips: int = 0) -> State:
    """The state to which all events of a session lead; `skips`: see `State.mark`."""
    state = State(setup, undone_by(events))
    state.run.skips = skips
    return state.after(events)


def run_of(event: Event) -> tuple[str, int, float]:
    """The host and process of the run that has asked a question, and the seconds between signs of life; "", 0, 0."""
    found = RUN.fullmatch(event.text or "")
    return (found[1], int(found[2]), float(found[3])) if found else ("", 0, 0.0)


def undone_by(events: Iterable[Event]) -> set[int]:
    """The numbers of the events that some of these undo."""
    return {event.about or 0 for event in events if event.kind == UNDONE}


def _table(event: Event) -> Any:
    """What the results of one table, and no others, have in common: the name of the table, and the time."""
    return (event.text, event.at) if event.kind in (TOLD, COUNTED) and event.text is not None else event.number


def limits_of(task: Task) -> tuple[float, float]:
    """The lowest and the highest value of a measurement."""
    return task.support if task.support is not None and task.distribution != "gaussian" else (-MOST, MOST)


def count_of(task: Task, count: Count, state: State | None = None) -> Count:
    """A count of measurements, checked; a ValueError where it, or any count of the session, is impossible."""
    if state is not None:
        refuse_counts(state)
    low, high = limits_of(task)
    if count.successes is not None and (low, high) != (0, 1):
        raise ValueError(f"successes are of values that are 0 or 1, or between: of {low:g} to {high:g} say mean and sd")
    if count.mean is not None and task.distribution == "bernoulli":
        raise ValueError(f"measurements are 0 or 1: say successes, got {count}")
    return count.checked(low, high)


def sample_of(task: Task, value: Any) -> Any:
    """What was measured: a float, or a tuple of floats, one for each dimension."""
    low, high = limits_of(task)
    if task.D == 1:
        right = (low, high) == (0, 1) and isinstance(value, (bool, np.bool_))  # or wrong
        found = number("a measurement", float(value) if right else within_ends(value, low, high), low, high)
        if task.distribution == "bernoulli" and found not in (low, high):
            raise ValueError(f"a measurement must be {low:g} or {high:g}, got {value!r:.200}")
        return found
    try:
        values = list(value)
    except TypeError:
        values = []
    if isinstance(value, str) or len(values) != task.D:
        raise ValueError(f"a measurement must be {task.D} numbers, got {value!r:.200}")
    ranges = task.ranges or ((low, high),) * task.D
    return tuple(
        number("a measurement", within_ends(one, *ends), *ends) for one, ends in zip(values, ranges, strict=True)
    )
