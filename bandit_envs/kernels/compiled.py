"""Compilation of the numeric kernels: Numba, compiled at first call, cached on disk.

`jit` is `numba.njit(cache=True)` with three gaps closed:

* Numba's cache watches only the file of the compiled function, so that a change in a callee of another file would be
  served stale. Here a cached kernel carries a digest of all that it is compiled from, see `stamps`.
* Where neither the installation nor a user cache directory can be written to, Numba refuses to import the module; here
  the kernel is cached in a temporary directory of this user instead (`NUMBA_CACHE_DIR` names another place).
* Numba links whatever its files hold. Here each ends with a checksum, and what is damaged is compiled once more.

An error of Numba has two attributes more. `function` is the function that it could not compile, or that a kernel was
made of. `summary` is a sentence with the function, its line and the reason: Numba's own text has pages.

Before a kernel that is in no cache is compiled, the logger "bandit_envs.kernels.compiled" names it at level INFO.

`lean` is `jit` for kernels that make no arrays. `part`, `inlined` and `view` are for functions that kernels call.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import linecache
import logging
import os
import pickle
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.cpu import CPUTargetOptions
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.core.sigutils import normalize_signature

from .parts import KernelCompiler, PartCompiler, rebuilt
from .stamps import stamp_of

if getattr(numba, "config").DISABLE_JIT:  # noqa: B009 (Numba does not declare it to type checkers)
    raise ImportError("bandit_envs is compiled by Numba, which NUMBA_DISABLE_JIT=1 forbids: unset it")

__all__ = ["inlined", "jit", "lean", "part", "view"]

F = TypeVar("F", bound=Callable[..., Any])
_LOGGER = logging.getLogger(__name__)

# What to do about errors of Numba whose own text says little: a mark of each in that text, and the advice.
_ADVICE = (
    (
        r"operator\.or_|built-in function or_",
        "an arm, or how often it is pulled, is a float",
    ),
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
SEAL = 16  # bytes of a checksum
# A private option of Numba: code that allocates nothing needs no reference counts. Without it, it is only slower.
_NO_COUNTS: dict[str, Any] = {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}


class _Stamped:
    """Mixin for Numba's cache locators: freshness is a digest of all that is compiled, not the time of one file."""

    _function: Callable[..., Any]

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        found = super().from_function(py_func, py_file)  # type: ignore[misc]
        if found is not None:
            found._function = py_func
        return found

    def get_source_stamp(self) -> str:
        return stamp_of(self._function)


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
        type(base.__name__, (_Stamped, *([_Checkout] if "InTree" in base.__name__ else []), base), {})
        for base in CompileResultCacheImpl._locator_classes
    ]
    user_wide = next(base for base in ours if "UserWide" in base.__name__)
    return [*ours, type("TemporaryCacheLocator", (_Temporary, user_wide), {})]


class _Implementation(CompileResultCacheImpl):
    _locator_classes = _locators()


class _PartImplementation(_Implementation):
    def rebuild(self, target_context: Any, payload: Any) -> Any:
        return rebuilt(target_context, payload)


class _SealedFiles(IndexDataCacheFile):
    """The files of a cache: each ends with a checksum, of its name and version too; without it nothing is unpickled."""

    @contextlib.contextmanager
    def _open_for_write(self, path: str) -> Iterator[Any]:
        with super()._open_for_write(path) as file:
            yield (written := io.BytesIO())
            file.write(written.getvalue() + self._seal(path, written.getvalue()))

    def _seal(self, path: str, content: bytes) -> bytes:
        named = f"{os.path.basename(path)} {self._version}".encode()
        return hashlib.blake2b(content, digest_size=SEAL, key=hashlib.blake2b(named).digest()).digest()

    def _is_whole(self, path: str) -> bool:
        try:
            found = Path(path).read_bytes()
        except OSError:
            return False
        return found[-SEAL:] == self._seal(path, found[:-SEAL])

    def _load_index(self) -> Any:
        return super()._load_index() if self._is_whole(self._index_path) else {}  # type: ignore[no-untyped-call]

    def _load_data(self, name: str) -> Any:
        whole = self._is_whole(os.path.join(self._cache_path, name))
        return super()._load_data(name) if whole else None  # type: ignore[no-untyped-call]


class _Cache(FunctionCache):
    """Numba's cache of a function; it knows the fields of structs, by whose places compiled code reads them."""

    _impl_class: type[_Implementation] = _Implementation

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), tuple(_fields(sig)))  # type: ignore[no-untyped-call]


class _PartCache(_Cache):
    _impl_class = _PartImplementation


def _fields(kind: Any) -> Iterator[Any]:
    """The names of the fields of all structs in a type."""
    for one in kind if isinstance(kind, tuple) else getattr(kind, "types", ()):
        yield from _fields(one)
    if hasattr(kind, "fields") and hasattr(kind, "types"):
        yield kind.fields


class _Lazy:
    """The cache of a function, made when it is first looked at: by then all that the function calls is defined.

    A function that is not in it is compiled next, and the logger reports it.
    """

    def __init__(self, function: Callable[..., Any], kind: type[_Cache]) -> None:
        self.function, self.kind = function, kind

    @functools.cached_property
    def _made(self) -> Any:
        with contextlib.suppress(RuntimeError, OSError):  # no place at all: it is compiled in every process
            cache: Any = self.kind(self.function)
            cache._cache_file.__class__ = _SealedFiles
            # Of an index that other sources have written not even the signatures are read: their types may be gone.
            cache._cache_file._version += f" {cache._cache_file._source_stamp}"
            return cache
        return NullCache()

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            found = self._made.load_overload(signature, context)
            kept = normalize_signature(signature)  # type: ignore[no-untyped-call]
            if found is not None and found.signature.args != kept[0]:
                raise ValueError("two processes have written different kernels to one file")
        except (EOFError, ValueError, AttributeError, ImportError, IndexError, KeyError, TypeError, pickle.PickleError):
            with contextlib.suppress(OSError):
                self._made.flush()
            found = None  # it is written once more
        if found is None:
            _LOGGER.info("compiling %s.%s", self.function.__module__, self.function.__qualname__)
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        result.library._ensure_finalized()
        for one in result._find_referenced_environments():  # with those of parts, which may print
            result.library.codegen.set_env(one.env_name, one)
        with contextlib.suppress(OSError):  # the disk is full, say
            self._made.save_overload(signature, result)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def keep(kernel: Any, function: Callable[..., Any], kind: type[_Cache] = _Cache) -> None:
    """Let a kernel that Numba makes of a function be kept on disk, where there is any place to write to."""
    kernel._cache = _Lazy(function, kind)


def with_summary(compile_it: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """What compiles a kernel that is made of a function; an error of Numba bears the function and a summary."""

    def compiled(*arguments: Any, **keywords: Any) -> Any:
        try:
            return compile_it(*arguments, **keywords)
        except (NumbaError, UnsupportedBytecodeError) as error:
            if not hasattr(error, "function"):
                blamed = getattr(function, "around", function)
                blamed = getattr(blamed, "made_of", blamed)
                vars(error).update(function=blamed, summary=_summary(error, blamed))
            raise

    return compiled


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


def _cached(kernel: Any, function: Callable[..., Any], kind: type[_Cache] = _Cache) -> Any:
    """The kernel that `numba.njit` has made of a function, kept on disk."""
    keep(kernel, function, kind)
    kernel._compile_for_args = with_summary(kernel._compile_for_args, function)  # called for types that are new to it
    return kernel


def jit(function: F, nogil: bool = False) -> F:
    """Compile `function` at its first call, with NumPy's rules for division, and keep the result on disk.

    Args:
        function: what is to be compiled. nogil: whether other threads may run meanwhile.
    """
    return cast(F, _cached(_for_python(function, nogil=nogil), function))


def lean(function: F, nogil: bool = False) -> F:
    """`jit` for kernels that make no arrays: they count no references, so that structures of arrays cost nothing.

    Args:
        function: what is to be compiled. nogil: whether other threads may run meanwhile.
    """
    return cast(F, _cached(_for_python(function, nogil=nogil, **_NO_COUNTS), function))


def part(function: F) -> F:
    """`lean` for a function that kernels call: it is compiled once for all of them, and quicker, for them alone."""
    return cast(F, _cached(_for_kernels(function), function, _PartCache))


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


def _for_python(function: Callable[..., Any], **options: Any) -> Any:
    return _njit(function, pipeline_class=KernelCompiler, no_cfunc_wrapper=True, **options)


def _for_kernels(function: Callable[..., Any], **options: Any) -> Any:
    """A compiled function without what it takes to be called from Python; where it is, it is compiled once more."""
    kernel = _njit(
        function, pipeline_class=PartCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_NO_COUNTS, **options
    )
    from_python = _for_python(function)

    def add_overload(result: Any) -> None:
        kernel.overloads[tuple(result.signature.args)] = result

    def get_call_template(args: Any, kws: Any) -> Any:  # no constant is a type of its own
        return template(tuple(map(numba.types.unliteral, args)), kws)

    template, kernel.get_call_template = kernel.get_call_template, get_call_template
    kernel.add_overload, kernel._compile_for_args = add_overload, from_python._compile_for_args
    return kernel
