"""Evidence: pull the arm that raises the evidence against the closest alternative most; stop when all are excluded.

Ours, of what Garivier & Kaufmann, COLT 2016, and Russo, COLT 2016, teach: the pulls climb the function whose size stops
them.

symbols     t pulls so far, N_i those of arm i; an alternative: one or two arms, and the means that they are moved to;
            its statistic: the cost of this move less what it must exceed
rule        R1 stop when the statistic of the closest alternative is positive, and the certificate says so, which is
               asked after each 1/200 of the pulls
            R2 pull an arm with N_i < sqrt(t) - K/2, the fewest, where there is one
            R3 of the closest alternative, pull the arm with the largest divergence from its mean to the one that it is
               moved to: the derivative of the evidence by N_i; of equals the one with fewer pulls, then the lower one.
               Where pulls have prices c_i, divergences and pulls count by money here, d_i / c_i and N_i c_i, and R2 is
               weakened by sqrt(min c / max c), as it pulls dear arms too
            R4 where the statistic is positive and the certificate does not say so: of the alternative that it names,
               the arm with fewer pulls
            R5 pull it max(1, sqrt(N_i) / 2) times, rounded down, before looking again; of pairs of more than 127 arms,
               at least min(N_i, (K / 128)^2, K / 16) times
            R6 where pairs are certified by contrasts, a share of all pulls races: it goes to the arm with the fewest
               pulls of those in pairs whose statistic is not positive, or to the leader, see `alternatives.racer`. The
               pairs are looked up after each 1/200 of the pulls. Prices weaken it as they weaken R2
contrasts   The statistic of a pair is the cost of the move less what the contrast must exceed and about its price. It
            says where to pull, and the certificate alone when to stop; where R4 applies it is asked each time.
options     `force` multiplies the sqrt(t) - K/2 of R2, `hold` the sqrt(N_i) / 2 of R5; 1 each, by default. `race`: the
            share of R6, .75

But for contrasts and bets the statistic is that of the certificate. With a budget it does not stop, and delta is 0.01
where none is named.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import inlined, number

from ..core.declared import setting
from ..core.plans import pull
from .alternatives import BOUNDARY
from .policy import CertifiedAlgorithm, find, found, held, is_certified, lacking, races

CLOSE = 1.0 + 1e-9  # divergences within this ratio are equal


@inlined
def steeper(alternative, pulls, price):
    """R3."""
    c, d = price[alternative.lowered], price[alternative.raised]
    down, up = alternative.down / c, alternative.up / d
    if down > CLOSE * up or alternative.lowered == alternative.raised:
        return alternative.lowered
    if up > CLOSE * down:
        return alternative.raised
    first, second = pulls[alternative.lowered] * c, pulls[alternative.raised] * d
    if first == second:
        return min(alternative.lowered, alternative.raised)
    return alternative.lowered if first < second else alternative.raised


@inlined
def excluded(desk):
    """Whether the least statistic is positive, where that can stop the episode; or there is no alternative."""
    return desk.row < 0 or (desk.value > 0.0 and desk.need < math.inf)


class Evidence(CertifiedAlgorithm):
    """Pull what raises the evidence for the plug-in answer most, and stop when it is certified at delta.

    Args:
        force: the forced exploration is so many times sqrt(t) - K/2, >= 0. hold: an arm is pulled so many times
            sqrt(N) / 2 times in a row, >= 0. What 0 saves: see docs/learned-results.md. race: the share of pulls that
            race, in [0, 1], see R6. All others: see `CertifiedAlgorithm`.
    """

    name, source = "evidence", "this package, after Garivier & Kaufmann, COLT 2016"
    _follows, _weighed = True, BOUNDARY
    force, hold = setting(float), setting(float)
    contrasts, bets = setting(bool), setting(bool)  # by which pairs are certified, another statistic than R3 has

    def observe(ep, own):
        """The closest alternative, R3."""
        if not own.contrasts:
            find(ep)

    def stops(ep, own):
        """R1: the statistic of the closest alternative is positive, and the certificate says so."""
        return (own.contrasts or own.bets or excluded(ep.desk)) and is_certified(ep)

    def sample(ep, own):
        """Of the closest alternative, pull the arm that raises the evidence most, R3; or the certificate's arm, R4."""
        arm = lacking(ep, own.force)  # R2
        if arm < 0 and races(ep, own.race):  # R6
            return
        if arm < 0:
            if own.contrasts:
                find(ep)
            if excluded(ep.desk):
                arm = ep.now.arm  # R4
                ep.now.look = 0 if own.contrasts else ep.now.look
            else:
                arm = steeper(found(ep), ep.pulls, own.price)  # R3
        pull(ep, arm, held(ep, arm, own.hold))  # R5

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        *,
        force: float = 1.0,
        hold: float = 1.0,
        race: float = 0.75,
        **options: Any,
    ) -> None:
        super().__init__(task, delta, **options)
        thrift = math.sqrt(self.price.min() / self.price.max())
        self.force, self.hold = thrift * number("force", force, 0), number("hold", hold, 0)
        self.race = thrift * self._racing(race)
        self.contrasts = not self.task.items and self._by_contrasts
        self.bets = self.distribution == "bounded" and not self.problem.local
