"""INCREMENTAL: Kalyanakrishnan & Stone, ICML 2010, Algorithm 2.

symbols     n arms, m = k wanted; S_l the arms selected (A here), R_l those that remain (S here) in round l
departures  D1 those of Median Elimination, which it calls

Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

from typing import Any

from ..core.agent import Ints
from ..core.confidence import delta_of, positive_tolerance_of
from ..core.declared import per_arm, setting
from ..core.largest import keep_largest, size_of
from ..core.plans import pull
from .elimination import SetAlgorithm, activate, affordable, finish, mark, measure
from .median_elimination import rounds_of, width_constant


class Incremental(SetAlgorithm):
    """INCREMENTAL (Kalyanakrishnan & Stone 2010): k arms, each (epsilon, k)-optimal, with probability 1 - delta.

    Args:
        task: a task or an environment whose epsilon is > 0. sigma: as for `median-elimination`.
    """

    name, source = "incremental", "Kalyanakrishnan & Stone, ICML 2010, Algorithm 2"
    needs = "delta"
    promises = ("aggregate", "each")
    times = setting(Ints)  # pulls of an arm in each round of Median Elimination
    survivors = per_arm(bool)  # arms of S that Median Elimination has left

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        delta, epsilon = delta_of(self.name, self.task, delta), positive_tolerance_of(self)
        rounds = rounds_of(self.task.K, 1, epsilon, delta / self.k, width_constant(self.task, sigma))
        self.times = affordable(self.name, epsilon, [times for _, times in rounds])

    def begin(ep, own):
        """Median Elimination begins with all arms."""
        activate(ep, own)
        for i in range(len(own.S)):
            own.survivors[i] = True

    def observe(ep, own):
        """A round of Median Elimination is over. It has nothing to do where one arm remains.   [line 4]"""
        measure(ep, own)
        keep_largest(own.m, own.survivors, (size_of(own.survivors) + 1) // 2, own.work)
        ep.now.round += 1
        while size_of(own.survivors) == 1 and size_of(own.A) < own.k:
            for i in range(len(own.S)):
                own.A[i] |= own.survivors[i]
                own.S[i] &= not own.survivors[i]
                own.survivors[i] = own.S[i]
            ep.now.round = 0

    def stops(ep, own):
        """The stopping rule.   [line 6]"""
        return size_of(own.A) == own.k and finish(own, own.k)

    def sample(ep, own):
        """The sampling rule: pull the arms that Median Elimination has left."""
        mark(ep, own)
        for i in range(len(own.S)):
            if own.survivors[i]:
                pull(ep, i, own.times[ep.now.round])
