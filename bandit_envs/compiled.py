"""Compilation of the numeric kernels: Numba, compiled at first call, cached on disk.

`jit` is `numba.njit(cache=True)` with two gaps closed:

* Numba's cache watches only the file of the compiled function, so that a change in a callee of another file would be
  served stale. Here every cached kernel carries one stamp over the sources of *all* kernels.
* Where neither the installation nor a user cache directory can be written to, Numba refuses to import the module; here
  the kernel is cached in a temporary directory of this user instead (`NUMBA_CACHE_DIR` names another place).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

__all__ = ["inlined", "jit", "kernel_stamp", "watch"]

F = TypeVar("F", bound=Callable[..., Any])

_ROOTS = [Path(__file__).parent]


def watch(root: Path) -> None:
    """Let the stamp cover the kernels below `root` too (called by packages whose kernels call ours)."""
    if root not in _ROOTS:
        _ROOTS.append(root)
        kernel_stamp.cache_clear()


@functools.cache
def kernel_stamp() -> str:
    """A digest over the source files that hold kernels, or constants that kernels read (marked as such)."""
    digest = hashlib.blake2b(digest_size=16)
    for root in _ROOTS:
        for path in sorted(root.rglob("*.py")):
            source = path.read_bytes()
            if any(mark in source for mark in (b"@jit", b"@inlined", b"# kernel constants")):
                digest.update(path.relative_to(root).as_posix().encode() + source)
    return digest.hexdigest()


class _Stamped:
    """Mixin for Numba's cache locators: freshness is the stamp of all kernels, not the time of one file."""

    def get_source_stamp(self) -> str:
        return kernel_stamp()


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


class _Cache(FunctionCache):
    _impl_class = _Implementation


def jit(function: F) -> F:
    """Compile `function` at its first call, with NumPy's rules for division, and keep the result on disk."""
    kernel: Any = numba.njit(error_model="numpy")(function)
    with contextlib.suppress(RuntimeError, OSError):  # no place at all to write to: compile in every process
        kernel._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return cast(F, kernel)


def inlined(function: F) -> F:
    """Compile `function` into its compiled callers, so that a loop over it can be vectorised."""
    return cast(F, numba.njit(error_model="numpy", inline="always")(function))
