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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit_envs import BenchmarkTask, Task, benchmark_tasks
from bandit_envs.kernels import choice, flag, integer

from ..core.agent import Agent
from ..core.certified import CERTIFICATE, OF_CERTIFIER, Certified, certified, own_certifier
from ..core.forms import Forms, trained_with
from ..core.optional import pandas
from ..evaluation import Evaluation, evaluate
from ..evaluation.execution import jobs_number
from ..evaluation.identity import comes_with, digest, hashed
from ..evaluation.plan import make_envs
from ..evaluation.progress import shown
from ..evaluation.statistics import clopper_pearson
from ..models.cards import trained_on
from ..registry import Recipe, recipes_of
from .apart import ApartPolicy, apart
from .scores import CUT, REPLICATES, interquartile_mean, percentile_interval, replicates, score, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

SEED = 0  # of the resamples
INSIDE = "plays by compiled code of its own in the process where the truth is"
BEYOND = "is beyond a proven bound, as none is but by chance"
NONE = np.zeros(0)
APART = ("marks", "money")  # columns of tasks that no other column counts


class Stop(NamedTuple):
    """Where an agent stops by its own rule, on a task with a delta."""

    proof: str  # "certificate": that of the suite; "own"; "none"
    pulls: float  # on average; a cut episode counts `CUT` times max_pulls
    errors: int  # episodes with a wrong answer there
    cut: float  # the share of episodes that are cut


@dataclass(frozen=True, eq=False)
class Cell:
    """An agent on a task."""

    agent: str  # its label
    task: BenchmarkTask
    value: float  # the mean score, or, with a delta, the mean number of pulls; NaN where it is not taken
    score: float  # 0 is `uniform`, 1 the reference; NaN as `value`, and where the task is not scored
    samples: NDArray[np.float64] = field(default_factory=NONE.copy)  # bootstrap samples of the score
    note: str = ""  # what to know of it, or why there is none
    oracle: bool = False  # whether the agent could read the truth
    errors: int | None = None  # episodes with a delta that ended wrongly, where the certificate had the last word
    own: Stop | None = None  # where it stops by itself
    pace: float = np.nan  # seconds a pull
    trained_on: str = ""  # the call that has trained it
    seconds: float = 0.0  # that it took; 0 where it was played before
    values: NDArray[np.float64] = field(default_factory=NONE.copy)  # of the episodes
    counts: dict[str, float] = field(default_factory=dict)  # what the agent itself counts, over all episodes

    @property
    def kind(self) -> str:
        """Agent and note without numbers, which differ from task to task."""
        return f"{self.agent} {re.sub(r'[0-9.]+', '', self.note)}"

    @property
    def row(self) -> dict[str, object]:
        """Of the table."""
        low, high = percentile_interval(self.samples) if len(self.samples) else (np.nan, np.nan)
        n, own = self.task.episodes, self.own
        row = {"task": self.task.name, "group": self.task.group, "agent": self.agent, "score": self.score}
        row |= {"score_low": low, "score_high": high, "value": self.value, "episodes": n, "root": self.task.root}
        row |= _rate("errors", self.errors, n)
        proof, pulls, _, cut = own or ("", np.nan, None, np.nan)
        row |= {"proof": proof, "own_pulls": pulls, "own_cut": cut}
        row |= _rate("own_errors", own.errors if own else None, n)
        last = {"real": self.task.real, "marks": self.task.marks, "trained_on": self.trained_on, "note": self.note}
        return row | {"seconds_a_pull": self.pace} | last | self.counts


def _rate(name: str, errors: int | None, n: int) -> dict[str, float]:
    """A rate of errors, and its exact interval; NaN where there is none."""
    found = (np.nan,) * 3 if errors is None else (errors / n, *clopper_pearson(errors, n))
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))


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
        """Those of scores in `summary`: "all", "budget", "delta", "real", "synthetic", "marks", "money", the groups."""
        kinds = [x for x in ("real", "synthetic", *APART) if any(_in(task, x) for task in self.tasks)]
        return ["all", *self.settings, *kinds, *dict.fromkeys(task.group for task in self.tasks)]

    @functools.cached_property
    def table(self) -> DataFrame:
        """One row for each task and agent.

        The columns are task, group, agent; score, score_low, score_high (95 %); value, episodes, root; with a delta
        errors of the certified answers, errors_low, errors_high (exact, 95 %); where the agent stops by itself proof
        ("certificate", "own", "none"), own_pulls, own_cut, own_errors, own_errors_low, own_errors_high, of its answer;
        real, marks, trained_on, note, seconds_a_pull; of a language model calls, tokens and unreadable replies. Agents
        that do not take a task have NaN there, and the note says why.
        """
        frame: DataFrame = pandas().DataFrame([cell.row for own in self.cells.values() for cell in own])
        return frame

    def summary(self) -> DataFrame:
        """One row for each agent, the best first.

        The columns are agent; all, all_low, all_high; the same of budget, delta, real, synthetic and of each group, as
        threshold_budget; of marks and money, which no other column counts: tasks whose marks show an agent that has
        their tables which column an arm is, and budgets of money; mean and worst, over the tasks of all; errors of
        certified answers over all episodes with a delta; seconds_a_pull, the median. A score is the interquartile mean
        over tasks, its interval (95 %) comes from a bootstrap of the episodes of each task, those of `uniform` with
        them (Agarwal et al. 2021). It is NaN where the agent does not take all of the tasks.
        """
        rows = []
        for agent, own in self.cells.items():
            row: dict[str, object] = {"agent": agent}
            for name in self.columns:
                mean, samples = _mean(self._cells(agent, name))
                low, high = percentile_interval(samples)
                low, high = min(low, mean), max(high, mean)  # resamples of a best score are below it: they are noisier
                row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
            scores = np.array([cell.score for cell in self._cells(agent, "all")])
            row |= {"mean": scores.mean(), "worst": scores.min()} if len(scores) else {"mean": np.nan, "worst": np.nan}
            with_delta = [cell for cell in own if cell.errors is not None]
            errors = sum(cell.errors or 0 for cell in with_delta) if with_delta else None
            row |= _rate("errors", errors, sum(cell.task.episodes for cell in with_delta))
            paces = [cell.pace for cell in own if cell.pace == cell.pace]
            counts = {name: sum(cell.counts.get(name, 0.0) for cell in own) for cell in own for name in cell.counts}
            rows.append(row | {"seconds_a_pull": float(np.median(paces)) if paces else np.nan} | counts)
        frame: DataFrame = pandas().DataFrame(rows)
        return frame.sort_values([*self.columns], ascending=False, kind="stable", na_position="last", ignore_index=True)

    def stops(self, proof: str | None = None) -> DataFrame:
        """Where agents stop by a proof that they say they have ("own"), or by none ("none"); None: both.

        One row for each task and agent: task, agent, proof, pulls, cut, the share of episodes that are cut, which count
        twice `max_pulls` and no error, errors, errors_low, errors_high (exact, 95 %). They are not ranked.
        """
        wanted = ("own", "none") if proof is None else (choice("proof", proof, ("own", "none")),)
        some = [cell for own in self.cells.values() for cell in own if cell.own and cell.own.proof in wanted]
        names = {"task": "task", "agent": "agent", "proof": "proof", "own_pulls": "pulls", "own_cut": "cut"}
        names |= {f"own_errors{end}": f"errors{end}" for end in ("", "_low", "_high")}
        frame: DataFrame = pandas().DataFrame([cell.row for cell in some], columns=[*names]).rename(columns=names)
        return frame

    def stop_rows(self, proof: str) -> list[list[str]]:
        """The same as text: task, agent, pulls, cut, errors; an interval above delta is marked."""
        deltas, rows = {task.name: task.kwargs.get("delta", 1.0) for task in self.tasks}, []
        for _, row in self.stops(proof).iterrows():
            above = ", above delta" * bool(row["errors_low"] > deltas[row["task"]])
            errors = with_interval(row, "errors", "{:.1%}") + above
            rows.append([row["task"], row["agent"], f"{row['pulls']:.5g}", f"{row['cut']:.1%}", errors])
        return rows

    def _cells(self, agent: str, column: str) -> list[Cell]:
        """Those of the tasks of a column that are scored."""
        return [x for x in self.cells[agent] if x.task.scored and _in(x.task, column)]

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


def _in(task: BenchmarkTask, column: str) -> bool:
    """Whether a column counts a task."""
    apart = "marks" if task.marks else "money" if "cost" in task.kwargs else ""
    if apart or column in APART:
        return column == apart
    return column in ("all", task.setting, task.group, "real" if task.real else "synthetic")


def _mean(cells: Sequence[Cell]) -> tuple[float, NDArray[np.float64]]:
    """The interquartile mean over tasks, and bootstrap samples of it; NaN unless all are solved."""
    scores = np.array([cell.score for cell in cells])
    if not len(scores) or np.isnan(scores).any():
        return np.nan, np.full(REPLICATES, np.nan)
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

    With a delta the suite's certificate has the last word. Where an agent wants to stop, and one without a rule to stop
    at each look, its answer is judged; while none is certified at the task's delta, all arms are pulled in turn, and
    these pulls count. Where an agent stops by its own rule is said apart, see `Benchmark.stops`. An agent that refuses
    a task has no score there. Agents in Python that are not of this package play in a process of their own, which is
    given observations alone. `public_seed` depends on the agent.

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
    play = functools.partial(_cell, jobs=jobs, trust=trust, trained=trained)
    cells: dict[str, list[Cell]] = {label: [] for label in recipes}
    solved = {label: recipe.solves for label, recipe in recipes.items()}  # nothing: it does not say
    taken = [(task, label) for task in tasks for label in recipes if task.problem in (solved[label] or task.problem)]
    taken += [(task, "uniform") for task in tasks if "uniform" not in recipes]
    clock, said = Clock(taken), dict[str, str]()
    [plain] = recipes_of("uniform").values()
    others = {label: one for label, one in recipes.items() if one != plain}
    if "uniform" in others:
        raise ValueError(f"the label 'uniform' is that of the baseline, got it for {others['uniform'].name!r}")
    for task in tasks:
        found = {label: play(task, label, one, out) for label, one in others.items()}
        base = Cell("uniform", task, np.nan, np.nan)
        if len(found) < len(recipes) or any(cell.value == cell.value for cell in found.values()):
            base = play(task, "uniform", plain, out)
        clock.done(task, "uniform", base.seconds)
        for label in recipes:
            cells[label].append(cell := _scored(replace(found.get(label, base), agent=label), base))
            clock.done(task, label, cell.seconds)
            lacks = np.isnan(cell.value)
            text = f"{cell.score:.3f}" if task.scored else f"{cell.value:.5g} pulls, not scored"
            text = f"{label}: {cell.note}" if lacks else f"{task.name}, {label}: {text}"
            if show and not (lacks and said.setdefault(cell.kind, task.name) != task.name):
                print(f"{text}; about {clock.left:.0f} s left", file=sys.stderr, flush=True)
    return Benchmark(named, tasks, cells)


def _scored(cell: Cell, base: Cell) -> Cell:
    """A cell with its score, given that of `uniform`."""
    task, note = cell.task, [cell.note] * bool(cell.note)
    if np.isnan(cell.value):
        return cell
    if (cell.value < task.bound) if task.fixed_confidence else (cell.value > task.bound):
        note.append(f"{cell.value:.5g} {BEYOND}, {task.bound:.5g}")
    found = (np.nan, NONE)
    if task.scored:
        found = float(score(task, cell.value, base.value)), replicates(task, cell.values, base.values, SEED)
    return replace(cell, score=found[0], samples=found[1], note="; ".join(note))


def _lacking(tasks: Sequence[BenchmarkTask]) -> str:
    """Why data of a set cannot be had; "" if all can."""
    try:
        for task in (one for one in tasks if not one.ships):
            task.env().close()
    except (OSError, ImportError, ValueError) as error:
        return f"data of {task.name} cannot be had: {error}"
    return ""


class Clock:
    """How long the rest takes: the seconds in the table of this package's agents, at the pace of what was played.

    An agent that is not in the table takes the median of those. Of cells, tasks and the labels of agents.
    """

    def __init__(self, cells: Sequence[tuple[BenchmarkTask, str]]) -> None:
        table, self.usual, self.spent = _seconds(), 0.0, 0.0
        known = {label for own in table.values() for label in own}
        self.rest = dict[tuple[str, str], float]()
        for task, label in cells:
            own = table.get(task.name, {})
            middle = 0.0 if label in known else float(np.median([*own.values()] or [1.0]))
            self.rest[task.name, label] = own.get(label, middle)

    def done(self, task: BenchmarkTask, label: str, seconds: float) -> None:
        """A cell was played in so many seconds; 0: it was there, or is not taken."""
        usual = self.rest.pop((task.name, label), 0.0)
        self.usual, self.spent = self.usual + (usual if seconds else 0.0), self.spent + seconds

    @property
    def left(self) -> float:
        """Seconds, about."""
        return sum(self.rest.values()) * (self.spent / self.usual if self.usual else 1.0)


@functools.cache
def _seconds() -> dict[str, dict[str, float]]:
    """By task and agent, the seconds in the table of this package's agents, where it has them."""
    found = dict[str, dict[str, float]]()
    for row in csv.DictReader(Path(__file__).with_name("v2.csv").read_text(encoding="utf-8").splitlines()):
        if row.get("seconds"):
            found.setdefault(row["task"], {})[row["agent"]] = float(row["seconds"])
    return found


def _cell(
    task: BenchmarkTask,
    label: str,
    given: Recipe,
    out: Path | None,
    *,
    jobs: int,
    trust: bool,
    trained: dict[str, Any],
) -> Cell:
    """One agent on one task, without its score, in a process that knows no other task."""
    recipe = apart(given)
    begun, place = time.monotonic(), None if out is None else out / task.name / _slug(label)
    asked = functools.partial(make_envs, task.env_id, 1, kwargs=task.kwargs), task.kwargs | trained
    try:
        agent, envs, forms = recipe.paired(*asked)
    except (ValueError, OSError) as error:
        if not isinstance(error.__cause__, (ValueError, OSError, type(None))):
            raise  # a class that is broken
        reason = "its data cannot be had" if isinstance(error, OSError) else "does not take it"
        if isinstance(error, OSError):
            warnings.warn(f"{task.name} is not played, as {reason}: {error}", stacklevel=2)
        return Cell(label, task, np.nan, np.nan, note=f"{reason}: {error}")
    envs.close()
    recipe = replace(recipe, made=None)  # public seeds depend on the agent: it is made for them again
    known, inside = place is not None and place.is_dir(), _is_inside(agent)
    how = {"jobs": jobs, "trust": trust, "env_kwargs": task.kwargs | trained | {"salt": digest(agent)}}
    notes, own, errors, values, found, alone = [INSIDE] * inside, None, None, NONE, None, None
    if not task.fixed_confidence:
        found = _played(task, label, recipe, place, how)
        values = found.column(label, "score").astype(np.float64)
    else:
        stops = forms.stop and bool(getattr(agent, "stops", True))
        with_certificate = functools.partial(_gated, recipe=recipe, forms=forms, early=not stops)
        gated = Recipe(recipe.name, label, with_certificate)
        try:
            gated.paired(*asked)[1].close()
        except ValueError as error:
            notes.append(f"cannot be certified: {error}")
        else:
            found = _played(task, label, gated, place, how)
            values, cut = _pulls(found, label, task)
            errors = _errors(found, label)
            if cut.any():
                notes.append(f"{cut.mean():.1%} of the episodes are cut and count {CUT:g} max_pulls")
        if stops:
            proof, aside = _proof(agent, task), None if out is None else out / f"{task.name}-own" / _slug(label)
            alone = found if proof == CERTIFICATE else None
            if alone is None:  # in another process, which has not seen these episodes
                alone = _played(task, label, replace(apart(given), made=None), aside, how)
            pulls, cut = _pulls(alone, label, task)
            own = Stop(proof, float(pulls.mean()), _errors(alone, label), float(cut.mean()))
    counts = {
        name: float(one.column(label, name).sum()) for one in (found, alone) if one for name in one.runs[0].counts
    }
    if lost := counts.get("forfeited"):
        notes.append(f"{lost:.0f} episodes ended without an answer, which is counted as a wrong one")
    return Cell(
        label,
        task,
        np.nan if found is None else float(values.mean()),
        np.nan,
        note="; ".join(notes),
        oracle=inside,
        errors=errors,
        own=own,
        pace=np.nan if found is None else 1.0 / float(found.summary()["pulls_per_second"].iloc[0]),
        trained_on=trained_on(agent, envs.task) or str(trained_with(agent).get("instance") or ""),
        seconds=0.0 if known else time.monotonic() - begun,
        values=values,
        counts=counts,
    )


def _proof(agent: Any, task: BenchmarkTask) -> str:
    """By what an agent stops: "certificate", that of the suite at the task's delta; a proof of its "own"; or "none"."""
    given = {*getattr(agent, "_parameters", ())}
    by_one = own_certifier(agent) is not None and getattr(agent, "delta", None) == task.kwargs["delta"]
    ours = comes_with(type(agent)) and not isinstance(agent, ApartPolicy) and not given
    if ours and agent.name in _promised() or getattr(agent, "proven", False) or by_one and given & {*OF_CERTIFIER}:
        return "own"
    return CERTIFICATE if by_one else "none"


@functools.cache
def _promised() -> frozenset[str]:
    """The agents of this package that err with probability delta at most, as they are by default."""
    rows = Path(__file__).parents[1].joinpath("promises.md").read_text(encoding="utf-8").splitlines()
    cells = [row.split(" | ") for row in rows if " | wrong with probability delta" in row]
    return frozenset(name for row in cells for name in re.findall("`([a-z0-9-]+)`", row[0]))


def _pulls(found: Evaluation, label: str, task: BenchmarkTask) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The pulls of each episode, where a cut one counts `CUT` times `max_pulls`, and which are cut."""
    cut = found.column(label, "truncated").astype(np.bool_)
    return np.where(cut, CUT * task.kwargs["max_pulls"], found.column(label, "total_pulls")), cut


def _errors(found: Evaluation, label: str) -> int:
    """The episodes that have ended with a wrong answer."""
    return int((~found.column(label, "truncated") & ~found.column(label, "correct")).sum())


def _gated(task: Task, recipe: Recipe, forms: Forms, early: bool) -> Certified:
    """The agent with the suite's certificate: at each look, or where it wants to stop; until then arms in turn."""
    reader = forms.actions == "arm" and forms.observation != "statistics"
    agent = recipe.make(forms._replace(stop=True).of(task) if reader else task)
    early = early or isinstance(agent, Certified)
    while isinstance(agent, Certified):  # by options of its own, as another delta
        agent = agent.agent
    return certified(task, agent, {"completes": False} | ({} if early else {"early": False}))


def _played(task: BenchmarkTask, label: str, recipe: Recipe, place: Path | None, how: dict[str, Any]) -> Evaluation:
    """An agent on a task."""
    try:
        return evaluate(
            {label: recipe}, task.env_id, episodes=task.episodes, seed=task.root, out=place, progress=False, **how
        )
    except ValueError as error:
        changed = "; the agent has changed since: name another folder" if "salt is" in str(error) else ""
        raise ValueError(f"on the task {task.name}: {error}{changed}") from error
    except Exception as error:
        error.add_note(f"raised by the agent {label!r} on the task {task.name}")
        raise


def _is_inside(agent: Any) -> bool:
    """Whether an agent, or the one within, plays here by compiled code that does not come with this package."""
    some = [one for one in (agent, getattr(agent, "agent", None)) if isinstance(one, Agent)]
    return not all(comes_with(type(one)) for one in some)


def _slug(label: str) -> str:
    """A name of a folder for a label: text that differs has another, also where case does not count."""
    plain = "".join(x if x.isalnum() or x in "-_." else "-" for x in label.lower())[:60]
    return plain if plain == label and plain.strip(".") else f"{plain}-{hashed(label.encode())[:8]}"
