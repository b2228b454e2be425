"""Agents whose state is thrown away now and then, see `resuming`; and those that decide the same without it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import resuming
from rollouts import forgetful

import agents
from agents.core.index_policy import SCAN

ONCE = list({name: (problem, name) for problem, name in resuming.CASES}.values())  # each agent on one of its problems


class Stuck(agents.Agent):
    """Round robin, which counts its own steps: a wrong twin, since where the state is lost it begins with arm 0."""

    name, solves = "stuck", ("AllGood",)

    def initial_state(self, observation: Any) -> Any:
        return [0]

    def choose(self, observation: Any, state: Any) -> Any:
        state.append(0)
        return np.full(len(observation["pulls"]), (len(state) - 2) % self.task.K)


@pytest.mark.parametrize(
    ("problem", "name", "episodes", "lengths"),
    [
        *[(*case, 80, (3,)) for case in ONCE],
        *[("AllGood", name, 40, (7, 1)) for name in ("track-and-stop", "track-and-stop(tracking='D')", "top-two")],
        pytest.param("AllGood", Stuck, 40, (1,), marks=pytest.mark.xfail(raises=AssertionError, strict=True)),
    ],
)
def test_an_agent_plays_on_or_says_what_is_to_be_kept(
    problem: str, name: str, episodes: int, lengths: tuple[int, ...]
) -> None:
    try:
        resuming.check(problem, name, episodes, lengths)
    except resuming.Missing as error:
        pytest.skip(str(error))


FIVE = {"distribution": "gaussian", "mean": [1.0, 0.9, 0.2, 0.0, 0.5], "sd": 0.2}
BEST = {"instance": FIVE, "delta": 0.1, "budget": 100}
FORGETFUL: list[tuple[str, str, dict[str, Any]]] = [
    *[  # index policies, in a scan and in a tree
        (name, "Threshold", {"instance": {"sampler": {"arms": arms}}, "budget": 4 * arms})
        for name in ("apt", "dp-index", "evolved", "lsa", "opt-kg", "ucbe(H=100)")
        for arms in (5, SCAN + 12)
    ],
    *[(name, "TopK", BEST | {"k": 2, "epsilon": 0.1}) for name in ("pi1", "pi2", "pi3", "adapt", "ocba-m", "clucb")],
    ("lil-ucb", "BestArm", BEST),
]


@pytest.mark.parametrize(("name", "problem", "rules"), FORGETFUL)
def test_all_that_a_decision_needs_is_in_the_statistics(name: str, problem: str, rules: dict[str, Any]) -> None:
    """The same arms without the state as with it, over two ends and fresh starts."""
    envs = gym.make_vec(f"bandit_envs/{problem}-v0", 4, actions="full", **rules)
    forgetful(envs, agents.make(name, envs), 2 * rules["budget"] + 2)
