"""Files that people have: separators, decimals, encodings, sheets of Excel, JSON Lines, and plates of wells."""

from __future__ import annotations

import csv as csv_module
import datetime
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import agents
from agents.cli import main
from bandit_envs import from_table, measurements
from bandit_envs.instances import Measurements

openpyxl: Any = pytest.importorskip("openpyxl")

LONG = [("tea", 1.5), ("coffee", 2.25), ("tea", 0.125)]
TEXTS = {
    "commas": "name,value\ntea,1.5\ncoffee,2.25\ntea,.125\n",
    "semicolons": "name;value\ntea;1,5\ncoffee;2,25\ntea;,125\n",
    "tabs": "name\tvalue\ntea\t1.5\ncoffee\t2.25\ntea\t0.125\n",
    "tabs and decimal commas": "name\tvalue\ntea\t1,5\ncoffee\t2,25\ntea\t1,25e-1\n",
    "quoted decimal commas": 'name,value\ntea,"1,5"\ncoffee,"2,25"\ntea,"0,125"\n',
    "said by the file": "sep=;\nname;value\ntea;1,5\ncoffee;2,25\ntea;0,125\n",
    "names with commas, and dates": 'name;value;day\n"tea";1,5;"Mon, 5 May"\n"coffee";2,25;\ntea;0,125;x\n',
    "empty lines and columns": "name;value;;\ntea;1,5;;\n\ncoffee;2,25;;\ntea;0,125;;\n;;;\n\n;;;\n\n",
}


@contextmanager
def named(*words: str) -> Iterator[None]:
    """A ValueError that names all words, also one for a cell alone."""
    with pytest.raises(ValueError, match=".") as caught:
        yield
    assert [word for word in words if word not in str(caught.value)] == []


def told(found: Measurements) -> list[tuple[str, float]]:
    return [(one.arm, one.value[0]) for one in found.rows]


@pytest.mark.parametrize("lines", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_marks_are_recognised(text: str, encoding: str, lines: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.replace("\n", lines).encode(encoding))
    assert told(measurements(path)) == LONG


def test_latin_1_is_the_last_resort(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("name;value\nbi\u00e8re;1,5\nth\u00e9;2\n".encode("latin-1"))
    with pytest.warns(UserWarning, match=r"t.csv is no text in UTF-8, and is read as Latin-1"):
        assert told(measurements(path)) == [("bi\u00e8re", 1.5), ("th\u00e9", 2.0)]
    for raw in ("name;value\nth\u00e9;1\n".encode("utf-16-le"), b"PK\x03\x04\x00\x00\x00"):
        path.write_bytes(raw)
        with refused("t.csv", "is no text", "UTF-8", ".xlsx"):
            measurements(path)


BAD = {
    "sep= (--sep)": "a;b,c\n1;2,3\n",
    "line 2, column 'value': a value is a finite number, or nothing, got '1,234'; decimals are written with a point, "
    "or say decimal=',' (--decimal)": "name;value\ntea;1,234\ncoffee;12,500\n",
    "line 3, column 'value': a value is a finite number, or nothing, got '1.234,5'": "name;value\na;1\nb;1.234,5\n",
    "line 3: it has 3 cells, the first line has 2": "name;value\na;1\nb;1;5\n",
    "line 1: it is empty": "\ufeff\r\n\r\n",
    "line 4, column 'value': a value is a finite number, or nothing, got 'n.d.'": "name,value\na,1\n\nb,n.d.\n",
    "words for right and wrong are 1 and 0 among values 0 and 1 alone": "name,value\na,yes\nb,0.5\n",
}


@pytest.mark.parametrize(("said", "text"), BAD.items())
def test_what_is_not_clear_is_named(said: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    with named("t.csv", said):
        measurements(tmp_path / "t.csv")


def test_what_was_not_clear_is_read_as_said(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name;value\ntea;1,234\ncoffee;12,500\n")
    assert told(measurements(path, decimal=",")) == [("tea", 1.234), ("coffee", 12.5)]
    path.write_text("name;value\ntea;1,234\ncoffee;12,5\n")  # 12,5 are no thousands
    assert told(measurements(path)) == [("tea", 1.234), ("coffee", 12.5)]
    path.write_text("a;b,c\n1;2,3\n")
    assert told(measurements(path, sep=";", wide=True)) == [("a", 1.0), ("b,c", 2.3)]


@pytest.mark.parametrize("pair", ["True False", "TRUE false", "yes No", "Y n", "C I", "correct INCORRECT", "1 0"])
def test_words_for_right_and_wrong(pair: str, tmp_path: Path) -> None:
    right, wrong = pair.split()
    path = tmp_path / "t.csv"
    path.write_text(f"id,a,b\nq1,{right},{wrong}\nq2,{right},{right}\nq3,,0\nq4,1,{wrong}\n")
    found = from_table(path)
    assert found.arms.distribution == "bernoulli"
    assert found.arms.means.tolist() == [1.0, 0.25]
    pandas: Any = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": ["a", "b", "a"], "value": [right, wrong, None]})
    assert told(measurements(frame)) == [("a", 1.0), ("b", 0.0)]
    mixed = pandas.DataFrame({"name": ["a", "b", "a"], "value": [right, wrong, 0.5]})
    if right.lower() not in ("1", "true"):
        with refused("row 0, column 'value'", "among values 0 and 1 alone"):
            measurements(mixed)
    facts = {"problem": "BestArm", "arms": ["a", "b"], "delta": 0.1}
    for measured, takes in (({"binary": True}, True), ({"range": (0, 1)}, True), ({"range": (0, 10)}, False)):
        with agents.Session("uniform", facts | measured, store=":memory:") as session:
            if takes or right == "1" or right.lower() == "true":
                assert session.tell_table(path, index="id") == 7
            else:
                with refused("line 2", "column 'a'", "among values 0 and 1 alone"):
                    session.tell_table(path, index="id")
                assert len(session) == 0


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"name": "tea", "value": 1.5}, {"value": 2.25, "name": "coffee", "note": [1]}, {"name": "tea"}]
    path.write_text("\n".join(map(json.dumps, [*rows, {"name": "tea", "value": "0.125"}])) + "\n\n", encoding="utf-8")
    assert told(measurements(path)) == LONG
    twice, huge = '{"name": "tea", "value": 1, "value": 2}', f'{{"name": "tea", "value": 1{"0" * 400}}}'
    for line in ("[1, 2]", "{", '"ab"', '{"value": {}}', twice, huge):
        path.write_text("\n".join([*map(json.dumps, rows), "", "", line]), encoding="utf-8")
        with named("t.jsonl", "line 6"):
            measurements(path)


def saved(path: Path, **sheets: list[list[object]]) -> Any:
    book = openpyxl.Workbook()
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    del book["Sheet"]
    book.save(path)
    return book


def test_a_sheet_of_excel(tmp_path: Path) -> None:
    """With a title, empty rows and columns around the table, dates in a column, and names in merged cells."""
    day, path = datetime.datetime(2026, 3, 2), tmp_path / "t.xlsx"
    top: list[list[object]] = [[], [None, "Assay of March"], [], [None, "day", "name", "value", None, "ok"]]
    rows: list[list[object]] = [
        [None, day, "tea", 1.5, None, True],
        [None, day, "coffee", 2.25],
        [None, day, None, 3],
        [None, "", "tea", "0.125"],
        [None, " "],
    ]
    book = saved(path, Data=top + rows)
    with refused("t.xlsx", "sheet Data, row 7, column 'name': the name of the arm is missing"):
        measurements(path)
    book["Data"].merge_cells("C6:C7")
    book["Data"].merge_cells("B2:F2")
    book.save(path)
    found = measurements(path)
    assert told(found) == [LONG[0], LONG[1], ("coffee", 3.0), LONG[2]]
    assert found.rows[0].place == "sheet Data, row 5"
    with named("sheet Data, row 5, column 'day'", "datetime"):
        measurements(path, arm="name", value="day")
    for wrong in ("Date", "2", 0, 2, 1.5, True):
        with refused("t.xlsx" if wrong == "Date" else "sheet"):
            measurements(path, sheet=wrong)  # type: ignore[arg-type]
    book["Data"]["D8"] = "=1/8"
    book.save(path)
    with refused("sheet Data, D8", "a formula without its value"):
        measurements(path)
    (tmp_path / "no.xlsx").write_text("name,value\n")
    with refused("no.xlsx", "is no Excel file"):
        measurements(tmp_path / "no.xlsx")


def test_several_sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = tmp_path / "t.xlsx", [["id", "a", "b"], ["q1", 1, 0], ["q2", 1, 1]]
    saved(path, Notes=[["to whom it may concern"], ["all"]], Long=[["name", "value"], *map(list, LONG)], Wide=other)
    with refused("t.xlsx", "['Notes', 'Long', 'Wide']", "sheet= (--sheet)"):
        measurements(path)
    for sheet in ("Long", 2, "2"):
        assert told(measurements(path, sheet=sheet)) == LONG
    assert from_table(path, sheet=3).arms.means.tolist() == [1.0, 0.5]
    with refused("t.csv", "Excel", "'Long'"):
        (tmp_path / "t.csv").write_text("a,b\n1,2\n")
        measurements(tmp_path / "t.csv", sheet="Long")
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with refused("openpyxl", "[excel]", error=ImportError):
        measurements(path, sheet="Long")


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("decimal", ".,")
def test_random_tables_are_read_right_or_refused(mark: str, decimal: str, tmp_path: Path) -> None:
    """Names with all marks in them, numbers of all lengths: 100 long tables and as many wide ones, of 1 to 6 rows."""
    rng, path, refusals = np.random.default_rng(7), tmp_path / "t.csv", list[str]()
    names = ["tea", "a;b", "c, d", "e\tf", 'say "g"', "1,5", "2.5"]
    for n in range(200):
        digits = int(rng.integers(0, 5))
        heads = list(rng.permutation(names)[: rng.integers(2, 5)])
        cells = [[f"{x:.{digits}f}".replace(".", decimal) for x in row] for row in 10 * rng.random((6, len(heads)))]
        rows = [[one for one in row] for row in cells[: rng.integers(1, 7)]]
        table = [heads, *rows] if n % 2 else [["name", "value"], *([heads[0], row[0]] for row in rows)]
        text = io.StringIO()
        csv_module.writer(text, delimiter=mark).writerows(table)
        path.write_text(text.getvalue(), encoding="utf-8", newline="")
        truth = [(heads[j], float(row[j].replace(",", "."))) for row in rows for j in range(len(heads) if n % 2 else 1)]
        try:
            assert told(measurements(path)) == truth
        except ValueError as error:
            refusals.append(str(error))
            assert told(measurements(path, sep=mark, decimal=decimal)) == truth
    assert all("--sep" in one or "--decimal" in one for one in refusals)
    assert len(refusals) <= (20 if decimal == "," else 0)  # those all of whose numbers are as 1,234


# --- plates -----------------------------------------------------------------------------------------------------------

SIZES = [(3, 2), (4, 3), (6, 4), (8, 6), (12, 8), (24, 16), (48, 32)]
NO_SIZES = [(24, 8), (24, 4), (12, 4), (12, 7), (12, 9), (10, 8), (12, 16), (13, 8), (4, 6), (48, 31), (50, 33)]


def plate(columns: int, lines: int, cell: Any) -> list[list[str]]:
    heads = ["", *map(str, range(1, columns + 1))]
    return [heads, *(["A" * (n >= 26) + chr(65 + n % 26), *(cell(n, k) for k in range(columns))] for n in range(lines))]


def csv(rows: list[list[str]], sep: str = ",") -> str:
    return "\n".join(sep.join(row) for row in rows) + "\n"


def name_of(n: int, k: int) -> str:
    return "" if k == 0 else "control" if n == 0 else f"K{n}"


def value_of(n: int, k: int) -> str:
    return "" if (n, k) == (1, 1) else f"{n + k / 8}"


def expected(columns: int, lines: int) -> list[tuple[str, float]]:
    cells = [(n, k) for n in range(lines) for k in range(1, columns) if (n, k) != (1, 1)]
    return [(name_of(n, k), n + k / 8) for n, k in cells]


META = "Plate reader 3000\nUser: ann\nStart,2026-03-02 11:04:12\nWavelength,450,nm\n\n"


@pytest.mark.parametrize(("columns", "lines"), SIZES)
def test_plates_of_a_reader(columns: int, lines: int, tmp_path: Path) -> None:
    """Two blocks in a file, in two sheets, in two files; names and values in any order; all with metadata above."""
    names, values = plate(columns, lines, name_of), plate(columns, lines, value_of)
    first, second, want = tmp_path / "read.csv", tmp_path / "layout.csv", expected(columns, lines)
    for blocks in ((names, values), (values, names)):
        first.write_text(META + csv(blocks[0]) + "\nTemperature,25.1\n" + csv(blocks[1]) + "\nEnd\n")
        found = measurements(first)
        assert told(found) == want
        assert found.rows[0].place == "well A2"
    beside = [[*one, "", *other] for one, other in zip(names, values, strict=True)]
    first.write_text(csv(beside, "\t"))
    assert told(measurements(first)) == want
    decimals = csv(values, ";").replace(".", ",")
    first.write_text("Reader;Zeit 11,5 s\n" + csv(names, ";") + decimals)
    assert told(measurements(first)) == want
    first.write_text(META.replace(",", ";") + decimals)
    second.write_text(csv(names))
    assert told(measurements(first, layout=second)) == want
    assert told(measurements(first, layout=str(second))) == want
    numbers = [[cell and (int(cell) if cell.isdecimal() else cell) for cell in row] for row in values]
    saved(tmp_path / "t.xlsx", Read=[["Reader"], ["at", 5], [], *numbers], Names=names)
    assert told(measurements(tmp_path / "t.xlsx", sheet="Read", layout="Names")) == want
    assert told(measurements(tmp_path / "t.xlsx", sheet="Read", layout=second)) == want


@pytest.mark.parametrize(("columns", "lines"), NO_SIZES)
def test_a_plate_of_another_size_is_refused(columns: int, lines: int, tmp_path: Path) -> None:
    """Never read in part; the same for a gap in the heads of its columns, or beside its rows."""
    names, values = plate(columns, lines, name_of), plate(columns, lines, value_of)
    path = tmp_path / "read.csv"
    path.write_text(META + csv(names) + csv(values))
    with refused("read.csv, line 6", columns, lines, "24 x 16", "wide=True"):
        measurements(path)
    path.write_text(csv(values))
    assert len(measurements(path, wide=True).arms) == columns


@pytest.mark.parametrize("gap", ["column", "row", "beside"])
def test_a_plate_with_a_gap_is_refused(gap: str, tmp_path: Path) -> None:
    """The part before the gap is a whole plate of another size."""
    names, values = plate(12, 8, name_of), plate(12, 8, value_of)
    small = {"column": (8, 6), "row": (6, 4), "beside": (12, 8)}[gap]
    for rows in (names, values):
        if gap == "beside":
            rows[:] = [[*row, *row[1:]] for row in rows]
        else:
            rows[:] = [row[: small[0] + 1] + row[small[0] + 2 :] * (gap == "column") for row in rows]
            rows[:] = rows[: small[1] + 1] + rows[small[1] + 2 :] * (gap == "row")
    path = tmp_path / "read.csv"
    path.write_text(csv(names) + csv(values))
    with refused("read.csv, line 1", *small, "gap"):
        measurements(path)


def test_plates_that_are_not_clear(tmp_path: Path) -> None:
    names, values = plate(6, 4, name_of), plate(6, 4, value_of)
    numbered = plate(6, 4, lambda n, _: str(17 + n))
    path, layout, small = tmp_path / "read.csv", tmp_path / "layout.csv", tmp_path / "small.csv"
    layout.write_text(csv(numbered))
    small.write_text(csv(plate(4, 3, name_of)))
    path.write_text(csv(values))
    for given in ({}, {"layout": small}, {"layout": path.with_name("none.csv")}, {"layout": "Names"}):
        with refused("read.csv" if given != {"layout": "Names"} else "Names"):
            measurements(path, **given)  # type: ignore[arg-type]
    assert measurements(path, wide=True).arms == ["1", "2", "3", "4", "5", "6"]
    assert measurements(path, layout=layout).arms == ["17", "18", "19", "20"]
    path.write_text(csv(numbered) + csv(values))
    with refused("read.csv", "layout= (--layout)", "2 blocks"):
        measurements(path)
    path.write_text(csv(names) + csv(values) + csv(values))
    with refused("read.csv", "3 blocks"):
        measurements(path)
    path.write_text(csv(names) + csv(values).replace("2.125", "OVER"))
    with named("read.csv, well C2, column 'value'", "OVER"):
        measurements(path)
    path.write_text("well,name,value\nA1,tea,1.5\nA2,coffee,2.25\nB1,tea,0.125\n")
    assert told(measurements(path)) == LONG


def test_a_plate_through_all_doors(tmp_path: Path, capsys: Any) -> None:
    names, values = plate(6, 4, name_of), plate(6, 4, value_of)
    read, layout, store = (str(tmp_path / name) for name in ("read.csv", "layout.csv", "s.db"))
    Path(read).write_text(META.replace(",", ";") + csv(values, ";").replace(".", ","))
    Path(layout).write_text(csv(names))
    assert from_table(read, layout=layout).arm_names == ("control", "K1", "K2", "K3")
    new = ["session", "new", store, "--problem", "BestArm", "--range", "0", "10", "--delta", "0.1"]
    assert main([*new, "--arms", "control", "K1", "K2", "K3"]) == 0
    assert main(["session", "import", store, read, "--layout", layout]) == 0
    assert "19 results from" in capsys.readouterr().out
    words = ["evaluate", "BestArm", "--budget", "8", "--agents", "uniform", "--episodes", "20", "--data", read]
    assert main([*words, "--layout", layout]) == 0
    assert main(words) == 2
    assert "--layout" in capsys.readouterr().err
    book = str(tmp_path / "t.xlsx")
    saved(Path(book), Names=names, Long=[["name", "value"], ["K1", 9.5], ["K2", 1]])
    assert main(["session", "import", store, book]) == 2
    assert main(["session", "import", store, book, "--sheet", "Long"]) == 0
    assert main([*words[:-1], book, "--sheet", "2"]) == 0
    with agents.Session(store=store) as session:
        assert session.undo_table(book) == 2
        assert len(session) == 19
