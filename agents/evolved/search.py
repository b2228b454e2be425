"""Gradients from pairs of candidates: a search for many parameters at once, in the form of the package cmaes.

Each generation draws directions z, and compares the candidates x + s z and x - s z, which have played the same
episodes. The mean of z (f(x + s z) - f(x - s z)) / 2 s estimates the gradient of f (Salimans et al. 2017); differences
are divided by their root mean square, so that f has no scale, and Adam (Kingma & Ba 2015) takes the step. Steps become
smaller with the root of the time, as gains become small beside the noise.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.agent import Floats

SLOWING = 10.0  # generations after which the step is smaller by the root of 2
FIRST, SECOND, TINY = 0.9, 0.98, 1e-8  # Adam: decay of both moments, and what keeps from dividing by 0


class MirroredSearch:
    """The search, from x = 0 on; `spread` is s, `step` the first one of Adam, the size of the population even."""

    def __init__(self, dimensions: int, spread: float, step: float, population_size: int, seed: int) -> None:
        self.mean = np.zeros(dimensions)
        self.spread, self.step, self.population_size = spread, step, population_size
        self._random, self._left, self._steps = np.random.default_rng(seed), list[Floats](), 0
        self._first, self._second = np.zeros(dimensions), np.zeros(dimensions)

    def ask(self) -> Floats:
        """The next candidate; after each the one on the other side of the mean."""
        if not self._left:
            z = self._random.standard_normal((self.population_size // 2, len(self.mean)))
            self._left = [part for one in z for part in (self.mean - self.spread * one, self.mean + self.spread * one)]
        return self._left.pop()

    def tell(self, solutions: list[tuple[Floats, float]]) -> None:
        """Take a step. solutions: all candidates of a generation in the order of `ask`, and how bad they are."""
        x, f = (np.array(part) for part in zip(*solutions, strict=True))
        z, change = (x[0::2] - x[1::2]) / (2 * self.spread), f[0::2] - f[1::2]
        slope = change @ z / (math.sqrt(float(change @ change) / len(change)) + TINY) / len(change)
        self._steps += 1
        self._first = FIRST * self._first + (1 - FIRST) * slope
        self._second = SECOND * self._second + (1 - SECOND) * slope**2
        first = self._first / (1 - FIRST**self._steps)
        second = float((self._second / (1 - SECOND**self._steps)).mean())  # one scale for all, as for the noise
        step = self.step / math.sqrt(1.0 + self._steps / SLOWING)
        self.mean = self.mean - step * first / (math.sqrt(second) + TINY)
