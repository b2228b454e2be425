"""Tables of measurements as instances, tables of scores, and the instances of fixed-confidence papers."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from instances import check_accuracies
from refusals import refused

from agents.cli import main
from bandit_envs import Bernoulli, Gaussian, Instance, Resampled, from_table, measurements
from bandit_envs.instances import lookup

BEST, TOP = "bandit_envs/BestArm-v0", "bandit_envs/TopK-v0"
NAN = float("nan")


def written(folder: Path, text: str) -> str:
    (folder / "scores.csv").write_text(text)
    return str(folder / "scores.csv")


# --- tables ----------------------------------------------------------------------------------------------------------


def test_right_and_wrong_is_bernoulli(tmp_path: Path) -> None:
    """Columns 1 0 1 1 and 0 _ 1 0: means 3/4 and 1/3; the names of the examples are no scores."""
    found = from_table(written(tmp_path, ",gpt,llama\nq1,1,0\nq2,0,\nq3,1,1.0\nq4,1,0\n"))
    assert isinstance(found, Instance)
    assert isinstance(found.arms, Bernoulli)
    assert found.arms.means.tolist() == [0.75, 1 / 3]
    assert found.arm_names == ("gpt", "llama")


def test_other_scores_are_resampled() -> None:
    found = from_table([[0.5, 0.25], [1.0, NAN], [0.0, 0.75]], name="rubric")
    assert isinstance(found.arms, Resampled)
    assert found.name == "rubric"
    assert found.arms.means.tolist() == [0.5, 0.5]
    assert found.arms.variances == pytest.approx([1 / 6, 1 / 16])  # (.25 + .25 + 0) / 3; (.0625 + .0625) / 2
    assert found.arm_names == ("arm 0", "arm 1")
    env: Any = gym.make(BEST, instance=found, budget=400).unwrapped
    env.reset(seed=0)
    seen = {env.step(1)[-1]["sample"] for _ in range(200)}
    assert seen == {0.25, 0.75} or seen == {0.0, 0.5, 1.0}  # the arms come in a random order


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_all_forms_of_a_table(kind: str, tmp_path: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a", "b", "c"], "x": [0.1, None, 0.3], "y": [1, 0, 1]})
    if kind == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / "t.parquet")
    source: Any = frame if kind == "frame" else str(tmp_path / f"t.{kind}")
    for index in ("id", 0):
        found = from_table(source, index=index)
        assert found.arm_names == ("x", "y")
        assert found.arms.means == pytest.approx([0.2, 2 / 3])


def test_what_is_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        from_table(tmp_path / "nothing.csv")
    for odd in ([1, 0, 1], "abc", [["x", "y"]], None, 3):
        with pytest.raises((TypeError, FileNotFoundError)):
            from_table(odd)
    (tmp_path / "t.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refused("pandas", "pyarrow", error=ImportError):
        from_table(tmp_path / "t.parquet")


def test_a_long_table(tmp_path: Path) -> None:
    """Tea 1 and 3, coffee 2, 2 and 8: means 2 and 4; a row without a value and one that was undone are left out."""
    text = "event,name,value,undone\n1,tea,1,False\n2,coffee,2,False\n3,coffee,2,False\n4,tea,,False\n5,tea,9,True\n"
    path = written(tmp_path, text + "6, tea ,3,False\n7,coffee,8,False\n")
    found = from_table(path)
    assert found.arm_names == ("tea", "coffee")
    assert found.arms.means.tolist() == [2.0, 4.0]
    assert [(one.arm, one.value) for one in measurements(path).rows] == [
        ("tea", (1.0,)),
        ("coffee", (2.0,)),
        ("coffee", (2.0,)),
        ("tea", (3.0,)),
        ("coffee", (8.0,)),
    ]
    assert measurements(path).rows[-1].place == "line 8"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_heads_alone_decide_which_form_a_table_has(kind: str, tmp_path: Path) -> None:
    """All cells are numbers here, so that both readings are possible; unequal numbers of measurements leave gaps.

    Wide, value: 2 and 4; arm: 1, 3 and 5. Long, arm 1: 2; arm 3: 4; arm 5: nothing.
    """
    pandas: Any = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")

    def saved(columns: dict[str, list[float]]) -> str:
        frame, path = pandas.DataFrame(columns), str(tmp_path / f"t.{kind}")
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        return path

    both = saved({"arm": [1.0, 3.0, 5.0], "value": [2.0, 4.0, NAN]})
    assert from_table(both).arm_names == ("1.0", "3.0")  # as ever: the heads of a long table
    assert from_table(both).arms.means.tolist() == [2.0, 4.0]
    found = from_table(both, wide=True)
    assert found.arm_names == ("arm", "value")
    assert found.arms.means.tolist() == [3.0, 3.0]
    assert from_table(both, wide=False).arm_names == ("1.0", "3.0")
    half = saved({"value": [1.0, 2.0], "price": [3.0, NAN]})
    assert from_table(half, wide=True).arms.means.tolist() == [1.5, 3.0]
    env: Any = gym.make(BEST, instance=f"table(path={half!r}, wide=True)", budget=4).unwrapped
    assert env.instance.arm_names == ("value", "price")
    with refused("'value'", "arm=", "wide=True"):
        from_table(half)


def test_tables_that_a_spreadsheet_has_written(tmp_path: Path) -> None:
    """It writes TRUE; which of two columns of a name is meant nobody knows."""
    path = written(tmp_path, "name,value,undone\na,1,TRUE\na,2,FALSE\n")
    assert [one.value for one in measurements(path).rows] == [(2.0,)]
    for yes, no in (("yes", "no"), ("T", " F "), ("1.0", ""), ("Y", "n/a")):
        path = written(tmp_path, f"name,value,undone\na,1,{yes}\na,2,{no}\n")
        assert [one.value for one in measurements(path).rows] == [(2.0,)]
    with refused("line 3", "undone", "x"):
        measurements(written(tmp_path, "name,value,undone\na,1,\na,2,X\n"))
    with pytest.raises(ValueError, match="columns of the same name: .'value'."):
        measurements(written(tmp_path, "name,value,value\na,1,2\n"))


def test_columns_by_their_names(tmp_path: Path) -> None:
    """Two dimensions under heads of one's own; without names for the columns it is a wide table with a text in it."""
    path = written(tmp_path, "compound,effect,harm\nx,.5,.1\ny,.7,.3\nx,.7,.1\n")
    found = from_table(path, arm="compound", value=["effect", "harm"])
    assert found.arms.means == pytest.approx(np.array([[0.6, 0.1], [0.7, 0.3]]))
    assert from_table(path, arm="compound", value="harm").arms.means == pytest.approx([0.1, 0.3])


def test_distributions_of_a_table(tmp_path: Path) -> None:
    """Values 1 and 3: mean 2, standard deviation sqrt(2) with divisor n - 1."""
    table = [[1.0, 0.0], [3.0, 4.0]]
    gaussian = from_table(table, distribution="gaussian")
    assert isinstance(gaussian.arms, Gaussian)
    assert gaussian.arms.means.tolist() == [2.0, 2.0]
    assert gaussian.arms.variances == pytest.approx([2.0, 8.0])
    share = from_table([[0.25, 1.0], [0.75, NAN]], distribution="bernoulli")
    assert isinstance(share.arms, Bernoulli)
    assert share.arms.means.tolist() == [0.5, 1.0]
    assert isinstance(from_table([[0, 1], [1, 1]], distribution="resampled").arms, Resampled)
    for values, distribution, said in (
        (
            table,
            "bernoulli",
            r"row 1, column 'arm 0': a measurement must be a number in \[0, 1\], got 3.0 of 'arm 0' on '1'",
        ),
        ([[1, 2], [NAN, 3]], "gaussian", "at least 2 different values of each arm, arm 'arm 0' of the table has"),
        (table, "poisson", "distribution must be one of"),
    ):
        with pytest.raises(ValueError, match=said):
            from_table(values, distribution=distribution)


NUMBERS = {" 1 ": (1.0, 1.0), "+.5e1": (5.0, None), "5.": (5.0, None), "TRUE": (1.0, 1.0), "1,5": (None, 1.5)}


def test_a_first_line_of_spreadsheets_and_a_table_without_rows(tmp_path: Path) -> None:
    for text, names in (("sep=;\r\narm;value\r\nA;1\r\nB;2\r\n", ["A", "B"]), ("arm;value\r\n", None)):
        (tmp_path / "table.csv").write_text(text)
        if names is None:
            with refused("table.csv", "no row"):
                measurements(tmp_path / "table.csv", sep=";")
        else:
            assert measurements(tmp_path / "table.csv", sep=";").arms == names


NONE = ("1_0", "1e400", "inf", "-Infinity", "\uff11", "\u0661", "0x1", "1.234,5", "C", "yes")


@pytest.mark.parametrize(("text", "found"), [*NUMBERS.items(), *((text, (None, None)) for text in NONE)])
def test_what_is_a_number(text: str, found: tuple[float | None, ...], tmp_path: Path) -> None:
    """With a point, and with a comma for decimals, in a file and in a frame."""
    pandas: Any = pytest.importorskip("pandas")
    path = written(tmp_path, f"name;value\na;2\nb;{text}\n")
    frame: Any = pandas.DataFrame({"name": ["a", "b"], "value": ["2", text]})
    tables: Any = ((path, f"{path}, line 3"), (frame, "row 1"))
    for (table, place), (decimal, value) in itertools.product(tables, zip(".,", found, strict=True)):
        if value is not None:
            assert measurements(table, sep=";", decimal=decimal).rows[1].value == (value,)
            continue
        with pytest.raises(ValueError, match="a value is a finite number, or nothing") as caught:
            measurements(table, sep=";", decimal=decimal)
        assert f"{place}, column 'value'" in str(caught.value)
        assert ("among values 0 and 1 alone" in str(caught.value)) == (text in ("C", "yes"))


def test_other_separators_files_and_frames(tmp_path: Path, capsys: Any) -> None:
    rows = "".join(f"{arm};{n};{n % 7},5\n" for arm in "ab" for n in range(9))
    path, how = written(tmp_path, f"arm;quiz;value\n{rows}"), {"item": "quiz", "sep": ";", "decimal": ","}
    with refused("index", "item", "wide=True"):
        measurements(path, **how, wide=True)  # type: ignore[arg-type]
    words = ["evaluate", "BestArm", "--budget", "8", "--agents", "uniform", "--shared", "--item", "quiz", "--sep"]
    assert main([*words, ";", "--decimal", ",", "--data", path]) == 0
    assert main([*words, ";", "--data", path]) == 0
    for mark, told in ((",", "sep= (--sep)"), (";;", "';;'")):
        assert main([*words, mark, "--data", path]) == 2
        assert told in capsys.readouterr().err
    (tmp_path / "a.json").write_text('{"a": 1, "b": 0}\n')
    polars: Any = pytest.importorskip("polars")
    lazy, late = (polars.LazyFrame(), ".collect"), (iter("a"), "a list")
    for table, said in ((tmp_path / "a.json", r"JSON Lines \(.jsonl\) are read"), lazy, late):
        with pytest.raises((ValueError, TypeError), match=said):
            measurements(table)
    for shared in (False, True):
        with refused("has no measurement"):
            from_table(np.empty((0, 3)), shared=shared)


# --- the distribution of such tables
# ------------------------------------------------------------------------------------------


def test_logits_of_accuracies_are_normal() -> None:
    check_accuracies(100)


def test_the_sampler_by_name() -> None:
    for form in ("prompt-selection(K=12)", {"prompt-selection": {"K": 12}}):
        env: Any = gym.make(TOP, instance=form, k=3, budget=60).unwrapped
        assert env.task.K == 12
        first = env.reset(seed=0)[1]
        assert first is not None
    distribution: Any = lookup.find("prompt-selection(K=12, accuracy=0.81, spread=1.12)")
    assert distribution.to_dict() == {"prompt-selection": {"K": 12, "accuracy": 0.81, "spread": 1.12}}
    assert repr(lookup.find(distribution.to_dict())) == repr(distribution)


# --- instances of fixed-confidence papers ----------------------------------------------------------------------------


def test_instances_of_garivier_and_kaufmann() -> None:
    """delta is left to the user, and so is the budget."""
    for number, means in ((1, [0.5, 0.45, 0.43, 0.4]), (2, [0.3, 0.21, 0.2, 0.19, 0.18])):
        found = lookup.find(f"garivier2016-{number}")
        assert isinstance(found, Instance)
        assert found.arms.means.tolist() == means
        for env_id, more in ((BEST, {}), (TOP, {"k": 2})):
            task = gym.make(env_id, instance=found, delta=0.01, max_pulls=10**6, **more).unwrapped.task  # type: ignore[attr-defined]
            assert (task.delta, task.budget) == (0.01, None)
            assert task.parameters["criterion"] == ("exact" if env_id == BEST else "aggregate")


def test_ladder() -> None:
    found: Any = lookup.find("jamieson2014-ladder(K=5, alpha=0.5)")
    assert isinstance(found.arms, Gaussian)
    assert found.arms.means == pytest.approx([1.0, 0.5, 1 - math.sqrt(0.5), 1 - math.sqrt(0.75), 0.0])
    assert found.arms.variances == pytest.approx([0.25] * 5)
