"""Successive Rejects: Audibert, Bubeck & Munos, COLT 2010. Fixed budget.

For k arms it is Successive Accepts and Rejects, SAR: Bubeck, Wang & Viswanathan, ICML 2013.

symbols     n arms, T budget, n_j pulls of each arm of S at the end of phase j, logbar(n) = 1/2 + sum of 1/i for
            i = 2 .. n; S the undecided arms, A the accepted ones, wanted = k - |A| the places that are left
departures  D1 ties go to the lowest arm, and where the best arm's gap and the worst arm's are equal, the worst arm is
               rejected: so k = 1 is Successive Rejects to the letter
            D2 it stops once the places are filled, or S has no more arms than places; pulls that are left are not made

Means are those of all samples of an arm. Without its state it refuses an episode that has begun; `begin_anew` makes
one, and it takes fresh samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.agent import Bools, Floats, Ints, Observation
from ..core.phases import phase_ends
from .elimination import SetPolicy, best_of

__all__ = ["SuccessiveRejects", "decide"]


def decide(m: Floats, S: Bools, A: Bools, k: int) -> tuple[Bools, Bools]:
    """Undecided and accepted arms after the arm with the largest gap has been decided on, (..., K).

    The gap of the r-th best arm is m_(r) - m_(wanted + 1) where r <= wanted, else m_(wanted) - m_(r): the largest one
    is that of the best arm or that of the worst.
    """
    size, wanted = S.sum(axis=-1, keepdims=True), k - A.sum(axis=-1, keepdims=True)  # 0 < wanted < size
    ranked = -np.sort(np.where(S, -m, np.inf), axis=-1)
    first, last = ranked[..., :1], np.take_along_axis(ranked, size - 1, -1)
    of_best = first - np.take_along_axis(ranked, wanted, -1)
    of_worst = np.take_along_axis(ranked, wanted - 1, -1) - last
    accepts = of_best > of_worst
    best, kept = best_of(m, S, 1), best_of(m, S, size[..., 0] - 1)
    return np.where(accepts, S & ~best, kept), A | (accepts & best)


class SuccessiveRejects(SetPolicy):
    """Successive Rejects (2010) for the best arm, Successive Accepts and Rejects (2013) for the k best. Budget > K."""

    name = "successive-rejects"
    source = "Audibert, Bubeck & Munos, COLT 2010; Bubeck, Wang & Viswanathan, ICML 2013"
    solves, anytime = ("TopK", "BestArm"), False

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        budget, K = self.task.budget, self.task.K
        if budget is None or budget <= K:
            raise ValueError(f"{self.name} needs a budget > K = {K}, got {budget}")
        self.pulls = np.diff(phase_ends(K, budget))  # of each arm of S in phases 1 .. n - 1

    def proceed(self, observation: Observation, state: Any, slots: Ints) -> None:
        state.pull(slots, self.pulls[0], observation)  # which is at least 1

    def look(self, observation: Observation, state: Any, slots: Ints) -> None:
        m = state.means_since(slots, observation)
        while len(slots):
            state.S[slots], state.A[slots] = decide(m, state.S[slots], state.A[slots], self.k)
            state.round[slots] += 1
            wanted = self.k - state.A[slots].sum(axis=1)
            over = (wanted == 0) | (state.S[slots].sum(axis=1) == wanted)  # D2; where k = 1, after n - 1 phases
            self.finish(state, slots[over], m[over])
            slots, m = slots[~over], m[~over]
            pulls = self.pulls[state.round[slots]]
            state.pull(slots[pulls > 0], pulls[pulls > 0], observation)
            slots, m = slots[pulls == 0], m[pulls == 0]  # a phase without pulls is over at once
