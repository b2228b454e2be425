"""`Kernel`: a compiled function that takes structs whole. A function of a single episode can be made into one.

A struct is a NamedTuple of arrays, numbers and structs. Numba's dispatcher looks at all its fields, one by one, at each
call. A `Kernel` finds the types of its arguments by fingerprints, and those of structs of earlier calls by identity. It
calls the machine code itself.
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
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numba._dispatcher import compute_fingerprint
from numba.core import serialize

from .addresses import arrays_of
from .compiled import jit, lean, view

__all__ = ["Kernel", "arguments_of", "assemble", "episode_kernel", "fleeting", "kernel", "slot_kernel"]

Struct = TypeVar("Struct", bound=type[Any])
LARGE = 2**20  # bytes of an argument that is known by sight, at most
_NAMED: dict[Any, str] = {float: "a number", int: "an integer", bool: "True or False"}
_UNKEPT = object()
ENTRIES = 256  # so many fingerprints are remembered


class Kernel:
    """A compiled function of structs, arrays and numbers.

    It is compiled anew for arrays of another type, number of dimensions or order, and for those that are read-only.
    Numbers are cast to their declared types, to `int` only integers. In the place of a struct its fields may stand.

    Args:
        function: what is compiled. one: the function of an algorithm that it was made of, or itself.
        kinds: of each argument its name and annotation. make: makes the kernel of `one`, in another process.
        apart: whether structs that the cache on disk cannot name are handed over field by field, as `assemble` has it.
        nogil: whether other threads may run meanwhile. arrays: whether it makes arrays.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        one: Callable[..., Any],
        kinds: Sequence[tuple[str, Any]],
        make: Callable[..., Any],
        apart: bool = False,
        nogil: bool = False,
        arrays: bool = False,
    ) -> None:
        functools.update_wrapper(self, one, updated=())
        self.compiled: Any = (jit if arrays else lean)(function, nogil)
        self.function, self.arguments, self._make = one, [name for name, _ in kinds], make
        self.kinds = [kind for _, kind in kinds]
        self._apart = apart and any(map(_is_apart, self.kinds))
        self._entries: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._last: tuple[Any, Any, Any] = (), None, None  # arguments that may come again, fingerprints, machine code
        self._quick: tuple[Any, Any] = (), None  # structs of the last quick call by their places, and machine code
        self._types: list[Any] = []  # of arrays of records: a fingerprint holds their addresses
        self._lock = threading.Lock()

    def __call__(self, *given: Any) -> Any:
        last, prints, entry = self._last
        if len(given) != len(last):
            return self._entry(given)(*given)
        for one, before, print_ in zip(given, last, prints, strict=True):
            if one is not before and (before is not _UNKEPT or _fingerprint(one) != print_):
                return self._entry(given)(*given)
        return entry(*given)

    def quick(self, *given: Any) -> Any:
        """As a call, without a look at anything but structs that are not what they were at the last one.

        For callers that make sure of the types of arrays outside of structs, and in structs that are `fleeting`.
        """
        structs, entry = self._quick
        for i, before in structs:
            if given[i] is not before:
                entry = None
        if entry is None:
            entry, kept = self._entry(given), [i for i, one in enumerate(given) if isinstance(one, tuple)]
            kept = [i for i in kept if not hasattr(type(given[i]), "_is_fleeting")]
            if len(given) == len(self.kinds) and all(_lasts(given[i]) for i in kept):
                self._quick = tuple((i, given[i]) for i in kept), entry
        return entry(*given)

    def bound(self, *given: Any) -> Callable[[], Any]:
        """The machine code, bound to these arguments: the quickest call where they stay the same."""
        return functools.partial(self._entry(given), *given)

    def whole(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with a struct wherever its fields were given."""
        rest = deque(given)
        try:
            found = tuple(_take(kind, rest) for kind in self.kinds)
        except IndexError:
            rest.append(None)
        if rest:
            takes = f"{self.function.__qualname__} takes {', '.join(self.arguments)}"
            raise TypeError(f"{takes}; got {len(given)} arguments")
        return found

    def _entry(self, given: tuple[Any, ...]) -> Callable[..., Any]:
        """The machine code for such arguments."""
        if len(given) != len(self.kinds):
            return lambda *flat: self(*self.whole(flat))
        prints = tuple(map(_fingerprint, given))
        entry = self._entries.get(prints) or self._found(given, prints)
        last = (one if _lasts(one) else _UNKEPT for one in given)
        self._last = tuple(last), prints, entry
        return entry

    def _found(self, given: tuple[Any, ...], prints: tuple[Any, ...]) -> Callable[..., Any]:
        """The machine code for arguments of types that are new: compiled, or read from the disk."""
        kinds = list(zip(self.arguments, self.kinds, strict=True))
        flat = any(map(_kinds_of, self.kinds)) and not any(isinstance(one, tuple) for one in given)
        if flat and len(given) == sum(map(_size, self.kinds)):  # the only field of each struct stands in its place
            return lambda *fields: self(*self.whole(fields))
        cast = tuple(_cast(name, kind, one) for (name, kind), one in zip(kinds, given, strict=True))
        with self._lock:
            if len(self._entries) >= ENTRIES:
                self._entries, self._types = {}, []
            found: Callable[..., Any] = self.compiled._compile_for_args(*(self._fields(cast) if self._apart else cast))
            entry = (lambda *whole: found(*self._fields(whole))) if self._apart else found
            self._types += [array.dtype for array in arrays_of(given) if array.dtype.names]
            self._entries[prints] = entry
        return entry

    def _fields(self, given: tuple[Any, ...]) -> list[Any]:
        """The arguments, with the fields of structs that the cache on disk cannot name in their places."""
        return [x for kind, one in zip(self.kinds, given, strict=True) for x in _taken_apart(kind, one)]

    def __reduce__(self) -> Any:
        found = getattr(sys.modules.get(self.function.__module__), self.function.__qualname__, None)
        function: Any = serialize.dumps  # which has no types
        return self.function.__qualname__ if found is self else (_remade, (self._make, function(self.function)))

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self


def _remade(make: Callable[..., Any], function: bytes) -> Any:
    """A kernel that was pickled, made anew."""
    return make(pickle.loads(function))


def _fingerprint(one: Any) -> Any:
    """A key of the type of an argument. For a struct, Numba is quicker with its fields, one by one."""
    try:
        if isinstance(one, tuple):
            return getattr(one, "numba_type", None) or (type(one), *map(compute_fingerprint, one))
        return compute_fingerprint(one), isinstance(one, np.ndarray) and one.dtype.isnative
    except NotImplementedError:  # a type that Numba does not know: its own error will say so
        return type(one)


def _lasts(one: Any) -> bool:
    """Whether an argument is a struct that may be handed over again, and is not too large to be kept until then."""
    if not isinstance(one, tuple) or hasattr(type(one), "_is_fleeting"):
        return False
    size = one.nbytes if hasattr(one, "nbytes") else sum(array.nbytes for array in arrays_of(one))
    return bool(size <= LARGE)


# --- structs ----------------------------------------------------------------------------------------------------------


def fleeting(struct: Struct) -> Struct:
    """Of the class of a struct: it is made anew for each call, and not kept."""
    struct._is_fleeting = True
    return struct


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


@functools.cache
def _is_apart(kind: Any) -> bool:
    """Whether the cache on disk cannot name a struct's class, or that of one within it."""
    fields = _kinds_of(kind)
    if fields is None:
        return False
    named = kind.__module__ != "__main__" and "<locals>" not in kind.__qualname__
    return not named or any(map(_is_apart, fields.values()))


def _size(kind: Any) -> int:
    """How many arguments stand in the place of a struct whose fields are given one by one."""
    fields = _kinds_of(kind)
    return 1 if fields is None else sum(map(_size, fields.values()))


def _taken_apart(kind: Any, one: Any) -> Iterator[Any]:
    """An argument, or the fields of a struct that is handed over field by field."""
    if _is_apart(kind):
        for inner, field in zip((_kinds_of(kind) or {}).values(), one, strict=True):
            yield from _taken_apart(inner, field)
    else:
        yield one


def _take(kind: Any, rest: deque[Any]) -> Any:
    """An argument off the list: a struct, or made of its fields."""
    fields = _kinds_of(kind)
    if fields is None or isinstance(rest[0], kind):
        return rest.popleft()
    return kind(*(_take(inner, rest) for inner in fields.values()))


def _cast(name: str, kind: Any, one: Any) -> Any:
    """An argument as its annotation says."""
    fields = _kinds_of(kind)
    if fields is not None:
        if not isinstance(one, kind):
            raise TypeError(f"{name} must be of the class {kind.__name__}, got {one!r:.200}")
        return kind(*(_cast(f"{name}.{field}", fields[field], value) for field, value in zip(fields, one, strict=True)))
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

    Args:
        function: what is called; it is inlined.
        name: what the kernel is called, after the function.
        arguments: {argument of the kernel, by `places_of`: its annotation}. Structs whose classes the cache on disk
            cannot name, those of a script and of functions, are handed over field by field, and put together inside.
        body: what the kernel does, indented lines.
        **beside: what else the body may name.
    """
    order, built, kinds = list[str](), "", dict[Any, str]()

    def put(name: str, kind: Any) -> str:
        if not _is_apart(kind):
            order.append(name)
            return name
        called = kinds.setdefault(kind, f"Struct{len(kinds)}")
        inner = (put(f"{name}_{field}", one) for field, one in (_kinds_of(kind) or {}).items())
        return f"{called}({', '.join(inner)})"

    for argument, kind in arguments.items():
        if (text := put(argument, kind)) != argument:
            built += f"    {argument} = {text}\n"
    place = {called: kind for kind, called in kinds.items()} | beside | {"one": view(function), "uint64": np.uint64}
    place["__name__"] = function.__module__ or "__main__"
    text = f"def kernel({', '.join(order)}):\n{built}{body}"
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
    cells = [_cell(cell) for cell in function.__closure__ or ()]
    content = (
        code.co_code
        + repr([one for one in code.co_consts if not hasattr(one, "co_code")] + [*code.co_names] + cells).encode()
    )
    return hashlib.blake2b(content, digest_size=4).hexdigest()


def kernel(function: Callable[..., Any] | None = None, *, nogil: bool = False, arrays: bool = False) -> Any:
    """The kernel of a function as it stands, whose structs are classes of modules.

    Args:
        function: the function; None: it is decorated, `@kernel(nogil=True)`. nogil: whether other threads may run.
        arrays: whether it makes arrays.
    """
    if function is None:
        return functools.partial(kernel, nogil=nogil, arrays=arrays)
    hints = typing.get_type_hints(function)
    kinds = [(name, hints.get(name)) for name in inspect.signature(function).parameters]
    return Kernel(function, function, kinds, kernel, nogil=nogil, arrays=arrays)


def episode_kernel(function: Callable[..., Any]) -> Any:
    """From a function of one episode, `f(e, ...)`, the kernel of a batch, `f(..., out)`, which sets every out[e].

    Where an argument is annotated as a NamedTuple, the kernel takes one, or its fields one by one. The function makes
    no arrays.
    """
    given = arguments_of(function)
    places = places_of(given)
    body = f"""    for episode in range(len(out)):
        e = uint64(episode)
        out[e] = one(e, {", ".join(places.values())})
"""
    arguments = {places[name]: kind for name, kind in given.items()} | {"out": None}
    made = assemble(function, "batch", arguments, body)
    return Kernel(made, function, [*given.items(), ("out", None)], episode_kernel, apart=True)


def slot_kernel(function: Callable[..., Any]) -> Any:
    """From a function of one episode, `f(e, ...)`, the kernel `f(slots, ...)` that calls it for each e of slots (S,).

    Arguments and limits are those of `episode_kernel`.
    """
    given = arguments_of(function)
    places = places_of(given)
    body = f"""    for j in range(len(slots)):
        e = uint64(slots[j])
        one(e, {", ".join(places.values())})
"""
    arguments = {"slots": None} | {places[name]: kind for name, kind in given.items()}
    made = assemble(function, "batch", arguments, body)
    return Kernel(made, function, [("slots", None), *given.items()], slot_kernel, apart=True)
