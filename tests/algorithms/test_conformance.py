"""Agents, problems and distributions of this package pass the checks for strangers'; broken ones fail them."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import table

import agents
from agents.registry import LEARNED
from agents.testing import Case, cases_of, check_agent, parametrize_with_checks
from bandit_envs import PROBLEMS, Bernoulli, SetProblem
from bandit_envs.testing import check_distribution, check_problem

ODD: list[Any] = [5, "", float("nan"), [], {}]
READY = {name for problem in PROBLEMS for name in agents.names(problem)}  # the others need the columns of a table
OURS = [name for name in agents.names() if name not in LEARNED and name in READY]


# binom.isf(1e-6, n, .1): of an agent that is right with probability .9, more answers are wrong with probability 1e-6.
SMALL = {"MANY": 40, "MOST_WRONG": 15, "CLEAR": 20, "CLEAR_WRONG": 10, "MOST": 100}


@functools.cache
def env_of(name: str) -> Any:
    """An environment for an agent: another problem, with a budget or a delta, for each of those that solve several."""
    cases = cases_of(name)
    return cases[0 if name == "racing" else OURS.index(name) % len(cases)].env()  # that one takes long to stop


@parametrize_with_checks(OURS)
def test_agents(agent: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each on one short task with Bernoulli arms, as twins meet Gaussian ones, and a fifth of the episodes."""
    monkeypatch.setattr("agents.thresholding.dp_index.HORIZON", 60)
    for name, value in SMALL.items():
        monkeypatch.setattr(f"agents.testing.{name}", value)
    replaced = Case.replaced
    gaussian = lambda instance=None, **changed: isinstance(instance, dict) and instance.get("sd")
    monkeypatch.setattr(Case, "replaced", lambda case, **new: iter(()) if gaussian(**new) else replaced(case, **new))
    check(agent, env=env_of(agent))


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


def above(by: Any = 0.5) -> Any:
    """The margins of means above a number, or above a function of all of them."""
    return lambda self, means: np.asarray(means) - (by(np.asarray(means)) if callable(by) else by)


ABOVE_HALF = above()


def problem(name: str, margin: Any = ABOVE_HALF, **members: Any) -> Any:
    """All arms with a mean above 1/2, but for what is given; pickles find it in this module."""
    kind = type(name, (SetProblem,), {"__module__": __name__, "name": name, "margin": margin, **members})
    return globals().setdefault(name, kind)


def most(means: Any) -> Any:
    return np.nan_to_num(means, nan=-np.inf).max(axis=-1, keepdims=True)


BROKEN_PROBLEMS = {
    # Two of some hundred arms have no margin.
    "check_methods.*got NaN for the mean": problem("Sometimes", above(lambda m: np.where(m < 0.005, np.nan, 0.5))),
    "check_relabelled_arms": problem(
        "ByPlace", above(lambda m: 0.5 - 0.2 * (np.arange(m.shape[-1]) == 0)), any_order=True
    ),
    "check_single_is_batch": problem("OfTheBatch", above(np.nanmean)),
    "check_right_answer": problem("WrongAnswer", right_answer=lambda self, means: ~self.plug_in(means)),
    "check_pickles": problem("Unequal", __eq__=lambda self, other: False, __hash__=None),
    "local = True": problem("NotLocal", above(lambda m: m.mean(axis=-1, keepdims=True)), local=True),
    "check_ties.*'Seen'": problem("Seen", plug_in=lambda self, means: ~(np.asarray(means) < 0.5)),  # NaN is in it
    "check_ties.*'AllBest'": problem("AllBest", above(most), answer_size=1, plug_in=lambda self, m: m == most(m)),
}


@pytest.mark.parametrize("check", BROKEN_PROBLEMS)
def test_each_broken_problem_is_found(check: str) -> None:
    with pytest.raises(AssertionError, match=check):
        check_problem(BROKEN_PROBLEMS[check])


def test_a_sound_problem_passes() -> None:
    check_problem(problem("Positive"))


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
