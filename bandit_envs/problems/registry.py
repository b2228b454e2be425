"""The registry of problems by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..instances.registry import Registry
from ..kernels.checks import integer, ours
from .all_good import AllGood
from .base import Problem
from .control import BetterThanControl
from .feasible import Feasible
from .threshold import Threshold
from .top_k import BestArm, TopK

# Keywords of the single and the vector environment. A parameter of a problem must have another name.
RESERVED = {
    *("problem", "instance", "budget", "delta", "max_pulls", "pull_cost", "cost", "reward", "actions", "observation"),
    *("shuffle_arms", "pull", "stop", "ranked", "salt", "render_mode", "num_envs", "autoreset_mode", "copy"),
    *("max_episode_steps", "vectorization_mode", "vector_kwargs", "wrappers", "disable_env_checker"),
}


def _check(name: str, kind: object) -> None:
    """Raise a ValueError if `kind` is not a complete class of problems."""
    if not isinstance(kind, type) or not issubclass(kind, Problem):
        raise ValueError(f"the problem {name!r} must be a subclass of bandit_envs.Problem, got {kind!r:.200}")
    if missing := sorted(kind.__abstractmethods__):
        raise ValueError(f"the class {kind.__name__} must define {' and '.join(missing)} to be a problem")
    own = getattr(kind, "name", None)
    if not isinstance(own, str) or own != name and ":" not in name:
        raise ValueError(f"{kind.__name__}.name must be the name of the problem, {name!r}, got {own!r:.200}")
    taken = list(inspect.signature(kind).parameters)
    if not isinstance(kind.parameters, Mapping) or set(kind.parameters) != set(taken):
        explain = f"{kind.__name__}.parameters must explain each parameter of the constructor, {taken}"
        raise ValueError(f"{explain}, got {kind.parameters!r:.200}")
    if clash := sorted(RESERVED.intersection(taken)):
        raise ValueError(f"{clash[0]!r} is a keyword of every environment: {kind.__name__} needs another name for it")
    if not isinstance(kind.defaults, Mapping) or not all(isinstance(word, str) for word in kind.defaults):
        raise ValueError(f"{kind.__name__}.defaults must be {{keyword: value}}, got {kind.defaults!r:.200}")
    metrics = kind.metric_types
    if not isinstance(metrics, Mapping) or not all(isinstance(metric, str) for metric in metrics):
        raise ValueError(f"{kind.__name__}.metric_types must be {{metric: NumPy type}}, got {metrics!r:.200}")
    for metric, dtype in metrics.items():
        try:
            known = dtype is not None and np.dtype(dtype).kind in "biuf"
        except TypeError:
            known = False
        if not known:
            where = f"{kind.__name__}.metric_types[{metric!r}]"
            raise ValueError(f"{where} must be a NumPy type of numbers, got {dtype!r:.200}")
    integer(f"{kind.__name__}.version", kind.version, 0, 10**6)
    if kind.version and name in PROBLEMS.installed:
        raise ValueError(f"{kind.__name__}.version must be 0 for a problem of an installed package, got {kind.version}")


def _bare(name: str) -> str:
    """A name in small letters, without hyphens, underscores and version: "topk" for "top-k" and "TopK-v0"."""
    stem = re.sub(r"[-_]?v\d+$", "", name.lower())
    return stem.replace("-", "").replace("_", "")


def _refused(name: str) -> str | None:
    """Why a name cannot be registered: it is a spelling of a name of this package, or of an id. None if it can."""
    if name.lower().endswith(("-learn", "_learn")) or any(_bare(name) == f"{_bare(own)}learn" for own in _OURS):
        return "must not end with '-learn', which ids for learners add"
    same = next((own for own in _OURS if name != own and _bare(name) == _bare(own)), None)
    return None if same is None else f"must differ from {same!r} in more than capitals, hyphens and a version"


_OURS = {kind.name: kind for kind in (Threshold, AllGood, TopK, Feasible, BestArm, BetterThanControl)}


class _BoundName(str):
    """The name of a problem with its class, `kind`. Otherwise a string; a pickle holds the plain string."""

    kind: type[Problem]
    __slots__ = ("kind",)

    def __copy__(self) -> _BoundName:
        return self

    def __deepcopy__(self, memo: object) -> _BoundName:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return str, (str(self),)


def bound_name(name: str) -> str:
    """The name, bound to its present class: `PROBLEMS.find` returns this class, whatever is registered later."""
    kind = PROBLEMS.find(name)
    if ours(kind) or isinstance(name, _BoundName):
        return name
    bound = _BoundName(name)
    bound.kind = kind
    return bound


class _Problems(Registry[type[Problem]]):
    """The problems by name. A name of `bound_name` stays with its class."""

    def find(self, name: str) -> type[Problem]:
        return name.kind if isinstance(name, _BoundName) else super().find(name)


PROBLEMS: Registry[type[Problem]] = _Problems("problem", "bandit_envs.problems", _check, _OURS, refused=_refused)
