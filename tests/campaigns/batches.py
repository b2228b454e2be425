"""The price of batches: pulls until a certificate, and scores within a budget, where results come in batches.

    python tests/campaigns/batches.py --episodes 60 --out price-of-batches.csv

Ten agents on four problems of 10 Bernoulli arms that are drawn afresh in each episode, results shown in batches of 1,
10 and 100. All agents meet the same episodes. With a certificate, delta is .1, and errors are counted against it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import binom

import agents

DELTA, BUDGET, MOST = 0.1, 300, 6000
ARMS: dict[str, Any] = {"instance": "sampler(arms=10)"}
PROBLEMS: dict[str, dict[str, Any]] = {
    "Threshold": {"threshold": 0.5, "tolerance": 0.1},
    "BestArm": {"epsilon": 0.1},
    "TopK": {"k": 3, "epsilon": 0.1, "criterion": "each"},
    "AllGood": {"epsilon": 0.2, "slack": 0.1},
}
CERTIFIED: dict[str, list[str]] = {
    "Threshold": ["evidence", "lsa(stop='certificate')", "uniform(stop='certificate')"],
    "BestArm": ["evidence", "top-two", "kl-lucb", "uniform(stop='certificate')"],
    "TopK": ["evidence", "top-two", "kl-lucb", "uniform(stop='certificate')"],
    "AllGood": ["evidence", "top-two", "uniform(stop='certificate')"],
}
BUDGETED: dict[str, list[str]] = {
    "Threshold": ["evolved", "lsa", "apt", "sar", "uniform"],
    "BestArm": ["evolved", "look-ahead", "sequential-halving", "successive-rejects", "uniform"],
    "TopK": ["evolved", "look-ahead", "ocba-m", "uniform"],
    "AllGood": ["evolved", "look-ahead", "uniform"],
}


def played(problem: str, names: list[str], batch: int, episodes: int, rules: dict[str, Any]) -> pd.DataFrame:
    """A row for each agent."""
    kwargs = ARMS | PROBLEMS[problem] | rules | ({"batch": batch} if batch > 1 else {})
    result = agents.evaluate(names, problem, episodes=episodes, seed=68, env_kwargs=kwargs, progress=False)
    table = result.summary().reset_index()[["agent", "total_pulls", "error_rate", "score", "truncated"]]
    return table.assign(problem=problem, batch=batch, rules="budget" if "budget" in rules else "delta")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    tables, by_delta = [], {"delta": DELTA, "max_pulls": MOST}
    for problem in PROBLEMS:
        for batch in (1, 10, 100):
            tables.append(played(problem, CERTIFIED[problem], batch, given.episodes, by_delta))
            tables.append(played(problem, BUDGETED[problem], batch, given.episodes, {"budget": BUDGET}))
            print(pd.concat(tables[-2:]).round(3).to_string(), flush=True)
    table = pd.concat(tables)
    if given.out is not None:
        table.to_csv(given.out, index=False)
    for rules, value in (("delta", "total_pulls"), ("budget", "score")):
        rows = table[table.rules == rules]
        print(rows.pivot(index=["problem", "agent"], columns="batch", values=value).round(3).to_string())
    errors = table[table.rules == "delta"]
    worst = int(round(errors.error_rate.max() * given.episodes))
    chance = float(binom.sf(worst - 1, given.episodes, DELTA)) * len(errors)
    print(f"most errors in a cell: {worst} of {given.episodes}; as many by chance at delta, of any cell: {chance:.3g}")


if __name__ == "__main__":
    main()
