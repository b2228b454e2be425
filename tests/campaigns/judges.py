"""How many cells a judge's scores of the same rows save: BestArm, delta .05, tolerances of .02 and .05 of the range.

    python tests/campaigns/judges.py [--orders 10] [--columns N] [--slope 0.5] [--plain]

Tables of `fewer_cells`, all columns or so many. Judges are made of the scores. Of right and wrong, a share of the cells
of a column is as it is, and the others are those of random rows of the column. To other scores noise is added, cut off
at the range, so that this share is the correlation. "lenient": that of .85, whose other cells are right as often as
the column's own chance says, drawn for each column; "against": that of .95 turned upside down. The judge's means are
the hint, or with --plain they are not. Ratios are of the cells without a judge, in the same order. It needs the files
of `fewer_cells`.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import fewer_cells
import numpy as np

SHARES = (0.95, 0.85, 0.7, 0.5)


def judged(x: Any, share: float, g: Any) -> Any:
    """A judge's scores of all cells of x (N, K), with about this correlation in each column."""
    if np.isin(x, (0.0, 1.0)).all():
        return np.where(g.random(x.shape) < share, x, g.permuted(x, axis=0))
    noise = x.std(axis=0) * math.sqrt(1.0 / share**2 - 1.0)
    return np.clip(x + noise * g.standard_normal(x.shape), 0.0, 1.0)


def judges_of(x: Any, g: Any) -> dict[str, Any]:
    """All judges of a table."""
    found = {f"{share:g}": judged(x, share, g) for share in SHARES}
    own = (g.random(x.shape) < g.random(x.shape[1])) * 1.0
    return found | {"lenient": np.where(g.random(x.shape) < 0.85, x, own), "against": 1.0 - found["0.95"]}


def corrected(x: Any, judge: Any, slope: float) -> tuple[Any, Any, float]:
    """Z, scaled to [0, 1] by its range; the judge's means, scaled likewise; and the width of the range."""
    off = slope * (judge - judge.mean(axis=0))
    low, width = -off.max(), 1.0 + off.max() - off.min()
    return (x - off - low) / width, (judge.mean(axis=0) - low) / width, width


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--slope", type=float, default=0.5)
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    found: dict[tuple[str, float], list[float]] = {}
    runs = wrong = 0
    for name in fewer_cells.TABLES:
        x, g = fewer_cells.table_of(name), np.random.default_rng(4)
        for epsilon in fewer_cells.TOLERANCES:
            ratios: dict[str, list[float]] = {}
            for _ in range(given.orders):
                one = fewer_cells.drawn(x, g, given.columns or x.shape[1])
                plain = fewer_cells.pulled(one, epsilon)[0].sum()
                for word, judge in judges_of(one, g).items():
                    z, means, width = corrected(one, judge, given.slope)
                    pulls, right = fewer_cells.pulled(z, epsilon / width, None if given.plain else means)
                    ratios.setdefault(word, []).append(math.log(pulls.sum() / plain))
                    runs, wrong = runs + 1, wrong + (not right)
            shown = {word: float(np.mean(logs)) for word, logs in ratios.items()}
            print(f"{name}, {epsilon}: {', '.join(f'{w} {math.exp(x):.2f}' for w, x in shown.items())}", flush=True)
            for word, log in shown.items():
                found.setdefault((word, epsilon), []).append(log)
    for (word, epsilon), logs in found.items():
        print(f"judge {word}, {epsilon}: {math.exp(np.mean(logs)):.2f} of the cells, geometric mean of the tables")
    print(f"{wrong} of {runs} wrong")


if __name__ == "__main__":
    main()
