"""`Evaluation`, the result of `evaluate`: a row per episode, and summaries of the rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from bandit_envs.kernels import flag, unknown

from ..core.files import REPRODUCTION, SETTINGS, finish, read_json, read_together, write_together
from ..core.optional import pandas, require
from . import statistics
from .environment import make_known
from .moments import SummedRun
from .precision import level_at
from .rows import LEVEL, Run, main_metric
from .storage import holds, opened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

NOTED: dict[str, tuple[Any, str]] = {  # of a run in settings.json, which anybody may have written
    "seconds": ((int, float), "a number"),
    "lower_bound": ((int, float, type(None)), "a number"),
    "deterministic": ((bool, type(None)), "true or false"),
    "stops": (bool, "true or false"),
}
KINDS = {"budget": "Int64", "at": "Int64", "delta": "float64"}  # of the columns that say which rows they are
ROWS, SUMS = "episodes.parquet", "pulls.parquet"  # the files of an evaluation beside its settings


class Which(TypedDict, total=False):
    """The keywords of `Evaluation.compare`."""

    budget: int | None
    at: int | None
    delta: float | None
    level: float
    seed: int


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
        """One row per agent, budget, at, with several deltas delta, and episode.

        The columns are agent, budget, at, (delta,) episode, total_pulls, correct, score, truncated, and the problem's
        metrics; `budget` and `at` are missing (NA) where there is none. Where the task names a delta, or the agent is
        certified, `level` is the smallest delta at which the plug-in answer is certified: an error bound that holds at
        all times.
        """

        def part(run: Run, c: int) -> dict[str, Any]:
            names = ("total_pulls", "correct", "score", "truncated", *run.names[2:])
            return {"episode": np.arange(run.episodes)} | {name: run.columns[name][:, c] for name in names}

        table = self._table(part)
        return table.assign(agent=pandas().Categorical(table["agent"], categories=self.agents))

    @cached_property
    def pulls(self) -> DataFrame:
        """Mean pulls: columns agent, budget, at, (delta,) arm, pulls."""
        return self._table(lambda run, c: {"arm": np.arange(run.task.K), "pulls": run.pulls[c] / run.episodes})

    def _table(self, part: Callable[[Run, int], Mapping[str, NDArray[np.generic]]]) -> DataFrame:
        """A table with these columns of each cell of each run, behind agent, budget, at and delta."""
        pd, parts = pandas(), []
        for run in self.runs:
            for c, keys in enumerate(run.keys):
                body = part(run, c)
                n = len(next(iter(body.values())))
                head = {name: pd.array([x] * n, dtype=KINDS[name]) for name, x in keys.items()}
                parts.append(pd.DataFrame({"agent": [run.agent] * n, **head, **body}))
        table: DataFrame = pd.concat(parts, ignore_index=True)
        return table

    def summary(self, level: float = 0.95, *, columns: Sequence[str] | None = None) -> DataFrame:
        """Per agent, budget, at and, with several deltas, delta: what happened, with intervals.

        A mean of equal values has no interval (NaN) in fewer than `statistics.ALIKE` episodes; rates always have one.

        Columns: agent, budget, at, (delta,) episodes, total_pulls (mean) with the bootstrap interval total_pulls_low,
        total_pulls_high, and its quantiles total_pulls_50, _95 and _99 (of episodes that are truncated, the pulls until
        then count: where there are any, these are bounds from below of what the agent would have needed);
        error_rate with the Clopper-Pearson interval error_low, error_high, and, where the task names a delta, the
        `verdict` on it, of which only answers given by stopping speak (`statistics.verdict`); score with the bootstrap
        interval score_low, score_high; truncated (a rate: a censored time is no stopping time); lower_bound_ratio (mean
        pulls / the problem's lower bound, NaN where none is known for these arms, and where not all episodes were ended
        by the agent itself: with a budget, where one is truncated, and at checkpoints that one has reached); where the
        task names a delta, `stopped`, the share of episodes that the agent has ended by itself, and, where the problem
        has evidence, `level`, the median of the levels of the certificates, and `certified`, the share of episodes
        whose level is delta or less; means of the metrics; pulls_per_second; deterministic (of a model: whether it took
        its most probable action, or has drawn one; missing for handcrafted agents).

        Args:
            level: of the intervals. Where a run has ended as soon as it was precise enough, those of all looks hold
                together at this level: they are wider.
            columns: which ones, in this order; None: all.
        """
        require("scipy.stats", "an interval")
        level = level_at(self.settings.get("look"), level)
        rows = []
        for run in self.runs:
            n, spans = run.episodes, [_spans(run, metric, level) for metric in ("total_pulls", "error_rate", "score")]
            for c, (keys, pulls, errors, scores) in enumerate(zip(run.keys, *spans, strict=True)):
                row = {"agent": run.agent, **keys, "episodes": n, **pulls, "total_pulls": run.mean("total_pulls", c)}
                row |= {f"total_pulls_{q}": run.quantile(q / 100, c) for q in (50, 95, 99)} | errors
                stopped, wrong = run.stopped(c)
                bounded = run.task.budget is None and stopped == n and run.lower_bound > 0
                if run.task.delta is not None:
                    row["verdict"] = statistics.verdict(wrong, n, run.task.delta, level, open=n - stopped)
                row |= {**scores, "truncated": run.mean("truncated", c)}
                row["lower_bound_ratio"] = row["total_pulls"] / run.lower_bound if bounded else math.nan
                if run.task.delta is not None:
                    row["stopped"] = stopped / n
                row |= {name: run.mean(name, c) for name in run.names[2:]}
                if LEVEL in run.names:
                    row[LEVEL] = run.median(LEVEL, c)
                rows.append(row | {"pulls_per_second": run.pulls_per_second, "deterministic": run.deterministic})
        pd = pandas()
        table: DataFrame = pd.DataFrame(rows)
        for key in ("budget", "at"):
            table[key] = table[key].astype("Int64")
        table["deterministic"] = table["deterministic"].astype("boolean")
        if columns is None:
            return table
        if isinstance(columns, str) or not (chosen := list(columns)):
            raise ValueError(f"columns must be a list of names, one at least, or None, got {columns!r:.200}")
        for name in chosen:
            if name not in table.columns:
                raise unknown("column", name, table.columns)
        return table[chosen]

    def column(
        self, agent: str, metric: str, *, budget: int | None = None, at: int | None = None, delta: float | None = None
    ) -> NDArray[Any]:
        """The values of a metric, (episodes,), in one cell; the arguments as for `compare` and `cell`."""
        run, c = self.cell(agent, budget=budget, at=at, delta=delta)
        return run.values(metric)[:, c]

    def cell(
        self, agent: str, *, budget: int | None = None, at: int | None = None, delta: float | None = None
    ) -> tuple[Run, int]:
        """The run that holds a cell, and the number of the cell in it.

        Args:
            agent: its label. budget, at, delta: which rows; None: the only one, or that of the largest budget, the last
                checkpoint or the smallest delta.
        """
        if agent not in self.agents:
            raise ValueError(f"agent must be one of {', '.join(self.agents)}, got {agent!r}")
        cells = [(run, c, keys) for run in self.runs if run.agent == agent for c, keys in enumerate(run.keys)]
        asked = {"budget": budget, "at": at, "delta": delta}
        asked = {name: x for name, x in asked.items() if name in cells[0][2] or x is not None}
        fits = [(run, c) for run, c, keys in cells if all(x in (None, keys.get(name)) for name, x in asked.items())]
        if not fits:
            named = ", ".join(f"{name}={x}" for name, x in asked.items())
            known = ", ".join(str(tuple(keys.values())) for _, _, keys in cells)
            raise ValueError(f"{agent} has no rows at {named}; ({', '.join(cells[0][2])}) are {known}")
        return fits[-1]

    @overload
    def compare(
        self, a: str, b: str, metric: str | None = ..., **which: Unpack[Which]
    ) -> statistics.PairedDifference: ...
    @overload
    def compare(
        self, a: Sequence[str] | None = ..., b: None = ..., metric: str | None = ..., **which: Unpack[Which]
    ) -> DataFrame: ...
    def compare(
        self,
        a: str | Sequence[str] | None = None,
        b: str | None = None,
        metric: str | None = None,
        *,
        budget: int | None = None,
        at: int | None = None,
        delta: float | None = None,
        level: float = 0.95,
        seed: int = 0,
    ) -> statistics.PairedDifference | DataFrame:
        """The paired difference a - b over the common episodes: its mean, interval and p-value; or those of all pairs.

        Args:
            a, b: labels of two agents. Without b: `a` is a list of agents, None: all, and each pair is compared.
            metric: "score", "error_rate", "total_pulls" or a metric of the problem; None: "score"; where there is a
                delta, "error_rate", or "total_pulls" where neither a budget nor `at` ends or cuts the episodes.
            budget, at, delta: which rows; None: those of the largest budget or `at`, or of the smallest delta.
            level: of each interval by itself.
            seed: of the resampling.

        Returns:
            Of two agents the difference. Else a table with a row for each pair: a, b, difference, low, high, p_value,
            and `p_holm`, corrected for the number of pairs (`statistics.holm`).
        """
        metric = main_metric(self.runs) if metric is None else metric
        if b is None:
            labels = self.agents if a is None else [a] if isinstance(a, str) else list(a)
            if len(labels) < 2:
                raise ValueError(f"two agents or more are compared, got {', '.join(labels) or 'none'}")
            if len(set(labels)) < len(labels):
                raise ValueError(f"each agent is named once, got {', '.join(labels)}")
            same: Which = {"budget": budget, "at": at, "delta": delta, "level": level, "seed": seed}
            pairs = [(*pair, self.compare(*pair, metric, **same)) for pair in combinations(labels, 2)]
            rows = [{"a": one, "b": other, **vars(found)} for one, other, found in pairs]
            table: DataFrame = pandas().DataFrame(rows).drop(columns=["episodes", "method"])
            return table.assign(p_holm=statistics.holm(table["p_value"].tolist()))
        if not isinstance(a, str):
            raise ValueError(f"a must be the label of an agent where b is one, got {a!r:.200}")
        if a == b:
            raise ValueError(f"two agents are compared, got {a!r} twice")
        require("scipy.stats", "an interval")
        level = level_at(self.settings.get("look"), level)
        (one, c), (other, d) = (self.cell(name, budget=budget, at=at, delta=delta) for name in (a, b))
        if isinstance(one, SummedRun) and isinstance(other, SummedRun):
            return one.compared(c, other, d, metric, level)
        first, second = (run.values(metric)[:, i] for run, i in ((one, c), (other, d)))
        return statistics.paired_difference(first, second, level=level, seed=seed)

    @overload
    def plot(
        self, metric: str | None = ..., *, path: str | Path | None = ..., ax: None = ..., **style: object
    ) -> Figure: ...
    @overload
    def plot(self, metric: str | None = ..., *, path: str | Path | None = ..., ax: Axes, **style: object) -> Axes: ...
    def plot(
        self, metric: str | None = None, *, path: str | Path | None = None, ax: Axes | None = None, **style: Any
    ) -> Figure | Axes:
        """Draw the mean of a metric for each agent: the arguments of `agents.evaluation.plots.plot`.

        Of `style` there are `title`, `label`, `log`, `transform`, `level`, and `size="column"` or "page" for a paper.

        Returns:
            The figure, or `ax` where it was given.
        """
        require("matplotlib", "a figure")
        from . import plots

        figure = plots.plot(self, metric, path=path, ax=ax, **style)
        return figure if ax is None else ax

    def to_latex(
        self,
        metric: str | None = None,
        *,
        level: float = 0.95,
        caption: str | None = None,
        label: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> str:
        r"""The table of results for a paper, as LaTeX with the rules of booktabs: `\usepackage{booktabs}`.

        Args:
            metric: a mean to show besides the score, and the error rate; None: the problem's first.
            level: of the intervals.
            columns: of `summary()`, in this order, each quantity with its interval where it has one; None: those that
                `bandit-envs evaluate` prints, without the speed.
            caption: text below the table, which is then a `table`; None: there is none.
            label: for references to the table, as it is; None: there is none.
        """
        from .report import latex

        return latex(self, metric, level, columns, caption, label)

    def save(self, folder: str | Path) -> Path:
        """Write episodes.parquet, pulls.parquet, summary.csv and settings.json into `folder`; returns it.

        What a kill or a full disk leaves is all of an evaluation that was there before, or all of this one.
        """
        folder, summary = Path(folder), self.summary()
        settings = self.settings | {"runs": [run.describe() for run in self.runs]}
        files: dict[str, Callable[[Path], object]] = {
            ROWS: self.episodes.to_parquet,
            SUMS: self.pulls.to_parquet,
            "summary.csv": lambda path: summary.to_csv(path, index=False),
        }
        write_together(folder / SETTINGS, settings, files)
        return folder

    @classmethod
    def load(cls, folder: str | Path, *, trust: bool = False) -> Evaluation:
        """What `save`, or `evaluate` with `out`, wrote into `folder`, a path or an address; see `results`."""
        if not isinstance(folder, (str, Path)):
            raise ValueError(f"an evaluation is in a folder, or at an address, got {folder!r:.200}")
        if (found := opened(folder, flag("trust", trust))) is not None:
            kept, settings = found
            kept.refuse_gaps()
            return cls(kept.runs(), settings)
        folder, pd = Path(folder), pandas()
        finish(folder / SETTINGS)
        if (folder / SETTINGS).is_file() and REPRODUCTION in read_json(folder / SETTINGS):
            text = f"{folder} holds figures of a paper that were reproduced, no evaluation:"
            raise ValueError(f"{text} `bandit-envs report {folder}` (agents.report) reads it")
        if missing := [name for name in (ROWS, SUMS, SETTINGS) if not (folder / name).is_file()]:
            advice = ""
            if missing == [SETTINGS] or holds(folder):
                advice = "; where it holds blocks of evaluate, the same call with this out goes on from them"
            raise FileNotFoundError(f"{folder} holds no evaluation: {' and '.join(missing)} missing{advice}")
        settings = read_together(folder / SETTINGS)
        make_known(str(settings.get("env_id")), flag("trust", trust))
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


def _spans(run: Run, metric: str, level: float) -> list[dict[str, Any]]:
    """Of each cell of a run, the mean of a metric and its limits, as the columns of `summary` have them."""
    names = metric, *(f"{metric.removesuffix('_rate')}_{end}" for end in ("low", "high"))
    return [dict(zip(names, cell, strict=True)) for cell in zip(*run.estimate(metric, level), strict=True)]


def results(out: str | Path, *, trust: bool = False) -> Evaluation:
    """The evaluation in a folder, without loading it: what is asked for is read then.

    Args:
        out: the folder, or address, that `evaluate` had as `out`, or a folder that `Evaluation.save` has written.
        trust: import the modules of problems "module:Class" that have not been imported yet, which runs their code.

    Raises:
        FileNotFoundError: if it holds no evaluation. ValueError: if some blocks are missing, or the files are not what
            was written there, or do not belong together.
    """
    return Evaluation.load(out, trust=trust)


def _runs(folder: Path, forms: list[dict[str, Any]], rows: DataFrame, pulls: DataFrame, trust: bool) -> list[Run]:
    """The runs that these tables hold, by what `Run.describe` has returned for each."""
    runs, at_row, at_pull = [], 0, 0
    for form in forms:
        for name, (kinds, words) in NOTED.items():
            if not isinstance(value := {"deterministic": None, "stops": True, **form}[name], kinds):
                raise ValueError(f"{folder} was altered: {name} must be {words}, got {value!r:.80}")
        level = LEVEL in rows.columns and not rows[LEVEL].isna().all()
        empty, n = Run.described({"level": level, **form}, trust), form["episodes"]
        C, K = empty.pulls.shape
        part, sums = rows.iloc[at_row : at_row + C * n], pulls.iloc[at_pull : at_pull + C * K]
        at_row, at_pull = at_row + C * n, at_pull + C * K
        if len(part) != C * n or len(sums) != C * K or set(part["agent"]) != {form["agent"]}:
            raise ValueError(f"{folder} was altered: the rows of {form['agent']} are not those of settings.json")
        if missing := set(empty.columns) - set(part.columns):
            raise ValueError(f"{folder} was altered: the rows of {form['agent']} have no {min(missing)}")
        columns = {name: np.ascontiguousarray(part[name].to_numpy().reshape(C, n).T) for name in empty.columns}
        total = np.rint(sums["pulls"].to_numpy().reshape(C, K) * n)
        runs.append(dataclasses.replace(empty, columns=columns, pulls=total, seconds=form["seconds"]))
    return runs
