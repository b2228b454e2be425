"""`Plan`: all decisions before a training begins, checked on entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs.kernels import integer, number, root_number, unknown

from ..evaluation.environment import environment_id
from .algorithms import ALGORITHMS, Algorithm
from .environment import TrainingEnvironment, training_environment

STEPS = 1_000_000  # of a training where neither steps nor seconds are given: about a minute on one core


@dataclass(frozen=True)
class Plan:
    """What a training is: data, made from the arguments of `train`, that nothing changes.

    Attributes:
        algorithm: the name of a row of `ALGORITHMS`. env_id, env_kwargs: of the environment, as they were given.
        environment: that to train on. num_envs: episodes side by side. seed: the user's; roots: see `roots_of`.
        steps, seconds: how long to train, by either or both. checkpoints: how many. held_out: episodes to compare them.
        own: the arguments of `train` that stand beside SB3's hyperparameters in the card, by name.
        given: the hyperparameters that were given. settings: all that SB3's class gets.
    """

    algorithm: str
    env_id: str
    env_kwargs: Mapping[str, Any]
    environment: TrainingEnvironment
    num_envs: int
    seed: int
    roots: Mapping[str, int]
    steps: int | None
    seconds: float | None
    checkpoints: int
    held_out: int
    own: Mapping[str, object]
    given: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def row(self) -> Algorithm:
        """The algorithm."""
        return ALGORITHMS[self.algorithm]

    @property
    def call(self) -> str:
        """The call of `train` that leads to the same model, as text."""
        first = {"steps": self.steps, "seconds": self.seconds, "seed": self.seed, "env_kwargs": self.env_kwargs or None}
        arguments = {**first, **self.own, **self.given}
        listed = ", ".join(f"{name}={value!r}" for name, value in arguments.items() if value is not None)
        return f"agents.train({self.algorithm!r}, {self.env_id!r}, {listed})"


def roots_of(seed: int, before: int = 0) -> dict[str, int]:
    """The root seeds of a training: of the episodes to learn on, to choose a checkpoint by, and to judge it by.

    They are words of 63 bits, so that they are none that anybody would type. `before`: of a model that goes on.
    """
    entropy = [root_number(seed), before] if before else root_number(seed)
    words = np.random.SeedSequence(entropy).generate_state(6, np.uint64)[3:] >> np.uint64(1)
    return dict(zip(("learning", "choosing", "judging"), map(int, words), strict=True))


def make_plan(
    algorithm: str,
    env_id: str,
    *,
    steps: int | None,
    seconds: float | None,
    seed: int,
    num_envs: int | None,
    env_kwargs: Mapping[str, object] | None,
    pulls_per_action: int,
    checkpoints: int,
    held_out: int,
    hyperparameters: Mapping[str, object],
    before: int = 0,
) -> Plan:
    """The plan that the arguments of `train` ask for, after all checks that can be made before a run."""
    if algorithm not in ALGORITHMS:
        raise unknown("algorithm", str(algorithm), [*ALGORITHMS, "evolved, by agents.evolve"])
    env_id = environment_id(env_id)
    if not isinstance(env_kwargs, Mapping | None):
        raise ValueError(f"env_kwargs must be a dict of keywords of the environment, got {env_kwargs!r:.200}")
    row, kwargs = ALGORITHMS[algorithm], dict(env_kwargs or {})
    row.check(algorithm, hyperparameters)
    if steps is None and seconds is None:
        steps = STEPS
    steps = None if steps is None else integer("steps", steps, 1, 2**53)
    seconds = None if seconds is None else number("seconds", seconds, 0, above=True)
    num_envs = row.num_envs if num_envs is None else integer("num_envs", num_envs, 1, 2**31)
    checkpoints, held_out = integer("checkpoints", checkpoints, 1, 10**6), integer("held_out", held_out, 2, 10**9)
    roots = roots_of(seed, before)
    environment = training_environment(env_id, kwargs, pulls_per_action, ranked=not row.equivariant)
    settings = row.settings(environment, num_envs, hyperparameters)
    own = {"num_envs": num_envs, "pulls_per_action": pulls_per_action, "checkpoints": checkpoints, "held_out": held_out}
    return Plan(
        algorithm=algorithm,
        env_id=env_id,
        env_kwargs=kwargs,
        environment=environment,
        num_envs=num_envs,
        seed=seed,
        roots=roots,
        steps=steps,
        seconds=seconds,
        checkpoints=checkpoints,
        held_out=held_out,
        own=own,
        given=dict(hyperparameters),
        settings=settings,
    )
