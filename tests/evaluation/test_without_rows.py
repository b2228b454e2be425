"""Evaluations that keep counts and sums in place of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from scale import TAO, evaluate

import agents
from agents.evaluation.moments import Histogram, Sums

RANDOM = np.random.default_rng(17)


GROUPS = {"instance": "mason2020-3a(n=10)", "delta": 0.1, "max_pulls": 3000}
KINDS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "budget": (["lsa", "random"], {"env_id": "Threshold", "at": [20, 60], "episodes": 10_200}),
    "budgets": (["lsa", "ucbe"], {"env_id": "Threshold", "budgets": [20, 60], "episodes": 400}),
    "stopping": (["st2", "uniform-elimination"], {"env_id": "AllGood", "env_kwargs": GROUPS, "episodes": 150}),
    "best arm": (["uniform", "random"], {"env_id": "BestArm", "env_kwargs": TAO | {"budget": 30}, "episodes": 400}),
}


LIMITS = ("score_low", "score_high")


@pytest.mark.parametrize("kind", KINDS)
def test_without_rows_the_numbers_are_the_same(kind: str, tmp_path: Path) -> None:
    names, how = KINDS[kind]
    rows, sums = evaluate(names, **how), evaluate(names, rows="none", **how)
    assert sums.settings["rows"] == "none"
    untold = ["pulls_per_second", "level"]  # the latter is a median, which sums do not tell
    a, b = (one.summary().drop(columns=untold, errors="ignore") for one in (rows, sums))
    loose = how["episodes"] <= 10_000  # where rows have the bootstrap
    exact = [name for name in a.columns if not (loose and name in LIMITS)]
    assert_frame_equal(a[exact], b[exact], rtol=1e-12, atol=1e-14)
    assert_frame_equal(a, b, atol=0.2 * (a["score_high"] - a["score_low"]).max(), rtol=0)
    assert_frame_equal(rows.pulls, sums.pulls, check_exact=True)
    metrics = ["score", "error_rate", "correct", "total_pulls", *rows.runs[0].names[2:]]
    for order in (names[:2], names[1::-1]):
        for metric in metrics if order == names[:2] else metrics[:1]:
            x, y = (one.compare(*order, metric) for one in (rows, sums))
            assert y.difference == pytest.approx(x.difference, rel=1e-9, abs=1e-12)
            if x.method == y.method:
                assert (y.low, y.high, y.p_value) == pytest.approx(
                    (x.low, x.high, x.p_value), rel=1e-9, abs=1e-12, nan_ok=True
                )
            else:
                assert y.method == "normal test, normal interval (no rows were kept to resample)"
                assert (y.low, y.high) == pytest.approx(
                    (x.low, x.high), abs=0.2 * np.nan_to_num(x.high - x.low) + 1e-12, nan_ok=True
                )
    stored = evaluate(names, rows="none", out=tmp_path, jobs=2, **how)
    for other in (stored, agents.results(tmp_path), evaluate(names, rows="none", jobs=2, **how)):
        assert_frame_equal(other.summary()[list(b.columns)], b, check_exact=True)
        assert other.compare(*names[:2], "score") == sums.compare(*names[:2], "score")
    assert len(pd.read_parquet(tmp_path / "sums.parquet")) > 0


def test_what_needs_rows_says_so() -> None:
    sums = evaluate(["lsa", "uniform"], rows="none", at=[20, 60], episodes=50)
    for use in (
        lambda: sums.episodes,
        lambda: sums.column("lsa", "score"),
        lambda: sums.runs[0].columns["score"],
    ):
        with pytest.raises(ValueError, match="no rows were kept, as rows='none' asked for"):
            use()
    assert sums.plot("f1").axes
    with pytest.raises(ValueError, match="rows must be"):
        evaluate(rows="some")


def test_histograms_are_exact_or_coarse_whatever_the_order() -> None:
    values = RANDOM.geometric(1e-5, 60_000)
    parts = [Histogram.of(part) for part in np.split(values, [10, 5000, 5001, 40_000])]
    whole = Histogram.of(values)
    for order in (range(5), [4, 2, 0, 1, 3]):
        merged = parts[order[0]]
        for i in order[1:]:
            merged = merged.merged(parts[i])
        assert merged.shift == whole.shift > 0
        assert (merged.keys == whole.keys).all()
        assert (merged.counts == whole.counts).all()
        assert (merged.low, merged.high) == (values.min(), values.max())
    for q in (0, 0.05, 0.5, 0.95, 1):
        assert whole.quantile(q) == pytest.approx(np.quantile(values, q), abs=2**whole.shift)
        assert parts[0].quantile(q) == np.quantile(values[:10], q)
        few = values % 97
        assert Histogram.of(few).quantile(q) == np.quantile(few, q)


def test_sums_do_not_cancel() -> None:
    values = 1e9 + RANDOM.random(1000)
    merged = Sums.of(values[:1])
    for part in np.split(values[1:], [1, 500]):
        merged = merged.merged(Sums.of(part))
    assert merged.spread == pytest.approx(np.square(values - values.mean()).sum(), rel=1e-6)
