"""Speed of the agents that stop with a certificate, against their samples alone. Run as test_speed.py."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from race import Race, clock

import agents
from bandit_envs.kernels import rng

speed = functools.partial(pytest.mark.benchmark, timer=clock)
PULLS, SAMPLES = 200, 118.0  # pulls of an arm on average; millions of samples a second, on a core of an Intel Xeon
RULES: dict[str, dict[str, Any]] = {"BestArm": {"epsilon": 0.05}, "TopK": {"k": 5, "epsilon": 0.05}, "AllGood": {}}


@numba.njit(error_model="numpy")
def samples(count: int) -> float:
    """The random numbers of so many samples, and nothing else."""
    total, zero, one = 0.0, np.uint64(0), np.uint64(1)
    for t in range(count):
        w0, w1, _, _ = rng.philox(np.uint64(t), zero, one, zero, zero, one)
        total += rng.to_uniform(w0, w1)
    return total


def evaluation(name: str, problem: str, distribution: str, arms: int, episodes: int) -> Callable[[], int]:
    """Episodes of up to 200 pulls per arm, at a delta that hardly any reaches; returns how many there were."""
    sampler = {"sampler": {"distribution": distribution, "arms": arms}}
    rules = {"instance": sampler, "delta": 1e-100, "max_pulls": PULLS * arms, **RULES[problem]}

    def run() -> int:
        rows = agents.evaluate(name, problem, episodes=episodes, env_kwargs=rules, progress=False).episodes
        return int(rows["total_pulls"].sum())

    return run


# One million pulls a second at K = 25, 100,000 at K = 1000, where samples alone run at 118 millions.
@speed(group="j. certified agents, times as long as their samples alone")
@pytest.mark.parametrize(("arms", "episodes", "rate"), [(25, 40, 1.0), (1000, 1, 0.1)], ids=["25", "1000"])
@pytest.mark.parametrize("distribution", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("problem", RULES)
@pytest.mark.parametrize("name", ["evidence", "track-and-stop", "top-two"])
def test_certified(
    race: Race, name: str, problem: str, distribution: str, arms: int, episodes: int, rate: float
) -> None:
    if problem == "AllGood" and name == "top-two":
        pytest.skip("top-two rules are for BestArm, TopK and Threshold")
    run = evaluation(name, problem, distribution, arms, episodes)
    count = run()
    assert count > PULLS * arms * episodes / 20
    race(run, lambda: samples(count), against="their samples alone", at_most=SAMPLES / rate, rounds=3)
