"""Comparisons of logs that are looked at after each item: false alarms, coverage, and power beside McNemar's test.

The statistic is that of `agents.compare_logs`; `tests/evaluation/test_harness_logs.py` checks that they agree.

    python tests/campaigns/logs.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from agents.evaluation.statistics import mcnemar_midp
from bandit_envs import stopping

Floats = NDArray[np.float64]
DELTA = 0.05
Bets = list[tuple[float, float]]
CERTIFICATES: Bets = list(zip(stopping.BETS, stopping.SHARES, strict=True))
BETS: Bets = [(f, 0.6 * share) for f, share in CERTIFICATES]
BETS += [(float(np.sin((k + 0.5) / 8 * np.pi / 2)), 0.4 / 8) for k in range(8)]
FEW = [(0.02, 0.08, 250), (0.05, 0.15, 400), (0.10, 0.14, 2200), (0.30, 0.40, 2800)]  # alone right; items that count


def p_values(d: Floats, mean: float = 0.0) -> Floats:
    """The p-value that differences d (n,) in [-1, 1] have this mean, after each of them, (n,)."""
    evidence = np.full(len(d), -np.inf)
    for x, c in (((1 + d) / 2, (1 + mean) / 2), ((1 - d) / 2, (1 - mean) / 2)):
        logs = [np.log(share) + np.cumsum(np.log(1 - f + f * x / c)) for f, share in BETS]
        evidence = np.maximum(evidence, np.logaddexp.reduce(logs))
    found: Floats = np.minimum(1.0, 2 * np.exp(-evidence))
    return found


def by_bets(up: Floats, down: Floats, bets: Bets) -> Floats:
    """The larger evidence of two sides that two logs are right equally often, of the items one of them alone has."""
    sides = [[np.log(w) + a * np.log1p(f) + b * np.log1p(-f) for f, w in bets] for a, b in ((up, down), (down, up))]
    found: Floats = np.logaddexp.reduce(sides, axis=1).max(axis=0)
    return found


def by_beta(up: Floats, down: Floats) -> Floats:
    """The same of Beta(1/2, 1/2), which has both sides at once: twice its e-value, to be compared with 2 / delta."""
    found: Floats = betaln(up + 0.5, down + 0.5) - betaln(0.5, 0.5) + (up + down + 1) * np.log(2)
    return found


def until(only_a: float, only_b: float, evidence: Callable[[Floats, Floats], Floats], most: int) -> tuple[float, float]:
    """How many items it takes on average until two logs are found to differ, and with which probability they are.

    Exact but for 1e-12, for up to `most` items that one log alone has right: others change nothing.
    """
    rate, open_, items = only_b / (only_a + only_b), np.array([1.0]), 0.0  # the probability of each number of only_b
    for n in range(1, most + 1):
        items += open_.sum() / (only_a + only_b)
        open_ = np.append(open_ * (1 - rate), 0.0) + np.append(0.0, open_ * rate)
        up = np.flatnonzero(open_ > 1e-15)
        open_[up[evidence(up, n - up) >= np.log(2 / DELTA)]] = 0.0
    return items, 1 - open_.sum()


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
    print("items that it takes on average, exactly: at any time; by the bets of certificates; by Beta(1/2, 1/2)")
    for only_a, only_b, most in FEW:
        ways = [partial(by_bets, bets=BETS), partial(by_bets, bets=CERTIFICATES), by_beta]
        found = [until(only_a, only_b, way, most) for way in ways]
        print(f"only a {only_a}, only b {only_b}:", *(f"{items:.1f} ({share:.4f} are found)" for items, share in found))
    share = until(0.05, 0.05, partial(by_bets, bets=BETS), 2000)[1]
    print(f"of equal logs, a difference is found within 2,000 items that one has right alone: {share:.4f}")


if __name__ == "__main__":
    main()
