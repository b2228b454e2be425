"""The nearest instance on which an answer of Feasible is wrong: of sub-Gaussian arms of D dimensions.

An arm left out is good where its margin is at least the tolerance: in the polyhedron whose rows are moved inwards by
the tolerance; the distance is that of a projection. An arm in the answer is bad where it lies further than the
tolerance from the polyhedron: the shortest way there leads straight through the nearest face, for the points within
the tolerance of a convex set are bounded by its own faces, moved outwards.

A projection that the active-set method leaves undecided counts as distance 0, which certifies nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import part
from ..geometry import UNDECIDED, margin_of, room_of, unpacked
from .boundaries import BOUNDARY, COMMON, LAW, NONE, enough
from .nearest import report
from .values import arm_value

__all__ = ["polyhedral_nearest"]


@part
def _depth(x: Any, rows: Any, b: Any, unit: Any) -> Any:
    """The distance of a point in a polyhedron from its nearest face."""
    D, M = rows.shape
    least = math.inf
    for j in range(M):
        slack = b[j]
        for d in range(D):
            slack -= rows[d, j] * x[d]
        least = min(least, slack * unit[j])
    return least


@part
def polyhedral_nearest(numbers: Any, pulls: Any, mean: Any, room: Any, inside: Any, out: Any) -> None:
    """Feasible; numbers: COMMON + 0: tolerance; + 1: whether the smaller polyhedron has any points; + 2 ..: both.

    Args:
        numbers: see `Feasible.certifier`. pulls: (K,). mean: (K * D,). room: after 5 K, for projections.
        inside, out: as everywhere.
    """
    K, law, tolerance = len(pulls), numbers[LAW], numbers[COMMON]
    D, M = np.int64(numbers[COMMON + 2]), np.int64(numbers[COMMON + 3])
    size = (M + 2) * (D + 2)
    rows, b, unit, bounds, kind, limit = unpacked(numbers[COMMON + 2 : COMMON + 2 + size])
    few, ends, ones, box, form, most = unpacked(numbers[COMMON + 2 + size : COMMON + 2 + 2 * size])
    y, work = room[5 * K : 5 * K + D], room[5 * K + D : 5 * K + D + room_of(D, M)]
    plug_in = inside[0] < 0
    least, found, way = math.inf, 0, 0.0
    for i in range(K):
        x = mean[i * D : (i + 1) * D]
        margin = margin_of(x, rows, b, unit, bounds, kind, limit, work, y)
        if plug_in:
            inside[i] = pulls[i] > 0 and margin >= 0.0
        if inside[i]:
            distance = _depth(x, rows, b, unit) if margin >= 0.0 else max(margin, -math.inf)
            distance = 0.0 if margin == UNDECIDED else max(distance + tolerance, 0.0)
        elif numbers[COMMON + 1] == 0.0:
            distance = math.inf
        else:
            inner = margin if tolerance == 0.0 else margin_of(x, few, ends, ones, box, form, most, work, y)
            distance = 0.0 if inner == UNDECIDED else max(-inner, 0.0)
        w, v = room[2 * K + i], room[4 * K + i]
        value = arm_value(numbers, w, 0.0, v, room[3 * K + i], distance)
        if value < least:
            least, found, way = value, i, distance
    out[0] = least if numbers[BOUNDARY] == NONE else enough(numbers, least, 1.0) - math.log(float(K))
    out[1] = 1.0
    report(out, K, 0, law, found, 0.0, room[4 * K + found], room[2 * K + found], way)
