"""Histories: what an episode has shown, in order, in environments, and agents that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from refusals import refused, table
from rollouts import full, same, some_action

import agents
from agents.core.certified import Certified
from bandit_envs import PureExplorationEnv
from bandit_envs.envs import tally

BEST = "bandit_envs/BestArm-v0"
THREE = {"distribution": "gaussian", "mean": [0.0, 0.5, 1.0], "sd": 0.5}
PLANE = {"distribution": "gaussian", "mean": [[0.1, 0.9], [0.5, 0.4], [0.0, 0.2]], "sd": 0.3}
INSIDE = {"A": [[1, 0]], "b": [0.3]}


def made(problem: str = "BestArm", **kwargs: Any) -> Any:
    return gym.make(f"bandit_envs/{problem}-v0", observation="history", **kwargs)


# --- what is written down ---------------------------------------------------------------------------------------------


def test_a_history_by_hand() -> None:
    env = made(instance=THREE, budget=4)
    seen, _ = env.reset(seed=5)
    assert list(seen) == ["arms", "samples", "times", "length", "remaining", "public_seed"]
    assert (seen["arms"].tolist(), seen["samples"].tolist(), seen["times"].tolist()) == ([-1] * 4, [0.0] * 4, [0] * 4)
    assert (seen["length"].tolist(), seen["remaining"].tolist()) == ([0], [4])
    x, _, _, _, first = env.step(2)
    y, _, _, _, second = env.step(0)
    z, _, terminated, _, third = env.step(2)
    assert x["arms"].tolist() == [2, -1, -1, -1]  # earlier observations stay as they were
    assert x["samples"].tolist() == [first["sample"], 0, 0, 0]
    assert y["arms"].tolist() == [2, 0, -1, -1]
    assert z["arms"].tolist() == [2, 0, 2, -1]
    assert z["samples"].tolist() == [first["sample"], second["sample"], third["sample"], 0]
    assert (z["times"].tolist(), z["length"].tolist(), z["remaining"].tolist()) == ([1, 1, 1, 0], [3], [1])
    assert not terminated
    stopped, _, terminated, _, _ = env.step(3)
    assert terminated
    assert same(stopped, z)  # to stop is no entry
    assert env.reset()[0]["arms"].tolist() == [-1] * 4


def test_a_bulk_pull_is_one_entry() -> None:
    env = made(instance=THREE, budget=10, actions="full")
    env.reset(seed=1)
    seen, *_, first = env.step(full(1, 6, K=3))
    assert (seen["arms"][:2].tolist(), seen["times"][:2].tolist(), seen["length"][0]) == ([1, -1], [6, 0], 1)
    assert seen["samples"][0] == first["sample"]
    seen, *_ = env.step(full(0, 9, K=3))  # clipped to 4
    assert (seen["times"][:3].tolist(), seen["length"][0], seen["remaining"][0]) == ([6, 4, 0], 2, 0)
    last, _, terminated, *_ = env.step(full(2, 1, [0, 0, 1], K=3))  # the answer, which pulls nothing
    assert terminated
    assert same(last, seen)


@pytest.mark.parametrize("actions", ["arm", "full"])
@pytest.mark.parametrize(
    "distribution", [THREE, "sampler(arms=3)", "sampler(distribution='gaussian', arms=3, mean={'normal': [0, 1]})"]
)
def test_a_history_tells_the_statistics(distribution: Any, actions: str) -> None:
    """Step by step: bit for bit without bulk pulls, up to rounding with them."""
    rules = {"instance": distribution, "budget": 40, "actions": actions}
    one, other = (PureExplorationEnv("BestArm", observation=form, **rules) for form in ("history", "statistics"))
    generator = np.random.default_rng(0)
    for number in range(5):
        seen, _ = one.reset(seed=2, options={"episode": number})
        told, _ = other.reset(seed=2, options={"episode": number})
        over = False
        while not over:
            pulls, means = tally(one.task, {name: array[None] for name, array in seen.items()})
            assert pulls[0].tolist() == told["pulls"].tolist()
            expected = np.where(told["pulls"] > 0, told["mean"], np.nan)
            np.testing.assert_allclose(means[0], expected, rtol=0 if actions == "arm" else 1e-12, atol=0)
            action = some_action(one.task, generator, stop=0)
            (seen, *_), (told, _, over, _, _) = one.step(action), other.step(action)


def test_a_tally_of_coordinates() -> None:
    env = made("Feasible", instance=PLANE, budget=9, pull="coordinate", **INSIDE)
    env.reset(seed=3)
    samples = [env.step(action)[4]["sample"] for action in (5, 1, 5)]
    seen, *_ = env.step(0)
    pulls, means = tally(env.unwrapped.task, {name: array[None] for name, array in seen.items()})
    assert pulls.tolist() == [[[1, 1], [0, 0], [0, 2]]]
    assert means[0, 2, 1] == (samples[0] + samples[2]) / 2
    assert means[0, 0, 1] == samples[1]
    assert np.isnan(means[0, 1]).all()


def test_a_restarted_slot_has_an_empty_history() -> None:
    """In a slot that takes a shorter episode after a longer one, nothing of the longer one is left."""
    envs = gym.make_vec(
        BEST, 2, observation="history", instance=THREE, delta=0.1, max_pulls=6, autoreset_mode="Disabled", copy=False
    )
    seen, _ = envs.reset(seed=0)
    for arms in ([0, 1], [1, 1], [2, 1], [3, 1]):
        seen, *_ = envs.step(np.array(arms))
    assert seen["arms"].tolist() == [[0, 1, 2, -1, -1, -1], [1, 1, 1, 1, -1, -1]]
    seen, _ = envs.reset(options={"reset_mask": np.array([True, False])})
    assert seen["arms"].tolist() == [[-1] * 6, [1, 1, 1, 1, -1, -1]]
    assert (seen["samples"][0] == 0).all()
    assert seen["length"].tolist() == [[0], [4]]
    seen, *_ = envs.step(np.array([2, 0]))
    assert seen["arms"].tolist() == [[2, -1, -1, -1, -1, -1], [1, 1, 1, 1, 0, -1]]
    assert seen["times"].sum(axis=1).tolist() == [1, 5]


# --- agents -----------------------------------------------------------------------------------------------------------


class ByTurns(agents.Agent):
    """Pulls the arm with the fewest pulls, the better one of these; stops by itself after 12 pulls with a delta."""

    name, solves, stops = "by-turns", ("BestArm", "Feasible"), True

    def seen(self, observation: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        return observation["pulls"], np.where(observation["pulls"] > 0, observation["mean"], np.nan)

    def choose(self, observation: Any, state: Any) -> NDArray[np.int64]:
        pulls, means = self.seen(observation)
        arms = (pulls - 0.5 * np.nan_to_num(np.tanh(means))).argmin(axis=1)
        over = (pulls.sum(axis=1) >= 12) & (self.task.delta is not None)
        return np.where(over, self.task.stop, arms)


class Reader(ByTurns):
    """The same, from histories."""

    name, observation = "reader", "history"

    def seen(self, observation: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        return tally(self.task, observation)


class Growing(Reader):
    """The same, with a state that only the whole course of an episode tells; histories must grow entry by entry."""

    name, resumes = "growing", False

    def initial_state(self, observation: Any) -> Any:
        return {"arms": observation["arms"].copy()}

    def choose(self, observation: Any, state: Any) -> NDArray[np.int64]:
        begins, before = observation["length"][:, 0] == 0, state["arms"]
        before[begins] = -1
        assert ((observation["arms"] == before) | (before == -1)).all()
        assert ((observation["arms"] != before).sum(axis=1) <= 1).all()
        before[...] = observation["arms"]
        return super().choose(observation, state)


RUNS: list[dict[str, Any]] = [{"budget": 30}, {"delta": 0.1, "max_pulls": 10}, {"delta": 0.1, "max_pulls": 40}]


@pytest.mark.parametrize("rules", RUNS)
def test_an_agent_that_reads_histories_is_evaluated_like_one_that_reads_statistics(rules: dict[str, Any]) -> None:
    readers = {"statistics": ByTurns, "history": Reader, "state": Growing}
    found = agents.evaluate(readers, BEST, episodes=70, seed=3, at=[5, 10], env_kwargs=rules, batch=64).episodes
    rows = {label: table.drop(columns="agent").reset_index(drop=True) for label, table in found.groupby("agent")}
    assert len(rows["history"]) == 140
    assert rows["history"].equals(rows["statistics"])


def asked(kind: Any, store: Path, reopened: bool) -> list[Any]:
    """The arms that a session asks for, and its answer."""
    pytest.importorskip("sqlalchemy")
    facts = {"problem": "BestArm", "arms": 3, "range": (0, 1), "budget": 8}
    session, arms = agents.Session(kind, facts, store=str(store), public_seed=1), list[Any]()
    for value in (0.5, 0.25, 1.0, 0.75, 0.5, 0.0, 0.125, 1.0):
        if reopened:
            session.close()
            session = agents.Session(kind, store=str(store))
        arms += session.ask()
        session.tell(arms[-1], value)
    answer = session.answer().tolist()
    session.close()
    return [*arms, *answer]


@pytest.mark.parametrize("kind", [Reader, Growing])
def test_a_session_goes_on_after_a_restart(kind: Any, tmp_path: Path) -> None:
    expected = asked(ByTurns, tmp_path / "statistics.db", reopened=False)
    assert asked(kind, tmp_path / "one.db", reopened=False) == expected
    assert asked(kind, tmp_path / "two.db", reopened=True) == expected


class Pixels(ByTurns):
    """Reads what no agent can read by this name."""

    name, observation = "pixels", "features"


class Lazy(agents.IndexPolicy):
    """Does not say how it reads histories."""

    name, observation, solves = "lazy", "history", ("Threshold",)

    def index(self, T: Any, D: Any) -> Any:
        return T


SURE: Any = gym.make(BEST, delta=0.1)
test_what_reads_histories_says_so = table(
    {
        "statistics": (lambda: agents.make(Reader, gym.make(BEST, budget=9)), "reader", "'history'", "'statistics'"),
        "a certificate": (lambda: agents.make(Reader, SURE, stop="certificate"), "'certificate'", "reader"),
        "Certified": (lambda: Certified(SURE, Reader(made(delta=0.1, max_pulls=9))), "'certificate'", "reader"),
        "another form": (lambda: Pixels(gym.make(BEST, budget=9)), "observation", "pixels"),
        "no choose": (lambda: Lazy(made("Threshold", budget=9)), "lazy", "'history'", "choose", TypeError),
    }
)


def test_histories_that_no_environment_shows() -> None:
    envs = gym.make_vec(BEST, 2, observation="history", instance="sampler(arms=3)", budget=6)
    agent, (seen, _) = agents.make(Reader, envs), envs.reset(seed=0)
    one, zeros = np.array([[0, -1, -1, -1, -1, -1]] * 2), np.zeros((2, 6))
    pulled = {"arms": one, "times": one + 1, "length": np.ones((2, 1), np.int64)}
    for changed, words in (
        ({"arms": np.zeros((2, 4), np.int64)}, ["reader", 6, "arms"]),
        ({"arms": zeros}, ["arms", "integer"]),
        ({"samples": zeros[:, 1:]}, ["samples", "(2, 6)", "(2, 5)"]),
        ({"length": np.array([[7], [0]])}, ["length", 6, 7]),
        (pulled | {"samples": zeros + 1.5}, ["samples", "[0, 1]", 1.5]),
    ):
        with refused(*words):
            agent.predict(seen | changed)
    with refused("reader", "times"):
        agent.predict({name: array for name, array in seen.items() if name != "times"}, None)
    with refused("reader", "ndarray"):
        agent.predict(np.zeros((2, 9)), None)


def test_writing_into_what_is_shown_harms_nothing_but_that():
    """The cursor of a history is its own: an agent that changes the length that it sees writes beyond no array."""
    kwargs = {"num_envs": 3, "observation": "history", "budget": 5}
    envs, other = (gym.make_vec("bandit_envs/BestArm-v0", copy=copy, **kwargs) for copy in (False, True))
    shown, _ = envs.reset(seed=0)
    right, _ = other.reset(seed=0)
    for _ in range(4):
        shown["length"][:] = 10**9
        shown, *_ = envs.step(np.zeros(3, np.int64))
        right, *_ = other.step(np.zeros(3, np.int64))
        assert all(np.array_equal(shown[name], right[name]) for name in right)
