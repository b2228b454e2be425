"""The nearest instance on which an answer of Feasible is wrong: of arms of D dimensions.

An arm left out is good where its margin is at least the tolerance: in the polyhedron whose rows are moved inwards by
the tolerance. An arm in the answer is bad where it lies further than the tolerance from the polyhedron.

GAUSSIAN   Left out: the distance is that of a projection, the mixture that of D dimensions. In the answer: the shortest
           path out leads through the nearest face, and the mixture is that of one dimension, with a side.
DEPENDENT  Gaussian (sub-Gaussian) of scale sigma in each coordinate, which may depend on each other: a direction a has
           the scale sigma |a|_1 (docs/certificates-theory.md). In the answer: at least min over rows of slack / |a|_1,
           plus tolerance / sqrt(D), scales away. Left out: the mixture, 1 / M each, of the rows that are violated.
BERNOULLI  Coordinates are independent. Left out: `cost_of_entering`, the least sum over coordinates of d(m, mu) where
           A mu <= b. It is that of the dual, concave:
               max over y >= 0 of sum over d of min_mu (d(m_d, mu) + (y A)_d mu) - y b.
           One multiplier after the other is set to where the dual is largest, until none of them changes: what
           minimises the sum then meets its row. Whatever the multipliers are, the dual is a bound of the cost from
           below, so that a certificate is valid however soon it is stopped. In the answer: the cheapest row to cross.
STUDENT    Coordinates are independent. A row a is crossed at 1/2 ln(1 + s^2 / sum of a^2 v), s its slack, a bound from
           below in more than one dimension: a product of 1 + z^2 / v is no less than 1 + their sum. Left out: the row
           that costs most.
BOUNDED    Rows of one coordinate each; coordinates may depend on each other. In the answer: the row that is crossed
           with the least evidence. Left out: the mixture, 1 / M each, of the rows that are violated.

BERNOULLI, STUDENT and BOUNDED leave the tolerance out of account for arms in the answer: a bound from below as well. A
projection that the active-set method leaves undecided counts as distance 0, which certifies nothing.
"""

import math

import numpy as np

from ..kernels.compiled import inlined, part
from ..kernels.geometry import UNDECIDED, margin_of, scratch_size, unpacked
from .betting import bet_arm, scaled
from .boundaries import BOUNDARY, COMMON, D_AT, DEPENDENT, NONE, arm_penalty, distribution_of, enough, refresh
from .distributions import BERNOULLI, BOUNDED, GAUSSIAN, Arm, divergence
from .nearest import report
from .swaps import moved
from .values import arm_value

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


@part
def _slack(x, rows, b, j):
    """b - a'x of row j."""
    slack = b[j]
    for d in range(len(x)):
        slack -= rows[d, j] * x[d]
    return slack


@part
def _depth(x, rows, b, unit):
    """The distance of a point in a polyhedron from its nearest face."""
    least = math.inf
    for j in range(len(b)):
        least = min(least, _slack(x, rows, b, j) * unit[j])
    return least


@part
def _scales(x, rows, b, j):
    """How many scales of its direction, each |a|_1 for sigma = 1, a point lies inside row j; negative: beyond it."""
    norm = 0.0
    for d in range(len(x)):
        norm += abs(rows[d, j])
    return _slack(x, rows, b, j) / norm


@part
def _dependent_inside(x, rows, b, margin, tolerance):
    """How many scales a bad mean is away, at least, from x, of an arm in the answer, coordinates being dependent."""
    apart = tolerance / math.sqrt(len(x))
    if not margin >= 0.0:
        return max(apart + margin / math.sqrt(len(x)), 0.0) if margin > UNDECIDED else 0.0
    least = math.inf
    for j in range(len(b)):
        least = min(least, _scales(x, rows, b, j))
    return max(least, 0.0) + apart


@part
def _dependent_left_out(numbers, N, v, p, x, rows, b):
    """The value of an arm left out, coordinates being dependent, and how many scales away the costliest row is."""
    far = total = 0.0
    for j in range(len(b)):
        far = max(far, -_scales(x, rows, b, j))
    most = arm_value(numbers, N, 0.0, v, p, far)
    if numbers[BOUNDARY] == NONE or N <= 0.0 or far <= 0.0:
        return most if numbers[BOUNDARY] == NONE or N <= 0.0 else most - math.log(float(len(b))), far
    for j in range(len(b)):
        scales = -_scales(x, rows, b, j)
        if scales > 0.0:  # a row that is met counts as nothing, no more than it is worth
            total += math.exp(arm_value(numbers, N, 0.0, v, p, scales) - most)
    return most + math.log(total / len(b)), far


@part
def _student_row(x, v, rows, b, j):
    """The cost of crossing row j."""
    slack, scale = _slack(x, rows, b, j), 0.0
    for d in range(len(x)):
        scale += rows[d, j] * rows[d, j] * v[d]
    return 0.5 * math.log1p(slack * slack / scale)


@part
def _leaving(distribution, x, v, rows, b, scratch):
    """The least cost of one pull to cross a row, of a mean in the polyhedron."""
    least = math.inf
    for j in range(len(b)):
        if distribution == BERNOULLI:
            least = min(least, cost_of_entering(x, rows, b, -1.0, j, j + 1, scratch))
        else:
            least = min(least, _student_row(x, v, rows, b, j))
    return least


@part
def _entering(distribution, x, v, rows, b, scratch):
    """The cost of one pull to move a mean into a polyhedron."""
    if distribution == BERNOULLI:
        return cost_of_entering(x, rows, b, 1.0, 0, len(b), scratch)
    most = 0.0
    for j in range(len(b)):
        if _slack(x, rows, b, j) < 0.0:
            most = max(most, _student_row(x, v, rows, b, j))
    return most


@part
def _penalties(numbers, N, x, v):
    """The penalty of all coordinates, and whether they are known."""
    found, known = 0.0, N > 0.0
    for d in range(len(x)):
        known &= v[d] > 0.0 or distribution_of(numbers) == BERNOULLI
        found += arm_penalty(numbers, N, x[d], v[d]) if known else 0.0
    return found, known


@part
def _by_bets(given, i, rows, b, is_in, work):
    """The value of arm i by bets: the least over rows of leaving through it; or a mixture of entering through them."""
    numbers, mean, variance, N = given.numbers, given.mean, given.variance, float(given.pulls[i])
    D, M, size = rows.shape[0], rows.shape[1], len(mean)
    least, most, total = math.inf, -math.inf, 0.0
    for j in range(M):
        one = 0
        for d in range(D):
            one = d if rows[d, j] != 0.0 else one
        o, wall = i * D + one, b[j] / rows[one, j]
        beyond = (mean[o] > wall) == (rows[one, j] > 0.0) and mean[o] != wall
        if beyond == is_in:
            least = 0.0
            continue
        arm = scaled(numbers, N, mean[o], variance[o], variance[size + o], variance[2 * size + o])
        value = bet_arm(numbers, arm, wall, work)
        least = min(least, value)
        if value > most:
            most, total = value, total * math.exp(most - value) + 1.0
        else:
            total += math.exp(value - most)
    if is_in or most == -math.inf or most == math.inf:
        return least if is_in else max(most, 0.0)
    return most + math.log(total / M)


@part
def polyhedral_nearest(given):
    """Feasible; numbers: COMMON + 0: tolerance; + 1: whether the smaller polyhedron has any points; + 2 ..: both."""
    numbers, pulls, mean, variance, scratch, inside, out = given
    K, distribution, tolerance = len(pulls), distribution_of(numbers), numbers[COMMON]
    refresh(numbers, pulls, mean, variance, scratch, 0, K)
    D, M = np.int64(numbers[COMMON + 2]), np.int64(numbers[COMMON + 3])
    size = (M + 2) * (D + 2)
    whole = unpacked(numbers[COMMON + 2 : COMMON + 2 + size])
    smaller = unpacked(numbers[COMMON + 2 + size : COMMON + 2 + 2 * size])
    rows, b, unit, few, ends = whole.rows, whole.b, whole.unit, smaller.rows, smaller.b
    y, work = scratch[5 * K : 5 * K + D], scratch[5 * K + D : 5 * K + D + scratch_size(D, M)]
    crossing = scratch[5 * K + D + scratch_size(D, M) :]
    plug_in = inside[0] < 0
    least, found, length = math.inf, 0, 0.0
    for i in range(K):
        x, v = mean[i * D : (i + 1) * D], variance[i * D : (i + 1) * D]
        margin = margin_of(x, whole, work, y)
        if plug_in:
            inside[i] = pulls[i] > 0 and margin >= 0.0
        some = inside[i] or numbers[COMMON + 1] != 0.0
        w, scale, p = scratch[2 * K + i], scratch[4 * K + i], scratch[3 * K + i]
        if distribution == GAUSSIAN and numbers[DEPENDENT] != 0.0:
            if inside[i]:
                distance = _dependent_inside(x, rows, b, margin, tolerance)
                value = arm_value(numbers, w, 0.0, scale, p, distance)
            elif some:
                value, distance = _dependent_left_out(numbers, w, scale, p, x, few, ends)
            else:
                value = distance = math.inf
        elif distribution == GAUSSIAN:
            if inside[i]:
                distance = _depth(x, rows, b, unit) if margin >= 0.0 else max(margin, -math.inf)
                distance = 0.0 if margin == UNDECIDED else max(distance + tolerance, 0.0)
            elif some:
                inner = margin if tolerance == 0.0 else margin_of(x, smaller, work, y)
                distance = 0.0 if inner == UNDECIDED else max(-inner, 0.0)
            else:
                distance = math.inf
            value = arm_value(numbers, w, 0.0, scale, p, distance, 1.0 if inside[i] else numbers[D_AT])
        elif distribution == BOUNDED:
            wall, ends_at = (rows, b) if inside[i] else (few, ends)
            distance = math.inf if not some else 0.0
            if some and pulls[i] > 0 and (margin >= 0.0 or not inside[i]):
                is_in, bets = inside[i] != 0, crossing[crossing_scratch_size(D, M) :]
                distance = _by_bets(given, i, wall, ends_at, is_in, bets) / float(pulls[i])
            value = pulls[i] * distance if pulls[i] > 0 else 0.0
        else:
            penalty, known = _penalties(numbers, float(pulls[i]), x, v)
            if not some:
                distance = math.inf
            elif inside[i]:
                distance = _leaving(distribution, x, v, rows, b, crossing) if margin >= 0.0 and known else 0.0
            else:
                distance = _entering(distribution, x, v, few, ends, crossing) if known else 0.0
            value = pulls[i] * distance - penalty if known else 0.0
        if value < least:
            least, found, length = value, i, distance
    out[0] = least if numbers[BOUNDARY] == NONE else enough(numbers, least, 1.0) - math.log(float(K))
    out[1] = 1.0
    if distribution == GAUSSIAN:
        report(out, K, 0, distribution, found, Arm(0.0, scratch[2 * K + found], scratch[4 * K + found], 0.0), length)
    else:
        out[2], out[2 + K], out[2 + 2 * K] = found, length if pulls[found] > 0 else math.inf, length
