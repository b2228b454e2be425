"""Compilation of the numeric kernels: Numba, compiled at first call, kept on disk, see `kept`.

An error of Numba has two attributes more. `function` is the function that it could not compile, or that a kernel was
made of. `summary` is a sentence with the function, its line and the reason: Numba's own text has pages.

Before a kernel that is in no cache is compiled, the logger "bandit_envs.kernels.compiled" names it at level INFO.

`lean` is `jit` for kernels that make no arrays. `part`, `inlined` and `view` are for functions that kernels call. In
plain mode, see `floor`, all of them are what `numba.njit` makes of a function.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba.extending import typeof_impl

from . import floor
from .kept import NUMBA, compiling, folder_of
from .stamps import stamp_of

if NUMBA.config.DISABLE_JIT:
    raise ImportError("bandit_envs is compiled by Numba, which NUMBA_DISABLE_JIT=1 forbids: unset it")

F = TypeVar("F", bound=Callable[..., Any])
_LOCK = threading.RLock()


def jit(function: F, nogil: bool = False) -> F:
    """Compile `function` at its first call, with NumPy's rules for division, and keep the result on disk.

    `nogil`: whether other threads may run meanwhile.
    """
    return cast(F, _for_python(function, nogil=nogil, **floor.KERNEL))


def lean(function: F, nogil: bool = False) -> F:
    """`jit` for kernels that make no arrays: they count no references, so that structures of arrays cost nothing."""
    return cast(F, _for_python(function, nogil=nogil, **floor.LEAN))


def part(function: F) -> F:
    """`lean` for a function that kernels call: it is compiled once for all of them, and quicker, for them alone."""
    return cast(F, _marked(_for_kernels(function, floor.PART), part))


def inlined(function: F) -> F:
    """Compile `function` into its compiled callers, so that a loop over it can be vectorised.

    It returns numbers, or tuples of them; what returns arrays is a `view`.
    """
    return cast(F, _marked(_for_kernels(function, floor.INLINED), inlined))


def view(function: F) -> F:
    """`inlined` for a function that returns parts of its arguments: slices of arrays, or tuples of arrays."""
    return cast(F, _marked(_njit(function, inline="always"), view))


def _marked(made: Any, decorator: Callable[..., Any]) -> Any:
    """What a decorator has made, which says by which; versions of it are made by the same."""
    made.decorator = decorator
    return made


def _njit(function: Callable[..., Any], **options: Any) -> Any:
    made = NUMBA.njit(error_model="numpy", **options)(function)
    made.options = _text_of(options)
    return made


def _text_of(options: dict[str, Any]) -> str:
    """Options of Numba in words, for stamps."""
    return repr(sorted(options.items()))


def _for_python(function: Callable[..., Any], **options: Any) -> Any:
    if not floor.PLAIN:
        return _njit(function, **options)
    return _Twofold(function, options, lambda: _njit(function, **options), lambda: _Late(function, options))


def _for_kernels(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A compiled function without what it takes to be called from Python; where it is, it is compiled once more."""
    if floor.PLAIN:
        return _njit(function, **options)

    def inner() -> Any:
        return floor.unliteral(_njit(function, **options))

    return _Twofold(function, options, inner, lambda: _njit(function, **floor.KERNEL))


class _Twofold:
    """A function that is compiled in one manner for kernels, and in another to be called from Python.

    Each is made when it is first asked for: that takes time, and a process that finds its kernels on disk needs few.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        inner: Callable[[], Any],
        outer: Callable[[], Callable[..., Any]],
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._inner, self._outer, self.options = function, inner, outer, _text_of(options)

    @functools.cached_property
    def inner(self) -> Any:
        """What kernels call."""
        return self._inner()

    @functools.cached_property
    def outer(self) -> Callable[..., Any]:
        """What Python calls."""
        return self._outer()

    def __call__(self, *given: Any) -> Any:
        return self.outer(*given)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


@typeof_impl.register(_Twofold)
def _type_of_twofold(twofold: _Twofold, context: Any) -> Any:
    return NUMBA.typeof(twofold.inner)


class _Late:
    """A function in plain mode, compiled by Numba's dispatcher at its first call, when all that it calls is defined.

    There is a dispatcher for each set of structs, as Numba's cache does not know their fields.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options, self.made = function, options, dict[Any, Any]()

    def __call__(self, *given: Any) -> Any:
        key = tuple(map(form_of, given))
        if (found := self.made.get(key)) is not None:
            return found(*given)
        structs = "".join(map(_named, given))
        with _LOCK, compiling(self.function):
            made = self.made.get(structs) or _kept(self.function, structs, self._compiled)
            result = made(*given)
            self.made[structs] = self.made[key] = made
        return result

    def _compiled(self, **cache: bool) -> Any:
        return _njit(self.function, **self.options, **cache)


def callback(function: Callable[..., None], signature: Any, arrays: bool) -> Any:
    """What bears the address of a function that is compiled for C, by this signature, and kept on disk.

    `arrays`: whether it makes arrays, if only of pointers.
    """
    options = floor.KERNEL if arrays else floor.LEAN

    def made(**cache: bool) -> Any:
        return NUMBA.cfunc(signature, nopython=True, error_model="numpy", **options, **cache)(function)

    if not floor.PLAIN:
        return made()
    with _LOCK, compiling(function):
        return _kept(function, str(signature), made)


def _kept(function: Callable[..., Any], kinds: str, made: Callable[..., Any]) -> Any:
    """What is `made` in plain mode, with Numba's cache in a folder of the function's stamp, where there is a place."""
    before, place = NUMBA.config.CACHE_DIR, folder_of(function)
    if place is None or "<locals>" in kinds or "__main__" in kinds:
        return made()
    kinds = hashlib.blake2b((kinds + floor.CHECKED).encode(), digest_size=8).hexdigest()
    NUMBA.config.CACHE_DIR = str(place / "plain" / f"{stamp_of(function)}-{kinds}")
    try:
        return made(cache=True)
    except RuntimeError:  # Numba finds no place
        return made()
    finally:
        NUMBA.config.CACHE_DIR = before


def _named(one: Any) -> str:
    """The classes of structs in an argument, with their fields."""
    if not isinstance(one, tuple):
        return ""
    kind = type(one)
    return f"{kind.__module__}.{kind.__qualname__}{getattr(kind, '_fields', '')}{''.join(map(_named, one))}"


def form_of(one: Any) -> Any:
    """A key of the type of an argument: arguments of one form are read by the same machine code."""
    if isinstance(one, np.ndarray):
        flags = one.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return type(one), one.dtype, one.ndim, order, flags.writeable, flags.aligned
    if isinstance(one, tuple):
        return type(one), *map(form_of, one)
    if isinstance(one, (bool, float, np.generic)):
        return type(one)
    if isinstance(one, int):
        return int, -(2**63) <= one < 2**63
    try:
        return NUMBA.typeof(one)
    except ValueError:  # a type that Numba does not know: its own error will say so
        return type(one)
