"""What the tests of learning share: small environments, played episodes, policies that have not learned yet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO

from agents.learned import EquivariantPolicy, NativeVecEnv, Trained, make_vec_env
from agents.learned.plain import facts_of

THRESHOLD = "bandit_envs/Threshold-v0"
FOUR = {"instance": {"sampler": {"arms": 4}}, "budget": 12}
CLEAR = {"choice": [0.02, 0.98, 0.4, 0.6, 0.6]}  # means, two of which are far from the threshold
FEATURED = FOUR | {"observation": "features", "reward": "gain"}
TINY = {"steps": 2048, "num_envs": 16, "env_kwargs": FEATURED, "held_out": 40, "checkpoints": 2, "progress": False}


def part(observation: Any, i: int) -> Any:
    """The observation of one slot."""
    return {k: v[i] for k, v in observation.items()} if isinstance(observation, dict) else observation[i]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return np.array_equal(one, other)


def played(envs: NativeVecEnv, rounds: int, seed: int = 0) -> list[list[dict[str, Any]]]:
    """The episodes that end within so many random actions per slot, each a list of its steps."""
    random, running, ended = np.random.default_rng(seed), [[] for _ in range(envs.num_envs)], []
    before = envs.reset()
    for _ in range(rounds):
        numbers, actions = envs.episodes, random.integers(0, envs.task.K, envs.num_envs)
        after, rewards, dones, infos = envs.step(actions)
        for i, info in enumerate(infos):
            step = {"number": numbers[i], "before": part(before, i), "action": int(actions[i]), "reward": rewards[i]}
            running[i].append(step | {"after": info.get("terminal_observation", part(after, i)), "info": info})
            assert dones[i] == bool(info)
            if dones[i]:
                ended.append(running[i])
                running[i] = []
        before = after
    return ended


def untrained(envs: NativeVecEnv, hidden: int = 16) -> PPO:
    kwargs = {"hidden": hidden}
    return PPO(EquivariantPolicy, envs, n_steps=8, batch_size=32, seed=3, device="cpu", policy_kwargs=kwargs)


def zipped(trained: Trained, path: Path) -> Path:
    """The model and its card as version 0.2.0 wrote them: SB3's zip, in which words tell what pickles hold."""
    model = trained.model
    model.bandit_envs_format, model.bandit_envs_network = 1, (facts_of(model) or {}).get("network")
    model.save(path.with_suffix(".zip"), exclude=["_last_obs", "_last_episode_starts", "ep_info_buffer"])
    path.with_suffix(".json").write_text(json.dumps({"format": 1, **trained.card}))
    return path.with_suffix(".zip")


def observations(arms: int, count: int = 32) -> np.ndarray:
    """Features from the middle of random episodes."""
    envs = make_vec_env(THRESHOLD, count, observation="features", instance={"sampler": {"arms": arms}}, budget=200)
    envs.seed(11)
    observation, random = envs.reset(), np.random.default_rng(2)
    for _ in range(5 * arms):
        observation, *_ = envs.step(random.integers(0, arms, count))
    return observation


def weights(trained: Trained) -> dict[str, torch.Tensor]:
    return trained.model.policy.state_dict()
