"""Tri-BBAI and Opt-BBAI, after Jin, Yang, Tang, Xiao & Xu, Optimal Batched Best Arm Identification, NeurIPS 2024.

Written after its abstract and its authors' code (panxulab/Optimal-Batched-Best-Arm-Identification on GitHub), with the
stages of arXiv:2310.14129v1; what the paper says of details may differ.

symbols     n arms, l = ln(1/delta), b the means with the best one lowered and all others raised by `shift`, w*(b) and
            T*(b) the optimal proportions and the characteristic time; eps_r = 2^-r / 4, delta_r = delta / (40 pi^2 n
            r^2), S_r the arms of round r, B_r the pulls of rounds 1 .. r, p_i the mean of a batch alone
stages      I    L1 pulls of each arm
            II   min(alpha w*_i(b) T*(b) l, L2) pulls of arm i, rounded up
            III  stop if Z(t) > beta(t, delta); Opt-BBAI: delta / 2
            IV   Opt-BBAI, for r = 1, 2, ..: 32 / eps_r^2 ln(2 / delta_r) pulls of each arm of S_r; S_{r+1} has those
                 with p_i >= max p - eps_r. Then a check of each j < r with B_r gamma_j 2^l_j > B_j, where gamma_j =
                 delta_j and l_j = 0 at first: gamma_j is squared, l_j raised by 1, S_j pulled as if gamma_j were
                 delta_j; stop if an arm that round j has left out has p_i > max p - eps_j / 2: the best may be out
departures  D1 the answer is certified by the boundaries of this package, looked at after each batch
            D2 after III, II is repeated with alpha and L2 doubled each time: by Tri-BBAI until III passes, where the
               paper pulls each arm l^2 times and answers untested, which is right with probability 1 - delta as delta
               -> 0 alone; by Opt-BBAI up to `repeats` times, 0 in the paper, and while L2 is below the pulls of round 1
            D3 L1, L2, shift and alpha are those of the authors' experiments; the paper's theorem has L1 = sqrt(l), L2 =
               l ln l / n, shift = 1 / ln l, alpha > 1, for delta -> 0
            D4 shift and eps_r are in units of 2 sigma, which is 1 for rewards in [0, 1]
            D5 II has a pull of each arm. w* and T* are those of Gaussian arms, but of Bernoulli arms with epsilon = 0
               their own, with b in [.001, .999]
            D6 `precision` c for 8: 32 is c^2 / 2, eps_j / 2 is (1 - 4 / c) eps_j, and up to c = 4 there are no checks.
               Any c >= 2 has the guarantee: all p_i lie within eps_r / c of their means with probability
               1 - delta / 240, and then no check stops it
            D7 rounds that have left out no arm are not checked

Each batch is one plan.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import integer, number, part
from bandit_envs.stopping import BERNOULLI, GAUSSIAN

from ..core.confidence import delta_of
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.phases import whole
from ..core.plans import pull
from .alternatives import MEANS
from .policy import CertifiedAlgorithm, is_certified
from .proportions import best_arm_proportions

IN = 99  # in place of the round that has left an arm out; no such round is ever reached


@part
def largest(m):
    """The arm with the largest m."""
    best = 0
    for i in range(len(m)):
        best = i if m[i] > m[best] else best
    return best


@part
def pull_proportions(ep, own):
    """Plan stage II, with alpha and L2 doubled for each time that it has been made before.   D2"""
    best, factor = largest(ep.mean), 2.0 ** min(ep.now.repeated, 40)
    for i in range(len(own.b)):
        own.b[i] = ep.mean[i] + 2.0 * own.scale * (-own.shift if i == best else own.shift)
        own.b[i] = min(max(own.b[i], 0.001), 0.999) if own.family == BERNOULLI else own.b[i]
        own.x[i] = 0.0
    y = best_arm_proportions(own.family, own.epsilon, own.scale**2, own.b, 0.0, own.cost, own.x, own.w)
    time = 1.0 / (own.w[largest(own.b)] * y) if y > 0.0 else math.inf  # T*
    for i in range(len(own.b)):
        wanted = own.alpha * own.w[i] * time * own.nats if own.w[i] > 0.0 else 0.0
        pull(ep, i, max(whole(factor * min(wanted, float(own.L2))), 1))
    ep.now.repeated += 1


class TriBBAI(CertifiedAlgorithm):
    """Tri-BBAI: the best arm in three batches as delta goes to 0, in more of them where delta is not small.

    Args:
        alpha: > 0. L1, L2: pulls of an arm; None: ceil(2 ln n sqrt(l)) and ceil(80 l ln l / n), at least 1, with
            l = ln(1/delta). A larger L2 saves batches and costs pulls. shift: >= 0, in units of 2 sigma.

    All others: see `CertifiedAlgorithm`. It stops with a budget, too.
    """

    name, source = "tri-bbai", "after Jin, Yang, Tang, Xiao & Xu, NeurIPS 2024, Algorithm 1"
    solves, needs = ("BestArm",), "delta"
    bulk, passes, resumes = True, "L1", False
    _knows_tables, _sampling_boundary, _asks, _weighed = False, "none", ("certify",), MEANS
    L1, L2, alpha, shift, nats = setting(int), setting(int), setting(float), setting(float), setting(float)  # nats: l
    family, epsilon, scale = setting(int), setting(float), setting(float)
    repeated = per_episode(int)
    b, w, x, cost = scratch(float), scratch(float), scratch(float), scratch(float)

    def sample(ep, own):
        """Stage II."""
        pull_proportions(ep, own)

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        *,
        alpha: float = 1.001,
        L1: int | None = None,
        L2: int | None = None,
        shift: float = 0.01,
        **options: Any,
    ) -> None:
        super().__init__(task, delta, **options)
        self.alpha, self.shift = number("alpha", alpha, 0, above=True), number("shift", shift, 0)
        self.nats, n = math.log(1.0 / delta_of(self.name, self.task, delta)), self.task.K
        first = math.ceil(2.0 * math.log(n) * math.sqrt(self.nats))
        most = math.ceil(80.0 * self.nats * math.log(max(self.nats, 1.0)) / n)
        self.L1 = integer("L1", first if L1 is None else L1, 1, 2**30)
        self.L2 = integer("L2", max(most, 1) if L2 is None else L2, 1, 2**30)
        self.epsilon, self.may_stop, by = -self.sides.b, True, self.distribution
        self.family = BERNOULLI if by == "bernoulli" and self.epsilon == 0.0 else GAUSSIAN
        low, high = self.task.support or (0.0, 0.0)
        self.scale = 0.5 * (high - low) if by in ("bernoulli", "bounded") else self._options["sigma"]


@part
def nats_of(own, r):
    """ln(1 / delta_r)."""
    return own.level + 2.0 * math.log(float(r))


@part
def pulls_of(own, r, nats):
    """32 / eps_r^2 (ln 2 + nats), rounded up.   D6"""
    return whole(8.0 * own.precision**2 * 4.0**r * (math.log(2.0) + nats))


@part
def pull_round(ep, own, r, nats):
    """Plan these pulls of each arm of S_r."""
    for i in range(len(own.out)):
        if own.out[i] >= r:
            pull(ep, i, pulls_of(own, r, nats))


@part
def bar_of(own, r, eps):
    """The largest p of S_r, less so many eps_r."""
    top = -math.inf
    for i in range(len(own.p)):
        top = max(top, own.p[i]) if own.out[i] >= r else top
    return top - eps * 0.5**r * 0.5 * own.scale


@part
def spent(own, last):
    """B_r of the round `last`."""
    total = 0.0
    for r in range(1, last + 1):
        for i in range(len(own.out)):
            total += pulls_of(own, r, nats_of(own, r)) if own.out[i] >= r else 0.0
    return total


@part
def pull_check(ep, own):
    """Plan the next check that is due, if any."""
    for j in range(ep.now.check + 1, ep.now.round if own.precision > 4.0 else 0):
        squared = -1
        for i in range(len(own.out)):
            squared = own.squared[i] if own.out[i] == j else squared
        nats = nats_of(own, j) * 2.0**squared
        if squared >= 0 and math.log(spent(own, ep.now.round) / spent(own, j)) > nats - squared * math.log(2.0):
            for i in range(len(own.out)):
                own.squared[i] += own.out[i] == j
            ep.now.check = j
            pull_round(ep, own, j, 2.0 * nats)
            return
    ep.now.check = 0


class OptBBAI(TriBBAI):
    """Opt-BBAI: the stages I to III of Tri-BBAI, and then rounds that leave arms out.

    Args:
        precision: >= 2, the c of D6. The paper's 8 asks for 23,000 pulls of each of ten arms in round 1, at a delta of
            0.1; 2 for a sixteenth, with the same guarantee.
        repeats: of stage II, D2; with 0, the paper's, the pulls of round 1 are made wherever stage III fails.

    All others: see `TriBBAI`.
    """

    name, source = "opt-bbai", "after Jin, Yang, Tang, Xiao & Xu, NeurIPS 2024, Algorithm 2"
    precision, level, repeats = setting(float), setting(float), setting(int)  # level: ln(1 / delta_1)
    round, check, missed = per_episode(int), per_episode(int), per_episode(bool)  # check: the round in question, or 0
    out, squared = per_arm(int), per_arm(int)  # the round that has left an arm out, else IN; its l_j
    before, drawn, answer = per_arm(float), per_arm(int), per_arm(bool)  # sums and pulls before the last batch
    p = scratch(float)

    def begin(ep, own):
        """All arms are in."""
        for i in range(len(own.out)):
            own.out[i] = IN

    def observe(ep, own):
        """A batch is over: a round leaves arms out, a check may find that one should not have been."""
        for i in range(len(own.p)):
            own.p[i] = (ep.mean[i] * ep.pulls[i] - own.before[i]) / max(ep.pulls[i] - own.drawn[i], 1)
            own.before[i], own.drawn[i] = ep.mean[i] * ep.pulls[i], ep.pulls[i]
        j, r = ep.now.check, ep.now.round
        bar = bar_of(own, j, 1.0 - 4.0 / own.precision) if j > 0 else bar_of(own, r, 1.0)
        for i in range(len(own.p)):
            ep.now.missed |= j > 0 and own.out[i] == j and own.p[i] > bar
            own.out[i] = r if j == 0 and r > 0 and own.out[i] == IN and own.p[i] < bar else own.out[i]

    def stops(ep, own):
        """The test; or one arm is left, or a check stops it. Then the empirical best arm is the answer."""
        best, arms, certified = largest(own.out), 0, is_certified(ep)
        for i in range(len(own.out)):
            arms += own.out[i] == IN
        best = best if arms == 1 and not certified and not ep.now.missed else largest(ep.mean)
        for i in range(len(own.out)):
            own.answer[i] = i == best
        return certified or ep.now.missed or arms == 1

    def sample(ep, own):
        """Stage II, D2; then a check that is due, or the next round."""
        again = ep.now.repeated <= own.repeats and 2.0**ep.now.repeated * own.L2 < pulls_of(own, 1, own.level)
        if ep.now.round == 0 and (ep.now.repeated == 0 or again):
            pull_proportions(ep, own)
            return
        pull_check(ep, own)
        if ep.now.check == 0:
            ep.now.round += 1
            pull_round(ep, own, ep.now.round, nats_of(own, ep.now.round))

    def __init__(
        self, task: Any, delta: float | None = None, *, precision: float = 8.0, repeats: int = 10, **options: Any
    ) -> None:
        super().__init__(task, delta, **options)
        if self.distribution == "student":
            raise ValueError("opt-bbai needs a known scale, which distribution='student' has not: take tri-bbai")
        self.precision, self.repeats = number("precision", precision, 2), integer("repeats", repeats, 0, 40)
        self.level = self.nats + math.log(40.0 * math.pi**2 * self.task.K)
        self.delta /= 2.0  # of the test
