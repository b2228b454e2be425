r"""The nearest instance on which an answer is wrong, problem by problem: of one episode, quick enough for every pull.

Each function looks at all alternatives to the answer and reports the closest. An alternative is a set of instances that
a fixed set of arms S can be moved into. Its statistic is the cost of the cheapest move less the penalties of S less
the logarithm of the number of alternatives: exp(-statistic) is the level at which it is excluded. With the boundary
NONE all of these are 0, and the statistic is the evidence.

docs/certificates-theory.md counts the alternatives. The pairs of TopK prove the criterion "aggregate" too: the sum of
the truly best k less that of the answer is at most k epsilon.

What is reported (`out`, 2 + 3 K floats): the statistic; the number n of arms that the closest alternative moves; in
out[2 ..] the arms, in out[2 + K ..] the divergence of each, which is the derivative of the evidence by its pulls, in
out[2 + 2 K ..] the mean that it is moved to (scalar arms).

Where the numbers say what a statistic must reach (`NEEDED`), it only is to be decided whether the answer is certified,
which is quicker: a search ends at the first alternative that is not excluded. It begins with that of the last look, and
most looks end there. The others follow in their order, so that each is looked at few times before a certificate. What
is reported then: out[0] inf where the plug-in answer is certified, else -inf, and then an alternative that is not
excluded: its arm i in out[1], its arm j in out[3] (i, where it moves one arm alone), and in out[2] the arm of the two
that has fewer pulls. out[1] and out[3] name, beforehand, the alternative to begin with.

The scratch holds the weights, the penalties and the scales of all arms, as `refresh` leaves it; where it only is to be
decided, arms are brought up to date when they are looked at.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels.compiled import inlined, part
from . import boundaries
from .betting import bet_arm, bet_pair, bounded_at
from .boundaries import BOUNDARY, COMMON, D_AT, MIXTURE, NEEDED, NONE, PAIRS_AT, VARIANCE, enough
from .bounds import Arms, pair_bounds
from .contrasts import CONTRAST, pair_evidence
from .distributions import BOUNDED, Arm, Move, arm_cost, divergence, pair_cost
from .values import arm_value

TWIN = 2  # a mark on top of 0 and 1
BOUNDS_AFTER = 32  # bounds of the pairs of an arm are looked at after K / BOUNDS_AFTER of them
HASHED = 1e6  # means that differ by much less have neighbouring places
BOUNDS_SPARE = 0.01  # nats beyond the limit, more than the rounding of means that are not in doubt amounts to
AT_MOST = math.log(4.0)  # no value exceeds the cost of its arms by more


@inlined
def arm_at(mean, scratch, i):
    """Arm i, an `Arm`."""
    K = len(mean)
    return Arm(mean[i], scratch[2 * K + i], scratch[4 * K + i], scratch[3 * K + i])


@inlined
def report(out, K, place, distribution, i, arm, mu):
    """Write down the place-th arm of the closest alternative: an arm without weight must be pulled."""
    out[2 + place] = i
    out[2 + K + place] = divergence(distribution, arm.mean, arm.scale, mu) if arm.weight > 0.0 else math.inf
    out[2 + 2 * K + place] = mu


@inlined
def report_alone(out, distribution, mean, scratch, i, mu):
    """Report arm i, which is moved to mu."""
    out[1] = 1.0
    report(out, len(mean), 0, distribution, i, arm_at(mean, scratch, i), mu)


@inlined
def report_pair(out, distribution, mean, scratch, i, j, move):
    """Report the pair of arm i, which is lowered, and arm j, which is raised, by a `Move`."""
    report_move(out, len(mean), distribution, (i, arm_at(mean, scratch, i)), (j, arm_at(mean, scratch, j)), move, True)


@inlined
def report_move(out, K, distribution, lowered, raised, move, in_order):
    """Report a `Move` of two arms, (number, `Arm`) each: the one that is lowered comes first if `in_order`."""
    (i, lower), (j, other), first = lowered, raised, 0 if in_order else 1
    _, y = pair_cost(distribution, lower, other, move)
    out[1] = 2.0
    report(out, K, first, distribution, i, lower, min(lower.mean, move.a * y + move.b))
    report(out, K, 1 - first, distribution, j, other, y)


@inlined
def decided(out, pulls, is_open, i, j):
    """Report whether an alternative is not excluded, and that it is that of arms i and j."""
    if is_open:
        out[0], out[1], out[2], out[3] = -math.inf, i, i if pulls[i] <= pulls[j] else j, j
    else:
        out[0] = math.inf


@inlined
def level(numbers, value, arms, alternatives):
    """The statistic of an alternative, of its cost less its penalties."""
    return value if numbers[BOUNDARY] == NONE else enough(numbers, value, float(arms)) - math.log(alternatives)


@inlined
def moved_to(numbers, mean, scratch, i, mu):
    """The value of moving arm i to mu, alone."""
    K = len(mean)
    if boundaries.distribution_of(numbers) == BOUNDED and numbers[BOUNDARY] != NONE:
        if mu == mean[i]:  # which may lie beyond the range: by rounding, or as the 0 of an arm never pulled
            return 0.0
        return bet_arm(numbers, bounded_at(numbers, mean, scratch, i), mu, scratch[5 * K :])
    arm = arm_at(mean, scratch, i)
    return arm_value(numbers, arm.weight, arm.mean, arm.scale, arm.penalty, mu, numbers[D_AT])


@inlined
def paired(numbers, mean, scratch, i, j, move, needed, plenty=math.inf):
    """The value of arm i, which is lowered, and arm j, which is raised: `pair_evidence`, or `bet_pair`, see there.

    It is enough to know that it does not reach `needed`, or that it does reach `plenty`. Means and scales beyond what
    can be squared are no evidence: -inf.
    """
    if boundaries.distribution_of(numbers) == BOUNDED and numbers[BOUNDARY] != NONE:
        lower, raised = bounded_at(numbers, mean, scratch, i), bounded_at(numbers, mean, scratch, j)
        return bet_pair(numbers, lower, raised, move.a, move.b, move.floor, needed, scratch[5 * len(mean) :])
    value = pair_evidence(numbers, arm_at(mean, scratch, i), arm_at(mean, scratch, j), move, needed, plenty)
    return value if value == value else -math.inf


@part
def again(given, i, j, move):
    """Whether the pair of the last look still is not excluded; it is reported then."""
    numbers, pulls, mean, variance, scratch, _, out = given
    boundaries.refresh(numbers, pulls, mean, variance, scratch, i, i + 1)
    boundaries.refresh(numbers, pulls, mean, variance, scratch, j, j + 1)
    needed = numbers[NEEDED]
    is_open = paired(numbers, mean, scratch, i, j, move, needed, needed) < needed
    if is_open:
        decided(out, pulls, True, i, j)
    return is_open


@part
def threshold_nearest(given, is_ready=False):
    """Threshold; numbers: the highest mean of an arm left out wrongly .. see `Threshold.certifier`.

    COMMON + 0: the mean to which an arm in the answer must fall; + 1: to which one left out must rise; + 2: the
    threshold of the plug-in answer. `is_ready`: the scratch already holds what `refresh` makes.
    """
    numbers, pulls, mean, variance, scratch, inside, out = given
    K, distribution, needed = len(pulls), boundaries.distribution_of(numbers), numbers[NEEDED]
    fall, rise, theta = numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2]
    decides, is_asked, least, found = needed > -math.inf, inside[0] >= 0, math.inf, 0
    first = arm_of(out[1], K) if decides else 0
    for n in range(K):
        i = after(first, n, K)
        if not is_ready:
            boundaries.refresh(numbers, pulls, mean, variance, scratch, i, i + 1)
        if not is_asked:
            inside[i] = pulls[i] > 0 and mean[i] >= theta
        mu = min(mean[i], fall) if inside[i] else max(mean[i], rise)
        value = moved_to(numbers, mean, scratch, i, mu)
        if value < least:
            least, found = value, i
            if value < needed:
                decided(out, pulls, True, i, i)
                return
    if decides:
        decided(out, pulls, False, first, first)
        return
    out[0] = level(numbers, least, 1, float(K))
    mu = min(mean[found], fall) if inside[found] else max(mean[found], rise)
    report_alone(out, distribution, mean, scratch, found, mu)


@inlined
def arm_of(x, K):
    """The arm that a float names; arm 0 where it names none, as where the caller has put a NaN there."""
    return np.int64(x) if 0.0 <= x < K else np.int64(0)


@inlined
def after(first, n, K):
    """The n-th arm after the first one, in a circle: never negative, which compiled code need not look at then."""
    return max(first + n if first + n < K else first + n - K, 0)


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


@inlined
def top_k_alternatives(K, k, epsilon):
    """The number of pairs of TopK."""
    return float(k * (K - k)) if epsilon > 0.0 else K - 1.0


@part
def mark_twins(pulls, mean, scratch, inside, work):
    """Add TWIN to inside (K,) of each arm that has the statistics of an earlier one on the same side.

    A pair with it is worth what one with the earlier arm is; many arms with few pulls each are often alike. `work`,
    3 K floats, is a table of the arms that are not, by a hash of their means.
    """
    K, size = len(pulls), 1
    while 2 * size <= len(work):
        size *= 2
    work[:size] = -1.0
    for i in range(K):
        spread = 0.6180339887498949 * (HASHED * mean[i] + pulls[i])
        spread -= math.floor(spread)
        place = np.int64(spread * size) & (size - 1) if spread == spread else 0
        while work[place] >= 0.0:
            h = np.int64(work[place])
            alike = mean[h] == mean[i] and pulls[h] == pulls[i] and inside[h] % TWIN == inside[i]
            alike = alike and scratch[4 * K + h] == scratch[4 * K + i] and scratch[3 * K + h] == scratch[3 * K + i]
            if alike and scratch[h] == scratch[i]:
                inside[i] += TWIN
                break
            place = (place + 1) & (size - 1)
        if work[place] < 0.0:
            work[place] = float(i)


@inlined
def is_before(pulls, mean, i, j):
    """Whether arm i ranks before arm j, as `best_inside` ranks them."""
    if pulls[i] == 0 or pulls[j] == 0:
        return pulls[i] > 0 or (pulls[j] == 0 and i < j)
    return mean[i] > mean[j] or (mean[i] == mean[j] and i < j)


@part
def top_k_nearest(given):
    """TopK by pairs; numbers: COMMON + 0: k; + 1: epsilon, 0 for "exact"; see `TopK.certifier`."""
    numbers, pulls, mean, variance, scratch, inside, out = given
    K, k, epsilon, needed = len(pulls), np.int64(numbers[COMMON]), numbers[COMMON + 1], numbers[NEEDED]
    move, first, second, decides = Move(1.0, -epsilon, -math.inf), 0, 0, needed > -math.inf
    if decides:
        first, second = arm_of(out[1], K), arm_of(out[3], K)
        before_first = before_second = 0
        for n in range(K if inside[0] < 0 else 0):
            before_first += is_before(pulls, mean, n, first)
            before_second += is_before(pulls, mean, n, second)
        looks = before_first < k <= before_second  # one is in the answer and the other is not
        if (looks or inside[0] >= 0 and inside[first] > inside[second]) and again(given, first, second, move):
            return
    if inside[0] < 0:
        best_inside(pulls, mean, k, inside)
    if not decides:
        boundaries.refresh(numbers, pulls, mean, variance, scratch, 0, K)
        mark_twins(pulls, mean, scratch, inside, out[2:])
    least, i, j = nearest_pair(given, epsilon, first, second)
    if decides:
        decided(out, pulls, least < needed, i, j)
        return
    for a in range(K):
        inside[a] %= TWIN
    out[0] = level(numbers, least, 2, top_k_alternatives(K, k, epsilon))
    report_pair(out, boundaries.distribution_of(numbers), mean, scratch, i, j, move)


@part
def bound_pairs(given, i, move, limit):
    """Fill the end of out (K,) with what pairs of arm i, which is lowered, are worth beyond a limit at least."""
    numbers, pulls, mean, variance, scratch, _, out = given
    K, bound = len(pulls), out[2 + 2 * len(pulls) :]
    boundaries.refresh(numbers, pulls, mean, variance, scratch, 0, K)
    need = limit + BOUNDS_SPARE - (math.log1p(-CONTRAST) if numbers[PAIRS_AT] != 0.0 else 0.0)
    arms = Arms(mean, scratch[2 * K : 3 * K], scratch[3 * K : 4 * K])
    pair_bounds(numbers, arms, i, True, move, need, False, bound)
    for j in range(K):  # the bounds are of the scale as it is without doubts
        doubted = scratch[4 * K + i] != numbers[VARIANCE] or scratch[4 * K + j] != numbers[VARIANCE]
        bound[j] = -math.inf if doubted else bound[j]


@part
def nearest_to(given, i, move, second, side, least):
    """The least value below `least` of the pairs of arm i, which is lowered, and the arms of a side, -1: all; that arm.

    `second`: the arm to begin with. A search that only decides ends at the first pair that is not excluded.
    """
    numbers, pulls, mean, variance, scratch, inside, out = given
    K, needed, found, evaluated = len(mean), numbers[NEEDED], -1, 0
    decides = needed > -math.inf
    if decides:
        boundaries.refresh(numbers, pulls, mean, variance, scratch, i, i + 1)
    for m in range(K):
        j = after(second, m, K)
        if j == i or (side >= 0 and inside[j] != side):
            continue
        if evaluated == K // BOUNDS_AFTER:
            bound_pairs(given, i, move, needed if decides else least)
            evaluated = K
        if evaluated >= K and out[2 + 2 * K + j] > 0.0:
            continue
        if decides and evaluated < K:
            boundaries.refresh(numbers, pulls, mean, variance, scratch, j, j + 1)
        evaluated += 1
        value = paired(numbers, mean, scratch, i, j, move, needed, needed if decides else least)
        if value < least:
            least, found = value, j
            if value < needed:
                break
    return least, found


@part
def nearest_pair(given, epsilon, first, second):
    """The least value of an arm in the answer, 1, being worse than one left out, 0, by more than epsilon; both arms.

    `first`, `second`: the arms to begin with.
    """
    inside, move, least, lowered, raised = given[5], Move(1.0, -epsilon, -math.inf), math.inf, 0, 0
    for n in range(len(inside)):
        i = after(first, n, len(inside))
        if inside[i] == 1:
            least, j = nearest_to(given, i, move, second, 0, least)
            lowered, raised = (i, j) if j >= 0 else (lowered, raised)
            if least < given[0][NEEDED]:
                break
    return least, lowered, raised


@part
def all_good_nearest(given, inside_alone=False):
    """AllGood by pairs; see `AllGood.certifier` for its numbers, the two half-spaces.

    COMMON + 0, + 1, + 2: a, b and floor of an i in the answer, bad where mu_i <= a mu_j + b, mu_j >= floor; + 3, + 4,
    + 5: of an i that is left out, good only where mu_j <= a mu_i + b for all j, mu_i >= floor; + 6, + 7: a and b of
    the plug-in answer, mean_i >= min(a max + b, max). `inside_alone`: leave out the arms that are not in the answer.
    NEEDED + 0, + 1, + 2: of an arm in the answer, left out by one arm, and by all.
    """
    numbers, pulls, mean, variance, scratch, inside, out = given
    K, distribution, needed = len(pulls), boundaries.distribution_of(numbers), numbers[NEEDED]
    move = Move(numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2])
    decides, first, best = needed > -math.inf, 0, -1
    if inside[0] < 0:
        best = best_of(pulls, mean)
        boundary = min(numbers[COMMON + 6] * mean[best] + numbers[COMMON + 7], mean[best])
        for i in range(K):
            inside[i] = pulls[i] > 0 and mean[i] >= boundary
    if decides:
        first, second = arm_of(out[1], K), arm_of(out[3], K)
        looks = inside[first] and second != first and move.a > 0.0
        if looks and again(given, first, second, move):
            return
    else:
        boundaries.refresh(numbers, pulls, mean, variance, scratch, 0, K)
    best = best_of(pulls, mean) if best < 0 else best
    least_in, least_out = math.inf, math.inf
    i_in = j_in = low = high = 0
    alternatives = all_good_alternatives(K)
    good, more = True, math.log(alternatives[2] / alternatives[1])
    for n in range(K):
        i = after(first, n, K)
        if inside[i] and move.a > 0.0:
            least_in, j = nearest_to(given, i, move, 0, -1, least_in)
            i_in, j_in = (i, j) if j >= 0 else (i_in, j_in)
            if least_in < needed:
                decided(out, pulls, True, i, j)
                return
        elif inside[i]:  # there is so much slack that it must fall below 0
            if decides:
                boundaries.refresh(numbers, pulls, mean, variance, scratch, i, i + 1)
            value = moved_to(numbers, mean, scratch, i, min(mean[i], 0.0))
            if value < least_in:
                least_in, i_in = value, i
                if value < needed:
                    decided(out, pulls, True, i, i)
                    return
        elif not inside_alone:
            most, better = by_one(numbers, pulls, mean, variance, scratch, i, best, least_out)
            lowered, raised, is_pair = better, i, True
            if decides:
                if most < numbers[NEEDED + 1]:
                    value, j, _ = by_all(numbers, pulls, mean, variance, scratch, i, best, math.inf)
                    if value < numbers[NEEDED + 2]:  # one better arm takes fewer pulls than all
                        decided(out, pulls, True, i, best if numbers[PAIRS_AT] != 0.0 else j)
                        return
            elif numbers[BOUNDARY] == MIXTURE and i != best:
                value, j, as_pair = by_all(numbers, pulls, mean, variance, scratch, i, best, most + more)
                if value - more > most:
                    most, is_pair = value - more, as_pair
                    lowered, raised = (j, i) if is_pair else (best, j)
            if most < least_out:
                least_out, low, high, good = most, lowered, raised, is_pair
    if decides:
        decided(out, pulls, False, first, first)
        return
    least_in, least_out = level(numbers, least_in, 2, alternatives[0]), level(numbers, least_out, 2, alternatives[1])
    out[0] = min(least_in, least_out)
    if least_in > least_out:
        i_in, j_in, move = low, high, half_space(numbers) if good else Move(1.0, 0.0, -math.inf)
    if move.a > 0.0:
        report_pair(out, distribution, mean, scratch, i_in, j_in, move)
    else:
        report_alone(out, distribution, mean, scratch, i_in, min(mean[i_in], 0.0))


@inlined
def half_space(numbers):
    """The `Move` by which AllGood's arm j is no longer clearly better than arm i."""
    return Move(numbers[COMMON + 3], numbers[COMMON + 4], numbers[COMMON + 5])


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


@part
def by_one(numbers, pulls, mean, variance, scratch, i, best, enough_already=math.inf):
    """The value of arm i being left out by one arm: the largest over arms j that are clearly better; and that arm.

    The search begins with the best arm, and ends at a value of `enough_already` or more. A pair costs no more than
    to move one of its arms alone; so most are decided without the cheapest move of both.
    """
    K, distribution, needed = len(mean), boundaries.distribution_of(numbers), numbers[NEEDED + 1]
    move, m = half_space(numbers), mean[i]
    decides, low, short = needed > -math.inf, move.a * m + move.b, needed - AT_MOST
    most, better, quick = -math.inf, best, False
    if decides:
        quick, far = distribution != BOUNDED, (mean[best] - move.b) / move.a
        boundaries.refresh(numbers, pulls, mean, variance, scratch, i, i + 1)
        alone = arm_cost(distribution, scratch[2 * K + i], m, scratch[4 * K + i], far)
        if quick and far >= move.floor and alone < short:
            return most, better
        quick = quick and m >= move.floor
    for n in range(K):
        j = after(best, n, K)
        if j == i or not mean[j] > low:
            continue
        if decides:
            boundaries.refresh(numbers, pulls, mean, variance, scratch, j, j + 1)
        if quick and arm_cost(distribution, scratch[2 * K + j], mean[j], scratch[4 * K + j], low) < short:
            continue
        value = paired(numbers, mean, scratch, j, i, move, max(needed, most), needed if decides else math.inf)
        if value > most or (value == most and j < better and not decides):  # the first of equals
            most, better = value, j
            if value >= (needed if decides else enough_already):
                return most, better
    return most, better


@part
def by_all(numbers, pulls, mean, variance, scratch, i, best, enough_already):
    """The value of arm i being left out by all arms: the least over arms j, each clearly better than i or not the best.

    Beside it the arm j, and whether it is rather clearly better than i, or rather not the best. The search ends at a
    value of `enough_already` or less.
    """
    K, needed, none, move = len(mean), numbers[NEEDED + 2], -math.inf, half_space(numbers)
    decides, which, is_pair = needed > none, best, True
    least, first = (needed, best) if decides else (math.inf, 0)
    for n in range(K):
        j = after(first, n, K)
        if decides:
            boundaries.refresh(numbers, pulls, mean, variance, scratch, j, j + 1)
        plenty = needed if decides else least
        better = paired(numbers, mean, scratch, j, i, move, needed, plenty) if j != i else math.inf
        if better < least:
            beaten = Move(1.0, 0.0, none)
            other = paired(numbers, mean, scratch, best, j, beaten, needed, plenty) if j != best else none
            if max(better, other) < least:
                least, which, is_pair = max(better, other), j, better >= other
                if least <= enough_already:
                    return least, which, is_pair
    return least, which, is_pair
