"""`benchmark`: agents are played on the tasks of a set, and scored."""

from __future__ import annotations

import csv
import functools
import re
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import BenchmarkTask, benchmark_tasks
from bandit_envs.kernels import choice, flag, integer

from ..core.certified import Certified
from ..core.optional import pandas
from ..evaluation import Evaluation, evaluate
from ..evaluation.execution import jobs_number
from ..evaluation.identity import described, digest, hashed
from ..evaluation.plan import make_envs
from ..evaluation.progress import shown
from ..registry import Recipe, recipes_of
from .scores import (
    CUT,
    INVALID,
    LEVEL,
    REPLICATES,
    errs_too_often,
    interquartile_mean,
    percentile_interval,
    replicates,
    score,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

SEED = 0  # of the resamples
INSIDE = "plays by code of its own in the simulation, where the truth is"
ON_TASK = "the task"  # among what an agent is judged on with a delta; the others are the task's neighbours


@dataclass(frozen=True, eq=False)
class Cell:
    """An agent on a task."""

    agent: str  # its label
    task: BenchmarkTask
    value: float  # the mean score, or, with a delta, the mean number of pulls; NaN where it is not taken
    score: float  # 0 is `uniform`, 1 the best that is known; NaN as `value`
    samples: NDArray[np.float64]  # bootstrap samples of the score
    note: str  # what to know of it, or why there is none
    code: str  # what has decided, in words
    oracle: bool = False  # whether the agent could read the truth
    invalid: bool = False  # whether it errs more often than delta, or has a delta of its own
    errors: dict[str, int] = field(default_factory=dict)  # episodes that ended wrongly, on the task and its neighbours
    seconds: float = 0.0  # that it took; 0 where it was played before

    @property
    def kind(self) -> str:
        """Agent and note without numbers, which differ from task to task."""
        return f"{self.agent} {re.sub(r'[0-9.]+', '', self.note)}"

    @property
    def row(self) -> dict[str, object]:
        """Of the table."""
        low, high = percentile_interval(self.samples) if len(self.samples) else (np.nan, np.nan)
        head = {"task": self.task.name, "group": self.task.group, "agent": self.agent, "score": self.score}
        more = {"episodes": self.task.episodes, "root": self.task.root, "note": self.note, "code": self.code}
        return head | {"score_low": low, "score_high": high, "value": self.value} | more


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark:
    """What agents have come to on the tasks of a set.

    Attributes:
        set: its name. tasks: the tasks, in their order. cells: of each agent, one for each task.
    """

    set: str
    tasks: tuple[BenchmarkTask, ...]
    cells: dict[str, list[Cell]]

    def __repr__(self) -> str:
        return f"<Benchmark {self.set} of {', '.join(self.agents)}: see summary()>"

    @property
    def agents(self) -> list[str]:
        """The labels of the agents, in the order in which they were given."""
        return list(self.cells)

    @property
    def settings(self) -> list[str]:
        """Those of the tasks, "budget" first."""
        return sorted({task.setting for task in self.tasks})

    @property
    def columns(self) -> list[str]:
        """The columns of scores in `summary`: all tasks, those of each setting, and the groups."""
        return ["all", *self.settings, *dict.fromkeys(task.group for task in self.tasks)]

    @functools.cached_property
    def table(self) -> DataFrame:
        """One row for each task and agent.

        The columns are task, group, agent, score, score_low, score_high (95 %), value, episodes, root, note and code.
        Agents that do not take a task have NaN there, and the note says why.
        """
        frame: DataFrame = pandas().DataFrame([cell.row for own in self.cells.values() for cell in own])
        return frame

    def summary(self) -> DataFrame:
        """One row for each agent, the best first.

        The columns are agent, all, all_low, all_high, over all tasks of the set, the same for budget and delta, over
        those of each setting, and for each group, as threshold_budget. A score is the interquartile mean over tasks,
        its interval (95 %) comes from a bootstrap of the episodes of each task (Agarwal et al. 2021). It is NaN where
        the agent does not take all of the tasks, and -1 where it is invalid on one of them, which `invalid` names.
        """
        rows = []
        for agent, own in self.cells.items():
            row: dict[str, object] = {"agent": agent}
            for name in self.columns:
                mean, samples = _mean(self._cells(agent, name))
                low, high = percentile_interval(samples)
                low, high = min(low, mean), max(high, mean)  # resamples of a best score are below it: they are noisier
                row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
            rows.append(row | {"invalid": ", ".join(cell.task.name for cell in own if cell.invalid)})
        frame: DataFrame = pandas().DataFrame(rows)
        return frame.sort_values([*self.columns], ascending=False, kind="stable", na_position="last", ignore_index=True)

    def _cells(self, agent: str, column: str) -> list[Cell]:
        """Those of the tasks of a column."""
        return [x for x in self.cells[agent] if column in ("all", x.task.setting, x.task.group)]

    def compare(self, a: str, b: str, column: str = "all") -> tuple[float, float, float]:
        """The score of agent `a` less that of `b` in a column of `summary`, and its interval (95 %).

        Both meet the same episodes and are resampled alike, so that the interval is of paired differences.
        """
        for name, agent in (("a", a), ("b", b)):
            choice(name, agent, self.agents)
        choice("column", column, self.columns)
        (first, one), (second, other) = (_mean(self._cells(agent, column)) for agent in (a, b))
        if np.isnan(first - second):
            raise ValueError(f"{a if np.isnan(first) else b} has no score in the column {column!r}")
        return first - second, *percentile_interval(one - other)

    def profile(self, levels: object = None, column: str = "all") -> dict[str, NDArray[np.float64]]:
        """Of each agent, the share of tasks with a score above each of some levels (Agarwal et al. 2021, section 4.2).

        It is of the agents that take all tasks of a column, or, where there are none, of all agents on the tasks that
        all of them take.

        Args:
            levels: an array; None: 0, .05, ... 1.2.
            column: "all", "budget", "delta" or a group.
        """
        choice("column", column, self.columns)
        at = np.arange(25) / 20 if levels is None else np.asarray(levels, np.float64)
        scores = {agent: np.array([cell.score for cell in self._cells(agent, column)]) for agent in self.cells}
        whole = {agent: own for agent, own in scores.items() if not np.isnan(own).any()} or scores
        common = ~np.isnan([*whole.values()]).any(axis=0)
        return {agent: (own[common, None] > at).mean(axis=0) for agent, own in whole.items() if common.any()}

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw performance profiles by setting. `path`: of a file to write, .png, .svg or .pdf."""
        from .page import draw

        return draw(self, path)

    def save(self, folder: str | Path) -> Path:
        """Write table.csv, summary.csv, benchmark.png and benchmark.html into a folder, which is returned."""
        from .page import write

        return write(self, folder)


def _mean(cells: Sequence[Cell]) -> tuple[float, NDArray[np.float64]]:
    """The interquartile mean over tasks, and bootstrap samples of it; NaN unless all are solved."""
    scores = np.array([cell.score for cell in cells])
    if np.isnan(scores).any():
        return np.nan, np.full(REPLICATES, np.nan)
    for cell in cells:
        if cell.invalid:
            return cell.score, cell.samples
    return float(interquartile_mean(scores)), interquartile_mean(np.array([cell.samples for cell in cells]).T)


def benchmark(
    agents: object,
    set: str | Sequence[str] = "v2",
    out: str | Path | None = None,
    jobs: int = 1,
    *,
    root: int | None = None,
    progress: bool | None = None,
    trust: bool = False,
    ranked: bool | None = None,
    stop: bool | None = None,
) -> Benchmark:
    """Play agents on the tasks of the benchmark, and score them.

    An agent that does not stop by itself plays tasks with a delta under `stop="certificate"`; where it asks to stop
    before, all arms are pulled in turn. An agent that refuses a task has no score there. An agent that errs more often
    than delta on a task or one of its neighbours has the score -1 there and in all means that the task is in: on one of
    them the exact one-sided binomial test rejects at the level .01 divided by the number of all tests. So has one with
    a delta of its own: that of the task is what an agent gets. `public_seed` depends on the agent.

    Args:
        agents: as for `evaluate`: a name, "module:Class", the path of a model, an SB3 model, a class, a list or a dict
            of these.
        set: as for `benchmark_tasks`. Where data of "v2" can neither be found nor downloaded, a warning says so and
            "v2-offline" is played.
        out: a folder, in which the episodes of each agent and task are kept: another call goes on from there.
            None: they are kept in memory, and lost.
        jobs: processes or threads, -1 for as many as there are cores. Results do not depend on it.
        root: of other episodes of the same tasks, >= 0; None: that of the printed tables. Draw a large one: an agent
            can try small ones out.
        progress: say on standard error which cell is done, and how long the rest takes. None: if it is a terminal.
        trust: as for `evaluate`.
        ranked: of models whose file does not say it: they were trained on ranked arms. None: as the model itself says.
        stop: likewise, with an action that stops.

    Raises:
        ValueError: as `evaluate`, for an unknown set, and for an action of an agent that its environment refuses,
            naming agent and task. What an agent itself raises names both in a note.
    """
    tasks, recipes = benchmark_tasks(set), recipes_of(agents, flag("trust", trust))
    jobs, show = jobs_number(jobs), shown(progress)
    if out is not None and (not isinstance(out, (str, Path)) or not str(out)):
        raise ValueError(f"out must be a folder, or None, got {out!r:.200}")
    out = None if out is None else Path(out)
    if set == "v2" and (lacking := _lacking(tasks)):
        warnings.warn(f"{lacking}: the tasks whose data come with the package are played, v2-offline", stacklevel=2)
        set, tasks = "v2-offline", benchmark_tasks("v2-offline")
    named = set if isinstance(set, str) else f"of {len(tasks)} tasks"
    if root is not None:
        root = integer("root", root, 0, 2**63 - 1)
        tasks, named = tuple(replace(task, root=root) for task in tasks), f"{named}, root {root}"
        out = None if out is None else out / f"root-{root}"
    trained = {name: flag(name, x) for name, x in (("ranked", ranked), ("stop", stop)) if x is not None}
    play = functools.partial(_cell, tests=number_of_tests(tasks), jobs=jobs, trust=trust, trained=trained)
    cells: dict[str, list[Cell]] = {label: [] for label in recipes}
    solved = {label: recipe.solves for label, recipe in recipes.items()}  # nothing: it does not say
    taken = [(task, label) for task in tasks for label in recipes if task.problem in (solved[label] or task.problem)]
    clock, said = Clock(taken), dict[str, str]()
    if root is not None:  # `uniform` has 0 under any root
        [plain] = recipes_of("uniform").values()
        tasks = tuple(replace(task, uniform=play(task, "uniform", plain, out).value) for task in tasks)
    for task in tasks:
        for label, recipe in recipes.items():
            cells[label].append(cell := play(task, label, recipe, out))
            clock.done(task, label, cell.seconds)
            lacks = np.isnan(cell.score)
            text = f"{label}: {cell.note}" if lacks else f"{task.name}, {label}: {cell.score:.3f}"
            if show and not (lacks and said.setdefault(cell.kind, task.name) != task.name):
                print(f"{text}; about {clock.left:.0f} s left", file=sys.stderr, flush=True)
    return Benchmark(named, tasks, cells)


def number_of_tests(tasks: Sequence[BenchmarkTask]) -> int:
    """How many tests of delta an agent meets in a set."""
    return sum(1 + len(task.neighbours) for task in tasks if task.fixed_confidence)


def _lacking(tasks: Sequence[BenchmarkTask]) -> str:
    """Why data of a set cannot be had; "" if all can."""
    try:
        for task in (one for one in tasks if not one.ships):
            task.env().close()
    except (OSError, ImportError, ValueError) as error:
        return f"data of {task.name} cannot be had: {error}"
    return ""


class Clock:
    """How long the rest takes: by the seconds in the table of this package's agents, at the pace of each agent so far.

    An agent that is not in the table takes the median of those, and more for each step, as one in plain Python does.
    Paces are lower medians over cells, so that the few that compile code do not count.

    Args:
        cells: what is to be played, tasks and the labels of agents.
    """

    def __init__(self, cells: Sequence[tuple[BenchmarkTask, str]]) -> None:
        self.expected = {(task.name, label): _expected(task, label) for task, label in cells}
        self.paces: dict[str, list[float]] = {}

    def done(self, task: BenchmarkTask, label: str, seconds: float) -> None:
        """A cell was played in so many seconds; 0: it was there, or is not taken."""
        usual, steps = self.expected.pop((task.name, label), (0.0, 0.0))
        if seconds > 0 < usual:
            pace = max(seconds - usual, 0.0) / steps if steps else seconds / usual
            self.paces.setdefault(label, []).append(pace)

    @property
    def left(self) -> float:
        """Seconds, about."""
        paces = {label: float(np.quantile(own, 0.5, method="lower")) for label, own in self.paces.items()}
        left = 0.0
        for (_, label), (usual, steps) in self.expected.items():
            left += usual + paces.get(label, 0.0) * steps if steps else usual * paces.get(label, 1.0)
        return left


def _expected(task: BenchmarkTask, label: str) -> tuple[float, float]:
    """Seconds of an agent of the table, and 0; else the median of those, and the steps of a batch."""
    table = _seconds(task.version)
    known = table.get(task.name, {})
    if any(label in others for others in table.values()):
        return known.get(label, 0.0), 0.0
    most = int(task.kwargs.get("budget") or task.kwargs["max_pulls"])
    steps = task.uniform + len(task.neighbours) * most if task.fixed_confidence else most
    return float(np.median([*known.values()] or [1e-6 * task.episodes * most])), steps


@functools.cache
def _seconds(version: str) -> dict[str, dict[str, float]]:
    """By task and agent, the seconds in the table of this package's agents, where it has them."""
    found = dict[str, dict[str, float]]()
    for row in csv.DictReader(Path(__file__).with_name(f"{version}.csv").read_text(encoding="utf-8").splitlines()):
        if row.get("seconds"):
            found.setdefault(row["task"], {})[row["agent"]] = float(row["seconds"])
    return found


def _cell(
    task: BenchmarkTask,
    label: str,
    recipe: Recipe,
    out: Path | None,
    *,
    tests: int,
    jobs: int,
    trust: bool,
    trained: dict[str, Any],
) -> Cell:
    """One agent on one task."""
    begun = time.monotonic()
    try:
        agent, recipe = _made(task, recipe, trained)
    except (ValueError, OSError) as error:
        if not isinstance(error.__cause__, (ValueError, OSError, type(None))):
            raise  # a class that is broken
        reason = "its data cannot be had" if isinstance(error, OSError) else "does not take it"
        if isinstance(error, OSError):
            warnings.warn(f"{task.name} is not played, as {reason}: {error}", stacklevel=2)
        return Cell(label, task, np.nan, np.nan, np.zeros(0), f"{reason}: {error}", "")
    code, oracle = described(agent), _is_inside(agent)
    notes, errors, invalid = [INSIDE] * oracle, dict[str, int](), False
    delta, own, samples = task.kwargs.get("delta"), getattr(agent, "delta", None), np.full(REPLICATES, INVALID)
    if delta is not None and isinstance(own, (int, float)) and own != delta:
        note = f"is refused: it has a delta of its own, {own:g}, in place of the task's, {delta:g}"
        return Cell(label, task, np.nan, INVALID, samples, note, code, oracle, invalid=True)
    known = out is not None and (out / task.name / _slug(label)).is_dir()
    how = {"jobs": jobs, "trust": trust, "env_kwargs": trained | {"salt": digest(agent)}}
    results = _played(task, label, recipe, out, how)
    own_task, metric = results[ON_TASK], "total_pulls" if task.fixed_confidence else "score"
    values, cut = own_task.column(label, metric).astype(np.float64), own_task.column(label, "truncated")
    if delta is not None:
        values[cut] = CUT * task.kwargs["max_pulls"]
        n, level = task.episodes, LEVEL / tests
        for name, found in results.items():
            errors[name] = int((~found.column(label, "truncated") & ~found.column(label, "correct")).sum())
            if errs_too_often(errors[name], n, delta, level):
                invalid = True
                notes.append(f"errs in {errors[name] / n:.0%} of {n} episodes of {name}, delta is {delta:g}")
        if cut.any():
            notes.append(f"{cut.mean():.0%} of the episodes are cut and count {CUT:g} max_pulls")
    mean, scored = float(values.mean()), INVALID
    if not invalid:
        scored, samples = float(score(task, mean)), replicates(task, values, SEED)
    seconds = 0.0 if known else time.monotonic() - begun
    return Cell(label, task, mean, scored, samples, "; ".join(notes), code, oracle, invalid, errors, seconds)


def _played(
    task: BenchmarkTask, label: str, recipe: Recipe, out: Path | None, how: dict[str, Any]
) -> dict[str, Evaluation]:
    """An agent on a task and on its neighbours, by name, in an order from which it cannot know which is the task."""
    judged = {ON_TASK: task.kwargs, **task.neighbours}
    order = sorted(judged, key=lambda name: hashed(f"{task.root} {how['env_kwargs']} {name}".encode()))
    results = {}
    for name in order:
        folder = task.name if name == ON_TASK else f"{task.name}-{_slug(name)}"
        own = how | {"env_kwargs": judged[name] | how["env_kwargs"]}
        place = None if out is None else out / folder / _slug(label)
        try:
            results[name] = evaluate(
                {label: recipe}, task.env_id, episodes=task.episodes, seed=task.root, out=place, progress=False, **own
            )
        except ValueError as error:
            changed = "; the agent has changed since: name another folder" if "salt is" in str(error) else ""
            raise ValueError(f"on the task {task.name}: {error}{changed}") from error
        except Exception as error:
            error.add_note(f"raised by the agent {label!r} on the task {task.name}")
            raise
    return results


def _made(task: BenchmarkTask, recipe: Recipe, trained: dict[str, Any]) -> tuple[Any, Recipe]:
    """The agent that a recipe makes for a task, and its recipe: with a certificate where it has no rule to stop."""
    asked = functools.partial(make_envs, task.env_id, 1, kwargs=task.kwargs), task.kwargs | trained
    agent, envs, _ = recipe.paired(*asked)
    envs.close()
    completes = isinstance(agent, Certified) and agent.completes
    if task.fixed_confidence and (completes or not getattr(agent, "stops", False)):
        recipe = replace(recipe, parameters={**recipe.parameters, "stop": "certificate", "completes": False})
        agent, envs, _ = recipe.paired(*asked)
        envs.close()
    return agent, replace(recipe, made=None)  # public seeds depend on the agent: it is made for them again


def _is_inside(agent: Any) -> bool:
    """Whether an agent, or the one within, plays by a method that does not come with this package."""
    some: list[Any] = [one for one in (agent, getattr(agent, "agent", None)) if getattr(one, "plays", False) is True]
    return any(not one.played.__module__.startswith("agents.") for one in some)


def _slug(label: str) -> str:
    """A name of a folder for a label: text that differs has another, also where case does not count."""
    plain = "".join(x if x.isalnum() or x in "-_." else "-" for x in label.lower())[:60]
    return plain if plain == label and plain.strip(".") else f"{plain}-{hashed(label.encode())[:8]}"
