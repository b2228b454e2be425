"""Intervals of the means of single arms that hold at any time: the means that are not excluded, both ends together.

And what is certain of pairs of arms, result by result: docs/certificates-theory.md has the claims that follow.

arms      Bounded: by the bets of certificates, each end with half of the level. Student: as `nearest` has it, for both
          ends at once. Gaussian: prod exp(x (s - mu) - x^2 / 2), s the samples over their scale, is a supermartingale
          at the true mean for each x; so is its mixture over x from normal distributions of the variances 1 / rho, rho
          of `RHOS` with the weights `WEIGHTS`. It has both ends at once, and all terms, where certificates take one.
columns   of a table of N rows. Where the mean is c at most, that of the n-th row is m_n = (N c - S) / (N - n + 1) at
          most, S the sum before. So prod (1 + f (x_n / m_n - 1)) is a supermartingale for each share f of `BETS`, and
          so is their mixture. It falls in c, at all times: what excludes c excludes all smaller means. A row that
          failed counts as c: with these rows the mean of the table is c at most where that of the others is, and no
          step hangs on later rows. A lead that all rows that are left cannot make up for excludes c.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels.checks import Floats, Ints
from ..kernels.compiled import part
from ..kernels.structs import kernel
from .betting import BETS, BETS_SCRATCH, SHARES
from .boundaries import CENTRE, PRIOR, distribution_of, refresh
from .distributions import BOUNDED, GAUSSIAN, Move
from .nearest import moved_to, paired
from .values import RHOS

WEIGHTS = (0.25, 0.4, 0.2, 0.1, 0.05)  # of `RHOS`: they sum to 1
STEPS = 40  # halvings of an interval, or doublings


@part
def against(numbers, mean, scratch, i, mu):
    """The evidence that the mean of arm i is not mu, in nats."""
    if distribution_of(numbers) != GAUSSIAN:
        return moved_to(numbers, mean, scratch, i, mu)
    K, total = len(mean), 0.0
    N, gap = scratch[2 * K + i], mu - mean[i]
    for r in range(len(RHOS)):
        exponent = 0.5 * gap * gap / scratch[4 * K + i] * N * (N / (N + RHOS[r]))
        total += WEIGHTS[r] * math.sqrt(RHOS[r] / (N + RHOS[r])) * math.exp(min(exponent, 700.0))
    return math.log(total)


@kernel
def _ends_of_arms(numbers, pulls, mean, variance, needs, scratch, found):
    """Fill found (K, 2) with the ends of the intervals of scalar arms."""
    refresh(numbers, pulls, mean, variance, scratch, 0, len(pulls))
    is_bounded = distribution_of(numbers) == BOUNDED
    for i in range(len(pulls)):
        need = needs[i] + (math.log(2.0) if is_bounded else 0.0)
        for side in range(2):
            sign, near, step = 2.0 * side - 1.0, mean[i], 1.0
            if is_bounded:
                end = numbers[CENTRE] + side * numbers[PRIOR]
                if against(numbers, mean, scratch, i, end) < need:
                    found[i, side] = end
                    continue
                step = abs(end - near)
            else:
                step = math.sqrt(scratch[4 * len(pulls) + i])
                for _ in range(STEPS):
                    if against(numbers, mean, scratch, i, near + sign * step) >= need:
                        break
                    step *= 2.0
                else:  # nothing is excluded: a scale that is refuted, results that do not vary
                    step = math.inf
                if not 0.0 < step < math.inf:
                    found[i, side] = sign * math.inf
                    continue
            far = near + sign * step
            for _ in range(STEPS):
                middle = 0.5 * (near + far)
                if against(numbers, mean, scratch, i, middle) < need:
                    near = middle
                else:
                    far = middle
            found[i, side] = far


@part
def is_excluded(scores, pulls, side, c, need, capitals):
    """Whether a mean of c at most is excluded: of scores in [0, 1], or of 1 less these (side 1)."""
    N, n, S = float(len(scores)), 0.0, 0.0
    capitals[:] = 1.0
    for row in range(min(pulls, len(scores))):
        x = scores[row] if side == 0 else 1.0 - scores[row]
        x = c if math.isnan(x) else x
        m = min((N * c - S) / (N - n), 1.0)
        S, n, total = S + x, n + 1.0, 0.0
        if N * (c + 1e-12) < S or not m > 0.0 and x > 0.0:
            return True
        for k in range(len(BETS)):
            capitals[k] *= 1.0 + BETS[k] * (x / m - 1.0) if m > 0.0 else 1.0
            total += SHARES[k] * capitals[k]
        if total >= need:
            return True
    return False


@kernel
def _ends_of_columns(scores, pulls, needs, capitals, found):
    """Fill found (K, 2) with the ends of the intervals of columns, scores (K, N) in [0, 1]."""
    for i in range(len(pulls)):
        for side in range(2):
            low, high = 0.0, 1.0
            for _ in range(STEPS):
                middle = 0.5 * (low + high)
                if is_excluded(scores[i], pulls[i], side, middle, needs[i], capitals):
                    low = middle
                else:
                    high = middle
            found[i, side] = low if side == 0 else 1.0 - low


def arm_intervals(numbers: Floats, pulls: Ints, mean: Floats, variance: Floats, level: float | Floats) -> Floats:
    """The ends of the intervals of scalar arms, (K, 2): both right at all times, but with probability `level`, or (K,).

    Of the numbers of `common` for "gaussian", "student" or "bounded" samples; pulls, mean (K,), at least one pull, and
    variance (K,), or (3 K,) by `with_moments`.
    """
    found, needs = np.empty((len(pulls), 2)), np.broadcast_to(-np.log(level), len(pulls)).copy()
    _ends_of_arms(numbers, pulls, mean, variance, needs, np.zeros(5 * len(pulls) + BETS_SCRATCH), found)
    return found


def column_intervals(scores: Floats, pulls: Ints, level: float | Floats) -> Floats:
    """The same, (K, 2), of the columns of a table: scores (K, N) in [0, 1], NaN where a row failed."""
    found, needs = np.empty((len(pulls), 2)), np.broadcast_to(2.0 / np.asarray(level), len(pulls)).copy()
    _ends_of_columns(np.ascontiguousarray(scores), pulls, needs, np.empty(len(BETS)), found)
    return found


@kernel
def certified_pairs(numbers, moves, needs, arms, shown, at, pulls, mean, variance, scratch, first, least):
    """Take in results (T,), and note with which of them pairs of scalar arms are certified for the first time.

    Of the numbers of a `Certifier`: moves (M, 3), a, b and the floor of each `Move`; needs (M,), what the evidence must
    reach; `arms` (T,), of the results; shown (T, 5), then the arm's pulls, mean, three central moments; `at` (T,), the
    number of each result. Kept from call to call, all 0 at first: pulls, mean (K,), variance (3 K,), the scratch; and
    first (M, K, K): the number of the result with which the mean of arm i is certainly above a times that of j plus b.
    Arms with fewer than `least` results wait.
    """
    K = len(pulls)
    for t in range(len(arms)):
        one = arms[t]
        pulls[one], mean[one] = np.int64(shown[t, 0]), shown[t, 1]
        for n in range(3):
            variance[n * K + one] = shown[t, 2 + n]
        refresh(numbers, pulls, mean, variance, scratch, one, one + 1)
        for m in range(len(moves)):
            move = Move(moves[m, 0], moves[m, 1], moves[m, 2])
            for n in range(2 * K):
                i, j = (one, n) if n < K else (n - K, one)
                is_open = i != j and min(pulls[i], pulls[j]) >= least and first[m, i, j] == 0
                is_open = is_open and mean[i] > move.a * mean[j] + move.b
                if is_open and paired(numbers, mean, scratch, i, j, move, needs[m], needs[m]) >= needs[m]:
                    first[m, i, j] = at[t]
