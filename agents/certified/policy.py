"""What the agents that stop with a certificate have in common: options, the books of alternatives, looks at it."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandit_envs import AllGood, Problem, Simulation, TopK
from bandit_envs.kernels import Kernel, choice, fleeting, number, part, view
from bandit_envs.simulation import Quiet
from bandit_envs.stopping import BOUNDED, STUDENT, Certifier, adapted, arm_penalty

from ..core import stopping
from ..core.agent import FLOAT, INT, Bools, Floats, Ints, Observation, Problems, unfit
from ..core.confidence import certified_scale_of, delta_of
from ..core.plan_policy import NO_PULL, PlanPolicy, assembled, check, clear, following
from ..core.spellings import AgentState
from ..core.stopping import Certificate, for_many, is_certified, moments_of, next_look, spread_of
from .alternatives import (
    ALL_GOOD,
    LOCAL,
    TOP_K,
    Alone,
    Book,
    Sides,
    book_of,
    cheapest,
    fill,
    moved,
    put,
    tell,
    tell_alone,
)
from .paired_elimination import PairedElimination

__all__ = [
    "CERTIFIED_PROBLEMS",
    "Batch",
    "CertifiedState",
    "CertifiedPolicy",
    "Episode",
    "Shown",
    "closest",
    "held",
    "lacking",
    "observe",
    "sampling_rule",
    "scale_of",
    "stops",
]

BOUNDARIES = ("mixture", "kaufmann-koolen", "nominal")
PRICE = 4.0  # about what two mixtures over bets cost, in nats
HELD = 0.5  # an arm of N pulls is pulled HELD sqrt(N) times in a row
ROUTINES = ("certifier", "_decider", "_pairs", "_alone")  # attributes that copies look up anew
BOUNDARY, PULLS, BONUS, KEPT, MEANS = range(5)  # see `observe`


def _tells(kind: type[Problem]) -> bool:
    """Whether the alternatives are those of single arms, or the pairs of TopK or AllGood."""
    if kind.local:
        own = kind.evidence_routine is not Problem.evidence_routine
        return own or kind.distance_routine is not Problem.distance_routine
    return kind.evidence_routine in (TopK.evidence_routine, AllGood.evidence_routine)


CERTIFIED_PROBLEMS = Problems(
    _tells,
    "a local problem with an evidence_routine or a distance_routine, or a problem with the alternatives of TopK or "
    "of AllGood",
)


@fleeting
class Shown(NamedTuple):
    """What the episodes have shown."""

    pulls: Ints  # (E, K)
    mean: Floats  # (E, K * D)
    variance: Floats  # (E, K * D)
    moments: Floats  # (E, 2 * K * D) or (E, 0)
    public_seed: Ints  # (E, 1)


class Batch(NamedTuple):
    """E episodes, but for what they have shown: what an answer must hold, and what is known and planned."""

    D: int
    sides: Sides
    weighed: int  # what an arm counts, see `observe`
    book: Book
    alone: Alone
    certificate: Certificate
    plans: Any  # (E,) of PLAN
    rounds: Any  # (E,) of ROUND


class Episode(NamedTuple):
    """One of them. Its number is unsigned."""

    e: int
    shown: Shown
    D: int
    sides: Sides
    weighed: int
    alone: Alone
    certificate: Certificate
    pulls: Ints  # (K,)
    mean: Floats  # (K * D,)
    book: Any  # its rows of the `Book`
    plan: Any
    round: Any


@view
def episode_of(shown, batch, e):
    """Episode e of a batch."""
    pulls, mean, book = shown.pulls[e], shown.mean[e], book_of(batch.book, e)
    same = batch.D, batch.sides, batch.weighed, batch.alone, batch.certificate
    return Episode(e, shown, *same, pulls, mean, book, batch.plans[e], batch.rounds[e])


@part
def stops(ep):
    """The stopping rule: whether the answer is certified, looked at after another 1/200 of the pulls."""
    if ep.round.t < ep.round.look:
        return False
    ep.round.look = next_look(ep.round.t, len(ep.pulls))
    return is_certified(ep.shown, ep.e, ep.round.t, ep.round, ep.certificate)


# How far an episode is. `t`: pulls. `fewest`: of an arm, when this was looked up last: it has no fewer now.
# `look`: pulls at which the certificate is looked at next. `first`, `second`: the alternative that it begins with.
# `arm`: of the alternative that the last look found, the one with fewer pulls. `draws`: random numbers used.
# `alternative`: the row of the closest alternative, where a rule has looked it up.
_INTEGERS, _NUMBERS = ("t", "look", "draws", "arm", "alternative"), ("fewest", "first", "second")
ROUND = np.dtype([(name, "i8") for name in _INTEGERS] + [(name, "f8") for name in _NUMBERS], align=True)


@part
def held(ep, arm, length=1.0):
    """How often an arm is pulled before all K are looked at again: a share of its N pulls that goes to 0 as N grows.

    A look at pairs takes O(K): of many arms, it is worth more pulls; with fewer than 128, nothing changes. `length`:
    how many times as often. By bets an arm needs few pulls, and is pulled half as often.
    """
    N, K, sides = ep.pulls[arm], len(ep.pulls), ep.sides
    more = min(N, for_many(K)) if sides.kind != LOCAL else 0
    length = 0.5 * length if sides.distribution == BOUNDED else length
    return max(np.int64(HELD * length * math.sqrt(N)), more, 1)


@part
def scale_of(ep, i):
    """The variance of a sample of arm i, as it is known or seen."""
    sides, shown = ep.sides, ep.shown
    if sides.distribution == BOUNDED:
        return adapted(sides.numbers, float(shown.pulls[ep.e, i]), shown.variance[ep.e, i])
    return shown.variance[ep.e, i] if sides.distribution == STUDENT else sides.variance


@part
def _measure(ep, i, first):
    """Take in what arm i has shown; `first`: the rows are not computed yet."""
    shown, e, sides, book, weighed = ep.shown, ep.e, ep.sides, ep.book, ep.weighed
    N = float(shown.pulls[e, i])
    bonus = math.log(N) if weighed == BONUS and N > 0.0 else 0.0
    if sides.kind == LOCAL:
        alone, need, low, high = ep.alone, sides.need_in - bonus, i * ep.D, (i + 1) * ep.D
        spread = spread_of(alone.numbers, shown, e, low, high, alone.scratch)
        tell_alone(book, i, shown.pulls[e, i : i + 1], shown.mean[e, low:high], spread, alone, need)
        return
    m = shown.mean[e, i]
    if weighed == MEANS:
        book.mean[i] = m
        return
    v = scale_of(ep, i)
    weight, penalty = N if first or weighed != KEPT else max(book.weight[i], 1e-3), -bonus
    if weighed == BOUNDARY and N > 0.0:
        penalty = arm_penalty(ep.alone.numbers, N, m, v)
    if first:
        put(sides, book, i, m, weight, penalty, v)
    else:
        tell(sides, book, i, m, weight, penalty, v)


@part
def observe(ep):
    """Take in what the planned pulls have shown, and clear the plan. Returns whether this was the first time.

    `weighed` of the batch says what an arm counts. BOUNDARY: by the boundary, with its penalty; PULLS: its pulls;
    BONUS: the same, with ln N on top of the statistic of its alternatives; KEPT: its pulls at first, later what the
        book says;
    MEANS: only its mean is taken in, as the rows are not needed.
    """
    plan, round, pulls, sides = ep.plan, ep.round, ep.pulls, ep.sides
    begins = plan.beginning != 0
    if begins:
        round.t = round.look = round.draws = round.arm = plan.resumed = 0  # the order within a plan does not matter
        round.fewest = round.first = round.second = 0.0
    for place in range(len(pulls) if begins else plan.size):
        i = place if begins else plan.arms[np.uint64(place)]
        round.t += pulls[i] if begins else plan.times[np.uint64(place)]
        _measure(ep, i, begins)
    if begins and sides.kind != LOCAL and ep.weighed != MEANS:
        fill(sides, ep.book)
    clear(plan)
    return begins


@view
def closest(ep):
    """The closest alternative to the plug-in answer, an `Alternative`."""
    return moved(ep.sides, ep.book, max(cheapest(ep.sides, ep.book), 0))


@part
def lacking(ep, force=1.0):
    """The arm with the fewest pulls, where they are fewer than sqrt(t) - K / 2, or than this times `force`; else -1.

    [Garivier & Kaufmann 2016]
    """
    return stopping.lacking(ep.pulls, ep.round, ep.round.t, force, 0.0)


_NEXT_ARM = """def next_arm(e, shown: Shown, batch: Batch, own: Own):
    ep = episode_of(shown, batch, e)
    arm = following(shown, e, ep.plan)
    if arm < 0:
        if observe(ep):
            begin(ep, own)
        if not stops(ep):
            plan(ep, own)
            if ep.plan.size == 0:
                ep.plan.overfull = NO_PULL
            check(ep.plan, len(ep.pulls))
        arm = following(shown, e, ep.plan)
    return arm if arm >= 0 else len(ep.pulls)
"""


@part
def nothing(ep, own):
    """What most rules do where an episode begins."""


def sampling_rule(own: Any, begin: Any = nothing, stops: Any = stops) -> Callable[[Callable[..., None]], Any]:
    """From a sampling rule, which plans the next pulls of one episode, the kernel of a batch.

    The kernel is `f(shown, batch, own, out)`. Every arm is pulled once. Then the kernel observes what the planned pulls
    have shown, stops or plans anew, and pulls.

    Args:
        own: the struct of the rule's own settings and state: `plan(ep, own)`, for an `Episode`.
        begin: `begin(ep, own)`, called where an episode begins, or is resumed. stops: `stops(ep)`, the stopping rule.
            Both may be plain functions.

    Raises:
        TypeError: for another `own`.
    """
    if not hasattr(own, "_fields"):
        raise TypeError(f"sampling_rule takes the class of a struct, as in @sampling_rule(Own), got {own!r:.200}")

    begin, stops = (view(one) if isinstance(one, FunctionType) else one for one in (begin, stops))

    def make(plan: Callable[..., None]) -> Any:
        return assembled(
            _NEXT_ARM,
            plan,
            Own=own,
            Shown=Shown,
            Batch=Batch,
            episode_of=episode_of,
            following=following,
            NO_PULL=NO_PULL,
            check=check,
            observe=observe,
            begin=begin,
            stops=stops,
            plan=view(plan),
        )

    return make


@dataclass
class CertifiedState(AgentState):
    """State of E episodes."""

    plans: Any  # (E,)
    rounds: Any  # (E,) of ROUND
    book: Book
    work: Any  # scratch, inside and out of an `Alone`; those of a `Certificate`

    _batch: ClassVar[Any] = None  # the agent and its `Batch` of all this, with addresses of this process

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles keep."""
        return {name: value for name, value in vars(self).items() if name != "_batch"}


class CertifiedPolicy(PlanPolicy):
    """An agent that stops when its plug-in answer is certified at delta, whatever has chosen the pulls.

    Args:
        boundary: "mixture" or "kaufmann-koolen", see docs/certificates.md; "nominal": ln((1 + ln t) / delta), of the
            papers' experiments, for which nothing is proven.
        distribution: "bernoulli", "gaussian" (also sub-Gaussian), "bounded" (in a range), or "student" (Gaussian of
            unknown variance); None: see `Task.certified_distribution`.
        rho: pulls of an arm at which the Gaussian mixture is sharpest; None: a mixture over several. It is of
            boundary="mixture", and not of distribution="student".
        sigma: scale, without effect by distribution="bernoulli"; None takes the task's. The certificate counts on a
            smaller one as long as the results bear it out.
        centre: of distribution="student", about where means lie; None: the threshold, where there is one, else 0. A
            place that is far off costs pulls, and never the guarantee.

    Raises:
        ValueError: for a sigma below 0.5 of samples that are 0 or 1, and for values that are not allowed.
    """

    stops = True
    solves: ClassVar[Collection[str]] = CERTIFIED_PROBLEMS
    promises = ("aggregate", "each", "exact")
    needs = "delta or budget"
    sampling: Any  # the kernel, made by `sampling_rule`
    _weighed: int = PULLS  # see `observe`
    _knows_tables: ClassVar[bool] = True
    _follows: ClassVar[bool] = False  # whether it pulls an arm of the nearest alternative that a look found
    _sampling_boundary: ClassVar[str | None] = (
        None  # of the numbers by which arms are chosen; None: that of the certificate
    )

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        boundary: str = "mixture",
        distribution: str | None = None,
        rho: float | None = None,
        sigma: float | None = None,
        centre: float | None = None,
    ) -> None:
        super().__init__(task)
        if not isinstance(getattr(type(self), "sampling", None), (Kernel, property)):
            raise TypeError(f"the class {type(self).__name__} needs the attribute sampling, made by sampling_rule")
        self.delta = delta_of(self.name, self.task, delta, with_budget=0.01)
        self.stops = self.task.budget is None
        if self.task.items:
            self._begin_on_a_table(boundary, distribution)
            return
        scale = certified_scale_of(self.task, sigma)
        if distribution is None and sigma is not None:  # its own: not what the range alone would give
            by_range = self.task.certified_distribution()
            distribution = "gaussian" if scale < 0.5 or by_range == "bounded" else None
        self._nominal = choice("boundary", boundary, BOUNDARIES) == "nominal"  # whose papers know no bets
        self.distribution = self.task.certified_distribution(distribution, self._nominal)
        boundary = "none" if self._nominal else boundary
        self._options: dict[str, Any] = {
            "distribution": self.distribution,
            "sigma": scale,
            "boundary": boundary,
            "rho": rho,
            "centre": self.task.centre if centre is None else number("centre", centre),
            "dependent": bool(self.task.dependent),
        }
        self.sides = self._sides_of(self.certifier, self._pairs)

    def _begin_on_a_table(self, boundary: str, distribution: str | None) -> None:
        """Of the columns of a table, all these agents are `PairedElimination`: no other order of pulls takes fewer."""
        if not self._knows_tables:
            raise ValueError(
                f"{self.name} counts on independent samples; for the columns of a table use paired-elimination"
            )
        if boundary != "mixture":
            raise ValueError(f"{self.name}: columns of a table are certified by boundary='mixture', got {boundary!r}")
        self.distribution, self._nominal = self.task.certified_distribution(distribution), False
        self._elimination = PairedElimination(self.task, self.delta)

    def _made(self, observation: Observation) -> Any:
        if not self.task.items:
            return super()._made(observation)
        state: Any = self._elimination.initial_state(observation)
        state._made_by = self._mark
        return state

    def choose(self, observation: Observation, state: Any) -> Ints:
        chooses: Any = self._elimination.choose if self.task.items else super().choose
        return chooses(observation, state)  # type: ignore[no-any-return]

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> Ints:
        plays: Any = self._elimination.played if self.task.items else super().played
        return plays(simulation, quiet, observation, state)  # type: ignore[no-any-return]

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        recommends: Any = self._elimination.recommend if self.task.items else super().recommend
        return recommends(observation, state, slots)  # type: ignore[no-any-return]

    def idle(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.task.items:
            return dict.fromkeys(("rho", "sigma", "centre"), "as columns of a table are certified without it")
        if self.distribution == "bernoulli":
            found["sigma"] = "as distribution='bernoulli' has no scale: say distribution='gaussian', or leave sigma out"
        if self.distribution == "bounded":
            found["sigma"] = "as distribution='bounded' has no scale: say distribution='gaussian', or leave sigma out"
        if self._nominal or self.distribution != "student":
            found["centre"] = "which is of distribution='student' alone"
        if self._nominal or self.distribution in ("student", "bounded"):
            found["rho"] = "which is of boundary='mixture' and the distributions 'gaussian' and 'bernoulli' alone"
        if not self.stops:
            why = "as with a budget nothing is certified, and the pulls do not depend on it"
            if self._sampling_boundary is not None:
                return found | dict.fromkeys(("delta", "boundary", "rho", "centre"), why)
            if self.sides.kind != ALL_GOOD or self._options["boundary"] == "mixture":
                return found | {"delta": why}
        return found

    @functools.cached_property
    def certifier(self) -> Certifier:
        """What says whether an answer is certified."""
        if self.task.items:
            return self._elimination.certifier
        made = self.problem.certifier(self.task.K, self.task.D, **self._options)
        return made.doubting(self._options["sigma"], self.task.known_sigma)

    @functools.cached_property
    def _decider(self) -> Certifier:
        """The same where it is quicker only to decide; a nominal rule asks for more as time goes."""
        exactly = self._nominal or (self._follows and self.distribution != "bounded")
        return self.certifier if exactly else self.certifier.decider(self.delta)

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
        if self.distribution == "bounded":  # pairs are weighed by variances, single arms by what they certify
            boundary = None if self.problem.local else "none"
        return {"boundary": boundary} if boundary is not None else {}

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles keep: routines are looked up anew."""
        return {name: value for name, value in vars(self).items() if name not in ROUTINES}

    def _sides_of(self, certifier: Certifier, pairs: Certifier) -> Sides:
        """The kind of the alternatives, from the numbers of the certifiers."""
        own, none, numbers = pairs.numbers.tolist(), -math.inf, pairs.numbers
        distribution, v = int(own[0]), float(own[1])
        into = out = 0.0
        certified = not self._nominal and self._sampling_boundary is None
        if self.problem.local:  # the certifier of one arm tells levels
            into = math.log(self.task.K / self.delta) if certified else 0.0
            return Sides(LOCAL, distribution, 0, 1.0, 0.0, none, 1.0, 0.0, none, 1.0, 0.0, v, into, into, numbers)
        if certified:
            price = PRICE if self.distribution == "bounded" else 0.0
            needed = [x + price for x in certifier.needed(self.delta)]
            into, out = needed[0], min(needed[1:], default=needed[0])
        if self.problem.answer_size is not None:
            k, epsilon = int(own[-2]), own[-1]
            return Sides(TOP_K, distribution, k, 1.0, -epsilon, none, 1.0, 0.0, none, 1.0, 0.0, v, into, out, numbers)
        a, b, floor, c, d, bottom, keep, shift = own[-8:]
        return Sides(ALL_GOOD, distribution, 0, a, b, floor, c, d, bottom, keep, shift, v, into, out, numbers)

    def _common(self, observation: Observation) -> dict[str, Any]:
        """The fields of a `CertifiedState` before the first choice."""
        E, K = len(observation["pulls"]), self.task.K
        scratch = [np.zeros(certifier.scratch) for certifier in (self._alone, self.certifier)]
        inside, out = np.full(1 + K, -1, np.int8), np.zeros(7 + 3 * K)
        return {
            "plans": self.new_plans(observation),
            "rounds": np.zeros(E, ROUND),
            "book": Book.empty(E, K),
            "work": ((scratch[0], inside[:1], out[:5]), scratch[1], inside[1:], out[5:]),
        }

    def _batch(self, state: Any) -> Batch:
        """What kernels read of a state, beside what the episodes have shown."""
        by, made = state._batch or (None, state)
        if by is not self or made.plans is not state.plans or made.rounds is not state.rounds:
            alone, whole, (own, scratch, inside, out) = self._alone, self._decider, state.work
            need = math.log(1.0 / self.delta) if self.stops else math.inf
            quick = whole is not self.certifier
            certificate = Certificate(
                whole.address, whole.numbers, scratch[None], inside, out, need, self._nominal, quick
            )
            own = Alone(alone.address, alone.numbers, *own)
            made = Batch(
                self.task.D, self.sides, self._weighed, state.book, own, certificate, state.plans, state.rounds
            )
            state._batch = self, made
        return made  # type: ignore[no-any-return]

    def initial_state(self, observation: Observation) -> Any:
        return CertifiedState(**self._common(observation))

    @abstractmethod
    def own(self, state: Any) -> Any:
        """The struct of the sampling rule's settings and state."""

    def rule(self, seen: Any, observation: Observation, state: Any, out: Ints) -> Any:
        """As for a `PlanPolicy`, seen: a `Shown`."""
        return self.sampling, (seen, self._batch(state), self.own(state), out)

    def _seen(self, observation: Observation, state: Any) -> Shown:
        """What the episodes have shown, checked."""
        E, K, D = len(state.plans), self.task.K, self.task.D
        pulls = np.ascontiguousarray(observation["pulls"], INT)
        mean = np.ascontiguousarray(observation["mean"], FLOAT)
        variance = np.ascontiguousarray(observation["variance"], FLOAT)
        moments, seed = moments_of(observation), np.ascontiguousarray(observation["public_seed"], INT)
        if len(pulls) != E:
            raise unfit(pulls, mean, E)
        if D > 1:
            mean, variance = mean.reshape(E, K * D), variance.reshape(E, K * D)
        return Shown(pulls, mean, variance, moments, seed)
