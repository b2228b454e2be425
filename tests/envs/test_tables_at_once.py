"""The cells of a table are read many at once: as one by one, in few calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from bandit_envs import measurements
from bandit_envs.instances.tables import Table

PLAIN = ["0", "1", "0.25", "1e-3", "-.5", "+2.", "1E2"]
ODD = ["", "NA", " 0.5 ", "true", "yes", "0,5", "1_0", "inf", "1e999", "x", "-", "e", ".", "1e", "٣"]


def one_by_one(self: Table, at: Any) -> list[float]:
    return [self.number(*one) for one in at]


def read(path: Path) -> Any:
    """The rows of a table, or the error."""
    try:
        found = measurements(path)
    except ValueError as error:
        return str(error)
    return repr((found.arms, found.rows, found.items, found.read))


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("odd", [0, 1, 3])
def test_cells_that_are_read_at_once_are_those_read_one_by_one(tmp_path: Path, odd: int, long: bool) -> None:
    generator, path, texts = np.random.default_rng(odd), tmp_path / "table.csv", set[str]()
    for _ in range(60):
        cells = generator.choice(PLAIN, (6, 4)).astype(object)
        for _ in range(odd):
            cells[generator.integers(6), generator.integers(4)] = f'"{generator.choice(ODD)}"'
        rows = [f"q{i},{','.join(row)}" for i, row in enumerate(cells)]
        if long:
            rows = [f"q{i},{'abcd'[k]},{cell}" for i, row in enumerate(cells) for k, cell in enumerate(row)]
        path.write_text("\n".join(["item,name,value" if long else "item,a,b,c,d", *rows]))
        found = read(path)
        with mock.patch.object(Table, "numbers", one_by_one):
            assert read(path) == found
        texts.add(found[:1])
    assert texts >= ({"(", "/"} if odd else {"("})  # tables, and errors


@pytest.mark.parametrize("long", [False, True])
def test_plain_numbers_are_not_looked_at_one_by_one(tmp_path: Path, long: bool) -> None:
    scores, path = np.random.default_rng(0).random((20, 30)), tmp_path / "table.csv"
    heads = "item,name,value" if long else "item," + ",".join(f"m{k}" for k in range(30))
    rows = [f"q{i},{','.join(map(repr, row))}" for i, row in enumerate(scores.tolist())]
    if long:
        rows = [f"q{i},m{k},{x!r}" for i, row in enumerate(scores.tolist()) for k, x in enumerate(row)]
    path.write_text("\n".join([heads, *rows]))
    with mock.patch.object(Table, "number", autospec=True, side_effect=Table.number) as number:
        found = measurements(path)
    assert number.call_count == 0
    assert [one.value[0] for one in found.rows] == scores.ravel().tolist()
