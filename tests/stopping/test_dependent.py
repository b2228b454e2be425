"""Arms whose coordinates depend on each other: certificates of Feasible count on the scale of each coordinate alone."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy.optimize import linprog

import agents
import bandit_envs as be
from agents.session.setup import task_from_facts

GENERATOR = np.random.default_rng(0)


def level(problem: Any, pulls: Any, mean: Any, answer: Any, **options: Any) -> float:
    return float(problem.certified_level(pulls, mean, answer, dependent=True, **options))


@pytest.mark.parametrize("D", [1, 2, 7])
def test_identical_coordinates_are_one_scalar_arm(D: int) -> None:
    """a.x = sum x_d / sqrt(D) of D identical coordinates is sqrt(D) times one: the level is that of Threshold."""
    row, threshold = np.full((1, D), D**-0.5), 0.5
    many, one = be.Feasible(-row, [-threshold * D**0.5]), be.Threshold(threshold)
    for pulls, mean in (([40, 90], [0.8, 0.3]), ([3, 3000], [0.99, 0.51])):
        points, wanted = np.repeat(np.array(mean)[:, None], D, axis=1), one.certified_level(pulls, mean, sigma=0.5)
        assert level(many, pulls, points, one.plug_in(mean), sigma=0.5) == pytest.approx(wanted, rel=1e-12)


class Sums(be.SetProblem):
    """Arms whose coordinates sum up to 1: the distance from there is what the sum exceeds it by, over sqrt(D)."""

    name, asks, source, parameters, local = "Sums", "arms of a large sum", "a test", {}, True

    def check(self, task: Any, source: Any = None) -> None:
        """Arms of any dimensions."""

    def margin(self, means: Any) -> Any:
        return (np.sum(means, axis=-1) - 1) / np.shape(means)[-1] ** 0.5


def test_dependent_coordinates_of_a_problem_of_ones_own_have_a_wider_scale() -> None:
    seen = [50], [[0.7, 0.8, 0.1]], [True]
    wide = level(Sums(), *seen, sigma=0.5)
    assert wide == Sums().certified_level(*seen, sigma=0.5 * 3**0.5) > 100 * Sums().certified_level(*seen, sigma=0.5)


def test_by_hand() -> None:
    """A unit square and one arm at its middle, 100 pulls, sigma 1/2: each face is .5 away, at the scale 1/2 |e|_1."""
    square = be.Feasible([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, 0, 1, 0])
    wanted = float(be.Threshold(0.5).certified_level([100], [1.0], sigma=0.5))
    assert level(square, [100], [[0.5, 0.5]], [True], sigma=0.5) == pytest.approx(wanted, rel=1e-12)
    # Left out at (1.5, .5): one row of four is violated, so that a quarter of its supermartingale counts.
    assert level(square, [100], [[1.5, 0.5]], [False], sigma=0.5) == pytest.approx(4 * wanted, rel=1e-12)
    # At (1.5, 1.5): two rows of four.
    assert level(square, [100], [[1.5, 1.5]], [False], sigma=0.5) == pytest.approx(2 * wanted, rel=1e-12)


def shapes() -> list[tuple[np.ndarray, np.ndarray]]:
    """Random polyhedra around the origin, and the cube."""
    found = [(np.vstack([np.eye(3), -np.eye(3)]), np.ones(6))]
    for D, M in ((2, 3), (2, 9), (3, 5), (5, 12)):
        A = GENERATOR.normal(size=(M, D))
        found.append((A / np.linalg.norm(A, axis=1)[:, None], GENERATOR.uniform(0.2, 1.0, M)))
    return found


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_no_bad_mean_is_nearer_than_is_counted_on(tolerance: float) -> None:
    """Of 2000 bad means each: the way there, in scales of the outer normal that the truth fixes, is never shorter.

    The evidence of one pull at sigma = 1 is half the square of that number of scales.
    """
    checked = 0
    for A, b in shapes():
        problem = be.Feasible(A, b, tolerance)
        inside = GENERATOR.normal(scale=0.3, size=(200, A.shape[1]))
        inside = inside[problem.margin(inside) >= 0][:20]
        bad = GENERATOR.normal(scale=1.5, size=(2000, A.shape[1]))
        apart = problem.margin(bad)
        bad, apart = bad[apart < -tolerance], apart[apart < -tolerance]
        normal = bad - problem.polyhedron.project(bad)
        normal /= np.linalg.norm(normal, axis=1)[:, None]
        for x in inside:
            cost = float(problem.evidence([1], [x], [True], dependent=True))
            scales = (normal * (bad - x)).sum(axis=1) / np.abs(normal).sum(axis=1)
            assert (scales >= np.sqrt(2 * cost) - 1e-9).all()
            checked += len(scales)
    assert checked > 20_000


def test_the_cost_of_an_arm_in_the_answer_is_reached() -> None:
    """Without tolerance, some direction of a single row is as near as is counted on: the bound is no looser."""
    for A, b in shapes():
        x = np.zeros(A.shape[1])
        cost = float(be.Feasible(A, b).evidence([1], [x], [True], dependent=True))
        assert np.sqrt(2 * cost) == pytest.approx((b / np.abs(A).sum(axis=1)).min())


def test_an_arm_left_out_lies_beyond_a_row_that_a_good_mean_meets() -> None:
    """The largest number of scales of a row, by which every mean in the polyhedron is away (a linear program)."""
    for A, b in shapes():
        problem, norms = be.Feasible(A, b), np.abs(A).sum(axis=1)
        for x in GENERATOR.normal(scale=2.0, size=(20, A.shape[1])):
            if problem.margin(x) >= 0:
                continue
            scales = np.sqrt(2 * float(problem.evidence([1], [x], [False], dependent=True)))
            # min over y in the polyhedron of max over rows of a_j (x - y) / |a_j|_1
            D = len(x)
            found = linprog(
                np.append(np.zeros(D), 1.0),
                np.vstack([np.column_stack([A, np.zeros(len(b))]), np.column_stack([-A, -norms])]),
                np.concatenate([b, -A @ x]),
                bounds=[(None, None)] * D + [(0, None)],
            )
            assert found.status == 0
            assert scales <= found.fun + 1e-9


ROWS = [np.r_[np.zeros((50, 10)), np.ones((50, 10))]] * 2  # two arms whose ten coordinates are one
REPORTED = {
    "instance": be.Resampled(ROWS),
    "A": (np.ones((1, 10)) / np.sqrt(10)).tolist(),
    "b": [0.5 * 10**0.5 - 1e-3],  # both arms are infeasible by a hair
}
NAMES = ["evidence", "md-apt(stop='certificate')", "uniform(stop='certificate')"]


def test_dependent_coordinates_keep_delta() -> None:
    """150 episodes each at delta .1: 34 wrong ones have probability 1e-5; before, 138, 139 and 86 of 300 were seen."""
    kwargs = {"max_pulls": 3000, "delta": 0.1, **REPORTED}
    rows = agents.evaluate(NAMES, "Feasible", episodes=150, env_kwargs=kwargs).episodes
    wrong = rows[~rows.correct & ~rows.truncated].groupby("agent").size()
    assert (wrong <= 33).all(), wrong


class Rows(be.Resampled):
    """Resampled rows under a name of one's own."""

    distribution = "rows"


class Normal(be.Gaussian):
    """Gaussian arms under a name of one's own."""

    distribution = "normal"


def test_who_says_what_of_dependence() -> None:
    def task(instance: Any) -> Any:
        return gym.make("bandit_envs/Feasible-v0", instance=instance, A=[[1.0, 1.0]], b=[1.0]).unwrapped.task

    means = [[0.1, 0.2], [0.3, 0.4]]
    independent = [be.Gaussian(means), be.Bernoulli(means), Normal(means)]
    for arms in independent:
        assert task(arms).dependent is False
    for kind in (be.Resampled, Rows):  # by how samples are drawn, whatever that is called
        assert task(kind([np.eye(2), np.ones((3, 2)) - np.eye(3)[:, :2]])).dependent is True
    facts = {"problem": "Feasible", "arms": 3, "A": [[1.0, 1.0]], "b": [1.0]}
    for known in ({"range": (0, 1)}, {"sigma": 1.0}, {"binary": True}):
        assert task_from_facts(facts | known)[0].dependent is True
        assert task_from_facts(facts | known | {"independent": True})[0].dependent is False
    one = {"problem": "Threshold", "threshold": 0.5, "arms": 3, "binary": True}
    assert task_from_facts(one)[0].dependent is False
    assert "dependent" not in task_from_facts(one)[0].to_json()  # as it always was
    given = task_from_facts(facts | {"sigma": 1.0})[0]
    assert be.Task.from_json(given.to_json()) == given


def test_a_smaller_scale_counts_in_evaluations_too() -> None:
    """`sigma` of an agent on samples in [0, 1] changed nothing; a smaller one makes it certain sooner."""
    rows = [np.array([0.5, 0.6, 0.7]), np.array([0.3, 0.4, 0.5])]
    names = ["evidence(distribution='bernoulli')", "evidence(sigma=0.2)"]
    kwargs = {"instance": be.Resampled([*rows, rows[1]]), "delta": 0.05, "max_pulls": 3000}
    pulls = (
        agents.evaluate(names, "BestArm", episodes=50, env_kwargs=kwargs).summary().set_index("agent")["total_pulls"]
    )
    assert pulls[names[1]] < 0.6 * pulls[names[0]]


@pytest.mark.parametrize(
    ("A", "b", "tolerance", "mean"),
    [
        ([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, 0, 1, 0], 0.5, [0.5, 0.5]),  # a single mean is as deep
        ([[0, 1], [0, -1], [1, 1], [1, 0]], [6.5, -3.5, 1, 1e9], 0.6, [-50, 5]),  # thin beside a face that is far away
    ],
)
def test_a_mean_as_deep_as_the_tolerance_is_never_excluded_for_nothing(
    A: Any, b: Any, tolerance: float, mean: Any
) -> None:
    """Such an arm must be in the answer: to leave it out was certified at level 0."""
    problem = be.Feasible(A, b, tolerance)
    assert problem.margin(mean) >= tolerance
    for dependent in (False, True):
        level = problem.certified_level([20], [mean], [False], dependent=dependent)
        assert level == 1
    none = be.Feasible([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, 0, 1, 0], 0.7)  # no mean is as deep as .7
    assert none.certified_level([20], [[3.0, 3.0]], [False]) == 0
