"""(ST)^2, Sample the Threshold, Split the Threshold: Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 1.

symbols     m_i empirical mean, T_i pulls, C = C_{delta/n}(T_i) = sigma sqrt(c ln(log2(2 T_i) n / delta) / T_i)
            gamma slack; Ghat empirically good arms; U, L upper and lower bounds on the threshold; K (here: Known) arms
            that are known to be good or bad
departures  D1 ties go to the lowest arm
            D2 in the multiplicative form the factor applies to mean and width, which the proof needs (lost in print)
            D3 bounds="running": bounds never widen again, as in the authors' experiments; c = 2.08 there
            D4 multiplicative, while max m < 0: Ghat holds the best arms (as printed it would be empty)

With slack 0 no arm of Ghat is known to be bad, nor one outside known to be good, so that line 7 is the least lower
bound of all of Ghat if that is at most U, and line 8 the largest upper bound outside if that is at least L. Where slack
(or a negative best mean) breaks this, the round falls back to a scan over the unknown arms.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import part

from ..core import trees
from ..core.agent import Floats
from ..core.confidence import bounds_of, lil_table, tabulated
from ..core.declared import parts_of, per_episode, setting
from ..core.plans import planned, pull
from ..core.trees import ESTIMATE, LOWER, NEG_LOWER_IN, UPPER, UPPER_OUT, Tree, extreme, lower, root, upper
from .elimination import GoodArms, threshold_of


@part
def measure(ep, own, i):
    """Put m_i and its bounds m_i -+ C into the tree."""
    m, C = ep.mean[i], tabulated(ep.pulls[i], own.level, own.factor, own.table)
    if own.running:
        trees.put_running(own.tree, i, m, C)  # D3
    else:
        trees.put(own.tree, i, m, m - C, m + C, trees.is_inside(own.tree, i))


@part
def settle(own, best):
    """Line 2: Ghat, the arms within epsilon of the best mean.   D4"""
    trees.settle(own.tree, min(threshold_of(best, 0.0, own), best))


@part
def scan(tree, K, U, L, inside):
    """The unknown arm inside with the least lower bound, or outside with the largest upper bound; -1 if none."""
    best, which = math.inf, -1
    for i in range(K):
        value = lower(tree, i) if inside else -upper(tree, i)
        if upper(tree, i) >= L and lower(tree, i) <= U and trees.is_inside(tree, i) == inside and value < best:
            best, which = value, i
    return which


@part
def find_unknown(ep, own, low, high):
    """The arms of lines 7 and 8, where the largest mean has these bounds; -1 where there is none."""
    tree, K, i = own.tree, len(ep.pulls), extreme(own.tree, NEG_LOWER_IN)
    U, L = threshold_of(high, own.gamma, own), threshold_of(low, 0.0, own)
    if i >= 0 and upper(tree, i) < L:
        i = scan(tree, K, U, L, True)
    j = extreme(tree, UPPER_OUT)
    if j >= 0 and lower(tree, j) > U:
        j = scan(tree, K, U, L, False)
    ep.now.U = U
    ep.now.inside = i if i >= 0 and lower(tree, i) <= U else -1
    ep.now.outside = j if j >= 0 and upper(tree, j) >= L else -1


@part
def answer_above(ep, own):
    """The answer: the arms above U."""
    for i in range(len(ep.pulls)):
        own.answer[i] = lower(own.tree, i) > ep.now.U


class ST2(GoodArms):
    """(ST)^2 (Mason et al. 2020): all epsilon-good arms, none worse than epsilon + slack, with probability 1 - delta.

    Args:
        c: constant of the width, > 0 (the paper's proof: 4; its experiments: 2.08). bounds: "current" or "running".

    Until it stops, `recommend` gives the plug-in answer, as in the paper's figures; then the certified set.
    """

    name, source, reads = "st2", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 1", ()
    running = setting(bool)  # bounds never widen again
    table = setting(Floats)  # C after 0, 1, ... pulls
    U = per_episode(float)
    inside, outside, top = per_episode(int), per_episode(int), per_episode(int)  # the arms of this round; -1: none
    tree = parts_of(Tree.of)  # the bounds of the arms; those of Ghat are inside

    def __init__(
        self, task: Any, delta: float | None = None, c: float = 4.0, bounds: str = "current", sigma: float | None = None
    ) -> None:
        super().__init__(task, delta, c, sigma)
        self.table, self.running = lil_table(self.level, self.factor), bounds_of(bounds)

    def begin(ep, own):
        """Line 1 is over: each arm has been pulled once. The sides follow."""
        ep.now.top = -1
        for i in range(len(ep.pulls)):
            trees.put(own.tree, i, 0.0, -math.inf, math.inf, i == 0)
            measure(ep, own, i)
        trees.build(own.tree)

    def observe(ep, own):
        """Take in the samples of the last round, and find the arms of the next one."""
        for i in planned(ep):
            measure(ep, own, i)
            trees.refresh(own.tree, i)
        settle(own, root(own.tree, ESTIMATE))  # line 2
        find_unknown(ep, own, root(own.tree, LOWER), root(own.tree, UPPER))  # lines 3, 4, 7 and 8
        ep.now.top = extreme(own.tree, UPPER)  # line 9

    def stops(ep, own):
        """The stopping rule, lines 5 and 6: all arms are known."""
        over = ep.now.inside < 0 and ep.now.outside < 0
        if over:
            answer_above(ep, own)
        return over

    def sample(ep, own):
        """The sampling rule: pull the arms of lines 7 to 9."""
        for i in (ep.now.inside, ep.now.outside, ep.now.top):
            if i >= 0:
                pull(ep, i)
