"""The certificates of tables, `stopping.paired` and its like, in plain Python, row by row; and mutants, which err.

Scores x (N, K) are scaled to [0, 1]: row n is what all arms show in the n-th place of an order. Each twin takes in the
rows that the arms that still count have all shown, and returns what the routine keeps after the last one. A score that
could not be made is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["HONEST", "Kept", "Mutant", "all_good", "best", "histories", "threshold", "top_k"]

ROUNDING = 1e-11
HOPES = {0.0: 0.2, 0.5: 0.5, 1.5: 0.3}  # and the weights of their bets


class Mutant(NamedTuple):
    """What is wrong with a twin."""

    times: float = 1.0  # m_n is multiplied by it
    nominal: bool = False  # m_n is -e, as if rows were drawn with replacement
    peeks: bool = False  # the leader is that after the row
    everywhere: bool = False  # e applies in all rows, whoever is bet on
    largest: bool = False  # the largest capital, as if it had been the only one
    behind: bool = False  # bets on arms that are behind too, as if all rows that are left could be scored
    alone: bool = False  # a lead is that of the arms' own means, whoever failed in which row
    skips: bool = False  # BestArm leaves rows without a score out, as if they said nothing of the rows that are left
    always: bool = False  # e applies in rows of the pair that could not be scored too


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
        self.n, self.squares, self.sums, self.order = 0, 0.0, np.zeros(self.K), np.zeros(self.K)
        self.counts, self.leads, self.shared = np.ones(self.K), np.zeros((self.K, self.K)), np.zeros((self.K, self.K))

    @property
    def counting(self) -> list[int]:
        return [i for i in range(self.K) if self.counts[i]]

    def lead(self, i: int, j: int) -> tuple[float, int]:
        """The sum of what arm i has more than j, over the rows so far in which both could be scored, and how many."""
        if self.mutant.alone:
            means = self.sums / np.maximum(np.diag(self.shared), 1)
            return self.n * float(means[i] - means[j]), self.n
        return float(self.leads[i, j]), int(self.shared[i, j])

    def ranks(self) -> Any:
        """What arms are ranked by: sums; with failures, how many they are no worse than, and their mean leads."""
        if (self.shared == self.n).all():
            return self.sums.copy()
        found = np.zeros(len(self.sums))
        for i in self.counting:
            pairs = [self.lead(i, j) for j in self.counting if j != i]
            found[i] = sum((S >= 0) + S / n / (2 * len(found)) for S, n in pairs if n)
        return found

    def leaders(self) -> list[int]:
        """Arms that count, the best first."""
        order = self.order + (self.x[self.n] if self.mutant.peeks and self.n < self.N else 0.0)
        return sorted(self.counting, key=lambda i: (-order[i], i))

    def gains(self, i: int, j: int, e: float) -> list[tuple[float, float]]:
        """For each hope, the factors of a bet in the next row that arm i is better than j: with e = 0, and with e."""
        (S, n), D, left = self.lead(i, j), self.x[self.n, i] - self.x[self.n, j], self.N - self.n
        if np.isnan(D) or S < 0 and not self.mutant.behind:
            return [(1.0, 1.0) for _ in hopes_of(e)]
        m = -0.0 if self.mutant.nominal else max(min(self.mutant.times * -S / left, 1.0), -1.0)
        extra = e if self.mutant.nominal else e * (n + left) / left
        bets = [self.bet(S / (n + 5.0) - m + hope * extra, 1.0 + m) for hope in hopes_of(e)]
        return [(1.0 + bet * (D - m), 1.0 + bet * (D - m + extra)) for bet in bets]

    def mixed(self, capitals: Any) -> Any:
        """One capital of those of all hopes."""
        if self.mutant.largest and len(capitals) > 1:
            return np.max([capital / w for capital, w in zip(capitals, HOPES.values(), strict=True)], axis=0)
        return capitals.sum(axis=0)

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
        D = self.x[self.n][:, None] - self.x[self.n]
        self.leads, self.shared = self.leads + np.nan_to_num(D), self.shared + ~np.isnan(D)
        self.sums[self.counting] += np.nan_to_num(x)
        x = x[~np.isnan(x)]
        if len(x) > 1:
            pairs = [(x[i] - x[j]) ** 2 for i in range(len(x)) for j in range(i)]
            self.squares += float(np.mean(pairs))
        self.n += 1
        self.order = self.ranks()

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


def hopes_of(e: float) -> dict[float, float]:
    """The hopes of the bets and their weights; without e one."""
    return HOPES if e > 0 else {0.0: 1.0}


def certain(g: Game, pairs: Any, e: float) -> bool:
    """With all rows: whether the first of each pair is at most e worse than the second."""
    leads = [g.lead(i, j) for i, j in pairs]
    return not np.isnan(g.x).any() or all(n > 0 and -e * n - ROUNDING * g.N <= S for S, n in leads)


class Note(NamedTuple):
    """What is known before a row."""

    leaders: list[int]  # four at most, the best first
    champion: int
    variance: float
    imagined: float  # rows
    until: float  # the end, in rows


class Best:
    """BestArm: bets against each arm, on the mean of some that lead, or on the champion.

    `settled` [c, b]: that c is at most e worse than b, or b not the best. An arm that is settled with the champion
    waits, `waits`, and goes on with the rows that it has missed where it is not settled with the next champion.
    `patient`: no arm waits for its rows: they are taken in at once, as if it was asked in all rows; bets on it pause.
    """

    def __init__(self, x: Any, e: float, delta: float, mutant: Mutant = HONEST, patient: bool = False) -> None:
        self.g, self.K, self.e, self.need, self.patient = Game(x, mutant), x.shape[1], e, 1 / delta, patient
        self.N = 1e300 if mutant.nominal else len(x)  # as rows of blocks, which have no end
        self.better, self.enough = np.ones(self.K), np.ones((self.K, self.K))
        self.settled, self.out = np.zeros((self.K, self.K), bool), np.zeros(self.K, bool)
        self.waits, self.taken = np.zeros(self.K, bool), np.zeros(self.K, int)
        self.champion, self.until, self.notes, self.over = -1, math.inf, list[Note](), False
        self.apart = self.found = 0.0

    def asked(self, rows: int | None = None) -> list[int]:
        """The arms that are neither out nor settled, of which so many rows were taken in."""
        here = [b for b in range(self.K) if not self.out[b] and not self.waits[b]]
        return here if rows is None else [b for b in here if self.taken[b] == rows]

    def lead(self, i: int, b: int, rows: int) -> tuple[float, int]:
        """The sum of what i has more than b in the first rows, where both could be scored, and how many these are."""
        D = self.g.x[:rows, i] - self.g.x[:rows, b]
        if self.g.mutant.alone and rows:
            means = [
                float(np.nansum(self.g.x[:rows, a])) / max((~np.isnan(self.g.x[:rows, a])).sum(), 1) for a in (i, b)
            ]
            return rows * (means[0] - means[1]), rows
        return float(np.nansum(D)), int((~np.isnan(D)).sum())

    def order(self, arms: list[int], rows: int) -> list[int]:
        """The arms, the best first: by sums, or by how many each is no worse than, and by its mean leads."""
        rows += self.g.mutant.peeks and rows < self.g.N
        by = {i: float(np.nansum(self.g.x[:rows, i])) for i in arms}
        if self.failed:
            pairs = {i: [self.lead(i, j, rows) for j in arms if j != i] for i in arms}
            by = {i: sum((S >= 0) + S / n / (2 * self.K) for S, n in pairs[i] if n) for i in arms}
        return sorted(arms, key=lambda i: (-by[i], i))

    def note(self) -> None:
        """Note what is known before the next row."""
        g, n = self.g, self.g.n
        arms = self.asked(n)
        variance = (0.1 + g.squares) / (n + 0.5)
        if len(arms) == self.K or n == 0:
            self.apart = variance
        imagined = 5.0
        if n:
            rows, sums = self.taken, np.array([np.nansum(g.x[: self.taken[i], i]) for i in range(self.K)])
            of_means = (rows * (sums / np.maximum(rows, 1) - sums.sum() / rows.sum()) ** 2).sum()
            among = (of_means - (self.K - 1) * self.apart / 2) / rows.sum()
            imagined = 1 / min(max((3 / 5 + n * among / (self.apart / 2 + 1e-12)) / (3 + n), 0.01), 1.0)
        leaders = self.order(arms, n)[:4]
        champion = self.champion if n else leaders[0]
        self.notes.append(Note(leaders, champion, variance, imagined, self.until))
        self.until = 0.0

    def bet(self, hope: float, variance: float, m: float) -> float:
        return min(hope / (variance + hope**2), 0.98 / (1.0 + m + 1e-12)) if hope > 0 else 0.0

    def growth(self, hope: float, variance: float, m: float) -> float:
        bet = self.bet(hope, variance, m)
        return bet * hope - bet**2 * (variance + hope**2) / 2

    def means(self, b: int, arms: list[int], n: int) -> list[float]:
        """The mean of the next row's differences from each arm to b, at most, where b is the best."""
        times, left = self.g.mutant.times, self.N - n
        return [max(-times * self.lead(i, b, n)[0] / left, -1.0) for i in arms]

    def rivals(self, b: int, n: int) -> tuple[list[int], float]:
        """The arms that the bets against b are on, and what they hope for."""
        note, left = self.notes[n], self.N - n
        others, found, most, hope = [i for i in note.leaders if i != b][:3], list[int](), 0.0, 0.0
        missing = math.log(self.need / self.better[b])
        for count in range(1, len(others) + 1):
            lead = sum(self.lead(i, b, n)[0] for i in others[:count]) / count
            hoped = lead / (n + note.imagined) + lead / left
            growth = self.growth(hoped, note.variance * (1 + 1 / count) / 2, -lead / left)
            if growth > most:
                found, most, hope = others[:count], growth, hoped
        c = note.champion if note.champion != b else others[0] if others else -1
        if self.e > 0 and c >= 0 and not self.settled[c, b]:
            S, both = self.lead(c, b, n)
            hoped = S / (n + note.imagined) + (S + self.e * (both + left)) / left
            growth = self.growth(hoped, note.variance, -S / left)
            if growth > 0 and (most == 0 or missing / most >= note.until):
                found, hope = [c], hoped
            if n == self.g.n and b != note.champion and not self.waits[b]:
                end = (missing - math.log(self.enough[c, b])) / growth if growth > 0 else math.inf
                self.until = max(self.until, end)
        return found, hope

    def take_in(self, b: int) -> None:
        """The bets against arm b in its next row."""
        g, n = self.g, int(self.taken[b])
        note, left, e = self.notes[n], self.N - n, self.e
        on, hope = self.rivals(b, n) if n else ([], 0.0)
        means, D = self.means(b, on, n), [float(g.x[n, i] - g.x[n, b]) for i in on]
        share = 1 / max(len(on), 1)
        m = sum(means) * share
        bet = self.bet(hope, note.variance * (1 + share) / 2, m) if on and m < 1 else 0.0
        if g.mutant.skips and np.isnan(D).any():
            bet = 0.0
        factor = 1 + bet * (float(np.nansum(D)) * share - m)
        self.better[b] = min(self.better[b] * factor, 1e200)
        for i in range(self.K) if g.mutant.everywhere else on:
            scored = g.mutant.always or not np.isnan(g.x[n, i] - g.x[n, b])
            more = e * (self.lead(i, b, n)[1] + (left if scored else 0)) / left
            self.enough[i, b] = min(self.enough[i, b] * (1 + bet * share * more / factor), 1e200)
        rest = self.N * (1 + ROUNDING) - n - 1
        for i in {*note.leaders, note.champion} - {b}:
            S, both = self.lead(i, b, n + 1)
            self.out[b] |= rest < S
            if self.better[b] * self.enough[i, b] >= self.need or S + e * (both + left - 1) > rest:
                self.settled[i, b] = True
        self.out[b] |= self.better[b] >= self.need
        self.taken[b] += 1

    def decide(self) -> None:
        """The champion, which arms wait, and whether it is over."""
        n, e = self.g.n, self.e
        here = self.asked(n)
        if not here:  # an error
            here = [self.notes[n - 1].leaders[0]]
            self.out[here[0]] = self.waits[here[0]] = False
        leader, c = self.order(here, n)[0], self.champion
        if c not in here or n == self.N or self.lead(leader, c, n)[0] > 0.3 * e * n:
            c = leader
        self.champion = c
        left = [b for b in range(self.K) if not self.out[b] and b != c]
        for b in left:
            S, both = self.lead(c, b, n)
            if n == self.N == self.taken[b] and both and S + e * both >= -ROUNDING * n:
                self.settled[c, b] = True
            self.waits[b] = e > 0 and self.settled[c, b] and not self.g.mutant.nominal
        open_to = [b for b in left if e == 0 or not self.settled[c, b]]
        self.over = not open_to
        least = min((self.better[b] * self.enough[c, b] for b in open_to), default=math.inf)
        self.found = ln(least)

    def play(self, pulls: Any) -> None:
        """Take in what has been shown."""
        while not self.over:
            moved = False
            for b in range(self.K):
                while b in self.asked() and self.taken[b] < min(self.g.n, pulls[b]):
                    moved = True
                    self.take_in(b)
                    self.waits[b] |= self.settled[self.champion, b]
            if any(self.taken[b] < self.g.n for b in self.asked()):
                return
            if moved:
                self.decide()
            elif self.g.n < self.g.N and all(pulls[b] > self.g.n for b in self.asked()):
                self.step()
            else:
                return

    def step(self) -> None:
        """Take in a row of all that are asked, with `patient` of all others that are not out too."""
        self.note()
        here = self.asked(self.g.n)
        for b in np.flatnonzero(~self.out) if self.patient else here:
            self.take_in(int(b))
        self.g.counts[:] = 0
        self.g.counts[here] = 1
        self.g.take_in()
        self.decide()

    @property
    def failed(self) -> bool:
        """Whether a score that was taken in is missing."""
        return any(np.isnan(self.g.x[: self.taken[b], b]).any() for b in range(self.K))


def best(x: Any, e: float, delta: float, pulls: Any, mutant: Mutant = HONEST) -> Kept:
    """BestArm: `enough` [c, b]: what e adds in the share of the bets against b that were on c."""
    one = Best(x, e, delta, mutant)
    one.play(pulls)
    over, found, answer, g = one.over, one.found, np.zeros(one.K, np.int8), one.g
    if g.n:
        answer[one.champion] = 1
    else:
        answer[0] = 1
    if not over and g.n == one.N and all(one.taken[b] == g.N for b in one.asked()):
        over, found = certain(g, [(one.champion, b) for b in one.asked() if b != one.champion], e), 0.0
    none = np.ones(0)
    counts = np.isin(np.arange(one.K), one.asked()) * 1.0
    shown = level(found, delta, one.out.any(), over)
    return Kept(g.n, over, shown, answer, counts, one.better, none, none, one.enough)


def histories(x: Any, e: float, delta: float, mutant: Mutant = HONEST) -> tuple[Any, Any]:
    """BestArm: the capitals after each row, (N, K) and (N, K, K), of bets against all arms that are not out.

    All of them are asked in all rows. What is looked at of these later, and which arms wait, changes none of them.
    """
    one, better, enough = Best(x, e, delta, mutant, patient=True), [], []
    while one.g.n < one.g.N:
        if not one.over:
            one.step()
        else:
            one.g.n += 1
        better.append(one.better.copy())
        enough.append(one.enough.copy())
    return np.array(better), np.array(enough)


def top_k(x: Any, k: int, e: float, delta: float, pulls: Any, mutant: Mutant = HONEST) -> Kept:
    """TopK, k > 1: a capital for each pair, with e = 0 and with e."""
    g, K, found, weights = Game(x, mutant), x.shape[1], 0.0, np.array(list(hopes_of(e).values()))
    pairs = weights[:, None, None] * np.ones((K, K))
    enough, verdict, need = pairs.copy(), np.zeros(K), k * (K - k) / delta

    def ranked() -> list[int]:
        return sorted(map(int, np.flatnonzero(verdict == 0)), key=lambda i: (-g.order[i], i))

    def step() -> bool:
        nonlocal found
        for i in g.counting if g.n else []:
            for j in g.counting:
                for h, (strict, loose) in enumerate(g.gains(i, j, e) if i != j else []):
                    pairs[h, i, j] *= strict
                    enough[h, i, j] *= loose
        g.take_in()
        left = g.N - g.n
        sure = left + ROUNDING * g.N
        lead = np.array([[g.lead(i, j)[0] for j in range(K)] for i in range(K)])
        wins = (g.mixed(pairs) >= need) | (lead > sure)
        wins &= (g.counts[:, None] > 0) & (g.counts > 0)
        places, others = k - int((verdict == 1).sum()), K - k - int((verdict == -1).sum())
        outs, ins = wins.sum(axis=0) >= places, wins.sum(axis=1) >= others
        for i in g.counting:
            if outs[i] and (verdict == -1).sum() < K - k:
                verdict[i] = -1
            elif ins[i] and not outs[i] and (verdict == 1).sum() < k:
                verdict[i] = 1
        g.counts[:] = verdict == 0
        places, order = k - int((verdict == 1).sum()), ranked()
        least = min(
            (
                g.mixed(enough)[i, j]
                for i in order[:places]
                for j in order[places:]
                if lead[i, j] + e * (g.lead(i, j)[1] + left) <= sure
            ),
            default=math.inf,
        )
        found = ln(least / (k * (K - k)))
        return bool(least >= need)

    over = g.play(pulls, step)
    answer = (verdict == 1).astype(np.int8)
    order, places = ranked(), k - int(answer.sum())
    answer[order[:places]] = 1
    if not over and g.n == g.N:
        over, found = certain(g, [(i, j) for i in order[:places] for j in order[places:]], e), 0.0
    none = np.ones(0)
    shown = level(found, delta, verdict.any(), over)
    return Kept(g.n, over, shown, answer, g.counts, none, none, pairs, enough)


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
    shown = level(found, delta, verdict.any(), over)
    return Kept(g.n, over, shown, answer, g.counts, better, far, none, enough)


def threshold(x: Any, fall: float, rise: float, theta: float, delta: float, pulls: Any, by: Mutant = HONEST) -> Kept:
    """Threshold: each arm by itself, of scaled values; better: above `fall`; far: below `rise`."""
    N, K = x.shape
    better, far, verdict, rows = np.ones(K), np.ones(K), np.zeros(K), np.zeros(K, int)
    scored = ~np.isnan(x)

    def grown(capital: float, y: Any, n: Any, null: float, side: float) -> float:
        """A capital after y[n], of bets that side * y is larger than side * null on average; y: all that is known."""
        if np.isnan(y[n]):
            return capital
        y = y[: n + 1][~np.isnan(y[: n + 1])]
        g = Game(np.zeros((x.shape[0] - (n + 1 - len(y)), 1)), by)
        N, n = g.N, len(y) - 1
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
                verdict[i] = 0 if not scored[:, i].any() else 1 if np.nanmean(x[:, i]) >= theta - 1e-12 else -1
            elif max(better[i], far[i]) >= K / delta:
                verdict[i] = 1 if better[i] >= far[i] else -1
    shown = [np.nanmean(x[: pulls[i], i]) if scored[: pulls[i], i].any() else -math.inf for i in range(K)]
    answer = ((verdict == 1) | (verdict == 0) & (np.array(shown) >= theta - 1e-12)).astype(np.int8)
    open_to = np.flatnonzero(verdict == 0)
    found = ln(min((better[i] if answer[i] else far[i] for i in open_to), default=math.inf) / K)
    over, none = bool(verdict.all()), np.ones(0)
    counts = np.where(verdict == 0, rows + 1, 0)
    return Kept(
        int(rows.max()), over, level(found, delta, verdict.any(), over), answer, counts, better, far, none, none
    )
