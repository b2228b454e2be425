"""(ST)^2, its rivals two-step, UCB and oracle APT, and LUCB1: oracles by hand, against literal twins, the contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import random_arms
from twins_all_good import apt_oracle, as_twin, lucb, st2, two_step, ucb
from twins_top_k import Seen

import agents
from bandit_envs import Gaussian, Instance

ALL_GOOD, TOP_K, BEST_ARM = (f"bandit_envs/{name}-v0" for name in ("AllGood", "TopK", "BestArm"))
Case = dict[str, Any]


def test_oracles_know_the_truth() -> None:
    arms = {"distribution": "gaussian", "mean": [0.0, 1.0, 1.2, 0.9]}
    env, share = (gym.make(ALL_GOOD, instance=arms, epsilon=0.25, budget=50, multiplicative=m) for m in (False, True))
    assert agents.make("apt-oracle", env).threshold == pytest.approx(0.95)
    assert agents.make("lucb", env, delta=0.1).k == 2
    assert agents.make("apt-oracle", share).threshold == pytest.approx(0.9)


SIZES = [(2, 3), (3, 11), (11, 25), (25, 61)]


def cases(seed: int, count: int) -> Iterator[tuple[np.random.Generator, int, Case]]:
    """Random environments of all good arms: K 2 .. 60, both forms, with and without slack; with their numbers."""
    g, episode = np.random.default_rng(seed), 0
    while episode < count:
        K = int(g.integers(*SIZES[g.integers(4)]))
        # Easy ones, that a run of a few hundred pulls may tell apart, and ties.
        means = g.choice([g.random(K), g.integers(0, 4, K) / 3])
        instance, multiplicative = random_arms(g, means, [0.02, 0.1, 0.3, 1.0], uniform=False), bool(g.random() < 0.5)
        if multiplicative and g.random() < 0.4:  # the best mean is positive, but seldom looks it early on
            instance = Instance(Gaussian(g.uniform(-0.3, 0.05, K).clip(max=0.04) + 0.05 * (np.arange(K) == 0), 1.0))
        if multiplicative and instance.arms.means.max() <= 0:
            continue
        case: Case = {"instance": instance, "multiplicative": multiplicative, "max_pulls": int(K + g.integers(400))}
        case["slack"] = float(g.choice([0.0, g.uniform(0, 0.3)]))
        case["epsilon"] = float(g.uniform(0.05, 0.9 if multiplicative else 0.6))
        yield g, episode, case | {"delta": float(g.choice([0.1, 0.01]))}
        episode += 1


def given_by(case: Case, *keys: str) -> Case:
    return {key: case[key] for key in keys}


instances = pytest.mark.parametrize("count", [20, 60])


@pytest.mark.parametrize(
    ("name", "of", "factors"), [("st2", st2, [4.0, 2.08, 0.3]), ("two-step", two_step, [4.0, 0.3, 0.1])]
)
def test_what_stops_is_its_twin(name: str, of: Any, factors: list[float]) -> None:
    """The same arms and the same answer on 60 random instances."""
    stopped = below = crossed = second = 0
    for g, episode, case in cases(17, 60):
        env: Any = gym.make(ALL_GOOD, actions="full", **case).unwrapped
        c, bounds = float(g.choice(factors)), str(g.choice(["current", "running"]))
        given = given_by(case, "epsilon", "multiplicative", "slack", "delta")
        twin = of(env.task.K, **given, c=c, sigma=env.task.sigma, running=bounds == "running")
        agent = agents.make(name, env, c=c, bounds=bounds)
        arms, answer = as_twin(env, agent, lambda _, twin=twin: twin, 2, episode)
        stopped += answer is not None
        below += case["multiplicative"] and case["instance"].arms.means.max() < 0.1
        crossed += case["slack"] > 0 and answer is not None
        second += answer is not None and len(arms) % 2 != env.task.K % 2  # a round of three pulls: step 2
    assert stopped >= 8
    assert below >= 5
    assert crossed >= 3
    assert second >= 1


@pytest.mark.parametrize("K", [65, 600])
def test_st2_is_its_twin_in_trees_of_every_depth(K: int) -> None:
    g, rules = np.random.default_rng(K), {"epsilon": 0.2, "delta": 0.1, "max_pulls": K + 300, "actions": "full"}
    for episode, (slack, bounds) in enumerate([(0.1, "running"), (0.0, "current")]):
        env: Any = gym.make(ALL_GOOD, instance=Instance(Gaussian(g.random(K), 0.3)), slack=slack, **rules).unwrapped
        twin = st2(K, 0.2, False, slack, 0.1, c=4.0, sigma=0.3, running=bounds == "running")
        as_twin(env, agents.make("st2", env, bounds=bounds), lambda _, twin=twin: twin, 3, episode)


@pytest.mark.parametrize("name", ["ucb", "apt-oracle"])
@instances
def test_what_spends_a_budget_is_its_twin(name: str, count: int) -> None:
    """The same arms and the same answer on random instances."""
    for g, episode, case in cases(4, count):
        K, budget = case["instance"].K, int(g.integers(1, 4 * case["instance"].K + 60))
        rules = given_by(case, "instance", "epsilon", "multiplicative") | {"budget": budget}
        env: Any = gym.make(ALL_GOOD, actions="full", **rules).unwrapped
        bounds, settings = str(g.choice(["current", "running"])), given_by(case, "epsilon", "multiplicative", "delta")
        if name == "ucb":
            agent = agents.make("ucb", env, delta=case["delta"], bounds=bounds)
            twin = ucb(K, budget, **settings, c=2.08, sigma=env.task.sigma, running=bounds == "running")
        else:
            agent, best = agents.make(name, env), float(env.instance.arms.means.max())
            right = (1 - case["epsilon"]) * best if case["multiplicative"] else best - case["epsilon"]
            assert agent.threshold == pytest.approx(right, rel=1e-12, abs=1e-15)
            twin = apt_oracle(K, budget, agent.threshold)
        as_twin(env, agent, lambda _, twin=twin: twin, 5, episode)


@instances
def test_lucb_is_its_twin(count: int) -> None:
    """The same arms and the same answer on random instances of each problem it solves, with both widths."""
    stopped = 0
    for g, episode, case in cases(8, count):
        K, widths = case["instance"].K, str(g.choice(["hoeffding", "lil"]))
        problem = str(g.choice([TOP_K, TOP_K, BEST_ARM, ALL_GOOD]))
        k, epsilon = int(g.integers(1, K)) if problem == TOP_K else 1, float(g.choice([0.0, 0.1, 0.4]))
        rules = given_by(case, "instance", "max_pulls", "delta")
        rules["epsilon"] = case["epsilon"] if problem == ALL_GOOD else epsilon
        if problem == TOP_K:
            rules |= {"k": k, "criterion": str(g.choice(["each", "aggregate"]))}
        env: Any = gym.make(problem, actions="full", **rules).unwrapped
        if problem == ALL_GOOD:
            k = int(env.problem.right_answer(env.instance.arms.means).sum())
            if k == K:  # no arm to leave out
                continue
        agent, c = agents.make("lucb", env, widths=widths), 2.08 if widths == "lil" else None
        assert agent.k == k
        twin = lucb(K, k, epsilon, case["delta"], env.task.sigma, stops=problem != ALL_GOOD, c=c)
        stopped += as_twin(env, agent, lambda _, twin=twin: twin, 9, episode)[1] is not None
    assert stopped >= count // 10


def test_lucb_answers_high_at_the_end_of_a_budget() -> None:
    for g, episode, case in cases(10, 12):
        K = case["instance"].K
        k, budget, what = int(g.integers(1, K)), int(g.integers(K, 3 * K)), Seen(K)
        env: Any = gym.make(TOP_K, instance=case["instance"], k=k, epsilon=1.0, budget=budget, actions="full").unwrapped
        twin = lucb(K, k, 1.0, 0.1, env.task.sigma, stops=False, arms=what)
        high = lambda m=what.m, k=k: set(sorted(range(len(m)), key=lambda i: (-m[i], i))[:k])
        mine = as_twin(env, agents.make("lucb", env, delta=0.1), lambda _, twin=twin: twin, episode, 0, high)
        assert len(mine[0]) == budget  # it does not stop, however large epsilon


def test_lucb_keeps_its_round_without_its_state() -> None:
    wide = {"distribution": "gaussian", "mean": [1.0, 0.9, 0.2, 0.0, 0.5], "sd": 1.0}
    env: Any = gym.make(TOP_K, k=2, instance=wide, delta=0.1, max_pulls=300, actions="full").unwrapped
    agent = agents.make("lucb", env)
    observation, _ = env.reset(seed=3)
    state = None
    for t in range(200):
        action, state = agent.predict(observation, state)
        if t >= 5 and t % 2 == 1:  # at the beginning of a round: (t - 5) / 2 of them are over
            assert state.now["t"].tolist() == [(t - 5) // 2 + 1]
            again, other = agent.predict(observation, None)
            assert again["arm"] in state.todo[0, 0, :2]
            assert other.now["t"].tolist() == state.now["t"].tolist()
        observation, *_ = env.step(action)


def test_oracles_may_be_told_the_truth() -> None:
    drawn = gym.make(ALL_GOOD, instance={"sampler": {"distribution": "gaussian", "arms": 5}}, delta=0.1, max_pulls=9)
    assert agents.make("apt-oracle", drawn, threshold=0.4).threshold == 0.4
    assert agents.make("lucb", drawn, k=2).k == 2
