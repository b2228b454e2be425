"""Layers of small networks in compiled code: loops over vectors of `LANES` numbers, and an exponential for them.

Whether LLVM turns a loop into vector instructions depends on its length, on what it may alias and on the version. Here
vectors are written down: a value of the type `Lanes` is LANES numbers in single or in double precision, one beside the
other, which kernels read with `load`, write with `store` and compute with by `+ - * /`, `muladd` and `most`.
A number beside such a vector stands for LANES equal ones. Each operation is one of IEEE 754, rounded once, and
`muladd` too, so that results are the same on every machine.

The width of a layer is padded to whole vectors by `padded`, with zeros: of which `silu` makes zeros again.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types
from numpy.typing import NDArray

from bandit_envs import inlined

__all__ = [
    "LANES",
    "dense",
    "dense_pair",
    "exponential",
    "further",
    "load",
    "most",
    "muladd",
    "padded",
    "silu",
    "spread",
    "store",
    "total",
    "zeros",
]

LANES = 16  # kernel constants


def padded(weights: NDArray[Any], rows: bool = False) -> NDArray[Any]:
    """Weights (..., outputs) as a contiguous array whose last axis is whole vectors, with zeros at the end.

    Args:
        weights: the array. rows: whether the first axis is to be whole vectors too.
    """
    whole = [rows] * (weights.ndim - 1) + [True]
    more = [(0, -size % LANES if wanted else 0) for size, wanted in zip(weights.shape, whole, strict=True)]
    return np.ascontiguousarray(np.pad(weights, more))


# --- the type ---------------------------------------------------------------------------------------------------------

_extending: Any = extending
_Type: Any = types.Type
_Model: Any = _extending.models.PrimitiveModel
intrinsic = _extending.intrinsic


class Lanes(_Type):
    """The type of a vector of LANES numbers, float32 or float64."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@_extending.register_model(Lanes)
class _Held(_Model):
    """How LLVM holds it."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector(kind))


def _vector(kind: Lanes, of: Any = None) -> Any:
    """LLVM's type of such a vector, or of as many numbers `of` another type."""
    return ir.VectorType(of or {32: ir.FloatType, 64: ir.DoubleType}[kind.dtype.bitwidth](), LANES)


def _equal(builder: Any, kind: Lanes, number: Any) -> Any:
    """LANES times a number of LLVM."""
    one = builder.insert_element(ir.Constant(_vector(kind), ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))


def _lanes_of(arguments: Any) -> Any:
    """The type of a vector among arguments that are vectors of one type and numbers; else None, and Numba refuses."""
    kinds = {kind for kind in arguments if isinstance(kind, Lanes)}
    return kinds.pop() if len(kinds) == 1 else None


def _told(arguments: Any, generate: Any) -> Any:
    """What an intrinsic of vectors tells Numba: its signature and its code; None where there is no vector."""
    kind = _lanes_of(arguments)
    return None if kind is None else (kind(*arguments), generate)


def _cast(context: Any, builder: Any, kinds: Any, values: Any, wanted: Lanes) -> list[Any]:
    """All arguments as vectors."""
    out = []
    for kind, value in zip(kinds, values, strict=True):
        same = isinstance(kind, Lanes)
        out.append(value if same else _equal(builder, wanted, context.cast(builder, value, kind, wanted.dtype)))
    return out


def _fused(builder: Any, kind: Lanes, a: Any, b: Any, c: Any) -> Any:
    """a * b + c of vectors of LLVM, by its own function for that."""
    name, vector = f"llvm.fma.v{LANES}f{kind.dtype.bitwidth}", _vector(kind)
    known = builder.module.globals.get(name)
    called = known or ir.Function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
    return builder.call(called, (a, b, c))


# --- operations -------------------------------------------------------------------------------------------------------


def _operator(symbol: Any, name: str) -> None:
    """Teach Numba an operator: the instruction of this name."""

    @_extending.type_callable(symbol)
    def typed(context: Any) -> Any:
        return lambda a, b: _lanes_of((a, b))

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return getattr(builder, name)(*_cast(context, builder, signature.args, values, signature.return_type))

    for kinds in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        _extending.lower_builtin(symbol, *kinds)(generate)


for _symbol, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _operator(_symbol, _name)


@intrinsic
def load(typing: Any, array: Any, at: Any) -> Any:
    """LANES numbers of a contiguous array, from its flat index `at` on; nobody checks where it ends."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = _place(context, builder, signature, values)
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, at), generate


@intrinsic
def store(typing: Any, array: Any, at: Any, lanes: Any) -> Any:
    """Write a vector where `load` reads one."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _place(context, builder, signature, values), align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, at, lanes), generate


def _place(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """The address of a vector in an array."""
    array, at = signature.args[:2]
    first = context.make_array(array)(context, builder, values[0]).data
    return builder.bitcast(builder.gep(first, [values[1]]), _vector(Lanes(array.dtype)).as_pointer())


@intrinsic
def spread(typing: Any, number: Any) -> Any:
    """LANES times a number."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _equal(builder, signature.return_type, values[0])

    return Lanes(number)(number), generate


@intrinsic
def zeros(typing: Any, lanes: Any) -> Any:
    """LANES times 0, as a vector like this one."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return ir.Constant(_vector(lanes), None)

    return lanes(lanes), generate


@intrinsic
def one(typing: Any, array: Any, at: Any) -> Any:
    """The number of a contiguous array at a flat index; nobody checks where it ends."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.gep(context.make_array(array)(context, builder, values[0]).data, [values[1]]))

    return array.dtype(array, at), generate


@intrinsic
def muladd(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = signature.return_type
        return _fused(builder, kind, *_cast(context, builder, signature.args, values, kind))

    return _told((a, b, c), generate)


@intrinsic
def most(typing: Any, a: Any, b: Any) -> Any:
    """The larger number of each two."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        one, two = _cast(context, builder, signature.args, values, signature.return_type)
        return builder.select(builder.fcmp_ordered(">", one, two), one, two)

    return _told((a, b), generate)


@intrinsic
def total(typing: Any, lanes: Any) -> Any:
    """The sum of a vector: the halves are added until one number is left."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        left, count = values[0], LANES
        while count > 1:
            count //= 2
            order = ir.VectorType(ir.IntType(32), count)
            low, high = (ir.Constant(order, list(range(begin, begin + count))) for begin in (0, count))
            left = builder.fadd(builder.shuffle_vector(left, left, low), builder.shuffle_vector(left, left, high))
        return builder.extract_element(left, ir.Constant(ir.IntType(32), 0))

    return lanes.dtype(lanes), generate


@intrinsic
def _row_of(typing: Any, lanes: Any, j: Any) -> Any:
    """LANES times number j of a vector."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _equal(builder, lanes, builder.extract_element(*values))

    return lanes(lanes, j), generate


# ln 2 in two parts, the first of which times any exponent is exact; how many bits a fraction has, and the bias of
# exponents; the range of arguments; terms of the series.
_SINGLE = (0.693359375, -2.12194440054690583e-4, 23, 127, (-87.0, 88.0), 7)
_DOUBLE = (6.93145751953125e-1, 1.42860682030941723212e-6, 52, 1023, (-708.0, 709.0), 13)


@intrinsic
def exponential(typing: Any, x: Any) -> Any:
    """e^x of each number, to two units in the last place.

    Below -87 (in double precision -708) and above 88 (709) it is that of these bounds. x = n ln 2 + r with n a whole
    number and |r| <= ln 2 / 2: Taylor's series of e^r, and n is added to the exponent.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = signature.return_type
        high, low, fraction, bias, (bottom, top), terms = _SINGLE if kind.dtype.bitwidth == 32 else _DOUBLE
        bits = _vector(kind, ir.IntType(kind.dtype.bitwidth))

        def of(value: float) -> Any:
            return ir.Constant(_vector(kind), [value] * LANES)

        x = builder.select(builder.fcmp_ordered("<", values[0], of(top)), values[0], of(top))
        x = builder.select(builder.fcmp_ordered(">", x, of(bottom)), x, of(bottom))
        large = of(1.5 * 2.0**fraction + bias)  # the unit of such a number is 1, and its last bits are n + bias
        shifted = _fused(builder, kind, x, of(1.0 / math.log(2.0)), large)
        minus = builder.fsub(large, shifted)
        r = _fused(builder, kind, minus, of(low), _fused(builder, kind, minus, of(high), x))
        series = of(1.0 / math.factorial(terms))
        for k in range(terms - 1, -1, -1):
            series = _fused(builder, kind, series, r, of(1.0 / math.factorial(k)))
        power = builder.shl(builder.bitcast(shifted, bits), ir.Constant(bits, [fraction] * LANES))
        return builder.fmul(series, builder.bitcast(power, _vector(kind)))

    return x(x), generate


# --- layers -----------------------------------------------------------------------------------------------------------


@inlined
def silu(x: Any) -> Any:
    """x / (1 + e^-x)."""
    return x / (1.0 + exponential(0.0 - x))


@inlined
def dense(x: Any, begin: Any, inputs: Any, weights: Any, at: Any, s: Any) -> Any:
    """A vector s, plus LANES outputs of a layer: x[begin + j] times weights (inputs, outputs), summed over the inputs.

    Args:
        x: a contiguous array. inputs: how many, from the flat index `begin` on.
        weights: of `padded`. at: the first output.
    """
    outputs, whole = weights.shape[1], inputs - inputs % LANES
    t, u, v = zeros(s), zeros(s), zeros(s)
    for row in range(0, whole, LANES):
        for j in range(row, row + LANES, 4):  # four sums, which do not wait for each other
            s = muladd(one(x, begin + j), load(weights, j * outputs + at), s)
            t = muladd(one(x, begin + j + 1), load(weights, (j + 1) * outputs + at), t)
            u = muladd(one(x, begin + j + 2), load(weights, (j + 2) * outputs + at), u)
            v = muladd(one(x, begin + j + 3), load(weights, (j + 3) * outputs + at), v)
    for j in range(whole, inputs):
        s = muladd(one(x, begin + j), load(weights, j * outputs + at), s)
    return (s + t) + (u + v)


@inlined
def dense_pair(x: Any, begin: Any, other: Any, weights: Any, at: Any, s: Any) -> Any:
    """`dense` of two rows of inputs, so that each weight is read once; the number of inputs is a multiple of LANES."""
    outputs, t = weights.shape[1], s
    for row in range(0, len(weights), LANES):
        for j in range(row, row + LANES):
            w = load(weights, j * outputs + at)
            s, t = muladd(one(x, begin + j), w, s), muladd(one(x, other + j), w, t)
    return s, t


@inlined
def further(x: Any, row: Any, weights: Any, at: Any, s: Any) -> Any:
    """`dense` with a vector of LANES inputs, whose weights begin at a row."""
    outputs = weights.shape[1]
    for j in range(LANES):
        s = muladd(_row_of(x, j), load(weights, (row + j) * outputs + at), s)
    return s
