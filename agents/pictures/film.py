"""What an agent has seen and would have answered in the course of one episode: the frames of a moving picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import View, Viewer, integer, limits_of

from ..evaluation import Trace, play

__all__ = ["MOST_FRAMES", "Film", "film", "films", "moments"]

MOST_FRAMES = 240
FEWEST_FRAMES, MOST_ASKED = 2, 10_000


@dataclass(frozen=True, eq=False)
class Film:
    """One episode of an agent at some numbers of pulls, from none on.

    Attributes:
        label: of the agent.
        trace: the episode, whose `at` holds the numbers of pulls of all frames but the first.
        viewer: what makes the views.
    """

    label: str
    trace: Trace
    viewer: Viewer

    @cached_property
    def views(self) -> list[View]:
        """The arms in each frame, with the agent's own answer."""
        task, seen = self.trace.task, self.trace.seen
        shape = self.trace.means.shape
        blank = self.viewer.view(np.zeros(task.shape, np.int64), np.zeros(shape), np.zeros(shape))
        return [blank] + [
            self.viewer.view(seen["pulls"][i], seen["mean"][i], seen["variance"][i], answer)
            for i, answer in enumerate(self.trace.answers)
        ]

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Limits of the axis of values that show all frames."""
        return limits_of(self.views[1:], self.viewer.support)

    @property
    def pulls(self) -> NDArray[np.int64]:
        """Pulls of all arms in each frame: at the last decision that comes before the number of the frame, or at it."""
        return np.array([view.pulls.sum() for view in self.views])

    @property
    def truth(self) -> NDArray[np.float64]:
        """The values of the arms by their true means, (K,)."""
        ones, zeros = np.ones(self.trace.task.shape, np.int64), np.zeros(self.trace.means.shape)
        return self.viewer.view(ones, self.trace.means, zeros).value

    @property
    def end(self) -> int:
        """Pulls of the whole episode."""
        return len(self.trace.arms)


def moments(end: int, frames: int) -> list[int]:
    """Numbers of pulls at which there are frames: of 1 to `end`, evenly, at most so many."""
    return sorted({int(t) for t in np.linspace(0, end, min(end, frames) + 1)[1:].round()})


def films(
    agents: Mapping[str, Any],
    env_id: str,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    seed: int = 0,
    episode: int = 0,
    frames: int | Callable[[int], int] = MOST_FRAMES,
    trust: bool = False,
) -> list[Film]:
    """The same episode by several agents, at the same numbers of pulls: those of the longest.

    Every episode is played twice, at first to learn how long it is.

    Args:
        agents: {label: as one of the agents of `evaluate`}.
        env_id, env_kwargs, seed, episode, trust: as for `play`.
        frames: at most, without that before the first pull; a number, or a function of the number of arms.
    """
    if not callable(frames):
        frames = integer("frames", frames, FEWEST_FRAMES, MOST_ASKED)
    how: dict[str, Any] = {"env_kwargs": env_kwargs, "seed": seed, "episode": episode, "trust": trust}
    traces = [play(agent, env_id, **how) for agent in agents.values()]
    end = max(1, *(len(trace.arms) for trace in traces))
    at = moments(end, frames(traces[0].task.K) if callable(frames) else frames)
    made = []
    for label, agent in agents.items():
        trace = play(agent, env_id, at=at, **how)
        made.append(Film(label, trace, Viewer(trace.task)))
    return made


def film(agent: Any, env_id: str, label: str | None = None, **how: Any) -> Film:
    """The episode of a single agent; see `films`."""
    return films({str(agent) if label is None else label: agent}, env_id, **how)[0]
