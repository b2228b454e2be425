"""Plans of many arms, for compiled functions of one episode: pull each arm of a list equally often, one after another.

An arm is pulled in bulk where the environment takes full actions, and repeatedly where it takes single arms. When the
plan is over, the algorithm makes the next one, by `clear`, `add` for each arm and `repeat`, or stops.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import PULLS_LIMIT, fleeting, inlined, jit, part, view

from .agent import Bools, Floats, Ints

__all__ = [
    "BOOK", "Plan", "Plans", "Sums", "Times", "add", "arm_at", "begin", "clear", "following", "fresh_mean", "mark",
    "plan_of", "planned", "put_at", "repeat", "stop", "watch", "whole",
]  # fmt: skip

# Where an episode stands in its plan. `size`: arms of the plan. `times`: pulls of each. `place`: that of the next arm,
# and `left`: pulls still to be made of it. `made`: plans made since `begin`. `last`: the arm chosen last. `beginning`:
# an episode has begun, or the state has been built in its middle, and `begin` has not been called. `stopped`: the
# algorithm has answered.
_NUMBERS, _FLAGS = ("size", "times", "place", "left", "made", "last"), ("beginning", "stopped")
BOOK = np.dtype([*((name, np.int64) for name in _NUMBERS), *((name, np.bool_) for name in _FLAGS)], align=True)


@fleeting
class Sums(NamedTuple):
    """What the episodes have shown."""

    pulls: Ints  # (E, K)
    total: Floats  # (E, K) sums of samples


@fleeting
class Times(NamedTuple):
    """How often the chosen arms are to be pulled."""

    out: Ints  # (E,) filled in
    most: int  # at most so often at once


class Plans(NamedTuple):
    """The plans and the answers of a batch of episodes."""

    books: Any  # (E,) of BOOK
    arms: Ints  # (E, K) arms of the plan, in the order of their pulls
    base: Floats  # (E, K) or (E, K, D) sums of the samples that do not count, as they are not fresh
    answer: Bools  # (E, K) read where the algorithm has stopped


class Plan(NamedTuple):
    """The plan and the answer of one episode."""

    book: Any
    arms: Any  # (K,)
    base: Any  # (K,) or (K, D)
    answer: Any  # (K,)


@view
def plan_of(plans, e):
    """The plan of episode e."""
    return Plan(plans.books[e], plans.arms[e], plans.base[e], plans.answer[e])


@view
def planned(plan):
    """The arms of the plan."""
    return plan.arms[: plan.book.size]


@part
def arm_at(plan, j):
    """The arm at place j of the plan, signed as the integers of a rule are: Numba makes a float of both kinds."""
    return plan.arms[np.uint64(j)]


@part
def put_at(plan, j, i):
    """Put arm i at place j of the plan."""
    plan.arms[np.uint64(j)] = i


@part
def begin(plan):
    """No plan has been made yet."""
    plan.book.size = plan.book.place = plan.book.made = 0
    plan.book.beginning = False


@part
def clear(plan):
    """Plan no arm."""
    plan.book.size = 0


@part
def add(plan, i):
    """Plan to pull arm i too, after the arms planned so far."""
    put_at(plan, plan.book.size, i)
    plan.book.size += 1


@part
def repeat(plan, times, first=0):
    """The plan is made: pull its arms `times` times each, beginning at place `first`."""
    plan.book.place = first
    plan.book.times = plan.book.left = times
    plan.book.made += 1


@part
def stop(plan):
    """Stop with the answer of the plan."""
    plan.book.stopped = True


@jit
def whole(pulls):
    """A number of pulls, rounded up; at most `PULLS_LIMIT`, which no arm reaches."""
    return math.ceil(pulls) if pulls < PULLS_LIMIT else PULLS_LIMIT


@part
def mark(plan, total):
    """Only samples from now on are fresh. total (K,): sums of all samples."""
    for i in range(len(total)):
        plan.base[i] = total[i]


@part
def fresh_mean(plan, total, i):
    """The mean of the fresh samples of arm i, which are those of the plan that is over. total (K,): as above."""
    return (total[i] - plan.base[i]) / plan.book.times


@inlined
def watch(plan, pulls, e):
    """Notice where a new episode has begun: the arm chosen last has no pulls. To be called once at every choice."""
    if pulls[e, np.uint64(plan.book.last)] == 0:
        plan.book.size = plan.book.place = 0
        plan.book.beginning, plan.book.stopped = True, False


@inlined
def following(plan, e, times):
    """The next arm of episode e, K if it has stopped, -1 where its plan is over; fills in how often to pull it."""
    book = plan.book
    times.out[e] = 1
    if book.stopped:
        return np.int64(len(plan.arms))
    if book.place >= book.size:
        return np.int64(-1)
    arm, pulls = plan.arms[np.uint64(book.place)], min(book.left, times.most)
    book.left -= pulls
    if book.left == 0:
        book.place += 1
        book.left = book.times
    book.last = arm
    times.out[e] = pulls
    return arm
