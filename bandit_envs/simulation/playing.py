"""Whole episodes in compiled code: an agent that is a function of one episode plays on without Python between pulls.

A player runs the episode of each slot until an action needs Python: a stop, a checkpoint, the end of the episode, an
invalid action, or the first bulk pull of all. `Simulator.advance` takes that action, so that rare events have one
implementation. A player pulls arms exactly as `advance` does, bit for bit: with the same random numbers, distributions
and statistics, in the same order within each episode.

Players hold no lock: several threads can play, each on a simulator of its own.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..instances.arms import BERNOULLI, GAUSSIAN
from ..kernels.compiled import inlined, part
from ..kernels.rng import arm_word, normal_quantile, philox, to_uniform
from ..kernels.structs import Kernel, arguments_of, assemble, fleeting, places_of
from .sampling import block_of_samples, enter, take_in, updated
from .simulator import ENDED, LIVE, Simulation, by_routine

__all__ = ["BLOCK", "Block", "Playing", "Quiet", "block_of_pulls", "player", "pull", "pull_once", "spend"]

BLOCK = 64  # episodes side by side

Ints = NDArray[np.int64]


class Quiet(NamedTuple):
    """How far a player may go without anybody looking.

    Attributes:
        most: (E,) pulls of an episode at which it must still stand.
        steps: actions of an episode at most; the one after them is chosen and left to others.
    """

    most: Ints
    steps: int


@inlined
def spend(sim, e, pulls):
    """Count pulls of episode e."""
    sim.spent[e] += pulls
    if sim.rules.budget >= 0:
        sim.remaining[e] = sim.rules.budget - sim.spent[e]


@part
def _pull_many(sim, e, a, times):
    """A bulk pull of arm a."""
    if sim.bulk[0] == 0:
        raise ValueError("the routine of bulk pulls is not loaded; Simulator.advance loads it")
    o = e * np.uint64(sim.rules.K) + a
    m = sim.pulls[o]
    by_routine(sim.bulk[0], sim, e, a, o, m, times)
    sim.pulls[o] = m + times
    if sim.spent[e] < len(sim.arms):
        _record(sim, e, a, times)
    spend(sim, e, times)


@part
def _record(sim, e, a, times):
    """Write down a pull, or a bulk pull, whose samples are given by their mean."""
    D, begin = sim.rules.D, sim.spent[e]
    for t in range(begin, min(begin + times, len(sim.arms))):
        sim.arms[t] = a
        for d in range(D):
            sim.samples[t * D + d] = sim.sample[np.int64(e) * D + d]


@part
def _draw(sim, at, u):
    """The sample that a uniform number yields, of a scalar arm that is not Bernoulli."""
    words, numbers, table = sim.work.words, sim.work.numbers, sim.parameters
    if sim.rules.distribution == GAUSSIAN:
        return table[at] + table[at + 1] * normal_quantile(u)
    numbers[0, 0], words[6, 0] = u, np.uint64(at)
    block_of_samples(sim, numbers[0], 1, words[6], numbers[1])
    return numbers[1, 0]


@inlined
def pull_once(sim, e, arm):
    """Pull an arm of episode e, which neither ends the episode nor is beyond its budget."""
    K, columns = np.uint64(sim.rules.K), np.uint64(sim.rules.columns)
    a = np.uint64(arm)
    o = e * K + a
    at = np.int64((o if sim.rules.own else a) * columns)
    m = sim.pulls[o]
    if sim.rules.D > 1 or sim.rules.items > 0:
        by_routine(sim.rules.sampler, sim, e, a, o, m, 1)
    else:
        w0, w1, _, _ = philox(np.uint64(m), arm_word(a, m), sim.episode[e], np.uint64(0), sim.key[0, e], sim.key[1, e])
        u = to_uniform(w0, w1)
        if sim.rules.distribution == BERNOULLI:
            y = 1.0 if u < sim.parameters[at] else 0.0
        else:
            y = _draw(sim, at, u)
        sim.sample[e] = y
        known = sim.excess, sim.total, sim.mean, sim.variance, sim.moments
        enter(float(m), sim.rules.low, sim.rules.high, y, o, *known)
    sim.pulls[o] = m + 1
    if sim.spent[e] < len(sim.arms):
        _record(sim, e, a, 1)
    spend(sim, e, 1)


@inlined
def pull(sim, e, arm, times):
    """Pull an arm of episode e so many times, which neither ends the episode nor is beyond its budget.

    Raises:
        ValueError: where it is pulled more than once and the routine for that has
            not been loaded by `Simulator.advance`.
    """
    if times > 1:
        _pull_many(sim, e, np.uint64(arm), times)
    else:
        pull_once(sim, e, arm)


class Block(NamedTuple):
    """Scratch for one step of `BLOCK` episodes."""

    words: Any  # (4, BLOCK) uint64; the first three are used by `block_of_pulls`, the last is free
    numbers: Any  # (7, BLOCK); the first three are used, the others free

    @classmethod
    def empty(cls) -> Block:
        """Such arrays."""
        return cls(np.empty((4, BLOCK), np.uint64), np.empty((7, BLOCK)))


@part
def block_of_pulls(sim, start, n, arm, pulls, mean, variance, scratch):
    """Pull scalar arms once, in n episodes from `start` on, in loops over all of them; `spend` is left to the caller.

    Args:
        arm: (n,) uint64.
        pulls, mean, variance: (n,) floats, which get the statistics of each arm, with the new sample.
        scratch: a `Block`.
    """
    K, columns, own = np.uint64(sim.rules.K), np.uint64(sim.rules.columns), sim.rules.own
    offset, at, count, u, y = (
        scratch.words[0],
        scratch.words[1],
        scratch.words[2],
        scratch.numbers[0],
        scratch.numbers[1],
    )
    rules, excess, low, high = sim.rules, scratch.numbers[2], sim.rules.low, sim.rules.high
    for i in range(n):
        o = (start + np.uint64(i)) * K + arm[i]
        m = sim.pulls[o]
        sim.pulls[o] = m + 1
        offset[i], count[i] = o, m
    if rules.items > 0:
        for i in range(n):
            o = offset[i]
            by_routine(rules.sampler, sim, start + np.uint64(i), arm[i], o, np.int64(count[i]), 1)
            pulls[i], mean[i], variance[i] = float(np.int64(count[i])) + 1.0, sim.mean[o], sim.variance[o]
        return
    key0, key1, episode = sim.key[0], sim.key[1], sim.episode
    for i in range(n):
        j = start + np.uint64(i)
        w0, w1, _, _ = philox(count[i], arm_word(arm[i], count[i]), episode[j], np.uint64(0), key0[j], key1[j])
        u[i] = to_uniform(w0, w1)
    for i in range(n):
        at[i] = (offset[i] if own else arm[i]) * columns
    block_of_samples(sim, u, n, at, y)
    sums, totals, means, variances = sim.excess, sim.total, sim.mean, sim.variance
    for i in range(n):
        excess[i] = sums[offset[i]]
    for i in range(n):
        mean[i] = means[offset[i]]
    for i in range(n):
        variance[i] = variances[offset[i]]
    if len(sim.moments) > 0:  # `enter` in loops of their own, most of which LLVM vectorises
        for i in range(n):
            take_in(float(np.int64(count[i])), mean[i] - low, variance[i], sim.moments, offset[i], y[i] - low)
    for i in range(n):
        before = float(np.int64(count[i]))
        excess[i], mean[i], variance[i] = updated(before, low, high, excess[i], mean[i], variance[i], y[i])
        pulls[i] = before + 1.0
    for i in range(n):
        o = offset[i]
        sums[o], means[o], variances[o] = excess[i], mean[i], variance[i]
    if low != 0.0:
        for i in range(n):
            totals[offset[i]] = excess[i] + low * pulls[i]


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
    return Kernel(function, kernel.function, [*given.items(), *beside], player, apart=True, nogil=True)
