"""Claims of single arms, and intervals that hold at any time: by hand, against twins, and how often they err."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import anytime
import numpy as np
import pytest
from scipy import stats

import agents
from agents.session.claims import of_best
from bandit_envs import BestArm

DELTA = 0.05
FACTS: dict[str, dict[str, Any]] = {
    "Threshold": {"threshold": 0.5, "range": (0, 1)},
    "Feasible": {"A": [[1, 1]], "b": [1.0], "dimensions": 2, "range": (0, 1)},
    "BestArm": {"binary": True},
    "TopK": {"k": 2, "criterion": "each", "epsilon": 0.1, "sigma": 0.5},
    "AllGood": {"epsilon": 0.1, "range": (0, 1)},
}
MEANS = np.array([0.9, 0.55, 0.3, 0.1])


def session_of(problem: str, agent: str = "uniform(stop='certificate')", **facts: Any) -> agents.Session:
    known = {"problem": problem, "arms": list("abcd"), "delta": DELTA} | FACTS[problem] | facts
    return agents.Session(agent, known, store=":memory:", public_seed=3)


def results_of(session: agents.Session, seed: int, count: int) -> list[tuple[int, Any]]:
    random, D = np.random.default_rng(seed), session.task.D
    arms = random.integers(0, 4, count)
    values = (random.random((count, D)) < MEANS[arms, None]).astype(float)
    return [(int(arm), float(x[0]) if D == 1 else x) for arm, x in zip(arms, values, strict=True)]


# --- what follows from pairs ------------------------------------------------------------------------------------------


def in_every_case(over: np.ndarray, k: int) -> tuple[list[bool], list[bool]]:
    """All sets B of k arms, and arms b of B, of which no pair is certified that would be wrong: what they share."""
    K, left = len(over), []
    for B in map(set, combinations(range(K), k)):
        for b in B:
            wrong = any(over[i, b] for i in set(range(K)) - B) or any(over[b, j] for j in B)
            left += [] if wrong else [B]
    return [bool(left) and all(i in B for B in left) for i in range(K)], [
        bool(left) and all(i not in B for B in left) for i in range(K)
    ]


def test_what_holds_whichever_arm_is_the_last_of_the_best() -> None:
    over = np.zeros((4, 4), bool)
    over[0, 1:] = over[1, 3] = True  # 0 is better than all others, and 1 than 3
    inside, outside = of_best(over, 2)
    assert (inside.tolist(), outside.tolist()) == ([True, False, False, False], [False, False, False, True])
    random = np.random.default_rng(1)
    for _ in range(300):
        K = int(random.integers(2, 6))
        k = int(random.integers(1, K))
        over = (random.random((K, K)) < random.random()) & ~np.eye(K, dtype=bool)
        assert tuple(x.tolist() for x in of_best(over, k)) == in_every_case(over, k)


def test_pairs_are_certified_as_a_problem_of_two_arms_certifies_them() -> None:
    problem, session = BestArm(), session_of("BestArm", "uniform")
    found = np.zeros(4, int)
    sums, counts = np.zeros(4), np.zeros(4, int)
    for n, (arm, value) in enumerate(results_of(session, 5, 300), 1):
        session.tell(arm, value)
        sums[arm], counts[arm] = sums[arm] + value, counts[arm] + 1
        if counts.min() == 0:
            continue
        for i in range(4):
            for j in range(4):
                pair, mean = [i, j], sums / counts
                if i != j and not found[j] and mean[i] > mean[j]:
                    level = problem.certified_level(counts[pair], mean[pair], distribution="bernoulli")
                    found[j] = n if level <= DELTA / 3 else 0
    table = session.claims()
    assert table.loc[table["claim"] == "out", "since"].tolist() == [int(n) for n in found if n]
    assert (found > 0).sum() >= 2


# --- sessions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [range(1), range(1, 3)], ids=["one", "more"])
@pytest.mark.parametrize("problem", list(FACTS))
def test_claims_are_a_function_of_the_results_and_agree_with_the_answer(problem: str, seeds: range) -> None:
    """Three sessions of each problem: looked at all the time or once at the end, and put together again by undo."""
    for seed in seeds:
        looks, once = session_of(problem), session_of(problem)
        results, before = results_of(looks, seed, 800), {}
        for n in range(0, 800, 40):
            for one in (looks, once):
                one.tell_all(results[n : n + 40])
            now = looks.claims().query("claim != 'open'").set_index("name")["claim"].to_dict()
            assert before.items() <= now.items()  # a claim stays
            before = now
        assert looks.claims().equals(once.claims())
        assert looks.arms().equals(once.arms())
        assert looks.arms()["claim"].tolist() == looks.claims()["claim"].tolist()
        assert set(before.values()) <= {"in", "out"}
        if looks.done and looks.task.parameters.get("epsilon", 0) == 0:
            assert looks.claims()["claim"].tolist() == ["in" if one else "out" for one in looks.answer()]
        if problem == "Threshold":
            arms = looks.arms()
            assert (arms.loc[arms["claim"] == "in", "low"] >= 0.5).all()
            assert (arms.loc[arms["claim"] == "out", "high"] <= 0.5).all()
        if not once.done:
            once.undo()
            once.tell(*results[-1])
            assert looks.claims().equals(once.claims())
    assert before


def test_a_clear_winner_is_certain_long_before_the_answer() -> None:
    session = session_of("Threshold")
    random = np.random.default_rng(2)
    while not session.done and len(session) < 800:
        session.tell_all([(arm, float(random.random() < MEANS[arm])) for arm in session.ask(20)])
    table = session.claims()
    assert table["claim"][0] == "in"
    assert table["since"][0] < len(session) / 4
    assert table["event"][0] == "its own results, at its share of delta"
    assert (table["level"] == DELTA).all()


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("need a delta", {"problem": "BestArm", "delta": None, "budget": 99}),
        ("criterion='each' does", {"problem": "TopK", "criterion": "aggregate"}),
        ("of a table", {"problem": "BestArm", "items": 50, "range": (0, 1), "binary": None}),
    ],
)
def test_claims_that_there_cannot_be_are_refused_by_name(said: str, facts: dict[str, Any]) -> None:
    facts = dict(facts)
    session = session_of(facts.pop("problem"), "paired-elimination" if "items" in facts else "uniform", **facts)
    with pytest.raises(ValueError, match=said):
        session.claims()
    assert session.arms()["claim"].tolist() == [""] * 4


@pytest.mark.filterwarnings("ignore")
def test_claims_of_a_sigma_that_is_refuted_are_taken_back() -> None:
    session, random = session_of("Threshold", "uniform", sigma=0.01, range=None), np.random.default_rng(1)
    session.tell_all([(n % 4, MEANS[n % 4] + 0.01 * random.normal()) for n in range(80)])
    assert (session.claims()["claim"] != "open").all()
    session.tell_all([(n % 4, random.normal()) for n in range(80)])
    assert (session.claims()["claim"] == "open").all()


def test_arms_that_come_and_go_have_claims_at_their_shares() -> None:
    session = session_of("Threshold", reserve=0.5, delta=0.1)
    session.tell_all([(0, 1.0)] * 12)
    before = session.claims()["since"][0]
    assert before <= 12
    session.add_arm("e")
    session.tell_all([("e", 1.0)] * 12)
    assert session.claims()["claim"].tolist() == ["in", "open", "open", "open", "in"]
    session.withdraw_arm("e")
    claim, event = session.claims().iloc[4][["claim", "event"]]
    assert claim == "open"
    assert event.startswith("withdrawn; in before, after ")


def test_intervals_say_whether_they_hold_together() -> None:
    session = session_of("BestArm", "uniform")
    session.tell_all(results_of(session, 1, 200))
    together, single = session.arms(), session.arms(single=True)
    assert (together.attrs, single.attrs) == (
        {"intervals": "simultaneous", "level": DELTA},
        {"intervals": "single", "level": DELTA},
    )
    assert (single["low"] > together["low"]).all()
    assert (single["high"] < together["high"]).all()
    assert ((together["low"] <= together["mean"]) & (together["mean"] <= together["high"])).all()
    with pytest.raises(ValueError, match="single must be True or False, got 'yes'"):
        session.arms(single="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("sessions", [4, 20])
@pytest.mark.parametrize("noise", [{"binary": True}, {"binary": None, "sigma": 1.0}])
def test_sessions_have_the_intervals_of_simulated_statistics(noise: dict[str, Any], sessions: int) -> None:
    for seed in range(sessions):
        session = session_of("BestArm", "uniform", **noise)
        results = results_of(session, seed, 60)
        session.tell_all(results)
        for arm, row in enumerate(session.arms().itertuples()):
            x = np.array([value for one, value in results if one == arm])
            assert (row.low, row.high) == pytest.approx(anytime.interval(x, DELTA / 4, "sigma" in noise), rel=1e-6)


# --- at the limit -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(anytime.HOSTILE))
def test_intervals_cover_at_all_times_at_once(name: str) -> None:
    """Of 60 sessions at delta = .05 more than the limit err once in a million times; intervals far too short do."""
    limit = stats.binom.isf(1e-6, 60, DELTA)
    assert anytime.misses(name, "chasing", 60, 600) <= limit
    assert anytime.misses(name, "chasing", 60, 600, level=7.0) > limit


@pytest.mark.parametrize(
    ("name", "weak"),
    [("Threshold, binary", 5.0), ("BestArm, binary", 6.5), ("TopK, one apart", 8.6), ("AllGood, all bad", 8.6)],
)
def test_claims_err_rarely_at_the_limit(name: str, weak: float) -> None:
    """Of 40 sessions at delta = .05 more err once in a million times; where so many nats less are needed they do."""
    limit = stats.binom.isf(1e-6, 40, DELTA)
    assert anytime.false_claims(name, "chasing", 40, 300) <= limit
    assert anytime.false_claims(name, "chasing", 40, 300, weak) > limit


def test_widths_that_the_theory_states() -> None:
    limits = {"marks 1 to 10, sd 2": 1.9}
    assert all(anytime.ratio(name, 200, 1, 8) <= limits.get(name, 1.75) for name in anytime.SAMPLES)
    assert all(anytime.ratio(name, 200, 12, 8) <= (1.55 if "1/8" in name else 1.45) for name in anytime.SAMPLES)


def test_a_sigma_in_doubt_leaves_intervals_that_adapt() -> None:
    """Ten results of each arm in a tenth of the range: before, while sigma was in doubt, all the range was left."""
    facts = {"problem": "Threshold", "threshold": 50.0, "arms": 3, "range": (-20, 130), "sigma": 10.0, "delta": 0.05}
    session = agents.Session("evidence", facts, store=":memory:")
    for n in range(10):
        session.tell_all([(arm, (30.0, 55.0, 80.0)[arm] + (-7.0, 7.0)[n % 2]) for arm in range(3)])
    found = session.arms()
    assert any("counts on sigma" in sentence for sentence in session.doubts)
    assert ((found["low"] < found["mean"]) & (found["mean"] < found["high"])).all()
    assert (found["high"] - found["low"]).max() < 90.0  # of 150
