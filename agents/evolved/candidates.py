"""Candidates for an index side by side on the same episodes, and what each of them loses."""

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

__all__ = ["CommonEpisodes"]

Floats = NDArray[np.float64]


class CommonEpisodes:
    """The episodes of one environment of the mix, on which all candidates are compared.

    Args:
        env_id: a registered environment. kwargs: its keyword arguments, without actions and observation.
        episodes: that each candidate plays in a generation, >= 1.

    Raises:
        ValueError: naming the value and what is allowed.
    """

    def __init__(self, env_id: str, kwargs: Mapping[str, Any], episodes: int) -> None:
        self.env_id, self.kwargs = env_id, dict(kwargs)
        self.episodes = integer("episodes", episodes, 1, 10**7)
        self._envs = self._made(1)
        self.task = self._envs.task

    def _made(self, slots: int) -> PureExplorationVectorEnv:
        envs: Any = gym.make_vec(
            self.env_id,
            num_envs=slots,
            copy=False,
            autoreset_mode=AutoresetMode.DISABLED,
            actions="arm",
            observation="statistics",
            **self.kwargs,
        )
        return envs  # type: ignore[no-any-return]

    def losses(self, genes: Sequence[Sequence[float]], root: int, first: int, episodes: int | None = None) -> Floats:
        """What each candidate loses in each episode, (P, episodes): 1 - return, all on the same samples.

        Where the law of the instances allows it, the loss is expected given all samples.

        Args:
            genes: of P candidates, (P, G).
            root: of the episodes.
            first: the number of the first episode.
            episodes: how many; None: as many as in a generation.
        """
        count = self.episodes if episodes is None else episodes
        table = np.array(genes, np.float64)
        if self._envs.num_envs != len(table) * count:
            self._envs = self._made(len(table) * count)
        player = Evolved(self._envs.task, table)  # type: ignore[arg-type]
        numbers = np.tile(np.arange(first, first + count), len(table))
        return losses(self._envs, player, root, numbers).reshape(len(table), count)
