"""How hard a thresholding instance is.

Tao, Blanco, Peng & Zhou, "Thresholding Bandit with Optimal Aggregate Regret", NeurIPS 2019, sections 3 and 4. Pure
functions of the gaps; the aggregate regret is the expected number of wrong labels.

symbols   D_i = |mean_i - threshold| gap, K arms, T budget (pulls), x_i pulls of arm i, c > 0 constant of the exponent,
          P_c least sum of exp(-c x_i D_i^2) over real x >= 0 with sum x = T, P*_c the same over whole numbers,
          alpha LSA's tuning constant, Lambda and lambda_i the level and the pulls of arm i that LSA's bound names

The best allocation by known gaps errs on at most 2 P*_2(T) arms in expectation, for samples in [0, 1] (Hoeffding).

An arm on the threshold is the limit D_i -> 0. No allocation finds its side: an optimal one gives it
x_i = ((Phi + ln D_i) / D_i^2)^+ = 0 pulls, and it adds exp(0) = 1 to P_c and P*_c. A gap with c D_i^2 below NEGLIGIBLE
counts as 0: no budget is enough for it.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.checks import Floats, number

ALPHA = 1.35  # the paper's choice in section 5
NEGLIGIBLE = 1e-290  # c D^2 below this counts as 0; above it, all sums stay within the range of floats


def hardness(gaps: ArrayLike) -> float:
    """H = sum_i D_i^-2, in pulls; inf if a gap is 0. [Locatelli, Gutzeit & Carpentier 2016, with tolerance 0]"""
    with np.errstate(divide="ignore", over="ignore"):
        return float((gaps_of(gaps) ** -2.0).sum())


def phi(gaps: ArrayLike, budget: float, c: float = 2.0) -> float:
    """Phi, to which c/2 x_i D_i^2 + ln(1/D_i) is equal in every arm that the optimum of P_c pulls. [section 3, eq. 9]

    The largest Phi with sum_i (2/c) ((Phi + ln D_i) / D_i^2)^+ <= T; the paper has c = 2. inf if all gaps are 0.

    Args:
        gaps: shape (K,), D >= 0.
        budget: T >= 0 pulls.
        c: constant of the exponent, > 0.
    """
    d = _checked(gaps, budget, c)
    d = d[d > 0]
    return _fill(-np.log(d), 2 / (c * d * d), budget)[0] if d.size else math.inf


def optimal_allocation(gaps: ArrayLike, budget: float, c: float = 2.0) -> Floats:
    """Real-valued optimum of P_c: x_i = (2/c) ((Phi + ln D_i) / D_i^2)^+, (K,), sum x = T. [section 3, eq. 9]

    Arms with gap 0 get 0 pulls; if all gaps are 0, every allocation is optimal and T / K each is returned. Args as for
    `phi`.
    """
    d = _checked(gaps, budget, c)
    x, positive = np.zeros(len(d)), d > 0
    if not positive.any():
        return np.full(len(d), budget / len(d))
    d = d[positive]
    x[positive] = _fill(-np.log(d), 2 / (c * d * d), budget)[1]
    return x


def optimal_error(gaps: ArrayLike, budget: float, c: float = 2.0) -> float:
    """P_c(T): the least sum_i exp(-c x_i D_i^2) over real x >= 0 with sum x = T. [section 3]

    P_c(T) <= P*_c(T) <= P_c(T - K) [eq. 8]. Args as for `phi`.
    """
    d = _checked(gaps, budget, c)
    return float(np.exp(-c * optimal_allocation(d, budget, c) * d * d).sum())


def optimal_error_integer(gaps: ArrayLike, budget: int, c: float = 2.0) -> float:
    """P*_c(T): the least sum_i exp(-c x_i D_i^2) over whole numbers x >= 0 with sum x = T. [section 3]

    Pull k + 1 of arm i lowers the sum by exp(-c k D_i^2) (1 - exp(-c D_i^2)), which falls with k. So the T pulls that
    lower it most are an optimum. Those that lower it by e^-L or more are pulls 1 to floor(z_i) + 1 of arm i, with
    z_i = (L + ln(1 - exp(-c D_i^2))) / (c D_i^2) >= 0. At the L where the z_i^+ sum to T - K these are at most T pulls:
    floor(z_i) are taken at once, the others, at most 2K, from a heap. Args as for `phi`, T a whole number.
    """
    d = _checked(gaps, budget, c)
    if budget != math.floor(budget):
        raise ValueError(f"budget must be a whole number >= 0, got {budget}")
    rates = c * d[d > 0] ** 2
    if not rates.size:
        return float(len(d))
    first = -np.log(-np.expm1(-rates))  # -ln of how much the first pull lowers the sum
    x = np.floor(_fill(first, 1 / rates, max(0, budget - len(rates)))[1])
    left = int(budget - x.sum())
    heap = [(float(t), i) for i, t in enumerate(first + x * rates)]  # the same for the next pull
    heapq.heapify(heap)
    for _ in range(left):
        t, i = heap[0]
        x[i] += 1
        heapq.heapreplace(heap, (t + float(rates[i]), i))
    return float(np.exp(-rates * x).sum()) + (len(d) - len(rates))


def lambda_level(gaps: ArrayLike, budget: float, alpha: float = ALPHA) -> float:
    """Lambda: the x at which sum_i g_i(x) = T / max(40/alpha + 1, 40). [section 4, eq. 10]

    g_i(x) = e^(2x) for x <= ln(1/D_i), and (x + ln D_i + alpha) / (alpha D_i^2) above: continuous and increasing. The
    arms with ln(1/D_i) < Lambda are those whose side can be found well within the budget.

    Args:
        gaps: shape (K,), 0 <= D <= 1 (the paper's samples lie in [0, 1]).
        budget: T pulls, at least max(40/alpha + 1, 40) K, where Lambda = 0.
        alpha: LSA's tuning constant, > 0.
    """
    d, alpha = gaps_of(gaps), number("alpha", alpha, 0, above=True)
    number("the largest gap", float(d.max()), 0, 1)
    number("budget", budget, _pulls_per_unit(alpha) * len(d))
    target = budget / _pulls_per_unit(alpha)
    low = float(_inverse(target / len(d), d, alpha).min())  # no g_i is above target / K: the sum is at most the target
    high = float(_inverse(target, d, alpha).min())  # one g_i is the target
    while low < (middle := (low + high) / 2) < high:
        if _pulls(middle, d, alpha).sum() <= target:
            low = middle
        else:
            high = middle
    return low


def lambda_allocation(gaps: ArrayLike, budget: float, alpha: float = ALPHA) -> Floats:
    """lambda_i = g_i(Lambda), shape (K,), of sum T / max(40/alpha + 1, 40). [section 4, eq. 11]

    It is the optimum of P_c with c = 2 alpha, at gaps max(D_i, e^-Lambda) and that budget [Lemma 11]. Args as for
    `lambda_level`.
    """
    return _pulls(lambda_level(gaps, budget, alpha), gaps_of(gaps), alpha)


def regret_bound(gaps: ArrayLike, budget: float, alpha: float = ALPHA) -> float:
    """Bound of LSA's aggregate regret: Y(alpha) sum_i exp(-lambda_i D_i^2 / 10), for samples in [0, 1]. [Theorem 1]

    Y(alpha) = 9.3 r / (r - 1) exp((2.1 alpha - ln alpha - 0.5) / (4 alpha)) with r = 2^(1 / (8 alpha)). A number of
    wrong labels: above K it says nothing, and where it exceeds the floats it is inf.

    Args as for `lambda_level`, alpha at most 8.
    """
    d, alpha = gaps_of(gaps), number("alpha", alpha, 0, 8, above=True)
    log_y = math.log(9.3) - math.log(-math.expm1(-math.log(2) / (8 * alpha)))
    log_y += (2.1 * alpha - math.log(alpha) - 0.5) / (4 * alpha)
    with np.errstate(over="ignore"):
        return float(np.exp(log_y - lambda_allocation(d, budget, alpha) * d * d / 10).sum())


def variable_confidence(a: float, b: float) -> float:
    """Bound of the probability that |m_t - mu| > sqrt((a + b ln(L/t)) / t) for some t <= L. [Lemma 19]

    m_t is the mean of the first t of L independent samples in [0, 1] with mean mu. The bound does not depend on L.

    Args:
        a: level of the band at t = L, > 0.
        b: growth of the band towards small t, > 0.

    Returns:
        2^(b/2 + 2) / (2^(b/2) - 1) e^(-a/2). The paper bounds the complement. Above 1 it says nothing.
    """
    a, b = number("a", a, 0, above=True), number("b", b, 0, above=True)
    return -4 / math.expm1(-b / 2 * math.log(2)) * math.exp(-a / 2)


def _fill(heights: Floats, widths: Floats, volume: float) -> tuple[float, Floats]:
    """Water-filling of steps of these heights and widths by a volume: the level, and the water on each step, (K,).

    Solves sum_i widths_i (level - heights_i)^+ = volume in closed form, from the sorted steps. It uses differences of
    heights only, so that widths up to 1e290 lose no digits. For volume 0 the level is the lowest step.
    """
    order = np.argsort(heights, kind="stable")
    h, w = heights[order], widths[order]
    reach = np.concatenate(([0.0], np.cumsum(np.cumsum(w[:-1]) * np.diff(h))))  # volume that brings the water to step m
    m = max(1, int(np.searchsorted(reach, volume, side="left")))  # steps under water
    above = (volume - reach[m - 1]) / w[:m].sum()  # water above the highest of them
    content = np.zeros(len(heights))
    content[order[:m]] = w[:m] * (above + (h[m - 1] - h[:m]))
    return float(h[m - 1] + above), content


def _pulls_per_unit(alpha: float) -> float:
    return max(40 / alpha + 1, 40)


def _pulls(x: float, d: Floats, alpha: float) -> Floats:
    """g_i(x), shape (K,). [eq. 11]"""
    above = d > math.exp(-x)
    g = np.exp(np.where(above, 0.0, 2 * x))
    g[above] = (x + np.log(d[above]) + alpha) / (alpha * d[above] ** 2)
    return g


def _inverse(pulls: float, d: Floats, alpha: float) -> Floats:
    """The x with g_i(x) = pulls > 0, shape (K,)."""
    above = pulls * d * d > 1
    x = np.full(len(d), math.log(pulls) / 2)
    x[above] = -np.log(d[above]) + alpha * (pulls * d[above] ** 2 - 1)
    return x


def gaps_of(values: ArrayLike, name: str = "gaps") -> Floats:
    """Gaps (K,), or margins of this name, checked."""
    d = np.asarray(values, dtype=np.float64)
    if d.ndim != 1 or d.size == 0:
        raise ValueError(f"{name} have shape {d.shape}: (K,) with K >= 1 is needed")
    if not (np.isfinite(d) & (d >= 0)).all():
        raise ValueError(f"{name} hold {d[~(np.isfinite(d) & (d >= 0))][0]}: finite numbers >= 0 are needed")
    return d


def _checked(gaps: ArrayLike, budget: float, c: float) -> Floats:
    """The gaps, checked, with c and the budget; 0 stands for those that count as 0."""
    d, c = gaps_of(gaps), number("c", c, 0, above=True)
    number("budget", budget, 0)
    return np.where(c * d * d >= NEGLIGIBLE, d, 0.0)
