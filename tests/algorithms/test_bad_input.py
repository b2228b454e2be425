"""Bad input raises ValueError (an unknown keyword: TypeError) that names it and what is allowed, and alters nothing."""

from __future__ import annotations

import copy
import functools
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
from refusals import refused, table
from rollouts import batch, full, mask, same

import agents
import bandit_envs
from agents.core.parameters import taken
from agents.registry import LEARNED, recipe_of
from bandit_envs import PROBLEMS, PureExplorationEnv, PureExplorationVectorEnv, Task
from bandit_envs.instances.lookup import find

HUGE = 10**400
THREE = {"distribution": "gaussian", "mean": [0.0, 0.5, 1.0]}


# --- the constructor --------------------------------------------------------------------------------------------------


def rows(call: Any, given: list[tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Rows of a table: what is given to `call`, and the words of its error."""
    named = (re.sub(" at 0x[0-9a-f]+", "", repr(one))[:60] for one, *_ in given)  # the same in every process
    return {
        f"{i}: {name}": (functools.partial(call, one), *words)
        for i, (name, (one, *words)) in enumerate(zip(named, given, strict=True))
    }


def instance(form: Any) -> Any:
    return PureExplorationEnv("Threshold", instance=form)


test_instance_names = table(
    rows(
        instance,
        [
            ("tao2019-4", "'tao2019-4'", "'tao2019-3'", "banners"),
            ("Sampler(arms=3)", "'Sampler'", "'sampler'"),
            ("", "instance", "''"),
            ("sampler(arms=1)", "arms", 2, 16777216, 1),
            ("sampler(arm=2)", "sampler", "'arm'"),
            ("sampler(3)", "'sampler(3)'", "'name'"),
            *[
                (f"sampler({odd}", "'name'")
                for odd in ("arms=", "arms=2)(arms=3)", "arms=2, arms=3)", "**{'arms': 2})", "arms=print)", "(" * 5000)
            ],
            ("sampler(arms={[]: 1})", "'name'"),
            ("sampler(distribution='poisson')", "distribution", "'bernoulli'", "'uniform'", "'poisson'"),
            ("sampler(dimensions=0)", "dimensions", 4096, 0),
            ("sampler(distribution='gaussian', spread=0)", "spread", 0),
            ("sampler(mean=0.5)", "mean", "uniform", 0.5),
            ("sampler(mean={'uniform': 0.5})", "uniform", 0.5),
            ("sampler(mean={'uniform': [1, 0]})", "low", "high", "1.0"),
            ("sampler(mean={'uniform': [0, 2]})", "Bernoulli", 0, 1, "2.0"),
            ("sampler(mean={'normal': [0, 1]})", "Bernoulli"),
            ("sampler(distribution='gaussian', mean={'normal': [0, 0]})", "sd"),
            ("sampler(mean={'choice': []})", "choice"),
            ("sampler(mean={'uniform': [0, 0.5, 1]})", "uniform", 2),
            ("sampler(mean={'uniform': [0, 1], 'choice': [1]})", "mean"),
            ("sampler(mean={'uniform': ['0', '1']})", "uniform", "'0'"),
            ("tao2019-1(number=2)", "tao2019-1", "'number'"),
        ],
    )
)

test_instance_forms = table(
    rows(
        instance,
        [
            ({}, "'distribution'", None),
            ({"distribution": "cauchy", "mean": [0, 1]}, "'distribution'", "'cauchy'"),
            ({"distribution": ["bernoulli"]}, "'distribution'"),
            ({"distribution": "bernoulli"}, "bernoulli", "'mean'"),
            ({"distribution": "bernoulli", "means": [0, 1]}, "bernoulli", "'means'"),
            ({"distribution": "bernoulli", "mean": [0.5]}, 2, 16777216, 1),
            ({"distribution": "bernoulli", "mean": [0.5, np.nan]}, "mean", "nan", "[1]"),
            *[
                ({"distribution": "bernoulli", "mean": bad}, "mean")
                for bad in ([0.5, None], ["0.5", "0.6"], [0.5, HUGE], [[0.5], [0.5, 0.6]])
            ],
            ({"distribution": "bernoulli", "mean": [0.5, 2]}, "mean", 0, 1, 2),
            ({"distribution": "gaussian", "mean": [0, 1], "sd": -1}, "sd", -1),
            ({"distribution": "categorical", "values": [1, 2], "probabilities": [[1, 1]]}, 2, 16777216, 1),
            ({"distribution": "resampled", "rows": {}}, "rows", 2),
            ({"sampler": 3}, "'sampler'", 3),
            ({"sampler": {"arms": "3"}}, "arms", "'3'"),
            ({"sampler": {}, "distribution": "bernoulli"}, "bernoulli", "'sampler'"),
            *[(odd, "instance") for odd in (5, b"sampler", np.array([0.1, 0.9]))],
        ],
    )
)


def env(given: tuple[Any, dict[str, Any]]) -> Any:
    return PureExplorationEnv(given[0], **given[1])


test_settings = table(
    rows(
        env,
        [
            (("Treshold", {}), "'Treshold'", "'Threshold'", "AllGood"),
            (("topk", {}), "'TopK'"),
            ((None, {}), "problem", None),
            ((["TopK"], {}), "problem"),
            *[
                (("Threshold", {"budget": bad}), "budget", 1, 1099511627775)
                for bad in (0, 2.0, "10", True, 2**40, HUGE, [10], np.nan)
            ],
            *[(("Threshold", {"delta": bad}), "delta", 0, 1) for bad in (0, 1, np.nan, "0.1", True, HUGE, [0.1], 1j)],
            *[(("Threshold", {"max_pulls": bad}), "max_pulls", 1, 1099511627775) for bad in (0, 1.5, "9")],
            *[
                (("Threshold", {"pull_cost": bad}), "pull_cost", 0, "1e+100")
                for bad in (-0.1, 1e308, np.inf, None, "0")
            ],
            *[(("Threshold", {"shuffle_arms": bad}), "shuffle_arms", True, False) for bad in (1, "yes")],
            (("Threshold", {"reward": "f1"}), "reward", "'score'", "'correct'", "'gain'", "'f1'"),
            (("Threshold", {"actions": None}), "actions", "'arm'", "'full'", None),
            (("Threshold", {"observation": ["features"]}), "observation", "'history'", "'belief'"),
            (("Threshold", {"render_mode": "window"}), "render_mode", None),
            (("Threshold", {"threshold": np.nan}), "threshold", "nan"),
            (("Threshold", {"threshold": 1.5}), "threshold", "0.0", "1.0", 1.5),
            (("Threshold", {"tolerance": -1}), "tolerance", "inf", -1),
            (("Threshold", {"instance": "sampler(dimensions=2)"}), "Threshold", 2),
            (("AllGood", {"epsilon": 0}), "epsilon", "inf", 0),
            (("AllGood", {"epsilon": 1, "multiplicative": True}), "epsilon", 0, 1),
            (("AllGood", {"slack": "0"}), "slack", "'0'"),
            (("AllGood", {"multiplicative": 1}), "multiplicative", True, False),
            (
                ("AllGood", {"multiplicative": True, "instance": {"distribution": "gaussian", "mean": [-1, 0]}}),
                "mean",
                0,
            ),
            *[
                (("AllGood", {"multiplicative": True, "instance": f"sampler({bad})"}), "mean", "every")
                for bad in ("distribution='gaussian', mean={'normal': [5, 1]}", "mean={'choice': [0, 1]}")
            ],
            *[(("TopK", {"k": bad}), "k", 1) for bad in (0, 10, 2.0, "2", HUGE)],
            (("TopK", {"k": 2, "instance": "sampler(arms=2)"}), "k", "[1, 1]", 2),
            (("TopK", {"epsilon": -0.1}), "epsilon", "inf", -0.1),
            (("TopK", {"criterion": "all"}), "criterion", "'each'", "'all'"),
            (("Feasible", {"A": [[1, 0, 0]], "b": [1]}), "A", 3, 2),
            (("Feasible", {"A": [[1, 0]], "b": [1, 2]}), "b"),
            (("Feasible", {"A": "ab"}), "A"),
            (("Feasible", {"instance": "sampler(dimensions=2)"}), "A", "b"),
            (("Feasible", {"instance": "sampler(dimensions=2)", "A": [[1, 0]]}), "b"),
            (("Feasible", {"instance": "katz-samuels2018-4(normalise=1)"}), "normalise", True, False),
            (("Threshold", {"bugdet": 3}), TypeError, "Threshold", "'bugdet'", "budget"),
            (("Threshold", {"k": 2}), TypeError, "Threshold", "'k'"),
        ],
    )
)


def vector(kwargs: dict[str, Any]) -> Any:
    return PureExplorationVectorEnv(**{"num_envs": 2, "problem": "Threshold"} | kwargs)


test_settings_of_the_vector_environment = table(
    rows(
        vector,
        [
            ({"num_envs": 0}, "num_envs", 1, 0),
            ({"num_envs": 2.0}, "num_envs", "2.0"),
            ({"autoreset_mode": "SAME_STEP"}, "autoreset_mode", "NEXT_STEP", "'SameStep'", "'SAME_STEP'"),
            ({"autoreset_mode": np.array(["NextStep", "SameStep"])}, "autoreset_mode", "DISABLED"),
            ({"autoreset_mode": None}, "autoreset_mode", None),
            ({"copy": 1}, "copy", True, False, 1),
            ({"render_mode": "ansi"}, "render_mode", None, "'ansi'"),
            ({"max_episode_steps": 5}, "max_pulls", "max_episode_steps=5"),
            ({"budget": 0}, "budget", 0),
            ({"instance": {"distribution": "cauchy"}}, "'distribution'", "'cauchy'"),
            ({"bugdet": 3}, TypeError, "'bugdet'"),
        ],
    )
)


@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
def test_gymnasium_asks_for_keywords_and_reads_pythons_own_error(make: Any) -> None:
    """TorchRL does."""
    with refused("'frameskip'", "budget", "unexpected keyword argument", error=TypeError):
        make("bandit_envs/TopK-v0", frameskip=4)


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


def rejected(given: tuple[Any, ...]) -> None:
    """Take a step of an environment of this form; whatever it raises, nothing is altered."""
    action, *form = given
    env = begun(*form)
    before = state(env)
    try:
        env.step(action)
    finally:
        assert same(state(env), before)


RAGGED = [0, [1]]
ARMS: list[tuple[Any, ...]] = [  # for a single arm: none is an integer of shape () in 0 .. 3
    *[(-1, 2, 3, -1), (4, 4), (1.0, "float64", "1.0"), (np.float32(1), "float32"), ("1", "'1'")],
    (None, "object", None),
    *[(True, "bool"), ([1], "()", "(1,)"), ([], "()"), (RAGGED, "()"), ({}, "empty"), (1j, "complex128")],
    *[(2**70, "arm"), (HUGE, "arm"), (np.uint64(2**64 - 1), "integers"), (object(), "integers")],
]
ACTION = full(1, 1, K=3)
BOTH = {"arm": np.array([0, 1]), "times": np.array([1, 2]), "answer": np.zeros((2, 3), np.int8)}

test_arm_actions = table(
    rows(
        rejected,
        [
            *[((action,), *words) for action, *words in ARMS],
            *[
                ((action, "arm", 2), *words)
                for action, *words in [
                    *[(0, "(2,)", "()"), ([0, 1, 2], "(2,)", "(3,)"), (None, "(2,)"), ([0.0, 1.0], "float64")],
                    *[([0, None], "object"), ([True, False], "bool"), (RAGGED, "(2,)"), ([0, -1], -1, "slot", 1)],
                    *[([4, 0], 4, "slot", 0), (np.array([0, 2**63], np.uint64), "uint64"), ([[0, 1]], "(2,)")],
                ]
            ],
            (({"arm": 0},), "arm", "actions='full'"),
            (({"arm": 0}, "arm", 2), "arm", "(2,)", "actions='full'"),
        ],
    )
)

test_full_actions = table(
    rows(
        rejected,
        [
            *[
                ((ACTION | part, "full"), *words)
                for part, *words in [
                    *[({"arm": bad}, "arm") for bad in (4, 1.0, "1", None, True, [1], HUGE)],
                    *[({"times": bad}, "times", 1, 2147483647, bad) for bad in (0, -1, 2**31)],
                    *[({"times": bad}, "times") for bad in (1.0, [1], None, 2**70, True, "1")],
                    *[({"answer": bad}, "answer", "(1, 3)") for bad in (None, [0, 1], [0.0, 1.0, 1.0], [0, HUGE, 1])],
                    ({"answer": [0, [1], 1]}, "answer", "[0, [1], 1]"),
                ]
            ],
            *[
                ((BOTH | part, "full", 2), *words)
                for part, *words in [
                    *[({"arm": [0, 4]}, 4, "slot", 1), ({"arm": 0}, "arm", "(2,)"), ({"times": [1, 0]}, 0, "slot", 1)],
                    *[({"times": [1.0, 1.0]}, "times"), ({"times": [[1], [1]]}, "times", "(2,)")],
                    *[({"answer": bad}, "answer", "(2, 3)") for bad in (mask(3), np.zeros((2, 3)), None)],
                ]
            ],
            *[
                ((full(3, 1, answer, K=3), "full"), low, high)
                for answer, low, high in [
                    *[([0, 1, 2], 0, 2), ([-1, 1, 1], -1, 1), (np.full(3, 255, np.uint8), 255, 255)],
                    (np.full(3, 2**63, np.uint64), 2**63, 2**63),
                ]
            ],
            ((BOTH | {"arm": np.array([0, 3]), "answer": np.array([[0] * 3, [0, 1, 2]])}, "full", 2), 2),
            *[
                ((action, "full", slots), "arm", "times", "answer")
                for action in (0, None, {}, {"arm": 0, "times": 1}, {"arms": 0, "times": 1}, RAGGED)
                for slots in (None, 2)
            ],
            ((full(3, 1, mask(3, 0), K=3), "full", None, "TopK"), "TopK", 2, 1),
            ((batch([full(3, 1, mask(3, 0, 1)), full(3, 1, mask(3, 0, 1, 2))]), "full", 2, "TopK"), "TopK", 2, 3),
        ],
    )
)


SOME = np.array([True, False])


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        *[({"seed": bad}, ["seed", repr(bad)]) for bad in (-1, 1.0, "1", True)],
        ({"seed": [1]}, ["slot", 2, 1]),
        *[({"seed": [1, bad]}, [repr(bad)]) for bad in (-2, "a", 1.5, [2])],
        ({"options": 3}, ["options", 3]),
        ({"options": {"episode": -1}}, [0, 4294967295, -1]),
        ({"options": {"episode": [0, 2**32]}}, [4294967295, 2**32]),
        ({"options": {"episode": [0, 1, 2]}}, ["(2,)", "(3,)"]),
        *[({"options": {"episode": bad}}, ["episode"]) for bad in ([0.0, 1.0], "0", RAGGED, True)],
        *[
            ({"options": {"reset_mask": bad}}, ["reset_mask", "bool", "(2,)"])
            for bad in ([True, False], np.array([1, 0]), np.ones(3, bool))
        ],
        ({"options": {"reset_mask": np.zeros(2, bool)}}, ["slot"]),
        ({"seed": [1, -2], "options": {"reset_mask": SOME}}, [-2]),
        ({"seed": 5, "options": {"episode": [-1, 0]}}, [-1]),
    ],
)
def test_vector_resets(rules: dict[str, Any], words: list[Any]) -> None:
    env = begun(slots=2)
    before = state(env)
    with refused(*words):
        env.reset(**rules)
    assert same(state(env), before)
    fresh = PureExplorationVectorEnv(2, problem="Threshold")
    with refused(*words):
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
DISTRIBUTIONS = {  # parameters that are right more often than not
    "bernoulli": {"mean": means},
    "gaussian": {"mean": means, "sd": st.one_of(st.floats(0.1, 2), extreme)},
    "uniform": {"mean": means, "width": st.one_of(st.floats(0.1, 2), extreme)},
    "categorical": {
        "values": st.one_of(st.just([1, 2, 4]), st.lists(extreme, max_size=3, unique=True).map(sorted)),
        "probabilities": st.one_of(st.just([[1, 2, 3], [0, 1, 0]]), st.lists(st.lists(extreme))),
    },
    "resampled": {"rows": st.one_of(st.just([[1, 2], [3]]), st.lists(st.lists(extreme, min_size=1), min_size=2))},
}
distributions = st.sampled_from([*DISTRIBUTIONS]).flatmap(
    lambda distribution: st.fixed_dictionaries({"distribution": st.just(distribution), **DISTRIBUTIONS[distribution]})
)
samplers = st.fixed_dictionaries(
    {"distribution": st.sampled_from(["bernoulli", "gaussian", "uniform"])},
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
instances = st.one_of(distributions, samplers.map(lambda form: {"sampler": form}), st.just("sampler(arms=4)"))
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


broken = settings(deadline=None, derandomize=True, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
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


RIGHT: dict[Any, dict[str, Any]] = {  # calls that are right, for whatever can be made without an environment
    bandit_envs.Task: {
        "problem": "TopK", "parameters": {"k": 2}, "K": 5, "D": 1, "budget": 9, "delta": 0.1, "max_pulls": 9,
        "pull_cost": 0.1, "distribution": "bernoulli", "support": (0.0, 1.0), "sigma": 0.5, "actions": "arm",
        "observation": "features", "pull": "arm",
    },
    bandit_envs.Bernoulli: {"mean": [0.1, 0.9]},
    bandit_envs.Gaussian: {"mean": [0.1, 0.9], "sd": 2.0},
    bandit_envs.Uniform: {"mean": [0.1, 0.9], "width": 2.0},
    bandit_envs.Categorical: {"values": [1, 2], "probabilities": [[1, 2], [3, 4]]},
    bandit_envs.Resampled: {"rows": [[1, 2], [3]]},
    bandit_envs.Tabulated: {"quantiles": [[1, 2], [3, 4]]},
    bandit_envs.Instance: {"arms": bandit_envs.Bernoulli([0.1, 0.9]), "name": "mine", "defaults": {"TopK": {"k": 1}}},
    bandit_envs.Sampler: {
        "distribution": "gaussian", "arms": 3, "mean": {"normal": [0, 1]}, "dimensions": 1, "spread": 1.0,
    },
    bandit_envs.Polyhedra: {
        "distribution": "gaussian", "arms": 3, "dimensions": 2, "rows": 4, "seed": 0, "reach": 0.5, "spread": 1.0,
        "budget": 9,
    },
    bandit_envs.Polyhedron: {"A": [[1, 0]], "b": [1], "normalise": True},
    bandit_envs.Threshold: {"threshold": 0.5, "tolerance": 0.1},
    bandit_envs.AllGood: {"epsilon": 0.1, "multiplicative": False, "slack": 0.1},
    bandit_envs.TopK: {"k": 2, "epsilon": 0.1, "criterion": "each"},
    bandit_envs.BestArm: {"epsilon": 0.1, "criterion": "each"},
    bandit_envs.Feasible: {"A": [[1, 0]], "b": [1], "tolerance": 0.1, "normalise": True},
    bandit_envs.kernels.root_number: {"seed": 3},
    bandit_envs.kernels.number: {"name": "x", "value": 1.0},
    bandit_envs.kernels.integer: {"name": "x", "value": 1, "low": 0, "high": 3},
    bandit_envs.kernels.flag: {"name": "x", "value": True},
    bandit_envs.kernels.choice: {"name": "x", "value": "a", "allowed": ["a", "b"]},
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


ONCE = list({(name, parameter): (name, problem, parameter) for name, problem, parameter in reversed(TAKEN)}.values())


@pytest.mark.parametrize(
    ("name", "problem", "parameter"),
    [row if row in ONCE else pytest.param(*row, marks=pytest.mark.slow) for row in TAKEN],
    ids=["-".join(row) for row in TAKEN],
)
def test_odd_parameters_of_agents(
    name: str, problem: str, parameter: str, monkeypatch: pytest.MonkeyPatch, recwarn: Any
) -> None:
    """An agent takes a value, and can decide, or refuses it by ValueError or TypeError, which name the parameter.

    Half of the values for each parameter, the other half for the next one.
    """
    monkeypatch.setattr("agents.thresholding.dp_index.HORIZON", 40)
    values, tried = ODD[TAKEN.index((name, problem, parameter)) % 2 :: 2], 0
    for rules in PLAYED[problem]:
        env = gym.make(f"bandit_envs/{problem}-v0", actions="full", **rules)
        own = NEEDS.get(name, {}) if problem in ("Threshold", "AllGood") else {}
        if attempt(agents.make, name, env, **own)[1] is not None:
            continue  # it does not run under these rules
        for value in values[::6] if tried else values:
            agent, error = attempt(agents.make, name, env, **own | {parameter: value})
            tried += 1
            if error is None:
                _, error = attempt(agent.predict, env.reset(seed=1)[0])
            named = "parameters" if parameter == "genes" else parameter  # its old spelling
            assert error is None or named in str(error), (value, error)
    assert tried >= len(values)
    idle = rf"{name}: .* has no effect|ocba-m begins with n0=|fareast: its first rounds are long"
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
    for name in ("lsa", "sar", "opt-kg", "ucbe", "uniform", "evidence"):
        agent = agents.make(name, env, **NEEDS.get(name, {}))
        assert agent.begin_anew(lists) is not None
        if not agent.resumes:
            continue
        wanted = agent.predict(arrays)[0]
        assert np.array_equal(agent.predict(lists)[0], wanted)
        for part in lists:  # some as lists, others as arrays
            assert np.array_equal(agent.predict({**arrays, part: lists[part]})[0], wanted)
        assert np.array_equal(agent.recommend(lists), agent.recommend(arrays))


def predict(given: tuple[dict[str, Any], int]) -> None:
    """Hand an odd observation to an agent, of one episode, or of several."""
    part, episodes = given
    seen = SEEN if episodes == 0 else {name: np.stack([value] * episodes) for name, value in SEEN.items()}
    agents.make("lsa", gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=3)", budget=10)).predict(seen | part)


test_observations_that_no_environment_gives = table(
    rows(
        predict,
        [
            *[
                (({"pulls": bad}, 0), "pulls", "integer")
                for bad in (
                    [2.0, 1.0, 0.0],
                    "210",
                    [True] * 3,
                    None,
                    [[2, 1], [0]],
                    np.array([2.0, 1, 0]),
                    [2, HUGE, 0],
                )
            ],
            (({"pulls": [2, -1, 0]}, 0), "pulls", 0, -1),
            (({"pulls": [2, 1]}, 0), "pulls", 3, "(1, 2)"),
            (({"pulls": 3}, 0), 3, "arms"),
            *[(({"mean": bad}, 0), "mean", "numbers") for bad in ("x", None, [0.5, None, 0], {}, [[1], [1, 2]])],
            *[(({"mean": [bad, 1.0, 0.0]}, 0), "mean", "support", 0, 1, bad) for bad in (7.0, -0.1, math.nan)],
            (({"mean": [0.5, 1.0]}, 0), "mean", "(1, 3)", "(1, 2)"),
            (({"total": [0.5]}, 0), "total", "shape"),
            (({"variance": [1, 2, 3, 4]}, 0), "variance", "shape"),
            (({"remaining": 7}, 0), "remaining", "(1, 1)", "(1,)"),
            (({"remaining": [7.5]}, 0), "remaining", "integer"),
            (({"public_seed": [1, 2]}, 0), "public_seed", "shape"),
            *[
                (({"remaining": bad}, 2), "remaining", "(2, 1)", str(bad.shape))
                for bad in (np.array(7), np.array([[7]]), np.array([7, 7]))
            ],
        ],
    )
)


def test_means_of_arms_never_pulled_and_of_unbounded_arms_may_be_anything() -> None:
    predict(({"mean": [0.5, 1.0, 7.0]}, 0))
    predict(({"mean": [0.5, np.nextafter(1.0, 2.0), 0.0]}, 0))
    wide = gym.make("bandit_envs/Threshold-v0", instance=THREE, budget=10)
    agents.make("lsa", wide).predict(SEEN | {"mean": [0.5, 1e9, 0.0]})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_features_are_finite(value: float) -> None:
    """Defect: a single observation and a batch of it brought about two different actions."""
    pytest.importorskip("stable_baselines3")
    env = gym.make("bandit_envs/TopK-v0", instance="sampler(arms=5)", k=2, budget=50, observation="belief")
    agent, (features, _) = agents.make("ppo", env), env.reset(seed=0)
    assert agent.predict(features)[0] == agent.predict(features[None])[0][0]
    features[3] = value
    for observation in (features, features[None]):
        with refused("observations", "finite", value):
            agent.predict(observation)
    with refused("'belief'", "dict"):
        agent.predict(SEEN)
    with refused("algorithm"):  # a stored network is no model of Stable-Baselines3
        agent.save("nowhere")


def test_an_agent_with_other_parameters_refuses_the_state() -> None:
    """Defect: its decisions were a mixture of both."""
    envs = gym.make_vec("bandit_envs/Threshold-v0", 3, budget=50)
    (observation, _), one, other = envs.reset(seed=0), agents.make("lsa", envs), agents.make("lsa(alpha=0.2)", envs)
    action, state = one.predict(observation)
    observation, *_ = envs.step(action)
    with refused("LSA(alpha=0.2)", "LSA()"):
        other.predict(observation, state)
    agents.make("lsa", envs).predict(observation, state)


def test_the_problem_of_an_id_cannot_be_another_one() -> None:
    """Defect: the id of Threshold made TopK."""
    for make in (gym.make, gym.make_vec):
        with refused("Threshold", "problem='TopK'"):
            make("bandit_envs/Threshold-v0", problem="TopK")
    env = gym.make("bandit_envs/Threshold-v0", problem="Threshold", threshold=0.3)
    assert gym.make(gym.spec("bandit_envs/TopK-v0")).unwrapped.task.problem == "TopK"  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(env)).unwrapped.spec.id == "bandit_envs/Threshold-v0"


@pytest.mark.parametrize("value", ["no", 1, None])
def test_switches_of_data_sets_are_true_or_false(value: Any, data_folder: Any) -> None:
    with refused("gaussian", True, False):
        gym.make("bandit_envs/Feasible-v0", instance=f"crowdsourcing(gaussian={value!r})")


NOT_REAL = [np.complex128(1 + 3j), np.timedelta64("NaT", "s"), np.void(b"123"), np.array("0.5", object), 0.5 + 0j, None]


@pytest.mark.parametrize("value", NOT_REAL, ids=repr)
def test_numbers_are_real_numbers(value: Any) -> None:
    with refused("threshold"):
        gym.make("bandit_envs/Threshold-v0", threshold=value)
    with refused("mean"):
        gym.make("bandit_envs/Threshold-v0", instance={"distribution": "bernoulli", "mean": [0.5, value]})
    with refused("alpha"):
        agents.make("lsa", gym.make("bandit_envs/Threshold-v0"), alpha=value)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        *[(TimeoutError("too late"), TimeoutError), (FileNotFoundError("gone"), FileNotFoundError)],
        *[
            (IndexError("index 9"), ValueError),
            (RuntimeError("shapes"), ValueError),
            (MemoryError("full"), MemoryError),
        ],
    ],
)
def test_only_errors_that_numbers_bring_about_are_laid_to_them(
    monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[Exception]
) -> None:
    """What has failed for another reason, as by running out of time, is told as it is, at first and later."""

    def fail(*_: Any) -> Any:
        raise error

    env = gym.make("bandit_envs/Threshold-v0", budget=100)
    agent, (observation, _) = agents.make("uniform", env), env.reset(seed=0)
    _, state = agent.predict(observation)
    monkeypatch.setattr(type(agent), "choose", fail)
    if raised is ValueError:
        with refused("uniform", type(error).__name__, str(error)):
            agent.predict(observation)
        return
    for one in (None, state):
        with refused(str(error), error=raised):
            agent.predict(observation, one)
