"""Threshold and Feasible on the columns of a table: each arm by itself. `paired` has the words.

Feasible   With M limits r x >= theta of its D scores. An arm is in when the bets on each limit have made K / delta, at
           whatever time: where it violates one, those on this one seldom do. It is out when the mean of the M capitals
           of bets that a limit is violated is K / delta: where it keeps all limits, each of these is a supermartingale,
           and so is their mean.
Threshold  The case of one limit: above the threshold, or below it, when such bets have made K / delta.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels.compiled import inlined, part
from .boundaries import COMMON, D_AT
from .paired import ARMS, FIRST, IN, MOST, OFF, OPEN, OUT, OVER, PRIOR, ROUNDING, SIZE, bet_of, report, settle, table_of


def limits_of(kind: str, own: Any, ranges: Any) -> Any:
    """The limits r x >= theta of Threshold or Feasible, (M, FIRST + D), of D scores in these ranges, by its numbers.

    Each is fall, rise, theta, the low end of r x and its width, by how much it may be off once it is scaled, and r. An
    arm is wrongly in only where some r x < fall, and wrongly out only where all r x >= rise. Within a tolerance of the
    polyhedron are the points whose violations are a tolerance / sqrt(n) at most, where its n directions are orthogonal.
    """
    if kind == "threshold":
        r, (fall, rise, theta) = np.ones((1, 1)), own[:3, None]
    else:
        near, D, M = own[0], int(own[2]), int(own[3])
        r, ends = -own[6 : 6 + D * M].reshape(D, M).T, own[6 + D * M : 6 + (D + 2) * M].reshape(2, M)
        theta, unit = -ends[0], ends[1]
        crossed = np.abs(r @ r.T * np.outer(unit, unit)).round(12)
        share = np.isin(crossed, (0.0, 1.0)).all() / math.sqrt(np.linalg.matrix_rank(r * unit[:, None]))
        fall, rise = theta - near * share / unit, theta + near
    low, high = np.transpose(ranges)
    spread, least = np.abs(r) * (high - low), np.minimum(r * low, r * high)
    size = np.maximum(np.abs(least), np.abs(least + spread)).sum(axis=1)
    width, bottom = spread.sum(axis=1), least.sum(axis=1)
    off = np.where((bottom == 0.0) & (r.shape[1] == 1), 0.0, OFF * size / width)
    return np.column_stack([fall, rise, theta, bottom, width, off, r])


@inlined
def grown_alone(capital, x, S, square, side, theta, n, N):
    """A capital that a mean of at most N is above theta (side 1) or below it (-1), after n of sums S, square, and x."""
    left = N - n
    e = side * (N * theta - S)  # what is left of the sum, at most
    if side * x - e > (0.0 if side > 0.0 else left - 1.0) + ROUNDING * N:
        return math.inf
    m = min(max(e / left, min(side, 0.0)), max(side, 0.0))
    bet = bet_of((side * S - n * m) / (n + PRIOR), (1.0 + square) / (PRIOR + n), m + (0.0 if side > 0.0 else 1.0))
    return min(capital * (1.0 + bet * (side * x - m)), MOST)


@inlined
def keeps_all(limits, mean, known, scored, failed, slack):
    """Whether an arm keeps all limits r x >= theta: by its mean (D,) or, where a row failed, its sums."""
    kept = failed == 0.0 or scored > 0.0
    for c in range(len(limits)):
        total = 0.0
        for d in range(len(mean)):
            total += limits[c, FIRST + d] * mean[d]
        middle = (limits[c, 2] - limits[c, 3]) / limits[c, 4] - slack
        kept &= total >= limits[c, 2] if failed == 0.0 else known[c, 0] >= middle * scored
    return kept


@part
def threshold_paired(given):
    """Threshold and Feasible, with the numbers of `limits_of`; each arm goes through its rows by itself.

    `counts` of an arm is 1 more than the rows that were taken in; `better`, `far`: capitals that it is in and out.
    """
    numbers, pulls, mean, scores, scratch, inside, out = given
    K, D, answered, least = len(pulls), np.int64(numbers[D_AT]), inside[0] >= 0, math.inf
    T, M = table_of(numbers, K, scratch, 0, 0, numbers[:0]), (len(numbers) - COMMON - 5) // (FIRST + D)
    limits = numbers[COMMON : COMMON + M * (FIRST + D)].reshape((M, FIRST + D))
    at, need = SIZE + ARMS * K, K / T.delta
    known = scratch[at : at + 4 * K * M].reshape((K, M, 4))  # sum and squares of r x, capitals that it is kept, and not
    T.head[OVER] = 1.0
    for i in range(K):
        n, failed, own = T.counts[i] - 1.0, T.order[i], mean[i * D : (i + 1) * D]
        while T.verdict[i] == OPEN and n < min(pulls[i], T.N):
            row, T.better[i], T.far[i], lost = (i * T.N + int(n)) * D, math.inf, 0.0, False
            for c in range(M):
                one, x = known[i, c], 0.0
                for d in range(D):
                    x += limits[c, FIRST + d] * scores[row + d]
                low, width, off = limits[c, 3], limits[c, 4], limits[c, 5]
                x = (x - low) / width
                if n == 0.0:
                    one[0] = one[1] = 0.0
                    one[2] = one[3] = 1.0
                if math.isnan(x):
                    lost = True
                else:
                    S, square, m, N = one[0], one[1], n - failed, T.N - failed
                    fall, rise = (limits[c, 0] - low) / width + off, (limits[c, 1] - low) / width - off
                    middle = (limits[c, 2] - low) / width
                    one[2] = one[2] if one[2] >= need else grown_alone(one[2], x, S, square, 1.0, fall, m, N)
                    one[3] = grown_alone(one[3], x, S, square, -1.0, rise, m, N)
                    one[0], one[1] = S + x, square + (x - middle) * (x - middle)
                T.better[i], T.far[i] = min(T.better[i], one[2]), T.far[i] + one[3] / M
            n, failed = n + 1.0, failed + (1.0 if lost else 0.0)
            T.counts[i] = n + 1.0
            if n >= T.N and failed < n:
                T.verdict[i] = IN if keeps_all(limits, own, known[i], n - failed, failed, ROUNDING) else OUT
            elif max(T.better[i], T.far[i]) >= need:
                T.verdict[i] = IN if T.better[i] >= T.far[i] else OUT
        T.order[i] = failed
        inside_now = T.verdict[i] == IN
        if T.verdict[i] == OPEN and pulls[i] > 0:
            inside_now = keeps_all(limits, own, known[i], n - failed, failed, 0.0)
        T.answer[i] = 1.0 if inside_now else 0.0
        if T.verdict[i] == OPEN:
            T.head[OVER], least = 0.0, min(least, T.better[i] if inside_now else T.far[i])
        else:
            T.counts[i] = 0.0
    settle(T, math.log(least / K) if least > 0.0 else 0.0)
    report(T, pulls, inside, out, answered)
