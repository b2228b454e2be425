"""Bad calls of the evolved index and of its evolution are refused by the names of what is wrong."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
from refusals import table

import agents
from agents.evolved.agent import Evolved
from agents.evolved.evolution import evolve
from bandit_envs.instances.instance import Sampler

THRESHOLD = "bandit_envs/Threshold-v0"
TINY: dict[str, Any] = {"generations": 1, "population": 4, "episodes": 9, "progress": False}
TINY |= {"env_kwargs": {"instance": "sampler(arms=3)", "budget": 9}}


def evolved(parameters: Any) -> Any:
    return lambda: Evolved(gym.make(THRESHOLD), parameters)


def another_batch() -> None:
    """The state of three episodes, for nine."""
    envs, more = (gym.make_vec("bandit_envs/TopK-v0", n, budget=60, k=2) for n in (3, 9))
    agent = agents.make("evolved", envs)
    agent.predict(more.reset(seed=0)[0], agent.predict(envs.reset(seed=0)[0])[1])


def shares(problem: str, **kwargs: Any) -> Any:
    """Two candidates for three episodes; defect: episodes beyond the last whole share read foreign memory."""

    def call() -> None:
        parameters = agents.make("evolved", gym.make("bandit_envs/TopK-v0", k=2, budget=50)).candidates[0]
        envs = gym.make_vec(f"bandit_envs/{problem}-v0", 3, budget=50, **kwargs)
        agents.make("evolved", envs, parameters=[parameters] * 2).predict(envs.reset(seed=0)[0])

    return call


def nothing_stored(name: str, env_id: str = THRESHOLD, **kwargs: Any) -> Any:
    return lambda: agents.make(name, gym.make(env_id, **kwargs))


PRICED: dict[str, Any] = {"instance": "sampler(arms=3)", "pull_cost": 0.01, "delta": 0.1}

test_bad_calls = table(
    {
        "no end": (lambda: evolve(**TINY | {"generations": None}), "seconds", "generations"),
        "a small population": (lambda: evolve(**TINY | {"population": 3}), "population", 3),
        "no time": (lambda: evolve(**TINY | {"seconds": 0}), "seconds", 0),
        "episodes that cost nothing": (
            lambda: evolve(**TINY | {"env_kwargs": {"instance": "sampler(arms=3)", "max_pulls": 50}}),
            *("budget", "pull_cost", "delta"),
        ),
        "too few parameters": (evolved([1.0, 2.0]), 18, "parameters"),
        "no numbers": (evolved([math.nan] * 18), 18, "parameters"),
        "the state of another batch": (another_batch, 3),
        "shares of TopK": (shares("TopK", k=2), "parameters", 2, 3),
        "shares of Threshold": (shares("Threshold"), "parameters", 2, 3),
        "how to train": (nothing_stored("evolved", **PRICED), "evolved", "Threshold", "--pull-cost", 0.01),
        "how to train ppo": (nothing_stored("ppo", **PRICED), "ppo", "Threshold", "--pull-cost", 0.01),
        "around: falling": (lambda: Sampler(mean={"around": [0.5, 0.3, 0.1]}), "least", "most"),
        "around: two": (lambda: Sampler(mean={"around": [0.5, 0.1]}), "around", 3),
        "around: out of range": (lambda: Sampler(mean={"around": [0.9, 0.1, 0.3]}), 0, 1),
    }
)
