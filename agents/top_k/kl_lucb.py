"""KL-LUCB: Kaufmann & Kalyanakrishnan, COLT 2013; iterated-log thresholds as in Tanczos, Nowak & Mankoff, NIPS 2017.

symbols     J the k arms with the largest empirical means; U_i = max{q >= m_i : N_i kl(m_i, q) <= beta_i}, L_i the least
            such q <= m_i; l in J with the least L, u outside with the largest U; t the round
            "2013": beta = x + ln x with x = ln(k1 n t^a / delta), k1 = 405.5, a = 1.1
            "lil":  beta_i = ln(2 log2(2 N_i) d / delta), d = n - k for L and k for U (k = 1: n - 1 and 1)
answer      J, the plug-in answer
departures  D1 ties go to the lowest arm
            D2 samples of bounded support are mapped to [0, 1]; others take the divergence (m - u)^2 / (2 sigma^2)
            D3 the thresholds "lil" are ours: they have the form of the 2017 paper, not its constants
            D4 U and L of bounded samples are rounded to multiples of 1e-9 of the range: close to its ends, where they
               differ by less, they tie
            D5 with a budget it does not stop, and delta is 0.01 where none is named

U and L are found by Newton's method, and only for arms that could be the extreme one: i cannot beat a bound U* with
N_i kl(m_i, U*) > beta_i.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from bandit_envs.kernels import choice, inlined, part

from ..core.confidence import delta_of, scale_of, tolerance_of
from ..core.declared import per_episode, setting
from ..core.plans import arm_at, count_pulls, pull
from .selection import TopKAgent, rank

K1, A = 405.5, 1.1
THRESHOLDS = ("2013", "lil")
STEPS, PRECISION = 64, 1e-13  # of Newton's method
QUANTUM = 1e-9  # bounds within this of each other tie


class Side(NamedTuple):
    """J, or the arms outside."""

    inside: bool  # J
    first: int  # the arm to look at first: where it is extreme still, few others are in question
    beta: float
    level: float  # lil: d / delta


@part
def kl(p, q):
    """Divergence of Bernoulli(q) from Bernoulli(p)."""
    first = p * math.log(p / q) if p > 0.0 else 0.0
    return first + (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else first


@part
def kl_upper(p, b):
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


@inlined
def rate(N, side, own):
    """beta_i of an arm with N pulls."""
    return math.log(2.0 * math.log2(2.0 * N) * side.level) if own.lil else side.beta


@inlined
def extreme(ep, own, side):
    """u and U_u, or l and L_l mirrored, 1 - L_l (Gaussian: -L_l)."""
    which, best = side.first, -math.inf
    for step in range(-1, len(ep.pulls)):
        i = side.first if step < 0 else step
        if own.inside[i] != side.inside or step == side.first:
            continue
        N = float(ep.pulls[i])
        x, b = (ep.mean[i] - own.low) / own.width, rate(N, side, own) / N
        if own.gaussian:
            bound = (-x if side.inside else x) + math.sqrt(2.0 * b)
        else:
            x = min(max(1.0 - x if side.inside else x, 0.0), 1.0)
            if x < best - QUANTUM and kl(x, best - QUANTUM) > b:
                continue
            bound = QUANTUM * math.floor(kl_upper(x, b) / QUANTUM + 0.5)  # D4
        if bound > best or (bound == best and i < which):
            which, best = i, bound
    return which, best


class KLLUCB(TopKAgent):
    """KL-LUCB (Kaufmann & Kalyanakrishnan 2013): k arms, each within epsilon of the k-th best.

    Args:
        delta: None takes the task's, or 0.01 with a budget. sigma: for samples without known support.
        threshold: "2013" (the paper's) or "lil" (of iterated logarithm, as in 2017).
    """

    name, source, reads = "kl-lucb", "Kaufmann & Kalyanakrishnan, COLT 2013", ()
    needs = "delta or budget"
    promises = ("aggregate", "each")

    lil, gaussian = setting(bool), setting(bool)
    epsilon = setting(float)  # in units of width; -inf: it does not stop
    level, log_level = setting(float), setting(float)  # lil: 1 / delta; else ln(k1 n / delta)
    low, width = setting(float), setting(float)  # samples are mapped by (x - low) / width
    l, u, gap = per_episode(int), per_episode(int), per_episode(float)  # noqa: E741

    def observe(ep, own):
        """J, and the two that decide: l, in J with the least lower bound; u, outside with the largest upper bound."""
        rank(ep, own)
        K, beta = len(ep.pulls), 0.0
        if not own.lil:
            t = (count_pulls(ep) - K) // 2 + 1
            x = own.log_level + A * math.log(float(t))
            beta = x + math.log(x)
        ep.now.l, L = extreme(ep, own, Side(True, arm_at(ep, 0), beta, own.level * float(K - own.k)))
        ep.now.u, U = extreme(ep, own, Side(False, arm_at(ep, 1), beta, own.level * float(own.k)))
        ep.now.gap = U - (-L if own.gaussian else 1.0 - L)

    def stops(ep, own):
        """The stopping rule: U_u - L_l <= epsilon."""
        return not ep.now.gap > own.epsilon

    def sample(ep, own):
        """The sampling rule: pull l and u."""
        pull(ep, ep.now.l)
        pull(ep, ep.now.u)

    def __init__(
        self, task: Any, delta: float | None = None, threshold: str = "2013", sigma: float | None = None
    ) -> None:
        super().__init__(task)
        self.lil = choice("threshold", threshold, THRESHOLDS) == "lil"
        self.level = (1.0 if self.lil else K1) / delta_of(self.name, self.task, delta, with_budget=0.01)
        self.log_level = math.log(self.level * self.task.K)
        self.gaussian = sigma is not None or self.task.support is None
        low, high = self.task.support or (0.0, 0.0)
        self.low, self.width = (0.0, scale_of(self.task, sigma)) if self.gaussian else (low, high - low)
        self.epsilon = -math.inf if self.budgeted else tolerance_of(self) / self.width
