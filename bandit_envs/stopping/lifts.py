"""Evidence that one mean lies above a times another one plus b, at any time, for any pulls: mixtures of tilts.

docs/certificates-theory.md has the proof. Let mu_j = c. A term with the tilts s, t >= 0 bets that arm i is larger than
a c + b and arm j smaller than c,

    exp(s S_i - N_i psi(s, a c + b) - t S_j - N_j psi(-t, c)),    S the sums of samples, N their numbers,

with psi(s, m) the logarithm of E exp(s x): ln(1 - m + m e^s) of Bernoulli arms, and at most that of any samples in
[0, 1]; s m + s^2 v / 2 of (sub-)Gaussian ones. Where mu_i <= a mu_j + b, some c has mu_i <= a c + b and c <= mu_j, for
which each term is a supermartingale, and so is a mixture of them. The evidence is its logarithm at the least c. Terms
are convex in c; tangents bound it from below.

The price of an unknown c is small where the terms hardly depend on it: t / s = a N_i / N_j. So tilts come in pairs of
few such ratios, `RATIOS`, about the sum of tilts of `TILTS`. `ALONE` of the weight is for one of the two arms alone,
which excludes a c that is far from its mean. Sums are all that is read: a day of counts is worth its single results.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.compiled import inlined, part
from .boundaries import VARIANCE, distribution_of
from .distributions import BERNOULLI

# The sum of two tilts: a difference of log odds, or of means in standard deviations; centred at `USUAL`.
TILTS = (0.001, 0.003, 0.01, 0.025, 0.06, 0.12, 0.22, 0.4, 0.75, 1.5, 3.0)
USUAL, SPREAD, EVEN = 0.12, 0.9, 0.2  # the middle and spread of the weights, and the part of them that is even
RATIOS = (1 / 7, 1 / 2.6, 1.0, 2.6, 7.0)
SHARES = (0.05, 0.11, 0.68, 0.11, 0.05)  # of the ratios: they sum to 1
ALONE, FAR = 0.03, 1e200  # the ratio of the second arm alone
HOPED, NEAR_HOPED = 0.6, (0.8, 1.25)  # the weight of a tilt that is expected, and what it is multiplied by
END, STEPS, CLOSE = 1e-12, 100, 1e-7  # of the search for the least c; its error, relative
# The terms (n, 2) of a sum of tilts: the ratio of the second to the first at a = 1, and the logarithm of the weight.
_SHARES = (*((1 - ALONE) * share for share in SHARES), ALONE / 2, ALONE / 2)
PAIRS = np.column_stack([(*RATIOS, 0.0, FAR), np.log(_SHARES)])
_BELL = np.exp(-0.5 * (np.log(np.array(TILTS) / USUAL) / SPREAD) ** 2)
WEIGHTS = np.log((1 - EVEN) * _BELL / _BELL.sum() + EVEN / len(TILTS))  # the logarithms of those of `TILTS`


@inlined
def cumulant(is_bernoulli, s, m, v):
    """psi(s, m), and its derivative in m."""
    if is_bernoulli:
        x = math.expm1(s)
        return math.log1p(m * x), x / (1.0 + m * x)
    return s * m + 0.5 * s * s * v, s


@part
def mixture(numbers, i, j, a, b, hoped, c):
    """The logarithm of the mixture at mu_j = c, and its derivative in c; i, j: (pulls, mean) of the two arms."""
    is_bernoulli, v = distribution_of(numbers) == BERNOULLI, numbers[VARIANCE]
    unit, top, total, rise = 1.0 if is_bernoulli else 1.0 / math.sqrt(v), -math.inf, 0.0, 0.0
    sum_i, sum_j, N, M, above = i[0] * i[1], j[0] * j[1], i[0], j[0], a * c + b
    for k in range(len(TILTS) + (len(NEAR_HOPED) if hoped > 0.0 else 0)):
        n = k - len(TILTS)
        tilt = unit * (TILTS[k] if n < 0 else hoped * NEAR_HOPED[n])
        weight = WEIGHTS[k] if n < 0 else math.log(HOPED / len(NEAR_HOPED))
        weight += math.log1p(-HOPED) if n < 0 and hoped > 0.0 else 0.0
        for p in range(len(PAIRS)):
            ratio = a * PAIRS[p, 0]
            s, t = tilt / (1.0 + ratio), tilt * (ratio / (1.0 + ratio))
            (f, slope), (g, fall) = cumulant(is_bernoulli, s, above, v), cumulant(is_bernoulli, -t, c, v)
            term = weight + PAIRS[p, 1] + s * sum_i - N * f - t * sum_j - M * g
            if term > top:
                scale = math.exp(top - term)
                total, rise, top = total * scale, rise * scale, term
            share = math.exp(term - top)
            total, rise = total + share, rise + share * (-N * a * slope - M * fall)
    return top + math.log(total), rise / total


class Tangents(NamedTuple):
    """What a search for the least value of a convex function knows: tangents (place, value, slope) on either side."""

    left: Any  # of the value -inf: none yet
    right: Any
    floor: float  # a bound of the least value from below
    stride: float  # to the next place, while there are none on both sides


@inlined
def narrowed(known, c, value, slope, step, wider):
    """The `Tangents` with one more, and where to look next: where they cross, each third time in their middle."""
    left, right, floor, stride = known
    if slope < 0.0:
        left = c, value, slope
    else:
        right = c, value, slope
    if left[1] > -math.inf and right[1] > -math.inf:
        c = (right[1] - left[1] + left[2] * left[0] - right[2] * right[0]) / (left[2] - right[2])
        floor = max(floor, left[1] + left[2] * (c - left[0]))
        c = 0.5 * (left[0] + right[0]) if step % 3 == 2 else c
    else:
        c, stride = c + stride if slope < 0.0 else c - stride, stride * wider
    return Tangents(left, right, floor, stride), c, min(left[1], right[1]) - floor


@part
def lift_value(numbers, i, j, a, b, hoped, needed):
    """The evidence against mu_i <= a mu_j + b, in nats; 0 where the means are so.

    Args:
        numbers: those of `common`, of "gaussian" or "bernoulli".
        i, j: (pulls, mean) of the two arms, pulls > 0.
        a, b: of the condition, a > 0.
        hoped: the sum of tilts that is expected, see `TILTS`; 0: none.
        needed: it is enough to know whether the evidence reaches this; -inf: its value is wanted.
    """
    is_bernoulli, high, low = distribution_of(numbers) == BERNOULLI, (i[1] - b) / a, j[1]
    if not high > low:
        return 0.0
    bottom, top = (max(0.0, -b / a), min(1.0, (1.0 - b) / a)) if is_bernoulli else (-math.inf, math.inf)
    if bottom >= top:
        return math.inf  # no means are there
    bottom, top, none = bottom + END, top - END, -math.inf
    known, c = Tangents((low, none, 0.0), (high, none, 0.0), none, high - low), 0.5 * (low + high)
    for step in range(STEPS):
        c = min(max(c, bottom), top)
        value, slope = mixture(numbers, i, j, a, b, hoped, c)
        if value < needed:
            return value
        if (slope < 0.0 and c >= top) or (slope >= 0.0 and c <= bottom):
            return value - END * abs(slope)
        known, c, apart = narrowed(known, c, value, slope, step, 2.0)
        if apart <= CLOSE * (1.0 + abs(known.floor)):
            break
    return known.floor
