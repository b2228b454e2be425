"""What a problem is: which answer is right, how an answer is scored, and how hard an instance is.

Every method works over arrays with any leading batch axes: means (..., K), or (..., K, D) for D-dimensional arms; an
answer is a boolean mask (..., K). NaN stands for an arm never pulled.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import choice, integer, mask, number
from ..compiled import jit
from ..evidence import D_AT, RHO, Certifier, common
from ..evidence.boundaries import COMMON
from ..geometry import Polyhedron
from ..instances import Instance, Sampler
from ..routines import call_routine, routine

if TYPE_CHECKING:
    from ..evidence.game import Game

__all__ = ["Bools", "Floats", "Measure", "Problem", "SetProblem", "TaskLike"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SEARCHES = ("pairs", "sets", "exact")


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
    """What a problem may ask of a task before it accepts it; a `Task` has all of this."""

    @property
    def K(self) -> int:
        """Number of arms."""
        ...

    @property
    def D(self) -> int:
        """Number of dimensions of an arm."""
        ...

    @property
    def support(self) -> tuple[float, float] | None:
        """Lowest and highest value of a sample, or None."""
        ...


@functools.cache
def _routine_of(function: Callable[..., None]) -> Any:
    return routine(function, "int64*", "float64*", "int64", "float64*", "float64*")


@jit
def _tell(address: Any, pulls: Any, mean: Any, numbers: Any, out: Any) -> None:
    call_routine(address, pulls, mean, len(out), numbers, out)


class Measure(NamedTuple):
    """The distances of one episode as a routine, `f(pulls, mean, K, numbers, out)`.

    pulls, mean and out are the first elements of arrays (K,), of int64 and floats; see `bandit_envs.routines`.
    """

    routine: Any
    numbers: Floats  # what it is told of the problem

    @classmethod
    def of(cls, function: Callable[..., None], *numbers: float) -> Measure:
        """Such a routine of a function, which is compiled at the first call."""
        return cls(_routine_of(function), np.array(numbers, np.float64))

    def tell(self, pulls: NDArray[np.int64], mean: Floats, out: Floats) -> None:
        """Fill out (K,) with the distances of one episode, for callers in Python: pulls (K,), mean (K,) or (K * D,)."""
        _tell(self.routine.address, pulls, mean, self.numbers, out)


class Problem(ABC):
    """A pure-exploration problem: what is asked of the arms, and how an answer is judged.

    Everything that the environments, agents, evaluation and command line need to know of a problem is one of the
    attributes and methods here. A problem of one's own must have `name`, `margin` and `verdict`, and `parameters` where
    its constructor takes any; a subclass of `SetProblem` has `verdict` already.

    Attributes:
        name: the environment is `bandit_envs/<name>-v<version>`.
        parameters: {parameter of the constructor: one sentence that explains it}. Each is an attribute too, and the
            constructor's annotation tells the command line its type: float, int, bool, str, or anything else as JSON.
        asks: the question, in one line. source: the papers.
        version: of the environment; it is raised whenever a change can alter results.
        defaults: keyword arguments of the environment where no instance is given.
        sampler: the instance where none is given, in any form that the keyword `instance` takes; None: 10 scalar arms.
        family: name of the problem whose stored models serve this one; None: itself.
        metric_types: {metric of a verdict: its NumPy type}. metric_names: their names.
        certificate_names: what `certificate` tells.
        answer_size: number of arms in every answer; None: answers have any size.
        boundary: where the answer is the arms with at least a mean that is known beforehand, that mean; else None.
        tolerance: arms nearer to the boundary may be classified either way.
        scores_arms: whether the score is the share of arms that are classified correctly.
        local: whether an arm's margin depends on that arm alone; then `arm_margin` tells it.
        polyhedron: the one that a mean must lie in, where this is what is asked; its geometry tells which coordinate of
            an arm to pull.
        unit_gaussian_bound: whether `lower_bound` is that of N(mean, 1) arms alone: reports then multiply it by the
            variance of Gaussian arms that all have the same one, and leave it out for all other arms.
    """

    name: ClassVar[str]
    parameters: ClassVar[Mapping[str, str]] = {}
    asks: ClassVar[str] = ""
    source: ClassVar[str] = ""
    version: ClassVar[int] = 0
    defaults: ClassVar[Mapping[str, Any]] = {"budget": 200}
    sampler: ClassVar[Any] = None
    family: ClassVar[str | None] = None
    metric_types: ClassVar[Mapping[str, type[np.generic]]] = {}
    metric_names: ClassVar[tuple[str, ...]] = ()
    certificate_names: ClassVar[tuple[str, ...]] = ()
    answer_size: int | None = None
    boundary: float | None = None
    tolerance: float = 0.0
    polyhedron: Polyhedron | None = None
    unit_gaussian_bound: ClassVar[bool] = False
    scores_arms: ClassVar[bool] = False
    local: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.metric_names = tuple(cls.metric_types) if isinstance(cls.metric_types, Mapping) else ()

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters, JSON-able: `type(problem)(**problem.settings)` is the same problem.

        Arrays are lists in it, so that a constructor turns what it is given into an array by itself.

        Raises:
            TypeError: if the constructor has not kept one as an attribute.
        """
        if missing := [name for name in self.parameters if not hasattr(self, name)]:
            raise TypeError(
                f"the constructor of {type(self).__name__} must keep its parameter {missing[0]!r} as self.{missing[0]}"
            )
        return {name: _plain(getattr(self, name)) for name in self.parameters}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.settings.items())})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.settings == self.settings

    __hash__ = None  # type: ignore[assignment]

    def check(self, task: TaskLike, source: Instance | Sampler | None = None) -> None:
        """Refuse a task, or arms, that the problem is not defined on. Here: arms of several dimensions.

        Args:
            task: tells the number of arms, their dimensions and support.
            source: where the arms come from; None where only the task is known.

        Raises:
            ValueError: naming what is wrong.
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
    def verdict(self, answer: ArrayLike, truth: Floats) -> dict[str, NDArray[Any]]:
        """`correct`, `score` and the problem's metrics of answers (..., K), each of shape (...,)."""

    def is_correct(self, answer: ArrayLike, means: ArrayLike) -> Bools:
        """Whether an answer is correct, tolerance and slack included. Shape (...,)."""
        return self.verdict(answer, self.truth(means))["correct"]

    def score(self, answer: ArrayLike, means: ArrayLike) -> Floats:
        """The terminal reward of an answer, in [0, 1]; 1 is perfect. Shape (...,)."""
        return self.verdict(answer, self.truth(means))["score"]

    def metrics(self, answer: ArrayLike, means: ArrayLike) -> dict[str, NDArray[Any]]:
        """The papers' own measures of an answer, named by `metric_names`; each of shape (...,)."""
        verdict = self.verdict(answer, self.truth(means))
        return {name: verdict[name] for name in self.metric_names}

    def certificate(
        self, pulls: ArrayLike, mean: ArrayLike, variance: ArrayLike, *, width: float = 1.0
    ) -> dict[str, NDArray[Any]]:
        """What a policy can know of its plug-in answer from its statistics, (..., K) each; names: `certificate_names`.

        Args:
            pulls, mean, variance (divisor N): of the arms.
            width: the range of a sample (`Task.width`).

        Returns:
            Arrays (...,); an empty dict where nothing is defined.
        """
        return {}

    def distances(self, pulls: ArrayLike, mean: ArrayLike, out: Floats | None = None) -> Floats:
        """How far each arm's empirical mean must move, at least, for the plug-in answer to change. Here: the margins.

        Distances of arms in the answer are >= 0, those of the others negative; in episodes with an arm never pulled all
        are 0.

        Args:
            pulls: (E, K).
            mean: (E, K) or (E, K, D), empirical.
            out: (E, K), filled and returned; None: a new array.
        """
        unseen = (np.asarray(pulls) == 0).any(axis=-1, keepdims=True)
        found = np.where(unseen, 0.0, self.margin(mean))
        if out is None:
            return found
        out[...] = found
        return out

    def distance_routine(self) -> Measure | None:
        """`distances` of one episode for compiled code, or None.

        Where a problem is `local`, it tells the margins of single arms too; -inf is one that it leaves to `arm_margin`.
        """
        return None

    @functools.cached_property
    def measure(self) -> Measure | None:
        """`distance_routine`, unless a subclass has put other margins or distances in the place of those it tells."""
        names = {"margin", "arm_margin", "distances", "distance_routine"}
        latest = next(kind for kind in type(self).__mro__ if names & vars(kind).keys())
        return self.distance_routine() if "distance_routine" in vars(latest) else None

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles keep: the routine is looked up anew."""
        return {name: value for name, value in vars(self).items() if name != "measure"}

    def _check_batch(self, pulls: NDArray[np.int64], mean: Floats, out: Floats) -> None:
        """Check the arrays of `distances` for a kernel: all are of shape (E, K).

        Raises:
            ValueError: naming their shapes.
        """
        if pulls.ndim != 2 or not pulls.shape == mean.shape == out.shape:
            shapes = pulls.shape, mean.shape, out.shape
            raise ValueError(f"pulls, mean and out must be of one shape (E, K), got shapes {shapes}")

    def evidence_routine(self, K: int, numbers: Floats, search: str) -> Certifier | None:
        """The routine of `certifier` for compiled code, or None.

        Args:
            K: number of arms.
            numbers: of the law and the boundary.
            search: see `certifier`.
        """
        return None

    def certifier(
        self,
        K: int,
        D: int = 1,
        *,
        law: str = "gaussian",
        sigma: float = 1.0,
        boundary: str = "mixture",
        rho: float | None = RHO,
        centre: float = 0.0,
        search: str = "pairs",
    ) -> Certifier:
        """The cheapest way in which an answer can be wrong, for compiled code; see `bandit_envs.nearest_way`.

        A problem of one's own that is `local` has it by its margins, for law="gaussian".

        Args:
            K, D: number of arms, and of their dimensions.
            law: "gaussian" (or sub-Gaussian) of scale sigma, "bernoulli" (or any samples in [0, 1]), or "student":
                Gaussian of unknown variance.
            sigma: known scale of a sample; of "student" a guess that only makes the certificate sharper.
            boundary: "mixture", "kaufmann-koolen", or "none" for the evidence itself; see docs/certificates.md.
            rho: number of pulls of an arm at which the Gaussian mixture is sharpest; None: a mixture over several.
            centre: of "student", about where means may lie, for the prior.
            search: "exact": for the nearest instance itself (with boundary="none" only). Where that takes long, a bound
                of its cost from below is as valid: "pairs", the quickest, by pairs of arms; "sets", by sets of them.

        Raises:
            ValueError: for a problem that has none, naming it, and for values that are not allowed.
        """
        numbers = common(law, sigma, boundary, rho, centre, integer("D", D, 1))
        if choice("search", search, SEARCHES) == "exact" and boundary != "none":
            raise ValueError(f"search='exact' is for boundary='none', got {boundary!r}")
        K, found = integer("K", K, 1), None
        if self._tells_evidence:
            found = self.evidence_routine(K, numbers, search)
        if found is None and self.local and law == "gaussian":
            fall, rise = self._turns
            if self.measure is not None:
                address = float(self.measure.routine.address)
                inner = self.measure.numbers.tolist()
                return Certifier.of("margins", K, numbers, fall, rise, 0.0, address, *inner, room=K)
        if found is None:
            raise ValueError(
                f"the problem {self.name!r} tells no evidence for compiled code: it needs evidence_routine, or "
                f"local = True, a distance_routine and law='gaussian', got local={self.local} and law={law!r}"
            )
        return found

    @property
    def _turns(self) -> tuple[float, float]:
        """The margin below which an arm in the answer is wrong there, and above which one left out is wrong."""
        must_in, must_out = getattr(self, "bands", (0.0, 0.0))
        return -float(must_out), float(must_in)

    @property
    def _tells_evidence(self) -> bool:
        """Whether no subclass has put other margins or verdicts in the place of those that `evidence_routine` is of."""
        names = {"margin", "arm_margin", "plug_in", "truth", "verdict", "bands", "evidence_routine"}
        latest = next(kind for kind in type(self).__mro__ if names & vars(kind).keys())
        return "evidence_routine" in vars(latest)

    def _ways(
        self, pulls: ArrayLike, mean: ArrayLike, answer: ArrayLike | None, variance: ArrayLike | None, **options: Any
    ) -> tuple[Floats, tuple[int, ...]]:
        """What `nearest_way` reports of statistics and answers (..., K), (n, 2 + 3 K), and their batch axes.

        Raises:
            ValueError: for arrays that do not go together, naming their shapes.
        """
        m, T = np.asarray(mean, np.float64), np.asarray(pulls)
        D = self.polyhedron.A.shape[1] if self.polyhedron is not None else 1
        D = m.shape[-1] if m.ndim == T.ndim + 1 else 1 if m.ndim == T.ndim else D
        fits = T.ndim >= 1 and m.shape in (T.shape, (*T.shape, D)) and T.dtype.kind in "iuf"
        if not fits or (T < 0).any() or (np.floor(T) != T).any():
            raise ValueError(
                f"pulls must be counts (..., K) and mean (..., K) or (..., K, D), got {T.shape}, {m.shape}"
            )
        if options["law"] == "student" and variance is None:
            raise ValueError("law='student' needs variance=, the empirical variances with divisor N")
        v = np.zeros(m.shape) if variance is None else np.asarray(variance, np.float64)
        if v.shape != m.shape:
            raise ValueError(f"variance must have the shape of mean, {m.shape}, got {v.shape}")
        K, lead = T.shape[-1], T.shape[:-1]
        if (
            K < 2
            and self.name != "Threshold"
            and not self.local
            or self.answer_size is not None
            and self.answer_size >= K
        ):
            raise ValueError(f"pulls of {K} arms are too few for {self!r:.200}")
        T = np.ascontiguousarray(T, np.int64).reshape(-1, K)
        m = np.where(
            T.reshape(*T.shape, *[1] * (m.ndim - len(lead) - 1)) > 0, m.reshape(-1, *m.shape[len(lead) :]), 0.0
        )
        if not np.isfinite(m).all():
            raise ValueError(f"mean must be finite where an arm has been pulled, got {m[~np.isfinite(m)][0]}")
        if options["law"] == "bernoulli" and not ((m >= 0) & (m <= 1)).all():
            raise ValueError(f"means of law='bernoulli' lie in [0, 1], got {m[(m < 0) | (m > 1)][0]}")
        inside = self._inside(T, m, answer, (*lead, K))
        if self.local and not (self._tells_evidence or self.measure) and options["law"] == "gaussian":
            numbers = common(**{name: x for name, x in options.items() if name != "search"}, D=1)
            certifier = Certifier.of("threshold", K, numbers, *self._turns, 0.0)
            numbers[D_AT] = D
            m = np.where(T > 0, self.arm_margin(m), 0.0)
        else:
            certifier = self.certifier(K, D, **options)
        v = np.ascontiguousarray(v.reshape(m.shape) if v.size == m.size else np.zeros(m.shape))
        return certifier.ways(T, np.ascontiguousarray(m), v, inside), lead

    def _inside(
        self, pulls: NDArray[np.int64], mean: Floats, answer: ArrayLike | None, shape: tuple[int, ...]
    ) -> NDArray[np.int8]:
        """The answers as (n, K) int8: the plug-in ones where there are none."""
        if answer is None:
            unseen = (pulls == 0).reshape(*pulls.shape, *[1] * (mean.ndim - 2))
            return np.ascontiguousarray(self.plug_in(np.where(unseen, np.nan, mean)), np.int8)
        given = np.asarray(answer)
        try:
            whole = np.broadcast_to(given, shape)
        except ValueError:
            raise ValueError(f"answer must be a mask of shape {shape}, got shape {given.shape}") from None
        taken = mask("answer", np.ascontiguousarray(whole), shape)
        sizes = taken.sum(axis=-1)
        if self.answer_size is not None and (sizes != self.answer_size).any():
            wrong = sizes[sizes != self.answer_size].flat[0]
            raise ValueError(f"an answer of {self.name} holds {self.answer_size} arms, got {wrong}")
        return np.array(taken, np.int8, order="C").reshape(-1, shape[-1])

    def evidence(
        self,
        pulls: ArrayLike,
        mean: ArrayLike,
        answer: ArrayLike | None = None,
        *,
        law: str = "gaussian",
        sigma: float = 1.0,
        variance: ArrayLike | None = None,
    ) -> Floats:
        """Evidence against the nearest instance on which an answer is wrong, (...,), in nats.

        The smallest sum over arms of pulls times the divergence from the empirical means to those of such an instance;
        0 where an arm that matters has no pull, or where the answer is wrong for the empirical means; inf where no
        instance makes it wrong.

        Args:
            pulls: (..., K), counts.
            mean: (..., K) or (..., K, D), empirical.
            answer: (..., K) masks; None: the plug-in ones.
            law, sigma: see `certifier`.
            variance: as mean, with divisor N; "student" alone needs it.

        Raises:
            ValueError: for a problem that tells no evidence, and for arrays that do not go together.
        """
        options = {"law": law, "sigma": sigma, "boundary": "none", "search": "exact"}
        found, lead = self._ways(pulls, mean, answer, variance, **options)
        return found[:, 0].reshape(lead)

    def certified_level(
        self,
        pulls: ArrayLike,
        mean: ArrayLike,
        answer: ArrayLike | None = None,
        *,
        law: str = "gaussian",
        sigma: float = 1.0,
        variance: ArrayLike | None = None,
        boundary: str = "mixture",
        rho: float | None = RHO,
        centre: float = 0.0,
    ) -> Floats:
        """The smallest delta at which an answer is certified now, (...,), in [0, 1]: an anytime-valid error bound.

        Whatever rule has chosen the pulls: with probability at least 1 - delta, the answer is right at every time at
        which the level is delta or less. 1: nothing is certified.

        Args:
            pulls, mean, answer, law, sigma, variance: see `evidence`.
            boundary, rho, centre: see `certifier`.

        Raises:
            ValueError: as `evidence`.
        """
        options = {"law": law, "sigma": sigma, "boundary": boundary, "rho": rho, "centre": centre, "search": "sets"}
        choice("boundary", boundary, ("mixture", "kaufmann-koolen"))
        found, lead = self._ways(pulls, mean, answer, variance, **options)
        return np.exp(-np.maximum(found[:, 0], 0.0)).reshape(lead)

    def _game(self, means: ArrayLike, law: str, sigma: float) -> Game:
        """Optimal proportions (K,) and the value of the game, for one instance; see `evidence.game`."""
        from ..evidence.game import single, solve  # late, as few ask for it

        m = np.array(means, np.float64, order="C")
        if m.ndim not in (1, 2) or not np.isfinite(m).all():
            raise ValueError(f"means must be those of one instance, (K,) or (K, D), got {m!r:.200}")
        choice("law", law, ("gaussian", "bernoulli"))
        if law == "bernoulli" and not ((m >= 0) & (m <= 1)).all():
            raise ValueError(f"means of law='bernoulli' lie in [0, 1], got {m[(m < 0) | (m > 1)][0]}")
        answer = self.plug_in(m)
        if self.local:
            one = np.ones((len(m), 1), np.int64)
            return single(self.evidence(one, m[:, None], answer[:, None], law=law, sigma=sigma))
        certifier = self.certifier(len(m), law=law, sigma=sigma, boundary="none", search="exact")
        return solve(certifier.kind, certifier.numbers[COMMON:], law, float(sigma) ** 2, m, answer)

    def characteristic_time(self, means: ArrayLike, *, law: str = "gaussian", sigma: float = 1.0) -> float:
        """T*, the pulls per nat of evidence at the best proportions, for one instance; inf where there are none.

        1 / T* = max over proportions w of min over instances on which the right answer for these means is wrong of the
        sum of w times divergences, to 1e-6. Where several answers are correct, it is that of the plug-in one; see
        docs/certificates.md, also for how long it takes.

        Args:
            means: (K,) or (K, D).
            law: "gaussian" or "bernoulli".
            sigma: of Gaussian arms.

        Raises:
            ValueError: for values that are not allowed, and for a problem that tells no evidence.
        """
        most = self._game(means, law, sigma).most
        return 1 / most if most > 0 else math.inf

    def optimal_proportions(self, means: ArrayLike, *, law: str = "gaussian", sigma: float = 1.0) -> Floats:
        """The proportions of pulls, (K,), that reach `characteristic_time`; equal ones where it is inf or 0."""
        return self._game(means, law, sigma).proportions

    def hardness(self, means: ArrayLike) -> dict[str, Any]:
        """The paper's complexity measures of one instance, means (K,) or (K, D). Here: `H`, the sum of margin^-2."""
        with np.errstate(divide="ignore", over="ignore"):
            return {"H": float((np.abs(self.margin(means)) ** -2.0).sum())}

    def lower_bound(self, means: ArrayLike, delta: float, *, law: str = "gaussian", sigma: float = 1.0) -> float:
        """Pulls that any algorithm correct with probability 1 - delta needs on average; NaN where none is known.

        Here: T* kl(delta, 1 - delta), with the `characteristic_time` T* (Garivier & Kaufmann 2016, Theorem 1), for
        arms of this law; of a problem of one's own NaN, unless it has an `evidence_routine`. Where several answers are
        correct, T* is that of the plug-in one, and the bound holds as delta goes to 0.

        Args:
            means: (K,) or (K, D), of one instance.
            delta: error probability in (0, 1).
            law, sigma: see `characteristic_time`; `quick_bound` tells whether it takes long. One that is defined for
                means and delta alone, by a problem of one's own, is taken for arms of all laws; or, with
                `unit_gaussian_bound`, for N(mean, 1) arms.
        """
        delta = number("delta", delta, 0, 1, above=True, below=True)
        if not self._tells_evidence:
            return math.nan
        least = (1 - 2 * delta) * math.log((1 - delta) / delta) if delta < 0.5 else 0.0
        return least * self.characteristic_time(means, law=law, sigma=sigma) if least > 0 else 0.0

    def quick_bound(self, K: int) -> bool:
        """Whether `lower_bound` of K arms takes about a second at most, and nothing has to be compiled for it."""
        return self.local or K <= 50

    def paper_lower_bound(self, means: ArrayLike, delta: float) -> float:
        """The lower bound of the problem's paper, for N(mean, 1) arms; NaN where it has none.

        Args:
            means: (K,). delta: error probability in (0, 1).
        """
        return math.nan


@jit
def _count(
    answer: Any, truth: Any, stride: Any, K: Any, must_in: Any, must_out: Any, misclassified: Any, ratios: Any
) -> Any:
    """Per answer: how many arms are misclassified, and precision, recall, F1."""
    K, stride = np.uint64(K), np.uint64(stride)
    for row in range(len(misclassified)):
        i = np.uint64(row)
        wrong = hits = size = right = 0
        for k in range(K):
            margin, taken = truth[i * stride + k], answer[i * K + k] != 0
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
    scores_arms = True

    @property
    def bands(self) -> tuple[float, float]:
        """(must_in, must_out). Here: the tolerance on both sides."""
        return self.tolerance, self.tolerance

    def verdict(self, answer: ArrayLike, truth: Floats) -> dict[str, NDArray[Any]]:
        mask = np.asarray(answer)
        K = truth.shape[-1]
        if mask.shape[-1:] != (K,):
            raise ValueError(f"an answer is a mask of {K} arms, got shape {mask.shape}")
        lead = np.broadcast_shapes(mask.shape[:-1], truth.shape[:-1])
        if mask.shape[:-1] != lead:
            mask = np.broadcast_to(mask, (*lead, K))
        shared = truth.size == K
        if not shared and truth.shape[:-1] != lead:
            truth = np.broadcast_to(truth, (*lead, K))
        misclassified, ratios = np.empty(lead, np.int64), np.empty((3, *lead))
        flat = mask.view(np.int8) if mask.dtype == np.bool_ and mask.flags.carray else np.array(mask, np.int8)
        _count(
            flat.reshape(-1),
            np.array(truth, np.float64, order="C").reshape(-1),
            0 if shared else K,
            K,
            *self.bands,
            misclassified.reshape(-1),
            ratios.reshape(3, -1),
        )
        verdict = {
            "correct": misclassified == 0,
            "misclassified": misclassified,
            "precision": ratios[0],
            "recall": ratios[1],
            "f1": ratios[2],
        }
        return verdict | {"score": self._score(verdict, K)}

    def _score(self, verdict: dict[str, NDArray[Any]], K: int) -> Floats:
        """The terminal reward, from the metrics: the share of arms that are classified correctly."""
        return 1.0 - verdict["misclassified"] / K
