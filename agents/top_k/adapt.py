"""ADAPT (pi_4) and the policies pi_1, pi_2, pi_3 that lead to it: Kalyanakrishnan & Stone, ICML 2010, section 4.

symbols     High the m arms with the largest empirical means (m is the problem's k), Low the rest; d_i a bound on the
            probability that arm i is on the wrong side of the cutoff c; delta^c = 1 - prod(1 - d_i); W the range of a
            sample (2 sigma; 6 sigma for Gaussian arms, as in the paper); R the range in the empirical Bernstein bound
rules       sampling `draws_evenly` (pi_1, pi_2), `draws` (pi_3, pi_4); stopping `none_left`, `stops`; recommendation
            `Agent.recommend`: the plug-in answer, High. d_i, c, delta^c: bandit_envs/problems/certificates.py
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
from typing import Any, ClassVar, NamedTuple

from bandit_envs.kernels import choice, flag, fleeting, inlined, integer, number, part
from bandit_envs.problems import Deviation, Samples, deviations

from ..core.agent import Ints, Observation
from ..core.confidence import LEAST, MOST, delta_of, tolerance_of, width_of
from ..core.plan_policy import add, count_pulls, round_rule
from .draws import Seeds, draw, draw_evenly, uniform
from .selection import High, SelectionState, TopKAgent, rank

__all__ = ["Adapt", "Pi1", "Pi2", "Pi3", "direct_pulls"]

UNLIMITED = 2**62  # pulls that no arm reaches
CUTOFFS = ("standard-error", "best")  # as in `TopK.certificate`
NEGLIGIBLE = 60.0  # a bound below exp(-60) times another changes no draw


def direct_pulls(n: int, epsilon: float, delta: float, W: float) -> int:
    """Pulls of each arm that make all widths at delta/n at most epsilon/2: ceil(2 W^2 ln(n/delta) / epsilon^2)."""
    if epsilon < LEAST:
        return UNLIMITED
    return math.ceil(min(2.0 * W**2 / epsilon**2 * math.log(n / delta), UNLIMITED))


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    policy: int  # 1 .. 4
    k: int
    cap: int  # most pulls of an arm; pi_1: those that make its bounds at most epsilon / 2 wide
    epsilon: float
    delta: float  # pi_3, pi_4: they stop at delta^c <= delta; -1: never
    W: float
    factor: float  # pi_2: the widths at d_i = delta / n are sqrt(factor / N_i)
    R: float  # pi_4: the range in the empirical Bernstein bound
    best: int  # pi_3, pi_4: 1: the cutoff is c*


@fleeting
class Own(NamedTuple):
    """The rules of a policy, its state and its seeds."""

    rules: Rules
    high: High
    seeds: Seeds


@part
def wide(seen, e, chosen, rules):
    """Mark the arms whose bounds at d_i = delta / n are wider than epsilon / 2 by 1, others by 0; how many they are."""
    n = 0
    for i in range(len(chosen)):
        is_wide = seen.pulls[e, i] < rules.cap
        chosen[i] = 1.0 if is_wide else 0.0
        n += is_wide
    return n


@part
def colliding(seen, e, inside, chosen, rules):
    """Mark the arms below the cap that collide at d_i = delta / n by 1, others by 0; how many they are."""
    K, bound, lowest, highest, n = len(chosen), chosen, math.inf, -math.inf, 0
    for i in range(K):  # LB + epsilon in High, UB in Low
        C = math.sqrt(rules.factor / float(seen.pulls[e, i]))
        bound[i] = (seen.mean[e, i] - C) + rules.epsilon if inside[e, i] else seen.mean[e, i] + C
    for i in range(K):
        if inside[e, i]:
            lowest = min(lowest, bound[i])
        else:
            highest = max(highest, bound[i])
    for i in range(K):
        collides = bound[i] < highest if inside[e, i] else bound[i] > lowest
        collides &= seen.pulls[e, i] < rules.cap  # D3
        chosen[i] = 1.0 if collides else 0.0
        n += collides
    return n


@part
def unsure(seen, e, inside, d, rules):
    """Fill d (K,) with d_i for arms below the cap, else 0; their sum, or 0 where delta^c <= delta."""
    reach = NEGLIGIBLE if rules.cap == UNLIMITED else math.inf
    bound, total = Deviation(rules.epsilon, rules.W, rules.R, rules.policy == 4, rules.best == 1, reach), 0.0
    if rules.delta >= deviations(seen, e, inside, bound, d):
        return total
    for i in range(len(d)):
        if seen.pulls[e, i] >= rules.cap:  # D3
            d[i] = 0.0
        total += d[i]
    return total


@inlined
def observe_evenly(ep, own):
    """pi_1, pi_2: mark the arms that may be pulled; how many they are."""
    e, high, rules = ep.e, own.high, own.rules
    if rules.policy == 1:
        return wide(ep.seen, e, high.scratch, rules)
    rank(ep.seen, e, ep.plan, high, rules.k)
    return colliding(ep.seen, e, high.inside, high.scratch, rules)


@inlined
def none_left(ep, own, n):
    """The stopping rule of pi_1 and pi_2."""
    return n == 0


@round_rule(Own, observe=observe_evenly, stops=none_left)
def draws_evenly(ep, own, n):
    """The sampling rule of pi_1 and pi_2: pull one of these arms, drawn evenly."""
    add(ep.plan, draw_evenly(own.high.scratch, n, uniform(own.seeds, ep.e, count_pulls(ep.seen, ep.e))))


@inlined
def observe(ep, own):
    """pi_3, pi_4: the d_i of the arms below the cap. Returns their sum, 0 where delta^c <= delta."""
    rank(ep.seen, ep.e, ep.plan, own.high, own.rules.k)
    return unsure(ep.seen, ep.e, own.high.inside, own.high.scratch, own.rules)


@inlined
def stops(ep, own, total):
    """The stopping rule of pi_3 and pi_4: delta^c <= delta."""
    return not total > 0.0


@part
def twice(own):
    """D1."""
    return 2


@round_rule(Own, Samples, observe=observe, stops=stops, passes=twice)
def draws(ep, own, total):
    """The sampling rule of pi_3 and pi_4: pull arm i with a probability proportional to d_i."""
    add(ep.plan, draw(own.high.scratch, total, uniform(own.seeds, ep.e, count_pulls(ep.seen, ep.e))))


class _Policy(TopKAgent):
    """What the four policies share."""

    source, stops, promises = "Kalyanakrishnan & Stone, ICML 2010, section 4", True, ("aggregate", "each")
    policy: ClassVar[int]

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
        super().__init__(task)
        K, W, self.seed = self.task.K, width_of(self.task, width), integer("seed", seed, 0, 2**32 - 1)
        epsilon, capped = tolerance_of(self), flag("cap", cap)
        if capped and epsilon == 0 and self.policy > 1:
            raise ValueError("cap=True needs epsilon > 0 and a criterion that leaves a tolerance, not 'exact'")
        at, bounded = self.stopping_level(delta), capped or self.policy <= 2
        level = delta_of(self.name, self.task, delta) if bounded else 0.5  # which is not used
        self.cap = direct_pulls(K, epsilon, level, W) if capped else UNLIMITED
        at = -1.0 if at is None or self.budgeted else at
        best, R = int(choice("cutoff", cutoff, CUTOFFS) == "best"), W
        if bernstein_range is not None:
            R = number("bernstein_range", bernstein_range, LEAST, MOST)
        self.own_bounds = {"bounds": "tightest" if self.policy == 4 else "hoeffding", "cutoff": cutoff}
        if bernstein_range is not None:
            self.own_bounds["bernstein_range"] = R
        factor = W**2 * math.log(K / level) / 2.0
        self.rules = Rules(self.policy, self.k, self.cap, epsilon, at, W, factor, R, best)

    def idle(self) -> dict[str, str]:
        if self.policy > 2 and self.budgeted and self.cap == UNLIMITED:
            return {"delta": "which is needed to stop, and for the cap: with a budget it does not stop"}
        return {}

    def rule(self, seen: Any, observation: Observation, state: SelectionState, out: Ints) -> Any:
        _, public_seed = self.beside(observation)
        return draws_evenly, (seen, state.plans, Own(self.rules, state.high, Seeds(public_seed, self.seed)), out)


class Pi1(_Policy):
    """pi_1, UNIFORM: a random arm among those whose bounds are wider than epsilon / 2 at delta / n."""

    name, policy = "pi1", 1
    needs = "delta"

    def __init__(self, task: Any, delta: float | None = None, width: float | None = None, seed: int = 0) -> None:
        super().__init__(task, delta, True, width, seed)


class Pi2(_Policy):
    """pi_2: a random arm among those whose bounds at delta / n collide with the other side, until none does.

    Args:
        cap: pull no arm more often than DIRECT would.
    """

    name, policy = "pi2", 2
    needs = "delta"

    def __init__(
        self, task: Any, delta: float | None = None, cap: bool = False, width: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(task, delta, cap, width, seed)


class _Drawing(_Policy):
    """What pi_3 and pi_4 share."""

    def rule(self, seen: Any, observation: Observation, state: SelectionState, out: Ints) -> Any:
        variance, public_seed = self.beside(observation)
        own = Own(self.rules, state.high, Seeds(public_seed, self.seed))
        return draws, (Samples(seen.pulls, seen.mean, variance), state.plans, own, out)


class Pi3(_Drawing):
    """pi_3: an arm drawn with probability proportional to d_i by Hoeffding's bound, until delta^c <= delta.

    Args:
        delta: None takes the task's; needed only to stop, and for the cap. cap: as for `pi2`.
        cutoff: c by "standard-error", as in the paper's experiments, or the "best", c* = argmin delta^c.
    """

    name, policy = "pi3", 3
    needs = "delta or budget"

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        cap: bool = False,
        width: float | None = None,
        seed: int = 0,
        cutoff: str = "standard-error",
    ) -> None:
        super().__init__(task, delta, cap, width, seed, cutoff)


class Adapt(_Drawing):
    """ADAPT, pi_4: pi_3 with the tightest of Hoeffding's and the empirical Bernstein bound.

    Args:
        delta, cap, cutoff: as for `pi3`; the "best" c is where Hoeffding's delta^c is least.
        bernstein_range: the range in the empirical Bernstein bound; None takes the width. A smaller one is no bound.
    """

    name, policy = "adapt", 4
    needs = "delta or budget"
