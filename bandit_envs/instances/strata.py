"""The strata of a table, as days, and the arms whose share of the traffic changes between cells of its columns."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tables import DATE, FEW, MOST, NUMBER, TOTALS, Measurements, label_of, nameless

MOVED = "shares of traffic change by {}, pooled rates are not comparable"
SPANS = {"week": 7, "month": 31}  # days of a stratum under such a head, else one


class Strata(NamedTuple):
    """The strata of a table: that of each row, which are over, and, among these, the last of each day."""

    of: list[int]
    over: NDArray[np.bool_]
    ends: list[int]
    noun: str  # what one is
    said: str


def strata_of(table: Measurements, heads: Sequence[str], closed: bool | None, control: str, today: date) -> Strata:
    """The cells of these columns, crossed, in the order of days: of dates, of numbers, else of the table; then by name.

    Args:
        closed: whether all are over. None: of days that are dates those before `today`, and all others. False: all but
            the last day, or, without days, the last one in the table.
    """
    texts, dated = list[list[Any]](), [head in table.days for head in heads]
    for head, is_day in zip(heads, dated, strict=True):
        if head not in table.rest:
            raise ValueError(f"{table.of} has no column {head!r:.80} for strata, only {[*table.rest][:10]}")
        texts.append([*map(day_of if is_day else label_of, table.rest[head])])
        if "" in texts[-1]:
            place = table.rows[texts[-1].index("")].place
            raise ValueError(f"{table.of}, {place}, column {head!r:.80}: the name of the stratum is missing")
    for head in {*heads, *table.days}:
        if sums := [cell for cell in table.rest[head] if str(cell).strip().lower() in TOTALS]:
            raise ValueError(f"{table.of}, column {head!r:.80}: {sums[0]!r:.80} may sum up the others: leave it out")
    keys = [*zip(*texts, strict=True)] or [()] * len(table.rows)
    days_of, each = {key: tuple(compress(key, dated)) for key in keys}, dict[Any, set[str]]()
    days = [*dict.fromkeys(days_of.values())]
    known = any(dated) and all(isinstance(one, date) for day in days for one in day)
    if known or all(NUMBER.fullmatch(str(one)) for day in days for one in day):
        days.sort(key=lambda day: day if known else [*map(float, day)])
    order = sorted(days_of, key=lambda key: (days.index(days_of[key]), [*map(str, key)]))
    span = timedelta(max([SPANS.get(head.lower(), 1) for head in compress(heads, dated)], default=1))
    late = {key for key in order if known and closed is None and max(days_of[key]) + span > today}
    if closed is False and order:
        late = {key for key in order if days_of[key] == days[-1]} if any(dated) else {[*days_of][-1]}
    kept, places = [key for key in order if key not in late], {key: i for i, key in enumerate(order)}
    ends = [i for i, key in enumerate(kept) if kept[i + 1 :] == [] or days_of[kept[i + 1]] != days_of[key]]
    for key, row in zip(keys, table.rows, strict=True):
        each.setdefault(key, set()).add(row.arm)
    alone = sum(not {control} < each[key] for key in kept)
    said = f"within {' x '.join(map(repr, heads))}: {len(kept) - alone} strata count"
    said += f", {alone} without {control!r} or with it alone" * bool(alone) + f", {len(late)} not over yet" * bool(late)
    if closed is None and not known:
        said += "; all are taken as over: if the last still grows, say closed=False (--no-closed)"
    noun = heads[0].lower() if len(heads) == 1 else "stratum"
    noun = "day" if dated == [True] and noun not in SPANS else noun
    over = np.array([key not in late for key in order], np.bool_)
    return Strata([places[key] for key in keys], over, ends, noun, said)


def day_of(cell: object) -> Any:
    """The date that a cell is, year first or else with points; else its text, "" for none."""
    text = "" if nameless(cell) else DATE.sub(r"\1", str(cell)).strip()
    parts = text.split(".")[::-1] if "." in text else re.split("[-/]", text)
    if len(parts) == 3 and len(parts[0]) == 4:
        with contextlib.suppress(ValueError):
            return date(*map(int, parts))
    return text


def uneven(table: Measurements, control: str, strata: Sequence[int] = ()) -> dict[str, str]:
    """The arms whose share of the traffic, beside the control's, changes between cells of another column, and why.

    With the `strata` of rows: within these.

    By a chi-squared test at 1e-4 for each, of cells together that have some results of both: an arm with more of them
    on better days, or in better countries, has a better mean. A column that holds no days counts if most results have
    a cell of several arms, and if the results do not follow from the cells.
    """
    arms, by = {name: k for k, name in enumerate(table.arms)}, dict[str, list[str]]()
    for head, cells in table.rest.items() if control in arms else ():
        labels = [DATE.sub(r"\1", str(cell)) if head in table.days else str(cell) for cell in cells]
        places = {label: i for i, label in enumerate(sorted({*labels}))}
        amounts = len(places) > FEW and any("." in one and NUMBER.fullmatch(one) for one in places)
        parted = len({(label, *one[2::2]) for label, one in zip(labels, table.rows, strict=True)}) == len(places)
        if head not in table.days and (len(places) > MOST or amounts or parted):
            continue
        sizes = np.zeros((max(strata, default=0) + 1, len(places), len(arms)))
        of = strata or [0] * len(labels), [places[label] for label in labels], [arms[one.arm] for one in table.rows]
        np.add.at(sizes, of, [one.several.n if one.several else 1 for one in table.rows])
        there = sizes.max(axis=0) > 0
        most = head in table.days or 2 * sizes[:, there.sum(axis=1) > 1].sum() > sizes.sum()
        for name, k in arms.items() if most else ():
            if name != control and _moves(sizes[..., [arms[control], k]]):
                gone = int((there[:, arms[control]] & ~there[:, k]).sum()) if head in table.days else 0
                how = f" (dropped, or begun later: no result on {gone} of {len(places)} days)" * (gone > 0)
                by.setdefault(name, []).append(f"{head!r}{how}")
    results, how = {*map(repr, {*table.rest} - {*table.days})}, "; leave out columns of results"
    return {name: MOVED.format(", ".join(one)) + how * bool(results & {*one}) for name, one in by.items()}


def _moves(groups: Any) -> bool:
    """Whether the share of the second of two arms differs between rows of a group."""
    off, free = 0.0, 0
    for sizes in groups:
        part, parts, share = np.zeros(2), list[NDArray[np.float64]](), sizes.sum(axis=0) / max(sizes.sum(), 1)
        for row in sizes:
            part = part + row
            if part.sum() * share.min() >= 5:
                parts, part = [*parts, part], np.zeros(2)
        seen = np.array([*parts[:-1], *(last + part for last in parts[-1:])]).reshape(-1, 2)
        wanted = seen.sum(axis=1, keepdims=True) * share
        off, free = off + float(((seen - wanted) ** 2 / wanted).sum()), free + max(len(parts) - 1, 0)
    least = 1 - 2 / (9 * max(free, 1)) + 3.72 * math.sqrt(2 / (9 * max(free, 1)))  # Wilson & Hilferty 1931
    return bool(np.cbrt(off / max(free, 1)) > least)
