"""What an evaluation yields: a row per episode, and what follows from the rows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task
from bandit_envs.problems import PROBLEMS

from . import statistics

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Evaluation", "Run"]

KEYS = ["agent", "budget", "at"]


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError('tables need pandas: pip install "bandit-envs[evaluation]"') from None
    return pandas


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

    @classmethod
    def empty(cls, agent: str, task: Task, episodes: int, at: Sequence[int] | None) -> Run:
        """Room for the rows of so many episodes."""
        C = 1 if at is None else len(at)
        names = ["correct", "score", *PROBLEMS[task.problem].metric_names]
        kinds: dict[str, Any] = {"correct": np.bool_, "truncated": np.bool_, "total_pulls": np.int64,
                                 "misclassified": np.int64, "misidentified": np.int64}  # fmt: skip
        columns = {name: np.zeros((episodes, C), kinds.get(name, np.float64))
                   for name in ("total_pulls", "truncated", *names)}  # fmt: skip
        return cls(agent, task, None if at is None else np.array(at, np.int64), names, columns, np.zeros((C, task.K)))

    def write(
        self, episode: NDArray[np.int64], column: NDArray[np.int64], verdict: Mapping[str, NDArray[Any]],
        total_pulls: NDArray[np.int64], truncated: NDArray[np.bool_] | None = None,
    ) -> None:  # fmt: skip
        """Fill the cells (episode, column) (n,)."""
        for name in self.names:
            self.columns[name][episode, column] = verdict[name]
        self.columns["total_pulls"][episode, column] = total_pulls
        if truncated is not None:
            self.columns["truncated"][episode, column] = truncated

    def count_pulls(self, column: NDArray[np.int64], pulls: NDArray[np.int64]) -> None:
        """Add the pulls (n, K) of episodes to the sums of their checkpoints (n,)."""
        if len(column) and (column == column[0]).all():
            self.pulls[column[0]] += pulls.sum(axis=0)
        else:
            np.add.at(self.pulls, column, pulls)

    def as_budgets(self) -> Run:
        """The checkpoints read as the ends of runs at these budgets: the same for an agent that does not use it."""
        self.budgets, self.at = self.at, None
        return self

    @property
    def cells(self) -> list[tuple[int | None, int | None]]:
        """(budget, at) of each column; None where there is none."""
        C = len(self.pulls)
        budgets = [self.task.budget] * C if self.budgets is None else self.budgets.tolist()
        return list(zip(budgets, [None] * C if self.at is None else self.at.tolist(), strict=True))

    @property
    def pulls_per_second(self) -> float:
        """Pulls of all episodes until their last row, per second of the whole run."""
        return float(self.columns["total_pulls"][:, -1].sum() / max(self.seconds, 1e-9))


@dataclass(eq=False)
class Evaluation:
    """Episodes of several agents on the same samples.

    Attributes:
        runs: their rows, by agent and budget. settings: how they came about (JSON-able as far as the arguments were).
    """

    runs: list[Run]
    settings: dict[str, Any] = field(default_factory=dict)
    truth: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: list[Run], **settings: Any) -> Evaluation:
        """The evaluation of these runs."""
        return cls(runs, settings)

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """One row per agent, budget, at and episode: agent, budget, at, episode, total_pulls, correct, score,
        truncated, and the problem's metrics. `budget` and `at` are missing (NA) where there is none."""
        pd = _pandas()
        parts = []
        for run in self.runs:
            n = len(run.columns["score"])
            for c, (budget, at) in enumerate(run.cells):
                head = {"agent": [run.agent] * n, "budget": pd.array([budget] * n, dtype="Int64"),
                        "at": pd.array([at] * n, dtype="Int64"), "episode": np.arange(n)}  # fmt: skip
                body = {name: run.columns[name][:, c]
                        for name in ("total_pulls", "correct", "score", "truncated", *run.names[2:])}  # fmt: skip
                parts.append(pd.DataFrame(head | body))
        table = pd.concat(parts, ignore_index=True)
        table["agent"] = pd.Categorical(table["agent"], categories=list(dict.fromkeys(run.agent for run in self.runs)))
        return table

    @cached_property
    def pulls(self) -> pd.DataFrame:
        """Mean pulls: columns agent, budget, at, arm, pulls."""
        pd = _pandas()
        parts = []
        for run in self.runs:
            n, K = len(run.columns["score"]), run.task.K
            for c, (budget, at) in enumerate(run.cells):
                head = {"agent": [run.agent] * K, "budget": pd.array([budget] * K, dtype="Int64"),
                        "at": pd.array([at] * K, dtype="Int64"), "arm": np.arange(K)}  # fmt: skip
                parts.append(pd.DataFrame(head | {"pulls": run.pulls[c] / n}))
        return pd.concat(parts, ignore_index=True)

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """Per agent, budget and at: what happened, with intervals.

        Columns: agent, budget, at, episodes, total_pulls (mean) and its quantiles total_pulls_50, total_pulls_95;
        error_rate with the Clopper-Pearson interval error_low, error_high, and, where the task names a delta, the
        `verdict` on it; score with the bootstrap interval score_low, score_high; truncated (a rate: a censored time is
        no stopping time); lower_bound_ratio (mean pulls / the problem's lower bound, NaN where none is known); means of
        the metrics; pulls_per_second.

        Args:
            level: of the intervals.
        """
        rows = []
        for run in self.runs:
            n = len(run.columns["score"])
            for c, (budget, at) in enumerate(run.cells):
                column = {name: values[:, c] for name, values in run.columns.items()}
                errors, pulls = int((~column["correct"]).sum()), column["total_pulls"]
                low, high = statistics.clopper_pearson(errors, n, level)
                score_low, score_high = statistics.bootstrap_mean(column["score"], level)
                row = {"agent": run.agent, "budget": budget, "at": at, "episodes": n, "total_pulls": pulls.mean(),
                       "total_pulls_50": np.quantile(pulls, 0.5), "total_pulls_95": np.quantile(pulls, 0.95),
                       "error_rate": errors / n, "error_low": float(low), "error_high": float(high)}  # fmt: skip
                if run.task.delta is not None:
                    row["verdict"] = statistics.verdict(errors, n, run.task.delta, level)
                row |= {"score": column["score"].mean(), "score_low": score_low, "score_high": score_high,
                        "truncated": column["truncated"].mean(), "lower_bound_ratio": self._ratio(run, pulls.mean())}
                row |= {name: column[name].mean() for name in run.names[2:]}
                rows.append(row | {"pulls_per_second": run.pulls_per_second})
        pd = _pandas()
        table = pd.DataFrame(rows)
        for key in ("budget", "at"):
            table[key] = table[key].astype("Int64")
        return table

    def _ratio(self, run: Run, pulls: float) -> float:
        """Mean pulls over the lower bound."""
        bound = self.truth.get("lower_bound", math.nan)
        return float(pulls / bound) if bound > 0 else math.nan

    def _column(self, agent: str, metric: str, budget: int | None, at: int | None) -> NDArray[Any]:
        """The values (episodes,) of one metric in one cell; budget and at default to the only, or last, one."""
        runs = [run for run in self.runs if run.agent == agent]
        if not runs:
            raise ValueError(f"agent must be one of {sorted({run.agent for run in self.runs})}, got {agent!r}")
        cells = [(cell, run.columns, c) for run in runs for c, cell in enumerate(run.cells)]
        fits = [one for one in cells if budget in (None, one[0][0]) and at in (None, one[0][1])]
        if not fits:
            known = sorted({str(cell) for cell, _, _ in cells})
            raise ValueError(f"{agent} has no rows at budget={budget}, at={at}; (budget, at) are {known}")
        _, columns, c = fits[-1]
        if metric == "error":
            return ~columns["correct"][:, c]
        if metric not in columns:
            raise ValueError(f"metric must be one of {sorted([*columns, 'error'])}, got {metric!r}")
        return columns[metric][:, c]

    def compare(
        self, a: str, b: str, metric: str = "score", *, budget: int | None = None, at: int | None = None,
        level: float = 0.95, seed: int = 0,
    ) -> statistics.PairedDifference:  # fmt: skip
        """The paired difference a - b over the common episodes: its mean, interval and p-value.

        Args:
            a, b: labels of agents. metric: "score", "correct", "error", "total_pulls" or a metric of the problem.
            budget, at: which rows; None: the largest.
            level: of the interval. seed: of the resampling.
        """
        first, second = (self._column(name, metric, budget, at) for name in (a, b))
        return statistics.paired_difference(first, second, level=level, seed=seed)

    def plot(self, metric: str = "error_rate", *, path: str | Path | None = None, **style: Any) -> Figure:
        """The metric of each agent with its confidence band, against pulls (or budget); bars for a single one.

        Args:
            metric: a mean of `summary()`, e.g. "error_rate", "score", "misclassified", "f1".
            path: also write the figure there; the suffix names the format (.png, .svg, .pdf).
            **style: see `agents.evaluation.plots.plot`.
        """
        from . import plots

        return plots.plot(self, metric, path=path, **style)

    def save(self, folder: str | Path) -> Path:
        """Write episodes.parquet, pulls.parquet, summary.csv and settings.json into `folder`; returns it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.episodes.to_parquet(folder / "episodes.parquet")
        self.pulls.to_parquet(folder / "pulls.parquet")
        self.summary().to_csv(folder / "summary.csv", index=False)
        (folder / "settings.json").write_text(json.dumps(self.settings, indent=1, default=repr) + "\n")
        return folder
