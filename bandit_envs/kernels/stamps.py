"""`stamp_of`: a digest of a compiled function and of all that it is compiled from; a cache is valid while it is equal.

It covers the function's bytecode and constants, and those of each compiled function that it calls, in whatever file or
package. It also covers the values of other global names, which Numba compiles in as constants.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types

KNOWN = {"numpy", "numba", "llvmlite", *sys.stdlib_module_names}  # a cache is for one version of each
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)


def stamp_of(function: Callable[..., Any]) -> str:
    """The digest of a function. Ask for it once all global names that the function uses are defined."""
    digest, waiting, seen = hashlib.blake2b(_options(), digest_size=16), [function], set[Any]()
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            text, called = _sources(one)
            digest.update(text)
            waiting += called
    return digest.hexdigest()


@functools.cache
def _options() -> bytes:
    """How functions are compiled, as text."""
    files = ("addresses.py", "compiled.py", "floor.py", "routines.py")
    return b"".join(Path(__file__).with_name(name).read_bytes() for name in files)


@functools.cache
def _sources(function: Callable[..., Any]) -> tuple[bytes, tuple[Callable[..., Any], ...]]:
    """What a function itself is compiled from, as text; and the functions that it calls."""
    parts, called = [function.__module__ or "", function.__qualname__, repr(function.__defaults__)], list[Any]()
    names = _names(function.__code__)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    for name, value in (
        *((name, function.__globals__[name]) for name in names if name in function.__globals__),
        *zip(function.__code__.co_freevars, cells, strict=True),
    ):
        parts += [name, *_values(value, names, called)]
    parts += _code(function.__code__)
    return "\0".join(parts).encode(), tuple(called)


def _names(code: CodeType) -> list[str]:
    """The names that code looks up, of functions within it too."""
    inner = [name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one)]
    return list(dict.fromkeys([*code.co_names, *inner]))


def _code(code: CodeType) -> Iterator[str]:
    """Code as text, without line numbers."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _values(value: Any, names: list[str], called: list[Any]) -> Iterator[str]:
    """A value as text; functions are put into `called`. Of a module, the values of `names` in it."""
    function = getattr(value, "__wrapped__", None)
    if isinstance(function, FunctionType):
        called.append(function)
        yield type(value).__name__ + getattr(value, "options", "")
    elif isinstance(value, ModuleType):
        for name in names:  # each is looked up once only: modules that import each other make no endless loop
            if (one := getattr(value, name, None)) is not None:
                yield name
                yield from _values(one, [other for other in names if other != name], called)
    elif isinstance(value, FunctionType) and value.__module__.split(".")[0] not in KNOWN:  # `register_jitable`, say
        called.append(value)
    elif isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, (tuple, list)):
        yield repr(getattr(value, "_fields", ()))
        for one in value:
            yield from _values(one, names, called)
    else:  # a type, the class of a struct or of named constants, or what Numba itself provides
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
        yield repr((getattr(value, "_fields", ()), {**getattr(value, "__members__", {})}))
        yield repr(value) if isinstance(value, types.Type) else ""
