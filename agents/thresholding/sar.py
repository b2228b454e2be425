"""MD-SAR, successive accepts and rejects on margins: Katz-Samuels & Scott, ICML 2018, Algorithm 2. Fixed budget.

symbols     Q arms still pulled, n_k pulls of each arm of Q after phase k, T budget, K arms, D_i empirical margin,
            logbar(K) = 1/2 + sum of 1/i for i = 2 .. K
departures  D1 ties go to the lowest index (the paper breaks them arbitrarily)

On Threshold the margin is the distance from the threshold. The K - 1 phases spend at most T pulls; it then stops, with
the plug-in answer. Without its memory it refuses an episode that has begun; `begin_anew` makes one, with means over all
samples seen.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.agent import LOCAL_PROBLEMS, Bools, Ints, Observation, seen_means
from ..core.round_policy import RoundMemory, RoundPolicy

__all__ = ["SAR", "phase_ends"]


@functools.lru_cache(maxsize=64)
def phase_ends(K: int, T: int) -> tuple[int, ...]:
    """Cumulative pulls n_0 .. n_{K-1} of a surviving arm: n_k = ceil((T - K) / (logbar(K) (K + 1 - k))), exactly.

    [Katz-Samuels & Scott 2018, Alg. 2, line 2]
    """
    unit = math.lcm(*range(1, K + 1))
    logbar = unit // 2 + sum(unit // i for i in range(2, K + 1))  # times unit
    return (0, *(-(-(T - K) * unit // (logbar * (K + 1 - k))) for k in range(1, K)))


@dataclass
class Memory(RoundMemory):
    """Memory of MD-SAR for E episodes."""

    Q: Bools  # (E, K) arms still pulled
    k: Ints  # (E,) phases begun


class SAR(RoundPolicy):
    """MD-SAR (Katz-Samuels & Scott 2018): each phase leaves out the arm farthest from the boundary.

    Args:
        task: a task or an environment with a budget > K.
    """

    name, source, solves = "sar", "Katz-Samuels & Scott, ICML 2018, Algorithm 2", LOCAL_PROBLEMS
    anytime = False

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        budget, K = self.task.budget, self.task.K
        if budget is None or budget <= K:
            raise ValueError(f"sar needs a budget > K = {K}, got {budget}")
        self.pulls = np.diff(phase_ends(K, budget))  # of each arm of Q in phases 1 .. K - 1

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        return Memory(**RoundMemory.of(E, K, self.task.D), Q=np.ones((E, K), np.bool_), k=np.zeros(E, np.int64))

    def start(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        memory.Q[slots], memory.k[slots] = True, 0
        self._query(observation, memory, slots)

    def look(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        D = np.abs(self.problem.margin(seen_means(observation, slots)))
        while len(slots):
            farthest = np.where(memory.Q[slots], D, -1.0).argmax(axis=1)
            memory.Q[slots, farthest] = False  # line 6
            over = memory.k[slots] == len(self.pulls)
            memory.stop(slots[over], self.recommend(observation, slots=slots[over]))
            D, slots = D[~over], slots[~over]
            idle = self._query(observation, memory, slots)
            D, slots = D[idle], slots[idle]

    def _query(self, observation: Observation, memory: Memory, slots: Ints) -> Bools:
        """Begin the next phase of these episodes [line 5]. Returns which of them pull nothing in it, (S,)."""
        times = self.pulls[memory.k[slots]]
        memory.k[slots] += 1
        live = times > 0
        memory.write_all(slots[live], memory.Q[slots[live]], times[live], observation["total"])
        return ~live
