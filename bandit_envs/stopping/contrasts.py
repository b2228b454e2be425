"""Evidence that arm i is better than arm j, of pairs in TopK, BestArm and AllGood: a quick part of `lifts`.

symbols     S, N the sum and the number of samples of an arm; psi, tilts s, t >= 0 and their weights w: see `lifts`;
            u = a c + b, of the null hypothesis mu_i <= a mu_j + b
contrast    C = min over c of ln sum_k w_k exp(s_k S_i - N_i psi(s_k, u) - t_k S_j - N_j psi(-t_k, c))
tilts       `NEAR` of the sums s + t and of the ratios t / s, those about the likeliest: terms are positive, so that
            the others may be left out. They are the same for all a and b: an ordered pair of arms has one
            supermartingale, whatever is claimed of it (docs/certificates-theory.md counts on that)
mixture     `CONTRAST` of the weight is the contrast's, the rest that of the product of the arms' own mixtures, as in
            `values`: it is sharper where few samples are far apart, and a quick bound from below
bounds      no mixture exceeds the likelihood ratio of the nearest means, `pair_cost`: most looks end there. The sum is
            convex in c, so that tangents bound it from below, and the search may end at any time
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels.compiled import inlined, part
from .boundaries import PAIRS_AT, VARIANCE, distribution_of
from .distributions import BERNOULLI, GAUSSIAN, pair_cost
from .lifts import END, TILTS, Tangents, narrowed
from .values import pair_value

CONTRAST = 0.97
# The better arm, i, often has more pulls: of the ratios t / s most weight is of those from 1 to 2.2.
USUAL, SPREAD, EVEN = (0.135, 0.25), (1.0, 1.1), 0.1  # Gaussian, Bernoulli; the part of the weight that is even
STEP, LOWEST, RATIOS = 2.2, -4, 12
CENTRE, FALL, ABOVE = 0.2, 0.4, 0.12  # the part of the weight that is even above 1
NEAR, STEPS, CLOSE, LOST = 4, 60, 1e-4, 40.0  # tilts, and ratios; of the search: evaluations; nats; a term that is lost


def _terms() -> Any:
    """s, t (tilts, ratios), and the logarithms of the weights, (2, tilts, ratios): Gaussian, Bernoulli."""
    tilts, ratios = np.array(TILTS)[:, None], STEP ** np.arange(LOWEST, LOWEST + RATIOS)
    peak, above = np.exp(-np.abs(np.log(ratios) - CENTRE) / FALL), ratios > 1.0
    shares = (1.0 - ABOVE) * peak / peak.sum() + ABOVE * above / above.sum()
    bells = [np.exp(-0.5 * (np.log(tilts / u) / x) ** 2) for u, x in zip(USUAL, SPREAD, strict=True)]
    sums = np.array([(1.0 - EVEN) * bell / bell.sum() + EVEN / len(TILTS) for bell in bells])
    return tilts / (1.0 + ratios), tilts * ratios / (1.0 + ratios), np.log(sums * shares)


S, T, WEIGHT = _terms()
UP, DOWN = np.expm1(S), np.expm1(-T)


@inlined
def log_odds(p):
    """ln(p / (1 - p))."""
    return math.log(p / (1.0 - p))


@part
def likeliest(is_bernoulli, i, j, a, u, c):
    """The first of `NEAR` tilts, about the difference of arms i and j, (pulls, mean) each, that lie beside u and c.

    And the first of as many ratios, about that at which the sum hardly depends on c.
    """
    if is_bernoulli:
        x, y = (i[0] * i[1] + 0.5) / (i[0] + 1.0), (j[0] * j[1] + 0.5) / (j[0] + 1.0)
        found = max(log_odds(x) - log_odds(u), 0.0) + max(log_odds(c) - log_odds(y), 0.0)
    else:
        found = i[1] - u + c - j[1]
    tilt = 0
    for k in range(2, len(TILTS) - NEAR + 2):
        tilt += TILTS[k] < found
    ratio = math.floor(math.log(a * i[0] / j[0]) / math.log(STEP)) - LOWEST - NEAR // 2 + 1
    return tilt, np.int64(min(max(ratio, 0), RATIOS - NEAR))


@part
def some_terms(is_bernoulli, tilt, ratio, i, j, a, b, c):
    """The logarithm of the sum over the tilts and ratios from these on at mu_j = c, and its derivative."""
    top, total, rise = -math.inf, 0.0, 0.0
    sum_i, sum_j, N, M, u = i[0] * i[1], j[0] * j[1], i[0], j[0], a * c + b
    kind = 1 if is_bernoulli else 0
    for k in range(tilt, tilt + NEAR):
        for p in range(ratio, ratio + NEAR):
            s, t = S[k, p], T[k, p]
            if is_bernoulli:
                x, y = 1.0 + u * UP[k, p], 1.0 + c * DOWN[k, p]
                f, slope, g, fall = math.log(x), UP[k, p] / x, math.log(y), DOWN[k, p] / y
            else:
                f, slope, g, fall = s * (u + 0.5 * s), s, t * (0.5 * t - c), -t
            term = WEIGHT[kind, k, p] + s * sum_i - N * f - t * sum_j - M * g
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
    """C, from below; -inf where the means are so.

    Args:
        i, j: (pulls, mean) of the two arms, pulls > 0; of (sub-)Gaussian ones in units of sigma.
        a, b: of the null hypothesis mu_i <= a mu_j + b, a > 0.
        needed, plenty: it is enough to know that it does not reach `needed`, or that it does reach `plenty`.
    """
    N, x, M, y = i[0], i[1], j[0], j[1]
    if not x > a * y + b:
        return -math.inf
    c, var, bottom, top = (N * a * (x - b) + M * y) / (N * a * a + M), 1.0, -math.inf, math.inf
    if is_bernoulli:
        bottom, top = max(0.0, -b / a), min(1.0, (1.0 - b) / a)
        if bottom > top:
            return math.inf  # no means are there
        bottom, top = bottom + END, top - END
        if bottom >= top:
            return -math.inf
        c = min(max(c, bottom), top)
        var = max(c * (1.0 - c), END)
    tilt, ratio = likeliest(is_bernoulli, i, j, a, a * c + b, c)
    none = c, -math.inf, 0.0
    known = Tangents(none, none, -math.inf, 0.1 * math.sqrt(var / (N + M)))
    for step in range(STEPS):
        value, slope = some_terms(is_bernoulli, tilt, ratio, i, j, a, b, c)
        if value < needed:
            return value
        if (slope < 0.0 and c >= top) or (slope >= 0.0 and c <= bottom):
            return value - END * abs(slope)
        known, c, apart = narrowed(known, c, value, slope, step, 4.0)
        if known.floor >= plenty or apart <= CLOSE:
            break
        c = min(max(c, bottom), top)
    return known.floor


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
