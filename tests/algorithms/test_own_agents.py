"""What authors of agents meet: rules that cannot be compiled, wrong keys, models of other arms; each error says why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from plays import episode_of
from refusals import refused
from test_doors import choosing

import agents
from agents.core import ALL_PROBLEMS
from agents.core.waiting import put_rows
from agents.testing import check_agent
from bandit_envs import SetProblem
from bandit_envs.kernels import carray, episode_kernel
from bandit_envs.problems import Measure, own

BEST = "bandit_envs/BestArm-v0"
TOLD = {"budget": 60}


def evaluated(agent: Any, **told: Any) -> agents.Evaluation:
    return agents.evaluate(agent, BEST, episodes=3, env_kwargs=TOLD | told, progress=False)


# --- rules in compiled code ------------------------------------------------------------------------------------------


@episode_kernel
def float_index(e: int, pulls: Any, mean: Any) -> Any:
    best = -1
    for i in range(pulls.shape[1]):
        if best < 0 or mean[e, i] > mean[e, best]:
            best = 1.0 * i
    return best


@episode_kernel
def makes_arrays(e: int, pulls: Any, mean: Any) -> Any:
    order = np.zeros(3)
    return np.int64(order[0])


@episode_kernel
def python_alone(e: int, pulls: Any, mean: Any) -> Any:
    with open("a file"):
        return 0


def line_of(text: str) -> int:
    """The line of this file that holds this text for the first time."""
    return next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("kernel", "line", "said"),
    [
        (float_index, "mean[e, i] > mean[e, best]", "an index is a float: a name that holds integers in one"),
        (makes_arrays, "order = np.zeros(3)", "a function of one episode makes no arrays"),
        (python_alone, 'with open("a file")', "Unsupported context manager in use"),
    ],
)
def test_what_cannot_be_compiled_is_named_with_its_line(kernel: Any, line: str, said: str) -> None:
    """Defect: the error named the line of the `def` alone; and other errors of Numba named nothing."""
    with pytest.raises(ValueError, match=f"odd: Numba cannot compile {kernel.function.__name__} ") as caught:
        evaluated(choosing(kernel))
    told = str(caught.value)
    assert f"test_own_agents.py, line {line_of(line)})" in told
    assert said in told
    assert len(told.splitlines()) == 1


def wrong_margins(pulls: Any, mean: Any, K: Any, numbers: Any, out: Any) -> None:
    margins = carray(out, K)
    margins[0] = carray(mean, K)["x"]


def test_a_routine_of_a_problem_that_cannot_be_compiled_is_named() -> None:
    """Defect: pages of Numba's own words, under the name of an attribute that the author has not written."""

    class Far(SetProblem):
        name, asks, local = "Far", "an example", True

        def margin(self, means: Any) -> Any:
            return np.asarray(means, np.float64)

        def distance_routine(self) -> Measure:
            return Measure.of(wrong_margins)

    with pytest.raises(ValueError, match="distance_routine of the problem 'Far' fails: Numba cannot comp") as caught:
        own.try_out(Far(), np.full((3, 2), 0.5), 1)
    assert f"line {line_of('carray(mean, K)[')}" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


# --- keys ------------------------------------------------------------------------------------------------------------


class Pulling(agents.Agent):
    name, solves = "pulling", ALL_PROBLEMS

    def choose(self, observation: Any, state: Any) -> Any:
        return np.zeros(len(observation["pulls"]), np.int64)


class Looking(Pulling):
    def choose(self, observation: Any, state: Any) -> Any:
        return np.zeros(len(observation["pull"]), np.int64)


class Recommending(Pulling):
    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        return observation["means"] > 0


@pytest.mark.parametrize(("kind", "key"), [(Looking, "pull"), (Recommending, "means")])
def test_a_key_that_the_observation_does_not_have(kind: Any, key: str) -> None:
    """It is Python's own error, and the checks name the agent and its task."""
    with pytest.raises(KeyError, match=key):
        evaluated(kind)
    with pytest.raises(AssertionError, match=rf"check_\w+: {kind.__name__} on .*: KeyError: '{key}'"):
        check_agent(kind, bounds=False)


@pytest.mark.parametrize("keys", [("arm",), ("arms", "times", "answer")])
def test_the_checks_find_a_predict_that_returns_other_parts_of_an_action(keys: tuple[str, ...]) -> None:
    class Own(Pulling):
        def predict(self, observation: Any, state: Any = None, *rest: Any, **more: Any) -> Any:
            action, state = super().predict(observation, state, *rest, **more)
            right = not np.asarray(observation["pulls"]).any()
            return (action if right else {key: action.get(key, action["arm"]) for key in keys}), state

    with pytest.raises(AssertionError, match=r"check_\w+: .*Own on .*(KeyError: '(arm|times)'|refused: a full action)"):
        check_agent(Own, bounds=False)


# --- state over episodes ---------------------------------------------------------------------------------------------

K, SLOTS = 3, 3  # as many arms as episodes: which axis is that of the episodes must not be guessed by the length alone


class Counted(agents.Algorithm):
    """The leader, and at every other time that it leads its neighbour; the counts tell when to stop."""

    name, source, solves = "counts-plans", "an example", ("BestArm",)
    led = agents.per_arm(int)

    def stops(ep: Any, own: Any) -> Any:
        total = 0
        for i in range(len(ep.pulls)):
            total += ep.pulls[i]
        return total > 6 + own.led[0] % 4

    def sample(ep: Any, own: Any) -> None:
        best = 0
        for i in range(len(ep.pulls)):
            best = i if ep.mean[i] > ep.mean[best] else best
        own.led[best] += 1
        agents.pull(ep, (best + own.led[best] % 2) % len(ep.pulls))


def by_turns(arms: Any, turns: Any, observation: Any) -> Any:
    """Every other time the neighbour of the arm; the counts tell when to stop."""
    rows = np.arange(len(arms))
    turns[rows, arms] += 1
    over = observation["pulls"].sum(axis=1) > 6 + turns[:, 0] % 4
    return np.where(over, K, (arms + turns[rows, arms] % 2) % K)


class Free(agents.Agent):
    name, solves, stops = "counts-free", ("BestArm",), True

    def initial_state(self, observation: Any) -> Any:
        E = len(observation["pulls"])
        return {"turns": np.zeros((K, E), np.int64), "lists": ([[] for _ in range(E)], slots_of(E))}

    def choose(self, observation: Any, state: Any) -> Any:
        E, (lists, slotted) = len(observation["pulls"]), state["lists"]
        for e in range(E):
            lists[e].append(e)
            slotted.count[e] += 1
        assert slotted.count.tolist() == [len(one) for one in lists]
        arms = np.array([len(one) % K for one in lists])
        return by_turns(arms, state["turns"].T, observation)


@dataclass(slots=True)
class Slotted:
    count: Any  # (E,)


def slots_of(E: int) -> Slotted:
    return Slotted(np.zeros(E, np.int64))


COUNTING = (Free, Counted)
UNLIMITED: dict[str, Any] = {"instance": f"sampler(arms={K})", "delta": 0.1, "max_pulls": 100}


SHORT = UNLIMITED | {"max_pulls": 9, "epsilon": 0.2}
OURS = ("track-and-stop", "improved-top-k", "racing", "adapt", "kl-lucb", "random")


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize(
    ("kind", "told", "limits"),
    [
        *((kind, {}, UNLIMITED) for kind in COUNTING),
        *((kind, {"stop": "certificate"}, SHORT) for kind in COUNTING),
        *((name, {}, SHORT) for name in OURS),
    ],
)
def test_state_begins_anew_with_each_episode(kind: Any, told: Any, limits: Any, mode: str) -> None:
    """Defect: counts of one's own went on in the next episode of a slot."""
    envs = gym.make_vec(BEST, SLOTS, autoreset_mode=mode, **limits)
    agent = agents.make(kind, envs, **told)
    observation, _ = envs.reset(seed=5)
    state, over, played = None, np.zeros(SLOTS, np.bool_), [[[]] for _ in range(SLOTS)]
    for _ in range(60):
        action, state = agent.predict(observation, state)
        for e in range(SLOTS):
            if over[e]:
                played[e].append([])
            if not over[e] or mode == "SameStep":  # else the action is not read
                played[e][-1].append(int(action[e]))
        observation, _, terminated, truncated, _ = envs.step(action)
        over = terminated | truncated
    for e, episodes in enumerate(played):
        assert len(episodes) > 2
        for number, arms in enumerate(episodes):
            fresh = agents.make(kind, gym.make(BEST, **limits), **told)
            assert arms == alone(fresh, limits, 5 + e, number)[: len(arms)]


def alone(agent: Any, limits: Any, seed: int, number: int) -> list[int]:
    """The arms that an agent pulls in an episode by itself."""
    return episode_of(gym.make(BEST, **limits), agent, number, seed)[0]


@pytest.mark.parametrize("kind", COUNTING)
def test_evaluations_of_few_slots_are_those_of_many(kind: Any) -> None:
    """In compiled play too, where the slots of a batch take one episode after another."""
    few, many = (agents.evaluate(kind, BEST, episodes=16, batch=n, env_kwargs=UNLIMITED) for n in (2, 16))
    pd.testing.assert_frame_equal(few.episodes, many.episodes, check_exact=True)


# --- the forms of before ----------------------------------------------------------------------------------------------

OLD = {
    "agents": ("BulkPolicy", "PlanPolicy", "RoundPolicy"),
    "agents.core": ("PlanPolicy", "Seen", "following", "bulk", "RoundState"),
    "agents.certified": ("CertifiedPolicy", "sampling_rule"),
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in OLD.items() for name in names])
def test_names_of_the_forms_of_020_say_what_is_in_their_place(module: str, name: str) -> None:
    with pytest.raises(ImportError, match=rf"{module}\.{name} .* agents\.Algorithm, see docs/own-agent\.md"):
        exec(f"from {module} import {name}")


def test_the_old_hook_for_the_state_is_refused() -> None:
    with pytest.raises(TypeError, match="Own defines remember, which is initial_state"):
        type("Own", (Free,), {"remember": Free.initial_state})


# --- states of one's own ----------------------------------------------------------------------------------------------


class Counts:
    """A state without slots, which takes the mark of its agent."""

    def __init__(self, n: int) -> None:
        self.n = n


class Counting(agents.Agent):
    name, solves = "counting", ALL_PROBLEMS

    def __init__(self, task: Any, step: int = 1) -> None:
        super().__init__(task)
        self.step = step

    def initial_state(self, observation: Any) -> Counts:
        return Counts(len(observation["pulls"]))

    def choose(self, observation: Any, state: Any) -> Any:
        return observation["pulls"].argmin(axis=1)


def test_a_state_of_ones_own_type_is_of_the_agent_that_made_it() -> None:
    env = gym.make("bandit_envs/BestArm-v0", instance="sampler(arms=3)", budget=9)
    observation, _ = env.reset(seed=0)
    one, other = Counting(env), Counting(env, step=2)
    _, state = one.predict(observation)
    other.predict(observation)  # it knows of which type its states are
    one.predict(observation, state)
    other.predict(observation, Counts(1))  # without a mark the type is all there is
    with refused("state", "Counts", "Counting(step=2)", "Counting()"):
        other.predict(observation, state)


@pytest.mark.parametrize("alone", [True, False])
def test_episodes_are_put_into_a_state(alone: bool) -> None:
    old: Any = {"rows": np.zeros((2, 3)), "lists": [[0], [0], [0]], "shared": np.zeros(2), "parts": (np.zeros(3),)}
    new: Any = {"rows": np.ones((2, 3)), "lists": [[1], [2], [3]], "shared": np.ones(2), "parts": (np.ones(3),)}
    if alone:
        new = {"rows": np.ones((2, 1)), "lists": [[3]], "shared": np.ones(2), "parts": (np.ones(1),)}
    put_rows(old, new, np.array([2]), 3, alone)
    assert old["rows"].tolist() == [[0, 0, 1]] * 2
    assert old["lists"] == [[0], [0], [3]]
    assert old["parts"][0].tolist() == [0, 0, 1]
    assert not old["shared"].any()
