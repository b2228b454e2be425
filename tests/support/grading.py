"""A slow grader that fails one time in ten, and a session that it grades for: what a test kills, and runs again.

    python grading.py STORE LOG CANDIDATES ITEMS WORKERS

The scores are a function of the candidate and the item. Each cell that was graded is a line of LOG.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

import agents

__all__ = ["score"]


def _random(*words: object) -> float:
    return int.from_bytes(hashlib.blake2b(repr(words).encode(), digest_size=6).digest()) / 2**48


def score(arm: int, item: int) -> float:
    """What a candidate gets for an item: hard items are hard for all, and the later ones are better."""
    return min(max(0.6 * _random("item", item) + 0.4 * _random(arm, item) + 0.02 * (arm - 6), 0.0), 1.0)


def main() -> None:
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


if __name__ == "__main__":
    main()
