"""`Evolved`: the agent that pulls by an evolved index; see `formula` for the index.

Where the problem is `local`, a pull changes the index of the arm that is pulled; elsewhere it may change the indices of
all arms. Where a pull has a price and there is no budget, the agent stops once the smallest index is larger than
tau0 - tau1 ln(price), tau0 and tau1 being two parameters more; and 1 / price stands for the budget T in the index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import number

from ..core.agent import ALL_PROBLEMS, Floats, Ints, Observation, unfit
from ..core.index_kernels import ArmRule
from ..core.index_policy import IndexPolicy
from ..models.cards import stored_for, stored_genes
from .formula import PARAMETERS, Own, arm_index, at_budget, indices, least_indices

__all__ = ["STOPPING", "Evolved"]

STOPPING = ("tau0", "tau1")


@dataclass
class WideMemory:
    """Arrays that are filled at each decision on E episodes, for problems where a pull may change all indices."""

    distances: Floats  # (E, K)
    arm: Ints  # (E,)
    least: Floats  # (E,)


def _table(genes: Any, wanted: int) -> Floats:
    """Genes as numbers (P, wanted), of one candidate or more.

    Raises:
        ValueError: naming what they are instead.
    """
    try:
        table = np.atleast_2d(np.array(genes, np.float64))
    except (TypeError, ValueError, OverflowError):
        table = np.empty((0, 0))
    if table.ndim != 2 or table.shape[-1] != wanted or not len(table) or not np.isfinite(table).all():
        raise ValueError(f"evolved takes {wanted} finite genes here, got {genes!r:.200}")
    return table


class Evolved(IndexPolicy):
    """An evolved index.

    Args:
        task: a task or an environment, with a budget or a price of a pull.
        genes: the 18 parameters of `formula.PARAMETERS`, then the 2 of `STOPPING` where the agent is to stop; or
            (P, 18) for P candidates, each for an equal share of the episodes in a row. None: those that are stored for
            the problem.

    Raises:
        ValueError: where no genes are stored for the task, telling how to evolve some.
    """

    name, source = "evolved", "this package: an index of 18 parameters, tuned by CMA-ES on random instances"
    solves, ready_for = ALL_PROBLEMS, stored_for("evolved")  # with genes of one's own it solves all
    anytime = False

    def __init__(self, task: Any, genes: Sequence[float] | None = None) -> None:
        super().__init__(task)
        task = self.task
        if task.budget is None and task.pull_cost == 0:
            raise ValueError("evolved needs a budget, or a pull_cost > 0")
        self.stops = task.budget is None
        names = (*PARAMETERS, *(STOPPING if self.stops else ()))
        self.genes = table = _table(stored_genes(task, names) if genes is None else genes, len(names))
        scale = 1.0 / task.pull_cost if task.budget is None else float(task.budget)
        self.fair = math.log(scale / task.K)
        self._own = at_budget(table, self.fair)
        self.sigma2 = number("sigma", task.sigma, 0, above=True) ** 2
        self._bernoulli, boundary = task.law == "bernoulli" and task.D == 1, self.problem.boundary
        self._centre = boundary if self._bernoulli and boundary is not None else math.nan
        self._wide = not self.problem.local

    def index(self, T: Floats, D: Floats) -> Floats:
        out = np.empty(len(T))
        rows = len(T) // len(self.genes)
        indices(T, D, self._centre, self.sigma2, self.fair, self._own, max(rows, 1), out)
        return out

    def arm_rule(self) -> ArmRule | None:
        boundary, scalar = self.problem.boundary, self.task.D == 1 and self.task.pull == "arm"
        if self._wide or len(self.genes) > 1 or boundary is None or not scalar:
            return None
        return ArmRule(arm_index, Own(self._centre, self.sigma2, self.fair, self._own), float(boundary))

    @property
    def plays(self) -> bool:
        return not self.stops and self.compiled is not None

    def remember(self, observation: Observation) -> Any:
        if not self._wide:
            return super().remember(observation)
        E, K = observation["pulls"].shape
        return WideMemory(np.zeros((E, K)), np.zeros(E, np.int64), np.zeros(E))

    def choose(self, observation: Observation, state: Any) -> Ints:
        if not self._wide:
            arm, least = super().choose(observation, state), None
            if self.stops:
                least = state.table.min(0) if len(state.levels) == 0 else state.table[:, state.levels[-2] :].min(1)
        else:
            pulls = np.ascontiguousarray(observation["pulls"], np.int64)
            mean = np.ascontiguousarray(observation["mean"], np.float64)
            if len(state.arm) != len(pulls):
                raise unfit(pulls, mean, len(state.arm))
            least_indices(
                pulls,
                mean.reshape(len(pulls), -1),
                self.problem.distances(pulls, mean, state.distances),
                self._bernoulli,
                self.sigma2,
                self.fair,
                self._own,
                max(len(pulls) // len(self.genes), 1),
                state.arm,
                state.least,
            )
            arm, least = state.arm.copy(), state.least
        if self.stops:
            rows = np.arange(len(arm)) // max(len(arm) // len(self.genes), 1)
            limit = self.genes[rows, -2] - self.genes[rows, -1] * math.log(self.task.pull_cost)
            arm[least > limit] = self.task.stop
        return arm
