"""The table of docs/learned-results.md on BetterThanControl: `evolved` and `ppo` beside the best of all other agents.

The first argument multiplies the numbers of episodes (default 1: a quarter of an hour), the second, if any, is a
regular expression for rows.

    python examples/learned_control.py 0.1 marks
"""

import re
import sys

import agents

TIMES = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
ROWS = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
OTHERS = ["uniform", "lsa", "apt", "evidence", "top-two", "dunnett", "jamieson-jain", "look-ahead"]
RATES = {"uniform": [0.02, 0.05]}
LIFTS = {"base": [0.02, 0.05], "lift": 0.5, "worse": 0.3}  # half of the arms are no better, a quarter like the control
NORMAL = {"distribution": "gaussian", "arms": 12, "mean": {"normal": [0, 1]}, "spread": 1.0}
SCALE = {"distribution": "uniform", "arms": 10, "mean": {"uniform": [0.3, 0.7]}, "spread": 0.3}
CASES = [  # in words, keywords of the environment, episodes
    ("means on [0, 1], K = 10", {"budget": 200}, 10_000),
    ("means on [0, 1], K = 5", {"instance": {"sampler": {"arms": 5}}, "budget": 300}, 8000),
    ("normal means, margin .2, K = 12", {"instance": {"sampler": NORMAL}, "margin": 0.2, "budget": 600}, 4000),
    ("marks on [.3, .7], K = 10", {"instance": {"sampler": SCALE}, "budget": 400}, 4000),
    ("marks of A/B tests, K = 10", {"instance": {"ab-tests": {"distribution": "marks"}}, "budget": 400}, 4000),
    ("conversions of 2 to 5 %, K = 10", {"instance": {"sampler": {"arms": 10, "mean": RATES}}, "budget": 10_000}, 600),
    (
        "conversions, lift 10 %, K = 20",
        {"instance": {"sampler": {"arms": 20, "mean": RATES}}, "lift": 0.1, "budget": 20_000},
        200,
    ),
    ("conversions of A/B tests, K = 10", {"instance": {"ab-tests": LIFTS}, "budget": 10_000}, 600),
    (
        "revenue of A/B tests, K = 10",
        {"instance": {"ab-tests": {"distribution": "revenue", **LIFTS}}, "budget": 10_000},
        600,
    ),
]

for words, kwargs, episodes in CASES:
    row = f"{words}, T = {kwargs['budget']:,}"
    if not ROWS.search(row):
        continue
    names, count = ["evolved", "ppo", *OTHERS], max(int(TIMES * episodes), 20)
    result = agents.evaluate(names, "BetterThanControl", episodes=count, seed=2026, env_kwargs=kwargs, progress=False)
    means = {run.agent: float(run.columns["score"].mean()) for run in result.runs}
    best = max(OTHERS, key=means.__getitem__)
    cells = [f"| {row} | {count:,} | {means['uniform']:.4f} | {means['look-ahead']:.4f} | `{best}` {means[best]:.4f} "]
    for name in ("evolved", "ppo"):
        paired = result.compare(name, best, "score")
        cells.append(f"| {means[name]:.4f}: {paired.difference:+.4f} [{paired.low:+.4f}, {paired.high:+.4f}] ")
    print("".join(cells) + "|", flush=True)
