"""`evaluate` and what it yields: rows, checkpoints, budgets, batches, refusals, summaries, files."""

from __future__ import annotations

import io
import json
import logging
import math
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from gymnasium import spaces
from pandas.testing import assert_frame_equal
from refusals import refused
from scale import equal

import agents
from agents.core.agent import Agent
from agents.evaluation import lockstep, plan, progress, statistics
from agents.evaluation.environment import environment_id
from agents.evaluation.lockstep import Lockstep
from agents.evaluation.result import Evaluation
from bandit_envs import AllGood, Bernoulli, Gaussian, Instance, Threshold, Uniform
from bandit_envs.envs.catalogue import ENVIRONMENTS
from bandit_envs.envs.observations import FEATURES
from bandit_envs.kernels import WATCHERS, jit
from bandit_envs.problems import PROBLEMS

THRESHOLD = "bandit_envs/Threshold-v0"
TAO = {"instance": "tao2019-1", "budget": 60}
FRESH = {"instance": "sampler(arms=5)", "budget": 40, "threshold": 0.4}
MARGIN = FEATURES.index("margin")
METRICS = ["misclassified", "precision", "recall", "f1"]
ROWS = ["agent", "budget", "at", "episode", "total_pulls", "correct", "score", "truncated"]


def evaluate(names: Any, env_id: str = THRESHOLD, episodes: int = 20, **arguments: Any) -> Evaluation:
    return agents.evaluate(names, env_id, episodes=episodes, **({"env_kwargs": TAO, "progress": False} | arguments))


def part(rows: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows with these values in these columns."""
    for name, value in values.items():
        rows = rows[rows[name] == value]
    return rows.reset_index(drop=True)


class Stops(Agent):
    """Round robin that stops by itself after a number of pulls that its first samples decide."""

    name, source, solves, stops = "stops", "made up", tuple(PROBLEMS), True

    def choose(self, observation: Any, state: Any) -> Any:
        spent = observation["pulls"].sum(axis=1)
        last = self.task.K + observation["total"][:, : self.task.K // 2].sum(axis=1).astype(np.int64) % 7
        return np.where(spent >= last, self.task.K, spent % self.task.K)


class Bulk(Agent):
    """Pulls an arm thirty times, then the next."""

    name, source, solves = "bulk", "made up", tuple(PROBLEMS)

    def choose(self, observation: Any, state: Any) -> Any:
        return observation["pulls"].sum(axis=1) // 30 % self.task.K

    def _full(self, observation: Any, arms: Any, times: Any, state: Any) -> Any:
        return super()._full(observation, arms, np.full(len(arms), 30), state)


class Model:
    """A policy like one of SB3: it reads features, keeps a state, and knows a new episode by `episode_start` only.

    It pulls in turn, and stops after a number of pulls that the features of its first round decide.
    """

    def __init__(self, K: int, stop: bool = True) -> None:
        self.K, self.stop, self.shapes = K, stop, set[tuple[int, ...]]()

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        assert deterministic
        assert observation.dtype == np.float32
        self.shapes.add(observation.shape[1:])
        count = np.where(episode_start, 0, 0 if state is None else state + 1)
        sides = (observation.reshape(len(count), self.K, -1)[:, :, MARGIN] > 0).sum(axis=1)
        over = self.stop & (count >= self.K) & (count >= self.K + 3 * sides)
        return np.where(over, self.K, count % self.K), count


# Rows ---------------------------------------------------------------------------------------------------------------


def test_one_row_per_agent_checkpoint_and_episode() -> None:
    rows = evaluate(["lsa", "uniform"], at=[10, 60, 30], episodes=7).episodes
    assert list(rows.columns) == ROWS + METRICS
    assert list(rows["agent"].unique()) == ["lsa", "uniform"]
    assert len(rows) == 2 * 3 * 7
    assert not rows.duplicated(["agent", "at", "episode"]).any()
    assert sorted(rows["at"].unique()) == [10, 30, 60]
    assert set(rows["budget"]) == {60}
    assert set(rows["episode"]) == set(range(7))
    assert (rows["total_pulls"] == rows["at"]).all()
    assert (rows["score"] == 1 - rows["misclassified"] / 10).all()
    assert (rows["correct"] == (rows["misclassified"] == 0)).all()
    assert (rows[["correct", "truncated"]].dtypes == "bool").all()
    assert (rows[["total_pulls", "misclassified"]].dtypes == "int64").all()


@pytest.mark.parametrize("problem", ENVIRONMENTS)
def test_every_problem_has_its_metrics(problem: str) -> None:
    rows = evaluate("uniform", ENVIRONMENTS[problem].id, episodes=3, env_kwargs={}).episodes
    assert list(rows.columns) == [*ROWS, *PROBLEMS[problem].metric_names, *PROBLEMS[problem].certificate_names]
    assert rows["at"].isna().all()
    assert set(rows["total_pulls"]) == {200}


def test_pulls_are_means_over_episodes_that_sum_to_the_pulls_made() -> None:
    result = evaluate(["lsa", "random"], at=[15, 60])
    assert list(result.pulls.columns) == ["agent", "budget", "at", "arm", "pulls"]
    sums = result.pulls.groupby(["agent", "at"], sort=False)["pulls"].sum()
    assert sums.tolist() == pytest.approx([15, 60, 15, 60], rel=1e-12)
    assert set(result.pulls["arm"]) == set(range(10))


# The same episodes, whatever the batch ------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [TAO, FRESH, TAO | {"shuffle_arms": True}], ids=["fixed", "fresh", "shuffled"])
def test_results_do_not_depend_on_the_batch(kwargs: dict[str, Any]) -> None:
    names = ["lsa", "random", "apt(tolerance=0.1)", "opt-kg"]
    runs = (evaluate(names, episodes=8, at=[7, 21, 40], env_kwargs=kwargs, batch=batch) for batch in (1, 3, None))
    one, *others = runs
    for other in others:
        equal(one, other)


def test_episodes_of_different_length_do_not_depend_on_the_batch() -> None:
    kwargs = {"instance": "sampler(arms=6)", "delta": 0.1, "max_pulls": 18}
    env = gym.make(THRESHOLD, actions="full", **kwargs)
    crowd = {"stops": Stops(env), "model": Model(6)}
    one, *others = (evaluate(crowd, at=[3, 8, 14], env_kwargs=kwargs, batch=batch) for batch in (1, 7, 64))
    for other in others:
        equal(one, other)
    ends = evaluate(crowd, env_kwargs=kwargs).episodes
    for name in crowd:
        assert part(ends, agent=name)["total_pulls"].nunique() > 2
    assert ends["truncated"].nunique() == 2


def test_memory_bounds_the_batch_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    make = plan.make_envs

    def spy(env_id: str, slots: int, *rest: Any, **more: Any) -> Any:
        seen.append(slots)
        return make(env_id, slots, *rest, **more)

    monkeypatch.setattr(lockstep, "make_envs", spy)
    wide = evaluate(["lsa", "uniform"], episodes=50, env_kwargs=FRESH)
    assert max(seen) == 50
    seen.clear()
    monkeypatch.setattr(plan, "MEMORY", 5000)
    narrow = evaluate(["lsa", "uniform"], episodes=50, env_kwargs=FRESH)
    assert 1 < max(seen) < 12  # some 500 bytes for each episode of 5 arms
    equal(wide, narrow)


@pytest.mark.parametrize("kwargs", [TAO, FRESH], ids=["fixed", "fresh"])
def test_episode_e_is_episode_e_of_the_root_in_a_plain_loop(kwargs: dict[str, Any]) -> None:
    for name in ("lsa", "random"):
        rows = evaluate(name, env_kwargs=kwargs, seed=3, episodes=5).episodes
        for actions in ("arm", "full"):
            env = gym.make(THRESHOLD, actions=actions, **kwargs)
            agent = agents.make(name, env)
            for e in range(5):
                observation, _ = env.reset(seed=3, options={"episode": e})
                over, state = False, None
                while not over:
                    action, state = agent.predict(observation, state)
                    observation, _, terminated, truncated, info = env.step(action)
                    over = terminated or truncated
                for metric in ("correct", "score", "total_pulls", *METRICS):
                    assert info[metric] == rows[metric][e]


def test_decisions_are_the_same_in_evaluate_policy_of_sb3() -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    for name in ("lsa", "random"):
        envs = DummyVecEnv([lambda: Monitor(gym.make(THRESHOLD, **FRESH))])
        envs.seed(5)
        rewards, lengths = evaluate_policy(agents.make(name, envs), envs, 6, return_episode_rewards=True)
        rows = evaluate(name, env_kwargs=FRESH, seed=5, episodes=6).episodes
        assert rewards == pytest.approx(rows["score"].tolist(), abs=1e-6)  # rewards are float32 there
        assert lengths == rows["total_pulls"].tolist()


def test_agents_meet_the_same_samples_and_roots_share_none() -> None:
    result = evaluate({"a": "uniform", "b": "uniform"}, env_kwargs=FRESH, episodes=40)
    a, b = (part(result.episodes, agent=name).drop(columns="agent") for name in "ab")
    assert_frame_equal(a, b, check_exact=True)
    other = evaluate("uniform", env_kwargs=FRESH, episodes=40, seed=1).episodes
    assert not a["score"].equals(other["score"])


# Checkpoints and budgets --------------------------------------------------------------------------------------------

OF_ANY_ARMS = {name: kind for name, kind in agents.registry.AGENTS.items() if getattr(kind, "ready_for", None) != ()}
ANYTIME = [name for name, kind in OF_ANY_ARMS.items() if "Threshold" in kind.solves and kind.anytime]


def test_checkpoints_never_alter_the_run() -> None:
    plain = evaluate([*ANYTIME, "ucbe"])
    scored = evaluate([*ANYTIME, "ucbe"], at=[1, 2, 3, 10, 59, 60])
    last = part(scored.episodes, at=60)
    columns = [name for name in plain.episodes.columns if name != "at"]
    assert_frame_equal(last[columns], plain.episodes[columns], check_exact=True)
    ends = scored.pulls[scored.pulls["at"] == 60]["pulls"]
    assert ends.tolist() == plain.pulls["pulls"].tolist()


@pytest.mark.parametrize("kwargs", [TAO, FRESH], ids=["fixed", "fresh"])
def test_a_checkpoint_of_an_anytime_agent_is_a_run_with_that_budget(kwargs: dict[str, Any]) -> None:
    points = [1, 12, 40]
    able = [name for name in ANYTIME if kwargs is TAO or not agents.registry.AGENTS[name].oracles]
    at = evaluate(able, env_kwargs=kwargs, at=points)
    budgets = evaluate(able, env_kwargs=kwargs, budgets=points)
    for t in points:
        alone = evaluate(able, env_kwargs=kwargs | {"budget": t})
        ends = alone.episodes.drop(columns=["at", "budget"])
        assert_frame_equal(part(at.episodes, at=t).drop(columns=["at", "budget"]), ends, check_exact=True)
        assert_frame_equal(part(budgets.episodes, budget=t).drop(columns=["at", "budget"]), ends, check_exact=True)
        assert part(budgets.pulls, budget=t)["pulls"].tolist() == alone.pulls["pulls"].tolist()
    assert budgets.episodes["at"].isna().all()


def test_an_agent_that_uses_the_budget_has_a_run_for_each() -> None:
    result = evaluate(["ucbe", "lsa"], budgets=[40, 20])
    for budget in (20, 40):
        alone = evaluate("ucbe", env_kwargs=TAO | {"budget": budget})
        mine = part(result.episodes, agent="ucbe", budget=budget)
        assert mine.drop(columns="agent").equals(alone.episodes.drop(columns="agent"))
    assert [list(part(result.summary(), agent=name)["budget"]) for name in ("ucbe", "lsa")] == [[20, 40]] * 2


@pytest.mark.parametrize("problem", ["Threshold", "AllGood", "TopK"])
def test_rows_of_budgets_are_those_of_separate_runs(problem: str) -> None:
    """Defect: agents that pull in bulk made one run at the largest budget, and were scored before the bulk pull."""
    env_id, kwargs = (
        f"bandit_envs/{problem}-v0",
        {"instance": "tao2019-1", "delta": 0.1} | ({"epsilon": 0.2} if problem == "TopK" else {}),
    )
    names = [
        name for name, kind in OF_ANY_ARMS.items() if problem in kind.solves and isinstance(kind, type) and kind.anytime
    ]
    chosen: dict[str, Any] = {name: name for name in names} | {"bulk": Bulk, "stops": Stops}
    points = [12, 50]
    for label, agent in chosen.items():
        together = evaluate(agent, env_id, env_kwargs=kwargs, episodes=4, budgets=points)
        for budget in points:
            alone = evaluate(agent, env_id, env_kwargs=kwargs | {"budget": budget}, episodes=4)
            mine = part(together.episodes, budget=budget)
            assert_frame_equal(mine, alone.episodes, check_exact=True, obj=label)
            assert part(together.pulls, budget=budget)["pulls"].tolist() == alone.pulls["pulls"].tolist(), label
            assert (mine["total_pulls"] > 0).all(), label


def test_an_ended_episode_counts_later_with_its_final_answer() -> None:
    result = evaluate("lsa", at=[30, 60, 61, 1000])
    end = part(result.episodes, at=60)
    for later in (61, 1000):
        assert part(result.episodes, at=later).drop(columns="at").equals(end.drop(columns="at"))
    assert set(part(result.episodes, at=30)["total_pulls"]) == {30}


def test_an_agent_that_stops_keeps_its_answer() -> None:
    kwargs = {"instance": "sampler(arms=6)", "delta": 0.1}
    agent = Stops(gym.make(THRESHOLD, actions="full", **kwargs))
    ends = evaluate(agent, env_kwargs=kwargs).episodes
    checks = evaluate(agent, env_kwargs=kwargs, at=[6, 8, 100]).episodes
    assert (part(checks, at=8)["total_pulls"] == np.minimum(ends["total_pulls"], 8)).all()
    assert part(checks, at=100).drop(columns="at").equals(ends.drop(columns="at"))
    assert set(part(checks, at=6)["total_pulls"]) == {6}


def test_only_max_pulls_truncates() -> None:
    kwargs = {"instance": "tao2019-1", "delta": 0.1, "max_pulls": 50}
    rows = evaluate("uniform", env_kwargs=kwargs, at=[49, 50, 70]).episodes
    assert part(rows, at=49)["truncated"].sum() == 0
    for later in (50, 70):
        assert part(rows, at=later)["truncated"].all()
        assert set(part(rows, at=later)["total_pulls"]) == {50}
    assert not evaluate("uniform").episodes["truncated"].any()


@pytest.mark.parametrize("cap", [{"budget": 100}, {"delta": 0.1, "max_pulls": 100}], ids=["budget", "max_pulls"])
def test_bulk_pulls_are_scored_at_the_last_decision_before_a_checkpoint(cap: dict[str, Any]) -> None:
    kwargs = {"instance": "tao2019-1", **cap}
    agent = Bulk(gym.make(THRESHOLD, actions="full", **kwargs))
    rows = evaluate(agent, env_kwargs=kwargs, at=[29, 30, 95, 100, 120]).episodes  # pulls: 30, 60, 90, and then 10
    assert [set(part(rows, at=t)["total_pulls"]) for t in (29, 30, 95, 100, 120)] == [{0}, {30}, {90}, {100}, {100}]
    ends = evaluate(agent, env_kwargs=kwargs).episodes
    assert part(rows, at=100).drop(columns="at").equals(ends.drop(columns="at"))


# What an agent may be -------------------------------------------------------------------------------------------------


def test_labels_are_the_strings_given() -> None:
    env = gym.make(THRESHOLD, actions="full", **TAO)
    lsa = agents.make("lsa", env)
    given = ["lsa(alpha=1.35)", lsa, agents.make("apt", env), lsa]
    result = evaluate(given, episodes=5)
    assert result.agents == ["lsa(alpha=1.35)", "lsa", "apt", "lsa-2"]
    assert evaluate("md-apt", episodes=2).agents == ["md-apt"]
    assert evaluate({"A": "lsa", "B": lsa}, episodes=2).agents == ["A", "B"]
    assert repr(result) == f"Evaluation({', '.join(result.agents)}: 5 episodes of {THRESHOLD})"
    named, made = (part(result.episodes, agent=name).drop(columns="agent") for name in ("lsa(alpha=1.35)", "lsa"))
    assert_frame_equal(named, made, atol=0)


def test_an_agent_may_come_from_another_form_of_the_environment() -> None:
    for form in ({"actions": "arm"}, {"actions": "full"}, {"max_pulls": 999}):
        agent = agents.make("lsa", gym.make_vec(THRESHOLD, num_envs=3, **TAO, **form))
        assert evaluate(agent).episodes.equals(evaluate("lsa").episodes)


def test_a_model_reads_features_and_is_told_where_episodes_begin() -> None:
    model = Model(10, stop=False)
    result = evaluate({"model": model, "uniform": "uniform"}, episodes=30, batch=7)
    mine, theirs = (part(result.episodes, agent=name).drop(columns="agent") for name in ("model", "uniform"))
    assert_frame_equal(mine, theirs, check_exact=True)  # both pull in turn; the plug-in answer is the one scored
    assert {len(shape) for shape in model.shapes} == {1}


def test_a_model_with_a_dict_space_reads_statistics() -> None:
    class Reader:
        observation_space = spaces.Dict()

        def predict(self, observation: Any, *rest: Any, **more: Any) -> tuple[Any, Any]:
            return observation["pulls"].argmin(axis=1), None

    result = evaluate([Reader(), "uniform"])
    assert result.agents == ["reader", "uniform"]
    mine, theirs = (part(result.episodes, agent=name)["score"] for name in result.agents)
    assert mine.equals(theirs)


def test_a_model_that_may_never_stop_is_refused() -> None:
    with refused("max_pulls"):
        evaluate(Model(10), env_kwargs={"delta": 0.1})


class Loud(Threshold):
    """A problem of one's own, which nobody has registered."""

    name, version = "Loud", 2


def test_environments_may_be_named_by_their_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: short names, and those of problems of one's own, were known on the command line only."""
    monkeypatch.setattr(PROBLEMS, "_rows", dict(PROBLEMS._rows))
    monkeypatch.setattr(PROBLEMS, "_found", dict(PROBLEMS._found))
    wanted = evaluate("lsa")
    for name in ("Threshold", "threshold", "Threshold-v0", "bandit_envs/threshold-v0", "test_evaluation:Loud", "Loud"):
        result = evaluate("lsa", name)
        assert_frame_equal(result.episodes, wanted.episodes, atol=0)
        known = name if ":" in name else "bandit_envs/Loud-v2" if "Loud" in name else THRESHOLD
        assert result.settings["env_id"] == known  # another process finds a problem of one's own by its module
    for name in ("TopK", "topk", "top-k", "top_k"):
        assert environment_id(name) == "bandit_envs/TopK-v0"
    del gym.registry["bandit_envs/Loud-v2"]
    for name, said in (("Treshold", "did you mean 'Threshold'"), ("", "Known: AllGood"), ("Threshold-v7", "")):
        with pytest.raises(ValueError, match=f"unknown environment '{name}'.*{said}"):
            evaluate("lsa", name)
    monkeypatch.setattr(PROBLEMS, "installed", {"Broken": "no_such_module:Thing"})
    assert_frame_equal(evaluate("lsa", "threshold").episodes, wanted.episodes, atol=0)
    with pytest.raises(ValueError, match="'no_such_module:Thing' cannot be imported"):
        evaluate("lsa", "Broken")


def test_all_agents_are_checked_before_the_first_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lockstep, "run", lambda self: pytest.fail("an agent ran"))
    with pytest.raises(ValueError, match="unknown agent 'nobody'"):
        evaluate(["lsa", "nobody"])

    class Blind:
        def predict(self, *_: Any, **__: Any) -> Any:
            raise ValueError("this observation cannot be read")

    with pytest.raises(ValueError, match="cannot be read"):
        evaluate(["lsa", Blind()])


# Summary and comparison -----------------------------------------------------------------------------------------------


def test_summary_is_what_the_rows_say() -> None:
    result = evaluate(["lsa", "uniform"], at=[20, 60], episodes=200)
    table = result.summary(level=0.9)
    expected = """agent budget at episodes total_pulls total_pulls_low total_pulls_high total_pulls_50 total_pulls_95
        total_pulls_99 error_rate error_low error_high score score_low score_high truncated lower_bound_ratio
        misclassified precision recall f1 pulls_per_second deterministic"""
    assert list(table.columns) == expected.split()
    assert len(table) == 4
    for _, row in table.iterrows():
        rows = part(result.episodes, agent=row["agent"], at=row["at"])
        errors = int((~rows["correct"]).sum())
        assert (row["episodes"], row["error_rate"]) == (200, errors / 200)
        assert (row["error_low"], row["error_high"]) == statistics.clopper_pearson(errors, 200, 0.9)
        assert (row["score_low"], row["score_high"]) == pytest.approx(statistics.bootstrap_mean(rows["score"], 0.9))
        assert row["score_low"] <= row["score"] <= row["score_high"]
        for name in ("score", "total_pulls", "truncated", *METRICS):
            assert row[name] == pytest.approx(rows[name].mean())
        assert row["total_pulls_50"] == row["total_pulls_95"] == row["at"]
        assert math.isnan(row["lower_bound_ratio"])
        assert row["pulls_per_second"] > 0


def test_delta_gets_a_verdict_and_a_lower_bound_a_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Threshold, "lower_bound", lambda self, means, delta: 20.0 if delta == 0.2 else math.nan)
    table = evaluate("uniform", env_kwargs=TAO | {"delta": 0.2}, episodes=100).summary()
    assert table["verdict"].tolist() == ["none stopped"]
    assert table["lower_bound_ratio"].isna().all()  # the budget has ended the episodes, not the agent
    stops = Stops(gym.make(THRESHOLD, actions="full", **TAO))
    result = evaluate(stops, env_kwargs={"instance": "tao2019-1", "delta": 0.2}, at=[12, 100])
    first, last = result.summary()["lower_bound_ratio"]
    assert result.summary()["verdict"].tolist() == ["not met", "not met"]
    assert last == result.column("stops", "total_pulls").mean() / 20.0
    assert math.isnan(first)
    capped = evaluate(stops, env_kwargs={"instance": "tao2019-1", "delta": 0.2, "max_pulls": 12}).summary()
    assert 0 < capped["truncated"][0] < 1
    assert capped["lower_bound_ratio"].isna().all()
    easy: Any = {"env_id": THRESHOLD, "env_kwargs": {"instance": Instance(Bernoulli([0.0, 1.0])), "delta": 0.2}}
    assert evaluate(Stops, **easy, episodes=100).summary()["verdict"].tolist() == ["met"]
    assert evaluate(Stops, **easy, episodes=3).summary()["verdict"].tolist() == ["undecided"]
    assert "verdict" not in evaluate("uniform").summary()


def test_a_bound_for_gaussian_arms_of_sd_1_grows_with_their_variance() -> None:
    """Defect: the bound of AllGood, for N(mean, 1) arms, was reported for arms of all distributions."""

    def bound(arms: Any, **more: Any) -> float:
        kwargs = {"instance": arms, "epsilon": 0.2, "delta": 0.1, "max_pulls": 10**6} | more
        return evaluate("st2", "bandit_envs/AllGood-v0", env_kwargs=kwargs, episodes=1).runs[0].lower_bound

    means = [0.1, 0.4, 0.9]
    one = bound(Gaussian(means))
    assert one == AllGood(0.2).lower_bound(means, 0.1) > 0
    assert bound(Gaussian(means, 0.5)) == pytest.approx(0.25 * one)
    assert bound({"distribution": "gaussian", "mean": means, "sd": [2.0, 2.0, 2.0]}) == pytest.approx(4.0 * one)
    for other in (Gaussian(means, [1.0, 1.0, 2.0]), Uniform(means, 12**0.5)):
        assert math.isnan(bound(other))
    assert bound(Bernoulli(means)) == AllGood(0.2).lower_bound(means, 0.1, distribution="bernoulli") > 0
    assert math.isnan(bound("sampler(distribution='gaussian')"))


def test_comparison_is_paired() -> None:
    result = evaluate(["lsa", "uniform"], at=[20, 60], episodes=300)
    for t in (20, 60):
        a, b = (part(result.episodes, agent=name, at=t) for name in ("lsa", "uniform"))
        for metric in ("score", "misclassified", "correct"):
            d = result.compare("lsa", "uniform", metric, at=t)
            np.testing.assert_equal(vars(d), vars(statistics.paired_difference(a[metric], b[metric])))
    assert result.compare("lsa", "uniform", "f1") == result.compare("lsa", "uniform", "f1", at=60, budget=60)
    d, r = result.compare("lsa", "uniform", "error_rate"), result.compare("uniform", "lsa", "error_rate")
    assert (d.difference, d.p_value) == (-r.difference, r.p_value)
    assert d.difference == -result.compare("lsa", "uniform", "correct").difference
    assert d.high < 0  # LSA is better


def test_comparison_refuses_what_is_not_there() -> None:
    result = evaluate(["lsa", "uniform"], at=[20, 60], episodes=3)
    for arguments, message in (
        (("lsa", "apt"), "agent must be one of lsa, uniform, got 'apt'"),
        (("lsa", "uniform", "f2"), "metric must be one of error_rate, score, misclassified.* got 'f2'"),
    ):
        with pytest.raises(ValueError, match=message):
            result.compare(*arguments)
    with pytest.raises(ValueError, match=r"lsa has no rows at budget=None, at=21; .*\(60, 20\), \(60, 60\)"):
        result.compare("lsa", "uniform", at=21)


# Files, progress, real data ------------------------------------------------------------------------------------------


def test_saved_results_come_back(tmp_path: Path) -> None:
    settings: dict[str, Any]
    for settings in ({"at": [20, 60]}, {"budgets": [20, 30]}, {}, {"env_kwargs": FRESH | {"delta": 0.1}}):
        names = ["lsa", "uniform"] if "env_kwargs" in settings else ["lsa", "ucbe"]
        result = evaluate(names, episodes=30, **settings)
        assert result.save(tmp_path / "a" / "b") == tmp_path / "a" / "b"
        again = Evaluation.load(tmp_path / "a" / "b")
        equal(result, again)
        assert_frame_equal(result.summary(), again.summary(), atol=0)
        assert again.settings == result.settings
        assert again.compare(*names, "f1") == result.compare(*names, "f1")
    files = {path.name for path in (tmp_path / "a" / "b").iterdir()}
    assert files == {"episodes.parquet", "pulls.parquet", "summary.csv", "settings.json"}
    stored = json.loads((tmp_path / "a" / "b" / "settings.json").read_text())
    assert stored["seed"] == 0
    assert stored["env_kwargs"]["delta"] == 0.1
    assert set(stored["versions"]) == {"bandit-envs", "gymnasium", "numpy", "python"}


def test_settings_of_python_objects_are_written_as_json(tmp_path: Path) -> None:
    instance = Instance(Bernoulli([0.2, 0.7]))
    evaluate("uniform", env_kwargs={"instance": instance, "budget": 4}, episodes=2).save(tmp_path)
    stored = json.loads((tmp_path / "settings.json").read_text())
    assert stored["env_kwargs"]["instance"] == instance.to_dict()


def test_only_a_complete_folder_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="episodes.parquet and pulls.parquet and settings.json missing"):
        Evaluation.load(tmp_path)
    result = evaluate(["lsa", "uniform"], episodes=5)
    result.save(tmp_path)
    result.episodes.iloc[:-1].to_parquet(tmp_path / "episodes.parquet")
    with pytest.raises(ValueError, match="episodes.parquet is not the file that was written with"):
        Evaluation.load(tmp_path)
    settings = json.loads((tmp_path / "settings.json").read_text())
    del settings["digests"]  # as older versions have written it
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="was altered: the rows of uniform"):
        Evaluation.load(tmp_path)


def test_progress_is_shown_where_asked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "BETWEEN", 0.0)
    quiet = evaluate("uniform", env_kwargs=TAO | {"budget": 600}, episodes=30)
    assert capsys.readouterr().err == ""
    with monkeypatch.context() as terminal:
        terminal.setattr(sys.stderr, "isatty", lambda: True)
        shown = evaluate("uniform", env_kwargs=TAO | {"budget": 600}, episodes=30, progress=True)
    assert "uniform" in capsys.readouterr().err
    equal(quiet, shown)
    monkeypatch.undo()
    evaluate("uniform", episodes=5, progress=True)  # what is quick says nothing
    assert capsys.readouterr().err == ""


class Told(threading.Event):
    """What lines on progress wait for: it notes how long they would wait, and lets them go on."""

    waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        return super().wait(0.001)


class Patient(Agent):
    """Decides when a line has been printed, if any are."""

    name, solves = "patient", ("Threshold",)

    def choose(self, observation: Any, state: Any) -> Any:
        before, deadline = len(Told.waits), time.monotonic() + 600
        while progress._lines is not None and len(Told.waits) < before + 3 and time.monotonic() < deadline:
            time.sleep(0.001)
        return np.zeros(len(observation["pulls"]), np.int64)


def test_where_there_is_no_terminal_progress_is_reported_in_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: runs of minutes told nothing where standard error was a file. There is one clock for all agents."""
    monkeypatch.setattr(progress, "Event", Told)
    monkeypatch.setattr(Told, "waits", [])
    both = {"one": Patient, "two": Patient}
    for told in (None, False):
        evaluate(both, episodes=4, batch=2, env_kwargs=TAO | {"budget": 6}, progress=told)
        assert capsys.readouterr().err == ""
    evaluate(both, episodes=4, batch=2, env_kwargs=TAO | {"budget": 6}, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert Told.waits == [progress.FIRST_LINE, *[progress.NEXT_LINE] * len(lines)]
    form = r"((one|two)?: \d+ of 48 pulls(, \d+ s left)?|still running) \(after \d+ s\)"
    assert [line for line in lines if not re.fullmatch(form, line)] == []
    assert {line.partition(":")[0] for line in lines} >= {"one", "two"}
    assert progress._lines is None


class Compiling(Agent):
    """Compiles two kernels that no cache has, whenever it is made anew."""

    name, solves = "compiling", ("Threshold",)

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        place: dict[str, Any] = {"__name__": "here"}
        exec("def one(x): return x + 1\ndef two(x): return x + 2", place)
        self.kernels = jit(place["one"]), jit(place["two"])

    def choose(self, observation: Any, state: Any) -> Any:
        one, two = (kernel(observation["pulls"].sum(axis=1)) for kernel in self.kernels)
        return (two - one) % self.task.K


def test_it_is_told_which_kernel_is_compiled_and_since_when(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: there was one note, and then nothing for a minute."""
    monkeypatch.setattr(progress, "RENEWED", 0.001)
    begins, told = progress.CompileTime.begins, io.StringIO()

    def until_it_is_told(compiling: Any, name: str) -> None:
        """The second kernel is compiled when a line has said so."""
        begins(compiling, name)
        deadline = time.monotonic() + 600
        if name == "two" and compiling is WATCHERS[-1]:
            while ", two (" not in told.getvalue() and time.monotonic() < deadline:
                time.sleep(0.001)

    monkeypatch.setattr(progress.CompileTime, "begins", until_it_is_told)
    monkeypatch.setattr(sys, "stderr", told)
    evaluate(Compiling, episodes=2, progress=True)
    note, *lines = (text := told.getvalue()).splitlines()
    assert note == progress.COMPILING
    found = [re.fullmatch(r"compiling kernel (\d+), (.+) \(\d+ s so far\)", line) for line in lines]
    assert "two" in [match[2] for match in found if match]
    assert all(found)
    numbers = [int(match[1]) for match in found if match]
    assert numbers == sorted(numbers)
    monkeypatch.setattr(progress.CompileTime, "begins", begins)
    evaluate(Compiling, episodes=2, progress=False)
    assert told.getvalue() == text


def test_it_is_said_once_that_kernels_are_compiled(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Defect: the first use was silent for many seconds. Who asks for no progress is told nothing."""
    logger = logging.getLogger("bandit_envs.kernels.compiled")
    for told in (None, False):
        evaluate(Compiling, episodes=2, progress=told)
        assert capsys.readouterr().err == ""
    for _ in range(2):
        evaluate({"a": Compiling, "b": Compiling}, episodes=2, progress=True)
        assert capsys.readouterr().err == f"{progress.COMPILING}\n"
        assert (logger.handlers, logger.level, logger.propagate) == ([], logging.NOTSET, True)
    with progress.compilation_noted(True):
        evaluate(Compiling, episodes=2, progress=True)
    assert capsys.readouterr().err == f"{progress.COMPILING}\n"
    evaluate("uniform", episodes=2)
    evaluate("uniform", episodes=2, progress=True)  # there is nothing to compile any more
    assert capsys.readouterr().err == ""
    assert caplog.messages == []
    observation, _ = gym.make(THRESHOLD).reset(seed=0)  # which may compile what random instances need
    with caplog.at_level(logging.INFO):
        agents.make(Compiling, gym.make(THRESHOLD)).predict(observation)
        assert caplog.messages == ["compiling here.one", "compiling here.two"]
        evaluate(Compiling, episodes=2, progress=True)
        assert caplog.messages == 2 * ["compiling here.one", "compiling here.two"]  # whoever asked is still told


def test_ratings_of_captions(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDIT_ENVS_DATA", str(data_folder))
    kwargs = {"instance": "captions-651", "threshold": 1.5, "budget": 12_000}
    result = evaluate(["lsa", "apt(tolerance=0.05)", "uniform"], env_kwargs=kwargs, episodes=2, at=[9_250, 12_000])
    assert set(result.episodes["total_pulls"]) == {9_250, 12_000}
    first = result.episodes[result.episodes["at"] == 9_250]
    assert first.groupby("episode")["misclassified"].nunique().eq(1).all()  # one pull of each arm, the same for all
    with pytest.raises(ValueError, match="ucbe needs a finite H, got inf"):  # 12 captions are exactly at 1.5
        evaluate("ucbe", env_kwargs=kwargs)
    with pytest.raises(ValueError, match="opt-kg needs Bernoulli arms, got categorical"):
        evaluate("opt-kg", env_kwargs=kwargs)


def test_an_agent_that_is_cut_is_scored_on_what_it_recommends() -> None:
    """APT with the true boundary answers by that, not by the best empirical mean: cut or out of budget alike."""
    rows = {}
    for rule in ("budget", "max_pulls"):
        kwargs = {"instance": "mason2020-3a(n=25)", "delta": None, rule: 300}
        rows[rule] = agents.evaluate("apt-oracle", "bandit_envs/AllGood-v0", episodes=50, env_kwargs=kwargs).episodes
    assert rows["max_pulls"]["truncated"].all()
    assert not rows["budget"]["truncated"].any()
    for metric in ("correct", "score", "f1", "misclassified", "total_pulls"):
        assert rows["max_pulls"][metric].tolist() == rows["budget"][metric].tolist()
