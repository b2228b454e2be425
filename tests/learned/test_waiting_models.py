"""Models that learn where results come later: they see what is pending, are written, read and played."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import PPO

import agents
from agents.core.forms import Forms, forms_of
from agents.learned import load, make_vec_env
from bandit_envs.envs import NUMBERS, box_of

ID = "bandit_envs/BestArm-v0"
SHORT: dict[str, Any] = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "device": "cpu"}
LATE: dict[str, Any] = {"instance": "sampler(arms=6)", "budget": 30, "batch": 5, "delay": "exponential(2)"}


@pytest.mark.parametrize("form", NUMBERS)
def test_a_trained_model_reads_what_is_pending(form: str, tmp_path: Path) -> None:
    """Of 6 arms."""
    kwargs = LATE | {"observation": form}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = {"steps": 128, "num_envs": 8, "n_steps": 8, "held_out": 10, "checkpoints": 1}
        made = agents.train("ppo", ID, **short, env_kwargs=kwargs, seed=1, out=tmp_path / "late")
        read = load(tmp_path / "late")
        assert read.model.policy.pending
        assert read.model.observation_space == box_of(6, form, True)
        assert (read.card["task"]["batch"], read.card["task"]["delay"]) == (5, "exponential(2)")
        one, two = (
            agents.evaluate(agent, ID, episodes=40, env_kwargs=kwargs, seed=3, progress=False).episodes
            for agent in (made, read)
        )
    for name in ("score", "correct"):
        assert one[name].tolist() == two[name].tolist()
    envs: Any = gym.make_vec(ID, num_envs=3, **kwargs | {"instance": "sampler(arms=9)", "stop": False})
    actions, _ = read.predict(envs.reset(seed=0)[0])  # of another number of arms
    assert actions.shape == (3,)
    with pytest.raises(ValueError, match=f"reads observation='{form}'.* and not this one"):
        read.predict(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize(("policy", "form"), [("MlpPolicy", "relative"), ("MultiInputPolicy", "statistics")])
def test_policies_of_sb3_learn(policy: str, form: str) -> None:
    model = PPO(policy, make_vec_env(ID, 4, observation=form, **LATE), seed=0, **SHORT)
    model.learn(128)
    assert forms_of(model) == Forms("arm", form)
    result = agents.evaluate(model, ID, episodes=20, env_kwargs=LATE, progress=False)
    assert len(result.episodes) == 20


def test_masked_policies_learn() -> None:
    contrib: Any = pytest.importorskip("sb3_contrib")
    envs = make_vec_env(ID, 4, observation="features", **LATE)
    contrib.MaskablePPO("MlpPolicy", envs, seed=0, **SHORT).learn(128)


def test_mixes_show_the_same_numbers() -> None:
    with pytest.raises(ValueError, match="all entries of mix must have batch or delay, or none"):
        agents.train("ppo", ID, steps=100, env_kwargs={"budget": 30}, mix=[{"batch": 3}, {}])
