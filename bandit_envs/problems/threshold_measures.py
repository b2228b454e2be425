"""How hard a thresholding instance is.

Tao, Blanco, Peng & Zhou, "Thresholding Bandit with Optimal Aggregate Regret", NeurIPS 2019, section 3. Pure
functions of the gaps; the aggregate regret is the expected number of wrong labels.

symbols   D_i = |mean_i - threshold| gap, K arms, T budget (pulls), x_i pulls of arm i, c > 0 constant of the exponent,
          P_c least sum of exp(-c x_i D_i^2) over real x >= 0 with sum x = T, P*_c the same over whole numbers

An algorithm that knows the gaps errs on at most 2 P*_2(T) arms in expectation, for samples in [0, 1] (Hoeffding).

An arm on the threshold, D_i = 0, is the limit D_i -> 0 of the definitions: no allocation finds its side, so that an
optimal one gives it x_i = ((Phi + ln D_i) / D_i^2)^+ = 0 pulls, and it adds exp(0) = 1 to P_c and P*_c. A gap so small
that c D_i^2 is below NEGLIGIBLE counts as 0: no budget makes a difference to it.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-290  # c D^2 below this counts as 0; above it, all sums stay within the range of floats


def hardness(gaps: ArrayLike) -> float:
    """H = sum_i D_i^-2, in pulls; inf if a gap is 0. [Locatelli, Gutzeit & Carpentier 2016, with tolerance 0]"""
    with np.errstate(divide="ignore", over="ignore"):
        return float((_gaps(gaps) ** -2.0).sum())


def phi(gaps: ArrayLike, budget: float, c: float = 2.0) -> float:
    """Phi, to which c/2 x_i D_i^2 + ln(1/D_i) is equal in every arm that the optimum of P_c pulls. [section 3, eq. 9]

    The largest Phi with sum_i (2/c) ((Phi + ln D_i) / D_i^2)^+ <= T; the paper prints c = 2. inf if all gaps are 0.

    Args:
        gaps: shape (K,), D >= 0.
        budget: T >= 0 pulls.
        c: constant of the exponent, > 0.
    """
    return _optimum(gaps, budget, c)[0]


def optimal_allocation(gaps: ArrayLike, budget: float, c: float = 2.0) -> Floats:
    """Real-valued optimum of P_c: x_i = (2/c) ((Phi + ln D_i) / D_i^2)^+, (K,), sum x = T. [section 3, eq. 9]

    Arms with gap 0 get 0 pulls; if all gaps are 0, every allocation is optimal and T / K each is returned.

    Args as for `phi`.
    """
    return _optimum(gaps, budget, c)[1]


def optimal_error(gaps: ArrayLike, budget: float, c: float = 2.0) -> float:
    """P_c(T): the least sum_i exp(-c x_i D_i^2) over real x >= 0 with sum x = T. [section 3]

    P_c(T) <= P*_c(T) <= P_c(T - K) [eq. 8]. Args as for `phi`.
    """
    d = _told_apart(gaps, budget, c)
    return float(np.exp(-c * optimal_allocation(d, budget, c) * d * d).sum())


def optimal_error_integer(gaps: ArrayLike, budget: int, c: float = 2.0) -> float:
    """P*_c(T): the least sum_i exp(-c x_i D_i^2) over whole numbers x >= 0 with sum x = T. [section 3]

    Pull k + 1 of arm i takes off exp(-c k D_i^2) (1 - exp(-c D_i^2)), less and less as k grows, so that the T pulls
    that take off most are an optimum. Those that take off e^-L or more are pulls 1 to floor(z_i) + 1 of arm i, with
    z_i = (L + ln(1 - exp(-c D_i^2))) / (c D_i^2) >= 0. At the L where the z_i^+ sum to T - K these are at most T pulls;
    floor(z_i) of them are taken at once, and the others, at most 2K, from a heap. Args as for `phi`, T a whole number.
    """
    d = _told_apart(gaps, budget, c)
    if budget != math.floor(budget):
        raise ValueError(f"budget={budget} must be a whole number >= 0")
    rates = c * d[d > 0] ** 2
    if not rates.size:
        return float(len(d))
    first = -np.log(-np.expm1(-rates))  # -ln of what the first pull takes off
    x = np.floor(_fill(first, 1 / rates, max(0, budget - len(rates)))[1])
    left = int(budget - x.sum())
    heap = [(float(t), i) for i, t in enumerate(first + x * rates)]  # -ln of what the next pull takes off
    heapq.heapify(heap)
    for _ in range(left):
        t, i = heap[0]
        x[i] += 1
        heapq.heapreplace(heap, (t + float(rates[i]), i))
    return float(np.exp(-rates * x).sum()) + (len(d) - len(rates))


def _fill(heights: Floats, widths: Floats, volume: float) -> tuple[float, Floats]:
    """Water of the given volume over steps of these heights and widths: its level, and what stands on each step, (K,).

    Solves sum_i widths_i (level - heights_i)^+ = volume: exactly, from the order of the steps, and from differences of
    heights only, so that steps of widths up to 1e290 keep their digits. Volume 0 has the level of the lowest step.
    """
    order = np.argsort(heights, kind="stable")
    h, w = heights[order], widths[order]
    reach = np.concatenate(([0.0], np.cumsum(np.cumsum(w[:-1]) * np.diff(h))))  # volume that brings the water to step m
    m = max(1, int(np.searchsorted(reach, volume, side="left")))  # steps under water
    above = (volume - reach[m - 1]) / w[:m].sum()  # water above the highest of them
    content = np.zeros(len(heights))
    content[order[:m]] = w[:m] * (above + (h[m - 1] - h[:m]))
    return float(h[m - 1] + above), content


def _optimum(gaps: ArrayLike, budget: float, c: float) -> tuple[float, Floats]:
    """`phi` and `optimal_allocation`."""
    d = _told_apart(gaps, budget, c)
    x, apart = np.zeros(len(d)), d > 0
    if not apart.any():
        return math.inf, np.full(len(d), budget / len(d))
    d = d[apart]
    level, x[apart] = _fill(-np.log(d), 2 / (c * d * d), budget)
    return level, x


def _gaps(gaps: ArrayLike) -> Floats:
    d = np.asarray(gaps, dtype=np.float64)
    if d.ndim != 1 or d.size == 0 or not (np.isfinite(d) & (d >= 0)).all():
        raise ValueError(f"gaps must be finite numbers >= 0, shape (K,), got {gaps!r:.200}")
    return d


def _told_apart(gaps: ArrayLike, budget: float, c: float) -> Floats:
    """The gaps, with 0 for those that count as 0, after all checks."""
    d = _gaps(gaps)
    if not 0 < c < math.inf:
        raise ValueError(f"c={c} must be positive and finite")
    if not 0 <= budget < math.inf:
        raise ValueError(f"budget={budget} must be finite and >= 0")
    return np.where(c * d * d >= NEGLIGIBLE, d, 0.0)
