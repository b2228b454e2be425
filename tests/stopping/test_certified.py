"""Certified agents: any sampler, which stops when its answer is certified; and what a certificate is worth."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import certified_agents
import gymnasium as gym
import numpy as np
import pytest
from certified_agents import CERTIFIED, SETTINGS, bernoulli, gaussian, rows
from pandas.testing import assert_frame_equal
from refusals import refused
from rollouts import forgetful

import agents
from agents import Algorithm, testing
from agents.core import ALL_PROBLEMS, Agent
from agents.core.certified import Certified, Featured, certified
from agents.evaluation.report import summary
from agents.registry import Recipe
from bandit_envs import AllGood, BestArm, Threshold, TopK, from_table
from bandit_envs.kernels import jit
from bandit_envs.stopping import nearest_alternative

# Played by indices, networks, plans, in turn; and one that stops by a certificate of its own.
QUICK = [("Threshold", "lsa"), ("Threshold", "ppo"), ("TopK", "lucb"), ("AllGood", "uniform"), ("BestArm", "evidence")]


@pytest.mark.parametrize(("problem", "name"), QUICK)
def test_every_agent_certified(problem: str, name: str) -> None:
    certified_agents.check(problem, name)


@pytest.mark.parametrize("check", ["evaluate", "order_of_the_batch", "pickles", "single_is_batch"])
@pytest.mark.parametrize("name", ["lsa", "uniform"])
def test_a_plain_loop_stops_where_evaluate_does(name: str, check: str) -> None:
    """In batches too, and with copies of the agent and its state; or without a state, if that is lost."""
    kwargs = SETTINGS["Threshold"] | {"delta": 0.1, "max_pulls": 900}
    env = gym.make("bandit_envs/Threshold-v0", **kwargs)
    testing._run(name + CERTIFIED, getattr(testing, f"check_{check}"), env)
    envs = gym.make_vec("bandit_envs/Threshold-v0", 3, actions="full", **kwargs)
    forgetful(envs, agents.make(name + CERTIFIED, envs), 400)


@pytest.mark.parametrize("option", [{"distribution": "student"}, {"boundary": "kaufmann-koolen"}, {"rho": 3.0}])
def test_copies_and_pickles_judge_by_the_same_certificate(option: dict[str, Any]) -> None:
    env = gym.make("bandit_envs/BestArm-v0", instance=gaussian(0.0, 1.0), delta=0.1, max_pulls=2000)
    plain, agent = (agents.make("uniform", env, stop="certificate", **given) for given in ({}, option))
    seen = np.array([[100, 100]]), np.array([[0.0, 1.5]]), np.ones((1, 2)), np.array([[0, 1]], np.int8)
    level = float(agent.certifier.levels(*seen)[0])
    assert 0 < level < 1
    assert level != float(plain.certifier.levels(*seen)[0])
    for again in (pickle.loads(pickle.dumps(agent)), copy.deepcopy(agent)):
        assert float(again.certifier.levels(*seen)[0]) == level


@pytest.mark.parametrize("boundary", ["mixture", "kaufmann-koolen"])
def test_it_stops_at_the_first_look_at_which_the_level_is_delta(boundary: str) -> None:
    env = gym.make("bandit_envs/Threshold-v0", actions="arm", **SETTINGS["Threshold"], delta=0.1, max_pulls=2000)
    agent, options = agents.make("uniform", env, stop="certificate", boundary=boundary), {"distribution": "bernoulli"}
    (observation, _), state, arm, look = env.reset(seed=1), None, 0, 4
    for t in range(2000):
        level = agent.problem.certified_level(observation["pulls"], observation["mean"], boundary=boundary, **options)
        arm, state = agent.predict(observation, state)
        assert (arm == 4) == (t == look and level <= 0.1)
        if arm == 4:
            break
        look += max(1, t // 200) if t == look else 0
        observation, *_ = env.step(arm)
    assert arm == 4


def test_an_agent_that_stops_too_soon_goes_on_until_its_answer_is_certified() -> None:
    kwargs = SETTINGS["BestArm"] | {"delta": 0.1, "max_pulls": 10**6}
    certain, told, at_once = (
        agents.evaluate([agent], "BestArm", episodes=20, env_kwargs=kwargs).episodes
        for agent in ("lucb(delta=0.9, stop='certificate')", "uniform(stop='certificate')", hasty)
    )
    assert not certain["truncated"].any()
    assert certain["total_pulls"].mean() < told["total_pulls"].mean()
    assert not at_once["truncated"].any()
    assert at_once["correct"].all()
    assert at_once["total_pulls"].mean() < 2 * told["total_pulls"].mean()


class Hasty(Agent):
    """It stops at once."""

    name, solves, stops = "hasty", ALL_PROBLEMS, True

    def choose(self, observation: Any, state: Any) -> Any:
        return np.full(len(observation["pulls"]), self.task.stop)


def hasty(task: Any) -> Any:
    return certified(task, Hasty(task), {})


def test_what_is_pulled_once_the_agent_within_has_stopped() -> None:
    """The arm that a certificate lacks; a rare one where it has fewer than sqrt(t) - K / 2 pulls of t, or none."""
    kwargs = {"instance": bernoulli(0.02, 0.05, 0.5, 0.52, 0.55), "delta": 0.1, "max_pulls": 10**5}
    env = gym.make("bandit_envs/BestArm-v0", actions="arm", **kwargs)
    agent, K, rare = hasty(env), 5, 0
    certifier = agent.certifier.decider(0.1)
    observation, state, t, due, arm, alternative = env.reset(seed=4)[0], None, 0, 0, 0, np.zeros(2 + 3 * K)
    for t in range(1500):
        pulls = observation["pulls"]
        if t >= due:
            due = t + max(t // 200, 1)
            statistics = pulls, observation["mean"], observation["variance"]
            inside, scratch = np.full(K, -1, np.int8), np.zeros(certifier.scratch)
            ask(certifier.address, *statistics, inside, certifier.numbers, scratch, alternative)
            assert alternative[0] == -math.inf  # nothing is certified yet
            lacks, least = int(alternative[2]), int(pulls.argmin())
            arm = least if pulls[least] < max(math.sqrt(t) - K / 2, 1) else lacks
            rare += arm != lacks
        told, state = agent.predict(observation, state)
        assert told == arm
        observation, *_ = env.step(told)
    assert 20 < rare < 300


PLAIN = "uniform(stop='certificate')"
HALF_PLANES = {"A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5]}
SCORES = np.random.default_rng(0).random((60, 4)) < [0.2, 0.4, 0.5, 0.9]
IN_TURN: dict[str, tuple[str, dict[str, Any]]] = {
    "threshold": ("Threshold", {"instance": bernoulli(0.1, 0.3, 0.75, 0.9)}),
    "all good": ("AllGood", {"instance": bernoulli(0.1, 0.3, 0.88, 0.9), "epsilon": 0.3, "shuffle_arms": True}),
    "top k": ("TopK", {"instance": gaussian(0.0, 0.4, 1.5, 2.0), "k": 2, "epsilon": 0.1}),
    "feasible": ("Feasible", {"instance": gaussian([0.9, 0.1], [0.2, 0.9], sd=0.3), **HALF_PLANES}),
    "bounded": ("BestArm", {"instance": {"sampler": {"distribution": "uniform", "arms": 5, "spread": 0.2}}}),
    "capped": ("BestArm", {"instance": bernoulli(0.5, 0.52), "max_pulls": 333}),
    "a budget": ("BestArm", {"instance": bernoulli(0.1, 0.3, 0.5), "budget": 200}),
    "many": ("Threshold", {"instance": {"sampler": {"arms": 300}}, "max_pulls": 2000}),
    "a table": ("BestArm", {"instance": from_table(SCORES.astype(float), shared=True)}),
}


class Two(Agent):
    """Every arm once and then the last one, up to 30 pulls, after which it stops."""

    name, solves, stops = "two", ALL_PROBLEMS, True

    def choose(self, observation: Any, state: Any) -> Any:
        t, K = observation["pulls"].sum(axis=1), self.task.K
        return np.where(t < K, t, np.where(t < 30, K - 1, K))


class Planless(Algorithm):
    """It pulls each arm once, as all algorithms do, and stops; in compiled code."""

    name, solves = "planless", ALL_PROBLEMS

    def sample(ep: Any, own: Any) -> None:  # type: ignore[misc]
        """Plan nothing."""


@pytest.mark.parametrize("case", IN_TURN)
def test_an_agent_that_chooses_no_arm_is_uniform_where_nothing_is_pulled_for_it(case: str) -> None:
    """Pulls, answers and looks, by `evaluate` and by `predict`, in batches of any size."""
    problem, kwargs = IN_TURN[case]
    kwargs = {"delta": 0.1, "max_pulls": 4000} | kwargs
    own = {"stop": "certificate", "completes": False}
    compared = {"plain": PLAIN, "idle": Recipe("", "", Hasty, own), "compiled": Recipe("", "", Planless, own)}
    result = agents.evaluate(compared, problem, episodes=40, env_kwargs=kwargs, batch=7)
    for table in (result.episodes, result.pulls):
        plain, *others = (table[table["agent"] == name].drop(columns=["agent"]) for name in compared)
        for other in others:
            assert_frame_equal(plain.reset_index(drop=True), other.reset_index(drop=True), check_exact=True)
    traces = []
    for kind, more in (("uniform", {}), (Hasty, {"completes": False})):
        env: Any = gym.make_vec(f"bandit_envs/{problem}-v0", 3, actions="full", autoreset_mode="SameStep", **kwargs)
        agent, (seen, _) = agents.make(kind, env, stop="certificate", **more), env.reset(seed=3)
        state, begins, steps = None, np.ones(3, np.bool_), list[Any]()
        for _ in range(600):
            action, state = agent.predict(seen, state, begins)
            stops = action["arm"] == env.task.stop
            steps.append((action["arm"].tolist(), action["times"][~stops].tolist(), action["answer"][stops].tolist()))
            seen, _, ended, cut, _ = env.step(action)
            begins = ended | cut
        traces.append(steps)
    assert traces[0] == traces[1]


def test_what_an_agent_has_chosen_stays_its_own_and_the_arms_behind_are_pulled_in_turn() -> None:
    env = gym.make("bandit_envs/BestArm-v0", instance=bernoulli(0.4, 0.5, 0.55), delta=0.1, max_pulls=200)
    agent = agents.make(Two, env, stop="certificate", completes=False)
    observation, state, arms = env.reset(seed=1)[0], None, list[int]()
    for _ in range(100):
        arm, state = agent.predict(observation, state)
        arms.append(int(arm))
        observation, *_ = env.step(arm)
    behind = [0, 1] * 27 + [0, 1, 2] * 6  # 1, 1 and 28 pulls
    assert arms == ([0, 1] + [2] * 28 + behind)[:100]


def test_options() -> None:
    kwargs = SETTINGS["Threshold"] | {"max_pulls": 900}
    env, without = (
        gym.make("bandit_envs/Threshold-v0", actions="full", **kwargs | more) for more in ({"delta": 0.1}, {})
    )
    for text in ("lsa(stop='certificate', alpha=2)", "lsa(stop='certificate', boundary='kaufmann-koolen', alpha=2)"):
        agent = agents.make(text, env)
        assert isinstance(agent, Certified)
        assert agent.agent.alpha == 2.0  # type: ignore[attr-defined]
        assert agent.name == "lsa(stop='certificate')"
    assert not isinstance(agents.make("lsa(stop=None)", env), Certified)
    short = agents.make("lsa(stop='certificate', completes=False)", env)
    assert (
        short.parameters["completes"] is short.for_task(short.task.replace(delta=0.2)).parameters["completes"] is False
    )
    with refused("completes", 2):
        agents.make("lsa", env, stop="certificate", completes=2)
    assert agents.make("lsa", without, stop="certificate", delta=0.2).delta == 0.2
    assert agents.make("lsa", env, stop="certificate", distribution="gaussian", rho=10.0).certifier.numbers[3] == 10.0


def test_for_another_task_and_as_an_object() -> None:
    kwargs = SETTINGS["Threshold"] | {"delta": 0.1, "max_pulls": 900}
    env = gym.make("bandit_envs/Threshold-v0", actions="full", **kwargs)
    agent = agents.make("lsa(alpha=2)", env, stop="certificate", rho=20.0)
    one = agents.make("uniform(stop='certificate')", env)
    assert repr(agents.make(one, env)) == repr(one)  # certified once
    named, made = (
        agents.evaluate(several, "Threshold", episodes=4, env_kwargs=kwargs)
        for several in ("lsa(alpha=2, stop='certificate', rho=20.0)", [agent, "lsa(alpha=2)"])
    )
    assert made.agents == ["lsa(stop='certificate')", "lsa(alpha=2)"]
    assert_frame_equal(rows(made)[:4], rows(named), atol=0)
    other = agent.for_task(agent.task.replace(delta=0.01))
    assert (other.delta, other.agent.task.delta, other.agent.alpha) == (0.01, 0.01, 2.0)
    assert agent.for_task(agent.task) is agent
    with refused("K", 4, 5):
        agent.for_task(agent.task.replace(K=5))
    (observation, _), apt = env.reset(seed=0), agents.make("apt", env, stop="certificate")
    with refused("state", "None"):
        apt.predict(observation, agent.predict(observation)[1])
    # An oracle is told the truth of each environment, certified or not.
    known = gym.make("bandit_envs/AllGood-v0", actions="full", **SETTINGS["AllGood"], delta=0.1)
    assert agents.make("lucb", known, stop="certificate").told == {"k"}
    with refused("oracle"):
        agents.make("lucb", gym.make("bandit_envs/AllGood-v0", delta=0.1), stop="certificate")


def test_a_network_reads_what_the_environment_would_show_it() -> None:
    """A hardly certifiable task: the certified network pulls what the network pulls."""
    kwargs = {"instance": bernoulli(0.1, 0.45, 0.55, 0.9), "budget": 60, "delta": 1e-9}
    for problem, more in (("Threshold", {}), ("TopK", {"k": 2})):
        plain, sure = (
            agents.evaluate(name, problem, episodes=6, env_kwargs=kwargs | more, progress=False)
            for name in ("ppo", "ppo" + CERTIFIED)
        )
        assert_frame_equal(plain.pulls.drop(columns="agent"), sure.pulls.drop(columns="agent"), atol=0)


def test_a_policy_with_a_state_is_told_where_an_episode_begins() -> None:
    told = []

    class Stateful:
        def predict(self, x: Any, state: Any, episode_start: Any, deterministic: bool) -> Any:
            told.append((state, episode_start.tolist()))
            return np.full(len(episode_start), len(told) % 4), (state or 0) + 1

    env = gym.make("bandit_envs/Threshold-v0", actions="arm", **SETTINGS["Threshold"], delta=1e-9, max_pulls=9)
    agent = certified(env, Featured(env, Stateful()), {})
    (observation, _), state = env.reset(seed=1), None
    for _ in range(5):
        arm, state = agent.predict(observation, state)
        observation, *_ = env.step(arm)
    assert told == [(t or None, [t == 0]) for t in range(5)]


def test_levels_are_reported() -> None:
    kwargs = SETTINGS["TopK"] | {"delta": 0.1, "max_pulls": 900}
    names = ["uniform(stop='certificate')", "lucb", "random(stop='certificate', boundary='kaufmann-koolen')"]
    done = agents.evaluate(names, "TopK", episodes=5, env_kwargs=kwargs, at=[40, 900], progress=False)
    table = done.summary().set_index(["agent", "at"])
    late = table.xs(900, level="at")
    assert late["certified"][names[0]] == late["certified"][names[2]] == late["stopped"][names[0]] == 1.0
    assert (late["level"][[names[0], names[2]]] <= 0.1).all()
    assert (table.xs(40, level="at")["level"] >= late["level"]).all()
    assert " certified" in summary(done).splitlines()[2]
    assert done.column(names[0], "level", at=900).max() <= 0.1
    # The column is what the problem says of the statistics, and so is the info of an environment.
    env = gym.make("bandit_envs/TopK-v0", actions="arm", **kwargs)
    observation, _ = env.reset(seed=0)
    agent, state, over = agents.make("uniform", env, stop="certificate"), None, False
    while not over:
        arm, state = agent.predict(observation, state)
        observation, *_, truncated, info = env.step(arm)
        over = arm == 4 or truncated
    level = agent.problem.certified_level(observation["pulls"], observation["mean"], distribution="bernoulli")
    assert info["level"] == pytest.approx(float(level), rel=1e-9)
    assert info["level"] == done.column(names[0], "level", at=900)[0]
    plain = agents.evaluate("uniform", "TopK", episodes=2, env_kwargs=SETTINGS["TopK"] | {"budget": 50}, progress=False)
    assert "level" not in plain.episodes


def test_arms_that_are_pulled_once_are_decided_on_too() -> None:
    certifier, told = Threshold(0.0).certifier(2), np.zeros(8)
    pulls, mean, variance, inside = np.array([1, 1]), np.array([9.0, -9.0]), np.zeros(2), np.full(2, -1, np.int8)
    alternatives = certifier.alternatives(pulls[None], mean[None], variance[None], inside[None].copy())
    assert alternatives.shape == (1, 8)
    assert alternatives[0, 0] > math.log(10)
    quick = certifier.decider(0.1)
    ask(quick.address, pulls, mean, variance, inside, quick.numbers, np.zeros(quick.scratch), told)
    assert told[0] == math.inf


@jit
def ask(address: Any, T: Any, m: Any, v: Any, inside: Any, numbers: Any, scratch: Any, out: Any) -> Any:
    nearest_alternative(address, T, m, v, inside, numbers, scratch, out)


PAIRS = [Threshold(0.5, 0.05), Threshold(0.25, 0.05), TopK(2, 0.05, "each"), TopK(3), AllGood(0.1), BestArm(0.1)]
PAIRS += [AllGood(0.2, True, 0.1), AllGood(0.5, True, 0.6), AllGood(0.1, slack=0.1)]


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli", "student"])
@pytest.mark.parametrize("problem", PAIRS, ids=repr)
def test_what_is_decided_quickly_is_what_the_level_says(problem: Any, distribution: str) -> None:
    rng, K, both = np.random.default_rng(0), 5, set()
    for boundary in ("mixture", "kaufmann-koolen") if distribution != "student" else ("mixture",):
        certifier = problem.certifier(K, distribution=distribution, boundary=boundary, centre=0.5)
        quick = certifier.decider(0.1)
        assert quick.kind == certifier.kind
        for _ in range(80):
            pulls = rng.poisson(10 ** rng.uniform(0, 4.5) * rng.uniform(0.2, 1, K))
            hits = np.round(rng.uniform(0, 1, K) * pulls)
            mean = np.where(pulls > 0, hits / np.maximum(pulls, 1), 0.0)
            mean = np.round(4 * mean) / 4 if rng.random() < 0.3 else mean  # ties
            variance, inside = mean * (1 - mean), np.full(K, -1, np.int8)
            out, told = np.zeros(2 + 3 * K), np.zeros(2 + 3 * K)
            told[1], told[3] = rng.integers(K, size=2)
            for one, found in ((certifier, out), (quick, told)):
                ask(one.address, pulls, mean, variance, inside.copy(), one.numbers, np.zeros(one.scratch), found)
            sure = out[0] >= math.log(10)
            assert told[0] == (math.inf if sure else -math.inf)
            both.add(bool(sure))
            if not sure:
                again = told.copy()
                ask(quick.address, pulls, mean, variance, inside.copy(), quick.numbers, np.zeros(quick.scratch), again)
                assert (again[0], again[1]) == (told[0], told[1])
                assert told[2] in (told[1], told[3])
                assert 0 <= told[2] < K
    assert both == {False, True}
