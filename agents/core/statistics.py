"""The statistics that an agent reads, checked where they enter: a batch of episodes, or a single one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task

__all__ = ["STATISTICS", "arrays", "checked"]

STATISTICS = ("pulls", "total", "mean", "variance", "remaining", "public_seed")
_INTEGERS = ("pulls", "remaining", "public_seed")
MOST_PULLS = 2**53  # up to here a float has every integer
ROUNDING = 1e-6  # relative: more than the rounding error of a mean of 10^9 samples
Observation = Mapping[str, NDArray[Any]]


def arrays(name: str, observation: Any) -> Observation:
    """The statistics as arrays, where some are lists.

    Args:
        name: of the agent, for messages.

    Raises:
        ValueError: for what is no dict of statistics, and for what cannot be an array of numbers.
    """
    if not isinstance(observation, Mapping):
        raise ValueError(f"{name} reads a dict of statistics, got {type(observation).__name__}")
    if missing := [part for part in STATISTICS if part not in observation]:
        raise ValueError(f"{name} reads a dict of statistics, got a dict without {', '.join(missing)}")
    found = {part: np.asarray(value) for part, value in observation.items() if part not in STATISTICS}
    for part in STATISTICS:
        kinds, what = ("iu", "an integer array") if part in _INTEGERS else ("iuf", "an array of numbers")
        try:
            array = np.asarray(observation[part])
        except (TypeError, ValueError):  # ragged
            array = np.asarray(None)
        if array.dtype.kind not in kinds:
            raise ValueError(f"{part} must be {what}, got {observation[part]!r:.200}")
        found[part] = array
    return found


def checked(name: str, task: Task, observation: Any) -> Observation:
    """The statistics of a batch, as arrays of the shapes and values that an environment could have shown.

    Args:
        name: of the agent, for messages.
        task: its task.

    Raises:
        ValueError: naming what is wrong.
    """
    found = arrays(name, observation)
    pulls, mean = found["pulls"], found["mean"]
    E, values = len(pulls), (task.K,) if task.D == 1 else (task.K, task.D)
    shapes = {"pulls": task.shape, "remaining": (1,), "public_seed": (1,)}
    for part in STATISTICS:
        if found[part].shape != (E, *shapes.get(part, values)):
            wanted = ", ".join(map(str, (E, *shapes.get(part, values))))
            raise ValueError(f"{part} must have the shape ({wanted}), got {found[part].shape}")
    if pulls.size and not 0 <= pulls.min() <= pulls.max() <= MOST_PULLS:
        odd = pulls.min() if pulls.min() < 0 else pulls.max()
        raise ValueError(f"pulls must be >= 0, and at most 2^53, got {odd}")
    if task.support is not None and task.law != "gaussian" and pulls.size:
        low, high = task.support
        reach = ROUNDING * max(abs(low), abs(high))
        seen = pulls > 0 if pulls.shape == mean.shape else (pulls > 0)[..., None]
        outside = seen & ~((mean >= low - reach) & (mean <= high + reach))
        if outside.any():
            raise ValueError(f"mean must lie in the support [{low:g}, {high:g}] of the arms, got {mean[outside][0]}")
    return found
