"""Kernels that this process will need, compiled by other processes beside it.

Whoever needs kernels says so before, by `expect`. When the first one is in no cache, helpers are started, processes of
`python -m bandit_envs.kernels`: one for each further core, `MOST` at most for each cache. They are handed all that are
in no cache, and begin with what is needed last. Whoever compiles a function holds a lock beside its file; others wait
for it, and read the file.

There are no helpers where there is one core, no folder to write to, or no lock; in plain mode; in helpers, and in
workers of `multiprocessing` and joblib; where the variable BANDIT_ENVS_HELPERS is 0. A helper ends with the process
that has started it, or once it has nothing to do. What none has compiled is compiled where it is needed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import operator
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .kept import NUMBA, File, watched

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

types: Any = NUMBA.types
VARIABLE = "BANDIT_ENVS_HELPERS"
COMMAND = "-m", "bandit_envs.kernels"
WHEN = ("agent", "step", "end")  # when a kernel is needed: the agent begins, the first step, the end of an episode
MOST = 3  # helpers
WORTH = 2  # kernels in no cache, beside the one that is needed now, for which it is worth to start one
PATIENCE = 120.0  # seconds for which a lock is waited for: its process may have been stopped
BETWEEN, IDLE = 0.01, 3.0  # seconds between two looks at a lock; without a job, after which a helper ends
NUMBERS = {int: types.int64, float: types.float64, bool: types.boolean}
_LOCK = threading.Lock()
_known, _expected = set[Any](), list[Any]()  # jobs; and (when, number, job), until they are handed over
_helpers = list["subprocess.Popen[bytes]"]()


class Left(BaseException):
    """A kernel is not compiled now."""


class _Here(threading.local):
    """What a thread does."""

    depth = 0  # how many functions it compiles, one for another
    helps = False  # it compiles only what no other process compiles
    looks = False  # it compiles nothing


_here = _Here()


def expect(when: str, *jobs: Any) -> None:
    """Say which kernels will be needed.

    Args:
        when: one of `WHEN`.
        *jobs: kernels whose arguments are all annotated, see `type_of`; or (function, *arguments), a call that compiles
            one. Modules hold kernels and functions by their names; arguments can be pickled.
    """
    for job in jobs:
        if job not in _known:
            _known.add(job)
            _expected.append((WHEN.index(when), len(_known), job))
    if _helpers and _expected:
        _hand_over(None)


# --- locks ------------------------------------------------------------------------------------------------------------


def look_up(path: Path | None) -> None:
    """Leave a kernel that is only looked up; it is missing where it has no file, and no process compiles it."""
    if _here.looks:
        raise Left(path is not None and not path.exists() and not _is_held(_lock_of(path)))


@contextlib.contextmanager
def alone(file: File) -> Iterator[None]:
    """Meanwhile no other process compiles the function of this file; where no lock can be had, others may."""
    lock, path = None, file.path
    with contextlib.suppress(OSError):
        lock = None if path is None or fcntl is None else _lock_of(path).open("wb")
    if lock is None or path is None:
        yield
        return
    with lock:
        if not (mine := _taken(lock)):
            if _here.helps and not _here.depth:
                raise Left(False)
            until = time.monotonic() + PATIENCE
            with watched(file.function.__qualname__):
                while not (mine := _taken(lock)) and time.monotonic() < until:
                    time.sleep(BETWEEN)
        _here.depth += 1
        try:
            if _expected:
                _hand_over(path.parent)
            yield
        finally:
            _here.depth -= 1
            with contextlib.suppress(OSError):
                if mine:
                    _lock_of(path).unlink(missing_ok=True)
                    fcntl.flock(lock, fcntl.LOCK_UN)  # which processes that were forked meanwhile have too


def _is_held(lock: Path) -> bool:
    """Whether a process holds a lock; one that has died holds none."""
    try:
        with lock.open("rb") as file:
            return not _taken(file)
    except OSError:
        return False


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _taken(lock: Any) -> bool:
    """Whether this process has the lock of an open file now, or its file system has no locks."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


# --- jobs -------------------------------------------------------------------------------------------------------------


def scalar_of(array: Any) -> Any:
    """The scalar of an annotation `NDArray[scalar]`, an alias that names a dtype before NumPy 2.5."""
    last = typing.get_args(array)[-1]
    return (typing.get_args(last) or (last,))[0]


def type_of(hint: Any, dimensions: int = 1) -> Any:
    """The type of an argument by its annotation: a number, a struct, or an array in C order.

    `Annotated[array, dimensions]` is of an array, or of a struct with such arrays.
    """
    if hint in NUMBERS:
        return NUMBERS[hint]
    if hasattr(hint, "numba_type"):
        return hint.numba_type
    if hasattr(hint, "__metadata__"):
        return type_of(hint.__origin__, hint.__metadata__[0])
    if hasattr(hint, "_fields"):
        fields = typing.get_type_hints(hint, include_extras=True).values()
        return types.NamedTuple([type_of(one, dimensions) for one in fields], hint)
    return types.Array(NUMBA.from_dtype(np.dtype(scalar_of(hint))), dimensions, "C")


def do(job: Any) -> None:
    """Compile what a job, see `expect`, is about."""
    if isinstance(job, tuple):
        job[0](*job[1:])
    else:
        compiled = getattr(job, "compiled", job)
        hints = typing.get_type_hints(compiled.py_func, include_extras=True)
        compiled.compile(tuple(map(type_of, hints.values())))


def _is_missing(job: Any) -> bool:
    _here.looks = True
    try:
        do(job)
    except Left as left:
        return bool(left.args[0])
    except Exception:  # it comes up again where the kernel is needed
        return False
    finally:
        _here.looks = False
    return False


def message(when: int, number: int, job: Any) -> bytes:
    """A job as helpers read it, which begin with the last one; nothing where they cannot find what it is about."""
    function, *given = job if isinstance(job, tuple) else (job,)
    name = function.__module__, function.__qualname__, isinstance(job, tuple)
    with contextlib.suppress(Exception):  # whatever pickling brings about
        return pickle.dumps((-when, -number, pickle.dumps((*name, given))))
    return b""


# --- helpers ----------------------------------------------------------------------------------------------------------


@functools.cache
def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _most() -> int:
    """How many helpers this process may have."""
    workers = sys.modules.get("multiprocessing.process")
    works = workers is not None and workers.parent_process() is not None
    python = "python" in os.path.basename(sys.executable or "") and not hasattr(sys, "frozen")
    failed = any(one.poll() for one in _helpers)
    return 0 if works or failed or not python or os.environ.get(VARIABLE) == "0" else min(cores() - 1, MOST)


def _hand_over(folder: Path | None) -> None:
    """Hand what is expected, and missing, to the helpers; where none runs, to new ones, whose locks are in a folder."""
    if not _LOCK.acquire(blocking=False):  # another thread is at it, and may wait until this one has compiled
        return
    with contextlib.ExitStack() as stack:
        stack.callback(_LOCK.release)
        running, slots = [one for one in _helpers if one.poll() is None], list[Any]()
        for place in [] if folder is None or running else [folder / f"helper-{i}.lock" for i in range(_most())]:
            with contextlib.suppress(OSError):
                slot = stack.enter_context(place.open("wb"))
                slots += [slot] if _taken(slot) else []
        if not running and not slots:
            return
        given = list(_expected)
        del _expected[: len(given)]
        jobs = [one for one in given if _is_missing(one[-1])]
        with contextlib.suppress(Exception):  # no process can be started, or it has ended
            if not running and len(jobs) >= WORTH:
                _end()
                _helpers[:] = running = [_start(slot) for slot in slots]
            for one in running:
                one.stdin.write(b"".join(message(*job) for job in jobs))  # type: ignore[union-attr]
                one.stdin.flush()  # type: ignore[union-attr]


def _start(slot: Any) -> subprocess.Popen[bytes]:
    """A helper, which holds this lock as long as it runs."""
    variables = {**os.environ, VARIABLE: "0", "PYTHONSAFEPATH": "1"}
    variables["PYTHONPATH"] = os.pathsep.join(os.fspath(one) for one in sys.path if one)
    variables |= {"NUMBA_CACHE_DIR": NUMBA.config.CACHE_DIR} if NUMBA.config.CACHE_DIR else {}
    quiet, pipe, command = subprocess.DEVNULL, subprocess.PIPE, [sys.executable, *COMMAND]
    how: dict[str, Any] = {"pass_fds": [slot.fileno()], "start_new_session": True}
    return subprocess.Popen(command, stdin=pipe, stdout=quiet, stderr=quiet, env=variables, **how)


@atexit.register
def _end() -> None:
    """End all helpers, and close what led to them."""
    for one in _helpers:
        with contextlib.suppress(OSError):
            one.kill()
            one.communicate()


def help_out() -> None:
    """What a helper does: the jobs that it reads from its standard input, until this is closed."""
    waiting, _here.helps = queue.PriorityQueue[Any](), True

    def receive() -> None:
        with contextlib.suppress(Exception):
            while True:
                waiting.put(pickle.load(sys.stdin.buffer))
        os._exit(0)

    gc.set_threshold(10**6)  # little of what a compiler makes is garbage
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]  # Numba imports it for what no kernel of ours calls
    threading.Thread(target=receive, daemon=True).start()
    with contextlib.suppress(queue.Empty):
        while True:
            *_, text = waiting.get(timeout=IDLE)
            with contextlib.suppress(Exception, Left):
                module, name, calls, given = pickle.loads(text)
                one = operator.attrgetter(name)(importlib.import_module(module))
                do((one, *given) if calls else one)
    os._exit(0)
