"""What a session says is what was meant: arms by numbers, results without a question, statements that agree."""

from __future__ import annotations

import itertools
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import agents
from agents.session.page import state as shown
from agents.session.statements import by_intervals

pytest.importorskip("sqlalchemy")
DELTA = 0.05


def session_of(problem: str = "BestArm", agent: str = "uniform", **facts: Any) -> agents.Session:
    known = {"problem": problem, "arms": ["a", "b", "c"], "binary": True, "delta": DELTA} | facts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return agents.Session(agent, known, store=":memory:", public_seed=1)


# --- which arm is meant -----------------------------------------------------------------------------------------------


def test_a_number_is_a_name_where_names_are_numbers() -> None:
    one = session_of(arms=[1, 2, 3])
    for wrong in (1, 2, np.int64(1), 1.0):
        with refused("which arm", "name as text"):
            one.tell(wrong, 1)
    for strange in (0, "0", 4, "01"):
        with refused(repr(strange), "1, 2, 3"):
            one.tell(strange, 1)
    for right in ("1", "1.0", 3, one.ask()[0], one.ask()[0]):
        one.tell(right, 1)
    assert one.arms()["pulls"].tolist() == [3, 1, 1]
    tens = session_of(arms=[10, 20, 30])
    for right in (10, 20.0, np.int64(30), "30"):
        tens.tell(right, 0)
    with refused("there is no arm", 0):
        tens.tell(0, 0)
    assert tens.arms()["pulls"].tolist() == [1, 1, 2]
    assert session_of(arms=3).arm(2) == session_of().arm(2) == session_of(arms=[0, 1, 2]).arm(2) == 2
    with refused("which arm"):
        one.withdraw_arm(1)


@pytest.mark.parametrize("control", [2, "2", 2.0])
def test_facts_name_arms_by_numbers_too(control: Any) -> None:
    facts = {"problem": "BetterThanControl", "arms": [2, 4, 6], "control": control}
    assert session_of(**facts).task.parameters["control"] == 0 if control == "2" else True
    priced = session_of(arms=[2, 4, 6], cost={4: 20, "6": 3}, budget=90, delta=None)
    assert priced.task.cost == (1.0, 20.0, 3.0)
    hinted = session_of(arms=[2, 4, 6], items=9, hint={2: 0.3, "4": 0.4, 6: 0.5})
    assert hinted.task.hint == (0.3, 0.4, 0.5)
    with refused("7", "2, 4, 6"):
        session_of(arms=[2, 4, 6], cost={7: 20}, budget=90)
    with refused("twice"):
        session_of(arms=[2, 4, 6], cost={4: 20, "4": 3}, budget=90)
    with refused("control", 0, "2, 4, 6"):
        session_of(**facts | {"control": 0})


def test_a_result_that_names_no_question_is_refused_where_one_would_stay_open() -> None:
    one = session_of(arms=["a", "b"])
    asks = one.ask(4)
    with refused("2 questions", "1, 3", "--question"):
        one.tell("a", 1)
    with refused("row 2", "questions"):
        one.tell_all([("b", 1), ("a", 1), ("b", 0)])
    assert len(one) == 0
    one.tell_all([("b", 1), ("b", 0)])  # all that are open about it
    one.tell(asks[0], 1)
    one.tell("a", 1)  # the only one
    assert (len(one), one.pending) == (4, [])
    one.ask(3, who="ann")
    one.ask(1, who="bob")
    one.tell("b", 1, who="ann")
    with refused("questions"):
        one.tell("a", 1)  # ann's, of which there are two
    assert len(one) == 5
    free = agents.Session(
        "uniform", {"problem": "BestArm", "arms": 2, "range": (0, 1), "budget": 9}, store=":memory:", order="arrival"
    )
    free.ask(4)
    free.tell(0, 0.5)


def test_a_table_that_is_sorted_by_value_claims_nothing_by_its_order(tmp_path: Path) -> None:
    """All looks within a table would be at its zeros first: half of each arm's results are 1."""
    path, one = tmp_path / "sorted.csv", session_of("Threshold", threshold=0.45)
    path.write_text(
        "name,value\n" + "".join(f"{arm},{value}\n" for value in (0, 1) for arm in "abc" for _ in range(60))
    )
    one.tell_table(path)
    assert set(one.claims()["claim"]) == {"open"}
    again = session_of("Threshold", threshold=0.45)
    again.tell_all([(arm, value) for value in (0, 1) for arm in "abc" for _ in range(60)])
    assert set(again.claims()["claim"]) == {"out"}  # it can fail
    assert len(again.contradictions) == 0 or "out" in again.contradictions[0]


# --- levels, words ----------------------------------------------------------------------------------------------------


def test_levels_of_intervals_say_what_they_sum_to() -> None:
    for reserve, level in ((None, 2 * DELTA), (0.5, DELTA)):
        one = session_of(reserve=reserve)
        assert one.arms().attrs["level"] == DELTA
        one.add_arm("d")
        one.withdraw_arm("b")
        assert one.arms().attrs["level"] == level
        assert one.arms(single=True).attrs["level"] == DELTA


def test_the_deviation_is_that_of_a_sample() -> None:
    one = session_of(binary=None, sigma=1.0)
    one.tell_all([("a", 60.0), ("a", 61.0), ("b", 3.0)])
    assert one.arms()["sd"].tolist()[0] == pytest.approx(np.sqrt(0.5))
    assert np.isnan(one.arms()["sd"].tolist()[1])


def test_intervals_of_a_refuted_scale_are_infinite() -> None:
    one = session_of(binary=None, sigma=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.tell_all([(arm, float(n)) for n in range(20) for arm in "abc"])
    assert np.isinf(one.arms()[["low", "high"]]).all(axis=None)


def test_claims_against_a_control_need_what_the_boundary_needs() -> None:
    one = session_of("BetterThanControl", "uniform(stop='certificate', boundary='kaufmann-koolen')", control="a")
    one.tell("a", n=40, successes=11)
    one.tell("b", n=40, successes=25)  # 5.1 nats, where ln(2 / delta) is 3.7
    one.tell("c", n=40, successes=11)
    assert one.certificate == 0.0
    assert set(one.claims()["claim"]) == {"open"}
    with refused("kaufmann-koolen", "mixture"):
        one.claims(rate="fdr")


def test_a_claim_keeps_its_sentence_when_arms_come_or_go() -> None:
    one = session_of()
    one.tell_all([(arm, float(arm == "a")) for _ in range(40) for arm in "abc"])
    before = one.claims()
    assert before["claim"].tolist() == ["in", "out", "out"]
    one.add_arm("d")
    one.withdraw_arm("b")
    after = one.claims()
    assert after["claim"].tolist()[:2] == ["open", "open"]
    for row, words in ((0, "in before"), (1, "withdrawn; out before")):
        assert after["event"][row].startswith(f"{words}, after {before['since'][row]} results, among a, b, c: ")


@pytest.mark.parametrize(
    ("problem", "facts", "words"),
    [
        ("BetterThanControl", {"tolerance": 0.1, "control": "a"}, "within 0.1 of the boundary may be on either side"),
        ("TopK", {"k": 2, "epsilon": 0.1}, "worse by up to 0.1 may stand for others"),
        ("AllGood", {"epsilon": 0.1, "slack": 0.05}, "by up to 0.05 may be, too"),
        ("BestArm", {}, ""),
    ],
)
def test_what_counts_as_right_stands_beside_the_probability(problem: str, facts: Any, words: str) -> None:
    one = session_of(problem, **facts)
    assert shown(one)["leeway"].endswith(words)
    assert bool(shown(one)["leeway"]) == bool(words)


def test_what_is_left_of_a_budget_is_not_called_certainty() -> None:
    one = session_of("Threshold", "lsa", threshold=5, binary=None, range=(0, 10), budget=12)
    one.tell_all([("abc"[n % 3], 4.0 + n % 3) for n in range(8)])
    assert one.forecast(episodes=20).until().startswith("4 more measurements until the budget is spent")


# --- no two statements disagree ---------------------------------------------------------------------------------------


def test_results_that_turn_are_said_to_contradict_what_is_certain() -> None:
    one = session_of("BetterThanControl", arms=["A", "B"], control="A")
    for n in range(60):
        one.tell_all([("A", float(n % 5 == 0)), ("B", float(n % 5 > 0))])
    assert (one.doubts, one.comparison()["better"].tolist()) == ([], [False, True])
    for _ in range(20):
        one.tell("A", n=200, successes=100)
        one.tell("B", n=200, successes=20)
    (said,) = one.contradictions
    assert re.fullmatch(
        r"B: it is in for certain \(better than A, .*not better than the control.* 0\.9 at least.*", said
    )
    assert one.doubts[0] == shown(one)["doubts"][0] == one.comparison().attrs["doubts"][0] == said
    assert (one.comparison()["low"] <= one.comparison()["high"])[1]


KINDS: dict[str, dict[str, Any]] = {
    "BestArm": {},
    "TopK": {"k": 2, "epsilon": 0.05, "criterion": "each"},
    "AllGood": {"epsilon": 0.1, "slack": 0.05},
    "Threshold": {"threshold": 0.5, "tolerance": 0.02},
    "BetterThanControl": {"control": "a"},
}


@pytest.mark.parametrize("problem", KINDS)
def test_every_pair_of_statements_agrees_or_is_named_first(problem: str) -> None:
    """Random sessions with rates that change, arms that come and go, refuted sigmas, and results after the end."""
    turned = 0
    for seed in range(2):
        random = np.random.default_rng(seed)
        noise = {"binary": None, "sigma": 0.5} if seed else {"binary": True}
        one = session_of(
            problem, ("uniform", "uniform(stop='certificate')")[seed], **KINDS[problem], **noise, arms=list("abcd")
        )
        rates = random.permutation([0.1, 0.3, 0.4, 0.55, 0.7, 0.9])
        for step in range(12):
            rates = 1 - rates if step == 4 else rates
            for arm in one.active.tolist() * 2:
                n = int(random.integers(20, 60))
                ones = int(random.binomial(n, rates[arm]))
                what = {"mean": ones / n, "sd": float(random.choice([0.45, 0.5]))} if seed else {"successes": ones}
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    one.tell(one.names[arm], n=n, **what)
            if step in (1, 10) and not one.done:
                one.add_arm(f"late {step}")
            if step == 11 and not one.done:
                one.withdraw_arm("c")
            turned += _agree(one)
    assert turned  # some were contradicted


def _agree(one: agents.Session) -> bool:
    """Look at all pairs of statements of a session; whether some disagree, all of which are named."""
    named = {said.partition(":")[0] for said in one.contradictions}
    table, claims, names, answer = one.arms(), one.claims(), one.names, one.answer()
    assert table["claim"].tolist() == claims["claim"].tolist()
    assert table["answer"].tolist() == answer.tolist()
    said: dict[str, set[int]] = {name: set() for name in names}
    for name, claim in zip(names, claims["claim"], strict=True):
        said[name] |= {"in": {1}, "out": {-1}, "open": set[int]()}[claim]
    if one.compares:
        compared = one.comparison()
        assert compared.attrs["level"] == claims["level"][0]
        for row in compared.itertuples():
            sides = {1: bool(row.better), -1: bool(row.worse)}
            assert sides[1] == (1 in said[row.name]) or one.task.parameters["tolerance"] != 0
            said[row.name] |= {side for side, there in sides.items() if there}
    certain = (one.certificate or 0) >= 1 - claims["level"][0] - 1e-9
    for arm, side in zip(one.active.tolist(), one._look(by_intervals).tolist(), strict=True):
        said[names[arm]] |= {side} - {0}
    control = one.task.parameters.get("control")
    for arm in one.active.tolist():
        sides = said[names[arm]]
        here = {1 if answer[arm] else -1} if sides or certain else set[int]()
        both = (sides | here) if arm != control else sides
        assert (len(both) > 1) == (names[arm] in named), (names[arm], both, one.contradictions)
    low, high = (table[end].to_numpy() for end in ("low", "high"))
    assert all(np.isnan(a) or a <= b for a, b in itertools.zip_longest(low, high))
    return bool(named)


def test_the_page_of_many_arms_shows_the_strongest() -> None:
    one = session_of("TopK", k=20, arms=[f"arm {n}" for n in range(90)], binary=None, range=(0, 1))
    one.tell_all([(n, n / 100) for n in range(90) for _ in range(2)])
    names = [arm["name"] for arm in shown(one)["arms"]]
    assert len(names) == 60
    assert {f"arm {n}" for n in range(80, 90)} <= {*names}


def test_a_sigma_that_results_refute_after_the_end_is_said_first() -> None:
    random = np.random.default_rng(0)
    facts = {"problem": "BetterThanControl", "arms": ["A", "B"], "control": "A", "sigma": 0.05, "delta": 0.1}
    with agents.Session("evidence", facts, store=":memory:") as session:
        while not session.done:
            session.tell_all([(name, float(random.normal(arm, 0.05))) for arm, name in enumerate("AB")])
        assert not session.contradictions
        with pytest.warns(UserWarning, match="sigma=0.05 is refuted"):
            session.tell_all(
                [(name, float(random.normal(-arm, 3))) for _ in range(50) for arm, name in enumerate("AB")]
            )
        assert session.contradictions[0].startswith("sigma=0.05 is refuted, by which")
