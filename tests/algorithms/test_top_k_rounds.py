"""The round-based algorithms for the k best arms: schedules by hand, literal twins, reductions."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import Twin, as_twins, record, replay, right_when_begun_anew, sampler, seen, singly, watched
from refusals import refused
from twins_top_k_rounds import adaptive_top_k, adaptive_top_k_budget, direct, halving, improved_top_k, incremental
from twins_top_k_rounds import opt_mai as opt_mai_twin
from twins_top_k_rounds import racing as racing_twin

import agents
from agents.core.largest import smallest
from agents.top_k import adaptive_top_k as adaptive
from agents.top_k import improved_top_k as improved
from agents.top_k import opt_mai
from agents.top_k.median_elimination import elimination_pulls
from agents.top_k.racing import WIDTHS
from bandit_envs import Bernoulli, Categorical, Gaussian, Instance, Task
from bandit_envs.simulation.simulator import Simulator

TOP_K = "bandit_envs/TopK-v0"
BEST_ARM = "bandit_envs/BestArm-v0"
CONFIDENCE = [
    *("direct", "incremental", "halving", "adaptive-top-k", "adaptive-top-k(constants='practical')"),
    *("improved-top-k", "improved-top-k(reuse=True)"),
    *("racing", "racing(rounds=50, beyond=False, widths='bernstein')"),
]
BUDGET = [
    *("adaptive-top-k", "adaptive-top-k(constants='practical')"),
    *("opt-mai", "opt-mai(reuse=True)", "racing(widths='hoeffding')"),
]


def twin_of(agent: Any) -> Twin:
    """The twin of an agent, on its task."""
    task = agent.task
    n, k, delta, W = task.K, agent.k, task.delta, 2 * task.sigma
    by_sum = agent.name in ("adaptive-top-k", "improved-top-k") and task.parameters["criterion"] == "each"
    eps = task.parameters["epsilon"] / (k if by_sum else 1)  # k arms that lose eps together hold none that loses more
    if agent.name == "racing":
        support = task.support or (-math.inf, math.inf)
        return racing_twin(n, k, agent.R, delta, agent.W, WIDTHS[agent.kind], agent.beyond, support)
    if agent.name == "opt-mai":
        return opt_mai_twin(n, k, task.budget, agent.reuse)
    if agent.name == "improved-top-k":
        return improved_top_k(n, k, eps, delta, W, agent.reuse)
    if agent.name == "incremental":
        return incremental(n, k, eps, delta, 4.0 if task.support == (0.0, 1.0) else 8 * task.sigma**2)
    if agent.name == "adaptive-top-k" and task.budget is not None:
        return adaptive_top_k_budget(n, k, delta, W, task.budget, agent.reuse)
    if agent.name == "adaptive-top-k":
        return adaptive_top_k(n, k, eps, delta, W, agent.reuse)
    return {"direct": direct, "halving": halving}[agent.name](n, k, eps, delta, W)


def test_practical_constants_by_hand() -> None:
    """Six arms that never vary, k = 2, W = 1 (sigma 1/2): margins 1.1 / sqrt(8) = .3889, .275, .1945, .1375, .0972.

    Means 1, .8, .55, .5, .35, 0: with k = 2 the boundary ranks are .8 and .55. Round 1, 8 pulls each: 1 - .55 = .45 is
    accepted, .8 - 0 and .8 - .35 = .45 are rejected, .8 - .5 = .3 is not. Then k' = 1 of .8, .55, .5. Round 2, 8 more:
    .8 - .55 = .25, .8 - .5 = .3 > .275: .5 is rejected. Round 3, 16 more: .25 > .1945: .8 is accepted. All is decided.
    """
    means = [0.5, 0.0, 0.8, 0.35, 1.0, 0.55]
    arms = {"distribution": "gaussian", "mean": means, "sd": 1e-9}
    still: dict[str, Any] = {"instance": arms, "shuffle_arms": False, "k": 2}
    name = "adaptive-top-k(constants='practical', sigma=0.5)"
    for rules in ({"budget": 1000}, {"epsilon": 0.01, "criterion": "aggregate"}):
        _, [(pulls, _, answer)] = record(name, TOP_K, 1, **still, **rules)
        assert pulls == [*((i, 8) for i in range(6)), *((i, 8) for i in (0, 2, 5)), *((i, 16) for i in (2, 5))]
        assert answer == {2, 4}
    # 80 pulls pay rounds 1 and 2, 72 pulls: the rest is spread over arms 2 and 5; 66 pay the first only: three arms
    for budget, last in ((80, [(2, 4), (5, 4)]), (66, [(0, 6), (2, 6), (5, 6)])):
        _, [(pulls, _, answer)] = record(name, TOP_K, 1, **still, budget=budget)
        assert pulls[:6] == [(i, 8) for i in range(6)]
        assert pulls[-len(last) :] == last
        assert answer == {2, 4}
    # 47 pulls do not pay the first round: 7 of each arm, and one more of the lowest five
    _, [(pulls, _, answer)] = record(name, TOP_K, 1, **still, budget=47)
    assert pulls == [*((i, 7) for i in range(6)), *((i, 1) for i in range(5))]
    assert answer == {2, 4}
    agent = agents.make("adaptive-top-k(constants='practical')", Task("TopK", {"k": 2}, K=6, budget=100))
    assert agent.margin[:3] == pytest.approx([2.0, 0.388909, 0.275])
    assert agent.times[:4].tolist() == [0, 8, 16, 32]


def test_pulls_of_incremental() -> None:
    # Median Elimination at 1/2, 1/16: 8293 pulls of three arms, then 2338 of the two that remain
    assert sum(elimination_pulls(n, 0.5, 1 / 16, 4) for n in (3, 2)) == 8293 + 2338


def test_schedule_of_opt_mai() -> None:
    assert pytest.approx(0.916052, abs=1e-6) == opt_mai.BETA
    # n = 8, K = 1, Q = 1000: rounds of 83.9, 76.9, 70.4, 64.5, 59.1, 54.2; QE while |S| >= 4 (8, 6, 5, 4), AR (3, 2)
    sizes = [8, 6, 5, 4, 3, 2]
    assert [int(opt_mai.pulls_per_arm(r, 1000, size)) for r, size in enumerate(sizes)] == [10, 12, 14, 16, 19, 27]
    _, plays = record("opt-mai", BEST_ARM, 3, instance=sampler(arms=8), budget=1000)
    for pulls, _, answer in plays:
        assert [times for _, times in pulls] == [10] * 8 + [12] * 6 + [14] * 5 + [16] * 4 + [19] * 3 + [27] * 2
        assert answer is not None


def test_accepted_and_rejected_arms() -> None:
    m = np.array([5.0, 1.0, 3.0, 3.5, 4.0, 9.0])
    S, A, work = np.array([True, True, True, True, True, False]), np.array([False] * 5 + [True]), np.zeros(6)
    # K = 3, one accepted: a = 3.5, b = 4; accepted above 3.5 + 1.2, rejected below 4 - 1.2
    adaptive.accept_and_reject(m, S, A, 3, 1.2, work)
    assert S.astype(int).tolist() == [0, 0, 1, 1, 1, 0]
    assert A.astype(int).tolist() == [1, 0, 0, 0, 0, 1]
    adaptive.accept_and_reject(m, S, A, 3, 0.5, work)  # one place left: a = 3.5, b = 4; strictly more than the margin
    assert (S.astype(int).tolist(), A.astype(int).tolist()) == ([0, 0, 0, 1, 1, 0], [1, 0, 0, 0, 0, 1])


def test_schedule_of_improved_top_k() -> None:
    # R = ceil(log2(16 / .07)) = ceil(7.84); q = .01 * .01 * 100 / (16 * 1000 * 8) = 7.8e-8: 2 ln(2 / q) = 34.1
    schedule = improved.schedule(1000, 100, 0.01, 0.01)
    assert len(schedule) == 8
    assert schedule[:3] == [35, 137, 546]
    assert len(improved.schedule(1000, 100, 3.0, 0.01)) == 1  # a tolerance beyond the width of the rewards


def test_smallest() -> None:
    generator = np.random.default_rng(0)
    for n in (1, 2, 3, 10, 57):
        for values in (generator.normal(size=n), generator.integers(0, 3, n).astype(float)):
            found = [smallest(values.copy(), n, q) for q in range(1, n + 1)]
            assert found == np.sort(values).tolist()


@pytest.mark.parametrize(("distribution", "k", "arms"), [("gaussian", 2, 7), ("bernoulli", 3, 5), ("uniform", 1, 4)])
@pytest.mark.parametrize("name", CONFIDENCE)
def test_twins_at_a_confidence_level(name: str, distribution: str, k: int, arms: int) -> None:
    race = "racing" in name
    rules = {"epsilon": 0.2, "k": k, "criterion": "each", "max_pulls": 1500 if race else None}
    rules |= {"instance": sampler(distribution, arms, 0.05 if race else 0.5)}
    plays = as_twins(twin_of, name, TOP_K, 15, 1 if race else 15, **rules)
    assert len({frozenset(answer) for *_, answer in plays if answer is not None}) > 1


@pytest.mark.parametrize("k", [1, 3, 5, 8])
@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("name", BUDGET[:4])
def test_twins_within_a_budget(name: str, distribution: str, k: int) -> None:
    for budget in (7, 150, 1111):
        plays = as_twins(twin_of, name, TOP_K, 15, 15, instance=sampler(distribution, 9), k=k, budget=budget)
        assert len({frozenset(answer or ()) for *_, answer in plays}) > 1 or budget == 7


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("rounds", [1, 40])
def test_twins_of_racing(widths: str, rounds: int) -> None:
    name = f"racing(rounds={rounds}, widths={widths!r}, width=0.1)"  # so narrow that bounds cross
    for distribution in ("bernoulli", "gaussian"):
        as_twins(twin_of, name, TOP_K, 8, 1, instance=sampler(distribution, 7, 0.1), k=3, max_pulls=900)


@pytest.mark.parametrize("name", CONFIDENCE)
def test_arm_form_repeats_arms(name: str) -> None:
    rules = {"instance": sampler(arms=4, spread=0.02), "k": 2, "epsilon": 0.2, "max_pulls": 4000}
    agent, plays = record(name, TOP_K, 4, actions="arm", **rules)
    assert any(answer is not None for *_, answer in plays) or name == "incremental"
    for pulls, samples, answer in plays:
        asked, own = replay(singly(twin_of(agent)), samples)
        assert asked == pulls
        assert (own is None) == (answer is None)


@pytest.mark.parametrize("name", [*CONFIDENCE, *BUDGET[2:]])
def test_met_in_the_middle(name: str) -> None:
    arms = Instance(Gaussian(np.array([0.0, 1.0, 0.3, 0.1, 1.2, 0.0]), 0.05))
    rules = {"instance": arms, "k": 2, "epsilon": 0.2, "budget": 700 if name in BUDGET else None, "max_pulls": 200_000}
    right_when_begun_anew(name, TOP_K, **rules)
    env: Any = gym.make(TOP_K, actions="full", delta=0.1, **rules)
    with refused(name.split("(")[0], "state"):
        agents.make(name, env).predict(seen([3] * 6, [0.5] * 6))


def test_a_budget_of_adaptive_top_k_is_spent_to_the_end() -> None:
    def rows(budget: int, arms: Any) -> Any:
        rules = {"budget": budget, "delta": 0.1, "instance": Instance(arms)}
        return agents.evaluate("adaptive-top-k", TOP_K, episodes=20, env_kwargs=rules).episodes

    for budget in (3, 100, 999, 5000):
        assert (rows(budget, Bernoulli([0.5] * 9))["total_pulls"] == budget).all()
    early = rows(999, Gaussian(np.arange(6.0), 0.1))
    assert (early["total_pulls"] < 999).all()
    assert early["correct"].all()


def test_unfinished_answers_hold_what_is_accepted() -> None:
    """A budget that ends in the middle of a round: accepted arms stay, rejected ones stay out."""
    agent = agents.make("racing", Task("TopK", {"k": 2, "epsilon": 0.0, "criterion": "exact"}, K=4, delta=0.1))
    now = {key: value[None] for key, value in seen([5] * 4, [0.9, 0.1, 0.8, 0.7], remaining=9).items()}
    state = agent.begin_anew(now)
    own = state.parts[2]  # to write into
    own["A"][0], own["S"][0] = [False, True, False, False], [False, False, True, True]
    assert agent.recommend(now, state).tolist() == [[False, True, True, False]]
    assert agent.recommend(now).tolist() == [[True, False, True, False]]  # without state: the plug-in answer


ADAPTIVE = ["lucb", "pi1", "pi2", "pi3", "adapt", "ocba-m", "clucb", "kl-lucb"]


@pytest.mark.parametrize("name", [*CONFIDENCE, *BUDGET[1:3], *ADAPTIVE])
def test_with_k_1_top_k_is_best_arm(name: str) -> None:
    rules = {"instance": sampler("bernoulli", 6), "epsilon": 0.2, "delta": 0.2}
    rules |= {"budget": 900} if name in BUDGET else {"max_pulls": 500} if "racing" in name else {}
    rules |= {"budget": 300} if name in ADAPTIVE else {}
    one, other = (
        watched(name, env_id, 10, at_the_end=name in ADAPTIVE, **rules, **k)[1]
        for env_id, k in ((TOP_K, {"k": 1}), (BEST_ARM, {}))
    )
    assert one == other


def test_with_k_1_the_algorithms_of_2010_are_median_elimination() -> None:
    rules = {"instance": sampler("bernoulli", 7), "epsilon": 0.2, "delta": 0.2}
    printed, scaled = (record(f"median-elimination{form}", BEST_ARM, 30, **rules)[1] for form in ("", "(sigma=0.5)"))
    assert record("incremental", BEST_ARM, 30, **rules)[1] == printed  # the constant 4 as printed
    assert record("halving", BEST_ARM, 30, **rules)[1] == scaled  # which needs half of it


@pytest.mark.parametrize("name", ["direct", "halving", "adaptive-top-k"])
@pytest.mark.parametrize("distribution", ["bernoulli", "gaussian", "categorical"])
def test_a_billion_samples_take_few_pulls(name: str, distribution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of actions of a run does not grow with its samples: at most n per round."""
    means, steps = np.repeat([0.8, 0.5, 0.2], [3, 17, 20]), []  # 7 of the 17 are to be answered
    ratings = Categorical([0.0, 0.5, 1.0], np.stack([0.9 - means, 0 * means + 0.2, means - 0.1], axis=1))
    arms = {"bernoulli": Bernoulli(means), "gaussian": Gaussian(means, 0.5), "categorical": ratings}[distribution]
    advance = Simulator.advance
    monkeypatch.setattr(
        Simulator, "advance", lambda self, *args, **named: steps.append(1) or advance(self, *args, **named)
    )
    rules = {"instance": Instance(arms), "k": 10, "epsilon": 0.0005, "delta": 0.1}
    rows = agents.evaluate(name, TOP_K, episodes=4, env_kwargs=rules).episodes
    assert (rows["total_pulls"] > 10**9).all()
    assert rows["correct"].all()
    assert len(steps) <= 40 * 12 + 2


def test_widths_of_other_distributions() -> None:
    task = Task("TopK", {"k": 2, "epsilon": 0.1, "criterion": "each"}, K=4, delta=0.1)
    ratings = task.replace(distribution="categorical", support=(1.0, 3.0), sigma=1.0)
    normal, uniform = (
        task.replace(distribution=distribution, support=None, sigma=0.5) for distribution in ("gaussian", "uniform")
    )
    assert [agents.make("racing", one).W for one in (task, ratings, normal, uniform)] == [1, 2, 3, 1]
    one, two = (agents.make("direct", t).times for t in (task, ratings))
    assert (one, two) == (math.ceil(200 * math.log(40)), math.ceil(800 * math.log(40)))
    tight, wide = (agents.make("adaptive-top-k", t) for t in (task, ratings))
    assert tight.times.tolist() == wide.times.tolist()
    assert (2 * tight.margin).tolist() == wide.margin.tolist()
