"""Whole episodes in compiled code: an agent that is a function of one episode plays on without Python between pulls.

A player runs the episode of each slot until an action needs Python: a stop, a checkpoint, the end of the episode, an
invalid action, or the first bulk pull of all. `Simulator.advance` takes that action, so that rare events have one
implementation. A player pulls arms exactly as `advance` does, bit for bit: with the same random numbers, distributions
and statistics, in the same order within each episode.

Players hold no lock: several threads can play, each on a simulator of its own.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ..kernels.checks import SLACK, Ints
from ..kernels.compiled import inlined, part
from ..kernels.rng import arm_word, philox, to_uniform
from ..kernels.routines import call_routine
from ..kernels.structs import Kernel, arguments_of, assemble, fleeting, places_of
from .arrays import AHEAD, ENDED, FIRST, LIVE, Simulation
from .sampling import enter, statistics

_0 = np.uint64(0)


class Quiet(NamedTuple):
    """How far a player may go on its own."""

    most: Ints  # (E,) pulls of an episode at which it must still stand
    steps: int  # actions of an episode at most; the one after them is chosen and left to others


def quiet_until(sim: Simulation, most: Ints | int) -> Ints | int:
    """Pulls (E,), at most `most`, with which an episode is sure to stand: money for one more of any arm is left."""
    if not sim.rules.priced or sim.rules.budget < 0:
        return most
    budget = sim.rules.budget if sim.rules.least > 0.0 else min(sim.rules.budget, sim.rules.items)
    sure = np.floor((budget - sim.money) / sim.rules.most).astype(np.int64) - 1
    return np.minimum(most, sim.spent + np.maximum(sure, 0))


@part
def allowed(sim, e, a, pulls):
    """How many of so many pulls of arm a are left to episode e, by its budget and limit; 0 ends the budget."""
    rules, e, a = sim.rules, np.int64(e), np.int64(a)
    left = rules.budget * (1.0 + SLACK) - sim.money[e]
    if rules.budget >= 0 and not rules.priced:
        pulls = min(pulls, rules.budget - sim.spent[e])
    elif rules.budget >= 0 and rules.least > 0.0 and pulls * sim.price[a] > left:
        pulls = np.int64(left / sim.price[a])
    elif 0 <= rules.budget < rules.items and rules.least == 0.0:
        pulls = min(pulls, rules.budget - sim.pulls[e * rules.K + a])
    sim.remaining[e] *= pulls != 0
    return min(pulls, rules.limit - sim.spent[e]) if rules.limit >= 0 else pulls


@part
def pay(sim, e, a, pulls):
    """Pay for pulls of arm a in episode e, which its counts hold; nothing remains where no arm can be paid."""
    rules, e, a = sim.rules, np.int64(e), np.int64(a)
    if rules.least == 0.0:  # a row that some arm has been pulled in is paid
        sim.money[e] = max(sim.money[e], float(min(sim.pulls[e * rules.K + a], rules.items)))
    else:
        sim.money[e] += sim.price[a] * pulls
    if rules.budget < 0:
        return
    left, rows = rules.budget * (1.0 + SLACK) - sim.money[e], min(rules.budget, rules.items)
    able = 0.0 < rules.least <= left
    for k in range(rules.K if rules.least == 0.0 else 0):
        able |= sim.pulls[e * rules.K + k] < rows
    sim.remaining[e] = max(np.int64(left), 1) if able and sim.status[e] == LIVE else 0


@inlined
def spend(sim, e, arm, pulls):
    """Count pulls of an arm of episode e, and pay for them."""
    sim.spent[e] += pulls
    if sim.rules.priced:
        pay(sim, e, arm, pulls)
    elif sim.rules.budget >= 0:
        sim.remaining[e] = sim.rules.budget - sim.spent[e]


@part
def _pull_many(sim, e, a, times):
    """A bulk pull of arm a."""
    if sim.bulk[0] == 0:
        raise ValueError("the routine of bulk pulls is not loaded; Simulator.advance loads it")
    o = e * np.uint64(sim.rules.K) + a
    m = sim.pulls[o]
    call_routine(sim.bulk[0], sim, e, a, o, m, times)
    sim.pulls[o] = m + times
    if sim.spent[e] < len(sim.arms):
        _record(sim, e, a, times)
    spend(sim, e, a, times)


@part
def _record(sim, e, a, times):
    """Write down a pull, or a bulk pull, whose samples are given by their mean."""
    D, begin = sim.rules.D, sim.spent[e]
    for t in range(begin, min(begin + times, len(sim.arms))):
        sim.arms[t] = a
        for d in range(D):
            sim.samples[t * D + d] = sim.sample[np.int64(e) * D + d]


@part
def draw_ahead(sim, e, a, m):
    """Draw the samples of scalar arm a of episode e that follow m pulls, to its line: twice as many as before."""
    work, line = sim.work, np.int64(a) & (len(sim.work.whose) - 1)
    many = min(max(2 * (work.until[line] - work.since[line]), FIRST), AHEAD)
    work.since[line], work.until[line] = m, m + many
    call_routine(sim.rules.drawer, sim, e, a, m, many, line * AHEAD)


@inlined
def _next_sample(sim, e, a, o, m):
    """The sample of scalar arm a of episode e, entry o, that follows m pulls; alone where its line was another's."""
    work = sim.work
    line, at = a & np.uint64(len(work.whose) - 1), np.uint64(len(work.ahead) - AHEAD)
    if work.whose[line] != o:
        work.whose[line], work.since[line], work.until[line] = o, m, m
        if sim.rules.plain:
            w0, w1, _, _ = philox(np.uint64(m), arm_word(a, m), sim.episode[e], _0, sim.key[0, e], sim.key[1, e])
            p = sim.parameters[(o if sim.rules.own else a) * np.uint64(sim.rules.columns)]
            return 1.0 if to_uniform(w0, w1) < p else 0.0
        call_routine(sim.rules.drawer, sim, e, a, m, 1, np.int64(at))
        return work.ahead[at]
    if not work.since[line] <= m < work.until[line]:
        draw_ahead(sim, e, a, m)
    return work.ahead[line * np.uint64(AHEAD) + np.uint64(m - work.since[line])]


@inlined
def pull_once(sim, e, arm):
    """Pull an arm of episode e, which neither ends the episode nor is beyond its budget."""
    rules, a = sim.rules, np.uint64(arm)
    o = e * np.uint64(rules.K) + a
    m = sim.pulls[o]
    if rules.drawer == 0:
        call_routine(rules.sampler, sim, e, a, o, m, 1)
    else:
        y = _next_sample(sim, e, a, o, m)
        sim.sample[e] = y
        enter(float(m), (rules.low, rules.high), y, o, statistics(sim))
    sim.pulls[o] = m + 1
    if sim.spent[e] < len(sim.arms):
        _record(sim, e, a, 1)
    spend(sim, e, a, 1)


@inlined
def pull(sim, e, arm, times):
    """Pull an arm of episode e so many times, which neither ends the episode nor is beyond its budget.

    Raises:
        ValueError: for bulk pulls, as long as `Simulator.advance` has not loaded the routine for them.
    """
    if times > 1:
        _pull_many(sim, e, np.uint64(arm), times)
    else:
        pull_once(sim, e, arm)


@inlined
def open_block(sim, start, n):
    """Note the n <= BLOCK episodes from `start` on, before `block_of_pulls`; both are unsigned."""
    episode, key0, key1 = sim.work.episode, sim.work.key0, sim.work.key1
    for i in range(n):
        episode[i] = sim.episode[start + i]
    for i in range(n):
        key0[i] = sim.key[0, start + i]
    for i in range(n):
        key1[i] = sim.key[1, start + i]


@inlined
def block_of_pulls(sim, start, n):
    """Pull the arms `sim.work.arm` once in n episodes from `start` on; `spend` is left to the caller.

    Afterwards `sim.work` has, of scalar arms, the sample, and pulls, mean and variance of the arm with it.
    """
    K, pulls, entry, before, arm = np.uint64(sim.rules.K), sim.pulls, sim.work.entry, sim.work.before, sim.work.arm
    for i in range(n):
        o = (start + i) * K + arm[i]
        m = pulls[o]
        pulls[o] = m + 1
        entry[i], before[i] = o, m
    call_routine(sim.rules.block, sim, n)


@fleeting
class Playing(NamedTuple):
    """What a player plays, and how far."""

    sim: Simulation
    quiet: Quiet


_PLAY = """    sim, quiet = playing.sim, playing.quiet
    K = sim.rules.K
    for episode in range(len(out)):
        e = uint64(episode)
        out[e], left = K, quiet.steps
        while sim.status[e] != ENDED:
            arm = one(e, {given})
            pulls = {pulls}
            due = left == 0 or sim.status[e] != LIVE or pulls > quiet.most[e] - sim.spent[e]
            if due or arm < 0 or arm >= K or pulls < 1{unloaded}:
                out[e] = arm
                break
            {pull}
            left -= 1
"""


@functools.cache
def player(kernel: Kernel) -> Kernel:
    """The player of a kernel that `episode_kernel` has made: `play(..., out, playing)`, playing a `Playing`.

    The arguments in front are those of the kernel. It pulls the chosen arms in each slot whose episode is live, for as
    long as `Quiet` allows, and sets out[e] to the next arm, which it does not pull. Where an argument of the kernel is
    called `times` and holds how often to pull the chosen arms, `times.out`, it is obeyed.

    Raises:
        TypeError: for what is no such kernel.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"only kernels that episode_kernel has made are played, got {kernel!r:.200}")
    given = arguments_of(kernel.function)
    places = places_of(given)
    texts = {"pulls": "int64(1)", "pull": "pull_once(sim, e, arm)", "unloaded": ""}
    if "times" in given:
        texts = {"pulls": f"{places['times']}.out[e]", "pull": "pull(sim, e, arm, pulls)"}
        texts["unloaded"] = " or pulls > 1 and sim.bulk[0] == 0"
    body = _PLAY.format(given=", ".join(places.values()), **texts)
    beside = [("out", None), ("playing", Playing)]
    names = {"LIVE": LIVE, "ENDED": ENDED, "int64": np.int64, "pull": pull, "pull_once": pull_once}
    arguments = {places[name]: kind for name, kind in given.items()} | dict(beside)
    function = assemble(kernel.function, "player", arguments, body, **names)
    return Kernel(function, kernel.function, [*given.items(), *beside], player, nogil=True)
