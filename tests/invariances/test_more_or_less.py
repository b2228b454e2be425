"""The same decisions in other units and places, and costs that move in the right direction.

Units are powers of two, which are exact in floating point: every decision is the same to the bit. Mean costs are
compared on the same 200 episodes. A direction is wrong where the mean difference is 4.75 of its standard errors on the
wrong side (false alarm: 1e-6 for each comparison).
"""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

import agents
from bandit_envs import from_table
from bandit_envs.stopping import arm_penalty, common

MEANS = (1.0, 0.75, 0.5, 0.25, -0.25)
LENGTHS: dict[str, dict[str, float]] = {
    "Threshold": {"threshold": 0.375, "tolerance": 0.125},
    "AllGood": {"epsilon": 0.375, "slack": 0.5},
    **dict.fromkeys(("TopK", "BestArm"), {"epsilon": 0.375}),
    "Feasible": {"tolerance": 0.125},
}
CERTIFIED = ("evidence(", "track-and-stop(", "top-two(", "uniform(stop='certificate', ")


def setting(problem: str, unit: float = 1.0, place: float = 0.0, **changed: Any) -> dict[str, Any]:
    """Gaussian arms, all in such a unit and so far from 0, and what is changed."""
    means, lengths = changed.pop("means", MEANS), {name: x * unit for name, x in LENGTHS[problem].items()}
    if "threshold" in lengths:
        lengths["threshold"] += place
    arms = [[m * unit + place, 0.5 * m * unit + place] if problem == "Feasible" else m * unit + place for m in means]
    bounds = [0.375 * unit + place, 0.125 * unit - place]
    more = {"TopK": {"k": 2}, "Feasible": {"A": [[1, 0], [0, -1]], "b": bounds}}.get(problem, {})
    given = {"distribution": "gaussian", "mean": arms, "sd": changed.pop("sd", 1.0) * unit}
    return {"instance": given, "shuffle_arms": False} | lengths | more | changed


def played(agent: Any, problem: str, episodes: int, *where: float, **changed: Any) -> Any:
    return agents.evaluate(agent, problem, episodes=episodes, env_kwargs=setting(problem, *where, **changed))


def decided(agent: Any, problem: str, *where: float, **rules: Any) -> dict[str, Any]:
    """What agents decide in four episodes, by their names."""
    found = played(agent, problem, 4, *where, **rules)
    rows, pulls = found.episodes.groupby("agent"), found.pulls.groupby("agent")["pulls"]
    columns = ["total_pulls", "correct"]
    return {
        name: [rows.get_group(name)[columns].values.tolist(), pulls.get_group(name).tolist()] for name in rows.groups
    }


def same(agent: str, problem: str, unit: float, other: Any = None, place: float = 0.0, **rules: Any) -> bool:
    """Whether the agent, or `other` in its place, decides the same in a unit, and with all means so far from 0."""
    one, two = decided(agent, problem, **rules), decided(other or agent, problem, unit, place, **rules)
    return [*one.values()] == [*two.values()]


@pytest.mark.parametrize("problem", LENGTHS)
def test_decisions_in_other_units(problem: str) -> None:
    names, asked = set(agents.names(problem)) - {"fareast"}, set()
    for unit, rules in ((2.0**-10, {"budget": 60}), (64.0, {"delta": 0.1, "max_pulls": 400})):
        env, fit = gym.make(f"bandit_envs/{problem}-v0", actions="full", **setting(problem, **rules)), list[str]()
        for name in names:
            with contextlib.suppress(ValueError):  # the agent is of the other rule, or of Bernoulli arms
                agents.make(name, env)
                fit.append(name)
        asked |= {*fit}
        assert decided(fit, problem, unit, 8 * unit, **rules) == decided(fit, problem, **rules)
    assert names - asked <= {"opt-kg", "dp-index"}
    if problem == "Threshold":  # a constant that has a unit
        assert not same("lsa", problem, 64.0, f"lsa(alpha={1.35 * 64.0**2})", budget=60)


@pytest.mark.parametrize("name", ["top-two", "st2"])
def test_units_of_a_share_of_the_best(name: str) -> None:
    """It does not depend on the unit, but on the place."""
    ratio = {"epsilon": 0.25, "slack": 0.125, "multiplicative": True, "delta": 0.1, "max_pulls": 400}
    assert same(name, "AllGood", 4.0, **ratio)
    assert not same(name, "AllGood", 1.0, place=1.0, **ratio)


def test_the_unit_of_fareast() -> None:
    rules = {"sd": 0.125, "delta": 0.1, "max_pulls": 40_000}
    assert same("fareast", "AllGood", 64.0, "fareast(unit=64)", **rules)
    with pytest.warns(UserWarning, match="say unit=8"):
        assert not same("fareast", "AllGood", 64.0, **rules)


@pytest.mark.parametrize("name", CERTIFIED)
def test_a_centre_moves_along(name: str) -> None:
    def pulls(place: float, unit: float, centre: float) -> Any:
        agent, means = f"{name}distribution='student', centre={centre})", [m + place for m in (2.0, 0.0, -1.0)]
        return played(agent, "BestArm", 4, unit, means=means, delta=0.1, max_pulls=9000).episodes["total_pulls"]

    home = pulls(0.0, 1.0, 0.0)
    assert pulls(64.0, 1.0, 64.0).equals(home)
    assert pulls(64.0, 64.0, 4096.0).equals(home)
    assert home.mean() < pulls(100.0, 1.0, 0.0).mean() < 3 * home.mean()  # before: 5 times as many


N, DELTA = 4000, 0.1  # more than 482 of 4000 have a probability of 1e-5


def wrong_paths(penalty: Any) -> int:
    """How many of N paths of an arm, far from its centre and in a small unit, exclude its own mean at some time."""
    noise, found = np.random.default_rng(3).normal(size=(N, 60)) * 1e-3, np.zeros(N, bool)
    for n in (2, 3, 4, 6, 11, 23, 60):
        m, v = noise[:, :n].mean(axis=1), noise[:, :n].var(axis=1)
        prices = [penalty(float(n), 50.0 + a, b) for a, b in zip(m.tolist(), v.tolist(), strict=True)]
        found |= 0.5 * n * np.log1p(m * m / v) - prices > math.log(1 / DELTA)
    return int(found.sum())


def test_a_certificate_far_from_its_centre() -> None:
    numbers, limit = common("student", sigma=1.0), stats.binom.isf(1e-5, N, DELTA)
    assert wrong_paths(lambda n, m, v: arm_penalty(numbers, n, m, v)) <= limit
    assert wrong_paths(lambda n, m, v: 0.5 * math.log(n)) > limit  # of the best prior, without a weight


def less(one: Any, other: Any) -> bool:
    """Whether one is less than the other on average, significantly."""
    difference = np.asarray(one, float) - np.asarray(other, float)
    return bool(difference.mean() < -4.75 * difference.std(ddof=1) / math.sqrt(len(difference)))


TOLERANCES = {"Threshold": "tolerance", "AllGood": "slack", "TopK": "epsilon", "BestArm": "epsilon"}


@pytest.mark.parametrize("problem", TOLERANCES)
@pytest.mark.parametrize("name", CERTIFIED)
def test_more_or_less(name: str, problem: str) -> None:
    """More tolerance costs no more; less delta costs no less, and errs no more; nor is another arm free."""

    def of(**changed: Any) -> Any:
        return played(f"{name})", problem, 200, **{"sd": 0.25, "delta": 0.1, "max_pulls": 10**5} | changed).episodes

    some, careful, exact = of(), of(delta=0.01), of(**{TOLERANCES[problem]: 0.0625})
    more = of(means=(*MEANS, 0.25))  # the twin of an arm that is not among the best two
    assert not any(less(one["total_pulls"], some["total_pulls"]) for one in (careful, exact, more))
    assert not less(~some["correct"], ~careful["correct"])
    assert less(some["total_pulls"], careful["total_pulls"])  # the check can fail


@functools.cache
def cells(epsilon: float, delta: float = 0.05, twins: int = 0) -> Any:
    """Cells of a table of 300 questions that are of different difficulty, and the same for all."""
    generator = np.random.default_rng(5)
    ease = generator.normal(size=(300, 1)) + np.linspace(0.8, -1.2, 8)
    table = (ease + generator.normal(size=(300, 8)) > 0).astype(float)
    instance = from_table(np.column_stack([table, *[table[:, 4]] * twins]), shared=True)
    kwargs = {"instance": instance, "epsilon": epsilon, "delta": delta}
    return agents.evaluate("paired-elimination", "BestArm", episodes=200, env_kwargs=kwargs).episodes["total_pulls"]


def test_more_or_less_of_a_table() -> None:
    assert not less(cells(0.0, 0.01), cells(0.0))
    assert less(cells(0.0), cells(0.0, 0.01))  # the check can fail
    assert not less(cells(0.0, twins=1), cells(0.0))
    for small, large in ((0.0, 0.02), (0.02, 0.05), (0.05, 0.12)):
        assert not less(cells(small), cells(large)), (small, large)
