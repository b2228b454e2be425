"""What an agent sees: the statistics themselves, or features of them that are normalised for learning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiled import jit

__all__ = ["FEATURES", "features"]

FEATURES = (
    "pulls",  # ln(1 + pulls) / ln(1 + scale), at most 1; scale: budget, else max_pulls, else 10^6
    "share",  # pulls of the arm / pulls of all arms
    "width",  # 1 / sqrt(1 + pulls)
    "margin",  # m / (|m| + sigma), m the margin of the empirical mean
    "score",  # z / (1 + |z|), z the margin in standard errors (the prior worth one sample of variance sigma^2)
    "error",  # Phi(-|z|): the probability that the arm is on the other side of the boundary; 1/2 if never pulled
    "left",  # share of the budget left, 0 without a budget
    "horizon",  # ln(1 + pulls left per arm) / ln(1 + scale), at most 1; 0 without a budget
)


@jit
def _features(pulls: Any, margin: Any, variance: Any, remaining: Any, sigma: Any, scale: Any, D: Any, out: Any) -> Any:
    E, K = pulls.shape
    unit = 1.0 / math.log1p(scale)
    for e in range(E):
        spent = 0
        for k in range(K):
            spent += pulls[e, k]
        left = max(float(remaining[e, 0]), 0.0)
        share_left = left / max(left + spent, 1.0)
        horizon = min(math.log1p(left / K) * unit, 1.0)
        for k in range(K):
            n, m, v = float(pulls[e, k]), margin[e, k], 0.0
            for d in range(D):
                v += variance[e, k * D + d] / D
            if n == 0.0 or math.isnan(m):
                m = 0.0
            z = m * math.sqrt(n * (n + 1.0) / (v * n + sigma * sigma))
            f = out[e, k]
            f[0] = min(math.log1p(n) * unit, 1.0)
            f[1] = n / max(spent, 1)
            f[2] = 1.0 / math.sqrt(1.0 + n)
            f[3] = m / (abs(m) + sigma)
            f[4] = z / (1.0 + abs(z))
            f[5] = 0.5 * math.erfc(abs(z) * 0.7071067811865476)
            f[6] = share_left
            f[7] = horizon


def features(
    pulls: NDArray[np.int64], margin: NDArray[np.float64], variance: NDArray[np.float64],
    remaining: NDArray[np.int64], *, sigma: float, scale: float, out: NDArray[np.float32],
) -> None:  # fmt: skip
    """Fill `out` (E, K, F) float32 with the features of `FEATURES`, all in [-1, 1].

    Args:
        pulls: (E, K). margin: (E, K), of the empirical means. variance: (E, K) or (E, K, D). remaining: (E, 1).
        sigma: sub-Gaussian scale of a sample. scale: pulls at which the feature `pulls` reaches 1.
    """
    E, K = pulls.shape
    spread = np.ascontiguousarray(variance).reshape(E, -1)
    _features(pulls, np.ascontiguousarray(margin), spread, remaining, sigma, scale, spread.shape[1] // K, out)
