"""Intervals and paired tests: closed forms, exact coverage, and limits from the binomial tail weak twins break."""

import math
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intervals import RATES, exact_coverage, wald
from scipy import stats

from agents.evaluation import statistics
from agents.evaluation.statistics import (
    ALIKE,
    LARGE,
    bootstrap_mean,
    clopper_pearson,
    mcnemar_midp,
    normal_mean,
    paired_difference,
    paired_sums,
    verdict,
)

# Clopper-Pearson ------------------------------------------------------------------------------------------------------


def test_no_error_and_errors_only_have_a_closed_form() -> None:
    for n in (1, 2, 10, 300, 100_000):
        root = 0.025 ** (1 / n)
        assert clopper_pearson(0, n) == pytest.approx((0.0, 1 - root), rel=1e-10, abs=0)  # (1 - p)^n = 0.025
        assert clopper_pearson(n, n) == pytest.approx((root, 1.0), rel=1e-12, abs=0)  # p^n = 0.025
    assert clopper_pearson(1, 2) == pytest.approx((1 - 0.975**0.5, 0.975**0.5))  # (1 - p)^2 = 0.975 and p^2 = 0.975
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    assert clopper_pearson(0, 10, level=0.8)[1] == pytest.approx(1 - 0.1**0.1)


@given(st.integers(1, 5000), st.data(), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
@settings(max_examples=30, deadline=None)
def test_limits_are_those_of_the_binomial_tails(n: int, data: st.DataObject, level: float) -> None:
    k = data.draw(st.integers(0, n))
    low, high = clopper_pearson(k, n, level)
    assert 0 <= low <= k / n <= high <= 1
    if k > 0:
        assert stats.binom.sf(k - 1, n, low) == pytest.approx((1 - level) / 2, rel=1e-6)
    if k < n:
        assert stats.binom.cdf(k, n, high) == pytest.approx((1 - level) / 2, rel=1e-6)


def test_arrays_are_broadcast_and_scalars_are_floats() -> None:
    low, high = clopper_pearson([0, 3, 10], 10)
    for i, k in enumerate((0, 3, 10)):
        assert clopper_pearson(k, 10) == (low[i], high[i])
    assert clopper_pearson(np.zeros((2, 1), int), [5, 6, 7])[1].shape == (2, 3)
    assert type(clopper_pearson(np.int64(3), 10)[0]) is float


@pytest.mark.parametrize("n", [10, 300])
def test_exact_coverage_is_at_least_the_level_at_every_rate(n: int) -> None:
    assert all(exact_coverage(clopper_pearson, n, rate) >= 0.95 for rate in np.linspace(0.001, 0.999, 499))


def test_coverage_figures_of_the_module_docstring() -> None:
    assert exact_coverage(clopper_pearson, 300, 0.01) == pytest.approx(0.989, abs=5e-4)
    assert exact_coverage(wald, 300, 0.01) == pytest.approx(0.80, abs=5e-3)


@pytest.mark.parametrize("name", RATES)
def test_errors_are_as_rare_as_they_should_be_and_those_of_weak_rules_are_noticed(name: str) -> None:
    """A right rule errs more often than the limit once in a million cases."""
    right, weak, repeats, rate = RATES[name]
    assert right(repeats) <= stats.binom.isf(1e-6, repeats, rate) < weak(repeats)


@pytest.mark.parametrize(("errors", "n"), [(-1, 10), (11, 10), (0.5, 10), (0, 1.5), (math.nan, 10), (0, math.inf)])
def test_clopper_pearson_refuses_what_is_no_count(errors: float, n: float) -> None:
    with pytest.raises(ValueError, match=f"errors={errors}, n={n}"):
        clopper_pearson(errors, n)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, math.nan])
def test_levels_outside_the_open_unit_interval_are_refused(level: float) -> None:
    for call in (
        lambda: clopper_pearson(1, 10, level),
        lambda: bootstrap_mean([1, 2], level),
        lambda: paired_difference([0, 1], [1, 1], level),
        lambda: paired_difference([0, 1], [1, 3], level),
    ):
        with pytest.raises(ValueError, match=f"level={level}"):
            call()


# Verdict --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delta", "n"), [(0.1, 36), (0.05, 72), (0.01, 368)])
def test_episodes_without_error_that_show_delta(delta: float, n: int) -> None:
    assert (1 - delta) ** n <= 0.025 < (1 - delta) ** (n - 1)
    assert verdict(0, n, delta) == "met"
    assert verdict(0, n - 1, delta) == "undecided"


def test_verdicts() -> None:
    assert verdict(5, 200, 0.1) == "met"  # limits 0.008, 0.057
    assert verdict(20, 200, 0.1) == "undecided"
    assert verdict(40, 200, 0.1) == "not met"  # limits 0.147, 0.262
    assert verdict(0, 0, 0.1) == "undecided"
    assert verdict(1, 1, 0.01) == "not met"  # 0.01 < 0.025: already one error is too rare for delta = 0.01
    assert verdict(0, 29, 0.1, level=0.9) == "met"  # 0.9^29 = 0.047


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("n", [50, 1000])
def test_a_verdict_is_wrong_at_most_once_in_forty(n: int, delta: float) -> None:
    k = np.arange(n + 1)
    says = np.array([verdict(int(e), n, delta) for e in k])
    assert stats.binom.pmf(k, n, delta)[says == "not met"].sum() <= 0.025
    assert stats.binom.pmf(k, n, delta + 1e-9)[says == "met"].sum() <= 0.025


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan])
def test_verdict_refuses_delta(delta: float) -> None:
    with pytest.raises(ValueError, match=f"delta={delta}"):
        verdict(0, 10, delta)


# McNemar --------------------------------------------------------------------------------------------------------------


def test_mcnemar_by_hand() -> None:
    assert mcnemar_midp(0, 0) == 1.0
    assert mcnemar_midp(1, 0) == 0.5  # 2 * 1/2 - 1/2
    assert mcnemar_midp(6, 0) == 1 / 64  # 2 / 64 - 1 / 64
    assert mcnemar_midp(1, 3) == pytest.approx(6 / 16)  # 2 (1 + 4) / 16 - 4 / 16
    assert mcnemar_midp(5, 5) == pytest.approx(1)


@given(st.integers(0, 3000), st.integers(0, 3000))
@settings(deadline=None)
def test_mcnemar_against_the_binomial_distribution(b: int, c: int) -> None:
    k, m = min(b, c), b + c
    expected = 1.0 if m == 0 else min(1.0, 2 * stats.binom.cdf(k, m, 0.5) - stats.binom.pmf(k, m, 0.5))
    assert mcnemar_midp(b, c) == mcnemar_midp(c, b)
    assert mcnemar_midp(b, c) == pytest.approx(expected, rel=1e-7, abs=1e-200)
    assert 0 < mcnemar_midp(b, c) <= 1


def test_p_values_are_never_zero() -> None:
    assert 0 < mcnemar_midp(10_000, 0) < 1e-300
    x = np.ones(20_000)
    x[0] = 2
    assert 0 < paired_difference(x, 0 * x).p_value < 1e-300


@pytest.mark.parametrize("counts", [(-1, 2), (2, -1), (0.5, 1), (math.inf, 1), (math.nan, 1)])
def test_mcnemar_refuses_what_is_no_count(counts: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match=f"only_a={counts[0]}, only_b={counts[1]}"):
        mcnemar_midp(*counts)


# Means ----------------------------------------------------------------------------------------------------------------


def test_bootstrap_of_two_values_is_known() -> None:
    # Resamples of (0, 1) have means 0, 1/2, 1 with probability 1/4, 1/2, 1/4: the 2.5% quantiles lie in the outer two.
    assert bootstrap_mean([0, 1]) == (0, 1)
    assert bootstrap_mean([0, 1], level=0.4) == (0.5, 0.5)


def test_bootstrap_matches_the_binomial_distribution_on_a_rate() -> None:
    # The resampled mean of 30 ones among 100 is Binomial(100, 0.3) / 100. The tolerance is one step of the mean: the
    # 2.5% quantile of 20,000 resamples has a standard error of sqrt(0.025 0.975 / 20000) = 0.0011 in probability, and
    # one step there holds 0.01 of it.
    low, high = bootstrap_mean(np.arange(100) < 30, resamples=20_000)
    assert low == pytest.approx(stats.binom.ppf(0.025, 100, 0.3) / 100, abs=0.0101)
    assert high == pytest.approx(stats.binom.ppf(0.975, 100, 0.3) / 100, abs=0.0101)


def test_degenerate_means() -> None:
    for n in (ALIKE, LARGE + 1):
        assert bootstrap_mean(np.full(n, 0.1)) == (0.1, 0.1)
    assert np.isnan(bootstrap_mean([3.0])).all()
    low, high = bootstrap_mean([[3.0, 4.0]])
    assert low.shape == high.shape == (2,)
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize("n", [1, 2, ALIKE - 1])
def test_a_mean_of_equal_values_has_no_interval(n: int) -> None:
    """A column that has spread keeps its interval, and 0-1 data have one for every n."""
    values = np.full((n, 2), 0.1)
    values[: n // 2, 1] = 0.7
    one, other = (np.array(part)[1] for part in (bootstrap_mean(values), normal_mean([0.1, 0.1], [1e-30, n], n)))
    assert np.isnan([*np.array(bootstrap_mean(values))[:, 0], *np.array(normal_mean(0.1, 1e-30, n))]).all()
    assert np.isfinite([one[1], other[1]]).all() == (n > 1)
    apart = paired_difference(np.full(n, 7.0), np.full(n, 3.0))
    assert np.isnan([apart.low, apart.high]).all()
    same = paired_sums(4.0, 0.0, n, 0, n, binary=False)
    assert np.isnan([same.low, same.high]).all()
    rates = paired_difference(np.ones(n), np.zeros(n))
    assert rates.low < rates.high


def test_columns_are_separate_means() -> None:
    x = np.random.default_rng(0).normal(size=(40, 2, 3))
    low, high = bootstrap_mean(x, seed=5)
    assert low.shape == high.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        assert (low[i, j], high[i, j]) == pytest.approx(bootstrap_mean(x[:, i, j], seed=5))


@given(st.floats(-1e3, 1e3), st.floats(0.01, 100))
@settings(max_examples=20, deadline=None)
def test_bootstrap_moves_with_the_data(shift: float, scale: float) -> None:
    x = np.random.default_rng(0).exponential(size=30)
    low, high = bootstrap_mean(x, resamples=200)
    moved = bootstrap_mean(shift + scale * x, resamples=200)
    assert moved == pytest.approx((shift + scale * low, shift + scale * high), abs=1e-9)


def test_same_seed_same_limits() -> None:
    x = np.random.default_rng(0).normal(size=50)
    assert bootstrap_mean(x, seed=3) == bootstrap_mean(x, seed=3) != bootstrap_mean(x, seed=4)
    y = x + 0.1 * x**2
    assert paired_difference(x, y, seed=3) == paired_difference(x, y, seed=3) != paired_difference(x, y, seed=4)


def test_resampling_leaves_the_global_generator_alone() -> None:
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    paired_difference([1.5, 2, 3], [1, 2, 4])
    assert np.random.random() == expected  # noqa: NPY002


def test_normal_interval_takes_over_where_it_coincides() -> None:
    # A 2.5% quantile of 2000 resamples has a standard error of sqrt(0.025 0.975 / 2000) / phi(1.96) = 0.06 standard
    # errors of the mean: 0.3 of them is five times that, once in a million.
    x = np.random.default_rng(0).exponential(size=LARGE)
    centre, error = x.mean(), x.std(ddof=1) / math.sqrt(LARGE)
    low, high = bootstrap_mean(x)
    assert abs(low - (centre - 1.96 * error)) < 0.3 * error
    assert abs(high - (centre + 1.96 * error)) < 0.3 * error
    x = np.append(x, 1.0)
    centre, error = x.mean(), x.std(ddof=1) / math.sqrt(LARGE + 1)
    assert bootstrap_mean(x) == pytest.approx((centre - 1.959964 * error, centre + 1.959964 * error), rel=1e-7)


def test_memory_does_not_grow_with_the_resamples() -> None:
    x = np.random.default_rng(0).normal(size=5000)
    bootstrap_mean(x, resamples=10)
    tracemalloc.start()
    paired_difference(x, x**2, resamples=500)  # 2.5 million draws, and as many counts: 40 MB at once
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


# Paired differences ---------------------------------------------------------------------------------------------------


def test_right_and_wrong() -> None:
    a = np.array([1] * 7 + [0] * 3 + [1] * 10, bool)
    b = np.array([0] * 7 + [1] * 3 + [1] * 10, bool)
    d = paired_difference(a, b)
    assert d.difference == pytest.approx(0.2)
    assert d.episodes == 20
    assert d.p_value == mcnemar_midp(7, 3)
    p, q = 8 / 22, 4 / 22  # Bonett & Price: one more of either, n + 2 episodes
    half = 1.959964 * math.sqrt((p + q - (p - q) ** 2) / 22)
    assert (d.low, d.high) == pytest.approx((p - q - half, p - q + half), rel=1e-6)
    assert paired_difference(a.astype(float), b.astype(int)) == d
    back = paired_difference(b, a)
    assert (back.difference, back.low, back.high, back.p_value) == pytest.approx((-0.2, -d.high, -d.low, d.p_value))


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None)
def test_limits_of_a_difference_of_rates_stay_in_range(b: int, c: int, same: int) -> None:
    a = np.array([1] * b + [0] * c + [1] * (same + 1))
    other = np.array([0] * b + [1] * c + [1] * (same + 1))
    d = paired_difference(a, other)
    assert -1 <= d.low <= d.difference <= d.high <= 1
    assert d.low < d.high


def test_interval_of_a_difference_of_rates_covers_it_where_a_bootstrap_would_not() -> None:
    # n = 100 episodes, a alone right in 4%, b alone in 1%: the exact coverage, summed over the trinomial distribution.
    n, p, q = 100, 0.04, 0.01
    covered = bootstrap_covered = 0.0
    for b in range(26):
        for c in range(16):
            weight = stats.multinomial.pmf([b, c, n - b - c], n, [p, q, 1 - p - q])
            low, high = statistics._bonett_price(b, c, n, 0.95)
            covered += weight * (low <= p - q <= high)
            half = 1.96 * math.sqrt(b + c - (b - c) ** 2 / n) / n  # what the bootstrap comes to
            bootstrap_covered += weight * (abs((b - c) / n - (p - q)) <= half)
    assert covered >= 0.95 > 0.93 > bootstrap_covered


def test_differences_of_any_size() -> None:
    rng = np.random.default_rng(0)
    b = rng.exponential(size=200)
    a = b + rng.normal(0.5, 1, size=200)
    d = paired_difference(a, b)
    assert d.difference == pytest.approx((a - b).mean())
    assert (d.low, d.high) == bootstrap_mean(a - b)
    assert 0 < d.low < 0.5 < d.high
    assert d.p_value == 1 / 2001  # no random signs come near: the data are the one hit
    assert (d.episodes, d.method) == (200, "random signs, bootstrap interval")


def test_random_signs_by_hand() -> None:
    # n = 3 differences 1, 2, 4: the sums under all signs are +-7, +-5, +-3, +-1, so P(|sum| >= 5) = 4 / 8 for -1, 2, 4.
    # 20,000 resamples: five standard errors are 0.018.
    p = paired_difference([0, 2, 4], [1, 0, 0], resamples=20_000).p_value
    assert p == pytest.approx(0.5, abs=0.018)
    p = paired_difference([0.1] * 4, [0] * 4, resamples=20_000).p_value  # all of one sign: 2 / 16
    assert p == pytest.approx(0.125, abs=0.012)
    # Two of six against: |sum| < 0.2 takes three of each, 20 / 64. Sums that differ by rounding alone are equal.
    p = paired_difference([0.1] * 4 + [0] * 2, [0] * 4 + [0.1] * 2, resamples=20_000).p_value
    assert p == pytest.approx(44 / 64, abs=0.017)


def test_random_signs_are_mcnemars_test_on_the_same_data() -> None:
    d = np.array([1.0] * 9 + [-1.0] * 2 + [0.0] * 50)
    exact = stats.binomtest(2, 11).pvalue
    assert statistics._random_signs_p(d, 20_000, 0) == pytest.approx(exact, abs=5 * math.sqrt(exact / 20_000))


def test_many_episodes_take_the_normal_limit() -> None:
    rng = np.random.default_rng(0)
    a = rng.exponential(size=LARGE + 1)
    b = a + rng.normal(0.02, 1, LARGE + 1)
    d = paired_difference(a, b)
    assert d.p_value == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-2)
    assert d.method == "normal test, normal interval"
    few = paired_difference(a[:-1], b[:-1], resamples=2000)  # random signs at n = LARGE: five standard errors apart
    assert few.p_value == pytest.approx(d.p_value, abs=5 * math.sqrt(0.25 / 2000))


@pytest.mark.parametrize("n", [1, 2, 30, LARGE + 1])
def test_identical_arrays_do_not_differ(n: int) -> None:
    for a in (np.random.default_rng(0).normal(size=n), np.arange(n) % 2 == 0):
        d = paired_difference(a, a)
        assert (d.difference, d.p_value, d.episodes) == (0, 1, n)
        if a.dtype == bool:
            assert d.low < 0 < d.high  # agreement on n episodes does not prove agreement
        elif n >= ALIKE:
            assert d.low == d.high == 0
        else:
            assert np.isnan([d.low, d.high]).all()


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ([1, 2], [1, 2, 3], r"\(2,\).*\(3,\)"),
        ([], [], r"a has shape \(0,\)"),
        (1.0, 1.0, r"a has shape \(\)"),
        ([1, math.nan], [1, 2], r"a holds nan at \[1\]"),
        ([1, 2], [math.inf, 2], r"b holds inf at \[0\]"),
        ([[1, 2]], [[1, 2]], r"shape \(1, 2\)"),
    ],
)
def test_paired_difference_refuses(a: npt.ArrayLike, b: npt.ArrayLike, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        paired_difference(a, b)


def test_means_refuse() -> None:
    with pytest.raises(ValueError, match=r"x has shape \(0,\)"):
        bootstrap_mean([])
    with pytest.raises(ValueError, match=r"x holds nan at \[1, 0\]"):
        bootstrap_mean([[1.0, 2.0], [math.nan, 3.0]])
    for call in (lambda: bootstrap_mean([1, 2], resamples=0), lambda: paired_difference([0, 1], [1, 1], resamples=0)):
        with pytest.raises(ValueError, match="resamples=0"):
            call()


def test_importing_the_module_does_not_import_scipy() -> None:
    code = f"import runpy, sys; runpy.run_path({statistics.__file__!r}); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
