"""Routines: compiled functions that kernels are handed as arguments, by their address.

A kernel that calls a function contains it, and is compiled once more for each. A kernel that takes the address of a
routine is compiled once for all routines, and a routine once for all kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic, overload

from .compiled import callback
from .floor import PLAIN, array_of
from .kept import NUMBA

types: Any = NUMBA.types
carray: Any = NUMBA.carray


def routine(function: Callable[..., None], *arguments: Any, arrays: bool = True) -> Any:
    """Compile a function for arguments of these types, and keep it on disk.

    Args:
        function: what is to be compiled.
        *arguments: "int64", "uint64", "float64"; or with a star, "float64*", for an array, which the function is given
            by its first element, and makes by `carray(first, shape)`; the class of a struct `by_address`; or a type.
        arrays: whether the function makes arrays, if only of pointers.

    Returns:
        What bears its `address`, which is good for as long as this is kept.
    """
    kinds = [_kind(one) if isinstance(one, str) else getattr(one, "numba_type", one) for one in arguments]
    return callback(function, types.void(*kinds), arrays)


def _kind(name: str) -> Any:
    kind = getattr(types, name.rstrip("*"))
    return types.CPointer(kind) if name[-1] == "*" else kind


@intrinsic
def call_routine(typing: Any, address: Any, *arguments: Any) -> Any:
    """Call the routine at an address: with numbers as they are, and with pointers to the first elements of arrays."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        handed = [builder.extract_value(values[1], i) for i in range(len(arguments))]
        for i, kind in enumerate(arguments):
            if isinstance(kind, types.Array):
                handed[i] = array_of(context, builder, kind, handed[i]).data
        called = ir.FunctionType(ir.VoidType(), [value.type for value in handed]).as_pointer()
        builder.call(builder.inttoptr(values[0], called), handed)
        return ir.Constant(ir.IntType(64), 0)

    return types.int64(address, types.StarArgTuple(arguments)), generate


if PLAIN:
    _called = call_routine

    def call_routine(address: Any, *arguments: Any) -> None:  # type: ignore[misc]
        """Call the routine at an address: with numbers as they are, and with the addresses of arrays."""

    @overload(call_routine)
    def _call_routine(address: Any, *arguments: Any) -> Any:
        kinds = arguments[0] if isinstance(arguments[0], tuple) else arguments
        data = [f"arguments[{i}]" + ".ctypes.data" * isinstance(kind, types.Array) for i, kind in enumerate(kinds)]
        place = {"_called": _called}
        exec(f"def call(address: Any, *arguments: Any):\n    return _called(address, {', '.join(data)})", place)
        return place["call"]


@intrinsic
def pointer(typing: Any, address: Any) -> Any:
    """The address of an array, an int64, as what `carray` makes the array of."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], ir.IntType(8).as_pointer())

    return types.voidptr(address), generate


@intrinsic
def decided(typing: Any, found: Any) -> Any:
    """A truth value or a number as it is; what is, or may be, anything else, as None, is not compiled."""
    if not isinstance(found, (types.Boolean, types.Number)):
        raise NUMBA.errors.TypingError("no truth value")
    return found(found), lambda context, builder, signature, values: values[0]


def record_pointer(kind: Any) -> Any:
    """The type of LLVM of a record of this type."""
    return ir.ArrayType(ir.IntType(8), kind.size).as_pointer()


def record_at(dtype: Any) -> Any:
    """A function for compiled code: the record of this dtype at an address, an int64."""
    kind = NUMBA.from_dtype(dtype)

    @intrinsic
    def record_at_address(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], record_pointer(kind))

        return kind(address), generate

    return record_at_address
