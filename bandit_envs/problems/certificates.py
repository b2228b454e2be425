"""What a policy can know of its own answer: delta^c of Kalyanakrishnan & Stone, ICML 2010, section 4.

symbols     High the m arms with the largest empirical means, Low the rest; (m) the worst of High, (m+1) the best of
            Low; c a cutoff between m_(m+1) and m_(m) + epsilon; d_i a bound on the probability that the mean of arm i
            lies on the wrong side of c (minus epsilon, in High); W the range of a sample, sd_i^2 its variance with
            divisor t
departures  D1 c divides its interval by the standard errors of (m+1) and (m), as in the paper's experiments; a standard
               error takes the variance with divisor t - 1; the midpoint where both are 0
            D2 the smaller of two bounds per arm, without a union over the two, and no union over time: delta^c is the
               paper's nominal figure

An exponent is -ln of a bound: exponents of all arms are cheap, and only those that count are turned into bounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import inlined, jit

__all__ = ["at_boundary", "bernstein", "certify", "cutoff", "deviations", "hoeffding", "standard_error"]

_LN3 = math.log(3.0)


@inlined
def hoeffding(g: Any, t: Any, W: Any) -> Any:
    """-ln of the bound exp(-2 t g^2 / W^2) on a mean of t samples that is off by g >= 0 on one side."""
    return 2.0 * t * (g / W) * (g / W)


@inlined
def bernstein(g: Any, t: Any, variance: Any, W: Any) -> Any:
    """-ln of the d that makes g = sd sqrt(2 ln(3/d) / t) + 3 W ln(3/d) / t, for g > 0; negative where d > 1."""
    A, B = math.sqrt(2.0 * variance / t), 3.0 * W / t
    y = 2.0 * g / (A + math.sqrt(A * A + 4.0 * B * g))
    return y * y - _LN3


@inlined
def standard_error(variance: Any, t: Any) -> Any:
    """Of a mean of t samples with that variance (divisor t); 0 for a single one."""
    return math.sqrt(variance / (t - 1.0)) if t > 1.0 else 0.0


@inlined
def cutoff(low: Any, high: Any, error_low: Any, error_high: Any) -> Any:
    """c, between the best of Low and the worst of High, closer to the one with the smaller standard error."""
    both = error_low + error_high
    return low + (high - low) * (error_low / both if both > 0.0 else 0.5)


@inlined
def at_boundary(mean: Any, e: Any, inside: Any) -> Any:
    """The best arm of Low, ties to the lowest, and the worst of High, ties to the highest."""
    high, low = math.inf, -math.inf
    h: Any = np.uint64(0)
    l: Any = np.uint64(0)  # noqa: E741
    for i in range(np.uint64(mean.shape[1])):
        m = mean[e, i]
        if inside[e, i]:
            if m <= high:
                high, h = m, i
        elif m > low:
            low, l = m, i  # noqa: E741
    return l, h


@jit
def deviations(
    pulls: Any, mean: Any, variance: Any, e: Any, inside: Any, epsilon: Any, W: Any, tightest: Any, reach: Any, d: Any
) -> Any:
    """Fill d (K,) with the d_i of episode e, all of whose arms have been pulled; returns delta^c = 1 - prod(1 - d_i).

    Args:
        inside: (E, K), High. tightest: the smaller of Hoeffding's and the empirical Bernstein bound, else Hoeffding's.
        reach: bounds smaller than exp(-reach) times the largest are set to 0 (60: no double tells the difference).
    """
    K = np.uint64(mean.shape[1])
    i: Any  # an arm
    l, h = at_boundary(mean, e, inside)  # noqa: E741
    error_high = standard_error(variance[e, h], float(pulls[e, h]))
    error_low = standard_error(variance[e, l], float(pulls[e, l]))
    c = cutoff(mean[e, l], mean[e, h] + epsilon, error_low, error_high)
    if tightest:
        for i in range(K):
            g = (mean[e, i] + epsilon) - c if inside[e, i] else c - mean[e, i]
            t = float(pulls[e, i])
            g = g if g > 1e-300 else 1e-300
            x, y = hoeffding(g, t, W), bernstein(g, t, variance[e, i], W)
            d[i] = x if x > y else y
    else:
        for i in range(K):
            g = (mean[e, i] + epsilon) - c if inside[e, i] else c - mean[e, i]
            g = g if g > 0.0 else 0.0
            d[i] = hoeffding(g, float(pulls[e, i]), W)
    least = d[0]
    for i in range(K):
        least = d[i] if d[i] < least else least
    D = 0.0
    for i in range(K):
        if d[i] > least + reach:
            d[i] = 0.0
        else:
            d[i] = math.exp(-d[i])
            D += d[i] - D * d[i]
    return D


@jit
def certify(pulls: Any, mean: Any, variance: Any, inside: Any, epsilon: Any, W: Any, out: Any) -> Any:
    """delta^c of each episode by the tightest bounds; 1 where an arm has never been pulled."""
    d = np.empty(mean.shape[1])
    for episode in range(len(out)):
        e = np.uint64(episode)
        seen = True
        for i in range(mean.shape[1]):
            seen &= pulls[e, i] > 0
        out[e] = deviations(pulls, mean, variance, e, inside, epsilon, W, True, 60.0, d) if seen else 1.0
