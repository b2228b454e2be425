"""What a session promises, by numbers: intervals, certificates, the budget, delta of arms that come and go, undoing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import agents
from agents.core import Agent
from agents.session.promise import share_of
from bandit_envs import Task

pytest.importorskip("sqlalchemy")

FACTS = {"problem": "Threshold", "threshold": 0.5, "arms": ["a", "b", "c"], "range": (0, 1), "budget": 12}


def session_of(agent: Any = "uniform", store: Any = ":memory:", **facts: Any) -> Any:
    return agents.Session(agent, {name: x for name, x in (FACTS | facts).items() if x is not None}, store=store)


# --- intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [{"sigma": 1.5, "range": None}, {"sigma": 2.0, "range": (-9.0, 9.0)}])
def test_an_interval_ends_where_the_mixture_reaches_its_level(noise: dict[str, Any]) -> None:
    """By hand, at a third of .05, the part of one arm of three: a sum over five normal distributions.

    A sigma that few results do not bear out yet does not count beside a range: half of that does, at half the level,
    and bets at the other half.
    """
    session = session_of(budget=None, **noise)
    session.tell_all([("a", value) for value in (0, 1, 1, 0, 1, 1, 1.0)])
    sigma, table = {1.5: 1.5, 2.0: 9.0}[session.task.sigma], session.arms()
    for end in (table["low"][0], table["high"][0]):
        y2 = 49 * (end - 5 / 7) ** 2 / sigma**2
        terms = zip((3, 30, 300, 3000, 30000), (0.25, 0.4, 0.2, 0.1, 0.05), strict=True)
        total = sum(share * math.sqrt(rho / (7 + rho)) * math.exp(0.5 * y2 / (7 + rho)) for rho, share in terms)
        assert total <= 120 and abs(end) < 9 if sigma == 9 else total == pytest.approx(60, rel=1e-6)
    assert table["low"].isna().tolist() == [False, True, True]
    assert session.unsure()[0] == pytest.approx((5 / 7 - 0.5) * math.sqrt(7) / np.std([0, 1, 1, 0, 1, 1, 1], ddof=1))


def test_intervals_of_binary_arms_cover() -> None:
    """Exactly, by the binomial distribution, at all rates: of 7 samples, .95 at least."""
    session = session_of(budget=None, range=None, binary=True)
    ends, n = [], 7
    for hits in range(n + 1):
        session.tell_all([("a", float(i < hits)) for i in range(n)])
        row = session.arms().loc[0]
        ends.append((row["low"], row["high"]))
        for _ in range(n):
            session.undo()
    rates = np.linspace(0.0, 1.0, 401)
    covered = sum(
        stats.binom.pmf(hits, n, rates) * ((rates >= low) & (rates <= high)) for hits, (low, high) in enumerate(ends)
    )
    assert covered.min() >= 0.95


# --- the certificate --------------------------------------------------------------------------------------------------


class Contrary(Agent):
    """It answers the arms that the plug-in answer leaves out."""

    name, solves = "contrary", ("Threshold",)

    def choose(self, observation: Any, state: Any) -> Any:
        return np.zeros(len(observation["pulls"]), np.int64)

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        return ~super().recommend(observation, state, slots)


@pytest.mark.parametrize("budget", [None, 90])
def test_the_certificate_is_of_the_answer_that_is_given(budget: int | None) -> None:
    """As of now, and of the final answer."""
    results = [(arm, value) for _ in range(30) for arm, value in (("a", 1), ("b", 0), ("c", 1))]
    sure, wrong = session_of(budget=budget), session_of(Contrary, budget=budget)
    for session in (sure, wrong):
        session.tell_all(results)
        assert session.done == (budget is not None)
    assert sure.answer().tolist() == [True, False, True]
    assert wrong.answer().tolist() == [False, True, False]
    assert sure.certificate > 0.999
    assert wrong.certificate == 0.0


STILL = {"variance": np.zeros(3), "moments": np.zeros((3, 2)), "distribution": "bounded"}  # results do not vary


def test_the_certificate_of_a_final_answer_is_not_that_of_later_results() -> None:
    session = session_of(budget=12)
    session.tell_all([(arm, value) for _ in range(4) for arm, value in (("a", 1), ("b", 0), ("c", 1))])
    assert session.done
    level = session.task.make_problem().certified_level([4] * 3, [1.0, 0.0, 1.0], **STILL)
    assert session.certificate == pytest.approx(1 - level)
    session.tell_all([(arm, value) for _ in range(60) for arm, value in (("a", 0), ("b", 1), ("c", 0))])
    assert session.answer().tolist() == [True, False, True]
    assert session.certificate == pytest.approx(1 - level)  # the other answer would be sure by now


# --- delta of arms that come and go -----------------------------------------------------------------------------------


def test_shares_by_hand() -> None:
    """Two arms, then a third and a fourth: 1/2 each, then 1/2 and 1/6 of delta once more, or of what was kept."""
    task = Task("Threshold", {"threshold": 0.5}, K=2, sigma=1.0)
    for reserve, kept in ((0.0, 1.0), (0.2, 0.2)):
        now = np.arange(3)
        least = min((1 - reserve) / 2, kept / 2)
        assert share_of(task, 2, now, True, 3, reserve).ratio == pytest.approx(min(3 * least, 1))
        now = np.arange(4)
        least = min((1 - reserve) / 2, kept / 6)
        assert share_of(task, 2, now, True, 4, reserve).ratio == pytest.approx(min(4 * least, 1))
        assert share_of(task, 2, now[2:], True, 4, reserve).ratio == pytest.approx(2 * kept / 6)
    pairs = Task("TopK", {"k": 1}, K=3, sigma=1.0)
    assert share_of(pairs, 3, np.arange(3), False, 3, 0.2).ratio == pytest.approx(0.8)
    # Half of what was kept for the 3 first pairs, the other half for 3 pairs of the first arm added, of which half.
    assert share_of(pairs, 3, np.arange(2), True, 3, 0.2).ratio == pytest.approx(1 * 0.2 / 6)
    assert share_of(pairs, 3, np.arange(4), True, 4, 0.2).ratio == pytest.approx(3 * 0.2 * 0.5 * 0.5 / 3)
    # Of 10 first arms none is left: the first two added ones have 10 and 11 pairs, and halves of 1/2 and 1/6.
    assert share_of(pairs, 10, np.array([10, 11]), True, 12, 0.0).ratio == pytest.approx(0.5 / 6 / 11)
    assert share_of(pairs, 10, np.array([9, 10]), True, 11, 0.0).ratio == pytest.approx(1 / 90)


@pytest.mark.parametrize("reserve", [0.0, 0.25])
def test_the_certificate_of_a_session_pays_for_its_share(reserve: float) -> None:
    facts = {"arms": ["a", "b"], "budget": None, "delta": 0.002, "reserve": reserve or None}
    session = session_of("uniform(stop='certificate')", **facts)
    session.tell_all([(arm, value) for _ in range(8) for arm, value in (("a", 1), ("b", 0))])
    session.add_arm("c")
    session.tell_all([("c", 1)] * 8)
    level = session.task.make_problem().certified_level([8] * 3, [1.0, 0.0, 1.0], **STILL)
    ratio = min(3 * min((1 - reserve) / 2, (reserve or 1.0) / 2), 1)
    wanted = 1 - level / ratio - (0.002 if reserve == 0 else 0.0)
    assert 0.5 < wanted < 0.998
    assert session.certificate == pytest.approx(wanted, rel=1e-9)


# --- the budget, questions, undoing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["uniform", "lsa", "sar"])
def test_the_budget_counts_the_pulls_of_withdrawn_arms(name: str) -> None:
    """The agent on the other arms is given what is left, and the session ends after its budget."""
    session = session_of(name, budget=20)
    session.tell_all([("a", 1)] * 8 + [("b", 0)] * 3)
    session.withdraw_arm("a")
    assert session.remaining == 9
    assert session.agent.task.budget == 12  # of b and c, of which 3 are spent
    session.tell_all([("b", 0), ("c", 1)] * 4)
    assert not session.done
    session.tell("c", 1)
    assert session.done
    assert session.ask() == []


def test_a_result_answers_the_question_of_who_reports_it() -> None:
    session = session_of(arms=["a", "b"], budget=None, store=":memory:")
    asked = [(who, session.ask(2, who=who)) for who in ("ann", "bob", None, "cid")]
    assert all(sorted(arms) == [0, 1] for _, arms in asked)
    session.tell("a", 1, who="bob")
    assert [ask.who for ask in session.pending if ask.arm == 0] == ["ann", None, "cid"]
    with pytest.raises(ValueError, match="3 questions about the arm 'a' are open"):
        session.tell("a", 1, who="eve")  # who has asked nothing
    session.tell("a", 1)
    assert [ask.who for ask in session.pending if ask.arm == 0] == ["ann", "cid"]
    session.tell_all([("b", 1), ("b", 1)], who="cid")  # its own, and then the oldest
    assert [ask.who for ask in session.pending if ask.arm == 1] == ["bob", None]
