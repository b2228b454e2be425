"""What the events of a session add up to: the arms, what has been asked and told, and where the agent is.

A `Book` is a function of the events, in order, those that were undone left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import __version__

from . import arrays as plain
from .promise import Share, share_of
from .run import Result, Run
from .setup import Setup
from .statistics import Statistics, sample_of
from .store import ADDED, ASKED, NOTE, TOLD, UNDONE, WITHDRAWN, Event

__all__ = ["FEWEST_ARMS", "Book"]

Floats = NDArray[np.float64]

FEWEST_ARMS = 2
KINDS = (ASKED, TOLD, UNDONE, ADDED, WITHDRAWN, NOTE)


class Book:
    """The state of a session.

    Args:
        setup: its facts.
        undone: numbers of the events that were undone.

    Attributes:
        names: of all arms that there have ever been. withdrawn: numbers of those that are no longer there.
        active: (K,) the numbers of those that are. place: {number: its place among those}.
        statistics: of all arms. asks: {number of an event that asked: (arm, who)}, those not answered yet, in order.
        changed: whether an arm has ever been added or withdrawn, also where that was undone.
        upto: the number of the last event. run: the agent's course, over the active arms.
    """

    def __init__(self, setup: Setup, undone: Collection[int] = ()) -> None:
        self.setup, self.undone = setup, frozenset(undone)
        self.names, self.withdrawn = list(setup.names), set[int]()
        self.number = {name: arm for arm, name in enumerate(self.names)}
        self.statistics = Statistics.of(len(self.names), setup.task.D)
        self.asks: dict[int, tuple[int, str | None]] = {}
        self.upto, self.changed = 0, False
        self._told_arms, self._told = np.empty(64, np.int64), np.empty((64, setup.task.D))
        self.count = 0
        self._begin()

    @property
    def told(self) -> tuple[NDArray[np.int64], Floats]:
        """All results in order: the arms (T,), and what was measured (T, D)."""
        return self._told_arms[: self.count], self._told[: self.count]

    @property
    def remaining(self) -> int | None:
        """Measurements that the budget, or `max_pulls`, leaves; None without one."""
        task = self.setup.task
        limits = [limit for limit in (task.budget, task.max_pulls) if limit is not None]
        return max(min(limits) - self.count, 0) if limits else None

    @property
    def lost(self) -> int:
        """Measurements of arms that have been withdrawn: they count as part of the budget."""
        return int(self.statistics.pulls[sorted(self.withdrawn)].sum())

    def apply(self, event: Event) -> bool:
        """Take in the next event; False if it undoes one that is in the book already, which must then be made anew.

        Raises:
            ValueError: for what no session has written, and where the agent does not go on with these arms.
        """
        return self.apply_all([event])

    def apply_all(self, events: Iterable[Event]) -> bool:
        """Take in the next events, as `apply`; the agent decides after all results of a table at once."""
        for _, together in groupby(events, key=_table):
            results: list[Result] = []
            if not all(self._apply(event, results) for event in together):
                return False
            if results:
                self.run.tell(results)
        return True

    def _apply(self, event: Event, results: list[Result]) -> bool:
        """Take in an event, but for what it means to the agent: results of arms that are there are added to a list."""
        if what := self._damage(event):
            raise ValueError(f"the store is damaged: its event {event.number} ({event.kind!r:.40}) {what}")
        self.upto = event.number
        if event.kind in (ADDED, WITHDRAWN) and not self.changed:  # whether or not it was undone later
            self.changed = True
            if event.number in self.undone and self._share() != self.run.share:
                self._begin()
        if event.number in self.undone or event.kind == NOTE:
            return True
        if event.kind == ASKED:
            self.asks[event.number] = (int(event.arm or 0), event.who)
        elif event.kind == TOLD:
            arm, sample = int(event.arm or 0), np.atleast_1d(np.asarray(event.value, np.float64))
            self._record(arm, sample)
            results += [(self.place[arm], sample)] if arm in self.place else []
            self.asks.pop(event.about or 0, None)
        elif event.kind == ADDED:
            self.number[str(event.text)] = len(self.names)
            self.names.append(str(event.text))
            self.statistics = self.statistics.with_one_more()
            self._begin()
        elif event.kind == WITHDRAWN:
            self.withdrawn.add(int(event.arm or 0))
            self.asks = {number: ask for number, ask in self.asks.items() if ask[0] not in self.withdrawn}
            self._begin()
        elif event.kind == UNDONE:
            if event.about in self.undone:  # left out from the beginning
                return True
            return self.asks.pop(event.about or 0, None) is not None
        return True

    def _damage(self, event: Event) -> str:
        """What is wrong with an event that comes next, "" if nothing is."""
        if event.kind not in KINDS:
            return "is none that this version knows"
        if event.kind == ADDED:
            known = event.arm != len(self.names) or not event.text or event.text in self.number
            return "adds no new arm" if known else ""
        if event.kind in (ASKED, TOLD, WITHDRAWN) and not (
            isinstance(event.arm, (int, np.integer)) and 0 <= event.arm < len(self.names)
        ):
            return f"tells of the arm {event.arm!r:.40}, and there are {len(self.names)}"
        if event.kind in (ASKED, TOLD, WITHDRAWN) and event.arm in self.withdrawn:
            return f"tells of the arm {event.arm}, which has been withdrawn"
        if event.kind == WITHDRAWN and len(self.active) <= FEWEST_ARMS and event.number not in self.undone:
            return f"leaves fewer than {FEWEST_ARMS} arms"
        if event.kind == TOLD:
            try:
                sample_of(self.setup.task, event.value)
            except ValueError as error:
                return f"has the value {event.value!r:.80}: {error}"
            if event.about is not None and event.about not in self.asks and event.number not in self.undone:
                return f"answers the question {event.about!r:.40}, which does not wait for a result"
        return ""

    def imagined(self) -> Run:
        """The agent's course if all that has been asked had been told."""
        return self.run.imagined(self.place[arm] for arm, _ in self.asks.values())

    def wanted(self, count: int) -> list[int]:
        """The arms to ask for next; fewer than `count` where there is nothing more to ask for now."""
        left = count if self.remaining is None else min(count, self.remaining - len(self.asks))
        found: list[int] = []
        if left <= 0 or self.run.over:
            return found
        run = self.imagined()
        while len(found) < left and not run.over:
            arm = run.arm
            found.append(int(self.active[arm]))
            if len(found) < left:
                run = run.imagined([arm])
        return found

    def answer(self) -> NDArray[np.bool_]:
        """The answer as of now, of all arms."""
        found = np.zeros(len(self.names), np.bool_)
        found[self.active] = self.run.present_answer(self.statistics.at(self.active))
        return found

    def ask_answered_by(self, arm: int, who: str | None, taken: Collection[int] = ()) -> int | None:
        """The question that a result of this arm answers: the oldest of this person, else the oldest; None if none.

        Args:
            arm: the arm. who: has told the result. taken: questions that other results have answered.
        """
        asks = [(asked != who, one) for one, (at, asked) in self.asks.items() if at == arm and one not in taken]
        return min(asks)[1] if asks else None

    def _record(self, arm: int, sample: Floats) -> None:
        if self.count == len(self._told_arms):
            self._told_arms = np.concatenate([self._told_arms, np.empty_like(self._told_arms)])
            self._told = np.concatenate([self._told, np.empty_like(self._told)])
        self._told_arms[self.count], self._told[self.count] = arm, sample
        self.count += 1
        self.statistics.add(arm, sample)

    def _begin(self) -> None:
        """The agent begins on the arms that there are, with what has been told of them."""
        self._set_arms()
        self.run = run = self._new_run()
        if self.count == 0:
            return
        results = zip(*self.told, strict=True)
        told = ((self.place[int(arm)], sample.copy()) for arm, sample in results if int(arm) in self.place)
        if run.resumes:
            run.start_from(self.statistics.at(self.active), told)
            return
        for result in told:
            run.tell([result])

    def _new_run(self) -> Run:
        """The course of the agent on the arms that there are, before any result."""
        setup, share = self.setup, self._share()
        agent, task, delta = setup.made_for(len(self.active), self.lost, share.ratio)
        return Run(agent, task, setup.public_seed, share, delta, self.changed)

    def _share(self) -> Share:
        """What the arms that there are have of delta."""
        setup, first = self.setup, len(self.setup.names)
        return share_of(setup.task, first, self.active, self.changed, len(self.names), setup.reserve)

    def _set_arms(self) -> None:
        self.active = np.array([arm for arm in range(len(self.names)) if arm not in self.withdrawn], np.int64)
        self.place = {int(arm): place for place, arm in enumerate(self.active)}

    # --- states that are kept -----------------------------------------------------------------------------------------

    def snapshot(self) -> bytes | None:
        """The state as plain arrays; None where the agent's memory is of a form that cannot be written so.

        Of an agent that reads histories there is none: its course is taken from the events.
        """
        run, seen, store = self.run, self.run.seen, list[Any]()
        if run.course is not None:
            return None
        try:
            memory = plain.written(run.memory, store)
        except plain.NotPlainError:
            return None
        form = {
            "version": __version__,
            "names": self.names,
            "withdrawn": sorted(self.withdrawn),
            "changed": self.changed,
            "asks": [[number, arm, who] for number, (arm, who) in self.asks.items()],
            "upto": self.upto,
            "run": {"arm": run.arm, "left": run.left, "over": run.over, "told": run.told},
            "memory": memory,
        }
        arms, told = self.told
        kept = {
            "told_arms": arms,
            "told": told,
            **{f"all_{name}": array for name, array in vars(self.statistics).items()},
            **{f"seen_{name}": array for name, array in vars(seen).items()},
            **({} if run.final is None else {f"final_{name}": array for name, array in vars(run.final).items()}),
            "answer": np.zeros(0, np.bool_) if run.answer is None else run.answer,
            **{f"memory_{number}": array for number, array in enumerate(store)},
        }
        return plain.packed(form, kept)

    @classmethod
    def restored(cls, setup: Setup, undone: Collection[int], data: bytes) -> Book | None:
        """The book of a snapshot; None where it is of another version, or does not fit."""
        try:
            form, kept = plain.unpacked(data)
            if form["version"] != __version__:
                return None
            book = cls(setup, undone)
            book.names, book.withdrawn = list(form["names"]), set(form["withdrawn"])
            book.changed = bool(form["changed"])
            book.number = {name: arm for arm, name in enumerate(book.names)}
            book.asks = {number: (arm, who) for number, arm, who in form["asks"]}
            book.upto, book.count = form["upto"], len(kept["told_arms"])
            room = max(64, book.count)
            book._told_arms, book._told = np.empty(room, np.int64), np.empty((room, setup.task.D))
            book._told_arms[: book.count], book._told[: book.count] = kept["told_arms"], kept["told"]
            book.statistics = _statistics(kept, "all_")
            book._set_arms()
            run = book.run = book._new_run() if book.changed else book.run
            run.seen, state = _statistics(kept, "seen_"), form["run"]
            run.arm, run.left, run.over = int(state["arm"]), int(state["left"]), bool(state["over"])
            run.told, run.final = int(state["told"]), _statistics(kept, "final_") if run.over else None
            if not run.resumes:
                for arm, sample in zip(*book.told, strict=True):
                    if int(arm) in book.place:
                        run.bank.setdefault(book.place[int(arm)], []).append(sample.copy())
            run.answer = kept["answer"] if kept["answer"].size else None
            if form["memory"] != {"value": None}:
                numbered = {
                    int(name.removeprefix("memory_")): array for name, array in kept.items() if name[:7] == "memory_"
                }
                new = run.agent.begin_anew(Statistics.of(run.task.K, run.task.D).observation(-1, 0))
                run.memory = plain.read(form["memory"], numbered, new)
                if (mark := getattr(new, "_made_by", None)) is not None:
                    object.__setattr__(run.memory, "_made_by", mark)
            return book
        except (plain.NotPlainError, KeyError, ValueError, TypeError, OSError, AttributeError):
            return None


def _table(event: Event) -> Any:
    """What the results of one table have in common, and nothing else has: the name of the table, and the time."""
    return (event.text, event.at) if event.kind == TOLD and event.text is not None else event.number


def _statistics(kept: Any, prefix: str) -> Statistics:
    """Statistics of a snapshot."""
    return Statistics(*(kept[f"{prefix}{name}"].copy() for name in ("pulls", "total", "mean", "variance")))
