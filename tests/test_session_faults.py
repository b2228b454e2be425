"""Sessions that meet damaged stores, lost files, arms that an agent cannot do with, and tables that were wrong."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agents
from bandit_envs import Task

pytest.importorskip("sqlalchemy")

FACTS = {"problem": "Threshold", "threshold": 0.5, "arms": ["a", "b", "c"], "range": (0, 1), "budget": 12}


def damaged(place: Path, *statements: str) -> Path:
    """The store of a session with a result, after some SQL."""
    with agents.Session("uniform", FACTS, store=place) as session:
        session.tell("a", 1)
    with contextlib.closing(sqlite3.connect(place)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return place


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("update event set arm = 7", "its event 1 .'told'. tells of the arm 7, and there are 3"),
        ("update event set arm = NULL", "tells of the arm None"),
        ("update event set value = NULL", "has the value None"),
        ("update event set value = 'x'", "is damaged: an event cannot be read|has the value 'x'"),
        ("update event set value = 9e999", "has the value inf"),
        ("update event set vector = '[1'", "an event cannot be read"),
        ("update event set vector = '[1, 2]'", "has the value .1, 2."),
        ("update event set kind = 'foo'", "'foo'. is none that this version knows"),
        ("update event set kind = 'arm added'", "adds no new arm"),
        ("update event set at = 'x'", "an event cannot be read"),
        ("alter table event drop column who", "cannot be read or written: no such column"),
    ],
)
def test_damaged_events_are_named(statement: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        agents.Session(store=damaged(tmp_path / "a.db", statement))


@pytest.mark.parametrize("name", ["agent", "parameters", "task", "names", "public_seed"])
@pytest.mark.parametrize("value", ["missing", 1.5])
def test_damaged_facts_are_named(name: str, value: Any, tmp_path: Path) -> None:
    place = damaged(tmp_path / "a.db")
    with contextlib.closing(sqlite3.connect(place)) as connection:
        (text,) = connection.execute("select facts from session").fetchone()
        facts = json.loads(text)
        if value == "missing":
            del facts[name]
        else:
            facts[name] = value
        connection.execute("update session set facts = ?", (json.dumps(facts),))
        connection.commit()
    with pytest.raises(ValueError, match=f"damaged: the fact '{name}'|holds no session"):
        agents.Session(store=place)


def test_a_task_in_json_lacks_nothing_and_has_nothing_more() -> None:
    form = json.loads(Task("Threshold", {"threshold": 0.5}, K=3).to_json())
    for name in ("problem", "parameters", "K"):
        less = {key: value for key, value in form.items() if key != name}
        with pytest.raises(ValueError, match=f"needs '{name}'"):
            Task.from_json(json.dumps(less))
    with pytest.raises(ValueError, match="has no 'speed': it may come from a newer version"):
        Task.from_json(json.dumps({**form, "speed": 3}))


def test_what_cannot_be_read_again_is_not_recorded(tmp_path: Path) -> None:
    """Arms that come and go leave an agent with a task that it does not take: refused, and the session goes on."""
    facts = {"problem": "BestArm", "arms": ["a", "b", "c"], "range": (0, 1), "budget": 7}
    with agents.Session("sequential-halving", facts, store=tmp_path / "a.db") as session:
        session.withdraw_arm("a")
        session.add_arm("d")
        with pytest.raises(ValueError, match="needs a budget"):
            session.undo(1)  # four arms are too many for 7 measurements
        assert len(session.active) == 3
    with agents.Session("sequential-halving", {**facts, "budget": 12}, store=tmp_path / "b.db") as session:
        session.add_arm("d")
        session.tell_all([("a", 0.5)] * 8)
        with pytest.raises(ValueError, match="needs a budget"):
            session.withdraw_arm("a")  # the 8 measurements of it are spent, 4 are too few
        before = session.version, session.ask()
    for name, active in (("a", 3), ("b", 4)):
        with agents.Session(store=tmp_path / f"{name}.db") as session:
            assert len(session.active) == active
    assert before == (9, [1])


def test_a_file_that_is_lost_takes_no_results(tmp_path: Path) -> None:
    place, other = tmp_path / "a.db", tmp_path / "b.db"
    with agents.Session("uniform", FACTS, store=place) as session:
        session.tell("a", 1)
        shutil.copy(place, other)
        place.unlink()
        with pytest.raises(FileNotFoundError, match="has been deleted or moved: nothing was recorded"):
            session.tell("a", 1)
        other.rename(place)
        with pytest.raises(FileNotFoundError, match="another file has taken the place"):
            session.tell("a", 1)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        agents.Session("uniform", FACTS, store=tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_may_only_be_read_is_shown(tmp_path: Path) -> None:
    place = damaged(tmp_path / "a.db")
    place.chmod(0o444)
    with agents.Session(store=place) as session:
        assert len(session) == 1
        with pytest.raises(ValueError, match="cannot be read or written: attempt to write"):
            session.tell("a", 1)


def test_a_table_is_undone_as_a_whole(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("name,value\na,0.9\nb,0.8\na,0.7\n")
    with agents.Session("uniform", FACTS, store=tmp_path / "a.db") as session:
        (arm,) = session.ask()
        session.tell("c", 0.5)
        session.tell_table(wrong)
        assert session.pending == []  # a row has answered the question
        session.undo(3)
        session.tell_table(wrong, again=True)
        assert session.undo_table(wrong) == 3  # the later one
        assert session.undo_table("wrong.csv") == 2  # and what is left of the first
        assert [ask.arm for ask in session.pending] == [arm]
        assert session.arms()["pulls"].tolist() == [0, 0, 1]
        with pytest.raises(ValueError, match="recorded from a table 'wrong.csv'; there are those of: none"):
            session.undo_table(wrong)
        assert session.tell_table(wrong) == 3  # mended, it may come again
        assert session.undo() == session.history().query("kind == 'told'")["event"].iloc[-1]


@pytest.mark.parametrize("text", ["a\0b", "half \ud800"])
def test_text_that_no_database_holds_is_refused(text: str) -> None:
    with agents.Session("uniform", FACTS, store="sqlite://") as session:
        with pytest.raises(ValueError, match="who must be text"):
            session.tell("a", 1, who=text)
        with pytest.raises(ValueError, match="a remark must be text"):
            session.note(text)
        assert session.version == 0


def test_an_arm_of_thousands_of_digits_is_unknown() -> None:
    with (
        agents.Session("uniform", FACTS, store="sqlite://") as session,
        pytest.raises(ValueError, match="there is no arm '999"),
    ):
        session.tell("9" * 5000, 1)


@pytest.mark.parametrize(
    "value", [2**63, 10**30, 10**5000, -1, -(2**63) - 1], ids=["64 bits", "huge", "long", "-1", "-64 bits"]
)
def test_integers_that_no_database_holds_are_refused(value: int, tmp_path: Path) -> None:
    got = re.escape(str(value)) if abs(value) < 10**100 else "one of thousands of digits"
    told = f"must be an integer in .*, .*got {got}"
    with agents.Session("uniform", FACTS, store=tmp_path / "a.db") as session:
        session.tell("a", 1)
        session.ask()
        calls: list[Callable[[], Any]] = [
            lambda: session.undo(value), lambda: session.history(event=value), lambda: session.history(last=value),
            lambda: session.ask(value), lambda: session.tell(value, 1), lambda: session.withdraw_arm(value),
            lambda: session.arm(value),
            lambda: agents.Session("uniform", FACTS, store="sqlite://", public_seed=value),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(ValueError, match=told):
                call()
        assert session.version == 2
        with pytest.raises(ValueError, match="there is no event 9223372036854775807"):
            session.undo(2**63 - 1)
        assert len(session.history(event=2**63 - 1)) == 0
        assert len(session.history(last=2**63 - 1)) == 2
