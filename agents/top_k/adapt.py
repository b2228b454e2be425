"""ADAPT (pi_4) and the policies pi_1, pi_2, pi_3 that lead to it: Kalyanakrishnan & Stone, ICML 2010, section 4.

symbols     High the m arms with the largest empirical means (m is the problem's k), Low the rest; d_i a bound on the
            probability that arm i is on the wrong side of the cutoff c; delta^c = 1 - prod(1 - d_i); W the range of a
            sample (2 sigma; 6 sigma for Gaussian arms, as in the paper); R the range in the empirical Bernstein bound
            d_i, c and delta^c are computed in bandit_envs/problems/certificates.py
answer      High, the plug-in answer
departures  D1 pi_1 and pi_2 pull each arm once first, pi_3 and pi_4 twice, for a variance
            D2 ties go to the lowest arm
            D3 cap: no arm is pulled more often than DIRECT would, ceil(2 W^2 ln(n/delta) / epsilon^2) times (the paper:
               "a worst case bound can be easily enforced"); it stops where only capped arms are left
            D4 with a budget none stops because of delta; pi_1 and pi_2 stop where no arm is left to pull
            D5 c divides its interval by standard errors, as in the paper's experiments; cutoff="best" takes c*, which
               minimises Hoeffding's delta^c, for pi_4 too
            D6 a d_i below e^-60 of the largest counts as 0 where pi_3 and pi_4 draw an arm

The promise of pi_3 and pi_4 is nominal: delta^c is looked at after every pull without a union over time, and the
smaller of two bounds is taken without a union over the two.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import choice, flag, integer, number
from bandit_envs.problems import Deviation, Samples, deviations

from ..core.algorithm import per_episode, pull, scratch, setting
from ..core.confidence import LEAST, MOST, delta_of, tolerance_of, width_of
from .draws import draw, draw_evenly, uniform
from .selection import TopKAgent, rank

UNLIMITED = 2**62  # pulls that no arm reaches
CUTOFFS = ("standard-error", "best")  # as in `TopK.certificate`
NEGLIGIBLE = 60.0  # a bound below exp(-60) times another changes no draw


def direct_pulls(n: int, epsilon: float, delta: float, W: float) -> int:
    """Pulls of each arm that make all widths at delta/n at most epsilon/2: ceil(2 W^2 ln(n/delta) / epsilon^2)."""
    if epsilon < LEAST:
        return UNLIMITED
    return math.ceil(min(2.0 * W**2 / epsilon**2 * math.log(n / delta), UNLIMITED))


class _Policy(TopKAgent):
    """What the four policies share."""

    source, promises = "Kalyanakrishnan & Stone, ICML 2010, section 4", ("aggregate", "each")
    cap = setting(int)  # most pulls of an arm; pi_1: those that make its bounds at most epsilon / 2 wide
    seed = setting(int)

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


class _Even(_Policy):
    """What pi_1 and pi_2 share: they pull any of some chosen arms, until there are none."""

    needs, reads = "delta", ("seed",)
    chosen = scratch(bool)
    n = per_episode(int)  # how many are chosen

    def stops(ep, own):
        """The stopping rule: no arm is left."""
        return ep.now.n == 0

    def sample(ep, own):
        """The sampling rule: pull one of the chosen arms, drawn evenly."""
        pull(ep, draw_evenly(own.chosen, ep.now.n, uniform(ep, own)))


class Pi1(_Even):
    """pi_1, UNIFORM: a random arm among those whose bounds are wider than epsilon / 2 at delta / n."""

    name = "pi1"

    def observe(ep, own):
        """Choose the arms whose bounds at d_i = delta / n are wider than epsilon / 2."""
        n = 0
        for i in range(len(ep.pulls)):
            own.chosen[i] = ep.pulls[i] < own.cap
            n += own.chosen[i]
        ep.now.n = n

    def __init__(self, task: Any, delta: float | None = None, width: float | None = None, seed: int = 0) -> None:
        super().__init__(task, delta, False, width, seed)
        self.cap = self.pulls_of_direct(delta)


class Pi2(_Even):
    """pi_2: a random arm among those whose bounds at delta / n collide with the other side, until none does.

    Args:
        cap: pull no arm more often than DIRECT would.
    """

    name = "pi2"
    epsilon, factor = setting(float), setting(float)  # the widths at d_i = delta / n are sqrt(factor / N_i)

    def observe(ep, own):
        """Choose the arms that collide at d_i = delta / n."""
        rank(ep, own)
        bound, lowest, highest, n = own.work, math.inf, -math.inf, 0
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
            own.chosen[i] = collides & (ep.pulls[i] < own.cap)  # D3
            n += own.chosen[i]
        ep.now.n = n

    def __init__(
        self, task: Any, delta: float | None = None, cap: bool = False, width: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(task, delta, cap, width, seed)
        self.factor = self.W**2 * math.log(self.task.K / delta_of(self.name, self.task, delta)) / 2.0


class Pi3(_Policy):
    """pi_3: an arm drawn with probability proportional to d_i by Hoeffding's bound, until delta^c <= delta.

    Args:
        delta: None takes the task's; needed only to stop, and for the cap. cap: as for `pi2`.
        cutoff: c by "standard-error", as in the paper's experiments, or the "best", c* = argmin delta^c.
    """

    name, needs, reads, passes = "pi3", "delta or budget", ("variance", "seed"), 2  # D1
    delta = setting(float)  # -1: it does not stop
    bound = setting(Deviation)
    d = scratch(float)
    total = per_episode(float)

    def observe(ep, own):
        """The d_i of the arms below the cap, else 0, and their sum; that is 0 where delta^c <= delta."""
        rank(ep, own)
        seen, total = Samples(ep.pulls, ep.mean, ep.variance), 0.0
        if not own.delta >= deviations(seen, own.inside, own.bound, own.d):
            for i in range(len(own.d)):
                if ep.pulls[i] >= own.cap:  # D3
                    own.d[i] = 0.0
                total += own.d[i]
        ep.now.total = total

    def stops(ep, own):
        """The stopping rule: delta^c <= delta."""
        return not ep.now.total > 0.0

    def sample(ep, own):
        """The sampling rule: pull arm i with a probability proportional to d_i."""
        pull(ep, draw(own.d, ep.now.total, uniform(ep, own)))

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
        level = self.stopping_level(delta)
        self.delta = -1.0 if level is None or self.budgeted else level  # D4
        best = choice("cutoff", cutoff, CUTOFFS) == "best"
        reach = NEGLIGIBLE if self.cap == UNLIMITED else math.inf  # D6
        self.bound = Deviation(self.epsilon, self.W, self.W, False, best, reach)
        self.own_bounds = {"bounds": "hoeffding", "cutoff": cutoff}

    def idle(self) -> dict[str, str]:
        if self.budgeted and self.cap == UNLIMITED:
            return {"delta": "which is needed to stop, and for the cap: with a budget it does not stop"}
        return {}


class Adapt(Pi3):
    """ADAPT, pi_4: pi_3 with the tightest of Hoeffding's and the empirical Bernstein bound.

    Args:
        delta, cap, cutoff: as for `pi3`; the "best" c is where Hoeffding's delta^c is least.
        bernstein_range: the range in the empirical Bernstein bound; None takes the width. A smaller one is no bound.
    """

    name = "adapt"

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        cap: bool = False,
        width: float | None = None,
        seed: int = 0,
        cutoff: str = "standard-error",
        bernstein_range: float | None = None,
    ) -> None:
        super().__init__(task, delta, cap, width, seed, cutoff)
        R = self.W
        self.own_bounds = {"bounds": "tightest", "cutoff": cutoff}
        if bernstein_range is not None:
            R = number("bernstein_range", bernstein_range, LEAST, MOST)
            self.own_bounds = {**self.own_bounds, "bernstein_range": R}
        self.bound = self.bound._replace(R=R, tightest=True)
