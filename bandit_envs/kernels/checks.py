"""Checks of users' input. Each returns the value in its right type, or an error names it and what is allowed."""

from __future__ import annotations

import importlib
import inspect
import math
import operator
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .spellings import spelled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def install_hint(extra: str = "evaluation") -> str:
    """How to install what an extra brings: this package is on no index, a checkout of it is installed."""
    return f'in a checkout of bandit-envs, pip install ".[{extra}]"'


def require(module: str, purpose: str, extra: str = "evaluation") -> Any:
    """The module of this name; where it is not installed, an ImportError names the extra that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        top = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {top}: {install_hint(extra)}") from None


NARROWEST = 1024  # floating-point numbers in a range, about
SPACINGS = 4  # between neighbouring numbers: a value so near to an end of a range is that end, but for rounding
SLACK = 1e-9  # of a budget in money, for the rounding of sums of prices
MOST_BYTES = 2**29  # of a part of an archive, unpacked, which is read at once; of all parts 16 times as many
LARGEST = 1e100  # magnitude of a number that can be squared and summed without overflow
_PRINTED = 10**1000  # Python prints no integers of more than a few thousand digits
_INT64 = np.dtype(np.int64)  # NumPy has one object for it, and comparing identities is quicker


@contextmanager
def unzipped(path: str | Path) -> Iterator[zipfile.ZipFile]:
    """An archive, of another maker perhaps; a ValueError for one that unpacks to more than any file of numbers does."""
    with zipfile.ZipFile(path) as archive:
        left = 16 * MOST_BYTES
        for one in archive.infolist():
            left -= one.file_size
            if left < 0 or one.file_size > min(MOST_BYTES, 2**24 + 200 * one.compress_size):
                size = f"from {one.compress_size:,} to {one.file_size:,} bytes"
                raise ValueError(f"{one.filename!r:.80} in it unpacks {size}, more than is read")
        yield archive


def _real(value: Any) -> float:
    """A real number as a float; NaN for anything else, such as text, truth values, complex numbers and times."""
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind not in "iuf":
        return math.nan
    if isinstance(value, (bool, str, bytes)) or getattr(value, "dtype", None) == np.bool_:
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def number(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, above: bool = False, below: bool = False
) -> float:
    """`value` as a float within [low, high] (`above`, `below`: the end itself is excluded)."""
    x = value if type(value) is float else _real(value)
    if not (low <= x <= high) or (above and x == low) or (below and x == high) or math.isinf(x):
        left, right = "(" if above or math.isinf(low) else "[", ")" if below or math.isinf(high) else "]"
        raise ValueError(f"{name} must be a number in {left}{low:g}, {high:g}{right}, got {value!r:.200}")
    return x


def within_ends(value: Any, low: float, high: float) -> Any:
    """`value`, a number or an array, where what is at most 4 spacings beyond an end, but for rounding, is that end.

    A spacing is the distance to the next number at the larger end, of the type of the value, as float32. All other
    values are left as they are, also beyond the ends, and there is no rounding where a range has no end.
    """
    if type(value) is float and low <= value <= high or math.isinf(low) or math.isinf(high):
        return value
    found = as_array(value)
    if found.dtype.kind not in "iuf":
        return value
    kind = found.dtype if found.dtype.kind == "f" else np.dtype(np.float64)
    near = np.clip(found.astype(np.float64), low, high)
    slack = SPACINGS * float(np.spacing(np.asarray(max(abs(low), abs(high)), kind)))
    off = np.abs(found - near)
    if not ((off > 0) & (off <= slack)).any():
        return value
    found = np.where(off <= slack, near, found)
    return found if found.ndim else float(found)


def integer(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> int:
    """`value` as an int within [low, high]."""
    try:
        x = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        x = None
    if x is None or not low <= x <= high:
        left, right = "(" if low == -math.inf else "[", ")" if high == math.inf else "]"
        got = "one of thousands of digits" if x is not None and abs(x) > _PRINTED else f"{value!r:.200}"
        raise ValueError(f"{name} must be an integer in {left}{low}, {high}{right}, got {got}")
    return x


def array(name: str, value: Any) -> Floats:
    """`value` as an array of floats, a copy."""
    try:
        found = np.asarray(value)
        objects = found.reshape(-1).tolist() if found.dtype.kind == "O" else ()
        if found.dtype.kind in "iufO" and all(type(one) is float or not math.isnan(_real(one)) for one in objects):
            return np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must be numbers of one rectangular shape, got {value!r:.200}")


def as_array(value: Any) -> NDArray[Any]:
    """`value` as an array of any kind; an empty one of objects where it makes none, as lists of different lengths."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        return np.empty(0, object)


def integers(name: str, value: Any, shape: tuple[int, ...]) -> Ints:
    """`value` as int64 of the given shape."""
    if type(value) is np.ndarray and value.dtype is _INT64 and value.shape == shape and value.flags.carray:
        return value
    try:
        found = np.asarray(value)
    except (TypeError, ValueError):  # ragged
        raise ValueError(f"{name} must be integers of shape {shape}, got {value!r:.200}") from None
    if found.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {found.shape}: {value!r:.200}")
    if found.dtype != np.int64:
        if found.dtype.kind not in "iu" or found.dtype == np.uint64 and found.size and found.max() > 2**63 - 1:
            raise ValueError(f"{name} must be integers, got {found.dtype}: {value!r:.200}")
        found = found.astype(np.int64)
    # Kernels are compiled once more for each kind of array, so that all are made of one kind.
    return found if found.flags.carray else np.require(found, requirements=["C", "W"]).reshape(shape)


def numbers(name: str, value: Any, shape: tuple[int, ...], kinds: str = "biuf") -> Floats:
    """`value`, an array of the given shape and of one of these kinds of NumPy types, as floats."""
    known = isinstance(value, np.ndarray) and value.dtype.kind in kinds
    if not known or value.shape != shape:
        got = f"shape {value.shape}" if known else repr(value)[:200]
        raise ValueError(f"{name} must be an array of numbers of shape {shape}, got {got}")
    return np.asarray(value, np.float64)


def mask(name: str, value: Any, shape: tuple[int, ...]) -> Bools:
    """`value` as a mask of the given shape."""
    if type(value) is np.ndarray and value.dtype == np.bool_ and value.shape == shape:
        return value
    found = as_array(value)
    if found.shape != shape or found.dtype.kind not in "biu" or not ((found == 0) | (found == 1)).all():
        raise ValueError(f"{name} must be a mask of 0 and 1 of shape {shape}, got {value!r:.200}")
    return found.astype(np.bool_)


def ours(thing: object) -> bool:
    """Whether a class or a function, or the class of any other object, comes with this package, and needs no checks."""
    return str(getattr(thing, "__module__", "")).startswith("bandit_envs.")


@contextmanager
def errors_of(what: str, code: object = None) -> Iterator[None]:
    """Name in the message of any error that arises inside whose code has raised it.

    Missing files and modules, and warnings, stay errors of their kind, with a note; whatever else a user's code raises,
    an exit of the process too, becomes a ValueError, with the error as its cause.

    `what`: whose code it is: "the instance 'my-arms'". `code`: the class or the function, where it may come with this
    package: the errors of ours are left as they are.
    """
    if code is not None and ours(code):
        yield
        return
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except (OSError, ImportError, Warning) as error:
        error.add_note(f"It was raised by {what}.")
        raise
    except ValueError as error:
        if str(error).startswith(what):
            raise
        raise ValueError(f"{what}: {error}") from error
    except BaseException as error:
        said = getattr(error, "summary", f"{type(error).__name__}: {error}")  # of what could not be compiled
        raise ValueError(f"{what} fails: {said}") from error


def called(what: str, function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """What a function, or a class, makes of parameters; see `errors_of` for its errors.

    A ValueError for parameters that it does not take, or that are missing, names those that it takes.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions written in C have none
        signature = inspect.Signature([inspect.Parameter("any", inspect.Parameter.VAR_KEYWORD)])
    try:
        parameters = spelled(parameters, signature.parameters)
        signature.bind_partial(**parameters)  # unknown names first
        signature.bind(**parameters)
    except TypeError as error:
        raise ValueError(f"{what}: {error}; it takes {', '.join(signature.parameters) or 'no parameters'}") from None
    with errors_of(what, function):
        return function(**parameters)


def interval(name: str, value: Any) -> tuple[float, float]:
    """`value` as a pair of floats, the lower one first."""
    try:
        low, high = (number(name, end, -LARGEST, LARGEST) for end in value)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        text = f"{name} must be a pair of numbers up to {LARGEST:g} in size,"
        raise ValueError(f"{text} the lower one first, got {value!r:.200}")
    least = NARROWEST * float(np.spacing(max(abs(low), abs(high))))
    if high - low < least:
        text = f"{name} must be at least {least:.3g} wide, {NARROWEST} times the distance of one number to the next,"
        raise ValueError(f"{text} got {value!r:.200}: subtract what all values have in common")
    return low, high


def flag(name: str, value: Any) -> bool:
    """`value` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r:.200}")
    return bool(value)


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """`value`, one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r:.200}")
    return value
