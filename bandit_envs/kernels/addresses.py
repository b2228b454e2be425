"""Structs that compiled code is handed by one address, so that neither kernels nor parts take all fields apart.

A `Record` is of 64-bit words: numbers, the address and shape of each array, and the words of each struct within. Its
`Address` says what is where. Compiled code reads the fields that it names; for the others nothing is compiled. A record
does not change while compiled code reads it, so that a field is read once. `by_address` is for the class of a struct,
each of whose objects has a record; `kind_of` names the fields of any other struct.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.extending import intrinsic, overload_attribute

from .ahead import NUMBERS, scalar_of
from .floor import PLAIN, Attributes, array_of
from .kept import NUMBA
from .routines import carray, pointer, record_pointer

Struct = TypeVar("Struct", bound=type[Any])
WORD, POINTER = ir.IntType(64), ir.IntType(8).as_pointer()


class ArrayKind(NamedTuple):
    """What an array is; of no dimension it is a record of NumPy's."""

    dtype: np.dtype[Any]
    dimensions: int


class StructKind(NamedTuple):
    """What a struct is: ((name, kind), ..), a kind being `int`, `float`, `bool`, an `ArrayKind` or a `StructKind`."""

    fields: tuple[tuple[str, Any], ...]


def _declared(hint: Any) -> Any:
    """The kind that an annotation names."""
    if hint in NUMBERS:
        return hint
    if hasattr(hint, "_fields"):
        hints = typing.get_type_hints(hint, include_extras=True)
        return StructKind(tuple((name, _declared(one)) for name, one in hints.items()))
    array, dimensions = typing.get_args(hint) if hasattr(hint, "__metadata__") else (hint, 1)
    return ArrayKind(np.dtype(scalar_of(array)), dimensions)


def kind_of(value: Any, name: str = "it") -> Any:
    """The kind of a number, an array, or a struct of these. A TypeError names anything else."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        named = zip(value._fields, value, strict=True)
        return StructKind(tuple((one, kind_of(inner, f"{name}.{one}")) for one, inner in named))
    array = type(value) is np.ndarray and value.flags.carray and value.dtype.isnative
    if array and value.dtype.kind in ("biufV" if value.ndim else "V"):
        return ArrayKind(value.dtype, value.ndim)
    for kind, scalars in ((bool, (bool, np.bool_)), (int, (int, np.integer)), (float, (float, np.floating))):
        if isinstance(value, scalars):
            if kind is int and not -(2**63) <= value < 2**63:
                raise OverflowError(f"{name} must be an integer of 64 bits, got {value}")
            return kind
    raise TypeError(f"{name} must be a number, a writable array of numbers in C order, or a struct, got {value!r:.200}")


class Address(types.Type):
    """The address of a record, as a type of Numba.

    Attributes:
        fields, types: the names of the fields, and the type of each. first: the first word of each, and the end.
    """

    def __init__(self, kind: StructKind) -> None:
        self.fields, self.kinds = [name for name, _ in kind.fields], [one for _, one in kind.fields]
        self.types, self.first = list[types.Type](), [0]
        for one in self.kinds:
            size = 1
            if isinstance(one, StructKind):
                inner: Any = address_of(one)
                size = inner.first[-1]
            elif isinstance(one, ArrayKind):
                scalar = NUMBA.from_dtype(one.dtype)
                inner = types.Array(scalar, one.dimensions, "C") if one.dimensions else scalar
                size = 1 + one.dimensions
            else:
                inner = NUMBERS[one]
            self.types.append(inner)
            self.first.append(self.first[-1] + size)
        for name in self.fields if PLAIN else ():
            _documented(name)
        super().__init__(f"record of {[*zip(self.fields, self.first, self.types, strict=False)]}")

    def words(self, values: Any) -> list[int]:
        """The record of a struct, or of the values of its fields. A TypeError names a field that has another type."""
        words = list[int]()
        for name, kind, value in zip(self.fields, self.kinds, values, strict=True):
            if isinstance(kind, ArrayKind):
                right = type(value) is np.ndarray and (value.dtype is kind.dtype or value.dtype == kind.dtype)
                if not right or value.ndim != kind.dimensions or not value.flags.carray:
                    wanted = f"a writable array of {kind.dtype} in C order, of {kind.dimensions} dimensions"
                    raise TypeError(f"{name} must be {wanted}, got {value!r:.200}")
                words += (value.ctypes.data, *value.shape)
            elif isinstance(kind, StructKind):
                words += address_of(kind).words(value)
            else:
                words.append(int(np.float64(value).view(np.int64)) if kind is float else int(value))
        return words


@functools.cache
def address_of(kind: StructKind) -> Address:
    """The type of the address of such a struct's record."""
    return Address(kind)


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
    kind = address_of(_declared(struct))
    names = {"__module__": struct.__module__, "__qualname__": struct.__qualname__, "__doc__": struct.__doc__}
    made: Any = type(struct.__name__, (_Recorded, struct), {**names, "numba_type": kind})
    extending.typeof_impl.register(made)(lambda one, context: kind)  # type: ignore[no-untyped-call]
    return made  # type: ignore[no-any-return]


extending.register_model(Address)(extending.models.OpaqueModel)


@extending.unbox(Address)  # type: ignore[no-untyped-call]
def _unbox(kind: Address, one: Any, c: Any) -> extending.NativeValue:
    address = c.builder.alloca(POINTER)
    c.builder.store(POINTER(None), address)
    number = c.pyapi.object_getattr_string(one, "address")
    with c.builder.if_then(c.builder.icmp_unsigned("!=", number, number.type(None))):
        c.builder.store(c.pyapi.long_as_voidptr(number), address)
        c.pyapi.decref(number)
    return extending.NativeValue(c.builder.load(address), is_error=c.pyapi.c_api_error())  # type: ignore[no-untyped-call]


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
        return _shifted(first, builder, address)

    def word(i: int) -> Any:
        return _word(first + i, context, builder, address)

    def packed(values: list[Any]) -> Any:
        whole = ir.Constant(ir.ArrayType(WORD, len(values)), None)
        return functools.reduce(lambda a, i: builder.insert_value(a, values[i], i), range(len(values)), whole)

    if isinstance(inner, types.Array):
        array, size = array_of(context, builder, inner), kind.kinds[place].dtype.itemsize
        shape = [word(1 + d) for d in range(inner.ndim)]
        strides = [functools.reduce(builder.mul, shape[d + 1 :], WORD(size)) for d in range(inner.ndim)]
        array.data, array.itemsize = builder.inttoptr(word(0), array.data.type), WORD(size)
        array.nitems = functools.reduce(builder.mul, shape)
        array.shape, array.strides = packed(shape), packed(strides)
        array.meminfo, array.parent = (one.type(None) for one in (array.meminfo, array.parent))
        return array._getvalue()
    if isinstance(inner, types.Record):
        return builder.inttoptr(word(0), record_pointer(inner))
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
        inner, first, kind = one.types[place], one.first[place], one.kinds[place]
        if not isinstance(inner, (types.Array, types.Record)):
            read = _reading(inner, lambda context, builder, address: _read(context, builder, one, address, name))
            return lambda one: read(one)
        words = [_reading(types.int64, functools.partial(_word, first + i)) for i in range(1 + kind.dimensions)]
        names = {f"word{i}": word for i, word in enumerate(words)} | {"dtype": kind.dtype}
        shape = "".join(f"word{1 + d}(one), " for d in range(kind.dimensions)) or "1, "
        place = names | {"carray": carray, "pointer": pointer}
        record = "[0]" * (kind.dimensions == 0)
        exec(f"def field(one):\n    return carray(pointer(word0(one)), ({shape}), dtype){record}", place)
        return place["field"]


def _shifted(i: int, builder: Any, address: Any) -> Any:
    """The address of word i of a record."""
    return builder.bitcast(builder.gep(builder.bitcast(address, WORD.as_pointer()), [WORD(i)]), POINTER)


def _word(i: int, context: Any, builder: Any, address: Any) -> Any:
    """Word i of a record."""
    loaded = builder.load(builder.bitcast(_shifted(i, builder, address), WORD.as_pointer()))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


if not PLAIN:
    extending.infer_getattr(_Fields)  # type: ignore[no-untyped-call]
    lower: Any = extending.lower_getattr_generic(Address)  # type: ignore[no-untyped-call]
    lower(_read)
