"""(ST)^2, Sample the Threshold, Split the Threshold: Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 1.

symbols     m_i empirical mean, T_i pulls, C_{delta/n}(t) = sigma sqrt(c ln(log2(2t) n / delta) / t), gamma slack
            Ghat empirically good arms; U, L upper and lower bounds on the threshold; Known arms are certified
departures  D1 ties go to the lowest arm
            D2 in the multiplicative form the factor applies to mean and width, which the proof needs (lost in print)
            D3 bounds="running": bounds never widen again, as in the authors' experiments; c = 2.08 there
            D4 multiplicative, while max m < 0: Ghat holds the best arms (as printed it would be empty)

With slack 0 no arm on the good side is known to be bad, nor one on the bad side known to be good, so that line 7 is the
least lower bound of all of Ghat if that is at most U, and line 8 the largest upper bound outside if that is at least L.
Where slack (or a negative best mean) breaks this, the round falls back to a scan over the unknown arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs.compiled import jit
from bandit_envs.problems.base import number

from ..agent import Agent, Bools, Floats, Ints, Observation, unfit
from ..trees import (
    LOWER,
    argmax_upper,
    argmax_upper_outside,
    argmin_lower_inside,
    build,
    forest,
    is_inside,
    levels_of,
    lower,
    max_estimate,
    max_lower,
    max_upper,
    next_unpulled,
    put,
    refresh,
    settle,
    upper,
)
from ..widths import bounds_of, confidence, lil_table, scale_of, tabulated

__all__ = ["ST2"]


# Columns of `Memory.round`.
QUEUE, SIZE, NEXT, LAST = (np.uint64(column) for column in (0, 3, 4, 5))


@dataclass
class Memory:
    """Memory of (ST)^2 for E episodes."""

    tree: Floats  # (E * nodes * 8,), the tree of each episode
    levels: NDArray[np.uint64]  # where its levels begin
    # (E, 8): QUEUE, the up to 3 arms of this round; SIZE, how many (0 while every arm is pulled once); NEXT, place in
    # the queue, or in the first pass over the arms; LAST, arm chosen last.
    round: Ints
    threshold: Floats  # (E,), U of the last round where all arms are known; NaN elsewhere


@jit
def _measure(
    m: Any, T: Any, tree: Any, t: Any, i: Any, level: Any, factor: Any, table: Any, running: Any, boundary: Any
) -> Any:
    """Give arm i its estimate m and bounds after T pulls, and its side of a boundary, which `settle` may yet move."""
    C = tabulated(T, level, factor, table)
    low, high = m - C, m + C
    if running:
        low, high = max(low, lower(tree, t, i)), min(high, upper(tree, t, i))
    put(tree, t, i, m, low, high, m >= boundary)


@jit
def _boundary(best: Any, epsilon: Any, multiplicative: Any) -> Any:
    """Arms with estimates from here on are Ghat (line 5); never above the best, also where that is negative."""
    return min((1.0 - epsilon) * best, best) if multiplicative else best - epsilon  # D4


@jit
def _scan(tree: Any, t: Any, K: Any, U: Any, L: Any, inside: Any) -> Any:
    """The unknown arm inside with the least lower bound, or outside with the largest upper bound; -1 if none."""
    best: Any = math.inf
    which: Any = -1
    for i in range(K):
        low, high = lower(tree, t, i), upper(tree, t, i)
        value = low if inside else -high
        if high >= L and low <= U and is_inside(tree, t, i) == inside and value < best:
            best, which = value, np.int64(i)
    return which


@jit
def _rounds(
    pulls: Any,
    mean: Any,
    epsilon: Any,
    multiplicative: Any,
    slack: Any,
    level: Any,
    factor: Any,
    running: Any,
    table: Any,
    tree: Any,
    levels: Any,
    memory: Any,
    threshold: Any,
    out: Any,
) -> Any:
    """The next arm of each episode, K to stop."""
    K = np.uint64(pulls.shape[1])
    i: Any  # an arm, unsigned or not
    for episode in range(len(out)):
        e = np.uint64(episode)
        t = e * levels[len(levels) - 1] * np.uint64(8)
        threshold[e] = math.nan
        size, following = memory[e, SIZE], memory[e, NEXT]
        if pulls[e, np.uint64(memory[e, LAST])] == 0:  # a new episode has begun
            size = following = 0
        elif following < size:  # in the middle of a round
            out[e] = memory[e, LAST] = memory[e, QUEUE + np.uint64(following)]
            memory[e, NEXT] = following + 1
            continue
        if size == 0:  # line 1: pull each arm once
            i = next_unpulled(pulls, e, following)
            memory[e, SIZE], memory[e, NEXT] = 0, i
            if i < K:
                out[e] = memory[e, LAST] = i
                continue
            for i in range(K):
                put(tree, t, i, 0.0, -math.inf, math.inf, False)
                m, T = mean[e, i], pulls[e, i]
                _measure(m, T, tree, t, i, level, factor, table, running, math.inf)
            build(tree, t, levels)
        else:
            boundary = _boundary(max_estimate(tree, t, levels), epsilon, multiplicative)
            for j in range(size):
                i = np.uint64(memory[e, QUEUE + np.uint64(j)])
                m, T = mean[e, i], pulls[e, i]
                _measure(m, T, tree, t, i, level, factor, table, running, boundary)
                refresh(tree, t, levels, i)
        # lines 2-5 and 10
        settle(tree, t, levels, _boundary(max_estimate(tree, t, levels), epsilon, multiplicative))
        if multiplicative:
            U, L = (1.0 - epsilon - slack) * max_upper(tree, t, levels), (1.0 - epsilon) * max_lower(tree, t, levels)
        else:
            U, L = max_upper(tree, t, levels) - epsilon - slack, max_lower(tree, t, levels) - epsilon
        n = 0
        i = argmin_lower_inside(tree, t, levels)  # line 7
        if i >= 0 and lower(tree, t, i) > U:
            i = -1
        elif i >= 0 and upper(tree, t, i) < L:
            i = _scan(tree, t, K, U, L, True)
        if i >= 0:
            memory[e, QUEUE] = i
            n += 1
        i = argmax_upper_outside(tree, t, levels)  # line 8
        if i >= 0 and upper(tree, t, i) < L:
            i = -1
        elif i >= 0 and lower(tree, t, i) > U:
            i = _scan(tree, t, K, U, L, False)
        if i >= 0:
            memory[e, QUEUE + np.uint64(n)] = i
            n += 1
        if n == 0:  # line 6: all arms are known
            out[e], threshold[e] = K, U
            continue
        memory[e, QUEUE + np.uint64(n)] = argmax_upper(tree, t, levels)  # line 9
        memory[e, SIZE], memory[e, NEXT] = n + 1, 1
        out[e] = memory[e, LAST] = memory[e, QUEUE]


class ST2(Agent):
    """(ST)^2 (Mason et al. 2020): all epsilon-good arms, none worse than epsilon + slack, with probability 1 - delta.

    Args:
        task: a task or an environment. delta: None takes the task's.
        c: constant of the width, > 0 (the paper's proof: 4; its experiments: 2.08).
        bounds: "current" or "running". sigma: sub-Gaussian scale; None takes the task's.

    Until it stops, `recommend` gives the plug-in answer, as in the paper's figures; then the certified set.
    """

    name, source, solves, stops = "st2", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 1", ("AllGood",), True

    def __init__(
        self, task: Any, delta: float | None = None, c: float = 4.0, bounds: str = "current", sigma: float | None = None
    ) -> None:
        super().__init__(task)
        self.delta = confidence(self.name, self.task, delta)
        self.level = self.delta / self.task.K
        self.factor = number("c", c, 0, above=True) * scale_of(self.task, sigma) ** 2
        self.table = lil_table(self.level, self.factor)
        p = self.task.parameters
        self.rules = (
            float(p["epsilon"]),
            p["multiplicative"],
            float(p["slack"]),
            self.level,
            self.factor,
            bounds_of(bounds),
        )

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        begun = np.zeros((E, 8), np.int64)
        begun[:, int(LAST)] = np.argmax(observation["pulls"], axis=1)
        return Memory(forest(E, K).reshape(-1), levels_of(K), begun, np.full(E, np.nan))

    def choose(self, observation: Observation, state: Memory) -> Ints:
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        mean = np.ascontiguousarray(observation["mean"], np.float64)
        if len(pulls) != len(state.round) or mean.shape != pulls.shape:
            raise unfit(pulls, mean, len(state.round))
        out = np.empty(len(pulls), np.int64)
        _rounds(pulls, mean, *self.rules, self.table, state.tree, state.levels, state.round, state.threshold, out)
        return out

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        answer = super().recommend(observation, state, slots)
        if state is not None:
            rows = np.arange(len(state.round)) if slots is None else slots
            tree, threshold = state.tree.reshape(len(state.round), -1, 8), state.threshold[rows, None]
            certified = tree[rows, : self.task.K, int(LOWER)] > threshold
            answer = np.where(np.isnan(threshold), answer, certified).reshape(answer.shape)
        return answer
