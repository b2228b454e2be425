"""Columns of one table, on hostile tables: how often each agent that stops errs, at delta = .2.

    python tests/campaigns/hostile_tables.py                  a random sample of cells, about 10 minutes of one core
    python tests/campaigns/hostile_tables.py --minutes 60 --seed 1
    python tests/campaigns/hostile_tables.py --only lucb      cells whose key holds this

Each cell is an agent on a table: 20,000 episodes, or as many as fit its seconds. It prints the share of wrong answers
among all episodes with its Clopper-Pearson interval of 99 %. Of agents that are wrong with a probability of exactly
delta in all cells, a run reports one with probability 1e-6. Episodes that are cut off at `MOST` tables count as right.
The table of AlpacaEval is left out where BANDIT_ENVS_DATA, a folder, does not have it.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import agents
from bandit_envs import PROBLEMS, Shared, Task

__all__ = ["TABLES", "Cell", "cells", "run"]

EPISODES, MOST, DELTA, LEVEL, SECONDS, FIRST = 20_000, 50, 0.2, 1e-6, 4.0, 100
SCORES = "alpaca_eval_2_scores.csv"


def alpaca(seed: int = 0, K: int = 10, N: int = 200) -> Any:
    """Real scores: K columns and N rows, drawn at random; None where there are none."""
    path = Path(os.environ.get("BANDIT_ENVS_DATA", ".")) / SCORES
    if not path.is_file():
        return None
    scores, g = np.genfromtxt(path, delimiter=",", skip_header=1)[:, 1:], np.random.default_rng(seed)
    scores = scores[:, ~np.isnan(scores).any(axis=0)]
    return scores[np.ix_(g.permutation(len(scores))[:N], g.permutation(scores.shape[1])[:K])]


def _tables() -> dict[str, Any]:
    """The tables (N, K), scores in [0, 1]."""
    n, g = np.arange(40)[:, None], np.random.default_rng(0)
    ties = np.column_stack([np.resize(one, 40) for one in ([1, 0], [0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0])])
    found = {
        "alpaca": alpaca(),
        "ties": ties * 1.0,
        "two rows decide": np.where(n < 2, [[1.0, 0.0, 0.1, 0.2]], [[0.5, 0.51, 0.5, 0.52]]),
        "near 1": (g.permuted(np.repeat(n, 5, axis=1), axis=0) >= np.array([1, 2, 2, 3, 4])) * 1.0,
        "constant": np.column_stack([n % 2, np.full((40, 3), [0.5, 0.49, 0.45]), n % 4 == 0]) * 1.0,
        "five rows": np.array([[1, 0, 0.6], [0, 1, 0.5], [1, 0, 0.6], [0, 0.9, 0.5], [0.6, 0.5, 0.5]]),
    }
    return {name: x for name, x in found.items() if x is not None}


TABLES = _tables()


def questions(x: Any) -> list[tuple[str, dict[str, Any]]]:
    """What is asked of a table: where a mean lies at, or just beyond, what decides."""
    m = np.sort(Shared(x).means)[::-1]
    gap, best = max(float(m[0] - m[1]), 1e-6), float(m[0])
    return [
        ("BestArm", {}),
        ("BestArm", {"epsilon": 0.9 * gap}),
        ("TopK", {"k": 2}),
        ("TopK", {"k": 2, "epsilon": 0.03, "criterion": "each"}),
        ("AllGood", {"epsilon": max(0.99 * float(m[0] - m[2]), 1e-6)}),
        ("AllGood", {"epsilon": min(max(0.99 * float(m[0] - m[2]) / best, 1e-6), 0.9), "multiplicative": True}),
        ("Threshold", {"threshold": float(m[1])}),
        ("Threshold", {"threshold": min(float(m[1]) + 1e-6, 1.0)}),
    ]


class Cell(NamedTuple):
    """An agent on a hostile table."""

    agent: str
    problem: str
    settings: dict[str, Any]
    table: str

    @property
    def key(self) -> str:
        told = ", ".join(
            f"{name}={value:.3g}" if name != "criterion" else "each" for name, value in self.settings.items()
        )
        return f"{self.agent} | {self.problem}({told}) | {self.table}"


def _those_that_stop(problem: str, settings: dict[str, Any], arms: Shared) -> list[str]:
    """All agents that stop on the columns of a table, at delta, and what makes others stop."""
    told = {"distribution": arms.distribution, "support": arms.support, "sigma": arms.sigma, "items": arms.items}
    task = Task(problem, settings, arms.K, delta=DELTA, **told)  # type: ignore[arg-type]
    found = ["paired-elimination", "random(stop='certificate')", "ucb(stop='certificate')", "lucb(stop='certificate')"]
    for name in agents.names(problem):
        try:
            made = agents.make(name, task)
        except (ValueError, AttributeError, ImportError):
            continue  # it needs a budget, an epsilon, a truth; or does not take tables
        if made.stops:
            found.append(name)
    return [name for name in found if name.split("(")[0] in (*agents.names(problem), "paired-elimination")]


def cells() -> list[Cell]:
    """All cells."""
    found = []
    for table, x in TABLES.items():
        for problem, settings in questions(x):
            kept = {name: value for name, value in settings.items() if name in PROBLEMS.find(problem).parameters}
            found += [Cell(name, problem, kept, table) for name in _those_that_stop(problem, kept, Shared(x))]
    return found


def run(cell: Cell, episodes: int = EPISODES, seconds: float = SECONDS) -> tuple[int, int, int]:
    """How many episodes ended with a wrong answer, how many were played, how many were cut off."""
    x = TABLES[cell.table]
    arms = {"distribution": "shared", "scores": x.tolist(), "support": [0.0, 1.0]}
    kwargs = {"instance": arms, "delta": DELTA, "max_pulls": MOST * x.size, **cell.settings}
    wrong = played = cut = seed = 0
    size, began = FIRST, 0.0
    while played < episodes:
        found = agents.evaluate(
            cell.agent, cell.problem, episodes=size, seed=seed, env_kwargs=kwargs, progress=False
        ).episodes
        off = found["truncated"].to_numpy(bool)
        wrong, played = wrong + int((~off & ~found["correct"].to_numpy(bool)).sum()), played + size
        cut, seed, now = cut + int(off.sum()), seed + 1, time.perf_counter()
        began = began or now  # what is compiled is not counted
        if now - began > seconds / 3:
            break
        size = min(4 * size, episodes - played)
    return wrong, played, cut


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=EPISODES, help="of each cell, at most (%(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each cell, about (%(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample of cells (%(default)s)")
    parser.add_argument("--only", default="", help="cells whose key holds this")
    given, above, done, began = parser.parse_args(), [], 0, time.perf_counter()
    every = [cell for cell in cells() if given.only in cell.key]
    for i in np.random.default_rng(given.seed).permutation(len(every)):
        if time.perf_counter() - began > 60 * given.minutes - given.seconds:
            break
        wrong, n, cut = run(every[i], given.episodes, given.seconds)
        low, high = stats.beta.ppf(0.005, wrong, n - wrong + 1), stats.beta.ppf(0.995, wrong + 1, n - wrong)
        low, high, done = (0.0 if wrong == 0 else low), (1.0 if wrong == n else high), done + 1
        breaks = wrong > stats.binom.isf(LEVEL / len(every), n, DELTA)
        above += [every[i].key] if breaks else []
        rates = f"{wrong / n:7.4f} [{low:.4f}, {high:.4f}] of {n:5}, {cut:5} cut off"
        print(f"{rates}{' ABOVE' if breaks else ''}: {every[i].key}", flush=True)
    print(f"{done} of {len(every)} cells, {len(above)} above delta = {DELTA}", *above, sep="\n  ")
    return int(bool(above))


if __name__ == "__main__":
    raise SystemExit(main())
