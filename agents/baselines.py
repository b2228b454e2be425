"""Baselines for every problem: round robin, and uniformly random arms."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bandit_envs import Simulation
from bandit_envs.kernels import agent_uniform, episode_kernel, integer
from bandit_envs.simulation import Playing, Quiet, player

from .core.agent import ALL_PROBLEMS, INT, Agent, Ints, Observation


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

    solves, coordinates, prices = ALL_PROBLEMS, True, True
    kernel: ClassVar[Any]  # of the next arms, by the pulls (E,) so far, how many arms there are, and `beside`

    def beside(self, observation: Observation) -> tuple[Any, ...]:
        """What else the kernel takes."""
        return ()

    def choose(self, observation: Observation, state: Any) -> Ints:
        pulls = observation["pulls"] + observation.get("pending", 0)
        out = np.empty(len(pulls), INT)
        spent = pulls.sum(axis=tuple(range(1, pulls.ndim)))
        self.kernel.quick(spent, self.task.stop, *self.beside(observation), out)
        return out

    plays = True

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> Ints:
        out = np.empty(len(observation["pulls"]), INT)
        beside, playing = self.beside(observation), Playing(simulation, quiet)
        player(self.kernel)(simulation.spent, self.task.stop, *beside, out, playing)
        return out


class Uniform(_Stateless):
    """Round robin: the arms 0 .. K - 1 in turn, or all their coordinates."""

    name, source, kernel = "uniform", "the common baseline", next_in_turn


class Random(_Stateless):
    """A uniformly random arm at each step."""

    name, source, kernel = "random", "the common baseline", next_at_random

    def __init__(self, task: Any, seed: int = 0) -> None:
        super().__init__(task)
        self.seed = integer("seed", seed, 0, 2**32 - 1)

    def beside(self, observation: Observation) -> tuple[Any, ...]:
        return np.ascontiguousarray(observation["public_seed"], INT), self.seed
