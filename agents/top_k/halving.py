"""HALVING: Kalyanakrishnan & Stone, ICML 2010, Algorithm 3.

symbols     n arms, m = k wanted, R_l the arms that remain in round l, e_l and d_l its accuracy and failure
departures  D1 ties go to the lowest arm
            D2 the paper's rewards lie in [0, 1]; samples of sub-Gaussian scale sigma count as rewards of width 2 sigma

Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.agent import Ints
from ..core.confidence import delta_of, positive_tolerance_of, scale_of
from ..core.declared import setting
from ..core.largest import keep_largest
from .elimination import SetAlgorithm, affordable, finish, mark, measure, pull_undecided
from .median_elimination import pulls_per_arm


def schedule(n: int, m: int, epsilon: float, delta: float, width: float = 1.0) -> list[tuple[int, int]]:
    """Per round l = 1 .. ceil(log2(n / m)): |R_l|, and ceil(2 width^2 / e_l^2 ln(3 m / d_l)). [lines 2, 3, 5, 7, 9]"""
    rounds: list[tuple[int, int]] = []
    while n > m:
        rounds.append((n, pulls_per_arm(len(rounds), epsilon, delta / m, 2 * width**2)))
        n = max((n + 1) // 2, m)
    return rounds


class Halving(SetAlgorithm):
    """HALVING (Kalyanakrishnan & Stone 2010): k arms within epsilon > 0 of the k-th best at probability 1 - delta."""

    name, source = "halving", "Kalyanakrishnan & Stone, ICML 2010, Algorithm 3"
    needs = "delta"
    promises = ("aggregate", "each")
    sizes, times = setting(Ints), setting(Ints)  # of each round: |R_l|, with k at the end, and the pulls of each arm

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        delta, epsilon = delta_of(self.name, self.task, delta), positive_tolerance_of(self)
        rounds = schedule(self.task.K, self.k, epsilon, delta, 2 * scale_of(self.task, sigma))
        self.sizes = np.array([size for size, _ in rounds] + [self.k])
        self.times = affordable(self.name, epsilon, [times for _, times in rounds])

    def observe(ep, own):
        """A round is over.   [lines 7, 8]"""
        ep.now.round += 1
        measure(ep, own)
        keep_largest(own.m, own.S, own.sizes[ep.now.round], own.work)

    def stops(ep, own):
        """The stopping rule.   [line 11]"""
        return ep.now.round == len(own.times) and finish(own, own.k)

    def sample(ep, own):
        """The sampling rule.   [lines 4 to 6]"""
        mark(ep, own)
        pull_undecided(ep, own, own.times[ep.now.round])
