"""`Kernel`: a compiled function that takes structs whole. A function of a single episode can be made into one.

A struct is a NamedTuple of arrays, numbers and structs. Numba's dispatcher looks at all its fields, one by one, at each
call. A `Kernel` finds the machine code by the forms of its arguments, and the struct of the last call by identity.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import operator
import pickle
import sys
import threading
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import cloudpickle
import numpy as np

from .addresses import arrays_of
from .compiled import form_of, jit, lean, view
from .floor import PLAIN, machine_code

Struct = TypeVar("Struct", bound=type[Any])
LARGE = 2**20  # bytes of an argument that is known by sight, at most
_NAMED: dict[Any, str] = {float: "a number", int: "an integer", bool: "True or False"}
ENTRIES = 256  # so many forms are remembered


class Kernel:
    """A compiled function of structs, arrays and numbers.

    It is compiled for each type, number of dimensions and order of arrays, and once more for those that are read-only.
    Numbers are cast to their declared types, to `int` only integers.

    Args:
        function: what is compiled. one: the function of an algorithm that it was made of, or itself.
        kinds: of each argument its name and annotation. make: makes the kernel of `one`, in another process.
        nogil: whether other threads may run meanwhile. arrays: whether it makes arrays.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        one: Callable[..., Any],
        kinds: Sequence[tuple[str, Any]],
        make: Callable[..., Any],
        nogil: bool = False,
        arrays: bool = False,
    ) -> None:
        functools.update_wrapper(self, one, updated=())
        self.compiled: Any = (jit if arrays else lean)(function, nogil)
        self.function, self.arguments, self._make = one, [name for name, _ in kinds], make
        self.kinds = [kind for _, kind in kinds]
        self._entries: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._call = self._slow_call
        # As a call; but `out`, and structs that are `certain`, which the caller has made, are not looked at.
        self.quick: Callable[..., Any] = self._slow_quick
        self._lock = threading.Lock()

    def __call__(self, *given: Any) -> Any:
        if len(given) != len(self.kinds):
            takes = f"{self.function.__qualname__} takes {', '.join(self.arguments)}"
            raise TypeError(f"{takes}; got {len(given)} arguments")
        return self._call(*given)

    def _slow_call(self, *given: Any) -> Any:
        self._call, entry = self._looked_at(given, (), self._slow_call)
        return entry(*given)

    def _slow_quick(self, *given: Any) -> Any:
        self.quick, entry = self._looked_at(given, self.arguments, self._slow_quick)
        return entry(*given)

    def bound(self, *given: Any) -> Callable[[], Any]:
        """The machine code, bound to these arguments: the quickest call where they stay the same."""
        return functools.partial(self._looked_at(given, (), self)[1], *given)

    def _looked_at(self, given: tuple[Any, ...], certain: Sequence[str], slow: Callable[..., Any]) -> tuple[Any, Any]:
        """The machine code for such arguments, behind a guard, which hands others to `slow`; and without it."""
        forms = tuple(map(form_of, given))
        entry = self._entries.get(forms) or self._found(given, forms)
        return _guarded(entry, slow, given, [name == "out" for name in certain]), entry

    def _found(self, given: tuple[Any, ...], forms: tuple[Any, ...]) -> Callable[..., Any]:
        """The machine code for arguments of types that are new: compiled, or read from the disk."""
        handed = self._cast(given)
        with self._lock:
            if len(self._entries) >= ENTRIES:
                self._entries = {}
            found = machine_code(self.compiled, handed)
            entry = (lambda *whole: found(*self._cast(whole))) if PLAIN else found
            self._entries[forms] = entry
        return entry

    def _cast(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, cast as their annotations say."""
        return tuple(map(annotated, self.arguments, self.kinds, given))

    def __reduce__(self) -> Any:
        found = getattr(sys.modules.get(self.function.__module__), self.function.__qualname__, None)
        if found is self:
            return self.function.__qualname__
        return _remade, (self._make, cloudpickle.dumps(self.function))

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self


def _remade(make: Callable[..., Any], function: bytes) -> Any:
    """A kernel that was pickled."""
    return make(pickle.loads(function))


def _guarded(
    entry: Callable[..., Any], slow: Callable[..., Any], given: tuple[Any, ...], made: list[bool]
) -> Callable[..., Any]:
    """What hands arguments like these to machine code, and all others to `slow`.

    Each array is looked at, and each type, but structs of the last call and those that are `certain`. `made`: of each
    argument whether the caller has made it, and it is certain; empty: nothing is.
    """
    known, sights = list[Any](), list[Any]()

    def keep(i: int, one: Any) -> bool:
        sights[i] = one if sum(array.nbytes for array in arrays_of(one)) <= LARGE else None
        return True

    def look(place: str, one: Any) -> str:
        name = f"k{len(known)}"
        known.append(type(one))
        if isinstance(one, tuple):
            if made and hasattr(type(one), "_is_certain"):
                return "True"
            fields = (look(f"{place}[{i}]", field) for i, field in enumerate(one))
            text = " and ".join([f"type({place}) is {name}", *fields])
            if hasattr(type(one), "_is_fleeting"):
                return text
            i = len(sights)
            sights.append(None)
            keep(i, one)
            return f"({place} is sights[{i}] or {text} and keep({i}, {place}))"
        if isinstance(one, np.ndarray) and one.flags.carray:  # in one piece, aligned, and writeable
            known[-1] = one.dtype
            return f"(x := {place}).dtype is {name} and x.ndim == {one.ndim} and x.flags.carray"
        if isinstance(one, (bool, int, float, np.generic)):
            return f"type({place}) is {name}"
        known[-1] = form_of(one)
        return f"form({place}) == {name}"

    certain = made or [False] * len(given)
    text = " and ".join(look(f"g{i}", one) for i, one in enumerate(given) if not certain[i])
    made_of = _source(text or "True", len(given), len(known))
    return made_of(entry, slow, form_of, keep, sights, *known)  # type: ignore[no-any-return]


@functools.lru_cache(4 * ENTRIES)
def _source(condition: str, given: int, known: int) -> Any:
    """A function of all that a guard names, which makes the guard."""
    names, arguments = (", ".join(f"{letter}{i}" for i in range(n)) for letter, n in (("k", known), ("g", given)))
    place = dict[str, Any]()
    exec(
        f"""def make(entry, slow, form, keep, sights, {names}):
    def guarded({arguments}):
        try:
            fitting = {condition}
        except (AttributeError, IndexError):  # no array, or no tuple, in the place of one
            fitting = False
        return entry({arguments}) if fitting else slow({arguments})
    return guarded
""",
        place,
    )
    return place["make"]


# --- structs ----------------------------------------------------------------------------------------------------------


def fleeting(struct: Struct) -> Struct:
    """Of the class of a struct: it is made for each call, and not kept."""
    struct._is_fleeting = True
    return struct


def certain(struct: Struct) -> Struct:
    """Of the class of a struct: it is `fleeting`, and what makes it has looked at its arrays."""
    struct._is_certain = True
    return fleeting(struct)


@functools.cache
def _kinds_of(struct: Any) -> dict[str, Any] | None:
    """{field: its annotation} of a struct's class; None for other annotations."""
    if not (isinstance(struct, type) and issubclass(struct, tuple) and hasattr(struct, "_fields")):
        return None
    try:
        hints = typing.get_type_hints(struct)
    except NameError:  # of a class within a function
        hints = {}
    return {field: hints.get(field) for field in struct._fields}


def annotated(name: str, kind: Any, one: Any) -> Any:
    """An argument as its annotation says."""
    fields = _kinds_of(kind)
    if fields is not None:
        if not isinstance(one, kind):
            raise TypeError(f"{name} must be of the class {kind.__name__}, got {one!r:.200}")
        return kind(
            *(annotated(f"{name}.{field}", fields[field], value) for field, value in zip(fields, one, strict=True))
        )
    if kind not in _NAMED:
        return one
    try:
        if kind is float and not isinstance(one, str):
            return float(one)
        if kind is int or not isinstance(one, np.bool_):
            return kind(operator.index(one))
        return bool(one)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {_NAMED[kind]}, got {one!r:.200}") from None


# --- kernels of a function of one episode -----------------------------------------------------------------------------


def arguments_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of a function of one episode, but the episode: {name: its annotation, or None}."""
    hints = typing.get_type_hints(function)
    return {name: hints.get(name) for name in list(inspect.signature(function).parameters)[1:]}


def places_of(arguments: Mapping[str, Any]) -> dict[str, str]:
    """{argument: what `assemble` calls it}, so that no name of a user's is one of the body's."""
    return {name: f"given{place}" for place, name in enumerate(arguments)}


def assemble(
    function: Callable[..., Any], name: str, arguments: Mapping[str, Any], body: str, **beside: Any
) -> Callable[..., None]:
    """The source of a kernel around a function, which the body calls `one`, as a function that can be compiled.

    `arguments`: by `places_of`. The body, indented lines, may name what is `beside`.
    """
    place: dict[str, Any] = {**beside, "one": view(function), "uint64": np.uint64}
    place["__name__"] = function.__module__ or "__main__"
    text = f"def kernel({', '.join(arguments)}):\n{body}"
    exec(compile(text, function.__code__.co_filename, "exec"), place)
    made: Callable[..., None] = place["kernel"]
    made.__qualname__ = f"{function.__qualname__}.{name}-{_digest(function)}"
    made.around = function  # type: ignore[attr-defined]
    return made


def _cell(cell: Any) -> str:
    """What a function that was made by another one has from it, as text."""
    try:
        value = cell.cell_contents
    except ValueError:  # it is not set yet
        return ""
    return repr(value) if isinstance(value, (bool, int, float, str)) else getattr(value, "__qualname__", "")


def _digest(function: Callable[..., Any]) -> str:
    """A few letters that distinguish functions of one name in one file."""
    function = getattr(function, "made_of", function)
    code = function.__code__
    constants = [one for one in code.co_consts if not hasattr(one, "co_code")]
    text = repr([*constants, *code.co_names, *map(_cell, function.__closure__ or ())])
    return hashlib.blake2b(code.co_code + text.encode(), digest_size=4).hexdigest()


def kernel(function: Callable[..., Any] | None = None, *, nogil: bool = False, arrays: bool = False) -> Any:
    """The kernel of a function as it stands, whose structs are classes of modules; a decorator, `@kernel(nogil=True)`.

    nogil: whether other threads may run meanwhile. arrays: whether it makes arrays.
    """
    if function is None:
        return functools.partial(kernel, nogil=nogil, arrays=arrays)
    hints = typing.get_type_hints(function)
    kinds = [(name, hints.get(name)) for name in inspect.signature(function).parameters]
    return Kernel(function, function, kinds, kernel, nogil=nogil, arrays=arrays)


def episode_kernel(function: Callable[..., Any]) -> Any:
    """From a function of one episode, `f(e, ...)`, the kernel of a batch, `f(..., out)`, which sets every out[e].

    The function makes no arrays.
    """
    given = arguments_of(function)
    places = places_of(given)
    body = f"""    for episode in range(len(out)):
        e = uint64(episode)
        out[e] = one(e, {", ".join(places.values())})
"""
    arguments = {places[name]: kind for name, kind in given.items()} | {"out": None}
    made = assemble(function, "batch", arguments, body)
    return Kernel(made, function, [*given.items(), ("out", None)], episode_kernel)
