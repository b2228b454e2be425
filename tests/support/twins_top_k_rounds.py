"""Literal twins of the round-based algorithms for the k best arms: the pseudo-code, as plainly as possible.

A twin yields (arm, times), is sent the average of these samples, and returns its answer, a set of arms. W is the width
of the interval of the samples.
"""

from __future__ import annotations

import math
from typing import Any

from plays import Twin
from twins_elimination import median_elimination

Sums = dict[int, "tuple[float, int]"]  # of each arm: its samples, and how many


def _best(S: Any, m: Any, size: int) -> list[int]:
    return sorted(S, key=lambda i: (-m[i], i))[:size]


def direct(n: int, m: int, eps: float, delta: float, W: float) -> Twin:
    """Kalyanakrishnan & Stone 2010, Algorithm 1."""
    p = {}
    for a in range(n):
        p[a] = yield a, math.ceil(2 * W**2 / eps**2 * math.log(n / delta))
    return set(_best(p, p, m))


def incremental(n: int, m: int, eps: float, delta: float, constant: float) -> Twin:
    """Kalyanakrishnan & Stone 2010, Algorithm 2."""
    S: set[int] = set()
    R = list(range(n))
    for _ in range(m):
        a = yield from median_elimination(R, eps, delta / m, constant)
        S.add(a)
        R.remove(a)
    return S


def halving(n: int, m: int, eps: float, delta: float, W: float) -> Twin:
    """Kalyanakrishnan & Stone 2010, Algorithm 3."""
    R, e, d = list(range(n)), eps / 4, delta / 2
    for _ in range(math.ceil(math.log2(n / m))):
        p = {}
        for a in R:
            p[a] = yield a, math.ceil(2 * W**2 / e**2 * math.log(3 * m / d))
        R = sorted(_best(R, p, max(math.ceil(len(R) / 2), m)))
        e, d = 3 / 4 * e, d / 2
    return set(R)


def _accept_reject(S: list[int], A: set[int], K: int, m: Any, margin: float) -> None:
    """Chen et al. 2017, Algorithm 1, lines 7-15, one arm at a time."""
    while S:
        wanted, ranked = K - len(A), sorted((m[i] for i in S), reverse=True)
        a = ranked[wanted] if wanted < len(S) else -math.inf
        b = ranked[wanted - 1] if wanted > 0 else math.inf
        gap = {i: max(m[i] - a, b - m[i]) for i in S}
        x = max(S, key=lambda i: (gap[i], -i))
        if not gap[x] > margin:
            return
        if m[x] > a:
            A.add(x)
        S.remove(x)


def _round(r: int, n: int, delta: float, W: float, practical: bool) -> tuple[int, float]:
    """Pulls of each undecided arm in round r, and the margin after it; `practical`: so many in all rounds together."""
    if practical:
        return 2 ** (r + 2), 1.1 * W / math.sqrt(2 ** (r + 2))
    return math.ceil(2 ** (2 * r) * math.log(2 * n * r**2 / delta)), 2 * W * 2**-r


def adaptive_top_k(n: int, K: int, eps: float, delta: float, W: float, practical: bool = False) -> Twin:
    """Chen et al. 2017, Algorithm 1."""
    S, r, m, before = list(range(n)), 0, dict.fromkeys(range(n), 0.0), 0
    A: set[int] = set()
    margin = 2 * W
    while margin * (K - len(A)) > eps * K and len(S) > K - len(A):
        r += 1
        times, margin = _round(r, n, delta, W, practical)
        for i in S:
            m[i] = (m[i] * before + (yield i, times - before) * (times - before)) / times
        before = times if practical else 0
        _accept_reject(S, A, K, m, margin)
    return A | set(_best(S, m, K - len(A)))


def adaptive_top_k_budget(n: int, K: int, delta: float, W: float, budget: int, practical: bool = False) -> Twin:
    """The same without the outer test; an unaffordable round is spread evenly, and pooled with the round before."""
    S, r, left = list(range(n)), 0, budget
    A: set[int] = set()
    sums: Sums = dict.fromkeys(S, (0.0, 0))
    before = 0
    while S:
        r += 1
        times, margin = _round(r, n, delta, W, practical)
        if (times - before) * len(S) > left:
            for part, size in ((S, left // len(S)), (S[: left % len(S)], 1)):
                for i in part if size else []:
                    x = yield i, size
                    sums[i] = (sums[i][0] + x * size, sums[i][1] + size)
            break
        left -= (times - before) * len(S)
        for i in S:
            x, old = (yield i, times - before), sums[i] if practical else (0.0, 0)
            sums[i] = (old[0] + x * (times - before), times)
        before = times if practical else 0
        _accept_reject(S, A, K, {i: sums[i][0] / times for i in S}, margin)
    return A | set(_best(S, {i: sums[i][0] / max(sums[i][1], 1) for i in S}, K - len(A)))


def improved_top_k(n: int, K: int, eps: float, delta: float, W: float, reuse: bool) -> Twin:
    """The reconstruction of IMPROVEDTOPK."""
    R = math.ceil(math.log2(16 * W / (7 * eps)))
    q = delta * eps / W * K / (16 * n * R)
    S, r, before, m = list(range(n)), 0, 0, dict.fromkeys(range(n), 0.0)
    A: set[int] = set()
    while 2 * W * 2**-r * (K - len(A)) > 7 / 8 * eps * K and len(S) > K - len(A):
        r += 1
        times = math.ceil(4**r / 2 * math.log(2 / q))
        for i in S:
            x = yield i, times - before
            m[i] = (m[i] * before + x * (times - before)) / times
        before = times if reuse else 0
        a, b = (
            sorted((m[i] for i in S), reverse=True)[K - len(A)],
            sorted((m[i] for i in S), reverse=True)[K - len(A) - 1],
        )
        P = {i for i in S if m[i] > a + 2 * W * 2**-r}
        D = {i for i in S if m[i] < b - 2 * W * 2**-r}
        A, S = A | P, [i for i in S if i not in P | D]
    return A | set(_best(S, m, K - len(A)))


def opt_mai(n: int, K: int, Q: int, reuse: bool) -> Twin:
    """Zhou, Chen & Li 2014."""
    if n < 2 * K:
        worst = yield from _opt_mai(n, n - K, Q, reuse, -1)
        return set(range(n)) - worst
    return (yield from _opt_mai(n, K, Q, reuse, 1))


def _opt_mai(n: int, K: int, Q: int, reuse: bool, sign: int) -> Twin:
    beta, r = math.exp(0.2) * 0.75, 0
    S = list(range(n))
    T: set[int] = set()
    sums: Sums = dict.fromkeys(S, (0.0, 0))
    m = dict.fromkeys(S, 0.0)
    while len(T) < K and S:
        if len(S) == K - len(T):
            return T | set(S)
        p = math.floor(beta**r * (1 - beta) * Q / len(S))
        if p == 0:
            return T | set(_best(S, m, K - len(T)))
        for i in S:
            x = yield i, p
            sums[i] = (sums[i][0] + x * p, sums[i][1] + p) if reuse else (x * p, p)
            m[i] = sign * sums[i][0] / sums[i][1]
        if len(S) >= 4 * K:
            S = sorted(_best(S, m, len(S) - len(S) // 4))
        else:
            s, wanted = len(S), K - len(T)
            ranked, best = sorted((m[i] for i in S), reverse=True), set(_best(S, m, wanted))
            gap = {i: max(m[i] - ranked[wanted], ranked[wanted - 1] - m[i]) for i in S}
            for i in sorted(S, key=lambda i: (-gap[i], i)):
                if len(T) == K or len(S) <= 3 / 4 * s:
                    break
                S.remove(i)
                if i in best:
                    T.add(i)
        r += 1
    return T


def racing(
    n: int, m: int, R: int, delta: float, W: float, kind: str, beyond: bool, support: tuple[float, float]
) -> Twin:
    """Heidrich-Meisner & Igel 2009."""
    Sel: list[int] = []
    Dis: list[int] = []
    U = list(range(n))
    LB, UB = dict.fromkeys(U, support[0]), dict.fromkeys(U, support[1])
    x: dict[int, list[float]] = {i: [] for i in U}
    t, u = 0, [0]
    mean = {}
    while len(Sel) < m and U and (t < R or beyond):
        t += 1
        u.append(len(U))
        for i in U:
            x[i].append((yield i, 1))
        r = min(t, R)
        nb = sum(u[1:r]) + (R - r + 1) * u[r]
        for i in U:
            mean[i] = sum(x[i]) / t
            sd = math.sqrt(sum((y - mean[i]) ** 2 for y in x[i]) / t)
            level = delta / 2 if kind == "tightest" else delta
            hoeffding = W * math.sqrt(math.log(2 * nb / level) / (2 * t))
            bernstein = sd * math.sqrt(2 * math.log(3 * nb / level) / t) + 3 * W * math.log(3 * nb / level) / t
            c = {"hoeffding": hoeffding, "bernstein": bernstein, "tightest": min(hoeffding, bernstein)}[kind]
            LB[i], UB[i] = max(LB[i], mean[i] - c), min(UB[i], mean[i] + c)
        for i in list(U):
            if len(Sel) < m and sum(LB[i] > UB[j] for j in U) >= n - m - len(Dis):
                Sel.append(i)
                U.remove(i)
        for i in list(U):
            if len(Dis) < n - m and sum(UB[i] < LB[j] for j in U) >= m - len(Sel):
                Dis.append(i)
                U.remove(i)
    return set(Sel) | set(_best(U, mean, m - len(Sel)))
