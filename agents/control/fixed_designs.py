"""Fixed designs against a control: Dunnett, JASA 1955; Bonferroni; Holm, Scand. J. Statist. 1979.

symbols     m = K - 1 arms, c the control; p_(1) <= p_(2) <= .. the p-values of mu_i <= a mu_c + b
rules       pulls    in the proportions 1 for each arm and `ratio` for the control, sqrt(m) by default, at all times
            tests    of one side, variances unpooled: of 0 and 1 the score test, with variances on the boundary, at the
                     mean of all samples (Dunnett & Gent, Biometrics 1977); else Welch's t
            answer   the arms before the first p_(j) above its level: bonferroni delta / m; holm delta / (m - j + 1);
                     dunnett Phi(-d), P(max Z_i <= d) = 1 - delta, Z_i normal of correlation a^2 / (a^2 + ratio)
departures  D1 d is that of equal variances that are known: a t-test is held to the normal level of its p-value

With probability 1 - delta, by tests that are approximate, no arm that is not better is answered at the end of the
budget. This holds at that time alone: who looks before, and may stop, errs more often.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from bandit_envs.kernels import PULLS_LIMIT, number

from ..core.agent import Bools, Ints, Observation
from ..core.algorithm import Algorithm
from ..core.confidence import comparison_of, delta_of
from ..core.declared import per_episode, setting
from ..core.phases import budget_for
from ..core.plans import pull


def dunnett_level(m: int, correlation: float, delta: float) -> float:
    """The level of each of m one-sided normal tests of one correlation, < 1, at which all hold at delta."""
    from scipy import special

    x, low, high, apart = np.linspace(-10, 10, 4001), delta / m, delta, math.sqrt(1 - correlation)
    weight = np.exp(-0.5 * x * x) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    for _ in range(60):
        level = 0.5 * (low + high)
        below = special.log_ndtr((math.sqrt(correlation) * x - special.ndtri(level)) / apart)
        low, high = (level, high) if weight @ -np.expm1(m * below) <= delta else (low, level)
    return float(low)


class FixedDesign(Algorithm):
    """Pull in fixed proportions, test when the budget, of K pulls at least, is spent, and answer what is rejected.

    Args:
        delta: of all arms together; None: the task's, or .05. ratio: of the control, 1e-6 .. 1e6; None: sqrt(K - 1).
    """

    solves, needs, anytime, reads = ("BetterThanControl",), "the budget", False, ()
    level: ClassVar[Any]  # of the j-th of m p-values, j = 0 ..
    control, ratio = setting(int), setting(float)
    turn, fewest = per_episode(int), per_episode(int)  # all arms before `turn` have more pulls than `fewest`

    def sample(ep, own):
        """The arm that is furthest behind its proportion, the first of equals: the control, or else in turn."""
        i, control = ep.now.turn, own.control
        while i == control or ep.pulls[i] > ep.now.fewest:
            i += 1
            if i == len(ep.pulls):
                i, ep.now.fewest = 0, PULLS_LIMIT
                for other in range(len(ep.pulls)):
                    if other != control:
                        ep.now.fewest = min(ep.now.fewest, ep.pulls[other])
        ep.now.turn, share, of_control = i, ep.pulls[i] + 0.5, (ep.pulls[control] + 0.5) / own.ratio
        pull(ep, control if of_control < share or (of_control == share and control < i) else i)

    def __init__(self, task: Any, delta: float | None = None, ratio: float | None = None) -> None:
        super().__init__(task)
        self.control, self.a, self.b, _ = comparison_of(self)
        m, _ = self.task.K - 1, budget_for(self.name, self.task, self.task.K)
        self.ratio = math.sqrt(m) if ratio is None else number("ratio", ratio, 1e-6, 1e6)
        self.delta = delta_of(self.name, self.task, delta, with_budget=0.05)
        self.levels = np.append(np.broadcast_to(self.level(m, np.arange(m)), m), -1.0)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """What is rejected. The p-values are 1 where pulls are too few."""
        from scipy.special import stdtr

        rows: Any = ... if slots is None else slots
        N, m, s = (np.asarray(observation[name])[rows] for name in ("pulls", "mean", "variance"))
        c, a, b = slice(self.control, self.control + 1), self.a, self.b
        with np.errstate(all="ignore"):
            if self.task.distribution == "bernoulli":
                pooled = (N * (m - b) / a + N[..., c] * m[..., c]) / (N + N[..., c])
                y = np.clip(pooled, max(0.0, -b / a), min(1.0, (1.0 - b) / a))  # on the boundary with z = a y + b
                z = a * y + b
                v, w, df = z * (1 - z) / N, a * a * y * (1 - y) / N[..., c], np.full(m.shape, np.inf)
            else:
                v, w = s / (N - 1), a * a * (s / (N - 1))[..., c]
                df = (v + w) ** 2 / (v * v / (N - 1) + w * w / (N[..., c] - 1))
            p = np.nan_to_num(stdtr(df, (a * m[..., c] + b - m) / np.sqrt(v + w)), nan=1.0)
        p[..., c] = 2.0
        order, answer = p.argsort(axis=-1, kind="stable"), np.zeros(p.shape, np.bool_)
        rejected = np.logical_and.accumulate(np.take_along_axis(p, order, -1) <= self.levels, axis=-1)
        np.put_along_axis(answer, order, rejected, -1)
        return answer


class Bonferroni(FixedDesign):
    """Each arm is tested at delta / (K - 1)."""

    name, source, level = "bonferroni", "the common correction", lambda self, m, j: self.delta / m


class Holm(FixedDesign):
    """Each arm is tested at delta / the number of arms that are left, the clearest first (Holm 1979)."""

    name, source, level = "holm", "Holm, Scand. J. Statist. 1979", lambda self, m, j: self.delta / (m - j)


class Dunnett(FixedDesign):
    """Each arm is tested at the level that counts on the control that they share (Dunnett 1955)."""

    name, source = "dunnett", "Dunnett, JASA 1955"
    level = lambda self, m, j: dunnett_level(m, self.a**2 / (self.a**2 + self.ratio), self.delta)
