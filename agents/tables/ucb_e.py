"""UCB-E on a table: Zhou et al., "On Speeding Up Language Model Evaluation", ICLR 2025. Anytime, fixed budget.

symbols     n_i items on which arm i has been graded, m_i its mean over these, N items, a the constant, 1 there

U1  Bound      inf where n_i = 0; -inf where n_i = N; else m_i + sqrt(a / n_i).
U2  Arm        the one with the largest bound, ties to the first.
U3  Items      the next `batch` items that the arm has not been graded on, at most as many as are left.
U4  End        when the budget is spent.
U5  Recommend  the arm with the largest m_i.

departures  D1 the items come in the environment's order, the same for all arms; there each arm has an order of its own
            D2 one item at a time; there 32, which is `batch=32`
            D3 once all arms are complete it goes on with the first of them, which shows nothing new
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bandit_envs.kernels import integer, number

from ..core.agent import Floats, Ints, Observation
from ..core.columns import budget_for, rows_of
from ..core.index_policy import IndexPolicy, IndexState


class UCBE(IndexPolicy):
    """UCB-E on the columns of a table: the largest mean plus sqrt(a / n), until the budget, >= K, is spent.

    Args:
        a: the constant, >= 0. batch: pulls at a time; more than one need actions="full".
    """

    name, source = "ucb-e", "Zhou et al., ICLR 2025"
    solves = ("BestArm",)
    needs = "a table, the budget"
    ready_for: ClassVar[tuple[str, ...]] = ()  # no problem with any arms

    def __init__(self, task: Any, a: float = 1.0, batch: int = 1) -> None:
        super().__init__(task)
        self.a, self.batch = number("a", a, 0), integer("batch", batch, 1, 2**24)
        self.N = rows_of(self.name, self.task)
        budget_for(self.name, self.task, self.task.K)
        if self.batch > 1 and self.task.actions == "arm":
            raise ValueError(f"{self.name} pulls batch={batch} times at once only with actions='full'")

    def index(self, T: Floats, D: Floats) -> Floats:
        return self.value(T, D)

    def value(self, T: Floats, x: Floats) -> Floats:
        return np.where(T >= self.N, np.inf, -(x + np.sqrt(self.a / T)))  # U1

    def choose(self, observation: Observation, state: IndexState) -> Any:
        arms = super().choose(observation, state)
        if self.batch == 1:
            return arms
        left: Ints = self.N - observation["pulls"][np.arange(len(arms)), arms]
        return arms, np.clip(left, 1, self.batch)  # U3, D3

    @property
    def plays(self) -> bool:
        return self.batch == 1 and self.compiled is not None
