"""Checkpoints: which is kept, means of weights, the clock, what is told on the way; full disks."""

from __future__ import annotations

import itertools
import os
import re
import signal
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from disks import full_disk
from gymnasium.vector import AutoresetMode
from learning import FOUR, THRESHOLD, TINY, weights

import agents
from agents.core.compile_time import CompileTime
from agents.evaluation.expected_loss import losses
from agents.evaluation.statistics import latest_of_the_best
from agents.learned.checkpoints import Checkpoints, Clock
from agents.learned.comparison import advice


@pytest.mark.parametrize("mix", [None, [{}]])
@pytest.mark.parametrize("repeated", [1, 5])
def test_the_kept_weights_are_those_of_the_kept_checkpoint(repeated, mix):
    """Checkpoints are chosen by play as `evaluate` has it, pull by pull, however often actions were repeated."""
    tiny = agents.train(**TINY | {"steps": 512, "pulls_per_action": repeated, "mix": mix, "checkpoints": 1})
    root = tiny.card["roots"]["choosing"]
    envs: Any = gym.make_vec(
        THRESHOLD, num_envs=40, actions="arm", observation="features", autoreset_mode=AutoresetMode.DISABLED, **FOUR
    )
    lost = losses(envs, tiny, root, np.arange(40))
    assert len(np.unique(lost)) > 5  # expected, not counted
    [kept] = [look for look in tiny.card["checkpoints"] if look["steps"] == tiny.card["kept"]]
    assert 1 - lost.mean() == pytest.approx(kept["return"], abs=1e-12)


def test_a_checkpoint_is_the_mean_of_the_weights_since_the_one_before(monkeypatch):
    """Two checkpoints, at .7 and 1 of 10 rollouts: the means over .4 to .7 and over the rest."""
    seen: list[dict[str, torch.Tensor]] = []
    average = Checkpoints._average

    def recorded(callback: Any) -> None:
        seen.append({name: weight.clone() for name, weight in callback.model.policy.state_dict().items()})
        average(callback)

    monkeypatch.setattr(Checkpoints, "_average", recorded)
    trained = agents.train(**TINY | {"steps": 5120}, n_steps=32)
    assert len(seen) == 8  # before the first, and after 4, ..., 10 rollouts
    kept = {0: seen[:1], 5120: seen[5:]}.get(trained.card["kept"], seen[1:5])
    for name, weight in weights(trained).items():
        assert torch.allclose(weight, torch.stack([one[name] for one in kept]).mean(0), atol=1e-6)
    assert trained.card["kept"] > 0
    assert not torch.allclose(weights(trained)["value_net.weight"], kept[-1]["value_net.weight"], atol=1e-6)


def test_the_latest_of_the_best_is_kept():
    best = np.array([1.0, 0.0, 1.0, 0.0])
    assert latest_of_the_best(np.stack([best, best - 0.1])) == 0  # worse in every episode
    assert latest_of_the_best(np.stack([best, best[::-1] - 0.1, best - 0.2])) == 1  # deficit 0.1, standard error 0.58
    assert latest_of_the_best(np.ones((3, 4))) == 2  # all alike, without any error
    near = np.array([[1.0, 1.0, 1.0], [1.1, 0.9, 0.7]])  # deficit 0.1, standard error 0.2 / sqrt(3) = 0.115
    assert latest_of_the_best(near) == 1
    assert latest_of_the_best(np.stack([best - 0.1, best, best])) == 2
    assert latest_of_the_best(np.stack([best])) == 0


def test_time_is_kept(monkeypatch):
    """By a clock that moves a hundredth of a second at each look."""
    looks = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: next(looks) / 100)
    trained = agents.train(seconds=5.0, num_envs=32, env_kwargs=FOUR, held_out=40, progress=False)
    assert 4.0 < trained.card["seconds"] < 6.0
    assert trained.card["steps"] > 0


def test_progress_is_told_on_standard_error(capsys):
    agents.train(**TINY | {"progress": True})
    first, *lines = capsys.readouterr().err.splitlines()
    assert " 0 steps    0%  return 0." in first  # the start
    assert [line.split()[-1] == "learning" for line in lines] == [False, False]
    assert "2,048 steps" in lines[-1]
    assert "lsa" in lines[-1]


def test_a_run_tells_how_far_it_is_at_a_reasonable_rate(capsys, monkeypatch):
    """Defect: it told nothing before the first checkpoint, which lies in the later part of the run."""
    monkeypatch.setattr("agents.learned.checkpoints.PRINT_EVERY", 0.0)
    agents.train(**TINY | {"progress": True, "steps": 40 * 16, "checkpoints": 1}, n_steps=1, batch_size=16, n_epochs=1)
    shares = [int(share) for share in re.findall(r"(\d+)%  learning", capsys.readouterr().err)]
    assert 13 <= len(shares) <= 20  # of 40 rollouts
    assert all(4 <= later - sooner <= 9 for sooner, later in itertools.pairwise(shares))
    monkeypatch.undo()
    monkeypatch.setattr("time.perf_counter", lambda: 0.0)
    agents.train(**TINY | {"progress": True, "steps": 40 * 16, "checkpoints": 1}, n_steps=1, batch_size=16, n_epochs=1)
    assert "learning" not in capsys.readouterr().err  # such lines are ten seconds apart


def test_curves_go_to_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    agents.train(**TINY | {"checkpoints": 4}, tensorboard_log=str(tmp_path))
    [run] = tmp_path.iterdir()
    curves = EventAccumulator(str(run)).Reload().Tags()["scalars"]
    assert {"held_out/return", "held_out/loss_over_look-ahead", "rollout/ep_rew_mean"} <= set(curves)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # SB3 leaves its file open
def test_a_full_disk_leaves_the_model_that_was_there(tmp_path):
    """At so many limits on files: the training fails, and names the file."""
    short = TINY | {"steps": 64, "num_envs": 4, "n_steps": 8, "held_out": 4, "checkpoints": 1}
    model = tmp_path / "model"
    old = weights(agents.train(**short, out=model))
    largest = model.with_suffix(".safetensors").stat().st_size  # the picture is written when the model is whole
    for left in np.random.default_rng(0).integers(0, largest, 4).tolist():
        with full_disk(left), pytest.raises(OSError, match="model"):
            agents.train(**short, seed=1, out=model)
        assert {file.name for file in tmp_path.iterdir()} == {"model.json", "model.safetensors", "model.png"}
        kept = weights(agents.load(model))
        assert all(torch.equal(weight, kept[name]) for name, weight in old.items())


def test_a_training_that_is_broken_off_is_kept_and_goes_on(tmp_path, monkeypatch, interrupts):
    """By a signal as of Ctrl-C; without `out` nothing is kept. A model that goes on meets other episodes."""
    short = TINY | {"held_out": 10, "checkpoints": 1, "n_steps": 8, "steps": 4096}
    after, begin = itertools.count(), Checkpoints._on_rollout_start

    def broken(callback: Any) -> None:
        begin(callback)
        if next(after) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "_on_rollout_start", broken)
        with pytest.raises(KeyboardInterrupt, match=r"model\.safetensors holds the best checkpoint so far"):
            agents.train(**short, out=tmp_path / "model")
        after = itertools.count()
        with pytest.raises(KeyboardInterrupt, match="^$"):
            agents.train(**short)
    first = agents.load(tmp_path / "model")
    assert 0 < first.card["steps"] < 4096
    assert first.card["result"]["agents"]["uniform"]["return"] > 0
    more = agents.train(steps=128, held_out=10, checkpoints=1, num_envs=4, n_steps=8, resume=tmp_path / "model")
    assert more.card["env_kwargs"] == first.card["env_kwargs"]
    assert set(more.card["roots"].values()).isdisjoint(first.card["roots"].values())
    assert more.card["checkpoints"][0]["return"] > 0.7  # it begins with what was learned
    with pytest.raises(ValueError, match="is of ppo on .*Threshold-v0: it cannot go on by a2c"):
        agents.train("a2c", resume=tmp_path / "model")


@pytest.mark.parametrize("settled", [False, True])
def test_a_model_whose_order_is_unsettled_is_named(settled, tmp_path):
    """All logits are the same, and the first arm is taken always; or that of the least sure arm is the largest."""
    own = {"steps": 256, "num_envs": 8, "n_steps": 16, "checkpoints": 1, "held_out": 100, "learning_rate": 1e-30}
    asked = {"env_id": "TopK", "env_kwargs": {"k": 2, "budget": 60}, "progress": False}
    model = agents.train(**own, **asked)
    with torch.no_grad():
        model.model.policy.mlp_extractor.factor.fill_(3.0 if settled else 0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        card = agents.train(**own, **asked, resume=model.save(tmp_path / "model")).card
    assert card["judged"] == {"deterministic": True, "pulls_per_action": 1}
    said = [str(one.message) for one in caught if "unsettled" in str(one.message)]
    drawn, rows = card["result"]["differences"]["drawn"]["score"], card["result"]["agents"]
    assert (drawn["high"] < 0) == (not settled)
    assert drawn["difference"] == pytest.approx(rows["ppo"]["score"]["mean"] - rows["drawn"]["score"]["mean"])
    if not settled:
        assert f"drawn actions score {-drawn['difference']:.2g} more" in said[0]
        assert not any("ahead of ppo here: drawn" in str(one.message) for one in caught)
    assert len(said) == (not settled)


def test_a_training_without_an_update_keeps_the_start_and_a_price_counts():
    trained = agents.train(**TINY | {"steps": None, "seconds": 1e-3}, n_steps=512)
    assert trained.card["kept"] == 0
    priced = TINY["env_kwargs"] | {"pull_cost": 0.01, "reward": "score"}
    result = agents.train(**TINY | {"steps": 512, "env_kwargs": priced}).card["result"]
    row = result["agents"]["uniform"]
    assert row["net_return"]["mean"] == pytest.approx(row["score"]["mean"] - 0.01 * row["total_pulls"])
    ahead = {"uniform": {"score": {"high": -0.1}, "net_return": {"high": 0.1}}}
    assert advice("ppo", 1, {"differences": ahead}) == []
    ahead["uniform"]["net_return"]["high"] = -0.1
    assert "net of the price of pulls: uniform" in advice("ppo", 1, {"differences": ahead})[0]
    with pytest.raises(ValueError, match="hyperparameter of evolved"):
        agents.train("evolved", gamma=1.0)


def test_the_learning_rate_falls_with_the_share_of_the_run(monkeypatch):
    monkeypatch.setattr("time.perf_counter", lambda: 100.0)
    clock = Clock(100, 50.0, 40.0, CompileTime())
    clock.begin()
    assert clock.share() == 0  # comparisons took more than the time: half of it is for learning still
    clock._before, clock.steps_taken = 50.0, 30
    assert clock.time_share() == pytest.approx(0.4)
    clock = Clock(100, 50.0, 90.0, CompileTime())
    clock._before = 0.0
    clock.steps_taken = 30
    assert clock.share() == pytest.approx(0.3)
    later = Clock(100, 50.0, 70.0, CompileTime())
    assert later.share() == 0.0  # the learning has not begun
    later._before = 0.0
    assert later.share() == pytest.approx(0.6)
    assert later.falling(2.0)(1.0) == pytest.approx(0.8)
    later.evaluation_seconds = 10.0  # so that only half of the time is for learning
    assert later.time_share() == 1.0
    assert later.falling(2.0)(1.0) == pytest.approx(0.04)
