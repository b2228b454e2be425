"""SySRs, Synchronized Successive Rejects: Lyu, Nejma, Wegel, Yang & Dorner, ICML 2026. Fixed budget.

symbols     K arms, N items, T budget in cells, n_k items on which each arm that is left has been graded after phase k,
            Lbar = 1/2 + sum of 1/j for j = 2 .. K

S1  Schedule   n_0 = 0, n_k = ceil((T - K) / (Lbar (K + 1 - k))) for k = 1 .. K - 1.
S2  Cap        where some n_k > N, these become N, and those before them grow by one factor, so that T is spent; again,
               until no further one is above N.
S3  Order      all arms are graded on the items in one random order, each once.
S4  Phase k    grade every arm that is left on the same next n_k - n_{k-1} items; drop the arm with the lowest mean.
S5  Recommend  the arm that is left after phase K - 1.

departures  D1 of arms that tie for the lowest mean the last is dropped, in place of a random one: tables come with
               their arms in a random order
            D2 what grows in S2 is rounded down, in place of up, which spends more than T

S3 is the order in which the environment shows the rows of a table. So Successive Rejects meets common items there, too,
and what is left of SySRs is S2: below the budget at which it begins the two are one.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ..core.phases import phase_ends, rows_of
from ..top_k.successive_rejects import SuccessiveRejects


@functools.lru_cache(maxsize=64)
def schedule(K: int, N: int, T: int) -> tuple[int, ...]:
    """Items n_0 .. n_{K-1} after each phase, none above N; the arm dropped in phase k costs n_k cells. [S1, S2]"""
    n = list(phase_ends(K, T))
    free = K  # n_1 .. n_{free - 1} are not capped
    while any(n_k > N for n_k in n[1:free]):
        free = next(k for k in range(1, free) if n[k] > N)
        left, spent = T - N * (K - free + 1), sum(n[1:free])
        factor = Fraction(left, spent) if spent else Fraction(0)
        n = [int(factor * n_k) for n_k in n[:free]] + [N] * (K - free)  # D2
    return tuple(n)


class SySRs(SuccessiveRejects):
    """Synchronized Successive Rejects: the column with the best mean of one table, within a budget > K."""

    name, source = "sysrs", "Lyu, Nejma, Wegel, Yang & Dorner, ICML 2026"
    solves = ("BestArm",)
    needs = "a table, the budget"
    ready_for: ClassVar[tuple[str, ...]] = ()  # no problem: it needs arms of a table

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        N = rows_of(self.name, self.task)
        self.phases = np.diff(schedule(self.task.K, N, self.task.budget))
