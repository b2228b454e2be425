"""Ranking and selection by survivors: the Good Selection Procedure GSP, and parallel adaptive survivor selection PASS.

GSP: Ni, Ciocan, Henderson & Hunter, Operations Research 2017. PASS: Pei, Nelson & Hunter, Operations Research 2024. The
papers were not to be had: this is by their abstracts, and by what PyPRS documents of both.

symbols     z indifference zone, n1 first samples, S the arms that are left, n_i samples of arm i, m_i their mean, V_i
            the variance (divisor n1 - 1) of the first n1
GSP         n1 samples of each arm and a screening; then, `rounds` times, b_i = ceil(beta sqrt(V_i) / average of
            sqrt(V)) of each arm of S and a screening; then all of S get max(n_i, ceil(h^2 V_i / z^2)), and the answer
            has the largest mean. h: Rinott's, of K arms at 1 - delta / 2
screening   i is out where m_i - m_j < -eta c sqrt((n1 - 1) / e) for a j, with c = V_i / n_i + V_j / n_j, e likewise of
            n1 + rounds b_i; E[2 (1 - Phi(eta sqrt(Q)))] = 1 - (1 - delta / 2)^(1 / (K - 1)), Q the smaller of two
            chi-squares of n1 - 1 degrees of freedom
GSP holds   independent Gaussian samples (of others means of batches, nearly), of any variances: the answer is within z
            of the best with probability 1 - delta
PASS        t_i = n_i s^2 / V_i, s the scale of the task, so that units do not matter; g(t) = sqrt((c + ln(t
            + 1)) (t + 1)): i is out where m_i is below the average of m over S by more than s g(t_i) / t_i.
            S gets further samples until one arm is left
PASS holds  no probability of a correct selection, but one of losing the best arm, for any number of arms: Brownian
            motion ever leaves +-g(t) with probability exp(-c / 2) = delta at most. That is for variances that
            are known, and a standard that is known and not above the best mean; here it holds nearly
departures  D1 GSP's stage 0, which measures how long samples take, is left out: all cost the same
            D2 GSP's groups are the paper's cores: arm i is of group i modulo `groups`, and is screened against those of
               its group, and the arm with the largest mean of all (the paper: the best arm of each core)
            D3 PASS: all of S get `step` samples, and are then held to their average; on the paper's cores one by one
            D4 PASS ends, too, where n_i is `most`, or, without it, where s g(t_i) / t_i <= epsilon for all of S; the
               answer has the largest mean of S (the paper's answer is S)
            D5 ties go to the lowest arm

Without its state they refuse an episode that has begun; `begin_anew` makes one, and variances are of all samples then.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import inlined, integer, number, part, require

from ..core.confidence import delta_of, positive_tolerance_of, zone_of
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.largest import size_of
from ..core.phases import whole
from ..core.plans import pull
from .elimination import SetAlgorithm, finish, measure, pull_undecided


def constants(K: int, delta: float, first: int) -> tuple[float, float]:
    """eta and h of GSP; first - 1 >= 9."""
    special, optimize = (require(f"scipy.{one}", "gsp") for one in ("special", "optimize"))
    v, s = first - 1, math.sqrt(2 / (first - 1))
    x = v * np.exp(s * np.linspace(-12, 12, 161))  # a chi-square, and the probability of each value
    w = np.exp(v / 2 * np.log(x / 2) - x / 2 - special.gammaln(v / 2)) * s * 0.15
    above, spread = special.gammaincc(v / 2, x / 2), np.sqrt(v * (1 / x[:, None] + 1 / x))

    def screened(eta: float) -> float:
        return float(-math.expm1(math.log1p(-delta / 2) / (K - 1)) - 4 * w @ (special.ndtr(-eta * np.sqrt(x)) * above))

    def selected(h: float) -> float:
        missed = np.minimum(special.ndtr(-h / spread) @ w, 1 - 1e-12)
        return float(w @ np.exp((K - 1) * np.log1p(-missed)) - 1 + delta / 2)

    return optimize.brentq(screened, 0, 1e6), optimize.brentq(selected, 0, 1e6)


@inlined
def learn(ep, own):
    """Measure the arms, and after the first samples their variances."""
    measure(ep, own)
    for i in range(len(own.S)):
        own.n[i] = ep.pulls[i] - own.drawn[i]
        own.V[i] = ep.variance[i] * ep.pulls[i] / (ep.pulls[i] - 1) if ep.now.round == 1 else own.V[i]


@inlined
def beaten(own, i, j):
    """Whether j screens i out."""
    V, b, n = own.V, own.b, own.n
    e = V[i] / (own.first + own.rounds * b[i]) + V[j] / (own.first + own.rounds * b[j])
    allowed = own.eta * (V[i] / n[i] + V[j] / n[j]) * math.sqrt((own.first - 1) / e) if e > 0 else 0.0
    return own.m[i] - own.m[j] < -allowed


@part
def screen(own):
    """Leave out what its group, or the best arm, screens out.   D2"""
    K, best = len(own.S), -1
    for i in range(K):
        best = i if own.S[i] and (best < 0 or own.m[i] > own.m[best]) else best
    for i in range(K):
        own.out[i] = not own.S[i] or beaten(own, i, best)
        j = i % own.groups
        while not own.out[i] and j < K:
            own.out[i] = own.S[j] and beaten(own, i, j)
            j += own.groups
    for i in range(K):
        own.S[i] = not own.out[i]


class GSP(SetAlgorithm):
    """Good Selection Procedure (Ni et al. 2017): an arm within `zone` of the best with probability 1 - delta.

    Args:
        zone: indifference zone > 0; None takes the problem's epsilon.
        first: n1, samples of each arm at the beginning, at least 10.
        beta: samples of an arm in a round, on average. rounds: with a screening, at most.
        groups: of arms that are screened against each other; None: of 64 arms, or fewer.
    """

    name, source = "gsp", "after Ni, Ciocan, Henderson & Hunter, Operations Research 2017"
    solves, needs = ("BestArm",), "delta"
    promises, stops, reads = ("aggregate", "each"), True, ("total", "variance")
    zone, eta, h, beta = setting(float), setting(float), setting(float), setting(float)
    first, rounds, groups = setting(int), setting(int), setting(int)
    V, n, b, out = per_arm(float), per_arm(int), per_arm(int), scratch(bool)

    def observe(ep, own):
        """The first samples, or those of a round, are there, or all."""
        learn(ep, own)
        K, average = len(own.S), 0.0
        for i in range(K if ep.now.round == 1 else 0):
            average += math.sqrt(own.V[i]) / K
        for i in range(K if ep.now.round == 1 else 0):
            own.b[i] = max(whole(own.beta * math.sqrt(own.V[i]) / average), 1) if average > 0 else 1
        if ep.now.round <= own.rounds + 1:
            screen(own)

    def sample(ep, own):
        """The first samples, those of the rounds, and the rest; then the answer."""
        now = ep.now
        now.round += 1
        for i in range(len(own.S) if size_of(own.S) > 1 and now.round <= own.rounds + 2 else 0):
            times = own.b[i] if now.round <= own.rounds + 1 else whole((own.h / own.zone) ** 2 * own.V[i]) - own.n[i]
            times = own.first if now.round == 1 else times
            if own.S[i] and times > 0:
                pull(ep, i, times)
        if now.size == 0:
            finish(own, 1)

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        zone: float | None = None,
        first: int = 50,
        beta: float = 100.0,
        rounds: int = 10,
        groups: int | None = None,
    ) -> None:
        super().__init__(task)
        K, delta, self.zone = self.task.K, delta_of(self.name, self.task, delta), zone_of(self, zone)
        self.first, self.rounds = integer("first", first, 10, 10**6), integer("rounds", rounds, 0, 10**6)
        self.beta = number("beta", beta, 1, 1e9)
        self.groups = integer("groups", -(-K // 64) if groups is None else groups, 1, K)
        self.eta, self.h = constants(K, delta, self.first)


class PASS(SetAlgorithm):
    """Parallel adaptive survivor selection (Pei, Nelson & Hunter 2024): drop what is worse than the survivors' average.

    Args:
        first: n1, samples of each arm at the beginning. step: of each survivor between two looks.
        most: samples of an arm at which it ends; None: it ends by the problem's epsilon.
    """

    name, source = "pass", "after Pei, Nelson & Hunter, Operations Research 2024"
    solves, needs = ("BestArm",), "delta"
    promises, stops, reads = ("aggregate", "each"), True, ("total", "variance")
    epsilon, c, scale = setting(float), setting(float), setting(float)
    first, step, most = setting(int), setting(int), setting(int)
    V, n, over = per_arm(float), per_arm(int), per_episode(bool)

    def observe(ep, own):
        """Survivors have got their samples: leave out those below their average."""
        learn(ep, own)
        S, standard, size, done = own.S, 0.0, size_of(own.S), True
        for i in range(len(S)):
            standard += own.m[i] / size if S[i] else 0.0
        for i in range(len(S)):
            if S[i]:
                r = own.V[i] / own.n[i] / own.scale**2
                g = math.sqrt((own.c + math.log1p(1.0 / r)) * (r + 1.0) * r) if r > 0 else 0.0  # g(t) / t
                width = own.scale * g
                S[i] = own.m[i] - standard >= -width
                done &= not S[i] or (own.n[i] >= own.most if own.most > 0 else width <= own.epsilon)
        ep.now.over = done or size_of(S) == 1

    def sample(ep, own):
        """The first samples, then further ones of the survivors; at the end none, and the answer."""
        ep.now.round += 1
        if ep.now.over:
            finish(own, 1)
        else:
            pull_undecided(ep, own, own.first if ep.now.round == 1 else own.step)

    def __init__(
        self, task: Any, delta: float | None = None, first: int = 10, step: int = 1, most: int | None = None
    ) -> None:
        super().__init__(task)
        self.scale = float(self.task.sigma)
        self.c = -2 * math.log(delta_of(self.name, self.task, delta))
        self.first, self.step = integer("first", first, 2, 10**6), integer("step", step, 1, 10**6)
        self.most = 0 if most is None else integer("most", most, 1, 2**39)
        self.epsilon = 0.0 if self.most else positive_tolerance_of(self)
