"""Whole episodes in compiled code: bit for bit those of one step after another, in parts, in threads, interrupted."""

from __future__ import annotations

import copy
import faulthandler
import pickle
import signal
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scale import equal

import agents
from agents import Agent, Evaluation, IndexPolicy, evaluate
from agents.core.index_kernels import compiles, rule_of_method
from agents.evaluation import lockstep as stepping
from agents.evaluation import plan
from agents.evaluation import trace as tracing
from bandit_envs import Feasible, TopK, register_problem
from bandit_envs.kernels import geometry
from bandit_envs.simulation import Quiet
from bandit_envs.simulation.playing import pull

THRESHOLD, ALL_GOOD, TOP_K, FEASIBLE = (
    f"bandit_envs/{name}-v0" for name in ("Threshold", "AllGood", "TopK", "Feasible")
)
SMALL = {"distribution": "bernoulli", "arms": 7}
MANY = {"distribution": "gaussian", "arms": 60}  # trees
PLANE = {"budget": 300, "A": [[1.0, 1.0], [-1.0, 0.5]], "b": [1.1, 0.1]}

# Agents that play, an environment, and its keywords: trees, bulk pulls, margins that are measured; the others, by the
# conformance of each agent.
PLAYERS = [
    *((name, THRESHOLD, {"budget": 400}) for name in ("dp-index", "evolved")),
    ("apt(tolerance=0.05)", THRESHOLD, {"budget": 400, "instance": {"sampler": MANY}}),
    ("ucb(bounds='current')", ALL_GOOD, {"delta": 0.1, "max_pulls": 500, "instance": {"sampler": MANY}}),
    ("fareast(finder='lucb')", ALL_GOOD, {"delta": 0.2, "epsilon": 0.3, "max_pulls": 4000}),
    ("uniform-elimination", ALL_GOOD, {"delta": 0.2, "epsilon": 0.3, "budget": 2000}),
    ("adapt", TOP_K, {"delta": 0.2, "epsilon": 0.2, "max_pulls": 1000}),
    *(("ucbe(a=2)", FEASIBLE, {"budget": 300, "instance": f"katz-samuels2018-{number}"}) for number in (1, 4, 5)),
    ("lsa", FEASIBLE, {**PLANE, "instance": {"sampler": {"distribution": "bernoulli", "arms": 60, "dimensions": 2}}}),
    ("apt", FEASIBLE, {"budget": 300, "A": [[1.0], [-1.0]], "b": [0.6, -0.3], "instance": {"sampler": SMALL}}),
]


def lockstep(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **keywords: Any) -> Evaluation:
    """What `evaluate` finds with Python between all pulls."""
    with monkeypatch.context() as patch:
        for module in (stepping, plan):
            patch.setattr(module, "plays", lambda agent, slots=1, ranked=False, waits=False: False)
        return evaluate(*arguments, **keywords)


@pytest.mark.parametrize(("name", "env", "kwargs"), PLAYERS, ids=[f"{row[0]}-{i}" for i, row in enumerate(PLAYERS)])
def test_episodes_are_those_of_lockstep(name: str, env: str, kwargs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = {} if "instance" in kwargs else {"instance": {"sampler": SMALL}}
    kwargs = kwargs | instance
    assert agents.make(name, gym.make(env, actions="full", **kwargs)).plays
    more = {"at": [3, 50, 333, 10**7], "batch": 3}  # whole batches, and a part of one
    wanted = lockstep(monkeypatch, name, env, episodes=5, seed=3, env_kwargs=kwargs, **more)
    equal(evaluate(name, env, episodes=5, seed=3, env_kwargs=kwargs, **more), wanted)
    assert wanted.runs[0].columns["total_pulls"].max() > 50


def test_distances_of_ones_own_are_not_passed_over() -> None:
    """A class that puts other distances in the place of a problem's own is asked for them, one step after another."""

    class Farther(TopK):
        name = "FartherTopK"

        def distances(self, pulls: Any, mean: Any, out: Any = None) -> Any:
            found = super().distances(pulls, mean, out)
            found *= np.arange(1, 8)
            return found

    class Same(TopK):
        name = "SameTopK"

    for kind in (Farther, Same):
        register_problem(kind)
    kwargs = {"budget": 200, "k": 2, "instance": {"sampler": SMALL}}
    parameters = agents.make("evolved", gym.make(TOP_K, actions="full", **kwargs)).candidates[0].tolist()
    made, pulls = {}, {}
    for name in ("TopK", "SameTopK", "FartherTopK"):
        env = gym.make(f"bandit_envs/{name}-v0", actions="full", **kwargs)
        made[name] = agents.make("evolved", env, parameters=parameters)
        pulls[name] = evaluate(made[name], name, episodes=9, env_kwargs=kwargs).runs[0].pulls
    assert [agent.plays for agent in made.values()] == [True, True, False]
    np.testing.assert_array_equal(pulls["TopK"], pulls["SameTopK"])
    assert (pulls["TopK"] != pulls["FartherTopK"]).any()
    assert copy.deepcopy(made["TopK"]).plays
    assert pickle.loads(pickle.dumps(made["TopK"])).plays


WEIGHTS = [[1, 2, 3], [3, 1, 1], [1, 1, 1]]
QUANTILES = [[0.0, 0.1, 0.4, 1.0], [0.2, 0.3, 0.4, 0.9], [0.0, 0.5, 0.6, 0.7]]
DISTRIBUTIONS = {
    "bernoulli": {"distribution": "bernoulli", "mean": [0.1, 0.45, 0.6, 0.9]},
    "gaussian": {"distribution": "gaussian", "mean": [0.1, 0.45, 0.6, 0.9], "sd": [0.5, 1.0, 2.0, 0.1]},
    "uniform": {"distribution": "uniform", "mean": [0.1, 0.45, 0.6, 0.9], "width": 1.5},
    "categorical": {"distribution": "categorical", "values": [0, 0.3, 1], "probabilities": WEIGHTS},
    "resampled": {"distribution": "resampled", "rows": [[0.1, 0.2, 0.9], [0.5], [0.3, 0.8, 0.7, 0.1]]},
    "tabulated": {"distribution": "tabulated", "quantiles": QUANTILES},
}


@pytest.mark.parametrize(("distribution", "shuffle"), [*zip(DISTRIBUTIONS, [True, False] * 3, strict=True)])
def test_distributions(distribution: str, shuffle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = DISTRIBUTIONS[distribution]
    for env, names, kwargs in (
        (THRESHOLD, ["apt"], {"budget": 100}),
        (ALL_GOOD, ["st2", "fareast(finder='lucb')"], {"delta": 0.2, "epsilon": 0.3, "max_pulls": 300}),
    ):
        own = kwargs | {"instance": arms, "shuffle_arms": shuffle}
        episodes = 3 if env == ALL_GOOD else 66  # each on its own; 64 side by side and the rest
        wanted = lockstep(monkeypatch, names, env, episodes=episodes, at=[20, 90], env_kwargs=own)
        equal(evaluate(names, env, episodes=episodes, at=[20, 90], env_kwargs=own), wanted)


@pytest.mark.parametrize("episodes", [1, 7])
def test_margins_that_kernels_leave_undecided(episodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is told by the problem's own geometry, and the episode is played on."""
    monkeypatch.setattr(geometry, "STEPS", 0)  # the active-set method comes to no end for any point outside
    kwargs = {"budget": 60, "instance": "katz-samuels2018-5"}
    asked, margin = [], geometry.Polyhedron.margin
    with monkeypatch.context() as patch:
        patch.setattr(geometry.Polyhedron, "margin", lambda own, x: (asked.append(len(x)), margin(own, x))[1])
        played = evaluate("apt", FEASIBLE, episodes=episodes, at=[30, 60], env_kwargs=kwargs)
    assert len(asked) > 40  # of 60 pulls of each episode
    equal(played, lockstep(monkeypatch, "apt", FEASIBLE, episodes=episodes, at=[30, 60], env_kwargs=kwargs))


def test_margins_of_ones_own_are_obeyed() -> None:
    """The routine of a class says nothing of one derived from it that measures margins otherwise."""

    class Halved(Feasible):
        name = "Halved"

        def margin(self, means: Any) -> Any:
            return super().margin(means) / 2

    box: Any = {"A": [[1.0, 0.0]], "b": [0.5]}
    assert Feasible(**box).measure is not None
    assert Halved(**box).measure is None
    assert pickle.loads(pickle.dumps(Feasible(**box))) == Feasible(**box)


def test_many_episodes_with_measured_margins_step_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    played = []
    monkeypatch.setattr(IndexPolicy, "play", lambda own, *given: (played.append(1), Agent.play(own, *given))[1])
    for episodes, at_once in ((48, True), (49, False)):
        played.clear()
        evaluate("apt", FEASIBLE, episodes=episodes, env_kwargs={"budget": 30})
        assert bool(played) == at_once


@pytest.mark.parametrize("coordinates", [1, 2, 3])
def test_arms_of_several_dimensions(coordinates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round-based algorithms pull them in bulk, and uniformly; the kernels pull their coordinates as `advance` does."""
    mean = np.random.default_rng(0).random((4, coordinates)).tolist()
    box = {"A": np.eye(coordinates).tolist(), "b": [0.5] * coordinates, "budget": 1000}
    for distribution in ("gaussian", "bernoulli"):
        instance = {"distribution": distribution, "mean": mean}
        envs: Any = gym.make_vec(FEASIBLE, 2, instance=instance, actions="full", copy=False, **box)
        pulls = [(0, 1, 1), (1, 3, 1), (0, 1, 5), (1, 0, 40), (0, 1, 1), (1, 2, 1)]
        states = []
        with pytest.raises(ValueError, match="routine of bulk pulls is not loaded"):
            pull(envs.simulation, np.uint64(0), 1, 5)
        for compiled in (False, True):  # a step loads it
            observation, _ = envs.reset(seed=5)
            for e, arm, times in pulls:
                if compiled:
                    pull(envs.simulation, np.uint64(e), arm, times)
                    continue
                one, two = np.full(2, arm), np.full(2, times)
                kept = {name: array.copy() for name, array in observation.items()}
                envs.step({"arm": one, "times": two, "answer": np.zeros((2, 4), np.int8)})
                for name, array in envs._core._live.items():  # the other episode has not moved
                    array[1 - e] = kept[name][1 - e]
                envs.total_pulls[1 - e] = envs.pulls[1 - e].sum()
            states.append({name: array.copy() for name, array in envs._core._live.items()})
        for name in states[0]:
            np.testing.assert_array_equal(states[0][name], states[1][name], err_msg=f"{distribution} {name}")


@pytest.mark.parametrize("jobs", [2, 3])
def test_jobs(jobs: int) -> None:
    names, kwargs = ["apt", "evolved"], {"budget": 60, "instance": {"sampler": SMALL}}
    for more in ({}, {"at": [10, 40], "batch": 50}):
        wanted = evaluate(names, THRESHOLD, episodes=301, seed=2, env_kwargs=kwargs, **more)
        equal(evaluate(names, THRESHOLD, episodes=301, seed=2, env_kwargs=kwargs, jobs=jobs, **more), wanted)
    how: dict[str, Any] = {"episodes": 2, "env_kwargs": {"delta": 0.2, "epsilon": 0.5}}
    equal(evaluate("st2", ALL_GOOD, jobs=jobs, **how), evaluate("st2", ALL_GOOD, **how))


ENDLESS: dict[str, Any] = {"budget": 10**11, "instance": {"sampler": SMALL}}  # for a day


@pytest.mark.parametrize("jobs", [1, 2])
def test_interruption(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is heard between two parts of an episode. If it is not, nothing but the watchdog ends the process."""
    parts, play = list[int](), IndexPolicy.play

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def played(own: Any, *given: Any) -> Any:
        parts.append(1)
        if len(parts) == 6:
            signal.setitimer(signal.ITIMER_REAL, 0.05)  # in compiled code
        return play(own, *given)

    monkeypatch.setattr(IndexPolicy, "play", played)
    before = signal.signal(signal.SIGALRM, interrupt)
    faulthandler.dump_traceback_later(900, exit=True)
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate("lsa", THRESHOLD, episodes=2, env_kwargs=ENDLESS, jobs=jobs)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("action", [1e-7, 1e-3, 0.3])
def test_a_part_of_an_episode_takes_half_a_second_at_most(action: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves by so many seconds for each action."""
    parts, play = list[float](), IndexPolicy.play

    def played(own: Any, simulation: Any, quiet: Quiet, *given: Any) -> Any:
        if len(parts) == 40:
            raise KeyboardInterrupt
        parts.append(action * quiet.steps)
        return play(own, simulation, quiet._replace(steps=1), *given)

    monkeypatch.setattr(IndexPolicy, "play", played)
    monkeypatch.setattr(stepping, "time", SimpleNamespace(perf_counter=lambda: sum(parts)))
    with pytest.raises(KeyboardInterrupt):
        evaluate("lsa", THRESHOLD, episodes=2, env_kwargs=ENDLESS)
    assert all(stepping.PATIENCE / 4 < part < stepping.PATIENCE for part in parts[20:])


# --- rules that are compiled as they stand ----------------------------------------------------------------------------


class Root(IndexPolicy):
    name, source = "root", "a test"

    def __init__(self, task: Any, power: float = 0.5, weight: float = 1.0) -> None:
        super().__init__(task)
        self.power, self.weight = power, weight

    def index(self, T: Any, D: Any) -> Any:
        return self.weight * T**self.power * np.abs(D)


class Piecewise(Root):
    """Works on arrays only."""

    def index(self, T: Any, D: Any) -> Any:
        out = np.abs(D)
        out[T > 5] *= 2
        return out


class Differing(Root):
    """Looks at how many arms it is asked about, which is another number in compiled code."""

    def index(self, T: Any, D: Any) -> Any:
        return np.abs(D) * np.size(T)


TABLE = np.sqrt(np.arange(101.0))


class Globally(Root):
    def index(self, T: Any, D: Any) -> Any:
        return np.abs(D) * TABLE[np.int64(T)]


class Raising(Root):
    def index(self, T: Any, D: Any) -> Any:
        if (T >= 50.0).all():
            raise ValueError("fifty pulls")
        return T * np.abs(D)


def test_which_rules_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    env = gym.make(THRESHOLD, actions="full", instance={"sampler": SMALL}, budget=100)
    kinds = (Piecewise, Differing, Globally, Raising)
    for kind, compiled in ((Root, True), *((kind, False) for kind in kinds)):
        assert kind(env).plays is compiled, kind
        kwargs: Any = {"episodes": 5, "env_kwargs": {"budget": 100, "instance": {"sampler": SMALL}}}
        equal(evaluate(kind, THRESHOLD, **kwargs), lockstep(monkeypatch, kind, THRESHOLD, **kwargs))


def test_an_error_that_an_index_raises_is_told() -> None:
    """A compiled function that others are handed by its address cannot pass errors on."""
    with pytest.raises(ValueError, match="fifty pulls"):
        evaluate(Raising, THRESHOLD, episodes=9, env_kwargs={"budget": 600, "instance": {"sampler": SMALL}})


class Gap(Root):
    """No number at five pulls, of an arm that is chosen again."""

    first = 0.0

    def index(self, T: Any, D: Any) -> Any:
        return np.where(T == 5.0, np.nan, -1.0 / T)


@pytest.mark.parametrize("episodes", [3, 70])
def test_no_index_that_is_no_number_is_passed_over(episodes: int) -> None:
    kwargs = {"budget": 300, "instance": {"sampler": SMALL}}
    assert Gap(gym.make(THRESHOLD, actions="full", **kwargs)).plays
    with pytest.raises(ValueError, match="the index of root must be a number, got NaN"):
        evaluate(Gap, THRESHOLD, episodes=episodes, env_kwargs=kwargs)


def test_compiled_rules_tell_what_numpy_tells() -> None:
    env = gym.make(THRESHOLD, actions="full", budget=100)
    for name in ("lsa", "apt", "ucbe(a=3)"):
        agent: Any = agents.make(name, env)
        T, x = np.arange(1.0, 1000.0), np.random.default_rng(1).random(999)
        np.testing.assert_allclose(agent.values(T, x), agent.value(T, x), rtol=1e-14)
    rule = rule_of_method(Root(env), "index", 0.5)
    assert rule is not None
    assert compiles(rule, Root(env).value, 0.0, 1.0)
    assert not compiles(rule, Root(env, power=0.6).value, 0.0, 1.0)  # it can fail


def test_a_player_leaves_the_last_action_to_others() -> None:
    envs: Any = gym.make_vec(
        THRESHOLD, 3, actions="full", copy=False, autoreset_mode="Disabled", budget=20, instance={"sampler": SMALL}
    )
    agent = agents.make("lsa", envs)
    observation, _ = envs.reset(seed=1)
    action, state = agent.play(envs.simulation, Quiet(np.array([5, 0, 19]), 100), observation, None)
    assert envs.total_pulls.tolist() == [5, 0, 19]
    assert (envs.remaining == 20 - envs.total_pulls).all()
    fresh, _ = agent.predict({name: array.copy() for name, array in observation.items()}, None)
    assert action["arm"].tolist() == fresh["arm"].tolist()
    action, state = agent.play(envs.simulation, Quiet(np.full(3, 19), 4), observation, state)
    assert envs.total_pulls.tolist() == [9, 4, 19]


# --- one episode in full ----------------------------------------------------------------------------------------------


def stepped(name: str, env_id: str, kwargs: Any, seed: int, episode: int) -> tuple[list[int], list[Any]]:
    """Arms and samples of an episode in a plain loop; of a bulk pull its mean, as often as it pulls."""
    env = gym.make(env_id, actions="full", **kwargs)
    agent, state, arms, samples = agents.make(name, env), None, list[int](), list[Any]()
    observation, _ = env.reset(seed=seed, options={"episode": episode})
    while True:
        action, state = agent.predict(observation, state)
        before = int(observation["pulls"].sum())
        observation, _, terminated, truncated, info = env.step(action)
        count = int(observation["pulls"].sum()) - before
        arms += [int(action["arm"])] * count
        samples += [info["sample"]] * count if count else []
        if terminated or truncated:
            return arms, samples


@pytest.mark.parametrize(
    ("name", "env_id", "kwargs"),
    [
        ("lsa", THRESHOLD, {"budget": 100}),
        ("opt-kg", THRESHOLD, {"budget": 60}),
        ("fareast", ALL_GOOD, {"delta": 0.2, "epsilon": 0.4, "max_pulls": 900}),
        ("apt", "bandit_envs/Feasible-v0", {"budget": 50}),
    ],
)
def test_a_trace_is_the_episode(name: str, env_id: str, kwargs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for capacity in (1, 2**16):
        monkeypatch.setattr(tracing, "CAPACITY", capacity)
        trace = agents.play(name, env_id, env_kwargs=kwargs, seed=4, episode=2, at=[5, 40, 10**6])
        arms, samples = stepped(name, env_id, kwargs, 4, 2)
        assert trace.arms.tolist() == arms
        np.testing.assert_array_equal(trace.samples, np.array(samples))
        rows = evaluate(name, env_id, env_kwargs=kwargs, seed=4, episodes=3, at=[5, 40, 10**6]).episodes
        rows = rows[rows["episode"] == 2]
        assert rows["total_pulls"].max() == len(arms) == trace.pulls.sum()
        assert rows["score"].to_numpy()[-1] == trace.score
        assert rows["correct"].to_numpy()[-1] == trace.correct
        env: Any = gym.make(env_id, **kwargs).unwrapped
        env.reset(seed=4, options={"episode": 2})
        scores = env.problem.score(trace.answers, env._core.means[0])
        np.testing.assert_allclose(rows["score"].to_numpy(), scores)
    assert trace.to_frame()["arm"].tolist() == arms
