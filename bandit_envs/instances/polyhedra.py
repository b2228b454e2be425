"""Polyhedra {x : Ax <= b} as pairs of lists (A, b), the form that `Feasible` takes: boxes, simplices, ordered ones.

`Polyhedra` draws arms around the boundary of a random one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import rng
from ..kernels.checks import Floats, integer, number
from .arms import Form
from .instance import Sampler

Rows = tuple[list[list[float]], list[float]]


def _rows(A: ArrayLike, b: ArrayLike) -> Rows:
    """A and b as lists of floats."""
    return (np.asarray(A, np.float64) + 0.0).tolist(), np.asarray(b, np.float64).tolist()  # + 0.0: no negative zeros


def cube(D: int) -> Rows:
    """The cube {x : 0 <= x_d <= 1}, 2 D rows."""
    return _rows(np.vstack([np.eye(D), -np.eye(D)]), np.repeat([1.0, 0.0], D))


def simplex(D: int, total: float) -> Rows:
    """The simplex {x : x_d >= 0, sum x <= total}, D + 1 rows."""
    return _rows(np.vstack([-np.eye(D), np.ones(D)]), np.append(np.zeros(D), total))


def ordered(D: int) -> Rows:
    """Points with increasing coordinates, {x : x_1 <= x_2 <= ... <= x_D}, D - 1 rows."""
    return _rows((np.eye(D) - np.eye(D, k=1))[:-1], np.zeros(D - 1))


def at_most(ends: ArrayLike) -> Rows:
    """Points below a corner, {x : x_d <= ends_d}, D rows."""
    b = np.asarray(ends, np.float64)
    return _rows(np.eye(len(b)), b)


def random_polyhedron(D: int, M: int, seed: int, centre: float = 0.0, radius: float = 1.0) -> Rows:
    """The intersection of M half-spaces with random normals, 1/2 to 1 `radius` away from (centre, .., centre)."""
    generator = np.random.default_rng(np.random.SeedSequence((seed, D, M)))
    A = generator.normal(size=(M, D))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    return _rows(A, A.sum(axis=1) * centre + radius * generator.uniform(0.5, 1.0, M))


class Polyhedra(Sampler):
    """Random arms on both sides of the boundary of a random polyhedron: Feasible, for training and testing.

    The polyhedron is the same in every episode, as an agent knows it; each `seed` names another one. Its hyperplanes,
    `rows` many, are r/2 to r away from its centre: the origin and r = 1, for Bernoulli arms, and others with means in
    [0, 1], (1/2, .., 1/2) and r = .3.
    A mean lies in a uniformly random direction from the centre, at 1 - reach to 1 + reach times the distance of the
    boundary (or of 2 r, where that is less), cut to the range that the distribution allows.

    Args:
        distribution: as in `Sampler`. arms: K. dimensions: D >= 2. rows: M >= 1; None: 2 D.
        seed: of the polyhedron. reach: in (0, 1].
        spread: standard deviation ("gaussian") or width ("uniform") of the arms.
        budget: pulls per episode; None: 20 per arm.
    """

    name = "polyhedra"
    positive = False

    def __init__(
        self,
        distribution: str = "gaussian",
        arms: int = 10,
        dimensions: int = 3,
        rows: int | None = None,
        seed: int = 0,
        reach: float = 0.5,
        spread: float = 0.5,
        budget: int | None = None,
    ) -> None:
        super().__init__(distribution, arms, {"choice": [0.5]}, integer("dimensions", dimensions, 2, 4096), spread)
        self.seed = integer("seed", seed, 0, 2**63 - 1)
        self.rows = 2 * self.D if rows is None else integer("rows", rows, 1, 2**20)
        self.reach, self.budget = number("reach", reach, 0, 1, above=True), budget
        bounded = type(self.arms).mean_range == (0.0, 1.0)
        self._centre, self._radius = (0.5, 0.3) if bounded else (0.0, 1.0)
        A, b = random_polyhedron(self.D, self.rows, self.seed, self._centre, self._radius)
        self._A = np.array(A)
        self._b = np.array(b) - self._centre * self._A.sum(axis=1)
        self.defaults = {"Feasible": {"A": A, "b": b, "budget": 20 * self.K if budget is None else budget}}

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
        means = np.clip(means, *type(self.arms).mean_range)
        return means, self.pack(means)

    def to_dict(self) -> Form:
        form = {"distribution": self.distribution, "arms": self.K, "dimensions": self.D}
        return {self.name: form | {name: getattr(self, name) for name in ("rows", "seed", "reach", "spread", "budget")}}
