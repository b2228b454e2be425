"""What arms of each distribution yield, compared with their means, spreads, and single pulls with bulk pulls.

    PYTHONPATH=tests/support python tests/campaigns/distributions.py     400,000 episodes, in tests 20,000

Statistical tests fail right samplers with probability at most LEVEL in all per check (Bonferroni); moments are compared
in the normal approximation of 20 000 samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rollouts import simulator
from scipy import stats

from bandit_envs import (
    Arms,
    Bernoulli,
    Categorical,
    Gaussian,
    Resampled,
    Tabulated,
    Uniform,
)

LEVEL = 1e-6


N = 20_000  # episodes


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


def pulled(distribution: Arms, arm: int, times: int = 1, *, bulk: bool = False, root: int = 0, size: int = N) -> Any:
    """The simulator of so many episodes after so many pulls of one arm, one by one or in bulk."""
    sim = simulator(distribution, size, root)
    for _ in range(1 if bulk else times):
        sim.advance(np.full(size, arm), np.full(size, times if bulk else 1))
    return sim


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


def check_moments(distribution: Arms, size: int) -> None:
    for arm in range(distribution.K):
        sample = pulled(distribution, arm, size=size).sample.reshape(size, -1)
        mean, variance = (x[arm].reshape(-1) for x in (distribution.means, distribution.variances))
        assert moments_fit(sample, mean, variance) >= moments_tested(distribution)


def check_bulk(distribution: Arms, size: int) -> None:
    for arm in range(distribution.K):
        single = tables(distribution, pulled(distribution, arm, TIMES, root=1, size=size), arm)
        bulk = tables(distribution, pulled(distribution, arm, TIMES, bulk=True, root=2, size=size), arm)
        assert distribution_fit(single, bulk) >= distribution_tested(distribution)


def main() -> None:
    for distribution in DISTRIBUTIONS.values():
        check_moments(distribution, 20 * N)
        check_bulk(distribution, 20 * N)


if __name__ == "__main__":
    main()
