"""The look-ahead potential phi: the score that is expected at the end if the rest of the pulls goes to all arms alike.

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
ALL_GOOD    p_i = P(mean_i is good), Phi(z_i) = p_i, phi = 1 - sum (1 - G(z_i, r_i)) / (2 sum p); phi(0), the F1 of the
            best answer: max over j of 2 (sum of the j largest p) / (j + sum p). Mean x is good while all others are
            below h(x); p_i, and w_i = P(mean_i is the best), on 25 Gauss-Legendre points of Beta distributions with
            counts up to LIMIT, else on 25 cells of normal ones. r_i is the share that is resolved of v_i + sum w v,
            multiplicative v_i + (1 - epsilon)^2 sum w v. One more pull adds the slope of phi(R + 1/2) in the pulls of
            the arm, through v_i and through w of all; at R = 0 it is one of two outcomes, or 16 Gauss-Hermite nodes.
CONTROL     (BetterThanControl) d_i = mean_i - a mean_c - b, c the control, s^2 = v_i + a^2 v_c, r the share of s^2 that
            is resolved, (r_i v_i + a^2 r_c v_c) / s^2; phi = mean of G over arms, 1 for the control, which is in no
            answer. One more pull is a larger share: of an arm in its own term, of the control in all.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ..kernels.belief import BETA, EXACT, beta_below, sampled
from ..kernels.checks import Floats
from ..kernels.compiled import inlined, part
from ..kernels.rng import normal_quantile
from .normal import POINTS, below, fill_below, part_above, resolved, tolerated

Table = Annotated[Floats, 2]

LOCAL, TOP_K, ALL_GOOD, CONTROL, SAMPLED = 0, 1, 2, 3, 4  # SAMPLED: see `bandit_envs.problems.sampled`
CELLS, NODES = 25, 16  # of p; of a sample
LIMIT = 103  # the largest count of a Beta distribution that is kept in a table
REACH = 4.0  # standard deviations that are looked at


class Potential(NamedTuple):
    """Which potential a problem has, and its numbers: see the head of this file."""

    kind: int  # LOCAL, TOP_K, ALL_GOOD or CONTROL
    A: Table = np.zeros((0, 0))  # (M, D), of LOCAL: the arms wanted have A x <= b; of CONTROL a, (1, 1)
    b: Floats = np.zeros(0)  # (M,)
    tolerance: float = 0.0  # arms nearer to the boundary than this may be answered either way
    exact: bool = False  # whether phi(0) is that of Beta distributions (M = D = 1)
    k: int = 1  # of TOP_K, arms in the answer
    epsilon: float = 0.0  # of ALL_GOOD, and whether it is; of CONTROL whether a is not 1
    multiplicative: bool = False
    control: int = -1  # of CONTROL, the arm


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
def least_row(model, m, v, at):
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
        if M == 1:
            return slack, sd, below(model.normal, math.inf)
        chance *= below(model.normal, slack / sd)
        if slack / sd < least:
            others *= below(model.normal, least)
            d, s, least = slack, sd, slack / sd
        else:
            others *= below(model.normal, slack / sd)
    if not model.relative:
        d = s * normal_quantile(max(min(chance, 1.0 - 1e-9), 1e-9))
    return d, s, others


@inlined
def _sure(model, d, s, r):
    """The chance that an arm at d, of the sd s, is classified right once the share r is resolved."""
    t = model.potential.tolerance
    return resolved(model, d / s, r) if t == 0.0 else tolerated(model, d / s, r, t / s)


@inlined
def _kept_sure(model, d, s, r, kept):
    """The same, of which `kept` (4,) has the last one: what was given, and what it is."""
    if kept[0] != d or kept[1] != s or kept[2] != r:
        kept[0], kept[1], kept[2], kept[3] = d, s, r, _sure(model, d, s, r)
    return kept[3]


@part
def _beta_sure(model, m, n):
    """The chance that the answer now is right about an arm with a Beta distribution, in one dimension."""
    prior, potential = model.prior, model.potential
    share = (m - prior.low) / prior.scale
    a, b, t = share * n, (1.0 - share) * n, potential.tolerance / prior.scale
    theta = (potential.b[0] / potential.A[0, 0] - prior.low) / prior.scale
    return max(1.0 - beta_below(theta - t, a, b), beta_below(theta + t, a, b))


@inlined
def _arm_value(model, m, v, at, n, R, kept):
    """The chance that an arm is classified right after R more pulls."""
    if R <= 0.0 and model.potential.exact and model.prior.kind == BETA and n <= EXACT:
        return _beta_sure(model, m[at], n)
    d, s, _ = least_row(model, m, v, at)
    return _kept_sure(model, d, s, R / (R + n), kept)


@part
def _arm_after(model, scratch, i, R, kept):
    """Its expectation over the next sample of arm i."""
    D, n = model.potential.A.shape[1], scratch.n[i]
    if model.prior.kind != BETA or not model.potential.exact:
        d, s, _ = least_row(model, scratch.m, scratch.v, i * D)
        return _sure(model, d, s, (R + 1.0) / (R + 1.0 + n))
    found = 0.0
    for outcome in range(2):
        now, spread, chance = sampled(model.prior, scratch.m[i], scratch.v[i], n, float(outcome), 0.0)
        scratch.trial[0, 0], scratch.trial[1, 0] = now, spread
        found += chance * _arm_value(model, scratch.trial[0], scratch.trial[1], 0, n + 1.0, R, kept)
    return found


# --- CONTROL ----------------------------------------------------------------------------------------------------------


@inlined
def difference(model, scratch, i):
    """d of an arm, its sd, and the parts of its variance that are the arm's and the control's."""
    c, a = model.potential.control, model.potential.A[0, 0]
    own, other = scratch.v[i], a * a * scratch.v[c]
    return scratch.m[i] - a * scratch.m[c] - model.potential.b[0], math.sqrt(own + other), own, other


@part
def _beside(model, scratch, i, R, arm, kept):
    """The chance that an arm is classified right after R more pulls of all, and one of `arm` (-1: of none)."""
    c, n, m = model.potential.control, scratch.n[i], scratch.n[model.potential.control]
    if i == c:
        return 1.0
    d, s, own, other = difference(model, scratch, i)
    here, there = R + (1.0 if i == arm else 0.0), R + (1.0 if c == arm else 0.0)
    resolved = own * here / (here + n) + other * there / (there + m)
    return _kept_sure(model, d, s, resolved / (own + other), kept)


# --- TOP_K ------------------------------------------------------------------------------------------------------------


@part
def middle(scratch, k):
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
    scratch.state[0] = c = middle(scratch, k)
    largest(scratch.span[1], K, k + 1, -1, scratch.best)
    scratch.state[1] = max(scratch.best[k] - c, 0.0)
    largest(scratch.span[0], K, k, -1, scratch.best)
    scratch.state[2] = max(c - scratch.best[k - 1], 0.0)


@part
def _exceeds(model, scratch, i, pulls, q, kept):
    """E (m'_i - c)^+ after so many pulls; fill q (2 POINTS,) with P(m'_i > x). Of the former see `_kept_sure`."""
    m, d, s = scratch.m[i], scratch.m[i] - scratch.state[0], math.sqrt(scratch.v[i] * pulls / (pulls + scratch.n[i]))
    fill_below(model.normal, m, 1.0 / max(s, 1e-300), scratch.points[0], scratch.places, q)
    if kept[0] != d or kept[1] != s:
        kept[0], kept[1], kept[3] = d, s, part_above(model.normal, d, s)
    return kept[3]


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
    for j in range(rest - 1, -1, -1):
        for g in range(2 * POINTS):
            layers[j, g] += q[g] * ((layers[j - 1, g] if j > 0 else 0.0) - layers[j, g])
    return 0


@part
def _top_value(model, scratch, R, arm, kept):
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
        total += _exceeds(model, scratch, i, R + 1.0 if i == arm else R, q, kept[i])
        for g in range(POINTS):
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
            out[i] = (part_above(model.normal, d, s) - max(d, 0.0)) / (k * model.scale)
        return
    rest = _set_points(model, scratch)
    for i in range(K):
        out[i] = 0.0
        if scratch.span[0, i] >= c + above or scratch.span[1, i] <= c - below:
            continue
        chance = scratch.chances[i]
        out[i] = -_exceeds(model, scratch, i, R, chance, scratch.kept[i])
        for j in range(rest):
            for g in range(points):
                scratch.prefix[i, j, g] = layers[j, g]
        _one_more(layers, chance, rest)
    layers[:rest] = 1.0  # now P(j or fewer of the arms after this one are above)
    for i in range(K - 1, -1, -1):
        if scratch.span[0, i] >= c + above or scratch.span[1, i] <= c - below:
            continue
        chance = scratch.chances[i]
        out[i] += _exceeds(model, scratch, i, R + 1.0, q, scratch.kept[i])
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
            total += part_above(model.normal, m - last, math.sqrt(v / (n + 1.0)))
        else:
            for outcome in range(2):
                now, _, chance = sampled(prior, m, v, n, float(outcome), 0.0)
                total += chance * max(now - last, 0.0)
    return total / (k * model.scale)


# --- ALL_GOOD ---------------------------------------------------------------------------------------------------------


@inlined
def boundary_of(potential, x):
    """Means at or above this are good where the best one is x."""
    return min((1.0 - potential.epsilon) * x, x) if potential.multiplicative else x - potential.epsilon


@inlined
def _highest(potential, x):
    """h(x): a mean x is good while no other one is above this."""
    return max(x / (1.0 - potential.epsilon), x) if potential.multiplicative else x + potential.epsilon


@part
def _beta_row(model, a, b):
    """Make the row of the table for Beta(a, b): weights at the points, chances of h(points), mass above all."""
    out = model.beta[a, b]
    top = (boundary_of(model.potential, model.prior.low + model.prior.scale) - model.prior.low) / model.prior.scale
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
    before = below(model.normal, (low - m) * inverse)
    for g in range(CELLS):
        now = below(model.normal, (low + step * (g + 1) - m) * inverse)
        out[g] = now - before
        out[CELLS + g] = below(model.normal, (_highest(potential, low + step * (g + 0.5)) - m) * inverse)
        before = now
    out[2 * CELLS] = 1.0 - before


@part
def _open_distributions(model, scratch):
    """Choose between Beta distributions and normal ones, and set the distributions of all arms, p and w."""
    K, prior = len(scratch.n), model.prior
    known, lowest, highest = prior.kind == BETA, -math.inf, -math.inf
    for i in range(K):
        n, s = scratch.n[i], REACH * math.sqrt(scratch.v[i])
        if known:
            a = (scratch.m[i] - prior.low) / prior.scale * n
            known = abs(a - np.rint(a)) < 1e-6 and min(a, n - a) > 0.5 and max(a, n - a) < LIMIT - 0.5
        lowest, highest = max(lowest, scratch.m[i] - s), max(highest, scratch.m[i] + s)
    scratch.state[0] = 1.0 if known else 0.0
    scratch.state[1], scratch.state[2] = boundary_of(model.potential, lowest), boundary_of(model.potential, highest)
    for i in range(K):
        _distribution(model, scratch, scratch.m[i], scratch.v[i], scratch.n[i], scratch.rows[i])
    _good_chances(model, scratch, -1)


@part
def _good_chances(model, scratch, trial):
    """Set p, their sum, and w, by the distributions of the arms; the trial's in place of that of one (-1: of none)."""
    K, before = len(scratch.n), scratch.before
    before[0] = before[K] = 1.0
    for i in range(K - 1):
        row = scratch.rows[K if i == trial else i]
        for g in range(CELLS):
            before[i + 1, g] = before[i, g] * row[CELLS + g]
    after, scratch.state[3] = before[K], 0.0
    for i in range(K - 1, -1, -1):
        row, last, end = scratch.rows[K if i == trial else i], 1.0, 1.0
        good, best = row[2 * CELLS], 0.0
        for g in range(CELLS - 1, -1, -1):
            others, now = before[i, g] * after[g], row[CELLS + g]
            good += row[g] * others
            best += 0.5 * (others + last) * (end - now)
            after[g] *= now
            last, end = others, now
        scratch.p[i], scratch.span[0, i] = min(good, 1.0), best
        scratch.state[3] += scratch.p[i]


@part
def _good_value(model, scratch, R, slopes):
    """phi(R), by p and w; fill slopes (K,), unless R = 0 or it is empty, with those of phi in the pulls of each arm."""
    p, w, v, n, expected, V, solved = scratch.p, scratch.span[0], scratch.v, scratch.n, scratch.state[3], 0.0, 0.0
    square = (1.0 - model.potential.epsilon) ** 2 if model.potential.multiplicative else 1.0
    best, hits, wrong, shared = 0.0, 0.0, 0.0, 0.0
    if R <= 0.0:
        largest(p, len(p), len(p), -1, scratch.best)
        for j in range(len(p)):
            hits += scratch.best[j]
            best = max(best, 2.0 * hits / (j + 1.0 + expected))
        return best
    for i in range(len(p)):
        V += square * w[i] * v[i]
        solved += square * w[i] * v[i] * R / (R + n[i])
    for i in range(len(p)):
        z, s2 = normal_quantile(max(min(p[i], 1.0 - 1e-8), 1e-8)), v[i] + V
        r = min((v[i] * R / (R + n[i]) + solved) / s2, 1.0 - 1e-15)
        wrong += 1.0 - resolved(model, z, r)
        if len(slopes) > 0:
            slopes[i] = math.exp(-0.5 * z * z / r) / (4.0 * math.pi * expected * s2 * math.sqrt(r * (1.0 - r)))
            shared += square * slopes[i]
    for i in range(len(slopes)):
        slopes[i] = (slopes[i] + w[i] * shared) * v[i] * n[i] / (R + n[i]) ** 2
    return 1.0 - wrong / (2.0 * expected)


@part
def _good_after(model, scratch, i):
    """E phi(0) over the next sample of an arm."""
    prior, K, found = model.prior, len(scratch.n), 0.0
    for j in range(2 if prior.kind == BETA else NODES):
        m, v, chance = sampled(prior, scratch.m[i], scratch.v[i], scratch.n[i], float(j), model.hermite[0, j])
        _distribution(model, scratch, m, v, scratch.n[i] + 1.0, scratch.rows[K])
        _good_chances(model, scratch, i)
        chance = chance if prior.kind == BETA else model.hermite[1, j]
        found += chance * _good_value(model, scratch, 0.0, scratch.gains[:0])
    return found


# --- all kinds --------------------------------------------------------------------------------------------------------


@part
def expected(model, scratch, R, arm, kept):
    """phi(R) of the state that was read, which comes first; of an arm that is not -1, E phi(R) over its next sample."""
    kind, K, D = model.potential.kind, len(scratch.n), model.potential.A.shape[1]
    if kind in (LOCAL, CONTROL):
        found = _arm_after(model, scratch, arm, R, kept[arm]) if kind == LOCAL and arm >= 0 else 0.0
        for i in range(K):
            if kind == CONTROL:
                found += _beside(model, scratch, i, R, arm, kept[i])
            elif i != arm:
                found += _arm_value(model, scratch.m, scratch.v, i * D, scratch.n[i], R, kept[i])
        return found / K
    if kind == TOP_K:
        if R <= 0.0:
            return _top_now(model, scratch, arm)
        if arm < 0:
            _look_around(model, scratch, R)
        return _top_value(model, scratch, R, arm, kept)
    if arm < 0:
        _open_distributions(model, scratch)
    elif R <= 0.0:
        return _good_after(model, scratch, arm)
    else:
        _good_value(model, scratch, R + 0.5, scratch.gains)
    return _good_value(model, scratch, R, scratch.gains[:0]) + (scratch.gains[arm] if arm >= 0 else 0.0)


@part
def larger_shares(model, scratch, left, out):
    """Fill out (K,) with the gains of all arms, less what is common to them; `left` pulls are to come."""
    K = len(scratch.n)
    R = max(left - 1.0, 0.0) / K
    if model.potential.kind == LOCAL:
        for i in range(K):
            d, s, _ = least_row(model, scratch.m, scratch.v, i * model.potential.A.shape[1])
            n = scratch.n[i]
            out[i] = _sure(model, d, s, (R + 1.0) / (R + 1.0 + n)) - _sure(model, d, s, R / (R + n))
    elif model.potential.kind == CONTROL:
        c = model.potential.control
        out[c] = 0.0
        for i in range(K):
            if i != c:
                now = _beside(model, scratch, i, R, -1, scratch.kept[i])
                out[i] = _beside(model, scratch, i, R, i, scratch.kept[i]) - now
                out[c] += _beside(model, scratch, i, R, c, scratch.kept[i]) - now
    elif model.potential.kind == TOP_K:
        _look_around(model, scratch, left / K)
        _top_gains(model, scratch, R, out)
    else:
        _open_distributions(model, scratch)
        now = _good_value(model, scratch, R + 0.5 if R > 0.0 else 0.0, out)
        for i in range(0 if R > 0.0 else K):
            out[i] = _good_after(model, scratch, i) - now
