"""The problems: one file each, and the registry of their names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ..checks import integer
from ..registry import Registry
from .all_good import AllGood
from .base import Problem, SetProblem
from .feasible import Feasible
from .threshold import Threshold
from .top_k import BestArm, TopK

__all__ = ["PROBLEMS", "AllGood", "BestArm", "Feasible", "Problem", "SetProblem", "Threshold", "TopK"]

# Keywords of the environments, single and vector, which no problem can have for a parameter.
RESERVED = {
    *("problem", "instance", "budget", "delta", "max_pulls", "pull_cost", "reward", "actions", "observation"),
    *("shuffle_arms", "pull", "render_mode", "num_envs", "autoreset_mode", "copy", "max_episode_steps"),
    *("vectorization_mode", "vector_kwargs", "wrappers", "disable_env_checker"),
}


def _check(name: str, kind: Any) -> None:
    """Refuse what is no problem.

    Raises:
        ValueError: naming what is wrong.
    """
    if not isinstance(kind, type) or not issubclass(kind, Problem):
        raise ValueError(f"the problem {name!r} must be a subclass of bandit_envs.Problem, got {kind!r:.200}")
    if missing := sorted(kind.__abstractmethods__):
        raise ValueError(f"the class {kind.__name__} must define {' and '.join(missing)} to be a problem")
    own = getattr(kind, "name", None)
    if not isinstance(own, str) or own != name and ":" not in name:
        raise ValueError(f"{kind.__name__}.name must be the name of the problem, {name!r}, got {own!r:.200}")
    taken = list(inspect.signature(kind).parameters)
    if not isinstance(kind.parameters, Mapping) or set(kind.parameters) != set(taken):
        raise ValueError(
            f"{kind.__name__}.parameters must explain each parameter of the constructor, {taken}, "
            f"got {kind.parameters!r:.200}"
        )
    if clash := sorted(RESERVED.intersection(taken)):
        raise ValueError(
            f"{clash[0]!r} is a keyword of every environment: the parameter of {kind.__name__} needs another name"
        )
    integer(f"{kind.__name__}.version", kind.version, 0, 10**6)
    if kind.version and name in PROBLEMS.installed:
        raise ValueError(f"{kind.__name__}.version must be 0 for a problem of an installed package, got {kind.version}")


PROBLEMS: Registry[type[Problem]] = Registry(
    "problem",
    "bandit_envs.problems",
    _check,
    {kind.name: kind for kind in (Threshold, AllGood, TopK, Feasible, BestArm)},
)
