"""What is told on standard error while one waits: a progress bar for long runs, and that kernels are compiled."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from threading import Lock
from typing import Any

__all__ = ["COMPILING", "Progress", "compilation_noted", "shown"]

PATIENCE, BETWEEN = 2.0, 0.1  # seconds before a bar appears, and between two updates of it
COMPILING = "note: compiling kernels, which takes some ten seconds at first use; later runs load them from disk"


def shown(progress: bool | None) -> bool:
    """Whether progress is to be shown; None: if standard error is a terminal."""
    return sys.stderr.isatty() if progress is None else progress


class _Note(logging.Handler):
    """Prints `COMPILING` on standard error when the first kernel is compiled."""

    printed = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.printed:
            self.printed = True
            print(COMPILING, file=sys.stderr, flush=True)


@contextlib.contextmanager
def compilation_noted(show: bool) -> Iterator[None]:
    """Meanwhile print a note when the first kernel is compiled, if there is one that no cache has.

    Within another such block nothing is printed twice.

    Args:
        show: whether to print it.
    """
    logger = logging.getLogger("bandit_envs.compiled")
    if not show or any(isinstance(handler, _Note) for handler in logger.handlers):
        yield
        return
    note, level, propagate = _Note(), logger.level, logger.propagate
    if not logger.isEnabledFor(logging.INFO):  # nobody else has asked for these messages, and nobody else gets them
        logger.setLevel(logging.INFO)
        logger.propagate = False
    logger.addHandler(note)
    try:
        yield
    finally:
        logger.removeHandler(note)
        logger.setLevel(level)
        logger.propagate = propagate


class Progress:
    """Episodes ended out of all, with pulls per second; shown only where a run takes longer than `PATIENCE`.

    Args:
        label: of the agent.
        episodes: how many there are.
        budget: pulls of an episode, if that is fixed.
        show: whether to show a bar; None: if standard error is a terminal.
    """

    def __init__(self, label: str, episodes: int, budget: int | None, show: bool | None) -> None:
        self.show = shown(show)
        self.label, self.started = label, time.perf_counter()
        self.total = episodes * budget if budget else episodes
        self.by_pulls = bool(budget)
        self.done, self.updated, self.lock = 0, self.started, Lock()
        self.bar: Any = None

    def step(self, pulls: int) -> None:
        """Count so many pulls. Several threads may call this."""
        if self.by_pulls:
            self._add(pulls)

    def ended(self, episodes: int) -> None:
        """Count episodes that have ended. Several threads may call this."""
        if not self.by_pulls:
            self._add(episodes)

    def _add(self, count: int) -> None:
        with self.lock:
            self.done += count
            now = time.perf_counter()
            if now - self.started < PATIENCE or now - self.updated < BETWEEN:
                return
            self.updated = now
            if self.bar is None:
                from tqdm import tqdm

                unit, many = "pull" if self.by_pulls else "episode", self.total
                self.bar = tqdm(total=many, desc=self.label, unit=unit, unit_scale=True, leave=False, file=sys.stderr)
            self.bar.update(min(self.done, self.total) - self.bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()
