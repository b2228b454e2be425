"""Models as plain numbers: reading one runs no code of its maker.

A `.safetensors` file holds the weights of a policy and of its optimizer, and in its head, as JSON, the facts: names of
classes, hyperparameters, spaces. A zip of SB3 holds the same, and beside it pickles, which stay unread here.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from safetensors import safe_open
from safetensors.numpy import save
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

from bandit_envs import FEATURES
from bandit_envs.envs import box_of, shown_by, shows_pending
from bandit_envs.kernels import integer, json_of, unzipped

from ..core.optional import require
from .policy import ArmExtractor

Facts = dict[str, Any]
Weights = dict[str, Any]
HEAD, OPTIMIZER = "bandit_envs", "optimizer."  # of the head, the entry of facts; a prefix of weights
# Optimizers, activations and extractors that `policy_kwargs` may name.
CLASSES = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in [*vars(torch.nn).values(), *vars(torch.optim).values(), RMSpropTFLike, ArmExtractor]
    if isinstance(kind, type) and issubclass(kind, (torch.nn.Module, torch.optim.Optimizer))
}
# The classes of models with their packages, and marks: a zip is of the first whose mark is an attribute that it stores,
# or a word in the name of its policy's module.
KINDS = {
    "MaskablePPO": ("sb3_contrib", "maskable"),
    "RecurrentPPO": ("sb3_contrib", "recurrent"),
    "PPO": ("stable_baselines3", "clip_range"),
    "DQN": ("stable_baselines3", "exploration_fraction"),
    "A2C": ("stable_baselines3", "gae_lambda"),
}
# The policies by their modules: classes of this package, and SB3's names of its own.
POLICIES = {
    "agents.learned.policy": "EquivariantPolicy",
    "agents.learned.maskable": "MaskableEquivariantPolicy",
    "stable_baselines3.common.policies": "MlpPolicy",
    "stable_baselines3.dqn.policies": "MlpPolicy",
    "sb3_contrib.common.maskable.policies": "MlpPolicy",
    "sb3_contrib.common.recurrent.policies": "MlpLstmPolicy",
}
SIZES = ("hidden", "net_arch", "lstm_hidden_size", "n_lstm_layers")  # arguments of networks that make them large
MOST_ARMS = 10**6


class NotPlainError(ValueError):
    """Of a file that only SB3's loader might read, which runs code."""


def facts_of(model: Any) -> Facts | None:
    """What a file says of a model beside its weights; None where it needs classes that only pickles hold."""
    kind, module, seen = type(model), type(model.policy).__module__, model.observation_space
    names = {one: name for name, one in CLASSES.items()}
    given = (model.policy_kwargs or {}).items()
    network = {name: {"class": names.get(one)} if isinstance(one, type) else one for name, one in given}
    known = kind.__module__.startswith(KINDS.get(kind.__name__, "?")[0]) and module in POLICIES
    if not known or not isinstance(seen, spaces.Box) or len(seen.shape) != 1 or {"class": None} in network.values():
        return None
    try:
        json.dumps(network)
    except (TypeError, ValueError):
        return None
    settings = ((name, getattr(getattr(one, "value_schedule", None), "val", one)) for name, one in vars(model).items())
    facts = {"class": kind.__name__, "policy": module, "network": network, "settings": _numbers(settings)}
    return facts | {"actions": int(model.action_space.n), "size": seen.shape[0], "pending": shows_pending(seen)}


def _numbers(settings: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: one for name, one in settings if type(one) in (bool, int, float)}


def written(facts: Facts, model: Any) -> bytes:
    """The file of a model whose facts these are."""
    policy, optimizer = (model.get_parameters()[part] for part in ("policy", "policy.optimizer"))
    state = {f"{OPTIMIZER}{i}.{name}": one for i, row in optimizer["state"].items() for name, one in row.items()}
    numbers = ((name, torch.as_tensor(one)) for name, one in {**policy, **state}.items() if one is not None)
    arrays = {name: np.array(one.detach().cpu().numpy(), order="C") for name, one in numbers}
    return save(arrays, {HEAD: json.dumps(facts)})


def facts_in(path: Path) -> Facts:
    """The facts in a file; in the JSON of a zip, each Python object is text, and a pickle beside it."""
    if path.suffix != ".zip":
        with safe_open(path, "np") as file:
            return dict(json_of((file.metadata() or {}).get(HEAD, "{}").encode()))
    with unzipped(path) as archive:
        data = json_of(archive.read("data"))
    entry = data.get("policy_class")
    module = str(entry.get("__module__", "")) if isinstance(entry, dict) else ""
    kind = next((name for name, (_, mark) in KINDS.items() if mark in module or mark in data), None)
    settings = dict(data)
    for name, one in data.items():
        text = str(one.get("value_schedule")) if isinstance(one, dict) else ""
        if constant := re.fullmatch(r"ConstantSchedule\(val=([-+.0-9e]+)\)", text):
            settings[name] = float(constant[1])
    network = data.get("policy_kwargs") if data.get("bandit_envs_network") is None else data["bandit_envs_network"]
    facts = {"class": kind, "policy": module, "network": network, "settings": _numbers(settings.items())}
    facts |= {"format": data.get("bandit_envs_format"), "normalised": data.get("_last_original_obs") is not None}
    with contextlib.suppress(TypeError, KeyError, ValueError):  # of spaces that are no Box and Discrete
        [facts["size"]] = map(int, data["observation_space"]["_shape"])
        facts["actions"] = int(data["action_space"]["n"])
        if "..." not in (low := data["observation_space"]["low"]):
            facts["pending"] = len(set(re.findall(r"-?\d+\.", low))) > 1
    return facts


def only_in_pickles(facts: Facts) -> str:
    """Why a zip with these facts cannot be read as plain numbers; "" if it can."""
    if facts["policy"] not in POLICIES:
        return f"its policy is of the module {facts['policy'] or 'of nothing'!s:.200}"
    return "its policy_kwargs hold Python objects" if ":serialized:" in json.dumps(facts["network"]) else ""


def weights_in(path: Path) -> tuple[Weights, dict[int, Weights]]:
    """The weights in a file: of the policy by name, and the state of the optimizer."""
    if path.suffix == ".zip":
        with unzipped(path) as archive:
            files = [io.BytesIO(archive.read(f"{name}.pth")) for name in ("policy", "policy.optimizer")]
        try:
            policy, optimizer = (torch.load(file, map_location="cpu", weights_only=True) for file in files)
        except Exception as error:
            raise NotPlainError(f"its weights are more than numbers, or damaged: {error}") from error
        return policy, optimizer["state"]
    found: dict[int | None, Weights] = {None: {}}
    with safe_open(path, "np") as file:
        for name in file.keys():  # noqa: SIM118 (it is no dict)
            i, _, key = name.removeprefix(OPTIMIZER).partition(".") if name.startswith(OPTIMIZER) else ("", "", name)
            found.setdefault(int(i) if i else None, {})[key] = torch.from_numpy(file.get_tensor(name))
    return found.pop(None), found  # type: ignore[return-value]


def kind_of(facts: Facts) -> Any:
    """The class of a model."""
    if (name := facts.get("class")) not in KINDS:
        raise ValueError("nothing in it names its class")
    return getattr(require(KINDS[name][0], f"a model of {name}", "training"), name)


def spaces_of(facts: Facts) -> tuple[spaces.Box, spaces.Discrete]:
    """The spaces of observations and actions of a model."""
    count = integer("the number of actions", facts.get("actions"), 2, MOST_ARMS)
    size = integer("the size of observations", facts.get("size"), 0, MOST_ARMS * len(FEATURES))
    form, stop, pending = shown_by(size, count, facts.get("pending")) or (None, False, False)
    box = spaces.Box(-1.0, 1.0, (size,), np.float32) if form is None else box_of(count - stop, form, pending)
    return box, spaces.Discrete(count)


def made(facts: Facts, policy: Weights, optimizer: dict[int, Weights]) -> Any:
    """The model of facts and weights from a file; errors, of any type, say what is wrong with them."""
    network, name, settings = network_of(facts, policy), POLICIES[facts["policy"]], facts["settings"]
    of = name if name.startswith("Mlp") else getattr(importlib.import_module(facts["policy"]), name)
    model = kind_of(facts)(of, None, device="cpu", _init_setup_model=False)
    able = [one for one, old in vars(model).items() if old is None or isinstance(old, (int, float))]
    vars(model).update(_numbers((one, settings.get(one)) for one in able), policy_kwargs=network)
    model.n_envs = integer("n_envs", settings.get("n_envs"), 1)
    model.observation_space, model.action_space = spaces_of(facts)
    model._last_original_obs = facts.get("normalised") or None  # not None behind `VecNormalize`
    model._setup_model()
    state = {"state": optimizer, "param_groups": model.policy.optimizer.state_dict()["param_groups"]}
    model.set_parameters({"policy": policy, "policy.optimizer": state}, exact_match=True, device="cpu")
    return model


def network_of(facts: Facts, weights: Weights) -> dict[str, Any]:
    """The arguments of a network from a file, checked: it is no larger than its weights, in a damaged file too."""
    check_finite(weights)
    if not isinstance(asked := facts["network"] or {}, Mapping):
        raise ValueError(f"the arguments of its network must be an object, got {asked!r:.80}")
    found = dict(asked)
    widest = max((int(size) for one in weights.values() for size in np.shape(one)), default=0)
    for name, value in found.items():
        if isinstance(value, dict) and value.keys() == {"class"}:
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
