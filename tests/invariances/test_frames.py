"""One table in frames of several packages, in files and in arrays: the same measurements, instances and sessions."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from bandit_envs import from_table, measurements

pandas: Any = pytest.importorskip("pandas")
arrow: Any = pytest.importorskip("pyarrow")

Columns = dict[str, list[Any]]
NAMES = {"words": ["gpt", "llama", "claude"], "numbers": [10, 2, 33]}
VALUES: dict[str, list[list[Any]]] = {  # a row of each item, None for a gap
    "floats": [[0.25, 0.5, 1.0], [0.75, None, 0.0], [None, 0.125, 0.5], [1.0, 0.0, 0.0]],
    "integers": [[1, 5, 0], [2, None, 7], [0, 3, 4], [6, 2, 1]],
    "booleans": [[True, False, True], [False, True, None], [True, True, True], [False, False, True]],
}


def wide(names: list[Any], rows: list[list[Any]]) -> Columns:
    columns = {str(name): [row[k] for row in rows] for k, name in enumerate(names)}
    return {"item": [f"q{n}" for n in range(len(rows))], **columns}


def long(names: list[Any], rows: list[list[Any]]) -> Columns:
    cells = [(f"q{n}", name, row[k]) for n, row in enumerate(rows) for k, name in enumerate(names)]
    return dict(zip(("item", "name", "value"), map(list, zip(*cells, strict=True)), strict=True))


def file_of(columns: Columns, kind: str, folder: Path, index: bool = False) -> str:
    frame, path = arrow.table(columns).to_pandas(), folder / f"table.{kind}"
    frame = frame.set_index("item") if index else frame
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=index)
    return str(path)


def narrow(columns: Columns) -> Any:
    """In two chunks; names of rows by a dictionary, numbers float32."""
    table = arrow.table(columns)
    for k, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        floats = arrow.types.is_floating(kind)
        given = table[name].cast(arrow.float32()) if floats else table[name]
        table = table.set_column(k, name, given.dictionary_encode() if name == "item" else given)
    return arrow.concat_tables([table.slice(0, 1), table.slice(1)])


FORMS: dict[str, Callable[[Columns, Path], Any]] = {
    "pandas": lambda columns, _: pandas.DataFrame(columns),
    "pandas, index": lambda columns, _: pandas.DataFrame(columns).set_index("item"),
    "pandas, categories": lambda columns, _: pandas.DataFrame(columns).astype({"item": "category"}),
    "polars": lambda columns, _: pytest.importorskip("polars", reason="needs polars").DataFrame(columns),
    "arrow": lambda columns, _: arrow.table(columns),
    "arrow, of pandas, index": lambda columns, _: arrow.Table.from_pandas(FORMS["pandas, index"](columns, _)),
    "arrow, narrow": lambda columns, _: narrow(columns),
    "duckdb": lambda columns, _: pytest.importorskip("duckdb").from_arrow(arrow.table(columns)),
    "csv": lambda columns, folder: file_of(columns, "csv", folder),
    "csv, index": lambda columns, folder: file_of(columns, "csv", folder, index=True),
    "parquet": lambda columns, folder: file_of(columns, "parquet", folder),
    "parquet, index": lambda columns, folder: file_of(columns, "parquet", folder, index=True),
}


def held(table: Any, read: Callable[[Any], Any] = measurements) -> set[tuple[str, str, float]]:
    """What a table holds."""
    return {(one.arm, one.item, one.value[0]) for one in read(table).rows}


def wanted(names: list[Any], rows: list[list[Any]]) -> set[tuple[str, str, float]]:
    cells = [(str(name), f"q{n}", row[k]) for n, row in enumerate(rows) for k, name in enumerate(names)]
    return {(name, item, float(x)) for name, item, x in cells if x is not None}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [wide, long], ids=lambda one: one.__name__)
def test_a_table_is_the_same_in_every_frame(shape: Any, form: str, tmp_path: Path) -> None:
    """Names that are words or numbers, gaps, integers, booleans; rows and arms in another order."""
    if shape is long and "index" in form:
        pytest.skip("a long table has its items in a column")
    for names in NAMES.values():
        for rows in VALUES.values():
            columns = shape(names, rows)
            turned = {name: column[::-1] for name, column in columns.items()}
            turned = {name: turned[name] for name in ["item", *[name for name in reversed(columns) if name != "item"]]}
            for one in (columns, turned):
                assert held(FORMS[form](one, tmp_path)) == wanted(names, rows), (names, rows)
            made = from_table(FORMS[form](columns, tmp_path), name="one")
            means = np.nanmean(np.array(rows, float), axis=0).tolist()
            assert dict(zip(made.arm_names, made.arms.means.tolist(), strict=True)) == pytest.approx(
                dict(zip(map(str, names), means, strict=True))
            )


def test_a_wrong_twin_is_caught(tmp_path: Path) -> None:
    """Frames taken for arrays of numbers, as Arrow's were, and gaps taken for 0."""
    columns, right = wide(NAMES["words"], VALUES["floats"]), wanted(NAMES["words"], VALUES["floats"])
    bare = {name: column for name, column in columns.items() if name != "item"}
    by_position = arrow.table({name: [x or 0.0 for x in column] for name, column in bare.items()})
    assert held(by_position, lambda table: measurements(np.asarray(table))) != right
    assert held(pandas.DataFrame(columns).fillna(0.0)) != right


def test_arrays_and_masks() -> None:
    """Arms of an array have no names; what is masked is a gap."""
    rows = np.array(VALUES["floats"], float)
    right = {(f"arm {k}", item[1:], x) for name, item, x in wanted([0, 1, 2], VALUES["floats"]) for k in [int(name)]}
    masked = np.ma.masked_array(np.nan_to_num(rows, nan=9.0), np.isnan(rows))
    assert held(rows) == held(masked) == held(rows.astype(np.float32)) == right
    assert held(rows.tolist()) == right


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "csv", "parquet"])
def test_a_session_takes_every_frame(form: str, tmp_path: Path) -> None:
    names, rows = NAMES["words"], VALUES["floats"]
    facts: dict[str, Any] = {"problem": "BestArm", "arms": names, "delta": 0.1, "items": [f"q{n}" for n in range(4)]}
    session = agents.Session("paired-elimination", {**facts, "range": (0, 1)}, store=tmp_path / "one.db")
    assert session.tell_table(FORMS[form](wide(names, rows), tmp_path)) == 10
    told = session.history().query("kind == 'told'")
    session.close()
    assert told["value"].sum() == np.nansum(np.array(rows, float))


@pytest.mark.parametrize("make", ["LazyFrame", "Series"])
def test_what_is_no_frame_is_refused_by_name(make: str) -> None:
    polars: Any = pytest.importorskip("polars", reason="needs polars")
    with pytest.raises(TypeError, match=rf"dataframe \(pandas, Polars, Arrow, ..\).*got {make}"):
        measurements(getattr(polars, make)({"a": [1, 2]} if make == "LazyFrame" else [1, 2]))


def test_gaps_of_a_shared_table_are_named() -> None:
    """`missing` gives an arm scores that it has not made, and rows that lack a cell are left out: both say so."""
    x = np.array(VALUES["floats"], float)
    with pytest.warns(UserWarning, match=r"empty count as the score 0: of 'arm 0' 25.0%, 'arm 1' 25.0%\. An arm"):
        from_table(x, shared=True, missing=0.0)
    with pytest.warns(UserWarning, match=r"2 of 4 rows have a score of every arm.*'arm 0' 25.0%, 'arm 1' 25.0%$"):
        from_table(x, shared=True)
    with pytest.raises(ValueError, match=r"no row has a score of every arm\. Empty cells: 'arm 0' 50.0%") as refused:
        from_table([[math.nan, 1.0], [0.5, math.nan]], shared=True)
    assert "missing=" not in str(refused.value)
