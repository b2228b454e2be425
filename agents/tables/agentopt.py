"""The two bandits of AgentOpt that select a language model on a table of questions; they stop by themselves.

source      AgentOpt (github AgentOptimizer/agentopt @ 6d9d985da475): its documentation and what its selectors do
symbols     K columns and N rows; n_i scores of arm i so far, m_i their mean, s_i their standard deviation (over n - 1),
            1/2 of one score; r_i = c s_i / sqrt(n_i); L_i = m_i - r_i, U_i = m_i + r_i
E1, L1      the first rows, `first`, are asked of all arms
E2 Leave    arm i is out for good where U_i < L_j of another arm that was still in
E3 Batch    the next rows of all that are in: growth times as many as in the last batch, rounded down, or all that are left
E4 Stop     where one arm is in, or no row is left
L2 Pair     h, the arm with the largest mean, and l, the one with the largest U of the others: the next row of both
L3 Stop     where U_l - L_h <= epsilon, or a row for each round has been asked, after N - first rounds
E5, L4      the answer is the largest mean of all arms, of those that are out, too

departures  D1 in round t of L2 AgentOpt asks row first + t of both; here each arm goes on with its own next row
            D2 ties for the largest mean go to the lowest arm, there to the quicker one, then the cheaper one

Neither promises anything: r is about one standard error, at any time and of any number of arms, and 0 as long as all
scores of an arm are equal. No text says how AgentOpt came to c = 1, or with which `first` its rates were measured.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from bandit_envs.kernels import inlined, integer, number

from ..core.algorithm import Algorithm
from ..core.declared import per_arm, per_episode, setting
from ..core.phases import rows_of
from ..core.plans import count_pulls, pull


@inlined
def radius(ep, own, i):
    """The half width r_i."""
    n = float(ep.pulls[i])
    return own.c * (math.sqrt(max(ep.variance[i], 0.0) / (n - 1.0)) if n > 1.0 else 0.5)


class _Selector(Algorithm):
    """What the two share: the first rows, and the scale of their intervals."""

    source, solves, needs = "AgentOpt", ("BestArm",), "a table"
    ready_for: ClassVar[tuple[str, ...]] = ()  # no problem: it needs arms of a table
    stops, passes, reads = True, "first", ("variance",)
    N, first, c = setting(int), setting(int), setting(float)

    def __init__(self, task: Any, first: int | None, c: float) -> None:
        super().__init__(task)
        self.N = rows_of(self.name, self.task)
        self.first = integer("first", max(self.N // 10, 1) if first is None else first, 1, self.N)
        self.c = number("c", c, 0)


class AgentOptElimination(_Selector):
    """Arm elimination of AgentOpt, its default: rows in growing batches, and arms a standard error apart leave.

    Args:
        first: rows of the first batch, 1 .. N; None: N // 10. growth: of batches, >= 1. c: of the intervals, >= 0.

    It stops by itself, also before a budget is spent, and promises nothing.
    """

    name, bulk, resumes = "agentopt-elimination", True, False
    growth = setting(float)
    out = per_arm(bool)
    left, many, rows = per_episode(int), per_episode(int), per_episode(int)

    def begin(ep, own):
        """The first batch is over."""
        ep.now.many = ep.now.rows = own.first

    def observe(ep, own):
        """Arms leave.   E2"""
        highest, ep.now.left = -math.inf, 0
        for i in range(len(own.out)):
            highest = highest if own.out[i] else max(highest, ep.mean[i] - radius(ep, own, i))
        for i in range(len(own.out)):
            own.out[i] |= ep.mean[i] + radius(ep, own, i) < highest
            ep.now.left += not own.out[i]

    def sample(ep, own):
        """The next batch, E3; none at the end, E4."""
        ep.now.many = int(min(ep.now.many * own.growth, float(own.N)))
        times = min(ep.now.many, own.N - ep.now.rows)
        ep.now.rows += times
        for i in range(len(own.out)):
            if times > 0 and ep.now.left > 1 and not own.out[i]:
                pull(ep, i, times)

    def __init__(self, task: Any, first: int | None = None, growth: float = 2.0, c: float = 1.0) -> None:
        super().__init__(task, first, c)
        self.growth = number("growth", growth, 1)


class AgentOptLUCB(_Selector):
    """Epsilon-LUCB of AgentOpt: a row at a time of the best arm and its rival, until epsilon parts their intervals.

    Args:
        first: rows asked of all arms first, 1 .. N. epsilon: at which it stops, >= 0. c: of the intervals, >= 0.

    It stops by itself, also before a budget is spent, and promises nothing. With AgentOpt's own first=1 it is often
    over as soon as all scores of two arms are equal; first=10 agrees with one of its two published rates.
    """

    name = "agentopt-lucb"
    epsilon = setting(float)

    def sample(ep, own):
        """The next row of h and l, L2; none at the end, L3."""
        h, rival, highest = 0, -1, -math.inf
        for i in range(len(ep.pulls)):
            h = i if ep.mean[i] > ep.mean[h] else h  # D2
        for i in range(len(ep.pulls)):
            U = ep.mean[i] + radius(ep, own, i)
            if i != h and U > highest:
                rival, highest = i, U
        rounds = (count_pulls(ep) - own.first * len(ep.pulls)) // 2
        if highest - (ep.mean[h] - radius(ep, own, h)) > own.epsilon and rounds < own.N - own.first:
            pull(ep, h)  # D1
            pull(ep, rival)

    def __init__(self, task: Any, first: int = 1, epsilon: float = 0.01, c: float = 1.0) -> None:
        super().__init__(task, first, c)
        self.epsilon = number("epsilon", epsilon, 0)
