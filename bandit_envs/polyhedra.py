"""Polyhedra {x : Ax <= b} as pairs of lists (A, b), the form that `Feasible` takes: boxes, simplices, ordered ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Rows", "at_most", "cube", "ordered", "random_polyhedron", "simplex"]

Rows = tuple[list[list[float]], list[float]]


def _rows(A: ArrayLike, b: ArrayLike) -> Rows:
    return (np.asarray(A, np.float64) + 0.0).tolist(), np.asarray(b, np.float64).tolist()  # + 0.0: no negative zeros


def cube(D: int) -> Rows:
    """{x : 0 <= x_d <= 1}, 2 D rows."""
    return _rows(np.vstack([np.eye(D), -np.eye(D)]), np.repeat([1.0, 0.0], D))


def simplex(D: int, total: float) -> Rows:
    """{x : x_d >= 0, sum x <= total}, D + 1 rows."""
    return _rows(np.vstack([-np.eye(D), np.ones(D)]), np.append(np.zeros(D), total))


def ordered(D: int) -> Rows:
    """{x : x_1 <= x_2 <= ... <= x_D}, D - 1 rows."""
    return _rows((np.eye(D) - np.eye(D, k=1))[:-1], np.zeros(D - 1))


def at_most(ends: ArrayLike) -> Rows:
    """{x : x_d <= ends_d}, D rows."""
    b = np.asarray(ends, np.float64)
    return _rows(np.eye(len(b)), b)


def random_polyhedron(D: int, M: int, seed: int, centre: float = 0.0, radius: float = 1.0) -> Rows:
    """M half-spaces with uniformly random normals, hyperplanes 1/2 to 1 `radius` away from (centre, .., centre)."""
    generator = np.random.default_rng(np.random.SeedSequence((seed, D, M)))
    A = generator.normal(size=(M, D))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    return _rows(A, A.sum(axis=1) * centre + radius * generator.uniform(0.5, 1.0, M))
