"""ADAPT (pi_4) and the policies pi_1, pi_2, pi_3 that lead to it: Kalyanakrishnan & Stone, ICML 2010, section 4.

symbols     n arms; High the m with the largest empirical means (m is the problem's k), Low the rest; N_i pulls of arm
            i; c a cutoff between High and Low; d_i a bound on the probability that arm i lies on the wrong side of c;
            delta^c = 1 - prod(1 - d_i); W the range of a sample (2 sigma; 6 sigma for Gaussian arms, as in the paper);
            R the range in the empirical Bernstein bound. See bandit_envs/problems/certificates.py for d_i, c, delta^c
answer      High, the plug-in answer
departures  D1 pi_1 and pi_2 pull each arm once first, pi_3 and pi_4 twice, for a variance
            D2 ties go to the lowest arm
            D3 cap: no arm is pulled more often than DIRECT would, ceil(2 W^2 ln(n/delta) / epsilon^2) times (the paper:
               "a worst case bound can be easily enforced"). It stops where all arms that it would pull are capped
            D4 with a budget delta does not stop pi_3 and pi_4; pi_1 and pi_2 still stop when no arm is left to pull
            D5 c is placed by the standard errors of the two arms beside it, as in the paper's experiments;
               cutoff="best" takes c*, which minimises Hoeffding's delta^c, for pi_4 too
            D6 pi_3 and pi_4 never draw an arm whose d_i is below e^-60 times the largest, unless arms are capped

The delta of pi_3 and pi_4 is nominal: they compare delta^c with it after every pull without a union bound over time,
and pi_4 takes the smaller of two bounds without a union bound over the two.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import choice, flag, integer, number
from bandit_envs.problems import CUTOFFS, Deviation, Samples, deviations

from ..core.confidence import LEAST, MOST, delta_of, tolerance_of, width_of
from ..core.declared import per_episode, scratch, setting
from ..core.plans import pull
from .selection import TopKAgent, draw, rank, uniform

UNLIMITED = 2**62  # pulls that no arm reaches
NEGLIGIBLE = 60.0  # an arm whose d_i is exp(-60) times the largest is never drawn


def direct_pulls(n: int, epsilon: float, delta: float, W: float) -> int:
    """The pulls that make an arm's bound at d_i = delta/n at most epsilon/2: ceil(2 W^2 ln(n/delta) / epsilon^2)."""
    if epsilon < LEAST:
        return UNLIMITED
    return math.ceil(min(2.0 * W**2 / epsilon**2 * math.log(n / delta), UNLIMITED))


class _Policy(TopKAgent):
    """The base of the four policies: they draw an arm by weights, and stop when all of these are 0."""

    source, promises = "Kalyanakrishnan & Stone, ICML 2010, section 4", ("aggregate", "each")
    cap = setting(int)  # most pulls of an arm, D3; in pi_1, the pulls at which it is no longer chosen
    seed = setting(int)
    d, total = scratch(float), per_episode(float)  # weights of the arms: d_i, or 1 for those that are chosen; their sum

    def stops(ep, own):
        """The stopping rule: in pi_3 and pi_4, delta^c <= delta, or all arms that are not capped have d_i = 0."""
        return ep.now.total == 0.0

    def sample(ep, own):
        """The sampling rule: pull arm i with a probability proportional to its weight."""
        pull(ep, draw(own.d, ep.now.total, uniform(ep, own)))

    def __init__(self, task: Any, delta: float | None, cap: bool, width: float | None, seed: int) -> None:
        super().__init__(task)
        self.W, self.seed = width_of(self.task, width), integer("seed", seed, 0, 2**32 - 1)
        self.epsilon, self.cap = tolerance_of(self), UNLIMITED
        if flag("cap", cap):
            if self.epsilon == 0:
                raise ValueError("cap=True needs epsilon > 0 and a criterion that leaves a tolerance, not 'exact'")
            self.cap = self.pulls_of_direct(delta)

    def pulls_of_direct(self, delta: float | None) -> int:
        """See `direct_pulls`."""
        return direct_pulls(self.task.K, self.epsilon, delta_of(self.name, self.task, delta), self.W)


class Pi1(_Policy):
    """pi_1, UNIFORM: a random arm among those whose bounds are wider than epsilon / 2 at delta / n."""

    name, needs, reads = "pi1", "delta", ("seed",)

    def observe(ep, own):
        """Choose the arms with fewer pulls than `direct_pulls`: their bounds are wider than epsilon / 2."""
        ep.now.total = 0.0
        for i in range(len(ep.pulls)):
            own.d[i] = ep.pulls[i] < own.cap
            ep.now.total += own.d[i]

    def __init__(self, task: Any, delta: float | None = None, width: float | None = None, seed: int = 0) -> None:
        super().__init__(task, delta, False, width, seed)
        self.cap = self.pulls_of_direct(delta)


class Pi2(_Policy):
    """pi_2: a random arm among those that collide at d_i = delta / n, until none does.

    An arm of High collides if LB + epsilon < max UB over Low; an arm of Low if UB > min LB + epsilon over High.

    Args:
        cap: pull no arm more often than DIRECT would.
    """

    name, needs, reads = "pi2", "delta", ("seed",)
    epsilon, factor = setting(float), setting(float)  # the widths at d_i = delta / n are sqrt(factor / N_i)

    def observe(ep, own):
        """Choose the arms that collide."""
        rank(ep, own)
        bound, lowest, highest, ep.now.total = own.work, math.inf, -math.inf, 0.0
        for i in range(len(bound)):  # LB + epsilon in High, UB in Low
            C = math.sqrt(own.factor / float(ep.pulls[i]))
            bound[i] = (ep.mean[i] - C) + own.epsilon if own.inside[i] else ep.mean[i] + C
        for i in range(len(bound)):
            if own.inside[i]:
                lowest = min(lowest, bound[i])
            else:
                highest = max(highest, bound[i])
        for i in range(len(bound)):
            collides = bound[i] < highest if own.inside[i] else bound[i] > lowest
            own.d[i] = collides & (ep.pulls[i] < own.cap)  # D3
            ep.now.total += own.d[i]

    def __init__(
        self, task: Any, delta: float | None = None, cap: bool = False, width: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(task, delta, cap, width, seed)
        self.factor = self.W**2 * math.log(self.task.K / delta_of(self.name, self.task, delta)) / 2.0


class Pi3(_Policy):
    """pi_3: an arm drawn with probability proportional to d_i by Hoeffding's bound, until delta^c <= delta.

    Args:
        delta: needed to stop, and for the cap; None takes the task's. cap: as for `pi2`.
        cutoff: "standard-error", as in the paper's experiments, or "best": c* = argmin delta^c.
    """

    name, needs, reads, passes = "pi3", "delta or budget", ("variance", "seed"), 2  # D1
    delta = setting(float)  # -1: it does not stop
    bound = setting(Deviation)

    def observe(ep, own):
        """Compute d_i, 0 for capped arms, and their sum; the sum is 0 where delta^c <= delta."""
        rank(ep, own)
        seen, total = Samples(ep.pulls, ep.mean, ep.variance), 0.0
        if deviations(seen, own.inside, own.bound, own.d) > own.delta:
            for i in range(len(own.d)):
                if ep.pulls[i] >= own.cap:  # D3
                    own.d[i] = 0.0
                total += own.d[i]
        ep.now.total = total

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        cap: bool = False,
        width: float | None = None,
        seed: int = 0,
        cutoff: str = "standard-error",
    ) -> None:
        super().__init__(task, delta, cap, width, seed)
        level = delta_of(self.name, self.task, delta, with_budget=0.5)  # of which a budget has no use
        self.delta = -1.0 if self.budgeted else level  # D4
        best = choice("cutoff", cutoff, CUTOFFS) == "best"
        reach = NEGLIGIBLE if self.cap == UNLIMITED else math.inf  # D6: the largest d_i may be of a capped arm
        self.bound = Deviation(self.epsilon, self.W, self.W, False, best, reach)
        self.own_bounds = {"bounds": "hoeffding", "cutoff": cutoff}

    def idle(self) -> dict[str, str]:
        if self.budgeted and self.cap == UNLIMITED:
            return {"delta": "which is needed to stop, and for the cap: with a budget it does not stop"}
        return {}


class Adapt(Pi3):
    """ADAPT, pi_4: pi_3 with the smaller of Hoeffding's and the empirical Bernstein bound.

    Args:
        delta, cap, cutoff: as for `pi3`; "best" minimises delta^c by Hoeffding's bounds alone.
        bernstein_range: R; None takes the width, W. With a smaller range the bound does not hold.
    """

    name = "adapt"

    def __init__(self, task: Any, *arguments: Any, bernstein_range: float | None = None, **options: Any) -> None:
        super().__init__(task, *arguments, **options)
        R = self.W if bernstein_range is None else number("bernstein_range", bernstein_range, LEAST, MOST)
        given = {} if bernstein_range is None else {"bernstein_range": R}
        self.own_bounds = {**self.own_bounds, "bounds": "tightest", **given}
        self.bound = self.bound._replace(R=R, tightest=True)
