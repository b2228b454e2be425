"""Knockout tournaments of ranking and selection: KT, at a fixed precision, and FBKT, with a fixed budget.

KT: Zhong & Hong, Operations Research 2022. FBKT: Hong, Jiang & Zhong, INFORMS Journal on Computing 2022. The papers
were not to be had: this is by their abstracts, by what PyPRS documents of both, and by KN of Kim & Nelson, TOMACS 2001.

symbols     z indifference zone, T budget, n0 first samples, R rounds, n_r arms in round r = 1 .. R
KT          R = ceil(log_g K); in a round arms meet in groups of g, and KN leaves one of each: n samples of an arm so
            far, s_i their sum, V_i the variance (divisor n0 - 1) of its first n0. From n = n0 on an arm i is out where
            s_i - s_j < -max(h^2 (V_i + V_j) / (2 z) - z n / 2, 0) for a j of its group, and the others are pulled on;
            h^2 = (n0 - 1) ((2 a_r / (g - 1))^(-2 / (n0 - 1)) - 1), a_r = delta / 2^r
KT holds    independent Gaussian samples (of others means of batches, nearly), of any variances: a best arm that is z
            or more ahead of all others is left in its group with probability 1 - a_r, so that the answer is wrong with
            probability delta at most. Where others are closer nothing is proved
FBKT        R = ceil(log2 K); n0 samples of each arm. A round seeds its arms by the means of all their samples: the
            best meets the worst, and so on. Both get floor(w_r / n_r (T - n0 K)) samples, and the arm with the larger
            sum of these goes on; w_r is in proportion to r ((phi - 1) / phi)^r
FBKT holds  nothing at a level: the probability of a wrong answer falls exponentially in T
departures  D1 one tournament; PyPRS has one on each core, and a last selection among their winners
            D2 KT: V_i + V_j in the place of the variance of differences, which common random numbers need. The proof
               of KN holds: (1 + p x) (1 + (1 - p) x) >= 1 + x, where p is the first arm's share of the variance
            D3 the group q of KT has the arms q, q + G, .. of the n_r, G = ceil(n_r / g); a single arm goes on. In FBKT
               the best of an odd number has no match
            D4 the shares w_r sum to 1 over R rounds, in the paper over infinitely many
            D5 ties go to the lowest arm, in FBKT to the arm that is seeded higher, as where a round has no samples

Samples are fresh in each round of both. Without its state they refuse an episode that has begun.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import inlined, integer, jit, number, part

from ..core.agent import Ints
from ..core.confidence import delta_of, zone_of
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.phases import budget_for
from ..core.plans import pull
from .elimination import SetAlgorithm, finish, mark, measure


@jit
def h_squared(r: Any, delta: Any, n0: Any, g: Any) -> Any:
    """h^2 of round r of KT."""
    return (n0 - 1) * ((2.0 * delta / 2.0**r / (g - 1)) ** (-2.0 / (n0 - 1)) - 1.0)


def shares(K: int, phi: float) -> list[float]:
    """w_r / n_r of rounds 1 .. R of FBKT.   D4"""
    w = [r * ((phi - 1) / phi) ** r for r in range(1, (K - 1).bit_length() + 1)]
    return [one / (-(-K // 2**r) * math.fsum(w)) for r, one in enumerate(w)]


@inlined
def listed(own, order):
    """Fill `order` with the arms of S. Returns how many they are."""
    n = 0
    for i in range(len(own.S)):
        if own.S[i]:
            order[n] = i
            n += 1
    return n


@inlined
def learn(ep, own, i):
    """Take in one of the first n0 samples of an arm in a round, for its variance: its square, less the very first."""
    x, t = ep.total[i] - own.last[i], ep.now.t
    own.base[i] = x if t == 1 else own.base[i]
    own.V[i] = (0.0 if t == 1 else own.V[i]) + (x - own.base[i]) ** 2
    own.last[i] = ep.total[i]
    if t == own.first:
        own.V[i] = max(own.V[i] - (ep.total[i] - own.origin[i] - t * own.base[i]) ** 2 / t, 0.0) / (t - 1)


class KT(SetAlgorithm):
    """Knockout tournament (Zhong & Hong 2022): the best arm with probability 1 - delta, where it is `zone` ahead.

    Args:
        zone: indifference zone > 0; None takes the problem's epsilon.
        first: n0, samples of each arm at the beginning of a round. group: g, arms of a group.
    """

    name, source = "kt", "after Zhong & Hong, Operations Research 2022"
    solves, needs = ("BestArm",), "delta"
    promises, stops = ("aggregate", "each"), True
    delta, zone, first, group = setting(float), setting(float), setting(int), setting(int)
    order, of = per_arm(int), per_arm(int)  # the arms of open groups, one group after the other; the group of an arm
    last, base, V, left, out = per_arm(float), per_arm(float), per_arm(float), scratch(int), scratch(bool)
    n, t = per_episode(int), per_episode(int)  # arms of open groups; samples of each of them in this round

    def observe(ep, own):
        """One more sample of all arms of open groups: KN."""
        now, order, out, z, left, begin = ep.now, own.order, own.out, own.zone, 0, 0
        now.t += 1
        h2 = h_squared(now.round, own.delta, own.first, own.group)
        while begin < now.n:
            end, first = begin, left
            while end < now.n and own.of[order[end]] == own.of[order[begin]]:
                out[order[end]] = False
                if now.t <= own.first:
                    learn(ep, own, order[end])
                end += 1
            for a in range(begin, end if now.t >= own.first else begin):
                for b in range(a + 1, end):
                    i, j = order[a], order[b]
                    ahead = (ep.total[i] - own.origin[i]) - (ep.total[j] - own.origin[j])
                    bar = h2 * (own.V[i] + own.V[j]) / (2.0 * z) - z * now.t / 2.0
                    out[j] |= ahead > bar if bar > 0 else ahead >= 0
                    out[i] |= -ahead > max(bar, 0.0)
            for a in range(begin, end):
                own.S[order[a]] = not out[order[a]]
                order[left] = order[a]
                left += own.S[order[a]]
            left, begin = first if left == first + 1 else left, end
        now.n = left

    def sample(ep, own):
        """A sample of all arms of open groups; where there are none, of those of the next round."""
        now = ep.now
        if now.n == 0:
            n = listed(own, own.left)
            groups = (n + own.group - 1) // own.group
            mark(ep, own)
            for q in range(min(groups, n - groups)):  # those of two arms or more   D3
                for p in range(q, n, groups):
                    i = own.left[p]
                    own.order[now.n], own.of[i], own.last[i] = i, q, ep.total[i]
                    now.n += 1
            now.round, now.t = now.round + 1, 0
        for p in range(now.n):
            pull(ep, own.order[p])
        if now.n == 0:
            finish(own, 1)

    def __init__(
        self, task: Any, delta: float | None = None, zone: float | None = None, first: int = 20, group: int = 20
    ) -> None:
        super().__init__(task)
        self.delta, self.zone = delta_of(self.name, self.task, delta), zone_of(self, zone)
        self.first, self.group = integer("first", first, 2, 10**6), integer("group", group, 2, 10**6)


@part
def seed(order, n, mean):
    """Sort n arms, the largest mean first, then the lowest arm: Shell's sort."""
    gap = n // 2
    while gap > 0:
        for p in range(gap, n):
            i, at = order[p], p
            m, j = mean[i], order[p - gap]
            while at >= gap and (mean[j] < m or (mean[j] == m and j > i)):
                order[at] = j
                at -= gap
                j = order[max(at - gap, 0)]
            order[at] = i
        gap = 1 if gap == 2 else gap * 5 // 11


class FBKT(SetAlgorithm):
    """Fixed-budget knockout tournament (Hong, Jiang & Zhong 2022): the best arm within a budget >= first K.

    Args:
        first: n0, samples of each arm for the seeding of the first round; None: a third of the budget, but 8 at most.
        phi: > 1; the smaller, the more of the budget is for the first rounds.
    """

    name, source = "fbkt", "after Hong, Jiang & Zhong, INFORMS Journal on Computing 2022"
    solves, anytime = ("BestArm",), False
    times = setting(Ints)  # of an arm in each round, the seeding first
    order, n = per_arm(int), per_episode(int)  # the arms of the round by their seeds, and how many they are

    def observe(ep, own):
        """A round is over: the losers are out."""
        measure(ep, own)
        for p in range(ep.now.n % 2, (ep.now.n + 1) // 2):  # D3
            i, j = own.order[p], own.order[ep.now.n - 1 + ep.now.n % 2 - p]
            own.S[i if own.m[j] > own.m[i] else j] = False

    def sample(ep, own):
        """The samples for seeding, then those of each round; after the last one none, and then the answer."""
        now, n = ep.now, listed(own, own.order)
        if now.round > 0:
            seed(own.order, n, ep.mean)
            mark(ep, own)
        while n > 1 and own.times[now.round] == 0:  # D5
            for p in range((n + 1) // 2, n):
                own.S[own.order[p]] = False
            n, now.round = (n + 1) // 2, now.round + 1
        now.n = n if now.round > 0 else 0
        for p in range(now.n % 2, n if n > 1 else 0):
            pull(ep, own.order[p], own.times[now.round])
        now.round += 1
        if n == 1:
            finish(own, 1)

    def __init__(self, task: Any, first: int | None = None, phi: float = 3.0) -> None:
        super().__init__(task)
        K, least = self.task.K, 1 if first is None else integer("first", first, 1, 10**6)
        T, phi = budget_for(self.name, self.task, least * K), number("phi", phi, 1, 1e6, above=True)
        n0 = min(max(T // (3 * K), 1), 8) if first is None else least
        self.times = np.array([n0, *(int(one * (T - n0 * K)) for one in shares(K, phi))])
