"""LUCB1: Kalyanakrishnan, Tewari, Auer & Stone, ICML 2012.

symbols     High the k arms with the largest empirical means, Low the rest; h in High with the least lower bound, l in
            Low with the largest upper bound; t the round; beta(t, N) = W sqrt(ln(k1 n t^4 / delta) / (2 N)), k1 = 5/4
departures  D1 ties go to the lowest arm
            D2 samples of sub-Gaussian scale sigma: W = 2 sigma
            D3 widths="lil": the widths and running bounds of the experiments of Mason et al., NeurIPS 2020; they do not
               change with t, so that a tree finds h and l in far less than n steps
            D4 with a budget it does not stop before that is spent, and delta is 0.01 where nobody names one
            D5 all widths grow with t: the tree holds those of an earlier round, and a search by branch and bound allows
               for what they have grown since; after .3 % they are all put in anew

On AllGood it is the oracle of those experiments: given k, it never stops and answers High.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import choice, fleeting, inlined, integer, number, part

from ..core import trees
from ..core.agent import Bools, Floats, Ints, Observation, seen_means
from ..core.confidence import TABULATED, delta_of, lil_table, scale_of, tabulated, tolerance_of
from ..core.plan_policy import PlanPolicy, Seen, add, planned, round_rule
from ..core.spellings import AgentState
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
    table: Floats  # lil: the widths after 0, 1, ... pulls; else nothing


# `t`: rounds so far. `scale`: Hoeffding widths in the tree are scale / sqrt(N); those of the round are a little wider.
ROUND = np.dtype([("t", np.int64), ("scale", np.float64)])


@fleeting
class Own(NamedTuple):
    """The rules of LUCB1 and its state."""

    rules: Rules
    forest: Forest  # the bounds of the arms; High is inside
    rounds: Any  # (E,) of ROUND


class Rivals(NamedTuple):
    """The two arms that decide: h, in High with the least lower bound; l, in Low with the largest upper bound."""

    h: int
    l: int  # noqa: E741
    gap: float  # U_l - L_h


@part
def beta_scale(t, rules):
    """beta(t, N) sqrt(N), which is the same for all arms."""
    return math.sqrt(2.0 * rules.factor * (math.log(rules.level) + 4.0 * math.log(float(t))))


@part
def put_running(tree, i, m, C):
    """Put the mean m of arm i into the tree, and bounds by the width C, which never widen again.   D3"""
    trees.put(tree, i, m, max(m - C, lower(tree, i)), min(m + C, upper(tree, i)), is_inside(tree, i))


@part
def put_hoeffding(tree, i, m, N, scale):
    """Put the mean m of N samples of arm i into the tree, and bounds by the width scale / sqrt(N)."""
    spread = 1.0 / math.sqrt(float(N))
    trees.put(tree, i, m, m - scale * spread, m + scale * spread, is_inside(tree, i))
    trees.put_spread(tree, i, spread)


@part
def measure(seen, e, i, tree, rules, scale):
    """Put the mean and the bounds of arm i into the tree."""
    if rules.lil:
        put_running(tree, i, seen.mean[e, i], tabulated(seen.pulls[e, i], rules.level, rules.factor, rules.table))
    else:
        put_hoeffding(tree, i, seen.mean[e, i], seen.pulls[e, i], scale)


@inlined
def begin(ep, own):
    """Every arm has been pulled once: arms 0 .. k - 1 are High until they are ranked.

    `growth_of` puts in the means and the Hoeffding bounds.
    """
    tree, round, n, made = tree_of(own.forest, ep.e), own.rounds[ep.e], ep.seen.pulls.shape[1], 0
    for i in range(n):
        made += ep.seen.pulls[ep.e, i]
        trees.put(tree, i, 0.0, -math.inf, math.inf, i < own.rules.k)
        if own.rules.lil:
            measure(ep.seen, ep.e, i, tree, own.rules, 0.0)
    if own.rules.lil:
        trees.build(tree)
    round.t = (made - n) // 2  # 0, unless the state was built in the middle of an episode
    round.scale = 0.0


@inlined
def growth_of(ep, own, t):
    """By how much the scale of the widths of round t exceeds that of the tree; where it is much, it is put in.   D5"""
    round, tree, wanted = own.rounds[ep.e], tree_of(own.forest, ep.e), beta_scale(t, own.rules)
    growth = wanted - round.scale
    if growth > MOST_GROWTH * round.scale:
        round.scale, growth = wanted, 0.0
        for i in range(ep.seen.pulls.shape[1]):
            measure(ep.seen, ep.e, i, tree, own.rules, wanted)
        trees.build(tree)
    return growth


@part
def rivals(tree):
    """The two arms that decide, by the bounds in the tree."""
    trees.settle_best(tree)
    h, l = trees.argmin_lower_inside(tree), trees.argmax_upper_outside(tree)  # noqa: E741
    return Rivals(h, l, upper(tree, l) - lower(tree, h))


@inlined
def grown_rivals(tree, growth):
    """As `rivals`, by bounds that have grown since they were put into the tree.   D5"""
    trees.settle_best(tree)
    h, low = trees.grown_lower_inside(tree, growth)
    l, high = trees.grown_upper_outside(tree, growth)  # noqa: E741
    return Rivals(h, l, high + low)


@inlined
def observe(ep, own):
    """Take in the samples of the last round: High, and the two arms that decide."""
    tree = tree_of(own.forest, ep.e)
    if ep.plan.beginning:
        begin(ep, own)
    for i in planned(ep.plan):
        measure(ep.seen, ep.e, i, tree, own.rules, own.rounds[ep.e].scale)
        trees.refresh(tree, i)
    return rivals(tree) if own.rules.lil else grown_rivals(tree, growth_of(ep, own, own.rounds[ep.e].t + 1))


@inlined
def stops(ep, own, found):
    """The stopping rule: U_l - L_h < epsilon."""
    return own.rules.stops and found.gap < own.rules.epsilon


@round_rule(Own, observe=observe, stops=stops)
def lucb(ep, own, found):
    """The sampling rule: pull h and l."""
    if found.h >= 0 and found.l >= 0:  # there are both, unless the state is of another episode
        add(ep.plan, found.h)
        add(ep.plan, found.l)
        own.rounds[ep.e].t += 1


@dataclass
class State(AgentState):
    """State of LUCB for E episodes."""

    plans: Any  # (E,) h and l of this round
    forest: Forest  # the bounds of the arms; High is inside
    rounds: Any  # (E,) of ROUND


class LUCB(PlanPolicy):
    """LUCB1 (Kalyanakrishnan et al. 2012): k arms, each within epsilon of the k-th best, with probability 1 - delta.

    Args:
        k: size of the answer; None takes the problem's (AllGood: the number of good arms, an oracle).
        epsilon: >= 0; None takes the problem's, and 0 by the criterion "exact".
        widths: "hoeffding" (the paper's) or "lil" (Mason et al. 2020), whose constant is `c`.

    It stops by itself on TopK and BestArm where the task names a delta and no budget; else it runs on.
    """

    name, source, stops = "lucb", "Kalyanakrishnan, Tewari, Auer & Stone, ICML 2012", True
    promises = ("aggregate", "each")
    solves = ("TopK", "BestArm", "AllGood")
    needs = "delta or budget"
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
        if self.problem.answer_size not in (None, self.k):
            raise ValueError(f"an answer of {self.task.problem} holds {self.problem.answer_size} arms, got k={self.k}")
        lil = choice("widths", widths, WIDTHS) == "lil"
        oracle = self.problem.answer_size is None
        delta = delta_of(self.name, self.task, delta, with_budget=None if oracle else 0.01)  # D4
        scale = scale_of(self.task, sigma)
        c = number("c", c, 0, above=True)
        level, factor = (delta / K, c) if lil else (K1 * K / delta, 1.0)
        if epsilon is None:
            epsilon = parameters["epsilon"] if oracle else tolerance_of(self)
        epsilon = number("epsilon", epsilon, 0)
        self.stops = not oracle and self.task.budget is None
        table = lil_table(level, factor * scale**2, TABULATED if lil else 0)
        self.rules = Rules(self.k, epsilon, self.stops, lil, level, factor * scale**2, table)

    def idle(self) -> dict[str, str]:
        found = {} if self.rules.lil else {"c": "which is of widths='lil' alone"}
        if not self.stops:
            found["epsilon"] = "as it is the tolerance at which the agent stops, and here it runs on"
        return found

    def initial_state(self, observation: Observation) -> State:
        E, K = observation["pulls"].shape
        return State(self.new_plans(observation), Forest.of(E, K), np.zeros(E, ROUND))

    def rule(self, seen: Seen, observation: Observation, state: State, out: Ints) -> Any:
        return lucb, (seen, state.plans, Own(self.rules, state.forest, state.rounds), out)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The recommendation rule: High, the k largest empirical means; arms never pulled come last."""
        means = seen_means(observation, slots)
        order = np.argsort(-np.where(np.isnan(means), -np.inf, means), axis=-1, kind="stable")[..., : self.k]
        answer = np.zeros(means.shape, np.bool_)
        np.put_along_axis(answer, order, True, axis=-1)
        return answer
