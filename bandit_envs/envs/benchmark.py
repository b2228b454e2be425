"""The tasks of the benchmark: instances, priors and real tables with a budget or a delta, and what is known of each.

They are declared in `benchmark-v2.toml`. The file of references has, for each task, the value of uniform sampling and
the best value that was known when the version was made, or the exact optimum. Both are frozen with their version.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym

from ..instances.lookup import ships
from ..kernels.checks import choice
from .catalogue import ENVIRONMENTS

VERSION = "v2"
TEXT = "quick-v2-text"
SETS = ("v2", "quick-v2", "v2-offline", TEXT)
APART = 2.0  # so many times the pulls of the reference `uniform` takes on a task that is scored
GONE = {"v1": "v2", "quick": "quick-v2"}  # the sets of version 1, and those in their place


@dataclass(frozen=True)
class BenchmarkTask:
    """A task of the benchmark.

    Attributes:
        name: its own. problem: name of the problem. kwargs: keyword arguments of the environment. episodes: their
            number, from episode 0 of `root` on. root: the root seed of the episodes, which no stored model has seen.
        train_root: a root seed for training. source: the paper, or where the arms come from.
        uniform: the value of the agent `uniform` on these episodes: the mean score with a budget, the mean number of
            pulls with a delta, in which an episode that is cut counts twice. best: the reference, whose score is
            1: the best value that is known, with a delta that of a certified agent, or the bound. best_agent: whose
            value it is; "exact": the best policy's, by dynamic programming; "bound".
        marks: its marks show an agent that has a copy of the table which column an arm is. version: "v2".
        scored: False: with a delta, `uniform` takes less than twice the pulls of the reference, and there is no score.
        bound: a value that none exceeds: 1 with a budget, a lower bound of the pulls with a delta; NaN: none is known.
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
    marks: bool = False
    version: str = VERSION
    bound: float = math.nan
    scored: bool = True

    @property
    def env_id(self) -> str:
        """Of the environment, for `gym.make`."""
        return ENVIRONMENTS[self.problem].id

    @property
    def learn_id(self) -> str:
        """Of the environment for learners: `gym.make_vec(task.learn_id, num_envs=64, **task.kwargs)`."""
        return ENVIRONMENTS[self.problem].learn_id

    @property
    def fixed_confidence(self) -> bool:
        """Whether the task has a delta, and pulls are what counts."""
        return "delta" in self.kwargs

    @property
    def ships(self) -> bool:
        """Whether this package has all data that the task needs."""
        return ships(self.kwargs.get("instance"))

    @property
    def real(self) -> bool:
        """Whether the arms are real data, which `source` says."""
        return "(real data)" in self.source

    @property
    def setting(self) -> str:
        """Either "budget" or "delta"."""
        return "delta" if self.fixed_confidence else "budget"

    @property
    def group(self) -> str:
        """Problem and setting, as "threshold_budget" or "bestarm_delta"."""
        return f"{self.problem.lower()}_{self.setting}"

    def env(self, **kwargs: Any) -> gym.Env[Any, Any]:
        """The environment. `kwargs`: further keyword arguments, as `stop=False`."""
        return gym.make(self.env_id, **self.kwargs, **kwargs)


def benchmark_tasks(set: str | Sequence[str] = "v2") -> tuple[BenchmarkTask, ...]:
    """The tasks of a set of the benchmark.

    Args:
        set: "v2", all of them; "quick-v2", one of each group; "v2-offline", those whose data come with the package;
            "quick-v2-text", ten small ones of their own, for language models; or a list of names of tasks.
    """
    known = {task.name: task for task, _ in _tasks()}
    if isinstance(set, (list, tuple)) and set:
        return tuple(known[name] for name in dict.fromkeys(choice("each of set", name, [*known]) for name in set))
    if isinstance(set, str) and set in GONE:
        text = f"set={set!r} was of version 1, which is no more since 0.3.0: {GONE[set]!r} is in its place;"
        raise ValueError(f"{text} docs/benchmark/v1.csv has the scores")
    if not isinstance(set, str) or set not in SETS:
        raise ValueError(f"set must be one of {list(SETS)}, or a list of names of tasks, got {set!r:.200}")
    if set == TEXT:
        return tuple(task for task, kind in _tasks() if kind == "text")
    some = [(task, kind) for task, kind in _tasks() if kind in (("quick",) if "quick" in set else ("quick", ""))]
    return tuple(task for task, _ in some if task.ships or "offline" not in set)


@functools.cache
def _tasks() -> list[tuple[BenchmarkTask, str]]:
    """The tasks, and whether each is one of the "quick" set, or of the "text" set alone."""
    import csv  # here, so that the import of the package is quick
    import tomllib

    folder = Path(__file__).parents[1]
    table = tomllib.loads(folder.joinpath(f"benchmark-{VERSION}.toml").read_text(encoding="utf-8"))
    lines = folder.joinpath(f"references-{VERSION}.csv").read_text(encoding="utf-8").splitlines()
    references = {row.pop("task"): row for row in csv.DictReader(lines)}
    few = table.pop("text_episodes")
    of_all = {name: table.pop(name) for name in ("version", "root", "train_root", "episodes")}
    found = []
    for problem, name, row in ((problem, *pair) for problem, rows in table.items() for pair in rows.items()):
        kind, known = "quick" if row.pop("quick", False) else "", references[name]
        kind, row = ("text", {"episodes": few} | row) if name.startswith("text-") else (kind, row)
        by, _ = known.pop("best_agent"), known.pop("digest", "")
        row = of_all | row | {column: float(text or "nan") for column, text in known.items()}
        row["scored"] = "delta" not in row["kwargs"] or row["uniform"] >= APART * row["best"]
        found.append((BenchmarkTask(name, problem, best_agent=by, **row), kind))
    return found
