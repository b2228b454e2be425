"""Blocks on all cores and on a cluster: whoever makes them, the rows are the same to the last bit.

Processes live on from one test to the next, while the backend is the same.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import joblib
import pytest
from dask_kills import deadly
from scale import evaluate, reference, same

import agents
from agents.evaluation import execution, progress
from agents.evaluation import run as making
from agents.evaluation.execution import Call, StoppedError, Watch, WorkerDiedError, outcomes


def test_results_do_not_depend_on_jobs_executors_and_batches() -> None:
    same(evaluate(at=[20, 60], jobs=2, batch=100), reference())  # threads and processes
    with joblib.parallel_config(backend="threading"):
        same(evaluate(episodes=400, jobs=5, batch=30), evaluate(episodes=400))


def test_progress_counts_the_work_of_other_processes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[int, int]] = []
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "BETWEEN", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    close = progress.Progress.close
    monkeypatch.setattr(progress.Progress, "close", lambda bar: (counted.append((bar.done, bar.total)), close(bar))[1])
    for jobs in (1, 2):
        evaluate("opt-kg", episodes=400, jobs=jobs, progress=True)
        assert "opt-kg" in capsys.readouterr().err
    assert counted == [(400 * 60, 400 * 60)] * 2


def test_candidates_of_an_evolution_play_on_all_cores() -> None:
    pytest.importorskip("cmaes")
    how: dict[str, Any] = {"generations": 2, "episodes": 40, "population": 4, "every": 1, "held_out": 1}
    kwargs = {"instance": "sampler(arms=5)", "budget": 40}
    one, card = agents.evolve("Threshold", env_kwargs=kwargs, **how)
    two, other = agents.evolve("Threshold", env_kwargs=kwargs, jobs=2, **how)
    assert one == two
    assert card["result"] == other["result"]
    with pytest.raises(ValueError, match="jobs must be at least 1"):
        agents.evolve("Threshold", generations=1, jobs=0)


def test_a_process_that_dies_ends_the_call_which_tells_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WorkerDiedError, match="a worker has died, killed or out of memory"):
        list(outcomes([Call(deadly()), Call(deadly())], 2, Watch()))

    def fails(*_: Any) -> Any:
        raise WorkerDiedError("a worker has died")
        yield

    with monkeypatch.context() as while_it_runs:
        while_it_runs.setattr(making, "outcomes", fails)
        with pytest.raises(WorkerDiedError, match=r"has died; 0 of \d+ blocks are kept in .* the same call goes on"):
            evaluate("lsa", out=tmp_path)
    same(evaluate("lsa", out=tmp_path), evaluate("lsa"))


def test_agents_in_compiled_code_play_in_threads_unless_a_backend_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()
    play = making.play

    def spy(*arguments: Any) -> Any:
        threads.add(threading.current_thread().name)
        return play(*arguments)

    monkeypatch.setattr(making, "play", spy)
    evaluate("lsa", jobs=2)
    assert threads
    assert "MainThread" not in threads
    wanted = evaluate(episodes=400)
    threads.clear()
    with joblib.parallel_config(backend="loky"):
        same(evaluate(episodes=400, jobs=2), wanted)
    assert not threads  # it was in other processes


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_backend_that_tells_of_nothing_before_the_last_call_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of Ray."""
    assert not joblib.parallel.MultiprocessingBackend.supports_return_generator
    monkeypatch.setattr(execution, "AT_A_TIME", 1)
    with joblib.parallel_config(backend="multiprocessing"):
        same(evaluate(episodes=400, jobs=2), evaluate(episodes=400))


def test_an_error_ends_all_tasks() -> None:
    watch, runs, ended = Watch(), threading.Event(), threading.Event()

    def waits(watch: Watch) -> None:
        runs.set()
        try:
            for _ in range(60_000):
                watch.look()
                time.sleep(0.01)
        except StoppedError:
            ended.set()

    def fails(watch: Watch) -> None:
        assert runs.wait(600)
        raise ValueError("this one fails")

    with pytest.raises(ValueError, match="this one fails"):
        list(outcomes([Call(waits, True), Call(fails, True)], 2, watch))
    assert watch.over
    assert ended.wait(600)
