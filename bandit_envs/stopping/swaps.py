r"""TopK by the criterion "aggregate": the nearest instance on which a set of k beats the answer by more than epsilon.

A set B beats the answer A where the sum of mu over O = B \ A exceeds that over I = A \ B by k epsilon: a half-space
over s arms of each. For given sets, the least cost of a move there is the maximum over t >= 0 of
    k epsilon t + sum over I of min_mu (w d(m, mu) + t mu) + sum over O of min_mu (w d(m, mu) - t mu),
concave in t. The least over all sets of size s, for one t, takes the s smallest terms of each sum: a bound from below,
as the best sets may change with t. Where it is not the cost of sets, branch and bound decides: arm by arm, in or out.

For certificates the bound is enough: each size s has 1/n of delta, n = min(k, K - k), which its C(k, s) C(K - k, s)
sets share equally; penalties are taken off arm by arm, those of one Gaussian mixture. Sets of size 1 have the
supermartingales of `nearest_pair`, so that the better one of the certificates by sets and by pairs may be taken.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.compiled import part, view
from .boundaries import BOUNDARY, COMMON, MIXTURE, NONE, RHO_AT, distribution_of, enough
from .distributions import BERNOULLI, GAUSSIAN, Move
from .nearest import level, nearest_pair, report_pair, top_k_nearest

CLOSE = 1e-13  # relative error of the least cost
RHO_OF_SETS = 300.0  # pulls of an arm at which the Gaussian mixture of sets is sharpest


@part
def moved(distribution, w, m, v, tilt):
    """The mu at which w d(m, mu) + tilt mu is least; tilt of either sign."""
    if distribution == GAUSSIAN:
        return m - tilt * v / w
    if tilt == 0.0:
        return m
    start, both = m if tilt > 0.0 else 1.0 - m, w + abs(tilt)
    mu = 2.0 * w * start / (both + math.sqrt(max(both * both - 4.0 * abs(tilt) * w * start, 0.0)))
    return mu if tilt > 0.0 else 1.0 - mu


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


class Swaps(NamedTuple):
    """What sets are looked for among: arms (K,), and what is found."""

    distribution: int
    gap: float  # k epsilon
    mean: Any
    scratch: Any  # see `nearest`
    inside: Any
    forced: Any  # 1 for arms that must be in the sets, -1 for arms that must not
    term: Any  # to work in
    chosen: Any  # the sets


@view
def sets_in(distribution, gap, mean, scratch, inside, work):
    """`Swaps` that are looked for in 3 K floats of work."""
    K = len(mean)
    return Swaps(distribution, gap, mean, scratch, inside, work[2 * K : 3 * K], work[:K], work[K : 2 * K])


@part
def dual(sets, s, tilt):
    """The bound of sets of size s at tilt, and its slope in tilt."""
    distribution, gap, mean, scratch, inside, forced, term, chosen = sets
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
def best_dual(sets, s):
    """The largest bound over tilt >= 0, and its tilt, by halvings: the bound is concave."""
    if sets.distribution == BERNOULLI and sets.gap >= s:
        return math.inf, 0.0
    low, high, where = 0.0, 1.0, 0.0
    best, rise = dual(sets, s, 0.0)
    if best == math.inf or rise <= 0.0:
        return best, where
    for _ in range(1000):
        value, rise = dual(sets, s, high)
        if value > best:
            best, where = value, high
        if rise <= 0.0:
            break
        low, high = high, 2.0 * high
    for _ in range(200):
        tilt = 0.5 * (low + high)
        if not low < tilt < high:
            break
        value, rise = dual(sets, s, tilt)
        if value > best:
            best, where = value, tilt
        if rise > 0.0:
            low = tilt
        else:
            high = tilt
        if high - low < 1e-15 * high:
            break
    where = 0.5 * (low + high)  # where the slope is 0: near it the value hardly changes
    dual(sets, s, where)
    return best, where


@part
def search(sets, k, work, most, steps):
    """The sets of least cost, by branch and bound: their cost, or `most` if none costs less; their tilt, steps left.

    work: 6 K floats, the first 3 K those of `sets_in`; the sets are left in work[4 K : 5 K].
    """
    K, best, where, forced, term, chosen = len(sets.mean), most, 0.0, sets.forced, sets.term, sets.chosen
    order, least, before = work[3 * K : 4 * K], work[4 * K : 5 * K], work[5 * K :]
    least[:] = 0.0
    for s in range(1, min(k, K - k) + 1):
        depth, entering = 0, True
        forced[:] = 0.0
        while steps > 0:
            if entering:
                steps -= 1
                bound, _ = best_dual(sets, s)
                entering = bound < best * (1.0 - CLOSE)
            if entering:
                branch = -1
                for a in range(K):
                    if chosen[a] > 0.0 and forced[a] == 0.0:
                        branch = a
                for a in range(K):  # the exact cost of the sets that the bound has chosen
                    term[a] = chosen[a]
                    before[a] = forced[a]
                for a in range(K):
                    forced[a] = 1.0 if term[a] > 0.0 else -1.0
                value, tilt = best_dual(sets, s)
                for a in range(K):
                    forced[a] = before[a]
                if value < best:
                    best, where = value, tilt
                    for a in range(K):
                        least[a] = chosen[a]
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
def swaps_exactly(given):
    """The evidence for TopK with the criterion "aggregate"; numbers: those of `top_k_nearest`."""
    top_k_nearest(given)
    numbers, pulls, mean, _, scratch, inside, out = given
    K, distribution, k = len(pulls), distribution_of(numbers), np.int64(numbers[COMMON])
    work = scratch[5 * K :]
    sets = sets_in(distribution, k * numbers[COMMON + 1], mean, scratch, inside, work)
    best, where, _ = search(sets, k, work, math.inf, 2**62)
    out[0] = max(best, 0.0) if best < math.inf else best
    _report(sets, where, work[4 * K :], out)


@part
def shrink(numbers, pulls, scratch, is_shrunk):
    """Put the weights and penalties of the Gaussian mixture of one rho in the place of the pulls, or these again."""
    K, rho = len(pulls), numbers[RHO_AT] if numbers[RHO_AT] > 0.0 else RHO_OF_SETS
    for a in range(K):
        N = float(pulls[a])
        scratch[2 * K + a] = N * (N / (N + rho)) if is_shrunk else N
        scratch[3 * K + a] = 0.5 * math.log1p(N / rho) if is_shrunk else 0.0


@part
def swaps_level(given):
    """The value of the certificate by sets of any size, or by pairs, where that is more."""
    top_k_nearest(given)
    numbers, pulls, mean, _, scratch, inside, out = given
    K, distribution, k = len(pulls), distribution_of(numbers), np.int64(numbers[COMMON])
    work = scratch[5 * K :]
    gap, n, size, where = k * numbers[COMMON + 1], min(k, K - k), 1, 0.0
    one_mixture = numbers[BOUNDARY] == MIXTURE and distribution == GAUSSIAN
    share = math.log(float(n)) if numbers[BOUNDARY] != NONE else 0.0
    least, i, j = nearest_pair(given, gap, 0, 0)
    least = level(numbers, least, 2, float(k * (K - k))) - share
    if one_mixture:
        shrink(numbers, pulls, scratch, True)
    sets, cheapest = sets_in(distribution, gap, mean, scratch, inside, work), work[4 * K :]
    sets.forced[:] = 0.0
    cheapest[:K] = 0.0
    for s in range(2, n + 1):
        value, tilt = best_dual(sets, s)
        if numbers[BOUNDARY] != NONE:
            value = enough(numbers, value, 2.0 * s) - share - _log_choose(k, s) - _log_choose(K - k, s)
        if value < least:
            least, where, size = value, tilt, s
            for a in range(K):
                cheapest[a] = sets.chosen[a]
    out[0] -= share
    better = least > out[0]
    if better and size > 1:
        _report(sets, where, cheapest, out)
    if one_mixture:
        shrink(numbers, pulls, scratch, False)
    if better:
        if size == 1:
            report_pair(out, distribution, mean, scratch, i, j, Move(1.0, -gap, -math.inf))
        out[0] = least


@part
def _log_choose(n, s):
    return math.lgamma(n + 1.0) - math.lgamma(s + 1.0) - math.lgamma(n - s + 1.0)


@part
def _report(sets, tilt, chosen, out):
    """Report the chosen arms, moved as tilt says."""
    distribution, mean, scratch, inside = sets.distribution, sets.mean, sets.scratch, sets.inside
    K, n = len(mean), 0
    for a in range(K):
        if chosen[a] > 0.0:
            w, m, v, side = scratch[2 * K + a], mean[a], scratch[4 * K + a], tilt if inside[a] else -tilt
            rate, mu = math.inf, m
            if w > 0.0:
                mu = moved(distribution, w, m, v, side)
                rate = max(_term(distribution, 1.0, m, v, side / w) - side / w * mu, 0.0)
            out[2 + n], out[2 + K + n], out[2 + 2 * K + n] = a, rate, mu
            n += 1
    out[1] = n
