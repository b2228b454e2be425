"""RACING: Heidrich-Meisner & Igel, ICML 2009: Hoeffding and Bernstein races for the m best of n arms.

symbols     m = k wanted, U the undecided arms (S here), Sel the selected ones (A here), Dis the discarded ones; t the
            round, in which each arm of U is pulled once; R the number of rounds planned, W the width of the range of
            samples; nb = sum_{k < r} u_k + (R - r + 1) u_r, r = min(t, R), u_k the size of U in round k: how many
            intervals must hold together
bounds      Hoeffding: c = W sqrt(ln(2 nb / delta) / (2 t))
            Bernstein: c = sd sqrt(2 ln(3 nb / delta) / t) + 3 W ln(3 nb / delta) / t, sd with divisor t
            tightest: the smaller of the two, each at delta / 2
departures  D1 selecting ends when m arms are selected, discarding when n - m are, even where bounds that never widen
               have crossed
            D2 unfinished, it answers with the best of U
            D3 beyond=True: past R it goes on with the confidence of round R, as in the comparison of Kalyanakrishnan &
               Stone, ICML 2010; the guarantee is for the first R rounds

Met in the middle of an episode (`state=None`), it begins anew; samples seen before count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import PULLS_LIMIT, flag, integer, jit

from ..core.agent import Floats, Ints, Observation, seen_means
from ..core.confidence import delta_of, width_of
from .elimination import SetMemory, SetPolicy

__all__ = ["WIDTHS", "Racing", "half_width", "select_smallest"]

WIDTHS = ("hoeffding", "bernstein", "tightest")
HOEFFDING, BERNSTEIN, TIGHTEST = range(3)  # kernel constants: their codes


@jit
def half_width(kind: Any, t: Any, sd: Any, W: Any, tests: Any, delta: Any) -> Any:
    """c after t samples with standard deviation sd, where `tests` intervals hold together with 1 - delta. [line 5]"""
    level = tests / (delta / 2.0 if kind == TIGHTEST else delta)
    hoeffding = W * math.sqrt(math.log(2.0 * level) / (2.0 * t))
    x = math.log(3.0 * level)
    bernstein = sd * math.sqrt(2.0 * x / t) + 3.0 * W * x / t
    if kind == HOEFFDING:
        return hoeffding
    return bernstein if kind == BERNSTEIN else min(hoeffding, bernstein)


@jit
def select_smallest(work: Any, n: Any, q: Any) -> Any:
    """The q-th smallest, q >= 1, of work[:n], which is reordered."""
    low, high = 0, n - 1
    while low < high:
        pivot, i, j = work[(low + high) // 2], low, high
        while i <= j:
            while work[i] < pivot:
                i += 1
            while work[j] > pivot:
                j -= 1
            if i <= j:
                work[i], work[j] = work[j], work[i]
                i += 1
                j -= 1
        if q - 1 <= j:
            high = j
        elif q - 1 >= i:
            low = i
        else:
            break
    return work[q - 1]


@jit
def _beats(bound: Any, against: Any, U: Any, need: Any) -> Any:
    """Whether `bound` is greater than those of at least `need` arms of U."""
    n = 0
    for j in range(len(U)):
        n += U[j] and bound > against[j]
        if n >= need:
            return True
    return need <= 0


@jit
def _move(gain: Any, loss: Any, U: Any, need: Any, places: Any, work: Any) -> Any:
    """Take those out of U, in order, at most `places`, whose `gain` exceeds the `loss` of at least `need` arms of U.

    An arm is counted out only where it exceeds the need-th smallest loss of all, which the counts can only lower.
    """
    n = 0
    for j in range(len(U)):
        if U[j]:
            work[n] = loss[j]
            n += 1
    bar = select_smallest(work, n, need) if 0 < need <= n else -math.inf
    moved = 0
    for i in range(len(U)):
        if moved == places or need > n:
            break
        if U[i] and (need <= 0 or gain[i] > bar) and _beats(gain[i], loss, U, need):
            U[i] = False
            moved += 1
    return moved


@jit
def _races(
    rows: Any,
    pulls: Any,
    mean: Any,
    variance: Any,
    k: Any,
    R: Any,
    kind: Any,
    W: Any,
    delta: Any,
    S: Any,
    A: Any,
    low: Any,
    high: Any,
    rounds: Any,
    past: Any,
    tests: Any,
) -> Any:
    """Bounds and sets of the episodes `rows` after a round. `low` holds lower bounds, `high` negated upper ones."""
    K = S.shape[1]
    work, loss, before = np.empty(K), np.empty(K), np.empty(K, np.bool_)
    for row in range(len(rows)):
        e = rows[row]
        U, Sel, LB, UB, t = S[e], A[e], low[e], high[e], rounds[e]
        u = selected = 0
        for i in range(K):
            u += U[i]
            selected += Sel[i]
        if t <= R:
            tests[e] = past[e] + (R - t + 1) * u
            past[e] += u
        for i in range(K):
            if U[i]:
                c = half_width(kind, float(pulls[e, i]), math.sqrt(variance[e, i]), W, float(tests[e]), delta)
                LB[i] = max(LB[i], mean[e, i] - c)
                UB[i] = max(UB[i], -mean[e, i] - c)
            before[i] = U[i]
            loss[i] = -UB[i]
        discarded = K - selected - u
        selected += _move(LB, loss, U, K - k - discarded, k - selected, work)  # line 7
        for i in range(K):
            Sel[i] |= before[i] and not U[i]
            loss[i] = -LB[i]
        _move(UB, loss, U, k - selected, K - k - discarded, work)  # line 8


@dataclass
class Memory(SetMemory):
    """Memory of RACING for E episodes."""

    low: Floats  # (E, K) lower bounds, which never fall
    high: Floats  # (E, K) upper bounds, negated, so that they never fall
    past: Ints  # (E,) sum of u_k over the rounds that are over
    tests: Ints  # (E,) nb

    @classmethod
    def blank(cls, E: int, K: int) -> dict[str, Any]:
        bounds = {name: np.zeros((E, K)) for name in ("low", "high")}
        return {**super().blank(E, K), **bounds, "past": np.zeros(E, np.int64), "tests": np.zeros(E, np.int64)}


class Racing(SetPolicy):
    """RACING (Heidrich-Meisner & Igel 2009): where k arms are selected within R rounds, they are the k best, with
    probability 1 - delta.

    Args:
        task: a task or an environment. delta: None takes the task's.
        rounds: R, >= 1. beyond: go on past R with the confidence of round R, until k arms are selected; else stop at R.
        widths: "hoeffding", "bernstein" or "tightest".
        width: W, of an interval that holds the samples of an arm; None takes the task's, for Gaussian arms 6 sigma.
    """

    name, source = "racing", "Heidrich-Meisner & Igel, ICML 2009"
    solves, stops, memory = ("TopK", "BestArm"), True, Memory

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        rounds: int = 1,
        beyond: bool = True,
        widths: str = "tightest",
        width: float | None = None,
    ) -> None:
        super().__init__(task)
        self.delta, self.W = delta_of(self.name, self.task, delta), width_of(self.task, width)
        self.R, self.beyond = integer("rounds", rounds, 1, PULLS_LIMIT - 1), flag("beyond", beyond)
        if widths not in WIDTHS:
            raise ValueError(f"widths must be one of {list(WIDTHS)}, got {widths!r}")
        self.kind = WIDTHS.index(widths)
        self.support = self.task.support or (-math.inf, math.inf)

    def start(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        memory.low[slots], memory.high[slots] = self.support[0], -self.support[1]
        memory.past[slots] = memory.tests[slots] = 0
        super().start(observation, memory, slots)

    def proceed(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        over = (memory.A[slots].sum(axis=1) == self.k) | ~memory.S[slots].any(axis=1)
        over |= (memory.round[slots] == self.R) & (not self.beyond)  # line 2
        done, slots = slots[over], slots[~over]
        self.finish(memory, done, seen_means(observation, done))  # line 9
        memory.round[slots] += 1
        memory.pull(slots, 1, observation)  # line 3

    def look(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        mean, variance = (np.ascontiguousarray(observation[key], np.float64) for key in ("mean", "variance"))
        m = memory
        _races(
            slots,
            pulls,
            mean,
            variance,
            self.k,
            self.R,
            self.kind,
            self.W,
            self.delta,
            m.S,
            m.A,
            m.low,
            m.high,
            m.round,
            m.past,
            m.tests,
        )
        self.proceed(observation, memory, slots)
