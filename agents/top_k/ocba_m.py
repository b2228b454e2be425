"""OCBA-m, Optimal Computing Budget Allocation for the m best: Chen, He, Fu & Lee, INFORMS J. on Computing 2008.

symbols     m_(j) the j-th largest empirical mean, se_j = s_j / sqrt(N_j) its standard error, c the cutoff between
            m_(m+1) and m_(m), Delta pulls per allotment; m is the problem's k
departures  D1 the 2010 paper's sequential form (Delta = 1): of the arms below their targets one is drawn, with
               probability proportional to its target; Delta > 1 is the original, by whole allotments
            D2 s_i^2 >= 1e-12, |m_i - c| >= 1e-9
            D3 targets are rounded to the nearest integer, halves up; an allotment that rounds to nothing is drawn as D1
            D4 ties go to the lowest arm
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from bandit_envs.kernels import inlined, integer
from bandit_envs.problems import at_boundary, cutoff

from ..core.declared import scratch, setting
from ..core.plans import count_pulls, pull
from .selection import TopKAgent, draw, rank, uniform

LEAST_VARIANCE, LEAST_DISTANCE = 1e-12, 1e-9


@inlined
def share(ep, inside, total, target):
    """Fill target (K,) with the allotment of `total` pulls, in proportion to s_i^2 / (m_i - c)^2."""
    K, weights = len(ep.mean), 0.0
    for i in range(K):
        N = float(ep.pulls[i])
        target[i] = max(ep.variance[i] * (N / (N - 1.0)), LEAST_VARIANCE)  # s_i^2; D2
    l, h = at_boundary(ep.mean, inside)  # noqa: E741
    error_low = math.sqrt(target[l] / float(ep.pulls[l]))
    error_high = math.sqrt(target[h] / float(ep.pulls[h]))
    c = cutoff(ep.mean[l], ep.mean[h], error_low, error_high)
    for i in range(K):
        gap = max(abs(ep.mean[i] - c), LEAST_DISTANCE)  # D2
        target[i] = target[i] / (gap * gap)
        weights += target[i]
    for i in range(K):
        target[i] = total * (target[i] / weights)


@inlined
def pull_allotment(ep, target):
    """Plan to pull each arm as often as it lacks of its rounded target."""
    ep.now.resumed = 0  # it is made of the pulls alone: none of it has been pulled where the state is new
    for i in range(len(target)):
        owed = int(math.floor(target[i] + 0.5)) - ep.pulls[i]  # D3
        if owed > 0:
            pull(ep, i, owed)


@inlined
def pull_below_target(ep, target, u):
    """Draw an arm that has not been pulled as often as its target, with probability proportional to that, if any."""
    total = 0.0
    for i in range(len(target)):
        target[i] = target[i] if float(ep.pulls[i]) < target[i] else 0.0
    for i in range(len(target)):
        total += target[i]
    if total > 0.0:
        pull(ep, draw(target, total, u))


class OCBAm(TopKAgent):
    """OCBA-m (Chen, He, Fu & Lee 2008), in the sequential form of Kalyanakrishnan & Stone 2010 unless Delta > 1.

    Args:
        n0: first pulls of each arm, >= 2 (the authors: 20, at least 5). Delta: pulls per allotment, >= 1.

    It promises nothing and never stops by itself. Up to n0 pulls of each arm it is uniform sampling, to the pull: a
    budget of at most n0 K needs a smaller n0, and `agents.make` warns of it.
    """

    name, source = "ocba-m", "Chen, He, Fu & Lee, INFORMS Journal on Computing 2008"
    reads, passes = ("variance", "seed"), "n0"
    n0, Delta, seed = setting(int), setting(int), setting(int)
    target = scratch(float)

    def observe(ep, own):
        """Rank the arms."""
        rank(ep, own)

    def sample(ep, own):
        """The sampling rule: pull the next allotment, or an arm below its target."""
        share(ep, own.inside, float(count_pulls(ep) + own.Delta), own.target)
        if own.Delta > 1:
            pull_allotment(ep, own.target)
        if ep.now.size == 0:  # D1
            pull_below_target(ep, own.target, uniform(ep, own))

    def __init__(self, task: Any, n0: int = 20, Delta: int = 1, seed: int = 0) -> None:
        super().__init__(task)
        self.n0, self.Delta = integer("n0", n0, 2, 2**31 - 1), integer("Delta", Delta, 1, 2**31 - 1)
        self.seed = integer("seed", seed, 0, 2**32 - 1)

    def cautions(self) -> Iterator[str]:
        yield from super().cautions()
        n0, K, budget = self.n0, self.task.K, self.task.budget
        if budget is not None and budget <= n0 * K:
            yield (
                f"{self.name} begins with n0={n0} pulls of each of {K} arms, which takes the budget of {budget}: so it "
                "is uniform sampling; take a smaller n0, of 5 or more"
            )
