"""evolved: an index of 14 parameters that CMA-ES has tuned on random instances. Fixed budget.

    index = alpha w + beta ln n + sum over j = 1, 2 of c_j tanh(p_j ln(1 + w) + q_j ln n + r_j ln(n K / T) + s_j)     (1)

and the arm with the smallest index is pulled. Nothing in it has a scale: w counts samples in units of what tells an arm
from the boundary. With alpha = 0.675, beta = 1/2 and nothing else it is LSA (Tao et al. 2019) with its alpha = 1.35; the
tuning starts there.

symbols     n pulls of the arm, d its distance from the boundary, K arms, T budget, sigma the sub-Gaussian scale
            w = n (d n / (n + kappa))^2 / (2 v): shrunk by kappa samples on the boundary
            v = (1 - rho) sigma^2 + rho m (1 - m), m the shrunk mean, for Bernoulli arms; sigma^2 for all others
departures  none: this is the source
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs.compiled import inlined, jit

__all__ = ["LSA", "PARAMETERS", "all_indices", "indices"]

Floats = NDArray[np.float64]
PARAMETERS = ("alpha", "beta", "rho", "kappa", *(f"{name}{j}" for j in (1, 2) for name in "cpqrs"))
LSA = (0.675, 0.5, *[0.0] * 12)  # the index of LSA with alpha = 1.35
CLOSE = 1e-3  # variances below this share of sigma^2 are taken for it


@inlined
def _index(n: Any, d: Any, centre: Any, side: Any, sigma2: Any, fair: Any, g: Any, row: Any) -> Any:
    """The index [1]; centre: of Bernoulli arms the boundary, else NaN; side * d = mean - centre; fair = ln(T / K)."""
    drawn = d * n / (n + abs(g[row, 3]))
    v = sigma2
    if not math.isnan(centre):
        m = min(max(centre + side * drawn, 0.0), 1.0)
        rho = min(max(g[row, 2], 0.0), 1.0)
        v = max((1.0 - rho) * sigma2 + rho * m * (1.0 - m), CLOSE * sigma2)
    w = n * drawn * drawn / (2.0 * v)
    ln_n, ln_w = math.log(n), math.log1p(w)
    index = g[row, 0] * w + g[row, 1] * ln_n
    for j in (4, 9):
        if g[row, j] != 0.0:
            index += g[row, j] * math.tanh(
                g[row, j + 1] * ln_w + g[row, j + 2] * ln_n + g[row, j + 3] * (ln_n - fair) + g[row, j + 4]
            )
    return index


@jit
def indices(n: Any, margin: Any, centre: Any, sigma2: Any, fair: Any, genes: Any, per_row: Any, out: Any) -> None:
    """Indices of single arms.

    Args:
        n, margin: (m,), n >= 1. centre: boundary of Bernoulli arms, else NaN. sigma2, fair: sigma^2, ln(T / K).
        genes: (P, 14). per_row: how many arms in a row have the same genes. out: (m,).
    """
    for i in range(len(n)):
        side = 1.0 if margin[i] >= 0.0 else -1.0
        out[i] = _index(n[i], abs(margin[i]), centre, side, sigma2, fair, genes, i // per_row)


@jit
def all_indices(
    pulls: Any, margin: Any, centre: Any, sigma2: Any, fair: Any, genes: Any, per_row: Any, arm: Any, least: Any
) -> None:
    """The arm (E,) with the smallest index in each episode, arms never pulled first, and that index (E,).

    Args:
        pulls, margin: (E, K). centre: (E, K), the boundary of each arm for Bernoulli arms, else NaN.
    """
    E, K = pulls.shape
    for e in range(E):
        arm[e], least[e] = 0, math.inf
        for k in range(K):
            n = pulls[e, k]
            if n == 0:
                arm[e], least[e] = k, -math.inf
                break
            side = 1.0 if margin[e, k] >= 0.0 else -1.0
            value = _index(float(n), abs(margin[e, k]), centre[e, k], side, sigma2, fair, genes, e // per_row)
            if value < least[e]:
                arm[e], least[e] = k, value
