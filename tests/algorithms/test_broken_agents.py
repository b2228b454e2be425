"""Broken agents as people write them: each is named by the check of its fault."""

from __future__ import annotations

import random
import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import rankdata

import agents.testing
from agents import Agent, IndexPolicy
from agents.core import ALL_PROBLEMS


class Fair(Agent):
    """It pulls the rarest arm."""

    name, solves, rate, seen = "fair", ALL_PROBLEMS, 1.0, list[int]()

    def choose(self, observation: Any, state: Any) -> Any:
        return observation["pulls"].argmin(axis=1)


def made(problem: str, **methods: Any) -> type[Fair]:
    return type("Broken", (Fair,), {"__module__": __name__, "solves": (problem,)} | methods)


def choosing(rule: Any, problem: str = "Threshold", **more: Any) -> type[Fair]:
    """The agent that chooses rule(agent, pulls, means, fair arms)."""
    return made(problem, choose=lambda a, o, state: rule(a, o["pulls"], o["mean"], Fair.choose(a, o, state)), **more)


def answering(rule: Any, problem: str = "Threshold") -> type[Fair]:
    """The agent that answers rule(agent, pulls, means, plug-in answer)."""

    def recommend(a: Any, observation: Any, state: Any = None, slots: Any = None) -> Any:
        pulls, mean = (np.array(observation[x])[slice(None) if slots is None else slots] for x in ("pulls", "mean"))
        return rule(a, pulls, mean, Fair.recommend(a, observation, state, slots))

    return made(problem, recommend=recommend)


def predicting(change: Any) -> type[Fair]:
    """The agent whose `predict` changes what it is given, or the action."""

    def predict(a: Any, observation: Any, state: Any = None, *rest: Any, **more: Any) -> Any:
        action, state = Fair.predict(a, observation, state, *rest, **more)
        change(observation, action)
        return action, state

    return made("Threshold", predict=predict)


def stopping(enough: Any) -> type[Fair]:
    """The agent that stops where enough(agent, pulls, means)."""
    return choosing(lambda a, T, m, arms: np.where(enough(a, T, m), a.task.stop, arms), stops=True)


def surely(a: Any, T: Any, m: Any) -> Any:
    """Away from the threshold by intervals of samples in [0, 1], whatever their scale is."""
    n = np.maximum(T, 1)
    return (abs(m - a.problem.boundary) > np.sqrt(np.log(40 * n**2 / (a.task.delta or 0.1)) / 2 / n)).all(axis=1)


def alone(observation: Any, action: Any) -> None:
    if np.shape(observation["pulls"])[:-1] == (1,):
        action["arm"][:] = 0


BROKEN: dict[str, dict[str, type[Fair]]] = {
    "check_other_questions": {
        "six arms": choosing(lambda a, T, m, arms: T[:, :6].argmin(axis=1), "BestArm"),
        "k = 3": answering(
            lambda a, T, m, right: rankdata(np.where(T > 0, -m, np.inf), "ordinal", axis=-1) <= 3, "TopK"
        ),
        "threshold .5": answering(lambda a, T, m, right: (m >= 0.5) & (T > 0)),
        "negative means": answering(
            lambda a, T, m, right: rankdata(-np.maximum(m, 0) * (T > 0), "ordinal", axis=-1) <= 1, "BestArm"
        ),
        "400 pulls": choosing(lambda a, T, m, arms: np.ones(400)[T.sum(1).max() - 1] * 0 + arms),
        "random after 310": choosing(
            lambda a, T, m, arms: (arms + (T.sum(1) > 310) * np.random.default_rng().integers(a.task.K)) % a.task.K
        ),
        "all at .9": answering(lambda a, T, m, right: right | (m.max(axis=-1, keepdims=True) >= 0.9)),
        "even K": choosing(lambda a, T, m, arms: arms if a.task.K % 2 else arms * 0),
        "60 pulls": choosing(lambda a, T, m, arms: np.where(T.sum(axis=1) < 60, arms, a.task.stop)),
    },
    "check_places": {
        "by place": choosing(lambda a, T, m, arms: np.where(T.sum(axis=1) % 2, arms, 0)),
        "near .5": choosing(lambda a, T, m, arms: (np.sqrt(T) * abs(m - 0.5)).argmin(axis=1)),
    },
    "check_errors_within_delta": {
        "delta .1": stopping(lambda a, T, m: T.min(axis=1) >= 300),
        "fixed size": stopping(lambda a, T, m: T.min(axis=1) >= 60 * np.log(1 / (a.task.delta or 1))),
        "range for sigma": stopping(surely),
        "one pull of each": stopping(lambda a, T, m: T.min(axis=1) > 0),
    },
    "check_repeats": {
        "class-wide list": choosing(lambda a, T, m, arms: a.seen.append(1) or arms),
        "settings": choosing(lambda a, T, m, arms: setattr(a, "rate", a.rate * 0.9) or arms),
        "calls": choosing(lambda a, T, m, arms: setattr(a, "rate", a.rate + 1) or (arms + int(a.rate)) % a.task.K),
    },
    "check_single_is_batch": {
        "writes": predicting(lambda o, action: np.copyto(o["mean"], np.inf, where=o["pulls"] == 0)),
        "another episode": choosing(lambda a, T, m, arms: (arms + (m[-1, 2] > 0)) % a.task.K),
        "order of keys": made("Threshold", choose=lambda a, o, state: next(iter(o.values()))[..., 0] % 1 > 0),
    },
    "check_order_of_the_batch": {
        "large batches": choosing(lambda a, T, m, arms: arms if len(T) <= 8 else arms * 0),
        "batch of one": predicting(alone),
    },
    "check_no_global_state": {
        "global seed": choosing(lambda a, T, m, arms: (arms + np.random.get_state()[1][T.sum() % 99]) % a.task.K),  # noqa: NPY002
        "draws": choosing(lambda a, T, m, arms: np.array([random.randrange(a.task.K) for _ in T])),
        "clock": choosing(lambda a, T, m, arms: (arms + (time.monotonic() == 1e9)) % a.task.K),  # the check's
    },
    "check_two_arms": {
        "K = 2": choosing(lambda a, T, m, arms: arms + 3 * (a.task.K == 2)),
        "third-best arm": choosing(lambda a, T, m, arms: arms + 0 * np.partition(m, 2, axis=1).argmax(axis=1)),
    },
    "check_ties": {"ties": answering(lambda a, T, m, right: m == m.max(axis=-1, keepdims=True), "BestArm")},
    "check_short_budget": {
        "unmeasured": answering(lambda a, T, m, right: right | (T == 0)),
        "a pull for each arm": choosing(lambda a, T, m, arms: np.ones(a.task.budget)[a.task.K - 1].astype(int) * arms),
    },
    "check_relabelled_arms": {
        "32 bits": answering(lambda a, T, m, right: (m * T.astype("i4") >= 0.5 * T) & (T > 0)),
        "first arm only": answering(lambda a, T, m, right: (T >= 0) & (np.arange(a.task.K) == 0)),
    },
    "check_evaluate": {
        "otherwise": made("Threshold", plays=True, played=lambda a, s, q, o, state: o["pulls"][:, 0] * 0)
    },
}


class Nearest(IndexPolicy):
    name = "nearest"

    def index(self, T: Any, D: Any) -> Any:
        return T**0.5 * abs(D)


def test_an_index_of_a_users_own_passes() -> None:
    agents.testing.check_agent(
        Nearest, gym.make("bandit_envs/Threshold-v0", instance="tao2019-1", budget=60), bounds=False
    )


CHECKS = {check.__name__: check for check in agents.testing.CHECKS}


def env_of(kind: type[Fair]) -> Any:
    limits: dict[str, Any] = {"delta": 0.1, "max_pulls": 300} if kind.stops else {"budget": 60}
    return gym.make(f"bandit_envs/{kind.solves[0]}-v0", instance={"sampler": {"arms": 5}}, **limits)


@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name in BROKEN for fault in BROKEN[name]])
def test_the_check_of_the_fault_names_it(name: str, fault: str) -> None:
    kind = BROKEN[name][fault]
    env = env_of(kind)
    with pytest.raises(AssertionError, match=f"{name}: .*Broken on bandit_envs/"):
        agents.testing._run(kind, CHECKS[name], env)
    if name == "check_evaluate":  # all others pass
        with pytest.raises(AssertionError, match=name):
            agents.testing.check_agent(kind, env, bounds=False)


ASKED = {(name, kind.solves[0], kind.stops): kind for name in BROKEN for kind in BROKEN[name].values()}


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_fair_agent_passes_where_broken_ones_fail(asked: tuple[str, str, bool]) -> None:
    agents.testing._run(Fair, CHECKS[asked[0]], env_of(ASKED[asked]))
