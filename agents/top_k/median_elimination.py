"""Median Elimination: Even-Dar, Mannor & Mansour, JMLR 2006, Algorithm 3.

symbols     S surviving arms, l round, e_l and d_l accuracy and failure probability of the round
departures  D1 ceil(|S| / 2) arms stay (the paper drops those below the median, which ties leave open)
            D2 ties go to the lowest arm
            D3 the paper's constant 4 is for rewards in [0, 1]; others take 8 sigma^2, which its proof needs

Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from bandit_envs import Task
from bandit_envs.kernels import jit, part

from ..core import bulk, trees
from ..core.algorithm import Algorithm, setting
from ..core.confidence import delta_of, positive_tolerance_of, scale_of
from ..core.largest import keep_largest, size_of
from .elimination import SetAlgorithm, finish, mark, measure, pull_undecided

__all__ = [
    "Accuracy", "MedianElimination", "elimination_pulls", "plan_survivors", "pulls_per_arm", "upper_half",
    "width_constant",
]  # fmt: skip


class Accuracy(NamedTuple):
    """The arm found is within epsilon of the best with probability 1 - delta."""

    epsilon: float
    delta: float
    constant: float  # 4 for rewards in [0, 1], else 8 sigma^2


def width_constant(task: Task, sigma: float | None) -> float:
    """4 for rewards in [0, 1], else 8 sigma^2; a sigma that is given always counts.   # D3"""
    return 4.0 if sigma is None and task.support == (0.0, 1.0) else 8.0 * scale_of(task, sigma) ** 2


@jit
def pulls_per_arm(l: Any, epsilon: Any, delta: Any, constant: Any) -> Any:  # noqa: E741
    """ceil(constant / e_l^2 ln(3 / d_l)) with e_l = (3/4)^l epsilon / 4, d_l = 2^-l delta / 2, for l = 0, 1, 2, ..."""
    e, d = epsilon / 4, delta / 2
    for _ in range(l):
        e, d = 0.75 * e, d / 2
    return bulk.whole(constant / e**2 * math.log(3 / d))


@jit
def elimination_pulls(n, epsilon, delta, constant):
    """H_ME: pulls of Median Elimination over n arms, which do not depend on the samples."""
    total = l = 0  # noqa: E741
    while n > 1:
        total += n * pulls_per_arm(l, epsilon, delta, constant)
        n, l = (n + 1) // 2, l + 1  # noqa: E741
    return total


@part
def upper_half(plan, total, tree):
    """Keep the ceil(|S| / 2) arms of the plan with the largest fresh means, in order; a tree ranks them.   D1, D2"""
    for i in range(len(total)):
        trees.leave_out(tree, i)
    for j in range(plan.book.size):
        i = bulk.arm_at(plan, j)
        m = bulk.fresh_mean(plan, total, i)
        trees.put(tree, i, m, m, m, j < (plan.book.size + 1) // 2)
    trees.build(tree)
    trees.settle_best(tree)
    S = bulk.planned(plan)
    bulk.clear(plan)
    for i in S:
        if trees.is_inside(tree, i):
            bulk.add(plan, i)


@part
def plan_survivors(plan, total, tree, accuracy):
    """Plan the next round, of the arms that have survived those before; the arm where one is left, else -1."""
    l = plan.book.made  # noqa: E741
    if l == 0:
        for i in range(len(total)):
            bulk.add(plan, i)
    else:
        upper_half(plan, total, tree)
    if plan.book.size == 1:
        return plan.arms[0]
    bulk.repeat(plan, pulls_per_arm(l, accuracy.epsilon, accuracy.delta, accuracy.constant))
    bulk.mark(plan, total)
    return -1


class MedianElimination(SetAlgorithm):
    """Median Elimination (Even-Dar et al. 2006): an arm within epsilon > 0 of the best, with probability 1 - delta.

    Args:
        sigma: sub-Gaussian scale; None takes the paper's constant for rewards in [0, 1], else the task's scale.
    """

    name, source = "median-elimination", "Even-Dar, Mannor & Mansour, JMLR 2006, Algorithm 3"
    solves = ("BestArm",)
    needs = "delta"
    promises = ("aggregate", "each")
    epsilon, delta, constant = setting(float), setting(float), setting(float)

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        self.delta, self.epsilon = delta_of(self.name, self.task, delta), positive_tolerance_of(self)
        self.constant = width_constant(self.task, sigma)

    def observe(ep, own):
        """A round is over: the ceil(|S| / 2) arms with the largest fresh means stay.   D1, D2"""
        measure(ep, own)
        keep_largest(own.m, own.S, (size_of(own.S) + 1) // 2, own.work)
        ep.now.round += 1

    def stops(ep, own):
        """The stopping rule: one arm is left."""
        return size_of(own.S) == 1 and finish(own, 1)

    def sample(ep, own):
        """The sampling rule."""
        mark(ep, own)
        pull_undecided(ep, own, pulls_per_arm(ep.now.round, own.epsilon, own.delta, own.constant))

    recommend = Algorithm.recommend
