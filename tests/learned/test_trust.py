"""Files of models that somebody else has made: nothing in them runs unless a user says that their maker is trusted."""

from __future__ import annotations

import base64
import io
import json
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from learning import FOUR, THRESHOLD, observations, untrained
from stable_baselines3 import PPO

import agents
from agents.cli import main
from agents.learned import Trained, make_vec_env
from agents.learned.algorithms import ALGORITHMS
from bandit_envs import Task

NEEDS_TRUST = r"trust=True, or --trust"


class Mine:
    """Unpickled, it makes a file: the trace of code that has run."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return Path.touch, (self.trace,)


@pytest.fixture
def trace(tmp_path) -> Path:
    return tmp_path / "trace"


@pytest.fixture(scope="module")
def foreign() -> bytes:
    """A model that SB3 alone has made and saved."""
    envs = make_vec_env(THRESHOLD, 2, observation="features", **FOUR)
    return saved(PPO("MlpPolicy", envs, n_steps=8, batch_size=8, device="cpu"))


@pytest.fixture(scope="module")
def ours() -> bytes:
    """A model with a policy of this package, saved by it."""
    model = untrained(make_vec_env(THRESHOLD, 4, observation="features", **FOUR))
    model.bandit_envs_format = 1
    return saved(model)


def saved(model: Any) -> bytes:
    content = io.BytesIO()
    model.save(content)
    return content.getvalue()


def with_mine(content: bytes, place: str, trace: Path) -> bytes:
    """A model file with a mine at this place."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    if place.endswith(".pth"):
        file = io.BytesIO()
        torch.save({"mine": Mine(trace)}, file)
        files[place] = file.getvalue()
    elif place:
        data = json.loads(files["data"])
        old = data.get(place)
        told = old if isinstance(old, dict) and ":type:" in old else {":type:": "mine"}
        data[place] = told | {":serialized:": base64.b64encode(pickle.dumps(Mine(trace))).decode()}
        files["data"] = json.dumps(data).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, one in files.items():
            archive.writestr(name, one)
    return made.getvalue()


PLACES = """policy_class observation_space action_space lr_schedule clip_range rollout_buffer_class policy_kwargs
    _last_obs anything policy.pth policy.optimizer.pth pytorch_variables.pth"""


@pytest.mark.parametrize("place", ["", *PLACES.split()[::4]])
def test_a_foreign_model_is_refused_and_nothing_runs(place, foreign, trace, tmp_path, capsys):
    path = tmp_path / "model.zip"
    path.write_bytes(with_mine(foreign, place, trace))
    env = gym.make(THRESHOLD, **FOUR)
    for call in (
        lambda: agents.load(path),
        lambda: agents.load(path, env),
        lambda: agents.make(str(path), env),
        lambda: agents.evaluate(str(path), THRESHOLD, episodes=2, env_kwargs=FOUR),
        lambda: agents.evaluate({"a": "lsa", "b": str(path)}, THRESHOLD, episodes=2, env_kwargs=FOUR),
        lambda: agents.play(str(path), THRESHOLD, env_kwargs=FOUR),
    ):
        with pytest.raises(ValueError, match=rf"model\.zip holds pickles.*{NEEDS_TRUST}"):
            call()
    options = ["--instance", "sampler(arms=4)", "--budget", "12", "--episodes", "2"]
    assert main(["evaluate", "Threshold", *options, "--agents", str(path)]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not trace.exists()


def test_a_model_of_ours_never_reaches_the_loader_of_sb3(ours, tmp_path, monkeypatch):
    """It unpickles what it finds, and a file may change between two looks at it."""
    (path := tmp_path / "model.zip").write_bytes(ours)
    monkeypatch.setattr(PPO, "load", lambda *_, **__: pytest.fail("the file is unpickled"))
    monkeypatch.setattr("stable_baselines3.common.save_util.json_to_data", lambda *_, **__: pytest.fail("unpickled"))
    agents.load(path)


@pytest.mark.parametrize("place", PLACES.split())
def test_a_model_of_ours_runs_nothing(place, ours, trace, tmp_path):
    """It is read as plain weights, with the right decisions, or refused where the weights themselves are not plain."""
    path, x = tmp_path / "model.zip", observations(4)
    path.write_bytes(ours)
    expected = agents.load(path).predict(x)[0]
    path.write_bytes(with_mine(ours, place, trace))
    if place in ("policy_kwargs", "policy.pth", "policy.optimizer.pth"):
        with pytest.raises(ValueError, match=NEEDS_TRUST):
            agents.load(path)
    else:
        assert np.array_equal(agents.load(path).predict(x)[0], expected)
    assert not trace.exists()


def test_the_word_loads_as_before(foreign, trace, tmp_path, capsys):
    path = tmp_path / "model.zip"
    path.write_bytes(foreign)
    env = gym.make(THRESHOLD, **FOUR)
    x = observations(4)
    expected = PPO.load(io.BytesIO(foreign), device="cpu").predict(x, deterministic=True)[0]
    for one in (agents.load(path, trust=True), agents.make(str(path), env, trust=True)):
        assert np.array_equal(one.predict(x)[0], expected)
    assert len(agents.evaluate(str(path), THRESHOLD, episodes=2, env_kwargs=FOUR, trust=True).episodes) == 2
    assert agents.play(str(path), THRESHOLD, env_kwargs=FOUR, trust=True).score >= 0
    options = ["--instance", "sampler(arms=4)", "--budget", "12", "--episodes", "2", "--trust"]
    assert main(["evaluate", "Threshold", *options, "--agents", str(path)]) == 0
    path.write_bytes(with_mine(foreign, "anything", trace))
    agents.load(path, trust=True)
    assert trace.exists()  # so that the tests above can fail
    with pytest.raises(ValueError, match="trust must be True or False, got 'yes'"):
        agents.load(path, trust="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_models_of_every_algorithm_are_read_as_plain_weights(algorithm, tmp_path, monkeypatch):
    if algorithm in ("maskable-ppo", "recurrent-ppo"):
        pytest.importorskip("sb3_contrib")
    kind, policy = ALGORITHMS[algorithm].classes()
    model = kind(policy, make_vec_env(THRESHOLD, 2, observation="features", **FOUR), device="cpu", seed=3)
    path = Trained(model).save(tmp_path / algorithm)
    x, expected = observations(4), {}
    for name, weight in model.policy.state_dict().items():
        expected[name] = weight.clone()
    actions = model.predict(x, deterministic=True)[0]
    monkeypatch.setattr(pickle, "loads", None)
    monkeypatch.setattr("cloudpickle.loads", None)
    loaded = agents.load(path)
    assert type(loaded.model) is kind
    assert all(torch.equal(weight, expected[name]) for name, weight in loaded.model.policy.state_dict().items())
    assert np.array_equal(loaded.predict(x)[0], actions)


# --- modules that evaluations and tasks name -------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["evil_module:Evil", " evil_module : Evil"])
def test_an_evaluation_that_names_a_module_needs_trust(problem, tmp_path, monkeypatch):
    """The folder of somebody else imports nothing; with the word it does."""
    evaluation = agents.evaluate("uniform", "Threshold", episodes=3, env_kwargs={"budget": 10}, progress=False)
    evaluation.save(tmp_path / "ev")
    settings = tmp_path / "ev" / "settings.json"
    told = json.loads(settings.read_text())
    for run in told["runs"]:
        run["task"]["problem"] = problem
    settings.write_text(json.dumps(told))
    trace = tmp_path / "trace"
    (tmp_path / "evil_module.py").write_text(
        f"from pathlib import Path\nPath({str(trace)!r}).touch()\n"
        "from bandit_envs.problems.threshold import Threshold as Evil\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "evil_module", raising=False)
    for refused in (
        lambda: agents.Evaluation.load(tmp_path / "ev"),
        lambda: Task.from_json(json.dumps(told["runs"][0]["task"])),
    ):
        with pytest.raises(ValueError, match="names a module.*trust=True"):
            refused()
    assert main(["plot", "ev"]) == 2
    assert not trace.exists()
    assert agents.Evaluation.load(tmp_path / "ev", trust=True).agents == ["uniform"]
    assert trace.exists()


# --- weights that decide nothing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(value, tiny_file, tmp_path):
    model = agents.load(tiny_file)
    with torch.no_grad():
        next(iter(model.model.policy.parameters())).fill_(value)
    model.save(tmp_path / "n")
    with pytest.raises(ValueError, match=r"n\.safetensors .*finite real numbers"):
        agents.load(tmp_path / "n")
