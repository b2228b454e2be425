"""Sequential Halving: Karnin, Koren & Somekh, ICML 2013, Algorithm 3. Fixed budget.

symbols     n arms, T budget, S_r the arms that remain in round r, t_r the pulls of each of them
departures  D1 ties go to the lowest arm
            D2 reuse=True: the means are those of all pulls of an arm, not of the round's alone

The rounds are ceil(log2 n), and each has at most T / ceil(log2 n) pulls. Without its state it refuses an episode that
has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandit_envs.kernels import flag

from ..core.phases import budget_for
from .elimination import Halvings


def schedule(n: int, T: int) -> list[tuple[int, int]]:
    """Per round: |S_r|, and t_r = floor(T / (|S_r| ceil(log2 n))). [line 2]"""
    rounds, sizes = (n - 1).bit_length(), [n]  # ceil(log2 n)
    while sizes[-1] > 2:
        sizes.append((sizes[-1] + 1) // 2)
    return [(size, T // (size * rounds)) for size in sizes]


class SequentialHalving(Halvings):
    """Sequential Halving (Karnin, Koren & Somekh 2013): the best arm within a budget.

    Args:
        task: a task or an environment with a budget >= K ceil(log2 K).
        reuse: means of all pulls of an arm, instead of fresh ones in each round.
    """

    name, source = "sequential-halving", "Karnin, Koren & Somekh, ICML 2013, Algorithm 3"
    solves, anytime = ("BestArm",), False

    def __init__(self, task: Any, reuse: bool = False) -> None:
        super().__init__(task)
        K = self.task.K
        budget = budget_for(self.name, self.task, K * (K - 1).bit_length())
        self.reuse = flag("reuse", reuse)
        rounds = schedule(K, budget)
        self.sizes, self.times = self.arms_of(rounds), np.array([times for _, times in rounds])
