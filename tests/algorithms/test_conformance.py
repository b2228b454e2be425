"""Agents, problems and distributions of this package pass the checks for strangers'; broken ones fail them."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import table
from test_broken_agents import Fair

import agents
from agents.registry import LEARNED
from agents.testing import cases_of, check_agent, parametrize_with_checks
from bandit_envs import PROBLEMS, Bernoulli, SetProblem
from bandit_envs.testing import check_distribution, check_problem

ODD: list[Any] = [5, "", float("nan"), [], {}]
READY = {name for problem in PROBLEMS for name in agents.names(problem)}  # the others need the columns of a table
OURS = [name for name in agents.names() if name not in LEARNED and name in READY]


@functools.cache
def env_of(name: str) -> Any:
    """An environment for an agent: another problem, with a budget or a delta, for each of those that solve several."""
    cases = cases_of(name)
    return cases[0 if name == "racing" else OURS.index(name) % len(cases)].env()  # that one takes long to stop


@parametrize_with_checks(OURS)
def test_agents(agent: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each on one task; the slow test has all."""
    monkeypatch.setattr("agents.thresholding.dp_index.HORIZON", 60)
    check(agent, env=env_of(agent))


@pytest.mark.slow
@parametrize_with_checks(OURS)
def test_agents_on_all_tasks(agent: Any, check: Any) -> None:
    check(agent)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problems(problem: str) -> None:
    check_problem(problem)


@pytest.mark.parametrize(
    "arms",
    [
        {"distribution": "bernoulli", "mean": [0.1, 0.5, 1.0]},
        {"distribution": "gaussian", "mean": [0, 1], "sd": 2},
        {"distribution": "uniform", "mean": [0.0, 1.0], "width": 2},
        {"distribution": "categorical", "values": [1, 2, 5], "probabilities": [[0.2, 0.3, 0.5], [0.5, 0.5, 0]]},
        {"distribution": "resampled", "rows": [[1, 2, 2], [0, 4]]},
        {"distribution": "tabulated", "quantiles": [[0, 1, 4], [1, 1, 2]]},
        "dose-finding",
    ],
)
def test_distributions(arms: Any) -> None:
    check_distribution(arms)


def test_a_sound_agent_passes() -> None:
    check_agent(Fair, gym.make("bandit_envs/TopK-v0", instance="sampler(arms=5)", delta=0.1, max_pulls=60))
    check_agent("lsa", gym.make("bandit_envs/Threshold-v0", budget=80, threshold=0.4))


def test_what_cannot_be_checked() -> None:
    with pytest.raises(AssertionError, match=r"lsa takes no task.*TopK"):
        check_agent("lsa", gym.make("bandit_envs/TopK-v0"))


def failing(value: Any) -> Any:
    return lambda: parametrize_with_checks(["lsa"], expected_failed_checks=value)


test_bad_calls_of_the_checks = table(
    {
        **{f"an environment, {odd!r}": (lambda odd=odd: check_agent("lsa", odd), "env", repr(odd)) for odd in ODD},
        **{f"agents, {odd!r}": (lambda odd=odd: parametrize_with_checks(odd), "agents", repr(odd)) for odd in ODD},
        "a text for agents": (lambda: parametrize_with_checks("lsa"), "list", "lsa"),
        "an unknown agent": (lambda: parametrize_with_checks(["lsa", "nope"]), "nope", "lsa"),
        "an unknown agent to check": (lambda: check_agent("nope"), "nope", "lsa"),
        "an agent that is a number": (lambda: parametrize_with_checks([5]), "name", 5),
        "an environment of all": (lambda: parametrize_with_checks(["lsa"], env=5), "env", 5),
        "an unknown check": (failing({"check_tie": "why"}), "check_ties", "check_tie"),
        "a check that is a number": (failing({5: "why"}), "check_ties", 5),
        "no reason": (failing({"check_ties": None}), "check_ties", "None"),
        "a list of checks": (failing(["check_ties"]), "dict", "check_ties"),
        "a number of checks": (failing(5), "dict", 5),
    }
)


# --- broken problems and distributions --------------------------------------------------------------------------------


class Positive(SetProblem):
    """All arms with a mean above 1/2."""

    name = "Positive"

    def margin(self, means: Any) -> Any:
        return np.asarray(means) - 0.5


class ByPlace(Positive):
    name, any_order = "ByPlace", True

    def margin(self, means: Any) -> Any:
        return super().margin(means) + 0.2 * (np.arange(np.asarray(means).shape[-1]) == 0)


class OfTheBatch(Positive):
    name = "OfTheBatch"

    def margin(self, means: Any) -> Any:
        return np.asarray(means) - np.nanmean(means)


class WrongAnswer(Positive):
    name = "WrongAnswer"

    def right_answer(self, means: Any) -> Any:
        return ~self.plug_in(means)


class Unequal(Positive):
    name = "Unequal"

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


class NotLocal(Positive):
    name, local = "NotLocal", True

    def margin(self, means: Any) -> Any:
        means = np.asarray(means)
        return means - means.mean(axis=-1, keepdims=True)


class Seen(Positive):
    name = "Seen"

    def plug_in(self, means: Any) -> Any:
        return ~(np.asarray(means) < 0.5)  # NaN is in it


class Sometimes(Positive):
    """Two of some hundred arms have no margin."""

    name = "Sometimes"

    def margin(self, means: Any) -> Any:
        means = np.asarray(means)
        return np.where(means < 0.005, np.nan, means - 0.5)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Sometimes, "check_methods.*got NaN for the mean"),
        (ByPlace, "check_relabelled_arms"),
        (OfTheBatch, "check_single_is_batch"),
        (WrongAnswer, "check_right_answer"),
        (Unequal, "check_pickles"),
        (NotLocal, "local = True"),
        (Seen, "check_ties"),
    ],
)
def test_each_broken_problem_is_found(kind: Any, check: str) -> None:
    with pytest.raises(AssertionError, match=check):
        check_problem(kind)


def test_a_sound_problem_passes() -> None:
    check_problem(Positive)


class Shifted(Bernoulli):
    distribution = "shifted"

    def __init__(self, mean: Any) -> None:
        super().__init__(mean)
        self.means = np.minimum(self.means + 0.05, 1.0)


class Wide(Bernoulli):
    distribution = "wide"

    def __init__(self, mean: Any) -> None:
        super().__init__(mean)
        self.variances = 2 * self.variances


@pytest.mark.parametrize(("kind", "said"), [(Shifted, "mean"), (Wide, "standard deviation")])
def test_each_broken_distribution_is_found(kind: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_distribution(kind([0.2, 0.5]))


def test_what_is_no_distribution() -> None:
    with pytest.raises(AssertionError, match="sampler"):
        check_distribution("sampler(arms=3)")
    with pytest.raises(AssertionError, match="no arms"):
        check_distribution({"distribution": "nothing"})
