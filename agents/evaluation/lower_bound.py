"""Lower bound of the mean number of pulls of any agent, where the problem knows one for this distribution of arms."""

from __future__ import annotations

import functools
import inspect
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Arms, Bernoulli, Gaussian, Problem, PureExplorationVectorEnv


def lower_bound_of(envs: PureExplorationVectorEnv) -> float:
    """Pulls that the task takes on average, where the problem knows it for arms of this distribution; else NaN.

    A bound for arms of standard deviation 1 grows with the variance of Gaussian arms that all have the same one. With a
    budget, by which runs may end too, nothing is to be compared with it.
    """
    if envs.instance is None or envs.task.delta is None or envs.task.budget is not None:
        return math.nan
    arms, factor, problem = envs.instance.arms, 1.0, envs.problem
    if "distribution" in inspect.signature(problem.lower_bound).parameters:
        return _bound_for_distribution(problem, arms, envs.task.delta)
    if problem.unit_gaussian_bound:
        if not isinstance(arms, Gaussian) or arms.variances.min() < arms.variances.max():
            return math.nan
        factor = float(arms.variances.max())
    return factor * float(envs.problem.lower_bound(arms.means, envs.task.delta))


def _bound_for_distribution(problem: Problem, arms: Arms, delta: float) -> float:
    """The bound for Bernoulli arms, and Gaussian ones of one variance; NaN for others, and where there is none."""
    if isinstance(arms, Bernoulli):
        distribution, sigma = "bernoulli", 0.5
    elif isinstance(arms, Gaussian) and 0 < arms.variances.min() == arms.variances.max():
        distribution, sigma = "gaussian", float(arms.variances.max()) ** 0.5
    else:
        return math.nan
    if not problem.quick_bound(len(arms.means)):  # the game takes long: the paper's, which is smaller
        return sigma**2 * problem.paper_lower_bound(arms.means, delta) if distribution == "gaussian" else math.nan
    asked = _Asked(repr((problem, arms.means.tolist())), problem, arms.means)
    return _bound_of(asked, delta, distribution, sigma)


@dataclass(frozen=True)
class _Asked:
    """An instance of a problem; equal where their texts, which describe them in full, are."""

    text: str
    problem: Problem = field(compare=False)
    means: NDArray[np.float64] = field(compare=False)


@functools.lru_cache(maxsize=256)
def _bound_of(asked: _Asked, delta: float, distribution: str, sigma: float) -> float:
    """The bound of an instance, worked out once for all agents that meet it; NaN if there is none."""
    try:
        found = float(asked.problem.lower_bound(asked.means, delta, distribution=distribution, sigma=sigma))
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):  # arms of several dimensions that are not Gaussian
        return math.nan
    return found if math.isfinite(found) else math.nan
