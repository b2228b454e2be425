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
from typing import Any

import numpy as np

from bandit_envs import episode_kernel, inlined, part

from ..core.agent import Fields, Ints, Observation
from ..core.plan_policy import add, following
from .leaning import FORCE, HOLD, PLAIN, Habits, lean
from .policy import BOUNDARY, Certificate, CertifiedMemory, CertifiedPolicy, Shown, held, is_due, lacking, take_in
from .ways import Alone, Book, Sides, Way, book_of, cheapest, moved

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


@part
def plan_pull(e, shown, D, sides, habits, book, alone, certificate, plan, round):
    """Plan the next pulls; nothing if the answer is certified."""
    pulls, row = shown.pulls[e], np.int64(e) // habits.per_row
    take_in(shown, e, D, sides, book, alone, BOUNDARY, plan, round)
    i, few = cheapest(sides, book), lacking(pulls, round, habits.own[row, FORCE])
    if i < 0 or (book.value[i] > 0.0 and certificate.need < math.inf):
        if is_due(shown, e, round, certificate):  # R1
            return
        arm = round.arm  # R4
    else:
        way = moved(sides, book, i)
        down = way.down * math.exp(lean(way, i, pulls, round.t, sides, book, habits, row))
        arm = steeper(Way(way.lowered, way.raised, down, way.up), pulls)  # R3
    arm = few if few >= 0 else arm  # R2
    add(plan, arm, held(pulls[arm], len(pulls), sides, habits.own[row, HOLD]))  # R5


@episode_kernel
def next_arm(
    e: int,
    shown: Shown,
    D: int,
    sides: Sides,
    habits: Habits,
    book: Book,
    alone: Alone,
    certificate: Certificate,
    plans,
    rounds,
):
    """The next arm of episode e, K to stop."""
    plan = plans[e]
    arm = following(shown, e, plan)
    if arm < 0:
        plan_pull(e, shown, D, sides, habits, book_of(book, e), alone, certificate, plan, rounds[e])
        arm = following(shown, e, plan)
    return arm if arm >= 0 else shown.pulls.shape[1]


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
    _follows = True

    def habits(self, E: int) -> Habits:
        """The habits of E episodes."""
        return _plain(E)

    def rule(self, seen: Fields, observation: Observation, state: CertifiedMemory, out: Ints) -> Any:
        return next_arm, (
            *seen,
            self.task.D,
            *self.sides,
            *self.habits(len(out)),
            *state.book,
            *self._certificates(state),
            state.plans,
            state.rounds,
            out,
        )
