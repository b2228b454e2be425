"""Track-and-Stop: Garivier & Kaufmann, COLT 2016.

symbols     w*(m) the proportions of pulls, of the empirical means m, that gather evidence fastest; t pulls so far, N_a
            those of arm a
            D-tracking   an arm with N_a < sqrt(t) - K/2, the fewest, where there is one; else argmax t w*_a - N_a
            C-tracking   argmax sum over s <= t of w^eps_a(s) - N_a, w^eps_a >= eps = 1 / (2 sqrt(K^2 + s))
rules       sampling         `sample`
            stopping         `is_certified`: the statistic Z(t) of the closest alternative exceeds beta(t, delta)
            recommendation   `Agent.recommend`: the plug-in answer; for the best arm the empirical best
departures  D1 the answer is certified by the boundaries of this package, looked at after every 1/200 more pulls
            D2 BestArm with Gaussian arms, or Bernoulli ones and epsilon = 0: w* is found exactly, after every 1/100
               more pulls
            D3 other pairs of arms (not BestArm): w* is approached by a step at each choice from where the last one
               has led (see `desk.step`), in place of being solved again
            D4 alternatives that move one arm (Threshold, Feasible, local problems): w*_a ~ 1 / d_a, exact, at each
            choice
            D5 AllGood: an arm left out is kept out by one better arm, the pair that the certificate takes as well,
               where the nearest instance would lower all better arms
            D6 C-tracking: w^eps is eps + (w* - eps)+, scaled to sum 1, not the nearest such point
            D7 ties go to the lowest arm
            D8 a chosen arm is pulled max(1, sqrt(N_a) / 2) times, rounded down, before the next choice; of pairs of
               more than 127 arms, at least min(N_a, (K / 128)^2, K / 16) times. For large N_a that is a share of them
               that goes to 0, so that N_a / t has the same limit
            D9 AllGood is tracked by C: w* changes with the empirical best of nearly equal arms, and D-tracking follows
               each change (Degenne & Koolen, NeurIPS 2019, of several optimal w*)
            D10 samples in a known range: w* is that of Gaussian arms of the empirical variances, step by step

With a budget it does not stop, and delta is 0.01 where none is named.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import choice, part
from bandit_envs.stopping import BERNOULLI, GAUSSIAN

from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.plans import pull
from .alternatives import ALL_GOOD, KEPT, MEANS, TOP_K
from .policy import CertifiedAlgorithm, ask, held, lacking, races
from .proportions import best_arm_proportions

TRACKINGS = ("D", "C")
GROWTH = 100  # w* is solved again when the pulls have grown by 1 / GROWTH
TIED = 1e-9  # arms that are behind by so nearly the same tie


@part
def solve(ep, own):
    """Bring the proportions w*(m) up to date."""
    now, desk = ep.now, ep.desk
    if own.exact:  # D2
        if now.t >= now.due:
            now.due = now.t + max(1, now.t // GROWTH)
            now.y = best_arm_proportions(
                desk.distribution, -desk.b, desk.variance, ep.mean, now.y, own.cost, own.x, own.w
            )
        return
    now.steps += 1
    desk.draws = now.steps
    ask(ep, desk.step)  # D3, D4
    for a in range(len(own.w)):
        own.w[a] = ep.shares[a]


@part
def behind(ep, own):
    """The arm that is furthest behind its share: argmax t w*_a - N_a, or of the sums of C-tracking."""
    found, most = 0, -math.inf
    for a in range(len(ep.pulls)):
        lag = (own.sums[a] if own.cumulative else ep.now.t * own.w[a]) - ep.pulls[a]
        if lag > most + TIED:
            found, most = a, lag
    return found


@part
def count_on(ep, times, own):
    """Add w^eps to the sums of C-tracking, so many times.   D6"""
    above, K = 0.0, len(ep.pulls)
    epsilon = 0.5 / math.sqrt(float(K * K) + ep.now.t)
    for a in range(K):
        above += max(own.w[a] - epsilon, 0.0)
    for a in range(K):
        own.sums[a] += times * (epsilon + max(own.w[a] - epsilon, 0.0) * (1.0 - K * epsilon) / above)


class TrackAndStop(CertifiedAlgorithm):
    """Track-and-Stop (Garivier & Kaufmann 2016): pull in the optimal proportions of the empirical means.

    Args:
        tracking: "D", with forced exploration, or "C", of the sums of the proportions; None: "C" on AllGood, D9, else
            "D". race: the share of pulls that race, in [0, 1], as those of `Evidence` do; it is not the paper's. All
            others: see `CertifiedAlgorithm`.
    """

    name, source = "track-and-stop", "Garivier & Kaufmann, COLT 2016"
    _knows_tables, _sampling_boundary = False, "none"
    exact, cumulative = setting(bool), setting(bool)  # D2; C-tracking
    steps, due, y = per_episode(int), per_episode(int), per_episode(float)  # D3; D2: pulls when w* is solved again
    w, x, sums = per_arm(float), per_arm(float), per_arm(float)  # w*; D2: w_a / w_b; C-tracking: sums of w^eps
    cost = scratch(float)

    def begin(ep, own):
        """In the middle of an episode, the sums of C-tracking are as if w* had always been this one."""
        t, K = ep.now.t, len(ep.pulls)
        ep.now.steps = t - K
        for i in range(K):
            own.sums[i] = float(ep.pulls[i]) if t == K else 0.0
        if t > K and own.cumulative:
            solve(ep, own)
            count_on(ep, t, own)

    def sample(ep, own):
        """Pull the arm that is furthest behind its share of w*(m), D8; by D-tracking one that lacks pulls before."""
        if races(ep, own.race):
            return
        solve(ep, own)
        if own.cumulative:
            count_on(ep, 1, own)
            arm = behind(ep, own)
            count_on(ep, held(ep, arm) - 1, own)
        else:
            few = lacking(ep)
            arm = few if few >= 0 else behind(ep, own)
        pull(ep, arm, held(ep, arm))

    def __init__(
        self, task: Any, delta: float | None = None, *, tracking: str | None = None, race: float = 0.0, **options: Any
    ) -> None:
        super().__init__(task, delta, **options)
        self.race = self._racing(race)
        sides = self.sides
        by_kind = "C" if sides.kind == ALL_GOOD else "D"
        self.cumulative = choice("tracking", by_kind if tracking is None else tracking, TRACKINGS) == "C"
        closed = sides.distribution == GAUSSIAN or (sides.distribution == BERNOULLI and sides.b == 0.0)
        self.exact = sides.kind == TOP_K and sides.k == 1 and closed
        self._asks = ("certify",) if self.exact else ("observe", "step", "certify")
        self._weighed = MEANS if self.exact else KEPT

    def idle(self) -> dict[str, str]:
        found = super().idle()
        if not self.may_stop and self.distribution == "gaussian":
            found["sigma"] = "as the optimal proportions of Gaussian arms do not depend on it"
        return found
