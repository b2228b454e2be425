"""Literal twins of the agents that stop with a certificate, for Gaussian arms: all alternatives, looked at anew.

A twin yields the arm it pulls, is sent the sample, and returns its answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from derivations import arm, pair, term
from scipy.optimize import brentq
from twins_all_good import Twin, good
from twins_top_k import Seen

VALUE = itemgetter(0)


def one_arm(N: float, d: float) -> float:
    """The value of moving an arm of N pulls by the divergence d."""
    rho, share = term(N)
    return float(math.log(share) + arm(N, math.sqrt(2 * d), 1.0, rho))


@dataclass
class Game:
    """What is asked: the k best arms within epsilon, or all arms within epsilon of the best (k = 0), or a threshold."""

    K: int
    sigma: float
    delta: float
    k: int = 0
    epsilon: float = 0.0
    theta: float | None = None

    def answer(self, m: list[float]) -> set[int]:
        if self.theta is not None:
            return {i for i in range(self.K) if m[i] >= self.theta}
        if self.k:
            return set(sorted(range(self.K), key=lambda i: (-m[i], i))[: self.k])
        return good(m, self.epsilon, False)

    def pair(self, m: list[float], w: list[float], i: int, j: int, epsilon: float) -> tuple[float, float, float]:
        """Cost and both divergences of moving i down and j up until mu_i <= mu_j - epsilon."""
        gap, s = max(m[i] - m[j] + epsilon, 0.0), 2.0 * self.sigma**2
        y, z = w[j] / (w[i] + w[j]) * gap, w[i] / (w[i] + w[j]) * gap
        return w[i] * y * y / s + w[j] * z * z / s, y * y / s, z * z / s

    def alternatives(
        self, m: list[float], w: list[float], p: list[float], needs: bool = True
    ) -> Iterator[tuple[float, int, int, float, float]]:
        """All alternatives: statistic, the arm that is lowered, the one that is raised, both divergences."""
        A, K, s = self.answer(m), self.K, 2.0 * self.sigma**2
        if self.theta is not None:
            for i in range(K):
                d = (m[i] - self.theta) ** 2 / s
                yield one_arm(w[i], d) - math.log(K / self.delta) if needs else w[i] * d - p[i], i, i, d, d
        elif self.k:
            pairs = self.k * (K - self.k) if self.epsilon > 0.0 else K - 1
            need = math.log(pairs / self.delta) if needs else 0.0
            for i in sorted(A):
                for j in sorted(set(range(K)) - A):
                    yield self.alternative(m, w, p, i, j, self.epsilon, need, needs)
        else:
            for i in range(K):
                need = math.log((2 if i in A else min(2 * K, 4)) * (K - 1) / self.delta) if needs else 0.0
                found = []
                for j in sorted(set(range(K)) - {i}):
                    low, high = (i, j) if i in A else (j, i)
                    if i in A or m[j] > m[i] + self.epsilon:
                        epsilon = self.epsilon if i in A else -self.epsilon
                        found.append(self.alternative(m, w, p, low, high, epsilon, need, needs))
                yield (min if i in A else max)(found, key=VALUE)  # the first of equals

    def alternative(
        self, m: list[float], w: list[float], p: list[float], i: int, j: int, epsilon: float, need: float, needs: bool
    ) -> tuple[float, int, int, float, float]:
        """Value, the arms and the divergences of a pair, arm i being lowered."""
        cost, down, up = self.pair(m, w, i, j, epsilon)
        d = max(m[i] - m[j] + epsilon, 0.0) ** 2 / (2.0 * self.sigma**2)
        return (pair(w[i], w[j], math.sqrt(2 * d)) if needs else cost - p[i] - p[j]) - need, i, j, down, up

    def certificate(self, arms: Seen) -> tuple[float, int, int]:
        """The statistic of the alternative that is excluded least, and its arms."""
        m, w, K = arms.m, [float(N) for N in arms.N], self.K
        if self.theta is not None or self.k:
            value, i, j, *_ = min(self.alternatives(m, w, []), key=VALUE)
            return value, i, j
        A, best, found = self.answer(m), max(range(K), key=lambda a: (m[a], -a)), []
        for i in range(K):
            others = [j for j in range(K) if j != i]
            if i in A:
                need = math.log(2 * (K - 1) / self.delta)
                found.append(
                    min((self.alternative(m, w, [], i, j, self.epsilon, need, True) for j in others), key=VALUE)[:3]
                )
                continue
            need, share = math.log(2 * K * (K - 1) / self.delta), math.log(4 * (K - 1) / self.delta)
            better = [j for j in others if m[j] > m[i] + self.epsilon]
            one = max((self.alternative(m, w, [], j, i, -self.epsilon, need, True) for j in better), key=VALUE)[:3]
            each = []
            for j in others:
                alternative = self.alternative(m, w, [], j, i, -self.epsilon, share, True)[:3]
                rank = self.alternative(m, w, [], best, j, 0.0, share, True)[:3] if j != best else (-math.inf, 0, 0)
                each.append(max(alternative, rank, key=VALUE))
            found.append(max(one, min(each, key=VALUE), key=VALUE))
        return min(found, key=VALUE)

    def certified(self, arms: Seen) -> bool:
        return self.certificate(arms)[0] >= 0.0


def lacking(T: list[int]) -> int | None:
    """D-tracking's forced exploration."""
    fewest = min(T)
    return T.index(fewest) if fewest < math.sqrt(sum(T)) - 0.5 * len(T) else None


def held(N: int) -> int:
    """How often an arm of N pulls is pulled before all are looked at again."""
    return max(1, int(0.5 * math.sqrt(N)))


def evidence(game: Game) -> Twin:
    """R1 to R4."""
    arms, look, kept = Seen(game.K), 0, 0
    yield from arms.first(1)
    while True:
        value, i, j, down, up = min(game.alternatives(arms.m, [float(N) for N in arms.N], []), key=VALUE)
        few, t = lacking(arms.N), sum(arms.N)
        if value > 0.0:
            if t >= look:
                look = t + max(1, t // 200)
                level, *kept = game.certificate(arms)
                if level >= 0.0:
                    return game.answer(arms.m)
            i, j = kept
            i = i if arms.N[i] <= arms.N[j] else j
        elif i != j and (up > down * (1 + 1e-9) or (down <= up * (1 + 1e-9) and (arms.N[j], j) < (arms.N[i], i))):
            i = j
        i = i if few is None else few
        for _ in range(held(arms.N[i])):
            arms.add(i, (yield i))


def top_two(game: Game, tci: bool, beta: float | None, draw: Callable[[int], float]) -> Twin:
    """EB-TC or EB-TCI; beta None: information-directed. draw: the n-th random number."""
    arms, look = Seen(game.K), 0
    yield from arms.first(1)
    draws = game.K
    while True:
        t = sum(arms.N)
        if t >= look:
            look = t + max(1, t // 200)
            if game.certified(arms):
                return game.answer(arms.m)
        w = [float(N) for N in arms.N]
        p = [-math.log(N) if tci else 0.0 for N in arms.N]
        _, i, j, down, up = min(game.alternatives(arms.m, w, p, needs=False), key=VALUE)
        times = held(min(arms.N[i], arms.N[j]))
        firsts = times
        if i != j:
            share = beta
            if share is None:
                share = w[i] * down / (w[i] * down + w[j] * up) if w[i] * down + w[j] * up > 0.0 else 0.5
            if draw(draws) >= share:
                i, j, share = j, i, 1.0 - share
            firsts = 1 + sum(draw(n) < share for n in range(draws + 1, draws + times))
            draws += times
        for n in range(times):
            arm = i if n < firsts else j
            arms.add(arm, (yield arm))


def best_arm_proportions(m: list[float], sigma: float, epsilon: float) -> list[float]:
    """Garivier & Kaufmann 2016, Theorem 5, for Gaussian arms: x_a = y / (G_a - y), sum of squares 1."""
    best = max(range(len(m)), key=lambda a: (m[a], -a))
    G = {a: (m[best] - m[a] + epsilon) ** 2 / (2.0 * sigma**2) for a in range(len(m)) if a != best}
    y = brentq(lambda y: sum((y / (g - y)) ** 2 for g in G.values()) - 1.0, 0.0, 0.5 * min(G.values()), xtol=1e-300)
    x = [1.0 if a == best else y / (G[a] - y) for a in range(len(m))]
    return [value / sum(x) for value in x]


def track_and_stop(game: Game, cumulative: bool) -> Twin:
    """BestArm, Threshold and pairs of arms."""
    K = game.K
    arms, look, due, steps = Seen(K), 0, 0, 0
    yield from arms.first(1)
    W, sums, w = [1.0] * K, [1.0] * K, [1.0 / K] * K
    while True:
        t = sum(arms.N)
        if t >= look:
            look = t + max(1, t // 200)
            if game.certified(arms):
                return game.answer(arms.m)
        if game.theta is not None:
            inverse = [2.0 * game.sigma**2 / (m - game.theta) ** 2 for m in arms.m]
            w = [one / sum(inverse) for one in inverse]
        elif game.k == 1:
            if t >= due:
                due = t + max(1, t // 100)
                w = best_arm_proportions(arms.m, game.sigma, game.epsilon)
        else:
            steps += 1
            mass = sum(W) * 2.0 / (steps + K)
            _, i, j, down, up = min(game.alternatives(arms.m, W, [0.0] * K, needs=False), key=VALUE)
            share = W[i] * down / (W[i] * down + W[j] * up) if W[i] * down + W[j] * up > 0.0 else 0.5
            W[i] += share * mass
            W[j] += (1.0 - share) * mass
            w = [one / sum(W) for one in W]
        few = lacking(arms.N)
        epsilon = 0.5 / math.sqrt(K * K + t)
        above = sum(max(one - epsilon, 0.0) for one in w)
        forced = [epsilon + max(x - epsilon, 0.0) * (1.0 - K * epsilon) / above for x in w]
        if cumulative:
            lag: list[Any] = [s + x - N for s, x, N in zip(sums, forced, arms.N, strict=True)]
        else:
            lag = [t * x - N for x, N in zip(w, arms.N, strict=True)]
        i = 0
        for a in range(K):
            i = a if lag[a] > lag[i] + 1e-9 else i
        i = i if cumulative or few is None else few
        times = held(arms.N[i])
        sums = [s + times * x for s, x in zip(sums, forced, strict=True)]
        for _ in range(times):
            arms.add(i, (yield i))
