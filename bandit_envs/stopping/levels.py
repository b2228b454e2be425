"""Moves of many arms to one level: the cheapest x for an arm i, while others go beyond x as well. Exact, for evidence.

LEFT_OUT   AllGood: i is raised to x, and all others are lowered to at most c x + d: then i is good.
EACH       TopK: i is lowered to x, and the k arms that are cheapest to raise are raised to x + epsilon: then i, in the
           answer, is no longer within epsilon of the k-th best arm.

The cost f(x) is the sum of a part that falls in x and one that rises. It is convex for LEFT_OUT, but for the Student
distribution; else the search is by branch and bound: on [l, h], f >= falling(h) + rising(l), and an interval on which f
is known to be convex is solved by Newton's method.

Convexity. For EACH, f is the least of convex functions, one for each set of k arms; the costs u_a(y) and u_b(y) of
raising two arms to y, once one of them is positive, change their order at most once (Gaussian: their square roots are
lines; Bernoulli: the derivative of the difference has one zero). So a set that is cheapest at both ends of an interval
is so inside. For the Student distribution, the second derivatives are bounded on an interval, and no order is assumed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.compiled import part
from .boundaries import COMMON, LEVELS_SCRATCH, distribution_of
from .distributions import BERNOULLI, STUDENT, arm_cost, curvature, slope
from .nearest import all_good_nearest, arm_at, report, top_k_nearest

LEFT_OUT, EACH = range(2)
DEPTH = LEVELS_SCRATCH // 2  # intervals that wait
CLOSE = 1e-12  # relative error of the least cost


class Search(NamedTuple):
    """Where an alternative is looked for: an arm goes to x, others to c x + d."""

    distribution: int
    mode: int  # LEFT_OUT or EACH
    k: Any  # how many others are raised
    c: float
    d: float
    mean: Any  # (K,)
    scratch: Any  # of the arms, see `nearest`
    u: Any  # (K,) to work in
    chosen: Any  # (K,) the others that move


@part
def others_at(search, i, y):
    """The cost of the other arms at y: of lowering all to it, or of raising the cheapest k, which are marked."""
    distribution, mode, k, _, _, mean, scratch, u, chosen = search
    K, total = len(mean), 0.0
    for a in range(K):
        move = a != i and (mean[a] > y if mode == LEFT_OUT else mean[a] < y)
        u[a] = arm_cost(distribution, scratch[2 * K + a], mean[a], scratch[4 * K + a], y) if move else 0.0
        chosen[a] = 1.0 if mode == LEFT_OUT and a != i else 0.0
        total += u[a]
    if mode == LEFT_OUT:
        return total
    total = 0.0
    for _ in range(k):
        best = -1
        for a in range(K):
            if a != i and chosen[a] == 0.0:
                better = best < 0 or u[a] < u[best] or (u[a] == u[best] and mean[a] > mean[best])
                best = a if better else best
        chosen[best] = 1.0
        total += u[best]
    return total


@part
def _set_holds(search, i, low, high):
    """Whether the arms chosen at `high`, where the costs are u, are the cheapest ones on all of [low, high].

    At most k arms cost nothing at `low`, the k-th largest mean or more: one that is left out must cost more there.
    """
    distribution, _, _, _, _, mean, scratch, u, chosen = search
    K, largest, least = len(mean), -math.inf, math.inf
    for a in range(K):
        if a == i:
            continue
        if chosen[a] > 0.0 and u[a] == math.inf:  # as Bernoulli arms do at 1: others may cost less just below
            return False
        at_low = arm_cost(distribution, scratch[2 * K + a], mean[a], scratch[4 * K + a], low) if mean[a] < low else 0.0
        if chosen[a] > 0.0:
            largest = max(largest, u[a] if distribution == STUDENT else at_low)
        else:
            least = min(least, at_low)
    return largest <= least


@part
def _least_curvature(m, v, low, high, falling):
    """A bound from below of the second derivative, for y in [low, high], of the Student cost of a move across y."""
    near, far = (max(low - m, 0.0), max(high - m, 0.0)) if not falling else (max(m - high, 0.0), max(m - low, 0.0))
    if far == 0.0:
        return 0.0
    p, q = near * near, far * far
    found = min((v - p) / ((v + p) * (v + p)), (v - q) / ((v + q) * (v + q)))
    if p < 3.0 * v < q:
        found = -1.0 / (8.0 * v)
    return min(found, 0.0) if near == 0.0 else found


@part
def _slopes(search, i, x):
    """First and second derivative in x of the cost, with the chosen arms."""
    distribution, mode, _, c, d, mean, scratch, _, chosen = search
    K = len(mean)
    first = second = 0.0
    for a in range(K):
        w, m, v = scratch[2 * K + a], mean[a], scratch[4 * K + a]
        if w > 0.0 and a == i and (m < x if mode == LEFT_OUT else m > x):
            first += w * slope(distribution, m, v, x)
            second += w * curvature(distribution, m, v, x)
        y = c * x + d
        if w > 0.0 and a != i and chosen[a] > 0.0 and (m > y if mode == LEFT_OUT else m < y):
            first += c * w * slope(distribution, m, v, y)
            second += c * c * w * curvature(distribution, m, v, y)
    return first, second


@part
def _own_at(search, i, x):
    """The cost of arm i at x, which it is raised or lowered to."""
    K, m = len(search.mean), search.mean[i]
    move = m < x if search.mode == LEFT_OUT else m > x
    return arm_cost(search.distribution, search.scratch[2 * K + i], m, search.scratch[4 * K + i], x) if move else 0.0


@part
def _solve(search, i, low, high):
    """The x in [low, high] where the cost with the chosen arms, which is convex there, is least."""
    x = 0.5 * (low + high)
    for step in range(400):
        first, second = _slopes(search, i, x)
        if first == 0.0:
            return x
        if first > 0.0:
            high = x
        else:
            low = x
        after = x - first / second if second > 0.0 else low
        if not low < after < high or step % 6 == 5:
            after = 0.5 * (low + high)
        if abs(after - x) <= 1e-16 * abs(x) or high - low <= 4e-16 * max(abs(low), abs(high)):
            return after
        x = after
    return x


@part
def level(search, i, low, high, most, stack):
    """The least cost of a `Search` over x in [low, high], finite, and its x; any number >= most where it is no less.

    `stack`: LEVELS_SCRATCH floats, to work in.
    """
    distribution, mode, _, c, d, mean, scratch, _, chosen = search
    K = len(mean)
    w, m, v = scratch[2 * K + i], mean[i], scratch[4 * K + i]
    best, where, waiting = most, low, 1
    stack[0], stack[1] = low, high
    for end in (low, high):
        value = _own_at(search, i, end) + others_at(search, i, c * end + d)
        if value < best:
            best, where = value, end
    while waiting > 0:
        waiting -= 1
        left, right = stack[2 * waiting], stack[2 * waiting + 1]
        near, far = (left, right) if mode == LEFT_OUT else (right, left)  # where i itself costs least, and most
        bound = _own_at(search, i, near) + others_at(search, i, c * far + d)
        if bound >= best * (1.0 - CLOSE) or not left < right:
            continue
        convex = True
        if mode == EACH:
            others_at(search, i, c * right + d)
            convex = _set_holds(search, i, c * left + d, c * right + d)
        if convex and distribution == STUDENT:
            total = w * _least_curvature(m, v, left, right, mode == EACH)
            for a in range(K):
                if a != i and chosen[a] > 0.0:
                    bend = _least_curvature(mean[a], scratch[4 * K + a], c * left + d, c * right + d, mode == LEFT_OUT)
                    total += c * c * (scratch[2 * K + a] * bend if scratch[2 * K + a] > 0.0 else 0.0)
            convex = total >= 0.0
        x = _solve(search, i, left, right) if convex else 0.5 * (left + right)
        value = _own_at(search, i, x) + others_at(search, i, c * x + d)
        if value < best:
            best, where = value, x
        if not convex and left < x < right and waiting + 2 <= DEPTH:
            stack[2 * waiting], stack[2 * waiting + 1] = left, x
            stack[2 * waiting + 2], stack[2 * waiting + 3] = x, right
            waiting += 2
    return best, where


@part
def each_exactly(given):
    """The evidence for TopK with the criterion "each"; numbers: those of `top_k_nearest`, which fills in the answer."""
    top_k_nearest(given)
    k, epsilon = np.int64(given.numbers[COMMON]), given.numbers[COMMON + 1]
    _exactly(given, EACH, k, 1.0, epsilon, -math.inf, math.inf)


@part
def all_good_exactly(given):
    """The evidence for AllGood: `all_good_nearest` of the arms in the answer, and the search of those left out."""
    all_good_nearest(given, True)
    c, d, bottom = given.numbers[COMMON + 3], given.numbers[COMMON + 4], given.numbers[COMMON + 5]
    _exactly(given, LEFT_OUT, 0, c, d, bottom, given.out[0])


@part
def _exactly(given, mode, k, c, d, bottom, most):
    """Report what costs least of all arms that may be wrong, and less than `most`; else the cost alone, `most`."""
    numbers, mean, scratch, inside, out = given.numbers, given.mean, given.scratch, given.inside, given.out
    K, distribution, work = len(mean), distribution_of(numbers), scratch[5 * len(mean) :]
    chosen, stack = work[K : 2 * K], work[2 * K : 2 * K + LEVELS_SCRATCH]
    search = Search(distribution, mode, k, c, d, mean, scratch, work[:K], chosen)
    best, arm, where = most, -1, 0.0
    for i in range(K):
        if (inside[i] != 0) != (mode == EACH):
            continue
        others_at(search, i, -math.inf)  # of EACH it costs 0, for the k largest means
        low, high = (math.inf, mean[i]) if mode == EACH else (max(mean[i], bottom), -math.inf)
        for a in range(K):
            if mode == EACH:
                low = min(low, mean[a] - d) if chosen[a] > 0.0 else low
            elif a != i:
                high = max(high, (mean[a] - d) / c)
        if distribution == BERNOULLI:
            low, high = max(low, 0.0), min(high, 1.0 - d if mode == EACH else 1.0)
            if mode == EACH and high < 0.0:
                continue
        low, high = (min(low, high), high) if mode == EACH else (low, max(low, high))
        value, x = level(search, i, low, high, best, stack)
        if value < best:
            best, arm, where = value, i, x
    out[0] = best
    if arm >= 0:
        others_at(search, arm, c * where + d)
        _report(search, arm, where, out)


@part
def _report(search, i, x, out):
    """Report arm i, moved to x, and the chosen ones, moved to c x + d."""
    distribution, mode, _, c, d, mean, scratch, _, chosen = search
    K, n, y = len(mean), 0, c * x + d
    for a in range(K):
        if a == i:
            mu = max(mean[a], x) if mode == LEFT_OUT else min(mean[a], x)
        elif chosen[a] > 0.0:
            mu = min(mean[a], y) if mode == LEFT_OUT else max(mean[a], y)
        else:
            continue
        if a == i or mu != mean[a] or scratch[2 * K + a] <= 0.0:
            report(out, K, n, distribution, a, arm_at(mean, scratch, a), mu)
            n += 1
    out[1] = n
