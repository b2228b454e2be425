"""RACING: Heidrich-Meisner & Igel, ICML 2009: Hoeffding and Bernstein races for the m best of n arms.

symbols     m arms are wanted (`own.k`; `own.m` holds means, or is scratch); U are the undecided arms (`own.S`), Sel the
            selected ones (`own.A`), Dis the discarded ones; each arm of U is pulled once in a round, t counts rounds, R
            are planned; W is the width of the range of samples; nb = sum_{k < r} u_k + (R - r + 1) u_r intervals must
            hold together, r = min(t, R), u_k the size of U in round k
bounds      Hoeffding: c = W sqrt(ln(2 nb / delta) / (2 t))
            Bernstein: c = sd sqrt(2 ln(3 nb / delta) / t) + 3 W ln(3 nb / delta) / t, sd with divisor t
            tightest: the smaller of the two, each at delta / 2
departures  D1 selecting ends when m arms are selected, discarding when n - m are, even where bounds that never widen
               have crossed
            D2 unfinished, it answers with the best of U
            D3 beyond=True: past R it goes on with the confidence of round R, as in the comparison of Kalyanakrishnan &
               Stone, ICML 2010; the guarantee is for the first R rounds

It refuses an episode that has begun without it; `begin_anew` makes a state in which the samples seen before count.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import PULLS_LIMIT, choice, flag, integer, part

from ..core.confidence import delta_of, width_of
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.largest import nth_largest, size_of
from .elimination import SetAlgorithm, finish, pull_undecided

WIDTHS = ("hoeffding", "bernstein", "tightest")
HOEFFDING, BERNSTEIN, TIGHTEST = range(3)  # their codes


@part
def half_width(t, sd, tests, own):
    """c after t samples with standard deviation sd, where `tests` intervals hold together with 1 - delta."""
    level = tests / (own.delta / 2.0 if own.kind == TIGHTEST else own.delta)
    hoeffding = own.W * math.sqrt(math.log(2.0 * level) / (2.0 * t))
    x = math.log(3.0 * level)
    bernstein = sd * math.sqrt(2.0 * x / t) + 3.0 * own.W * x / t
    if own.kind == HOEFFDING:
        return hoeffding
    return bernstein if own.kind == BERNSTEIN else min(hoeffding, bernstein)


@part
def bound(ep, own):
    """Bounds of the undecided arms, which never widen."""
    for i in range(len(own.S)):
        if own.S[i]:
            c = half_width(float(ep.pulls[i]), math.sqrt(ep.variance[i]), float(ep.now.tests), own)
            own.LB[i] = max(own.LB[i], ep.mean[i] - c)
            own.minus_UB[i] = max(own.minus_UB[i], -ep.mean[i] - c)


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
def move(x, minus_y, places, need, own):
    """Take arms out of U into `moved` whose x exceeds the y of at least `need` arms of U: the first `places`."""
    U, y, n = own.S, own.m, size_of(own.S)
    for i in range(len(U)):
        own.moved[i], y[i] = False, -minus_y[i]
    if places <= 0 or need > n:
        return 0
    bar = -nth_largest(minus_y, U, need, own.work) if need > 0 else -math.inf
    moved = 0
    for i in range(len(U)):
        if U[i] and (need <= 0 or x[i] > bar) and surpasses(x[i], y, U, need):
            U[i], own.moved[i] = False, True
            moved += 1
            if moved == places:
                break
    return moved


class Racing(SetAlgorithm):
    """RACING (Heidrich-Meisner & Igel 2009).

    Where k arms are selected within R rounds, they are the k best, with probability 1 - delta.

    Args:
        rounds: R, >= 1. beyond: go on past R with the confidence of round R, until k arms are selected; else stop at R.
        widths: the bounds, "hoeffding", "bernstein" or "tightest". width: W; None: that of the range, or 6 sigma.
    """

    name, source = "racing", "Heidrich-Meisner & Igel, ICML 2009"
    solves, promises, reads = ("TopK", "BestArm"), ("aggregate", "each", "exact"), ("variance",)
    needs = "delta"
    R, kind, W, delta = setting(int), setting(int), setting(float), setting(float)
    low, high = setting(float), setting(float)  # the support
    beyond = setting(bool)
    LB, minus_UB = per_arm(float), per_arm(float)  # lower bounds, and upper bounds, negated
    past, tests = per_episode(int), per_episode(int)  # sum of u_k over the rounds that are over; nb
    moved = scratch(bool)

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
        self.R, self.beyond = integer("rounds", rounds, 1, PULLS_LIMIT - 1), flag("beyond", beyond)
        self.kind, self.W, self.delta = WIDTHS.index(choice("widths", widths, WIDTHS)), W, delta
        self.low, self.high = self.task.support or (-math.inf, math.inf)

    def begin(ep, own):
        """All arms are undecided."""
        for i in range(len(own.S)):
            own.S[i], own.LB[i], own.minus_UB[i] = True, own.low, -own.high

    def observe(ep, own):
        """A round is over: bounds, and the arms that they select from U and discard from it."""
        n, m, selected, u = len(own.S), own.k, size_of(own.A), size_of(own.S)
        discarded = n - selected - u
        if ep.now.round <= own.R:  # past R nb stays
            ep.now.tests = ep.now.past + (own.R - ep.now.round + 1) * u
            ep.now.past += u
        bound(ep, own)
        selected += move(own.LB, own.minus_UB, m - selected, n - m - discarded, own)
        for i in range(n):
            own.A[i] |= own.moved[i]
        move(own.minus_UB, own.LB, n - m - discarded, m - selected, own)

    def stops(ep, own):
        """The stopping rule: m arms are selected, none is undecided, or R rounds are over (unless `beyond`)."""
        unfinished = size_of(own.A) < own.k and size_of(own.S) > 0
        if unfinished and (own.beyond or ep.now.round < own.R):
            return False
        for i in range(len(own.S)):
            own.m[i] = ep.mean[i]
        return finish(own, own.k)  # the recommendation rule: Sel, with the best of U; D2

    def sample(ep, own):
        """The sampling rule: each arm of U once."""
        ep.now.round += 1
        pull_undecided(ep, own, 1)
