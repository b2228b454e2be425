"""Median Elimination: Even-Dar, Mannor & Mansour, JMLR 2006, Algorithm 3.

symbols     S surviving arms, l round, e_l and d_l accuracy and failure probability of the round
departures  D1 ceil(|S| / 2) arms stay (the paper drops those below the median, which ties leave open)
            D2 ties go to the lowest arm
            D3 the paper's constant 4 is for rewards in [0, 1]; others take 8 sigma^2, which its proof needs

Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs import Task
from bandit_envs.kernels import jit

from ..core.algorithm import Algorithm
from ..core.confidence import delta_of, positive_tolerance_of, scale_of
from ..core.phases import whole
from .elimination import Halvings


def width_constant(task: Task, sigma: float | None) -> float:
    """4 for rewards in [0, 1], else 8 sigma^2; a sigma that is given always counts.   # D3"""
    return 4.0 if sigma is None and task.support == (0.0, 1.0) else 8.0 * scale_of(task, sigma) ** 2


@jit
def pulls_per_arm(l: Any, epsilon: Any, delta: Any, constant: Any) -> Any:  # noqa: E741
    """ceil(constant / e_l^2 ln(3 / d_l)) with e_l = (3/4)^l epsilon / 4, d_l = 2^-l delta / 2, for l = 0, 1, 2, ..."""
    e, d = epsilon / 4, delta / 2
    for _ in range(l):
        e, d = 0.75 * e, d / 2
    return whole(constant / e**2 * math.log(3 / d))


@jit
def elimination_pulls(n, epsilon, delta, constant):
    """H_ME: pulls of Median Elimination over n arms, which do not depend on the samples."""
    total = l = 0  # noqa: E741
    while n > 1:
        total += n * pulls_per_arm(l, epsilon, delta, constant)
        n, l = (n + 1) // 2, l + 1  # noqa: E741
    return total


def rounds_of(n: int, m: int, epsilon: float, delta: float, constant: float) -> list[tuple[int, int]]:
    """How many arms there are in each round until m are left, and the pulls of each of them.   D1"""
    rounds = list[tuple[int, int]]()
    while n > m:
        rounds.append((n, pulls_per_arm(len(rounds), epsilon, delta, constant)))
        n = max((n + 1) // 2, m)
    return rounds


class MedianElimination(Halvings):
    """Median Elimination (Even-Dar et al. 2006): an arm within epsilon > 0 of the best, with probability 1 - delta.

    Args:
        sigma: sub-Gaussian scale; None takes the paper's constant for rewards in [0, 1], else the task's scale.
    """

    name, source = "median-elimination", "Even-Dar, Mannor & Mansour, JMLR 2006, Algorithm 3"
    solves = ("BestArm",)
    needs = "delta"
    promises, stops = ("aggregate", "each"), True

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        self.delta, self.epsilon = delta_of(self.name, self.task, delta), positive_tolerance_of(self)
        self.constant = width_constant(self.task, sigma)
        rounds = rounds_of(self.task.K, 1, self.epsilon, self.delta, self.constant)
        self.sizes, self.times = self.arms_of(rounds), np.array([times for _, times in rounds], np.int64)

    recommend = Algorithm.recommend
