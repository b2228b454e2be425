"""Prices of arms and of rows: budgets in money, checked against sums by hand and a ledger in plain Python."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from test_vector import DISABLED

import agents
from bandit_envs import Bernoulli, PureExplorationEnv, PureExplorationVectorEnv, Task, from_table

SCORES = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])


def made(**settings: Any) -> PureExplorationEnv:
    given = {"problem": "BestArm", "instance": "sampler(arms=3)", "shuffle_arms": False} | settings
    return PureExplorationEnv(**given)


def table(rows: int = 4) -> Any:
    found = from_table(np.tile(SCORES, (rows // 4, 1)).tolist(), shared=True, wide=True)
    return dataclasses.replace(found, arm_names=("gpt", "small", "tiny"))


class Ledger:
    """What is left of a budget in money, by the words of the documentation."""

    def __init__(self, budget: float, cost: Any, K: int, rows: int = 0) -> None:
        self.budget, self.cost, self.rows, self.pulls, self.money = budget, cost, rows, [0] * K, 0.0

    def able(self, arm: int) -> bool:
        if self.cost == "row":
            return self.pulls[arm] < self.budget or self.rows <= self.budget
        return bool(self.cost[arm] <= self.budget - self.money + 1e-9 * self.budget)

    def pull(self, arm: int) -> None:
        self.pulls[arm] += 1
        if self.cost == "row":
            self.money = float(max(self.money, min(self.pulls[arm], self.rows)))
        else:
            self.money += self.cost[arm]

    @property
    def remaining(self) -> int:
        if self.cost == "row":
            able = any(pulls < min(self.budget, self.rows) for pulls in self.pulls)
        else:
            able = any(map(self.able, range(len(self.pulls))))
        return max(1, math.floor(self.budget - self.money + 1e-9 * self.budget)) if able else 0


def test_a_budget_by_hand() -> None:
    env = made(budget=10, cost=[1, 2.5, 4])
    env.reset(seed=0)
    seen = []
    for arm in (0, 1, 2, 0):
        observation, reward, over, _, info = env.step(arm)
        assert reward == 0
        assert not over
        assert "money" not in info
        seen.append((observation["remaining"].item(), env.action_masks().tolist()))
    assert seen == [
        (9, [True, True, True, False]),
        (6, [True, True, True, False]),
        (2, [True, True, False, False]),
        (1, [True, False, False, False]),
    ]
    before = env.unwrapped._core.pulls.copy()
    observation, _, terminated, truncated, info = env.step(2)  # 1.5 is left
    assert terminated
    assert not truncated
    assert info["total_pulls"] == 4
    assert info["money"] == 8.5
    assert "sample" not in info
    assert observation["remaining"] == 0
    assert (observation["pulls"] == before).all()


def test_bulk_pulls_are_cut_to_what_can_be_paid() -> None:
    env = made(budget=10, cost=[1, 3, 4], actions="full")
    none = np.zeros(3, np.int8)
    env.reset(seed=0)
    observation, _, over, _, _ = env.step({"arm": 1, "times": 5, "answer": none})
    assert observation["pulls"].tolist() == [0, 3, 0]
    assert observation["remaining"] == 1
    assert not over
    observation, _, over, _, info = env.step({"arm": 2, "times": 1, "answer": none})  # cannot be paid
    assert observation["remaining"] == 0
    assert not over
    assert math.isnan(info["sample"])
    _, _, over, _, info = env.step({"arm": 0, "times": 1, "answer": np.array([0, 1, 0], np.int8)})
    assert over
    assert info["answer"].tolist() == [False, True, False]
    assert info["money"] == 9.0


def test_sums_of_prices_are_not_short_by_rounding() -> None:
    env = made(budget=1, cost=[0.1, 0.1, 0.3])
    env.reset(seed=0)
    count, over = 0, False
    while not over:
        observation, _, over, _, info = env.step(count % 2)
        count += 1
        assert observation["remaining"] == (count < 10)
    assert info["total_pulls"] == 10
    assert info["money"] == pytest.approx(1.0)


def test_rows_are_paid_once() -> None:
    env = made(instance=table(), budget=2, cost="row")
    env.reset(seed=0)
    for arm, left in ((0, 1), (1, 1), (0, 1), (1, 1), (2, 1)):
        observation, _, over, _, _ = env.step(arm)
        assert observation["remaining"] == left
        assert not over
    assert env.action_masks().tolist() == [False, False, True, False]
    *_, info = env.step(2)
    assert info["total_pulls"] == 6
    assert info["money"] == 2.0


@pytest.mark.parametrize("rule", ["prices", "row", "late"])
def test_a_ledger_agrees_in_all_ways_to_play(rule: str) -> None:
    """Single, vector, bulk-free and compiled play of `uniform` and `random` are those of a plain loop."""
    settings: dict[str, Any] = {"problem": "BestArm", "instance": table(40), "shuffle_arms": True, "actions": "full"}
    settings |= {"budget": 11, "cost": "row"} if rule == "row" else {"budget": 60, "cost": [1.0, 20.0, 0.7]}
    settings |= {"batch": 4, "delay": 3} if rule == "late" else {}
    E = 7
    for name in ("uniform", "random"):
        ends = []
        for e in range(E):
            env = PureExplorationEnv(**settings)
            agent = agents.make(name, env)
            observation, _ = env.reset(seed=5, options={"episode": e})
            ledger, state, over = Ledger(settings["budget"], settings["cost"], 3, 40), None, False
            while not over:
                assert observation["remaining"] == ledger.remaining
                action, state = agent.predict(observation, state)
                arm = int(action["arm"])
                if ledger.remaining and ledger.able(arm):
                    ledger.pull(arm)
                    observation, _, over, _, info = env.step(action)
                else:
                    for _ in range(2):
                        if not over:
                            observation, _, over, _, info = env.step(action)
                        assert observation["remaining"] == 0
                        if not over:
                            action, state = agent.predict(observation, state)
            assert info["money"] == pytest.approx(ledger.money)
            assert info["total_pulls"] == sum(ledger.pulls)
            ends.append((info["total_pulls"], round(info["money"], 6), info["correct"]))
        found = agents.evaluate(
            [name], "BestArm", episodes=E, seed=5, env_kwargs={k: settings[k] for k in settings if k != "problem"}
        ).episodes
        played = list(zip(found["total_pulls"], found["money"].round(6), found["correct"], strict=True))
        assert played == ends


@pytest.mark.parametrize("name", ["uniform", "random", "lsa", "evidence", "top-two"])
def test_compiled_play_is_that_of_steps(name: str) -> None:
    """Vector play by `predict` ends as compiled play does; ten times the prices and the budget change nothing."""
    problem = "Threshold" if name == "lsa" else "BestArm"
    kwargs: dict[str, Any] = {"instance": "sampler(arms=4)", "cost": [1, 20, 2, 0.5], "budget": 300}
    found = agents.evaluate([name], problem, episodes=20, seed=3, env_kwargs=kwargs).episodes
    tenfold = kwargs | {"cost": [10 * price for price in kwargs["cost"]], "budget": 3000}
    other = agents.evaluate([name], problem, episodes=20, seed=3, env_kwargs=tenfold).episodes
    assert (other["total_pulls"] == found["total_pulls"]).all()
    assert (other["score"] == found["score"]).all()
    assert np.allclose(other["money"], 10 * found["money"], atol=0)
    assert (found["money"] <= 300 * (1 + 1e-9)).all()
    envs = PureExplorationVectorEnv(20, problem=problem, autoreset_mode=DISABLED, actions="full", **kwargs)
    agent, state, over = agents.make(name, envs), None, np.zeros(20, np.bool_)
    observation, _ = envs.reset(seed=3, options={"episode": np.arange(20)})
    money, pulls = np.zeros(20), np.zeros(20, np.int64)
    while not over.all():
        action, state = agent.predict(observation, state)
        observation, _, terminated, truncated, info = envs.step(action)
        if "money" in info:
            money[info["_money"]] = info["money"][info["_money"]]
            pulls[info["_money"]] = info["total_pulls"][info["_money"]]
        over |= terminated | truncated
    assert (pulls == found["total_pulls"]).all()
    assert np.allclose(money, found["money"], atol=0)


def test_arms_of_one_price_change_places_among_each_other() -> None:
    means = [0.1, 0.2, 0.3, 0.4, 0.5]
    envs = PureExplorationVectorEnv(
        200, problem="BestArm", instance=Bernoulli(means), budget=9, cost=[1, 20, 1, 20, 1], shuffle_arms=True
    )
    envs.reset(seed=0)
    shown = envs._core.means
    assert {tuple(sorted(row[[0, 2, 4]])) for row in shown} == {(0.1, 0.3, 0.5)}
    assert len({tuple(row) for row in shown}) == 12  # 3! 2!


def test_prices_by_names() -> None:
    env = made(instance=table(), cost={"small": 20}, budget=50)
    assert env.task.cost == (1.0, 20.0, 1.0)
    with pytest.raises(ValueError, match=r"'smal'.*did you mean 'small'|smal"):
        made(instance=table(), cost={"smal": 20}, budget=50)
    again = Task.from_json(env.task.to_json())
    assert again == env.task
    assert json.loads(env.task.to_json())["cost"] == [1.0, 20.0, 1.0]
    assert "cost" not in json.loads(made(budget=50).task.to_json())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cost": [1, 0, 1]}, r"cost\[1\] must be a number in \(0"),
        ({"cost": [1, -2, 1]}, r"cost\[1\] .* got -2"),
        ({"cost": [1, 1, math.nan]}, r"cost\[2\] .* got nan"),
        ({"cost": [1, 1]}, r"list of 3 prices.*\[1, 1\]"),
        ({"cost": {"gpt": 2}}, "'gpt'"),
        ({"cost": "rows"}, "cost must be"),
        ({"cost": "row"}, "rows of a table"),
        ({"cost": 3}, "cost must be a list"),
        ({"cost": [30, 30, 40]}, "budget=20 is money"),
        ({"cost": [1, 2, 3], "pull_cost": 0.1}, "pull_cost=0.1"),
        ({"cost": "row", "instance": table(), "batch": 2}, "without batch"),
    ],
)
def test_prices_that_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made(**{"budget": 20} | settings)


def test_agents_that_count_pulls_are_refused() -> None:
    env = made(budget=50, cost=[1, 2, 3])
    with pytest.raises(ValueError, match="successive-rejects counts the pulls of a budget.* uniform"):
        agents.make("successive-rejects", env)
    agents.make("lucb", made(delta=0.1, cost=[1, 2, 3], actions="full"))  # without a budget nothing is counted
