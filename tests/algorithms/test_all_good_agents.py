"""(ST)^2, its rivals two-step, UCB and oracle APT, and LUCB1: oracles by hand, against literal twins, the contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused
from twins_all_good import Arms, apt_oracle, follow, lucb, play, st2, two_step, ucb

import agents
from bandit_envs import Bernoulli, Categorical, Gaussian, Instance, Task

ALL_GOOD, TOP_K, BEST_ARM = (f"bandit_envs/{name}-v0" for name in ("AllGood", "TopK", "BestArm"))
Case = dict[str, Any]


def task(**changes: Any) -> Task:
    """All good arms of 3 Gaussian arms of scale 1, with epsilon 1/2 and delta 1/10."""
    parameters = {"epsilon": 0.5, "multiplicative": False, "slack": 0.0}
    plain = Task("AllGood", parameters, K=3, distribution="gaussian", sigma=1.0, delta=0.1, max_pulls=1000)
    return plain.replace(**changes)


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_oracles_know_the_truth() -> None:
    env = gym.make(
        ALL_GOOD, instance={"distribution": "gaussian", "mean": [0.0, 1.0, 1.2, 0.9]}, epsilon=0.25, budget=50
    )
    assert agents.make("apt-oracle", env).threshold == pytest.approx(0.95)
    assert agents.make("lucb", env, delta=0.1).k == 2
    share = gym.make(
        ALL_GOOD,
        instance={"distribution": "gaussian", "mean": [0.0, 1.0, 1.2, 0.9]},
        epsilon=0.25,
        budget=50,
        multiplicative=True,
    )
    assert agents.make("apt-oracle", share).threshold == pytest.approx(0.9)


# --- twins -----------------------------------------------------------------------------------------------------------


def arms_of(g: np.random.Generator, K: int) -> Instance:
    """Random arms of some distribution: easy ones, that a run of a few hundred pulls may tell apart, and ties."""
    means = g.choice([g.random(K), g.integers(0, 4, K) / 3])
    kind = g.choice(["gaussian", "bernoulli", "categorical"], p=[0.6, 0.2, 0.2])
    if kind == "bernoulli":
        return Instance(Bernoulli(means))
    if kind == "categorical":
        return Instance(Categorical([1.0, 2.0, 3.0], g.integers(1, 9, (K, 3))))
    return Instance(Gaussian(means, float(g.choice([0.02, 0.1, 0.3, 1.0]))))


SIZES = [(2, 3), (3, 11), (11, 25), (25, 61)]


def cases(seed: int) -> Iterator[tuple[np.random.Generator, Case]]:
    """Random environments of all good arms without end: K 2 .. 60, both forms, with and without slack."""
    g = np.random.default_rng(seed)
    while True:
        K = int(g.integers(*SIZES[g.integers(4)]))
        instance, multiplicative = arms_of(g, K), bool(g.random() < 0.5)
        if multiplicative and g.random() < 0.4:  # the best mean is positive, but seldom looks it early on
            instance = Instance(Gaussian(g.uniform(-0.3, 0.05, K).clip(max=0.04) + 0.05 * (np.arange(K) == 0), 1.0))
        if multiplicative and instance.arms.means.max() <= 0:
            continue
        high = 0.9 if multiplicative else 0.6
        slack = float(g.choice([0.0, g.uniform(0, 0.3)]))
        epsilon, delta = float(g.uniform(0.05, high)), float(g.choice([0.1, 0.01]))
        yield (
            g,
            {
                "instance": instance,
                "epsilon": epsilon,
                "multiplicative": multiplicative,
                "slack": slack,
                "delta": delta,
                "max_pulls": int(K + g.integers(400)),
            },
        )


def given_by(case: Case, *keys: str) -> Case:
    return {key: case[key] for key in keys}


@pytest.mark.parametrize(
    ("name", "of", "factors"), [("st2", st2, [4.0, 2.08, 0.3]), ("two-step", two_step, [4.0, 0.3, 0.1])]
)
def test_what_stops_is_its_twin(name: str, of: Any, factors: list[float]) -> None:
    """The same arms and the same answer on 60 random instances."""
    stopped = below = crossed = second = 0
    for episode, (g, case) in zip(range(60), cases(seed=1), strict=False):
        env: Any = gym.make(ALL_GOOD, actions="full", **case).unwrapped
        given: Case = {"c": float(g.choice(factors)), "bounds": str(g.choice(["current", "running"]))}
        mine = play(env, agents.make(name, env, **given), env.reset(seed=2, options={"episode": episode})[0])
        env.reset(seed=2, options={"episode": episode})
        settings = given_by(case, "epsilon", "multiplicative", "slack", "delta")
        twin = of(env.task.K, **settings, c=given["c"], sigma=env.task.sigma, running=given["bounds"] == "running")
        assert mine == follow(env, twin), (episode, case, given)
        stopped += mine[1] is not None
        below += case["multiplicative"] and case["instance"].arms.means.max() < 0.1
        crossed += case["slack"] > 0 and mine[1] is not None
        second += mine[1] is not None and len(mine[0]) % 2 != env.task.K % 2  # a round of three pulls: step 2
    assert stopped >= 8
    assert below >= 5
    assert crossed >= 3
    assert second >= 1


@pytest.mark.parametrize("K", [65, 600])
def test_st2_is_its_twin_in_trees_of_every_depth(K: int) -> None:
    g = np.random.default_rng(K)
    for episode in range(2):
        slack, bounds = (0.0, "current") if episode else (0.1, "running")
        instance = Instance(Gaussian(g.random(K), 0.3))
        env: Any = gym.make(
            ALL_GOOD, instance=instance, epsilon=0.2, slack=slack, delta=0.1, max_pulls=K + 300, actions="full"
        ).unwrapped
        mine = play(env, agents.make("st2", env, bounds=bounds), env.reset(seed=3, options={"episode": episode})[0])
        env.reset(seed=3, options={"episode": episode})
        twin = st2(K, 0.2, False, slack, 0.1, c=4.0, sigma=0.3, running=bounds == "running")
        assert mine == follow(env, twin)


@pytest.mark.parametrize("name", ["ucb", "apt-oracle"])
def test_what_spends_a_budget_is_its_twin(name: str) -> None:
    """The same arms and the same answer on 60 random instances."""
    for episode, (g, case) in zip(range(60), cases(seed=4), strict=False):
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
        mine = play(env, agent, env.reset(seed=5, options={"episode": episode})[0])
        env.reset(seed=5, options={"episode": episode})
        assert mine == follow(env, twin), (episode, case, budget)


def test_lucb_is_its_twin() -> None:
    """The same arms and the same answer on 60 random instances of each problem it solves, with both widths."""
    stopped = 0
    for episode, (g, case) in zip(range(60), cases(seed=8), strict=False):
        K, widths = case["instance"].K, str(g.choice(["hoeffding", "lil"]))
        problem = str(g.choice([TOP_K, TOP_K, BEST_ARM, ALL_GOOD]))
        rules: Case = {"instance": case["instance"], "max_pulls": case["max_pulls"], "delta": case["delta"]}
        epsilon = float(g.choice([0.0, 0.1, 0.4]))
        k = 1
        if problem == TOP_K:
            k = int(g.integers(1, K))
            rules |= {"k": k, "epsilon": epsilon, "criterion": str(g.choice(["each", "aggregate"]))}
        elif problem == BEST_ARM:
            rules |= {"epsilon": epsilon}
        else:
            rules |= {"epsilon": case["epsilon"]}
        env: Any = gym.make(problem, actions="full", **rules).unwrapped
        given: Case = {"widths": widths}
        if problem == ALL_GOOD:
            k = int(env.problem.right_answer(env.instance.arms.means).sum())
            if k == K:  # no arm to leave out
                continue
        agent = agents.make("lucb", env, **given)
        assert agent.k == k
        mine = play(env, agent, env.reset(seed=9, options={"episode": episode})[0])
        env.reset(seed=9, options={"episode": episode})
        twin = lucb(
            K, k, epsilon, case["delta"], env.task.sigma, stops=problem != ALL_GOOD, c=2.08 if widths == "lil" else None
        )
        assert mine == follow(env, twin), (episode, rules, widths)
        stopped += mine[1] is not None
    assert stopped >= 6


def test_lucb_answers_high_at_the_end_of_a_budget() -> None:
    for episode, (g, case) in zip(range(12), cases(seed=10), strict=False):
        K = case["instance"].K
        k, budget = int(g.integers(1, K)), int(g.integers(K, 3 * K))
        env: Any = gym.make(TOP_K, instance=case["instance"], k=k, epsilon=1.0, budget=budget, actions="full").unwrapped
        mine = play(env, agents.make("lucb", env, delta=0.1), env.reset(seed=episode)[0])
        assert len(mine[0]) == budget  # it does not stop, however large epsilon
        env.reset(seed=episode)
        what = Arms(K)
        twin = lucb(K, k, 1.0, 0.1, env.task.sigma, stops=False, arms=what)
        high = lambda m=what.m, k=k: set(sorted(range(len(m)), key=lambda i: (-m[i], i))[:k])
        assert mine == follow(env, twin, high)


# --- the contract ----------------------------------------------------------------------------------------------------

RULES: Case = {"instance": {"distribution": "gaussian", "mean": [1.0, 0.9, 0.2, 0.0, 0.5], "sd": 0.1}, "epsilon": 0.25}


def test_lucb_keeps_its_round_without_its_state() -> None:
    wide = RULES["instance"] | {"sd": 1.0}
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


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["st2", "two-step", "ucb", "lucb"])
def test_no_delta(name: str) -> None:
    env = gym.make(ALL_GOOD, **RULES, budget=50)
    with refused(name, "delta"):
        agents.make(name, env)
    assert agents.make(name, env, delta=0.2) is not None


def test_oracles_without_truth() -> None:
    drawn = gym.make(ALL_GOOD, instance={"sampler": {"distribution": "gaussian", "arms": 5}}, delta=0.1, max_pulls=9)
    with refused("apt-oracle", "threshold="):
        agents.make("apt-oracle", drawn)
    with refused("lucb", "AllGood", "k="):
        agents.make("lucb", drawn)
    assert agents.make("apt-oracle", drawn, threshold=0.4).threshold == 0.4
    assert agents.make("lucb", drawn, k=2).k == 2
