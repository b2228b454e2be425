"""`Problem`: which answer is right, how an answer is scored, and how hard an instance is.

Every method works over arrays with any leading batch axes: means (..., K), or (..., K, D) for D-dimensional arms; an
answer is a boolean mask (..., K). NaN stands for an arm never pulled.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..instances.instance import Instance, Sampler
from ..kernels.checks import Bools, Floats, choice, integer, number
from ..kernels.compiled import jit
from ..kernels.geometry import Polyhedron
from ..kernels.routines import call_routine, routine
from ..stopping import RHO, Certifier, asking, common, level_of
from .potential import Potential

Arrays = dict[str, NDArray[Any]]  # by their names
Pointer: TypeAlias = Any  # in a routine, the first element of an array

BOUNDED = ("gaussian", "bernoulli")  # distributions of arms whose characteristic time is known
SEARCHES = ("pairs", "sets", "exact")


def _filled(out: Floats | None, found: Floats) -> Floats:
    """What has been found, in `out` where that is given."""
    if out is None:
        return found
    out[...] = found
    return out


def _plain(value: Any) -> Any:
    """A value with lists in place of arrays, and Python's numbers in place of NumPy's."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_plain(x) for x in value)
    return value


class TaskLike(Protocol):
    """What a problem may ask of a task: K arms of D dimensions, and the lowest and highest sample, or None."""

    @property
    def K(self) -> int: ...

    @property
    def D(self) -> int: ...

    @property
    def support(self) -> tuple[float, float] | None: ...


@functools.cache
def _routine_of(function: Callable[..., None]) -> object:
    return routine(function, "int64*", "float64*", "int64", "float64*", "float64*")


@jit
def _tell(address, pulls, mean, numbers, out):
    for e in range(len(out)):
        call_routine(address, pulls[e], mean[e], out.shape[1], numbers, out[e])


class Measure(NamedTuple):
    """The distances, or the margins, of one episode as a routine, `f(pulls, mean, K, numbers, out)`.

    pulls, mean and out are the first elements of arrays (K,), of int64 and floats; see `bandit_envs.kernels.routines`.
    """

    routine: Any
    numbers: Floats  # what it is given of the problem

    @classmethod
    def of(cls, function: Callable[..., None], *numbers: float) -> Measure:
        """Such a routine of a function, which is compiled at the first call."""
        return cls(_routine_of(function), np.array(numbers, np.float64))

    def tell(self, pulls: ArrayLike, mean: ArrayLike, out: Floats | None = None) -> Floats:
        """The distances of episodes, (E, K), in `out` where it is given; pulls (E, K), mean (E, K) or (E, K, D)."""
        T, m = np.ascontiguousarray(pulls, np.int64), np.ascontiguousarray(mean, np.float64)
        found = np.empty(T.shape)
        shapes = T.shape, m.shape, found.shape if out is None else out.shape
        if T.ndim != 2 or not T.shape == m.shape[:2] == shapes[2]:
            raise ValueError(f"pulls, mean and out must be of one shape (E, K), got shapes {shapes}")
        _tell(self.routine.address, T, m.reshape(len(m), -1), self.numbers, found)
        return _filled(out, found)


class Problem(ABC):
    """A pure-exploration problem: what is asked of the arms, and how an answer is judged.

    A problem of one's own must have `name`, `margin` and `verdict`, and `parameters` where its constructor takes any; a
    subclass of `SetProblem` has `verdict` already.

    Attributes:
        name: the environment is `bandit_envs/<name>-v<version>`.
        parameters: {parameter of the constructor: one sentence that explains it}. Each is an attribute too, and the
            constructor's annotation gives the command line its type: float, int, bool, str, or anything else as JSON.
        asks: the question, in one line. source: the papers.
        scored: what the score is, the end of a sentence; {many} is "12 buttons", {k} the parameter k, and so on.
        version: of the environment; it is raised whenever a change can alter results.
        defaults: keyword arguments of the environment where no instance is given.
        sampler: the instance where none is given, in any form that the keyword `instance` takes; None: 10 scalar arms.
        family: name of the problem whose stored models serve this one; None: itself.
        metric_types: {metric of a verdict: its NumPy type}. metric_names: their names.
        certificate_names: the entries that `certificate` returns.
        kernels_needed: those that episodes need at their end, see `bandit_envs.kernels.expect`.
        answer_size: number of arms in every answer; None: answers have any size.
        never_empty: whether the right answer holds at least one arm where its size is not fixed.
        boundary: where the answer is the arms with at least a mean that is known beforehand, that mean; else None.
        tolerance: arms nearer to the boundary may be classified either way.
        scores_arms: whether the score is the share of arms that are classified correctly.
        local: whether an arm's margin depends on that arm alone; then `arm_margin` returns it.
        any_order: whether the same arms in any order are the same question, so that they may change places. A class
            that defines `margin`, `plug_in`, `truth` or `verdict` says it itself; else it is False.
        control_arm: the arm that keeps its place where arms come in a random order, a control; None: all may move.
        polyhedron: the one that a mean must lie in, where this is what is asked.
        unit_gaussian_bound: whether `lower_bound` is that of N(mean, 1) arms alone: reports then multiply it by the
            variance of Gaussian arms that all have the same one, and leave it out for all other arms.
    """

    name: ClassVar[str]
    parameters: ClassVar[Mapping[str, str]] = {}
    asks: ClassVar[str] = ""
    source: ClassVar[str] = ""
    scored: ClassVar[str] = "1 is perfect"
    version: ClassVar[int] = 0
    defaults: ClassVar[Mapping[str, Any]] = {"budget": 200}
    sampler: ClassVar[object] = None
    family: ClassVar[str | None] = None
    metric_types: ClassVar[Mapping[str, type[np.generic]]] = {}
    metric_names: ClassVar[tuple[str, ...]] = ()
    certificate_names: ClassVar[tuple[str, ...]] = ()
    kernels_needed: ClassVar[tuple[Any, ...]] = ()
    answer_size: int | None = None
    never_empty: ClassVar[bool] = False
    boundary: float | None = None
    tolerance: float = 0.0
    polyhedron: Polyhedron | None = None
    unit_gaussian_bound: ClassVar[bool] = False
    scores_arms: ClassVar[bool] = False
    local: ClassVar[bool] = False
    any_order: ClassVar[bool] = False
    control_arm: int | None = None

    _task: Any = None  # where a task has made the problem

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.metric_names = tuple(cls.metric_types) if isinstance(cls.metric_types, Mapping) else ()
        own = vars(cls).keys()
        if "any_order" not in own and own & {"margin", "plug_in", "truth", "verdict"}:
            cls.any_order = False

    @property
    def bands(self) -> tuple[float, float]:
        """(must_in, must_out): margins within which an arm may be answered, or left out, either way. Here: 0."""
        return 0.0, 0.0

    def in_words(self, which: str, nouns: str, unit: str = "", minimize: bool = False) -> str:
        """The question in one or two sentences, with the parameters, in words of those who measure.

        Args:
            which: "Which of the 12 compounds". nouns: "12 compounds".
            unit: of a measurement, with a space in front, or "". minimize: whether a lower value is better.
        """
        settings = ", ".join(f"{name} {value!s:.40}" for name, value in self.settings.items())
        return f"{self.asks}: {settings}".rstrip(": ")

    def mirrored(self, pivot: float) -> dict[str, object] | None:
        """The settings that ask the same of means pivot - m, where a lower m is better; None: there are none."""
        return None

    @classmethod
    def by_names(cls, parameters: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """The parameters with the numbers of arms where their names are given; names: (K,) of the arms, or none."""
        return dict(parameters)

    def placed(self, places: Mapping[int, int]) -> dict[str, object]:
        """The settings that ask the same once arms, by their numbers of before, have other places: {before: after}."""
        return self.settings

    @property
    def settings(self) -> dict[str, object]:
        """The parameters, JSON-able, lists for arrays: `type(problem)(**problem.settings)` is the same problem.

        A TypeError names one that the constructor has not kept as an attribute.
        """
        if missing := [name for name in self.parameters if not hasattr(self, name)]:
            text = f"the constructor of {type(self).__name__} must keep its"
            raise TypeError(f"{text} parameter {missing[0]!r} as self.{missing[0]}")
        return {name: _plain(getattr(self, name)) for name in self.parameters}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.settings.items())})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.settings == self.settings

    __hash__ = None  # type: ignore[assignment]

    def idle(self) -> dict[str, str]:
        """Parameters that change nothing beside the others, {name: why}: environments warn where they are given."""
        return {}

    def check(self, task: TaskLike, source: Instance | Sampler | None = None) -> None:
        """Refuse a task, or arms, that the problem is not defined on. Here: arms of several dimensions.

        `source`: where the arms come from; None where only the task is known.
        """
        if task.D != 1:
            raise ValueError(f"{self.name} needs scalar arms, got arms of {task.D} dimensions")
        if self.answer_size is not None and not 1 <= self.answer_size <= task.K:
            raise ValueError(f"{self.name} answers {self.answer_size} arms, of {task.K}")

    @abstractmethod
    def margin(self, means: ArrayLike) -> Floats:
        """Signed distance of each arm from the decision boundary, >= 0 in the answer. Shape (..., K)."""

    def arm_margin(self, x: ArrayLike) -> Floats:
        """Margins of single arms where the problem is `local`: means x (...,) or (..., D), margins (...,)."""
        return self.margin(x)

    def plug_in(self, means: ArrayLike) -> Bools:
        """The answer if `means` were the true ones; arms with NaN are never in it. Shape (..., K)."""
        with np.errstate(invalid="ignore"):
            return self.margin(means) >= 0

    def right_answer(self, means: ArrayLike) -> Bools:
        """The right answer for true means. Shape (..., K)."""
        return self.plug_in(means)

    def truth(self, means: ArrayLike) -> Floats:
        """What `verdict` must know of the true means, (..., K): computed once per instance."""
        return self.margin(means)

    @abstractmethod
    def verdict(self, answer: ArrayLike, truth: Floats) -> Arrays:
        """`correct`, `score` and the problem's metrics of answers (..., K), each of shape (...,)."""

    def is_correct(self, answer: ArrayLike, means: ArrayLike) -> Bools:
        """Whether an answer is correct, tolerance and slack included. Shape (...,)."""
        return self.verdict(answer, self.truth(means))["correct"]

    def score(self, answer: ArrayLike, means: ArrayLike) -> Floats:
        """The terminal reward of an answer, in [0, 1]; 1 is perfect. Shape (...,)."""
        return self.verdict(answer, self.truth(means))["score"]

    def metrics(self, answer: ArrayLike, means: ArrayLike) -> Arrays:
        """The papers' own measures of an answer, named by `metric_names`; each of shape (...,)."""
        verdict = self.verdict(answer, self.truth(means))
        return {name: verdict[name] for name in self.metric_names}

    def certificate(self, pulls: ArrayLike, mean: ArrayLike, variance: ArrayLike, *, width: float = 1.0) -> Arrays:
        """What a policy can know of its plug-in answer from its statistics, (..., K) each; names: `certificate_names`.

        Arrays (...,), none where nothing is defined. Variances have the divisor N; `width` is the range of a sample.
        """
        return {}

    def distances(self, pulls: ArrayLike, mean: ArrayLike, out: Floats | None = None) -> Floats:
        """How far each arm's empirical mean must move, at least, for the plug-in answer to change. Here: the margins.

        Distances of arms in the answer are >= 0, those of the others negative; in episodes with an arm never pulled all
        are 0.

        Args:
            pulls: (E, K). mean: (E, K) or (E, K, D), empirical. out: (E, K), filled and returned; None: a new array.
        """
        unseen = (np.asarray(pulls) == 0).any(axis=-1, keepdims=True)
        return _filled(out, np.where(unseen, 0.0, self.margin(mean)))

    def distance_routine(self) -> Measure | None:
        """`distances` of one episode for compiled code, or None.

        Where a problem is `local`, it gives the margins of single arms too; -inf is one that it leaves to `arm_margin`.
        """
        return None

    @functools.cached_property
    def measure(self) -> Measure | None:
        """`distance_routine`, unless a subclass has put other margins or distances in the place of its own."""
        latest = self.has_latest("distance_routine", "margin", "arm_margin", "distances")
        return self.distance_routine() if latest else None

    def potential(self) -> Potential | None:
        """The look-ahead potential of the problem's score, one of those in `bandit_envs.problems.potential`, or None.

        None: gains and beliefs are by worlds drawn from the posteriors of the arms (`bandit_envs.problems.sampled`).
        """
        return None

    @property
    def own_potential(self) -> Potential | None:
        """`potential`, unless a subclass asks, answers or scores otherwise than the class that it is from."""
        asked = "margin", "arm_margin", "plug_in", "truth", "verdict", "_score"
        return self.potential() if self.has_latest("potential", *asked) else None

    @classmethod
    def has_latest(cls, routine: str, *others: str) -> bool:
        """Whether the latest class that defines any of these names defines the routine."""
        return routine in vars(next(kind for kind in cls.__mro__ if {routine, *others} & vars(kind).keys()))

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles keep: the routine is looked up again."""
        return {name: value for name, value in vars(self).items() if name != "measure"}

    def _arms_of(self, distribution: str | None, sigma: float | None) -> tuple[str, float]:
        """The distribution of the arms and their scale; None: those of the task of the problem, else N(mean, 1)."""
        task = self._task
        if distribution is None and task is not None and task.distribution not in BOUNDED:
            text = f"no bound is known for {task.distribution!r} arms:"
            raise ValueError(f"{text} say distribution='gaussian' or 'bernoulli'")
        distribution = ("gaussian" if task is None else task.distribution) if distribution is None else distribution
        return distribution, (1.0 if task is None else task.sigma) if sigma is None else sigma

    def _counts_on(
        self,
        distribution: str | None = None,
        sigma: float | None = None,
        dependent: bool | None = None,
        support: tuple[float, float] | None = None,
        exact: bool = False,
    ) -> dict[str, Any]:
        """What certificates count on, for `common`, by `Task.certified_distribution`; `exact`: with evidence itself."""
        task = self._task
        if distribution is None and task is not None:
            distribution = task.certified_distribution(None, exact)
        distribution, sigma = self._arms_of(distribution, sigma)
        if dependent is None:
            dependent = task is not None and bool(task.dependent) and distribution == "gaussian"
        if support is None and distribution == "bounded" and task is not None:
            support = task.support
        ranged = {"support": support} if support else {}
        return {"distribution": distribution, "sigma": sigma, "dependent": dependent, **ranged}

    def evidence_routine(self, K: int, numbers: Floats, search: str) -> Certifier | None:
        """The routine of `certifier` for K arms, by the numbers of the distribution and the boundary, or None.

        docs/own-problem.md has one, `Certifier.of(function, K, numbers, ...)`.
        """
        return None

    def certifier(
        self,
        K: int,
        D: int = 1,
        *,
        distribution: str | None = None,
        sigma: float | None = None,
        boundary: str = "mixture",
        rho: float | None = RHO,
        centre: float = 0.0,
        search: str = "pairs",
        dependent: bool | None = None,
        support: tuple[float, float] | None = None,
    ) -> Certifier:
        """The closest alternative to an answer, for compiled code; see `bandit_envs.stopping.nearest_alternative`.

        A problem of one's own that is `local` has it by its margins, for distribution="gaussian".

        Args:
            K, D: number of arms, and of their dimensions.
            distribution: "gaussian" (or sub-Gaussian) of scale sigma, "bernoulli" (or any samples in [0, 1]),
                "student": Gaussian of unknown variance, or "bounded": samples in `support`; None: see `evidence`.
            sigma: known scale of a sample; of "student" a guess that only makes the certificate sharper.
            boundary: "mixture", "kaufmann-koolen", or "none" for the evidence itself; see docs/certificates.md.
            rho: number of pulls of an arm at which the Gaussian mixture is sharpest; None: a mixture over several.
            centre: of "student", about where means may lie, for the prior.
            search: "exact": for the nearest instance itself (with boundary="none" only). Where that takes long, a bound
                of its cost from below is as valid: "pairs", the quickest, by pairs of arms; "sets", by sets of them.
            dependent: whether the coordinates of a sample may depend on each other, for arms of several dimensions:
                then sigma is the scale of each coordinate, and that of a direction a is sigma |a|_1.
            support: the lowest and the highest sample, of "bounded"; None: those of the task, else 0 and 1.

        Raises:
            ValueError: for a problem that has none, naming it, and for values that are not allowed.
        """
        given = self._counts_on(distribution, sigma, dependent, support)
        numbers = common(boundary=boundary, rho=rho, centre=centre, D=integer("D", D, 1), **given)
        if choice("search", search, SEARCHES) == "exact" and boundary != "none":
            raise ValueError(f"search='exact' is for boundary='none', got {boundary!r}")
        return asking.certifier_of(self, integer("K", K, self.fewest_arms), numbers, given["distribution"], search)

    @property
    def fewest_arms(self) -> int:
        """The fewest arms of which an answer can be wrong: 1 where each arm counts by itself."""
        return max(1 if self.local else 2, (self.answer_size or 0) + 1)

    def evidence(
        self,
        pulls: ArrayLike,
        mean: ArrayLike,
        answer: ArrayLike | None = None,
        *,
        distribution: str | None = None,
        sigma: float | None = None,
        variance: ArrayLike | None = None,
        dependent: bool | None = None,
    ) -> Floats:
        """Evidence against the nearest instance on which an answer is wrong, (...,), in nats.

        The smallest sum over arms of pulls times the divergence from the empirical means to those of such an instance;
        0 where an arm that matters has no pull, or where the answer is wrong for the empirical means; inf where no
        instance makes it wrong. Of dependent coordinates it is a bound from below, by the rows of the polyhedron.

        Args:
            pulls: (..., K), counts.
            mean: (..., K) or (..., K, D), empirical.
            answer: (..., K) masks; None: the plug-in ones.
            distribution, sigma, dependent: see `certifier`. None: those of the task, by `Task.certified_distribution`,
                where a task or an environment has made the problem; else "gaussian", 1 and False.
            variance: as mean, with divisor N; "student" alone needs it.

        Raises:
            ValueError: for a problem without evidence, and for arrays that do not go together.
        """
        given = self._counts_on(distribution, sigma, dependent, exact=True)
        choice("distribution", given["distribution"], ("gaussian", "bernoulli", "student"))
        return asking.alternatives(self, pulls, mean, answer, variance, boundary="none", search="exact", **given)

    def certified_level(
        self,
        pulls: ArrayLike,
        mean: ArrayLike,
        answer: ArrayLike | None = None,
        *,
        variance: ArrayLike | None = None,
        moments: ArrayLike | None = None,
        boundary: str = "mixture",
        rho: float | None = RHO,
        centre: float = 0.0,
        **known: Any,
    ) -> Floats:
        """The smallest delta at which an answer is certified now, (...,), in [0, 1]: an anytime-valid error bound.

        Whatever rule has chosen the pulls: with probability at least 1 - delta, the answer is right at every time at
        which the level is delta or less. 1: nothing is certified.

        Args:
            pulls, mean, answer, variance: see `evidence`.
            moments: (..., 2), the third and fourth central moments with divisor N, which "bounded" is sharper with.
            boundary, rho, centre: see `certifier`. known: distribution, sigma, dependent and support, likewise.
        """
        options = {"boundary": boundary, "rho": rho, "centre": centre, "search": "sets"} | self._counts_on(**known)
        choice("boundary", boundary, ("mixture", "product", "kaufmann-koolen"))
        return level_of(asking.alternatives(self, pulls, mean, answer, variance, moments, **options))

    def arm_evidence(
        self,
        pulls: ArrayLike,
        mean: ArrayLike,
        *,
        variance: ArrayLike | None = None,
        moments: ArrayLike | None = None,
        rho: float | None = RHO,
        centre: float = 0.0,
        **known: Any,
    ) -> Floats:
        """What each arm has in favour of being in the answer, and of not being there, (..., K, 2), in nats.

        Logarithms of e-values, where these are above 1, else 0: of an arm that is on the other side, by more than the
        tolerance (AllGood: than the slack), an e-value is 1 at most on average, at any stopping time, whatever has
        chosen the pulls. So exp(-evidence) is a p-value that is valid at any time.
        `bandit_envs.stopping.discoveries` finds arms by them, at an error rate.

        Arguments as of `certified_level`. A ValueError for other problems than Threshold, AllGood, BetterThanControl.
        """
        given = self._counts_on(**known) | {"rho": rho, "centre": centre}
        return asking.arm_evidence(self, pulls, mean, variance, moments, **given)

    def characteristic_time(
        self, means: ArrayLike, *, distribution: str | None = None, sigma: float | None = None
    ) -> float:
        """T*, the pulls per nat of evidence at the best proportions, for one instance; docs/certificates.md has more.

        1 / T* = max over proportions w of min over instances on which the right answer for these means is wrong of the
        sum of w times divergences, to 1e-6. T* is inf where the answer is tied with a wrong one, and 0 where no
        instance makes it wrong. Where several answers are correct, it is that of the plug-in one.

        Args:
            means: (K,) or (K, D).
            distribution: "gaussian" or "bernoulli". sigma: of Gaussian arms, the largest where they differ. None: those
                of the task or environment that has made the problem, else "gaussian" and 1.
        """
        most = asking.game_of(self, means, *self._arms_of(distribution, sigma)).most
        return 1 / most if most > 0 else math.inf

    def optimal_proportions(
        self, means: ArrayLike, *, distribution: str | None = None, sigma: float | None = None
    ) -> Floats:
        """The proportions of pulls, (K,), that reach `characteristic_time`; equal ones where it is inf or 0."""
        return asking.game_of(self, means, *self._arms_of(distribution, sigma)).proportions

    def hardness(self, means: ArrayLike) -> dict[str, Any]:
        """The paper's complexity measures of one instance, means (K,) or (K, D). Here: `H`, the sum of margin^-2."""
        with np.errstate(divide="ignore", over="ignore"):
            return {"H": float((np.abs(self.margin(means)) ** -2.0).sum())}

    def lower_bound(
        self, means: ArrayLike, delta: float, *, distribution: str | None = None, sigma: float | None = None
    ) -> float:
        """Pulls that any algorithm correct with probability 1 - delta needs on average; NaN where none is known.

        Here: T* kl(delta, 1 - delta), with the `characteristic_time` T* (Garivier & Kaufmann 2016, Theorem 1), for
        arms of this distribution; of a problem of one's own NaN, unless it is `local` and has an `evidence_routine`, or
        defines `characteristic_time`. Where several answers are correct, T* is that of the plug-in one, and the bound
        holds as delta goes to 0.

        Args:
            means: (K,) or (K, D), of one instance.
            delta: error probability in (0, 1).
            distribution, sigma: see `characteristic_time`; `quick_bound` says whether it takes long. One that is
                defined for means and delta alone, by a problem of one's own, is taken for arms of all distributions;
                or, with `unit_gaussian_bound`, for N(mean, 1) arms.
        """
        delta = number("delta", delta, 0, 1, above=True, below=True)
        if distribution is None and self._task is not None and self._task.distribution not in BOUNDED:
            return math.nan
        distribution, sigma = self._arms_of(distribution, sigma)
        timed = type(self).characteristic_time is not Problem.characteristic_time
        if not asking.tells_evidence(self) or not timed and asking.of_ones_own(self, means, distribution):
            return math.nan
        least = (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta)) if delta < 0.5 else 0.0
        return least * self.characteristic_time(means, distribution=distribution, sigma=sigma) if least > 0 else 0.0

    def quick_bound(self, K: int) -> bool:
        """Whether `lower_bound` of K arms takes about a second at most, but for what AllGood compiles at first use."""
        return self.local or K <= 50

    def paper_lower_bound(self, means: ArrayLike, delta: float) -> float:
        """The lower bound of the problem's paper, for N(mean, 1) arms of means (K,); NaN where it has none."""
        return math.nan


@jit
def _count(
    answer: NDArray[np.int8],
    truth: Floats,
    stride: int,
    K: int,
    must_in: float,
    must_out: float,
    misclassified: NDArray[np.int64],
    ratios: Annotated[Floats, 2],
):
    """Per answer: how many arms are misclassified, and precision, recall, F1."""
    arms, step = np.uint64(K), np.uint64(stride)
    for row in range(len(misclassified)):
        i = np.uint64(row)
        wrong = hits = size = right = 0
        for k in range(arms):
            margin, taken = truth[i * step + k], answer[i * arms + k] != 0
            inside = margin >= 0.0
            right += inside
            size += taken
            hits += inside & taken
            wrong += (inside & (not taken) & (margin >= must_in)) | (taken & (not inside) & (-margin > must_out))
        misclassified[i] = wrong
        ratios[0, i] = hits / size if size else 1.0
        ratios[1, i] = hits / right if right else 1.0
        ratios[2, i] = 2.0 * hits / (size + right) if size + right else 1.0


class SetProblem(Problem):
    """A problem whose right answer is the set of arms with margin >= 0.

    An arm inside must be answered when its margin is >= `must_in`; an arm outside must not when it is further than
    `must_out` from the boundary. Between the two, either is accepted. The score is 1 - misclassified / K.
    """

    metric_types = {"misclassified": np.int64, "precision": np.float64, "recall": np.float64, "f1": np.float64}
    scores_arms, kernels_needed = True, (_count,)
    scored = "the share of the {many} that you put on the right side, into the answer or out of it"

    @property
    def bands(self) -> tuple[float, float]:
        """(must_in, must_out). Here: the tolerance on both sides."""
        return self.tolerance, self.tolerance

    def verdict(self, answer: ArrayLike, truth: Floats) -> Arrays:
        mask, K = np.asarray(answer), truth.shape[-1]
        if mask.shape[-1:] != (K,):
            raise ValueError(f"an answer is a mask of {K} arms, got shape {mask.shape}")
        lead, shared = np.broadcast_shapes(mask.shape[:-1], truth.shape[:-1]), truth.size == K
        if mask.shape[:-1] != lead:
            mask = np.broadcast_to(mask, (*lead, K))
        if not shared and truth.shape[:-1] != lead:
            truth = np.broadcast_to(truth, (*lead, K))
        misclassified, ratios = np.empty(lead, np.int64), np.empty((3, *lead))
        flat = mask.view(np.int8) if mask.dtype == np.bool_ and mask.flags.carray else np.array(mask, np.int8)
        margins, stride = np.array(truth, np.float64, order="C").reshape(-1), 0 if shared else K
        found = misclassified.reshape(-1), ratios.reshape(3, -1)
        _count(flat.reshape(-1), margins, stride, K, *self.bands, *found)
        verdict = {"correct": misclassified == 0, "misclassified": misclassified}
        verdict |= {"precision": ratios[0], "recall": ratios[1], "f1": ratios[2]}
        return verdict | {"score": self._score(verdict, K)}

    def _score(self, verdict: Arrays, K: int) -> Floats:
        """The terminal reward, from the metrics: the share of arms that are classified correctly."""
        return 1.0 - verdict["misclassified"] / K
