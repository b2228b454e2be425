"""A gate that is looked at after each result: how often it is ever wrong, and how many results it takes.

python tests/campaigns/gates.py [looks]
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import agents


def bounds(at_least: float, verdict: str, looks: int) -> NDArray[np.int64]:
    """After each number of results, (looks,), the most failures with which they pass, or successes they fail with.

    -1: none is few enough. One result more adds one at most, which `agents.gate` is asked about.
    """
    most, found = -1, np.empty(looks, np.int64)
    for n in range(1, looks + 1):
        few = most + 1
        most += agents.gate(n=n, successes=n - few if verdict == "pass" else few, at_least=at_least).verdict == verdict
        found[n - 1] = most
    return found


def ever(rate: float, verdict: str, bounds: NDArray[np.int64]) -> tuple[float, float]:
    """The probability, exact but for 1e-12, of the verdict at some look, and the mean number of results until then."""
    step = 1 - rate if verdict == "pass" else rate
    open_, over, results = np.array([1.0]), 0.0, 0.0  # the probability of each number of failures, or successes
    for most in bounds.tolist():
        results += open_.sum()
        open_ = np.append(open_ * (1 - step), 0.0) + np.append(0.0, open_ * step)
        over += open_[: most + 1].sum()
        open_[: most + 1] = 0.0
        open_ = np.trim_zeros(np.where(open_ > 1e-16, open_, 0.0), "b")
    return float(over), float(results)


def streams(rate: float, verdict: str, bounds: NDArray[np.int64], runs: int, seed: int = 0) -> int:
    """Of so many streams, those in which the verdict is given at some look."""
    rng, step, found = np.random.default_rng(seed), 1 - rate if verdict == "pass" else rate, 0
    for _ in range(0, runs, 500):
        found += int(((rng.random((500, len(bounds))) < step).cumsum(axis=1) <= bounds).any(axis=1).sum())
    return found


def main() -> None:
    """Print the shares."""
    looks = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for number in (0.9, 0.5, 0.99):
        found = {verdict: bounds(number, verdict, looks) for verdict in ("pass", "fail")}
        for rate, verdict in ((number, "fail"), (number - 1e-4, "pass")):
            wrong, many = ever(rate, verdict, found[verdict])[0], streams(rate, verdict, found[verdict], 10_000)
            print(f"at_least {number}, rate {rate}, {looks} looks: {verdict} {wrong:.4f}, {many} of 10,000 streams")
        for rate in (number - 0.1 * (1 - number), number + 0.5 * (1 - number)):
            verdict = "pass" if rate > number else "fail"
            share, results = ever(rate, verdict, found[verdict])
            print(f"at_least {number}, rate {rate:.4f}: {verdict} {share:.4f}, after {results:.0f} results on average")


if __name__ == "__main__":
    main()
