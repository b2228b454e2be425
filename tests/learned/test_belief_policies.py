"""The policy for all arms that reads beliefs, and trainings with gains for rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3")
import torch
from stable_baselines3 import A2C, DQN, PPO

import agents
from agents.learned import ArmExtractor, EquivariantPolicy, make_vec_env
from agents.learned.checkpoints import Clock
from agents.learned.comparison import advice
from agents.learned.maskable import MaskableEquivariantPolicy

FORMS: dict[str, Any] = {"observation": "relative", "reward": "gain", "ranked": True}


def vec_env(stop: bool = False, **kwargs: Any) -> Any:
    return make_vec_env("TopK", 8, k=2, budget=30, stop=stop, **{**FORMS, **kwargs})


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "dqn", "maskable-ppo", "recurrent-ppo"])
def test_algorithms_learn_from_beliefs(algorithm: str) -> None:
    own: dict[str, Any] = {"device": "cpu", "policy_kwargs": {"features_extractor_class": ArmExtractor}}
    model: Any
    if algorithm == "dqn":
        model = DQN("MlpPolicy", vec_env(), learning_starts=50, **own)
    elif algorithm == "a2c":
        model = A2C(EquivariantPolicy, vec_env(), device="cpu")
    elif algorithm == "ppo":
        model = PPO(EquivariantPolicy, vec_env(), n_steps=30, batch_size=60, n_epochs=1, device="cpu")
    else:
        contrib = pytest.importorskip("sb3_contrib")
        if algorithm == "maskable-ppo":
            short: dict[str, Any] = {"n_steps": 30, "batch_size": 60, "n_epochs": 1, "device": "cpu"}
            model = contrib.MaskablePPO(MaskableEquivariantPolicy, vec_env(True), **short)
        else:
            own["policy_kwargs"] |= {"lstm_hidden_size": 8}
            model = contrib.RecurrentPPO("MlpLstmPolicy", vec_env(), n_steps=30, batch_size=60, n_epochs=1, **own)
    before = [weight.clone() for weight in model.policy.parameters()]
    model.learn(240)
    assert any(not torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True))
    arms, _ = model.predict(vec_env().reset())
    assert (arms < 10 + (algorithm == "maskable-ppo")).all()  # which may stop


@pytest.mark.filterwarnings("ignore:the order of the arms is unsettled")  # after 64 steps
def test_what_a_training_chooses_itself(tmp_path: Path) -> None:
    kwargs, own = {"k": 2, "budget": 30}, {"steps": 256, "n_steps": 16, "num_envs": 8, "held_out": 10}
    trained = agents.train("ppo", "TopK", **own, env_kwargs=kwargs, out=tmp_path / "ppo")
    chosen = {"observation": "relative", "reward": "gain", "stop": False, "ranked": False}
    assert trained.card["env_kwargs"] == kwargs | chosen
    assert trained.card["hyperparameters"]["gamma"] == 1.0
    assert trained.card["checkpoints"][0]["steps"] == 0
    assert (tmp_path / "ppo.png").stat().st_size > 5000
    short = {"steps": 64, "num_envs": 4, "n_steps": 8, "held_out": 4}
    with_delta = agents.train("ppo", "TopK", **short, env_kwargs={"k": 2, "delta": 0.1, "max_pulls": 40})
    assert with_delta.card["env_kwargs"]["stop"] is True
    features = agents.train("ppo", "TopK", **short, env_kwargs={**kwargs, "observation": "features"})
    assert features.card["env_kwargs"]["reward"] == "score"
    with pytest.raises(ValueError, match="train chooses 'actions' itself"):
        agents.train("ppo", "TopK", steps=300, env_kwargs={**kwargs, "actions": "full"})


def test_the_start_is_kept_where_nothing_is_better() -> None:
    """With a learning rate that ruins the network."""
    kwargs = {"k": 2, "budget": 60, "stop": False}
    own = {"steps": 512, "num_envs": 8, "n_steps": 16, "learning_rate": 3.0, "held_out": 300}
    trained = agents.train("ppo", "TopK", **own, env_kwargs=kwargs)
    rows = trained.card["checkpoints"]
    assert trained.card["kept"] == 0
    assert rows[0]["return"] >= max(row["return"] for row in rows[1:])
    difference = trained.card["result"]["differences"]["untrained"]["score"]
    assert difference["difference"] == 0.0
    said = advice("ppo", trained.card["kept"], trained.card["result"])
    assert said[0].startswith("no checkpoint was better than the untrained start, which is kept: train longer")


def test_advice() -> None:
    one = {"difference": -0.1, "low": -0.2, "high": -0.05, "p": 0.0}
    level = {**one, "high": 0.01}
    result = {"differences": {"untrained": {"score": one}, "uniform": {"score": level}, "lsa": {"score": one}}}
    assert advice("ppo", 5, result) == ["significantly ahead of ppo here: lsa. Train longer, or try evolved"]
    assert advice("ppo", 5, {"differences": {"uniform": {"score": level}}}) == []


def test_progress_never_runs_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling is told of after it: time that it has taken is given back."""

    class Compiling:
        seconds = 0.0

    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    clock = Clock(None, 100.0, 0.0, Compiling())  # type: ignore[arg-type]
    clock.begin()
    now[0] = 78.0
    assert clock.share() == pytest.approx(0.78)
    Compiling.seconds = 26.0
    assert clock.share() == pytest.approx(0.78)
    assert clock.time_share() == pytest.approx(0.52)
