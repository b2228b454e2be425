"""The certificates of `bandit_envs.stopping.paired` in plain Python, row by row; and mutants of them, which err.

Scores x (N, K) are scaled to [0, 1]: row n is what all arms show in the n-th place of an order. Each twin takes in the
rows that the arms that still count have all shown, and returns what the routine keeps after the last one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["HONEST", "Kept", "Mutant", "all_good", "best", "threshold", "top_k"]

ROUNDING = 1e-11


class Mutant(NamedTuple):
    """What is wrong with a twin."""

    times: float = 1.0  # m_n is multiplied by it
    nominal: bool = False  # m_n is -e, as if rows were drawn with replacement
    peeks: bool = False  # the leader is that after the row
    everywhere: bool = False  # e applies in all rows, whoever is bet on


HONEST = Mutant()


class Kept(NamedTuple):
    """What a certificate keeps, by the names of `paired.Table`."""

    rows: int
    over: bool
    level: float  # -ln
    answer: Any
    counts: Any
    better: Any
    far: Any
    pairs: Any
    enough: Any


class Game:
    """The rows so far, and the arms that still count."""

    def __init__(self, x: Any, mutant: Mutant) -> None:
        self.x, self.mutant, (self.N, self.K) = x, mutant, x.shape
        self.n, self.squares, self.sums = 0, 0.0, np.zeros(self.K)
        self.counts = np.ones(self.K)

    @property
    def counting(self) -> list[int]:
        return [i for i in range(self.K) if self.counts[i]]

    def leaders(self) -> list[int]:
        """Arms that count, the largest sum first."""
        sums = self.sums + (self.x[self.n] if self.mutant.peeks else 0.0)
        return sorted(self.counting, key=lambda i: (-sums[i], i))

    def mean_of_null(self, S: float, e: float, lowest: float, highest: float) -> float:
        """The mean of the next D, at most, where the mean of all N is -e at most, and so far they sum up to S."""
        if self.mutant.nominal:
            return -e
        return float(min(max(self.mutant.times * (-self.N * e - S) / (self.N - self.n), lowest), highest))

    def bet(self, hope: float, room: float) -> float:
        """What is bet for each unit: the share of the capital that would grow most, in about such differences."""
        v = (1.0 + self.squares) / (5.0 + self.n)
        return min(hope / (v + hope**2), 0.98 / (room + 1e-12)) if hope > 0 else 0.0

    def take_in(self) -> None:
        x = self.x[self.n, self.counting]
        if len(x) > 1:
            pairs = [(x[i] - x[j]) ** 2 for i in range(len(x)) for j in range(i)]
            self.squares += float(np.mean(pairs))
        self.sums[self.counting] += x
        self.n += 1

    def play(self, pulls: Any, step: Callable[[], bool]) -> bool:
        """Take steps as long as all arms that count have shown the next row. Returns whether it is over."""
        while self.n < self.N and all(pulls[i] > self.n for i in self.counting):
            if step():
                return True
        return False


def level(evidence: float, delta: float, decided: Any, over: bool) -> float:
    """-ln of the level of an answer: of one to which decisions at delta belong not more than that of delta."""
    need = math.log(1 / delta)
    return need if over else min(evidence, need) if decided else evidence


def ln(x: float) -> float:
    return math.log(x) if x > 0 else 0.0


def best(x: Any, e: float, delta: float, pulls: Any, mutant: Mutant = HONEST) -> Kept:
    """BestArm: bets on the leader against each arm; `enough` [c, b]: what e adds in the rows in which c was bet on."""
    g, K = Game(x, mutant), x.shape[1]
    better, enough, out, found = np.ones(K), np.ones((K, K)), np.zeros(K, bool), 0.0

    def step() -> bool:
        nonlocal found
        order, extra = g.leaders(), e if mutant.nominal else e * g.N / (g.N - g.n)
        for b in g.counting if g.n and len(order) > 1 else []:
            c = order[0] if b != order[0] else order[1]
            S, D = g.sums[c] - g.sums[b], x[g.n, c] - x[g.n, b]
            m = g.mean_of_null(S, 0.0, -1.0, 1.0)
            bet = g.bet(S / (g.n + 5.0) - m + 1.5 * extra, 1.0 + m)
            strict, loose = 1.0 + bet * (D - m), 1.0 + bet * (D - m + extra)
            better[b] *= strict
            for i in range(K) if mutant.everywhere else [c]:
                enough[i, b] *= loose / strict
        g.take_in()
        g.mutant = mutant._replace(peeks=False)
        c, others = g.leaders()[0], g.leaders()[1:]
        g.mutant = mutant
        sure = g.N - g.n + ROUNDING * g.N
        open_to = [b for b in others if g.sums[c] - g.sums[b] + e * g.N <= sure]
        least = min((better[b] * enough[c, b] for b in open_to), default=math.inf)
        for b in others:
            out[b] |= better[b] >= 1 / delta or g.sums[c] - g.sums[b] > sure
        out[c] = least < 1 / delta and better[c] >= 1 / delta and not all(out[others])
        g.counts[:] = ~out
        found = 0.0 if out[c] and least < 1 / delta else ln(least)
        return bool(least >= 1 / delta or len(g.counting) == 1)

    over = g.play(pulls, step) or g.n == g.N
    answer = np.zeros(K, np.int8)
    answer[min(g.counting, key=lambda i: (-g.sums[i], i))] = 1
    none = np.ones(0)
    return Kept(g.n, over, level(found, delta, out.any(), over), answer, g.counts, better, none, none, enough)


def top_k(x: Any, k: int, e: float, delta: float, pulls: Any, mutant: Mutant = HONEST) -> Kept:
    """TopK, k > 1: a capital for each pair, with e = 0 and with e."""
    g, K, found = Game(x, mutant), x.shape[1], 0.0
    pairs, enough, verdict, need = np.ones((K, K)), np.ones((K, K)), np.zeros(K), k * (K - k) / delta

    def ranked() -> list[int]:
        return sorted(np.flatnonzero(verdict == 0), key=lambda i: (-g.sums[i], i))

    def step() -> bool:
        nonlocal found
        extra = e if mutant.nominal else e * g.N / (g.N - g.n)
        for i in g.counting if g.n else []:
            for j in g.counting:
                if i != j:
                    S, D = g.sums[i] - g.sums[j], x[g.n, i] - x[g.n, j]
                    m = g.mean_of_null(S, 0.0, -1.0, 1.0)
                    hope = S / (g.n + 5.0) - m + 1.5 * extra if S + g.N - g.n > 0 else 0.0
                    bet = g.bet(hope, 1.0 + m)
                    pairs[i, j] *= 1.0 + bet * (D - m)
                    enough[i, j] *= 1.0 + bet * (D - m + extra)
        g.take_in()
        sure = g.N - g.n + ROUNDING * g.N
        lead = g.sums[:, None] - g.sums
        wins = (pairs >= need) | (lead > sure)
        wins &= (g.counts[:, None] > 0) & (g.counts > 0)
        places, others = k - int((verdict == 1).sum()), K - k - int((verdict == -1).sum())
        outs, ins = wins.sum(axis=0) >= places, wins.sum(axis=1) >= others
        for i in g.counting:
            if outs[i] and (verdict == -1).sum() < K - k:
                verdict[i] = -1
            elif ins[i] and not outs[i] and (verdict == 1).sum() < k:
                verdict[i] = 1
        g.counts[:] = verdict == 0
        places = k - int((verdict == 1).sum())
        order = ranked()
        least = min(
            (enough[i, j] for i in order[:places] for j in order[places:] if lead[i, j] + e * g.N <= sure),
            default=math.inf,
        )
        found = ln(least / (k * (K - k)))
        return bool(least >= need)

    over = g.play(pulls, step) or g.n == g.N
    answer = (verdict == 1).astype(np.int8)
    answer[ranked()[: k - int(answer.sum())]] = 1
    none = np.ones(0)
    return Kept(g.n, over, level(found, delta, verdict.any(), over), answer, g.counts, none, none, pairs, enough)


class Null(NamedTuple):
    """The mean of p u_i - q u_j is -e at most."""

    p: float
    q: float
    e: float


def all_good(
    x: Any, enough_by: Null, far_by: Null, keep: Callable[[Any], float], delta: float, pulls: Any, by: Mutant = HONEST
) -> Kept:
    """AllGood: `keep` is the least mean in the answer, of scaled means of the arms that may be the best."""
    g, K = Game(x, by), x.shape[1]
    better, far, enough, verdict, good = np.ones(K), np.ones(K), np.ones((K, K)), np.zeros(K), np.zeros(K)
    may_be, need = np.ones(K, bool), 2 * K / delta
    g.counts[:] = 2.0

    def grown(capital: float, i: int, j: int, null: Null) -> float:
        """A capital whose bets are that u_i is much larger than u_j."""
        p, q, e = null
        S, D, left = p * g.sums[i] - q * g.sums[j], p * x[g.n, i] - q * x[g.n, j], g.N - g.n
        if S + D - q * (left - 1) > -g.N * e + ROUNDING * g.N:
            return math.inf
        m = g.mean_of_null(S, e, -q, p)
        bet = g.bet(S / (g.n + 5.0) - m, q + m)
        return min(capital * (1.0 + bet * (D - m)), 1e200) if g.n else capital

    def step() -> bool:
        order = g.leaders()
        for i in g.counting:
            others = [h for h in order if h != i]
            if others:
                better[i] = grown(better[i], others[0], i, Null(1.0, 1.0, 0.0))
                far[i] = grown(far[i], others[0], i, far_by)
            for j in np.flatnonzero(may_be):
                if j != i:
                    enough[i, j] = grown(enough[i, j], i, int(j), enough_by)
        g.take_in()
        for i in range(K):
            verdict[i] = -1 if verdict[i] == 0 and far[i] >= need else verdict[i]
            may_be[i] &= better[i] < 2 / delta and verdict[i] != -1
        for i in map(int, np.flatnonzero(verdict == 0)):
            good[i] = min((enough[i, j] for j in np.flatnonzero(may_be) if j != i), default=math.inf)
            verdict[i] = 1 if good[i] >= need else 0
        g.counts[:] = np.where(may_be, 2.0, verdict == 0)
        return bool(verdict.all())

    over = g.play(pulls, step) or g.n == g.N
    means = g.sums / max(g.n, 1)
    kept = keep(means[may_be].max()) if may_be.any() else -math.inf
    answer = ((verdict == 1) | (verdict == 0) & (means >= kept)).astype(np.int8)
    least = min((good[i] if answer[i] else far[i] for i in np.flatnonzero(verdict == 0)), default=math.inf)
    none, found = np.ones(0), ln((math.inf if over else least) / (2 * K))
    return Kept(g.n, over, level(found, delta, verdict.any(), over), answer, g.counts, better, far, none, enough)


def threshold(x: Any, fall: float, rise: float, theta: float, delta: float, pulls: Any, by: Mutant = HONEST) -> Kept:
    """Threshold: each arm by itself, of scaled values; better: above `fall`; far: below `rise`."""
    N, K = x.shape
    better, far, verdict, rows = np.ones(K), np.ones(K), np.zeros(K), np.zeros(K, int)

    def grown(capital: float, y: Any, n: Any, null: float, side: float) -> float:
        """A capital after y[n], of bets that side * y is larger than side * null on average."""
        g = Game(x, by)
        g.n, g.squares, S = n, float(((y[:n] - theta) ** 2).sum()), side * float(y[:n].sum())
        highest, lowest = (1.0, 0.0) if side > 0 else (0.0, -1.0)
        if S + side * y[n] + lowest * (N - n - 1) > side * N * null + ROUNDING * N:
            return math.inf
        m = g.mean_of_null(S, -side * null, lowest, highest)
        return min(capital * (1.0 + g.bet((S - n * m) / (n + 5.0), m - lowest) * (side * float(y[n]) - m)), 1e200)

    for i in range(K):
        while verdict[i] == 0 and rows[i] < min(pulls[i], N):
            better[i] = grown(better[i], x[:, i], rows[i], fall, 1.0)
            far[i] = grown(far[i], x[:, i], rows[i], rise, -1.0)
            rows[i] += 1
            if rows[i] == N:
                verdict[i] = 1 if x[:, i].mean() >= theta - 1e-12 else -1
            elif max(better[i], far[i]) >= K / delta:
                verdict[i] = 1 if better[i] >= far[i] else -1
    shown = [x[: pulls[i], i].mean() if pulls[i] else -math.inf for i in range(K)]
    answer = ((verdict == 1) | (verdict == 0) & (np.array(shown) >= theta - 1e-12)).astype(np.int8)
    open_to = np.flatnonzero(verdict == 0)
    found = ln(min((better[i] if answer[i] else far[i] for i in open_to), default=math.inf) / K)
    over, none = bool(verdict.all()), np.ones(0)
    counts = np.where(verdict == 0, rows + 1, 0)
    return Kept(
        int(rows.max()), over, level(found, delta, verdict.any(), over), answer, counts, better, far, none, none
    )
