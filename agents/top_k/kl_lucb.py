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
from typing import Any

from bandit_envs.kernels import choice, inlined, part

from ..core import trees
from ..core.confidence import delta_of, scale_of, tolerance_of
from ..core.declared import parts_of, per_episode, setting
from ..core.plans import arm_at, count_pulls, planned, pull
from .selection import TopKAgent, gather

K1, A = 405.5, 1.1
THRESHOLDS = ("2013", "lil")
STEPS, PRECISION = 64, 1e-13  # of Newton's method
QUANTUM = 1e-9  # bounds within this of each other tie


# What an arm has in the tree, J on one side and the arms outside on the other: x and N_i, of Gaussian samples -N_i, or
# a bound that stays and 0. x is the mean, mapped, in J mirrored: 1 - x (Gaussian: -x).


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


@part
def bound(x, N, beta, least):
    """U_i, or L_i mirrored; -inf where it is less than `least` for certain."""
    if not N > 0.0:
        return trees.by_root(x, N, 2.0 * beta, least)
    if x < least - QUANTUM and kl(x, least - QUANTUM) > beta / N:
        return -math.inf
    return QUANTUM * math.floor(kl_upper(x, beta / N) / QUANTUM + 0.5)  # D4


MOST = QUANTUM * math.floor(1.0 / QUANTUM + 0.5)  # of all bounds of bounded samples


@part
def overtaken(most, x, N, other_x, other, beta, first):
    """The beta at which the bound of another arm may come to be above this one, `most`, which does not fall.

    first: whether it is to come to this one already.
    """
    if other <= 0.0:
        return 0.5 * trees.overtaken_by_root(most, x, N, other_x, other, 2.0 * beta, first)
    close = most + (-0.5 if first else 0.5) * QUANTUM - 1e-12
    if close >= 1.0:
        return math.inf
    return max(other * kl(other_x, close), beta) if other_x < close else beta


@inlined
def put(ep, own, i):
    """Put what is known of arm i into the tree."""
    N, x, inside, beta = float(ep.pulls[i]), (ep.mean[i] - own.low) / own.width, own.inside[i], ep.now.beta
    if own.lil:
        beta = math.log(2.0 * math.log2(2.0 * N) * (own.level * float(len(ep.pulls) - own.k if inside else own.k)))
    if own.gaussian:
        x, N = -x if inside else x, -N
    else:
        x = min(max(1.0 - x if inside else x, 0.0), 1.0)
    if own.lil:
        x, N = bound(x, N, beta, -math.inf), 0.0
    elif N > 0.0 and not trees.is_small(own.tree) and bound(x, N, beta, MOST) == MOST:
        x, N = MOST, 0.0
    trees.put_bound(own.tree, i, x, N, inside, ep.mean[i], inside)


@part
def renew(ep, own, i):
    """The same in the course of an episode."""
    put(ep, own, i)
    trees.lead(own.tree, i, bound, overtaken, ep.now.beta, False)


@inlined
def beta_of(ep, own):
    """beta in round t of "2013"; 1 otherwise."""
    x = own.log_level + A * math.log(float(ep.now.t))
    return 1.0 if own.lil else x + math.log(x)


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
    t, beta = per_episode(int), per_episode(float)
    tree = parts_of(trees.Tree.of)

    def begin(ep, own):
        """Gather J."""
        gather(ep, own)
        ep.now.t = (count_pulls(ep) - len(ep.pulls)) // 2 + 1
        ep.now.beta = beta_of(ep, own)
        for i in range(len(ep.pulls)):
            put(ep, own, i)
        trees.build_leads(own.tree, bound, overtaken, ep.now.beta, False)

    def observe(ep, own):
        """J, and the two that decide: l, in J with the least lower bound; u, outside with the largest upper bound."""
        ep.now.t += len(planned(ep)) // 2
        ep.now.beta = beta_of(ep, own)
        for i in planned(ep):
            renew(ep, own, i)
        out, into = trees.misplaced(own.tree)
        while out >= 0:
            own.inside[out], own.inside[into] = False, True
            renew(ep, own, out)
            renew(ep, own, into)
            out, into = trees.misplaced(own.tree)
        trees.grow(own.tree, bound, overtaken, ep.now.beta, False)
        ep.now.l, L, _ = trees.leader(own.tree, trees.OTHER, bound, ep.now.beta, False, arm_at(ep, 0))
        ep.now.u, U, _ = trees.leader(own.tree, trees.ONE, bound, ep.now.beta, False, arm_at(ep, 1))
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
