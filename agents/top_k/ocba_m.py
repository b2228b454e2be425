"""OCBA-m, Optimal Computing Budget Allocation for the m best: Chen, He, Fu & Lee, INFORMS J. on Computing 2008.

symbols     m_(j) the j-th largest empirical mean, se_j = s_j / sqrt(N_j) its standard error, c the cutoff between
            m_(m+1) and m_(m), Delta pulls per allotment; m is the problem's k
departures  D1 the 2010 paper's sequential form (Delta = 1): of the arms below their targets one is drawn, with
               probability proportional to its target; Delta > 1 is the original, by whole allotments
            D2 s_i^2 >= 1e-12, |m_i - c| >= 1e-9
            D3 targets are rounded to the nearest integer, halves up; an allotment that rounds to nothing is drawn as D1
            D4 ties go to the lowest arm
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import agent_uniform, at_boundary, cutoff, integer, jit

from ..core.agent import Ints, Observation
from .selection import SelectionMemory, TopKAgent, open_round

__all__ = ["OCBAm"]

LEAST_VARIANCE, LEAST_DISTANCE = 1e-12, 1e-9


@dataclass
class Memory(SelectionMemory):
    """Memory of OCBA-m for E episodes."""

    owed: Ints  # (E, K) pulls of the current allotment that are still to be made
    debt: Ints  # (E,) how many


@jit
def _targets(pulls: Any, mean: Any, variance: Any, e: Any, inside: Any, total: Any, target: Any) -> Any:
    """Fill target (K,) with the allotment of `total` pulls.   [lines 3-5]"""
    K = np.uint64(mean.shape[1])
    i: Any  # an arm
    for i in range(K):
        N = float(pulls[e, i])
        target[i] = max(variance[e, i] * (N / (N - 1.0)), LEAST_VARIANCE)  # s_i^2
    l, h = at_boundary(mean, e, inside)  # noqa: E741
    c = cutoff(
        mean[e, l], mean[e, h], math.sqrt(target[l] / float(pulls[e, l])), math.sqrt(target[h] / float(pulls[e, h]))
    )
    weights = 0.0
    for i in range(K):
        gap = max(abs(mean[e, i] - c), LEAST_DISTANCE)
        target[i] = target[i] / (gap * gap)
        weights += target[i]
    for i in range(K):
        target[i] = total * (target[i] / weights)


@jit
def _next(
    pulls: Any,
    mean: Any,
    variance: Any,
    public: Any,
    seed: Any,
    k: Any,
    n0: Any,
    Delta: Any,
    owed: Any,
    debt: Any,
    inside: Any,
    between: Any,
    place: Any,
    made: Any,
    last: Any,
    out: Any,
) -> Any:
    """The next arm of each episode."""
    K = np.uint64(mean.shape[1])
    target = np.empty(K)
    for episode in range(len(out)):
        e = np.uint64(episode)
        out[e] = open_round(pulls, mean, e, k, n0, inside, between, place, made, last)  # line 1
        if out[e] < K:
            debt[e] = 0
            continue
        if debt[e] == 0:
            _targets(pulls, mean, variance, e, inside, float(made[e] + Delta), target)
            for i in range(K):  # line 6
                owed[e, i] = 0 if Delta == 1 else max(np.int64(math.floor(target[i] + 0.5)) - pulls[e, i], 0)
                debt[e] += owed[e, i]
            if debt[e] == 0:  # D1
                total, partial = 0.0, 0.0
                for i in range(K):
                    total += target[i] if float(pulls[e, i]) < target[i] else 0.0
                u = agent_uniform(public[e], made[e], seed) * total
                for i in range(K):
                    partial += target[i] if float(pulls[e, i]) < target[i] else 0.0
                    if partial > u:
                        owed[e, i] = debt[e] = 1
                        break
        for i in range(K):
            if owed[e, i] > 0:
                owed[e, i] -= 1
                out[e] = last[e] = i
                break
        debt[e] -= 1
        made[e] += 1


class OCBAm(TopKAgent):
    """OCBA-m (Chen, He, Fu & Lee 2008), in the sequential form of Kalyanakrishnan & Stone 2010 unless Delta > 1.

    Args:
        task: a task or an environment. n0: first pulls of each arm, >= 2 (the authors: 20, at least 5).
        Delta: pulls per allotment, >= 1. seed: the agent's own seed, an integer in 0 .. 2^32 - 1.

    It promises nothing and never stops by itself.
    """

    name, source = "ocba-m", "Chen, He, Fu & Lee, INFORMS Journal on Computing 2008"

    def __init__(self, task: Any, n0: int = 20, Delta: int = 1, seed: int = 0) -> None:
        super().__init__(task)
        self.n0, self.Delta = integer("n0", n0, 2, 2**31 - 1), integer("Delta", Delta, 1, 2**31 - 1)
        self.seed = integer("seed", seed, 0, 2**32 - 1)

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        return Memory(**self.blank(observation), owed=np.zeros((E, K), np.int64), debt=np.zeros(E, np.int64))

    def choose(self, observation: Observation, state: Memory) -> Ints:
        m, (pulls, mean) = state, self.read(observation, state)
        out, public = np.empty(len(pulls), np.int64), np.ascontiguousarray(observation["public_seed"][:, 0], np.int64)
        _next(
            pulls,
            mean,
            np.ascontiguousarray(observation["variance"], np.float64),
            public,
            self.seed,
            self.k,
            self.n0,
            self.Delta,
            m.owed,
            m.debt,
            m.inside,
            m.between,
            m.place,
            m.made,
            m.last,
            out,
        )
        return out
