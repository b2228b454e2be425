"""Agents and models that know nothing of pending results, in environments with batches and delays."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import binom

import agents
import bandit_envs  # noqa: F401  (registers the environments)
from agents.core.waiting import guesses, imagined
from agents.evaluation import play

ARMS: dict[str, Any] = {"instance": "sampler(arms=6)"}


def test_by_hand() -> None:
    """Two arms: .75 of 4 and .5 of 2, mean of all 4 / 6; a third one has not been seen."""
    task = gym.make("bandit_envs/TopK-v0", instance="sampler(arms=3)", k=1, budget=20).unwrapped.task
    pulls, mean, total = np.array([[4, 2, 0]]), np.array([[0.75, 0.5, 0.0]]), np.array([[3.0, 1.0, 0.0]])
    assert guesses(task, pulls, mean, total).tolist() == [[0.75, 0.5, 4 / 6]]
    shown = {"pulls": pulls, "mean": mean, "total": total, "variance": np.array([[0.1875, 0.25, 0.0]])}
    seen = imagined(task, shown, np.array([[4, 0, 2]]))
    assert seen["pulls"].tolist() == [[8, 2, 2]]
    assert seen["mean"].tolist() == [[0.75, 0.5, 4 / 6]]
    assert seen["total"].tolist() == [[6.0, 1.0, 8 / 6]]
    assert seen["variance"].tolist() == [[0.09375, 0.25, 0.0]]
    assert guesses(task, 0 * pulls, 0 * mean, 0 * total).tolist() == [[0.5, 0.5, 0.5]]


@pytest.mark.parametrize("rules", [{"delay": 3}, {"batch": 5}, {"delay": "exponential(4)"}])
@pytest.mark.parametrize("name", ["evidence", "lsa", "sequential-halving", "uniform(stop='certificate')"])
def test_a_batch_of_episodes_decides_as_single_ones(name: str, rules: dict[str, Any]) -> None:
    by_delta = name in ("evidence", "uniform(stop='certificate')")
    end = {"delta": 0.2, "epsilon": 0.2, "max_pulls": 400} if by_delta else {"budget": 40}
    problem = "Threshold" if name == "lsa" else "BestArm"
    kwargs = ARMS | end | rules
    table = agents.evaluate(name, problem, episodes=6, seed=5, env_kwargs=kwargs, progress=False).episodes
    env = gym.make(f"bandit_envs/{problem}-v0", actions="full", **kwargs)
    agent = agents.make(name, env)
    for episode in range(6):
        seen, _ = env.reset(seed=5, options={"episode": episode})
        state, over, info = None, False, {}
        while not over:
            state = pickle.loads(pickle.dumps(copy.deepcopy(state)))
            action, state = agent.predict(seen, state)
            seen, _, ended, cut, info = env.step(action)
            over = ended or cut
        row = table.iloc[episode]
        assert (info["total_pulls"], info["score"]) == (row["total_pulls"], row["score"])


NEAR = {"distribution": "bernoulli", "mean": [0.5, 0.48, 0.48, 0.48, 0.48, 0.48]}


@pytest.mark.parametrize(("arms", "episodes", "most"), [(NEAR, 40, 400), ("sampler(arms=3)", 400, 20_000)])
def test_what_is_imagined_certifies_nothing(arms: Any, episodes: int, most: int) -> None:
    """At delta .2 more episodes are wrong with probability 1e-6; who looks ahead errs more."""
    kwargs = {"instance": arms, "delta": 0.2, "delay": 200, "max_pulls": most}
    rows = agents.evaluate("evidence", "BestArm", episodes=episodes, seed=3, env_kwargs=kwargs, progress=False).episodes
    assert (~rows["correct"] & ~rows["truncated"]).sum() <= binom.isf(1e-6, episodes, 0.2)
    assert (rows.loc[~rows["truncated"], "level"] <= 0.2 * (1 + 1e-9)).all()


def test_a_model_without_pending_plays_by_what_is_imagined() -> None:
    """The stored model is as good with batches of 3 as without, up to .1."""
    kwargs = {"instance": "sampler(arms=6)", "budget": 60}
    scores = {}
    for batch in (1, 3):
        result = agents.evaluate(
            "ppo", "BestArm", episodes=50, seed=2, env_kwargs=kwargs | {"batch": batch}, progress=False
        )
        scores[batch] = float(result.summary()["score"].iloc[0])
    assert scores[3] >= scores[1] - 0.1


def test_in_the_form_of_arms_no_agent_waits() -> None:
    for name in ("evidence", "sequential-halving"):
        end = {"delta": 0.2, "max_pulls": 200} if name == "evidence" else {"budget": 30}
        env = gym.make("bandit_envs/BestArm-v0", **ARMS, delay=8, **end)
        agent = agents.make(name, env)
        seen, _ = env.reset(seed=1)
        state, over, asked = None, False, 0
        while not over:
            action, state = agent.predict(seen, state)
            seen, _, ended, cut, info = env.step(action)
            over, asked = ended or cut, asked + 1
        assert asked - (action == 6) == info["total_pulls"]


@pytest.mark.parametrize("pending", [np.zeros((1, 5), int), np.full((1, 6), -1), np.zeros((1, 6))])
def test_pending_that_is_none_is_refused(pending: Any) -> None:
    env = gym.make("bandit_envs/BestArm-v0", **ARMS, delay=8, budget=30, actions="full")
    agent = agents.make("uniform", env)
    seen, _ = env.reset(seed=1)
    with pytest.raises(ValueError, match="pending"):
        agent.predict({**seen, "pending": pending[0]})
    _, state = agent.predict(seen)
    with pytest.raises(ValueError, match="state must be None"):
        agent.predict(seen, (state, 3))


def test_traces_are_of_episodes_without_delay() -> None:
    with pytest.raises(ValueError, match="batch"):
        play("uniform", "BestArm", env_kwargs=ARMS | {"budget": 30, "batch": 4})
