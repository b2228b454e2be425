"""Whole episodes in compiled code: an agent that is a function of one episode plays on without Python between pulls.

A player goes through the slots of a simulator, and plays each up to the next action that somebody else must look at:
one that stops, that leads beyond a checkpoint, that ends the episode, that is out of range, or that is the first bulk
pull of all. That action it leaves to `Simulator.advance`. So everything that happens rarely has one implementation; and
a player pulls arms exactly as `advance` does: by the same random numbers, laws and statistics, in the same order within
each episode, bit for bit.

Players hold no lock: several threads can play, each on a simulator of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arms import BERNOULLI, CATEGORICAL, RESAMPLED
from .compiled import arguments_of, assemble, inlined, lean, part
from .rng import arm_word, philox, to_uniform
from .routines import call_routine
from .sampling import NEXT_BLOCK, block_of_samples, from_uniform
from .simulator import BULK, ENDED, LIVE, Simulation, updated

__all__ = ["BLOCK", "Block", "Quiet", "block_of_pulls", "player", "pull", "pull_once", "spend"]

BLOCK = 64  # kernel constants: episodes side by side

Ints = NDArray[np.int64]


class Quiet(NamedTuple):
    """How far a player may go without anybody looking.

    Attributes:
        most: (E,) pulls of an episode at which it must still stand.
        steps: actions of an episode at most; the one after them is chosen and left to others.
    """

    most: Ints
    steps: int


@part
def _pull_coordinates(sim, e, a, o, at):
    """One pull of an arm of several dimensions, whose entry is o and whose parameters start at `at`."""
    law, D, columns = sim.rules[0], sim.rules[2], sim.rules[6]
    m = sim.pulls[o]
    k0, k1, episode, c1 = sim.identity[0, e], sim.identity[1, e], sim.identity[2, e], arm_word(a, m)
    row = law == RESAMPLED or law == CATEGORICAL  # one uniform number picks all coordinates
    w0 = w1 = w2 = w3 = np.uint64(0)
    before = float(m)
    for d in range(D):
        if d % 2 == 0 and not (row and d > 0):
            w0, w1, w2, w3 = philox(np.uint64(m), c1, episode, np.uint64(d // 2) * NEXT_BLOCK, k0, k1)
        u = to_uniform(w0, w1) if d % 2 == 0 or row else to_uniform(w2, w3)
        y = from_uniform(law, u, sim.parameters, at, columns, sim.data, d, D)
        i = np.int64(o) * D + d
        total, mean, variance = sim.statistics[0, i], sim.statistics[1, i], sim.statistics[2, i]
        sim.statistics[0, i], sim.statistics[1, i], sim.statistics[2, i] = updated(before, total, mean, variance, y)
        sim.outcome[len(sim.pulls) // sim.rules[1] + np.int64(e) * D + d] = y


@inlined
def spend(sim, e, pulls):
    """Count pulls of episode e."""
    sim.counts[0, e] += pulls
    if sim.rules[4] >= 0:
        sim.counts[1, e] = sim.rules[4] - sim.counts[0, e]


@part
def _pull_many(sim, e, a, times):
    """A bulk pull of arm a."""
    if sim.rules[BULK] == 0:
        raise ValueError("the routine of bulk pulls is not loaded; Simulator.advance loads it")
    law, K, D, columns = sim.rules[0], np.uint64(sim.rules[1]), sim.rules[2], np.uint64(sim.rules[6])
    o = e * K + a
    m = sim.pulls[o]
    call_routine(
        sim.rules[BULK],
        law,
        sim.identity[0, e],
        sim.identity[1, e],
        sim.identity[2, e],
        a,
        m,
        times,
        np.int64(o),
        np.int64((o if sim.rules[7] else a) * columns),
        np.int64(columns),
        sim.parameters,
        sim.data,
        sim.statistics[0],
        sim.statistics[1],
        sim.statistics[2],
        sim.outcome[len(sim.pulls) // K :],
        e,
        D,
        sim.room,
        sim.counter,
    )
    sim.pulls[o] = m + times
    if sim.counts[0, e] < len(sim.arms):
        _record(sim, e, a, times)
    spend(sim, e, times)


@part
def _record(sim, e, a, times):
    """Write down a pull, or a bulk pull, whose samples are told by their mean."""
    D, E, begin = sim.rules[2], len(sim.pulls) // sim.rules[1], sim.counts[0, e]
    for t in range(begin, min(begin + times, len(sim.arms))):
        sim.arms[t] = a
        for d in range(D):
            sim.samples[t * D + d] = sim.outcome[E + np.int64(e) * D + d]


@part
def _draw(law, parameters, data, at, columns, u):
    """`from_uniform` for a scalar arm, as a function that is compiled once for all players."""
    return from_uniform(law, u, parameters, at, columns, data, 0, 1)


@inlined
def pull_once(sim, e, arm):
    """Pull an arm of episode e, which neither ends the episode nor is beyond its budget."""
    K, columns = np.uint64(sim.rules[1]), np.uint64(sim.rules[6])
    a = np.uint64(arm)
    o = e * K + a
    at = np.int64((o if sim.rules[7] else a) * columns)
    m = sim.pulls[o]
    if sim.rules[2] > 1:
        _pull_coordinates(sim, e, a, o, at)
    else:
        w0, w1, _, _ = philox(
            np.uint64(m), arm_word(a, m), sim.identity[2, e], np.uint64(0), sim.identity[0, e], sim.identity[1, e]
        )
        u = to_uniform(w0, w1)
        if sim.rules[0] == BERNOULLI:
            y = 1.0 if u < sim.parameters[at] else 0.0
        else:
            y = _draw(sim.rules[0], sim.parameters, sim.data, at, np.int64(columns), u)
        sim.outcome[len(sim.pulls) // K + e] = y
        total, mean, variance = sim.statistics[0, o], sim.statistics[1, o], sim.statistics[2, o]
        sim.statistics[0, o], sim.statistics[1, o], sim.statistics[2, o] = updated(float(m), total, mean, variance, y)
    sim.pulls[o] = m + 1
    if sim.counts[0, e] < len(sim.arms):
        _record(sim, e, a, 1)
    spend(sim, e, 1)


@inlined
def pull(sim, e, arm, times):
    """Pull an arm of episode e so many times, which neither ends the episode nor is beyond its budget.

    Raises:
        ValueError: where it is pulled more than once and the routine for that, whose address is in rules[BULK], has
            not been loaded by `Simulator.advance`.
    """
    if times > 1:
        _pull_many(sim, e, np.uint64(arm), times)
    else:
        pull_once(sim, e, arm)


class Block(NamedTuple):
    """Room for one step of `BLOCK` episodes."""

    words: Any  # (4, BLOCK) uint64; the first three are used by `block_of_pulls`, the last is free
    places: Any  # (BLOCK,) int64
    numbers: Any  # (7, BLOCK); the first three are used, the others free

    @classmethod
    def empty(cls) -> Block:
        """Such arrays."""
        return cls(np.empty((4, BLOCK), np.uint64), np.empty(BLOCK, np.int64), np.empty((7, BLOCK)))


@part
def block_of_pulls(sim, start, n, arm, pulls, mean, variance, room):
    """Pull scalar arms once, in n episodes from `start` on, in loops over all of them; `spend` is left to the caller.

    Args:
        arm: (n,) uint64.
        pulls, mean, variance: (n,) floats, which get the statistics of each arm, with the new sample.
        room: a `Block`.
    """
    law, K, columns, stride = sim.rules[0], np.uint64(sim.rules[1]), np.uint64(sim.rules[6]), sim.rules[7] != 0
    offset, at, count, u, y = room.words[0], room.words[1], room.words[2], room.numbers[0], room.numbers[1]
    total = room.numbers[2]
    for i in range(n):
        o = (start + np.uint64(i)) * K + arm[i]
        m = sim.pulls[o]
        sim.pulls[o] = m + 1
        offset[i], count[i] = o, m
    key0, key1, episode = sim.identity[0], sim.identity[1], sim.identity[2]
    for i in range(n):
        j = start + np.uint64(i)
        w0, w1, _, _ = philox(count[i], arm_word(arm[i], count[i]), episode[j], np.uint64(0), key0[j], key1[j])
        u[i] = to_uniform(w0, w1)
    for i in range(n):
        at[i] = (offset[i] if stride else arm[i]) * columns
    block_of_samples(law, u, n, at, np.int64(columns), sim.parameters, sim.data, room.places, y)
    totals, means, variances = sim.statistics[0], sim.statistics[1], sim.statistics[2]
    for i in range(n):
        total[i] = totals[offset[i]]
    for i in range(n):
        mean[i] = means[offset[i]]
    for i in range(n):
        variance[i] = variances[offset[i]]
    for i in range(n):
        before = float(np.int64(count[i]))
        total[i], mean[i], variance[i] = updated(before, total[i], mean[i], variance[i], y[i])
        pulls[i] = before + 1.0
    for i in range(n):
        o = offset[i]
        totals[o], means[o], variances[o] = total[i], mean[i], variance[i]


_PLAY = """    K = sim.rules[1]
    for episode in range(len(out)):
        e = uint64(episode)
        out[e], left = K, quiet.steps
        while sim.flags[0, e] != ENDED:
            arm = one(e, {given})
            pulls = {pulls}
            due = left == 0 or sim.flags[0, e] != LIVE or pulls > quiet.most[e] - sim.counts[0, e]
            if due or arm < 0 or arm >= K or pulls < 1{unloaded}:
                out[e] = arm
                break
            {pull}
            left -= 1
"""


@functools.cache
def player(kernel: Any) -> Callable[..., None]:
    """The player of a kernel that `episode_kernel` has made: `play(..., out, *simulation, *quiet)`.

    The arguments in front are those of the kernel. It pulls the chosen arms in each slot whose episode is live, for as
    long as `Quiet` allows, and sets out[e] to the next arm, which it does not pull. Where an argument of the kernel is
    called `times` and holds how often to pull the chosen arms, `times.out`, it is obeyed.
    """
    given = arguments_of(kernel.function)
    told = {"pulls": "int64(1)", "pull": "pull_once(sim, e, arm)", "unloaded": ""}
    if "times" in given:
        unloaded = " or pulls > 1 and sim.rules[BULK] == 0"
        told = {"pulls": "times.out[e]", "pull": "pull(sim, e, arm, pulls)", "unloaded": unloaded}
    body = _PLAY.format(given=", ".join(given), **told)
    arguments = given | {"out": None, "sim": Simulation, "quiet": Quiet}
    names = {"LIVE": LIVE, "ENDED": ENDED, "BULK": BULK, "int64": np.int64, "pull": pull, "pull_once": pull_once}
    return lean(assemble(kernel.function, "player", arguments, body, **names), nogil=True)
