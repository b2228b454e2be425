"""Long evaluations: what blocks, folders and sums cost beside rows in memory, and what a second core brings.

On two cores that nobody else uses: pytest tests/benchmarks/test_scale_speed.py --benchmark-only
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from race import Race, clock

import agents

EPISODES, LONG = 500_000, 4_000_000  # of 200 pulls: 10^8 and 8 * 10^8 pulls
KWARGS = {"instance": "tao2019-1", "budget": 200}


def running(folder: Path | None = None, episodes: int = EPISODES, **how: Any) -> Callable[[], Any]:
    """A run of LSA, each time into a folder of its own where there is one for all of them."""
    number = itertools.count()

    def run() -> None:
        out = None if folder is None else folder / f"{len(how)}-{next(number)}"
        agents.evaluate("lsa", "Threshold", episodes=episodes, env_kwargs=KWARGS, out=out, progress=False, **how)

    return run


@pytest.mark.benchmark(timer=time.perf_counter)
def test_a_folder_by_the_clock(race: Race, tmp_path: Path) -> None:
    """Blocks are written while the next ones are played."""
    race(running(tmp_path), running(), against="rows in memory", at_most=1.03, rounds=9, timer=time.perf_counter)


@pytest.mark.benchmark(timer=clock)
def test_sums(race: Race) -> None:
    race(running(rows="none"), running(), against="rows in memory", at_most=1.03, rounds=9)


@pytest.mark.benchmark(timer=clock)
def test_a_folder_of_sums(race: Race, tmp_path: Path) -> None:
    race(running(tmp_path, rows="none"), running(), against="rows in memory", at_most=1.03, rounds=9)


@pytest.mark.benchmark(timer=time.perf_counter)
def test_two_cores(race: Race) -> None:
    one, two = running(episodes=LONG), running(episodes=LONG, jobs=2)
    race(two, one, against="one job", at_least=1.85, rounds=5, timer=time.perf_counter)


@pytest.mark.benchmark(timer=time.perf_counter)
def test_two_cores_and_a_folder(race: Race, tmp_path: Path) -> None:
    one, two = running(tmp_path, LONG), running(tmp_path, LONG, jobs=2)
    race(two, one, against="one job", at_least=1.7, rounds=5, timer=time.perf_counter)
