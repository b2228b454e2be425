"""BetterThanControl: what is asked and how it is scored, names and places of the control, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused, table

import agents
from bandit_envs import Bernoulli, BetterThanControl, Gaussian, Instance, PureExplorationEnv, PureExplorationVectorEnv
from bandit_envs.envs import boundary_of
from bandit_envs.testing import check_problem

NEVER = -np.inf
MEANS = [0.25, 0.5, 0.375, 0.25, 0.125]
HARM = [[0.5, 0.5], [1.0, 0.5], [1.0, 0.25], [0.5, 1.0]]  # two dimensions: what is to be better, and what to be kept


def test_margins_by_hand() -> None:
    assert BetterThanControl(2).margin(MEANS).tolist() == [-0.125, 0.125, NEVER, -0.125, -0.25]
    assert BetterThanControl(0, margin=-0.0625).margin(MEANS).tolist() == [NEVER, 0.3125, 0.1875, 0.0625, -0.0625]
    np.testing.assert_allclose(
        BetterThanControl(0, lift=0.5).margin(MEANS), [NEVER, 0.125, 0, -0.125, -0.25], atol=1e-300
    )
    guarded = BetterThanControl(guardrails=[0.125])
    assert guarded.margin(HARM).tolist() == [NEVER, 0.125, -0.125, -5e-324]
    assert guarded.plug_in(HARM).tolist() == [False, True, False, False]
    assert guarded.margins(HARM).tolist() == [[0, 0.125], [0.5, 0.125], [0.5, -0.125], [0, 0.625]]


def test_what_equals_the_boundary_is_not_better_and_the_control_never_is() -> None:
    """Nor is an arm beside a control that was never pulled, nor the control beside arms that are all worse."""
    for problem in (BetterThanControl(), BetterThanControl(margin=0.25), BetterThanControl(lift=1.0)):
        c, (a, b) = 0.25, problem.spaces[0]
        means = np.array([c, a * c + b, np.nextafter(a * c + b, 1), np.nextafter(a * c + b, 0)])
        assert problem.right_answer(means).tolist() == [False, False, True, False]
        assert problem.verdict([True, False, True, False], problem.truth(means))["misclassified"] == 1
        assert problem.is_correct([False, False, True, False], means)
        assert problem.score([False, True, True, False], means) == 0.75
    worse = BetterThanControl(1, margin=-1.0)
    assert worse.plug_in([0.0, 0.5, 1.0]).tolist() == [True, False, True]
    assert not worse.plug_in([0.0, np.nan, 1.0]).any()
    assert worse.plug_in([np.nan, 0.5, 1.0]).tolist() == [False, False, True]


def test_the_tolerance_frees_arms_on_both_sides_but_never_the_control() -> None:
    problem, means = BetterThanControl(tolerance=0.125), [0.5, 0.5, 0.625, 0.375, 0.75, 0.25]
    wanted = {0: False, 1: True, 2: True, 3: True, 4: False, 5: False}  # is it right to differ there?
    right = np.array([False, False, True, False, True, False])
    for arm, free in wanted.items():
        answer = right ^ (np.arange(6) == arm)
        # On the far edge itself an arm that is better must be answered, and one that is not need not be.
        assert problem.is_correct(answer, means) == (free and arm != 2), arm


def test_distances_are_how_far_a_mean_moves_until_the_answer_changes() -> None:
    """Of arms of one dimension, compiled: just short of the distance nothing changes, just beyond it something does."""
    rng = np.random.default_rng(0)
    for problem in (BetterThanControl(1, margin=0.1), BetterThanControl(lift=0.3), BetterThanControl(3, margin=-0.2)):
        means, pulls = rng.random((50, 5)), np.ones((50, 5), np.int64)
        found = problem.distances(pulls, means)
        assert np.isfinite(found).all()
        answer = problem.plug_in(means)
        assert ((found >= 0) == answer).all()
        for arm in range(5):
            moved = []
            for step in (0.999, 1.001):
                both = []
                for side in (-1, 1):
                    other = means.copy()
                    other[:, arm] += side * step * np.abs(found[:, arm])
                    both.append((problem.plug_in(other) != answer).any(axis=1))
                moved.append(both[0] | both[1])
            assert not moved[0].any()
            assert moved[1].all()
        pulls[0, 4] = 0
        assert (problem.distances(pulls, means)[0] == 0).all()
        assert problem.measure is not None
    guarded = BetterThanControl(guardrails=[0.125])
    found = guarded.distances(np.ones((1, 4), np.int64), np.array([HARM]))[0]
    np.testing.assert_allclose(found, [0, 0.125, -0.125, 0], atol=1e-300)
    assert guarded.measure is None


def test_the_boundary_moves_with_the_control() -> None:
    for problem, wanted in ((BetterThanControl(2, margin=0.25), 0.625), (BetterThanControl(2, lift=1.0), 0.75)):
        assert boundary_of(problem, np.array(MEANS)) == pytest.approx(wanted, abs=1e-15)
        assert boundary_of(problem, np.array([np.nan, 0.5, 0.375, np.nan, np.nan])) == pytest.approx(wanted, abs=1e-15)
    assert boundary_of(BetterThanControl(2), np.array([0.5, 0.5, np.nan, 1.0, 0.0])) is None


def test_bounds_are_of_one_dimension() -> None:
    """T* of Gaussian arms at 0, 1, with margin 0: 8 sigma^2 / gap^2, as of two arms; with guardrails none is known."""
    assert BetterThanControl().characteristic_time([0.0, 1.0]) == pytest.approx(8, rel=1e-5)
    guarded = BetterThanControl(guardrails=[0.1])
    assert np.isnan(guarded.lower_bound(HARM, 0.1))
    with refused("BetterThanControl", "characteristic"):
        guarded.characteristic_time(HARM)
    with refused("BetterThanControl", "dimensions"):
        guarded.optimal_proportions(HARM)


# --- the control by name, in its place, and where arms come and go --------------------------------------------------


def test_names_of_arms_name_the_control() -> None:
    source = Instance(Bernoulli([0.5, 0.25, 0.75]), "page", {}, ("blue", "red", "old"))
    env = PureExplorationEnv("BetterThanControl", instance=source, control="old", budget=9)
    assert env.task.parameters["control"] == env.problem.control_arm == 2
    with refused("'olde'", "blue, red, old"):
        PureExplorationEnv("BetterThanControl", instance=source, control="olde", budget=9)
    assert BetterThanControl("3").control == 3


@pytest.mark.parametrize("control", [0, 2])
def test_shuffled_arms_leave_the_control_in_its_place(control: int) -> None:
    """The others come in all six orders about equally often: 3000 episodes, false alarm 1e-6 (chi-square 36, 5 df)."""
    means = [0.25, 0.5, 0.75, 1.0]
    kwargs: dict[str, Any] = {"problem": "BetterThanControl", "instance": Gaussian(means), "control": control}
    envs = PureExplorationVectorEnv(3000, shuffle_arms=True, budget=9, **kwargs)
    envs.reset(seed=1)
    seen = np.array(envs.true_means())
    assert (seen[:, control] == means[control]).all()
    assert (np.sort(seen, axis=1) == means).all()
    counts = np.unique(seen, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert ((counts - 500) ** 2 / 500).sum() < 36
    plain = PureExplorationVectorEnv(9, budget=9, **kwargs)
    plain.reset(seed=1)
    assert (np.array(plain.true_means()) == means).all()


def session(path: Any, **facts: Any) -> Any:
    given = {"problem": "BetterThanControl", "arms": ["a", "b", "old", "c"], "control": "old", "sigma": 1.0}
    return agents.Session("uniform", given | {"budget": 99} | facts, store=path)


def test_a_session_knows_the_control_by_its_name_and_keeps_it(tmp_path: Any) -> None:
    """Its boundary moves with the control; arms before the control may go; the control itself may not."""
    from agents.session import page

    one = session(tmp_path / "one.db", margin=0.5)
    for arm, value in (("a", 4.0), ("b", 2.5), ("old", 2.0), ("c", 2.0)):
        one.tell(arm, value)
    assert one.boundary == 2.5
    assert one.answer().tolist() == [True, False, False, False]
    np.testing.assert_array_equal(one.unsure(), [1.5, 5e-324, np.nan, 0.5])
    assert one.tied == []
    shown = json.loads(json.dumps(page.state(one), allow_nan=False))
    assert (shown["boundary"], shown["least"]["name"]) == (2.5, "b")
    with refused("'old'", "control"):
        one.withdraw_arm("old")
    one.withdraw_arm("a")
    one.tell("c", 5.0)
    again = agents.Session(store=tmp_path / "one.db")
    assert again.boundary == one.boundary == 2.5
    assert again.answer().tolist() == one.answer().tolist() == [False, False, False, True]
    assert again.task.parameters["control"] == 2


def test_a_lower_value_may_be_better(tmp_path: Any) -> None:
    one = session(tmp_path / "low.db", margin=0.5, minimize=True)
    for arm, value in (("a", 1.0), ("b", 1.5), ("old", 2.0), ("c", 3.0)):
        one.tell(arm, value)
    assert one.boundary == 1.5
    assert one.answer().tolist() == [True, False, False, False]
    with refused("minimize", "BetterThanControl"):
        session(tmp_path / "lift.db", lift=0.5, minimize=True)


def test_the_control_of_guarded_sessions(tmp_path: Any) -> None:
    one = session(tmp_path / "two.db", guardrails=[0.5])
    assert one.task.D == 2
    for arm, value in (("a", (4.0, 1.0)), ("b", (4.0, 0.0)), ("old", (2.0, 1.0)), ("c", (2.0, 9.0))):
        one.tell(arm, value)
    assert one.answer().tolist() == [True, False, False, False]
    assert one.boundary is None
    assert np.isnan(one.unsure()).tolist() == [False, False, True, False]


# --- forms, pictures and what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [{}, {"margin": -0.1}, {"lift": 0.2}, {"control": 2, "margin": 0.1, "tolerance": 0.05}]
)
def test_the_package_checks_it(given: dict[str, Any]) -> None:
    check_problem(BetterThanControl, **given)


def test_guarded_environments_are_checked_too() -> None:
    check_problem(BetterThanControl, guardrails=[0.1], instance="sampler(arms=4, dimensions=2)")


FORMS: list[dict[str, Any]] = [
    {},
    {"control": 3, "lift": 0.5},
    {"guardrails": [0.5, 1.0], "margin": -0.25, "tolerance": 0.5},
]


@pytest.mark.parametrize("given", [*FORMS, {"expected": [0.25, 0.5]}])
def test_settings_are_the_problem_in_json(given: dict[str, Any]) -> None:
    problem = BetterThanControl(**given)
    again = BetterThanControl(**json.loads(json.dumps(problem.settings)))
    assert again == problem
    assert again != BetterThanControl(1)
    D = 1 + len(problem.guardrails)
    env = gym.make("bandit_envs/BetterThanControl-v0", instance=f"sampler(arms=5, dimensions={D})", **given)
    spec = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    assert gym.make(spec).unwrapped.problem == env.unwrapped.problem


@pytest.mark.parametrize("given", [{}, {"guardrails": [0.2]}])
@pytest.mark.parametrize("arms", [4, 70])
def test_pictures_show_the_control(given: dict[str, Any], arms: int) -> None:
    """As text by its word, at the boundary; as an image, which changes where another arm is the control."""
    pytest.importorskip("matplotlib")
    source, images = f"sampler(arms={arms}, dimensions={1 + len(given)})", []
    for control in (0, 2):
        for mode in ("ansi", "rgb_array"):
            env = PureExplorationEnv(
                "BetterThanControl", instance=source, budget=300, control=control, render_mode=mode, **given
            )
            env.reset(seed=4)
            env.render()
            for arm in [*range(arms), *range(arms)]:
                env.step(arm)
            images.append(env.render())
    text, image, other_text, other = images
    for said in (text, other_text):
        (row,) = [line for line in said.splitlines() if "control " in line and "BetterThan" not in line]
        assert row.split()[2:4] == ["control", "out"]
        assert "inf" not in said
    assert text != other_text
    assert image.shape == other.shape == (480, 640, 3)
    assert (image != other).any()


test_bad_calls = table(
    {
        "no arm": (lambda: BetterThanControl("green"), "'green'"),
        "half an arm": (lambda: BetterThanControl(0.5), "0.5"),
        "before the first": (lambda: BetterThanControl(-1), "-1"),
        "both": (lambda: BetterThanControl(margin=0.1, lift=0.1), "margin=0.1", "lift=0.1"),
        "lift": (lambda: BetterThanControl(lift=-1), "lift", "-1"),
        "margin": (lambda: BetterThanControl(margin=float("nan")), "margin", "nan"),
        "tolerance": (lambda: BetterThanControl(tolerance=-0.1), "tolerance", "-0.1"),
        "guardrails": (lambda: BetterThanControl(guardrails=["x"]), "guardrails", "x"),
        "hope": (lambda: BetterThanControl(expected=[0.5, 0.5]).certifier(2), "expected", "[0.5, 0.5]"),
        "one hope": (lambda: BetterThanControl(expected=[0.5]), "expected", "[0.5]"),
        "too far": (lambda: PureExplorationEnv("BetterThanControl", control=10), "10 arms", "got 10"),
        "dimensions": (lambda: PureExplorationEnv("BetterThanControl", guardrails=[1.0]), "2 dimensions", "got 1"),
        "lift below 0": (
            lambda: PureExplorationEnv("BetterThanControl", lift=0.1, instance=Gaussian([-1.0, 2.0]), budget=9),
            "lift",
            "-1",
        ),
        "lift of any sign": (
            lambda: PureExplorationEnv(
                "BetterThanControl",
                lift=0.1,
                instance={"sampler": {"distribution": "gaussian", "mean": {"normal": [0, 1]}}},
            ),
            "lift",
            "normal",
        ),
    }
)
