"""The evolved index where a pull may change the indices of all arms: all of them at once, with what they share.

Against a control c, whose mean an arm i must exceed a times, the evidence w_i of the arm is that of 1 / (1 / n_i +
a^2 / n_c) samples, as many as tell the difference. The control is pulled for all arms: its index is

    - ln(sum over the other arms of exp(-q index(n_c, w_i))) / q,    q = 2 / beta,                                   (2)

so that it has about the root of K - 1 times the pulls of arms with equal evidence (Dunnett 1955). The network sees it
as the leader.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bandit_envs.kernels import call_routine, episode_kernel, fleeting, inlined

from ..core.agent import Floats, Ints
from .formula import Own, evidence, formula
from .network import HIDDEN, HUNDRED, LAYERS, OWN, SHARED, own_features

KEYS = 4  # pulls, distance and mean of an arm, and the samples that tell its distance, from which follow
MADE = 6  # its index by the formula, its features but for `lead`, and the index that it adds to a control's
LEAST = 0.1  # beta is at least that in q
OWNS, SHARES = len(OWN), len(SHARED)


@fleeting
class Seen(NamedTuple):
    """What the episodes have shown."""

    pulls: Ints  # (E, K)
    mean: Floats  # (E, K * D)


@fleeting
class Wide(NamedTuple):
    """What indices are computed from."""

    bernoulli: bool  # whether variances follow from means
    low: float  # of samples, and their range; 0 and 1 but against a control
    width: float
    control: int  # the arm; -1 where there is none
    square: float  # a^2
    own: Own  # as for single arms, of P candidates
    limits: Floats  # (P,): an episode stops once its smallest index is larger
    per_row: int  # how many episodes in a row have the same parameters
    measure: int  # the address of the problem's routine of distances; 0: `distances` is filled in by the caller
    numbers: Floats  # of the problem, for that routine
    distances: Floats  # (E, K): how far an arm must move for the answer to change
    known: Floats  # (E, KEYS, K): for which pulls, distances and means the following was computed
    made: Floats  # (E, MADE, K)
    shared: Floats  # (2, SHARES): scratch for what the arms of side -1, and of side 1, have in common
    scratch: Floats  # (3, K): for the indices, whether an arm is of side 1, and whether it leads


@inlined
def _take_in(e, k, row, seen, wide):
    """Bring what is made of arm k up to date, where its pulls, its distance or its mean have changed."""
    n, distance = float(seen.pulls[e, k]), wide.distances[e, k]
    mean = (seen.mean[e, k] - wide.low) / wide.width if wide.bernoulli else 0.0
    known, made, both = wide.known[e], wide.made[e], n
    if wide.control >= 0 and k != wide.control:
        both = 1.0 / (1.0 / n + wide.square / seen.pulls[e, wide.control])
    if known[0, k] != n or known[1, k] != distance or known[2, k] != mean or known[3, k] != both:
        d, side = abs(distance) / wide.width, 1.0 if distance >= 0.0 else -1.0
        centre = mean - side * d if wide.bernoulli else math.nan
        w = evidence(both, d, centre, side, wide.own.sigma2, wide.own.parameters, row)
        made[0, k] = formula(n, w, wide.own.fair, wide.own.parameters, row)
        if wide.control >= 0:
            pulls = float(seen.pulls[e, wide.control])
            made[5, k] = formula(pulls, w, wide.own.fair, wide.own.parameters, row)
        if len(wide.own.nets) > 0:
            own = own_features(n, w, mean if wide.bernoulli else math.nan, wide.own.fair)
            made[1, k], made[2, k], made[3, k], made[4, k] = own
        known[0, k], known[1, k], known[2, k], known[3, k] = n, distance, mean, both


@inlined
def _join(e, row, wide):
    """The index of the control [2], up to the corrections."""
    made, least, total = wide.made[e, 5], math.inf, 0.0
    q = 2.0 / max(wide.own.parameters[row, 1], LEAST)
    for k in range(len(made)):
        least = min(least, made[k]) if k != wide.control else least
    for k in range(len(made)):
        total += math.exp(q * (least - made[k])) if k != wide.control else 0.0
    return least - math.log(total) / q


@inlined
def _share(e, seen, wide):
    """Fill in what arms have in common, and of each arm its side and whether it leads."""
    K, made, shared, sides, leads = seen.pulls.shape[1], wide.made[e], wide.shared, wide.scratch[1], wide.scratch[2]
    spent, open_, leader = 0.0, 0.0, -1
    below, above, nearest, farthest = -1, -1, math.inf, -math.inf  # of side 1 the nearest, of side -1 too
    for k in range(K):
        distance = wide.distances[e, k]
        spent += seen.pulls[e, k]
        open_ += 1.0 - made[2, k]
        leads[k] = 0.0
        if k == wide.control:
            sides[k], leader = 0.0, k
        elif distance >= 0.0:
            sides[k] = 1.0
            above, nearest = (k, distance) if distance < nearest else (above, nearest)
        else:
            sides[k] = 0.0
            below, farthest = (k, distance) if distance > farthest else (below, farthest)
        if wide.control < 0 and seen.mean.shape[1] == K and (leader < 0 or seen.mean[e, k] > seen.mean[e, leader]):
            leader = k
    spent /= K * math.exp(wide.own.fair)
    left = (1.0 / (1.0 + spent) if wide.limits[0] < math.inf else 1.0 - spent) - 0.5
    if leader >= 0:
        leads[leader] = 1.0
    for s in range(2):  # in the order of SHARED
        border, rival = (above, below) if s == 1 else (below, above)
        shared[s, 0], shared[s, 1], shared[s, 2] = 1.0, 2.0 * s - 1.0, 0.5 * (wide.own.fair - HUNDRED)
        shared[s, 3], shared[s, 4] = left, open_ / K
        shared[s, 5] = made[3, rival] if rival >= 0 else 0.0
        shared[s, 6] = made[3, border] if border >= 0 else 0.0
        shared[s, 7] = made[3, leader] if leader >= 0 else 0.0


@inlined
def _correct(e, row, wide):
    """Add to the indices what the network corrects, bend by bend, so that the loops over arms are vectorised."""
    made, net, scratch, shared = wide.made[e], wide.own.nets[row], wide.scratch, wide.shared
    K = scratch.shape[1]
    for h in range(HIDDEN):
        low, high = 0.0, 0.0
        for j in range(SHARES):
            low += shared[0, j] * net[OWNS + j, h]
            high += shared[1, j] * net[OWNS + j, h]
        change, out = high - low, net[LAYERS - 1, h]
        one, two, three, four, five = net[0, h], net[1, h], net[2, h], net[3, h], net[4, h]
        for k in range(K):
            x = low + change * scratch[1, k] + one * made[1, k] + two * made[2, k]
            x += three * made[3, k] + four * made[4, k] + five * scratch[2, k]
            scratch[0, k] += out * x / (1.0 + abs(x))


@episode_kernel
def least_index(e: int, seen: Seen, wide: Wide):
    """The arm with the smallest index, arms never pulled first; K to stop."""
    K = seen.pulls.shape[1]
    for k in range(K):
        if seen.pulls[e, k] == 0:
            return k
    if wide.measure != 0:
        call_routine(wide.measure, seen.pulls[e], seen.mean[e], K, wide.numbers, wide.distances[e])
    row, arm, least = np.int64(e) // wide.per_row, -1, math.inf
    for k in range(K):
        _take_in(e, k, row, seen, wide)
        wide.scratch[0, k] = wide.made[e, 0, k]
    if wide.control >= 0:
        wide.scratch[0, wide.control] = _join(e, row, wide)
    if len(wide.own.nets) > 0:
        _share(e, seen, wide)
        _correct(e, row, wide)
    for k in range(K):
        value = wide.scratch[0, k]
        if value < least or arm < 0:
            arm, least = k, value
    return K if least > wide.limits[row] else arm
