"""What an evaluation is going to run: each agent at each budget, with its environment, after all checks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import PULLS_LIMIT, PureExplorationVectorEnv, Quiet, Task, flag, integer

from ..catalogue import Recipe, recipe_of
from ..core.agent import Agent
from ..core.forms import Forms
from ..core.round_policy import PlansPulls
from .blocks import Work
from .drawing import Drawing
from .execution import Watch
from .lockstep import Lockstep
from .lower_bound import lower_bound_of
from .pairing import bounds_of, certifier_of, check_end, make_agent, make_envs, most_pulls, plays
from .rows import Run

__all__ = ["Plan", "keywords", "labelled", "plans_of", "pull_numbers"]

MEMORY = 2**28  # bytes that the arrays of one batch may take, roughly


@dataclass(frozen=True)
class Plan:
    """A run that nothing speaks against: an agent, its environment at one budget, and when to score."""

    label: str
    policy: Any
    forms: Forms
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

    def drawing(self) -> Plan:
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
        return plays(self.policy, self.slots, self.forms.ranked)

    def empty(self, episodes: int) -> Run:
        """Room for the rows of so many episodes."""
        run = Run.empty(self.label, self.task, episodes, self.checks, self.level)
        run.lower_bound, run.stops = self.lower_bound, self.forms.stop and bool(getattr(self.policy, "stops", True))
        run.deterministic = None if isinstance(self.policy, Agent) else not self.draws
        return run.as_budgets() if self.checks_are_budgets else run

    def try_out(self) -> None:
        """A first decision: what the agent cannot read comes out here, and no run pays for the loading of kernels."""
        envs = make_envs(self.env_id, 1, self.forms, self.kwargs)
        try:
            observation, _ = envs.reset(seed=0)
            if self.compiled:
                quiet = Quiet(np.zeros(1, np.int64), 0)
                envs.step(self.policy.play(envs.simulation, quiet, observation, None)[0])
            else:
                envs.step(self.policy.predict(observation, None, np.ones(1, np.bool_), deterministic=True)[0])
            envs.assess(np.zeros(1, np.int64))
            envs.certify(np.zeros(1, np.int64), **bounds_of(self.policy))
        finally:
            envs.close()

    def play(self, first: int, episodes: int, seed: int, size: int, watch: Watch) -> list[Run]:
        """So many episodes from number `first` on, in blocks of this size; given up once `watch` is told to."""
        slots = min(self.slots, episodes)
        slots = math.ceil(episodes / math.ceil(episodes / slots))  # no slot idles in the last batch
        envs = make_envs(self.env_id, slots, self.forms, self.kwargs)
        try:
            lockstep = Lockstep(self.policy, envs, first, episodes, seed, self.empty(episodes), size, watch)
            return lockstep.run()
        finally:
            envs.close()


def plans_of(
    agents: Mapping[str, Recipe],
    env_id: str,
    kwargs: dict[str, Any],
    episodes: int,
    checks: list[int] | None,
    horizons: list[int] | None,
    batch: int | None,
    deterministic: bool,
) -> list[Plan]:
    """The runs of all agents, by label: one each, or where there are several budgets, `horizons`, one for each."""
    plans: list[Plan] = []
    for label, recipe in agents.items():
        if horizons is None:
            plans.append(_plan(label, recipe, env_id, kwargs, episodes, checks, batch))
            continue
        *first, most = horizons
        last = _plan(label, recipe, env_id, kwargs | {"budget": most}, episodes, None, batch)
        if first and _share_a_run(last.policy):
            plans.append(dataclasses.replace(last, checks=horizons, checks_are_budgets=True))
        else:
            smaller = [_plan(label, recipe, env_id, kwargs | {"budget": b}, episodes, None, batch) for b in first]
            plans += [*smaller, last]
    for plan in plans:  # after all have been made: what is wrong with the last one is told before anything is compiled
        plan.try_out()
    if not deterministic:
        plans = [plan.drawing() for plan in plans]
    level = any(plan.level for plan in plans)  # then all have the column
    return [dataclasses.replace(plan, level=level) for plan in plans]


def _plan(
    label: str,
    recipe: Recipe,
    env_id: str,
    kwargs: dict[str, Any],
    episodes: int,
    checks: list[int] | None,
    batch: int | None,
) -> Plan:
    """The run of one agent at one budget, after all checks that can be made without running it."""
    policy, envs, forms = make_agent(recipe, env_id, kwargs)
    try:
        task = envs.task
        check_end(label, policy, task)
        bound = lower_bound_of(envs)
        slots = _batch_size(envs, episodes, batch)
    finally:
        envs.close()
    level = certifier_of(policy, task) is not None
    return Plan(label, policy, forms, env_id, kwargs, slots, checks, bound, task, level=level)


def _share_a_run(agent: Any) -> bool:
    """Whether the rows of a run at a large budget tell those of runs at smaller ones.

    The decisions must not depend on the budget, and the agent must pull one at a time: a bulk pull is clipped to what a
    smaller budget leaves, while a checkpoint in the middle of it is scored before it. An agent of a user's own that
    decides in a method of its own may pull in bulk, and so has a run for each budget.
    """
    if not isinstance(agent, Agent) or isinstance(agent, PlansPulls) or not agent.anytime:
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
    most = max(1, min(episodes, 4096, MEMORY // per_slot))
    return math.ceil(episodes / math.ceil(episodes / most))  # batches of equal size: no slot idles in the last


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
    for name in {"stop", "ranked"} & set(env_kwargs):  # which are for models, and may reach no environment
        flag(name, env_kwargs[name])
    return dict(env_kwargs)
