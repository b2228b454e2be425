"""The chance that the plug-in answer is wrong about an arm, given its samples and the law that its mean was drawn from.

Where instances are drawn from a known law, the number of misclassified arms may be replaced by its expectation given
all samples: the same mean over episodes for every policy, whatever it does, with far less noise (Rao & Blackwell). Both
the evolution of an index and the rewards of PPO use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import PureExplorationVectorEnv, Sampler

from ..core.optional import require

__all__ = ["expectable", "losses", "wrong"]

Floats = NDArray[np.float64]
FAINT = 1e-280  # likelihoods below this are compared at the ends of the intervals instead


def expectable(envs: PureExplorationVectorEnv) -> bool:
    """Whether `wrong` tells the expected return: arms scored at a boundary without tolerance, a Bernoulli sampler."""
    problem, source = envs.problem, envs.setting.source
    return (
        envs.setting.reward == "score"
        and problem.scores_arms
        and problem.boundary is not None
        and problem.tolerance == 0.0
        and type(source) is Sampler  # a subclass may draw its means from another law
        and source.law == "bernoulli"
        and source.D == 1
    )


def _pieces(sampler: Sampler) -> list[tuple[float, float]]:
    """The intervals over which the means are uniform."""
    [(kind, values)] = sampler.to_dict()["sampler"]["mean"].items()
    if kind == "uniform":
        low, high = values
        return [(low, high)]
    if kind == "around":
        centre, least, most = values
        return [(centre - most, centre - least), (centre + least, centre + most)]
    return [(value, value) for value in values]


def wrong(sampler: Sampler, threshold: float, pulls: NDArray[np.int64], mean: Floats) -> Floats:
    """P(the plug-in answer is wrong about the arm | its samples), elementwise.

    Args:
        sampler: the law of the instances, one that `known` accepts. threshold: theta.
        pulls, mean: (...,) of the arms; one never pulled is answered as below.
    """
    special: Any = require("scipy.special", "a posterior")
    states, where = np.unique(pulls + 1j * np.rint(pulls * mean), return_inverse=True)  # many arms share a state
    n, ones = states.real, states.imag
    zeros = n - ones
    with np.errstate(divide="ignore"):
        peak = special.xlogy(ones, ones / np.maximum(n, 1)) + special.xlogy(zeros, zeros / np.maximum(n, 1))

    def likelihood(x: float) -> Floats:
        density: Floats = np.exp(special.xlogy(ones, x) + special.xlog1py(zeros, -x) - peak)
        return density

    below, above = np.zeros(len(states)), np.zeros(len(states))
    beta = special.betaln(ones + 1, zeros + 1) - peak
    for low, high in _pieces(sampler):
        for start, end, mass in ((low, min(high, threshold), below), (max(low, threshold), high, above)):
            if start == end and low == high:
                if (start < threshold) == (mass is below):
                    mass += likelihood(start)
            elif start < end:
                weight = special.betainc(ones + 1, zeros + 1, end) - special.betainc(ones + 1, zeros + 1, start)
                mass += np.maximum(weight, 0.0) * np.exp(beta) + FAINT * (likelihood(start) + likelihood(end))
    answered = (pulls > 0) & (mean >= threshold)
    total = (below + above)[where].reshape(pulls.shape)
    lost = np.where(answered, below[where].reshape(pulls.shape), above[where].reshape(pulls.shape))
    return np.where(total > 0, lost / np.where(total > 0, total, 1.0), 0.5)


def losses(envs: PureExplorationVectorEnv, agent: Any, root: int, episodes: NDArray[np.int64]) -> Floats:
    """What an agent loses in each slot's episode, (N,): 1 - return; if `expectable`, its expectation given all samples.

    Args:
        envs: with actions="arm", autoreset DISABLED, and observations in the form that the agent reads.
        root, episodes: of the episodes, their numbers (N,).
    """
    observation, _ = envs.reset(seed=root, options={"episode": episodes})
    begins, state = np.ones(len(episodes), np.bool_), None
    returns, ended = np.zeros(len(episodes)), np.zeros(len(episodes), np.bool_)
    while not ended.all():
        arms, state = agent.predict(observation, state, begins, deterministic=True)
        observation, reward, terminated, truncated, _ = envs.step(arms)
        returns += reward
        begins, ended = np.zeros_like(begins), terminated | truncated
    if not expectable(envs):
        return 1.0 - returns
    source: Any = envs.setting.source
    seen = np.nan_to_num(envs.means())
    cost = envs.task.pull_cost * envs.pulls.sum(1)
    expected: Floats = cost + wrong(source, envs.problem.boundary, envs.pulls, seen).mean(1)  # type: ignore[arg-type]
    return expected
