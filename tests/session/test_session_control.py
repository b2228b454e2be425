"""Sessions with a control: comparison, claims, error rates, arms that leave, and an A/B test in one call."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import agents
from bandit_envs import BetterThanControl
from bandit_envs.stopping import discoveries

FACTS: dict[str, Any] = {"problem": "BetterThanControl", "arms": ["a", "ctrl", "x", "y"], "control": "ctrl"}
FACTS |= {"binary": True, "delta": 0.1, "tolerance": 0.05}
RATES = np.array([0.5, 0.5, 0.8, 0.3])
AGENT = "uniform(stop='certificate')"


def session_of(agent: str = AGENT, store: Any = ":memory:", **facts: Any) -> agents.Session:
    return agents.Session(agent, FACTS | facts, store=store, public_seed=1)


def play(session: agents.Session, rounds: int, seed: int = 0, rates: Any = RATES) -> None:
    random = np.random.default_rng(seed)
    for _ in range(rounds):
        for arm in session.active:
            session.tell(arm, int(random.random() < rates[arm]))


def test_a_comparison_is_that_of_the_problem() -> None:
    with session_of("uniform") as session:
        play(session, 200)
        seen, found = session.arms(), session.comparison()
        wanted = BetterThanControl(1, tolerance=0.05).comparison(
            seen["pulls"], seen["mean"], level=0.1, distribution="bernoulli"
        )
        for name, column in wanted.items():
            np.testing.assert_allclose(found[name].astype(float), column.astype(float), rtol=1e-9)
        assert [found.attrs[x] for x in ("level", "rate", "control")] == [0.1, "familywise", "ctrl"]
        assert found["better"].tolist() == [False, False, True, False]
        fdr = session.claims(rate="fdr")
        evidence = BetterThanControl(1, tolerance=0.05).arm_evidence(
            seen["pulls"], seen["mean"], distribution="bernoulli"
        )
        strict = BetterThanControl(1).arm_evidence(seen["pulls"], seen["mean"], distribution="bernoulli")
        np.testing.assert_allclose(found["p"].drop(1), np.exp(-np.delete(strict[:, 0], 1)))
        assert (fdr["claim"] == "in").tolist() == discoveries(evidence[:, 0], 0.1, "fdr").tolist()
        with pytest.raises(ValueError, match="rate must be"):
            session.comparison("bonferroni")
    with (
        agents.Session("uniform", FACTS | {"problem": "Threshold", "control": None}, store=":memory:") as other,
        pytest.raises(ValueError, match="BetterThanControl, .*got Threshold"),
    ):
        other.comparison()


def test_claims_are_made_at_the_first_look_that_certifies_and_stay() -> None:
    """A twin looks at the same numbers of results."""
    with session_of("uniform") as session:
        random, n, s = np.random.default_rng(3), np.zeros(4, np.int64), np.zeros(4)
        problem, wanted, look = BetterThanControl(1, tolerance=0.05), dict[int, tuple[str, int]](), 0
        for number in range(1, 401):
            arm = int(random.integers(4))
            value = int(random.random() < RATES[arm])
            session.tell(arm, value)
            n[arm], s[arm] = n[arm] + 1, s[arm] + value
            if number >= look and n.min() > 0:
                evidence = problem.arm_evidence(n, s / n, distribution="bernoulli")
                for one in (0, 2, 3):
                    for side, word in enumerate(("in", "out")):
                        if one not in wanted and evidence[one, side] >= math.log(3 / 0.1):
                            wanted[one] = word, number
            look = number + max(1, number // 200) if number >= look else look
        claims = session.claims()
        found = {arm: (row["claim"], row["since"]) for arm, row in claims.iterrows() if row["claim"] != "open"}
        assert found == wanted
        assert len(found) >= 2


def test_arms_that_leave_move_the_control_and_keep_their_shares(tmp_path: Path) -> None:
    """Each other arm of the three has a third of delta, whichever leave."""
    with session_of(store=tmp_path / "s.db") as session:
        play(session, 40)
        session.withdraw_arm("a")
        found = session.comparison()
        assert found["name"].tolist() == ["ctrl", "x", "y"]
        assert found.attrs["level"] == 0.1
        assert found.attrs["rate_level"] == pytest.approx(0.1 * 2 / 3)
        assert found["difference"].isna().tolist() == [True, False, False]
        with pytest.raises(ValueError, match="the control, 'ctrl', cannot be withdrawn"):
            session.withdraw_arm("ctrl")
        play(session, 100, 1)
        answer, done = session.answer(), session.done
        assert done
        assert answer.tolist() == [False, False, True, False]
    with agents.Session(store=tmp_path / "s.db") as again:
        assert (again.answer() == answer).all()
        assert again.comparison()["name"].tolist() == ["ctrl", "x", "y"]


def test_a_lower_value_is_better() -> None:
    with session_of(minimize=True) as session, session_of() as turned:
        play(session, 60, rates=1 - RATES)
        random = np.random.default_rng(0)
        for _ in range(60):
            for arm in range(4):
                turned.tell(arm, 1 - int(random.random() < 1 - RATES[arm]))
        one, other = session.comparison(), turned.comparison()
        np.testing.assert_allclose(one["difference"], -other["difference"])
        np.testing.assert_allclose(one["low"], -other["high"])
        assert one["better"].tolist() == other["better"].tolist()
        assert one["lift"].isna().all()
    with pytest.raises(ValueError, match="minimize"):
        session_of(minimize=True, lift=0.1, tolerance=0.0)


@pytest.mark.parametrize("count", [20, 80])
def test_an_error_of_any_arm_is_no_more_likely_than_delta(count: int) -> None:
    """A/A: sessions of counts by day, claims at the end; false-alarm level 1e-6."""
    wrong = 0
    for seed in range(count):
        random = np.random.default_rng(seed)
        with session_of("uniform", tolerance=0.0) as session:
            for _ in range(12):
                for arm in range(4):
                    session.tell(arm, n=60, successes=int(random.binomial(60, 0.5)))
            claims = session.claims()["claim"].drop(1)
            wrong += bool((claims == "in").any())
    assert wrong <= stats.binom.isf(1e-6, count, 0.1)


# --- in one call ------------------------------------------------------------------------------------------------------


def test_an_ab_test_of_real_counts(data_folder: Path) -> None:
    """Cookie Cats: 90,189 players, two variants, 7 days; z = 3.16."""
    found = agents.ab_test(
        data_folder / "counts" / "cookie_cats.csv", "gate_40", n="visitors", successes="retention_7"
    ).iloc[0]
    p = found["mean"] * found["pulls"]
    assert (round(p), found["pulls"]) == (8502, 44700)
    assert found["p"] <= 0.06
    assert found["lift_low"] < found["lift"] < found["lift_high"] < 0.1


def test_an_ab_test_knows_no_order_and_no_days() -> None:
    rows = [("B", 900, 60), ("A", 1000, 40), ("C", 800, 33), ("A", 500, 20), ("B", 600, 44)]
    tables = [pd.DataFrame(one, columns=["variant", "n", "successes"]) for one in (rows, rows[::-1])]
    merged = tables[0].groupby("variant", sort=False).sum().reset_index()
    found = [agents.ab_test(one, "A", lift=0.02).set_index("name").sort_index() for one in (*tables, merged)]
    for other in found[1:]:
        pd.testing.assert_frame_equal(found[0], other, rtol=1e-9, atol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agents.ab_test(tables[0].assign(day="2026-11-01"), "A")


def test_an_ab_test_of_means_is_the_same_in_any_unit() -> None:
    rows = [("A", 800, 10.0, 4.0), ("B", 700, 11.5, 5.0), ("C", 900, 10.1, 4.5)]
    one = pd.DataFrame(rows, columns=["name", "n", "mean", "sd"])
    other = one.assign(mean=one["mean"] * 1000, sd=one["sd"] * 1000)
    a, b = agents.ab_test(one, "A", sigma=5.0), agents.ab_test(other, "A", sigma=5000.0)
    np.testing.assert_allclose(a["low"] * 1000, b["low"], rtol=1e-6)
    np.testing.assert_allclose(a["p"], b["p"], rtol=1e-6)
    assert not a.attrs["approximate"]
    unknown = agents.ab_test(one, "A")
    assert not unknown.attrs["approximate"]
    assert agents.ab_test(one.assign(n=400), "A").attrs["approximate"]
    np.testing.assert_allclose(unknown["low"], a["low"])  # B varies most
    assert unknown["better"].tolist() == [False, True, False]
    assert ((unknown["low"] < unknown["difference"]) | unknown["low"].isna()).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"control": "D"}, "control must be one of A, B"),
        ({"control": "A", "rate": "bh"}, "rate must be"),
        ({"control": "A", "lift": 0.1, "margin": 0.1}, "give margin or lift, not both"),
        ({"control": "A", "expected": [0.04, 0.03]}, "expected must be the control's mean and one beyond"),
        ({"control": "A", "delta": 1.5}, "delta"),
        ({"control": "A", "n": "visitors"}, "visitors"),
    ],
)
def test_bad_calls_of_ab_test(given: dict[str, Any], message: str) -> None:
    table = pd.DataFrame([("A", 100, 5), ("B", 100, 9)], columns=["name", "n", "successes"])
    with pytest.raises(ValueError, match=message):
        agents.ab_test(table, **given)


def test_the_command_line_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from agents.cli import main

    monkeypatch.setattr("agents.cli.session_words.forecast", lambda *_, **how: "")  # it takes longest of all
    path = tmp_path / "counts.csv"
    path.write_text("day,variant,n,successes\n1,A,8500,254\n1,B,8510,341\n1,C,8483,258\n", encoding="utf-8")
    assert main(["ab-test", str(path), "--control", "A", "--expected", "0.03", "0.037"]) == 0
    out = capsys.readouterr().out
    assert "B is better on at least one day, against A; B by odds +35.5 %" in out
    assert main(["ab-test", str(path), "--control", "A", "--expected", "0.03", "0.037", "--pooled"]) == 0
    assert "B is better, against A; B by +34.1 %" in capsys.readouterr().out
    assert main(["ab-test", str(path), "--control", "Z"]) == 2
    store = str(tmp_path / "s.db")
    words = ["--problem", "BetterThanControl", "--arms", "A", "B", "C", "--control", "A", "--binary", "--delta", "0.05"]
    assert main(["session", "new", store, *words]) == 0
    assert main(["session", "import", store, str(path)]) == 0
    capsys.readouterr()
    assert main(["session", "show", store]) == 0
    assert "against A, valid whenever you look" in capsys.readouterr().out
