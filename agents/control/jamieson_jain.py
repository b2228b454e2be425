"""Jamieson & Jain, NeurIPS 2018, Algorithm 1: arms above a threshold, with few wrong ones among them at all times.

symbols     n arms, mu_0 the threshold, T_i pulls; phi(t, x) = sigma sqrt(2 (h(x) + 1.5 ln ln(e t / 2)) / t),
            h(x) = y + 3 ln y, y = ln(1 / x); delta' = delta / (6.4 ln(36 / delta))
pulls       outside S, the largest m_i + phi(T_i, delta); "familywise": then also the largest of S outside R
"fdr"       S grows by s(k), k the largest with |s(k)| >= k, s(k) the arms with m_i - phi(T_i, delta' k / n) >= mu_0:
            on average, a share of delta of S at most is wrong
"familywise"  R grows by the arms of S with m_i - phi(T_i, delta / chi) >= mu_0: none is wrong, but with probability
            delta; chi = n - (1 - 2 delta' (1 + 4 delta')) |S| + 4/3 (1 + 4 delta') ln(5 log2(n / delta') / delta')
departures  D1 the paper was not at hand: delta', chi and the second pull could not be checked against it
            D2 x is .1 at most, as phi is known to hold for these; chi is n at most, at which it is Bonferroni's
            D3 without a budget it stops when each arm is answered, or m_i + phi(T_i, delta / n) < mu_0 + tolerance
            D4 against a control c, pulled as in `differences`: its mean has delta / 2, at one level for all arms, these
               the rest; mu_0 is a (m_c + phi(T_c, delta / 2)) + b, in D3 with a minus. S and R hold as they do
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import choice, inlined

from ..core.algorithm import Algorithm
from ..core.confidence import comparison_of, delta_of, scale_of
from ..core.declared import per_arm, scratch, setting
from ..core.plans import pull
from .differences import CONTROLLED, lacks_control


@inlined
def height(x):
    """h(x).   D2"""
    y = math.log(1.0 / min(x, 0.1))
    return y + 3.0 * math.log(y)


@inlined
def bound(ep, own, i, sign, h):
    """m_i + sign phi, of a level x with h(x) = h."""
    t = float(ep.pulls[i])
    return ep.mean[i] + sign * own.sigma * math.sqrt(2.0 * (h + 1.5 * math.log(math.log(0.5 * math.e * t))) / t)


class JamiesonJain(Algorithm):
    """All arms above a threshold, or better than a control, with few wrong ones (Jamieson & Jain 2018).

    Args:
        delta: None takes the task's, or .05 with a budget. rate: what delta bounds, "fdr" or "familywise".
    """

    name, source = "jamieson-jain", "Jamieson & Jain, NeurIPS 2018, Algorithm 1"
    solves, needs, reads, answers = ("Threshold", "BetterThanControl"), "delta or budget", (), True
    control, a, b, share = setting(int), setting(float), setting(float), setting(float)
    n, familywise, tolerance, sigma = setting(int), setting(bool), setting(float), setting(float)
    delta, strict, usual = setting(float), setting(float), setting(float)  # of the arms, D4; delta'; h(delta)
    heights, known = setting(np.ndarray), scratch(float)  # h(delta' k / n) of k = 1 ..; h at which m_i - phi = mu_0
    found, answer = per_arm(bool), per_arm(bool)  # S; what is answered, S or R

    def observe(ep, own):
        """S and R, with the last results."""
        mu_0 = own.b + own.a * bound(ep, own, own.control, 1.0, own.usual)  # D4; a = 0: there is no control
        k, size, d, chi, least = own.n + 1, own.n, own.strict, float(own.n), -math.inf
        for i in range(len(own.known)):
            t, gap = float(ep.pulls[i]), (ep.mean[i] - mu_0) / own.sigma
            own.known[i] = 0.5 * gap * gap * t - 1.5 * math.log(math.log(0.5 * math.e * t))
            own.known[i] = own.known[i] if gap > 0.0 and i != own.control else -math.inf
            chi -= (1.0 - 2.0 * d * (1.0 + 4.0 * d)) * own.found[i]
        while size < k:  # the largest k with |s(k)| >= k, or 0
            k, size = min(k - 1, size), 0  # of a smaller k there are no more
            for i in range(len(own.known)):
                size += k > 0 and own.known[i] >= own.heights[k - 1]
        if own.familywise:
            chi += 4.0 / 3.0 * (1.0 + 4.0 * d) * math.log(5.0 * math.log2(own.n / d) / d)
            least = height(own.delta / min(chi, float(own.n)))
        for i in range(len(own.known)):
            own.found[i] |= k > 0 and own.known[i] >= own.heights[k - 1]
            own.answer[i] |= own.found[i] and own.known[i] >= least

    def stops(ep, own):
        """D3."""
        mu_0, h = own.b + own.a * bound(ep, own, own.control, -1.0, own.usual), height(own.delta / own.n)
        for i in range(len(own.known)):
            if i != own.control and not own.answer[i] and bound(ep, own, i, 1.0, h) >= mu_0 + own.tolerance:
                return False
        return True

    def sample(ep, own):
        """Outside S, and of S outside R, the arm with the largest upper bound, the first of equals."""
        if lacks_control(ep, own):
            pull(ep, own.control)
            return
        for inside in range(1 + own.familywise):
            arm, most = -1, -math.inf
            for i in range(len(own.known)):
                upper = bound(ep, own, i, 1.0, own.usual)
                if i != own.control and own.found[i] == (inside > 0) and not own.answer[i] and upper > most:
                    arm, most = i, upper
            if arm >= 0:
                pull(ep, arm)

    def __init__(self, task: Any, delta: float | None = None, rate: str = "fdr", sigma: float | None = None) -> None:
        super().__init__(task)
        delta, p, K = delta_of(self.name, self.task, delta, with_budget=0.05), self.problem, self.task.K
        against = self.task.problem in CONTROLLED
        found = comparison_of(self) if against else (-1, 0.0, p.boundary or 0.0, 0.0)
        self.control, self.a, self.b, self.share = found
        self.n, self.delta = K - against, delta / (1 + against)
        self.strict, self.usual = self.delta / (6.4 * math.log(36 / self.delta)), height(self.delta)
        self.heights = np.array([height(self.strict * k / self.n) for k in range(1, self.n + 1)])
        self.familywise = choice("rate", rate, ("fdr", "familywise")) == "familywise"
        self.tolerance, self.sigma, self.may_stop = p.tolerance, scale_of(self.task, sigma), self.task.budget is None
