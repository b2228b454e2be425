"""A slow grader that fails one time in ten, and a session that it grades for, which is killed and run again.

    python tests/campaigns/grading.py                                      twelve candidates, 500 items, ten kills
    python tests/campaigns/grading.py STORE LOG CANDIDATES ITEMS WORKERS   the process that is killed

The scores are a function of the candidate and the item. Each cell that was graded is a line of LOG.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import agents


def _random(*words: object) -> float:
    return int.from_bytes(hashlib.blake2b(repr(words).encode(), digest_size=6).digest()) / 2**48


def score(arm: int, item: int) -> float:
    """What a candidate gets for an item: hard items are hard for all, and the later ones are better."""
    return min(max(0.6 * _random("item", item) + 0.4 * _random(arm, item) + 0.02 * (arm - 6), 0.0), 1.0)


def grade() -> None:
    """Run the session of the store until it is done."""
    store, log, arms, items, workers = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6])

    def measure(arm: str, item: int) -> float:
        time.sleep(0.01 + 0.03 * _random("time", arm, item))
        if int.from_bytes(os.urandom(2)) % 10 == 0:
            raise ConnectionError("the grader is busy")
        with log.open("a") as stream:  # one short line is written at once
            stream.write(f"{arm} {item}\n")
        return score(int(arm), item)

    facts = {"problem": "BestArm", "arms": arms, "items": items, "range": (0, 1), "delta": 0.05, "epsilon": 0.01}
    with agents.Session("paired-elimination", facts, store=store) as session:
        session.run(measure, workers, retries=5)
        print("done", session.done, len(session), flush=True)


def check_kills(folder: Path, arms: int, items: int, kills: int) -> None:
    """Kill the grader over and over: no cell is asked for or recorded twice, and the answer is right."""
    store, log = folder / "killed.db", folder / "log"
    command = [sys.executable, *map(str, (__file__, store, log, arms, items, 20))]
    for _ in range(kills):
        before = log.stat().st_size if log.exists() else 0
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 600
        while process.poll() is None and time.monotonic() < deadline:
            if log.exists() and log.stat().st_size > before + 150:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout.startswith("done True"), done.stderr[-2000:]
    graded = Counter(log.read_text().split("\n"))
    with agents.Session(store=store) as one:
        told = one.history().loc[lambda rows: rows["kind"] == "told"]
        asked = one.history().loc[lambda rows: rows["kind"] == "asked"]
        assert not told.duplicated(["arm", "item"]).any()
        assert not asked.duplicated(["arm", "item"]).any()
        assert all(row.value == score(int(row.arm), int(row.item)) for row in told.itertuples())
        lost = sum(graded.values()) - 1 - len(told)  # graded when it was killed, and not recorded yet: at most 20 each
        assert 0 <= lost <= 20 * kills
        means = [np.mean([score(arm, item) for item in range(items)]) for arm in range(arms)]
        assert means[int(np.flatnonzero(one.answer())[0])] >= max(means) - 0.01
        assert one.certificate >= 0.95


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_kills(Path(folder), arms=12, items=500, kills=10)


if __name__ == "__main__":
    grade() if len(sys.argv) > 1 else main()
