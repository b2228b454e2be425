"""Certificates of the columns of a table, whose N rows all arms meet in one random order, without replacement.

docs/tables.md says what is certified, also where scores could not be made (NaN). The statistic goes row by row: a row
is taken in once all arms that still count have shown it.

A pair (i, j) is judged by D_n = p u_i - q u_j in the n-th row, u the scores, scaled to [0, 1]. Where the mean of D over
the table is -e at most, its mean in the n-th row, given those before, is at most

    m_n = (-N e - S_{n-1}) / (N - n + 1),    S the sum of D so far,

and the capital prod (1 + l_n (D_n - m_n)), 0 <= l_n < 1 / (q + m_n), is a supermartingale (Waudby-Smith & Ramdas,
NeurIPS 2020, section 3). Where the rows that are left cannot make up for the lead, the capital is inf.

A bet is predictable: l = h / (v + h^2), h what the rows before have D exceed m by, and v how much scores differ in a
row. The bets of one process may be on several i, one in each row or all in one, if the null says the same of all of
them. To end with a tolerance h must hope for some e more than the rows say. So the capitals of TopK are sums, one
product for each hope, begun at weights that sum up to 1.

TopK       k > 1. An arm is out for good when so many are better (e = 0) that it cannot be among the best, and in when
           it is better than so many. It ends when each of the k that rank first is at most epsilon worse than each of
           the others that still count. Each of the k (K - k) pairs must make k (K - k) / delta.
AllGood    An arm is not the best when the bets on the leader against it (e = 0) have made 2 / delta. One is bad when
           bets that the leader is better by more than epsilon have made 2 K / delta, and good when bets that it is not
           much worse have, against each that may be the best.
BestArm    k = 1: `paired_best`. Threshold, Feasible: `paired_alone`.

Blocks of a session are rows without an end, N = inf: m_n is -e, whatever the earlier rows, if no block changes the mean
difference of two arms. An effect of the block that all arms of it have drops out of D where p = q.

Scores may be less what is known beforehand and has a mean of 0 over the rows: a judge's, see docs/tables.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.compiled import inlined, part
from .boundaries import COMMON

PAIRED_KINDS = ("threshold", "polyhedron", "top-k", "all-good")
FIRST = 6  # numbers of a limit before its r: those of `limits_of`
SAFE = 0.98  # a bet never risks more than this part of the capital
PRIOR = 5.0  # rows that are imagined before the first, without a difference, with squares that sum up to 1
HOPES = np.array([0.0, 0.5, 1.5])  # epsilons that bets hope for beyond what the rows say
WEIGHTS = np.array([0.2, 0.5, 0.3])  # of the capitals of these bets, at the beginning
SINGLE = np.ones(1)  # without epsilon all these bets are the same
ROUNDING = 1e-11  # of N rows: sums that differ by less may be equal, and are left to the means of the whole table
OFF = 2.0**-50  # of the size of scores: a number of a problem may be off by as much, once it is scaled
ENDLESS = 1e300  # rows of blocks: so many that rows which were drawn change nothing, to the last bit
MOST = 1e200  # capital, so that none is inf where a table may still have such means
BEGUN, ROWS, OVER, LEVEL, SPREAD, FAILED = range(6)  # places in the head of the scratch
SIZE, ARMS, TRAIL = 9, 9, 15  # numbers of the head, with those of BestArm; for each arm; in a row of the trail
OPEN, IN, OUT = 0.0, 1.0, -1.0  # verdicts


class Table(NamedTuple):
    """What the certificate knows of an episode: all in the scratch, but for the scores."""

    head: Any  # (SIZE,)
    verdict: Any  # (K,)
    counts: Any  # (K,) whether an arm still counts
    sums: Any  # (K,) of its scaled scores, in the rows that were taken in
    row: Any  # (K,) its scaled scores in the next one
    answer: Any  # (K,) of now, 0 and 1
    order: Any  # (K,) what arms are ranked by: their sums; where a score could not be made, see `rank`
    better: Any  # (K,) capitals against an arm
    far: Any  # (K,) capitals of another kind; of BestArm 1 until arm i of `pairs` and `enough` is begun
    taken: Any  # (K,) the rows of an arm that were taken in; not of `paired_alone`
    gaps: Any  # (K, K) of arms i < j: at (i, j) what their sums differ by in rows without either's score; (j, i): rows
    pairs: Any  # (hopes, K, K): capitals of arm i, against arm j; of BestArm 1, and 0 where j is settled with i
    enough: Any  # (hopes, K, K): capitals that arm i is not much worse than j, or what such bets have made more
    N: int  # rows that the scores have places for
    whole: float  # rows that there are
    low: float
    width: float
    delta: float
    trail: Any  # (N, TRAIL), of BestArm: what was known before each row
    hint: Any  # (2, K), of BestArm: 0, and means that arms may have, scaled, which bets begin with
    worth: float  # rows that the hint is worth at first
    off: float  # by how much scaled numbers of the problem may be off


class Pair(NamedTuple):
    """A null hypothesis of a pair: the mean of p u_i - q u_j is -e at most."""

    p: float
    q: float
    e: float


def scratch_of_paired(kind: str, K: int, k: float, N: int) -> int:
    """Floats that the routine of a kind needs beyond those of every routine; k of TopK, or the number of limits."""
    if kind in ("threshold", "polyhedron"):
        return SIZE + ARMS * K + 4 * K * int(k)
    squares = 2 if kind == "all-good" else 3 if k == 1 else 1 + 2 * len(HOPES)
    return SIZE + ARMS * K + squares * K * K + (N * TRAIL if kind == "top-k" and k == 1 else 0)


@inlined
def table_of(numbers, K, scratch, before, behind, weights, noted=False):
    """The `Table` in a scratch, begun where it was not; of so many squares `pairs` and `enough`, none: Threshold."""
    at, square, n = SIZE + ARMS * K, K * K if behind > 0 else 0, len(numbers)
    first, second, end = at + square, at + (1 + before) * square, at + (1 + before + behind) * square
    gaps = scratch[at:first].reshape((K if square else 0, K))
    pairs, enough = scratch[first:second].reshape((before, K, K)), scratch[second:end].reshape((behind, K, K))
    arms = scratch[SIZE:at].reshape((ARMS, K))
    if scratch[BEGUN] == 0.0:
        scratch[: at if noted else first] = 0.0  # of BestArm squares are begun as they are needed
        arms[1] = arms[6:8] = scratch[first : first if noted else end] = scratch[BEGUN] = 1.0
        for h in range(0 if noted else before):
            pairs[h] = enough[h] = weights[h]
    rows, low, width, delta = numbers[n - 4], numbers[n - 3], numbers[n - 2], numbers[n - 1]
    N, whole = int(abs(rows)), ENDLESS if rows < 0.0 else rows
    trail = scratch[end : end + (N if noted else 0) * TRAIL].reshape((N if noted else 0, TRAIL))
    hint, worth = numbers[n - 5 - 2 * K if noted else n - 5 : n - 5].reshape((2, K if noted else 0)), numbers[n - 5]
    off = OFF * max(abs(low), abs(low + width)) / width if low != 0.0 else 0.0
    known = arms[0], arms[1], arms[2], arms[3], arms[4], arms[5], arms[6], arms[7], arms[8]
    return Table(scratch[:SIZE], *known, gaps, pairs, enough, N, whole, low, width, delta, trail, hint, worth, off)


@inlined
def bet_of(hope, variance, most):
    """The share of the capital that is bet for each unit of D - m, which is `hope` on average."""
    return min(hope / (variance + hope * hope), SAFE / (most + 1e-12)) if hope > 0.0 else 0.0


@inlined
def grown(capital, D, S, pair, T):
    """A capital after the next row of a pair, D, whose sum so far is S."""
    n = T.head[ROWS]
    left, Ne = T.whole - n, T.whole * pair.e
    if math.isnan(D):
        return capital
    if S + D - pair.q * (left - 1.0) > -Ne + ROUNDING * T.whole:  # what is left cannot make up for the lead
        return math.inf
    m = min(max((-Ne - S) / left, -pair.q), pair.p)
    bet = bet_of(S / (n + PRIOR) - m, variance_of(T), pair.q + m)
    return min(capital * (1.0 + bet * (D - m)), MOST) if n > 0.0 else capital


@inlined
def variance_of(T):
    """About the mean square of the difference of two arms in a row."""
    return (1.0 + T.head[SPREAD]) / (PRIOR + T.head[ROWS])


@inlined
def is_next(T, pulls):
    """Whether all arms that still count have shown the next row."""
    if T.head[OVER] != 0.0 or T.head[ROWS] >= T.N:
        return False
    shown = True
    for i in range(len(pulls)):
        shown &= T.counts[i] == 0.0 or pulls[i] > T.head[ROWS]
    return shown


@inlined
def leaders(T):
    """The arm that ranks first among those that still count, and the next one; -1 where there is none."""
    first = second = -1
    for i in range(len(T.order)):
        if T.counts[i] != 0.0:
            if first < 0 or T.order[i] > T.order[first]:
                first, second = i, first
            elif second < 0 or T.order[i] > T.order[second]:
                second = i
    return first, second


@inlined
def lead_of(T, i, j):
    """The sum of what arm i has more than arm j, over the rows in which both could be scored, and their number."""
    lead, n = T.sums[i] - T.sums[j], T.head[ROWS]
    if T.head[FAILED] != 0.0:
        lead, n = lead - (T.gaps[i, j] if i < j else -T.gaps[j, i]), n - T.gaps[max(i, j), min(i, j)]
    return lead, n


@part
def rank(T):
    """Where a score could not be made, an arm ranks by the arms that it is no worse than, and by the mean leads."""
    for i in range(len(T.order)):
        T.order[i] = T.sums[i] if T.head[FAILED] == 0.0 else 0.0
        for j in range(len(T.order) if T.head[FAILED] != 0.0 and T.counts[i] != 0.0 else 0):
            lead, n = lead_of(T, i, j)
            if j != i and T.counts[j] != 0.0 and n > 0.0:
                T.order[i] += lead / n / (2.0 * len(T.order)) + (1.0 if lead >= 0.0 else 0.0)


@inlined
def look_at(T, scores):
    """Take the scores of the next row."""
    n = int(T.head[ROWS])
    for i in range(len(T.row)):
        if T.counts[i] != 0.0:
            T.row[i] = (scores[i * T.N + n] - T.low) / T.width


@inlined
def note_failure(T):
    """Note that a score could not be made."""
    if T.head[FAILED] == 0.0:
        T.head[FAILED], T.gaps[:] = 1.0, 0.0


@part
def add_row(T):
    """Add the row to the sums, and to the mean square of the differences within rows."""
    count, total, squares, K = 0.0, 0.0, 0.0, len(T.row)
    for i in range(K):
        if T.counts[i] != 0.0:
            x, T.taken[i] = T.row[i], T.head[ROWS] + 1.0
            if math.isnan(x):
                note_failure(T)
            else:
                T.sums[i] += x
                count, total, squares = count + 1.0, total + x, squares + x * x
    for j in range(K if T.head[FAILED] != 0.0 else 0):
        for i in range(j if T.counts[j] != 0.0 else 0):
            if T.counts[i] != 0.0 and math.isnan(T.row[i] - T.row[j]):
                T.gaps[i, j] += 0.0 if math.isnan(T.row[i]) else T.row[i]
                T.gaps[i, j] -= 0.0 if math.isnan(T.row[j]) else T.row[j]
                T.gaps[j, i] += 1.0
    if count > 1.0:
        T.head[SPREAD] += 2.0 * max(count * squares - total * total, 0.0) / (count * (count - 1.0))
    T.head[ROWS] += 1.0


@inlined
def settle(T, evidence):
    """Note -ln of the level: of the answer of now, where nothing that was decided before is less sure."""
    need, decided = math.log(1.0 / T.delta), T.head[OVER] != 0.0
    for i in range(len(T.verdict)):
        decided |= T.verdict[i] != OPEN
    T.head[LEVEL] = min(evidence, need) if decided else evidence
    if T.head[OVER] != 0.0:
        T.head[LEVEL] = max(T.head[LEVEL], need)


@inlined
def report(T, pulls, inside, out, answered):
    """Fill `out` and, where the caller has no answer, `inside`, with the answer of now."""
    K, arm = len(pulls), -1
    for i in range(K):
        if T.counts[i] != 0.0 and (arm < 0 or pulls[i] < pulls[arm]):
            arm = i
    out[0], out[1], out[2] = T.head[LEVEL], 1.0, max(arm, 0)
    out[2 + K] = out[2 + 2 * K] = 0.0
    for i in range(K):
        if answered and inside[i] != T.answer[i]:
            out[0] = 0.0
        inside[i] = np.int8(T.answer[i])


# --- the k best arms, k > 1 -------------------------------------------------------------------------------------------


@inlined
def gains(T, i, j, e, hope):
    """What a bet that arm i is better than j makes of a capital in the next row: with e = 0, and what more with e."""
    D, left, (S, n) = T.row[i] - T.row[j], T.whole - T.head[ROWS], lead_of(T, i, j)
    if math.isnan(D) or S < 0.0:
        return 1.0, 0.0
    m, extra = max(-S / left, -1.0), e * (n + left) / left
    bet = bet_of(S / (n + PRIOR) - m + hope * extra, variance_of(T), 1.0 + m)
    return 1.0 + bet * (D - m), bet * extra


@part
def take_in_top_k(T, e):
    """Take in a row, k > 1."""
    for i in range(len(T.row)):
        for j in range(len(T.row)):
            if j != i and T.head[ROWS] > 0.0 and T.counts[i] != 0.0 and T.counts[j] != 0.0:
                for h in range(len(T.enough)):
                    factor, more = gains(T, i, j, e, HOPES[h])
                    T.pairs[h, i, j] = min(T.pairs[h, i, j] * factor, MOST)
                    T.enough[h, i, j] = min(T.enough[h, i, j] * (factor + more), MOST)


@inlined
def ranked(T, i, how):
    """How many arms that are not decided yet have larger values than arm i, ties to the lowest."""
    before = 0
    for j in range(len(how)):
        if j != i and T.verdict[j] == OPEN and (how[j] > how[i] or (how[j] == how[i] and j < i)):
            before += 1
    return before


@inlined
def left_of(T, k):
    """How many places in the answer are left, and how many out of it."""
    places, others = k, len(T.verdict) - k
    for i in range(len(T.verdict)):
        places -= 1 if T.verdict[i] == IN else 0
        others -= 1 if T.verdict[i] == OUT else 0
    return places, others


@part
def decide_top_k(T, k, e):
    """Which arms are in or out for good, and whether it is over."""
    K, left, least = len(T.row), T.whole * (1.0 + ROUNDING) - T.head[ROWS], math.inf
    number = float(k * (K - k))
    need, (places, others) = number / T.delta, left_of(T, k)
    for i in range(K):  # by the capitals of before this step, for all
        above = below = 0
        for j in range(K):
            if j != i and T.counts[i] != 0.0 and T.counts[j] != 0.0:
                lead, _ = lead_of(T, i, j)
                above += 1 if T.pairs[:, j, i].sum() >= need or -lead > left else 0
                below += 1 if T.pairs[:, i, j].sum() >= need or lead > left else 0
        T.row[i] = OUT if above >= places else IN if below >= others else OPEN
    for i in range(K):
        places, others = left_of(T, k)
        if T.counts[i] != 0.0 and (T.row[i] == IN and places > 0 or T.row[i] == OUT and others > 0):  # else an error
            T.verdict[i], T.counts[i] = T.row[i], 0.0
    places, others = left_of(T, k)
    if places > 0 and others > 0:
        for i in range(K):
            if T.verdict[i] == OPEN and ranked(T, i, T.order) < places:
                for j in range(K):
                    lead, n = lead_of(T, i, j)
                    within = lead + e * (n + T.whole - T.head[ROWS]) > left
                    if T.verdict[j] == OPEN and not within and ranked(T, j, T.order) >= places:
                        least = min(least, T.enough[:, i, j].sum())
    T.head[OVER] = 1.0 if least >= need else 0.0
    settle(T, math.log(least / number) if least > 0.0 else 0.0)


@inlined
def close(T, e):
    """It is over, as all rows are known, unless pairs without a row in common, or cycles, decide."""
    found = math.inf
    for i in range(len(T.answer) if T.head[FAILED] != 0.0 else 0):
        for j in range(len(T.answer)):
            if T.counts[i] * T.counts[j] * T.answer[i] * (1.0 - T.answer[j]) != 0.0:
                lead, n = lead_of(T, i, j)
                found = 0.0 if n == 0.0 or lead < -e * n - ROUNDING * T.whole else found
    T.head[OVER] = 1.0 if found > 0.0 else 0.0
    settle(T, found)


@part
def top_k_paired(given):
    """TopK with k > 1, with the numbers of `top_k_nearest`."""
    numbers, pulls, mean, scores, scratch, inside, out = given
    K, k, answered, e = len(pulls), int(numbers[COMMON]), inside[0] >= 0, numbers[COMMON + 1]
    weights = WEIGHTS if e > 0.0 else SINGLE
    T = table_of(numbers, K, scratch, len(weights), len(weights), weights)
    e, before = e / T.width, T.head[ROWS]
    while is_next(T, pulls):
        look_at(T, scores)
        take_in_top_k(T, e)
        add_row(T)
        rank(T)
        decide_top_k(T, k, e)
    known, (places, _) = T.head[OVER] == 0.0 and T.head[ROWS] >= T.whole, left_of(T, k)
    for i in range(K if T.head[ROWS] > before or before == 0.0 else 0):
        by = ranked(T, i, mean if known and T.head[FAILED] == 0.0 else T.order)
        T.answer[i] = 1.0 if T.verdict[i] == IN or (T.verdict[i] == OPEN and by < places) else 0.0
    if known:
        close(T, e)
    report(T, pulls, inside, out, answered)


# --- all arms nearly as good as the best ------------------------------------------------------------------------------


@part
def all_good_paired(given):
    """AllGood, with the numbers of `all_good_nearest`.

    `verdict` is of being good; `counts` of an arm is 2 where it may be the best, 1 where it is only to be judged.
    """
    numbers, pulls, mean, scores, scratch, inside, out = given
    K, a, b, c, d = len(pulls), numbers[COMMON], numbers[COMMON + 1], numbers[COMMON + 3], numbers[COMMON + 4]
    T, answered = table_of(numbers, K, scratch, 0, 1, SINGLE), inside[0] >= 0
    w, low = T.width, T.low
    better = Pair(1.0, 1.0, 0.0)
    enough = Pair(1.0, a, (low * (1.0 - a) - b) / w - T.off)
    far = Pair(1.0 / c, 1.0, (low * (1.0 / c - 1.0) - d / c) / w - T.off / c)
    if T.head[ROWS] == 0.0:
        T.counts[:] = 2.0
    while is_next(T, pulls):
        look_at(T, scores)
        first, second = leaders(T)
        for i in range(K):
            x, s, h = T.row[i], T.sums[i], first if i != first else second
            if T.counts[i] != 0.0 and h >= 0:
                T.better[i] = grown(T.better[i], T.row[h] - x, T.sums[h] - s, better, T)
                T.far[i] = grown(T.far[i], far.p * T.row[h] - x, far.p * T.sums[h] - s, far, T)
            for j in range(K):
                if j != i and T.counts[i] != 0.0 and T.counts[j] == 2.0:
                    D, S = x - enough.q * T.row[j], s - enough.q * T.sums[j]
                    T.enough[0, i, j] = grown(T.enough[0, i, j], D, S, enough, T)
        add_row(T)
        rank(T)
        decide_all_good(T)
    known, best, least, n = T.head[OVER] == 0.0 and T.head[ROWS] >= T.whole, -math.inf, math.inf, max(T.head[ROWS], 1.0)
    for i in range(K):
        if T.counts[i] == 2.0:
            best = max(best, mean[i] if known else low + w * T.sums[i] / n)
    keep = min(numbers[COMMON + 6] * best + numbers[COMMON + 7], best)
    for i in range(K):
        now = mean[i] if known else low + w * T.sums[i] / n
        T.answer[i] = 1.0 if T.verdict[i] == IN or (T.verdict[i] == OPEN and now >= keep) else 0.0
        if T.verdict[i] == OPEN and not known:
            least = min(least, T.row[i] if T.answer[i] != 0.0 else T.far[i])
    T.head[OVER] = 1.0 if known else T.head[OVER]
    settle(T, math.log(least / (2.0 * K)) if least > 0.0 else 0.0)
    if T.head[FAILED] != 0.0:
        T.head[OVER] = T.head[LEVEL] = 0.0
    report(T, pulls, inside, out, answered)


@part
def decide_all_good(T):
    """Which arms are good, bad, or not the best, and whether it is over; `row`: the capital that an arm is good."""
    K, over = len(T.row), 1.0
    need = 2.0 * K / T.delta
    for i in range(K):
        if T.verdict[i] == OPEN and T.far[i] >= need:
            T.verdict[i] = OUT
        if T.counts[i] == 2.0 and (T.better[i] >= 2.0 / T.delta or T.verdict[i] == OUT):
            T.counts[i] = 1.0
    for i in range(K):
        if T.verdict[i] == OPEN:
            found = math.inf
            for j in range(K):
                if j != i and T.counts[j] == 2.0:
                    found = min(found, T.enough[0, i, j])
            T.row[i] = found
            if found >= need:
                T.verdict[i] = IN
            else:
                over = 0.0
    for i in range(K):
        if T.verdict[i] != OPEN and T.counts[i] == 1.0:
            T.counts[i] = 0.0
    T.head[OVER] = over
