"""Baselines for every problem: round robin, and uniformly random arms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from bandit_envs import Simulation
from bandit_envs.kernels import agent_uniform, episode_kernel, integer
from bandit_envs.simulation import Playing, Quiet, player

from .core.agent import ALL_PROBLEMS, INT, Agent, Ints, Observation

__all__ = ["Random", "Uniform"]


def _spent(agent: Agent, observation: Observation) -> Ints:
    """Pulls of each episode so far, (E,)."""
    if agent.task.budget is not None:
        spent: Ints = agent.task.budget - observation["remaining"][:, 0]
        return spent
    pulls: Ints = observation["pulls"].reshape(len(observation["pulls"]), -1).sum(axis=1)
    return pulls


@episode_kernel
def next_in_turn(e: int, spent, stop):
    """The arm, or coordinate, that is next in turn."""
    return spent[e] % stop


@episode_kernel
def next_at_random(e: int, spent, stop, public_seed, seed):
    """A uniformly random arm, or coordinate."""
    u = agent_uniform(public_seed[e, 0], spent[e], seed)
    return min(np.int64(u * stop), stop - 1)


class _Stateless(Agent):
    """An agent whose next arm depends on nothing but the number of pulls and the public seed."""

    solves, coordinates = ALL_PROBLEMS, True

    @abstractmethod
    def fill(self, kernel: Callable[[Any], Any], spent: Ints, observation: Observation, *rest: Any) -> None:
        """Call the kernel of the next arms, or what `kernel` makes of it, with the pulls (E,) so far and `rest`."""

    def choose(self, observation: Observation, state: Any) -> Ints:
        out = np.empty(len(observation["pulls"]), INT)
        self.fill(lambda kernel: kernel.quick, _spent(self, observation), observation, out)
        return out

    @property
    def plays(self) -> bool:
        return True

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> Ints:
        out = np.empty(len(observation["pulls"]), INT)
        self.fill(player, simulation.spent, observation, out, Playing(simulation, quiet))
        return out


class Uniform(_Stateless):
    """Round robin: the arms 0 .. K - 1 in turn, or all their coordinates."""

    name, source = "uniform", "the common baseline"

    def fill(self, kernel: Callable[[Any], Any], spent: Ints, observation: Observation, *rest: Any) -> None:
        kernel(next_in_turn)(spent, self.task.stop, *rest)


class Random(_Stateless):
    """A uniformly random arm at each step."""

    name, source = "random", "the common baseline"

    def __init__(self, task: Any, seed: int = 0) -> None:
        super().__init__(task)
        self.seed = integer("seed", seed, 0, 2**32 - 1)

    def fill(self, kernel: Callable[[Any], Any], spent: Ints, observation: Observation, *rest: Any) -> None:
        public_seed = np.ascontiguousarray(observation["public_seed"], INT)
        kernel(next_at_random)(spent, self.task.stop, public_seed, self.seed, *rest)
