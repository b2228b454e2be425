"""Files of models: SB3's, other formats and versions, networks as plain numbers."""

from __future__ import annotations

import json
import sys
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from learning import FOUR, THRESHOLD, observations, untrained, weights, zipped
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from stable_baselines3 import PPO

import agents
from agents.evolved.evolution import evolve
from agents.learned import EquivariantPolicy, Trained, make_vec_env
from agents.learned.algorithms import FORMS
from agents.models.cards import FOLDER, FORMAT, card_path


def test_sb3_saves_and_loads_the_policy(ten, tmp_path):
    x = observations(10)
    expected, _ = ten.predict(x, deterministic=True)
    ten.save(tmp_path / "model")
    ten.policy.save(tmp_path / "policy")
    for one in (
        PPO.load(tmp_path / "model", device="cpu"),
        agents.load(Trained(ten).save(tmp_path / "ours")),
        agents.load(agents.load(tmp_path / "model").save(tmp_path / "again")),
        EquivariantPolicy.load(tmp_path / "policy", device="cpu"),
        agents.load(tmp_path / "model"),
        agents.load(tmp_path / "model.zip"),
    ):
        assert np.array_equal(one.predict(x, deterministic=True)[0], expected)
    assert EquivariantPolicy.load(tmp_path / "policy", device="cpu").hidden == 16


def test_other_arms_leave_the_weights_as_they_are(tiny_file):
    four, ten = agents.load(tiny_file), agents.load(tiny_file, gym.make(THRESHOLD))
    assert [one.model.action_space.n for one in (four, ten)] == [4, 10]
    other = weights(ten)
    assert all(torch.equal(weight, other[name]) for name, weight in weights(four).items())


def test_a_policy_of_ten_arms_runs_on_twenty(ten, tmp_path):
    kwargs = {"instance": {"sampler": {"arms": 20}}, "budget": 60}
    path = Trained(ten).save(tmp_path / "model")
    envs = make_vec_env(THRESHOLD, 4, observation="features", **kwargs)
    loaded = agents.load(path, envs)
    assert loaded.model.action_space.n == 21
    x = observations(20)
    expected, _ = loaded.predict(x)
    assert np.array_equal(agents.load(path).predict(x)[0], expected)  # it follows the observations, too
    assert np.array_equal(agents.load(path).predict(x[0])[0], expected[0])
    loaded.model.set_env(envs)
    loaded.model.learn(32)
    both = {"file": str(path), "model": agents.load(path).model}
    with pytest.warns(UserWarning, match="stopped after 0 of 60 pulls on average"):  # neither has learned
        result = agents.evaluate(both, THRESHOLD, episodes=20, env_kwargs=kwargs)
    assert len(result.episodes) == 40
    with pytest.raises(ValueError, match="shape"):
        agents.load(path).predict(x[:, :-1])


def test_files_that_are_no_models(tmp_path, ten):
    with pytest.raises(FileNotFoundError, match=r"there is no saved model .*nothing\.safetensors"):
        agents.load(tmp_path / "nothing")
    (tmp_path / "text.zip").write_text("no archive")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("data", json.dumps({"hello": 1}))
    for name in ("text", "other"):
        with pytest.raises(ValueError, match=rf"{name}\.zip holds no model"):
            agents.load(tmp_path / f"{name}.zip")
    statistics = PPO("MultiInputPolicy", make_vec_env(THRESHOLD, 2, **FOUR), n_steps=8, batch_size=8, device="cpu")
    statistics.save(tmp_path / "statistics")
    with pytest.raises(ValueError, match="trained on other observations"):
        agents.load(tmp_path / "statistics", trust=True)
    envs = make_vec_env(THRESHOLD, 2, observation="features", **FOUR)
    PPO("MlpPolicy", envs, n_steps=8, batch_size=8, device="cpu").save(tmp_path / "plain")
    with pytest.raises(ValueError, match="for 4 arms, which cannot run on 10"):
        agents.load(tmp_path / "plain", gym.make(THRESHOLD), trust=True)
    assert agents.load(tmp_path / "plain", gym.make(THRESHOLD, **FOUR), trust=True).name == "ppo"


def test_paths_of_models(tmp_path, tiny):
    zipped(tiny, tmp_path / "b")
    assert agents.load(tmp_path / "b").card["call"] == tiny.card["call"]
    for out in (tmp_path / "a", Path(tmp_path / "b.zip"), str(tmp_path / "c.safetensors")):
        assert tiny.save(out).suffix == ".safetensors"
    names = [f"{x}.{y}" for x in "abc" for y in ("json", "safetensors")]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    for name in (".zip", ".safetensors", ""):
        with pytest.raises(ValueError, match=r"out must name a file, got "):
            tiny.save(Path("/") / name)


def test_a_path_of_a_model_takes_parameters(tmp_path, tiny):
    model = str(tiny.save(tmp_path / "a"))
    env = gym.make(THRESHOLD, **FOUR | {"delta": 0.1}, actions="full")
    assert agents.make(f"{model}(stop='certificate')", env).name == agents.make(model, env, stop="certificate").name
    with pytest.raises(ValueError, match="has no parameter 'alpha'"):
        agents.make(f"{model}(alpha=2)", gym.make(THRESHOLD, **FOUR))
    with pytest.raises(FileNotFoundError, match=r"no saved model nowhere.zip"):
        agents.make("nowhere.zip(stop='certificate')", env)


@pytest.mark.parametrize("write", [Trained.save, zipped])
def test_a_model_goes_on_as_it_was(write, tiny, tmp_path):
    """By its hyperparameters, how far it has come, and the moments of its optimizer; behind late results, too."""
    path = write(tiny, tmp_path / "model")
    found, wanted = agents.load(path).model, tiny.model
    names = ["n_steps", "n_envs", "batch_size", "gamma", "ent_coef", "learning_rate", "num_timesteps", "_n_updates"]
    assert [getattr(found, name) for name in names] == [getattr(wanted, name) for name in names]
    assert found.clip_range(1.0) == wanted.clip_range(1.0)
    assert found.num_timesteps == 2048
    moments = [one.policy.optimizer.state_dict()["state"] for one in (found, wanted)]
    assert len(moments[0]) == len(moments[1]) > 0
    assert all(torch.equal(x, moments[1][i][name]) for i, row in moments[0].items() for name, x in row.items())
    late = make_vec_env(THRESHOLD, 4, observation="features", delay=2, **FOUR)
    path = write(Trained(untrained(late)), tmp_path / "late")
    assert agents.load(path).model.observation_space == late.observation_space


# --- formats and versions ---------------------------------------------------------------------------------------------


def test_models_and_cards_have_the_number_of_their_format(tiny, tmp_path):
    path = tiny.save(tmp_path / "model")
    assert tiny.card["format"] == json.loads(path.with_suffix(".json").read_text())["format"] == FORMAT == 1
    with safe_open(path, "np") as file:
        assert json.loads(file.metadata()["bandit_envs"])["format"] == FORMAT
    assert evolve(generations=1, population=4, episodes=20, env_kwargs=FOUR, progress=False)[1]["format"] == FORMAT


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what a saved model tells of itself; its card knows no digests."""
    if path.suffix == ".safetensors":
        with safe_open(path, "np") as file:
            data = json.loads(file.metadata()["bandit_envs"])
        change(data)
        save_file(load_file(path), path, {"bandit_envs": json.dumps(data)})
        forget(path)
        return
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    data = json.loads(files["data"])
    change(data)
    files["data"] = json.dumps(data).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    forget(path)


def forget(path: Path) -> None:
    """Take the digests off a card."""
    card = path.with_suffix(".json")
    card.write_text(json.dumps({key: value for key, value in json.loads(card.read_text()).items() if key != "digests"}))


def test_a_file_without_a_number_is_of_the_first_format(tiny, tmp_path):
    path = zipped(tiny, tmp_path / "model")
    changed(path, lambda data: data.pop("bandit_envs_format"))
    card = path.with_suffix(".json")
    card.write_text(json.dumps({name: value for name, value in tiny.card.items() if name != "format"}))
    x = observations(4)
    assert np.array_equal(agents.load(path).predict(x)[0], tiny.predict(x)[0])


@pytest.mark.parametrize(("write", "name"), [(Trained.save, "format"), (zipped, "bandit_envs_format")])
def test_other_formats_are_refused(tiny, tmp_path, write, name):
    again = r": train it again: agents\.train\('ppo'"
    path = write(tiny, tmp_path / "model")
    changed(path, lambda data: data.update({name: 7}))
    with pytest.raises(ValueError, match=rf"model{path.suffix} has format 7; this version reads format 1{again}"):
        agents.load(path)
    with pytest.raises(ValueError, match=rf"model{path.suffix} has format 7; this version reads format 1{again}"):
        agents.evaluate(str(path), THRESHOLD, episodes=2, env_kwargs=FOUR)
    path.with_suffix(".json").unlink()
    with pytest.raises(ValueError, match="format 7; this version reads format 1: train it again$"):
        agents.load(path)
    path = tiny.save(tmp_path / "model")
    card = path.with_suffix(".json")
    card.write_text(json.dumps(tiny.card | {"format": 2}))
    with pytest.raises(ValueError, match=rf"model\.json has format 2; this version reads format 1{again}"):
        agents.load(path)
    card.write_text(json.dumps(tiny.card | {"features": ["pulls", "colour"]}))
    with pytest.raises(ValueError, match=rf"another version .*the features pulls, colour\){again}"):
        agents.load(path)


@pytest.mark.parametrize("lost", ["module", "class"])
def test_models_whose_classes_are_gone_are_refused(lost, tmp_path, monkeypatch):
    module = types.ModuleType("gone_tomorrow")
    module.Policy = type("Policy", (EquivariantPolicy,), {"__module__": "gone_tomorrow"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gone_tomorrow", module)
    envs = make_vec_env(THRESHOLD, 4, observation="features", **FOUR)
    PPO(module.Policy, envs, n_steps=8, batch_size=32, device="cpu").save(tmp_path / "model")
    assert agents.load(tmp_path / "model", trust=True).name == "ppo"
    if lost == "module":
        monkeypatch.delitem(sys.modules, "gone_tomorrow")
    else:
        del module.Policy
    with pytest.raises(ValueError, match=r"model\.zip was saved by another version of .*gone_tomorrow.*train it again"):
        agents.load(tmp_path / "model", trust=True)


def test_models_of_another_network_are_refused(ten, tmp_path):
    path = Trained(ten, {"call": "agents.train()"}).save(tmp_path / "model")
    with safe_open(path, "np") as file:
        head = file.metadata()
    arrays = load_file(path)
    del arrays["mlp_extractor.arm.bias"]
    save_file(arrays, path, head)
    forget(path)
    said = r"another version .*mlp_extractor\.arm\.bias.*: train it again: agents\.train\(\)"
    with pytest.raises(ValueError, match=said):
        agents.load(path)


def test_networks_of_earlier_versions_are_refused(ten, tmp_path):
    path = zipped(Trained(ten, {"call": "agents.train()"}), tmp_path / "model")
    changed(path, lambda data: data.update(bandit_envs_network={"hidden": 16, "stop": False}))
    with pytest.raises(ValueError, match=r"another version .*argument 'stop'.*: train it again: agents"):
        agents.load(path)


FACTS: dict[str, tuple[dict[str, Any], str]] = {
    "no class": ({"class": "os.system"}, "holds no model of .*nothing in it names its class"),
    "no policy": ({"policy": "subprocess"}, "holds no model of .*subprocess"),
    "many actions": ({"actions": 10**9}, r"the number of actions must be an integer in \[2, 1000000\], got 1000000000"),
    "a large size": ({"size": 10**12}, "the size of observations must be an integer in .*, got 1000000000000"),
    "no environments": ({"settings": {"n_envs": 0}}, "n_envs must be an integer in .*, got 0"),
    "a large network": ({"network": {"hidden": 33}}, "its hidden asks for more than its weights have, 33"),
    "another class": (
        {"network": {"optimizer_class": {"class": "os.system"}}},
        "no optimizer or activation",
    ),
    "no network": ({"network": [1]}, "the arguments of its network must be an object"),
}


@pytest.mark.parametrize("case", FACTS)
def test_facts_that_nobody_writes_are_refused(case, tiny_file, tmp_path):
    """They name classes of this table alone, and nothing is made that is larger than the file."""
    for suffix in (".safetensors", ".json"):
        (tmp_path / f"model{suffix}").write_bytes(tiny_file.with_suffix(suffix).read_bytes())
    path = tmp_path / "model.safetensors"
    forget(path)
    change, said = FACTS[case]
    changed(path, lambda facts: facts.update(change))
    with pytest.raises(ValueError, match=said):
        agents.load(path)


def test_a_model_of_classes_of_ones_own_is_written_in_the_format_of_sb3(tmp_path):
    envs = make_vec_env(THRESHOLD, 4, observation="features", **FOUR)
    model = PPO(type("Own", (EquivariantPolicy,), {}), envs, n_steps=8, batch_size=32, device="cpu")
    (tmp_path / "model.safetensors").write_bytes(b"of a model that was here before")
    path = Trained(model).save(tmp_path / "model")
    assert path == tmp_path / "model.zip"
    assert not (tmp_path / "model.safetensors").exists()
    for name in (path, tmp_path / "model"):
        with pytest.raises(ValueError, match=r"model\.zip holds pickles"):
            agents.load(name)
    x = observations(4)
    assert np.array_equal(agents.load(path, trust=True).predict(x)[0], model.predict(x, deterministic=True)[0])


def test_a_network_of_classes_of_ones_own_needs_trust(tmp_path):
    """It was so in zips of 0.2.0, too."""
    envs = make_vec_env(THRESHOLD, 4, observation="features", **FOUR)
    own = {"hidden": 8, "optimizer_class": type("Own", (torch.optim.SGD,), {})}
    trained = Trained(PPO(EquivariantPolicy, envs, n_steps=8, batch_size=32, device="cpu", policy_kwargs=own))
    x = observations(4)
    for path in (trained.save(tmp_path / "now"), zipped(trained, tmp_path / "before")):
        with pytest.raises(ValueError, match=rf"{path.name} holds pickles.*policy_kwargs"):
            agents.load(path)
        assert np.array_equal(agents.load(path, trust=True).predict(x)[0], trained.predict(x)[0])


# --- networks as plain numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FOLDER.glob("ppo-*.json")), ids=lambda path: path.stem)
def test_stored_networks_run(path):
    card = json.loads(path.read_text())
    assert path.with_suffix(".safetensors").stat().st_size < 300_000
    assert card["call"].startswith("agents.train('ppo'")
    assert card["cpu_seconds"] <= 600
    kwargs = {name: value for name, value in card["env_kwargs"].items() if name not in FORMS}
    env = gym.make(card["env_id"], **kwargs)
    agent = agents.make("ppo", env)
    assert agent.name == "ppo"
    assert path == card_path("ppo", env.unwrapped.task)
    result = agents.evaluate(["ppo", "uniform"], card["env_id"], episodes=20, env_kwargs=kwargs)
    assert len(result.episodes) == 40


def test_storing_keeps_every_decision(tmp_path, tiny, monkeypatch):
    tiny.save(tmp_path / "ppo-threshold-budget")
    monkeypatch.setattr("agents.models.cards.FOLDER", tmp_path)
    env = gym.make(THRESHOLD, **FOUR)
    again = agents.make("ppo", env)
    x = observations(4)
    assert np.array_equal(again.predict(x)[0], tiny.predict(x)[0])
    assert again.card["call"] == tiny.card["call"]
    assert again.card["format"] == FORMAT
    assert agents.make("ppo", gym.make(THRESHOLD)).predict(observations(10))[0].shape == (32,)
    with pytest.raises(ValueError, match="ppo has no parameter 'alpha'"):
        agents.make("ppo(alpha=1)", env)
