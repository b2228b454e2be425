"""Bad calls of problems, tasks and measures: what the message must name."""

from __future__ import annotations

import functools
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused, table

from bandit_envs import (
    AllGood,
    BestArm,
    Feasible,
    Problem,
    SetProblem,
    Task,
    Threshold,
    TopK,
    register_instance,
    register_problem,
)
from bandit_envs.instances.lookup import find
from bandit_envs.kernels import integer
from bandit_envs.problems import feasible_measures as fm
from bandit_envs.problems import threshold_measures as tm

MEANS = [0.1, 0.4, 0.6, 0.9]
HARD = {"T": 2000, "K": 20, "D": 5}
WRONG: Any = None  # of a type that no annotation allows


def task(problem: Any = "Threshold", parameters: Any = None, **more: Any) -> Task:
    return Task(problem, {} if parameters is None else parameters, **{"K": 5} | more)


test_problems = table(
    {
        "threshold None": (lambda: Threshold(WRONG), "threshold", None),
        "k 2.0": (lambda: TopK(2.0), "k", 2.0),  # type: ignore[arg-type]
        "k True": (lambda: TopK(True), "k", True),
        "a zero row": (lambda: Feasible([[0, 0]], [1]), "A", "[0.0, 0.0]"),
        "b None": (lambda: Feasible([[1, 0]], None), "b"),
        "Feasible's tolerance": (lambda: Feasible([[1]], [1], -1), "tolerance", -1, "[0, inf)"),
        "normalise": (lambda: Feasible([[1]], [1], 0, 1), "normalise", 1),  # type: ignore[arg-type]
        "a best mean below 0": (lambda: AllGood(0.1, True).truth([-1.0, -2.0]), -1),
        "a best mean of 0": (lambda: AllGood(0.1, True).truth([0.0, -1.0]), 0),
        "no arm of 2": (lambda: TopK(2).score([False] * 4, MEANS), "k", 2, 0),
        "3 arms of 2": (lambda: TopK(2).score([True, True, True, False], MEANS), "k", 2, 3),
        "a short answer": (lambda: Threshold().score([True, True], MEANS), 4, "(2,)"),
        "a long answer": (lambda: AllGood().score([True] * 5, MEANS), 4, "(5,)"),
        "an answer that is a flag": (lambda: BestArm().score(True, MEANS), 4, "()"),
        "k arms of k": (lambda: TopK(3).certifier(3), "K", 4, 3),
        "a range without its bound": (
            lambda: TopK(1).certificate([5, 5], [0.2, 0.8], [0.1, 0.1], bounds="hoeffding", bernstein_range=0.5),
            *("bernstein_range", 0.5, "'tightest'", "'hoeffding'"),
        ),
        "a multiplicative bound": (lambda: AllGood(0.2, True).fareast_bound([1.0, 0.5], 0.1), "AllGood"),
        "a bound with slack": (lambda: AllGood(0.2, slack=0.1).fareast_bound([1.0, 0.5], 0.1), "AllGood", "slack"),
        "delta of a bound": (lambda: AllGood(0.2).fareast_bound([1.0, 0.5], 0.125), "delta", "(0, 0.125)", 0.125),
        "c3": (lambda: AllGood(0.2).fareast_bound([1.0, 0.5], 0.1, c3=0), "c3"),
        "K of chen2017": (lambda: find("chen2017-uniform(K=1000)"), "K", 1000),
        "n of chen2017": (lambda: find("chen2017-uniform(n=1)"), "n", 1),
        "arms of kalyanakrishnan2010": (lambda: find("kalyanakrishnan2010(n=2)"), "n", 2),
        "sd of kalyanakrishnan2010": (lambda: find("kalyanakrishnan2010(sd=0)"), "sd", 0),
        "no integer": (lambda: integer("n", 0.5), "n", "(-inf, inf)", 0.5),
    }
)

test_tasks = table(
    {
        "another's parameter": (lambda: task(parameters={"k": 2}), "Threshold", "threshold", "tolerance", "'k'"),
        "parameters that are none": (lambda: task(parameters=5), "parameters"),
        "K 0": (lambda: task(K=0), "K", 0),
        "D 0": (lambda: task(D=0), "D", 0),
        "support": (lambda: task(support=(1, 0)), "support", "(1, 0)"),
        "sigma 0": (lambda: task(sigma=0), "sigma", 0),
        "distribution": (lambda: task(distribution=3), "distribution", 3),
        "pull": (lambda: task(pull="coordinate"), "'coordinate'", 2),
        "replaced": (lambda: task().replace(budget=0), "budget", 0),
        "json, a list": (lambda: Task.from_json("[]"), "JSON"),
        "json of a newer version": (
            lambda: Task.from_json('{"problem": "Threshold", "parameters": {}, "K": 3, "colour": 1}'),
            "'colour'",
        ),
        "no problem in a module": (lambda: Task("math:pi", {}, K=3), "'math:pi'", "bandit_envs.Problem", math.pi),
    }
)


def made(instance: Any) -> Any:
    return gym.make("bandit_envs/Threshold-v0", instance=instance)


def five() -> int:
    return 5


test_instances = table(
    {
        "a sampler's": (lambda: made("sampler(distribution='gaussian', sd=3)"), "'sd'", "spread"),
        "no name in a module": (lambda: made("math:nothing"), "'math:nothing'"),
        "no function": (lambda: made("math:pi"), "'math:pi'", math.pi),
        "a number": (lambda: made(five), "'five'", 5),
        "no argument": (lambda: made(lambda n: five()), "'<lambda>'", "'n'"),
        "a dict": (lambda: made("builtins:dict"), "'builtins:dict'", "{}"),
        "an error": (lambda: made("builtins:iter"), "'builtins:iter'", "TypeError"),
        "an exit": (lambda: made("sys:exit"), "'sys:exit'", "SystemExit"),
        "one of ours": (lambda: register_instance("tao2019-1", five), "'tao2019-1'"),
        "5": (lambda: register_instance("mine", 5), "'mine'", 5),  # type: ignore[arg-type]
    }
)

OF_P = (tm.phi, tm.optimal_allocation, tm.optimal_error, tm.optimal_error_integer)
OF_LAMBDA = (tm.lambda_level, tm.lambda_allocation, tm.regret_bound)
GAPS = {"shape (0,)": [], "shape ()": 0.1, "shape (1, 1)": [[0.1]], "-0.2": [0.1, -0.2], "nan": [math.nan]}
RANGES: dict[str, tuple[Any, ...]] = {"inf": (lambda: tm.hardness([0.1, math.inf]), "inf")}
RANGES |= {f"hardness {word}": (lambda gaps=gaps: tm.hardness(gaps), word) for word, gaps in GAPS.items()}
BOTH: list[tuple[Any, ...]] = [([0.1, -0.2], 1000, {}, -0.2)]  # gaps, budget, more, what is named
CALLS = {f: list(BOTH) for f in (*OF_P, *OF_LAMBDA)}
for f in OF_P:
    CALLS[f] += [([0.1], budget, {}, "budget", budget) for budget in (-1, math.nan, math.inf)]
    CALLS[f] += [([0.1], 10, {"c": c}, "c", c) for c in (0, math.inf)]
for f in OF_LAMBDA:
    CALLS[f] += [([0.1, 0.2], budget, {}, "budget", budget, 80) for budget in (79.9, math.nan)]
    CALLS[f] += [([0.1], 1000, {"alpha": alpha}, "alpha", alpha) for alpha in (0, math.nan)]
    CALLS[f] += [([0.1, 0.2], 161, {"alpha": 0.5}, "budget", 161, 162), ([0.1, 1.5], 1000, {}, 1.5)]
RANGES |= {
    f"{f.__name__} {gaps} {budget} {more}": (functools.partial(f, gaps, budget, **more), *words)
    for f, rows in CALLS.items()
    for gaps, budget, more, *words in rows
}
test_threshold_measures = table(
    RANGES
    | {
        "a part of a pull": (lambda: tm.optimal_error_integer([0.1], 10.5), "budget", 10.5),  # type: ignore[arg-type]
        "a": (lambda: tm.variable_confidence(0, 1), "a", 0),
        "b": (lambda: tm.variable_confidence(1, -1), "b", -1),
    }
)

test_feasible_measures = table(
    {
        "margins below 0": (lambda: fm.hardness([-0.1, 1]), "margins"),
        "margins of rows": (lambda: fm.hardness([[1.0]]), "margins"),
        "sd": (lambda: fm.gaussian_norm(0), "sd", "(0, inf)", 0),
        "H": (lambda: fm.log_lower_bound(H=0, **HARD), "H"),
        "T": (lambda: fm.log_lower_bound(H=1, **HARD | {"T": 19}), "T", 19),
        "T of apt": (lambda: fm.log_upper_bound_apt(H=1, R=1, **HARD | {"T": 39}), "T", 40, 39),
        "R": (lambda: fm.log_upper_bound_apt(H=1, R=-1, **HARD), "R"),
        "a of ucbe": (lambda: fm.log_upper_bound_ucbe(a=1376, H=1, R=1, **HARD), "a", "[0, 1375]", 1376),
        "H_2": (lambda: fm.log_upper_bound_sar(H_2=math.inf, R=1, **HARD), "H_2"),
        "T of all": (lambda: fm.log_minimax_bound(H=900, R=1, **HARD), "T", 2000),
    }
)


def kind(base: type[Problem], **members: Any) -> Any:
    return type("Own", (base,), members)


class Plain(SetProblem):
    """Arms above one half."""

    name = "Plain"

    def margin(self, means: Any) -> Any:
        return np.asarray(means) - 0.5


def level(self: Any, level: float = 0.5) -> None:
    self.level = level


def spent(self: Any, budget: int = 3) -> None:
    self.budget = budget


@pytest.mark.parametrize("name", ["top-k", "BESTARM", "Top_K", "TopK-v0", "allgoodv3"])
def test_a_problem_of_ones_own_takes_no_short_form_of_ours(name: str) -> None:
    """Defect: "threshold" then stood for the user's problem in `evaluate` and on the command line."""
    with refused(f"'{name}'"):
        register_problem(kind(Plain, name=name))


test_classes = table(
    {
        "no margin": (lambda: register_problem(kind(SetProblem, name="Unfinished")), "Own", "margin"),
        "not explained": (lambda: register_problem(kind(Plain, __init__=level)), "parameters", "'level'"),
        "version": (lambda: register_problem(kind(Plain, version=-1)), "version", -1),
        "no class": (lambda: register_problem(5), "class", 5),  # type: ignore[arg-type]
        "a keyword": (
            lambda: register_problem(kind(Plain, __init__=spent, parameters={"budget": "Of pulls."})),
            "'budget'",
        ),
        "defaults in a list": (lambda: register_problem(kind(Plain, defaults=[("budget", 3)])), "defaults"),
        "defaults by number": (lambda: register_problem(kind(Plain, defaults={3: 4})), "defaults"),
        "metrics in a list": (lambda: register_problem(kind(Plain, metric_types=["regret"])), "metric_types"),
        "metrics 3": (lambda: register_problem(kind(Plain, metric_types=3)), "metric_types", 3),
        "a metric's type": (lambda: register_problem(kind(Plain, metric_types={"regret": str})), "'regret'"),
        "a metric of None": (lambda: register_problem(kind(Plain, metric_types={"regret": None})), "'regret'"),
    }
)


class Apart(Plain):
    """A problem with a name of the module."""

    name = "Apart"


def test_a_class_that_is_not_there() -> None:
    assert task(f"{__name__}:Apart").make_problem() == Apart()
    with refused(f"'{__name__}:Missing'"):
        task(f"{__name__}:Missing")


def selfish() -> Any:
    """An instance that is made of itself, by way of an environment."""
    return made("selfish").unwrapped.instance


ROUND = {"selfish": (selfish, ["'selfish'"]), "hen": (lambda: {"egg": {}}, ["'hen'", "egg"])}


@pytest.mark.parametrize("name", ROUND)
def test_instances_whose_functions_go_wrong(name: str) -> None:
    register_instance("egg", lambda: {"hen": {}})
    for title, (function, _) in ROUND.items():
        register_instance(title, function)
    with refused(*ROUND[name][1]):
        made(name)
