"""HDoC, LUCB-G and APT-G: Kano, Honda, Sakamaki, Matsuura, Nakamura & Sugiyama, Machine Learning 2019.

symbols     K arms, xi the threshold, N_i pulls, t the pulls of all arms; an arm is output as good where
            mean_i - C_i >= xi, and deleted where mean_i + C_i < xi, C_i = W sqrt(ln(4 K N_i^2 / delta) / (2 N_i)); of
            the arms that are left, the next one is
            "hdoc"    argmax of mean_i + W sqrt(ln t / (2 N_i))
            "lucb-g"  argmax of mean_i + C_i
            "apt-g"   argmin of sqrt(N_i) |mean_i - xi|
departures  D1 ties go to the lowest arm
            D2 samples of sub-Gaussian scale sigma: W = 2 sigma
            D3 the problem's tolerance, under which an arm may be answered either way, widens both sides: an arm is
               left where C_i < |mean_i - xi| + tolerance, and answered by its mean

Good arm identification outputs arms one by one; Threshold asks for all of them at the end, when every arm has been
output or deleted. An arm is left by its own samples alone, and so all three rules need the same pulls to the end, as
round robin over the arms that are left would: they differ in when which arm is known.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import choice, inlined, part

from ..core.algorithm import Algorithm
from ..core.confidence import delta_of, scale_of
from ..core.declared import parts_of, per_arm, per_episode, setting
from ..core.plans import count_pulls, planned, pull
from ..core.trees import ONE, Tree, build_leads, by_root, grow, is_small, lead, leader, overtaken_by_root, root

SAMPLING = ("hdoc", "lucb-g", "apt-g")


@inlined
def half_width(N, own):
    """C_i after N pulls."""
    n = float(N)
    return math.sqrt(own.factor * (math.log(own.level) + 2.0 * math.log(n)) / n)


@part
def judge(ep, own, i):
    """Put arm i into the tree, or leave it out where it is output or deleted."""
    o, N, m, C = np.uint64(i) * np.uint64(8), float(ep.pulls[i]), ep.mean[i], half_width(ep.pulls[i], own)
    own.undecided[i] = abs(m - own.xi) + own.tolerance <= C
    index, s = m, -N
    if own.sampling > 0:
        index, s = m + C if own.sampling == 1 else -math.sqrt(N) * abs(m - own.xi), 0.0
    nodes, none = own.tree.nodes, -math.inf
    nodes[o + ONE], nodes[o + ONE + np.uint64(1)] = (index, s) if own.undecided[i] else (none, none)


class HDoC(Algorithm):
    """HDoC (Kano et al. 2019), run until every arm is known to be good or not, with probability 1 - delta.

    Args:
        delta: None takes the task's, or 0.01 with a budget. sampling: "hdoc", "lucb-g" or "apt-g".
    """

    name, source = "hdoc", "Kano et al., Machine Learning 2019"
    solves = ("Threshold",)
    needs = "delta or budget"
    reads = ()

    xi, tolerance = setting(float), setting(float)
    level, factor = setting(float), setting(float)  # 4 K / delta and W^2 / 2
    sampling = setting(int)  # its place in `SAMPLING`
    undecided = per_arm(bool)  # the arms that are neither output nor deleted
    t, x = per_episode(int), per_episode(float)  # the pulls so far; the index of "hdoc" is mean_i + sqrt(x / N_i)
    tree = parts_of(Tree.of)

    def __init__(
        self, task: Any, delta: float | None = None, sampling: str = "hdoc", sigma: float | None = None
    ) -> None:
        super().__init__(task)
        self.sampling = SAMPLING.index(choice("sampling", sampling, SAMPLING))
        self.level = 4.0 * self.task.K / delta_of(self.name, self.task, delta, with_budget=0.01)
        self.factor = (2.0 * scale_of(self.task, sigma)) ** 2 / 2.0
        p: Any = self.problem
        self.xi, self.tolerance = p.threshold, p.tolerance

    def begin(ep, own):
        """Every arm has been pulled once."""
        ep.now.t = count_pulls(ep)
        ep.now.x = own.factor * math.log(float(ep.now.t))
        for i in range(len(ep.pulls)):
            judge(ep, own, i)
        build_leads(own.tree, by_root, overtaken_by_root, ep.now.x, False)

    def observe(ep, own):
        """Output or delete the arm that has been pulled."""
        ep.now.t += len(planned(ep))
        ep.now.x = own.factor * math.log(float(ep.now.t))
        for i in planned(ep):
            judge(ep, own, i)
            if not is_small(own.tree):  # few arms need no nodes: those that are left were there in the beginning
                lead(own.tree, i, by_root, overtaken_by_root, ep.now.x, False)
        grow(own.tree, by_root, overtaken_by_root, ep.now.x, False)

    def stops(ep, own):
        """The stopping rule: no arm is left."""
        return not own.undecided.any() if is_small(own.tree) else root(own.tree, ONE) == -math.inf

    def sample(ep, own):
        """The sampling rule: pull the arm with the largest index of those that are left."""
        pull(ep, leader(own.tree, ONE, by_root, ep.now.x, False, 0)[0])
