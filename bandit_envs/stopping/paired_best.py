"""BestArm on the columns of a table: bets on the arms that lead. `paired` has the rows, the bets and the words.

Where a score could not be made, D_n is 0, and so is e in this row: the null is of the rows that both arms could score.

The bets against b are on the mean of the arms that lead by then, as many as make it grow most, with e = 0, or on the
champion c alone, as if e = epsilon: on c once b will not be out before the search ends. Where b is the best, the null
says of each arm i that leads that u_i - u_b is 0 at most on average, and -epsilon where i is worse by more; so it does
of their mean. An arm is out for good when the capital against it is 1 / delta. It is settled with c when the same bets,
with e = epsilon for c, in the share that was on c, have made 1 / delta. Where b is the best, both products are at most
that of these bets with e = epsilon for all i that are worse by more than epsilon, and e = 0 for the others. So one
event covers dropping, settling and ending: it ends when all that are left are settled with the champion.

An arm that is settled is not asked any more. Where another becomes the champion, with which it is not settled, it is
asked for the rows that it has missed, and the bets against it go on where they stopped. Each is by what was noted when
its row was taken in, `trail`, of the rows before. All that are asked again catch up before the next row is taken in,
and what is decided then does not depend on who was pulled first: so this process is the same whenever it is looked at,
in any order of pulls.
"""

import math

from ..kernels.compiled import inlined, part
from . import paired
from .boundaries import COMMON
from .paired import ENDLESS, FAILED, MOST, OPEN, OUT, OVER, ROUNDING, ROWS, SINGLE, SIZE, SPREAD, TRAIL

RIVALS = 3  # arms that one bet is on, at most
ONE, EACH = 0.1, 0.2  # the sum of squares that BestArm imagines before the first row, and their mean
SURE, UNSURE, MOST_PRIOR = 3.0, 5.0, 100.0  # rows that say that leads are shrunk by UNSURE rows, at most by MOST_PRIOR
HINTED = 25.0  # rows that a hint is worth at first, and a bet before the first row half of it
STAY = 0.3  # epsilons by which the champion may be worse than the leader, by the rows so far
CHAMPION, APART, END = range(6, SIZE)  # places in the head of the scratch
# A row of the trail: the arms in its places, those that lead and the champion where it is not among them (-1: none);
# their sums; the champion's place; the variance of differences; how many rows are imagined, and are
# of the hint; the rows until the end.
LAST = RIVALS + 1  # place
CHAMPION_AT, V_AT, PRIOR_AT, WORTH_AT, END_AT = range(2 * LAST + 2, TRAIL)


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


@inlined
def begin_pairs(T, i):
    """Begin the pairs of an arm that others are settled with."""
    if T.far[i] != 0.0:
        T.far[i], T.pairs[0, i, :], T.enough[0, i, :] = 0.0, 1.0, 1.0


@part
def note_row(T):
    """Note what is known before the next row: who leads, the champion, their sums, and what bets are made by."""
    n, champion, everyone = T.head[ROWS], T.head[CHAMPION] - 1.0, True
    note = T.trail[int(n)]
    note[: LAST + 1] = -1.0
    if T.head[FAILED] != 0.0:
        paired.rank(T)
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
    for a in range(LAST + 1):
        if note[a] >= 0.0:
            begin_pairs(T, int(note[a]))


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
    bet = paired.bet_of(hope, variance, most)
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
    bet = paired.bet_of(hope, note[V_AT] * (1.0 + share) / 2.0, 1.0 + m) if on > 0.0 and m < 1.0 else 0.0
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
    paired.rank(T)
    for i in range(K):
        if T.counts[i] != 0.0 and T.taken[i] == n and (leader < 0 or T.order[i] > T.order[leader]):
            leader = i
    if leader < 0:  # an error, of probability delta at most
        leader = int(T.trail[int(n) - 1, 0])  # it was asked in the last row
        T.verdict[leader], T.counts[leader] = OPEN, 1.0
    c = int(T.head[CHAMPION]) - 1
    if c < 0 or T.counts[c] == 0.0 or known or paired.lead_of(T, leader, c)[0] > STAY * e * n:
        c = leader
    begin_pairs(T, c)
    T.head[CHAMPION], over, least = c + 1.0, 1.0, math.inf
    for b in range(K):
        if T.verdict[b] == OPEN and b != c:
            lead, both = paired.lead_of(T, c, b)
            if known and T.taken[b] >= n and e > 0.0 and both > 0.0 and lead + e * both >= -ROUNDING * n:
                T.pairs[0, c, b] = 0.0
            settled = e > 0.0 and T.pairs[0, c, b] == 0.0
            T.counts[b] = 0.0 if settled and T.whole < ENDLESS else 1.0  # blocks that are over stay as they are
            if not settled:
                over, least = 0.0, min(least, T.better[b] * T.enough[0, c, b])
    T.head[OVER] = over
    paired.settle(T, math.log(least) if least > 0.0 else 0.0)


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
                    paired.note_failure(T)
                    gap = (0.0 if math.isnan(x) else x) - (0.0 if math.isnan(y) else y)
                    T.gaps[min(i, b), max(i, b)] += gap if b < i else -gap
                    T.gaps[max(i, b), min(i, b)] += 1.0
            T.sums[b] += 0.0 if math.isnan(x) else x
            T.taken[b] += 1.0
            if T.verdict[b] == OUT or T.pairs[0, champion, b] == 0.0:
                T.counts[b] = 0.0
        behind |= T.counts[b] != 0.0 and T.taken[b] < T.head[ROWS]
    if moved and not behind:
        decide_best(T, e)
    return moved


@part
def best_paired(given):
    """TopK with k = 1, with the numbers of `top_k_nearest`."""
    numbers, pulls, mean, scores, scratch, inside, out = given
    K, answered, T = len(pulls), inside[0] >= 0, paired.table_of(numbers, len(pulls), scratch, 1, 1, SINGLE, True)
    e = numbers[COMMON + 1] / T.width
    while True:
        if catch_up(T, scores, pulls, e):
            continue
        if not paired.is_next(T, pulls):
            break
        note_row(T)
        for b in range(K):
            if T.counts[b] != 0.0:
                take_in_best(T, scores, b, int(T.head[ROWS]), e)
        paired.look_at(T, scores)
        paired.add_row(T)
        decide_best(T, e)
    known, c = T.head[OVER] == 0.0 and T.head[ROWS] >= T.whole, max(int(T.head[CHAMPION]) - 1, 0)
    for i in range(K):
        known &= T.counts[i] == 0.0 or T.taken[i] >= T.whole
    for i in range(K if known and T.head[FAILED] == 0.0 else 0):
        c = i if T.counts[i] != 0.0 and (mean[i] > mean[c] or (mean[i] == mean[c] and i < c)) else c
    T.answer[:] = 0.0
    T.answer[c] = 1.0
    if known:
        paired.close(T, e)
    paired.report(T, pulls, inside, out, answered)
