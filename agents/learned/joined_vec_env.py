"""`JoinedVecEnv`: several vector environments side by side, as one `VecEnv` of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from bandit_envs import Task, fresh_root, root_number

from .vec_env import NativeVecEnv

__all__ = ["JoinedVecEnv"]


class JoinedVecEnv(VecEnv):
    """Several `NativeVecEnv`s as one, so that a policy learns on a mix of budgets and laws.

    The slots are those of the parts, in the order given. Each part has a root seed of its own, made from the one that
    `seed` is given.

    Args:
        parts: at least one, all of the same problem and number of arms.

    Raises:
        ValueError: if there is no part, or if their spaces or problems differ.
    """

    def __init__(self, parts: Sequence[NativeVecEnv]) -> None:
        if not parts:
            raise ValueError("a mix needs at least one environment")
        self.parts = list(parts)
        first = self.parts[0]
        for part in self.parts[1:]:
            if part.action_space != first.action_space or part.observation_space != first.observation_space:
                raise ValueError(f"the environments of a mix need the same K, got {first.task.K} and {part.task.K}")
            if part.task.problem != first.task.problem:
                raise ValueError(f"a mix is of one problem, got {first.task.problem} and {part.task.problem}")
        self._ends = np.cumsum([part.num_envs for part in self.parts])
        super().__init__(int(self._ends[-1]), first.observation_space, first.action_space)

    @property
    def task(self) -> Task:
        """What an agent may know of the first part."""
        return self.parts[0].task

    def _by_part(self, indices: Any) -> list[tuple[NativeVecEnv, list[int]]]:
        """Each part with the numbers, within it, of those of its slots that are asked for."""
        wanted = np.array(list(self._get_indices(indices)), np.intp)
        pairs, start = [], 0
        for part, end in zip(self.parts, self._ends.tolist(), strict=True):
            pairs.append((part, (wanted[(wanted >= start) & (wanted < end)] - start).tolist()))
            start = end
        return pairs

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the root from which the roots of the parts are made; None: a fresh one.

        Returns:
            The root of each slot.
        """
        root = fresh_root() if seed is None else root_number(seed)
        words = np.random.SeedSequence([root, len(self.parts)]).generate_state(len(self.parts), np.uint64)
        return [
            each
            for part, word in zip(self.parts, (words >> np.uint64(1)).tolist(), strict=True)
            for each in part.seed(word)
        ]

    def set_options(self, options: Any = None) -> None:
        """Refuse all options, as `NativeVecEnv` does."""
        for part in self.parts:
            part.set_options(options)

    def reset(self) -> Any:
        """Start the next episode in every slot; returns the observations."""
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return np.concatenate([part.reset() for part in self.parts])

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions (N,) for `step_wait`."""
        for part, own in zip(self.parts, np.split(actions, self._ends[:-1]), strict=True):
            part.step_async(own)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, rewards (N,) float32, dones (N,) and infos after one action in every slot."""
        observations, rewards, dones, infos = zip(*(part.step_wait() for part in self.parts), strict=True)
        return (
            np.concatenate(observations),
            np.concatenate(rewards),
            np.concatenate(dones),
            [info for each in infos for info in each],
        )

    def close(self) -> None:
        """Close the environments."""
        for part in self.parts:
            part.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of the environment of each slot asked for (None: all)."""
        return [value for part, own in self._by_part(indices) for value in part.get_attr(attr_name, own)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse, as `NativeVecEnv` does."""
        self.parts[0].set_attr(attr_name, value, indices)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """`action_masks`, one row (K + 1,) for each slot asked for."""
        return [row for part, own in self._by_part(indices) for row in part.env_method(method_name, indices=own)]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Any = None) -> list[bool]:
        """True for Monitor, as in `NativeVecEnv`."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]
