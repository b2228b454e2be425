"""The look-ahead of problems that have no potential of their own, by worlds drawn from the posteriors of the arms."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from environments import agree, twins
from refusals import refused

import agents
from bandit_envs import (
    BetterThanControl,
    Problem,
    PureExplorationEnv,
    SetProblem,
    Task,
    Threshold,
    TopK,
    register_problem,
)
from bandit_envs.problems import Lookahead, Potential
from bandit_envs.problems.sampled import Sampled
from bandit_envs.testing import check_problem

HALVES = np.array([[1.0], [-1.0]])


class Inside(SetProblem):
    """Arms with a mean in an interval; `exactly`: with the potential of two half-lines."""

    name, asks, local, any_order = "Inside", "all arms with a mean in an interval", True, True
    parameters = {"low": "Its lower end.", "high": "Its upper end.", "exactly": "Whether there is a potential."}

    def __init__(self, low: float = 0.4, high: float = 0.6, exactly: bool = False) -> None:
        self.low, self.high, self.exactly = low, high, exactly

    def margin(self, means: Any) -> Any:
        x = np.asarray(means, np.float64)
        return np.minimum(x - self.low, self.high - x)

    def potential(self) -> Potential | None:
        return Potential(0, HALVES, np.array([self.high, -self.low])) if self.exactly else None


class NearMedian(SetProblem):
    name, asks, any_order = "NearMedian", "all arms with a mean near the median of all", True
    parameters = {"epsilon": "How near.", "step": "Whether margins are 1 and -1."}

    def __init__(self, epsilon: float = 0.1, step: bool = False) -> None:
        self.epsilon, self.step = epsilon, step

    def margin(self, means: Any) -> Any:
        x = np.asarray(means, np.float64)
        margins = self.epsilon - np.abs(x - np.median(x, axis=-1, keepdims=True))
        return np.where(margins >= 0, 1.0, -1.0) if self.step else margins


class Pareto(SetProblem):
    name, asks, any_order = "Pareto", "all arms that no other arm beats in both coordinates", True
    sampler = {"sampler": {"arms": 4, "dimensions": 2}}

    def check(self, task: Any, source: Any = None) -> None:
        if task.D != 2:
            raise ValueError(f"Pareto needs arms of 2 dimensions, got {task.D}")

    def margin(self, means: Any) -> Any:
        x = np.asarray(means, np.float64)
        ahead = (x[..., :, None, :] - x[..., None, :, :]).max(axis=-1)  # of each arm in its better coordinate
        return np.where(np.eye(x.shape[-2], dtype=bool), np.inf, ahead).min(axis=-1)


class FromFirst(SetProblem):
    name, asks = "FromFirst", "all arms at least as good as arm 0, which is in every answer"

    def margin(self, means: Any) -> Any:
        return np.asarray(means, np.float64) - np.asarray(means, np.float64)[..., :1]


ALL = [Inside, NearMedian, Pareto]


@pytest.fixture(autouse=True)
def registered() -> None:
    for kind in (*ALL, FromFirst):
        register_problem(kind)


def task_of(kind: Any, gaussian: bool = False, **parameters: Any) -> Task:
    facts: dict[str, Any] = {"distribution": "gaussian", "support": None, "sigma": 0.7} if gaussian else {}
    D = 2 if kind is Pareto else 1
    return Task(kind.name, parameters, K=5, D=D, budget=60, observation="relative", **facts)


def states(task: Task, count: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Pulls and sums; of the first no arm is pulled, of the second all are equal."""
    rng, shape = np.random.default_rng(5), (count, task.K) if task.D == 1 else (count, task.K, task.D)
    pulls = rng.integers(0, 12, shape[:2])
    pulls[0], pulls[1] = 0, 3
    of = pulls if task.D == 1 else pulls[..., None]
    total = rng.binomial(of * np.ones(shape, int), rng.random(shape)).astype(np.float64)
    total += 0.0 if task.support else 0.3 * rng.standard_normal(shape) * np.sqrt(of)
    total[1] = total[1, :1]
    return pulls, total


def shown_of(task: Task, pulls: np.ndarray, total: np.ndarray) -> list[np.ndarray]:
    look = task.lookahead()
    return [*look.view(pulls, total, ranked=True), look.gains(pulls, total), look.value(pulls, total)]


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("kind", ALL)
def test_invariances(kind: Any, gaussian: bool) -> None:
    """Of batches, bit for bit; of copies; of the order of arms, of equal arms, and of the unit and shift of all."""
    task = task_of(kind, gaussian)
    assert type(task.lookahead()) is Sampled
    pulls, total = states(task)
    seen, order, gains, value = all_ = shown_of(task, pulls, total)
    assert np.isfinite(seen).all()
    assert np.abs(seen).max() <= 10
    for part in (slice(4, 5), slice(3, 20)):
        for whole, some in zip(all_, shown_of(task, pulls[part], total[part]), strict=True):
            np.testing.assert_array_equal(whole[part], some)
    for twin in (copy.deepcopy(task.lookahead()), pickle.loads(pickle.dumps(task.lookahead()))):
        np.testing.assert_array_equal(twin.gains(pulls, total), gains)
    for e in (0, 1):
        assert np.ptp(gains[e]) < 1e-12
        assert order[e].tolist() == [0, 1, 2, 3, 4]
    places = np.random.default_rng(1).permutation(task.K)
    there = shown_of(task, pulls[:, places], total[:, places])
    np.testing.assert_allclose(there[0], seen, atol=1e-6)
    np.testing.assert_allclose(there[2], gains[:, places], atol=1e-12)
    np.testing.assert_allclose(there[3], value, atol=1e-12)
    if gaussian:
        moved = {name: 3.0 * x + 20.0 * (kind is Inside) for name, x in task.parameters.items() if type(x) is float}
        other = task.replace(parameters=moved, sigma=3.0 * task.sigma)
        shifted = 3.0 * total + 20.0 * (pulls if task.D == 1 else pulls[..., None])
        there = shown_of(other, pulls[1:], shifted[1:])  # before the first pull arms are at 0
        np.testing.assert_allclose(there[0], seen[1:], atol=2e-6)
        np.testing.assert_allclose(there[2], gains[1:], atol=1e-9)


def test_worlds_agree_with_the_potential_where_there_is_one() -> None:
    """Threshold without its potential: beliefs and gains are those of a half-line, up to the 32 worlds."""

    class Bare(Threshold):
        name = "Bare"

        def margin(self, means: Any) -> Any:
            return super().margin(means)

    register_problem(Bare)
    task = task_of(Threshold)
    pulls, total = states(task, 200)
    pulls, total = pulls + 2, total + 1.0
    task = Task("Bare", {}, K=5, budget=400)
    rough, fine = task.lookahead(), Lookahead(task, Potential(0, HALVES[1:], np.array([-0.5])))
    assert type(rough) is Sampled
    one, other = rough.beliefs(pulls, total), fine.beliefs(pulls, total)
    np.testing.assert_allclose(one[..., 0], other[..., 0], atol=0.01)
    np.testing.assert_allclose(one[..., 1:], other[..., 1:], rtol=0.1)
    one, other = rough.gains(pulls, total), fine.gains(pulls, total)
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.9
    assert (one.argmax(axis=1) == other.argmax(axis=1)).mean() > 0.8


def test_gains_by_hand() -> None:
    """Two equal arms and one budget: the gains of a pull, and of stopping, are differences of `value`."""
    look = task_of(NearMedian).lookahead()
    pulls, total = states(task_of(NearMedian), 8)
    out, arms = np.empty(8), np.array([5, 5, 0, 1, 2, 7, -1, 5])
    look.gain(pulls, total, arms, np.array([0, 0, 0, 0, 0, 0, 0, 1], np.uint8), out)
    stopped = look.value(pulls, total, np.zeros(8)) - look.value(pulls, total)
    np.testing.assert_allclose(out[:2], stopped[:2], atol=1e-12)
    np.testing.assert_allclose(out[2:5], look.gains(pulls, total)[[2, 3, 4], [0, 1, 2]], atol=1e-12)
    assert out[5:].tolist() == [0, 0, 0]


def test_an_arm_that_others_are_measured_from_gains_by_them() -> None:
    """Its own margin is always 0, and it is sure: its gain is that of the arms near it."""
    look = Task("FromFirst", {}, K=4, budget=80, observation="relative").lookahead()
    pulls, total = np.full((1, 4), 9), np.array([[5.0, 5.0, 4.0, 5.0]])
    gains = look.gains(pulls, total)[0]
    assert gains.argmax() == 0
    seen, order = look.view(pulls, total, ranked=True)
    assert order[0].tolist()[-1] == 0 or abs(seen[0, 0]) > 0
    assert np.isfinite(seen).all()
    assert look.beliefs(pulls, total)[0, 0, 0] > 0


def test_margins_that_are_steps_and_margins_that_never_change() -> None:
    look = task_of(NearMedian, step=True).lookahead()
    pulls, total = states(task_of(NearMedian))
    assert (np.ptp(look.gains(pulls, total), axis=1)[2:] > 0).mean() > 0.8

    class Constant(SetProblem):
        name = "Constant"

        def margin(self, means: Any) -> Any:
            return np.ones_like(np.asarray(means, np.float64))

    register_problem(Constant)
    with refused("reward='gain'", "Constant", "margins"):
        PureExplorationEnv("Constant", budget=20, reward="gain")


@pytest.mark.parametrize("kind", ALL)
def test_environments_of_own_problems_pay_gains(kind: Any) -> None:
    """They pass the kit; single and native forms agree bit for bit, with results that come late too."""
    check_problem(kind.name, reward="gain", instance=kind.sampler or "sampler(arms=4)")
    forms = {"reward": "gain", "observation": "relative", "ranked": True, "stop": False, "budget": 9}
    arms = {"instance": "sampler(arms=4, dimensions=2)" if kind is Pareto else "sampler(arms=4)"}
    for more in ({}, {"batch": 3}):
        assert agree(*twins(kind.name, 3, **forms, **arms, **more), 20)[0] >= 3


WRONG: list[tuple[Any, str]] = [
    (lambda self: 3, "must return a Potential of a known kind, or None, got 3"),
    (lambda self: Potential(0, HALVES, np.array([self.high])), r"must have the shape \(2, 1\), b \(2,\)"),
    (lambda self: Potential(0, HALVES, np.array([self.high, np.nan])), "must have finite A and b"),
    (lambda self: Potential(0, HALVES, np.array([self.high, -self.low]), exact=True), "exact=True for one row"),
    (lambda self: Potential(0, 0 * HALVES, np.array([self.high, -self.low])), "no row all 0"),
    (lambda self: Potential(0, HALVES, np.array([self.high, -self.low]), tolerance=np.nan), "tolerance of the"),
    (lambda self: Potential(1, k=99), r"k of the potential of .* must be an integer in \[1, 9\], got 99"),
    (lambda self: Potential(2, epsilon=1.0, multiplicative=True), r"epsilon of the potential .* \[0, 1\), got 1.0"),
    (lambda self: Potential(3, np.ones((1, 1)), np.zeros(1)), r"control of the potential .* \[0, 9\], got -1"),
    (
        lambda self: Potential(0, HALVES[:1], np.array([self.high])),
        "must have a potential of the arms with margin >= 0",
    ),
    (lambda self: Potential(0, np.eye(2), np.zeros(2)), "must have the shape"),
    (lambda self: Potential(3, np.ones((1, 1)), np.zeros(1), control=99), r"\[0, 9\], got 99"),
    (lambda self: {}["low"], "potential of .* fails: KeyError: 'low'"),
]


@pytest.mark.parametrize(("hook", "said"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_potential_is_named(hook: Any, said: str) -> None:
    register_problem(type("Wrong", (Inside,), {"name": "Wrong", "margin": Inside.margin, "potential": hook}))
    for name in ("Wrong", "Wrong-learn"):
        with pytest.raises(ValueError, match=said) as caught:
            gym.make(f"bandit_envs/{name}-v0", budget=20)
        assert "the problem 'Wrong'" in str(caught.value)


def test_a_problem_derived_from_one_of_this_package_has_its_potential() -> None:
    for kind in (BetterThanControl, Threshold, TopK):
        register_problem(type("Derived", (kind,), {"name": "Derived"}))
        env = gym.make("bandit_envs/Derived-learn-v0", budget=20)
        assert type(env.unwrapped.task.lookahead()) is Lookahead  # type: ignore[attr-defined]


def test_the_potential_of_an_own_problem_is_used() -> None:
    look = task_of(Inside, exactly=True).lookahead()
    assert type(look) is Lookahead
    check_problem("Inside", exactly=True, reward="gain")
    assert agents.make("look-ahead", task_of(Inside, exactly=True).replace(observation="statistics")).plays


def test_look_ahead_is_ahead_of_uniform() -> None:
    """The difference of the paired scores is .04 on 200 episodes, their standard error .009."""
    rules = {"instance": "sampler(arms=6)", "budget": 60}
    found = agents.evaluate(["look-ahead", "uniform"], "Inside", episodes=200, env_kwargs=rules, progress=False)
    assert found.compare("look-ahead", "uniform", "score").difference > 0.01
    gaussian = {"instance": {"sampler": {"arms": 4, "distribution": "gaussian"}}, "budget": 12}
    agents.evaluate("look-ahead", "NearMedian", episodes=20, env_kwargs=gaussian, progress=False)
    assert "look-ahead" in agents.names("NearMedian")


class Worst(Problem):
    """The arm with the lowest mean: an answer of one arm, and a score of its own."""

    name, answer_size, any_order = "Worst", 1, True

    def margin(self, means: Any) -> Any:
        x = np.sort(np.nan_to_num(np.asarray(means, np.float64), nan=np.inf), axis=-1)
        with np.errstate(invalid="ignore"):
            return np.where(means == x[..., :1], x[..., 1:2], x[..., :1]) - means

    def plug_in(self, means: Any) -> Any:
        x = np.nan_to_num(np.asarray(means, np.float64), nan=np.inf)
        return np.arange(x.shape[-1]) == x.argmin(axis=-1)[..., None]

    def verdict(self, answer: Any, truth: Any) -> dict[str, Any]:
        right = (np.asarray(answer) * truth).sum(axis=-1)
        return {"correct": right >= 0, "score": np.clip(1 + right, 0, 1)}


def test_an_answer_of_one_arm_and_a_training() -> None:
    register_problem(Worst)
    rules = {"instance": "sampler(arms=5)", "budget": 60}
    found = agents.evaluate(["look-ahead", "uniform"], "Worst", episodes=60, env_kwargs=rules, progress=False)
    assert found.compare("look-ahead", "uniform", "score").difference > 0
    pytest.importorskip("stable_baselines3")
    from agents.learned.algorithms import training_environment

    numbers = {"num_envs": 2, "pulls_per_action": 1, "held_out": 10}
    made = training_environment("bandit_envs/Worst-v0", rules, numbers, ranked=True)
    assert made.forms == {"observation": "relative", "reward": "gain", "stop": False, "ranked": True}
