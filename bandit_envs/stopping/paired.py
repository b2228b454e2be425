"""Certificates of the columns of a table, whose N rows all arms meet in one random order, without replacement.

The statistic goes row by row, over the arms that still count: a row is taken in once all of them have shown it. So
which arms are looked at in a row is decided by the rows before it, whatever rule has chosen the pulls.

A pair (i, j) is judged by D_n = p u_i - q u_j in the n-th row, u the scores, scaled to [0, 1]. Where the mean of D over
the table is -e at most, its mean in the n-th row, given those before, is at most

    m_n = (-N e - S_{n-1}) / (N - n + 1),    S the sum of D so far,

and the capital prod (1 + l_n (D_n - m_n)), 0 <= l_n < 1 / (q + m_n), is a supermartingale (Waudby-Smith & Ramdas, NeurIPS
2020, section 3): it ever reaches x with probability 1 / x at most. The same holds of a mean of several. Where the rows
that are left cannot make up for the lead, no table has such a mean, and the capital is inf.

TopK       An arm is out for good when so many are better (e = 0) that it cannot be among the best, and in when it is
           better than so many; never because another is within epsilon of it: errors of epsilon would add up along a
           chain. It ends when each of the k that have the largest sums is at most epsilon worse (e = epsilon) than
           each of the others that still count. Of the right k arms and the others there are k (K - k) pairs: each
           pair's capital must be k (K - k) / delta. Where k = 1, see `follow`.
AllGood    An arm is not the best when the mean of the others' capitals against it (e = 0) is 2 / delta. One is bad when
           the mean of those capitals by which they are better by more than epsilon is 2 K / delta, and good when its own
           capital against each that may be the best is.
Threshold  Each arm by itself: above the threshold, or below it, when its capital is K / delta.

When the table is used up, means are known, and the answer is right.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.compiled import inlined, part
from ..kernels.routines import carray
from .boundaries import COMMON

__all__ = ["PAIRED_KINDS", "all_good_paired", "scratch_of_paired", "threshold_paired", "top_k_paired"]

PAIRED_KINDS = ("threshold", "top-k", "all-good")
BETS = (0.15, 0.45, 0.9)  # shares of the largest bet that cannot lose everything
B = len(BETS)
BEGUN, ROWS, OVER, LEVEL, SIZE = range(5)  # places in the head of the scratch; SIZE of the head
OPEN, IN, OUT = 0.0, 1.0, -1.0  # verdicts


class Table(NamedTuple):
    """What the certificate knows of an episode: all in the scratch, but for the scores."""

    head: Any  # (SIZE,)
    verdict: Any  # (K,)
    counts: Any  # (K,) whether an arm still counts
    sums: Any  # (K,) of its scaled scores, in the rows that were taken in
    row: Any  # (K,) its scaled scores in the next one
    better: Any  # (B, K, K) capitals: i is better than j
    enough: Any  # (B, K, K): i is not much worse than j
    far: Any  # (B, K, K): i is much better than j
    N: int
    low: float
    width: float
    delta: float


class Pair(NamedTuple):
    """A null hypothesis of a pair: the mean of p u_i - q u_j is -e at most."""

    p: float
    q: float
    e: float


def scratch_of_paired(kind: str, K: int) -> int:
    """Floats that the routine of a kind needs beyond those of every routine."""
    return SIZE + 4 * K + {"threshold": 2 * B * K, "top-k": 2 * B * K * K, "all-good": 3 * B * K * K}[kind]


@inlined
def table_of(numbers, K, scratch, pairs):
    """The `Table` in a scratch, begun where it was not."""
    at, size = SIZE + 4 * K, B * K * K if pairs > 0 else B * K
    N, low, width, delta = numbers[len(numbers) - 4 :]
    arms = scratch[SIZE:at].reshape((4, K))
    if scratch[BEGUN] == 0.0:
        scratch[: at + max(pairs, 2) * size] = 1.0
        scratch[:at] = 0.0
        arms[1, :], scratch[BEGUN] = 1.0, 1.0
    shape = (B, K, K) if pairs > 0 else (B, K, 1)
    better = scratch[at : at + size].reshape(shape)
    enough = scratch[at + size : at + 2 * size].reshape(shape)
    far = scratch[at + 2 * size : at + 3 * size].reshape(shape) if pairs > 2 else better
    return Table(scratch[:SIZE], arms[0], arms[1], arms[2], arms[3], better, enough, far, int(N), low, width, delta)


@inlined
def shares(m, q):
    """The largest bet that cannot lose everything, where the mean is m at most."""
    return 1.0 / (q + m + 1e-12)


@inlined
def mean_left(S, e, left, N, low, high):
    """What the mean of the next row is at most, of `left` rows, where that of the table is -e at most."""
    return min(max((-N * e - S) / left, low), high)


@inlined
def grow(capital, i, j, D, S, pair, left, N):
    """Take in the next row of pair (i, j), D, whose sum so far is S."""
    m = mean_left(S, pair.e, left, N, -pair.q, pair.p)
    unit = shares(m, pair.q)
    for b in range(B):
        capital[b, i, j] *= 1.0 + BETS[b] * unit * (D - m)
    if S + D - pair.q * (left - 1) > -N * pair.e:
        for b in range(B):
            capital[b, i, j] = math.inf


@inlined
def capital_of(capital, i, j):
    """The capital of pair (i, j), over all bets."""
    x = 0.0
    for b in range(B):
        x += capital[b, i, j]
    return x / B


@inlined
def capital_against(capital, j):
    """The mean over all others of their capitals against arm j."""
    K, x = capital.shape[1], 0.0
    for i in range(K):
        if i != j:
            x += capital_of(capital, i, j)
    return x / (K - 1)


@inlined
def is_next(T, pulls):
    """Whether all arms that still count have shown the next row, whose scores are then at hand."""
    if T.head[OVER] != 0.0 or T.head[ROWS] >= T.N:
        return False
    for i in range(len(pulls)):
        if T.counts[i] != 0.0 and pulls[i] <= T.head[ROWS]:
            return False
    return True


@inlined
def look_at(T, scores):
    """Take the scores of the next row."""
    n = int(T.head[ROWS])
    for i in range(len(T.row)):
        if T.counts[i] != 0.0:
            T.row[i] = (scores[i * T.N + n] - T.low) / T.width


@inlined
def add_row(T):
    """Add the row to the sums."""
    for i in range(len(T.row)):
        if T.counts[i] != 0.0:
            T.sums[i] += T.row[i]
    T.head[ROWS] += 1.0


@inlined
def report(T, pulls, inside, out, answered):
    """Fill `out` and, where the caller has no answer, `inside`, whose answer of now is in T.row, of 0 and 1."""
    K, arm = len(pulls), -1
    for i in range(K):
        if T.counts[i] != 0.0 and (arm < 0 or pulls[i] < pulls[arm]):
            arm = i
    out[0], out[1], out[2] = T.head[LEVEL], 1.0, max(arm, 0)
    out[2 + K] = out[2 + 2 * K] = 0.0
    for i in range(K):
        if inside[i] != T.row[i] and answered:
            out[0] = 0.0
        inside[i] = np.int8(T.row[i])


# --- the k best arms --------------------------------------------------------------------------------------------------


@inlined
def ranked(T, i, how):
    """How many arms that are not decided yet have larger values than arm i, ties to the lowest."""
    before = 0
    for j in range(len(how)):
        if j != i and T.verdict[j] == OPEN and (how[j] > how[i] or (how[j] == how[i] and j < i)):
            before += 1
    return before


@part
def take_in_top_k(T, epsilon):
    """Take in a row."""
    N, left, K = T.N, T.N - T.head[ROWS], len(T.row)
    e = epsilon / T.width
    for i in range(K):
        if T.counts[i] == 0.0:
            continue
        for j in range(K):
            if j == i or T.counts[j] == 0.0:
                continue
            D, S = T.row[i] - T.row[j], T.sums[i] - T.sums[j]
            m, close = mean_left(S, 0.0, left, N, -1.0, 1.0), mean_left(S, e, left, N, -1.0, 1.0)
            unit = shares(m, 1.0)  # the same bets, so that the one capital is never below the other
            for b in range(B):
                T.better[b, i, j] *= 1.0 + BETS[b] * unit * (D - m)
                T.enough[b, i, j] *= 1.0 + BETS[b] * unit * (D - close)
            lead = S + D - (left - 1)
            for b in range(B):
                T.better[b, i, j] = math.inf if lead > 0.0 else T.better[b, i, j]
                T.enough[b, i, j] = math.inf if lead > -N * e else T.enough[b, i, j]


@part
def decide_top_k(T, k):
    """Which arms are in or out for good, and whether it is over."""
    K = len(T.row)
    pairs, places, others = float(k * (K - k)), k, K - k
    need = pairs / T.delta
    for i in range(K):
        places -= 1 if T.verdict[i] == IN else 0
        others -= 1 if T.verdict[i] == OUT else 0
    for i in range(K):  # by the capitals of before this step, for all
        if T.verdict[i] == OPEN:
            above = below = 0
            for j in range(K):
                if j != i and T.counts[j] != 0.0:
                    above += 1 if capital_of(T.better, j, i) >= need else 0
                    below += 1 if capital_of(T.better, i, j) >= need else 0
            T.row[i] = OUT if above >= places else IN if below >= others else OPEN
    for i in range(K):
        if T.verdict[i] == OPEN and T.row[i] != OPEN:
            T.verdict[i], T.counts[i] = T.row[i], 0.0
            places -= 1 if T.row[i] == IN else 0
            others -= 1 if T.row[i] == OUT else 0
    least = math.inf
    if places > 0 and others > 0:
        for i in range(K):
            if T.verdict[i] == OPEN and ranked(T, i, T.sums) < places:
                for j in range(K):
                    if T.verdict[j] == OPEN and ranked(T, j, T.sums) >= places:
                        least = min(least, capital_of(T.enough, i, j))
    T.head[OVER] = 1.0 if least >= need else 0.0
    settle(T, math.log(least / pairs) if least > 0.0 else 0.0)


@inlined
def settle(T, evidence):
    """Note -ln of the level: of the answer of now, where nothing that was decided before is less sure."""
    need, decided = math.log(1.0 / T.delta), T.head[OVER] != 0.0
    for i in range(len(T.verdict)):
        decided |= T.verdict[i] != OPEN
    T.head[LEVEL] = min(evidence, need) if decided else evidence
    if T.head[OVER] != 0.0:
        T.head[LEVEL] = max(T.head[LEVEL], need)


@part
def top_k_paired(numbers, pulls, mean, scores, scratch, inside, out):
    """TopK, with the numbers of `top_k_nearest`."""
    K, k, answered = len(pulls), int(numbers[COMMON]), inside[0] >= 0
    T = table_of(numbers, K, scratch, 2)
    while is_next(T, pulls):
        look_at(T, scores)
        take_in_top_k(T, numbers[COMMON + 1])
        add_row(T)
        decide_top_k(T, k)
    known, places = T.head[OVER] == 0.0 and T.head[ROWS] >= T.N, k
    for i in range(K):
        places -= 1 if T.verdict[i] == IN else 0
    for i in range(K):
        by = ranked(T, i, mean if known else T.sums)
        T.row[i] = 1.0 if T.verdict[i] == IN or (T.verdict[i] == OPEN and by < places) else 0.0
    if known:
        T.head[OVER], T.head[LEVEL] = 1.0, math.inf
        settle(T, math.inf)
    report(T, pulls, inside, out, answered)


# --- all arms nearly as good as the best ------------------------------------------------------------------------------


@part
def all_good_paired(numbers, pulls, mean, scores, scratch, inside, out):
    """AllGood, with the numbers of `all_good_nearest`.

    `verdict` is of being good; `counts` of an arm is 2 where it may be the best, 1 where it is only to be judged.
    """
    K, a, b, c, d = len(pulls), numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 3], numbers[COMMON + 4]
    T, answered = table_of(numbers, K, scratch, 3), inside[0] >= 0
    w, low, N = T.width, T.low, T.N
    better = Pair(1.0, 1.0, 0.0)
    enough, far = Pair(1.0, a, (low * (1.0 - a) - b) / w), Pair(1.0 / c, 1.0, (low * (1.0 / c - 1.0) - d / c) / w)
    if T.head[ROWS] == 0.0:
        for i in range(K):
            T.counts[i] = 2.0
    while is_next(T, pulls):
        look_at(T, scores)
        left = N - T.head[ROWS]
        for i in range(K):
            for j in range(K):
                if j != i and T.counts[i] != 0.0 and T.counts[j] != 0.0:
                    x, y, s, t = T.row[i], T.row[j], T.sums[i], T.sums[j]
                    grow(T.better, i, j, x - y, s - t, better, left, N)
                    grow(T.enough, i, j, x - enough.q * y, s - enough.q * t, enough, left, N)
                    grow(T.far, i, j, far.p * x - y, far.p * s - t, far, left, N)
        add_row(T)
        decide_all_good(T)
    best = -math.inf
    known = T.head[OVER] == 0.0 and T.head[ROWS] >= N
    for i in range(K):
        if T.counts[i] == 2.0:
            best = max(best, mean[i] if known else low + w * T.sums[i] / max(T.head[ROWS], 1.0))
    keep = min(numbers[COMMON + 6] * best + numbers[COMMON + 7], best)
    for i in range(K):
        now = mean[i] if known else low + w * T.sums[i] / max(T.head[ROWS], 1.0)
        T.row[i] = 1.0 if T.verdict[i] == IN or (T.verdict[i] == OPEN and now >= keep) else 0.0
    if known:
        T.head[OVER] = 1.0
        settle(T, math.inf)
    report(T, pulls, inside, out, answered)


@part
def decide_all_good(T):
    """Which arms are good, bad, or not the best, and whether it is over."""
    K, least = len(T.row), math.inf
    need, open_ = 2.0 * K / T.delta, 0
    for i in range(K):
        T.row[i] = T.counts[i]
        if T.counts[i] == 2.0 and capital_against(T.better, i) >= 2.0 / T.delta:
            T.row[i] = 1.0
        if T.verdict[i] == OPEN and capital_against(T.far, i) >= need:
            T.verdict[i] = OUT
    for i in range(K):
        T.counts[i] = min(T.row[i], 0.0 if T.verdict[i] == OUT else 2.0)
    for i in range(K):
        if T.verdict[i] == OPEN:
            found = math.inf
            for j in range(K):
                if j != i and T.counts[j] == 2.0:
                    found = min(found, capital_of(T.enough, i, j))
            if found >= need:
                T.verdict[i] = IN
            else:
                open_ += 1
                least = min(least, max(found, capital_against(T.far, i)))
    for i in range(K):
        if T.verdict[i] != OPEN and T.counts[i] == 1.0:
            T.counts[i] = 0.0
    T.head[OVER] = 1.0 if open_ == 0 else 0.0
    settle(T, math.log(least / (2.0 * K)) if least > 0.0 else 0.0)


# --- arms above a threshold -------------------------------------------------------------------------------------------


@part
def threshold_paired(numbers, pulls, mean, scores, scratch, inside, out):
    """Threshold, with the numbers of `threshold_nearest`; each arm goes through its rows by itself."""
    K, answered, least = len(pulls), inside[0] >= 0, math.inf
    T = table_of(numbers, K, scratch, 0)
    above = Pair(1.0, 0.0, (T.low - numbers[COMMON]) / T.width)
    below, need = Pair(0.0, 1.0, (numbers[COMMON + 1] - T.low) / T.width), K / T.delta
    T.head[OVER], evidence = 1.0, math.inf
    for i in range(K):
        n = T.counts[i] - 1.0  # rows that were taken in, and 1; 0 of an arm that is decided
        while T.verdict[i] == OPEN and n < min(pulls[i], T.N):
            x, S, left = (scores[i * T.N + int(n)] - T.low) / T.width, T.sums[i], T.N - n
            grow(T.better, i, 0, x, S, above, left, T.N)
            grow(T.enough, i, 0, -x, -S, below, left, T.N)
            T.sums[i], n = S + x, n + 1.0
            T.counts[i] = n + 1.0
            if max(capital_of(T.better, i, 0), capital_of(T.enough, i, 0)) >= need:
                T.verdict[i] = IN if capital_of(T.better, i, 0) >= capital_of(T.enough, i, 0) else OUT
            elif n >= T.N:
                T.verdict[i] = IN if mean[i] >= numbers[COMMON + 2] else OUT
        if T.verdict[i] == OPEN:
            T.head[OVER] = 0.0
            least = min(least, max(capital_of(T.better, i, 0), capital_of(T.enough, i, 0)))
        else:
            T.counts[i] = 0.0
        T.row[i] = 1.0 if T.verdict[i] == IN or (T.verdict[i] == OPEN and mean[i] >= numbers[COMMON + 2]) else 0.0
        T.row[i] = 0.0 if pulls[i] == 0 else T.row[i]
    settle(T, math.log(least / K) if T.head[OVER] == 0.0 else math.inf)
    report(T, pulls, inside, out, answered)
