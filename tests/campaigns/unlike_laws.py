"""`agents.ab_test` without sigma: false finds of unlike laws with equal means, and marks of a law against itself.

python tests/campaigns/unlike_laws.py  100 tests of each pair, looked at 30 times; "100 single": as single results alone
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import agents

Law = Callable[[Any, int], Any]
DELTA, LOOKS = 0.05, np.unique(np.geomspace(20, 20_000, 30).astype(int))


def buyers(share: float, price: float, spread: float = 0.0) -> Law:
    """So many buy, for this price on average, log-normal with this spread."""

    def draw(random: Any, n: int) -> Any:
        return (random.random(n) < share) * price * np.exp(spread * random.normal(size=n) - spread**2 / 2)

    return draw


def normal(mean: float, sd: float) -> Law:
    return lambda random, n: random.normal(mean, sd, n)


def bonus(share: float, price: float) -> Law:
    """A base that all have, and a bonus that few have."""
    return lambda random, n: random.normal(10, 1, n) + (random.random(n) < share) * price


UNLIKE: dict[str, tuple[Law, Law, float]] = {  # equal means; the share of the traffic that the second has
    ".5 % for 200, 20 % for 5": (buyers(0.005, 200), buyers(0.2, 5), 0.5),
    "20 % for 5, .5 % for 200": (buyers(0.2, 5), buyers(0.005, 200), 0.5),
    "sd 1 and 5": (normal(1, 1), normal(1, 5), 0.5),
    "50 % for 2, 1 % for 100 with a tenth of the traffic": (buyers(0.5, 2), buyers(0.01, 100), 0.1),
    "log-normal 1.5, and normal": (buyers(1, 10, 1.5), normal(10, 3), 0.5),
    "a bonus for 2 %, and normal": (bonus(0.02, 50), normal(11, 1), 0.5),
}
SAME: dict[str, Law] = {
    "normal around 0": normal(0, 1),
    "normal around 10": normal(10, 4),
    "20 % buyers": buyers(0.2, 5),
    "20 % buyers, prices vary": buyers(0.2, 20, 0.8),
    "5 % buyers": buyers(0.05, 20),
}


def looked_at(table: Any, single: bool) -> Any:
    """The comparison of results by arm."""
    if single:
        frames = [pd.DataFrame({"name": name, "value": x}) for name, x in table.items()]
        return agents.ab_test(pd.concat(frames), "A", delta=DELTA)
    rows = [(name, len(x), x.mean(), x.std(ddof=1)) for name, x in table.items()]
    return agents.ab_test(pd.DataFrame(rows, columns=["name", "n", "mean", "sd"]), "A", delta=DELTA)


def finds(
    pair: tuple[Law, Law, float], tests: int, single: bool, looks: Any = LOOKS, every: int = 10
) -> tuple[int, float, int]:
    """Tests with a find at any look; the share of looks that are marked; the first size from which most are not.

    Looks at which the means are within 2.4 standard errors are left out, as there is no find, but for one test in so
    many.
    """
    wrong, marked = 0, list[list[bool]]()
    for seed in range(tests):
        random, (one, other, share) = np.random.default_rng(seed), pair
        a, b = one(random, looks[-1]), other(random, int(looks[-1] * share / (1 - share)) + 1)
        found, row = False, list[bool]()
        for n in looks:
            x, y = a[:n], b[: max(int(n * share / (1 - share)), 2)]
            sd = max(x.std(), y.std())
            near = abs(x.mean() - y.mean()) <= 2.4 * sd * math.sqrt(1 / len(x) + 1 / len(y))
            if sd == 0 or seed % every and near:
                row.append(True)
                continue
            compared = looked_at({"A": x, "B": y}, single)
            row.append(compared.attrs["approximate"])
            found |= bool(compared["better"].any() or compared["worse"].any())
        wrong += found
        marked += [] if seed % every else [row]
    share_of = np.mean(marked, axis=0)
    free = np.flatnonzero(share_of < 0.5)
    return wrong, float(share_of.mean()), int(looks[free[0]]) if len(free) else 0


def main(tests: int = 100) -> None:
    limit = tests * DELTA + 3 * math.sqrt(tests * DELTA * (1 - DELTA))
    for single in (False, True)[len(sys.argv) > 2 :]:
        for title, pair in UNLIKE.items():
            wrong, share, free = finds(pair, tests, single)
            print(
                f"{'single' if single else 'counts'}: {title:52} {wrong:3} of {tests} false (at most {limit:.1f}),",
                end="",
            )
            print(f" {share:.2f} of looks marked, free from {free}", flush=True)
        for title, law in SAME.items():
            many = []
            for n in (500, 1000, 2000):
                draws = [np.random.default_rng(seed) for seed in range(tests // 2)]
                many += [
                    sum(looked_at({"A": law(one, n), "B": law(one, n)}, single).attrs["approximate"] for one in draws)
                ]
            print(
                f"{'single' if single else 'counts'}: {title:52} marked at 500, 1,000, 2,000: {many}",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
