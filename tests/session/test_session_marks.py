"""A store is opened without the decisions that leave no trace: it is as after all of them, bit for bit."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import agents
from agents.core.agent import Agent
from agents.session.fold import fold

pytest.importorskip("sqlalchemy")
from sessions import all_of

FACTS = {"problem": "BestArm", "arms": 5, "binary": True, "delta": 1e-6}
FEW = 12  # decisions of a store whose results came ten at a time, however many they are


def measure(session: Any, rounds: int, seed: int = 0) -> None:
    """Ask for ten at a time."""
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        session.tell_all([(one, float(generator.random() < 0.3 + 0.02 * one)) for one in session.ask(10)])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of 200 results."""
    with agents.Session("evidence", FACTS, store=tmp_path / "s.db", public_seed=3) as session:
        measure(session, 20)
    return tmp_path / "s.db"


def decisions(store: Path, least: int = 150, **how: Any) -> int:
    """How many decisions it takes to open a store, which is then as after all of them."""
    with (
        mock.patch.object(Agent, "predict", autospec=True, side_effect=Agent.predict) as predict,
        agents.Session(store=store, **how) as session,
    ):
        count = predict.call_count
        with session._log.reading() as connection:
            assert all_of(session._state) == all_of(fold(session._setup, session._log.events(connection)))
        assert predict.call_count > least
    return count


def altered(store: Path, *statements: str) -> None:
    with sqlite3.connect(store) as connection:
        for one in statements:
            connection.execute(one)
    connection.close()


def test_decisions_that_leave_no_trace_are_left_out(store: Path) -> None:
    assert decisions(store) < FEW


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET value = 1 - value WHERE number = (SELECT max(number) FROM event WHERE kind = 'told') - 60",
        "UPDATE event SET at = replace(at, '20', '19') WHERE number = 3",
        "UPDATE session SET facts = replace(facts, '1e-06', '1e-05')",
        "UPDATE mark SET since = since - 1",
        "UPDATE mark SET since = 'x'",
        "DELETE FROM mark",
        "DROP TABLE mark",
    ],
)
def test_what_was_edited_is_decided_again(statement: str, store: Path) -> None:
    altered(store, statement)
    assert decisions(store) > 150


def test_a_store_of_before_has_a_mark_with_its_next_event(store: Path) -> None:
    altered(store, "DROP TABLE mark")
    with agents.Session(store=store) as session:
        session.note("once more")
    assert decisions(store) < FEW


def test_another_agent_decides_again(store: Path) -> None:
    assert decisions(store, agent="top-two") > 150


def test_a_write_that_fails_leaves_the_mark(store: Path) -> None:
    with agents.Session(store=store) as session:
        with (
            mock.patch.object(type(session._log), "marked", side_effect=[KeyboardInterrupt, (0, 0)]),
            pytest.raises(KeyboardInterrupt),
        ):
            session.tell(session.names[0], 1)
        measure(session, 1)
    assert decisions(store) < FEW


def test_an_undone_result_costs_the_decisions_behind_it(store: Path) -> None:
    with agents.Session(store=store) as session:
        measure(session, 1)
        with mock.patch.object(Agent, "predict", autospec=True, side_effect=Agent.predict) as predict:
            session.undo()
        assert predict.call_count < FEW
        session.undo(35)
    assert decisions(store, 0) < FEW  # results behind it wait for another one


def test_arms_that_come_have_all_decisions_made(store: Path) -> None:
    with agents.Session(store=store) as session:
        session.add_arm()
        measure(session, 2)
    assert decisions(store) > 150
