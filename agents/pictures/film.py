"""The frames of a moving picture of one episode: the agent's statistics and its answer at that moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bandit_envs.envs import View, Viewer, limits_of
from bandit_envs.kernels import integer

from ..evaluation import Trace, play

MOST_FRAMES = 240
FEWEST_FRAMES, MOST_ASKED = 2, 10_000


@dataclass(frozen=True, eq=False)
class Film:
    """One episode of an agent at some numbers of pulls, from none on."""

    label: str  # of the agent
    trace: Trace  # its `at` holds the numbers of pulls of all frames but the first
    viewer: Viewer  # makes the views

    @cached_property
    def views(self) -> list[View]:
        """The arms in each frame, with the agent's own answer."""
        seen, zeros = self.trace.seen, np.zeros(self.trace.means.shape)
        frames = zip(seen["pulls"], seen["mean"], seen["variance"], self.trace.answers, strict=True)
        blank = self.viewer.view(np.zeros(self.trace.task.shape, np.int64), zeros, zeros)
        return [blank, *(self.viewer.view(*frame) for frame in frames)]

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Limits of the axis of values that show all frames."""
        return limits_of(self.views[1:], self.viewer.support)

    @property
    def end(self) -> int:
        """Pulls of the whole episode."""
        return len(self.trace.arms)

    def title(self, i: int) -> str:
        """The agent, the problem, and how far the episode is in a frame."""
        task = self.trace.task
        of = "" if task.budget is None else f" of {task.budget:,}"
        return f"{self.label} on {task.problem}: {self.views[i].pulls.sum():,}{of} pulls"


def moments(end: int, frames: int) -> list[int]:
    """Numbers of pulls at which there are frames: of 1 to `end`, evenly, at most so many."""
    return sorted({int(t) for t in np.linspace(0, end, min(end, frames) + 1)[1:].round()})


def films(
    agents: Mapping[str, Any], env_id: str, *, frames: int | Callable[[int], int] = MOST_FRAMES, **how: Any
) -> list[Film]:
    """The same episode by several agents {label: agent}, at the same numbers of pulls: those of the longest.

    Every episode is played twice, at first to learn how long it is. `frames`: at most, without that before the first
    pull; a number, or a function of the number of arms. All others are as for `play`.
    """
    if not callable(frames):
        frames = integer("frames", frames, FEWEST_FRAMES, MOST_ASKED)
    traces = [play(agent, env_id, **how) for agent in agents.values()]
    end = max(1, *(len(trace.arms) for trace in traces))
    at = moments(end, frames(traces[0].task.K) if callable(frames) else frames)
    traces = [play(agent, env_id, at=at, **how) for agent in agents.values()]
    return [Film(label, trace, Viewer(trace.task)) for label, trace in zip(agents, traces, strict=True)]
