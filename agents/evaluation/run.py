"""Episodes in lockstep: one agent after another over the same episodes, in batches of bounded memory.

All agents meet the same episodes and, by the counter-based random numbers, the same samples in them: episode e of
`evaluate(seed=s)` is episode e of root s. A slot whose episode has ended takes the next one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import math
import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from threading import Event
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
    flag,
    integer,
    jit,
    root_number,
)

from ..catalogue import Recipe, reads, recipe_of
from ..core.agent import Agent
from ..core.certified import Certified
from ..core.optional import require
from ..core.round_policy import PlansPulls
from .drawing import Drawing
from .environment import environment_id
from .progress import Progress, compilation_noted, shown, told_in_lines
from .result import LEVEL, Evaluation, Run

__all__ = ["NEVER", "check_end", "evaluate", "keywords", "make_agent", "most_pulls", "plays", "pull_numbers"]

MOST_ARMS = 100  # of an instance whose characteristic time is worked out
MEMORY = 2**28  # bytes that the arrays of one batch may take, roughly
SHARES, FEWEST = 4, 64  # parts of a run for each job, where each then has so many episodes
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
    out: str | None = None,
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
        jobs: how many parts of the episodes run at the same time, -1 for as many as there are cores: in threads for
            agents that play whole episodes in compiled code, else in processes, by joblib. Results do not depend on it.
        out: None. To write what is returned into a folder: `evaluate(...).save(folder)`.
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
    if (jobs := integer("jobs", jobs, -1, 2**16)) == 0:
        raise ValueError("jobs must be at least 1, or -1 for all cores, got 0")
    if jobs == -1:
        jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if out is not None:
        raise ValueError(f"out must be None in this version (use Evaluation.save), got {out!r}")
    progress = None if progress is None else flag("progress", progress)
    deterministic, trust = flag("deterministic", deterministic), flag("trust", trust)
    kwargs = keywords(env_kwargs)
    env_id = environment_id(env_id)
    checks, horizons = pull_numbers("at", at), pull_numbers("budgets", budgets)
    if checks is not None and horizons is not None:
        raise ValueError("give at= or budgets=, not both")
    labelled = _labelled(agents, trust)
    with compilation_noted(shown(progress)), told_in_lines(progress):
        plans = _plans(labelled, env_id, kwargs, episodes, checks, horizons, batch)
        if not deterministic:
            plans = [plan.drawing() for plan in plans]
        runs = [plan.run(episodes, seed, progress, jobs) for plan in plans]
    versions = {
        "bandit-envs": bandit_envs.__version__,
        "gymnasium": gym.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    return Evaluation(
        runs,
        {
            "env_id": env_id,
            "env_kwargs": kwargs,
            "episodes": episodes,
            "seed": seed,
            "at": checks,
            "budgets": horizons,
            "deterministic": deterministic,
            "versions": versions,
        },
    )


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


def _labelled(agents: Any, trust: bool) -> dict[str, Recipe]:
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

    A bound for arms of standard deviation 1 grows with the variance of Gaussian arms that all have the same one.
    """
    if envs.instance is None or envs.task.delta is None:
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
    if not problem.local and len(arms.means) > MOST_ARMS:  # the game takes long: the paper's, which is smaller
        return sigma**2 * problem.paper_lower_bound(arms.means, delta) if law == "gaussian" else math.nan
    try:
        found = float(problem.lower_bound(arms.means, delta, law=law, sigma=sigma))
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
    budget: int | None
    checks_are_budgets: bool = False
    draws: bool = False

    def drawing(self) -> _Plan:
        """The same for a model that draws its actions; a handcrafted agent decides as it always does.

        Raises:
            ValueError: for a model that has nothing to draw from.
        """
        if isinstance(self.policy, Agent):
            return self
        return dataclasses.replace(self, policy=Drawing(self.label, self.policy), draws=True)

    def run(self, episodes: int, seed: int, progress: bool | None, jobs: int) -> Run:
        """All episodes, in as many jobs."""
        started = time.perf_counter()
        with closing(Progress(self.label, episodes, self.budget, progress)) as bar:
            if min(jobs, episodes) == 1:
                run = self.part(0, episodes, seed, bar, None)
            else:
                run = Run.joined(self._parts(episodes, seed, bar, jobs))
        run.seconds, run.lower_bound = time.perf_counter() - started, self.lower_bound
        run.stops = bool(getattr(self.policy, "stops", True))
        run.deterministic = None if isinstance(self.policy, Agent) else not self.draws
        return run.as_budgets() if self.checks_are_budgets else run

    def part(self, first: int, episodes: int, seed: int, bar: Progress | None, stopped: Event | None) -> Run:
        """So many episodes from number `first` on; it is given up once `stopped` is set."""
        envs = _make_envs(self.env_id, min(self.slots, episodes), *_forms(self.policy), self.kwargs)
        try:
            return _Lockstep(self.label, self.policy, envs, first, episodes, seed, self.checks, bar, stopped).run()
        finally:
            envs.close()

    def _parts(self, episodes: int, seed: int, bar: Progress, jobs: int) -> list[Run]:
        """The episodes in parts, at the same time: in threads where the kernels hold no lock, else in processes."""
        count = min(episodes, jobs * max(1, min(SHARES, episodes // (jobs * FEWEST))))
        ends = [episodes * i // count for i in range(count + 1)]
        shares = [(first, end - first) for first, end in itertools.pairwise(ends)]
        if not plays(self.policy, min(self.slots, math.ceil(episodes / count))):
            joblib = require("joblib", "jobs > 1", "evaluation")
            task = joblib.delayed(_Plan.part)
            runs: list[Run] = []
            parallel = joblib.Parallel(n_jobs=jobs, return_as="generator")  # in order, each as soon as it can be had
            for run in parallel(task(self, *share, seed, None, None) for share in shares):
                bar.ended(len(run.columns["score"]))
                bar.step(int(run.columns["total_pulls"][:, -1].sum()))
                runs.append(run)
            return runs
        stopped = Event()
        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(self.part, *share, seed, bar, stopped) for share in shares]
            try:
                return [future.result() for future in futures]
            except BaseException:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                raise


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
    return _Plan(label, policy, env_id, kwargs, slots, checks, bound, task.budget)


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


class _Stopped(Exception):
    """Another part has failed, or the user has interrupted the run."""


class _Lockstep:
    """One pass of an agent over so many episodes, from number `first` on."""

    def __init__(
        self,
        label: str,
        policy: Any,
        envs: PureExplorationVectorEnv,
        first: int,
        episodes: int,
        seed: int,
        at: Sequence[int] | None,
        bar: Progress | None,
        stopped: Event | None,
    ) -> None:
        self.policy, self.envs, self.bounds = policy, envs, _bounds_of(policy)
        self.handcrafted = envs.task.actions == "full"  # then the agent's own answer is scored
        self.first, self.episodes, self.seed, self.bar, self.stopped = first, episodes, seed, bar, stopped
        E = envs.num_envs
        self.plays, self.draws = plays(policy, E), isinstance(policy, Drawing)
        self.steps = 2**10  # actions of an episode between two looks, by which a run can be interrupted within a second
        self.checks = np.array([] if at is None else at, np.int64)
        self.certifier = _certifier_of(policy, envs.task)
        self.result = Run.empty(label, envs.task, episodes, at, level=self.certifier is not None)
        self.episode = first + np.arange(E)  # which episode each slot runs
        self.spent = envs.total_pulls  # pulls so far, kept by the environment
        self.counted = 0  # of these, how many have been told to the progress bar
        self.next_check = np.zeros(E, np.int64)  # the first checkpoint not yet scored
        self.most = most_pulls(envs.task)
        # Pulls at each checkpoint, a number that is never reached behind the last.
        self.limits = np.append(self.checks, NEVER)
        self.limit = self.limits[self.next_check]  # pulls at the next checkpoint; never, in a slot that is done

    def run(self) -> Run:
        """Decide, score what is due, step, and give ended slots the next episode, until all have ended."""
        envs, E, stop = self.envs, self.envs.num_envs, self.envs.task.stop
        observation, _ = envs.reset(seed=self.seed, options={"episode": self.episode})
        state, begins, following, end = None, np.ones(E, np.bool_), self.first + E, self.first + self.episodes
        one, running = np.ones(E, np.int64), np.zeros(E, np.bool_)
        left, checked, shape = self.episodes, len(self.checks) > 0, (E,)
        bar = self.bar if self.bar is not None and self.bar.show else None
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
            if self.stopped is not None and self.stopped.is_set():
                raise _Stopped
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
        return self.result

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
        if self.certifier is not None and LEVEL not in known:
            known = known | {LEVEL: self.envs.level(slots, self.certifier)}
        return known

    def _pulls(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pulls of each arm, or of all its coordinates, (n, K)."""
        pulls = self.envs.pulls[slots]
        return pulls if pulls.ndim == 2 else pulls.sum(axis=2)

    def _score_checkpoint(self, observation: Any, state: Any, times: NDArray[np.int64]) -> None:
        """Score the answer of now in slots whose next pulls, `times` (E,), lead beyond their next checkpoint."""
        slots = np.flatnonzero(np.minimum(times, self.most - self.spent) > self.limit - self.spent)
        answers = self.policy.recommended(observation, state, slots) if self.handcrafted else None
        verdict = self.envs.assess(slots, answers) | self._certify(slots)
        self.result.write(self.episode[slots] - self.first, self.next_check[slots], verdict, self.spent[slots])
        self.result.count_pulls(self.next_check[slots], self._pulls(slots))
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
            self.result.count_pulls(column, pulls)
            return
        for c in range(len(self.checks)):
            late = np.flatnonzero(self.next_check[over] <= c)
            if len(late):
                column = np.full(len(late), c)
                part = {name: value[late] for name, value in verdict.items()}
                self.result.write(self.episode[over[late]] - self.first, column, part, total[late], cut[late])
                self.result.count_pulls(column, pulls[late])
