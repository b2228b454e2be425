"""Many index policies side by side on the same episodes: what the evolution of an index measures them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from bandit_envs import PureExplorationVectorEnv, integer

from ..evaluation.expected_loss import losses
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
            envs: Any = gym.make_vec(
                self.env_id,
                num_envs=count,
                copy=False,
                autoreset_mode=AutoresetMode.DISABLED,
                actions="arm",
                observation="statistics",
                **self.kwargs,
            )
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
        envs = self._environments(len(table) * count)
        player = Evolved(envs.task, table)  # type: ignore[arg-type]
        numbers = np.tile(np.arange(first, first + count), len(table))
        return losses(envs, player, root, numbers).reshape(len(table), count)
