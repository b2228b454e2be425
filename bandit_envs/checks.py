"""Checks of what a user hands in: each returns the value in its right type, or names it and what is allowed."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST", "array", "choice", "flag", "integer", "interval", "number"]

LARGEST = 1e100  # magnitude of a number that can be squared and summed without overflow


def number(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, above: bool = False, below: bool = False
) -> float:
    """`value` as a float within [low, high] (`above`, `below`: the end itself is excluded).

    Raises:
        ValueError: naming the value and the range.
    """
    try:
        x = math.nan if isinstance(value, (str, bytes, bool, np.bool_)) else float(value)
    except (TypeError, ValueError, OverflowError):
        x = math.nan
    if not (low <= x <= high) or (above and x == low) or (below and x == high) or math.isinf(x):
        left, right = "(" if above or math.isinf(low) else "[", ")" if below or math.isinf(high) else "]"
        raise ValueError(f"{name} must be a number in {left}{low:g}, {high:g}{right}, got {value!r:.200}")
    return x


def integer(name: str, value: Any, low: int, high: int) -> int:
    """`value` as an int within [low, high].

    Raises:
        ValueError: naming the value and the range.
    """
    try:
        x = low - 1 if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        x = low - 1
    if not low <= x <= high:
        raise ValueError(f"{name} must be an integer in [{low}, {high}], got {value!r:.200}")
    return x


def array(name: str, value: Any) -> NDArray[np.float64]:
    """`value` as an array of floats, a copy.

    Raises:
        ValueError: naming the value, unless it is numbers of one rectangular shape.
    """
    try:
        if np.asarray(value).dtype.kind in "iufO":
            return np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must be numbers of one rectangular shape, got {value!r:.200}")


def interval(name: str, value: Any) -> tuple[float, float]:
    """`value` as a pair of floats, the lower one first.

    Raises:
        ValueError: naming the value.
    """
    try:
        low, high = (number(name, end) for end in value)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise ValueError(f"{name} must be a pair of numbers, the lower one first, got {value!r:.200}")
    return low, high


def flag(name: str, value: Any) -> bool:
    """`value` as a bool.

    Raises:
        ValueError: naming the value, unless it is True or False.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r:.200}")
    return bool(value)


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """`value`, one of the allowed words.

    Raises:
        ValueError: naming the value and the allowed words.
    """
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r:.200}")
    return value
