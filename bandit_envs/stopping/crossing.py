"""The cheapest move of one arm of D independent Bernoulli coordinates into the half-spaces of a polyhedron.

The cost is the sum over coordinates of d(m, mu), convex in mu; the least where A mu <= b is that of its dual, concave:
    max over multipliers y >= 0 of sum over d of min_mu (d(m_d, mu) + (y A)_d mu) - y b.
One multiplier after the other is set to where the dual is largest, until none of them changes: what minimises the sum
at that multiplier then meets its row. Whatever the multipliers are, the dual is a bound of the cost from below, so that
a certificate is valid however soon it is stopped.
"""

from __future__ import annotations

import math

from ..kernels.compiled import inlined, part
from .distributions import BERNOULLI, divergence
from .swaps import moved

SWEEPS, HALVINGS = 500, 200
CLOSE = 1e-15  # a sweep that changes the cost by a smaller part of it is the last


@inlined
def crossing_scratch_size(D, M):
    """How many floats `cost_of_entering` needs as scratch."""
    return D + M


@part
def excess(x, row, b, sign, tilt, more):
    """How far the means that minimise the sum, y A being `tilt`, are beyond a row with so much `more` of its y."""
    found = -sign * b
    for d in range(len(x)):
        found += sign * row[d] * moved(BERNOULLI, 1.0, x[d], 1.0, tilt[d] + more * sign * row[d])
    return found


@part
def cost_of_entering(x, rows, b, sign, first, last, scratch):
    """The least cost, of one pull, of moving the mean x (D,) in [0, 1] into {sign rows' x <= sign b}.

    Of rows (D, M) those from `first` to `last` - 1 count; sign -1: their other sides. Scratch: `crossing_scratch_size`.
    """
    D, before, cost = len(x), -1.0, 0.0
    tilt, y = scratch[:D], scratch[D : D + len(b)]
    tilt[:] = 0.0
    y[:] = 0.0
    for _ in range(SWEEPS):
        for j in range(first, last):
            row = rows[:, j]
            least = -sign * b[j]
            for d in range(D):
                least += min(sign * row[d], 0.0)
            if least > 0.0 or (least == 0.0 and excess(x, row, b[j], sign, tilt, 0.0) > 0.0):
                return math.inf  # no mean in [0, 1], or none inside, meets the row
            low, high = -y[j], 1.0
            if excess(x, row, b[j], sign, tilt, low) <= 0.0:
                change = low
            else:
                while excess(x, row, b[j], sign, tilt, high) > 0.0:
                    low, high = high, 2.0 * max(high, 1.0)
                for _ in range(HALVINGS):
                    change = 0.5 * (low + high)
                    if not low < change < high:
                        break
                    if excess(x, row, b[j], sign, tilt, change) > 0.0:
                        low = change
                    else:
                        high = change
                change = low  # never too much: the dual stays a bound
            y[j] += change
            for d in range(D):
                tilt[d] += change * sign * row[d]
        cost = 0.0
        for d in range(D):
            mu = moved(BERNOULLI, 1.0, x[d], 1.0, tilt[d])
            cost += divergence(BERNOULLI, x[d], 1.0, mu) + tilt[d] * mu
        for j in range(first, last):
            cost -= sign * y[j] * b[j]
        if cost - before <= CLOSE * abs(cost):
            break
        before = cost
    return max(cost, 0.0)
