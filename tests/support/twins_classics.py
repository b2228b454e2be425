"""Literal twins of Successive Rejects, SAR, Sequential Halving, UGapE, and HDoC with its rivals.

The first three yield (arm, times), are sent the average of these samples, and return their answer, a set of arms; the
others yield an arm and are sent its sample.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from plays import Twin as Bulk
from twins_top_k import Seen, Twin


def phases(n: int, T: int) -> list[int]:
    """Pulls of a surviving arm in each phase. [Audibert, Bubeck & Munos 2010, Figure 3]"""
    logbar = Fraction(1, 2) + sum(Fraction(1, i) for i in range(2, n + 1))
    ends = [0] + [math.ceil(Fraction(T - n) / (logbar * (n + 1 - j))) for j in range(1, n)]
    return [ends[j] - ends[j - 1] for j in range(1, n)]


def successive_rejects(n: int, T: int) -> Bulk:
    """Audibert, Bubeck & Munos 2010: every phase rejects the arm with the least mean."""
    A, total, N = list(range(n)), [0.0] * n, [0] * n
    for pulls in phases(n, T):
        for i in A if pulls else []:
            x = yield i, pulls
            total[i], N[i] = round(total[i] + x * pulls, 9), N[i] + pulls
        A.remove(min(A, key=lambda i: (total[i] / N[i], -i)))
    return set(A)


def sar(n: int, k: int, T: int) -> Bulk:
    """Bubeck, Wang & Viswanathan 2013: every phase decides on the arm with the largest gap."""
    A, J, total, N = list(range(n)), set[int](), [0.0] * n, [0] * n
    for pulls in phases(n, T):
        for i in A if pulls else []:
            x = yield i, pulls
            total[i], N[i] = round(total[i] + x * pulls, 9), N[i] + pulls
        m = {i: total[i] / N[i] for i in A}
        order, places = sorted(A, key=lambda i: (-m[i], i)), k - len(J)
        gap = {i: m[i] - m[order[places]] if r < places else m[order[places - 1]] - m[i] for r, i in enumerate(order)}
        # of equal gaps, that of the worst arm
        i = max(reversed(order), key=lambda i: gap[i])
        i = order[-1] if gap[order[-1]] == gap[i] else order[0]
        A.remove(i)
        if order.index(i) < places:
            J.add(i)
        if len(J) == k or len(A) == k - len(J):
            break
    return J | set(A if len(J) < k else [])


def sequential_halving(n: int, T: int, reuse: bool) -> Bulk:
    """Karnin, Koren & Somekh 2013, Algorithm 3."""
    S, rounds = list(range(n)), math.ceil(math.log2(n))
    total, N = [0.0] * n, [0] * n
    for _ in range(rounds):
        t = T // (len(S) * rounds)
        for i in S:
            x = yield i, t
            total[i], N[i] = (round(total[i] + x * t, 9), N[i] + t) if reuse else (round(x * t, 9), t)
        S = sorted(sorted(S, key=lambda i: (-total[i] / N[i], i))[: math.ceil(len(S) / 2)])
    return set(S)


def ugape(
    seen: Seen, m: int, epsilon: float, b: float, delta: float | None, a: float | None, T: int | None = None
) -> Twin:
    """Gabillon, Ghavamzadeh & Lazaric 2012, Figure 1: UGapEb for a budget T, else UGapEc."""
    K, every = seen.K, seen.every
    best: tuple[float, set[int]] = math.inf, set()
    yield from seen.first(1)
    while True:
        if delta is not None:
            width = math.sqrt(b**2 * 0.5 * (math.log(4 * K / delta) + 3 * math.log(seen.t)))
        else:
            assert a is not None
            width = math.sqrt(b**2 * a)
        beta = [width / math.sqrt(seen.N[i]) for i in every]
        U, L = [seen.m[i] + beta[i] for i in every], [seen.m[i] - beta[i] for i in every]
        # U - L in this order of operations: means are equal often enough
        B = [sorted((U[j] for j in every if j != i), reverse=True)[m - 1] + (beta[i] - seen.m[i]) for i in every]
        J = sorted(every, key=lambda i: (B[i], i))[:m]
        B_J = max(B[i] for i in J)
        if best[0] > B_J:
            best = B_J, set(J)
        if delta is not None and epsilon > B_J:
            return set(J)
        if T is not None and seen.t == T:
            return best[1]
        low = min(J, key=lambda i: (L[i], i))
        high = min((i for i in every if i not in J), key=lambda i: (-U[i], i))
        i = min(sorted((low, high)), key=lambda i: seen.N[i])
        seen.add(i, (yield i))


def hdoc(seen: Seen, xi: float, tolerance: float, delta: float, W: float, sampling: str) -> Twin:
    """Kano et al. 2019, Algorithm 1 and section 3."""
    good, A = set[int](), list(seen.every)

    def C(i: int) -> float:
        return W * math.sqrt(math.log(4 * seen.K * seen.N[i] ** 2 / delta) / (2 * seen.N[i]))

    index: dict[str, Any] = {
        "hdoc": lambda i: seen.m[i] + W * math.sqrt(math.log(seen.t) / (2 * seen.N[i])),
        "lucb-g": lambda i: seen.m[i] + C(i),
        "apt-g": lambda i: -math.sqrt(seen.N[i]) * abs(seen.m[i] - xi),
    }
    yield from seen.first(1)
    while True:
        for i in list(A):
            if C(i) < abs(seen.m[i] - xi) + tolerance:
                good |= {i} if seen.m[i] >= xi else set()
                A.remove(i)
        if not A:
            return good
        i = min(A, key=lambda i: (-index[sampling](i), i))
        seen.add(i, (yield i))
