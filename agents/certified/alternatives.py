"""Incremental search for the closest alternative to the current answer: O(K) per pull and episode; see `classes` too.

Pairs of arms decide TopK, BestArm and AllGood (see `bandit_envs.stopping.nearest_alternative`, which looks at all of
them at once). Here each arm i has a row: the closest of its alternatives, the other arm of the pair, and its statistic.

symbols   TOP_K      i in the answer, lowered to j's mean + b, for the j outside where that is cheapest; b = -epsilon
          ALL_GOOD   i in the answer, lowered below a mu_j + b for some j, the cheapest; i left out, raised, while one j
                     is lowered to c mu_i + d: the j where this costs most, as one is enough to keep i out
          CONTROL    i in the answer, lowered to a mu_c + b, c the control; i left out, raised, while c is lowered
          LOCAL      i by itself, moved across its boundary: a certifier of one arm gives the statistic
statistic what the move is worth, by `pair_value`, less what it must exceed: a certified answer has all above 0

A pull of arm a changes its row, which is computed again, and one pair of each other row. Where that pair was the row's
own, and is no longer certain to be, the row is `stale`: its statistic is a bound from below, and the row is computed
again only if it comes to be the least of all. So what `cheapest` finds is exact. Of a row or a column only those pairs
are computed that bounds (`pair_bounds`) leave open: few of 1000. Arms that have shown the same share what is found for
one of them. Where an arm is only to weigh more (`grow`), no statistic falls.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit_envs import stopping
from bandit_envs.kernels import part, view
from bandit_envs.stopping import BERNOULLI, HOPED_AT, STUDENT, Arm, Arms, Move, arm_value, the_distribution, the_kind

from ..core.agent import Floats, Ints

LOCAL, TOP_K, ALL_GOOD, CONTROL = range(4)
BOUNDARY, PULLS, BONUS, KEPT, MEANS = range(5)  # see `observe` of `policy`
NO_BETTER = -1e300
# Of a row, `value` is: exact; a bound from below; the same, and its own pair and `second` are not computed; the same,
# and the row will be exact when they are.
EXACT, STALE, UNSEEN, PENDING = range(4)
TWINS = 64  # arms that are kept, a power of 2


class Sides(NamedTuple):
    """What an answer must hold: the same in all episodes."""

    kind: int
    distribution: int
    k: int  # TOP_K; CONTROL: the control
    a: float  # an arm i in the answer is wrong where mu_i <= a mu_j + b, mu_j >= floor
    b: float
    floor: float
    c: float  # an arm i that is left out can be right only where mu_j <= c mu_i + d, mu_i >= bottom
    d: float
    bottom: float
    keep: float  # the plug-in answer: means of at least min(keep max + shift, max); above keep mu_c + shift
    shift: float
    variance: float  # of a sample, where it is known
    need_in: float  # what an alternative of an arm in the answer must exceed
    need_out: float
    open_in: float  # a pair that costs less is open, see `racer`
    open_out: float


class Book(NamedTuple):
    """What is known of the arms of an episode, (K,) each; the rows, see above."""

    numbers: Floats  # of the distribution and the boundary
    mean: Floats
    weight: Floats
    penalty: Floats
    scale: Floats
    own: Floats  # Bernoulli: weight times entropy
    value: Floats
    partner: Ints
    second: Ints  # of an arm that ALL_GOOD leaves out: what may be the partner next, -1 for none
    stale: Any  # int8
    inside: Any  # int8: the plug-in answer
    open: Any  # int8: the arms that race
    times: Floats  # how often arms were pulled, for `racer`
    bound: Floats  # (K,), to work in
    twins: Ints  # (TWINS,), likewise


class Alone(NamedTuple):
    """A certifier of one arm, for LOCAL, and its scratch."""

    address: int
    numbers: Floats
    scratch: Floats
    inside: NDArray[np.int8]  # (1,)
    out: Floats  # (5,)


class Alternative(NamedTuple):
    """An alternative to the answer: the arms that it lowers and raises, the same arm twice where it moves one only."""

    lowered: int
    raised: int
    down: float  # divergences, the derivatives of the evidence by the pulls of the two; inf for an arm of weight 0
    up: float


@view
def _arm(sides, book, i):
    """Arm i, an `Arm`, of weight 0 as long as its variance is unknown."""
    known = the_distribution(sides.distribution) != STUDENT or book.scale[i] > 0.0
    return Arm(book.mean[i], book.weight[i] if known else 0.0, book.scale[i], book.penalty[i])


@view
def _inward(sides):
    """The `Move` by which an arm i in the answer is wrong beside an arm j."""
    return Move(sides.a, sides.b, sides.floor)


@view
def _outward(sides):
    """The `Move` by which an arm j that is left out is right, though an arm i is lowered beside it."""
    return Move(sides.c, sides.d, sides.bottom)


@part
def _value(sides, book, i, j, move):
    """The value of moving arm i down and arm j up."""
    lower, raised, (a, b, floor) = _arm(sides, book, i), _arm(sides, book, j), move
    m, x, n, w = lower.mean, lower.weight, raised.mean, raised.weight
    plain = a == 1.0 and b == 0.0 and floor == -math.inf
    if the_kind(sides.kind) == CONTROL:
        hoped = book.numbers[HOPED_AT] if i != sides.k else 0.0
        return stopping.comparison_value(book.numbers, lower, raised, move, hoped)
    if the_distribution(sides.distribution) == BERNOULLI and plain and m > n and min(x, w) > 0.0:
        hits, misses = x * m + w * n, x * (1.0 - m) + w * (1.0 - n)  # the cheapest move is to the mean of all samples
        total = hits + misses
        cost = -book.own[i] - book.own[j] - hits * math.log(hits / total) - misses * math.log(misses / total)
        return stopping.bernoulli_value(book.numbers, cost - (lower.penalty + raised.penalty), lower, raised, move)
    if a > 0.0:
        return stopping.pair_value(book.numbers, lower, raised, move)
    return arm_value(book.numbers, x, m, lower.scale, lower.penalty, min(m, 0.0))  # so much slack: i falls below 0


@part
def pair_statistic(sides, book, i, j):
    """The value of the pair by which arm i is wrong beside j: i is in the answer, or left out though j is no better."""
    if book.inside[i]:
        return _value(sides, book, i, j, _inward(sides)) - sides.need_in
    if the_kind(sides.kind) != CONTROL and book.mean[j] <= sides.c * book.mean[i] + sides.d:
        return NO_BETTER
    return _value(sides, book, j, i, _outward(sides)) - sides.need_out


@part
def is_far(sides, book, i, j, least):
    """Whether a bound shows that the pair of arm i, in the answer, and arm j is worth more than `least`."""
    lower, raised = _arm(sides, book, i), _arm(sides, book, j)
    return stopping.pair_bound(book.numbers, lower, raised, _inward(sides)) - sides.need_in > least


@part
def _bounds(sides, book, i, is_lowered, is_in, is_above):
    """Fill in bounds of the pairs of arm i and all others, by which arms in the answer or left out are wrong."""
    arms, need = Arms(book.mean, book.weight, book.penalty), sides.need_in if is_in else sides.need_out
    move = _inward(sides) if is_in else _outward(sides)
    stopping.pair_bounds(book.numbers, arms, np.int64(i), is_lowered, move, need, is_above, book.bound)


@part
def _least(book):
    """The least value of all rows."""
    least = math.inf
    for other in range(len(book.value)):
        least = min(least, book.value[np.uint64(other)])
    return least


@view
def _alike(book, i, j):
    """Whether two arms have shown the same."""
    same = book.mean[i] == book.mean[j] and book.weight[i] == book.weight[j]
    return same and book.penalty[i] == book.penalty[j] and book.scale[i] == book.scale[j]


@view
def _repeats(book, other):
    """Whether an arm before this one has shown the same, so that its pair is worth as much; else this one is kept."""
    j = np.uint64(other)
    place = np.uint64(np.int64(1009.0 * book.mean[j] + 31.0 * book.weight[j]) & (TWINS - 1))
    which = book.twins[place]
    if 0 <= which < other and _alike(book, j, np.uint64(which)):
        return True
    book.twins[place] = other
    return False


@part
def row(sides, book, arm):
    """Compute the row of an arm again: only the pairs that bounds leave open, of arms that are alike only the first.

    The pair that was the row's own comes first, as it hardly changes, and then the one of the best bound.
    """
    K, bound, inside, i, old = len(book.mean), book.bound, book.inside, np.uint64(arm), book.partner[arm]
    book.stale[i], is_in = EXACT, inside[arm] != 0
    if the_kind(sides.kind) == CONTROL:
        book.partner[i] = sides.k
        book.value[i] = math.inf if arm == sides.k else pair_statistic(sides, book, i, sides.k)
        return
    if not is_in and the_kind(sides.kind) != ALL_GOOD:
        book.value[i], book.partner[i] = math.inf, -1
        return
    _bounds(sides, book, arm, is_in, is_in, not is_in)
    if old == arm or (old >= 0 and the_kind(sides.kind) != ALL_GOOD and inside[old]):
        old = -1
    first: Any = np.int64(-1)
    least, sign = math.inf, 1.0 if is_in else -1.0  # left out, the largest value counts
    for other in range(K):
        j = np.uint64(other)
        counts = other not in (arm, old) and (the_kind(sides.kind) == ALL_GOOD or not inside[j])
        if counts and sign * bound[j] < least:
            first, least = other, sign * bound[j]
    which: Any = np.int64(-1)
    best, second = math.inf, first
    for place in range(TWINS):
        book.twins[place] = -1
    for place in range(-2, K):
        one: Any = old if place == -2 else first if place == -1 else place
        if one < 0 or one == arm or (place >= 0 and one in (old, first)):
            continue
        j = np.uint64(one)
        if (place > -2 and sign * bound[j] > best) or (the_kind(sides.kind) != ALL_GOOD and inside[j]):
            continue
        if not _repeats(book, one):
            value = sign * pair_statistic(sides, book, i, j)
            if value < best or (value == best and one < which):
                second = which if which >= 0 else second
                best, which = value, one
    book.value[i], book.partner[i], book.second[i] = sign * best, which, second


@part
def column(sides, book, arm):
    """Arm `arm` has changed, or changed sides: bring its pair in all other rows up to date, by bounds if these do."""
    a, bound, least = np.uint64(arm), book.bound, _least(book)
    if the_kind(sides.kind) == CONTROL:
        for other in range(len(book.mean) if arm == sides.k else 0):
            row(sides, book, other)
        return
    if the_kind(sides.kind) == ALL_GOOD or not book.inside[a]:
        _bounds(sides, book, arm, False, True, False)
    last, value = -1, 0.0
    for other in range(len(book.mean)):
        i = np.uint64(other)
        if i == a or not book.inside[i]:
            continue
        own, state = book.partner[i] == arm, book.stale[i]
        waits = state == PENDING and book.second[i] == arm
        if the_kind(sides.kind) != ALL_GOOD and book.inside[a]:
            book.stale[i] = STALE if own or waits else state
        elif bound[i] > book.value[i]:
            book.stale[i] = STALE if own else state
        elif bound[i] > least:
            book.value[i] = bound[i]
            book.stale[i] = PENDING if waits or (state == EXACT and not own) else STALE
            book.second[i] = arm
        else:
            if last < 0 or not _alike(book, i, np.uint64(last)):
                value, last = pair_statistic(sides, book, i, a), other
            if value < book.value[i]:
                book.value[i], book.partner[i], book.stale[i] = value, arm, EXACT
            elif value == book.value[i] and state == EXACT:
                book.partner[i] = min(arm, book.partner[i])  # the first of equals
            elif own:
                book.stale[i] = STALE
    if the_kind(sides.kind) != ALL_GOOD:
        return
    if _beside(sides, book, arm, least):
        _bounds(sides, book, arm, True, False, False)
        for other in range(len(book.mean)):
            i = np.uint64(other)
            if book.partner[i] == arm and not book.inside[i]:
                book.value[i] = bound[i] if book.mean[a] > sides.c * book.mean[i] + sides.d else NO_BETTER
                book.stale[i] = UNSEEN


@part
def _beside(sides, book, arm, least):
    """Arm `arm` has changed: bring its pair with each arm left out up to date; whether it is the own one of any."""
    a, bound, touched, last, value = np.uint64(arm), book.bound, False, -1, 0.0
    _bounds(sides, book, arm, True, False, True)
    for other in range(len(book.mean)):
        i = np.uint64(other)
        if i == a or book.inside[i]:
            continue
        if book.partner[i] == arm:
            touched = True
        elif bound[i] < book.value[i]:
            continue
        elif book.value[i] > least or book.stale[i] == PENDING:
            waits = book.stale[i] == PENDING and book.second[i] == arm
            book.stale[i] = PENDING if waits or book.stale[i] == EXACT else UNSEEN
            book.second[i] = arm
        else:
            if last < 0 or not _alike(book, i, np.uint64(last)):
                value, last = pair_statistic(sides, book, i, a), other
            if value > book.value[i]:
                book.value[i], book.partner[i], book.second[i] = value, arm, book.partner[i]
            elif value == book.value[i]:
                book.partner[i] = min(arm, book.partner[i])
    return touched


@part
def leaver(book, arm):
    """The arms that leave and enter the answer of TOP_K, of which arm `arm`, whose mean has changed, is one; else -1.

    The other is the best arm outside, the first of equals, or the worst one inside, the last of equals.
    """
    mean, inside, rival = book.mean, book.inside, -1
    for i in range(len(mean)):
        if inside[i] != inside[arm]:
            if inside[arm]:
                rival = i if rival < 0 or mean[i] > mean[rival] else rival
            else:
                rival = i if rival < 0 or mean[i] <= mean[rival] else rival
    low, high = (arm, rival) if inside[arm] else (rival, arm)
    if mean[high] > mean[low] or (mean[high] == mean[low] and high < low):
        return low, high
    return -1, -1


@part
def change_sides(sides, book, arm):
    """Let arm `arm`, whose mean has changed, or another one, enter or leave the plug-in answer."""
    K, mean, inside = len(book.mean), book.mean, book.inside
    if the_kind(sides.kind) == TOP_K:
        low, high = leaver(book, arm)
        if low >= 0:
            inside[low], inside[high] = 0, 1
            row(sides, book, low)
            row(sides, book, high)
            column(sides, book, low if high == arm else high)
    elif the_kind(sides.kind) == ALL_GOOD:
        best = -math.inf
        for i in range(K):
            best = max(best, mean[i])
        boundary = min(sides.keep * best + sides.shift, best)
        for i in range(K):
            if (inside[i] != 0) != (mean[i] >= boundary):
                inside[i] = 1 - inside[i]
                row(sides, book, i)
    elif the_kind(sides.kind) == CONTROL:
        mark_answer(sides, mean, inside)


@part
def put(sides, book, arm, m, weight, penalty, v):
    """Write down what is known of an arm."""
    a = np.uint64(arm)
    book.mean[a], book.weight[a], book.penalty[a], book.scale[a] = m, weight, penalty, v
    if the_distribution(sides.distribution) == BERNOULLI:
        found = weight * m * math.log(m) if m > 0.0 else 0.0
        found += weight * (1.0 - m) * math.log1p(-m) if m < 1.0 else 0.0
        book.own[a] = -found


@part
def tell(sides, book, arm, m, weight, penalty, v):
    """Write down what is now known of an arm, and bring the rows up to date."""
    put(sides, book, arm, m, weight, penalty, v)
    change_sides(sides, book, arm)
    row(sides, book, arm)
    column(sides, book, arm)


@part
def grow(sides, book, arm, weight):
    """Let an arm weigh more, where there are no penalties: no pair becomes cheaper, so that all values stay bounds."""
    a, least = np.uint64(arm), _least(book)
    put(sides, book, arm, book.mean[a], weight, 0.0, book.scale[a])
    if the_kind(sides.kind) == CONTROL:
        row(sides, book, arm)
        column(sides, book, arm)
        return
    if book.value[a] > NO_BETTER:
        book.stale[a] = STALE if book.inside[a] else UNSEEN
    if the_kind(sides.kind) == ALL_GOOD or not book.inside[a]:
        for other in range(len(book.value)):
            i = np.uint64(other)
            if book.inside[i] and book.partner[i] == arm:
                book.stale[i] = STALE
    if the_kind(sides.kind) == ALL_GOOD and _beside(sides, book, arm, least):
        for other in range(len(book.value)):
            i = np.uint64(other)
            if book.partner[i] == arm and not book.inside[i]:
                book.second[i] = -1 if book.stale[i] == EXACT else book.second[i]
                book.stale[i] = PENDING if book.stale[i] in (EXACT, PENDING) else UNSEEN


@part
def mark_answer(sides, values, marks):
    """Fill marks (K,) with 1 for the arms of the answer that is right where these are the means, and else 0."""
    best = -math.inf
    for i in range(len(values)):
        best = max(best, values[i])
    for i in range(len(values)):
        if the_kind(sides.kind) == CONTROL:
            marks[i] = i != sides.k and values[i] - (sides.keep * values[sides.k] + sides.shift) > 0.0
        else:
            marks[i] = the_kind(sides.kind) == ALL_GOOD and values[i] >= min(sides.keep * best + sides.shift, best)
    for _ in range(sides.k if the_kind(sides.kind) == TOP_K else 0):  # ties to the lowest index
        first = -1
        for i in range(len(values)):
            first = i if marks[i] == 0 and (first < 0 or values[i] > values[first]) else first
        marks[first] = 1


@part
def fill(sides, book):
    """Compute the plug-in answer and all rows, of arms that have been `put`."""
    K = len(book.mean)
    mark_answer(sides, book.mean, book.inside)
    for i in range(K):
        book.stale[i] = STALE
    for i in range(K):
        if book.stale[i]:
            row(sides, book, i)
            if the_kind(sides.kind) != CONTROL:
                _share(sides, book, i)


@part
def _look(sides, book, i):
    """Compute the value of a row by its own pair and the one that waits: exact, or a bound from below."""
    which, second, sign = book.partner[i], book.second[i], 1.0 if book.inside[i] else -1.0
    value = pair_statistic(sides, book, i, np.uint64(which))
    if second >= 0:
        other = pair_statistic(sides, book, i, np.uint64(second))
        if sign * other < sign * value or (other == value and second < which):
            book.partner[i], book.second[i], value = second, which, other
    book.value[i] = value
    book.stale[i] = EXACT if book.stale[i] == PENDING else STALE


@part
def cheapest(sides, book):
    """The arm whose row is the least of all, the first of equals; -1 if no instance makes the answer wrong."""
    K, value = len(book.value), book.value
    while True:
        known = math.inf  # no row above it is the least
        for other in range(K):
            i = np.uint64(other)
            known = min(known, value[i]) if book.stale[i] == EXACT else known
        found, least = -1, math.inf
        for other in range(K):
            i = np.uint64(other)
            if value[i] < least and value[i] <= known:
                if book.stale[i] >= UNSEEN:
                    _look(sides, book, i)
                if value[i] < least:
                    found, least = other, value[i]
        if found < 0 or not book.stale[found]:
            return found
        row(sides, book, found)
        _share(sides, book, found)


@part
def _share(sides, book, arm):
    """Let the rows of arms that have shown the same as an arm be what its row, which is exact, is."""
    a, sign = np.uint64(arm), 1.0 if book.inside[arm] else -1.0
    for other in range(len(book.value)):
        i = np.uint64(other)
        if book.stale[i] == EXACT or book.inside[i] != book.inside[a] or not _alike(book, i, a):
            continue
        if book.partner[a] != other and sign * pair_statistic(sides, book, i, a) > sign * book.value[a]:
            book.value[i], book.partner[i], book.second[i] = book.value[a], book.partner[a], book.second[a]
            book.stale[i] = EXACT


@part
def moved(sides, book, i, j):
    """The `Alternative` of arms i and j, by their cheapest `Move`: i is wrong beside j, in the answer or left out."""
    is_in = the_kind(sides.kind) < ALL_GOOD or book.inside[i] != 0
    (low, high), move = (i, j) if is_in else (j, i), _inward(sides) if is_in else _outward(sides)
    if the_kind(sides.kind) == LOCAL or not move.a > 0.0:
        return Alternative(low, low, math.inf, math.inf)
    lower, raised, distribution = _arm(sides, book, low), _arm(sides, book, high), the_distribution(sides.distribution)
    _, y = stopping.pair_cost(distribution, lower, raised, move)
    down = up = math.inf
    if lower.weight > 0.0:
        down = stopping.divergence(distribution, lower.mean, lower.scale, min(lower.mean, move.a * y + move.b))
    if raised.weight > 0.0:
        up = stopping.divergence(distribution, raised.mean, raised.scale, y)
    return Alternative(low, high, down, up)


@part
def _open(sides, book, i, is_lowered, is_in, side):
    """Mark the arms whose pair with arm i may cost less than what it must exceed, and arm i where there are any.

    `is_lowered`, `is_in`: see `_bounds`. `side`: only arms in the answer, 1, or left out, 0, count; -1: all.
    """
    limit = sides.open_in if is_in else sides.open_out
    arms, move = Arms(book.mean, book.times, book.penalty), _inward(sides) if is_in else _outward(sides)
    stopping.pair_bounds(book.numbers, arms, np.int64(i), is_lowered, move, limit, False, book.bound)
    for j in range(len(book.bound)):  # bounds are less the penalties of samplers, which are no part of the cost
        counts = j != i and (side < 0 or book.inside[j] == side)
        if counts and book.bound[j] + book.penalty[i] + book.penalty[j] < 0.0:
            book.open[i] = book.open[j] = 1


@part
def open_pairs(sides, book):
    """Mark the arms that race.

    TOP_K      pairs of the last arm of the answer and of the first one outside
    ALL_GOOD   pairs of the best arm
    """
    book.open[:] = 0
    if the_kind(sides.kind) == TOP_K:
        low = high = -1
        for i in range(len(book.mean)):
            m = book.mean[i]
            if book.inside[i]:
                low = i if low < 0 or m <= book.mean[low] else low
            else:
                high = i if high < 0 or m > book.mean[high] else high
        _open(sides, book, low, True, True, 0)
        if sides.k > 1:
            _open(sides, book, high, False, True, 1)
    else:
        best = 0
        for i in range(len(book.mean)):
            best = i if book.mean[i] > book.mean[best] else best
        _open(sides, book, best, False, True, 1)
        _open(sides, book, best, True, True, -1)
        _open(sides, book, best, True, False, 0)


@part
def racer(sides, book, looks):
    """The arm with the fewest pulls of those in pairs that are open, by the last of the `looks`; -1: there is none.

    Of a single arm of the answer: this arm, where the square of its pulls is less than the sum of those of all others
    that are open.
    """
    if looks:
        open_pairs(sides, book)
    found = low = -1
    squares = 0.0
    for i in range(len(book.mean)):
        low = i if book.inside[i] and (low < 0 or book.mean[i] <= book.mean[low]) else low
    for i in range(len(book.mean)):
        if book.open[i]:
            found = i if found < 0 or book.times[i] < book.times[found] else found
            squares += book.times[i] * book.times[i] if i != low else 0.0
    alone = the_kind(sides.kind) == TOP_K and sides.k == 1 and found >= 0
    return low if alone and book.times[low] * book.times[low] < squares else found


@part
def tell_alone(book, arm, pulls, mean, spread, alone, need):
    """LOCAL: ask the certifier of one arm, of pulls (1,), for its value beyond `need`; `scale` gets the divergence."""
    alone.inside[0] = -1
    stopping.nearest_alternative(
        alone.address, pulls, mean, spread, alone.inside, alone.numbers, alone.scratch, alone.out
    )
    book.value[arm], book.scale[arm], book.stale[arm] = alone.out[0] - need, alone.out[3], 0
