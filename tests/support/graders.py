"""Functions that measure in other processes, which import this file alone."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def score(arm: str, item: int) -> float:
    """A score; d has the highest ones."""
    return 0.2 * "abcd".index(arm) + 0.005 * (item % 40)


def elsewhere(pid: int, arm: str, item: int) -> float:
    """The same, but not in this process."""
    if os.getpid() == pid:
        raise RuntimeError("this is the process of the session")
    return score(arm, item)


def deadly(place: Path, arm: str, item: int) -> float:
    """The same; the first process that measures d on every third item is killed, and leaves a file."""
    if arm == "d" and item % 3 == 0:
        with contextlib.suppress(FileExistsError):
            place.touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
    return score(arm, item)
