"""The tables of a session: it shows those of events and arms, and a figure, and records the results of a user's."""

from __future__ import annotations

import contextlib
import copy
import math
import re
import textwrap
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bandit_envs import stopping
from bandit_envs.instances import TRUE, Count, Happening, Measurements, number_in
from bandit_envs.kernels import choice
from bandit_envs.problems import MOST_PAIRED

from ..core.optional import pandas
from . import statements
from .claims import Claim, claimed, found_now
from .design import code_of, plated, refuse_code
from .fold import KINDS, State, count_of, sample_of
from .log import ADDED, ASKED, COUNTED, FAILED, NOTE, RESULTS, TOLD, UNDONE, WITHDRAWN, Event
from .setup import checked_name
from .statements import contradictions
from .strata import StrataRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

COUNTS = ("n", "Int64"), ("successes", "Int64"), ("mean", "Float64"), ("sd", "Float64")  # columns of counts
RUNS = re.compile("'*[=+\\-@\t\r＝＋－＠]")  # how a cell begins that spreadsheets run, or one that was kept from it
NUMBER = re.compile(r"[-+]?[\d.,]+")
FEW = 3  # results: fewer agree by chance in two small tables


def history_table(state: State, events: Sequence[Event]) -> DataFrame:
    """The table of some events; see `Session.history`."""
    pd, D, arms = pandas(), state.setup.task.D, [event.arm for event in events]
    tabled = bool(state.setup.task.items)  # a question has its row in the place of a value, a result behind it
    shown = [None if tabled and one.kind == ASKED or one.kind == COUNTED else one.result for one in events]
    values = np.array([np.full(D, np.nan) if one is None else np.atleast_1d(one)[:D] for one in shown])
    values = values.reshape(len(events), D).astype(np.float64)  # a row without a score has None
    rows = [None if event.value is None or not tabled else int(np.atleast_1d(event.value)[-1]) for event in events]
    numbered = state.setup.items is None
    items = pd.array(rows, dtype="Int64") if numbered else [None if row is None else state.item(row) for row in rows]
    counts = [event.result if event.kind == COUNTED else (None,) * 4 for event in events]
    several = COUNTED in {event.kind for event in state.told}
    columns: dict[str, object] = {
        "event": np.array([event.number for event in events], np.int64),
        "at": pd.to_datetime([event.at for event in events], utc=True),
        "kind": [event.kind for event in events],
        "arm": pd.array(arms, dtype="Int64"),
        "name": [None if arm is None else state.names[arm] for arm in arms],
        **({"item": items} if tabled else {}),
        **({} if state.strata is None else {"item": [state.strata.shown(event) for event in events]}),
        **{"value" if D == 1 else f"value_{d}": values[:, d] for d in range(D)},
        **{name: pd.array([one[j] for one in counts], dtype=kind) for j, (name, kind) in enumerate(COUNTS) if several},
        "about": pd.array([event.about for event in events], dtype="Int64"),
        "who": [event.who for event in events],
        "text": [event.text for event in events],
        "undone": [event.number in state.undone for event in events],
    }
    if "plate" in state.setup.wishes:
        wells = plated(state)
        at = [wells.get(event.number, (None, None)) for event in events]
        columns |= {"plate": pd.array([one for one, _ in at], dtype="Int64"), "well": [well for _, well in at]}
    if state.setup.wishes.get("blind"):
        asked = [one.number if one.kind == ASKED else one.about if one.kind in RESULTS else None for one in events]
        columns["code"] = [None if number is None else code_of(number, state.setup.public_seed) for number in asked]
    table: DataFrame = pd.DataFrame(columns)
    table.attrs["pairs"] = state.setup.statistic
    return table


def for_spreadsheets(history: DataFrame) -> DataFrame:
    """A table in which a text that a spreadsheet would run, as "=1+1", has a ' in front; `replayed` takes it off."""

    def harmless(cell: object) -> object:
        return f"'{cell}" if isinstance(cell, str) and RUNS.match(cell) and not NUMBER.fullmatch(cell) else cell

    found = history.copy()
    for name in found:
        found[name] = found[name].map(harmless) if found[name].dtype.kind == "O" else found[name]
    return found


def arms_table(state: State, single: bool = False) -> DataFrame:
    """The table of the arms; see `Session.arms`."""
    task, seen, arms = state.setup.task, state.statistics, len(state.names)
    claims = statements.claims_of(state)
    ends = _cut(state, statements.intervals(state, single), claims)
    failed = [one.arm or 0 for one in state.not_undone if one.kind == FAILED]
    columns: dict[str, object] = {"name": list(state.names), "pulls": seen.pulls}
    for d in range(task.D):
        tail = "" if task.D == 1 else f"_{d}"
        mean = np.where(seen.scored > 0, seen.mean[:, d], np.nan)
        several = np.where(seen.scored > 1, seen.scored, np.nan)
        sd = np.sqrt(seen.variance[:, d] * several / (several - 1))
        low, high = np.sort(state.setup.turned(ends[:, d]), axis=1).T
        columns |= {f"mean{tail}": state.setup.turned(mean), f"sd{tail}": sd, f"low{tail}": low, f"high{tail}": high}
    columns |= {
        "answer": state.answer(),
        "claim": "" if claims is None else [claim.word for claim in claims],
        "pending": np.bincount([arm for arm, _ in state.asks.values()], minlength=arms),
        "withdrawn": np.isin(np.arange(arms), list(state.withdrawn)),
        "failed": np.bincount(failed, minlength=arms),
    }
    table: DataFrame = pandas().DataFrame(columns)
    table.attrs["intervals"] = "single" if single else "simultaneous"
    added = not single and len(state.names) > len(state.setup.names) and not state.setup.reserve
    table.attrs["level"] = min(state.run.level * (1 + added), 1.0)  # of the intervals of all arms that there ever were
    return table


def _cut(state: State, found: Any, claims: list[Claim] | None) -> Any:
    """Intervals, (K, D, 2), which claims about a threshold cut there, but for those that lie on the other side."""
    certifier = state.run.certifier
    if certifier is not None and certifier.kind in ("threshold", "threshold-paired"):
        (fall, rise), sides = certifier.numbers[stopping.COMMON : stopping.COMMON + 2], np.zeros(len(found))
        if claims is not None:
            sides[:] = [claim.side for claim in claims]
        elif statements.is_certified(state):
            sides[state.active] = np.where(state.answer()[state.active], 1, -1)
        over, under = (sides > 0) & (found[:, 0, 1] > fall), (sides < 0) & (found[:, 0, 0] < rise)
        found[over, 0, 0], found[under, 0, 1] = found[over, 0, 0].clip(fall), found[under, 0, 1].clip(None, rise)
    return found


def claims_table(state: State, rate: str = "familywise") -> DataFrame:
    """The table of the claims; see `Session.claims`."""
    claims, pd = found_now(state) if choice("rate", rate, stopping.RATES) == "fdr" else claimed(state), pandas()
    level = statements.level_of(state)
    columns: dict[str, object] = {"name": list(state.names), "claim": [claim.word for claim in claims]}
    columns |= {"since": pd.array([claim.since for claim in claims], dtype="Int64")}
    table: DataFrame = pd.DataFrame(columns | {"event": [claim.event for claim in claims], "level": level})
    return table


def comparison_table(state: State, rate: str) -> DataFrame:
    """The table of the arms against the control; see `Session.comparison`."""
    run, there = state.run, state.active
    if isinstance(run, StrataRun):
        return run.comparison(rate)
    problem: Any = run.problem
    if problem.control_arm is None or run.certifier is None:
        text = f"arms are compared with a control in BetterThanControl, {MOST_PAIRED} arms at most,"
        raise ValueError(f"{text} got {problem.name} of {len(there)} arms")
    seen, level = state.statistics.at(there), run.level * run.share.ratio
    claims, options = statements.claims_of(state), statements.counts_on(state, seen)
    if rate == "familywise" and claims is not None and not problem.tolerance:  # what is found stays
        sides = np.array([claims[arm].side for arm in there])
        options["finds"] = sides > 0, sides < 0
    found = problem.comparison(level=level, rate=rate, **options)
    waits = ~statements.known_arms(state)
    waits[run.problem.control_arm] = False
    nothing = {"p": 1.0, "p_worse": 1.0, "low": -math.inf, "high": math.inf, "better": False, "worse": False}
    for name, value in nothing.items():
        found[name][waits] = value
    for name in ("low", "high"):
        found[name][np.abs(found[name]) > 1e90] *= math.inf  # a scale that is not borne out
    if state.setup.own is not None:  # in the user's own sign, in which shares of a mean are others
        low, high = -found["high"], -found["low"]
        found |= {"difference": -found["difference"], "low": low, "high": high}
        found |= {name: np.full(len(there), np.nan) for name in ("lift", "lift_low", "lift_high")}
    means = np.where(seen.scored > 0, state.setup.turned(seen.mean[:, 0]), np.nan)
    columns = {"name": [state.names[arm] for arm in there], "pulls": seen.pulls, "mean": means, **found}
    table: DataFrame = pandas().DataFrame(columns)
    table.attrs |= {"level": statements.level_of(state), "rate": rate, "rate_level": level, "by": problem.beyond}
    table.attrs |= {"control": state.names[state.control_arm or 0], "minimize": state.setup.own is not None}
    table.attrs |= {"doubts": statements.contradictions(state)}
    return table


def read_from(table: str | Path) -> str:
    """The text of the events whose results stand in a table."""
    if not isinstance(table, (str, PathLike)):
        raise ValueError(f"a table must be the name of its file, or its path, got {table!r:.200}")
    return f"from {Path(table).name}"


def refuse_repeated(state: State, table: str, new: Sequence[Event]) -> None:
    """Refuse the new results of a table that begins as an earlier one did, or as the session, but for undone ones."""
    for before in [state.not_undone, *_tables(state)]:
        count = min(len(before), len(new))
        alike = all(one[1:4] == other[1:4] for one, other in zip(before, new, strict=False))  # kind, arm and value
        alike &= sum(event.size for event in new[:count]) >= FEW
        if alike and any(event.number not in state.undone for event in before[:count]):
            which = "its results" if count == len(new) else f"the first {count} of its {len(new)} results"
            raise ValueError(
                f"{table}: {which} are in the session already since {before[0].at:%Y-%m-%d %H:%M} UTC, from event "
                f"{before[0].number} on, and would count twice. Leave them out; or, if they were measured once more, "
                "say again=True (--again)"
            )


def replayed(state: State, found: Measurements, who: str | None) -> tuple[list[Event], list[Event]]:
    """The events of a session's history, which come after the events of this session, and the results among them.

    They refer to each other by negative numbers. Arms, cells and questions that are here already are left out.
    """
    ahead, made, undoing, seen = copy.copy(state), dict[int, Event](), set[int](), set[int]()
    ahead.names, ahead.number, ahead.withdrawn = list(state.names), dict(state.number), set(state.withdrawn)
    try:
        for row in found.events:
            undoing |= {_whole(row, "about") or 0} if row.cells["kind"] == UNDONE else set()
        for row in found.events:
            number = _whole(row, "event") or 0
            if number < 1 or number in seen:
                raise ValueError(f"the column 'event' has numbers from 1, each once, got {row.cells['event']!r:.80}")
            seen.add(number)
            counts = row.cells["undone"].strip().lower() not in TRUE or number in undoing
            if counts and (event := _replayed(state, ahead, made, row, number in undoing)) is not None:
                made[number] = event
    except ValueError as error:
        raise ValueError(f"{found.of}, {row.place}: {error}") from None
    new = [event for event in made.values() if event.number < 0]
    if any(event.at is None for event in new):
        text = f"{found.of}: events whose 'at' is no time as 2025-12-31 23:59:59+00:00 have the time of this import"
        warnings.warn(text, UserWarning, stacklevel=5)
    if new:
        end = min(event.number for event in new) - 1
        new.append(Event(end, NOTE, about=new[0].number, who=who, text=read_from(found.of)))
    return new, [event for event in new if event.kind in RESULTS and -event.number not in undoing]


def _replayed(state: State, ahead: State, made: dict[int, Event], row: Happening, undone: bool) -> Event | None:
    """The event of a row; None where it is left out. `ahead`: the arms after the rows before it, which is kept so."""
    cells = {name: cell[1:] if cell[:1] == "'" and RUNS.match(cell) else cell for name, cell in row.cells.items()}
    task, kind = state.setup.task, cells["kind"]
    if kind not in KINDS:
        raise ValueError(f"an event is one of {', '.join(KINDS)}, got {kind!r:.80}")
    at = None
    with contextlib.suppress(ValueError):  # a spreadsheet writes times in forms of its own
        at = datetime.fromisoformat(cells["at"])
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    before = made.get(_whole(row, "about") or 0)
    event = Event(-(_whole(row, "event") or 0), kind, None, None, before and before.number)
    event = event._replace(who=cells.get("who") or None, text=cells.get("text") or None, at=at)
    if kind == NOTE:
        return event
    if kind == UNDONE:
        if before is not None and before.kind == WITHDRAWN:
            ahead.withdrawn.discard(before.arm or 0)
        return None if before is None else event._replace(arm=before.arm)
    if kind == ADDED and cells["name"] not in ahead.number:
        name = checked_name(cells["name"])
        refuse_code(state.setup.wishes, name)
        ahead.number[name] = len(ahead.names)
        ahead.names.append(name)
        return event._replace(arm=ahead.number[name], text=name)
    if kind == ADDED or kind == WITHDRAWN and ahead.number.get(cells["name"]) in ahead.withdrawn:
        return None
    arm, sample = ahead.arm(cells["name"]), None
    if kind == WITHDRAWN:
        state.refuse_control(arm)
        ahead.withdrawn.add(arm)
    if kind == COUNTED:
        value: Any = count_of(state.setup.own_task, row.several or Count(None), state)
        named = (cells["item"],) if state.strata is not None and cells.get("item") else ()
        return event._replace(arm=arm, value=(*value, *named))
    if kind == FAILED and np.isnan(row.value).all():
        if not undone:
            state.setup.refuse_gaps()
    elif kind in RESULTS:
        sample = sample_of(state.setup.own_task, row.value if len(row.value) > 1 or task.D > 1 else row.value[0])
    if cells.get("item") and not task.items and state.strata is None:
        raise ValueError(f"there are no items in this session, got item={cells['item']!r:.80}")
    if state.strata is not None and kind in RESULTS and before is None and cells.get("item"):
        sample = sample, cells["item"]
    if not task.items or kind == WITHDRAWN:
        return event._replace(arm=arm, value=sample)
    if not cells.get("item"):
        raise ValueError("a result of a table needs its item")
    place = ahead.row(arm, cells["item"], None)
    waits = state.ask_answered_by(arm, None, row=place)
    if not undone and (arm, place) in state.cells:
        known, new = np.atleast_1d(state.cells[arm, place]), np.broadcast_to(np.float64(sample), task.D)
        if kind in RESULTS and not np.array_equal(known, new, equal_nan=True):
            raise ValueError(already(state, arm, place, state.cells[arm, place]))
        return None
    if kind == ASKED:
        return event._replace(arm=arm, value=place) if waits is None else state.events[waits]
    sample = sample if isinstance(sample, tuple) else (sample,) * task.D
    return event._replace(arm=arm, value=(*sample, place), about=waits if before is None else event.about)


def already(state: State, arm: int, row: int, known: Any) -> str:
    """That a cell of a table has a result."""
    found = ", ".join(f"{x:g}" for x in np.atleast_1d(known))
    what = "is marked as failed" if "nan" in found else f"has the result {found}"
    return f"{state.called(arm)} on the item {state.item(row)!r:.80} {what} already: undo that first"


def _whole(row: Happening, column: str) -> int | None:
    """The number of an event; None where there is none."""
    try:
        return int(number_in(row.cells[column])) if row.cells[column] else None
    except (ValueError, OverflowError):
        raise ValueError(f"{column!r} is the number of an event, got {row.cells[column]!r:.80}") from None


def last_read(state: State, table: str | Path) -> list[Event]:
    """The results of the table of this name that was recorded last, without those that were undone."""
    blocks = [[one for one in block if one.number not in state.undone] for block in _tables(state)]
    tables, text = {block[0].text: block for block in blocks if block}, read_from(table)
    if text not in tables:
        names = ", ".join(str(text).removeprefix("from ") for text in tables) or "none"
        raise ValueError(f"no results were recorded from a table {Path(table).name!r:.200}; there are: {names}")
    return tables[text]


def _tables(state: State) -> list[list[Event]]:
    """The results of each table that was recorded: they have its text, and a time; or a remark behind them has."""
    blocks = groupby(state.told, key=lambda event: (event.text if event.kind in (TOLD, COUNTED) else None, event.at))
    found = [list(block) for (text, _), block in blocks if text is not None]
    for note in state.events.values():
        if note.kind == NOTE and note.about is not None:
            block = [event for event in state.told if note.about <= event.number < note.number]
            found.append([event._replace(text=note.text) for event in block])
    return [block for block in found if block]


LOOKS = {"in": ("#009E73", "o"), "out": ("#D55E00", "X"), "open": ("#000000", "s")}  # the colours and markers of arms
BEYOND = 0.75  # of the span of the means, so far the axis goes on beyond them at most: of longer intervals are arrows
MOST_INCHES, MOST_LETTERS = 400.0, 40  # of a figure, and of a name


def compares(state: State) -> bool:
    """Whether there is a control that arms are compared with."""
    return state.control_arm is not None and (state.run.certifier is not None or state.strata is not None)


def results_table(state: State) -> DataFrame:
    """See `Session.results`."""
    table = arms_table(state)
    if not compares(state) or not state.count:
        return table
    found = comparison_table(state, "familywise").drop(columns=["pulls", "mean"])
    both = table.merge(found.rename(columns={one: f"difference_{one}" for one in ("low", "high")}), "left", "name")
    both.attrs = table.attrs | found.attrs
    return both


def drawn(state: State, boundary: float | None) -> Figure:
    """See `Session.plot`."""
    from matplotlib.figure import Figure

    table, lower, unit = results_table(state), state.setup.own is not None, state.setup.wishes.get("unit")
    control, what, sides, problem = table.attrs.get("control"), "mean", ["low", "high"], cast("Any", state.run.problem)
    if control:
        what, own = "odds" if "odds" in table else "difference", table[table["name"] == control].filter(like="mean")
        sides, (a, b) = [f"{what}_low", f"{what}_high"], problem.spaces[0]
        boundary = 0.0 if what == "odds" else float((a - 1) * own.iloc[0, 0] + b) * (-1) ** lower
    elif state.setup.task.D > 1 or state.blocks:
        raise ValueError("a figure shows one mean of each arm: not of several dimensions, nor with blocks")
    table = table[~table["withdrawn"] & (table["name"] != control)]
    table = table.sort_values(what, ascending=not lower, na_position="first")  # from below
    scale, rows = np.log2 if what == "odds" else np.array, np.arange(len(table))
    with np.errstate(divide="ignore"):
        mean, ends = scale(table[what].to_numpy(np.float64)), scale(table[sides].to_numpy(np.float64))
    if (unknown := np.isnan(mean)).all():
        raise ValueError(f"no {what} is known yet: there is nothing to draw")
    ends[unknown] = np.nan
    core = np.append(mean[np.isfinite(mean)], [] if boundary is None else boundary)
    every = np.append(core, ends[np.isfinite(ends)])
    span = BEYOND * np.ptp(core) or np.ptp(every) or 1.0
    left, right = max(every.min(), core.min() - span), min(every.max(), core.max() + span)
    figure = Figure(figsize=(7.2, min(1.6 + 0.22 * len(table), MOST_INCHES)), layout="constrained")
    axes, claims = figure.subplots(), bool(table["claim"].all())
    kinds = table["claim"].to_numpy() if claims else np.where(table["answer"], "in", "out")
    for kind, (colour, marker) in LOOKS.items():
        if len(own := rows[kinds == kind]):
            label = kind if kind == "open" else f"{kind}{' for certain' if claims else ' as of now'}"
            axes.hlines(own, *ends[own].clip(left, right).T, color=colour, alpha=0.45, linewidth=3)
            axes.plot(mean[own], own, marker, color=colour, label=label)
            for over, end, arrow in ((ends[:, 0] < left, left, "<"), (ends[:, 1] > right, right, ">")):
                axes.plot(np.full(sum(over[own]), end), own[over[own]], arrow, color=colour)
    if boundary is not None:
        axes.axvline(boundary, color="#000000", linestyle=(0, (5, 3)), linewidth=1, label="boundary")
    of = f"{what}{f' against {control}' if control else ''}{f' ({unit})' if unit else ''}{', lower is better' * lower}"
    if what == "odds":
        axes.xaxis.set_major_formatter(lambda x, _: f"{2.0**x:.3g}")
    axes.set_xlabel(f"{of}, with {100 - 100 * table.attrs['level']:.4g} % intervals of all", parse_math=False)
    axes.set_title(textwrap.fill(" ".join(contradictions(state)), 90), fontsize=9, parse_math=False)
    names = [name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…" for name in table["name"]]
    axes.set_yticks(rows, names, parse_math=False)
    axes.set_ylim(-0.7, len(table) - 0.3)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure
