"""Median Elimination: Even-Dar, Mannor & Mansour, JMLR 2006, Algorithm 3.

symbols     S surviving arms, e and d accuracy and failure of the round
departures  D1 ceil(|S| / 2) arms stay (the paper drops those below the median, which ties leave open)
            D2 ties go to the lowest arm
            D3 the paper's constant 4 is for rewards in [0, 1]; others take 8 sigma^2, which its proof needs

Met in the middle of an episode (`state=None`), it begins anew with fresh samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import Task

from ..core.agent import Bools, Floats, Ints, Observation
from ..core.confidence import delta_of, scale_of
from ..core.round_policy import RoundMemory, RoundPolicy
from .elimination import best_of, positive_epsilon

__all__ = ["MedianElimination", "elimination_pulls", "pulls_per_arm", "upper_half", "width_constant"]


def pulls_per_arm(round: int, epsilon: float, delta: float, constant: float) -> int:
    """ceil(constant / e^2 ln(3 / d)) with e = (3/4)^round epsilon / 4, d = 2^-round delta / 2. [lines 1, 3, 5]"""
    e, d = epsilon / 4, delta / 2
    for _ in range(round):
        e, d = 0.75 * e, d / 2
    return math.ceil(constant / e**2 * math.log(3 / d))


def elimination_pulls(n: int, epsilon: float, delta: float, constant: float) -> int:
    """H_ME: pulls of Median Elimination over n arms, which do not depend on the samples."""
    total = round = 0
    while n > 1:
        total += n * pulls_per_arm(round, epsilon, delta, constant)
        n, round = (n + 1) // 2, round + 1
    return total


def width_constant(task: Task, sigma: float | None) -> float:
    """4 for rewards in [0, 1], else 8 sigma^2; a sigma that is given always counts.   # D3"""
    return 4.0 if sigma is None and task.support == (0.0, 1.0) else 8.0 * scale_of(task, sigma) ** 2


def upper_half(m: Floats, S: Bools) -> Bools:
    """The ceil(|S| / 2) arms of S with the largest means, (..., K).   [line 4]"""
    return best_of(m, S, (S.sum(axis=-1) + 1) // 2)


@dataclass
class Memory(RoundMemory):
    """Memory of Median Elimination for E episodes."""

    S: Bools  # (E, K) surviving arms
    round: Ints  # (E,)


class MedianElimination(RoundPolicy):
    """Median Elimination (Even-Dar et al. 2006): an arm within epsilon of the best, with probability 1 - delta.

    Args:
        task: a task or an environment whose epsilon is > 0. delta: None takes the task's.
        sigma: sub-Gaussian scale; None takes the paper's constant for rewards in [0, 1], else the task's scale.
    """

    name, source = "median-elimination", "Even-Dar, Mannor & Mansour, JMLR 2006, Algorithm 3"
    solves, stops = ("BestArm",), True

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        self.delta = delta_of(self.name, self.task, delta)
        self.constant = width_constant(self.task, sigma)
        self.epsilon = positive_epsilon(self.name, self.task)

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        return Memory(**RoundMemory.of(E, K), S=np.ones((E, K), np.bool_), round=np.zeros(E, np.int64))

    def start(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        memory.S[slots], memory.round[slots] = True, 0
        self._pull(observation, memory, slots)

    def look(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        total = np.asarray(observation["total"], np.float64)
        memory.S[slots] = upper_half(memory.means(slots, total), memory.S[slots])  # line 4
        memory.round[slots] += 1  # line 5
        alone = memory.S[slots].sum(axis=1) == 1  # lines 2, 6
        memory.stop(slots[alone], memory.S[slots[alone]])
        self._pull(observation, memory, slots[~alone])

    def _pull(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        """Line 3."""
        total = np.asarray(observation["total"], np.float64)
        times = [pulls_per_arm(int(r), self.epsilon, self.delta, self.constant) for r in memory.round[slots]]
        memory.write_all(slots, memory.S[slots], np.array(times, np.int64), total)
