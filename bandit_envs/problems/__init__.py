"""The problems: one file each, and the registry of their names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ..registry import Registry
from .all_good import AllGood
from .base import Problem, SetProblem
from .feasible import Feasible
from .threshold import Threshold
from .top_k import BestArm, TopK

__all__ = ["PROBLEMS", "AllGood", "BestArm", "Feasible", "Problem", "SetProblem", "Threshold", "TopK"]


def check_problem(name: str, kind: Any) -> None:
    """Refuse what is no problem.

    Raises:
        ValueError: naming what is wrong.
    """
    if not isinstance(kind, type) or not issubclass(kind, Problem):
        raise ValueError(f"the problem {name!r} must be a subclass of bandit_envs.Problem, got {kind!r:.200}")
    if missing := sorted(kind.__abstractmethods__):
        raise ValueError(f"the problem {name!r} must define {' and '.join(missing)}")
    if not isinstance(getattr(kind, "name", None), str):
        raise ValueError(f"{kind.__name__}.name must be the name of the problem, got {getattr(kind, 'name', None)!r}")
    taken = [parameter for parameter in inspect.signature(kind).parameters]
    if not isinstance(kind.parameters, Mapping) or sorted(kind.parameters) != sorted(taken):
        raise ValueError(f"{kind.__name__}.parameters must explain {taken}, got {kind.parameters!r:.200}")


PROBLEMS: Registry[type[Problem]] = Registry(
    "problem",
    "bandit_envs.problems",
    check_problem,
    {kind.name: kind for kind in (Threshold, AllGood, TopK, Feasible, BestArm)},
)
