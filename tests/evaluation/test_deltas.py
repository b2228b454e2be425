"""One call at several deltas: the rows of separate calls, kept, resumed, shown and drawn by their delta."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import agents
from agents.cli import main
from agents.evaluation import plots, report
from agents.evaluation.result import Evaluation

OLD = Path(__file__).parent / "folders" / "47cb50b" / "rows" / "settings.json"
TWO = {"instance": {"law": "gaussian", "mean": [1.0, 0.0]}}
NAMES = ["evidence", "uniform(stop='certificate')"]
DELTAS = [0.05, 0.2, 0.1]


def evaluate(**arguments: Any) -> Evaluation:
    given = {"episodes": 12, "env_kwargs": TWO, "progress": False} | arguments
    return agents.evaluate(given.pop("names", NAMES), "BestArm", **given)


@pytest.fixture(scope="module")
def swept() -> Evaluation:
    return evaluate(deltas=DELTAS)


def alone(**arguments: Any) -> dict[float, Evaluation]:
    return {delta: evaluate(env_kwargs=TWO | {"delta": delta}, **arguments) for delta in DELTAS}


def test_rows_are_those_of_separate_calls_to_the_last_bit(swept: Evaluation) -> None:
    for delta, one in alone().items():
        for name in ("episodes", "pulls"):
            table, own = getattr(swept, name), getattr(one, name)
            rows = table[table["delta"] == delta].drop(columns="delta").reset_index(drop=True)
            pd.testing.assert_frame_equal(rows, own, check_exact=True)
        assert swept.compare(*NAMES, delta=delta) == one.compare(*NAMES)
    pulls = [swept.column("evidence", "total_pulls", delta=delta).sum() for delta in sorted(DELTAS)]
    assert pulls == sorted(pulls, reverse=True)
    assert len(set(pulls)) == 3


def test_without_rows_the_numbers_are_the_same() -> None:
    sums = evaluate(deltas=DELTAS, rows="none")
    for delta, one in alone(rows="none").items():
        table = sums.summary().drop(columns="pulls_per_second")
        rows = table[table["delta"] == delta].drop(columns="delta").reset_index(drop=True)
        own = one.summary().drop(columns="pulls_per_second")
        pd.testing.assert_frame_equal(rows, own, check_exact=True)
        assert sums.compare(*NAMES, delta=delta) == one.compare(*NAMES)


def test_delta_is_a_column_behind_budget_and_at_and_the_smallest_comes_last(swept: Evaluation) -> None:
    keys = ["agent", "budget", "at", "delta"]
    for table, more in ((swept.episodes, "episode"), (swept.pulls, "arm"), (swept.summary(), "episodes")):
        assert list(table.columns[:5]) == [*keys, more]
        assert table["delta"].dtype == np.float64
    rows = swept.summary()[["agent", "delta"]].to_numpy().tolist()
    assert rows == [[name, delta] for name in NAMES for delta in (0.2, 0.1, 0.05)]
    assert swept.cell("evidence")[0].task.delta == 0.05
    assert "delta" not in evaluate(env_kwargs=TWO | {"delta": 0.1}).summary()
    with pytest.raises(
        ValueError, match=r"budget=None, at=None, delta=0\.3; .budget, at, delta. are .None, None, 0\.2"
    ):
        swept.column("evidence", "score", delta=0.3)


@pytest.mark.parametrize("rows", ["all", "none"])
def test_a_folder_is_gone_on_with_and_read(rows: str, tmp_path: Path) -> None:
    out, given = tmp_path / "parts", {"deltas": DELTAS, "rows": rows}
    evaluate(**given, out=out, shard="1/2")
    files = {path: path.read_bytes() for path in out.glob("*.parquet/*")}
    whole = evaluate(**given, out=out)
    assert files.items() < {path: path.read_bytes() for path in out.glob("*.parquet/*")}.items()
    own = evaluate(**given)
    for found in (whole, agents.results(out)):
        tables = [one.summary().drop(columns="pulls_per_second") for one in (found, own)]
        pd.testing.assert_frame_equal(*tables, check_exact=True)
    columns = pd.read_parquet(next(out.glob("*.parquet"))).columns
    assert list(columns[:4]) == ["agent", "budget", "at", "delta"]
    with pytest.raises(ValueError, match="deltas"):
        evaluate(**given | {"deltas": [0.1]}, out=out)
    if rows == "all":
        saved = agents.results(whole.save(tmp_path / "saved"))
        pd.testing.assert_frame_equal(saved.episodes, own.episodes, check_exact=True)


def test_settings_without_deltas_have_the_keys_of_before(tmp_path: Path, swept: Evaluation) -> None:
    evaluate(env_kwargs=TWO | {"delta": 0.1}, out=tmp_path)
    found, old = (json.loads(path.read_text()) for path in (tmp_path / "settings.json", OLD))
    assert list(found) == list(old)
    assert [list(run) for run in found["runs"]] == [list(old["runs"][0])] * 2
    assert set(found["identity"]) == set(old["identity"])
    assert swept.settings["deltas"] == [0.2, 0.1, 0.05]


def test_pulls_are_drawn_against_the_logarithm_of_delta_beside_the_lower_bound(swept: Evaluation) -> None:
    """Two Gaussian arms at a distance of 1: 8 kl(delta, 1 - delta) = 8 (1 - 2 delta) ln((1 - delta) / delta) pulls."""
    (ax,) = swept.plot().axes
    *lines, bound = ax.lines
    x = [math.log(1 / delta) for delta in (0.2, 0.1, 0.05)]
    assert [list(line.get_xdata()) for line in ax.lines] == [pytest.approx(x)] * 3
    table = swept.summary()
    for name, line, band in zip(NAMES, lines, ax.collections, strict=False):
        rows = table[table["agent"] == name]
        assert line.get_ydata().tolist() == rows["total_pulls"].tolist()
        edges = band.get_paths()[0].vertices[:, 1]
        assert (edges.min(), edges.max()) == (rows["total_pulls_low"].min(), rows["total_pulls_high"].max())
    expected = [8 * (1 - 2 * delta) * math.log((1 - delta) / delta) for delta in (0.2, 0.1, 0.05)]
    assert bound.get_ydata() == pytest.approx(expected, rel=1e-6)
    assert bound.get_label() == "lower bound"
    assert ax.get_xlabel() == "ln(1 / delta)"
    assert ax.get_ylim()[0] < expected[0]
    looks = [
        json.dumps([line.get_color(), plots.LINES.index(plots.style(i)["linestyle"])]) for i, line in enumerate(lines)
    ]
    assert len({*looks, json.dumps([bound.get_color(), 2])}) == 3
    (logs,) = swept.plot("total_pulls", transform=np.log).axes
    assert logs.lines[-1].get_ydata() == pytest.approx(np.log(expected), rel=1e-6)
    (errors,) = swept.plot("error_rate").axes
    assert len(errors.lines) == 2  # no bound on them
    assert len(evaluate(deltas=[0.1]).plot().axes[0].patches) == 2  # bars of a single delta
    unknown = evaluate(names="evidence", deltas=[0.2, 0.1], env_kwargs={"instance": "sampler(arms=2)", "max_pulls": 99})
    assert len(unknown.plot("total_pulls").axes[0].lines) == 1


def test_tables_tell_the_delta_of_each_row(swept: Evaluation) -> None:
    text = report.report(swept)
    assert text.splitlines()[2].split()[:2] == ["agent", "delta"]
    assert [line.split()[1] for line in text.splitlines()[4:7]] == ["0.2", "0.1", "0.05"]
    assert "delta" not in text.splitlines()[0]
    assert "on the same episodes at delta 0.05" in text
    assert "at delta 0.1:" in report.report(evaluate(deltas=[0.1]))


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    line = f"evaluate BestArm --instance '{json.dumps(TWO['instance'])}' --episodes 12 --agents {' '.join(NAMES[:1])}"
    assert main(shlex.split(f"{line} --deltas .05 .2 .1 --out {out}")) == 0
    assert "delta" in capsys.readouterr().out
    pd.testing.assert_frame_equal(
        agents.results(out).episodes, evaluate(names="evidence", deltas=DELTAS).episodes, check_exact=True
    )
    assert main(["plot", str(out)]) == 0
    assert (out / "total_pulls.png").is_file()
    assert main(["report", str(out)]) == 0
    assert "--deltas 0.2 0.1 0.05" in (out / "report.html").read_text()
    assert main(shlex.split(f"{line} --deltas .05 2")) == 2
    assert "2" in capsys.readouterr().err
