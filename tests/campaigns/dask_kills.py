"""Evaluations on a cluster of Dask whose workers are killed: the call ends, or another worker makes what is missing.

PYTHONPATH=tests/support python tests/campaigns/dask_kills.py     with `pip install distributed`
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import joblib
import pytest
from scale import evaluate, reference, same

from agents.evaluation.execution import Call, Watch, WorkerDiedError, outcomes

HOW: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}


def deadly() -> Any:
    def dies(watch: Watch) -> None:  # in here it is pickled by its code, as a worker cannot import this file
        os.kill(os.getpid(), signal.SIGKILL)

    return dies


def check_a_task_that_kills_every_worker(distributed: Any) -> None:
    with (
        distributed.LocalCluster(host="127.0.0.1", silence_logs=50, **HOW) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
        pytest.raises(WorkerDiedError, match="a worker has died, killed or out of memory"),
    ):
        list(outcomes([Call(deadly()), Call(deadly())], 2, Watch()))


def check_a_worker_that_is_killed(distributed: Any, folder: Path) -> None:
    with (
        distributed.LocalCluster(host="127.0.0.1", silence_logs=50, **HOW) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill() -> None:
            while len(list(folder.glob("episodes.parquet/*.parquet"))) < 2:
                time.sleep(0.01)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

        other = threading.Thread(target=kill, daemon=True)
        other.start()
        with joblib.parallel_config(backend="dask"):
            result = evaluate(at=[20, 60], jobs=-1, out=folder)
        other.join(10)
        assert killed == [victim]
        same(result, reference())


def main() -> None:
    import distributed

    check_a_task_that_kills_every_worker(distributed)
    with tempfile.TemporaryDirectory() as folder:
        check_a_worker_that_is_killed(distributed, Path(folder))


if __name__ == "__main__":
    main()
