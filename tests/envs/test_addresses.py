"""Structs that compiled code is handed by address: what it reads and writes, what is refused, and how they are kept."""

from __future__ import annotations

import copy
import pickle
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from refusals import refused
from typing_extensions import TypeAliasType

from bandit_envs import Gaussian
from bandit_envs.kernels import kernel, part
from bandit_envs.kernels.addresses import by_address, scalar_of
from bandit_envs.kernels.stamps import _options
from bandit_envs.simulation.simulator import Simulator


class Inner(NamedTuple):
    """Numbers of each type, and an array of two dimensions."""

    yes: bool
    real: float
    whole: int
    square: Annotated[NDArray[np.float64], 2]


@by_address
class Outer(NamedTuple):
    """Arrays before and behind a struct."""

    small: NDArray[np.uint8]
    inner: Inner
    words: NDArray[np.uint64]


@part
def corner(outer):
    return outer.inner.square[len(outer.inner.square) - 1, outer.inner.square.shape[1] - 1]


@kernel
def read(outer: Outer, out):
    """What is in a struct; one of its arrays is written to."""
    inner = outer.inner
    out[0], out[1], out[2] = inner.real, inner.whole, corner(outer)
    out[3] = 1.0 if inner.yes else 0.0
    for i in range(len(outer.small)):
        outer.small[i] += np.uint8(1)
    return outer.words[np.uint64(1)], outer.small.shape[0]


def outer(**fields: Any) -> Outer:
    inner = Inner(True, -0.5, -(2**62), np.arange(12.0).reshape(3, 4))
    return Outer(np.zeros(3, np.uint8), inner, np.array([1, 2**64 - 1], np.uint64))._replace(**fields)


def test_all_fields_are_read_and_arrays_written() -> None:
    one, out = outer(), np.zeros(4)
    for given in (one, copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert read(given, out) == (2**64 - 1, 3)
        assert out.tolist() == [-0.5, -(2.0**62), 11.0, 1.0]
        assert given.small.tolist() == [1, 1, 1]
        one.small[:] = 0
    other = outer(inner=Inner(False, np.inf, 7, np.full((1, 1), 2.5)), small=np.zeros(0, np.uint8))
    assert read(other, out)[1] == 0
    assert out.tolist() == [np.inf, 7.0, 2.5, 0.0]
    assert len(read.compiled.signatures) == 1


FROZEN = np.zeros(2, np.uint64)
FROZEN.setflags(write=False)
BAD = {
    "type": ("small", np.zeros(3, np.int64)),
    "dimensions": ("words", np.zeros((2, 2), np.uint64)),
    "order": ("square", np.zeros((3, 4), order="F")),
    "read-only": ("words", FROZEN),
    "byte order": ("words", np.zeros(2, np.dtype(np.uint64).newbyteorder())),
    "no array": ("small", None),
}


@pytest.mark.parametrize("which", BAD)
def test_arrays_of_another_form_reach_no_machine_code(which: str) -> None:
    (field, value), out = BAD[which], np.zeros(4)
    fields = {"inner": outer().inner._replace(square=value)} if field == "square" else {field: value}
    with refused(field, error=TypeError):
        read(outer(**fields), out)
    assert not out.any()


def test_neither_addresses_nor_records_are_pickled() -> None:
    sim = Simulator(Gaussian([0.1, 0.2]), 3, budget=9, max_pulls=None, full=False, pull_cost=0.0).arrays
    assert sim.address == sim.record.ctypes.data
    assert {"address", "record"} <= vars(sim).keys()
    again = pickle.loads(pickle.dumps(sim))
    assert type(again) is type(sim)
    assert vars(again) == {}
    assert vars(sim._replace(status=sim.status.copy())) == {}


def test_a_cache_knows_how_fields_are_read() -> None:
    """The digest of kernels holds the source that lowers a field."""
    source = b"How functions are compiled"
    assert source not in _options()
    assert b"def _read(context: Any, builder: Any, kind: Address" in _options()


def test_annotations_of_arrays_in_the_spelling_of_each_numpy() -> None:
    T = TypeVar("T", bound=np.generic)
    alias = TypeAliasType("alias", np.ndarray[Any, np.dtype[T]], type_params=(T,))
    for array in (np.ndarray[Any, np.dtype[np.int64]], alias[np.int64], NDArray[np.int64]):
        assert scalar_of(array) is np.int64
