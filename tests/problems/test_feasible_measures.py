"""Hardness and bounds of feasible arms: by hand, what they must satisfy, and where they are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from bandit_envs.problems import feasible_measures as fm


def test_hardness_by_hand() -> None:
    assert fm.hardness([0.5, 0.25]) == 4 + 16
    assert fm.hardness_2([0.5, 0.25]) == 16  # 1 * 16, 2 * 4
    assert fm.hardness_2([1.0, 1.0, 1.0]) == 3
    assert fm.hardness([1.0, 0.0]) == fm.hardness_2([1.0, 0.0]) == math.inf


def test_order_of_the_two_measures() -> None:
    g = np.random.default_rng(0)
    for _ in range(200):
        margins = g.exponential(1, int(g.integers(1, 40)))
        H, H_2, K = fm.hardness(margins), fm.hardness_2(margins), len(margins)
        assert H_2 <= H * (1 + 1e-12)
        assert (1 / np.arange(1, K + 1)).sum() * H_2 * (1 + 1e-12) >= H
        assert math.log(2 * max(K, 5)) * H_2 >= H
    # margins sqrt(i): all i Delta_(i)^-2 are 1, and H is the harmonic number: above ln(2K) up to K = 4
    beyond = [K for K in range(1, 60) if fm.hardness(np.sqrt(np.arange(1, K + 1))) > math.log(2 * K)]
    assert beyond == [1, 2, 3, 4]


def test_gaussian_norm_is_that_of_the_definition() -> None:
    """E exp(X^2 / R^2) = 2."""
    for sd in (0.5, 2.0):
        R = fm.gaussian_norm(sd)
        density = lambda x, sd=sd, R=R: math.exp(x * x / R**2 + stats.norm.logpdf(x, scale=sd))  # type: ignore[misc]
        assert integrate.quad(density, -30 * sd, 30 * sd, limit=400, points=[0.0])[0] == pytest.approx(2, rel=1e-6)


def test_bounds_by_hand() -> None:
    # K = D = 1, T = 1: ln T = 0. Union: 2 * 1 * 1 * 5 = 10
    assert fm.log_lower_bound(H=13.0, T=1, K=1, D=1) == pytest.approx(-1 - 25 * math.log(48))
    assert fm.log_upper_bound_ucbe(a=0.0, H=1.0, T=1, K=1, D=1, R=1.0) == pytest.approx(math.log(10))
    assert fm.log_upper_bound_sar(H_2=1.0, T=1, K=1, D=1, R=1.0) == pytest.approx(math.log(10))
    # T = 1296 * 4 pulls, R = 2, H = 1/2: T / (1296 R^2 H) = 2
    union = math.log(2 * (math.log(5184) + 1) * 3 * 25)
    assert fm.log_upper_bound_apt(H=0.5, T=5184, K=3, D=2, R=2.0) == pytest.approx(union - 2)
    assert fm.log_upper_bound_ucbe(a=1600.0, H=1.0, T=5184, K=3, D=2, R=1.0) == pytest.approx(union - 1)
    assert fm.log_upper_bound_sar(H_2=1 / math.log(6), T=1296 + 3, K=3, D=2, R=1.0) == pytest.approx(
        math.log(2 * (math.log(1299) + 1) * 3 * 25) - 1
    )
    assert fm.log_minimax_bound(H=1.0, T=10_000, K=1, D=1, R=1.0) == pytest.approx(-140_000)
    assert fm.log_minimax_bound(H=1.0, T=10_000, K=1, D=1, R=2.0) == pytest.approx(-35_000)


def test_lower_bounds_are_below_upper_bounds() -> None:
    """N(mu, I) has R^2 = 8/3; no algorithm's guarantee can be better than what every algorithm must suffer."""
    R = fm.gaussian_norm(1.0)
    for H in (0.5, 10.0, 900.0):
        for T in (50, 2000, 10**7):
            upper = fm.log_upper_bound_apt(H, T, 20, 5, R)
            assert fm.log_lower_bound(H, T, 20, 5) < upper
            assert fm.log_upper_bound_ucbe(25 / 36 * (T - 20) / H, H, T, 20, 5, R) > fm.log_lower_bound(H, T, 20, 5)
            assert fm.log_upper_bound_sar(H, T, 20, 5, R) > upper  # H_2 <= H, but the factor ln(2K)
    assert fm.log_upper_bound_apt(1.0, 10**5, 20, 5, R) < 0 < fm.log_upper_bound_apt(1.0, 10**3, 20, 5, R)
