"""The look-ahead potential, slowly: a NumPy twin on the same points, and the integrals themselves."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
from scipy import integrate, special, stats

from bandit_envs import Task
from bandit_envs.problems.normal import COLUMNS, POINTS, STEPS
from bandit_envs.problems.potential import ALL_GOOD, CELLS, CONTROL, LIMIT, LOCAL, REACH, TOP_K

ndtr = special.ndtr
ROOT_2_PI = np.sqrt(2 * np.pi)
NORMALISERS: dict[tuple[int, int, float], float] = {}


@functools.cache
def unit_points(n: int) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.legendre.leggauss(n)
    return (x + 1) / 2, w / 2


_T = special.owens_t(np.arange(5 * STEPS + 1)[:, None] / STEPS, np.arange(COLUMNS + 1) / COLUMNS)


def density(x: Any) -> Any:
    """Of the standard normal distribution."""
    return np.exp(-x * x / 2) / ROOT_2_PI


def owen(h: float, a: float) -> float:
    """T by linear interpolation, first along a, then along h."""
    i = min(int(h * STEPS), len(_T) - 2)
    columns = [np.interp(a * COLUMNS, np.arange(COLUMNS + 1), row) for row in _T[i : i + 2]]
    return float(np.interp(h * STEPS, [i, i + 1], columns))


def right(z: float, r: float, t: float = 0.0) -> float:
    """G(z, r), arms within t sds of the boundary being right whatever is said; on the points of the package."""
    z = abs(z)
    if r <= 0:
        return float(ndtr(z + t))
    if t > 0:
        rho, (x, w) = np.sqrt(r), unit_points(POINTS)
        theta, h = np.arcsin(rho) * x, -z / rho

        def both(k: float) -> float:
            inside = np.exp(-(h * h + k * k - 2 * h * k * np.sin(theta)) / 2 / np.cos(theta) ** 2)
            return float(ndtr(h) * ndtr(k) + np.arcsin(rho) * (w * inside).sum() / 2 / np.pi)

        return float(1 - ndtr(-(z + t)) - ndtr(h) + both(-(z + t)) + both(t - z))
    if r >= 0.5:
        return 1 - 2 * owen(z, np.sqrt((1 - r) / r))
    a = np.sqrt(r / (1 - r))
    return float(1 - ndtr(z) - ndtr(z / a) + 2 * ndtr(z) * ndtr(z / a) + 2 * owen(z / a, a))


def right_exactly(z: float, r: float, t: float = 0.0) -> float:
    """The same by adaptive integration over the future mean, z + sqrt(r) x sds from the boundary."""
    if r <= 0:
        return float(ndtr(abs(z) + t))

    def inside(x: float) -> float:
        return density(x) * ndtr((abs(z + np.sqrt(r) * x) + t) / np.sqrt(1 - r))

    kink = float(np.clip(-z / np.sqrt(r), -9, 9))
    return sum(integrate.quad(inside, low, high, epsabs=1e-8)[0] for low, high in ((-9, kink), (kink, 9)))


def short_of(q: np.ndarray, k: int) -> float:
    """E (k - N)^+ for N arms above, which are above with chances q independently."""
    distribution = np.ones(1)
    for one in q:
        distribution = np.convolve(distribution, [1 - one, one])
    return float((distribution * np.maximum(k - np.arange(len(distribution)), 0)).sum())


def place_and_worth(task: Task, pulls: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, float]:
    """The place (D,) of the prior of Gaussian arms, and how many samples it is worth; total (K, D)."""
    made = pulls[pulls > 0].astype(float)
    x, m, potential = total[pulls > 0] / made[:, None], len(made), task.make_problem().potential()
    known = potential.kind == LOCAL and np.linalg.matrix_rank(potential.A) == task.D
    middle = np.zeros(task.D)
    if potential.kind == LOCAL:
        lengths = np.linalg.norm(potential.A, axis=1)
        middle = np.linalg.pinv(potential.A / lengths[:, None]) @ (potential.b / lengths)
    if known:
        place = middle
    else:
        place = np.average(x, axis=0, weights=made / (made + 1)) if m else middle
    free = m if known else max(m - 1, 0)
    Q = 1 + (((x - place) / task.sigma) ** 2).sum()
    N = task.D * free * (1 / made).mean() if m else 0.0
    return place, min((1 + task.D * free) / (Q - N), 1.0) if Q > N else 1.0


class Slow:
    """One state of a task: phi, and the gain of an arm. `exactly`: by adaptive integration."""

    nodes = 16  # of a Gaussian sample

    def __init__(self, task: Task, pulls: np.ndarray, total: np.ndarray, exactly: bool = False) -> None:
        self.task, self.exactly, self.potential = task, exactly, task.make_problem().potential()
        self.beta = task.support is not None
        self.low, self.scale = (task.support[0], task.support[1] - task.support[0]) if self.beta else (0.0, 1.0)
        x = total.reshape(task.K, task.D)
        if self.beta:
            place: Any = 0.5
            sums, worth = (x - self.low * pulls[:, None]) / self.scale, 2.0
            if self.potential.kind == CONTROL:
                place = float(((sums[:, 0] + 1) / (pulls + 2)).mean())
                worth = 1 / min(place, 1 - place)
            elif self.potential.kind == LOCAL and not self.potential.exact:
                place = (sums.sum(axis=0) + 1) / (pulls.sum() + 2)
            self.n = pulls + worth
            share = (sums + place * worth) / self.n[:, None]
            self.m, self.v = self.low + self.scale * share, self.scale**2 * share * (1 - share) / (self.n + 1)[:, None]
        else:
            place, worth = place_and_worth(task, pulls, x)
            self.n = pulls + worth
            self.m = (worth * place + x) / self.n[:, None]
            self.v = np.broadcast_to(task.sigma**2 / self.n[:, None], x.shape).copy()
        self.left = (task.budget - pulls.sum()) / task.K
        self.next = max(task.budget - pulls.sum() - 1, 0) / task.K

    def phi(self, R: float) -> float:
        return getattr(self, ["local", "top", "good", "beside"][self.potential.kind])(self.m, self.v, self.n, R)

    def outcomes(self, arm: int) -> Any:
        """(chance, m, v, n) after one more pull."""
        n = self.n.copy()
        n[arm] += 1
        if self.beta:
            share = (self.m[arm] - self.low) / self.scale
            for xs in itertools.product((0, 1), repeat=self.task.D):
                m, v, x = self.m.copy(), self.v.copy(), np.array(xs)
                now = (share * self.n[arm] + x) / n[arm]
                m[arm], v[arm] = self.low + self.scale * now, self.scale**2 * now * (1 - now) / (n[arm] + 1)
                yield np.where(x == 1, share, 1 - share).prod(), m, v, n
        else:
            nodes, weights = np.polynomial.hermite_e.hermegauss(30 if self.exactly else self.nodes)
            if self.exactly and self.next == 0 and self.potential.kind != 2:  # the answer now has kinks
                nodes = np.linspace(-8, 8, 4001)
                weights = np.exp(-(nodes**2) / 2)
            for node, weight in zip(nodes, weights / weights.sum(), strict=True):
                m, v = self.m.copy(), self.v.copy()
                m[arm] += node * np.sqrt(v[arm] / n[arm])
                v[arm] *= self.n[arm] / n[arm]
                yield weight, m, v, n

    def after(self, arm: int, R: float) -> float:
        kind = self.potential.kind
        if kind == 2 and R > 0:
            return self.phi(R) + self.slopes(R + 0.5)[arm]
        shares = not self.beta and not self.exactly or self.beta and (kind == 1 and R > 0)
        see = [self.local, self.top, self.good, self.beside][kind]
        if kind != 2 and shares or kind == 0 and not self.potential.exact or kind == 3 and self.beta:
            return see(self.m, self.v, self.n, R, arm)  # one more pull is a larger share
        return sum(chance * see(m, v, n, R) for chance, m, v, n in self.outcomes(arm))

    def gain(self, arm: int) -> float:
        return self.after(arm, self.next) - self.phi(self.left)

    def local(self, m: np.ndarray, v: np.ndarray, n: np.ndarray, R: float, arm: int = -1) -> float:
        p, found = self.potential, 0.0
        for i in range(len(n)):
            if R <= 0 and p.exact and self.beta:
                a = (m[i, 0] - self.low) / self.scale * n[i]
                low, high = ((-p.b[0] + x - self.low) / self.scale for x in (-p.tolerance, p.tolerance))
                found += max(1 - special.betainc(a, n[i] - a, low), special.betainc(a, n[i] - a, high))
                continue
            d, s = p.b - p.A @ m[i], np.sqrt(p.A**2 @ v[i])
            j, pulls = (d / s).argmin(), R + (i == arm)
            z = d[j] / s[j] if len(d) == 1 else special.ndtri(np.clip(ndtr(d / s).prod(), 1e-9, 1 - 1e-9))
            G = right_exactly if self.exactly else right
            found += G(z, pulls / (pulls + n[i]), p.tolerance / s[j])
        return found / len(n)

    def beside(self, m: np.ndarray, v: np.ndarray, n: np.ndarray, R: float, arm: int = -1) -> float:
        p, found, G = self.potential, 1.0, right_exactly if self.exactly else right
        (a,), c, r = p.A[0], p.control, (R + (np.arange(len(n)) == arm)) / (R + (np.arange(len(n)) == arm) + n)
        for i in set(range(len(n))) - {c}:
            variances = np.array([v[i, 0], a * a * v[c, 0]])
            s = np.sqrt(variances.sum())
            found += G((m[i, 0] - a * m[c, 0] - p.b[0]) / s, (variances * r[[i, c]]).sum() / s**2, p.tolerance / s)
        return found / len(n)

    def normaliser(self) -> float:
        K, k = self.task.K, self.potential.k
        if self.beta:
            return self.scale * (K - k) / (K + 1)

        def inside(x: float) -> float:  # an arm is among the k best if fewer than k others are above it
            return x * density(x) * stats.binom.cdf(k - 1, K - 1, ndtr(-x))

        if (K, k, self.task.sigma) not in NORMALISERS:
            whole = integrate.quad(inside, -9, 9, epsabs=1e-12, limit=200)[0]
            NORMALISERS[K, k, self.task.sigma] = 2 * self.task.sigma * K / k * whole
        return NORMALISERS[K, k, self.task.sigma]

    def window(self) -> tuple[float, float, float]:
        """c, and how far above and below it the points reach."""
        k, m, R = self.potential.k, self.m[:, 0], self.left
        reach = REACH * np.sqrt(self.v[:, 0] * (R + 1) / (R + 1 + self.n))
        low, high = m - reach, m + reach
        c = np.sort(m)[::-1][k - 1 : k + 1].mean()
        self.low_high = low, high
        return c, max(np.sort(high)[::-1][k] - c, 0.0), max(c - np.sort(low)[::-1][k - 1], 0.0)

    def top(self, m: np.ndarray, v: np.ndarray, n: np.ndarray, R: float, arm: int = -1) -> float:
        k, m = self.potential.k, m[:, 0]
        pulls = R + (np.arange(len(n)) == arm)
        s = np.sqrt(v[:, 0] * pulls / (pulls + n))
        if R <= 0 and arm < 0:
            return np.sort(m)[-k:].sum() / k / self.normaliser()
        if self.exactly:
            return self.top_exactly(m, s)
        if R <= 0:
            others = np.sort(np.delete(m, arm))[::-1]
            u = (m[arm] - others[k - 1]) / s[arm]
            return (others[:k].sum() + s[arm] * (u * ndtr(u) + density(u))) / k / self.normaliser()
        c, above, below = self.window()
        low, high = self.low_high
        sure, none = low >= c + above, high <= c - below
        u = (m - c) / s
        total = k * c + np.where(sure, m - c, np.where(none, 0, s * (u * ndtr(u) + density(u)))).sum()
        for u, w in zip(*unit_points(POINTS), strict=True):
            for side, at in ((above, c + above * u * u), (below, c - below * u * u)):
                q = np.where(sure, 1.0, np.where(none, 0.0, ndtr((m - at) / s)))
                short = short_of(q, k)
                total -= 2 * u * side * w * (q.sum() - k + short if at >= c else short)
        return total / k / self.normaliser()

    def top_exactly(self, m: np.ndarray, s: np.ndarray) -> float:
        k, s = self.potential.k, np.maximum(s, 1e-9)
        marks = np.unique(np.concatenate([m + z * s for z in (-8, -3, 0, 3, 8)]))

        def inside(x: float) -> float:
            return k - short_of(ndtr((m - x) / s), k)

        total = k * marks[0]
        for low, high in itertools.pairwise(marks):
            total += integrate.quad(inside, low, high, epsabs=1e-7)[0]
        return total / k / self.normaliser()

    def good_chances(self, m: np.ndarray, v: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The chances to be good, and to be the best."""
        p, K, m, s = self.potential, len(n), m[:, 0], np.sqrt(v[:, 0])

        def bound(x: Any) -> Any:
            return np.minimum((1 - p.epsilon) * x, x) if p.multiplicative else x - p.epsilon

        def h(x: Any) -> Any:
            return np.maximum(x / (1 - p.epsilon), x) if p.multiplicative else x + p.epsilon

        a = (m - self.low) / self.scale * n
        counts = (self.m[:, 0] - self.low) / self.scale * self.n
        known = self.beta and np.allclose(counts, np.rint(counts), atol=1e-6)
        known = known and max(counts.max(), (self.n - counts).max()) < LIMIT - 0.5
        top = bound(self.low + self.scale if self.beta else m.max() + 9)

        def pdf(x: Any) -> Any:  # a row for each point, a column for each arm
            if self.beta:
                return stats.beta.pdf(x[:, None], a, n - a, self.low, self.scale)
            return density((x[:, None] - m) / s) / s

        def cdf(x: Any) -> Any:
            if self.beta:
                return special.betainc(a, n - a, np.clip((x[:, None] - self.low) / self.scale, 0, 1))
            return ndtr((x[:, None] - m) / s)

        if known or self.exactly:
            start, (x, w) = self.low if self.beta else m.min() - 9, unit_points(400 if self.exactly else CELLS)
            x, w = start + (top - start) * x, (top - start) * w
            weights, below, tail = w * pdf(x).T, cdf(h(x)).T, 1 - cdf(np.array([top]))[0]
        else:
            start, end = (self.m[:, 0], np.sqrt(self.v[:, 0]))  # of the state before the sample
            low, high = bound((start - REACH * end).max()), bound((start + REACH * end).max())
            edges = low + (high - low) / CELLS * np.arange(CELLS + 1)
            chances = ndtr((edges - m[:, None]) / s[:, None])
            weights, tail = np.diff(chances, axis=1), 1 - chances[:, -1]
            below = ndtr((h((edges[1:] + edges[:-1]) / 2) - m[:, None]) / s[:, None])
        others = np.array([np.delete(below, i, 0).prod(0) for i in range(K)])
        ends, middles = (
            np.pad(below, ((0, 0), (0, 1)), constant_values=1),
            np.pad(others, ((0, 0), (0, 1)), mode="edge"),
        )
        middles[:, -1] = 1
        best = np.diff(ends) * (middles[:, 1:] + middles[:, :-1]) / 2
        return np.minimum((weights * others).sum(1) + tail, 1), best.sum(1)

    def good(self, m: np.ndarray, v: np.ndarray, n: np.ndarray, R: float) -> float:
        p, w = self.good_chances(m, v, n)
        if R <= 0:
            best = np.sort(p)[::-1]
            return float((2 * best.cumsum() / (np.arange(1, len(p) + 1) + p.sum())).max())
        z, G = special.ndtri(np.clip(p, 1e-8, 1 - 1e-8)), right_exactly if self.exactly else right
        parts = self.parts(v, w)
        share = parts @ (R / (R + n)) / parts.sum(1)
        return 1 - sum(1 - G(z[i], share[i]) for i in range(len(p))) / (2 * p.sum())

    def parts(self, v: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The variance, of each arm's distance from its boundary, that is each arm's."""
        keep = 1 - self.potential.epsilon if self.potential.multiplicative else 1.0
        return np.diag(v[:, 0]) + keep**2 * w * v[:, 0]

    def slopes(self, R: float) -> np.ndarray:
        """Of phi in the pulls of each arm."""
        p, w = self.good_chances(self.m, self.v, self.n)
        z, parts = special.ndtri(np.clip(p, 1e-8, 1 - 1e-8)), self.parts(self.v, w)
        share = parts @ (R / (R + self.n)) / parts.sum(1)
        in_share = np.exp(-(z**2) / share / 2) / (2 * np.pi * np.sqrt(share * (1 - share)))
        return (in_share / parts.sum(1)) @ parts * self.n / (R + self.n) ** 2 / (2 * p.sum())


assert (LOCAL, TOP_K, ALL_GOOD, CONTROL) == (0, 1, 2, 3)  # as `Slow.phi` has them
