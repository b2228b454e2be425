"""Arm elimination and epsilon-LUCB of AgentOpt, which select a language model (AgentOptimizer/agentopt @ 6d9d985da475).

symbols     N rows; m_i mean and s_i standard deviation (1/2 of one) of n_i scores of arm i, r_i = c s_i / sqrt(n_i)
E1, L1      ask all arms the first rows, `first`
E2 Out      arm i is out, for good, where m_i + r_i < m_j - r_j of an arm that was in
E3 Batch    ask those that are in the next rows, growth times as many, rounded down; end: one is in, or no row is left
L2 Pair     h has the largest m, l the largest m + r of the others: ask each its next row; end: N - first such rounds,
            or m_l + r_l - (m_h - r_h) <= epsilon
E4, L3      the answer is the largest m of all arms, also of those that are out
departures  D1 in AgentOpt L2 asks both the row first + t in round t, whatever rows an arm has missed
            D2 ties go to the lowest arm; in AgentOpt to the quickest, then to the cheapest
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from bandit_envs.kernels import integer, number

from ..core.algorithm import Algorithm
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.phases import rows_of
from ..core.plans import count_pulls, pull


class _Selector(Algorithm):
    """What the two share: the first rows, and the half widths r."""

    source, solves, needs = "AgentOpt, arXiv 2604.06296", ("BestArm",), "a table"
    ready_for: ClassVar[tuple[str, ...]] = ()  # no problem: it needs arms of a table
    stops, passes, reads = True, "first", ("variance",)
    N, first, c, r = setting(int), setting(int), setting(float), scratch(float)

    def observe(ep, own):
        """The half widths."""
        for i in range(len(own.r)):
            n = float(ep.pulls[i])
            own.r[i] = own.c * (math.sqrt(max(ep.variance[i], 0.0) / (n - 1.0)) if n > 1.0 else 0.5)

    def __init__(self, task: Any, first: int | None, c: float) -> None:
        super().__init__(task)
        self.N, self.c = rows_of(self.name, self.task), number("c", c, 0)
        self.first = integer("first", max(self.N // 10, 1) if first is None else first, 1, self.N)


class AgentOptElimination(_Selector):
    """Arm elimination, E1 to E4: `first` rows (None: N // 10), growth >= 1, c >= 0. It stops and promises nothing."""

    name, bulk, resumes = "agentopt-elimination", True, False
    growth, out, batch_size = setting(float), per_arm(bool), per_episode(int)

    def sample(ep, own):
        """The next batch; none at the end."""
        low, left, rows = -math.inf, 0, 0
        for i in range(len(own.out)):
            low, rows = low if own.out[i] else max(low, ep.mean[i] - own.r[i]), max(rows, ep.pulls[i])
        for i in range(len(own.out)):
            own.out[i] |= ep.mean[i] + own.r[i] < low
            left += not own.out[i]
        size = own.growth * float(ep.now.batch_size if ep.now.batch_size else own.first)
        ep.now.batch_size = int(min(size, float(own.N)))
        for i in range(len(own.out)):
            if not own.out[i] and left > 1 and rows < own.N:
                pull(ep, i, min(ep.now.batch_size, own.N - rows))

    def __init__(self, task: Any, first: int | None = None, growth: float = 2.0, c: float = 1.0) -> None:
        super().__init__(task, first, c)
        self.growth = number("growth", growth, 1)


class AgentOptLUCB(_Selector):
    """Epsilon-LUCB, L1 to L3: `first` rows (None: N // 10), epsilon and c >= 0. It stops and promises nothing."""

    name, epsilon = "agentopt-lucb", setting(float)

    def sample(ep, own):
        """The next row of h and l; none at the end."""
        h, rival = 0, -1
        for i in range(len(own.r)):
            h = i if ep.mean[i] > ep.mean[h] else h  # D2
        for i in range(len(own.r)):
            if i != h and (rival < 0 or ep.mean[i] + own.r[i] > ep.mean[rival] + own.r[rival]):
                rival = i
        gap = (ep.mean[rival] + own.r[rival]) - (ep.mean[h] - own.r[h])
        if gap > own.epsilon and count_pulls(ep) < own.first * len(own.r) + 2 * (own.N - own.first):
            pull(ep, h)  # D1
            pull(ep, rival)

    def __init__(self, task: Any, first: int | None = 1, epsilon: float = 0.01, c: float = 1.0) -> None:
        super().__init__(task, first, c)
        self.epsilon = number("epsilon", epsilon, 0)
