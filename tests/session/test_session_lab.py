"""What a laboratory needs of a session: maps of plates, results by wells, lost plates, figures, tables of all arms."""

from __future__ import annotations

import csv
import io
import math
import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import agents
from agents.cli import main
from agents.session import page, tables
from bandit_envs.instances import wells_of_plate

pytest.importorskip("sqlalchemy")

ARMS = ["DMSO", "K7", "M2", "R1", "=R4", "-R5"]  # two names that a spreadsheet would run
FACTS: dict[str, Any] = {"problem": "Threshold", "threshold": 50, "arms": ARMS, "range": (0, 100), "delta": 0.05}
PLATES = {"plate": 12, "controls": {"DMSO": 3}}
CONTROL: dict[str, Any] = {"problem": "BetterThanControl", "control": "DMSO", "arms": ARMS, "range": (0, 100)}
BLOCKS: dict[str, Any] = {"problem": "BestArm", "arms": ARMS, "range": (0, 100), "blocks": "day"}
STRATA: dict[str, Any] = {**PLATES, "blocks": "plate", "sigma": 10, "range": None, "delta": 0.05}


def opened(**facts: Any) -> agents.Session:
    return agents.Session("uniform", {**FACTS, **PLATES, **facts}, store=":memory:", public_seed=1)


def reader(path: Path, found: pd.DataFrame, lost: Iterable[str] = (), plus: float = 0.0) -> dict[str, float]:
    """Write what a plate reader exports, and return the values by wells: a number for each, but for those lost."""
    values = {f"{row}{n}": 10 * i + n + plus for i, row in enumerate(found.index) for n in found.columns}
    lines = [["Reader 3000", ""], [], ["450 nm", *map(str, found.columns)]]
    for row in found.index:
        lines.append([row, *("" if f"{row}{n}" in lost else str(values[f"{row}{n}"]) for n in found.columns)])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    return values


def mapped(session: agents.Session, plate: int, path: Path) -> pd.DataFrame:
    """A map as it is printed, in a file."""
    results_table = agents.session.tables.for_spreadsheets(session.plate_map(plate))
    results_table.to_csv(path)
    return session.plate_map(plate)


def by_wells(session: agents.Session, plate: int) -> dict[str, float]:
    """The results that a session has of a plate."""
    history = session.history()
    mine = history[(history["plate"] == plate) & (history["kind"] == "told") & ~history["undone"]]
    return dict(zip(mine["well"], mine["value"], strict=True))


# --- wells and maps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plate", "rows", "columns"),
    [(1, 2, 3), (6, 2, 3), (12, 3, 4), (24, 4, 6), (32, 6, 8), (48, 6, 8), (96, 8, 12), (97, 16, 24), (1536, 32, 48)],
)
def test_wells_are_those_of_the_smallest_plate_row_by_row(plate: int, rows: int, columns: int) -> None:
    wells = wells_of_plate(plate)
    assert (len(wells), wells[0], wells[columns]) == (rows * columns, "A1", "B1")
    assert wells[-1] == {2: "B3", 3: "C4", 4: "D6", 6: "F8", 8: "H12", 16: "P24", 32: "AF48"}[rows]


def test_questions_know_their_plate_and_well() -> None:
    session = opened()
    asked = [*session.ask(5), *session.ask(10)]  # however they are asked for
    assert [one.plate for one in asked] == [1] * 12 + [2] * 3
    assert [one.well for one in asked] == [*wells_of_plate(12), "A1", "A2", "A3"]
    assert [(one.plate, one.well) for one in session.pending] == [(one.plate, one.well) for one in asked]
    found = session.plate_map(1)
    assert (found.index.tolist(), found.columns.tolist()) == (["A", "B", "C"], [1, 2, 3, 4])
    assert found.index.name == "plate 1"
    assert found.to_numpy().ravel().tolist() == [session.names[one] for one in asked[:12]]
    assert session.plate_map(2).to_numpy().ravel().tolist() == [session.names[one] for one in asked[12:]] + [""] * 9
    session.undo(asked[1].number)
    session.tell(asked[0], 50)
    assert session.plate_map(1).loc["A"].tolist() == [ARMS[asked[0]], "", ARMS[asked[2]], ARMS[asked[3]]]
    session.withdraw_arm(int(asked[3]))
    assert session.plate_map(1).loc["A", 4] == ""
    history = session.history().set_index("event")
    assert history.loc[asked[0].number, ["plate", "well"]].tolist() == [1, "A1"]
    assert history.loc[history["kind"] == "told", "well"].tolist() == ["A1"]
    alone = agents.Session("uniform", FACTS, store=":memory:")
    assert [(one.plate, one.well) for one in alone.ask(2)] == [(None, None)] * 2
    assert "plate" not in alone.history()


def test_a_question_that_was_asked_again_keeps_its_well(tmp_path: Path) -> None:
    session = opened()
    first = session.ask(2, "ann")
    again = session.ask(1, "bob", take_over=1e-9)
    assert (again[0].number != first[0].number, again[0].well, again[0].plate) == (True, "A1", 1)
    assert session.plate_map(1).loc["A"].tolist()[:2] == [ARMS[first[0]], ARMS[first[1]]]


def test_maps_that_there_are_not() -> None:
    session = opened()
    with pytest.raises(ValueError, match="there is no plate 1: nothing was asked for yet"):
        session.plate_map(1)
    session.ask(13)
    for plate in (0, 3, "x", True):
        with pytest.raises(ValueError, match=r"plate must be an integer in \[1, 2\], got"):
            session.plate_map(plate)  # type: ignore[arg-type]
    alone = agents.Session("uniform", FACTS, store=":memory:")
    alone.ask(2)
    for call in (alone.plate_map, lambda plate: alone.undo(plate=plate)):
        with pytest.raises(ValueError, match="there is no plate 1: the session has no fact plate"):
            call(1)
    large = opened(plate=2000, controls=None)
    assert [(one.plate, one.well) for one in large.ask(2)] == [(1, None)] * 2
    with pytest.raises(ValueError, match="standard plates have 1536 wells at most"):
        large.plate_map(1)
    assert large.undo(plate=1) == 2


# --- results of plates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plate", [5, 12, 20, 32, 96])
@pytest.mark.parametrize("more", [{}, {"blind": True}, {"arms": 6, "controls": {"3": 1}}])
def test_a_plate_goes_out_as_a_map_and_comes_back_as_values(plate: int, more: dict[str, Any], tmp_path: Path) -> None:
    """Each result is on the question of its well, whichever plate comes first; names may be numbers."""
    session = opened(plate=plate, **more)
    asked = session.ask(2 * plate - 1)  # the second one has a free well
    told = {}
    for n in (2, 1):
        found = mapped(session, n, tmp_path / f"map-{n}.csv")
        told[n] = reader(tmp_path / "values.csv", found, plus=0.5 * n)
        count = session.tell_table(tmp_path / "values.csv", layout=tmp_path / f"map-{n}.csv", plate=n)
        assert count == plate - (n == 2)
    assert "wells in 'well'" in session.read
    assert session.pending == []
    history = session.history()
    about = history[history["kind"] == "told"].set_index("about")
    for one in asked:
        assert about.loc[one.number, "value"] == told[one.plate or 0][one.well or ""]
        assert about.loc[one.number, "name"] == session.names[one]


def test_plates_that_are_blocks_come_back_too(tmp_path: Path) -> None:
    with agents.Session("evidence", CONTROL | STRATA, store=":memory:", public_seed=1) as session:
        session.ask(24)
        for n in (2, 1):
            values = reader(tmp_path / "values.csv", mapped(session, n, tmp_path / "map.csv"), lost=["B2"] * (n == 2))
            session.tell_table(tmp_path / "values.csv", layout=tmp_path / "map.csv", plate=n)
            assert by_wells(session, n) == {well: x for well, x in values.items() if (n, well) != (2, "B2")}
        assert [(one.plate, one.well) for one in session.pending] == [(2, "B2")]
        assert session.undo(plate=1) == 24
        assert session.undo_batch(plate=2, results=False) == 1
        assert (session.pending, len(session)) == ([], 11)


def test_a_single_plate_needs_no_number_and_two_do(tmp_path: Path) -> None:
    session = opened(arms=ARMS[:4])
    session.ask(24)
    reader(tmp_path / "values.csv", mapped(session, 1, tmp_path / "map.csv"))
    how: dict[str, Any] = {"layout": tmp_path / "map.csv"}
    with pytest.raises(ValueError, match=r"well A1: .* of a table of wells say plate= \(--plate\)"):
        session.tell_table(tmp_path / "values.csv", **how)
    assert len(session) == 0
    session.undo(plate=2)
    assert session.tell_table(tmp_path / "values.csv", **how) == 12
    assert (session.pending, len(session)) == ([], 12)
    with pytest.raises(ValueError, match="the first|its results are in the session already"):
        session.tell_table(tmp_path / "values.csv", **how)


def test_wells_without_a_result_leave_their_own_questions_open(tmp_path: Path) -> None:
    """Also where other wells have the same name, so that what comes later waits for these, and no other one."""
    session = opened()
    session.ask(12)
    controls = [one.well for one in session.pending if one.arm == 0]
    values = reader(tmp_path / "values.csv", mapped(session, 1, tmp_path / "map.csv"), lost=[controls[1] or "", "C4"])
    assert session.tell_table(tmp_path / "values.csv", layout=tmp_path / "map.csv", plate=1) == 10
    assert [one.well for one in session.pending] == [controls[1], "C4"]
    assert by_wells(session, 1) == {well: x for well, x in values.items() if well not in (controls[1], "C4")}
    reader(tmp_path / "late.csv", session.plate_map(1), lost=by_wells(session, 1), plus=0.25)
    assert session.tell_table(tmp_path / "late.csv", layout=tmp_path / "map.csv", plate=1) == 2
    assert session.pending == []


def test_results_in_a_list_have_wells(tmp_path: Path) -> None:
    """The list that `ask` prints, filled in, in any order; wells as robots write them."""
    session = opened()
    asked = session.ask(12)
    lines = [f"{ARMS[one]},{(one.well or '')[0].lower()}0{(one.well or '')[1:]},{one.number}" for one in asked[::-1]]
    (tmp_path / "list.csv").write_text("\n".join(["name,Well,value", *lines]))
    assert session.tell_table(tmp_path / "list.csv", plate=1) == 12
    assert by_wells(session, 1) == {one.well: one.number for one in asked}


WRONG = {
    "of another plate": (2, "name,well,value\nDMSO,A1,3\nK7,A2,3\n", "line 2: no question about 'DMSO' waits"),
    "another name": (1, "name,well,value\n{0},A1,3\n{0},A2,4\n", "line 3: no question about"),
    "a well twice": (1, "name,well,value\n{0},A1,3\n{0},a01,4\n", "line 3: .* of plate 1, or it is there twice"),
    "no well": (1, "name,value\n{0},3\n", "line 2: .* waits in its well, '', of plate 1"),
    "an unknown well": (1, "name,well,value\n{0},Z9,3\n", "line 2: .* its well, 'Z9', of plate 1"),
    "no such plate": (3, "name,well,value\n{0},A1,3\n", r"plate must be an integer in \[1, 2\], got 3"),
}


@pytest.mark.parametrize("title", WRONG)
def test_results_of_other_wells_are_refused(title: str, tmp_path: Path) -> None:
    session, (plate, text, error) = opened(), WRONG[title]
    asked = session.ask(12)
    session.tell(session.ask(1)[0], 1)  # what it has begins plate 2
    (tmp_path / "a.csv").write_text(text.format(ARMS[asked[0]]))
    with pytest.raises(ValueError, match=error):
        session.tell_table(tmp_path / "a.csv", plate=plate)
    assert (len(session), len(session.pending)) == (1, 12)


# --- a lost plate -----------------------------------------------------------------------------------------------------


def test_a_lost_plate_is_one_call() -> None:
    session, other = opened(), opened()
    for one in (session, other):
        for question in [*one.ask(24), *one.ask(5)][6:20]:  # the second half of plate 1, most of plate 2
            one.tell(question, 10 + question)
    answered = session.history()
    assert session.undo(plate=2) == 12 + 8
    assert other.undo_batch(14) == 12 + 8
    assert session.history()["undone"].tolist() == other.history()["undone"].tolist()
    assert {one.plate for one in session.pending} == {1, 3}
    assert set(by_wells(session, 1)) == set(wells_of_plate(12)[6:])
    assert by_wells(session, 2) == {}
    assert (session.plate_map(2) == "").to_numpy().all()
    assert len(answered) + 20 == len(session.history())
    for call in (lambda: session.undo(plate=2), lambda: session.undo_batch(plate=2, results=False)):
        with pytest.raises(ValueError, match="no question of this plate, or batch, waits"):
            call()
    with pytest.raises(ValueError, match=r"plate must be an integer in \[1, 3\], got 4"):
        session.undo(plate=4)
    for both in (session.undo, session.undo_batch):
        with pytest.raises(ValueError, match="an event or a plate, got event=3 and plate=1"):
            both(3, plate=1)
    assert session.undo_batch(plate=1, results=False) == 6
    assert len(session) == 6
    assert [one.plate for one in session.ask(9)] == [3] * 7 + [4] * 2  # numbers stay


# --- results of all arms ----------------------------------------------------------------------------------------------


def measured(facts: dict[str, Any], agent: str = "uniform", times: int = 40, **more: Any) -> agents.Session:
    """A session with results of all arms but the last."""
    session = agents.Session(agent, {**facts, "delta": 0.05, **more}, store=":memory:", public_seed=1)
    K = len(session.names)
    for i in range(times):
        session.tell_all([(arm, 20.0 + 60 * (arm % 3 == 1) + 7 * (i % 2)) for arm in range(K - 1)])
    return session


def test_the_table_of_results_has_all_arms_and_the_comparison() -> None:
    session = measured(CONTROL)
    session.withdraw_arm("M2")
    table, arms, against = session.results(), session.arms(), session.comparison()
    pd.testing.assert_frame_equal(table[arms.columns], arms, check_exact=True)
    own = table.set_index("name").loc[against["name"]]
    for there in ("difference", "low", "high", "lift", "p", "better"):
        here = f"difference_{there}" if there in ("low", "high") else there
        np.testing.assert_array_equal(own[here], against[there])
    assert table.loc[table["withdrawn"], "difference"].isna().all()
    alone = measured(FACTS)
    pd.testing.assert_frame_equal(alone.results(), alone.arms(), check_exact=True)


def drawn(figure: Any) -> tuple[list[str], dict[str, list[float]], Any]:
    """The names on the axis, the points of each kind, and the axes."""
    (axes,) = figure.axes
    points = {line.get_label(): [*map(float, line.get_xdata())] for line in axes.lines if line.get_label()[0] != "_"}
    return [label.get_text() for label in axes.get_yticklabels()], points, axes


def test_a_figure_of_claims(tmp_path: Path) -> None:
    session = measured(FACTS, unit="$ / h")
    names, points, axes = drawn(session.plot(tmp_path / "a.png"))
    arms = session.arms().set_index("name")
    assert sorted(names) == sorted(ARMS)
    means = [arms.loc[name, "mean"] for name in names]
    assert math.isnan(means[0])
    assert means[1:] == sorted(means[1:])  # from below
    assert points["boundary"] == [50, 50]
    kinds = arms.loc[names].groupby("claim")["mean"].apply(list)
    assert points["in for certain"] == kinds["in"]
    assert points["out for certain"] == kinds["out"]
    assert axes.get_xlabel() == "mean ($ / h), with 95 % intervals of all"
    assert (tmp_path / "a.png").stat().st_size > 10_000
    bars = [line[:, 0].tolist() for one in axes.collections for line in one.get_segments() if len(line)]
    left, right = axes.get_xlim()
    ends = arms.loc[names[1:], ["low", "high"]].to_numpy()
    assert len(bars) == 5
    assert all(any(bar == pytest.approx([max(bar[0], low), high]) for low, high in ends) for bar in bars)
    assert all(left < one < right for bar in bars for one in bar)


def test_a_figure_is_the_same_in_any_unit_and_turned_where_lower_is_better() -> None:
    one = measured({**FACTS, "problem": "BestArm", "threshold": None})
    other = measured({**FACTS, "problem": "BestArm", "threshold": None}, minimize=True)
    names, _, axes = drawn(one.plot())
    turned, _, beside = drawn(other.plot())
    assert names[0] == turned[0] == "-R5"  # nothing is known of it
    means = other.arms().set_index("name")["mean"]
    assert means[turned[1:]].tolist() == sorted(means[turned[1:]], reverse=True)
    assert "lower is better" in beside.get_xlabel() != axes.get_xlabel()
    scaled = agents.Session("uniform", {**FACTS, "threshold": 5e4, "range": (0, 1e5)}, store=":memory:")
    plain = agents.Session("uniform", FACTS, store=":memory:")
    for i in range(6):
        plain.tell_all([(arm, 20 + arm + i) for arm in range(6)])
        scaled.tell_all([(arm, 1000 * (20 + arm + i)) for arm in range(6)])
    (left, right), (low, high) = (drawn(session.plot())[2].get_xlim() for session in (plain, scaled))
    np.testing.assert_allclose([low, high], [1000 * left, 1000 * right], rtol=1e-9)


def test_a_figure_of_differences() -> None:
    session = measured({**CONTROL, "margin": 5})
    names, points, axes = drawn(session.plot())
    against = session.comparison().set_index("name")
    assert "DMSO" not in names
    assert len(names) == 5
    assert axes.get_xlabel() == "difference against DMSO, with 95 % intervals of all"
    np.testing.assert_allclose(points["boundary"], [5, 5])
    assert sorted(points["in for certain"]) == sorted(against.loc[["K7", "=R4"], "difference"])
    turned = measured({**CONTROL, "margin": 5, "problem": "BetterThanControl"}, minimize=True)
    np.testing.assert_allclose(drawn(turned.plot())[1]["boundary"], [-5, -5])
    assert "lower is better" in drawn(turned.plot())[2].get_xlabel()
    lifted = measured({**CONTROL, "lift": 0.1})
    np.testing.assert_allclose(drawn(lifted.plot())[1]["boundary"][0], 0.1 * lifted.arms()["mean"][0])


def test_a_figure_within_plates() -> None:
    """Of differences, or of odds on their own scale."""
    rng = np.random.default_rng(1)
    for more in (STRATA | {"margin": 3}, STRATA | {"sigma": None, "binary": True}):
        session = agents.Session("uniform", CONTROL | more, store=":memory:", public_seed=1)
        for _ in range(6):
            session.ask(12)
            shift = rng.normal(0, 3)
            values = [rng.normal(50 + shift + 20 * (one.arm == 1), 4) for one in session.pending]
            values = [float(rng.random() < x / 100) for x in values] if "binary" in more else values
            session.tell_all(list(zip(session.pending, values, strict=True)))
        names, points, axes = drawn(session.plot())
        against = session.comparison().set_index("name")
        assert sorted(names) == sorted(ARMS[1:])
        assert {*points["boundary"]} == {0.0 if "binary" in more else 3.0}
        shown = against.loc[names, "odds" if "binary" in more else "difference"]
        shown = np.log2(shown) if "binary" in more else shown
        kept = [x for label, found in points.items() if label != "boundary" for x in found]
        np.testing.assert_allclose(sorted(kept), sorted(shown))
        tick = axes.xaxis.get_major_formatter()(1.0)
        assert ("odds against DMSO" in axes.get_xlabel()) == ("binary" in more)
        assert "binary" not in more or tick == "2"


def test_ends_beyond_the_axis_are_arrows_and_without_claims_the_answer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    session = measured(FACTS, times=2, delta=None)
    assert {*drawn(session.plot())[1]} == {"in as of now", "out as of now", "boundary"}
    low, high = [-math.inf, 15, np.nan, 20, 20, np.nan], [math.inf, 1e9, np.nan, 30, 90, np.nan]
    table = session.arms().assign(low=low, high=high)
    monkeypatch.setattr(tables, "arms_table", lambda state: table)
    _, _, axes = drawn(session.plot())
    arrows = Counter(line.get_marker() for line in axes.lines for _ in line.get_xdata())
    assert (arrows["<"], arrows[">"]) == (1, 2)
    left, right = axes.get_xlim()
    assert -50 <= left <= right < 200


def test_many_arms_and_none_are_drawn() -> None:
    many = agents.Session("uniform", {**FACTS, "arms": 61}, store=":memory:")
    with pytest.raises(ValueError, match="no mean is known yet: there is nothing to draw"):
        many.plot()
    many.tell_all([(arm, arm) for arm in range(61)])
    three = agents.Session("uniform", {**FACTS, "arms": ["a" * 99, "$x^$", "b"]}, store=":memory:")
    three.tell_all([(arm, arm) for arm in range(3)])
    tall, low = many.plot(), three.plot()
    assert tall.get_figheight() > 3 * low.get_figheight()
    assert len(drawn(tall)[0]) == 61
    low.canvas.draw()  # names are no formulas
    assert [len(name) for name in drawn(low)[0]] == [40, 4, 1]
    flat = {"problem": "Feasible", "A": [[1, 0]], "b": [1], "arms": 2, "dimensions": 2, "range": (0, 1)}
    wide = agents.Session("uniform", flat, store=":memory:")
    wide.tell(0, [0, 1])
    blocks = agents.Session("paired-elimination", {**BLOCKS, "delta": 0.05}, store=":memory:")
    blocks.tell_all([(one, one.arm) for one in blocks.ask(6)])
    for session in (wide, blocks):
        with pytest.raises(ValueError, match="one mean of each arm: not of several dimensions, nor with blocks"):
            session.plot()


# --- on the command line, and on the page -----------------------------------------------------------------------------


def run(capsys: Any, line: str, code: int = 0) -> tuple[str, str]:
    assert main(["session", *shlex.split(line)]) == code, capsys.readouterr()
    return capsys.readouterr()  # type: ignore[no-any-return]


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("arms.txt").write_text("DMSO\nK7\n-M2\n")
    new = "--problem Threshold --threshold 50 --range 0 100 --plate 6 --controls DMSO=1"
    run(capsys, f"new a.db --arms arms.txt {new}")
    out, _ = run(capsys, "ask a.db -n 8 --map")
    first, second = out.strip().split("\n\n")
    Path("map.csv").write_text(first)
    rows = [*csv.reader(io.StringIO(first))]
    assert (rows[0], [row[0] for row in rows]) == (["plate 1", "1", "2", "3"], ["plate 1", "A", "B"])
    assert Counter(cell for row in rows[1:] for cell in row[1:]) == {"DMSO": 2, "K7": 2, "'-M2": 2}
    assert second.startswith("plate 2,1,2,3\nA,")
    Path("values.csv").write_text("x,1,2,3\nA,1,2,3\nB,4,5,6\n")
    out, err = run(capsys, "import a.db values.csv --layout map.csv --plate 1")
    assert out.startswith("6 results from values.csv")
    assert "left out" not in err
    assert run(capsys, "show a.db --plate 1")[0].strip() == first
    out, _ = run(capsys, "show a.db --csv all.csv --plot all.svg")
    assert out.startswith("Which of the 3 arms")
    table = pd.read_csv("all.csv")
    assert table["name"].tolist() == ["DMSO", "K7", "'-M2"]
    assert {"pulls", "mean", "sd", "low", "high", "answer", "claim"} <= {*table}
    assert Path("all.svg").stat().st_size > 1000
    assert "all.csv is there already" in run(capsys, "show a.db --csv all.csv", 2)[1]
    run(capsys, "show a.db --plate 2 --csv all.csv --force")
    assert Path("all.csv").read_text().strip() == second
    assert "[1, 2], got 3" in run(capsys, "undo a.db --plate 3", 2)[1]
    assert "undo takes --table alone" in run(capsys, "undo a.db --plate 1 --table map.csv", 2)[1]
    assert "event=1 and plate=1" in run(capsys, "undo a.db --plate 1 --event 1", 2)[1]
    assert run(capsys, "undo a.db --plate 1")[0].startswith("undone: 12 questions and results")
    assert run(capsys, "undo a.db --plate 2 --batch open")[0].startswith("undone: 2 questions and results")
    run(capsys, "new b.db --problem Threshold --threshold 50 --range 0 100 --arms a b")
    assert "--map is of plates" in run(capsys, "ask b.db --map", 2)[1]
    with agents.Session(store="b.db") as session:
        assert session.version == 0


def test_on_the_page(tmp_path: Path) -> None:
    web = pytest.importorskip("starlette.testclient")
    names = ["=1+1", *(f"K{i}" for i in range(60))]
    session = opened(arms=names, plate=96, controls={"K1": 8})
    client = web.TestClient(page.application(session), base_url="http://localhost")
    session.ask(96)
    session.tell_all([(one, 20 + one.arm / 7) for one in session.pending])
    session.tell_all([("K59", 12078 / 128)] * 3)
    state = page.state(session)
    whole = client.get("/state", params={"every": 1}).json()
    assert (len(state["arms"]), len(whole["arms"])) == (page.MOST_ARMS, 61)
    assert [arm for arm in whole["arms"] if arm["charted"]] == state["arms"]
    table = pd.read_csv(io.StringIO(client.get("/results.csv").text))
    assert table["name"].tolist() == ["'=1+1", *names[1:]]
    np.testing.assert_allclose(table["mean"], session.arms()["mean"], rtol=1e-12)
    found = [*csv.reader(io.StringIO(client.get("/plate.csv", params={"plate": 1}).text))]
    assert (found[0][:3], found[1][:2], len(found)) == (["plate 1", "1", "2"], ["A", "'=1+1"], 9)
    for wrong in ("2", "x", ""):
        reply = client.get("/plate.csv", params={"plate": wrong})
        assert (reply.status_code, "plate must be an integer in [1, 1]" in reply.json()["error"]) == (400, True)
    assert client.get("/plate.csv?plate=1&who=ann").status_code == 403
    assert {event["plate"] for event in state["events"]} == {None, 1}
    assert client.post("/undo?who=ann", json={"plate": 1}).status_code == 400
    assert client.post("/undo", json={"plate": 2}).status_code == 400
    assert client.post("/undo", json={"plate": 1}).json() == {"done": 192}
    assert len(session) == 3
