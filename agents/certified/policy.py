"""What agents that stop with a certificate have in common: options, looks at the certificate and at alternatives."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from bandit_envs import AllGood, BetterThanControl, Problem, Simulation, TopK
from bandit_envs.kernels import call_routine, choice, number, part, view
from bandit_envs.simulation import Quiet
from bandit_envs.stopping import BERNOULLI, BOUNDARY, BOUNDED, GAUSSIAN, MIXTURE, PAIRS_AT, Certifier

from ..core import stopping
from ..core.agent import Bools, Floats, Ints, Observation, Problems
from ..core.algorithm import Algorithm
from ..core.confidence import certified_scale_of, comparison_of, delta_of
from ..core.declared import per_episode, setting
from ..core.plans import pull
from ..core.stopping import Certificate, for_many, next_look
from .alternatives import ALL_GOOD, CONTROL, KEPT, LOCAL, MEANS, PULLS, TOP_K, TWINS, Alone, Alternative, Sides
from .desk import CLASSES, DESK, ROWS, Table, routine_of
from .paired_elimination import PairedElimination

BOUNDARIES = ("mixture", "product", "kaufmann-koolen", "nominal")
PRICE = 4.0  # about what two mixtures over bets cost, in nats
CONTRAST_PRICE = 1.5  # about what a contrast costs
MANY, FEW = 128, 8  # arms, from which on they have classes: of BestArm; of others FEW times as many
HELD = 0.5  # an arm of N pulls is pulled HELD sqrt(N) times in a row


def _tells(kind: type[Problem]) -> bool:
    """Whether the alternatives are those of single arms, or the pairs of TopK, AllGood or BetterThanControl."""
    if kind.local:
        own = kind.evidence_routine is not Problem.evidence_routine
        return own or kind.distance_routine is not Problem.distance_routine
    return kind.evidence_routine in [one.evidence_routine for one in (TopK, AllGood, BetterThanControl)]


CERTIFIED_PROBLEMS = Problems(
    _tells,
    "a local problem with an evidence_routine or a distance_routine, or a problem with the alternatives of TopK, "
    "of AllGood or of BetterThanControl",
)


@view
def ask(ep, address):
    """Call a routine of the desk."""
    call_routine(address, ep.desk, ep.desk.table, ep.pulls, ep.mean, ep.variance, ep.moments)


@part
def is_certified(ep):
    """Whether the answer is certified, looked at after another 1/200 of the pulls."""
    now, desk = ep.now, ep.desk
    if now.t < now.look or desk.need == math.inf:
        return False
    now.look = next_look(now.t, len(ep.pulls))
    desk.t, desk.first, desk.second, desk.arm = now.t, now.first, now.second, now.arm
    ask(ep, desk.certify)
    now.first, now.second, now.arm = desk.first, desk.second, desk.arm
    return desk.certified != 0


@part
def held(ep, arm, length=1.0):
    """How often an arm is pulled before all K are looked at again: a share of its N pulls that goes to 0 as N grows."""
    N, K, sides = ep.pulls[arm], len(ep.pulls), ep.desk
    more = min(N, for_many(K)) if sides.kind != LOCAL else 0
    length = 0.5 * length if sides.distribution == BOUNDED else length
    return max(np.int64(HELD * length * math.sqrt(N)), more, 1)


@part
def observe(ep):
    """Take in what the planned pulls have shown.

    `weighed` of the desk says what an arm counts. BOUNDARY: by the boundary, with its penalty; PULLS: its pulls;
    BONUS: the same, with ln N on top of the statistic of its alternatives; KEPT: its pulls at first, later what the
        book says;
    MEANS: nothing is taken in, as the rows are not needed.
    """
    now, desk, begins = ep.now, ep.desk, ep.now.beginning != 0
    desk.e, desk.moments = ep.e, len(ep.moments)
    now.resumed = 0 if begins else now.resumed  # the order within a plan does not matter
    for place in range(len(ep.pulls) if begins else now.size):
        desk.arm = place if begins else ep.arms[np.uint64(place)]
        now.t += ep.pulls[desk.arm] if begins else ep.times[np.uint64(place)]
        if not begins and desk.weighed != MEANS:
            ask(ep, desk.observe)
    if begins and desk.weighed != MEANS:
        desk.arm = -1
        ask(ep, desk.observe)


@view
def find(ep):
    """Put the closest alternative to the plug-in answer down on the desk."""
    ask(ep, ep.desk.find)


@view
def found(ep):
    """The `Alternative` that was put down last."""
    return Alternative(ep.desk.lowered, ep.desk.raised, ep.desk.down, ep.desk.up)


@view
def closest(ep):
    """The closest alternative to the plug-in answer, an `Alternative`."""
    find(ep)
    return found(ep)


@part
def lacking(ep, force=1.0):
    """The arm with the fewest pulls, where they are fewer than `force` (sqrt(t) - K / 2); else -1."""
    return stopping.lacking(ep.pulls, ep.now, ep.now.t, force, 0.0)


@part
def races(ep, share):
    """Pull the arm that is to race, where a share of the pulls wants it; else, or where none is open, False."""
    now, desk = ep.now, ep.desk
    if not float(now.raced) < share * float(now.t):
        return False
    desk.arm = now.t >= now.marked
    now.marked = next_look(now.t, len(ep.pulls)) if desk.arm else now.marked
    ask(ep, desk.race)
    if desk.arm < 0:
        return False
    times = held(ep, desk.arm)
    now.raced += times
    pull(ep, desk.arm, times)
    return True


class CertifiedAlgorithm(Algorithm):
    """An agent that stops when its plug-in answer is certified at delta, whatever has chosen the pulls.

    Args:
        boundary: "mixture", "product" or "kaufmann-koolen", see docs/certificates.md; "nominal": ln((1 + ln t) / delta)
            of the papers' experiments, for which nothing is proven.
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

    solves: ClassVar[Collection[str]] = CERTIFIED_PROBLEMS
    prices, promises = True, ("aggregate", "each", "exact")
    needs = "delta or budget"
    reads = ("variance", "moments", "seed")
    prepare, must_plan, flat = observe, True, True
    taken = frozenset({"delta", "boundary", "distribution", "rho", "sigma", "centre", "sides", "certifier"})
    # Pulls so far, and at the next look at the certificate; of the alternative that the last look found, the arm with
    # fewer pulls, and what the next begins with; the fewest pulls of an arm, when this was looked up last.
    t, look, arm = per_episode(int), per_episode(int), per_episode(int)
    first, second, fewest = per_episode(float), per_episode(float), per_episode(float)
    raced, marked = per_episode(int), per_episode(int)  # pulls of arms that raced; when pairs are looked at for it
    price = setting(Floats)  # of the arms, 1 where they have none
    race = setting(float)  # the share of pulls that race, see `races`
    _weighed: int = PULLS  # see `observe`
    _asks: tuple[str, ...] = ("observe", "find", "certify")  # the routines that its kernel calls
    _looked_up = ("certifier", "_decider", "_alone")
    _knows_tables: ClassVar[bool] = True
    _follows: ClassVar[bool] = False  # whether it pulls an arm of the nearest alternative that a look found
    _sampling_boundary: ClassVar[str | None] = (
        None  # of the numbers by which arms are chosen; None: that of the certificate
    )

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls._brought and "stops" in cls.rules:
            text = f"stops of {cls.__name__} would take the place of the certificate"
            raise TypeError(f"{text}: leave it out, or derive from Algorithm")

    def stops(ep, own):
        """The stopping rule."""
        return is_certified(ep)

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
        self.delta = delta_of(self.name, self.task, delta, with_budget=0.01)
        self.may_stop, self.race = self.task.budget is None, 0.0
        self.price = np.array(self.task.cost if isinstance(self.task.cost, tuple) else [1.0] * self.task.K)
        if self.task.items:
            self._begin_on_a_table(boundary, distribution)
            return
        scale = certified_scale_of(self.task, sigma)
        if distribution is None and sigma is not None:  # its own: not what the range alone would give
            by_range = self.task.certified_distribution()
            distribution = "gaussian" if scale < 0.5 or by_range == "bounded" else None
        self._nominal = choice("boundary", boundary, BOUNDARIES) == "nominal"  # whose papers know no bets
        self.distribution = self.task.certified_distribution(distribution, self._nominal)
        boundary = "none" if self._nominal else self.task.boundary_of(boundary)
        self._options: dict[str, Any] = {
            "distribution": self.distribution,
            "sigma": scale,
            "boundary": boundary,
            "rho": rho,
            "centre": self.task.centre if centre is None else number("centre", centre),
            "dependent": bool(self.task.dependent),
        }
        self.sides = self._sides_of(self.certifier, self._alone)

    def _racing(self, race: float) -> float:
        """`race`, checked; 0 where arms do not race."""
        share = number("race", race, 0, 1)
        return share if not self.task.items and self._by_contrasts else 0.0

    def _begin_on_a_table(self, boundary: str, distribution: str | None) -> None:
        """Of the columns of a table, all these agents are `PairedElimination`: no other order of pulls takes fewer."""
        if not self._knows_tables:
            text = f"{self.name} counts on independent samples;"
            raise ValueError(f"{text} for the columns of a table use paired-elimination")
        if boundary not in ("mixture", "product"):
            raise ValueError(f"{self.name}: columns of a table are certified by boundary='mixture', got {boundary!r}")
        self.distribution, self._nominal = self.task.certified_distribution(distribution), False
        self._elimination = PairedElimination(self.task, self.delta)

    @property
    def _player(self) -> Any:
        """What plays: `PairedElimination` on a table, else this algorithm."""
        return self._elimination if self.task.items else super()

    def choose(self, observation: Observation, state: Any) -> Any:
        return self._player.choose(observation, state)

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> Any:
        return self._player.played(simulation, quiet, observation, state)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        answer: Bools = self._player.recommend(observation, state, slots)
        return answer

    def idle(self) -> dict[str, str]:
        found = dict[str, str]()
        if self.task.items:
            return dict.fromkeys(("rho", "sigma", "centre"), "as columns of a table are certified without it")
        if (by := self.distribution) in ("bernoulli", "bounded"):
            found["sigma"] = f"as distribution={by!r} has no scale: say distribution='gaussian', or leave sigma out"
        if self._nominal or self.distribution != "student":
            found["centre"] = "which is of distribution='student' alone"
        if self._nominal or self.distribution in ("student", "bounded"):
            found["rho"] = "which is of boundary='mixture' and the distributions 'gaussian' and 'bernoulli' alone"
        if not self._by_contrasts:
            found["race"] = "which is of pairs of 'gaussian' or 'bernoulli' arms, a delta and boundary='mixture' alone"
        if not self.may_stop:
            why = "as with a budget nothing is certified, and the pulls do not depend on it"
            if self._sampling_boundary is not None:
                return found | dict.fromkeys(("delta", "boundary", "rho", "centre"), why)
            if self.sides.kind != ALL_GOOD or self._options["boundary"] in ("mixture", "product"):
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
    def _by_contrasts(self) -> bool:
        """Whether pairs of arms are certified by contrasts; with a budget nothing is certified."""
        of_pairs = self.certifier.kind in ("top-k", "all-good") and self.distribution in ("gaussian", "bernoulli")
        return self.may_stop and of_pairs and self.certifier.numbers[PAIRS_AT] != 0.0

    @functools.cached_property
    def _decider(self) -> Certifier:
        """The same where it is quicker only to decide; a nominal rule asks for more as time goes."""
        exactly = self._nominal or (self._follows and self.distribution != "bounded" and not self._by_contrasts)
        return self.certifier if exactly else self.certifier.decider(self.delta)

    @functools.cached_property
    def _alone(self) -> Certifier:
        """Its numbers tell the weights and penalties by which arms are chosen. LOCAL: it is that of a single arm."""
        K = 1 if self.problem.local else self.task.K
        boundary = self._sampling_boundary
        if self.distribution == "bounded":  # pairs are weighed by variances, single arms by what they certify
            boundary = None if self.problem.local else "none"
        elif self._by_contrasts:
            boundary = "none"
        options = self._options if boundary is None else self._options | {"boundary": boundary}
        return self.problem.certifier(K, self.task.D, **options)

    def _sides_of(self, certifier: Certifier, alone: Certifier) -> Sides:
        """The kind of the alternatives, from the numbers of the certifiers."""
        own, none = alone.numbers.tolist(), -math.inf
        distribution, v = int(own[0]), float(own[1])
        certified, limits = not self._nominal and self._sampling_boundary is None, (0.0, 0.0)
        if self.problem.local:  # the certifier of one arm tells levels
            into = math.log(self.task.K / self.delta) if certified else 0.0
            return Sides(LOCAL, distribution, 0, 1.0, 0.0, none, 1.0, 0.0, none, 1.0, 0.0, v, into, into, 0.0, 0.0)
        if certified or self._by_contrasts:
            price = PRICE if self.distribution == "bounded" else CONTRAST_PRICE if self._by_contrasts else 0.0
            needed = [x + price for x in certifier.needed(self.delta)]
            limits = needed[0], min(needed[1:], default=needed[0])
        rest = v, *(limits if certified else (0.0, 0.0)), *limits
        if self.problem.answer_size is not None:
            k, epsilon = int(own[-2]), own[-1]
            return Sides(TOP_K, distribution, k, 1.0, -epsilon, none, 1.0, 0.0, none, 1.0, 0.0, *rest)
        if type(self.problem).evidence_routine is BetterThanControl.evidence_routine:
            (c, a, b, _), near = comparison_of(self), self.problem.tolerance
            given = CONTROL, distribution, c, a, b - near, none, 1.0 / a, -(b + near) / a, none
            return Sides(*given, a, b, *rest)
        a, b, floor, c, d, bottom, keep, shift = own[-8:]
        return Sides(ALL_GOOD, distribution, 0, a, b, floor, c, d, bottom, keep, shift, *rest)

    def initial_state(self, observation: Observation) -> Any:
        state, K = self._player.initial_state(observation), self.task.K
        if self.task.items:
            return state
        E, inside, out = len(state.now), np.full(1 + K, -1, np.int8), np.zeros(7 + 3 * K)
        alone, whole = (np.zeros(certifier.scratch) for certifier in (self._alone, self.certifier))
        state.own["certified"] = {  # the fields of a `Book`; what an `Alone` and a `Certificate` are to work in
            "rows": np.zeros((E, 7, K)),
            "partners": np.zeros((E, 2, K), np.int64),
            "marks": np.zeros((E, 3, K), np.int8),
            "links": np.zeros((E, 11, K) if self._search == CLASSES else (1, 11, 3), np.int64),
            "none": np.zeros(K, np.int8),
            "work": np.zeros(K),
            "twins": np.zeros(TWINS, np.int64),
            "alone": (alone, inside[:1], out[:5]),
            "whole": (whole, inside[1:], out[5:]),
        }
        return state

    @functools.cached_property
    def _search(self) -> int:
        """How alternatives are searched for: of many arms by classes, where the pulls of an arm say its penalty."""
        sides, numbers = self.sides, self._alone.numbers
        alike = sides.distribution == GAUSSIAN or (sides.distribution == BERNOULLI and numbers[BOUNDARY] != MIXTURE)
        least = MANY if sides.kind == TOP_K and sides.k == 1 else MANY * FEW  # with few classes on either side
        many = sides.kind in (TOP_K, ALL_GOOD) and least <= self.task.K and self._weighed not in (KEPT, MEANS)
        return CLASSES if many and alike else ROWS

    @property
    def _version(self) -> tuple[int, int, int]:
        return self.sides.kind, self.sides.distribution, self._search

    @property
    def _called_for(self) -> tuple[str, ...]:
        return *self._asks, *["race"] * (self.race > 0)

    def kernels_needed(self) -> tuple[Any, ...]:
        if self.task.items:
            return self._elimination.kernels_needed()
        sides = self.sides
        routines = ((routine_of, name, *self._version) for name in self._called_for)
        certifiers = [self._decider] * self.may_stop + [self._alone] * (sides.kind == LOCAL)
        return *super().kernels_needed(), *routines, *(job for one in certifiers for job in one.kernels_needed[:1])

    def form_beside(self) -> dict[str, Any]:
        return {"desk": np.zeros((), DESK), "shares": np.zeros(1)}

    def beside(self, whole: Any) -> tuple[dict[str, Any], Any]:
        kept, desk, decider, sides = whole.own["certified"], np.zeros((), DESK), self._decider, self.sides
        need, quick = math.log(1.0 / self.delta) if self.may_stop else math.inf, decider is not self.certifier
        alone = Alone(self._alone.address if sides.kind == LOCAL else 0, self._alone.numbers, *kept["alone"])
        scratch, inside, out = kept["whole"]
        address = decider.address if self.may_stop else 0
        answer = Certificate(address, decider.numbers, scratch[None], inside, out, need, self._nominal, quick)
        table: Any = Table(*(kept[name] for name in Table._fields[:-2]), alone, answer)  # type: ignore[call-arg]
        given = {"K": self.task.K, "D": self.task.D, "weighed": self._weighed, "search": self._search, "need": need}
        routines = {name: routine_of(name, *self._version).address for name in self._called_for}
        for name, value in (sides._asdict() | given | routines | {"table": table.address}).items():
            desk[name] = value
        return {"desk": desk, "shares": kept["work"]}, (table, self._alone, decider)


type(Algorithm).certifying = CertifiedAlgorithm
