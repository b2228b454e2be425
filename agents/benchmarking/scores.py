"""Scores of the benchmark: uniform sampling has 0, the best agent that is known has 1, or the exact optimum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import BenchmarkTask

from ..evaluation.statistics import bootstrap_means

LOWEST, HIGHEST = -0.9, 1.2  # scores of valid agents: below 0 they are folded, as slow agents have no end
INVALID = -1.0  # the score of a task on which an agent errs more often than delta
LEVEL = 0.01  # of all tests of this together, one-sided
CUT = 2.0  # what an episode that is cut at max_pulls counts, in max_pulls
REPLICATES = 2000  # of the bootstrap, which resamples the episodes of each task separately
Floats = NDArray[np.float64]


def score(task: BenchmarkTask, value: Floats | float) -> Floats:
    """The score of mean values on a task, elementwise: 0 at `task.uniform`, 1 at `task.best`.

    With a budget a value is a mean score: (value - uniform) / (best - uniform). With a delta it is a mean number of
    pulls: log(uniform / value) / log(uniform / best). To halve the pulls then adds the same score at any level. This is
    `folded`.
    """
    return folded(unfolded(task, value))


def unfolded(task: BenchmarkTask, value: Floats | float) -> Floats:
    """The same without ends."""
    x = np.asarray(value, np.float64)
    if task.fixed_confidence:
        return np.asarray(np.log(task.uniform / np.maximum(x, 1e-9)) / math.log(task.uniform / task.best))
    return np.asarray((x - task.uniform) / (task.best - task.uniform))


def folded(scores: Floats) -> Floats:
    """Scores x in (LOWEST, HIGHEST], by an increasing function: x from 0 on, L x / (L + x) with L = LOWEST below 0."""
    below = np.minimum(scores, 0.0)
    return np.asarray(np.where(scores < 0, LOWEST * below / (LOWEST + below), np.minimum(scores, HIGHEST)))


def errs_too_often(errors: int, episodes: int, delta: float, level: float) -> bool:
    """Whether so many errors are too many for an agent that errs with probability delta: P(X >= errors) < level."""
    from scipy.special import bdtrc

    return errors > delta * episodes and float(bdtrc(errors - 1, episodes, delta)) < level


def interquartile_mean(scores: Floats) -> Floats:
    """The mean of the middle half of the tasks, (..., tasks) -> (...): Agarwal et al. 2021, section 4.3.

    Where a quarter of the tasks is no whole number, it is rounded down, as by `scipy.stats.trim_mean`.
    """
    ordered = np.sort(scores, axis=-1)
    n = ordered.shape[-1]
    return np.asarray(ordered[..., n // 4 : n - n // 4].mean(axis=-1))


def replicates(task: BenchmarkTask, episodes: Floats, seed: int) -> Floats:
    """Scores of a task, (REPLICATES,), one for each resample of its episodes: their scores or pulls, (n,)."""
    return score(task, bootstrap_means(episodes, REPLICATES, seed))


def percentile_interval(samples: Floats, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of bootstrap samples."""
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def with_interval(row: Any, name: str) -> str:
    """A score of a row of `Benchmark.summary` with its interval, as text; "" where the row has no score."""
    score, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    return "" if math.isnan(score) else f"{score:.2f} [{low:.2f}, {high:.2f}]"
