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

from ..core import trees
from ..core.confidence import delta_of, scale_of
from ..core.declared import parts_of, per_arm, per_episode, setting
from ..core.plans import count_pulls, planned, pull
from .selection import TopKAgent, gather

# What an arm has in the tree: on one side those outside M', on the other those of M', with -w in place of w; then
# 1 / sqrt(N_i) where only one of M and M' has it.
CHANGED, _8 = np.uint64(7), np.uint64(8)


@inlined
def rad_one(ep, own):
    """rad_i sqrt(N_i)."""
    return math.sqrt(own.factor * (own.log_level + 3.0 * math.log(float(ep.now.t))))


@inlined
def put(ep, own, i):
    """Put what is known of arm i into the tree."""
    m, radius, inside, chosen = ep.mean[i], 1.0 / math.sqrt(float(ep.pulls[i])), own.inside[i], own.chosen[i]
    trees.put_bound(own.tree, i, -m if chosen else m, radius if inside == chosen else -radius, chosen, m, inside)
    own.tree.nodes[np.uint64(i) * _8 + CHANGED] = radius if inside != chosen else -math.inf


@part
def renew(ep, own, i):
    """The same in the course of an episode."""
    put(ep, own, i)
    trees.lead(own.tree, i, trees.by_line, trees.overtaken_by_line, ep.now.rad, True)


@part
def exchange(ep, own, which, out, into):
    """Arm `out` leaves a set, and arm `into` enters it."""
    which[out], which[into] = False, True
    renew(ep, own, out)
    renew(ep, own, into)


@part
def rank_adjusted(ep, own):
    """Put M' in order: of arms with equal w the lowest comes first."""
    trees.grow(own.tree, trees.by_line, trees.overtaken_by_line, ep.now.rad, True)
    for _ in range(len(ep.pulls)):
        out, least, next_least = trees.leader(own.tree, trees.OTHER, trees.by_line, ep.now.rad, True, 0)
        into, most, next_most = trees.leader(own.tree, trees.ONE, trees.by_line, ep.now.rad, False, 0)
        if not (most > -least or (most == -least and into < out)):
            return
        exchange(ep, own, own.chosen, out, into)
        if next_most < -next_least:  # so that the others are in order
            return


@part
def difference(ep, own):
    """w(M') - w(M), of four sums, of every fourth arm."""
    a = b = c = d = 0.0
    i = trees.after(own.tree, CHANGED, -1)
    while i >= 0:
        radius = own.tree.nodes[np.uint64(i) * _8 + CHANGED]
        w = trees.by_line(ep.mean[i], -radius if own.inside[i] else radius, ep.now.rad, 0.0)
        w, lane = w if own.chosen[i] else -w, i % 4
        a, b = a + (w if lane == 0 else 0.0), b + (w if lane == 1 else 0.0)
        c, d = c + (w if lane == 2 else 0.0), d + (w if lane == 3 else 0.0)
        if trees.is_small(own.tree):
            i += 1
            while i < len(ep.pulls) and own.inside[i] == own.chosen[i]:
                i += 1
            i = i if i < len(ep.pulls) else -1
        else:
            i = trees.after(own.tree, CHANGED, i)
    return (a + b) + (c + d)


class CLUCB(TopKAgent):
    """CLUCB-PAC (Chen et al. 2014) for the k best arms. With a budget, delta is 0.01 where the task has none."""

    name, source, reads = "clucb", "Chen, Lin, King, Lyu & Chen, NIPS 2014", ()
    needs = "delta or budget"
    promises = ("aggregate", "each", "exact")

    tolerance, factor, log_level = setting(float), setting(float), setting(float)  # 2 sigma^2, ln(4 n / delta)
    chosen = per_arm(bool)  # M'
    t, rad = per_episode(int), per_episode(float)  # the pulls so far; rad_i of an arm with one of them
    tree = parts_of(trees.Tree.of)

    def begin(ep, own):
        """Gather M; M' begins as M."""
        gather(ep, own)
        ep.now.t = count_pulls(ep)
        ep.now.rad = rad_one(ep, own)
        for i in range(len(ep.pulls)):
            own.chosen[i] = own.inside[i]
            put(ep, own, i)
        trees.build_leads(own.tree, trees.by_line, trees.overtaken_by_line, ep.now.rad, True)

    def observe(ep, own):
        """M and M'."""
        ep.now.t += len(planned(ep))
        ep.now.rad = rad_one(ep, own)
        for i in planned(ep):
            renew(ep, own, i)
        out, into = trees.misplaced(own.tree)
        while out >= 0:
            exchange(ep, own, own.inside, out, into)
            out, into = trees.misplaced(own.tree)
        rank_adjusted(ep, own)

    def stops(ep, own):
        """The stopping rule: w(M') - w(M) <= the tolerance, as where M' = M."""
        if trees.root(own.tree, CHANGED) == -math.inf:
            return True
        return own.tolerance > -math.inf and not difference(ep, own) > own.tolerance

    def sample(ep, own):
        """The sampling rule: pull p, of M or M' alone the arm with the largest radius."""
        pull(ep, trees.extreme(own.tree, CHANGED))

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        self.level = 4.0 * self.task.K / delta_of(self.name, self.task, delta, with_budget=0.01)
        self.log_level = math.log(self.level)
        weight = {"aggregate": self.k, "each": 1.0, "exact": 0.0}[self.problem.criterion]  # type: ignore[attr-defined]
        self.tolerance = -math.inf if self.budgeted else weight * self.task.parameters["epsilon"]  # D1
        self.factor = 2.0 * scale_of(self.task, sigma) ** 2
