"""`Trained`, a learned agent, and `load`, which reads one from SB3's own format.

A model file holds pickles: loading one runs whatever code its maker put there.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO

from bandit_envs import FEATURES

from ..core.agent import task_of
from ..core.optional import require
from .policy import Equivariant, Indices

__all__ = ["Repeated", "Trained", "load"]

# The first of these that a file stores tells its class.
_SIGNS: dict[str, Any] = {"clip_range": PPO, "exploration_fraction": DQN, "gae_lambda": A2C}
_CONTRIB = {"maskable": "MaskablePPO", "recurrent": "RecurrentPPO"}  # a word in the module of the policy tells these


def _kind(data: dict[str, Any]) -> Any:
    """The class of SB3 or sb3-contrib that has written these data.

    Raises:
        StopIteration: if none has.
    """
    module = str(data.get("policy_class", {}).get("__module__", ""))
    for word, name in _CONTRIB.items():
        if word in module and "clip_range" in data:
            return getattr(require("sb3_contrib", f"a model of {name}", "training"), name)
    return next(kind for sign, kind in _SIGNS.items() if sign in data)


_PASSING = ("_last_obs", "_last_episode_starts", "_last_original_obs", "ep_info_buffer", "ep_success_buffer")


@dataclass(eq=False, repr=False)
class Trained:
    """A learned agent, usable in `evaluate`, in SB3's `evaluate_policy` and in a plain Gymnasium loop.

    Attributes:
        model: the SB3 model. card: how it came about and what it reached; empty for a model stored without one.
    """

    model: Any
    card: dict[str, Any] = field(default_factory=dict)

    observation: ClassVar[str] = "features"  # the form that it reads
    anytime: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The algorithm that trained it."""
        return str(getattr(self.model, "name", type(self.model).__name__.lower()))

    @property
    def stops(self) -> bool:
        """Whether it was trained where stopping is wanted."""
        return bool(getattr(self.model.policy, "stop", True))

    @property
    def by_index(self) -> bool:
        """Whether it is an index policy: the logit of an arm depends on that arm alone, and it never stops."""
        policy = self.model.policy
        return isinstance(policy, Equivariant) and not policy.context and not policy.stop

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """The next action of each episode, as SB3's `predict`.

        Args:
            observation: features (E, K * F), or (K * F,); an equivariant policy takes any K.

        Returns:
            Arms (E,), or (), K to stop; and the state: None, or for a network without context the logits of all arms,
            so that only those whose features change are computed anew.

        Raises:
            ValueError: for an observation of another shape, and for statistics.
        """
        if isinstance(observation, Mapping):
            raise ValueError(f"{self.name} reads observation='features', an array, got a dict of statistics")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the fastest for nets as small as these
        try:
            if deterministic and self.by_index and np.ndim(observation) == 2:
                x = np.ascontiguousarray(observation, np.float32).reshape(len(observation), -1, len(FEATURES))
                indices = Indices(self.model.policy, *x.shape[:2]) if state is None else state
                return indices.choose(x), indices
            action, state = self.model.predict(observation, state, episode_start, deterministic)
        finally:
            torch.set_num_threads(threads)
        return action, state

    def __repr__(self) -> str:
        return f"Trained({self.name}, {self.card.get('env_id', 'without a card')})"

    def save(self, out: str | Path) -> Path:
        """Write the model `<out>.zip` in SB3's format and its card `<out>.json`; returns the path of the model."""
        model, card = _paths(out)
        model.parent.mkdir(parents=True, exist_ok=True)
        self.model.save(model, exclude=_PASSING)
        card.write_text(json.dumps(self.card, indent=1, default=repr) + "\n")
        return model


class Repeated:
    """A learned agent that repeats each of its actions so many times, as it did while it was trained.

    Args:
        agent: the learned agent. times: pulls per action.
    """

    observation, anytime = "features", False

    def __init__(self, agent: Any, times: int) -> None:
        self.agent, self.times, self.stops = agent, times, getattr(agent, "stops", True)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """As `Trained.predict`; the state is the arms (E,) and how often each is still to be pulled (E,)."""
        arms, left = (
            (np.zeros(len(observation), np.int64), np.zeros(len(observation), np.int64)) if state is None else state
        )
        if episode_start is not None:
            left[episode_start] = 0
        if (new := np.flatnonzero(left == 0)).size:
            arms[new], left[new] = self.agent.predict(observation[new], deterministic=deterministic)[0], self.times
        left -= 1
        return arms.copy(), (arms, left)


def _paths(out: str | Path) -> tuple[Path, Path]:
    """Where the model and the card are; `out` may or may not have the suffix of the model."""
    path = Path(out)
    stem = path.name.removesuffix(".zip")
    return path.with_name(f"{stem}.zip"), path.with_name(f"{stem}.json")


def load(path: str | Path, env_or_task: Any = None) -> Trained:
    """A model that `train`, or SB3's own `save`, has written: PPO, A2C or DQN on `observation="features"`.

    The file holds pickles: load it only if you trust its maker, for loading runs its code.

    Args:
        path: of the `.zip` file; the suffix may be left out. The card is read from the `.json` file beside it, if any.
        env_or_task: what the model is to run on; its K may differ from that of the training if the policy is
            equivariant. None: as trained, or, for an equivariant policy, as the observations come.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no such model, or one that does not fit the environment.
    """
    file, card = _paths(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no saved model {file}")
    try:
        with zipfile.ZipFile(file) as archive:
            data = json.loads(archive.read("data"))
        kind = _kind(data)
        model = kind.load(file, device="cpu")
    except (zipfile.BadZipFile, KeyError, ValueError, StopIteration, AssertionError, TypeError) as error:
        known = ", ".join([*(kind.__name__ for kind in _SIGNS.values()), *_CONTRIB.values()])
        raise ValueError(f"{file} holds no model of Stable-Baselines3 ({known}): {error}") from error
    arms, F = int(getattr(model.action_space, "n", 1)) - 1, len(FEATURES)
    if model.observation_space.shape != (arms * F,):
        raise ValueError(
            f"{file} was trained on other observations: shape {model.observation_space.shape} for {arms} arms, where "
            f"observation='features' gives {F} numbers for each"
        )
    if env_or_task is not None and (K := task_of(env_or_task).K) != arms:
        if not isinstance(model.policy, Equivariant):
            raise ValueError(f"{file} holds a policy for {arms} arms, which cannot run on {K}")
        box = spaces.Box(-1.0, 1.0, (K * F,), np.float32)
        changed = {"observation_space": box, "action_space": spaces.Discrete(K + 1)}
        model = kind.load(file, device="cpu", custom_objects=changed)
    return Trained(model, json.loads(card.read_text()) if card.is_file() else {})
