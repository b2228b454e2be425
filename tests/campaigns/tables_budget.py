"""The best column of a table within 2, 5, 10 and 20 % of its cells: how often agents err, and what they lose.

    python tests/campaigns/tables_budget.py 2000                all tables and agents, 2000 episodes of each
    python tests/campaigns/tables_budget.py 2000 --slow 40      of the slow agents 40
    python tests/campaigns/tables_budget.py 2000 --tables 0/1 marks

Tables: `alpaca`, the scores of 58 models on the 805 rows of AlpacaEval 2, in the folder that BANDIT_ENVS_DATA names;
`alpaca-20`, 20 of these models, drawn anew in each episode; and `0/1` and `marks`, 20 candidates on 500 rows, drawn
anew in each episode by `ScoreTables`. Empty cells count as the mean of their column. All agents meet the same episodes,
or the first of them.

It prints a Markdown table: the error rate in % with its Clopper-Pearson interval, and the regret, the mean that is lost
in thousandths, with its bootstrap interval, both of 95 %.
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import agents
from agents.evaluation.statistics import bootstrap_mean
from bandit_envs import Instance, Sampler, ScoreTables, Shared
from bandit_envs.kernels import rng

SHARES = (0.02, 0.05, 0.1, 0.2)
AGENTS = (
    "uniform",
    "successive-rejects",
    "sysrs",
    "sequential-halving",
    "sequential-halving(reuse=True)",
    "ucb-e",
    "ucb-e-lrf",
    "paired-elimination",
    "look-ahead",
    "evolved",
    "ppo",
)
SLOW = ("ucb-e-lrf", "look-ahead", "ppo")
TOO_LARGE = {("alpaca", "ucb-e-lrf")}  # minutes for an episode
Floats = NDArray[np.float64]


class Columns(Sampler):
    """K of the columns of a table (N, M), drawn anew in each episode."""

    name = "columns"

    def __init__(self, scores: Floats, K: int) -> None:
        self.scores, self.K, self.D = scores, K, 1
        self.whole = Shared(scores, (0, 1)).parameters  # (M, N + 1)
        self.arms, self.distribution = Shared(scores[:, :K], (0, 1)), Shared.distribution

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        """Means (E, K), and parameters (E, K, N + 1)."""
        u = rng.uniforms(key, episode, len(self.whole), stream=rng.INSTANCE)[..., 0]
        table = self.whole[np.argsort(u, axis=1)[:, : self.K]]
        return table[..., -1].copy(), table

    def to_dict(self) -> dict[str, Any]:
        """Its parameters."""
        return {self.name: {"K": self.K}}


@functools.cache
def alpaca() -> Floats:
    """The table (N, M)."""
    with (Path(os.environ["BANDIT_ENVS_DATA"]) / "alpaca_eval_2_scores.csv").open(newline="") as file:
        _, *rows = csv.reader(file)
    scores = np.array([[float(cell or "nan") for cell in row[1:]] for row in rows])
    return np.where(np.isnan(scores), np.nanmean(scores, axis=0), scores)


TABLES: dict[str, Any] = {
    "alpaca": lambda: Instance(Shared(alpaca(), (0, 1)), "alpaca", {"": {"shuffle_arms": True}}),
    "alpaca-20": lambda: Columns(alpaca(), 20),
    "0/1": lambda: ScoreTables(20, 500),
    "marks": lambda: ScoreTables(20, 500, marks=True),
}


def cells(agent: str, table: str, episodes: int) -> list[str]:
    """What is printed of an agent on a table, for each share."""
    source = TABLES[table]()
    size = source.K * (source.arms.items or 0)
    budgets = [round(share * size) for share in SHARES]
    found = agents.evaluate(agent, "BestArm", episodes=episodes, budgets=budgets, env_kwargs={"instance": source})
    out = []
    for _, row in found.summary().iterrows():
        lost = found.episodes.loc[found.episodes["budget"] == row["budget"], "aggregate_regret"].to_numpy(np.float64)
        low, high = (1000 * float(end) for end in bootstrap_mean(lost))
        span = f" ({low:.2f}-{high:.2f})" if lost.any() else ""  # where nothing is lost there is none
        error = f"{100 * row['error_rate']:.1f} ({100 * row['error_low']:.1f}-{100 * row['error_high']:.1f})"
        out.append(f"{error}; {1000 * lost.mean():.2f}{span}")
    return out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("episodes", type=int)
    parser.add_argument("--slow", type=int, help="episodes of slow agents; by default a fiftieth")
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--agents", nargs="*", default=AGENTS)
    given = parser.parse_args()
    print("| table | agent | episodes |", " | ".join(f"{100 * share:.0f} %" for share in SHARES), "| s |")
    print("|---" * (4 + len(SHARES)) + "|")
    for table in given.tables:
        for agent in given.agents:
            if (table, agent) in TOO_LARGE:
                continue
            few = given.slow or max(given.episodes // 50, 2)
            episodes, start = few if agent in SLOW else given.episodes, time.time()
            found = " | ".join(cells(agent, table, episodes))
            print(f"| {table} | {agent} | {episodes} | {found} | {time.time() - start:.0f} |", flush=True)


if __name__ == "__main__":
    main()
