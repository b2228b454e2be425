"""The cost of moving the means of arms: divergences of distributions, and the cheapest move of an arm or a pair.

The cost of a move of an arm from its empirical mean m to mu is w d(m, mu), with a weight w: its number of pulls, or
what a boundary makes of it. Garivier & Kaufmann, COLT 2016, section 2, and Kaufmann & Koolen, JMLR 2021, section 2.

symbols   m empirical mean, mu another one, w weight, v scale of the arm:
          GAUSSIAN   d = (m - mu)^2 / (2 v), v = sigma^2, known; sub-Gaussian arms too
          BERNOULLI  d = m ln(m / mu) + (1 - m) ln((1 - m) / (1 - mu)), means in [0, 1]; any samples in [0, 1]
          STUDENT    d = 1/2 ln(1 + (m - mu)^2 / v), v the empirical variance (divisor N): Gaussian arms of unknown
                     variance, whose best one at mu is v + (m - mu)^2
          BOUNDED    d = (m - mu)^2 / (2 v), v about the variance: how samples in a known range are weighed against each
                     other. What they certify is the matter of `betting`
          PAIRED     of the columns of one table, whose rows are drawn without replacement: the matter of `paired`

An arm of weight 0 moves for nothing. Moves that no instance allows (a Bernoulli mean beyond 0 or 1) cost inf.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..kernels.compiled import inlined, part
from .versions import the_distribution

GAUSSIAN, BERNOULLI, STUDENT, BOUNDED, PAIRED = range(5)
CODES = {"gaussian": GAUSSIAN, "bernoulli": BERNOULLI, "student": STUDENT, "bounded": BOUNDED}
STEPS = 200  # of a root finder, far more than it takes: every second one halves its interval


class Arm(NamedTuple):
    """What an arm has shown."""

    mean: float
    weight: float
    scale: float
    penalty: float  # of a boundary


class Move(NamedTuple):
    """Where two arms i and j are moved to: until mu_i <= a mu_j + b, a > 0, and mu_j >= floor (-inf: none)."""

    a: float
    b: float
    floor: float


@inlined
def divergence(distribution, m, v, mu):
    """d(m, mu); inf where no mean mu is possible."""
    of = the_distribution(distribution)
    if of == STUDENT:
        return 0.5 * math.log1p((m - mu) * (m - mu) / v)
    if of != BERNOULLI:
        return (m - mu) * (m - mu) / (2.0 * v)
    if not 0.0 <= mu <= 1.0:
        return math.inf
    found = 0.0  # from differences: close to m, the quotient of two logarithms would lose its digits
    if m > 0.0:
        found = -m * math.log1p((mu - m) / m) if mu > 0.0 else math.inf
    if m < 1.0:
        found += -(1.0 - m) * math.log1p((m - mu) / (1.0 - m)) if mu < 1.0 else math.inf
    return max(found, 0.0)


@inlined
def arm_cost(distribution, w, m, v, mu):
    """w d(m, mu), 0 for an arm of weight 0."""
    return w * divergence(distribution, m, v, mu) if w > 0.0 else 0.0


@inlined
def slope(distribution, m, v, mu):
    """The derivative of d(m, mu) in mu."""
    of = the_distribution(distribution)
    if of == GAUSSIAN:
        return (mu - m) / v
    if of == STUDENT:
        return (mu - m) / (v + (mu - m) * (mu - m))
    return (mu - m) / (mu * (1.0 - mu)) if mu != m else 0.0


@inlined
def curvature(distribution, m, v, mu):
    """The second derivative of d(m, mu) in mu."""
    of = the_distribution(distribution)
    if of == GAUSSIAN:
        return 1.0 / v
    if of == STUDENT:
        q = (mu - m) * (mu - m)
        return (v - q) / ((v + q) * (v + q))
    return (m / (mu * mu) if m > 0.0 else 0.0) + ((1.0 - m) / ((1.0 - mu) * (1.0 - mu)) if m < 1.0 else 0.0)


@part
def _bernoulli_pair(m, w, n, x, a, b, low, high):
    """The y in [low, high] where w d(m, y) + x d(n, a y + b), convex, is least, of Bernoulli arms.

    The derivative has poles at the ends; times y (1 - y) z (1 - z), z = a y + b, it is a polynomial of degree 3, of
    which Newton's method finds the sign change, with halvings where it would leave the interval.
    """
    y = (w * m + a * x * (n - b)) / (w + a * a * x)
    y = y if low < y < high else 0.5 * (low + high)  # inside, where the polynomial has no other roots
    for step in range(STEPS):
        z = a * y + b
        left, right = y * (1.0 - y), z * (1.0 - z)
        value = w * (y - m) * right + a * x * (z - n) * left
        rise = w * right + w * (y - m) * (1.0 - 2.0 * z) * a + a * a * x * left + a * x * (z - n) * (1.0 - 2.0 * y)
        if value < 0.0:
            low = y
        elif value > 0.0:
            high = y
        else:
            return y
        after = y - value / rise if rise != 0.0 else low
        if not low < after < high or step % 8 == 7:
            after = 0.5 * (low + high)
        if after == y or abs(after - y) <= 1e-16 * abs(y) or high - low <= 1e-16 * high:
            return after
        y = after
    return y


@part
def _student_pair(m, w, v, g, x, u, low, high):
    """The y in [low, high] where w/2 ln(1 + (y - m)^2 / v) + x/2 ln(1 + (y - g)^2 / u) is least.

    The derivative changes its sign where a polynomial of degree 3 does, at most three times: a root is looked for in
    each of the pieces in which that is monotone, and the better minimum taken.
    """
    gap = g - m
    c0, c1 = -x * gap * v, w * (u + gap * gap) + x * v  # of the powers of t = y - m
    c2, c3 = -2.0 * w * gap - x * gap, w + x
    bottom, top = low - m, high - m
    turn = c2 * c2 - 3.0 * c3 * c1
    first = last = top
    if turn > 0.0:
        root = math.sqrt(turn)
        first = min(max((-c2 - root) / (3.0 * c3), bottom), top)
        last = min(max((-c2 + root) / (3.0 * c3), bottom), top)
    best, least = bottom, math.inf
    # The roots in the three pieces in which the polynomial is monotone, and the ends.
    for start, end in ((bottom, first), (first, last), (last, top), (bottom, bottom), (top, top)):
        left, right, t = start, end, start
        if left < right:
            at_left = ((c3 * left + c2) * left + c1) * left + c0
            at_right = ((c3 * right + c2) * right + c1) * right + c0
            if (at_left > 0.0) == (at_right > 0.0):
                continue
            rising = at_right > at_left
            t = 0.5 * (left + right)
            for step in range(STEPS):
                value = ((c3 * t + c2) * t + c1) * t + c0
                rise = (3.0 * c3 * t + 2.0 * c2) * t + c1
                if (value > 0.0) == rising:
                    right = t
                else:
                    left = t
                after = t - value / rise if rise != 0.0 else left
                if not left < after < right or step % 8 == 7:
                    after = 0.5 * (left + right)
                if abs(after - t) <= 1e-16 * abs(t) or right - left <= 1e-16 * abs(right):
                    break
                t = after
        far = t - gap
        value = w * math.log1p(t * t / v) + x * math.log1p(far * far / u)
        if value < least:
            best, least = t, value
    return best + m


@part
def pair_cost(distribution, lower, raised, move):
    """The cheapest `Move` of two arms: of i, which is lowered, and j, which is raised, each an `Arm`.

    Returns the cost, and mu_j; mu_i is min(mean of i, a mu_j + b).
    """
    of = the_distribution(distribution)
    a, b, floor = move
    m, x, u, n, w, v = lower.mean, lower.weight, lower.scale, raised.mean, raised.weight, raised.scale
    low, high = max(n, floor), (m - b) / a
    if of == BERNOULLI:
        low = max(low, -b / a)
        if low > 1.0:
            return math.inf, low
    if high <= low:  # arm i may stay
        return arm_cost(distribution, w, n, v, low) if low > n else 0.0, low
    if of == BERNOULLI:
        high = min(high, 1.0)
    if w <= 0.0 and high >= floor:
        return 0.0, high
    if x <= 0.0:
        return arm_cost(distribution, w, n, v, low) if low > n else 0.0, low
    if of == BERNOULLI:
        y = _bernoulli_pair(n, w, m, x, a, b, low, high)
    elif of == STUDENT:
        y = _student_pair(n, w, v, (m - b) / a, x, u / (a * a), low, high)
    else:
        y = (w * n / v + a * x * (m - b) / u) / (w / v + a * a * x / u)
        y = min(max(y, low), high)
    return arm_cost(distribution, w, n, v, y) + arm_cost(distribution, x, m, u, a * y + b), y
