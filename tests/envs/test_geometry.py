"""Polyhedra: worked cases, a brute-force twin, a quadratic-programming library, and the properties of a projection."""

from __future__ import annotations

import copy
import itertools
import pickle
import sys
from dataclasses import FrozenInstanceError
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bandit_envs.kernels import geometry
from bandit_envs.kernels.geometry import BOX, GENERAL, HALF_SPACE, SIMPLEX, UNIT_BOX, Polyhedron

Floats = NDArray[np.float64]
ROOT2 = np.sqrt(2.0)


def box(D: int, low: float = 0.0, high: float = 1.0) -> tuple[Floats, Floats]:
    return np.vstack([np.eye(D), -np.eye(D)]), np.repeat([high, -low], D)


def simplex(D: int, s: float) -> tuple[Floats, Floats]:
    return np.vstack([-np.eye(D), np.ones(D)]), np.append(np.zeros(D), s)


def ordered(D: int) -> tuple[Floats, Floats]:
    return (np.eye(D) - np.eye(D, k=1))[:-1], np.zeros(D - 1)


def kind(P: Polyhedron) -> int:
    return P._kernel[4]


# Worked cases ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalise", [True, False])
def test_half_space(normalise: bool) -> None:
    P = Polyhedron([[1, 1]], [2], normalise)
    assert kind(P) == HALF_SPACE
    inside = ROOT2 if normalise else 2.0  # 2 - 0 on the row as written, / |(1, 1)| on the row of norm 1
    x = [[0, 0], [3, 3], [3, 0], [1, 1]]
    # (3, 3): (6 - 2) / sqrt 2 = 2 sqrt 2, foot (3, 3) - 2 (1, 1);  (3, 0): (3 - 2) / sqrt 2, foot (3, 0) - .5 (1, 1)
    np.testing.assert_allclose(P.margin(x), [inside, -2 * ROOT2, -ROOT2 / 2, 0], atol=1e-15)
    np.testing.assert_allclose(P.project(x), [[0, 0], [1, 1], [2.5, -0.5], [1, 1]], atol=1e-15)
    assert P.contains(x).tolist()[:3] == [True, False, False]


def test_unit_square() -> None:
    P = Polyhedron(*box(2))
    assert kind(P) == UNIT_BOX
    x = [[0.25, 0.5], [0.5, 0.5], [1, 0.5], [1, 1], [2, 0.5], [2, 2], [-3, 5]]
    # nearest wall .25 and .5; on a wall; on a corner; 1 beside a wall; corner (1, 1); corner (0, 1): 3, 4 -> 5
    np.testing.assert_allclose(P.margin(x), [0.25, 0.5, 0, 0, -1, -ROOT2, -5], atol=1e-15)
    assert P.project(x).tolist() == [[0.25, 0.5], [0.5, 0.5], [1, 0.5], [1, 1], [1, 0.5], [1, 1], [0, 1]]
    assert P.contains(x).tolist() == [True] * 4 + [False] * 3


def test_box_with_repeated_and_scaled_rows() -> None:
    # 2x <= 4, x <= 3, -4x <= 4, y <= 1: the unbounded box [-1, 2] x (-inf, 1]
    A, b = [[2, 0], [1, 0], [-4, 0], [0, 1]], [4, 3, 4, 1]
    x = [[-0.75, 0], [5, 2], [-2, -9]]
    # slacks at (-.75, 0): as written 5.5, 3.75, 1, 1, scaled 2.75, 3.75, .25, 1
    for normalise, inside in ((True, 0.25), (False, 1.0)):
        P = Polyhedron(A, b, normalise)
        assert kind(P) == (UNIT_BOX if normalise else BOX)
        np.testing.assert_allclose(P.margin(x), [inside, -np.sqrt(10), -1], atol=1e-15)  # (3, 1) away; 1 away
        assert P.project(x).tolist() == [[-0.75, 0], [2, 1], [-1, -9]]


def test_simplex() -> None:
    P = Polyhedron(*simplex(3, 1.0))
    assert kind(P) == SIMPLEX
    x = [[0.2, 0.3, 0.4], [-1, 0.5, -2], [1, 1, 1], [2, 0.5, -7], [1, 0.5, -1]]
    # slacks .2, .3, .4 and .1 / sqrt 3;  negative parts leave (0, .5, 0);  shift (3 - 1) / 3;
    # shift (2.5 - 1) / 2 = .75 > .5, then (2 - 1) / 1 = 1;  shift (1.5 - 1) / 2 = .25
    foot = [[0.2, 0.3, 0.4], [0, 0.5, 0], [1 / 3, 1 / 3, 1 / 3], [1, 0, 0], [0.75, 0.25, 0]]
    np.testing.assert_allclose(P.project(x), foot, atol=1e-15)
    distance = [0.1 / np.sqrt(3), -np.sqrt(5), -np.sqrt(4 / 3), -np.sqrt(50.25), -np.sqrt(1.125)]
    np.testing.assert_allclose(P.margin(x), distance, atol=1e-15)


def test_ordered_polyhedron_is_isotonic_regression() -> None:
    P = Polyhedron(*ordered(4))
    assert kind(P) == GENERAL
    x = [[1, 3, 2, 4], [4, 3, 2, 1], [3, 1, 2, 5], [0, 1, 3, 4]]
    # pools (3, 2);  all four;  3, 1 -> 2, 2 then 2;  none: smallest gap 1 / sqrt 2
    np.testing.assert_allclose(P.project(x), [[1, 2.5, 2.5, 4], [2.5] * 4, [2, 2, 2, 5], [0, 1, 3, 4]], atol=1e-15)
    np.testing.assert_allclose(P.margin(x), [-np.sqrt(0.5), -np.sqrt(5), -ROOT2, 1 / ROOT2], atol=1e-15)


def test_first_active_row_must_leave() -> None:
    """y <= 0 is violated most at (0, 1), 1 against 1.1 / sqrt 2, but the foot (0, -.1) lies on the two other rows."""
    P = Polyhedron([[0, 1], [1, 1], [-1, 1]], [0, -0.1, -0.1])
    np.testing.assert_allclose(P.project([0, 1]), [0, -0.1], atol=1e-15)
    np.testing.assert_allclose(P.margin([0, 1]), -1.1, atol=1e-15)


def test_dependent_row_makes_another_leave() -> None:
    """x <= 0 and y <= 0 hold with equality at the foot of (2, 2); x + y <= -1, dependent on both, moves it on."""
    P = Polyhedron([[1, 0], [0, 1], [1, 1], [1, 1], [2, 2]], [0, 0, -1, 0, -2])
    # (3, 1): (3 + 1 + 1) / 2 = 2.5 along (1, 1) gives (.5, -1.5), x <= 0 then (0, -1)
    np.testing.assert_allclose(P.project([[2, 2], [3, 1]]), [[-0.5, -0.5], [0, -1]], atol=1e-15)


@pytest.mark.parametrize("D", [3, 6, 20])
def test_nearly_parallel_rows(D: int) -> None:
    """x_1 + h x_k <= 0 for k = 2 .. D, h = 1e-5; the error is that of rounding (1e-16 |x|) divided by h.

    From (2, -1, .., -1) all are active: the foot is on the line s (-h, 1, .., 1), s = (-2h - (D - 1)) / (h^2 + D - 1).
    """
    h = 1e-5
    P = Polyhedron(np.column_stack([np.ones(D - 1), h * np.eye(D - 1)]), np.zeros(D - 1))
    s = (-2 * h - (D - 1)) / (h**2 + D - 1)
    foot = P.project(np.append(2.0, np.full(D - 1, -1.0)))
    np.testing.assert_allclose(foot, s * np.append(-h, np.ones(D - 1)), rtol=0, atol=1e-10)


# Corners --------------------------------------------------------------------------------------------------------------

EACH_KIND = {
    "half-space": ([[1.0, 2.0, 2.0]], [3.0]),
    "box": box(3),
    "simplex": simplex(3, 2.0),
    "general": ordered(3),
}


@pytest.mark.parametrize("name", EACH_KIND)
def test_batch_axes(name: str) -> None:
    P = Polyhedron(*EACH_KIND[name])
    x = 2 * np.random.default_rng(0).normal(size=(4, 6, 3))
    margin, foot, inside = P.margin(x), P.project(x), P.contains(x)
    assert (margin.shape, foot.shape, inside.shape, inside.dtype) == ((4, 6), (4, 6, 3), (4, 6), np.dtype(bool))
    for i in np.ndindex(4, 6):
        assert P.margin(x[i]).shape == P.contains(x[i]).shape == ()
        assert P.margin(x[i]) == margin[i]
        assert P.contains(x[i]) == inside[i]
        assert (P.project(x[i]) == foot[i]).all()
    assert P.margin(np.empty((0, 3))).shape == P.contains(np.empty((0, 3))).shape == (0,)
    assert P.project(np.empty((2, 0, 3))).shape == (2, 0, 3)
    assert (foot[inside] == x[inside]).all()


@pytest.mark.parametrize("name", EACH_KIND)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_points_that_are_not_finite(name: str, value: float) -> None:
    P = Polyhedron(*EACH_KIND[name])
    x = np.zeros((2, 3))
    x[0, 1] = value
    assert P.contains(x).tolist() == [False, True]
    assert np.isnan(P.margin(x)).tolist() == [True, False]
    assert np.isnan(P.project(x)).tolist() == [[True] * 3, [False] * 3]


@pytest.mark.parametrize("name", EACH_KIND)
@pytest.mark.parametrize("normalise", [True, False])
def test_contains_is_the_sign_of_all_slacks_to_the_last_bit(name: str, normalise: bool) -> None:
    P = Polyhedron(*EACH_KIND[name], normalise=normalise)
    foot = P.project(3 * np.random.default_rng(1).normal(size=(500, 3)))
    x = np.concatenate([foot, np.nextafter(foot, np.inf), np.nextafter(foot, -np.inf)])
    assert np.abs(P.margin(x)).max() > 0
    slack = P.b - sum(x[:, d, None] * P.A[:, d] for d in range(3))
    assert ((slack >= 0).all(axis=1) == P.contains(x)).all()
    assert 0 < P.contains(x).sum() < len(x)


def test_one_dimension() -> None:
    P = Polyhedron([[2], [-1]], [6, 1])  # [-1, 3]
    assert P.margin([[-2], [-1], [0], [3], [5]]).tolist() == [-1, 0, 1, 0, -2]
    assert P.project([[-2], [5]]).tolist() == [[-1], [3]]


def test_rows_are_scaled_only_on_request() -> None:
    A, b = [[3, 4], [0, -2]], [10, 1]
    scaled, written = Polyhedron(A, b), Polyhedron(A, b, normalise=False)
    assert (scaled.A.tolist(), scaled.b.tolist()) == ([[0.6, 0.8], [0, -1]], [2, 0.5])
    assert (written.A.tolist(), written.b.tolist()) == (A, b)
    assert (scaled.normalise, written.normalise) == (True, False)
    tiny = Polyhedron([[3e-200, 4e-200]], [10e-200])
    np.testing.assert_allclose(tiny.A, [[0.6, 0.8]], rtol=1e-15)  # the square of 4e-200 would underflow


def test_frozen_and_independent_of_its_arguments() -> None:
    A, b = ordered(3)
    P, x = Polyhedron(A, b), np.array([3.0, 1.0, 2.0])
    A[:], b[:] = 9, -9
    assert P.project(x).tolist() == pytest.approx([2, 2, 2])
    assert x.tolist() == [3, 1, 2]
    with pytest.raises(FrozenInstanceError):
        P.b = b
    for array in (P.A, P.b):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("name", EACH_KIND)
@pytest.mark.parametrize("normalise", [True, False])
def test_pickle_and_copy(name: str, normalise: bool) -> None:
    P = Polyhedron(*EACH_KIND[name], normalise=normalise)
    x = np.random.default_rng(2).normal(size=(50, 3))
    for twin in (pickle.loads(pickle.dumps(P)), copy.deepcopy(P), copy.copy(P)):
        assert twin.normalise == normalise
        for ours, theirs in ((twin.A, P.A), (twin.b, P.b)):
            assert (ours == theirs).all()
            assert not ours.flags.writeable
        assert (twin.margin(x) == P.margin(x)).all()
        assert (twin.project(x) == P.project(x)).all()


def test_kernels_have_one_signature() -> None:
    x = np.random.default_rng(3).normal(size=(8, 3))
    read_only = x.copy()
    read_only.setflags(write=False)
    unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(8, 3)
    other = [x.tolist(), np.asfortranarray(x), np.repeat(x, 2, 0)[::2], read_only, unaligned, x.astype(">f8"), x[None]]
    for A, b in EACH_KIND.values():
        P = pickle.loads(pickle.dumps(Polyhedron(A, b, normalise=False)))
        for points in other:
            assert (P.margin(points) == P.margin(x)).all()
            assert (P.project(points) == P.project(x)).all()
            assert (P.contains(points) == P.contains(x)).all()
        P.margin(x.astype(np.float32)), P.margin(np.ones(3, int))
    assert len(geometry._measure.compiled.signatures) == 1


# Bad input ------------------------------------------------------------------------------------------------------------


SLAB = np.array([[1.0, 2.0], [-1.0, -2.0]])
TRIANGLE = np.array([[1.0, 1.0], [-2.0, 1.0], [1.0, -3.0]])


@pytest.mark.parametrize(
    ("A", "b"),
    [
        (TRIANGLE, TRIANGLE @ [4, 5] + 1e-6),  # a small triangle away from the origin
        (np.vstack([ordered(4)[0], [[-1, 0, 0, 1]]]), [0, 0, 0, 1]),  # unbounded along (1, 1, 1, 1)
        ([[1, -1], [-2, 1], [-1, 0]], [0, 0, -2]),  # an unbounded cone cut off at its tip
        (SLAB, [3, -2.9]),
    ],
)
def test_volume_by_linear_program(A: Floats, b: Floats) -> None:
    pytest.importorskip("scipy", reason="the volume of these is decided by a linear program of SciPy")
    assert Polyhedron(A, b).margin(np.zeros(np.shape(A)[1])) <= 0


@pytest.fixture
def no_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)


@pytest.mark.usefixtures("no_scipy")
def test_simple_polyhedra_need_no_scipy() -> None:
    for A, b in [*EACH_KIND.values(), box(4, 1.0, 2.0), ordered(5), ([[1, 1], [-1, -1]], [2, 1])]:
        P = Polyhedron(A, b)
        P.margin(np.full(P.A.shape[1], 9.0))
    with pytest.raises(ImportError, match=r'pip install "\.\[evaluation\]"'):
        Polyhedron(SLAB, [3, -2])


# Against other ways to the same answer --------------------------------------------------------------------------------


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


@settings(max_examples=100, deadline=None)
@given(small_cases(), st.booleans())
@example((np.array([[0, 1], [1, 1], [-1, 1]], float), np.array([0.0, -1, -1]), np.array([0.0, 9])), True)
def test_small_cases_by_brute_force(case: tuple[Floats, Floats, Floats], normalise: bool) -> None:
    A, b, x = case
    pytest.importorskip("scipy", reason="the volume of some of these is decided by a linear program of SciPy")
    P, foot = Polyhedron(A, b, normalise), brute_force(A, b, x)
    np.testing.assert_allclose(P.project(x), foot, atol=1e-12)
    slack = (b - A @ x) / (np.linalg.norm(A, axis=1) if normalise else 1.0)
    expected = slack.min() if slack.min() >= 0 else -np.linalg.norm(x - foot)
    np.testing.assert_allclose(P.margin(x), expected, atol=1e-12)


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


SEEDS = 6


def points_around(P: Polyhedron, seed: int) -> Floats:
    rng = np.random.default_rng([seed, 1])
    x = rng.normal(size=(8, P.A.shape[1])) * np.array([0.1, 1, 1, 3, 3, 10, 10, 100])[:, None]
    return np.concatenate([x, np.round(x[:4])])


@pytest.mark.parametrize("name", families(0))
def test_quadratic_programming_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Projection and margin against DAQP, to 1e-9 of the size of x; 6 polyhedra of each family, 12 points each."""
    monkeypatch.delattr(Polyhedron, "_least_distance")  # no point may reach the step limit
    daqp = pytest.importorskip("daqp", reason="the reference is the quadratic-programming library daqp")
    for seed in range(SEEDS):
        A, b = families(seed)[name]
        norms = np.linalg.norm(A, axis=1)
        rows, ends = np.ascontiguousarray(A / norms[:, None]), b / norms
        P = Polyhedron(A, b, normalise=bool(seed % 2))
        M, D = P.A.shape
        x = points_around(P, seed)
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


@pytest.mark.parametrize("name", families(0))
def test_properties_of_a_projection(name: str) -> None:
    """Feasible, idempotent, the variational inequality (x - y)'(z - y) <= 0 for z in P, 1-Lipschitz."""
    for seed in range(SEEDS):
        A, b = families(seed)[name]
        P = Polyhedron(A, b)
        x = points_around(P, seed)
        y, size = P.project(x), np.linalg.norm(x, axis=1)[:, None] + 1.0
        assert (P.b - y @ P.A.T >= -1e-12 * size).all()
        assert (np.abs(P.project(y) - y) <= 1e-11 * size).all()
        assert ((x - y) @ y.T - ((x - y) * y).sum(1)[:, None] <= 1e-10 * size * size.T).all()
        between = np.linalg.norm(x[:, None] - x, axis=-1) + 1e-11 * (size + size.T)
        assert (np.linalg.norm(y[:, None] - y, axis=-1) <= between).all()
        margin = P.margin(x)
        assert (np.abs(margin[:, None] - margin) <= between).all()
        assert ((margin >= 0) == P.contains(x)).all()


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(("name", "closed"), [("half-space", HALF_SPACE), ("box", UNIT_BOX), ("simplex", SIMPLEX)])
def test_closed_forms_equal_the_general_kernel(name: str, closed: int, normalise: bool) -> None:
    """A redundant row, the last one again or for the box one far away, changes the method only."""
    for seed in range(SEEDS):
        A, b = families(seed)[name]
        extra = (A[-1:], b[-1:]) if name != "box" else (np.ones((1, A.shape[1])), [1e3])
        P = Polyhedron(A, b, normalise)
        twin = Polyhedron(np.vstack([A, extra[0]]), np.append(b, extra[1]), normalise)
        assert (kind(P), kind(twin)) == (closed, GENERAL)
        x = points_around(P, seed)
        tolerance = 1e-14 * (1 + np.abs(x).sum(1))
        assert (np.abs(P.project(x) - twin.project(x)) <= tolerance[:, None]).all()
        assert (np.abs(P.margin(x) - twin.margin(x)) <= tolerance).all()


@pytest.mark.parametrize("name", families(0))
def test_points_beyond_the_step_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no steps allowed every outer point of a general polyhedron goes to SciPy, with the same answer."""
    pytest.importorskip("scipy", reason="points beyond the step limit are left to SciPy")
    for seed in range(1):
        P = Polyhedron(*families(seed)[name], normalise=False)
        with monkeypatch.context() as context:
            context.setattr(geometry, "STEPS", 0)
            twin = Polyhedron(*families(seed)[name], normalise=False)
        x = points_around(P, seed)
        size, outside = np.abs(x).max(), int((~P.contains(x)).sum())
        solve = Polyhedron._least_distance
        with mock.patch.object(Polyhedron, "_least_distance", autospec=True, side_effect=solve) as fallback:
            np.testing.assert_allclose(twin.project(x), P.project(x), atol=1e-9 * size)
            assert fallback.call_count == (outside if kind(P) == GENERAL else 0)
            np.testing.assert_allclose(twin.margin(x), P.margin(x), atol=1e-9 * size)
