"""EAST and uniform elimination: Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 4.1 (good filter), section 5.

symbols     m_i empirical mean, N_i pulls, t their common number among the active arms
            C = C_{delta/n}(t) = sigma sqrt(c ln(log2(2t) n / delta) / t)
            A active arms, G arms declared good; U, L bounds on the threshold; gamma slack
departures  D1 t is the common number of pulls of the active arms
            D2 in the multiplicative form the factor applies to mean and width, which the proof needs (lost in print)
            D3 EAST does not use the slack: its answer holds good arms only

Line numbers are those of Algorithm 4.1, as in `fareast`. G is the answer; no set B is kept: the arms outside A and G
are bad. Called without their state in the middle of an episode (`state=None`), both bring all arms to a common number
of pulls first, and use all samples.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import inlined, number, part

from ..core.algorithm import Algorithm
from ..core.confidence import delta_of, lil_width, scale_of
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.plans import pull


@part
def activate_all(ep, own):
    """All arms are active.   [line 4]"""
    ep.now.active = len(own.A)
    for i in range(len(own.A)):
        own.A[i] = i


@inlined
def threshold_of(best, gamma, own):
    """The threshold that goes with a best mean, or a bound on it, lowered by the slack.   D2"""
    return (1.0 - own.epsilon - gamma) * best if own.multiplicative else best - own.epsilon - gamma


@inlined
def sort_out(ep, own, t):
    """Lines 17 to 22, for the means own.m of t samples of each active arm: update G and A. Returns U and L."""
    A, G, m, C, top, left = own.A, own.answer, own.m, lil_width(t, own.level, own.factor), -math.inf, 0
    for j in range(ep.now.active):
        top = max(top, m[A[j]])
    U, L = threshold_of(top + C, 0.0, own), threshold_of(top - C, 0.0, own)  # line 17
    for j in range(ep.now.active):  # line 18
        i = A[j]
        if m[i] - C >= U:  # line 19
            G[i] = True
        if m[i] + C > L and not (G[i] and m[i] + C <= top - C):  # lines 20 to 22
            A[left] = i
            left += 1
    ep.now.active = left
    return U, L


@inlined
def all_decided(ep, own):
    """Whether A is a subset of G; then every arm is known to be good or bad.   [line 23]"""
    j = 0
    while j < ep.now.active and own.answer[own.A[j]]:
        j += 1
    return j == ep.now.active


@part
def gather(ep, own):
    """Those with the fewest pulls are the active arms; t is their pulls if these are all arms, else 0."""
    least = ep.pulls[0]
    for i in range(len(ep.pulls)):
        least = min(least, ep.pulls[i])
    ep.now.active = 0
    for i in range(len(ep.pulls)):
        if ep.pulls[i] == least:
            own.A[ep.now.active] = i
            ep.now.active += 1
    ep.now.t = least if ep.now.active == len(ep.pulls) else 0


class GoodArms(Algorithm):
    """What all algorithms for all epsilon-good arms have in common: the problem, and the constants of bounds."""

    solves, needs = ("AllGood",), "delta"
    shares = 1  # of delta: the bounds have one of them

    epsilon, gamma, multiplicative = setting(float), setting(float), setting(bool)
    level, factor = setting(float), setting(float)  # of C: delta / n and c sigma^2
    answer = per_arm(bool)

    def __init__(self, task: Any, delta: float | None = None, c: float = 4.0, sigma: float | None = None) -> None:
        super().__init__(task)
        self.delta, self.sigma = delta_of(self.name, self.task, delta), scale_of(self.task, sigma)
        self.level = self.delta / (self.shares * self.task.K)
        self.factor = number("c", c, 0, above=True) * self.sigma**2
        p = self.task.parameters
        self.epsilon, self.gamma, self.multiplicative = float(p["epsilon"]), float(p["slack"]), p["multiplicative"]


class GoodFilter(GoodArms):
    """What EAST, uniform elimination and FAREAST have in common: active arms, and good arms, which are the answer."""

    bulk, reads = True, ("total",)
    A, active = per_arm(int), per_episode(int)  # the active arms are the first so many of A, in order
    m = scratch(float)


class _Elimination(GoodFilter):
    """Pull each active arm once, and test; first bring all arms to a common number of pulls."""

    t = per_episode(int)  # 0 while there is none

    def observe(ep, own):
        """Line 16: t, the pulls of all active arms, and the means."""
        if ep.now.t > 0:
            ep.now.t = ep.pulls[own.A[0]]
        else:
            gather(ep, own)
        for j in range(ep.now.active):
            own.m[own.A[j]] = ep.total[own.A[j]] / ep.pulls[own.A[j]]

    def sample(ep, own):
        """The sampling rule, line 15."""
        for j in range(ep.now.active):
            pull(ep, own.A[j])


class East(_Elimination):
    """EAST, the good filter of FAREAST alone (Mason et al. 2020): all epsilon-good arms with probability 1 - delta."""

    name, source = "east", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 4.1 without its bad filter"

    def stops(ep, own):
        """The stopping rule, lines 17 to 23."""
        if ep.now.t == 0:
            return False
        sort_out(ep, own, float(ep.now.t))
        return all_decided(ep, own)


class UniformElimination(_Elimination):
    """Round robin over all arms until all are known, (ST)^2's answer: right with probability 1 - delta."""

    name, source = "uniform-elimination", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, section 5"

    def stops(ep, own):
        """The stopping rule, (ST)^2's: every arm is known to be good, as those of G, or bad."""
        if ep.now.t == 0:
            return False
        C, top, known = lil_width(float(ep.now.t), own.level, own.factor), -math.inf, True
        for i in range(len(own.m)):
            top = max(top, own.m[i])
        U, L = threshold_of(top + C, own.gamma, own), threshold_of(top - C, 0.0, own)
        for i in range(len(own.m)):
            own.answer[i] = own.m[i] - C > U
            known &= own.answer[i] or own.m[i] + C < L
        return known
