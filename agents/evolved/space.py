"""The parameters that are searched: where the search starts, how far it goes, and what losses are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task

from ..core.agent import Floats
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
    searched: NDArray[np.int64]  # (S,), their numbers
    reference: list[float]  # parameters to compare losses with
    bends: NDArray[np.bool_]  # (W,), which parameters of a network are searched

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
