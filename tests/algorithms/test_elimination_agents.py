"""Median Elimination, EAST, uniform elimination and FAREAST: schedules by hand, literal twins, error probabilities."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import Twin, as_twins, right_when_begun_anew, sampler, seen
from twins_elimination import best_arm, east, fareast, uniform_elimination

import agents
from agents.all_good.fareast import SAMPLE_OTHERS, bad_filter_pulls
from agents.top_k.median_elimination import width_constant
from bandit_envs import Gaussian, Instance, Task
from bandit_envs.kernels import PULLS_LIMIT

ALL_GOOD = "bandit_envs/AllGood-v0"
BEST_ARM = "bandit_envs/BestArm-v0"
NAMES = ["east", "uniform-elimination", "fareast", "median-elimination"]
FAREASTS = ["fareast", "fareast(finder='lucb', kappa=0.5)", "fareast(finder='lucb', kappa=0.5, tau=4, c=2.08)"]
MODES: dict[str, dict[str, Any]] = {
    "additive": {"epsilon": 0.3},
    "multiplicative": {"epsilon": 0.3, "multiplicative": True},
    "slack": {"epsilon": 0.3, "slack": 0.2},
    "multiplicative slack": {"epsilon": 0.3, "multiplicative": True, "slack": 0.2},
}


def twin_of(agent: Any) -> Twin:
    """The twin of an agent, on its task."""
    p, K = agent.task.parameters, agent.task.K
    if agent.name == "median-elimination":
        return best_arm(K, agent.epsilon, agent.delta, agent.constant)
    common = (K, p["epsilon"], p["multiplicative"], p["slack"], agent.task.delta, agent.task.sigma)
    if agent.name == "fareast":
        c = agent.factor / agent.task.sigma**2
        return fareast(*common, c, agent.finder, agent.kappa, agent.constant, agent.tau)
    return {"east": east, "uniform-elimination": uniform_elimination}[agent.name](*common)


def noisy(distribution: str = "gaussian", arms: int = 5, spread: float = 0.1, **mean: Any) -> dict[str, Any]:
    """A sampler of instances with large gaps."""
    return sampler(distribution, arms, spread, mean or {"choice": [0.1, 0.45, 0.85, 1.0]})


def task(**changes: Any) -> Task:
    """AllGood with epsilon .5 over 3 standard Gaussian arms, delta .1."""
    parameters = {"epsilon": 0.5, "multiplicative": False, "slack": 0.0}
    base = Task("AllGood", parameters, K=3, delta=0.1, distribution="gaussian", support=None, sigma=1.0)
    return base.replace(**changes)


def test_constant_of_median_elimination() -> None:
    assert width_constant(task(support=(0.0, 1.0), sigma=0.5), None) == 4  # as printed
    assert width_constant(task(support=(0.0, 1.0), sigma=0.5), 0.5) == 2  # 8 / 4
    assert width_constant(task(support=(1.0, 3.0), sigma=1.0), None) == 8
    assert width_constant(task(sigma=0.1), None) == pytest.approx(0.08, rel=1e-15)


def test_pulls_of_the_bad_filter() -> None:
    # r = 1, n = 10, delta = .1: 2^5 ln(80 / .05) = 236.09; r = 2: 2^7 ln(80 / .0125) = 1121.80
    assert [bad_filter_pulls(r, 10, 0.1) for r in (1, 2)] == [237, 1122]
    assert bad_filter_pulls(1, 10, 0.1, sigma=0.5) == math.ceil(236.09 / 4)
    assert [bad_filter_pulls(r, 10, 0.1, 1.0, 4.0) for r in (1, 2)] == [119, 561]  # half of them
    assert bad_filter_pulls(30, 10, 0.1) == bad_filter_pulls(1, 10, 0.1, sigma=1e9) == PULLS_LIMIT  # never reached


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["east", "uniform-elimination"])
def test_twins_of_the_eliminations(name: str, mode: str) -> None:
    as_twins(twin_of, name, ALL_GOOD, 30, 25, instance=noisy(), max_pulls=6000, **MODES[mode])
    as_twins(twin_of, name, ALL_GOOD, 8, 0, instance=noisy("bernoulli", 4), max_pulls=1000, **MODES[mode])  # with ties


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FAREASTS)
def test_twins_of_fareast(name: str, mode: str) -> None:
    as_twins(twin_of, name, ALL_GOOD, 20, 15, instance=noisy(spread=0.05), max_pulls=3000, **MODES[mode])
    as_twins(twin_of, name, ALL_GOOD, 3, 0, instance=noisy("bernoulli", 4), max_pulls=5000, **MODES[mode])


@pytest.mark.parametrize(("distribution", "arms"), [("gaussian", 7), ("bernoulli", 4), ("bernoulli", 2)])
def test_twins_of_median_elimination(distribution: str, arms: int) -> None:
    rules = {"instance": noisy(distribution, arms, uniform=[0.0, 1.0]), "epsilon": 0.2, "delta": 0.2}
    as_twins(twin_of, "median-elimination", BEST_ARM, 60, 60, **rules)


ONE_BAD = {"instance": noisy(arms=24, spread=0.02, choice=[1.0] * 10 + [0.005, 0.03]), "epsilon": 0.955}


@pytest.mark.parametrize("multiplicative", [False, True])
@pytest.mark.parametrize("slack", [0.0, 0.03])
def test_twins_where_the_bad_filter_acts(multiplicative: bool, slack: float) -> None:
    kwargs = ONE_BAD | {"multiplicative": multiplicative, "slack": slack, "max_pulls": 20000}
    name = "fareast(finder='lucb', kappa=0.9)"
    plays = as_twins(twin_of, name, ALL_GOOD, 9, **kwargs)
    assert sum(pulls[-1][1] > 1 for pulls, *_ in plays) >= 2  # the bad filter, in bulk, had the last word


@pytest.mark.parametrize("name", [*NAMES, FAREASTS[1]])
def test_met_in_the_middle(name: str) -> None:
    env_id, kwargs = (BEST_ARM, {"epsilon": 0.5}) if name == NAMES[3] else (ALL_GOOD, MODES["additive"])
    right_when_begun_anew(name, env_id, instance=noisy(), **kwargs)


def test_uniform_elimination_goes_on_where_it_was() -> None:
    agent = agents.make("uniform-elimination", task())
    assert agent.predict(seen([1, 1, 0], [1, 1, 0]))[0]["arm"] == 2
    assert agent.predict(seen([2, 1, 1], [0.5, 1, 0]))[0]["arm"] == 1
    action, state = agent.predict(seen([9, 7, 7], [1 / 9, 1 / 7, 0]))
    assert action["arm"] == 1
    assert agent.predict(seen([9, 8, 7], [1 / 9, 1 / 8, 0]), state)[0]["arm"] == 2
    action, state = agent.predict(seen([9999] * 3, [1, 0.9, 0]))  # known: C = .08, 1, .9 good, 0 bad
    assert action["arm"] == 3
    assert action["answer"].tolist() == [1, 1, 0]
    assert agent.recommend(seen([9999] * 3, [1, 0.9, 0]), state).tolist() == [True, True, False]


def test_a_bulk_pull_ends_with_the_budget() -> None:
    env: Any = gym.make(BEST_ARM, actions="full", instance=noisy(), epsilon=0.05, delta=0.1, budget=100)
    agent = agents.make("median-elimination(sigma=0.3)", env)
    observation, _ = env.reset(seed=0)
    action, state = agent.predict(observation)
    assert (action["arm"], type(action["times"])) == (0, int)
    assert action["times"] > 100
    observation, *_ = env.step(action)
    action, state = agent.predict(observation, state)
    assert action["answer"].tolist() == [1, 0, 0, 0, 0]  # arm 0 is the only one seen
    assert env.step(action)[2]


def test_bad_filter_of_fareast() -> None:
    """Figure 3, right, at a fiftieth of its scale: 19 arms at 1, one at 0, whose margin is .01."""
    arms = Instance(Gaussian(np.append(0.0, np.ones(19)), 0.02), "one bad")
    kwargs = {"instance": arms, "epsilon": 0.99, "delta": 0.01, "actions": "full", "autoreset_mode": "Disabled"}
    kwargs["shuffle_arms"] = False
    envs: Any = gym.make_vec(ALL_GOOD, 4, **kwargs)  # type: ignore[arg-type]
    agent = agents.make("fareast(finder='lucb', kappa=0.5)", envs)
    observation, _ = envs.reset(seed=0)
    state, previous, over, caught = None, np.zeros(4, np.int64), np.zeros(4, np.bool_), 0
    while not over.all():
        action, state = agent.predict(observation, state)
        stops = (action["arm"] == 20) & ~over
        caught += int((stops & (previous == SAMPLE_OTHERS)).sum())  # from the bad filter straight to the answer
        previous = state.now["stage"].copy()
        observation, _, terminated, _, info = envs.step(action)
        if stops.any():
            assert info["correct"][stops].all()
        over |= terminated
    assert caught == 4
    assert state.now["stopped"].all()
    assert state.answer.tolist() == [[False] + [True] * 19] * 4
