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
from .claims import Found, Number, ratio
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


def same_pulls(panel: str, K: int) -> Number:
    """AdaptiveTopK with the paper's constants is uniform sampling."""
    return Number(panel, f"AdaptiveTopK pulls all arms alike, K = {K}", _number(f"{SPREAD}, K = {K}"), 0, 0)


def decided(panel: str, K: int) -> Number:
    """A round decides many arms."""
    return Number(panel, f"a round decides a tenth of the arms, K = {K}", _number(f"{DECIDED}, K = {K}"), 100)


def t_grows(panel: str) -> Number:
    """The number t grows with K."""
    text = "t at K = 500 is larger than at K = 100"
    return ratio(panel, text, _number("t, K = 500"), _number("t, K = 100"), 1.01)


def hardness_falls(panel: str) -> Number:
    """The hardness falls with K."""
    text = "H at K = 500 is smaller than at K = 100"
    return ratio(panel, text, _number("H, K = 500"), _number("H, K = 100"), most=0.99)


def _number(name: str) -> Found:
    return lambda _, result: result.number(name)


FIGURES = declared(
    "chen2017",
    {
        "hardness of two-group": Exact("hardness of two-group", _hardness),
        **{f"pulls on {data}": Exact("pulls of AdaptiveTopK", partial(_spreads, data)) for data in LARGEST},
    },
    {"same pulls": same_pulls, "decided": decided, "t grows": t_grows, "H falls": hardness_falls},
)
