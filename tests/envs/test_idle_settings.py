"""Settings that change nothing are warned of, and those that are warned of change nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

import agents
from bandit_envs import Task

BERNOULLI = {"instance": {"distribution": "bernoulli", "mean": [0.2, 0.45, 0.6, 0.8]}}
GAUSSIAN = {"instance": {"distribution": "gaussian", "mean": [0.2, 0.45, 0.6, 0.8], "sd": 0.5}}
BUDGET, DELTA = {"budget": 120}, {"delta": 0.1, "max_pulls": 600}


# --- of environments -------------------------------------------------------------------------------------------------


def test_a_tolerance_by_the_exact_criterion() -> None:
    """Defect: on garivier2016-2, which brings "exact" for BestArm, an epsilon did nothing, without a word."""
    said = r"BestArm: epsilon=0.05 has no effect, as criterion='exact' has no tolerance: say criterion='aggregate' or"
    with pytest.warns(UserWarning, match=said):
        gym.make("bandit_envs/BestArm-v0", instance="garivier2016-2", epsilon=0.05, delta=0.1)
    with pytest.warns(UserWarning, match="TopK: epsilon=0.05 has no effect"):
        gym.make_vec("bandit_envs/TopK-v0", 2, epsilon=0.05, criterion="exact", budget=50)
    kwargs = {"instance": "garivier2016-2", "epsilon": 0.05, "delta": 0.1, "max_pulls": 100}
    with pytest.warns(UserWarning, match="epsilon=0.05 has no effect"):
        agents.evaluate("evidence", "BestArm", episodes=1, env_kwargs=kwargs)


def test_a_tolerance_that_counts_or_that_an_instance_brings_is_no_matter() -> None:
    """An instance's own epsilon is no choice of the user's, nor is that of a task that has been stored."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gym.make("bandit_envs/BestArm-v0", instance="garivier2016-2", epsilon=0.05, criterion="each", delta=0.1)
        gym.make("bandit_envs/BestArm-v0", instance="garivier2016-2", epsilon=0, delta=0.1)
        gym.make("bandit_envs/BestArm-v0", epsilon=0.05, delta=0.1)
        env = gym.make("bandit_envs/TopK-v0", instance="chen2017-uniform(n=20, K=5)", criterion="exact")
        task = env.unwrapped.task  # type: ignore[attr-defined]
        assert task.parameters["epsilon"] > 0
        assert Task.from_json(task.to_json()) == task


def test_the_spread_of_a_sampler_of_bernoulli_arms() -> None:
    with pytest.warns(UserWarning, match=r"spread=0.3 of the sampler has no effect, as Bernoulli arms have none"):
        gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=4, spread=0.3)", budget=50)
    gym.make("bandit_envs/Feasible-v0", instance="polyhedra")
    for sampler in ({"distribution": "gaussian", "spread": 0.3}, {"spread": 1.0}):
        gym.make("bandit_envs/TopK-v0", instance={"sampler": sampler})


# --- of agents -------------------------------------------------------------------------------------------------------

IDLE: list[tuple[str, str, str, dict[str, Any]]] = [  # agent, parameter and value, problem, environment
    ("evidence", "sigma=0.7", "BestArm", BERNOULLI | DELTA),
    ("evidence", "delta=0.3", "BestArm", GAUSSIAN | BUDGET),
    ("evidence(distribution='student')", "rho=20.0", "BestArm", GAUSSIAN | DELTA),
    ("evidence(boundary='nominal')", "rho=20.0", "BestArm", GAUSSIAN | DELTA),
    ("track-and-stop", "sigma=0.7", "AllGood", BERNOULLI | DELTA),
    ("track-and-stop", "sigma=0.3", "TopK", GAUSSIAN | BUDGET),
    ("track-and-stop", "boundary='kaufmann-koolen'", "TopK", GAUSSIAN | BUDGET),
    ("track-and-stop", "rho=20.0", "Threshold", GAUSSIAN | BUDGET),
    ("track-and-stop", "delta=0.3", "BestArm", BERNOULLI | BUDGET),
    ("top-two", "beta=0.8", "BestArm", BERNOULLI | DELTA),
    ("top-two(proportions='fixed')", "beta=0.8", "Threshold", BERNOULLI | DELTA),
    ("top-two", "proportions='fixed'", "Threshold", BERNOULLI | DELTA),
    ("top-two", "seed=7", "Threshold", BERNOULLI | DELTA),
    ("top-two", "boundary='kaufmann-koolen'", "TopK", BERNOULLI | BUDGET),
    ("lucb", "c=1.3", "BestArm", BERNOULLI | DELTA),
    ("lucb", "epsilon=0.3", "TopK", BERNOULLI | BUDGET),
    ("lucb(k=2)", "epsilon=0.3", "AllGood", BERNOULLI | DELTA),
    ("pi3", "delta=0.3", "TopK", BERNOULLI | BUDGET),
    ("adapt", "delta=0.3", "BestArm", GAUSSIAN | BUDGET),
    ("ugape", "delta=0.3", "BestArm", BERNOULLI | BUDGET),
    ("ugape", "sigma=0.3", "BestArm", BERNOULLI | BUDGET),
    ("ugape(a=4.0)", "scale=3.0", "BestArm", BERNOULLI | BUDGET),
    ("ugape", "scale=3.0", "BestArm", BERNOULLI | DELTA),
    ("ugape", "a=4.0", "BestArm", BERNOULLI | DELTA),
    ("ucbe(scale=3.0)", "b=1.0", "Threshold", BERNOULLI | BUDGET),
    ("ucbe(a=3.0)", "scale=2.0", "Threshold", BERNOULLI | BUDGET),
    ("ucbe(a=3.0)", "H=20.0", "Threshold", BERNOULLI | BUDGET),
    ("uniform(stop='certificate', distribution='student')", "rho=20.0", "BestArm", GAUSSIAN | DELTA),
]
HEARD: list[tuple[str, str, str, dict[str, Any]]] = [  # the same parameters, where they do change something
    ("evidence", "sigma=0.3", "BestArm", GAUSSIAN | DELTA),
    ("evidence(distribution='gaussian')", "sigma=0.9", "BestArm", BERNOULLI | DELTA),
    ("evidence", "rho=20.0", "BestArm", BERNOULLI | DELTA),
    ("evidence", "delta=0.3", "BestArm", GAUSSIAN | DELTA),
    ("track-and-stop", "boundary='kaufmann-koolen'", "TopK", GAUSSIAN | DELTA),
    ("top-two(proportions='fixed')", "beta=0.8", "BestArm", BERNOULLI | DELTA),
    ("top-two", "seed=7", "BestArm", BERNOULLI | DELTA),
    ("top-two(rule='ttts')", "seed=7", "Threshold", BERNOULLI | DELTA),
    ("lucb(widths='lil')", "c=1.3", "BestArm", BERNOULLI | DELTA),
    ("lucb", "epsilon=0.3", "TopK", BERNOULLI | DELTA),
    ("pi2", "delta=0.3", "TopK", BERNOULLI | DELTA),
    ("ugape", "sigma=0.3", "BestArm", BERNOULLI | DELTA),
    ("ugape(a=4.0)", "sigma=0.3", "BestArm", BERNOULLI | BUDGET),
    ("ugape", "scale=30.0", "BestArm", BERNOULLI | BUDGET),
    ("ucbe", "b=3.0", "Threshold", BERNOULLI | BUDGET),
]
PROBLEMS: dict[str, dict[str, Any]] = {
    "Threshold": {"tolerance": 0.04},
    "AllGood": {"epsilon": 0.28, "slack": 0.04},
    "TopK": {"k": 2, "epsilon": 0.05, "criterion": "each"},
    "BestArm": {"epsilon": 0.05},
}


def warned(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call returns, and what is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    return found, [str(one.message) for one in caught]


def played(agent: str, problem: str, kwargs: dict[str, Any]) -> tuple[Any, list[str]]:
    """What it pulls and answers in a few episodes, and what was warned of."""
    kwargs = kwargs | PROBLEMS[problem]
    found, said = warned(lambda: agents.evaluate(agent, problem, episodes=8, seed=5, env_kwargs=kwargs))
    rows = found.episodes[["total_pulls", "score"]].to_numpy().tolist()
    return (rows, found.pulls["pulls"].round(9).tolist()), said


def with_parameter(agent: str, parameter: str) -> str:
    return f"{agent[:-1]}, {parameter})" if agent.endswith(")") else f"{agent}({parameter})"


def told(agent: str, problem: str, kwargs: dict[str, Any]) -> list[str]:
    """What is warned of when an agent is made."""
    env_id, kwargs = f"bandit_envs/{problem}-v0", kwargs | PROBLEMS[problem]
    return warned(lambda: agents.make(agent, gym.make(env_id, **kwargs)))[1]


@pytest.mark.parametrize(("agent", "parameter", "problem", "kwargs"), [*IDLE, *HEARD])
def test_what_has_no_effect_is_warned_of(agent: str, parameter: str, problem: str, kwargs: dict[str, Any]) -> None:
    """Defect: such parameters were taken without a word."""
    name, _, value = parameter.partition("=")
    assert not any(f" {name}=" in one for one in told(agent, problem, kwargs))
    said = [one for one in told(with_parameter(agent, parameter), problem, kwargs) if f" {name}={value} has no" in one]
    assert len(said) == ((agent, parameter, problem, kwargs) in IDLE)


@pytest.mark.parametrize(("agent", "parameter", "problem", "kwargs"), [*IDLE[::7], *HEARD[1::7]])
def test_what_is_warned_of_changes_nothing(agent: str, parameter: str, problem: str, kwargs: dict[str, Any]) -> None:
    found, expected = (played(one, problem, kwargs)[0] for one in (with_parameter(agent, parameter), agent))
    assert (found == expected) == ((agent, parameter, problem, kwargs) in IDLE)


def test_what_an_oracle_is_told_is_no_choice_of_the_user() -> None:
    env = gym.make("bandit_envs/Threshold-v0", **BERNOULLI, **BUDGET)
    agents.make("ucbe", env, a=3.0)  # H has been filled in; warnings are errors here
    agents.make(agents.make("ucbe", env, a=3.0), env)
    agents.make("lucb", env.unwrapped.task.replace(problem="BestArm", parameters={}, delta=0.1))  # type: ignore[attr-defined]


def test_a_class_of_ones_own_may_say_what_is_idle() -> None:
    class Own(agents.Agent):
        name, solves = "own", ("Threshold",)

        def __init__(self, task: Any, width: float | None = None) -> None:
            super().__init__(task)

        def choose(self, observation: Any, state: Any) -> Any:
            return observation["pulls"].argmin(axis=1)

        def idle(self) -> dict[str, str]:
            return {"width": "as there are no bounds"}

    env = gym.make("bandit_envs/Threshold-v0", **BERNOULLI, **BUDGET)
    agents.make(Own, env)
    agents.make(Own, env, width=None)
    with pytest.warns(UserWarning, match="own: width=2.0 has no effect, as there are no bounds"):
        agents.make(Own, env, width=2.0)


# --- ocba-m ----------------------------------------------------------------------------------------------------------


def test_a_budget_that_ocba_m_spends_on_its_first_pulls() -> None:
    """Defect: up to 20 pulls of each arm it is uniform sampling, digit for digit, and was offered as a rival."""
    kwargs = BERNOULLI | {"budget": 80}
    expected, _ = played("uniform", "TopK", kwargs)
    found, said = played("ocba-m", "TopK", kwargs)
    assert found == expected
    assert "begins with n0=20 pulls of each of 4 arms, which takes the budget of 80: so it is uniform" in said[0]
    for agent, budget in (("ocba-m", 81), ("ocba-m(n0=5)", 80)):
        wanted, _ = played("uniform", "TopK", BERNOULLI | {"budget": budget})
        found, said = played(agent, "TopK", BERNOULLI | {"budget": budget})
        assert said == []
        assert budget == 81 or found != wanted
