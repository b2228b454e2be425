"""The parameters of agents by name: those that a constructor takes, and those that it was called with."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bandit_envs import Task

_Parameter = inspect.Parameter
POSITIONAL = (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)


_signature = functools.lru_cache(maxsize=256)(inspect.signature)


def _constructors(kind: type) -> Iterator[inspect.Signature]:
    """The signatures of the constructors of a class and of its bases, its own first."""
    for base in kind.__mro__:
        if "__init__" in vars(base) and base is not object:
            yield _signature(vars(base)["__init__"])


def _of_kind(signature: inspect.Signature, *kinds: Any) -> list[str]:
    """The names of the arguments of these kinds."""
    return [name for name, argument in signature.parameters.items() if argument.kind in kinds]


def given(kind: type, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """What the constructor of an agent was called with, by name, but for its first argument, the task.

    A constructor that only hands on `*arguments` has the names of the constructor of the next base class; it must take
    them as keywords too, `**keywords`, so that the agent can be made again by name.
    """
    kept: dict[str, Any] = {}  # keyword arguments of constructors that hand on the others
    handing_on: list[inspect.Signature] = []
    left = dict(keywords)
    for depth, signature in enumerate(_constructors(kind)):
        try:
            named = dict(signature.bind_partial(None, *arguments, **left).arguments)
        except TypeError:
            if depth == 0:
                return {}  # the constructor is called next, and tells what is wrong
            break
        own = _of_kind(signature, *POSITIONAL)
        [rest] = _of_kind(signature, _Parameter.VAR_POSITIONAL) or [""]
        [more] = _of_kind(signature, _Parameter.VAR_KEYWORD) or [""]
        if len(own) < 2 or rest in named:
            handing_on.append(signature)
            kept |= {name: left.pop(name) for name in _of_kind(signature, _Parameter.KEYWORD_ONLY) if name in left}
            continue
        named |= named.pop(more, {})
        found = kept | {name: value for name, value in named.items() if name not in own[:2]}
        if not _is_task(named.get(own[1])) and any(map(_is_task, found.values())):
            raise TypeError(f"the constructor of {kind.__name__} must take the task first, not {own[1]!r}")
        if not all(_of_kind(one, _Parameter.VAR_KEYWORD) or set(found) <= set(one.parameters) for one in handing_on):
            break
        check_values(kind.__name__, found)
        return found
    text = f"{kind.__name__} takes an argument that has no name; the parameters of an agent have names,"
    raise TypeError(f"{text} and a constructor that hands on *arguments hands on **keywords too")


def _is_task(value: Any) -> bool:
    """Whether this is a task or an environment, single or vector."""
    return isinstance(value, Task) or hasattr(value, "unwrapped") or hasattr(value, "get_attr")


def check_values(name: str, parameters: Mapping[str, Any]) -> None:
    """Refuse iterators and generators: an agent that is made again would find them empty."""
    for parameter, value in parameters.items():
        if isinstance(value, Iterator):
            text = f"the parameter {parameter!r} of {name} can be read only once, as it is {value!r:.200}:"
            raise ValueError(f"{text} give a list")


def copied(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of the values, where they can be copied: what happens to one agent's does not change another's."""
    copies = {}
    for name, value in parameters.items():
        try:
            copies[name] = copy.deepcopy(value)
        except Exception:  # of the value's own class
            copies[name] = value
    return copies


def taken(target: Callable[..., Any]) -> list[str] | None:
    """The parameters that an agent's class, or a function that makes agents, takes beside the task; None: any."""
    try:
        signatures = list(_constructors(target)) if isinstance(target, type) else [inspect.signature(target)]
    except (TypeError, ValueError):  # as of some functions written in C
        return None
    names = list[str]()
    for signature in signatures:
        positional = _of_kind(signature, *POSITIONAL)[1 + isinstance(target, type) :]
        names += [*positional, *_of_kind(signature, _Parameter.KEYWORD_ONLY)]
        if not _of_kind(signature, _Parameter.VAR_KEYWORD):
            return list(dict.fromkeys(names))
    return None
