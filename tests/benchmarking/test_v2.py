"""Version 2 of the benchmark: what no agent can gain by, certified deltas, fresh roots, what its tasks are."""

from __future__ import annotations

import dataclasses
import math
import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents.benchmarking import run
from agents.benchmarking.run import Clock
from agents.cli import main
from agents.evaluation.identity import digest
from bandit_envs import BenchmarkTask, benchmark_tasks
from bandit_envs.instances.datasets import local_folder
from bandit_envs.instances.lookup import find

pytest.importorskip("pandas")

BUDGETS = tuple(task.name for task in benchmark_tasks("quick-v2") if not task.fixed_confidence)
DELTAS = tuple(task.name for task in benchmark_tasks("quick-v2") if task.fixed_confidence)


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_tasks_are_declared_once() -> None:
    tasks, quick = benchmark_tasks(), benchmark_tasks("quick-v2")
    names = [task.name for task in tasks]
    assert len(set(names)) == len(names)
    assert len({task.group for task in tasks}) == len(quick) == 12
    assert all(task.ships for task in quick)
    assert [task.name for task in benchmark_tasks("v2-offline")] == [task.name for task in tasks if task.ships]
    assert all(math.isfinite(task.uniform) and math.isfinite(task.best) for task in tasks)
    assert {task.name for task in tasks if task.marks} <= {task.name for task in tasks if task.real}
    assert all("delta" not in task.kwargs or task.uniform >= 1.35 * task.best for task in tasks)
    worse = [task.name for task in tasks if (task.best < task.uniform) != task.fixed_confidence]
    assert not worse


def test_at_least_twelve_real_tables() -> None:
    tables = {str(task.kwargs["instance"]).partition("pools': ['")[2].partition("'")[0] for task in benchmark_tasks()}
    assert len(tables - {""} | {"real-prompts"}) >= 12


@pytest.mark.parametrize("task", benchmark_tasks("v2"), ids=lambda task: task.name)
def test_no_place_is_better_than_another(task: BenchmarkTask) -> None:
    """In 300 episodes the largest mean of each is in every place as often: chi-square, false alarm 1e-6 a task.

    Instances differ: the same means never come twice, in any order, but for pools with few columns.
    """
    stats = pytest.importorskip("scipy.stats")
    if not task.ships and local_folder() is None:
        pytest.skip("its data are downloaded")
    import gymnasium as gym

    envs = gym.make_vec(task.env_id, num_envs=300, **task.kwargs)
    envs.reset(seed=7, options={"episode": np.arange(300)})
    means = envs.unwrapped.true_means()
    means = means @ np.arange(1, 1 + means.shape[2]) if means.ndim == 3 else means
    means = means[:, 1:] if task.problem == "BetterThanControl" else means  # the control stays where it is
    K = means.shape[1]
    ties = means == means.max(axis=1, keepdims=True)
    places = [np.random.default_rng(i).choice(np.flatnonzero(row)) for i, row in enumerate(ties)]
    assert stats.chisquare(np.bincount(places, minlength=K)).pvalue > 1e-6
    assert len({tuple(sorted(row)) for row in means.tolist()}) > 30
    envs.close()


def test_what_ships_needs_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BANDIT_ENVS_DATA", raising=False)
    for task in benchmark_tasks("v2-offline"):
        find(task.kwargs["instance"])
    assert len(benchmark_tasks("v2-offline")) >= 35


# --- what no agent can gain by ----------------------------------------------------------------------------------------


class Own(agents.Agent):
    name = "own"
    solves = agents.core.ALL_PROBLEMS
    stops = True

    def choose(self, observation: Any, state: Any) -> Any:
        return np.full(len(observation["pulls"]), self.task.stop)


def facts(task: Any) -> str:
    return f"{task.problem} {task.K} {task.budget} {task.delta}"


def known(facts: str) -> Any:
    """What a cheat has stored of a task: in a file, as it plays in a process of its own."""
    return pickle.loads(Path(os.environ["KNOWN"]).read_bytes())[facts]


class Memory(Own):
    """Knows of each task the answer that was right most often under the printed root, and answers at once."""

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        n = len(observation["pulls"] if slots is None else slots)
        return np.tile(known(facts(self.task)), (n, 1))


class Replay(Own):
    """Has a table of the answers of all episodes of the printed root, by their public seeds; it pulls nothing."""

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        seeds = observation["public_seed"][:, 0] if slots is None else observation["public_seed"][slots, 0]
        none = np.zeros(self.task.K, bool)
        if self.problem.answer_size:
            none[: self.problem.answer_size] = True
        truths = known(facts(self.task))
        return np.array([truths.get(int(seed), none) for seed in seeds])


class FourRounds(Own):
    """All arms in turn, four times, then it stops."""

    def choose(self, observation: Any, state: Any) -> Any:
        pulls = observation["pulls"]
        return np.where(pulls.sum(axis=1) < 4 * pulls.shape[1], pulls.argmin(axis=1), self.task.stop)


class NeverPulls(Own):
    """It has no rule to stop, and asks to stop at once."""

    stops = False


def answers_of(task: BenchmarkTask, salt: int, root: int | None = None) -> tuple[Any, Any, Any]:
    """The task's facts as text; public seeds and right answers of its episodes."""
    import gymnasium as gym

    envs = gym.make_vec(task.env_id, num_envs=task.episodes, **task.kwargs, salt=salt)
    observation, _ = envs.reset(seed=task.root if root is None else root, options={"episode": np.arange(task.episodes)})
    right = envs.unwrapped.problem.plug_in(envs.unwrapped.true_means())
    known = facts(envs.unwrapped.task)
    envs.close()
    return known, observation["public_seed"][:, 0], right


def of_size(monkeypatch: pytest.MonkeyPatch, episodes: int, most: int, tasks: int = 99) -> tuple[BenchmarkTask, ...]:
    """So many of the quick set of version 2, with so many episodes, of so many pulls at most without a budget."""

    def capped(kwargs: Any) -> Any:
        return kwargs | {"max_pulls": min(most, kwargs["max_pulls"])} if "max_pulls" in kwargs else kwargs

    cut = {
        x.name: dataclasses.replace(
            x,
            episodes=min(episodes, x.episodes),
            kwargs=capped(x.kwargs),
        )
        for x in benchmark_tasks("quick-v2")[:tasks]
    }
    chosen = lambda names: tuple(cut.values()) if isinstance(names, str) else tuple(cut[name] for name in names)
    monkeypatch.setattr(run, "benchmark_tasks", chosen)
    return tuple(cut.values())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> tuple[BenchmarkTask, ...]:
    return of_size(monkeypatch, 100, 600)


@pytest.fixture
def keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stores what a cheat knows, by the facts of tasks."""
    monkeypatch.setenv("KNOWN", str(tmp_path / "known"))
    return lambda known: (tmp_path / "known").write_bytes(pickle.dumps(known))


def test_a_memory_of_answers_gains_nothing(keep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, small = {}, of_size(monkeypatch, 100, 150, 2)
    for task in small:
        of, _, right = answers_of(task, 0)
        own, counts = np.unique(right, axis=0, return_counts=True)
        answers[of] = own[counts.argmax()]
    keep(answers)
    result = agents.benchmark({"memory": Memory}, "quick-v2")
    [row] = result.summary().to_dict("records")
    assert row["budget"] < 0
    assert row["delta"] <= 0
    assert all(cell.score <= 0 for cell in result.cells["memory"] if cell.task.scored)


def test_a_replay_of_the_printed_root_gains_nothing_elsewhere(keep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one that has foreseen its own public seeds: perfect on the printed root, nothing on another."""
    truths, small = {}, of_size(monkeypatch, 100, 150, 1)
    for task in small:
        of, seeds, right = answers_of(task, digest(agents.make(Replay, task.env())))
        truths[of] = {int(seed): answer for seed, answer in zip(seeds, right, strict=True)}
    keep(truths)
    printed, fresh = (agents.benchmark({"replay": Replay}, "quick-v2", root=root) for root in (small[0].root, 11))
    assert all(cell.value == 1 for cell in printed.cells["replay"] if not cell.task.fixed_confidence)
    assert all(cell.score <= 0 for cell in fresh.cells["replay"] if cell.task.scored)
    assert fresh.set == "quick-v2, root 11"
    assert set(fresh.table["root"]) == {11}


def test_public_seeds_depend_on_the_agent_and_samples_do_not(small: tuple[BenchmarkTask, ...]) -> None:
    [task] = [x for x in small if x.name == "top-fresh-20"]
    (_, plain, right), (_, salted, same) = answers_of(task, 0), answers_of(task, 5)
    assert (right == same).all()
    assert not np.isin(plain, salted).any()
    assert digest(agents.make("uniform", task.env())) != digest(agents.make("lucb", task.env()))


def test_a_stop_that_is_too_soon_gains_nothing(small: tuple[BenchmarkTask, ...]) -> None:
    """After four rounds, or at a delta of one's own, `uniform` goes on: its pulls, its answers, and an entry apart."""
    names = {"four": FourRounds, "sure": "evidence(delta=.9)", "uniform": "uniform", "evidence": "evidence"}
    result = agents.benchmark(names, list(DELTAS[:1]))
    for four, sure, uniform, evidence in zip(*result.cells.values(), strict=True):
        assert (four.values >= uniform.values).all()
        assert four.errors <= uniform.errors
        assert sure.own.pulls < sure.value
        assert evidence.own[:2] == ("certificate", evidence.value)
    apart = result.stops("none")
    assert set(apart["agent"]) == {"four", "sure"}
    assert (apart["pulls"][apart["agent"] == "four"] <= 4 * 20).all()
    assert apart["errors"].max() > 0
    assert result.stops("own").empty


class Smooth(Own):
    """Its attribute `delta` is something else."""

    delta: Any = "much"


def test_a_delta_that_is_no_number_is_none(small: tuple[BenchmarkTask, ...]) -> None:
    [cell] = agents.benchmark({"smooth": Smooth}, ["threshold-away-delta"]).cells["smooth"]
    assert cell.own[:2] == ("none", 0)


def test_a_changed_agent_needs_another_folder(small: tuple[BenchmarkTask, ...], tmp_path: Path) -> None:
    agents.benchmark({"mine": "random"}, ["top-fresh-20"], tmp_path)
    with pytest.raises(ValueError, match=r"top-fresh-20.*the agent has changed since: name another folder"):
        agents.benchmark({"mine": "random(seed=5)"}, ["top-fresh-20"], tmp_path)


@pytest.mark.parametrize("task", DELTAS)
def test_one_that_only_asks_to_stop_is_uniform(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a certificate is asked for by name, too."""
    of_size(monkeypatch, 40, 2000)
    named = f"{__name__}:NeverPulls(stop='certificate')"
    result = agents.benchmark({"never": NeverPulls, "named": named, "uniform": "uniform"}, [task])
    never, by_name, uniform = (cell for [cell] in result.cells.values())
    assert never.value == by_name.value == uniform.value < 4000
    assert never.errors == by_name.errors == uniform.errors


def test_uniform_has_0_under_any_root(small: tuple[BenchmarkTask, ...]) -> None:
    result = agents.benchmark(["uniform", "random"], ["top-fresh-20", "best-fresh-50"], root=2**60 + 1)
    assert [cell.score for cell in result.cells["uniform"]] == [0, 0]
    assert all(cell.score != 0 for cell in result.cells["random"])


def test_comparisons_are_paired(small: tuple[BenchmarkTask, ...]) -> None:
    """Of an agent with itself nothing is left; of two, the difference of the scores, in less than both intervals."""
    result = agents.benchmark({"a": "top-two", "b": "top-two", "u": "uniform"}, ["top-fresh-20", "best-fresh-50"])
    assert result.compare("a", "b") == (0.0, 0.0, 0.0)
    row = result.summary().set_index("agent")["budget"]
    difference, low, high = result.compare("a", "u", "budget")
    assert difference == pytest.approx(row["a"] - row["u"])
    assert low < difference < high
    assert repr(result) == "<Benchmark of 2 tasks of a, b, u: see summary()>"
    with pytest.raises(ValueError, match="column must be one of .*'deltas'"):
        result.compare("a", "u", "deltas")
    with pytest.raises(ValueError, match="lsa has no score in the column 'all'"):
        agents.benchmark(["lsa", "uniform"], ["top-fresh-20"]).compare("uniform", "lsa")


class Inside(Own):
    """Its own code plays in the simulation, which holds the true means."""

    plays = True

    def played(self, simulation: Any, quiet: Any, observation: Any, state: Any) -> Any:
        n = len(observation["pulls"])
        return np.full(n, self.task.stop), np.ones(n, np.int64)


def test_code_that_plays_in_the_simulation_is_noted(small: tuple[BenchmarkTask, ...]) -> None:
    [cell] = agents.benchmark({"inside": Inside}, ["top-fresh-20"]).cells["inside"]
    assert cell.note == run.INSIDE
    assert cell.oracle


@pytest.mark.parametrize("episodes", [50, 300])
def test_uniform_has_nothing_and_random_no_more(episodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of uniform is 0, as it is played anew; for 300 episodes, it has what the references say."""
    tasks = of_size(monkeypatch, episodes, 10**6)
    names = [task.name for task in tasks if episodes >= 300 or not task.fixed_confidence]
    result = agents.benchmark(["uniform", "random"], names)
    summary = result.summary().set_index("agent")
    assert summary[result.columns].notna().all(axis=None)
    assert summary.loc["random", "all"] < 0.15
    whole = {task.name: task for task in benchmark_tasks("quick-v2")}
    for cell in result.cells["uniform"]:
        task = whole[cell.task.name]
        assert (cell.samples == 0).all()
        assert episodes < task.episodes or cell.value == pytest.approx(task.uniform, rel=1e-7)


# --- runs -------------------------------------------------------------------------------------------------------------


def test_the_same_table_on_two_processes_and_after_a_kill(
    small: tuple[BenchmarkTask, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, some = ["uniform", "top-two"], ["top-fresh-20", "best-gap-delta"]
    whole, played = agents.benchmark(names, some), []

    def breaks(*given: Any, **named: Any) -> Any:
        played.append(given)
        if len(played) == 4:
            raise KeyboardInterrupt
        return agents.evaluate(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(run, "evaluate", breaks)
        with pytest.raises(KeyboardInterrupt):
            agents.benchmark(names, some, tmp_path)
    assert (tmp_path / "top-fresh-20" / "uniform").is_dir()
    again = agents.benchmark(names, some, tmp_path, jobs=2)
    pace = "seconds_a_pull"  # which alone differs
    assert again.table.drop(columns=pace).equals(whole.table.drop(columns=pace))
    assert again.summary().drop(columns=pace).equals(whole.summary().drop(columns=pace))
    assert not agents.benchmark(names, some, tmp_path, root=3).table.equals(whole.table)


def test_offline_the_set_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(tasks: Any) -> str:
        return "data of best-maize cannot be had: no network"

    short = tuple(dataclasses.replace(task, episodes=300) for task in benchmark_tasks(["top-fresh-20"]))
    monkeypatch.setattr(run, "_lacking", lacking)
    monkeypatch.setattr(run, "benchmark_tasks", lambda set: short)
    with pytest.warns(UserWarning, match="best-maize.*v2-offline"):
        assert agents.benchmark("uniform", "v2").set == "v2-offline"


def test_the_clock_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """x is in the table; y takes the median of a task; what was there, or is not taken, says nothing of the pace."""
    tasks = [dataclasses.replace(x, name=name) for name, x in zip("abc", benchmark_tasks("quick-v2"), strict=False)]
    monkeypatch.setattr(run, "_seconds", lambda: {"a": {"x": 1, "z": 3}, "b": {"x": 3, "z": 3}, "c": {"z": 5}})
    clock = Clock([(task, label) for task in tasks for label in ("x", "y")])
    assert clock.left == 1 + 2 + 3 + 3 + 0 + 5
    clock.done(tasks[0], "x", 2.0)
    assert clock.left == pytest.approx(2 * 13)
    clock.done(tasks[0], "y", 0.0)
    assert clock.left == pytest.approx(2 * 11)
    clock.done(tasks[1], "y", 10.0)
    assert clock.left == pytest.approx(3 * 8)


def test_the_command_shows_numbers_alone(
    small: tuple[BenchmarkTask, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    main(["benchmark", "uniform", "lsa", "--set", "quick-v2", "--out", str(tmp_path), "--root", "5"])
    shown = capsys.readouterr()
    assert not re.search(r"\bnan\b", shown.out + shown.err)
    assert "quick-v2, root 5" in shown.out
    refusals = [line.partition(";")[0] for line in shown.err.splitlines() if "does not take it" in line]
    assert 1 <= len(refusals) == len(set(refusals)) <= 3  # once for each problem that lsa does not solve
    page = (tmp_path / "benchmark.html").read_text()
    assert not re.search(r"\bnan\b", page.partition("data:image")[0])
    assert page.count("data:image/png") == 1
