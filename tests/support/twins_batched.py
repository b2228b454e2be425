"""Literal twins of the batched algorithms: batched elimination, and Tri-BBAI and Opt-BBAI for Gaussian arms.

A twin yields (arm, times), is sent the average of these samples, and returns its answer, a set of arms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from plays import Twin
from twins_certified import Game, best_arm_proportions


class Sums:
    """Pulls N and sums of K arms."""

    def __init__(self, K: int) -> None:
        self.K, self.N, self.total = K, [0] * K, [0.0] * K

    @property
    def m(self) -> list[float]:
        return [self.total[i] / self.N[i] if self.N[i] else 0.0 for i in range(self.K)]

    def batch(self, pulls: Iterable[tuple[int, int]]) -> Twin:
        """Make these pulls."""
        for i, times in pulls:
            x = yield i, times
            self.total[i] += x * times
            self.N[i] += times
        return set()


def batched_elimination(
    K: int, k: int, sigma: float, epsilon: float, delta: float, T: int | None, M: int, growth: float, first: int | None
) -> Twin:
    """The head of agents/top_k/batched_elimination.py, word by word."""
    S, A, seen, P, j = list(range(K)), set[int](), Sums(K), k * (K - k), 0
    first = math.ceil(math.log(2 * P / delta)) if first is None else first
    N = end = 0
    while True:
        times = 0
        while times < 1 and (T is None or j < M):
            j += 1
            if T is None:
                end = max(math.ceil(first * growth ** (j - 1)), end + 1)
                times = end - N
            else:
                end = T if j == M else int(K * (T / K) ** (j / M))
                times = (end - sum(seen.N)) // len(S)
        if times < 1:
            return A | set(sorted(S, key=lambda i: (-seen.m[i], i))[: k - len(A)])
        N += times
        yield from seen.batch((i, times) for i in S)
        share = delta / M if T is not None else delta / (j * (j + 1))
        c, m, wanted = 2 * sigma * math.sqrt(math.log(P / share) / N), seen.m, k - len(A)
        order = sorted(S, key=lambda i: (-m[i], i))
        inside, outside = m[order[wanted - 1]], m[order[wanted]]
        if inside - outside > c - epsilon:
            return A | set(order[:wanted])
        A |= {i for i in S if m[i] - outside > c}
        S = [i for i in S if i not in A and not inside - m[i] > c]


class Stages:
    """Stages I to III, at the delta of a game."""

    def __init__(self, game: Game, alpha: float, L1: int, L2: int, shift: float, nats: float) -> None:
        self.game, self.alpha, self.L1, self.L2, self.nats = game, alpha, L1, L2, nats
        self.seen, self.shift, self.look = Sums(game.K), 2 * game.sigma * shift, 0

    def first(self) -> Twin:
        yield from self.seen.batch((i, 1) for _ in range(self.L1) for i in range(self.game.K))
        return set()

    def proportions(self, factor: float) -> Twin:
        m, K, s = self.seen.m, self.game.K, self.game.sigma
        best = max(range(K), key=lambda i: (m[i], -i))
        b = [m[i] - self.shift if i == best else m[i] + self.shift for i in range(K)]
        w, time = best_arm_proportions(b, s, self.game.epsilon), 0.0
        best = max(range(K), key=lambda i: (b[i], -i))
        for i in set(range(K)) - {best}:
            speed = w[best] * w[i] / (w[best] + w[i]) * (b[best] - b[i] + self.game.epsilon) ** 2 / (2 * s * s)
            time = max(time, 1 / speed)
        wanted = [min(self.alpha * w[i] * time * self.nats, self.L2) * factor for i in range(K)]
        yield from self.seen.batch((i, max(math.ceil(wanted[i]), 1)) for i in range(K))
        return set()

    def certified(self) -> bool:
        """Looked at after another 1/200 of the pulls."""
        t = sum(self.seen.N)
        if t < self.look:
            return False
        self.look = t + max(1, t // 200)
        return self.game.certified(self.seen)  # type: ignore[arg-type]

    @property
    def answer(self) -> set[int]:
        return self.game.answer(self.seen.m)


def tri_bbai(game: Game, alpha: float, L1: int, L2: int, shift: float) -> Twin:
    """Stages I, II and III, and then II and III with more pulls each time."""
    one, factor = Stages(game, alpha, L1, L2, shift, math.log(1 / game.delta)), 1.0
    yield from one.first()
    while not one.certified():
        yield from one.proportions(factor)
        factor *= 2
    return one.answer


def opt_bbai(
    game: Game, delta: float, alpha: float, L1: int, L2: int, shift: float, precision: float, repeats: int
) -> Twin:
    """Stages I to III, at delta / 2, then rounds and checks; the test after each batch."""
    one, K = Stages(game, alpha, L1, L2, shift, math.log(1 / delta)), game.K
    unit, c = 2 * game.sigma, precision
    yield from one.first()
    if one.certified():
        return one.answer
    for q in range(repeats + 1):
        if q == 0 or 2**q * L2 < c * c / 2 * 64 * math.log(2 * 40 * math.pi**2 * K / delta):
            yield from one.proportions(2.0**q)
            if one.certified():
                return one.answer
    S, B, gamma, ell, r = {1: list(range(K))}, {0: 0}, dict[int, float](), dict[int, int](), 1

    def d(eps: float, log_level: float) -> int:
        return math.ceil(c * c / 2 / eps**2 * (math.log(2) + log_level))

    def batch(pulls: list[tuple[int, int]]) -> Twin:
        before = list(one.seen.total)
        yield from one.seen.batch(pulls)
        p.update({i: (one.seen.total[i] - before[i]) / times for i, times in pulls})
        return set()

    p = dict[int, float]()
    while True:
        eps, level = 0.25 * 0.5**r, math.log(40 * math.pi**2 * K * r * r / delta)
        gamma[r], ell[r] = level, 0
        yield from batch([(i, d(eps, level)) for i in S[r]])
        B[r] = B[r - 1] + d(eps, level) * len(S[r])
        top = max(p[i] for i in S[r])
        S[r + 1] = [i for i in S[r] if p[i] >= top - unit * eps]
        if one.certified():
            return one.answer
        if len(S[r + 1]) == 1:
            return set(S[r + 1])
        for j in range(1, r):
            if c > 4 and S[j + 1] != S[j] and math.log(B[r]) - gamma[j] + ell[j] * math.log(2) > math.log(B[j]):
                gamma[j], ell[j] = 2 * gamma[j], ell[j] + 1
                yield from batch([(i, d(0.25 * 0.5**j, gamma[j])) for i in S[j]])
                if one.certified():
                    return one.answer
                bar = max(p[i] for i in S[j]) - unit * 0.25 * 0.5**j * (1 - 4 / c)
                if any(p[i] > bar for i in set(S[j]) - set(S[j + 1])):
                    return one.answer
        r += 1
