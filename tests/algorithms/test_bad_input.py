"""Bad input raises ValueError (an unknown keyword: TypeError) that names it and what is allowed, and alters nothing."""

from __future__ import annotations

import copy
import functools
import importlib.util
import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rollouts import batch, full, mask, same

import agents
import bandit_envs
from agents import figures
from agents.catalogue import LEARNED, recipe_of
from agents.core.parameters import taken
from bandit_envs import PROBLEMS, PureExplorationEnv, PureExplorationVectorEnv, Task
from bandit_envs.lookup import find

HUGE = 10**400
THREE = {"law": "gaussian", "mean": [0.0, 0.5, 1.0]}


def refused(said: str, problem: Any = "Threshold", error: type[Exception] = ValueError, **kwargs: Any) -> None:
    """Both environments refuse these arguments, saying so."""
    for make in (PureExplorationEnv, lambda problem, **kw: PureExplorationVectorEnv(2, problem=problem, **kw)):
        with pytest.raises(error, match=said):
            make(problem, **kwargs)


# --- the constructor --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tao2019-4", "unknown instance 'tao2019-4'; did you mean 'tao2019-3'.*Known: banners, captions-627"),
        ("Sampler(arms=3)", "unknown instance 'Sampler'; did you mean 'sampler'"),
        ("xyz", r"unknown instance 'xyz'\. Known: .*sampler"),
        ("", "unknown instance ''"),
        ("sampler(arms=1)", r"arms must be an integer in \[2, 16777216\], got 1"),
        ("sampler(arms=2.5)", "arms must be an integer.*got 2.5"),
        ("sampler(arm=2)", "instance 'sampler': .*'arm'"),
        ("sampler(3)", r"'sampler\(3\)' is not of the form 'name' or 'name\(key=value, ...\)'"),
        ("sampler(arms=", "is not of the form"),
        ("sampler(arms=2)(arms=3)", "is not of the form"),
        ("sampler(arms=2, arms=3)", "is not of the form"),
        ("sampler(**{'arms': 2})", "is not of the form"),
        ("sampler(arms=print)", "is not of the form"),
        ("sampler(arms={[]: 1})", "is not of the form"),
        ("sampler(arms=" + "(" * 5000, "is not of the form"),
        ("sampler(law='poisson')", r"law must be one of \['bernoulli', 'gaussian', 'uniform'\], got 'poisson'"),
        ("sampler(law=[1])", r"law must be one of .*got \[1\]"),
        ("sampler(dimensions=0)", r"dimensions must be an integer in \[1, 4096\], got 0"),
        ("sampler(law='gaussian', spread=0)", r"spread must be a number in \(0, .*got 0"),
        ("sampler(mean=0.5)", "mean must be .*uniform.*got 0.5"),
        ("sampler(mean={'uniform': 0.5})", "takes a list of numbers, got 0.5"),
        ("sampler(mean={'uniform': [1, 0]})", r"low <= high, got \[1.0, 0.0\]"),
        ("sampler(mean={'uniform': [0, 2]})", r"Bernoulli arms lie in \[0, 1\], got \[0.0, 2.0\]"),
        ("sampler(mean={'normal': [0, 1]})", "not Bernoulli"),
        ("sampler(law='gaussian', mean={'normal': [0, 0]})", "sd > 0"),
        ("sampler(mean={'choice': []})", "choice"),
        ("sampler(mean={'uniform': [0, 0.5, 1]})", "takes 2 numbers"),
        ("sampler(mean={'uniform': [0, 1], 'choice': [1]})", "mean must be"),
        ("sampler(mean={'uniform': ['0', '1']})", "uniform must be a number.*got '0'"),
        ("tao2019-1(number=2)", "instance 'tao2019-1': .*'number'"),
    ],
)
def test_instance_names(name: str, said: str) -> None:
    refused(said, instance=name)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "'law' must be one of .*got None"),
        ({"law": "cauchy", "mean": [0, 1]}, "'law' must be one of .*got 'cauchy'"),
        ({"law": ["bernoulli"]}, "'law' must be one of"),
        ({"law": "bernoulli"}, "bernoulli arms: .*'mean'"),
        ({"law": "bernoulli", "means": [0, 1]}, "bernoulli arms: .*'means'"),
        ({"law": "bernoulli", "mean": [0.5]}, "2 to 16777216 arms, got 1"),
        ({"law": "bernoulli", "mean": [0.5, np.nan]}, r"mean must be finite.*nan at index \[1\]"),
        ({"law": "bernoulli", "mean": [0.5, None]}, "mean must be numbers of one rectangular shape"),
        ({"law": "bernoulli", "mean": ["0.5", "0.6"]}, "mean must be numbers"),
        ({"law": "bernoulli", "mean": [0.5, HUGE]}, "mean must be numbers"),
        ({"law": "bernoulli", "mean": [0.5, 2]}, r"lies in \[0, 1\], got 2"),
        ({"law": "bernoulli", "mean": [[0.5], [0.5, 0.6]]}, "one rectangular shape"),
        ({"law": "gaussian", "mean": [0, 1], "sd": -1}, "sd must be > 0, got -1"),
        ({"law": "categorical", "values": [1, 2], "probabilities": [[1, 1]]}, "2 to 16777216 arms, got 1"),
        ({"law": "resampled", "rows": {}}, "rows must be the data of at least 2 arms"),
        ({"sampler": 3}, "'sampler' must hold the parameters of the instance, got 3"),
        ({"sampler": {"arm": 3}}, "instance 'sampler': .*'arm'"),
        ({"sampler": {"arms": "3"}}, "arms must be an integer.*got '3'"),
        ({"sampler": {}, "law": "bernoulli"}, "bernoulli arms: .*'sampler'"),
        (5, "instance must be a name, a dict, Arms, an Instance, a Sampler or a function of these, got 5"),
        ([0.1, 0.9], "instance must be a name"),
        (b"sampler", "instance must be a name"),
        (np.array([0.1, 0.9]), "instance must be a name"),
    ],
)
def test_instance_forms(form: Any, said: str) -> None:
    refused(said, instance=form)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("Treshold", "unknown problem 'Treshold'; did you mean 'Threshold'.*Known: AllGood, BestArm"),
        ("topk", "did you mean 'TopK'"),
        (None, "unknown problem None"),
        (["TopK"], "unknown problem"),
    ],
)
def test_problem_names(problem: Any, said: str) -> None:
    refused(said, problem)


SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    *[
        ("Threshold", {"budget": bad}, r"budget must be an integer in \[1, 1099511627775\], got")
        for bad in (0, -1, 2.0, "10", True, 2**40, HUGE, [10], np.nan, np.array([1, 2]))
    ],
    *[
        ("Threshold", {"delta": bad}, r"delta must be a number in \(0, 1\), got")
        for bad in (0, 1, -0.1, 1.5, np.nan, "0.1", True, HUGE, [0.1], 1j)
    ],
    *[
        ("Threshold", {"max_pulls": bad}, r"max_pulls must be an integer in \[1, 1099511627775\], got")
        for bad in (0, 1.5, "9")
    ],
    *[
        ("Threshold", {"pull_cost": bad}, r"pull_cost must be a number in \[0, 1e\+100\], got")
        for bad in (-0.1, 1e308, np.inf, np.nan, None, "0")
    ],
    *[("Threshold", {"shuffle_arms": bad}, "shuffle_arms must be True or False, got") for bad in (1, "yes", 0.0)],
    ("Threshold", {"reward": "f1"}, r"reward must be one of \['score', 'correct', 'gain'\], got 'f1'"),
    ("Threshold", {"actions": None}, r"actions must be one of \['arm', 'full'\], got None"),
    ("Threshold", {"observation": ["features"]}, r"observation must be one of .*, .history., .belief.\], got \["),
    ("Threshold", {"render_mode": "window"}, "render_mode must be None"),
    ("Threshold", {"threshold": np.nan}, "threshold must be a number.*got nan"),
    ("Threshold", {"threshold": 1.5}, r"threshold must lie in the support \[0.0, 1.0\] of the arms, got 1.5"),
    ("Threshold", {"tolerance": -1}, r"tolerance must be a number in \[0, inf\), got -1"),
    ("Threshold", {"instance": "sampler(dimensions=2)"}, "Threshold needs scalar arms, got arms of 2 dimensions"),
    ("AllGood", {"epsilon": 0}, r"epsilon must be a number in \(0, inf\), got 0"),
    ("AllGood", {"epsilon": 1, "multiplicative": True}, r"epsilon must be a number in \(0, 1\), got 1"),
    ("AllGood", {"slack": "0"}, "slack must be a number.*got '0'"),
    ("AllGood", {"multiplicative": 1}, "multiplicative must be True or False, got 1"),
    ("AllGood", {"multiplicative": True, "instance": {"law": "gaussian", "mean": [-1, 0]}}, "best mean > 0, got 0"),
    *[
        ("AllGood", {"multiplicative": True, "instance": f"sampler({bad})"}, "best mean > 0 in every episode, got")
        for bad in ("law='gaussian', mean={'normal': [5, 1]}", "mean={'choice': [0, 1]}", "mean={'uniform': [0, 0]}")
    ],
    *[("TopK", {"k": bad}, rf"k must be an integer in .*got {bad!r}") for bad in (0, -1, 10, 2.0, "2")],
    ("TopK", {"k": HUGE}, "k must be an integer in .*got 1000"),
    ("TopK", {"k": 0}, r"^k must be an integer in \[1, K - 1\], K the number of arms, got 0$"),
    *[("TopK", {"k": bad}, rf"^k must be an integer in \[1, 9\], got {bad}$") for bad in (10, 11)],
    ("TopK", {"k": 2, "instance": "sampler(arms=2)"}, r"k must be an integer in \[1, 1\], got 2"),
    ("TopK", {"epsilon": -0.1}, r"epsilon must be a number in \[0, inf\), got -0.1"),
    ("TopK", {"criterion": "all"}, "criterion must be one of .*got 'all'"),
    ("Feasible", {"A": [[1, 0, 0]], "b": [1]}, "A has 3 columns, so Feasible needs arms of 3 dimensions, got 2"),
    ("Feasible", {"A": [[1, 0]], "b": [1, 2]}, "b must have one value per row"),
    ("Feasible", {"A": "ab"}, "A must be numbers"),
    ("Feasible", {"instance": "sampler(dimensions=2)"}, "Feasible needs A and b"),
    ("Feasible", {"instance": "sampler(dimensions=2)", "A": [[1, 0]]}, "Feasible needs b"),
]


@pytest.mark.parametrize(("problem", "kwargs", "said"), SETTINGS)
def test_settings(problem: str, kwargs: dict[str, Any], said: str) -> None:
    refused(said, problem, **kwargs)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_unknown_keywords_are_a_type_error_that_names_them(problem: str) -> None:
    refused(f"{problem} got an unexpected keyword argument 'bugdet'; it takes .*budget", problem, TypeError, bugdet=3)
    other = "k" if problem != "TopK" else "threshold"
    refused(f"unexpected keyword argument '{other}'", problem, TypeError, **{other: 2})
    for make in (gym.make, gym.make_vec):
        with pytest.raises(TypeError, match="got an unexpected keyword argument 'frameskip'; it takes .*budget"):
            make(f"bandit_envs/{problem}-v0", frameskip=4)  # TorchRL asks, and reads the answer in Python's words


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"num_envs": 0}, r"num_envs must be an integer in \[1, .*got 0"),
        ({"num_envs": 2.0}, "num_envs must be an integer.*got 2.0"),
        (
            {"autoreset_mode": "SAME_STEP"},
            "autoreset_mode must be .*NEXT_STEP .*SAME_STEP .'SameStep'.*got 'SAME_STEP'",
        ),
        ({"autoreset_mode": np.array(["NextStep", "SameStep"])}, "autoreset_mode must be .*DISABLED"),
        ({"autoreset_mode": None}, "autoreset_mode must be .*got None"),
        ({"autoreset_mode": []}, r"autoreset_mode must be .*got \[\]"),
        ({"copy": 1}, "copy must be True or False, got 1"),
        ({"render_mode": "ansi"}, "render_mode must be None, got 'ansi'"),
        ({"max_episode_steps": 5}, "use max_pulls .*max_episode_steps=5"),
    ],
)
def test_settings_of_the_vector_environment(kwargs: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PureExplorationVectorEnv(**{"num_envs": 2, "problem": "Threshold"} | kwargs)


# --- reset and step ---------------------------------------------------------------------------------------------------


def state(env: Any) -> Any:
    """All that an episode is made of."""
    kept = {name: value for name, value in env.__getstate__().items() if not name.startswith("_np_random")}
    kept.pop("setting"), kept.pop("spec", None)
    return copy.deepcopy({name: value for name, value in kept.items() if not isinstance(value, gym.Space)})


def begun(actions: str = "arm", slots: int | None = None, problem: str = "Threshold") -> Any:
    settings = {"instance": THREE, "actions": actions, **({"k": 2} if problem == "TopK" else {})}
    env: Any
    if slots is None:
        env = PureExplorationEnv(problem, **settings)
    else:
        env = PureExplorationVectorEnv(slots, problem=problem, **settings)
    env.reset(seed=0)
    env.step(right(actions, slots))
    return env


def right(actions: str, slots: int | None) -> Any:
    """An action that is allowed."""
    one = 1 if actions == "arm" else full(1, 1, K=3)
    return one if slots is None else batch([one] * slots)


def rejected(env: Any, action: Any, said: str) -> None:
    before = state(env)
    with pytest.raises(ValueError, match=said):
        env.step(action)
    assert same(state(env), before)


RAGGED = [0, [1]]
ARMS: list[tuple[Any, str]] = [
    (-1, r"arm 0 .. 2, or 3 to stop, got -1"),
    (4, r"got 4"),
    (2**70, "got 11805916207174113"),
    (HUGE, "got 1000"),
    (1.0, "integers, got float64: 1.0"),
    (np.float32(1), "integers, got float32"),
    (np.nan, "float64: nan"),
    ("1", "integers, got <U1: '1'"),
    (b"1", "integers"),
    (None, "integers, got object: None"),
    (True, "got bool"),
    ([1], r"shape \(\), got \(1,\)"),
    (np.array([1]), r"shape \(\), got \(1,\)"),
    ([[1]], "shape"),
    ([], "shape"),
    (RAGGED, r"integers of shape \(\), got \[0, \[1\]\]"),
    ({}, "an arm, an integer, got an empty dict"),
    ({1}, "integers"),
    (1j, "complex"),
    (np.uint64(2**64 - 1), "integers"),
    (object(), "integers"),
    (np.array("1"), "integers"),
]


@pytest.mark.parametrize(("action", "said"), ARMS)
def test_arm_actions(action: Any, said: str) -> None:
    rejected(begun(), action, said)


FULL: list[tuple[Any, str]] = [
    *[
        ({"arm": arm}, "arm" if isinstance(arm, (int, np.uint64)) and not isinstance(arm, bool) else "arm must")
        for arm, _ in ARMS
    ],
    ({"times": 0}, r"times must be in 1 .. 2147483647, got 0"),
    ({"times": -1}, "got -1"),
    ({"times": 2**31}, "got 2147483648"),
    ({"times": 1.0}, "times must be integers"),
    ({"times": [1]}, "shape"),
    *[({"times": bad}, "times must be integers") for bad in (None, 2**70, True, "1")],
    ({"answer": None}, r"mask of 0 and 1 of shape \(1, 3\)"),
    ({"answer": [0, 1]}, "mask of 0 and 1 of shape"),
    ({"answer": [0, 1, 1, 1]}, "mask of 0 and 1 of shape"),
    ({"answer": [0.0, 1.0, 1.0]}, "mask of 0 and 1 of shape"),
    ({"answer": "011"}, "mask of 0 and 1 of shape"),
    ({"answer": [0, [1], 1]}, r"answer must be .*got \[0, \[1\], 1\]"),
    ({"answer": [0, HUGE, 1]}, "mask of 0 and 1 of shape"),
    ({"answer": [None] * 3}, "mask of 0 and 1 of shape"),
]


@pytest.mark.parametrize(("part", "said"), FULL)
def test_full_actions(part: dict[str, Any], said: str) -> None:
    rejected(begun("full"), full(1, 1, K=3) | part, said)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([0, 1, 2], "mask of 0 and 1, got values 0 .. 2"),
        ([-1, 1, 1], "got values -1 .. 1"),
        (np.full(3, 255, np.uint8), "got values 255 .. 255"),
        (np.full(3, 2**63, np.uint64), "got values 92233720368547"),
    ],
)
def test_answers_that_stop(answer: Any, said: str) -> None:
    rejected(begun("full"), full(3, 1, answer, K=3), said)
    both = {"arm": np.array([0, 3]), "times": np.array([1, 1]), "answer": np.stack([np.array(answer) * 0, answer])}
    rejected(begun("full", 2), both, "mask of 0 and 1, got values")


@pytest.mark.parametrize("action", [0, np.zeros(3), "pull", None, {}, {"arm": 0, "times": 1}, [0, 1, mask(3)], RAGGED])
def test_full_actions_are_dicts_of_three(action: Any) -> None:
    rejected(begun("full"), action, "a full action is a dict of arm, times and answer, got")
    rejected(begun("full", 2), action, "a full action is a dict of arm, times and answer, got")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (0, r"shape \(2,\), got \(\)"),
        ([0], r"shape \(2,\), got \(1,\)"),
        ([0, 1, 2], r"got \(3,\)"),
        (None, "shape"),
        ([0.0, 1.0], "integers, got float64"),
        ([0, None], "integers, got object"),
        (["0", "1"], "integers, got <U1"),
        ([True, False], "integers, got bool"),
        ([0, HUGE], "integers, got object"),
        (RAGGED, r"integers of shape \(2,\)"),
        ([0, -1], r"got -1 \(slot 1\)"),
        ([4, 0], r"got 4 \(slot 0\)"),
        (np.array([0, 2**63], np.uint64), "got uint64"),
        ([[0, 1]], "shape"),
        ({}, "shape"),
        ("01", "shape"),
    ],
)
def test_vector_actions(action: Any, said: str) -> None:
    rejected(begun(slots=2), action, said)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"arm": [0, 4]}, r"got 4 \(slot 1\)"),
        ({"arm": 0}, r"arm must have shape \(2,\)"),
        ({"times": [1, 0]}, r"got 0 \(slot 1\)"),
        ({"times": [1.0, 1.0]}, "times must be integers"),
        ({"times": [[1], [1]]}, r"times must have shape \(2,\)"),
        ({"answer": mask(3)}, r"shape \(2, 3\)"),
        ({"answer": np.zeros((2, 3))}, "shape"),
        ({"answer": None}, "mask"),
    ],
)
def test_full_vector_actions(part: dict[str, Any], said: str) -> None:
    action = {"arm": np.array([0, 1]), "times": np.array([1, 2]), "answer": np.zeros((2, 3), np.int8)}
    rejected(begun("full", 2), action | part, said)


def test_top_k_answers_of_another_size() -> None:
    rejected(begun("full", problem="TopK"), full(3, 1, mask(3, 0), K=3), "an answer of TopK holds 2 arms, got 1")
    action = batch([full(3, 1, mask(3, 0, 1)), full(3, 1, mask(3, 0, 1, 2))])
    rejected(begun("full", 2, "TopK"), action, "an answer of TopK holds 2 arms, got 3")


SOME = np.array([True, False])


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"seed": -1}, "a seed is an integer >= 0, got -1"),
        ({"seed": 1.0}, "got 1.0"),
        ({"seed": "1"}, "got '1'"),
        ({"seed": True}, "got True"),
        ({"seed": [1]}, r"one per slot \(2\), got 1"),
        ({"seed": [1, -2]}, "got -2"),
        ({"seed": [1, "a"]}, "got 'a'"),
        ({"seed": [1.5, 2]}, "got 1.5"),
        ({"seed": [[1], [2]]}, r"got \[1\]"),
        ({"options": 3}, "options must be a dict or None, got 3"),
        ({"options": {"episode": -1}}, r"\[0, 4294967295\], got -1"),
        ({"options": {"episode": [0, 2**32]}}, "got 429496"),
        ({"options": {"episode": [0, 1, 2]}}, r"shape \(2,\), got \(3,\)"),
        ({"options": {"episode": [0.0, 1.0]}}, "integers, got float64"),
        ({"options": {"episode": "0"}}, "shape"),
        ({"options": {"episode": RAGGED}}, "integers of shape"),
        ({"options": {"episode": True}}, "integers"),
        ({"options": {"reset_mask": [True, False]}}, r"bool array of shape \(2,\), got \[True, False\]"),
        ({"options": {"reset_mask": np.array([1, 0])}}, "bool array"),
        ({"options": {"reset_mask": np.ones(3, bool)}}, "bool array"),
        ({"options": {"reset_mask": np.zeros(2, bool)}}, "at least one slot"),
        ({"seed": [1, -2], "options": {"reset_mask": SOME}}, "got -2"),
        ({"seed": 5, "options": {"episode": [-1, 0]}}, "got -1"),
    ],
)
def test_vector_resets(rules: dict[str, Any], said: str) -> None:
    env = begun(slots=2)
    before = state(env)
    with pytest.raises(ValueError, match=said):
        env.reset(**rules)
    assert same(state(env), before)
    fresh = PureExplorationVectorEnv(2, problem="Threshold")
    with pytest.raises(ValueError, match=said):
        fresh.reset(**rules)
    with pytest.raises(gym.error.ResetNeeded):
        fresh.step(np.zeros(2, np.int64))


# --- fuzz -------------------------------------------------------------------------------------------------------------

small = st.integers(-3, 12)
numbers = st.one_of(small, st.floats(), st.floats(-1, 2), st.sampled_from([2**31, 2**63, 2**64, -(10**30), HUGE]))
things = st.one_of(
    numbers,
    st.none(),
    st.booleans(),
    st.text(max_size=4),
    st.binary(max_size=2),
    st.complex_numbers(),
    st.sampled_from([print, object(), ..., {1}, "sampler", "tao2019-1", "full", "arm", np.float32(1), np.int8(1)]),
)
junk = st.one_of(
    things,
    st.recursive(things, lambda inner: st.lists(inner, max_size=4), max_leaves=8),
    st.lists(numbers, max_size=5).map(lambda x: np.array(x, object)),
    st.lists(st.floats(), max_size=4).map(np.array),
    st.lists(small, max_size=4).map(np.array),
    st.dictionaries(st.one_of(st.text(max_size=3), small), things, max_size=3),
)
some = st.lists(numbers, max_size=3)
extreme = st.sampled_from([0, 1, -1, 0.5, 1e-300, 1e-9, 1e9, 1e100, -1e100, 1e300])
means = st.one_of(st.lists(st.floats(0, 1), min_size=2, max_size=5), st.lists(extreme, min_size=2, max_size=3), some)
LAWS = {  # parameters that are right more often than not
    "bernoulli": {"mean": means},
    "gaussian": {"mean": means, "sd": st.one_of(st.floats(0.1, 2), extreme)},
    "uniform": {"mean": means, "width": st.one_of(st.floats(0.1, 2), extreme)},
    "categorical": {
        "values": st.one_of(st.just([1, 2, 4]), st.lists(extreme, max_size=3, unique=True).map(sorted)),
        "probabilities": st.one_of(st.just([[1, 2, 3], [0, 1, 0]]), st.lists(st.lists(extreme))),
    },
    "resampled": {"rows": st.one_of(st.just([[1, 2], [3]]), st.lists(st.lists(extreme, min_size=1), min_size=2))},
}
laws = st.sampled_from([*LAWS]).flatmap(lambda law: st.fixed_dictionaries({"law": st.just(law), **LAWS[law]}))
samplers = st.fixed_dictionaries(
    {"law": st.sampled_from(["bernoulli", "gaussian", "uniform"])},
    optional={
        "arms": st.integers(2, 9),
        "dimensions": st.integers(1, 3),
        "spread": st.one_of(st.floats(0.1, 2), extreme),
        "mean": st.one_of(
            st.just({"uniform": [0.25, 0.5]}),
            st.just({"normal": [0.0, 1.0]}),
            st.just({"choice": [0.5, 1.0]}),
            st.dictionaries(st.sampled_from(["uniform", "normal", "choice"]), st.one_of(some, st.lists(extreme))),
        ),
    },
)
instances = st.one_of(laws, samplers.map(lambda form: {"sampler": form}), st.just("sampler(arms=4)"))
keywords = {
    "instance": instances,
    "budget": st.integers(1, 99),
    "delta": st.floats(0.01, 0.9),
    "max_pulls": st.integers(1, 99),
    "pull_cost": st.sampled_from([0, 0.1, 1e300]),
    "reward": st.sampled_from(["score", "correct"]),
    "actions": st.sampled_from(["arm", "full"]),
    "observation": st.sampled_from(["statistics", "features", "history"]),
    "shuffle_arms": st.booleans(),
    "threshold": st.one_of(st.floats(0, 1), extreme),
    "tolerance": st.sampled_from([0, 0.1, 1e300]),
    "epsilon": st.one_of(st.floats(0.01, 0.9), extreme),
    "multiplicative": st.booleans(),
    "slack": st.sampled_from([0, 0.1, 1e300]),
    "k": st.integers(1, 4),
    "criterion": st.sampled_from(["each", "aggregate", "exact"]),
    "normalise": st.booleans(),
    "A": st.one_of(st.just([[1]]), st.lists(st.tuples(extreme), min_size=1), st.lists(st.tuples(extreme, extreme))),
    "b": st.one_of(st.just([1]), st.lists(extreme, max_size=3)),
}
COMMON = ("instance", "budget", "delta", "max_pulls", "pull_cost", "reward", "actions", "observation", "shuffle_arms")


@st.composite
def calls(draw: Any) -> tuple[str, dict[str, Any]]:
    """A call of the constructor, mostly right, with junk in up to one place (of the instance's form too)."""
    problem = draw(st.sampled_from([*PROBLEMS]))
    names = [*COMMON, *PROBLEMS[problem].parameters]
    given = draw(st.fixed_dictionaries({}, optional={name: keywords[name] for name in names}))
    place = draw(st.sampled_from(["nowhere", "nowhere", "instance", *names]))
    if place == "instance" and isinstance(given.get("instance"), dict):
        form = given["instance"].get("sampler", given["instance"])
        form[draw(st.one_of(st.sampled_from([*form]), st.text(max_size=5)))] = draw(junk)
    elif place == "instance":
        text = st.text(max_size=9)
        given["instance"] = draw(st.one_of(junk, text, text.map(lambda x: f"sampler({x})")))
    elif place != "nowhere":
        given[place] = draw(junk)
    return problem, given


broken = settings(deadline=None, derandomize=True, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
broken_long = settings(broken, derandomize=False, max_examples=20_000)


def attempt(call: Any, *arguments: Any, **keywords: Any) -> tuple[Any, Exception | None]:
    """What a call returns, and the error that it may raise; all others are the test's failure."""
    try:
        return call(*arguments, **keywords), None
    except (ValueError, TypeError, gym.error.Error) as error:
        return None, error


def survives(call: tuple[str, dict[str, Any]]) -> None:
    """The constructor refuses with ValueError, or the environment plays an episode."""
    problem, kwargs = call
    env, error = attempt(PureExplorationEnv, problem, **kwargs)
    if error is not None:
        assert type(error) is ValueError
        assert len(str(error)) > 10
        return
    for seed in range(2):
        seen, _ = env.reset(seed=seed)
        answer, over = env.problem.plug_in(np.zeros(env.setting.source.arms.means.shape)), False
        for arm in (0, 1, env.task.K):
            assert env.observation_space.contains(seen)
            if not over:
                seen, _, ended, cut, _ = env.step(arm if env.task.actions == "arm" else full(arm, 3, answer))
                over = ended or cut
        assert over


@given(calls())
@broken
def test_the_constructor_survives_anything(call: tuple[str, dict[str, Any]]) -> None:
    survives(call)


@pytest.mark.slow
@given(calls())
@broken_long
def test_the_constructor_survives_anything_for_long(call: tuple[str, dict[str, Any]]) -> None:
    survives(call)


@given(st.one_of(junk, st.sampled_from([*PROBLEMS])), st.text(min_size=1, max_size=3))
@broken
def test_unknown_problems_and_keywords(problem: Any, unknown: str) -> None:
    _, error = attempt(PureExplorationEnv, problem, **{unknown: 1})
    if not isinstance(problem, str) or problem not in PROBLEMS:
        assert isinstance(error, ValueError)
        assert "unknown problem" in str(error)
    elif unknown not in keywords:
        assert isinstance(error, TypeError)
        assert f"unexpected keyword argument {unknown!r}" in str(error)


RIGHT: dict[Any, dict[str, Any]] = {  # calls that are right, for whatever can be made without an environment
    bandit_envs.Task: {
        "problem": "TopK", "parameters": {"k": 2}, "K": 5, "D": 1, "budget": 9, "delta": 0.1, "max_pulls": 9,
        "pull_cost": 0.1, "law": "bernoulli", "support": (0.0, 1.0), "sigma": 0.5, "actions": "arm",
        "observation": "features", "pull": "arm",
    },
    bandit_envs.Bernoulli: {"mean": [0.1, 0.9]},
    bandit_envs.Gaussian: {"mean": [0.1, 0.9], "sd": 2.0},
    bandit_envs.Uniform: {"mean": [0.1, 0.9], "width": 2.0},
    bandit_envs.Categorical: {"values": [1, 2], "probabilities": [[1, 2], [3, 4]]},
    bandit_envs.Resampled: {"rows": [[1, 2], [3]]},
    bandit_envs.Tabulated: {"quantiles": [[1, 2], [3, 4]]},
    bandit_envs.Instance: {"arms": bandit_envs.Bernoulli([0.1, 0.9]), "name": "mine", "defaults": {"TopK": {"k": 1}}},
    bandit_envs.Sampler: {"law": "gaussian", "arms": 3, "mean": {"normal": [0, 1]}, "dimensions": 1, "spread": 1.0},
    bandit_envs.Polyhedra: {
        "law": "gaussian", "arms": 3, "dimensions": 2, "rows": 4, "seed": 0, "reach": 0.5, "spread": 1.0, "budget": 9,
    },
    bandit_envs.Polyhedron: {"A": [[1, 0]], "b": [1], "normalise": True},
    bandit_envs.Threshold: {"threshold": 0.5, "tolerance": 0.1},
    bandit_envs.AllGood: {"epsilon": 0.1, "multiplicative": False, "slack": 0.1},
    bandit_envs.TopK: {"k": 2, "epsilon": 0.1, "criterion": "each"},
    bandit_envs.BestArm: {"epsilon": 0.1, "criterion": "each"},
    bandit_envs.Feasible: {"A": [[1, 0]], "b": [1], "tolerance": 0.1, "normalise": True},
    bandit_envs.root_number: {"seed": 3},
    bandit_envs.number: {"name": "x", "value": 1.0},
    bandit_envs.integer: {"name": "x", "value": 1, "low": 0, "high": 3},
    bandit_envs.flag: {"name": "x", "value": True},
    bandit_envs.choice: {"name": "x", "value": "a", "allowed": ["a", "b"]},
    bandit_envs.Task.from_json: {"text": Task("Threshold", {}, K=3).to_json()},
    bandit_envs.PROBLEMS.find: {"name": "TopK"},
    find: {"source": "sampler"},
}  # fmt: skip
CHECKED = {"number": ("value",), "integer": ("value",), "flag": ("value",), "choice": ("value",)}


def test_these_calls_are_right() -> None:
    for call, kwargs in RIGHT.items():
        call(**kwargs)


@given(st.sampled_from([*RIGHT]), junk, st.randoms(use_true_random=False))
@broken
def test_whatever_is_made_refuses_junk_by_name(call: Any, thing: Any, random: Any) -> None:
    kwargs = RIGHT[call]
    name = random.choice(CHECKED.get(call.__name__, [*kwargs]))
    if callable(thing) and call is find:
        return  # a function is a source of instances, and does what it does
    _, error = attempt(call, **kwargs | {name: thing})
    assert (
        error is None
        or type(error) is ValueError
        or (call == Task.from_json and isinstance(error, (ValueError, TypeError)))
    )
    assert error is None or len(str(error)) > 10


slotted = st.one_of(junk, st.lists(st.one_of(st.integers(0, 3), junk), min_size=2, max_size=2))
parts = st.fixed_dictionaries(
    {},
    optional={
        "arm": st.one_of(st.integers(0, 3), st.lists(st.integers(0, 3), min_size=2, max_size=2), slotted),
        "times": st.one_of(st.just(1), st.just([1, 2]), slotted),
        "answer": st.one_of(st.lists(st.integers(-1, 2), min_size=3, max_size=3), slotted),
    },
)
ENVS = {(actions, slots): begun(actions, slots) for actions in ("arm", "full") for slots in (None, 2)}


def steps(form: tuple[str, int | None], action: Any) -> None:
    """A step is taken, or refused and nothing touched."""
    env = ENVS[form]
    if form[0] == "full" and isinstance(action, dict):
        action = right(*form) | action
    before = state(env)
    _, error = attempt(env.step, action)
    if error is not None:
        assert not isinstance(error, TypeError)
        assert len(str(error)) > 10
        assert same(state(env), before)
    if form[1] is None and env._over:
        env.reset()


@given(st.sampled_from([*ENVS]), st.one_of(slotted, parts))
@broken
def test_steps_survive_anything(form: tuple[str, int | None], action: Any) -> None:
    steps(form, action)


@pytest.mark.slow
@given(st.sampled_from([*ENVS]), st.one_of(slotted, parts))
@broken_long
def test_steps_survive_anything_for_long(form: tuple[str, int | None], action: Any) -> None:
    steps(form, action)


@given(
    st.sampled_from([*ENVS]),
    st.one_of(junk, st.just(3)),
    st.one_of(
        junk, st.fixed_dictionaries({}, optional={"episode": slotted, "reset_mask": st.one_of(junk, st.just(SOME))})
    ),
)
@broken
def test_resets_survive_anything(form: tuple[str, int | None], seed: Any, options: Any) -> None:
    env = ENVS[form]
    before = state(env)
    _, error = attempt(env.reset, seed=seed, options=options)
    if error is not None:
        assert not isinstance(error, TypeError)
        assert same(state(env), before)
    env.reset(seed=1)


# --- agents -----------------------------------------------------------------------------------------------------------

ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, 2**63, 2**64, HUGE, -HUGE, 0.0, -0.0, 0.5, -0.5, 1.5,
    5e-324, 1e-300, 1e-12, 1e12, 1e100, 1e300, 1e308, -1e308, math.inf, -math.inf, math.nan, 1j, "", "x", "1",
    "exact", "lil", b"1", "x" * 99, [], [1], [1, 2], (1.0, 1.0), (0, 1), (math.nan, 1), (1e300, 1e-300), (HUGE, 1),
    {}, {1}, {"a": 1}, object(), print, int, ..., slice(1), range(3), bytearray(b"x"), np.bool_(True),
    np.float64(0.5), np.float32(2), np.int64(3), np.array(0.5), np.array([1.0]), np.array([1.0, 2.0]), np.array([]),
    np.array("a"), np.array([None]), Decimal("0.5"), Fraction(1, 2), (1,) * 18, [HUGE] * 18, [math.inf] * 18,
    [[1.0] * 18] * 2, [[[1.0] * 18]],
]  # fmt: skip
PLAYED: dict[str, list[dict[str, Any]]] = {
    "Threshold": [{"budget": 40}, {"budget": 40, "delta": 0.1}, {"budget": 40, "instance": "sampler(arms=3)"}],
    "AllGood": [{"delta": 0.1, "max_pulls": 40}, {"delta": 0.1, "pull_cost": 0.01, "max_pulls": 40}],
    "TopK": [{"delta": 0.1, "epsilon": 0.2, rule: 40} for rule in ("max_pulls", "budget")],
    "BestArm": [{"delta": 0.1, "epsilon": 0.2, rule: 40} for rule in ("max_pulls", "budget")],
}
TAKEN = [
    (name, problem, parameter)
    for problem in PLAYED
    for name in agents.names(problem)
    for parameter in taken(recipe_of(name).target) or []
    if name not in LEARNED
]
NEEDS = {
    "ucbe": {"H": 9.0},
    **{name: {"margins": [0.1, 0.2, 0.3]} for name in ("static", "offline")},
    "apt-oracle": {"threshold": 0.5},
    "lucb": {"k": 2},
}


@pytest.mark.parametrize(("name", "problem", "parameter"), TAKEN, ids=["-".join(row) for row in TAKEN])
def test_odd_parameters_of_agents(
    name: str, problem: str, parameter: str, monkeypatch: pytest.MonkeyPatch, recwarn: Any
) -> None:
    """An agent takes a value, and can decide, or refuses it by ValueError or TypeError, which name the parameter."""
    monkeypatch.setattr("agents.thresholding.dp_index.HORIZON", 40)
    tried = 0
    for rules in PLAYED[problem]:
        env = gym.make(f"bandit_envs/{problem}-v0", actions="full", **rules)
        own = NEEDS.get(name, {}) if problem in ("Threshold", "AllGood") else {}
        if attempt(agents.make, name, env, **own)[1] is not None:
            continue  # it does not run under these rules
        for value in ODD:
            agent, error = attempt(agents.make, name, env, **own | {parameter: value})
            tried += 1
            if error is None:
                _, error = attempt(agent.predict, env.reset(seed=1)[0])
            assert error is None or parameter in str(error), (value, error)
    assert tried >= len(ODD)
    idle = rf"{name}: .* has no effect|ocba-m begins with n0="
    assert not [said for said in recwarn.list if not re.search(idle, str(said.message))]


SEEN: dict[str, Any] = {
    "pulls": np.array([2, 1, 0]),
    "total": np.array([1.0, 1.0, 0.0]),
    "mean": np.array([0.5, 1.0, 0.0]),
    "variance": np.array([0.25, 0.0, 0.0]),
    "remaining": np.array([7]),
    "public_seed": np.array([5]),
}


@pytest.mark.parametrize("single", [True, False], ids=["single", "batch"])
def test_observations_of_lists_are_read(single: bool) -> None:
    env = gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=3)", budget=10)
    arrays = SEEN if single else {name: np.stack([value, value]) for name, value in SEEN.items()}
    lists = {name: value.tolist() for name, value in arrays.items()}
    for name in agents.names("Threshold"):
        if name in LEARNED:
            continue
        agent = agents.make(name, env, **NEEDS.get(name, {}))
        assert agent.begin_anew(lists) is not None
        if not agent.resumes:
            continue
        wanted = agent.predict(arrays)[0]
        assert np.array_equal(agent.predict(lists)[0], wanted)
        for part in lists:  # some as lists, others as arrays
            assert np.array_equal(agent.predict({**arrays, part: lists[part]})[0], wanted)
        assert np.array_equal(agent.recommend(lists), agent.recommend(arrays))


OBSERVATIONS: list[tuple[dict[str, Any], str]] = [
    *[
        ({"pulls": bad}, "pulls must be an integer array, got")
        for bad in ([2.0, 1.0, 0.0], "210", [True] * 3, None, {})
    ],
    ({"pulls": [[2, 1], [0]]}, "pulls must be an integer array, got"),
    ({"pulls": np.array([2.0, 1.0, 0.0])}, "pulls must be an integer array, got"),
    ({"pulls": [2, HUGE, 0]}, "pulls must be an integer array, got"),
    ({"pulls": [2, -1, 0]}, "pulls must be >= 0, .* got -1"),
    ({"pulls": [2, 1]}, r"made for 3 arms, got pulls of shape \(1, 2\)"),
    ({"pulls": 3}, "made for 3 arms"),
    ({"pulls": []}, "made for 3 arms|pulls must be an integer array"),
    *[
        ({"mean": bad}, "mean must be an array of numbers, got")
        for bad in ("x", None, [0.5, None, 0], {}, [[1], [1, 2]])
    ],
    ({"mean": [7.0, 1.0, 0.0]}, r"mean must lie in the support \[0, 1\] of the arms, got 7.0"),
    ({"mean": [0.5, -0.1, 0.0]}, "mean must lie in the support .* got -0.1"),
    ({"mean": [0.5, math.nan, 0.0]}, "mean must lie in the support .* got nan"),
    ({"mean": [0.5, 1.0]}, r"mean must have the shape \(1, 3\), got \(1, 2\)"),
    ({"total": [0.5]}, "total must have the shape"),
    ({"variance": [1, 2, 3, 4]}, "variance must have the shape"),
    ({"remaining": 7}, r"remaining must have the shape \(1, 1\), got \(1,\)"),
    ({"remaining": [7.5]}, "remaining must be an integer array"),
    ({"public_seed": [1, 2]}, "public_seed must have the shape"),
    ({"public_seed": "a"}, "public_seed must be an integer array"),
]


@pytest.mark.parametrize(("part", "said"), OBSERVATIONS, ids=range(len(OBSERVATIONS)))
def test_observations_that_no_environment_gives(part: dict[str, Any], said: str) -> None:
    env = gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=3)", budget=10)
    for name in ("lsa", "uniform", "sar", "opt-kg"):
        with pytest.raises(ValueError, match=said):
            agents.make(name, env).predict(SEEN | part)


@pytest.mark.parametrize("remaining", [np.array(7), np.array([[7]]), np.array([7, 7])])
def test_each_episode_of_a_batch_has_a_row(remaining: Any) -> None:
    """Defect: a number in the place of an array was an error that named nothing."""
    both = {name: np.stack([value, value]) for name, value in SEEN.items()} | {"remaining": remaining}
    env = gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=3)", budget=10)
    with pytest.raises(ValueError, match=re.escape(f"remaining must have the shape (2, 1), got {remaining.shape}")):
        agents.make("lsa", env).predict(both)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_features_are_finite(value: float) -> None:
    """Defect: a single observation and a batch of it brought about two different actions."""
    pytest.importorskip("stable_baselines3")
    env = gym.make("bandit_envs/TopK-v0", instance="sampler(arms=5)", k=2, budget=50, observation="belief")
    agent, (features, _) = agents.make("ppo", env), env.reset(seed=0)
    assert agent.predict(features)[0] == agent.predict(features[None])[0][0]
    features[3] = value
    for observation in (features, features[None]):
        with pytest.raises(ValueError, match=f"observations must be finite numbers, got {value}"):
            agent.predict(observation)


def test_a_stored_network_is_no_model_of_sb3() -> None:
    pytest.importorskip("stable_baselines3")
    agent = agents.make("ppo", gym.make("bandit_envs/TopK-v0", k=2, budget=50))
    with pytest.raises(ValueError, match="is a network without the algorithm that trained it"):
        agent.save("nowhere")


def test_an_agent_with_other_parameters_refuses_the_memory() -> None:
    """Defect: its decisions were a mixture of both."""
    envs = gym.make_vec("bandit_envs/Threshold-v0", 3, budget=50)
    (observation, _), one, other = envs.reset(seed=0), agents.make("lsa", envs), agents.make("lsa(alpha=0.2)", envs)
    action, state = one.predict(observation)
    observation, *_ = envs.step(action)
    with pytest.raises(
        ValueError, match=r"made by .*LSA\(alpha=0.2\) for Threshold.*; got that of .*LSA\(\) for Threshold"
    ):
        other.predict(observation, state)
    agents.make("lsa", envs).predict(observation, state)


def test_candidates_share_the_episodes_evenly() -> None:
    """Defect: episodes beyond the last whole share read foreign memory."""
    genes = [agents.make("evolved", gym.make("bandit_envs/TopK-v0", k=2, budget=50)).genes[0]] * 2
    for problem, kwargs in (("TopK", {"k": 2, "budget": 50}), ("Threshold", {"budget": 50})):
        envs = gym.make_vec(f"bandit_envs/{problem}-v0", 3, **kwargs)
        agent, (observation, _) = agents.make("evolved", envs, genes=genes), envs.reset(seed=0)
        with pytest.raises(ValueError, match="the genes of 2 candidates need a multiple of 2 episodes, got 3"):
            agent.predict(observation)


def test_means_of_arms_never_pulled_and_of_unbounded_arms_may_be_anything() -> None:
    env = gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=3)", budget=10)
    agents.make("lsa", env).predict(SEEN | {"mean": [0.5, 1.0, 7.0]})
    wide = gym.make("bandit_envs/Threshold-v0", instance=THREE, budget=10)
    agents.make("lsa", wide).predict(SEEN | {"mean": [0.5, 1e9, 0.0]})
    rounded = np.nextafter(1.0, 2.0)
    agents.make("lsa", env).predict(SEEN | {"mean": [0.5, rounded, 0.0]})


def test_networks_read_beliefs() -> None:
    pytest.importorskip("stable_baselines3")
    agent = agents.make("ppo", gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=3)", budget=10))
    with pytest.raises(ValueError, match="ppo reads observation='belief', an array, got a dict of statistics"):
        agent.predict(SEEN)


@pytest.mark.parametrize("make", [gym.make, functools.partial(gym.make_vec, num_envs=2)], ids=["single", "vector"])
def test_the_problem_of_an_id_cannot_be_another_one(make: Any) -> None:
    """Defect: the id of Threshold made TopK."""
    with pytest.raises(
        ValueError, match="the problem of bandit_envs/Threshold-v0 is Threshold: take out problem='TopK'"
    ):
        make("bandit_envs/Threshold-v0", problem="TopK")
    env = make("bandit_envs/Threshold-v0", problem="Threshold", threshold=0.3)
    assert env.unwrapped.spec.id == "bandit_envs/Threshold-v0"
    assert gym.make(gym.spec("bandit_envs/TopK-v0")).unwrapped.task.problem == "TopK"
    assert pickle.loads(pickle.dumps(env)).unwrapped.spec.id == "bandit_envs/Threshold-v0"


@pytest.mark.parametrize("value", ["no", 1, 0, None, 2.5, [True]])
@pytest.mark.parametrize("name", ["crowdsourcing(gaussian)", "katz-samuels2018-4(normalise)"])
def test_switches_of_instances_are_true_or_false(name: str, value: Any, data_folder: Any) -> None:
    name, _, switch = name.rstrip(")").partition("(")
    with pytest.raises(ValueError, match=f"{switch} must be True or False, got"):
        gym.make("bandit_envs/Feasible-v0", instance=f"{name}({switch}={value!r})")


@pytest.mark.parametrize("value", ["no", 1, 0, 2.5, [True], np.int64(1)])
def test_progress_is_true_false_or_none(value: Any) -> None:
    tiny = {"steps": 10, "num_envs": 2, "held_out": 2, "checkpoints": 1}
    calls = [
        lambda: agents.evaluate("lsa", "Threshold", episodes=2, progress=value),
        lambda: figures.reproduce("tao2019-figure-1", episodes=1, progress=value),
    ]
    if importlib.util.find_spec("stable_baselines3"):
        calls += [
            lambda: agents.train(**tiny, progress=value),
            lambda: agents.evolve("Threshold", generations=1, population=4, progress=value),
        ]
    for call in calls:
        with pytest.raises(ValueError, match="progress must be True or False, got"):
            call()


NOT_REAL = [
    *(np.complex128(0.5 + 3j), np.timedelta64(3), np.timedelta64("NaT"), np.datetime64(3, "s"), np.void(b"123")),
    *(np.array("0.5", object), np.array(True, object), 0.5 + 0j, "0.5", b"1", None),
]


@pytest.mark.parametrize("value", NOT_REAL, ids=repr)
def test_numbers_are_real_numbers(value: Any) -> None:
    for name in ("threshold", "tolerance", "pull_cost"):
        with pytest.raises((ValueError, TypeError), match=name):
            gym.make("bandit_envs/Threshold-v0", **{name: value})
    with pytest.raises(ValueError, match="mean must be numbers"):
        gym.make("bandit_envs/Threshold-v0", instance={"law": "bernoulli", "mean": [0.5, value]})
    env = gym.make("bandit_envs/Threshold-v0")
    for parameters in ({"name": "lsa", "alpha": value}, {"name": "ucbe", "a": 1.0, "H": value}):
        if value is not None or "H" not in parameters:
            with pytest.raises(ValueError, match="alpha|H must be a number"):
                agents.make(parameters.pop("name"), env, **parameters)
    assert gym.make("bandit_envs/Threshold-v0", threshold=Fraction(1, 4)).unwrapped.task.parameters["threshold"] == 0.25  # type: ignore[attr-defined]


def test_small_things_that_were_taken() -> None:
    with pytest.raises(ValueError, match="an answer of BestArm holds 1 arms, got k=3"):
        agents.make("lucb(k=3)", gym.make("bandit_envs/BestArm-v0", delta=0.1, max_pulls=10))
    with pytest.raises(ValueError, match=r"alpha must be a number in \(0, 1e\+100\]"):
        agents.make("lsa(alpha=1e308)", gym.make("bandit_envs/Threshold-v0"))
    with pytest.raises(ValueError, match="trust must be True or False"):
        agents.evaluate("lsa", "bandit_envs/Threshold-v0", episodes=1, trust="x")  # type: ignore[arg-type]
    for name in ("id", "wrappers", "vector_kwargs"):
        with pytest.raises(ValueError, match=f"evaluate chooses '{name}' itself"):
            agents.evaluate("lsa", "bandit_envs/Threshold-v0", episodes=1, env_kwargs={name: None})


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (TimeoutError("too late"), TimeoutError, "^too late$"),
        (MemoryError("full"), MemoryError, "^full$"),
        (FileNotFoundError("gone"), FileNotFoundError, "^gone$"),
        (IndexError("index 9"), ValueError, "uniform: .*: IndexError: index 9"),
        (RuntimeError("shapes"), ValueError, "uniform: .*: RuntimeError: shapes"),
    ],
)
def test_only_errors_that_numbers_bring_about_are_laid_to_them(
    monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[Exception], message: str
) -> None:
    """What has failed for another reason, as by running out of time, is told as it is, at first and later."""

    def fail(*_: Any) -> Any:
        raise error

    env = gym.make("bandit_envs/Threshold-v0", budget=100)
    agent, (observation, _) = agents.make("uniform", env), env.reset(seed=0)
    _, state = agent.predict(observation)
    monkeypatch.setattr(type(agent), "choose", fail)
    with pytest.raises(raised, match=message):
        agent.predict(observation)
    if raised is not ValueError:
        with pytest.raises(raised, match=message):
            agent.predict(observation, state)
