"""Workers of one study die, hang, are interrupted, and lose their store for a moment: nothing that came in is lost.

`python test_session_fleets.py STORE WHO SECONDS` is such a worker: each of its calls takes so long.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agents
from agents.session import page

pytest.importorskip("sqlalchemy")

FACTS = {"problem": "BestArm", "arms": ["a", "b", "c", "d"], "items": 60, "range": (0, 1), "budget": 140}
LEASE, LOST = 600.0, ("gone", "killed", "stopped")


def score(arm: str, item: int) -> float:
    return 0.2 * "abcd".index(arm) + 0.005 * (item % 40)


@contextlib.contextmanager
def started(store: Path, **seconds: float) -> Iterator[dict[str, Any]]:
    """Processes by their names, one after the other, each with six calls under way."""
    found = dict[str, Any]()
    try:
        for who, one in seconds.items():
            command = [sys.executable, __file__, str(store), who, str(one)]
            found[who] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert [found[who].stdout.readline() for _ in range(6)] == ["begun\n"] * 6
        yield found
    finally:
        for process in found.values():
            process.kill()
            process.communicate()


def test_a_fleet_ends_its_study_and_loses_nothing(tmp_path: Path) -> None:
    """Sixteen workers: one killed, one stopped, two interrupted, one whose call hangs, one whose store fails twice."""
    store, done, faults = tmp_path / "fleet.db", Counter[tuple[str, str, int]](), Counter[str]()
    agents.Session("uniform", FACTS, store=store).close()

    def work(n: int) -> None:
        session, who, hangs = agents.Session(store=store), f"w{n}", [n == 1]
        append = session._append

        def failing(events: Any) -> Any:
            faults[who] += 1
            if n == 0 and faults[who] in (2, 5):
                raise OSError("the store is away")
            return append(events)

        def measure(arm: str, item: int) -> float:
            if hangs.pop() if hangs else False:
                time.sleep(600)  # it is tried again
            time.sleep(0.002 * n)
            done[who, arm, item] += 1
            return score(arm, item)

        session._append = failing  # type: ignore[method-assign]
        session.run(measure, 1, who=who, take_over=LEASE, timeout=1.0 if n == 1 else None)

    with started(store, killed=600, stopped=600, gone=600, left=3) as held:
        for who, sign in (("left", "INT"), ("gone", "INT"), ("stopped", "STOP"), ("killed", "KILL")):
            held[who].send_signal(signal.Signals[f"SIG{sign}"])
        for who in ("gone", "left"):
            said = iter(held[who].stderr.readline, "")
            assert any("no more is asked for; 6 measurements still run" in line for line in said)
        held["gone"].send_signal(signal.SIGINT)
        assert [held[who].wait(30) for who in ("gone", "left")] == [-signal.SIGINT] * 2
        with contextlib.closing(sqlite3.connect(store)) as file, file:  # an hour goes by
            file.execute("update event set at = datetime(at, '-1 hour') where who in ('gone', 'killed', 'stopped')")
        study = agents.Session(store=store)
        assert {one["who"]: one["questions"] for one in page.state(study)["owed"]} == dict.fromkeys(LOST, 6)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(12)]
            for one in threads:
                one.start()
            for one in threads:
                one.join(60)
    assert (study.done, study.pending, study.answer().tolist()) == (True, [], [False, False, False, True])
    for who in LOST:
        assert any(f"{who} has given no sign of life" in str(one.message) for one in found)
    told, asked = (study.history().query(f"kind == '{kind}'") for kind in ("told", "asked"))
    assert (told["who"] == "left").sum() == 6
    assert done == Counter((row.who, row.name, row.item) for row in told.itertuples() if row.who != "left")
    again = asked.set_index("event").loc[asked["about"].dropna(), "who"]
    assert Counter(again) == dict.fromkeys(LOST, 6)


def test_a_second_run_of_one_name_is_refused_and_no_name_is_a_name(tmp_path: Path) -> None:
    one, other = (agents.Session("uniform", FACTS, store=tmp_path / "twice.db") for _ in range(2))
    one.ask(3, who="", run="a text of four words")
    begun, go = threading.Event(), threading.Event()
    slow = threading.Thread(target=one.run, args=(lambda *cell: (begun.set(), go.wait(9), score(*cell))[2], 4))
    slow.start()
    begun.wait()
    with pytest.raises(ValueError, match="another run with who=None still runs, .*: give each run a name of its own"):
        other.run(score, who="")
    go.set()
    slow.join()
    assert (one.done, one.pending) == (True, [])
    assert one.history().query("kind == 'told'")["about"].is_unique


@pytest.mark.filterwarnings("ignore:results that others are asked for")
def test_who_is_silent_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = agents.Session("uniform", FACTS, store=tmp_path / "once.db")
    session.ask(4, who="gone")
    monkeypatch.setattr("agents.session.calling.LOOK", 0.1)
    with pytest.warns(UserWarning, match="gone has given no sign") as said:
        session.run(score, 2, who="one", take_over=2.0)
    assert sum("gone has given no sign of life" in str(one.message) for one in said) == 1
    assert session.done


if __name__ == "__main__":

    def held_up(arm: str, item: int) -> float:
        os.write(1, b"begun\n")
        time.sleep(float(sys.argv[3]))
        return score(arm, item)

    agents.Session(store=sys.argv[1]).run(held_up, 6, who=sys.argv[2], take_over=LEASE)
    os._exit(0)
