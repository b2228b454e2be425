"""Networks as small as these belong on the CPU; a model that lies on a GPU is played right. No GPU is needed here."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
import torch
from learning import THRESHOLD, TINY
from pages import of_pages, programs
from stable_baselines3 import PPO
from stable_baselines3.common import utils

import agents
from agents.learned import make_vec_env, policy

KINDS = r"^(?:\w+\.)*(PPO|A2C|DQN|RecurrentPPO|MaskablePPO)(?:\.load)?$"


def without_a_device(code: str) -> list[str]:
    """The calls in a program that make or load a model of SB3, and leave the device to SB3; **settings may hold one."""
    calls = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Call)]
    free = [one for one in calls if not any(key.arg in ("device", None) for key in one.keywords)]
    return [found for one in free for found in re.findall(KINDS, ast.unparse(one.func))]


def test_every_model_of_ours_is_put_on_the_cpu() -> None:
    codes = [*programs("examples", "tests"), *of_pages()]
    ours = [code for code in codes if re.search("stable_baselines3|sb3_contrib", code)]
    assert [lost for code in ours for lost in without_a_device(code)] == []
    assert without_a_device("PPO('MlpPolicy', env)\nPPO.load(x, device='cpu')") == ["PPO"]


def test_nothing_of_ours_asks_for_any_device(tmp_path: Path, monkeypatch: Any) -> None:
    """SB3's device "auto", a GPU where there is one, fails."""

    def named(device: Any = "auto") -> Any:
        assert device != "auto"
        return utils.get_device(device)

    for module in ("base_class", "buffers", "policies", "save_util"):
        monkeypatch.setattr(f"stable_baselines3.common.{module}.get_device", named)
    envs = make_vec_env(THRESHOLD, 2, **TINY["env_kwargs"])
    with pytest.raises(AssertionError, match="auto"):  # the wrong twin
        PPO("MlpPolicy", envs, device="auto")
    trained = agents.train(**TINY | {"steps": 256, "out": tmp_path / "model"})
    PPO("MlpPolicy", envs, n_steps=4, batch_size=8, device="cpu").save(tmp_path / "foreign")
    played = [trained, str(tmp_path / "model.safetensors"), agents.load(tmp_path / "foreign", trust=True), "ppo"]
    kwargs = TINY["env_kwargs"] | {"stop": True}
    assert len(agents.evaluate(dict(enumerate(played)), THRESHOLD, episodes=4, env_kwargs=kwargs).episodes) == 16


def test_masks_go_to_where_the_observations_are(monkeypatch: Any) -> None:
    """On the device `meta`, which has no numbers."""
    made, seen = agents.make("ppo", gym.make(THRESHOLD)).model.policy.to("meta"), list[Any]()
    nothing = torch.zeros(3), torch.zeros(3, dtype=torch.bool)
    monkeypatch.setattr(policy, "_best", lambda *given: seen.extend(given[:2]) or nothing)
    made._predict(torch.zeros(3, 64, device="meta"), True, action_masks=np.ones((3, 10), bool))
    assert [one.device.type for one in seen] == ["meta", "meta"]
