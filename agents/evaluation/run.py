"""Episodes in lockstep: one agent after another over the same episodes, in batches of bounded memory.

All agents meet the same episodes and, by the counter-based random numbers, the same samples in them: episode e of
`evaluate(seed=s)` is episode e of root s. A slot whose episode has ended takes the next one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import os
import platform
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

import bandit_envs
from bandit_envs import (
    EPISODES_LIMIT,
    PULLS_LIMIT,
    Arms,
    Bernoulli,
    Certifier,
    Gaussian,
    Problem,
    PureExplorationVectorEnv,
    Quiet,
    Task,
    agent_uniforms,
    choice,
    flag,
    integer,
    jit,
    root_number,
)

from ..catalogue import Recipe, reads, recipe_of
from ..core.agent import Agent
from ..core.certified import Certified
from ..core.round_policy import PlansPulls
from . import store
from .blocks import Block, Work, cut, grouped, spans
from .drawing import Drawing
from .environment import environment_id
from .execution import Call, Watch, cores, jobs_number, outcomes
from .identity import arms_of, described
from .identity import versions as results_versions
from .precision import Precision, looks, precision_of
from .progress import Progress, compilation_noted, shown, told_in_lines
from .result import Evaluation
from .rows import CERTIFIED, LEVEL, ROUNDING, Run

__all__ = [
    "NEVER",
    "check_end",
    "evaluate",
    "keywords",
    "labelled",
    "make_agent",
    "most_pulls",
    "plays",
    "pull_numbers",
]

MEMORY = 2**28  # bytes that the arrays of one batch may take, roughly
PATIENCE = 0.5  # seconds of compiled code without a look at what the user has typed
MOST_PAIRED = 1000  # arms, of which all pairs are looked at for the level of a certificate
DRAWS = 2**32 - 1  # the seed of the draws of models among the streams of agents
_INT64 = np.dtype(np.int64)
NEVER = np.iinfo(np.int64).max  # pulls that no episode reaches


@jit
def _passes(arm: Any, times: Any, stop: Any, most: Any, spent: Any, limit: Any) -> Any:
    """Whether the next pulls, clipped as the environment does it, lead any episode beyond its limit."""
    beyond = False
    for e in range(len(arm)):
        pulls = min(0 if arm[e] == stop else times[e], most - spent[e])
        beyond |= pulls > limit[e] - spent[e]
    return beyond


@jit
def _add_rows(sums: Any, place: Any, rows: Any) -> None:
    """Add each row to the sum of its place."""
    for i in range(len(place)):
        for k in range(sums.shape[1]):
            sums[place[i], k] += rows[i, k]


def evaluate(
    agents: Any,
    env_id: str,
    *,
    episodes: int,
    seed: int = 0,
    at: Sequence[int] | None = None,
    budgets: Sequence[int] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    batch: int | None = None,
    jobs: int = 1,
    out: str | Path | None = None,
    shard: str | tuple[int, int] | None = None,
    rows: str = "all",
    precision: Any = None,
    deterministic: bool = True,
    progress: bool | None = None,
    trust: bool = False,
) -> Evaluation:
    """Run agents on the same episodes of an environment and score their answers.

    Args:
        agents: a name ("lsa", "apt(tolerance=0.05)", "module:Class(alpha=2)", the path of a saved model, "model.zip"),
            a class of agents, a function that makes an agent from a task, an `Agent`, an SB3 model, a list of these, or
            a dict {label: one of these}. An `Agent` is made anew, with its parameters, for each environment.
        env_id: a registered environment, e.g. "bandit_envs/Threshold-v0", or the name of its problem: "Threshold".
        episodes: how many, from episode 0 of root `seed` on.
        at: numbers of pulls at which the answer is scored too, at the last decision with no more pulls than that; an
            episode that ended before counts with its final answer. None: one row per episode, at its end.
        budgets: one run per budget, in place of `at`; agents of this package and shapes of `agents` that do not use the
            budget and pull one at a time make one run at the largest, scored at each: the same rows.
        env_kwargs: keyword arguments of the environment (without actions and observation).
        batch: episodes side by side; by default as many as memory allows, at most 4096. Results do not depend on it.
        jobs: how many blocks of episodes run at the same time, -1 for as many as there are cores: in threads for agents
            that play whole episodes in compiled code, else in processes. Inside `joblib.parallel_config(backend=...)`
            they run where that says, "dask" or "ray". Results do not depend on it.
        out: a folder, or an address as "s3://bucket/folder", in which each block of episodes is kept as soon as it is
            there. Another call with the same `out` makes only those that are missing; `agents.results` opens the
            folder. None: all rows are kept in memory.
        shard: "2/8", or (2, 8), makes only the second of eight parts of the blocks, for `out`; "slurm" takes both
            numbers from a job array of SLURM. What is returned can be read once all parts are there.
        rows: "none" keeps counts, sums and histograms of the episodes only, from which `summary`, `compare`, `plot` and
            `pulls` come, in memory that does not grow with their number; see `agents.evaluation.moments`.
        precision: end before `episodes`, once all agents have it: half of the width of the 95 % interval of the error
            rate; {metric: half of a width}; or "verdict", one on delta. Intervals then allow for having looked more
            than once. It is decided on the first blocks of episodes alone, so that `jobs` changes nothing.
        deterministic: models of SB3 take their most probable action; False: they draw from their distribution of
            actions, by numbers that depend on `seed`, the episode and the number of the decision alone. Handcrafted
            agents decide as they always do.
        progress: tell on standard error how far runs are that take long, by a bar, or where it is no terminal by a
            line each half minute; and say there when kernels must be compiled first. None: if it is a terminal.
        trust: load saved models that others than this package have written, too: their makers may run any code.

    Raises:
        ValueError: naming the value and what is allowed. All agents are checked before the first one runs.
        FileNotFoundError: for a saved model that is not there.
        gymnasium.error.Error: for an id, with its namespace, that nobody has registered.
    """
    episodes, seed = integer("episodes", episodes, 1, EPISODES_LIMIT), root_number(seed)
    jobs = jobs_number(jobs)
    if out is not None and (not isinstance(out, (str, Path)) or not str(out)):
        raise ValueError(f"out must be a folder, an address, or None, got {out!r:.200}")
    rows, part = choice("rows", rows, ("all", "none")), _shard(shard)
    if part is not None and out is None:
        raise ValueError(f"shard needs out, the folder that all parts are written to, got shard={shard!r} alone")
    progress = None if progress is None else flag("progress", progress)
    deterministic, trust = flag("deterministic", deterministic), flag("trust", trust)
    kwargs = keywords(env_kwargs)
    env_id = environment_id(env_id)
    checks, horizons = pull_numbers("at", at), pull_numbers("budgets", budgets)
    if checks is not None and horizons is not None:
        raise ValueError("give at= or budgets=, not both")
    recipes = labelled(agents, trust)
    with compilation_noted(shown(progress)), told_in_lines(progress):
        plans = _plans(recipes, env_id, kwargs, episodes, checks, horizons, batch)
        if not deterministic:
            plans = [plan.drawing() for plan in plans]
        level = any(plan.level for plan in plans)  # then all have the column
        plans = [dataclasses.replace(plan, level=level) for plan in plans]
        versions = {
            "bandit-envs": bandit_envs.__version__,
            "gymnasium": gym.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
        settings = {
            "env_id": env_id,
            "env_kwargs": kwargs,
            "episodes": episodes,
            "seed": seed,
            "at": checks,
            "budgets": horizons,
            "deterministic": deterministic,
            "rows": rows,
            "versions": versions,
        }
        wanted = precision_of(precision, [plan.task for plan in plans])
        if wanted is not None:
            if part is not None:
                raise ValueError("precision is decided on all blocks in their order: it cannot be had with shard")
            settings["precision"] = precision if isinstance(precision, str) else dict(wanted.widths)
        together = rows == "none" or wanted is not None  # so that all agents have the same episodes in the end
        groups = grouped([plan.work for plan in plans], episodes, together=together, fine=wanted is not None)
        blocks, rooms = cut(groups, episodes), [plan.empty(0) for plan in plans]
        ending = None if wanted is None else _Ending(wanted, blocks)
        kept: Any
        if out is None:
            if rows == "none":
                kept = store.MemoryOfMoments(rooms, blocks, eager=wanted is None)
            elif wanted is not None:
                kept = store.MemoryOfBlocks([plan.empty for plan in plans], blocks)
            else:
                kept = store.Memory([plan.empty(episodes) for plan in plans])
            _fill(kept, plans, blocks, seed, jobs, progress, ending)
        else:
            kept = store.claimed(out, rooms, groups, episodes, _identity(plans, settings), settings)
            told = {"versions": versions, "jobs": jobs, "shard": part}
            _go_on(kept, plans, seed, jobs, progress, part, told, ending)
        if ending is not None:
            settings |= {"episodes": kept.runs()[0].episodes, "look": ending.look}
    return Evaluation(kept.runs(), settings)


class _Ending:
    """Looks at the first blocks, until what they tell is precise enough.

    Args:
        wanted: what is to be reached. blocks: all of them.

    Attributes:
        made: the numbers of the blocks that are there.
        look: the number of the last look. count: of the blocks before it; None as long as nothing is decided.
    """

    def __init__(self, wanted: Precision, blocks: Sequence[Block]) -> None:
        self.wanted, self.look = wanted, 0
        self.count: int | None = None
        self.made: set[int] = set()
        self._all, self._looks = len(blocks), looks(len(blocks))
        self._next, self._there = next(self._looks), 0

    def decided(self, kept: Any) -> bool:
        """Whether enough blocks are there."""
        while self.count is None:
            while self._there in self.made:
                self._there += 1
            if self._there < self._next:
                return False
            self.look += 1
            if self._next == self._all or self.wanted.reached(kept.advance(self._next), self.look):
                self.count = self._next
                kept.advance(self.count)
                kept.end(self.count, self.look)
            else:
                self._next = next(self._looks)
        return True


def _identity(plans: Sequence[_Plan], settings: Mapping[str, Any]) -> dict[str, Any]:
    """All that the rows depend on."""
    own = {name: value for name, value in settings.items() if name != "versions"}
    first = plans[0]
    with closing(_make_envs(first.env_id, 1, *_forms(first.policy), first.kwargs)) as envs:
        arms = arms_of(envs)
    agents = {plan.label: f"{described(plan.policy)}{', drawn' if plan.draws else ''}" for plan in reversed(plans)}
    return own | {"agents": agents, "arms": arms, "version": results_versions()}


def _shard(shard: Any) -> tuple[int, int] | None:
    """Which part of the blocks is to be made, (i, n) with 1 <= i <= n.

    Raises:
        ValueError: for what is no such thing.
    """
    if shard is None:
        return None
    if shard == "slurm":
        number, first, step, count = (
            os.environ.get(f"SLURM_ARRAY_TASK_{name}") for name in ("ID", "MIN", "STEP", "COUNT")
        )
        if number is None or count is None:
            raise ValueError("shard='slurm' needs a job array of SLURM: SLURM_ARRAY_TASK_ID and _COUNT are not set")
        i, n = (int(number) - int(first or 0)) // int(step or 1) + 1, int(count)
    else:
        parts = shard.split("/") if isinstance(shard, str) else shard
        try:
            i, n = (int(part) if isinstance(part, str) else integer("shard", part, 1, 2**20) for part in parts)
        except (TypeError, ValueError):
            raise ValueError(f"shard must be 'i/n', as '2/8', or 'slurm', got {shard!r:.80}") from None
    if not 1 <= i <= n:
        raise ValueError(f"shard must be one of 1/{n} to {n}/{n}, got {i}/{n}")
    return i, n


def _go_on(
    folder: store.Folder,
    plans: Sequence[_Plan],
    seed: int,
    jobs: int,
    progress: bool | None,
    part: tuple[int, int] | None,
    told: Mapping[str, Any],
    ending: _Ending | None,
) -> None:
    """Make the blocks that a folder lacks, or of these a part, after a look at those that are there.

    Raises:
        OSError: if the folder cannot be written to. KeyboardInterrupt: telling how to go on.
    """
    if ending is not None:
        folder.look()
        if folder.ended is not None:
            ending.look = folder.ended
            ending = None
    i, n = (1, 1) if part is None else part
    ours = [block for block in folder.blocks if block.number % n == i - 1]
    lacking = {block.number for block in folder.missing()}
    for block in ours:
        if block.number not in lacking:
            try:
                folder.check(block)
            except ValueError as error:
                warnings.warn(f"{error}: made anew", RuntimeWarning, stacklevel=3)
                folder.discard(block)
                lacking.add(block.number)
    todo = [block for block in ours if block.number in lacking]
    done = [block for block in ours if block.number not in lacking]
    if ending is not None:
        ending.made = {block.number for block in done}
    if not todo and ending is None or ending is not None and ending.decided(folder):
        return
    others = folder.begin(told)
    try:
        _fill(folder, plans, todo, seed, jobs, progress, ending, done=done, back=others and ending is None)
    except (KeyboardInterrupt, OSError) as error:
        there = len(folder.blocks) - len(folder.missing())
        said = f"{there} of {len(folder.blocks)} blocks are kept in {folder.place}, and the same call goes on from them"
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(said) from None
        raise OSError(f"{error}; {said}") from error
    finally:
        with contextlib.suppress(OSError):
            folder.close()


def _fill(
    kept: Any,
    plans: Sequence[_Plan],
    blocks: Sequence[Block],
    seed: int,
    jobs: int,
    progress: bool | None,
    ending: _Ending | None = None,
    *,
    done: Sequence[Block] = (),
    back: bool = False,
) -> None:
    """Make blocks and keep them.

    Args:
        kept: where.
        plans: the runs.
        blocks: those to be made. done: those that have been made before, for the progress alone.
        seed: the root.
        jobs: how many at the same time.
        progress: as for `evaluate`.
        ending: decides when enough blocks are there; None: all are needed.
        back: begin with the last one, since somebody else has begun with the first.
    """
    works = [plan.work for plan in plans]
    by_pulls = all(plan.budget is not None for plan in plans)

    def amount(some: Iterable[Block]) -> int:
        return sum(block.episodes * (plans[i].budget or 0 if by_pulls else 1) for block in some for i in block.runs)

    with closing(Progress(amount(blocks) + amount(done), by_pulls, progress)) as bar:
        bar.found(amount(done))
        watch = Watch(bar if bar.show else None)
        calls = []
        for span in spans(blocks, works, cores(jobs)):
            own = [plans[i] for i in span[0].runs]
            calls.append(
                Call(
                    functools.partial(_play, own, span, seed, kept.form),
                    all(plan.compiled for plan in own),
                    functools.partial(_lacks, kept, span),
                )
            )
        for outcome in outcomes(calls[::-1] if back else calls, jobs, watch):
            made = outcome.made
            for block, content in zip(made.blocks, made.contents, strict=True):
                kept.put(block, content)
            for i, (pulls, seconds) in zip(made.blocks[0].runs, made.spent, strict=True):
                kept.spent(i, pulls, seconds)
                if watch.bar is not None and not outcome.here:
                    bar.label = plans[i].label
                    bar.step(pulls)
                    bar.ended(sum(block.episodes for block in made.blocks))
            if ending is not None:
                ending.made |= {block.number for block in made.span}
                if ending.decided(kept):
                    break


def _lacks(kept: Any, span: Sequence[Block]) -> bool:
    """Whether some of these blocks are still to be made."""
    return not all(map(kept.has, span))


@dataclass(frozen=True)
class _Played:
    """What came of a span.

    Attributes:
        span: the blocks that were played. blocks, contents: what was made. spent: for each run, pulls and seconds.
    """

    span: Sequence[Block]
    blocks: Sequence[Block]
    contents: Sequence[Any]
    spent: Sequence[tuple[int, float]]


def _play(plans: Sequence[_Plan], span: Sequence[Block], seed: int, form: Any, watch: Watch) -> _Played:
    """Play the episodes of neighbouring blocks in one go.

    Args:
        plans: the runs of the blocks.
        span: the blocks, all of the same size but the last one.
        seed: the root.
        form: makes the contents of the blocks from their rows; None: all of them are one block.
        watch: of the tasks that run at the same time.
    """
    first, episodes = span[0].first, sum(block.episodes for block in span)
    size = episodes if form is None else span[0].episodes
    parts, spent = [], []
    for plan in plans:
        started = time.perf_counter()
        if watch.bar is not None:
            watch.bar.label = plan.label
        rows = plan.play(first, episodes, seed, size, watch)
        pulls = sum(int(part.columns["total_pulls"][:, -1].sum()) for part in rows)
        parts.append(rows)
        spent.append((pulls, time.perf_counter() - started))
    if form is None:
        whole = dataclasses.replace(span[0], episodes=episodes)
        return _Played(span, [whole], [[rows[0] for rows in parts]], spent)
    return _Played(span, span, form(span, parts), spent)


def _plans(
    agents: Mapping[str, Recipe],
    env_id: str,
    kwargs: dict[str, Any],
    episodes: int,
    checks: list[int] | None,
    horizons: list[int] | None,
    batch: int | None,
) -> list[_Plan]:
    """The runs of all agents, by label: one each, or where there are several budgets, `horizons`, one for each."""
    plans: list[_Plan] = []
    for label, recipe in agents.items():
        if horizons is None:
            plans.append(_plan(label, recipe, env_id, kwargs, episodes, checks, batch))
            continue
        first, last = (
            horizons[:-1],
            _plan(label, recipe, env_id, kwargs | {"budget": horizons[-1]}, episodes, None, batch),
        )
        if first and _share_a_run(last.policy):
            plans.append(dataclasses.replace(last, checks=horizons, checks_are_budgets=True))
        else:
            smaller = [_plan(label, recipe, env_id, kwargs | {"budget": b}, episodes, None, batch) for b in first]
            plans += [*smaller, last]
    return plans


def _share_a_run(agent: Any) -> bool:
    """Whether the rows of a run at a large budget tell those of runs at smaller ones.

    The decisions must not depend on the budget, and the agent must pull one at a time: a bulk pull is clipped to what a
    smaller budget leaves, while a checkpoint in the middle of it is scored before it. An agent of a user's own that
    decides in a method of its own may pull in bulk, and so has a run for each budget.
    """
    if not isinstance(agent, Agent) or isinstance(agent, PlansPulls) or not agent.anytime:
        return False
    return all(getattr(type(agent), how).__module__.startswith("agents.") for how in ("choose", "predict"))


def pull_numbers(name: str, values: Iterable[int] | None) -> list[int] | None:
    """`at` or `budgets`: checked, each once, in order."""
    if values is None:
        return None
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list of numbers of pulls, or None, got {values!r:.200}")
    numbers = sorted({integer(name, value, 1, PULLS_LIMIT - 1) for value in values})
    if not numbers:
        raise ValueError(f"{name} must name at least one number of pulls, or be None")
    return numbers


def keywords(env_kwargs: Any) -> dict[str, Any]:
    """Keyword arguments of the environment: checked, a dict of one's own."""
    if env_kwargs is None:
        return {}
    if not isinstance(env_kwargs, Mapping) or not all(isinstance(name, str) for name in env_kwargs):
        raise ValueError(f"env_kwargs must be a dict of keyword arguments, or None, got {env_kwargs!r:.200}")
    chosen = ("actions", "observation", "num_envs", "autoreset_mode", "copy", "id", "vectorization_mode")
    for name in (*chosen, "vector_kwargs", "wrappers"):
        if name in env_kwargs:
            raise ValueError(f"evaluate chooses {name!r} itself; take it out of env_kwargs")
    return dict(env_kwargs)


def labelled(agents: Any, trust: bool) -> dict[str, Recipe]:
    """The agents by label: the key of a dict, the text given, or the name of what is no text, numbered where taken."""
    if isinstance(agents, (Mapping, list, tuple)) and not agents:
        raise ValueError(f"evaluate needs at least one agent, got {agents!r}")
    labels: dict[str, Recipe] = {}
    if isinstance(agents, Mapping):
        for label, agent in agents.items():
            if str(label) in labels:
                raise ValueError(f"the labels of agents are text, and {label!r} is there already, as {str(label)!r}")
            labels[str(label)] = recipe_of(agent, trust)
        return labels
    many = list(agents) if isinstance(agents, (list, tuple)) else [agents]
    texts = {agent for agent in many if isinstance(agent, str)}
    for agent in many:
        recipe, n = recipe_of(agent, trust), 1
        label = recipe.label
        if isinstance(agent, str) and label in labels:
            raise ValueError(f"agent {agent!r} is given twice")
        while not isinstance(agent, str) and (label in labels or label in texts):
            n += 1
            label = f"{recipe.label}-{n}"
        labels[label] = recipe
    return labels


def _batch_size(envs: PureExplorationVectorEnv, episodes: int, batch: int | None) -> int:
    """Slots: all episodes, or as many as fit into MEMORY; `batch` overrides."""
    if batch is not None:
        return min(integer("batch", batch, 1, 2**24), episodes)
    setting, K, D = envs.setting, envs.task.K, envs.task.D
    per_slot = 40 + K * (8 * 8 + 24 * D)
    if setting.fixed is None or setting.shuffle_arms:  # each slot has arms of its own
        per_slot += setting.source.arms.parameters.nbytes + 16 * K * D
    most = max(1, min(episodes, 4096, MEMORY // per_slot))
    return math.ceil(episodes / math.ceil(episodes / most))  # batches of equal size: no slot idles in the last


def _make_envs(env_id: str, slots: int, actions: str, observation: str, kwargs: Any) -> PureExplorationVectorEnv:
    """An environment whose slots are restarted one by one, with observations that are not copied."""
    envs: Any = gym.make_vec(
        env_id,
        num_envs=slots,
        copy=False,
        autoreset_mode=AutoresetMode.DISABLED,
        actions=actions,
        observation=observation,
        **kwargs,
    )
    return envs  # type: ignore[no-any-return]


def _forms(agent: Any) -> tuple[str, str]:
    """The forms of actions and observations that an agent takes part in."""
    return "full" if isinstance(agent, Agent) else "arm", reads(agent)


def check_end(label: str, agent: Any, task: Task) -> None:
    """Refuse an agent whose episodes might never end.

    Raises:
        ValueError: naming it.
    """
    stops = getattr(agent, "stops", False) and task.delta is not None
    if not stops and task.budget is None and task.max_pulls is None:
        raise ValueError(f"{label} may never stop by itself: give a budget or max_pulls")


def most_pulls(task: Task) -> int:
    """Pulls that an episode of a task can have."""
    return min(task.budget or PULLS_LIMIT - 1, task.max_pulls or PULLS_LIMIT - 1)


def plays(agent: Any, slots: int = 1) -> bool:
    """Whether an agent plays whole episodes in compiled code, so many side by side."""
    able = hasattr(agent, "play") and getattr(agent, "plays", False) is True
    return able and slots <= getattr(agent, "most_played", slots)


def make_agent(recipe: Recipe, env_id: str, kwargs: Any) -> tuple[Any, PureExplorationVectorEnv]:
    """The agent, and a single slot of the environment in the forms that go with it.

    What a function makes is known only once it has been made: where the forms were others, it is made again.
    """
    forms = ("arm", "features") if recipe.observation == "features" else ("full", "statistics")
    for _ in range(2):
        envs = _make_envs(env_id, 1, *forms, kwargs)
        try:
            agent = recipe.make(envs)
        except BaseException:
            envs.close()
            raise
        if _forms(agent) == forms:
            return agent, envs
        envs.close()
        forms = _forms(agent)
    raise ValueError(f"{recipe.name} makes agents that take part in other forms than that of the task it is given")


def _lower_bound(envs: PureExplorationVectorEnv) -> float:
    """Pulls that the task takes on average, where the problem knows it for arms of this law; else NaN.

    A bound for arms of standard deviation 1 grows with the variance of Gaussian arms that all have the same one. With a
    budget, by which runs may end too, nothing is to be compared with it.
    """
    if envs.instance is None or envs.task.delta is None or envs.task.budget is not None:
        return math.nan
    arms, factor, problem = envs.instance.arms, 1.0, envs.problem
    if "law" in inspect.signature(problem.lower_bound).parameters:
        return _bound_for_law(problem, arms, envs.task.delta)
    if problem.unit_gaussian_bound:
        if not isinstance(arms, Gaussian) or arms.variances.min() < arms.variances.max():
            return math.nan
        factor = float(arms.variances.max())
    return factor * float(envs.problem.lower_bound(arms.means, envs.task.delta))


def _bound_for_law(problem: Problem, arms: Arms, delta: float) -> float:
    """The bound for Bernoulli arms, and Gaussian ones of one variance; NaN for others, and where there is none."""
    if isinstance(arms, Bernoulli):
        law, sigma = "bernoulli", 0.5
    elif isinstance(arms, Gaussian) and 0 < arms.variances.min() == arms.variances.max():
        law, sigma = "gaussian", float(arms.variances.max()) ** 0.5
    else:
        return math.nan
    if not problem.quick_bound(len(arms.means)):  # the game takes long: the paper's, which is smaller
        return sigma**2 * problem.paper_lower_bound(arms.means, delta) if law == "gaussian" else math.nan
    asked = _Asked(repr((problem, arms.means.tolist())), problem, arms.means)
    return _bound_of(asked, delta, law, sigma)


@dataclass(frozen=True)
class _Asked:
    """An instance of a problem; equal where the text that tells all of it is."""

    text: str
    problem: Problem = field(compare=False)
    means: NDArray[np.float64] = field(compare=False)


@functools.lru_cache(maxsize=256)
def _bound_of(asked: _Asked, delta: float, law: str, sigma: float) -> float:
    """The bound of an instance, worked out once for all agents that meet it; NaN if there is none."""
    try:
        found = float(asked.problem.lower_bound(asked.means, delta, law=law, sigma=sigma))
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):  # arms of several dimensions that are not Gaussian
        return math.nan
    return found if math.isfinite(found) else math.nan


@dataclass(frozen=True)
class _Plan:
    """A run that nothing speaks against: an agent, its environment at one budget, and when to score."""

    label: str
    policy: Any
    env_id: str
    kwargs: dict[str, Any]
    slots: int
    checks: list[int] | None
    lower_bound: float
    task: Task
    checks_are_budgets: bool = False
    draws: bool = False
    level: bool = False  # whether rows tell the level of a certificate

    @property
    def budget(self) -> int | None:
        """Pulls of an episode, if there is a limit."""
        return self.task.budget

    def drawing(self) -> _Plan:
        """The same for a model that draws its actions; a handcrafted agent decides as it always does.

        Raises:
            ValueError: for a model that has nothing to draw from.
        """
        if isinstance(self.policy, Agent):
            return self
        return dataclasses.replace(self, policy=Drawing(self.label, self.policy), draws=True)

    @property
    def work(self) -> Work:
        """What the size of blocks depends on."""
        stops = getattr(self.policy, "stops", True) if self.budget is not None else True
        pulls = None if stops and self.task.delta is not None else self.budget
        return Work(pulls, len(self.checks or [None]), most_pulls(self.task))

    @property
    def compiled(self) -> bool:
        """Whether the agent plays its episodes in compiled code, which holds no lock."""
        return plays(self.policy, self.slots)

    def empty(self, episodes: int) -> Run:
        """Room for the rows of so many episodes."""
        run = Run.empty(self.label, self.task, episodes, self.checks, self.level)
        run.lower_bound, run.stops = self.lower_bound, bool(getattr(self.policy, "stops", True))
        run.deterministic = None if isinstance(self.policy, Agent) else not self.draws
        return run.as_budgets() if self.checks_are_budgets else run

    def play(self, first: int, episodes: int, seed: int, size: int, watch: Watch) -> list[Run]:
        """So many episodes from number `first` on, in blocks of this size; given up once `watch` is told to."""
        slots = min(self.slots, episodes)
        slots = math.ceil(episodes / math.ceil(episodes / slots))  # no slot idles in the last batch
        envs = _make_envs(self.env_id, slots, *_forms(self.policy), self.kwargs)
        try:
            lockstep = _Lockstep(self.policy, envs, first, episodes, seed, self.empty(episodes), size, watch)
            return lockstep.run()
        finally:
            envs.close()


def _plan(
    label: str,
    recipe: Recipe,
    env_id: str,
    kwargs: dict[str, Any],
    episodes: int,
    checks: list[int] | None,
    batch: int | None,
) -> _Plan:
    """The run of one agent at one budget, after all checks that can be made without running it."""
    policy, envs = make_agent(recipe, env_id, kwargs)
    try:
        task = envs.task
        check_end(label, policy, task)
        bound = _lower_bound(envs)
        slots = _batch_size(envs, episodes, batch)
        # A first decision: what the agent cannot read comes out here, and no run pays for the loading of kernels.
        observation, _ = envs.reset(seed=0)
        if plays(policy, slots):
            quiet = Quiet(np.zeros(1, np.int64), 0)
            envs.step(policy.play(envs.simulation, quiet, observation, None)[0])
        else:
            envs.step(policy.predict(observation, None, np.ones(1, np.bool_), deterministic=True)[0])
        envs.assess(np.zeros(1, np.int64))
        envs.certify(np.zeros(1, np.int64), **_bounds_of(policy))
    finally:
        envs.close()
    level = _certifier_of(policy, task) is not None
    return _Plan(label, policy, env_id, kwargs, slots, checks, bound, task, level=level)


def _certifier_of(policy: Any, task: Task) -> Certifier | None:
    """What tells the level of an agent's certificates: its own; or that of a task that names a delta.

    It is not told of so many arms that it would take long, nor for a problem that tells no evidence.
    """
    if not task.make_problem().local and task.K > MOST_PAIRED:
        return None
    if isinstance(policy, Certified):
        return policy.certifier
    with contextlib.suppress(ValueError):
        return None if task.delta is None else task.certifier()
    return None


def _bounds_of(policy: Any) -> Mapping[str, Any]:
    """By which bounds an agent's answers are certified: its own, if it has some, else the problem's."""
    return policy.own_bounds if isinstance(policy, Agent) else {}


class _Lockstep:
    """One pass of an agent over so many episodes, from number `first` on."""

    def __init__(
        self,
        policy: Any,
        envs: PureExplorationVectorEnv,
        first: int,
        episodes: int,
        seed: int,
        room: Run,
        size: int,
        watch: Watch,
    ) -> None:
        self.policy, self.envs, self.bounds = policy, envs, _bounds_of(policy)
        self.handcrafted = envs.task.actions == "full"  # then the agent's own answer is scored
        self.first, self.episodes, self.seed, self.size, self.watch = first, episodes, seed, size, watch
        E = envs.num_envs
        self.plays, self.draws = plays(policy, E), isinstance(policy, Drawing)
        self.steps = 2**10  # actions of an episode between two looks, by which a run can be interrupted within a second
        at = room.budgets if room.at is None else room.at
        self.checks = np.array([], np.int64) if at is None else at
        self.result = room
        self.certifier = _certifier_of(policy, envs.task) if LEVEL in room.names else None
        C, K = room.pulls.shape
        self.pulls = np.zeros((math.ceil(episodes / size) * C, K))  # sums by block and checkpoint
        self.episode = first + np.arange(E)  # which episode each slot runs
        self.spent = envs.total_pulls  # pulls so far, kept by the environment
        self.counted = 0  # of these, how many have been told to the progress bar
        self.next_check = np.zeros(E, np.int64)  # the first checkpoint not yet scored
        self.most = most_pulls(envs.task)
        # Pulls at each checkpoint, a number that is never reached behind the last.
        self.limits = np.append(self.checks, NEVER)
        self.limit = self.limits[self.next_check]  # pulls at the next checkpoint; never, in a slot that is done

    def run(self) -> list[Run]:
        """Decide, score what is due, step, and give ended slots the next episode, until all have ended.

        Returns:
            The rows, cut into blocks.
        """
        envs, E, stop = self.envs, self.envs.num_envs, self.envs.task.stop
        observation, _ = envs.reset(seed=self.seed, options={"episode": self.episode})
        state, begins, following, end = None, np.ones(E, np.bool_), self.first + E, self.first + self.episodes
        one, running = np.ones(E, np.int64), np.zeros(E, np.bool_)
        left, checked, shape = self.episodes, len(self.checks) > 0, (E,)
        watch, bar = self.watch, self.watch.bar
        while left:
            action, state = self._decide(observation, state, begins)
            arm, times = (action["arm"], action["times"]) if self.handcrafted else (action, one)
            if checked:
                if getattr(arm, "dtype", None) is not _INT64 or getattr(times, "dtype", None) is not _INT64:
                    arm, times = np.ascontiguousarray(arm, np.int64), np.ascontiguousarray(times, np.int64)
                # Other shapes are refused by the environment.
                while arm.shape == shape and _passes(arm, times, stop, self.most, self.spent, self.limit):
                    self._score_checkpoint(observation, state, np.where(arm == stop, 0, times))
            observation, _, terminated, truncated, info = envs.step(action)
            if bar is not None:
                bar.step(self._pulls_made())
            watch.look()
            if "answer" not in info:
                begins = running
                continue
            over = np.flatnonzero(info["_answer"])
            self._record(over, info, truncated, observation, state)
            if bar is not None:
                bar.ended(len(over))
            left -= len(over)
            begins = terminated | truncated
            refill = over[: max(end - following, 0)]
            self.limit[over] = NEVER
            if len(refill):
                self.episode[refill] = np.arange(following, following + len(refill))
                following += len(refill)
                mask = np.zeros(E, np.bool_)
                mask[refill] = True
                self.next_check[refill], self.limit[refill] = 0, self.limits[0]
                observation, _ = envs.reset(options={"reset_mask": mask, "episode": self.episode})
                self.counted = int(self.spent.sum())
        return self.result.cut(self.size, self.pulls)

    def _pulls_made(self) -> int:
        """Pulls since the last call."""
        before, self.counted = self.counted, int(self.spent.sum())
        return self.counted - before

    def _decide(self, observation: Any, state: Any, begins: NDArray[np.bool_]) -> tuple[Any, Any]:
        """The next actions; an agent that can plays on to them from wherever nothing is due."""
        if self.draws:
            u = agent_uniforms(self.envs.public_seeds, self.spent, seed=DRAWS)[:, 0]
            return self.policy.drawn(observation, state, begins, u, self.envs.action_masks)  # type: ignore[no-any-return]
        if not self.plays:
            decided: tuple[Any, Any] = self.policy.predict(observation, state, begins, deterministic=True)
            return decided
        started = time.perf_counter()
        quiet = Quiet(np.minimum(self.limit, self.most - 1), self.steps)
        action, state = self.policy.play(self.envs.simulation, quiet, observation, state)
        seconds = time.perf_counter() - started
        if seconds < PATIENCE / 4:
            self.steps = min(2 * self.steps, 2**40)
        elif seconds > PATIENCE:
            self.steps = max(self.steps // 2, 1)
        return action, state

    def _certify(self, slots: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """What the statistics of slots certify, (n,) each."""
        known = self.envs.certify(slots, **self.bounds)
        if LEVEL not in self.result.names:
            return known
        level = np.ones(len(slots)) if self.certifier is None else self.envs.level(slots, self.certifier)
        delta = self.result.task.delta
        certified = {} if delta is None else {CERTIFIED: level <= delta * (1 + ROUNDING)}
        return known | {LEVEL: level} | certified

    def _pulls(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pulls of each arm, or of all its coordinates, (n, K)."""
        pulls = self.envs.pulls[slots]
        return pulls if pulls.ndim == 2 else pulls.sum(axis=2)

    def _count_pulls(self, episode: NDArray[np.int64], column: NDArray[np.int64], pulls: NDArray[np.int64]) -> None:
        """Add the pulls (n, K) of episodes to the sums of their blocks and checkpoints (n,)."""
        place = (episode - self.first) // self.size * len(self.result.pulls) + column
        if len(place) and (place == place[0]).all():
            self.pulls[place[0]] += pulls.sum(axis=0)
        else:
            _add_rows(self.pulls, place, np.ascontiguousarray(pulls, np.int64))

    def _score_checkpoint(self, observation: Any, state: Any, times: NDArray[np.int64]) -> None:
        """Score the answer of now in slots whose next pulls, `times` (E,), lead beyond their next checkpoint."""
        slots = np.flatnonzero(np.minimum(times, self.most - self.spent) > self.limit - self.spent)
        answers = self.policy.recommended(observation, state, slots) if self.handcrafted else None
        verdict = self.envs.assess(slots, answers) | self._certify(slots)
        self.result.write(self.episode[slots] - self.first, self.next_check[slots], verdict, self.spent[slots])
        self._count_pulls(self.episode[slots], self.next_check[slots], self._pulls(slots))
        self.next_check[slots] += 1
        self.limit[slots] = self.limits[self.next_check[slots]]

    def _record(
        self, over: NDArray[np.int64], info: dict[str, Any], truncated: NDArray[np.bool_], observation: Any, state: Any
    ) -> None:
        """The rows of ended episodes: the end itself, or every checkpoint not reached.

        An episode that was cut has not been asked for an answer: an agent's is what it recommends then.
        """
        known = self._certify(over)
        verdict = known | {name: info[name][over] for name in self.result.names if name not in known}
        pulls, total, cut = self._pulls(over), info["total_pulls"][over], truncated[over]
        if self.handcrafted and cut.any():
            asked = self.envs.assess(over[cut], self.policy.recommended(observation, state, over[cut]))
            for name in asked.keys() & verdict.keys():
                verdict[name][cut] = asked[name]
        if len(self.checks) == 0:
            column = np.zeros(len(over), np.int64)
            self.result.write(self.episode[over] - self.first, column, verdict, total, cut)
            self._count_pulls(self.episode[over], column, pulls)
            return
        for c in range(len(self.checks)):
            late = np.flatnonzero(self.next_check[over] <= c)
            if len(late):
                column = np.full(len(late), c)
                part = {name: value[late] for name, value in verdict.items()}
                self.result.write(self.episode[over[late]] - self.first, column, part, total[late], cut[late])
                self._count_pulls(self.episode[over[late]], column, pulls[late])
