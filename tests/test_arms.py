"""Laws of the arms: mean and spread of what is pulled, bulk pulls against single ones, JSON, bad input.

Statistical tests fail right samplers with probability at most LEVEL in all per test function (Bonferroni), were their
seeds new; moments are compared in the normal approximation of 20 000 samples.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rollouts import simulator
from scipy import stats

from bandit_envs import Arms, Bernoulli, Categorical, Gaussian, Resampled, Uniform, arms

LEVEL = 1e-6
N = 20_000  # episodes
episodes = pytest.mark.parametrize("size", [N, pytest.param(20 * N, marks=pytest.mark.slow)])
Floats = NDArray[np.float64]

PAIRS = [[[0.0, 1.0], [2.0, -1.0], [2.0, 3.0]], [[5.0, 5.0]], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [4.0, 4.0]]]
WIDE = np.arange(1, 13)
LAWS: dict[str, Arms] = {
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
}
both = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


def pulled(law: Arms, arm: int, times: int = 1, *, bulk: bool = False, root: int = 0, size: int = N) -> Any:
    """The simulator of so many episodes after so many pulls of one arm, one by one or in bulk."""
    sim = simulator(law, size, root)
    for _ in range(1 if bulk else times):
        sim.advance(np.full(size, arm), np.full(size, times if bulk else 1))
    return sim


# --- what a law's parameters mean -------------------------------------------------------------------------------------


def test_moments_and_scales_by_hand() -> None:
    law: Arms = Bernoulli([0.2, 0.5])
    np.testing.assert_allclose(law.variances, [0.2 * 0.8, 0.25])
    assert (law.support, law.sigma) == ((0, 1), 0.5)
    law = Gaussian([[0, 1], [2, 3]], [1, 2])  # sd broadcasts along the coordinates
    assert law.variances.tolist() == [[1, 4], [1, 4]]
    assert (law.support, law.sigma) == (None, 2)
    law = Uniform([0, 1], [1, 6])
    np.testing.assert_allclose(law.variances, [1 / 12, 3])  # width^2 / 12
    assert (law.support, law.sigma) == (None, 3)  # half the larger width
    law = Categorical([1, 2, 4], [[1, 1, 2], [3, 0, 0]])  # weights 1, 1, 2: probabilities 1/4, 1/4, 1/2
    assert law.means.tolist() == [(1 + 2 + 8) / 4, 1]
    np.testing.assert_allclose(law.variances, [(1 + 4 + 32) / 4 - 2.75**2, 0])
    assert (law.support, law.sigma) == ((1, 4), 1.5)
    law = Resampled([[0, 4], [1, 1, 4]])
    assert law.means.tolist() == [2, 2]
    np.testing.assert_allclose(law.variances, [4, 2])  # ((1 - 2)^2 + (1 - 2)^2 + (4 - 2)^2) / 3
    assert (law.support, law.sigma) == ((0, 4), 2)


def moments_fit(samples: Floats, mean: Floats, variance: Floats) -> float:
    """The least p-value of the mean and of the variance of samples (n, D), by their standard errors."""
    assert (samples[:, variance == 0] == mean[variance == 0]).all()
    x, sd = samples[:, variance > 0] - mean[variance > 0], np.sqrt(variance[variance > 0])
    if not x.size:
        return 1.0
    spread = np.sqrt(((x**2 - sd**2) ** 2).mean(axis=0))
    z = [x.mean(axis=0) / sd, (x**2 - sd**2).mean(axis=0)[spread > 1e-9] / spread[spread > 1e-9]]
    return float(2 * stats.norm.sf(np.abs(np.concatenate(z)).max() * np.sqrt(len(samples))))


def moments_tested(law: Arms) -> float:
    return LEVEL / (2 * law.means.size * len(LAWS))


@both
@episodes
def test_single_pulls_have_the_mean_and_the_spread(law: Arms, size: int) -> None:
    for arm in range(law.K):
        sample = pulled(law, arm, size=size).sample.reshape(size, -1)
        assert moments_fit(sample, law.means[arm].reshape(-1), law.variances[arm].reshape(-1)) >= moments_tested(law)


@both
def test_the_moments_test_has_teeth(law: Arms) -> None:
    arm, limit = 0, moments_tested(law)
    sample = pulled(law, arm).sample.reshape(N, -1)
    mean, variance = law.means[arm].reshape(-1), law.variances[arm].reshape(-1)
    assert moments_fit(sample, mean + 0.1 * np.sqrt(variance), variance) < limit
    if not (isinstance(law, Bernoulli) and mean[0] == 0.5):  # there (x - mean)^2 is constant
        assert moments_fit(mean + 1.2 * (sample - mean), mean, variance) < limit


@both
def test_every_value_is_reached(law: Arms) -> None:
    if isinstance(law, (Bernoulli, Categorical, Resampled)):
        seen = np.unique(pulled(law, 0).sample.reshape(N, -1), axis=0)
        possible = {"bernoulli": 2**law.D, "categorical": len(law.data), "resampled": 3}[law.law]
        assert len(seen) == possible  # the rarest of these has probability 0.0025: missed by 20 000 with e^-50
    if law.support is not None:
        for arm in range(law.K):
            sample = pulled(law, arm).sample
            assert law.support[0] <= sample.min() <= sample.max() <= law.support[1]


@pytest.mark.parametrize("name", ["bernoulli 2-D", "gaussian 3-D", "uniform 4-D"])
def test_coordinates_are_independent(name: str) -> None:
    """Rank correlations of the coordinates of one pull, normal with standard deviation 1 / sqrt(N - 1)."""
    ranks = stats.spearmanr(pulled(LAWS[name], 0).sample).statistic
    pairs = np.atleast_2d(ranks)[np.triu_indices(LAWS[name].D, 1)] if np.ndim(ranks) else np.array([ranks])
    assert (2 * stats.norm.sf(np.abs(pairs) * np.sqrt(N - 1)) >= LEVEL / (3 * len(pairs))).all()


def test_resampled_coordinates_are_of_one_row() -> None:
    seen = np.unique(pulled(LAWS["resampled 2-D"], 2).sample, axis=0)
    assert seen.tolist() == sorted(PAIRS[2])


# --- bulk pulls -------------------------------------------------------------------------------------------------------


TIMES = 24


def tables(law: Arms, sim: Any, arm: int) -> list[Floats]:
    """What a bulk pull must get right, standardised: sum, variance, and their joint law in combinations of the two."""
    found = []
    for d in range(law.D):
        mean, scale = law.means.reshape(law.K, -1)[arm, d], np.sqrt(law.variances.reshape(law.K, -1)[arm, d]) or 1.0
        s = (sim.total.reshape(sim.E, law.K, -1)[:, arm, d] - TIMES * mean) / (scale * np.sqrt(TIMES))
        v = sim.variance.reshape(sim.E, law.K, -1)[:, arm, d] / scale**2 * np.sqrt(TIMES)
        found += [s, v, s + v, s - v]
    return [np.round(x, 7) for x in found]  # equal values stay equal whatever their rounding errors


def law_fit(one: list[Floats], other: list[Floats]) -> float:
    """The least p-value of two-sample Kolmogorov-Smirnov tests."""
    return min(float(stats.ks_2samp(x, y, method="asymp").pvalue) for x, y in zip(one, other, strict=True))


def law_tested(law: Arms) -> float:
    return LEVEL / (4 * law.D * law.K * len(LAWS))


@both
@episodes
def test_a_bulk_pull_has_the_law_of_single_pulls(law: Arms, size: int) -> None:
    for arm in range(law.K):
        single = tables(law, pulled(law, arm, TIMES, root=1, size=size), arm)
        bulk = tables(law, pulled(law, arm, TIMES, bulk=True, root=2, size=size), arm)
        assert law_fit(single, bulk) >= law_tested(law)


@both
def test_the_bulk_test_has_teeth(law: Arms) -> None:
    """Twins: a third of the pulls left out; the true variance instead of a random one; another pull's variance."""
    single, limit = tables(law, pulled(law, 0, TIMES, root=1), 0), law_tested(law)
    sim, other = pulled(law, 0, TIMES, bulk=True, root=2), pulled(law, 0, TIMES, bulk=True, root=3)
    fewer = pulled(law, 0, TIMES - 8, bulk=True, root=2)
    sim.variance[:] = law.variances
    assert law_fit(single, tables(law, fewer, 0)) < limit
    assert law_fit(single, tables(law, sim, 0)) < limit
    if abs(np.corrcoef(single[0], single[1])[0, 1]) > 0.1:  # for symmetric arms the two are uncorrelated
        sim.variance[:] = other.variance
        assert law_fit(single, tables(law, sim, 0)) < limit


@both
def test_a_bulk_pull_of_1_is_a_pull(law: Arms) -> None:
    """Bit for bit, beside episodes that pull in bulk, and after a bulk pull."""
    mixed, single = simulator(law, 100), simulator(law, 100)
    times = np.where(np.arange(100) % 3 == 0, 9, 1)
    for arm in (0, 1, 0):
        mixed.advance(np.full(100, arm), times)
        single.advance(np.full(100, arm), np.ones(100, np.int64))
        assert (mixed.sample[times == 1] == single.sample[times == 1]).all()
    for a, b in ((mixed.total, single.total), (mixed.mean, single.mean), (mixed.variance, single.variance)):
        assert (a[times == 1] == b[times == 1]).all()


@pytest.mark.parametrize(
    ("name", "times"), [("uniform", 24), ("uniform 4-D", 7), ("resampled", 3), ("resampled 2-D", 2)]
)
def test_one_by_one_bulk_pulls_are_the_sum_of_single_pulls(name: str, times: int) -> None:
    law = LAWS[name]
    for before in (0, 2):  # pulls made before
        single, bulk = simulator(law, 100), simulator(law, 100)
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
def test_bulk_pulls_stay_within_the_support(law: Arms) -> None:
    for times in (2, 1000, 2**31 - 1 if law.law != "uniform" else 2000):
        sim = simulator(law, 20)
        sim.advance(np.ones(20, np.int64), np.full(20, times))
        assert (sim.variance >= 0).all()
        if law.support is not None:
            assert law.support[0] <= sim.sample.min() * (1 + 1e-12)
            assert sim.sample.max() * (1 - 1e-12) <= law.support[1]


# --- forms ------------------------------------------------------------------------------------------------------------


@both
def test_json_round_trip(law: Arms) -> None:
    again = arms.from_dict(json.loads(json.dumps(law.to_dict())))
    assert type(again) is type(law)
    assert (again.support, again.sigma, again.K, again.D) == (law.support, law.sigma, law.K, law.D)
    for name in ("means", "variances", "parameters", "data"):
        assert getattr(again, name).tolist() == getattr(law, name).tolist()
    assert repr(again) == f"{type(law).__name__}(K=3, D={law.D})"


def test_arms_of_one_dimension_are_scalar_arms() -> None:
    for wide, flat in (
        (Bernoulli([[0.1], [0.9]]), Bernoulli([0.1, 0.9])),
        (Gaussian([[0.0], [1.0]], [[1.0], [2.0]]), Gaussian([0, 1], [1, 2])),
        (Uniform([[0.0], [1.0]], 3), Uniform([0, 1], 3)),
        (Resampled([[[1.0], [2.0]], [[3.0]]]), Resampled([[1, 2], [3]])),
    ):
        assert wide.D == 1
        assert wide.to_dict() == flat.to_dict()
        assert wide.parameters.tolist() == flat.parameters.tolist()


def test_arms_are_read_only_and_independent_of_what_they_were_made_of() -> None:
    mean = np.array([0.1, 0.9])
    law = Bernoulli(mean)
    mean[0] = 0.5
    assert law.means.tolist() == [0.1, 0.9]
    for array in (law.means, law.variances, law.parameters, law.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# --- bad input --------------------------------------------------------------------------------------------------------

HUGE = 10**400
NUMBERS = [  # nothing that `mean` (and every other array of numbers) takes, and what is said
    (None, r"\(\)"),
    ("0.5", "'0.5'"),
    (["0.1", "0.2"], r"\['0.1', '0.2'\]"),
    ([0.1, None], "nan"),
    ([0.1, [0.2]], "0.2"),
    ([0.1, np.nan], r"finite.*nan at index \[1\]"),
    ([np.inf, 0.1], r"finite.*inf at index \[0\]"),
    ([0.1, 1j], "1j"),
    ([HUGE, 0.1], "1000"),
    ([0.1, 1e101], r"1e\+101 at index \[1\]"),
    ({}, "{}"),
    ([True, False], "True"),
    (0.5, r"\(\)"),
    ([], r"\(0,\)"),
    (np.zeros((2, 0)), r"\(2, 0\)"),
    (np.zeros((2, 2, 2)), r"\(2, 2, 2\)"),
]


@pytest.mark.parametrize(("mean", "said"), NUMBERS)
@pytest.mark.parametrize("law", ["bernoulli", "gaussian", "uniform"])
def test_means_that_are_no_numbers(law: str, mean: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^mean .*{said}"):
        arms.LAWS[law](mean)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Bernoulli([0.1, 1.5]), r"lies in \[0, 1\], got 1.5"),
        (lambda: Bernoulli([0.1, -0.5]), r"lies in \[0, 1\], got -0.5"),
        (lambda: Bernoulli([0.1]), "2 to 16777216 arms, got 1"),
        (lambda: Gaussian([0, 1], 0), "sd must be > 0, got 0"),
        (lambda: Gaussian([0, 1], [1, -2]), "sd must be > 0, got -2"),
        (lambda: Gaussian([0, 1], [1, 2, 3]), r"sd must broadcast to the shape \(2,\) of mean, got shape \(3,\)"),
        (lambda: Gaussian([0, 1], "1"), "sd must be numbers.*'1'"),
        (lambda: Gaussian([0, 1], np.inf), "sd must be finite"),
        (lambda: Uniform([0, 1], -1), "width must be > 0, got -1"),
        (lambda: Uniform([0, 1], np.ones((2, 2))), r"width must have .* axes, .*got shape \(2, 2\)"),
        (lambda: Categorical([1], [[1], [1]]), r"at least 2 numbers in increasing order, got \[1"),
        (lambda: Categorical([2, 1], [[1, 1], [1, 1]]), r"increasing order, got \[2"),
        (lambda: Categorical([1, 2], [[1, 1, 1], [1, 1, 1]]), r"one column per value \(2\), got shape \(2, 3\)"),
        (lambda: Categorical([1, 2], [[1, -1], [1, 1]]), "must be >= 0, got -1"),
        (lambda: Categorical([1, 2], [[1, 1], [0, 0]]), "arm 1 has probabilities that sum to 0"),
        (lambda: Categorical([1, 2], [1, 1]), r"probabilities must have 2 axes, .*got shape \(2,\)"),
        (lambda: Categorical([1, 2], [[1, np.nan], [1, 1]]), "probabilities must be finite"),
        (lambda: Categorical([[1, 2]], [[1, 1], [1, 1]]), r"values must have 1 axes, .*got shape \(1, 2\)"),
        (lambda: Resampled([]), r"at least 2 arms, got \[\]"),
        (lambda: Resampled(5), "at least 2 arms, got 5"),  # type: ignore[arg-type]
        (lambda: Resampled([[1, 2], []]), r"rows of arm 1 must have .* axes, none empty, got shape \(0,\)"),
        (lambda: Resampled([[1, 2], [[1, 2]]]), r"one dimension, got shapes \[\(\), \(2,\)\]"),
        (lambda: Resampled([[1, 2], [1, np.nan]]), "rows of arm 1 must be finite"),
        (lambda: Resampled([[3, 3], [3]]), "at least 2 different numbers, got 3.0 only"),
        (lambda: arms.from_dict({"mean": [0, 1]}), "'law' must be one of .*bernoulli.*got None"),
        (lambda: arms.from_dict({"law": "poisson"}), "'law' must be one of .*got 'poisson'"),
        (lambda: arms.from_dict({"law": ["gaussian"]}), r"'law' must be one of .*got \['gaussian'\]"),
        (lambda: arms.from_dict({"law": "gaussian"}), "gaussian arms: .*'mean'"),
        (lambda: arms.from_dict({"law": "bernoulli", "mean": [0, 1], "sd": 1}), "bernoulli arms: .*'sd'"),
        (lambda: arms.from_dict({"law": "bernoulli", "mean": [0, 1], 3: 1}), "bernoulli arms: keywords must be str"),
    ],
)
def test_bad_arms_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
