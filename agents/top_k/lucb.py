"""LUCB1: Kalyanakrishnan, Tewari, Auer & Stone, ICML 2012.

symbols     High the k arms with the largest empirical means, Low the rest; h in High with the least lower bound, l in
            Low with the largest upper bound; t the round; beta(t, N) = W sqrt(ln(k1 n t^4 / delta) / (2 N)), k1 = 5/4
departures  D1 ties go to the lowest arm
            D2 samples of sub-Gaussian scale sigma: W = 2 sigma
            D3 widths="lil": the widths and running bounds of the experiments of Mason et al., NeurIPS 2020; they do not
               change with t, so that a tree finds h and l in far less than n steps
            D4 with a budget it does not stop before that is spent, and delta is 0.01 where none is named

On AllGood it is the oracle of those experiments: given k, it never stops and answers High.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import choice, integer, number, part

from ..core import trees
from ..core.agent import Bools, Floats, Ints, Observation, seen_means
from ..core.algorithm import Algorithm
from ..core.confidence import TABULATED, delta_of, lil_table, scale_of, tabulated, tolerance_of
from ..core.declared import parts_of, per_episode, setting
from ..core.plans import count_pulls, planned, pull
from .elimination import with_best

WIDTHS = ("hoeffding", "lil")
K1 = 1.25


@part
def beta_scale(t, own):
    """beta(t, N) sqrt(N), which is the same for all arms."""
    return math.sqrt(2.0 * own.factor * (math.log(own.level) + 4.0 * math.log(float(t))))


MOST_GROWTH = 0.003  # of the scale, since bounds were last put into the tree


@part
def measure(ep, own, i):
    """Put the mean and the bounds of arm i into the tree, for widths="lil".   D3"""
    trees.put_running(own.tree, i, ep.mean[i], tabulated(ep.pulls[i], own.level, own.factor, own.table))


@part
def put_scaled(ep, own, i, inside):
    """Put the mean of arm i, inside High or not, and the bounds m_i +- scale / sqrt(N_i) into the tree."""
    m, spread = ep.mean[i], 1.0 / math.sqrt(float(ep.pulls[i]))
    trees.put_bound(own.tree, i, (-m if inside else m) + ep.now.scale * spread, spread, inside, m, inside)


@part
def renew(ep, own, i, inside):
    """The same in the course of an episode."""
    put_scaled(ep, own, i, inside)
    trees.lead(own.tree, i, trees.by_line, trees.overtaken_by_line, ep.now.growth, False)


@part
def scaled_rivals(ep, own, scale):
    """The two arms that decide, by bounds of this scale, which does not fall; the tree's are of an earlier one."""
    ep.now.growth = scale - ep.now.scale
    if ep.now.growth > MOST_GROWTH * ep.now.scale:
        ep.now.scale, ep.now.growth = scale, 0.0
        for i in range(len(ep.pulls)):
            put_scaled(ep, own, i, trees.is_inside(own.tree, i))
        trees.build_leads(own.tree, trees.by_line, trees.overtaken_by_line, 0.0, False)
    else:
        for i in planned(ep):
            renew(ep, own, i, trees.is_inside(own.tree, i))
    out, into = trees.misplaced(own.tree)
    while out >= 0:
        renew(ep, own, out, False)
        renew(ep, own, into, True)
        out, into = trees.misplaced(own.tree)
    trees.grow(own.tree, trees.by_line, trees.overtaken_by_line, ep.now.growth, False)
    h, low, _ = trees.leader(own.tree, trees.OTHER, trees.by_line, ep.now.growth, False, 0)
    l, high, _ = trees.leader(own.tree, trees.ONE, trees.by_line, ep.now.growth, False, 0)  # noqa: E741
    return trees.Rivals(h, l, high + low)


class LUCB(Algorithm):
    """LUCB1 (Kalyanakrishnan et al. 2012): k arms, each within epsilon of the k-th best, with probability 1 - delta.

    Args:
        k: size of the answer; None takes the problem's (AllGood: the number of good arms, an oracle).
        epsilon: >= 0; None takes the problem's, and 0 by the criterion "exact".
        widths: "hoeffding" (the paper's) or "lil" (Mason et al. 2020), whose constant is `c`.

    It stops by itself on TopK and BestArm where the task names a delta and no budget; else it runs on.
    """

    name, source = "lucb", "Kalyanakrishnan, Tewari, Auer & Stone, ICML 2012"
    reads = ()
    promises = ("aggregate", "each")
    solves = ("TopK", "BestArm", "AllGood")
    needs = "delta or budget"
    oracles = {
        "k": lambda problem, means: int(problem.right_answer(means).sum()) if problem.answer_size is None else None
    }

    k, epsilon = setting(int), setting(float)
    lil = setting(bool)  # widths that do not change with the round
    level, factor = setting(float), setting(float)  # lil: delta / n and c sigma^2; else k1 n / delta and sigma^2
    table = setting(Floats)  # lil: the widths after 0, 1, ... pulls; else nothing
    t = per_episode(int)  # rounds so far
    # Hoeffding widths in the tree are scale / sqrt(N), and have grown by growth / sqrt(N) since.
    scale, growth = per_episode(float), per_episode(float)
    h, l, gap = per_episode(int), per_episode(int), per_episode(float)  # noqa: E741
    tree = parts_of(trees.Tree.of)  # the bounds of the arms; High is inside

    def begin(ep, own):
        """Every arm has been pulled once: arms 0 .. k - 1 are High until they are ranked."""
        n = len(ep.pulls)
        for i in range(n):
            if own.lil:
                trees.put(own.tree, i, 0.0, -math.inf, math.inf, i < own.k)
                measure(ep, own, i)
            else:
                put_scaled(ep, own, i, i < own.k)
        if own.lil:
            trees.build(own.tree)
        ep.now.t = (count_pulls(ep) - n) // 2  # 0, unless the state was built in the middle of an episode

    def observe(ep, own):
        """Take in the samples of the last round: High, and the two arms that decide."""
        if own.lil:
            for i in planned(ep):
                measure(ep, own, i)
                trees.refresh(own.tree, i)
            found = trees.rivals(own.tree)
        else:
            found = scaled_rivals(ep, own, beta_scale(ep.now.t + 1, own))
        ep.now.h, ep.now.l, ep.now.gap = found.h, found.l, found.gap

    def stops(ep, own):
        """The stopping rule: U_l - L_h < epsilon."""
        return ep.now.gap < own.epsilon

    def sample(ep, own):
        """The sampling rule: pull h and l."""
        if ep.now.h >= 0 and ep.now.l >= 0:  # there are both, unless the state is of another episode
            pull(ep, ep.now.h)
            pull(ep, ep.now.l)
            ep.now.t += 1

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        k: int | None = None,
        epsilon: float | None = None,
        widths: str = "hoeffding",
        c: float = 2.08,
        sigma: float | None = None,
    ) -> None:
        super().__init__(task)
        K, parameters = self.task.K, self.task.parameters
        k = self.problem.answer_size if k is None else k
        if k is None:
            raise ValueError("lucb on AllGood is an oracle: it needs k=, which is known only for a fixed instance")
        self.k = integer("k", k, 1, K - 1)
        if self.problem.answer_size not in (None, self.k):
            raise ValueError(f"an answer of {self.task.problem} holds {self.problem.answer_size} arms, got k={self.k}")
        self.lil = lil = choice("widths", widths, WIDTHS) == "lil"
        oracle = self.problem.answer_size is None
        delta = delta_of(self.name, self.task, delta, with_budget=None if oracle else 0.01)  # D4
        scale = scale_of(self.task, sigma)
        c = number("c", c, 0, above=True)
        self.level, factor = (delta / K, c) if lil else (K1 * K / delta, 1.0)
        self.factor = factor * scale**2
        if epsilon is None:
            epsilon = parameters["epsilon"] if oracle else tolerance_of(self)
        self.epsilon = number("epsilon", epsilon, 0)
        self.may_stop = not oracle and self.task.budget is None
        self.table = lil_table(self.level, self.factor, TABULATED if lil else 0)

    def idle(self) -> dict[str, str]:
        found = {} if self.lil else {"c": "which is of widths='lil' alone"}
        if not self.may_stop:
            found["epsilon"] = "as it is the tolerance at which the agent stops, and here it runs on"
        return found

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The recommendation rule: High, the k largest empirical means; arms never pulled come last."""
        means = seen_means(observation, slots)
        none = np.zeros(means.shape, np.bool_)
        return with_best(np.where(np.isnan(means), -np.inf, means), ~none, none, self.k)
