"""Stores that an earlier version has written: they are read, gone on with, and written as that version wrote them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agents
from bandit_envs import BestArm
from bandit_envs.kernels import SPELLINGS

pytest.importorskip("sqlalchemy")
from earlier_sessions import drinks, pairs, rows, seen

OLD = Path(__file__).parent / "old_sessions"


def restored(name: str, folder: Path) -> Path:
    """The store of the earlier version."""
    with contextlib.closing(sqlite3.connect(folder / f"{name}.db")) as connection:
        connection.executescript((OLD / f"{name}.sql").read_text())
    return folder / f"{name}.db"


@pytest.mark.parametrize("make", [drinks, pairs])
def test_stores_of_before_are_read_and_gone_on_with(make: Callable[[Path], Any], tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    place = restored(make.__name__, tmp_path)
    known = json.loads((OLD / f"{make.__name__}.json").read_text())
    with agents.Session(store=place) as old, make(tmp_path / "new") as fresh:
        for session in (old, fresh):
            assert json.dumps(seen(session)) == json.dumps(known)
        for session in (old, fresh):
            session.undo()
            for arm in session.ask(2):
                session.tell(arm, 0.5 if session.task.D == 1 else (0.5, 1.5), who="cid")
        for session in (fresh, agents.Session(store=place)):
            assert json.dumps(seen(session)) == json.dumps(seen(old))
        assert old.version == known["version"] + 5


@pytest.mark.parametrize("make", [drinks, pairs])
def test_stores_are_written_as_before(make: Callable[[Path], Any], tmp_path: Path) -> None:
    """The same but for the word distribution, a table of states that is not written any more, and a table of a mark."""
    (tmp_path / "new").mkdir()
    make(tmp_path / "new").close()
    old, new = rows(restored(make.__name__, tmp_path)), rows(tmp_path / "new" / f"{make.__name__}.db")
    before, now = (f'\\"{word}\\"' for word in SPELLINGS)
    old["facts"] = [(one, text.replace(before, now), *more) for one, text, *more in old["facts"]]
    assert new == old


@pytest.mark.parametrize("agent", ["evidence", "uniform(stop='certificate')", "ugape"])
def test_a_session_keeps_the_statistic_of_pairs_that_it_has_begun_with(tmp_path: Path, agent: str) -> None:
    """A store of before 0.3.0 says nothing of it: the product. Both are found again, by an agent of that statistic."""
    facts = {"problem": "BestArm", "arms": 3, "binary": True, "delta": 0.05}
    levels = {}
    for statistic in ("contrast", "product"):
        place = tmp_path / f"{statistic}.db"
        agents.Session(agent, facts, store=place, public_seed=3)
        with contextlib.closing(sqlite3.connect(place)) as connection, connection:
            kept = json.loads(connection.execute("select facts from session").fetchone()[0])
            assert (kept["pairs"], kept["format"]) == ("contrast", 82)
            if statistic == "product":
                del kept["pairs"]
                kept["format"] = 2
                connection.execute("update session set facts = ?", [json.dumps(kept)])
        session = agents.Session(agent, facts, store=place)  # with the same facts, and without
        session = agents.Session(store=place)
        for arm, hits in enumerate((130, 90, 85)):
            session.tell(arm, n=200, successes=hits)
        assert session.history().attrs["pairs"] == statistic
        levels[statistic] = 1 - session.certificate
        wanted = BestArm().certified_level(
            [200] * 3,
            [0.65, 0.45, 0.425],
            distribution="bernoulli",
            boundary={"contrast": "mixture"}.get(statistic, statistic),
        )
        assert levels[statistic] == pytest.approx(wanted)
    assert levels["contrast"] < 0.5 * levels["product"] < 0.05


def test_a_session_without_pairs_says_nothing_of_them(tmp_path: Path) -> None:
    facts = {"problem": "Threshold", "arms": 2, "range": (0, 1), "delta": 0.1, "threshold": 0.5}
    session = agents.Session("uniform", facts, store=tmp_path / "one.db")
    assert session.history().attrs["pairs"] is None
    assert "pairs" not in session._setup.facts()
