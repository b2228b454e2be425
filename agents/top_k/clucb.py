"""CLUCB-PAC for the k best: Chen, Lin, King, Lyu & Chen, NIPS 2014, Algorithm 1 and Appendix B.2.

symbols     M the k arms with the largest empirical means, rad_i = sigma sqrt(2 ln(4 n t^3 / delta) / N_i) with t the
            pulls so far, w_i = m_i - rad_i in M and m_i + rad_i outside, M' the k arms with the largest w
departures  D1 the tolerance is that of the problem's criterion: k epsilon for the aggregate regret, epsilon where each
               arm counts (a set that loses at most epsilon in sum holds no worse arm), 0 for the exact set
            D2 with a budget, line 6 is left out (but M' = M ends the run: there is nothing to pull), and delta is 0.01
               where nobody names one, as in Chen et al. 2017
            D3 ties go to the lowest arm

The largest radius is the least-pulled arm, and only the difference of M and M' is summed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import inlined, jit

from ..core.agent import Floats, Ints, Observation
from ..core.confidence import delta_of, scale_of
from .selection import SelectionMemory, TopKAgent, open_round

__all__ = ["CLUCB"]

_1, _2, _3 = (np.uint64(i) for i in range(1, 4))


@dataclass
class Memory(SelectionMemory):
    """Memory of CLUCB for E episodes."""

    root: Floats  # (E, K) 1 / sqrt(N_i), 0 before the first pass is over
    kth: Ints  # (E,) the k-th arm by w of the last round
    boundary: Floats  # (E,) its w


@inlined
def _largest(x: Any) -> Any:
    """The largest of 4 n numbers; four chains, as one would wait for itself."""
    a, b, c, d = x[0], x[1], x[2], x[3]
    for i in range(np.uint64(4), np.uint64(len(x)), np.uint64(4)):
        a = x[i] if x[i] > a else a
        b = x[i + _1] if x[i + _1] > b else b
        c = x[i + _2] if x[i + _2] > c else c
        d = x[i + _3] if x[i + _3] > d else d
    a, c = a if a > b else b, c if c > d else d
    return a if a > c else c


@inlined
def _sum(x: Any) -> Any:
    """The sum of 4 n numbers."""
    a = b = c = d = 0.0
    for i in range(np.uint64(0), np.uint64(len(x)), np.uint64(4)):
        a += x[i]
        b += x[i + _1]
        c += x[i + _2]
        d += x[i + _3]
    return (a + b) + (c + d)


@jit
def _kth(w: Any, K: Any, k: Any, x: Any, room: Any) -> Any:
    """The k-th arm by w, ties to the lowest: from the guess x of its value by steps to the next value up or down."""
    above = equal = 0
    for j in range(K):
        above += w[j] > x
    for j in range(K):
        equal += w[j] == x
    while above >= k or above + equal < k:
        up = above >= k
        for j in range(K):
            room[j] = (-w[j] if w[j] > x else -math.inf) if up else (w[j] if w[j] < x else -math.inf)
        x = -_largest(room) if up else _largest(room)
        before, equal = equal, 0
        for j in range(K):
            equal += w[j] == x
        above += -equal if up else before
    i: Any = np.uint64(0)
    while w[i] != x:
        i += _1
    for _ in range(k - above - 1):
        i += _1
        while w[i] != x:
            i += _1
    return i


@jit
def _rounds(
    pulls: Any,
    mean: Any,
    k: Any,
    tolerance: Any,
    level: Any,
    factor: Any,
    root: Any,
    kth: Any,
    boundary: Any,
    inside: Any,
    between: Any,
    place: Any,
    made: Any,
    last: Any,
    out: Any,
) -> Any:
    """The next arm of each episode, K to stop."""
    K = np.uint64(mean.shape[1])
    padded = (mean.shape[1] + 3) // 4 * 4
    i: Any  # an arm
    w, gain, radius, room = np.empty(padded), np.zeros(padded), np.full(padded, -1.0), np.full(padded, -math.inf)
    for episode in range(len(out)):
        e = np.uint64(episode)
        beginning = place[e] < K
        out[e] = open_round(pulls, mean, e, k, 1, inside, between, place, made, last)  # lines 1, 3
        if out[e] < K:
            continue
        if beginning:
            for i in range(K):
                root[e, i] = 1.0 / math.sqrt(float(pulls[e, i]))
        else:
            i = np.uint64(last[e])
            root[e, i] = 1.0 / math.sqrt(float(pulls[e, i]))
        scale = math.sqrt(factor * (math.log(level) + 3.0 * math.log(float(made[e]))))
        for i in range(K):  # line 4
            w[i] = mean[e, i] + (-scale if inside[e, i] else scale) * root[e, i]
        x = boundary[e] if kth[e] == last[e] else w[np.uint64(kth[e])]  # an arm just pulled may have moved far
        if beginning:
            x = -np.sort(-w[:K])[k - 1]
        b = _kth(w, K, k, x, room)  # line 5
        x = w[b]
        kth[e], boundary[e] = b, x
        for i in range(K):
            chosen = (w[i] > x) | ((w[i] == x) & (i <= b))
            differs = chosen != inside[e, i]
            gain[i] = (w[i] if chosen else -w[i]) if differs else 0.0
            radius[i] = root[e, i] if differs else -1.0
        widest = _largest(radius)
        if widest < 0.0 or _sum(gain) <= tolerance:  # line 6
            continue
        i = np.uint64(0)  # line 7
        while radius[i] != widest:
            i += _1
        out[e] = last[e] = i
        made[e] += 1


class CLUCB(TopKAgent):
    """CLUCB-PAC (Chen et al. 2014) for the k best arms.

    Args:
        task: a task or an environment. delta: None takes the task's, or 0.01 with a budget.
        sigma: sub-Gaussian scale; None takes the task's.
    """

    name, source, stops = "clucb", "Chen, Lin, King, Lyu & Chen, NIPS 2014", True

    def __init__(self, task: Any, delta: float | None = None, sigma: float | None = None) -> None:
        super().__init__(task)
        self.level = 4.0 * self.task.K / delta_of(self.name, self.task, delta, with_budget=0.01)
        self.factor = 2.0 * scale_of(self.task, sigma) ** 2
        weight = {"aggregate": self.k, "each": 1.0, "exact": 0.0}[self.problem.criterion]  # type: ignore[attr-defined]
        self.tolerance = weight * self.epsilon  # D1

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        return Memory(**self.blank(observation), root=np.zeros((E, K)), kth=np.zeros(E, np.int64), boundary=np.zeros(E))

    def choose(self, observation: Observation, state: Memory) -> Ints:
        m, (pulls, mean) = state, self.read(observation, state)
        out = np.empty(len(pulls), np.int64)
        _rounds(
            pulls,
            mean,
            self.k,
            -math.inf if self.budgeted else self.tolerance,
            self.level,
            self.factor,
            m.root,
            m.kth,
            m.boundary,
            m.inside,
            m.between,
            m.place,
            m.made,
            m.last,
            out,
        )
        return out
