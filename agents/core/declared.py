"""What the class of an `Algorithm` declares: its fields, and the functions that compiled code calls."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

REQUIRED = inspect.Parameter.empty
RULES = ("begin", "observe", "stops", "sample")


class Field(NamedTuple):
    """What an algorithm declares."""

    role: str  # "setting", "per_episode", "per_arm", "scratch", or "part"
    kind: Any  # int, float, bool, a dtype, an array's type or a struct; of a part what makes it of E and K
    default: Any = REQUIRED
    rows: int = 0  # of scratch; 0: it is (K,)


def setting(kind: Any = float, default: Any = REQUIRED) -> Any:
    """A number, an array or a struct that is the same in all episodes: the attribute of the agent of this name.

    Args:
        kind: `int`, `float`, `bool`, or the class of a struct; anything else for an array.
        default: makes it a parameter of the constructor, where the class has none of its own.
    """
    return Field("setting", kind, default)


def per_episode(kind: Any = int) -> Any:
    """A number of each episode, `int`, `float` or `bool`; 0 where the episode begins."""
    return Field("per_episode", kind)


def per_arm(kind: Any = float) -> Any:
    """An array over the arms of each episode, of `int`, `float`, `bool` or records; 0 where the episode begins."""
    return Field("per_arm", kind)


def scratch(kind: Any = float, rows: int = 0) -> Any:
    """An array over the arms, (K,) or (rows, K), for a computation on one episode, which keeps nothing in it."""
    return Field("scratch", kind, rows=rows)


def parts_of(make: Callable[[int, int], Any]) -> Any:
    """An array or a struct of arrays of a batch, `make(E, K)`.

    Of an array whose first axis grows with E, each episode has its share; the others are the same for all.
    """
    return Field("part", make)


def share_of(one: Any, first: Any, second: Any, e: int) -> Any:
    """What episode e has of a part of a batch, whose forms for one episode and for two are known."""
    if not isinstance(one, np.ndarray):
        return type(one)(*(share_of(*each, e) for each in zip(one, first, second, strict=True)))
    if first.shape == second.shape:
        return one
    if second.shape != (2 * len(first), *first.shape[1:]):
        shapes = f"{first.shape} for one episode, {second.shape} for two"
        raise TypeError(
            f"an array of parts_of grows along its first axis with the episodes, or not at all, got {shapes}"
        )
    return one[e] if len(first) == 1 and one.ndim > 1 else one[e * len(first) : (e + 1) * len(first)]


def as_own(one: Any) -> Any:
    """The same struct with arrays of its own."""
    if isinstance(one, np.ndarray):
        return np.array(one, order="C")
    return type(one)(*map(as_own, one)) if isinstance(one, tuple) else one


def rules_in(space: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The functions in the namespace of a class that compiled code calls."""
    plain = ((one, getattr(value, "py_func", value)) for one, value in space.items())
    plain = ((one, getattr(value, "__func__", value)) for one, value in plain)  # of a staticmethod
    found = {one: function for one, function in plain if inspect.isfunction(function)}
    given = {one: list(inspect.signature(function).parameters) == ["ep", "own"] for one, function in found.items()}
    if other := [one for one in found if given[one] and one not in RULES]:
        raise TypeError(f"{other[0]} of {name} is called by nothing: a function of (ep, own) is one of {list(RULES)}")
    found = {one: found[one] for one in RULES if one in found}
    for one, function in found.items():
        if not given[one]:
            raise TypeError(f"{one} of {name} must be a function of (ep, own), which compiled code calls")
        if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise TypeError(f"{one} of {name} must be a plain function, without yield and async: pull(ep, arm) plans")
        nothing, something = returns_of(function)
        if one == "stops" and nothing:
            raise TypeError(f"stops of {name} must return whether the episode stops, and returns nothing in some case")
        if one != "stops" and something:
            how = "; a sampling rule plans its pulls by pull(ep, arm)" * (one == "sample")
            raise TypeError(f"{one} of {name} returns a value, and must not: what it returns is not read{how}")
    return found


def returns_of(function: Any) -> tuple[bool, bool]:
    """Whether a function returns None, or has no return, in some case; and whether it returns something else."""
    found, last = set[bool](), None
    for one in dis.get_instructions(function):
        if one.opname in ("RETURN_CONST", "RETURN_VALUE"):
            constant = one if one.opname == "RETURN_CONST" else last
            found.add(constant is not None and "CONST" in constant.opname and constant.argval is None)
        last = one
    return True in found, False in found
