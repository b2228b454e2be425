"""`train`: one seed, one model; cards, algorithms, problems, and that something is learned."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from learning import CLEAR, FEATURED, FOUR, THRESHOLD, TINY, observations, weights

import agents
from agents.core.compile_time import CompileTime
from agents.learned.algorithms import ALGORITHMS
from agents.learned.checkpoints import Clock
from agents.learned.comparison import reference_agents
from agents.learned.vec_env import make_vec_env
from bandit_envs import FEATURES, Problem, SetProblem, register_problem
from bandit_envs.envs.catalogue import ENVIRONMENTS
from bandit_envs.kernels import jit


@pytest.mark.parametrize("problem", ["Threshold", "BestArm"])
def test_training_for_a_delta_ends_and_says_where_episodes_are_cut(problem, capsys):
    """Defect: on Threshold it never ended, since neither an untrained agent nor the reference agents stop."""
    tiny = {"steps": 64, "num_envs": 4, "held_out": 2, "checkpoints": 1, "n_epochs": 1}
    three = {"instance": {"sampler": {"arms": 3}}, "delta": 0.1}
    trained = agents.train(env_id=problem, env_kwargs=three, progress=True, **tiny)
    told, result, most = capsys.readouterr().err, trained.card["result"], 300
    assert f"each is cut after {most:,} pulls, 100 per arm" in told
    assert result["max_pulls"] == most
    assert all(row["total_pulls"] <= most for row in result["agents"].values())
    assert result["agents"]["uniform"] | {"truncated": 1.0, "total_pulls": most} == result["agents"]["uniform"]
    given = agents.train(env_id=problem, env_kwargs={**three, "max_pulls": 40}, progress=True, **tiny)
    assert "is cut after" not in capsys.readouterr().err
    assert given.card["result"]["max_pulls"] == 40


def test_one_seed_one_model(tiny):
    """Also where the call in the card makes it again."""
    torch.rand(3)  # whatever the global generators have done before
    again, other = eval(tiny.card["call"]), agents.train(**TINY, seed=1)
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(tiny).items())
    assert not all(torch.equal(weight, weights(other)[name]) for name, weight in weights(tiny).items())
    alike = ("call", "seed", "roots", "hyperparameters", "steps", "kept", "result")
    assert [again.card[name] for name in alike] == [tiny.card[name] for name in alike]
    assert len({*tiny.card["roots"].values(), *other.card["roots"].values()}) == 6


def test_the_card_tells_all(tiny, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder .*deep"):
        tiny.save(tmp_path / "deep" / "ppo.v1")
    path = tiny.save(tmp_path / "ppo.v1")
    assert sorted(file.name for file in path.parent.iterdir()) == ["ppo.v1.json", "ppo.v1.safetensors"]
    card = json.loads((path.parent / "ppo.v1.json").read_text())
    assert card.pop("digests").keys() == {"ppo.v1.safetensors"}
    assert card == json.loads(json.dumps(tiny.card)) == agents.load(path).card
    assert card["algorithm"] == "ppo"
    assert card["env_id"] == THRESHOLD
    chosen = {"observation": "features", "reward": "gain", "stop": False, "ranked": False}
    assert card["env_kwargs"] == FOUR | chosen
    assert card["features"] == list(FEATURES)
    assert card["steps"] == 2048
    assert card["kept"] in [look["steps"] for look in card["checkpoints"]]
    assert card["hyperparameters"]["gamma"] == ALGORITHMS["ppo"].defaults["gamma"]
    assert set(card["versions"]) == {"python", "numpy", "torch", "stable-baselines3", "gymnasium", "bandit-envs"}
    assert card["seconds"] > 0
    result = card["result"]
    assert result["episodes"] == 80
    assert set(result["agents"]) == {"ppo", "untrained", "drawn", "uniform", "lsa", "look-ahead"}
    for row in result["agents"].values():
        assert row["misclassified"]["low"] <= row["misclassified"]["mean"] <= row["misclassified"]["high"]
    assert set(result["differences"]) == {"untrained", "drawn", "uniform", "lsa", "look-ahead"}
    # The result is what evaluate says of the kept model.
    again = agents.evaluate({"ppo": str(path)}, THRESHOLD, episodes=80, seed=result["root"], env_kwargs=FOUR)
    assert again.episodes["misclassified"].mean() == result["agents"]["ppo"]["misclassified"]["mean"]
    assert path.stat().st_size < 300_000


def test_the_report_tells_what_the_training_began_with(tiny):
    still = agents.train(**TINY, learning_rate=1e-30).card["result"]["agents"]
    assert still["ppo"] == still["untrained"] == tiny.card["result"]["agents"]["untrained"]
    assert still["ppo"] != tiny.card["result"]["agents"]["ppo"]


def test_compiling_takes_none_of_the_time_of_a_training(monkeypatch):
    place = {"__name__": "here"}  # of which no cache has a kernel
    exec("def one(x): return x + 1\ndef two(x): return x + 2", place)
    with CompileTime() as compiling:
        jit(place["one"])(1)
        spent = compiling.seconds
    jit(place["two"])(1)
    assert compiling.seconds == spent > 0
    monkeypatch.setattr("time.perf_counter", lambda: 150.0)
    clock, without = (Clock(None, 100.0, 100.0, one) for one in (compiling, CompileTime()))
    clock._before = without._before = 0.0  # the learning began with the call
    assert without.time_share() - clock.time_share() == pytest.approx(spent / 100.0)


@pytest.mark.parametrize("algorithm", ["a2c", "dqn"])
def test_other_algorithms_run(algorithm, tmp_path):
    extra = {"learning_starts": 100} if algorithm == "dqn" else {}
    trained = agents.train(algorithm, **TINY | {"steps": 320}, **extra, out=tmp_path / algorithm)
    loaded = agents.load(tmp_path / algorithm)
    assert loaded.name == trained.name == algorithm
    x = observations(4)
    assert np.array_equal(loaded.predict(x)[0], trained.predict(x)[0])


@pytest.mark.parametrize("algorithm", ["maskable-ppo", "recurrent-ppo"])
def test_baselines_of_sb3_contrib(algorithm, tmp_path):
    pytest.importorskip("sb3_contrib")
    short = {"steps": 64, "num_envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 1, "held_out": 4}
    trained = agents.train(algorithm, **TINY | short, out=tmp_path / algorithm)
    loaded = agents.load(tmp_path / algorithm)
    assert type(loaded.model).__name__.lower() == algorithm.replace("-", "")
    assert loaded.name == next(iter(trained.card["result"]["agents"])) == algorithm
    x = observations(4)
    assert np.array_equal(loaded.predict(x)[0], trained.predict(x)[0])
    if algorithm == "maskable-ppo":  # equivariant, so it runs on other numbers of arms
        wide = agents.load(tmp_path / algorithm, gym.make(THRESHOLD, instance="sampler(arms=7)"))
        assert wide.predict(observations(7))[0].shape == (32,)


POLYHEDRA = {"polyhedra": {"arms": 4, "dimensions": 2, "seed": 1}}


@pytest.mark.parametrize(
    ("problem", "more"),
    [*((name, {}) for name in ENVIRONMENTS), ("Feasible", POLYHEDRA)],
    ids=[*ENVIRONMENTS, "polyhedra"],
)
def test_every_problem_can_be_trained_on(problem, more):
    kwargs = {"budget": 20} | ({"instance": more} if more else {})
    trained = agents.train(env_id=problem, **TINY | {"env_kwargs": kwargs, "steps": 256, "held_out": 8})
    assert "uniform" in trained.card["result"]["agents"]
    assert not trained.stops


class Bare(Problem):
    """The arm with the largest absolute mean: nothing but what a problem must have, so that there are no metrics."""

    name, answer_size = "Bare", 1

    def margin(self, means: Any) -> Any:
        size = np.abs(np.nan_to_num(np.asarray(means, np.float64)))
        ranked = np.sort(size, axis=-1)
        return np.where(size == ranked[..., -1:], size - ranked[..., -2:-1], size - ranked[..., -1:])

    def plug_in(self, means: Any) -> Any:
        size = np.abs(np.nan_to_num(np.asarray(means, np.float64)))
        return np.arange(size.shape[-1]) == size.argmax(-1)[..., None]

    def verdict(self, answer: Any, truth: Any) -> Any:
        right = (np.asarray(answer) & (truth >= 0)).any(-1)
        return {"correct": right, "score": right.astype(np.float64)}


class Apart(SetProblem):
    """All arms at least .2 away from a half; `local` and scored by arms."""

    name, local = "Apart", True

    def margin(self, means: Any) -> Any:
        return np.abs(np.asarray(means) - 0.5) - 0.2


def test_the_short_name_of_a_problem_is_that_of_its_environment():
    """Defect: it was so on the command line only."""
    register_problem(Apart)
    cards = [
        agents.train(env_id=name, **TINY | {"env_kwargs": FOUR, "steps": 256}).card
        for name in ("Apart", "apart", "bandit_envs/Apart-v0")
    ]
    for card in cards:
        assert card["env_id"] == "bandit_envs/Apart-v0"
        assert "agents.train('ppo', 'bandit_envs/Apart-v0'" in card["call"]
        assert card["checkpoints"][0]["return"] == cards[0]["checkpoints"][0]["return"]
    tiny = {"generations": 1, "population": 4, "episodes": 20, "env_kwargs": FOUR, "progress": False}
    assert agents.evolve("Apart", **tiny)[1]["env_id"] == "bandit_envs/Apart-v0"
    assert make_vec_env("top-k", 2).envs.spec.id == "bandit_envs/TopK-v0"
    with pytest.raises(ValueError, match="unknown environment 'Apartt'; did you mean 'Apart'"):
        agents.train(env_id="Apartt", **TINY)


@pytest.mark.parametrize(("kind", "mix"), [(Bare, None), (Apart, [{"budget": 12}, {"budget": 24}])])
def test_a_problem_of_ones_own_can_be_trained_on(kind, mix):
    """No agent of this package need know it: without lsa, losses are in units of uniform's."""
    register_problem(kind)
    trained = agents.train(env_id=f"bandit_envs/{kind.name}-v0", **TINY | {"env_kwargs": FOUR, "steps": 256})
    result = trained.card["result"]
    least = {"ppo", "untrained", "drawn", "uniform"}
    assert least <= set(result["agents"]) <= least | {"lsa", "look-ahead"}
    assert set(result["differences"]["uniform"]) == {"score", *kind.metric_names[:1]}
    evolution = {"generations": 2, "population": 4, "episodes": 20, "env_kwargs": FOUR, "progress": False}
    parameters, card = agents.evolve(f"bandit_envs/{kind.name}-v0", **evolution, mix=mix)
    assert len(parameters) == len(card["names"]) in (18, 130)  # the index alone, or with its network
    assert len(card["result"]) == (2 if mix else 1)


def test_reference_agents_are_those_that_can_play():
    def references(env_id: str, **kwargs: Any) -> list[str]:
        return reference_agents(gym.make(env_id, **kwargs).unwrapped.task)

    assert references(THRESHOLD, **FOUR) == ["uniform", "lsa", "look-ahead"]
    assert references("bandit_envs/TopK-v0", stop=False) == ["uniform", "look-ahead"]
    assert references("bandit_envs/Feasible-v0", observation="features") == ["uniform", "lsa", "look-ahead"]


def test_without_reference_agents_losses_are_as_they_are(monkeypatch):
    monkeypatch.setattr("agents.learned.comparison.REFERENCE_AGENTS", ())
    trained = agents.train(**TINY)
    look = trained.card["checkpoints"][-1]
    assert look["loss_over_reference"] == pytest.approx(1 - look["return"], abs=1e-5)
    assert list(trained.card["result"]["differences"]) == ["untrained", "drawn"]


def test_where_a_delta_is_asked_stopping_is_learned():
    kwargs = {"instance": {"sampler": {"arms": 3}}, "delta": 0.1, "max_pulls": 20, "pull_cost": 0.02}
    trained = agents.train(env_id=THRESHOLD, **TINY | {"steps": 24_000, "num_envs": 64, "env_kwargs": kwargs})
    assert trained.stops
    rows = trained.card["result"]["agents"]
    assert rows["untrained"]["total_pulls"] == 20
    assert 0 < rows["ppo"]["total_pulls"] < 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "pppo"}, "unknown algorithm 'pppo'; did you mean 'ppo'"),
        ({"learning_rat": 1.0}, "unknown hyperparameter of ppo 'learning_rat'; did you mean 'learning_rate'"),
        ({"learning_rate": -1.0}, "learning_rate must be a number"),
        ({"gamma": 2}, r"gamma .*\[0, 1\], got 2"),
        ({"ent_coef": "auto"}, "ent_coef .*'auto'"),
        ({"n_epochs": 0}, r"n_epochs .*\[1, .*got 0"),
        ({"algorithm": "dqn", "buffer_size": 0}, "buffer_size .*got 0"),
        ({"policy_kwargs": 3}, "policy_kwargs .*dict.*got 3"),
        ({"policy_kwargs": {"net_arch": [3]}}, "net_arch.*hidden"),
        ({"policy_kwargs": {"hidden": 0}}, r"hidden must be an integer in \[1, 4096\], got 0"),
        ({"policy_kwargs": {"hidden": "wide"}}, r"hidden must be an integer in \[1, 4096\], got 'wide'"),
        ({"env_kwargs": 3}, "env_kwargs .*dict.*got 3"),
        ({"steps": 0}, "steps must be an integer"),
        ({"seconds": 0}, "seconds must be a number"),
        ({"seed": -1}, "a seed is an integer >= 0"),
        ({"num_envs": 0}, "num_envs must be an integer"),
        ({"held_out": 1}, "held_out must be an integer"),
        ({"env_kwargs": {"actions": "full"}}, "train chooses 'actions' itself"),
        ({"env_id": "CartPole-v1", "env_kwargs": None}, "an environment of bandit_envs is needed"),
    ],
)
def test_refused_trainings(change, message):
    with pytest.raises(ValueError, match=message):
        agents.train(**TINY | change)


def test_there_is_life():
    """In a second PPO learns to leave clear arms alone: 3 of 5 means are near the threshold, 2 far away.

    From features: with beliefs, what the training begins with is ahead of uniform already.
    """
    kwargs = FEATURED | {"instance": {"sampler": {"arms": 5, "mean": CLEAR}}, "budget": 60}
    trained = agents.train(steps=20_000, num_envs=64, env_kwargs=kwargs, held_out=100, checkpoints=1, progress=False)
    for name in ("uniform", "untrained"):  # 200 episodes, 95 % interval
        assert trained.card["result"]["differences"][name]["misclassified"]["high"] < 0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_minute_of_training_beats_uniform_and_comes_near_lsa(seed):
    trained = agents.train(seed=seed, progress=False)
    result = agents.evaluate({"ppo": trained, "uniform": "uniform", "lsa": "lsa"}, THRESHOLD, episodes=10_000, seed=123)
    means = result.summary().set_index("agent")["misclassified"]
    assert result.compare("ppo", "uniform", "misclassified").high < -0.25
    assert means["ppo"] < 1.05 * means["lsa"]


def test_a_training_that_diverges_says_so_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match=r"diverged.*learning_rate"):
        agents.train("ppo", THRESHOLD, learning_rate=1e38, out=tmp_path / "model", **TINY)
    assert not (tmp_path / "model.safetensors").exists()
