"""FAREAST: Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 4.1.

symbols     G arms declared good, A active arms, V arms that are undecided, gamma slack
            r round, delta_r = delta / (2 r^2), tau_r = ceil(8 4^r sigma^2 ln(8 n / delta_r)), i_r the finder's arm
            m_i, N_i mean and number of the good filter's own samples, t their common number among the active arms
            C = C_{delta/2n}(t) = sigma sqrt(c ln(log2(2t) 2n / delta) / t), kappa failure probability of the finder
            H pulls of the finder: H_ME(n, 2^-r, kappa) of Median Elimination
departures  D1 the factor 8 of tau_r, lost in print, is restored: each fresh mean is within 2^-(r+1) but for
               delta_r / (4n); the authors' code has 4
            D2 arms that the bad filter declares bad leave A, as in the authors' code
            D3 t is the common number of samples; ties go to the lowest arm
            D4 slack and the multiplicative form are derived: the paper prints the additive form with gamma = 0
            D5 finder="lucb": LUCB1 over the arms of G (all arms while G is empty) with running bounds of C_kappa, as in
               the authors' experiments; H is then the number of its pulls
               (which test before they pull, with fresh rivals; the authors' finder tests after, with stale ones)
            D6 Median Elimination with its constant of rewards in [0, 1], else 8 sigma^2
            D7 the good filter's bounds are current ones; the authors' code keeps the tightest so far
            D8 the accuracy of round r is unit 2^-r: the paper's unit, 1, is for samples whose scale is about 1

Line numbers are the paper's: its text and its margin give 9 to 12 (bad filter), 16, 19, 20, 22 and 23 (good filter);
the others follow by counting, comments included. No set B is kept: the arms outside A and G are bad, V is A without G.
Each filter has samples of its own, kept apart by the sums of samples when it begins and ends. Without its state it
refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from bandit_envs.kernels import choice, inlined, jit, number, part

from ..core import trees
from ..core.confidence import LEAST, MOST, lil_width
from ..core.declared import parts_of, per_arm, per_episode, scratch, setting
from ..core.largest import keep_largest, size_of
from ..core.phases import whole
from ..core.plans import planned, pull
from ..core.trees import Tree, put_running, rivals
from ..top_k.median_elimination import elimination_pulls, pulls_per_arm, width_constant
from .elimination import GoodFilter, activate_all, all_decided, sort_out

FINDERS = ("median-elimination", "lucb")
# The stages of a round, by what is pulled: A, by the good filter; what the finder asks for; i_r; V.
GOOD, FIND, SAMPLE_BEST, SAMPLE_OTHERS = range(4)


@jit
def bad_filter_pulls(r, n, delta, sigma=1.0, factor=8.0):
    """tau_r = ceil(factor 4^r sigma^2 ln(8 n / delta_r)), delta_r = delta / (2 r^2).   [line 7] D1"""
    return whole(factor * 4.0**r * sigma**2 * math.log(8 * n / (delta / (2 * r**2))))


@inlined
def accuracy(ep, own):
    """2^-r.   D8"""
    return own.unit * 2.0**-ep.now.r


@inlined
def fresh_mean(ep, own, i):
    """The mean of the samples of arm i in the last plan, whose arms were pulled equally often."""
    return (ep.total[i] - own.origin[i]) / ep.times[0]


@part
def begin_round(ep, own):
    """The bad filter begins. Its finder compares the arms of S: all, and LUCB1 those of G if there are any."""
    now, n = ep.now, len(ep.total)
    now.r, now.stage, now.l, now.H = now.r + 1, FIND, 0, 0
    now.tau_r = bad_filter_pulls(now.r, n, own.delta, own.sigma / own.unit, own.tau)  # line 7
    everywhere = not (own.lucb and own.answer.any())
    for i in range(n):
        own.drawn[i], own.begun[i] = ep.pulls[i], ep.total[i]
        own.S[i] = everywhere or own.answer[i]
    if own.lucb:
        plant(own)
    else:
        now.H = elimination_pulls(n, accuracy(ep, own), own.kappa, own.constant)
    settle(ep, own)


@part
def settle(ep, own):
    """Where the finder compares one arm only, it is i_r."""
    if size_of(own.S) == 1:
        for i in range(len(own.S)):
            ep.now.best = i if own.S[i] else ep.now.best
        ep.now.stage = SAMPLE_BEST


@part
def median_elimination(ep, own):
    """A round of Median Elimination(nu, 2^-r, kappa) is over: the better half of its arms stays."""
    for i in planned(ep):
        own.m[i] = fresh_mean(ep, own, i)
    keep_largest(own.m, own.S, (ep.now.size + 1) // 2, own.work)
    settle(ep, own)


@part
def plant(own):
    """The tree of LUCB1 over S, of which one arm is inside.   D5"""
    first = True
    for i in range(len(own.S)):
        if own.S[i]:
            trees.put(own.tree, i, 0.0, -math.inf, math.inf, first)
            first = False
        else:
            trees.leave_out(own.tree, i)
    trees.build(own.tree)


@part
def lucb(ep, own):
    """A round of LUCB1 is over: it has found i_r, or the two arms of the next one.   D5"""
    now = ep.now
    for i in planned(ep):
        N = ep.pulls[i] - own.drawn[i]
        if N > 0:  # the statistics of an episode that has been cut off no longer move
            C = lil_width(float(N), own.kappa, own.factor)
            put_running(own.tree, i, (ep.total[i] - own.begun[i]) / N, C)
            trees.refresh(own.tree, i)
    now.H += now.size
    now.best, now.rival, gap = rivals(own.tree)  # both are there, unless the state is of another episode
    if gap < accuracy(ep, own) or now.best < 0 or now.rival < 0:
        now.best, now.stage = max(now.best, 0), SAMPLE_BEST


@part
def pull_equally(ep, own):
    """Pull each arm of S, i_r or each arm of V, and mark that only samples from now on are fresh."""
    if ep.now.stage == SAMPLE_BEST:  # line 9
        pull(ep, ep.now.best, ep.now.tau_r)
    elif ep.now.stage == SAMPLE_OTHERS:  # lines 10 and 11
        for j in range(ep.now.active):
            if not own.answer[own.A[j]]:
                pull(ep, own.A[j], ep.now.tau_r)
    else:
        times = 1 if own.lucb else pulls_per_arm(ep.now.l, accuracy(ep, own), own.kappa, own.constant)
        for i in range(len(own.S)):
            if own.S[i]:
                pull(ep, i, times)
    for i in range(len(ep.total)):
        own.origin[i] = ep.total[i]


@inlined
def is_bad(m_best, m, accuracy, own):
    """Whether an arm is bad by its fresh mean and that of i_r.   [line 12] D4"""
    if own.multiplicative:
        return (1.0 - own.epsilon) * m_best - m >= (2.0 - own.epsilon) * accuracy
    return m_best - m >= own.epsilon + 2.0 * accuracy


@part
def end_bad_filter(ep, own):
    """The bad arms leave A, and the samples of the good filter count again.   [line 12] D2"""
    now, ahead, left = ep.now, 0, 0
    for j in range(now.active):
        i = own.A[j]
        if own.answer[i] or not is_bad(now.m_best, fresh_mean(ep, own, i), accuracy(ep, own), own):
            own.A[left] = i
            left += 1
            ahead += j < now.ahead
    for i in range(len(ep.total)):
        own.others[i] += ep.total[i] - own.begun[i]
    now.active, now.ahead = left, ahead
    if ahead == left:
        now.t, now.ahead = now.t + 1, 0


@inlined
def test(ep, own):
    """Lines 17 to 23. Returns whether the answer is known."""
    now, t, gamma = ep.now, ep.now.t + 1, own.gamma
    for j in range(now.active):
        own.m[own.A[j]] = (ep.total[own.A[j]] - own.others[own.A[j]]) / t
    U, L = sort_out(ep, own, float(t))  # lines 17 to 22
    now.t, now.ahead = t, 0
    enough = gamma / (2.0 - own.epsilon) * L if own.multiplicative else gamma / 2.0
    return all_decided(ep, own) or (gamma > 0.0 and enough >= U - L)  # line 23, D4


class Fareast(GoodFilter):
    """FAREAST (Mason et al. 2020): all epsilon-good arms, none worse than epsilon + slack, with probability 1 - delta.

    Args:
        finder: "median-elimination" (the paper's) or "lucb" (its experiments').
        kappa: failure probability of the finder, in (0, 1).
        tau: factor of tau_r, > 0: 8 is what the proof needs, 4 what the authors' code has.
        unit: the accuracy of round r is unit 2^-r, > 0; give about sigma for samples in other units than the paper's.

    Until it stops, `recommend` gives the plug-in answer.
    """

    name, source = "fareast", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 4.1"
    passes, resumes = 0, False
    shares = 2

    delta, sigma, unit = setting(float), setting(float), setting(float)
    lucb, kappa, constant = setting(bool), setting(float), setting(float)  # of the finder; that of Median Elimination
    tau = setting(float)  # the factor of tau_r
    stage, r, tau_r = per_episode(int), per_episode(int), per_episode(int)
    l, H = per_episode(int), per_episode(int)  # noqa: E741  rounds and pulls of the finder
    best, m_best = per_episode(int), per_episode(float)  # i_r, and its fresh mean; while LUCB1 seeks it, its h
    rival = per_episode(int)  # LUCB1's l
    left = per_episode(int)  # pulls that the good filter has left in this round
    t, ahead = per_episode(int), per_episode(int)  # the first `ahead` arms of A have t + 1 of its samples
    known = per_episode(bool)
    others = per_arm(float)  # the sum of an arm's samples that are not the good filter's
    drawn, begun = per_arm(int), per_arm(float)  # an arm's pulls, and the sum of its samples, as the bad filter begins
    origin = per_arm(float)  # the same sum as the last plan was made
    S = per_arm(bool)
    tree = parts_of(Tree.of)  # in which LUCB1 ranks arms
    work = scratch(float)

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        finder: str = "median-elimination",
        kappa: float = 1 / 16,
        c: float = 4.0,
        sigma: float | None = None,
        tau: float = 8.0,
        unit: float = 1.0,
    ) -> None:
        super().__init__(task, delta, c, sigma)
        self.finder = choice("finder", finder, FINDERS)
        self.lucb, self.constant = finder == "lucb", width_constant(self.task, sigma)  # D6
        self.kappa = number("kappa", kappa, 0, 1, above=True, below=True)
        self.tau = number("tau", tau, 0, above=True)
        self.unit = number("unit", unit, LEAST, MOST)

    def cautions(self) -> Iterator[str]:
        yield from super().cautions()
        if self.sigma > 4.0 * self.unit:
            units = f"samples of scale {self.sigma:g} in units of {self.unit:g}"
            yield f"{self.name}: its first rounds are long for {units}: say unit={self.sigma:g}"

    def begin(ep, own):
        """Lines 3 to 5: all arms are active, none is known, and the good filter has no samples."""
        activate_all(ep, own)
        for i in range(len(ep.total)):
            own.others[i] = ep.total[i]

    def observe(ep, own):
        """Take in what has been pulled."""
        now = ep.now
        if now.stage == FIND:  # line 9
            now.l += 1
            if own.lucb:
                lucb(ep, own)
            else:
                median_elimination(ep, own)
        elif now.stage == SAMPLE_BEST:
            now.m_best, now.stage = fresh_mean(ep, own, now.best), SAMPLE_OTHERS
        elif now.stage == SAMPLE_OTHERS:
            now.left = now.H + (now.size + 1) * now.tau_r  # for line 14; the plan was V
            end_bad_filter(ep, own)  # line 12
            now.stage, now.known = GOOD, all_decided(ep, own)  # line 23, D2
        else:
            now.ahead += now.size
            if now.ahead == now.active:  # line 16
                now.known = test(ep, own)

    def stops(ep, own):
        """The stopping rule, line 23. What is still active is good: nothing new without slack, D4."""
        if ep.now.known:
            for j in range(ep.now.active):
                own.answer[own.A[j]] = True
        return ep.now.known

    def sample(ep, own):
        """The sampling rule, lines 6 to 15."""
        now = ep.now
        if now.stage == GOOD and now.left == 0:
            begin_round(ep, own)  # line 6
        if now.stage == GOOD:
            for j in range(now.ahead, min(now.active, now.ahead + now.left)):  # line 15: those with the fewest samples
                pull(ep, own.A[j])
            now.left -= now.size  # line 14
        elif now.stage == FIND and own.lucb and now.l > 0:
            pull(ep, now.best)
            pull(ep, now.rival)
        else:
            pull_equally(ep, own)
