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

from ..core.agent import Ints
from ..core.declared import setting
from ..core.largest import keep_largest
from ..core.phases import budget_for
from .elimination import SetAlgorithm, finish, mark, measure, pull_undecided


def schedule(n: int, T: int) -> list[tuple[int, int]]:
    """Per round: |S_r|, and t_r = floor(T / (|S_r| ceil(log2 n))). [line 2]"""
    rounds, sizes = (n - 1).bit_length(), [n]  # ceil(log2 n)
    while sizes[-1] > 2:
        sizes.append((sizes[-1] + 1) // 2)
    return [(size, T // (size * rounds)) for size in sizes]


class SequentialHalving(SetAlgorithm):
    """Sequential Halving (Karnin, Koren & Somekh 2013): the best arm within a budget.

    Args:
        task: a task or an environment with a budget >= K ceil(log2 K).
        reuse: means of all pulls of an arm, instead of fresh ones in each round.
    """

    name, source = "sequential-halving", "Karnin, Koren & Somekh, ICML 2013, Algorithm 3"
    solves, anytime = ("BestArm",), False
    sizes, times = setting(Ints), setting(Ints)  # of each round: |S_{r+1}|, and t_r
    reuse = setting(bool)

    def __init__(self, task: Any, reuse: bool = False) -> None:
        super().__init__(task)
        K = self.task.K
        budget = budget_for(self.name, self.task, K * (K - 1).bit_length())
        self.reuse = flag("reuse", reuse)
        rounds = schedule(K, budget)
        self.sizes = np.array([size for size, _ in rounds[1:]] + [1])
        self.times = np.array([times for _, times in rounds])

    def observe(ep, own):
        """A round is over.   [line 3]"""
        measure(ep, own)
        keep_largest(own.m, own.S, own.sizes[ep.now.round], own.work)
        ep.now.round += 1

    def sample(ep, own):
        """The sampling rule.   [line 2]"""
        if ep.now.round == len(own.times):
            finish(own, own.k)
            return
        if not own.reuse:
            mark(ep, own)
        pull_undecided(ep, own, own.times[ep.now.round])
