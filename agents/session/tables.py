"""Results in a CSV file, long or wide, with errors that name the row and the column."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

__all__ = ["read_results"]

ARM, VALUE = ("name", "arm"), "value"  # heads of the columns of a long table
UNDONE = "undone"  # a column of the history that a session exports


def read_results(path: str | Path, dimensions: int, arm: Callable[[str], int]) -> list[tuple[int, float | list[float]]]:
    """The results in a file.

    A long table has a column `name`, or `arm`, and a column `value` (`value_0`, `value_1`, ... where a measurement has
    several dimensions). Other columns are left alone, and so are rows whose value is empty, or that have True in a
    column `undone`: so the history that a session has exported can be read. A wide table has a column for each arm,
    with its name as the head, and may have empty cells.

    Args:
        path: of the file.
        dimensions: of a measurement.
        arm: tells the number of an arm by its name.

    Raises:
        ValueError: naming the row, as an editor counts lines, and the column.
        FileNotFoundError: if there is no such file.
    """
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    if not rows:
        raise ValueError(f"{path} is empty: it needs a first line with the heads of the columns")
    head = [name.strip() for name in rows[0]]
    values = [VALUE] if dimensions == 1 else [f"{VALUE}_{d}" for d in range(dimensions)]
    named = next((name for name in ARM if name in head), None)
    found: list[tuple[int, float | list[float]]] = []
    if named is not None and all(name in head for name in values):
        for line, row in enumerate(rows[1:], 2):
            cells = dict(zip(head, row, strict=False))
            if all(not cells.get(name, "").strip() for name in values) or cells.get(UNDONE, "").strip() == "True":
                continue
            numbers = [_number(path, line, name, cells.get(name, "")) for name in values]
            one = _arm(path, line, named, cells.get(named, ""), arm)
            found.append((one, numbers[0] if dimensions == 1 else numbers))
        return found
    if dimensions > 1:
        raise ValueError(f"{path} needs the columns {ARM[0]} and {', '.join(values)}, got {', '.join(head):.200}")
    arms = [_arm(path, 1, f"number {place}", name, arm) for place, name in enumerate(head, 1)]
    for line, row in enumerate(rows[1:], 2):
        if len(row) > len(head):
            raise ValueError(f"{path}, row {line}: {len(row)} cells under {len(head)} heads")
        for one, name, cell in zip(arms, head, row, strict=False):
            if cell.strip():
                found.append((one, _number(path, line, name, cell)))
    return found


def _number(path: str | Path, line: int, column: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{path}, row {line}, column {column!r:.80}: {text!r:.80} is no number") from None


def _arm(path: str | Path, line: int, column: str, text: str, arm: Callable[[str], int]) -> int:
    try:
        return arm(text)
    except ValueError as error:
        raise ValueError(f"{path}, row {line}, column {column}: {error}") from None
