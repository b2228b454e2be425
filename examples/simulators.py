"""Which of a thousand production lines is best? One's own simulator, on the workers of a cluster, until it is sure.

    python examples/simulators.py lines.db         two workers of Dask on this machine; after a kill it goes on
    python examples/simulators.py --quick          30 lines, in threads of this process

A line has three machines, and places for parts before the second and the third: twelve units of speed and twenty places
are shared out. It has a good day when 65 of 100 parts are finished in time. Which line has the most good days?

All lines meet the same days: a day is a seed, from which the work of each part on each machine is drawn. So lines are
compared on the same luck, and their results of a day depend on each other. The session knows: ten days, which a worker
simulates in one call, are a block, and what is certified goes by differences within blocks.
"""

from __future__ import annotations

import functools
import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import product
from typing import Any

import numpy as np

import agents

BATCH = 10  # days of a call


@functools.cache
def lines(speed: int = 12, places: int = 20) -> dict[str, tuple[int, ...]]:
    """The speeds of the machines, and the places before the second and the third, of all lines by their names."""
    speeds = [(a, b, speed - a - b) for a, b in product(range(1, speed), repeat=2) if a + b < speed]
    return {f"{a}-{b}-{c}, {n}": (a, b, c, n, places - n) for (a, b, c), n in product(speeds, range(1, places))}


def finished(line: tuple[int, ...], seed: int, parts: int = 100) -> float:
    """The share of parts that leave a line in time: a part that finds no place ahead waits, and blocks its machine."""
    work = np.random.default_rng(seed).exponential(size=(parts, 3)) / line[:3]
    left = [[0.0] * (parts + 1) for _ in range(3)]  # when each part has left each machine
    for i, times in enumerate(work.tolist(), 1):
        done = 0.0
        for m in range(3):
            ahead = i - 1 - line[3 + m] if m < 2 else 0  # the part whose place it takes
            done = max(done, left[m][i - 1]) + times[m]
            left[m][i] = done = max(done, left[m + 1][max(ahead, 0)]) if m < 2 else done
    return float(np.mean(np.array(left[2][1:]) <= 3 * parts / sum(line[:3])))


def simulate(name: str, block: int, **shape: int) -> float:
    """What a worker does: the share of good days of a line, of ten."""
    days = range(BATCH * block, BATCH * (block + 1))
    return float(np.mean([finished(lines(**shape)[name], day) > 0.65 for day in days]))


def study(store: str, **shape: int) -> agents.Session:
    """The session; it goes on where it was if the store has one."""
    facts: dict[str, Any] = {"problem": "BestArm", "arms": [*lines(**shape)], "range": (0, 1), "blocks": "day"}
    return agents.Session("paired-elimination", facts | {"delta": 0.05, "epsilon": 0.1}, store=store)


def main() -> None:
    """Run the study."""
    quick, given = "--quick" in sys.argv, [one for one in sys.argv[1:] if one != "--quick"]
    shape = {"speed": 6, "places": 4} if quick else {}
    measure = functools.partial(simulate, **shape)
    with ExitStack() as stack, study(*given or [":memory:"], **shape) as session:
        if quick:
            executor: Executor = stack.enter_context(ThreadPoolExecutor(2))
        else:
            import distributed  # pip install ".[cluster]"

            cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
            executor = stack.enter_context(distributed.Client(stack.enter_context(cluster))).get_executor()
        session.run(measure, workers=20, executor=executor)  # ten calls wait at each of two workers
        best = session.names[session.answer().argmax()]
        print(f"{best} is at most .1 below the best of {len(session.names)} lines, at delta = {session.delta}")
        print(f"{len(session)} results, {BATCH * len(session)} simulated days")


if __name__ == "__main__":
    main()
