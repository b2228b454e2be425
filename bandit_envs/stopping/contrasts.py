"""Evidence that arm i is better than arm j, of pairs in TopK, BestArm and AllGood: a quick part of `lifts`.

symbols     S, N the sum and the number of samples of an arm; psi, tilts s, t >= 0 and their weights w: see `lifts`;
            u = a c + b, of the null hypothesis mu_i <= a mu_j + b
contrast    C = min over c of ln sum_k w_k exp(s_k S_i - N_i psi(s_k, u) - t_k S_j - N_j psi(-t_k, c))
tilts       `NEAR` of the sums s + t, those about the likeliest, and all ratios: terms are positive, so that the others
            may be left out. They are those of a = 1 for all a and b: an ordered pair of arms has one supermartingale,
            whatever is claimed of it (docs/certificates-theory.md counts on that)
mixture     `CONTRAST` of the weight is the contrast's, the rest that of the product of the arms' own mixtures, as in
            `values`: it is sharper where few samples are far apart, and a quick bound from below
bounds      no mixture exceeds the likelihood ratio of the nearest means, `pair_cost`: most looks end there

The sum is convex in c, so that tangents bound it from below, and the search may end at any time.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels.compiled import inlined, part
from .boundaries import PAIRS_AT, VARIANCE, distribution_of
from .distributions import BERNOULLI, GAUSSIAN, pair_cost
from .lifts import END, PAIRS, TILTS, WEIGHTS
from .values import pair_value

CONTRAST = 0.95
NEAR, ROWS = 4, len(PAIRS)
STEPS, CLOSE, LOST = 60, 1e-4, 40.0  # of the search: evaluations; nats; a term e^-40 of the largest is rounding
_TILTS = np.array(TILTS)[:, None]
S, T = _TILTS / (1.0 + PAIRS[:, 0]), _TILTS * (PAIRS[:, 0] / (1.0 + PAIRS[:, 0]))  # (tilts, ratios)
UP, DOWN, WEIGHT = np.expm1(S), np.expm1(-T), WEIGHTS[:, None] + PAIRS[:, 1]


@inlined
def log_odds(p):
    """ln(p / (1 - p))."""
    return math.log(p / (1.0 - p))


@part
def likeliest(is_bernoulli, i, j, u, c):
    """The first of `NEAR` tilts, about the difference of arms i and j, (pulls, mean) each, that lie beside u and c."""
    if is_bernoulli:
        x, y = (i[0] * i[1] + 0.5) / (i[0] + 1.0), (j[0] * j[1] + 0.5) / (j[0] + 1.0)
        found = max(log_odds(x) - log_odds(u), 0.0) + max(log_odds(c) - log_odds(y), 0.0)
    else:
        found = i[1] - u + c - j[1]
    first = 0
    for k in range(2, len(TILTS) - NEAR + 2):
        first += TILTS[k] < found
    return first


@part
def some_terms(is_bernoulli, first, i, j, a, b, c):
    """The logarithm of the sum over the tilts from `first` on at mu_j = c, and its derivative; units: 1 is sigma."""
    top, total, rise = -math.inf, 0.0, 0.0
    sum_i, sum_j, N, M, u = i[0] * i[1], j[0] * j[1], i[0], j[0], a * c + b
    for k in range(first, first + NEAR):
        for p in range(ROWS):
            s, t = S[k, p], T[k, p]
            if is_bernoulli:
                x, y = 1.0 + u * UP[k, p], 1.0 + c * DOWN[k, p]
                f, slope, g, fall = math.log(x), UP[k, p] / x, math.log(y), DOWN[k, p] / y
            else:
                f, slope, g, fall = s * (u + 0.5 * s), s, t * (0.5 * t - c), -t
            term = WEIGHT[k, p] + s * sum_i - N * f - t * sum_j - M * g
            if term > top:
                scale = math.exp(top - term)
                total, rise, top = total * scale, rise * scale, term
            elif term < top - LOST:
                continue
            share = math.exp(term - top)
            total, rise = total + share, rise + share * (-N * a * slope - M * fall)
    return top + math.log(total), rise / total


@part
def contrast(is_bernoulli, i, j, a, b, needed, plenty):
    """C, from below; 0 where the means are so.

    Args:
        i, j: (pulls, mean) of the two arms, pulls > 0; of (sub-)Gaussian ones in units of sigma.
        a, b: of the null hypothesis mu_i <= a mu_j + b, a > 0.
        needed, plenty: it is enough to know that it does not reach `needed`, or that it does reach `plenty`.
    """
    N, x, M, y = i[0], i[1], j[0], j[1]
    if not x > a * y + b:
        return 0.0
    c, var, bottom, top = (N * a * (x - b) + M * y) / (N * a * a + M), 1.0, -math.inf, math.inf
    if is_bernoulli:
        bottom, top = max(0.0, -b / a), min(1.0, (1.0 - b) / a)
        if bottom > top:
            return math.inf  # no means are there
        bottom, top = bottom + END, top - END
        if bottom >= top:
            return 0.0
        c = min(max(c, bottom), top)
        var = max(c * (1.0 - c), END)
    first = likeliest(is_bernoulli, i, j, a * c + b, c)
    left = right = floor = -math.inf
    x_left, x_right, fall, climb, stride = c, c, 0.0, 0.0, 0.1 * math.sqrt(var / (N + M))
    for step in range(STEPS):
        value, slope = some_terms(is_bernoulli, first, i, j, a, b, c)
        if value < needed:
            return value
        if (slope < 0.0 and c >= top) or (slope >= 0.0 and c <= bottom):
            return value - END * abs(slope)
        if slope < 0.0:
            x_left, left, fall = c, value, slope
        else:
            x_right, right, climb = c, value, slope
        if left > -math.inf and right > -math.inf:
            c = (right - left + fall * x_left - climb * x_right) / (fall - climb)
            floor = max(floor, left + fall * (c - x_left))
            if floor >= plenty or min(left, right) - floor <= CLOSE:
                break
            c = 0.5 * (x_left + x_right) if step % 3 == 2 else c
        else:
            c = min(max(c + stride if slope < 0.0 else c - stride, bottom), top)
            stride *= 4.0
    return floor


@part
def pair_evidence(numbers, lower, raised, move, needed=-math.inf, plenty=math.inf):
    """The value of a `Move` of two arms, where `numbers` say that pairs have contrasts; else `pair_value`.

    `needed`, `plenty`: see `contrast`.
    """
    distribution = distribution_of(numbers)
    is_bernoulli, shown = distribution == BERNOULLI, lower.weight > 0.0 and raised.weight > 0.0
    if numbers[PAIRS_AT] == 0.0 or not (shown and (is_bernoulli or distribution == GAUSSIAN)):
        return pair_value(numbers, lower, raised, move)
    if needed > -math.inf:
        cost, _ = pair_cost(distribution, lower, raised, move)
        if cost < needed:
            return cost
    value = pair_value(numbers, lower, raised, move) + math.log1p(-CONTRAST)
    if value >= plenty:
        return value
    least, (a, b, _) = -math.log(CONTRAST), move
    if is_bernoulli:
        i, j = (lower.weight, lower.mean), (raised.weight, raised.mean)
    else:  # sums are of what differs: means may be far from 0. The scale may be larger for the rounding of one arm
        v, gap = numbers[VARIANCE], lower.mean - (a * raised.mean + b)
        i, j, b = (lower.weight * (v / lower.scale), gap / math.sqrt(v)), (raised.weight * (v / raised.scale), 0.0), 0.0
    return max(value, contrast(is_bernoulli, i, j, a, b, needed + least, plenty + least) - least)
