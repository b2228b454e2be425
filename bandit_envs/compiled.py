"""Compilation of the numeric kernels: Numba, compiled at first call, cached on disk.

`jit` is `numba.njit(cache=True)` with two gaps closed:

* Numba's cache watches only the file of the compiled function, so that a change in a callee of another file would be
  served stale. Here a cached kernel carries a stamp over the sources of all kernels that it may call: those of this
  package, and those of its own package (for kernels of other packages also those of `agents`).
* Where neither the installation nor a user cache directory can be written to, Numba refuses to import the module; here
  the kernel is cached in a temporary directory of this user instead (`NUMBA_CACHE_DIR` names another place).

An error of Numba bears the function that it could not compile, or that a kernel was made of, as `function`, and as
`summary` a sentence that names it, its line, and what is wrong there: Numba's own text has pages.

Each kernel that is in no cache is told to the logger "bandit_envs.compiled", level INFO, before it is compiled.

`lean` is `jit` for kernels that make no arrays, and `episode_kernel` and `slot_kernel` make the kernel of a batch
from a function of one episode, so that an algorithm can be written as its paper has it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import linecache
import logging
import os
import pickle
import re
import tempfile
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.cpu import CPUTargetOptions
from numba.core.errors import NumbaError, UnsupportedBytecodeError

if getattr(numba, "config").DISABLE_JIT:  # noqa: B009 (Numba tells type checkers nothing of it)
    raise ImportError("bandit_envs is compiled by Numba, which NUMBA_DISABLE_JIT=1 forbids: unset it")

__all__ = ["episode_kernel", "inlined", "jit", "kernel_stamp", "lean", "part", "slot_kernel", "view"]

F = TypeVar("F", bound=Callable[..., Any])
_LOGGER = logging.getLogger(__name__)

_HERE = Path(__file__).parent
_SIBLING = _HERE.with_name("agents")  # of the same distribution
_MARKS = (
    b"def index(",
    b"def value(",
    b"@jit",
    b"@inlined",
    b"@lean",
    b"@part",
    b"@view",
    b"@episode_kernel",
    b"@slot_kernel",
    b"# kernel constants",
)
# What to do about errors of Numba whose own words tell little: a sign of each in its text, and the advice.
_ADVICE = (
    (
        "Unsupported array index type float",
        "an index is a float: a name that holds integers in one place, and floats or unsigned integers in another, "
        "holds floats",
    ),
    (
        r"Function\(<built-in function (arange|array|empty|full|ones|zeros)",
        "a function of one episode makes no arrays: hand them over as arguments",
    ),
)
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


class _Checkout:
    """Mixin for Numba's locator of caches beside the sources: only of a checkout.

    Of an installed package, pip would leave such caches behind when it removes the package, in folders that then hide
    another installation of it from Python.
    """

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        installed = {"site-packages", "dist-packages"} & set(Path(py_file).resolve().parts)
        return None if installed else super().from_function(py_func, py_file)  # type: ignore[misc]


def _locators() -> list[type[Any]]:
    """Numba's own locators, stamped, and the temporary directory after them."""
    ours = [
        type(base.__name__, (*([_Checkout] if "InTree" in base.__name__ else []), _Stamped, base), {})
        for base in CompileResultCacheImpl._locator_classes
    ]
    user_wide = next(base for base in ours if "UserWide" in base.__name__)
    return [*ours, type("TemporaryCacheLocator", (_Temporary, user_wide), {})]


class _Implementation(CompileResultCacheImpl):
    _locator_classes = _locators()


class _Telling:
    """Mixin for Numba's caches: what is not found is compiled next, which is told to the logger."""

    _kernel: str

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            found = super().load_overload(signature, context)  # type: ignore[misc]
        except (EOFError, ValueError, AttributeError, ImportError, IndexError, KeyError, TypeError, pickle.PickleError):
            self.flush()  # type: ignore[attr-defined]
            found = None  # a file that is damaged is written anew
        if found is None:
            _LOGGER.info("compiling %s", self._kernel)
        return found


class _Cache(_Telling, FunctionCache):
    _impl_class = _Implementation


class _Nowhere(_Telling, NullCache):
    """The cache of a kernel that is kept nowhere."""


def keep(kernel: Any, function: Callable[..., Any]) -> None:
    """Let a kernel that Numba makes of a function be kept on disk, where there is any place to write to."""
    kernel._cache = _Nowhere()
    with contextlib.suppress(RuntimeError, OSError):  # no place at all: it is compiled in every process
        kernel._cache = cache = _Cache(function)
        # Of an index that other sources have written not even the signatures are read: their types may be gone.
        cache._cache_file._version += f" {cache._cache_file._source_stamp}"
    kernel._cache._kernel = f"{function.__module__}.{function.__qualname__}"


def telling(compile_it: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """What compiles a kernel that is made of a function; an error of Numba bears the function and a summary."""

    def told(*arguments: Any, **keywords: Any) -> Any:
        try:
            return compile_it(*arguments, **keywords)
        except (NumbaError, UnsupportedBytecodeError) as error:
            if not hasattr(error, "function"):
                blamed = getattr(function, "around", function)
                vars(error).update(function=blamed, summary=_summary(error, blamed))
            raise

    return told


def _summary(error: Exception, function: Callable[..., Any]) -> str:
    """What Numba says of a function that it cannot compile, in short: the function, its line, and the reason."""
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error))
    lines = [line.strip(" >") for line in text.splitlines() if line.strip(" >")]
    lines = [line for line in lines if not line.startswith("Failed in ")] or lines or [type(error).__name__]
    said = " ".join(lines[: 2 if lines[0].endswith(":") else 1])
    said += next((f"; {advice}" for sign, advice in _ADVICE if re.search(sign, text)), "")
    code = function.__code__
    first, last = code.co_firstlineno, max(line or 0 for _, _, line in code.co_lines())
    place = getattr(error, "loc", None)
    found = getattr(place, "line", None) if getattr(place, "filename", None) == code.co_filename else None
    if found is None or not first <= found <= last:
        return f"Numba cannot compile {function.__qualname__} ({code.co_filename}, line {first}): {said}"
    where = f"{code.co_filename}, line {found}"
    source = linecache.getline(code.co_filename, found).strip()
    return f"Numba cannot compile {function.__qualname__} ({where}): {said}" + (f"; at `{source}`" if source else "")


def _cached(kernel: Any, function: Callable[..., Any]) -> Any:
    """The kernel that `numba.njit` has made of a function, kept on disk."""
    keep(kernel, function)
    kernel._compile_for_args = telling(kernel._compile_for_args, function)  # called for types that are new to it
    return kernel


def jit(function: F, nogil: bool = False) -> F:
    """Compile `function` at its first call, with NumPy's rules for division, and keep the result on disk.

    Args:
        function: what is to be compiled. nogil: whether other threads may run meanwhile.
    """
    return cast(F, _cached(_njit(function, no_cfunc_wrapper=True, nogil=nogil), function))


def lean(function: F, nogil: bool = False) -> F:
    """`jit` for kernels that make no arrays: they count no references, so that structures of arrays cost nothing.

    Args:
        function: what is to be compiled. nogil: whether other threads may run meanwhile.
    """
    return cast(F, _cached(_njit(function, no_cfunc_wrapper=True, nogil=nogil, **_NO_COUNTS), function))


def part(function: F) -> F:
    """`lean` for a function that kernels call: it is compiled once for all of them, and quicker, for them alone."""
    return cast(F, _cached(_for_kernels(function), function))


def inlined(function: F) -> F:
    """Compile `function` into its compiled callers, so that a loop over it can be vectorised.

    It returns numbers, or tuples of them; what returns arrays is a `view`.
    """
    return cast(F, _for_kernels(function, forceinline=True))


def view(function: F) -> F:
    """`inlined` for a function that returns parts of its arguments: slices of arrays, or tuples of arrays."""
    return cast(F, _njit(function, inline="always"))


def _njit(function: Callable[..., Any], **options: Any) -> Any:
    return numba.njit(error_model="numpy", **options)(function)


def _for_kernels(function: Callable[..., Any], **options: Any) -> Any:
    """A compiled function without what it takes to be called from Python; where it is, it is compiled once more."""
    kernel = _njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_NO_COUNTS, **options)
    from_python = _njit(function, no_cfunc_wrapper=True)

    def add_overload(result: Any) -> None:
        kernel.overloads[tuple(result.signature.args)] = result

    kernel.add_overload, kernel._compile_for_args = add_overload, from_python._compile_for_args
    return kernel


def _digest(function: Callable[..., Any]) -> str:
    """A few letters that tell functions of one name in one file apart."""
    code = function.__code__
    told = (
        code.co_code + repr([one for one in code.co_consts if not hasattr(one, "co_code")] + [*code.co_names]).encode()
    )
    return hashlib.blake2b(told, digest_size=4).hexdigest()


def assemble(
    function: Callable[..., Any], name: str, arguments: Mapping[str, Any], body: str, **beside: Any
) -> Callable[..., None]:
    """The source of a kernel around a function, which the body calls `one`, as a function that can be compiled.

    Args:
        function: what is called; it is inlined.
        name: what the kernel is called, after the function.
        arguments: {argument of the kernel: its class if that is a NamedTuple, else anything}. A NamedTuple is handed
            over field by field, since a kernel takes half a microsecond to look at a tuple, and put together inside.
        body: what the kernel does, indented lines.
        **beside: what else the body may name.
    """
    order, built, kinds = list[str](), "", dict[str, Any]()
    for argument, kind in arguments.items():
        fields = getattr(kind, "_fields", None)
        if fields is None:
            order.append(argument)
            continue
        order += [f"{argument}_{field}" for field in fields]
        built += f"    {argument} = {kind.__name__}({', '.join(f'{argument}_{field}' for field in fields)})\n"
        kinds[kind.__name__] = kind
    place = kinds | beside | {"one": view(function), "uint64": np.uint64}
    place["__name__"] = function.__module__ or "__main__"
    text = f"def kernel({', '.join(order)}):\n{built}{body}"
    exec(compile(text, function.__code__.co_filename, "exec"), place)
    kernel: Callable[..., None] = place["kernel"]
    kernel.__qualname__ = f"{function.__qualname__}.{name}-{_digest(function)}"
    kernel.around = function  # type: ignore[attr-defined]
    return kernel


def arguments_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of a function of one episode, but the episode: {name: its annotation, or None}."""
    hints = typing.get_type_hints(function)
    return {name: hints.get(name) for name in list(inspect.signature(function).parameters)[1:]}


def episode_kernel(function: Callable[..., Any]) -> Callable[..., None]:
    """From a function of one episode, `f(e, ...)`, the kernel of a batch, `f(..., out)`, which sets every out[e].

    The kernel takes the fields of an argument that is annotated as a NamedTuple in its place: `f(*seen, *rules, out)`.
    The function makes no arrays.
    """
    given = arguments_of(function)
    body = f"""    for episode in range(len(out)):
        e = uint64(episode)
        out[e] = one(e, {", ".join(given)})
"""
    kernel: Any = lean(assemble(function, "batch", given | {"out": None}, body))
    kernel.function = function  # for players
    return kernel  # type: ignore[no-any-return]


def slot_kernel(function: Callable[..., Any]) -> Callable[..., None]:
    """From a function of one episode, `f(e, ...)`, the kernel `f(slots, ...)` that calls it for each e of slots (S,).

    Arguments and limits are those of `episode_kernel`.
    """
    given = arguments_of(function)
    body = f"""    for j in range(len(slots)):
        e = uint64(slots[j])
        one(e, {", ".join(given)})
"""
    return lean(assemble(function, "batch", {"slots": None} | given, body))
