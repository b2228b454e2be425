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

FACTS = {"problem": "BestArm", "arms": ["a", "b", "c", "d"], "items": 60, "range": (0, 1), "budget": 220}
LEASE = 600.0


def score(arm: str, item: int) -> float:
    return 0.2 * "abcd".index(arm) + 0.005 * (item % 40)


def worker(store: Path, who: str, seconds: float) -> None:
    def measure(arm: str, item: int) -> float:
        os.write(1, b"begun\n")
        time.sleep(seconds)
        return score(arm, item)

    agents.Session(store=store).run(measure, 6, who=who, take_over=LEASE)


@contextlib.contextmanager
def started(store: Path, **seconds: float) -> Iterator[dict[str, Any]]:
    """Processes by their names, each with six calls under way."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    commands = {who: [sys.executable, __file__, str(store), who, str(one)] for who, one in seconds.items()}
    found: dict[str, Any] = {who: subprocess.Popen(command, **pipes) for who, command in commands.items()}
    try:
        for process in found.values():
            assert [process.stdout.readline() for _ in range(6)] == ["begun\n"] * 6
        yield found
    finally:
        for process in found.values():
            process.kill()
            process.communicate()


def test_a_fleet_ends_its_study_and_loses_nothing(tmp_path: Path) -> None:
    """Twenty workers: one killed, one stopped, two interrupted, one whose call hangs, one whose store fails twice."""
    store, done, faults = tmp_path / "fleet.db", Counter[tuple[str, str, int]](), Counter[str]()
    study = agents.Session("uniform", FACTS, store=store)
    with started(store, killed=600, stopped=600, gone=600) as held, started(store, left=3) as more:
        held |= more
        held["left"].send_signal(signal.SIGINT)
        held["gone"].send_signal(signal.SIGINT)
        held["stopped"].send_signal(signal.SIGSTOP)
        held["killed"].kill()
        for who in ("gone", "left"):
            assert any(
                "no more is asked for; 6 measurements still run" in line for line in iter(held[who].stderr.readline, "")
            )
        held["gone"].send_signal(signal.SIGINT)
        assert [held[who].wait(30) for who in ("gone", "left")] == [-signal.SIGINT] * 2
        assert study.history().query("kind == 'told' and who == 'left'").shape[0] == 6
        with contextlib.closing(sqlite3.connect(store)) as file, file:  # an hour goes by
            file.execute("update event set at = datetime(at, '-1 hour') where who in ('gone', 'killed', 'stopped')")
        study = agents.Session(store=store)

        def work(n: int) -> None:
            session, who = agents.Session(store=store), f"w{n}"
            append, first = session._append, {"": True}

            def failing(events: Any) -> Any:
                faults[who] += 1
                if n == 0 and faults[who] in (2, 5):
                    raise OSError("the store is away")
                return append(events)

            def measure(arm: str, item: int) -> float:
                if n == 1 and first.pop("", False):
                    time.sleep(600)  # hangs: it is tried again
                time.sleep(0.002 * n)
                done[who, arm, item] += 1
                return score(arm, item)

            session._append = failing  # type: ignore[method-assign]
            session.run(measure, 1, who=who, take_over=LEASE, timeout=1.0 if n == 1 else None)

        owed = {one["who"]: one["questions"] for one in page.state(study)["owed"]}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(16)]
            for one in threads:
                one.start()
            for one in threads:
                one.join(60)
        assert study.done
        assert study.pending == []
        assert study.answer().tolist() == [False, False, False, True]
        assert owed == {"gone": 6, "killed": 6, "stopped": 6}
        for who in owed:
            assert any(f"{who} has given no sign of life" in str(one.message) for one in said)
        history = study.history()
        told, asked = (history.query(f"kind == '{kind}'") for kind in ("told", "asked"))
        assert set(done) == {(row.who, row.name, row.item) for row in told.itertuples() if row.who != "left"}
        assert set(done.values()) == {1}
        again = asked[asked["about"].notna()]["about"]
        assert sorted(asked.set_index("event").loc[again, "who"]) == [
            who for who in ("gone", "killed", "stopped") for _ in range(6)
        ]


def test_a_second_run_of_one_name_is_refused_and_no_name_is_a_name(tmp_path: Path) -> None:
    one, other = (agents.Session("uniform", FACTS, store=tmp_path / "twice.db") for _ in range(2))
    one.ask(3, who="")
    begun, go = threading.Event(), threading.Event()

    def measure(arm: str, item: int) -> float:
        begun.set()
        go.wait(9)
        return score(arm, item)

    slow = threading.Thread(target=one.run, args=(measure, 4))
    slow.start()
    begun.wait()
    with pytest.raises(ValueError, match="another run with who=None still runs, .*: give each run a name of its own"):
        other.run(score, who="")
    go.set()
    slow.join()
    assert (one.done, one.pending) == (True, [])
    assert one.history().query("kind == 'told'")["about"].is_unique


if __name__ == "__main__":
    worker(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
    os._exit(0)
