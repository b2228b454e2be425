"""The nominal confidence delta^c of a policy's own answer: Kalyanakrishnan & Stone, ICML 2010, section 4.

`TopK.certificate` returns it. It is not the certificate that ends an episode: see bandit_envs/stopping.

symbols     High the m arms with the largest empirical means, Low the rest; (m) the worst arm of High, (m+1) the best of
            Low; c a cutoff between the mean of (m+1) and epsilon above that of (m); d_i a bound on the probability that
            the mean of arm i lies on the wrong side of c (of c - epsilon, in High); t pulls of an arm; W the range of a
            sample, sd^2 the variance of an arm's samples with divisor t; R the range in the empirical Bernstein bound
departures  D1 c divides its interval by the standard errors of (m+1) and (m), as in the paper's experiments. They take
               the variance with divisor t - 1. Where both are 0, c is the midpoint. The paper's c*, which it does not
               run, is the other choice: it minimises delta^c by Hoeffding's bounds, also where the d_i are Bernstein's
            D2 no union bound over the two bounds of an arm, of which the smaller is taken, and none over time

Code works with exponents, -ln d_i, as only the exponents that are not negligible need an exponential.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from ..kernels.checks import Bools, Floats, Ints
from ..kernels.compiled import inlined, part
from ..kernels.structs import fleeting, kernel

BOUNDS = ("tightest", "hoeffding")
CUTOFFS = ("standard-error", "best")

_LN3 = math.log(3.0)
_HALVINGS = 32  # of the interval in which c* is looked for: delta^c is flat there


@fleeting
class Samples(NamedTuple):
    """Statistics of each arm of an episode, or of a batch of episodes."""

    pulls: Ints  # (K,), or (E, K)
    mean: Floats
    variance: Floats  # with divisor t


class Deviation(NamedTuple):
    """Which bounds give the d_i."""

    epsilon: float
    W: float  # range of a sample
    R: float  # the range in the empirical Bernstein bound
    tightest: bool  # the smaller of Hoeffding's and the empirical Bernstein bound; else Hoeffding's
    best: bool  # the cutoff c*; else the cutoff by standard errors
    reach: float  # a d_i below exp(-reach) times the largest becomes 0; at 60 their sum is the same in doubles


@inlined
def hoeffding(g, t, W):
    """-ln of exp(-2 t g^2 / W^2), which bounds the probability that a mean of t samples is g >= 0 too high (or low)."""
    return 2.0 * t * (g / W) * (g / W)


@inlined
def bernstein(g, t, variance, R):
    """-ln of the d that makes g = sd sqrt(2 ln(3/d) / t) + 3 R ln(3/d) / t, for g > 0; negative where d > 1."""
    A, B = math.sqrt(2.0 * variance / t), 3.0 * R / t
    y = 2.0 * g / (A + math.sqrt(A * A + 4.0 * B * g))
    return y * y - _LN3


@inlined
def standard_error(variance, t):
    """The standard error of a mean of t samples, from their variance (divisor t); 0 for a single sample."""
    return math.sqrt(variance / (t - 1.0)) if t > 1.0 else 0.0


@inlined
def cutoff(low, high, error_low, error_high):
    """c, between `low` and `high`, nearer to the end with the smaller standard error."""
    both = error_low + error_high
    return low + (high - low) * (error_low / both if both > 0.0 else 0.5)


@inlined
def at_boundary(mean, inside):
    """(m+1) and (m): the best arm of Low, ties to the lowest number, and the worst of High, ties to the highest."""
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
    """c by standard errors, between the mean of (m+1) and epsilon above that of (m)."""
    l, h = at_boundary(seen.mean, inside)  # noqa: E741
    error_high = standard_error(seen.variance[h], float(seen.pulls[h]))
    error_low = standard_error(seen.variance[l], float(seen.pulls[l]))
    return cutoff(seen.mean[l], seen.mean[h] + epsilon, error_low, error_high)


@part
def best_cutoff(seen, inside, epsilon, W):
    """c*: the c that minimises Hoeffding's delta^c, between the mean of (m+1) and epsilon above that of (m).

    With a = 2 t / W^2 and the distance g > 0 of an arm from c, -ln(1 - exp(-a g^2)) is convex in g. So its sum over all
    arms, -ln(1 - delta^c), is convex in c, and c* is where the slope changes sign; the interval is halved until there.
    An arm's slope is 2 a g / (exp(a g^2) - 1), positive in High, negative in Low. Slopes are divided by exp(-least):
    all may be too small for a double.
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
    """Fill x (K,) with -ln d_i; returns the least of them."""
    least = math.inf
    if bound.best:
        c = best_cutoff(seen, inside, bound.epsilon, bound.W)
    else:
        c = cutoff_of(seen, inside, bound.epsilon)
    for i in range(len(x)):
        g = (seen.mean[i] + bound.epsilon) - c if inside[i] else c - seen.mean[i]
        g, t = g if g > 1e-300 else 1e-300, float(seen.pulls[i])
        x[i] = hoeffding(g, t, bound.W)
        if bound.tightest:
            z = bernstein(g, t, seen.variance[i], bound.R)
            x[i] = x[i] if x[i] > z else z
        least = x[i] if x[i] < least else least
    return least


@part
def deviations(seen, inside, bound, d):
    """Fill d (K,) with the d_i; returns delta^c = 1 - prod(1 - d_i). Every arm must have been pulled."""
    least, D = exponents(seen, inside, bound, d), 0.0
    for i in range(len(seen.mean)):
        if d[i] > least + bound.reach:
            d[i] = 0.0
        else:
            d[i] = math.exp(-d[i])
            D += d[i] - D * d[i]
    return D


@kernel
def certify(seen: Annotated[Samples, 2], inside: Annotated[Bools, 2], bound: Deviation, d: Floats, out: Floats):
    """Fill out (E,) with delta^c of each episode; 1 where an arm has never been pulled. d: (K,), scratch."""
    for e in range(len(out)):
        all_pulled, one = True, Samples(seen.pulls[e], seen.mean[e], seen.variance[e])
        for i in range(len(d)):
            all_pulled &= one.pulls[i] > 0
        out[e] = deviations(one, inside[e], bound, d) if all_pulled else 1.0
