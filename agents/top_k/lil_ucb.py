"""lil'UCB: Jamieson, Malloy, Nowak & Bubeck, COLT 2014.

symbols     e and b (epsilon and beta of the paper), lam (lambda); T_i pulls
            "theory": e = .01, b = 1, lam = ((2 + b) / b)^2 = 9; "heuristic": e = 0, b = 1/2, lam = 1 + 10/n
departures  D1 ties go to the lowest arm
            D2 the inner logarithm is ln((1 + e) T + 2), which keeps it positive at T = 1
            D3 delta goes into the index as it is, as in the paper's experiments; its theorem promises a failure
               probability that is much larger than that delta
            D4 with a budget it does not stop by itself
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandit_envs.kernels import choice

from ..core.agent import Bools, Floats, Ints, Observation
from ..core.confidence import delta_of, scale_of
from ..core.index_policy import IndexPolicy


class LilUCB(IndexPolicy):
    """lil'UCB (Jamieson et al. 2014): the best arm, which is the arm that has been pulled most.

    Args:
        delta: None takes the task's, or 0.01 with a budget. constants: "theory" or "heuristic".
    """

    name, source, solves, stops = "lil-ucb", "Jamieson, Malloy, Nowak & Bubeck, COLT 2014", ("BestArm",), True
    needs = "delta or budget"
    promises = ("aggregate", "each", "exact")

    def __init__(
        self, task: Any, delta: float | None = None, constants: str = "theory", sigma: float | None = None
    ) -> None:
        super().__init__(task)
        sets = {"theory": (0.01, 1.0, 9.0), "heuristic": (0.0, 0.5, 1.0 + 10.0 / self.task.K)}
        self.e, self.b, self.lam = sets[choice("constants", constants, list(sets))]
        self.delta = delta_of(self.name, self.task, delta, with_budget=0.01)
        self.sigma = scale_of(self.task, sigma)

    def value(self, T: Floats, x: Floats) -> Floats:
        """Minus the upper bound.   [line 3]"""
        e, b = self.e, self.b
        inner = np.log(np.log((1 + e) * T + 2) / self.delta)
        bound: Floats = x + (1 + b) * (1 + np.sqrt(e)) * np.sqrt(2 * self.sigma**2 * (1 + e) * inner / T)
        return -bound

    def choose(self, observation: Observation, state: Any) -> Ints:
        before = state.last.copy()
        arms = super().choose(observation, state)
        if self.task.budget is None:
            made = observation["pulls"].sum(axis=1)
            over = (state.T - self.lam * (made - state.T) >= 1) & (made >= self.task.K)  # line 2
            arms[over], state.last[over] = self.task.K, before[over]
        return arms

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The arm that has been pulled most.   [line 4]"""
        pulls = observation["pulls"] if slots is None else observation["pulls"][slots]
        answer: Bools = np.arange(self.task.K) == pulls.argmax(axis=-1)[..., None]
        return answer
