"""FAREAST: Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 2.

symbols     G, B arms declared good and bad, A active arms, V = [n] less G and B, r round, gamma slack
            delta_r = delta / (2 r^2), tau_r = ceil(2^(2r + 3) sigma^2 ln(8 n / delta_r)), i* the finder's arm
            m_i, N_i mean and number of the good filter's own samples, t their common number among the active arms
            C = C_{delta/2n}(t) = sigma sqrt(c ln(log2(2t) 2n / delta) / t), kappa failure probability of the finder
departures  D1 the constant of tau_r is restored: each fresh mean is within 2^-(r+1) but for delta_r / (4n)
            D2 arms that the bad filter declares bad leave A, as in the authors' code
            D3 t is the common number of samples; ties go to the lowest arm
            D4 slack and the multiplicative form are derived: the paper prints the additive form with gamma = 0
            D5 finder="lucb": LUCB1 over the arms of G (all arms while G is empty) with running bounds of C_kappa, as in
               the authors' experiments; the good filter then runs as long as the bad filter really did
            D6 Median Elimination with its constant of rewards in [0, 1], else 8 sigma^2

Both filters use samples of their own, told apart by the sums of samples at their beginnings and ends. Met in the middle
of an episode (`state=None`), it begins anew with fresh samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import jit, number

from ..core.agent import Bools, Floats, Ints, Observation
from ..core.confidence import delta_of, lil_width, scale_of
from ..core.round_policy import RoundMemory, RoundPolicy
from ..top_k.median_elimination import elimination_pulls, pulls_per_arm, upper_half, width_constant

__all__ = ["Fareast", "bad_filter_pulls"]

FINDERS = ("median-elimination", "lucb")
GOOD_ARM, BAD_ARM = 1, 2  # bits of a set: an arm can be in G and in B
ELIMINATION, LUCB, STAR, BAD, GOOD, SURE, NEAR, OVER = range(8)  # what an episode does; SURE and NEAR: it answers
STAGE, ACTIVE, NEXT, COMMON, QUOTA = range(5)  # rows of the good filter's book


def bad_filter_pulls(r: int, n: int, delta: float, sigma: float = 1.0) -> int:
    """tau_r = ceil(2^(2r + 3) sigma^2 ln(8 n / delta_r)), delta_r = delta / (2 r^2). [line 3]"""
    return math.ceil(2.0 ** (2 * r + 3) * sigma**2 * math.log(8 * n / (delta / (2 * r**2))))


@dataclass
class Memory(RoundMemory):
    """Memory of FAREAST for E episodes."""

    book: Ints  # (5, E): stage, |A|, place of the next active arm, t, pulls that the good filter has left in this round
    active: Ints  # (E, K) A in order, the first |A| of each row
    sets: NDArray[np.int8]  # (E, K) bits: in G, in B
    outside: Floats  # (E, K) sums of the samples that are not the good filter's
    before: Floats  # (E, K) sums of samples at line 4
    pulls: Ints  # (E, K) pulls at line 4
    r: Ints  # (E,) round
    found: Ints  # (E,) pulls of the finder in this round
    star: Ints  # (E,) i*
    x_star: Floats  # (E,) mean of its fresh samples
    S: Bools  # (E, K) the finder's arms
    turn: Ints  # (E,) Median Elimination: round; LUCB: 0 first pass, 1 h is pulled, 2 h and l are
    pair: Ints  # (E, 2) LUCB: h and its rival l; in the first pass the next arm
    m: Floats  # (E, K) LUCB: means
    low: Floats  # (E, K) and running bounds
    high: Floats  # (E, K)


@jit
def _good_filter(
    pulls: Any,
    total: Any,
    K: Any,
    epsilon: Any,
    gamma: Any,
    multiplicative: Any,
    level: Any,
    factor: Any,
    book: Any,
    active: Any,
    sets: Any,
    outside: Any,
    last: Any,
    rows: Any,
    arms: Any,
    counts: Any,
    rest: Any,
) -> Any:
    """Serve the slots of `rows` that are in their good filter, or over; the others are put in `rest`. Flat arrays."""
    uK, n, keep = np.uint64(K), 0, 1.0 - epsilon
    for j in range(len(rows)):
        e = np.uint64(rows[j])
        base, stage = e * uK, book[STAGE, e]
        if (stage != GOOD and stage != OVER) or pulls[base + np.uint64(last[e])] == 0:
            rest[n] = rows[j]
            n += 1
            continue
        counts[e] = 1
        if stage == OVER:
            arms[e] = K
            continue
        size = book[ACTIVE, e]
        if book[NEXT, e] == size:  # line 10
            book[NEXT, e] = 0
            book[COMMON, e] += 1
            t = float(book[COMMON, e])  # line 11
            C, top = lil_width(t, level, factor), -math.inf
            for p in range(size):
                o = base + np.uint64(active[base + np.uint64(p)])
                top = max(top, (total[o] - outside[o]) / t)
            U, L = top + C - epsilon, top - C - epsilon  # line 12
            if multiplicative:
                U, L = keep * (top + C), keep * (top - C)
            left, unknown = 0, 0
            for p in range(size):  # lines 13-15
                i = active[base + np.uint64(p)]
                o = base + np.uint64(i)
                m = (total[o] - outside[o]) / t
                if m - C >= U:
                    sets[o] |= GOOD_ARM
                good = sets[o] & GOOD_ARM
                if m + C <= L:
                    sets[o] |= BAD_ARM
                elif not (good and m + C <= top - C):
                    active[base + np.uint64(left)] = i
                    left += 1
                    unknown += not good
            book[ACTIVE, e] = left
            enough = gamma / (2.0 - epsilon) * L if multiplicative else gamma / 2.0
            near = gamma > 0.0 and enough >= U - L
            if unknown == 0 or near:  # lines 16, 17
                book[STAGE, e] = SURE if unknown == 0 else NEAR
                rest[n] = rows[j]
                n += 1
                continue
        if book[QUOTA, e] == 0:  # line 8
            rest[n] = rows[j]
            n += 1
            continue
        arms[e] = last[e] = active[base + np.uint64(book[NEXT, e])]  # line 9
        book[NEXT, e] += 1
        book[QUOTA, e] -= 1
    return n


@jit
def _best_by_lucb(
    pulls: Any,
    total: Any,
    K: Any,
    level: Any,
    factor: Any,
    stage: Any,
    r: Any,
    S: Any,
    before: Any,
    began: Any,
    turn: Any,
    pair: Any,
    m: Any,
    low: Any,
    high: Any,
    star: Any,
    found: Any,
    last: Any,
    rows: Any,
    arms: Any,
    counts: Any,
    rest: Any,
) -> Any:
    """Serve the slots of `rows` whose finder is LUCB; others, and those that have found, are put in `rest`."""
    n = 0
    for j in range(len(rows)):
        e = rows[j]
        if stage[e] != LUCB or (last[e] < K and pulls[e, last[e]] == 0):
            rest[n] = e
            n += 1
            continue
        counts[e] = 1
        if turn[e] == 1:
            arms[e] = last[e] = pair[e, 1]
            turn[e] = 2
            continue
        if turn[e] == 0:  # pull each arm once
            i = pair[e, 0]
            while i < K and not S[e, i]:
                i += 1
            pair[e, 0] = i + 1
            if i < K:
                arms[e] = last[e] = i
                continue
        for p in range(K if turn[e] == 0 else 2):
            i = p if turn[e] == 0 else pair[e, p]
            if S[e, i]:
                N = float(pulls[e, i] - began[e, i])
                C = lil_width(N, level, factor)
                m[e, i] = (total[e, i] - before[e, i]) / N
                low[e, i], high[e, i] = max(low[e, i], m[e, i] - C), min(high[e, i], m[e, i] + C)
        h, rival = -1, -1
        for i in range(K):
            if S[e, i] and (h < 0 or m[e, i] > m[e, h]):
                h = i
        for i in range(K):
            if S[e, i] and i != h and (rival < 0 or high[e, i] > high[e, rival]):
                rival = i
        if high[e, rival] - low[e, h] < 2.0 ** -r[e]:
            star[e], found[e] = h, (pulls[e] - began[e]).sum()
            rest[n] = e
            n += 1
            continue
        pair[e, 0], pair[e, 1], turn[e] = h, rival, 1
        arms[e] = last[e] = h
    return n


class Fareast(RoundPolicy):
    """FAREAST (Mason et al. 2020): all epsilon-good arms, none worse than epsilon + slack, with probability 1 - delta.

    Args:
        task: a task or an environment. delta: None takes the task's.
        finder: "median-elimination" (the paper's) or "lucb" (its experiments').
        kappa: failure probability of the finder, in (0, 1). c: constant of the width, > 0.
        sigma: sub-Gaussian scale; None takes the task's.

    Until it stops, `recommend` gives the plug-in answer.
    """

    name, source = "fareast", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 2"
    solves, stops = ("AllGood",), True

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        finder: str = "median-elimination",
        kappa: float = 1 / 16,
        c: float = 4.0,
        sigma: float | None = None,
    ) -> None:
        super().__init__(task)
        if finder not in FINDERS:
            raise ValueError(f"finder must be one of {list(FINDERS)}, got {finder!r}")
        self.finder, self.kappa = finder, number("kappa", kappa, 0, 1, above=True, below=True)
        self.delta, self.sigma = delta_of(self.name, self.task, delta), scale_of(self.task, sigma)
        self.level, self.factor = self.delta / (2 * self.task.K), number("c", c, 0, above=True) * self.sigma**2
        self.constant = width_constant(self.task, sigma)  # D6
        p = self.task.parameters
        self.epsilon, self.gamma, self.multiplicative = p["epsilon"], float(p["slack"]), p["multiplicative"]

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        ints = {name: np.zeros(E, np.int64) for name in ("r", "found", "star", "turn")}
        tables = {name: np.zeros((E, K)) for name in ("outside", "before", "m", "low", "high")}
        fields: dict[str, Any] = RoundMemory.of(E, K) | ints | tables
        return Memory(
            **fields,
            book=np.zeros((5, E), np.int64),
            active=np.zeros((E, K), np.int64),
            sets=np.zeros((E, K), np.int8),
            pulls=np.zeros((E, K), np.int64),
            x_star=np.zeros(E),
            S=np.zeros((E, K), np.bool_),
            pair=np.zeros((E, 2), np.int64),
        )

    def serve(self, observation: Observation, state: Memory, rows: Ints, arms: Ints, counts: Ints) -> Ints:
        m, K, rest = state, self.task.K, np.empty(len(rows), np.int64)
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        total = np.ascontiguousarray(observation["total"], np.float64)
        n = _good_filter(
            pulls.reshape(-1),
            total.reshape(-1),
            K,
            self.epsilon,
            self.gamma,
            self.multiplicative,
            self.level,
            self.factor,
            m.book,
            m.active.reshape(-1),
            m.sets.reshape(-1),
            m.outside.reshape(-1),
            m.last,
            rows,
            arms,
            counts,
            rest,
        )
        if n and self.finder == "lucb":
            rows, rest = rest[:n], np.empty(n, np.int64)
            n = _best_by_lucb(
                pulls,
                total,
                K,
                self.kappa,
                self.factor,
                m.book[STAGE],
                m.r,
                m.S,
                m.before,
                m.pulls,
                m.turn,
                m.pair,
                m.m,
                m.low,
                m.high,
                m.star,
                m.found,
                m.last,
                rows,
                arms,
                counts,
                rest,
            )
        return super().serve(observation, state, rest[:n], arms, counts) if n else rest[:0]

    def start(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        K = self.task.K
        memory.r[slots], memory.sets[slots], memory.active[slots] = 0, 0, np.arange(K)  # line 1
        memory.book[ACTIVE, slots], memory.book[NEXT, slots], memory.book[COMMON, slots] = K, 0, 0
        memory.outside[slots] = observation["total"][slots]
        for e in slots:
            self._begin_round(observation, memory, e)

    def look(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        m, total = memory, np.asarray(observation["total"], np.float64)
        for e in slots:
            stage = m.book[STAGE, e]
            if stage == ELIMINATION:
                m.S[e], m.turn[e] = upper_half(m.means(e, total), m.S[e]), m.turn[e] + 1
                self._eliminate(m, e, total)
            elif stage == LUCB:
                self._filter(m, e, STAR, [m.star[e]], total)
            elif stage == STAR:
                m.x_star[e] = m.means(e, total)[m.star[e]]
                self._filter(m, e, BAD, np.flatnonzero(m.sets[e] == 0), total)  # line 5
            elif stage == BAD:
                self._end_bad_filter(m, e, total)
            elif stage == GOOD:
                self._begin_round(observation, m, e)
            else:  # lines 7, 16, 17
                answer = (m.sets[e] & GOOD_ARM) > 0
                if stage == NEAR:
                    answer[m.active[e, : m.book[ACTIVE, e]]] = True
                m.stop(e, answer)
                m.book[STAGE, e] = OVER

    def _begin_round(self, observation: Observation, m: Memory, e: int) -> None:
        """Lines 2-4."""
        m.r[e] += 1
        m.before[e], m.pulls[e] = observation["total"][e], observation["pulls"][e]
        m.turn[e], m.S[e] = 0, True
        if self.finder == "median-elimination":
            m.found[e] = elimination_pulls(self.task.K, 2.0 ** -int(m.r[e]), self.kappa, self.constant)
            self._eliminate(m, e, observation["total"])
            return
        good = (m.sets[e] & GOOD_ARM) > 0  # D5
        if good.any():
            m.S[e] = good
        if good.sum() == 1:
            m.star[e], m.found[e] = np.argmax(good), 0
            self._filter(m, e, STAR, [m.star[e]], observation["total"])
            return
        m.book[STAGE, e], m.pair[e], m.low[e], m.high[e] = LUCB, 0, -np.inf, np.inf
        m.rest(e)

    def _eliminate(self, m: Memory, e: int, total: Floats) -> None:
        """The next round of Median Elimination, or the bad filter once one arm is left."""
        S = np.flatnonzero(m.S[e])
        if len(S) == 1:
            m.star[e] = S[0]
            self._filter(m, e, STAR, S, total)
            return
        m.book[STAGE, e] = ELIMINATION
        m.write(e, S, pulls_per_arm(int(m.turn[e]), 2.0 ** -int(m.r[e]), self.kappa, self.constant), total)

    def _filter(self, m: Memory, e: int, stage: int, arms: Any, total: Floats) -> None:
        """Pull these arms tau times each."""
        m.book[STAGE, e] = stage
        m.write(e, arms, bad_filter_pulls(int(m.r[e]), self.task.K, self.delta, self.sigma), total)

    def _end_bad_filter(self, m: Memory, e: int, total: Floats) -> None:
        """Lines 6-8."""
        V, scale = m.sets[e] == 0, 2.0 ** -int(m.r[e])
        x_star, x = m.x_star[e], m.means(e, total)
        if self.multiplicative:
            bad = V & ((1.0 - self.epsilon) * x_star - x >= (2.0 - self.epsilon) * scale)
        else:
            bad = V & (x_star - x >= self.epsilon + 2.0 * scale)
        m.sets[e, bad] |= BAD_ARM  # line 6
        A, following = m.active[e, : m.book[ACTIVE, e]], m.book[NEXT, e]
        stay = ~bad[A]  # line 7, D2
        size, place = int(stay.sum()), int(stay[:following].sum())
        m.active[e, :size] = A[stay]
        if place == size:  # those that stay have all been pulled in this pass
            place, m.book[COMMON, e] = 0, m.book[COMMON, e] + 1
        m.book[ACTIVE, e], m.book[NEXT, e] = size, place
        m.outside[e] += total[e] - m.before[e]
        m.book[QUOTA, e] = m.found[e] + (V.sum() + 1) * m.times[e]  # line 8
        m.book[STAGE, e] = SURE if (m.sets[e] != 0).all() else GOOD
        m.rest(e)
