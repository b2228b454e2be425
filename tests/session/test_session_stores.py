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
    """The same but for the word distribution, and a table of states that is not written any more."""
    (tmp_path / "new").mkdir()
    make(tmp_path / "new").close()
    old, new = rows(restored(make.__name__, tmp_path)), rows(tmp_path / "new" / f"{make.__name__}.db")
    before, now = (f'\\"{word}\\"' for word in SPELLINGS)
    old["facts"] = [(one, text.replace(before, now), *more) for one, text, *more in old["facts"]]
    assert new == old
