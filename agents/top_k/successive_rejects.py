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

from bandit_envs.kernels import part

from ..core.agent import Ints
from ..core.declared import scratch, setting
from ..core.largest import in_order, size_of
from ..core.phases import budget_for, phase_ends
from .elimination import SetAlgorithm, finish, measure, pull_undecided


@part
def decide(m, S, A, order, low, high, wanted):
    """Decide on the arm of S, order[low:high], with the largest gap; returns whether it is the best, which A takes.

    The gap of the r-th best arm is m_(r) - m_(wanted + 1) where r <= wanted, else m_(wanted) - m_(r): the largest one
    is that of the best arm or that of the worst.
    """
    best, worst, last = order[low], order[high - 1], low + wanted  # 0 < wanted < high - low
    accepts = m[best] - m[order[last]] > m[order[last - 1]] - m[worst]  # D1
    S[best if accepts else worst], A[best] = False, A[best] | accepts
    return accepts


@part
def is_over(own):
    """Whether the places are filled, or S has no more arms than places; where k = 1, after n - 1 phases.   D2"""
    wanted = own.k - size_of(own.A)
    return wanted == 0 or size_of(own.S) == wanted


class SuccessiveRejects(SetAlgorithm):
    """Successive Rejects (2010) for the best arm, Successive Accepts and Rejects (2013) for the k best. Budget > K."""

    name = "successive-rejects"
    source = "Audibert, Bubeck & Munos, COLT 2010; Bubeck, Wang & Viswanathan, ICML 2013"
    anytime = False
    order = scratch(int)
    phases = setting(Ints)  # pulls of each arm of S in phases 1 .. n - 1

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        K = self.task.K
        self.phases = np.diff(phase_ends(K, budget_for(self.name, self.task, K + 1)))

    def observe(ep, own):
        """A phase is over, and further ones that have no pulls."""
        measure(ep, own)
        low, high, wanted = 0, in_order(own.m, own.S, own.order), own.k - size_of(own.A)
        more = True
        while more:
            accepts = decide(own.m, own.S, own.A, own.order, low, high, wanted)
            low, high, wanted = low + accepts, high - (not accepts), wanted - accepts
            ep.now.round += 1
            more = 0 < wanted < high - low and own.phases[ep.now.round] == 0

    def sample(ep, own):
        """The sampling rule: pull each arm of S; when all is decided none, and the answer is A, and the best of S."""
        if is_over(own):
            finish(own, own.k)
        else:
            pull_undecided(ep, own, own.phases[ep.now.round])  # of phase 1 at least 1
