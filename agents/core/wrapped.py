"""Wrappers around an environment that change what is seen or done: applied to a model's observations, or refused."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector.utils import concatenate, create_empty_array
from gymnasium.wrappers import AddRenderObservation, NormalizeObservation

from bandit_envs import PureExplorationEnv, PureExplorationVectorEnv

# Wrappers of Gymnasium and Stable-Baselines3 with a `step` of their own that leave observations and actions alone.
LEFT_ALONE = (
    *("Autoreset", "HumanRendering", "Monitor", "NormalizeReward", "OrderEnforcing", "PassiveEnvChecker"),
    *("RecordEpisodeStatistics", "RecordVideo", "RenderCollection", "TimeLimit"),
    *("VecCheckNan", "VecMonitor", "VecVideoRecorder"),
)
BASES = (gym.Wrapper, gym.ObservationWrapper, gym.ActionWrapper, gym.RewardWrapper, gym.Env)


def _changed(layer: Any) -> set[str]:
    """The methods by which a wrapper may change what is seen or done."""
    kind = type(layer)
    if kind.__module__.startswith(("gymnasium.", "stable_baselines3.")) and kind.__name__ in LEFT_ALONE:
        return set()
    if not isinstance(layer, gym.Wrapper):  # of vectors: only `VecNormalize` says whether it does
        return {"step"} if getattr(layer, "norm_obs", True) else set()
    own = {name for one in kind.__mro__ if one not in BASES for name in vars(one)}
    return own & {"reset", "step", "observation", "action"}


def wrappers_of(env: Any) -> list[Any]:
    """The wrappers of an environment that change what is seen or done, outermost first; names from other processes."""
    found: list[Any] = []
    while not isinstance(env, (PureExplorationEnv, PureExplorationVectorEnv)):
        own = getattr(env, "__dict__", {})
        inner = own.get("venv", own.get("env"))
        if inner is not None:
            found += [env] if _changed(env) else []
        elif (inner := own.get("envs")) is None:
            try:
                text = str(env.env_method("__str__", indices=[0])[0]) if hasattr(env, "env_method") else ""
            except AttributeError:  # a vector of one's own, or the native one
                text = ""
            except (OSError, EOFError):  # it is closed
                return [*found, type(env).__name__]
            return found + [one for one in re.findall(r"<(\w+)(?=<\w+<)", text) if one not in LEFT_ALONE]
        if isinstance(inner, (list, tuple)):
            below = [wrappers_of(one) for one in inner]
            if len(kinds := {tuple(map(type, one)) for one in below}) > 1:
                raise ValueError(f"the environments of a vector have different wrappers: {kinds}")
            return found + below[0]
        env = inner
    return found


def _normalises(layer: Any) -> bool:
    """Whether it is the `VecNormalize` of Stable-Baselines3."""
    return any(one.__module__ == "stable_baselines3.common.vec_env.vec_normalize" for one in type(layer).__mro__)


def _varies(layer: Any) -> bool:
    """Whether a wrapper gives one observation two values, one after the other."""
    if not callable(getattr(layer, "observation", None)):
        return False
    row = layer.env.observation_space.sample()
    once, twice = (layer.observation(copy.deepcopy(row)) for _ in range(2))
    return not data_equivalence(once, twice, exact=True)


def behind(agent: Any) -> Any:
    """A model that sees what it saw in training, through the wrappers of its environment, whose statistics are frozen.

    A ValueError names a wrapper that is no function of one observation.
    """
    model = getattr(agent, "model", agent)  # of Stable-Baselines3
    layers = wrappers_of(model.get_env())[::-1] if callable(getattr(model, "get_env", None)) else []
    for layer in layers:
        stateful = isinstance(layer, (str, AddRenderObservation, NormalizeObservation)) or _varies(layer)
        if not _normalises(layer) and (stateful or _changed(layer) != {"observation"}):
            raise ValueError(
                f"the model was trained behind {layer if isinstance(layer, str) else type(layer).__name__}, which "
                "cannot be applied to single observations; VecNormalize and a plain ObservationWrapper can. "
                "What works: train it without, as the statistics tell all that was seen (or observation='history'), or "
                "behind VecNormalize; or play it yourself: model.predict in a loop over the wrapped environment"
            )
    normalised = getattr(model, "_last_original_obs", None) is not None and not hasattr(model, "replay_buffer_class")
    if normalised and not any(map(_normalises, layers)):  # learners with a replay buffer always have the attribute
        said = "the model was trained behind VecNormalize, and is played without; if that normalised what it saw, give "
        said += "model.set_env(env), or PPO.load(file, env=env), an env of VecNormalize.load(statistics, env)"
        warnings.warn(said, UserWarning, stacklevel=2)
    return Behind(agent, layers) if layers else agent


class Behind:
    """A model and the wrappers through which it sees, innermost first. All else is as the model has it."""

    def __init__(self, agent: Any, layers: list[Any]) -> None:
        self.agent, self.layers = agent, layers

    def __getattr__(self, name: str) -> Any:
        if name in ("agent", "layers") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.agent, name)

    def predict(self, observation: Any, *others: Any, **more: Any) -> tuple[Any, Any]:
        """The next actions, and the state, for observations of the environment itself."""
        found: tuple[Any, Any] = self.agent.predict(self.through(observation), *others, **more)
        return found

    def through(self, seen: Any) -> Any:
        """A batch of observations as the model sees it."""
        for layer in self.layers:
            if _normalises(layer):
                seen = layer.normalize_obs(seen)
                continue
            named, space = isinstance(seen, Mapping), layer.observation_space
            count = len(next(iter(seen.values())) if named else seen)
            rows = ({k: x[e].copy() for k, x in seen.items()} if named else seen[e].copy() for e in range(count))
            out: Any = create_empty_array(space, count)
            seen = concatenate(space, [layer.observation(row) for row in rows], out)
        return seen
