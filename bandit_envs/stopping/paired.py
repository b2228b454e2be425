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

Of BestArm, where a score could not be made, D_n is 0, and so is e in this row: the null is of the rows that both arms
could score.

BestArm    The bets against b are on the mean of the arms that lead by then, as many as make it grow most, with e = 0,
           or on the champion c alone, as if e = epsilon: on c once b will not be out before the search ends. Where b
           is the best, the null says of each arm i that leads that u_i - u_b is 0 at most on average, and -epsilon
           where i is worse by more; so it does of their mean. An arm is out for good when the capital against it is
           1 / delta. It is settled with c when the same bets, with e = epsilon for c, in the share that was on c,
           have made 1 / delta. Where b is the best, both products are at most that of these bets with e = epsilon for
           all i that are worse by more than epsilon, and e = 0 for the others. So one event covers dropping, settling
           and ending: it ends when all that are left are settled with the champion.
           An arm that is settled is not asked any more. Where another becomes the champion, with which it is not
           settled, it is asked for the rows that it has missed, and the bets against it go on where they stopped. Each
           is by what was noted when its row was taken in, `trail`, of the rows before. All that are asked again catch
           up before the next row is taken in, and what is decided then does not depend on who was pulled first: so
           this process is the same whenever it is looked at, in any order of pulls.
TopK       k > 1. An arm is out for good when so many are better (e = 0) that it cannot be among the best, and in when
           it is better than so many. It ends when each of the k that rank first is at most epsilon worse than each of
           the others that still count. Each of the k (K - k) pairs must make k (K - k) / delta.
AllGood    An arm is not the best when the bets on the leader against it (e = 0) have made 2 / delta. One is bad when
           bets that the leader is better by more than epsilon have made 2 K / delta, and good when bets that it is not
           much worse have, against each that may be the best.
Threshold  Each arm by itself: above the threshold, or below it, when such bets have made K / delta.
Feasible   Each arm by itself, with M limits r x >= theta of its D scores; Threshold is the case of one. It is in when
           the bets on each limit have made K / delta, at whatever time: where it violates one, those on this one
           seldom do. It is out when the mean of the M capitals of bets that a limit is violated is K / delta: where it
           keeps all limits, each of these is a supermartingale, and so is their mean.

Blocks of a session are rows without an end, N = inf: m_n is -e, whatever the earlier rows, if no block changes the mean
difference of two arms. An effect of the block that all arms of it have drops out of D where p = q.

Scores may be less what is known beforehand and has a mean of 0 over the rows: a judge's, see docs/tables.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.compiled import inlined, part
from .boundaries import COMMON, D_AT

PAIRED_KINDS = ("threshold", "polyhedron", "top-k", "all-good")
FIRST = 6  # numbers of a limit before its r: those of `limits_of`
SAFE = 0.98  # a bet never risks more than this part of the capital
PRIOR = 5.0  # rows that are imagined before the first, without a difference, with squares that sum up to 1
HOPES = np.array([0.0, 0.5, 1.5])  # epsilons that bets hope for beyond what the rows say
WEIGHTS = np.array([0.2, 0.5, 0.3])  # of the capitals of these bets, at the beginning
SINGLE = np.ones(1)  # without epsilon all these bets are the same
RIVALS = 3  # arms that one bet is on, at most
ONE, EACH = 0.1, 0.2  # the sum of squares that BestArm imagines before the first row, and their mean
SURE, UNSURE, MOST_PRIOR = 3.0, 5.0, 100.0  # rows that say that leads are shrunk by UNSURE rows, at most by MOST_PRIOR
HINTED = 25.0  # rows that a hint is worth at first, and a bet before the first row half of it
STAY = 0.3  # epsilons by which the champion may be worse than the leader, by the rows so far
ROUNDING = 1e-11  # of N rows: sums that differ by less may be equal, and are left to the means of the whole table
OFF = 2.0**-50  # of the size of scores: a number of a problem may be off by as much, once it is scaled
ENDLESS = 1e300  # rows of blocks: so many that rows which were drawn change nothing, to the last bit
MOST = 1e200  # capital, so that none is inf where a table may still have such means
BEGUN, ROWS, OVER, LEVEL, SPREAD, FAILED = range(6)  # places in the head of the scratch
CHAMPION, APART, END, SIZE = range(6, 10)  # of BestArm; SIZE of the head
ARMS = 9  # numbers for each arm
# A row of the trail: the arms in its places, those that lead and the champion where it is not among them (-1: none);
# their sums; the champion's place; the variance of differences; how many rows are imagined, and are
# of the hint; the rows until the end.
LAST = RIVALS + 1  # place
CHAMPION_AT, V_AT, PRIOR_AT, WORTH_AT, END_AT, TRAIL = range(2 * LAST + 2, 2 * LAST + 8)
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
    far: Any  # (K,) capitals of another kind
    taken: Any  # (K,) of BestArm, the rows of an arm that were taken in
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
        scratch[:first] = 0.0
        arms[1] = arms[6:8] = scratch[first:end] = scratch[BEGUN] = 1.0
        for h in range(before):
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


@part
def add_row(T):
    """Add the row to the sums, and to the mean square of the differences within rows."""
    count, total, squares, K = 0.0, 0.0, 0.0, len(T.row)
    for i in range(K):
        if T.counts[i] != 0.0:
            x = T.row[i]
            if math.isnan(x):
                T.head[FAILED] = 1.0
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
    rank(T)


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


# --- the k best arms --------------------------------------------------------------------------------------------------


@inlined
def gains(T, i, j, e, hope):
    """What a bet that arm i is better than j makes of a capital in the next row: with e = 0, and what more with e."""
    D, left, (S, n) = T.row[i] - T.row[j], T.whole - T.head[ROWS], lead_of(T, i, j)
    if math.isnan(D) or S < 0.0:
        return 1.0, 0.0
    m, extra = max(-S / left, -1.0), e * (n + left) / left
    bet = bet_of(S / (n + PRIOR) - m + hope * extra, variance_of(T), 1.0 + m)
    return 1.0 + bet * (D - m), bet * extra


@inlined
def prior_of(T, hint, begun):
    """How many rows of a hint (K,) the rows are mixed with: the variance within rows over that of the means around it.

    So a lead is its mean given the rows, where means are normal (Efron & Morris, JASA 1973); `begun` is what it is
    before the first row. A hint of 0 is none: leads are shrunk.
    """
    rows = total = spread = 0.0
    for i in range(len(T.sums)):
        rows, total = rows + T.taken[i], total + T.sums[i] - T.taken[i] * hint[i]
    for i in range(len(T.sums)):
        if T.taken[i] > 0.0:
            spread += T.taken[i] * (T.sums[i] / T.taken[i] - hint[i] - total / rows) ** 2
    n, within = T.head[ROWS], T.head[APART] / 2.0
    among = (spread - within * (len(T.sums) - 1.0)) / max(rows, 1.0)
    one = (SURE / begun + n * among / (within + 1e-12)) / (SURE + n)
    return 1.0 / min(max(one, 1.0 / max(MOST_PRIOR, begun)), 1.0)


@part
def note_row(T):
    """Note what is known before the next row: who leads, the champion, their sums, and what bets are made by."""
    n, champion, everyone = T.head[ROWS], T.head[CHAMPION] - 1.0, True
    note = T.trail[int(n)]
    note[: LAST + 1] = -1.0
    if T.head[FAILED] != 0.0:
        rank(T)
    for i in range(len(T.order)):
        everyone &= T.counts[i] != 0.0
    note[V_AT] = (ONE + T.head[SPREAD]) / (n + ONE / EACH)
    if everyone or n == 0.0:
        T.head[APART] = note[V_AT]
    note[PRIOR_AT], note[WORTH_AT] = prior_of(T, T.hint[0], UNSURE), 0.0
    if T.worth > 0.0:
        trusted = prior_of(T, T.hint[1], T.worth)
        if trusted >= note[PRIOR_AT]:
            note[PRIOR_AT], note[WORTH_AT] = (trusted if n > 0.0 else 2.0 * trusted), trusted
    for i in range(len(T.order)):
        a, at = LAST if T.counts[i] != 0.0 else 0, T.order[i] + note[WORTH_AT] * T.hint[1, i]
        while a > 0 and (note[a - 1] < 0.0 or at > note[LAST + a]):
            if a < LAST:
                note[a], note[LAST + 1 + a] = note[a - 1], note[LAST + a]
            note[a - 1], note[LAST + a] = i, at
            a -= 1
    note[CHAMPION_AT] = 0.0 if n == 0.0 else LAST
    for a in range(LAST):
        note[LAST + 1 + a] = T.sums[int(note[a])] if note[a] >= 0.0 else 0.0
        note[CHAMPION_AT] = a if note[a] == champion and n > 0.0 else note[CHAMPION_AT]
    if note[CHAMPION_AT] == LAST:
        note[LAST], note[2 * LAST + 1] = champion, T.sums[int(champion)]
    note[END_AT], T.head[END] = T.head[END] if n > 0.0 else math.inf, 0.0


@inlined
def lead_then(T, note, a, b, n):
    """The lead over arm b of the arm in place a of a note, by the rows before that both could score, and their number.

    And what it is with the rows that a hint is worth.
    """
    i, lead = int(note[a]), note[LAST + 1 + a] - T.sums[b]
    if T.head[FAILED] != 0.0:
        lead, n = lead - (T.gaps[i, b] if i < b else -T.gaps[b, i]), n - T.gaps[max(i, b), min(i, b)]
    return lead, float(n), lead + note[WORTH_AT] * (T.hint[1, i] - T.hint[1, b])


@inlined
def score_of(T, scores, i, n):
    """The scaled score of arm i in row n."""
    return (scores[i * T.N + n] - T.low) / T.width


@inlined
def growth_of(hope, variance, most):
    """How much a bet makes the ln of a capital grow in a row, about."""
    bet = bet_of(hope, variance, most)
    return bet * hope - 0.5 * bet * bet * (variance + hope * hope)


@part
def rivals_of(T, b, n, e):
    """The arms that the bets against arm b are on in row n, from a first place to before a last, and their hope."""
    note, left, own = T.trail[n], T.whole - n, -1
    imagined, missing = n + note[PRIOR_AT], math.log(1.0 / T.delta / T.better[b])
    best = total = begun = hope = count = 0.0
    first, last = 0, 0
    for a in range(LAST):
        if note[a] >= 0.0 and int(note[a]) != b and count < RIVALS:
            S, _, with_hint = lead_then(T, note, a, b, n)
            count, total, begun = count + 1.0, total + S, begun + with_hint
            hoped = (begun / imagined + total / left) / count
            growth = growth_of(hoped, note[V_AT] * (1.0 + 1.0 / count) / 2.0, 1.0 - total / count / left)
            if growth > best:
                best, last, hope = growth, a + 1, hoped
        elif int(note[a]) == b:
            own = a
    c = int(note[CHAMPION_AT])
    c = c if c != own else 1 if own == 0 else 0
    if e > 0.0 and note[c] >= 0.0 and T.pairs[0, int(note[c]), b] != 0.0:
        S, both, with_hint = lead_then(T, note, c, b, n)
        hoped = with_hint / imagined + (S + e * (both + left)) / left
        growth = growth_of(hoped, note[V_AT], 1.0 - S / left)
        if growth > 0.0 and (best == 0.0 or missing / best >= note[END_AT]):
            first, last, hope = c, c + 1, hoped
        if n == int(T.head[ROWS]) and own != int(note[CHAMPION_AT]):  # it is not the champion
            end = (missing - math.log(T.enough[0, int(note[c]), b])) / growth if growth > 0.0 else math.inf
            T.head[END] = max(T.head[END], end)
    return first, last, hope


@part
def take_in_best(T, scores, b, n, e):
    """Take in row n of arm b, k = 1: bets against it, what they make more with epsilon, and what is certain then."""
    note, left, x = T.trail[n], T.whole - n, score_of(T, scores, b, n)
    first, last, hope = rivals_of(T, b, n, e) if n > 0 or note[WORTH_AT] > 0.0 else (0, 0, 0.0)
    D, m, on = 0.0, 0.0, 0.0
    for a in range(first, last):
        if int(note[a]) != b:
            gap = score_of(T, scores, int(note[a]), n) - x
            D += 0.0 if math.isnan(gap) else gap
            m, on = m + max(-lead_then(T, note, a, b, n)[0] / left, -1.0), on + 1.0
    share = 1.0 / max(on, 1.0)
    D, m = D * share, m * share
    bet = bet_of(hope, note[V_AT] * (1.0 + share) / 2.0, 1.0 + m) if on > 0.0 and m < 1.0 else 0.0
    factor, need, rest = 1.0 + bet * (D - m), 1.0 / T.delta, T.whole * (1.0 + ROUNDING) - n - 1.0
    T.better[b] = min(T.better[b] * factor, MOST)
    out = T.better[b] >= need
    for a in range(LAST + 1):
        i = int(note[a])
        if i >= 0 and i != b:
            gap, (S, both, _) = score_of(T, scores, i, n) - x, lead_then(T, note, a, b, n)
            both_now = 0.0 if math.isnan(gap) else 1.0
            if first <= a and a < last:
                more = bet * share * e * (both + both_now * left) / left
                T.enough[0, i, b] = min(T.enough[0, i, b] * (1.0 + more / factor), MOST)
            S += gap if both_now > 0.0 else 0.0
            out |= rest < S
            if T.better[b] * T.enough[0, i, b] >= need or S + e * (both + both_now + left - 1.0) > rest:
                T.pairs[0, i, b] = 0.0
    if out:
        T.verdict[b] = OUT


@part
def decide_best(T, e):
    """The champion, who is asked on, and whether it is over."""
    K, leader, n = len(T.row), -1, T.head[ROWS]
    known = n >= T.whole
    for i in range(K):
        if T.verdict[i] == OUT:
            T.counts[i] = 0.0
    if T.head[FAILED] != 0.0:
        rank(T)
    for i in range(K):
        if T.counts[i] != 0.0 and T.taken[i] == n and (leader < 0 or T.order[i] > T.order[leader]):
            leader = i
    if leader < 0:  # an error, of probability delta at most
        leader = int(T.trail[int(n) - 1, 0])  # it was asked in the last row
        T.verdict[leader], T.counts[leader] = OPEN, 1.0
    c = int(T.head[CHAMPION]) - 1
    if c < 0 or T.counts[c] == 0.0 or known or lead_of(T, leader, c)[0] > STAY * e * n:
        c = leader
    T.head[CHAMPION], over, least = c + 1.0, 1.0, math.inf
    for b in range(K):
        if T.verdict[b] == OPEN and b != c:
            lead, both = lead_of(T, c, b)
            if known and T.taken[b] >= n and e > 0.0 and both > 0.0 and lead + e * both >= -ROUNDING * n:
                T.pairs[0, c, b] = 0.0
            settled = e > 0.0 and T.pairs[0, c, b] == 0.0
            T.counts[b] = 0.0 if settled and T.whole < ENDLESS else 1.0  # blocks that are over stay as they are
            if not settled:
                over, least = 0.0, min(least, T.better[b] * T.enough[0, c, b])
    T.head[OVER] = over
    settle(T, math.log(least) if least > 0.0 else 0.0)


@part
def catch_up(T, scores, pulls, e):
    """Take in the rows that arms have missed while they were settled, as far as they have shown them by now.

    Nothing is decided before all of them have caught up, or are out or settled with the champion of before: so it does
    not matter who is pulled first, nor what whoever chooses it has seen.
    """
    moved, behind, champion = False, False, int(T.head[CHAMPION]) - 1
    for b in range(len(T.row)):
        while T.counts[b] != 0.0 and T.taken[b] < min(T.head[ROWS], pulls[b]):
            n, moved = int(T.taken[b]), True
            take_in_best(T, scores, b, n, e)
            x = score_of(T, scores, b, n)
            for i in range(len(T.row)):
                y = score_of(T, scores, i, n) if T.taken[i] > n else 0.0
                if i != b and T.taken[i] > n and math.isnan(x + y):
                    T.head[FAILED] = 1.0
                    gap = (0.0 if math.isnan(x) else x) - (0.0 if math.isnan(y) else y)
                    T.gaps[min(i, b), max(i, b)] += gap if b < i else -gap
                    T.gaps[max(i, b), min(i, b)] += 1.0
            T.sums[b] += 0.0 if math.isnan(x) else x
            T.taken[b] += 1.0
            if T.verdict[b] == OUT or T.pairs[0, champion, b] == 0.0:
                T.counts[b] = 0.0
            T.order[b] = T.sums[b]
        behind |= T.counts[b] != 0.0 and T.taken[b] < T.head[ROWS]
    if moved and not behind:
        decide_best(T, e)
    return moved


@part
def best_paired(T, scores, pulls, e):
    """TopK with k = 1: take in what has been shown."""
    while True:
        if catch_up(T, scores, pulls, e):
            continue
        if not is_next(T, pulls):
            return
        note_row(T)
        for b in range(len(pulls)):
            if T.counts[b] != 0.0:
                take_in_best(T, scores, b, int(T.head[ROWS]), e)
        look_at(T, scores)
        add_row(T)
        for b in range(len(pulls)):
            if T.counts[b] != 0.0:
                T.taken[b] = T.head[ROWS]
        decide_best(T, e)


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
def evidence_at_the_end(T, e):
    """inf where all rows say that the answer is right; 0 where pairs without a row in common, or cycles, decide."""
    for i in range(len(T.answer) if T.head[FAILED] != 0.0 else 0):
        for j in range(len(T.answer)):
            if T.counts[i] * T.counts[j] * T.answer[i] * (1.0 - T.answer[j]) != 0.0:
                lead, n = lead_of(T, i, j)
                if n == 0.0 or lead < -e * n - ROUNDING * T.whole:
                    return 0.0
    return math.inf


@part
def top_k_paired(given):
    """TopK, with the numbers of `top_k_nearest`."""
    numbers, pulls, mean, scores, scratch, inside, out = given
    K, k, answered, e = len(pulls), int(numbers[COMMON]), inside[0] >= 0, numbers[COMMON + 1]
    weights = WEIGHTS if e > 0.0 and k > 1 else SINGLE
    T = table_of(numbers, K, scratch, len(weights), len(weights), weights, k == 1)
    e, before = e / T.width, T.head[ROWS]
    if k == 1:
        best_paired(T, scores, pulls, e)
    while k > 1 and is_next(T, pulls):
        look_at(T, scores)
        take_in_top_k(T, e)
        add_row(T)
        decide_top_k(T, k, e)
    known, (places, _) = T.head[OVER] == 0.0 and T.head[ROWS] >= T.whole, left_of(T, k)
    for i in range(K):
        known &= k > 1 or T.counts[i] == 0.0 or T.taken[i] >= T.whole
    if k == 1:
        c = max(int(T.head[CHAMPION]) - 1, 0)
        for i in range(K if known and T.head[FAILED] == 0.0 else 0):
            c = i if T.counts[i] != 0.0 and (mean[i] > mean[c] or (mean[i] == mean[c] and i < c)) else c
        T.answer[:] = 0.0
        T.answer[c] = 1.0
    for i in range(K if k > 1 and (T.head[ROWS] > before or before == 0.0) else 0):
        by = ranked(T, i, mean if known and T.head[FAILED] == 0.0 else T.order)
        T.answer[i] = 1.0 if T.verdict[i] == IN or (T.verdict[i] == OPEN and by < places) else 0.0
    if known:
        found = evidence_at_the_end(T, e)
        T.head[OVER] = 1.0 if found > 0.0 else 0.0
        settle(T, found)
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


# --- arms above a threshold -------------------------------------------------------------------------------------------


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
    T, M = table_of(numbers, K, scratch, 0, 0, SINGLE), (len(numbers) - COMMON - 5) // (FIRST + D)
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
