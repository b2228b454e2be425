r"""The nearest instance on which an answer is wrong, problem by problem: of one episode, quick enough for every pull.

Each function looks at all alternatives to the answer and reports the closest. An alternative is a set of instances that
a fixed set of arms S can be moved into. Its statistic is the cost of the cheapest move less the penalties of S less
the logarithm of the number of alternatives: exp(-statistic) is the level at which it is excluded. With the boundary
NONE all of these are 0, and the statistic is the evidence.

Number of alternatives. For true means mu, a wrong answer has an alternative whose arms can be named from mu alone:

TopK        an answer A that is not the truly best k, B, with ties by index, holds an i outside B and misses a j of B.
            If A is wrong, some such i and j have mu_i < mu_j - epsilon: k (K - k) pairs, B being fixed. The same pairs
            prove the criterion "aggregate": sum over B \ A less sum over A \ B is then at most k epsilon.
            epsilon = 0: K - 1 pairs are enough, those with b, the last of B. If A holds an i outside B but not b, its
            pair with b is one of K - k; if it holds b but misses a j of B, the pair of b with j is one of k - 1.
AllGood     s is the truly best arm, which is fixed. i is in A though bad: it is more than epsilon + slack below s:
            K - 1 pairs. i is left out though good, and excluded by one arm or by all. One: it is within epsilon of each
            arm, so that a single j that is clearly better excludes it: any of K (K - 1) pairs; half of delta is theirs.
            All: each arm is clearly better than i, or is not the best, being worse than the best arm of the sample;
            then i and s, or s and that arm, are a pair that is wrong: K - 1 pairs, in two directions. The other half of
            delta is theirs and that of arms in A: with s, a good arm may err in both directions, a bad one in one.
Threshold   each arm by itself, K alternatives; Feasible too.

What is reported (`out`, 2 + 3 K floats): the statistic; the number n of arms that the closest alternative moves; in
out[2 ..] the arms, in out[2 + K ..] the divergence of each, which is the derivative of the evidence by its pulls, in
out[2 + 2 K ..] the mean that it is moved to (scalar arms).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels.compiled import inlined, part
from .betting import bet_arm, bet_pair, bounded_at
from .boundaries import BOUNDARY, COMMON, D_AT, DISTRIBUTION, MIXTURE, NONE, enough
from .distributions import BOUNDED, divergence, pair_cost
from .values import arm_value, pair_value

__all__ = [
    "all_good_nearest",
    "best_inside",
    "level",
    "nearest_pair",
    "report",
    "report_pair",
    "threshold_nearest",
    "top_k_nearest",
]

TWIN = 2  # a mark on top of 0 and 1


@inlined
def report(out, K, place, distribution, arm, m, v, w, mu):
    """Write down the place-th arm of the closest alternative: an arm without weight must be pulled."""
    out[2 + place] = arm
    out[2 + K + place] = divergence(distribution, m, v, mu) if w > 0.0 else math.inf
    out[2 + 2 * K + place] = mu


@part
def best_inside(pulls, mean, k, inside):
    """Fill inside (K,) with 1 for the k largest means, ties to the lowest index, arms never pulled last; else 0."""
    K = len(pulls)
    for i in range(K):
        inside[i] = 0
    for _ in range(k):
        best = -1
        for i in range(K):
            better = best < 0 or (pulls[i] > 0 and (pulls[best] == 0 or mean[i] > mean[best]))
            if inside[i] == 0 and better:
                best = i
        inside[best] = 1


@part
def threshold_nearest(numbers, pulls, mean, scratch, inside, out):
    """Threshold; numbers: the highest mean of an arm left out wrongly .. see `Threshold.certifier`.

    COMMON + 0: the mean to which an arm in the answer must fall; + 1: to which one left out must rise; + 2: the
    threshold of the plug-in answer.
    """
    K, distribution = len(pulls), numbers[DISTRIBUTION]
    fall, rise, theta = numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2]
    if inside[0] < 0:
        for i in range(K):
            inside[i] = pulls[i] > 0 and mean[i] >= theta
    least, found = math.inf, 0
    for i in range(K):
        m = mean[i]
        value = moved_to(numbers, mean, scratch, i, min(m, fall) if inside[i] else max(m, rise))
        if value < least:
            least, found = value, i
    m = mean[found]
    mu = min(m, fall) if inside[found] else max(m, rise)
    out[0] = level(numbers, least, 1, float(K))
    out[1] = 1.0
    report(out, K, 0, distribution, found, m, scratch[4 * K + found], scratch[2 * K + found], mu)


@inlined
def moved_to(numbers, mean, scratch, i, mu):
    """The value of moving arm i to mu, alone."""
    K = len(mean)
    if numbers[DISTRIBUTION] == BOUNDED and numbers[BOUNDARY] != NONE:
        return bet_arm(numbers, bounded_at(numbers, mean, scratch, i), mu, scratch[5 * K :])
    weight, penalty, scale = scratch[2 * K + i], scratch[3 * K + i], scratch[4 * K + i]
    return arm_value(numbers, weight, mean[i], scale, penalty, mu, numbers[D_AT])


@inlined
def level(numbers, value, arms, alternatives):
    """The statistic of an alternative, of its cost less its penalties."""
    return value if numbers[BOUNDARY] == NONE else enough(numbers, value, float(arms)) - math.log(alternatives)


@inlined
def report_pair(out, distribution, mean, scratch, i, j, a, b, floor):
    """Report the pair of arm i, which is lowered to at most a mu_j + b, and arm j, which is raised."""
    K = len(mean)
    _, y = pair_cost(
        distribution,
        mean[i],
        scratch[2 * K + i],
        scratch[4 * K + i],
        mean[j],
        scratch[2 * K + j],
        scratch[4 * K + j],
        a,
        b,
        floor,
    )
    out[1] = 2.0
    report(out, K, 0, distribution, i, mean[i], scratch[4 * K + i], scratch[2 * K + i], min(mean[i], a * y + b))
    report(out, K, 1, distribution, j, mean[j], scratch[4 * K + j], scratch[2 * K + j], y)


@inlined
def paired(numbers, mean, scratch, i, j, a, b, floor, needed):
    """The value of arm i, which is lowered, and arm j, which is raised: `pair_value`, or `bet_pair`, see there."""
    K = len(mean)
    if numbers[DISTRIBUTION] == BOUNDED and numbers[BOUNDARY] != NONE:
        lower, raised = bounded_at(numbers, mean, scratch, i), bounded_at(numbers, mean, scratch, j)
        return bet_pair(numbers, lower, raised, a, b, floor, needed, scratch[5 * K :])
    return pair_value(
        numbers,
        mean[i],
        scratch[2 * K + i],
        scratch[4 * K + i],
        scratch[3 * K + i],
        mean[j],
        scratch[2 * K + j],
        scratch[4 * K + j],
        scratch[3 * K + j],
        a,
        b,
        floor,
    )


@inlined
def top_k_alternatives(K, k, epsilon):
    """The number of pairs of TopK."""
    return float(k * (K - k)) if epsilon > 0.0 else K - 1.0


@part
def mark_twins(pulls, mean, scratch, inside):
    """Add TWIN to inside (K,) of each arm that has the statistics of an earlier one on the same side.

    A pair with it is worth what one with the earlier arm is; many arms with few pulls each are often alike.
    """
    K = len(pulls)
    for i in range(K):
        for h in range(i):
            if (
                mean[h] == mean[i]
                and pulls[h] == pulls[i]
                and inside[h] == inside[i]
                and scratch[4 * K + h] == scratch[4 * K + i]
                and scratch[3 * K + h] == scratch[3 * K + i]
                and scratch[h] == scratch[i]
            ):
                inside[i] += TWIN
                break


@part
def top_k_nearest(numbers, pulls, mean, scratch, inside, out):
    """TopK by pairs; numbers: COMMON + 0: k; + 1: epsilon, 0 for "exact"; see `TopK.certifier`."""
    K, distribution, k, epsilon = len(pulls), numbers[DISTRIBUTION], np.int64(numbers[COMMON]), numbers[COMMON + 1]
    if inside[0] < 0:
        best_inside(pulls, mean, k, inside)
    mark_twins(pulls, mean, scratch, inside)
    least, first, second = nearest_pair(numbers, mean, scratch, inside, epsilon)
    for i in range(K):
        inside[i] %= TWIN
    out[0] = level(numbers, least, 2, top_k_alternatives(K, k, epsilon))
    report_pair(out, distribution, mean, scratch, first, second, 1.0, -epsilon, -math.inf)


@part
def nearest_pair(numbers, mean, scratch, inside, epsilon):
    """The pair of least value by which an arm in the answer, 1, is worse than one left out, 0, by more than epsilon.

    Returns:
        Its value, the arm in the answer and the one left out.
    """
    least, first, second = math.inf, 0, 0
    for i in range(len(mean)):
        if inside[i] == 1:
            for j in range(len(mean)):
                if inside[j] == 0:
                    value = paired(numbers, mean, scratch, i, j, 1.0, -epsilon, -math.inf, -math.inf)
                    if value < least:
                        least, first, second = value, i, j
    return least, first, second


@part
def all_good_nearest(numbers, pulls, mean, scratch, inside, out, inside_alone):
    """AllGood by pairs; see `AllGood.certifier` for its numbers, the two half-spaces.

    COMMON + 0, + 1, + 2: a, b and floor of an i in the answer, bad where mu_i <= a mu_j + b, mu_j >= floor; + 3, + 4,
    + 5: of an i that is left out, good only where mu_j <= a mu_i + b for all j, mu_i >= floor; + 6, + 7: a and b of
    the plug-in answer, mean_i >= min(a max + b, max). `inside_alone`: leave out the arms that are not in the answer.
    """
    K, distribution = len(pulls), numbers[DISTRIBUTION]
    a, b, floor = numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2]
    c, d, bottom = numbers[COMMON + 3], numbers[COMMON + 4], numbers[COMMON + 5]
    if inside[0] < 0:
        all_good_inside(pulls, mean, numbers[COMMON + 6], numbers[COMMON + 7], inside)
    least_in, least_out = math.inf, math.inf
    i_in, j_in, low, high = 0, 0, 0, 0
    best = best_of(pulls, mean)
    alternatives = all_good_alternatives(K)
    good, more = True, math.log(alternatives[2] / alternatives[1])
    for i in range(K):
        if inside[i]:
            for j in range(K):
                if j != i:
                    if a > 0.0:
                        value = paired(numbers, mean, scratch, i, j, a, b, floor, -math.inf)
                    else:
                        value = fallen(numbers, mean, scratch, i)
                    if value < least_in:
                        least_in, i_in, j_in = value, i, j
        elif not inside_alone:
            most, better = -math.inf, best
            for j in range(K):
                if j != i and mean[j] > c * mean[i] + d:
                    value = paired(numbers, mean, scratch, j, i, c, d, bottom, -math.inf)
                    if value > most:
                        most, better = value, j
            lowered, raised, is_pair = better, i, True
            if numbers[BOUNDARY] == MIXTURE and i != best:
                value, j, as_pair = all_of(numbers, mean, scratch, i, best, most + more)
                if value - more > most:
                    most, is_pair = value - more, as_pair
                    lowered, raised = (j, i) if is_pair else (best, j)
            if most < least_out:
                least_out, low, high, good = most, lowered, raised, is_pair
    least_in, least_out = level(numbers, least_in, 2, alternatives[0]), level(numbers, least_out, 2, alternatives[1])
    out[0] = min(least_in, least_out)
    if least_in > least_out and good:
        report_pair(out, distribution, mean, scratch, low, high, c, d, bottom)
    elif least_in > least_out:
        report_pair(out, distribution, mean, scratch, low, high, 1.0, 0.0, -math.inf)
    elif a > 0.0:
        report_pair(out, distribution, mean, scratch, i_in, j_in, a, b, floor)
    else:
        out[1] = 1.0
        report(
            out,
            K,
            0,
            distribution,
            i_in,
            mean[i_in],
            scratch[4 * K + i_in],
            scratch[2 * K + i_in],
            min(mean[i_in], 0.0),
        )


@inlined
def all_good_alternatives(K):
    """The number of pairs over their share of delta: of an arm in the answer, left out by one arm, and by all."""
    return 2.0 * (K - 1), 2.0 * K * (K - 1), 4.0 * (K - 1)


@inlined
def best_of(pulls, mean):
    """The arm with the largest mean of those that have been pulled; 0 if there is none."""
    best: Any = 0
    for j in range(len(mean)):
        best = j if pulls[j] > 0 and (pulls[best] == 0 or mean[j] > mean[best]) else best
    return best


@inlined
def fallen(numbers, mean, scratch, i):
    """The value of arm i in the answer, where there is so much slack that it must fall below 0."""
    return moved_to(numbers, mean, scratch, i, min(mean[i], 0.0))


@part
def all_of(numbers, mean, scratch, i, best, enough_already):
    """The value of arm i being left out by all arms: the least over arms j, each clearly better than i or not the best.

    Args:
        best: the best arm of the sample.
        enough_already: no more than this is of interest: arms below it are not looked at further.

    Returns:
        The value, the arm j, and whether it is rather clearly better than i, or rather not the best.
    """
    c, d, bottom = numbers[COMMON + 3], numbers[COMMON + 4], numbers[COMMON + 5]
    least, which, is_pair = math.inf, best, True
    for j in range(len(mean)):
        if j != i:
            better = paired(numbers, mean, scratch, j, i, c, d, bottom, -math.inf)
            if better < least:
                other = (
                    paired(numbers, mean, scratch, best, j, 1.0, 0.0, -math.inf, -math.inf) if j != best else -math.inf
                )
                if max(better, other) < least:
                    least, which, is_pair = max(better, other), j, better >= other
                    if least <= enough_already:
                        break
    return least, which, is_pair


@part
def all_good_inside(pulls, mean, a, b, inside):
    """Fill inside (K,) with the plug-in answer: means of at least min(a best + b, best)."""
    best = -math.inf
    for i in range(len(pulls)):
        if pulls[i] > 0:
            best = max(best, mean[i])
    boundary = min(a * best + b, best)
    for i in range(len(pulls)):
        inside[i] = pulls[i] > 0 and mean[i] >= boundary
