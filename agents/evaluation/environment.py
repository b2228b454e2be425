"""The environment that a name stands for: one lookup, for `evaluate`, `train`, `evolve` and the command line."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from bandit_envs import ENVIRONMENTS, PROBLEMS, PureExplorationVectorEnv, register_problem
from bandit_envs.envs import LEARN
from bandit_envs.kernels import flag, unknown

T = TypeVar("T")

DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
CLASS = re.compile(f"{DOTTED}:{DOTTED}")  # "module:Class"


def importable(
    rows: Mapping[str, T], left_out: Callable[[str], object] = lambda reason: None
) -> Iterator[tuple[str, T]]:
    """The rows of a registry, but for packages that cannot be imported: `left_out` is given their names and reasons."""
    for name in rows:
        try:
            row = rows[name]
        except ValueError as error:
            left_out(f"left out: {name}: {error}")
        else:
            yield name, row


def environment_id(name: str) -> str:
    """The id of an environment.

    Args:
        name: the id itself, as "bandit_envs/Threshold-v0"; the name of a registered problem, one's own included, as
            "Threshold", "threshold", "Threshold-v0" or "Threshold-learn"; "module:Class" for the environment of a
            problem of one's own; "module:id" for an id that importing the module registers.

    Raises:
        ValueError: for an unknown name, with the nearest ones, and for environments of another kind.
        ImportError: for a module that is not there.
        gymnasium.error.Error: for an id with a namespace, or of a module, that is not registered.
    """
    if not isinstance(name, str):
        raise ValueError(f"env_id must be a name, one of {', '.join(PROBLEMS)} or an id, got {name!r:.200}")
    if name in PROBLEMS:
        return ENVIRONMENTS[name].id
    if CLASS.fullmatch(name):
        kind = PROBLEMS.find(name)
        if PROBLEMS.get(kind.name) is not kind:
            register_problem(kind)
        return ENVIRONMENTS[kind.name].id
    module, colon, rest = name.rpartition(":")
    if colon:
        importlib.import_module(module)
    if colon or rest in gym.registry:
        entry: object = gym.spec(rest).vector_entry_point
        made = load_env_creator(entry) if isinstance(entry, str) else entry
        if not (isinstance(made, type) and issubclass(made, PureExplorationVectorEnv)):
            raise ValueError(f"an environment of bandit_envs is needed, got {rest!r}")
        return rest
    ids = dict[str, str]()
    for problem, row in importable(ENVIRONMENTS):
        for short, known in ((problem, row.id), (f"{problem}-learn", row.learn_id)):
            ids |= {_bare(form): known for form in (short, known.rpartition("/")[2], known)}
    if _bare(name) in ids:
        return ids[_bare(name)]
    if "/" in name:
        gym.spec(name)  # its own error says what the namespace has
    raise unknown("environment", name, {*ENVIRONMENTS, *ids.values()})


def plain(name: str, env_kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """`environment_id` without "-learn-", and the keywords: those that such an id stands for, and those given."""
    spec = gym.spec(env_id := environment_id(name))
    if spec.namespace == "bandit_envs" and spec.kwargs.items() >= LEARN.items():
        return env_id.replace("-learn-v", "-v"), {**LEARN, **env_kwargs}
    return env_id, {**env_kwargs}


def make_known(name: str, trust: bool) -> None:
    """Import the module that "module:..." names, so that its problem is known; nothing for an id that is registered.

    Raises:
        ValueError: where it is not registered and not trusted, and for what the module does not hold.
        ImportError: for a module that is not there.
    """
    _, colon, rest = name.rpartition(":")
    if not colon or rest in gym.registry:
        return
    if not flag("trust", trust) and not PROBLEMS.has_target(name):
        text = f"the environment {name!r:.200} names a module, and importing it runs its code:"
        raise ValueError(f"{text} register it, or say trust=True (--trust) if you trust its maker")
    environment_id(name)


def _bare(name: str) -> str:
    """A name without capitals, hyphens and underscores: "topk" for "TopK" and "top-k"."""
    return name.lower().replace("-", "").replace("_", "")
