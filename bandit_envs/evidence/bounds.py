"""Bounds of what pairs of arms are worth, of one arm with all others: vectorised, without logarithms.

Where a bound of `pair_value` already tells that a pair is not the cheapest, it need not be computed, which is most of
the work of an agent that looks for the cheapest pair: of 1000 arms, a few pairs are left.

logarithm   Between powers of 2 it lies above its chord, by at most `ABOVE_CHORD`. The bits of a float, read as an
            integer, are the chord.
Bernoulli   From below: d(m, mu) >= 2 (m - mu)^2 (Pinsker), so that the pair is one of Gaussian arms of variance 1/4.
            From above: any move that the pair allows costs as much or more; that of those Gaussian arms is taken, and
            d(m, mu) <= (m - mu)^2 / (2 least), least the smaller one of m (1 - m) and mu (1 - mu).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import inlined, part
from .boundaries import BOUNDARY, LAW, MIXTURE, RHO_AT, VARIANCE
from .laws import BERNOULLI, GAUSSIAN, STUDENT
from .values import LIKELIHOOD, mixed, scale, shared_cost

__all__ = ["pair_bounds"]

LN2, ABOVE_CHORD = math.log(2.0), 0.05967  # kernel constants
ROUNDED = 1e-9  # kernel constants: more than rounding errors amount to
# What a bound is made of: the square of the gap, which is the cost of Gaussian arms and one from below of Bernoulli
# ones; the sub-Gaussian mixture; of Bernoulli arms, the likelihood's cost from above, or the better one of two.
SQUARE, MIXED, LIKELIHOOD_ABOVE, BOTH_BELOW, BOTH_ABOVE = range(5)  # kernel constants


@inlined
def chord(z: Any) -> Any:
    """The chord of the logarithm at z > 0."""
    return (np.float64(z).view(np.int64) * 2.0**-52 - 1023.0) * LN2


@inlined
def moved_at_most(w: Any, m: Any, mu: Any) -> Any:
    """No less than what it costs to move a Bernoulli arm of weight w from m to mu."""
    least = min(m * (1.0 - m), mu * (1.0 - mu))
    return 0.5 * w * (m - mu) * (m - mu) / least if least > 0.0 else math.inf


@inlined
def bernoulli_at_most(lower: Any, x: Any, raised: Any, w: Any, a: Any, b: Any) -> Any:
    """No less than what the cheapest move of two Bernoulli arms costs."""
    y = max((w * raised + a * x * (lower - b)) / (w + a * a * x), raised)
    return moved_at_most(w, raised, y) + moved_at_most(x, lower, min(lower, a * y + b))


@inlined
def bound(
    kind: Any, rho: Any, v: Any, above: Any, lower: Any, x: Any, p: Any, raised: Any, w: Any, q: Any, a: Any, b: Any
) -> Any:
    """A bound of the value of a pair whose floor does not matter; above: 1.0, or 0.0 for one from below."""
    found = 0.0
    if kind in (LIKELIHOOD_ABOVE, BOTH_ABOVE):
        found = bernoulli_at_most(lower, x, raised, w, a, b) - (p + q)
    elif kind in (SQUARE, BOTH_BELOW):
        found = shared_cost(0.0, lower, x, v, raised, w, v, a, b)[0] - (p + q)
    if kind in (MIXED, BOTH_BELOW, BOTH_ABOVE):
        chosen, share = scale(rho, min(x, w))
        cost, c, d = shared_cost(chosen, lower, x, v, raised, w, v, a, b)
        f, g, h = mixed(chosen, share, x, w, c, d)
        cost += 0.5 * (chord(f * f / (g * g * h)) + above * ABOVE_CHORD)
        found = cost if kind == MIXED else max(found + math.log(LIKELIHOOD), cost + math.log(1.0 - LIKELIHOOD))
    return found + (2.0 * above - 1.0) * ROUNDED * (1.0 + abs(found))


@inlined
def fill(
    kind: Any, rho: Any, v: Any, above: Any, mean: Any, weight: Any, penalty: Any, arm: Any, base: Any, sign: Any,
    a: Any, b: Any, floor: Any, need: Any, out: Any,
) -> None:  # fmt: skip
    """`pair_bounds` of one kind: a loop for each, as one with all of them in it takes several times as long.

    The arm is lowered, of means base + sign m.
    """
    m, x, p, none = base + sign * mean[arm], weight[arm], penalty[arm], math.inf if above > 0.0 else -math.inf
    for j in range(len(mean)):
        n, w, q = base + sign * mean[j], weight[j], penalty[j]
        found = bound(kind, rho, v, above, m, x, p, n, w, q, a, b) - need
        out[j] = found if mean[j] >= floor and w > 0.0 else none


@part
def pair_bounds(
    numbers: Any, mean: Any, weight: Any, penalty: Any, arm: Any, is_lowered: Any, a: Any, b: Any, floor: Any,
    need: Any, is_above: Any, out: Any,
) -> None:  # fmt: skip
    """Fill out (K,) with bounds of the `pair_value` of an arm and each other one, less `need`.

    Args:
        numbers: of the law and the boundary.
        mean, weight, penalty: (K,), of the arms.
        arm: which one; whether `is_lowered`, and the others raised, or the other way round.
        a, b, floor: see `pair_cost`.
        need: what is taken off.
        is_above: bounds from above, else from below; inf or -inf, or NaN, where there is none.
        out: (K,); what stands in it for the arm itself means nothing.
    """
    law, mixture, rho, above = numbers[LAW], numbers[BOUNDARY] == MIXTURE, numbers[RHO_AT], 1.0 if is_above else 0.0
    v, base, sign = numbers[VARIANCE] if law == GAUSSIAN else 0.25, 0.0, 1.0
    if law == STUDENT or not (a > 0.0 and weight[arm] > 0.0 and (is_lowered or mean[arm] >= floor)):
        out[:] = math.inf if is_above else -math.inf
        return
    if not is_lowered:  # to raise it, and to lower the others, is the other way round in the mirror
        base, sign = 1.0 if law == BERNOULLI else 0.0, -1.0
        a, b, floor = 1.0 / a, (b + (a - 1.0) * base) / a, -math.inf
    if law == GAUSSIAN and mixture:
        fill(MIXED, rho, v, above, mean, weight, penalty, arm, base, sign, a, b, floor, need, out)
    elif law == GAUSSIAN or not (mixture or is_above):
        fill(SQUARE, rho, v, above, mean, weight, penalty, arm, base, sign, a, b, floor, need, out)
    elif not is_above:
        fill(BOTH_BELOW, rho, v, above, mean, weight, penalty, arm, base, sign, a, b, floor, need, out)
    elif mixture:
        fill(BOTH_ABOVE, rho, v, above, mean, weight, penalty, arm, base, sign, a, b, floor, need, out)
    else:
        fill(LIKELIHOOD_ABOVE, rho, v, above, mean, weight, penalty, arm, base, sign, a, b, floor, need, out)
