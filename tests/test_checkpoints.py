"""Checkpoints: which is kept, means of weights, the clock, what is told on the way; resumed trainings."""

from __future__ import annotations

import itertools
import pickle
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import types
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from disks import full_disk
from gymnasium.vector import AutoresetMode
from learning import FOUR, MIX, THRESHOLD, TINY, weights

import agents
from agents.core.compile_time import CompileTime
from agents.evaluation.expected_loss import losses
from agents.evaluation.statistics import latest_of_the_best
from agents.learned import Trained
from agents.learned.checkpoints import Checkpoints
from agents.learned.clock import Clock, FallingRate
from agents.learned.resuming import ResumeFile


@pytest.fixture(scope="module")
def tiny() -> Trained:
    """A policy after a short training."""
    return agents.train(**TINY)


def test_the_kept_weights_are_those_of_the_kept_checkpoint(tiny):
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
    assert len(seen) == 7  # after 4, ..., 10 rollouts
    kept = seen[:4] if trained.card["kept"] < 5120 else seen[4:]
    for name, weight in weights(trained).items():
        assert torch.allclose(weight, torch.stack([one[name] for one in kept]).mean(0), atol=1e-6)
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


def test_time_is_kept():
    trained = agents.train(seconds=4.0, num_envs=32, env_kwargs=FOUR, held_out=40, progress=False)
    assert trained.card["seconds"] < 30  # loose: the machine may be busy
    assert trained.card["steps"] > 0


def test_progress_is_told_on_standard_error(capsys):
    agents.train(**TINY | {"progress": True})
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.endswith(" 0 steps    0%  learning")
    assert len(lines) == 2
    assert "2,048 steps" in lines[-1]
    assert "lsa" in lines[-1]


def test_a_run_tells_how_far_it_is_at_a_reasonable_rate(capsys, monkeypatch):
    """Defect: it told nothing before the first checkpoint, which lies in the later part of the run."""
    monkeypatch.setattr("agents.learned.checkpoints.TELL_EVERY", 0.0)
    agents.train(**TINY | {"progress": True, "steps": 40 * 16, "checkpoints": 1}, n_steps=1, batch_size=16, n_epochs=1)
    shares = [int(share) for share in re.findall(r"(\d+)%  learning", capsys.readouterr().err)]
    assert 13 <= len(shares) <= 20  # of 40 rollouts
    assert all(4 <= later - sooner <= 9 for sooner, later in itertools.pairwise(shares))
    monkeypatch.undo()
    agents.train(**TINY | {"progress": True, "steps": 40 * 16, "checkpoints": 1}, n_steps=1, batch_size=16, n_epochs=1)
    assert len(re.findall("learning", capsys.readouterr().err)) < 10  # ten seconds apart


def test_curves_go_to_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    agents.train(**TINY | {"checkpoints": 4}, tensorboard_log=str(tmp_path))
    [run] = tmp_path.iterdir()
    curves = EventAccumulator(str(run)).Reload().Tags()["scalars"]
    assert {"held_out/return", "held_out/loss_over_lsa", "rollout/ep_rew_mean"} <= set(curves)


# --- resumption -------------------------------------------------------------------------------------------------------


class Killed(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize(
    ("algorithm", "extra"),
    [
        ("ppo", {}),
        ("ppo", {"mix": MIX, "curriculum": 0.5}),
        pytest.param("ppo", {"siblings": 4}, marks=pytest.mark.slow),
        pytest.param("a2c", {"n_steps": 8}, marks=pytest.mark.slow),
        ("dqn", {"learning_starts": 100}),
        pytest.param("maskable-ppo", {}, marks=pytest.mark.slow),
        pytest.param("recurrent-ppo", {}, marks=pytest.mark.slow),
    ],
)
def test_a_killed_training_resumes_to_the_same_model(algorithm, extra, tmp_path, monkeypatch):
    call = TINY | {"steps": 4096} | extra
    whole = agents.train(algorithm, **call)
    monkeypatch.setattr("agents.learned.checkpoints.SAVE_EVERY", 0.0)
    write, written = ResumeFile.write, []

    def write_and_die(self: ResumeFile, model: Any, callback: Any) -> None:
        write(self, model, callback)
        written.append(model.num_timesteps)
        if written[-1] >= 2500:
            raise Killed

    monkeypatch.setattr(ResumeFile, "write", write_and_die)
    with pytest.raises(Killed):
        agents.train(algorithm, **call, out=tmp_path / "model")
    assert [file.name for file in tmp_path.iterdir()] == ["model.resume"]
    monkeypatch.setattr(ResumeFile, "write", write)
    with pytest.raises(ValueError, match="belongs to another call"):
        agents.train(algorithm, **call | {"seed": 5}, out=tmp_path / "model", resume=True)
    torch.rand(5)
    resumed = agents.train(algorithm, **call, out=tmp_path / "model", resume=True)
    assert all(torch.equal(weight, weights(resumed)[name]) for name, weight in weights(whole).items())
    assert [look["return"] for look in resumed.card["checkpoints"]] == [
        look["return"] for look in whole.card["checkpoints"]
    ]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.json", "model.zip"]
    with pytest.raises(ValueError, match="resume needs out"):
        agents.train(**TINY, resume=True)


@pytest.mark.parametrize("moments", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_a_full_disk_leaves_what_can_be_resumed(moments, tmp_path, monkeypatch):
    """At so many limits on files: the old model, and a training that goes on to the same bits."""
    monkeypatch.setattr("agents.learned.checkpoints.SAVE_EVERY", 0.0)
    model, largest = tmp_path / "model", 0
    old, new = agents.train(**TINY, seed=1, out=model), agents.train(**TINY)
    wanted = weights(new)
    write = ResumeFile.write

    def noting(self: ResumeFile, *given: Any) -> None:
        nonlocal largest
        write(self, *given)
        largest = max(largest, self.path.stat().st_size)

    with monkeypatch.context() as patch:
        patch.setattr(ResumeFile, "write", noting)
        agents.train(**TINY, out=tmp_path / "other")
    largest = max(largest, *(file.stat().st_size for file in tmp_path.iterdir()))
    for left in np.random.default_rng(moments).integers(0, largest, moments).tolist():
        with full_disk(left), pytest.raises(OSError, match="model"):
            agents.train(**TINY, out=model)
        assert {file.name for file in tmp_path.iterdir()} <= {
            *("model.json", "model.zip", "model.resume", "other.json", "other.zip")
        }
        kept = weights(agents.load(model))
        assert all(torch.equal(weight, kept[name]) for name, weight in weights(old).items())
        copy = shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}-copy"))
        went_on = agents.train(**TINY, out=copy / "model", resume=True)
        assert all(torch.equal(weight, weights(went_on)[name]) for name, weight in wanted.items())
        assert not (copy / "model.resume").exists()
        shutil.rmtree(copy)


@pytest.mark.slow
def test_kills_of_a_training_at_random_moments(tmp_path):
    """50 SIGKILLs, resumed each time: the model is that of a training without any, bit for bit."""
    script = """
        import agents, sys
        from agents.learned import checkpoints
        sys.path.insert(0, sys.argv[2])
        from learning import TINY
        checkpoints.SAVE_EVERY = 0.0
        print("ready", flush=True)
        agents.train(**TINY | {"steps": 16384, "checkpoints": 16}, out=sys.argv[1], resume=True)
    """
    call = TINY | {"steps": 16384, "checkpoints": 16}
    wanted, rng = weights(agents.train(**call)), np.random.default_rng(0)
    killed = finished = 0
    while killed < 50:
        run = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "model"), str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert run.stdout is not None
        run.stdout.readline()
        try:
            run.wait(rng.uniform(0.1, 9.0))
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            killed += 1
        run.communicate()
        if run.returncode == 0:
            finished += 1
            found = weights(agents.load(tmp_path / "model"))
            assert all(torch.equal(weight, found[name]) for name, weight in wanted.items())
    assert finished > 0


@pytest.mark.parametrize("content", [{"call": "..."}, {"format": 7, "call": "...", "state": b""}, "gone"])
def test_a_resume_file_of_another_version_is_refused(content, tmp_path, monkeypatch):
    path = tmp_path / "model.resume"
    if content == "gone":
        module = types.ModuleType("gone_tomorrow")
        module.Run = type("Run", (), {"__module__": "gone_tomorrow"})  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "gone_tomorrow", module)
        path.write_bytes(pickle.dumps({"call": "...", "run": module.Run()}))
        monkeypatch.delitem(sys.modules, "gone_tomorrow")
    else:
        path.write_bytes(pickle.dumps(content))
    with pytest.raises(
        ValueError, match=r"model\.resume was written by another version .*: delete it, and train again"
    ):
        agents.train(**TINY, out=tmp_path / "model", resume=True)


def test_a_resumed_clock_knows_how_much_time_has_passed():
    clock = Clock(100, 50.0, time.perf_counter() - 10.0, CompileTime())
    clock.steps_taken = 30
    assert clock.share() == pytest.approx(0.3, abs=0.01)
    again = Clock(100, 50.0, time.perf_counter() - 20.0, CompileTime())
    again.restore(clock.state())
    assert again.seconds() == pytest.approx(30.0, abs=1.0)
    assert again.share() == pytest.approx(0.6, abs=0.05)
    assert FallingRate(2.0, again)(1.0) == pytest.approx(0.8, abs=0.1)
    again.evaluation_seconds = 10.0  # so that only half of the time is for learning
    assert again.time_share() == 1.0
    assert FallingRate(2.0, again)(1.0) == pytest.approx(0.04)
