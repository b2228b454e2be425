"""A test of a claimed scale: whether samples vary too much for it. It holds at all times.

Where X is sub-Gaussian with scale sigma and mean mu, E exp((1 - u) (X - mu)^2 / (2 sigma^2)) <= u^(-1/2) for 0 < u < 1:
the left side is the mean of exp(g (X - mu) sqrt(1 - u) / sigma) over a standard normal g. An arm of N pulls and
empirical variance v has N v <= sum of (X_i - mu)^2. So
    e(u) = exp((1 - u) N v / (2 sigma^2)) u^(N / 2)
is no larger than a supermartingale begun at 1, whatever rule pulls. So are products over arms, and means over u, over
arms and over coordinates. By Ville's inequality their mean ever reaches 1 / ALPHA with probability ALPHA at most.

The test is necessary and not sufficient (docs/certificates.md). A claim counts once every arm has `EACH` results, and
`REPEATS` results, those beyond the first of each arm, are repeated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import part
from .boundaries import D_AT, PRIOR

ALPHA = 1e-3  # with which a scale that is right is refuted in an episode, at most
STEP, STEPS = 0.7, 24  # u = STEP, STEP^2, ...
REPEATS, EACH = 32, 8


class Trial(NamedTuple):
    """What the results say of a claimed scale."""

    refuted: bool  # they vary too much for it
    repeats: int  # repeated results so far
    fewest: int  # results of an arm

    @property
    def each(self) -> int:
        """How many results are needed of each arm."""
        return EACH

    @property
    def every(self) -> int:
        """How many repeated results are needed in all."""
        return REPEATS

    @property
    def waits(self) -> bool:
        """Whether there are too few of them."""
        return self.early or self.fewest < self.each

    @property
    def early(self) -> bool:
        """Whether too few are repeated in all, so that they bear nothing out of any arm."""
        return self.repeats < self.every


@part
def refutation(numbers, pulls, variance):
    """The mean of the e(u): half of it over arms and coordinates, half over coordinates of the products over arms."""
    K, D, found = len(pulls), np.int64(numbers[D_AT]), 0.0
    for step in range(1, STEPS + 1):
        u = STEP**step
        off, drift = 0.5 * (1.0 - u) / numbers[PRIOR], 0.5 * math.log(u)
        for d in range(D):
            total = 0.0
            for k in range(K):
                one = pulls[k] * (off * variance[k * D + d] + drift)
                total += one
                found += math.exp(one) / K
            found += math.exp(total)
    return found / (2.0 * D * STEPS)


@part
def is_borne_out(numbers, pulls, variance):
    """Whether a claimed scale counts: enough results are repeated, and they do not refute it."""
    total = 0
    for k in range(len(pulls)):
        if pulls[k] < EACH:
            return False
        total += pulls[k] - 1
    return total >= REPEATS and refutation(numbers, pulls, variance) < 1.0 / ALPHA


def trial(numbers: NDArray[np.float64], pulls: NDArray[np.int64], variance: NDArray[np.float64]) -> Trial:
    """What the results of an episode, pulls (K,) and variances, say of the scale that a certifier counts on."""
    against = refutation(numbers, pulls, np.ascontiguousarray(variance, np.float64).reshape(-1))
    return Trial(bool(against >= 1.0 / ALPHA), int(np.maximum(pulls - 1, 0).sum()), int(pulls.min()))
