"""HALVING: Kalyanakrishnan & Stone, ICML 2010, Algorithm 3.

symbols     n arms, m = k wanted, R_l the arms that remain in round l, e_l and d_l its accuracy and failure
departures  D1 ties go to the lowest arm
            D2 the paper's rewards lie in [0, 1]; samples of sub-Gaussian scale sigma count as rewards of width 2 sigma

Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

from typing import Any

from ..core.confidence import delta_of, positive_tolerance_of, scale_of
from .elimination import Halvings, affordable
from .median_elimination import rounds_of


def schedule(n: int, m: int, epsilon: float, delta: float, width: float = 1.0) -> list[tuple[int, int]]:
    """Per round l = 1 .. ceil(log2(n / m)): |R_l|, and ceil(2 width^2 / e_l^2 ln(3 m / d_l)). [lines 2, 3, 5, 7, 9]"""
    return rounds_of(n, m, epsilon, delta / m, 2 * width**2)


class Halving(Halvings):
    """HALVING (Kalyanakrishnan & Stone 2010): k arms within epsilon > 0 of the k-th best at probability 1 - delta."""

    name, source = "halving", "Kalyanakrishnan & Stone, ICML 2010, Algorithm 3"
    needs = "delta"
    promises, stops = ("aggregate", "each"), True

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        delta, epsilon = delta_of(self.name, self.task, delta), positive_tolerance_of(self)
        rounds = schedule(self.task.K, self.k, epsilon, delta, 2 * scale_of(self.task, sigma))
        self.sizes, self.times = self.arms_of(rounds), affordable(self.name, epsilon, [times for _, times in rounds])
