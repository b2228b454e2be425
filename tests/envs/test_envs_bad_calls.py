"""Bad calls of arms, environments, tables, sets and histories: what the message must name."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused, table
from rollouts import simulator

from bandit_envs import (
    Arms,
    Bernoulli,
    Categorical,
    Gaussian,
    Instance,
    PureExplorationEnv,
    Resampled,
    Sampler,
    Tabulated,
    Task,
    Uniform,
    from_table,
    register_distribution,
)
from bandit_envs.envs import tally
from bandit_envs.instances import arms, lookup
from bandit_envs.kernels import rng
from bandit_envs.kernels.geometry import Polyhedron

HUGE, INF, NAN = 10**400, np.inf, np.nan
WRONG: Any = None  # of a type that no annotation allows
ZERO_ONE = {"distribution": "gaussian", "mean": [0, 1]}

NUMBERS: dict[str, tuple[Any, ...]] = {
    "None": (None, None),
    "nan": ([0.1, NAN], "nan", "[1]"),
    "inf": ([INF, 0.1], "inf", "[0]"),
    "a number": (0.5, "()"),
    "nothing": ([], "(0,)"),
}
test_means = table({title: (partial(Gaussian, value), "mean", *words) for title, (value, *words) in NUMBERS.items()})

test_arms = table(
    {
        "a mean above 1": (lambda: Bernoulli([0.1, 1.5]), "[0, 1]", 1.5),
        "a mean below 0": (lambda: Bernoulli([0.1, -0.5]), "[0, 1]", -0.5),
        "sd below 0": (lambda: Gaussian([0, 1], [1, -2]), "sd", -2),
        "sd of another shape": (lambda: Gaussian([0, 1], [1, 2, 3]), "sd", "(2,)", "(3,)"),
        "width below 0": (lambda: Uniform([0, 1], -1), "width", -1),
        "one value": (lambda: Categorical([1], [[1], [1]]), 2),
        "values that fall": (lambda: Categorical([2, 1], [[1, 1], [1, 1]]), "increasing"),
        "columns": (lambda: Categorical([1, 2], [[1, 1, 1], [1, 1, 1]]), 2, "(2, 3)"),
        "a weight below 0": (lambda: Categorical([1, 2], [[1, -1], [1, 1]]), -1),
        "no weight": (lambda: Categorical([1, 2], [[1, 1], [0, 0]]), 1, 0),
        "no rows": (lambda: Resampled([]), "one arm", "[]"),
        "rows 5": (lambda: Resampled(WRONG), "one arm"),
        "two dimensions": (lambda: Resampled([[1, 2], [[1, 2]]]), "[(), (2,)]"),
        "all alike": (lambda: Resampled([[3, 3], [3]]), 3.0),
        "one quantile": (lambda: Tabulated([[0], [1]]), "quantiles", "(2, 1)"),
        "quantiles that fall": (lambda: Tabulated([[0, 1], [1, 0]]), "quantiles", "fall"),
        "quantiles alike": (lambda: Tabulated([[0, 0], [1, 1]]), "quantiles"),
        "no distribution": (lambda: arms.from_dict({"mean": [0, 1]}), "'distribution'", "'bernoulli'", None),
        "another distribution": (lambda: arms.from_dict({"distribution": "poisson"}), "'distribution'", "'poisson'"),
        "no mean": (lambda: arms.from_dict({"distribution": "gaussian"}), "gaussian", "'mean'"),
        "another's": (lambda: arms.from_dict(ZERO_ONE | {"width": 2}), "'width'", "sd"),
        "another's alone": (lambda: arms.from_dict({"distribution": "gaussian", "width": 2}), "'width'"),
        "no module": (lambda: arms.from_dict({"distribution": "no_such:Distribution"}), "'no_such:Distribution'"),
        "no Arms": (
            lambda: arms.from_dict({"distribution": "bandit_envs:Task"}),
            "'bandit_envs:Task'",
            "bandit_envs.Arms",
        ),
        "distribution of a sampler": (lambda: Sampler("poisson"), "distribution", "'bernoulli'", "'poisson'"),
        "distribution without pack": (lambda: Sampler("bandit_envs:Tabulated"), "pack", "'bandit_envs:Tabulated'"),
        "no class": (lambda: register_distribution(WRONG), "distribution"),
        "no name": (lambda: register_distribution(type("Own", (Arms,), {"code": 0})), "distribution"),
        "no code": (lambda: register_distribution(type("Own", (Arms,), {"distribution": "own"})), "Own.code"),
        "ours": (lambda: register_distribution(type("Own", (Arms,), ZERO_ONE | {"code": 1})), "'gaussian'"),
        "names": (lambda: Instance(Bernoulli([0.1, 0.2]), arm_names=("a", "b", "c")), "arm_names", 2, 3),
        "names in a list": (lambda: Instance(Bernoulli([0.1, 0.2]), arm_names=WRONG or ["a"]), "arm_names"),
        "a root": (lambda: rng.root_key(-1), -1),
        "a root 1.0": (lambda: rng.root_key(WRONG or 1.0), 1.0),
        "an agent's seed": (lambda: rng.agent_uniforms(np.ones(1, int), np.ones(1, int), seed=2**32), 2**32),
    }
)


def filled(code: Any, parameters: Any = ((0.0, 1.0),) * 3, data: Any = None, D: int = 1, **more: Any) -> Arms:
    """Three arms of a distribution of one's own with this code and table."""
    own: Arms = object.__new__(type("Mine", (Arms,), {"distribution": "mine", "code": code}))
    given = {"means": np.zeros(3) if D == 1 else np.zeros((3, D)), "variances": 1.0, "support": None, "sigma": 1.0}
    own.fill(parameters=parameters, data=data, **given | more)
    return own


B, G, U, C, R, T = (kind.code for kind in (Bernoulli, Gaussian, Uniform, Categorical, Resampled, Tabulated))
TABLES: dict[str, tuple[Any, ...]] = {  # code, parameters, data, D, and what is named
    "code 8": (8, [[0.0]] * 3, None, 1, "'mine'", 8),
    "code True": (True, [[0.0, 1.0]] * 3, None, 1, True),
    "columns of B": (B, [[0.5, 0.5]] * 3, None, 1, "(3, 1)", "(3, 2)"),
    "B above 1": (B, [[1.5]] * 3, None, 1, "probabilities", "[0, 1]"),
    "B nan": (B, [[NAN]] * 3, None, 1, "probabilities", "[0, 1]"),
    "columns of G": (G, [[0.0]] * 3, None, 1, "(3, 2)", "(3, 1)"),
    "C ends below 1": (C, [[0.5, 0.9]] * 3, [1, 2], 1, "probabilities", 1),
    "C of two dimensions": (C, [[0.5, 1.0]] * 3, [[1, 2], [3, 4]], 2, "scalar"),
    "R beyond its data": (R, [[0, 2], [1, 1], [1, 2]], [1, 2], 1, 2, "data"),
    "R before its data": (R, [[0, 2], [-1, 1], [0, 2]], [1, 2], 1, 2, "data"),
    "G nan": (G, [[0.0, NAN]] * 3, None, 1, "parameters", "nan"),
    "G below 0": (G, [[0.0, -1.0]] * 3, None, 1, "deviations", -1),
    "U below 0": (U, [[0.0, -1.0]] * 3, None, 1, "widths", -1),
    "C nan": (C, [[NAN, NAN, 1.0]] * 3, [0, 1, 2], 1, "probabilities"),
    "C falls": (C, [[0.5, 0.2, 1.0]] * 3, [0, 1, 2], 1, "probabilities"),
    "C above 1 before its end": (C, [[1.5, 2.0]] * 3, [0, 1], 1, "probabilities", 1.5),
    "C inf": (C, [[0.5, 1.0]] * 3, [0, INF], 1, "data", "inf"),
    "T falls": (T, [[0.0, 1.0, 0.5]] * 3, None, 1, "quantiles"),
}


@pytest.mark.parametrize("title", TABLES)
def test_a_table_that_does_not_fit_its_distribution_is_refused_before_any_kernel_reads_it(title: str) -> None:
    code, parameters, data, D, *words = TABLES[title]
    with refused(*words):
        filled(code, parameters, data, D)
    forged = filled(G, [[0.0] * (2 * D)] * 3, D=D)  # and where `fill` is gone round
    type(forged).code = code
    forged.parameters = np.array(parameters, float)
    forged.data = np.zeros((1, D)) if data is None else np.array(data, float).reshape(-1, D)
    with refused(*words):
        simulator(forged, 2)


test_fill = table(
    {
        "sigma 0": (lambda: filled(G, sigma=0), "sigma", 0),
        "support 5": (lambda: filled(G, support=5), "support", 5),
        "no arm": (lambda: filled(G, means=np.empty(0)), "means"),
        "variance below 0": (lambda: filled(G, variances=-1.0), "variances", 0),
        "variances of two": (lambda: filled(G, variances=[1.0, 2.0]), "variances"),
        "variance inf": (lambda: filled(G, variances=INF), "variances"),
        "T above its support": (lambda: filled(T, [[0.0, 1.5]] * 3, support=(0.0, 1.0)), "support"),
        "T below its support": (lambda: filled(T, [[-0.5, 1.0]] * 3, support=(0.0, 1.0)), "support"),
    }
)


def packed(change: Callable[[Any], Any]) -> dict[str, Any]:
    return {"pack": staticmethod(lambda means, spread: change(Gaussian.pack(means, spread)))}


def of_means(make: Callable[..., Any]) -> dict[str, Any]:
    return {"with_means": classmethod(lambda cls, means, spread: make(cls, means))}


ODD_DISTRIBUTIONS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "one episode": (packed(lambda found: found[:1]), ["tables", "(40, 10)"]),
    "one axis less": (packed(lambda found: found[0]), ["tables", "(10, 2)"]),
    "a list": (packed(lambda found: found.tolist()), ["tables"]),
    "an error": (packed(lambda found: {}["mean"]), ["pack", "KeyError", "'mean'"]),
    "no static method": ({"pack": lambda self, means, spread: 1}, ["pack", "TypeError", "'spread'"]),
    "a range 3": ({"mean_range": 3}, ["mean_range", 3]),
    "a range that falls": ({"mean_range": (1, 0)}, ["mean_range", "(1, 0)"]),
    "no arms": (of_means(lambda cls, means: means), ["with_means", "Odd"]),
    "other arms": (of_means(lambda cls, means: Gaussian(means)), ["with_means", "Odd"]),
    "other means": (of_means(lambda cls, means: cls(means + 1)), ["with_means", "means"]),
    "fewer arms": (of_means(lambda cls, means: cls(means[1:])), ["with_means", "means"]),
    "no argument": (of_means(lambda cls, means: cls()), ["with_means", "TypeError"]),
}


@pytest.mark.parametrize("title", ODD_DISTRIBUTIONS)
def test_a_distribution_for_samplers_that_goes_wrong_is_named(title: str) -> None:
    changes, words = ODD_DISTRIBUTIONS[title]
    register_distribution(type("Odd", (Gaussian,), {"distribution": "odd-law", **changes}))
    with refused("'odd-law'", *words):
        envs = gym.make_vec("bandit_envs/TopK-v0", 40, instance="sampler(distribution='odd-law')", k=2, budget=40)
        envs.reset(seed=0)


SLAB = np.array([[1.0, 2.0], [-1.0, -2.0]])
TRIANGLE = np.array([[1.0, 1.0], [-2.0, 1.0], [1.0, -3.0]])  # three normals that span the plane
CUBE = np.vstack([np.eye(3), -np.eye(3)])
test_polyhedra = table(
    {
        "A of one axis": (lambda: Polyhedron([1, 2], [1, 2]), "A", "(M, D)", "(2,)"),
        "no row": (lambda: Polyhedron(np.empty((0, 2)), []), "M", "D", "(0, 2)"),
        "b too long": (lambda: Polyhedron([[1, 2]], [1, 2]), "(1,)", "(2,)"),
        "b a number": (lambda: Polyhedron([[1, 2]], 1), "(1,)", "()"),
        "A nan": (lambda: Polyhedron([[1, NAN]], [1]), "A", "nan", "[0, 1]"),
        "A inf": (lambda: Polyhedron([[1, 0], [-INF, 1]], [1, 1]), "A", "-inf", "[1, 0]"),
        "a row of zeros": (lambda: Polyhedron([[1, 2], [0, 0]], [1, 1]), "[0.0, 0.0]", 1),
        "overflow": (lambda: Polyhedron([[1], [1e-300]], [0, 1e9]), "overflow"),
        "a number for a point": (lambda: Polyhedron(CUBE, np.ones(6)).contains(0.5), "(..., 3)"),
        "a short point": (lambda: Polyhedron(CUBE, np.ones(6)).margin([1, 2]), "(..., 3)"),
        "an empty interval": (lambda: Polyhedron([[1], [-1]], [0, -1]), "empty"),
        "a point": (lambda: Polyhedron([[1], [-1]], [1, -1]), "zero volume"),
        "a line": (lambda: Polyhedron(SLAB, [3, -3]), "zero volume"),
        "no slab": (lambda: Polyhedron(SLAB, [3, -4], False), "empty"),
    }
)


def env(**settings: Any) -> PureExplorationEnv:
    return PureExplorationEnv(**{"problem": "Threshold", "budget": 20} | settings)


def step(action: Any, **settings: Any) -> Any:
    one = env(**settings)
    one.reset(seed=0)
    return one.step(action)


PLANE = {"problem": "Feasible", "pull": "coordinate"}
ALWAYS = {"Threshold": {"shuffle_arms": "always"}}
MANY = gym.make_vec("bandit_envs/Threshold-v0", 2)
THREE = {"instance": {"distribution": "gaussian", "mean": [0.0, 0.5, 1.0], "sd": 0.5}}
test_environments = table(
    {
        "a stop": (lambda: step(10, stop=False, budget=5), "stop=False", 9, 10),
        "a full stop": (lambda: step({"arm": 10, "times": 1, "answer": [0] * 10}, stop=False, actions="full"), 10),
        "no stop with a delta": (lambda: env(stop=False, budget=None, delta=0.1), "stop=False", "budget"),
        "stop 0": (lambda: env(stop=0), "stop"),
        "gains of full actions": (lambda: env(reward="gain", actions="full"), "reward='gain'", "actions='full'"),
        "gains of coordinates": (lambda: env(reward="gain", **PLANE), "reward='gain'", "pull='coordinate'"),
        "gains without an end": (lambda: env(reward="gain", budget=None, delta=0.1), "reward='gain'", "max_pulls"),
        "ranks of full actions": (lambda: env(ranked=True, actions="full"), "ranked=True", "actions='full'"),
        "ranks of histories": (lambda: env(ranked=True, observation="history"), "ranked=True", "'history'"),
        "ranks of coordinates": (lambda: env(ranked=True, **PLANE), "ranked=True", "pull='coordinate'"),
        "ranked 1": (lambda: env(ranked=1), "ranked"),
        "salt -1": (lambda: env(salt=-1), "salt", -1),
        "salt 2^63": (lambda: env(salt=2**63), "salt", 2**63),
        "salt 0.5": (lambda: env(salt=0.5), "salt", 0.5),
        "pull": (lambda: env(problem="Feasible", pull="both"), "pull", "'arm'", "'coordinate'", "'both'"),
        "coordinates of scalars": (lambda: env(pull="coordinate"), 2),
        "coordinate 21": (lambda: step(21, **PLANE), "coordinate", 20),
        "history without an end": (lambda: env(observation="history", budget=None, delta=0.1), "budget", "max_pulls"),
        "such a task": (lambda: Task("BestArm", {}, K=3, delta=0.1, observation="history"), "budget", "max_pulls"),
        "a long history": (lambda: env(observation="history", budget=10**9, **THREE), "1,000,000,000"),
        "an option": (lambda: env().reset(seed=0, options={"epsiode": 7}), "'epsiode'", "'episode'"),
        "a mask": (lambda: MANY.reset(seed=0, options={"mask": [True, False]}), "'mask'"),
        "shuffle_arms": (
            lambda: env(instance=Instance(Bernoulli([0.2, 0.3]), "own", ALWAYS)),
            "shuffle_arms",
            "'always'",
        ),
        "rows": (lambda: lookup.find("polyhedra(rows=0)"), "rows", 0),
        "dimensions": (lambda: lookup.find("polyhedra(dimensions=1)"), "dimensions", 1),
        "seed": (lambda: lookup.find("polyhedra(seed=-1)"), "seed"),
        "reach 0": (lambda: lookup.find("polyhedra(reach=0)"), "reach", "(0, 1]", 0),
        "a distribution without means": (lambda: lookup.find("polyhedra(distribution='categorical')"), "distribution"),
        "K of prompts": (lambda: lookup.find("prompt-selection(K=1)"), "K"),
        "accuracy": (lambda: lookup.find("prompt-selection(accuracy=1)"), "accuracy"),
        "spread of prompts": (lambda: lookup.find("prompt-selection(spread=0)"), "spread"),
        "K of the ladder": (lambda: lookup.find("jamieson2014-ladder(K=1)"), "K"),
        "alpha": (lambda: lookup.find("jamieson2014-ladder(alpha=0)"), "alpha"),
    }
)

FILES: dict[str, tuple[Any, ...]] = {
    "no number": ("a,b\n1,0\n0,good\n", 3, "'b'", "'good'"),
    "inf": (",a,b\nq1,1,0\nq2,inf,1\n", 3, "q2", "'a'", "'inf'"),
    "an arm without values": ("a,b\n1,\n0,NA\n", "'b'"),
    "two of a name": ("a,a\n1,0\n", "['a']"),
    "all alike": ("a,b\n1,1\n1,1\n", 1),
    "a short line": ("a,b\n1\n", 2, 1),
    "empty": ("", 1),
    "a name left out": ("name,value\na,1\n,2\n", 3, "'name'"),
    "half a measurement": ("name,value_0,value_1\na,1,2\nb,1,\n", 3, 2),
    "a head of values alone": ("dose,value\n1,.4\n2,.7\n", "'value'", "name", "arm=", "wide=True", "index="),
    "a head of arms alone": ("arm,reward\n1,.4\n2,.7\n", "'arm'", "value", "value=", "wide=True", "index="),
}


@pytest.mark.parametrize("title", FILES)
def test_tables(title: str, tmp_path: Path) -> None:
    text, *words = FILES[title]
    (tmp_path / "scores.csv").write_text(text)
    with refused(*words):
        from_table(tmp_path / "scores.csv")


LONG = "compound,effect,harm\nx,.5,.1\ny,.7,.3\n"
COLUMNS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "another arm": ({"arm": "drug", "value": "harm"}, ["'drug'", "['compound', 'effect', 'harm']"]),
    "another value": ({"arm": "compound", "value": "dose"}, ["'dose'"]),
    "no value": ({"arm": "compound"}, ["value="]),
    "no arm": ({"value": "harm"}, ["arm="]),
    "an index": ({"arm": "compound", "value": "harm", "index": 0}, ["index", "arm", "value"]),
    "an index of a long table": ({"index": 0, "wide": False}, ["index", "wide", False]),
    "wide 1": ({"wide": 1}, ["wide", 1]),
    "index 9": ({"index": 9}, ["index", "[0, 2]", 9]),
    "another distribution": ({"arm": "compound", "value": "harm", "distribution": "poisson"}, ["distribution"]),
}


@pytest.mark.parametrize("title", COLUMNS)
def test_columns(title: str, tmp_path: Path) -> None:
    given, words = COLUMNS[title]
    (tmp_path / "long.csv").write_text(LONG)
    with refused(*words):
        from_table(tmp_path / "long.csv", **given)


def shown(pulls: int = 1) -> tuple[Task, dict[str, Any]]:
    """A task and a batch of one history."""
    one = env(observation="history", budget=5, instance="sampler(arms=10)")
    seen, _ = one.reset(seed=0)
    for _ in range(pulls):
        seen, *_ = one.step(2)
    return one.task, {name: array[None] for name, array in seen.items()}


def tallied(**changed: Any) -> Any:
    own, seen = shown()
    return tally(own, {name: array for name, array in (seen | changed).items() if array is not Ellipsis})


test_histories = table(
    {
        "length beyond": (lambda: tallied(length=np.array([[5000]])), "length", 5000),
        "length below": (lambda: tallied(length=np.array([[-1]])), "length", -1),
        "length of one axis": (lambda: tallied(length=np.array([1])), "length"),
        "arms that are floats": (lambda: tallied(arms=np.zeros((1, 5))), "arms"),
        "no arms": (lambda: tallied(arms=np.zeros((1, 0), int)), "histories"),
        "no times": (lambda: tallied(times=np.zeros((1, 0), int)), "times"),
        "samples None": (lambda: tallied(samples=None), "samples"),
        "no dict": (lambda: tally(shown()[0], WRONG or 5), "dict"),
        "no batch": (lambda: tally(shown()[0], {name: array[0] for name, array in shown()[1].items()}), "arms"),
    }
)


def test_what_is_no_number_in_a_table() -> None:
    with refused(1, "'arm 1'", "inf"):
        from_table([[1.0, 0.0], [0.0, math.inf]])
