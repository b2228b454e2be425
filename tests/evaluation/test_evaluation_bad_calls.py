"""What `evaluate` refuses, and what its messages name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused, table

import agents

TAO = {"instance": "tao2019-1", "budget": 60}
STOPS = {"instance": "tao2019-1", "max_pulls": 60}
FRESH = {"instance": "sampler(arms=5)", "budget": 40, "threshold": 0.4}


def call(names: Any = "uniform", env_id: Any = "Threshold", **arguments: Any) -> Callable[[], Any]:
    given = {"episodes": 20, "env_kwargs": TAO, "progress": False} | arguments
    return lambda: agents.evaluate(names, env_id, **given)


test_bad_calls = table(
    {
        "no agent": (call([]), "agent"),
        "no agent in a dict": (call({}), "agent"),
        "an agent that is a number": (call(42), "predict", 42),
        "an agent that is None": (call(["lsa", None]), "predict", None),
        "an agent misspelt": (call("lsaa"), "lsaa", "lsa"),
        "an agent twice": (call(["lsa", "lsa"]), "lsa", "twice"),
        "an agent of another problem": (call("st2"), "st2", "AllGood"),
        "no episodes": (call(episodes=0), "episodes", 0, 1),
        "no batch": (call(batch=0), "batch", 0),
        "no columns": (lambda: call()().summary(columns=[]), "columns", "[]"),
        "columns in a text": (lambda: call()().summary(columns="agent"), "columns", "agent"),
        "results of a number": (lambda: agents.results(5), "folder", 5),
        "an environment without a name": (
            lambda: agents.evaluate("lsa", None, episodes=2),
            *("env_id", "Threshold", "None"),
        ),
        "no checkpoint": (call(at=[]), "at", "[]"),
        "a checkpoint as an array of no dimension": (call(at=np.array(5)), "at", "array(5)"),
        "a checkpoint at 0": (call(at=[0]), "at", 0, 1),
        "budgets and checkpoints": (call(budgets=[5], at=[5]), "budgets", "at"),
        "no deltas": (call(deltas=[]), "deltas", "[]", "(0, 1)"),
        "a delta of 1": (call("evidence", deltas=[0.1, 1]), "deltas", 1, "(0, 1)"),
        "a delta twice": (call("evidence", deltas=[0.1, 0.2, 0.1]), "deltas", "[0.1, 0.2, 0.1]", "(0, 1)", "once"),
        **{f"deltas {bad!r}": (call(deltas=bad), "deltas", "(0, 1)") for bad in (0.1, "0.1", {0.1: 1})},
        "deltas and budgets": (call(deltas=[0.1], budgets=[5]), "deltas", "[0.1]", "budgets", "[5]"),
        "deltas and delta": (call(deltas=[0.1], env_kwargs=TAO | {"delta": 0.2}), "deltas", "[0.1]", "delta", "0.2"),
        "deltas of an agent that never stops": (
            call(["evidence", "uniform"], deltas=[0.1], env_kwargs=STOPS),
            "uniform",
            "deltas",
        ),
        "deltas of a budget that ends all": (call("evidence", deltas=[0.1]), "evidence", "deltas"),
        "deltas of an agent with its own": (
            call("evidence(delta=0.3)", deltas=[0.1], env_kwargs=STOPS),
            *("evidence", "0.3", "deltas"),
        ),
        "deltas of a certificate with its own": (
            call("lsa(stop='certificate', delta=0.3)", deltas=[0.1], env_kwargs=STOPS),
            *("lsa", "0.3", "deltas"),
        ),
        "no jobs": (call(jobs=0), "jobs", 0, 1),
        **{f"jobs {bad!r}": (call(jobs=bad), "jobs", bad) for bad in (True, "2", 1.0)},
        **{f"progress {bad!r}": (call(progress=bad), "progress", bad) for bad in ("x", 1)},
        **{
            f"env_kwargs {bad!r}": (call(env_kwargs=bad), "env_kwargs", "dict")
            for bad in (5, [("budget", 5)], {1: 2}, np.zeros(2))
        },
        **{f"env_id {bad!r}": (call(env_id=bad), "env_id") for bad in (5, None)},
        **{f"out {bad!r}": (call(out=bad), "out") for bad in (5, "", [])},
        "a part without a folder": (call(shard="1/2"), "shard", "out"),
        **{f"shard {bad!r}": (call(out="x", shard=bad), "shard") for bad in ("x", 5, "1", (1.5, 2), "a/b")},
        **{f"shard {bad}": (call(out="x", shard=bad), "shard", "1/2", "2/2") for bad in ("0/2", "3/2")},
        "no job array": (call(out="x", shard="slurm"), "SLURM"),
        "delta without a cap": (call(env_kwargs={"delta": 0.1}), "uniform", "max_pulls"),
        "a sampler without a cap": (call(env_kwargs={"instance": "sampler"}), "uniform", "max_pulls"),
        "an oracle without H": (call("ucbe", env_kwargs=FRESH), "ucbe", "H"),
        "a budget below K": (call("ucbe", budgets=[5, 100]), "ucbe", "budget", 10, 5),
        **{
            f"{name} of the environment": (call("lsa", env_kwargs=TAO | {name: 1}), name)
            for name in ("id", "vector_kwargs", "wrappers", "observation")
        },
        **{f"precision {bad!r}": (call(precision=bad), "precision") for bad in ("often", 0, {})},
        "precision of an unknown metric": (call(precision={"f7": 1}), "metric", "f7"),
        "a verdict without delta": (call(precision="verdict"), "verdict", "delta"),
        "a precise part": (call(precision=0.1, out="nowhere", shard="1/2"), "precision", "shard"),
        "an unknown keyword": (call("lsa", env_kwargs=TAO | {"k": 3}), "k", TypeError),
        "an environment of others": (call(env_id="CartPole-v1", env_kwargs={}), "CartPole-v1", "bandit_envs"),
    }
)


def test_bad_agents_and_ids(tmp_path: Path) -> None:
    with refused("ghost.zip", error=FileNotFoundError):
        call(str(tmp_path / "ghost.zip"))()
    with pytest.raises(gym.error.NameNotFound):
        call("lsa", "bandit_envs/Thresholds-v0")()
    other = agents.make("lsa", gym.make("bandit_envs/Threshold-v0", **TAO, threshold=0.3))
    with refused("lsa", "task"):
        call(other)()
