"""Bad calls of sessions: what is wrong is named, and nothing is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from refusals import refused

import agents

pytest.importorskip("sqlalchemy")

FACTS = {"problem": "Threshold", "threshold": 0.5, "arms": ["a", "b", "c"], "range": (0, 1), "budget": 12, "delta": 0.1}
NAN = float("nan")
LONG = 10**5000  # of more digits than Python prints

CALLS: dict[str, tuple[Any, ...]] = {  # of a session whose arm c has been withdrawn by its event 1
    "no such arm": (lambda one: one.tell("d", 0.5), "arm", "d"),
    "no such number of an arm": (lambda one: one.tell(3, 0.5), "arm", 3),
    "no rows": (lambda one: one.tell_all(3), "results", 3),
    "a row that is no pair": (lambda one: one.tell_all([("a", 0.5), 3]), "row", 2, "pair", 3),
    "a row of text": (lambda one: one.tell_all(["a1"]), "row", 1, "pair", "a1"),
    "no table": (lambda one: one.undo_table(3), "table", 3),
    "a reporter of no text": (lambda one: one.tell("a", 1, who="a\0b"), "who", "text"),
    "half a character": (lambda one: one.tell("a", 1, who="half \ud800"), "who", "text"),
    "an empty remark": (lambda one: one.note(" "), "remark"),
    "a name in bytes": (lambda one: one.add_arm(b"x"), "name", "text"),
    "a name that is withdrawn": (lambda one: one.add_arm("c"), "c", "withdrawn", "undo"),
    "a name that is taken": (lambda one: one.add_arm("a"), "a", "already"),
    "an event that is none": (lambda one: one.undo(2**63 - 1), "event", 2**63 - 1, 1),
    "undo of a huge event": (lambda one: one.undo(10**30), "event", 10**30),
    "history of a huge event": (lambda one: one.history(event=2**63), "event", 2**63),
    "history of a negative number": (lambda one: one.history(last=-1), "last", -1),
    "a huge number of questions": (lambda one: one.ask(10**30), "n", 10**30),
    "withdrawal of a huge arm": (lambda one: one.withdraw_arm(10**30), "arm", 10**30),
    "a negative arm": (lambda one: one.arm(-1), "arm", -1),
}


@pytest.mark.parametrize("title", CALLS)
def test_a_call_that_is_refused_records_nothing(title: str) -> None:
    call, *words = CALLS[title]
    with agents.Session("uniform", FACTS, store="sqlite://") as session:
        session.withdraw_arm("c")
        with refused(*words):
            call(session)
        assert (session.version, len(session)) == (1, 0)


MADE: dict[str, tuple[Any, ...]] = {  # changed facts or arguments of a session
    "an unknown problem": ({"problem": "Treshold"}, "Treshold", "Threshold"),
    "no problem": ({"problem": None}, "problem"),
    "no arms": ({"arms": None}, "arms"),
    "no arms but their number": ({"arms": 0}, "arms", 0),
    "a fact without a name": ({1: 2}, "problem", 1),
    "arms of the same name": ({"arms": ["a", "a"]}, "name"),
    "no measurement": ({"range": None}, "measurement"),
    "two kinds of measurement": ({"binary": True}, "measurement"),
    "a range upside down": ({"range": (1, 0)}, "range"),
    "an unknown fact": ({"threshhold": 0.5}, "threshold"),
    "no budget": ({"budget": 0}, "budget"),
    "a fact of another problem": ({"k": 2}, "k", "Threshold"),
    "a negative reserve": ({"reserve": -0.1}, "reserve", "[0, 1)", "-0.1"),
    "no agent": ({"agent": None}, "agent"),
    "a number of names": ({"names": 5}, "names", 3, 5),
    "a set of names": ({"names": {"a", "b", "c"}}, "names", 3),
    "a huge seed": ({"public_seed": 10**30}, "public_seed", 10**30),
    "a store of nothing": ({"store": None}, "path", "None"),
    "a store of bytes": ({"store": b"s.db"}, "path"),
    "a store in no database": ({"store": "nope://x"}, "store", "nope://x"),
    "a store at no address": ({"store": "a b://x"}, "store", "a b://x"),
}


@pytest.mark.parametrize("title", MADE)
def test_a_session_that_is_refused_leaves_no_file(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    change, *words = MADE[title]
    given = {name: change[name] for name in ("names", "public_seed") if name in change}
    facts = FACTS | {name: value for name, value in change.items() if name not in ("agent", "store", *given)}
    with refused(*words):
        agents.Session(change.get("agent", "uniform"), facts, store=change.get("store", "s.db"), **given)
    assert list(tmp_path.iterdir()) == []
