"""The hardness of an instance of feasible arms, and guarantees.

Katz-Samuels & Scott, "Feasible Arm Identification", ICML 2018. Pure functions of the margins; all bounds are of the
probability of a wrong answer.

symbols   Delta_i margin of arm i: its distance to the boundary of the polyhedron plus the tolerance, K arms,
          D dimensions, T budget (pulls), H = sum of Delta_i^-2, H_2 = max of i Delta_(i)^-2, margins increasing,
          R sub-Gaussian norm of a sample, the least with E exp((u'X)^2 / R^2) <= 2 for every unit vector u

The constants are those of the proofs: at budgets of practice the upper bounds are far above 1, and the lower bound is
far below any simulated failure rate. `log_` functions return the natural logarithm, which does not overflow.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.checks import integer, number
from .threshold_measures import gaps_of


def hardness(margins: ArrayLike) -> float:
    """H = sum_i Delta_i^-2, in pulls; inf if a margin is 0. [section 3]"""
    with np.errstate(divide="ignore", over="ignore"):
        return float((gaps_of(margins, "margins") ** -2.0).sum())


def hardness_2(margins: ArrayLike) -> float:
    """H_2 = max_i i Delta_(i)^-2, margins in increasing order. [section 5]

    H_2 <= H <= (1 + 1/2 + ... + 1/K) H_2, which is at most the paper's ln(2K) H_2 for K >= 5 only.
    """
    d = np.sort(gaps_of(margins, "margins"))
    with np.errstate(divide="ignore", over="ignore"):
        return float((np.arange(1, len(d) + 1) * d**-2.0).max())


def gaussian_norm(sd: float) -> float:
    """R of independent normal coordinates with standard deviation `sd`: E exp(X^2 / R^2) = 2 at R = sd sqrt(8/3)."""
    return number("sd", sd, 0, above=True) * math.sqrt(8 / 3)


def _counts(T: int, K: int, D: int) -> tuple[int, int, int]:
    K = integer("K", K, 1, 2**40)
    return integer("T", T, K, 2**62), K, integer("D", D, 1, 2**40)


def log_lower_bound(H: float, T: int, K: int, D: int) -> float:
    """ln of exp(-13 T/H - 25 D ln(48 (ln T + 1) K D)), how often any algorithm fails in one of K + 1 cases. [Thm. 1]

    For arms N(mu_i, I) inside the polyhedron, further than the tolerance from its boundary, and the K instances in
    which one of them is mirrored at its nearest boundary point; all have the same H > 0. T >= K.
    """
    T, K, D = _counts(T, K, D)
    H = number("H", H, 0, above=True)
    return -13 * T / H - 25 * D * math.log(48 * (math.log(T) + 1) * K * D)


def log_minimax_bound(H: float, T: int, K: int, D: int, R: float) -> float:
    """ln of exp(-14 T / (H R^2)), the minimax rate over instances no harder than H, for large budgets. [Cor. 1]

    T must be at least 25 H R^2 D ln(48 (ln T + 1) K D).
    """
    T, K, D = _counts(T, K, D)
    unit = number("H", H, 0, above=True) * number("R", R, 0, above=True) ** 2
    least = 25 * unit * D * math.log(48 * (math.log(T) + 1) * K * D)
    if least > T:
        raise ValueError(f"T must be at least 25 H R^2 D ln(48 (ln T + 1) K D) = {least:.6g}, got {T}")
    return -14 * T / unit


def _log_union(T: int, K: int, D: int) -> float:
    """ln of 2 (ln T + 1) K 5^D, over the pulls, the arms and a net of directions. [Lemma 2]"""
    return math.log(2 * (math.log(T) + 1) * K) + D * math.log(5)


def log_upper_bound_ucbe(a: float, H: float, T: int, K: int, D: int, R: float) -> float:
    """ln of MD-UCBE's bound 2 (ln T + 1) K 5^D exp(-a / (1600 R^2)). [Thm. 2]

    The exploration constant has 0 <= a <= 25/36 (T - K) / H. T >= K.
    """
    T, K, D = _counts(T, K, D)
    most = 25 / 36 * (T - K) / number("H", H, 0, above=True)
    return _log_union(T, K, D) - number("a", a, 0, most) / (1600 * number("R", R, 0, above=True) ** 2)


def log_upper_bound_sar(H_2: float, T: int, K: int, D: int, R: float) -> float:
    """ln of MD-SAR's bound 2 (ln T + 1) K 5^D exp(-(T - K) / (1296 R^2 ln(2K) H_2)). [Thm. 3]

    The factor R^2 is that of the other theorems: it cannot be read in the text that we hold. T >= K.
    """
    T, K, D = _counts(T, K, D)
    scale = 1296 * number("R", R, 0, above=True) ** 2 * math.log(2 * K) * number("H_2", H_2, 0, above=True)
    return _log_union(T, K, D) - (T - K) / scale


def log_upper_bound_apt(H: float, T: int, K: int, D: int, R: float) -> float:
    """ln of MD-APT's bound 2 (ln T + 1) K 5^D exp(-T / (1296 R^2 H)), for T >= 2K. [Thm. 4]"""
    T, K, D = _counts(T, K, D)
    if T < 2 * K:
        raise ValueError(f"T must be at least 2 K = {2 * K}, got {T}")
    scale = 1296 * number("R", R, 0, above=True) ** 2 * number("H", H, 0, above=True)
    return _log_union(T, K, D) - T / scale
