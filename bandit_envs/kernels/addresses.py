"""Structs that compiled code is handed by one address, so that neither kernels nor parts take all fields apart.

`by_address` is for the class of a struct of arrays, numbers and structs. Each of its objects has a record of 64-bit
words: numbers, and the address and shape of each array. Compiled code reads from it the fields that it names; for the
others nothing is compiled. Neither a struct nor its record ever changes, so that a field is read once.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    overload_attribute,
    register_model,
    typeof_impl,
    unbox,
)

from .floor import PLAIN, Attributes
from .routines import carray, pointer

Struct = TypeVar("Struct", bound=type[Any])
WORD = ir.IntType(64)
NUMBERS: dict[Any, types.Type] = {int: types.int64, float: types.float64, bool: types.boolean}


class Address(types.Type):
    """The address of a record, as a type of Numba.

    Attributes:
        fields, types: the names of the fields, and the type of each. first: the first word of each, and the end.
    """

    def __init__(self, struct: type[Any], first: int = 0) -> None:
        self.fields, self.types, self.first = struct._fields, list[types.Type](), [first]
        for hint in typing.get_type_hints(struct, include_extras=True).values():
            kind, end = _kind(hint, self.first[-1])
            self.types.append(kind)
            self.first.append(end)
        for name in self.fields if PLAIN else ():
            _documented(name)
        super().__init__(f"{struct.__qualname__} at {[*zip(self.fields, self.first, self.types, strict=False)]}")

    def words(self, struct: Any) -> Iterator[int]:
        """The record of a struct. A TypeError names a field that has another type."""
        for name, kind, value in zip(self.fields, self.types, struct, strict=True):
            if isinstance(kind, Address):
                yield from kind.words(value)
            elif isinstance(kind, types.Array):
                right = isinstance(value, np.ndarray) and value.dtype.isnative and value.flags.carray
                if not right or (value.dtype.name, value.ndim) != (str(kind.dtype), kind.ndim):
                    wanted = f"a writable array of {kind.dtype} in C order, of {kind.ndim} dimensions"
                    raise TypeError(f"{name} must be {wanted}, got {value!r:.200}")
                yield from (value.ctypes.data, *value.shape)
            else:
                yield int(np.float64(value).view(np.int64)) if kind is types.float64 else int(value)


def _kind(hint: Any, first: int) -> tuple[types.Type, int]:
    """The type of a field by its annotation, and the word after it."""
    if hint in NUMBERS:
        return NUMBERS[hint], first + 1
    if hasattr(hint, "_fields"):
        inner = Address(hint, first)
        return inner, inner.first[-1]
    array, dimensions = typing.get_args(hint) if hasattr(hint, "__metadata__") else (hint, 1)
    element = typing.get_args(typing.get_args(array)[1])[0]
    return types.Array(getattr(types, element.__name__), dimensions, "C"), first + 1 + dimensions


class _Recorded:
    """What `by_address` adds to a struct."""

    numba_type: Address

    @functools.cached_property
    def record(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The record."""
        return np.array([*self.numba_type.words(self)], np.int64)

    @functools.cached_property
    def address(self) -> int:
        """The address of the record."""
        return self.record.ctypes.data

    def __reduce__(self) -> Any:
        return type(self), (*self,)  # type: ignore[misc]  # without the record


def by_address(struct: Struct) -> Struct:
    """Of the class of a struct, whose fields are annotated: its objects are handed to compiled code by address.

    An array has one dimension, or as many as `Annotated[array, dimensions]` says, and is writable and in C order; a
    number is of the type int, float or bool. Compiled code cannot make such a struct.
    """
    kind = Address(struct)
    names = {"__module__": struct.__module__, "__qualname__": struct.__qualname__, "__doc__": struct.__doc__}
    made: Any = type(struct.__name__, (_Recorded, struct), {**names, "numba_type": kind})
    typeof_impl.register(made)(lambda one, context: kind)  # type: ignore[no-untyped-call]
    return made  # type: ignore[no-any-return]


register_model(Address)(models.OpaqueModel)


@unbox(Address)  # type: ignore[no-untyped-call]
def _unbox(kind: Address, one: Any, c: Any) -> NativeValue:
    number = c.pyapi.object_getattr_string(one, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address, is_error=c.pyapi.c_api_error())  # type: ignore[no-untyped-call]


class _Fields(Attributes):
    """The types of fields, as Numba asks for them."""

    key = Address

    def generic_resolve(self, kind: Address, name: str) -> types.Type | None:
        """The type of a field."""
        return kind.types[kind.fields.index(name)] if name in kind.fields else None


def _read(context: Any, builder: Any, kind: Address, address: Any, name: str) -> Any:
    """A field, from its words."""
    place = kind.fields.index(name)
    first, inner = kind.first[place], kind.types[place]
    if isinstance(inner, Address):
        return address  # its words are counted from the same place

    def word(i: int) -> Any:
        return _word(first + i, context, builder, address)

    def packed(values: list[Any]) -> Any:
        whole = ir.Constant(ir.ArrayType(WORD, len(values)), None)
        return functools.reduce(lambda a, i: builder.insert_value(a, values[i], i), range(len(values)), whole)

    if isinstance(inner, types.Array):
        array, size = context.make_array(inner)(context, builder), np.dtype(str(inner.dtype)).itemsize
        shape = [word(1 + d) for d in range(inner.ndim)]
        strides = [functools.reduce(builder.mul, shape[d + 1 :], WORD(size)) for d in range(inner.ndim)]
        array.data, array.itemsize = builder.inttoptr(word(0), array.data.type), WORD(size)
        array.nitems = functools.reduce(builder.mul, shape)
        array.shape, array.strides = packed(shape), packed(strides)
        array.meminfo, array.parent = (one.type(None) for one in (array.meminfo, array.parent))
        return array._getvalue()
    if inner is types.float64:
        return builder.bitcast(word(0), ir.DoubleType())
    return builder.icmp_unsigned("!=", word(0), WORD(0)) if inner is types.boolean else word(0)


def _reading(kind: Any, read: Callable[..., Any]) -> Any:
    """A function for compiled code, which reads a number or an address off a record by code of LLVM."""

    @intrinsic
    def reading(typing: Any, one: Any) -> Any:
        return kind(one), lambda context, builder, signature, values: read(context, builder, values[0])

    return reading


@functools.cache
def _documented(name: str) -> None:
    """Let compiled code read the fields of this name, by what Numba documents."""

    @overload_attribute(Address, name)
    def attribute(one):
        place = one.fields.index(name)
        inner, first = one.types[place], one.first[place]
        if not isinstance(inner, types.Array):
            read = _reading(inner, lambda context, builder, address: _read(context, builder, one, address, name))
            return lambda one: read(one)
        words = [_reading(types.int64, functools.partial(_word, first + i)) for i in range(1 + inner.ndim)]
        names = {f"word{i}": word for i, word in enumerate(words)} | {"dtype": np.dtype(str(inner.dtype))}
        shape = "".join(f"word{1 + d}(one), " for d in range(inner.ndim))
        place = names | {"carray": carray, "pointer": pointer}
        exec(f"def field(one):\n    return carray(pointer(word0(one)), ({shape}), dtype)", place)
        return place["field"]


def _word(i: int, context: Any, builder: Any, address: Any) -> Any:
    """Word i of a record."""
    loaded = builder.load(builder.gep(builder.bitcast(address, WORD.as_pointer()), [WORD(i)]))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


if not PLAIN:
    infer_getattr(_Fields)
    lower_getattr_generic(Address)(_read)  # type: ignore[no-untyped-call]
