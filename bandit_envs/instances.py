"""Instances: the arms of an episode. Named ones from the papers, given ones, and samplers that draw them afresh.

`find` turns whatever the `instance` keyword of an environment accepts into an `Instance` or a `Sampler`.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import datasets, polyhedra, rng
from .arms import LARGEST, LAWS, Arms, Bernoulli, Gaussian, Resampled, Uniform, from_dict
from .checks import integer, number
from .naming import parse_call, unknown

__all__ = ["INSTANCES", "SAMPLERS", "Instance", "Polyhedra", "Sampler", "find", "names"]

Floats = NDArray[np.float64]
KINDS = {"uniform": 2, "normal": 2, "choice": 0, "around": 3}  # laws of the means, how many numbers each takes; 0: any


@dataclass(frozen=True, eq=False)
class Instance:
    """Fixed arms.

    Attributes:
        arms: their laws.
        name: for reports.
        defaults: {problem name: values of its parameters, `budget` and `delta`} that the source uses.
    """

    arms: Arms
    name: str = "instance"
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def K(self) -> int:
        return self.arms.K

    @property
    def D(self) -> int:
        return self.arms.D

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `find` reads."""
        return self.arms.to_dict()


class Sampler:
    """A fresh instance for each episode: independent, exchangeable arms with means from a given law.

    Args:
        law: "bernoulli", "gaussian" or "uniform".
        arms: K.
        mean: law of the means, one of {"uniform": [low, high]}, {"normal": [mean, sd]}, {"choice": [values ...]},
            {"around": [centre, least, most]}: at a distance from the centre, on either side, uniform on [least, most].
        dimensions: D.
        spread: standard deviation ("gaussian") or width ("uniform") of the arms.
    """

    name = "sampler"
    defaults: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def __init__(
        self,
        law: str = "bernoulli",
        arms: int = 10,
        mean: Mapping[str, Any] | None = None,
        dimensions: int = 1,
        spread: float = 1.0,
    ) -> None:
        samplable = {name: one for name, one in LAWS.items() if hasattr(one, "pack")}
        if not isinstance(law, str) or law not in samplable:
            raise ValueError(f"a sampler's law must be one of {sorted(samplable)}, got {law!r:.200}")
        self.law, self.K = law, integer("arms", arms, 2, rng.ARMS_LIMIT)
        self.D = integer("dimensions", dimensions, 1, 4096)
        self.spread = number("spread", spread, 0, LARGEST, above=True)
        mean = {"uniform": [0.0, 1.0]} if mean is None else mean
        if not isinstance(mean, Mapping) or len(mean) != 1 or next(iter(mean)) not in KINDS:
            forms = ", ".join(f'{{"{kind}": ..}}' for kind in KINDS)
            raise ValueError(f"mean must be one of {forms}, got {mean!r:.200}")
        self._kind, values = next(iter(mean.items()))
        if isinstance(values, (str, bytes)) or not np.iterable(values):
            raise ValueError(f"the law {self._kind!r} of the means takes a list of numbers, got {values!r}")
        self._values = [number(self._kind, value, -LARGEST, LARGEST) for value in values]
        count = KINDS[self._kind]
        if len(self._values) != count if count else not self._values:
            wanted = f"{count} numbers" if count else "at least one number"
            raise ValueError(f"the law {self._kind!r} of the means takes {wanted}, got {self._values}")
        if self._kind == "uniform" and not self._values[0] <= self._values[1]:
            raise ValueError(f"uniform means need low <= high, got {self._values}")
        if self._kind == "normal" and (self._values[1] <= 0 or law == "bernoulli"):
            raise ValueError(f"normal means need sd > 0 and arms that are not Bernoulli, got {self._values}, {law!r}")
        if self._kind == "around":
            centre, least, most = self._values
            if not 0 <= least <= most:
                raise ValueError(f"means around a centre need 0 <= least <= most, got {self._values}")
            self._range = centre - most, centre + most
        else:
            self._range = min(self._values), max(self._values)
        if law == "bernoulli" and not 0 <= self._range[0] <= self._range[1] <= 1:
            raise ValueError(f"the means of Bernoulli arms lie in [0, 1], got {self._values}")
        # Arms of the same law: they carry what is common to all instances (kernel code, support, scale, columns).
        ones = np.full((self.K, self.D) if self.D > 1 else self.K, self._values[0])
        self.arms = Bernoulli(ones) if law == "bernoulli" else samplable[law](ones, self.spread)  # type: ignore[call-arg]

    @property
    def positive(self) -> bool:
        """Whether every instance has a best mean > 0."""
        low, high = self._range
        return low >= 0 and high > 0 if self._kind == "uniform" else self._kind != "normal" and low > 0

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        """Means (E, K) or (E, K, D), and kernel parameters (E, K, P), of the episodes (E,) with keys (2, E)."""
        u = rng.uniforms(key, episode, self.K, self.D, stream=rng.INSTANCE)
        if self._kind == "uniform":
            low, high = self._values
            means = low + (high - low) * u
        elif self._kind == "around":
            centre, least, most = self._values
            side = 2.0 * u - 1.0
            means = centre + np.copysign(least + (most - least) * np.abs(side), side)
        elif self._kind == "normal":
            means = self._values[0] + self._values[1] * rng.normal_quantiles(u)
        else:
            means = np.array(self._values)[np.minimum((u * len(self._values)).astype(np.intp), len(self._values) - 1)]
        rows = type(self.arms).pack(means, self.spread)  # type: ignore[attr-defined]
        return (means[..., 0] if self.D == 1 else means), rows

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `find` reads."""
        form = {
            "law": self.law,
            "arms": self.K,
            "mean": {self._kind: self._values},
            "dimensions": self.D,
            "spread": self.spread,
        }
        return {"sampler": form}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()[self.name]})"


class Polyhedra(Sampler):
    """Random arms on both sides of the boundary of a random polyhedron: Feasible, for training and testing.

    The polyhedron is the same in every episode, as an agent knows it; each `seed` names another one. Its hyperplanes,
    `rows` many, are r/2 to r away from its centre: the origin and r = 1, for Bernoulli arms (1/2, .., 1/2) and r = .3.
    A mean lies in a uniformly random direction from the centre, at 1 - reach to 1 + reach times the distance of the
    boundary (or of 2 r, where that is less); for Bernoulli arms it is cut to [0, 1].

    Args:
        law: "bernoulli", "gaussian" or "uniform". arms: K. dimensions: D >= 2. rows: M >= 1; None: 2 D.
        seed: of the polyhedron. reach: in (0, 1].
        spread: standard deviation ("gaussian") or width ("uniform") of the arms.
        budget: pulls per episode; None: 20 per arm.
    """

    name = "polyhedra"

    def __init__(
        self,
        law: str = "gaussian",
        arms: int = 10,
        dimensions: int = 3,
        rows: int | None = None,
        seed: int = 0,
        reach: float = 0.5,
        spread: float = 0.5,
        budget: int | None = None,
    ) -> None:
        super().__init__(law, arms, {"choice": [0.5]}, integer("dimensions", dimensions, 2, 4096), spread)
        self.seed = integer("seed", seed, 0, 2**63 - 1)
        self.rows = 2 * self.D if rows is None else integer("rows", rows, 1, 2**20)
        self.reach, self.budget = number("reach", reach, 0, 1, above=True), budget
        self._centre, self._radius = (0.5, 0.3) if law == "bernoulli" else (0.0, 1.0)
        A, b = polyhedra.random_polyhedron(self.D, self.rows, self.seed, self._centre, self._radius)
        self._A = np.array(A)
        self._b = np.array(b) - self._centre * self._A.sum(axis=1)
        self.defaults = {"Feasible": {"A": A, "b": b, "budget": 20 * self.K if budget is None else budget}}

    @property
    def positive(self) -> bool:
        return False

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        u = rng.uniforms(key, episode, self.K, self.D + 1, stream=rng.INSTANCE)
        direction = rng.normal_quantiles(u[..., :-1])
        # Sums in a loop: those of NumPy and BLAS may round differently in batches of different sizes.
        along, square = np.zeros((*u.shape[:2], self.rows)), np.zeros(u.shape[:2])
        for d in range(self.D):
            along += direction[..., d, None] * self._A[:, d]
            square += direction[..., d] * direction[..., d]
        length = np.sqrt(square)
        with np.errstate(divide="ignore"):
            boundary = np.where(along > 0, length[..., None] * self._b / along, np.inf).min(axis=-1)
        distance = np.minimum(boundary, 2 * self._radius) * (1 + self.reach * (2 * u[..., -1] - 1))
        means = self._centre + direction * (distance / length)[..., None]
        if self.law == "bernoulli":
            means = np.clip(means, 0.0, 1.0)
        return means, type(self.arms).pack(means, self.spread)  # type: ignore[attr-defined]

    def to_dict(self) -> dict[str, Any]:
        form = {
            "law": self.law,
            "arms": self.K,
            "dimensions": self.D,
            "rows": self.rows,
            "seed": self.seed,
            "reach": self.reach,
            "spread": self.spread,
            "budget": self.budget,
        }
        return {self.name: form}


SAMPLERS: dict[str, type[Sampler]] = {kind.name: kind for kind in (Sampler, Polyhedra)}


# --- named instances -----------------------------------------------------------------------------------------------

_CHEN = "Chen, Chen, Zhang & Zhou, ICML 2017, section 3"
_STONE = "Kalyanakrishnan & Stone, ICML 2010, section 5"
_TAO = "Tao, Blanco, Peng & Zhou, NeurIPS 2019, section 5"


def _tao(number: int) -> Callable[[], Instance]:
    """The three set-ups of Tao et al. 2019; the budgets are the largest of Figure 1."""
    step = np.arange(4) * 5
    means, budget = {
        1: (np.concatenate([20 + step, [45, 55], 65 + step]) / 100, 1_000),
        2: ((405 + 10 * np.arange(20)) / 1000, 40_000),
        3: (np.repeat([0.45, 0.505], 5), 100_000),
    }[number]
    defaults = {"Threshold": {"threshold": 0.5, "budget": budget}}
    return lambda: Instance(Bernoulli(means), f"tao2019-{number}", defaults)


def _captions(contest: int) -> Callable[..., Instance]:
    def build(folder: str | None = None) -> Instance:
        defaults = {"AllGood": {"epsilon": 0.1, "multiplicative": True, "delta": 0.1}}
        return Instance(datasets.captions(contest, folder).arms(), f"captions-{contest}", defaults)

    return build


def _mason_3a(n: int = 25) -> Instance:
    """Figure 3, left: means 2.4, 2.3, ..., 0 in turn; epsilon .75 makes alpha = beta = .05."""
    means = 2.4 - 0.1 * (np.arange(integer("n", n, 2, rng.ARMS_LIMIT)) % 25)
    return Instance(Gaussian(means), f"mason2020-3a(n={n})", {"AllGood": {"epsilon": 0.75, "delta": 0.1}})


def _mason_3b(n: int = 20) -> Instance:
    """Figure 3, right: n - 1 arms at 1 and one at 0; epsilon .99 makes alpha = .99, beta = .01."""
    means = np.append(np.ones(integer("n", n, 2, rng.ARMS_LIMIT) - 1), 0.0)
    return Instance(Gaussian(means), f"mason2020-3b(n={n})", {"AllGood": {"epsilon": 0.99, "delta": 0.01}})


def _kinase(folder: str | None = None) -> Instance:
    defaults = {"AllGood": {"epsilon": 0.8, "multiplicative": True, "delta": 0.001}}
    return Instance(Gaussian(datasets.inhibitors("ACVRL1", folder)), "kinase-acvrl1", defaults)


_KATZ = "Katz-Samuels & Scott, ICML 2018"


def _feasible(arms: Arms, name: str, rows: polyhedra.Rows, budget: int, **more: Any) -> Instance:
    """Arms, and the polyhedron that they are judged by."""
    return Instance(arms, name, {"Feasible": {"A": rows[0], "b": rows[1], "budget": budget, **more}})


def _groups(*groups: tuple[int, ArrayLike]) -> Gaussian:
    """20 arms with variance 1/4 in 5 dimensions: so many at each mean, a vector or the value of all coordinates."""
    return Gaussian(np.concatenate([np.tile(np.broadcast_to(mean, 5), (n, 1)) for n, mean in groups]), 0.5)


def _katz(experiment: int, tolerance: float) -> Callable[..., Instance]:
    """Experiments 1 to 3, on the cube [0, 1]^5."""
    steps = [0.05 * i for i in range(4)]
    arms = {
        1: _groups((2, 0.8), (2, 0.9), (2, 1.1), (2, 1.2), (1, 0.975), (1, 1.025), (10, 0.3)),
        2: _groups((2, 0.8), (2, 0.9), (2, 1.1), (2, 1.2), (1, 0.95), (1, 1.05), (10, 0.3)),
        3: _groups(
            *((1, 0.75 + s) for s in steps), (1, 0.975), (1, 1.025), *((1, 1.25 - s) for s in steps), (10, 1.15)
        ),
    }[experiment]

    def build(tolerance: float = tolerance) -> Instance:
        return _feasible(arms, f"katz-samuels2018-{experiment}", polyhedra.cube(5), 2000, tolerance=tolerance)

    return build


def _katz_simplex(normalise: bool = False) -> Instance:
    """Experiment 4, on {x >= 0, sum x <= 2}, as written: with rows of norm 1 its good arms would be irrelevant at .1.

    `normalise=True`: rows of norm 1, and the tolerance .1 / sqrt(5).
    """
    arms = _groups((5, 0.2), (5, 1.85 * 0.2), (5, 2.25 * 0.2), (5, 1.95 * 0.2))
    tolerance = 0.1 / math.sqrt(5) if normalise else 0.1
    rows = polyhedra.simplex(5, 2.0)
    return _feasible(arms, "katz-samuels2018-4", rows, 2000, tolerance=tolerance, normalise=normalise)


def _katz_ordered() -> Instance:
    """Experiment 5, on {x_1 <= .. <= x_5}."""
    means = (
        [0, 0.2, 0.4, 0.6, 0.8],
        [0, 0.15, 0.3, 0.45, 0.6],
        [0, 0.2, 0.15, 0.6, 0.8],
        [0, 0.2, 0.05, 0.6, 0.8],
        [0, 0.2, 0.4, 0.2, 0],
    )
    arms = _groups(*((4, mean) for mean in means))
    return _feasible(arms, "katz-samuels2018-5", polyhedra.ordered(5), 2000, tolerance=0.1)


def _dose_finding() -> Instance:
    """Section 7.2: 25, 75, 150, 300 mg of secukinumab, placebo; effective in at least .4, adverse in at most .5."""
    means = [[0.34, 0.519], [0.469, 0.612], [0.465, 0.465], [0.537, 0.61], [0.36, 0.58]]
    return _feasible(Bernoulli(means), "dose-finding", ([[-1.0, 0.0], [0.0, 1.0]], [-0.4, 0.5]), 1000, tolerance=0.0)


def _crowdsourcing(gaussian: bool = False, folder: str | None = None) -> Instance:
    """Section 7.3: workers at most as far from the experts as the average worker, on each of 7 scales.

    `gaussian=True`: the simulation of section J, independent normal coordinates with each worker's means and standard
    deviations.
    """
    data = Resampled(datasets.emotions(folder))
    arms = Gaussian(data.means, np.sqrt(data.variances)) if gaussian else data
    return _feasible(arms, "crowdsourcing", polyhedra.at_most(data.means.mean(axis=0)), 4000, tolerance=0.02)


def _chen(name: str, profile: Callable[[int, int], Floats]) -> Callable[..., Instance]:
    """An instance of Chen et al. 2017: n Bernoulli arms, the best first, of which K are wanted."""

    def build(n: int = 1000, K: int = 100) -> Instance:
        n = integer("n", n, 2, rng.ARMS_LIMIT)
        K = integer("K", K, 1, n - 1)
        defaults = {"TopK": {"k": K, "epsilon": 0.01, "criterion": "aggregate", "delta": 0.01}}
        return Instance(Bernoulli(profile(n, K)), f"chen2017-{name}(n={n}, K={K})", defaults)

    return build


def _two_group(n: int, K: int) -> Floats:
    return np.where(np.arange(n) < K, 0.7, 0.3)


def _even(n: int, K: int) -> Floats:
    """1 - i/n."""
    return np.arange(n - 1, -1, -1) / n


def _synthetic(p: float) -> Callable[[int, int], Floats]:
    """Means that crowd at the boundary 1 - K/n for p > 1, and keep away from it for p < 1; p = 1 gives 1 - i/n."""

    def profile(n: int, K: int) -> Floats:
        best, rest = np.arange(1, K + 1), np.arange(1, n - K + 1)
        boundary = (n - K) / n
        above = boundary + K / n * (1 - best / K) ** p
        below = boundary * (1 - (rest / (n - K)) ** p)
        return np.concatenate([above, below])

    return profile


def _stone(name: str, n: int, k: int, epsilon: float, law: type[Gaussian | Uniform]) -> Callable[..., Instance]:
    """n arms with means drawn once from U[0, 1] and standard deviation 1."""

    def build(seed: int = 0) -> Instance:
        word = np.zeros(1, np.uint64)
        u = rng.uniforms(rng.root_key(rng.root_number(seed))[:, None], word, n, stream=rng.INSTANCE)
        arms = law(u[0, :, 0], 1.0 if law is Gaussian else np.sqrt(12.0))
        defaults = {"TopK": {"k": k, "epsilon": epsilon, "criterion": "each", "delta": 0.15}}
        return Instance(arms, f"{name}(seed={seed})", defaults)

    return build


@dataclass(frozen=True)
class Row:
    """A named instance of the catalogue: how it is built, for which problem it was made, and where it comes from."""

    build: Callable[..., Instance]
    problem: str
    source: str
    data: bool = False


INSTANCES: dict[str, Row] = {
    "tao2019-1": Row(_tao(1), "Threshold", f"{_TAO}, set-up 1: arithmetic progression I, 10 arms"),
    "tao2019-2": Row(_tao(2), "Threshold", f"{_TAO}, set-up 2: arithmetic progression II, 20 arms"),
    "tao2019-3": Row(_tao(3), "Threshold", f"{_TAO}, set-up 3: two groups, 10 arms"),
    "mason2020-3a": Row(_mason_3a, "AllGood", "Mason et al., NeurIPS 2020, Figure 3 left: n Gaussian arms"),
    "mason2020-3b": Row(_mason_3b, "AllGood", "Mason et al., NeurIPS 2020, Figure 3 right: n Gaussian arms"),
    "captions-651": Row(_captions(651), "AllGood", "Mason et al., NeurIPS 2020: caption contest 651, 9250 arms", True),
    "captions-627": Row(_captions(627), "AllGood", "Mason et al., NeurIPS 2020: caption contest 627, 6509 arms", True),
    "kinase-acvrl1": Row(_kinase, "AllGood", "Mason et al., NeurIPS 2020: inhibitors of ACVRL1, 189 arms", True),
    "katz-samuels2018-1": Row(
        _katz(1, 0.075), "Feasible", f"{_KATZ}, experiment 1: four groups, irrelevant arms, cube"
    ),
    "katz-samuels2018-2": Row(_katz(2, 0.0), "Feasible", f"{_KATZ}, experiment 2: four groups, cube"),
    "katz-samuels2018-3": Row(_katz(3, 0.075), "Feasible", f"{_KATZ}, experiment 3: linear progression, cube"),
    "katz-samuels2018-4": Row(_katz_simplex, "Feasible", f"{_KATZ}, experiment 4: four groups, simplex"),
    "katz-samuels2018-5": Row(_katz_ordered, "Feasible", f"{_KATZ}, experiment 5: ordered polyhedron"),
    "dose-finding": Row(_dose_finding, "Feasible", f"{_KATZ}, section 7.2: doses of secukinumab, 5 arms"),
    "crowdsourcing": Row(_crowdsourcing, "Feasible", f"{_KATZ}, section 7.3: 38 workers, 7 scales", True),
    "chen2017-two-group": Row(_chen("two-group", _two_group), "TopK", f"{_CHEN}: K arms at .7, the rest at .3"),
    "chen2017-uniform": Row(_chen("uniform", _even), "TopK", f"{_CHEN}: means 1 - i/n"),
    "chen2017-synthetic-0.5": Row(_chen("synthetic-0.5", _synthetic(0.5)), "TopK", f"{_CHEN}: far from the boundary"),
    "chen2017-synthetic-6": Row(_chen("synthetic-6", _synthetic(6)), "TopK", f"{_CHEN}: means close to the boundary"),
    "kalyanakrishnan2010": Row(
        _stone("kalyanakrishnan2010", 50, 15, 0.1, Uniform), "TopK", f"{_STONE}: 50 uniform arms, k = 15"
    ),
    "kalyanakrishnan2010-small": Row(
        _stone("kalyanakrishnan2010-small", 10, 3, 0.0, Uniform), "TopK", f"{_STONE}: 10 uniform arms, k = 3"
    ),
    "kalyanakrishnan2010-gaussian": Row(
        _stone("kalyanakrishnan2010-gaussian", 50, 15, 0.0, Gaussian), "TopK", f"{_STONE}: 50 Gaussian arms, k = 15"
    ),
}


def names() -> list[str]:
    """The names that the `instance` keyword accepts, samplers first."""
    return [*SAMPLERS, *INSTANCES]


def find(source: Any) -> Instance | Sampler:
    """The instance or sampler behind `source`.

    Args:
        source: None (the default sampler), a name, possibly with parameters ("sampler(arms=20)"), a dict in JSON form
            ({"law": "bernoulli", "mean": [.2, .7]} or {"sampler": {...}}), `Arms`, an `Instance` or a `Sampler`.

    Raises:
        ValueError: for unknown names (with the nearest known ones) and malformed forms.
    """
    if source is None:
        return Sampler()
    if isinstance(source, (Instance, Sampler)):
        return source
    if isinstance(source, Arms):
        return Instance(source)
    if isinstance(source, str):
        name, parameters = parse_call(source)
        if name not in names():
            raise unknown("instance", name, names())
        build: Callable[..., Instance | Sampler] = SAMPLERS.get(name) or INSTANCES[name].build
        try:
            inspect.signature(build).bind(**parameters)
        except TypeError as error:
            raise ValueError(f"instance {name!r}: {error}") from None
        return build(**parameters)
    if isinstance(source, Mapping):
        if len(source) == 1 and (name := next(iter(source))) in SAMPLERS:
            form = source[name]
            if not isinstance(form, Mapping):
                raise ValueError(f"{name!r} must hold the parameters of a sampler, got {form!r}")
            try:
                inspect.signature(SAMPLERS[name]).bind(**form)
            except TypeError as error:
                raise ValueError(f"{name}: {error}") from None
            return SAMPLERS[name](**copy.deepcopy(dict(form)))
        return Instance(from_dict(dict(source)))
    raise ValueError(f"instance must be a name, a dict, Arms, an Instance or a Sampler, got {source!r:.200}")
