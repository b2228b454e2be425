"""Intervals of mean pulls, all pairs with Holm's correction, chosen columns, limits within what is possible."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from plays import seen
from scipy import stats

import agents
from agents.evaluation import Evaluation, report
from agents.evaluation.report import escaped
from agents.evaluation.statistics import holm
from bandit_envs import Threshold

SETTING = {"instance": {"distribution": "bernoulli", "mean": [0.9, 0.6, 0.1]}, "threshold": 0.5, "delta": 0.1}
NAMES = ["uniform(stop='certificate')", "lsa(stop='certificate')", "evidence"]


@functools.cache
def evaluation(rows: str = "all", episodes: int = 200) -> Evaluation:
    return agents.evaluate(NAMES, "Threshold", episodes=episodes, env_kwargs={**SETTING, "max_pulls": 900}, rows=rows)


def test_holm_by_hand() -> None:
    """Of .01, .04, .03, .005, ascending: .005 x 4, .01 x 3, .03 x 2, and .04 x 1, which is raised to .06."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([1.0, 0.0, 0.7]).tolist() == [1.0, 0.0, 1.0]
    assert holm([0.6, 0.5]) == pytest.approx([1.0, 1.0])
    assert holm([0.2]).tolist() == [0.2]
    for wrong in ([0.1, 1.2], [[0.1]], [-0.1]):
        with pytest.raises(ValueError, match="p_values must be of shape"):
            holm(wrong)


def test_all_pairs_are_compared() -> None:
    found = evaluation()
    table = found.compare(metric="total_pulls")
    assert list(zip(table["a"], table["b"], strict=True)) == list(itertools.combinations(NAMES, 2))
    for row in table.to_dict("records"):
        one = found.compare(row["a"], row["b"], "total_pulls")
        assert all(row[name] == getattr(one, name) for name in ("difference", "low", "high", "p_value"))
    assert table["p_holm"].tolist() == holm(table["p_value"]).tolist()
    assert len(found.compare(NAMES[1:], metric="total_pulls")) == 1
    for twice in (([NAMES[0], NAMES[1], NAMES[0]],), (NAMES[0], NAMES[0])):  # before, it was compared with itself
        with pytest.raises(ValueError, match="once, got|twice"):
            found.compare(*twice)
    with pytest.raises(ValueError, match="two agents or more are compared, got evidence"):
        found.compare("evidence")
    with pytest.raises(ValueError, match="a must be the label of an agent"):
        found.compare(None, "evidence")  # type: ignore[call-overload]


@pytest.mark.parametrize("rows", ["all", "none"])
def test_mean_pulls_have_an_interval(rows: str) -> None:
    table = evaluation(rows).summary()
    pulls = evaluation().episodes.groupby("agent", observed=True)["total_pulls"]
    for row in table.to_dict("records"):
        x = pulls.get_group(row["agent"])
        half = stats.norm.isf(0.025) * x.std() / len(x) ** 0.5
        assert row["total_pulls"] == pytest.approx(x.mean())
        assert row["total_pulls_low"] == pytest.approx(x.mean() - half, abs=0.15 * half)
        assert row["total_pulls_high"] == pytest.approx(x.mean() + half, abs=0.15 * half)


def test_the_interval_of_mean_pulls_holds_the_mean() -> None:
    """100 evaluations of 60 episodes: 16 or more misses have probability 1e-4 at .05; half of its width misses 30."""
    kwargs = {**SETTING, "max_pulls": 900}
    pulls = agents.evaluate("evidence", "Threshold", episodes=6000, env_kwargs=kwargs).column("evidence", "total_pulls")
    truth, many = pulls.mean(), pulls.reshape(100, 60)
    limits = np.array([agents.evaluation.statistics.bootstrap_mean(x) for x in many])
    most = stats.binom.isf(1e-4, 100, 0.05)
    middle = limits.mean(axis=1, keepdims=True)
    for factor, holds in ((1.0, True), (0.5, False)):
        low, high = (middle + factor * (limits - middle)).T
        assert (int(((truth < low) | (truth > high)).sum()) <= most) == holds


def test_columns_are_chosen() -> None:
    found = evaluation()
    wanted = ["agent", "total_pulls", "error_rate", "verdict", "budget"]
    assert list(found.summary(columns=wanted).columns) == wanted
    with pytest.raises(ValueError, match="unknown column 'total_pull'; did you mean 'total_pulls'"):
        found.summary(columns=["agent", "total_pull"])
    text = found.to_latex(columns=wanted)
    row = found.summary().iloc[2]
    assert f"{row['total_pulls_low']:,.0f}, {row['total_pulls_high']:,.0f}" in text
    assert r"total pulls {[}95 \%{]}" in text
    assert text.count("&") == 4 * 4
    with pytest.raises(ValueError, match=r"columns must name one column of summary\(\) or more, got \[\]"):
        found.to_latex(columns=[])
    with pytest.raises(ValueError, match="unknown column 'pulls'"):
        found.to_latex(columns=["pulls"])
    assert r"pulls {[}95 \%{]}" in found.to_latex()
    assert escaped(r"$\varepsilon$-best_1 $k^2$") == r"$\varepsilon$-best\_1 $k^2$"
    assert escaped("5$ or a_b 6$") == r"5\$ or a\_b 6\$"


@pytest.mark.parametrize("rows", ["all", "none"])
def test_a_single_episode_is_shown_without_intervals(rows: str) -> None:
    """In the summary, its text, LaTeX, comparisons and plots; error rates have the exact one."""
    how = {"instance": SETTING["instance"], "threshold": 0.5, "budget": 12, "delta": None}
    found = agents.evaluate(["uniform", "random"], "Threshold", episodes=1, rows=rows, env_kwargs=how)
    table = found.summary()
    assert table[["score_low", "score_high", "total_pulls_low", "total_pulls_high"]].isna().all(axis=None)
    assert (table["error_high"] - table["error_low"]).tolist() == pytest.approx([0.975, 0.975], rel=1e-9)
    d = found.compare("uniform", "random", "f1")
    assert np.isnan([d.low, d.high]).all() or d.method.startswith("McNemar")
    assert np.isnan(found.compare("uniform", "random", "total_pulls").low)
    texts = report.summary(found), found.to_latex(), str(report.differences(found, "total_pulls").rows)
    assert not any("nan" in text for text in texts)
    if rows == "all":
        found.runs[0].columns["score"][:] = 0.1  # so far from the other one that bars are drawn
        (ax,) = found.plot("score").axes
        ends = [line.get_xdata() for line in ax.lines if line.get_marker() == "|"]
        assert len(ends) == 2
        assert np.isnan(ends).all()
        assert ax.get_xlim()[0] == 0


def test_no_interval_leaves_what_is_possible() -> None:
    """An agent that errs once in 200 episodes: a normal interval of its score goes beyond 1."""
    table = evaluation("none").summary()
    for name in ("score", "error"):
        assert not ((table[f"{name}_low"] < 0) | (table[f"{name}_high"] > 1)).any()  # NaN: no spread, no interval
    assert (table["total_pulls_low"] >= 0).all()
    how = {"instance": SETTING["instance"], "threshold": 0.5, "budget": 12, "delta": None}
    few = agents.evaluate(["uniform"], "Threshold", episodes=30, rows="none", env_kwargs=how)
    run = few.runs[0]
    mean, spread = run.sums.mean, run.sums.spread  # type: ignore[attr-defined]
    assert spread.max() > 0
    beyond = []
    for metric in ("score", "precision", "recall", "f1"):
        m = run._number(metric)  # type: ignore[attr-defined]
        _, low, high = run.estimate(metric)
        assert low[0] >= 0
        assert high[0] <= 1
        beyond.append(mean[0, m] + 1.96 * (spread[0, m] / 29 / 30) ** 0.5)
    assert max(beyond) > 1  # so that the limits had something to do


def test_pulls_that_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match=r"pulls of one episode must sum to 4611686018427387904 at most, got 9.2"):
        Threshold(0.5).evidence([2**62, 2**62], [0.4, 0.6])
    task = agents.evaluate(["uniform"], "Threshold", episodes=1, env_kwargs={"budget": 20}).runs[0].task
    K = 2**10
    agent = agents.make("lsa", task.replace(K=K, budget=None, max_pulls=None, actions="full"))
    one = seen([2**53] * K, [0.0] * K)
    for observation in (one, {name: value[None] for name, value in one.items()}):
        with pytest.raises(ValueError, match=r"the pulls of an episode must sum to 2\^62 at most, got 9.2"):
            agent.predict(observation)
