"""kt, fbkt, gsp, pass: constants and first pulls by hand, literal twins, promises, refusals, many arms."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import Twin, as_twins, record, replay, right_when_begun_anew, sampler
from selection import line, selected
from twins_selection import fbkt, gsp, kt, pass_

import agents
from agents.top_k import knockout, survivors
from bandit_envs import Task
from bandit_envs.instances.lookup import find

BEST_ARM = "bandit_envs/BestArm-v0"
STILL = {"distribution": "gaussian", "mean": [0.1, 0.9, 0.5, 0.4, 0.8], "sd": 1e-9}  # arms that hardly vary
LIMITS = {400: 71, 60: 18}  # scipy.stats.binom.isf(1e-6, n, 0.1): what a false alarm of 1e-6 leaves to delta = 0.1
Case = dict[str, Any]


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_constants_of_kt_by_hand() -> None:
    # n0 = 3, g = 2: h^2 = 2 (1 / (2 a_r) - 1) with 2 a_r = .1, .05; n0 = 2, g = 5: 1 (.025^-2 - 1)
    assert [knockout.h_squared(r, 0.1, 3, 2) for r in (1, 2)] == pytest.approx([18, 38])
    assert knockout.h_squared(1, 0.1, 2, 5) == pytest.approx(1599)


def test_kt_by_hand() -> None:
    """Groups of two of five: 0 and 3, 1 and 4, and 2 alone; then 1 and 3, and 2; then 1 and 2."""
    rules: Case = {"instance": STILL, "shuffle_arms": False}
    _, [(pulls, _, answer)] = record("kt(zone=.1, first=3, group=2)", BEST_ARM, 1, **rules)
    assert [i for i, _ in pulls] == [0, 3, 1, 4] * 3 + [1, 3] * 3 + [1, 2] * 3
    assert answer == {1}
    _, [(pulls, _, answer)] = record("kt(zone=.1, first=3, group=3)", BEST_ARM, 1, **rules)  # 0, 2, 4 and 1, 3
    assert [i for i, _ in pulls] == [0, 2, 4, 1, 3] * 3 + [1, 4] * 3


def test_fbkt_by_hand() -> None:
    # K = 4, phi = 3: w = 2/3 and 2 (2/3)^2, of which 3/7 and 4/7; each of 4 arms 3/28, each of 2 arms 2/7
    assert knockout.shares(4, 3.0) == pytest.approx([3 / 28, 2 / 7])
    arms = STILL | {"mean": [0.1, 0.9, 0.5, 0.8]}
    rules: Case = {"instance": arms, "shuffle_arms": False, "budget": 36 + 1}  # 28.5 / 28 * 3 and 8.3
    _, [(pulls, _, answer)] = record("fbkt(first=2)", BEST_ARM, 1, **rules)
    assert pulls == [*((i, 2) for i in range(4)), *((i, 3) for i in (1, 3, 2, 0)), (1, 8), (3, 8)]
    assert answer == {1}
    _, [(pulls, _, _)] = record("fbkt(first=1)", BEST_ARM, 1, **rules | {"instance": STILL})
    assert [i for i, _ in pulls] == [0, 1, 2, 3, 4, 4, 2, 3, 0, 4, 2, 1, 4]  # the best of five, then of three, is free


def test_the_first_samples_of_fbkt() -> None:
    """A third of 40, 119 and 10^4 samples of 10 arms, but 8 of each at most."""
    made = [agents.make("fbkt", Task("BestArm", {}, K=10, budget=T)).times[0] for T in (40, 119, 10_000)]
    assert made == [1, 3, 8]


def test_the_budget_of_fbkt_is_spent_but_for_rounding() -> None:
    for K in (2, 3, 10, 57, 1000):
        agent: Any = agents.make("fbkt", Task("BestArm", {}, K=K, budget=1000 * K))
        sizes = [K, *(math.ceil(K / 2**r) for r in range(len(agent.times) - 1))]
        assert 980 * K < (agent.times * sizes).sum() <= 1000 * K


@pytest.mark.parametrize("K", [2, 10])
def test_constants_of_gsp(K: int) -> None:
    """Both solve their equations in a simulation, within 4.5 standard errors: a false alarm of 2e-5.

    Of two arms h is exact; of more it is on the safe side, as Rinott takes differences from the best for independent.
    """
    g, n, v = np.random.default_rng(0), 200_000, 15
    eta, h = survivors.constants(K, 0.1, v + 1)
    odds, Q = 1 - 0.95 ** (1 / (K - 1)), g.chisquare(v, (2, n)).min(axis=0)
    assert abs((abs(g.normal(size=n)) > eta * np.sqrt(Q)).mean() - odds) < 4.5 * math.sqrt(odds / n)
    off = g.normal(size=(K, n)) / np.sqrt(g.chisquare(v, (K, n)) / v)  # of means of h^2 V samples, times h
    right, error = (off[1:] - off[0] < h).all(axis=0).mean() - 0.95, 4.5 * math.sqrt(0.05 * 0.95 / n)
    assert abs(right) < error if K == 2 else -error < right < 0.03


def test_gsp_and_pass_by_hand() -> None:
    """Arms that hardly vary: the first screening leaves one; averages are .54, then .85."""
    rules: Case = {"instance": STILL, "shuffle_arms": False, "epsilon": 0.01}
    _, [(pulls, _, answer)] = record("gsp(first=10)", BEST_ARM, 1, **rules)
    assert (pulls, answer) == ([(i, 10) for i in range(5)], {1})
    _, [(pulls, _, answer)] = record("pass(step=4, most=14)", BEST_ARM, 1, **rules)
    assert (pulls, answer) == ([*((i, 10) for i in range(5)), (1, 4), (4, 4)], {1})


# --- twins ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("K", [2, 3, 7, 12])
def test_knockouts_are_their_twins(distribution: str, K: int) -> None:
    rules: Case = {"instance": sampler(distribution, K), "epsilon": 0.3}
    for first, group in ((5, 2), (8, 3), (9, 20)):
        twin = lambda _, f=first, g=group: kt(K, 0.1, 0.3, f, g)
        as_twins(twin, f"kt(first={first}, group={group})", BEST_ARM, 10, ended=10, **rules)
    for budget, first, phi in ((2 * K, 2, 3.0), (6 * K, 1, 3.0), (333, 3, 2.0), (1001, 8, 1.5)):
        other = lambda _, T=budget, f=first, p=phi: fbkt(K, T, f, p)
        as_twins(other, f"fbkt(first={first}, phi={phi})", BEST_ARM, 10, ended=10, budget=budget, **rules)


def single_twins(twin: Any, name: str, **rules: Any) -> None:
    """The same as `as_twins`, of a twin that pulls one by one."""
    envs: Any = gym.make_vec(BEST_ARM, 8, autoreset_mode="Disabled", delta=0.1, actions="arm", **rules)
    agent, state, live = agents.make(name, envs), None, np.ones(8, np.bool_)
    observation = envs.reset(seed=0)[0]
    plays: list[tuple[list[tuple[int, int]], list[float]]] = [([], []) for _ in live]
    while live.any():
        arms, state = agent.predict(observation, state)
        answers = agent.recommend(observation, state)
        observation, _, terminated, _, info = envs.step(arms)
        for e in np.flatnonzero(live):
            if arms[e] < agent.task.K:
                plays[e][0].append((int(arms[e]), 1))
                plays[e][1].append(float(info["sample"][e]))
            else:
                one: Twin = twin(agent)
                assert replay(one, plays[e][1]) == (plays[e][0], {int(answers[e].argmax())})
        live &= ~terminated


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("K", [2, 5, 9])
def test_survivors_are_their_twins(distribution: str, K: int) -> None:
    rules: Case = {"instance": sampler(distribution, K), "epsilon": 0.2}
    for first, beta, rounds, groups in ((10, 3, 2, 1), (12, 1.5, 4, 2), (20, 5, 0, 2)):
        twin = lambda agent, f=first, b=beta, r=rounds, G=groups: gsp(K, 0.2, f, b, r, G, agent.eta, agent.h)
        single_twins(twin, f"gsp(first={first}, beta={beta}, rounds={rounds}, groups={groups})", **rules)
    for first, step, most, delta in ((10, 1, None, 0.1), (4, 7, 30, 0.8), (2, 2, 9, 0.4)):
        other = lambda one, f=first, s=step, m=most: pass_(K, 0.2, f, s, m, one.c, one.scale)
        single_twins(other, f"pass(first={first}, step={step}, most={most}, delta={delta})", **rules)


# --- promises ---------------------------------------------------------------------------------------------------------

TOO_SOON = {"kt": "kt(zone=6, first=6)", "gsp": "gsp(zone=3, first=10, rounds=0)"}


@pytest.mark.parametrize("more", ["", ", last_sd=3", ", sd=3, last_sd=1"], ids=["equal", "rising", "falling"])
@pytest.mark.parametrize("episodes", LIMITS)
def test_the_best_arm_is_selected_in_the_slippage_configuration(more: str, episodes: int) -> None:
    """With probability .9, where it is `zone` ahead. A zone that is larger than that breaks the limit."""
    rules: Case = {"instance": f"slippage(K=12, difference=0.5{more})", "delta": 0.1, "epsilon": 0.5}
    names = ["kt", "kt(first=10, group=2)", "gsp(beta=10)"]
    found = agents.evaluate([*names, *TOO_SOON.values()], BEST_ARM, episodes=episodes, env_kwargs=rules)
    wrong = {name: found.column(name, "misidentified").sum() for name in [*names, *TOO_SOON.values()]}
    assert all(wrong[name] <= LIMITS[episodes] for name in names)
    assert all(wrong[name] > LIMITS[episodes] for name in TOO_SOON.values())


@pytest.mark.parametrize("episodes", LIMITS)
def test_the_good_selection_procedure_selects_good_arms(episodes: int) -> None:
    """Monotone means, of which three are within the zone: a regret above it with probability .1 at most."""
    rules: Case = {"instance": "monotone-means(K=12, difference=0.2)", "delta": 0.1, "epsilon": 0.5}
    rows = agents.evaluate("gsp(beta=10)", BEST_ARM, episodes=episodes, env_kwargs=rules).summary()
    assert rows["error_rate"].item() * episodes <= LIMITS[episodes]


@pytest.mark.parametrize("episodes", LIMITS)
def test_pass_keeps_the_best_arm_for_any_number_of_arms(episodes: int) -> None:
    """It is left out with probability .1 at most; where its delta is large it often is."""
    rules: Case = {"instance": "slippage(K=60, difference=0.3)", "delta": 0.1, "epsilon": 0.3}
    names = ["pass(first=20)", "pass(first=20, delta=.99)"]
    found = agents.evaluate(names, BEST_ARM, episodes=episodes, env_kwargs=rules)
    wrong = [found.column(name, "misidentified").sum() for name in names]
    assert wrong[0] <= LIMITS[episodes] < wrong[1]


@pytest.mark.parametrize(
    ("name", "means", "variances"),
    [
        ("slippage(K=3, difference=.25)", [0, -0.25, -0.25], [1, 1, 1]),
        ("monotone-means(K=3, difference=.25, sd=2)", [0, -0.25, -0.5], [4, 4, 4]),
        ("slippage(K=3, sd=1, last_sd=3)", [0, -0.5, -0.5], [1, 4, 9]),
    ],
)
def test_configurations_of_ranking_and_selection(name: str, means: list[float], variances: list[float]) -> None:
    found: Any = find(name)
    assert (found.arms.means.tolist(), found.arms.variances.tolist()) == (means, variances)
    for wrong, words in (
        ("K=1", "K must be"),
        ("difference=0", "difference must be"),
        ("last_sd=0", "last_sd must be"),
    ):
        with pytest.raises(ValueError, match=words):
            find(f"{name.partition('(')[0]}({wrong})")


# --- refusals, and more -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "wanted"),
    [
        ("kt", {"epsilon": 0.0}, "kt needs epsilon > 0 of the problem"),
        ("kt", {"delta": None, "max_pulls": 9}, "kt needs delta"),
        ("kt(zone=0)", {}, "zone must be a number in .0, inf., got 0"),
        ("kt(first=1)", {}, "first must be an integer in .2, 1000000., got 1"),
        ("kt(group=1)", {}, "group must be an integer in .2, 1000000., got 1"),
        ("kt", {"criterion": "exact"}, "kt needs a tolerance > 0, which criterion='exact' of BestArm"),
        ("fbkt", {}, "fbkt needs a budget >= "),
        ("fbkt(first=8)", {"budget": 79}, "fbkt needs a budget >= 80 for K = 10 arms, got 79"),
        ("fbkt", {"budget": 9}, "fbkt needs a budget >= 10 for K = 10 arms, got 9"),
        ("fbkt(phi=1)", {"budget": 900}, "phi must be .*, got 1"),
        ("gsp(first=9)", {}, "first must be an integer in .10, 1000000., got 9"),
        ("gsp(groups=11)", {}, "groups must be an integer in .1, 10., got 11"),
        ("gsp(beta=.5)", {}, "beta must be .*, got 0.5"),
        ("pass", {"epsilon": 0.0}, "pass needs epsilon > 0 of the problem"),
        ("pass(most=0)", {}, "most must be an integer"),
        ("pass(delta=1)", {}, "delta must be"),
    ],
)
def test_refusals(name: str, more: Case, wanted: str) -> None:
    given = {"epsilon": 0.2, "delta": 0.1} | {k: v for k, v in more.items()}
    problem = {k: given.pop(k) for k in ("epsilon", "criterion") if k in given}
    with pytest.raises(ValueError, match=wanted):
        agents.make(name, Task("BestArm", problem, K=10, **given))


def test_a_zone_of_ones_own_needs_no_epsilon() -> None:
    task = Task("BestArm", {"criterion": "exact"}, K=10, delta=0.1)
    assert [agents.make(f"{name}(zone=.25)", task).zone for name in ("kt", "gsp")] == [0.25, 0.25]


@pytest.mark.parametrize("name", ["kt", "fbkt", "gsp(first=10, beta=5)", "pass"])
def test_begun_anew_they_are_right(name: str) -> None:
    arms = {"distribution": "gaussian", "mean": [0.0, 2.0, 0.0, 0.5], "sd": 0.3}
    limits: Case = {"budget": 600} if name == "fbkt" else {}
    right_when_begun_anew(name, BEST_ARM, instance=arms, epsilon=0.5, **limits)


@pytest.mark.parametrize("name", ["kt(first=5)", "fbkt(first=2)", "gsp(first=10, beta=1)", "pass"])
def test_many_arms(name: str) -> None:
    rules: Case = {"instance": "slippage(K=3000, difference=3)", "epsilon": 2.0, "delta": 0.1}
    limits: Case = {"budget": 30_000} if name == "fbkt(first=2)" else {}
    found = agents.evaluate(name, BEST_ARM, episodes=1, env_kwargs=rules | limits)
    assert found.summary()["misidentified"].item() == 0


def test_the_campaign_measures_by_exact_truth() -> None:
    """One replication of equal allocation on the 3,249 lines: a sample of each; all lines are good, or one."""
    wide, narrow = (selected("uniform", "flow-lines", zone, 3249, 1) for zone in (5.2, 1e-9))
    assert (wide["samples"], wide["PGS"], narrow["PGS"]) == (3249, 1, narrow["PCS"])
    assert 0 <= wide["EOC"] == narrow["EOC"] < 5.2
    assert line(wide).startswith("| `uniform` | 3,249 | ")
