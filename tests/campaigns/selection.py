"""Ranking and selection on TPMax: procedures at a fixed precision, with a budget, and equal allocation, by exact truth.

    python tests/campaigns/selection.py                     3,249 production lines, 20 replications of each agent
    python tests/campaigns/selection.py --many --zone .5    KT and FBKT once each on the 57,624 lines, for minutes

The zone is in units of throughput at the best line, .1 as in PyPRS's demonstration. The budget is a share of PyPRS's
4,704,528 samples of 57,624 lines, scaled by the number of lines. Columns: samples, PCS (the best line), PGS (within the
zone), the latter with a 95 % interval, EOC (expected loss of throughput), CPU seconds of one replication.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

import agents
from bandit_envs.instances.lookup import find

SAMPLES = {"kt": 6_170_721, "fbkt": 4_704_528, "gsp": 12_318_493, "pass": 4_257_077, "uniform": 5_070_912}  # of PyPRS
LINES = 57_624
PROCEDURES = ("kt", "gsp", "pass(most=2000, delta=0.0136)")  # of a fixed precision, with PyPRS's parameters
BUDGETED = ("fbkt(first=2, phi=2)", "top-two", "sequential-halving", "uniform")
MANY = ("fbkt", "kt")


def selected(
    agent: str, instance: Any, zone: float, budget: int | None, episodes: int, seed: int = 0
) -> dict[str, Any]:
    """A row: samples, PCS, PGS and EOC of an agent on production lines, of whose best the zone is less throughput."""
    best = -1 / find(instance).arms.means.max() if isinstance(instance, str) else math.nan
    kwargs: dict[str, Any] = {"instance": instance, "epsilon": 1 / (best - zone) - 1 / best}
    kwargs |= {"delta": 0.05} if budget is None else {"budget": budget}
    start = time.process_time()
    found = agents.evaluate(agent, "BestArm", episodes=episodes, seed=seed, env_kwargs=kwargs, progress=False)
    seconds, row = (time.process_time() - start) / episodes, found.summary().iloc[0]
    wrong = found.column(agent, "misidentified").sum()
    loss = best - 1 / (1 / best + found.column(agent, "aggregate_regret"))
    return {
        "agent": agent,
        "samples": row["total_pulls"],
        "PCS": 1 - wrong / episodes,
        "PGS": 1 - row["error_rate"],
        "PGS_low": 1 - row["error_high"],
        "PGS_high": 1 - row["error_low"],
        "EOC": loss.mean(),
        "seconds": seconds,
    }


def rows(names: Sequence[str], instance: str, zone: float, share: float, episodes: int) -> list[dict[str, Any]]:
    """A row of each agent; those that take a budget have the share of PyPRS's, or the least that they take."""
    K, found = find(instance).K, []
    for name in names:
        base = name.partition("(")[0]
        budget = None if base in ("kt", "gsp", "pass") else math.ceil(share * SAMPLES["fbkt"] * K / LINES)
        if base == "sequential-halving" and budget is not None:
            budget = max(budget, K * (K - 1).bit_length())
        found.append(selected(name, instance, zone, budget, episodes))
        print(line(found[-1]), flush=True)
    return found


def line(row: dict[str, Any]) -> str:
    """A row of a Markdown table."""
    of = f"{row['PGS']:.2f} ({row['PGS_low']:.2f} to {row['PGS_high']:.2f})"
    cells = f"`{row['agent']}`", f"{row['samples']:,.0f}", f"{row['PCS']:.2f}", of, f"{row['EOC']:.3f}"
    return f"| {' | '.join(cells)} | {row['seconds']:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", action="store_true", help="the 57,624 lines, which need tpmax_50.csv.gz")
    parser.add_argument("--zone", type=float, default=0.1)
    parser.add_argument("--share", type=float, default=0.1, help="of PyPRS's budget")
    parser.add_argument("--episodes", type=int, default=None)
    parser.add_argument("--agents", nargs="+", default=None)
    given = parser.parse_args()
    names = given.agents or (MANY if given.many else PROCEDURES + BUDGETED)
    episodes = given.episodes or (1 if given.many else 20)
    print("| agent | samples | PCS | PGS | EOC | seconds |\n|---|---|---|---|---|---|")
    rows(names, "flow-lines-50" if given.many else "flow-lines", given.zone, given.share, episodes)


if __name__ == "__main__":
    main()
