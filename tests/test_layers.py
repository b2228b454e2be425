"""Vectors of numbers in compiled code: the exponential, the operators, the layers made of them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from agents.learned import layers
from agents.learned.layers import (
    LANES,
    dense,
    exponential,
    load,
    most,
    muladd,
    padded,
    silu,
    spread,
    store,
    total,
)

KINDS = [np.float32, np.float64]


def each(function: Any, *arrays: np.ndarray) -> np.ndarray:
    """A compiled function of vectors, on arrays whose length is a multiple of LANES."""
    out, names = np.empty_like(arrays[0]), [f"x{i}" for i in range(len(arrays))]
    given = ", ".join(f"load({name}, i)" for name in names)
    text = f"def run({', '.join(names)}, out):\n  for i in range(0, len(out), {LANES}): store(out, i, f({given}))"
    place = {"load": load, "store": store, "f": numba.njit(function)}
    exec(text, place)
    numba.njit(place["run"])(*arrays, out)
    return out


@pytest.mark.parametrize(("kind", "low", "high"), [(np.float32, -87, 88), (np.float64, -708, 709)])
def test_the_exponential_is_that_of_numpy(kind, low, high):
    x = np.concatenate([np.linspace(low, high, 2**18), np.linspace(-1, 1, 2**16)]).astype(kind)
    exact = np.exp(x.astype(np.longdouble))
    assert (abs(each(lambda x: exponential(x), x) - exact) <= 2 * np.spacing(exact.astype(kind))).all()
    edges = np.resize([0.0, low, low - 1e3, high, high + 1e3, -np.inf, np.inf, 1.0], LANES).astype(kind)
    near = np.exp(np.clip(edges, low, high).astype(np.longdouble))
    assert (abs(each(lambda x: exponential(x), edges) - near) <= 2 * np.spacing(near.astype(kind))).all()
    assert each(lambda x: exponential(x), edges)[0] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_operators_are_those_of_numpy(kind):
    """Vectors, and numbers beside them."""
    a, b = np.random.default_rng(0).normal(size=(2, 4 * LANES)).astype(kind)
    two = kind(2)
    assert np.array_equal(each(lambda a, b: a + b * a - a / b, a, b), a + b * a - a / b)
    assert np.array_equal(each(lambda a: 2.0 * a - 1 + (a - 2.0) / 2, a), two * a - kind(1) + (a - two) / two)
    assert np.array_equal(
        each(lambda a, b: most(a, b) + most(b, 0.5), a, b), np.maximum(a, b) + np.maximum(b, kind(0.5))
    )
    assert np.array_equal(each(lambda a: spread(kind(3)) + a, a), 3 + a)
    assert each(lambda a, b: muladd(a, b, -1.0), a, b) == pytest.approx(a * b - 1, rel=1e-5)
    exact = a.astype(np.longdouble)
    smooth = exact / (1 + np.exp(-exact))
    assert each(silu.py_func, a) == pytest.approx(smooth.astype(float), rel=8 * float(np.finfo(kind).eps))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 3), (8, 16), (5, 40)])
def test_a_layer_by_hand(kind, inputs, outputs):
    """Small whole numbers: all sums are exact. Zeros behind the outputs of a layer stay zeros."""
    random = np.random.default_rng(0)
    x, weights = random.integers(-4, 5, inputs + 2).astype(kind), random.integers(-4, 5, (inputs, outputs)).astype(kind)
    wide, bias = padded(weights), padded(random.integers(-4, 5, outputs).astype(kind))
    assert wide.shape == (inputs, -(-outputs // LANES) * LANES)
    assert wide.flags.c_contiguous
    out = np.empty(wide.shape[1], kind)

    @numba.njit
    def run(x: Any, wide: Any, bias: Any, out: Any) -> Any:
        sums = kind(0)
        for at in range(0, len(out), LANES):
            s = dense(x, 2, inputs, wide, at, load(bias, at))
            store(out, at, s)
            sums += total(s)
        return sums

    assert run(x, wide, bias, out) == out.sum()
    assert np.array_equal(out[:outputs], x[2:] @ weights + bias[:outputs])
    assert not out[outputs:].any()
    assert not each(silu.py_func, padded(np.zeros(1, kind))).any()


def test_what_is_no_vector_is_refused():
    with pytest.raises(numba.errors.TypingError):
        numba.njit(lambda a: muladd(a, a, a))(1.0)
    assert set(layers.__all__) <= set(vars(layers))
