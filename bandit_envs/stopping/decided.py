"""Whether an answer is certified at a given level: quicker than the search for the closest alternative.

The search ends at the first alternative that is not excluded. It begins with that of the last look, and most looks end
there. The others follow in their order, so that each is looked at few times before a certificate.

Each function fills `out`: out[0] inf where the plug-in answer is certified, else -inf, and then an alternative that is
not excluded: its arm i in out[1], its arm j in out[3] (i, where it moves one arm alone), and in out[2] the arm of the
two that has fewer pulls. out[1] and out[3] name, beforehand, the alternative to begin with. The numbers of the problem
are followed by what an alternative's cost less its penalties must reach: of arms in the answer, and of those left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels.compiled import inlined, part
from .betting import bet_arm, bet_pair, bounded_of
from .boundaries import COMMON, DISTRIBUTION, VARIANCE, arm_penalty, enough, refresh
from .distributions import BOUNDED, STUDENT, arm_cost
from .nearest import all_good_inside, best_inside, best_of, paired
from .values import arm_value, pair_value

__all__ = ["all_good_decided", "threshold_decided", "top_k_decided", "wanted"]

AT_MOST = math.log(4.0)  # no value exceeds the cost of its arms by more


@inlined
def weighed(numbers, pulls, mean, variance, i):
    """Weight, penalty and scale of arm i, as `refresh` gives them."""
    N, v = float(pulls[i]), variance[i] if numbers[DISTRIBUTION] == STUDENT else numbers[VARIANCE]
    if N > 0.0 and v > 0.0:
        return N, arm_penalty(numbers, N, mean[i], v), v
    return 0.0, 0.0, v


@inlined
def not_excluded(out, pulls, i, j):
    """The alternative of arms i and j is not excluded."""
    out[0], out[1], out[2], out[3] = -math.inf, i, i if pulls[i] <= pulls[j] else j, j


@inlined
def alone(numbers, pulls, mean, variance, scratch, i, mu):
    """The value of moving arm i to mu, alone."""
    if numbers[DISTRIBUTION] == BOUNDED:
        return bet_arm(numbers, bounded_of(numbers, pulls, mean, variance, i), mu, scratch[5 * len(pulls) :])
    w, p, v = weighed(numbers, pulls, mean, variance, i)
    return arm_value(numbers, w, mean[i], v, p, mu)


@inlined
def lacks(numbers, pulls, mean, variance, scratch, i, j, a, b, floor, needed):
    """Whether the alternative of arm i, which is lowered, and arm j, which is raised, is not excluded."""
    if numbers[DISTRIBUTION] == BOUNDED:
        lower, raised = bounded_of(numbers, pulls, mean, variance, i), bounded_of(numbers, pulls, mean, variance, j)
        return bet_pair(numbers, lower, raised, a, b, floor, needed, scratch[5 * len(pulls) :]) < needed
    x, p, u = prepared(numbers, pulls, mean, variance, scratch, i)
    w, q, v = prepared(numbers, pulls, mean, variance, scratch, j)
    return pair_value(numbers, mean[i], x, u, p, mean[j], w, v, q, a, b, floor) < needed


@part
def threshold_decided(numbers, pulls, mean, variance, scratch, inside, out):
    """Threshold, as `threshold_nearest`."""
    K, needed = len(pulls), numbers[len(numbers) - 1]
    fall, rise, theta = numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2]
    first = np.int64(out[1])
    for s in range(K):
        i = (first + s) % K
        m = mean[i]
        mu = min(m, fall) if pulls[i] > 0 and m >= theta else max(m, rise)
        if alone(numbers, pulls, mean, variance, scratch, i, mu) < needed:
            not_excluded(out, pulls, i, i)
            return
    out[0] = math.inf


@inlined
def is_before(pulls, mean, i, j):
    """Whether arm i ranks before arm j, as `best_inside` ranks them."""
    if pulls[i] == 0 or pulls[j] == 0:
        return pulls[i] > 0 or (pulls[j] == 0 and i < j)
    return mean[i] > mean[j] or (mean[i] == mean[j] and i < j)


@part
def top_k_decided(numbers, pulls, mean, variance, scratch, inside, out):
    """TopK by pairs, as `top_k_nearest`."""
    K, needed = len(pulls), numbers[len(numbers) - 1]
    k, epsilon, none = np.int64(numbers[COMMON]), numbers[COMMON + 1], -math.inf
    i, j = np.int64(out[1]), np.int64(out[3])
    before_i = before_j = 0
    for n in range(K):
        before_i += is_before(pulls, mean, n, i)
        before_j += is_before(pulls, mean, n, j)
    if before_i < k <= before_j:  # i is in the answer and j is not
        scratch[i] = scratch[j] = math.nan  # their penalties are not known yet
        if lacks(numbers, pulls, mean, variance, scratch, i, j, 1.0, -epsilon, none, needed):
            not_excluded(out, pulls, i, j)
            return
    best_inside(pulls, mean, k, inside)
    refresh(numbers, pulls, mean, variance, scratch)
    for s in range(K):
        a = (i + s) % K
        if inside[a]:
            for b in range(K):
                if not inside[b] and paired(numbers, mean, scratch, a, b, 1.0, -epsilon, none, needed) < needed:
                    not_excluded(out, pulls, a, b)
                    return
    out[0] = math.inf


@part
def all_good_decided(numbers, pulls, mean, variance, scratch, inside, out):
    """AllGood by pairs, as `all_good_nearest`."""
    K, a, b, floor = len(pulls), numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2]
    need_in = numbers[len(numbers) - 3]
    all_good_inside(pulls, mean, numbers[COMMON + 6], numbers[COMMON + 7], inside)
    first, second = np.int64(out[1]), np.int64(out[3])
    for j in range(K):
        scratch[j] = math.nan  # its penalty is not known yet
    again = inside[first] and second != first and a > 0.0
    if again and lacks(numbers, pulls, mean, variance, scratch, first, second, a, b, floor, need_in):
        not_excluded(out, pulls, first, second)
        return
    best = best_of(pulls, mean)
    for n in range(K):
        i = (first + n) % K
        if inside[i]:
            j = insufficient_inside(numbers, pulls, mean, variance, scratch, i, need_in)
            if j >= 0:
                not_excluded(out, pulls, i, j if a > 0.0 else i)
                return
        elif not excluded_outside(numbers, pulls, mean, variance, scratch, i, best):
            j = insufficient_outside(numbers, pulls, mean, variance, scratch, i, best)
            if j >= 0:
                not_excluded(out, pulls, i, j)
                return
    out[0] = math.inf


@inlined
def prepared(numbers, pulls, mean, variance, scratch, i):
    """`weighed`, with penalties that are computed once: scratch[i] is that of arm i, or NaN."""
    N, v = float(pulls[i]), variance[i] if numbers[DISTRIBUTION] == STUDENT else numbers[VARIANCE]
    if not (N > 0.0 and v > 0.0):
        return 0.0, 0.0, v
    if math.isnan(scratch[i]):
        scratch[i] = arm_penalty(numbers, N, mean[i], v)
    return N, scratch[i], v


@part
def insufficient_inside(numbers, pulls, mean, variance, scratch, i, needed):
    """An arm j whose alternative with arm i, in the answer, is not excluded; -1 if there is none."""
    a, b, floor, m = numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2], mean[i]
    for j in range(len(pulls)):
        if j != i:
            if a > 0.0:
                found = lacks(numbers, pulls, mean, variance, scratch, i, j, a, b, floor, needed)
            else:
                found = alone(numbers, pulls, mean, variance, scratch, i, min(m, 0.0)) < needed
            if found:
                return j
    return -1


@part
def excluded_outside(numbers, pulls, mean, variance, scratch, i, best):
    """Whether one arm, looked for from the best one on, excludes that arm i, which is left out, is good.

    A pair costs no more than to move one of its arms alone; so most are decided without the cheapest move of both.
    """
    distribution, c, d, bottom = numbers[DISTRIBUTION], numbers[COMMON + 3], numbers[COMMON + 4], numbers[COMMON + 5]
    needed, m, K = numbers[len(numbers) - 2], mean[i], len(pulls)
    most, low = (mean[best] - d) / c, c * m + d
    x, _, u = prepared(numbers, pulls, mean, variance, scratch, i)
    quick = distribution != BOUNDED
    if quick and most >= bottom and arm_cost(distribution, x, m, u, most) < needed - AT_MOST:
        return False
    for n in range(K):
        j = (best + n) % K
        if j == i or not mean[j] > low:
            continue
        w, _, v = prepared(numbers, pulls, mean, variance, scratch, j)
        if quick and m >= bottom and arm_cost(distribution, w, mean[j], v, low) < needed - AT_MOST:
            continue
        if not lacks(numbers, pulls, mean, variance, scratch, j, i, c, d, bottom, needed):
            return True
    return False


@part
def insufficient_outside(numbers, pulls, mean, variance, scratch, i, best):
    """An arm, looked for from the best one on, that neither is clearly better than arm i nor not the best; -1: none."""
    needed, c, d, bottom = numbers[len(numbers) - 1], numbers[COMMON + 3], numbers[COMMON + 4], numbers[COMMON + 5]
    K, none = len(pulls), -math.inf
    for n in range(K):
        j = (best + n) % K
        if j == i or not lacks(numbers, pulls, mean, variance, scratch, j, i, c, d, bottom, needed):
            continue
        if j == best or lacks(numbers, pulls, mean, variance, scratch, best, j, 1.0, 0.0, none, needed):
            return j
    return -1


def wanted(numbers: Any, x: float, arms: int) -> float:
    """What the cost less its penalties of an alternative of so many arms must reach for `enough` to give x.

    Args:
        numbers: of the distribution and the boundary. x: > 0. arms: of the alternative.
    """
    low, high = x, x
    while enough(numbers, high, float(arms)) < x:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if enough(numbers, middle, float(arms)) < x else (low, middle)
    return float(high)
