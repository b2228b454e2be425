"""Mistakes of who writes an algorithm are refused where the class is made, by name."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest

import agents
import agents.testing
from agents import pull, setting
from agents.core import per_arm
from bandit_envs.kernels import compiled, part


def fair(ep: Any, own: Any) -> None:
    pull(ep, np.argmin(ep.pulls))


def sometimes(ep: Any, own: Any) -> Any:
    if ep.pulls[0] > 3:
        return True


def late(ep: Any, own: Any) -> Any:
    for i in range(len(ep.pulls)):
        if ep.pulls[i] > 3:
            return True


def computed(ep: Any, own: Any) -> None:
    ep.pulls[0] > 3  # noqa: B015


def arm(ep: Any, own: Any) -> Any:
    return np.argmin(ep.pulls)


def arm_or_none(ep: Any, own: Any) -> Any:
    if ep.pulls[0] > 3:
        return None
    return 0


def yielded(ep: Any, own: Any) -> Any:
    yield np.argmin(ep.pulls)


async def awaited(ep: Any, own: Any) -> Any:
    pull(ep, 0)


WRONG = {
    "yielded": ({"sample": yielded}, "sample of A must be a plain function.*yield"),
    "awaited": ({"observe": awaited}, "observe of A must be a plain function"),
    **{
        name: ({name: fair}, f"{name} of A is called by nothing.*'stops', 'sample'")
        for name in ("stop", "begins", "recommend", "choose", "initial_state")
    },
    "computed, not returned": ({"stops": computed}, "stops of A must return whether"),
    "returned on one way": ({"stops": sometimes}, "stops of A must return whether"),
    "returned in a loop": ({"stops": late}, "stops of A must return whether"),
    "an arm": ({"sample": arm}, r"sample of A returns a value.*pull\(ep, arm\)"),
    "an arm or None": ({"sample": arm_or_none}, "sample of A returns a value"),
    "of observe": ({"observe": arm}, "observe of A returns a value"),
    "of begin": ({"begin": arm}, "begin of A returns a value"),
}


@pytest.mark.parametrize("title", WRONG)
def test_what_a_rule_returns_is_looked_at_where_the_class_is_made(title: str) -> None:
    rules, message = WRONG[title]
    with pytest.raises(TypeError, match=message):
        type(agents.Algorithm)("A", (agents.Algorithm,), {"sample": fair, **rules})


def test_rules_may_return_early() -> None:
    def stops(ep: Any, own: Any) -> bool:
        while True:
            if ep.pulls[0] > 3:
                return True
            if ep.pulls[1] > 3:
                return False

    def sample(ep: Any, own: Any) -> None:
        if ep.pulls[0] > 3:
            return
        pull(ep, 0)

    type(agents.Algorithm)("A", (agents.Algorithm,), {"sample": sample, "stops": stops, "observe": sample})


# --- indices beyond the end -------------------------------------------------------------------------------------------


class Own(agents.Algorithm):
    """Pull the rarest arm."""

    name, source, solves = "own", "an example", ("BestArm",)
    w, table = per_arm(float), setting(np.ndarray)

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        self.table = np.zeros(3)

    def sample(ep, own):
        pull(ep, np.argmin(ep.pulls))


class OneTooFar(Own):
    """It writes to an arm of the next episode."""

    def sample(ep, own):
        own.w[len(ep.pulls)] = 1.0
        pull(ep, np.argmin(ep.pulls))


class InBegin(Own):
    """It begins with places from 1."""

    def begin(ep, own):
        for i in range(len(ep.pulls)):
            own.w[i + 1] = 1.0


class InStops(Own):
    """It looks at the arm after the last."""

    def stops(ep, own):
        return ep.mean[len(ep.pulls)] > 2.0


@part
def width(table: Any, n: Any) -> Any:
    return table[n]


class InTable(Own):
    """Its table has fewer rows than an arm has pulls."""

    def observe(ep, own):
        own.w[0] = own.table[ep.pulls[0] + 2]


class InHelper(Own):
    """The same, by a function of the module."""

    def observe(ep, own):
        own.w[0] = width(own.table, ep.pulls[0] + 2)


PLACES = {
    OneTooFar: "in sample .*`own.w.len.ep.pulls.. = 1.0`.*5",
    InBegin: "in begin .*`own.w.i . 1. = 1.0`.*5",
    InStops: "in stops .*`return ep.mean.len.*5",
    InTable: "in observe .*own.table.*3",
    InHelper: "in width .*`return table.n.`.*3",
}


def best_arm() -> Any:
    return gym.make("bandit_envs/BestArm-v0", instance="sampler(arms=5)", delta=0.1, max_pulls=60)


@pytest.mark.parametrize("kind", PLACES)
def test_the_line_of_an_index_beyond_the_end_is_found(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled._Twofold, "__call__", compiled._Twofold.__call__)  # put back afterwards
    [case] = agents.testing.cases_of(kind, best_arm())
    envs = case.envs(2)
    agent, observation = agents.testing.made(case, envs), envs.reset(seed=1)[0]
    state = agent.initial_state(observation)
    state.now["place"], observation = 5, observation | {"pulls": np.ones((2, 5), np.int64)}  # the first pass is over
    text = agents.testing._place_of(__file__, agent, observation, state, IndexError("x"))
    assert re.search(PLACES[kind], text), text


class Later(Own):
    """It is wrong of twelve arms alone, and late."""

    def sample(ep, own):
        own.w[np.sum(ep.pulls) // 60 if len(ep.pulls) == 12 else 0] = 1.0
        pull(ep, np.argmin(ep.pulls))


def test_index_beyond_the_end_of_other_tasks_is_found_before_any_check_plays_them() -> None:
    where = r"check_bounds: Later on .* in check_other_questions: in sample .*`own.w.*12.*NUMBA_BOUNDSCHECK"
    with pytest.raises(AssertionError, match=where):
        agents.testing.check_agent(Later, best_arm())
    with pytest.raises(AssertionError, match="check_ties is not made, as check_bounds of Later fails"):
        agents.testing._run(Later, agents.testing.check_ties, best_arm())


@part
def nothing(ep: Any) -> Any:
    ep.pulls[0] > 3  # noqa: B015


@part
def at_times(ep: Any) -> Any:
    if ep.pulls[0] > 3:
        return True


@pytest.mark.parametrize("helper", [nothing, at_times])
def test_a_stopping_rule_that_returns_nothing_through_a_helper_is_refused(helper: Any) -> None:
    kind = type(agents.Algorithm)("A", (Own,), {"stops": lambda ep, own: helper(ep), "__module__": __name__})
    with pytest.raises(AssertionError, match="check_ties: .*stops must return whether the episode stops"):
        agents.testing._run(kind, agents.testing.check_ties, best_arm())


@pytest.mark.parametrize("rule", ["begin", "observe", "sample"])
def test_what_a_rule_writes_into_the_observation_is_named(rule: str) -> None:
    def writes(ep: Any, own: Any) -> None:
        ep.mean[0] = 9.0
        pull(ep, 0)

    kind = type(agents.Algorithm)("A", (Own,), {rule: writes, "__module__": __name__})
    with pytest.raises(AssertionError, match=r"check_ties: .*action 5 writes into the observation"):
        agents.testing._run(kind, agents.testing.check_ties, best_arm())


def test_a_class_of_a_function_goes_to_another_process_whole() -> None:
    class Here(Own):
        t = per_arm(int)

    there = pickle.loads(cloudpickle.dumps(Here))
    assert there.form.fields.keys() == {"w", "table", "t"}
    text = (
        "import pickle, sys; sys.path[:] = %r; k = pickle.load(sys.stdin.buffer); print(*k.form.fields, *k.form.rules)"
    )
    command = [sys.executable, "-c", text % sys.path]
    child = subprocess.run(command, input=cloudpickle.dumps(Here), capture_output=True, check=True)
    assert child.stdout.split() == [b"w", b"table", b"t", b"sample"]


# --- keywords of an environment, and of a training --------------------------------------------------------------------

SAID: dict[str, tuple[dict[str, Any], str]] = {
    "arms": ({"arms": 20}, r"instance='sampler\(arms=20\)'"),
    "K": ({"K": 5}, r"instance='sampler\(arms=5\)'"),
    "means": ({"means": [0.1]}, r"instance=\{\"distribution\": \"bernoulli\", \"mean\""),
    "a misspelling": ({"treshold": 0.3}, "did you mean 'threshold'"),
    "a list": ({"instance": [0.1, 0.5]}, r"\{\"distribution\": \"bernoulli\", \"mean\": .*got \[0.1, 0.5\]"),
}


@pytest.mark.parametrize("title", SAID)
def test_what_an_environment_does_not_take_is_said_as_it_does(title: str) -> None:
    given, message = SAID[title]
    with pytest.raises((TypeError, ValueError), match=message):
        gym.make("bandit_envs/Threshold-v0", budget=50, **given)


def test_a_device_is_refused() -> None:
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="device='cuda' cannot be chosen: training is on the CPU"):
        agents.train(steps=100, env_kwargs={"budget": 50}, device="cuda")


# --- models whose most probable arm is always the same ----------------------------------------------------------------


@pytest.mark.parametrize("bias", [0.0, 5.0])
def test_a_model_that_pulls_one_arm_is_named(bias: float, recwarn: pytest.WarningsRecorder) -> None:
    """All arms are as probable, and the first is taken; where the model is sure of it, that is its policy."""
    ppo, learned = pytest.importorskip("stable_baselines3").PPO, pytest.importorskip("agents.learned")
    kwargs = {"instance": "sampler(arms=4)", "k": 2, "budget": 60, "stop": False}
    envs = learned.make_vec_env("TopK", 2, observation="features", **kwargs)
    model = ppo("MlpPolicy", envs, n_steps=8, batch_size=8, seed=0)
    net = model.policy.action_net
    with pytest.importorskip("torch").no_grad():
        net.weight.zero_()
        net.bias.copy_(net.bias * 0)
        net.bias[0] = bias
    for deterministic in (True, False):
        rows = {"episodes": 2, "env_kwargs": kwargs, "progress": False, "deterministic": deterministic}
        agents.evaluate(model, "TopK", **rows)
    said = [str(one.message) for one in recwarn if "one arm" in str(one.message)]
    assert len(said) == (bias == 0.0)
    assert all("a chance of only 0.25: deterministic=False" in one for one in said)
