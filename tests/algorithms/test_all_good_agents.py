"""(ST)^2, its rivals two-step, UCB and oracle APT, and LUCB1: by hand, against literal twins, delta, the contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import seen
from refusals import refused
from scipy import stats
from twins_all_good import Arms, apt_oracle, follow, lil, lucb, play, st2, two_step, ucb

import agents
from agents.core.confidence import lil_width
from bandit_envs import Bernoulli, Categorical, Gaussian, Instance, Task

ALL_GOOD, TOP_K, BEST_ARM = (f"bandit_envs/{name}-v0" for name in ("AllGood", "TopK", "BestArm"))
NAMES = ["st2", "two-step", "ucb", "apt-oracle", "lucb"]
Case = dict[str, Any]
NEEDS: dict[str, Case] = {"apt-oracle": {"threshold": 0.5}, "lucb": {"k": 1}}  # without a fixed instance


def task(**changes: Any) -> Task:
    """All good arms of 3 Gaussian arms of scale 1, with epsilon 1/2 and delta 1/10."""
    parameters = {"epsilon": 0.5, "multiplicative": False, "slack": 0.0}
    plain = Task("AllGood", parameters, K=3, distribution="gaussian", sigma=1.0, delta=0.1, max_pulls=1000)
    return plain.replace(**changes)


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_widths() -> None:
    # c sigma^2 = 4, delta / n = 1/30: T = 1: sqrt(4 ln(30 log2(2)) / 1) = sqrt(4 * 3.401197) = 3.688467
    assert lil_width(1.0, 1 / 30, 4.0) == pytest.approx(3.688467, abs=1e-6)
    # T = 8: log2(16) = 4; sqrt(4 ln(120) / 8) = sqrt(4.787492 / 2) = 1.547174
    assert lil_width(8.0, 1 / 30, 4.0) == pytest.approx(1.547174, abs=1e-6)
    assert lil(8, 3, 0.1, 4.0, 1.0) == pytest.approx(lil_width(8.0, 1 / 30, 4.0), rel=1e-15)
    # the defaults: the paper's 4; 2.08 of its experiments for the rivals
    agent = agents.make("st2", task())
    assert (agent.rules.factor, agent.rules.level) == (4.0, pytest.approx(1 / 30))
    assert agents.make("st2", task(sigma=0.5)).rules.factor == 1.0
    assert agents.make("ucb", task()).factor == 2.08
    # UCB, T = 8, mean 1/4: -(1/4 + sqrt(2.08 ln(120) / 8)) = -(.25 + sqrt(1.244748)) = -1.365683
    assert agents.make("ucb", task()).value(np.array([8.0]), np.array([0.25])) == pytest.approx(-1.365683, abs=1e-6)
    # APT, T = 4, mean 3/4, threshold 1/2: 2 * 1/4
    assert agents.make("apt-oracle", task(), threshold=0.5).value(np.array([4.0]), np.array([0.75])) == 0.5


@pytest.mark.parametrize("name", NAMES)
def test_arms_are_pulled_once_in_order(name: str) -> None:
    given = NEEDS.get(name, {})
    agent = agents.make(name, task(actions="arm"), **given)
    for pulls, arm in (([0, 0, 0], 0), ([1, 0, 0], 1), ([1, 1, 0], 2), ([0, 1, 1], 0)):
        assert agent.predict(seen(pulls, [0.0, 0.0, 0.0]))[0] == arm


def test_st2_first_rounds() -> None:
    agent, state = agents.make("st2", task(actions="arm")), None
    arms = []
    # One pull each, C = 3.69 for all. Means 0, 2, 1.8; Ghat = {m >= 1.5} = {1, 2}. Line 7: the least lower bound of
    # Ghat is that of arm 2. Line 8: arm 0 is alone outside. Line 9: arm 1 has the largest upper bound.
    for pulls, mean in (([1, 1, 1], [0.0, 2.0, 1.8]), ([1, 1, 2], [0.0, 2.0, 1.8]), ([2, 1, 2], [0.0, 2.0, 1.8])):
        arm, state = agent.predict(seen(pulls, mean), state)
        arms.append(arm)
    assert arms == [2, 0, 1]
    # Two pulls each: C = sqrt(4 ln(60) / 2) = 2.86. Arm 2 has fallen to 1, outside: Ghat = {1}, and arm 1 is pulled
    # first; of arms 0 and 2 outside arm 2 has the larger upper bound; line 9 pulls arm 1 again.
    arms = []
    for pulls, mean in (([2, 2, 2], [0.0, 2.0, 1.0]), ([2, 3, 2], [0.0, 2.0, 1.0]), ([2, 3, 3], [0.0, 2.0, 1.0])):
        arm, state = agent.predict(seen(pulls, mean), state)
        arms.append(arm)
    assert arms == [1, 2, 1]


def test_st2_stops_and_answers_what_is_certified() -> None:
    agent = agents.make("st2", task())
    # 100 pulls each: C = sqrt(4 ln(30 log2(200)) / 100) = sqrt(.04 * ln(229.32)) = .46622. Means 3, 2.9, 0:
    # L = (3 - C) - .5 = 2.034, U = (3 + C) - .5 = 2.966. Arm 2: C < L, bad. Arm 0: 3 - C = 2.534 < U, unknown.
    action, state = agent.predict(seen([100] * 3, [3.0, 2.9, 0.0]))
    assert action["arm"] == 1  # the least lower bound of Ghat
    assert not action["answer"].any()
    # 10,000 pulls: C = sqrt(4 ln(30 log2(20,000)) / 10,000) = .0492: U = 2.549, L = 2.451. All are known.
    many = seen([10_000] * 3, [3.0, 2.9, 0.0])
    action, state = agent.predict(many)
    assert action["arm"] == 3
    assert action["answer"].tolist() == [1, 1, 0]
    assert agent.recommend(many, state).tolist() == [True, True, False]
    # An arm at 2.42 is unknown, as 2.469 > L. Slack 1/4 lowers U to 2.299, which certifies it: 2.371 > U.
    loose = agents.make("st2", task(parameters={"epsilon": 0.5, "multiplicative": False, "slack": 0.25}))
    many = seen([10_000] * 3, [3.0, 2.42, 0.0])
    action, state = loose.predict(many)
    assert (action["arm"], action["answer"].tolist()) == (3, [1, 1, 0])
    assert loose.recommend(many).tolist() == [True, True, False]  # plug-in, without a state: 3 - 2.42 < .5 + slack / 2
    assert agents.make("st2", task()).predict(many)[0]["arm"] != 3


def test_two_step_by_hand() -> None:
    wide = {"epsilon": 1.5, "multiplicative": False, "slack": 0.0}
    agent, state = agents.make("two-step", task(actions="arm", parameters=wide)), None
    assert (agent.rules.factor, agent.rules.level) == (4.0, pytest.approx(1 / 60))  # half of delta
    arms = []
    # Step 1: arm 1 has the largest mean, and of the others arm 2 has the largest upper bound.
    for pulls in ([1, 1, 1], [1, 2, 1]):
        arm, state = agent.predict(seen(pulls, [0.0, 2.0, 1.8]), state)
        arms.append(arm)
    assert arms == [1, 2]
    # 100 pulls each: C = sqrt(4 ln(60 log2(200)) / 100) = sqrt(.04 * 6.1283) = .49511. Means 4.5, 2.9, 0: arm 0 is the
    # best, as 4.5 - C = 4.005 > 2.9 + C = 3.395. U = 4.5 + C - 1.5 = 3.495, L = 2.505: arm 2 is bad, arm 1 is unknown
    # (2.405 to 3.395). Step 2 pulls arm 1, and arm 0, whose mean is the threshold.
    arms, state = [], None
    for pulls in ([100, 100, 100], [100, 101, 100], [101, 101, 100]):
        arm, state = agent.predict(seen(pulls, [4.5, 2.9, 0.0]), state)
        arms.append(arm)
    assert arms == [1, 0, 1]
    # 10,000 pulls: C = sqrt(4 ln(60 log2(20,000)) / 10,000) = .05198: U = 3.052, L = 2.948. At 2.8 arm 1 is bad, as
    # 2.852 < L. At 2.9 it is unknown, as 2.952 > L; slack .3 lowers U to 2.752, which certifies it: 2.848 > U.
    for slack, mean, arm, answer in ((0.0, 2.8, 3, [1, 0, 0]), (0.0, 2.9, 1, None), (0.3, 2.9, 3, [1, 1, 0])):
        agent = agents.make("two-step", task(parameters=wide | {"slack": slack}))
        many = seen([10_000] * 3, [4.5, mean, 0.0])
        action, state = agent.predict(many)
        assert action["arm"] == arm
        if answer is not None:
            assert action["answer"].tolist() == answer
            assert agent.recommend(many, state).tolist() == [bool(x) for x in answer]
    # step 1 goes on while two arms may be the best, although all three are certainly good
    assert agents.make("two-step", task(parameters=wide)).predict(seen([10_000] * 3, [4.5, 4.45, 4.4]))[0]["arm"] == 0


def test_lucb_first_rounds() -> None:
    best = Task(
        "TopK",
        {"k": 1, "epsilon": 0.5, "criterion": "each"},
        K=3,
        distribution="gaussian",
        sigma=1.0,
        delta=0.1,
        max_pulls=1000,
        actions="arm",
    )
    agent, state = agents.make("lucb", best), None
    arms = []
    # Means 1, 0, 2: h = 2. One pull each, so that l = 0, the better of the others.
    for pulls in ([1, 1, 1], [1, 1, 2]):
        arm, state = agent.predict(seen(pulls, [1.0, 0.0, 2.0]), state)
        arms.append(arm)
    # Round 2: 2 sqrt(ln(1.25 * 3 * 2^4 / .1) / (2 N)) = 2 sqrt(6.396930 / (2 N)) = 3.577 (N = 1), 2.529 (N = 2).
    # Arm 0, N = 2: 1 + 2.529 = 3.529; arm 1, N = 1: 0 + 3.577 = 3.577: l = 1.
    for pulls in ([2, 1, 2], [2, 1, 3]):
        arm, state = agent.predict(seen(pulls, [1.0, 0.0, 2.0]), state)
        arms.append(arm)
    assert arms == [2, 0, 2, 1]
    # Without its state the round is read from the pulls: 18 pulls, (18 - 3) / 2 rounds before this one, t = 8.
    _, state = agent.predict(seen([6, 6, 6], [1.0, 0.0, 2.0]))
    assert state.rounds["t"].tolist() == [8]
    # t = 4000 - 1: 2 sqrt(ln(37.5 * 3999^4) / 5334) = 2 sqrt(36.800 / 5334) = .166: 1 + .166 - (2 - .166) < .5
    assert agent.predict(seen([2667] * 3, [1.0, 0.0, 2.0]))[0] == 3


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


# --- delta -----------------------------------------------------------------------------------------------------------

EPISODES, DELTA = 400, 0.1
LIMIT = int(stats.binom.isf(1e-6, EPISODES, DELTA))  # 71: a rate of delta exceeds it once in 10^6 runs
# Two means within .05 of the boundary, one on each side.
HARD: Case = {"instance": {"distribution": "gaussian", "mean": [1.0, 0.55, 0.45, 0.85], "sd": 0.2}, "delta": DELTA}


def errors(name: str, env_id: str, **rules: Any) -> int:
    """Episodes that an agent answers wrongly."""
    rules = HARD | {"max_pulls": 200_000} | rules
    table = agents.evaluate(name, env_id, episodes=EPISODES, seed=0, env_kwargs=rules).episodes
    assert not table["truncated"].any()
    return int((~table["correct"]).sum())


FORMS: dict[str, Case] = {
    "additive": {"epsilon": 0.5},
    "multiplicative": {"epsilon": 0.5, "multiplicative": True},
    "slack": {"epsilon": 0.42, "slack": 0.06},
    "multiplicative slack": {"epsilon": 0.42, "slack": 0.06, "multiplicative": True},
}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *(("st2", form) for form in FORMS),
        *(("st2(bounds='running')", form) for form in ("slack", "multiplicative")),
        *(("two-step(bounds='running')", form) for form in ("additive", "multiplicative slack")),
    ],
)
def test_delta_correct(name: str, form: str) -> None:
    """All good arms are returned, and never one worse than epsilon + slack, but in a share delta of the episodes."""
    assert errors(name, ALL_GOOD, **FORMS[form]) <= LIMIT


@pytest.mark.parametrize("name", ["lucb", "lucb(widths='lil', c=4.0)"])
@pytest.mark.parametrize("criterion", ["each", "aggregate"])
def test_lucb_is_delta_correct(name: str, criterion: str) -> None:
    assert errors(name, TOP_K, k=3, epsilon=0.06, criterion=criterion) <= LIMIT


def test_limit_has_teeth() -> None:
    """Widths a fifth or a sixth of what they should be stop too soon."""
    for form in ("additive", "multiplicative"):
        assert errors("two-step(c=0.11)", ALL_GOOD, **FORMS[form]) > LIMIT
        assert errors("st2(c=0.16)", ALL_GOOD, **FORMS[form]) > LIMIT
    assert errors("lucb(sigma=0.05)", TOP_K, k=3, epsilon=0.06, criterion="each") > LIMIT


# --- the contract ----------------------------------------------------------------------------------------------------

RULES: Case = {"instance": {"distribution": "gaussian", "mean": [1.0, 0.9, 0.2, 0.0, 0.5], "sd": 0.1}, "epsilon": 0.25}
STOPPING: Case = RULES | {"delta": 0.1, "max_pulls": 400}
ROOTS, N = (11, 12, 13), 3


def test_lucb_keeps_its_round_without_its_state() -> None:
    wide = RULES["instance"] | {"sd": 1.0}
    env: Any = gym.make(TOP_K, k=2, instance=wide, delta=0.1, max_pulls=300, actions="full").unwrapped
    agent = agents.make("lucb", env)
    observation, _ = env.reset(seed=3)
    state = None
    for t in range(200):
        action, state = agent.predict(observation, state)
        if t >= 5 and t % 2 == 1:  # at the beginning of a round: (t - 5) / 2 of them are over
            assert state.rounds["t"].tolist() == [(t - 5) // 2 + 1]
            again, other = agent.predict(observation, None)
            assert again["arm"] in state.plans["arms"][0, :2]
            assert other.rounds["t"].tolist() == state.rounds["t"].tolist()
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
