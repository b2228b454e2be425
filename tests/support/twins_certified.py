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

from bandit_envs.stopping import contrasts

VALUE = itemgetter(0)
PRICE = 1.5  # of a contrast, in nats


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
    product: bool = False  # whether pairs are certified by the product of mixtures

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
        gap = max(m[i] - m[j] + epsilon, 0.0) / self.sigma
        if not needs:
            return cost - p[i] - p[j] - need, i, j, down, up
        value = pair(w[i], w[j], gap)
        if not self.product:  # `test_contrasts` has the twin of a contrast
            value += math.log(0.03)
            lift = contrasts.contrast(False, (w[i], gap), (w[j], 0.0), 1.0, 0.0, -math.inf, math.inf)
            value = max(value, lift + math.log(0.97))
        return value - need, i, j, down, up

    def closest(self, arms: Seen) -> tuple[float, int, int, float, float]:
        """The closest alternative, as `evidence` climbs it: by what it costs, where pairs have contrasts."""
        w, zero = [float(N) for N in arms.N], [0.0] * self.K
        if self.product or self.theta is not None:
            return min(self.alternatives(arms.m, w, []), key=VALUE)
        found, A = [], self.answer(arms.m)
        for value, i, j, down, up in self.alternatives(arms.m, w, zero, needs=False):
            inward = bool(self.k) or i in A and (j in A or arms.m[i] <= arms.m[j] + self.epsilon)
            found.append((value - self.need(inward) - PRICE, i, j, down, up))
        return min(found, key=VALUE)

    def need(self, inward: bool = True) -> float:
        """What the cost of a pair must exceed, without the price of its statistic."""
        if self.k:
            return math.log((self.k * (self.K - self.k) if self.epsilon > 0.0 else self.K - 1) / self.delta)
        return math.log((2 if inward else min(2 * self.K, 4)) * (self.K - 1) / self.delta)

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

    def open_pair(self, arms: Seen, kept: tuple[int, int]) -> tuple[int, int] | None:
        """A pair that is not excluded: that of the last look, or the first in the order of arms from there; or None."""
        m, w, K, A = arms.m, [float(N) for N in arms.N], self.K, self.answer(arms.m)

        def is_open(i: int, j: int, epsilon: float, need: float) -> bool:
            return self.alternative(m, w, [], i, j, epsilon, need, True)[0] < 0.0

        first, second = kept
        looks = first in A and (second not in A if self.k else second != first)
        if looks and is_open(first, second, self.epsilon, self.need()):
            return kept
        best = max(range(K), key=lambda a: (m[a], -a))
        for i in ((first + n) % K for n in range(K)):
            turn = [(second * bool(self.k) + n) % K for n in range(K)]
            others = [j for j in turn if j != i and not (self.k and j in A)]
            if i in A:
                for j in others:
                    if is_open(i, j, self.epsilon, self.need()):
                        return i, j
            elif not self.k:
                one, each = math.log(2 * K * (K - 1) / self.delta), math.log(4 * (K - 1) / self.delta)
                if any(m[j] > m[i] + self.epsilon and not is_open(j, i, -self.epsilon, one) for j in others):
                    continue
                for j in ((best + n) % K for n in range(K)):
                    if j != i and is_open(j, i, -self.epsilon, each) and (j == best or is_open(best, j, 0.0, each)):
                        return i, best
        return None

    def racing(self, arms: Seen) -> set[int]:
        """The arms of open pairs."""
        m, w, K, A, racing = arms.m, [float(N) for N in arms.N], self.K, self.answer(arms.m), set[int]()

        def mark(i: int, j: int, epsilon: float, inward: bool = True) -> None:
            if self.pair(m, w, i, j, epsilon)[0] < self.need(inward) + PRICE:
                racing.update((i, j))

        low = min(A, key=lambda a: (m[a], -a))
        high = max(set(range(K)) - A, key=lambda a: (m[a], -a), default=0)
        best = max(range(K), key=lambda a: (m[a], -a))
        for a in range(K):
            if self.k and a not in A:
                mark(low, a, self.epsilon)
            elif self.k > 1:
                mark(a, high, self.epsilon)
            elif not self.k and a != best:
                mark(best, a, self.epsilon)
                mark(a, best, self.epsilon) if a in A else mark(best, a, -self.epsilon, inward=False)
        return racing

    def racer(self, arms: Seen, racing: set[int]) -> int | None:
        """The arm that is to race."""
        best = max(range(self.K), key=lambda a: (arms.m[a], -a))
        if self.k == 1 and racing and arms.N[best] ** 2 < sum(arms.N[a] ** 2 for a in racing - {best}):
            return best
        return min(racing, key=lambda a: (arms.N[a], a), default=None)

    def lacking_pair(self, arms: Seen) -> tuple[int, int] | None:
        """The pair of the certificate by the product, None where it holds."""
        value, i, j = self.certificate(arms)
        return None if value >= 0.0 else (i, j)

    def certified(self, arms: Seen) -> bool:
        return self.certificate(arms)[0] >= 0.0


def lacking(T: list[int]) -> int | None:
    """D-tracking's forced exploration."""
    fewest = min(T)
    return T.index(fewest) if fewest < math.sqrt(sum(T)) - 0.5 * len(T) else None


def held(N: int) -> int:
    """How often an arm of N pulls is pulled before all are looked at again."""
    return max(1, int(0.5 * math.sqrt(N)))


def evidence(game: Game, race: float = 0.75) -> Twin:
    """R1 to R6."""
    arms, look, kept, named, raced, marked, racing = Seen(game.K), 0, (0, 0), 0, 0, 0, set[int]()
    contrasts = not game.product and game.theta is None
    yield from arms.first(1)
    while True:
        few, t = lacking(arms.N), sum(arms.N)
        closest = None if contrasts else game.closest(arms)
        if (closest is None or closest[0] > 0.0) and t >= look:
            look = t + max(1, t // 200)
            pair = game.open_pair(arms, kept) if contrasts else game.lacking_pair(arms)
            if pair is None:
                return game.answer(arms.m)
            kept = pair
            named = kept[0] if arms.N[kept[0]] <= arms.N[kept[1]] else kept[1]
        one = None
        if contrasts and few is None and raced < race * t:
            if t >= marked:
                marked, racing = t + max(1, t // 200), game.racing(arms)
            one = game.racer(arms, racing)
            raced += 0 if one is None else held(arms.N[one])
        i = one if few is None else few
        if i is None:
            value, i, j, down, up = game.closest(arms) if closest is None else closest
            if value > 0.0:
                i, look = named, 0 if contrasts else look
            elif i != j and (up > down * (1 + 1e-9) or (down <= up * (1 + 1e-9) and (arms.N[j], j) < (arms.N[i], i))):
                i = j
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
