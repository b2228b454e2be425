"""Agents for the columns of a table: first decisions by hand, literal twins, error probabilities, bad calls."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import Play, replay, right_when_begun_anew, watched
from refusals import table
from rollouts import forgetful
from scipy import stats
from twins_tables import sysrs, ucb_e, ucb_e_lrf

import agents
from agents import testing
from agents.tables.sysrs import schedule
from agents.tables.ucb_e_lrf import alternated, factors
from bandit_envs import Bernoulli, Instance, Shared, agent_uniforms, from_table

BEST, TOP = "bandit_envs/BestArm-v0", "bandit_envs/TopK-v0"
NAMES = ["sysrs", "ucb-e", "ucb-e(batch=32)", "ucb-e-lrf"]


def still(means: list[float], N: int) -> dict[str, Any]:
    """Columns that never vary, in this order."""
    arms = Shared(np.tile(means, (N, 1)), (0, 1))
    return {"instance": Instance(arms, "still"), "shuffle_arms": False, "delta": None}


def drawn(K: int, N: int, marks: bool = True, **more: Any) -> dict[str, Any]:
    return {"instance": {"score-tables": {"K": K, "N": N, "marks": marks, **more}}, "delta": None}


def record(name: str, episodes: int, **kwargs: Any) -> tuple[Any, list[Play], Any]:
    """What the agent does in episodes of BestArm, and the last observation; it answers once the budget is spent."""
    return watched(name, BEST, episodes, at_the_end=True, **{"delta": None} | kwargs)


def test_schedule_by_hand() -> None:
    # Lbar = 1/2 + 1/2 + 1/3 + 1/4 = 19/12, (20 - 4) / Lbar = 10.1: a quarter, a third, a half of it, rounded up
    assert schedule(4, 100, 20) == (0, 3, 4, 6)  # 3 + 4 + 6 + 6 = 19 <= 20
    # 5 items: the last phase is capped, 20 - 2 * 5 = 10 cells are for 3 + 4: 10/7 * 3 = 4.3 and 10/7 * 4 = 5.7
    assert schedule(4, 5, 20) == (0, 4, 5, 5)
    assert schedule(4, 6, 20) == (0, 3, 4, 6)  # none is above 6
    assert schedule(4, 5, 100) == (0, 5, 5, 5)  # all cells
    assert schedule(2, 50, 3) == (0, 1)


def test_no_schedule_spends_more_than_the_budget() -> None:
    g = np.random.default_rng(0)
    for K, N in g.integers((2, 1), (12, 60), (2000, 2)).tolist():
        T = int(g.integers(K + 1, K * N + 20))
        n = schedule(K, N, T)
        assert len(n) == K
        assert list(n) == sorted(n)
        assert n[1] >= 1
        assert n[-1] <= N
        assert sum(n) + n[-1] <= T


def test_sysrs_by_hand() -> None:
    """3 items for all, .4 is dropped; 1 more for the others, .5 is; 2 more for .9 and .8."""
    _, [(pulls, _, answer)], _ = record("sysrs", 1, budget=20, **still([0.9, 0.5, 0.4, 0.8], 100))
    assert pulls == [(0, 3), (1, 3), (2, 3), (3, 3), (0, 1), (1, 1), (3, 1), (0, 2), (3, 2)]
    assert answer == {0}
    _, [(pulls, _, answer)], _ = record("sysrs", 1, budget=20, **still([0.5, 0.5, 0.5, 0.5], 100))
    assert answer == {0}  # of those that tie the last is dropped


def test_ucb_e_by_hand() -> None:
    """a = 1: .9 + 1 / sqrt(n) = 1.9, 1.607, 1.477 against .5 + 1 = 1.5, then 1.207; a complete arm is out."""
    rules = still([0.9, 0.5], 4)
    _, [(pulls, _, answer)], _ = record("ucb-e", 1, budget=8, **rules)
    assert [arm for arm, _ in pulls] == [0, 1, 0, 0, 1, 0, 1, 1]
    assert answer == {0}
    _, [(pulls, _, _)], _ = record("ucb-e(batch=3)", 1, budget=8, **rules)
    assert pulls == [(0, 3), (1, 3), (0, 1), (1, 1)]
    _, [(pulls, _, _)], _ = record("ucb-e(a=0)", 1, budget=6, **rules)
    assert [arm for arm, _ in pulls] == [0, 1, 0, 0, 0, 1]
    _, [(pulls, _, answer)], _ = record("ucb-e", 1, budget=10, **rules)
    assert [arm for arm, _ in pulls][8:] == [0, 0]  # nothing is left to learn
    assert answer == {0}


def test_ucb_e_lrf_by_hand() -> None:
    """Two items each; then, without optimism, the best arm alone: what is predicted of the others is below it."""
    rules = still([0.5, 0.9, 0.7], 20)
    name = "ucb-e-lrf(warm_up=0.1, eta=0, batch=4)"
    _, [(pulls, _, answer)], _ = record(name, 1, budget=18, **rules)
    assert pulls == [(0, 2), (1, 2), (2, 2), (1, 4), (1, 4), (1, 4)]
    assert answer == {1}
    # 5 cells for 3 arms pay one item each. With much optimism an item that one arm alone has shown is worth the most.
    _, [(pulls, _, _)], _ = record("ucb-e-lrf(batch=1, eta=1e6)", 1, budget=5, **rules)
    assert pulls[:4] == [(0, 1), (1, 1), (2, 1), (1, 1)]
    assert pulls[4][0] != 1
    _, [(pulls, _, answer)], _ = record(name, 1, budget=70, **rules)
    assert {i: sum(times for arm, times in pulls if arm == i) for i in range(3)} == {0: 30, 1: 20, 2: 20}
    assert answer == {1}


def test_factors_by_hand() -> None:
    """One cell, u = 2, x = .6, lambda = .1: v = 1.2 / 4.1. A cell that is left out: 0."""
    w = np.array([[[1.0]], [[0.0]]])
    assert factors(w, 0.6 * w, np.full((2, 1, 1), 2.0), 0.1).ravel() == pytest.approx([1.2 / 4.1, 0])
    # r = 2, u = (1, 2): (u u' + .1 I)^-1 u x = u x / (5 + .1)
    found = factors(w[:1], 0.6 * w[:1], np.array([[[1.0, 2.0]]]), 0.1)
    assert found.ravel() == pytest.approx([0.6 / 5.1, 1.2 / 5.1])


@pytest.mark.parametrize("rank", [1, 2])
def test_a_table_of_low_rank_is_completed(rank: int) -> None:
    """A fifth of its cells is unseen; they are found to .01, and with a smaller rank they are not."""
    g = np.random.default_rng(1)
    x = g.uniform(0.2, 1, (12, rank)) @ g.uniform(0.2, 1, (rank, 30))
    w = np.tile(g.random((12, 30)) > 0.2, (4, 1, 1)).astype(np.float64)
    found = alternated(x, w, g.uniform(size=(4, 12, rank)), 1e-3, 300)
    assert np.abs(found - x).max() < 0.01
    if rank == 2:
        assert np.abs(alternated(x, w, g.uniform(size=(4, 12, 1)), 1e-3, 300) - x).max() > 0.05


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("episodes", [6, 30])
def test_twins(marks: bool, episodes: int) -> None:
    """Random tables of five sizes for each agent: the same pulls and the same answers."""
    names = ("sysrs", "ucb-e", "ucb-e(a=0.1)", "ucb-e(batch=4)")
    for K, N, T in ((2, 9, 7), (3, 30, 20), (5, 12, 37), (6, 8, 40), (4, 10, 38)):
        for name in names:
            agent, plays, _ = record(name, episodes, budget=T, **drawn(K, N, marks))
            for pulls, samples, answer in plays:
                twin = sysrs(K, N, T) if name == "sysrs" else ucb_e(K, N, T, agent.a, agent.batch)
                assert replay(twin, samples) == (pulls, answer)


@pytest.mark.parametrize("parameters", ["batch=1", "batch=5, rank=2, drop=0.3", "batch=3, eta=0.5, warm_up=0.2"])
def test_twin_of_ucb_e_lrf(parameters: str) -> None:
    K, N, T, episodes = 3, 12, 20, 12
    agent, plays, shown = record(f"ucb-e-lrf({parameters}, ensemble=3, sweeps=4)", episodes, budget=T, **drawn(K, N))
    assert len({tuple(pulls) for pulls, *_ in plays}) > 3
    for e, (pulls, _, answer) in enumerate(plays):

        def uniforms(t: int, n: int, public: Any = shown["public_seed"][e]) -> Any:
            return agent_uniforms(public, np.array([t]), n)[0]

        twin, place, asked = ucb_e_lrf(K, N, T, agent, uniforms), [0] * K, []
        try:
            asked.append(next(twin))
            while True:
                arm, times = asked[-1]
                start, place[arm] = place[arm], min(place[arm] + times, int(shown["pulls"][e, arm]))
                asked.append(twin.send(shown["scores"][e, arm, start : place[arm]].tolist()))
        except StopIteration as stop:
            said = stop.value
        assert (asked, said) == (pulls, answer)


HARD = drawn(20, 40, ability=-3.0, spread=5.0) | {"budget": 300}


def errors(name: str, episodes: int, **rules: Any) -> int:
    found = agents.evaluate(name, BEST, episodes=episodes, env_kwargs=HARD | rules, seed=3)
    return int((~found.episodes["correct"].astype(bool)).sum())


@pytest.mark.parametrize("name", ["sysrs", "ucb-e", "ucb-e(batch=4)", "ucb-e-lrf(ensemble=4, batch=8)"])
@pytest.mark.parametrize("episodes", [40, 200])
def test_best_columns_are_found(name: str, episodes: int) -> None:
    """37 % of the cells, where uniform sampling errs in 18 % of episodes: errors in 2 % at most; false alarm 1e-6.

    The limit has teeth: uniform sampling breaks it, in 40 episodes with a third of the pulls.
    """
    limit = stats.binom.isf(1e-6, episodes, 0.02)
    assert errors(name, episodes) <= limit < errors("uniform", episodes, budget=100 if episodes == 40 else 300)


@pytest.mark.parametrize(
    "check", ["evaluate", "no_global_state", "order_of_the_batch", "pickles", "repeats", "single_is_batch"]
)
@pytest.mark.parametrize("name", ["sysrs", "ucb-e", "ucb-e(batch=4)", "ucb-e-lrf(ensemble=4, batch=4)"])
def test_conformance(name: str, check: str) -> None:
    """The checks for strangers' agents that leave the arms as they are."""
    env = gym.make(BEST, budget=20, **drawn(3, 12))
    testing._run(name, getattr(testing, f"check_{check}"), env)


@pytest.mark.parametrize("name", ["sysrs", "ucb-e-lrf(batch=4, ensemble=4)", "ucb-e"])
def test_pulls_one_by_one(name: str) -> None:
    """With actions="arm" the same arms are pulled, each as often."""
    rules = drawn(3, 12) | {"budget": 24}
    full, single = (record(name, 6, actions=actions, **rules)[1] for actions in ("full", "arm"))
    for (pulls, *_), (ones, *_) in zip(full, single, strict=True):
        asked = [arm for arm, times in pulls for _ in range(times)][:24]
        assert [arm for arm, _ in ones][: len(asked)] == asked


def test_begun_anew() -> None:
    right_when_begun_anew("sysrs", BEST, budget=90, **still([0.1, 0.8, 0.3], 60) | {"delta": None})


@pytest.mark.parametrize("name", ["ucb-e(batch=3)", "ucb-e-lrf(batch=3, ensemble=4)"])
def test_ucb_e_goes_on_without_its_state(name: str) -> None:
    envs: Any = gym.make_vec(BEST, 6, actions="full", budget=40, **drawn(4, 12))
    forgetful(envs, agents.make(name, envs), 10)


def test_recommendations_of_one_episode_and_of_some() -> None:
    envs: Any = gym.make_vec(BEST, 5, actions="full", budget=60, **drawn(4, 20))
    agent: Any = agents.make("ucb-e-lrf(ensemble=4)", envs)
    observation, _ = envs.reset(seed=2)
    assert agent.recommend(observation).tolist() == [[True, False, False, False]] * 5  # nothing has been seen
    for arm in (2, 0, 3):
        every = {"arm": np.full(5, arm), "times": np.arange(1, 6), "answer": np.zeros((5, 4), np.int8)}
        observation, *_ = envs.step(every)
    answer = agent.recommend(observation)
    assert (answer.sum(axis=1) == 1).all()
    assert np.array_equal(agent.recommend(observation, None, np.array([3, 1])), answer[[3, 1]])
    one = {name: part[2] for name, part in observation.items()}
    assert np.array_equal(agent.recommend(one), answer[2])


def made(name: str, env: str = BEST, **kwargs: Any) -> Any:
    return lambda: agents.make(name, gym.make(env, **{"actions": "full", "budget": 50, **drawn(4, 20), **kwargs}))


BERNOULLI = {"instance": Instance(Bernoulli([0.2, 0.3, 0.4, 0.5]), "own")}
test_bad_calls = table(
    {f"{name} without a table": (made(name, **BERNOULLI), name.partition("(")[0], "table") for name in NAMES}
    | {f"{name} for three arms": (made(name, TOP, k=3), "TopK") for name in NAMES}
    | {f"{name} at 3 pulls": (made(name, budget=3), "budget", 3) for name in NAMES}
    | {
        "a": (made("ucb-e(a=-1)"), "a", -1),
        "batch": (made("ucb-e(batch=0)"), "batch", 0),
        "batch of single pulls": (made("ucb-e(batch=2)", actions="arm"), "batch", "actions"),
        "rank": (made("ucb-e-lrf(rank=0)"), "rank", 0),
        "ensemble": (made("ucb-e-lrf(ensemble=1)"), "ensemble", 1),
        "ridge": (made("ucb-e-lrf(ridge=0)"), "ridge", 0),
        "drop": (made("ucb-e-lrf(drop=1)"), "drop", 1),
        "sweeps": (made("ucb-e-lrf(sweeps=0)"), "sweeps", 0),
        "eta": (made("ucb-e-lrf(eta=-1)"), "eta", -1),
        "batch of lrf": (made("ucb-e-lrf(batch=0)"), "batch", 0),
        "warm_up": (made("ucb-e-lrf(warm_up=0)"), "warm_up", 0),
        "seed": (made("ucb-e-lrf(seed=-1)"), "seed", -1),
    }
)


def test_names_leave_them_out() -> None:
    """Other problems have arms that are no columns of a table."""
    assert {"sysrs", "ucb-e", "ucb-e-lrf"} <= set(agents.names())
    assert not {"sysrs", "ucb-e", "ucb-e-lrf"} & set(agents.names("BestArm"))


@pytest.mark.parametrize("name", ["ucb-e-lrf", "ucb-e", "uniform"])
def test_where_the_scores_lie_decides_nothing(name: str) -> None:
    """Scores in multiples of 1/64 lie as exactly at -16: without the low end of the range the model errs there."""
    scores = np.random.default_rng(3).integers(0, 33, (40, 4)) / 64 + np.array([0, 0.125, 0.25, 0.375])

    def played(low: float) -> list[Any]:
        table = from_table(scores + low, shared=True, support=(low, low + 1))
        found = agents.evaluate(name, "BestArm", episodes=6, env_kwargs={"instance": table, "budget": 80})
        return [found.pulls["pulls"].tolist(), found.episodes["correct"].tolist()]

    assert played(0.0) == played(-16.0)
