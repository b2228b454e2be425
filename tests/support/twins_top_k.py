"""Literal twins of the algorithms for the k best arms that adapt to every sample.

A twin yields the arm it pulls, is sent the sample, and returns its answer; `seen` is what has been seen so far, so that
whoever plays the episode can answer where a budget ends it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator

import numpy as np

from bandit_envs.kernels.rng import agent_uniforms

Twin = Generator[int, float, "set[int]"]
Draw = Callable[[int], float]


def drawer(public_seed: int, seed: int = 0) -> Draw:
    """The agent's own uniform number at its t-th pull."""
    word = np.array([public_seed], np.int64)
    return lambda t: float(agent_uniforms(word, np.array([t]), seed=seed)[0, 0])


class Seen:
    """Pulls N, means m and variances v (divisor N) of K arms."""

    def __init__(self, K: int) -> None:
        self.K, self.every = K, list(range(K))
        self.N, self.total, self.m, self.v = [0] * K, [0.0] * K, [0.0] * K, [0.0] * K

    def add(self, i: int, x: float) -> None:
        before, was = self.N[i], self.m[i]
        self.N[i] += 1
        self.total[i] += x
        self.m[i] = self.total[i] / self.N[i]
        self.v[i] = (self.v[i] * before + (x - was) * (x - self.m[i])) / self.N[i]

    @property
    def t(self) -> int:
        return sum(self.N)

    def ranked(self) -> list[int]:
        return sorted(self.every, key=lambda i: (-self.m[i], i))

    def first(self, rounds: int) -> Generator[int, float, None]:
        """Every arm, so many times."""
        for _ in range(rounds):
            for i in self.every:
                self.add(i, (yield i))


def pick(weights: dict[int, float], u: float) -> int:
    """An arm with probability proportional to its weight."""
    total, partial = sum(weights.values()), 0.0
    for i, weight in weights.items():
        partial += weight
        if partial > u * total:
            return i
    raise AssertionError


# --- Kalyanakrishnan & Stone 2010, section 4 -------------------------------------------------------------------------


def hoeffding(K: int, delta: float, W: float, N: int) -> float:
    return W * math.sqrt(math.log(K / delta) / (2 * N))


def pi1(seen: Seen, k: int, epsilon: float, delta: float, W: float, draw: Draw) -> Twin:
    yield from seen.first(1)
    while wide := [i for i in seen.every if hoeffding(seen.K, delta, W, seen.N[i]) > epsilon / 2]:
        i = wide[int(draw(seen.t) * len(wide))]
        seen.add(i, (yield i))
    return set(seen.ranked()[:k])


def pi2(seen: Seen, k: int, epsilon: float, delta: float, W: float, draw: Draw, cap: float = math.inf) -> Twin:
    yield from seen.first(1)
    while True:
        order = seen.ranked()
        LB = {h: seen.m[h] - hoeffding(seen.K, delta, W, seen.N[h]) + epsilon for h in order[:k]}
        UB = {low: seen.m[low] + hoeffding(seen.K, delta, W, seen.N[low]) for low in order[k:]}
        hit = [h for h in LB if LB[h] < max(UB.values())] + [low for low in UB if UB[low] > min(LB.values())]
        hit = sorted(i for i in hit if seen.N[i] < cap)
        if not hit:
            return set(order[:k])
        i = hit[int(draw(seen.t) * len(hit))]
        seen.add(i, (yield i))


def inverted(g: float, t: int, variance: float, W: float, R: float, tightest: bool) -> float:
    """d at which the bound of t samples is g wide."""
    if g <= 0:
        return 1.0
    dH = math.exp(-2 * t * g**2 / W**2)
    A, B = math.sqrt(variance) * math.sqrt(2 / t), 3 * R / t
    y = 2 * g / (A + math.sqrt(A**2 + 4 * B * g))
    return min(dH, 1.0, 3 * math.exp(-(y**2))) if tightest else dH


def smallest_cutoff(seen: Seen, order: list[int], k: int, epsilon: float, W: float) -> float:
    """argmin over c of Hoeffding's delta^c = 1 - prod(1 - d_i), by grids around the best point of the last one."""
    m, N = np.array(seen.m)[order], np.array(seen.N)[order]
    low, high = m[k], m[k - 1] + epsilon
    for _ in range(7):
        c = np.linspace(low, high, 41)
        g = np.hstack([m[:k] + epsilon - c[:, None], c[:, None] - m[k:]])
        x = np.maximum(2 * N * np.maximum(g, 0) ** 2 / W**2, 1e-300)
        right = np.where(x > 1, np.log1p(-np.exp(-np.maximum(x, 1))), np.log(-np.expm1(-x))).sum(axis=1)
        j = int(right.argmax())  # ln(1 - delta^c) is largest
        low, high = c[max(j - 1, 0)], c[min(j + 1, 40)]
    return float(low + high) / 2


def running_bound(
    seen: Seen, k: int, epsilon: float, W: float, tightest: bool, R: float | None = None, best: bool = False
) -> tuple[float, dict[int, float]]:
    """delta^c and the d_i; R: the range in Bernstein's bound, None: W; best: at the cutoff c*."""
    order = seen.ranked()
    m, last, first_out = seen.m, order[k - 1], order[k]
    se = [math.sqrt(seen.v[i] / (seen.N[i] - 1)) if seen.N[i] > 1 else 0.0 for i in seen.every]
    share = se[first_out] / (se[last] + se[first_out]) if se[last] + se[first_out] > 0 else 0.5
    c = m[first_out] + (m[last] + epsilon - m[first_out]) * share
    if best:
        c = smallest_cutoff(seen, order, k, epsilon, W)
    d = {}
    for i in seen.every:
        g = m[i] + epsilon - c if i in order[:k] else c - m[i]
        d[i] = inverted(g, seen.N[i], seen.v[i], W, W if R is None else R, tightest)
    return 1 - math.prod(1 - x for x in d.values()), d


def adapt(
    seen: Seen,
    k: int,
    epsilon: float,
    delta: float,
    W: float,
    draw: Draw,
    tightest: bool = True,
    cap: float = math.inf,
    R: float | None = None,
    best: bool = False,
) -> Twin:
    yield from seen.first(2)
    while True:
        D, d = running_bound(seen, k, epsilon, W, tightest, R, best)
        free = {i: d[i] for i in seen.every if seen.N[i] < cap}
        if delta >= D or sum(free.values()) == 0:
            return set(seen.ranked()[:k])
        i = pick(free, draw(seen.t))
        seen.add(i, (yield i))


# --- OCBA-m ----------------------------------------------------------------------------------------------------------


def ocba_m(seen: Seen, k: int, n0: int, Delta: int, draw: Draw) -> Twin:
    yield from seen.first(n0)
    while True:
        order = seen.ranked()
        s = [max(seen.v[i] * (seen.N[i] / (seen.N[i] - 1)), 1e-12) for i in seen.every]  # squared
        last, best = order[k - 1], order[k]
        a, b = math.sqrt(s[last] / seen.N[last]), math.sqrt(s[best] / seen.N[best])
        c = seen.m[best] + (seen.m[last] - seen.m[best]) * (b / (a + b))
        gap = [max(abs(seen.m[i] - c), 1e-9) for i in seen.every]
        # in this order of operations: targets are half-integers often enough (two arms: always in proportion to N)
        weight = [s[i] / (gap[i] * gap[i]) for i in seen.every]
        target = [(seen.t + Delta) * (w / sum(weight)) for w in weight]
        owed = [max(0, math.floor(target[i] + 0.5) - seen.N[i]) for i in seen.every]
        if Delta == 1 or not any(owed):
            i = pick({i: target[i] for i in seen.every if seen.N[i] < target[i]}, draw(seen.t))
            seen.add(i, (yield i))
        else:
            for i in seen.every:
                for _ in range(owed[i]):
                    seen.add(i, (yield i))


# --- CLUCB, KL-LUCB, lil'UCB -----------------------------------------------------------------------------------------


def lucb(seen: Seen, k: int, tolerance: float, delta: float, sigma: float) -> Twin:
    yield from seen.first(1)
    t = 0
    while True:
        t += 1
        beta = [2 * sigma * math.sqrt(math.log(1.25 * seen.K * t**4 / delta) / (2 * N)) for N in seen.N]
        high, low = seen.ranked()[:k], seen.ranked()[k:]
        h = min(high, key=lambda i: (seen.m[i] - beta[i], i))
        l = max(low, key=lambda i: (seen.m[i] + beta[i], -i))  # noqa: E741
        if seen.m[l] + beta[l] - (seen.m[h] - beta[h]) < tolerance:
            return set(high)
        for i in (h, l):
            seen.add(i, (yield i))


def clucb(seen: Seen, k: int, tolerance: float, delta: float, sigma: float) -> Twin:
    yield from seen.first(1)
    while True:
        M = set(seen.ranked()[:k])
        rad = [sigma * math.sqrt(2 * math.log(4 * seen.K * seen.t**3 / delta) / seen.N[i]) for i in seen.every]
        w = [seen.m[i] - rad[i] if i in M else seen.m[i] + rad[i] for i in seen.every]
        other = set(sorted(seen.every, key=lambda i: (-w[i], i))[:k])
        if math.fsum([w[i] for i in other] + [-w[i] for i in M]) <= tolerance or other == M:
            return M
        i = min(M ^ other, key=lambda i: (-rad[i], i))
        seen.add(i, (yield i))


def kl(p: float, q: float) -> float:
    if q in (0.0, 1.0) and p != q:
        return math.inf
    return (p * math.log(p / q) if p > 0 else 0.0) + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def farthest(p: float, end: float, b: float) -> float:
    """The point between p and `end`, farthest from p, with kl(p, .) <= b."""
    near, far = p, end
    for _ in range(40):
        middle = (near + far) / 2
        near, far = (middle, far) if kl(p, middle) <= b else (near, middle)
    return near


def kl_lucb(
    seen: Seen, k: int, epsilon: float, delta: float, support: tuple[float, float] | None, sigma: float, lil: bool
) -> Twin:
    K, t = seen.K, 1
    yield from seen.first(1)
    while True:
        x = math.log(405.5 * K * t**1.1 / delta)
        L, U = {}, {}
        order = seen.ranked()
        for i in seen.every:
            N = seen.N[i]
            d = K - k if i in order[:k] else k
            B = math.log(2 * math.log2(2 * N) * d / delta) if lil else x + math.log(x)
            if support is None:
                C = sigma * math.sqrt(2 * B / N)
                L[i], U[i] = seen.m[i] - C, seen.m[i] + C
            else:
                p = (seen.m[i] - support[0]) / (support[1] - support[0])
                L[i], U[i] = (round(farthest(p, end, B / N), 9) for end in (0.0, 1.0))
        h = min(order[:k], key=lambda i: (L[i], i))
        rival = min(order[k:], key=lambda i: (-U[i], i))
        if U[rival] - L[h] <= (epsilon if support is None else epsilon / (support[1] - support[0])):
            return set(order[:k])
        for i in (h, rival):
            seen.add(i, (yield i))
        t += 1


def lil_ucb(seen: Seen, delta: float, sigma: float, e: float, b: float, lam: float) -> Twin:
    yield from seen.first(1)
    while not (ends := [i for i in seen.every if seen.N[i] >= 1 + lam * (seen.t - seen.N[i])]):
        bound = [
            seen.m[i]
            + (1 + b)
            * (1 + math.sqrt(e))
            * math.sqrt(2 * sigma**2 * (1 + e) * math.log(math.log((1 + e) * seen.N[i] + 2) / delta) / seen.N[i])
            for i in seen.every
        ]
        i = min(seen.every, key=lambda i: (-bound[i], i))
        seen.add(i, (yield i))
    return {min(seen.every, key=lambda i: (-seen.N[i], i))} if ends else set()
