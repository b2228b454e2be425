"""Independent tasks, on one core, all cores, or the machines of a cluster.

joblib runs them: inside `joblib.parallel_config(backend="dask")`, or "ray", the tasks run there. Without a chosen
backend, tasks that hold no lock run in threads, and all others in processes.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bandit_envs.kernels import integer

from ..core.optional import require
from .progress import Progress

T = TypeVar("T")
AT_A_TIME = 4  # calls for each worker in a list of `_in_lists`


class StoppedError(Exception):
    """Another task has failed, or the user has interrupted all of them."""


class WorkerDiedError(RuntimeError):
    """A process that ran a task has died: it was killed, or out of memory."""


class Watch:
    """Progress and cancellation of a running task. Does nothing in a worker process."""

    def __init__(self, bar: Progress | None = None, here: bool = True) -> None:
        self.bar = bar  # counts what is done; None: nothing is shown
        self.here = here  # whether the task runs in the process that has made the tasks
        self.over = False  # set where tasks that run in threads of this process are to end

    def look(self) -> None:
        """Go on, or end by a `StoppedError`."""
        if self.over:
            raise StoppedError

    def __reduce__(self) -> tuple[object, ...]:
        return Watch, (None, False)


@dataclass(frozen=True)
class Call(Generic[T]):
    """A task, and what is to be known of it."""

    run: Callable[[Watch], T]  # does it; it can be pickled
    lockless: bool = False  # whether it holds no lock of Python's while it computes
    wanted: Callable[[], bool] = lambda: True  # asked when it is its turn: False where another call has done it


def jobs_number(jobs: int) -> int:
    """The number of tasks at the same time, checked; -1 for all cores."""
    if isinstance(jobs, int) and (jobs == 0 or jobs < -1):
        raise ValueError(f"jobs must be at least 1, or -1 for all cores, got {jobs}")
    return integer("jobs", jobs, -1, 2**16)


def cores(jobs: int) -> int:
    """How many tasks run at the same time where so many are asked for, -1 for all that there are."""
    if jobs == 1:
        return 1
    return int(require("joblib", "jobs > 1", "evaluation").effective_n_jobs(jobs))


def outcomes(tasks: Sequence[Call[T]], jobs: int, watch: Watch) -> Iterator[tuple[T, bool]]:
    """Run tasks, and yield what each has made, as soon as it ends, and whether it ran in this process.

    They are begun in this order, those that run in threads first. Where the loop over the outcomes is left, or a task
    fails, all others end.
    """
    if jobs == 1 or len(tasks) == 1 and not _chosen():
        for task in tasks:
            if task.wanted():
                yield task.run(watch), True
        return
    for lockless in (True, False):
        if some := [task for task in tasks if task.lockless is lockless]:
            yield from _together(some, jobs, watch, lockless)


def _chosen() -> bool:
    """Whether the user has chosen a backend: then no preference changes it."""
    parallel = require("joblib.parallel", "jobs > 1", "evaluation")
    first, second = (type(parallel.get_active_backend(prefer=kind)[0]) for kind in ("threads", "processes"))
    return first is second


def _together(tasks: Sequence[Call[T]], jobs: int, watch: Watch, lockless: bool) -> Iterator[tuple[T, bool]]:
    joblib = require("joblib", "jobs > 1", "evaluation")
    call = joblib.delayed(_run)
    calls = (call(task.run, watch) for task in tasks if task.wanted())
    how: dict[str, object] = {"return_as": "generator_unordered", "batch_size": 1, "pre_dispatch": "2 * n_jobs"}
    if _chosen():
        if not joblib.parallel.get_active_backend()[0].supports_return_generator:  # that of Ray
            yield from _in_lists(calls, jobs)
            return
        parallel = joblib.Parallel(jobs, **how)
    elif lockless:
        parallel = joblib.Parallel(jobs, prefer="threads", **how)
    else:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(jobs, **how)
    _report_errors(parallel._backend)
    results = parallel(calls)
    try:
        for one in results:  # noqa: UP028 ("yield from" would close them before anything else)
            yield one
    except BaseException as error:
        watch.over = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of results that are not used
            results.close()
        if isinstance(error, BrokenProcessPool) or type(error).__name__ == "KilledWorker":  # loky's, and Dask's
            raise WorkerDiedError(f"a worker has died, killed or out of memory: {str(error)[:300]}") from error
        raise


def _report_errors(backend: object) -> None:
    """Let joblib hear of a task of Dask that is given up, its workers having died: it would wait for ever."""
    name = "submit" if hasattr(backend, "submit") else "apply_async"  # before joblib 1.5
    if type(backend).__name__ != "DaskDistributedBackend" or name in vars(backend):
        return
    submit = getattr(backend, name)

    def watched(task: object, callback: Any = None) -> object:
        future = submit(task, callback)
        future.add_done_callback(lambda ended: ended.exception() is None or callback(ended.exception()))
        return future

    setattr(backend, name, watched)


def _in_lists(calls: Iterator[object], jobs: int) -> Iterator[Any]:
    """Run calls by a backend that reports none before all have ended: a few for each worker at a time."""
    joblib, many = require("joblib", "jobs > 1", "evaluation"), AT_A_TIME * cores(jobs)
    with joblib.Parallel(jobs, batch_size=1) as parallel:
        while some := list(itertools.islice(calls, many)):
            yield from parallel(some)


def _run(run: Callable[[Watch], T], watch: Watch) -> tuple[T, bool]:
    """Run a task; in a process of its own it has one thread of PyTorch, beside those of others."""
    torch: Any = None if watch.here else sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    return run(watch), watch.here
