"""Chen, Chen, Zhang & Zhou, ICML 2017, Figures 1 to 4: failure probability against the budget, four data sets.

A run fails where the aggregate regret of its answer exceeds epsilon = 0.01, which is the error of these instances. With
the paper's constants AdaptiveTopK is uniform sampling at all of these budgets: its first round cannot decide an arm,
and its second ends at 267,000 pulls. Hence a line of uniform sampling, and one with other constants.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from ..evaluation import play
from .claims import Number, ratio
from .declared import declared
from .panels import Exact, Numbers, bars

ENV = "bandit_envs/TopK-v0"
LARGEST = {"two-group": 100_000, "synthetic-0.5": 40_000, "uniform": 60_000, "synthetic-6": 80_000}  # budgets
SIZES = (100, 250, 500)
AGENTS = "adaptive-top-k", "adaptive-top-k(constants='practical')"
SPREAD, DECIDED = "largest less least pulls", "arms with as many pulls, practical"

# What has no chance in it: the hardness of two-group, and how AdaptiveTopK spreads its pulls in an episode.


def _hardness(seed: int) -> Numbers:
    """t(epsilon, K) and H(t, epsilon) of two-group. [equations 3 to 6]"""
    found: dict[str, float] = {}
    for K in SIZES:
        envs: Any = gym.make_vec(ENV, num_envs=1, instance=f"chen2017-two-group(K={K})").unwrapped
        theta, epsilon = np.sort(envs.instance.arms.means)[::-1], envs.task.parameters["epsilon"]
        gaps = np.where(np.arange(len(theta)) < K, theta - theta[K], theta[K - 1] - theta)
        able = [t for t in range(K) if max(gaps[K - t - 1], gaps[K + t]) * t <= K * epsilon]
        t = max(able)
        psi = max(epsilon, min(gaps[K - t - 1], gaps[K + t]))
        found |= {f"t, K = {K}": t, f"H, K = {K}": float((np.maximum(gaps, psi) ** -2.0).sum())}
    return bars(found, {"env_id": ENV})


def _spreads(data: str, seed: int) -> Numbers:
    """Of an episode at the largest budget: by how many pulls arms differ, and the most arms that a round decides."""
    found: dict[str, float] = {}
    for K in SIZES:
        kwargs = {"instance": f"chen2017-{data}(K={K})", "budget": LARGEST[data]}
        paper, ours = (play(agent, ENV, env_kwargs=kwargs, seed=seed).pulls for agent in AGENTS)
        found |= {f"{SPREAD}, K = {K}": float(np.ptp(paper))}
        found |= {f"{DECIDED}, K = {K}": float(np.unique(ours, return_counts=True)[1].max())}
    return bars(found, {"env_id": ENV})


def _number(panel: str, K: int, text: str, name: str, *limits: float) -> Number:
    """The number of this name at K lies within limits."""
    return Number(panel, f"{text}, K = {K}", lambda _, result: result.number(f"{name}, K = {K}"), *limits)


def _ratio(panel: str, order: str, name: str, *limits: float) -> Number:
    """The number of this name at K = 500, over that at K = 100, lies within limits."""
    over, under = (lambda _, result, K=K: result.number(f"{name}, K = {K}") for K in (500, 100))
    return ratio(panel, f"{name} at K = 500 is {order} than at K = 100", over, under, *limits)


FIGURES = declared(
    "chen2017",
    {
        "hardness of two-group": Exact("hardness of two-group", _hardness),
        **{f"pulls on {data}": Exact("pulls of AdaptiveTopK", partial(_spreads, data)) for data in LARGEST},
    },
    {
        "same pulls": lambda panel, K: _number(panel, K, "AdaptiveTopK pulls all arms alike", SPREAD, 0, 0),
        "decided": lambda panel, K: _number(panel, K, "a round decides a tenth of the arms", DECIDED, 100),
        "t grows": lambda panel: _ratio(panel, "larger", "t", 1.01),
        "H falls": lambda panel: _ratio(panel, "smaller", "H", 0.0, 0.99),
    },
)
