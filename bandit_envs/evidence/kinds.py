"""The ways to be wrong as routines for compiled code, by their kind. Loaded when the first of them is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiled import view
from ..geometry import room_of
from ..routines import call_routine, carray
from .boundaries import BOUNDARY, COMMON, D_AT, LEVELS_ROOM, NONE, refresh
from .crossing import room_of_crossing
from .decided import all_good_decided, threshold_decided, top_k_decided
from .levels import each_exactly, left_out_exactly
from .nearest import all_good_nearest, threshold_nearest, top_k_nearest
from .polyhedral import polyhedral_nearest
from .swaps import swaps_exactly, swaps_level

__all__ = ["KINDS", "QUICK"]


@view
def _arrays(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> Any:
    """The arguments of a routine as arrays: pulls, mean, variance, inside, numbers, room, out; arms are scalar."""
    return (
        carray(pulls, K), carray(mean, K), carray(variance, K), carray(inside, K), carray(numbers, size),
        carray(room, 5 * K), carray(out, 2 + 3 * K),
    )  # fmt: skip


def _threshold(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`threshold_nearest` as a routine."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    refresh(told, T, m, v, work)
    threshold_nearest(told, T, m, work, A, found)


def _top_k(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`top_k_nearest` as a routine."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    refresh(told, T, m, v, work)
    top_k_nearest(told, T, m, work, A, found)


def _each(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`each_exactly` as a routine."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    refresh(told, T, m, v, work)
    top_k_nearest(told, T, m, work, A, found)
    each_exactly(told, T, m, work, A, found, carray(room, 7 * K + LEVELS_ROOM)[5 * K :])


def _swaps(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`swaps_exactly` as a routine."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    refresh(told, T, m, v, work)
    top_k_nearest(told, T, m, work, A, found)
    swaps_exactly(told, T, m, work, A, found, carray(room, 11 * K)[5 * K :])


def _sets(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`swaps_level` as a routine; the pairs are those of its sets of size 1."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    refresh(told, T, m, v, work)
    top_k_nearest(told, T, m, work, A, found)
    k = np.int64(told[COMMON])
    found[0] -= math.log(float(min(k, K - k))) if told[BOUNDARY] != NONE else 0.0
    swaps_level(told, T, m, work, A, found, carray(room, 11 * K)[5 * K :])


def _all_good_exactly(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`all_good_nearest` of the arms in the answer, and `left_out_exactly` of the others, as a routine."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    refresh(told, T, m, v, work)
    all_good_nearest(told, T, m, work, A, found, True)
    left_out_exactly(told, T, m, work, A, found, carray(room, 7 * K + LEVELS_ROOM)[5 * K :])


def _all_good(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`all_good_nearest` as a routine."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    refresh(told, T, m, v, work)
    all_good_nearest(told, T, m, work, A, found, False)


def _polyhedral(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`polyhedral_nearest` as a routine."""
    told = carray(numbers, size)
    D, M = np.int64(told[D_AT]), np.int64(told[COMMON + 3])
    T, m, v = carray(pulls, K), carray(mean, K * D), carray(variance, K * D)
    work = carray(room, 5 * K + D + room_of(D, M) + room_of_crossing(D, M))
    refresh(told, T, m, v, work)
    polyhedral_nearest(told, T, m, v, work, carray(inside, K), carray(out, 2 + 3 * K))


def _margins(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`threshold_nearest` of the margins that another routine, a `Measure`, tells of a local problem."""
    told, T = carray(numbers, size), carray(pulls, K)
    work = carray(room, 6 * K)
    margins, found, inner = work[5 * K :], carray(out, 2 + 3 * K), told[COMMON + 4 :]
    call_routine(np.int64(told[COMMON + 3]), T, carray(mean, K * np.int64(told[D_AT])), K, inner, margins)
    decided = True
    for i in range(K):
        decided &= margins[i] > -math.inf
        room_of_mean = margins[i] if margins[i] > -math.inf else 0.0
        margins[i] = room_of_mean
    one = told[: COMMON + 4]
    dimensions, one[D_AT] = one[D_AT], 1.0
    refresh(one, T, margins, margins, work)
    one[D_AT] = dimensions
    threshold_nearest(one, T, margins, work, carray(inside, K), found)
    if not decided:
        found[0] = -math.inf


KINDS: dict[str, Callable[..., None]] = {
    "threshold": _threshold,
    "top-k": _top_k,
    "all-good": _all_good,
    "polyhedron": _polyhedral,
    "margins": _margins,
    "each": _each,
    "swaps": _swaps,
    "sets": _sets,
    "all-good-exactly": _all_good_exactly,
}


def _threshold_quickly(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`threshold_decided` as a routine."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    threshold_decided(told, T, m, v, work, A, found)


def _top_k_quickly(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`top_k_decided` as a routine."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    top_k_decided(told, T, m, v, work, A, found)


def _all_good_quickly(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, room: Any, out: Any
) -> None:
    """`all_good_decided` as a routine."""
    T, m, v, A, told, work, found = _arrays(pulls, mean, variance, inside, K, numbers, size, room, out)
    all_good_decided(told, T, m, v, work, A, found)


QUICK: dict[str, Callable[..., None]] = {
    "threshold": _threshold_quickly,
    "top-k": _top_k_quickly,
    "all-good": _all_good_quickly,
}
