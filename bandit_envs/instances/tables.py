"""Measurements of arms in a table: a file, a dataframe or an array, long or wide.

A long table has a measurement in each row: a column of names of arms, and a column of values, or several where a
measurement has several dimensions, or those of a `Count`. A wide table has a column for each arm. Both may have gaps.
The heads of the columns alone decide which of the two a table is. Heads that fit both are refused. What was read, and
what was left out, is said by `Measurements.read`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np

from ..kernels.checks import LARGEST, Floats, choice, flag, integer, interval, number, require, within_ends
from .files import FIRST, Rows, is_empty, plate_rows, plates_in, rows_of_file, unswept

SAID = logging.getLogger("bandit_envs.tables")  # what was read of each table, as the command line shows it
PARQUET = (".parquet", ".pq")
MISSING = ("", "na", "n/a", "nan", "none", "null")  # cells that are empty, whatever their case
UNNAMED = ("", "n/a", "nan", "nat", "null", "<na>")  # no names; "none" and "NA" are some, as those of a control
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

# The columns of a table of counts, those of the arms' names beside `ARMS`, and of days. Only columns that count people
# once are among them: of sessions, orders or clicks a person has several, which depend on each other.
PEOPLE = "n count trials visitors users people persons participants patients subjects players customers"
SUCCESSES = "successes conversions converted retained buyers"
SQUARES = ["squares", "sumsq", "sum_sq", "sum_squares", "sum_of_squares", "sum sq", "sum squares", "sum of squares"]
COUNTS = {"n": PEOPLE.split(), "successes": SUCCESSES.split(), "mean": ["mean"], "sd": ["sd", "std"]}
COUNTS |= {"squares": SQUARES, "sum": ["sum", "total"]}  # in the place of mean and sd
VARIANTS, DAYS = ("variant", "version", "group"), ("day", "date", "week", "month", "datetime", "timestamp")
WEIGHTS = ("freq", "frequency", "size", "weight", "weights", "cases", "obs")  # they may be n of values 0 and 1
DATE = re.compile(r"(\d{4}([-/])\d\d?\2\d\d?|\d\d?([./])\d\d?\3\d{2,4})([ T].*)?")  # with the time, or not
PERSON = re.compile(r"(?i:(.*[_ ])?u?u?id|user|visitor|person|participant|patient|customer|player)|.*[a-z]I[dD]")
SINGLE, FEW, MOST = 10, 24, 400  # rows of 0 and 1 that are results; cells of amounts, and others, that part the rows
INDEXES = ("", ITEM, "id", "index", "example", "question")  # heads of a first column that holds names of rows
# Heads of columns that are hardly arms, but what numbers the rows, or sums them up.
NUMBERS = "seed fold run rep repeat replicate epoch trial step steps iter iteration round row no no. nr time sample"
SUMS = "total sum sd std var variance mean average avg median min max gesamt summe mittelwert durchschnitt"
OTHERS = "# n count size best elapsed batch year quarter weekday hour subject participant"
COUNTING = {*NUMBERS.split(), "id"}
NO_ARMS = {*COUNTING, *SUMS.split(), *OTHERS.split(), *DAYS, *INDEXES, "total score"}
TOTALS = {*SUMS.split(), "all", "overall", "grand total", "mean±sd"}  # names of a row that sums the others up
COMPARED = {"model", "candidate", "system", "method", "algorithm", "agent", "llm", "treatment"}  # heads of their names
MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00:00(\.0+)?")  # a day, as spreadsheets and frames write it

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

    def checked(self, low: float = -LARGEST, high: float = LARGEST) -> Count:
        """The count, of measurements from low to high; a ValueError names what is impossible."""
        n, ones = (int(one) if isinstance(one, float) and one.is_integer() else one for one in self[:2])
        mean, sd = self.mean, self.sd if self.sd is None else number("sd", self.sd, 0, LARGEST)
        n = integer("n", n, 1, 10**9)
        if (ones is None) == (mean is None) or mean is None and sd is not None:
            raise ValueError(f"a count is n with successes, or n with mean and sd, got {self}")
        if mean is None:
            return Count(n, integer("successes", ones, 0, n))
        mean = number("mean", within_ends(mean, low, high), low, high)
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
        rest: of a long table, the other columns, of which nothing but shares of traffic is made, a cell for each row.
        days: those of them that hold days.
        read: in a line, what the columns were taken for, how many rows and arms there are, and what was left out.
    """

    of: str
    arms: list[str]
    rows: list[Measurement]
    items: tuple[str, ...] = ()
    events: tuple[Happening, ...] = ()
    rest: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    days: Sequence[str] = ()
    read: str = ""


class Table(NamedTuple):
    """The cells of a table, and their heads."""

    of: str
    columns: list[str]
    places: list[str]  # of the rows, for errors
    rows: list[list[Any]]
    levels: int = 0  # so many columns in front are the index of a frame
    left: str = ""  # what is left out already
    decimal: str | None = None
    binary: bool | None = None  # whether words stand for 1 and 0

    def settled(self, columns: Sequence[int]) -> Table:
        """The table with what the texts of these columns show of the mark of decimals, and of words for 1 and 0."""
        texts = {row[j] for row in self.rows for j in columns if isinstance(row[j], str)}
        texts = {text.strip().lower() for text in texts} - {*MISSING}
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

    def numbers(self, at: Sequence[tuple[int, int]]) -> list[float]:
        """The numbers in the cells of these rows and columns; NaN where one is empty."""
        cells = [self.rows[i][j] for i, j in at]
        if self.decimal == "." and {*map(type, cells)} == {str} and not "".join(cells).strip("0123456789.eE+-"):
            with contextlib.suppress(ValueError):  # one is empty, or no number
                cells = [*map(float, cells)]
        plain = {*map(type, cells)} <= {float} and not (np.abs(cells) > LARGEST).any()  # NaN too
        return cells if plain else [self.number(*one) for one in at]

    def number(self, row: int, column: int) -> float:
        """The number in a cell; NaN where it is empty."""
        cell = self.rows[row][column]
        if type(cell) is float and not abs(cell) > LARGEST:
            return cell
        word = cell.strip().lower() if isinstance(cell, str) else ""
        if cell is None or isinstance(cell, str) and word in MISSING:
            return math.nan
        if self.binary and word in WORDS:
            return WORDS[word]
        try:
            value = number_in(cell, self.decimal or ".") if isinstance(cell, str) else float(cell)
        except (TypeError, ValueError, OverflowError):
            value = math.inf
        if abs(value) <= LARGEST or math.isnan(value):
            return value
        where = f"{self.of}, {self.places[row]}, column {self.columns[column]!r:.80}"
        text = f"{where}: a value is a finite number, or nothing, got {cell!r:.80}"
        text += f", beyond {LARGEST:g}" * (LARGEST < abs(value) < math.inf)
        if self.decimal == "." and DECIMAL_COMMA.fullmatch(word):
            raise ValueError(f"{text}; decimals are written with a point, or say decimal=',' (--decimal)")
        if word in WORDS:
            raise ValueError(f"{text}; words for right and wrong are 1 and 0 among values 0 and 1 alone")
        raise (ValueError if isinstance(cell, float) else _NoNumberError)(text)

    def counted(self, row: int, columns: Mapping[str, int]) -> Count | None:
        """The count in a row; None where its cells are empty."""
        cells: dict[str, Any] = {name: x for name, j in columns.items() if (x := self.number(row, j)) == x}
        try:
            if not cells or cells.get("n") == 0 and not any(cells.values()):  # a day without visitors
                return None
            if VALUE in cells:
                if (one := cells.pop(VALUE)) not in (0, 1):
                    raise ValueError(f"a value beside n is 0 or 1 for all n; means stand in a column mean, got {one:g}")
                cells["successes"] = cells.get("n", 0) * one
            if {"sum", "squares"} & {*columns}:
                cells = _by_sums(**cells)
            return Count(**{"n": None} | cells).checked()
        except ValueError as error:
            heads = ", ".join(repr(self.columns[j]) for j in columns.values())
            raise ValueError(f"{self.of}, {self.places[row]}, columns {heads:.200}: {error}") from None


def _by_sums(n: Any = None, sum: float | None = None, squares: float | None = None) -> dict[str, Any]:
    """n, mean and sd of n results, by their sum and the sum of their squares, exactly up to one rounding."""
    n = Count(n, 0).checked().n
    known = f"got n={n}, sum={sum} and a sum of squares {squares}"
    if sum is None or squares is None:
        raise ValueError(f"a count is n with a sum and a sum of squares, {known}")
    around = Fraction(squares) - Fraction(sum) ** 2 / n
    if around < -1e-9 * squares or n == 1 and around > 1e-9 * squares:
        raise ValueError(f"a sum of squares is {'' if n == 1 else 'at least '}the square of the sum over n, {known}")
    if n > 1 and around and around < 1e-12 * squares:
        raise ValueError(f"too few digits are left of the spread, give mean and sd, {known}")
    return {"n": n, "mean": sum / n, "sd": math.sqrt(max(around, 0) / (n - 1)) if n > 1 else None}


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
    metric: str | None = None,
) -> Measurements:
    """Read the measurements of a table.

    Args:
        table: path of a CSV file (a first line with the heads of the columns), of an Excel file (".xlsx"), of JSON
            Lines (".jsonl", an object with the columns in each) or of a Parquet file (".parquet", ".pq"); or a
            dataframe of pandas, Polars, Arrow, DuckDB or another package that writes Arrow or pandas; or numbers
            (n, K), a column for each arm, NaN or masked where there is none. Empty cells, "NA", "NaN", "null" and
            "None" are gaps, "True" and "False" are 1 and 0. The index of a frame of pandas names its rows.
        arm: of a long table, the column of the arms' names. None: "name" or "arm", else "variant", "version" or
            "group", where there is a column "value" (or columns "value_0", "value_1", ...) or counts; else the table is
            wide. Names that differ only in how accents are coded are one. A row "total" that is the sum of others is
            left out.
        value: of a long table, the column of the values, or the columns of their dimensions. None: "value", or
            "value_0", "value_1", ... Rows without a value are left out, and so are those with "True" in a column
            "undone" (also yes, y, t or 1), which a session's history has. All other columns are left alone.
        index: of a wide table, the column, by its name or its number from 0, that holds names of rows. None: the first
            one where it has no name, as pandas writes the index of a table, or is called "id", "index", "item",
            "example" or "question", or the index of a frame; else there is none.
        wide: whether the table has a column for each arm. None: by the names of its columns, as above; columns
            that count the rows, or sum others up, and heads such as "seed" or "total", are then refused.
        item: of a long table, the column that names the row which arms share. None: "item", where there is one.
        sep: of a CSV file, the character between cells. None: the one of comma, semicolon and tab that parts all lines
            alike.
        decimal: the mark of decimals in numbers that are text, "." or ",". None: a comma where all have one or none.
        sheet: of an Excel file with several, its name or number, from 1.
        layout: of a plate with wells A1, A2, .., the file or the sheet with the names in their wells. None: `table` has
            two blocks, one with the names and one with the values.
        binary: whether words such as yes and no, or C and I, are 1 and 0. None: where all values are 0 or 1.
        n: of a table of counts, the column of how many measurements a row is. None: "n", "visitors", "users" and the
            like, where there is no "value". With n= and a column of values 0 and 1, each stands for n measurements.
        successes: the column of how many of them were 1. None: "successes", "conversions" and the like, all of which
            count a person once, or else "mean" and "sd", or else "sum" and "sum_squares" (of the results, and of their
            squares). Many rows of 0 and 1, without `n`, are single values.
        metric: one of several: with a column of counts that of its successes, or the name that stands with "mean" and
            "sd" in heads, as revenue in "revenue_mean"; without counts its column of values.

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
    named = any(one is not None for one in (arm, value, item, n, successes, metric))
    wide = None if wide is None else flag("wide", wide)
    read = _read(table, sep, sheet, layout, plain=bool(named or wide or index is not None))
    read = read._replace(decimal=None if decimal is None else choice("decimal", decimal, [".", ","]), binary=binary)
    heads = read.columns
    if named and (wide or index is not None) or wide is False and index is not None:
        of = "index and wide=True are for wide tables; arm, value, item and wide=False for long ones"
        raise ValueError(f"{of}; got some of both, index={index!r} and wide={wide}")
    if wide or index is not None:
        return _said(_wide(read, index, bool(wide)))
    if metric is not None:
        counted = n is not None or _heads(read, COUNTS["n"])
        value, successes = (None, metric) if counted else (metric, None)
    export = set(heads) >= EXPORT
    values = [VALUE] if VALUE in heads else [f"{VALUE}_{d}" for d in range(len(heads)) if f"{VALUE}_{d}" in heads]
    values = values if value is None else [value] if isinstance(value, str) else list(value)
    given = arm is not None
    if not values and metric is None and (single := _single(read, n, successes)):
        values, value, successes = single, single, None
    arm = _arm_in(read, values, n, successes) if arm is None else arm
    counts = {}
    if arm is not None and (value is None or n or successes):
        counts = _counts_in(read, {"n": n, "successes": successes}, values, export, arm)
    if wide is None and not named and not counts and (arm is None) == bool(values):
        there, lacks = (values[0], "name or arm") if arm is None else (arm, VALUE)
        raise ValueError(
            f"{read.of} may be long or wide: it has a column {there!r}, but none called {lacks}. With a measurement in "
            "each row, name its columns by arm= and value=; with a column for each arm, say wide=True, or name the "
            "column that holds names of rows by index= (of an instance, \"table(path='FILE', wide=True)\"); with "
            f"counts, say n= (--n) and successes= (--successes), of {[one for one in heads if one != there][:10]}; a "
            "table with an arm in each row is to be transposed"
        )
    if wide is None and not named and not counts and (arm is None or not values):
        return _said(_wide(read, index, False))
    if arm is None or not values and not counts:
        of, by = ("the arms' names", "arm") if arm is None else ("the values", "value")
        raise ValueError(f"{read.of}: the column of {of} must be named by {by}=, one of {heads[:10]}")
    columns = [] if VALUE in counts else [read.column(one) for one in values]
    read = read.settled([*columns, *counts.values()])
    by_item = read.column(item or ITEM) if item or ITEM in heads else None
    found = _long(read, read.column(arm), columns, by_item, counts, given or export)
    if export and not named:
        events = _events(read, columns, counts)
        found = replace(found, events=events, read=f"{read.of}: the history of a session, {len(events)} events")
    return _said(found)


def _said(found: Measurements) -> Measurements:
    SAID.info(found.read)
    return found


def _heads(read: Table, known: Sequence[str]) -> list[str]:
    """The heads that are one of the `known` words, in capitals or not, in the order of these words."""
    return [head for word in known for head in read.columns if head.lower() == word]


def _arm_in(read: Table, values: Sequence[str], n: str | None, successes: str | None) -> str | None:
    """The column of the arms' names; None where the table has none."""
    heads, counted = read.columns, _heads(read, COUNTS["n"]) or n
    known = [head for name in ("successes", "mean", "squares") for head in _heads(read, COUNTS[name])]
    counted = counted and ([successes] if successes else known)
    arms, variants = [one for one in ARMS if one in heads][:1], _heads(read, VARIANTS)
    if len(found := arms + variants if counted or not arms else arms) > 1:
        raise ValueError(f"{read.of}: names of arms may stand in any of the columns {found}: say arm= (--arm)")
    if found:
        return found[0]
    if not counted or values:
        return None
    if "" in heads and not all(NUMBER.fullmatch(str(row[heads.index("")])) for row in read.rows):
        return ""  # the index of a frame
    raise ValueError(
        f"{read.of} has counts in {counted[:2]}: say where names of arms are, by arm= (--arm), or wide=True"
    )


def _ones(read: Table, head: str) -> bool:
    """Whether a column holds nothing but 0 and 1, or words for them."""
    j = read.column(head)
    return {text.strip().lower() for text in {str(row[j]) for row in read.rows}} <= {*BINARY, *MISSING}


def _single(read: Table, n: str | None, successes: str | None) -> list[str]:
    """The column of successes where each row is a single result; ids beside it, that are no counts, are refused."""
    heads, people = [successes] if successes else _heads(read, COUNTS["successes"]), _heads(read, COUNTS["n"])
    if len(heads) != 1 or len(read.rows) < SINGLE or not _ones(read, heads[0]):
        return []
    rare = len({str(row[read.column(heads[0])]) for row in read.rows}) > 1
    for head in [n] if n else people:
        if rare and len({str(row[read.column(head)]) for row in read.rows}) >= SINGLE:
            how = f"of single results say value={heads[0]!r} (--value); counts are to be added up for each arm before"
            raise ValueError(f"{read.of}: {head!r}, beside 0 and 1 in {heads[0]!r}, holds ids or counts: {how}")
    return [] if n or people else heads


def _counts_in(
    read: Table, told: Mapping[str, str | None], values: Sequence[str], export: bool, arm: str
) -> dict[str, int]:
    """The columns of a table of counts, by what they hold; none of another table."""
    found, of, metric = dict[str, int](), read.of, told.get("successes") or ""
    parts = metric not in ("", *read.columns)  # of heads, as revenue of "revenue_mean"
    for name, known in COUNTS.items():
        if name in ("squares", "sum") and ({"successes", "mean"} & {*found} or "squares" not in (name, *found)):
            continue  # a sum alone is not one of the results
        if parts and name != "n":
            known = [head.lower() for word in known for head in (f"{metric}_{word}", f"{word}_{metric}")]
        heads = [one for one in [told.get(name)] if one and (one != metric or not parts)] or _heads(read, known)
        if len(heads) > 1:
            raise ValueError(f"{of}: {name} may be any of the columns {heads}: say {name}= (--{name}), or leave one")
        if heads:
            found[name] = read.column(heads[0])
    if parts and not {"mean", "squares"} & {*found}:
        read.column(metric)  # there is none
    given, complete = any(told.values()), "n" in found and bool({"successes", "mean", "sum"} & {*found})
    if export:
        return found if complete else {}
    if values and not given:
        many = [read.columns[found["n"]]] if "n" in found else _heads(read, WEIGHTS) if _ones(read, values[0]) else []
        for n in many:
            how = f"if each value stands for so many, say n={n!r} (--n {n}); if not, value={values[0]!r} (--value)"
            raise ValueError(f"{of} has a column {n!r} beside {values[0]!r}: {how}")
        return {}
    if "n" in found and len(values) == 1 and not complete:
        return {"n": found["n"], VALUE: read.column(values[0])}
    if (given or {"n", "successes"} & {*found}) and not complete:
        rest = [one for one in read.columns if one not in [arm, *(read.columns[j] for j in found.values())]]
        lacks = "successes" if "n" in found else "n"
        text = f"say {lacks}= (--{lacks}), one of {rest[:10]}. Columns in which a person may count twice are not taken "
        raise ValueError(f"{of}: counts are n and successes; n, mean and sd; or n, sum and sum_squares: {text}untold")
    left = ("mean", "sd") if "successes" in found else ()  # the mean is the rate of these
    return {name: j for name, j in found.items() if name not in left} if complete else {}


def rows_of(table: Measurements) -> list[Floats]:
    """The measurements of each arm, (n,) or (n, D)."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in table.arms}
    for one in table.rows:
        found[one.arm].append(one.value)
    if empty := [name for name, values in found.items() if not values]:
        raise ValueError(f"{table.of} has no value of the arm {empty[0]!r}")
    return [np.array(values if len(values[0]) > 1 else [x for (x,) in values]) for values in found.values()]


def repeated(table: Measurements) -> list[str]:
    """The columns of people of whom an arm has several single results."""
    arms = [one.arm for one in table.rows if one.several is None]
    ids = {head: [*map(str, cells)] for head, cells in table.rest.items() if PERSON.fullmatch(head)}
    return [head for head, one in ids.items() if len({*one}) > FEW and len({*zip(one, arms, strict=False)}) < len(arms)]


def within(table: Measurements, ends: Any) -> Measurements:
    """The table, where values that are a few spacings beyond an end of their range are that end.

    Args:
        ends: (lowest, highest) value, or such a pair for each dimension; None: any.

    Raises:
        ValueError: for a value beyond, naming its arm and item.
    """
    if ends is None:
        return table
    pairs = [interval("support", one) for one in ([ends] if np.ndim(ends) < 2 else ends)]
    rows = list[Measurement]()
    for one in table.rows:
        value = list(one.value)
        for d, (x, (low, high)) in enumerate(zip(value, pairs * (len(value) if len(pairs) == 1 else 1), strict=False)):
            if not low <= (end := within_ends(x, low, high)) <= high:
                of = f"{one.arm!r:.80}" + f" on {one.item!r:.80}" * bool(one.item)
                said = f"a measurement must be a number in [{low:g}, {high:g}], got {end!r} of {of}"
                raise ValueError(f"{table.of}, {one.place}: {said}")
            value[d] = end
        rows.append(one._replace(value=tuple(value)))
    return replace(table, rows=rows)


def shared_scores(found: Measurements, missing: float | Sequence[float] | None = None) -> Floats:
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
            twice = f"the arm {one.arm!r} has a score of {one.item!r} already: average repeats before"
            raise ValueError(f"{found.of}, {one.place}: {twice}")
        scores[cell] = one.value
    gaps = np.isnan(scores[..., 0])
    lacking = sorted((-share, k) for k, share in enumerate(gaps.mean(axis=0)) if share)
    most = ", ".join(f"{found.arms[k]!r:.80} {-x:.1%}" for x, k in lacking[:5]) + ", .." * (len(lacking) > 5)
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
    return scores[full] if D > 1 else scores[full, :, 0]


@unswept()
def _long(
    table: Table, arm: int, values: list[int], item: int | None, counts: Mapping[str, int], told: bool
) -> Measurements:
    undone = table.columns.index(UNDONE) if UNDONE in table.columns else None
    used = [arm, *values, *counts.values(), *(j for j in (item, undone) if j is not None)]
    others = [j for j in range(len(table.columns)) if j not in used]
    days = [j for j in others if _is_days(table.columns[j], [row[j] for row in table.rows[:FIRST]])]
    wells = [j for j in others if table.columns[j].lower() == "well"]
    found, arms, left, places = list[Measurement](), dict[str, None](), Counter[str](), list[int]()
    by_name, allowed = {*table.columns} >= EXPORT, {*TRUE, *FALSE, *MISSING}
    known = zip(*(table.numbers([(i, j) for i in range(len(table.rows))]) for j in values), strict=True)
    for i, (row, value) in enumerate(zip(table.rows, known if values else repeat(()), strict=False)):
        place = table.places[i]
        several = table.counted(i, counts) if counts else None
        lost = "" if undone is None else str(row[undone]).strip().lower()
        if lost not in allowed:
            raise ValueError(f"{table.of}, {place}, column {UNDONE!r}: it says True or False, got {lost!r:.80}")
        name, nothing = _named(row[arm]), all(map(math.isnan, value)) and several is None
        if nothing or lost in TRUE:
            left["undone" if lost in TRUE else "without a value"] += 1
            if counts and name and lost not in TRUE and table.number(i, counts["n"]) == 0:
                arms[name] = None
            continue
        if several is not None:
            value = ()
        elif any(map(math.isnan, value)):
            raise ValueError(f"{table.of}, {place}: a measurement has all of its {len(values)} values, or none")
        if not name and not by_name:
            raise ValueError(f"{table.of}, {place}, column {table.columns[arm]!r:.80}: the name of the arm is missing")
        arms[name] = None
        found.append(Measurement(place, name, value, "" if item is None else label_of(row[item]), several))
        places.append(i)
    sums = _sums(table, found, days, places, told)
    left |= {"that sum others up": len(sums)} if sums else {}
    places = [i for i, one in zip(places, found, strict=True) if one.arm not in sums]
    kept, heads = [one for one in found if one.arm not in sums], [head or "the index" for head in table.columns]
    arms = {name: None for name in arms if name not in sums}
    parts = {"names": [arm], "values": values, **{name: [j] for name, j in counts.items()}}
    parts |= {"items": [] if item is None else [item], "days": days, "wells": wells}
    said = [f"{what} in {', '.join(repr(heads[j]) for j in js)}" for what, js in parts.items() if js]
    rest = [repr(heads[j]) for j in others if j not in days + wells and (table.columns[j] or j >= table.levels)]
    each = Counter((one.arm, one.item) for one in kept).values()
    times = f"{min(each)} to {max(each)}" if each and min(each) < max(each) else f"{max(each, default=0)}"
    many = f"{len(kept)} rows, {len(arms)} arms, {times} of each{' on an item' * (item is not None)}"
    lacking = [f"{count} rows {why}" for why, count in left.items()] + [f"columns {', '.join(rest):.200}"] * bool(rest)
    cells = {heads[j]: [table.rows[i][j] for i in places] for j in others if table.columns[j] or j in days}
    line, by_day = _line(table, said, many, lacking), [heads[j] for j in days]
    return Measurements(table.of, [*arms], kept, rest=cells, days=by_day, read=line)


def _line(table: Table, said: Sequence[str], many: str, left: Sequence[str]) -> str:
    """What was read, in a line."""
    lost = ", ".join([*left, *([table.left] if table.left else [])])
    return f"{table.of}: {', '.join(said)}; {many}" + f"; left out: {lost}" * bool(lost)


def _sums(table: Table, found: Sequence[Measurement], days: list[int], rows: Sequence[int], told: bool) -> set[str]:
    """The names of rows that sum up the others, of a day or of all; one that may do so is refused, where not `told`."""
    names, each = {arm for arm in {one.arm for one in found} if arm.lower() in TOTALS}, dict[str, complex]()
    if not names and not any(one.several for one in found):
        return names
    sums, sizes = Counter[Any](), [one.several.n if one.several else one.value[0] for one in found]
    on_days = [str([table.rows[i][j] for j in days]) for i in rows]
    for one, size, on in zip(found, sizes, on_days, strict=True):
        each[one.arm] = each.get(one.arm, 0) + complex(size, (one.several and one.several.successes) or math.nan)
        sums.update({on: size, None: size} if one.arm not in names else {})
    if len(each) < 3:
        return set()
    every = zip(found, sizes, on_days, strict=True)
    off = {one.arm for one, size, on in every if one.arm in names and size not in (sums[on], sums[None])}
    off |= {arm for arm, both in each.items() if not names and 2 * both == sum(each.values())}
    if off and not told:
        text = "may sum up the others: leave it out, or, if it is an arm, say arm= (--arm)"
        raise ValueError(f"{table.of}: the row {min(off)!r} {text}")
    return names - off


def _events(table: Table, values: list[int], counts: Mapping[str, int]) -> tuple[Happening, ...]:
    found = []
    for i, row in enumerate(table.rows):
        whole = [int(one) if isinstance(one, float) and one.is_integer() else one for one in row]
        cells = ["" if one is None or one != one else str(one) for one in whole]
        value, by_head = tuple(table.number(i, j) for j in values), dict(zip(table.columns, cells, strict=True))
        found.append(Happening(table.places[i], value, by_head, table.counted(i, counts)))
    return tuple(found)


@unswept()
def _wide(table: Table, index: str | int | None, told: bool) -> Measurements:
    heads, levels = table.columns, table.levels
    if index is None and heads[levels:] and heads[levels].lower() in INDEXES:
        index = 0
    if isinstance(index, str):
        index = table.column(index)
    elif index is not None:
        index = integer("index", index, 0, max(len(heads) - levels - 1, 0)) + levels
    named = [*range(levels)] if index is None else [index]
    arms = [j for j in range(levels, len(heads)) if j not in named]
    names = [heads[j] for j in arms]
    if twice := sorted({one for one in names if names.count(one) > 1}):
        raise ValueError(f"{table.of} has columns of the same name: {twice[:5]}")
    items = [" ".join(label_of(row[j]) for j in named) if named else str(i) for i, row in enumerate(table.rows)]
    if index is not None:
        of_rows = [f"{place} ({row[index]!s:.40})" for place, row in zip(table.places, table.rows, strict=True)]
        table = table._replace(places=of_rows)
    table = table.settled(arms)
    try:
        x = np.array([table.numbers([(i, j) for j in arms]) for i in range(len(items))]).reshape(len(items), len(arms))
    except _NoNumberError as error:
        raise ValueError(f"{error}. {AS_WIDE}") from None
    told |= names == [f"arm {j}" for j in range(len(names))]  # an array
    truths = len(names) > 1 and min(map(len, names)) > 1 and {WORDS.get(one.lower()) for one in names} == {0.0, 1.0}
    odd = [one for one in names if one.lower() in NO_ARMS or re.split("[_ ]", one.lower(), maxsplit=1)[-1] in COUNTING]
    odd = [one for one in heads[:levels] if one.lower() in COMPARED] or odd or names[:1] * truths
    if not told and (odd := odd or [names[k] for k in _dependent(x)]):
        text = "may number the rows, sum them up, or name what is compared: name a column of names of rows by index=,"
        text += " transpose a table with an arm in each row, or say wide=True, if all columns are arms (of an instance,"
        raise ValueError(f"{table.of}: the column {odd[0]!r} {text} \"table(path='FILE', wide=True)\")")
    totals = {i for i, one in enumerate(items) if named and one.lower() in TOTALS}
    tried = totals | ({len(items) - 1} - {-1} if not told else set[int]())
    sums = {i: _summary(x[i], np.delete(x, [*totals | {i}], axis=0), i in totals) for i in sorted(tried)}
    if not told and (other := [items[i] for i in totals if not sums[i]]):
        raise ValueError(f"{table.of}: the row {other[0]!r} may sum up the others: leave it out, or say wide=True")
    kept = [i for i in range(len(items)) if not sums.get(i)]
    columns = [(f", column {one!r:.80}", one) for one in names]
    found = [
        Measurement(table.places[i] + head, one, (value,), items[i])
        for i in kept
        for (head, one), value in zip(columns, x[i].tolist(), strict=True)
        if value == value
    ]
    lost = [f"the row {items[i]!r}, the {what} of others" for i, what in sums.items() if what]
    items = [items[i] for i in kept]
    said = ["a column for each arm", *(f"names of rows in {heads[j]!r}" for j in named)]
    gaps = len(items) * len(names) - len(found)
    lost += [f"{gaps} empty cells"] * (gaps > 0) + [f"the index {heads[j]!r}" for j in range(levels) if j not in named]
    line = _line(table, said, f"{len(items)} rows, {len(names)} arms", lost)
    return Measurements(table.of, names, found, tuple(items), read=line)


def _dependent(x: Floats) -> list[int]:
    """The columns that count by a constant step, or that the others give, beyond chance: their sum, mean, or an end."""
    x = x[:1000]
    steps, full = np.diff(x, axis=0), x[~np.isnan(x).any(axis=1)]
    counts = (len(x) > 2) & np.isin(x[:1], (0, 1)) & (steps[:1] == 1) | (len(x) >= 5) & (steps[:1] != 0)
    odd = np.isclose(steps, steps[:1], rtol=1e-6).all(axis=0) & counts.any(axis=0)
    if min(len(full) - 4, x.shape[1] - 2) > 0:
        ends, total = np.sort(full, axis=1), full.sum(axis=1, keepdims=True) - full
        low, high = (np.where(full == ends[:, [i]], ends[:, [k]], ends[:, [i]]) for i, k in ((0, 1), (-1, -2)))
        kinds = np.array([len(np.unique(column)) for column in full.T])
        near = 0.01 * np.minimum(np.ptp(full, axis=0), (ends[:, -1] - ends[:, 0]).max())
        for other, least in ((total, 3), (total / (x.shape[1] - 1), 3), (low, 8), (high, 8)):
            odd |= (abs(full - other) <= near).all(axis=0) & (kinds >= least)
    return np.flatnonzero(odd).tolist()


def _summary(row: Floats, others: Floats, named: bool) -> str:
    """Whether a row is the "sum" or the "mean" of others, beyond chance where it is not `named` so."""
    found, sums = ~np.isnan(row), np.nansum(others, axis=0)
    means = sums / np.maximum((~np.isnan(others)).sum(axis=0), 1)
    sure = named or min(len(others) - 2, len(row) - 1) > 0 and bool((others != row).all())
    kinds = {"sum": sums, "mean": means} if sure and found.any() and len(others) else {}
    return next((what for what, x in kinds.items() if np.isclose(row, x, rtol=1e-9, atol=0)[found].all()), "")


def _is_days(head: str, cells: Sequence[Any]) -> bool:
    """Whether a column holds days, by its head or by its cells."""
    there = [str(cell).strip() for cell in cells if not nameless(cell)]
    return head.lower() in DAYS or bool(there) and all(map(DATE.fullmatch, there))


def nameless(cell: object) -> bool:
    """Whether a cell holds no name."""
    return not _named(cell)


def _named(cell: object) -> str:
    """The name in a cell, "" for none."""
    return "" if cell is None else _name_in(str(cell))


@functools.lru_cache(4096)
def _name_in(text: str) -> str:
    return "" if text.strip().lower() in UNNAMED else _text(text)


def _text(cell: object) -> str:
    """A name as it stands in a cell, with accents composed (NFC), and a day without the time 0:00 of frames."""
    return MIDNIGHT.sub(r"\1", normalize("NFC", str(cell)).strip())


def label_of(cell: object) -> str:
    """The name of a row, "" for none; a whole number is written without a point."""
    return _named(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def _read(table: Any, sep: str | None, sheet: str | int | None, layout: str | Path | None, plain: bool) -> Table:
    """The cells of a table; `plain`: it is no plate."""
    if isinstance(table, (str, Path)):
        of = str(table)
        if "://" not in of and not Path(of).is_file():
            raise FileNotFoundError(f"{of} is a folder, and no file" if Path(of).is_dir() else f"there is no file {of}")
        if Path(of).suffix.lower() == ".json":
            raise ValueError(f"{of}: of JSON, JSON Lines (.jsonl) are read: an object with the columns in each line")
        if Path(of).suffix.lower() in PARQUET or plain and layout is None:
            return cells_of(of, sep, sheet)
        rows = rows_of_file(of, sep, sheet)
        plates = [] if plain else plates_in(of, rows)
        if layout is not None:
            other = str(layout if Path(layout).is_file() else of)
            names = rows_of_file(other, sep, None if other == str(layout) else str(layout))
            plates = plates_in(other, names) + plates
        return _table(of, plate_rows(of, plates, layout is not None) if plates or layout is not None else rows)
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


def cells_of(path: str, sep: str | None = None, sheet: str | int | None = None) -> Table:
    """The cells of a file, see `measurements`; of CSV as text."""
    if Path(path).suffix.lower() not in PARQUET:
        return _table(path, rows_of_file(path, sep, sheet))
    pandas, _ = (require(name, "a Parquet file, read by pandas and pyarrow,") for name in ("pandas", "pyarrow"))
    try:
        return _read_frame(path, pandas.read_parquet(path))
    except Exception as error:  # of a damaged file
        raise ValueError(f"{path} is no Parquet file that can be read: {error!s:.200}") from None


def _table(of: str, rows: Rows) -> Table:
    """Rows under the heads in the first one; columns without a head and a cell are left out."""
    if len(rows) < 2:
        none = "it is empty; a first line names columns"
        has = f"it has the columns {rows[0][1]!r:.80}, and no row" if rows else none
        raise ValueError(f"{of}, line 1: {has}")
    heads = ["" if is_empty(head) else _text(head) for head in rows[0][1]]
    for place, row in rows:
        if len(row) != len(heads):
            text = f"{of}, {place}: it has {len(row)} cells, the first line has {len(heads)}; a cell in which the mark"
            raise ValueError(f"{text} between cells occurs stands in quotes, and another mark is named by sep= (--sep)")
    kept = [j for j, head in enumerate(heads) if head or not all(is_empty(row[j]) for _, row in rows)]
    cells = [[row[j] for j in kept] if len(kept) < len(heads) else row for _, row in rows[1:]]
    return Table(of, [heads[j] for j in kept], [place for place, _ in rows[1:]], cells, left=getattr(rows, "left", ""))


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
    """A frame of pandas; what its index has, but for numbers of rows, stands in columns in front."""
    ends = [one[-1] if isinstance(one, tuple) else one for one in frame.columns]
    heads = [_text(one) for one in (ends if len({*ends}) == len(ends) else frame.columns)]
    levels = [
        ("" if one is None else _text(one), frame.index.get_level_values(i)) for i, one in enumerate(frame.index.names)
    ]
    plain = len(levels) == 1 and not levels[0][0] and [*frame.index] == [*range(len(frame))]
    levels = [] if plain else [(head, cells) for head, cells in levels if head not in heads]
    grid = frame.to_numpy(dtype=object, copy=True)
    grid[frame.isna().to_numpy()] = None
    rows = [[*front, *row] for *front, row in zip(*(cells for _, cells in levels), grid.tolist(), strict=True)]
    places = [f"row {one}" for one in frame.index]
    return Table(of, [*(head for head, _ in levels), *heads], places, rows, levels=len(levels))


def weighted(table: Any, value: str | None = None, n: str | None = None, **how: Any) -> tuple[list[float], list[int]]:
    """The values of one arm, and how many measurements each of them stands for.

    Args:
        table, how: as for `measurements`: `sep`, `decimal`, `sheet`.
        value: the column of values; None: "value", or the only one beside the counts. n: that of counts; None: "n" and
            the like, or none, where each row is a measurement.
    """
    read = _read(table, how.get("sep"), how.get("sheet"), None, plain=True)._replace(decimal=how.get("decimal"))
    sizes = [n] if n is not None else _heads(read, (*COUNTS["n"], "frequency"))
    others = [one for one in read.columns[read.levels :] if one not in sizes]
    found = [value] if value is not None else [one for one in others if one.lower() == VALUE] or others
    for name, heads in (("value", found), ("n", sizes)):
        if len(heads) > 1 or name == "value" and not heads:
            raise ValueError(f"{read.of}: {name} may be any of the columns {heads or read.columns}: say {name}=")
    j, k = read.column(found[0]), read.column(sizes[0]) if sizes else None
    read = read.settled([j] if k is None else [j, k])
    rows = [i for i in range(len(read.rows)) if not math.isnan(read.number(i, j))]
    sizes_of = [1.0 if k is None else read.number(i, k) for i in rows]
    counts = [
        integer(f"{read.of}, {read.places[i]}: n", int(x) if x.is_integer() else x, 0)
        for i, x in zip(rows, sizes_of, strict=True)
    ]
    left = [f"{len(read.rows) - len(rows)} rows without a value"] * (len(rows) < len(read.rows))
    said = [f"values in {found[0]!r}", *(f"n in {one!r}" for one in sizes)]
    SAID.info(_line(read, said, f"{sum(counts)} measurements", left))
    return [read.number(i, j) for i in rows], counts
