"""A prior over tables of scores: choosing one of many prompts or language models."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..kernels import rng
from ..kernels.checks import integer, number
from .arms import Form
from .instance import Sampler

Floats = NDArray[np.float64]


class PromptSelection(Sampler):
    """Fresh candidates in each episode: K prompts or models, graded right or wrong, whose accuracies are logit-normal.

    The logits of the accuracies are independent normal numbers. The defaults are fitted to the win rates of the 223
    models of the leaderboard AlpacaEval 2; accuracy .81 and spread 1.12 to the 102 of AlpacaEval 1.

    Args:
        K: candidates, 2 or more.
        accuracy: median of the accuracies, in (0, 1).
        spread: standard deviation of their logits, > 0.
    """

    name = "prompt-selection"
    positive = True

    def __init__(self, K: int = 30, accuracy: float = 0.16, spread: float = 1.26) -> None:
        K = integer("K", K, 2, rng.ARMS_LIMIT)
        self.accuracy = number("accuracy", accuracy, 0, 1, above=True, below=True)
        self.logit_spread = number("spread", spread, 0, 20, above=True)
        super().__init__("bernoulli", K)

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        u = rng.uniforms(key, episode, self.K, self.D, stream=rng.INSTANCE)
        logit = math.log(self.accuracy / (1 - self.accuracy)) + self.logit_spread * rng.normal_quantiles(u)
        means = 1.0 / (1.0 + np.exp(-logit))
        return means[..., 0], self.pack(means)

    def to_dict(self) -> Form:
        return {self.name: {"K": self.K, "accuracy": self.accuracy, "spread": self.logit_spread}}
