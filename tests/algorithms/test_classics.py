"""Successive Rejects, SAR, Sequential Halving, UGapE, HDoC: schedules by hand, literal twins, promises."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import as_twins, record, sampler
from twins_all_good import as_twin
from twins_classics import hdoc, sar, sequential_halving, successive_rejects, ugape
from twins_top_k import Seen

import agents
from agents.top_k.sequential_halving import schedule
from agents.top_k.ugape import complexity
from bandit_envs import BestArm, Task, TopK

TOP_K, BEST_ARM, THRESHOLD = "bandit_envs/TopK-v0", "bandit_envs/BestArm-v0", "bandit_envs/Threshold-v0"
SAMPLING = ("hdoc", "lucb-g", "apt-g")
Case = dict[str, Any]


def test_schedule_of_sequential_halving() -> None:
    # n = 8: 3 rounds of 33.3: 33 // 8 = 4, 33 // 4 = 8, 33 // 2 = 16; n = 5: 100 / 15, 100 / 9, 100 / 6
    assert schedule(8, 100) == [(8, 4), (4, 8), (2, 16)]
    assert schedule(5, 100) == [(5, 6), (3, 11), (2, 16)]
    assert schedule(2, 7) == [(2, 3)]
    means = [0.1, 0.9, 0.5, 0.4, 0.8]
    arms = {"distribution": "gaussian", "mean": means, "sd": 1e-9}  # they hardly vary
    _, [(pulls, _, answer)] = record("sequential-halving", BEST_ARM, 1, instance=arms, shuffle_arms=False, budget=100)
    assert pulls == [*((i, 6) for i in range(5)), *((i, 11) for i in (1, 2, 4)), *((i, 16) for i in (1, 4))]
    assert answer == {1}


def test_sequential_halving_has_log2_n_rounds() -> None:
    for n in range(2, 70):
        assert len(schedule(n, 10**6)) == math.ceil(math.log2(n))
        assert sum(size * times for size, times in schedule(n, 1000)) <= 1000


def test_complexity_of_ugape_by_hand() -> None:
    # k = 2 of 1, .8, .5, .1; gaps .5, .3, .3, .7; epsilon .1: (gap + .1) / 2 = .3, .2, .2, .4
    means = np.array([1.0, 0.8, 0.5, 0.1])
    H = complexity(TopK(2, 0.1, "each"), means)
    assert pytest.approx(H) == 1 / 0.09 + 2 / 0.04 + 1 / 0.16
    assert complexity(TopK(2, 0.4, "each"), means) == pytest.approx(1 / 0.45**2 + 2 / 0.16 + 1 / 0.55**2)
    assert complexity(TopK(2, 0.1, "aggregate"), means) == pytest.approx(4 * (1 / 0.25 + 2 / 0.09 + 1 / 0.49))
    assert complexity(BestArm(), np.array([0.5, 0.5])) == math.inf


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_rejects_and_halving_are_their_twins(distribution: str, n: int) -> None:
    for budget in (n + 1, 60, 333):
        rules: Case = {"instance": sampler(distribution, n), "budget": budget}
        as_twins(lambda _, T=budget: successive_rejects(n, T), "successive-rejects", BEST_ARM, 12, **rules)
        for k in {1, n // 2, n - 1}:
            as_twins(lambda _, k=k, T=budget: sar(n, k, T), "successive-rejects", TOP_K, 12, k=k, **rules)
        for reuse in (False, True) if budget >= 60 else ():
            twin = lambda _, T=budget, reuse=reuse: sequential_halving(n, T, reuse)
            as_twins(twin, f"sequential-halving(reuse={reuse})", BEST_ARM, 12, **rules)


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 1), (5, 3), (9, 4), (6, 5)])
def test_ugape_is_its_twin(distribution: str, n: int, k: int) -> None:
    ended, a = 0, 1.7
    rules: Case = {"instance": sampler(distribution, n, 0.1), "k": k, "epsilon": 0.6, "criterion": "each"}
    for limits, given, how in (
        ({"delta": 0.2, "max_pulls": 1500}, {}, (0.2, None, None)),
        ({"budget": 150}, {"a": a}, (None, a, 150)),
    ):
        env: Any = gym.make(TOP_K, actions="full", **rules, **limits).unwrapped
        agent, rule = agents.make("ugape", env, **given), (k, 0.6, 2 * env.task.sigma, *how)
        for e in range(6):
            ended += as_twin(env, agent, lambda _, rule=rule: ugape(Seen(n), *rule), 5, e)[1] is not None
    assert ended >= 7


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("sampling", SAMPLING)
def test_hdoc_is_its_twin(distribution: str, sampling: str) -> None:
    ended = 0
    for tolerance in (0.0, 0.1):
        rules: Case = {"instance": sampler(distribution, 4, 0.1), "tolerance": tolerance, "max_pulls": 600}
        env: Any = gym.make(THRESHOLD, actions="full", threshold=0.5, delta=0.2, **rules).unwrapped
        agent, rule = agents.make("hdoc", env, sampling=sampling), (0.5, tolerance, 0.2, 2 * env.task.sigma, sampling)
        for e in range(10):
            ended += as_twin(env, agent, lambda _, rule=rule: hdoc(Seen(4), *rule), 6, e)[1] is not None
    assert ended >= 4


def test_hdoc_needs_the_same_pulls_by_every_rule() -> None:
    """An arm is left by its own samples alone: the same number of pulls, to the arm, in every episode."""
    rules: Case = {"instance": "tao2019-1", "delta": 0.3, "budget": None, "max_pulls": 10**6, "tolerance": 0.05}
    found = agents.evaluate([f"hdoc(sampling={s!r})" for s in SAMPLING], THRESHOLD, episodes=20, env_kwargs=rules)
    rows = found.episodes.groupby("agent")["total_pulls"].apply(list)
    assert rows.iloc[0] == rows.iloc[1] == rows.iloc[2]


def test_what_ugape_promises_of_each_arm_it_does_not_promise_of_the_set() -> None:
    """k = 2: arm 0 is best, but little known; 1 and 2 are nearly as good as the second best: "each" is content.

    B_1 = U_2 - L_1 and B_2 = U_1 - L_2 do not see how large U_0 is: the criterion "aggregate" takes epsilon 0. Of a
    single arm it is the same.
    """
    rows = [("TopK", "each", 0.1), ("TopK", "aggregate", 0.0), ("TopK", "exact", 0.0), ("BestArm", "aggregate", 0.1)]
    for problem, criterion, wanted in rows:
        asked = {"epsilon": 0.1, "criterion": criterion} | ({"k": 2} if problem == "TopK" else {})
        assert agents.make("ugape", Task(problem, asked, K=3, delta=0.1)).epsilon == wanted


def test_budget_agents_beat_uniform() -> None:
    """300 pulls of eight arms: fewer errors in 2000 episodes, by 4 standard errors (false alarms: 3e-5)."""
    arms = {"distribution": "bernoulli", "mean": [0.2, 0.5, 0.3, 0.2, 0.1, 0.25, 0.15, 0.4]}
    rules: Case = {"instance": arms, "budget": 300, "shuffle_arms": False}
    names = ["uniform", "successive-rejects", "sequential-halving", "ugape(scale=16)"]
    e = agents.evaluate(names, BEST_ARM, episodes=2000, env_kwargs=rules).summary().set_index("agent")["error_rate"]
    for name in names[1:]:
        assert e["uniform"] - e[name] > 4 * math.sqrt((e["uniform"] + e[name]) / 2000), name
