"""Evidence against a control within strata, as days, countries or plates, whose effects drop out.

Of S strata and K arms; n, x, mean: results, successes and means (S, K); c the control. A stratum in which an arm, or
the control, has no result says nothing of the arm. Each statistic is a nonnegative supermartingale over closed strata,
begun at 1, where its null holds; docs/certificates-theory.md has the proofs. A stratum must be closed, or end, without
a look at its outcomes, and what is left of it counts 1: the statistic of a table that grows is no martingale.

odds        the likelihood ratio of the tilt t, conditional on the successes m = x_i + x_c of the stratum,
            exp(t x_i) / E exp(t X), X hypergeometric (n_i of n_i + n_c, m); multiplied over strata, then mixed over
            tilts (Cochran 1954; Mantel & Haenszel 1959, as an e-process). Null: in no stratum p_i > p_c.
means       exp(t S - t^2 V / 2), S = sum of d / v, V of 1 / v, d = mean_i - mean_c - margin,
            v = sigma^2 (1 / n_i + 1 / n_c); Gaussian results. Null: in no stratum mean_i > mean_c + margin.
common      the same of an unknown sigma of all arms and strata. Numerator: the marginal likelihood of d and of all sums
            of squares about an arm's mean in a stratum, sigma^2 inverse gamma as the first stratum's squares say, the
            effect `TAU` sigma |N(0, 1)|; denominator: their largest likelihood over sigma and the null (universal
            inference: Wasserman, Ramdas & Balakrishnan 2020). Any choice of arms that looks at all earlier strata.
averages    prod of 1 + l z, z = (y - g) (1{i} / q - a 1{c} / (1 - q)) - b - g (a - 1), q the known probability of arm i
            among visitors of i or c, y an outcome, g any number fixed before the stratum; mixed over l. Its mean is
            p_i - a p_c - b, and prod of 1 + l E z <= exp(l sum of E z). Null: p_i <= a p_c + b in the mean over
            visitors so far, whatever rates do; valid at any time, in a stratum too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.checks import require
from ..kernels.compiled import jit, part
from .lifts import HOPED, NEAR_HOPED, TILTS, WEIGHTS

Floats = NDArray[np.float64]

LOST = 1e-18  # a term of a sum that is left out, as a part of the largest
FARTHEST, HALVINGS = 12.0, 50  # log odds ratio, or differences in their widest standard errors; of a search for an end
TAU, SHARES = np.array([0.5, 1.0, 2.0, 4.0]), np.array([0.15, 0.3, 0.3, 0.25])  # of an effect in units of sigma
BETS = 0.9 * 0.5 ** np.arange(16.0)  # of the largest bet
CONCENTRATIONS = (30.0, 1000.0, 30000.0)  # of shares about those that were planned
LEAST = 1.0  # variance of the successes of an arm in a stratum that counts in the test of one effect
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
    every = n + other
    at -= math.lgamma(every + 1.0) - math.lgamma(total + 1.0) - math.lgamma(every - total + 1.0)
    sums, first, second = 1.0, 0.0, 0.0
    for side in range(2):
        x, term = k, 1.0
        while term > LOST and (x < high if side == 0 else x > low):
            if side == 0:
                term *= (n - x) * (total - x) / ((x + 1.0) * (other - total + x + 1.0)) * w
                x += 1.0
            else:
                term *= x * (other - total + x) / ((n - x + 1.0) * (total - x + 1.0) * w)
                x -= 1.0
            sums, first, second = sums + term, first + term * (x - k), second + term * (x - k) * (x - k)
    mean = first / sums
    return at + theta * k + math.log(sums), k + mean, second / sums - mean * mean


@jit
def odds_terms(n, x, control, thetas, out):
    """The log likelihood ratios of tilts `thetas` (K, T), and mean and variance of x there, in `out` (S, K, T, 3)."""
    for s in range(len(n)):
        for i in range(n.shape[1]):
            if i == control or n[s, i] == 0.0 or n[s, control] == 0.0:
                continue
            total = x[s, i] + x[s, control]
            for t in range(thetas.shape[1]):
                log, mean, variance = tilted(n[s, i], n[s, control], total, thetas[i, t])
                out[s, i, t, 0], out[s, i, t, 1], out[s, i, t, 2] = thetas[i, t] * x[s, i] - log, mean, variance


def logs(x: Any) -> Any:
    """The logarithm of the sum of exponentials along the last axis."""
    top = np.maximum(x.max(axis=-1, keepdims=True), -1e300)
    return (top + np.log(np.exp(x - top).sum(axis=-1, keepdims=True)))[..., 0]


def tilts_about(hoped: float, unit: float = 1.0) -> tuple[Floats, Floats]:
    """Tilts, as effects, and the logarithms of their weights, as those of `lifts`, which says what `hoped` is."""
    tilts, weights = unit * np.array(TILTS), np.array(WEIGHTS)
    if hoped > 0.0:
        near = np.full(len(NEAR_HOPED), math.log(HOPED / len(NEAR_HOPED)))
        tilts = np.append(tilts, hoped * np.array(NEAR_HOPED))
        weights = np.append(weights + math.log1p(-HOPED), near)
    return tilts, weights


def both_sides(up: Any, down: Any, control: int) -> Floats:
    """Evidence (.., K, 2), of which the control has none."""
    found: Floats = np.stack([up, down], axis=-1)
    found[..., control, :] = -math.inf
    return found


def one_effect(off: Floats, counts: Any, free: Any = math.inf) -> Floats:
    """p of one effect in `counts` strata, by the sum `off` of squares of standardised differences; see `Stratified`.

    free: degrees of freedom of the variance that these are divided by.
    """
    special, less = require("scipy.special", "a test of one effect", "evaluation"), np.maximum(counts - 1, 1)
    p = special.chdtrc(less, off) if np.isinf(free).all() else special.fdtrc(less, np.maximum(free, 1), off / less)
    found: Floats = np.where(counts > 1, np.minimum(p * counts * (counts - 1), 1.0), 1.0)
    return found


def unlike_spreads(squares: Floats, free: Floats) -> bool:
    """Whether groups with these sums of squares, (G,), and degrees of freedom vary unlike each other (Bartlett)."""
    there = free > 0
    squares, free = squares[there], free[there]
    if len(free) < 2 or not squares.sum() > 0:
        return False
    every = free.sum()
    common = squares.sum() / every
    log = np.log(np.maximum(squares / free / common, SMALLEST))  # rounded results may be equal
    off = -float(free @ log) / (1.0 + (float((1.0 / free).sum()) - 1.0 / every) / (3.0 * (len(free) - 1)))
    return bool(require("scipy.special", "a test of spreads", "evaluation").chdtrc(len(free) - 1, off) <= UNLIKE)


def differences(n: Any, mean: Any, control: int) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Where a stratum says something of an arm, (S, K); its mean less the control's; 1 / n_i + 1 / n_c, else 1."""
    n, mean = np.array(n, np.float64), np.array(mean, np.float64)
    there = (n > 0) & (n[:, [control]] > 0) & (np.arange(n.shape[1]) != control)
    d = np.where(there, mean - mean[:, [control]], 0.0)
    return there, d, np.where(there, 1.0 / np.maximum(n, 1.0) + 1.0 / np.maximum(n[:, [control]], 1.0), 1.0)


@dataclass
class Stratified:
    """Arms against a control by closed strata; make it by `odds`, `means` or `common`.

    Attributes:
        evidence: (S, K, 2), after each stratum: nats against "in no stratum better", and "in no stratum worse"; the
            control has -inf. Let the largest so far count: Ville's inequality covers it.
        effect: (K,) the likeliest effect common to all strata: the log odds ratio, or the difference of means; NaN
            where there is none.
        same: (K,) p of "the effect is the same in all strata", by chi-squared or F tests after each stratum, the n-th
            with the share 1 / (n (n - 1)) of the error probability; 1 where fewer than two say something.
        counts: (K,) strata that say something of an arm.
        spread: the standard deviation of a result; of odds NaN. unlike: whether spreads differ (`common`).
    """

    evidence: Floats
    effect: Floats
    same: Floats
    counts: NDArray[np.int64]
    spread: float
    unlike: bool
    _beyond: Any  # of effects (K,): nats against "in no stratum above", and below, (K, 2)
    _reach: Any  # how far ends are looked for

    def __post_init__(self) -> None:
        self.effect = np.where(self.counts > 0, self.effect, math.nan)

    def interval(self, level: float) -> Floats:
        """Ends of the common effect, (K, 2), of all arms together right with probability 1 - level at all times.

        Without a common effect: some stratum's is above the low end, and some stratum's below the high one.
        """
        K, need = len(self.effect), math.log(2.0 * max(len(self.effect) - 1, 1) / level)
        found = np.full((K, 2), math.nan)
        there = self.counts > 0
        for side, sign in enumerate((-1.0, 1.0)):
            near = np.where(there, np.nan_to_num(self.effect), 0.0)
            far = near + sign * self._reach
            beyond = self._beyond(far)[:, side] < need
            for _ in range(HALVINGS):
                middle = 0.5 * (near + far)
                out = self._beyond(middle)[:, side] >= need
                near, far = np.where(out, near, middle), np.where(out, middle, far)
            found[:, side] = np.where(beyond, sign * math.inf, far)
        found[~there] = math.nan
        return found

    @classmethod
    def odds(cls, n: ArrayLike, x: ArrayLike, control: int, hoped: float = 0.0) -> Stratified:
        """Of results that are 0 or 1: n results, x of them 1, (S, K); `hoped`: a log odds ratio that one hopes for."""
        n, x = np.array(n, np.float64), np.array(x, np.float64)
        (there, *_), (tilts, weights), K = differences(n, x, control), tilts_about(hoped), n.shape[1]

        def terms(thetas: Floats) -> Floats:
            out = np.zeros((*n.shape, thetas.shape[1], 3))
            odds_terms(n, x, control, thetas, out)
            return out

        def sides(ratios: Floats) -> Floats:
            up, down = (logs(weights + one) for one in np.split(ratios, 2, axis=-1))
            return both_sides(up, down, control)

        def beyond(theta: Floats) -> Floats:
            at = theta[:, None] + np.concatenate([np.zeros(1), tilts, -tilts])
            found = terms(at)[..., 0].sum(axis=0)
            return sides(found[:, 1:] - found[:, :1])

        at = np.concatenate([tilts, -tilts])[None].repeat(K, axis=0)
        evidence, ends = sides(np.cumsum(terms(at)[..., 0], axis=0)), np.array([[-FARTHEST], [FARTHEST]]).repeat(K, 1)
        for _ in range(HALVINGS):
            effect = ends.mean(axis=0)
            is_low = (x - terms(effect[:, None])[:, :, 0, 1]).sum(axis=0, where=there) > 0
            ends = np.where([is_low, ~is_low], effect, ends)
        _, mean, variance = np.moveaxis(terms(effect[:, None])[:, :, 0], -1, 0)
        shown = there & (variance >= LEAST)
        off = ((x - mean) ** 2 / np.where(shown, variance, 1.0)).sum(axis=0, where=shown)
        same = one_effect(off, shown.sum(axis=0))
        return cls(evidence, effect, same, there.sum(axis=0), math.nan, False, beyond, 2.0 * FARTHEST)

    @classmethod
    def means(
        cls, n: ArrayLike, mean: ArrayLike, control: int, sigma: float, edges: Any = (0.0, 0.0), hoped: float = 0.0
    ) -> Stratified:
        """Of Gaussian results of the standard deviation `sigma`: n results and their mean, (S, K).

        Args:
            edges: better is "by more than the first", worse is "not by as much as the second".
            hoped: an effect beyond the first that one hopes for, in the unit of a result.
        """
        (there, d, v), (tilts, weights) = differences(n, mean, control), tilts_about(hoped, sigma)
        w = np.where(there, 1.0 / (v * sigma**2), 0.0)
        V, S = np.cumsum(w, axis=0), np.cumsum(w * d, axis=0)

        def sides(S: Floats, V: Floats, edges: Any) -> Floats:
            up, down = ((sign * (S - edge * V))[..., None] for sign, edge in zip((1.0, -1.0), edges, strict=True))
            up, down = (logs(weights + tilts * one - 0.5 * tilts**2 * V[..., None]) for one in (up, down))
            return both_sides(up, down, control)

        counts, (S_all, V_all) = there.sum(axis=0), (S[-1], np.maximum(V[-1], 1e-300))
        effect, reach = S_all / V_all, 1e3 * (sigma + 1.0 / (sigma * V_all))
        same = one_effect((w * (d - effect) ** 2).sum(axis=0), counts)
        beyond = lambda edge: sides(S_all, V_all, (edge, edge))
        return cls(sides(S, V, edges), effect, same, counts, sigma, False, beyond, reach)

    @classmethod
    def common(
        cls, n: ArrayLike, mean: ArrayLike, squares: ArrayLike, control: int, edges: Any = (0.0, 0.0)
    ) -> Stratified:
        """Of Gaussian results of one standard deviation that nobody knows; `squares`: about each mean, (S, K).

        Strata before the first in which results are repeated twice say nothing.
        """
        n, squares, special = np.array(n, np.float64), np.array(squares, np.float64), require("scipy.special", "sigma")
        there, d, v = differences(n, mean, control)
        free, own = np.maximum(n - 1.0, 0.0), squares.sum(axis=1)
        prior = (free.sum(axis=1) >= 2.0) & (own > 0)
        first = int(np.argmax(prior)) if prior.any() else len(n)
        there[:first] = False
        w, begin = np.where(there, 1.0 / v, 0.0), np.take_along_axis(d, np.argmax(there, axis=0)[None], axis=0)
        W, Z, N = (np.cumsum(one, axis=0) for one in (w, w * (d - begin), there))
        safe = np.maximum(W, 1e-300)
        R = np.maximum(np.cumsum(w * (d - begin) ** 2, axis=0) - Z**2 / safe, 0.0)
        after = np.arange(len(n)) > first
        tot, dof = np.cumsum(own * after)[:, None], np.cumsum(free.sum(axis=1) * after)[:, None]
        known = (0.5 * free[first].sum(), 0.5 * own[first]) if prior.any() else (0.0, 0.0)
        seen = [begin + Z / safe, W, R, N, np.broadcast_to(tot, W.shape), np.broadcast_to(dof, W.shape)]

        def against(off: Any, W: Any, R: Any, N: Any, tot: Any, dof: Any) -> Any:
            """Nats, where the effect lies `off` beyond the null."""
            (a, b), some, off = known, (N > 0) & (off > 0), np.maximum(off, 0.0)[..., None]
            W, R, m = W[..., None], (tot + R)[..., None], (dof + N)[..., None]
            p = W * TAU**2
            more, half = a + 0.5 * m, b + 0.5 * (R + W * off**2 / (1.0 + p))
            place = off * p / (1.0 + p) / np.sqrt(half / more * TAU**2 / (1.0 + p))
            found = np.log(2.0 * SHARES * special.stdtr(2.0 * more, place)) - 0.5 * np.log1p(p)
            found += special.gammaln(more) - special.gammaln(a) + a * math.log(b) - more * np.log(half)
            m = np.maximum(m, 1.0)
            return np.where(some, logs(found + 0.5 * m * (np.log((R + W * off**2) / m) + 1.0)), 0.0)

        def sides(place: Any, *seen: Any, edges: Any) -> Floats:
            if not prior.any():
                return both_sides(np.zeros(place.shape), np.zeros(place.shape), control)
            with np.errstate(divide="ignore"):
                return both_sides(against(place - edges[0], *seen), against(edges[1] - place, *seen), control)

        last = [one[-1] for one in seen]
        every, counts, effect = free.sum() + np.maximum(N[-1] - 1, 0).sum(), N[-1], last[0]
        spread = math.sqrt((squares.sum() + R[-1].sum()) / max(every, 1.0))
        same = one_effect(R[-1] / max(spread, 1e-300) ** 2, counts, every)
        unlike = unlike_spreads(np.append(squares.sum(axis=0), R[-1]), np.append(free.sum(axis=0), counts - 1.0))
        beyond = lambda edge: sides(*last, edges=(edge, edge))
        reach = 1e3 * spread * (1.0 + 1.0 / np.maximum(W[-1], 1e-12) ** 0.5)
        return cls(sides(*seen, edges=edges), effect, same, counts, spread, unlike, beyond, reach)


def averages(n: ArrayLike, x: ArrayLike, control: int, shares: ArrayLike, a: float = 1.0, b: float = 0.0) -> Floats:
    """Nats (S, K, 2) that p_i > a p_c + b in the mean over the visitors so far, and that p_i < a p_c + b.

    Args:
        n, x: results that are 0 or 1, and how many were 1, (S, K), by strata in the order of time.
        shares: (K,) the probabilities with which a visitor is assigned to an arm; only their ratios to the control's
            count, and must be the same at all times in which both arms are there.
    """
    n, x, q = np.array(n, np.float64), np.array(x, np.float64), np.array(shares, np.float64)
    q = q / (q + q[control])
    every, ones = (one + one[:, [control]] for one in (n, x))
    before = np.cumsum(every, axis=0) - every
    g = np.where(before > 0, (np.cumsum(ones, axis=0) - ones) / np.maximum(before, 1.0), 0.0)
    less = b + g * (a - 1.0)
    outcomes = [
        (x, (1.0 - g) / q - less),
        (n - x, -g / q - less),
        (x[:, [control]], -a * (1.0 - g) / (1.0 - q) - less),
        (n[:, [control]] - x[:, [control]], a * g / (1.0 - q) - less),
    ]
    there = (n > 0) & (n[:, [control]] > 0)
    farthest = np.maximum(1.0 / q, a / (1.0 - q)) + abs(b) + abs(a - 1.0)
    found = []
    for sign in (1.0, -1.0):
        bets = sign * BETS / farthest[:, None]
        capital = sum(many[..., None] * np.log1p(bets * z[..., None]) for many, z in outcomes)
        found.append(logs(np.cumsum(np.where(there[..., None], capital, 0.0), axis=0) - math.log(len(BETS))))
    up, down = found
    return both_sides(up, down, control)


def mismatch(counts: ArrayLike, shares: ArrayLike) -> float:
    """p of "visitors are assigned with the planned shares", at any time (Lindon & Malek, NeurIPS 2022).

    Args:
        counts: visitors (S, K). Strata with the same arms, those with visitors, are one; shares are those of these.
        shares: (K,) planned, above 0.
    """
    counts, shares, groups = np.array(counts, np.float64), np.array(shares, np.float64), dict[bytes, Any]()
    special = require("scipy.special", "a test of shares", "evaluation")
    for row in counts:
        key = (row > 0).tobytes()
        groups[key] = groups.get(key, 0.0) + row
    found = np.zeros(len(CONCENTRATIONS))
    for row in groups.values():
        there = row > 0
        row, planned = row[there], shares[there] / shares[there].sum()
        alpha = np.array(CONCENTRATIONS)[:, None] * planned
        found += special.gammaln(alpha.sum(axis=1)) - special.gammaln(alpha.sum(axis=1) + row.sum())
        found += (special.gammaln(alpha + row) - special.gammaln(alpha)).sum(axis=1) - row @ np.log(planned)
    return float(min(np.exp(-logs(found - math.log(len(CONCENTRATIONS)))), 1.0))
