"""The characteristic time: the game in which proportions of pulls are chosen, then the nearest wrong instance.

    1 / T* = max over proportions w of min over instances on which the answer is wrong of sum_a w_a d(mu_a, mu'_a)
    T* kl(delta, 1 - delta) pulls are needed on average (Garivier & Kaufmann, COLT 2016, Theorem 1).

The inner minimum is one over ways to be wrong; the value f(w) of each is a minimum of linear functions of w, concave
and of degree 1. For a way that is told by one number x (the level of a pair or of many arms, or the multiplier of a
half-space), value, gradient and second derivative in w are known: the gradient is the divergences g at the best x, the
second derivative -c c' / h with c = dg/dx, h the second derivative of the cost in x. So Newton's method solves

    maximise t with f(w) >= t for all ways, w >= 0, sum w = 1

with a logarithmic barrier. Ways take part once they are nearly the nearest ones: few are at the solution. Those by sets
of arms are too many to be listed, and are found by compiled searches.

Two bounds end it. The value is at least min f(w) over all ways, at any w. And it is at most max_a sum_c q_c g_c,a, for
any shares q of ways, as f_c(w') <= g_c . w'; the barrier tells shares that come close. Both hold whatever rounding
errors or a premature end have done to the steps between.

Arms with one mean, on one side of the answer, have equal proportions at some solution (the value is concave, and they
may change places): they are treated as one, with its number of arms.

It is in NumPy, so that nothing has to be compiled before the first result; the searches for sets alone are compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import inlined, jit
from .boundaries import LEVELS_ROOM
from .laws import BERNOULLI, GAUSSIAN, LAWS, curvature, divergence, slope
from .levels import EACH, level, others_at
from .swaps import swaps_below, swaps_bound

__all__ = ["Game", "single", "solve"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ACCURACY = 8e-7  # relative, of the value of the game: how far the two bounds may be apart
STEPS = 100  # of a root finder
ROUNDS = 300  # at most, in which ways are let in
SEARCHED = 2000  # sets of arms that are looked at in a search for the nearest ones


class Game(NamedTuple):
    """Proportions (K,), the value that they reach, and a bound that no proportions exceed."""

    proportions: Floats
    value: float
    most: float


class _Law:
    """Divergences of Gaussian or Bernoulli arms, over arrays."""

    def __init__(self, law: int, v: float) -> None:
        self.gaussian, self.v = law == GAUSSIAN, v

    def divergence(self, m: Floats, mu: Floats) -> Floats:
        if self.gaussian:
            found: Floats = (m - mu) ** 2 / (2 * self.v)
            return found
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
        rise: tells the functions and their derivatives at x (n,). x: where to start.
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
            good = (low <= after) & (after <= high) & ((step % 8 != 7) | np.isinf(high))
            after = np.where(good, after, middle)
            still = free & (np.abs(after - x) > 1e-15 * np.abs(after))
            x = after
            if not still.any():
                break
    return np.where(free, x, ends)


class _Measured(NamedTuple):
    """Ways at w: values (n,), gradients G (n, K), and second derivatives: sign C C' - diag(bend)."""

    values: Floats
    G: Floats
    C: Floats
    bend: Floats | None
    sign: float


class _Pairs:
    """Ways of two arms: i is lowered to a x + b, and j raised to x in [low, high]."""

    def __init__(self, law: _Law, means: Floats, rows: list[tuple[int, int, float, float, float, float]]) -> None:
        table = np.array(rows, np.float64).reshape(-1, 6)
        self.law, self.means, self.x = law, means, np.full(len(table), math.nan)
        self.i, self.j = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
        self.a, self.b, self.low, self.high = table[:, 2], table[:, 3], table[:, 4], table[:, 5]

    def __len__(self) -> int:
        return len(self.x)

    def at(self, w: Floats, some: Ints) -> _Measured:
        """G and C are (n, 2): of i and j."""
        i, j = self.i[some], self.j[some]
        a, b, low, high = (x[some] for x in (self.a, self.b, self.low, self.high))
        mi, mj, wi, wj, law = self.means[i], self.means[j], w[i], w[j], self.law
        if law.gaussian:
            x = np.clip((wj * mj + a * wi * (mi - b)) / (wj + a * a * wi), low, high)
        else:

            def rise(x: Floats) -> tuple[Floats, Floats]:
                (f, s), (g, t) = law.slopes(mj, x), law.slopes(mi, a * x + b)
                return wj * f + a * wi * g, wj * s + a * a * wi * t

            x = self.x[some] = _roots(rise, low, high, self.x[some])
        with np.errstate(all="ignore"):
            y = np.minimum(a * x + b, mi)
            G = np.stack([law.divergence(mi, y), law.divergence(mj, x)], axis=1)
            (g, t), (f, s) = law.slopes(mi, y), law.slopes(mj, x)
            total = wj * s + a * a * wi * t
            C = np.stack([a * g, f], axis=1) / np.sqrt(total)[:, None]
        inner = (low < x) & (x < high) & (total > 0)
        return _Measured(wi * G[:, 0] + wj * G[:, 1], G, np.where(inner[:, None], C, 0.0), None, -1.0)

    def squares(self, X: Floats, weights: Floats, some: Ints, K: int) -> Floats:
        """Sum of weights x x', (K, K), of rows x that are told as (n, 2)."""
        i, j = self.i[some], self.j[some]
        places = np.concatenate([i * K + i, i * K + j, j * K + i, j * K + j])
        terms = np.concatenate([weights * X[:, p] * X[:, q] for p in (0, 1) for q in (0, 1)])
        found: Floats = np.bincount(places, terms, K * K).reshape(K, K).astype(np.float64)
        return found

    def sums(self, X: Floats, weights: Floats, some: Ints, K: int) -> Floats:
        """Sum of weights x, (K,)."""
        places = np.concatenate([self.i[some], self.j[some]])
        terms = np.concatenate([weights * X[:, 0], weights * X[:, 1]])
        return np.bincount(places, terms, K).astype(np.float64)

    def along(self, X: Floats, step: Floats, some: Ints) -> Floats:
        """The products of rows and a step, (n,)."""
        found: Floats = X[:, 0] * step[self.i[some]] + X[:, 1] * step[self.j[some]]
        return found


class _Wide:
    """Ways of many arms, as rows (n, K): what is common to levels and half-spaces."""

    def squares(self, X: Floats, weights: Floats, some: Ints, K: int) -> Floats:
        """Sum of weights x x', (K, K)."""
        return (X * weights[:, None]).T @ X

    def along(self, X: Floats, step: Floats, some: Ints) -> Floats:
        """The products of rows and a step, (n,)."""
        found: Floats = X @ step
        return found

    def sums(self, X: Floats, weights: Floats, some: Ints, K: int) -> Floats:
        """Sum of weights x, (K,)."""
        total: Floats = weights @ X
        return total


@inlined
def _rise(law: Any, v: Any, side: Any, c: Any, d: Any, means: Any, w: Any, i: Any, others: Any, x: Any) -> Any:
    """First and second derivative in x of the cost of a way of `_Levels`."""
    first, second, y = w[i] * slope(law, means[i], v, x), w[i] * curvature(law, means[i], v, x), c * x + d
    for a in range(len(means)):
        if others[a] > 0.0 and side * (means[a] - y) > 0.0:
            first += c * others[a] * w[a] * slope(law, means[a], v, y)
            second += c * c * others[a] * w[a] * curvature(law, means[a], v, y)
    return first, second


@inlined
def _level_root(
    law: Any, v: Any, side: Any, c: Any, d: Any, means: Any, w: Any, i: Any, others: Any, low: Any, high: Any, x: Any
) -> Any:
    """Where in [low, high] the cost of a way of `_Levels` is least; x: where to start, or NaN. See `_roots`."""
    if not low < high or _rise(law, v, side, c, d, means, w, i, others, low)[0] >= 0.0:
        return low
    if _rise(law, v, side, c, d, means, w, i, others, high)[0] <= 0.0:
        return high
    x = x if low < x < high else 0.5 * (low + high)
    for step in range(STEPS):
        first, second = _rise(law, v, side, c, d, means, w, i, others, x)
        low, high = (x if first <= 0.0 else low), (x if first >= 0.0 else high)
        after = x - first / second
        if not low <= after <= high or step % 8 == 7:
            after = 0.5 * (low + high)
        if not abs(after - x) > 1e-15 * abs(after):
            return after
        x = after
    return x


@jit
def _measure_levels(
    law: Any,
    v: Any,
    side: Any,
    c: Any,
    d: Any,
    means: Any,
    w: Any,
    arms: Any,
    all_others: Any,
    lows: Any,
    highs: Any,
    xs: Any,
    G: Any,
    C: Any,
) -> None:
    """What `_Levels.at` tells: xs (n,), the best x, where to start before; gradients G and C (n, K), 0 before."""
    for n in range(len(xs)):
        i, others = arms[n], all_others[n]
        x = _level_root(law, v, side, c, d, means, w, i, others, lows[n], highs[n], xs[n])
        xs[n], y = x, c * x + d
        G[n, i], C[n, i] = divergence(law, means[i], v, x), slope(law, means[i], v, x)
        for a in range(len(means)):
            if others[a] > 0.0 and side * (means[a] - y) > 0.0:
                G[n, a] += others[a] * divergence(law, means[a], v, y)
                C[n, a] += c * others[a] * slope(law, means[a], v, y)
        _, bend = _rise(law, v, side, c, d, means, w, i, others, x)
        C[n] = C[n] / math.sqrt(bend) if lows[n] < x < highs[n] and bend > 0.0 else 0.0 * w


class _Levels(_Wide):
    """Arm i goes to x in [low, high], raised or lowered; so many of the others go the other way, to c x + d."""

    def __init__(self, law: _Law, means: Floats, c: float, d: float, raised: bool) -> None:
        self.law, self.means, self.c, self.d, self.side = law, means, c, d, 1.0 if raised else -1.0
        self.i, self.others = np.empty(0, np.int64), np.empty((0, len(means)))
        self.low, self.high, self.x = np.empty(0), np.empty(0), np.empty(0)
        self.known = set[bytes]()

    def __len__(self) -> int:
        return len(self.x)

    def add(self, i: int, others: Floats, low: float, high: float) -> bool:
        """One more; whether it is new. others (K,): how many arms of each kind."""
        key = bytes([*i.to_bytes(4, "little")]) + others.tobytes()
        if key in self.known:
            return False
        self.known.add(key)
        self.i, self.others = np.append(self.i, i), np.vstack([self.others, others])
        self.low, self.high = np.append(self.low, low), np.append(self.high, max(low, high))
        self.x = np.append(self.x, math.nan)
        return True

    def at(self, w: Floats, some: Ints) -> _Measured:
        """G and C are (n, K)."""
        law, means, x = self.law, self.means, self.x[some]
        G, C = np.zeros((2, len(some), len(means)))
        ways = self.i[some], self.others[some], self.low[some], self.high[some], x
        kind = GAUSSIAN if law.gaussian else BERNOULLI
        _measure_levels(kind, law.v, self.side, self.c, self.d, means, w, *ways, G, C)
        self.x[some] = x
        return _Measured(G @ w, G, C, None, -1.0)


class _Halves(_Wide):
    """So many arms are raised, as many lowered, so that the sum of the raised ones is larger by a gap."""

    def __init__(self, law: _Law, means: Floats, gap: float) -> None:
        self.law, self.means, self.gap = law, means, gap
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
        if self.law.gaussian:
            return m + side * x * self.law.v / w
        start = np.where(side > 0, 1 - m, m)
        root = np.sqrt(np.maximum((w + x) ** 2 - 4 * x * w * start, 0.0))
        low = 2 * w * start / (w + x + root)
        return np.where(side > 0, 1 - low, low)

    def at(self, w: Floats, some: Ints) -> _Measured:
        raised, m, law = self.raised[some], self.means[None], self.law
        side, count = np.sign(raised), np.abs(raised)
        W = np.broadcast_to(w, raised.shape)

        def rise(x: Floats) -> tuple[Floats, Floats]:
            mu = self._moved(m, W, side, x[:, None])
            bend = np.where(count > 0, count / (W * law.slopes(m, mu)[1]), 0.0)
            return (raised * mu).sum(axis=1) - self.gap, bend.sum(axis=1)

        if law.gaussian:
            x = (self.gap - (raised * m).sum(axis=1)) / (count * law.v / W).sum(axis=1)
        else:
            x = self.x[some] = _roots(rise, np.zeros(len(some)), np.full(len(some), math.inf), self.x[some])
        with np.errstate(all="ignore"):
            mu = self._moved(m, W, side, x[:, None])
            G = np.where(count > 0, count * law.divergence(m, mu), 0.0)
            f, s = law.slopes(m, mu)
            each = np.where(count > 0, count * f / (W * s), 0.0)
            total = np.where(count > 0, count / (W * s), 0.0).sum(axis=1)
            bend = each * np.where(count > 0, f, 0.0)
            C = np.where(total[:, None] > 0, each * side / np.sqrt(total)[:, None], 0.0)
        return _Measured(G @ w, G, C, bend, 1.0)


class _Barrier:
    """The logarithmic barrier of some ways of each kind."""

    def __init__(self, kinds: list[Any], counts: Floats) -> None:
        self.kinds, self.counts, self.K = kinds, counts, len(counts)
        self.used = [np.empty(0, np.int64) for _ in kinds]
        self.left = [set[int]() for _ in kinds]

    def number(self) -> int:
        """How many ways take part, and arms."""
        return sum(map(len, self.used)) + self.K

    def values(self, w: Floats) -> list[Floats]:
        """Of all ways that are known."""
        return [kind.at(w, np.arange(len(kind))).values if len(kind) else np.empty(0) for kind in self.kinds]

    def let_in(self, values: list[Floats], below: float, leave: float = math.inf) -> bool:
        """Let in the ways whose values are less, and out those that leave it behind; whether there are new ones."""
        new = False
        for n, found in enumerate(values):
            old, again = self.used[n], np.isin(self.used[n], list(self.left[n]))
            out = (found[old] >= leave) & ~again  # once: some return, as they hold up an arm that nothing else does
            self.left[n].update(old[out].tolist())
            self.used[n] = np.union1d(old[~out], np.flatnonzero(found < below))
            new |= len(np.setdiff1d(self.used[n], old)) > 0
        return new

    def measured(self, w: Floats) -> list[_Measured]:
        """The ways that take part, at w."""
        return [kind.at(w, some) for kind, some in zip(self.kinds, self.used, strict=True)]

    def height(self, w: Floats, t: float, base: float, rate: float) -> float:
        """The barrier's function at (w, t)."""
        if not (w > 0).all():
            return -math.inf
        total = rate * (t - base) + float(np.log(w).sum())
        for one in self.measured(w):
            left = one.values - t
            if not (left > 0).all():
                return -math.inf
            total += float(np.log(left).sum())
        return total

    def most(self, measured: list[_Measured], shares: list[Floats]) -> float:
        """A bound from above of the value of the game, by shares of the ways that take part, and their gradients."""
        total, whole = np.zeros(self.K), 0.0
        for kind, some, one, q in zip(self.kinds, self.used, measured, shares, strict=True):
            total, whole = total + kind.sums(one.G, q, some, self.K), whole + float(q.sum())
        return float((total / self.counts).max()) / whole if whole > 0 else math.inf

    def centre(self, w: Floats, t: float, rate: float, scale: float) -> tuple[Floats, float, float, bool]:
        """The point on the central path, by Newton's method.

        Returns:
            w, t, a bound from above of the value of the game, and whether the path was reached.
        """
        K, most, reached = self.K, math.inf, False
        for _ in range(50):
            H, slope, rows, last = np.diag(-1 / w**2), 1 / w, np.zeros(K), 0.0
            price, lefts, rates, measured = rate, list[Floats](), list[Floats](), self.measured(w)
            nearest = _least([one.values for one in measured])
            if nearest - t <= 1e-15 * nearest:  # rounding errors
                t = nearest - self.number() / rate
            for kind, some, one in zip(self.kinds, self.used, measured, strict=True):
                left = 1 / (one.values - t)
                H -= kind.squares(one.G, left**2, some, K) - one.sign * kind.squares(one.C, left, some, K)
                if one.bend is not None:
                    H[np.arange(K), np.arange(K)] -= left @ one.bend
                slope = slope + kind.sums(one.G, left, some, K)
                rows += kind.sums(one.G, left**2, some, K)
                last -= float((left**2).sum())
                price -= float(left.sum())
                lefts.append(left)
                rates.append(one.G)
            # Steps that keep sum w, in units of w and of the value, which are of one size.
            size, M = np.append(w, scale), np.zeros((K + 2, K + 2))
            M[:K, :K], M[:K, K], M[K, :K], M[K, K] = H, rows, rows, last
            M[: K + 1, : K + 1] *= size[:, None] * size
            M[:K, K + 1] = M[K + 1, :K] = w * self.counts
            slopes = np.append(slope, price)
            try:
                step = np.linalg.solve(M, np.append(-slopes * size, 0.0))[: K + 1] * size
            except np.linalg.LinAlgError:
                break
            gain = float(slopes @ step)
            if gain < 1.0:  # shares of the ways as they will be after the step
                moves = [
                    kind.along(G, step[:K], some) for kind, G, some in zip(self.kinds, rates, self.used, strict=True)
                ]
                shares = [np.maximum(q - q * q * (move - step[K]), 0.0) for q, move in zip(lefts, moves, strict=True)]
                after = self.measured(np.maximum(w + step[:K], 0.5 * w))
                most = min(most, self.most(measured, shares), self.most(after, shares))
            if not gain > 1e-4:
                reached = gain >= 0
                break
            # The first length at which no arm and, to first order, no way leaves its side.
            shrinks = float((-step[:K] / w).max())
            length, now = min(1.0, 0.99 / shrinks) if shrinks > 0 else 1.0, self.height(w, t, t, rate)
            while length > 1e-9:
                if self.height(w + length * step[:K], t + length * step[K], t, rate) > now + 0.01 * length * gain:
                    break
                length *= 0.5
            else:
                break
            w, t = w + length * step[:K], t + length * step[K]
            whole = float(w @ self.counts)
            w, t = w / whole, t / whole
            if gain < 0.01 and length == 1.0:
                reached = True
                break
        return w, t, most, reached


def single(costs: Floats) -> Game:
    """The game where each arm alone can make the answer wrong."""
    if (costs <= 0).any():
        return Game(np.full(len(costs), 1 / len(costs)), 0.0, 0.0)
    inverse = 1 / costs
    value = float(1 / inverse.sum())
    return Game(inverse / inverse.sum(), value, value)


def solve(kind: str, told: Floats, law: str, v: float, means: Floats, inside: NDArray[np.bool_]) -> Game:
    """Optimal proportions and the value of the game, 1 / T*, which is 0 where the answer is not told apart.

    Args:
        kind: of the exact search, and told: its numbers, see `Certifier`.
        law: "gaussian" or "bernoulli". v: the Gaussian variance.
        means: (K,). inside: (K,), the answer.
    """
    K = len(means)
    kinds, back, counts = np.unique(np.stack([means, inside]), axis=1, return_inverse=True, return_counts=True)
    back = back.reshape(-1)
    if kind in ("each", "swaps"):
        search: Any = _Sets(kind, told, LAWS[law], v, means, inside, back, kinds[0])
        ways: list[Any] = [search.ways]
    else:
        search = None
        ways = _listed(kind, told, _Law(LAWS[law], v), kinds[0], kinds[1] != 0, counts)
    barrier = _Barrier(ways, counts.astype(np.float64))
    w = np.full(len(counts), 1 / K)
    lower = search(w) if search is not None else math.inf
    values = barrier.values(w)
    least = min(lower, _least(values))
    if not 0 < least < math.inf:
        return Game(np.full(K, 1 / K), max(least, 0.0), max(least, 0.0))
    barrier.let_in(values, 4 * least)
    t, rate, scale = 0.5 * least, 1 / least, least
    best, most, found_w, stuck = least, math.inf, w, 0.0
    for _ in range(ROUNDS):
        w, t, above, reached = barrier.centre(w, t, rate, scale)
        most = min(most, above)
        bound = search(w) if search is not None else math.inf
        known = _least(values := barrier.values(w))
        gap, close = barrier.number() / rate, known * (1 - 0.1 * ACCURACY)
        new = barrier.let_in(values, t + gap)
        if bound < close and most - known <= ACCURACY * known:
            bound, whole = search.exactly(w, close)
            known = _least(values := barrier.values(w))
            new = barrier.let_in(values, t + gap)
            stuck += 0 if whole else 4
        if min(bound, known) > best:
            best, found_w = min(bound, known), w
        if most - best <= ACCURACY * best or stuck >= 4:
            break
        if known <= t:
            back_by = max(gap, 2 * (t - known))
            if known < 0.7 * best:
                w = 0.5 * (w + found_w)
                known = _least(barrier.values(w))
            stuck += not new
            if known <= t + gap:
                t = known - min(back_by, 0.5 * known)
            rate = min(rate, max(barrier.number() / back_by, 0.03 * rate))
        elif not reached and above == math.inf:
            stuck, t = stuck + 0.2, t - min(gap, 0.1 * t)
        elif not new and rate * known > 1e13:
            break
        else:
            stuck, rate = 0.0, rate * 10.0
            barrier.let_in(values, t + gap, t + 100 * gap)
    return Game(found_w[back], best, max(most, best))


def _least(values: list[Floats]) -> float:
    """Of the values of all kinds."""
    return min([math.inf, *(float(found.min()) for found in values if len(found))])


def _listed(
    kind: str, told: Floats, law: _Law, means: Floats, inside: NDArray[np.bool_], counts: NDArray[np.int64]
) -> list[Any]:
    """All ways of a kind whose ways can be listed; means, inside and counts are those of merged arms."""
    I, O = np.flatnonzero(inside).tolist(), np.flatnonzero(~inside).tolist()  # noqa: E741
    K, m, bernoulli = len(means), means.tolist(), not law.gaussian
    pairs = list[tuple[int, int, float, float, float, float]]()

    def add(i: int, j: int, a: float, b: float, floor: float) -> None:
        low, high = max(m[j], floor), (m[i] - b) / a
        if bernoulli:
            low = max(low, -b / a)
            if not low < high or low > 1.0:
                return
            high = min(high, 1.0)  # a mean of 1 cannot rise
        pairs.append((i, j, a, b, low, max(low, high)))

    if kind == "top-k":
        for i in I:
            for j in O:
                add(i, j, 1.0, -float(told[1]), -math.inf)
        return [_Pairs(law, means, pairs)]
    a, b, floor, c, d, bottom = (float(x) for x in told[:6])
    for i in I:
        for j in range(K):
            if j != i or counts[i] > 1:
                add(i, j, a, b, floor)
    levels = _Levels(law, means, c, d, raised=True)
    for i in O:
        others = counts.astype(np.float64)
        others[i] -= 1
        low, high = max(m[i], bottom), float(((means[others > 0] - d) / c).max())
        levels.add(i, others, low, min(high, 1.0) if bernoulli else high)
    return [_Pairs(law, means, pairs), levels]


@jit
def _each_sets(
    law: Any, k: Any, epsilon: Any, mean: Any, room: Any, asked: Any, ends: Any, work: Any, sets: Any, values: Any
) -> None:
    """For each arm that is asked for: what it costs to lower it to the best x, and the set of k that is raised."""
    K = len(mean)
    u, chosen, stack = work[:K], work[K : 2 * K], work[2 * K : 2 * K + LEVELS_ROOM]
    for n in range(len(asked)):
        i, low, high = asked[n], ends[n, 0], ends[n, 1]
        values[n], x = level(law, EACH, i, k, 1.0, epsilon, low, high, np.inf, mean, room, u, chosen, stack)
        others_at(law, EACH, i, k, x + epsilon, mean, room, u, chosen)
        for a in range(K):
            sets[n, a] = chosen[a]


class _Sets:
    """The searches for ways by sets of arms, "each" and "swaps": the nearest ones at w become known ways."""

    def __init__(
        self,
        kind: str,
        told: Floats,
        law: int,
        v: float,
        means: Floats,
        inside: NDArray[np.bool_],
        back: Ints,
        merged: Floats,
    ) -> None:
        K, one = len(means), _Law(law, v)
        self.law, self.means, self.back, self.G = law, means, back, len(merged)
        self.inside, self.k, self.epsilon = inside.astype(np.int8), int(told[0]), float(told[1])
        self.room, self.work, self.each = np.zeros(5 * K), np.zeros(6 * K + LEVELS_ROOM), kind == "each"
        self.room[4 * K :] = v
        if not self.each:
            self.ways: Any = _Halves(one, merged, self.k * self.epsilon)
            n = min(self.k, K - self.k)
            self.sets, self.values = np.empty((3 * n, K)), np.empty(n)
            return
        self.ways = _Levels(one, merged, 1.0, self.epsilon, raised=False)
        asked, ends = list[int](), list[tuple[float, float]]()
        _, firsts = np.unique(back, return_index=True)
        for i in sorted(int(i) for i in firsts if inside[i]):
            low = float(np.sort(np.delete(means, i))[-self.k]) - self.epsilon
            high = float(means[i])
            if law != GAUSSIAN:
                low, high = max(low, 0.0), min(high, 1.0 - self.epsilon)
            if law == GAUSSIAN or high >= 0:
                asked.append(i)
                ends.append((min(low, high), high))
        self.asked, self.ends = np.array(asked, np.int64), np.array(ends).reshape(-1, 2)
        self.sets, self.values = np.empty((len(asked), K)), np.empty(len(asked))

    def __call__(self, w: Floats) -> float:
        """A bound from below of the values of all ways at w, of merged arms; the nearest ones are known then."""
        K, law = len(self.means), self.law
        self.room[2 * K : 3 * K] = w[self.back]
        if self.each:
            told = self.asked, self.ends, self.work, self.sets, self.values
            _each_sets(law, self.k, self.epsilon, self.means, self.room, *told)
            for i, ends, chosen in zip(self.asked, self.ends, self.sets, strict=True):
                self.ways.add(int(self.back[i]), np.bincount(self.back, chosen, self.G), *ends.tolist())
        else:
            gap = self.k * self.epsilon
            swaps_bound(law, self.k, gap, self.means, self.room, self.inside, self.work, self.sets, self.values)
            side = np.where(self.inside != 0, -1.0, 1.0)
            for chosen in self.sets:
                if (chosen > 0).any():
                    self.ways.add(np.bincount(self.back, chosen * side, self.G))
        return float(self.values.min()) if len(self.values) else math.inf

    def exactly(self, w: Floats, most: float) -> tuple[float, bool]:
        """As a call, where the bound is too low: by branch and bound, for sets that cost less than `most`.

        Returns:
            The bound, and whether it is known that no sets cost less.
        """
        if self.each:
            return float(self.values.min()), True
        gap, K = self.k * self.epsilon, len(self.means)
        told = self.means, self.room, self.inside, self.work, most, SEARCHED
        found, whole = swaps_below(self.law, self.k, gap, *told)
        chosen = self.work[4 * K : 5 * K]
        if found < most:
            self.ways.add(np.bincount(self.back, chosen * np.where(self.inside != 0, -1.0, 1.0), self.G))
        return (float(found), True) if whole else (float(self.values.min()), False)
