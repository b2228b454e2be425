"""Track-and-Stop: Garivier & Kaufmann, COLT 2016.

symbols     w*(m) the proportions of pulls, of the empirical means m, that gather evidence fastest; t pulls so far, N_a
            those of arm a
            D-tracking   an arm with N_a < sqrt(t) - K/2, the fewest, where there is one; else argmax t w*_a - N_a
            C-tracking   argmax sum over s <= t of w^eps_a(s) - N_a, w^eps_a >= eps = 1 / (2 sqrt(K^2 + s))
rules       sampling         `track`
            stopping         `stops` of `policy`: the statistic Z(t) of the closest alternative exceeds beta(t, delta)
            recommendation   `Agent.recommend`: the plug-in answer; for the best arm the empirical best
departures  D1 the answer is certified by the boundaries of this package, looked at after every 1/200 more pulls
            D2 BestArm with Gaussian arms, or Bernoulli ones and epsilon = 0: w* is found exactly, after every 1/100
               more pulls
            D3 other pairs of arms (TopK, AllGood): w* is approached by a step at each choice from where the last one
               has led (see `proportion_steps`), in place of being solved anew
            D4 alternatives that move one arm (Threshold, Feasible, local problems): w*_a ~ 1 / d_a, exact, at each
            choice
            D5 AllGood: an arm left out is kept out by one better arm, the pair that the certificate takes as well,
               where the nearest instance would lower all better arms
            D6 C-tracking: w^eps is eps + (w* - eps)+, scaled to sum 1, not the nearest such point
            D7 ties go to the lowest arm
            D8 a chosen arm is pulled max(1, sqrt(N_a) / 2) times, rounded down, before the next choice; of pairs of
               more than 127 arms, at least min(N_a, (K / 128)^2) times. For large N_a that is a share of them that
               goes to 0, so that N_a / t has the same limit
            D9 AllGood is tracked by C: w* changes with the empirical best of nearly equal arms, and D-tracking follows
               each change (Degenne & Koolen, NeurIPS 2019, of several optimal w*)
            D10 samples in a known range: w* is that of Gaussian arms of the empirical variances, step by step

With a budget it does not stop, and delta is 0.01 where nobody names one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import choice, part
from bandit_envs.stopping import BERNOULLI, GAUSSIAN

from ..core.agent import Floats, Ints, Observation
from ..core.plan_policy import add
from .alternatives import ALL_GOOD, KEPT, MEANS, TOP_K
from .policy import CertifiedPolicy, CertifiedState, ask, held, lacking, sampling_rule
from .proportions import best_arm_proportions

__all__ = ["TrackAndStop"]

TRACKINGS = ("D", "C")
GROWTH = 100  # w* is solved anew when the pulls have grown by 1 / GROWTH
TIED = 1e-9  # arms that are behind by so nearly the same tie


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    exact: bool  # D2
    cumulative: bool  # C-tracking


class Own(NamedTuple):
    """The rules, and the proportions."""

    rules: Rules
    w: Floats  # (E, K)
    x: Floats  # (E, K) D2: w_a / w_b
    sums: Floats  # (E, K) C-tracking: of w^eps
    y: Floats  # (E,) D2
    due: Ints  # (E,) D2: pulls at which w* is solved anew
    cost: Floats  # (K,) to work in


@part
def solve(ep, own):
    """Bring the proportions w*(m) up to date."""
    e, desk, round, w = ep.e, ep.desk, ep.round, own.w[ep.e]
    if own.rules.exact:  # D2
        if round.t >= own.due[e]:
            own.due[e] = round.t + max(1, round.t // GROWTH)
            y, cost, x = own.y[e], own.cost, own.x[e]
            own.y[e] = best_arm_proportions(desk.distribution, -desk.b, desk.variance, ep.mean, y, cost, x, w)
        return
    round.draws += 1
    desk.draws = round.draws
    ask(ep, desk.step)  # D3, D4
    for a in range(len(w)):
        w[a] = ep.batch.work[a]


@part
def behind(ep, own):
    """The arm that is furthest behind its share: argmax t w*_a - N_a, or of the sums of C-tracking."""
    found, most, wanted = 0, -math.inf, own.sums[ep.e]
    for a in range(len(ep.pulls)):
        lag = (wanted[a] if own.rules.cumulative else ep.round.t * own.w[ep.e, a]) - ep.pulls[a]
        if lag > most + TIED:
            found, most = a, lag
    return found


@part
def count_on(ep, times, own):
    """Add w^eps to the sums of C-tracking, so many times.   D6"""
    w, sums, above, K = own.w[ep.e], own.sums[ep.e], 0.0, len(ep.pulls)
    epsilon = 0.5 / math.sqrt(float(K * K) + ep.round.t)
    for a in range(K):
        above += max(w[a] - epsilon, 0.0)
    for a in range(K):
        sums[a] += times * (epsilon + max(w[a] - epsilon, 0.0) * (1.0 - K * epsilon) / above)


@part
def begin(ep, own):
    """w* is to be solved. In the middle of an episode, the sums of C-tracking are as if w* had always been this one."""
    e, K = ep.e, len(ep.pulls)
    own.due[e], own.y[e] = 0, 0.0
    ep.round.draws = ep.round.t - K
    for i in range(K):
        own.sums[e, i], own.x[e, i] = float(ep.pulls[i]) if ep.round.t == K else 0.0, 0.0
    if ep.round.t > K and own.rules.cumulative:
        solve(ep, own)
        count_on(ep, ep.round.t, own)


@sampling_rule(Own, begin)
def track(ep, own):
    """Pull the arm that is furthest behind its share of w*(m), D8; by D-tracking one that lacks pulls before."""
    solve(ep, own)
    if own.rules.cumulative:
        count_on(ep, 1, own)
        arm = behind(ep, own)
        count_on(ep, held(ep, arm) - 1, own)
    else:
        few = lacking(ep)
        arm = few if few >= 0 else behind(ep, own)
    add(ep.plan, arm, held(ep, arm))


@dataclass
class State(CertifiedState):
    """State of Track-and-Stop for E episodes."""

    own: Any = None  # an `Own`


class TrackAndStop(CertifiedPolicy):
    """Track-and-Stop (Garivier & Kaufmann 2016): pull in the optimal proportions of the empirical means.

    Args:
        tracking: "D", with forced exploration, or "C", of the sums of the proportions; None: "C" on AllGood, D9, else
            "D". All others: see `CertifiedPolicy`.
    """

    name, source = "track-and-stop", "Garivier & Kaufmann, COLT 2016"
    _knows_tables = False
    sampling, _sampling_boundary = track, "none"

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        tracking: str | None = None,
        boundary: str = "mixture",
        distribution: str | None = None,
        rho: float | None = None,
        sigma: float | None = None,
        centre: float | None = None,
    ) -> None:
        super().__init__(task, delta, boundary, distribution, rho, sigma, centre)
        sides = self.sides
        by_kind = "C" if sides.kind == ALL_GOOD else "D"
        cumulative = choice("tracking", by_kind if tracking is None else tracking, TRACKINGS) == "C"
        closed = sides.distribution == GAUSSIAN or sides.distribution == BERNOULLI and sides.b == 0.0
        self.rules = Rules(sides.kind == TOP_K and sides.k == 1 and closed, cumulative)

    def idle(self) -> dict[str, str]:
        found = super().idle()
        if not self.stops and self.distribution == "gaussian":
            found["sigma"] = "as the optimal proportions of Gaussian arms do not depend on it"
        return found

    def initial_state(self, observation: Observation) -> State:
        E, K = len(observation["pulls"]), self.task.K
        w, x, sums = np.zeros((3, E, K))
        own = Own(self.rules, w, x, sums, np.zeros(E), np.zeros(E, np.int64), np.zeros(K))
        return State(**self._common(observation), own=own)

    @property
    def _asks(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("certify",) if self.rules.exact else ("observe", "step", "certify")

    @property
    def _weighed(self) -> int:  # type: ignore[override]
        return MEANS if self.rules.exact else KEPT

    def own(self, state: State) -> Own:
        return state.own  # type: ignore[no-any-return]
