"""Agents in the vector environment of Stable-Baselines3 and in `evaluate`: the same episodes, decisions and scores."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents

N = 5
MEANS: Any = {"distribution": "bernoulli", "mean": [0.8, 0.5, 0.5, 0.45]}  # with ties, and in a random order
RULES: dict[str, dict[str, Any]] = {
    "Threshold": {"threshold": 0.6},
    "AllGood": {"epsilon": 0.2},
    "TopK": {"k": 2},
    "BestArm": {"salt": 2**62 + 5},
    "Feasible": {"A": [[-1.0]], "b": [-0.6]},
}


def by_sb3(agent: str, envs: Any) -> list[float]:
    """Single pulls, and plug-in answers, in the vector environment of Stable-Baselines3."""
    envs.seed(0)
    seen, scores, state, policy = envs.reset(), dict[int, float](), None, agents.make(agent, envs)
    while len(scores) < N:
        numbers = envs.episodes
        action, state = policy.predict(seen, state)
        seen, _, done, infos = envs.step(action)
        scores |= {int(numbers[i]): infos[i]["score"] for i in np.flatnonzero(done)}
    return [scores[e] for e in range(N)]


@pytest.mark.parametrize("problem", RULES)
def test_the_same_scores_in_sb3(problem: str) -> None:
    """Only where the answer is the plug-in one; the wrong twin plays other episodes."""
    kwargs, env_id, differ = {"instance": MEANS, "budget": 21, **RULES[problem]}, f"bandit_envs/{problem}-v0", 0
    pytest.importorskip("stable_baselines3")
    from agents.learned import make_vec_env

    envs = make_vec_env(env_id, 2, **kwargs)
    for name in {"uniform", "random", "apt", "lsa", "top-two", "successive-rejects"} & {*agents.names(problem)}:
        if type(agents.make(name, gym.make(env_id, **kwargs))).recommend is agents.Agent.recommend:
            one, other = (agents.evaluate(name, env_id, episodes=N, env_kwargs=kwargs, seed=seed) for seed in (0, 1))
            assert one.episodes["score"].tolist() == (found := by_sb3(name, envs)), name
            differ += other.episodes["score"].tolist() != found
    assert differ >= 2
