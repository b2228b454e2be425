"""The algorithms that `train` offers, classes of SB3 with hyperparameters of our own, and the `Plan` of a training."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bandit_envs.instances.registry import imported
from bandit_envs.kernels import integer, number, root_number, unknown

from ..core.optional import require
from ..evaluation.environment import environment_id
from .environment import TrainingEnvironment, training_environment
from .policy import Equivariant


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of SB3 or sb3-contrib, as `algorithms.toml` has it."""

    kind: str
    policy: str
    num_envs: int
    defaults: Mapping[str, object]
    believing: Mapping[str, object]

    def classes(self) -> tuple[Any, Any]:
        """Its class, and its policy or SB3's name of it; sb3-contrib is imported now."""
        module, _, name = self.kind.partition(":")
        kind = getattr(require(module, name, "training"), name)
        return kind, imported(self.policy) if ":" in self.policy else self.policy

    def hyperparameters(self) -> list[str]:
        """Names of the hyperparameters that SB3's class takes."""
        own = ("policy", "env", "seed", "device")
        return [name for name in inspect.signature(self.classes()[0]).parameters if name not in own and name[0] != "_"]

    def check(self, name: str, given: Mapping[str, object]) -> None:
        """Refuse hyperparameters that SB3's class does not take, or not with these values; `name`: of the algorithm."""
        known = self.hyperparameters()
        if surplus := sorted(set(given) - set(known)):
            raise unknown(f"hyperparameter of {name}", surplus[0], known)
        for one, value in given.items():
            check = RANGES.get(one)
            # A function is a schedule; a pair counts otherwise, as train_freq=(1, "episode") does.
            if check is None or callable(value) or isinstance(value, tuple) or (one in OPTIONAL and value is None):
                continue
            check(one, value)
        network = given.get("policy_kwargs")
        if network is not None and not isinstance(network, Mapping):
            raise ValueError(f"policy_kwargs must be a dict of arguments of the policy, got {network!r:.200}")
        if self.equivariant and (surplus := sorted(set(network or ()) - set(NETWORK), key=str)):
            raise unknown(f"entry of policy_kwargs for {name}", str(surplus[0]), NETWORK)

    def settings(self, environment: TrainingEnvironment, num_envs: int, given: Mapping[str, Any]) -> dict[str, object]:
        """All hyperparameters that SB3's class is given: defaults, what a user has given, what follows from both."""
        believes = environment.forms["observation"] == "belief"
        chosen = {**self.defaults, **(self.believing if believes else {}), **given}
        if "n_epochs" in self.hyperparameters():
            rollout = num_envs * chosen["n_steps"]
            chosen.setdefault("batch_size", rollout // PARTS if rollout % PARTS == 0 else rollout)
        if self.equivariant:
            chosen["policy_kwargs"] = {"hidden": HIDDEN} | chosen.get("policy_kwargs", {})
        return chosen

    @property
    def equivariant(self) -> bool:
        """Whether its policy is one network for all arms."""
        policy = self.classes()[1]
        return isinstance(policy, type) and issubclass(policy, Equivariant)


# The check of each hyperparameter. SB3 trains on what is outside them, and says nothing.
_COUNT, _SHARE = partial(integer, low=1, high=2**31), partial(number, low=0, high=1)
_WEIGHT, _ABOVE = partial(number, low=0), partial(number, low=0, above=True)
RANGES: dict[str, Callable[[str, object], float]] = {
    **dict.fromkeys(("n_steps", "n_epochs", "batch_size", "buffer_size", "train_freq"), _COUNT),
    **dict.fromkeys(("gamma", "gae_lambda", "tau", "exploration_fraction"), _SHARE),
    **dict.fromkeys(("exploration_initial_eps", "exploration_final_eps"), _SHARE),
    **dict.fromkeys(("ent_coef", "vf_coef"), _WEIGHT),
    **dict.fromkeys(("max_grad_norm", "clip_range", "clip_range_vf", "target_kl", "learning_rate"), _ABOVE),
    "rms_prop_eps": _ABOVE,
    "target_update_interval": _COUNT,
    "learning_starts": partial(integer, low=0, high=2**53),
    "gradient_steps": partial(integer, low=-1, high=2**31),
}
OPTIONAL = ("clip_range_vf", "target_kl")
# Of `policy_kwargs`, of the equivariant policy.
NETWORK = ("hidden", "optimizer_class", "optimizer_kwargs", "ortho_init")
HIDDEN, PARTS = 16, 8  # width of the layers of the equivariant policy, and the number of minibatches of a rollout
_TABLE = tomllib.loads(Path(__file__).with_name("algorithms.toml").read_text(encoding="utf-8"))
ALGORITHMS = {name: Algorithm(**row) for name, row in _TABLE.items()}
STEPS = 1_000_000  # of a training where neither steps nor seconds are given: about a minute on one core


class Plan:
    """The arguments of `train`, all checked before a training begins, and what follows from them.

    `given`: the hyperparameters. `before`: the root that a model which goes on has learned on, else 0.
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
