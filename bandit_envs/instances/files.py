"""The rows of a file: CSV of any country, a sheet of Excel, JSON Lines; and the plates of wells in them.

A plate is a block of cells under the numbers of its columns, 1, 2, .., and beside the letters of its rows, A, B, ..,
wherever it stands: programs of plate readers write some lines about the measurement above it.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gc
import importlib
import io
import json
import re
import warnings
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, product, takewhile
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from ..kernels.checks import integer, require, unzipped

MARKS = (",", ";", "\t")  # that part the cells of a line
PLATES = {48: 32, 24: 16, 12: 8, 8: 6, 6: 4, 4: 3, 3: 2}  # columns and rows of plates with 1536 to 6 wells
ROWS = [*ascii_uppercase, *(f"A{letter}" for letter in ascii_uppercase)]  # of a plate
FIRST = 200  # rows of a file that show how its cells are parted, and in which plates begin
SEP = re.compile(r"sep=(.?)[ \t]*(\r\n|\r|\n|$)", re.IGNORECASE)  # the first line of a spreadsheet's file, for itself
WHOLE = re.compile(r"^0*(\d+)(\.0)?$")
HEADS = re.compile(r"(?:\0\s*0*[123](?:\.0)?\s*){3}")  # what a line of a plate's columns has, 1, 2, 3, behind a corner
DIGITS = re.compile(r"[-+\d.,]+")
MOST_CELLS = 10**7  # of an Excel file
YES = ("1", "t", "true")  # in XML
UNSAVED = object()  # a formula without its value


class Rows(list[tuple[str, list[Any]]]):
    """Rows with their places, for errors; `left` says what was left out."""

    left: str = ""


@contextlib.contextmanager
def unswept() -> Iterator[None]:
    """Without Python's search for cycles, which goes through all cells again with each that is read."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        (gc.enable if was else gc.disable)()


def rows_of_file(path: str, sep: str | None = None, sheet: str | int | None = None) -> Rows:
    """The rows of a file, see `measurements`."""
    ending = Path(path).suffix.lower()
    if ending in (".xlsx", ".xlsm"):
        return _sheet(path, sheet)
    if sheet is not None:
        text = "sheets, and layout= that is no file, are of Excel files (.xlsx),"
        raise ValueError(f"{text} got {sheet!r:.80} of {path}")
    return _objects(path) if ending in (".jsonl", ".ndjson") else _lines(path, sep)


def is_empty(cell: object) -> bool:
    """Whether nothing stands in a cell."""
    return cell is None or isinstance(cell, str) and not cell.strip()


def _text(path: str) -> str:
    raw = Path(path).read_bytes()
    try:
        text = raw.decode("utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
        if "\0" not in text:
            warnings.warn(f"{path} is no text in UTF-8, and is read as Latin-1: see to its names", stacklevel=6)
    if "\0" in text.partition("\n")[0]:
        raise ValueError(f"{path} is no text: save it as CSV UTF-8, Excel (.xlsx), JSON Lines (.jsonl) or Parquet")
    return text


def _lines(path: str, sep: str | None) -> Rows:
    """The lines of CSV that are not empty."""
    text, rows = _text(path), Rows()
    if noted := SEP.match(text):
        text = "\n" + text[noted.end() :]
    mark = sep or (noted[1] if noted else "") or _mark(path, text)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=mark)
    try:
        with unswept():
            rows.extend((f"line {reader.line_num}", cells) for cells in reader if cells)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    return rows


def _mark(path: str, text: str) -> str:
    """The mark that gives all lines the same number of cells; else the one that parts most lines."""
    fitting, parts = list[str](), dict.fromkeys(MARKS, (0, 0))
    for mark in MARKS:
        with contextlib.suppress(csv.Error):
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
            counts = [len(cells) for cells in islice(reader, FIRST) if cells]
            parts[mark] = sum(count > 1 for count in counts), sum(counts)
            fitting += [mark] if counts and min(counts) == max(counts) > 1 else []
    if len(fitting) > 1:
        raise ValueError(f"{path}: its cells may be parted by {' or '.join(map(repr, fitting))}: say sep= (--sep)")
    return fitting[0] if fitting else max(MARKS, key=parts.__getitem__)


def _objects(path: str) -> Rows:
    """The objects of JSON Lines, under a row of their keys."""
    found = list[tuple[str, dict[str, Any]]]()
    for i, line in enumerate(_text(path).split("\n"), 1):
        try:
            found += [(f"line {i}", {**json.loads(line, object_pairs_hook=_once)})] if line.strip() else []
        except (ValueError, TypeError, RecursionError):
            what = "a row is a JSON object with the columns, each once"
            raise ValueError(f"{path}, line {i}: {what}, got {line!r:.80}") from None
    heads = list(dict.fromkeys(name for _, row in found for name in row))
    return Rows([("line 1", heads), *((place, [row.get(name) for name in heads]) for place, row in found)])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, whose keys differ."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice in an object")
    return found


def _page(page: Any, most: int) -> tuple[dict[tuple[int, int], Any], list[int], list[int]]:
    """The cells of a sheet by (row, column), and its hidden rows and columns, in order.

    They are read as a stream: that costs what there is, wherever it is.
    """
    reader: Any = importlib.import_module("openpyxl.worksheet._reader")
    book, cells = page.parent, dict[tuple[int, int], Any]()
    with page._get_source() as source:
        formats = book.epoch, book._date_formats, book._timedelta_formats
        parser = reader.WorkSheetParser(source, page._shared_strings, True, *formats)
        read = parser.parse_cell

        def parse_cell(element: Any) -> Any:
            cell = read(element)
            unsaved = is_empty(cell["value"]) and element.find(reader.FORMULA_TAG) is not None
            return cell | {"value": UNSAVED} if unsaved else cell

        parser.parse_cell = parse_cell
        for _, row in parser.parse():
            cells |= {(one["row"], one["column"]): one["value"] for one in row if not is_empty(one["value"])}
            if len(cells) > most:
                raise ValueError(f"it has more than {MOST_CELLS:,} cells")
    tall, wide = (max((place[side] for place in cells), default=1) for side in (0, 1))
    rows = {int(i) for i, one in parser.row_dimensions.items() if one.get("hidden") in YES}
    hidden = (one for one in parser.column_dimensions.values() if one.get("hidden") in YES)
    columns = {j for one in hidden for j in range(int(one["min"]), min(int(one["max"]), wide) + 1)}
    for block in getattr(parser.merged_cells, "mergeCell", ()):
        lines = range(block.min_row, min(block.max_row, tall) + 1)
        beside = range(block.min_col, min(block.max_col, wide) + 1)
        most -= len(lines) * len(beside)
        if most < 0:
            raise ValueError(f"its merged cells are without end, such as {block.coord}")
        first, *_ = [cells.pop(place, None) for place in product(lines, beside)] or [None]
        texts = lines if isinstance(first, str) else lines[:1]
        cells |= {} if first is None else {(i, block.min_col): first for i in texts}
    return cells, [i for i in sorted(rows) if i <= tall], sorted(columns)


def _spaced(places: set[int], hidden: Sequence[int]) -> list[int]:
    """Numbers in order; in each gap, but for hidden ones, a negative number, that of its last place."""
    found, last = list[int](), 0
    for i in sorted(places):
        place = i - bisect(hidden, i)
        found += [1 - i, i] if place > last + 1 else [i]
        last = place
    return found


def _sheet(path: str, sheet: str | int | None) -> Rows:
    """The rows of a sheet from its first one with two cells on; a text of merged cells stands in each of their rows.

    Rows and columns that are hidden, or filtered away, are left out. Of empty ones in a row one is kept.
    """
    excel, pages, most = require("openpyxl", "an Excel file", "excel"), dict[str, Any](), MOST_CELLS
    try:
        given: Any = {"read_only": True, "data_only": True, "keep_links": False}
        with unzipped(path), contextlib.closing(excel.load_workbook(path, **given)) as book:
            for one in book.worksheets:
                if sheet is not None or one.sheet_state == "visible":
                    pages[one.title] = _page(one, most)
                    most -= len(pages[one.title][0])
    except Exception as error:  # a damaged file raises errors of many kinds
        said = f"{type(error).__name__} {error}"
        raise ValueError(f"{path} is no Excel file that can be read: {said:.200}") from None
    names = [title for title, one in pages.items() if sheet is not None or one[0].keys() - {(1, 1)}]
    if sheet is None and len(names) != 1:
        raise ValueError(f"{path} has the sheets {names}: say sheet= (--sheet)")
    if sheet is not None and sheet not in names:
        if isinstance(sheet, str) and not sheet.isdecimal():
            raise ValueError(f"{path} has no sheet {sheet!r:.80}, only {names}")
        sheet = names[integer("sheet", int(sheet) if isinstance(sheet, str) else sheet, 1, len(names)) - 1]
    name = str(sheet or names[0])
    every, *sides = pages[name]
    hidden, unseen = ({*one} for one in sides)
    cells, found = {(i, j): x for (i, j), x in every.items() if i not in hidden and j not in unseen}, Rows()
    if unsaved := [place for place, cell in cells.items() if cell is UNSAVED]:
        place, how = unsaved[0], "holds a formula without its value: save the file in a spreadsheet program"
        raise ValueError(f"{path}, sheet {name}, {excel.utils.get_column_letter(place[1])}{place[0]} {how}")
    rows, columns = (_spaced({place[side] for place in cells}, sides[side]) for side in (0, 1))
    if len(rows) * len(columns) > MOST_CELLS:
        size = f"{len(rows):,} rows and {len(columns):,} columns"
        raise ValueError(f"{path}, sheet {name}, has {size} that are used: {MOST_CELLS:,} cells at most")
    counts = Counter(i for i, _ in cells)
    least = min(2, max(counts.values(), default=0))
    begin = next((n for n, i in enumerate(rows) if counts[i] >= least), 0)  # behind a title
    found.extend((f"sheet {name}, row {abs(i)}", [cells.get((i, j)) for j in columns]) for i in rows[begin:])
    lost = [f"{len(one)} hidden {what}" for one, what in ((hidden, "rows"), (unseen, "columns")) if one]
    found.left = ", ".join(lost)
    return found


def plates_in(of: str, rows: Rows) -> list[dict[str, Any]]:
    """The cells of each plate that begins in the first rows, by the names of their wells, A1, A2, ..."""
    found, texts = list[dict[str, Any]](), list[list[str]]()
    for _, row in rows[:FIRST]:
        there = HEADS.search("\0".join(map(str, row)))
        texts.append([WHOLE.sub(r"\1", str(x).strip()) for x in row] if there else [])
    corners = ((i, j) for i, row in enumerate(texts) for j in range(len(row)) if row[j + 1 : j + 4] == ["1", "2", "3"])
    for i, j in corners:
        beside = [str(row[j] if j < len(row) else "").strip().upper() for _, row in rows[i + 1 : i + 2 + len(ROWS)]]
        columns = _run(texts[i][j + 1 :], list(map(str, range(1, len(texts[i])))))
        lines = _run(beside, ROWS)
        if lines < min(PLATES.values()):
            continue
        after = [*texts[i][j + columns + 1 :][:1], *beside[lines:][:1]]
        if PLATES.get(columns) != lines or any(one.isdecimal() or len(one) == 1 and one in ROWS for one in after):
            sizes = ", ".join(f"{many} x {PLATES[many]}" for many in PLATES)
            text = f"{of}, {rows[i][0]}: a block of {columns} columns and {lines} rows is no plate, or goes on behind"
            raise ValueError(f"{text} a gap; plates are of {sizes}. Say wide=True, if columns 1, 2, .. are arms")
        block = [[*row, *[None] * columns][j : j + columns + 1] for _, row in rows[i + 1 : i + 1 + lines]]
        found.append({f"{ROWS[k]}{n}": row[n] for k, row in enumerate(block) for n in range(1, columns + 1)})
    return found


def _run(found: Sequence[str], wanted: Sequence[str]) -> int:
    """How many texts are as wanted, from the first one on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, wanted, strict=False)))


def wells_of_plate(many: int) -> list[str]:
    """The wells of the smallest plate that has so many, A1, A2, .., B1, ..; none beyond 1536."""
    columns = min((n for n, lines in PLATES.items() if n * lines >= many), default=0)
    return [f"{row}{n}" for row in ROWS[: PLATES.get(columns, 0)] for n in range(1, columns + 1)]


def plate_rows(of: str, plates: Sequence[dict[str, Any]], named: bool) -> Rows:
    """The rows of a long table of a plate of names, and one of values; wells without a name are left out.

    The plates are in this order if they are `named`; else the names are in the one most of whose cells are no numbers.
    """
    shares = [[DIGITS.fullmatch(str(x).strip()) is None for x in one.values() if not is_empty(x)] for one in plates]
    texts = [sum(share) > len(share) / 2 for share in shares]
    if len(plates) != 2 or plates[0].keys() != plates[1].keys() or not named and sum(texts) != 1:
        raise ValueError(
            f"{of}: a plate needs a block of names and one of values, of the same size, got {len(plates)} blocks: say "
            "layout= (--layout), the file or sheet with the names alone; or wide=True, if columns 1, 2, .. are arms"
        )
    names, values = plates if named or texts[0] else reversed(plates)
    wells = [(well, name) for well, name in names.items() if not is_empty(name)]
    left, found = len(names) - len(wells), Rows([("", ["well", "name", "value"])])
    found.extend((f"well {well}", [well, name, values[well]]) for well, name in wells)
    found.left = f"{left} wells without a name" * (left > 0)
    return found
