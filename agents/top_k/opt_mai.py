"""OPTMAI: Zhou, Chen & Li, ICML 2014, for a budget.

symbols     n arms, K = k wanted, Q the budget, S the undecided arms, T the accepted ones (A here), r the round;
            beta = (3/4) e^(1/5), so that the budgets beta^r (1 - beta) Q of the rounds sum to Q
departures  D1 pulls of an arm and the quarter of the arms that QE drops are rounded down, the quarter of AR up
            D2 K > n / 2: the n - K worst arms are selected, on rewards of the opposite sign, and the others answered
            D3 where a round's budget does not pay one pull of each arm, T is filled with the best of S
            D4 reuse=True: the means are those of all pulls of an arm, not of the round's alone

A sixth of the budget or more stays unspent (n = 1000: 16 %), as the rounds end when T is full. Without
its state it refuses an episode that has begun; `begin_anew` makes one, for what is left of the budget.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import flag, part

from ..core.agent import Bools, Floats
from ..core.declared import per_episode, scratch, setting
from ..core.largest import keep_largest, nth_largest, size_of
from ..core.phases import budget_for
from .elimination import SetAlgorithm, activate, finish, measure, pull_round, with_best

BETA = 0.75 * math.exp(0.2)


@part
def pulls_per_arm(r, Q, size):
    """floor(beta^r (1 - beta) Q / |S|).   [line 4]"""
    return math.floor(BETA ** float(r) * (1.0 - BETA) * Q / size)


@part
def quartile_elimination(m, S, work):
    """Take the floor(|S| / 4) arms with the smallest means out of S.   [QE]"""
    size = size_of(S)
    keep_largest(m, S, size - size // 4, work)


@part
def accept_reject(m, S, T, K, own):
    """Decide on a quarter of S, the largest gaps: out of S, and into T where they are of the best.   [AR]"""
    size, wanted = size_of(S), K - size_of(T)  # 0 < K' < |S|
    last, first = nth_largest(m, S, wanted, own.work), nth_largest(m, S, wanted + 1, own.work)
    for i in range(len(S)):
        own.gap[i], own.decided[i], own.best[i] = max(m[i] - first, last - m[i]), S[i], S[i]
    keep_largest(own.gap, own.decided, (size + 3) // 4, own.work)
    keep_largest(m, own.best, wanted, own.work)
    for i in range(len(S)):
        S[i] &= not own.decided[i]
        T[i] |= own.decided[i] and own.best[i]  # the algorithm ends once T is full: what else leaves S does not matter


class OptMAI(SetAlgorithm):
    """OPTMAI (Zhou, Chen & Li 2014): k arms of small aggregate regret within a budget.

    Args:
        task: a task or an environment with a budget.
        reuse: means of all pulls of an arm, instead of fresh ones in each round.
    """

    name, source = "opt-mai", "Zhou, Chen & Li, ICML 2014"
    anytime = False
    reads = ("total", "remaining")
    K = setting(int)  # arms to select
    worst = setting(bool)  # of the worst ones   D2
    Q = per_episode(int)
    gap, best, decided = scratch(float), scratch(bool), scratch(bool)

    def __init__(self, task: Any, reuse: bool = False) -> None:
        super().__init__(task)
        budget_for(self.name, self.task, 1)
        self.reuse = flag("reuse", reuse)
        self.worst = 2 * self.k > self.task.K  # D2
        self.K = self.task.K - self.k if self.worst else self.k

    def begin(ep, own):
        """All arms are undecided."""
        activate(ep, own)
        ep.now.Q = ep.remaining

    def observe(ep, own):
        """A round is over."""
        measure(ep, own)
        for i in range(len(own.m)):
            own.m[i] = -own.m[i] if own.worst else own.m[i]
        if size_of(own.S) >= 4 * own.K:
            quartile_elimination(own.m, own.S, own.work)  # line 5
        else:
            accept_reject(own.m, own.S, own.A, own.K, own)  # line 6
        ep.now.round += 1  # line 7

    def sample(ep, own):
        """The sampling rule."""
        size, wanted = size_of(own.S), own.K - size_of(own.A)
        p = pulls_per_arm(ep.now.round, ep.now.Q, max(size, 1))  # line 4
        if wanted == 0 or size == wanted or p == 0:  # lines 2, 3; D3
            finish(own, own.K)  # line 8
            for i in range(len(own.answer)):
                own.answer[i] ^= own.worst
            return
        pull_round(ep, own, p)

    def current(self, m: Floats, S: Bools, A: Bools) -> Bools:
        return ~with_best(-m, S, A, self.K) if self.worst else with_best(m, S, A, self.K)
