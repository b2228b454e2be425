"""`benchmark`: agents are played on the tasks of a set, and scored."""

from __future__ import annotations

import functools
import hashlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import BenchmarkTask, benchmark_tasks
from bandit_envs.kernels import flag

from ..core.agent import Agent
from ..core.optional import pandas
from ..evaluation import evaluate
from ..evaluation.execution import jobs_number
from ..evaluation.identity import described
from ..evaluation.plan import make_envs
from ..registry import Recipe, recipes_of
from .scores import interquartile_mean, percentile_interval, profile, replicates, score

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

SEED = 0  # of the resamples
ORACLE = "is given the truth"
INVALID = "errs more often than delta"
CUT = "some episodes are cut at max_pulls, which counts for their pulls"


@dataclass(frozen=True, eq=False)
class Cell:
    """An agent on a task.

    Attributes:
        agent: its label. task: the task. value: the mean score, with a budget; the mean number of pulls, with a delta;
            NaN where the agent does not take the task. score: 0 is `uniform`, 1 the best that is known; NaN as `value`.
        samples: bootstrap samples of the score. note: what to know of it, or why there is none. code: what has decided,
            in words. oracle: whether the agent is given the truth.
    """

    agent: str
    task: BenchmarkTask
    value: float
    score: float
    samples: NDArray[np.float64]
    note: str
    code: str
    oracle: bool = False

    @property
    def row(self) -> dict[str, object]:
        """Of the table."""
        low, high = percentile_interval(self.samples) if len(self.samples) else (np.nan, np.nan)
        head = {"task": self.task.name, "group": self.task.group, "agent": self.agent, "score": self.score}
        more = {"episodes": self.task.episodes, "note": self.note, "code": self.code}
        return head | {"score_low": low, "score_high": high, "value": self.value} | more


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What agents have come to on the tasks of a set.

    Attributes:
        set: its name. tasks: the tasks, in their order. cells: of each agent, one for each task.
    """

    set: str
    tasks: tuple[BenchmarkTask, ...]
    cells: dict[str, list[Cell]]

    @property
    def agents(self) -> list[str]:
        """The labels of the agents, in the order in which they were given."""
        return list(self.cells)

    @property
    def columns(self) -> list[str]:
        """The columns of scores in `summary`: score, over all tasks, and the groups."""
        return ["score", *dict.fromkeys(task.group for task in self.tasks)]

    @functools.cached_property
    def table(self) -> DataFrame:
        """One row for each task and agent.

        The columns are task, group, agent, score, score_low, score_high (95 %), episodes, and value, note and code of
        the `Cell`. Agents that do not take a task have NaN there, and the note says why.
        """
        frame: DataFrame = pandas().DataFrame([cell.row for own in self.cells.values() for cell in own])
        return frame

    def summary(self) -> DataFrame:
        """One row for each agent, the best first.

        The columns are agent, score, score_low, score_high, over all tasks of the set, and the same for each group, as
        threshold_budget, threshold_budget_low, threshold_budget_high. A score is the interquartile mean over tasks; its
        interval (95 %) comes from a bootstrap of the episodes of each task (Agarwal et al. 2021). It is NaN where the
        agent does not take all of the tasks.
        """
        rows = []
        for agent, own in self.cells.items():
            row: dict[str, object] = {"agent": agent}
            for name in self.columns:
                cells = [cell for cell in own if name in ("score", cell.task.group)]
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), _mean(cells), strict=True))
            rows.append(row)
        frame: DataFrame = pandas().DataFrame(rows)
        return frame.sort_values("score", ascending=False, kind="stable", na_position="last", ignore_index=True)

    def profile(self, levels: object = None) -> dict[str, NDArray[np.float64]]:
        """Of each agent that takes all tasks, the share of tasks with a score above each of some levels.

        Args:
            levels: an array; None: 0, .05, ... 1.2.
        """
        at = np.arange(25) / 20 if levels is None else np.asarray(levels, np.float64)
        whole = {agent: [cell.score for cell in own] for agent, own in self.cells.items()}
        return profile({agent: own for agent, own in whole.items() if not np.isnan(own).any()}, at)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw scores by group, and performance profiles. `path`: of a file to write, .png, .svg or .pdf."""
        from .page import draw

        return draw(self, path)

    def save(self, folder: str | Path) -> Path:
        """Write table.csv, summary.csv, benchmark.png and benchmark.html into a folder, which is returned."""
        from .page import write

        return write(self, folder)


def _mean(cells: Sequence[Cell]) -> tuple[float, float, float]:
    """The interquartile mean over tasks, and its interval; NaN unless all are solved."""
    scores = np.array([cell.score for cell in cells])
    if np.isnan(scores).any():
        return np.nan, np.nan, np.nan
    pooled = np.array([cell.samples for cell in cells]).T
    return float(interquartile_mean(scores)), *percentile_interval(interquartile_mean(pooled))


def benchmark(
    agents: object,
    set: str | Sequence[str] = "v1",
    out: str | Path | None = None,
    jobs: int = 1,
    *,
    progress: bool | None = None,
    trust: bool = False,
    ranked: bool | None = None,
    stop: bool | None = None,
) -> Benchmark:
    """Play agents on the tasks of the benchmark, and score them.

    An agent that does not stop by itself plays tasks with a delta under `stop="certificate"`. An agent that refuses a
    task has no score there, as on a task whose data can neither be found nor downloaded. An agent whose answers are
    wrong significantly more often than delta has the score 0.

    Args:
        agents: as for `evaluate`: a name, "module:Class", the path of a model, an SB3 model, a class, a list or a dict
            of these.
        set: "v1", all tasks; "quick", one of each group; or a list of names of tasks.
        out: a folder, in which the episodes of each agent and task are kept: another call goes on from there.
            None: they are kept in memory, and lost.
        jobs: processes or threads, -1 for as many as there are cores. Results do not depend on it.
        progress: say on standard error which cell is done, and how long the rest takes. None: if it is a terminal.
        trust: as for `evaluate`.
        ranked, stop: of models whose file does not say how they were trained: on ranked arms, with an action that
            stops. None: as the model itself says.

    Raises:
        ValueError: as `evaluate`, for an unknown set, and for an action of an agent that its environment refuses,
            naming agent and task. What an agent itself raises names both in a note.
    """
    tasks, recipes = benchmark_tasks(set), recipes_of(agents, flag("trust", trust))
    jobs, shown = jobs_number(jobs), sys.stderr.isatty() if progress is None else flag("progress", progress)
    if out is not None and (not isinstance(out, (str, Path)) or not str(out)):
        raise ValueError(f"out must be a folder, or None, got {out!r:.200}")
    trained = {name: flag(name, x) for name, x in (("ranked", ranked), ("stop", stop)) if x is not None}
    cells: dict[str, list[Cell]] = {label: [] for label in recipes}
    begun, cost, done = time.monotonic(), sum(map(_most_pulls, tasks)) * len(recipes), 0
    for task in tasks:
        for label, recipe in recipes.items():
            place = None if out is None else Path(out) / task.name / _slug(label)
            cells[label].append(cell := _cell(task, label, recipe, place, jobs, trust, trained))
            done += _most_pulls(task)
            if shown:
                left = (time.monotonic() - begun) * (cost / done - 1)
                print(f"{task.name}, {label}: {cell.score:.3f}; about {left:.0f} s left", file=sys.stderr, flush=True)
    return Benchmark(set if isinstance(set, str) else f"of {len(tasks)} tasks", tasks, cells)


def _cell(
    task: BenchmarkTask, label: str, recipe: Recipe, out: Path | None, jobs: int, trust: bool, trained: dict[str, Any]
) -> Cell:
    """One agent on one task."""
    kwargs = task.kwargs | trained
    envs_in = functools.partial(make_envs, task.env_id, 1, kwargs=task.kwargs)
    try:
        made = agent, envs, _ = recipe.paired(envs_in, kwargs)
        if task.fixed_confidence and not getattr(agent, "stops", False):
            envs.close()
            recipe = replace(recipe, parameters={**recipe.parameters, "stop": "certificate"})
            made = agent, *_ = recipe.paired(envs_in, kwargs)
    except (ValueError, OSError) as error:
        reason = "its data cannot be had" if isinstance(error, OSError) else "does not take it"
        return Cell(label, task, np.nan, np.nan, np.zeros(0), f"{reason}: {error}", "")
    oracle = isinstance(agent, Agent) and bool(agent.told)
    try:
        result = evaluate(
            {label: replace(recipe, made=made)},
            task.env_id,
            episodes=task.episodes,
            seed=task.root,
            env_kwargs=kwargs,
            jobs=jobs,
            out=out,
            progress=False,
            trust=trust,
        )
    except ValueError as error:
        raise ValueError(f"on the task {task.name}: {error}") from error
    except Exception as error:
        error.add_note(f"raised by the agent {label!r} on the task {task.name}")
        raise
    episodes = result.column(label, "total_pulls" if task.fixed_confidence else "score").astype(np.float64)
    row = result.summary(columns=["truncated", "verdict"] if task.fixed_confidence else ["truncated"]).iloc[0]
    value = float(episodes.mean())
    invalid = task.fixed_confidence and row["verdict"] == "not met"
    notes = [ORACLE] * oracle + [INVALID] * invalid + [CUT] * bool(task.fixed_confidence and row["truncated"] > 0)
    scored = 0.0 if invalid else float(score(task, value))
    samples = replicates(task, episodes, SEED) * (not invalid)
    return Cell(label, task, value, scored, samples, "; ".join(notes), described(agent), oracle)


def _most_pulls(task: BenchmarkTask) -> int:
    return task.episodes * int(task.kwargs.get("budget") or task.kwargs["max_pulls"])


def _slug(label: str) -> str:
    """A name of a folder for a label: text that differs has another, also where case does not count."""
    plain = "".join(x if x.isalnum() or x in "-_." else "-" for x in label.lower())[:60]
    return plain if plain == label and plain.strip(".") else f"{plain}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
