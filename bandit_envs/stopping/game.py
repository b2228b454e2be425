"""The characteristic time: the game in which proportions of pulls are chosen, then the nearest wrong instance.

    1 / T* = max over proportions w of min over instances on which the answer is wrong of sum_a w_a d(mu_a, mu'_a)
    T* kl(delta, 1 - delta) pulls are needed on average (Garivier & Kaufmann, COLT 2016, Theorem 1).

The inner minimum is one over alternatives; the value f(w) of each is a minimum of linear functions of w, concave and of
degree 1, of which `game_alternatives` knows value, gradient and second derivative. So Newton's method solves

    maximise t with f(w) >= t for all alternatives, w >= 0, sum w = 1

with a logarithmic barrier. Alternatives take part once they are nearly the nearest ones: few are at the solution. Those
by sets of arms become known as they are found.

Two bounds end it. The value is at least min f(w) over all alternatives, at any w. And it is at most max_a sum_c q_c
g_c,a, for any shares q of alternatives, as f_c(w') <= g_c . w'; the barrier gives shares that come close. Both hold
whatever rounding errors or a premature end have done to the steps between.

Arms with one mean, on one side of the answer, have equal proportions at some solution (the value is concave, and they
may change places): they are treated as one, with its number of arms.

It is in NumPy, so that nothing has to be compiled before the first result; the searches for sets alone are compiled.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.checks import Floats
from .distributions import CODES
from .game_alternatives import Distribution, Measured, Sets, listed

ACCURACY = 8e-7  # relative, of the value of the game: how far the two bounds may be apart
ROUNDS = 500  # at most, in which alternatives are let in


class Game(NamedTuple):
    """Proportions (K,), the value that they reach, and a bound that no proportions exceed."""

    proportions: Floats
    value: float
    most: float

    @property
    def is_solved(self) -> bool:
        """Whether value and bound are as close as they are meant to be; a bound below the value is a fault."""
        return self.most == self.value or abs(self.most - self.value) <= ACCURACY * self.value


class _Barrier:
    """The logarithmic barrier of some alternatives of each kind."""

    def __init__(self, kinds: list[Any], counts: Floats) -> None:
        self.kinds, self.counts, self.K = kinds, counts, len(counts)
        self.used = [np.empty(0, np.int64) for _ in kinds]
        self.left = [set[int]() for _ in kinds]

    def number(self) -> int:
        """How many alternatives take part, and arms."""
        return sum(map(len, self.used)) + self.K

    def values(self, w: Floats) -> list[Floats]:
        """Of all alternatives that are known."""
        return [kind.at(w, np.arange(len(kind))).values if len(kind) else np.empty(0) for kind in self.kinds]

    def let_in(self, values: list[Floats], below: float, leave: float = math.inf) -> bool:
        """Let in the alternatives of lesser values, and out those that leave it behind; whether there are new ones."""
        new = False
        for n, found in enumerate(values):
            old, again = self.used[n], np.isin(self.used[n], list(self.left[n]))
            out = (found[old] >= leave) & ~again  # once: some return, as they hold up an arm that nothing else does
            self.left[n].update(old[out].tolist())
            self.used[n] = np.union1d(old[~out], np.flatnonzero(found < below))
            new |= len(np.setdiff1d(self.used[n], old)) > 0
        return new

    def measured(self, w: Floats) -> list[Measured]:
        """The alternatives that take part, at w."""
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

    def most(self, measured: list[Measured], shares: list[Floats]) -> float:
        """A bound from above of the value of the game, by shares of the alternatives in it, and their gradients."""
        total, whole = np.zeros(self.K), 0.0
        for kind, some, one, q in zip(self.kinds, self.used, measured, shares, strict=True):
            total, whole = total + kind.sums(one.G, q, some, self.K), whole + float(q.sum())
        return float((total / self.counts).max()) / whole if whole > 0 else math.inf

    def centre(self, w: Floats, t: float, rate: float, scale: float) -> tuple[Floats, float, float, bool]:
        """w, t on the central path, by Newton's method, a bound from above of the value, and whether it was reached."""
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
            if gain < 1.0:  # shares of the alternatives as they will be after the step
                moves = [
                    kind.along(G, step[:K], some) for kind, G, some in zip(self.kinds, rates, self.used, strict=True)
                ]
                shares = [np.maximum(q - q * q * (move - step[K]), 0.0) for q, move in zip(lefts, moves, strict=True)]
                after = self.measured(np.maximum(w + step[:K], 0.5 * w))
                most = min(most, self.most(measured, shares), self.most(after, shares))
            if not gain > 1e-4:
                reached = gain >= 0
                break
            # The first length at which no arm and, to first order, no alternative leaves its side.
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
    if np.isinf(costs).all():
        return Game(np.full(len(costs), 1 / len(costs)), math.inf, math.inf)
    inverse = 1 / costs
    value = float(1 / inverse.sum())
    return Game(inverse / inverse.sum(), value, value)


def solve(kind: str, numbers: Floats, distribution: str, v: float, means: Floats, inside: NDArray[np.bool_]) -> Game:
    """Optimal proportions for the answer `inside` (K,), and the value of the game, 1 / T*: 0 where a wrong one ties.

    It is inf where no instance makes the answer wrong. The kind and the numbers are those of an exact search.
    """
    K = len(means)
    apart = np.arange(K) == numbers[0] if kind == "control" else np.zeros(K, np.bool_)  # it is like no other arm
    like = np.stack([means, inside, apart])
    kinds, back, counts = np.unique(like, axis=1, return_inverse=True, return_counts=True)
    back = back.reshape(-1)
    if kind in ("each", "swaps"):
        search: Any = Sets(kind, numbers, CODES[distribution], v, means, inside, back)
        alternatives: list[Any] = [search.alternatives]
    else:
        search = None
        alternatives = listed(kind, numbers, Distribution(CODES[distribution], v), kinds, counts)
    barrier = _Barrier(alternatives, counts.astype(np.float64))
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
            bound, whole = search.exactly(close)
            known = _least(values := barrier.values(w))
            new = barrier.let_in(values, t + gap)
            stuck += 0 if whole else 4
        if min(bound, known) > best:
            best, found_w = min(bound, known), w
        if Game(found_w, best, most).is_solved or stuck >= 4:
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
    return Game(found_w[back], best, most)


def _least(values: list[Floats]) -> float:
    """Of the values of all kinds."""
    return min([math.inf, *(float(found.min()) for found in values if len(found))])
