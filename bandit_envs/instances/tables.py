"""Measurements of arms in a table: a file, a dataframe or an array, long or wide.

A long table has a measurement in each row: a column of names of arms, and a column of values, or several where a
measurement has several dimensions, or those of a `Count`. A wide table has a column for each arm. Both may have gaps.
The heads of the columns alone decide which of the two a table is. Heads that fit both are refused.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.checks import choice, flag, integer, number, require
from .files import Rows, is_empty, plate_rows, plates_in, rows_of_file

MISSING = ("", "na", "n/a", "nan", "none", "null")  # cells that are empty, whatever their case
TRUTHS = {"true": 1.0, "false": 0.0}  # as frames of right and wrong are written
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}", re.ASCII)  # or decimals: where all look so, neither is taken
RIGHT, WRONG = ("true yes y t c correct right pass passed", "false no n f i incorrect wrong fail failed")
WORDS = dict.fromkeys(RIGHT.split(), 1.0) | dict.fromkeys(WRONG.split(), 0.0)
BINARY = {*WORDS, "0", "1", "0.0", "1.0"}
TRUE, FALSE = ("true", "yes", "y", "t", "1", "1.0"), ("false", "no", "n", "f", "0", "0.0")  # in the column "undone"
ARMS, VALUE, ITEM, UNDONE = ("name", "arm"), "value", "item", "undone"  # columns of a long table, as in an export
EXPORT = {"event", "at", "kind", "name", "about", UNDONE}  # columns that a session's history has, and no other table

# The columns of a table of counts, those of the arms' names beside `ARMS`, and of days, which nothing is made of.
COUNTS = {"n": ("n", "visitors", "users", "trials", "sessions"), "mean": ("mean",), "sd": ("sd",)}
COUNTS |= {"successes": ("successes", "conversions", "retained", "purchases", "orders", "clicks")}
VARIANTS, DAYS = ("variant", "version", "group"), ("day", "date")
INDEXES = ("", ITEM, "id", "index", "example", "question")  # heads of a first column that holds names of rows

AS_WIDE = (
    "The table was read as one with a column for each arm. One with a measurement in each row needs the columns name "
    "and value, or others named by arm= and value=; a column of names of rows is named by index= "
    "(of an instance, \"table(path='FILE', arm='COLUMN', value='COLUMN')\")"
)


class Count(NamedTuple):
    """Several measurements of an arm: n, and how many were 1, or their mean and sd (divisor n - 1; None: n = 1)."""

    n: Any  # whatever was given, before it is `checked`
    successes: Any = None
    mean: Any = None
    sd: Any = None

    def checked(self, low: float = -math.inf, high: float = math.inf) -> Count:
        """The count, of measurements from low to high; a ValueError names what is impossible."""
        n, ones, mean, sd = self
        n, sd = integer("n", n, 1, 10**9), sd if sd is None else number("sd", sd, 0)
        if (ones is None) == (mean is None) or mean is None and sd is not None:
            raise ValueError(f"a count is n with successes, or n with mean and sd, got {self}")
        if mean is None:
            return Count(n, integer("successes", ones, 0, n))
        mean = number("mean", mean, low, high)
        if (n == 1 and sd) or (n > 1 and sd is None):
            raise ValueError(f"a mean of n > 1 measurements needs sd (divisor n - 1), and of one none, got {self}")
        most = math.sqrt((mean - low) * (high - mean) * n / max(n - 1, 1))
        if sd and sd > most * (1 + 1e-9):
            raise ValueError(f"sd is {most:g} at most, of values from {low:g} to {high:g}, got {self}")
        return Count(n, None, mean, sd if n > 1 else None)


class Measurement(NamedTuple):
    """One measurement, or a count of several."""

    place: str  # in the table, for errors
    arm: str
    value: tuple[float, ...]  # one number for each dimension
    item: str = ""  # of a wide table the name of its row, or its number from 0; of a long one, what its column says
    several: Count | None = None  # of a table of counts, whose values are empty


class Happening(NamedTuple):
    """A row of a session's history."""

    place: str  # in the table, for errors
    value: tuple[float, ...]  # one number for each dimension, NaN where there is none
    cells: dict[str, str]  # by the names of the columns, "" where they are empty
    several: Count | None = None


@dataclass(frozen=True)
class Measurements:
    """What a table holds.

    Attributes:
        of: the table, for errors.
        arms: their names, in the order of the columns of a wide table, or as they first come in a long one.
        rows: the measurements, in the order of the table.
        items: of a wide table, the names of all its rows.
        events: of a session's history, all its rows.
    """

    of: str
    arms: list[str]
    rows: list[Measurement]
    items: tuple[str, ...] = ()
    events: tuple[Happening, ...] = ()
    ignored: str | None = None  # of a table of counts, the column of days


class Table(NamedTuple):
    """The cells of a table, and their heads."""

    of: str
    columns: list[str]
    places: list[str]  # of the rows, for errors
    rows: list[list[Any]]
    labels: list[str] | None = None  # of the rows, where they have some
    decimal: str | None = None
    binary: bool | None = None  # whether words stand for 1 and 0

    def settled(self, columns: Sequence[int]) -> Table:
        """The table with what the texts of these columns show of the mark of decimals, and of words for 1 and 0."""
        texts = {row[j].strip().lower() for row in self.rows for j in columns if isinstance(row[j], str)} - {*MISSING}
        commas = {text for text in texts if "," in text}
        decimal, binary = self.decimal, self.binary
        if decimal is None:
            plain = any("." in text for text in texts) or not all(map(DECIMAL_COMMA.fullmatch, commas))
            decimal = "." if plain or all(map(THOUSANDS.fullmatch, commas)) else ","
        if binary is None and texts & WORDS.keys():
            others = {row[j] for row in self.rows for j in columns if isinstance(row[j], (int, float))}
            binary = texts <= BINARY and all(other in (0, 1) or other != other for other in others)
        return self._replace(decimal=decimal, binary=binary)

    def column(self, name: str) -> int:
        """The number of a column."""
        if name not in self.columns:
            raise ValueError(f"{self.of} has no column {name!r}, only {self.columns[:10]}")
        if self.columns.count(name) > 1:
            raise ValueError(f"{self.of} has columns of the same name: {[name]}")
        return self.columns.index(name)

    def number(self, row: int, column: int) -> float:
        """The number in a cell; NaN where it is empty."""
        cell = self.rows[row][column]
        word = cell.strip().lower() if isinstance(cell, str) else ""
        if cell is None or isinstance(cell, str) and word in MISSING or type(cell).__name__ == "NAType":
            return math.nan
        value = math.inf
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            if self.binary and word in WORDS:
                return WORDS[word]
            value = number_in(cell, self.decimal or ".") if isinstance(cell, str) else float(cell)
            if not math.isinf(value):
                return value
        where = f"{self.of}, {self.places[row]}, column {self.columns[column]!r:.80}"
        text = f"{where}: a value is a finite number, or nothing, got {cell!r:.80}"
        if self.decimal == "." and DECIMAL_COMMA.fullmatch(word):
            raise ValueError(f"{text}; decimals are written with a point, or say decimal=',' (--decimal)")
        if word in WORDS:
            raise ValueError(f"{text}; words for right and wrong are 1 and 0 among values 0 and 1 alone")
        raise (ValueError if isinstance(cell, float) else _NoNumberError)(text)

    def counted(self, row: int, columns: Mapping[str, int]) -> Count | None:
        """The count in a row; None where its cells are empty."""
        cells: dict[str, Any] = {name: x for name, j in columns.items() if (x := self.number(row, j)) == x}
        try:
            whole = {name: int(x) for name, x in cells.items() if name in ("n", "successes") and x.is_integer()}
            is_empty = not cells or whole.get("n") == 0 and not any(cells.values())  # a day without visitors
            return None if is_empty else Count(**{"n": None} | cells | whole).checked()
        except ValueError as error:
            heads = ", ".join(repr(self.columns[j]) for j in columns.values())
            raise ValueError(f"{self.of}, {self.places[row]}, columns {heads:.200}: {error}") from None


class _NoNumberError(ValueError):
    """A cell holds something else than a number."""


def number_in(text: str, decimal: str = ".") -> float:
    """The number that a text is: digits 0 to 9, a point or what stands for it, an exponent; "True", "False" 1, 0.

    Raises:
        ValueError: for anything else, as "1_0", which Python takes for 10, digits of other scripts, "nan" and "inf".
    """
    found = text.strip().lower()
    plain = found if decimal == "." else found.replace(".", "_").replace(decimal, ".")
    if found not in TRUTHS and not NUMBER.fullmatch(plain):
        raise ValueError(f"a number is written as 8.5 or 1e-3, got {text!r:.80}")
    return TRUTHS[found] if found in TRUTHS else float(plain)


def measurements(
    table: Any,
    *,
    arm: str | None = None,
    value: str | Sequence[str] | None = None,
    index: str | int | None = None,
    wide: bool | None = None,
    item: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    sheet: str | int | None = None,
    layout: str | Path | None = None,
    binary: bool | None = None,
    n: str | None = None,
    successes: str | None = None,
) -> Measurements:
    """Read the measurements of a table.

    Args:
        table: path of a CSV file (a first line with the heads of the columns), of an Excel file (".xlsx"), of JSON
            Lines (".jsonl", an object with the columns in each) or of a Parquet file (".parquet", ".pq"); or a
            dataframe of pandas, Polars, Arrow, DuckDB or another package that writes Arrow or pandas; or numbers
            (n, K), a column for each arm, NaN or masked where there is none. Empty cells, "NA", "NaN", "null" and
            "None" are gaps, "True" and "False" are 1 and 0. The index of a frame of pandas names its rows.
        arm: of a long table, the column of the arms' names. None: "name" or "arm", where there is a column "value" (or
            columns "value_0", "value_1", ...) too; else the table is wide.
        value: of a long table, the column of the values, or the columns of their dimensions. None: "value", or
            "value_0", "value_1", ... Rows without a value are left out, and so are those with "True" in a column
            "undone" (also yes, y, t or 1), which a session's history has. All other columns are left alone.
        index: of a wide table, the column, by its name or its number from 0, that holds names of rows. None: the first
            one where it has no name, as pandas writes the index of a table, or is called "id", "index", "item",
            "example" or "question"; else there is none.
        wide: whether the table has a column for each arm. None: by the names of its columns, as above.
        item: of a long table, the column that names the row which arms share. None: "item", where there is one.
        sep: of a CSV file, the character between cells. None: the one of comma, semicolon and tab that parts all lines
            alike.
        decimal: the mark of decimals in numbers that are text, "." or ",". None: a comma where all have one or none.
        sheet: of an Excel file with several, its name or number, from 1.
        layout: of a plate with wells A1, A2, .., the file or the sheet with the names in their wells. None: `table` has
            two blocks, one with the names and one with the values.
        binary: whether words such as yes and no, or C and I, are 1 and 0. None: where all values are 0 or 1.
        n, successes: of a table of counts, the columns of how many measurements a row is, and how many of them were 1.
            None: "n", "visitors", "users" or "trials", with "successes", "conversions" and the like, or else "mean"
            and "sd", where there is no "value". Arms may be in a column "variant", "version" or "group" too.

    Raises:
        ValueError: naming the row and the column of a cell that is no finite number, and columns that are not there;
            for a table that may be long or wide: with one of the columns of a long one, but not the other; where
            separators, or commas in numbers, may mean two things.
        TypeError: for what is no table. FileNotFoundError: where there is no such file.
        ImportError: where a Parquet file needs pandas and pyarrow, or an Excel file openpyxl.

    Warns:
        UserWarning: where a file is no UTF-8, and is read as Latin-1.
    """
    sep = "\t" if sep == "\\t" else sep  # as a command line has it
    if sep is not None and (not isinstance(sep, str) or len(sep) != 1 or sep in '"\r\n\0'):
        raise ValueError(f"sep must be the one character between the cells of a CSV file, as ';', got {sep!r:.80}")
    named = any(one is not None for one in (arm, value, item, n, successes))
    wide = None if wide is None else flag("wide", wide)
    read = _read(table, sep, sheet, layout, plain=bool(named or wide or index is not None))
    read = read._replace(decimal=None if decimal is None else choice("decimal", decimal, [".", ","]), binary=binary)
    heads = read.columns
    if named and (wide or index is not None) or wide is False and index is not None:
        of = "index and wide=True are for wide tables; arm, value, item and wide=False for long ones"
        raise ValueError(f"{of}; got some of both, index={index!r} and wide={wide}")
    counts = {} if wide or index is not None or value is not None else _counts_in(read, n, successes)
    if arm is None:
        arm = next((name for name in ARMS if name in heads), None) or (_head(read, VARIANTS) if counts else None)
    counts = counts if named or arm is not None else {}
    if value is None:
        value = [VALUE] if VALUE in heads else [f"{VALUE}_{d}" for d in range(len(heads)) if f"{VALUE}_{d}" in heads]
    values = [value] if isinstance(value, str) else list(value)
    if wide is None and not named and not counts and index is None and (arm is None) == bool(values):
        there, lacks = (values[0], "name or arm") if arm is None else (arm, VALUE)
        raise ValueError(
            f"{read.of} may be long or wide: it has a column {there!r}, but none called {lacks}. With a measurement in "
            "each row, name its columns by arm= and value=; with a column for each arm, say wide=True, or name the "
            "column that holds names of rows by index= (of an instance, \"table(path='FILE', wide=True)\")"
        )
    if wide or wide is None and not named and not counts and (index is not None or arm is None or not values):
        return _wide(read, index)
    if arm is None or not values and not counts:
        of, by = ("the arms' names", "arm") if arm is None else ("the values", "value")
        raise ValueError(f"{read.of}: the column of {of} must be named by {by}=, one of {heads[:10]}")
    columns = [read.column(one) for one in values]
    read = read.settled([*columns, *counts.values()])
    found = _long(read, read.column(arm), columns, read.column(item or ITEM) if item or ITEM in heads else None, counts)
    return replace(found, events=_events(read, columns, counts)) if set(heads) >= EXPORT and not named else found


def _head(read: Table, known: Sequence[str]) -> str | None:
    """The first head that is one of the `known` words, in capitals or not."""
    return next((head for word in known for head in read.columns if head.strip().lower() == word), None)


def _counts_in(read: Table, n: str | None, successes: str | None) -> dict[str, int]:
    """The columns of a table of counts, by what they hold; none of another table."""
    heads, named, export = set(read.columns), n or successes, set(read.columns) >= EXPORT
    found = {name: _head(read, known) or "" for name, known in COUNTS.items()}
    found |= {name: one for name, one in (("n", n), ("successes", successes)) if one}
    known = found["n"] and (found["successes"] or found["mean"])
    if named and not known:
        raise ValueError(f"{read.of}: counts have columns of n and of successes (n=, successes=), or of n, mean and sd")
    if not known or not (named or export) and heads & {VALUE, f"{VALUE}_0"}:
        return {}
    left = ("mean", "sd") if found["successes"] and not export else ()  # the mean is the rate of these
    return {name: read.column(one) for name, one in found.items() if one and name not in left}


def rows_of(table: Measurements) -> list[NDArray[np.float64]]:
    """The measurements of each arm, (n,) or (n, D)."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in table.arms}
    for one in table.rows:
        found[one.arm].append(one.value)
    if empty := [name for name, values in found.items() if not values]:
        raise ValueError(f"{table.of} has no value of the arm {empty[0]!r}")
    return [np.array(values if len(values[0]) > 1 else [x for (x,) in values]) for values in found.values()]


def shared_scores(found: Measurements, missing: float | Sequence[float] | None = None) -> NDArray[np.float64]:
    """The scores of all arms in the rows that they share, (N, K); (N, K, D) of D metrics.

    Args:
        found: of a wide table, or of a long one with a column "item", which names the row.
        missing: what a cell that is empty counts, for each metric; None: rows that lack a cell are left out.

    Raises:
        ValueError: for a long table without that column, two scores in one cell, and where no row is left.
    """
    arms = {name: k for k, name in enumerate(found.arms)}
    named = found.items or [one.item for one in found.rows]
    items = {name: n for n, name in enumerate(dict.fromkeys(named))}
    if found.items and len(items) < len(named):
        twice = next(name for name in items if named.count(name) > 1)
        raise ValueError(f"{found.of} has rows of the same name: {twice!r}")
    D = max([1, *(len(one.value) for one in found.rows)])
    scores = np.full((len(items), len(arms), D), math.nan)
    for one in found.rows:
        if not one.item:
            how = "rows of a long table are shared by the names in a column 'item' (or item=)"
            raise ValueError(f"{found.of}, {one.place}: {how}")
        if len(one.value) != D:
            raise ValueError(f"{found.of}, {one.place}: a shared row has one score for each arm, got {one.value}")
        cell = items[one.item], arms[one.arm]
        if not np.isnan(scores[cell]).all():
            raise ValueError(f"{found.of}, {one.place}: the arm {one.arm!r} has a score of {one.item!r} already")
        scores[cell] = one.value
    gaps = np.isnan(scores[..., 0])
    shares = [f"{found.arms[k]!r:.80} {gaps[:, k].mean():.1%}" for k in np.argsort(-gaps.mean(axis=0), kind="stable")]
    most = ", ".join(shares[: min(5, int(gaps.any(axis=0).sum()))]) + (", .." if gaps.any(axis=0).sum() > 5 else "")
    if missing is not None:
        given = [number("missing", one) for one in np.ravel(missing)]
        if len(given) not in (1, D):
            raise ValueError(f"missing must be a number, or one for each of the {D} metrics, got {missing!r:.200}")
        scores = np.where(np.isnan(scores), given, scores)
        if gaps.any():
            said = ", ".join(f"{x:g}" for x in given)
            text = f"{found.of}: cells that are empty count as the score {said}: of {most}"
            warnings.warn(f"{text}. An arm is judged by these too", UserWarning, stacklevel=4)
    full = ~np.isnan(scores[..., 0]).any(axis=1)
    if not full.any():
        raise ValueError(f"{found.of}: no row has a score of every arm. Empty cells: {most}; leave such columns out")
    if not full.all():
        text = f"{found.of}: {full.sum()} of {len(full)} rows have a score of every arm, and are kept"
        warnings.warn(f"{text}. Empty cells: {most}", UserWarning, stacklevel=4)
    shared: NDArray[np.float64] = scores[full] if D > 1 else scores[full, :, 0]
    return shared


def _long(table: Table, arm: int, values: list[int], item: int | None, counts: Mapping[str, int]) -> Measurements:
    undone = table.columns.index(UNDONE) if UNDONE in table.columns else None
    found: list[Measurement] = []
    for i, row in enumerate(table.rows):
        value, place, several = tuple(table.number(i, j) for j in values), table.places[i], table.counted(i, counts)
        lost = "" if undone is None else str(row[undone]).strip().lower()
        if lost not in (*TRUE, *FALSE, *MISSING, "<na>"):
            raise ValueError(f"{table.of}, {place}, column {UNDONE!r}: it says True or False, got {lost!r:.80}")
        if all(map(math.isnan, value)) and several is None or lost in TRUE:
            continue
        if several is not None:
            value = ()
        elif any(map(math.isnan, value)):
            raise ValueError(f"{table.of}, {place}: a measurement has all of its {len(values)} values, or none")
        name = str(row[arm]).strip()
        if (name.lower() in MISSING or name == "<NA>") and not set(table.columns) >= EXPORT:
            raise ValueError(f"{table.of}, {place}, column {table.columns[arm]!r:.80}: the name of the arm is missing")
        found.append(Measurement(place, name, value, "" if item is None else _label(row[item]), several))
    day = _head(table, DAYS) if counts else None
    return Measurements(table.of, list(dict.fromkeys(one.arm for one in found)), found, ignored=day)


def _events(table: Table, values: list[int], counts: Mapping[str, int]) -> tuple[Happening, ...]:
    found = []
    for i, row in enumerate(table.rows):
        empty = [one is None or type(one).__name__ in ("NAType", "NaTType") or one != one for one in row]
        whole = [int(one) if isinstance(one, float) and one.is_integer() else one for one in row]
        cells = ["" if lacks else str(one) for lacks, one in zip(empty, whole, strict=True)]
        value = tuple(table.number(i, j) for j in values)
        by_head = dict(zip(table.columns, cells, strict=True))
        found.append(Happening(table.places[i], value, by_head, table.counted(i, counts)))
    return tuple(found)


def _wide(table: Table, index: str | int | None) -> Measurements:
    heads = table.columns
    if index is None and heads and heads[0].lower() in INDEXES:
        index = 0
    if isinstance(index, str):
        index = table.column(index)
    named = None if index is None else integer("index", index, 0, max(len(heads) - 1, 0))
    arms = [j for j in range(len(heads)) if j != named]
    names = [heads[j] for j in arms]
    if twice := sorted({one for one in names if names.count(one) > 1}):
        raise ValueError(f"{table.of} has columns of the same name: {twice[:5]}")
    items = table.labels or list(map(str, range(len(table.rows))))
    items = items if named is None else [_label(row[named]) for row in table.rows]
    if named is not None:
        of_rows = [f"{place} ({row[named]!s:.40})" for place, row in zip(table.places, table.rows, strict=True)]
        table = table._replace(places=of_rows)
    table = table.settled(arms)
    try:
        found = [
            Measurement(f"{table.places[i]}, column {heads[j]!r:.80}", heads[j], (value,), items[i])
            for i in range(len(table.rows))
            for j in arms
            if not math.isnan(value := table.number(i, j))
        ]
    except _NoNumberError as error:
        raise ValueError(f"{error}. {AS_WIDE}") from None
    return Measurements(table.of, names, found, tuple(items))


def _label(cell: object) -> str:
    """The name of a row, "" for none; a whole number is written without a point, a day without the time of frames."""
    text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
    text = text.removesuffix(" 00:00:00") if isinstance(cell, date) else text
    return "" if text.lower() in MISSING or text == "<NA>" else text


def _read(table: Any, sep: str | None, sheet: str | int | None, layout: str | Path | None, plain: bool) -> Table:
    """The cells of a table; `plain`: it is no plate."""
    if isinstance(table, (str, Path)):
        of = str(table)
        if "://" not in of and not Path(of).is_file():
            raise FileNotFoundError(f"{of} is a folder, and no file" if Path(of).is_dir() else f"there is no file {of}")
        if Path(of).suffix.lower() == ".json":
            raise ValueError(f"{of}: of JSON, JSON Lines (.jsonl) are read: an object with the columns in each line")
        if Path(of).suffix.lower() not in (".parquet", ".pq"):
            rows = rows_of_file(of, sep, sheet)
            plates = [] if plain else plates_in(of, rows)
            if layout is not None:
                other = str(layout if Path(layout).is_file() else of)
                names = rows_of_file(other, sep, None if other == str(layout) else str(layout))
                plates = plates_in(other, names) + plates
            return _table(of, plate_rows(of, plates, layout is not None) if plates or layout is not None else rows)
        pandas, _ = (require(name, "a Parquet file, read by pandas and pyarrow,") for name in ("pandas", "pyarrow"))
        return _read_frame(of, pandas.read_parquet(of))
    if (frame := _frame(table)) is not None:
        return _read_frame("the table", frame)
    masked: Any = np.ma.asarray(table)
    if masked.ndim != 2 or masked.dtype.kind not in "biuf":
        what = "what .collect() of it returns" if hasattr(table, "collect") else "a list of its rows"
        lazy = f". Hand over {what}" if hasattr(table, "collect") or isinstance(table, Iterator) else ""
        raise TypeError(
            "a table of measurements is the path of a CSV, Excel, JSON Lines or Parquet file, a dataframe (pandas, "
            f"Polars, Arrow, ..), or an array of numbers (n, K), got {type(table).__name__}: {table!r:.200}{lazy}"
        )
    numbers = masked.astype(np.float64).filled(math.nan)
    heads = [f"arm {j}" for j in range(numbers.shape[1])]
    return Table("the table", heads, [f"row {i}" for i in range(len(numbers))], numbers.tolist())


def read_csv(path: str) -> Table:
    """The cells of a CSV file with commas, as text."""
    return _table(path, rows_of_file(path, ","))


def _table(of: str, rows: Rows) -> Table:
    """Rows under the heads in the first one; columns without a head and a cell are left out."""
    if len(rows) < 2:
        none = "it is empty; a first line names columns"
        has = f"it has the columns {rows[0][1]!r:.80}, and no row" if rows else none
        raise ValueError(f"{of}, line 1: {has}")
    heads = ["" if is_empty(head) else str(head).strip() for head in rows[0][1]]
    for place, row in rows:
        if len(row) != len(heads):
            text = f"{of}, {place}: it has {len(row)} cells, the first line has {len(heads)}; a cell in which the mark"
            raise ValueError(f"{text} between cells occurs stands in quotes, and another mark is named by sep= (--sep)")
    kept = [j for j, head in enumerate(heads) if head or not all(is_empty(row[j]) for _, row in rows)]
    cells = [[row[j] for j in kept] if len(kept) < len(heads) else row for _, row in rows[1:]]
    return Table(of, [heads[j] for j in kept], [place for place, _ in rows[1:]], cells)


def _frame(table: Any) -> Any:
    """A dataframe of any package as one of pandas; None for what is no dataframe."""
    if hasattr(table, "to_pandas"):  # Arrow, Polars, cuDF, xarray; of pandas' own index none is made
        table = table.to_pandas()
    elif hasattr(table, "__arrow_c_stream__") and not hasattr(table, "to_numpy"):
        table = importlib.import_module("pyarrow").table(table).to_pandas()
    elif hasattr(table, "__dataframe__") and not hasattr(table, "to_numpy"):
        table = importlib.import_module("pandas").api.interchange.from_dataframe(table)
    return table if hasattr(table, "index") and hasattr(table, "columns") else None


def _read_frame(of: str, frame: Any) -> Table:
    heads, places = [str(one).strip() for one in frame.columns], [f"row {one}" for one in frame.index]
    return Table(of, heads, places, frame.to_numpy(dtype=object).tolist(), [_label(one) for one in frame.index])
