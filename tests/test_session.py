"""Sessions: the pulls of simulated episodes, late and foreign results, several processes, kills, reopening."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
from agents.catalogue import recipe_of
from agents.session.book import Book
from agents.session.setup import Setup
from agents.session.store import ASKED, TOLD, Event
from bandit_envs import PROBLEMS, Task

pytest.importorskip("sqlalchemy")

MEAN = [0.95, 0.05, 0.9, 0.1, 0.85]
FACTS = {"problem": "Threshold", "threshold": 0.5, "arms": ["a", "b", "c"], "range": (0, 1), "budget": 12}
# What an agent needs that differs from the environment that the others get, so that its episode is neither trivial nor
# long.
RULES: dict[str, dict[str, Any]] = {
    "Threshold": {"budget": 60},
    "Feasible": {"budget": 60, "A": [[1.0], [-1.0]], "b": [0.7, -0.2]},
    "AllGood": {"budget": 3000, "delta": 0.3, "epsilon": 0.5},
    "TopK": {"budget": 3000, "delta": 0.3, "k": 2, "epsilon": 0.5},
    "BestArm": {"budget": 3000, "delta": 0.3, "epsilon": 0.5},
}
ALL = [(name, problem) for problem in RULES for name in agents.names(problem)]


def episode(name: str, problem: str, **rules: Any) -> tuple[Any, Any, int]:
    """An episode by `agents.play`, the environment, and the public seed."""
    given = {"instance": {"law": "bernoulli", "mean": MEAN}, "shuffle_arms": False, **RULES[problem], **rules}
    if name in ("ppo", "evolved"):
        learned = {"budget": None, "max_pulls": 60, "pull_cost": 0.001} if problem == "AllGood" else {"budget": 60}
        given |= {**learned, "delta": None}
    trace = agents.play(name, f"bandit_envs/{problem}-v0", env_kwargs=given, seed=3)
    env = gym.make(f"bandit_envs/{problem}-v0", **given)
    observation, _ = env.reset(seed=3)
    return trace, env, int(observation["public_seed"][0])


def results(trace: Any) -> list[tuple[int, float]]:
    """The results of an episode with 0 and 1, one by one: of a bulk pull the ones come first."""
    found: list[tuple[int, float]] = []
    arms, samples = trace.arms.tolist(), trace.samples.tolist()
    start = 0
    for t in range(1, len(arms) + 1):
        if t == len(arms) or arms[t] != arms[start] or samples[t] != samples[start]:
            ones = round(samples[start] * (t - start))
            found += [(arms[start], 1.0)] * ones + [(arms[start], 0.0)] * (t - start - ones)
            start = t
    return found


def test_results_of_bulk_pulls() -> None:
    class Trace:
        arms, samples = np.array([0, 0, 0, 1]), np.array([1 / 3, 1 / 3, 1 / 3, 1.0])

    assert results(Trace) == [(0, 1.0), (0, 0.0), (0, 0.0), (1, 1.0)]


class Notes:
    """A book with events as a store would number them, without one."""

    def __init__(self, setup: Setup) -> None:
        self.book, self.setup = Book(setup), setup
        self.events: list[Event] = []

    def add(self, kind: str, arm: int, value: Any = None, about: int | None = None) -> int:
        self.events.append(Event(len(self.events) + 1, kind, arm, value, about))
        assert self.book.apply(self.events[-1])
        return len(self.events)

    def ask(self, n: int = 1) -> list[int]:
        arms = self.book.wanted(n)
        for arm in arms:
            self.add(ASKED, arm)
        return arms

    def tell(self, arm: int, value: Any) -> None:
        self.add(TOLD, arm, value, self.book.ask_answered_by(arm, None))


@pytest.mark.parametrize(("name", "problem"), ALL)
def test_a_session_makes_the_pulls_of_a_simulated_episode(name: str, problem: str) -> None:
    if name == "ppo":
        pytest.importorskip("stable_baselines3")
    trace, env, seed = episode(name, problem)
    notes = Notes(Setup.of(name, env, None, seed))
    told = results(trace)
    assert len(told) == len(trace.arms) > len(MEAN)
    for t, (arm, value) in enumerate(told):
        assert notes.ask() == [arm], t
        notes.tell(arm, value)
        if t in (3, len(told) // 2):  # as if it had been closed and opened again
            data = notes.book.snapshot()
            restored = None if data is None else Book.restored(notes.setup, (), data)
            if name != "ppo":  # whose memory is no plain one; it is found again by going through all events
                assert restored is not None
                notes.book = restored
    assert notes.ask() == []
    assert notes.book.run.over
    assert notes.book.answer().tolist() == trace.answer.tolist()


def test_every_agent_is_replayed() -> None:
    assert set(RULES) == set(PROBLEMS)
    assert {name for name, _ in ALL} >= {*agents.names(), "ppo", "evolved"} - {"oracle"}
