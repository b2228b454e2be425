"""Routines: compiled functions that kernels are handed as arguments, by their address.

A kernel that calls a function contains it, and is compiled anew for each such function. A kernel that takes the address
of a routine is compiled once for all routines, and a routine once for all kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

from .compiled import keep, with_summary
from .parts import KernelCompiler

__all__ = ["call_routine", "carray", "pointer", "routine"]

carray: Any = numba.carray  # type: ignore[attr-defined]
_CFunc: Any = CFunc
_CPointer: Any = types.CPointer
_Tuple: Any = types.StarArgTuple


def routine(function: Callable[..., None], *arguments: str | type[Any]) -> Any:
    """Compile a function for arguments of these types, and keep it on disk.

    Args:
        function: what is to be compiled.
        *arguments: "int64", "uint64", "float64"; or with a star, "float64*", for an array, which the function is given
            by its first element, and makes by `carray(first, shape)`; or the class of a struct `by_address`.

    Returns:
        What bears its `address`, which is good for as long as this is kept.
    """
    kinds = [_kind(one) if isinstance(one, str) else one.numba_type for one in arguments]
    made: Any = _CFunc(function, (kinds, types.void), {}, {"nopython": True, "error_model": "numpy"}, KernelCompiler)
    keep(made, function)
    with_summary(made.compile, function)()
    return made


def _kind(name: str) -> Any:
    return _CPointer(getattr(types, name[:-1])) if name[-1] == "*" else getattr(types, name)


@intrinsic
def call_routine(typing: Any, address: Any, *arguments: Any) -> Any:
    """Call the routine at an address: with numbers as they are, and with pointers to the first elements of arrays."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        handed, kinds = [], signature.args[1]
        for i, kind in enumerate(kinds):
            value = builder.extract_value(values[1], i)
            array = isinstance(kind, types.Array)
            handed.append(context.make_array(kind)(context, builder, value).data if array else value)
        called = ir.FunctionType(ir.VoidType(), [value.type for value in handed]).as_pointer()
        builder.call(builder.inttoptr(values[0], called), handed)
        return context.get_dummy_value()

    return types.void(address, _Tuple(arguments)), generate


@intrinsic
def pointer(typing: Any, address: Any) -> Any:
    """The address of an array, an int64, as what `carray` makes the array of."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], context.get_value_type(types.voidptr))

    return types.voidptr(address), generate
