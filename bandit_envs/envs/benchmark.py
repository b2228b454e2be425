"""The tasks of the benchmark: fixed instances and priors with their budgets or deltas, and what is known of each.

They are declared in `benchmark-v1.toml` beside the packages' code. `references-v1.csv` has, for each task, the value of
uniform sampling and the best value that was known when version 1 was made. Both are frozen with the version.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym

from ..kernels.checks import choice

SETS = ("v1", "quick")


@dataclass(frozen=True)
class BenchmarkTask:
    """A task of the benchmark.

    Attributes:
        name: its own. problem: name of the problem. kwargs: keyword arguments of the environment. episodes: their
            number, from episode 0 of `root` on. root: the root seed of the episodes, which no stored model has seen.
        train_root: a root seed for training. source: the paper, or where the arms come from.
        uniform: the value of the agent `uniform` on these episodes: the mean score with a budget, the mean number of
            pulls with a delta. best: the best value that is known. best_agent: whose value it is.
    """

    name: str
    problem: str
    kwargs: dict[str, Any]
    episodes: int
    root: int
    train_root: int
    source: str
    uniform: float
    best: float
    best_agent: str

    @property
    def env_id(self) -> str:
        """Of the environment, for `gym.make`."""
        return f"bandit_envs/{self.problem}-v0"

    @property
    def fixed_confidence(self) -> bool:
        """Whether the task has a delta, and pulls are what counts."""
        return "delta" in self.kwargs

    @property
    def group(self) -> str:
        """Problem and setting, as "threshold_budget" or "bestarm_delta"."""
        return f"{self.problem.lower()}_{'delta' if self.fixed_confidence else 'budget'}"

    def env(self, **kwargs: Any) -> gym.Env[Any, Any]:
        """The environment. `kwargs`: further keyword arguments, as `stop=False`."""
        return gym.make(self.env_id, **self.kwargs, **kwargs)


def benchmark_tasks(set: str | Sequence[str] = "v1") -> tuple[BenchmarkTask, ...]:
    """The tasks of a set of the benchmark.

    Args:
        set: "v1", all; "quick", one of each group; or a list of names of tasks.
    """
    known = {task.name: task for task, _ in _tasks()}
    if isinstance(set, (list, tuple)) and set:
        return tuple(known[choice("each of set", name, [*known])] for name in dict.fromkeys(set))
    if not isinstance(set, str) or set not in SETS:
        raise ValueError(f"set must be one of {list(SETS)}, or a list of names of tasks, got {set!r:.200}")
    quick = set == "quick"
    return tuple(task for task, one_of_a_group in _tasks() if one_of_a_group or not quick)


@functools.cache
def _tasks() -> list[tuple[BenchmarkTask, bool]]:
    import csv  # here, so that the import of the package is quick
    import tomllib

    folder = Path(__file__).parents[1]
    table = tomllib.loads(folder.joinpath("benchmark-v1.toml").read_text(encoding="utf-8"))
    lines = folder.joinpath("references-v1.csv").read_text(encoding="utf-8").splitlines()
    known = {row["task"]: row for row in csv.DictReader(lines)}
    found = []
    for row in table["task"]:
        quick, reference = row.pop("quick", False), known[row["name"]]
        best, by = float(reference["best"]), reference["best_agent"]
        roots = {"root": table["root"], "train_root": table["train_root"]}
        task = BenchmarkTask(**row, **roots, uniform=float(reference["uniform"]), best=best, best_agent=by)
        found.append((task, quick))
    return found
