"""A/B tests by sums of squares, with guardrails and planned shares, and how long they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import agents
from bandit_envs import measurements

pytest.importorskip("sqlalchemy")


# Sums and sums of squares ---------------------------------------------------------------------------------------------


def test_sums_and_sums_of_squares_are_means_and_deviations() -> None:
    """By hand: 1, 2 and 6 have the mean 3 and the variance 7; and 1,000 results at several places and scales."""
    table = pd.DataFrame([("A", 3, 9, 41), ("B", 1, 2, 4), ("C", 0, 0, 0)], columns=["variant", "n", "total", "sumsq"])
    rows = [one.several for one in measurements(table).rows]
    assert [tuple(one or ()) for one in rows] == [(3, None, 3.0, pytest.approx(7**0.5)), (1, None, 2.0, None)]
    random = np.random.default_rng(0)
    for place, scale in ((0.0, 1.0), (5.0, 1e20), (1e4, 1.0), (-3.0, 1e-20)):
        x = {name: scale * random.normal(place, 2, 1000) for name in "AB"}
        sums = pd.DataFrame({"n": 1000, "sum": {k: v.sum() for k, v in x.items()}}).rename_axis("variant")
        sums["sum_squares"] = [(one**2).sum() for one in x.values()]
        means = pd.DataFrame({k: (len(v), v.mean(), v.std(ddof=1)) for k, v in x.items()}, index=["n", "mean", "sd"]).T
        found = agents.ab_test(sums, "A").set_index("name").loc["B", ["low", "high", "p"]].to_numpy(float)
        other = agents.ab_test(means.rename_axis("variant"), "A").set_index("name").loc["B", ["low", "high", "p"]]
        assert found == pytest.approx(other.to_numpy(float), rel=1e-6)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sumsq": 26.9}, "row 1, columns .*: a sum of squares is at least .*, got n=3, sum=9.0 and .* squares 26.9"),
        ({"n": 1}, "row 1, .*: a sum of squares is the square of the sum"),
        ({"sum": None}, "row 1, .*: a count is n with a sum and a sum of squares, got n=3, sum=None"),
        ({"sum": 3e9, "sumsq": 3e18 + 4096}, "row 1, .*: too few digits are left of the spread, give mean and sd"),
        ({"n": 2.5}, "row 1, .*: n must be an integer"),
    ],
)
def test_impossible_sums_are_refused(change: dict[str, Any], says: str) -> None:
    row = {"variant": "B", "n": 3, "sum": 9, "sumsq": 41}
    with pytest.raises(ValueError, match=says):
        measurements(pd.DataFrame([row | {"variant": "A"}, row | change]))


def test_a_sum_without_squares_is_another_column() -> None:
    table = pd.DataFrame({"variant": ["A", "B", "sum"], "n": [5, 6, 11], "successes": [1, 2, 3], "sum": 7, "total": 8})
    found = measurements(table)
    assert (found.arms, [*found.rest]) == (["A", "B"], ["sum", "total"])
    assert measurements(table.assign(squares=1)).read.startswith("the table: names in 'variant', n in 'n', successes")


def test_one_of_several_metrics_is_read() -> None:
    table = pd.DataFrame({"variant": list("AB"), "n": [50, 60], "signups": [1, 2], "crashes": [0, 1]})
    table["mean_revenue"], table["Revenue_sd"] = [5.0, 6.0], [2.0, 3.0]
    table["time_sum"], table["time_sumsq"] = [50.0, 60.0], [99.0, 109.0]
    reads = {name: measurements(table, metric=name) for name in ("signups", "crashes", "Revenue", "time")}
    assert [reads[name].rows[1].several for name in reads] == [
        (60, 2, None, None),
        (60, 1, None, None),
        (60, None, 6.0, 3.0),
        (60, None, 1.0, pytest.approx((49 / 59) ** 0.5)),
    ]
    singles = pd.DataFrame({"variant": ["A", "B"] * 9, "signups": [0, 1] * 9, "revenue": np.arange(18.0)})
    assert measurements(singles, metric="revenue").rows[3].value == (3.0,)
    for one in (table, singles):
        with pytest.raises(ValueError, match="the table has no column 'nothing'"):
            measurements(one, metric="nothing")
