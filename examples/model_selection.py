"""How many graded calls it takes to choose one of K candidates of drawn tables: a table of docs/model-selection.md.

Candidates meet the same N questions. In each episode all scores are drawn anew, as the sampler `score-tables` does. The
arguments are the episodes (default 200), the numbers of candidates (default 5,10,20,40) and, if any, a file for the
picture, which needs matplotlib.

    python examples/model_selection.py
    python examples/model_selection.py 200 5,10,20,40 calls.png
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import agents
from bandit_envs import Instance, Resampled, ScoreTables

N, EPSILON, DELTA = 500, 0.02, 0.05
INDEPENDENT = 20  # tables on which independent samples are tried, with 1 episode each


def shared(K: int, marks: bool, episodes: int) -> tuple[float, float, float]:
    """Mean and 95 % quantile of the calls of paired elimination, and the share of wrong answers."""
    rules = {"instance": f"score-tables(K={K}, N={N}, marks={marks})", "epsilon": EPSILON, "delta": DELTA}
    row = next(
        agents.evaluate("paired-elimination", "BestArm", episodes=episodes, env_kwargs=rules).summary().itertuples()
    )
    return row.total_pulls, row.total_pulls_95, row.error_rate


def independent(K: int, marks: bool, tables: int) -> float:
    """Mean calls of `top-two` where each draws a fresh question of the same table, at most ten times the table."""
    sampler, calls = ScoreTables(K, N, marks), []
    for episode in range(tables):
        _, table = sampler.draw(np.zeros((2, 1), np.uint64), np.array([episode], np.uint64))
        arms = Resampled(list(table[0, :, :-1]))
        rules: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "max_pulls": 10 * K * N}
        found = agents.evaluate("top-two", "BestArm", episodes=1, env_kwargs={"instance": Instance(arms), **rules})
        calls.append(float(found.summary()["total_pulls"].iloc[0]))
    return float(np.mean(calls))


def picture(rows: list[tuple[bool, int, float, float, float]], path: str) -> None:
    """Draw the calls against the number of candidates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    counts = sorted({K for _, K, *_ in rows})
    axes.plot(counts, [K * N for K in counts], color="0.4", ls=":", label=f"the whole table, {N} questions")
    for marks, colour in ((False, "#D55E00"), (True, "#0072B2")):
        of = [row for row in rows if row[0] == marks]
        what = "marks" if marks else "right or wrong"
        axes.plot(counts, [row[4] for row in of], color=colour, ls="--", label=f"{what}: independent questions")
        axes.plot(counts, [row[2] for row in of], color=colour, marker="o", label=f"{what}: the same for all")
    axes.set(xscale="log", yscale="log", xlabel="candidates", ylabel="calls", xticks=counts)
    axes.set_xticklabels(map(str, counts))
    axes.minorticks_off()
    axes.legend(fontsize="small", frameon=False)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Print the table."""
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    counts = [int(word) for word in (sys.argv[2] if len(sys.argv) > 2 else "5,10,20,40").split(",")]
    print(f"within {EPSILON} of the best with probability {1 - DELTA}, {N} questions, {episodes} episodes\n")
    print("| scores | candidates | calls, mean | 95 % quantile | share of the table | independent | errors |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    for marks in (False, True):
        for K in counts:
            mean, most, wrong = shared(K, marks, episodes)
            alone = independent(K, marks, min(INDEPENDENT, episodes))
            rows.append((marks, K, mean, most, alone))
            cells = f"{mean:,.0f} | {most:,.0f} | {mean / (K * N):.0%} | {alone:,.0f} | {wrong:.3f}"
            print(f"| {'marks' if marks else '0/1'} | {K} | {cells} |", flush=True)
    if len(sys.argv) > 3:
        picture(rows, sys.argv[3])


if __name__ == "__main__":
    main()
