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

from bandit_envs.problems.threshold_measures import (
    hardness,
    optimal_allocation,
    optimal_error,
    optimal_error_integer,
    phi,
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


def test_the_easy_arm_comes_first() -> None:
    # Gaps e^-1 and e^-2: the second arm enters at Phi = 2, where the first has (2 - 1) / e^-2 = e^2 pulls.
    gaps = [math.exp(-2), math.exp(-1)]
    assert optimal_allocation(gaps, 7) == pytest.approx([0, 7])
    assert phi(gaps, 7) == pytest.approx(1 + 7 / math.e**2)
    assert phi(gaps, math.e**2) == pytest.approx(2)
    # Beyond, Phi = 2 + y with y (e^2 + e^4) further pulls; y = 1 here.
    assert phi(gaps, math.e**2 + math.e**2 + math.e**4) == pytest.approx(3)
    assert optimal_allocation(gaps, 2 * math.e**2 + math.e**4) == pytest.approx([math.e**4, 2 * math.e**2])


def test_no_budget_leaves_every_arm_open() -> None:
    assert optimal_allocation(SETUP_1, 0).tolist() == [0] * 10
    assert optimal_error(SETUP_1, 0) == optimal_error_integer(SETUP_1, 0) == 10
    assert phi(SETUP_1, 0) == pytest.approx(-math.log(0.3))  # the largest x that spends nothing


def test_one_arm_takes_all() -> None:
    assert optimal_allocation([0.2], 50) == pytest.approx([50])
    assert optimal_error([0.2], 50) == optimal_error_integer([0.2], 50) == pytest.approx(math.exp(-4))


def test_setup_1_of_the_paper() -> None:
    assert hardness(SETUP_1) == pytest.approx(993.1111, abs=5e-5)
    assert phi(SETUP_1, 3000) == pytest.approx(5.756463, abs=5e-7)
    assert optimal_error(SETUP_1, 3000) == pytest.approx(0.00993111, abs=5e-9)


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
    exact = [0.3, 0.0, 0.1]
    for small in (1e-5, 1e-8, 1e-100, 1e-160, 1e-320):
        near = [0.3, small, 0.1]
        assert optimal_allocation(near, 500) == pytest.approx(optimal_allocation(exact, 500))
        assert optimal_error(near, 500) == pytest.approx(optimal_error(exact, 500))
        assert optimal_error_integer(near, 500) == pytest.approx(optimal_error_integer(exact, 500))


def test_nothing_but_arms_on_the_threshold() -> None:
    assert optimal_allocation([0, 0], 10).tolist() == [5, 5]
    assert optimal_error([0, 0], 10) == optimal_error_integer([0, 0], 10) == 2
    assert phi([0, 0], 10) == math.inf


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


def test_an_error_below_the_floats_is_zero() -> None:
    assert optimal_error([0.5, 0.4], 10**6) == optimal_error_integer([0.5, 0.4], 10**6) == 0
