"""From random numbers to samples, and from these to statistics: routines of single pulls, of blocks and of bulks.

A routine is made for one distribution: it is a version of a function of this file in which `DISTRIBUTION` and `sample`
are that distribution's, so that nothing else is compiled. The tables `parameters` and `data` are those of
`arms.Arms`; `at` is the place in `parameters` where an arm's own begin.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..instances.arms import BERNOULLI, CATEGORICAL, GAUSSIAN, LINE, RESAMPLED, SHARED, TABULATED, UNIFORM
from ..kernels import rng
from ..kernels.compiled import inlined, part, view
from ..kernels.routines import routine
from .arrays import Simulation

_LOW = np.uint64(0xFFFFFFFF)
DEPARTURES = 50  # of a line
_GOLDEN, _MIX, _MIXED = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
NEXT_BLOCK = np.uint64(16)  # one block of random words further, above the 4 bits of the stream


# --- statistics -------------------------------------------------------------------------------------------------------


@inlined
def updated(n, low, high, excess, mean, variance, y):
    """Sum of what exceeds low, mean and variance of n samples in [low, high] and one more, y.

    Only what exceeds the low end is summed up: so rounding errors are of the width of the range, wherever it lies.
    """
    count, x = n + 1.0, y - low
    sum_ = excess + x
    before, now = mean - low, sum_ / count
    spread, centre = (variance * n + (x - before) * (x - now)) / count, low + now
    return sum_, high if high < centre else centre, spread if spread > 0.0 else 0.0


@inlined
def higher(n, ours, more, theirs):
    """Third and fourth central moments of n samples and `more`; of each the mean and three moments (Pebay 2008)."""
    mean, variance, third, fourth = ours
    m, v, t, f = theirs
    gap, x, y = m - mean, n / (n + more), more / (n + more)
    square = gap * gap * x * y
    cubes = third * x + t * y + square * gap * (x - y) + 3.0 * gap * x * y * (v - variance)
    fourths = fourth * x + f * y + square * gap * gap * (1.0 - 3.0 * x * y)
    fourths += 6.0 * square * (x * v + y * variance)
    return cubes, fourths + 4.0 * gap * x * y * (t - third)


@inlined
def take_in(n, mean, variance, moments, o, y):
    """Add a sample y to the moments of entry o, of n samples: before it is added to their mean and variance."""
    ours = mean, variance, moments[2 * o], moments[2 * o + 1]
    moments[2 * o], moments[2 * o + 1] = higher(n, ours, 1.0, (y, 0.0, 0.0, 0.0))


@inlined
def add(n, ends, y, o, known):
    """A sample y in [low, high], the ends, enters the statistics of entry o, of n samples, but not its moments."""
    (low, high), (excess, total, mean, variance, _) = ends, known
    sum_, mean[o], variance[o] = updated(n, low, high, excess[o], mean[o], variance[o], y)
    excess[o] = sum_
    if low != 0.0:
        total[o] = sum_ + low * (n + 1.0)


@inlined
def enter(n, ends, y, o, known):
    """A sample enters the `statistics` of an entry as by `add`, and its moments where they are kept."""
    _, _, mean, variance, moments = known
    if len(moments) > 0:
        take_in(n, mean[o] - ends[0], variance[o], moments, o, y - ends[0])
    add(n, ends, y, o, known)


@inlined
def join(n, ends, more, above, squares, theirs, o, known):
    """`more` samples, their sum above low, squares around their mean and moments enter an entry of n (Chan et al.)."""
    (low, high), (excess, total, mean, variance, moments) = ends, known
    before, count = mean[o] - low, n + more
    if len(moments) > 0:
        ours = before, variance[o], moments[2 * o], moments[2 * o + 1]
        moments[2 * o], moments[2 * o + 1] = higher(float(n), ours, float(more), theirs)
    gap = above / more - before
    variance[o] = max(variance[o] * n + squares + gap * gap * (n * (more / count)), 0.0) / count
    excess[o] += above
    total[o], mean[o] = excess[o] + low * count, min(low + excess[o] / count, high)


@view
def statistics(sim):
    """The arrays that `enter` takes."""
    return sim.excess, sim.total, sim.mean, sim.variance, sim.moments


# --- samples: coordinate d of what a uniform number u yields, of the arm whose parameters start at `at` ---------------


@inlined
def _bernoulli(sim, u, at, d):
    return 1.0 if u < sim.parameters[at + d] else 0.0


@inlined
def _gaussian(sim, u, at, d):
    return sim.parameters[at + d] + sim.parameters[at + sim.rules.D + d] * rng.normal_quantile(u)


@inlined
def _uniform(sim, u, at, d):
    return sim.parameters[at + d] + sim.parameters[at + sim.rules.D + d] * u


@inlined
def _tabulated(sim, u, at, d):
    """By a table of quantiles, which divides [0, 1] into equal cells."""
    D = sim.rules.D
    cells = sim.rules.columns // D - 1
    level = u * cells
    j = min(np.int64(level), cells - 1)
    low, high = sim.parameters[at + j * D + d], sim.parameters[at + (j + 1) * D + d]
    return min(low + (high - low) * (level - j), high)


@inlined
def _categorical(sim, u, at, d):
    v, high = 0, sim.rules.columns - 1
    while v < high:  # the first v with u < cumulative[v]
        middle = (v + high) // 2
        if u < sim.parameters[at + middle]:
            high = middle
        else:
            v = middle + 1
    return sim.data[v]


@inlined
def _resampled(sim, u, at, d):
    rows = sim.parameters[at + 1]
    row = min(np.int64(u * rows), np.int64(rows) - 1)
    return sim.data[(np.int64(sim.parameters[at]) + row) * sim.rules.D + d]


@part
def _flow_line(sim, u, at, d):
    """By the Markov chain of a line: a, c jobs in stages 2, 3, servers 1, 2 blocked or not. SplitMix64 begins at u."""
    s1, s2, s3 = sim.parameters[at], sim.parameters[at + 1], sim.parameters[at + 2]
    b2, b3, word = sim.parameters[at + 3], sim.parameters[at + 4], np.uint64(np.int64(u * 2.0**53)) << np.uint64(11)
    a, c, first, second, done, time = 0, 0, False, False, -np.int64(sim.parameters[at + 5]), 0.0
    while done < DEPARTURES:
        r1, r2 = 0.0 if first else s1, s2 if a > 0 and not second else 0.0
        total = r1 + r2 + (s3 if c > 0 else 0.0)
        word += _GOLDEN
        z = (word ^ (word >> np.uint64(30))) * _MIX
        z = (z ^ (z >> np.uint64(27))) * _MIXED
        z ^= z >> np.uint64(31)
        if done >= 0:
            time -= math.log((np.float64(z & _LOW) + 0.5) * 2.0**-32) / total
        v, moves = np.float64(z >> np.uint64(32)) * 2.0**-32 * total, second  # moves: from stage 2 to stage 3
        if v < r1:
            a, first, moves = a + (a < b2), a >= b2, False
        elif v < r1 + r2:
            moves = c < b3
            c, second = c + moves, not moves
        else:
            done, c, second = done + 1, c - (not second), False
        a, first = a - (moves and not first), first and not moves
    return -time / DEPARTURES


SAMPLES = {
    BERNOULLI: _bernoulli,
    GAUSSIAN: _gaussian,
    UNIFORM: _uniform,
    TABULATED: _tabulated,
    CATEGORICAL: _categorical,
    RESAMPLED: _resampled,
    LINE: _flow_line,
}
# In other versions of a function others; MOMENTS: whether they are kept, ROW: whether one uniform number picks a row.
DISTRIBUTION, MOMENTS, ROW, sample, put = BERNOULLI, False, False, _bernoulli, add


def versions(*numbers: str) -> Callable[[Callable[..., None]], Callable[[int, bool], int]]:
    """From a function of a `Simulation` and such numbers, `address(distribution, moments)` of its routine for these."""

    def decorate(function: Any) -> Callable[[int, bool], int]:
        @functools.cache
        def made(distribution: int, moments: bool) -> Any:
            names: dict[str, Any] = {
                "sample": SAMPLES.get(distribution),
                "put": enter if moments else add,
                "MOMENTS": moments,
            }
            names |= {"DISTRIBUTION": distribution, "ROW": distribution in (RESAMPLED, CATEGORICAL)}
            version = FunctionType(function.__code__, function.__globals__ | names, function.__name__)
            version.__qualname__ = f"{function.__qualname__}-{distribution}-{moments:d}"
            return routine(version, Simulation, *numbers)

        return lambda *kind: int(made(*kind).address)

    return decorate


PULLS = "uint64", "uint64", "uint64", "int64", "int64"  # episode, arm, entry, earlier pulls, times


# --- single pulls -----------------------------------------------------------------------------------------------------


@inlined
def _next_rows(sim, o, at, t, times, d, D):
    """Pull an arm of a table, which has t pulls: its next rows, then its mean. Returns the mean of what they yield.

    Of D scores in a row it is the d-th.
    """
    items, low, high, table = sim.rules.items, sim.rules.low, sim.rules.high, sim.parameters
    excess, total, mean, variance, _ = statistics(sim)
    s, y, left, q = 0.0, low, times, o * D + d
    while left > 0 and t < items:
        y = table[at + t * D + d]
        sim.scores[(o * items + t) * D + d] = y
        excess[q], mean[q], variance[q] = updated(float(t), low, high, excess[q], mean[q], variance[q], y)
        s, t, left = s + (y - low), t + 1, left - 1
    total[q] = excess[q] + low * t
    if t >= items:
        exact = table[at + items * D + d]
        variance[q] *= float(t) / float(t + left)
        y = exact if left > 0 else y
        s, t = s + left * (exact - low), t + left
        excess[q], total[q], mean[q] = (exact - low) * t, exact * t, exact
    return y if times == 1 else min(low + s / times, high)


@inlined
def _place(sim, o, a):
    """Where the parameters of arm a start, whose entry is o."""
    return np.int64((o if sim.rules.own else a) * np.uint64(sim.rules.columns))


@versions(*PULLS)
def _single(sim, e, a, o, n, times):
    """One pull of arm a of episode e, whose entry is o and which has n pulls; of a table any number."""
    at, o, D = _place(sim, o, a), np.int64(o), sim.rules.D
    if DISTRIBUTION == SHARED:
        for d in range(D):
            sim.sample[np.int64(e) * D + d] = _next_rows(sim, o, at, n, times, d, D)
    else:
        c1, ends, known = rng.arm_word(a, n), (sim.rules.low, sim.rules.high), statistics(sim)
        k0, k1, episode = sim.key[0, e], sim.key[1, e], sim.episode[e]
        w0 = w1 = w2 = w3 = np.uint64(0)
        for d in range(D):
            if d % 2 == 0 and not (ROW and d > 0):
                w0, w1, w2, w3 = rng.philox(np.uint64(n), c1, episode, np.uint64(d // 2) * NEXT_BLOCK, k0, k1)
            u = rng.to_uniform(w0, w1) if d % 2 == 0 or ROW else rng.to_uniform(w2, w3)
            y = sample(sim, u, at, d)
            put(float(n), ends, y, o * D + d, known)
            sim.sample[np.int64(e) * D + d] = y


# --- samples: the next ones of a scalar arm at once -------------------------------------------------------------------


@versions("uint64", "uint64", "int64", "int64", "int64")
def _draws(sim, e, a, n, many, at):
    """Draw the `many` <= AHEAD samples of arm a of episode e that follow n pulls, to `sim.work.ahead` from `at` on."""
    count, index, place = np.uint64(many), np.uint64(n), _place(sim, e * np.uint64(sim.rules.K) + a, a)
    u, x, episode, parameters = sim.work.rows[0], sim.work.ahead[at:], sim.episode[e], sim.parameters
    k0, k1, zero = sim.key[0, e], sim.key[1, e], np.uint64(0)
    for i in range(count):
        w0, w1, _, _ = rng.philox(index + i, rng.arm_word(a, index + i), episode, zero, k0, k1)
        u[i] = rng.to_uniform(w0, w1)
    if DISTRIBUTION == BERNOULLI:
        p = parameters[place]
        for i in range(count):
            x[i] = 1.0 if u[i] < p else 0.0
    elif DISTRIBUTION == GAUSSIAN:
        mean, sd = parameters[place], parameters[place + 1]
        rng.block_of_quantiles(u, count, sim.work.spare, x)
        for i in range(count):
            x[i] = mean + sd * x[i]
    else:
        for i in range(count):
            x[i] = sample(sim, u[i], place, 0)


# --- blocks: n pulls that are noted in `Work`, in loops over all of them, most of which LLVM vectorises ---------------


@versions("uint64")
def _scalars(sim, n):
    """Pull scalar arms."""
    work, parameters = sim.work, sim.parameters
    offset, count, arm, at = work.entry, work.before, work.arm, work.place
    episode, key0, key1 = work.episode, work.key0, work.key1
    x, pulls, mean, variance, excess, u = work.sample, work.pulls, work.mean, work.variance, work.excess, work.rows[0]
    sums, totals, means, variances, moments = statistics(sim)
    own, columns, low, high = sim.rules.own, np.uint64(sim.rules.columns), sim.rules.low, sim.rules.high
    for i in range(n):
        at[i] = (offset[i] if own else arm[i]) * columns
    if DISTRIBUTION == SHARED:
        for i in range(n):
            o, m = offset[i], np.int64(count[i])
            x[i] = _next_rows(sim, np.int64(o), np.int64(at[i]), m, 1, 0, 1)
            pulls[i], mean[i], variance[i] = float(m) + 1.0, means[o], variances[o]
    else:
        for i in range(n):
            w0, w1, _, _ = rng.philox(
                count[i], rng.arm_word(arm[i], count[i]), episode[i], np.uint64(0), key0[i], key1[i]
            )
            u[i] = rng.to_uniform(w0, w1)
        if DISTRIBUTION == BERNOULLI:
            for i in range(n):
                x[i] = 1.0 if u[i] < parameters[at[i]] else 0.0
        elif DISTRIBUTION == GAUSSIAN:
            rng.block_of_quantiles(u, n, work.spare, x)
            for i in range(n):
                x[i] = parameters[at[i]] + parameters[at[i] + np.uint64(1)] * x[i]
        else:
            for i in range(n):
                x[i] = sample(sim, u[i], np.int64(at[i]), 0)
        for i in range(n):
            excess[i] = sums[offset[i]]
        for i in range(n):
            mean[i] = means[offset[i]]
        for i in range(n):
            variance[i] = variances[offset[i]]
        if MOMENTS:
            for i in range(n):
                take_in(float(np.int64(count[i])), mean[i] - low, variance[i], moments, offset[i], x[i] - low)
        for i in range(n):
            before = float(np.int64(count[i]))
            excess[i], mean[i], variance[i] = updated(before, low, high, excess[i], mean[i], variance[i], x[i])
            pulls[i] = before + 1.0
        for i in range(n):
            o = offset[i]
            sums[o], means[o], variances[o] = excess[i], mean[i], variance[i]
        if low != 0.0:
            for i in range(n):
                totals[offset[i]] = excess[i] + low * pulls[i]


@versions("uint64")
def _rows(sim, n):
    """Pull arms of several dimensions."""
    work, D, parameters = sim.work, sim.rules.D, sim.parameters
    offset, c0, c1, c2 = work.entry, work.before, work.arm, work.episode
    at, samples, x = work.place, work.rows, work.sample
    ends, known = (sim.rules.low, sim.rules.high), statistics(sim)
    for i in range(n):
        at[i], c1[i] = _place(sim, offset[i], c1[i]), rng.arm_word(c1[i], c0[i])
    if DISTRIBUTION == SHARED:
        for i in range(n):
            o, t = np.int64(offset[i]), np.int64(c0[i])
            for d in range(D):
                sim.sample[work.slot[i] * D + d] = _next_rows(sim, o, np.int64(at[i]), t, 1, d, D)
        return
    for pair in range(1 if ROW else (D + 1) // 2):
        c3, even, odd = np.uint64(pair) * NEXT_BLOCK, samples[2 * pair], samples[2 * pair + 1]
        for i in range(n):
            w0, w1, w2, w3 = rng.philox(c0[i], c1[i], c2[i], c3, work.key0[i], work.key1[i])
            even[i], odd[i] = rng.to_uniform(w0, w1), rng.to_uniform(w2, w3)
    if DISTRIBUTION == GAUSSIAN:
        for d in range(D):
            y = samples[d]
            rng.block_of_quantiles(y, n, work.spare, x)
            for i in range(n):
                place = np.int64(at[i])
                y[i] = parameters[place + d] + parameters[place + D + d] * x[i]
    else:
        for i in range(n):
            w = samples[0, i]
            for d in range(D):
                w = w if ROW else samples[d, i]
                samples[d, i] = sample(sim, w, np.int64(at[i]), d)
    for i in range(n):
        before = float(np.int64(c0[i]))
        for d in range(D):
            put(before, ends, samples[d, i], offset[i] * np.uint64(D) + np.uint64(d), known)
            sim.sample[work.slot[i] * D + d] = samples[d, i]


# --- bulk pulls -------------------------------------------------------------------------------------------------------


@part
def gather(n, block, d, more, y):
    """Add `more` samples, all y, to n samples, of whose coordinate d block (4, D) holds mean, variance and moments."""
    m, v, gap, share = block[0, d], block[1, d], y - block[0, d], more / (n + more)
    block[2, d], block[3, d] = higher(n, (m, v, block[2, d], block[3, d]), more, (y, 0.0, 0.0, 0.0))
    block[0, d], block[1, d] = m + gap * share, (v + gap * gap * share) * (1.0 - share)


@versions(*PULLS)
def _bulk(sim, e, a, o, n, times):
    """Add `times` samples of one arm at a cost that does not grow with `times`, exact in distribution.

    Bernoulli: binomial. Gaussian: normal sum, chi-square spread. Categorical and resampled: multinomial, one binomial
    per value (row). Uniform and tabulated arms, and lines, have no closed form: samples are drawn one by one, as are
    resampled rows while `times` is below their number; such a bulk pull is the sum of the single pulls. Moments are
    kept of arms that are neither Bernoulli nor Gaussian.
    """
    at, o, D, low = _place(sim, o, a), np.int64(o), sim.rules.D, sim.rules.low
    parameters, data, counter, scratch = sim.parameters, sim.data, sim.work.counter, sim.work.bulk
    known = statistics(sim)
    k0, k1, episode = sim.key[0, e], sim.key[1, e], sim.episode[e]
    s, m2, first = scratch[0], scratch[1], scratch[2]
    block = scratch[3:]  # where moments are kept: those of the samples so far, but for their number
    scratch[:, :] = 0.0
    one_by_one = DISTRIBUTION in (UNIFORM, TABULATED, LINE)
    if DISTRIBUTION == RESAMPLED:
        one_by_one = times < parameters[at + 1]
    if one_by_one:
        w0 = w1 = w2 = w3 = np.uint64(0)
        for t in range(n, n + times):
            for d in range(D):
                if d % 2 == 0 and not (ROW and d > 0):
                    c3 = np.uint64(d // 2) * NEXT_BLOCK
                    w0, w1, w2, w3 = rng.philox(np.uint64(t) & _LOW, rng.arm_word(a, t), episode, c3, k0, k1)
                u = rng.to_uniform(w0, w1) if d % 2 == 0 or ROW else rng.to_uniform(w2, w3)
                x = sample(sim, u, at, d) - low
                if t == n:
                    first[d] = x
                if MOMENTS:
                    gather(float(t - n), block, d, 1.0, x)
                s[d] += x
                m2[d] += (x - first[d]) * (x - first[d])
        for d in range(D):
            shift = s[d] - times * first[d]
            m2[d] -= shift * shift / times
    else:
        rng.open_counter(counter, k0, k1, episode, a, n)
        if DISTRIBUTION == BERNOULLI:
            for d in range(D):
                hits = float(rng.binomial(counter, times, parameters[at + d]))
                s[d] = hits
                m2[d] = hits * (times - hits) / times
        elif DISTRIBUTION == GAUSSIAN:
            for d in range(D):
                mu, sd = parameters[at + d], parameters[at + D + d]
                s[d] = times * mu + sd * math.sqrt(times) * rng.normal_quantile(rng.next_uniform(counter))
                m2[d] = sd * sd * 2.0 * rng.gamma(counter, 0.5 * (times - 1)) if times > 1 else 0.0
        elif ROW:
            categorical = DISTRIBUTION == CATEGORICAL
            values = sim.rules.columns if categorical else np.int64(parameters[at + 1])
            left, mass, below = times, 1.0, 0.0
            made = 0.0  # samples so far; `first` is the mean of them, from the first value on
            origin = 0 if categorical else np.int64(parameters[at])
            for v in range(values):
                if categorical:
                    upper = parameters[at + v] if v < values - 1 else 1.0
                    p, below = upper - below, upper
                else:
                    p = 1.0 / values
                last = v == values - 1 or p >= mass
                hits = left if last else rng.binomial(counter, left, p / mass)
                mass -= p
                left -= hits
                for d in range(D):
                    gap = data[(origin + v) * D + d] - data[origin * D + d]
                    s[d] += hits * gap
                    if MOMENTS and hits > 0:
                        gather(made, block, d, float(hits), data[(origin + v) * D + d] - low)
                    if hits > 0:  # equal samples are added to those before (Chan et al.)
                        apart, share = gap - first[d], hits / (made + hits)
                        m2[d] += apart * apart * (made * share)
                        first[d] += apart * share
                made += hits
                if left == 0:
                    break
            for d in range(D):
                s[d] += times * (data[origin * D + d] - low)
    for d in range(D):
        theirs = block[0, d], block[1, d], block[2, d], block[3, d]
        join(n, (low, sim.rules.high), times, s[d], m2[d], theirs, o * D + d, known)
        sim.sample[np.int64(e) * D + d] = min(low + s[d] / times, sim.rules.high)


# --- routines ---------------------------------------------------------------------------------------------------------


def samples_ahead(distribution: int, D: int) -> int:
    """The address of the routine of samples, `(sim, e, a, n, many, at)`; 0: they are drawn pull by pull."""
    return 0 if D > 1 or distribution in (SHARED, LINE) else _draws(distribution, False)


def single_pulls(distribution: int, D: int, moments: bool) -> int:
    """That of the routine of single pulls, `(sim, e, a, o, n, times)`; 0 where samples are drawn ahead."""
    return 0 if samples_ahead(distribution, D) else _single(distribution, moments)


def blocks_of_pulls(distribution: int, D: int, moments: bool) -> int:
    """That of the routine of n pulls that `Work` notes, and has the samples of afterwards, `(sim, n)`."""
    return (_scalars if D == 1 else _rows)(distribution, moments)


def bulk_pulls(distribution: int, D: int, moments: bool) -> int:
    """That of the routine of bulk pulls, `(sim, e, a, o, n, times)`."""
    return (_single if distribution == SHARED else _bulk)(distribution, moments)
