"""Distributions of the arms: mean and spread of what is pulled, bulk pulls against single ones, JSON, bad input.

Statistical tests fail right samplers with probability at most LEVEL in all per test function (Bonferroni), were their
seeds new; moments are compared in the normal approximation of 20 000 samples.
"""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from rollouts import simulator
from scipy import stats

from bandit_envs import (
    Arms,
    Bernoulli,
    Categorical,
    Gaussian,
    Resampled,
    Sampler,
    Tabulated,
    Uniform,
    register_distribution,
)
from bandit_envs.instances import arms

LEVEL = 1e-6
N = 20_000  # episodes
episodes = pytest.mark.parametrize("size", [N, pytest.param(20 * N, marks=pytest.mark.slow)])
Floats = NDArray[np.float64]

PAIRS = [[[0.0, 1.0], [2.0, -1.0], [2.0, 3.0]], [[5.0, 5.0]], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [4.0, 4.0]]]
WIDE = np.arange(1, 13)
DISTRIBUTIONS: dict[str, Arms] = {
    "bernoulli": Bernoulli([0.05, 0.3, 0.97]),
    "bernoulli 2-D": Bernoulli([[0.1, 0.9], [0.5, 0.25], [0.3, 0.3]]),
    "gaussian": Gaussian([-1.0, 0.0, 3.0], [0.5, 1.0, 4.0]),
    "gaussian 3-D": Gaussian(np.arange(9.0).reshape(3, 3), [[1.0, 2.0, 0.1], [1, 1, 1], [3, 2, 1]]),
    "uniform": Uniform([0.0, 0.5, -7.0], [1.0, 0.1, 20.0]),
    "uniform 4-D": Uniform(np.arange(12.0).reshape(3, 4), 1 + np.arange(12.0).reshape(3, 4)),
    "categorical": Categorical([1, 2, 3], [[1, 1, 2], [0, 1, 0], [0.5, 0.3, 0.2]]),
    "categorical, 12 values": Categorical(WIDE**2, [WIDE, WIDE[::-1], np.eye(12)[3] + np.eye(12)[11]]),
    "resampled": Resampled([[0.0, 1.0, 5.0, 5.0], [2.0, 3.0], [0.25]]),
    "resampled 2-D": Resampled(PAIRS),
    "tabulated": Tabulated([[0.0, 0.5, 0.5, 4.0, 4.5], [-3.0, 1.0, 1.25, 1.5, 9.0], [0.0, 0.25, 0.5, 0.75, 1.0]]),
    "tabulated, beta": Tabulated(stats.beta([[0.5], [2.0], [8.0]], [[0.5], [5.0], [2.0]]).ppf(np.linspace(0, 1, 257))),
    "tabulated 3-D": Tabulated(np.sort(np.random.default_rng(1).normal(size=(3, 6, 3)), axis=1)),
}
both = pytest.mark.parametrize("distribution", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS.keys())


def pulled(distribution: Arms, arm: int, times: int = 1, *, bulk: bool = False, root: int = 0, size: int = N) -> Any:
    """The simulator of so many episodes after so many pulls of one arm, one by one or in bulk."""
    sim = simulator(distribution, size, root)
    for _ in range(1 if bulk else times):
        sim.advance(np.full(size, arm), np.full(size, times if bulk else 1))
    return sim


# --- what a distribution's parameters mean
# -------------------------------------------------------------------------------------


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
    distribution = Tabulated(
        [[0, 2, 8], [1, 1, 4]]
    )  # half the mass uniform on [0, 2], half on [2, 8]; half at 1, half on [1, 4]
    assert distribution.means.tolist() == [(1 + 5) / 2, (1 + 2.5) / 2]
    second = [(4 / 3 + (512 - 8) / 18) / 2, (1 + (64 - 1) / 9) / 2]  # of x^2 on [a, b]: (b^3 - a^3) / 3 (b - a)
    np.testing.assert_allclose(distribution.variances, [second[0] - 9, second[1] - 1.75**2])
    assert (distribution.support, distribution.sigma) == ((0, 8), 4)  # half the longer range of an arm


def moments_fit(samples: Floats, mean: Floats, variance: Floats) -> float:
    """The least p-value of the mean and of the variance of samples (n, D), by their standard errors."""
    assert (samples[:, variance == 0] == mean[variance == 0]).all()
    x, sd = samples[:, variance > 0] - mean[variance > 0], np.sqrt(variance[variance > 0])
    if not x.size:
        return 1.0
    spread = np.sqrt(((x**2 - sd**2) ** 2).mean(axis=0))
    z = [x.mean(axis=0) / sd, (x**2 - sd**2).mean(axis=0)[spread > 1e-9] / spread[spread > 1e-9]]
    return float(2 * stats.norm.sf(np.abs(np.concatenate(z)).max() * np.sqrt(len(samples))))


def moments_tested(distribution: Arms) -> float:
    return LEVEL / (2 * distribution.means.size * len(DISTRIBUTIONS))


@both
@episodes
def test_single_pulls_have_the_mean_and_the_spread(distribution: Arms, size: int) -> None:
    for arm in range(distribution.K):
        sample = pulled(distribution, arm, size=size).sample.reshape(size, -1)
        assert moments_fit(
            sample, distribution.means[arm].reshape(-1), distribution.variances[arm].reshape(-1)
        ) >= moments_tested(distribution)


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
    a, b = 2.0, 5.0
    beta = stats.beta(a, b)
    np.testing.assert_allclose(
        DISTRIBUTIONS["tabulated, beta"].means[1], beta.mean(), rtol=2e-3
    )  # the error of 257 quantiles
    assert stats.kstest(pulled(DISTRIBUTIONS["tabulated, beta"], 1).sample, beta.cdf).pvalue >= LEVEL / 7
    assert stats.kstest(pulled(DISTRIBUTIONS["tabulated, beta"], 2).sample, beta.cdf).pvalue < LEVEL  # it can fail


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


TIMES = 24


def tables(distribution: Arms, sim: Any, arm: int) -> list[Floats]:
    """What a bulk pull must get right, standardised: sum, variance, and combinations of the two."""
    found = []
    for d in range(distribution.D):
        mean, scale = (
            distribution.means.reshape(distribution.K, -1)[arm, d],
            np.sqrt(distribution.variances.reshape(distribution.K, -1)[arm, d]) or 1.0,
        )
        s = (sim.total.reshape(sim.E, distribution.K, -1)[:, arm, d] - TIMES * mean) / (scale * np.sqrt(TIMES))
        v = sim.variance.reshape(sim.E, distribution.K, -1)[:, arm, d] / scale**2 * np.sqrt(TIMES)
        found += [s, v, s + v, s - v]
    return [np.round(x, 7) for x in found]  # equal values stay equal whatever their rounding errors


def distribution_fit(one: list[Floats], other: list[Floats]) -> float:
    """The least p-value of two-sample Kolmogorov-Smirnov tests."""
    return min(float(stats.ks_2samp(x, y, method="asymp").pvalue) for x, y in zip(one, other, strict=True))


def distribution_tested(distribution: Arms) -> float:
    return LEVEL / (4 * distribution.D * distribution.K * len(DISTRIBUTIONS))


@both
@pytest.mark.parametrize("size", [N // 4, pytest.param(20 * N, marks=pytest.mark.slow)])
def test_a_bulk_pull_has_the_distribution_of_single_pulls(distribution: Arms, size: int) -> None:
    for arm in range(distribution.K):
        single = tables(distribution, pulled(distribution, arm, TIMES, root=1, size=size), arm)
        bulk = tables(distribution, pulled(distribution, arm, TIMES, bulk=True, root=2, size=size), arm)
        assert distribution_fit(single, bulk) >= distribution_tested(distribution)


@both
def test_the_bulk_test_has_teeth(distribution: Arms) -> None:
    """Twins: a third of the pulls left out; the true variance instead of a random one; another pull's variance."""
    single, limit = (
        tables(distribution, pulled(distribution, 0, TIMES, root=1, size=N // 4), 0),
        distribution_tested(distribution),
    )
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


@both
def test_bulk_pulls_stay_within_the_support(distribution: Arms) -> None:
    for times in (2, 1000, 2**31 - 1 if distribution.distribution not in ("uniform", "tabulated") else 2000):
        sim = simulator(distribution, 20)
        sim.advance(np.ones(20, np.int64), np.full(20, times))
        assert (sim.variance >= 0).all()
        if distribution.support is not None:
            assert distribution.support[0] <= sim.sample.min() * (1 + 1e-12)
            assert sim.sample.max() * (1 - 1e-12) <= distribution.support[1]


# --- forms ------------------------------------------------------------------------------------------------------------


@both
def test_json_round_trip(distribution: Arms) -> None:
    again = arms.from_dict(json.loads(json.dumps(distribution.to_dict())))
    assert type(again) is type(distribution)
    assert (again.support, again.sigma, again.K, again.D) == (
        distribution.support,
        distribution.sigma,
        distribution.K,
        distribution.D,
    )
    for name in ("means", "variances", "parameters", "data"):
        assert getattr(again, name).tolist() == getattr(distribution, name).tolist()
    assert repr(again) == f"{type(distribution).__name__}(K=3, D={distribution.D})"


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


def test_arms_are_read_only_and_independent_of_what_they_were_made_of() -> None:
    mean = np.array([0.1, 0.9])
    distribution = Bernoulli(mean)
    mean[0] = 0.5
    assert distribution.means.tolist() == [0.1, 0.9]
    for array in (distribution.means, distribution.variances, distribution.parameters, distribution.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# --- distributions of one's own
# ------------------------------------------------------------------------------------------------


class Triangular(Arms):
    """The example of the docstring of `Arms`."""

    distribution, code = "triangular", Tabulated.code

    def __init__(self, mode: Any) -> None:
        c, u = np.asarray(mode, float)[:, None], np.linspace(0, 1, 513)
        quantiles = np.where(u < c, np.sqrt(u * c), 1 - np.sqrt((1 - u) * (1 - c)))
        means, variances = (1 + c[:, 0]) / 3, (1 - c[:, 0] + c[:, 0] ** 2) / 18
        self._mode = c[:, 0]
        self.fill(means, variances, quantiles, support=(0.0, 1.0), sigma=0.5)

    def to_dict(self) -> dict[str, Any]:
        return {"distribution": self.distribution, "mode": self._mode.tolist()}


class Shifted(Arms):
    """Gaussian arms of one's own that samplers can have, with half the spread asked for."""

    distribution, code = "shifted", Gaussian.code

    def __init__(self, mean: Any, spread: float = 1.0) -> None:
        m = np.asarray(mean, float)
        table = self.pack(m.reshape(len(m), -1), spread)
        self.fill(m, (spread / 2) ** 2, table, support=None, sigma=spread / 2)

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        return np.concatenate([means, np.full_like(means, spread / 2)], axis=-1)


@pytest.fixture
def registered() -> None:
    """The classes above are registered."""
    for kind in (Triangular, Shifted):
        assert register_distribution(kind) is kind


def test_a_distribution_of_ones_own(registered: None) -> None:
    """Its moments against its samples, at level LEVEL over 12 comparisons; JSON form; environments."""
    distribution = Triangular([0.1, 0.5, 1.0])
    exact = stats.triang(distribution._mode)
    np.testing.assert_allclose(distribution.means, exact.mean(), rtol=1e-12)
    for arm in range(distribution.K):
        for sim in (pulled(distribution, arm), pulled(distribution, arm, 6, bulk=True)):
            sample = sim.sample.reshape(N, -1)
            variance = distribution.variances[arm].reshape(-1) / int(sim.pulls[0, arm])
            assert moments_fit(sample, distribution.means[arm].reshape(-1), variance) >= LEVEL / 12
    again = arms.from_dict(json.loads(json.dumps(distribution.to_dict())))
    assert type(again) is Triangular
    assert again.parameters.tolist() == distribution.parameters.tolist()
    for make in (gym.make, lambda name, **given: gym.make_vec(name, 3, **given)):
        env = make("bandit_envs/Threshold-v0", instance={"distribution": "triangular", "mode": [0.1, 0.9]}, budget=5)
        assert env.unwrapped.task.distribution == "triangular"
        env.reset(seed=0)
        assert 0 < np.mean(env.step(env.action_space.sample() * 0)[-1]["sample"]) < 1


def test_samplers_take_a_distribution_of_ones_own(registered: None) -> None:
    mine = {"sampler": {"distribution": "shifted", "arms": 4, "mean": {"uniform": [2.0, 3.0]}, "spread": 0.5}}
    like = {"sampler": {"distribution": "gaussian", "arms": 4, "mean": {"uniform": [2.0, 3.0]}, "spread": 0.25}}
    seen = []
    for instance in (mine, like):
        envs = gym.make_vec("bandit_envs/TopK-v0", 50, instance=instance, k=2, budget=40)
        envs.reset(seed=3)
        seen.append([envs.step(np.full(50, t % 4))[0]["total"] for t in range(9)])
    assert (np.array(seen[0]) == np.array(seen[1])).all()
    assert isinstance(Sampler("bandit_envs:Gaussian").arms, Gaussian)


def test_a_distribution_that_is_not_registered_is_found_in_its_module() -> None:
    distribution = arms.from_dict({"distribution": "bandit_envs.instances.arms:Uniform", "mean": [0, 1]})
    assert isinstance(distribution, Uniform)


def test_tables_that_a_sampler_of_ones_own_draws_are_checked() -> None:
    """A distribution whose `pack` makes probabilities beyond 1, or tables of another shape."""

    class Wild(Bernoulli):
        distribution = "wild"
        columns = 1

        @staticmethod
        def pack(means: Floats, spread: float) -> Floats:
            return np.repeat(means + (means > 0.9), Wild.columns, axis=-1)

    register_distribution(Wild)
    envs = gym.make_vec("bandit_envs/TopK-v0", 40, instance="sampler(distribution='wild')", k=2, budget=40)
    with pytest.raises(ValueError, match=r"probabilities of wild arms must lie in \[0, 1\]"):
        envs.reset(seed=0)
    Wild.columns = 2
    with pytest.raises(ValueError, match=r"wild arms need parameters of shape \(10, 1\) .*, got \(40, 10, 2\)"):
        envs.reset(seed=0)
