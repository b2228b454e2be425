"""How many graded examples it takes to choose one of K prompts or models: the tables of docs/model-selection.md.

The arguments are the episodes (default 1000; a 25th of them with a guarantee), the number of candidates (default 30)
and, if any, a regular expression for titles.

    python examples/model_selection.py
    python examples/model_selection.py 1000 30 "best of 30, a budget"
"""

from __future__ import annotations

import re
import sys
from typing import Any

import agents
import bandit_envs  # noqa: F401  (registers the environments)

BEST, TOP, ALL = "bandit_envs/BestArm-v0", "bandit_envs/TopK-v0", "bandit_envs/AllGood-v0"
BUDGET = [
    "uniform",
    "successive-rejects",
    "sequential-halving",
    "sequential-halving(reuse=True)",
    "ocba-m(n0=5)",
    "evolved",
]
TOP_BUDGET = ["uniform", "successive-rejects", "opt-mai(reuse=True)", "ocba-m(n0=5)", "evolved"]
CERTIFIED = ["evidence", "top-two", "track-and-stop"]
CONFIDENCE = [*CERTIFIED, "kl-lucb", "ugape", "clucb", "lucb", "median-elimination"]
TOP_CONFIDENCE = [*CERTIFIED, "kl-lucb", "ugape", "clucb", "lucb", "halving"]
ALL_CONFIDENCE = [*CERTIFIED[::2], "st2"]
EACH = (8, 20, 100)  # examples of each candidate that the budgets would pay
EASY, HARD = "prompt-selection(K={K})", "prompt-selection(K={K}, accuracy=0.81, spread=1.12)"


def budgets(env_id: str, names: list[str], instance: str, K: int, episodes: int, **rules: Any) -> None:
    """Print the mean accuracy lost, and the share of runs that are wrong, at three budgets."""
    print(f"\n{env_id} {instance.format(K=K)} {rules or ''}, {episodes} episodes\n")
    print("| agent | " + " | ".join(f"{n * K} examples" for n in EACH) + " |\n|---|---|---|---|")
    kwargs = {"instance": instance.format(K=K), "epsilon": 0.05, **rules}
    rows = agents.evaluate(names, env_id, episodes=episodes, budgets=[n * K for n in EACH], env_kwargs=kwargs).summary()
    for name in names:
        table = rows[rows["agent"] == name]
        cells = [f"{r.aggregate_regret:.3f} ({r.error_rate:.2f})" for r in table.itertuples()]
        print(f"| `{name}` | " + " | ".join(cells) + " |")


def confidence(env_id: str, names: list[str], instance: str, K: int, episodes: int, **rules: Any) -> None:
    """Print the mean and the 95 % quantile of the graded examples until an agent stops."""
    print(f"\n{env_id} {instance.format(K=K)} {rules or ''}, delta .1, epsilon .05, {episodes} episodes\n")
    print("| agent | graded examples, mean | 95 % quantile | errors |\n|---|---|---|---|")
    kwargs = {"instance": instance.format(K=K), "epsilon": 0.05, "delta": 0.1, "max_pulls": 10**8, **rules}
    for name in names:
        rows = agents.evaluate(name, env_id, episodes=episodes, env_kwargs=kwargs).summary()
        r = next(rows.itertuples())
        print(
            f"| `{name}` | {r.total_pulls:,.0f} | {r.total_pulls_95:,.0f} | {r.error_rate:.2f} |",
            flush=True,
        )


def main(episodes: int = 1000, K: int = 30, wanted: str = ".") -> None:
    """Print the tables whose titles match."""
    five: dict[str, Any] = {"k": 5, "criterion": "each"}
    tables: dict[str, tuple[Any, ...]] = {
        f"the best of {K}, a budget": (budgets, BEST, BUDGET, EASY, {}),
        f"the best of {K}, a guarantee": (confidence, BEST, CONFIDENCE, EASY, {}),
        f"the five best of {K}, a budget": (budgets, TOP, TOP_BUDGET, EASY, five),
        f"the five best of {K}, a guarantee": (confidence, TOP, TOP_CONFIDENCE, EASY, five),
        f"all of {K} within .05, a guarantee": (confidence, ALL, ALL_CONFIDENCE, EASY, {"slack": 0.05}),
        "nearly always right, a budget": (budgets, BEST, BUDGET, HARD, {}),
        "nearly always right, a guarantee": (confidence, BEST, CONFIDENCE, HARD, {}),
    }
    for title, (table, env_id, names, instance, rules) in tables.items():
        if re.search(wanted, title):
            table(env_id, names, instance, K, episodes if table is budgets else episodes // 25, **rules)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
