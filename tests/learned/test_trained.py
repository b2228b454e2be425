"""Learned agents: the same decisions in every loop, repeated actions; the extra that they need."""

from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from learning import FOUR, THRESHOLD
from stable_baselines3.common.evaluation import evaluate_policy

import agents
from agents.learned import make_vec_env


def test_decisions_are_the_same_in_every_loop(tiny):
    """evaluate in batches of any size, SB3's evaluate_policy, and a plain Gymnasium loop."""
    result, small = (
        agents.evaluate({"ppo": tiny}, THRESHOLD, episodes=48, seed=9, env_kwargs=FOUR, batch=batch)
        for batch in (48, 5)
    )
    assert result.episodes.equals(small.episodes)
    assert result.pulls.equals(small.pulls)
    envs = make_vec_env(THRESHOLD, 12, observation="features", **FOUR)
    envs.seed(9)
    returns, lengths = evaluate_policy(tiny, envs, n_eval_episodes=48, return_episode_rewards=True)
    assert returns == result.episodes["score"].tolist()
    assert lengths == [12] * 48
    env = gym.make(THRESHOLD, observation="features", **FOUR)
    pulls, scores = np.zeros(4), []
    for e in range(48):
        observation, _ = env.reset(seed=9, options={"episode": e})
        state, over = None, False
        while not over:
            action, state = tiny.predict(observation, state)
            pulls[action] += 1
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        scores.append(info["score"])
    assert scores == result.episodes["score"].tolist()
    assert pulls / 48 == pytest.approx(result.pulls["pulls"].to_numpy())


def test_statistics_are_refused(tiny):
    env = gym.make(THRESHOLD, **FOUR)
    observation, _ = env.reset(seed=0)
    for agent, form in ((tiny, "features"), (agents.make("ppo", env), "relative")):
        with pytest.raises(ValueError, match=f"reads observation='{form}', and not this one.*is a dict but"):
            agent.predict(observation)


# --- the extra --------------------------------------------------------------------------------------------------------


def test_agents_are_imported_without_the_extra_which_is_named_where_it_is_missing():
    code = """
import sys, agents
extra = ("stable_baselines3", "torch")
assert not {*extra} & set(sys.modules)
for missing in extra:
    sys.modules[missing] = None
    try:
        agents.train()
    except ImportError as error:
        assert 'pip install ".[training]"' in str(error), error
        del sys.modules[missing]
assert not {*extra} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_of_the_package_are_unknown():
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        _ = agents.trian  # type: ignore[attr-defined]
