"""What environments draw: orders of arms and of rows, means of samplers, and both apart from the samples.

python tests/campaigns/instances.py     100,000 episodes of each check, in tests some thousands

Each check fails a right environment with probability about 1e-6, were its seeds new.
"""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
from scipy import stats

from bandit_envs import Polyhedra, PromptSelection, Sampler
from bandit_envs.kernels import orders, rng, root_key
from bandit_envs.kernels.geometry import Polyhedron

SURE = {"distribution": "gaussian", "mean": [0.1, 0.2, 0.6, 0.9], "sd": 1e-9}  # one pull shows the mean
SAMPLERS: list[tuple[str, dict[str, list[float]], float, float]] = [  # distribution, means, the least and most of them
    ("bernoulli", {"uniform": [0.2, 0.4]}, 0.2, 0.4),
    ("gaussian", {"normal": [3.0, 0.5]}, -np.inf, np.inf),
    ("uniform", {"choice": [1.0, 2.0, 5.0]}, 1.0, 5.0),
]
APART: list[Any] = [  # means that a sampler draws, and a fixed set in random order
    "sampler(distribution='uniform', arms=4)",
    {"distribution": "uniform", "mean": [0.0, 10, 20, 30]},
]


def made(episodes: int, **settings: Any) -> Any:
    return gym.make_vec("bandit_envs/Threshold-v0", episodes, **settings)


def check_order(episodes: int) -> None:
    """Every arm is shuffled to every place equally often: chi-square of 4 x 4 counts, of 9 degrees of freedom."""
    envs = made(episodes, instance=SURE, shuffle_arms=True)
    envs.reset(seed=0, options={"episode": np.arange(episodes)})
    counts, expected = np.zeros((4, 4)), episodes / 4
    for place in range(4):
        *_, info = envs.step(np.full(episodes, place))
        which = np.abs(info["sample"][:, None] - SURE["mean"]).argmin(axis=1)
        counts[place] = np.bincount(which, minlength=4)
    assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.isf(1e-6, 9)


def check_means(distribution: str, mean: Any, low: float, high: float, episodes: int) -> None:
    """Means of 5 arms against SciPy, KS or chi-square."""
    envs = made(episodes, instance={"sampler": {"distribution": distribution, "arms": 5, "mean": mean}})
    envs.reset(seed=3)
    means = envs.unwrapped._core.means
    assert means.shape == (episodes, 5)
    assert low <= means.min() <= means.max() <= high
    kind, values = next(iter(mean.items()))
    if kind == "choice":
        assert stats.chisquare([(means == value).sum() for value in values]).pvalue > 1e-6
    else:
        right = stats.uniform(low, high - low) if kind == "uniform" else stats.norm(*values)
        assert stats.kstest(means.reshape(-1), right.cdf).pvalue > 1e-6
        assert stats.kstest(means.reshape(-1) * 1.1, right.cdf).pvalue < 1e-6  # it can fail
        z = stats.spearmanr(means[:, 0], means[:, 1]).statistic * np.sqrt(episodes - 1)
        assert abs(z) < stats.norm.isf(5e-7)


def check_apart(instance: Any, episodes: int) -> None:
    """No rank correlation of an arm's mean with what its first pull adds to it, or with the public word.

    Normal limits at level 1e-6 / 8 each.
    """
    envs = made(episodes, instance=instance, shuffle_arms=True)
    seen, _ = envs.reset(seed=0, options={"episode": np.arange(episodes)})
    means, public = envs.unwrapped._core.means, seen["public_seed"][:, 0]
    limit = stats.norm.isf(1e-6 / 16) / np.sqrt(episodes - 1)
    for arm in range(4):
        added = envs.step(np.full(episodes, arm))[4]["sample"] - means[:, arm]
        assert 0.2 < added.std() < 0.4  # uniform of width 1: 0.29
        for other in (added, public):
            assert abs(stats.spearmanr(means[:, arm], other).statistic) < limit
    assert abs(stats.spearmanr(means[:, 0], means[:, 0] + 5 * added).statistic) > limit  # it can fail


def drawn(sampler: Any, episodes: int, root: int = 0) -> Any:
    """Means of a sampler, (E, K) or (E, K, D)."""
    key = np.repeat(rng.root_key(root)[:, None], episodes, axis=1)
    return sampler.draw(key, np.arange(episodes, dtype=np.uint64))[0]


def check_polyhedra(distribution: str, episodes: int) -> None:
    """Arms lie inside with probability 1/2 where the boundary is bounded, and near it."""
    sampler = Polyhedra(distribution, arms=8, dimensions=2, rows=30, reach=0.2)
    rows, means = sampler.defaults["Feasible"], drawn(sampler, episodes)
    P = Polyhedron(rows["A"], rows["b"])
    inside = int(P.contains(means).sum())
    assert stats.binom.ppf(5e-7, 8 * episodes, 0.5) <= inside <= stats.binom.isf(5e-7, 8 * episodes, 0.5)
    reach = 0.2 * (1.0 if distribution != "bernoulli" else 0.3)  # times the radius
    assert (np.abs(P.margin(means)) <= reach).all()
    assert distribution != "bernoulli" or ((means >= 0) & (means <= 1)).all()
    assert (drawn(sampler, episodes) == means).all()
    assert (drawn(sampler, 7) == means[:7]).all()
    assert not (drawn(sampler, 7, root=1) == means[:7]).any()
    assert (np.sort(np.unique(means)) == np.unique(drawn(Polyhedra(distribution, 8, 2, 30, 0, 0.2), episodes))).all()


def check_accuracies(episodes: int) -> None:
    """Logits of 50 candidates are normal: Kolmogorov-Smirnov; another spread is noticed."""
    sampler = PromptSelection(50, 0.3, 0.8)
    means = drawn(sampler, episodes, root=1)
    assert means.shape == (episodes, 50)
    z = (np.log(means / (1 - means)) - np.log(0.3 / 0.7)).ravel()
    assert stats.kstest(z / 0.8, "norm").pvalue > 1e-6
    assert stats.kstest(z / 1.0, "norm").pvalue < 1e-6
    assert sampler.positive


def check_around(episodes: int) -> None:
    """Means around a centre: at distances that are uniform, on either side."""
    means = drawn(Sampler(arms=8, mean={"around": [0.5, 0.1, 0.3]}), episodes)
    far = np.abs(means - 0.5)
    assert 0.1 <= far.min() < 0.1001
    assert 0.2999 < far.max() <= 0.3
    assert abs((means > 0.5).mean() - 0.5) < 5 * 0.5 / np.sqrt(means.size)
    assert abs(far.mean() - 0.2) < 5 * 0.2 / np.sqrt(12 * means.size)


def check_orders(N: int, episodes: int) -> None:
    """All orders of the N rows of a table are equally likely."""
    found = orders(np.repeat(root_key(N)[:, None], episodes, axis=1), np.arange(episodes, dtype=np.uint64), N)
    every = {one: i for i, one in enumerate(itertools.permutations(range(N)))}
    counts = np.bincount([every[tuple(one)] for one in found.tolist()], minlength=len(every))
    assert len(counts) == 1 or stats.chisquare(counts).pvalue > 1e-6


def check_long_order(episodes: int) -> None:
    """Each place of a long order is uniform and independent of its neighbour."""
    N = 300
    found = orders(np.repeat(root_key(1)[:, None], episodes, axis=1), np.arange(episodes, dtype=np.uint64), N)
    assert (np.sort(found[:50], axis=1) == np.arange(N)).all()
    for place in (0, 1, 150, N - 2, N - 1):
        assert stats.chisquare(np.bincount(found[:, place], minlength=N)).pvalue > 1e-6 / 6
    halves = np.histogram2d(found[:, 7] % 2, found[:, 8] // 150, bins=2)[0]
    assert stats.chi2_contingency(halves).pvalue > 1e-6 / 6


def main() -> None:
    check_order(100_000)
    for row in SAMPLERS:
        check_means(*row, 100_000)
    for instance in APART:
        check_apart(instance, 100_000)
    for distribution in ("gaussian", "bernoulli", "uniform"):
        check_polyhedra(distribution, 20_000)
    for check in (check_accuracies, check_around, check_long_order):
        check(100_000)
    for N in range(1, 6):
        check_orders(N, 400_000)


if __name__ == "__main__":
    main()
