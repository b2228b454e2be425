"""Sessions about a control with blocks: days and plates, whose effects drop out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import agents
from bandit_envs.stopping import Stratified

DAYS: dict[str, Any] = {
    "problem": "BetterThanControl",
    "arms": ["A", "B"],
    "control": "A",
    "blocks": "day",
    "delta": 0.05,
}
COUNTS = [
    ("A", "mon", 990_000, 20_000),
    ("B", "mon", 10_000, 230),
    ("A", "tue", 500_000, 5_000),
    ("B", "tue", 500_000, 6_000),
]
LAB: dict[str, Any] = {
    "problem": "BetterThanControl",
    "arms": ["DMSO", *(f"C{i}" for i in range(6))],
    "control": "DMSO",
    "margin": 20.0,
    "tolerance": 4.0,
    "sigma": "common",
    "blocks": "plate",
    "plate": 8,
    "controls": {"DMSO": 2},
    "delta": 0.05,
}
EFFECTS = np.array([0.0, 2.0, 45.0, 4.0, 50.0, -3.0, 60.0])


def days(rows: Any = COUNTS, **facts: Any) -> agents.Session:
    """A session of counts by days."""
    session = agents.Session("evidence", DAYS | {"binary": True} | facts, store=":memory:", public_seed=1)
    for arm, day, n, x in rows:
        session.tell(arm, n=n, successes=x, item=day)
    return session


def plate(
    session: agents.Session, g: np.random.Generator, spread: Any = 6.0, off: float = 0.0, unit: float = 1.0
) -> int:
    """Measure a plate, which has an effect of its own."""
    asked, effect = session.ask(8), 50.0 * g.normal()
    sd = np.broadcast_to(spread, len(EFFECTS))
    session.tell_all([(one, unit * (EFFECTS[one] + effect + sd[one] * g.normal()) + off) for one in asked])
    return len(asked)


def test_a_day_counts_once_the_next_has_begun() -> None:
    with days() as session:
        run: Any = session._state.run
        first = Stratified.odds([[990_000, 10_000]], [[20_000, 230]], 0)
        np.testing.assert_allclose(run.found.evidence, first.evidence)
        assert session.claims()["claim"].tolist() == ["open", "open"]
        session.tell("A", n=1, successes=0, item="wed")
        assert session.claims()["claim"].tolist() == ["open", "in"]
        assert "on at least one day" in session.claims()["event"][1]
        assert session.done
        assert session.certificate > 0.95
        both = Stratified.odds([[990_000, 10_000], [500_000] * 2], [[20_000, 230], [5_000, 6_000]], 0)
        np.testing.assert_allclose(run.evidence[1], both.evidence[:, 1].max(axis=0))


def test_equal_rates_on_days_of_unlike_traffic_stay_open() -> None:
    rows = [("A", "1", 20_000, 400), ("B", "1", 2_000, 40), ("A", "2", 20_000, 800), ("B", "2", 40_000, 1_600)]
    with days([*rows, ("A", "3", 5, 0)]) as session:
        assert session.claims()["claim"].tolist() == ["open", "open"]


def test_what_comes_late_is_refused_and_nothing_is_recorded() -> None:
    with days() as session:
        with pytest.raises(ValueError, match="the day 'mon' is closed, as 'tue' has begun"):
            session.tell("B", n=10, successes=3, item="mon")
        assert len(session) == 2_000_000


def test_the_order_of_arms_and_of_rows_within_a_day_does_not_matter() -> None:
    end = ("A", "wed", 1, 0)
    with days([*COUNTS, end]) as one, days([*COUNTS[1::-1], *COUNTS[:1:-1], end], arms=["B", "A"]) as other:
        np.testing.assert_allclose(one._state.run.evidence[1], other._state.run.evidence[0])


def test_a_table_has_its_days_and_reads_back() -> None:
    table = pd.DataFrame([*COUNTS, ("A", "wed", 1, 0)], columns=["variant", "day", "n", "successes"])
    with days([]) as session, days([]) as twin:
        session.tell_table(table)
        assert session.claims()["claim"].tolist() == ["open", "in"]
        history = session.history()
        assert history["item"].tolist() == table["day"].tolist()
        twin.tell_table(history)
        np.testing.assert_allclose(session._state.run.evidence, twin._state.run.evidence)


def test_plates_drop_out_and_each_open_compound_is_asked_for() -> None:
    with agents.Session("evidence", LAB, store=":memory:", public_seed=3) as session:
        g, seen = np.random.default_rng(4), list[int]()
        while not session.done and len(seen) < 60:
            open_arms = set(np.flatnonzero(session._state.run.open).tolist())
            asked = {int(one) for one in session._state.wanted(8)}
            assert asked <= open_arms | {0}
            seen.append(plate(session, g))
        claims = dict(zip(session.claims()["name"], session.claims()["claim"], strict=True))
        assert [claims[f"C{i}"] for i in range(6)] == ["out", "in", "out", "in", "out", "in"]
        assert session.doubts == []
        assert session.arms()["low"].isna().all()


@pytest.mark.parametrize(("unit", "off"), [(1000.0, 0.0), (1e-3, 5.0), (1.0, 1e6)])
def test_units_and_places_change_no_claim(unit: float, off: float) -> None:
    found = []
    for scale, place in ((1.0, 0.0), (unit, off)):
        facts = LAB | {"margin": 20.0 * scale, "tolerance": 4.0 * scale}
        with agents.Session("uniform", facts, store=":memory:", public_seed=3) as session:
            g = np.random.default_rng(4)
            for _ in range(8):
                plate(session, g, unit=scale, off=place)
            found.append(session._state.run.evidence[1:])
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)


def test_a_well_that_waits_holds_up_its_plate_and_later_ones() -> None:
    with agents.Session("evidence", LAB, store=":memory:", public_seed=3) as session:
        g, run = np.random.default_rng(4), session._state.run
        plate(session, g)
        asked = session.ask(8)
        session.tell_all([(one, EFFECTS[one] + g.normal()) for one in asked[:-1]])
        plate(session, g)
        assert run.strata.closed == ["plate 1"]
        session.undo(asked[-1].number)
        assert session._state.run.strata.closed == ["plate 1", "plate 2", "plate 3"]


def test_unlike_spreads_withdraw_claims_aloud() -> None:
    with agents.Session("evidence", LAB, store=":memory:", public_seed=3) as session:
        g = np.random.default_rng(4)
        for _ in range(12):
            plate(session, g, np.array([1.0, 20.0, 1.0, 20.0, 1.0, 20.0, 1.0]))
        assert "spreads differ" in session.doubts[0]
        assert set(session.claims()["claim"]) == {"open"}
        assert session.certificate == 0.0


def test_a_sigma_that_results_refute_claims_nothing() -> None:
    with agents.Session("evidence", LAB | {"sigma": 1.0, "delta": 1e-90}, store=":memory:", public_seed=3) as session:
        g = np.random.default_rng(4)
        for _ in range(4):
            plate(session, g)
        assert "sigma=1 is refuted" in session.doubts[0]
        assert set(session.claims()["claim"]) == {"open"}


def test_a_forecast_plays_plates() -> None:
    how: dict[str, Any] = {"prior": {"mean": 20.0, "spread": 30.0, "noise": 6.0}, "episodes": 20, "advise": False}
    found = agents.rehearse(LAB, "evidence", **how)
    outcome = found.outcomes["evidence"]
    assert found.batch == 8
    assert outcome.ended.all()
    assert (outcome.pulls % 8 == 0).all()
    assert outcome.correct.mean() >= 0.8  # 5 % err at most: 5 of 20 with probability 3e-3
    with pytest.raises(ValueError, match="needs batch="):
        agents.rehearse(DAYS | {"binary": True}, "evidence", advise=False)


@pytest.mark.parametrize(
    ("facts", "match"),
    [
        ({"blocks": "rater"}, "'day' or 'plate', got 'rater'"),
        ({"lift": 0.1}, "no lift=0.1"),
        ({"margin": 0.01}, "no margin=0.01"),
        ({"tolerance": 0.01}, "no tolerance=0.01"),
        ({"binary": None, "range": (0, 1)}, "binary or with sigma"),
        ({"binary": None, "sigma": "common", "blocks": None}, "sigma='common' is of a control and blocks"),
        ({"raters": ["x"]}, "do not go with blocks"),
    ],
)
def test_what_has_no_statistic_is_refused_by_name(facts: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        agents.Session("evidence", DAYS | {"binary": True} | facts, store=":memory:")


def test_other_agents_are_refused() -> None:
    with pytest.raises(ValueError, match="evidence and uniform, got 'lsa'"):
        agents.Session("lsa", DAYS | {"binary": True}, store=":memory:")


def test_need_is_that_of_all_arms_together() -> None:
    with days([]) as session:
        assert session._state.run.need == pytest.approx(math.log(1 / 0.05))
    with agents.Session("evidence", LAB, store=":memory:") as session:
        assert session._state.run.need == pytest.approx(math.log(6 / 0.05))


@pytest.mark.parametrize(
    ("facts", "claimed"),
    [
        ({"problem": "Threshold", "threshold": 0.0}, ["in", "out", "open"]),
        ({"problem": "BetterThanControl", "control": "b"}, ["in", "open", "open"]),
        ({"problem": "TopK", "k": 2}, ["open", "open", "open"]),  # b may be the second
    ],
)
def test_an_arm_with_few_results_holds_up_its_own_claims_alone(facts: dict[str, Any], claimed: list[str]) -> None:
    """A claimed sigma counts from 8 results of an arm on; c is as sure as the others, but for that."""
    places, g = {"a": 5.0, "b": -5.0, "c": 20.0}, np.random.default_rng(1)
    facts = facts | {"arms": ["a", "b", "c"], "sigma": 1.0, "delta": 0.05}
    with agents.Session("uniform", facts, store=":memory:") as session:
        session.tell_all([(arm, places[arm] + g.normal()) for arm in "ab" for _ in range(20)])
        session.tell_all([("c", places["c"] + g.normal()) for _ in range(7)])
        assert session.claims()["claim"].tolist() == claimed
        if session.compares:
            assert session.comparison()["better"].tolist() == [True, False, False]
        assert session.certificate == 0.0
        session.tell("c", places["c"])
        assert {claim for arm, claim in zip("abc", session.claims()["claim"], strict=True) if arm != "b"} == {"in"}


def test_a_plate_counts_as_a_whole_in_whatever_order_results_come() -> None:
    found = []
    for order in (slice(None), slice(None, None, -1)):
        with agents.Session("uniform", LAB | {"sigma": 6.0}, store=":memory:", public_seed=3) as session:
            g, asked = np.random.default_rng(4), session.ask(8) + session.ask(8) + session.ask(4)
            rows = [(one, EFFECTS[one] + 6.0 * g.normal()) for one in asked]
            session.tell_all(rows[1:][order])
            assert session._state.run.strata.closed == []  # they wait for the first
            session.tell_all(rows[:1])
            run: Any = session._state.run
            np.testing.assert_allclose(run.found.evidence, run.stratified().evidence)
            found.append(run.evidence[1:])
    np.testing.assert_allclose(*found)


def test_what_closes_a_plate_is_taken_in_at_once_and_no_closed_one_grows() -> None:
    with agents.Session("uniform", LAB | {"sigma": 6.0}, store=":memory:", public_seed=3) as session:
        asked = session.ask(5)
        with pytest.raises(ValueError, match="'own' would close 'plate 1': ask for its other wells first"):
            session.tell("C1", 5.0, item="own")
        session.tell_all([(one, EFFECTS[one]) for one in asked])
        assert session._state.run.found is None
    day = "2999-12-31"  # a later one than today
    with days([], binary=False, sigma=1.0) as session:
        session.tell_all([(one, 9.0 * int(one)) for one in session.ask(40)])
        session.tell("A", 1.0, item=day)
        assert session.claims()["claim"].tolist() == ["open", "in"]
        session.undo()
    with days([], binary=False, sigma=1.0) as session:
        session.tell_all([("A", 0.0, day)] * 30 + [("B", 9.0, day)] * 30)
        session.ask(2)
        assert session.claims()["claim"].tolist() == ["open", "in"]
        assert session.comparison()["better_once"].tolist() == [False, True]
        session.tell("A", 1.0, item="later")
        with pytest.raises(ValueError, match="is closed, as .* has begun"):
            session.tell("A", 0.0, item=day)


def test_no_question_is_asked_on_a_day_that_is_closed() -> None:
    with days([], binary=False, sigma=1.0) as session:
        asked = session.ask(4)
        session.tell_all([(one, 1.0) for one in asked])
        session.tell("A", 1.0, item="2999-12-31")
        before = session.version
        with pytest.raises(ValueError, match="is closed, as '2999-12-31' has begun"):
            session.ask(2)
        assert session.version == before


def test_a_day_is_one_in_all_forms_and_times() -> None:
    with days([]) as session:
        for day in (pd.Timestamp("2026-11-01 23:00"), "2026-11-1", "01.11.2026", "2026-11-01T05:00+02:00"):
            session.tell("A", n=9, successes=3, item=day)
        table = pd.DataFrame({"name": ["A"], "day": ["2026/11/01"], "n": [9], "successes": [1]})
        session.tell_table(table, again=True)
        assert {*session.history()["item"]} == {"2026-11-01"}


def test_infinite_odds_are_planned_without_a_warning() -> None:
    with days([("A", "1", 20, 0), ("B", "1", 20, 2), ("A", "2", 9, 0)]) as session:
        assert len(session.ask(4)) == 4
        session.forecast(episodes=2, batch=100)


def test_a_result_on_a_plate_of_the_design_names_its_question_or_plate() -> None:
    with agents.Session("uniform", LAB, store=":memory:", public_seed=3) as session:
        first = session.ask(8)
        with pytest.raises(ValueError, match="is not of the plate 'plate 2'"):
            session.tell(first[0], 5.0, item="plate 2")
        session.tell_all([(one, 5.0 + int(one), "1") for one in first])
        version = session.version
        for what in (first[0], "C1"):
            with pytest.raises(ValueError, match="on which plate is the arm"):
                session.tell(what, 5.0)
        with pytest.raises(ValueError, match="'plate 1' is closed, as it is full or over"):
            session.tell("C1", 5.0, item="1")
        with pytest.raises(ValueError, match="that of comparison"):
            session.claims("fdr")
        assert session.version == version


def test_of_a_common_spread_a_guess_says_the_noise() -> None:
    with pytest.raises(ValueError, match="give a prior with its noise"):
        agents.rehearse(LAB, "evidence", prior={"low": 0, "high": 60}, episodes=2)
    with (
        agents.Session("evidence", LAB, store=":memory:") as session,
        pytest.raises(ValueError, match="no mean is known yet"),
    ):
        session.plot()


def test_arms_come_and_go_but_for_a_common_spread_which_all_show() -> None:
    with agents.Session("evidence", LAB, store=":memory:") as session:
        for change in (lambda: session.add_arm("new"), lambda: session.withdraw_arm("C1")):
            with pytest.raises(ValueError, match="with sigma='common', which all arms show together"):
                change()
        assert session.version == 0
    with days([*COUNTS, ("A", "wed", 1, 0)], arms=["A", "B", "C"]) as session:
        session.add_arm("D")
        session.withdraw_arm("C")
        assert session.claims()["claim"].tolist() == ["open", "in", "open", "open"]
        assert session.comparison()["name"].tolist() == ["A", "B", "D"]


def test_a_plate_that_lacks_questions_is_not_said_to_be_over() -> None:
    with agents.Session("uniform", LAB, store=":memory:", public_seed=3) as session:
        session.tell_all([(one, 5.0) for one in session.ask(3)])
        with pytest.raises(ValueError, match="'plate 1' is not over: ask for its other wells first"):
            session.note("plate 1 is over")
        assert session._state.run.strata.closed == []


def test_a_question_asked_again_is_refused_by_name_with_its_plate() -> None:
    with agents.Session("uniform", LAB, store=":memory:", public_seed=3) as session:
        first = session.ask(8, who="ann")[0]
        session.ask(8, who="bob", take_over=1e-9)
        with pytest.raises(ValueError, match="was asked again"):
            session.tell(first, 1.0, who="ann", item="1")


def test_a_table_that_has_grown_is_read_again_and_known_days_are_left_out() -> None:
    head = ["variant", "day", "n", "successes"]
    more = [("A", "wed", 900, 20), ("B", "wed", 900, 30)]
    with days([]) as session:
        assert session.tell_table(pd.DataFrame(COUNTS, columns=head)) == 2_000_000
        halves = [(*row[:2], row[2] // 2, row[3] // 2) for row in COUNTS for _ in range(2)]
        assert session.tell_table(pd.DataFrame(halves + more, columns=head)) == 1_800
        assert session.tell_table(pd.DataFrame([*COUNTS, *more], columns=head)) == 0
        before = session.version
        with pytest.raises(ValueError, match="day 'wed': 900 results of 'A' are known, and are 950 here"):
            session.tell_table(pd.DataFrame([("A", "wed", 950, 20)], columns=head))
        with pytest.raises(ValueError, match="day 'mon': 990000 results of 'A' are known, and are 5 here"):
            session.tell_table(pd.DataFrame([("A", "mon", 5, 0)], columns=head))
        assert session.version == before
        assert session.tell_table(pd.DataFrame([("A", "wed", 950, 20)], columns=head), again=True) == 950
