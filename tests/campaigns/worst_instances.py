"""The worst instances of agents that stop by a proof of their own, or by none: docs/benchmark/worst.csv.

    python tests/campaigns/worst_instances.py                 five minutes for each agent
    python tests/campaigns/worst_instances.py --seconds 20    so long for each

Of each agent and problem the arms are searched on which it errs most often where it stops, at the delta and with the
parameters of the quick task of the problem: from the task's own arms, halved gaps, near ties and rare points by steps
that keep what errs more. The worst is judged on a root that the search has not seen, with exact limits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from numpy.typing import NDArray

import agents
from agents.benchmarking import run
from agents.evaluation.statistics import clopper_pearson
from agents.registry import recipes_of
from bandit_envs import BenchmarkTask, benchmark_tasks

PAGE = Path(__file__).parents[2] / "docs" / "benchmark" / "worst.csv"
SEARCHED, JUDGED = 200, 2000  # episodes
MOST = 4000  # pulls of an episode; one that is cut has not erred
SEARCH, FRESH = 11, 2**61 + 87  # roots


def tasks() -> list[BenchmarkTask]:
    """The tasks with a delta of the quick set, one a problem."""
    return [task for task in benchmark_tasks("quick-v2") if task.fixed_confidence]


def errs(agent: str, task: BenchmarkTask, mean: NDArray[np.float64], root: int, episodes: int) -> tuple[int, int]:
    """The episodes in which an agent stops by its own rule with a wrong answer, with Bernoulli arms of these means.

    And the pulls of all that stop, by which arms are preferred that it finds hard, but stops on.
    """
    arms = {"distribution": "bernoulli", "mean": np.round(mean, 4).tolist()}
    kwargs = task.kwargs | {"instance": arms, "max_pulls": MOST, "shuffle_arms": True}
    found = agents.evaluate(agent, task.env_id, episodes=episodes, seed=root, env_kwargs=kwargs, progress=False)
    label = found.agents[0]
    stopped = ~found.column(label, "truncated").astype(bool)
    return run._errors(found, label), int(found.column(label, "total_pulls")[stopped].sum())


def starts(task: BenchmarkTask, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Arms from which a search begins: of the task, with halved gaps, with near ties, with rare points."""
    envs: Any = gym.make_vec(task.env_id, 1, **task.kwargs).unwrapped
    envs.reset(seed=SEARCH)
    own = envs.true_means()[0]
    centre = np.float64(own.mean())
    small = rng.uniform(0.005, 0.06, own.shape)
    return [own, centre + (own - centre) / 2, centre + (own - centre) / 20, small]


def searched(agent: str, task: BenchmarkTask, seconds: float, seed: int = 0) -> tuple[NDArray[np.float64], int]:
    """The arms on which an agent errs most often, of those tried in so many seconds, and how many were tried."""
    rng, begun, tried = np.random.default_rng(seed), time.monotonic(), 0
    best, most, queue = None, (-1, -1), starts(task, rng)
    while queue or time.monotonic() - begun < seconds:
        if queue:
            mean = queue.pop()
        else:
            step = rng.choice([0.005, 0.02, 0.1])
            moved = best + step * rng.normal(size=best.shape) * (rng.random(best.shape) < 0.5)
            mean = rng.choice([moved, rng.permutation(best.ravel()).reshape(best.shape), 0.5 * (best + best.mean())])
        mean = np.clip(mean, 0.001, 0.999)
        tried += 1
        try:
            wrong = errs(agent, task, mean, SEARCH + tried, SEARCHED)
        except ValueError:  # arms whose answer is open
            continue
        if wrong >= most:
            best, most = mean, wrong
    assert best is not None
    return best, tried


def worst(agent: str, seconds: float) -> dict[str, object] | None:
    """The row of an agent, of the problem where it errs most; None: it stops by the suite's certificate, or never."""
    rows = []
    [recipe] = recipes_of(agent).values()
    able = [task for task in tasks() if task.problem in recipe.solves]
    for task in able:
        try:
            made = agents.make(agent, task.env())
        except ValueError:
            continue
        if not getattr(made, "stops", False) or (proof := run._proof(made, task)) == "certificate":
            continue
        mean, tried = searched(agent, task, seconds / len(able))
        wrong, _ = errs(agent, task, mean, FRESH, JUDGED)
        low, high = clopper_pearson(wrong, JUDGED)
        arms = f"{task.problem}, Bernoulli {' '.join(f'{x:.3g}' for x in mean.ravel())}"
        rates = {"errors": wrong / JUDGED, "errors_low": low, "errors_high": high}
        rows.append({"agent": agent, "proof": proof, **rates, "tried": tried, "instance": arms})
    return max(rows, key=lambda row: row["errors"], default=None)  # type: ignore[arg-type, return-value]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300, help="of an agent, over all of its problems")
    parser.add_argument("agents", nargs="*", help="all, if left out")
    given, rows = parser.parse_args(arguments), []
    for agent in given.agents or [*agents.names(), "evidence(boundary='nominal')"]:
        if (row := worst(agent, given.seconds)) is not None:
            print(row, flush=True)
            rows.append(row)
            if not given.agents:
                frame = pd.DataFrame(rows).assign(seconds=given.seconds)
                frame.to_csv(PAGE, index=False, float_format="%.4f", lineterminator="\n")


if __name__ == "__main__":
    main()
