"""Evidence: pull what raises the evidence against the cheapest way to be wrong most; stop when all ways are excluded.

Ours, of what Garivier & Kaufmann, COLT 2016, and Russo, COLT 2016, teach: the pulls climb the function whose size stops
them.

symbols     t pulls so far, N_i those of arm i; a way: one or two arms, and the means that they are moved to; its value:
            the cost of this move less what it must exceed
rule        R1 stop when the value of the cheapest way is positive, and the certificate says so, which is asked after
               each 1/200 of the pulls
            R2 pull an arm with N_i < sqrt(t) - K/2, the fewest, where there is one
            R3 of the cheapest way, pull the arm with the largest divergence from its mean to the one that it is moved
               to: the derivative of the evidence by N_i; of equals the one with fewer pulls, then the lower one
            R4 where the value is positive and the certificate does not say so: of the way that it names, the arm with
               fewer pulls
            R5 pull it max(1, sqrt(N_i) / 2) times, rounded down, before looking again; of pairs of more than 127 arms,
               at least min(N_i, (K / 128)^2) times
habits      R2, R3 and R5 may be changed by learned numbers (see `leaning`): here none changes anything. R1 is never
            changed, so that the answer is right with probability 1 - delta whatever the habits are

The value is that of the certificate. With a budget it does not stop, and delta is 0.01 where nobody names one.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from bandit_envs import inlined

from ..core.plan_policy import add
from .leaning import FORCE, HOLD, PLAIN, Habits, lean
from .policy import BOUNDARY, CertifiedMemory, CertifiedPolicy, held, lacking, sampling_rule
from .policy import stops as is_due
from .ways import Way, cheapest, moved

__all__ = ["Evidence"]

CLOSE = 1.0 + 1e-9  # divergences within this ratio are equal


@inlined
def steeper(way, pulls):
    """R3."""
    if way.down > CLOSE * way.up or way.lowered == way.raised:
        return way.lowered
    if way.up > CLOSE * way.down:
        return way.raised
    first, second = pulls[way.lowered], pulls[way.raised]
    if first == second:
        return min(way.lowered, way.raised)
    return way.lowered if first < second else way.raised


@inlined
def stops(ep):
    """R1: the value of the cheapest way is positive, and the certificate says so."""
    ep.round.way = cheapest(ep.batch.sides, ep.book)
    return excluded(ep) and is_due(ep)


@inlined
def excluded(ep):
    """Whether the value of the cheapest way is positive, where that can stop the episode; or there is no way."""
    i = ep.round.way
    return i < 0 or (ep.book.value[i] > 0.0 and ep.batch.certificate.need < math.inf)


@sampling_rule(Habits, stops=stops)
def evidence(ep, habits):
    """Of the cheapest way, pull the arm that raises the evidence most, R3; or that which the certificate names, R4."""
    row = np.int64(ep.e) // habits.per_row
    few = lacking(ep, habits.own[row, FORCE])
    if few >= 0:
        arm = few  # R2
    elif excluded(ep):
        arm = ep.round.arm  # R4
    else:
        way = moved(ep.batch.sides, ep.book, ep.round.way)
        down = way.down * math.exp(lean(way, ep.round.way, ep.pulls, ep.round.t, ep.batch.sides, ep.book, habits, row))
        arm = steeper(Way(way.lowered, way.raised, down, way.up), ep.pulls)  # R3
    add(ep.plan, arm, held(ep, arm, habits.own[row, HOLD]))  # R5


@functools.lru_cache(maxsize=64)
def _plain(E: int) -> Habits:
    """The habits of E episodes of which nothing is learned."""
    return Habits.of(PLAIN, E)


class Evidence(CertifiedPolicy):
    """Pull what raises the evidence for the plug-in answer most, and stop when it is certified at delta.

    Args:
        task: a task or an environment. delta: None takes the task's.
        boundary: "mixture" or "kaufmann-koolen", see docs/certificates.md; "nominal": ln((1 + ln t) / delta), of the
            papers' experiments, for which nothing is proven.
        law: "bernoulli" (also any samples in [0, 1]), "gaussian" (also sub-Gaussian ones), or "student", Gaussian of
            unknown variance; None: "bernoulli" where all samples lie in [0, 1], else "gaussian".
        rho: pulls of an arm at which the Gaussian mixture is sharpest; None: a mixture over several.
        sigma: scale; None takes the task's.
    """

    name, source = "evidence", "this package, after Garivier & Kaufmann, COLT 2016"
    sampling, _follows, _weighed = evidence, True, BOUNDARY

    def habits(self, E: int) -> Habits:
        """The habits of E episodes."""
        return _plain(E)

    def own(self, state: CertifiedMemory) -> Habits:
        return self.habits(len(state.plans))
