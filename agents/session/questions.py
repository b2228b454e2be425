"""Questions, and results: which question each of them answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from bandit_envs.instances import Count

from .design import asked_by, refuse_parts
from .fold import State, count_of, sample_of
from .log import COUNTED, TOLD, Event
from .tables import already

Row = tuple[str, Any, Any, Any]  # a place for errors, an arm, a value, and an item or None


class Ask(NamedTuple("Ask", [("number", int), ("arm", int), ("who", "str | None")])):
    """A question that waits for its result: the number of the event, the arm, who asks; of a table, also `item`."""

    item: int | str | None = None
    code: str | None = None  # of a blind session, what stands for the question
    plate: int | None = None  # with plates, its number from 1
    well: str | None = None  # in it, as A1


class Question(int):
    """What to measure next: its arm, also as `arm`; of a table, `item`, the row; `number` of the event that asked.

    Of a blind session, `code` stands for it. With plates it has the `well`, as A1, of the `plate`, from 1; else None.
    """

    number: int | None
    item: int | str | None = None
    code: str | None = None
    plate: int | None = None
    well: str | None = None

    def __new__(cls, arm: int, number: int | None = None) -> Self:
        made = super().__new__(cls, arm)
        made.number = number
        return made

    @property
    def arm(self) -> int:
        """The number of the arm."""
        return int(self)


def placed(results: Any, tabled: bool) -> list[Row]:
    """Results with their place, "" of a single one: an arm, a value, and an item or, where none is named, None."""
    try:
        rows = list(results)
    except TypeError:
        raise ValueError(f"results must be pairs of an arm and a value, got {results!r:.200}") from None
    for i, row in enumerate(rows, 1):
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__") or not 2 <= len(row) <= 2 + tabled:
            raise ValueError(f"row {i}: a result must be a pair of an arm and a value, got {row!r:.200}")
    return [(f"row {i}: " if len(rows) > 1 else "", *row, *(None,) * (3 - len(row))) for i, row in enumerate(rows, 1)]


def events_of(state: State, rows: Iterable[Row], who: str | None, text: str | None) -> list[Event]:
    """The events of results; `text`: of which table. Cells of it that are known with this value are left out."""
    made = _Results(state, who, text)
    for place, *row in rows:
        try:
            made.add(place, *row)
        except ValueError as error:
            raise ValueError(f"{place}{error}") from None
    for one, place in made.alone.items() if state.in_order and not state.run.over else ():
        state.refuse_unnamed(one, who, made.taken, place)
    if state.blocks:
        refuse_parts(state, made.new)
    if state.strata is not None:
        for event in made.new:
            state.strata.refuse_late(event)
    return made.new


class _Results:
    """The results of one call: their events, the questions that are taken, and the cells of a table.

    `alone` has the arms that results name without a question, and where the first of them stands.
    """

    def __init__(self, state: State, who: str | None, text: str | None) -> None:
        self.state, self.task, self.who, self.text = state, state.setup.own_task, who, text
        self.new, self.taken, self.alone = list[Event](), set[int](), dict[int, str]()
        self.cells = dict(state.cells)

    def add(self, place: str, arm: Any, value: Any, item: Any) -> None:
        """Add a result, checked."""
        state, is_question, row = self.state, isinstance(arm, (Ask, Question)), None
        name = None if state.strata is None or item is None else state.strata.named(item)
        if isinstance(value, Count):
            value = count_of(self.task, value, state)
            if is_question or item is not None and state.strata is None:
                raise ValueError(f"a count answers no question: name its arm alone, got {arm!r:.80}")
            value = value if name is None else (*value, name)
            self.new.append(Event(0, COUNTED, state.arm(arm), value, None, self.who, self.text))
            return
        if (coded := asked_by(state, arm)) is not None:
            if coded not in state.asks or coded in self.taken:
                raise ValueError(f"the question {arm} has its result already, or is not asked any more")
            arm, is_question = Ask(coded, *state.asks[coded]), True
        about = arm.number if is_question else None
        one = state.present(arm.arm) if is_question else state.arm(arm)
        sample = sample_of(self.task, value)
        asked = about is not None and about not in state.undone
        if asked and (about not in state.places or state.events[about].arm != one):
            raise ValueError(f"the question {about} was asked again, or is not about this arm")
        if about and asked and state.strata is not None and not state.strata.is_of(about, name):
            raise ValueError(f"the question {about} is not of the {state.strata.kind} {name!r:.80}")
        item = arm.item if item is None and is_question else item
        item = state.item(state.row_asked[about]) if item is None and about in state.row_asked else item
        if item is not None and not self.task.items and state.strata is None:
            raise ValueError(f"there are no items in this session, got item={item!r:.200}")
        if self.task.items:
            row = state.row(one, item, self.who, self.taken)
            known = self.cells.setdefault((one, row), sample)
            if (one, row) in state.cells or known is not sample:
                if self.text is not None and known == sample:
                    return
                raise ValueError(already(state, one, row, known))
            sample = *np.atleast_1d(sample).tolist(), row
        if about is None or self.task.items:
            about = state.ask_answered_by(one, self.who, self.taken, row, name)
            if about is not None and not self.task.items:
                self.alone.setdefault(one, place)
        elif about in self.taken or about not in state.asks:
            about = None  # it has a result, or was undone: another one is not asked for
        sample = sample if name is None or about is not None else (sample, name)
        self.taken |= set() if about is None else {about}
        by = arm.who if self.who is None and isinstance(arm, Ask) else self.who
        self.new.append(Event(0, TOLD, one, sample, about, by, self.text))


def refuse_beyond_budget(state: State, results: Sequence[Event], of: str) -> None:
    """Refuse results of a table, or counts, beyond what the budget leaves."""
    if not of and not any(one.kind == COUNTED for one in results) or (left := state.remaining) is None:
        return
    count = sum(one.size for one in results)
    prices = state.setup.prices(max([len(state.names), *(1 + (one.arm or 0) for one in results)]))
    if isinstance(prices, tuple):
        paid = sum(prices[one.arm or 0] * one.size for one in results)
        if paid > state.setup.task.purse - (state.money or 0.0):
            raise ValueError(f"{of}{count} results cost {paid:g}, and the budget leaves {left}")
    elif prices is None and count > left:
        raise ValueError(
            f"{of}{count} results, and the budget leaves {left}. Results count as part of "
            "the budget, and those beyond it would not count in the answer: begin a session with a larger one"
        )
