"""What the algorithms for the k best arms that adapt to every sample share: the set High, and random choices of an arm.

Choices are functions of the public seed of the episode and the number of pulls so far.
"""

from __future__ import annotations

from typing import Any

from bandit_envs.kernels import agent_uniform, inlined, part
from bandit_envs.problems import at_boundary

from ..core.algorithm import Algorithm
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.largest import keep_largest
from ..core.plans import count_pulls, planned


@inlined
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
def settled(mean, inside, most, between):
    """Swap the worst of High and the best of Low, so often at most, until they are in order: what is between them."""
    for _ in range(most):
        l, h = at_boundary(mean, inside)  # noqa: E741
        best, worst = mean[l], mean[h]
        if best < worst or (best == worst and h < l):
            return 0.5 * best + 0.5 * worst
        inside[h], inside[l] = False, True
    return between


@inlined
def settle(ep, own):
    """Put High and Low in order: a swap for each arm pulled, at most."""
    ep.now.between = settled(ep.mean, own.inside, ep.now.size + 1, ep.now.between)


@inlined
def uniform(ep, own):
    """A uniform number in [0, 1) for the next pull; `own.seed` is the agent's own."""
    return agent_uniform(ep.seed, count_pulls(ep), own.seed)


@part
def draw(weight, total, u):
    """An arm with probability proportional to its weight (K,), by a uniform u; total > 0 is added up in order."""
    last, partial = len(weight) - 1, 0.0
    for i in range(last):
        partial += weight[i]
        if partial > u * total:
            return i
    return last


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
