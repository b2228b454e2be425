"""`train`: one seed, one model; cards, algorithms, problems, mixes, and that something is learned."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from learning import FOUR, MIX, THRESHOLD, TINY, observations, weights

import agents
from agents.learned import Trained
from agents.learned.algorithms import ALGORITHMS
from bandit_envs import FEATURES
from bandit_envs.catalogue import ENVIRONMENTS


@pytest.fixture(scope="module")
def tiny() -> Trained:
    """A policy after a short training."""
    return agents.train(**TINY)


def test_one_seed_one_model(tiny):
    torch.rand(3)  # whatever the global generators have done before
    again, other = agents.train(**TINY), agents.train(**TINY, seed=1)
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(tiny).items())
    assert not all(torch.equal(weight, weights(other)[name]) for name, weight in weights(tiny).items())
    alike = ("call", "seed", "roots", "hyperparameters", "steps", "kept", "result")
    assert [again.card[name] for name in alike] == [tiny.card[name] for name in alike]
    assert len({*tiny.card["roots"].values(), *other.card["roots"].values()}) == 6


def test_the_call_in_the_card_makes_the_model_again(tiny):
    again = eval(tiny.card["call"])
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(tiny).items())


def test_the_card_tells_all(tiny, tmp_path):
    path = tiny.save(tmp_path / "deep" / "ppo.v1")
    assert sorted(file.name for file in path.parent.iterdir()) == ["ppo.v1.json", "ppo.v1.zip"]
    card = json.loads((path.parent / "ppo.v1.json").read_text())
    assert card == json.loads(json.dumps(tiny.card)) == agents.load(path).card
    assert card["algorithm"] == "ppo"
    assert card["env_id"] == THRESHOLD
    assert card["env_kwargs"] == FOUR
    assert card["features"] == list(FEATURES)
    assert card["steps"] == 2048
    assert card["kept"] in [look["steps"] for look in card["checkpoints"]]
    assert card["hyperparameters"]["gamma"] == ALGORITHMS["ppo"].defaults["gamma"]
    assert set(card["versions"]) == {"python", "numpy", "torch", "stable-baselines3", "gymnasium", "bandit-envs"}
    assert card["seconds"] > 0
    result = card["result"]
    assert result["episodes"] == 80
    assert set(result["agents"]) == {"ppo", "uniform", "lsa"}
    for row in result["agents"].values():
        assert row["misclassified"]["low"] <= row["misclassified"]["mean"] <= row["misclassified"]["high"]
    assert set(result["differences"]) == {"uniform", "lsa"}
    # The result is what evaluate says of the kept model.
    again = agents.evaluate({"ppo": str(path)}, THRESHOLD, episodes=80, seed=result["root"], env_kwargs=FOUR)
    assert again.episodes["misclassified"].mean() == result["agents"]["ppo"]["misclassified"]["mean"]
    assert path.stat().st_size < 300_000


@pytest.mark.parametrize("algorithm", ["a2c", "dqn"])
def test_other_algorithms_run(algorithm, tmp_path):
    extra = {"learning_starts": 100} if algorithm == "dqn" else {}
    trained = agents.train(algorithm, **TINY, **extra, out=tmp_path / algorithm)
    loaded = agents.load(tmp_path / algorithm)
    assert loaded.name == trained.name == algorithm
    x = observations(4)
    assert np.array_equal(loaded.predict(x)[0], trained.predict(x)[0])


@pytest.mark.parametrize("algorithm", ["maskable-ppo", "recurrent-ppo"])
def test_baselines_of_sb3_contrib(algorithm, tmp_path):
    pytest.importorskip("sb3_contrib")
    trained = agents.train(algorithm, **TINY, out=tmp_path / algorithm)
    loaded = agents.load(tmp_path / algorithm)
    assert type(loaded.model).__name__.lower() == algorithm.replace("-", "")
    x = observations(4)
    assert np.array_equal(loaded.predict(x)[0], trained.predict(x)[0])
    if algorithm == "maskable-ppo":  # equivariant, so it runs on other numbers of arms
        wide = agents.load(tmp_path / algorithm, gym.make(THRESHOLD, instance="sampler(arms=7)"))
        assert wide.predict(observations(7))[0].shape == (32,)


@pytest.mark.parametrize("row", ENVIRONMENTS.values(), ids=lambda row: row.problem)
def test_every_problem_can_be_trained_on(row):
    trained = agents.train(env_id=row.id, **TINY | {"env_kwargs": {"budget": 20}})
    assert trained.card["hyperparameters"]["shaping"] is (row.problem in ("Threshold", "Feasible"))
    assert "uniform" in trained.card["result"]["agents"]
    assert not trained.stops


def test_where_a_delta_is_asked_stopping_is_learned_with_and_without_shaping():
    for env_id, shaping in ((THRESHOLD, True), ("bandit_envs/AllGood-v0", False)):
        kwargs = {"instance": {"sampler": {"arms": 3}}, "delta": 0.1, "max_pulls": 40, "pull_cost": 0.02}
        trained = agents.train(env_id=env_id, **TINY | {"steps": 30_000, "num_envs": 64, "env_kwargs": kwargs})
        assert trained.stops
        assert trained.card["hyperparameters"]["shaping"] is shaping
        assert 0 < trained.card["result"]["agents"]["ppo"]["total_pulls"] < 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "pppo"}, "unknown algorithm 'pppo'; did you mean 'ppo'"),
        ({"learning_rat": 1.0}, "unknown hyperparameter of ppo 'learning_rat'; did you mean 'learning_rate'"),
        ({"learning_rate": -1.0}, "learning_rate must be a number"),
        ({"steps": 0}, "steps must be an integer"),
        ({"algorithm": "dqn", "steps": None, "seconds": 1.0}, "dqn needs steps"),
        ({"seconds": 0}, "seconds must be a number"),
        ({"seed": -1}, "a seed is an integer >= 0"),
        ({"num_envs": 0}, "num_envs must be an integer"),
        ({"held_out": 1}, "held_out must be an integer"),
        ({"env_kwargs": {"observation": "features"}}, "train chooses 'observation' itself"),
        ({"env_id": "CartPole-v1", "env_kwargs": None}, "an environment of bandit_envs is needed"),
        ({"env_id": "bandit_envs/TopK-v0", "shaping": True, "env_kwargs": {"k": 2}}, "shaping is defined for"),
    ],
)
def test_refused_trainings(change, message):
    with pytest.raises(ValueError, match=message):
        agents.train(**TINY | change)


def test_siblings_in_training():
    trained = agents.train(**TINY | {"num_envs": 24}, mix=MIX, siblings=4)
    assert trained.card["hyperparameters"]["siblings"] == 4
    assert "siblings=4" in trained.card["call"]
    with pytest.raises(ValueError, match="siblings must divide num_envs = 30"):
        agents.train(**TINY | {"num_envs": 30}, siblings=4)
    with pytest.raises(ValueError, match="are for ppo, a2c, got 2 for maskable-ppo"):
        agents.train("maskable-ppo", **TINY | {"num_envs": 30}, siblings=2)


def test_one_policy_for_a_mix_of_budgets():
    trained = agents.train(**TINY, mix=MIX, curriculum=0.5)
    assert [len(look["return"]) for look in trained.card["checkpoints"]] == [2] * len(trained.card["checkpoints"])
    assert len(trained.card["result"]) == 2
    again = eval(trained.card["call"])
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(trained).items())
    with pytest.raises(ValueError, match="mix must be a list"):
        agents.train(**TINY, mix={"budget": 3})
    with pytest.raises(ValueError, match="num_envs must be at least 2"):
        agents.train(**TINY | {"num_envs": 1}, mix=MIX)


def test_there_is_life():
    """In some seconds PPO learns to leave clear arms alone: 3 of 5 means are near the threshold, 2 far away."""
    means = {"choice": [0.02, 0.98, 0.4, 0.6, 0.6]}
    kwargs = {"instance": {"sampler": {"arms": 5, "mean": means}}, "budget": 60}
    trained = agents.train(steps=60_000, num_envs=128, env_kwargs=kwargs, held_out=1000, checkpoints=2, progress=False)
    against = trained.card["result"]["differences"]["uniform"]["misclassified"]
    assert against["high"] < 0  # 2000 held-out episodes, 95 % interval


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_minute_of_training_beats_uniform_and_comes_near_lsa(seed):
    trained = agents.train(seed=seed, progress=False)
    result = agents.evaluate({"ppo": trained, "uniform": "uniform", "lsa": "lsa"}, THRESHOLD, episodes=10_000, seed=123)
    means = result.summary().set_index("agent")["misclassified"]
    assert result.compare("ppo", "uniform", "misclassified").high < -0.25
    assert means["ppo"] < 1.05 * means["lsa"]
