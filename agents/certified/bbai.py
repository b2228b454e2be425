"""Tri-BBAI and Opt-BBAI, after Jin, Yang, Tang, Xiao & Xu, Optimal Batched Best Arm Identification, NeurIPS 2024.

Written after its abstract and its authors' code (panxulab/Optimal-Batched-Best-Arm-Identification on GitHub), with the
stages of arXiv:2310.14129v1; what the paper says of details may differ.

symbols     n arms, l = ln(1/delta), b the means with the best one lowered and all others raised by `shift`, w*(b) and
            T*(b) the optimal proportions and the characteristic time; r a round of stage IV, eps_r = 2^-r / 4,
            delta_r = delta / (40 pi^2 n r^2), S_r the arms in it, B_r the pulls of rounds 1 .. r, p_i the mean of a
            batch
stages      I    L1 pulls of each arm
            II   min(alpha w*_i(b) T*(b) l, L2) pulls of arm i, rounded up
            III  stop if Z(t) > beta(t, delta); Opt-BBAI: delta / 2
            IV   Tri-BBAI: each arm up to L3 pulls. Opt-BBAI, for r = 1, 2, ..: d(eps_r, delta_r) =
                 32 / eps_r^2 ln(2 / delta_r) pulls of each arm of S_r; S_{r+1} has those with p_i >= max p - eps_r.
                 Check of each round j < r with B_r gamma_j 2^l_j > B_j, where gamma_j = delta_j and l_j = 0 at first:
                 gamma_j is squared, l_j raised by 1, S_j pulled d(eps_j, gamma_j) times; stop if an arm that round j
                 has left out has p_i > max p - eps_j / 2, as then the best arm may be out
departures  D1 the answer is certified by the boundaries of this package, looked at after each batch of any stage
            D2 Tri-BBAI: the paper answers after stage IV without a test, which is right with probability 1 - delta as
               delta -> 0 alone. Here stages III and II follow, with alpha and L2 doubled each time, until it passes
            D3 L1, L2, L3, shift and alpha are those of the authors' experiments; the paper's theorem has
               L1 = sqrt(l), L2 = l ln l / n, L3 = l^2, shift = 1 / ln l, alpha > 1, for delta -> 0
            D4 shift and eps_r are in units of 2 sigma, which is 1 for rewards in [0, 1]
            D5 each arm has a pull in stage II at least. w* and T* of Bernoulli arms with epsilon = 0 are theirs, with b
               in [.001, .999]; of others those of Gaussian arms, of variance sigma^2 or the mean empirical one
            D6 `precision` c for 8: 32 is c^2 / 2, eps_j / 2 is (1 - 4 / c) eps_j, and up to c = 4 there are no checks.
               Any c >= 2 has the guarantee: all p_i lie within eps_r / c of their means with probability
               1 - delta / 240, and then no check stops it
            D7 checks that are due are one batch; rounds that have left out no arm are not checked

With a budget they do not stop, and delta is 0.01 where none is named. Each batch is one plan.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import integer, number, part, view
from bandit_envs.stopping import BERNOULLI, GAUSSIAN

from ..core.algorithm import parts_of, per_arm, per_episode, pull, scratch, setting
from ..core.phases import whole
from .alternatives import MEANS
from .policy import CertifiedAlgorithm, is_certified
from .proportions import best_arm_proportions

ROUNDS = 40  # of stage IV; the pulls of a later one are more than can be made
PROPORTIONS, ROUND, CHECK = range(3)  # what a batch is for


@part
def pull_proportions(ep, own, factor):
    """Plan stage II, with alpha and L2 so many times as large."""
    K, best, seen = len(ep.mean), 0, 0.0
    for i in range(K):
        best = i if ep.mean[i] > ep.mean[best] else best
        seen += ep.variance[i] / K
    variance = own.variance if own.variance > 0.0 else max(seen, 1e-300)  # D5
    shift = own.shift * (1.0 if own.family == BERNOULLI else 2.0 * math.sqrt(variance))  # D4
    for i in range(K):
        own.b[i] = ep.mean[i] - shift if i == best else ep.mean[i] + shift
        own.b[i] = min(max(own.b[i], 0.001), 0.999) if own.family == BERNOULLI else own.b[i]
        own.x[i] = 0.0
    y = best_arm_proportions(own.family, own.epsilon, variance, own.b, 0.0, own.cost, own.x, own.w)
    for i in range(K):
        best = i if own.b[i] > own.b[best] else best
    time = 1.0 / (own.w[best] * y) if y > 0.0 else math.inf  # T*: y is the cost of an alternative over w*_best
    for i in range(K):
        wanted = own.alpha * own.w[i] * time * own.nats if own.w[i] > 0.0 else 0.0
        pull(ep, i, max(whole(factor * min(wanted, float(own.L2))), 1))


class TriBBAI(CertifiedAlgorithm):
    """Tri-BBAI: the best arm in three batches as delta goes to 0, in more of them where delta is not small.

    Args:
        alpha: > 0. L1, L2, L3: pulls of an arm; None: ceil(2 ln n sqrt(l)), ceil(80 l ln l / n) and ceil(l^2), at least
            1, with l = ln(1/delta). shift: >= 0, in units of 2 sigma. All others: see `CertifiedAlgorithm`.

    With alpha=1.001 the test of a delta of 0.1 passes late: alpha=4 is about what the certificate asks for there.
    """

    name, source = "tri-bbai", "after Jin, Yang, Tang, Xiao & Xu, NeurIPS 2024, Algorithm 1"
    solves = ("BestArm",)
    bulk, passes, resumes = True, "L1", False
    _knows_tables, _sampling_boundary, _asks, _weighed = False, "none", ("certify",), MEANS
    L1, L2, L3, alpha, shift = setting(int), setting(int), setting(int), setting(float), setting(float)
    family, epsilon, nats = setting(int), setting(float), setting(float)  # nats: l
    variance = setting(float)  # of Gaussian arms; 0: the mean empirical one
    step = per_episode(int)  # batches after the first one
    b, w, x, cost = scratch(float), scratch(float), scratch(float), scratch(float)

    def sample(ep, own):
        """Stage II, then stage IV, and then stage II with more pulls each time."""
        while ep.now.size == 0:
            ep.now.step += 1
            if ep.now.step != 2:
                pull_proportions(ep, own, 2.0 ** max(ep.now.step - 2, 0))  # D2
                continue
            for i in range(len(ep.pulls)):
                if ep.pulls[i] < own.L3:
                    pull(ep, i, own.L3 - ep.pulls[i])

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        *,
        alpha: float = 1.001,
        L1: int | None = None,
        L2: int | None = None,
        L3: int | None = None,
        shift: float = 0.01,
        **options: Any,
    ) -> None:
        super().__init__(task, delta, **options)
        self.alpha, self.shift = number("alpha", alpha, 0, above=True), number("shift", shift, 0)
        self.nats, n = math.log(1.0 / self.delta), self.task.K
        by_default = {
            "L1": 2.0 * math.log(n) * math.sqrt(self.nats),
            "L2": 80.0 * self.nats * math.log(max(self.nats, 1.0)) / n,
            "L3": self.nats**2,
        }
        for name, given in (("L1", L1), ("L2", L2), ("L3", L3)):
            wanted = max(math.ceil(by_default[name]), 1) if given is None else given
            setattr(self, name, integer(name, wanted, 1, 2**30))
        self.epsilon, by = -self.sides.b, self.distribution
        self.family = BERNOULLI if by == "bernoulli" and self.epsilon == 0.0 else GAUSSIAN
        self.variance = self._options["sigma"] ** 2 if by == "gaussian" else 0.0

    def idle(self) -> dict[str, str]:
        return {name: why for name, why in super().idle().items() if name != "delta"}


@view
def row_of(checks, e):
    """The rounds of an episode: for each B_r, ln(1 / gamma_r), l_r, and whether its check is due."""
    return checks[e]


@part
def pulls_of_round(own, r, log_level):
    """d(eps_r, gamma) for ln(1 / gamma)."""
    return whole(own.precision**2 / 2.0 * (math.log(2.0) + log_level) * 16.0 * 4.0**r)


@part
def largest_of(own, r):
    """The largest p of S_r; r: a round. An arm is out of S_{r+1} on if it was left out in round r, or before."""
    found = -math.inf
    for i in range(len(own.p)):
        found = max(found, own.p[i]) if own.out[i] == 0 or own.out[i] >= r else found
    return found


@part
def end_round(ep, own):
    """Leave out the arms that are far behind, and count the pulls."""
    r = ep.now.round
    bar = largest_of(own, r) - 2.0 * own.scale * 0.25 * 0.5**r
    own.rounds[0, r] = own.rounds[0, r - 1] + ep.now.spent
    for i in range(len(own.p)):
        own.out[i] = r if own.out[i] == 0 and own.p[i] < bar else own.out[i]


@part
def end_check(ep, own):
    """Notice where an arm has been left out that should not have been."""
    for j in range(1, ep.now.round):
        if own.rounds[3, j] > 0.0:
            own.rounds[3, j] = 0.0
            bar = largest_of(own, j) - 2.0 * own.scale * 0.25 * 0.5**j * (1.0 - 4.0 / own.precision)
            for i in range(len(own.p)):
                if own.out[i] == j and own.p[i] > bar:
                    ep.now.missed = True


@part
def pull_checks(ep, own):
    """Plan the checks that are due, as one batch: the arms of the rounds in question, as often as the last one asks."""
    for i in range(len(own.p)):
        own.w[i] = 0.0
    for j in range(1, ep.now.round if own.precision > 4.0 else 0):  # D6
        left_out = False
        for i in range(len(own.p)):
            left_out |= own.out[i] == j
        ln_gamma = own.rounds[2, j] * math.log(2.0) - own.rounds[1, j]
        if left_out and math.log(own.rounds[0, ep.now.round]) + ln_gamma > math.log(own.rounds[0, j]):
            own.rounds[1, j] *= 2.0
            own.rounds[2, j] += 1.0
            own.rounds[3, j] = 1.0
            for i in range(len(own.p)):
                if own.out[i] == 0 or own.out[i] >= j:
                    own.w[i] = max(own.w[i], float(pulls_of_round(own, j, own.rounds[1, j])))
    for i in range(len(own.p)):
        if own.w[i] > 0.0:
            pull(ep, i, np.int64(own.w[i]))


@part
def pull_round(ep, own):
    """Plan the next round of stage IV."""
    ep.now.round = r = min(ep.now.round + 1, ROUNDS - 1)
    own.rounds[1, r], own.rounds[2, r], own.rounds[3, r] = own.level + 2.0 * math.log(float(r)), 0.0, 0.0
    times = pulls_of_round(own, r, own.rounds[1, r])
    ep.now.spent = 0.0
    for i in range(len(own.p)):
        if own.out[i] == 0:
            pull(ep, i, times)
            ep.now.spent += float(times)


@part
def survivor(own):
    """The only arm that is left; -1: there are several."""
    found = -1
    for i in range(len(own.out)):
        if own.out[i] == 0:
            if found >= 0:
                return -1
            found = i
    return found


class OptBBAI(TriBBAI):
    """Opt-BBAI: the stages I to III of Tri-BBAI, and then rounds that leave arms out.

    Args:
        precision: >= 2, the c of D6. The paper's 8 asks for 23,000 pulls of each of ten arms in the first round, at
            delta = 0.1; 2 for a sixteenth, with the same guarantee. All others: see `TriBBAI`, but `L3`.
    """

    name, source = "opt-bbai", "after Jin, Yang, Tang, Xiao & Xu, NeurIPS 2024, Algorithm 2"
    scale, precision, level = setting(float), setting(float), setting(float)  # level: ln(1 / delta_1)
    kind, round, spent, missed = per_episode(int), per_episode(int), per_episode(float), per_episode(bool)
    out = per_arm(int)  # the round that has left an arm out; 0: none
    before, drawn = per_arm(float), per_arm(int)  # sums of samples, and pulls, before the last batch
    answer = per_arm(bool)
    rounds = parts_of(lambda E, K: np.zeros((E, 4, ROUNDS)), row_of)
    p = scratch(float)

    def observe(ep, own):
        """A batch is over."""
        for i in range(len(own.p)):
            own.p[i] = (ep.mean[i] * ep.pulls[i] - own.before[i]) / max(ep.pulls[i] - own.drawn[i], 1)
            own.before[i], own.drawn[i] = ep.mean[i] * ep.pulls[i], ep.pulls[i]
        if ep.now.kind == ROUND:
            end_round(ep, own)
        elif ep.now.kind == CHECK:
            end_check(ep, own)

    def stops(ep, own):
        """The test; or one arm is left, or a check has stopped it. Then the empirical best arm is the answer."""
        certified, left = is_certified(ep), survivor(own)
        if not certified and not ep.now.missed and left < 0:
            return False
        best = left if left >= 0 and not certified and not ep.now.missed else np.argmax(ep.mean)
        for i in range(len(own.answer)):
            own.answer[i] = i == best
        return True

    def sample(ep, own):
        """Stage II; then the next round, or the checks that are due. With a budget, at the end, stage II goes on."""
        ep.now.step += 1
        if ep.now.step == 1 or ep.now.missed or survivor(own) >= 0:
            ep.now.kind = PROPORTIONS
            pull_proportions(ep, own, 2.0 ** min(ep.now.step - 1, 40))
            return
        if ep.now.kind == ROUND:
            ep.now.kind = CHECK
            pull_checks(ep, own)
        if ep.now.size == 0:
            ep.now.kind = ROUND
            pull_round(ep, own)

    def __init__(self, task: Any, delta: float | None = None, *, precision: float = 8.0, **options: Any) -> None:
        super().__init__(task, delta, **options)
        if self.distribution == "student":
            raise ValueError("opt-bbai needs a known scale, which distribution='student' has not: take tri-bbai")
        self.precision = number("precision", precision, 2)
        low, high = self.task.support or (0.0, 0.0)
        self.scale = self._options["sigma"] if self.distribution == "gaussian" else 0.5 * (high - low)
        self.level = self.nats + math.log(40.0 * math.pi**2 * self.task.K)
        self.delta /= 2.0  # of the test
