"""SB3's PPO in one run with what it is compared with: frames per second, and stepping alone.

The native VecEnv against DummyVecEnv, and `EquivariantPolicy` against the same network with SB3's own methods.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from race import Race, clock

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv

from agents.learned import EquivariantPolicy, make_vec_env
from agents.learned.policy import Equivariant

THRESHOLD, KWARGS = "bandit_envs/Threshold-v0", {"budget": 200, "observation": "features"}
STEPS = 32


def dummy(N: int) -> DummyVecEnv:
    """N single environments, one after the other."""
    return DummyVecEnv([lambda: gym.make(THRESHOLD, disable_env_checker=True, **KWARGS) for _ in range(N)])


@pytest.mark.benchmark(timer=clock)
@pytest.mark.parametrize("N", [64, 256])
def test_ppo(race: Race, N: int) -> None:
    torch.set_num_threads(1)
    settings: Any = {"n_steps": STEPS, "n_epochs": 4, "batch_size": STEPS * N // 4, "device": "cpu", "seed": 0}
    native, plain = (
        PPO(EquivariantPolicy, envs, **settings) for envs in (make_vec_env(THRESHOLD, N, **KWARGS), dummy(N))
    )
    race(lambda: native.learn(STEPS * N), lambda: plain.learn(STEPS * N), against="DummyVecEnv", at_least=1.0, rounds=5)


class Usual(Equivariant, ActorCriticPolicy):
    """The same network as that of `EquivariantPolicy`, with the methods of SB3's policy."""


@pytest.mark.benchmark(timer=clock)
def test_policy(race: Race) -> None:
    torch.set_num_threads(1)
    settings: Any = {"n_steps": STEPS, "n_epochs": 2, "batch_size": 1024, "device": "cpu", "seed": 0}
    settings["policy_kwargs"] = {"hidden": 16, "stop": False}
    own, usual = (PPO(kind, make_vec_env(THRESHOLD, 256, **KWARGS), **settings) for kind in (EquivariantPolicy, Usual))
    race(lambda: own.learn(STEPS * 256), lambda: usual.learn(STEPS * 256), against="SB3's", at_least=1.0, rounds=5)


@pytest.mark.benchmark(timer=clock)
@pytest.mark.parametrize("N", [64, 256])
def test_stepping(race: Race, N: int) -> None:
    native, plain = make_vec_env(THRESHOLD, N, **KWARGS), dummy(N)
    actions = np.random.default_rng(0).integers(0, 10, (STEPS, N))

    def run(envs: Any) -> None:
        for row in actions:
            envs.step(row)

    native.reset()
    plain.reset()
    race(lambda: run(native), lambda: run(plain), against="DummyVecEnv", at_least=1.0, rounds=5)
