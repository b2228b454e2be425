"""What a policy is trained on: one environment, or a mix of several that come in one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bandit_envs import number

from ..evaluation.expected_loss import expectable
from .judging import Court, Judge
from .vec_env import JoinedVecEnv, NativeVecEnv, make_vec_env

__all__ = ["Mixture"]

OWN = ("pulls_per_action", "slots")  # of an environment in a mix, beside keyword arguments of the environment


class Mixture:
    """The environments of a training; the arguments are those of `train`.

    Attributes:
        parts: a small environment for each of the mix, to look at. shaping, expected: as they were decided.

    Raises:
        ValueError: naming the value and what is allowed.
    """

    def __init__(
        self,
        env_id: str,
        kwargs: Mapping[str, Any],
        mix: Sequence[Mapping[str, Any]] | None,
        num_envs: int,
        shaping: bool | None,
        expected: bool | None,
        pulls_per_action: int,
        siblings: int = 1,
    ) -> None:
        if mix is not None and (isinstance(mix, (str, Mapping)) or not all(isinstance(one, Mapping) for one in mix)):
            raise ValueError(f"mix must be a list of keyword arguments, got {mix!r:.200}")
        self.env_id, self.num_envs, self.siblings = env_id, num_envs, siblings
        rows = [{}] if mix is None else list(mix)
        self.kwargs = [{**kwargs, **{name: one[name] for name in one if name not in OWN}} for one in rows]
        for one in self.kwargs:
            if taken := sorted({"actions", "observation"} & set(one)):
                raise ValueError(f"train chooses {taken[0]!r} itself; take it out of env_kwargs")
        self.repeat = [one.get("pulls_per_action", pulls_per_action) for one in rows]
        self.slots = [number("slots", one.get("slots", 1.0), 0, above=True) for one in rows]
        self.parts = [
            make_vec_env(env_id, 1, observation="features", pulls_per_action=times, **one)
            for one, times in zip(self.kwargs, self.repeat, strict=True)
        ]
        JoinedVecEnv(self.parts)  # refuses parts that do not go together
        if num_envs < len(rows):
            raise ValueError(f"num_envs must be at least {len(rows)}, the length of the mix, got {num_envs}")
        able = [part.envs for part in self.parts]
        self.shaping = self.parts[0].envs.problem.scores_arms if shaping is None else bool(shaping)
        defined = all(map(expectable, able)) and self.shaping
        self.expected = defined if expected is None else bool(expected)
        # Without a mix there is nothing to weigh; with shaping the buffer does it.
        self.relative = self.shaping or len(rows) == 1

    @property
    def stops(self) -> bool:
        """Whether stopping is ever wanted."""
        return any(part.task.delta is not None or part.task.pull_cost > 0 for part in self.parts)

    def judge(self, held_out: int, root: int) -> Judge:
        """Compares policies on all environments."""
        courts = [Court(self.env_id, one, part) for one, part in zip(self.kwargs, self.parts, strict=True)]
        return Judge(courts, held_out, root)

    def ends(self, curriculum: float) -> list[float]:
        """The share of the run at which each stage of the curriculum ends."""
        count = len(self.parts)
        return [curriculum * i / (count - 1) for i in range(1, count)] + [1.0] if curriculum and count > 1 else [1.0]

    def envs(self, judge: Judge, curriculum: float, stage: int) -> NativeVecEnv | JoinedVecEnv:
        """The environments of a stage: the first one of the mix, the first two, ..., at last all."""
        count = stage + 1 if curriculum else len(self.parts)
        share = sum(self.slots[:count])
        families, each = self.num_envs // self.siblings, self.siblings
        bounds = [round(families * sum(self.slots[:i]) / share) for i in range(count + 1)]
        envs = [
            make_vec_env(
                self.env_id,
                each * max(bounds[i + 1] - bounds[i], 1),
                shaping=self.shaping,
                siblings=each,
                expected=self.expected,
                pulls_per_action=self.repeat[i],
                observation="features",
                reward_scale=1.0 if self.relative else 1.0 / judge.distance(i),
                **self.kwargs[i],
            )
            for i in range(count)
        ]
        return envs[0] if len(self.parts) == 1 else JoinedVecEnv(envs)
