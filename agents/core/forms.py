"""`Forms`: the forms of actions and observations in which an agent plays; a model plays as it was trained."""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from gymnasium import spaces

from bandit_envs import Task
from bandit_envs.envs import for_learners, shown_by, shows_pending
from bandit_envs.kernels import flag
from bandit_envs.problems import BELIEFS

from .agent import Agent, asked
from .wrapped import Behind

EARLY = 0.5  # of a budget: a model that stops before has not learned to explore
OF_ARMS = ("K", "D", "distribution", "support", "sigma")  # attributes of a task that the keyword `instance` decides


class Forms(NamedTuple):
    """The forms in which an agent plays, as keywords of environments; actions="full" is for an `Agent` alone."""

    actions: str
    observation: str
    stop: bool = True
    ranked: bool = False

    def of(self, task: Task) -> Task:
        """The task in these forms; a `ValueError` where nothing would end its episodes."""
        return task.replace(actions=self.actions, observation=self.observation, can_stop=self.stop)


def forms_of(agent: Any, env_kwargs: Mapping[str, Any] | None = None) -> Forms:
    """The forms in which an agent, or any other object with a method `predict`, plays.

    Those of a model come from its own environment, else from its card, else from its spaces, else from `env_kwargs`. Of
    the spaces, `Discrete(K)` has no action that stops, and the size of a `Box` says what it shows. An attribute
    `observation` overrules them all: it names the form of observations that is read.
    """
    if isinstance(agent, Agent):
        return Forms("full", agent.observation)
    model = getattr(agent, "model", agent)  # of Stable-Baselines3, which an agent that has learned holds
    card, (seen, stop) = (getattr(agent, "card", None) or {}).get("env_kwargs"), _by_spaces(model)
    given: Mapping[str, Any] | None = card
    with contextlib.suppress(Exception):  # of environments that are no longer there, or of others than this package
        setting = asked(model.get_env(), "setting")
        task = setting.task
        given = {"stop": task.can_stop, "ranked": setting.ranked, "observation": task.observation}
    if given is None:
        known = {"stop": stop, "observation": seen}
        given = {**(env_kwargs or {}), **{name: one for name, one in known.items() if one is not None}}
    observation = getattr(agent, "observation", None) or given.get("observation") or seen or "features"
    stop = flag("stop", given.get("stop", stop is not False))
    return Forms("arm", str(observation), stop, flag("ranked", given.get("ranked", False)))


def refuse_other_observations(name: str, agent: object, envs: Any) -> None:
    """Refuse a model of SB3 that reads others than its environment shows, where no wrapper is known that makes them."""
    model = getattr(agent, "model", agent)
    policy = getattr(model, "policy", None)
    both = getattr(model, "observation_space", None), envs.single_observation_space
    read, shown = (sorted(one) if isinstance(one, spaces.Dict) else getattr(one, "shape", None) for one in both)
    if read in (None, shown) or isinstance(agent, Behind) or getattr(policy, "any_arms", policy is None):
        return
    text = f"{name} reads {read}, and its environment shows {shown}: if a wrapper lay between them in its training,"
    raise ValueError(f"{text} give the model an environment with it, by model.set_env(env) or PPO.load(file, env=env)")


def warn_of_ranks(agent: Any, env_kwargs: Mapping[str, Any]) -> None:
    """Warn where it is unknown whether a model of Stable-Baselines3 was trained on ranked arms."""
    known, model = "ranked" in env_kwargs, getattr(agent, "model", agent)
    with contextlib.suppress(Exception):
        known = known or hasattr(asked(model.get_env(), "setting"), "ranked")
    if known or hasattr(getattr(model, "policy", None), "any_arms") or getattr(agent, "card", None):
        return
    if _by_spaces(model)[0] in BELIEFS:
        text = "a model that was loaded without its environment does not know whether its arms were ranked, and is "
        text += "played on arms that are not: say ranked=True or ranked=False in env_kwargs (--ranked, --no-ranked)"
        warnings.warn(text, UserWarning, stacklevel=2)


def warn_of_task(name: str, agent: Any, envs: Any, env_kwargs: Mapping[str, Any]) -> None:
    """Warn where a default that `env_kwargs` leave as it is differs from the rules that a model was trained with."""
    trained = trained_with(agent)
    played, arms = {"instance": None, **rules_of(envs.task)}, OF_ARMS if "instance" in env_kwargs else ()
    apart = [one for one in played if one not in (*env_kwargs, *arms) and trained.get(one, played[one]) != played[one]]
    if apart:
        before, now = (", ".join(f"{one}={rules[one]!r:.80}" for one in apart) for rules in (trained, played))
        said = f"{name} was trained with {before}, and plays with {now}, by default: give them in env_kwargs"
        warnings.warn(said, UserWarning, stacklevel=2)


def warn_of_stops(name: str, agent: Any, task: Task, pulls: float) -> None:
    """Warn where pulls are free, and a model stops early, `pulls` on average, or was trained with the defaults."""
    model, rules = getattr(agent, "model", agent), [rules_of(task), trained_with(agent)]
    free = task.budget is not None and not any(one.get("delta") or one.get("pull_cost") for one in rules)
    if not (free and task.can_stop and hasattr(model, "observation_space")):
        return
    bare = task.observation == "statistics"
    with contextlib.suppress(Exception):  # of a model without its environment
        bare = asked(model.get_env(), "setting").is_bare
    most, how = min(task.budget or 0, task.max_pulls or math.inf), "was trained with an action that stops"
    if (early := pulls < EARLY * most) or bare:
        how = f"stopped after {pulls:,.0f} of {most:,} pulls on average" if early else how
        warnings.warn(f"{name} {how}, though pulls are free: {for_learners(task.make_problem())}", UserWarning, 3)


def trained_with(agent: Any) -> dict[str, Any]:
    """The rules of the task that a model was trained with, as far as they are known, by name."""
    model, card = getattr(agent, "model", agent), getattr(agent, "card", None) or {}
    trained = {**card.get("env_kwargs", {}), **card.get("task", {})}
    with contextlib.suppress(Exception):
        trained = trained or {"budget": int(model.observation_space["remaining"].high[0])}
    with contextlib.suppress(Exception):  # of environments that are no longer there, or of others than this package
        own = model.get_env()
        trained = rules_of(asked(own, "setting").task) | {"instance": asked(own, "spec").kwargs.get("instance")}
    return trained


def rules_of(task: Task) -> dict[str, Any]:
    """The attributes and parameters of a task that a model may depend on, by their names; JSON-able."""
    rules = {one: getattr(task, one) for one in ("budget", "delta", "pull_cost", *OF_ARMS)} | dict(task.parameters)
    rules |= {} if task.cost is None else {"cost": task.cost}
    rules |= {"batch": task.batch, "delay": task.delay} if task.waits else {}
    found: dict[str, Any] = json.loads(json.dumps(rules, default=repr))
    return found


def reads_pending(agent: Any) -> bool:
    """Whether a model was trained on observations that show pending pulls, by its space."""
    seen = getattr(getattr(agent, "model", agent), "observation_space", None)
    return "pending" in seen.spaces if isinstance(seen, spaces.Dict) else shows_pending(seen)


def _by_spaces(model: Any) -> tuple[str | None, bool | None]:
    """The form of observations by the spaces of a model, and whether an action stops; None where that is open."""
    seen, n = getattr(model, "observation_space", None), int(getattr(getattr(model, "action_space", None), "n", 0))
    if isinstance(seen, spaces.Dict):
        arms = math.prod(getattr(seen.spaces.get("pulls"), "shape", None) or (0,))
        return "history" if "times" in seen.spaces else "statistics", {arms: False, arms + 1: True}.get(n)
    size = math.prod(getattr(seen, "shape", None) or (0,))
    return (shown_by(size, n, shows_pending(seen) or None) or (None, None))[:2]
