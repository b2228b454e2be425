"""What is searched, `SearchSpace`, and a search for many parameters at once, in the form of the package cmaes.

Each generation draws directions z, and compares the candidates x + s z and x - s z, which have played the same
episodes. The mean of z (f(x + s z) - f(x - s z)) / 2 s estimates the gradient of f (Salimans et al. 2017); differences
are divided by their root mean square, so that f has no scale, and Adam (Kingma & Ba 2015) takes the step. Steps become
smaller with the root of the time, as gains become small beside the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bandit_envs import Task

from ..core.agent import Bools, Floats, Ints
from . import network
from .formula import LSA
from .parameters import index_start, parameter_names

# How far the search goes at first. A parameter of scale 0 is not searched: alpha, as only the order of the indices
# counts, and the second bend.
SCALES = (0.0, 0.2, 0.5, 0.5, 0.2, 0.1, 0.1, 0.3, 0.5, 0.5, 0.2, 0.5, 0.8, *[0.0] * 5)
STOP_SCALES = (0.7, 0.15)
BEND, BENDING, OUT = 0.7, 0.3, 0.15  # the weights of the network: standard deviation at first, scale, scale of `out`
FINER = 0.3  # of their scales are the parameters of the index searched by, together with the network


def starting_point(stops: bool) -> tuple[list[float], list[float], list[float]]:
    """The parameters of the index of LSA, which losses are compared with; where the search starts; and the scales."""
    start = index_start(stops)
    return [*LSA, *start[len(LSA) :]], start, [*SCALES, *(STOP_SCALES if stops else ())]


@dataclass(frozen=True)
class SearchSpace:
    """The parameters that are searched; a point x of the space stands for parameters, x = 0 for the start."""

    names: list[str]  # of all parameters, as are `start` and `scales`
    start: Floats
    scales: Floats
    searched: Ints  # (S,), their numbers
    reference: list[float]  # parameters to compare losses with
    bends: Bools  # (W,), which parameters of a network are searched

    def parameters(self, x: Floats) -> list[float]:
        """The parameters at a point x, (S,): those that are searched lie x times their scales away from the start."""
        at = self.start.copy()
        at[self.searched] += self.scales[self.searched] * x
        return [float(v) for v in at]

    def with_network(self, parameters: Sequence[float], seed: int) -> SearchSpace:
        """The space around these parameters and their network, or one that corrects nothing yet, by a seed."""
        own, known = parameters[: len(self.names)], parameters[len(self.names) :]
        bends = self.bends[: -network.HIDDEN]
        weights = np.where(bends, BEND * np.random.default_rng(seed).standard_normal(len(bends)), 0.0)
        scales = np.concatenate([FINER * self.scales, BENDING * bends, np.full(network.HIDDEN, OUT)])
        kept = np.zeros(len(scales), np.bool_)
        kept[self.searched], kept[len(self.scales) :] = True, scales[len(self.scales) :] > 0
        start = np.concatenate([own, known if any(known) else [*weights, *[0.0] * network.HIDDEN]])
        names, reference = [*self.names, *network.WEIGHTS], [*self.reference, *[0.0] * len(network.WEIGHTS)]
        searched = np.flatnonzero(kept)
        return replace(self, names=names, start=start, scales=scales, searched=searched, reference=reference)


def search_space(task: Task, local: bool, wanted: Sequence[str] | None) -> SearchSpace:
    """The parameters to search: `wanted`, or all with a scale; `local`: a network sees its own arm alone."""
    stops = task.budget is None
    names = [*parameter_names(stops)[: -len(network.WEIGHTS)]]
    reference, start, scales = starting_point(stops)
    inputs = (name.rpartition("_")[0] for name in network.WEIGHTS)
    bends = np.array([not local or one in (*network.SINGLE, "out") or one == "border" and task.D > 1 for one in inputs])
    searched = np.flatnonzero(scales)
    if wanted is not None:
        free = [names[i] for i in searched]
        if len(set(wanted)) < 2 or not set(wanted) <= set(free):
            raise ValueError(f"searched must name at least two of {', '.join(free)}, got {wanted!r}")
        searched = np.array([i for i in searched if names[i] in wanted])
    return SearchSpace(names, np.array(start), np.array(scales), searched, reference, bends)


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
