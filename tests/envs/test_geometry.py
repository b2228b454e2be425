"""Polyhedra: worked cases, a brute-force twin, a quadratic-programming library, and the properties of a projection."""

from __future__ import annotations

import pickle
import sys
from dataclasses import FrozenInstanceError
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from projections import (
    Floats,
    box,
    brute_force,
    check_closed_form,
    check_family,
    families,
    kind,
    ordered,
    points_around,
    simplex,
    small_cases,
)

from bandit_envs.kernels import geometry
from bandit_envs.kernels.geometry import GENERAL, HALF_SPACE, SIMPLEX, UNIT_BOX, Polyhedron

ROOT2 = np.sqrt(2.0)


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

EACH_KIND = {"half-space": ([[1.0, 2.0, 2.0]], [3.0]), "box": box(3), "simplex": simplex(3, 2.0), "general": ordered(3)}


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


@pytest.mark.parametrize("name", families(0))
def test_quadratic_programming_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """6 polyhedra of each family, 12 points each."""
    pytest.importorskip("daqp", reason="the reference is the quadratic-programming library daqp")
    monkeypatch.delattr(Polyhedron, "_least_distance")  # no point may reach the step limit
    check_family(name, range(6))


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(("name", "closed"), [("half-space", HALF_SPACE), ("box", UNIT_BOX), ("simplex", SIMPLEX)])
def test_closed_forms_equal_the_general_kernel(name: str, closed: int, normalise: bool) -> None:
    check_closed_form(name, closed, normalise, range(6))


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
