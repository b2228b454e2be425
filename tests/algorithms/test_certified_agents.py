"""evidence, track-and-stop, top-two: by hand, against twins, the certificate and optimal proportions, delta."""

from __future__ import annotations

import functools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import seen
from twins_all_good import as_twin
from twins_certified import Game, best_arm_proportions, evidence, top_two, track_and_stop
from twins_top_k import drawer

import agents
from agents.certified.alternatives import LOCAL, TOP_K
from agents.certified.policy import held
from agents.certified.proportions import best_arm_proportions as kernel_proportions
from bandit_envs import AllGood, BestArm, Gaussian, Instance, Task, TopK
from bandit_envs.kernels import jit
from bandit_envs.stopping import BOUNDED, GAUSSIAN

ALL = ["BestArm", "TopK", "AllGood", "Threshold"]


def task(problem: str = "BestArm", K: int = 3, **more: Any) -> Task:
    plain: dict[str, Any] = {"parameters": {}, "delta": 0.1, "distribution": "gaussian", "support": None, "sigma": 1.0}
    return Task(problem, K=K, **plain | more)


def test_how_often_an_arm_is_pulled_in_a_row_by_hand() -> None:
    """sqrt(N) / 2 times; of pairs of many arms (K / 128)^2 times, but not more often than it has been pulled."""

    def times(N: int, K: int, kind: int, length: float = 1.0, distribution: int = GAUSSIAN) -> int:
        desk = SimpleNamespace(kind=kind, distribution=distribution)
        episode = SimpleNamespace(pulls=[N] * K, desk=desk)
        return int(held.py_func(episode, 0, length))

    assert [times(N, 50, TOP_K) for N in (0, 3, 16, 10_000)] == [1, 1, 2, 50]
    assert [times(N, 640, TOP_K) for N in (9, 1000, 10_000)] == [9, 25, 50]
    assert times(1000, 640, LOCAL) == 15
    assert times(1000, 50, TOP_K, 2.0) == 31
    assert times(1000, 50, TOP_K, 2.0, BOUNDED) == 15


def test_evidence_by_hand() -> None:
    agent = agents.make("evidence", task(actions="arm"))
    # Pairs (0, 1) and (0, 2): costs 25 / 2 and 25 / 8, so that the second alone is below ln(2 / .1) + 1.5 = 4.5: open.
    # Of its arms, both as often pulled, the lower one; then the one with fewer pulls.
    assert agent.predict(seen([50, 50, 50], [1.0, 0.0, 0.5], 1.0))[0] == 0
    assert agent.predict(seen([51, 50, 50], [1.0, 0.0, 0.5], 1.0))[0] == 2
    assert agent.predict(seen([100, 5, 100], [1.0, 0.0, 0.5], 1.0))[0] == 1  # 5 < sqrt(205) - 3/2
    # Arm 1: gap 10 and 10^4 pulls each: 5000 * 100 / 2 is far above ln(2 / .1) + ln(1 + 10^4 / 300) + ln(1 / .3).
    assert agent.predict(seen([10**4] * 3, [10.0, 0.0, 0.0], 1.0))[0] == 3
    # All are open. The leader is pulled though others have fewer pulls, as 39^2 is less than 29^2 + 28^2 = 1,625.
    assert agent.predict(seen([39, 29, 28], [0.3, 0.0, 0.0], 1.0))[0] == 0
    assert agent.predict(seen([41, 29, 28], [0.3, 0.0, 0.0], 1.0))[0] == 2  # 41^2 = 1,681
    with_budget = agents.make("evidence", task(actions="arm", delta=None, budget=10**6))
    assert with_budget.predict(seen([10**4] * 3, [10.0, 0.0, 0.0], 1.0, remaining=10**5))[0] < 3


def test_arms_race_where_contrasts_certify_pairs() -> None:
    """Elsewhere the share has no effect, and whoever names it reads why."""
    for name in ("evidence", "top-two(race=0.75)", "track-and-stop(race=0.75)"):
        assert agents.make(name, task()).race == 0.75
        with pytest.warns(UserWarning, match="race=0.5 has no effect, which is of pairs"):
            alone = agents.make(name.partition("(")[0] + "(race=0.5)", task("Threshold", parameters={"threshold": 0.1}))
        assert alone.race == 0
    assert agents.make("top-two", task()).race == agents.make("evidence(boundary='product')", task()).race == 0
    with pytest.raises(ValueError, match="race"):
        agents.make("evidence(race=1.5)", task())


def test_an_arm_that_rounding_alone_leaves_out_has_an_alternative() -> None:
    """Its mean is less than (1 - epsilon) best, but best is no more than its mean / (1 - epsilon), as numbers go."""
    best, low, keep = 0.75, 0.6, 1 - 0.2
    assert low < keep * best
    assert 1 / keep * low >= best
    agent = agents.make("evidence", task("AllGood", actions="arm", parameters={"epsilon": 0.2, "multiplicative": True}))
    assert agent.predict(seen([50, 50, 50], [best, low, 0.1], 1.0))[0] < 3


def games(problem: str, count: int, seed: int) -> Any:
    """Random Gaussian instances with the environment and the game of the twin."""
    g = np.random.default_rng(seed)
    for episode in range(count):
        K, delta, sigma = int(g.integers(2, 8)), float(g.choice([0.05, 0.3])), float(g.choice([0.2, 1.0]))
        means, epsilon = g.normal(size=K), float(g.choice([0.0, 0.3]))
        rules: dict[str, Any] = {"epsilon": epsilon}
        if problem == "TopK":
            rules |= {"k": int(g.integers(1, K)), "criterion": "each"}
        elif problem == "Threshold":
            rules, epsilon = {"threshold": 0.1}, 0.0
        elif problem == "AllGood":
            rules["epsilon"] = epsilon = epsilon + 0.1
        rules |= {"instance": Instance(Gaussian(means, [sigma] * K), "random"), "delta": delta, "max_pulls": 400}
        env: Any = gym.make(f"bandit_envs/{problem}-v0", actions="full", **rules).unwrapped
        k = {"BestArm": 1, "TopK": rules.get("k", 0)}.get(problem, 0)
        yield episode, env, Game(K, env.task.sigma, delta, k, epsilon, rules.get("threshold"))


def check(problem: str, name: str, make_twin: Any, count: int, seed: int = 0) -> None:
    stopped = 0
    for episode, env, game in games(problem, count, seed):
        twin = functools.partial(make_twin, game)
        stopped += as_twin(env, agents.make(name, env), twin, 3, episode)[1] is not None
    assert stopped >= count // 6


instances = pytest.mark.parametrize("count", [6, 16])


@pytest.mark.parametrize("problem", ALL)
@instances
def test_evidence_is_its_twin(problem: str, count: int) -> None:
    check(problem, "evidence", lambda game, word: evidence(game), count)
    if problem != "Threshold":
        product = "evidence(boundary='product')"
        check(problem, product, lambda game, word: evidence(replace(game, product=True)), count // 2, seed=1)
        check(problem, "evidence(race=0.4)", lambda game, word: evidence(game, 0.4), count // 2, seed=2)


@pytest.mark.parametrize("problem", ["BestArm", "TopK", "Threshold"])
@instances
def test_top_two_is_its_twin(problem: str, count: int) -> None:
    check(problem, "top-two", lambda game, word: top_two(game, True, None, drawer(word)), count)
    shares = "" if problem == "Threshold" else ", proportions='fixed', beta=.4, seed=5"  # which are of two arms
    fixed = f"top-two(rule='eb-tc'{shares})"
    check(problem, fixed, lambda game, word: top_two(game, False, 0.4, drawer(word, 5)), count, seed=1)


@pytest.mark.parametrize("problem", ALL)
@instances
def test_track_and_stop_is_its_twin(problem: str, count: int) -> None:
    check(problem, "track-and-stop", lambda game, word: track_and_stop(game, problem == "AllGood"), count)
    check(problem, "track-and-stop(tracking='D')", lambda game, word: track_and_stop(game, False), count // 2, seed=2)
    check(problem, "track-and-stop(tracking='C')", lambda game, word: track_and_stop(game, True), count // 2, seed=1)


@pytest.mark.parametrize(
    ("problem", "distribution"),
    [
        *[("BestArm", "student"), ("TopK", "bernoulli"), ("TopK", "gaussian")],
        *[("AllGood", "gaussian"), ("AllGood", "student"), ("Threshold", "bernoulli")],
    ],
)
def test_rows_tell_the_certificate(problem: str, distribution: str) -> None:
    """The least row, kept from look to look, is the certificate of all alternatives: at looks among 300 pulls.

    For AllGood it is never less: it looks at one arm for each that is left out, the certificate perhaps at all.
    """
    problems = {"TopK": {"k": 3, "epsilon": 0.05}, "BestArm": {"epsilon": 0.0}, "AllGood": {"epsilon": 0.2}}
    arms = {"instance": {"sampler": {"distribution": "gaussian" if distribution == "student" else "bernoulli"}}}
    env: Any = gym.make(f"bandit_envs/{problem}-v0", delta=1e-90, **arms, **problems.get(problem, {})).unwrapped
    agent, state, looks = agents.make(f"evidence(distribution='{distribution}', boundary='product')", env), None, 0
    observation = env.reset(seed=1)[0]
    for t in range(300):
        action, state = agent.predict(observation, state)
        if t > 20 and t % 5 == 0 and state.now[0]["t"] == t:
            looks += 1
            value = state.own["certified"]["rows"][0, 5]
            held = value.min() + np.log(1e90)
            given = {"distribution": distribution, "sigma": env.task.sigma, "centre": env.task.centre}
            given["boundary"] = "product"
            level = env.problem.certifier(10, **given).alternatives(
                observation["pulls"][None],
                observation["mean"][None],
                observation["variance"][None],
                np.full((1, 10), -1, np.int8),
            )[0, 0]
            assert held == pytest.approx(level, rel=1e-9, abs=1e-9) or (problem == "AllGood" and held >= level)
        observation = env.step(action)[0]
    assert looks >= 20


@jit
def proportions(distribution: Any, epsilon: Any, mean: Any, w: Any) -> Any:
    K = len(mean)
    return kernel_proportions(distribution, epsilon, 1.0, mean, 0.0, np.zeros(K), np.zeros(K), w)


def test_proportions_for_the_best_arm() -> None:
    g, w = np.random.default_rng(0), np.zeros(6)
    for _ in range(4):
        m = g.uniform(0.05, 0.95, 6)
        proportions(0, 0.1, m, w)
        assert w == pytest.approx(best_arm_proportions(m.tolist(), 1.0, 0.1), abs=1e-9)
        assert w == pytest.approx(np.asarray(BestArm(epsilon=0.1).optimal_proportions(m)), abs=1e-4)
        proportions(1, 0.0, m, w)
        assert w == pytest.approx(
            np.asarray(BestArm(epsilon=0.0).optimal_proportions(m, distribution="bernoulli")), abs=1e-4
        )


@pytest.mark.parametrize("problem", [TopK(k=3, epsilon=0.1, criterion="each"), AllGood(epsilon=0.25)])
def test_steps_come_to_the_optimal_proportions(problem: Any) -> None:
    """With samples that are all but the means themselves, Track-and-Stop finds what the solver of the game does."""
    means = np.array([0.9, 0.8, 0.74, 0.5, 0.42, 0.1])
    instance = Instance(Gaussian(means, [1e-9] * 6), "exact")
    rules = {"delta": 1e-50, "max_pulls": 40_000, "shuffle_arms": False} | problem.settings
    env: Any = gym.make(f"bandit_envs/{problem.name}-v0", instance=instance, **rules).unwrapped
    agent, state = agents.make("track-and-stop(sigma=1.0)", env), None
    observation = env.reset(seed=1)[0]
    for _ in range(3000):
        action, state = agent.predict(observation, state)
        observation = env.step(action)[0]
    assert state is not None
    best = problem.characteristic_time(means)
    pulls = np.rint(state.own["w"][0] * 1e9).astype(np.int64)
    assert float(problem.evidence(pulls, means)) / 1e9 * best >= 0.98


def test_distribution_by_default() -> None:
    for arms, wanted in (
        ({}, "gaussian"),
        ({"distribution": "bernoulli", "support": (0.0, 1.0), "sigma": 0.5}, "bernoulli"),
        ({"distribution": "uniform", "support": (0.0, 2.0)}, "bounded"),
    ):
        assert agents.make("evidence", task(**arms)).distribution == wanted


@pytest.mark.parametrize("tracking", ["C", "D"])
def test_variances_that_are_not_known_yet(tracking: str) -> None:
    """After one pull each: rows without a best pair once led to writes outside of the arrays, and C-tracking to NaN."""
    arms = {"distribution": "gaussian", "mean": [0.9, 0.2, 0.8], "sd": 0.3}
    rules = {"instance": arms, "epsilon": 0.25, "delta": 0.1, "max_pulls": 3000}
    agent = f"track-and-stop(distribution='student', tracking={tracking!r})"
    found = agents.evaluate(agent, "bandit_envs/AllGood-v0", episodes=20, env_kwargs=rules)
    assert not found.episodes["truncated"].any()
    assert found.episodes["correct"].all()


def test_samples_that_are_all_one() -> None:
    """The pair of two arms of mean 1 has evidence, so that an epsilon is enough to stop."""
    rules = {"instance": {"distribution": "bernoulli", "mean": [1.0, 1.0, 0.1]}, "epsilon": 0.1, "delta": 0.1}
    names = ["evidence", "track-and-stop", "top-two"]
    found = agents.evaluate(names, "bandit_envs/BestArm-v0", episodes=10, env_kwargs=rules | {"max_pulls": 5000})
    assert found.summary()["total_pulls"].max() < 400
