"""batched-elimination, tri-bbai, opt-bbai: grids and stages by hand, literal twins, batches, promises."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import as_twins, record, sampler, seen
from twins_batched import batched_elimination, opt_bbai, tri_bbai
from twins_certified import Game

import agents
from agents.top_k.batched_elimination import pulls_by_budget, pulls_by_growth
from bandit_envs import BestArm, Task

TOP_K, BEST_ARM = "bandit_envs/TopK-v0", "bandit_envs/BestArm-v0"
HARD = {"distribution": "gaussian", "mean": [0.5, 0.3, 0.3, 0.3], "sd": 0.5}
LIMITS = {400: 71, 60: 18}  # scipy.stats.binom.isf(1e-6, n, 0.1): what a false alarm of 1e-6 leaves to delta = 0.1
Case = dict[str, Any]


def task(**more: Any) -> Task:
    plain: Case = {"parameters": {}, "delta": 0.1, "distribution": "gaussian", "support": None, "sigma": 0.5}
    return Task("BestArm", **{"K": 3} | plain | more)


def batches(name: str, episodes: int, **kwargs: Any) -> list[int]:
    """The batches of each episode: those after which all results are needed, and the one that may be cut off."""
    envs: Any = gym.make_vec(BEST_ARM, episodes, autoreset_mode="Disabled", actions="full", **kwargs)
    agent, state, live = agents.make(name, envs), None, np.ones(episodes, np.bool_)
    observation, found = envs.reset(seed=1)[0], np.zeros(episodes, np.int64)
    while live.any():
        action, state = agent.predict(observation, state)
        pulled = live & (action["arm"] < agent.task.K) & (observation["remaining"][:, 0] != 0)
        observation, _, terminated, truncated, _ = envs.step(action)
        live &= ~(terminated | truncated)
        found += pulled & agent.plan_over(state, observation["pulls"])
    return found.tolist()  # type: ignore[no-any-return]


# --- batched elimination ----------------------------------------------------------------------------------------------


def test_grids_by_hand() -> None:
    # 4 (64 / 4)^(1/3) = 10.08, 4 * 16^(2/3) = 25.4
    assert pulls_by_budget(4, 64, 3) == [10, 25, 64]
    assert pulls_by_budget(4, 64, 1) == [64]
    assert pulls_by_growth(5, 2.0)[:4] == [5, 10, 20, 40]
    assert pulls_by_growth(1, 1.05)[:3] == [1, 2, 3]  # ceil(1.05), but one more at least
    assert 2**38 <= pulls_by_growth(1, 2.0)[-1] < 2**39


def test_batched_elimination_by_hand() -> None:
    """Arms that hardly vary; delta = .1, P = 4, N_1 = ceil(ln 80) = 5.

    c_1 = .12 sqrt(ln(80) / 5) = .112 > .9 - .8, and the others lose more; c_2 = .12 sqrt(ln(240) / 10) = .089 < .1.
    """
    arms = {"distribution": "gaussian", "mean": [0.1, 0.9, 0.5, 0.4, 0.8], "sd": 1e-9}
    rules: Case = {"instance": arms, "shuffle_arms": False}
    _, [(pulls, _, answer)] = record("batched-elimination(sigma=0.06)", BEST_ARM, 1, **rules)
    assert pulls == [*((i, 5) for i in range(5)), (1, 5), (4, 5)]
    assert answer == {1}
    # 5 * 8^(1/2) = 14.1: 2 each; c = .12 sqrt(ln(4 * 2 / .1) / 2) = .18: 1 and 4 are left, with 30 pulls to make
    _, [(pulls, _, answer)] = record("batched-elimination(sigma=0.06, batches=2)", BEST_ARM, 1, budget=40, **rules)
    assert pulls == [*((i, 2) for i in range(5)), (1, 15), (4, 15)]


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 1), (6, 2), (7, 6)])
def test_batched_elimination_is_its_twin(distribution: str, n: int, k: int) -> None:
    rules: Case = {"instance": sampler(distribution, n), "epsilon": 0.1, "k": k, "criterion": "each", "delta": 0.1}
    sigma = 0.5 if distribution == "bernoulli" else 0.2
    for growth, first in ((2.0, None), (1.3, 4)):
        given = f"batched-elimination(growth={growth}, first={first})"
        twin = lambda _, g=growth, f=first: batched_elimination(n, k, sigma, 0.1, 0.1, None, 1, g, f)
        as_twins(twin, given, TOP_K, 12, ended=12, **rules)
    for budget, M in ((n, 3), (40, 4), (900, 1), (900, 5), (900, 60)):
        twin = lambda _, T=budget, M=M: batched_elimination(n, k, sigma, 0.1, 0.1, T, M, 2.0, None)
        as_twins(twin, f"batched-elimination(batches={M})", TOP_K, 12, budget=budget, **rules)


def test_a_budget_is_spent_in_as_many_batches_as_are_asked_for() -> None:
    for M in (1, 2, 5):
        found = batches(f"batched-elimination(batches={M})", 40, instance=HARD, budget=400, delta=0.1)
        assert max(found) == M
    assert set(batches("batched-elimination(growth=4)", 40, instance=HARD, delta=0.1)) <= {2, 3, 4, 5}


@pytest.mark.parametrize("rules", [{}, {"budget": 4000}])
@pytest.mark.parametrize("episodes", LIMITS)
def test_batched_elimination_errs_with_probability_delta(rules: Case, episodes: int) -> None:
    """Of three arms each .2 below. A quarter of the scale breaks the limit."""
    given: Case = {"instance": HARD, "delta": 0.1, **rules}
    names = [
        "batched-elimination",
        "batched-elimination(first=1, growth=1.1)",
        "batched-elimination(sigma=.1, first=1)",
    ]
    names = [names[0], "batched-elimination(sigma=.1, batches=8)"] if rules else names
    rows = agents.evaluate(names, BEST_ARM, episodes=episodes, env_kwargs=given).summary()
    errors = episodes * rows.set_index("agent")["error_rate"]
    assert (errors[names[:-1]] <= LIMITS[episodes]).all()
    assert errors[names[-1]] > LIMITS[episodes]


# --- Tri-BBAI and Opt-BBAI --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
def test_stage_two_by_hand(distribution: str) -> None:
    """Means .5, .3, .1 after L1 pulls: proportions and time of .49, .31, .11, by the problem's own numbers."""
    support = (0.0, 1.0) if distribution == "bernoulli" else None
    agent: Any = agents.make("tri-bbai(L1=4, L2=100000, alpha=1.5)", task(distribution=distribution, support=support))
    _, state = agent.predict(seen([4, 4, 4], [0.5, 0.3, 0.1], 0.25), agent.begin_anew(seen([0, 0, 0], [0.0] * 3)))
    b = [0.49, 0.31, 0.11]
    w = BestArm().optimal_proportions(b, distribution=distribution, sigma=0.5)
    wanted = 1.5 * w * BestArm().characteristic_time(b, distribution=distribution, sigma=0.5) * math.log(10)
    assert state.todo[0, 0].tolist() == [0, 1, 2]
    assert state.todo[0, 1] == pytest.approx(wanted, abs=1.001)
    assert (state.todo[0, 1] >= wanted - 1e-3).all()


def test_pulls_of_the_stages_by_default() -> None:
    """n = 10, delta = 1e-3: l = 6.9; 2 ln(10) sqrt(l) = 12.1, 80 l ln(l) / 10 = 106.8."""
    agent: Any = agents.make("tri-bbai", task(K=10, delta=1e-3))
    assert (agent.L1, agent.L2) == (13, 107)
    agent = agents.make("opt-bbai", task(K=10, delta=1e-3))
    assert (agent.L1, agent.L2, agent.delta) == (13, 107, 5e-4)


def games(count: int, **more: Any) -> Any:
    """Random Gaussian instances, with the game of the twins."""
    g = np.random.default_rng(5)
    for e in range(count):
        K, sigma, delta = int(g.integers(2, 7)), float(g.choice([0.2, 1.0])), float(g.choice([0.05, 0.3]))
        arms = {"distribution": "gaussian", "mean": g.normal(size=K).tolist(), "sd": sigma}
        epsilon = float(g.choice([0.0, 0.2]))
        rules: Case = {"instance": arms, "epsilon": epsilon, "delta": delta, "seed": e, "max_pulls": 10**8}
        yield Game(K, sigma, delta, 1, epsilon), rules | more


def test_tri_bbai_is_its_twin() -> None:
    for game, rules in games(12):
        for alpha, L1, L2, shift in ((1.001, 3, 20, 0.01), (4.0, 2, 3, 0.3)):
            given = f"tri-bbai(alpha={alpha}, L1={L1}, L2={L2}, shift={shift})"
            stages = (alpha, L1, L2, shift)
            as_twins(lambda _, game=game, stages=stages: tri_bbai(game, *stages), given, BEST_ARM, 3, ended=3, **rules)


def test_opt_bbai_is_its_twin() -> None:
    """With means that nearly tie, too, where rounds leave arms out and are checked."""
    for game, rules in games(12):
        half = Game(game.K, game.sigma, game.delta / 2, 1, game.epsilon)
        for alpha, L1, L2, shift, precision, repeats in ((1.001, 2, 5, 0.01, 8.0, 0), (3.0, 3, 3, 0.1, 2.0, 9)):
            given = (
                f"opt-bbai(alpha={alpha}, L1={L1}, L2={L2}, shift={shift}, precision={precision}, repeats={repeats})"
            )
            stages = (game.delta, alpha, L1, L2, shift, precision, repeats)
            as_twins(lambda _, half=half, stages=stages: opt_bbai(half, *stages), given, BEST_ARM, 3, ended=3, **rules)
    arms = {"distribution": "gaussian", "mean": [0.0, 1.0, 1.0], "sd": 2.0}
    rules = {"instance": arms, "delta": 0.9, "max_pulls": 12 * 10**8, "shuffle_arms": False}
    twin = lambda _: opt_bbai(Game(3, 2.0, 0.45, 1), 0.9, 1.0, 1, 1, 0.01, 8.0, 0)
    plays = as_twins(twin, "opt-bbai(alpha=1, L1=1, L2=1, repeats=0)", BEST_ARM, 2, **rules)
    assert all(0 in [i for i, _ in pulls[-6:]] for pulls, *_ in plays)  # which round 1 has left out


def test_a_check_finds_the_best_arm_that_was_left_out() -> None:
    """Arm 0 seems to be far behind in round 1, and is far ahead when that is checked; the others tie all the time."""
    agent: Any = agents.make("opt-bbai(L1=1, L2=1, repeats=0)", task(delta=0.9, actions="full"))
    N, total, state, out = np.zeros(3, np.int64), np.zeros(3), agent.begin_anew(seen([0, 0, 0], [0.0] * 3)), False
    for _ in range(200):
        action, state = agent.predict(seen(N.tolist(), (total / np.maximum(N, 1)).tolist(), 0.25), state)
        if action["arm"] == 3:
            break
        out |= bool(state.out[0, 0] == 1)
        N[action["arm"]] += action["times"]
        total[action["arm"]] += action["times"] * ((1e3 if out else -1.0) if action["arm"] == 0 else 0.0)
    assert action["arm"] == 3
    assert state.out[0].tolist() == [1, 99, 99]
    assert action["answer"].tolist() == [1, 0, 0]


def test_three_batches_where_delta_is_small() -> None:
    """Gaps of 2 sigma: the first two batches decide, or the third does; else L2 would have to be raised."""
    arms = {"distribution": "gaussian", "mean": [1.0, 0.0, 0.0, -0.5], "sd": 0.5}
    for name in ("tri-bbai(alpha=2)", "opt-bbai(alpha=2)"):
        found = batches(name, 100, instance=arms, delta=1e-10)
        assert max(found) <= 3
    assert max(batches("tri-bbai", 100, instance=HARD, delta=0.1)) <= 12  # L2 is doubled for each


@pytest.mark.parametrize("name", ["tri-bbai", "tri-bbai(alpha=4)", "opt-bbai", "opt-bbai(precision=2, repeats=0)"])
@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli", "uniform"])
@pytest.mark.parametrize("episodes", LIMITS)
def test_bbai_errs_with_probability_delta(name: str, distribution: str, episodes: int) -> None:
    instance = dict(HARD, distribution=distribution)
    if distribution != "gaussian":
        del instance["sd"]
    if distribution == "uniform":
        instance["width"] = 0.5
    given: Case = {"instance": instance, "delta": 0.1}
    rows = agents.evaluate([name], BEST_ARM, episodes=episodes, env_kwargs=given).summary()
    assert episodes * rows["error_rate"].iloc[0] <= LIMITS[episodes]


def test_what_they_refuse() -> None:
    with pytest.raises(ValueError, match="opt-bbai needs a known scale"):
        agents.make("opt-bbai(distribution='student')", task())
    with pytest.raises(ValueError, match="precision must be"):
        agents.make("opt-bbai(precision=1)", task())
    with pytest.raises(ValueError, match="growth must be"):
        agents.make("batched-elimination(growth=1)", task())
    with pytest.raises(ValueError, match="needs a budget >= 3"):
        agents.make("batched-elimination", task(budget=2, delta=None))
