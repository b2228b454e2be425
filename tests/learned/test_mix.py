"""Trainings on several environments, and of several seeds."""

from __future__ import annotations

import itertools
import os
import signal
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from learning import CLEAR, FEATURED, THRESHOLD, TINY, observations, weights
from stable_baselines3 import PPO

import agents
from agents.cli import main
from agents.learned.algorithms import Plan
from agents.learned.checkpoints import Checkpoints

SEVEN = {"instance": {"sampler": {"arms": 7}}, "budget": 40}
FEW = {"num_envs": 8, "pulls_per_action": 3, "held_out": 20}
SHORT = TINY | {"steps": 512, "n_steps": 8, "checkpoints": 1}
BOTH = SHORT | {"mix": [{}, SEVEN | FEW]}


@pytest.fixture(scope="module")
def both(tmp_path_factory: Any) -> Any:
    """A tiny training on 4 and on 7 arms."""
    return agents.train(**BOTH, out=tmp_path_factory.mktemp("mix") / "both")


def alike(one: Any, other: Any) -> bool:
    return all(torch.equal(weight, weights(other)[name]) for name, weight in weights(one).items())


def test_a_mix_of_one_environment_is_that_environment(tiny):
    """To the bit: weights, checkpoints and the result."""
    one = agents.train(**TINY, mix=[{}])
    assert alike(one, tiny)
    for row, other in zip(one.card["checkpoints"], tiny.card["checkpoints"], strict=True):
        assert row | {"seconds": 0} == other | {"seconds": 0}
    [result] = one.card["result"]
    assert result == tiny.card["result"] | {"env_kwargs": result["env_kwargs"]}


def test_the_card_of_a_mix_and_its_call(both):
    card, [four, seven] = both.card, both.card["result"]
    assert card["steps"] == 8 * (16 + 8) * 3  # two rollouts of 192 are less than 512
    assert card["mix"] == BOTH["mix"]
    assert card["task"]["threshold"] == 0.5
    assert not {"K", "budget"} & set(card["task"])  # which differ
    assert (four["episodes"], seven["episodes"]) == (80, 40)
    assert seven["env_kwargs"] == SEVEN
    assert seven["agents"]["ppo"]["total_pulls"] == 40  # judged pull by pull
    assert alike(eval(card["call"]), both)


def test_by_default_a_mix_has_as_many_episodes_side_by_side_as_one_environment():
    own = {"num_envs": None, "pulls_per_action": 1, "checkpoints": 1, "held_out": 2}
    for mix, numbers in (
        (None, [128]),
        ([{}], [128]),
        ([{}, SEVEN | {"num_envs": 9}, {}, {}, {}], [25, 9, 25, 25, 25]),
    ):
        plan = Plan("ppo", THRESHOLD, {"budget": 50}, mix, {}, own, (None, None), 0)
        assert [one.num_envs for one in plan.environments] == numbers


def test_checkpoints_are_chosen_by_the_mean_of_what_is_lost_in_each_environment(monkeypatch):
    seen: list[Any] = []
    evaluate = Checkpoints._evaluate

    def recorded(callback: Any) -> None:
        evaluate(callback)
        returns = callback.held_out.returns(agents.learned.Trained(callback.model), None)
        seen.append((callback.held_out, returns, callback.rows[-1], callback.values[-1]))

    monkeypatch.setattr(Checkpoints, "_evaluate", recorded)
    agents.train(**BOTH)
    held_out, returns, row, values = seen[0]
    assert list(held_out.references) == ["uniform", "lsa", "look-ahead"]
    played = zip(returns, held_out.references["look-ahead"], strict=True)
    lost = [(1 - one.mean()) / (1 - last.mean()) for one, last in played]
    assert row["loss_over_reference"] == pytest.approx(np.mean(lost), abs=1e-5)
    assert row["return"] == pytest.approx(np.mean([one.mean() for one in returns]))
    assert len(values) == 40 + 20


def test_the_file_of_a_mix_is_a_plain_one_for_any_number_of_arms(both, tmp_path):
    path = both.save(tmp_path / "both")
    loaded, x = agents.load(path), observations(9)
    assert type(both.model) is type(loaded.model) is PPO
    assert both.model.rollout_buffer.n_envs == 16
    both.model.learn(128)  # SB3 goes on, on the first environment
    both.model.save(tmp_path / "sb3")
    PPO.load(tmp_path / "sb3", device="cpu")
    nine = {"instance": "sampler(arms=9)", "budget": 50}
    played = agents.evaluate(str(path), THRESHOLD, episodes=4, env_kwargs=nine)
    assert (played.episodes["total_pulls"] == 50).all()
    assert loaded.predict(x)[0].shape == (32,)


def test_a_mix_goes_on_from_its_file(both, tmp_path):
    path = both.save(tmp_path / "both")
    more = agents.train(resume=path, **{name: one for name, one in SHORT.items() if name != "env_kwargs"})
    assert more.card["mix"] == BOTH["mix"]
    assert len(more.card["result"]) == 2
    assert set(more.card["roots"].values()).isdisjoint(both.card["roots"].values())


def test_a_mix_learns():
    """Clear arms are left alone, in an environment of 5 arms and in one of 3."""
    mix = [{"instance": {"sampler": {"arms": arms, "mean": CLEAR}}, "budget": 12 * arms} for arms in (5, 3)]
    short = {"steps": 10_000, "num_envs": 64, "n_steps": 15, "held_out": 100, "checkpoints": 1, "progress": False}
    trained = agents.train(**short, env_kwargs=FEATURED, mix=mix)
    for result in trained.card["result"]:
        for name in ("uniform", "untrained"):
            assert result["differences"][name]["misclassified"]["high"] < 0


def test_the_best_of_several_seeds_is_kept(tmp_path, monkeypatch):
    single = [agents.train(**SHORT, seed=seed) for seed in (3, 4)]
    best = agents.train(**SHORT, seed=3, seeds=2, out=tmp_path / "best")
    rows = best.card["seeds"]
    assert [row["seed"] for row in rows] == [3, 4]
    kept = int(rows[1]["loss_over_reference"] < rows[0]["loss_over_reference"])
    assert alike(best, single[kept])
    assert best.card["call"] == single[kept].card["call"]
    assert agents.load(tmp_path / "best").card["seeds"] == rows
    first = [row for row in single[0].card["checkpoints"] if row["steps"] == single[0].card["kept"]]
    assert rows[0]["return"] == first[0]["return"]  # on the episodes that its checkpoints were chosen by


def test_what_is_ready_is_kept_when_a_later_seed_is_broken_off(tmp_path, monkeypatch, interrupts):
    after, begin = itertools.count(), Checkpoints._on_training_start

    def broken(callback: Any) -> None:
        begin(callback)
        if next(after) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Checkpoints, "_on_training_start", broken)
    with pytest.raises(KeyboardInterrupt):
        agents.train(**SHORT, seeds=3, out=tmp_path / "model")
    assert [row["seed"] for row in agents.load(tmp_path / "model").card["seeds"]] == [0]


def test_a_mix_that_is_broken_off_is_kept(tmp_path, monkeypatch, interrupts):
    step = Checkpoints._on_step

    def broken(callback: Any) -> bool:
        if callback.num_timesteps > 300:  # in a second round of rollouts
            os.kill(os.getpid(), signal.SIGINT)
        return step(callback)

    monkeypatch.setattr(Checkpoints, "_on_step", broken)
    with pytest.raises(KeyboardInterrupt, match=r"model\.safetensors holds the best checkpoint so far"):
        agents.train(**BOTH, out=tmp_path / "model")
    kept = agents.load(tmp_path / "model")
    assert len(kept.card["result"]) == 2
    assert kept.card["steps"] > 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mix": []}, r"mix must be a list of at least one dict, got \[\]"),
        ({"mix": {}}, "mix must be a list of at least one dict, got {}"),
        ({"mix": [{}, 3]}, r"mix must be a list of at least one dict, got \[{}, 3\]"),
        ({"mix": "[{}]"}, "mix must be a list of at least one dict"),
        ({"mix": [{}, {"observation": "relative"}]}, "same forms, got .*'features'.* and .*'relative'"),
        ({"mix": [{}, {"budget": None, "delta": 0.1}]}, "same forms"),
        ({"mix": [{"num_envs": 0}]}, "num_envs must be an integer .*got 0"),
        ({"mix": [{"pulls_per_action": 1.5}]}, "pulls_per_action must be an integer .*got 1.5"),
        ({"mix": [{"held_out": 1}]}, "held_out must be an integer .*got 1"),
        ({"mix": [{"episodes": 10}]}, "episodes"),
        ({"mix": [{"actions": "full"}]}, "train chooses 'actions' itself"),
        ({"mix": [{}], "algorithm": "dqn"}, "mix is of ppo, a2c and evolved, .* not of dqn"),
        ({"seeds": 0}, "seeds must be an integer .*got 0"),
        ({"seeds": "two"}, "seeds must be an integer .*got 'two'"),
    ],
)
def test_refused_mixes_and_seeds(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        agents.train(**TINY | change)


def test_a_mix_and_seeds_on_the_command_line(tmp_path, capsys):
    few = ["--steps", "256", "--num-envs", "8", "--hyperparameters", "n_steps=8", "held_out=10", "checkpoints=1"]
    mix = '[{"budget": 12}, {"budget": 20, "instance": "sampler(arms=5)"}]'
    where = ["--instance", "sampler(arms=4)", "--mix", mix, "--seeds", "2", "--out", str(tmp_path / "ppo")]
    assert main(["train", "Threshold", "--no-progress", *where, *few]) == 0
    printed = capsys.readouterr().out
    assert "it has not seen; {'instance': 'sampler(arms=4)', 'budget': 12}:" in printed
    assert "it has not seen; {'instance': 'sampler(arms=5)', 'budget': 20}:" in printed
    assert len(agents.load(tmp_path / "ppo").card["seeds"]) == 2
