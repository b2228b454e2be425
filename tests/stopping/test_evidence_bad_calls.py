"""Bad calls of evidence and certificates are refused by the names of what is wrong."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
from refusals import table

import agents
from bandit_envs import AllGood, BestArm, Feasible, SetProblem, Task, TopK

TWO = [5, 5], [0.5, 0.2]


def evidence(pulls: Any, mean: Any, problem: Any = None, **options: Any) -> Any:
    return lambda: (problem or BestArm()).evidence(pulls, mean, **options)


def level(**options: Any) -> Any:
    return lambda: BestArm().certified_level(*TWO, **options)


STUDENT: dict[str, Any] = {"distribution": "student", "variance": [1, 1]}
BINARY: dict[str, Any] = {"distribution": "bernoulli"}

test_evidence = table(
    {
        "no arrays": (evidence(5, 0.5), "pulls"),
        "infinite pulls": (evidence([math.inf, 1], [0.5, 0.2]), "pulls", "inf"),
        "too many pulls": (evidence([1e30, 1], [0.5, 0.2]), "pulls", "1e+30"),
        "an infinite variance": (evidence(*TWO, distribution="student", variance=[math.inf, 1]), "variance", "inf"),
        "a negative variance": (evidence(*TWO, distribution="student", variance=[-1.0, 1]), "variance", "-1.0"),
        "no variance": (evidence(*TWO, distribution="student"), "variance", "student"),
        "two dimensions": (evidence([5, 5], [[0.5, 0.1], [0.2, 0.1]]), "scalar", 2),
        "other shapes": (evidence([1, 2], [0.1, 0.2, 0.3]), "(2,)", "(3,)"),
        "complex means": (evidence([5, 5], [0.5j, 0.2]), "mean"),
        "an infinite mean": (evidence([1, 2], [math.inf, 0.2]), "mean", "inf"),
        "texts": (evidence([1, 1], ["a", "b"]), "mean", "'a'"),
        "a mean out of range": (evidence([1, 2], [1.5, 0.2], **BINARY), "distribution='bernoulli'", 0, 1, 1.5),
        "an unknown distribution": (evidence(*TWO, distribution="poisson"), "distribution", "poisson", "gaussian"),
        "no scale": (evidence(*TWO, sigma=0.0), "sigma", "0.0"),
        "too many answers": (evidence(*TWO, answer=[1, 1]), "BestArm", 1, 2),
        "an answer of another shape": (evidence(*TWO, answer=[1, 0, 0]), "answer", "(2,)"),
        "one arm": (evidence([1], [0.5]), 1),
        "sets of student arms": (evidence([1] * 4, [0.5] * 4, TopK(2, 0.1), **STUDENT | {"variance": [1] * 4}), "k", 1),
        "a band of Bernoulli arms": (evidence(*TWO, Feasible([[1]], [0.5], 0.1), **BINARY), "distribution='gaussian'"),
        "an unknown boundary": (level(boundary="none"), "boundary", "mixture", "kaufmann-koolen"),
        "no rho": (level(rho=0), "rho", 0),
        "a boundary without this distribution": (level(boundary="kaufmann-koolen", **STUDENT), "kaufmann-koolen"),
    }
)


def bounds(means: Any, problem: Any = None) -> list[Any]:
    """What asks a problem for bounds on a number of pulls."""
    one = problem or AllGood(0.1)
    asked = [lambda: one.characteristic_time(means), lambda: one.optimal_proportions(means, distribution="bernoulli")]
    return asked + ([] if problem else [lambda: one.lower_bound(means, 0.1)])


test_bounds = table(
    {
        f"{title}, {i}": (call, *words)
        for title, (means, problem, *words) in {
            "nan": ([0.5, math.nan], None, "means", "nan"),
            "inf": ([0.5, math.inf], None, "means", "inf"),
            "texts": (["a", "b"], None, "means", "'a'"),
            "a text": ("0.5", None, "means", "'0.5'"),
            "ragged": ([[0.5], [0.4, 0.3]], None, "means"),
            "three dimensions": ([[0.1, 0.2, 0.3], [0.4, 0.2, 0.3]], TopK(1), "scalar", 3),
            "one arm": ([0.5], TopK(2, 0.05, "each"), 1),
        }.items()
        for i, call in enumerate(bounds(means, problem))
    }
)


def task(problem: str = "BestArm", **more: Any) -> Task:
    kwargs: dict[str, Any] = {"delta": 0.1, "distribution": "gaussian", "support": None, "sigma": 1.0} | more
    return Task(problem, kwargs.pop("parameters", {}), K=3, **kwargs)


COINS: dict[str, Any] = {"distribution": "bernoulli", "support": (0.0, 1.0), "sigma": 0.5}
THRESHOLD: dict[str, Any] = {"parameters": {"threshold": 0.5}, **COINS}


def sure(name: Any = "lsa", problem: str = "Threshold", also: Any = None, **given: Any) -> Any:
    """Make an agent that stops by a certificate."""
    rules = (THRESHOLD if problem == "Threshold" else {}) | (also or {})
    return lambda: agents.make(name, task(problem, **rules), **{"stop": "certificate"} | given)


class Silent(SetProblem):
    """A problem that says nothing of evidence."""

    name = "Silent"

    def margin(self, means: Any) -> Any:
        return means


def features() -> Any:
    return gym.make("bandit_envs/Threshold-v0", observation="features", delta=0.1)


def twice() -> Any:
    return agents.make("uniform", task(), stop="certificate")


def named() -> Any:
    return agents.make("lucb(stop='certificate')", task())


test_stopping_by_a_certificate = table(
    {
        "another word": (sure(stop="sure"), "stop", "certificate", "'sure'"),
        "an unknown boundary": (sure(boundary="none"), "boundary", "mixture"),
        "no rho": (sure(rho=0), "rho", 0),
        "student arms that are 0 or 1": (sure(distribution="student"), "distribution='student'", "Gaussian"),
        "delta 1": (sure(delta=1), "delta", 1),
        "a boundary without a certificate": (sure(stop=None, boundary="mixture"), "lsa", "boundary"),
        "an unknown parameter": (sure(beta=1), "lsa", "beta"),
        "rho of a boundary without": (sure(rho=3, boundary="kaufmann-koolen"), "rho", "mixture", "kaufmann-koolen"),
        "no delta": (sure(also={"delta": None}), "lsa(stop='certificate')", "delta"),
        "features": (lambda: agents.make("lsa", features(), stop="certificate"), "statistics", "features"),
        "no evidence": (sure("uniform", f"{__name__}:Silent"), "Silent", "evidence"),
        "an agent that is certified": (lambda: agents.make(twice(), task(), stop="certificate"), "stop", "certificate"),
        "one by its name": (lambda: agents.make(named(), task(), stop="certificate"), "stop"),
        "told twice": (sure("uniform(stop='certificate')", "BestArm"), "stop", "twice"),
        "told twice, none": (sure("uniform(stop='certificate')", "BestArm", stop=None), "stop", "twice"),
    }
)

ODD: dict[str, tuple[Any, ...]] = {
    "boundary": ({"boundary": "half"}, {}, "boundary", "'half'"),
    "distribution": ({"distribution": "poisson"}, {}, "distribution", "'poisson'"),
    "rho": ({"rho": 0}, {}, "rho", 0),
    "sigma": ({"sigma": -1}, {}, "sigma", -1),
    "student": ({"distribution": "student", "boundary": "kaufmann-koolen"}, {}, "kaufmann-koolen"),
    "no delta": ({}, {"delta": None, "max_pulls": 100}, "delta"),
    "a scale that is too small": ({"sigma": 0.2}, COINS, "sigma", 0.5, 0.2),
    "also of normal arms": ({"sigma": 0.2, "distribution": "gaussian"}, COINS, "sigma", 0.5, 0.2),
}


def deciding(name: str, given: Any, also: Any = None) -> Any:
    return lambda: agents.make(name, task(**also or {}), **given)


test_agents_that_decide_by_evidence = table(
    {
        f"{name}, {title}": (deciding(name, given, also), *words, *([name] if title == "no delta" else []))
        for name in ("evidence", "track-and-stop", "top-two")
        for title, (given, also, *words) in ODD.items()
    }
    | {
        "0 and 1 alone": (deciding("evidence", BINARY), "distribution='bernoulli'"),
        "Gaussian arms alone": (
            deciding("evidence", {"distribution": "student"}, {"distribution": "uniform"}),
            "distribution='student'",
        ),
    }
)


def needs_independence(distribution: str) -> Any:
    facts: dict[str, Any] = {"support": None, "distribution": "own", "sigma": 0.5}
    problem = Task("Feasible", {"A": [[1.0, 1.0]], "b": [1.0]}, K=3, D=2, **facts).make_problem()
    return lambda: problem.certifier(3, 2, distribution=distribution, dependent=True)


test_dependent_coordinates = table({one: (needs_independence(one), "independent") for one in ("bernoulli", "student")})
