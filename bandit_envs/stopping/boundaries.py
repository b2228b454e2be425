"""Boundaries of stopping rules: they hold at all times at once, under any sampling rule (docs/certificates-theory.md).

An alternative to the answer moves a fixed set S of arms. It is excluded at level delta where
    sum over S of N_a d(m_a, mu_a) - sum over S of penalty_a > ln(number of alternatives / delta)
for all means mu that it may lead to.

NONE       penalty 0: the evidence itself.
MIXTURE    Gaussian (sub-Gaussian) and bounded: no penalty arm by arm; `values` and `betting` have the statistic.
           Bernoulli: penalty -ln B(N m + 1, N (1 - m) + 1) - N h(m), h the entropy: the mixture over all means,
           Beta(1, 1), against the likelihood of mu. For samples in [0, 1] that are not 0 or 1, the likelihood ratio is
           no larger on average (an exponential lies below its chord), so that it is valid for them too.
           Student: penalty ln(largest likelihood / mixture), over normal-inverse-gamma priors of the unit 2^i sigma and
           of a reach 2^j times as far around the centre, of which the samples choose one member. Numerator a proper
           mixture, denominator the largest likelihood over all variances: an e-process among all that has been seen
           (Wasserman, Ramdas & Balakrishnan, PNAS 2020).
KAUFMANN   Gaussian: penalty 2 ln(4 + ln N), and |S| C(x / |S|) in place of x = ln(n / delta), n alternatives, with
           C(x) = min over l in (1/2, 1) of (g(l) + x) / l, g(l) = 2 l - 2 l ln(4 l) + ln zeta(2 l) - 1/2 ln(1 - l).
           Bernoulli: 3 ln(1 + ln N), and T in place of C. (Kaufmann & Koolen, JMLR 2021, sections 4 and 5.)

The level is reported as x: the answer is certified at delta where x >= ln(1 / delta).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.compiled import inlined, part, view
from .distributions import BERNOULLI, BOUNDED, GAUSSIAN, STUDENT
from .versions import the_distribution

NONE, MIXTURE, KAUFMANN = range(3)
BOUNDARIES = {"none": NONE, "mixture": MIXTURE, "product": MIXTURE, "kaufmann-koolen": KAUFMANN}
RHO: float | None = None  # pulls of an arm at which the Gaussian mixture is sharpest; None: those of `values.RHOS`
LEVELS_SCRATCH = 2 * 400  # scratch of `levels`, two numbers for each depth of its stack
COMMON = 13  # numbers that stand before a problem's own: DISTRIBUTION .. NEEDED + 2, see `Certifier.decider`, PAIRS_AT
DISTRIBUTION, VARIANCE, BOUNDARY, RHO_AT, CENTRE, PRIOR, D_AT, DEPENDENT, DOUBT, NEEDED = range(10)
PAIRS_AT = 12  # whether pairs have contrasts, see `contrasts`
ROUNDED = 2.0**-53  # relative: a rounding error, at most
KAPPA, SHAPE = 0.01, 0.5  # of the normal-inverse-gamma prior: pulls that the centre is worth; shape
HOME = 0.9  # the weight of the prior as it is among wider and narrower ones, and among those with a farther reach


@view
def distribution_of(numbers):
    """The distribution that the numbers name."""
    return the_distribution(numbers[DISTRIBUTION])


class Given(NamedTuple):
    """What a routine is given of one episode, see `nearest_alternative`."""

    numbers: Any
    pulls: Any
    mean: Any
    variance: Any  # of bounded samples with their moments; of the columns of a table scores
    scratch: Any
    inside: Any
    out: Any


@part
def arm_penalty(numbers, N, m, v):
    """The penalty of an arm of N > 0 pulls, mean m and variance v (divisor N)."""
    distribution, boundary = distribution_of(numbers), numbers[BOUNDARY]
    if boundary == NONE or distribution == BOUNDED or boundary == MIXTURE and distribution == GAUSSIAN:
        return 0.0
    if boundary == KAUFMANN:
        return 3.0 * math.log1p(math.log(N)) if distribution == BERNOULLI else 2.0 * math.log(4.0 + math.log(N))
    if distribution == BERNOULLI:
        hits, misses = N * m, N * (1.0 - m)
        entropy = 0.0
        if m > 0.0:
            entropy -= hits * math.log(m)
        if m < 1.0:
            entropy -= misses * math.log1p(-m)
        return math.lgamma(N + 2.0) - math.lgamma(hits + 1.0) - math.lgamma(misses + 1.0) - entropy
    if not v > 0.0:
        return 0.0
    off, best = m - numbers[CENTRE], -math.inf
    wide = round(math.log(min(max(v / numbers[PRIOR], 1e-300), 1e300)) / math.log(4.0))
    far = round(math.log(min(max(KAPPA * off * off / v, 1.0), 1e300)) / math.log(4.0))
    for p in range(4):  # the prior as it is, wider or narrower, with a farther reach, and both
        i, j = float(p % 2) * wide, float(p // 2) * far
        rate, kappa = SHAPE * numbers[PRIOR] * 4.0**i, KAPPA * 4.0**-j
        after = rate + 0.5 * N * v + 0.5 * kappa * N / (kappa + N) * off * off
        mixture = 0.5 * math.log(kappa / (kappa + N)) + SHAPE * math.log(rate / after) + 0.5 * N * math.log(v / after)
        mixture += math.log(HOME if i == 0.0 else 0.5 * (1.0 - HOME) / (abs(i) * (abs(i) + 1.0)))
        best = max(best, mixture + math.log(HOME if j == 0.0 else (1.0 - HOME) / (j * (j + 1.0))))
    return -0.5 * N - best - math.lgamma(SHAPE + 0.5 * N) + math.lgamma(SHAPE)


@inlined
def weighed(numbers, pulls, mean, variance, i, D=1, free=1):
    """Weight, penalty and scale of arm i: of its first dimension of D; `free` dimensions have a say in its scale."""
    N, v = float(pulls[i]), variance[i * D] if distribution_of(numbers) == STUDENT else numbers[VARIANCE]
    if N > 0.0 and v > 0.0:
        far = abs(mean[i * D])
        for d in range(1, free):
            far = max(far, abs(mean[i * D + d]))
        return N, arm_penalty(numbers, N, mean[i * D], v), doubted(numbers, N, far, v)
    return 0.0, 0.0, v


@inlined
def doubted(numbers, N, far, v):
    """The scale v as it counts for N samples of this mean: their sum, and the mean, are off by rounding, s at most.

    N (g + s)^2 / (1 + c) is at most N g^2 + N s^2 / c for every gap g, and so v / 50 more with c = 50 N s^2 / v.
    """
    s = ROUNDED * (N + 4.0) * far
    r = s * s * N / v
    return v * (1.0 + 50.0 * r) if r > 1e-6 and numbers[BOUNDARY] != NONE else v


@part
def refresh(numbers, pulls, mean, variance, scratch, start, end):
    """Bring weights, penalties and scales of the arms from `start` on in the scratch up to date.

    Only arms whose statistics have changed are computed; a new scratch is all 0. Of BOUNDED arms it holds the fourth
    and third moments, from 0 and from 3 K on.
    """
    K, distribution, D = len(pulls), distribution_of(numbers), np.int64(numbers[D_AT])
    if distribution == BOUNDED:
        for a in range(start, end):
            scratch[a], scratch[3 * K + a] = variance[2 * K + a], variance[K + a]
            scratch[2 * K + a], scratch[4 * K + a] = float(pulls[a]), max(variance[a], 1e-12 * numbers[VARIANCE])
        return
    for a in range(start, end):
        N, m = float(pulls[a]), mean[a * D]
        v = variance[a * D] if distribution == STUDENT else numbers[VARIANCE]
        if scratch[a] != N or scratch[K + a] != m or scratch[4 * K + a] != v:
            scratch[a], scratch[K + a] = N, m
            scratch[2 * K + a], scratch[3 * K + a], scratch[4 * K + a] = weighed(
                numbers, pulls, mean, variance, a, D, D
            )


@part
def _zeta(s):
    """Riemann's zeta function of s in (1, 4], by the formula of Euler and Maclaurin."""
    found, n = 0.0, 20.0
    for i in range(1, 20):
        found += float(i) ** -s
    found += n ** (1.0 - s) / (s - 1.0) + 0.5 * n**-s + s / 12.0 * n ** (-s - 1.0)
    return found - s * (s + 1.0) * (s + 2.0) / 720.0 * n ** (-s - 3.0)


@inlined
def _excess(y, share):
    """l y - g(l)."""
    found = share * y - 2.0 * share * (1.0 - math.log(4.0 * share))
    return found - math.log(_zeta(2.0 * share)) + 0.5 * math.log1p(-share)


@part
def _gaussian_level(y):
    """The largest x with C(x) <= y: max over l in (1/2, 1) of l y - g(l), by golden section: g is convex."""
    low, high, ratio = 0.5, 1.0, 0.6180339887498949
    best = -math.inf
    for _ in range(60):
        one, other = high - ratio * (high - low), low + ratio * (high - low)
        f, h = _excess(y, one), _excess(y, other)
        best = max(best, f, h)
        if f < h:
            low = one
        else:
            high = other
    return best


@part
def _inverse(x):
    """The u >= 1 with u - ln u = x >= 1."""
    u = x + math.log(x + math.sqrt(2.0 * max(x - 1.0, 0.0)))
    for _ in range(50):
        u = max(u - (u - math.log(u) - x) * u / max(u - 1.0, 1e-9), 1.0)
    return u


@part
def _exponential_level(y):
    """The largest x with T(x) <= y: T is increasing, and found by halvings. [Kaufmann & Koolen 2021, (15) - (17)]"""
    edge = 1.0 / math.log(1.5)
    low, high = 0.0, max(y, 0.0)
    for _ in range(60):
        x = 0.5 * (low + high)
        z = 0.5 * (_inverse(1.0 + x) + math.log(math.pi * math.pi / 3.0))
        if z >= edge - math.log(edge):
            u = _inverse(z)
            T = 2.0 * math.exp(1.0 / u) * u
        else:
            T = 2.0 * 1.5 * (z - math.log(math.log(1.5)))
        if y >= T:
            low = x
        else:
            high = x
    return low


@part
def enough(numbers, value, arms):
    """x of an alternative of so many arms, of cost less penalties `value`, before alternatives are counted."""
    if numbers[BOUNDARY] != KAUFMANN or value == math.inf:
        return value
    if value <= 0.0:
        return 0.0
    if distribution_of(numbers) == BERNOULLI:
        return arms * _exponential_level(value / arms)
    return max(arms * _gaussian_level(value / arms), 0.0)


def range_of(numbers: Any) -> tuple[float, float]:
    """The low end and the width of the range that a certificate counts on; -inf and inf where there is none."""
    if numbers[DISTRIBUTION] == BOUNDED:
        return float(numbers[CENTRE]), float(numbers[PRIOR])
    return (0.0, 1.0) if numbers[DISTRIBUTION] == BERNOULLI else (-math.inf, math.inf)


def wanted(numbers: Any, x: float, arms: int) -> float:
    """What the cost less its penalties of an alternative of so many arms must reach for `enough` to give x > 0."""
    low, high = x, x
    if numbers[BOUNDARY] != KAUFMANN:
        return x
    while enough(numbers, high, float(arms)) < x:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if enough(numbers, middle, float(arms)) < x else (low, middle)
    return float(high)
