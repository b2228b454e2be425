"""The benchmark: tasks, scores by hand, the command, agents of strangers, broken agents, models."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import table

import agents
from agents.benchmarking import run
from agents.benchmarking.scores import interquartile_mean, percentile_interval, replicates, score
from agents.cli import main
from bandit_envs import BenchmarkTask, benchmark_tasks

pytest.importorskip("pandas")

BUDGET = BenchmarkTask("a", "Threshold", {"budget": 60}, 40, 3, 4, "", 0.8, 0.9, "lsa")
DELTA = BenchmarkTask("b", "Threshold", {"delta": 0.1, "max_pulls": 4000}, 40, 3, 4, "", 800.0, 200.0, "evidence")


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_tasks_can_be_stepped_and_named() -> None:
    tasks, quick = benchmark_tasks(), benchmark_tasks("quick-v2")
    assert {task.group for task in quick} == {task.group for task in tasks}
    names = ["top-fresh-20", "threshold-dense", "top-fresh-20"]
    assert [task.name for task in benchmark_tasks(names)] == names[:2]
    assert len({task.root for task in tasks} | {task.train_root for task in tasks}) == 2
    for task in quick:
        env = task.env(actions="arm")
        env.reset(seed=task.root)
        assert env.unwrapped.task.problem == task.problem
        assert env.unwrapped.task.delta == task.kwargs.get("delta")
        env.step(0)


@pytest.mark.parametrize(("old", "new"), [("v1", "v2"), ("quick", "quick-v2")])
def test_sets_of_version_1_name_those_in_their_place(old: str, new: str) -> None:
    for call in (lambda: benchmark_tasks(old), lambda: agents.benchmark("lsa", old)):
        with pytest.raises(ValueError, match=f"set='{old}' .* no more since 0.3.0: '{new}' .*docs/benchmark/v1.csv"):
            call()
    scores = Path(__file__).parents[2] / "docs" / "benchmark" / "v1.csv"
    assert scores.read_text().startswith("task,group,agent,score,score_low,score_high,value,episodes")


def test_no_stored_model_has_seen_the_root() -> None:
    """None of the roots in the cards of models, of learning, choosing and judging, is that of tasks."""
    roots = {task.root for task in benchmark_tasks()}
    assert len(roots) == 1
    cards = [path.read_text() for path in (Path(agents.__file__).parent / "models").glob("*.json")]
    assert cards
    assert all('"root"' in card for card in cards)
    assert not any(str(root) in card for card in cards for root in roots)


# --- scores -----------------------------------------------------------------------------------------------------------


def test_scores_by_hand() -> None:
    """They have no ends: eight times the pulls of uniform are -1.5, a quarter of the reference's 2."""
    assert score(BUDGET, np.array([0.8, 0.9, 0.85, 0.7, 1.0]), 0.8) == pytest.approx([0.0, 1.0, 0.5, -1.0, 2.0])
    assert score(DELTA, np.array([800.0, 200.0, 400.0, 6400.0, 50.0]), 800.0) == pytest.approx([0, 1, 0.5, -1.5, 2])


def test_what_is_beyond_a_bound_is_noted_and_what_is_close_is_not_scored() -> None:
    base = run.Cell("uniform", DELTA, 800.0, math.nan, values=np.full(40, 800.0))
    proven = dataclasses.replace(DELTA, bound=100.0)
    for task, pulls, wanted, note in (
        (DELTA, 90.0, math.log(800 / 90) / math.log(4), ""),
        (proven, 90.0, math.log(800 / 90) / math.log(4), "90 is beyond a proven bound, as none is but by chance, 100"),
        (proven, 110.0, math.log(800 / 110) / math.log(4), ""),
        (dataclasses.replace(DELTA, scored=False), 110.0, math.nan, ""),
    ):
        cell = run._scored(run.Cell("a", task, pulls, math.nan, values=np.full(40, pulls)), base)
        assert cell.score == pytest.approx(wanted, nan_ok=True)
        assert cell.note == note
        assert len(cell.samples) == 2000 * task.scored


def test_interquartile_means_by_hand_and_by_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    assert interquartile_mean(np.array([9.0, 1.0, 2.0, -7.0])) == pytest.approx(1.5)
    assert interquartile_mean(np.array([3.0])) == pytest.approx(3.0)
    for n in (2, 5, 10, 37):
        x = np.random.default_rng(n).normal(size=(3, n))
        assert interquartile_mean(x) == pytest.approx(stats.trim_mean(x, 0.25, axis=-1))


def test_profiles_by_hand() -> None:
    tasks = tuple(dataclasses.replace(task, name=str(i)) for i, task in enumerate((BUDGET, BUDGET, DELTA, DELTA)))
    scores = zip(tasks, (0.0, 0.5, 1.0, 1.2), strict=True)
    cells = [run.Cell("a", task, 0.0, x, np.zeros(1)) for task, x in scores]
    lacks = [dataclasses.replace(cell, score=math.nan if i else 0.7) for i, cell in enumerate(cells)]
    result, levels = agents.Benchmark("", tasks, {"a": cells, "b": lacks}), np.array([-0.1, 0.5, 1.0])
    assert {agent: x.tolist() for agent, x in result.profile(levels).items()} == {"a": [1.0, 0.5, 0.25]}
    assert result.profile(levels, "budget")["a"].tolist() == [1.0, 0.0, 0.0]
    alone = agents.Benchmark("", tasks, {"b": lacks}).profile(levels)
    assert alone["b"].tolist() == [1.0, 1.0, 0.0]


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 95 % intervals of 400 samples, fewer than 355 hold the truth with probability below 1e-5."""
    rng, held = np.random.default_rng(0), 0
    for seed in range(400):
        base = rng.normal(0.8, 0.1, 60)
        low, high = percentile_interval(replicates(BUDGET, base + rng.normal(0.05, 0.2, 60), base, seed))
        held += low <= 0.5 <= high
    assert held >= 355
    assert held < 400


# --- agents -----------------------------------------------------------------------------------------------------------


class Own(agents.Agent):
    name = "own"
    solves = agents.core.ALL_PROBLEMS

    def choose(self, observation: Any, state: Any) -> Any:
        return observation["pulls"].argmin(axis=1)


class Endless(Own):
    """Never ends by itself, which environments with `max_pulls` bear."""

    name = "endless"
    stops = True


class Wrong(Own):
    name = "wrong"
    solves = ("Threshold",)
    stops = True

    def choose(self, observation: Any, state: Any) -> Any:
        return np.where(observation["pulls"].sum(axis=1) >= 20, self.task.stop, observation["pulls"].argmin(axis=1))

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        return ~super().recommend(observation, state, slots)


class Shapeless(Own):
    """Its actions have another shape once it has pulled ten times."""

    name = "shapeless"

    def choose(self, observation: Any, state: Any) -> Any:
        arms = observation["pulls"].argmin(axis=1)
        return arms if observation["pulls"].sum() < 10 else arms[:, None]


class Raising(Own):
    name = "raising"

    def choose(self, observation: Any, state: Any) -> Any:
        raise RuntimeError("boom")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> tuple[BenchmarkTask, ...]:
    """The quick set with 30 episodes each, of 1000 pulls at most where there is no budget."""
    tasks = tuple(
        dataclasses.replace(
            task,
            episodes=30,
            kwargs=task.kwargs | ({"max_pulls": 1000} if task.fixed_confidence else {}),
        )
        for task in benchmark_tasks("quick-v2")
    )
    monkeypatch.setattr(run, "benchmark_tasks", lambda set: tasks)
    return tasks


def test_agents_are_scored_where_they_play(tiny: tuple[BenchmarkTask, ...]) -> None:
    pandas = pytest.importorskip("pandas")
    result = agents.benchmark({"own": "random", "lsa": "lsa", "static": "static"}, "quick-v2")
    frame = result.table
    assert len(frame) == 3 * len(tiny)
    own = frame[(frame["agent"] == "own") & frame["task"].isin([task.name for task in tiny if task.scored])]
    assert own[["score", "score_low", "score_high"]].notna().all(axis=None)
    with_lsa = {group for group, some in frame[frame["agent"] == "lsa"].groupby("group") if some["score"].notna().any()}
    solved = ("threshold", "feasible", "betterthancontrol")
    assert with_lsa == {f"{problem}_{setting}" for problem in solved for setting in ("budget", "delta")}
    summary = result.summary().set_index("agent")
    assert list(summary.columns[:4]) == ["all", "all_low", "all_high", "budget"]
    assert summary.index[0] == "own"
    assert pandas.isna(summary.loc["lsa", "all"])
    assert summary.loc["lsa", "threshold_budget"] > summary.loc["own", "threshold_budget"]
    assert summary.loc["own", "all_low"] <= summary.loc["own", "all"] <= summary.loc["own", "all_high"]
    assert set(result.profile()) == {"own"}
    told = frame.set_index(["agent", "task"])["note"]
    assert "static" in told["static", "threshold-fresh-20"]  # fresh arms: there is no truth to be told


def test_broken_agents(tiny: tuple[BenchmarkTask, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "benchmark_tasks", lambda set: tiny[:2])
    frame = agents.benchmark({"endless": Endless, "wrong": Wrong}, "quick-v2").table.set_index(["agent", "task"])
    assert (
        "100.0% of the episodes are cut and count 2 max_pulls" in frame.loc[("endless", "threshold-away-delta"), "note"]
    )
    assert frame.loc[("endless", "threshold-away-delta"), "value"] == 2000
    assert frame.loc[("wrong", "threshold-away-delta"), "own_errors"] == 1
    assert frame.loc[("wrong", "threshold-away-delta"), "score"] <= 0
    assert frame.loc[("wrong", "threshold-fresh-20"), "score"] < -5


def test_agents_that_fail_are_named(tiny: tuple[BenchmarkTask, ...]) -> None:
    with pytest.raises(ValueError, match="threshold-fresh-20"):
        agents.benchmark(Shapeless, "quick-v2")
    with pytest.raises(RuntimeError, match="boom") as raised:
        agents.benchmark(Raising, "quick-v2")
    assert raised.value.__notes__[-1] == "raised by the agent 'raising' on the task threshold-fresh-20"


def test_folders_of_labels_differ() -> None:
    labels = ["a", "A", "a/b", "a:b", "a-b", "", " ", "x" * 300, "x" * 301, "ä", "Ä", "..", "."]
    folders = [run._slug(label) for label in labels]
    assert len({folder.lower() for folder in folders}) == len(labels)
    assert not {"", ".", ".."} & set(folders)
    assert all(len(folder) < 80 and "/" not in folder for folder in folders)


def test_data_that_cannot_be_had_leave_cells_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*given: Any, **named: Any) -> Any:
        raise OSError("no captions")

    monkeypatch.setattr(run, "make_envs", lacking)
    with pytest.warns(UserWarning, match="good-jokes is not played, as its data cannot be had: no captions"):
        [cell] = agents.benchmark("uniform", ["good-jokes"]).cells["uniform"]
    assert math.isnan(cell.score)
    assert cell.note == "its data cannot be had: no captions"


def test_a_model_is_played_as_it_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alive it says how; its file has to be told."""
    ppo = pytest.importorskip("stable_baselines3").PPO
    from agents.learned import make_vec_env
    from agents.learned.model import one_thread

    forms = {"observation": "relative", "stop": False, "reward": "gain", "ranked": True}
    envs = make_vec_env("TopK", 4, instance="sampler(arms=20)", k=5, budget=100, **forms)
    model = ppo("MlpPolicy", envs, n_steps=16, batch_size=32, n_epochs=1, seed=0)
    with one_thread():
        model.learn(64)
    model.save(tmp_path / "model.zip")
    tasks = ["top-fresh-20", "top-small", "top-line-family-delta"]
    few = [dataclasses.replace(task, episodes=30) for task in benchmark_tasks(tasks)]
    monkeypatch.setattr(run, "benchmark_tasks", lambda set: tuple(task for task in few if task.name in set))
    alive, wide, delta = agents.benchmark({"model": model}, tasks).cells["model"]
    assert not math.isnan(alive.score)
    assert "does not take it" in wide.note
    assert "does not take it" in delta.note
    file = str(tmp_path / "model.zip")
    [stored] = agents.benchmark({"m": file}, tasks[:1], trust=True, ranked=True, stop=False).cells["m"]
    assert stored.value == alive.value


def test_the_command_writes_tables_and_a_page(
    tiny: tuple[BenchmarkTask, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    main(["benchmark", "uniform", "apt", "--set", "quick-v2", "--out", str(tmp_path), "--no-progress"])
    shown = capsys.readouterr().out
    assert "uniform" in shown
    assert "apt does not take it: " in shown
    assert "(best-fresh-50, " in shown
    assert {"table.csv", "summary.csv", "benchmark.png", "benchmark.html"} <= {path.name for path in tmp_path.iterdir()}
    page = (tmp_path / "benchmark.html").read_text()
    assert all(task.name in page for task in tiny)
    assert page.count("data:image/png") == 1
    assert not math.isnan(agents.benchmark("uniform", "quick-v2", tmp_path).summary()["all"][0])


test_bad_calls = table(
    {
        "an unknown set": (lambda: agents.benchmark("lsa", "v3"), "set", "v3", "v2", "quick-v2"),
        "an unknown set of tasks": (lambda: benchmark_tasks("all"), "set", "all", "v2", "quick-v2"),
        "an array of tasks": (lambda: benchmark_tasks(np.array(["top-fresh-20"])), "set", "top-fresh-20", "a list"),
        "trust of a text": (lambda: agents.benchmark("lsa", "quick-v2", trust="yes"), "trust", "yes"),
        "an unknown task": (lambda: agents.benchmark("lsa", ["top"]), "set", "'top'", "top-fresh-20"),
        "no tasks": (lambda: agents.benchmark("lsa", []), "set", "[]", "v2"),
        "no agents": (lambda: agents.benchmark([], "quick-v2"), "agent", "[]"),
        "an unknown agent": (lambda: agents.benchmark("lsaa", "quick-v2"), "lsaa", "lsa"),
        "jobs below -1": (lambda: agents.benchmark("lsa", "quick-v2", jobs=0), "jobs", 0),
        "a root below 0": (lambda: agents.benchmark("lsa", "quick-v2", root=-1), "root", -1),
        "an unknown column": (
            lambda: agents.Benchmark("", (), {}).profile(column="budgets"),
            "column",
            "budgets",
            "all",
        ),
        "no folder": (lambda: agents.benchmark("lsa", "quick-v2", out=5), "out", 5),
        "progress of a text": (lambda: agents.benchmark("lsa", "quick-v2", progress="yes"), "progress", "yes"),
    }
)
