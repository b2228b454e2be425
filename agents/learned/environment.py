"""`TrainingEnvironment`: the environment that a policy is trained on, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bandit_envs import Task

from ..evaluation.expected_loss import expectable
from .vec_env import NativeVecEnv, make_vec_env

__all__ = ["PULLS_PER_ARM", "TrainingEnvironment", "training_environment"]

PULLS_PER_ARM = 100  # an episode that nothing else ends is cut after so many pulls per arm


@dataclass(frozen=True)
class TrainingEnvironment:
    """The environment of a training, as data: what makes it, and what is known of it.

    Attributes:
        env_id, kwargs: what `gym.make_vec` is given, without `actions` and `observation`.
        pulls_per_action: how often each action is repeated while the policy learns.
        task: what an agent may know of it. reward: what the end of an episode pays, "score" or "correct".
        expectable: whether its score can be replaced by the score that is expected given all samples.
        capped: whether `kwargs` name a `max_pulls` that the user has not given.
    """

    env_id: str
    kwargs: Mapping[str, Any]
    pulls_per_action: int
    task: Task
    reward: str
    expectable: bool
    capped: bool = False

    @property
    def stops(self) -> bool:
        """Whether stopping before the budget is spent is ever wanted."""
        return self.task.delta is not None or self.task.pull_cost > 0

    def vec_env(self, num_envs: int) -> NativeVecEnv:
        """So many episodes side by side, as a vector environment of SB3."""
        times = self.pulls_per_action
        return make_vec_env(self.env_id, num_envs, pulls_per_action=times, observation="features", **self.kwargs)


def training_environment(env_id: str, kwargs: Mapping[str, Any], pulls_per_action: int) -> TrainingEnvironment:
    """What is known of an environment, read off a single episode of it.

    Without a budget nothing makes an agent stop that has not learned it yet, nor a reference agent that never does:
    such episodes are cut, at `max_pulls` or else after `PULLS_PER_ARM` pulls per arm.

    Raises:
        ValueError: naming the value and what is allowed.
    """
    if taken := sorted({"actions", "observation"} & set(kwargs)):
        raise ValueError(f"train chooses {taken[0]!r} itself; take it out of env_kwargs")
    one = make_vec_env(env_id, 1, observation="features", pulls_per_action=pulls_per_action, **kwargs)
    envs = one.envs
    one.close()
    if envs.task.budget is None and envs.task.max_pulls is None:
        cap = {"max_pulls": PULLS_PER_ARM * envs.task.stop}
        return replace(training_environment(env_id, {**kwargs, **cap}, pulls_per_action), capped=True)
    return TrainingEnvironment(env_id, kwargs, pulls_per_action, envs.task, envs.setting.reward, expectable(envs))
