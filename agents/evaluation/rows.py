"""`Run`: the rows of one agent at one budget, with the results of each episode."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bandit_envs import PROBLEMS, Task

from . import statistics

if TYPE_CHECKING:
    from pandas import DataFrame

Estimate = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]  # means and their limits, (C,)
LEVEL = "level"  # the column of the smallest delta at which the plug-in answer is certified; 1 where none is known
CERTIFIED = "certified"  # the column of whether that is the task's delta or less
ROUNDING = 1e-12  # of levels
# What is known beforehand of a value of an episode; other metrics may be anything.
RANGES = dict.fromkeys(["score", "precision", "recall", "f1", "normalised_sum", "delta_c", LEVEL], (0.0, 1.0))
RANGES |= dict.fromkeys(["total_pulls", "misclassified", "misidentified", "aggregate_regret", "money"], (0.0, math.inf))


def score_names(problem: str) -> list[str]:
    """The columns that score a row: of the answer, and of what the statistics certify."""
    kind = PROBLEMS.find(problem)
    return ["correct", "score", *kind.metric_names, *kind.certificate_names]


@dataclass(eq=False)
class Run:
    """The rows of one agent at one budget: C checkpoints (or the end alone, C = 1) of each episode."""

    agent: str
    task: Task
    at: NDArray[np.int64] | None  # (C,) checkpoints; None: the end
    names: list[str]  # of the scores
    columns: dict[str, NDArray[Any]]  # (episodes, C) each
    pulls: NDArray[np.float64]  # (C, K) sums over episodes
    budgets: NDArray[np.int64] | None = None  # (C,) where the checkpoints stand for runs at these budgets
    seconds: float = 0.0
    lower_bound: float = math.nan  # pulls that the task takes on average, where that is known
    deterministic: bool | None = None  # of a model: whether it took its most probable action, or has drawn one
    stops: bool = True  # whether the agent stops by its own rule, so that its delta can be judged
    by_delta: bool = False  # whether it is one of several at different deltas, which distinguish rows
    counts: Sequence[str] = ()  # names of what the agent itself counts

    @classmethod
    def empty(
        cls,
        agent: str,
        task: Task,
        episodes: int,
        at: Sequence[int] | None,
        level: bool = False,
        counts: Sequence[str] = (),
    ) -> Run:
        """A run without rows yet, of so many episodes; `level`: with that of a certificate. counts: of the agent."""
        C = 1 if at is None else len(at)
        names = score_names(task.problem) + ["money"] * (task.cost is not None)
        if level:
            added = [LEVEL] if task.delta is None else [LEVEL, CERTIFIED]
            names += [name for name in added if name not in names]
        names += counts
        types: dict[str, object] = dict.fromkeys(("correct", "truncated", CERTIFIED), np.bool_)
        types |= {**dict.fromkeys(("total_pulls", *counts), np.int64), **PROBLEMS.find(task.problem).metric_types}
        columns = {
            name: np.zeros((episodes, C), types.get(name, np.float64)) for name in ("total_pulls", "truncated", *names)
        }
        checks, pulls = None if at is None else np.array(at, np.int64), np.zeros((C, task.K))
        return cls(agent, task, checks, names, columns, pulls, counts=counts)

    @classmethod
    def described(cls, form: Mapping[str, Any], trust: bool = False) -> Run:
        """All but the rows, as `describe` has returned it. `trust`: as for `Evaluation.load`."""
        task = Task.from_json(json.dumps(form["task"]), trust=trust)
        at, budgets = (None if form[key] is None else np.array(form[key], np.int64) for key in ("at", "budgets"))
        checks = budgets if at is None else at
        ends, level = None if checks is None else checks.tolist(), bool(form.get("level"))
        empty = cls.empty(form["agent"], task, 0, ends, level, form.get("counts", ()))
        empty.at, empty.budgets = at, budgets
        empty.lower_bound = math.nan if form["lower_bound"] is None else float(form["lower_bound"])
        empty.deterministic, empty.stops = form.get("deterministic"), bool(form.get("stops", True))
        empty.by_delta = bool(form.get("by_delta"))
        return empty

    @property
    def episodes(self) -> int:
        """How many there are."""
        return len(self.columns["score"])

    def cut(self, size: int, pulls: NDArray[np.float64]) -> list[Run]:
        """The rows in blocks of `size` episodes, the last of which may have fewer: views.

        `pulls` (B * C, K): sums over the episodes of each block.
        """
        parts, C = [], len(self.pulls)
        for i, first in enumerate(range(0, self.episodes, size)):
            columns = {name: values[first : first + size] for name, values in self.columns.items()}
            parts.append(dataclasses.replace(self, columns=columns, pulls=pulls[i * C : (i + 1) * C]))
        return parts

    def joined(self, parts: Sequence[Run], pace: float) -> Run:
        """The rows of consecutive episodes in one, of `pace` seconds a pull; the parts, one or more, are used up."""
        columns = {}
        for name in self.columns:  # one after another, so that no more than one is there twice
            some = [part.columns.pop(name) for part in parts]
            columns[name] = some[0] if len(some) == 1 else np.concatenate(some)
        pulls = np.sum([part.pulls for part in parts], axis=0)  # of integers, so that their order does not matter
        made = dataclasses.replace(self, columns=columns, pulls=pulls)
        made.seconds = made.total * pace
        return made

    def write(
        self,
        episode: NDArray[np.int64],
        column: NDArray[np.int64],
        verdict: Mapping[str, NDArray[np.generic]],
        total_pulls: NDArray[np.int64],
        truncated: NDArray[np.bool_] | None = None,
    ) -> None:
        """Fill the cells (episode, column) (n,)."""
        for name in self.names:
            self.columns[name][episode, column] = verdict[name]
        self.columns["total_pulls"][episode, column] = total_pulls
        if truncated is not None:
            self.columns["truncated"][episode, column] = truncated

    @property
    def cells(self) -> list[tuple[int | None, int | None]]:
        """(budget, at) of each column; None where there is none."""
        C = len(self.at if self.at is not None else self.budgets if self.budgets is not None else [None])
        budgets = [self.task.budget] * C if self.budgets is None else self.budgets.tolist()
        return list(zip(budgets, [None] * C if self.at is None else self.at.tolist(), strict=True))

    @property
    def keys(self) -> list[dict[str, object]]:
        """The columns that say which rows those of each cell are, by name: budget, at and, of several, delta."""
        own = {"delta": self.task.delta} if self.by_delta else {}
        return [{"budget": budget, "at": at, **own} for budget, at in self.cells]

    @property
    def total(self) -> float:
        """Pulls of all episodes until their last row."""
        return float(self.columns["total_pulls"][:, -1].sum())

    @property
    def pulls_per_second(self) -> float:
        """Pulls until the last row, per second of one core: of the sum over all jobs; NaN where nothing is known."""
        return self.total / max(self.seconds, 1e-9)

    def values(self, metric: str) -> NDArray[Any]:
        """A metric of each episode and cell, (episodes, C): a column, or "error_rate" for the opposite of "correct"."""
        self.check(metric)
        return ~self.columns["correct"] if metric in ("error_rate", "error") else self.columns[metric]

    def check(self, metric: str) -> None:
        """Refuse a metric that no row has, as `check_metric`."""
        if metric not in self.names:
            check_metric(self.task.problem, metric)

    def estimate(self, metric: str, level: float = 0.95) -> Estimate:
        """Means over the episodes, and their confidence limits, (C,) each: exact for rates, else by the bootstrap."""
        values = self.values(metric)
        if values.dtype == np.bool_:
            low, high = statistics.clopper_pearson(values.sum(axis=0), len(values), level)
        else:
            low, high = within(metric, *statistics.bootstrap_mean(values, level))
        return values.mean(axis=0), low, high

    def mean(self, name: str, c: int) -> float:
        """The mean of a column over the episodes, in one cell."""
        return float(self.columns[name][:, c].mean())

    def quantile(self, q: float, c: int) -> float:
        """A quantile of the pulls of an episode, in one cell."""
        return float(np.quantile(self.columns["total_pulls"][:, c], q))

    def median(self, name: str, c: int) -> float:
        """The median of a column over the episodes, in one cell; NaN where no rows are kept."""
        return float(np.median(self.columns[name][:, c]))

    def stopped(self, c: int) -> tuple[int, int]:
        """How many episodes of a cell the agent has ended by itself, and how many of these with a wrong answer."""
        if not self.stops or (self.task.cost is not None and self.task.budget is not None):  # money left shows nothing
            return 0, 0
        ends = [end for end in (*self.cells[c], self.task.budget) if end is not None]
        truncated, correct = (self.columns[name][:, c].astype(np.bool_) for name in ("truncated", "correct"))
        stopped = ~truncated & (self.columns["total_pulls"][:, c] < min(ends, default=math.inf))
        return int(stopped.sum()), int((stopped & ~correct).sum())

    def describe(self) -> dict[str, object]:
        """All but the rows, JSON-able."""
        numbers = {"at": self.at, "budgets": self.budgets}
        return {
            "agent": self.agent,
            "episodes": self.episodes,
            "seconds": self.seconds,
            "lower_bound": None if math.isnan(self.lower_bound) else self.lower_bound,
            "deterministic": self.deterministic,
            "stops": self.stops,
            "level": LEVEL in self.names,
            **({"by_delta": True} if self.by_delta else {}),
            **({"counts": [*self.counts]} if self.counts else {}),
            "task": json.loads(self.task.to_json()),
            **{name: None if array is None else array.tolist() for name, array in numbers.items()},
        }


class KeptRun(Run):
    """What a store keeps of a run, read when it is asked for: all of `empty`, and the rows of number `place`."""

    def __init__(self, empty: Run, place: int, store: Any) -> None:
        vars(self).update({name: x for name, x in vars(empty).items() if name not in ("columns", "pulls", "seconds")})
        self.place, self._store = place, store

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """Of one core, that all pulls take, by the notes of all calls; NaN where they have none."""
        return self.total * float(self._store.calls.pace(self.place))


class Evaluated(Protocol):
    """What can be drawn and reported: an `Evaluation`."""

    runs: list[Run]
    settings: dict[str, Any]

    @property
    def agents(self) -> list[str]:
        """Labels of the agents."""
        ...

    def summary(self, level: float = 0.95, *, columns: Sequence[str] | None = None) -> DataFrame:
        """Per agent, budget and at: what happened, with intervals."""
        ...

    @property
    def compare(self) -> Callable[..., Any]:
        """Finds paired differences."""
        ...


def common_budget(runs: Sequence[Run]) -> list[str]:
    """The budget in words, if all cells have the same one."""
    budgets = {budget for run in runs for budget, _ in run.cells}
    return [f"budget {budget:,}" for budget in budgets if len(budgets) == 1 and budget is not None]


def main_metric(runs: Sequence[Run]) -> str:
    """The metric that is compared and drawn where none is named.

    Without a delta nothing promises a correct answer: the score. With one, the pulls of agents that stop by
    themselves, else, with a budget or at checkpoints, the error rate.
    """
    if any(run.task.delta is None for run in runs):
        return "score"
    return "total_pulls" if all(run.cells == [(None, None)] for run in runs) else "error_rate"


def within(metric: str, low: Any, high: Any) -> tuple[Any, Any]:
    """Limits of a mean, cut to the range that its values have: what they leave out cannot be the mean.

    A normal interval of a score near 1 goes beyond it. Cut, it holds the mean just as often.
    """
    lowest, highest = RANGES.get(metric, (-math.inf, math.inf))
    return np.clip(low, lowest, highest), np.clip(high, lowest, highest)


def check_metric(problem: str, metric: str) -> None:
    """Refuse what cannot be shown, compared and drawn on a problem."""
    known = ["error_rate", *score_names(problem)[1:], "total_pulls", "correct", "truncated"]
    if metric not in (*known, "error"):
        raise ValueError(f"metric must be one of {', '.join(known)}, got {metric!r}")
