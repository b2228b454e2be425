"""Comparisons of logs that are looked at after each item: false alarms, coverage, and power beside McNemar's test.

The statistic is that of `agents.compare_logs`; `tests/evaluation/test_harness_logs.py` checks that they agree.

    python tests/campaigns/logs.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.statistics import mcnemar_midp
from bandit_envs import stopping

Floats = NDArray[np.float64]
DELTA = 0.05


def p_values(d: Floats, mean: float = 0.0) -> Floats:
    """The p-value that differences d (n,) in [-1, 1] have this mean, after each of them, (n,)."""
    n = np.arange(1, len(d) + 1)
    raw = [np.cumsum(d**k) / n for k in range(5)]
    m = raw[1]
    second, third = raw[2] - m**2, raw[3] - 3 * m * raw[2] + 2 * m**3
    fourth = raw[4] - 4 * m * raw[3] + 6 * m**2 * raw[2] - 3 * m**4
    common = stopping.common("bounded", support=(-1.0, 1.0))
    certifier = stopping.Certifier.of("threshold", 1, common, mean, mean)
    moments = np.stack([third, fourth], axis=1)[:, None]
    variance = stopping.with_moments(np.maximum(second, 0.0)[:, None], moments)
    evidence = stopping.sides(certifier, n[:, None], m[:, None], variance).max(axis=(1, 2))
    found: Floats = np.minimum(1.0, 2 * np.exp(-evidence))
    return found


def differences(rng: np.random.Generator, n: int, only_a: float, only_b: float) -> Floats:
    """Differences b - a of right answers, of n items."""
    return rng.choice([-1.0, 1.0, 0.0], n, p=[only_a, only_b, 1 - only_a - only_b])


def ever_below(runs: int, n: int, only_a: float, only_b: float, mean: float, seed: int = 0) -> int:
    """In how many runs the p-value of the mean is DELTA or less after some item."""
    rng = np.random.default_rng(seed)
    return sum(p_values(differences(rng, n, only_a, only_b), mean).min() <= DELTA for _ in range(runs))


def main() -> None:
    """Print the shares."""
    runs = 4000
    for only_a, only_b, n in [(0.05, 0.05, 1000), (0.2, 0.2, 1000), (0.02, 0.10, 1000), (0.05, 0.15, 1000)]:
        wrong = ever_below(runs, n, only_a, only_b, only_b - only_a)
        print(f"only a {only_a}, only b {only_b}: the true difference is left out in {wrong / runs:.4f} of the runs")
    rng = np.random.default_rng(1)
    peeks = 0
    for _ in range(400):
        d = differences(rng, 1000, 0.05, 0.05)
        ups, downs = np.cumsum(d > 0), np.cumsum(d < 0)
        peeks += any(mcnemar_midp(ups[i], downs[i]) <= DELTA for i in range(20, 1000, 10))
    print(f"McNemar's mid-p test, looked at after each tenth item from the 20th on, errs in {peeks / 400:.3f}")
    for only_a, only_b in [(0.02, 0.08), (0.05, 0.15), (0.02, 0.17)]:
        for n in (220, 500, 1000):
            d = [differences(rng, n, only_a, only_b) for _ in range(1000)]
            fixed = np.mean([mcnemar_midp((x > 0).sum(), (x < 0).sum()) <= DELTA for x in d])
            below = [p_values(x) <= DELTA for x in d]
            items = np.mean([x.argmax() + 1 if x.any() else n for x in below])
            found = np.mean([x.any() for x in below])
            print(
                f"only a {only_a}, only b {only_b}, n = {n}: McNemar {fixed:.3f}, at any time {found:.3f}, {items:.0f}"
            )


if __name__ == "__main__":
    main()
