"""Candidates for an index side by side on the same episodes, and what each of them loses."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs.kernels import integer

from ..core.forms import Forms
from ..evaluation.execution import Call, Watch, cores, outcomes
from ..evaluation.expected_loss import losses
from ..evaluation.plan import make_envs
from .agent import Evolved

Floats = NDArray[np.float64]
FORMS = Forms("arm", "statistics")


class CommonEpisodes:
    """The episodes of one environment of the mix, so many a generation, on which all candidates are compared.

    `elsewhere` is the processor time of other processes, in seconds.
    """

    def __init__(self, env_id: str, kwargs: Mapping[str, Any], episodes: int, jobs: int = 1) -> None:
        self.env_id, self.kwargs, self.jobs, self.elsewhere = env_id, dict(kwargs), jobs, 0.0
        self.episodes = integer("episodes", episodes, 1, 10**7)
        self._envs = make_envs(env_id, 1, FORMS, self.kwargs)
        self.task, self.local = self._envs.task, self._envs.problem.local

    def losses(
        self, parameters: Sequence[Sequence[float]], root: int, first: int, episodes: int | None = None
    ) -> Floats:
        """What each candidate loses in each episode, (P, episodes): 1 - return, all on the same samples.

        The parameters are (P, G). Where the prior over instances allows it, the loss is expected given all samples.
        """
        count = self.episodes if episodes is None else episodes
        table = np.array(parameters, np.float64)
        if self.jobs == 1 or len(table) == 1:
            return self._played(table, root, first, count)
        parts = np.array_split(np.arange(len(table)), min(len(table), cores(self.jobs)))
        calls = [
            Call(functools.partial(_lost, self.env_id, self.kwargs, part, table[part], root, first, count))
            for part in parts
        ]
        lost = np.empty((len(table), count))
        for (part, values, seconds), here in outcomes(calls, self.jobs, Watch()):
            lost[part] = values
            self.elsewhere += 0.0 if here else seconds
        return lost

    def _played(self, table: Floats, root: int, first: int, count: int) -> Floats:
        if self._envs.num_envs != len(table) * count:
            self._envs = make_envs(self.env_id, len(table) * count, FORMS, self.kwargs)
        player = Evolved(self._envs.task, table)  # type: ignore[arg-type]
        numbers = np.tile(np.arange(first, first + count), len(table))
        return losses(self._envs, player, root, numbers).reshape(len(table), count)


def _lost(
    env_id: str,
    kwargs: Mapping[str, object],
    part: NDArray[np.int64],
    table: Floats,
    root: int,
    first: int,
    count: int,
    watch: Watch,
) -> tuple[NDArray[np.int64], Floats, float]:
    """What some candidates lose, played on their own: their numbers, losses and processor time."""
    began = time.process_time()
    lost = CommonEpisodes(env_id, kwargs, count).losses(table.tolist(), root, first)
    return part, lost, time.process_time() - began
