"""Instances of feasible arms: crowd workers from the real files and from bad ones, random polyhedra and their arms."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from instances import check_polyhedra

from bandit_envs import Polyhedra
from bandit_envs.instances.datasets import emotions
from bandit_envs.instances.lookup import find
from bandit_envs.instances.polyhedra import at_most, cube, ordered, random_polyhedron, simplex

FEASIBLE = "bandit_envs/Feasible-v0"

# --- crowd workers ----------------------------------------------------------------------------------------------------


def test_facts_of_the_crowd(data_folder: Path) -> None:
    tables = emotions(data_folder)
    assert len(tables) == 38
    assert sum(map(len, tables)) * 7 == 7000
    assert all(table.shape[1] == 7 for table in tables)
    assert min(map(len, tables)) >= 20
    means = np.array([table.mean(axis=0) for table in tables])
    assert 0 <= min(table.min() for table in tables) <= max(table.max() for table in tables) <= 1
    # by hand: worker A1AVJRFM6L0RN8 answered 25 to question 1
    with open(data_folder / "emotion_truth.csv", newline="") as stream:
        truth = {row["question"]: float(row["truth"]) for row in csv.DictReader(stream)}
    with open(data_folder / "emotion_answer.csv", newline="") as stream:
        workers = sorted({row["worker"] for row in csv.DictReader(stream)})
    assert tables[workers.index("A1AVJRFM6L0RN8")][0, 0] == abs(25 - truth["1"]) / 100
    assert means.shape == (38, 7)


@pytest.mark.parametrize("name", ["crowdsourcing", "crowdsourcing(gaussian=True)"])
def test_crowdsourcing_is_the_paper_s(data_folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """3 good workers, 30 bad, 5 irrelevant at tolerance .02; workers against the average worker on every scale."""
    monkeypatch.setenv("BANDIT_ENVS_DATA", str(data_folder))
    env: Any = gym.make(FEASIBLE, instance=name).unwrapped
    means, tables = env.instance.arms.means, emotions()
    np.testing.assert_array_equal(means, [table.mean(axis=0) for table in tables])
    np.testing.assert_allclose(env.instance.arms.variances, [table.var(axis=0) for table in tables], rtol=1e-12)
    assert (env.task.K, env.task.D, env.task.budget, env.problem.tolerance) == (38, 7, 4000, 0.02)
    margin = env.problem.margin(means)
    good, bad = margin >= 0.02, margin < -0.02
    assert (good.sum(), bad.sum(), (~good & ~bad).sum()) == (3, 30, 5)
    assert ((means <= means.mean(axis=0)).all(axis=1) == (margin >= 0)).all()
    if name == "crowdsourcing":  # a pull is a whole row of the worker
        env.reset(seed=0)
        for worker in (0, 5, 37):
            sample = env.step(worker)[4]["sample"]
            assert (tables[worker] == sample).all(axis=1).any()


def test_gaussian_workers_may_share_a_standard_deviation(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each scale, of the deviations of all workers from their own means; or a number for all."""
    monkeypatch.setenv("BANDIT_ENVS_DATA", str(data_folder))
    tables = emotions()
    pooled: Any = gym.make(FEASIBLE, instance="crowdsourcing(gaussian='pooled')").unwrapped.instance.arms
    by_hand = np.mean([table.var(axis=0) for table in tables], axis=0)
    np.testing.assert_allclose(pooled.variances, np.broadcast_to(by_hand, (38, 7)), rtol=1e-12)
    common: Any = gym.make(FEASIBLE, instance="crowdsourcing(gaussian=.185)").unwrapped.instance.arms
    np.testing.assert_allclose(common.variances, 0.185**2)
    assert np.array_equal(pooled.means, common.means)
    for wrong in ("0.0", "-1.0", "'own'"):
        with pytest.raises(ValueError, match="gaussian"):
            gym.make(FEASIBLE, instance=f"crowdsourcing(gaussian={wrong})")


GOOD_TRUTH = "question,truth\n" + "".join(f"{q},{10 if q <= 600 else -50}\n" for q in range(1, 701))
GOOD_ANSWERS = "question,worker,answer\n" + "".join(f"{s * 100 + 3},{w},20\n" for w in "ba" for s in range(7))


def write(folder: Path, answers: str = GOOD_ANSWERS, truth: str = GOOD_TRUTH) -> Path:
    (folder / "emotion_answer.csv").write_text(answers)
    (folder / "emotion_truth.csv").write_text(truth)
    return folder


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any content are taken."""
    from bandit_envs.instances import datasets

    monkeypatch.setattr(datasets, "FILES", {})


@pytest.mark.usefixtures("unchecked")
def test_deviations_by_hand(tmp_path: Path) -> None:
    a, b = emotions(write(tmp_path))
    # |20 - 10| / 100 on six scales; valence: |20 + 50| / 200
    np.testing.assert_allclose(a, [[0.1] * 6 + [0.35]], rtol=1e-15)
    np.testing.assert_array_equal(a, b)


BAD: list[tuple[dict[str, str], str]] = [
    ({"answers": GOOD_ANSWERS + "3,a,20\n"}, "question 3 is answered twice by worker a"),
    ({"answers": GOOD_ANSWERS + "5,a,20\n"}, "worker a rated a headline on some scales only, not on all 7"),
    ({"answers": GOOD_ANSWERS + "701,a,20\n"}, r"line 16: question must be an integer in \[1, 700\], got 701"),
    ({"answers": GOOD_ANSWERS + "5,a,x\n"}, "line 16: could not convert string to float: 'x'"),
    ({"answers": GOOD_ANSWERS + "5,a,-1\n"}, r"line 16: answer must be a number in \[0, 100\], got -1"),
    ({"answers": GOOD_ANSWERS + "5,a\n"}, "line 16: "),
    ({"answers": "question,worker\n1,a\n"}, r"columns \['answer'\] are missing"),
    ({"truth": "question,truth\n1,5\n"}, "question 3 has no truth, but an answer of worker b"),
    ({"truth": GOOD_TRUTH + "601,-101\n"}, r"line 702: truth must be a number in \[-100, 100\], got -101"),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("files", "message"), BAD)
def test_bad_files(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        emotions(write(tmp_path, **files))


# --- polyhedra --------------------------------------------------------------------------------------------------------


def test_shapes_by_hand() -> None:
    assert cube(1) == ([[1.0], [-1.0]], [1.0, 0.0])
    assert simplex(2, 3.0) == ([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 3.0])
    assert ordered(3) == ([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]], [0.0, 0.0])
    assert at_most([0.25, 2.0]) == ([[1.0, 0.0], [0.0, 1.0]], [0.25, 2.0])


@pytest.mark.parametrize(("D", "M", "centre", "radius"), [(2, 3, 0.0, 1.0), (7, 40, 0.5, 0.3)])
def test_random_polyhedra(D: int, M: int, centre: float, radius: float) -> None:
    """Hyperplanes 1/2 to 1 radius from the centre; the same for the same seed, another for another."""
    A, b = random_polyhedron(D, M, 3, centre, radius)
    np.testing.assert_allclose(np.linalg.norm(A, axis=1), 1, rtol=1e-14)
    distance = np.array(b) - np.array(A) @ np.full(D, centre)
    assert ((distance >= radius / 2 - 1e-12) & (distance <= radius + 1e-12)).all()
    assert random_polyhedron(D, M, 3, centre, radius) == (A, b) != random_polyhedron(D, M, 4, centre, radius)


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli", "uniform"])
def test_arms_lie_on_both_sides_of_the_boundary(distribution: str) -> None:
    check_polyhedra(distribution, 500)


def test_polyhedra_as_an_instance() -> None:
    """It brings its polyhedron and a budget, in all forms; a given polyhedron overrides."""
    given: dict[str, Any] = {"dimensions": 4, "seed": 2}
    forms = ["polyhedra(dimensions=4, seed=2)", {"polyhedra": given}, Polyhedra(**given)]
    tasks = [gym.make(FEASIBLE, instance=form).unwrapped.task for form in forms]  # type: ignore[attr-defined]
    assert tasks[0] == tasks[1] == tasks[2]
    assert (tasks[0].K, tasks[0].D, tasks[0].budget, len(tasks[0].parameters["b"])) == (10, 4, 200, 8)
    assert find(forms[0]).to_dict() == find(find(forms[0]).to_dict()).to_dict()
    env = gym.make(FEASIBLE, instance=forms[1], budget=50)
    assert gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json())).unwrapped.task == env.unwrapped.task  # type: ignore[attr-defined, union-attr]
    other = gym.make(FEASIBLE, instance=forms[0], A=[[1.0, 0, 0, 0]], b=[0.5]).unwrapped.task  # type: ignore[attr-defined]
    assert other.parameters["b"] == [0.5]
