"""What the agents that stop with a certificate have in common: its options, the books of the ways, the looks at it."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandit_envs import (
    AllGood,
    Certifier,
    Problem,
    Quiet,
    Simulation,
    Task,
    TopK,
    choice,
    inlined,
    nearest_way,
    part,
    player,
)

from ..core.agent import FLOAT, INT, Fields, Floats, Ints, Observation, Problems, unfit
from ..core.confidence import delta_of, scale_of
from ..core.plan_policy import PlanPolicy
from .ways import ALL_GOOD, LOCAL, TOP_K, Book, Sides

__all__ = [
    "CERTIFIED_PROBLEMS",
    "Certificate",
    "CertifiedMemory",
    "CertifiedPolicy",
    "Shown",
    "is_certified",
    "lacking",
]

BOUNDARIES, LAWS = ("mixture", "kaufmann-koolen", "nominal"), ("bernoulli", "gaussian", "student")
LOOKS = 200  # kernel constants: between two looks at the certificate, the pulls grow by 1 / LOOKS at most


def _tells(kind: type[Problem]) -> bool:
    """Whether the ways to be wrong are those of single arms, or the pairs of TopK or AllGood."""
    if kind.local:
        own = kind.evidence_routine is not Problem.evidence_routine
        return own or kind.distance_routine is not Problem.distance_routine
    return kind.evidence_routine in (TopK.evidence_routine, AllGood.evidence_routine)


CERTIFIED_PROBLEMS = Problems(
    _tells,
    "a local problem with an evidence_routine or a distance_routine, or a problem with the ways to be wrong of TopK or "
    "of AllGood",
)


class Shown(NamedTuple):
    """What the episodes have shown."""

    pulls: Ints  # (E, K)
    mean: Floats  # (E, K * D)
    variance: Floats  # (E, K * D)


class Certificate(NamedTuple):
    """The certifier of the problem, and room for it."""

    address: int
    numbers: Floats
    room: Floats
    inside: Any  # (K,) int8
    out: Floats  # (2 + 3 K,)
    need: float  # ln(1 / delta); inf: it does not stop
    nominal: bool  # stop where the evidence exceeds ln((1 + ln t) / delta)


@inlined
def is_certified(shown: Any, e: Any, t: Any, certificate: Any) -> Any:
    """Whether the plug-in answer of episode e, after t pulls, is right with probability 1 - delta."""
    certificate.inside[0] = -1
    nearest_way(
        certificate.address,
        shown.pulls[e],
        shown.mean[e],
        shown.variance[e],
        certificate.inside,
        certificate.numbers,
        certificate.room,
        certificate.out,
    )
    return certificate.out[0] >= certificate.need + (math.log1p(math.log(t)) if certificate.nominal else 0.0)


@inlined
def is_due(shown: Any, e: Any, round: Any, certificate: Any) -> Any:
    """Whether the answer is certified, looked at now and then: after another 1/200 of the pulls."""
    if round.t < round.look:
        return False
    round.look = round.t + max(1, round.t // LOOKS)
    found = is_certified(shown, e, round.t, certificate)
    second = 2 + (certificate.out[1] > 1.0)
    round.arm, round.other = np.int64(certificate.out[2]), np.int64(certificate.out[second])
    return found


# How far an episode is. `t`: pulls. `fewest`: of an arm, when this was looked up last: it has no fewer now.
# `look`: pulls at which the certificate is looked at next. `arm`, `other`: of the way to be wrong that a look found.
# `draws`: random numbers that were used.
ROUND = np.dtype(
    [(name, np.int64) for name in ("t", "look", "draws", "arm", "other")] + [("fewest", np.float64)], align=True
)


@part
def lacking(pulls: Any, round: Any) -> Any:
    """The arm with the fewest pulls, where they are fewer than sqrt(t) - K / 2; else -1. [Garivier & Kaufmann 2016]"""
    K = len(pulls)
    wanted = math.sqrt(float(round.t)) - 0.5 * K
    if round.fewest >= wanted:
        return -1
    least = 0
    for i in range(K):
        least = i if pulls[i] < pulls[least] else least
    round.fewest = float(pulls[least])
    return least if round.fewest < wanted else -1


@dataclass
class CertifiedMemory:
    """Memory of E episodes."""

    plans: Any  # (E,)
    rounds: Any  # (E,) of ROUND
    book: Book
    alone: Fields  # room, inside and out of an `Alone`
    certificate: Fields  # and of a `Certificate`


def _law_of(task: Task, problem: Problem, law: str | None) -> str:
    """The law that certificates take the arms to have: the one given; else what the task tells of them."""
    if law is not None:
        return choice("law", law, LAWS)
    low, high = task.support or (-math.inf, math.inf)
    bounded = low >= 0.0 and high <= 1.0
    own = type(problem).evidence_routine is not Problem.evidence_routine
    return "bernoulli" if bounded and task.D == 1 and problem.polyhedron is None and own else "gaussian"


class CertifiedPolicy(PlanPolicy):
    """An agent that stops when its plug-in answer is certified at delta, whatever has chosen the pulls.

    Args:
        task: a task or an environment. delta: None takes the task's.
        boundary: "mixture" or "kaufmann-koolen", see docs/certificates.md; "nominal": ln((1 + ln t) / delta), of the
            papers' experiments, for which nothing is proven.
        law: "bernoulli" (also any samples in [0, 1]), "gaussian" (also sub-Gaussian ones), or "student", Gaussian of
            unknown variance; None: "bernoulli" where all samples lie in [0, 1], else "gaussian".
        rho: pulls of an arm at which the Gaussian mixture is sharpest; None: a mixture over several.
        sigma: scale; None takes the task's.
    """

    stops = True
    solves: ClassVar[Collection[str]] = CERTIFIED_PROBLEMS
    promises = ("aggregate", "each", "exact")
    needs = "delta or budget"
    _sampling_boundary: ClassVar[str | None] = (
        None  # of the numbers by which arms are chosen; None: that of the certificate
    )

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        boundary: str = "mixture",
        law: str | None = None,
        rho: float | None = None,
        sigma: float | None = None,
    ) -> None:
        super().__init__(task)
        self.delta = delta_of(self.name, self.task, delta, with_budget=0.01)
        self.stops = self.task.budget is None
        self.law = _law_of(self.task, self.problem, law)
        low, high = self.task.support or (0.0, 0.0)
        centre = 0.5 * (low + high)
        self._nominal = choice("boundary", boundary, BOUNDARIES) == "nominal"
        boundary = "none" if self._nominal else boundary
        self._options: dict[str, Any] = {
            "law": self.law,
            "sigma": scale_of(self.task, sigma),
            "boundary": boundary,
            "rho": rho,
            "centre": centre,
        }
        self.sides = self._sides_of(self.certifier, self._pairs)

    @functools.cached_property
    def certifier(self) -> Certifier:
        """What says whether an answer is certified."""
        return self.problem.certifier(self.task.K, self.task.D, **self._options)

    @functools.cached_property
    def _pairs(self) -> Certifier:
        """Its numbers tell the weights and the penalties by which arms are chosen."""
        return self.problem.certifier(self.task.K, self.task.D, **self._options | self._chosen)

    @functools.cached_property
    def _alone(self) -> Certifier:
        """The same of a single arm, for LOCAL."""
        K = 1 if self.problem.local else self.task.K
        return self.problem.certifier(K, self.task.D, **self._options | self._chosen)

    @property
    def _chosen(self) -> dict[str, Any]:
        boundary = self._sampling_boundary
        return {"boundary": boundary} if boundary is not None else {}

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles keep: routines are looked up anew."""
        return {name: value for name, value in vars(self).items() if name not in ("certifier", "_pairs", "_alone")}

    def _sides_of(self, certifier: Certifier, pairs: Certifier) -> Sides:
        """What the ways to be wrong are, from the numbers of the certifiers."""
        own, none, numbers = pairs.numbers.tolist(), -math.inf, pairs.numbers
        law, variance, into, out = int(own[0]), float(own[1]), 0.0, 0.0
        if not self._nominal and self._sampling_boundary is None:
            needed = certifier.needed(self.delta)
            into, out = needed[0], min(needed[1:], default=needed[0])
        if self.problem.local:
            return Sides(LOCAL, law, 0, 1.0, 0.0, none, 1.0, 0.0, none, 1.0, 0.0, variance, into, out, numbers)
        if self.problem.answer_size is not None:
            k, epsilon = int(own[-2]), own[-1]
            return Sides(TOP_K, law, k, 1.0, -epsilon, none, 1.0, 0.0, none, 1.0, 0.0, variance, into, out, numbers)
        a, b, floor, c, d, bottom, keep, shift = own[-8:]
        return Sides(ALL_GOOD, law, 0, a, b, floor, c, d, bottom, keep, shift, variance, into, out, numbers)

    def _common(self, observation: Observation) -> dict[str, Any]:
        """The fields of a `CertifiedMemory` before the first choice."""
        E, K = len(observation["pulls"]), self.task.K
        rooms = [np.zeros(certifier.room) for certifier in (self._alone, self.certifier)]
        inside, out = np.full(1 + K, -1, np.int8), np.zeros(7 + 3 * K)
        return {
            "plans": self.new_plans(observation),
            "rounds": np.zeros(E, ROUND),
            "book": Book.empty(E, K),
            "alone": (rooms[0], inside[:1], out[:5]),
            "certificate": (rooms[1], inside[1:], out[5:]),
        }

    def _certificates(self, state: Any) -> Fields:
        """The fields of an `Alone` and of a `Certificate`."""
        need = math.log(1.0 / self.delta) if self.stops else math.inf
        alone, whole = self._alone, self.certifier
        return (
            alone.address,
            alone.numbers,
            *state.alone,
            whole.address,
            whole.numbers,
            *state.certificate,
            need,
            self._nominal,
        )

    def remember(self, observation: Observation) -> Any:
        return CertifiedMemory(**self._common(observation))

    @abstractmethod
    def rule(
        self, seen: Fields, observation: Observation, state: Any, out: Ints
    ) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """As for a `PlanPolicy`, with the fields of a `Shown`."""

    def _shown(self, observation: Observation, state: Any) -> Fields:
        """The fields of a `Shown`, checked."""
        E, K, D = len(state.plans), self.task.K, self.task.D
        pulls = np.ascontiguousarray(observation["pulls"], INT)
        mean = np.ascontiguousarray(observation["mean"], FLOAT)
        variance = np.ascontiguousarray(observation["variance"], FLOAT)
        if pulls.shape != (E, K) or mean.size != E * K * D or variance.size != mean.size:
            raise unfit(pulls, mean, E)
        return pulls, mean.reshape(E, K * D), variance.reshape(E, K * D)

    def choose(self, observation: Observation, state: Any) -> Ints:
        out = np.empty(len(observation["pulls"]), INT)
        kernel, arguments = self.rule(self._shown(observation, state), observation, state, out)
        kernel(*arguments)
        return out

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> Ints:
        out = np.empty(len(state.plans), INT)
        kernel, arguments = self.rule(self._shown(observation, state), observation, state, out)
        player(kernel)(*arguments, *simulation, *quiet)
        return out
