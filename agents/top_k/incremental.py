"""INCREMENTAL: Kalyanakrishnan & Stone, ICML 2010, Algorithm 2.

symbols     n arms, m = k wanted; S_l the arms selected (A here), R_l those that remain (S here) in round l
departures  D1 those of Median Elimination, which it calls

Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.agent import Bools, Ints, Observation
from ..core.confidence import delta_of, positive_tolerance_of
from .elimination import SetPolicy, SetState, affordable, best_of
from .median_elimination import elimination_pulls, pulls_per_arm, width_constant

__all__ = ["Incremental", "incremental_pulls"]


def incremental_pulls(n: int, m: int, epsilon: float, delta: float, constant: float) -> int:
    """Pulls of INCREMENTAL, which do not depend on the samples. [lines 2-5]"""
    return sum(elimination_pulls(n - j, epsilon, delta / m, constant) for j in range(m))


@dataclass
class State(SetState):
    """State of INCREMENTAL for E episodes."""

    survivors: Bools  # (E, K) arms of S that Median Elimination has left

    @classmethod
    def blank(cls, E: int, K: int) -> dict[str, Any]:
        return {**super().blank(E, K), "survivors": np.ones((E, K), np.bool_)}


class Incremental(SetPolicy):
    """INCREMENTAL (Kalyanakrishnan & Stone 2010): k arms, each (epsilon, k)-optimal, with probability 1 - delta.

    Args:
        task: a task or an environment whose epsilon is > 0. sigma: as for `median-elimination`.
    """

    name, source = "incremental", "Kalyanakrishnan & Stone, ICML 2010, Algorithm 2"
    solves, stops, state_class = ("TopK", "BestArm"), True, State
    needs = "delta"
    promises = ("aggregate", "each")

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        delta, epsilon = delta_of(self.name, self.task, delta), positive_tolerance_of(self)
        constant, most = width_constant(self.task, sigma), (self.task.K - 1).bit_length()
        times = [pulls_per_arm(r, epsilon, delta / self.k, constant) for r in range(most)]
        self.times = affordable(self.name, epsilon, times)

    def start(self, observation: Observation, state: State, slots: Ints) -> None:
        state.survivors[slots] = True
        super().start(observation, state, slots)

    def proceed(self, observation: Observation, state: State, slots: Ints) -> None:
        state.mark(slots, observation)
        total = np.asarray(observation["total"], np.float64)
        state.write_all(slots, state.survivors[slots], self.times[state.round[slots]], total)

    def look(self, observation: Observation, state: State, slots: Ints) -> None:
        left = state.survivors[slots]
        left = best_of(state.means_since(slots, observation), left, (left.sum(axis=1) + 1) // 2)
        state.survivors[slots] = left
        state.round[slots] += 1
        self._select(state, slots[left.sum(axis=1) == 1])
        over = state.A[slots].sum(axis=1) == self.k
        state.stop(slots[over], state.A[slots[over]])  # line 6
        self.proceed(observation, state, slots[~over])

    def _select(self, state: State, slots: Ints) -> None:
        """Line 4, and the next call of Median Elimination; it has nothing to do where one arm remains."""
        while len(slots):
            state.A[slots] |= state.survivors[slots]
            state.S[slots] &= ~state.survivors[slots]
            state.survivors[slots], state.round[slots] = state.S[slots], 0
            wanted = state.A[slots].sum(axis=1) < self.k
            slots = slots[wanted & (state.S[slots].sum(axis=1) == 1)]
