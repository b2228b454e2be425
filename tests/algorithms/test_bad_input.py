"""Bad input raises ValueError (an unknown keyword: TypeError) that names it and what is allowed, and alters nothing."""

from __future__ import annotations

import functools
import math
import pickle
import re
from typing import Any

import gymnasium as gym
import numpy as np
import odd_calls
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_calls import HUGE, RIGHT, SOME, attempt, begun, junk, slotted, state
from plays import seen
from refusals import refused, table
from rollouts import batch, full, mask, same

import agents
from bandit_envs import PureExplorationEnv, PureExplorationVectorEnv, Task
from bandit_envs.instances.lookup import find

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


BAD_MEANS: Any = [0.5, None], ["0.5", "0.6"], [0.5, HUGE], [[0.5], [0.5, 0.6]]

test_instances = table(
    rows(
        instance,
        [
            ("tao2019-4", "'tao2019-4'", "'tao2019-3'", "banners"),
            ("Sampler(arms=3)", "'Sampler'", "'sampler'"),
            ("", "instance", "''"),
            ("sampler(arms=0)", "arms", 1, 16777216, 0),
            ("sampler(arm=2)", "sampler", "'arm'"),
            ("sampler(3)", "'sampler(3)'", "'name'"),
            *[(f"sampler({odd}", "'name'") for odd in ("arms=", "arms=2)(arms=3)", "**{'arms': 2})", "(" * 5000)],
            ("sampler(distribution='poisson')", "distribution", "'bernoulli'", "'uniform'", "'poisson'"),
            ("sampler(dimensions=0)", "dimensions", 4096, 0),
            ("sampler(distribution='gaussian', spread=0)", "spread", 0),
            ("sampler(mean=0.5)", "mean", "uniform", 0.5),
            ("sampler(mean={'uniform': [1, 0]})", "low", "high", "1.0"),
            ("sampler(mean={'uniform': [0, 2]})", "Bernoulli", 0, 1, "2.0"),
            ("sampler(mean={'normal': [0, 1]})", "Bernoulli"),
            ("sampler(distribution='gaussian', mean={'normal': [0, 0]})", "sd"),
            ("sampler(mean={'uniform': [0, 1], 'choice': [1]})", "mean"),
            ("sampler(mean={'uniform': ['0', '1']})", "uniform", "'0'"),
            ("tao2019-1(number=2)", "tao2019-1", "'number'"),
            ({}, "'distribution'", None),
            ({"distribution": "cauchy", "mean": [0, 1]}, "'distribution'", "'cauchy'"),
            ({"distribution": "bernoulli"}, "bernoulli", "'mean'"),
            ({"distribution": "bernoulli", "means": [0, 1]}, "bernoulli", "'means'"),
            *[({"distribution": "bernoulli", "mean": bad}, "mean") for bad in BAD_MEANS],
            ({"distribution": "resampled", "rows": {}}, "rows", "one arm"),
            ({"sampler": 3}, "'sampler'", 3),
            ({"sampler": {"arms": "3"}}, "arms", "'3'"),
            ({"sampler": {}, "distribution": "bernoulli"}, "bernoulli", "'sampler'"),
            *[(odd, "instance") for odd in (5, b"sampler", np.array([0.1, 0.9]))],
        ],
    )
)


def env(given: tuple[Any, dict[str, Any]]) -> Any:
    return PureExplorationEnv(given[0], **given[1])


def settings_of(problem: str, name: str, values: Any, *words: Any) -> list[tuple[Any, ...]]:
    """Rows of a keyword that has bad values."""
    return [((problem, {name: bad}), name, *words) for bad in values]


NEGATIVE, LARGEST = {"distribution": "gaussian", "mean": [-1, 0]}, 1099511627775
NO_SHARES = "sampler(distribution='gaussian', mean={'normal': [5, 1]})", "sampler(mean={'choice': [0, 1]})"

test_settings = table(
    rows(
        env,
        [
            (("Treshold", {}), "'Treshold'", "'Threshold'", "AllGood"),
            (("topk", {}), "'TopK'"),
            ((None, {}), "problem", None),
            ((["TopK"], {}), "problem"),
            *settings_of("Threshold", "budget", (0, 2.0, "10", True, 2**40, HUGE, [10], np.nan), 1, LARGEST),
            *settings_of("Threshold", "delta", (0, 1, np.nan, "0.1", True, HUGE, [0.1], 1j), 0, 1),
            *settings_of("Threshold", "max_pulls", (0, 1.5, "9"), 1, LARGEST),
            *settings_of("Threshold", "pull_cost", (-0.1, 1e308, np.inf, None, "0"), 0, "1e+100"),
            *settings_of("Threshold", "shuffle_arms", (1, "yes"), True, False),
            (("Threshold", {"reward": "f1"}), "reward", "'score'", "'correct'", "'gain'", "'f1'"),
            (("Threshold", {"actions": None}), "actions", "'arm'", "'full'", None),
            (("Threshold", {"observation": ["features"]}), "observation", "'history'", "'relative'"),
            (("Threshold", {"render_mode": "window"}), "render_mode", None),
            (("Threshold", {"threshold": np.nan}), "threshold", "nan"),
            (("Threshold", {"threshold": 1.5}), "threshold", "0.0", "1.0", 1.5),
            (("Threshold", {"tolerance": -1}), "tolerance", "inf", -1),
            (("Threshold", {"instance": "sampler(dimensions=2)"}), "Threshold", 2),
            (("AllGood", {"epsilon": 0}), "epsilon", "inf", 0),
            (("AllGood", {"epsilon": 1, "multiplicative": True}), "epsilon", 0, 1),
            (("AllGood", {"slack": "0"}), "slack", "'0'"),
            (("AllGood", {"multiplicative": 1}), "multiplicative", True, False),
            (("AllGood", {"multiplicative": True, "instance": NEGATIVE}), "mean", 0),
            *[(("AllGood", {"multiplicative": True, "instance": bad}), "mean", "every") for bad in NO_SHARES],
            *settings_of("TopK", "k", (0, 10, 2.0, "2", HUGE), 1),
            (("TopK", {"k": 2, "instance": "sampler(arms=2)"}), "k", "[1, 1]", 2),
            (("TopK", {"epsilon": -0.1}), "epsilon", "inf", -0.1),
            (("TopK", {"criterion": "all"}), "criterion", "'each'", "'all'"),
            (("Feasible", {"A": [[1, 0, 0]], "b": [1]}), "A", 3, 2),
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
NO_MASKS: Any = [True, False], np.array([1, 0]), np.ones(3, bool)
ACTION = full(1, 1, K=3)
BOTH = {"arm": np.array([0, 1]), "times": np.array([1, 2]), "answer": np.zeros((2, 3), np.int8)}
PARTS: list[tuple[Any, ...]] = [  # changed parts of a full action, of one episode or of two; what is named
    *[({"arm": bad}, None, "arm") for bad in (4, 1.0, None, True, [1], HUGE)],
    *[({"times": bad}, None, "times", 1, 2147483647, bad) for bad in (0, 2**31)],
    *[({"times": bad}, None, "times") for bad in (1.0, [1], None, 2**70)],
    *[({"answer": bad}, None, "answer", "(1, 3)") for bad in (None, [0, 1], [0.0, 1.0, 1.0], [0, HUGE, 1])],
    ({"answer": [0, [1], 1]}, None, "answer", "[0, [1], 1]"),
    *[({"arm": [0, 4]}, 2, 4, "slot", 1), ({"arm": 0}, 2, "arm", "(2,)"), ({"times": [1, 0]}, 2, 0, "slot", 1)],
    *[({"times": [1.0, 1.0]}, 2, "times"), ({"times": [[1], [1]]}, 2, "times", "(2,)")],
    *[({"answer": bad}, 2, "answer", "(2, 3)") for bad in (mask(3), np.zeros((2, 3)), None)],
    *[({"arm": 3, "answer": bad}, None, low, high) for bad, low, high in [([0, 1, 2], 0, 2), ([-1, 1, 1], -1, 1)]],
    ({"arm": 3, "answer": np.full(3, 2**63, np.uint64)}, None, 2**63),
    ({"arm": np.array([0, 3]), "answer": np.array([[0] * 3, [0, 1, 2]])}, 2, 2),
]
NO_ACTIONS = (0, None, {"arm": 0, "times": 1}, {"arms": 0, "times": 1}, RAGGED)

test_actions = table(
    rows(
        rejected,
        [
            *[((-1,), 2, 3, -1), ((4,), 4), ((1.0,), "float64", "1.0"), ((None,), "object", None), ((True,), "bool")],
            *[(([1],), "()", "(1,)"), ((RAGGED,), "()"), (({},), "empty"), ((HUGE,), "arm"), ((object(),), "integers")],
            *[(([0, 1, 2], "arm", 2), "(2,)", "(3,)"), (([0.0, 1.0], "arm", 2), "float64")],
            *[((RAGGED, "arm", 2), "(2,)"), (([0, -1], "arm", 2), -1, "slot", 1), (([4, 0], "arm", 2), 4, "slot", 0)],
            ((np.array([0, 2**63], np.uint64), "arm", 2), "uint64"),
            (({"arm": 0},), "arm", "actions='full'"),
            (({"arm": 0}, "arm", 2), "arm", "(2,)", "actions='full'"),
            *[(((ACTION if slots is None else BOTH) | part, "full", slots), *words) for part, slots, *words in PARTS],
            *[((bad, "full", slots), "arm", "times", "answer") for bad in NO_ACTIONS for slots in (None, 2)],
            ((full(3, 1, mask(3, 0), K=3), "full", None, "TopK"), "TopK", 2, 1),
            ((batch([full(3, 1, mask(3, 0, 1)), full(3, 1, mask(3, 0, 1, 2))]), "full", 2, "TopK"), "TopK", 2, 3),
        ],
    )
)


ODD_RESETS: list[tuple[Any, ...]] = [
    *[({"seed": bad}, "seed", repr(bad)) for bad in (-1, 1.0, "1", True)],
    ({"seed": [1]}, "slot", 2, 1),
    *[({"seed": [1, bad]}, repr(bad)) for bad in (-2, "a", 1.5, [2])],
    ({"options": 3}, "options", 3),
    ({"options": {"episode": -1}}, 0, 4294967295, -1),
    ({"options": {"episode": [0, 2**32]}}, 4294967295, 2**32),
    ({"options": {"episode": [0, 1, 2]}}, "(2,)", "(3,)"),
    *[({"options": {"episode": bad}}, "episode") for bad in ([0.0, 1.0], "0", RAGGED, True)],
    *[({"options": {"reset_mask": bad}}, "reset_mask", "bool", "(2,)") for bad in NO_MASKS],
    ({"options": {"reset_mask": np.zeros(2, bool)}}, "slot"),
    ({"seed": [1, -2], "options": {"reset_mask": SOME}}, -2),
    ({"seed": 5, "options": {"episode": [-1, 0]}}, -1),
]


@pytest.mark.parametrize(("rules", "words"), [(rules, words) for rules, *words in ODD_RESETS])
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


broken = settings(deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow])


@given(odd_calls.calls())
@broken
def test_the_constructor_survives_anything(call: tuple[str, dict[str, Any]]) -> None:
    odd_calls.survives(call)


def test_these_calls_are_right() -> None:
    for call, kwargs in RIGHT.items():
        call(**kwargs)


@given(st.sampled_from([*RIGHT]), junk, st.randoms(use_true_random=False))
@broken
def test_whatever_is_made_refuses_junk_by_name(call: Any, thing: Any, random: Any) -> None:
    kwargs = RIGHT[call]
    name = random.choice(odd_calls.CHECKED.get(call.__name__, [*kwargs]))
    if callable(thing) and call is find:
        return  # a function is a source of instances, and does what it does
    _, error = attempt(call, **kwargs | {name: thing})
    also = (ValueError, TypeError) if call == Task.from_json else ()
    assert error is None or type(error) is ValueError or isinstance(error, also)
    assert error is None or len(str(error)) > 10


@given(st.sampled_from([*odd_calls.ENVS]), st.one_of(slotted, odd_calls.parts))
@broken
def test_steps_survive_anything(form: tuple[str, int | None], action: Any) -> None:
    odd_calls.steps(form, action)


masks = st.fixed_dictionaries({}, optional={"episode": slotted, "reset_mask": st.one_of(junk, st.just(SOME))})


@given(st.sampled_from([*odd_calls.ENVS]), st.one_of(junk, st.just(3)), st.one_of(junk, masks))
@broken
def test_resets_survive_anything(form: tuple[str, int | None], seed: Any, options: Any) -> None:
    env = odd_calls.ENVS[form]
    before = state(env)
    _, error = attempt(env.reset, seed=seed, options=options)
    if error is not None:
        assert not isinstance(error, TypeError)
        assert same(state(env), before)
    env.reset(seed=1)


# --- agents -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "problem", "parameter"), odd_calls.ONCE, ids=["-".join(row) for row in odd_calls.ONCE]
)
def test_odd_parameters_of_agents(
    name: str, problem: str, parameter: str, monkeypatch: pytest.MonkeyPatch, recwarn: Any
) -> None:
    monkeypatch.setattr("agents.thresholding.dp_index.HORIZON", 40)
    odd_calls.odd_parameters(name, problem, parameter)
    idle = rf"{name}: .* has no effect|ocba-m begins with n0=|fareast: its first rounds are long"
    assert not [said for said in recwarn.list if not re.search(idle, str(said.message))]


SEEN: dict[str, Any] = seen([2, 1, 0], [0.5, 1.0, 0.0], [0.25, 0.0, 0.0], remaining=7, public=5)


@pytest.mark.parametrize("single", [True, False], ids=["single", "batch"])
def test_observations_of_lists_are_read(single: bool) -> None:
    env = gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=3)", budget=10)
    arrays = SEEN if single else {name: np.stack([value, value]) for name, value in SEEN.items()}
    lists = {name: value.tolist() for name, value in arrays.items()}
    for name in ("lsa", "sar", "opt-kg", "ucbe", "uniform", "evidence"):
        agent = agents.make(name, env, **odd_calls.NEEDS.get(name, {}))
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


ROUND = np.array([2.0, 1, 0])
NO_PULLS: Any = [2.0, 1.0, 0.0], "2", "1", "0", [True] * 3, None, [[2, 1], [0]], ROUND, [2, HUGE, 0]
NO_MEANS: Any = "x", None, [0.5, None, 0], {}, [[1], [1, 2]]

test_observations_that_no_environment_gives = table(
    rows(
        predict,
        [
            *[(({"pulls": bad}, 0), "pulls", "integer") for bad in NO_PULLS],
            (({"pulls": [2, -1, 0]}, 0), "pulls", 0, -1),
            (({"pulls": [2, 1]}, 0), "pulls", 3, "(1, 2)"),
            (({"pulls": 3}, 0), 3, "arms"),
            *[(({"mean": bad}, 0), "mean", "numbers") for bad in NO_MEANS],
            *[(({"mean": [bad, 1.0, 0.0]}, 0), "mean", "support", 0, 1, bad) for bad in (7.0, -0.1, math.nan)],
            (({"mean": [0.5, 1.0]}, 0), "mean", "(1, 3)", "(1, 2)"),
            (({"total": [0.5]}, 0), "total", "shape"),
            (({"variance": [1, 2, 3, 4]}, 0), "variance", "shape"),
            (({"remaining": 7}, 0), "remaining", "(1, 1)", "(1,)"),
            (({"remaining": [7.5]}, 0), "remaining", "integer"),
            (({"public_seed": [1, 2]}, 0), "public_seed", "shape"),
            (({"remaining": np.array(7)}, 2), "remaining", "(2, 1)", "()"),
            (({"remaining": np.array([[7]])}, 2), "remaining", "(2, 1)", "(1, 1)"),
            (({"remaining": np.array([7, 7])}, 2), "remaining", "(2, 1)", "(2,)"),
        ],
    )
)


def test_means_of_arms_never_pulled_and_of_unbounded_arms_may_be_anything() -> None:
    predict(({"mean": [0.5, 1.0, 7.0]}, 0))
    predict(({"mean": [0.5, np.nextafter(1.0, 2.0), 0.0]}, 0))
    wide = gym.make("bandit_envs/Threshold-v0", instance=odd_calls.THREE, budget=10)
    agents.make("lsa", wide).predict(SEEN | {"mean": [0.5, 1e9, 0.0]})


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_features_are_finite(value: float) -> None:
    """Defect: a single observation and a batch of it brought about two different actions."""
    pytest.importorskip("stable_baselines3")
    env = gym.make("bandit_envs/TopK-v0", instance="sampler(arms=5)", k=2, budget=50, observation="relative")
    agent, (features, _) = agents.make("ppo", env), env.reset(seed=0)
    assert agent.predict(features)[0] == agent.predict(features[None])[0][0]
    features[3] = value
    for observation in (features, features[None]):
        with refused("observations", "finite", value):
            agent.predict(observation)
    with refused("'relative'", "dict"):
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


@pytest.mark.parametrize("error", [TimeoutError("late"), MemoryError("full"), IndexError("index 9"), RuntimeError("a")])
def test_only_errors_that_numbers_bring_about_are_laid_to_them(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What has failed for another reason, as by running out of time, is told as it is, at first and later."""

    def fail(*_: Any) -> Any:
        raise error

    env = gym.make("bandit_envs/Threshold-v0", budget=100)
    agent, (observation, _) = agents.make("uniform", env), env.reset(seed=0)
    _, state = agent.predict(observation)
    monkeypatch.setattr(type(agent), "choose", fail)
    if isinstance(error, (IndexError, RuntimeError)):
        with refused("uniform", type(error).__name__, str(error)):
            agent.predict(observation)
        return
    for one in (None, state):
        with refused(str(error), error=type(error)):
            agent.predict(observation, one)
