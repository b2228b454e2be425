"""The alternatives in the game whose value is the characteristic time: those of `game`, measured at proportions.

An alternative is one number x: the level to which a pair or many arms go, or the multiplier of a half-space. At
proportions w, its value f(w) is least over x, its gradient in w is the divergences g at the best x, and its second
derivative -c c' / h, with c = dg/dx and h the second derivative of the cost in x.

Pairs of arms, and the levels of AllGood, are listed. Alternatives by sets of arms are too many for that: compiled
searches find those that are nearest at some w.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..kernels.checks import Bools, Floats, Ints
from ..kernels.compiled import inlined, jit
from .boundaries import LEVELS_SCRATCH
from .distributions import BERNOULLI, GAUSSIAN, curvature, divergence, slope
from .levels import EACH, Search, level, others_at
from .swaps import Swaps, best_dual, dual, search

STEPS = 100  # of a root finder
EXCHANGES = 2  # of one arm each, in a set that has been found: so many sets beside it
SEARCHED = 2000  # sets of arms that are looked at in a search for the nearest ones


class Distribution:
    """Divergences of Gaussian arms, of variance v, or Bernoulli arms, over arrays."""

    def __init__(self, distribution: int, v: float) -> None:
        self.gaussian, self.v = distribution == GAUSSIAN, v

    def divergence(self, m: Floats, mu: Floats) -> Floats:
        """What a pull costs where the mean m is moved to mu, elementwise."""
        if self.gaussian:
            return (m - mu) ** 2 / (2 * self.v)
        # From differences: close to m, the quotient of two logarithms would lose its digits.
        low = np.where(m > 0, -m * np.log1p((mu - m) / np.where(m > 0, m, 1)), 0.0)
        high = np.where(m < 1, -(1 - m) * np.log1p((m - mu) / np.where(m < 1, 1 - m, 1)), 0.0)
        both: Floats = np.maximum(low + high, 0.0)
        return both

    def slopes(self, m: Floats, mu: Floats) -> tuple[Floats, Floats]:
        """First and second derivative of the divergence in mu; 0 where mu = m."""
        if self.gaussian:
            return (mu - m) / self.v, np.full(np.broadcast_shapes(m.shape, mu.shape), 1 / self.v)
        first = np.where(mu == m, 0.0, (mu - m) / (mu * (1 - mu)))
        second = np.where(m > 0, m / mu**2, 0.0) + np.where(m < 1, (1 - m) / (1 - mu) ** 2, 0.0)
        return first, second


def _roots(rise: Callable[[Floats], tuple[Floats, Floats]], low: Floats, high: Floats, x: Floats) -> Floats:
    """Where functions that rise on [low, high] change their signs, or the end where they do not; high may be inf.

    Args:
        rise: returns the functions and their derivatives at x (n,). x: where to start.
    """
    low, high = low.copy(), high.copy()
    middle = np.where(np.isinf(high), low + 1, 0.5 * (low + high))
    x = np.where((low < x) & (x < high), x, middle)
    with np.errstate(all="ignore"):
        ends = np.where(rise(low)[0] >= 0, low, np.where(rise(high)[0] <= 0, high, math.nan))
        ends = np.where(low < high, ends, low)
        free = np.isnan(ends)
        for step in range(STEPS):
            first, second = rise(x)
            low, high = np.where(first <= 0, x, low), np.where(first >= 0, x, high)
            after = x - first / second
            middle = np.where(np.isinf(high), 2 * x + 1e-300, 0.5 * (low + high))
            good = (low <= after) & (after <= high) & np.isfinite(after) & ((step % 8 != 7) | np.isinf(high))
            after = np.where(good, after, middle)
            still = free & (np.abs(after - x) > 1e-15 * np.abs(after))
            x = after
            if not still.any():
                break
    return np.where(free, x, ends)


class Measured(NamedTuple):
    """Alternatives at w: values (n,), gradients G (n, K), and second derivatives: sign C C' - diag(bend)."""

    values: Floats
    G: Floats
    C: Floats
    bend: Floats | None
    sign: float


class _Pairs:
    """Alternatives of two arms, rows (i, j, a, b, low, high): i is lowered to a x + b, j raised to x in [low, high]."""

    def __init__(self, distribution: Distribution, means: Floats, rows: Sequence[tuple[float, ...]]) -> None:
        table = np.array(rows, np.float64).reshape(-1, 6)
        self.distribution, self.means, self.x = distribution, means, np.full(len(table), math.nan)
        self.i, self.j = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
        self.a, self.b, self.low, self.high = table[:, 2], table[:, 3], table[:, 4], table[:, 5]

    def __len__(self) -> int:
        return len(self.x)

    def at(self, w: Floats, some: Ints) -> Measured:
        """Those of `some`, their numbers, at proportions w (K,); G and C are (n, 2): of i and j."""
        i, j = self.i[some], self.j[some]
        a, b, low, high = (x[some] for x in (self.a, self.b, self.low, self.high))
        mi, mj, wi, wj, distribution = self.means[i], self.means[j], w[i], w[j], self.distribution
        if distribution.gaussian:
            x = np.clip((wj * mj + a * wi * (mi - b)) / (wj + a * a * wi), low, high)
        else:

            def rise(x: Floats) -> tuple[Floats, Floats]:
                (f, s), (g, t) = distribution.slopes(mj, x), distribution.slopes(mi, a * x + b)
                return wj * f + a * wi * g, wj * s + a * a * wi * t

            x = self.x[some] = _roots(rise, low, high, self.x[some])
        with np.errstate(all="ignore"):
            y = np.minimum(a * x + b, mi)
            G = np.stack([distribution.divergence(mi, y), distribution.divergence(mj, x)], axis=1)
            (g, t), (f, s) = distribution.slopes(mi, y), distribution.slopes(mj, x)
            total = wj * s + a * a * wi * t
            C = np.stack([a * g, f], axis=1) / np.sqrt(total)[:, None]
        inner = (low < x) & (x < high) & (total > 0)
        return Measured(wi * G[:, 0] + wj * G[:, 1], G, np.where(inner[:, None], C, 0.0), None, -1.0)

    def squares(self, X: Floats, weights: Floats, some: Ints, K: int) -> Floats:
        """Sum of weights x x', (K, K), of rows x that are given as (n, 2)."""
        i, j = self.i[some], self.j[some]
        places = np.concatenate([i * K + i, i * K + j, j * K + i, j * K + j])
        terms = np.concatenate([weights * X[:, p] * X[:, q] for p in (0, 1) for q in (0, 1)])
        return np.bincount(places, terms, K * K).reshape(K, K).astype(np.float64)

    def sums(self, X: Floats, weights: Floats, some: Ints, K: int) -> Floats:
        """Sum of weights x, (K,)."""
        places = np.concatenate([self.i[some], self.j[some]])
        terms = np.concatenate([weights * X[:, 0], weights * X[:, 1]])
        return np.bincount(places, terms, K).astype(np.float64)

    def along(self, X: Floats, step: Floats, some: Ints) -> Floats:
        """The products of rows and a step, (n,)."""
        return X[:, 0] * step[self.i[some]] + X[:, 1] * step[self.j[some]]


class _Wide:
    """Alternatives of many arms, as rows (n, K): what is common to levels and half-spaces."""

    def squares(self, X: Floats, weights: Floats, some: Ints, K: int) -> Floats:
        """Sum of weights x x', (K, K)."""
        return (X * weights[:, None]).T @ X

    def along(self, X: Floats, step: Floats, some: Ints) -> Floats:
        """The products of rows and a step, (n,)."""
        return X @ step

    def sums(self, X: Floats, weights: Floats, some: Ints, K: int) -> Floats:
        """Sum of weights x, (K,)."""
        return weights @ X


class Line(NamedTuple):
    """The others go to c x + d; `side`: 1 where arms are raised, -1 where they are lowered."""

    side: float
    c: float
    d: float


class Row(NamedTuple):
    """An alternative of `_Levels`."""

    distribution: int
    v: float
    line: Line
    means: Floats
    w: Floats
    i: int
    others: Floats


@inlined
def _rise(row, x):
    """First and second derivative in x of the cost of a `Row`."""
    distribution, v, (side, c, d), means, w, i, others = row
    first, second = w[i] * slope(distribution, means[i], v, x), w[i] * curvature(distribution, means[i], v, x)
    y = c * x + d
    for a in range(len(means)):
        if others[a] > 0.0 and side * (means[a] - y) > 0.0:
            first += c * others[a] * w[a] * slope(distribution, means[a], v, y)
            second += c * c * others[a] * w[a] * curvature(distribution, means[a], v, y)
    return first, second


@inlined
def _level_root(row, low, high, x):
    """Where in [low, high] the cost of a `Row` is least; x: where to start, or NaN. See `_roots`."""
    if not low < high or _rise(row, low)[0] >= 0.0:
        return low
    if _rise(row, high)[0] <= 0.0:
        return high
    x = x if low < x < high else 0.5 * (low + high)
    for step in range(STEPS):
        first, second = _rise(row, x)
        low, high = (x if first <= 0.0 else low), (x if first >= 0.0 else high)
        after = x - first / second
        if not low <= after <= high or step % 8 == 7:
            after = 0.5 * (low + high)
        if not abs(after - x) > 1e-15 * abs(after):
            return after
        x = after
    return x


class Moves(NamedTuple):
    """Moves of one arm each, and of others in return."""

    arm: Ints  # (n,)
    others: Floats  # (n, K)
    low: Floats  # (n,)
    high: Floats
    x: Floats


@jit
def _measure_levels(distribution, v, line, means, w, moves, G, C):
    """The results of `_Levels.at`: xs (n,), the best x, where to start before; gradients G and C (n, K), 0 before."""
    (side, c, d), lows, highs, xs = line, moves.low, moves.high, moves.x
    for n in range(len(xs)):
        i, others = moves.arm[n], moves.others[n]
        row = Row(distribution, v, line, means, w, i, others)
        x = _level_root(row, lows[n], highs[n], xs[n])
        xs[n], y = x, c * x + d
        G[n, i], C[n, i] = divergence(distribution, means[i], v, x), slope(distribution, means[i], v, x)
        for a in range(len(means)):
            if others[a] > 0.0 and side * (means[a] - y) > 0.0:
                G[n, a] += others[a] * divergence(distribution, means[a], v, y)
                C[n, a] += c * others[a] * slope(distribution, means[a], v, y)
        _, bend = _rise(row, x)
        C[n] = C[n] / math.sqrt(bend) if lows[n] < x < highs[n] and bend > 0.0 else 0.0 * w


class _Levels(_Wide):
    """Arm i goes to x in [low, high], raised or lowered; so many of the others go the other way, to c x + d."""

    def __init__(self, distribution: Distribution, means: Floats, c: float, d: float, raised: bool) -> None:
        self.distribution, self.c, self.d, self.side = distribution, c, d, 1.0 if raised else -1.0
        self.means = np.array(means)  # writeable and in one piece, as kernels are compiled for one kind of array
        self.i, self.others = np.empty(0, np.int64), np.empty((0, len(means)))
        self.low, self.high, self.x = np.empty(0), np.empty(0), np.empty(0)
        self.known = set[bytes]()

    def __len__(self) -> int:
        return len(self.x)

    def add(self, i: int, others: Floats, low: float, high: float) -> bool:
        """One more; whether it is new. others (K,): how many arms of each kind."""
        key = i.to_bytes(4, "little") + others.tobytes()
        if key in self.known:
            return False
        self.known.add(key)
        self.i, self.others = np.append(self.i, i), np.vstack([self.others, others])
        self.low, self.high = np.append(self.low, low), np.append(self.high, max(low, high))
        self.x = np.append(self.x, math.nan)
        return True

    def at(self, w: Floats, some: Ints) -> Measured:
        """G and C are (n, K)."""
        distribution, means, x = self.distribution, self.means, self.x[some]
        G, C = np.zeros((2, len(some), len(means)))
        moves = Moves(self.i[some], self.others[some], self.low[some], self.high[some], x)
        kind = GAUSSIAN if distribution.gaussian else BERNOULLI
        _measure_levels(kind, distribution.v, Line(self.side, self.c, self.d), means, w, moves, G, C)
        self.x[some] = x
        return Measured(G @ w, G, C, None, -1.0)


class _Halves(_Wide):
    """So many arms are raised, as many lowered, so that the sum of the raised ones is larger by a gap."""

    def __init__(self, distribution: Distribution, means: Floats, gap: float) -> None:
        self.distribution, self.means, self.gap = distribution, means, gap
        self.raised, self.x, self.known = np.empty((0, len(means))), np.empty(0), set[bytes]()

    def __len__(self) -> int:
        return len(self.x)

    def add(self, raised: Floats) -> bool:
        """One more; whether it is new. raised (K,): how many arms are raised, or lowered where it is negative."""
        if raised.tobytes() in self.known:
            return False
        self.known.add(raised.tobytes())
        self.raised, self.x = np.vstack([self.raised, raised]), np.append(self.x, math.nan)
        return True

    def _moved(self, m: Floats, w: Floats, side: Floats, x: Floats) -> Floats:
        """The means at multipliers x (n, 1)."""
        if self.distribution.gaussian:
            return m + side * x * self.distribution.v / w
        start = np.where(side > 0, 1 - m, m)
        root = np.sqrt(np.maximum((w + x) ** 2 - 4 * x * w * start, 0.0))
        low = 2 * w * start / (w + x + root)
        return np.where(side > 0, 1 - low, low)

    def at(self, w: Floats, some: Ints) -> Measured:
        raised, m, distribution = self.raised[some], self.means[None], self.distribution
        side, count = np.sign(raised), np.abs(raised)
        W = np.broadcast_to(w, raised.shape)

        def free(mu: Floats) -> Bools:  # a mean of 0 or 1 stays there until its pull is outweighed
            return (count > 0) & (distribution.gaussian | ((mu > 0) & (mu < 1)))

        def rise(x: Floats) -> tuple[Floats, Floats]:
            mu = self._moved(m, W, side, x[:, None])
            bend = np.where(free(mu), count / (W * distribution.slopes(m, mu)[1]), 0.0)
            return (raised * mu).sum(axis=1) - self.gap, bend.sum(axis=1)

        if distribution.gaussian:
            x = (self.gap - (raised * m).sum(axis=1)) / (count * distribution.v / W).sum(axis=1)
        else:
            x = self.x[some] = _roots(rise, np.zeros(len(some)), np.full(len(some), math.inf), self.x[some])
        with np.errstate(all="ignore"):
            mu = self._moved(m, W, side, x[:, None])
            G = np.where(count > 0, count * distribution.divergence(m, mu), 0.0)
            f, s = distribution.slopes(m, mu)
            moves = free(mu)
            each = np.where(moves, count * f / (W * s), 0.0)
            total = np.where(moves, count / (W * s), 0.0).sum(axis=1)
            bend = each * np.where(moves, f, 0.0)
            C = np.where(total[:, None] > 0, each * side / np.sqrt(total)[:, None], 0.0)
        return Measured(G @ w, G, C, bend, 1.0)


def listed(kind: str, numbers: Floats, distribution: Distribution, arms: Floats, counts: Ints) -> list[Any]:
    """All alternatives of a kind that can be listed; of merged arms: means, inside, apart (a control), and counts."""
    means, inside, apart = arms
    I, O = np.flatnonzero(inside).tolist(), np.flatnonzero((inside == 0) & (apart == 0)).tolist()  # noqa: E741
    K, m, bernoulli = len(means), means.tolist(), not distribution.gaussian
    pairs = list[tuple[int, int, float, float, float, float]]()

    def add(i: int, j: int, a: float, b: float, floor: float) -> None:
        low, high = max(m[j], floor), (m[i] - b) / a
        if bernoulli:
            low = max(low, -b / a)
            if low > 1.0:  # arm j cannot be that much better
                return
            high = min(high, 1.0)  # a mean of 1 cannot rise
        # Where high <= low, arm i may stay: arm j alone is raised, or, of arms that are tied, none.
        pairs.append((i, j, a, b, low, max(low, high)))

    if kind == "top-k":
        for i in I:
            for j in O:
                add(i, j, 1.0, -float(numbers[1]), -math.inf)
        return [_Pairs(distribution, means, pairs)]
    if kind == "control":
        (control,), tolerance, a, b = np.flatnonzero(apart).tolist(), *(float(numbers[p]) for p in (1, 3, 4))
        for i in I:
            add(i, control, a, b - tolerance, -math.inf)
        for i in O:
            add(control, i, 1.0 / a, -(b + tolerance) / a, -math.inf)
        return [_Pairs(distribution, means, pairs)]
    a, b, floor, c, d, bottom = (float(x) for x in numbers[:6])
    for i in I:
        for j in range(K):
            if j != i or counts[i] > 1:
                add(i, j, a, b, floor)
    levels = _Levels(distribution, means, c, d, raised=True)
    for i in O:
        others = counts.astype(np.float64)
        others[i] -= 1
        low, high = max(m[i], bottom), float(((means[others > 0] - d) / c).max())
        levels.add(i, others, low, min(high, 1.0) if bernoulli else high)
    return [_Pairs(distribution, means, pairs), levels]


def _exchanged(chosen: Floats, costs: Floats) -> Floats:
    """The sets (n, K) in which one chosen arm is exchanged for another one: those that cost least beside it."""
    old, new = np.flatnonzero(chosen > 0), np.flatnonzero((chosen == 0) & np.isfinite(costs))
    nearest = np.argsort((costs[new] - costs[old, None]).ravel(), kind="stable")[:EXCHANGES]
    sets = np.tile(chosen, (len(nearest), 1))
    rows = np.arange(len(nearest))
    sets[rows, old[nearest // len(new)]] = 0.0
    sets[rows, new[nearest % len(new)]] = 1.0
    return sets


class Sets:
    """The searches for alternatives by sets of arms, "each" and "swaps": the nearest ones at w become known.

    numbers: k and epsilon. v: the variance. means, inside (K,): of arms as they are. back (K,): their merged arms.
    """

    def __init__(
        self, kind: str, numbers: Floats, distribution: int, v: float, means: Floats, inside: Bools, back: Ints
    ) -> None:
        K, one, (_, firsts) = len(means), Distribution(distribution, v), np.unique(back, return_index=True)
        self.distribution, self.means, self.back, self.G, merged = distribution, means, back, len(firsts), means[firsts]
        self.inside, self.k, self.epsilon = inside.astype(np.int8), int(numbers[0]), float(numbers[1])
        self.scratch, self.work, self.values = np.zeros(5 * K), np.zeros(6 * K + LEVELS_SCRATCH), list[float]()
        self.swaps: Any = None
        self.scratch[4 * K :], self.asked = v, list[tuple[int, float, float]]()
        if kind != "each":
            gap = self.k * self.epsilon
            self.alternatives: Any = _Halves(one, merged, gap)
            work = self.work[2 * K : 3 * K], self.work[:K], self.work[K : 2 * K]
            self.swaps = Swaps(distribution, gap, means, self.scratch, self.inside, *work)
            return
        self.alternatives = _Levels(one, merged, 1.0, self.epsilon, raised=False)
        arms = means, self.scratch, self.work[:K], self.work[K : 2 * K]
        self.search = Search(distribution, EACH, self.k, 1.0, self.epsilon, *arms)
        for i in sorted(int(i) for i in firsts if inside[i]):
            low = float(np.sort(np.delete(means, i))[-self.k]) - self.epsilon
            high = float(means[i])
            if distribution != GAUSSIAN:
                low, high = max(low, 0.0), min(high, 1.0 - self.epsilon)
            if distribution == GAUSSIAN or high >= 0:
                self.asked.append((i, min(low, high), high))

    def __call__(self, w: Floats) -> float:
        """A bound from below of the values of all alternatives at w, of merged arms; the nearest become known."""
        K, self.values = len(self.means), []
        self.scratch[2 * K : 3 * K] = w[self.back]
        for i, low, high in self.asked:
            value, x = level(self.search, i, low, high, math.inf, self.work[2 * K :])
            others_at(self.search, i, x + self.epsilon)
            self.values.append(value)
            chosen, costs = self.search.chosen.copy(), self.search.u.copy()  # of raising each arm so far
            costs[i] = math.inf
            for others in (chosen, *_exchanged(chosen, costs)):
                self.alternatives.add(int(self.back[i]), np.bincount(self.back, others, self.G), low, high)
        for s in range(1, min(self.k, K - self.k) + 1) if self.swaps is not None else ():
            self.swaps.forced[:] = 0.0
            value, tilt = best_dual(self.swaps, s)
            self.values.append(value)
            for shift in (-1e-7, 0.0, 1e-7) if tilt > 0 else ():  # where the sets change, those before and after it
                dual(self.swaps, s, tilt * (1.0 + shift))
                self._add(self.swaps.chosen)
        return min(self.values, default=math.inf)

    def _add(self, chosen: Floats) -> None:
        """Let the sets of the chosen arms (K,) become known."""
        self.alternatives.add(np.bincount(self.back, chosen * np.where(self.inside != 0, -1.0, 1.0), self.G))

    def exactly(self, most: float) -> tuple[float, bool]:
        """As the last call, by branch and bound, for sets that cost less than `most`; and whether it is certain."""
        K, least = len(self.means), min(self.values, default=math.inf)
        if self.swaps is None:
            return least, True
        found, _, left = search(self.swaps, self.k, self.work, most, SEARCHED)
        if found < most:
            self._add(self.work[4 * K : 5 * K])
        return (found, True) if left > 0 else (least, False)
