"""Gains of the look-ahead potential, and what is believed of the arms, of one episode and of many.

The state of an episode is its pulls and its sums of samples. `bandit_envs.problems.potential` has phi of a
state that was read; docs/potential.md says what the gains are, and what observation="relative" shows.
"""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.addresses import by_address
from ..kernels.belief import ARMS, BETA, NORMAL, Prior, beta_below, place_and_worth, posterior, prior_of
from ..kernels.checks import Floats
from ..kernels.compiled import inlined, part
from ..kernels.structs import kernel
from .normal import POINTS, ROOT_2PI, tables, unit_points
from .potential import (
    ALL_GOOD,
    CELLS,
    CONTROL,
    LIMIT,
    LOCAL,
    NODES,
    TOP_K,
    Potential,
    Table,
    boundary_of,
    difference,
    expected,
    larger_shares,
    least_row,
    middle,
)

Ints = NDArray[np.int64]
Cube = Annotated[Floats, 3]

# Observations that show what is believed: how many numbers of each arm, how many after them, and their largest value.
WIDEST = 10.0
KEPT = 8  # of each arm what was given and found last by `_kept_sure`, and by `posterior`
D, SD, OWN, N, FROM, OTHERS, CHANCE, GAIN, SUM, SHARED, ALIKE = range(11)  # rows of `LookaheadScratch.beliefs`
TIED = 1e-9  # standard deviations that equal means are apart by, at most, as rounding has it
BELIEFS = {"relative": (6, 4, WIDEST)}
NEAR = 0.1  # of an arm on the boundary of CONTROL, times a sample, so that its chance to be wrong is bounded


@by_address
class LookaheadModel(NamedTuple):
    """A potential, a prior and the tables, as kernels take them."""

    potential: Potential
    prior: Prior
    horizon: float  # T
    scale: float  # of TOP_K, what the mean of the k largest is divided by
    normal: Table  # (_, 4), Phi as cubics, one for each step
    owen: Table  # (_, COLUMNS + 1), T
    logs: Floats  # ln(n) of n = 1, 2, ..
    legendre: Table  # (4, POINTS), points u and weights on [0, 1]; u^2 and 2 u times the weights, dense at 0
    hermite: Table  # (2, NODES)
    beta: Cube  # (LIMIT + 1, LIMIT + 1, 2 CELLS + 1), rows of ALL_GOOD for Beta(a, b); NaN: not yet made
    points: Table  # (3, CELLS), of [0, 1]: points, weights, h(points)
    places: Floats  # (D,), of ARMS, and whether they are known; else they come from the arms
    known: bool
    shifted: bool  # whether means count from the place of ARMS on
    # Whether beliefs are for observation="relative": d is that of the row of A that is least likely to hold, or of
    # TOP_K the gap to the nearest arm on the other side of the answer.
    relative: bool
    pooled: bool  # whether the mean of BETA is that of all arms together


@by_address
class LookaheadScratch(NamedTuple):
    """Scratch for one episode."""

    m: Floats  # (K * D,), and v
    v: Floats
    n: Floats  # (K,)
    state: Floats  # (8,): TOP_K: c, width above, width below; ALL_GOOD: is Beta in the table, L, U, sum p
    trial: Table  # (2, 1): m and v of the arm that is tried, of Threshold
    span: Table  # (2, K), TOP_K: lowest and highest future mean of each arm; ALL_GOOD: w
    best: Floats  # (K + 1,)
    layers: Table  # (k, 2 POINTS): P(N = j); q, EN, x: (2 POINTS,)
    points: Table  # (3, 2 POINTS)
    places: Ints  # (2 POINTS,), of the points in the table of Phi
    chances: Table  # (K, 2 POINTS): q of each arm
    prefix: Cube  # (K, k, 2 POINTS): P(j of the arms before this one are above)
    rows: Table  # (K + 1, 2 CELLS + 1), ALL_GOOD: each arm's distribution and chances; last, the trial's
    before: Table  # (K + 1, CELLS), products of chances
    p: Floats  # (K,)
    place: Floats  # (D,)
    gains: Floats  # (K,): see `relative_gains`
    kept: Table  # (K, KEPT), for gains of all arms
    beliefs: Table  # (11, K): see `_believe`


# --- one episode, and many --------------------------------------------------------------------------------------------


@inlined
def _together(model, pulls, total, out):
    """Fill out (D,) with the means of BETA, as shares of the range, that all arms show; returns their worth.

    Where rates are small, as those of conversions are, a uniform prior has an arm never pulled far from all others.
    """
    prior, D, K, beside = model.prior, len(out), len(pulls), model.potential.kind == CONTROL
    for j in range(D):
        out[j], made, seen = 0.0, 2.0, 1.0
        for i in range(K):
            if beside:
                out[j] += (posterior(prior, float(pulls[i]), total[i * D + j])[0] - prior.low) / prior.scale / K
            else:
                made += pulls[i]
                seen += (total[i * D + j] - pulls[i] * prior.low) / prior.scale
        out[j] = out[j] if beside else seen / made
    return 1.0 / min(out[0], 1.0 - out[0]) if beside else 2.0


@part
def read(model, scratch, pulls, total, kept):
    """Set what is believed of the arms; returns the number of pulls. What is `kept`, (K, KEPT), is used."""
    K, spent, prior, worth = len(pulls), 0, model.prior, 2.0
    D = len(scratch.m) // K
    keeps = D == 1 and not model.pooled  # of the arm's own results alone
    if model.pooled:
        worth = _together(model, pulls, total, scratch.place)
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
            elif keeps and kept[i, 4] == made and kept[i, 5] == total[i]:
                scratch.m[i], scratch.v[i], scratch.n[i] = kept[i, 6], kept[i, 7], made + worth
            else:
                middle = scratch.place[j] if model.pooled else 0.5
                scratch.m[at], scratch.v[at], scratch.n[i] = posterior(prior, made, total[at], middle, worth)
                if keeps:
                    kept[i, 4], kept[i, 5], kept[i, 6], kept[i, 7] = made, total[at], scratch.m[at], scratch.v[at]
    return spent


@kernel
def _potentials(model: LookaheadModel, scratch: LookaheadScratch, pulls, total, left, out):
    """Fill out (E,) with phi(R), for R = left[e] more pulls of each arm."""
    for e in range(len(out)):
        read(model, scratch, pulls[e], total[e], scratch.kept)
        out[e] = expected(model, scratch, left[e], -1, scratch.kept)
        if model.shifted and model.potential.kind == TOP_K:
            out[e] += scratch.place[0] / model.scale


@kernel
def _gains(model: LookaheadModel, scratch: LookaheadScratch, pulls, total, arms, skipped, kept, out):
    """Fill out (E,) with the gains of arms (E,); K stops: phi(0) less phi. Those of episodes that are skipped are 0."""
    K = pulls.shape[1]
    for e in range(len(out)):
        out[e] = 0.0
        if skipped[e] == 0 and 0 <= arms[e] <= K:
            left = model.horizon - read(model, scratch, pulls[e], total[e], kept[e])
            phi = expected(model, scratch, max(left, 0.0) / K, -1, kept[e])
            R, arm = (0.0, -1) if arms[e] == K else (max(left - 1.0, 0.0) / K, arms[e])
            out[e] = expected(model, scratch, R, arm, kept[e]) - phi


@part
def relative_gains(model, scratch, pulls, total):
    """Fill scratch.gains (K,) with the gains of all arms of one episode, less what is common to them, for greedy rules.

    That is E phi(R) after one more pull of an arm, less phi(R), for the R that is left after it. A pull is a larger
    share throughout, of Threshold and at R = 0 too, but not of AllGood at R = 0.
    """
    left = max(model.horizon - read(model, scratch, pulls, total, scratch.kept), 0.0)
    larger_shares(model, scratch, left, scratch.gains)
    if model.potential.kind == LOCAL:
        for i in range(len(pulls)):
            if pulls[i] == 0 and least_row(model, scratch.m, scratch.v, i * len(scratch.place))[0] > 0.0:
                scratch.gains[i] = math.inf  # it would be left out, though it is believed to be in


@part
def _believe(model, scratch, pulls, total, kept):
    """Set the rows of scratch.beliefs from D to OTHERS; returns the number of pulls.

    d is measured from the arm in FROM: itself where the boundary is known, -1 for the best. OTHERS is the chance that
    the other rows of A hold.
    """
    spent, potential, K, b = read(model, scratch, pulls, total, kept), model.potential, len(pulls), scratch.beliefs
    edge, spread, star, others = 0.0, 0.0, 0, 1.0
    if potential.kind == TOP_K:
        edge = middle(scratch, potential.k)
    elif potential.kind == ALL_GOOD:
        for i in range(K):
            larger = scratch.m[i] - scratch.m[star]  # of equal ones, the one that is known least
            star = i if larger > 0.0 or larger == 0.0 and scratch.v[i] > scratch.v[star] else star
        edge = boundary_of(potential, scratch.m[star])
        spread = scratch.v[star] * ((1.0 - potential.epsilon) ** 2 if potential.multiplicative else 1.0)
    for i in range(K):
        if potential.kind == LOCAL:
            d, s, others = least_row(model, scratch.m, scratch.v, i * potential.A.shape[1])
            own = s
        elif potential.kind == CONTROL:
            star = potential.control
            d, s, own, spread = difference(model, scratch, i)
            own = math.sqrt(own)
            if i == star:
                d, s, own = 0.0, math.sqrt(spread), -math.sqrt(spread)
        else:
            d, own = scratch.m[i] - edge, math.sqrt(scratch.v[i])
            s = own if potential.kind == TOP_K or i == star else math.sqrt(scratch.v[i] + spread)
        b[D, i], b[SD, i], b[OWN, i], b[N, i], b[OTHERS, i] = d, s, own, scratch.n[i], others
        b[FROM, i] = i if potential.kind == LOCAL else (-1 if i == star else star)
    if model.relative and potential.kind == TOP_K:
        _to_the_other_side(scratch, potential.k, b)
    return spent


@kernel
def _beliefs(model: LookaheadModel, scratch: LookaheadScratch, pulls, total, out):
    """Fill out (E, K, 4) with d, its sd, the sd of the mean, and n."""
    for e in range(len(out)):
        _believe(model, scratch, pulls[e], total[e], scratch.kept)
        for i in range(pulls.shape[1]):
            for j in range(4):
                out[e, i, j] = scratch.beliefs[j, i]


@part
def _to_the_other_side(scratch, k, b):
    """Measure d from the k-th largest mean, or, of the k arms with the largest, from the next; after `middle`."""
    inside, outside, last, following, K = scratch.best[k - 1], scratch.best[k], -1, -1, len(scratch.n)
    for i in range(K):  # of equal ones, the one that is known least
        m, sd = scratch.m[i], b[SD, i]
        if abs(m - inside) <= TIED * sd and (last < 0 or sd > (1.0 + TIED) * b[SD, last]):
            last = i
        if abs(m - outside) <= TIED * sd and (following < 0 or sd > (1.0 + TIED) * b[SD, following]):
            following = i
    for i in range(K):
        other = following if b[D, i] > TIED * b[OWN, i] else last
        d, s = scratch.m[i] - scratch.m[other], math.sqrt(scratch.v[i] + scratch.v[other])
        b[D, i], b[SD, i], b[FROM, i] = d if abs(d) > TIED * s else 0.0, s, other


@part
def _rank(b, order):
    """Put the order (K,) of arms, any one, in that of |d| / sd, ties by index, also those that rounding has split."""
    x = b[CHANCE]
    for i in range(len(order)):
        x[i] = -1.0 if b[OWN, i] < 0.0 else abs(b[D, i]) / b[SD, i]
    for tied in (False, True):
        first, before = 0, x[order[0]]
        for j in range(1, len(order)):
            arm, i, now = order[j], j, x[order[j]]
            first, before = j if tied and now - before > TIED else first, now
            while i > first and (order[i - 1] > arm if tied or x[order[i - 1]] == now else x[order[i - 1]] > now):
                order[i] = order[i - 1]
                i -= 1
            order[i] = arm


@inlined
def _within(x):
    return max(min(x, WIDEST), -WIDEST)


@inlined
def _softened(x):
    """x itself near 0, and its root far from it: from -100 to 100 it is within the bounds."""
    return _within(x / math.sqrt(1.0 + abs(x)))


@part
def _share_out(b, j):
    """Give arm j, and those of which the same is believed, but for rounding, equal parts of what it has in SHARED."""
    d, own, tied, alike = b[D], b[OWN], TIED * abs(b[OWN, j]), b[ALIKE]
    for i in range(len(d)):
        alike[i] = abs(d[i] - d[j]) <= tied and abs(own[i] - own[j]) <= tied and b[N, i] == b[N, j]
    part = b[SHARED, j] / alike.sum()
    for i in range(len(d)):
        b[SUM, i] += part if alike[i] > 0.0 else 0.0


@part
def _show_relative(model, scratch, horizon, spent, order, out):
    """Fill out (6 K + 4,) with what observation="relative" shows of the beliefs that are set, see docs/potential.md."""
    K, b, best, square = len(order), scratch.beliefs, -math.inf, 0.0
    left, usual = horizon * (1.0 - spent / horizon), math.log(horizon / K)
    R = max(left - 1.0, 0.0) / K + 0.5  # pulls of each arm to come, in the middle of the next pull
    for i in range(K):
        b[SHARED, i] = b[N, np.int64(max(b[FROM, i], 0.0))]
    for i in range(K):
        # Of the variance of d, the share that is resolved, and what stays; each pull of the arm resolves more.
        d, s, own, n, m = b[D, i], b[SD, i], b[OWN, i], b[N, i], b[SHARED, i]
        now = own * own / (s * s)
        resolved = now * R / (R + n) + (1.0 - now) * R / (R + m)
        stays = now * n / (R + n) + (1.0 - now) * m / (R + m)
        b[CHANCE, i], b[SUM, i] = -0.5 * d * d / (s * s * resolved), s * s * math.sqrt(resolved * stays)
        b[GAIN, i], b[SHARED, i] = own * own * n / ((R + n) * (R + n)), d * d + s * s
        if model.potential.kind == CONTROL:
            w = 0.5 * d * d / (s * s)
            b[CHANCE, i], b[SUM, i] = -w - 0.5 * math.log(w + NEAR / n + NEAR / m), s * s
            b[GAIN, i] = own * own / n
    for i in range(K):
        square += b[SHARED, i]
        b[CHANCE, i] -= math.log(b[SUM, i])
        best = max(best, b[CHANCE, i]) if b[FROM, i] >= 0.0 else best
        b[SUM, i] = b[SHARED, i] = 0.0
    for i in range(K):
        j = np.int64(b[FROM, i])
        if j >= 0:
            chance = math.exp(b[CHANCE, i] - best)
            b[SUM, i] += chance
            if b[FROM, j] != i and j != i:
                b[SHARED, j] += chance
    for j in range(K):
        if b[SHARED, j] > 0.0:
            _share_out(b, j)
    best, inverse = 0.0, math.sqrt(K / square)
    for i in range(K):
        b[GAIN, i] *= b[SUM, i]
        best = max(best, b[GAIN, i])
    for i in range(K):
        n, whole = b[N, i], np.int64(b[N, i])
        b[N, i] = model.logs[whole - 1] if n == whole and n <= len(model.logs) else math.log(n)
        b[GAIN, i] = math.log(max(b[GAIN, i] / best, 1e-300))
    for i in range(K):
        b[CHANCE, i], b[GAIN, i] = _softened(b[D, i] / b[SD, i]), _softened(b[GAIN, i])
        b[OWN, i] = b[OWN, i] / b[SD, i] * b[OTHERS, i]
    for j in range(K):
        i = order[j]
        out[6 * j], out[6 * j + 1], out[6 * j + 2] = b[CHANCE, i], b[GAIN, i], _within(0.5 * (b[N, i] - usual))
        out[6 * j + 3], out[6 * j + 4] = _within(b[D, i] * inverse), _within(b[SD, i] * inverse)
        out[6 * j + 5] = b[OWN, i]
    out[6 * K], out[6 * K + 1] = 2.0 * left / horizon - 1.0, _within(0.5 * math.log1p(left / K) - 1.0)
    out[6 * K + 2], out[6 * K + 3] = _within(0.5 * usual - 1.0), _within(0.5 * math.log(0.1 * K))


@kernel
def _view(model: LookaheadModel, scratch: LookaheadScratch, pulls, total, kept, horizon, ranked: bool, order, out):
    """Rank the arms, if they are, from any order (E, K) on; fill out (E, 6 K + 4), or nothing of (E, 0)."""
    for e in range(len(order)):
        spent = _believe(model, scratch, pulls[e], total[e], kept[e])
        if ranked:
            _rank(scratch.beliefs, order[e])
        if out.shape[1] > 0:
            _show_relative(model, scratch, horizon, spent, order[e], out[e])


# --- in Python --------------------------------------------------------------------------------------------------------


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
    end, (points, weights) = prior.low + prior.scale, unit_points(CELLS)
    best = min((1.0 - epsilon) * end, end) if multiplicative else end - epsilon
    top = max((best - prior.low) / prior.scale, 0.0)  # means above it are good, whatever the others are
    x = prior.low + prior.scale * top * points
    h = np.maximum(x / (1.0 - epsilon), x) if multiplicative else x + epsilon
    table = np.full((LIMIT + 1, LIMIT + 1, 2 * CELLS + 1), np.nan)
    return table, np.stack([top * points, top * weights, (h - prior.low) / prior.scale])


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
        self.K, self.D, self._scale, self.horizon = K, D, float(task.scale), math.nan if total is None else float(total)
        # Kernels are compiled once more for read-only arrays, and for those of other layouts.
        potential = potential._replace(A=np.array(potential.A, np.float64), b=np.array(potential.b, np.float64))
        scale = _expected_range(prior, K, k) if potential.kind == TOP_K else 1.0
        distributions = prior if potential.kind == ALL_GOOD else Prior(NORMAL, 0.0, 1.0)
        beta, points = _beta_table(distributions, potential.epsilon, potential.multiplicative)
        (nodes, weights), (u, weight) = np.polynomial.hermite_e.hermegauss(NODES), unit_points(POINTS)
        kept: Any = *tables(), np.stack([u, weight, u * u, 2 * u * weight]), np.stack([nodes, weights / weights.sum()])
        shifted = prior.kind == ARMS and potential.kind != LOCAL and not potential.multiplicative
        together = prior.kind == BETA and potential.kind not in (TOP_K, ALL_GOOD) and not potential.exact
        kept = *kept, beta, points, *_places(potential, D), shifted, False, together
        self._model = LookaheadModel(potential, prior, self.horizon, scale, *kept)
        self._shown = self._model._replace(relative=task.observation == "relative")
        self._scratch = self.parts()[1]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made again: tables stay where they are."""
        return type(self), self._given

    def parts(self) -> tuple[LookaheadModel, LookaheadScratch]:
        """What `relative_gains` takes: the model, and scratch of the caller's own, as threads need it."""
        K, k, kind = self.K, self._model.potential.k, self._model.potential.kind
        rows, top, points = K + 1 if kind == ALL_GOOD else 1, K if kind == TOP_K else 1, 2 * POINTS
        arms: list[Any] = [K * self.D, K * self.D, K, 8, (2, 1), (2, K), K + 1]
        places: list[Any] = [(k, points), (3, points), points, (top, points), (top, k, points)]
        cells: list[Any] = [(rows, 2 * CELLS + 1), (rows, CELLS), K, self.D, K, (K, KEPT), (ALIKE + 1, K)]
        made = LookaheadScratch(*(np.full(shape, math.nan) for shape in arms + places + cells))
        return self._model, made._replace(places=np.zeros(points, np.int64))

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

    def gain(self, pulls: Ints, total: Floats, arms: Ints, skipped: Any, out: Floats, kept: Any = None) -> None:
        """Fill out (E,) with the expected gain of one more pull of arms (E,), or, where it is K, of stopping now.

        Episodes whose `skipped` (E,) is not 0 get 0, as numbers do that are no arms. Pulls and sums: see `value`. What
        is `kept`, (E, K, KEPT), NaN at first, makes the next steps of the same episodes quicker.
        """
        kept = np.full((len(pulls), self.K, KEPT), math.nan) if kept is None else kept
        _gains(*self._seen(pulls, total), arms, skipped, kept, out)

    def beliefs(self, pulls: Ints, total: Floats) -> Floats:
        """(E, K, 4): distance d of each mean from its boundary, the sd of d, the sd of the mean, and n.

        d is the mean less the threshold; the slack of the row that is least likely to hold, whose sd stands for that
        of the mean; the mean less the middle between the k-th and the next; or the mean less the boundary that the
        largest mean, or a control, sets, with the sd of the difference. A control has d = 0, and is the one arm whose
        "sd of the mean" is negative: -a times it. Means are those of the posterior. With the observation "relative" of
        the task they are those of docs/potential.md.
        """
        out = np.empty((len(pulls), self.K, 4))
        _beliefs(*self._seen(pulls, total, self._shown), out)
        return out

    def view(self, pulls: Ints, total: Floats, seen: Any = None, ranked: bool = False) -> tuple[Any, Ints]:
        """What a learner sees, and the arms (E, K) in the order in which it sees them.

        `seen`: statistics, or features (E, K F), by arm, to be put in order; with the observation "relative" of the
        task they are not read: the numbers of docs/potential.md are shown, float32, as many as `BELIEFS` says. If
        `ranked`, the order is that of |d| / sd of `beliefs`, least sure first, ties by index, a control before all.
        """
        E, form = len(pulls), self._given[0].observation
        each, more, _ = BELIEFS.get(form, (0, 0, 0.0))
        order, out = np.tile(np.arange(self.K), (E, 1)), np.empty((E, each * self.K + more), np.float32)
        kept = np.full((E, self.K, KEPT), math.nan)
        _view(*self._seen(pulls, total, self._shown), kept, self._scale, ranked, order, out)
        return (out if form in BELIEFS else self.in_order(seen, order)), order

    def in_order(self, seen: Any, order: Ints) -> Any:
        """Statistics, or features (E, K F), by arm, in the orders (E, K)."""
        if not isinstance(seen, dict):
            return np.take_along_axis(seen.reshape(*order.shape, -1), order[..., None], axis=1).reshape(len(order), -1)
        found = {}
        for name, array in seen.items():
            places = order if array.ndim == 2 else order[..., None]
            found[name] = np.take_along_axis(array, places, axis=1) if array.shape[1] == self.K else array.copy()
        return found

    def viewer(self, pulls: Ints, total: Floats, kept: Floats, ranked: bool, order: Ints, out: Any) -> Any:
        """A function that sets the orders (E, K) of the arms, if ranked, and fills out (E, 6 K + 4): quick `view`."""
        return _view.bound(*self._seen(pulls, total, self._shown), kept, self._scale, ranked, order, out)

    def arms(self, order: Ints, ranks: Ints) -> Ints:
        """The arms (E,) that ranks (E,) name; what is no rank stays."""
        valid = (ranks >= 0) & (ranks < self.K)
        return np.where(valid, order[np.arange(len(order)), np.where(valid, ranks, 0)], ranks)
