"""The identity of an evaluation: all that its rows depend on, in words and numbers that can be compared."""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
import platform
from collections.abc import Mapping, Sequence
from types import ModuleType
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


def described(agent: object) -> str:
    """The class of an agent, its parameters, and the weights of a model; the source of a class of a user's own."""
    kind = type(agent)
    parts = [f"{kind.__module__}:{kind.__qualname__}"]
    if isinstance(agent, Agent):
        given = as_first_spelled(getattr(agent, "_parameters", {}))
        given = {agent.earlier.get(name, name): value for name, value in given.items()}
        parts += [f"{name}={_as_text(value)}" for name, value in sorted(given.items())]
    if not kind.__module__.startswith("agents."):
        parts.append(f"source {_digest(_source(kind).encode())}")
    if isinstance(agent, Behind):
        layers = [(type(layer).__qualname__, getattr(layer, "obs_rms", None)) for layer in agent.layers]
        return f"{described(agent.agent)}, behind {[name for name, _ in layers]} {_digest(pickle.dumps(layers))}"
    weights = _weights(agent)
    if weights:
        parts.append(f"weights {weights}")
    return ", ".join(parts)


def arms_of(envs: PureExplorationVectorEnv) -> str | None:
    """A digest of the true arms, where all episodes have the same ones: files of data may change."""
    if envs.instance is None:
        return None
    arms = envs.instance.arms
    content = b"".join(np.ascontiguousarray(x).tobytes() for x in (arms.means, arms.parameters, arms.data))
    return _digest(f"{arms.distribution} {arms.parameters.shape} ".encode() + content)


def _as_text(value: object) -> str:
    text = json.dumps(value, default=json_form, sort_keys=True)
    return text if len(text) <= LONG else f"digest {_digest(text.encode())}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):  # typed in at a prompt
        return ""


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
