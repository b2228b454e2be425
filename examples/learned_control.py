"""The table of docs/learned-results.md on BetterThanControl: `evolved` and `ppo` beside the best of all other agents.

The first argument multiplies the numbers of episodes (default 1: some minutes), the second, if any, is a
regular expression for rows.

    python examples/learned_control.py 0.1 marks
"""

import re
import sys

import agents
from agents.evaluation.statistics import paired_difference

TIMES = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
ROWS = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
OTHERS = ["uniform", "lsa", "apt", "evidence", "top-two", "dunnett", "jamieson-jain", "look-ahead"]
TEN, FIVE = ({"sampler": {"arms": arms, "mean": {"uniform": [0.02, 0.05]}}} for arms in (10, 5))
LIFTS = {"base": [0.02, 0.05], "lift": 0.5, "worse": 0.3}  # half of the arms are no better, a quarter like the control
SALES = LIFTS | {"distribution": "revenue"}
NORMAL = {"distribution": "gaussian", "arms": 12, "mean": {"normal": [0, 1]}, "spread": 1.0}
SCALE = {"distribution": "uniform", "arms": 10, "mean": {"uniform": [0.3, 0.7]}, "spread": 0.3}
MANY = 10_000
CASES = [  # in words, keywords of the environment, episodes, and how many of them `ppo` plays, which is slow
    ("means on [0, 1], K = 10", {"budget": 200}, 4000, 2000),
    ("means on [0, 1], K = 5", {"instance": {"sampler": {"arms": 5}}, "budget": 300}, 3000, 1500),
    ("normal means, margin .2, K = 12", {"instance": {"sampler": NORMAL}, "margin": 0.2, "budget": 600}, 1500, 600),
    ("marks on [.3, .7], K = 10", {"instance": {"sampler": SCALE}, "budget": 400}, 1500, 600),
    ("marks of A/B tests, K = 10", {"instance": {"ab-tests": {"distribution": "marks"}}, "budget": 400}, 1500, 600),
    ("conversions of 2 to 5 %, K = 10", {"instance": TEN, "budget": MANY}, 600, 80),
    ("the same, lift 10 %, K = 5", {"instance": FIVE, "lift": 0.1, "budget": MANY}, 600, 80),
    ("conversions of A/B tests, K = 10", {"instance": {"ab-tests": LIFTS}, "budget": MANY}, 600, 80),
    ("revenue of A/B tests, K = 10", {"instance": {"ab-tests": SALES}, "budget": MANY}, 600, 80),
]  # fmt: skip


def scores(names, kwargs, episodes):
    """The scores of agents, by name, on the first episodes of a root."""
    how = {"episodes": max(int(TIMES * episodes), 20), "seed": 2026, "env_kwargs": kwargs, "progress": False}
    runs = agents.evaluate(names, "BetterThanControl", **how).runs
    return {run.agent: run.columns["score"][:, 0] for run in runs}


for words, kwargs, episodes, few in CASES:
    row = f"{words}, T = {kwargs['budget']:,}"
    if not ROWS.search(row):
        continue
    found = scores(["evolved", *OTHERS], kwargs, episodes)
    found |= scores(["ppo"], kwargs, few)
    best = max(OTHERS, key=lambda name: found[name].mean())
    cells = [f"| {row} | {found['uniform'].mean():.4f} | {found['look-ahead'].mean():.4f} "]
    cells.append(f"| `{best}` {found[best].mean():.4f} ")
    for name in ("evolved", "ppo"):
        n = len(found[name])
        paired = paired_difference(found[name], found[best][:n])
        cells.append(f"| {paired.difference:+.4f} [{paired.low:+.4f}, {paired.high:+.4f}], {n:,} ")
    print("".join(cells) + "|", flush=True)
