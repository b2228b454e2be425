"""Baselines for every problem: round robin, and uniformly random arms."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandit_envs import agent_uniforms, integer

from .core.agent import ALL_PROBLEMS, Agent, Ints, Observation

__all__ = ["Random", "Uniform"]


def _spent(agent: Agent, observation: Observation) -> Ints:
    """Pulls of each episode so far, (E,)."""
    if agent.task.budget is not None:
        spent: Ints = agent.task.budget - observation["remaining"][:, 0]
        return spent
    pulls: Ints = observation["pulls"].reshape(len(observation["pulls"]), -1).sum(axis=1)
    return pulls


class Uniform(Agent):
    """Round robin: the arms 0 .. K - 1 in turn, or all their coordinates."""

    name, source, solves, coordinates = "uniform", "the common baseline", ALL_PROBLEMS, True

    def choose(self, observation: Observation, state: Any) -> Ints:
        return _spent(self, observation) % self.task.stop


class Random(Agent):
    """A uniformly random arm at each step.

    Args:
        task: a task or an environment. seed: the agent's own seed, an integer in 0 .. 2^32 - 1.
    """

    name, source, solves, coordinates = "random", "the common baseline", ALL_PROBLEMS, True

    def __init__(self, task: Any, seed: int = 0) -> None:
        super().__init__(task)
        self.seed = integer("seed", seed, 0, 2**32 - 1)

    def choose(self, observation: Observation, state: Any) -> Ints:
        public = np.ascontiguousarray(observation["public_seed"][:, 0], np.int64)
        u = agent_uniforms(public, _spent(self, observation), seed=self.seed)[:, 0]
        return np.minimum((u * self.task.stop).astype(np.int64), self.task.stop - 1)
