"""Tao et al.'s measures: hand-solved cases, plain twins of the definitions, and the reductions between them."""

import heapq
import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bandit_envs.problems.threshold_measures import (
    hardness,
    lambda_allocation,
    lambda_level,
    optimal_allocation,
    optimal_error,
    optimal_error_integer,
    phi,
    regret_bound,
    variable_confidence,
)

Array = npt.NDArray[np.float64]

SETUP_1 = [0.3, 0.25, 0.2, 0.15, 0.05] * 2  # Tao et al., section 5: means 0.2, 0.25, .. around 0.5

any_gaps = st.lists(st.floats(1e-8, 1) | st.sampled_from([0.0, 0.05, 0.1, 1.0]), min_size=1, max_size=12)
any_c = st.sampled_from([0.1, 1.0, 2.0, 16.0])
quick = settings(deadline=None)


def error(x: Array | list[int], gaps: list[float], c: float = 2) -> float:
    return sum(math.exp(-c * n * d * d) for n, d in zip(x, gaps, strict=True))


# Plain twins ----------------------------------------------------------------------------------------------------------


def bisect(increasing: Callable[[float], float], target: float, low: float, high: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) <= target else (low, middle)
    return low


def plain_phi(gaps: list[float], budget: float) -> float:
    """Below equation 9: max{x : sum_i max{(x - ln 1/D_i) / D_i^2, 0} <= T}."""

    def spent(x: float) -> float:
        return sum(max((x - math.log(1 / d)) / d**2, 0) for d in gaps)

    return bisect(spent, budget, -100, 1e7)


def plain_level(gaps: list[float], budget: float, alpha: float) -> float:
    """Equation 10."""

    def spent(x: float) -> float:
        inverse = [math.log(1 / d) if d else math.inf for d in gaps]
        linear = sum((x - t + alpha) / (alpha * d**2) for t, d in zip(inverse, gaps, strict=True) if x > t)
        return linear + sum(math.exp(min(2 * x, 700)) for t in inverse if x <= t)

    return bisect(spent, budget / max(40 / alpha + 1, 40), 0, 1e8)


def table(gaps: list[float], budget: int, c: float) -> float:
    """P*_c over all whole-number allocations, arm by arm."""
    best = [0.0] + [math.inf] * budget  # least error of the arms so far with exactly t pulls
    for d in gaps:
        best = [min(best[t - n] + math.exp(-c * n * d * d) for n in range(t + 1)) for t in range(budget + 1)]
    return best[budget]


def plain_greedy(gaps: list[float], budget: int) -> list[int]:
    """One pull after the other to the arm whose error falls most, c = 2."""
    x = [0] * len(gaps)
    for _ in range(budget):
        gains = [math.exp(-2 * n * d * d) - math.exp(-2 * (n + 1) * d * d) for n, d in zip(x, gaps, strict=True)]
        x[gains.index(max(gains))] += 1
    return x


# By hand --------------------------------------------------------------------------------------------------------------


def test_equal_gaps_share_the_budget() -> None:
    gaps = [0.1] * 5
    assert hardness(gaps) == pytest.approx(500)
    assert optimal_allocation(gaps, 1000) == pytest.approx([200] * 5)
    assert optimal_error(gaps, 1000) == pytest.approx(5 * math.exp(-4))  # 2 * 200 * 0.1^2
    assert optimal_error_integer(gaps, 1000) == pytest.approx(5 * math.exp(-4))
    assert phi(gaps, 1000) == pytest.approx(2 + math.log(10))  # 200 * 0.1^2 + ln(1/0.1)
    assert optimal_error_integer(gaps, 1002) == pytest.approx(3 * math.exp(-4) + 2 * math.exp(-4.02))


def test_the_ends() -> None:
    """One arm takes all; no budget leaves every arm open; an error below the floats is zero."""
    assert optimal_allocation([0.2], 50) == pytest.approx([50])
    assert optimal_error([0.2], 50) == optimal_error_integer([0.2], 50) == pytest.approx(math.exp(-4))
    assert optimal_allocation(SETUP_1, 0).tolist() == [0] * 10
    assert optimal_error(SETUP_1, 0) == optimal_error_integer(SETUP_1, 0) == 10
    assert phi(SETUP_1, 0) == pytest.approx(-math.log(0.3))  # the largest x that spends nothing
    assert optimal_error([0.5, 0.4], 10**6) == optimal_error_integer([0.5, 0.4], 10**6) == 0


def test_the_easy_arm_comes_first() -> None:
    # Gaps e^-1 and e^-2: the second arm enters at Phi = 2, where the first has (2 - 1) / e^-2 = e^2 pulls.
    gaps = [math.exp(-2), math.exp(-1)]
    assert optimal_allocation(gaps, 7) == pytest.approx([0, 7])
    assert phi(gaps, 7) == pytest.approx(1 + 7 / math.e**2)
    assert phi(gaps, math.e**2) == pytest.approx(2)
    # Beyond, Phi = 2 + y with y (e^2 + e^4) further pulls; y = 1 here.
    assert phi(gaps, math.e**2 + math.e**2 + math.e**4) == pytest.approx(3)
    assert optimal_allocation(gaps, 2 * math.e**2 + math.e**4) == pytest.approx([math.e**4, 2 * math.e**2])


def test_setup_1_of_the_paper() -> None:
    assert hardness(SETUP_1) == pytest.approx(993.1111, abs=5e-5)
    assert phi(SETUP_1, 3000) == pytest.approx(5.756463, abs=5e-7)
    assert optimal_error(SETUP_1, 3000) == pytest.approx(0.00993111, abs=5e-9)
    assert lambda_level(SETUP_1, 3000) == pytest.approx(1.007452, abs=5e-7)  # ln(75 / 10) / 2: all arms below ln(1/D)
    assert lambda_allocation(SETUP_1, 3000) == pytest.approx([7.5] * 10)


# Arms on the threshold ------------------------------------------------------------------------------------------------


def test_an_arm_on_the_threshold_gets_nothing_and_counts_one() -> None:
    gaps = [0.3, 0.0, 0.1]
    assert hardness(gaps) == math.inf
    assert optimal_allocation(gaps, 500)[1] == 0
    assert optimal_allocation(gaps, 500)[[0, 2]] == pytest.approx(optimal_allocation([0.3, 0.1], 500))
    assert phi(gaps, 500) == phi([0.3, 0.1], 500)
    assert optimal_error(gaps, 500) == pytest.approx(1 + optimal_error([0.3, 0.1], 500))
    assert optimal_error_integer(gaps, 500) == pytest.approx(1 + optimal_error_integer([0.3, 0.1], 500))


def test_it_is_the_limit_of_small_gaps() -> None:
    measures = optimal_allocation, optimal_error, optimal_error_integer, lambda_level, lambda_allocation, regret_bound
    for small in (1e-5, 1e-8, 1e-100, 1e-160, 1e-320):
        for measure in measures:
            assert measure([0.3, small, 0.1], 500) == pytest.approx(measure([0.3, 0.0, 0.1], 500))


def test_nothing_but_arms_on_the_threshold() -> None:
    assert optimal_allocation([0, 0], 10).tolist() == [5, 5]
    assert optimal_error([0, 0], 10) == optimal_error_integer([0, 0], 10) == 2
    assert phi([0, 0], 10) == math.inf
    assert lambda_level([0, 0], 800) == pytest.approx(math.log(10) / 2)  # 2 e^(2x) = 800 / 40


def test_gaps_of_very_different_size_keep_their_digits() -> None:
    # From 600 pulls on the easy arm, Phi = 6, the two tiny gaps are still far: ln(1e10) = 23.
    gaps = [0.1, 1e-10, 1e-10]
    assert optimal_allocation(gaps, 600).tolist() == [600, 0, 0]
    # The tiny gaps enter after (ln 1e10 - ln 10) / 0.1^2 = 2072.3 pulls, and then take what is left.
    assert optimal_allocation(gaps, 3000) == pytest.approx([900 * math.log(10)] + 2 * [1500 - 450 * math.log(10)])


# Optimality -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-3, 1), min_size=1, max_size=12), st.floats(0, 1e6))
@quick
def test_phi_is_the_plain_one(gaps: list[float], budget: float) -> None:
    assert phi(gaps, budget) == pytest.approx(plain_phi(gaps, budget), rel=1e-9, abs=1e-9)


@given(any_gaps, st.floats(0, 1e6, allow_subnormal=False), any_c)
@quick
def test_allocation_meets_the_conditions_of_an_optimum(gaps: list[float], budget: float, c: float) -> None:
    x = optimal_allocation(gaps, budget, c)
    assert x.shape == (len(gaps),)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(budget, rel=1e-12)
    assert optimal_error(gaps, budget, c) == pytest.approx(error(x, gaps, c))
    if any(gaps):
        d, pulled = np.array(gaps), x > 0
        level = phi(gaps, budget, c)
        with np.errstate(divide="ignore"):
            slope = c / 2 * x * d * d - np.log(d)  # eq. 9: Phi where pulled, at least Phi elsewhere
        assert slope[pulled] == pytest.approx(level, rel=1e-9, abs=1e-9)
        assert (slope >= level - 1e-9 * (1 + abs(level))).all()


@given(st.lists(st.sampled_from([0.0, 0.02, 0.1, 0.15, 0.3, 0.31, 0.9, 1.0]), min_size=1, max_size=6), any_c, st.data())
@quick
def test_whole_numbers_against_all_of_them(gaps: list[float], c: float, data: st.DataObject) -> None:
    budget = data.draw(st.integers(0, 40))
    assert optimal_error_integer(gaps, budget, c) == pytest.approx(table(gaps, budget, c), rel=1e-12)


def test_rounding_the_real_optimum_down_can_overshoot() -> None:
    # Why the search does not start from the floor of the real optimum: here the best whole numbers lie below it.
    rng = np.random.default_rng(0)
    below = 0
    for _ in range(200):
        gaps = rng.uniform(0.05, 1, size=6)
        x, real = plain_greedy(gaps.tolist(), 40), optimal_allocation(gaps, 40)
        below += bool((x < np.floor(real)).any())
        assert optimal_error_integer(gaps, 40) == pytest.approx(error(x, gaps.tolist()), rel=1e-12)
    assert below > 0


@given(any_gaps, st.integers(0, 10**9), any_c)
@quick
def test_real_and_whole_optimum_bracket_each_other(gaps: list[float], budget: int, c: float) -> None:
    k, slack, least = len(gaps), 1e-9, sys.float_info.min  # below it floats have fewer digits
    whole = optimal_error_integer(gaps, budget, c)
    assert optimal_error(gaps, budget, c) <= whole * (1 + slack) + least  # eq. 8
    if budget >= k:
        assert whole <= optimal_error(gaps, budget - k, c) * (1 + slack) + least  # eq. 8


def test_many_arms_and_a_large_budget_keep_only_a_few_pulls_for_the_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = np.random.default_rng(0).uniform(0, 0.5, size=2000)
    steps, replace = [], heapq.heapreplace

    def counted(heap: list[tuple[float, int]], item: tuple[float, int]) -> None:
        steps.append(item)
        replace(heap, item)

    monkeypatch.setattr(heapq, "heapreplace", counted)
    whole = optimal_error_integer(gaps, 100_000)
    assert optimal_error(gaps, 100_000) <= whole <= optimal_error(gaps, 98_000)
    assert 0 < len(steps) <= 2 * 2000


# LSA's bound ----------------------------------------------------------------------------------------------------------

bound_gaps = st.lists(st.floats(1e-3, 1) | st.sampled_from([0.0, 0.1, 1.0]), min_size=1, max_size=12)
bound_alpha = st.sampled_from([0.05, 0.5, 1.0, 1.35, 8.0])


@given(bound_gaps, bound_alpha, st.floats(1, 1e5))
@quick
def test_level_is_the_plain_one_and_lambda_an_optimum_of_p_2_alpha(
    gaps: list[float], alpha: float, factor: float
) -> None:
    """Below equation 11: at gaps max(D, e^-Lambda), budget T / max(40/alpha + 1, 40) and c = 2 alpha."""
    budget = factor * 1.0001 * max(40 / alpha + 1, 40) * len(gaps)
    share, level = budget / max(40 / alpha + 1, 40), lambda_level(gaps, budget, alpha)
    assert level == pytest.approx(plain_level(gaps, budget, alpha), rel=1e-9)
    found, cut = lambda_allocation(gaps, budget, alpha), np.maximum(gaps, math.exp(-level))
    assert found.sum() == pytest.approx(share, rel=1e-9)
    assert found == pytest.approx(optimal_allocation(cut, share, 2 * alpha), rel=1e-6, abs=1e-9 * share)
    assert phi(cut, share, 2 * alpha) == pytest.approx(level + alpha, rel=1e-9)  # what makes g_i the optimum


def test_levels_by_hand() -> None:
    assert lambda_level([0.3, 0.2], 80) == pytest.approx(0, abs=1e-15)  # where it starts
    assert lambda_allocation([0.3, 0.2], 80) == pytest.approx([1, 1])
    # Gaps 1 and 0.1, alpha = 1, T = 41 (3 + e^4): x = 2 gives (2 + 0 + 1) / 1 = 3 for the first, e^4 for the second.
    budget = 41 * (3 + math.e**4)
    assert lambda_level([1, 0.1], budget, alpha=1) == pytest.approx(2)
    assert lambda_allocation([1, 0.1], budget, alpha=1) == pytest.approx([3, math.e**4])


def test_regret_bound_by_hand() -> None:
    # alpha = 1: r = 2^(1/8) = 1.090508, r / (r - 1) = 12.04878, exp(1.6 / 4) = 1.491825: Y = 167.1644.
    assert regret_bound([0.0], 41, alpha=1) == pytest.approx(167.1644, rel=1e-6)
    assert regret_bound([1.0], 41 * 101, alpha=1) == pytest.approx(167.1644 * math.exp(-10.1), rel=1e-6)  # lambda = 101


@given(st.floats(0.01, 8))
@quick
def test_constant_of_the_bound_as_printed(alpha: float) -> None:
    root = 2 ** (1 / (8 * alpha))
    printed = 9.3 * root / (root - 1) * math.exp((2.1 * alpha - math.log(alpha) - 0.5) / (4 * alpha))
    assert regret_bound([0.0], 1e6, alpha) == pytest.approx(printed, rel=1e-9)


def test_regret_bound_at_one_twentieth_is_p_one_tenth() -> None:
    """Remark 2: at alpha = 1/20 the sum in the bound is P_(1/10) at budget T / 801, once all arms are well told."""
    budget = 801 * 1e5
    assert lambda_level(SETUP_1, budget, alpha=0.05) > math.log(1 / 0.05)
    constant = regret_bound([0.0], 1e6, alpha=0.05)
    p = optimal_error(SETUP_1, 1e5, c=0.1)
    assert regret_bound(SETUP_1, budget, alpha=0.05) == pytest.approx(constant * p, rel=1e-6)


def test_regret_bound_falls_with_the_budget_and_may_say_nothing() -> None:
    bounds = [regret_bound(SETUP_1, t) for t in (400, 10**4, 10**6, 10**8)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > 10 > bounds[-1] > 0
    assert regret_bound([0.3], 1e9, alpha=1e-3) == math.inf  # beyond the floats


# Lemma 19 -------------------------------------------------------------------------------------------------------------


def test_variable_confidence_by_hand() -> None:
    assert variable_confidence(2 * math.log(8), 2) == pytest.approx(1)  # 2^3 / (2 - 1) / 8
    assert variable_confidence(2 * math.log(16), 4) == pytest.approx(1 / 3)  # 2^4 / (4 - 1) / 16
    assert variable_confidence(20, 5000) == pytest.approx(4 * math.exp(-10))  # 2^(b/2) beyond the floats


A, B, LENGTH, REPEATS = 8.0, 4.0, 100, 2000
FAILURES_LIMIT = 261  # scipy.stats.binom.isf(1e-6, n=2000, p=variable_confidence(8, 4)), which is 0.0977


def test_variable_confidence_holds_for_fair_coins() -> None:
    """How many of the coins leave the band; one of a quarter of the width is left by more."""
    t = np.arange(1, LENGTH + 1)
    means = np.random.default_rng(0).integers(0, 2, (REPEATS, LENGTH)).cumsum(axis=1) / t
    widths = (np.sqrt(share * (A + B * np.log(LENGTH / t)) / t) for share in (1, 1 / 16))
    held, narrow = (int((np.abs(means - 0.5) > width).any(axis=1).sum()) for width in widths)
    assert held <= stats.binom.isf(1e-6, REPEATS, variable_confidence(A, B)) == FAILURES_LIMIT < narrow
