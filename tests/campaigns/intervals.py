"""How often intervals and tests of evaluations err, by simulation and exactly; weak ones beside them.

python tests/campaigns/intervals.py     the rates of 100,000 repetitions; the default tests have some hundreds
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import stats

from agents.evaluation.statistics import bootstrap_mean, clopper_pearson, holm, paired_difference

Array = npt.NDArray[np.float64]


def wald(errors: Array, n: int) -> tuple[Array, Array]:
    """The textbook interval, too short for rare errors."""
    rate = errors / n
    half = 1.96 * np.sqrt(rate * (1 - rate) / n)
    return rate - half, rate + half


def exact_coverage(limits: Callable[[Array, int], tuple[Array, Array]], n: int, rate: float) -> float:
    k = np.arange(n + 1.0)
    low, high = limits(k, n)
    return float(stats.binom.pmf(k, n, rate)[(low <= rate) & (rate <= high)].sum())


def misses(limits: Callable[[Array, int], tuple[Array, Array]], repeats: int) -> int:
    """How many intervals of a rate of .01, of 300 episodes each, leave it out."""
    errors = np.random.default_rng(1).binomial(300, 0.01, repeats).astype(float)
    low, high = limits(errors, 300)
    return int(((low > 0.01) | (high < 0.01)).sum())


def bootstrap_misses(level: float, repeats: int) -> int:
    """How many intervals of an exponential mean, of 30 samples each, leave it out: at .95 about 9 of 100."""
    rng, missed = np.random.default_rng(2), 0
    for seed in range(repeats):
        low, high = bootstrap_mean(rng.exponential(size=30), level, resamples=500, seed=seed)
        missed += not low <= 1 <= high
    return missed


def bootstrap_p(d: Array, seed: int) -> float:
    """The p-value that would invert the percentile bootstrap: dishonest for few episodes."""
    rng = np.random.default_rng(seed)
    means = d[rng.integers(len(d), size=(500, len(d)))].mean(axis=1)
    return 2 * (1 + min(int((means <= 0).sum()), int((means >= 0).sum()))) / 501


def signs_p(d: Array, seed: int) -> float:
    return paired_difference(d, 0 * d, resamples=500, seed=seed).p_value


def false_alarms(p_value: Callable[[Array, int], float], repeats: int) -> int:
    """How many of so many tests of five differences around 0 reject at .05."""
    rng = np.random.default_rng(3)
    return sum(p_value(rng.normal(size=5), seed) <= 0.05 for seed in range(repeats))


def family_alarms(correct: bool, families: int) -> int:
    """How many families of 6 dependent tests of what is true reject any at .05."""
    generator = np.random.default_rng(0)
    shared, own = generator.normal(size=(families, 1)), generator.normal(size=(families, 6))
    p = 2 * stats.norm.sf(np.abs(0.5**0.5 * (shared + own)))
    return int(sum((holm(row) if correct else row).min() < 0.05 for row in p))


# What is to err at most at a rate, a weak one that errs more often, repetitions in tests, and the rate.
RATES: dict[str, tuple[Callable[[int], int], Callable[[int], int], int, float]] = {
    "clopper-pearson": (lambda n: misses(clopper_pearson, n), lambda n: misses(wald, n), 2000, 0.05),
    "bootstrap": (lambda n: bootstrap_misses(0.95, n), lambda n: bootstrap_misses(0.75, n), 400, 0.1),
    "random signs": (lambda n: false_alarms(signs_p, n), lambda n: false_alarms(bootstrap_p, n), 400, 0.05),
    "holm": (lambda n: family_alarms(True, n), lambda n: family_alarms(False, n), 2000, 0.05),
}


def main() -> None:
    for name, (right, weak, _, rate) in RATES.items():
        print(
            f"{name:16} {right(100_000) / 100_000:.4f}, to be {rate} at most; a weak one {weak(100_000) / 100_000:.4f}"
        )


if __name__ == "__main__":
    main()
