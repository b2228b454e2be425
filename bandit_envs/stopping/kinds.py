"""The alternatives as routines for compiled code, by their kind. Loaded when the first of them is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..kernels.compiled import view
from ..kernels.geometry import scratch_size
from ..kernels.routines import call_routine, carray
from .betting import BETS_SCRATCH
from .boundaries import COMMON, D_AT, LEVELS_SCRATCH, NEEDED, refresh, weighed
from .crossing import crossing_scratch_size
from .levels import each_exactly, left_out_exactly
from .nearest import all_good_nearest, threshold_nearest, top_k_nearest
from .paired import all_good_paired, threshold_paired, top_k_paired
from .polyhedral import polyhedral_nearest
from .swaps import swaps_exactly, swaps_level

__all__ = ["KINDS"]

KINDS: dict[str, Callable[..., None]] = {}


def kind(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A mark of the routine of a kind, of this name."""

    def mark(routine: Callable[..., None]) -> Callable[..., None]:
        KINDS[name] = routine
        return routine

    return mark


@view
def _arrays(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """The arguments of a routine as arrays, in the order of `nearest`: of scalar arms, whose weights are up to date.

    BOUNDED ones have 3 K spreads, and bets are worked out behind the weights in the scratch. Where it only is to be
    decided, weights are brought up to date later.
    """
    given, T, m, v = carray(numbers, size), carray(pulls, K), carray(mean, K), carray(variance, 3 * K)
    work = carray(scratch, 5 * K + BETS_SCRATCH)
    if given[NEEDED] == -math.inf:
        refresh(given, T, m, v, work, 0, K)
    return given, T, m, v, work, carray(inside, K), carray(out, 2 + 3 * K)


@view
def _beyond(scratch, K, size):
    """The scratch behind that of the weights."""
    return carray(scratch, 5 * K + size)[5 * K :]


@kind("threshold")
def _threshold(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`threshold_nearest` as a routine."""
    threshold_nearest(*_arrays(pulls, mean, variance, inside, K, numbers, size, scratch, out))


@kind("top-k")
def _top_k(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`top_k_nearest` as a routine."""
    top_k_nearest(*_arrays(pulls, mean, variance, inside, K, numbers, size, scratch, out))


@kind("all-good")
def _all_good(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`all_good_nearest` as a routine."""
    given, T, m, v, work, A, found = _arrays(pulls, mean, variance, inside, K, numbers, size, scratch, out)
    all_good_nearest(given, T, m, v, work, A, found, False)


@kind("each")
def _each(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`each_exactly` as a routine; what it starts from is the answer of `top_k_nearest`."""
    given, T, m, v, work, A, found = _arrays(pulls, mean, variance, inside, K, numbers, size, scratch, out)
    top_k_nearest(given, T, m, v, work, A, found)
    each_exactly(given, T, m, work, A, found, _beyond(scratch, K, 2 * K + LEVELS_SCRATCH))


@kind("swaps")
def _swaps(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`swaps_exactly` as a routine; what it starts from is the answer of `top_k_nearest`."""
    given, T, m, v, work, A, found = _arrays(pulls, mean, variance, inside, K, numbers, size, scratch, out)
    top_k_nearest(given, T, m, v, work, A, found)
    swaps_exactly(given, T, m, work, A, found, _beyond(scratch, K, 6 * K))


@kind("sets")
def _sets(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`swaps_level` as a routine; what it starts from is the answer of `top_k_nearest`."""
    given, T, m, v, work, A, found = _arrays(pulls, mean, variance, inside, K, numbers, size, scratch, out)
    top_k_nearest(given, T, m, v, work, A, found)
    swaps_level(given, T, m, work, A, found, _beyond(scratch, K, 6 * K))


@kind("all-good-exactly")
def _all_good_exactly(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`all_good_nearest` of the arms in the answer, and `left_out_exactly` of the others, as a routine."""
    given, T, m, v, work, A, found = _arrays(pulls, mean, variance, inside, K, numbers, size, scratch, out)
    all_good_nearest(given, T, m, v, work, A, found, True)
    left_out_exactly(given, T, m, work, A, found, _beyond(scratch, K, 2 * K + LEVELS_SCRATCH))


@kind("polyhedron")
def _polyhedral(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`polyhedral_nearest` as a routine."""
    given = carray(numbers, size)
    D, M = np.int64(given[D_AT]), np.int64(given[COMMON + 3])
    T, m, v = carray(pulls, K), carray(mean, K * D), carray(variance, 3 * K * D)
    work = carray(scratch, 5 * K + D + scratch_size(D, M) + crossing_scratch_size(D, M) + BETS_SCRATCH)
    refresh(given, T, m, v, work, 0, K)
    polyhedral_nearest(given, T, m, v, work, carray(inside, K), carray(out, 2 + 3 * K))


@kind("margins")
def _margins(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`threshold_nearest` of the margins of a local problem.

    A routine of a `Measure`, at the address COMMON + 3, gives them; where that is 0, they stand in place of means.
    """
    given, T = carray(numbers, size), carray(pulls, K)
    work, D = carray(scratch, 6 * K), np.int64(given[D_AT])
    margins, found, decided = work[5 * K :], carray(out, 2 + 3 * K), True
    if given[COMMON + 3] != 0.0:
        call_routine(np.int64(given[COMMON + 3]), T, carray(mean, K * D), K, given[COMMON + 4 :], margins)
    else:
        margins[:] = carray(mean, K)
    for i in range(K):
        decided &= margins[i] > -math.inf
        margins[i] = margins[i] if margins[i] > -math.inf else 0.0
        work[2 * K + i], work[3 * K + i], work[4 * K + i] = weighed(given, T, margins, margins, i)
    threshold_nearest(given, T, margins, margins, work, carray(inside, K), found)
    if not decided:
        found[0] = -math.inf


@view
def _table(pulls, mean, scores, inside, K, numbers, size, scratch, out):
    """The arguments of a routine in the order of `paired`: of the columns of a table, with their scores."""
    given = carray(numbers, size)
    whole = carray(scratch, 5 * K + np.int64(given[size - 5]))
    scores = carray(scores, K * np.int64(given[size - 4]))
    return given, carray(pulls, K), carray(mean, K), scores, whole, carray(inside, K), carray(out, 2 + 3 * K)


@kind("threshold-paired")
def _threshold_paired(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`threshold_paired` as a routine."""
    threshold_paired(*_table(pulls, mean, variance, inside, K, numbers, size, scratch, out))


@kind("top-k-paired")
def _top_k_paired(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`top_k_paired` as a routine."""
    top_k_paired(*_table(pulls, mean, variance, inside, K, numbers, size, scratch, out))


@kind("all-good-paired")
def _all_good_paired(pulls, mean, variance, inside, K, numbers, size, scratch, out):
    """`all_good_paired` as a routine."""
    all_good_paired(*_table(pulls, mean, variance, inside, K, numbers, size, scratch, out))
