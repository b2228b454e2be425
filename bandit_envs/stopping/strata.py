"""Evidence against a control within strata, as days, countries or plates, whose effects drop out.

Of S strata and K arms; n, x, mean: results, successes and means (S, K); c the control. A stratum in which an arm, or
the control, has no result says nothing of the arm. Each statistic is an e-process where its null holds, 1 at most on
average whenever one stops; docs/certificates-theory.md has them, and the proofs. A stratum must be closed, or end,
without a look at its outcomes; what is left of it counts 1, as a table that grows is no martingale.

odds        of results 0 or 1, conditional on the successes of a stratum (Cochran 1954; Mantel & Haenszel 1959, as an
            e-process). Null: in no stratum p_i > p_c.
means       of Gaussian results of a known sigma. Null: in no stratum mean_i > mean_c + margin.
common      the same of an unknown sigma of all arms and strata (universal inference: Wasserman, Ramdas & Balakrishnan
            2020). The first stratum's squares are its prior. Arms may be chosen by all earlier strata.
averages    bets on p_i > a p_c + b in the mean over visitors, by the known shares with which they are assigned. Null:
            it is not so, whatever rates do. Valid at any time, in a stratum too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.checks import Bools, Floats, Ints, require
from ..kernels.compiled import jit, part
from .lifts import HOPED, NEAR_HOPED, TILTS, WEIGHTS

EACH, LAST = slice(None), slice(-1, None)  # of the strata
LOST = 1e-18  # a term of a sum that is left out, as a part of the largest
FARTHEST, HALVINGS = 12.0, 46  # log odds ratio; of a search for the likeliest
FAR, FIRST, SEARCH = 1e3, 2.0**-12, 48  # of ends: sigmas; the first step, as a part of these; steps
TAU, SHARES = np.array([0.5, 1.0, 2.0, 4.0, 32.0]), np.array([0.15, 0.3, 0.3, 0.23, 0.02])  # of an effect / sigma
BETS = 0.9 * 0.5 ** np.arange(16.0)  # of the largest bet
CONCENTRATIONS = (30.0, 1000.0, 30000.0)  # of shares about those that were planned
RARE = 1e-6  # the probability below which an arm without visitors was not there, in place of having none by chance
LEAST = 2.0  # variance of the successes of an arm in a stratum that counts in the test of one effect
UNLIKE, SMALLEST = 1e-2, 1e-2  # p by which spreads differ; the least variance that counts, as a part of the common one


@part
def tilted(n, other, total, theta):
    """ln E exp(theta X), and mean and variance of X under that tilt, X hypergeometric: `total` of n + other drawn."""
    low, high = max(0.0, total - other), min(n, total)
    if low >= high:
        return theta * low, low, 0.0
    w = math.exp(theta)
    A, B, C = w - 1.0, total - other - (total + n + 2.0) * w, (n + 1.0) * (total + 1.0) * w
    k = math.floor(-2.0 * C / (B - math.sqrt(max(B * B - 4.0 * A * C, 0.0))))  # the mode, Liao & Rosen 2001
    k = min(max(k, low), high)
    at = math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)
    at += math.lgamma(other + 1.0) - math.lgamma(total - k + 1.0) - math.lgamma(other - total + k + 1.0)
    at -= math.lgamma(n + other + 1.0) - math.lgamma(total + 1.0) - math.lgamma(n + other - total + 1.0)
    sums, first, second, up, down = 1.0, 0.0, 0.0, (n - k, total - k), (k, other - total + k)
    for side in (1.0, -1.0):
        x, term, by, (a, b, c, d) = 0.0, 1.0, math.exp(side * theta), up + down if side > 0.0 else down + up
        while term > LOST and a > 0.0 and b > 0.0:
            term *= a * b / ((c + 1.0) * (d + 1.0)) * by
            x, a, b, c, d = x + side, a - 1.0, b - 1.0, c + 1.0, d + 1.0
            sums, first, second = sums + term, first + term * x, second + term * x * x
    mean = first / sums
    return at + theta * k + math.log(sums), k + mean, second / sums - mean * mean


@jit
def odds_terms(n, x, control, thetas):
    """The log likelihood ratios of tilts `thetas` (K, T), and mean and variance of x there, (S, K, T, 3)."""
    out = np.zeros((*n.shape, thetas.shape[1], 3))
    for s in range(len(n)):
        for i in range(n.shape[1]):
            if i != control and n[s, i] > 0.0 and n[s, control] > 0.0:
                for t in range(thetas.shape[1]):
                    log, mean, variance = tilted(n[s, i], n[s, control], x[s, i] + x[s, control], thetas[i, t])
                    out[s, i, t, 0], out[s, i, t, 1], out[s, i, t, 2] = thetas[i, t] * x[s, i] - log, mean, variance
    return out


def tilts_about(hoped: float, unit: float = 1.0) -> tuple[Floats, Floats]:
    """Tilts, as effects, and the logarithms of their weights, as those of `lifts`, which says what `hoped` is."""
    tilts, weights = unit * np.array(TILTS), np.array(WEIGHTS)
    if not hoped > 0.0:
        return tilts, weights
    near = np.full(len(NEAR_HOPED), math.log(HOPED / len(NEAR_HOPED)))
    return np.append(tilts, hoped * np.array(NEAR_HOPED)), np.append(weights + math.log1p(-HOPED), near)


def both_sides(nats: Callable[[Any, float], Any], edges: Any, control: int) -> Floats:
    """Evidence (S, K, 2), of which the control has none."""
    found: Floats = np.stack([nats(edge, sign) for edge, sign in zip(edges, (1.0, -1.0), strict=True)], axis=-1)
    found[:, control] = -math.inf
    return found


def one_effect(off: Floats, counts: Any, free: Any = math.inf) -> Floats:
    """p of one effect in `counts` strata, by squares of differences over a variance of `free` degrees of freedom."""
    special, less = require("scipy.special", "a test of one effect"), np.maximum(counts - 1, 1)
    p = special.chdtrc(less, off) if np.isinf(free) else special.fdtrc(less, np.maximum(free, 1), off / less)
    return np.where(counts > 1, np.minimum(p * counts * (counts - 1), 1.0), 1.0)


def unlike_spreads(squares: Floats, free: Floats) -> bool:
    """Whether groups with these sums of squares, (G,), and degrees of freedom vary unlike each other (Bartlett)."""
    squares, free = squares[free > 0], free[free > 0]
    if len(free) < 2 or not squares.sum() > 0:
        return False
    every = free.sum()
    log = np.log(np.maximum(squares / free / (squares.sum() / every), SMALLEST))  # rounded results may be equal
    off = -float(free @ log) / (1.0 + (float((1.0 / free).sum()) - 1.0 / every) / (3.0 * (len(free) - 1)))
    return bool(require("scipy.special", "a test of spreads").chdtrc(len(free) - 1, off) <= UNLIKE)


def tables(control: int, n: Any, other: Any, is_binary: bool = False) -> tuple[Floats, Floats, Bools]:
    """n, the other table, and where a stratum says something of an arm, (S, K); a ValueError for what is no such."""
    n, other = np.array(n, np.float64), np.array(other, np.float64)
    if n.ndim != 2 or not n.size or n.shape != other.shape or not 0 <= control < n.shape[1]:
        raise ValueError(f"tables must be (S, K), control one of K, got {n.shape}, {other.shape} and {control!r}")
    if not (n >= 0).all() or is_binary and not ((other >= 0) & (other <= n)).all():
        raise ValueError("n must be at least 0, and x, of results that are 1, from 0 to n")
    return n, other, (n > 0) & (n[:, [control]] > 0) & (np.arange(n.shape[1]) != control)


def differences(n: Any, mean: Any, control: int) -> tuple[Bools, Floats, Floats]:
    """Where a stratum says something of an arm, (S, K); its mean less the control's; 1 / n_i + 1 / n_c, else 1."""
    n, mean, there = tables(control, n, mean)
    d, v = mean - mean[:, [control]], 1.0 / np.maximum(n, 1.0) + 1.0 / np.maximum(n[:, [control]], 1.0)
    return there, np.where(there, d, 0.0), np.where(there, v, 1.0)


@dataclass
class Stratified:
    """Arms against a control by closed strata; make it by `odds`, `means` or `common`.

    Attributes:
        evidence: (S, K, 2), after each stratum: nats against "in no stratum better", and "in no stratum worse"; the
            control has -inf. Let the largest so far count: Ville's inequality covers it.
        effect: (K,) the likeliest effect common to all strata: the log odds ratio, which may be infinite, or the
            difference of means; NaN where there is none.
        same: (K,) p of "the effect is the same in all strata", by chi-squared or F tests after each stratum, the n-th
            with the share 1 / (n (n - 1)) of the error probability; 1 where fewer than two say something.
        counts: (K,) strata that say something of an arm.
        spread: the standard deviation of a result; NaN where it is unknown, or results are 0 or 1.
        unlike: whether spreads of arms, or of strata, differ, each by a test at the level `UNLIKE` (`common`).
    """

    evidence: Floats
    effect: Floats
    same: Floats
    counts: Ints
    spread: float
    unlike: bool
    _nats: Any  # of edges (K,), 1 or -1, and which strata: nats against "in no stratum beyond", (S, K)
    _reach: float  # how far ends are looked for

    def __post_init__(self) -> None:
        self.effect = np.where(self.counts > 0, self.effect, math.nan)

    def interval(self, level: float) -> Floats:
        """Ends of the common effect, (K, 2), of all arms together right with probability 1 - level at all times.

        Without a common effect: some stratum's is above the low end, and some stratum's below the high one.
        """
        K, need = len(self.effect), math.log(2.0 * max(len(self.effect) - 1, 1) / level)
        begin, found = np.nan_to_num(self.effect, posinf=FARTHEST, neginf=-FARTHEST), np.zeros((K, 2))
        for side, sign in enumerate((-1.0, 1.0)):
            near, step, out = np.zeros(K), np.full(K, self._reach * FIRST), np.zeros(K, np.bool_)
            for _ in range(SEARCH):
                at = begin + sign * np.minimum(near + step, self._reach)
                beyond = self._nats(at, -sign, LAST)[-1] >= need
                out |= beyond
                near, step = np.where(beyond, near, near + step), np.where(out, 0.5, 2.0) * step
            found[:, side] = np.where(out, begin + sign * near, sign * math.inf)
        return np.where(self.counts[:, None] > 0, found, math.nan)

    @classmethod
    def odds(cls, n: ArrayLike, x: ArrayLike, control: int, hoped: float = 0.0) -> Stratified:
        """Of results that are 0 or 1: n results, x of them 1, (S, K); `hoped`: a log odds ratio that one hopes for."""
        (n, x, there), (tilts, weights) = tables(control, n, x, True), tilts_about(hoped)
        there, K = there & (x + x[:, [control]] > 0) & (x + x[:, [control]] < n + n[:, [control]]), n.shape[1]

        def nats(theta: Any, sign: float, _: slice = EACH) -> Any:
            at = np.broadcast_to(theta, K)[:, None] + sign * np.append(0.0, tilts)
            found = np.cumsum(odds_terms(n, x, control, at)[..., 0], axis=0)
            return np.logaddexp.reduce(weights + found[..., 1:] - found[..., :1], axis=-1)

        ends = np.array([[-FARTHEST], [FARTHEST]]).repeat(K, axis=1)
        for _ in range(HALVINGS):
            effect = ends.mean(axis=0)
            is_low = (x - odds_terms(n, x, control, effect[:, None])[:, :, 0, 1]).sum(axis=0, where=there) > 0
            ends = np.where([is_low, ~is_low], effect, ends)
        _, mean, variance = np.moveaxis(odds_terms(n, x, control, effect[:, None])[:, :, 0], -1, 0)
        shown = there & (variance >= LEAST)
        off = ((x - mean) ** 2 / np.where(shown, variance, 1.0)).sum(axis=0, where=shown)
        effect = np.where(np.abs(effect) > FARTHEST - 1e-6, np.copysign(math.inf, effect), effect)
        evidence, same = both_sides(nats, (0.0, 0.0), control), one_effect(off, shown.sum(axis=0))
        return cls(evidence, effect, same, there.sum(axis=0), math.nan, False, nats, 2.0 * FARTHEST)

    @classmethod
    def means(
        cls, n: ArrayLike, mean: ArrayLike, control: int, sigma: float, edges: Any = (0.0, 0.0), hoped: float = 0.0
    ) -> Stratified:
        """Of Gaussian results of the standard deviation `sigma`: n results and their mean, (S, K).

        Better is "by more than the first of `edges`", worse "not by as much as the second"; `hoped`: by how much more.
        """
        (there, d, v), (tilts, weights) = differences(n, mean, control), tilts_about(hoped, sigma)
        w = np.where(there, 1.0 / (v * sigma**2), 0.0)
        V, S = np.cumsum(w, axis=0), np.cumsum(w * d, axis=0)

        def nats(edge: Any, sign: float, rows: slice = EACH) -> Any:
            one = (sign * (S - edge * V))[rows, :, None]
            return np.logaddexp.reduce(weights + tilts * one - 0.5 * tilts**2 * V[rows, :, None], axis=-1)

        counts, effect = there.sum(axis=0), S[-1] / np.maximum(V[-1], 1e-300)
        same = one_effect((w * (d - effect) ** 2).sum(axis=0), counts)
        return cls(both_sides(nats, edges, control), effect, same, counts, sigma, False, nats, FAR * sigma)

    @classmethod
    def common(cls, n: Any, mean: Any, squares: Any, control: int, edges: Any = (0.0, 0.0)) -> Stratified:
        """Of Gaussian results of one standard deviation that nobody knows; `squares`: about each mean, (S, K).

        Strata before the first in which results are repeated say nothing.
        """
        n, squares, special = np.array(n, np.float64), np.array(squares, np.float64), require("scipy.special", "sigma")
        there, d, v = differences(n, mean, control)
        free, own = np.maximum(n - 1.0, 0.0), squares.sum(axis=1)
        first = int(np.argmax(np.append((free.sum(axis=1) > 0.0) & (own > 0), True)))
        there[:first] = False
        w, begin = np.where(there, 1.0 / v, 0.0), np.take_along_axis(d, np.argmax(there, axis=0)[None], axis=0)
        W, Z, N = (np.cumsum(one, axis=0) for one in (w, w * (d - begin), there))
        place = begin + Z / np.maximum(W, 1e-300)
        R = np.maximum(np.cumsum(w * (d - begin) ** 2, axis=0) - Z**2 / np.maximum(W, 1e-300), 0.0)
        after = np.arange(len(n)) > first
        total, m = np.cumsum(own * after)[:, None] + R, np.cumsum(free.sum(axis=1) * after)[:, None] + N
        a, b = (0.5 * free[first].sum(), 0.5 * own[first]) if first < len(n) else (1.0, 1.0)

        def nats(edge: Any, sign: float, rows: slice = EACH) -> Any:
            w, all_of, free = W[rows], total[rows], m[rows]
            off, p = sign * (place[rows] - edge)[..., None], w[..., None] * TAU**2
            more, half = (a + 0.5 * free)[..., None], b + 0.5 * (all_of[..., None] + w[..., None] * off**2 / (1.0 + p))
            at = off * p / (1.0 + p) / np.sqrt(half / more * TAU**2 / (1.0 + p))
            found = np.log(2.0 * SHARES * np.maximum(special.stdtr(2.0 * more, at), 1e-300)) - 0.5 * np.log1p(p)
            found += special.gammaln(more) - special.gammaln(a) + a * math.log(b) - more * np.log(half)
            least = (all_of + w * np.maximum(off[..., 0], 0.0) ** 2) / np.maximum(free, 1.0)
            return np.logaddexp.reduce(found, axis=-1) + special.xlogy(0.5 * free, least) + 0.5 * free

        counts, R, every = N[-1], R[-1], free.sum() + np.maximum(N[-1] - 1, 0).sum()
        spread = math.sqrt((squares.sum() + R.sum()) / every) if first < len(n) else math.nan
        same = one_effect(R / spread**2, counts, every)
        single = np.where(counts - 1 > free.sum(axis=0), counts - 1.0, 0.0)  # else these tell of effects that change
        unlike = unlike_spreads(np.append(squares.sum(axis=0), R), np.append(free.sum(axis=0), single))
        unlike |= unlike_spreads(own, free.sum(axis=1))
        reach = FAR * spread if first < len(n) else 0.0
        return cls(both_sides(nats, edges, control), place[-1], same, counts, spread, unlike, nats, reach)


def averages(n: ArrayLike, x: ArrayLike, control: int, shares: ArrayLike, a: float = 1.0, b: float = 0.0) -> Floats:
    """Nats (S, K, 2) that p_i > a p_c + b in the mean over the visitors so far, and that p_i < a p_c + b.

    Args:
        n, x: results that are 0 or 1, and how many were 1, (S, K), by strata in the order of time.
        shares: (K,) or (S, K), the probabilities with which a visitor is assigned to an arm, 0 where it is not there;
            only their ratios to the control's count, and are fixed before a stratum. An arm without visitors was not
            there, unless that has a probability above `RARE` by chance: then the stratum counts against a claim alone.
    """
    n, x, there = tables(control, n, x, True)
    planned, n_c, x_c = np.broadcast_to(np.array(shares, np.float64), n.shape), n[:, [control]], x[:, [control]]
    known = (planned > 0) & (planned[:, [control]] > 0)
    q = np.where(known, planned / np.where(known, planned + planned[:, [control]], 1.0), 0.5)
    before, ones = (np.cumsum(one, axis=0) - one for one in (n + n_c, x + x_c))
    g = ones / np.maximum(before, 1.0)
    parts = (x, 1.0 - g, 1.0 / q), (n - x, -g, 1.0 / q), (x_c, 1.0 - g, a / (q - 1.0)), (n_c - x_c, -g, a / (q - 1.0))
    there, by_chance = there & known, known & ~there & (np.where(n > 0, q, 1.0 - q) ** (n + n_c) > RARE)
    farthest = np.maximum(1.0 / q, a / (1.0 - q)) + abs(b) + abs(a - 1.0)
    farthest = np.take_along_axis(farthest, known.argmax(axis=0)[None], axis=0)[0]  # bets are the same in all strata

    def nats(_: float, sign: float) -> Any:
        bets = sign * BETS / farthest[:, None]
        gains = [bets * (by * y - b - g * (a - 1.0))[..., None] for _, y, by in parts]
        logs = [
            many[..., None] * np.log1p(np.maximum(one, BETS[-1] - 1.0))
            for one, (many, *_) in zip(gains, parts, strict=True)
        ]
        capital = np.where((np.stack(gains) < BETS[-1] - 1.0).any(axis=0), -math.inf, sum(logs, np.zeros(1)))
        capital = np.where(there[..., None], capital, np.where(by_chance[..., None], np.minimum(capital, 0.0), 0.0))
        return np.logaddexp.reduce(np.cumsum(capital, axis=0) - math.log(len(BETS)), axis=-1)

    return both_sides(nats, (0.0, 0.0), control)


def mismatch(counts: ArrayLike, shares: ArrayLike) -> float:
    """p of "visitors are assigned with the planned shares", at any time (Lindon & Malek, NeurIPS 2022).

    Args:
        counts: visitors (S, K). Strata with the same arms, those with visitors, and shares are one; shares are those of
            these. A stratum so small that an arm may have no visitor by chance, with a probability above `RARE`, is
            left out.
        shares: (K,) or (S, K), planned; 0 of an arm that is not there.
    """
    n, special = np.array(counts, np.float64), require("scipy.special", "shares")
    q = np.broadcast_to(np.array(shares, np.float64), n.shape)
    q = q / q.sum(axis=1, keepdims=True)
    rows = np.hstack([n > 0, q])[(1.0 - np.where(q > 0, q, 1.0).min(axis=1)) ** n.sum(axis=1) <= RARE]
    size, found = np.array(CONCENTRATIONS), np.full(len(CONCENTRATIONS), -math.log(len(CONCENTRATIONS)))
    for key in np.unique(rows, axis=0):
        there, planned = key[: n.shape[1]] > 0, key[n.shape[1] :]
        row = n[(np.hstack([n > 0, q]) == key).all(axis=1)].sum(axis=0)[there]
        if not (planned[there] > 0).all():
            return 0.0
        planned = planned[there] / planned[there].sum()
        alpha = size[:, None] * planned
        found += (special.gammaln(alpha + row) - special.gammaln(alpha)).sum(axis=1) - row @ np.log(planned)
        found += special.gammaln(size) - special.gammaln(size + row.sum())
    return float(min(np.exp(-np.logaddexp.reduce(found)), 1.0))
