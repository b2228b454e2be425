"""What an agent reads, checked where it enters: statistics or a history, of a batch of episodes or of a single one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task
from bandit_envs.envs import entries_of
from bandit_envs.kernels import as_array

# The parts of what an agent reads, by the form of its observations.
READ = {
    "statistics": ("pulls", "total", "mean", "variance", "remaining", "public_seed"),
    "history": ("arms", "samples", "times", "length", "remaining", "public_seed"),
}
_FLOATS = ("total", "mean", "variance", "samples", "scores")
MOST_PULLS = 2**53  # up to here a float has every integer
MOST_SPENT = 2.0**62  # pulls of an episode, that no sum of them overflows
ROUNDING = 2.0**-52  # relative: of each addition to a sum, and some more; see `Problem.certified_level`
Observation = Mapping[str, NDArray[Any]]


def part_of(part: str, value: Any) -> NDArray[Any]:
    """A part of an observation as an array, of numbers that it may hold."""
    kinds, what = ("iuf", "an array of numbers") if part in _FLOATS else ("iu", "an integer array")
    array = as_array(value)
    if array.dtype.kind not in kinds:
        raise ValueError(f"{part} must be {what}, got {value!r:.200}")
    return array


def shapes_of(task: Task, E: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the parts in observations of E episodes."""
    H, D, values = task.entries, (task.D,) * (task.D > 1), (task.K,) if task.D == 1 else (task.K, task.D)
    shapes = {"pulls": task.shape, "total": values, "mean": values, "variance": values, "arms": (H,), "times": (H,)}
    shapes |= {"samples": (H, *D) if task.pull == "arm" else (H,), "scores": (task.K, task.items or 0, *D)}
    first, *others = READ[task.observation]
    parts = [first, *["scores"] * bool(task.items and first == "pulls"), *others]
    return {part: (E, *shapes.get(part, (1,))) for part in parts}


def fitted(name: str, task: Task, observation: Any, whole: bool = False) -> tuple[Observation, bool]:
    """An observation as arrays of the right shapes with a leading episode axis, and whether it had none.

    A ValueError names a part that does not fit, and parts that are missing: the first one and scores, which kernels
    read without a look; where all must be there, `whole`, any.
    """
    shapes = shapes_of(task, 1)
    (first, one), *_ = shapes.items()
    of = "statistics" if task.observation == "statistics" else "a history"
    if not isinstance(observation, Mapping):
        raise ValueError(f"{name} reads a dict of {of}, got {type(observation).__name__}")
    missing = [part for part in shapes if part not in observation]
    if missing and (whole or {first, "scores"} & {*missing}):
        raise ValueError(f"{name} reads a dict of {of}, got a dict without {', '.join(missing)}")
    batch = {part: part_of(part, value) if part in shapes else value for part, value in observation.items()}
    if single := batch[first].ndim < len(one):
        batch = {part: np.asarray(array)[None] for part, array in batch.items()}
    E = len(batch[first])
    for part, shape in shapes_of(task, E).items():
        if part in batch and batch[part].shape != shape:
            wanted = f"({', '.join(map(str, shape))}) for {E} episodes and {task.K} arms"
            raise ValueError(f"{name}: {part} must have the shape {wanted}, got {batch[part].shape}")
    return batch, single


def checked(name: str, task: Task, observation: Any) -> Observation:
    """A batch with all its parts, see `fitted`, and the values that an environment could have shown."""
    found, _ = fitted(name, task, observation, whole=True)
    if task.observation == "statistics":
        pulls, part, by = found["pulls"], "mean", found["mean"]
        if pulls.size and not 0 <= pulls.min() <= pulls.max() <= MOST_PULLS:
            odd = pulls.min() if pulls.min() < 0 else pulls.max()
            raise ValueError(f"pulls must be >= 0, and at most 2^53, got {odd}")
        spent = pulls.sum(axis=tuple(range(1, pulls.ndim)), dtype=np.float64)  # of integers, the sum might overflow
        if (spent > MOST_SPENT).any():
            raise ValueError(f"the pulls of an episode must sum to 2^62 at most, got {spent.max():g}")
    else:
        inside = entries_of(task, found["arms"], found["times"], found["length"])
        pulls, part, by = np.where(inside, found["times"], 0), "samples", found["samples"]
    if task.support is not None and task.distribution != "gaussian" and pulls.size:
        low, high = task.support
        size, added = max(abs(low), abs(high)), pulls if pulls.shape == by.shape else pulls[..., None]
        ranged: list[tuple[str, Any, Any, Any]] = [(part, by, added > 0, ROUNDING * size * (added + 8.0))]
        if task.items and "scores" in found:  # NaN of a row that failed
            there = np.arange(min(pulls.max(), task.items)) < pulls[..., None]
            scores = found["scores"][:, :, : there.shape[2]]
            scored = (there if task.D == 1 else there[..., None]) & ~np.isnan(scores)
            ranged = [(part, by, (added > 0) & scored.any(axis=2), ROUNDING * size * (added + 8.0))]
            ranged.append(("scores", scores, scored, ROUNDING * size * 8.0))
        for part, array, seen, reach in ranged:
            outside = seen & ~((array >= low - reach) & (array <= high + reach))
            if outside.any():
                odd = array[outside][0]
                raise ValueError(f"{part} must lie in the support [{low:g}, {high:g}] of the arms, got {odd}")
    return found
