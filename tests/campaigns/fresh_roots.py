"""Intervals of the benchmark's means over tasks beside how much these differ between fresh roots.

python tests/campaigns/fresh_roots.py evidence random --roots 6
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import agents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="+")
    parser.add_argument("--roots", type=int, default=6)
    parser.add_argument("--set", default="quick-v2")
    given = parser.parse_args()
    roots = np.random.default_rng(87).integers(2**40, 2**62, given.roots)
    played = [agents.benchmark(given.agents, given.set, root=int(root), jobs=2).summary() for root in roots]
    frame = pd.concat(played)
    for column in ("all", "budget", "delta"):
        some = frame.groupby("agent")[column]
        half = (frame[f"{column}_high"] - frame[f"{column}_low"]).groupby(frame["agent"]).mean() / (2 * 1.96)
        print(pd.DataFrame({"column": column, "mean": some.mean(), "sd over roots": some.std(), "said": half}).round(4))


if __name__ == "__main__":
    main()
