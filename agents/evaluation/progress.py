"""A progress bar for long runs, on standard error."""

from __future__ import annotations

import sys
import time

__all__ = ["Progress"]

PATIENCE = 2.0  # seconds before a bar appears


class Progress:
    """Episodes ended out of all, with pulls per second; shown only where a run takes longer than `PATIENCE`.

    Args:
        label: of the agent.
        episodes: how many there are.
        budget: pulls of an episode, if that is fixed.
        show: whether to show a bar; None: if standard error is a terminal.
    """

    def __init__(self, label: str, episodes: int, budget: int | None, show: bool | None) -> None:
        self.show = sys.stderr.isatty() if show is None else show
        self.label, self.started = label, time.perf_counter()
        self.total = episodes * budget if budget else episodes
        self.by_pulls = bool(budget)
        self.done = self.steps = 0
        self.bar: object | None = None

    def step(self, slots: int) -> None:
        """Count one step of `slots` episodes."""
        self.steps += 1
        if self.by_pulls:
            self.done += slots
        if self.steps % 256 == 0:
            self._update()

    def ended(self, episodes: int) -> None:
        """Count episodes that have ended."""
        if not self.by_pulls:
            self.done += episodes

    def _update(self) -> None:
        if self.bar is None and time.perf_counter() - self.started > PATIENCE:
            from tqdm import tqdm

            unit = "pull" if self.by_pulls else "episode"
            self.bar = tqdm(total=self.total, desc=self.label, unit=unit, unit_scale=True, leave=False, file=sys.stderr)
        if self.bar is not None:
            self.bar.update(min(self.done, self.total) - self.bar.n)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()  # type: ignore[attr-defined]
