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
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs.kernels import flag

from ..core.agent import Bools, Floats, Ints, Observation
from .elimination import SetPolicy, SetState, best_of, with_best

__all__ = ["BETA", "OptMAI", "accept_reject", "pulls_per_arm", "quartile_elimination"]

BETA = 0.75 * math.exp(0.2)


def pulls_per_arm(r: Any, Q: Any, size: Any) -> Any:
    """floor(beta^r (1 - beta) Q / |S|), elementwise. [line 4]"""
    return np.floor(BETA**r * (1 - BETA) * Q / size).astype(np.int64)


def quartile_elimination(m: Floats, S: Bools) -> Bools:
    """S without the floor(|S| / 4) arms with the smallest means, (..., K). [QE]"""
    size = S.sum(axis=-1)
    return best_of(m, S, size - size // 4)


def accept_reject(m: Floats, S: Bools, T: Bools, K: int) -> tuple[Bools, Bools]:
    """Undecided and accepted arms after a quarter of S, those with the largest gaps, has been decided on. [AR]

    The paper stops as soon as T is full; what else leaves S then does not matter, since the algorithm ends.
    """
    size, wanted = S.sum(axis=-1, keepdims=True), K - T.sum(axis=-1, keepdims=True)  # 0 < K' < |S|
    ranked = -np.sort(np.where(S, -m, np.inf), axis=-1)
    last, first = np.take_along_axis(ranked, wanted - 1, -1), np.take_along_axis(ranked, wanted, -1)
    gap = np.maximum(m - first, last - m)
    best = best_of(m, S, wanted[..., 0])
    decided = best_of(gap, S, -(-size[..., 0] // 4))
    return S & ~decided, T | (decided & best)


@dataclass
class State(SetState):
    """State of OPTMAI for E episodes."""

    Q: Ints  # (E,) budget

    @classmethod
    def blank(cls, E: int, K: int) -> dict[str, Any]:
        return {**super().blank(E, K), "Q": np.zeros(E, np.int64)}


class OptMAI(SetPolicy):
    """OPTMAI (Zhou, Chen & Li 2014): k arms of small aggregate regret within a budget.

    Args:
        task: a task or an environment with a budget.
        reuse: means of all pulls of an arm, instead of fresh ones in each round.
    """

    name, source = "opt-mai", "Zhou, Chen & Li, ICML 2014"
    solves, anytime, state_class = ("TopK", "BestArm"), False, State

    def __init__(self, task: Any, reuse: bool = False) -> None:
        super().__init__(task)
        if self.task.budget is None:
            raise ValueError("opt-mai needs an environment with a budget, got budget=None")
        self.reuse = flag("reuse", reuse)
        self.worst = 2 * self.k > self.task.K  # D2
        self.K = self.task.K - self.k if self.worst else self.k

    def answer(self, m: Floats, S: Bools, A: Bools) -> Bools:
        return ~with_best(-m, S, A, self.K) if self.worst else with_best(m, S, A, self.K)

    def start(self, observation: Observation, state: State, slots: Ints) -> None:
        state.Q[slots] = observation["remaining"][slots, 0]
        super().start(observation, state, slots)

    def proceed(self, observation: Observation, state: State, slots: Ints) -> None:
        size, wanted = state.S[slots].sum(axis=1), self.K - state.A[slots].sum(axis=1)
        p = pulls_per_arm(state.round[slots], state.Q[slots], np.maximum(size, 1))  # line 4
        over = (wanted == 0) | (size == wanted) | (p == 0)  # lines 2, 3; D3
        done, slots = slots[over], slots[~over]
        self.finish(state, done, state.means_since(done, observation))  # line 8
        if not self.reuse:
            state.mark(slots, observation)
        state.pull(slots, p[~over], observation)

    def look(self, observation: Observation, state: State, slots: Ints) -> None:
        m = state.means_since(slots, observation)
        if self.worst:
            m = -m
        S, T = state.S[slots], state.A[slots]
        many = S.sum(axis=1) >= 4 * self.K
        S[many] = quartile_elimination(m[many], S[many])  # line 5
        S[~many], T[~many] = accept_reject(m[~many], S[~many], T[~many], self.K)  # line 6
        state.S[slots], state.A[slots] = S, T
        state.round[slots] += 1  # line 7
        self.proceed(observation, state, slots)
