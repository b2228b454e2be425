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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs.compiled import jit
from bandit_envs.problems.base import integer, number

from ..agent import Agent, Bools, Floats, Ints, Observation, seen_means, unfit
from ..trees import (
    argmax_upper_outside,
    argmin_lower_inside,
    build,
    forest,
    grown_lower_inside,
    grown_upper_outside,
    is_inside,
    levels_of,
    lower,
    next_unpulled,
    put,
    put_spread,
    refresh,
    settle_best,
    upper,
)
from ..widths import confidence, lil_width, scale_of

__all__ = ["LUCB"]

WIDTHS = ("hoeffding", "lil")
K1 = 1.25
MOST_GROWTH = 0.003  # of the widths, since they were last put into the tree


@dataclass
class Memory:
    """Memory of LUCB for E episodes."""

    tree: Floats  # (E * nodes * 8,): bounds of the arms; High is inside
    levels: NDArray[np.uint64]  # where the levels of a tree begin
    scale: Floats  # (E,) Hoeffding: of the widths in the tree, scale / sqrt(N); those of the round are a little wider
    pair: Ints  # (E * 2,) h and l of this round
    next: Ints  # (E,) place in the pair
    round: Ints  # (E,) t; 0 while every arm is pulled once
    last: Ints  # (E,) arm chosen last


@jit
def _measure(m: Any, N: Any, tree: Any, t: Any, i: Any, level: Any, factor: Any) -> Any:
    """Estimate and running bounds of arm i after N pulls, by the widths that do not change with the round."""
    C = lil_width(N, level, factor)
    put(tree, t, i, m, max(m - C, lower(tree, t, i)), min(m + C, upper(tree, t, i)), is_inside(tree, t, i))


@jit
def _rebound(m: Any, N: Any, tree: Any, t: Any, i: Any, scale: Any) -> Any:
    """Estimate and bounds of arm i after N pulls, by widths scale / sqrt(N)."""
    spread = 1.0 / math.sqrt(N)
    put(tree, t, i, m, m - scale * spread, m + scale * spread, is_inside(tree, t, i))
    put_spread(tree, t, i, spread)


@jit
def _rounds(
    pulls: Any,
    mean: Any,
    K: Any,
    k: Any,
    epsilon: Any,
    stops: Any,
    lil: Any,
    level: Any,
    factor: Any,
    tree: Any,
    levels: Any,
    scale: Any,
    pair: Any,
    following: Any,
    rounds: Any,
    last: Any,
    out: Any,
) -> Any:
    """The next arm of each episode, K to stop."""
    uK, _1, _2 = np.uint64(K), np.uint64(1), np.uint64(2)
    i: Any  # an arm, unsigned or not
    for episode in range(len(out)):
        e = np.uint64(episode)
        t = e * levels[len(levels) - 1] * np.uint64(8)
        if pulls[e, np.uint64(last[e])] == 0:  # a new episode has begun
            rounds[e] = following[e] = 0
        elif rounds[e] > 0 and following[e] < 2:  # line 6, the second pull
            out[e] = last[e] = pair[e * _2 + _1]
            following[e] = 2
            continue
        if rounds[e] == 0:  # line 1: pull each arm once
            i = next_unpulled(pulls, e, following[e])
            following[e] = i
            if i < uK:
                out[e] = last[e] = i
                continue
            made = 0
            for i in range(uK):
                made += pulls[e, i]
                put(tree, t, i, 0.0, -math.inf, math.inf, i < np.uint64(k))
                if lil:
                    _measure(mean[e, i], float(pulls[e, i]), tree, t, i, level, factor)
            if lil:
                build(tree, t, levels)
            scale[e] = 0.0
            rounds[e] = (made - K) // 2  # 0, unless the memory was built in the middle of an episode
        else:
            for j in range(2):
                i = np.uint64(pair[e * _2 + np.uint64(j)])
                m, N = mean[e, i], float(pulls[e, i])
                if lil:
                    _measure(m, N, tree, t, i, level, factor)
                else:
                    _rebound(m, N, tree, t, i, scale[e])
                refresh(tree, t, levels, i)
        rounds[e] += 1
        growth = 0.0
        if not lil:  # line 2
            width = math.sqrt(2.0 * factor * (math.log(level) + 4.0 * math.log(float(rounds[e]))))
            growth = width - scale[e]
            if growth > MOST_GROWTH * scale[e]:
                scale[e], growth = width, 0.0
                for i in range(uK):
                    _rebound(mean[e, i], float(pulls[e, i]), tree, t, i, width)
                build(tree, t, levels)
        settle_best(tree, t, levels)  # line 3
        if lil:  # line 4
            h, l = argmin_lower_inside(tree, t, levels), argmax_upper_outside(tree, t, levels)  # noqa: E741
            gap = upper(tree, t, l) - lower(tree, t, h)
        else:
            h, low = grown_lower_inside(tree, t, levels, growth)
            l, high = grown_upper_outside(tree, t, levels, growth)  # noqa: E741
            gap = high + low
        if stops and gap < epsilon:  # line 5
            out[e] = K
            rounds[e] -= 1
            continue
        pair[e * _2], pair[e * _2 + _1], following[e] = h, l, 1
        out[e] = last[e] = h  # line 6


class LUCB(Agent):
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
        "k": lambda problem, means: int(problem.right_answer(means).sum()) if problem.name == "AllGood" else None
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
        if k is None:
            k = parameters.get("k", 1 if self.task.problem == "BestArm" else None)
        if k is None:
            raise ValueError("lucb on AllGood is an oracle: it needs k=, which is known only for a fixed instance")
        self.k = integer("k", k, 1, K - 1)
        if widths not in WIDTHS:
            raise ValueError(f"widths must be one of {list(WIDTHS)}, got {widths!r}")
        self.lil = widths == "lil"
        oracle = self.task.problem == "AllGood"
        delta = confidence(self.name, self.task, delta, with_budget=None if oracle else 0.01)  # D4
        scale = scale_of(self.task, sigma)
        self.level = delta / K if self.lil else K1 * K / delta
        self.factor = (number("c", c, 0, above=True) if self.lil else 1.0) * scale**2
        self.epsilon = number("epsilon", parameters["epsilon"] if epsilon is None else epsilon, 0)
        self.stops = not oracle and self.task.budget is None

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        last = np.argmax(observation["pulls"], axis=1)
        pair, following, rounds = np.zeros(2 * E, np.int64), np.zeros(E, np.int64), np.zeros(E, np.int64)
        return Memory(forest(E, K).reshape(-1), levels_of(K), np.zeros(E), pair, following, rounds, last)

    def choose(self, observation: Observation, state: Memory) -> Ints:
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        mean = np.ascontiguousarray(observation["mean"], np.float64)
        if len(pulls) != len(state.last) or mean.shape != pulls.shape:
            raise unfit(pulls, mean, len(state.last))
        m, out = state, np.empty(len(pulls), np.int64)
        _rounds(
            pulls,
            mean,
            self.task.K,
            self.k,
            self.epsilon,
            self.stops,
            self.lil,
            self.level,
            self.factor,
            m.tree,
            m.levels,
            m.scale,
            m.pair,
            m.next,
            m.round,
            m.last,
            out,
        )
        return out

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """High: the k largest empirical means; arms never pulled come last."""
        means = seen_means(observation, slots)
        order = np.argsort(-np.where(np.isnan(means), -np.inf, means), axis=-1, kind="stable")[..., : self.k]
        answer = np.zeros(means.shape, np.bool_)
        np.put_along_axis(answer, order, True, axis=-1)
        return answer
