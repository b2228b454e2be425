"""The nearest instance on which arms are wrongly better, or not better, than a control, in one coordinate or several.

numbers   COMMON + 0: the control; + 1: the tolerance; + 2: the sum of tilts that is expected, see `lifts`; then a and b
          of each coordinate: arm i is wanted where mu_i > a mu_control + b in all of them.
in        An arm in the answer is wrong where one of its coordinates is too low: each must be tested at the full level,
          and none pays for the others (intersection-union; Berger, Technometrics 1982).
out       An arm left out is wrong where no coordinate is too low: one test is enough, and each pays for all D.
"""

import math

import numpy as np

from ..kernels.compiled import part
from .betting import bet_pair, scaled
from .boundaries import BOUNDARY, COMMON, D_AT, MIXTURE, NEEDED, NONE, VARIANCE, distribution_of, weighed
from .distributions import BERNOULLI, BOUNDED, GAUSSIAN, Arm, Move, pair_cost
from .lifts import lift_value
from .nearest import after, arm_of, decided, level, report_move
from .values import pair_value

TOLERANCE_AT, HOPED_AT, SPACES_AT = COMMON + 1, COMMON + 2, COMMON + 3
FAR = 1e5  # sigmas from 0


@part
def arm_in(given, i, d):
    """Coordinate d of arm i, an `Arm`."""
    numbers, pulls, mean, variance = given.numbers, given.pulls, given.mean, given.variance
    D = np.int64(numbers[D_AT])
    weight, penalty, scale = weighed(numbers, pulls, mean[d:], variance[d:], i, D)
    return Arm(mean[i * D + d], weight, scale, penalty)


@part
def bounded_in(given, i, d):
    """Coordinate d of arm i, a `Bounded`."""
    numbers, D, K = given.numbers, np.int64(given.numbers[D_AT]), len(given.pulls)
    at, many, seen = i * D + d, K * D, given.variance
    spread = max(seen[at], 1e-12 * numbers[1])
    return scaled(numbers, float(given.pulls[i]), given.mean[at], spread, seen[many + at], seen[2 * many + at])


@part
def comparison_value(numbers, lower, raised, move, hoped, needed=-math.inf):
    """`pair_value` of an arm and a control; where the boundary is the mixture, of tilts: `lift_value`."""
    if numbers[BOUNDARY] == MIXTURE and distribution_of(numbers) in (GAUSSIAN, BERNOULLI):
        if needed > -math.inf:  # no mixture exceeds the likelihood ratio of the nearest means
            cost, _ = pair_cost(distribution_of(numbers), lower, raised, move)
            if cost < needed:
                return cost
        v, place, b = numbers[VARIANCE], 0.0, move.b
        if abs(raised.mean) > FAR * math.sqrt(v) and distribution_of(numbers) == GAUSSIAN:  # sums are of what differs
            place, b = raised.mean, 0.0
        low = lower.weight * (v / lower.scale), lower.mean - (move.a * place + move.b - b)
        high = raised.weight * (v / raised.scale), raised.mean - place
        return lift_value(numbers, low, high, move.a, b, hoped, needed)
    return pair_value(numbers, lower, raised, move)


@part
def above(given, i, j, d, a, b, hoped, needed):
    """The evidence, in nats, that coordinate d of arm i lies above a times that of arm j plus b; 0: it does not.

    `needed`: it is enough to know whether the evidence reaches this; -inf: its value is wanted.
    """
    numbers, D, pulls = given.numbers, np.int64(given.numbers[D_AT]), given.pulls
    m, n, distribution = given.mean[i * D + d], given.mean[j * D + d], distribution_of(numbers)
    if pulls[i] == 0 or pulls[j] == 0 or not m > a * n + b:
        return 0.0
    if numbers[BOUNDARY] == MIXTURE and distribution == BOUNDED:
        work = given.scratch[5 * len(pulls) :]
        return bet_pair(numbers, bounded_in(given, i, d), bounded_in(given, j, d), a, b, -math.inf, needed, work)
    lower, raised, move = arm_in(given, i, d), arm_in(given, j, d), Move(a, b, -math.inf)
    return comparison_value(numbers, lower, raised, move, hoped, needed)


@part
def nearest_of(given, i, is_in, needed=-math.inf):
    """The evidence that arm i is better than the control, or else that it is not; and the coordinate that decides."""
    numbers, control, tolerance = given.numbers, np.int64(given.numbers[COMMON]), given.numbers[TOLERANCE_AT]
    D, found, which, total = np.int64(numbers[D_AT]), math.inf if is_in else -math.inf, 0, 0.0
    for d in range(D):
        a, b = numbers[SPACES_AT + 2 * d], numbers[SPACES_AT + 2 * d + 1]
        if is_in:
            value = above(given, i, control, d, a, b - tolerance, numbers[HOPED_AT] if d == 0 else 0.0, needed)
        else:
            value = above(given, control, i, d, 1.0 / a, -(b + tolerance) / a, 0.0, needed + math.log(D))
        total += value
        if (value < found) == is_in and value != found:
            found, which = value, d
    if not is_in:
        found = total if numbers[BOUNDARY] == NONE else max(found - math.log(D), 0.0)
    return found, which


@part
def is_better(given, i):
    """Whether arm i is in the plug-in answer."""
    numbers, mean, control = given.numbers, given.mean, np.int64(given.numbers[COMMON])
    D, found = np.int64(numbers[D_AT]), given.pulls[i] > 0 and given.pulls[control] > 0 and i != control
    for d in range(D):
        a, b = numbers[SPACES_AT + 2 * d], numbers[SPACES_AT + 2 * d + 1]
        found = found and mean[i * D + d] - (a * mean[control * D + d] + b) > 0.0
    return found


@part
def control_nearest(given):
    """See the head of the file."""
    numbers, pulls, inside, out = given.numbers, given.pulls, given.inside, given.out
    K, control = len(pulls), np.int64(numbers[COMMON])
    is_asked, least, found, which, needed = inside[0] >= 0, math.inf, (control + 1) % K, 0, numbers[NEEDED]
    decides, first = needed > -math.inf, arm_of(out[1], K)
    first = 0 if not decides else arm_of(out[3], K) if first == control else first
    for n in range(K):
        i = after(first, n, K)
        if not is_asked:
            inside[i] = is_better(given, i)
        if i == control:
            least = -math.inf if inside[i] else least  # it is not better than itself
        else:
            value, d = nearest_of(given, i, inside[i] != 0, needed)
            if value < least:
                least, found, which = value, i, d
                if value < needed:
                    decided(out, pulls, True, i, control)
                    return
    if decides:
        decided(out, pulls, False, found, control)
        return
    out[0] = level(numbers, least, 2, K - 1.0)
    a, b = numbers[SPACES_AT + 2 * which], numbers[SPACES_AT + 2 * which + 1]
    i, j, move = found, control, Move(a, b - numbers[TOLERANCE_AT], -math.inf)
    if inside[found] == 0:
        i, j, move = control, found, Move(1.0 / a, -(b + numbers[TOLERANCE_AT]) / a, -math.inf)
    lower, raised = (i, arm_in(given, i, which)), (j, arm_in(given, j, which))
    report_move(out, K, distribution_of(numbers), lower, raised, move, pulls[i] <= pulls[j])
