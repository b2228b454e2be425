"""Projections onto polyhedra of every kind of difficulty, and other methods that come to the same answer.

python tests/campaigns/projections.py     1000 polyhedra of each family; the default tests have six
"""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bandit_envs.kernels.geometry import GENERAL, HALF_SPACE, SIMPLEX, UNIT_BOX, Polyhedron

Floats = NDArray[np.float64]


def box(D: int, low: float = 0.0, high: float = 1.0) -> tuple[Floats, Floats]:
    return np.vstack([np.eye(D), -np.eye(D)]), np.repeat([high, -low], D)


def simplex(D: int, s: float) -> tuple[Floats, Floats]:
    return np.vstack([-np.eye(D), np.ones(D)]), np.append(np.zeros(D), s)


def ordered(D: int) -> tuple[Floats, Floats]:
    return (np.eye(D) - np.eye(D, k=1))[:-1], np.zeros(D - 1)


def kind(P: Polyhedron) -> int:
    return P._kernel[4]


def brute_force(A: Floats, b: Floats, x: Floats) -> Floats:
    """The nearest feasible one among the projections of x on the intersections of at most D of the hyperplanes."""
    best, shortest = x, np.inf
    for size in range(A.shape[1] + 1):
        for active in map(list, itertools.combinations(range(len(b)), size)):
            y = x - np.linalg.pinv(A[active], rcond=1e-9) @ (A[active] @ x - b[active]) if active else x
            distance = np.linalg.norm(y - x)
            if distance < shortest and (A @ y <= b + 1e-10).all():
                best, shortest = y, distance
    return best


@st.composite
def small_cases(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """Small integers, so that dependent, repeated and touching rows and points on the boundary are common."""
    D, M = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    integers = st.integers(-2, 2)
    A = draw(st.lists(st.lists(integers, min_size=D, max_size=D).filter(any), min_size=M, max_size=M))
    centre, x = (draw(st.lists(st.integers(-4, 4), min_size=D, max_size=D)) for _ in range(2))
    b = np.array(A) @ centre + draw(st.lists(st.integers(1, 2), min_size=M, max_size=M))  # centre is an inner point
    return np.array(A, float), b.astype(float), np.array(x, float)


def families(seed: int) -> dict[str, tuple[Floats, Floats]]:
    """One polyhedron of each kind of difficulty, D <= 24 and M <= 200 drawn at random; all have inner points."""
    rng = np.random.default_rng(seed)
    D, M = int(rng.integers(2, 25)), int(rng.integers(4, 201))
    A, b = rng.normal(size=(M, D)), np.abs(rng.normal(size=M)) + 0.01
    few, m = slice(0, max(1, min(M, D + 2) // 2)), M // 3 + 1
    again = rng.integers(0, m, M)
    weights = rng.random((M, m)) * (rng.random((M, m)) < 0.3) + 0.1 * np.eye(m)[np.arange(M) % m]
    centre, tip, corner = rng.normal(size=D), rng.normal(size=D), rng.normal(size=D)
    towards = A * -np.sign(A @ corner)[:, None]
    integer = rng.integers(-1, 2, size=(M, D)) + np.eye(D)[rng.integers(0, D, M)] * 3
    near = np.repeat(A[:m], 3, 0) + rng.normal(size=(3 * m, D)) * 10.0 ** rng.integers(-7, -2)
    every_pair = np.array([np.eye(D)[i] - np.eye(D)[j] for i, j in itertools.combinations(range(min(D, 14)), 2)])
    angle = np.arange(M) * 2 * np.pi / M
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=2 + D % 5)))
    return {
        "random": (A, b),
        "half-space": (A[:1], b[:1]),
        "unbounded": (A[few], A[few] @ centre + b[few]),
        "duplicated": (A[again] * (1 + again % 3)[:, None], b[again] * (1 + again % 3)),
        "redundant": (np.vstack([A[:m], weights @ A[:m]]), np.append(b[:m], weights @ b[:m])),
        "one vertex": (towards, towards @ tip),
        "integers": (integer, rng.integers(1, 3, size=M).astype(float)),
        "nearly parallel": (near, np.repeat(b[:m], 3) + 1e-3 * rng.random(3 * m)),
        "ordered": ordered(D),
        "ordered, all pairs": (every_pair, np.zeros(len(every_pair))),
        "polygon": (np.column_stack([np.cos(angle), np.sin(angle)]), np.ones(M)),
        "cross-polytope": (signs, np.ones(len(signs))),
        "box": box(D),
        "box with cuts": (np.vstack([box(D)[0], np.abs(integer[:5])]), np.append(box(D)[1], np.full(5, D / 3 + 1))),
        "simplex": simplex(D, 1 + b[0]),
    }


def points_around(P: Polyhedron, seed: int) -> Floats:
    rng = np.random.default_rng([seed, 1])
    x = rng.normal(size=(8, P.A.shape[1])) * np.array([0.1, 1, 1, 3, 3, 10, 10, 100])[:, None]
    return np.concatenate([x, np.round(x[:4])])


def check_library(P: Polyhedron, A: Floats, b: Floats, x: Floats) -> None:
    """Projection and margin against the quadratic-programming library DAQP, to 1e-9 of the size of x."""
    import daqp

    norms, (M, D) = np.linalg.norm(A, axis=1), A.shape
    rows, ends = np.ascontiguousarray(A / norms[:, None]), b / norms
    foot, margin = P.project(x), P.margin(x)
    for i in range(len(x)):
        lower, sense = np.full(M, -1e30), np.zeros(M, np.int32)
        y, _, flag, _ = daqp.solve(np.eye(D), -x[i], rows, ends, lower, sense, primal_tol=1e-13, dual_tol=1e-14)
        assert flag == 1
        tolerance = 1e-9 * max(1.0, np.linalg.norm(x[i]))
        np.testing.assert_allclose(foot[i], y, rtol=0, atol=tolerance)
        slack = (P.b - P.A @ x[i]).min()
        expected = slack if slack >= 0 else -np.linalg.norm(x[i] - y)
        np.testing.assert_allclose(margin[i], expected, rtol=0, atol=tolerance)


def check_family(name: str, seeds: range) -> None:
    for seed in seeds:
        A, b = families(seed)[name]
        P = Polyhedron(A, b, normalise=bool(seed % 2))
        check_library(P, A, b, points_around(P, seed))


def check_closed_form(name: str, closed: int, normalise: bool, seeds: range) -> None:
    """A redundant row, the last one again or for the box one far away, changes the method only."""
    for seed in seeds:
        A, b = families(seed)[name]
        extra = (A[-1:], b[-1:]) if name != "box" else (np.ones((1, A.shape[1])), [1e3])
        P = Polyhedron(A, b, normalise)
        twin = Polyhedron(np.vstack([A, extra[0]]), np.append(b, extra[1]), normalise)
        assert (kind(P), kind(twin)) == (closed, GENERAL)
        x = points_around(P, seed)
        tolerance = 1e-14 * (1 + np.abs(x).sum(1))
        assert (np.abs(P.project(x) - twin.project(x)) <= tolerance[:, None]).all()
        assert (np.abs(P.margin(x) - twin.margin(x)) <= tolerance).all()


def main() -> None:
    for name in families(0):
        check_family(name, range(1000))
    for name, closed in (("half-space", HALF_SPACE), ("box", UNIT_BOX), ("simplex", SIMPLEX)):
        for normalise in (True, False):
            check_closed_form(name, closed, normalise, range(1000))


if __name__ == "__main__":
    main()
