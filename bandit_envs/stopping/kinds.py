"""The alternatives as routines for compiled code, by their kind. Loaded when the first of them is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.compiled import part
from ..kernels.routines import call_routine, carray
from .boundaries import COMMON, D_AT, Given, weighed
from .control import control_nearest
from .levels import all_good_exactly, each_exactly
from .nearest import all_good_nearest, threshold_nearest, top_k_nearest
from .paired import all_good_paired, top_k_paired
from .paired_alone import threshold_paired
from .paired_best import best_paired
from .polyhedral import polyhedral_nearest
from .swaps import swaps_exactly, swaps_level

ANY = 2**40  # floats: how many there are is not asked for


def unpacked(nearest: Any) -> Callable[..., None]:
    """The routine, see `nearest_alternative`, of a function of what is `Given`."""

    def routine(
        pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, scratch: Any, out: Any
    ) -> None:
        given = carray(numbers, size)
        arms = carray(pulls, K), carray(mean, K * np.int64(given[D_AT])), carray(variance, ANY)
        nearest(Given(given, *arms, carray(scratch, ANY), carray(inside, K), carray(out, 2 + 3 * K)))

    routine.__qualname__ = f"{nearest.py_func.__qualname__}.routine"
    return routine


@part
def margins(given):
    """`threshold_nearest` of the margins of a local problem.

    A routine of a `Measure`, at the address COMMON + 3, gives them; where that is 0, they stand in place of means.
    """
    numbers, pulls, mean, _, work, inside, out = given
    K, decided = len(pulls), True
    found = work[5 * K : 6 * K]
    if numbers[COMMON + 3] != 0.0:
        call_routine(np.int64(numbers[COMMON + 3]), pulls, mean, K, numbers[COMMON + 4 :], found)
    else:
        for i in range(K):
            found[i] = mean[i]
    for i in range(K):
        decided &= found[i] > -math.inf
        found[i] = found[i] if found[i] > -math.inf else 0.0
        work[2 * K + i], work[3 * K + i], work[4 * K + i] = weighed(numbers, pulls, found, found, i)
    threshold_nearest(Given(numbers, pulls, found, found, work, inside, out), True)
    if not decided:
        out[0] = -math.inf


KINDS = {
    "threshold": threshold_nearest,
    "top-k": top_k_nearest,
    "all-good": all_good_nearest,
    "each": each_exactly,
    "swaps": swaps_exactly,
    "sets": swaps_level,
    "all-good-exactly": all_good_exactly,
    "polyhedron": polyhedral_nearest,
    "margins": margins,
    "control": control_nearest,
    "threshold-paired": threshold_paired,
    "polyhedron-paired": threshold_paired,
    "top-k-paired": top_k_paired,
    "best-paired": best_paired,
    "all-good-paired": all_good_paired,
}
