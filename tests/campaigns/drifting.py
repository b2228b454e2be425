"""A/A tests within days whose rates drift while traffic moves, looked at each day: how often a variant is found.

python tests/campaigns/drifting.py  400 tests of two variants, six looks at each of ten days; and 400 at rates that stay
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pandas as pd

import agents

DELTA, DAYS, LOOKS = 0.05, 10, 6


def drifting(random: Any, most: float, effect: float = 1.0) -> Any:
    """Rows of a test, one for each sixth of a day: rates change by day, and so do the shares of traffic."""
    rows, lead = [], 0.0
    for day in range(DAYS):
        base = 0.05 * random.uniform(0.7, most)
        for part in range(LOOKS):
            for name, by in (("A", 1.0), ("B", effect), ("C", 1.0)):
                share = 1.0 if name == "A" else 0.3 + 2.0 * (lead > 0) * (name == "B") + random.random()
                n = int(random.poisson(150 * share)) * (day < 7 or name != "C")
                rows.append((day, part, name, n, int(random.binomial(n, min(base * by, 1.0)))))
        lead = sum(x if name == "B" else 0 for _, _, name, _, x in rows) - 0.05 * sum(
            n for _, _, name, n, _ in rows if name == "B"
        )  # more traffic for B, on days after lucky ones
    return pd.DataFrame(rows, columns=["day", "part", "variant", "n", "successes"])


def false_finds(tests: int, most: float = 1.4, effect: float = 1.0, looks: int = 2, first: int = 0) -> int:
    """Tests in which a variant is found to be better at any look; the day of the look is not over."""
    wrong = 0
    for seed in range(first, first + tests):
        table = drifting(np.random.default_rng(seed), most, effect)
        for k in np.linspace(LOOKS, DAYS * LOOKS, looks).astype(int):
            seen = table[table["day"] * LOOKS + table["part"] < k]
            counts = seen.groupby(["day", "variant"], as_index=False)[["n", "successes"]].sum()
            found = agents.ab_test(counts, "A", delta=DELTA, closed=False)
            if found["better_once"].any():
                wrong += 1
                break
    return wrong


def shipped(tests: int, days: int = 8) -> int:
    """Tests in which a variant ships on any day that is better by 60 %, and worse in a guardrail by what is allowed."""
    wrong = 0
    for seed in range(tests):
        random, rows = np.random.default_rng(seed), list[tuple[int, str, int, int, int]]()
        for day in range(days):
            base = random.uniform(0.7, 1.4)
            for name, by, less in (("A", 1.0, 0.0), ("B", 1.6, 0.03)):
                n = int(random.poisson(1500))
                rows.append(
                    (day, name, n, *(int(random.binomial(n, p * base - q)) for p, q in ((0.05 * by, 0), (0.4, less))))
                )
        table = pd.DataFrame(rows, columns=["day", "variant", "n", "signups", "back"])
        how: dict[str, Any] = {"metric": "signups", "guardrails": {"back": 0.03}, "shares": {"A": 1, "B": 1}}
        looks = (agents.ab_test(table[table["day"] <= day], "A", delta=DELTA, **how) for day in range(days))
        wrong += any(one["ship"].any() for one in looks)
    return wrong


def main(tests: int = 400) -> None:
    limit = tests * DELTA + 3 * math.sqrt(tests * DELTA * (1 - DELTA))
    for most, title in ((1.4, "rates .7 to 1.4 by day"), (0.7, "rates that stay")):
        wrong = false_finds(tests, most, looks=DAYS * LOOKS)
        print(f"{title}: {wrong} of {tests} with a false find, at most {limit:.1f}", flush=True)
    print(f"worse by what is allowed: {shipped(tests)} of {tests} are shipped, at most {limit:.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
