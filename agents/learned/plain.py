"""Models in SB3's format, read as plain numbers: loading one runs no code of its maker.

SB3's file is an archive. Its `data` is JSON, in which every Python object stands as a pickle and, beside it, as text;
its `.pth` files hold weights. SB3's own loader unpickles all of them. Here only the text, the numbers, and weights
without objects are read; classes are known by their modules.
"""

from __future__ import annotations

import inspect
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

from bandit_envs import FEATURES
from bandit_envs.envs import box_of, shown_by
from bandit_envs.kernels import integer, json_of, unzipped

from ..core.optional import require
from .policy import EquivariantPolicy

FORMAT_NAME = "bandit_envs_format"  # the attribute of a saved model that holds the number of the format
NETWORK_NAME = "bandit_envs_network"  # that which holds its policy_kwargs as JSON, classes by their names
# The classes that it may name: optimizers and activations.
CLASSES = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in [*vars(torch.nn).values(), *vars(torch.optim).values(), RMSpropTFLike]
    if isinstance(kind, type) and issubclass(kind, (torch.nn.Module, torch.optim.Optimizer))
}
# A file is of the first of these classes whose attribute it stores.
MARKS: dict[str, type[BaseAlgorithm]] = {"clip_range": PPO, "exploration_fraction": DQN, "gae_lambda": A2C}
# Of sb3-contrib's classes, which have `clip_range` too, the module of the policy has this word in its name.
CONTRIB = {"maskable": "MaskablePPO", "recurrent": "RecurrentPPO"}
# The policies that are read as plain weights, by the modules of their classes: of this package, and of others.
OURS = ("agents.learned.policy", "agents.learned.maskable")
NAMED = {
    "stable_baselines3.common.policies": "MlpPolicy",
    "stable_baselines3.dqn.policies": "MlpPolicy",
    "sb3_contrib.common.maskable.policies": "MlpPolicy",
    "sb3_contrib.common.recurrent.policies": "MlpLstmPolicy",
}
# Numbers of a model that are no arguments of its class.
COUNTERS = (
    "num_timesteps", "_total_timesteps", "_num_timesteps_at_start", "_n_updates", "_episode_num", "_n_calls",
    "_current_progress_remaining", "exploration_rate",
)  # fmt: skip
# Arguments that do not come from the file: those that are given here, where a run writes its log, and classes of
# rollout buffers, which change how a model learns and not what it decides.
NOT_READ = (
    "policy", "env", "device", "tensorboard_log", "verbose", "_init_setup_model", "rollout_buffer_class",
    "rollout_buffer_kwargs",
)  # fmt: skip
LOST = ("stop", "context", "steep", "decay")  # arguments of networks of earlier versions
SIZES = ("net_arch", "lstm_hidden_size", "n_lstm_layers")  # of SB3's networks, numbers that make them large
MOST_ARMS = 10**6


@dataclass(frozen=True)
class Archive:
    """What can be read of a saved model without unpickling it; in `data`, JSON, pickles are left as text."""

    path: Path
    data: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Archive:
        """Read the JSON of a file."""
        with unzipped(path) as archive:
            data = json_of(archive.read("data"))
        if not isinstance(data, dict):
            raise ValueError(f"its data must be a JSON object, got {data!r:.80}")
        return cls(path, data)

    @property
    def kind(self) -> Any:
        """The class of SB3 or sb3-contrib that has written the file, or None."""
        for word, name in CONTRIB.items():
            if word in self.module and "clip_range" in self.data:
                return getattr(require("sb3_contrib", f"a model of {name}", "training"), name)
        return next((kind for mark, kind in MARKS.items() if mark in self.data), None)

    @property
    def module(self) -> str:
        """The module of the policy's class, "" if it names none."""
        entry = self.data.get("policy_class")
        return str(entry.get("__module__", "")) if isinstance(entry, dict) else ""

    def not_plain(self) -> str:
        """Why the file cannot be read as plain weights; "" if it can."""
        if self.module not in (*OURS, *NAMED):
            return f"its policy is of the module {self.module or 'of nothing'!s:.200}"
        for name in ("policy_kwargs", "replay_buffer_kwargs"):
            known = name == "policy_kwargs" and self.data.get(NETWORK_NAME) is not None
            if not known and ":serialized:" in json.dumps(self.data.get(name)):
                return f"its {name} hold Python objects"
        return ""

    def spaces(self, arms: int | None = None) -> tuple[spaces.Box, spaces.Discrete]:
        """The spaces of observations and actions of a model, read from text; arms: as of `model`."""
        try:
            count = int(self.data["action_space"]["n"])
            shape = tuple(map(int, self.data["observation_space"]["_shape"]))
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"its spaces are no Discrete and Box: {error!r:.200}") from error
        if not 2 <= count <= MOST_ARMS or not all(0 <= size <= MOST_ARMS * len(FEATURES) for size in shape):
            raise ValueError(f"its spaces are of {count} actions and shape {shape}")
        low = str(self.data["observation_space"].get("low"))
        pending = None if "..." in low else len(set(re.findall(r"-?\d+\.", low))) > 1
        known = shown_by(shape[0], count, pending) if len(shape) == 1 else None
        if known is None and arms is not None:
            raise ValueError(f"its observations of shape {shape} are neither beliefs nor features")
        if known is None:
            return spaces.Box(-1.0, 1.0, shape, np.float32), spaces.Discrete(count)
        form, stop, pending = known
        K = count - stop if arms is None else arms
        return box_of(K, form, pending), spaces.Discrete(K + stop)

    def model(self, arms: int | None = None) -> Any:
        """The model with the weights of the file; `arms` are for equivariant policies, None: as there.

        Raises:
            NotPlainError: if weights hold anything but numbers. Others, if the file is damaged.
        """
        kind, (box, actions) = self.kind, self.spaces(arms)
        weights = {name: self._weights(f"{name}.pth") for name in ("policy", "policy.optimizer")}
        check_finite(weights["policy"])
        given = self._arguments(kind, weights["policy"])
        model = kind(self._policy(), None, device="cpu", _init_setup_model=False, **given)
        for name in (*COUNTERS, "n_envs"):
            value = self.data.get(name)
            if type(value) in (int, float):
                setattr(model, name, value)
        if type(model.n_envs) is not int or model.n_envs < 1:
            raise ValueError(f"n_envs must be an integer >= 1, got {model.n_envs!r:.80}")
        model.observation_space, model.action_space = box, actions
        model._last_original_obs = self.data.get("_last_original_obs")  # not None behind `VecNormalize`
        for name in (FORMAT_NAME, NETWORK_NAME):
            if name in self.data:
                setattr(model, name, self.data[name])
        model._setup_model()
        model.set_parameters(weights, exact_match=True, device="cpu")
        return model

    def _policy(self) -> object:
        """The class of the policy, or SB3's name of it."""
        if self.module == "agents.learned.maskable":
            from .maskable import MaskableEquivariantPolicy

            return MaskableEquivariantPolicy
        return EquivariantPolicy if self.module in OURS else NAMED[self.module]

    def _weights(self, name: str) -> object:
        """What a file of weights holds: tensors and numbers, no objects."""
        with unzipped(self.path) as archive:
            content = archive.read(name)
        try:
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception as error:
            raise NotPlainError(f"its {name} holds more than numbers, or is damaged: {error}") from error

    def _arguments(self, kind: Any, weights: Any) -> dict[str, object]:
        """The hyperparameters in the file that are numbers, text, and dicts of such."""
        found: dict[str, object] = {}
        for name in inspect.signature(kind).parameters:
            value = self.data.get(name)
            if name in NOT_READ or value is None:
                continue
            if isinstance(value, dict) and ":serialized:" in value:
                constant = re.fullmatch(r"ConstantSchedule\(val=([-+.0-9e]+)\)", str(value.get("value_schedule")))
                if constant:
                    found[name] = float(constant[1])
            else:
                found[name] = value
        if (network := self.data.get(NETWORK_NAME)) is not None:
            found["policy_kwargs"] = network
        if "policy_kwargs" in found:
            found["policy_kwargs"] = check_network(found["policy_kwargs"], weights)
        return found


def network_json(policy_kwargs: Any) -> dict[str, object] | None:
    """The arguments of a policy as JSON, classes by their names; None if they are anything else."""
    names = {kind: name for name, kind in CLASSES.items()}
    form = {
        name: {"class": names[value]} if isinstance(value, type) and value in names else value
        for name, value in (policy_kwargs or {}).items()
    }
    try:
        return form if json.loads(json.dumps(form)) == form else None
    except (TypeError, ValueError):
        return None


def check_network(asked: object, weights: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a network from a file, checked: it is no larger than its weights, in a damaged file too."""
    if not isinstance(asked, Mapping):
        raise ValueError(f"the arguments of its network must be an object, got {asked!r:.80}")
    found = dict(asked)
    widest = max((int(size) for one in weights.values() for size in np.shape(one)), default=0)
    for name, value in found.items():
        if name == "hidden":
            integer(name, value, 1, widest)
        elif name in LOST:
            raise OtherVersionError(f"its network has the argument {name!r}, which there is no more")
        elif isinstance(value, dict) and value.keys() == {"class"}:
            if value["class"] not in CLASSES:
                raise ValueError(f"its {name} is no optimizer or activation of PyTorch, {value['class']!r:.80}")
            found[name] = CLASSES[value["class"]]
        elif name in SIZES and any(int(size) > widest for size in re.findall(r"\d+", json.dumps(value))):
            raise ValueError(f"its {name} asks for more than its weights have, {value!r:.80}")
    return found


def check_finite(weights: object) -> None:
    """Refuse weights that are no real numbers, or not finite: a policy of such ones decides nothing."""
    if not isinstance(weights, Mapping):
        raise ValueError(f"its weights must be arrays by name, got {type(weights).__name__}")
    for name, one in weights.items():
        found = torch.as_tensor(one)
        if found.is_complex() or not bool(torch.isfinite(found).all()):
            raise ValueError(f"its weights {name!r} must be finite real numbers")


class OtherVersionError(ValueError):
    """A network of an earlier version, which this one has no more."""


class NotPlainError(ValueError):
    """Weights that only SB3's loader might read, which runs code."""
