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

Without its state it refuses an episode that has begun; `begin_anew` makes one, by which samples seen before count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import PULLS_LIMIT, choice, flag, inlined, integer, part, slot_kernel
from bandit_envs.problems import Samples

from ..core.agent import Bools, Floats, Ints, Observation, seen_means
from ..core.confidence import delta_of, width_of
from ..core.largest import smallest
from .elimination import SetPolicy, SetState

__all__ = ["WIDTHS", "Racing", "half_width"]

WIDTHS = ("hoeffding", "bernstein", "tightest")
HOEFFDING, BERNSTEIN, TIGHTEST = range(3)  # their codes


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    k: int
    R: int
    kind: int
    W: float
    delta: float


class Race(NamedTuple):
    """The sets of each episode, its bounds, and scratch for a computation on one episode."""

    U: Bools  # (E, K)
    Sel: Bools  # (E, K)
    LB: Floats  # (E, K) lower bounds
    minus_UB: Floats  # (E, K) upper bounds, negated
    t: Ints  # (E,) the round
    past: Ints  # (E,) sum of u_k over the rounds before this one
    tests: Ints  # (E,) nb
    moved: Bools  # (K,)
    scratch: Floats  # (2, K)


@part
def half_width(t, sd, tests, rules):
    """c after t samples with standard deviation sd, where `tests` intervals hold together with 1 - delta."""
    level = tests / (rules.delta / 2.0 if rules.kind == TIGHTEST else rules.delta)
    hoeffding = rules.W * math.sqrt(math.log(2.0 * level) / (2.0 * t))
    x = math.log(3.0 * level)
    bernstein = sd * math.sqrt(2.0 * x / t) + 3.0 * rules.W * x / t
    if rules.kind == HOEFFDING:
        return hoeffding
    return bernstein if rules.kind == BERNSTEIN else min(hoeffding, bernstein)


@inlined
def size_of(arms):
    """How many arms a set (K,) has."""
    n = 0
    for i in range(len(arms)):
        n += arms[i]
    return n


@part
def count_tests(e, u, race, rules):
    """Set nb, where u arms are undecided; past R it stays."""
    if race.t[e] <= rules.R:
        race.tests[e] = race.past[e] + (rules.R - race.t[e] + 1) * u
        race.past[e] += u


@part
def measure(seen, e, race, rules):
    """Bounds of the undecided arms, which never widen."""
    for i in range(seen.mean.shape[1]):
        if race.U[e, i]:
            c = half_width(float(seen.pulls[e, i]), math.sqrt(seen.variance[e, i]), float(race.tests[e]), rules)
            race.LB[e, i] = max(race.LB[e, i], seen.mean[e, i] - c)
            race.minus_UB[e, i] = max(race.minus_UB[e, i], -seen.mean[e, i] - c)


@part
def surpasses(x, y, U, need):
    """Whether x is greater than the y of at least `need` arms of U."""
    n = 0
    for j in range(len(U)):
        n += U[j] and x > y[j]
        if n >= need:
            return True
    return need <= 0


@part
def move(x, minus_y, U, places, need, race):
    """Take arms out of U, in order, at most `places`, whose x exceeds the y of at least `need` arms of U: `moved`.

    An arm is counted out only where it exceeds the need-th smallest y of all, which the counts can only lower.
    """
    n, y, work = 0, race.scratch[0], race.scratch[1]
    for i in range(len(U)):
        race.moved[i] = False
        y[i] = -minus_y[i]
        if U[i]:
            work[n] = y[i]
            n += 1
    if places <= 0 or need > n:
        return 0
    bar = smallest(work, n, need) if need > 0 else -math.inf
    moved = 0
    for i in range(len(U)):
        if U[i] and (need <= 0 or x[i] > bar) and surpasses(x[i], y, U, need):
            U[i], race.moved[i] = False, True
            moved += 1
            if moved == places:
                break
    return moved


@slot_kernel
def end_round(e: int, seen: Samples, rules: Rules, race: Race):
    """Bounds and sets of episode e after a round."""
    n, m, U, Sel = seen.mean.shape[1], rules.k, race.U[e], race.Sel[e]
    u, selected = size_of(U), size_of(Sel)
    discarded = n - selected - u
    count_tests(e, u, race, rules)
    measure(seen, e, race, rules)
    selected += move(race.LB[e], race.minus_UB[e], U, m - selected, n - m - discarded, race)  # selected from U
    for i in range(n):
        Sel[i] |= race.moved[i]
    move(race.minus_UB[e], race.LB[e], U, n - m - discarded, m - selected, race)  # discarded from U


@dataclass
class State(SetState):
    """State of RACING for E episodes."""

    LB: Floats  # (E, K) lower bounds
    minus_UB: Floats  # (E, K) upper bounds, negated
    past: Ints  # (E,) sum of u_k over the rounds that are over
    tests: Ints  # (E,) nb
    moved: Bools  # (K,) scratch for a computation on one episode
    scratch: Floats  # (2, K) the same

    @classmethod
    def blank(cls, E: int, K: int) -> dict[str, Any]:
        bounds = {name: np.zeros((E, K)) for name in ("LB", "minus_UB")}
        counts = {name: np.zeros(E, np.int64) for name in ("past", "tests")}
        return {**super().blank(E, K), **bounds, **counts, "moved": np.zeros(K, np.bool_), "scratch": np.zeros((2, K))}


class Racing(SetPolicy):
    """RACING (Heidrich-Meisner & Igel 2009).

    Where k arms are selected within R rounds, they are the k best, with probability 1 - delta.

    Args:
        rounds: R, >= 1. beyond: go on past R with the confidence of round R, until k arms are selected; else stop at R.
        widths: "hoeffding", "bernstein" or "tightest". width: of Gaussian arms 6 sigma, where it is None.
    """

    name, source = "racing", "Heidrich-Meisner & Igel, ICML 2009"
    solves, stops, state_class, promises = ("TopK", "BestArm"), True, State, ("aggregate", "each", "exact")
    needs = "delta"

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
        delta, W = delta_of(self.name, self.task, delta), width_of(self.task, width)
        R, self.beyond = integer("rounds", rounds, 1, PULLS_LIMIT - 1), flag("beyond", beyond)
        self.rules = Rules(self.k, R, WIDTHS.index(choice("widths", widths, WIDTHS)), W, delta)
        self.support = self.task.support or (-math.inf, math.inf)

    def start(self, observation: Observation, state: State, slots: Ints) -> None:
        state.LB[slots], state.minus_UB[slots] = self.support[0], -self.support[1]
        state.past[slots] = state.tests[slots] = 0
        super().start(observation, state, slots)

    def stops_after(self, state: State, slots: Ints) -> Bools:
        """The stopping rule, (S,): m arms are selected, none is undecided, or R rounds are over."""
        over: Bools = (state.A[slots].sum(axis=1) == self.k) | ~state.S[slots].any(axis=1)
        over |= (state.round[slots] == self.rules.R) & (not self.beyond)
        return over

    def proceed(self, observation: Observation, state: State, slots: Ints) -> None:
        over = self.stops_after(state, slots)
        done, slots = slots[over], slots[~over]
        self.finish(state, done, seen_means(observation, done))  # the recommendation rule: Sel, with the best of U; D2
        state.round[slots] += 1
        state.pull(slots, 1, observation)  # the sampling rule: each arm of U once

    def look(self, observation: Observation, state: State, slots: Ints) -> None:
        m, pulls = state, np.ascontiguousarray(observation["pulls"], np.int64)
        mean, variance = (np.ascontiguousarray(observation[key], np.float64) for key in ("mean", "variance"))
        race = Race(m.S, m.A, m.LB, m.minus_UB, m.round, m.past, m.tests, m.moved, m.scratch)
        end_round(slots, Samples(pulls, mean, variance), self.rules, race)
        self.proceed(observation, state, slots)
