"""Workers of one study die, hang, are interrupted, and lose their store for a moment: nothing that came in is lost.

`python test_session_fleets.py STORE WHO ...` is a process of each such worker: its calls take until the input ends.
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
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import agents
from agents.session import page

pytest.importorskip("sqlalchemy")

FACTS = {"problem": "BestArm", "arms": ["a", "b", "c", "d"], "items": 60, "range": (0, 1), "budget": 96}
LEASE, LOST = 600.0, ("gone", "killed", "stopped")
HANG = 600.0  # seconds that only what hangs takes


def score(arm: str, item: int) -> float:
    return 0.2 * "abcd".index(arm) + 0.005 * (item % 40)


@contextlib.contextmanager
def started(store: Path, *names: str) -> Iterator[tuple[Any, dict[str, int]]]:
    """A process that has forked one of each name, and their numbers; each has six calls under way."""
    command, pids = [sys.executable, __file__, str(store), *names], dict[str, int]()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = [process.stdout.readline().split() for _ in range(7 * len(names))]  # type: ignore[union-attr]
            pids = {line[0]: int(line[1]) for line in lines if len(line) == 2}
            assert lines.count(["begun"]) == 6 * len(names) == 6 * len(pids)
            yield process, pids
        finally:
            process.kill()
            for pid in pids.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_a_fleet_ends_its_study_and_loses_nothing(tmp_path: Path) -> None:
    """Twelve workers: one killed, one stopped, two interrupted, one whose call hangs, one whose store fails twice."""
    store, done, faults = tmp_path / "fleet.db", Counter[tuple[str, str, int]](), Counter[str]()
    go = threading.Event()
    agents.Session("uniform", FACTS, store=store).close()

    def work(n: int) -> None:
        session, who = agents.Session(store=store), f"w{n}"
        append = session._append

        def failing(events: Any) -> Any:
            faults[who] += 1
            if n == 0 and faults[who] in (2, 5):
                raise OSError("the store is away")
            return append(events)

        def measure(arm: str, item: int) -> float:
            done[who, arm, item] += 1
            return score(arm, item)

        session._append = failing  # type: ignore[method-assign]
        session.run(measure, 1, who=who, take_over=LEASE)

    with started(store, "left", *LOST) as (process, pids):
        said = iter(process.stdout.readline, "")

        def interrupted(who: str) -> bool:
            os.kill(pids[who], signal.SIGINT)
            return any("no more is asked for; 6 measurements still run" in line for line in said)

        def ended(who: str) -> bool:
            return any(line == f"ended {pids[who]} {-signal.SIGINT}\n" for line in said)

        os.kill(pids["killed"], signal.SIGKILL)
        os.kill(pids["stopped"], signal.SIGSTOP)
        assert interrupted("gone")
        os.kill(pids["gone"], signal.SIGINT)
        assert ended("gone")
        assert interrupted("left")
        process.stdin.close()
        assert ended("left")
        with contextlib.closing(sqlite3.connect(store)) as file, file:  # an hour goes by
            file.execute("update event set at = datetime(at, '-1 hour') where who in ('gone', 'killed', 'stopped')")
        study = agents.Session(store=store)
        assert {one["who"]: one["questions"] for one in page.state(study)["owed"]} == dict.fromkeys(LOST, 6)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with pytest.raises(TimeoutError):  # another run of its name asks again
                study.run(lambda *cell: go.wait(HANG), 1, retries=0, who="w1", take_over=LEASE, timeout=0.1)
            threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(8)]
            for one in threads:
                one.start()
            for one in threads:
                one.join(HANG)
        go.set()
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
    slow = threading.Thread(target=one.run, args=(lambda *cell: (begun.set(), go.wait(HANG), score(*cell))[2], 4))
    slow.daemon = True
    slow.start()
    begun.wait()
    with pytest.raises(ValueError, match="another run with who=None still runs, .*: give each run a name of its own"):
        other.run(score, who="")
    go.set()
    slow.join()
    assert (one.done, one.pending) == (True, [])
    assert one.history().query("kind == 'told'")["about"].is_unique


@pytest.mark.filterwarnings("ignore:results that others are asked for")
def test_who_is_silent_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock of the test: 90 seconds go by at each look whether others have recorded something."""
    session, looks = agents.Session("uniform", FACTS, store=":memory:"), list[float]()

    class Later(datetime):
        @classmethod
        def now(cls, zone: Any = None) -> datetime:
            return begin + timedelta(seconds=90 * len(looks))

    session.ask(4, who="gone")
    begin = session._state.signs["gone"]
    monkeypatch.setattr("agents.session.fold.datetime", Later)
    monkeypatch.setattr("agents.session.running.time", SimpleNamespace(monotonic=time.monotonic, sleep=looks.append))
    with pytest.warns(UserWarning, match="gone has given no sign") as said:
        session.run(score, 2, who="one", take_over=LEASE)
    assert len(looks) == 7  # it is said after half of the lease, and asked again after all of it
    assert sum("gone has given no sign of life" in str(one.message) for one in said) == 1
    assert session.done


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored in what runs in the background
    sys.stderr = sys.stdout

    def held_up(arm: str, item: int) -> float:
        os.write(1, b"begun\n")
        os.read(0, 1)  # nothing, once the input has ended
        return score(arm, item)

    agents.Session("uniform", FACTS, store=":memory:").ask(6)  # kernels are loaded once for all
    for who in sys.argv[2:]:
        if not (pid := os.fork()):
            agents.Session(store=sys.argv[1]).run(held_up, 6, who=who, take_over=LEASE)
            os._exit(0)
        print(who, pid, flush=True)
    for _ in sys.argv[2:]:
        pid, status = os.wait()
        print("ended", pid, os.waitstatus_to_exitcode(status), flush=True)
