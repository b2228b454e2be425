"""States, agents and certifiers into which somebody has written: an error or a decision, never a crash."""

from __future__ import annotations

import copy
import os
import pickle
import resource
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
import bandit_envs

WILD = (10**6, -(2**62), -1)


def outcome(call: Callable[[], object]) -> int:
    """What a call comes to in a process of its own: 0 it returns, 1 a ValueError; else what has ended the process."""
    if not (child := os.fork()):
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        try:
            call()
            os._exit(0)
        except ValueError:
            os._exit(1)
        except BaseException:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def begun(name: str, problem: str, arms: int = 6, steps: int = 9, **kwargs: Any) -> tuple[Any, Any, Any]:
    env = gym.make(f"bandit_envs/{problem}-v0", instance=f"sampler(arms={arms})", **kwargs)
    agent, (observation, _), state = agents.make(name, env), env.reset(seed=1), None
    for _ in range(steps):
        action, state = agent.predict(observation, state)
        observation, *_ = env.step(action)
    agent.predict(observation, copy.deepcopy(state))  # compiled before the fork
    return agent, observation, state


@pytest.mark.parametrize("arms", [6, 60])
@pytest.mark.parametrize("part", ["last", "levels", "table"])
def test_an_index_policy_survives_its_state(arms: int, part: str) -> None:
    agent, observation, state = begun("lsa", "Threshold", arms, budget=300)
    wrong = [np.full_like(getattr(state, part), x) for x in WILD] + [getattr(state, part)[:0]]
    for one in wrong:
        other = copy.deepcopy(state)
        setattr(other, part, one)
        assert outcome(lambda other=other: agent.predict(observation, other)) in (0, 1)  # type: ignore[misc]


@pytest.mark.parametrize("name", ["lucb", "lucb(stop='certificate')"])
def test_the_numbers_of_a_state_stay(name: str) -> None:
    agent, observation, state = begun(name, "TopK", k=2, epsilon=0.3, delta=0.1, max_pulls=1000)
    inner = getattr(state, "inner", state)
    expected = agent.predict(observation, copy.deepcopy(state))[0]
    for kept in (state, copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        one = getattr(kept, "inner", kept)
        for array in (one.now["place"], one.now["h"], one.todo, one.own["tree"].levels):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        with pytest.raises(ValueError, match="todo cannot be set, got 7"):
            one.todo = 7
        with pytest.raises(TypeError):
            one.own["tree"] = None
        assert agent.predict(observation, kept)[0] == expected
    text, at = pickle.dumps(state), pickle.dumps(state).find(inner.todo.tobytes())
    with pytest.raises(ValueError, match="damaged"):
        pickle.loads(text[:at] + b"\x55" * 8 + text[at + 8 :])


def test_what_kernels_go_by_of_an_agent_stays() -> None:
    agent, observation, state = begun("lucb", "TopK", k=2, epsilon=0.3, delta=0.1, max_pulls=1000)
    with pytest.raises(ValueError, match="k of lucb stays as the agent was made, got 1000000"):
        agent.k = 10**6
    agent.table[...] = np.nan  # of lil'LUCB: not what kernels are given
    agent.epsilon = 0.4
    agent.predict(observation, state)


@pytest.mark.parametrize("problem", ["AllGood(epsilon=.4)", "TopK(k=3)", "Threshold(threshold=.5)"])
def test_a_decider_takes_no_arm_from_a_float_that_is_none(problem: str) -> None:
    name, _, rest = problem.partition("(")
    made = getattr(bandit_envs, name)(**eval(f"dict({rest}"))
    certifier = made.certifier(100, 1, distribution="bernoulli").decider(0.1)
    mean = np.full((1, 100), 0.1)
    mean[0, :10] = 0.9
    given = np.full((1, 100), 300), mean, mean * (1 - mean), np.full((1, 100), -1, np.int8)
    assert outcome(lambda: certifier.alternatives(*given)) == 0
    assert abs(certifier.alternatives(*given)[0, 0]) == np.inf  # decided, either way
