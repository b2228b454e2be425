"""From random numbers to samples: of a single pull, and of a bulk pull, by the distribution of the arms.

The code of a distribution, and the tables `parameters` and `data` that these kernels read, are those of `arms.Arms`;
`at` is the place in `parameters` where the arm's own begin, and `columns` how many there are.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..instances.arms import BERNOULLI, CATEGORICAL, GAUSSIAN, RESAMPLED, SHARED, TABULATED, UNIFORM
from ..kernels.compiled import inlined, part
from ..kernels.rng import (
    arm_word,
    binomial,
    block_of_quantiles,
    gamma,
    next_uniform,
    normal_quantile,
    open_counter,
    philox,
    to_uniform,
)
from ..kernels.routines import call_routine, carray, routine

__all__ = ["block_of_samples", "bulk_pulls", "enter", "from_uniform", "sampler_of", "updated"]

_LOW = np.uint64(0xFFFFFFFF)
_FAR = 2**40  # more than any array has
# What the routines of pulls take: the distribution, the key, episode and arm; pulls, times and places; arrays; scratch.
PULLED_BY = ["int64", *["uint64"] * 4, *["int64"] * 5, *["float64*"] * 8, *["int64"] * 3, "float64*", "uint64*"]
PULLED_BY += ["float64"] * 2
NEXT_BLOCK = np.uint64(16)  # one block of random words further, above the 4 bits of the stream


@inlined
def updated(n, low, high, excess, mean, variance, y):
    """Sum of what exceeds low, mean and variance of n samples in [low, high] and one more, y.

    Only what exceeds the low end is summed up: so rounding errors are of the width of the range, wherever it lies.
    """
    count, x = n + 1.0, y - low
    sum_ = excess + x
    before, now = mean - low, sum_ / count
    spread = (variance * n + (x - before) * (x - now)) / count
    return sum_, min(low + now, high), spread if spread > 0.0 else 0.0


@inlined
def higher(n, mean, variance, third, fourth, more, m, v, t, f):
    """Third and fourth central moments of n samples and `more`, of means, variances and such moments (Pebay 2008)."""
    gap, x, y = m - mean, n / (n + more), more / (n + more)
    square = gap * gap * x * y
    cubes = third * x + t * y + square * gap * (x - y) + 3.0 * gap * x * y * (v - variance)
    fourths = fourth * x + f * y + square * gap * gap * (1.0 - 3.0 * x * y)
    fourths += 6.0 * square * (x * v + y * variance)
    return cubes, fourths + 4.0 * gap * x * y * (t - third)


@inlined
def take_in(n, mean, variance, moments, o, y):
    """Add a sample y to the moments of entry o, of n samples: before it is added to their mean and variance."""
    third, fourth = moments[2 * o], moments[2 * o + 1]
    moments[2 * o], moments[2 * o + 1] = higher(n, mean, variance, third, fourth, 1.0, y, 0.0, 0.0, 0.0)


@inlined
def enter(n, low, high, y, o, excess, total, mean, variance, moments):
    """A sample y enters the statistics of entry o, of n samples: `updated`, and `take_in` where moments are kept."""
    if len(moments) > 0:
        take_in(n, mean[o] - low, variance[o], moments, o, y - low)
    sum_, mean[o], variance[o] = updated(n, low, high, excess[o], mean[o], variance[o], y)
    excess[o] = sum_
    if low != 0.0:
        total[o] = sum_ + low * (n + 1.0)


@inlined
def from_table(u, parameters, at, cells, d, D):
    """Coordinate d of the sample of an arm with a table of quantiles, which divides [0, 1] into `cells` equal parts."""
    level = u * cells
    j = min(np.int64(level), cells - 1)
    low, high = parameters[at + j * D + d], parameters[at + (j + 1) * D + d]
    return min(low + (high - low) * (level - j), high)


@inlined
def from_uniform(distribution, u, parameters, at, columns, data, d, D):
    """Coordinate d of the sample that the uniform number u yields, for the arm whose parameters start at `at`."""
    if distribution == BERNOULLI:
        return 1.0 if u < parameters[at + d] else 0.0
    if distribution == GAUSSIAN:
        return parameters[at + d] + parameters[at + D + d] * normal_quantile(u)
    if distribution == UNIFORM:
        return parameters[at + d] + parameters[at + D + d] * u
    if distribution == TABULATED:
        return from_table(u, parameters, at, columns // D - 1, d, D)
    if distribution == CATEGORICAL:
        v = 0
        if columns <= 8:
            while u >= parameters[at + v]:
                v += 1
        else:
            high = columns - 1
            while v < high:  # the first v with u < cumulative[v]
                middle = (v + high) // 2
                if u < parameters[at + middle]:
                    high = middle
                else:
                    v = middle + 1
        return data[v]
    row = min(np.int64(u * parameters[at + 1]), np.int64(parameters[at + 1]) - 1)
    return data[(np.int64(parameters[at]) + row) * D + d]


def _other_samples(
    distribution: Any, u: Any, n: Any, at: Any, columns: Any, parameters: Any, data: Any, spare: Any, x: Any
) -> None:
    """`block_of_samples` of distributions other than Bernoulli's, by pointers."""
    parameters, data, u, at, x = carray(parameters, _FAR), carray(data, _FAR), carray(u, n), carray(at, n), carray(x, n)
    if distribution == GAUSSIAN:
        block_of_quantiles(u, n, carray(spare, n), x)
        for i in range(n):
            x[i] = parameters[at[i]] + parameters[at[i] + np.uint64(1)] * x[i]
    elif distribution == TABULATED:
        for i in range(n):
            x[i] = from_table(u[i], parameters, np.int64(at[i]), columns - 1, 0, 1)
    else:
        for i in range(n):
            x[i] = from_uniform(distribution, u[i], parameters, np.int64(at[i]), columns, data, 0, 1)


@inlined
def _next_rows(t, times, o, at, items, low, high, table, excess, total, mean, variance, scores):
    """Pull an arm of a table, which has t pulls: its next rows, then its mean. Returns the mean of what they yield."""
    s, y, left = 0.0, low, times
    while left > 0 and t < items:
        y = table[at + t]
        scores[o * items + t] = y
        excess[o], mean[o], variance[o] = updated(float(t), low, high, excess[o], mean[o], variance[o], y)
        s, t, left = s + (y - low), t + 1, left - 1
    total[o] = excess[o] + low * t
    if t >= items:
        exact = table[at + items]
        variance[o] *= float(t) / float(t + left)
        y = exact if left > 0 else y
        s, t = s + left * (exact - low), t + left
        excess[o], total[o], mean[o] = (exact - low) * t, exact * t, exact
    return y if times == 1 else min(low + s / times, high)


def _pull_row(
    distribution: Any,
    k0: Any,
    k1: Any,
    episode: Any,
    arm: Any,
    n: Any,
    times: Any,
    o: Any,
    at: Any,
    columns: Any,
    parameters: Any,
    data: Any,
    excess: Any,
    total: Any,
    mean: Any,
    variance: Any,
    moments: Any,
    sample: Any,
    e: Any,
    D: Any,
    keeps: Any,
    scratch: Any,
    counter: Any,
    low: Any,
    high: Any,
) -> None:
    """One pull of an arm of several dimensions, or any number of a table; the arguments are those of `_pull_bulk`.

    Args:
        moments: of a table, the scores that pulls have shown.
    """
    parameters, data, sample = carray(parameters, _FAR), carray(data, _FAR), carray(sample, _FAR)
    excess, total = carray(excess, _FAR), carray(total, _FAR)
    mean, variance = carray(mean, _FAR), carray(variance, _FAR)
    if distribution == SHARED:
        scores = carray(moments, _FAR)
        known = excess, total, mean, variance, scores
        sample[e] = _next_rows(n, times, o, at, columns - 1, low, high, parameters, *known)
        return
    moments = carray(moments, keeps * _FAR)
    row, c1, before = distribution in (RESAMPLED, CATEGORICAL), arm_word(arm, n), float(n)
    w0 = w1 = w2 = w3 = np.uint64(0)
    for d in range(D):
        if d % 2 == 0 and not (row and d > 0):  # one uniform number picks all coordinates of a row
            w0, w1, w2, w3 = philox(np.uint64(n), c1, episode, np.uint64(d // 2) * NEXT_BLOCK, k0, k1)
        u = to_uniform(w0, w1) if d % 2 == 0 or row else to_uniform(w2, w3)
        y = from_uniform(distribution, u, parameters, at, columns, data, d, D)
        enter(before, low, high, y, o * D + d, excess, total, mean, variance, moments)
        sample[e * D + d] = y


@functools.cache
def _others() -> Any:
    """The routine of `_other_samples`."""
    pointers = "float64*", "float64*", "int64*", "float64*"
    return routine(_other_samples, "int64", "float64*", "int64", "uint64*", "int64", *pointers)


@functools.cache
def _pulls(function: Any) -> Any:
    """The routine of a function that takes what `_pull_bulk` takes."""
    return routine(function, *PULLED_BY)


def sampler_of(distribution: int, D: int) -> int:
    """The address of the routine that samples or pulls arms of a distribution; 0: scalar Bernoulli."""
    if D == 1 and distribution == BERNOULLI:
        return 0
    return int((_pulls(_pull_row) if D > 1 or distribution == SHARED else _others()).address)


@inlined
def block_of_samples(sim, u, n, at, x):
    """Fill x[:n] with the samples of scalar arms that the uniform numbers u[:n] yield, in loops over all of them.

    Args:
        at: (n,) uint64, where the parameters of each arm start; n <= 64.
    """
    rules, parameters, spare = sim.rules, sim.parameters, sim.work.places[2]
    if rules.distribution == BERNOULLI:
        for i in range(n):
            x[i] = 1.0 if u[i] < parameters[at[i]] else 0.0
    elif n > 0:  # of tables there are none, and the sampler is a routine of pulls
        call_routine(rules.sampler, rules.distribution, u, n, at, rules.columns, parameters, sim.data, spare, x)


@part
def _merge(o, n, times, s, m2, low, high, excess, total, mean, variance):
    """Add `times` samples to the n behind entry o (Chan et al.): s sums what exceeds low, m2 centred squares."""
    count = n + times
    gap = s / times - (mean[o] - low)
    spread = variance[o] * n + m2 + gap * gap * (n * (times / count))
    excess[o] += s
    total[o], mean[o] = excess[o] + low * count, min(low + excess[o] / count, high)
    variance[o] = max(spread, 0.0) / count


@part
def gather(n, block, d, more, y):
    """Add `more` samples, all y, to n samples, of whose coordinate d block (4, D) holds mean, variance and moments."""
    m, v = block[0, d], block[1, d]
    block[2, d], block[3, d] = higher(n, m, v, block[2, d], block[3, d], more, y, 0.0, 0.0, 0.0)
    gap, share = y - m, more / (n + more)
    block[0, d], block[1, d] = m + gap * share, (v + gap * gap * share) * (1.0 - share)


def _pull_bulk(
    distribution: Any,
    k0: Any,
    k1: Any,
    episode: Any,
    arm: Any,
    n: Any,
    times: Any,
    o: Any,
    at: Any,
    columns: Any,
    parameters: Any,
    data: Any,
    excess: Any,
    total: Any,
    mean: Any,
    variance: Any,
    moments: Any,
    sample: Any,
    e: Any,
    D: Any,
    keeps: Any,
    scratch: Any,
    counter: Any,
    low: Any,
    high: Any,
) -> None:
    """Add `times` samples of one arm at a cost that does not grow with `times`, exact in distribution.

    Bernoulli: binomial. Gaussian: normal sum, chi-square spread. Categorical and resampled: multinomial, one binomial
    per value (row). Uniform and tabulated arms have no closed form: their samples are drawn one by one, as are
    resampled rows while `times` is below their number; such a bulk pull is the sum of the single pulls.

    Args:
        parameters, ..., sample: pointers, as kernels hand on arrays to routines.
        keeps: whether `moments` are kept, not of Bernoulli and Gaussian arms.
        scratch: (7, D), and counter: (6,) uint64, to work in.
        low, high: the ends of the range of samples, 0 and inf where none is known.
    """
    parameters, data, sample = carray(parameters, _FAR), carray(data, _FAR), carray(sample, _FAR)
    excess, total = carray(excess, _FAR), carray(total, _FAR)
    mean, variance = carray(mean, _FAR), carray(variance, _FAR)
    scratch, counter, moments = carray(scratch, (7, D)), carray(counter, 6), carray(moments, _FAR)
    one_by_one = distribution in (UNIFORM, TABULATED) or (distribution == RESAMPLED and times < parameters[at + 1])
    s, m2, first = scratch[0], scratch[1], scratch[2]
    block = scratch[3:]  # where moments are kept: those of the samples so far, but for their number
    for d in range(D):
        s[d] = m2[d] = 0.0
        for row in range(4):
            block[row, d] = 0.0
    if one_by_one:
        row = distribution == RESAMPLED  # one uniform number picks all coordinates of a row
        w0 = w1 = w2 = w3 = np.uint64(0)
        for t in range(n, n + times):
            for d in range(D):
                if d % 2 == 0 and not (row and d > 0):
                    c1 = arm_word(arm, t)
                    c3 = np.uint64(d // 2) * NEXT_BLOCK
                    w0, w1, w2, w3 = philox(np.uint64(t) & _LOW, c1, episode, c3, k0, k1)
                u = to_uniform(w0, w1) if d % 2 == 0 or row else to_uniform(w2, w3)
                x = from_uniform(distribution, u, parameters, at, columns, data, d, D) - low
                if t == n:
                    first[d] = x
                if keeps:
                    gather(float(t - n), block, d, 1.0, x)
                s[d] += x
                m2[d] += (x - first[d]) * (x - first[d])
        for d in range(D):
            shift = s[d] - times * first[d]
            m2[d] -= shift * shift / times
    else:
        open_counter(counter, k0, k1, episode, arm, n)
        if distribution == BERNOULLI:
            for d in range(D):
                hits = float(binomial(counter, times, parameters[at + d]))
                s[d] = hits
                m2[d] = hits * (times - hits) / times
        elif distribution == GAUSSIAN:
            for d in range(D):
                mu, sd = parameters[at + d], parameters[at + D + d]
                s[d] = times * mu + sd * math.sqrt(times) * normal_quantile(next_uniform(counter))
                m2[d] = sd * sd * 2.0 * gamma(counter, 0.5 * (times - 1)) if times > 1 else 0.0
        else:
            values = columns if distribution == CATEGORICAL else np.int64(parameters[at + 1])
            left, mass, below = times, 1.0, 0.0
            made = 0.0  # samples so far; `first` is the mean of them, from the first value on
            for d in range(D):
                first[d] = 0.0
            origin = 0 if distribution == CATEGORICAL else np.int64(parameters[at])
            for v in range(values):
                if distribution == CATEGORICAL:
                    upper = parameters[at + v] if v < values - 1 else 1.0
                    p, below = upper - below, upper
                else:
                    p = 1.0 / values
                last = v == values - 1 or p >= mass
                hits = left if last else binomial(counter, left, p / mass)
                mass -= p
                left -= hits
                for d in range(D):
                    gap = data[(origin + v) * D + d] - data[origin * D + d]
                    s[d] += hits * gap
                    if keeps and hits > 0:
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
        if keeps:
            i = o * D + d
            m, v, t, f = block[0, d], block[1, d], block[2, d], block[3, d]
            third, fourth, before = moments[2 * i], moments[2 * i + 1], mean[i] - low
            third, fourth = higher(float(n), before, variance[i], third, fourth, float(times), m, v, t, f)
            moments[2 * i], moments[2 * i + 1] = third, fourth
        _merge(o * D + d, n, times, s[d], m2[d], low, high, excess, total, mean, variance)
        sample[e * D + d] = min(low + s[d] / times, high)


def bulk_pulls() -> int:
    """The address of the routine of `_pull_bulk`, which is compiled when arms are pulled in bulk for the first time."""
    return int(_pulls(_pull_bulk).address)
