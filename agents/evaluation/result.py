"""What an evaluation yields: a row per episode, and what follows from the rows."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import PROBLEMS, Task, flag

from ..core.files import finish, read_together, write_together
from ..core.optional import pandas, require
from . import statistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["Evaluation", "Run"]

KEYS = ["agent", "budget", "at"]
ROUNDING = 1e-12  # of levels
LEVEL = "level"  # the column of the smallest delta at which the plug-in answer is certified
ROWS, SUMS, SETTINGS = "episodes.parquet", "pulls.parquet", "settings.json"  # the files of an evaluation


def _score_names(problem: str) -> list[str]:
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

    @classmethod
    def empty(cls, agent: str, task: Task, episodes: int, at: Sequence[int] | None, level: bool = False) -> Run:
        """Room for the rows of so many episodes; `level`: with that of a certificate."""
        C = 1 if at is None else len(at)
        names = _score_names(task.problem)
        names += [LEVEL] if level and LEVEL not in names else []
        types: dict[str, Any] = {"correct": np.bool_, "truncated": np.bool_, "total_pulls": np.int64}
        types |= PROBLEMS.find(task.problem).metric_types
        columns = {
            name: np.zeros((episodes, C), types.get(name, np.float64)) for name in ("total_pulls", "truncated", *names)
        }
        return cls(agent, task, None if at is None else np.array(at, np.int64), names, columns, np.zeros((C, task.K)))

    @classmethod
    def joined(cls, parts: Sequence[Run]) -> Run:
        """The rows of runs over one part of the episodes after another."""
        names = parts[0].columns
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
        pulls = np.sum([part.pulls for part in parts], axis=0)  # of integers, so that their order does not matter
        return dataclasses.replace(parts[0], columns=columns, pulls=pulls)

    def write(
        self,
        episode: NDArray[np.int64],
        column: NDArray[np.int64],
        verdict: Mapping[str, NDArray[Any]],
        total_pulls: NDArray[np.int64],
        truncated: NDArray[np.bool_] | None = None,
    ) -> None:
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

    def values(self, metric: str) -> NDArray[Any]:
        """A metric of each episode and cell, (episodes, C): a column, or "error_rate" for the opposite of "correct".

        Raises:
            ValueError: for an unknown one.
        """
        if metric == LEVEL and LEVEL in self.names:
            return self.columns[LEVEL]
        check_metric(self.task.problem, metric)
        return ~self.columns["correct"] if metric in ("error_rate", "error") else self.columns[metric]

    def estimate(self, metric: str, level: float = 0.95) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Means over the episodes, and their confidence limits, (C,) each: exact for rates, else by the bootstrap."""
        values = self.values(metric)
        if values.dtype == np.bool_:
            low, high = statistics.clopper_pearson(values.sum(axis=0), len(values), level)
        else:
            low, high = statistics.bootstrap_mean(values, level)
        return values.mean(axis=0), low, high

    def describe(self) -> dict[str, Any]:
        """All but the rows, JSON-able."""
        numbers = {"at": self.at, "budgets": self.budgets}
        return {
            "agent": self.agent,
            "episodes": len(self.columns["score"]),
            "seconds": self.seconds,
            "lower_bound": None if math.isnan(self.lower_bound) else self.lower_bound,
            "deterministic": self.deterministic,
            "stops": self.stops,
            "task": json.loads(self.task.to_json()),
            **{name: None if array is None else array.tolist() for name, array in numbers.items()},
        }


def check_metric(problem: str, metric: str) -> None:
    """Refuse what cannot be shown, compared and drawn on a problem.

    Raises:
        ValueError: for an unknown metric, with the known ones.
    """
    known = ["error_rate", *_score_names(problem)[1:], "total_pulls", "correct", "truncated"]
    if metric not in (*known, "error"):
        raise ValueError(f"metric must be one of {', '.join(known)}, got {metric!r}")


@dataclass(eq=False, repr=False)
class Evaluation:
    """Episodes of several agents on the same samples.

    Attributes:
        runs: their rows, by agent and budget. settings: how they came about (JSON-able as far as the arguments were).
    """

    runs: list[Run]
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        of = f"{self.settings.get('episodes')} episodes of {self.settings.get('env_id')}"
        return f"Evaluation({', '.join(self.agents)}: {of})"

    @property
    def agents(self) -> list[str]:
        """The labels, in the order given."""
        return list(dict.fromkeys(run.agent for run in self.runs))

    @cached_property
    def episodes(self) -> DataFrame:
        """One row per agent, budget, at and episode.

        The columns are agent, budget, at, episode, total_pulls, correct, score, truncated, and the problem's metrics;
        `budget` and `at` are missing (NA) where there is none. Where the task names a delta, or the agent is certified,
        `level` is the smallest delta at which the plug-in answer is certified: an error bound that holds at all times.
        """
        pd = pandas()
        parts = []
        for run in self.runs:
            n = len(run.columns["score"])
            for c, (budget, at) in enumerate(run.cells):
                head = {
                    "agent": [run.agent] * n,
                    "budget": pd.array([budget] * n, dtype="Int64"),
                    "at": pd.array([at] * n, dtype="Int64"),
                    "episode": np.arange(n),
                }
                body = {
                    name: run.columns[name][:, c]
                    for name in ("total_pulls", "correct", "score", "truncated", *run.names[2:])
                }
                parts.append(pd.DataFrame(head | body))
        table: DataFrame = pd.concat(parts, ignore_index=True)
        table["agent"] = pd.Categorical(table["agent"], categories=self.agents)
        return table

    @cached_property
    def pulls(self) -> DataFrame:
        """Mean pulls: columns agent, budget, at, arm, pulls."""
        pd = pandas()
        parts = []
        for run in self.runs:
            n, K = len(run.columns["score"]), run.task.K
            for c, (budget, at) in enumerate(run.cells):
                head = {
                    "agent": [run.agent] * K,
                    "budget": pd.array([budget] * K, dtype="Int64"),
                    "at": pd.array([at] * K, dtype="Int64"),
                    "arm": np.arange(K),
                }
                parts.append(pd.DataFrame(head | {"pulls": run.pulls[c] / n}))
        table: DataFrame = pd.concat(parts, ignore_index=True)
        return table

    def summary(self, level: float = 0.95) -> DataFrame:
        """Per agent, budget and at: what happened, with intervals.

        Columns: agent, budget, at, episodes, total_pulls (mean) and its quantiles total_pulls_50, _95 and _99;
        error_rate with the Clopper-Pearson interval error_low, error_high, and, where the task names a delta, the
        `verdict` on it, of which only answers given by stopping speak (`statistics.verdict`); score with the bootstrap
        interval score_low, score_high; truncated (a rate: a censored time is no stopping time); lower_bound_ratio (mean
        pulls / the problem's lower bound, NaN where none is known for these arms, and where not all episodes were ended
        by the agent itself: with a budget, where one is truncated, and at checkpoints that one has reached); where the
        task names a delta, `stopped`, the share of episodes that the agent has ended by itself, and, where the problem
        tells evidence, `level`, the median of the levels of the certificates, and `certified`, the share of episodes
        whose level is delta or less; means of the metrics; pulls_per_second; deterministic (of a model: whether it took
        its most probable action, or has drawn one; missing for handcrafted agents).

        Args:
            level: of the intervals.
        """
        require("scipy.stats", "an interval")
        rows = []
        for run in self.runs:
            n = len(run.columns["score"])
            rate, low, high = run.estimate("error_rate", level)
            score, score_low, score_high = run.estimate("score", level)
            for c, (budget, at) in enumerate(run.cells):
                pulls = run.columns["total_pulls"][:, c]
                row = {
                    "agent": run.agent,
                    "budget": budget,
                    "at": at,
                    "episodes": n,
                    "total_pulls": pulls.mean(),
                    "total_pulls_50": np.quantile(pulls, 0.5),
                    "total_pulls_95": np.quantile(pulls, 0.95),
                    "total_pulls_99": np.quantile(pulls, 0.99),
                    "error_rate": rate[c],
                    "error_low": low[c],
                    "error_high": high[c],
                }
                if run.task.delta is not None:
                    row["verdict"] = self._verdict(run, c, level)
                row |= {
                    "score": score[c],
                    "score_low": score_low[c],
                    "score_high": score_high[c],
                    "truncated": run.columns["truncated"][:, c].mean(),
                    "lower_bound_ratio": self._ratio(run, c),
                }
                row |= self._certificates(run, c)
                row |= {name: run.columns[name][:, c].mean() for name in run.names[2:] if name != LEVEL}
                rows.append(row | {"pulls_per_second": run.pulls_per_second, "deterministic": run.deterministic})
        pd = pandas()
        table: DataFrame = pd.DataFrame(rows)
        for key in ("budget", "at"):
            table[key] = table[key].astype("Int64")
        table["deterministic"] = table["deterministic"].astype("boolean")
        return table

    @classmethod
    def _certificates(cls, run: Run, c: int) -> dict[str, float]:
        """What a cell shows of stopping, where the task names a delta, and of the levels of certificates."""
        told = {"stopped": float(cls._stopped(run, c).mean())} if run.task.delta is not None else {}
        if LEVEL in run.names:
            levels = run.columns[LEVEL][:, c]
            told[LEVEL] = float(np.median(levels))
            if run.task.delta is not None:
                told["certified"] = float((levels <= run.task.delta * (1 + ROUNDING)).mean())
        return told

    @staticmethod
    def _stopped(run: Run, c: int) -> NDArray[np.bool_]:
        """Which episodes of a cell the agent has ended by itself, (episodes,)."""
        pulls, truncated = run.columns["total_pulls"][:, c], run.columns["truncated"][:, c].astype(np.bool_)
        ends = [end for end in (*run.cells[c], run.task.budget) if end is not None]
        stopped: NDArray[np.bool_] = ~truncated & (pulls < min(ends, default=math.inf)) & run.stops
        return stopped

    @classmethod
    def _verdict(cls, run: Run, c: int, level: float) -> str:
        """The verdict on the delta of the task, of which answers speak that were given by stopping."""
        stopped, correct = cls._stopped(run, c), run.columns["correct"][:, c].astype(np.bool_)
        errors, n = int((stopped & ~correct).sum()), len(stopped)
        return statistics.verdict(errors, n, run.task.delta, level, open=n - int(stopped.sum()))  # type: ignore[arg-type]

    @classmethod
    def _ratio(cls, run: Run, c: int) -> float:
        """Mean pulls / the lower bound in a cell where the agent has ended all episodes by itself, else NaN."""
        if run.task.budget is not None or not cls._stopped(run, c).all() or not run.lower_bound > 0:
            return math.nan
        return float(run.columns["total_pulls"][:, c].mean() / run.lower_bound)

    def column(self, agent: str, metric: str, *, budget: int | None = None, at: int | None = None) -> NDArray[Any]:
        """The values of a metric, (episodes,), in one cell.

        Args:
            agent: its label.
            metric: as for `compare`. budget, at: which rows; None: the only, or largest, one.

        Raises:
            ValueError: for an unknown agent or metric, or a cell that is not there, with those that are.
        """
        if agent not in self.agents:
            raise ValueError(f"agent must be one of {', '.join(self.agents)}, got {agent!r}")
        cells = [(cell, run, c) for run in self.runs if run.agent == agent for c, cell in enumerate(run.cells)]
        fits = [one for one in cells if budget in (None, one[0][0]) and at in (None, one[0][1])]
        if not fits:
            known = ", ".join(str(cell) for cell, _, _ in cells)
            raise ValueError(f"{agent} has no rows at budget={budget}, at={at}; (budget, at) are {known}")
        _, run, c = fits[-1]
        return run.values(metric)[:, c]

    def compare(
        self,
        a: str,
        b: str,
        metric: str = "score",
        *,
        budget: int | None = None,
        at: int | None = None,
        level: float = 0.95,
        seed: int = 0,
    ) -> statistics.PairedDifference:
        """The paired difference a - b over the common episodes: its mean, interval and p-value.

        Args:
            a, b: labels of agents.
            metric: "score", "error_rate", "total_pulls" or a metric of the problem.
            budget, at: which rows; None: the largest.
            level: of the interval.
            seed: of the resampling.
        """
        require("scipy.stats", "an interval")
        first, second = (self.column(name, metric, budget=budget, at=at) for name in (a, b))
        return statistics.paired_difference(first, second, level=level, seed=seed)

    def plot(self, metric: str = "error_rate", *, path: str | Path | None = None, **style: Any) -> Figure:
        """The metric of each agent with its confidence band, against pulls (or budget); bars for a single one.

        Args:
            metric: a mean of `summary()`, e.g. "error_rate", "score", "misclassified", "f1".
            path: also write the figure there; the suffix names the format (.png, .svg, .pdf).
            **style: see `agents.evaluation.plots.plot`.
        """
        require("matplotlib", "a figure")
        from . import plots

        return plots.plot(self, metric, path=path, **style)

    def save(self, folder: str | Path) -> Path:
        """Write episodes.parquet, pulls.parquet, summary.csv and settings.json into `folder`; returns it.

        What a kill or a full disk leaves is all of an evaluation that was there before, or all of this one.
        """
        folder, summary = Path(folder), self.summary()
        settings = self.settings | {"runs": [run.describe() for run in self.runs]}
        files: dict[str, Callable[[Path], Any]] = {
            ROWS: self.episodes.to_parquet,
            SUMS: self.pulls.to_parquet,
            "summary.csv": lambda path: summary.to_csv(path, index=False),
        }
        write_together(folder / SETTINGS, settings, files)
        return folder

    @classmethod
    def load(cls, folder: str | Path, *, trust: bool = False) -> Evaluation:
        """What `save` wrote into `folder`.

        Args:
            folder: its path.
            trust: import the modules of problems "module:Class" that have not been imported yet, which runs their code.

        Raises:
            FileNotFoundError: if it holds no evaluation. ValueError: if its files do not belong together, or are not
                what `save` writes.
        """
        folder, pd = Path(folder), pandas()
        finish(folder / SETTINGS)
        if missing := [name for name in (ROWS, SUMS, SETTINGS) if not (folder / name).is_file()]:
            raise FileNotFoundError(f"{folder} holds no evaluation: {' and '.join(missing)} missing")
        settings = read_together(folder / SETTINGS)
        try:
            rows, pulls = (pd.read_parquet(folder / name) for name in (ROWS, SUMS))
        except Exception as error:
            raise ValueError(f"{folder} holds no evaluation: {error!r:.300}") from error
        try:
            return cls(_runs(folder, settings.pop("runs"), rows, pulls, flag("trust", trust)), settings)
        except Exception as error:
            if isinstance(error, ValueError) and str(folder) in str(error):
                raise
            raise ValueError(f"{folder} holds no evaluation that this version reads: {error!r:.300}") from error


def _runs(folder: Path, forms: list[dict[str, Any]], rows: DataFrame, pulls: DataFrame, trust: bool) -> list[Run]:
    """The runs that these tables hold, by what `Run.describe` has told of each.

    Raises:
        ValueError: if the tables hold others.
    """
    runs, at_row, at_pull = [], 0, 0
    for form in forms:
        task, n = Task.from_json(json.dumps(form["task"]), trust=trust), form["episodes"]
        at, budgets = (None if form[key] is None else np.array(form[key], np.int64) for key in ("at", "budgets"))
        C = len(at) if at is not None else len(budgets) if budgets is not None else 1
        part, sums = rows.iloc[at_row : at_row + C * n], pulls.iloc[at_pull : at_pull + C * task.K]
        at_row, at_pull = at_row + C * n, at_pull + C * task.K
        if len(part) != C * n or len(sums) != C * task.K or set(part["agent"]) != {form["agent"]}:
            raise ValueError(f"{folder} was altered: the rows of {form['agent']} are not those of settings.json")
        columns = {
            name: np.ascontiguousarray(part[name].to_numpy().reshape(C, n).T)
            for name in part.columns
            if name not in (*KEYS, "episode")
        }
        scores = _score_names(task.problem)
        if LEVEL not in scores and LEVEL in columns:
            if np.isnan(columns[LEVEL]).any():  # another agent of the evaluation has one
                del columns[LEVEL]
            else:
                scores.append(LEVEL)
        if missing := {"total_pulls", "truncated", *scores} - columns.keys():
            raise ValueError(f"{folder} was altered: the rows of {form['agent']} have no {min(missing)}")
        bound = math.nan if form["lower_bound"] is None else form["lower_bound"]
        for name, value in {"seconds": form["seconds"], "lower_bound": bound}.items():
            if not isinstance(value, (int, float)):
                raise ValueError(f"{folder} was altered: {name} must be a number, got {value!r:.80}")
        total = np.rint(sums["pulls"].to_numpy().reshape(C, task.K) * n)
        how, stops = form.get("deterministic"), form.get("stops", True)
        for name, value in {"deterministic": how, "stops": stops}.items():
            if not isinstance(value, bool) and (value is not None or name == "stops"):
                raise ValueError(f"{folder} was altered: {name} must be true or false, got {value!r:.80}")
        runs.append(Run(form["agent"], task, at, scores, columns, total, budgets, form["seconds"], bound, how, stops))
    return runs
