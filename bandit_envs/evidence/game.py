"""The characteristic time: the game in which proportions of pulls are chosen, then the nearest wrong instance.

    1 / T* = max over proportions w of min over instances on which the answer is wrong of sum_a w_a d(mu_a, mu'_a)
    T* kl(delta, 1 - delta) pulls are needed on average (Garivier & Kaufmann, COLT 2016, Theorem 1).

The inner minimum is one over ways to be wrong; each way is the minimum of linear functions of w, so that it is concave.
For a way that is told by one number x (the level of a pair or of many arms, or the multiplier of a half-space), value,
gradient and second derivative in w are known: the gradient is the divergences g at the best x, the second derivative
-c c' / h with c = dg/dx, h the second derivative of the cost in x. So Newton's method solves

    maximise t with f(w) >= t for all ways, w >= 0, sum w = 1

with a logarithmic barrier, for hundreds of arms in seconds and to about 1e-10. Ways by sets of arms are too many to be
listed: those that are the nearest at some solution are added until the value at it is no less.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import jit, part
from .laws import GAUSSIAN, LAWS, curvature, divergence, slope

__all__ = ["Way", "solve"]

Floats = NDArray[np.float64]
ACCURACY = 1e-9  # relative, of the value of the game


class Way(NamedTuple):
    """A way to be wrong: the arms go to a x + b, each from one side only, x being free in [low, high].

    The half-space of sets, sum of s_a mu_a >= gap, is told by its multiplier instead: `sides` s, `gap`.
    """

    arms: NDArray[np.int64]  # (n,)
    a: Floats  # (n,)
    b: Floats  # (n,)
    sides: Floats  # (n,): 1 for arms that are raised, -1 for arms that are lowered
    low: float
    high: float
    gap: float | None = None


@part
def _moved(law: Any, v: Any, m: Any, w: Any, a: Any, b: Any, side: Any, half: Any, x: Any) -> Any:
    """The mean of an arm at x: a x + b if that is on its side; in a half-space, what the multiplier x makes it."""
    if not half:
        return max(a * x + b, m) if side > 0.0 else min(a * x + b, m)
    if law == GAUSSIAN:
        return m + side * x * v / w
    start = 1.0 - m if side > 0.0 else m
    low = 2.0 * w * start / (w + x + math.sqrt(max((w + x) * (w + x) - 4.0 * x * w * start, 0.0)))
    return 1.0 - low if side > 0.0 else low


@part
def _rise(
    law: Any, v: Any, means: Any, weights: Any, arms: Any, a: Any, b: Any, sides: Any, half: Any, gap: Any, x: Any
) -> Any:
    """What rises in x and is 0 at the best x: the slope of the cost, or how far the means are beyond the half-space."""
    total = -gap if half else 0.0
    for p in range(len(arms)):
        if arms[p] >= 0:
            m, w = means[arms[p]], weights[arms[p]]
            mu = _moved(law, v, m, w, a[p], b[p], sides[p], half, x)
            if half:
                total += sides[p] * mu
            elif mu != m:
                total += w * a[p] * slope(law, m, v, mu)
    return total


@jit
def _measure(
    law: Any,
    v: Any,
    means: Any,
    weights: Any,
    arms: Any,
    a: Any,
    b: Any,
    sides: Any,
    ends: Any,
    half: Any,
    gap: Any,
    values: Any,
    G: Any,
    C: Any,
    bend: Any,
) -> None:
    """Fill in the values (n,), gradients (n, K), and second derivatives -C C' (half-spaces: + C C' - bend), (n, K)."""
    G[:], C[:], bend[:] = 0.0, 0.0, 0.0
    for i in range(len(arms)):
        low, high = ends[i, 0], ends[i, 1]
        if half[i]:
            high = 1.0
            while (
                high < 1e300 and _rise(law, v, means, weights, arms[i], a[i], b[i], sides[i], True, gap[i], high) < 0.0
            ):
                high *= 2.0
        bottom, top = low, high
        for _ in range(100):
            x = 0.5 * (low + high)
            if not low < x < high:
                break
            if _rise(law, v, means, weights, arms[i], a[i], b[i], sides[i], half[i], gap[i], x) < 0.0:
                low = x
            else:
                high = x
        x = 0.5 * (low + high)
        values[i], total = 0.0, 0.0
        for p in range(arms.shape[1]):
            arm = arms[i, p]
            if arm < 0:
                continue
            m, w = means[arm], weights[arm]
            mu = _moved(law, v, m, w, a[i, p], b[i, p], sides[i, p], half[i], x)
            if mu == m:
                continue
            G[i, arm] = divergence(law, m, v, mu)
            values[i] += w * G[i, arm]
            first, second = slope(law, m, v, mu), curvature(law, m, v, mu)
            if half[i]:
                C[i, arm] = first * sides[i, p] / (w * second)
                bend[i, arm] = first * first / (w * second)
                total += 1.0 / (w * second)
            else:
                C[i, arm] = a[i, p] * first
                total += w * a[i, p] * a[i, p] * second
        inner = total > 0.0 and (half[i] or bottom < x < top)
        for arm in range(len(means)):
            C[i, arm] = C[i, arm] / math.sqrt(total) if inner else 0.0


class _Ways:
    """Many ways at once: their values, gradients and second derivatives at w."""

    def __init__(self, law: str, v: float, means: Floats, ways: list[Way]) -> None:
        self.law, self.v, self.means, self.ways = LAWS[law], v, means, ways
        n, most = len(ways), max(len(way.arms) for way in ways)
        self.arms = np.full((n, most), -1)
        self.a, self.b, self.sides = np.zeros((n, most)), np.zeros((n, most)), np.zeros((n, most))
        for i, way in enumerate(ways):
            k = len(way.arms)
            self.arms[i, :k], self.a[i, :k], self.b[i, :k], self.sides[i, :k] = way.arms, way.a, way.b, way.sides
        self.ends = np.array([[way.low, way.high] for way in ways])
        self.half = np.array([way.gap is not None for way in ways])
        self.gap = np.array([0.0 if way.gap is None else way.gap for way in ways])
        self.values = np.empty(n)
        self.G, self.C, self.bend = np.empty((3, n, len(means)))

    def at(self, weights: Floats) -> Floats:
        """The values; gradients and second derivatives are left in G, C and bend."""
        told = self.arms, self.a, self.b, self.sides, self.ends, self.half, self.gap
        _measure(self.law, self.v, self.means, weights, *told, self.values, self.G, self.C, self.bend)
        return self.values.copy()


def _newton(some: _Ways, K: int, w: Floats) -> tuple[Floats, float]:
    """The proportions (K,) that maximise the least value of some ways, and that value: by a barrier and Newton."""
    n = len(some.ways)
    values = some.at(w)
    scale = float(values.min())
    t, rate = 0.5 * scale, 1.0 / scale

    def barrier(w: Floats, t: float, base: float) -> float:
        if not (w > 0).all():
            return -math.inf
        left = some.at(w) - t
        return -math.inf if not (left > 0).all() else float(rate * (t - base) + np.log(left).sum() + np.log(w).sum())

    while True:
        for _ in range(60):
            values = some.at(w)
            left, G, C = values - t, some.G, some.C
            H = np.zeros((K + 1, K + 1))
            H[:K, :K] = -(G / left[:, None] ** 2).T @ G - (C * (np.where(some.half, -1, 1) / left)[:, None]).T @ C
            H[np.arange(K), np.arange(K)] -= (some.bend / left[:, None]).sum(axis=0) + 1 / w**2
            H[:K, K] = H[K, :K] = (G / left[:, None] ** 2).sum(axis=0)
            H[K, K] = -(1 / left**2).sum()
            slope = np.append((G / left[:, None]).sum(axis=0) + 1 / w, rate - (1 / left).sum())
            # Steps that keep sum w, in units of w and of the value, which are of one size.
            size = np.append(w, scale)
            M = np.zeros((K + 2, K + 2))
            M[: K + 1, : K + 1] = H * size[:, None] * size
            M[:K, K + 1] = M[K + 1, :K] = w
            step = np.linalg.solve(M, np.append(-slope * size, 0.0))[: K + 1] * size
            gain = float(slope @ step)
            if gain < 1e-5:
                break
            length, now = 1.0, barrier(w, t, t)
            while (
                length > 1e-12
                and not barrier(w + length * step[:K], t + length * step[K], t) > now + 0.01 * length * gain
            ):
                length *= 0.5
            if length <= 1e-6:
                break
            w, t = w + length * step[:K], t + length * step[K]
            w = w / w.sum()
        value = float(some.at(w).min())
        if (n + K) / rate <= ACCURACY * value:
            return w, value
        rate *= 8.0


def single(costs: Floats) -> tuple[Floats, float]:
    """The game where each arm alone can make the answer wrong: proportions and value."""
    if (costs <= 0).any():
        return np.full(len(costs), 1 / len(costs)), 0.0
    inverse = 1 / costs
    return inverse / inverse.sum(), float(1 / inverse.sum())


def solve(certifier: Any, law: str, v: float, means: Floats, inside: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Optimal proportions (K,), and the value of the game, 1 / T*, which is 0 where the answer is not told apart.

    Args:
        certifier: the exact one, with the boundary "none". law: "gaussian" or "bernoulli". v: the Gaussian variance.
        means: (K,). inside: (K,), the answer.
    """
    K = len(means)
    told = certifier.numbers[8:]
    ways, nearest = _enumerated(certifier.kind, told, law, means, inside)
    exact = 2.0**50

    def ask(w: Floats) -> Floats:
        pulls = np.maximum(np.round(w * exact), 1).astype(np.int64)[None]
        found: Floats = certifier.ways(pulls, means[None].copy(), np.zeros((1, K)), inside[None].astype(np.int8))[0]
        return found

    w = np.full(K, 1 / K)
    if not ask(w)[0] > 0:
        return w, 0.0
    if nearest:
        ways = [_of_sets(certifier.kind, told, law, means, inside, ask(w))]
        used = list(ways)
    else:
        everything = _Ways(law, v, means, ways)
        values = everything.at(w)
        used = [ways[i] for i in _least(values, ways, K)]
    if ask(w)[0] == math.inf:
        return w, math.inf
    for _ in range(1000):
        w, value = _newton(_Ways(law, v, means, used), K, np.full(K, 1 / K))
        if nearest:
            found = ask(w)
            if found[0] / exact >= value * (1 - 1e-9):
                return w, float(min(value, found[0] / exact))
            used.append(_of_sets(certifier.kind, told, law, means, inside, found))
        else:
            values = everything.at(w)
            if values.min() >= value * (1 - 1e-9):
                return w, float(min(value, values.min()))
            known = set(map(id, used))
            more = [ways[i] for i in _least(values, ways, K) if values[i] < value * (1 - 1e-9)]
            used += [way for way in more if id(way) not in known]
    raise ArithmeticError(f"the game for the means {means.tolist()} was not solved")


def _least(values: Floats, ways: list[Way], K: int) -> list[int]:
    """For each arm the way of least value in which it comes first or second, and the ways of all arms."""
    best: dict[tuple[int, int], int] = {}
    for i in np.argsort(values, kind="stable").tolist():
        for place in (0, 1):
            best.setdefault((place, int(ways[i].arms[place])), i)
    return sorted(set(best.values()))


def _pair(law: str, means: Floats, i: int, j: int, a: float, b: float, floor: float) -> Way | None:
    """Arm i lowered to a x + b, arm j raised to x; None where no instance does so."""
    low, high = max(float(means[j]), floor), (float(means[i]) - b) / a
    if law == "bernoulli":
        low, high = max(low, -b / a), min(high, 1.0)
        if not low < high or (low == high == 1.0):
            return None
    return Way(np.array([i, j]), np.array([a, 1.0]), np.array([b, 0.0]), np.array([-1.0, 1.0]), low, max(low, high))


def _enumerated(kind: str, told: Floats, law: str, means: Floats, inside: NDArray[np.bool_]) -> tuple[list[Way], bool]:
    """All ways of a kind; or none, and True, where they are too many."""
    I, O = np.flatnonzero(inside).tolist(), np.flatnonzero(~inside).tolist()  # noqa: E741
    K, found = len(means), list[Way | None]()
    if kind == "top-k":
        found = [_pair(law, means, i, j, 1.0, -float(told[1]), -math.inf) for i in I for j in O]
    elif kind == "all-good-exactly":
        a, b, floor, c, d, bottom = (float(x) for x in told[:6])
        found = [_pair(law, means, i, j, a, b, floor) for i in I for j in range(K) if j != i]
        for i in O:
            others = [j for j in range(K) if j != i]
            low, high = max(float(means[i]), bottom), float(((means[others] - d) / c).max())
            high = min(high, 1.0) if law == "bernoulli" else high
            arms = np.array([i, *others])
            lift = np.array([1.0] + [c] * (K - 1)), np.array([0.0] + [d] * (K - 1))
            found.append(Way(arms, *lift, np.array([1.0] + [-1.0] * (K - 1)), low, max(low, high)))
    else:
        return [], True
    return [way for way in found if way is not None], False


def _of_sets(kind: str, told: Floats, law: str, means: Floats, inside: NDArray[np.bool_], found: Floats) -> Way:
    """The way that the exact routine reports as the nearest one."""
    K, n = len(means), int(found[1])
    arms = found[2 : 2 + n].astype(np.int64)
    taken = inside[arms]
    if kind == "swaps":
        gap = float(told[0] * told[1])
        return Way(arms, np.zeros(n), np.zeros(n), np.where(taken, -1.0, 1.0), 0.0, 1.0, gap)
    target, epsilon = found[2 + 2 * K : 2 + 2 * K + n], float(told[1])
    first = int(np.flatnonzero(target < means[arms])[0]) if (target < means[arms]).any() else -1
    if first < 0:
        first = int(np.flatnonzero(taken & (target == means[arms]))[0])
    sides = np.where(np.arange(n) == first, -1.0, 1.0)
    raised = means[arms][sides > 0]
    low, high = float(raised.min()) - epsilon, float(means[arms[first]])
    if law == "bernoulli":
        low, high = max(low, 0.0), min(high, 1.0 - epsilon)
    return Way(arms, np.ones(n), np.where(sides > 0, epsilon, 0.0), sides, low, high)
