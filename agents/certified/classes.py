"""The closest pair of many arms, of TopK, BestArm and AllGood: arms that weigh the same compete by their means alone.

symbols     class: the arms on one side of the answer with the same weight. Scales are the same, and so are penalties,
            so that of two arms inside the one with the lower mean is closer to any arm, and of two arms outside the one
            with the larger mean: a pair of heads of classes is the closest of all
            head: of a class inside the lowest mean, of one outside the largest; ties to the lowest arm
            ALL_GOOD has classes of all arms, inside or not, too: arms are compared with heads of these
classes     few, as arms are pulled in numbers that double
heaps       of a class: a pairing heap (Fredman, Sedgewick, Sleator & Tarjan, Algorithmica 1986); an arm goes from one
            class to another in O(log K), amortised
queue       of the arms that race: a binary heap by pulls, in which an arm that was pulled sinks when it is looked at
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import inlined, part
from bandit_envs.stopping import the_kind

from ..core.agent import Ints
from .alternatives import ALL_GOOD, is_far, leaver, mark_answer, open_pairs, pair_statistic, put


class Classes(NamedTuple):
    """Classes of an episode: their heads, and the heaps below these; -1 where there is no arm."""

    side: Any  # (K,), int8: of those whose head has the lowest mean 1
    child: Ints  # (K,): the first of the arms right below
    next: Ints  # the next one below the same arm
    back: Ints  # the one before it; of the first one the arm above
    head: Ints
    queue: Ints
    sizes: Ints  # the number of heads, and of arms in the queue; the sum of the squares of their pulls


@part
def _ahead(book, classes, i, j):
    """Whether arm i stands above arm j of its class."""
    m, n = book.mean[i], book.mean[j]
    if m == n:
        return i < j
    return (m < n) == (classes.side[i] != 0)


@part
def _meld(book, classes, i, j):
    """One heap of those of two heads, the arm on top of it."""
    top, below = (i, j) if _ahead(book, classes, i, j) else (j, i)
    first = classes.child[top]
    classes.next[below], classes.back[below], classes.child[top] = first, top, below
    if first >= 0:
        classes.back[first] = below
    return top


@part
def _one_of(book, classes, first):
    """One heap of an arm and those next to it: pairs of them first, and then all pairs; -1 of none."""
    pairs = top = -1
    while first >= 0:
        one, other = first, classes.next[first]
        first = classes.next[other] if other >= 0 else -1
        one = _meld(book, classes, one, other) if other >= 0 else one
        classes.next[one] = pairs
        pairs = one
    while pairs >= 0:
        one, pairs = pairs, classes.next[pairs]
        top = _meld(book, classes, top, one) if top >= 0 else one
    return top


@part
def _place(book, classes, i):
    """The place of the class of arm i among the heads; behind them where it has none yet."""
    for place in range(classes.sizes[0]):
        j = classes.head[place]
        if book.weight[j] == book.weight[i] and classes.side[j] == classes.side[i]:
            return place
    return classes.sizes[0]


@part
def _enter(book, classes, i):
    """Put arm i into its class."""
    place, classes.child[i] = _place(book, classes, i), -1
    if place < classes.sizes[0]:
        classes.head[place] = _meld(book, classes, classes.head[place], i)
    else:
        classes.head[place] = i
        classes.sizes[0] += 1


@part
def _leave(book, classes, i):
    """Take arm i out of its class."""
    place, rest = _place(book, classes, i), _one_of(book, classes, classes.child[i])
    top = classes.head[place]
    if top != i:
        back, after = classes.back[i], classes.next[i]
        if classes.child[back] == i:
            classes.child[back] = after
        else:
            classes.next[back] = after
        if after >= 0:
            classes.back[after] = back
        rest = _meld(book, classes, top, rest) if rest >= 0 else top
    if rest < 0:
        classes.sizes[0] -= 1
        rest = classes.head[classes.sizes[0]]
    classes.head[place] = rest


@part
def begin(sides, book, classes, all_arms):
    """Compute the plug-in answer and all classes, of arms that have been `put`."""
    mark_answer(sides, book.mean, book.inside)
    classes.sizes[:] = all_arms.sizes[:] = 0
    for i in range(len(book.mean)):
        _enter(book, classes, i)
        if the_kind(sides.kind) == ALL_GOOD:
            _enter(book, all_arms, i)


@part
def take(sides, book, classes, all_arms, arm, m, weight, penalty, v):
    """Write down what is now known of an arm; it goes to its class, and arms change sides."""
    before, good = book.weight[arm], the_kind(sides.kind) == ALL_GOOD
    _leave(book, classes, arm)
    if good:
        _leave(book, all_arms, arm)
    put(sides, book, arm, m, weight, penalty, v)
    _enter(book, classes, arm)
    if good:
        _enter(book, all_arms, arm)
    if book.open[arm]:
        classes.sizes[2] += np.int64(weight * weight - before * before)
    place, boundary = 0, _boundary(sides, book, all_arms) if good else m
    while place < classes.sizes[0]:
        other = classes.head[place]
        place += 1
        if good and (book.inside[other] != 0) != (book.mean[other] >= boundary):
            _cross(book, classes, other)
            place = 0
        crosses = not good and (book.mean[other] >= m if book.inside[arm] else book.mean[other] <= m)
        if crosses and book.inside[other] != book.inside[arm]:
            low, high = leaver(book, arm)
            if low >= 0:
                _cross(book, classes, low)
                _cross(book, classes, high)
            return


@part
def _cross(book, classes, i):
    """Let arm i change sides."""
    _leave(book, classes, i)
    book.inside[i] = 1 - book.inside[i]
    _enter(book, classes, i)


@part
def _best(book, all_arms):
    """The arm with the largest mean, the first of equals."""
    best = all_arms.head[0]
    for place in range(all_arms.sizes[0]):
        best = all_arms.head[place] if _ahead(book, all_arms, all_arms.head[place], best) else best
    return best


@inlined
def _boundary(sides, book, all_arms):
    """The least mean of the plug-in answer of ALL_GOOD."""
    m = book.mean[_best(book, all_arms)]
    return min(sides.keep * m + sides.shift, m)


@part
def _other_head(book, all_arms, place, i):
    """The head of a class, or the next one where that is arm i; -1 where there is none."""
    j = all_arms.head[place]
    if j != i:
        return j
    rest = _one_of(book, all_arms, all_arms.child[i])
    all_arms.child[i] = -1
    if rest >= 0:
        all_arms.head[place] = _meld(book, all_arms, i, rest)
    return rest


@part
def closest_pair(sides, book, classes, all_arms):
    """The arm whose row is the least of all, the first of equals, with its partner and value in the book."""
    least, row, partner, good = math.inf, -1, -1, the_kind(sides.kind) == ALL_GOOD
    others, best, limit = all_arms if good else classes, _best(book, all_arms) if good else -1, math.inf
    last = max(sides.row, 0)
    j = book.partner[last]
    if sides.row >= 0 and j >= 0 and last != j and book.inside[last] and (good or not book.inside[j]):
        limit = pair_statistic(sides, book, last, j)  # of the pair of the last time: not less than the least of all
    for place in range(classes.sizes[0]):
        i = classes.head[place]
        if book.inside[i]:
            for other in range(others.sizes[0]):
                j = _other_head(book, others, other, i) if good else others.head[other]
                if j >= 0 and (good or not book.inside[j]) and not is_far(sides, book, i, j, min(least, limit)):
                    value = pair_statistic(sides, book, i, j)
                    if value < least or (value == least and (i < row or (i == row and j < partner))):
                        least, row, partner = value, i, j
        elif good:
            most, which = pair_statistic(sides, book, i, best), best
            for other in range(others.sizes[0]):
                j = others.head[other]
                if most > min(least, limit):
                    break
                value = pair_statistic(sides, book, i, j) if j != i else -math.inf
                if value > most or (value == most and j < which):
                    most, which = value, j
            if most < least or (most == least and i < row):  # where the search ended early it is more than the limit
                least, row, partner = most, i, which
    if row >= 0:
        book.value[row], book.partner[row] = least, partner
    return row


@part
def _sink(book, queue, count, place):
    """Let the arm at a place of the queue sink below those with fewer pulls."""
    arm = queue[place]
    while 2 * place + 1 < count:
        below = 2 * place + 1
        if below + 1 < count and _is_rarer(book, queue[below + 1], queue[below]):
            below += 1
        if not _is_rarer(book, queue[below], arm):
            break
        queue[place], place = queue[below], below
    queue[place] = arm


@inlined
def _is_rarer(book, i, j):
    """Whether arm i comes before arm j in the queue."""
    return book.times[i] < book.times[j] or (book.times[i] == book.times[j] and i < j)


@part
def first_racer(sides, book, classes, looks):
    """What `racer` says, by a queue of the arms that race; `times` are pulls as the queue knows them."""
    queue, sizes, low = classes.queue, classes.sizes, -1
    if looks:
        open_pairs(sides, book)
        sizes[1] = sizes[2] = 0
        for i in range(len(book.mean)):
            if book.open[i]:
                queue[sizes[1]] = i
                sizes[1] += 1
                sizes[2] += np.int64(book.times[i] * book.times[i])
        for place in range(sizes[1] // 2 - 1, -1, -1):
            _sink(book, queue, sizes[1], place)
    if sizes[1] == 0:
        return -1
    while book.times[queue[0]] != book.weight[queue[0]]:
        book.times[queue[0]] = book.weight[queue[0]]
        _sink(book, queue, sizes[1], 0)
    if the_kind(sides.kind) == ALL_GOOD or sides.k > 1:
        return queue[0]
    for place in range(sizes[0]):
        low = classes.head[place] if book.inside[classes.head[place]] else low
    own = book.weight[low] * book.weight[low]
    return low if own < sizes[2] - (own if book.open[low] else 0.0) else queue[0]
