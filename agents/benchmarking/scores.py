"""Scores of the benchmark: uniform sampling has 0; 1 is the best that is known, or a bound that is proven."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs import BenchmarkTask
from bandit_envs.kernels import Floats

from ..evaluation.statistics import bootstrap_means

CUT = 2.0  # what an episode that is cut at max_pulls counts, in max_pulls
REPLICATES = 2000  # of the bootstrap, which resamples the episodes of each task separately


def score(task: BenchmarkTask, value: Floats | float, uniform: Floats | float) -> Floats:
    """The score of mean values on episodes where `uniform` has these, elementwise: 0 there.

    With a budget a value is a mean score: (value - uniform) / (task.best - task.uniform). With a delta it is a mean
    number of pulls: log(uniform / value) / log(task.uniform / task.best). To halve the pulls then adds the same score
    at any level. The unit is that of the printed episodes, on which 1 is at `task.best`.
    """
    x, base = np.asarray(value, np.float64), np.asarray(uniform, np.float64)
    if task.fixed_confidence:
        return np.asarray(np.log(base / np.maximum(x, 1e-9)) / math.log(task.uniform / task.best))
    return np.asarray((x - base) / (task.best - task.uniform))


def interquartile_mean(scores: Floats) -> Floats:
    """The mean of the middle half of the tasks, (..., tasks) -> (...): Agarwal et al. 2021, section 4.3.

    Where a quarter of the tasks is no whole number, it is rounded down, as by `scipy.stats.trim_mean`.
    """
    ordered = np.sort(scores, axis=-1)
    n = ordered.shape[-1]
    return np.asarray(ordered[..., n // 4 : n - n // 4].mean(axis=-1))


def replicates(task: BenchmarkTask, episodes: Floats, base: Floats, seed: int) -> Floats:
    """Scores of a task, (REPLICATES,), one for each resample of its episodes: scores or pulls, and those of uniform."""
    return score(task, *bootstrap_means(np.stack([episodes, base], axis=1), REPLICATES, seed).T)


def percentile_interval(samples: Floats, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of bootstrap samples."""
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def with_interval(row: Any, name: str, how: str = "{:.2f}") -> str:
    """A number of a row of a table with its interval, as text; "" where there is none."""
    score, low, high = (how.format(row[one]) for one in (name, f"{name}_low", f"{name}_high"))
    return "" if math.isnan(row[name]) else f"{score} [{low}, {high}]"
