"""Broken agents as people write them: each is named by the check of its fault."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents.testing
from agents import Agent
from agents.core import ALL_PROBLEMS

LIMITS: dict[bool, dict[str, Any]] = {False: {"budget": 60}, True: {"delta": 0.1, "max_pulls": 300}}


class Fair(Agent):
    """It pulls the rarest arm."""

    name, solves, rate, seen = "fair", ALL_PROBLEMS, 1.0, list[int]()

    def choose(self, observation: Any, state: Any) -> Any:
        return observation["pulls"].argmin(axis=1)


def choosing(rule: Any, **attributes: Any) -> type[Fair]:
    """The agent that chooses rule(agent, pulls, means, fair arms)."""

    def choose(self: Any, observation: Any, state: Any) -> Any:
        return rule(self, observation["pulls"], observation["mean"], Fair.choose(self, observation, state))

    return type("Broken", (Fair,), {"choose": choose, "__module__": __name__} | attributes)


def answering(rule: Any) -> type[Fair]:
    """The agent that answers rule(agent, pulls, means, plug-in answer)."""

    def recommend(self: Any, observation: Any, state: Any = None, slots: Any = None) -> Any:
        pulls, mean = (np.array(observation[name])[slice(None) if slots is None else slots] for name in PARTS)
        return rule(self, pulls, mean, Fair.recommend(self, observation, state, slots))

    return type("Broken", (Fair,), {"recommend": recommend, "__module__": __name__})


def predicting(change: Any) -> type[Fair]:
    """The agent whose `predict` changes what it is given, or the action."""

    def predict(self: Any, observation: Any, state: Any = None, *rest: Any, **more: Any) -> Any:
        action, state = Fair.predict(self, observation, state, *rest, **more)
        change(observation, action)
        return action, state

    return type("Broken", (Fair,), {"predict": predict, "__module__": __name__})


def stopping(enough: Any) -> type[Fair]:
    """The agent that stops where enough(agent, pulls, means)."""
    return choosing(lambda a, T, m, arms: np.where(enough(a, T, m), a.task.stop, arms), stops=True)


def raising(fault: bool, arms: Any) -> Any:
    if fault:
        raise RuntimeError("no more space")
    return arms


def largest(values: Any, k: int) -> Any:
    return np.argsort(np.argsort(-values, axis=-1, kind="stable"), axis=-1) < k


def surely(a: Any, T: Any, m: Any) -> Any:
    """Away from the threshold by intervals of samples in [0, 1], whatever their scale is."""
    n = np.maximum(T, 1)
    return (abs(m - a.problem.boundary) > np.sqrt(np.log(40 * n**2 / (a.task.delta or 0.1)) / 2 / n)).all(axis=1)


def overwrite(observation: Any, action: Any) -> None:
    observation["mean"][observation["pulls"] == 0] = np.inf


def alone(observation: Any, action: Any) -> None:
    if np.shape(observation["pulls"])[:-1] == (1,):
        action["arm"][:] = 0


PARTS = ("pulls", "mean")
BY_STATE, SINGLE, BATCH = "check_no_global_state", "check_single_is_batch", "check_order_of_the_batch"
OTHER, PLACES, KEPT, DELTA = (
    f"check_{x}" for x in ("other_questions", "places", "keeps_nothing", "errors_within_delta")
)
BROKEN: dict[str, tuple[str, str, type[Fair]]] = {
    "six arms": (OTHER, "BestArm", choosing(lambda a, T, m, arms: T[:, :6].argmin(axis=1))),
    "by place": (PLACES, "Threshold", choosing(lambda a, T, m, arms: np.where(T.sum(axis=1) % 2, arms, 0))),
    "k = 3": (OTHER, "TopK", answering(lambda a, T, m, right: largest(np.where(T > 0, m, -np.inf), 3))),
    "threshold .5": (OTHER, "Threshold", answering(lambda a, T, m, right: (m >= 0.5) & (T > 0))),
    "near .5": (PLACES, "Threshold", choosing(lambda a, T, m, arms: (np.sqrt(T) * abs(m - 0.5)).argmin(axis=1))),
    "delta .1": (DELTA, "Threshold", stopping(lambda a, T, m: T.min(axis=1) >= 300)),
    "negative means": (OTHER, "BestArm", answering(lambda a, T, m, right: largest(np.maximum(m, 0) * (T > 0), 1))),
    "400 pulls": (OTHER, "Threshold", choosing(lambda a, T, m, arms: raising(T.sum(axis=1).max() > 400, arms))),
    "random after 310": (
        OTHER,
        "Threshold",
        choosing(
            lambda a, T, m, arms: np.where(
                T.sum(axis=1) > 310, np.random.default_rng().integers(a.task.K, size=len(T)), arms
            )
        ),
    ),
    "fixed size": (DELTA, "Threshold", stopping(lambda a, T, m: T.min(axis=1) >= 60 * np.log(1 / (a.task.delta or 1)))),
    "all at .9": (OTHER, "Threshold", answering(lambda a, T, m, right: right | (m.max(axis=-1, keepdims=True) >= 0.9))),
    "writes": (SINGLE, "Threshold", predicting(overwrite)),
    "class-wide list": (KEPT, "Threshold", choosing(lambda a, T, m, arms: a.seen.append(1) or arms)),
    "settings": (KEPT, "Threshold", choosing(lambda a, T, m, arms: setattr(a, "rate", a.rate * 0.9) or arms)),
    "large batches": (BATCH, "Threshold", choosing(lambda a, T, m, arms: arms if len(T) <= 8 else arms * 0)),
    "another episode": (SINGLE, "Threshold", choosing(lambda a, T, m, arms: (arms + (m[-1, 2] > 0)) % a.task.K)),
    "batch of one": (BATCH, "Threshold", predicting(alone)),
    "global seed": (
        BY_STATE,
        "Threshold",
        choosing(lambda a, T, m, arms: (arms + np.random.get_state()[1][T.sum() % 99]) % a.task.K),  # noqa: NPY002
    ),
    "clock": (BY_STATE, "Threshold", choosing(lambda a, T, m, arms: (arms + (time.monotonic() >= 1e9)) % a.task.K)),
    "range for sigma": (DELTA, "Threshold", stopping(surely)),
    "even K": (OTHER, "Threshold", choosing(lambda a, T, m, arms: arms if a.task.K % 2 else arms * 0)),
    "K = 2": ("check_two_arms", "Threshold", choosing(lambda a, T, m, arms: arms + 3 * (a.task.K == 2))),
    "ties": ("check_ties", "BestArm", answering(lambda a, T, m, right: m == m.max(axis=-1, keepdims=True))),
    "60 pulls": (OTHER, "Threshold", choosing(lambda a, T, m, arms: np.where(T.sum(axis=1) < 60, arms, a.task.stop))),
    "unmeasured": ("check_short_budget", "Threshold", answering(lambda a, T, m, right: right | (T == 0))),
    "32 bits": (
        "check_relabelled_arms",
        "Threshold",
        answering(lambda a, T, m, right: (m * T.astype(np.int32) >= 0.5 * T) & (T > 0)),
    ),
    "order of keys": (
        SINGLE,
        "Threshold",
        type("Broken", (Fair,), {"choose": lambda self, shown, state: next(iter(shown.values()))[..., 0] % 1 > 0}),
    ),
    "no pickle": (
        "check_pickles",
        "Threshold",
        type("Broken", (Fair,), {"initial_state": lambda self, shown: {"next": lambda: 0}}),
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_check_of_the_fault_names_it(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, problem, kind = BROKEN[fault]
    limits = LIMITS[name == DELTA]
    env = gym.make(f"bandit_envs/{problem}-v0", instance={"sampler": {"arms": 5}}, **limits)
    [check] = [one for one in agents.testing.CHECKS if one.__name__ == name]
    with pytest.raises(AssertionError, match=f"{name}: .*on bandit_envs/{problem}"):
        agents.testing._run(kind, check, env)
    agents.testing._run(Fair, check, env)
