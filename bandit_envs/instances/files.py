"""The rows of a file: CSV of any country, a sheet of Excel, JSON Lines; and the plates of wells in them.

A plate is a block of cells under the numbers of its columns, 1, 2, .., and beside the letters of its rows, A, B, ..,
wherever it stands: programs of plate readers write some lines about the measurement above it.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import re
import warnings
import zipfile
from collections.abc import Sequence
from itertools import islice, takewhile
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from ..kernels.checks import integer, require

MARKS = (",", ";", "\t")  # that part the cells of a line
PLATES = {48: 32, 24: 16, 12: 8, 8: 6, 6: 4, 4: 3, 3: 2}  # columns and rows of plates with 1536 to 6 wells
ROWS = [*ascii_uppercase, *(f"A{letter}" for letter in ascii_uppercase)]  # of a plate
FIRST = 200  # rows of a file that show how its cells are parted, and in which plates begin
SEP = re.compile(r"sep=(.?)[ \t]*(\r\n|\r|\n|$)", re.IGNORECASE)  # the first line of a spreadsheet's file, for itself
WHOLE = re.compile(r"^0*(\d+)(\.0)?$")
DIGITS = re.compile(r"[-+\d.,]+")
MOST_CELLS = 3 * 10**7  # of a sheet of Excel, empty ones too
MOST_BYTES = 2**31  # of an Excel file, unpacked
MERGED = re.compile(rb'mergeCell[^>]* ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')


class Rows(list[tuple[str, list[Any]]]):
    """Rows with their places, for errors; `left` says what was left out."""

    left: str = ""


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


def _sheet(path: str, sheet: str | int | None) -> Rows:
    """The rows of a sheet from its first one with two cells on; a text of merged cells stands in each of their rows.

    Rows and columns that are hidden, or filtered away, are left out.
    """
    excel = require("openpyxl", "an Excel file", "excel")
    try:
        _refuse_huge(path)
        book, formulas = (excel.load_workbook(path, data_only=values) for values in (True, False))
    except Exception as error:  # a damaged file raises errors of many kinds
        said = f"{type(error).__name__} {error}"
        raise ValueError(f"{path} is no Excel file that can be read: {said:.200}") from None
    pages = [one for one in book.worksheets if sheet is not None or one.sheet_state == "visible"]
    names = [one.title for one in pages if sheet is not None or one.dimensions != "A1:A1"]
    if sheet is None and len(names) != 1:
        raise ValueError(f"{path} has the sheets {names}: say sheet= (--sheet)")
    if sheet is not None and sheet not in names:
        if isinstance(sheet, str) and not sheet.isdecimal():
            raise ValueError(f"{path} has no sheet {sheet!r:.80}, only {names}")
        sheet = names[integer("sheet", int(sheet) if isinstance(sheet, str) else sheet, 1, len(names)) - 1]
    name = sheet or names[0]
    shown, found = book[name], Rows()
    cells = {place: cell.value for place, cell in shown._cells.items() if not is_empty(cell.value)}
    tall, wide = (max((place[side] for place in cells), default=1) for side in (0, 1))
    if tall * wide > MOST_CELLS:
        raise ValueError(f"{path}, sheet {name}, has cells up to row {tall}, column {wide}: {MOST_CELLS:,} at most")
    hidden = {i for i, one in shown.row_dimensions.items() if one.hidden and i <= tall}
    ranges = [range(one.min, min(one.max, wide) + 1) for one in shown.column_dimensions.values() if one.hidden]
    unseen = {j for one in ranges for j in one}
    for place, cell in formulas[name]._cells.items():
        if cell.data_type == "f" and place not in cells and place[0] not in hidden and place[1] not in unseen:
            how = "holds a formula without its value: save the file in a spreadsheet program"
            raise ValueError(f"{path}, sheet {name}, {cell.coordinate} {how}")
    grid = [list(row) for row in shown.iter_rows(1, tall, 1, wide, values_only=True)]
    for block in shown.merged_cells.ranges:
        first = cells.get((block.min_row, block.min_col))
        for row in grid[block.min_row - 1 : block.max_row] if isinstance(first, str) else []:
            row[block.min_col - 1] = first
    there = [(i, [x for j, x in enumerate(row, 1) if j not in unseen]) for i, row in enumerate(grid, 1)]
    counts = {i: sum(not is_empty(cell) for cell in row) for i, row in there if i not in hidden}
    least = min(2, max(counts.values(), default=0))
    begin = next((i for i, count in counts.items() if count >= least), 1)  # behind a title
    found.extend((f"sheet {name}, row {i}", row) for i, row in there if i >= begin and i in counts)
    lost = [f"{len(one)} hidden {what}" for one, what in ((hidden, "rows"), (unseen, "columns")) if one]
    found.left = ", ".join(lost)
    return found


def _refuse_huge(path: str) -> None:
    """Refuse a small file that unpacks to a huge one, or has merged cells without end."""
    with zipfile.ZipFile(path) as archive:
        if (size := sum(one.file_size for one in archive.infolist())) > MOST_BYTES:
            raise ValueError(f"unpacked it has {size:,} bytes, more than {MOST_BYTES:,}")
        texts = (archive.read(one) for one in archive.namelist() if one.endswith(".xml"))
        for first, top, last, bottom in (found for text in texts for found in MERGED.findall(text)):
            wide = int(last, 36) - int(first, 36)  # at least as many columns, by the alphabet
            if (int(bottom) - int(top) + 1) * (wide + 1) > MOST_CELLS:
                raise ValueError(f"its merged cells reach from {(first + top).decode()} to {(last + bottom).decode()}")


def plates_in(of: str, rows: Rows) -> list[dict[str, Any]]:
    """The cells of each plate that begins in the first rows, by the names of their wells, A1, A2, ..."""
    found, texts = list[dict[str, Any]](), [[WHOLE.sub(r"\1", str(x).strip()) for x in row] for _, row in rows[:FIRST]]
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
