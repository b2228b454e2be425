"""The identity of an evaluation: all that its rows depend on, in words and numbers that can be compared."""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

import gymnasium as gym
import numpy as np

import bandit_envs
from bandit_envs import PureExplorationVectorEnv

from ..core.agent import Agent
from ..core.files import as_first_spelled, json_form
from ..core.wrapped import Behind

RESULTS = 3  # raised by every change after which an agent may decide otherwise, or an answer is scored otherwise
LONG = 200  # characters beyond which a parameter is given by its digest


def versions() -> dict[str, object]:
    """What the rows depend on of this package."""
    return {"bandit-envs": bandit_envs.__version__, "results": RESULTS}


def packages(*others: ModuleType) -> dict[str, str]:
    """What an evaluation, or a training with other packages too, is made with: {name: version}."""
    named = {module.__name__.replace("_", "-"): str(module.__version__) for module in (bandit_envs, gym, np, *others)}
    return named | {"python": platform.python_version()}


def identity_of(plans: Sequence[Any], settings: Mapping[str, object]) -> dict[str, object]:
    """All that the rows of an evaluation depend on."""
    own = {name: value for name, value in settings.items() if name != "versions"} | {"env_id": plans[0].env_id}
    agents = {}
    for plan in reversed(plans):
        how = f"{', drawn' * plan.draws}{', ranked' * plan.forms.ranked}"
        agents[plan.label] = f"{described(plan.policy)}{how}"
    order = list(dict.fromkeys(plan.label for plan in plans))  # that of the rows
    return own | {"agents": agents, "order of the agents": order, "arms": plans[0].arms, "version": versions()}


def digest(agent: object) -> int:
    """A number of an agent, 0 .. 2^63 - 1, the same everywhere: of class, parameters, weights, a user's whole file.

    A class that is in no file, as one typed in at a prompt, counts by its methods' bytecode in this version of Python.
    """
    return int(hashed(described(agent, alike=True).encode()), 16) >> 1


def described(agent: object, alike: bool = False) -> str:
    """The class of an agent, its parameters, a model's weights; the source of a user's class. alike: of `digest`."""
    kind, ours = type(agent), comes_with(type(agent))
    if ours and hasattr(kind, "description"):  # it plays in another process
        return str(agent.description(alike))  # type: ignore[attr-defined]
    parts = [kind.__qualname__ if alike and not ours else f"{kind.__module__}:{kind.__qualname__}"]
    if isinstance(agent, Agent):
        given = as_first_spelled(getattr(agent, "_parameters", {}), _alike if alike else None)
        given = {agent.earlier.get(name, name): value for name, value in given.items()}
        parts += [f"{name}={_as_text(value)}" for name, value in sorted(given.items())]
    if not ours:
        parts.append(f"source {hashed(_source(kind, alike).encode())}")
    if isinstance(agent, Behind):
        layers = [(type(layer).__qualname__, getattr(layer, "obs_rms", None)) for layer in agent.layers]
        return f"{described(agent.agent, alike)}, behind {[name for name, _ in layers]} {hashed(pickle.dumps(layers))}"
    weights = _weights(agent)
    if weights:
        parts.append(f"weights {weights}")
    return ", ".join(parts)


def comes_with(kind: type, *libraries: str) -> bool:
    """Whether a class is of this package, or of libraries; what a class says of itself need not be so."""
    found = getattr(sys.modules.get(kind.__module__), kind.__name__, None)
    return found is kind and f"{kind.__module__}.{kind.__name__}".startswith(libraries or "agents.")


def arms_of(envs: PureExplorationVectorEnv) -> str | None:
    """A digest of the true arms, where all episodes have the same ones: files of data may change."""
    if envs.instance is None:
        return None
    arms = envs.instance.arms
    content = b"".join(np.ascontiguousarray(x).tobytes() for x in (arms.means, arms.parameters, arms.data))
    return hashed(f"{arms.distribution} {arms.parameters.shape} ".encode() + content)


def _as_text(value: object) -> str:
    text = json.dumps(value, default=json_form, sort_keys=True)
    return text if len(text) <= LONG else f"digest {hashed(text.encode())}"


def _alike(value: Any) -> Any:
    """The JSON form of a value, the same in every process."""
    value = sorted(map(repr, value)) if isinstance(value, (set, frozenset)) else value
    form = described(value, alike=True) if hasattr(type(value), "predict") else json_form(value)
    return re.sub(r" at 0x\w+", "", form) if isinstance(form, str) else form


def hashed(content: bytes) -> str:
    """16 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:16]


def _source(kind: type, whole: bool) -> str:
    """The source of a class, or of its whole file; typed in at a prompt, it has the code of its methods."""
    try:
        return "".join(inspect.findsource(kind)[0]) if whole else inspect.getsource(kind)
    except (OSError, TypeError):
        methods = {name: _code(one) for name, one in sorted(vars(kind).items()) if hasattr(one, "__code__")}
        return str(methods)


def _code(one: Any) -> str:
    """The bytecode of a function, and of those within; or a constant."""
    code = getattr(one, "__code__", one)
    parts = (code.co_code, code.co_names, [*map(_code, code.co_consts)]) if isinstance(code, CodeType) else _alike(one)
    return str(parts)


def _weights(agent: Any) -> str:
    """A digest of the weights of a model of PyTorch, or of a network of this package."""
    for one in (agent, getattr(agent, "policy", None), getattr(agent, "model", None)):
        network = one if hasattr(one, "state_dict") else getattr(one, "policy", None)
        if hasattr(network, "state_dict"):
            digest = hashlib.sha256()
            for name, tensor in sorted(network.state_dict().items()):  # type: ignore[union-attr]
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes())
            return digest.hexdigest()[:16]
    return ""
