"""What a training is made of: SB3's algorithms with hyperparameters of our own, its environment, its `TrainingPlan`."""

from __future__ import annotations

import inspect
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from bandit_envs import Task
from bandit_envs.kernels import integer, number, root_number, unknown
from bandit_envs.problems import BELIEFS

from ..core.confidence import refuse_guardrails
from ..core.optional import require
from ..evaluation.environment import environment_id, plain
from ..evaluation.expected_loss import expectable
from .policy import Equivariant, EquivariantPolicy
from .vec_env import NativeVecEnv, make_vec_env

PULLS_PER_ARM = 100  # an episode that nothing else ends is cut after so many pulls per arm
FORMS = ("observation", "reward", "stop", "ranked")  # keywords of an environment that a training may choose itself


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
        parts = (self.kind.partition(":"), self.policy.partition(":"))
        kind, policy = (getattr(require(at, name, "training"), name) if name else at for at, _, name in parts)
        return kind, policy

    def hyperparameters(self) -> list[str]:
        """Names of the hyperparameters that SB3's class takes."""
        own = ("policy", "env", "seed", "device")
        return [name for name in inspect.signature(self.classes()[0]).parameters if name not in own and name[0] != "_"]

    def check(self, name: str, given: Mapping[str, object]) -> None:
        """Refuse hyperparameters that SB3's class does not take, or not with these values; `name`: of the algorithm."""
        known = self.hyperparameters()
        if "device" in given:
            raise ValueError(f"device={given['device']!r:.80} cannot be chosen: training is on the CPU, leave it out")
        if surplus := sorted(set(given) - set(known)):
            raise unknown(f"hyperparameter of {name}", surplus[0], known)
        for one, value in given.items():
            check = RANGES.get(one)
            # A function is a schedule; a pair counts otherwise, as train_freq=(1, "episode") does.
            if check and not (callable(value) or isinstance(value, tuple) or (one in OPTIONAL and value is None)):
                check(one, value)
        network = given.get("policy_kwargs")
        if network is not None and not isinstance(network, Mapping):
            raise ValueError(f"policy_kwargs must be a dict of arguments of the policy, got {network!r:.200}")
        if self.equivariant and (surplus := sorted(set(network or ()) - set(NETWORK), key=str)):
            raise unknown(f"entry of policy_kwargs for {name}", str(surplus[0]), NETWORK)

    def settings(self, environment: TrainingEnvironment, num_envs: int, given: Mapping[str, Any]) -> dict[str, object]:
        """All hyperparameters that SB3's class is given: defaults, what a user has given, what follows from both."""
        believes = environment.forms["observation"] in BELIEFS
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


_TABLE = tomllib.loads(Path(__file__).with_name("algorithms.toml").read_text(encoding="utf-8"))
RANGES: dict[str, Callable[[str, object], float]] = {
    name: partial(integer if row.get("whole") else number, **row["range"])
    for row in _TABLE.pop("checks")
    for name in row["of"]
}
OPTIONAL = ("clip_range_vf", "target_kl")
# Of `policy_kwargs`, of the equivariant policy.
NETWORK = ("hidden", "optimizer_class", "optimizer_kwargs", "ortho_init")
HIDDEN, PARTS = 16, 8  # width of the layers of the equivariant policy, and the number of minibatches of a rollout
ALGORITHMS = {name: Algorithm(**row) for name, row in _TABLE.items()}
STEPS = 1_000_000  # of a training where neither steps nor seconds are given: about a minute on one core
LIMITS = {"num_envs": (1, 2**31), "pulls_per_action": (1, 2**31), "held_out": (2, 10**9), "checkpoints": (1, 10**6)}
OF_ENTRY = ("num_envs", "pulls_per_action", "held_out")  # arguments of `train` that an entry of a mix may have


@dataclass(frozen=True)
class TrainingEnvironment:
    """The environment of a training, as data: what makes it, and what is known of it."""

    env_id: str
    kwargs: Mapping[str, object]  # of `gym.make_vec`, without `actions` and `forms`
    forms: Mapping[str, object]  # the keywords `FORMS` while the policy learns
    task: Task
    reward: str  # what the end of an episode pays, "score" or "correct"
    expectable: bool  # whether the score can be replaced by its expectation given all samples
    capped: bool  # whether `kwargs` name a `max_pulls` that the user has not given
    num_envs: int
    pulls_per_action: int  # how often each action is repeated
    held_out: int  # number of the episodes by which a checkpoint is chosen

    def vec_env(self) -> NativeVecEnv:
        """The episodes side by side, as a vector environment of SB3; gains are times the horizon."""
        scale = self.task.scale if self.forms["reward"] == "gain" else 1.0
        how: dict[str, Any] = {**self.kwargs, **self.forms, "reward_scale": scale}
        return make_vec_env(self.env_id, self.num_envs, pulls_per_action=self.pulls_per_action, **how)


def _forms(task: Task, kwargs: Mapping[str, Any], ranked: bool) -> dict[str, object]:
    """The forms of a training: those that are given, else beliefs, gains and no stop, where these are defined."""
    try:
        believed = task.pull == "arm" and not math.isnan(task.lookahead("observation='relative'").horizon)
    except ValueError:  # a problem whose margins never change
        believed = False
    observation = kwargs.get("observation", "relative" if believed else "features")
    reward = kwargs.get("reward", "gain" if believed and observation in BELIEFS else "score")
    stop = kwargs.get("stop", task.delta is not None or task.pull_cost > 0 or task.budget is None)
    ranked = kwargs.get("ranked", ranked and believed)
    return {"observation": observation, "reward": reward, "stop": stop, "ranked": ranked}


def training_environment(
    env_id: str, given: Mapping[str, Any], own: Mapping[str, int], ranked: bool = False
) -> TrainingEnvironment:
    """What is known of an environment, read off a single episode of it; `own`: the arguments `OF_ENTRY`.

    What nothing else ends is cut after `PULLS_PER_ARM` pulls per arm: neither a beginner nor every rival stops.
    """
    if "actions" in given:
        raise ValueError("train chooses 'actions' itself; take it out of env_kwargs")
    kwargs = {name: value for name, value in given.items() if name not in FORMS}
    pays = "correct" if given.get("reward") == "correct" else "score"
    one: Any = gym.make(env_id, disable_env_checker=True, reward=pays, **kwargs).unwrapped
    refuse_guardrails("train", one.task)
    capped = one.task.budget is None and one.task.max_pulls is None
    if capped:
        kwargs |= {"max_pulls": PULLS_PER_ARM * one.task.stop}
        one = gym.make(env_id, disable_env_checker=True, reward=pays, **kwargs).unwrapped
    forms = _forms(one.task, given, ranked)
    vec = make_vec_env(env_id, 1, **{**kwargs, **forms})
    vec.close()
    return TrainingEnvironment(env_id, kwargs, forms, vec.envs.task, pays, expectable(one), capped, **own)


class TrainingPlan:
    """The arguments of `train`, all checked before a training begins, and what follows from them.

    `mix`: of several environments what each adds to `env_kwargs`, or None. `given`: the hyperparameters. `own`: the
    arguments that stand beside them on the card. `before`: the root that a model which goes on has learned on, else 0.
    """

    def __init__(
        self,
        algorithm: str,
        env_id: str,
        env_kwargs: Mapping[str, Any],
        mix: Sequence[Mapping[str, Any]] | None,
        given: Mapping[str, object],
        own: Mapping[str, Any],
        limits: tuple[int | None, float | None],
        seed: int,
        before: int = 0,
    ) -> None:
        if algorithm not in ALGORITHMS:
            raise unknown("algorithm", str(algorithm), [*ALGORITHMS, "evolved"])
        self.algorithm, self.row, env_id = algorithm, ALGORITHMS[algorithm], environment_id(env_id)
        if not isinstance(env_kwargs, Mapping):
            raise ValueError(f"env_kwargs must be a dict of keywords of the environment, got {env_kwargs!r:.200}")
        self.row.check(algorithm, given)
        self.env_id, env_kwargs = plain(env_id, env_kwargs)
        self.env_kwargs, self.mix, self.given, self.seed = env_kwargs, mix, given, seed
        steps, seconds = (STEPS, None) if limits == (None, None) else limits
        self.steps = None if steps is None else integer("steps", steps, 1, 2**53)
        self.seconds = None if seconds is None else number("seconds", seconds, 0, above=True)
        if mix is not None and self.row.classes()[1] is not EquivariantPolicy:
            raise ValueError(f"mix is of ppo, a2c and evolved, and not of {algorithm}")
        entries = [{}] if mix is None else mix
        if not isinstance(entries, Sequence) or not entries or not all(isinstance(one, Mapping) for one in entries):
            raise ValueError(f"mix must be a list of at least one dict, got {mix!r:.200}")
        shared = max(self.row.num_envs // len(entries), 1)
        self.own = {**own, "num_envs": shared if own["num_envs"] is None else own["num_envs"]}
        for name, (low, high) in LIMITS.items():
            self.own[name] = integer(name, self.own[name], low, high)
        # The root seeds, of 63 bits, of the episodes to learn on, to choose a checkpoint by, and to judge it by.
        entropy = [root_number(seed), before] if before else root_number(seed)
        words = np.random.SeedSequence(entropy).generate_state(6, np.uint64)[3:] >> np.uint64(1)
        self.roots = dict(zip(("learning", "choosing", "judging"), map(int, words), strict=True))
        self.environments = list[TrainingEnvironment]()
        for entry in entries:
            kwargs = {**env_kwargs, **entry}
            numbers = {name: integer(name, kwargs.pop(name, self.own[name]), *LIMITS[name]) for name in OF_ENTRY}
            self.environments.append(training_environment(self.env_id, kwargs, numbers, not self.row.equivariant))
        self.environment = first = self.environments[0]
        for one in self.environments:
            if one.forms != first.forms:
                raise ValueError(f"all entries of mix must have the same forms, got {first.forms} and {one.forms}")
            if one.task.waits != first.task.waits:
                raise ValueError("all entries of mix must have batch or delay, or none: else their observations differ")
        self.settings: dict[str, Any] = self.row.settings(self.environment, self.own["num_envs"], given)

    @property
    def call(self) -> str:
        """The call of `train` that leads to the same model, as text."""
        first = {"steps": self.steps, "seconds": self.seconds, "seed": self.seed, "env_kwargs": self.env_kwargs or None}
        arguments = {**first, "mix": self.mix, **self.own, **self.given}
        listed = ", ".join(f"{name}={value!r}" for name, value in arguments.items() if value is not None)
        return f"agents.train({self.algorithm!r}, {self.env_id!r}, {listed})"
