"""Networks as small as these belong on the CPU, also where there is a GPU; a model that lies on one is played right.

No GPU is needed here: `is_available` is made to say that there is one, so that SB3's device "auto" fails.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from learning import THRESHOLD, TINY
from stable_baselines3 import PPO

import agents
from agents.learned import make_vec_env, policy

ROOT = Path(__file__).parents[2]
KINDS = {"PPO", "A2C", "DQN", "RecurrentPPO", "MaskablePPO"}


def without_a_device(code: str) -> list[str]:
    """The calls in a program that make or load a model of SB3, and leave the device to SB3."""
    if not re.search(r"stable_baselines3|sb3_contrib", code):
        return []
    calls = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Call)]
    return [
        found
        for one in calls
        for found in re.findall(rf"^(?:\w+\.)*({'|'.join(KINDS)})(?:\.load)?$", ast.unparse(one.func))
        if not any(key.arg in ("device", None) for key in one.keywords)  # **settings may hold one
    ]


def test_every_model_of_ours_is_put_on_the_cpu() -> None:
    programs = {str(path): path.read_text() for place in ("examples", "tests") for path in (ROOT / place).rglob("*.py")}
    for page in [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]:
        programs |= {
            f"{page} {n}": one for n, one in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
        }
    assert {name: lost for name, code in programs.items() if (lost := without_a_device(code))} == {}
    assert without_a_device("from stable_baselines3 import PPO\nPPO('MlpPolicy', env)\nPPO.load(x, device='cpu')") == [
        "PPO"
    ]


def test_nothing_of_ours_asks_for_any_device(tmp_path: Path, monkeypatch: Any) -> None:
    """Training, files, names and evaluation on a machine that says that it has a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    envs = make_vec_env(THRESHOLD, 2, **TINY["env_kwargs"])
    with pytest.raises((AssertionError, RuntimeError), match="CUDA|NVIDIA"):  # the wrong twin
        PPO("MlpPolicy", envs, device="auto")
    trained = agents.train(**TINY | {"steps": 256, "out": tmp_path / "model"})
    PPO("MlpPolicy", envs, n_steps=4, batch_size=8, device="cpu").save(tmp_path / "foreign")
    played = [trained, str(tmp_path / "model.zip"), agents.load(tmp_path / "foreign", trust=True), "ppo"]
    result = agents.evaluate(
        dict(enumerate(played)), THRESHOLD, episodes=4, env_kwargs={**TINY["env_kwargs"], "stop": True}
    )
    assert result.episodes["score"].between(0, 1).all()


def test_masks_go_to_where_the_observations_are(monkeypatch: Any) -> None:
    """On the device `meta`, which has no numbers: the network's part in a decision, and what it is given."""
    made = agents.make("ppo", gym.make(THRESHOLD)).model.policy.to("meta")
    seen: list[Any] = []
    monkeypatch.setattr(
        policy, "_best", lambda *given: seen.append(given) or (torch.zeros(3), torch.zeros(3, dtype=bool))
    )
    made._predict(torch.zeros(3, 41, device="meta"), True, action_masks=np.ones((3, 10), bool))
    assert [one.device.type for one in seen[0][:2]] == ["meta", "meta"]
