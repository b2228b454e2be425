"""Evidence for single arms, and the arms that are found at an error rate: family-wise, or of false discoveries.

Each arm's evidence that it belongs to the answer is the logarithm of an e-process: whatever has chosen the pulls, at
any stopping time the e-value of an arm that does not belong there is 1 at most on average. (No rate needs those below
1, which are given as 1.) docs/certificates-theory.md has the proofs.

familywise  An arm is found at n / level, n the number of arms in question. With probability 1 - level no arm that is
            ever found is wrong (Ville's inequality): what has been found stays.
fdr         The k arms with the largest e-values are found, for the largest k of which each is n / (k level) at least
            (e-BH; Wang & Ramdas, JRSS B 2022; Xu, Wang & Ramdas, NeurIPS 2021). Of the arms that are found at a
            stopping time, the share that is wrong is at most the level on average, however the e-values depend on each
            other. That is a promise about this set at this time: it may shrink, and sets of several times are not to be
            joined.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.checks import Bools, Floats, Ints, array, choice, number
from ..kernels.compiled import part
from ..kernels.structs import kernel
from .boundaries import COMMON, D_AT, VARIANCE, Given, refresh
from .control import above, nearest_of
from .distributions import Move
from .nearest import best_of, by_one, moved_to, paired

SIDED = {"threshold": 0, "all-good": 1, "control": 2}  # kinds whose arms have evidence of their own
RATES = ("familywise", "fdr")
DOUBLINGS, HALVINGS = 100, 60  # of the search for the end of an interval


@part
def _threshold_sides(given, i):
    """The evidence that arm i is above the threshold, and that it is below."""
    numbers, mean, scratch = given.numbers, given.mean, given.scratch
    if given.pulls[i] == 0:
        return 0.0, 0.0
    over, under = min(mean[i], numbers[COMMON]), max(mean[i], numbers[COMMON + 1])
    return moved_to(numbers, mean, scratch, i, over), moved_to(numbers, mean, scratch, i, under)


@part
def _all_good_sides(given, i):
    """The evidence that arm i is good, and that another one is clearly better, of which each of K - 1 has its share."""
    numbers, pulls, mean, variance, scratch = given.numbers, given.pulls, given.mean, given.variance, given.scratch
    move, least = Move(numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 2]), math.inf
    for j in range(len(pulls)):
        if pulls[i] == 0 or pulls[j] == 0:
            return 0.0, 0.0
        if j != i:
            least = min(least, paired(numbers, mean, scratch, i, j, move, -math.inf) if move.a > 0.0 else 0.0)
    most, _ = by_one(numbers, pulls, mean, variance, scratch, i, best_of(pulls, mean))
    return least, most - math.log(len(pulls) - 1.0)


@kernel
def _sides(kind, numbers, pulls, mean, variance, scratch, inside, out, found):
    """Fill found (E, K, 2) with the evidence that arms of E episodes are in the answer, and that they are not."""
    K = pulls.shape[1]
    for e in range(len(pulls)):
        given = Given(numbers, pulls[e], mean[e], variance[e], scratch, inside, out)
        if kind < 2:
            refresh(numbers, pulls[e], mean[e], variance[e], scratch, 0, K)
        for i in range(K):
            if kind == 0:
                good, bad = _threshold_sides(given, i)
            elif kind == 1:
                good, bad = _all_good_sides(given, i)
            else:
                good, bad = nearest_of(given, i, True)[0], nearest_of(given, i, False)[0]
            found[e, i, 0] = good if good > 0.0 else 0.0  # also where a scale is refuted, or nothing is known
            found[e, i, 1] = bad if bad > 0.0 else 0.0


def sides(certifier: Any, pulls: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> Floats:
    """What arms have in favour of being in the answer, and of not being there, (E, K, 2), in nats, at least 0.

    The control has -inf and inf. Arguments as of `Certifier.alternatives`; variances of bounded samples by
    `with_moments`.
    """
    kind, numbers = certifier.kind, certifier.numbers
    if kind not in SIDED:
        raise ValueError(f"single arms have evidence in Threshold, AllGood and BetterThanControl, not by {kind!r}")
    T, m, v = np.ascontiguousarray(pulls, np.int64), np.asarray(mean, np.float64), np.asarray(variance, np.float64)
    (E, K), found = T.shape, np.empty((*T.shape, 2))
    rest = np.zeros(certifier.scratch), np.zeros(K, np.int8), np.zeros(2 + 3 * K)
    _sides(SIDED[kind], numbers, T, m.reshape(E, -1).copy(), v.reshape(E, -1).copy(), *rest, found)
    if kind == "control":
        found[:, int(numbers[COMMON])] = -math.inf, math.inf
    return found


def discoveries(evidence: ArrayLike, level: float, rate: str = "familywise") -> Bools:
    """The arms that are found, a mask (..., K).

    Args:
        evidence: (..., K), logarithms of e-values, as of `Problem.arm_evidence`; -inf of what is not in question.
        level: of the error rate, in (0, 1). rate: "familywise" or "fdr".
    """
    found, level = array("evidence", evidence), number("level", level, 0, 1, above=True, below=True)
    if np.isnan(found).any():
        raise ValueError("evidence must be numbers, got nan")
    n = np.maximum((found > -math.inf).sum(axis=-1, keepdims=True), 1)
    if choice("rate", rate, RATES) == "familywise":
        mask: Bools = found >= np.log(n / level)
        return mask
    ranked = -np.sort(-found, axis=-1)
    enough = ranked >= np.log(n / (level * np.arange(1, found.shape[-1] + 1)))
    most = np.where(enough, np.arange(1, found.shape[-1] + 1), 0).max(axis=-1, keepdims=True)
    least = np.take_along_axis(ranked, np.maximum(most - 1, 0), axis=-1)
    mask = (found >= least) & (most > 0)
    return mask


@part
def _excluded(given, i, side, x, is_lift, need):
    """Whether the lift, or the difference, of arm i is above x (side 0), or else below x (side 1)."""
    control = np.int64(given.numbers[COMMON])
    a, b = (1.0 + x, 0.0) if is_lift else (1.0, x)
    if side == 0:
        return above(given, i, control, 0, a, b, 0.0, need) >= need
    return above(given, control, i, 0, 1.0 / a, -b / a, 0.0, need) >= need


@kernel
def _ends(numbers, pulls, mean, variance, scratch, inside, out, is_lift, need, found):
    """Fill found (K, 2) with the ends of the intervals of lifts, or differences."""
    control, given = np.int64(numbers[COMMON]), Given(numbers, pulls, mean, variance, scratch, inside, out)
    D = np.int64(numbers[D_AT])
    base = mean[control * D]
    for i in range(len(pulls)):
        middle = mean[i * D] / base - 1.0 if is_lift and base > 0.0 else mean[i * D] - base
        for side in range(2):
            sign, near = 2.0 * side - 1.0, middle
            step = 1e-6 * (1.0 if is_lift else abs(middle) + math.sqrt(numbers[VARIANCE]))
            floor, found[i, side] = -1.0 + 1e-12 if is_lift else -math.inf, sign * math.inf
            if is_lift and side == 0:
                found[i, side] = -1.0
            if i == control or pulls[i] == 0 or pulls[control] == 0 or (is_lift and not base > 0.0):
                continue
            far = near
            for _ in range(DOUBLINGS):
                far = max(middle + sign * step, floor)
                if _excluded(given, i, side, far, is_lift, need):
                    break
                near, step = far, 2.0 * step
            else:  # nothing is excluded
                continue
            for _ in range(HALVINGS):
                half = 0.5 * (near + far)
                if _excluded(given, i, side, half, is_lift, need):
                    far = half
                else:
                    near = half
            found[i, side] = far


def control_intervals(certifier: Any, pulls: Ints, mean: Floats, variance: Floats, level: float, lift: bool) -> Floats:
    """The ends of the intervals, (K, 2), of mean / control - 1 (`lift`), or of mean - control.

    All are right at all times at once with probability 1 - level, whatever has chosen the pulls. Infinite (a lift's low
    end: -1) where nothing is excluded, and of the control.

    Args:
        certifier: of the kind "control". pulls, mean: (K,) or (K, D), of which the first
            dimension counts. variance: the same, of bounded samples by `with_moments`.
    """
    K, found = len(pulls), np.empty((len(pulls), 2))
    need = math.log(2 * (K - 1) / level)
    rest = np.zeros(certifier.scratch), np.zeros(K, np.int8), np.zeros(2 + 3 * K)
    _ends(certifier.numbers, pulls, mean.reshape(-1).copy(), variance.reshape(-1).copy(), *rest, lift, need, found)
    return found
