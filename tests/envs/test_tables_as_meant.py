"""Tables of other people's habits: what is read is what was meant, and said; or it is refused with what settles it."""

from __future__ import annotations

import contextlib
import time
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from damage import broken
from refusals import refused

import agents
from bandit_envs import from_table, measurements
from bandit_envs.kernels import within_ends

openpyxl: Any = pytest.importorskip("openpyxl")
FREQUENCIES = pd.DataFrame({"name": list("aabb"), "value": [1, 0, 1, 0], "n": [250, 750, 750, 250]})
RAW = pd.DataFrame({"variant": list("AABB") * 50, "x": np.arange(200) % 3, "won": np.arange(200) % 2})

WIDE = pd.DataFrame(np.random.default_rng(0).random((12, 3)), columns=["a", "b", "c"])
SUMMED = pd.DataFrame({"variant": ["A", "B", "Alles"], "n": [5, 6, 11], "successes": [1, 2, 3]})


def counts(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"variant": ["A", "B"], **columns})


def test_a_line_says_what_was_read(tmp_path: Path) -> None:
    rows = "day,variant,n,successes,device\n1,A,10,3,x\n1,B,9,4,x\n2,A,12,3,y\n2,B,0,0,y\n"
    (tmp_path / "c.csv").write_text(rows)
    found = measurements(tmp_path / "c.csv")
    said = "names in 'variant', n in 'n', successes in 'successes', days in 'day'; 3 rows, 2 arms, 1 to 2 of each"
    assert found.read == f"{tmp_path / 'c.csv'}: {said}; left out: 1 rows without a value, columns 'device'"
    assert from_table(tmp_path / "c.csv").read == found.read
    wide = measurements(pd.DataFrame({"id": ["q", "r"], "a": [1, None], "b": [0, 1]})).read
    assert wide == "the table: a column for each arm, names of rows in 'id'; 2 rows, 2 arms; left out: 1 empty cells"


REFUSED: dict[str, tuple[pd.DataFrame, dict[str, Any], list[object]]] = {
    "n beside value": (FREQUENCIES, {}, ["'n'", "'value'", "n='n'", "value='value'"]),
    "a mean called value": (FREQUENCIES.assign(value=0.5), {"n": "n"}, ["mean", 0.5]),
    "sessions and clicks": (counts(sessions=[5, 6], clicks=[2, 3]), {}, ["n=", "successes="]),
    "hours and events": (counts(hours=[5, 6], events=[2, 3]), {}, ["n=", "successes="]),
    "orders of users": (counts(users=[5, 6], orders=[2, 3]), {}, ["successes=", "'orders'"]),
    "two retentions": (counts(n=[5, 6], day_1=[2, 3], day_7=[1, 1]), {}, ["--successes", "'day_1', 'day_7'"]),
    "conversions of sessions": (counts(sessions=[5, 6], conversions=[2, 3]), {}, ["say n=", "'sessions'"]),
    "two numbers of people": (counts(users=[5, 6], visitors=[7, 8], successes=[2, 3]), {}, ["'visitors', 'users'"]),
    "two columns of names": (counts(group=["C", "D"], n=[5, 6], successes=[2, 3]), {}, ["arm=", "'variant', 'group'"]),
    "names that are numbers": (counts(n=[5, 6], successes=[2, 3]).drop(columns="variant"), {}, ["arm="]),
    "sums of an aggregate": (RAW.groupby("variant")["won"].agg(["sum", "count"]), {}, ["'sum'"]),
    "a row all": (counts(n=[5, 6], successes=[2, 3]).assign(variant=["all", "B"]), {}, []),
    "a row all of three": (pd.DataFrame({"name": ["a", "b", "all"], "value": [1, 2, 9]}), {}, ["'all'", "arm="]),
    "counts 0, 1, 2": (pd.DataFrame({"x": [0, 1, 2], "a": [0.1, 0.5, 0.2], "b": [1, 0, 0]}), {}, ["'x'", "index="]),
} | {
    head: (pd.DataFrame({head: [3, 1, 2], "a": [0.1, 0.5, 0.2]}), {}, [f"'{head}'", "index=", "wide=True"])
    for head in ("seed", "fold", "run", "rep", "Epoch", "trial", "#", "time", "total", "best", "Average", "run_id")
} | {
    f"{head} of others": (WIDE.assign(x=found), {}, ["'x'", "wide=True"])
    for head, found in {"sum": WIDE.sum(axis=1), "mean": WIDE.mean(axis=1).round(2), "max": WIDE.max(axis=1)}.items()
} | {
    "a constant step": (WIDE.assign(x=np.arange(12) * -2.5 + 7), {}, ["'x'", "wide=True"]),
    "weights": (FREQUENCIES.rename(columns={"n": "Weight"}), {}, ["n='Weight'", "value='value'"]),
    "ids of users": (RAW.assign(users=np.arange(200) + 7, converted=RAW["won"]), {}, ["'users'", "value='converted'"]),
    "ids named": (RAW.assign(id=np.arange(200) // 9), {"n": "id", "successes": "won"}, ["'id'", "value='won'"]),
    "models in rows": (WIDE.head(3).set_axis(list("xyz")).rename_axis("model"), {}, ["index="]),
    "arms in rows": (WIDE.head(3).set_axis(list("xyz")).rename_axis("arm"), {}, ["'arm'", "transposed", "wide=True"]),
    "statistics": (RAW.groupby("variant")["x"].agg(["mean", "var"]), {}, ["'variant'", "transposed"]),
    "right and wrong": (pd.DataFrame({"False": [3, 9], "True": [7, 1]}), {}, ["'False'", "wide=True"]),
    "a row of deviations": (WIDE.assign(id=[*"abcdefghijk", "std"])[["id", *WIDE]], {}, ["'std'", "wide=True"]),
    "a sum by another name": (SUMMED, {}, ["'Alles'", "arm="]),
}  # fmt: skip


@pytest.mark.parametrize("title", REFUSED)
@pytest.mark.parametrize("form", ["pandas", "csv", "polars"])
def test_what_may_be_two_things_is_refused(title: str, form: str, tmp_path: Path) -> None:
    frame, how, words = REFUSED[title]
    table: Any = frame
    if form == "csv":
        table = tmp_path / "t.csv"
        frame.to_csv(table, index=frame.index.name is not None)
    if form == "polars":
        table = pytest.importorskip("polars").from_pandas(frame, include_index=frame.index.name is not None)
    if not words:
        assert measurements(table).arms == ["all", "B"]  # two arms: nothing is summed up
        return
    with pytest.raises(ValueError, match=".") as caught:
        measurements(table, **how)
    assert [word for word in words if str(word) not in str(caught.value)] == []


def test_what_settles_it() -> None:
    many = {one.arm: 0 for one in measurements(FREQUENCIES, n="n").rows}
    for one in measurements(FREQUENCIES, n="n").rows:
        many[one.arm] += one.several.successes if one.several else 0
    assert many == {"a": 250, "b": 750}
    assert from_table(FREQUENCIES, n="n").arms.means.tolist() == [0.25, 0.75]
    assert len(measurements(FREQUENCIES, value="value").rows) == 4
    frame = REFUSED["seed"][0]
    assert measurements(frame, index="seed").arms == ["a"]
    assert measurements(frame, wide=True).arms == ["seed", "a"]
    assert measurements(counts(sessions=[5, 6], clicks=[2, 3]), n="sessions", successes="clicks").arms == ["A", "B"]
    for title in ("mean of others", "a constant step", "models in rows", "right and wrong", "a row of deviations"):
        frame = REFUSED[title][0].set_index("id") if "id" in REFUSED[title][0] else REFUSED[title][0]
        assert measurements(frame, wide=True).arms == [*frame]
        assert len(measurements(frame, wide=True).items) == len(frame)
    assert measurements(WIDE.to_numpy().cumsum(axis=0) * 0 + np.arange(12)[:, None]).arms == ["arm 0", "arm 1", "arm 2"]
    assert measurements(SUMMED, arm="variant").arms == ["A", "B", "Alles"]
    assert measurements(FREQUENCIES.assign(weight=[61.5, 70, 80, 64], value=[0.5, 1, 0, 2]).drop(columns="n")).arms == [
        "a",
        "b",
    ]
    binary = pd.DataFrame({"a": [0, 1, 0, 1, 0, 0] * 2, "b": [0, 0, 0, 1, 1, 0] * 2, "c": [0, 1, 0, 1, 1, 0] * 2})
    assert measurements(binary).arms == ["a", "b", "c"]  # the best of three may be right wherever one is


def test_single_results_need_no_n(tmp_path: Path) -> None:
    raw = RAW.rename(columns={"won": "Converted"}).assign(user_id=np.arange(200))
    raw.astype({"Converted": bool}).to_csv(tmp_path / "r.csv", index=False)
    for table in (raw, tmp_path / "r.csv", raw.set_index("variant")):
        found = measurements(table)
        assert "names in 'variant', values in 'Converted'; 200 rows, 2 arms, 100 of each" in found.read
        assert from_table(table).arms.means.tolist() == [0.5, 0.5]
    one = measurements(raw.assign(retained=1), successes="Converted")
    assert {row.value for row in one.rows} == {(0.0,), (1.0,)}
    few = raw.head(9).assign(users=np.arange(9) + 90)
    assert measurements(few).rows[1].several == (90 + 1, 1, None, None)  # few rows are counts
    with refused("already", "average repeats before"):
        from_table(raw.assign(item="q"), value="Converted", shared=True)


def test_names_in_the_index_of_a_frame() -> None:
    grouped = RAW.groupby("variant")
    for frame in (
        grouped.agg(n=("won", "size"), successes=("won", "sum")),
        grouped.agg(n=("won", "size"), successes=("won", "sum")).rename_axis(None),
        RAW.assign(day=np.arange(200) // 100)
        .groupby(["variant", "day"])
        .agg(n=("won", "size"), successes=("won", "sum")),
        grouped["won"].agg(["mean", "std", "count"]),
        grouped.agg({"won": ["mean", "std", "count"]}),
    ):
        found = measurements(frame)
        assert found.arms == ["A", "B"]
        assert sum(one.several.n for one in found.rows if one.several) == 200
        assert from_table(frame).arms.means == pytest.approx([0.5, 0.5])


def test_names_are_one_however_they_are_coded() -> None:
    coded = [unicodedata.normalize(form, "Café") for form in ("NFC", "NFD")]
    assert measurements(pd.DataFrame({"name": coded, "value": [1, 2]})).arms == [coded[0]]
    dates = pd.DataFrame({"name": pd.to_datetime(["2024-01-01", "2024-01-02"]), "value": [1.0, 2.0]})
    for table in (dates, dates.astype({"name": str}), dates.assign(name=["2024-01-01 00:00:00", "2024-01-02"])):
        assert measurements(table).arms == ["2024-01-01", "2024-01-02"]
    assert measurements(pd.DataFrame({"name": ["none", "NA"], "value": [1, 2]})).arms == ["none", "NA"]
    with refused("missing", "name"):
        measurements(pd.DataFrame({"name": ["a", None], "value": [1, 2]}))


def test_sums_are_no_rows(tmp_path: Path) -> None:
    table = pd.DataFrame({"variant": ["A", "B", "Total"], "n": [5, 6, 11], "successes": [1, 2, 3]})
    assert measurements(table).arms == ["A", "B"]
    assert "1 rows that sum others up" in measurements(table).read
    for of, name, last in (("sum", "sum", WIDE.sum()), ("mean", "Average", WIDE.mean()), ("sum", "", WIDE.sum())):
        wide = pd.concat([WIDE, last.to_frame().T], ignore_index=True).assign(id=[*"abcdefghijkl", name])
        found = measurements(wide[["id", *WIDE]])
        assert len(found.items) == len({row.item for row in found.rows}) == 12
        assert found.read.endswith(f"left out: the row {name!r}, the {of} of others")
    sparse = pd.DataFrame({"id": list("pqrs"), "a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    assert len(measurements(sparse).items) == 4  # the last row is the sum by chance


def book(path: Path) -> Any:
    made = openpyxl.Workbook()
    rows = [["name", "value", "note"], ["tea", 1, 7], ["tea", 0, 7], ["milk", 1, 7], ["milk", 1, 7]]
    for row in rows:
        made.active.append(row)
    made.create_sheet("old").append(["name", "value"])
    made["old"].sheet_state = "hidden"
    made.save(path)
    return made


def test_hidden_cells_of_a_sheet_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    made = book(path)
    made.active.row_dimensions[3].hidden = made.active.column_dimensions["C"].hidden = True
    made.save(path)
    found = measurements(path)
    assert [(one.arm, one.place) for one in found.rows][:2] == [
        ("tea", "sheet Sheet, row 2"),
        ("milk", "sheet Sheet, row 4"),
    ]
    assert found.read.endswith("left out: 1 hidden rows, 1 hidden columns")


def test_huge_and_damaged_sheets_are_refused_at_once(tmp_path: Path) -> None:
    """A cell of a style alone far below costs nothing; 60 damaged workbooks: read, or one clear error."""
    path, random = tmp_path / "t.xlsx", np.random.default_rng(0)
    made = book(path)
    made.active["XFD1048576"].font = openpyxl.styles.Font(bold=True)
    made.save(path)
    assert len(measurements(path).rows) == 4
    content = path.read_bytes()
    for _ in range(60):
        path.write_bytes(broken(content, random))
        with contextlib.suppress(ValueError):
            assert len(measurements(path).rows) <= 4
    (tmp_path / "t.parquet").write_bytes(b"PAR1" + bytes(50))
    with pytest.raises(ValueError, match="t.parquet is no Parquet file"):
        measurements(tmp_path / "t.parquet")


WHOLE = "D1:XFD1048576"  # of a sheet, but for the table
BLOATED = {
    "merged cells": f'</sheetData><mergeCells count="1"><mergeCell ref="{WHOLE}"/></mergeCells>',
    "merged cells, spelled otherwise": f"</sheetData><mergeCells><mergeCell\n  ref = '{WHOLE}'/></mergeCells>",
    "links": f'</sheetData><hyperlinks><hyperlink ref="{WHOLE}" location="x"/></hyperlinks>',
    "a cell far away": '<row r="1000000"><c r="AC1000000"><v>1</v></c></row></sheetData>',
    "columns that are hidden": '</sheetData><cols><col min="4" max="2000000000" hidden="1"/></cols>',
}


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("kind", BLOATED)
def test_what_a_sheet_costs_goes_by_its_cells(kind: str, coding: str, tmp_path: Path) -> None:
    path, made = tmp_path / "t.xlsx", tmp_path / "large.xlsx"
    book(path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode().replace("</sheetData>", BLOATED[kind])
            new.writestr(name, text.encode(coding if "sheet1" in name else "utf-8"))
    begin = time.process_time()
    assert len(measurements(made).rows) == 4
    assert time.process_time() - begin < 3


def test_a_gap_in_a_sheet_stays_one(tmp_path: Path) -> None:
    """Rows keep their numbers; a hidden row is no gap: two blocks with a gap between them are no plate of both."""
    made = openpyxl.Workbook()
    for place, cells in {3: ["", 1, 2, 3, 4, 5, 6], 4: "A123456", 6: "B123456", 7: "C123456", 9: "D123456"}.items():
        for j, cell in enumerate(cells, 1):
            made.active.cell(place, j, cell)
    made.active.row_dimensions[5].hidden = True
    made.save(tmp_path / "t.xlsx")
    with refused("t.xlsx", "sheet Sheet, row 3", "6 columns and 3 rows", "no plate"):
        measurements(tmp_path / "t.xlsx")


def test_archives_that_unpack_without_end_are_refused(tmp_path: Path) -> None:
    for name in ("t.xlsx", "t.eval"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", "{}")
            archive.writestr("samples/1.json", " " * 2**25)
        with refused(name, "samples/1.json", f"{2**25:,}"):
            agents.logs_table([tmp_path / name]) if "eval" in name else measurements(tmp_path / name)


def test_a_range_has_rounding() -> None:
    for value, ends, found in (
        (0.1 + 0.2, (0, 0.3), 0.3),
        (np.float32(0.1), (0, 0.1), 0.1),
        (1 + 2**-50, (0, 1), 1),
        (1 + 2**-49, (0, 1), 1 + 2**-49),
        (-1e-17, (0, 1), 0),
        (1e9 + 4e-7, (0, 1e9), 1e9),
    ):
        assert within_ends(value, *ends) == found
    assert within_ends(np.array([1 + 2**-52, 2, np.nan]), 0, 1).tolist()[:2] == [1, 2]
    table = pd.DataFrame({"id": ["q", "r"], "a": [0.1, 1.0000000000000002], "b": [0, 1]})
    for shared in (False, True):
        assert from_table(table, support=(0, 1), shared=shared).arms.means == pytest.approx([0.55, 0.5])
        with refused("'a'", "'r'", 1.01):
            from_table(table.replace(1.0000000000000002, 1.01), support=(0, 1), shared=shared)
