"""The set High of the k best arms, which the algorithms that adapt to every sample keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import part
from bandit_envs.problems import at_boundary

from ..core.agent import FLOAT, INT, Bools, Floats, Ints, Observation
from ..core.confidence import delta_of
from ..core.largest import smallest
from ..core.plan_policy import PlanPolicy, planned
from ..core.spellings import AgentState

__all__ = ["High", "SelectionState", "TopKAgent", "rank"]


class High(NamedTuple):
    """High of each episode: the k arms with the largest empirical means, ties to the lowest arm. Low is the rest."""

    inside: Bools  # (E, K)
    between: Floats  # (E,) a number between the means of Low and those of High
    scratch: Floats  # (K,) for a computation on one episode

    @classmethod
    def of(cls, E: int, K: int) -> High:
        """For E episodes that have not been ranked yet."""
        return cls(np.zeros((E, K), np.bool_), np.zeros(E), np.zeros(K))


@part
def gather(seen, e, high, k):
    """Set High of episode e."""
    K, places = seen.mean.shape[1], k
    for i in range(K):
        high.scratch[i] = seen.mean[e, i]
    kth = smallest(high.scratch, K, K - k + 1)
    for i in range(K):
        high.inside[e, i] = seen.mean[e, i] > kth
        places -= high.inside[e, i]
    for i in range(K):
        if places > 0 and seen.mean[e, i] == kth:
            high.inside[e, i] = True
            places -= 1
    high.between[e] = kth


@part
def rank(seen, e, plan, high, k):
    """Put High right after the pulls of the plan, or of the first passes over the arms, which are over."""
    if plan.beginning:
        gather(seen, e, high, k)
        return
    crossed = False
    for i in planned(plan):
        m = seen.mean[e, i]
        crossed |= m <= high.between[e] if high.inside[e, i] else m >= high.between[e]
    if crossed:
        settle(seen, e, high, plan.size)


@part
def settle(seen, e, high, most):
    """Swap the worst arm of High and the best of Low until they are in order, after `most` arms have been pulled."""
    for _ in range(most + 1):
        l, h = at_boundary(seen.mean, e, high.inside)  # noqa: E741
        best, worst = seen.mean[e, l], seen.mean[e, h]
        if best < worst or (best == worst and h < l):
            high.between[e] = 0.5 * best + 0.5 * worst
            return
        high.inside[e, l], high.inside[e, h] = True, False


@dataclass
class SelectionState(AgentState):
    """State for E episodes."""

    plans: Any  # (E,) the arms to be pulled next
    high: High


class TopKAgent(PlanPolicy):
    """An algorithm for TopK, and for BestArm as TopK with k = 1. It answers High, the k largest empirical means.

    With a budget it spends it; otherwise it stops by its own rule.
    """

    solves: tuple[str, ...] = ("TopK", "BestArm")  # type: ignore[misc]

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        self.k: int = self.problem.k  # type: ignore[attr-defined]

    @property
    def budgeted(self) -> bool:
        """Whether it spends a budget."""
        return self.task.budget is not None

    def stopping_level(self, delta: float | None) -> float | None:
        """delta, or None where it is only needed to stop and nobody asks for that."""
        needed = delta is not None or self.task.delta is not None or not self.budgeted
        return delta_of(self.name, self.task, delta) if needed else None

    def initial_state(self, observation: Observation) -> Any:
        return SelectionState(**self.blank(observation))

    def blank(self, observation: Observation) -> dict[str, Any]:
        """The fields of a `SelectionState` before the first choice."""
        return {"plans": self.new_plans(observation), "high": High.of(*observation["pulls"].shape)}

    @staticmethod
    def beside(observation: Observation) -> tuple[Floats, Ints]:
        """Variances (E, K) and public seeds (E, 1), as a kernel takes them."""
        variance = np.ascontiguousarray(observation["variance"], FLOAT)
        return variance, np.ascontiguousarray(observation["public_seed"], INT)
