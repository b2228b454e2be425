"""Literal twins of the elimination algorithms: the papers' pseudo-code, as plainly as possible, one generator each.

A twin yields (arm, times), is sent the average of these samples, and returns its answer, a set of arms.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

from plays import Twin


def _width(t: int, level: float, sigma: float, c: float) -> float:
    return math.sqrt(c * sigma**2 * math.log(math.log2(2 * t) / level) / t)


def median_elimination(arms: list[int], eps: float, delta: float, constant: float) -> Generator[Any, float, int]:
    """Even-Dar et al. 2006, Algorithm 3; returns the arm."""
    S, e, d = list(arms), eps / 4, delta / 2
    while len(S) > 1:
        times, m = math.ceil(constant / e**2 * math.log(3 / d)), {}
        for i in S:
            m[i] = yield i, times
        best = sorted(S, key=lambda i: (-m[i], i))
        S = sorted(best[: math.ceil(len(S) / 2)])
        e, d = 3 / 4 * e, d / 2
    return S[0]


def best_arm(K: int, eps: float, delta: float, constant: float) -> Twin:
    """Median Elimination over all arms."""
    return {(yield from median_elimination(list(range(K)), eps, delta, constant))}


def lucb(arms: list[int], eps: float, level: float, sigma: float, c: float) -> Generator[Any, float, tuple[int, int]]:
    """LUCB1 with k = 1 and running bounds of C_level; returns the arm and the number of pulls."""
    N, total = dict.fromkeys(arms, 0), dict.fromkeys(arms, 0.0)
    low, high = dict.fromkeys(arms, -math.inf), dict.fromkeys(arms, math.inf)
    if len(arms) == 1:
        return arms[0], 0
    pulled = arms
    while True:
        for i in pulled:
            total[i] += yield i, 1
            N[i] += 1
        for i in pulled:
            C = _width(N[i], level, sigma, c)
            low[i], high[i] = max(low[i], total[i] / N[i] - C), min(high[i], total[i] / N[i] + C)
        h = max(arms, key=lambda i: (total[i] / N[i], -i))
        other = max((i for i in arms if i != h), key=lambda i: (high[i], -i))
        if high[other] - low[h] < eps:
            return h, sum(N.values())
        pulled = [h, other]


class Filter:
    """The good filter of Mason et al. 2020: the arms G, which are good, B, which are bad, and A, which it pulls."""

    def __init__(self, K: int, eps: float, multiplicative: bool, sigma: float, c: float, level: float) -> None:
        self.everyone, self.G, self.B = set(range(K)), set[int](), set[int]()
        self.A, self.N, self.total = set(range(K)), [0] * K, [0.0] * K
        self.eps, self.multiplicative, self.width = eps, multiplicative, lambda t: _width(t, level, sigma, c)

    @property
    def over(self) -> bool:
        return self.A <= self.G or self.everyone == self.G | self.B

    def pull(self) -> Generator[Any, float, tuple[float, float] | None]:
        """One more sample; U and L, where all arms of A have as many."""
        j = min(self.A, key=lambda i: (self.N[i], i))
        self.total[j] += yield j, 1
        self.N[j] += 1
        if len({self.N[i] for i in self.A}) > 1:
            return None
        t = self.N[j]
        m, C = {i: self.total[i] / t for i in self.A}, self.width(t)
        top = max(m.values())
        U, L = top + C - self.eps, top - C - self.eps
        if self.multiplicative:
            U, L = (1 - self.eps) * (top + C), (1 - self.eps) * (top - C)
        for i in sorted(self.A):
            if m[i] - C >= U:
                self.G.add(i)
            if m[i] + C <= L:
                self.A.remove(i)
                self.B.add(i)
            elif i in self.G and m[i] + C <= top - C:
                self.A.remove(i)
        return U, L


def east(K: int, eps: float, multiplicative: bool, gamma: float, delta: float, sigma: float, c: float = 4.0) -> Twin:
    """Mason et al. 2020, the good filter alone, which does not use gamma."""
    good = Filter(K, eps, multiplicative, sigma, c, delta / K)
    while True:
        bounds = yield from good.pull()
        if bounds and good.over:
            return good.G


def uniform_elimination(
    K: int, eps: float, multiplicative: bool, gamma: float, delta: float, sigma: float, c: float = 4.0
) -> Twin:
    """Mason et al. 2020, section 5: round robin until all arms are known."""
    total, t = [0.0] * K, 0
    while True:
        for i in range(K):
            total[i] += yield i, 1
        t += 1
        m, C = [total[i] / t for i in range(K)], _width(t, delta / K, sigma, c)
        U, L = max(m) + C - eps - gamma, max(m) - C - eps
        if multiplicative:
            U, L = (1 - eps - gamma) * (max(m) + C), (1 - eps) * (max(m) - C)
        if all(m[i] + C < L or m[i] - C > U for i in range(K)):
            return {i for i in range(K) if m[i] - C > U}


def fareast(
    K: int,
    eps: float,
    multiplicative: bool,
    gamma: float,
    delta: float,
    sigma: float,
    c: float = 4.0,
    finder: str = "median-elimination",
    kappa: float = 1 / 16,
    constant: float | None = None,
    factor: float = 8.0,
) -> Twin:
    """Mason et al. 2020, Algorithm 4.1."""
    good, r = Filter(K, eps, multiplicative, sigma, c, delta / (2 * K)), 0
    everyone, G, B = good.everyone, good.G, good.B
    constant = 8 * sigma**2 if constant is None else constant
    while True:
        r += 1
        delta_r, acc = delta / (2 * r**2), 2.0**-r
        tau = math.ceil(factor * 4**r * sigma**2 * math.log(8 * K / delta_r))
        V = everyone - (G | B)
        if finder == "lucb":
            star, cost = yield from lucb(sorted(G or everyone), acc, kappa, sigma, c)
        else:
            star = yield from median_elimination(sorted(everyone), acc, kappa, constant)
            cost = _eliminations(K, acc, kappa, constant)
        x_star = yield star, tau
        for i in sorted(V):
            x = yield i, tau
            far = (1 - eps) * x_star - x >= (2 - eps) * acc if multiplicative else x_star - x >= eps + 2 * acc
            if far:
                B.add(i)
        good.A -= B
        if good.over:
            return G
        for _ in range(cost + (len(V) + 1) * tau):
            bounds = yield from good.pull()
            if bounds is None:
                continue
            if good.over:
                return G
            U, L = bounds
            enough = gamma / (2 - eps) * L if multiplicative else gamma / 2
            if gamma > 0 and enough >= U - L:
                return G | good.A


def _eliminations(n: int, eps: float, delta: float, constant: float) -> int:
    """H_ME, by carrying Median Elimination out on samples that are all 0."""
    twin, cost = median_elimination(list(range(n)), eps, delta, constant), 0
    try:
        _, times = next(twin)
        while True:
            cost += times
            _, times = twin.send(0.0)
    except StopIteration:
        return cost
