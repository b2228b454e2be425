"""Evidence against a mean, of samples in a known range of which nothing else is known: betting, by four moments.

docs/certificates-theory.md has the theory (Waudby-Smith & Ramdas, JRSS B 2024, section 4). The range is scaled to
[0, 1]. The capital against a mean of at most c is prod (1 + f (x_n / c - 1)), f the share that is bet; against "at
least c": of 1 - x.

nodes     The capital is least, of all samples with the same moments, where they lie on three points: 0 and two others,
          those of Gauss and Radau's quadrature. (Where higher moments are unknown: on two, 0 and m + v / m.)
bets      f of `BETS`, with the weights `SHARES`. Of the sum, `WINDOW` bets are taken, those that suit the number of
          samples: terms are positive, so that the others may be left out.
pairs     The weights of two bets k and l fall as `ALIKE`^|k - l|; `ONE` of the weight is for bets on one of the arms
          alone, `NONE_AT` for none, so that what a true mean costs is bounded. The logarithm of the mixture is convex
          in mu_j: tangents bound it from below, so that the search may end at any time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..kernels.compiled import inlined, part
from .boundaries import CENTRE, PRIOR, RHO_AT, ROUNDED
from .lifts import Tangents, narrowed

BETS = (0.93, 0.6, 0.33, 0.18, 0.1, 0.05, 0.025, 0.012, 0.006, 0.003, 0.001, 0.0004)
SHARES = (*[0.15] * 6, 0.03, 0.025, 0.02, 0.01, 0.01, 0.005)  # they sum to 1
WINDOW = 6
BETS_SCRATCH = 4 * WINDOW  # floats to work in
REST = tuple(math.log1p(-f) for f in BETS)  # of a sample at 0
ALIKE, ONE, NONE_AT = 0.65, 0.18, 0.02
NEARNESS = tuple(ALIKE**n for n in range(len(BETS)))
_SIZES = [math.sqrt(share) for share in SHARES]
_TOTAL = sum(x * y * NEARNESS[abs(k - n)] for k, x in enumerate(_SIZES) for n, y in enumerate(_SIZES))
SIZES = tuple(x * math.sqrt((1.0 - ONE - NONE_AT) / _TOTAL) for x in _SIZES)  # of bets k and l: times each other
NEAR = 1e-12  # of the range: a mean that is nearer to an end counts as so far from it
STEPS, CLOSE = 60, 1e-6  # of the search for the least product: tangents at most, and its relative error
LOW_AT, WIDTH_AT = CENTRE, PRIOR  # in the numbers: the lowest sample, and the width of the range
EACH_AT = RHO_AT  # by how much a mean may be off for each sample that was added, in widths; see `margin`


class Bounded(NamedTuple):
    """What has been seen of an arm, its range scaled to [0, 1]: pulls, mean, and central moments (NaN: unknown)."""

    N: float
    mean: float
    variance: float
    third: float
    fourth: float
    margin: float  # by which the mean may be off


class Nodes(NamedTuple):
    """Two points a and b with the shares p and q of N samples; the others are at 0. The bets are those from `first`."""

    N: float
    a: float
    p: float
    b: float
    q: float
    first: int


@inlined
def margin(numbers, N):
    """By how much the mean of N samples may be off, in widths of the range.

    The sum of what samples exceed the low end by is off by the rounding of N additions. A range that does not begin at
    0 adds what is rounded when the low end, of some 2^52 spacings, is put on top of the mean, and taken off again.
    """
    low, width = numbers[LOW_AT], numbers[WIDTH_AT]
    apart = 16.0 * ROUNDED * max(abs(low), abs(low + width)) / width if low != 0.0 else 0.0
    return N * numbers[EACH_AT] + apart


@inlined
def scaled(numbers, N, mean, variance, third, fourth):
    """A `Bounded`."""
    unit = 1.0 / numbers[WIDTH_AT]
    square = unit * unit
    m = min(max((mean - numbers[LOW_AT]) * unit, 0.0), 1.0)
    return Bounded(N, m, variance * square, third * square * unit, fourth * square * square, margin(numbers, N))


@inlined
def bounded_at(numbers, mean, scratch, i):
    """What has been seen of arm i, from the scratch that `refresh` has filled."""
    K = len(mean)
    return scaled(numbers, scratch[2 * K + i], mean[i], scratch[4 * K + i], scratch[3 * K + i], scratch[i])


@inlined
def adapted(most, N, variance):
    """The variance of an arm of N pulls as if six, of the largest variance of the range, came on top: its weight."""
    return variance + 6.0 * most / (N + 6.0)


@part
def nodes_of(N, m, v, third, fourth):
    """The `Nodes` of samples that are bet to be larger than some mean."""
    first, reach = 0, 4.0 * math.sqrt(10.0 / (N * v + 1.0)) * m
    while first < len(BETS) - WINDOW and BETS[first] > reach:
        first += 1
    if not m > 0.0:
        return Nodes(N, 0.0, 0.0, 0.0, 0.0, first)
    d = v / m  # the samples weighed by their size have the mean m + d, and the variance s
    s = v + third / m - d * d
    if s > 1e-9 * v:
        t = third - 3.0 * d * v - d * d * d + (fourth - 3.0 * d * third + 3.0 * d * d * v) / m
        half = 0.5 * t / s
        root = math.sqrt(half * half + s)
        a, b = m + d + half - root, m + d + half + root
        if a > NEAR:
            share = 0.5 * (1.0 + half / root)
            p, q = m * share / a, m * (1.0 - share) / b
            total = max(p + q, 1.0)  # 1 where no sample is at 0, but for rounding
            if total <= 1.0 + 1e-9:
                return Nodes(N, a, p / total, b, q / total, first)
    return Nodes(N, m + d, m / (m + d), m + d, 0.0, first)


@inlined
def bets_on(arm, larger):
    """The nodes for bets that samples x are larger, or else that 1 - x is."""
    m, third = (arm.mean, arm.third) if larger else (1.0 - arm.mean, -arm.third)
    return nodes_of(arm.N, m - arm.margin, arm.variance, third, arm.fourth)


@inlined
def capitals(nodes, c, logs, slopes):
    """Fill in the logarithms of the capitals (WINDOW,) against a mean of at most c > 0, and their derivatives in c.

    Returns the largest logarithm.
    """
    x, y, rest, top = nodes.a / c - 1.0, nodes.b / c - 1.0, 1.0 - nodes.p - nodes.q, -math.inf
    for k in range(WINDOW):
        f = BETS[nodes.first + k]
        u, w = 1.0 + f * x, 1.0 + f * y
        logs[k] = nodes.N * (rest * REST[nodes.first + k] + nodes.p * math.log(u) + nodes.q * math.log(w))
        slopes[k] = -nodes.N / c * f * (nodes.p * (x + 1.0) / u + nodes.q * (y + 1.0) / w)
        top = max(top, logs[k])
    return top


@part
def bet_arm(numbers, arm, mu, work):
    """The evidence against a mean of an arm as far from its own as mu, or further; work: `BETS_SCRATCH` floats."""
    c, own, falls = (mu - numbers[LOW_AT]) / numbers[WIDTH_AT], arm.mean, True
    if c >= own:
        c, own, falls = 1.0 - c, 1.0 - own, False
    if c < -NEAR:
        return math.inf  # no mean is there
    c = max(c, NEAR)
    if not (arm.N > 0.0 and c < own):
        return 0.0
    nodes = bets_on(arm, falls)
    logs, slopes, total = work[:WINDOW], work[WINDOW : 2 * WINDOW], 0.0
    top = capitals(nodes, c, logs, slopes)
    for k in range(WINDOW):
        total += SHARES[nodes.first + k] * math.exp(logs[k] - top)
    found = top + math.log(total)
    return found if found == found else 0.0  # NaN: of moments that no samples have


@part
def product(up, down, c, d, work):
    """The logarithm of the mixture of bets on two arms, against means c and d, and its derivatives in them."""
    W = WINDOW
    logs, slopes, others, climbs = work[:W], work[W : 2 * W], work[2 * W : 3 * W], work[3 * W :]
    top, peak = max(capitals(up, c, logs, slopes), 0.0), max(capitals(down, d, others, climbs), 0.0)
    total, rise, climb = NONE_AT * math.exp(-top - peak), 0.0, 0.0
    for k in range(WINDOW):
        logs[k], others[k] = math.exp(logs[k] - top), math.exp(others[k] - peak)
        one = ONE / 2.0 * SHARES[up.first + k] * logs[k] * math.exp(-peak)
        other = ONE / 2.0 * SHARES[down.first + k] * others[k] * math.exp(-top)
        total, rise, climb = total + one + other, rise + one * slopes[k], climb + other * climbs[k]
    for k in range(WINDOW):
        size = SIZES[up.first + k] * logs[k]
        for n in range(WINDOW):
            apart = abs(up.first + k - down.first - n)
            term = size * SIZES[down.first + n] * NEARNESS[apart] * others[n]
            total, rise, climb = total + term, rise + term * slopes[k], climb + term * climbs[n]
    return top + peak + math.log(total), rise / total, climb / total


@part
def bet_pair(numbers, lower, raised, a, b, floor, needed, work):
    """The evidence against mu_i <= a mu_j + b and mu_j >= floor, from below, of arms i and j, two `Bounded`; a > 0.

    `needed`: it is enough to know whether the evidence reaches this; -inf: its value is wanted.
    """
    low_mean, width = numbers[LOW_AT], numbers[WIDTH_AT]
    b, floor = (b + (a - 1.0) * low_mean) / width, (floor - low_mean) / width
    low = max(floor, -b / a, 0.0)
    if low > 1.0 + NEAR:
        return math.inf  # no means are there
    high = max(min((1.0 - b) / a, 1.0), low)  # from there on mu_i is at the end of the range, and mu_j costs more
    if not (lower.N > 0.0 and raised.N > 0.0):
        return 0.0
    up, down, low, high = bets_on(lower, True), bets_on(raised, False), low + NEAR, high - NEAR
    s, t = (lower.variance + 1.0 / (lower.N + 4.0)) / lower.N, (raised.variance + 1.0 / (raised.N + 4.0)) / raised.N
    y, none = (s * raised.mean + t * a * (lower.mean - b)) / (s + t * a * a), -math.inf
    known = Tangents((low, none, 0.0), (high, none, 0.0), none, math.sqrt(t))
    for step in range(STEPS):
        y = min(max(y, low), high)
        value, rise, against = product(up, down, min(max(a * y + b, NEAR), 1.0), max(1.0 - y, NEAR), work)
        slope = a * rise - against
        if value < needed:
            return value
        if (slope < 0.0 and y >= high) or (slope >= 0.0 and y <= low):
            return value - NEAR * abs(slope)
        known, y, apart = narrowed(known, y, value, slope, step, 2.0)
        if known.floor >= needed > none or apart <= CLOSE * (1.0 + abs(known.floor)):
            break
    return known.floor
