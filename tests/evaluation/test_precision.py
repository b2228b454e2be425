"""Evaluations that end when they are precise enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pandas.testing import assert_frame_equal
from scale import evaluate

import agents
from agents.cli import main
from agents.evaluation.precision import level_at, looks


@pytest.mark.parametrize("rows", ["all", "none"])
def test_a_run_ends_when_it_is_precise_enough_whoever_has_run_it(tmp_path: Path, rows: str) -> None:
    how: dict[str, Any] = {"episodes": 100_000, "precision": 0.04, "rows": rows}
    names = ["lsa", "uniform"]
    one = evaluate(names, **how)
    table = one.summary()
    count, look = one.settings["episodes"], one.settings["look"]
    assert 500 < count < 5_000  # some 600 episodes at a rate of 1/2, without a look before
    assert ((table["error_high"] - table["error_low"]) / 2 <= 0.04).all()
    assert (table["episodes"] == count).all()
    columns = [name for name in table.columns if name != "pulls_per_second"]
    others = [evaluate(names, out=tmp_path, jobs=2, **how)]
    others += [agents.results(tmp_path), evaluate(names, out=tmp_path, **how)]
    for other in others:
        assert other.settings["episodes"] == count
        assert other.settings["look"] == look
        assert_frame_equal(other.summary()[columns], table[columns], check_exact=True)
    plain = evaluate(names, episodes=count)
    mean = ["error_rate", "score", "total_pulls"]
    assert_frame_equal(plain.summary()[mean], table[mean], rtol=1e-12, atol=0)
    if rows == "all":
        assert_frame_equal(plain.episodes, one.episodes, atol=0)
        assert_frame_equal(plain.pulls, one.pulls, atol=0)
    narrow = plain.summary()
    assert (narrow["error_high"] - narrow["error_low"] < table["error_high"] - table["error_low"]).all()


def test_looks_and_their_levels() -> None:
    assert list(looks(20)) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20]
    assert sum(1 - level_at(look, 0.9) for look in range(1, 10**5)) == pytest.approx(0.1, abs=1e-5)
    assert level_at(None, 0.9) == 0.9


def test_a_verdict_ends_a_run() -> None:
    easy: dict[str, Any] = {"distribution": "gaussian", "mean": [-3.0, 0.0, 3.0]}
    how: dict[str, Any] = {"env_kwargs": {"instance": easy, "epsilon": 0.5, "delta": 0.2, "max_pulls": 10_000}}
    result = evaluate("st2", "AllGood", episodes=100_000, precision="verdict", **how)
    assert result.summary()["verdict"].tolist() == ["met"]
    assert result.settings["episodes"] < 10_000


def test_all_episodes_are_run_where_they_are_too_few(tmp_path: Path) -> None:
    for _ in range(2):  # the second call makes nothing, and tells the same
        with pytest.warns(
            RuntimeWarning, match=r"not reached in 500 episodes: score of lsa is known to 0\.0\d+ .* 1e-09"
        ):
            result = evaluate("lsa", precision={"score": 1e-9}, episodes=500, out=tmp_path)
    assert result.settings["episodes"] == 500
    assert result.summary()["episodes"].tolist() == [500]


def test_equal_values_are_not_precise_at_once() -> None:
    """Means of 9 standard deviations on either side: an arm is misclassified in no episode, or in hardly any."""
    easy: dict[str, Any] = {"distribution": "gaussian", "mean": [-3.0, 3.0]}
    result = evaluate(
        "lsa",
        "Threshold",
        episodes=20_000,
        precision={"misclassified": 0.01},
        env_kwargs={"instance": easy, "threshold": 0.0, "budget": 20},
    )
    assert result.summary()["misclassified"].tolist() == [0]
    assert 1000 <= result.settings["episodes"] < 2000


def test_rows_and_precision_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = "evaluate Threshold --instance tao2019-1 --budget 60 --agents lsa uniform --episodes 20000 --rows none"
    assert main([*line.split(), "--precision", "score=0.01"]) == 0
    out = capsys.readouterr().out
    assert "no rows were kept: intervals of means are normal ones" in out
    assert "intervals allow for having looked more than once" in out
    assert "20,000 episodes" not in out
    assert main([*line.split(), "--precision", "score=x"]) == 2
    assert "--precision must be a number, NAME=number, or verdict, got 'score=x'" in capsys.readouterr().err
