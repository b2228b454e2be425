"""Distributions of the arms: mean and spread of what is pulled, bulk pulls against single ones, JSON, bad input.

Statistical tests fail right samplers with probability at most LEVEL in all per test function (Bonferroni), were their
seeds new; moments are compared in the normal approximation of 20 000 samples.
"""

from __future__ import annotations

import numpy as np
import pytest
from distributions import (
    DISTRIBUTIONS,
    LEVEL,
    PAIRS,
    TIMES,
    N,
    check_bulk,
    check_moments,
    distribution_fit,
    distribution_tested,
    moments_fit,
    moments_tested,
    pulled,
    tables,
)
from rollouts import simulator
from scipy import stats

from bandit_envs import Arms, Bernoulli, Categorical, Gaussian, Resampled, Tabulated, Uniform
from bandit_envs.instances.arms import from_dict

both = pytest.mark.parametrize("distribution", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS.keys())


# --- what a distribution's parameters mean ----------------------------------------------------------------------------


def test_moments_and_scales_by_hand() -> None:
    distribution: Arms = Bernoulli([0.2, 0.5])
    np.testing.assert_allclose(distribution.variances, [0.2 * 0.8, 0.25])
    assert (distribution.support, distribution.sigma) == ((0, 1), 0.5)
    distribution = Gaussian([[0, 1], [2, 3]], [1, 2])  # sd broadcasts along the coordinates
    assert distribution.variances.tolist() == [[1, 4], [1, 4]]
    assert (distribution.support, distribution.sigma) == (None, 2)
    distribution = Uniform([0, 1], [1, 6])
    np.testing.assert_allclose(distribution.variances, [1 / 12, 3])  # width^2 / 12
    assert (distribution.support, distribution.sigma) == (None, 3)  # half the larger width
    distribution = Categorical([1, 2, 4], [[1, 1, 2], [3, 0, 0]])  # weights 1, 1, 2: probabilities 1/4, 1/4, 1/2
    assert distribution.means.tolist() == [(1 + 2 + 8) / 4, 1]
    np.testing.assert_allclose(distribution.variances, [(1 + 4 + 32) / 4 - 2.75**2, 0])
    assert (distribution.support, distribution.sigma) == ((1, 4), 1.5)
    distribution = Resampled([[0, 4], [1, 1, 4]])
    assert distribution.means.tolist() == [2, 2]
    np.testing.assert_allclose(distribution.variances, [4, 2])  # ((1 - 2)^2 + (1 - 2)^2 + (4 - 2)^2) / 3
    assert (distribution.support, distribution.sigma) == ((0, 4), 2)
    # Half the mass uniform on [0, 2], half on [2, 8]; half at 1, half on [1, 4].
    distribution = Tabulated([[0, 2, 8], [1, 1, 4]])
    assert distribution.means.tolist() == [(1 + 5) / 2, (1 + 2.5) / 2]
    second = [(4 / 3 + (512 - 8) / 18) / 2, (1 + (64 - 1) / 9) / 2]  # of x^2 on [a, b]: (b^3 - a^3) / 3 (b - a)
    np.testing.assert_allclose(distribution.variances, [second[0] - 9, second[1] - 1.75**2])
    assert (distribution.support, distribution.sigma) == ((0, 8), 4)  # half the longer range of an arm


@both
def test_single_pulls_have_the_mean_and_the_spread(distribution: Arms) -> None:
    check_moments(distribution, N)


@both
def test_the_moments_test_has_teeth(distribution: Arms) -> None:
    arm, limit = 0, moments_tested(distribution)
    sample = pulled(distribution, arm).sample.reshape(N, -1)
    mean, variance = distribution.means[arm].reshape(-1), distribution.variances[arm].reshape(-1)
    assert moments_fit(sample, mean + 0.1 * np.sqrt(variance), variance) < limit
    if not (isinstance(distribution, Bernoulli) and mean[0] == 0.5):  # there (x - mean)^2 is constant
        assert moments_fit(mean + 1.2 * (sample - mean), mean, variance) < limit


def test_tabulated_samples_have_the_distribution_of_the_table() -> None:
    """Kolmogorov-Smirnov against the quantile function itself, of single pulls and of a beta distribution."""
    for name in ("tabulated", "tabulated, beta"):
        distribution = DISTRIBUTIONS[name]
        levels = np.linspace(0, 1, distribution.parameters.shape[1])
        for arm in range(distribution.K):
            u = np.interp(pulled(distribution, arm).sample, distribution.parameters[arm], levels)
            jumps = (np.diff(distribution.parameters[arm]) == 0).any()  # there equal samples have many levels
            assert jumps or stats.kstest(u, "uniform").pvalue >= LEVEL / 7
    beta, made = stats.beta(2.0, 5.0), DISTRIBUTIONS["tabulated, beta"]
    np.testing.assert_allclose(made.means[1], beta.mean(), rtol=2e-3)  # the error of 257 quantiles
    assert stats.kstest(pulled(made, 1).sample, beta.cdf).pvalue >= LEVEL / 7
    assert stats.kstest(pulled(made, 2).sample, beta.cdf).pvalue < LEVEL  # it can fail


@pytest.mark.parametrize("name", ["bernoulli 2-D", "gaussian 3-D", "uniform 4-D", "tabulated 3-D"])
def test_coordinates_are_independent(name: str) -> None:
    """Rank correlations of the coordinates of one pull, normal with standard deviation 1 / sqrt(N - 1)."""
    ranks = stats.spearmanr(pulled(DISTRIBUTIONS[name], 0).sample).statistic
    pairs = np.atleast_2d(ranks)[np.triu_indices(DISTRIBUTIONS[name].D, 1)] if np.ndim(ranks) else np.array([ranks])
    assert (2 * stats.norm.sf(np.abs(pairs) * np.sqrt(N - 1)) >= LEVEL / (4 * len(pairs))).all()


def test_resampled_coordinates_are_of_one_row() -> None:
    seen = np.unique(pulled(DISTRIBUTIONS["resampled 2-D"], 2).sample, axis=0)
    assert seen.tolist() == sorted(PAIRS[2])


# --- bulk pulls -------------------------------------------------------------------------------------------------------


@both
def test_a_bulk_pull_has_the_distribution_of_single_pulls(distribution: Arms) -> None:
    check_bulk(distribution, N // 4)


@both
def test_the_bulk_test_has_teeth(distribution: Arms) -> None:
    """Twins: a third of the pulls left out; the true variance instead of a random one; another pull's variance."""
    limit = distribution_tested(distribution)
    single = tables(distribution, pulled(distribution, 0, TIMES, root=1, size=N // 4), 0)
    sim, other, fewer = (
        pulled(distribution, 0, times, bulk=True, root=root, size=N // 4)
        for times, root in ((TIMES, 2), (TIMES, 3), (TIMES - 8, 2))
    )
    sim.variance[:] = distribution.variances
    assert distribution_fit(single, tables(distribution, fewer, 0)) < limit
    assert distribution_fit(single, tables(distribution, sim, 0)) < limit
    if abs(np.corrcoef(single[0], single[1])[0, 1]) > 0.1:  # for symmetric arms the two are uncorrelated
        sim.variance[:] = other.variance
        assert distribution_fit(single, tables(distribution, sim, 0)) < limit


@both
def test_a_bulk_pull_of_1_is_a_pull(distribution: Arms) -> None:
    """Bit for bit, beside episodes that pull in bulk, and after a bulk pull."""
    mixed, single = simulator(distribution, 100), simulator(distribution, 100)
    times = np.where(np.arange(100) % 3 == 0, 9, 1)
    for arm in (0, 1, 0):
        mixed.advance(np.full(100, arm), times)
        single.advance(np.full(100, arm), np.ones(100, np.int64))
        assert (mixed.sample[times == 1] == single.sample[times == 1]).all()
    for a, b in ((mixed.total, single.total), (mixed.mean, single.mean), (mixed.variance, single.variance)):
        assert (a[times == 1] == b[times == 1]).all()


@pytest.mark.parametrize(("name", "times"), [("uniform", 24), ("resampled 2-D", 2), ("tabulated 3-D", 7)])
def test_one_by_one_bulk_pulls_are_the_sum_of_single_pulls(name: str, times: int) -> None:
    distribution = DISTRIBUTIONS[name]
    for before in (0, 2):  # pulls made before
        single, bulk = simulator(distribution, 100), simulator(distribution, 100)
        for _ in range(before + times):
            single.advance(np.zeros(100, np.int64), np.ones(100, np.int64))
        for count in [1] * before + [times]:
            bulk.advance(np.zeros(100, np.int64), np.full(100, count))
        assert (single.pulls == bulk.pulls).all()
        for a, b in ((bulk.total, single.total), (bulk.mean, single.mean), (bulk.variance, single.variance)):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        for sim in (single, bulk):  # and the next pull is the same
            sim.advance(np.zeros(100, np.int64), np.ones(100, np.int64))
        assert (single.sample == bulk.sample).all()


# --- forms ------------------------------------------------------------------------------------------------------------


def test_arms_of_one_dimension_are_scalar_arms() -> None:
    for wide, flat in (
        (Bernoulli([[0.1], [0.9]]), Bernoulli([0.1, 0.9])),
        (Gaussian([[0.0], [1.0]], [[1.0], [2.0]]), Gaussian([0, 1], [1, 2])),
        (Uniform([[0.0], [1.0]], 3), Uniform([0, 1], 3)),
        (Resampled([[[1.0], [2.0]], [[3.0]]]), Resampled([[1, 2], [3]])),
        (Tabulated([[[1.0], [2.0]], [[3.0], [3.0]]]), Tabulated([[1, 2], [3, 3]])),
    ):
        assert wide.D == 1
        assert wide.to_dict() == flat.to_dict()
        assert wide.parameters.tolist() == flat.parameters.tolist()


def test_a_distribution_that_is_not_registered_is_found_in_its_module() -> None:
    distribution = from_dict({"distribution": "bandit_envs.instances.arms:Uniform", "mean": [0, 1]})
    assert isinstance(distribution, Uniform)
