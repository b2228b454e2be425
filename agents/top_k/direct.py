"""DIRECT: Kalyanakrishnan & Stone, ICML 2010, Algorithm 1.

symbols     n arms, m = k wanted, p_a the empirical mean of arm a
departures  D1 ties go to the lowest arm
            D2 the paper's rewards lie in [0, 1]; samples of sub-Gaussian scale sigma count as rewards of width 2 sigma

Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

import math
from typing import Any

from ..core.confidence import delta_of, positive_tolerance_of, scale_of
from .elimination import Halvings, affordable


def pulls_per_arm(n: int, epsilon: float, delta: float, width: float = 1.0) -> int:
    """ceil(2 width^2 / epsilon^2 ln(n / delta)). [line 2]"""
    return math.ceil(2 * (width / epsilon) ** 2 * math.log(n / delta))


class Direct(Halvings):
    """DIRECT (Kalyanakrishnan & Stone 2010): k arms within epsilon > 0 of the k-th best at probability 1 - delta."""

    name, source = "direct", "Kalyanakrishnan & Stone, ICML 2010, Algorithm 1"
    needs = "delta"
    promises, stops = ("aggregate", "each"), True  # one round of all arms, of which the k best stay

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        delta, epsilon = delta_of(self.name, self.task, delta), positive_tolerance_of(self)
        times = pulls_per_arm(self.task.K, epsilon, delta, 2 * scale_of(self.task, sigma))
        self.sizes, self.times = self.arms_of([(self.task.K, times)]), affordable(self.name, epsilon, [times])
