"""The suite in two: what is slow has its reason, and what takes its place; a folder that grew is named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import spent

TESTS = Path(__file__).parents[1]
SLOW = {path: tomllib.loads(path.read_text()) for path in TESTS.glob("*/slow.toml")}
FILES = {path: path.read_text() for path in TESTS.glob("*/test_*.py")}
NAMES = {path: set(re.findall(r"^(?:def )?(test_\w+)", text, re.MULTILINE)) for path, text in FILES.items()}
WHOLE = {(path.parent / file, row) for path, rows in SLOW.items() for file in rows for row in rows[file]}
BY_DEFAULT = {name for path, names in NAMES.items() for name in names if (path, name) not in WHOLE}


@pytest.mark.parametrize("path", SLOW, ids=lambda path: path.parent.name)
def test_a_slow_test_says_what_it_finds_and_what_finds_it_by_default(path: Path) -> None:
    for file, rows in SLOW[path].items():
        for row, text in rows.items():
            assert row.partition("[")[0] in NAMES[path.parent / file], row
            fault, _, others = text.partition("; ")
            assert fault, row
            assert set(others.split(", ")) <= BY_DEFAULT, (row, others)


def test_no_other_file_says_what_is_slow() -> None:
    mark = "mark" + ".slow"
    assert [path for path, text in FILES.items() if mark in text] == []


def test_a_folder_that_grew_is_named_in_the_unit_of_the_machine() -> None:
    record = {name: {"seconds": 10.0, "tests": 5} for name in "abcd"}
    rows: spent.Rows = {"a": [20.0, 3, 5], "b": [20.0, 0, 6], "c": [22.2, 0, 5], "d": [40.0, 9, 4], "e": [9.0, 0, 1]}
    assert [line[:12] for line in spent.grown(rows, record)] == ["c grew by 11"]
    assert spent.grown({"a": [10.9, 0, 5]}, record) == []
