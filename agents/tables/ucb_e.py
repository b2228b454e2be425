"""UCB-E on a table: Zhou et al., "On Speeding Up Language Model Evaluation", ICLR 2025. Anytime, fixed budget.

symbols     N items; n_i the number on which arm i has been graded; m_i its mean over these; a constant, 1 in the paper

U1  Bound      inf where n_i = 0; -inf where n_i = N; else m_i + sqrt(a / n_i).
U2  Arm        the one with the largest bound, ties to the first.
U3  Items      the next `batch` items that the arm has not been graded on, or all of them if there are fewer.
U4  End        when the budget is spent.
U5  Recommend  the arm with the largest m_i.

departures  D1 the environment orders the items, the same for all arms; in the paper each arm has its own order
            D2 one item at a time; in the paper 32, which is `batch=32`
            D3 once every arm has all N grades, it pulls the first arm until the budget is spent: nothing changes
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bandit_envs.kernels import integer, number

from ..core.agent import Floats, Ints, Observation
from ..core.index_policy import IndexPolicy, IndexState
from ..core.phases import budget_for, rows_of


class UCBE(IndexPolicy):
    """UCB-E on the columns of a table: pull the arm with the largest m + sqrt(a / n). It needs a budget >= K.

    Args:
        a: the constant, >= 0. batch: items at a time, >= 1; more than one needs actions="full".
    """

    name, source = "ucb-e", "Zhou et al., ICLR 2025"
    solves = ("BestArm",)
    needs = "a table, the budget"
    ready_for: ClassVar[tuple[str, ...]] = ()  # no problem: it needs arms of a table

    def __init__(self, task: Any, a: float = 1.0, batch: int = 1) -> None:
        super().__init__(task)
        self.a, self.batch = number("a", a, 0), integer("batch", batch, 1, 2**24)
        self.N = rows_of(self.name, self.task)
        budget_for(self.name, self.task, self.task.K)
        if self.batch > 1 and self.task.actions == "arm":
            raise ValueError(f"{self.name} pulls batch={batch} times at once only with actions='full'")

    def value(self, T: Floats, x: Floats) -> Floats:
        return np.where(T >= self.N, np.inf, -(x + np.sqrt(self.a / T)))  # U1, negated: the least index is pulled

    def choose(self, observation: Observation, state: IndexState) -> Any:
        arms = super().choose(observation, state)
        if self.batch == 1:
            return arms
        left: Ints = self.N - observation["pulls"][np.arange(len(arms)), arms]
        return arms, np.clip(left, 1, self.batch)  # U3, D3

    @property
    def plays(self) -> bool:
        return self.batch == 1 and self.compiled is not None
