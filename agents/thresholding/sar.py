"""MD-SAR, successive accepts and rejects on margins: Katz-Samuels & Scott, ICML 2018, Algorithm 2. Fixed budget.

symbols     Q arms still pulled, n_k pulls of each arm of Q after phase k, T budget, K arms, D_i empirical margin,
            logbar(K) = 1/2 + sum of 1/i for i = 2 .. K
departures  D1 ties go to the lowest index (the paper breaks them arbitrarily)
            D2 the pulls of a phase, whose order the paper leaves open, come in passes over Q, one pull of each arm;
               in a phase of more than 64 pulls of each arm, in 64 passes of nearly equal numbers of pulls

On Threshold the margin is the distance from the threshold. The K - 1 phases spend at most T pulls; it then stops, with
the plug-in answer. Without its state it refuses an episode that has begun; `begin_anew` makes one, with means over all
samples seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.agent import LOCAL_PROBLEMS, Bools, Ints, Observation, seen_means
from ..core.phases import phase_ends
from ..core.round_policy import RoundPolicy, RoundState

__all__ = ["SAR"]

PASSES = 64  # over Q in a phase, at most: enough for answers on the way, few enough for large budgets


@dataclass
class State(RoundState):
    """State of MD-SAR for E episodes."""

    Q: Bools  # (E, K) arms still pulled
    k: Ints  # (E,) phases begun
    passes: Ints  # (E,) passes begun in phase k


class SAR(RoundPolicy):
    """MD-SAR (Katz-Samuels & Scott 2018): each phase leaves out the arm farthest from the boundary. Budget > K."""

    name, source, solves = "sar", "Katz-Samuels & Scott, ICML 2018, Algorithm 2", LOCAL_PROBLEMS
    anytime = False

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        budget, K = self.task.budget, self.task.K
        if budget is None or budget <= K:
            raise ValueError(f"sar needs a budget > K = {K}, got {budget}")
        self.pulls = np.diff(phase_ends(K, budget))  # of each arm of Q in phases 1 .. K - 1

    def initial_state(self, observation: Observation) -> State:
        E, K = observation["pulls"].shape
        zeros = np.zeros((2, E), np.int64)
        return State(**RoundState.of(E, K, self.task.D), Q=np.ones((E, K), np.bool_), k=zeros[0], passes=zeros[1])

    def start(self, observation: Observation, state: State, slots: Ints) -> None:
        state.Q[slots], state.k[slots] = True, 0
        self._query(observation, state, slots)

    def look(self, observation: Observation, state: State, slots: Ints) -> None:
        within = state.passes[slots] < np.minimum(self.pulls[state.k[slots] - 1], PASSES)
        self._pass(observation, state, slots[within])
        slots = slots[~within]
        D = np.abs(self.problem.margin(seen_means(observation, slots)))
        while len(slots):
            farthest = np.where(state.Q[slots], D, -1.0).argmax(axis=1)
            state.Q[slots, farthest] = False  # line 6
            over = state.k[slots] == len(self.pulls)
            state.stop(slots[over], self.recommend(observation, slots=slots[over]))
            D, slots = D[~over], slots[~over]
            idle = self._query(observation, state, slots)
            D, slots = D[idle], slots[idle]

    def _query(self, observation: Observation, state: State, slots: Ints) -> Bools:
        """Begin the next phase of these episodes [line 5]. Returns which of them pull nothing in it, (S,)."""
        live: Bools = self.pulls[state.k[slots]] > 0
        state.k[slots] += 1
        state.passes[slots] = 0
        self._pass(observation, state, slots[live])
        return ~live

    def _pass(self, observation: Observation, state: State, slots: Ints) -> None:
        """The next pass over the arms of Q; all passes of a phase together make its pulls.   # D2"""
        pulls, j = self.pulls[state.k[slots] - 1], state.passes[slots]
        size = np.minimum(pulls, PASSES)
        state.passes[slots] += 1
        state.write_all(slots, state.Q[slots], pulls * (j + 1) // size - pulls * j // size, observation["total"])
