"""What certified agents ask for by address: routines that look after the alternatives and the certificate.

A sampling kernel calls them with the desk of its batch, a record of what an answer must hold and of what a routine has
found, and with the table beside it. So it is compiled once for all alternatives and distributions, and a routine, for
one kind of alternatives and one distribution, once for all agents.
"""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from bandit_envs.kernels import by_address, carray, part, routine, view
from bandit_envs.stopping import BOUNDED, STUDENT, adapted, arm_penalty, the_distribution, the_kind, the_search, version

from ..core.agent import Floats, Ints
from ..core.stopping import Certifiable, Certificate, is_certified, rarest, spread_of
from . import alternatives
from .alternatives import BONUS, BOUNDARY, KEPT, LOCAL, MEANS, Alone, Book, Sides
from .classes import Classes, begin, closest_pair, first_racer, take

ROWS, CLASSES = range(2)  # how alternatives are searched for
_FOUND = ("row", "lowered", "raised"), ("value", "down", "up")  # the closest alternative, see `Alternative`
_LOOKED = ("first", "second", "t")  # of an episode, for `is_certified`
FORGET = 2.0  # the weights of the proportions after n steps grow like n^FORGET
DESK = np.dtype(
    [
        *((name, np.int64 if kind is int else np.float64) for name, kind in get_type_hints(Sides).items()),
        *((name, np.int64) for name in ("K", "D", "moments", "weighed", "search", "table")),
        *((name, np.int64) for name in ("observe", "find", "compare", "step", "race", "certify")),
        *((name, np.int64) for name in ("e", "arm", "draws", "certified", *_FOUND[0])),
        *((name, np.float64) for name in ("need", *_LOOKED, *_FOUND[1])),
    ],
    align=True,
)


@by_address
class Table(NamedTuple):
    """What lies beside the desk: the books of all episodes, and certifiers with what they work in."""

    rows: Annotated[Floats, 3]  # (E, 7, K)
    partners: Annotated[Ints, 3]  # (E, 2, K)
    marks: Annotated[NDArray[np.int8], 3]  # (E, 3, K)
    links: Annotated[Ints, 3]  # (E, 11, K), where arms have classes
    none: Annotated[NDArray[np.int8], 1]  # (K,), 0
    work: Floats
    twins: Ints
    alone: Alone
    whole: Certificate


class Case(NamedTuple):
    """One episode, as routines see it."""

    desk: Any
    book: Book
    classes: Classes
    all_arms: Classes  # of ALL_GOOD, inside or not
    shown: Certifiable  # a row of each
    table: Any


@view
def opened(desk, table, pulls, mean, variance, moments):
    """The `Case` of the episode that the desk names."""
    d, numbers, work, twins = carray(desk, 1, DESK)[0], table.alone.numbers, table.work, table.twins
    size, r, p, m = d.K * d.D, table.rows[d.e], table.partners[d.e], table.marks[d.e]
    book = Book(numbers, r[0], r[1], r[2], r[3], r[4], r[5], p[0], p[1], m[0], m[1], m[2], r[6], work, twins)
    shown = Certifiable(
        carray(pulls, (1, d.K)), carray(mean, (1, size)), carray(variance, (1, size)), carray(moments, (1, d.moments))
    )
    links = table.links[min(d.e, len(table.links) - 1)]
    classes = Classes(m[1], links[0], links[1], links[2], links[3], links[4], links[5])
    all_arms = Classes(table.none, links[6], links[7], links[8], links[9], links[4], links[10])
    return Case(d, book, classes, all_arms, shown, table)


@part
def scale_of(sides, N, variance):
    """The variance of a sample of an arm of N pulls, as it is known or seen."""
    if the_distribution(sides.distribution) == BOUNDED:
        return adapted(sides.variance, N, variance)
    return variance if the_distribution(sides.distribution) == STUDENT else sides.variance


@part
def measure(case, i, first):
    """Take in what arm i has shown; `first`: the rows are not computed yet. See `BOUNDARY` for what an arm counts."""
    shown, sides, book, weighed = case.shown, case.desk, case.book, case.desk.weighed
    N = float(shown.pulls[0, i])
    bonus = math.log(N) if weighed == BONUS and N > 0.0 else 0.0
    if the_kind(sides.kind) == LOCAL:
        alone, low, high = case.table.alone, i * sides.D, (i + 1) * sides.D
        spread = spread_of(alone.numbers, shown, 0, low, high, alone.scratch)
        alternatives.tell_alone(
            book, i, shown.pulls[0, i : i + 1], shown.mean[0, low:high], spread, alone, sides.need_in - bonus
        )
        return
    m, v = shown.mean[0, i], scale_of(sides, N, shown.variance[0, i])
    weight, penalty = N if first or weighed != KEPT else max(book.weight[i], 1e-3), -bonus
    if weighed == BOUNDARY and N > 0.0:
        penalty = arm_penalty(book.numbers, N, m, v)
    if first:
        alternatives.put(sides, book, i, m, weight, penalty, v)
    elif the_search(sides.search) == CLASSES:
        take(sides, book, case.classes, case.all_arms, i, m, weight, penalty, v)
    else:
        alternatives.tell(sides, book, i, m, weight, penalty, v)


@part
def observe(case):
    """Take in what arm `arm` of the desk has shown; -1: all arms, where an episode begins."""
    desk = case.desk
    if desk.arm >= 0:
        measure(case, desk.arm, False)
        return
    for i in range(desk.K):
        measure(case, i, True)
    if the_search(desk.search) == CLASSES:
        begin(desk, case.book, case.classes, case.all_arms)
    elif the_kind(desk.kind) != LOCAL:
        alternatives.fill(desk, case.book)


@part
def find(case):
    """Put down the closest alternative: its row, the value of this, and the `Alternative`.

    Where no instance makes the answer wrong, the row is -1, and the arm with the fewest pulls stands for it.
    """
    desk = case.desk
    if the_search(desk.search) == CLASSES:
        desk.row = closest_pair(desk, case.book, case.classes, case.all_arms)
    else:
        desk.row = alternatives.cheapest(desk, case.book)
    if desk.row < 0:
        desk.value = desk.down = desk.up = math.inf
        desk.lowered = desk.raised = rarest(case.shown.pulls[0])
        return
    desk.value = case.book.value[desk.row]
    one = alternatives.moved(desk, case.book, desk.row, case.book.partner[desk.row])
    desk.lowered, desk.raised, desk.down, desk.up = one


@part
def compare(case):
    """Put down what it takes to move `lowered` below `raised`, two arms that the desk names."""
    desk, i, j = case.desk, case.desk.lowered, case.desk.raised
    desk.lowered, desk.raised, desk.down, desk.up = alternatives.moved(desk, case.book, i, j)


@part
def step(sides, book, n):
    """The n-th step: add to the weights of the two arms of the closest alternative in the proportion of w d.

    At the optimum, w_a is the sum over the closest alternatives c of lambda_c w_a d_a / (sum of w d over the arms of c)
    for some lambda (You, Qin, Wang & Yang, COLT 2023). Later steps weigh more than those of long ago.
    """
    mass = book.weight.sum() * FORGET / (n + len(book.weight))
    i = alternatives.cheapest(sides, book)
    if i < 0:
        return
    alternative = alternatives.moved(sides, book, i, book.partner[i])
    lowered, raised = alternative.lowered, alternative.raised
    share = 1.0
    if lowered != raised:
        down, up = book.weight[lowered] * alternative.down, book.weight[raised] * alternative.up
        share = down / (down + up) if 0.0 < down + up < math.inf else 0.5
    if share > 0.0:
        alternatives.grow(sides, book, lowered, book.weight[lowered] + share * mass)
    if share < 1.0:
        alternatives.grow(sides, book, raised, book.weight[raised] + (1.0 - share) * mass)


@part
def proportions(case):
    """Fill the work of the desk with proportions of pulls: after another step, or of arms by themselves."""
    desk, book, total = case.desk, case.book, 0.0
    if the_kind(desk.kind) != LOCAL:
        step(desk, book, desk.draws)
    for a in range(desk.K):
        local = the_kind(desk.kind) == LOCAL
        book.bound[a] = 1.0 / min(max(book.scale[a], 1e-300), 1e300) if local else book.weight[a]
        total += book.bound[a]
    for a in range(desk.K):
        book.bound[a] /= total


@part
def certify(case):
    """Put down whether the answer is certified, see `is_certified`."""
    desk, whole = case.desk, case.table.whole
    if the_search(desk.search) == CLASSES:
        inside, out, need = case.book.inside, whole.out, whole.need
        whole = Certificate(whole.address, whole.numbers, whole.scratch, inside, out, need, whole.nominal, whole.quick)
        desk.certified = is_certified(case.shown, 0, desk.t, desk, whole, True)
    else:
        desk.certified = is_certified(case.shown, 0, desk.t, desk, whole)


@part
def race(case):
    """Put down the arm that is to race, -1: none, see `racer`; `arm`: whether pairs are looked at."""
    desk, book = case.desk, case.book
    by_classes = the_search(desk.search) == CLASSES
    for i in range(0 if by_classes and desk.arm == 0 else desk.K):
        book.times[i] = float(case.shown.pulls[0, i])
        if desk.weighed == MEANS:
            book.mean[i] = case.shown.mean[0, i]
    if desk.weighed == MEANS:
        alternatives.mark_answer(desk, book.mean, book.inside)
    if by_classes:
        desk.arm = first_racer(desk, book, case.classes, desk.arm != 0)
    else:
        desk.arm = alternatives.racer(desk, book, desk.arm != 0)


STEPS = {"observe": observe, "find": find, "compare": compare, "step": proportions, "race": race, "certify": certify}


@functools.cache
def routine_of(name: str, kind: int, distribution: int, search: int) -> Any:
    """The routine of `STEPS` for one kind of alternatives, one distribution and one search."""
    one = version(STEPS[name], kind=kind, distribution=distribution, search=search)

    def made(desk: Any, table: Any, pulls: Any, mean: Any, variance: Any, moments: Any) -> None:
        one(opened(desk, table, pulls, mean, variance, moments))

    made.__qualname__ = f"{one.py_func.__qualname__}.routine"
    return routine(made, "voidptr", Table, "int64*", "float64*", "float64*", "float64*")
