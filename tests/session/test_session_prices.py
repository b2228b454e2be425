"""Prices in sessions: budgets in money, by hand; the store, import, changes of arms, rehearsals, the command line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents import rehearse
from agents.cli import main

FACTS: dict[str, Any] = {"problem": "BestArm", "arms": ["gpt", "small", "tiny"], "range": (0, 1)}


def test_a_budget_by_hand() -> None:
    session = agents.Session("uniform", FACTS | {"budget": 24, "cost": {"gpt": 20}}, store=":memory:")
    assert session.task.cost == (20.0, 1.0, 1.0)
    left = []
    while not session.done:
        (ask,) = session.ask()
        session.tell(ask, 0.5)
        left.append((session.names[ask.arm], session.money, session.remaining))
    # The arm in turn, gpt, cannot be paid with what is left.
    assert left == [("gpt", 20.0, 4), ("small", 21.0, 3), ("tiny", 22.0, 2)]
    assert "money 22" in session.progress


def test_questions_that_wait_are_paid() -> None:
    session = agents.Session("uniform", FACTS | {"budget": 41, "cost": {"gpt": 20}}, store=":memory:")
    asked = session.ask(20)
    assert [session.names[ask.arm] for ask in asked] == ["gpt", "small", "tiny"]  # then 19 is left, and gpt costs 20
    session.tell_all([(ask, 0.5) for ask in asked])
    assert session.done
    assert session.money == 22.0


def test_rows_are_paid_once() -> None:
    session = agents.Session("uniform", FACTS | {"items": 10, "budget": 2, "cost": "row"}, store=":memory:")
    count = 0
    while not session.done:
        (ask,) = session.ask()
        session.tell(ask, 0.5)
        count += 1
    assert count == 6
    assert session.money == 2.0


def test_a_store_keeps_prices_and_arms_come_and_go(tmp_path: Path) -> None:
    with agents.Session("uniform", FACTS | {"budget": 100, "cost": [20, 1, 3]}, store=tmp_path / "a.db") as session:
        for arm in ("gpt", "small", "tiny"):
            session.tell(arm, 0.5)
    with agents.Session(store=tmp_path / "a.db") as session:
        assert session.money == 24.0
        session.withdraw_arm("gpt")
        session.add_arm("new")
        session.tell("new", 0.5)
        assert (session.money, session.remaining) == (25.0, 75)
        while not session.done:
            session.tell(session.ask()[0], 0.5)
        assert 97 <= session.money <= 100


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"cost": {"gtp": 2}}, "'gtp'"),
        ({"cost": [1, 1]}, "list of 3 prices"),
        ({"cost": [1, 0, 1]}, r"cost\[1\]"),
        ({"cost": "row"}, "rows of a table"),
        ({"cost": [1, 1, 1], "blocks": "day"}, "blocks"),
    ],
)
def test_bad_prices_are_refused(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        agents.Session("uniform", FACTS | {"budget": 50} | facts, store=":memory:")


def test_rehearsals_tell_money() -> None:
    """With delta alone: the money is that of the pulls; of equal prices it is the price times their number."""
    facts = FACTS | {"delta": 0.1, "cost": [3, 3, 3]}
    found = rehearse(facts, "evidence", episodes=20, prior={"low": 0, "high": 1, "noise": 0.2}, advise=False)
    one = found.outcomes["evidence"]
    assert np.allclose(one.money, 3 * one.pulls, atol=0)
    assert found.table()["money_50"].item() == pytest.approx(3 * np.median(one.pulls))
    assert "which cost" in found.sentence()
    plain = rehearse(FACTS | {"budget": 30}, "uniform", episodes=5, prior={"low": 0, "high": 1})
    assert "money_50" not in plain.table()


def test_a_forecast_goes_on_from_what_is_paid() -> None:
    session = agents.Session("uniform", FACTS | {"budget": 50, "cost": {"gpt": 20}}, store=":memory:")
    for arm in ("gpt", "small", "tiny"):
        session.tell(arm, 0.5)
    found = session.forecast().outcomes["uniform"]
    assert (found.money == 22.0).all()  # a further round; then 6 is left, and gpt is in turn
    assert (found.pulls == 3).all()


def test_what_is_still_to_come_of_a_table() -> None:
    """Evidence is taken to grow at its rate: with level l, ln(delta) / ln(l) times the cells."""
    rng = np.random.default_rng(0)
    session = agents.Session("uniform", FACTS | {"items": 500, "delta": 0.05, "cost": "row"}, store=":memory:")
    scores = rng.random((500, 3)) < [0.9, 0.5, 0.4]
    level = 1.0
    while level == 1.0:
        ask = session.ask()[0]
        session.tell(ask, float(scores[int(ask.item), ask.arm]))
        level = 1 - (session.certificate or 0.0)
    times = math.log(0.05) / math.log(level)
    total = min(len(session) * times, 1500)
    assert session.progress.startswith(f"{len(session)} of about {total:,.0f} cells, money {session.money:g} of about ")


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "models.db")
    new = ["session", "new", file, "--problem", "BestArm", "--arms", "gpt", "small", "tiny", "--range", "0", "1"]
    assert not main([*new, "--budget", "50", "--cost", "gpt=20", "--cost", "tiny=3", "--agent", "uniform"])
    assert not main(["session", "tell", file, "gpt", "0.5"])
    assert "1 measurement, money 20, 30 left" in capsys.readouterr().out
    with agents.Session(store=file) as session:
        assert session.task.cost == (20.0, 1.0, 3.0)
    assert not main(["session", "plan", file, "--episodes", "5", "--seed", "1"])
    said = capsys.readouterr().out
    assert "hours money ended" in " ".join(said.split())
    evaluated = ["evaluate", "BestArm", "--agents", "uniform", "--episodes", "5", "--instance", "sampler(arms=3)"]
    assert not main([*evaluated, "--budget", "50", "--cost", "20", "--cost", "1", "--cost", "3"])
