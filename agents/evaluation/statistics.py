"""Intervals, verdicts and paired comparisons for scored episodes: pure functions; those that resample take a seed.

Error rates    exact binomial limits (Clopper & Pearson 1934): right also for rare errors, where the textbook interval
               (rate +- 1.96 standard errors) covers a rate of 0.01 in 80 of 100 cases at n = 300 instead of 95
Means          percentile bootstrap; beyond LARGE episodes the normal interval, with which it then coincides
Comparisons    paired, since all agents meet the same episodes: McNemar's mid-p test for correct / incorrect, random
               signs of the differences otherwise (McNemar's is the same test on differences of -1, 0, 1)
No spread      a single value, or equal ones in fewer than ALIKE episodes, say nothing of values that have not come yet:
               their mean has no interval, but NaN. From ALIKE episodes on, when other values come in 0.3 % of the
               episodes at most (level 95 %), it has one of width 0, so that what is equal by construction can be shown.
               Intervals of rates, and of differences of 0-1 data, have a width for every n

These intervals take episodes for independent draws, as are those of one fixed instance, or of one sampler of instances.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

# scipy takes up to a second to import: the functions that need it import it themselves.

__all__ = [
    "PairedDifference", "bootstrap_mean", "bootstrap_means", "clopper_pearson", "holm", "mcnemar_midp", "normal_mean",
    "paired_difference", "paired_sums", "verdict",
]  # fmt: skip

Floats = NDArray[np.float64]
Verdict = Literal["met", "not met", "undecided", "none stopped"]

ALIKE = 1000  # episodes from which on the mean of equal values has an interval, of width 0
LARGE = 10_000  # episodes beyond which a mean is as good as normal
BLOCK = 2**18  # random numbers drawn at a time: what bounds the memory of a resampling, whatever the number of episodes


@dataclass(frozen=True)
class PairedDifference:
    """How much two agents differ on the same episodes.

    Attributes:
        difference: mean of a - b, in units of the metric.
        low: lower confidence limit of that mean; NaN where there is none, as all differences are equal (see above).
        high: upper confidence limit, likewise.
        p_value: of the test that there is no difference, two-sided, in (0, 1].
        episodes: their number.
        method: the test and the interval, in words.
    """

    difference: float
    low: float
    high: float
    p_value: float
    episodes: int
    method: str


@overload
def clopper_pearson(errors: int, n: int, level: float = ...) -> tuple[float, float]: ...
@overload
def clopper_pearson(errors: ArrayLike, n: ArrayLike, level: float = ...) -> tuple[Any, Any]: ...
def clopper_pearson(errors: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[object, object]:
    """Exact two-sided confidence limits of a binomial rate, of Clopper & Pearson, Biometrika 1934.

    Each of the two limits fails with probability at most (1 - level) / 2, whatever the rate.

    Args:
        errors: number of errors, whole numbers in 0..n; a scalar or an array.
        n: number of episodes, broadcast against `errors`. n = 0 gives (0, 1): nothing is known.
        level: confidence level, in (0, 1).

    Returns:
        (low, high): two floats, or two arrays of the broadcast shape; low = 0 for no error, high = 1 for errors only.
    """
    from scipy.special import betainccinv, betaincinv

    tail = _tail(level)
    k, m = np.broadcast_arrays(np.asarray(errors, dtype=np.float64), np.asarray(n, dtype=np.float64))
    if not np.all((k >= 0) & (k <= m) & (k == np.floor(k)) & (m == np.floor(m)) & np.isfinite(m)):
        raise ValueError(f"errors={errors!r}, n={n!r}: whole numbers with 0 <= errors <= n are needed")
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), m - k + 1, tail), 0.0)
    high = np.where(k < m, betainccinv(k + 1, np.maximum(m - k, 1), tail), 1.0)
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


def verdict(errors: int, n: int, delta: float, level: float = 0.95, open: int = 0) -> Verdict:
    """Whether a probability of at most delta to stop with a wrong answer is shown or refuted by n episodes.

    "met": the upper Clopper-Pearson limit is at most delta, even if all episodes that did not stop had stopped with a
    wrong answer. "not met": the lower limit is above delta, even if none of them had. "undecided": too few episodes
    stopped to decide. "none stopped": none did. "met" and "not met" are wrong with probability at most (1 - level) / 2
    each. At level 0.95, "met" without any error takes 36, 72 and 368 episodes for delta = 0.1, 0.05 and 0.01.

    Args:
        errors: episodes that stopped with a wrong answer.
        n: all episodes.
        delta: the promise.
        level: of the limits.
        open: episodes that did not stop by themselves.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta} must be in (0, 1)")
    if open == n > 0:
        return "none stopped"
    low, _ = clopper_pearson(errors, n, level)
    _, high = clopper_pearson(errors + open, n, level)
    return "met" if high <= delta else "not met" if low > delta else "undecided"


def holm(p_values: ArrayLike) -> Floats:
    """p-values of several tests, corrected so that one below alpha is a false alarm of any with probability alpha.

    The i-th smallest of m is multiplied by m - i + 1, is at least as large as those below it, and at most 1. Holm,
    Scandinavian Journal of Statistics 6, 1979: it holds however the tests depend on each other.
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p_values must be of shape (m,), in [0, 1], got {p_values!r:.200}")
    order = np.argsort(p, kind="stable")
    found = np.empty(len(p))
    found[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return found


def mcnemar_midp(only_a: int, only_b: int) -> float:
    """Two-sided mid-p of McNemar's test that a and b are right equally often.

    It is that of Fagerland et al., BMC MRM 13:91, 2013. Episodes on which both are right, or both wrong, do not count.
    Of the m = only_a + only_b others, a wins X ~ Binomial(m, 1/2) if it is as good as b:
    p = 2 P(X <= k) - P(X = k) = P(X <= k) + P(X <= k - 1), where k is the smaller of the two counts.

    Args:
        only_a: episodes on which a alone is right.
        only_b: episodes on which b alone is right.

    Returns:
        p in (0, 1]; 1 if there are no such episodes.
    """
    from scipy.special import bdtr

    if not all(count >= 0 and float(count).is_integer() for count in (only_a, only_b)):
        raise ValueError(f"only_a={only_a}, only_b={only_b}: whole numbers >= 0 are needed")
    k, m = int(min(only_a, only_b)), int(only_a + only_b)
    return _proper(float(bdtr(k, m, 0.5)) + (float(bdtr(k - 1, m, 0.5)) if k > 0 else 0.0))


def bootstrap_mean(x: ArrayLike, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> tuple[Any, Any]:
    """Confidence limits of a mean over episodes, by the percentile bootstrap of Efron & Tibshirani 1993, chapter 13.

    Beyond LARGE = 10,000 episodes the normal interval, mean +- z s / sqrt(n), is returned: unless a handful of episodes
    carries the mean, the two differ by less than the bootstrap's own randomness. Memory is that of `x` and of blocks of
    BLOCK draws, whatever n. Below some twenty episodes the interval is too short. Error rates have `clopper_pearson`:
    after no error at all the bootstrap gives [0, 0].

    Args:
        x: shape (n,) or (n, ...): one row per episode, any unit; booleans count as 0 and 1.
        level: confidence level, in (0, 1).
        resamples: number of resamples, >= 1.
        seed: of the resampling; the same seed gives the same limits. Columns of `x` are resampled together.

    Returns:
        (low, high): two floats for (n,), two arrays of shape x.shape[1:] otherwise. For equal values NaN, and zero
        width from ALIKE episodes on.
    """
    tail, rows = _tail(level), _finite("x", x)
    _check_resamples(resamples)
    n, origin = len(rows), rows[0]
    rows = rows - origin  # so that constant data stay exactly constant
    if n < ALIKE:
        origin = np.where(rows.any(axis=0), origin, np.nan)
    if n > LARGE:
        from scipy.special import ndtri

        centre, half = origin + rows.mean(axis=0), ndtri(1 - tail) * rows.std(axis=0, ddof=1) / math.sqrt(n)
        return centre - half, centre + half
    means = bootstrap_means(rows.reshape(n, -1), resamples, seed)
    low, high = np.quantile(means, (tail, 1 - tail), axis=0).reshape(2, *rows.shape[1:])
    return origin + low, origin + high


def bootstrap_means(x: Floats, resamples: int, seed: int) -> Floats:
    """Means of resamples of episodes, (n, ...) -> (resamples, ...): resamples with the same seed and n are the same."""
    rng, n = np.random.default_rng(seed), len(x)
    return np.concatenate([_resampled(rng, block, n) @ x for block in _blocks(resamples, n)]) / n


def paired_difference(
    a: ArrayLike, b: ArrayLike, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> PairedDifference:
    """Mean of a - b over episodes that both agents met, with its confidence interval and a two-sided p-value.

    - 0-1 data: McNemar's mid-p test; Wald's interval after adding one disagreement of either kind [Bonett & Price, JEBS
      37(4), 2012], which keeps a width when few episodes, or none, disagree.
    - n <= LARGE: random signs of the differences (a and b trade places at random in each episode), the data counted
      among the resamples, an exact test for symmetric differences; the interval of `bootstrap_mean`.
    - n > LARGE: the normal limit of both.

    The bootstrap's resamples would give a p-value as well, but one that is too small: for five differences of one sign
    it is 1 / 1000, while five fair coins agree once in 16 times. In return, interval and test may disagree where the
    p-value is close to 1 - level.

    Args:
        a: shape (n,), the metric of agent a in each episode; booleans count as 0 and 1.
        b: shape (n,), that of agent b in the same episodes.
        level: confidence level of the interval, in (0, 1).
        resamples: of the bootstrap, and of the signs, >= 1; the smallest p-value of the latter is 1 / (resamples + 1).
        seed: of the resampling; the same seed gives the same result.
    """
    x, y = _finite("a", a), _finite("b", b)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"a of shape {x.shape} and b of shape {y.shape}: the same shape (n,) is needed")
    _check_resamples(resamples)
    d, n = x - y, len(x)
    if np.isin(x, (0, 1)).all() and np.isin(y, (0, 1)).all():
        return paired_sums(0.0, 0.0, int((d > 0).sum()), int((d < 0).sum()), n, True, level)
    low, high = bootstrap_mean(d, level, resamples, seed)
    if n > LARGE:
        p, method = _normal_p(d), "normal test, normal interval"
    else:
        p, method = _random_signs_p(d, resamples, seed), "random signs, bootstrap interval"
    return PairedDifference(float(d.mean()), float(low), float(high), p, n, method)


def normal_mean(mean: ArrayLike, spread: ArrayLike, n: int, level: float = 0.95) -> tuple[Any, Any]:
    """Confidence limits of a mean that is taken for normal: mean +- z s / sqrt(n).

    Args:
        mean: of n values, of any shape.
        spread: the sum of the squares of their distances from it.
        n: how many.
        level: confidence level, in (0, 1).

    Returns:
        (low, high): NaN for n = 1, and without spread for n < ALIKE.
    """
    from scipy.special import ndtri

    z, centre = ndtri(1 - _tail(level)), np.asarray(mean, np.float64)
    half = z * np.sqrt(np.asarray(spread, np.float64) / max(n - 1, 1) / n)
    if n < ALIKE:
        half = np.where(half > 1e-12 * np.abs(centre), half, np.nan)  # the sums of equal values have rounding errors
    return centre - half, centre + half


def paired_sums(
    mean: float, spread: float, more: int, less: int, n: int, binary: bool, level: float = 0.95
) -> PairedDifference:
    """What `paired_difference` finds, by what is known of the differences a - b of n episodes where rows are not kept.

    It is the same for 0-1 data, and but for rounding for n > LARGE; below, normal limits stand for those of resampling.

    Args:
        mean, spread: of the differences, and the sum of the squares of their distances from it.
        more, less: how many are above 0, and below.
        n: how many.
        binary: whether the data are 0 or 1.
        level: confidence level of the interval, in (0, 1).
    """
    if binary:
        low, high = _bonett_price(more, less, n, level)
        p, method = mcnemar_midp(more, less), "McNemar mid-p, Bonett-Price interval"
        return PairedDifference((more - less) / n, low, high, p, n, method)
    low, high = normal_mean(mean, spread, n, level)
    square = spread + n * mean * mean
    p = _proper(math.erfc(abs(n * mean) / math.sqrt(2 * square))) if square > 0 else 1.0
    method = "normal test, normal interval" + ("" if n > LARGE else " (no rows were kept to resample)")
    return PairedDifference(mean, float(low), float(high), p, n, method)


def _bonett_price(only_a: int, only_b: int, n: int, level: float) -> tuple[float, float]:
    """Limits of P(a alone is right) - P(b alone is right), of Bonett & Price 2012."""
    from scipy.special import ndtri

    p_a, p_b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    half = float(ndtri(1 - _tail(level))) * math.sqrt((p_a + p_b - (p_a - p_b) ** 2) / (n + 2))
    return max(-1.0, p_a - p_b - half), min(1.0, p_a - p_b + half)


def _random_signs_p(d: Floats, resamples: int, seed: int) -> float:
    """Share of random signs under which |sum of d| is at least the one observed, the data counted as one of them."""
    rng, total = np.random.default_rng((seed, 1)), d.sum()  # (seed, 1): not the stream of the bootstrap
    observed = abs(total) - 1e-12 * np.abs(d).sum()  # equal sums stay equal, whatever the order of summation
    hits = 1
    for block in _blocks(resamples, len(d)):
        kept = rng.integers(0, 2, (block, len(d)), dtype=np.int8)  # 1: the sign stays, 0: it turns
        hits += int((np.abs(2 * (kept @ d) - total) >= observed).sum())
    return hits / (resamples + 1)


def _normal_p(d: Floats) -> float:
    """The limit of `_random_signs_p`: under random signs the sum of d has mean 0 and variance sum d^2."""
    if not d.any():
        return 1.0
    d = d / np.abs(d).max()
    return _proper(math.erfc(abs(d.sum()) / math.sqrt(2 * (d * d).sum())))


def _blocks(resamples: int, n: int) -> Iterator[int]:
    """Sizes of the blocks of resamples of n episodes, about BLOCK random numbers each."""
    rows = max(1, BLOCK // n)
    return (min(rows, resamples - done) for done in range(0, resamples, rows))


def _resampled(rng: np.random.Generator, block: int, n: int) -> Floats:
    """How often each of n episodes comes up in n draws with replacement, shape (block, n)."""
    return np.array([np.bincount(draw, minlength=n) for draw in rng.integers(n, size=(block, n))], dtype=np.float64)


def _finite(name: str, x: ArrayLike) -> Floats:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim == 0 or len(rows) == 0:
        raise ValueError(f"{name} has shape {rows.shape}: at least one episode is needed")
    if not np.isfinite(rows).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(rows))[0])
        raise ValueError(f"{name} holds {rows[where]} at {list(where)}: finite numbers are needed")
    return rows


def _tail(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level={level} must be in (0, 1)")
    return (1 - level) / 2


def _check_resamples(resamples: int) -> None:
    if resamples < 1:
        raise ValueError(f"resamples={resamples} must be at least 1")


def _proper(p: float) -> float:
    """A p-value is never 0: below the smallest float it is that float."""
    return float(min(1.0, max(p, sys.float_info.min)))


def latest_of_the_best(returns: NDArray[np.float64]) -> int:
    """The number of the checkpoint to keep, by the one-standard-error rule.

    It is the last one whose mean return is at most one standard error of the paired difference below the best. The
    best itself would often be best by chance, and late checkpoints have gained from a lower learning rate.

    Args:
        returns: of each checkpoint in each of the same episodes, (C, episodes).
    """
    deficit = returns[returns.mean(1).argmax()] - returns
    error = deficit.std(1, ddof=1) / math.sqrt(returns.shape[1])
    return int(np.flatnonzero(deficit.mean(1) <= error).max())
