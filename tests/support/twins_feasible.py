"""Literal twins for feasible arms: MD-SAR, and the index rules where a pull samples one coordinate of one arm.

`sar` yields (arm, times) and is sent the arm's mean over all its samples; `by_coordinate` yields (arm, coordinate) and
is sent the sample. Both return their answer, a set of arms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from fractions import Fraction
from typing import Any

Vector = Sequence[float]


def sar(K: int, T: int, margin: Callable[[Any], float]) -> Generator[tuple[int, int], Any, set[int]]:
    """Katz-Samuels & Scott 2018, Algorithm 2."""
    logbar = Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, K + 1))
    n = [0] + [math.ceil(Fraction(T - K) / (logbar * (K + 1 - k))) for k in range(1, K)]  # line 2
    Q, mean = list(range(K)), [math.nan] * K  # line 3
    for k in range(1, K):  # line 4
        if n[k] > n[k - 1]:  # line 5
            passes = min(n[k] - n[k - 1], 64)
            for j in range(passes):
                times = (n[k] - n[k - 1]) * (j + 1) // passes - (n[k] - n[k - 1]) * j // passes
                for i in Q:
                    mean[i] = yield i, times
        D = [abs(margin(mean[i])) for i in Q]
        Q.pop(D.index(max(D)))  # line 6
    return {i for i in range(K) if margin(mean[i]) >= 0}  # line 8


def by_coordinate(
    K: int,
    D: int,
    budget: int,
    A: Sequence[Vector],
    b: Vector,
    project: Callable[[Vector], Vector],
    rule: Callable[[float, float], float],
) -> Generator[tuple[int, int], float, set[int]]:
    """The text at the head of `agents.core.coordinates`, `rule` being I(T, D)."""
    n, total = [[0] * D for _ in range(K)], [[0.0] * D for _ in range(K)]

    def mean(i: int) -> list[float]:
        return [total[i][d] / n[i][d] for d in range(D)]

    def slacks(x: Vector) -> list[float]:
        return [end - sum(a * z for a, z in zip(row, x, strict=True)) for row, end in zip(A, b, strict=True)]

    def judged(i: int) -> tuple[float, Vector]:
        """Index of an arm and the direction that it comes from."""
        x = mean(i)
        if min(slacks(x)) >= 0:
            directions = list(zip(A, slacks(x), strict=True))
        else:
            u = [z - y for z, y in zip(x, project(x), strict=True)]
            directions = [(u, -math.hypot(*u))]
        effective = [
            sum(a * a for a in u) / sum(a * a / m for a, m in zip(u, n[i], strict=True)) for u, _ in directions
        ]
        value = [rule(T, margin) for T, (_, margin) in zip(effective, directions, strict=True)]
        best = value.index(min(value))
        return value[best], directions[best][0]

    for _ in range(budget):
        unseen = [(i, d) for i in range(K) for d in range(D) if n[i][d] == 0]
        if unseen:
            i, d = unseen[0]
        else:
            found = [judged(i) for i in range(K)]
            index = [value for value, _ in found]
            i = index.index(min(index))
            gain = [a * a / (m * (m + 1)) for a, m in zip(found[i][1], n[i], strict=True)]
            d = gain.index(max(gain))
        total[i][d] += yield i, d
        n[i][d] += 1
    return {i for i in range(K) if min(n[i]) > 0 and min(slacks(mean(i))) >= 0}
