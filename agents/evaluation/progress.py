"""Messages on standard error while one waits: how far a long run is, and that kernels are compiled.

On a terminal this is a progress bar for each agent. Elsewhere, as in a file or the log of a server, it is a plain line
now and then, and only where progress was asked for.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from threading import Event, Lock, Thread
from typing import Any

from bandit_envs.kernels import flag

from ..core.compile_time import CompileTime

PATIENCE, BETWEEN = 2.0, 0.1  # seconds before a bar appears, and between two updates of it
RENEWED = 5.0  # seconds between two lines on what is being compiled
FIRST_LINE, NEXT_LINE = 10.0, 30.0  # seconds before the first line where there is no terminal, and between two lines
COMPILING = (
    "note: compiling kernels before the first episode, at first use ten seconds or more for each kind of agent; later "
    "runs load them from disk"
)


def shown(progress: bool | None) -> bool:
    """Whether progress is to be shown; None: if standard error is a terminal."""
    return sys.stderr.isatty() if progress is None else flag("progress", progress)


class _Note(logging.Handler):
    """Prints `COMPILING` on standard error when the first kernel is compiled, and then which one is, now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.compiling, self.ended = CompileTime(), Event()
        self.thread: Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.thread is None:
            print(COMPILING, file=sys.stderr, flush=True)
            self.thread = Thread(target=self._renew, daemon=True)
            self.thread.start()

    def _renew(self) -> None:
        while not self.ended.wait(RENEWED):
            for name in self.compiling.names[-1:]:
                kernel = f"kernel {self.compiling.kernels}, {name}"
                print(f"compiling {kernel} ({duration(self.compiling.seconds)} so far)", file=sys.stderr, flush=True)

    def close(self) -> None:
        self.ended.set()
        if self.thread is not None:
            self.thread.join()
        super().close()


@contextlib.contextmanager
def compilation_noted(show: bool) -> Iterator[None]:
    """Meanwhile print a note when the first kernel is compiled, if there is one that no cache has, and how far that is.

    Within another such block nothing is printed twice.
    """
    logger = logging.getLogger("bandit_envs.kernels.compiled")
    if not show or any(isinstance(handler, _Note) for handler in logger.handlers):
        yield
        return
    note, level, propagate = _Note(), logger.level, logger.propagate
    if not logger.isEnabledFor(logging.INFO):  # no other has asked for these messages, and no other gets them
        logger.setLevel(logging.INFO)
        logger.propagate = False
    logger.addHandler(note)
    try:
        with note.compiling:
            yield
    finally:
        logger.removeHandler(note)
        note.close()
        logger.setLevel(level)
        logger.propagate = propagate


def duration(seconds: float) -> str:
    """A time in words."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole // 60 % 60:02d} h"
    return f"{whole // 60}:{whole % 60:02d} min" if whole >= 60 else f"{whole} s"


class _Lines:
    """Plain lines on how far the run is, printed by a thread of their own while the work goes on."""

    def __init__(self) -> None:
        self.place = ""
        self.bar: Progress | None = None
        self.ended, self.began = Event(), time.perf_counter()
        self.thread = Thread(target=self._print, daemon=True)

    def _print(self) -> None:
        wait = FIRST_LINE
        while not self.ended.wait(wait):
            wait, bar = NEXT_LINE, self.bar
            parts = [part for part in (self.place, bar.text() if bar else "") if part]
            spent = duration(time.perf_counter() - self.began)
            print(f"{': '.join(parts) or 'still running'} (after {spent})", file=sys.stderr, flush=True)


_lines: _Lines | None = None  # those of the command or the call that runs


@contextlib.contextmanager
def reported_in_lines(progress: bool | None) -> Iterator[None]:
    """Meanwhile print a plain line now and then, if progress is asked for and standard error is no terminal.

    Within another such block nothing is printed twice.
    """
    global _lines
    if progress is not True or _lines is not None or sys.stderr.isatty():
        yield
        return
    lines = _lines = _Lines()
    lines.thread.start()
    try:
        yield
    finally:
        _lines = None
        lines.ended.set()
        lines.thread.join()


def now_at(place: str) -> None:
    """Say in the lines what the work that follows is part of."""
    if _lines is not None:
        _lines.place = place


class Progress:
    """Pulls, or episodes ended, of all agents out of all, with the time left; shown where it takes beyond `PATIENCE`.

    Where standard error is no terminal, there is no bar, and `reported_in_lines` reports how far the run is.
    `before`: of the total, what was there already; it does not count for the time left. `show=None`: if it is a
    terminal.
    """

    def __init__(self, total: int, before: int, by_pulls: bool, show: bool | None) -> None:
        self.show = shown(show)
        self.label, self.started = "", time.perf_counter()
        self.total, self.by_pulls = total, by_pulls
        self.done = self.before = before
        self.updated, self.lock = self.started, Lock()
        self.bar: Any = None
        self.lines = _lines
        if self.lines is not None:
            self.lines.bar = self

    def text(self) -> str:
        """How far all agents are, in words, with the time left, and which of them runs."""
        unit, done = "pulls" if self.by_pulls else "episodes", min(self.done, self.total)
        own = done - self.before
        left = (self.total - done) / own * (time.perf_counter() - self.started) if own > 0 else 0.0
        wait = f", {duration(left)} left" if left >= 1 else ""
        return f"{self.label}: {done:,} of {self.total:,} {unit}{wait}"

    def add(self, pulls: int, episodes: int) -> None:
        """Count pulls, and episodes that have ended. Several threads may call this."""
        with self.lock:
            self.done += pulls if self.by_pulls else episodes
            now = time.perf_counter()
            if self.lines is not None or now - self.started < PATIENCE or now - self.updated < BETWEEN:
                return
            self.updated = now
            if self.bar is None:
                from tqdm import tqdm

                unit = "pull" if self.by_pulls else "episode"
                how: dict[str, object] = {"unit": unit, "unit_scale": True, "leave": False, "file": sys.stderr}
                self.bar = tqdm(total=self.total, initial=self.before, desc=self.label, **how)
                self.bar.start_t -= now - self.started
            if self.bar.desc != f"{self.label}: ":
                self.bar.set_description(self.label, refresh=False)
            self.bar.update(min(self.done, self.total) - self.bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self.lines is not None and self.lines.bar is self:
            self.lines.bar = None
        if self.bar is not None:
            self.bar.close()
