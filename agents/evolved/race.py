"""Many index policies side by side on the same episodes: what the evolution of an index measures them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from bandit_envs import PureExplorationVectorEnv
from bandit_envs.problems.base import integer

from ..posterior import known, wrong
from .agent import Evolved

__all__ = ["Course"]

Floats = NDArray[np.float64]


class Course:
    """An environment of the training mix, on which candidates race.

    Args:
        env_id: a registered environment. kwargs: its keyword arguments. episodes: of each candidate in a race.
    """

    def __init__(self, env_id: str, kwargs: Mapping[str, Any], episodes: int) -> None:
        self.env_id, self.kwargs = env_id, dict(kwargs)
        self.episodes = integer("episodes", episodes, 1, 10**7)
        self._envs: dict[int, PureExplorationVectorEnv] = {}
        self.task = self._environments(1).task

    def _environments(self, count: int) -> PureExplorationVectorEnv:
        if count not in self._envs:
            envs: Any = gym.make_vec(self.env_id, num_envs=count, copy=False, autoreset_mode=AutoresetMode.DISABLED,
                                     actions="arm", observation="statistics", **self.kwargs)  # fmt: skip
            self._envs = {count: envs}
        return self._envs[count]

    def losses(self, genes: Sequence[Sequence[float]], root: int, first: int, episodes: int | None = None) -> Floats:
        """What each candidate loses in each episode, (P, episodes): 1 - return, all on the same samples.

        Where the law of the instances allows it, expected given all samples.

        Args:
            genes: (P, G). root, first: the root of the episodes, and the number of the first.
        """
        count = self.episodes if episodes is None else episodes
        table = np.array(genes, np.float64)
        slots = len(table) * count
        envs = self._environments(slots)
        observation, _ = envs.reset(
            seed=root, options={"episode": np.tile(np.arange(first, first + count), len(table))}
        )
        player = Evolved(envs.task, table)  # type: ignore[arg-type]
        state, returns, ended = None, np.zeros(slots), np.zeros(slots, np.bool_)
        while not ended.all():
            arms, state = player.predict(observation, state)
            observation, reward, terminated, truncated, _ = envs.step(arms)
            returns += reward
            ended = terminated | truncated
        losses = 1.0 - returns
        source: Any = envs.setting.source
        if known(envs.task, source) and envs.setting.reward == "score":
            cost = envs.task.pull_cost * envs.pulls.sum(1)
            seen = np.nan_to_num(envs.means())
            losses = cost + wrong(source, envs.task.parameters["threshold"], envs.pulls, seen).mean(1)
        return losses.reshape(len(table), count)
