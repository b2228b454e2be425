"""LUCB1: Kalyanakrishnan, Tewari, Auer & Stone, ICML 2012.

symbols     High the k arms with the largest empirical means, Low the rest; h in High with the least lower bound, l in
            Low with the largest upper bound; t the round; beta(t, N) = W sqrt(ln(k1 n t^4 / delta) / (2 N)), k1 = 5/4
departures  D1 ties go to the lowest arm
            D2 samples of sub-Gaussian scale sigma: W = 2 sigma
            D3 widths="lil": the widths and running bounds of the experiments of Mason et al., NeurIPS 2020; they do not
               change with t, so that a tree finds h and l in far less than n steps
            D4 with a budget line 5 is left out, and delta is 0.01 where nobody names one
            D5 all widths grow with t: the tree holds those of an earlier round, and a search by branch and bound allows
               for what they have grown since; after .3 % they are all put in anew

On AllGood it is the oracle of those experiments: given k, it never stops and answers High.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs import choice, episode_kernel, inlined, integer, lean, number

from ..core import trees
from ..core.agent import Bools, Floats, Ints, Observation, seen_means
from ..core.confidence import delta_of, lil_width, scale_of
from ..core.plan_policy import PlanPolicy, Seen, add, clear, following, planned
from ..core.trees import Forest, is_inside, lower, tree_of, upper

__all__ = ["LUCB"]

WIDTHS = ("hoeffding", "lil")
K1 = 1.25
MOST_GROWTH = 0.003  # of the widths, since they were last put into the tree


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    k: int
    epsilon: float
    stops: bool
    lil: bool  # widths that do not change with the round
    level: float  # lil: delta / n; else k1 n / delta
    factor: float  # lil: c sigma^2; else sigma^2


@dataclass
class Memory:
    """Memory of LUCB for E episodes."""

    plans: Any  # (E,) h and l of this round
    forest: Forest  # the bounds of the arms; High is inside
    t: Ints  # (E,) the round
    scale: Floats  # (E,) Hoeffding: of the widths in the tree, scale / sqrt(N); those of the round are a little wider


@inlined
def beta_scale(t: Any, rules: Any) -> Any:
    """beta(t, N) sqrt(N), which is the same for all arms."""
    return math.sqrt(2.0 * rules.factor * (math.log(rules.level) + 4.0 * math.log(float(t))))


@lean
def measure(seen: Any, e: Any, i: Any, tree: Any, scale: Any, rules: Any) -> Any:
    """Put the estimate and the bounds of arm i into the tree, by running lil widths or by widths scale / sqrt(N)."""
    m, N = seen.mean[e, i], float(seen.pulls[e, i])
    if rules.lil:  # D3
        C = lil_width(N, rules.level, rules.factor)
        trees.put(tree, i, m, max(m - C, lower(tree, i)), min(m + C, upper(tree, i)), is_inside(tree, i))
    else:
        spread = 1.0 / math.sqrt(N)
        trees.put(tree, i, m, m - scale * spread, m + scale * spread, is_inside(tree, i))
        trees.put_spread(tree, i, spread)


@lean
def begin(seen: Any, e: Any, tree: Any, rules: Any) -> Any:
    """Every arm has been pulled once: arms 0 .. k - 1 are High until they are ranked. Returns the rounds so far."""
    n, made = seen.pulls.shape[1], 0
    for i in range(n):
        made += seen.pulls[e, i]
        trees.put(tree, i, 0.0, -math.inf, math.inf, i < rules.k)
        if rules.lil:
            measure(seen, e, i, tree, 0.0, rules)
    if rules.lil:
        trees.build(tree)
    return (made - n) // 2  # 0, unless the memory was built in the middle of an episode


@lean
def rank(seen: Any, e: Any, tree: Any, plan: Any, scale: Any, rules: Any) -> Any:
    """Take in the samples of the last round, and put the k largest means inside."""
    for i in planned(plan):
        measure(seen, e, i, tree, scale, rules)
        trees.refresh(tree, i)
    clear(plan)


@lean
def widen(seen: Any, e: Any, tree: Any, t: Any, scale: Any, rules: Any) -> Any:
    """The scale of the widths in the tree after those of round t have been allowed for, and what it lacks of theirs."""
    if rules.lil:
        return scale, 0.0
    wanted = beta_scale(t, rules)
    if wanted - scale <= MOST_GROWTH * scale:  # D5
        return scale, wanted - scale
    for i in range(seen.pulls.shape[1]):
        measure(seen, e, i, tree, wanted, rules)
    trees.build(tree)
    return wanted, 0.0


@inlined
def extremes(tree: Any, growth: Any, rules: Any) -> Any:
    """h, in High with the least lower bound; l, in Low with the largest upper bound; and the gap between the bounds."""
    if rules.lil:
        h, l = trees.argmin_lower_inside(tree), trees.argmax_upper_outside(tree)  # noqa: E741
        return h, l, upper(tree, l) - lower(tree, h)
    h, low = trees.grown_lower_inside(tree, growth)
    l, high = trees.grown_upper_outside(tree, growth)  # noqa: E741
    return h, l, high + low


@lean
def plan_round(seen: Any, e: Any, tree: Any, plan: Any, memory: Any, rules: Any) -> Any:
    """Plan the pulls of the next round, h and l; nothing if the bounds are within epsilon."""
    t, scale = memory
    if plan.beginning:
        plan.beginning = 0
        t[e], scale[e] = begin(seen, e, tree, rules), 0.0
    rank(seen, e, tree, plan, scale[e], rules)
    scale[e], growth = widen(seen, e, tree, t[e] + 1, scale[e], rules)
    trees.settle_best(tree)
    h, l, gap = extremes(tree, growth, rules)  # noqa: E741
    if not (rules.stops and gap < rules.epsilon):
        add(plan, h)
        add(plan, l)
        t[e] += 1


@episode_kernel
def next_arm(e: int, seen: Seen, rules: Rules, forest: Forest, plans: Any, t: Any, scale: Any) -> Any:
    """The next arm of episode e, K to stop."""
    plan = plans[e]
    arm = following(seen, e, plan)
    if arm < 0:
        plan_round(seen, e, tree_of(forest, e), plan, (t, scale), rules)
        arm = following(seen, e, plan)
    return arm if arm >= 0 else seen.pulls.shape[1]


class LUCB(PlanPolicy):
    """LUCB1 (Kalyanakrishnan et al. 2012): k arms, each within epsilon of the k-th best, with probability 1 - delta.

    Args:
        task: a task or an environment. delta: None takes the task's.
        k: size of the answer; None takes the problem's (AllGood: the number of good arms, an oracle).
        epsilon: None takes the problem's, >= 0.
        widths: "hoeffding" (the paper's) or "lil" (Mason et al. 2020; then `c` is their constant).
        c: constant of the lil widths, > 0. sigma: sub-Gaussian scale; None takes the task's.

    It stops by itself on TopK and BestArm where the task names a delta and no budget; else it runs on.
    """

    name, source, stops = "lucb", "Kalyanakrishnan, Tewari, Auer & Stone, ICML 2012", True
    solves = ("TopK", "BestArm", "AllGood")
    oracles = {
        "k": lambda problem, means: int(problem.right_answer(means).sum()) if problem.answer_size is None else None
    }

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
        lil = choice("widths", widths, WIDTHS) == "lil"
        oracle = self.problem.answer_size is None
        delta = delta_of(self.name, self.task, delta, with_budget=None if oracle else 0.01)  # D4
        scale = scale_of(self.task, sigma)
        level, factor = (delta / K, number("c", c, 0, above=True)) if lil else (K1 * K / delta, 1.0)
        epsilon = number("epsilon", parameters["epsilon"] if epsilon is None else epsilon, 0)
        self.stops = not oracle and self.task.budget is None
        self.rules = Rules(self.k, epsilon, self.stops, lil, level, factor * scale**2)

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        return Memory(self.new_plans(observation), Forest.of(E, K), np.zeros(E, np.int64), np.zeros(E))

    def next_arms(self, seen: Seen, observation: Observation, state: Memory, out: Ints) -> None:
        next_arm(*seen, *self.rules, *state.forest, state.plans, state.t, state.scale, out)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """High: the k largest empirical means; arms never pulled come last."""
        means = seen_means(observation, slots)
        order = np.argsort(-np.where(np.isnan(means), -np.inf, means), axis=-1, kind="stable")[..., : self.k]
        answer = np.zeros(means.shape, np.bool_)
        np.put_along_axis(answer, order, True, axis=-1)
        return answer
