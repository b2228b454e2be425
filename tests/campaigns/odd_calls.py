"""Odd calls of constructors, steps, resets and agents: what hypothesis draws, and what must hold of them.

PYTHONPATH=tests/support python tests/campaigns/odd_calls.py     thousands of each; the default tests make a hundred
"""

from __future__ import annotations

import copy
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rollouts import batch, full, same

import agents
import bandit_envs
from agents.core.parameters import taken
from agents.registry import LEARNED, recipe_of
from bandit_envs import PROBLEMS, PureExplorationEnv, PureExplorationVectorEnv, Task
from bandit_envs.instances.lookup import find

HUGE = 10**400


THREE = {"distribution": "gaussian", "mean": [0.0, 0.5, 1.0]}


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


SOME = np.array([True, False])


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
    "control": st.one_of(st.integers(0, 2), st.sampled_from(["1", "a", -1])),
    "margin": st.one_of(st.none(), st.floats(-0.5, 0.5), extreme),
    "lift": st.one_of(st.none(), st.floats(-0.5, 0.5), extreme),
    "guardrails": st.one_of(st.just([]), st.lists(st.floats(-0.5, 0.5), max_size=2), st.lists(extreme, max_size=2)),
    "expected": st.one_of(st.none(), st.just([0.25, 0.75]), st.lists(extreme, max_size=3)),
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
    bandit_envs.BetterThanControl: {
        "control": 1, "margin": 0.1, "tolerance": 0.1, "guardrails": [0.1], "expected": [0.2, 0.4],
    },
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


def odd_parameters(name: str, problem: str, parameter: str) -> None:
    """An agent takes a value, and can decide, or refuses it by ValueError or TypeError, which name the parameter.

    A quarter of the values for each parameter, the next quarter for the next one.
    """
    values, tried = ODD[TAKEN.index((name, problem, parameter)) % 4 :: 4], 0
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


def main() -> None:
    often = settings(deadline=None, derandomize=False, max_examples=20_000)
    often(given(calls())(survives))()
    often(given(st.sampled_from([*ENVS]), st.one_of(slotted, parts))(steps))()
    for row in TAKEN:
        odd_parameters(*row)


if __name__ == "__main__":
    main()
