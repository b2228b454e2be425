"""The set High of the k best arms, which the algorithms that adapt to every sample keep."""

from __future__ import annotations

from typing import Any

from bandit_envs.kernels import inlined, part
from bandit_envs.problems import at_boundary

from ..core.algorithm import Algorithm, per_arm, per_episode, planned, scratch, setting
from ..core.confidence import delta_of
from ..core.largest import keep_largest


@part
def gather(ep, own):
    """Set High, when every arm has been pulled."""
    for i in range(len(own.inside)):
        own.inside[i] = True
    keep_largest(ep.mean, own.inside, own.k, own.work)
    settle(ep, own)


@inlined
def rank(ep, own):
    """Put High right after the pulls of the last plan."""
    crossed = False
    for i in planned(ep):
        m = ep.mean[i]
        crossed |= m <= ep.now.between if own.inside[i] else m >= ep.now.between
    if crossed:
        settle(ep, own)


@part
def settle(ep, own):
    """Swap the worst arm of High and the best of Low until they are in order: once for each arm pulled, at most."""
    for _ in range(ep.now.size + 1):
        l, h = at_boundary(ep.mean, own.inside)  # noqa: E741
        best, worst = ep.mean[l], ep.mean[h]
        if best < worst or (best == worst and h < l):
            ep.now.between = 0.5 * best + 0.5 * worst
            return
        own.inside[h], own.inside[l] = False, True


class TopKAgent(Algorithm):
    """An algorithm for TopK, and for BestArm as TopK with k = 1. It answers High, the k largest empirical means.

    With a budget it spends it; otherwise it stops by its own rule.
    """

    solves: tuple[str, ...] = ("TopK", "BestArm")  # type: ignore[misc]
    k = setting(int)
    inside = per_arm(bool)  # High: the k arms with the largest empirical means, ties to the lowest arm; Low is the rest
    between = per_episode(float)  # a number between the means of Low and those of High
    work = scratch(float)

    def begin(ep, own):
        """Gather High."""
        gather(ep, own)

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        self.k = self.problem.k  # type: ignore[attr-defined]

    @property
    def budgeted(self) -> bool:
        """Whether it spends a budget."""
        return self.task.budget is not None

    def stopping_level(self, delta: float | None) -> float | None:
        """delta, or None where it is only needed to stop and nobody asks for that."""
        needed = delta is not None or self.task.delta is not None or not self.budgeted
        return delta_of(self.name, self.task, delta) if needed else None
