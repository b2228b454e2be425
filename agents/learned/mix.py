"""The environments that a policy is trained on: one, or a mix of several, which may come in one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bandit_envs import Sampler, Task, number

from ..evaluation.expected_loss import expectable
from .joined_vec_env import JoinedVecEnv
from .vec_env import NativeVecEnv, make_vec_env

__all__ = ["Mix", "TrainingEnvironment", "make_mix"]

PULLS_PER_ARM = 100  # an episode that nothing else ends is cut after so many pulls per arm
OWN = ("pulls_per_action", "slots")  # entries of an environment of the mix that are no keyword arguments of it


@dataclass(frozen=True)
class TrainingEnvironment:
    """One environment of a training, as data: what makes it, and what is known of it.

    Attributes:
        env_id, kwargs: what `gym.make_vec` is given, without `actions` and `observation`.
        pulls_per_action: how often each action is repeated while the policy learns.
        slots: share of the episodes side by side that are episodes of this environment, relative to the others' shares.
        task: what an agent may know of it. reward: what the end of an episode pays, "score" or "correct".
        expectable: whether its score can be replaced by the score that is expected given all samples.
        title: its budget and the law of its means in words, for the names of curves.
        capped: whether `kwargs` name a `max_pulls` that the user has not given.
    """

    env_id: str
    kwargs: Mapping[str, Any]
    pulls_per_action: int
    slots: float
    task: Task
    reward: str
    expectable: bool
    title: str
    capped: bool = False

    @property
    def stops(self) -> bool:
        """Whether stopping before the budget is spent is ever wanted."""
        return self.task.delta is not None or self.task.pull_cost > 0


@dataclass(frozen=True)
class Mix:
    """The environments of a training and how their episodes run side by side; nothing in it changes.

    A curriculum has a stage for each environment: the first stage has the first one, the second the first two, and so
    on; the last one, which lasts for the rest of the run, has all. Without a curriculum there is one stage, with all.

    Attributes:
        environments: at least one, all of the same problem and number of arms.
        num_envs: episodes side by side.
        curriculum: the share of the run after which all environments are there; 0: from the beginning.
    """

    environments: tuple[TrainingEnvironment, ...]
    num_envs: int
    curriculum: float

    @property
    def stops(self) -> bool:
        """Whether stopping before the budget is spent is ever wanted."""
        return any(one.stops for one in self.environments)

    def stage_ends(self) -> list[float]:
        """The share of the run at which each stage of the curriculum ends."""
        last = len(self.environments) - 1
        if self.curriculum == 0 or last == 0:
            return [1.0]
        return [self.curriculum * i / last for i in range(1, last + 1)] + [1.0]

    def slots(self, stage: int) -> list[int]:
        """How many episodes of each environment run side by side in a stage."""
        here = self.environments[: stage + 1] if self.curriculum else self.environments
        shares = [one.slots for one in here]
        bounds = [round(self.num_envs * sum(shares[:i]) / sum(shares)) for i in range(len(here) + 1)]
        return [max(bounds[i + 1] - bounds[i], 1) for i in range(len(here))]

    def vec_env(self, slots: Sequence[int], reward_scales: Sequence[float]) -> NativeVecEnv | JoinedVecEnv:
        """The environments of a stage, as one vector environment of SB3.

        Args:
            slots: episodes side by side, of the first environments of the mix.
            reward_scales: factors of the rewards, one for each environment of the mix.
        """
        envs = [
            make_vec_env(
                one.env_id,
                count,
                pulls_per_action=one.pulls_per_action,
                observation="features",
                reward_scale=scale,
                **one.kwargs,
            )
            for one, count, scale in zip(self.environments, slots, reward_scales, strict=False)
        ]
        return envs[0] if len(self.environments) == 1 else JoinedVecEnv(envs)


def make_mix(
    env_id: str,
    env_kwargs: Mapping[str, Any],
    mix: Sequence[Mapping[str, Any]] | None,
    *,
    num_envs: int,
    pulls_per_action: int,
    curriculum: float,
) -> Mix:
    """The mix that the arguments of `train` ask for, after all checks that can be made before a run.

    Raises:
        ValueError: naming the value and what is allowed.
    """
    if mix is not None and (isinstance(mix, (str, Mapping)) or not all(isinstance(one, Mapping) for one in mix)):
        raise ValueError(f"mix must be a list of keyword arguments, got {mix!r:.200}")
    rows: list[Mapping[str, Any]] = [{}] if mix is None else list(mix)
    environments = tuple(
        _environment(
            env_id,
            {**env_kwargs, **{name: row[name] for name in row if name not in OWN}},
            row.get("pulls_per_action", pulls_per_action),
            number("slots", row.get("slots", 1.0), 0, above=True),
        )
        for row in rows
    )
    if not environments:
        raise ValueError("a mix needs at least one environment")
    if num_envs < len(environments):
        raise ValueError(f"num_envs must be at least {len(environments)}, the length of the mix, got {num_envs}")
    made = Mix(environments, num_envs, curriculum)
    ones = [1] * len(environments)
    made.vec_env(ones, ones).close()  # refuses what does not go together
    return made


def _environment(env_id: str, kwargs: dict[str, Any], pulls_per_action: int, slots: float) -> TrainingEnvironment:
    """What is known of an environment, read off a single episode of it.

    Without a budget nothing makes an agent stop that has not learned it yet, nor a reference agent that never does:
    such episodes are cut, at `max_pulls` or else after `PULLS_PER_ARM` pulls per arm.
    """
    if taken := sorted({"actions", "observation"} & set(kwargs)):
        raise ValueError(f"train chooses {taken[0]!r} itself; take it out of env_kwargs")
    one = make_vec_env(env_id, 1, observation="features", pulls_per_action=pulls_per_action, **kwargs)
    envs = one.envs
    one.close()
    if envs.task.budget is None and envs.task.max_pulls is None:
        cap = {"max_pulls": PULLS_PER_ARM * envs.task.stop}
        return replace(_environment(env_id, {**kwargs, **cap}, pulls_per_action, slots), capped=True)
    return TrainingEnvironment(
        env_id,
        kwargs,
        pulls_per_action,
        slots,
        envs.task,
        envs.setting.reward,
        expectable(envs),
        f"budget {envs.task.budget} {_law_of_means(envs.setting.source)}".strip(),
    )


def _law_of_means(source: Any) -> str:
    """The law that the means of random instances are drawn from, in words; "" for a fixed instance."""
    if type(source) is not Sampler:
        return str(source.name) if isinstance(source, Sampler) else ""
    [(law, values)] = source.to_dict()["sampler"]["mean"].items()
    return f"{law} {values}"
