"""KL-LUCB: Kaufmann & Kalyanakrishnan, COLT 2013; iterated-log thresholds as in Tanczos, Nowak & Mankoff, NIPS 2017.

symbols     U_i = max{u >= m_i : N_i kl(m_i, u) <= B_i}, L_i the least such u <= m_i; High the k largest empirical
            means, Low the rest; h in High with the least L, l in Low with the largest U; t the round
            "2013": B = x + ln x with x = ln(k1 n t^a / delta), k1 = 405.5, a = 1.1
            "lil":  B_i = ln(2 log2(2 N_i) d / delta), d = n - k for L and k for U (k = 1: n - 1 and 1)
departures  D1 ties go to the lowest arm
            D2 samples of bounded support are mapped to [0, 1]; others take the divergence (m - u)^2 / (2 sigma^2)
            D3 the thresholds "lil" are ours: they have the form of the 2017 paper, not its constants
            D4 U and L of bounded samples are rounded to multiples of 1e-9 of the range: close to its ends, where they
               differ by less, they tie
            D5 with a budget line 4 is left out, and delta is 0.01 where nobody names one

U and L are found by Newton's method, and only for arms that could be the extreme one: j cannot beat a bound U* with
N_j kl(m_j, U*) > B_j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import jit

from ..core.agent import Ints, Observation
from ..core.confidence import delta_of, scale_of
from .selection import SelectionMemory, TopKAgent, open_round

__all__ = ["KLLUCB", "kl", "kl_upper"]

K1, A = 405.5, 1.1
THRESHOLDS = ("2013", "lil")
STEPS, PRECISION = 64, 1e-13  # of Newton's method
QUANTUM = 1e-9  # bounds within this of each other tie


@dataclass
class Memory(SelectionMemory):
    """Memory of KL-LUCB for E episodes."""

    pair: Ints  # (E, 2) h and l of this round
    half: Ints  # (E,) 1 between the two pulls of a round


@jit
def kl(p: Any, q: Any) -> Any:
    """Divergence of Bernoulli(q) from Bernoulli(p)."""
    first = p * math.log(p / q) if p > 0.0 else 0.0
    return first + (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else first


@jit
def kl_upper(p: Any, b: Any) -> Any:
    """The largest q >= p with kl(p, q) <= b."""
    if p >= 1.0:
        return 1.0
    entropy = -(1.0 - p) * math.log(1.0 - p) - (p * math.log(p) if p > 0.0 else 0.0)
    # Two bounds on q, Pinsker's and that of kl(p, q) >= (1 - p) ln(1 / (1 - q)) - entropy; then Newton's steps from
    # above, which never cross the root, as kl is convex in q.
    q = min(p + math.sqrt(0.5 * b), -math.expm1(-(b + entropy) / (1.0 - p)))
    for _ in range(STEPS):
        if q >= 1.0 or q <= p:
            break
        step = (kl(p, q) - b) * (q * (1.0 - q) / (q - p))
        q -= step
        if step <= PRECISION:
            break
    return min(max(q, p), 1.0)


@jit
def _threshold(N: Any, B: Any, level: Any) -> Any:
    """B_i; the same B for all arms unless that is NaN."""
    return B if B == B else math.log(2.0 * math.log2(2.0 * N) * level)


@jit
def _extreme(
    pulls: Any,
    mean: Any,
    e: Any,
    inside: Any,
    high: Any,
    low: Any,
    width: Any,
    gaussian: Any,
    B: Any,
    level: Any,
    start: Any,
) -> Any:
    """The arm of Low with the largest U, and U; or of High with the least L, mirrored: 1 - L (Gaussian: -L)."""
    K = np.uint64(mean.shape[1])
    best, which = -math.inf, np.uint64(start)
    for step in range(-1, np.int64(K)):  # the extreme arm of the last round first: few others are in question then
        i = np.uint64(start) if step < 0 else np.uint64(step)
        if inside[e, i] != high:
            continue
        N = float(pulls[e, i])
        b = _threshold(N, B, level) / N
        x = (mean[e, i] - low) / width
        if gaussian:
            bound = (-x if high else x) + math.sqrt(2.0 * b)
        else:
            x = min(max(1.0 - x if high else x, 0.0), 1.0)
            if x < best - QUANTUM and kl(x, best - QUANTUM) > b:
                continue
            bound = QUANTUM * math.floor(kl_upper(x, b) / QUANTUM + 0.5)  # D4
        if bound > best or (bound == best and i < which):
            best, which = bound, i
    return which, best


@jit
def _rounds(
    pulls: Any,
    mean: Any,
    k: Any,
    epsilon: Any,
    lil: Any,
    level: Any,
    low: Any,
    width: Any,
    gaussian: Any,
    pair: Any,
    half: Any,
    inside: Any,
    between: Any,
    place: Any,
    made: Any,
    last: Any,
    out: Any,
) -> Any:
    """The next arm of each episode, K to stop."""
    K = np.uint64(mean.shape[1])
    for episode in range(len(out)):
        e = np.uint64(episode)
        out[e] = open_round(pulls, mean, e, k, 1, inside, between, place, made, last)  # lines 1, 3
        if out[e] < K:
            half[e] = 0
            continue
        if half[e] == 1:  # line 5, the second pull
            out[e] = last[e] = pair[e, 1]
            half[e] = 0
            made[e] += 1
            continue
        B = math.nan
        if not lil:
            t = float((made[e] - np.int64(K)) // 2 + 1)
            x = math.log(level * float(K)) + A * math.log(t)
            B = x + math.log(x)
        n = float(K)
        h, L = _extreme(pulls, mean, e, inside, True, low, width, gaussian, B, level * (n - k), pair[e, 0])
        l, U = _extreme(pulls, mean, e, inside, False, low, width, gaussian, B, level * k, pair[e, 1])  # noqa: E741
        if U - (-L if gaussian else 1.0 - L) <= epsilon:  # line 4
            continue
        pair[e, 0], pair[e, 1], half[e] = h, l, 1
        out[e] = last[e] = h  # line 5
        made[e] += 1


class KLLUCB(TopKAgent):
    """KL-LUCB (Kaufmann & Kalyanakrishnan 2013): k arms, each within epsilon of the k-th best.

    Args:
        task: a task or an environment. delta: None takes the task's, or 0.01 with a budget.
        threshold: "2013" (the paper's) or "lil" (of iterated logarithm, as in 2017).
        sigma: sub-Gaussian scale, for samples without known support; None takes the task's.
    """

    name, source, stops = "kl-lucb", "Kaufmann & Kalyanakrishnan, COLT 2013", True

    def __init__(
        self, task: Any, delta: float | None = None, threshold: str = "2013", sigma: float | None = None
    ) -> None:
        super().__init__(task)
        if threshold not in THRESHOLDS:
            raise ValueError(f"threshold must be one of {list(THRESHOLDS)}, got {threshold!r:.200}")
        self.lil = threshold == "lil"
        self.level = (1.0 if self.lil else K1) / delta_of(self.name, self.task, delta, with_budget=0.01)
        self.gaussian = sigma is not None or self.task.support is None
        low, high = self.task.support or (0.0, 0.0)
        self.low, self.width = (0.0, scale_of(self.task, sigma)) if self.gaussian else (low, high - low)

    def remember(self, observation: Observation) -> Memory:
        E = len(observation["pulls"])
        return Memory(**self.blank(observation), pair=np.zeros((E, 2), np.int64), half=np.zeros(E, np.int64))

    def choose(self, observation: Observation, state: Memory) -> Ints:
        m, (pulls, mean) = state, self.read(observation, state)
        out = np.empty(len(pulls), np.int64)
        _rounds(
            pulls,
            mean,
            self.k,
            -math.inf if self.budgeted else self.epsilon / self.width,
            self.lil,
            self.level,
            self.low,
            self.width,
            self.gaussian,
            m.pair,
            m.half,
            m.inside,
            m.between,
            m.place,
            m.made,
            m.last,
            out,
        )
        return out
