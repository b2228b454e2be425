"""CLUCB-PAC for the k best: Chen, Lin, King, Lyu & Chen, NIPS 2014, Algorithm 1 and Appendix B.2.

symbols     M the k arms with the largest empirical means, rad_i = sigma sqrt(2 ln(4 n t^3 / delta) / N_i) with t the
            pulls so far, w_i the adjusted mean (w with a tilde in the paper): m_i - rad_i in M and m_i + rad_i
            outside, M' the k arms with the largest w, w(M) the sum of w over M, p the arm to pull
answer      M, the plug-in answer
departures  D1 the tolerance is that of the problem's criterion: k epsilon for the aggregate regret, epsilon where each
               arm counts (a set that loses at most epsilon in sum holds no worse arm), 0 for the exact set
            D2 with a budget it stops only where M' = M, as there is nothing to pull then, and delta is 0.01 where
               none is named, as in Chen et al. 2017
            D3 ties go to the lowest arm

Of several arms the one that has been pulled least has the largest radius. In w(M') - w(M) the arms of both cancel, so
that the sum is over the symmetric difference of M and M' only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import inlined, part

from ..core.confidence import delta_of, scale_of
from ..core.declared import parts_of, per_arm, per_episode, scratch, setting
from ..core.largest import smallest
from ..core.plans import count_pulls, planned, pull
from .selection import TopKAgent, gather, rank

# Reductions of rows of 4 n numbers go in four chains, as each step of a single one would wait for the last. A row that
# is shorter is filled up with what does not count, see `padded`.
_1, _2, _3, _4 = (np.uint64(i) for i in range(1, 5))


def padded(fill: float) -> Any:
    """A row over the arms for a computation on one episode, filled up with this number."""
    return parts_of(lambda E, K: np.full((K + 3) // 4 * 4, fill))


@inlined
def largest(x):
    """The largest number of a row."""
    a, b, c, d = x[0], x[1], x[2], x[3]
    for i in range(_4, np.uint64(len(x)), _4):
        a = x[i] if x[i] > a else a
        b = x[i + _1] if x[i + _1] > b else b
        c = x[i + _2] if x[i + _2] > c else c
        d = x[i + _3] if x[i + _3] > d else d
    a, c = a if a > b else b, c if c > d else d
    return a if a > c else c


@inlined
def sum_of(x):
    """The sum of a row."""
    a = b = c = d = 0.0
    for i in range(np.uint64(0), np.uint64(len(x)), _4):
        a += x[i]
        b += x[i + _1]
        c += x[i + _2]
        d += x[i + _3]
    return (a + b) + (c + d)


@part
def kth_largest(w, k, guess, candidates):
    """The arm with the k-th largest w (K,), k >= 1, where of equal arms the lowest comes first.

    From the guess it goes to the next larger or smaller number among the w until it is at the k-th largest: from one
    round to the next that is a step or two. It overwrites `candidates`.
    """
    K, x, above, equal = len(w), guess, 0, 0  # how many w are larger than x, and equal to it
    for i in range(K):
        above += w[i] > x
    for i in range(K):
        equal += w[i] == x
    for _ in range(K + 1):  # it takes no more steps, unless some w are no numbers
        if above < k <= above + equal:
            break
        up = above >= k
        for i in range(K):
            candidates[i] = (-w[i] if w[i] > x else -math.inf) if up else (w[i] if w[i] < x else -math.inf)
        x = -largest(candidates) if up else largest(candidates)
        before, equal = equal, 0
        for i in range(K):
            equal += w[i] == x
        above += -equal if up else before
    place, i = k - above, 0  # the place of the arm among those whose w is x
    while i < K - 1:
        place -= w[i] == x
        if place == 0:
            return i
        i += 1
    return i


@inlined
def adjust_means(ep, own):
    """Set the adjusted means w: m_i - rad_i in M, m_i + rad_i outside. Returns a guess of the k-th largest of them."""
    n, w, radius = len(ep.mean), own.w, own.inverse_root
    for i in planned(ep):  # only these have been pulled since the last round
        radius[i] = 1.0 / math.sqrt(float(ep.pulls[i]))
    factor = math.sqrt(own.factor * (own.log_level + 3.0 * math.log(float(count_pulls(ep)))))
    for i in range(n):
        w[i] = ep.mean[i] + (-factor if own.inside[i] else factor) * radius[i]
    if ep.now.beginning:
        for i in range(n):
            own.work[i] = w[i]
        return smallest(own.work, n, n - own.k + 1)
    # The k-th arm of the last round, unless it is the one just pulled, whose adjusted mean may have moved far.
    return ep.now.kth_w if ep.now.kth == ep.now.last else w[ep.now.kth]


@inlined
def compare(ep, own, kth):
    """How M and M' differ, whose last arm is kth."""
    w, kth_w, changes, radii = own.w, own.w[kth], own.changes, own.candidates
    for i in range(len(w)):
        chosen = (w[i] > kth_w) | ((w[i] == kth_w) & (i <= kth))  # whether the arm is in M'
        differs, change = chosen != own.inside[i], w[i] if chosen else -w[i]
        changes[i], radii[i] = change if differs else 0.0, own.inverse_root[i] if differs else -1.0
    widest, p = largest(radii), 0
    while p < len(w) - 1 and radii[p] != widest:
        p += 1
    ep.now.p, ep.now.difference = p if widest > 0.0 else -1, sum_of(changes)


class CLUCB(TopKAgent):
    """CLUCB-PAC (Chen et al. 2014) for the k best arms. With a budget, delta is 0.01 where the task has none."""

    name, source, reads = "clucb", "Chen, Lin, King, Lyu & Chen, NIPS 2014", ()
    needs = "delta or budget"
    promises = ("aggregate", "each", "exact")

    tolerance, factor, log_level = setting(float), setting(float), setting(float)  # 2 sigma^2, ln(4 n / delta)
    inverse_root = per_arm(float)  # 1 / sqrt(N_i): the radius of an arm but for a factor that is the same for all arms
    kth, kth_w = per_episode(int), per_episode(float)  # the arm with the k-th largest w in the last round, and its w
    p, difference = per_episode(int), per_episode(float)  # -1 where M' = M; w(M') - w(M)
    w = scratch(float)
    changes = padded(0.0)  # what each arm contributes to w(M') - w(M)
    candidates = padded(-math.inf)  # the numbers of which the largest is wanted

    def begin(ep, own):
        """Gather M."""
        gather(ep, own)
        for i in range(len(ep.pulls)):
            own.inverse_root[i] = 1.0 / math.sqrt(float(ep.pulls[i]))

    def observe(ep, own):
        """M and M', and how they differ."""
        rank(ep, own)  # M
        guess = adjust_means(ep, own)
        kth = kth_largest(own.w, own.k, guess, own.candidates)  # M' are the arms down to this one
        ep.now.kth, ep.now.kth_w = kth, own.w[kth]
        compare(ep, own, kth)

    def stops(ep, own):
        """The stopping rule: w(M') - w(M) <= the tolerance, as where M' = M."""
        return ep.now.p < 0 or not ep.now.difference > own.tolerance

    def sample(ep, own):
        """The sampling rule: pull p."""
        pull(ep, ep.now.p)

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        self.level = 4.0 * self.task.K / delta_of(self.name, self.task, delta, with_budget=0.01)
        self.log_level = math.log(self.level)
        weight = {"aggregate": self.k, "each": 1.0, "exact": 0.0}[self.problem.criterion]  # type: ignore[attr-defined]
        self.tolerance = -math.inf if self.budgeted else weight * self.task.parameters["epsilon"]  # D1
        self.factor = 2.0 * scale_of(self.task, sigma) ** 2
