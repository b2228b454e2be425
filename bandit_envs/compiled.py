"""Compilation of the numeric kernels: Numba, compiled at first call, cached on disk.

`jit` is `numba.njit(cache=True)` with two gaps closed:

* Numba's cache watches only the file of the compiled function, so that a change in a callee of another file would be
  served stale. Here a cached kernel carries a stamp over the sources of all kernels that it may call: those of this
  package, and those of its own package (for kernels of other packages also those of `agents`).
* Where neither the installation nor a user cache directory can be written to, Numba refuses to import the module; here
  the kernel is cached in a temporary directory of this user instead (`NUMBA_CACHE_DIR` names another place).

Each kernel that is in no cache is told to the logger "bandit_envs.compiled", level INFO, before it is compiled.

`lean` is `jit` for kernels that make no arrays, and `episode_kernel` and `slot_kernel` make the kernel of a batch
from a function of one episode, so that an algorithm can be written as its paper has it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import logging
import os
import tempfile
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.cpu import CPUTargetOptions

__all__ = ["episode_kernel", "inlined", "jit", "kernel_stamp", "lean", "slot_kernel"]

F = TypeVar("F", bound=Callable[..., Any])
_LOGGER = logging.getLogger(__name__)

_HERE = Path(__file__).parent
_SIBLING = _HERE.with_name("agents")  # of the same distribution
_MARKS = (b"@jit", b"@inlined", b"@lean", b"@episode_kernel", b"@slot_kernel", b"# kernel constants")
# A private option of Numba: code that allocates nothing needs no reference counts. Without it, it is only slower.
_NO_COUNTS: dict[str, Any] = {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}


def _root(file: Path) -> Path:
    """The top folder of the package that holds a source file; the file itself where it belongs to none."""
    root = file
    while (root.parent / "__init__.py").is_file():
        root = root.parent
    return root


@functools.cache
def kernel_stamp(root: Path = _HERE) -> str:
    """A digest over the source files whose kernels, or marked constants, the kernels below `root` may use.

    Args:
        root: a package's folder, or a single source file.
    """
    digest = hashlib.blake2b(digest_size=16)
    for place in dict.fromkeys((_HERE, root) if root in (_HERE, _SIBLING) else (_HERE, _SIBLING, root)):
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            source = path.read_bytes()
            if any(mark in source for mark in _MARKS):
                digest.update(path.relative_to(place.parent).as_posix().encode() + source)
    return digest.hexdigest()


class _Stamped:
    """Mixin for Numba's cache locators: freshness is the stamp of all kernels, not the time of one file."""

    _py_file: str

    def get_source_stamp(self) -> str:
        return kernel_stamp(_root(Path(self._py_file).resolve()))


class _Temporary:
    """The last resort: a directory of this user below the system's temporary directory."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
        where = self.get_suitable_cache_subpath(py_file)  # type: ignore[attr-defined]
        self._py_file, self._lineno = py_file, py_func.__code__.co_firstlineno
        self._home = os.path.join(tempfile.gettempdir(), f"bandit_envs-{user}")
        self._cache_path = os.path.join(self._home, where)

    def get_cache_path(self) -> str:
        return self._cache_path

    def ensure_cache_path(self) -> None:
        os.makedirs(self._home, mode=0o700, exist_ok=True)
        found = os.lstat(self._home)  # what is loaded from here runs as code: no place that others can write to
        if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022):
            raise OSError(f"{self._home} belongs to somebody else")
        super().ensure_cache_path()  # type: ignore[misc]


def _locators() -> list[type[Any]]:
    """Numba's own locators, stamped, and the temporary directory after them."""
    ours = [type(base.__name__, (_Stamped, base), {}) for base in CompileResultCacheImpl._locator_classes]
    user_wide = next(base for base in ours if "UserWide" in base.__name__)
    return [*ours, type("TemporaryCacheLocator", (_Temporary, user_wide), {})]


class _Implementation(CompileResultCacheImpl):
    _locator_classes = _locators()


class _Telling:
    """Mixin for Numba's caches: what is not found is compiled next, which is told to the logger."""

    _kernel: str

    def load_overload(self, signature: Any, context: Any) -> Any:
        found = super().load_overload(signature, context)  # type: ignore[misc]
        if found is None:
            _LOGGER.info("compiling %s", self._kernel)
        return found


class _Cache(_Telling, FunctionCache):
    _impl_class = _Implementation


class _Nowhere(_Telling, NullCache):
    """The cache of a kernel that is kept nowhere."""


def _cached(kernel: Any, function: Callable[..., Any]) -> Any:
    """The compiled function, kept on disk where there is any place to write to."""
    kernel._cache = _Nowhere()
    with contextlib.suppress(RuntimeError, OSError):  # no place at all: it is compiled in every process
        kernel._cache = cache = _Cache(function)  # type: ignore[no-untyped-call]
        # Of an index that other sources have written not even the signatures are read: their types may be gone.
        cache._cache_file._version += f" {cache._cache_file._source_stamp}"
    kernel._cache._kernel = f"{function.__module__}.{function.__qualname__}"
    return kernel


def jit(function: F) -> F:
    """Compile `function` at its first call, with NumPy's rules for division, and keep the result on disk."""
    return cast(F, _cached(numba.njit(error_model="numpy")(function), function))


def inlined(function: F) -> F:
    """Compile `function` into its compiled callers, so that a loop over it can be vectorised."""
    return cast(F, numba.njit(error_model="numpy", inline="always")(function))


def lean(function: F) -> F:
    """`jit` for kernels that make no arrays: they count no references, so that structures of arrays cost nothing."""
    return cast(F, _cached(numba.njit(error_model="numpy", **_NO_COUNTS)(function), function))


def _looped(function: Callable[..., Any], first: str, last: str, loop: str) -> Callable[..., None]:
    """A kernel that calls a function of one episode in a loop; `loop` has the call in place of {call}.

    An argument whose annotation is a NamedTuple is handed to the kernel field by field, since a kernel takes half a
    microsecond to look at a tuple, and is put together again inside.
    """
    kinds, arguments, built, calls = typing.get_type_hints(function), list[str](), list[str](), list[str]()
    for name in list(inspect.signature(function).parameters)[1:]:
        fields = getattr(kinds.get(name), "_fields", None)
        arguments += [name] if fields is None else [f"{name}_{field}" for field in fields]
        calls.append(name)
        if fields is not None:
            parts = ", ".join(f"{name}_{field}" for field in fields)
            built.append(f"    {name} = {kinds[name].__name__}({parts})\n")
    order = ", ".join(part for part in (first, *arguments, last) if part)
    call = f"one({', '.join(['e', *calls])})"
    text = f"def batch({order}):\n{''.join(built)}{loop.format(call=call)}"
    place: dict[str, Any] = {kind.__name__: kind for kind in kinds.values() if isinstance(kind, type)}
    place |= {"one": inlined(function), "uint64": np.uint64, "__name__": function.__module__ or "__main__"}
    exec(compile(text, function.__code__.co_filename, "exec"), place)
    batch = place["batch"]
    batch.__qualname__ = f"{function.__qualname__}.batch"
    kernel: Callable[..., None] = lean(batch)
    return kernel


def episode_kernel(function: Callable[..., Any]) -> Callable[..., None]:
    """From a function of one episode, `f(e, ...)`, the kernel of a batch, `f(..., out)`, which sets every out[e].

    The kernel takes the fields of an argument that is annotated as a NamedTuple in its place: `f(*seen, *rules, out)`.
    The function makes no arrays.
    """
    loop = "    for episode in range(len(out)):\n        e = uint64(episode)\n        out[e] = {call}\n"
    return _looped(function, "", "out", loop)


def slot_kernel(function: Callable[..., Any]) -> Callable[..., None]:
    """From a function of one episode, `f(e, ...)`, the kernel `f(slots, ...)` that calls it for each e of slots (S,).

    Arguments and limits are those of `episode_kernel`.
    """
    loop = "    for j in range(len(slots)):\n        e = uint64(slots[j])\n        {call}\n"
    return _looped(function, "slots", "", loop)
