"""Speed as ratios inside one run, through the public path. Run with: pytest tests/benchmarks --benchmark-only

On a shared machine pin the processor: taskset -c 1 pytest ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numba
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from numpy.typing import NDArray
from race import Race, clock

import agents
from bandit_envs.simulation import Quiet
from bandit_envs.text import TextView

THRESHOLD = "bandit_envs/Threshold-v0"
MEANS = np.array([0.2, 0.25, 0.3, 0.35, 0.45, 0.55, 0.65, 0.7, 0.75, 0.8])  # tao2019-1
K = len(MEANS)

Bools = NDArray[np.bool_]
speed = functools.partial(pytest.mark.benchmark, timer=clock)


def vector(N: int, **kwargs: Any) -> Any:
    """The native vector environment with live views, reset."""
    envs = gym.make_vec(THRESHOLD, num_envs=N, copy=False, **{"instance": "tao2019-1"} | kwargs)
    envs.reset(seed=0)
    return envs


def numpy_apt(N: int, T: int, generator: np.random.Generator) -> Bools:
    """Batched APT in NumPy as quick as we can write it: flat offsets, only the index of the arm just pulled changes."""
    pulls, total = np.zeros(N * K), np.zeros(N * K)
    index = np.full((N, K), -np.inf)
    flat, first = index.reshape(-1), np.arange(N) * K
    for _ in range(T):
        arm = index.argmin(axis=1)
        at = first + arm
        n = pulls[at] + 1.0
        s = total[at] + (generator.random(N) < MEANS[arm])
        pulls[at], total[at] = n, s
        flat[at] = np.sqrt(n) * np.abs(s / n - 0.5)
    answer: Bools = (total / pulls).reshape(N, K) >= 0.5
    return answer


@numba.njit
def fused_apt(N: int, T: int, generator: Any, means: Any) -> Any:
    """APT and its bandit in one compiled loop, one episode after the other, with NumPy's generator."""
    K = len(means)
    score, pulls, total = np.empty(K), np.empty(K), np.empty(K)
    answer = np.zeros((N, K), np.bool_)
    for e in range(N):
        for k in range(K):
            score[k], pulls[k], total[k] = -np.inf, 0.0, 0.0
        for _ in range(T):
            a = 0
            for k in range(1, K):
                if score[k] < score[a]:
                    a = k
            pulls[a] += 1.0
            if generator.random() < means[a]:
                total[a] += 1.0
            score[a] = np.sqrt(pulls[a]) * abs(total[a] / pulls[a] - 0.5)
        for k in range(K):
            answer[e, k] = total[k] / pulls[k] >= 0.5
    return answer


def play(envs: Any, agent: Any) -> Bools:
    """One episode in every slot, the next of its root."""
    observation, _ = envs.reset()
    state, info = None, {}
    while "answer" not in info:
        action, state = agent.predict(observation, state)
        observation, _, _, _, info = envs.step(action)
    answer: Bools = info["answer"]
    return answer


REFERENCES: dict[str, tuple[Callable[..., Bools], float, str]] = {
    "numpy": (numpy_apt, 3.3, "batched NumPy, tuned"),
    "numba": (lambda N, T, g: fused_apt(N, T, g, MEANS), 0.6, "a fused Numba loop"),
}


@speed(group="a. APT: predict and step, times as fast")
@pytest.mark.parametrize("N", [1000, 2000, 4000, 8000])
@pytest.mark.parametrize("reference", REFERENCES)
def test_apt(race: Race, reference: str, N: int) -> None:
    other, target, words = REFERENCES[reference]
    T, generator = 1000, np.random.default_rng(0)
    envs = vector(N, budget=T)
    agent = agents.make("apt", envs)
    right = MEANS >= 0.5
    wrong = [(answer != right).sum(axis=1).mean() for answer in (play(envs, agent), other(N, T, generator))]
    assert abs(wrong[0] - wrong[1]) < 6 * np.sqrt(2 * 0.1 / N)  # they do the same job: wrong arms, variance about .1
    race(lambda: play(envs, agent), lambda: other(N, T, generator), against=words, at_least=target, rounds=7)


def stepper(envs: Any, actions: NDArray[np.int64]) -> Callable[[], None]:
    """A run of steps with given actions."""

    def run() -> None:
        for action in actions:
            envs.step(action)

    return run


@speed(group="b. vector environment alone, times as fast")
@pytest.mark.parametrize(("N", "target"), [(1024, 5.0), (4096, 3.5)])
def test_vector_environment(race: Race, N: int, target: float) -> None:
    g = np.random.default_rng(0)
    cart = gym.make_vec("CartPole-v1", num_envs=N, vectorization_mode="vector_entry_point")
    cart.reset(seed=0)
    ours, theirs = (stepper(e, g.integers(0, n, (201, N))) for e, n in ((vector(N, budget=200), K), (cart, 2)))
    race(ours, theirs, against="Gymnasium's CartPole-v1 vector environment", at_least=target)


LEARNING: dict[str, Any] = {"observation": "relative", "stop": False, "reward": "gain", "ranked": True}
LEARNERS = [  # problem, its keywords, and how many times as long as CartPole
    ("Threshold", {"instance": "sampler(arms=10)"}, 13.0),
    ("BestArm", {"instance": "sampler(arms=20)"}, 60.0),
    ("TopK", {"instance": "sampler(arms=20)", "k": 3}, 85.0),
]


@speed(group="b. vector environment with what learners see, N = 1024, times as long")
@pytest.mark.parametrize("reference", ["CartPole", "statistics"])
@pytest.mark.parametrize(("problem", "kwargs", "target"), LEARNERS)
def test_learners(race: Race, problem: str, kwargs: dict[str, Any], target: float, reference: str) -> None:
    N, env_id, given = 1024, f"bandit_envs/{problem}-v0", {"budget": 200, **kwargs}
    ours = gym.make_vec(env_id, num_envs=N, **given, **LEARNING)
    theirs: Any = CartPoleVectorEnv(num_envs=N)
    if reference == "statistics":
        theirs = gym.make_vec(env_id, num_envs=N, stop=False, **given)
    runs = []
    for envs in (ours, theirs):
        envs.reset(seed=0)
        runs.append(stepper(envs, np.random.default_rng(0).integers(0, envs.single_action_space.n, (201, N))))
    against = "Gymnasium's CartPoleVectorEnv" if reference == "CartPole" else "observation='statistics', scores"
    race(*runs, against=against, at_most=target if reference == "CartPole" else None, rounds=5)


@speed(group="b. episodes that end often, times as long")
@pytest.mark.parametrize("N", [1024, 4096])
@pytest.mark.parametrize("budget", [10, 15, 20])
def test_short_episodes(race: Race, N: int, budget: int) -> None:
    actions = np.random.default_rng(0).integers(0, K, (10 * (budget + 1), N))
    ours, theirs = (stepper(vector(N, budget=T), actions) for T in (budget, 10**6))
    race(ours, theirs, against="episodes that do not end", at_most=2.0)


@speed(group="c. LSA, K = 10,000, cost of a pull, times that of K = 10")
@pytest.mark.parametrize("N", [64, 256, 1000])
def test_many_arms(race: Race, N: int) -> None:
    def player(arms: int) -> Callable[[], None]:
        envs = vector(
            N, instance={"distribution": "bernoulli", "mean": np.linspace(0.05, 0.95, arms).tolist()}, budget=10**9
        )
        agent = agents.make("lsa", envs)
        observation, state = envs.reset(seed=0)[0], None

        def run(steps: int = 500) -> None:
            nonlocal observation, state
            for _ in range(steps):
                action, state = agent.predict(observation, state)
                observation, *_ = envs.step(action)

        run(3 * arms)  # past the first pulls in order
        return run

    race(player(10_000), player(10), against="K = 10", at_most=8.0)


@speed(group="d. single environment through gym.make, times as fast")
def test_single_environment(race: Race) -> None:
    cart, env, steps = gym.make("CartPole-v1"), gym.make(THRESHOLD, instance="tao2019-1", budget=10**9), 200
    env.reset(seed=0)
    balance = []  # pushes that keep the pole up for so long
    observation, _ = cart.reset(seed=0)
    for _ in range(steps):
        balance.append(int(observation[2] + observation[3] > 0))
        observation, _, terminated, truncated, _ = cart.step(balance[-1])
        assert not terminated
        assert not truncated
    arms = np.random.default_rng(0).integers(0, K, steps).tolist()

    def run(env: Any, actions: list[int]) -> None:
        for action in actions:
            env.step(action)

    race(
        lambda: run(env, arms),
        lambda: run(cart, balance),
        against="CartPole-v1",
        at_least=2.0,
        rounds=201,
        prepare=lambda: cart.reset(seed=0),
    )


TOP_K = "bandit_envs/TopK-v0"
ADAPTIVE = ["lucb", "clucb", "kl-lucb", "pi1", "pi2", "pi3", "adapt", "ocba-m"]


def pulls_for(agent: str, arms: int, T: int, N: int = 200) -> Callable[[], None]:
    """T pulls of an agent in each of N episodes, from 20 pulls per arm on, where it has found its rhythm."""
    rules: dict[str, Any] = {
        "instance": {"sampler": {"distribution": "bernoulli", "arms": arms}},
        "k": 3 * arms // 10,
        "epsilon": 0.1,
        "budget": 10**9,
        "delta": 0.1,
    }
    envs: Any = gym.make_vec(TOP_K, num_envs=N, copy=False, actions="full", **rules)
    policy, (observation, _), state = agents.make(agent, envs), envs.reset(seed=0), None
    answer = np.zeros((N, arms), np.int8)
    for arm in range(arms):
        envs.step({"arm": np.full(N, arm), "times": np.full(N, 20), "answer": answer})

    def run() -> None:
        nonlocal observation, state
        for _ in range(T):
            action, state = policy.predict(observation, state)
            observation, *_ = envs.step(action)

    run()
    return run


@speed(group="h. adaptive top-k, times as long per pull as at K = 50")
@pytest.mark.parametrize("arms", [200, 1000])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_growth(race: Race, name: str, arms: int) -> None:
    """Less than K / 50; linear where all numbers of a decision change with every pull (see docs/performance.md)."""
    ours, reference = pulls_for(name, arms, 200), pulls_for(name, 50, 200)
    race(ours, reference, against="the same with 50 arms", at_most=arms / 50, rounds=5)


TAO, SMALL_TOP_K = {"instance": "tao2019-1", "budget": 10**9}, {"epsilon": 0.05, "delta": 0.1, "k": 4}
WHOLE = [  # agent, environment, its keywords, episodes, pulls of each, how many times as fast
    ("apt", THRESHOLD, TAO, 1, 20_000, 100),
    ("lsa", THRESHOLD, TAO, 1, 20_000, 100),
    ("apt", THRESHOLD, TAO, 2000, 500, 1.6),
    ("lsa", THRESHOLD, TAO, 2000, 500, 1.6),
    ("st2", "bandit_envs/AllGood-v0", {"instance": "mason2020-3a(n=25)", "delta": 0.1}, 1, 20_000, 50),
    ("lucb", TOP_K, SMALL_TOP_K, 16, 2_000, 1),
    ("clucb", TOP_K, SMALL_TOP_K, 16, 2_000, 1),
]


@speed(group="i. whole episodes in compiled code")
@pytest.mark.parametrize(("name", "env_id", "kwargs", "episodes", "pulls", "target"), WHOLE)
def test_whole_episodes(
    race: Race, name: str, env_id: str, kwargs: dict[str, Any], episodes: int, pulls: int, target: float
) -> None:
    envs: Any = gym.make_vec(env_id, episodes, actions="full", copy=False, autoreset_mode="Disabled", **kwargs)
    agent, quiet = agents.make(name, envs), Quiet(np.full(episodes, pulls), pulls)

    def begun() -> Any:
        return envs.reset(seed=1, options={"episode": np.arange(episodes)})[0]

    def stepped() -> None:
        observation, state = begun(), None
        for _ in range(pulls):
            action, state = agent.predict(observation, state)
            observation, *_ = envs.step(action)

    race(
        lambda: agent.play(envs.simulation, quiet, begun(), None),
        stepped,
        against="one step after another, through `predict` and `step`",
        at_least=target,
        rounds=5,
    )


def long_episodes(name: str, episodes: int, pulls: int, instance: Any = "tao2019-1") -> Callable[[], None]:
    """Whole episodes of so many pulls in compiled code, through the agent's player."""
    envs: Any = gym.make_vec(THRESHOLD, episodes, actions="full", copy=False, instance=instance, budget=10**9)
    agent, quiet = agents.make(name, envs), Quiet(np.full(episodes, pulls), pulls)

    def run() -> None:
        observation, _ = envs.reset(seed=1, options={"episode": np.arange(episodes)})
        agent.play(envs.simulation, quiet, observation, None)

    return run


@speed(group="k. samples drawn ahead: one long episode of APT, times as fast")
def test_one_episode_of_apt(race: Race) -> None:
    pulls, generator = 1_000_000, np.random.default_rng(0)
    against = "a fused Numba loop"
    race(long_episodes("apt", 1, pulls), lambda: fused_apt(1, pulls, generator, MEANS), against=against, at_least=0.8)


@speed(group="k. samples drawn ahead: 2000 episodes of APT, times as fast")
@pytest.mark.parametrize(("reference", "target"), [("numpy", 3.4), ("numba", 1.5)])
def test_many_episodes_of_apt(race: Race, reference: str, target: float) -> None:
    (other, _, words), generator = REFERENCES[reference], np.random.default_rng(0)
    ours = long_episodes("apt", 2000, 500)
    race(ours, lambda: other(2000, 500, generator), against=words, at_least=target, rounds=7)


@speed(group="k. samples drawn ahead: `uniform`, times as long as APT")
@pytest.mark.parametrize(("episodes", "pulls", "target"), [(1, 500_000, 0.8), (2000, 500, 1.3)])
def test_uniform(race: Race, episodes: int, pulls: int, target: float) -> None:
    ours, reference = (long_episodes(name, episodes, pulls) for name in ("uniform", "apt"))
    race(ours, reference, against="APT", at_most=target)


@speed(group="k. samples drawn ahead: one long episode of APT on Gaussian arms, times as long as on Bernoulli arms")
def test_gaussian(race: Race) -> None:
    instance = {"distribution": "gaussian", "mean": MEANS.tolist(), "sd": 0.5}
    race(long_episodes("apt", 1, 500_000, instance), long_episodes("apt", 1, 500_000), against="Bernoulli", at_most=1.5)


@speed(group="k. bulk pulls of Gaussian arms, times as long as single pulls")
def test_gaussian_bulk(race: Race) -> None:
    instance = {"distribution": "gaussian", "mean": MEANS.tolist(), "sd": 0.5}
    envs: Any = vector(512, instance=instance, budget=10**12, actions="full")
    arms, answer = np.random.default_rng(0).integers(0, K, (64, 512)), np.zeros((512, K), np.int8)

    def steps(times: int) -> Callable[[], None]:
        actions = [{"arm": arm, "times": np.full(512, times), "answer": answer} for arm in arms]
        return lambda: stepper(envs, actions)()  # type: ignore[arg-type]

    race(steps(100), steps(1), against="single pulls", at_most=6.0)


@speed(group="l. steps in words (2,000 a second, where CartPole-v1 has 100,000), times as long as CartPole-v1")
@pytest.mark.parametrize("view", ["table", "history", "raw"])
def test_text(race: Race, view: str) -> None:
    text = TextView(gym.make(THRESHOLD, instance="tao2019-1", budget=10**9, actions="full"), view=view)
    text.reset(seed=0)
    arms = np.random.default_rng(0).integers(0, K, 200)
    cart, replies = gym.make("CartPole-v1"), [f"I press\nPULL {text.names[arm]} 2" for arm in arms]

    def balanced() -> None:
        seen, _ = cart.reset(seed=0)
        for _ in replies:
            seen, *_ = cart.step(int(seen[2] + seen[3] > 0))

    def said() -> None:
        for reply in replies:
            text.step(reply)

    race(said, balanced, against="CartPole-v1", at_most=50.0)
