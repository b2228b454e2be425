"""An agent and the environment that it plays in: the forms that both take part in, and what the agent is able to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from bandit_envs import PULLS_LIMIT, Certifier, PureExplorationVectorEnv, Task

from ..catalogue import Recipe
from ..core.agent import Agent
from ..core.certified import own_certifier
from ..core.forms import Forms, forms_of

__all__ = ["bounds_of", "certifier_of", "check_end", "make_agent", "make_envs", "most_pulls", "plays"]


def make_envs(env_id: str, slots: int, forms: Forms, kwargs: Any) -> PureExplorationVectorEnv:
    """An environment whose slots are restarted one by one; observations are not copied. Gains score nobody."""
    reward = kwargs.get("reward", "score")
    envs: Any = gym.make_vec(
        env_id,
        num_envs=slots,
        copy=False,
        autoreset_mode=AutoresetMode.DISABLED,
        **{**kwargs, **forms._asdict(), "reward": "score" if reward == "gain" else reward},
    )
    return envs  # type: ignore[no-any-return]


def make_agent(recipe: Recipe, env_id: str, kwargs: Any) -> tuple[Any, PureExplorationVectorEnv, Forms]:
    """The agent, a single slot of the environment in the forms that go with it, and these forms.

    What a function makes is known only once it has been made: where the forms were others, it is made again.
    """
    forms = recipe.forms(kwargs)
    for _ in range(2):
        envs = make_envs(env_id, 1, forms, kwargs)
        try:
            agent = recipe.make(envs)
        except BaseException:
            envs.close()
            raise
        if (found := forms_of(agent, kwargs)) == forms:
            return agent, envs, forms
        envs.close()
        forms = found
    raise ValueError(f"{recipe.name} makes agents that take part in other forms than that of the task it is given")


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


def plays(agent: Any, slots: int = 1, ranked: bool = False) -> bool:
    """Whether an agent plays whole episodes in compiled code, which knows no histories and ranks, so many abreast."""
    able = hasattr(agent, "play") and getattr(agent, "plays", False) is True and not ranked
    return able and forms_of(agent).observation != "history" and slots <= getattr(agent, "most_played", slots)


def certifier_of(policy: Any, task: Task) -> Certifier | None:
    """What tells the level of an agent's certificates: its own; or the default one, of a task with a delta."""
    own = own_certifier(policy)
    return task.level_certifier(own) if own is not None or task.delta is not None else None


def bounds_of(policy: Any) -> Mapping[str, Any]:
    """By which bounds an agent's answers are certified: its own, if it has some, else the problem's."""
    return policy.own_bounds if isinstance(policy, Agent) else {}
