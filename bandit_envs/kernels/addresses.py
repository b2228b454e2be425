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

from .floor import PLAIN, Attributes, array_of
from .routines import carray, pointer

Struct = TypeVar("Struct", bound=type[Any])
WORD, POINTER = ir.IntType(64), ir.IntType(8).as_pointer()
NUMBERS: dict[Any, types.Type] = {int: types.int64, float: types.float64, bool: types.boolean}


def scalar_of(array: Any) -> Any:
    """The scalar of an annotation `NDArray[scalar]`, an alias that names a dtype before NumPy 2.5."""
    last = typing.get_args(array)[-1]
    return (typing.get_args(last) or (last,))[0]


class Address(types.Type):
    """The address of a record, as a type of Numba.

    Attributes:
        fields, types: the names of the fields, and the type of each. first: the first word of each, and the end.
    """

    def __init__(self, struct: type[Any], first: int = 0) -> None:
        self.fields, self.types, self.first = struct._fields, list[types.Type](), [first]
        self._forms = list[tuple[np.dtype[Any], int] | None]()  # of arrays
        for hint in typing.get_type_hints(struct, include_extras=True).values():
            kind, form, size = NUMBERS.get(hint), None, 1
            if hasattr(hint, "_fields"):
                kind = Address(hint, self.first[-1])
                size = kind.first[-1] - kind.first[0]
            elif kind is None:
                array, dimensions = typing.get_args(hint) if hasattr(hint, "__metadata__") else (hint, 1)
                form, size = (np.dtype(scalar_of(array)), dimensions), 1 + dimensions
                kind = types.Array(getattr(types, form[0].name), dimensions, "C")
            self.types.append(kind)
            self._forms.append(form)
            self.first.append(self.first[-1] + size)
        for name in self.fields if PLAIN else ():
            _documented(name)
        super().__init__(f"{struct.__qualname__} at {[*zip(self.fields, self.first, self.types, strict=False)]}")

    def words(self, struct: Any) -> list[int]:
        """The record of a struct. A TypeError names a field that has another type."""
        words = list[int]()
        for name, kind, form, value in zip(self.fields, self.types, self._forms, struct, strict=True):
            if form is not None:
                right = type(value) is np.ndarray and (value.dtype is form[0] or value.dtype == form[0])
                if not right or value.ndim != form[1] or not value.flags.carray:
                    wanted = f"a writable array of {form[0]} in C order, of {form[1]} dimensions"
                    raise TypeError(f"{name} must be {wanted}, got {value!r:.200}")
                words += (value.ctypes.data, *value.shape)
            elif isinstance(kind, Address):
                words += kind.words(value)
            else:
                words.append(int(np.float64(value).view(np.int64)) if kind is types.float64 else int(value))
        return words


def arrays_of(one: Any) -> Iterator[np.ndarray[Any, Any]]:
    """All arrays of a struct."""
    if isinstance(one, np.ndarray):
        yield one
    elif isinstance(one, tuple):
        for field in one:
            yield from arrays_of(field)


class _Recorded:
    """What `by_address` adds to a struct."""

    numba_type: Address

    @functools.cached_property
    def record(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The record."""
        return np.array(self.numba_type.words(self))

    @functools.cached_property
    def address(self) -> int:
        """The address of the record."""
        return self.record.ctypes.data

    @functools.cached_property
    def nbytes(self) -> int:
        """How large its arrays are."""
        return sum(array.nbytes for array in arrays_of(self))

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
    address = c.builder.alloca(POINTER)
    c.builder.store(POINTER(None), address)
    number = c.pyapi.object_getattr_string(one, "address")
    with c.builder.if_then(c.builder.icmp_unsigned("!=", number, number.type(None))):
        c.builder.store(c.pyapi.long_as_voidptr(number), address)
        c.pyapi.decref(number)
    return NativeValue(c.builder.load(address), is_error=c.pyapi.c_api_error())  # type: ignore[no-untyped-call]


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
        array, size = array_of(context, builder, inner), np.dtype(str(inner.dtype)).itemsize
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
    infer_getattr(_Fields)  # type: ignore[no-untyped-call]
    lower: Any = lower_getattr_generic(Address)  # type: ignore[no-untyped-call]
    lower(_read)
