"""`Plan`: all decisions before a training begins, checked on entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bandit_envs.kernels import integer, number, root_number, unknown

from ..evaluation.environment import environment_id
from .algorithms import ALGORITHMS, Algorithm
from .environment import TrainingEnvironment, training_environment

STEPS = 1_000_000  # of a training where neither steps nor seconds are given: about a minute on one core


@dataclass(frozen=True)
class Plan:
    """The arguments of `train`, all checked, and what follows from them.

    `given`: the hyperparameters. `before`: the root that a model which goes on has learned on, else 0. `roots`: see
    `roots_of`. `settings`: all that SB3's class gets.
    """

    algorithm: str
    env_id: str
    env_kwargs: Mapping[str, Any]
    given: Mapping[str, object]
    steps: int | None
    seconds: float | None
    seed: int
    num_envs: int | None
    pulls_per_action: int
    checkpoints: int
    held_out: int
    before: int = 0
    roots: Mapping[str, int] = field(init=False)
    environment: TrainingEnvironment = field(init=False)
    settings: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise unknown("algorithm", str(self.algorithm), [*ALGORITHMS, "evolved, by agents.evolve"])
        row, steps = self.row, STEPS if self.steps is None and self.seconds is None else self.steps
        checked: dict[str, Any] = {"env_id": environment_id(self.env_id)}
        if not isinstance(self.env_kwargs, Mapping):
            raise ValueError(f"env_kwargs must be a dict of keywords of the environment, got {self.env_kwargs!r:.200}")
        row.check(self.algorithm, self.given)
        checked |= {
            "steps": None if steps is None else integer("steps", steps, 1, 2**53),
            "seconds": None if self.seconds is None else number("seconds", self.seconds, 0, above=True),
            "num_envs": row.num_envs if self.num_envs is None else integer("num_envs", self.num_envs, 1, 2**31),
            "checkpoints": integer("checkpoints", self.checkpoints, 1, 10**6),
            "held_out": integer("held_out", self.held_out, 2, 10**9),
            "roots": roots_of(self.seed, self.before),
        }
        checked["environment"] = environment = training_environment(
            checked["env_id"], self.env_kwargs, self.pulls_per_action, ranked=not row.equivariant
        )
        checked["settings"] = row.settings(environment, checked["num_envs"], self.given)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def row(self) -> Algorithm:
        """The algorithm."""
        return ALGORITHMS[self.algorithm]

    @property
    def own(self) -> dict[str, int]:
        """The arguments of `train` that stand beside SB3's hyperparameters in the card, by name."""
        return {name: getattr(self, name) for name in ("num_envs", "pulls_per_action", "checkpoints", "held_out")}

    @property
    def call(self) -> str:
        """The call of `train` that leads to the same model, as text."""
        first = {"steps": self.steps, "seconds": self.seconds, "seed": self.seed, "env_kwargs": self.env_kwargs or None}
        arguments = {**first, **self.own, **self.given}
        listed = ", ".join(f"{name}={value!r}" for name, value in arguments.items() if value is not None)
        return f"agents.train({self.algorithm!r}, {self.env_id!r}, {listed})"


def roots_of(seed: int, before: int = 0) -> dict[str, int]:
    """The root seeds, of 63 bits, of the episodes to learn on, to choose a checkpoint by, and to judge it by."""
    entropy = [root_number(seed), before] if before else root_number(seed)
    words = np.random.SeedSequence(entropy).generate_state(6, np.uint64)[3:] >> np.uint64(1)
    return dict(zip(("learning", "choosing", "judging"), map(int, words), strict=True))
