"""The plans of an evaluation: each agent at each budget, with its environment and lower bound, after all checks."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import warnings
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from bandit_envs import Arms, Bernoulli, Gaussian, Problem, PureExplorationVectorEnv, Task
from bandit_envs.kernels import PULLS_LIMIT, expect, flag, integer, number
from bandit_envs.problems import observation_form
from bandit_envs.simulation import Quiet
from bandit_envs.stopping import Certifier

from ..core.agent import Agent
from ..core.certified import own_certifier
from ..core.forms import Forms, forms_of
from ..registry import Recipe
from .blocks import GRAIN, SLOW_GRAIN, Work
from .drawing import Drawing, warn_of_one_arm
from .identity import arms_of
from .rows import Run

OF_MODELS = frozenset({"stop", "ranked", "observation"})  # keywords of environments that only models take
# Those that say how a learner's environment was made or shown, and nothing of the episodes.
LEFT_OUT = {"actions", "autoreset_mode", "copy", "num_envs", "render_mode", "reward_scale", "vectorization_mode"}
MEMORY = 2**28  # bytes that the arrays of one batch may take, roughly
NEAR = 2**23  # the same of tables


@dataclass(frozen=True)
class Plan:
    """A run that nothing speaks against: an agent, its environment at one budget, and when to score."""

    label: str
    policy: Any  # the agent, or a `Drawing` of it
    forms: Forms
    env_id: str
    kwargs: dict[str, object]
    slots: int  # of a batch
    task: Task
    checks: list[int] | None  # numbers of pulls at which it is scored; None: at the end alone
    checks_are_budgets: bool  # they stand for runs
    lower_bound: float  # pulls that the task takes on average, or NaN
    arms: str | None  # a digest of the true arms, where all episodes have the same
    level: bool  # whether rows hold the level of a certificate
    by_delta: bool = False  # whether it is one of several deltas

    @property
    def draws(self) -> bool:
        """Whether the agent is a model that draws its actions."""
        return isinstance(self.policy, Drawing)

    @property
    def work(self) -> Work:
        """What the size of blocks depends on."""
        pulls = None if self.task.delta is not None and getattr(self.policy, "stops", True) else self.task.budget
        quick = plays(self.policy, 1, self.forms.ranked, self.task.waits)  # for any size of a batch
        grain = GRAIN if quick else SLOW_GRAIN
        return Work(pulls, len(self.checks or [None]), most_pulls(self.task), slow=not self.compiled, grain=grain)

    @property
    def compiled(self) -> bool:
        """Whether the agent plays its episodes in compiled code, which holds no lock."""
        return plays(self.policy, self.slots, self.forms.ranked, self.task.waits)

    def empty(self, episodes: int) -> Run:
        """A `Run` without rows yet, of so many episodes."""
        counts = getattr(self.policy, "counts", ())
        run = Run.empty(self.label, self.task, episodes, self.checks, self.level, counts)
        run.lower_bound, run.stops = self.lower_bound, self.forms.stop and bool(getattr(self.policy, "stops", True))
        run.deterministic = None if isinstance(self.policy, Agent) else not self.draws
        run.by_delta = self.by_delta
        if self.checks_are_budgets:  # the ends of runs at these budgets are the same
            run.budgets, run.at = run.at, None
        return run


def plans_of(
    recipes: Mapping[str, Recipe],
    env_id: str,
    kwargs: dict[str, object],
    episodes: int,
    deterministic: bool,
    checks: list[int] | None = None,
    budgets: list[int] | None = None,
    deltas: list[float] | None = None,
    batch: int | None = None,
) -> list[Plan]:
    """The runs of all agents, by label: one each, or one for each of the budgets, or of the deltas.

    Each agent is made with an environment of a single slot, by which all is checked. What is wrong with any of them is
    reported before anything is compiled. Then each takes a first decision, which shows what it cannot read.
    """
    found: list[tuple[Plan, PureExplorationVectorEnv]] = []
    name, numbers = ("budget", budgets) if deltas is None else ("delta", deltas)
    owns = [kwargs] if numbers is None else [kwargs | {name: number} for number in numbers]
    several = budgets is not None and len(budgets) > 1
    with ExitStack() as closing:
        for label, recipe in recipes.items():
            first = len(found)
            for own in reversed(owns):  # the largest budget first: its run may be that of all
                agent, envs, forms = recipe.paired(functools.partial(make_envs, env_id, 1, kwargs=own), own)
                closing.callback(envs.close)
                task, once = envs.task, several and own is owns[-1] and _share_a_run(agent)
                if deltas is not None:
                    check_delta(label, agent, forms.stop)
                check_end(label, agent, task)
                if checks is not None and task.cost is not None:
                    text = "at= counts pulls, and cost is of money:"
                    raise ValueError(f"{text} with a budget, give budgets= in its place")
                how = _batch_size(envs, episodes, batch), task, budgets if once else checks, once
                known = lower_bound_of(envs), arms_of(envs), certifier_of(agent, task) is not None, deltas is not None
                found.insert(first, (Plan(label, agent, forms, env_id, own, *how, *known), envs))
                if once:
                    break
        for plan, _ in found:
            expect("agent", *(plan.policy.kernels_needed() if isinstance(plan.policy, Agent) else ()))
            if plan.level and (certifier := certifier_of(plan.policy, plan.task)) is not None:
                expect("end", *certifier.kernels_needed)
        for plan, envs in found:
            _decide_once(plan, envs)
    level = any(plan.level for plan, _ in found)  # then all have the column
    return [dataclasses.replace(one, level=level, policy=_deciding(one, deterministic)) for one, _ in found]


def _deciding(plan: Plan, deterministic: bool) -> Any:
    """The agent as it decides: a model draws its actions, or takes the most probable ones, with a warning where due."""
    if isinstance(plan.policy, Agent):
        return plan.policy
    if not deterministic:
        return Drawing(plan.label, plan.policy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which have been given once
        envs = make_envs(plan.env_id, 4, plan.forms, plan.kwargs)
    with suppress(ValueError, TypeError, AttributeError, RuntimeError):
        warn_of_one_arm(plan.label, plan.policy, envs)
    return plan.policy


def _decide_once(plan: Plan, envs: PureExplorationVectorEnv) -> None:
    """A first decision, after which no run pays for the loading of kernels."""
    (observation, _), none = envs.reset(seed=0), np.zeros(1, np.int64)
    if getattr(plan.policy, "pays", False):
        return
    if plan.compiled:
        envs.step(plan.policy.play(envs.simulation, Quiet(none, 0), observation, None)[0])
    else:
        envs.step(plan.policy.predict(observation, None, np.ones(1, np.bool_), deterministic=True)[0])
    envs.assess(none)
    envs.certify(none, **bounds_of(plan.policy))


def make_envs(env_id: str, slots: int, forms: Forms, kwargs: Mapping[str, object]) -> PureExplorationVectorEnv:
    """An environment whose slots are restarted one by one; observations are not copied. Gains are not scored."""
    reward = kwargs.get("reward", "score")
    how: Any = {**kwargs, **forms._asdict(), "reward": "score" if reward == "gain" else reward}
    how |= {"copy": False, "autoreset_mode": AutoresetMode.DISABLED}
    envs: Any = gym.make_vec(env_id, num_envs=slots, **how)
    envs.advises = False
    return envs  # type: ignore[no-any-return]


def check_end(label: str, agent: object, task: Task) -> None:
    """Refuse an agent whose episodes might never end."""
    stops = getattr(agent, "stops", False) and task.delta is not None
    if not stops and task.budget is None and task.max_pulls is None:
        raise ValueError(f"{label} may never stop by itself: give a budget or max_pulls")


def check_delta(label: str, agent: object, stop: bool = True) -> None:
    """Refuse an agent for which the delta of the environment is nothing. `stop`: whether it can stop there."""
    if (own := getattr(agent, "_parameters", {}).get("delta")) is not None:
        raise ValueError(f"{label} has the delta {own} of its own: leave it out, so that those of deltas= count")
    if not (stop and getattr(agent, "stops", True)):
        text = f"{label} never stops by itself in this environment, so that deltas= would change nothing: name agents"
        raise ValueError(f"{text} that stop by a delta, or let this one stop by a certificate (stop='certificate')")


def most_pulls(task: Task) -> int:
    """Pulls that an episode of a task can have."""
    return min(task.payable or PULLS_LIMIT - 1, task.max_pulls or PULLS_LIMIT - 1)


def plays(agent: object, slots: int = 1, ranked: bool = False, waits: bool = False) -> bool:
    """Whether an agent plays whole episodes in compiled code, so many abreast.

    It knows no histories, no ranks, and no results that are pending (`waits`).
    """
    able = hasattr(agent, "play") and getattr(agent, "plays", False) is True and not ranked and not waits
    return able and forms_of(agent).observation != "history" and slots <= getattr(agent, "most_played", slots)


def certifier_of(policy: object, task: Task) -> Certifier | None:
    """The certifier of an agent's levels: its own, or the default one of a task with a delta."""
    own = own_certifier(policy)
    return task.level_certifier(own) if own is not None or task.delta is not None else None


def bounds_of(policy: object) -> Mapping[str, object]:
    """By which bounds an agent's answers are certified: its own, if it has some, else the problem's."""
    return policy.own_bounds if isinstance(policy, Agent) else {}


def _share_a_run(agent: object) -> bool:
    """Whether the rows of a run at a large budget contain those of runs at smaller ones.

    The decisions must not depend on the budget, and the agent must pull one at a time: a bulk pull is clipped to what a
    smaller budget leaves, while a checkpoint in the middle of it is scored before it. An agent of a user's own that
    decides in a method of its own may pull in bulk, and so has a run for each budget.
    """
    if not isinstance(agent, Agent) or getattr(agent, "bulk", False) or not agent.anytime or agent.task.cost:
        return False
    return all(getattr(type(agent), how).__module__.startswith("agents.") for how in ("choose", "predict"))


def _batch_size(envs: PureExplorationVectorEnv, episodes: int, batch: int | None) -> int:
    """Slots: all episodes, or as many as fit into MEMORY; `batch` overrides."""
    if batch is not None:
        return min(integer("batch", batch, 1, 2**24), episodes)
    setting, K, D = envs.setting, envs.task.K, envs.task.D
    per_slot = 40 + K * (8 * 8 + 24 * D)
    if envs.task.observation == "history":  # and its spaces, which are twice as large
        per_slot += envs.task.entries * (2 + D) * 24
    if setting.fixed is None or setting.shuffle_arms:  # each slot has arms of its own
        per_slot += setting.source.arms.parameters.nbytes + 16 * K * D
    limit = MEMORY
    if envs.task.items:  # what pulls show lies far apart: it is to stay near the processor
        per_slot, limit = 16 * K * (envs.task.items * D + K), NEAR
    most = max(1, min(episodes, 4096, limit // per_slot))
    return math.ceil(episodes / math.ceil(episodes / most))  # batches of equal size: no slot idles in the last


def _several(values: object) -> bool:
    """Whether these are a list of values; an array of NumPy without dimensions only looks iterable."""
    listed = isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))
    return listed and getattr(values, "ndim", 1) > 0


def pull_numbers(name: str, values: Iterable[int] | None) -> list[int] | None:
    """`at` or `budgets`: checked, each once, in order."""
    if values is None:
        return None
    if not _several(values) or not (numbers := sorted({integer(name, value, 1, PULLS_LIMIT - 1) for value in values})):
        raise ValueError(f"{name} must be a list of numbers of pulls, one at least, or None, got {values!r:.200}")
    return numbers


def error_probabilities(values: Iterable[float] | None) -> list[float] | None:
    """`deltas`: checked, from the largest to the smallest, as the pulls that they take grow."""
    if values is None:
        return None
    numbers = [number("deltas", value, 0, 1, above=True, below=True) for value in values] if _several(values) else []
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"deltas must be a list of numbers in (0, 1), one at least and each once, got {values!r:.200}")
    return sorted(numbers, reverse=True)


def keywords(env_kwargs: object) -> dict[str, Any]:
    """Keyword arguments of the environment: checked, a dict of one's own."""
    if env_kwargs is None:
        return {}
    if not isinstance(env_kwargs, Mapping) or not all(isinstance(name, str) for name in env_kwargs):
        raise ValueError(f"env_kwargs must be a dict of keyword arguments, or None, got {env_kwargs!r:.200}")
    for name in ("id", "vector_kwargs", "wrappers"):
        if name in env_kwargs:
            raise ValueError(f"evaluate chooses {name!r} itself; take it out of env_kwargs")
    for name in OF_MODELS & set(env_kwargs):  # they may reach no environment
        observation_form(env_kwargs[name]) if name == "observation" else flag(name, env_kwargs[name])
    return {name: value for name, value in env_kwargs.items() if name not in LEFT_OUT}


def lower_bound_of(envs: PureExplorationVectorEnv) -> float:
    """Pulls that the task takes on average, where the problem knows it for arms of this distribution; else NaN.

    A bound for arms of standard deviation 1 grows with the variance of Gaussian arms that all have the same one. With a
    budget, by which runs may end too, nothing is to be compared with it.
    """
    if envs.instance is None or envs.task.delta is None or envs.task.budget is not None:
        return math.nan
    arms, factor, problem = envs.instance.arms, 1.0, envs.problem
    if "distribution" in inspect.signature(problem.lower_bound).parameters:
        return _bound_for_distribution(problem, arms, envs.task.delta)
    if problem.unit_gaussian_bound:
        if not isinstance(arms, Gaussian) or arms.variances.min() < arms.variances.max():
            return math.nan
        factor = float(arms.variances.max())
    return factor * float(envs.problem.lower_bound(arms.means, envs.task.delta))


def _bound_for_distribution(problem: Problem, arms: Arms, delta: float) -> float:
    """The bound for Bernoulli arms, and Gaussian ones of one variance; NaN for others, and where there is none."""
    if isinstance(arms, Bernoulli):
        distribution, sigma = "bernoulli", 0.5
    elif isinstance(arms, Gaussian) and 0 < arms.variances.min() == arms.variances.max():
        distribution, sigma = "gaussian", float(arms.variances.max()) ** 0.5
    else:
        return math.nan
    if not problem.quick_bound(len(arms.means)):  # the game takes long: the paper's, which is smaller
        return sigma**2 * problem.paper_lower_bound(arms.means, delta) if distribution == "gaussian" else math.nan
    asked = _Asked(repr((problem, arms.means.tolist())), problem, arms.means)
    return _bound_of(asked, delta, distribution, sigma)


@dataclass(frozen=True)
class _Asked:
    """An instance of a problem; equal where their texts, which describe them in full, are."""

    text: str
    problem: Problem = field(compare=False)
    means: NDArray[np.float64] = field(compare=False)


@functools.lru_cache(maxsize=256)
def _bound_of(asked: _Asked, delta: float, distribution: str, sigma: float) -> float:
    """The bound of an instance, worked out once for all agents that meet it; NaN if there is none."""
    try:
        found = float(asked.problem.lower_bound(asked.means, delta, distribution=distribution, sigma=sigma))
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):  # arms of several dimensions that are not Gaussian
        return math.nan
    return found if math.isfinite(found) else math.nan
