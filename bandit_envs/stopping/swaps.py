r"""TopK by the criterion "aggregate": the nearest instance on which a set of k beats the answer by more than epsilon.

A set B beats the answer A where the sum of mu over O = B \ A exceeds that over I = A \ B by k epsilon: a half-space
over s arms of each. For given sets, the least cost of a move there is the maximum over t >= 0 of
    k epsilon t + sum over I of min_mu (w d(m, mu) + t mu) + sum over O of min_mu (w d(m, mu) - t mu),
concave in t. The least over all sets of size s, for one t, takes the s smallest terms of each sum: a bound from below,
as the best sets may change with t. Where it is not the cost of sets, branch and bound decides: arm by arm, in or out.

For certificates the bound is enough: each size s has 1/n of delta, n = min(k, K - k), which its sets share equally;
penalties are taken off arm by arm, those of one Gaussian mixture. The number of sets is C(k, s) C(K - k, s), the truly
best k being fixed. Sets of size 1 are pairs, and have the supermartingales of `nearest_pair`: the certificate by pairs
alone, of which each is worse by more than epsilon, rests on the same ones. So whichever of the two certificates is
better may be taken, and their union is delta.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..kernels.compiled import jit, part
from .boundaries import BOUNDARY, COMMON, DISTRIBUTION, MIXTURE, NONE, RHO_AT, enough
from .distributions import BERNOULLI, GAUSSIAN
from .nearest import level, nearest_pair, report_pair
from .versions import the_distribution

__all__ = ["Goal", "moved", "swaps_below", "swaps_bound", "swaps_exactly", "swaps_level"]

CLOSE = 1e-13  # relative error of the least cost
RHO_OF_SETS = 300.0  # pulls of an arm at which the Gaussian mixture of sets is sharpest


@part
def moved(distribution, w, m, v, tilt):
    """The mu at which w d(m, mu) + tilt mu is least; tilt of either sign."""
    if distribution == GAUSSIAN:
        return m - tilt * v / w
    if tilt == 0.0:
        return m
    if tilt < 0.0:
        return 1.0 - _lowered(w, 1.0 - m, -tilt)
    return _lowered(w, m, tilt)


@part
def _lowered(w, m, tilt):
    """As `moved`, of a Bernoulli arm, tilt > 0."""
    both = w + tilt
    return 2.0 * w * m / (both + math.sqrt(max(both * both - 4.0 * tilt * w * m, 0.0)))


@part
def _term(distribution, w, m, v, tilt):
    """The least of w d(m, mu) + tilt mu."""
    if w <= 0.0:
        return 0.0 if tilt == 0.0 else -math.inf
    if distribution == GAUSSIAN:
        return tilt * m - 0.5 * tilt * tilt * v / w
    mu = moved(distribution, w, m, v, tilt)
    found = tilt * mu  # mu in (0, 1) but where m is not
    if m > 0.0:
        found -= w * m * math.log1p((mu - m) / m)
    if m < 1.0:
        found -= w * (1.0 - m) * math.log1p((m - mu) / (1.0 - m))
    return found


@part
def _dual(distribution, s, gap, tilt, mean, scratch, inside, forced, term, chosen):
    """The bound of sets of size s at tilt, and its slope in tilt; chosen (K,): the sets; gap: k epsilon.

    `forced` (K,): 1 for arms that must be in the sets, -1 for arms that must not.
    """
    K = len(mean)
    value, rise = gap * tilt, gap
    for a in range(K):
        side = 1.0 if inside[a] else -1.0
        term[a] = _term(distribution, scratch[2 * K + a], mean[a], scratch[4 * K + a], side * tilt) - scratch[3 * K + a]
        chosen[a] = 0.0
    for side in range(2):
        count = 0
        for a in range(K):
            if forced[a] == 1.0 and (inside[a] != 0) == (side == 1):
                chosen[a] = 1.0
                count += 1
        while count < s:
            best = -1
            for a in range(K):
                free = chosen[a] == 0.0 and forced[a] == 0.0 and (inside[a] != 0) == (side == 1)
                if free and (best < 0 or term[a] < term[best]):
                    best = a
            if best < 0:
                return math.inf, math.inf
            chosen[best] = 1.0
            count += 1
        if count > s:
            return math.inf, math.inf
    for a in range(K):
        if chosen[a] > 0.0:
            value += term[a]
            w, sign = scratch[2 * K + a], 1.0 if inside[a] else -1.0
            rise += sign * moved(distribution, w, mean[a], scratch[4 * K + a], sign * tilt) if w > 0.0 else -math.inf
    return value, rise


@part
def _best_dual(distribution, s, gap, mean, scratch, inside, forced, term, chosen):
    """The largest bound over tilt >= 0, and its tilt, by halvings: the bound is concave."""
    if distribution == BERNOULLI and gap >= s:
        return math.inf, 0.0
    low, high = 0.0, 1.0
    best, rise = _dual(distribution, s, gap, 0.0, mean, scratch, inside, forced, term, chosen)
    if best == math.inf:
        return best, 0.0
    where = 0.0
    if rise <= 0.0:
        return best, where
    for _ in range(1000):
        value, rise = _dual(distribution, s, gap, high, mean, scratch, inside, forced, term, chosen)
        if value > best:
            best, where = value, high
        if rise <= 0.0:
            break
        low, high = high, 2.0 * high
    for _ in range(200):
        tilt = 0.5 * (low + high)
        if not low < tilt < high:
            break
        value, rise = _dual(distribution, s, gap, tilt, mean, scratch, inside, forced, term, chosen)
        if value > best:
            best, where = value, tilt
        if rise > 0.0:
            low = tilt
        else:
            high = tilt
        if high - low < 1e-15 * high:
            break
    where = 0.5 * (low + high)  # where the slope is 0: near it the value hardly changes
    _dual(distribution, s, gap, where, mean, scratch, inside, forced, term, chosen)
    return best, where


@part
def _search(distribution, k, gap, mean, scratch, inside, work, most, steps):
    """The sets of least cost, by branch and bound: their cost, or `most` if none costs less; their tilt, steps left.

    It is given up after so many steps; none are left then. work: 6 K floats; the sets are left in work[4 K : 5 K].
    """
    K, best, where = len(mean), most, 0.0
    term, chosen, forced, order, sets = (
        work[:K], work[K : 2 * K], work[2 * K : 3 * K], work[3 * K : 4 * K], work[4 * K :],
    )  # fmt: skip
    for a in range(K):
        sets[a] = 0.0
    for s in range(1, min(k, K - k) + 1):
        depth, entering = 0, True
        for a in range(K):
            forced[a] = 0.0
        while steps > 0:
            if entering:
                steps -= 1
                bound, _ = _best_dual(distribution, s, gap, mean, scratch, inside, forced, term, chosen)
                entering = bound < best * (1.0 - CLOSE)
            if entering:
                branch = -1
                for a in range(K):
                    if chosen[a] > 0.0 and forced[a] == 0.0:
                        branch = a
                for a in range(K):  # the exact cost of the sets that the bound has chosen
                    term[a] = chosen[a]
                    sets[K + a] = forced[a]
                for a in range(K):
                    forced[a] = 1.0 if term[a] > 0.0 else -1.0
                value, tilt = _best_dual(distribution, s, gap, mean, scratch, inside, forced, term, chosen)
                for a in range(K):
                    forced[a] = sets[K + a]
                if value < best:
                    best, where = value, tilt
                    for a in range(K):
                        sets[a] = chosen[a]
                entering = branch >= 0 and bound < best * (1.0 - CLOSE)
                if entering:
                    forced[branch], order[depth] = 1.0, branch
                    depth += 1
                    continue
            while depth > 0 and forced[np.int64(order[depth - 1])] == -1.0:  # both branches are done
                depth -= 1
                forced[np.int64(order[depth])] = 0.0
            if depth == 0:
                break
            forced[np.int64(order[depth - 1])], entering = -1.0, True
    return best, where, steps


@part
def swaps_exactly(numbers, pulls, mean, scratch, inside, out, work):
    """The evidence for TopK with the criterion "aggregate"; numbers: those of `TopK.certifier`."""
    K, distribution, k = len(pulls), the_distribution(numbers[DISTRIBUTION]), np.int64(numbers[COMMON])
    best, where, _ = _search(distribution, k, k * numbers[COMMON + 1], mean, scratch, inside, work, math.inf, 2**62)
    out[0] = max(best, 0.0) if best < math.inf else best
    _report(distribution, where, mean, scratch, inside, work[4 * K :], out)


class Goal(NamedTuple):
    """Of which arms, how many are chosen, and by how much the sum of the others must be larger."""

    distribution: int
    k: int
    gap: float


@jit
def swaps_below(goal, mean, scratch, inside, work, most, steps):
    """The least cost of sets, or `most` if none costs less, and whether so many steps were enough; see `_search`."""
    best, _, left = _search(goal.distribution, goal.k, goal.gap, mean, scratch, inside, work, most, steps)
    return best, left > 0


@part
def shrink(numbers, pulls, scratch, is_shrunk):
    """Put the weights and penalties of the Gaussian mixture of one rho in the place of the pulls, or these again."""
    K, rho = len(pulls), numbers[RHO_AT] if numbers[RHO_AT] > 0.0 else RHO_OF_SETS
    for a in range(K):
        N = float(pulls[a])
        scratch[2 * K + a] = N * (N / (N + rho)) if is_shrunk else N
        scratch[3 * K + a] = 0.5 * math.log1p(N / rho) if is_shrunk else 0.0


@part
def swaps_level(numbers, pulls, mean, scratch, inside, out, work):
    """The value of the certificate by sets of any size; `out` holds that by pairs, and is changed where it is less."""
    K, distribution, k = len(pulls), the_distribution(numbers[DISTRIBUTION]), np.int64(numbers[COMMON])
    gap, n, size, where = k * numbers[COMMON + 1], min(k, K - k), 1, 0.0
    one_mixture = numbers[BOUNDARY] == MIXTURE and distribution == GAUSSIAN
    share = math.log(float(n)) if numbers[BOUNDARY] != NONE else 0.0
    least, i, j = nearest_pair(numbers, mean, scratch, inside, gap, 0)
    least = level(numbers, least, 2, float(k * (K - k))) - share
    if one_mixture:
        shrink(numbers, pulls, scratch, True)
    term, chosen, forced, sets = work[:K], work[K : 2 * K], work[2 * K : 3 * K], work[4 * K :]
    for a in range(K):
        forced[a] = sets[a] = 0.0
    for s in range(2, n + 1):
        value, tilt = _best_dual(distribution, s, gap, mean, scratch, inside, forced, term, chosen)
        counted = numbers[BOUNDARY] != NONE
        value = (
            enough(numbers, value, 2.0 * s) - share - _log_choose(k, s) - _log_choose(K - k, s) if counted else value
        )
        if value < least:
            least, where, size = value, tilt, s
            for a in range(K):
                sets[a] = chosen[a]
    out[0] -= share
    better = least > out[0]
    if better and size > 1:
        _report(distribution, where, mean, scratch, inside, sets, out)
    if one_mixture:
        shrink(numbers, pulls, scratch, False)
    if better and size == 1:
        report_pair(out, distribution, mean, scratch, i, j, 1.0, -gap, -math.inf)
    if better:
        out[0] = least


@jit
def swaps_bound(goal, mean, scratch, inside, work, sets, values):
    """For each number s of swaps: a bound from below of what sets of size s cost, and sets that come close to it.

    work: 3 K floats. values (n,), sets (3 n, K): to be filled; sets of 0 alone are none.
    """
    K, n, distribution, gap = len(mean), len(values), goal.distribution, goal.gap
    term, chosen, forced = work[:K], work[K : 2 * K], work[2 * K : 3 * K]
    for a in range(K):
        forced[a] = 0.0
    for s in range(1, n + 1):
        values[s - 1], tilt = _best_dual(distribution, s, gap, mean, scratch, inside, forced, term, chosen)
        for side in range(3):  # where the sets change, those before and those after it
            if tilt > 0.0:
                _dual(
                    distribution, s, gap, tilt * (1.0 + (side - 1) * 1e-7), mean, scratch, inside, forced, term, chosen
                )
            for a in range(K):
                sets[3 * (s - 1) + side, a] = chosen[a] if tilt > 0.0 else 0.0


@part
def _log_choose(n, s):
    return math.lgamma(n + 1.0) - math.lgamma(s + 1.0) - math.lgamma(n - s + 1.0)


@part
def _report(distribution, tilt, mean, scratch, inside, sets, out):
    """Report the arms of the sets, moved as tilt says."""
    K, n = len(mean), 0
    for a in range(K):
        if sets[a] > 0.0:
            w, m, v, side = scratch[2 * K + a], mean[a], scratch[4 * K + a], tilt if inside[a] else -tilt
            mu = moved(distribution, w, m, v, side) if w > 0.0 else m
            out[2 + n] = a
            rate = math.inf
            if w > 0.0:
                rate = max(_term(distribution, 1.0, m, v, side / w) - side / w * mu, 0.0)
            out[2 + K + n], out[2 + 2 * K + n] = rate, mu
            n += 1
    out[1] = n
