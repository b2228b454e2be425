"""An A/B test over days: the counts of each day, and the intervals of the lift that hold at any time.

    python examples/ab_test.py --days 40 --out ab-test.png

A is the control. Of the variants, B is better by 23 % and C is like A. Each day the counts so far are looked at;
nothing more is needed. The thin bars are intervals of a fixed horizon, for comparison: looked at each day, they are
wrong far more often than 1 time in 20.
"""

from __future__ import annotations

import argparse

import numpy as np
from matplotlib import pyplot as plt

from bandit_envs import BetterThanControl

RATES = {"A": 0.030, "B": 0.037, "C": 0.030}


def main(days: int, visitors: int, out: str | None, seed: int = 2) -> None:
    random, problem = np.random.default_rng(seed), BetterThanControl(control=0, expected=[0.030, 0.037])
    n = np.outer(np.arange(1, days + 1), np.full(len(RATES), visitors))
    s = np.cumsum(random.binomial(visitors, list(RATES.values()), n.shape), axis=0)
    looks = [problem.comparison(n[day], s[day] / n[day], level=0.05, distribution="bernoulli") for day in range(days)]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for i, axis in enumerate(axes, 1):
        p, q = s[:, i] / n[:, i], s[:, 0] / n[:, 0]
        half = 1.96 * p / q * np.sqrt((1 - p) / s[:, i] + (1 - q) / s[:, 0])
        day = np.arange(1, days + 1)
        low, high = (np.array([look[end][i] for look in looks]) for end in ("lift_low", "lift_high"))
        axis.fill_between(day, 100 * low, np.minimum(100 * high, 150), alpha=0.25, label="at any time, both variants")
        axis.errorbar(
            day, 100 * (p / q - 1), 100 * half, fmt=".", lw=0.7, ms=3, color="0.3", label="fixed horizon, one look"
        )
        axis.axhline(0, color="k", lw=0.8)
        found = [d for d, look in zip(day, looks, strict=True) if look["better"][i]]
        title = f"B, 23 % better: found on day {found[0]}" if found else f"{list(RATES)[i]}, like A: not found"
        axis.set(title=title, xlabel=f"day, {visitors} visitors of each", ylim=(-60, 130))
        if found:
            axis.axvline(found[0], color="C1", lw=1)
        print(title)
    axes[0].set_ylabel("lift over A (%)")
    axes[0].legend(loc="upper right", frameon=False)
    if out is None:
        plt.show()
    else:
        figure.savefig(out, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=40)
    parser.add_argument("--visitors", type=int, default=500, help="of each variant, a day")
    parser.add_argument("--out", help="file of the picture; left out: it is shown")
    asked = parser.parse_args()
    main(asked.days, asked.visitors, asked.out)
