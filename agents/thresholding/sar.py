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

from typing import Any

import numpy as np

from ..core.agent import LOCAL_PROBLEMS, Ints, Observation, seen_means
from ..core.algorithm import Algorithm
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.largest import in_order
from ..core.phases import budget_for, phase_ends
from ..core.plans import pull

PASSES = 64  # over Q in a phase, at most: enough for answers on the way, few enough for large budgets


class SAR(Algorithm):
    """MD-SAR (Katz-Samuels & Scott 2018): each phase leaves out the arm farthest from the boundary. Budget > K."""

    name, source, solves = "sar", "Katz-Samuels & Scott, ICML 2018, Algorithm 2", LOCAL_PROBLEMS
    anytime, resumes, bulk, passes, reads = False, False, True, 0, ()
    pulls = setting(Ints)  # of each arm of Q in phases 1 .. K - 1
    Q, D = per_arm(bool), per_arm(float)  # arms still pulled; their margins when a pass is over
    order = scratch(int)
    k, begun = per_episode(int), per_episode(int)  # phases over, and passes begun in the one after them

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        K = self.task.K
        if K == 1:
            raise ValueError(f"{self.name} leaves arms out, one in each phase: it needs 2 arms or more, got 1")
        self.pulls = np.diff(phase_ends(K, budget_for(self.name, self.task, K + 1)))

    plays = False  # the problem's margins are those of NumPy

    def choose(self, observation: Observation, state: Any) -> Any:
        slots = (state.now["place"] >= state.now["size"]).nonzero()[0]
        if len(slots) and len(slots := slots[observation["pulls"][slots].all(axis=1)]):
            state.parts[-1]["D"][slots] = np.abs(self.problem.margin(seen_means(observation, slots)))  # a pass is over
        return super().choose(observation, state)

    def begin(ep, own):
        """Phase 1 begins with all arms."""
        for i in range(len(own.Q)):
            own.Q[i] = True

    def observe(ep, own):
        """A pass over Q is over, and with the last one a phase, and further ones that have no pulls."""
        j = 0
        while ep.now.k < len(own.pulls) and ep.now.begun >= min(own.pulls[ep.now.k], PASSES):
            if j == 0:
                in_order(own.D, own.Q, own.order)
            own.Q[own.order[j]] = False  # the arm of Q with the largest margin leaves it   [lines 5, 6]
            j, ep.now.k, ep.now.begun = j + 1, ep.now.k + 1, 0

    def sample(ep, own):
        """The next pass over Q; all passes of a phase together make its pulls.   D2"""
        if ep.now.k == len(own.pulls):
            return
        pulls, j = own.pulls[ep.now.k], ep.now.begun
        size = min(pulls, PASSES)
        ep.now.begun += 1
        for i in range(len(own.Q)):
            if own.Q[i]:
                pull(ep, i, pulls * (j + 1) // size - pulls * j // size)
