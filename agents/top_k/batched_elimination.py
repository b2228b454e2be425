"""Batched successive elimination on a geometric grid: after BaSE of Gao, Han, Ren & Zhou, NeurIPS 2019, Algorithm 1.

Successive elimination: Even-Dar, Mannor & Mansour, JMLR 2006. What few rounds cost: Agarwal, Agarwal, Assadi & Khanna,
COLT 2017, whose own algorithm must be given the gap.

symbols     M batches, T budget, S the arms whose place is open, A the accepted ones, wanted = k - |A|; N pulls of each
            arm of S so far, m_(r) the r-th largest mean of S, P = k (K - k) pairs of arms whose order matters
grid        with a budget: K (T / K)^(j / M) pulls of all arms by the end of batch j; else ceil(N_1 g^(j - 1)) of each
            arm of S, for as many batches as it takes
width       c = 2 sigma sqrt(ln(P / delta_j) / N), delta_j = delta / M with a budget, else delta / (j (j + 1)): over all
            pairs and batches a mean exceeds one that is expected to be larger by c with probability delta at most
departures  D1 the paper is of regret, and its widths are of the pulls; here pairs and batches share delta
            D2 k arms: i is accepted where m_i - m_(wanted + 1) > c, and left out where m_(wanted) - m_i > c
            D3 it ends where m_(wanted) - m_(wanted + 1) > c - epsilon: no other arm is more than epsilon above one
               of the answer
            D4 with a budget, the plug-in answer of A and S after the last batch, where D3 has not come before; fewer
               pulls than S has arms are left
            D5 without one it answers so after 2^39 pulls of an arm, where no more can be made

Each batch is one plan. Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes
fresh samples.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import PULLS_LIMIT, integer, number

from ..core.agent import Floats, Ints
from ..core.confidence import delta_of, scale_of, tolerance_of
from ..core.declared import per_episode, setting
from ..core.largest import nth_largest, size_of
from ..core.phases import budget_for
from ..core.plans import count_pulls
from .elimination import SetAlgorithm, finish, measure, pull_undecided


def pulls_by_budget(K: int, T: int, M: int) -> list[int]:
    """Pulls of all arms by the end of batches 1 .. M: K (T / K)^(j / M), rounded down."""
    return [int(K * (T / K) ** (j / M)) for j in range(1, M)] + [T]


def pulls_by_growth(first: int, growth: float) -> list[int]:
    """Pulls of an arm by the end of batches 1, 2, ..: ceil(first growth^(j - 1)), and one more at least, below 2^39."""
    ends = [first]
    while ends[-1] < PULLS_LIMIT // 2:
        ends.append(max(math.ceil(min(first * growth ** len(ends), PULLS_LIMIT)), ends[-1] + 1))
    return ends[:-1]


class BatchedElimination(SetAlgorithm):
    """Successive elimination in batches, for the best arm or the k best, with probability 1 - delta.

    Args:
        batches: M, of tasks with a budget >= K. growth: g > 1, at least 1.05, of tasks without one.
        first: N_1, without a budget; None: that at which c is 2 sigma, rounded up.
        sigma: sub-Gaussian scale; None takes the task's.

    With a budget, delta is 0.01 where none is named, and decides which arms are left out early.
    """

    name, source = "batched-elimination", "after Gao, Han, Ren & Zhou, NeurIPS 2019, Algorithm 1"
    needs = "delta or budget"
    promises = ("aggregate", "each")
    stops = True
    ends, levels = setting(Ints), setting(Floats)  # of each batch: the grid, and ln(P / delta_j)
    shared, sigma, epsilon = setting(bool), setting(float), setting(float)  # whether the grid is of all arms' pulls
    N, over = per_episode(int), per_episode(bool)

    def observe(ep, own):
        """A batch is over: the arms of S whose place is certain are accepted, or left out.   D2, D3"""
        measure(ep, own)
        m, S, wanted = own.m, own.S, own.k - size_of(own.A)
        c = 2.0 * own.sigma * math.sqrt(own.levels[ep.now.round - 1] / ep.now.N)
        inside, outside = nth_largest(m, S, wanted, own.work), nth_largest(m, S, wanted + 1, own.work)
        ep.now.over = inside - outside > c - own.epsilon
        for i in range(len(S)):
            if S[i] and not ep.now.over:
                own.A[i] = m[i] - outside > c
                S[i] = not own.A[i] and not inside - m[i] > c

    def sample(ep, own):
        """The next batch of the grid in which each arm of S has a pull; none at the end, and then the answer."""
        times = 0
        while times < 1 and ep.now.round < len(own.ends) and not ep.now.over:
            end = own.ends[ep.now.round]
            times = (end - count_pulls(ep)) // size_of(own.S) if own.shared else end - ep.now.N
            ep.now.round += 1
        if times < 1:
            finish(own, own.k)
        else:
            ep.now.N += times
            pull_undecided(ep, own, times)

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        batches: int = 4,
        growth: float = 2.0,
        first: int | None = None,
        sigma: float | None = None,
    ) -> None:
        super().__init__(task)
        K, k = self.task.K, self.k
        delta = delta_of(self.name, self.task, delta, with_budget=0.01)
        M, growth = integer("batches", batches, 1, 10_000), number("growth", growth, 1.05)
        self.sigma, self.epsilon = scale_of(self.task, sigma), tolerance_of(self)
        self.shared = self.task.budget is not None
        self.may_stop = not self.shared
        level = math.log(k * (K - k) / delta)
        given = math.ceil(level + math.log(2.0)) if first is None else first
        first = integer("first", max(given, 1) if first is None else given, 1, PULLS_LIMIT // 4)
        if self.shared:
            ends, shares = pulls_by_budget(K, budget_for(self.name, self.task, K), M), np.full(M, float(M))
        else:
            ends = pulls_by_growth(first, growth)
            j = np.arange(1.0, len(ends) + 1)
            shares = j * (j + 1)
        self.ends, self.levels = np.array(ends), level + np.log(shares)

    def idle(self) -> dict[str, str]:
        if self.shared:
            return dict.fromkeys(("growth", "first"), "which is of tasks without a budget alone")
        return {"batches": "which is of tasks with a budget alone"}
