"""The nominal confidence delta^c of a policy's own answer: Kalyanakrishnan & Stone, ICML 2010, section 4.

symbols     High the m arms with the largest empirical means, Low the rest; (m) the worst of High, (m+1) the best of
            Low; c a cutoff between m_(m+1) and m_(m) + epsilon; d_i a bound on the probability that the mean of arm i
            lies on the wrong side of c (minus epsilon, in High); W the range of a sample, sd_i^2 its variance with
            divisor t; R the range in the empirical Bernstein bound, W unless somebody says otherwise
departures  D1 c divides its interval by the standard errors of (m+1) and (m), as in the paper's experiments; a standard
               error takes the variance with divisor t - 1; the midpoint where both are 0. The paper's c*, which it does
               not run, can be had instead: the c at which delta^c is smallest by Hoeffding's bounds, by which alone
               the search is easy, whichever bounds are taken there
            D2 the smaller of two bounds per arm, without a union over the two, and no union over time: delta^c is the
               paper's nominal figure

An exponent is -ln of a bound: exponents of all arms are cheap, and only those that count are turned into bounds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import inlined, part
from ..kernels.structs import fleeting, kernel

BOUNDS = ("tightest", "hoeffding")
CUTOFFS = ("standard-error", "best")

_LN3 = math.log(3.0)
_HALVINGS = 32  # of the interval in which c* is looked for: delta^c is flat there


@fleeting
class Samples(NamedTuple):
    """What the samples of an episode, or of a batch of them, have shown of each arm."""

    pulls: NDArray[np.int64]  # (K,), or (E, K)
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]  # with divisor t


class Deviation(NamedTuple):
    """How the d_i are bounded."""

    epsilon: float
    W: float  # range of a sample
    R: float  # the range in the empirical Bernstein bound
    tightest: bool  # by the smaller of Hoeffding's and the empirical Bernstein bound; else by Hoeffding's
    best: bool  # at the cutoff c*; else at the one by standard errors
    reach: float  # bounds smaller than exp(-reach) times the largest are set to 0; 60: no double shows the difference


@inlined
def hoeffding(g, t, W):
    """-ln of the bound exp(-2 t g^2 / W^2) on a mean of t samples that is off by g >= 0 on one side."""
    return 2.0 * t * (g / W) * (g / W)


@inlined
def bernstein(g, t, variance, R):
    """-ln of the d that makes g = sd sqrt(2 ln(3/d) / t) + 3 R ln(3/d) / t, for g > 0; negative where d > 1."""
    A, B = math.sqrt(2.0 * variance / t), 3.0 * R / t
    y = 2.0 * g / (A + math.sqrt(A * A + 4.0 * B * g))
    return y * y - _LN3


@inlined
def standard_error(variance, t):
    """Of a mean of t samples with that variance (divisor t); 0 for a single one."""
    return math.sqrt(variance / (t - 1.0)) if t > 1.0 else 0.0


@inlined
def cutoff(low, high, error_low, error_high):
    """c, between the best of Low and the worst of High, closer to the one with the smaller standard error."""
    both = error_low + error_high
    return low + (high - low) * (error_low / both if both > 0.0 else 0.5)


@inlined
def at_boundary(mean, inside):
    """The best arm of Low, ties to the lowest, and the worst of High, ties to the highest."""
    h = l = -1  # noqa: E741
    for i in range(len(mean)):
        m = mean[i]
        if inside[i]:
            if h < 0 or m <= mean[h]:
                h = i
        elif l < 0 or m > mean[l]:
            l = i  # noqa: E741
    return l, h


@inlined
def cutoff_of(seen, inside, epsilon):
    """c, between the mean of (m+1) and epsilon above that of (m)."""
    l, h = at_boundary(seen.mean, inside)  # noqa: E741
    error_high = standard_error(seen.variance[h], float(seen.pulls[h]))
    error_low = standard_error(seen.variance[l], float(seen.pulls[l]))
    return cutoff(seen.mean[l], seen.mean[h] + epsilon, error_low, error_high)


@part
def best_cutoff(seen, inside, epsilon, W):
    """c*: the c between (m+1) and epsilon above (m) at which Hoeffding's delta^c is smallest.

    -ln(1 - exp(-a g^2)) is convex in g > 0, and so is -ln(1 - delta^c), the sum over all arms, in c: it is smallest
    where its slope changes sign. The slope of an arm, 2 a g / (exp(a g^2) - 1), is positive in High and negative in
    Low; all are counted in units of exp(-least), as the largest alone may be too small for a double.
    """
    K = len(seen.mean)
    l, h = at_boundary(seen.mean, inside)  # noqa: E741
    low, high = seen.mean[l], seen.mean[h] + epsilon
    for _ in range(_HALVINGS):
        c, least, up, down = low + (high - low) * 0.5, math.inf, 0.0, 0.0
        for i in range(K):
            g = (seen.mean[i] + epsilon) - c if inside[i] else c - seen.mean[i]
            x = hoeffding(g if g > 0.0 else 0.0, float(seen.pulls[i]), W)
            least = x if x < least else least
        smallest = math.exp(-least)
        for i in range(K):
            g = (seen.mean[i] + epsilon) - c if inside[i] else c - seen.mean[i]
            g = g if g > 1e-150 else 1e-150
            x = hoeffding(g, float(seen.pulls[i]), W)
            y = math.exp(least - x)
            if x > 0.1:
                slope = y * x / (g * (1.0 - y * smallest))
            else:
                slope = y / g * (x / -math.expm1(-x) if x > 0.0 else 1.0)
            if inside[i]:
                up += slope
            else:
                down += slope
        if up > down:
            high = c
        else:
            low = c
    return low + (high - low) * 0.5


@part
def exponents(seen, inside, bound, x):
    """Fill x (K,) with -ln d_i, and find the least of them."""
    K = len(seen.mean)
    if bound.best:
        c = best_cutoff(seen, inside, bound.epsilon, bound.W)
    else:
        c = cutoff_of(seen, inside, bound.epsilon)
    for i in range(K):
        g = (seen.mean[i] + bound.epsilon) - c if inside[i] else c - seen.mean[i]
        g, t = g if g > 1e-300 else 1e-300, float(seen.pulls[i])
        x[i] = hoeffding(g, t, bound.W)
        if bound.tightest:
            z = bernstein(g, t, seen.variance[i], bound.R)
            x[i] = x[i] if x[i] > z else z
    least = x[0]
    for i in range(K):
        least = x[i] if x[i] < least else least
    return least


@part
def deviations(seen, inside, bound, d):
    """Fill d (K,) with the d_i, whose arms have all been pulled; returns delta^c = 1 - prod(1 - d_i)."""
    least, D = exponents(seen, inside, bound, d), 0.0
    for i in range(len(seen.mean)):
        if d[i] > least + bound.reach:
            d[i] = 0.0
        else:
            d[i] = math.exp(-d[i])
            D += d[i] - D * d[i]
    return D


@kernel
def certify(seen: Samples, inside, bound: Deviation, d, out):
    """delta^c of each episode, into out (E,); 1 where an arm has never been pulled. d: (K,), to work in."""
    for e in range(len(out)):
        begun, one = True, Samples(seen.pulls[e], seen.mean[e], seen.variance[e])
        for i in range(len(d)):
            begun &= one.pulls[i] > 0
        out[e] = deviations(one, inside[e], bound, d) if begun else 1.0
