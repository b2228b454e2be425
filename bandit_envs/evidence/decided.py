"""Is an answer certified at a given level, or not? Quicker than finding the cheapest way to be wrong: one is enough.

The way that was not excluded at the last look is looked at first, and most looks end there. Then come all others, from
that one on, up to the first that is not excluded; so that on the way to a certificate each is looked at few times.

Each function fills `out`: out[0] inf where the plug-in answer is certified, else -inf, and then a way that is not
excluded: its arm i in out[1], its arm j in out[3] (i, where it moves one arm alone), and in out[2] the arm of the two
that has fewer pulls. out[1] and out[3] tell, beforehand, the way to begin with. The numbers of the problem are followed
by what a way's cost less its penalties must reach: of arms in the answer, and of those left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import inlined, part
from .boundaries import COMMON, LAW, VARIANCE, arm_penalty, arm_weight, enough, refresh
from .laws import STUDENT, arm_cost, pair_cost
from .nearest import all_good_inside, best_inside

__all__ = ["all_good_decided", "threshold_decided", "top_k_decided", "wanted"]


@inlined
def weighed(numbers: Any, pulls: Any, mean: Any, variance: Any, i: Any) -> Any:
    """Weight, penalty and scale of arm i, as `refresh` tells them."""
    N, v = float(pulls[i]), variance[i] if numbers[LAW] == STUDENT else numbers[VARIANCE]
    if N > 0.0 and v > 0.0:
        return arm_weight(numbers, N), arm_penalty(numbers, N, mean[i], v), v
    return 0.0, 0.0, v


@inlined
def tell(out: Any, pulls: Any, i: Any, j: Any) -> None:
    """The way of arms i and j is not excluded."""
    out[0], out[1], out[2], out[3] = -math.inf, i, i if pulls[i] <= pulls[j] else j, j


@part
def threshold_decided(numbers: Any, pulls: Any, mean: Any, variance: Any, room: Any, inside: Any, out: Any) -> None:
    """Threshold, as `threshold_nearest`."""
    K, law, needed = len(pulls), numbers[LAW], numbers[len(numbers) - 2]
    fall, rise, theta = numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2]
    first = np.int64(out[1])
    for s in range(K):
        i = (first + s) % K
        m = mean[i]
        w, p, v = weighed(numbers, pulls, mean, variance, i)
        if pulls[i] > 0 and m >= theta:
            value = arm_cost(law, w, m, v, fall) if m > fall else 0.0
        else:
            value = arm_cost(law, w, m, v, rise) if m < rise else 0.0
        if value - p < needed:
            tell(out, pulls, i, i)
            return
    out[0] = math.inf


@inlined
def is_before(pulls: Any, mean: Any, i: Any, j: Any) -> Any:
    """Whether arm i ranks before arm j, as `best_inside` ranks them."""
    if pulls[i] == 0 or pulls[j] == 0:
        return pulls[i] > 0 or (pulls[j] == 0 and i < j)
    return mean[i] > mean[j] or (mean[i] == mean[j] and i < j)


@part
def top_k_decided(numbers: Any, pulls: Any, mean: Any, variance: Any, room: Any, inside: Any, out: Any) -> None:
    """TopK by pairs, as `top_k_nearest`."""
    K, law, needed = len(pulls), numbers[LAW], numbers[len(numbers) - 2]
    k, epsilon, none = np.int64(numbers[COMMON]), numbers[COMMON + 1], -math.inf
    i, j = np.int64(out[1]), np.int64(out[3])
    before_i = before_j = 0
    for n in range(K):
        before_i += is_before(pulls, mean, n, i)
        before_j += is_before(pulls, mean, n, j)
    if before_i < k <= before_j:  # i is in the answer and j is not
        x, p, u = weighed(numbers, pulls, mean, variance, i)
        w, q, v = weighed(numbers, pulls, mean, variance, j)
        value, _ = pair_cost(law, mean[i], x, u, mean[j], w, v, 1.0, -epsilon, none)
        if value - (p + q) < needed:
            tell(out, pulls, i, j)
            return
    best_inside(pulls, mean, k, inside)
    refresh(numbers, pulls, mean, variance, room)
    for s in range(K):
        a = (i + s) % K
        if inside[a]:
            x, p, u = room[2 * K + a], room[3 * K + a], room[4 * K + a]
            for b in range(K):
                if not inside[b]:
                    w, q, v = room[2 * K + b], room[3 * K + b], room[4 * K + b]
                    value, _ = pair_cost(law, mean[a], x, u, mean[b], w, v, 1.0, -epsilon, none)
                    if value - (p + q) < needed:
                        tell(out, pulls, a, b)
                        return
    out[0] = math.inf


@part
def all_good_decided(numbers: Any, pulls: Any, mean: Any, variance: Any, room: Any, inside: Any, out: Any) -> None:
    """AllGood by pairs, as `all_good_nearest`: of an arm left out, one clearly better arm is enough."""
    K, law = len(pulls), numbers[LAW]
    a, b, floor = numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2]
    need_in, need_out = numbers[len(numbers) - 2], numbers[len(numbers) - 1]
    all_good_inside(pulls, mean, numbers[COMMON + 6], numbers[COMMON + 7], inside)
    first, second = np.int64(out[1]), np.int64(out[3])
    if inside[first] and second != first and a > 0.0:
        x, p, u = weighed(numbers, pulls, mean, variance, first)
        w, q, v = weighed(numbers, pulls, mean, variance, second)
        value, _ = pair_cost(law, mean[first], x, u, mean[second], w, v, a, b, floor)
        if value - (p + q) < need_in:
            tell(out, pulls, first, second)
            return
    best: Any = 0
    for j in range(K):
        best = j if mean[j] > mean[best] and pulls[j] > 0 else best
        room[j] = math.nan  # its penalty is not known yet
    for n in range(K):
        i = (first + n) % K
        x, p, u = prepared(numbers, pulls, mean, variance, room, i)
        if inside[i]:
            j = insufficient_inside(numbers, pulls, mean, variance, room, i, x, p, u, need_in)
            if j >= 0:
                tell(out, pulls, i, j if a > 0.0 else i)
                return
        elif not excluded_outside(numbers, pulls, mean, variance, room, i, x, p, u, best, need_out):
            tell(out, pulls, i, best)
            return
    out[0] = math.inf


@inlined
def prepared(numbers: Any, pulls: Any, mean: Any, variance: Any, room: Any, i: Any) -> Any:
    """`weighed`, with penalties that are computed once: room[i] is that of arm i, or NaN."""
    N, v = float(pulls[i]), variance[i] if numbers[LAW] == STUDENT else numbers[VARIANCE]
    if not (N > 0.0 and v > 0.0):
        return 0.0, 0.0, v
    if math.isnan(room[i]):
        room[i] = arm_penalty(numbers, N, mean[i], v)
    return arm_weight(numbers, N), room[i], v


@part
def insufficient_inside(
    numbers: Any, pulls: Any, mean: Any, variance: Any, room: Any, i: Any, x: Any, p: Any, u: Any, needed: Any
) -> Any:
    """An arm j with which arm i, in the answer, can be wrong by a way that is not excluded; -1 if there is none."""
    law, a, b, floor = numbers[LAW], numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2]
    m = mean[i]
    for j in range(len(pulls)):
        if j != i:
            w, q, v = prepared(numbers, pulls, mean, variance, room, j)
            if a > 0.0:
                value, _ = pair_cost(law, m, x, u, mean[j], w, v, a, b, floor)
            else:
                value = arm_cost(law, x, m, u, 0.0) if m > 0.0 else 0.0
            if value - (p + q) < needed:
                return j
    return -1


@part
def excluded_outside(
    numbers: Any,
    pulls: Any,
    mean: Any,
    variance: Any,
    room: Any,
    i: Any,
    x: Any,
    p: Any,
    u: Any,
    best: Any,
    needed: Any,
) -> Any:
    """Whether an arm, looked for from the best one on, excludes that arm i, which is left out, is good.

    A pair costs no more than to move one of its arms alone; so most are excluded without the cheapest move of both.
    """
    law, c, d, bottom = numbers[LAW], numbers[COMMON + 3], numbers[COMMON + 4], numbers[COMMON + 5]
    m, K = mean[i], len(pulls)
    most = (mean[best] - d) / c
    if most >= bottom and arm_cost(law, x, m, u, most) - p < needed:
        return False
    low = c * m + d
    for n in range(K):
        j = (best + n) % K
        if j == i or not mean[j] > low:
            continue
        N, v = float(pulls[j]), variance[j] if numbers[LAW] == STUDENT else numbers[VARIANCE]
        w = arm_weight(numbers, N) if N > 0.0 and v > 0.0 else 0.0
        if m >= bottom and arm_cost(law, w, mean[j], v, low) - p < needed:
            continue
        w, q, v = prepared(numbers, pulls, mean, variance, room, j)
        value, _ = pair_cost(law, mean[j], w, v, m, x, u, c, d, bottom)
        if value - (p + q) >= needed:
            return True
    return False


def wanted(numbers: Any, x: float, arms: int) -> float:
    """What the cost less its penalties of a way that moves so many arms must reach for `enough` to tell x.

    Args:
        numbers: of the law and the boundary. x: > 0. arms: of the way.
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
