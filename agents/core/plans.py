"""Plans: the pulls that an algorithm has planned for an episode, and the one player, which makes those of all.

A `Batch` has a row of words for each episode: the records of `ep` and, behind it, of `own`. The rules of a class are
one routine, `decide(ep, own, ..)`, which is called by its address whenever a plan is over: it takes in what has been
shown, and stops the episode or plans the next pulls.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from bandit_envs.kernels import call_routine, certain, decided, inlined, kernel, record_at, view
from bandit_envs.simulation import ENDED, LIVE, Playing
from bandit_envs.simulation import pull as pull_arm

from .agent import FLOAT, INT, Floats, Ints

LEAST_ARMS = 3  # arms of a plan, where there are fewer arms
NO_ARM, NO_PULL, OVERFULL = 1, 2, 3  # what is wrong with a plan: an arm that there is not; none; more than fit
# Where an episode stands in its plan. `size`: its arms. `place`: of the next one, in the plan, or in the first passes
# over the arms while those last (`beginning`). `made`: pulls of that arm. `last`: the arm chosen last. `resumed`: the
# state was made in the middle of the episode, and no plan has been begun since.
PLAN = np.dtype(
    [(one, np.int64) for one in ("size", "place", "made", "last", "beginning", "resumed", "stopped", "wrong")],
    align=True,
)
plan_of: Any = record_at(PLAN)
byte_of: Any = record_at(np.dtype([("value", np.uint8)]))
# What the episodes have shown, of all that an algorithm may read; `seed` and `remaining` are numbers of an episode.
SEEN = {"pulls": INT, "mean": FLOAT, "total": FLOAT, "variance": FLOAT, "moments": FLOAT, "seed": INT, "remaining": INT}

Table: TypeAlias = Annotated[Floats, 2]
Pair: TypeAlias = Annotated[Ints, 2]


@certain
class Shown(NamedTuple):
    """What the episodes have shown, a row of each: (E, K), with D coordinates (E, K D), the last two (E, 1)."""

    pulls: Pair
    mean: Table
    total: Table
    variance: Table
    moments: Table
    seed: Pair
    remaining: Pair


class Batch(NamedTuple):
    """The episodes of an algorithm, and its rules."""

    words: Pair  # (E, words): `ep`, then `own`, at the end the address of its record of `PLAN`
    todo: Annotated[Ints, 3]  # (E, 2, R) arms of the plan, in the order of their pulls, and how often to pull each
    places: Ints  # of `SEEN`, where its words begin; -1: it is not read
    blank: Pair  # (n, 2) words with the address of what an episode begins with at 0, and its bytes
    decide: int  # the address of the rules
    own: int  # where the words of `own` begin
    passes: int  # how often every arm is pulled first
    asked: bool  # whether the stopping rule is
    must_plan: bool
    in_bulk: bool


# --- for the functions of a class ------------------------------------------------------------------------------------


@inlined
def pull(ep, i, times=1):
    """Plan to pull arm i so many times, after the arms planned so far."""
    plan = ep.now
    if plan.size < len(ep.arms):
        ep.arms[np.uint64(plan.size)] = i | 0  # a float is an error
        ep.times[np.uint64(plan.size)] = times | 0
        plan.size += 1
    else:
        plan.wrong = OVERFULL


@view
def planned(ep):
    """The arms of the last plan, which have been pulled; none before the first."""
    return ep.arms[: ep.now.size]


@inlined
def arm_at(ep, j):
    """The arm at place j of the last plan, an int64."""
    return ep.arms[np.uint64(j)]


@inlined
def count_pulls(ep):
    """The pulls of all arms so far."""
    t = 0
    for i in range(len(ep.pulls)):
        t += ep.pulls[i]
    return t


def _nothing(ep, own=None):
    """A rule that a class has not."""


def _never(ep, own):
    """The stopping rule of a class without one."""
    return False


def decide_by(rules: dict[str, Any], prepare: Any) -> Callable[..., None]:
    """The rules of a class as one function, `decide(ep, own, begins, observes, asked)`: stop the episode, or plan."""
    begin, observe = (inlined(rules.get(name, _nothing)) for name in ("begin", "observe"))
    stops, sample = inlined(rules.get("stops", _never)), inlined(rules["sample"])
    first = prepare or inlined(_nothing)

    def decide(ep: Any, own: Any, begins: int, observes: int, asked: int) -> None:
        first(ep)
        if begins:
            begin(ep, own)
        if observes:
            observe(ep, own)
        now = ep.now
        now.size = now.place = now.made = now.beginning = 0
        if asked:
            now.stopped = 1 if decided(stops(ep, own)) else 0  # type: ignore[call-arg]
        if not now.stopped:
            sample(ep, own)

    decide.__qualname__, decide.made_of = f"{rules['sample'].__qualname__}.decide", rules["sample"]  # type: ignore
    return decide


# --- the plan of an episode -------------------------------------------------------------------------------------------


@inlined
def check(plan, arms, times, K):
    """Empty a plan with an arm that there is not, or that is to be pulled less than once; `place` tells which."""
    for j in range(plan.size):
        if not 0 <= arms[np.uint64(j)] < K or times[np.uint64(j)] < 1:
            plan.wrong, plan.place = NO_ARM, j
    plan.size = 0 if plan.wrong == NO_ARM else plan.size


@inlined
def in_passes(plan, pulls, passes):
    """The next arm of the first passes over all arms; -1 where they are over."""
    K = len(pulls)
    while plan.place < passes * K and pulls[np.uint64(plan.place % K)] > plan.place // K:
        plan.place += 1
    return plan.place % K if plan.place < passes * K else np.int64(-1)


@inlined
def rarest_first(plan, arms, times, pulls):
    """Which arms of the plan have been pulled is lost: begin with the one that has least."""
    first = np.uint64(0)
    least: Any = first
    for j in range(np.uint64(1), np.uint64(plan.size)):
        least = j if pulls[np.uint64(arms[j])] < pulls[np.uint64(arms[least])] else least
    arms[first], arms[least] = arms[least], arms[first]
    times[first], times[least] = times[least], times[first]
    plan.resumed = 0


@inlined
def following(batch, plan, e, pulls, most):
    """The next arm, of the first passes or of the plan, and how often to pull it, at most so often at once.

    The arm is -1 where the plan is over, and K after the end.
    """
    arm, many = np.int64(-1), np.int64(1)
    if plan.stopped:
        return np.int64(len(pulls)), many
    if plan.beginning:
        arm = in_passes(plan, pulls, batch.passes)
    elif plan.place < plan.size:
        arms, times = batch.todo[e, 0], batch.todo[e, 1]
        if plan.resumed and not batch.in_bulk:
            rarest_first(plan, arms, times, pulls)
        place = np.uint64(plan.place)
        arm, many = arms[place], min(times[place] - plan.made, np.int64(most))
        plan.made += many
        if plan.made >= times[place]:
            plan.place += 1
            plan.made = 0
    plan.last = arm if arm >= 0 else plan.last
    return arm, many


@inlined
def enter(batch, shown, e):
    """Write down where the episode's rows of what is shown are, and its seed."""
    words, at, row = batch.words, batch.places, np.int64(8 * e)
    words[e, at[0]] = np.int64(shown.pulls.ctypes.data) + row * shown.pulls.shape[1]
    words[e, at[1]] = np.int64(shown.mean.ctypes.data) + row * shown.mean.shape[1]
    if at[2] >= 0:
        words[e, at[2]] = np.int64(shown.total.ctypes.data) + row * shown.total.shape[1]
    if at[3] >= 0:
        words[e, at[3]] = np.int64(shown.variance.ctypes.data) + row * shown.variance.shape[1]
    if at[4] >= 0:
        words[e, at[4]] = np.int64(shown.moments.ctypes.data) + row * shown.moments.shape[1]
        words[e, at[4] + 1] = shown.moments.shape[1]
    if at[5] >= 0:
        words[e, at[5]] = shown.seed[e, 0]


@view
def plan_at(batch, e):
    """The record of `PLAN` of an episode."""
    return plan_of(batch.words[e, batch.words.shape[1] - 1])


@inlined
def wipe(batch, e):
    """Set what an algorithm has declared to 0: the episode begins."""
    for j in range(len(batch.blank)):
        begin = batch.words[e, batch.blank[j, 0]]
        for i in range(batch.blank[j, 1]):
            byte_of(begin + i).value = 0


@inlined
def decide(batch, shown, plan, e, pulls):
    """The plan is over: let the rules take in what it has shown, and stop the episode or plan its next pulls."""
    begins = np.int64(plan.beginning != 0)
    if begins:
        plan.made = 0
        wipe(batch, e)
    if batch.places[6] >= 0:
        batch.words[e, batch.places[6]] = shown.remaining[e, 0]
    observes = np.int64(batch.passes > 0 or not begins)
    call_routine(batch.decide, batch.words[e], batch.words[e, batch.own :], begins, observes, np.int64(batch.asked))
    if not plan.stopped:
        check(plan, batch.todo[e, 0], batch.todo[e, 1], len(pulls))
        if plan.size == 0:
            plan.stopped = 1
            plan.wrong = NO_PULL if batch.must_plan and plan.wrong == 0 else plan.wrong


@inlined
def next_arm(batch, shown, plan, e, most):
    """The next arm of an episode, K where it stops, and how often to pull it, at most so often at once."""
    pulls = shown.pulls[e]
    if pulls[min(np.uint64(plan.last), np.uint64(len(pulls) - 1))] == 0:  # a new episode has begun
        plan.size = plan.place = plan.made = plan.resumed = plan.stopped = 0
        plan.beginning = 1
    arm, many = following(batch, plan, e, pulls, most)
    if arm < 0:
        decide(batch, shown, plan, e, pulls)
        arm, many = following(batch, plan, e, pulls, most)
    return arm, many


# --- all algorithms ---------------------------------------------------------------------------------------------------


@kernel
def choose(batch: Batch, shown: Shown, most: int, out: Pair):
    """Fill `out` (2, E) with the next arm of each episode, and how often to pull it, at most so often at once."""
    for episode in range(out.shape[1]):
        e = np.uint64(episode)
        enter(batch, shown, e)
        out[0, e], out[1, e] = next_arm(batch, shown, plan_at(batch, e), e, most)


@kernel(nogil=True)
def play(batch: Batch, shown: Shown, most: int, out: Pair, playing: Playing):
    """Pull the chosen arms in each episode for as long as `Quiet` allows; `out` is as of `choose` then."""
    sim, quiet = playing.sim, playing.quiet
    K = sim.rules.K
    for episode in range(out.shape[1]):
        e = np.uint64(episode)
        enter(batch, shown, e)
        plan = plan_at(batch, e)
        out[0, e], out[1, e], left = K, 1, quiet.steps
        while sim.status[e] != ENDED:
            arm, many = next_arm(batch, shown, plan, e, most)
            due = left == 0 or sim.status[e] != LIVE or many > quiet.most[e] - sim.spent[e]
            if due or arm < 0 or arm >= K or many < 1 or (many > 1 and sim.bulk[0] == 0):
                out[0, e], out[1, e] = arm, many
                break
            pull_arm(sim, e, arm, many)
            left -= 1


class _Heard(threading.local):
    """The errors of routines that were called in this thread; None: nobody listens."""

    errors: list[Any] | None = None


_HEARD, _LOCK, _BEFORE = _Heard(), threading.Lock(), list[Any]()  # the hook before, once for each that listens


def _hear(unraisable: Any) -> None:
    if _HEARD.errors is not None and str(unraisable.object).startswith("<numba."):
        _HEARD.errors.append(unraisable.exc_value)
    else:
        (_BEFORE[0] if _BEFORE else sys.__unraisablehook__)(unraisable)  # nobody listens now, but it was kept


@contextlib.contextmanager
def errors_of_rules() -> Iterator[list[Any]]:
    """Meanwhile errors of routines are kept, which Python can only report: they have no caller in Python."""
    with _LOCK:
        _BEFORE.append(_BEFORE[0] if _BEFORE else sys.unraisablehook)
        sys.unraisablehook = _hear
    _HEARD.errors = found = list[Any]()
    try:
        yield found
    finally:
        _HEARD.errors = None
        with _LOCK:
            before = _BEFORE.pop()
            sys.unraisablehook = _hear if _BEFORE else before
