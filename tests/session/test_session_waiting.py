"""A session with open questions is an episode with a delay, or with batches, pull by pull."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

import agents
import bandit_envs  # noqa: F401  (registers the environments)

K, MOST = 5, 300
ROOT = 11
OWN: dict[str, Any] = {"TopK": {"k": 2, "epsilon": 0.2}}


def env_of(problem: str, episode: int = 0, **kwargs: Any) -> tuple[Any, Any]:
    """An environment with full actions in its episode, and the first observation."""
    env = gym.make(f"bandit_envs/{problem}-v0", instance=f"sampler(arms={K})", actions="full", **kwargs).unwrapped
    seen, _ = env.reset(seed=ROOT, options={"episode": episode})
    return env, seen


@functools.cache
def samples_of(problem: str, episode: int) -> np.ndarray:
    """The first samples of each arm, (K, MOST), of the environment without delay."""
    env, _ = env_of(problem, episode, budget=K * MOST + 1, **OWN.get(problem, {}))
    none, found = np.zeros(K, np.int8), np.zeros((K, MOST))
    none[:1] = 1
    for arm in range(K):
        for n in range(MOST):
            found[arm, n] = env.step({"arm": arm, "times": 1, "answer": none})[-1]["sample"]
    return found


def in_an_episode(name: str, problem: str, episode: int, **kwargs: Any) -> tuple[list[int], int, np.ndarray]:
    """The arms asked for (-1: a wait), how many results were shown at the end, and the answer."""
    env, seen = env_of(problem, episode, **kwargs)
    agent, state, asked, over = agents.make(name, env), None, [], False
    while not over:
        action, state = agent.predict(seen, state)
        if seen["remaining"][0] != 0 and action["arm"] != K:
            left = kwargs.get("budget", kwargs.get("max_pulls")) - len(asked) + asked.count(-1)
            asked += [action["arm"]] * min(int(action["times"]), left) if action["times"] else [-1]
        seen, _, ended, cut, info = env.step(action)
        over = ended or cut
    return asked, int(seen["pulls"].sum()), info["answer"]


def in_a_session(name: str, problem: str, episode: int, delay: int, **kwargs: Any) -> tuple[list[int], int, Any]:
    """The same of a session in which a result comes once `delay` further questions are asked."""
    samples = samples_of(problem, episode)
    env, seen = env_of(problem, episode, **kwargs | {"delay": 0})
    session = agents.Session(name, env.task, store=":memory:", public_seed=int(seen["public_seed"][0]))
    asked: list[int] = []
    made, clock, line = np.zeros(K, int), 0, list[tuple[int, Any]]()
    while not session.done:
        question = session.ask(1)
        if question:
            asked.append(int(question[0]))
            clock += 1
            line.append((clock + delay, question[0]))
        else:
            asked.append(-1)
            clock = max(clock, line[0][0]) if line else clock
        if session.remaining == len(line):  # the budget is spent
            clock = 10**9
        while line and line[0][0] <= clock and not session.done:
            _, one = line.pop(0)
            session.tell(one, samples[int(one), made[int(one)]])
            made[int(one)] += 1
    return asked, int(made.sum()), session.answer()


AGENTS = {
    "Threshold": ["lsa", "apt", "evidence", "sar", "uniform", "evolved"],
    "TopK": ["halving", "lucb", "evolved", "look-ahead"],
    "BestArm": ["top-two", "evidence", "successive-rejects", "sequential-halving", "kl-lucb"],
    "AllGood": ["st2", "evidence", "evolved"],
}
BY_DELTA = ("evidence", "halving", "lucb", "top-two", "kl-lucb", "st2")
CASES = [(problem, name) for problem, names in AGENTS.items() for name in names]


def rules_of(problem: str, name: str) -> dict[str, Any]:
    """Keywords of the environment."""
    rules: dict[str, Any] = {"delta": 0.1, "max_pulls": MOST} if name in BY_DELTA else {"budget": 60}
    return rules | OWN.get(problem, {})


@pytest.mark.parametrize("delay", [1, 4])
@pytest.mark.parametrize(("problem", "name"), CASES)
def test_a_session_with_several_askers_is_an_episode_with_a_delay(problem: str, name: str, delay: int) -> None:
    kwargs = rules_of(problem, name)
    asked, shown, answer = in_an_episode(name, problem, delay, delay=delay, **kwargs)
    there, results, found = in_a_session(name, problem, delay, delay, **kwargs)
    assert asked == there
    assert shown == results
    assert answer.tolist() == found.tolist()


@pytest.mark.parametrize("batch", [4, 7])
@pytest.mark.parametrize(("problem", "name"), CASES)
def test_a_session_with_plates_is_an_episode_with_batches(problem: str, name: str, batch: int) -> None:
    kwargs, episode = rules_of(problem, name), batch
    asked, shown, answer = in_an_episode(name, problem, episode, batch=batch, **kwargs)
    samples = samples_of(problem, episode)
    env, seen = env_of(problem, episode, **kwargs)
    session = agents.Session(name, env.task, store=":memory:", public_seed=int(seen["public_seed"][0]))
    there, made = list[int](), np.zeros(K, int)
    while not session.done:
        arms = [int(one) for one in session.ask(batch)]
        there += arms + [-1] * (len(arms) < batch and session.remaining != len(arms))
        values = []
        for arm in arms:
            values.append(samples[arm, made[arm]])
            made[arm] += 1
        table = pd.DataFrame({"name": [str(arm) for arm in arms], "value": values})
        session.tell_table(table, again=True)
    assert asked == there
    assert shown == made.sum()
    assert answer.tolist() == session.answer().tolist()
