"""N episodes side by side: `PureExplorationVectorEnv`, a gymnasium.vector.VectorEnv."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from . import rng
from .env import episode_number, fresh_root
from .episodes import Episodes
from .instances import Instance
from .problems import Problem
from .problems.base import integer
from .setting import resolve
from .simulator import ENDED, PULLED
from .task import Task

__all__ = ["PureExplorationVectorEnv"]


class PureExplorationVectorEnv(VectorEnv[Any, Any, Any]):
    """The native vector form of `PureExplorationEnv`: slot i gives bit for bit what a single environment would.

    Args:
        num_envs: N.
        problem, **settings: as in `PureExplorationEnv`.
        autoreset_mode: NEXT_STEP (the step after an end starts the next episode and ignores the action) or DISABLED
            (actions of finished slots are ignored until `reset(options={"reset_mask": mask})`).
        copy: return copies of the observations; False gives live views, which the next step overwrites.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self, num_envs: int = 1, *, problem: str, autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True, render_mode: str | None = None, max_episode_steps: int | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        if render_mode is not None:
            raise ValueError(f"the vector environment does not render: render_mode must be None, got {render_mode!r}")
        if max_episode_steps is not None:
            raise ValueError(f"use max_pulls to cap an episode, not max_episode_steps={max_episode_steps!r}")
        self.num_envs, self.render_mode = integer("num_envs", num_envs, 1, 2**31), None
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset_mode must be NEXT_STEP or DISABLED, got {autoreset_mode!r}")
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.copy = copy
        self.setting = resolve(problem, **settings)
        self.single_observation_space = self.setting.observation_space()
        self.single_action_space = self.setting.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._core = Episodes(self.setting, num_envs)
        self._sim = self._core.simulator
        self._roots: list[int] | None = None
        self._key, self._episode = np.zeros((2, num_envs), np.uint64), np.full(num_envs, -1, np.int64)
        self._next = self.autoreset_mode == AutoresetMode.NEXT_STEP
        self._waiting = num_envs  # slots that have ended
        self._all = np.ones(num_envs, np.bool_)
        self._all.setflags(write=False)

    @property
    def task(self) -> Task:
        """What an agent may know."""
        return self.setting.task

    @property
    def problem(self) -> Problem:
        """What is asked: scores, margins, hardness."""
        return self.setting.problem

    @property
    def instance(self) -> Instance | None:
        """The true instance where it is the same in every episode (for oracles and reports), else None."""
        return self.setting.fixed

    @property
    def pulls(self) -> NDArray[np.int64]:
        """Pulls of every arm in every slot, (N, K): a live view."""
        return self._sim.pulls

    @property
    def remaining(self) -> NDArray[np.int64]:
        """Budget left in every slot, (N,), -1 without a budget: a live view."""
        return self._sim.remaining[:, 0]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes: without a seed the next one of every slot.

        Args:
            seed: s gives slot i the root s + i; a list gives each slot its root (None: the next episode of its own).
            options: {"reset_mask": bool (N,)} restarts only these slots; {"episode": int array (N,)} names the episode
                of each slot, and then an integer seed is the one root of all slots. The dict is not altered.
        """
        options = options or {}
        mask = options.get("reset_mask")
        if mask is None:
            rows = np.arange(self.num_envs)
        else:
            if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
                raise ValueError(f"options['reset_mask'] must be a bool array of shape ({self.num_envs},), got {mask!r:.200}")
            if not mask.any():
                raise ValueError("options['reset_mask'] must name at least one slot")
            rows = np.flatnonzero(mask)
        asked = options.get("episode")
        numbers: NDArray[np.int64] | None = None
        if asked is not None:
            numbers = np.broadcast_to(self._core.integers("options['episode']", asked, np.shape(asked)), self.num_envs)
            for value in (numbers[rows].min(), numbers[rows].max()):
                episode_number(value)
        self._seed(seed, rows, shared=numbers is not None)
        self._episode[rows] = self._episode[rows] + 1 if numbers is None else numbers[rows]
        self._begin(rows)
        return self._core.observe(self.copy), {}

    def _seed(self, seed: Any, rows: NDArray[np.intp], shared: bool) -> None:
        """Give the slots their roots."""
        if seed is None:
            if self._roots is None:
                self._roots = [fresh_root() for _ in range(self.num_envs)]
                self._key[:] = np.stack([rng.root_key(root) for root in self._roots], axis=1)
            return
        if isinstance(seed, (list, tuple, np.ndarray)):
            seeds = list(seed)
            if len(seeds) != self.num_envs:
                raise ValueError(f"a list of seeds has one per slot ({self.num_envs}), got {len(seeds)}")
        else:
            try:
                first = operator.index(seed)
            except TypeError:
                raise ValueError(f"a seed is an integer >= 0 or a list of them, got {seed!r}") from None
            seeds = [first if shared else first + i for i in range(self.num_envs)]
        if self._roots is None:
            self._roots = [fresh_root() for _ in range(self.num_envs)] if None in seeds or len(rows) < len(seeds) else seeds
            if self._roots is not seeds:
                self._key[:] = np.stack([rng.root_key(root) for root in self._roots], axis=1)
        keys: dict[int, NDArray[np.uint64]] = {}
        for i in rows:
            root = seeds[i]
            if root is not None:
                if root not in keys:
                    keys[root] = rng.root_key(root)
                self._key[:, i], self._roots[i], self._episode[i] = keys[root], root, -1
        if seeds[0] is not None:
            super().reset(seed=int(seeds[0]))

    def _begin(self, rows: NDArray[Any]) -> None:
        """Start the slots `rows` with their keys and episode numbers."""
        sim = self._sim
        self._core.begin(rows, self._key, self._episode.view(np.uint64))
        self._waiting = int(np.count_nonzero(sim.status == ENDED))

    def step(self, actions: Any) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """One action per slot: arms (N,), or for `actions="full"` a dict of `arm` (N,), `times` (N,), `answer` (N, K).

        Raises:
            ValueError: for an action of wrong type, shape or range; no episode is then touched.
            gymnasium.error.ResetNeeded: before the first reset.
        """
        if self._roots is None:
            raise self._core.need_reset()
        sim = self._sim
        arms, times, answers = self._core.split(actions, (self.num_envs,))
        restart = np.flatnonzero(sim.status == ENDED) if self._waiting and self._next else None
        everyone = self._waiting == 0
        count = sim.advance(arms, times)
        info: dict[str, Any] = {}
        if count:
            ended = np.sort(sim.ended[:count])
            end = self._core.finish(ended, answers)
        if everyone and not count:
            info["sample"], info["_sample"] = sim.sample.copy(), self._all
        elif (pulled := sim.did == PULLED).any():
            info["sample"], info["_sample"] = sim.sample.copy(), pulled
        if count:
            over = np.zeros(self.num_envs, np.bool_)
            over[ended] = True
            for name, value in end.items():
                column = np.zeros((self.num_envs, *value.shape[1:]), value.dtype)
                column[ended] = value
                info[name], info[f"_{name}"] = column, over
            self._waiting += count
        if restart is not None:
            self._episode[restart] += 1
            self._begin(restart)
        reward, terminated, truncated = sim.reward.copy(), sim.terminated.copy(), sim.truncated.copy()
        return self._core.observe(self.copy), reward, terminated, truncated, info

    def assess(self, slots: NDArray[np.int64], answers: NDArray[np.bool_] | None = None) -> dict[str, NDArray[Any]]:
        """What answers would score if they were given now, without ending anything.

        Args:
            slots: (n,) of them. answers: masks (n, K); None: the plug-in answers, which the stop action gives.

        Returns:
            `correct`, `score` and the problem's metrics, (n,) each.
        """
        return self._core.assess(slots, answers)[1]

    def action_masks(self) -> NDArray[np.bool_]:
        """Allowed actions of the arm form, (N, K + 1): pulls always, stop only where `delta` or `pull_cost` is set."""
        return self._core.masks()
