"""AgentOpt's selectors on its own two tables of models, beside its published rates and the agents of this package.

    python tests/campaigns/agentopt.py 1000

The tables are in the folder that BANDIT_ENVS_DATA names: nine models on 198 questions of GPQA Diamond and on 200 tasks
of BFCL, right or wrong. Questions that a model has no score for are left out. Rows and columns come in random order in
each episode. `PUBLISHED` is AgentOpt's results/summary/*_selector_results.csv at 6d9d985da475, of 50 seeds each.

It prints a Markdown table: calls (the mean of the agents that stop by themselves), and the share of episodes in which
the best model is found, in percent, with its Clopper-Pearson interval of 95 %.
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import agents
from agents.evaluation.statistics import clopper_pearson
from bandit_envs import from_table

PUBLISHED = {  # selector: (calls, hits of 50)
    "gpqa": {"agentopt-elimination": (444, 49), "agentopt-lucb": (361, 45)},
    "bfcl": {"agentopt-elimination": (922, 50), "agentopt-lucb": (407, 30)},
}
STOPPING = ("agentopt-elimination", "agentopt-lucb", "agentopt-lucb(first=10)", "agentopt-lucb(first=30)")
CERTIFIED = "paired-elimination"
BUDGETED = ("evolved", "sysrs", "ucb-e", "uniform")


def scores(name: str) -> NDArray[np.float64]:
    """The table, questions x models in the order of their names, of the questions that all models have a score for."""
    with (Path(os.environ["BANDIT_ENVS_DATA"]) / f"agentopt_{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    models, items = (sorted({row[key] for row in rows}) for key in ("model", "item"))
    table = np.full((len(items), len(models)), np.nan)
    for row in rows:
        table[items.index(row["item"]), models.index(row["model"])] = float(row["score"] or "nan")
    return table[~np.isnan(table).any(axis=1)]


def row_of(agent: str, table: NDArray[np.float64], episodes: int, **rules: Any) -> tuple[float, int, int]:
    """Mean calls, hits and episodes of an agent."""
    source = from_table(table, shared=True, support=(0, 1))
    rules = {"instance": source, "shuffle_arms": True, **rules}
    found = agents.evaluate(agent, "BestArm", episodes=episodes, env_kwargs=rules, progress=False).episodes
    return float(found["total_pulls"].mean()), int(found["correct"].sum()), len(found)


def by_its_rows(table: NDArray[np.float64], first: int, episodes: int) -> tuple[float, int, int]:
    """Epsilon-LUCB as AgentOpt itself asks: both of a pair the row of their round, whatever rows they have missed."""
    (N, K), calls, hits = table.shape, 0, 0
    for episode in range(episodes):
        g = np.random.default_rng(episode)
        x = table[g.permutation(N)][:, order := g.permutation(K)]
        n, sums = np.full(K, float(first)), x[:first].sum(axis=0)
        for row in x[first:]:
            m = sums / n
            r = np.where(n > 1, np.sqrt(m * (1 - m) / np.maximum(n - 1, 1)), 0.5)  # of scores that are 0 or 1
            h = int(m.argmax())
            rival = int(np.where(np.arange(K) == h, -np.inf, m + r).argmax())
            if m[rival] + r[rival] - (m[h] - r[h]) <= 0.01:
                break
            n[[h, rival]] += 1
            sums[[h, rival]] += row[[h, rival]]
        calls, hits = calls + int(n.sum()), hits + (order[(sums / n).argmax()] == table.mean(axis=0).argmax())
    return calls / episodes, int(hits), episodes


def cells(calls: float, hits: int, episodes: int) -> str:
    """What is printed of an agent on a table."""
    low, high = clopper_pearson(hits, episodes)
    return f"{calls:.0f} | {100 * hits / episodes:.1f} ({100 * low:.1f}-{100 * high:.1f})"


def main(episodes: int) -> None:
    """Print the table."""
    tables = {name: scores(name) for name in PUBLISHED}
    for name, table in tables.items():
        print(f"{name}: {len(table)} questions, means {np.sort(table.mean(axis=0))[::-1].round(3)}")
    print("\n| agent |", " | ".join(f"{name.upper()}, calls | best found, %" for name in tables), "|")
    print("|---" * (1 + 2 * len(tables)) + "|")
    for agent in STOPPING[:2]:
        told = (cells(*PUBLISHED[name][agent], 50) for name in tables)
        print(f"| published: {agent} |", " | ".join(told), "|")
    for agent in (*STOPPING, CERTIFIED):
        found = (cells(*row_of(agent, table, episodes, delta=0.1)) for table in tables.values())
        print(f"| `{agent}`{', δ = .1' * (agent == CERTIFIED)} |", " | ".join(found), "|", flush=True)
    found = (cells(*by_its_rows(table, 10, episodes)) for table in tables.values())
    print("| agentopt-lucb(first=10), the row of the round |", " | ".join(found), "|", flush=True)
    for selector in STOPPING[:2]:
        for agent in BUDGETED:
            budgets = {name: PUBLISHED[name][selector][0] for name in tables}
            found = (cells(*row_of(agent, table, episodes, budget=budgets[name])) for name, table in tables.items())
            print(f"| `{agent}` |", " | ".join(found), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
