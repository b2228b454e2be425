"""Results that come later: a pull is asked, and its result is shown when its batch is complete and its delay is over.

The n-th sample of an arm is a function of the episode and of n, whenever it is drawn: so only the arms that were asked
wait in line, with the times at which their results are due, and the simulator makes a pull when its result is shown.
Its statistics are what is shown. Times are on a clock that each pull moves on by 1, and each wait to the next result.

Results count in the order in which they were asked for, as in a session: one that is due before an earlier one waits
for it. Where each arm counts by itself, it waits for earlier ones of its own arm alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.checks import Floats, Ints
from ..kernels.compiled import inlined, part
from ..kernels.rng import DELAY, philox, to_uniform
from ..kernels.structs import kernel
from ..problems.task import Task
from ..simulation.arrays import ENDED, LIVE, SPENT, Simulation
from ..simulation.playing import allowed, pull_once, spend
from ..simulation.simulator import MOST_TIMES, PULLED, SKIPPED, UNCHECKED, Simulator, end, stop
from .history import MOST_NUMBERS, NOTHING, History, Log, note

LONGEST = 53 * math.log(2.0)  # means, the longest delay that is drawn: a uniform number has 53 bits
_LOW, _24, _32, _DELAY = np.uint64(0xFFFFFFFF), np.uint64(24), np.uint64(32), np.uint64(DELAY)


class Line(NamedTuple):
    """The results that are not shown yet, as a ring of L places for each of E episodes."""

    batch: int
    delay: float  # or the mean of delays
    drawn: bool  # whether delays are drawn
    lanes: int  # orders that results keep in an episode: one, or that of each arm
    width: int  # actions of a lane
    arm: Ints  # (E, L), -1 once the result is shown
    due: Floats  # (E, L)
    first: Ints  # (E,) how many have left the ring, and how many have been asked
    last: Ints
    opened: Ints  # (E,) how many are of a batch that is not complete
    clock: Floats  # (E,)
    latest: Floats  # (E * lanes,) the time at which the last result of a lane is due
    pending: Ints  # (E * K,)


@part
def _close(sim, line, e):
    """The batch of episode e is complete: its results get their times."""
    L = line.arm.shape[1]
    for j in range(line.opened[e], 0, -1):
        i, wait = (line.last[e] - j) % L, line.delay
        if line.drawn:
            t = np.uint64(sim.spent[e] - j)
            c1, key0, key1 = (t >> _32) << _24, sim.key[0, e], sim.key[1, e]
            w0, w1, _, _ = philox(t & _LOW, c1, sim.episode[e], _DELAY, key0, key1)
            wait *= -math.log1p(-to_uniform(w0, w1))
        lane = e * line.lanes + line.arm[e, i] // line.width
        line.latest[lane] = line.due[e, i] = max(line.latest[lane], line.clock[e] + wait)
    line.opened[e] = 0


@part
def _ask(sim, line, e, a):
    """Ask for a pull of arm a of episode e."""
    i = line.last[e] % line.arm.shape[1]
    line.arm[e, i], line.due[e, i] = a, math.inf
    line.last[e] += 1
    line.opened[e] += 1
    line.clock[e] += 1.0
    line.pending[e * sim.rules.K + a] += 1
    spend(sim, e, a, 1)
    if line.opened[e] == line.batch:
        _close(sim, line, e)


@part
def _soonest(line, e):
    """The time at which the next result of episode e is due."""
    L, least = line.arm.shape[1], math.inf
    for i in range(line.first[e], line.last[e]):
        if line.arm[e, i % L] != NOTHING:
            least = min(least, line.due[e, i % L])
    return least


@inlined
def _next_due(line, e):
    """The place in the ring of the first result of episode e that is due; -1: none."""
    L = line.arm.shape[1]
    for i in range(line.first[e], line.last[e]):
        place = i % L
        if line.arm[e, place] != NOTHING:
            if line.due[e, place] <= line.clock[e]:
                return place
            if not line.drawn or line.lanes == 1:  # those behind it are due later
                return -1
    return -1


@part
def _show(sim, line, log, e, place):
    """The result at a place in the ring enters the statistics, and the history if there is one."""
    a, L = line.arm[e, place], line.arm.shape[1]
    pull_once(sim, np.uint64(e), a)
    spend(sim, e, a, -1)
    line.arm[e, place] = NOTHING
    line.pending[e * sim.rules.K + a] -= 1
    while line.first[e] < line.last[e] and line.arm[e, line.first[e] % L] == NOTHING:
        line.first[e] += 1
    if log.arms.shape[1] > 0:
        note(sim, log, e, a, log.made[1, e] + 1)


@part
def _show_due(sim, line, log, e):
    """Show all results of episode e that are due."""
    place = _next_due(line, e)
    while place >= 0:
        _show(sim, line, log, e, place)
        place = _next_due(line, e)


@part
def _refusal(sim, line, arms, times, answers_checked):
    """0, or why nothing can be done: -1 - e or UNCHECKED, as in `Simulator`."""
    K, answering = sim.rules.K, False
    for e in range(len(sim.status)):
        a, n, state = arms[e], times[e], sim.status[e]
        if state != ENDED and (a < 0 or a > sim.rules.last):
            return -1 - e
        if state == LIVE and a < K and (n < 0 or n > MOST_TIMES or n == 0 and line.first[e] == line.last[e]):
            return -1 - e
        answering |= state == SPENT or a == K and state != ENDED
    return UNCHECKED if answering and not answers_checked else 0


@kernel
def _advance(sim: Simulation, line: Line, log: Log, arms, times, answers_checked: bool, at_once: bool):
    """One step of every live episode; not `at_once`: single pulls, and what is due is left to `_follow`."""
    rules, finished = sim.rules, 0
    code = _refusal(sim, line, arms, times, answers_checked)
    if code < 0:
        return code
    for e in range(len(sim.status)):
        sim.did[e], sim.reward[e] = SKIPPED, 0.0
        if sim.status[e] == ENDED:
            continue
        a, count = arms[e], times[e]
        if a == rules.K or sim.status[e] == SPENT:
            finished = stop(sim, e, finished)
            continue
        if count == 0:
            _close(sim, line, e)
            line.clock[e] = max(line.clock[e], _soonest(line, e))
        else:
            count = allowed(sim, e, a, count)
            sim.did[e], sim.reward[e] = PULLED, 0.0 - rules.cost * count
            for _ in range(count):
                _ask(sim, line, e, a)
                if at_once:
                    _show_due(sim, line, log, e)
            finished = end(sim, e, e + 1, finished)
            if sim.status[e] != LIVE:
                line.clock[e] = math.inf  # all that is pending is due
        if at_once:
            _show_due(sim, line, log, e)
    return finished


@kernel
def _follow(sim: Simulation, line: Line, log: Log, shows: bool, arms):
    """Fill arms (E,) with those whose results are due next, -1 for none, and show these; returns how many they are."""
    count = 0
    for e in range(len(arms)):
        place = _next_due(line, e)
        arms[e] = NOTHING if place < 0 else line.arm[e, place]
        count += place >= 0
        if shows and place >= 0:
            _show(sim, line, log, e, place)
    return count


class Waiting:
    """The results of E episodes that are not shown yet: `pending` (E, K), or (E, K, D) where coordinates are pulled.

    Args:
        task: with `batch` or `delay`. simulator: of the episodes. local: whether each arm counts by itself.
    """

    def __init__(self, task: Task, simulator: Simulator, local: bool) -> None:
        E, actions = simulator.E, simulator.K
        lanes, delay, drawn = task.K if local else 1, task.mean_delay, isinstance(task.delay, str)
        longest = math.ceil(LONGEST * delay if drawn else delay)
        L = min(task.entries or math.inf, task.batch + longest + 2)
        if 2 * E * L > MOST_NUMBERS:
            raise ValueError(
                f"batch={task.batch} and delay={task.delay!r}: up to {L:,} results of each of {E:,} episodes side by "
                f"side may be pending, and at most {MOST_NUMBERS // 2:,} are allowed: give a smaller batch, delay, "
                "budget or num_envs"
            )
        ints = {"arm": (E, int(L)), "first": E, "last": E, "opened": E, "pending": E * actions}
        arrays: dict[str, Any] = {name: np.zeros(shape, np.int64) for name, shape in ints.items()}
        arrays |= {"due": np.zeros((E, int(L))), "clock": np.zeros(E), "latest": np.zeros(E * lanes)}
        self._line = Line(task.batch, delay, drawn, lanes, actions // lanes, **arrays)
        self._simulator = simulator
        self.pending = self._line.pending.reshape(E, *task.shape)
        nothing = np.empty((E, 0), np.int64)
        self._no_log = Log(nothing, nothing, np.empty((E, 0, simulator.D)), np.zeros((2, E), np.int64), nothing)

    def clear(self, rows: Ints) -> None:
        """Take everything out of the lines of the episodes `rows` (n,)."""
        for array in self.state()[2:]:
            array.reshape(self._simulator.E, -1)[rows] = 0

    def advance(
        self, arms: Ints, times: Ints, answers_checked: bool, history: History | None, at_once: bool = True
    ) -> int:
        """`Simulator.advance`, where pulls are asked, and times[e] = 0 waits for the next result.

        What is due is shown, and written into the history; where it is not `at_once`, `follow` has to do that.
        """
        log, sim = self._no_log if history is None else history.log, self._simulator
        count: int = _advance.quick(sim.arrays, self._line, log, arms, times, answers_checked, at_once)
        if count >= 0 or count == UNCHECKED:
            return count
        raise sim.refused(-1 - count, arms, times, 0)

    def follow(self, arms: Ints, history: History | None, shows: bool) -> int:
        """Fill arms (E,) with those whose results are due next, -1 for none; `shows`: show them. Returns how many."""
        log = self._no_log if history is None else history.log
        return int(_follow(self._simulator.arrays, self._line, log, shows, arms))

    def state(self) -> list[NDArray[Any]]:
        """The arrays that hold all attributes; no copies."""
        return list(self._line[5:])
