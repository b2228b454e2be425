"""`Plan`: all decisions before a training begins, checked on entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bandit_envs.kernels import integer, number, root_number, unknown

from ..evaluation.environment import environment_id
from .algorithms import ALGORITHMS
from .environment import training_environment

STEPS = 1_000_000  # of a training where neither steps nor seconds are given: about a minute on one core


class Plan:
    """The arguments of `train`, all checked, and what follows from them.

    `given`: the hyperparameters. `before`: the root that a model which goes on has learned on, else 0. `roots`: see
    `roots_of`. `settings`: all that SB3's class gets.
    """

    def __init__(
        self,
        algorithm: str,
        env_id: str,
        env_kwargs: Mapping[str, Any],
        given: Mapping[str, object],
        *,
        steps: int | None,
        seconds: float | None,
        seed: int,
        num_envs: int | None,
        pulls_per_action: int,
        checkpoints: int,
        held_out: int,
        before: int = 0,
    ) -> None:
        if algorithm not in ALGORITHMS:
            raise unknown("algorithm", str(algorithm), [*ALGORITHMS, "evolved, by agents.evolve"])
        self.algorithm, self.row, self.env_id = algorithm, ALGORITHMS[algorithm], environment_id(env_id)
        if not isinstance(env_kwargs, Mapping):
            raise ValueError(f"env_kwargs must be a dict of keywords of the environment, got {env_kwargs!r:.200}")
        self.row.check(algorithm, given)
        self.env_kwargs, self.given, self.seed, self.pulls_per_action = env_kwargs, given, seed, pulls_per_action
        steps = STEPS if steps is None and seconds is None else steps
        self.steps = None if steps is None else integer("steps", steps, 1, 2**53)
        self.seconds = None if seconds is None else number("seconds", seconds, 0, above=True)
        self.num_envs = self.row.num_envs if num_envs is None else integer("num_envs", num_envs, 1, 2**31)
        self.checkpoints = integer("checkpoints", checkpoints, 1, 10**6)
        self.held_out = integer("held_out", held_out, 2, 10**9)
        self.roots = roots_of(seed, before)
        self.environment = training_environment(self.env_id, env_kwargs, pulls_per_action, not self.row.equivariant)
        self.settings: dict[str, Any] = self.row.settings(self.environment, self.num_envs, given)

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
