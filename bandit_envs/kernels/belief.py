"""Priors and posteriors of the arms' means. The prior follows from the task alone.

BETA: samples in a known range, low to low + scale, count as shares x of it. A mean is low + scale * Beta(a, b) with
a = 1 + the sum of the x and b = 1 + the sum of the 1 - x: a uniform prior, worth n = 2 samples. The next sample is
taken for an end of the range. For samples of 0 and 1 all of this is exact.

ARMS: samples of no known range, N(mean, scale^2) with scale the task's sigma. A mean is N(place, spread^2) at first.
Place and spread come from the arms, so that neither a shift nor a scale of all arms changes what is believed:
  place_j   sum of w_i x_ij / sum of w_i, w_i = n_i / (n_i + 1), over the arms i that were pulled, x_ij their means in
            coordinate j; or what the problem knows: a threshold, or the middle of a polyhedron
  spread    (spread / sigma)^2 = (Q - N) / (1 + c), and at least 1, Q = 1 + sum of ((x_ij - place_j) / sigma)^2,
            N = sum of 1 / n_i times c_j / m, c_j = m - 1, or m where the place is known, of m arms that were pulled;
            c is the sum of c_j. It is the moment estimator, with one arm more whose spread is sigma
The prior is worth (sigma / spread)^2 samples, at most one: a smaller spread would keep an arm that is far from the
others from being seen. Place and spread count as known: what is not known of them is left out.

NORMAL: place and spread are given, low and scale, a prior worth one sample.

Coordinates of an arm are independent under each prior.

symbols  m, v  posterior mean and variance of a mean     n  pulls + samples that the prior is worth
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .compiled import inlined, jit

BETA, NORMAL, ARMS = 0, 1, 2


class Prior(NamedTuple):
    """The prior of every mean, as kernels take it."""

    kind: int
    low: float
    scale: float


def prior_of(support: tuple[float, float] | None, centre: float, sigma: float) -> Prior:
    """The prior that follows from these facts of a task; see `Task`."""
    if support is None:
        return Prior(ARMS, float(centre), float(sigma))
    return Prior(BETA, float(support[0]), float(support[1] - support[0]))


@inlined
def posterior(prior, pulls, total, place=0.5, worth=2.0):
    """(m, v, n) of a mean of which so many samples with this sum are known; place, worth: of BETA's prior."""
    if prior.kind == BETA:
        n = pulls + worth
        share = ((total - pulls * prior.low) / prior.scale + place * worth) / n
        least = min(place, 1.0 - place) * worth / n
        share = max(min(share, 1.0 - least), least)  # sums of samples are rounded
        return prior.low + prior.scale * share, prior.scale * prior.scale * share * (1.0 - share) / (n + 1.0), n
    n = pulls + 1.0
    return (prior.low + total) / n, prior.scale * prior.scale / n, n


@inlined
def place_and_worth(sigma, places, known, pulls, total, out):
    """Fill out (D,) with the places of ARMS; returns how many samples it is worth.

    They are `places` where these are known, or no arm was pulled.
    """
    K, D = len(pulls), len(places)
    squares, noise, count = 1.0, 0.0, 1.0
    for j in range(D):
        seen, weights, beyond, varied, first = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(K):
            if pulls[i] > 0:
                mean, weight = total[i * D + j] / pulls[i], pulls[i] / (pulls[i] + 1.0)
                first = mean if seen == 0.0 else first  # so that one arm, or equal ones, are exactly at their place
                seen += 1.0
                weights += weight
                beyond += weight * (mean - first)
                varied += 1.0 / pulls[i]
        out[j] = places[j] if known or seen == 0.0 else first + beyond / weights
        free = seen if known else max(seen - 1.0, 0.0)
        count += free
        noise += varied * free / max(seen, 1.0)
        for i in range(K):
            if pulls[i] > 0:
                apart = (total[i * D + j] / pulls[i] - out[j]) / sigma
                squares += apart * apart
    return count / max(squares - noise, count)


@inlined
def sampled(prior, m, v, n, outcome, node):
    """(m, v) after one more sample, and the probability of the sample where it is one of two.

    `outcome` is 1 for the upper end of BETA's range, else 0; `node`: standard deviations that a normal sample is off.
    """
    if prior.kind == BETA:
        share = (m - prior.low) / prior.scale
        now = (share * n + outcome) / (n + 1.0)
        chance = share if outcome > 0.0 else 1.0 - share
        return prior.low + prior.scale * now, prior.scale * prior.scale * now * (1.0 - now) / (n + 2.0), chance
    return m + math.sqrt(v / (n + 1.0)) * node, v * n / (n + 1.0), 1.0


# Where the boundary is a mean that is known beforehand, the error of a scalar Bernoulli arm is exact under a uniform
# prior, as its posterior is Beta. For more than EXACT pulls, and for all other arms, it is Phi(-z), where z is
# the distance from the boundary, and the tolerance beyond it, in standard errors; it is 1/2 for an arm never pulled.
EXACT = 10_000


@jit
def beta_below(x, a, b):
    """P(Beta(a, b) <= x), by the continued fraction of the incomplete beta function (DLMF 8.17.22, Lentz's method)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    flip = x > (a + 1.0) / (a + b + 2.0)  # the fraction converges fast on the other side
    if flip:
        a, b, x = b, a, 1.0 - x
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for i in range(1, EXACT):
        even = i * (b - i) * x / ((a + 2.0 * i - 1.0) * (a + 2.0 * i))
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        fraction *= d * c
        odd = -(a + i) * (a + b + i) * x / ((a + 2.0 * i) * (a + 2.0 * i + 1.0))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        fraction *= d * c
        if abs(d * c - 1.0) < 1e-9:
            break
    below = math.exp(front) / a * fraction
    return 1.0 - below if flip else below
