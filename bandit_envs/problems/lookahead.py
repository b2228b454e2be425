"""The look-ahead potential: the score that is expected at the end if the rest of the pulls went to all arms equally.

docs/potential.md says what phi and the gains are, and of what they are exact. R = (T - t) / K is how many more pulls of
each arm are to come after t of T; phi(R) is the expected score after them, phi(0) that of the answer now.

symbols     r = R / (R + n), the share of the variance that R pulls resolve; d distance of a mean from its boundary, s
            its sd, z = d / s; G(z, r) the chance that an arm is classified right once the share r is resolved
            T(h, a) Owen's function (Owen 1956): G(z, r) = 1 - 2 T(z, sqrt((1 - r) / r)), normal approximation
LOCAL       (Threshold, Feasible) phi = mean of G over arms. Of several rows of A, Phi(z) is the product of their
            chances to hold. One more pull is a larger share, E G(z', R / (R + n + 1)) = G(z, (R + 1) / (R + 1 + n)),
            the expectation over a normal sample. Of Threshold under BETA, phi(0) is exact, the next sample one of two.
TOP_K       (TopK, BestArm) phi = expected mean of the k largest future means m'_i ~ N(m_i, r_i v_i), over the prior's
            expectation of the score's range (the k best less the k worst). With N(x) the number of m'_i > x and any c,
            sum of the k largest = k c + sum (m'_i - c)^+ - int_c^inf (N - k)^+ dx - int_-inf^c (k - N)^+ dx;
            E (k - N)^+ by the Poisson-binomial recursion on 16 Gauss-Legendre points on either side of c, the middle
            between the k-th mean and the next. One more pull is a larger share: two outcomes of a sample, with a normal
            distribution after each, make no normal one. At the end, R = 0, it is one of two outcomes.
ALL_GOOD    p_i = P(mean_i is good), phi = 1 - sum (1 - G(z_i, r_i)) / (2 sum p), Phi(z_i) = p_i; phi(0), the F1 of the
            best answer: max over j of 2 (sum of the j largest p) / (j + sum p). Mean x is good while all others are
            below h(x); p_i on 25 Gauss-Legendre points of Beta distributions with counts up to LIMIT, else on 25 cells
            of normal distributions. The next sample: two outcomes, or 16 Gauss-Hermite nodes.
CONTROL     (BetterThanControl) d_i = mean_i - a mean_c - b, c the control, s^2 = v_i + a^2 v_c, r the share of s^2 that
            is resolved, (r_i v_i + a^2 r_c v_c) / s^2; phi = mean of G over arms, 1 for the control, which is in no
            answer. One more pull is a larger share: of an arm in its own term, of the control in all.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.belief import ARMS, BETA, EXACT, NORMAL, Prior, beta_below, place_and_worth, posterior, prior_of, sampled
from ..kernels.compiled import inlined, lean, part
from ..kernels.rng import normal_quantile
from ..kernels.structs import fleeting

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LOCAL, TOP_K, ALL_GOOD, CONTROL = 0, 1, 2, 3
# Observations that show what is believed: how many numbers of each arm, how many after them, and their largest value.
WIDEST = 10.0
TIED = 1e-9  # standard deviations that equal means are apart by, at most, as rounding has it
BELIEFS = {"relative": (6, 4, WIDEST)}
POINTS, CELLS, NODES = 16, 25, 16  # on either side of c; of p; of a sample
LIMIT = 103  # the largest count of a Beta distribution that is kept in a table
FAR = 6.5  # standard deviations beyond which a normal distribution has nothing
FINE, STEPS, COLUMNS = 64, 32, 38  # the tables of Phi and of T: steps in 1
NEAR = 0.1  # of an arm on the boundary of CONTROL, times a sample, so that its chance to be wrong is bounded
REACH = 4.0  # standard deviations that are looked at
ROOT_2PI = math.sqrt(2.0 * math.pi)


class Potential(NamedTuple):
    """Which potential a problem has, and its numbers: see the head of this file."""

    kind: int  # LOCAL, TOP_K, ALL_GOOD or CONTROL
    A: Floats = np.zeros((0, 0))  # (M, D), of LOCAL: the arms wanted have A x <= b; of CONTROL a, (1, 1)
    b: Floats = np.zeros(0)  # (M,)
    tolerance: float = 0.0  # arms nearer to the boundary than this may be answered either way
    exact: bool = False  # whether phi(0) is that of Beta distributions (M = D = 1)
    k: int = 1  # of TOP_K, arms in the answer
    epsilon: float = 0.0  # of ALL_GOOD, and whether it is; of CONTROL whether a is not 1
    multiplicative: bool = False
    control: int = -1  # of CONTROL, the arm


class LookaheadModel(NamedTuple):
    """A potential, a prior and the tables, as kernels take them."""

    potential: Potential
    prior: Prior
    horizon: float  # T
    scale: float  # of TOP_K, what the mean of the k largest is divided by
    normal: Floats  # (_, 4), Phi as cubics, one for each step
    owen: Floats  # (_, COLUMNS + 1), T
    legendre: Floats  # (4, POINTS), points u and weights on [0, 1]; u^2 and 2 u times the weights, dense at 0
    hermite: Floats  # (2, NODES)
    beta: Floats  # (LIMIT + 1, LIMIT + 1, 2 CELLS + 1), rows of ALL_GOOD for Beta(a, b); NaN: not yet made
    points: Floats  # (3, CELLS), of [0, 1]: points, weights, h(points)
    places: Floats  # (D,), of ARMS, and whether they are known; else they come from the arms
    known: bool
    shifted: bool  # whether means count from the place of ARMS on
    # Whether beliefs are for observation="relative": d is that of the row of A that is least likely to hold, or of
    # TOP_K the gap to the nearest arm on the other side of the answer.
    relative: bool
    pooled: bool  # whether the mean of BETA is that of all arms together


@fleeting
class LookaheadScratch(NamedTuple):
    """Scratch for one episode."""

    m: Floats  # (K * D,), and v
    v: Floats
    n: Floats  # (K,)
    state: Floats  # (8,): TOP_K: c, width above, width below; ALL_GOOD: whether Beta(a, b) are in the table, L, U
    trial: Floats  # (2, 1): m and v of the arm that is tried, of Threshold
    span: Floats  # (2, K), TOP_K: lowest and highest future mean of each arm
    best: Floats  # (K + 1,)
    layers: Floats  # (k, 2 POINTS): P(N = j); q, EN, x: (2 POINTS,)
    points: Floats  # (3, 2 POINTS)
    chances: Floats  # (K, 2 POINTS): q of each arm
    prefix: Floats  # (K, k, 2 POINTS): P(j of the arms before this one are above)
    rows: Floats  # (K + 1, 2 CELLS + 1), ALL_GOOD: each arm's distribution and chances; last, the trial's
    before: Floats  # (K + 1, CELLS), products of chances
    p: Floats  # (K,)
    place: Floats  # (D,)
    gains: Floats  # (K,): see `relative_gains`


# --- the normal distribution ------------------------------------------------------------------------------------------


@inlined
def _below(normal, u):
    """Phi(u), by cubic interpolation: error 2e-10."""
    x = (max(u, -FAR) + FAR if u < FAR else 2.0 * FAR) * FINE  # also of NaN, which is no index
    i = np.uint64(np.int64(x))  # indices that may be negative take longer
    f = x - np.int64(x)
    return normal[i, 0] + f * (normal[i, 1] + f * (normal[i, 2] + f * normal[i, 3]))


@inlined
def _part_above(normal, d, s):
    """E (X)^+ of X ~ N(d, s^2)."""
    if s <= 0.0:
        return max(d, 0.0)
    u = d / s
    return d * _below(normal, u) + s * math.exp(-0.5 * u * u) / ROOT_2PI


@inlined
def _owen(owen, h, a):
    """T(h, a) for h >= 0 and a in [0, 1], by linear interpolation: error 2e-5."""
    u, v, one = min(h * STEPS, 160.0), a * COLUMNS, np.uint64(1)
    i, j = np.uint64(min(np.int64(u), np.int64(159))), np.uint64(min(np.int64(v), np.int64(COLUMNS - 1)))
    u, v = u - np.int64(i), v - np.int64(j)
    low = (1.0 - v) * owen[i, j] + v * owen[i, j + one]
    high = (1.0 - v) * owen[i + one, j] + v * owen[i + one, j + one]
    return (1.0 - u) * low + u * high


@inlined
def _resolved(model, z, r):
    """G(z, r)."""
    z = abs(z)
    if r <= 0.0:
        return _below(model.normal, z)
    if r >= 0.5:
        return 1.0 - 2.0 * _owen(model.owen, z, math.sqrt((1.0 - r) / r))
    a = math.sqrt(r / (1.0 - r))  # T(h, a) + T(h a, 1 / a) has a closed form
    P, Q = _below(model.normal, z), _below(model.normal, z / a)
    return 1.0 - P - Q + 2.0 * P * Q + 2.0 * _owen(model.owen, z / a, a)


@part
def _tolerated(model, z, r, t):
    """The same where arms within t sds of the boundary may be classified either way; Plackett's integral (1954)."""
    z, normal = abs(z), model.normal
    if r <= 0.0:
        return _below(normal, z + t)
    rho, h, right = math.sqrt(r), -z / math.sqrt(r), 1.0 - _below(normal, -(z + t))
    alpha = math.asin(rho)
    right -= _below(normal, h)
    for k in (-(z + t), t - z):
        right += _below(normal, h) * _below(normal, k)
        for i in range(POINTS):
            theta = alpha * model.legendre[0, i]
            sin, cos = math.sin(theta), math.cos(theta)
            inside = math.exp(-0.5 * (h * h + k * k - 2.0 * h * k * sin) / (cos * cos))
            right += alpha * model.legendre[1, i] * inside / (2.0 * math.pi)
    return right


@part
def largest(x, n, count, without, out):
    """Fill out[:count] with the largest of x[:n], in falling order, without x[without] (-1: of all)."""
    found = 0
    for i in range(n):
        if i != without and (found < count or x[i] > out[count - 1]):
            j = min(found, count - 1)
            while j > 0 and out[j - 1] < x[i]:
                out[j] = out[j - 1]
                j -= 1
            out[j] = x[i]
            found = min(found + 1, count)


# --- LOCAL ------------------------------------------------------------------------------------------------------------


@part
def _row(model, m, v, at):
    """Distance and sd of the boundary, > 0 inside, of the row that is least likely to hold, and the others' chance.

    Of several rows d is z times that sd, and Phi(z) the product of the chances of all, but not of relative beliefs. The
    arm's m and v begin at `at`.
    """
    potential, d, s, least, chance, others = model.potential, 0.0, 1.0, math.inf, 1.0, 1.0
    M, D = potential.A.shape
    for j in range(M):
        slack, square = potential.b[j], 0.0
        for i in range(D):
            a = potential.A[j, i]
            slack -= a * m[at + i]
            square += a * a * v[at + i]
        sd = math.sqrt(square)
        chance *= _below(model.normal, slack / sd)
        if slack / sd < least:
            others *= _below(model.normal, least)
            d, s, least = slack, sd, slack / sd
        else:
            others *= _below(model.normal, slack / sd)
    if M > 1 and not model.relative:
        d = s * normal_quantile(max(min(chance, 1.0 - 1e-9), 1e-9))
    return d, s, others


@inlined
def _sure(model, d, s, r):
    t = model.potential.tolerance
    return _resolved(model, d / s, r) if t == 0.0 else _tolerated(model, d / s, r, t / s)


@part
def _beta_sure(model, m, n):
    """The chance that the answer now is right about an arm with a Beta distribution, in one dimension."""
    prior, potential = model.prior, model.potential
    share = (m - prior.low) / prior.scale
    a, b, t = share * n, (1.0 - share) * n, potential.tolerance / prior.scale
    theta = (potential.b[0] / potential.A[0, 0] - prior.low) / prior.scale
    return max(1.0 - beta_below(theta - t, a, b), beta_below(theta + t, a, b))


@inlined
def _arm_value(model, m, v, at, n, R):
    """The chance that an arm is classified right after R more pulls."""
    if R <= 0.0 and model.potential.exact and model.prior.kind == BETA and n <= EXACT:
        return _beta_sure(model, m[at], n)
    d, s, _ = _row(model, m, v, at)
    return _sure(model, d, s, R / (R + n))


@part
def _arm_after(model, scratch, i, R):
    """Its expectation over the next sample of arm i."""
    D, n = model.potential.A.shape[1], scratch.n[i]
    if model.prior.kind != BETA or not model.potential.exact:
        d, s, _ = _row(model, scratch.m, scratch.v, i * D)
        return _sure(model, d, s, (R + 1.0) / (R + 1.0 + n))
    found = 0.0
    for outcome in range(2):
        now, spread, chance = sampled(model.prior, scratch.m[i], scratch.v[i], n, float(outcome), 0.0)
        scratch.trial[0, 0], scratch.trial[1, 0] = now, spread
        found += chance * _arm_value(model, scratch.trial[0], scratch.trial[1], 0, n + 1.0, R)
    return found


# --- CONTROL ----------------------------------------------------------------------------------------------------------


@inlined
def _difference(model, scratch, i):
    """d of an arm, its sd, and the parts of its variance that are the arm's and the control's."""
    c, a = model.potential.control, model.potential.A[0, 0]
    own, other = scratch.v[i], a * a * scratch.v[c]
    return scratch.m[i] - a * scratch.m[c] - model.potential.b[0], math.sqrt(own + other), own, other


@part
def _beside(model, scratch, i, R, arm):
    """The chance that an arm is classified right after R more pulls of all, and one of `arm` (-1: of none)."""
    c, n, m = model.potential.control, scratch.n[i], scratch.n[model.potential.control]
    if i == c:
        return 1.0
    d, s, own, other = _difference(model, scratch, i)
    here, there = R + (1.0 if i == arm else 0.0), R + (1.0 if c == arm else 0.0)
    resolved = own * here / (here + n) + other * there / (there + m)
    return _sure(model, d, s, resolved / (own + other))


# --- TOP_K ------------------------------------------------------------------------------------------------------------


@part
def _middle(scratch, k):
    """The middle between the k-th largest mean and the next."""
    largest(scratch.m, len(scratch.m), k + 1, -1, scratch.best)
    return 0.5 * (scratch.best[k - 1] + scratch.best[k])


@part
def _look_around(model, scratch, R):
    """Set c, and how far from it future means can matter, if R pulls are to come, one of them at once."""
    K, k = len(scratch.n), model.potential.k
    for i in range(K):
        s = REACH * math.sqrt(scratch.v[i] * (R + 1.0) / (R + 1.0 + scratch.n[i]))
        scratch.span[0, i], scratch.span[1, i] = scratch.m[i] - s, scratch.m[i] + s
    scratch.state[0] = c = _middle(scratch, k)
    largest(scratch.span[1], K, k + 1, -1, scratch.best)
    scratch.state[1] = max(scratch.best[k] - c, 0.0)
    largest(scratch.span[0], K, k, -1, scratch.best)
    scratch.state[2] = max(c - scratch.best[k - 1], 0.0)


@part
def _exceeds(model, scratch, i, pulls, q):
    """E (m'_i - c)^+ after so many pulls; fill q (2 POINTS,) with P(m'_i > x)."""
    x, normal, m, n = scratch.points[0], model.normal, scratch.m[i], scratch.n[i]
    s = math.sqrt(scratch.v[i] * pulls / (pulls + n))
    inverse = 1.0 / max(s, 1e-300)
    for g in range(2 * POINTS):
        q[g] = _below(normal, (m - x[g]) * inverse)
    return _part_above(normal, m - scratch.state[0], s)


@inlined
def _set_points(model, scratch):
    """Set the points x, and layers of no arm; how many places of the answer are open to arms on either side of them."""
    c, above, below = scratch.state[0], scratch.state[1], scratch.state[2]
    for g in range(POINTS):
        scratch.points[0, g] = c + above * model.legendre[2, g]
        scratch.points[0, POINTS + g] = c - below * model.legendre[2, g]
    rest = model.potential.k
    for i in range(len(scratch.n)):
        rest -= scratch.span[0, i] >= c + above
    for j in range(rest):
        scratch.layers[j] = 1.0 if j == 0 else 0.0
    return rest


@inlined
def _one_more(layers, q, rest):
    """Take one more arm, which is above with the chances q, into the distribution of how many are."""
    for j in range(rest - 1, 0, -1):
        for g in range(2 * POINTS):
            layers[j, g] += q[g] * (layers[j - 1, g] - layers[j, g])
    if rest > 0:
        for g in range(2 * POINTS):
            layers[0, g] -= q[g] * layers[0, g]
    return 0


@part
def _top(model, scratch, R, arm):
    """phi(R), the arm (unless it is -1) being pulled once before."""
    K, k = len(scratch.n), model.potential.k
    c, above, below = scratch.state[0], scratch.state[1], scratch.state[2]
    q, many, layers, points = scratch.points[1], scratch.points[2], scratch.layers, 2 * POINTS
    rest, total = _set_points(model, scratch), k * c
    many[:] = 0.0
    for i in range(K):
        if scratch.span[0, i] >= c + above:
            total += scratch.m[i] - c
            continue
        if scratch.span[1, i] <= c - below:
            continue
        total += _exceeds(model, scratch, i, R + 1.0 if i == arm else R, q)
        for g in range(points):
            many[g] += q[g]
        _one_more(layers, q, rest)
    for g in range(points):
        short = 0.0  # E (k - N)^+
        for j in range(rest):
            short += (rest - j) * layers[j, g]
        if g < POINTS:
            total -= above * model.legendre[3, g] * (many[g] - rest + short)
        else:
            total -= below * model.legendre[3, g - POINTS] * short
    return total / (k * model.scale)


@part
def _top_gains(model, scratch, R, out):
    """phi(R) after one more pull of each arm, as a larger share, less phi(R), in O(K k).

    phi is linear in q_i, and depends on it by the chance that fewer than k others are above.
    """
    K, k, layers, points = len(scratch.n), model.potential.k, scratch.layers, 2 * POINTS
    c, above, below = scratch.state[0], scratch.state[1], scratch.state[2]
    q, fewer = scratch.points[1], scratch.points[2]
    if R <= 0.0:
        for i in range(K):
            largest(scratch.m, K, k, i, scratch.best)
            d, s = scratch.m[i] - scratch.best[k - 1], math.sqrt(scratch.v[i] / (scratch.n[i] + 1.0))
            out[i] = (_part_above(model.normal, d, s) - max(d, 0.0)) / (k * model.scale)
        return
    rest = _set_points(model, scratch)
    for i in range(K):
        out[i] = 0.0
        if scratch.span[0, i] >= c + above or scratch.span[1, i] <= c - below:
            continue
        chance = scratch.chances[i]
        out[i] = -_exceeds(model, scratch, i, R, chance)
        for j in range(rest):
            for g in range(points):
                scratch.prefix[i, j, g] = layers[j, g]
        _one_more(layers, chance, rest)
    layers[:rest] = 1.0  # now P(j or fewer of the arms after this one are above)
    for i in range(K - 1, -1, -1):
        if scratch.span[0, i] >= c + above or scratch.span[1, i] <= c - below:
            continue
        chance = scratch.chances[i]
        out[i] += _exceeds(model, scratch, i, R + 1.0, q)
        fewer[:] = 0.0
        for j in range(rest):
            for g in range(points):
                fewer[g] += scratch.prefix[i, j, g] * layers[rest - 1 - j, g]
        for g in range(POINTS):
            h, weight = POINTS + g, model.legendre[3, g]
            out[i] -= above * weight * (q[g] - chance[g]) * (1.0 - fewer[g])
            out[i] += below * weight * (q[h] - chance[h]) * fewer[h]
        _one_more(layers, chance, rest)
        out[i] /= k * model.scale


@part
def _top_now(model, scratch, arm):
    """phi(0), the arm (unless it is -1) being pulled once before: sharp future means need no points."""
    K, k, prior = len(scratch.n), model.potential.k, model.prior
    largest(scratch.m, K, k, arm, scratch.best)
    total = 0.0
    for j in range(k):
        total += scratch.best[j]
    if arm >= 0:
        last, m, v, n = scratch.best[k - 1], scratch.m[arm], scratch.v[arm], scratch.n[arm]
        if prior.kind != BETA:
            total += _part_above(model.normal, m - last, math.sqrt(v / (n + 1.0)))
        else:
            for outcome in range(2):
                now, _, chance = sampled(prior, m, v, n, float(outcome), 0.0)
                total += chance * max(now - last, 0.0)
    return total / (k * model.scale)


# --- ALL_GOOD ---------------------------------------------------------------------------------------------------------


@inlined
def _boundary_of(potential, x):
    """Means at or above this are good where the best one is x."""
    if potential.multiplicative:
        return min((1.0 - potential.epsilon) * x, x)
    return x - potential.epsilon


@inlined
def _highest(potential, x):
    """h(x): a mean x is good while no other one is above this."""
    if potential.multiplicative:
        return max(x / (1.0 - potential.epsilon), x)
    return x + potential.epsilon


@part
def _beta_row(model, a, b):
    """Make the row of the table for Beta(a, b): weights at the points, chances of h(points), mass above all."""
    out = model.beta[a, b]
    ends = model.prior.low + model.prior.scale
    top = (_boundary_of(model.potential, ends) - model.prior.low) / model.prior.scale
    front = math.lgamma(float(a + b)) - math.lgamma(float(a)) - math.lgamma(float(b))
    for g in range(CELLS):
        x = model.points[0, g]
        out[CELLS + g] = beta_below(model.points[2, g], float(a), float(b))
        density = front + (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) if 0.0 < x < 1.0 else -math.inf
        out[g] = model.points[1, g] * math.exp(density)
    out[2 * CELLS] = 1.0 - beta_below(top, float(a), float(b))


@part
def _distribution(model, scratch, m, v, n, out):
    """Fill out (2 CELLS + 1,): the distribution of a mean, its chances to be below h, and its mass above all cells."""
    if scratch.state[0] != 0.0:
        a = np.int64((m - model.prior.low) / model.prior.scale * n + 0.5)
        b = np.int64(n + 0.5) - a
        if math.isnan(model.beta[a, b, 2 * CELLS]):  # written last, for threads that share the table
            _beta_row(model, a, b)
        for g in range(2 * CELLS + 1):
            out[g] = model.beta[a, b, g]
        return
    low, step = scratch.state[1], (scratch.state[2] - scratch.state[1]) / CELLS
    inverse, potential = 1.0 / math.sqrt(v), model.potential
    before = _below(model.normal, (low - m) * inverse)
    for g in range(CELLS):
        now = _below(model.normal, (low + step * (g + 1) - m) * inverse)
        out[g] = now - before
        out[CELLS + g] = _below(model.normal, (_highest(potential, low + step * (g + 0.5)) - m) * inverse)
        before = now
    out[2 * CELLS] = 1.0 - before


@part
def _open_distributions(model, scratch):
    """Choose between Beta distributions and normal ones, and set the distributions of all arms."""
    K, prior = len(scratch.n), model.prior
    known, lowest, highest = prior.kind == BETA, -math.inf, -math.inf
    for i in range(K):
        n, s = scratch.n[i], REACH * math.sqrt(scratch.v[i])
        if known:
            a = (scratch.m[i] - prior.low) / prior.scale * n
            known = abs(a - np.rint(a)) < 1e-6 and min(a, n - a) > 0.5 and max(a, n - a) < LIMIT - 0.5
        lowest, highest = max(lowest, scratch.m[i] - s), max(highest, scratch.m[i] + s)
    scratch.state[0] = 1.0 if known else 0.0
    scratch.state[1], scratch.state[2] = _boundary_of(model.potential, lowest), _boundary_of(model.potential, highest)
    for i in range(K):
        _distribution(model, scratch, scratch.m[i], scratch.v[i], scratch.n[i], scratch.rows[i])


@part
def _good(model, scratch, R, arm):
    """phi(R) by the distributions of the arms; that of the trial in place of an arm's own (-1: of none)."""
    K, before, p = len(scratch.n), scratch.before, scratch.p
    before[0] = before[K] = 1.0
    for i in range(K - 1):
        row = scratch.rows[K if i == arm else i]
        for g in range(CELLS):
            before[i + 1, g] = before[i, g] * row[CELLS + g]
    after, expected = before[K], 0.0
    for i in range(K - 1, -1, -1):
        row = scratch.rows[K if i == arm else i]
        chance = row[2 * CELLS]
        for g in range(CELLS):
            chance += row[g] * before[i, g] * after[g]
            after[g] *= row[CELLS + g]
        p[i] = min(chance, 1.0)
        expected += p[i]
    if R <= 0.0:
        largest(p, K, K, -1, scratch.best)
        best, hits = 0.0, 0.0
        for j in range(K):
            hits += scratch.best[j]
            best = max(best, 2.0 * hits / (j + 1.0 + expected))
        return best
    wrong = 0.0
    for i in range(K):
        n = scratch.n[i] + (1.0 if i == arm else 0.0)
        z = normal_quantile(max(min(p[i], 1.0 - 1e-8), 1e-8))
        wrong += 1.0 - _resolved(model, z, R / (R + n))
    return 1.0 - wrong / (2.0 * expected)


@part
def _good_after(model, scratch, R, arm, few):
    """E phi(R) over the next sample of an arm; `few`: of normal samples, over two nodes, a standard deviation off."""
    prior, K, found = model.prior, len(scratch.n), 0.0
    m, v, n = scratch.m[arm], scratch.v[arm], scratch.n[arm]
    for i in range(2 if few or prior.kind == BETA else NODES):
        now, spread, chance = sampled(prior, m, v, n, float(i), 2.0 * i - 1.0 if few else model.hermite[0, i])
        if prior.kind != BETA:
            chance = 0.5 if few else model.hermite[1, i]
        _distribution(model, scratch, now, spread, n + 1.0, scratch.rows[K])
        found += chance * _good(model, scratch, R, arm)
    return found


# --- one episode, and many --------------------------------------------------------------------------------------------


@inlined
def _together(prior, pulls, total):
    """The mean of BETA, as a share of the range, that all arms show, and its worth: the smaller count is 1.

    Where rates are small, as those of conversions are, a uniform prior has an arm never pulled better than all others.
    """
    place = 0.0
    for i in range(len(pulls)):
        place += (posterior(prior, float(pulls[i]), total[i])[0] - prior.low) / prior.scale / len(pulls)
    return place, 1.0 / min(place, 1.0 - place)


@part
def _read(model, scratch, pulls, total):
    """Set what is believed of the arms; returns the number of pulls."""
    K, spent, prior, middle, worth = len(pulls), 0, model.prior, 0.5, 2.0
    D = len(scratch.m) // K
    if model.pooled:
        middle, worth = _together(prior, pulls, total)
    if prior.kind == ARMS:
        worth = place_and_worth(prior.scale, model.places, model.known, pulls, total, scratch.place)
    for i in range(K):
        made = float(pulls[i])
        spent += pulls[i]
        for j in range(D):
            at = i * D + j
            if prior.kind == ARMS:
                place, n = scratch.place[j], made + worth
                beyond = (total[at] / made - place) * made / n if made > 0.0 else 0.0
                scratch.m[at] = beyond if model.shifted else place + beyond
                scratch.v[at], scratch.n[i] = prior.scale * prior.scale / n, n
            else:
                scratch.m[at], scratch.v[at], scratch.n[i] = posterior(prior, made, total[at], middle, worth)
    return spent


@part
def _expected(model, scratch, R, arm):
    """phi(R) of the state that was read, which comes first; of an arm that is not -1, E phi(R) over its next sample."""
    kind, K = model.potential.kind, len(scratch.n)
    if kind in (LOCAL, CONTROL):
        D, found = model.potential.A.shape[1], _arm_after(model, scratch, arm, R) if kind == LOCAL and arm >= 0 else 0.0
        for i in range(K):
            if kind == CONTROL:
                found += _beside(model, scratch, i, R, arm)
            elif i != arm:
                found += _arm_value(model, scratch.m, scratch.v, i * D, scratch.n[i], R)
        return found / K
    if kind == TOP_K:
        if R <= 0.0:
            return _top_now(model, scratch, arm)
        if arm < 0:
            _look_around(model, scratch, R)
        return _top(model, scratch, R, arm)
    if arm >= 0:
        return _good_after(model, scratch, R, arm, False)
    _open_distributions(model, scratch)
    return _good(model, scratch, R, -1)


@lean
def _potentials(model, scratch, pulls, total, left, out):
    """Fill out (E,) with phi(R), for R = left[e] more pulls of each arm."""
    for e in range(len(out)):
        _read(model, scratch, pulls[e], total[e])
        out[e] = _expected(model, scratch, left[e], -1)
        if model.shifted and model.potential.kind == TOP_K:
            out[e] += scratch.place[0] / model.scale


@lean
def _gains(model, scratch, pulls, total, arms, skipped, out):
    """Fill out (E,) with the gains of arms (E,); K stops: phi(0) less phi. Those of episodes that are skipped are 0."""
    K = pulls.shape[1]
    for e in range(len(out)):
        out[e] = 0.0
        if skipped[e] == 0 and 0 <= arms[e] <= K:
            left = model.horizon - _read(model, scratch, pulls[e], total[e])
            phi = _expected(model, scratch, max(left, 0.0) / K, -1)
            if arms[e] == K:
                out[e] = _expected(model, scratch, 0.0, -1) - phi
            else:
                out[e] = _expected(model, scratch, max(left - 1.0, 0.0) / K, arms[e]) - phi


@part
def relative_gains(model, scratch, pulls, total):
    """Fill scratch.gains (K,) with the gains of all arms of one episode, less what is common to them, for greedy rules.

    That is E phi(R) after one more pull of an arm, less phi(R), for the R that is left after it. Of all kinds but
    ALL_GOOD a pull is a larger share throughout, of Threshold and at R = 0 too. Of ALL_GOOD a normal sample has two
    nodes: 16 take eight times as long.
    """
    K, out = len(pulls), scratch.gains
    left = max(model.horizon - _read(model, scratch, pulls, total), 0.0)
    R = max(left - 1.0, 0.0) / K
    if model.potential.kind == LOCAL:
        for i in range(K):
            d, s, _ = _row(model, scratch.m, scratch.v, i * model.potential.A.shape[1])
            n = scratch.n[i]
            out[i] = _sure(model, d, s, (R + 1.0) / (R + 1.0 + n)) - _sure(model, d, s, R / (R + n))
    elif model.potential.kind == CONTROL:
        c = model.potential.control
        out[c] = 0.0
        for i in range(K):
            if i != c:
                now = _beside(model, scratch, i, R, -1)
                out[i] = _beside(model, scratch, i, R, i) - now
                out[c] += _beside(model, scratch, i, R, c) - now
    elif model.potential.kind == TOP_K:
        _look_around(model, scratch, left / K)
        _top_gains(model, scratch, R, out)
    else:
        _open_distributions(model, scratch)
        now = _good(model, scratch, R, -1)
        for i in range(K):
            out[i] = _good_after(model, scratch, R, i, True) - now


@lean
def _beliefs(model, scratch, pulls, total, out):
    """Fill out (E, K, 4 or more) with d, its sd, the sd of the mean, and n.

    For observation="relative" also with the arm that d is measured from: itself where that is known, -1 for the best;
    and with the chance that other rows hold.
    """
    potential, K = model.potential, pulls.shape[1]
    for e in range(len(out)):
        _read(model, scratch, pulls[e], total[e])
        edge, spread, star, others = 0.0, 0.0, 0, 1.0
        if potential.kind == TOP_K:
            edge = _middle(scratch, potential.k)
        elif potential.kind == ALL_GOOD:
            for i in range(K):
                star = i if scratch.m[i] > scratch.m[star] else star
            edge = _boundary_of(potential, scratch.m[star])
            spread = scratch.v[star] * ((1.0 - potential.epsilon) ** 2 if potential.multiplicative else 1.0)
        for i in range(K):
            if potential.kind == LOCAL:
                d, s, others = _row(model, scratch.m, scratch.v, i * potential.A.shape[1])
                own = s
            elif potential.kind == CONTROL:
                star = potential.control
                d, s, own, spread = _difference(model, scratch, i)
                own = math.sqrt(own)
                if i == star:
                    d, s, own = 0.0, math.sqrt(spread), -math.sqrt(spread)
            else:
                d, own = scratch.m[i] - edge, math.sqrt(scratch.v[i])
                s = own if potential.kind == TOP_K or i == star else math.sqrt(scratch.v[i] + spread)
            out[e, i, 0], out[e, i, 1], out[e, i, 2], out[e, i, 3] = d, s, own, scratch.n[i]
            if model.relative:
                out[e, i, 4] = i if potential.kind == LOCAL else (-1 if i == star else star)
                out[e, i, 8] = others
        if model.relative and potential.kind == TOP_K:
            _to_the_other_side(scratch, potential.k, out[e])


@part
def _to_the_other_side(scratch, k, out):
    """Measure d from the k-th largest mean, or, of the k arms with the largest, from the next; after `_middle`."""
    inside, outside, last, following = scratch.best[k - 1], scratch.best[k], -1, -1
    for i in range(len(out)):  # of equal ones, the one that is known least
        m, sd = scratch.m[i], out[i, 1]
        if abs(m - inside) <= TIED * sd and (last < 0 or sd > (1.0 + TIED) * out[last, 1]):
            last = i
        if abs(m - outside) <= TIED * sd and (following < 0 or sd > (1.0 + TIED) * out[following, 1]):
            following = i
    for i in range(len(out)):
        other = following if out[i, 0] > TIED * out[i, 2] else last
        d, s = scratch.m[i] - scratch.m[other], math.sqrt(scratch.v[i] + scratch.v[other])
        out[i, 0], out[i, 1], out[i, 4] = d if abs(d) > TIED * s else 0.0, s, other


@inlined
def _within(x):
    return max(min(x, WIDEST), -WIDEST)


@inlined
def _softened(x):
    """x itself near 0, and its root far from it: from -100 to 100 it is within the bounds."""
    return _within(x / math.sqrt(1.0 + abs(x)))


@inlined
def _share_out(beliefs, j):
    """Give arm j, and those that are believed the same, equal parts of what others measure from it."""
    alike = 0.0
    for i in range(len(beliefs)):
        alike += _is_alike(beliefs[i], beliefs[j])
    for i in range(len(beliefs)):
        if _is_alike(beliefs[i], beliefs[j]):
            beliefs[i, 7] += beliefs[j, 9] / alike


@inlined
def _is_alike(one, other):
    """Whether the same is believed of two arms, but for rounding."""
    tied = TIED * abs(other[2])
    return abs(one[0] - other[0]) <= tied and abs(one[2] - other[2]) <= tied and one[3] == other[3]


@lean
def _show_relative(beliefs, horizon, against, order, share, out):
    """Fill out (E, 6 K + 4) with what docs/potential.md says of beliefs (E, K, 10); against: those with a control."""
    K = order.shape[1]
    for e in range(len(out)):
        left, square, best = horizon * (1.0 - share[e]), 0.0, -math.inf
        R = max(left - 1.0, 0.0) / K + 0.5  # pulls of each arm to come, in the middle of the next pull
        for i in range(K):
            d, s, own, n = beliefs[e, i, 0], beliefs[e, i, 1], beliefs[e, i, 2], beliefs[e, i, 3]
            other = beliefs[e, i, 4]
            square += d * d + s * s
            # Of the variance of d, the share that is resolved, and what stays; each pull of the arm resolves more.
            now, m = own * own / (s * s), beliefs[e, np.int64(max(other, 0.0)), 3]
            resolved = now * R / (R + n) + (1.0 - now) * R / (R + m)
            stays = now * n / (R + n) + (1.0 - now) * m / (R + m)
            chance = -0.5 * d * d / (s * s * resolved) - math.log(s * s * math.sqrt(resolved * stays))
            slope = own * own * n / ((R + n) * (R + n))
            if against:
                w = 0.5 * d * d / (s * s)
                chance, slope = -w - 0.5 * math.log(w + NEAR / n + NEAR / m) - math.log(s * s), own * own / n
            beliefs[e, i, 5], beliefs[e, i, 6], beliefs[e, i, 7] = chance, slope, 0.0
            beliefs[e, i, 9] = 0.0
            best = max(best, chance) if other >= 0.0 else best
        for i in range(K):
            j = np.int64(beliefs[e, i, 4])
            if j >= 0:
                chance = math.exp(beliefs[e, i, 5] - best)
                beliefs[e, i, 7] += chance
                if beliefs[e, j, 4] != i and j != i:
                    beliefs[e, j, 9] += chance
        for j in range(K):
            if beliefs[e, j, 9] > 0.0:
                _share_out(beliefs[e], j)
        best, inverse, usual = 0.0, math.sqrt(K / square), math.log(horizon / K)
        for i in range(K):
            beliefs[e, i, 6] *= beliefs[e, i, 7]
            best = max(best, beliefs[e, i, 6])
        for j in range(K):
            i = order[e, j]
            d, s, own, n = beliefs[e, i, 0], beliefs[e, i, 1], beliefs[e, i, 2], beliefs[e, i, 3]
            out[e, 6 * j] = _softened(d / s)
            out[e, 6 * j + 1] = _softened(math.log(max(beliefs[e, i, 6] / best, 1e-300)))
            out[e, 6 * j + 2] = _within(0.5 * (math.log(n) - usual))
            out[e, 6 * j + 3] = _within(d * inverse)
            out[e, 6 * j + 4] = _within(s * inverse)
            out[e, 6 * j + 5] = own / s * beliefs[e, i, 8]
        out[e, 6 * K] = 2.0 * left / horizon - 1.0
        out[e, 6 * K + 1] = _within(0.5 * math.log1p(left / K) - 1.0)
        out[e, 6 * K + 2] = _within(0.5 * usual - 1.0)
        out[e, 6 * K + 3] = _within(0.5 * math.log(0.1 * K))


# --- in Python --------------------------------------------------------------------------------------------------------


@functools.cache
def _tables() -> tuple[Floats, Floats]:
    """Phi as cubics with its values and slopes, and Owen's T."""
    x = np.arange(-FAR * FINE, FAR * FINE + 2) / FINE
    below = np.array([0.5 * math.erfc(-u / math.sqrt(2.0)) for u in x])
    h, (points, weights) = np.arange(5 * STEPS + 1) / STEPS, np.polynomial.legendre.leggauss(24)
    a = (np.arange(COLUMNS + 1) / COLUMNS)[:, None] * (points + 1) / 2  # (COLUMNS + 1, 24)
    inside = np.exp(-0.5 * h[:, None, None] ** 2 * (1 + a * a)) / (1 + a * a)
    owen = (inside * weights).sum(-1) * np.arange(COLUMNS + 1) / COLUMNS / (4 * math.pi)
    slope, rise = np.exp(-0.5 * x * x) / ROOT_2PI / FINE, np.diff(below)
    up, down = slope[:-1], slope[1:]
    return np.stack([below[:-1], up, 3 * rise - 2 * up - down, up + down - 2 * rise], axis=-1), owen


def _unit_points(count: int) -> Floats:
    """Gauss-Legendre points and weights on [0, 1], (2, count)."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return np.stack([(points + 1) / 2, weights / 2])


def _expected_range(prior: Prior, K: int, k: int) -> float:
    """The expected mean of the k best means less that of the k worst, under the prior."""
    if prior.kind == BETA:
        return prior.scale * (K - k) / (K + 1)
    x = np.linspace(-8.0, 8.0, 4001)  # an arm is among the best if at most k - 1 of the others are above it
    above = (0.5 * math.erfc(u / math.sqrt(2.0)) for u in x)
    among = np.array([1.0 - beta_below(q, float(k), float(K - k)) for q in above])
    return 2.0 * prior.scale * K / k * float((x * np.exp(-0.5 * x * x) * among).sum() / ROOT_2PI * (x[1] - x[0]))


def _places(potential: Potential, D: int) -> tuple[Floats, bool]:
    """Where the boundary lies, A x = b with unit rows (least squares), and whether that is a single place."""
    if potential.kind != LOCAL:
        return np.zeros(D), False
    lengths = np.linalg.norm(potential.A, axis=1)
    places, _, rank, _ = np.linalg.lstsq(potential.A / lengths[:, None], potential.b / lengths)
    return places, int(rank) == D


@functools.lru_cache(maxsize=16)
def _beta_table(prior: Prior, epsilon: float, multiplicative: bool) -> tuple[Floats, Floats]:
    """The points of ALL_GOOD, and its table, which kernels fill."""
    if prior.kind != BETA:
        return np.zeros((1, 1, 2 * CELLS + 1)), np.zeros((3, CELLS))
    end, (points, weights) = prior.low + prior.scale, _unit_points(CELLS)
    best = min((1.0 - epsilon) * end, end) if multiplicative else end - epsilon
    top = max((best - prior.low) / prior.scale, 0.0)  # means above it are good, whatever the others are
    x = prior.low + prior.scale * top * points
    h = np.maximum(x / (1.0 - epsilon), x) if multiplicative else x + epsilon
    shifted = (h - prior.low) / prior.scale
    table = np.full((LIMIT + 1, LIMIT + 1, 2 * CELLS + 1), np.nan)
    return table, np.stack([top * points, top * weights, shifted])


class Lookahead:
    """The look-ahead potential of a task, its gains, and what is believed of the arms.

    Args:
        task: a `Task`.
        potential: that of its problem (`Problem.potential`).

    Attributes:
        horizon: T, pulls the budget pays, or else `max_pulls`; NaN where there is neither: then there are no gains.
    """

    def __init__(self, task: Any, potential: Potential) -> None:
        K, D, k = task.K, task.D, potential.k
        self._given = task, potential
        prior, total = prior_of(task.support, task.centre, task.sigma), task.payable or task.max_pulls
        self.K, self.D, self.horizon = K, D, math.nan if total is None else float(total)
        # Kernels are compiled once more for read-only arrays, and for those of other layouts.
        potential = potential._replace(A=np.array(potential.A, np.float64), b=np.array(potential.b, np.float64))
        scale = _expected_range(prior, K, k) if potential.kind == TOP_K else 1.0
        distributions = prior if potential.kind == ALL_GOOD else Prior(NORMAL, 0.0, 1.0)
        beta, points = _beta_table(distributions, potential.epsilon, potential.multiplicative)
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        u, weight = _unit_points(POINTS)
        tables = *_tables(), np.stack([u, weight, u * u, 2 * u * weight]), np.stack([nodes, weights / weights.sum()])
        shifted = prior.kind == ARMS and potential.kind != LOCAL and not potential.multiplicative
        places, known = _places(potential, D)
        relative = task.observation == "relative"
        together = relative and prior.kind == BETA and potential.kind == CONTROL
        self._model = LookaheadModel(
            potential, prior, self.horizon, scale, *tables, beta, points, places, known, shifted, False, together
        )
        self._shown = self._model._replace(relative=relative)
        self._scratch = self.parts()[1]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made again: tables stay where they are."""
        return Lookahead, self._given

    def parts(self) -> tuple[LookaheadModel, LookaheadScratch]:
        """What `relative_gains` takes: the model, and scratch of the caller's own, as threads need it."""
        K, k, kind = self.K, self._model.potential.k, self._model.potential.kind
        rows, top, points = K + 1 if kind == ALL_GOOD else 1, K if kind == TOP_K else 1, 2 * POINTS
        arms: list[Any] = [K * self.D, K * self.D, K, 8, (2, 1), (2, K), K + 1]
        places: list[Any] = [(k, points), (3, points), (top, points), (top, k, points)]
        cells: list[Any] = [(rows, 2 * CELLS + 1), (rows, CELLS), K, self.D, K]
        return self._model, LookaheadScratch(*map(np.empty, arms + places + cells))

    def _seen(
        self, pulls: NDArray[Any], total: Floats, model: LookaheadModel | None = None
    ) -> tuple[LookaheadModel, LookaheadScratch, Ints, Floats]:
        """What kernels take of pulls (E, K) and sums of samples (E, K) or (E, K, D)."""
        shape = (len(pulls), self.K) if self.D == 1 else (len(pulls), self.K, self.D)
        if pulls.shape != shape[:2] or total.shape != shape:
            got = f"{pulls.shape} and {total.shape}"
            raise ValueError(f"pulls must have shape {shape[:2]} and total {shape}, got {got}")
        flat = np.ascontiguousarray(total, np.float64).reshape(len(pulls), -1)
        return model or self._model, self._scratch, np.ascontiguousarray(pulls, np.int64), flat

    def value(self, pulls: Ints, total: Floats, left: Floats | None = None) -> Floats:
        """phi(R), (E,), of pulls (E, K) and sums of samples (E, K) or (E, K, D); of TOP_K up to a constant.

        R, `left` (E,), are the pulls of each arm that are to come; None: those up to the horizon.
        """
        out = np.empty(len(pulls))
        left = np.maximum(self.horizon - pulls.sum(-1), 0.0) / self.K if left is None else left
        _potentials(*self._seen(pulls, total), np.ascontiguousarray(left, np.float64), out)
        return out

    def gains(self, pulls: Ints, total: Floats) -> Floats:
        """The expected gain of one more pull of each arm, (E, K)."""
        out, none = np.empty((self.K, len(pulls))), np.zeros(len(pulls), np.uint8)
        for arm in range(self.K):
            self.gain(pulls, total, np.full(len(pulls), arm), none, out[arm])
        return out.T

    def gain(self, pulls: Ints, total: Floats, arms: Ints, skipped: NDArray[np.uint8], out: Floats) -> None:
        """Fill out (E,) with the expected gain of one more pull of arms (E,), or, where it is K, of stopping now.

        Episodes whose `skipped` (E,) is not 0 get 0, as numbers do that are no arms. Pulls and sums: see `value`.
        """
        _gains(*self._seen(pulls, total), arms, skipped, out)

    def beliefs(self, pulls: Ints, total: Floats) -> Floats:
        """(E, K, 4): distance d of each mean from its boundary, the sd of d, the sd of the mean, and n.

        d is the mean less the threshold; the slack of the row that is least likely to hold, whose sd stands for that
        of the mean; the mean less the middle between the k-th and the next; or the mean less the boundary that the
        largest mean, or a control, sets, with the sd of the difference. A control has d = 0, and is the one arm whose
        "sd of the mean" is negative: -a times it. Means are those of the posterior. With the observation "relative" of
        the task they are those of docs/potential.md.
        """
        return self._all_beliefs(pulls, total)[..., :4]

    def _all_beliefs(self, pulls: Ints, total: Floats) -> Floats:
        """The same, and with the observation "relative" scratch behind it, (E, K, 10)."""
        out = np.empty((len(pulls), self.K, 10 if self._shown.relative else 4))
        _beliefs(*self._seen(pulls, total, self._shown), out)
        return out

    def view(self, pulls: Ints, total: Floats, seen: Any = None, ranked: bool = False) -> tuple[Any, Ints]:
        """What a learner sees, and the arms (E, K) in the order in which it sees them.

        Args:
            pulls, total: see `value`.
            seen: statistics, or features (E, K F), by arm, to be put in order. With the observation "relative" of the
                task they are not read: the numbers of docs/potential.md are shown, float32, as many as `BELIEFS` says.
            ranked: the order is that of |d| / sd of `beliefs`, least sure first, ties by index, a control before all;
                else that of the index.
        """
        beliefs, E, form = self._all_beliefs(pulls, total), len(pulls), self._given[0].observation
        order = np.tile(np.arange(self.K), (E, 1))
        if ranked:
            certainty = np.where(beliefs[..., 2] < 0, -1.0, np.abs(beliefs[..., 0]) / beliefs[..., 1])
            order = np.argsort(certainty, axis=1, kind="stable")
            ranked_ones = np.take_along_axis(certainty, order, axis=1)
            steps = np.diff(ranked_ones, axis=1, prepend=ranked_ones[:, :1])
            if ((steps > 0.0) & (steps <= TIED)).any():  # ties that rounding has split
                order = np.take_along_axis(order, np.lexsort((order, (steps > TIED).cumsum(axis=1))), axis=1)
        if form in BELIEFS:
            each, more, _ = BELIEFS[form]
            out, scale = np.empty((E, each * self.K + more), np.float32), float(self._given[0].scale)
            against = self._model.potential.kind == CONTROL
            _show_relative(beliefs, scale, against, order, pulls.sum(axis=1) / scale, out)
            return out, order
        if not isinstance(seen, dict):
            return np.take_along_axis(seen.reshape(E, self.K, -1), order[..., None], axis=1).reshape(E, -1), order
        found = {}
        for name, array in seen.items():
            places = order if array.ndim == 2 else order[..., None]
            found[name] = np.take_along_axis(array, places, axis=1) if array.shape[1] == self.K else array.copy()
        return found, order

    def arms(self, order: Ints, ranks: Ints) -> Ints:
        """The arms (E,) that ranks (E,) name; what is no rank stays."""
        valid = (ranks >= 0) & (ranks < self.K)
        return np.where(valid, order[np.arange(len(order)), np.where(valid, ranks, 0)], ranks)
