"""`TrainingEnvironment`: the environment that a policy is trained on, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from bandit_envs import Task

from ..evaluation.expected_loss import expectable
from .vec_env import NativeVecEnv, make_vec_env

PULLS_PER_ARM = 100  # an episode that nothing else ends is cut after so many pulls per arm
FORMS = ("observation", "reward", "stop", "ranked")  # keywords of an environment that a training may choose itself


@dataclass(frozen=True)
class TrainingEnvironment:
    """The environment of a training, as data: what makes it, and what is known of it."""

    env_id: str
    kwargs: Mapping[str, object]  # of `gym.make_vec`, without `actions` and `forms`
    forms: Mapping[str, object]  # the keywords `FORMS` while the policy learns
    pulls_per_action: int  # how often each action is repeated then
    task: Task
    reward: str  # what the end of an episode pays, "score" or "correct"
    expectable: bool  # whether the score can be replaced by its expectation given all samples
    capped: bool = False  # whether `kwargs` name a `max_pulls` that the user has not given

    def vec_env(self, num_envs: int) -> NativeVecEnv:
        """So many episodes side by side, as a vector environment of SB3; gains are times the horizon."""
        scale = self.task.scale if self.forms["reward"] == "gain" else 1.0
        how: dict[str, Any] = {"pulls_per_action": self.pulls_per_action, "reward_scale": scale}
        return make_vec_env(self.env_id, num_envs, **self.kwargs, **self.forms, **how)


def _forms(task: Task, kwargs: Mapping[str, Any], ranked: bool) -> dict[str, object]:
    """The forms of a training: those that are given, else beliefs, gains and no stop, where these are defined."""
    try:
        believed = task.pull == "arm" and not math.isnan(task.lookahead("observation='belief'").horizon)
    except ValueError:  # a problem without a look-ahead potential
        believed = False
    observation = kwargs.get("observation", "belief" if believed else "features")
    reward = kwargs.get("reward", "gain" if believed and observation == "belief" else "score")
    stop = kwargs.get("stop", task.delta is not None or task.pull_cost > 0 or task.budget is None)
    ranked = kwargs.get("ranked", ranked and believed)
    return {"observation": observation, "reward": reward, "stop": stop, "ranked": ranked}


def training_environment(
    env_id: str, given: Mapping[str, Any], pulls_per_action: int, ranked: bool = False
) -> TrainingEnvironment:
    """What is known of an environment, read off a single episode of it.

    Without a budget nothing makes an agent stop that has not learned it yet, nor a reference agent that never does:
    such episodes are cut, at `max_pulls` or else after `PULLS_PER_ARM` pulls per arm.
    """
    if "actions" in given:
        raise ValueError("train chooses 'actions' itself; take it out of env_kwargs")
    kwargs = {name: value for name, value in given.items() if name not in FORMS}
    pays = "correct" if given.get("reward") == "correct" else "score"
    one: Any = gym.make(env_id, disable_env_checker=True, reward=pays, **kwargs).unwrapped
    capped = one.task.budget is None and one.task.max_pulls is None
    if capped:
        kwargs |= {"max_pulls": PULLS_PER_ARM * one.task.stop}
        one = gym.make(env_id, disable_env_checker=True, reward=pays, **kwargs).unwrapped
    forms = _forms(one.task, given, ranked)
    vec = make_vec_env(env_id, 1, pulls_per_action=pulls_per_action, **{**kwargs, **forms})
    vec.close()
    return TrainingEnvironment(env_id, kwargs, forms, pulls_per_action, vec.envs.task, pays, expectable(one), capped)
