"""Bounds of the statistics of pairs, one arm with all others: vectorised, without logarithms.

Where a bound shows that a pair is not the cheapest, its `pair_value` need not be computed. That saves most of
the work of an agent that looks for the cheapest pair: of 1000 arms, a few pairs are left.

logarithm   Between powers of 2 it lies above its chord, by at most `ABOVE_CHORD`. The bits of a float, read as an
            integer, are the chord.
Bernoulli   What it costs to move the raised arm to y, and the other one to a y + b, is convex in y, F say. At any y, F
            is a bound from above of the least cost; and F - F'^2 / (2 c) is one from below, c one of F'' from below:
            the second derivative of a divergence is 1 at least. A step of Newton's method, from where Gaussian arms
            would go, finds a y at which both are close. Logarithms lie between two of their Pade approximants.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.compiled import inlined, part
from .boundaries import BOUNDARY, MIXTURE, RHO_AT, VARIANCE, distribution_of
from .distributions import BERNOULLI, GAUSSIAN, Arm, Move
from .values import LIKELIHOOD, mixed, scale, shared_cost

LN2, ABOVE_CHORD = math.log(2.0), 0.05967
ROUNDED, TINY = 1e-9, 1e-300  # more than rounding errors amount to; to divide by
FAR_ROUNDED = 2.0**-47  # of a mean, more than what its rounding, and that of a gap, amounts to
INNER = 0.01  # of the interval in which y lies, the share at each end that is left out
# What a bound is made of: the square of the gap, which is the cost of Gaussian arms; the sub-Gaussian mixture; of
# Bernoulli arms, the cost from below or above, or the better one of that and the mixture.
SQUARE, MIXED, BELOW, ABOVE, BOTH_BELOW, BOTH_ABOVE = range(6)


class Arms(NamedTuple):
    """What arms have shown, (K,) each."""

    mean: Any
    weight: Any
    penalty: Any


@inlined
def chord(z):
    """The chord of the logarithm at z > 0."""
    return (np.float64(z).view(np.int64) * 2.0**-52 - 1023.0) * LN2


@inlined
def rise_at_least(m, e):
    """No more than d(m, m + e) of Bernoulli arms; e >= 0."""
    q = 1.0 - m - e
    return 3.0 * (1.0 - m) * e * (2.0 * q + e) / (6.0 * q * (q + e) + e * e + TINY) - e * (6.0 * m + e) / (
        6.0 * m + 4.0 * e + TINY
    )


@inlined
def rise_at_most(m, e):
    """No less than d(m, m + e) of Bernoulli arms; e >= 0."""
    q = 1.0 - m - e
    return (1.0 - m) * e * (6.0 * q + e) / (q * (6.0 * q + 4.0 * e) + TINY) - 3.0 * m * e * (2.0 * m + e) / (
        6.0 * m * (m + e) + e * e + TINY
    )


@inlined
def bernoulli_cost(above, left, right, move):
    """A bound of what the cheapest move of two Bernoulli arms costs; there is no floor. NaN: none."""
    lower, x, raised, w, a, b = left.mean, left.weight, right.mean, right.weight, move.a, move.b
    low = max(raised, -b / a)
    length = max(min((lower - b) / a, 1.0) - low, 0.0)
    bottom, top = low + INNER * length, low + (1.0 - INNER) * length
    y = low + 0.5 * length
    z = a * y + b
    u, v = x * a * y * (1.0 - y), w * z * (1.0 - z)  # in proportion to the weights of Gaussian arms
    y = min(max((v * raised + u * (lower - b)) / (v + a * u + TINY), bottom), top)
    z = a * y + b
    u, v = x * a * y * (1.0 - y), w * z * (1.0 - z)
    slope = v * (y - raised) + u * (z - lower)  # times y (1 - y) z (1 - z), a polynomial
    rise = v + a * u + w * a * (y - raised) * (1.0 - 2.0 * z) + x * a * (z - lower) * (1.0 - 2.0 * y)
    y = min(max(y - (slope / rise if rise > 0.0 else 0.0), bottom), top)
    z = a * y + b
    fall = max(lower - z, 0.0)
    if above > 0.0:
        return w * rise_at_most(raised, y - raised) + x * rise_at_most(1.0 - lower, fall)
    slope = w * (y - raised) / (y * (1.0 - y)) - a * x * fall / (z * (1.0 - z)) if length > 0.0 else 0.0
    short = min(0.5 * slope * slope / (w + a * a * x), abs(slope) * length)
    return w * rise_at_least(raised, y - raised) + x * rise_at_least(1.0 - lower, fall) - short


@inlined
def bound(kind, rho, above, lower, raised, move):
    """A bound of the value of a `Move` whose floor does not matter; above: 1.0, or 0.0 for one from below."""
    found = 0.0
    if kind == SQUARE:
        found = shared_cost(0.0, lower, raised, move)[0] - (lower.penalty + raised.penalty)
    elif kind != MIXED:
        found = bernoulli_cost(above, lower, raised, move) - (lower.penalty + raised.penalty)
    if kind in (MIXED, BOTH_BELOW, BOTH_ABOVE):
        chosen, share = scale(rho, min(lower.weight, raised.weight))
        cost, c, d = shared_cost(chosen, lower, raised, move)
        f, g, h = mixed(chosen, share, lower.weight, raised.weight, c, d)
        cost += 0.5 * (chord(f * f / (g * g * h)) + above * ABOVE_CHORD)
        found = cost if kind == MIXED else max(found + math.log(LIKELIHOOD), cost + math.log(1.0 - LIKELIHOOD))
    return found + (2.0 * above - 1.0) * ROUNDED * (1.0 + abs(found))


@inlined
def pair_bound(numbers, lower, raised, move):
    """A quicker bound from below of one `pair_value`, by squares: no Bernoulli divergence is less. -inf: none.

    It allows for the rounding of means that are far from 0.
    """
    if numbers[BOUNDARY] == MIXTURE or not (move.a > 0.0 and lower.weight > 0.0 and raised.weight > 0.0):
        return -math.inf
    v = 0.25 if distribution_of(numbers) == BERNOULLI else numbers[VARIANCE]
    m = lower.mean - FAR_ROUNDED * (abs(lower.mean) + abs(raised.mean))
    less, more = Arm(m, lower.weight, v, lower.penalty), Arm(raised.mean, raised.weight, v, raised.penalty)
    return bound(SQUARE, 0.0, 0.0, less, more, move)


class Side(NamedTuple):
    """Arms of means base + sign m, and what is looked for of the pairs of one of them, which is lowered."""

    arms: Arms
    arm: int
    base: float
    sign: float
    v: float  # their scale
    rho: float
    move: Move
    need: float


@inlined
def fill(kind, above, side, out):
    """`pair_bounds` of one kind: a loop for each, as one with all of them in it takes several times as long."""
    mean, weight, penalty, base, sign = side.arms.mean, side.arms.weight, side.arms.penalty, side.base, side.sign
    lower = Arm(base + sign * mean[side.arm], weight[side.arm], side.v, penalty[side.arm])
    none, floor = math.inf if above > 0.0 else -math.inf, side.move.floor
    for j in range(len(mean)):
        raised = Arm(base + sign * mean[j], weight[j], side.v, penalty[j])
        found = bound(kind, side.rho, above, lower, raised, side.move) - side.need
        out[j] = found if mean[j] >= floor and weight[j] > 0.0 and found == found else none


@part
def pair_bounds(numbers, arms, arm, is_lowered, move, need, is_above, out):
    """Fill out (K,) with bounds of the `pair_value` of an arm and each other one, less `need`.

    Args:
        numbers: of the distribution and the boundary.
        arms: a struct with the fields of `Arms`.
        arm: which one; whether `is_lowered`, and the others raised, or the other way round.
        move: a `Move`.
        need: what is taken off.
        is_above: bounds from above, else from below; inf or -inf where there is none.
        out: (K,); what stands in it for the arm itself means nothing.
    """
    distribution, mixture = distribution_of(numbers), numbers[BOUNDARY] == MIXTURE
    v, base, sign, above = numbers[VARIANCE] if distribution == GAUSSIAN else 0.25, 0.0, 1.0, 1.0 if is_above else 0.0
    a, b, floor = move
    moves = a > 0.0 and arms.weight[arm] > 0.0 and (is_lowered or arms.mean[arm] >= floor)
    moves = moves and (distribution != BERNOULLI or a + b >= 0.0)
    if (distribution != GAUSSIAN and distribution != BERNOULLI) or not moves:
        out[:] = math.inf if is_above else -math.inf
        return
    if not is_lowered:  # to raise it, and to lower the others, is the other way round in the mirror
        base, sign = 1.0 if distribution == BERNOULLI else 0.0, -1.0
        a, b, floor = 1.0 / a, (b + (a - 1.0) * base) / a, -math.inf
    seen = Arms(arms.mean, arms.weight, arms.penalty)
    side = Side(seen, arm, base, sign, v, numbers[RHO_AT], Move(a, b, floor), need)
    if distribution == GAUSSIAN and mixture:
        fill(MIXED, above, side, out)
    elif distribution == GAUSSIAN:
        fill(SQUARE, above, side, out)
    elif mixture and is_above:
        fill(BOTH_ABOVE, 1.0, side, out)
    elif mixture:
        fill(BOTH_BELOW, 0.0, side, out)
    elif is_above:
        fill(ABOVE, 1.0, side, out)
    else:
        fill(BELOW, 0.0, side, out)
