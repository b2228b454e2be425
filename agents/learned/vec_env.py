"""`NativeVecEnv`: a vector environment of `bandit_envs` as a Stable-Baselines3 `VecEnv`.

One root seed serves all slots: a slot whose episode ends takes the next episode number of the root. So no two slots
play the same episode, and no episode is played twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from bandit_envs import PureExplorationVectorEnv, Task
from bandit_envs.envs import fresh_root
from bandit_envs.kernels import integer, number, root_number

from ..evaluation.environment import environment_id


class NativeVecEnv(VecEnv):
    """`PureExplorationVectorEnv` as SB3 wants it: a slot that has ended shows the start of its next episode.

    `infos[i]` is empty until the episode of slot i ends. Then it holds the results of the environment (`answer`,
    `correct`, `is_success`, `score`, `total_pulls`, the problem's metrics), `terminal_observation`,
    `TimeLimit.truncated`, and `episode` with the return `r` (not scaled), the number of actions `l` and the
    seconds `t` since this object was made, as SB3's Monitor writes it.

    Args:
        envs: a vector environment of N slots, with `actions="arm"` and autoreset DISABLED.
        pulls_per_action: how often each action is repeated, >= 1.
        reward_scale: factor of all rewards, > 0.
    """

    def __init__(self, envs: PureExplorationVectorEnv, *, pulls_per_action: int = 1, reward_scale: float = 1.0) -> None:
        task = envs.task
        if task.actions != "arm":
            raise ValueError(f"SB3 takes actions='arm', not {task.actions!r}")
        if envs.autoreset_mode != AutoresetMode.DISABLED:
            raise ValueError(f"autoreset_mode must be DISABLED, got {envs.autoreset_mode}")
        self.envs = envs
        self.reward_scale = number("reward_scale", reward_scale, 0, above=True)
        self.pulls_per_action = integer("pulls_per_action", pulls_per_action, 1, 2**31)
        self._root: int | None = None  # for the next reset; None: the root stays
        self._following = 0  # the number of the next episode that begins
        N = envs.num_envs
        self._number = np.full(N, -1)  # the episode of each slot
        self._length, self._return = np.zeros(N, np.int64), np.zeros(N)  # of the episodes so far
        self._actions = np.zeros(N, np.int64)
        self._begun = time.perf_counter()
        super().__init__(N, envs.single_observation_space, envs.single_action_space)
        self.seed()

    @property
    def task(self) -> Task:
        """What an agent may know."""
        return self.envs.task

    @property
    def episodes(self) -> NDArray[np.int64]:
        """The number of the episode that each slot plays, (N,)."""
        return self._number.copy()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the root of all slots from the next reset on, with episode 0; None: a fresh one. Returns (N,) roots."""
        self._root = fresh_root() if seed is None else root_number(seed)
        return [self._root] * self.num_envs

    def set_options(self, options: Any = None) -> None:
        """Refuse all options: the numbers of the episodes follow from the root seed."""
        if options and any(options):
            raise ValueError(f"NativeVecEnv takes no reset options, got {options!r}")

    def reset(self) -> Any:
        """Start the next episode of the root in every slot; returns the observations of all slots."""
        if self._root is not None:
            self._following = 0
        observation = self._begin(np.ones(self.num_envs, np.bool_), self._root)
        self._root = None
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return observation

    def _begin(self, mask: NDArray[np.bool_], root: int | None = None) -> object:
        """Start the next episodes in the slots of `mask` (N,); returns all observations."""
        count = int(np.count_nonzero(mask))
        self._number[mask] = self._following + np.arange(count)
        self._following += count
        self._length[mask], self._return[mask] = 0, 0.0
        options: dict[str, object] = {"reset_mask": mask, "episode": self._number}
        observation, _ = self.envs.reset(seed=root, options=options)
        return observation

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions (N,) for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, rewards (N,) float32, dones (N,) and infos after one action in every slot."""
        reward, said = np.zeros(self.num_envs), list[dict[str, Any]]()
        for _ in range(1, self.pulls_per_action):  # slots whose episodes have ended stay as they are
            more, _, _, info = self.envs.advance(self._actions)
            reward += more
            said.append(info)
        observation, more, terminated, truncated, info = self.envs.step(self._actions)
        reward += more
        done = terminated | truncated
        self._length += 1
        self._return += reward
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for end in (one for one in [*said, info] if "answer" in one):
            self._fill(end, observation, truncated, infos)
        reward *= self.reward_scale
        if done.any():
            observation = self._begin(done)
        return observation, reward.astype(np.float32), done, infos

    def _fill(self, end: dict[str, Any], last: Any, truncated: NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """Fill the infos of the slots that ended with what the environment said of them, and their last observation."""
        names = [name for name in end if f"_{name}" in end and name != "sample"]
        clock = round(time.perf_counter() - self._begun, 6)
        for i in np.flatnonzero(end["_answer"]).tolist():
            infos[i] = {name: value.item() if (value := end[name][i]).ndim == 0 else value.copy() for name in names}
            infos[i] |= {
                "terminal_observation": last[i].copy()
                if isinstance(last, np.ndarray)
                else {name: array[i].copy() for name, array in last.items()},
                "TimeLimit.truncated": bool(truncated[i]),
                "episode": {"r": self._return[i].item(), "l": self._length[i].item(), "t": clock},
            }

    def close(self) -> None:
        """Close the environment."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[object]:
        """The attribute of the vector environment, once for each slot asked for (None: all)."""
        return [getattr(self.envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: object, indices: object = None) -> None:
        """Refuse, by an AttributeError: the slots share one environment."""
        raise AttributeError(f"the slots share one environment: {attr_name!r} cannot be set")

    def env_method(
        self, method_name: str, *method_args: object, indices: Any = None, **method_kwargs: object
    ) -> list[object]:
        """`action_masks`, one row (K + 1,) for each slot asked for; AttributeError for any other method."""
        if method_name != "action_masks":
            raise AttributeError(f"the slots share one environment: call {method_name!r} on its attribute `envs`")
        masks = self.envs.action_masks()
        return [masks[i] for i in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[object, object, object, object]], indices: Any = None
    ) -> list[bool]:
        """True for Monitor, whose `episode` info this class writes itself; False for all others."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]


def make_vec_env(
    env_id: str, num_envs: int, *, pulls_per_action: int = 1, reward_scale: float = 1.0, **env_kwargs: Any
) -> NativeVecEnv:
    """A registered environment as an SB3 VecEnv.

    Args:
        env_id: the id of the environment, e.g. "bandit_envs/Threshold-v0", or the name of its problem.
        num_envs: the number of slots, N.
        pulls_per_action, reward_scale: see `NativeVecEnv`.
        **env_kwargs: of the environment; SB3's policies want `observation="features"` in most cases.
    """
    env_id = environment_id(env_id)
    envs: Any = gym.make_vec(env_id, num_envs=num_envs, autoreset_mode=AutoresetMode.DISABLED, **env_kwargs)
    return NativeVecEnv(envs, pulls_per_action=pulls_per_action, reward_scale=reward_scale)
