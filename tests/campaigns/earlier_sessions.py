"""Sessions whose stores an earlier version has written: what they do, what they show, and what a store holds.

`python tests/campaigns/earlier_sessions.py FOLDER`, run with the code of commit 47cb50b, made the files of
tests/session/old_sessions.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import numpy as np

import agents


def drinks(folder: Path) -> Any:
    """Events of all kinds: a table, a question given back, arms that come and go, a withdrawal undone, remarks."""
    facts = {"problem": "Threshold", "threshold": 0.5, "arms": ["tea", "coffee", "milk"], "range": (0, 1), "budget": 30}
    session = agents.Session("lsa", facts, store=folder / "drinks.db", public_seed=5, order="arrival")
    for arm in session.ask(2, who="ann"):
        session.tell(arm, 0.25 + 0.5 * arm, who="ann")
    session.tell("milk", 1)
    session.note("a new batch")
    (folder / "old.csv").write_text("name,value\ntea,0.125\ncoffee,0.75\nmilk,0.5\ntea,0.375\n")
    session.tell_table(folder / "old.csv", who="bob")
    session.undo()
    session.add_arm("juice")
    session.ask(3)
    session.tell("juice", 0.875)
    session.withdraw_arm("coffee")
    session.undo(session.pending[0].number)
    session.tell_all([("tea", 0.25), ("milk", 0.625), ("juice", 1.0)])
    session.withdraw_arm("tea")
    session.undo(session.version)
    for _ in range(6):
        session.tell(session.ask()[0], 0.4375)
    session.ask(2)
    return session


def pairs(folder: Path) -> Any:
    """Measurements of two numbers each."""
    facts = {"problem": "Feasible", "A": [[1, 1]], "b": [1.0], "arms": 2, "sigma": 1.0, "delta": 0.1}
    session = agents.Session("uniform", facts, store=folder / "pairs.db", public_seed=5, order="arrival")
    for _ in range(3):
        for arm in session.ask(2):
            session.tell(arm, (0.2 + arm, 0.1))
    return session


def seen(session: Any) -> dict[str, Any]:
    """What a session shows, but for the times, and what the version of then did not have, or defined otherwise."""
    arms = session.arms().drop(columns=["failed", "claim"], errors="ignore").filter(regex="^(?!low|high)")
    return {
        "history": session.history().drop(columns="at").to_csv(index=False),
        "arms": arms.to_csv(index=False, float_format="%.12g"),
        "unsure": np.round(session.unsure(), 12).tolist(),
        "pending": [list(ask) for ask in session.pending],
        "next": session.next(),
        "remaining": session.remaining,
        "answer": session.answer().tolist(),
        "version": session.version,
    }


def rows(place: Path) -> dict[str, Any]:
    """What a store holds, but for times, what is not kept any more, states and a second count of writes, and marks."""
    with contextlib.closing(sqlite3.connect(place)) as connection:

        def found(query: str) -> Any:
            return connection.execute(query).fetchall()

        return {
            "tables": found(
                "select name, sql from sqlite_master where name not in ('session', 'snapshot', 'mark') order by name"
            ),
            "facts": found("select id, facts, events from session"),
            "events": found("select number, kind, arm, value, vector, about, who, text from event order by number"),
            "times": [len(at) for (at,) in found("select at from event")],
            "next": found("select * from sqlite_sequence"),
        }


def main(folder: Path) -> None:
    """Write the files of `old_sessions`, with some states that the version of then kept."""
    ledger: Any = importlib.import_module("agents.session.ledger")  # of that version
    ledger.STEPS = 14
    for make in (drinks, pairs):
        with make(folder) as session:
            (folder / f"{make.__name__}.json").write_text(json.dumps(seen(session), indent=1) + "\n")
        with contextlib.closing(sqlite3.connect(folder / f"{make.__name__}.db")) as connection:
            (folder / f"{make.__name__}.sql").write_text("\n".join(connection.iterdump()) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
