"""Tables with several metrics in a cell: the environment, its agents, and how such a table is read."""

from __future__ import annotations

import json
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import table

import agents
from agents import testing
from bandit_envs import Shared, Task, from_table
from bandit_envs.instances import Pools
from bandit_envs.kernels import orders, root_key

G = np.random.default_rng(7)
RIGHT = (G.random((30, 4)) < [0.5, 0.7, 0.8, 0.9]) * 1.0
TAKES = (G.gamma(4, 1, (30, 4)) * [40, 60, 80, 50]).round(1)
CELLS = np.stack([RIGHT, TAKES], axis=2)
FEASIBLE, LIMITS = "bandit_envs/Feasible-v0", {"A": [[-1, 0], [0, 1]], "b": [-0.6, 260]}
KWARGS: dict[str, Any] = {"instance": Shared(CELLS), "delta": 0.1, "max_pulls": 400, **LIMITS}


def long_table(cells: Any = CELLS, columns: tuple[str, ...] = ("accuracy", "latency")) -> str:
    lines = [",".join(["name", "item", *columns])]
    lines += [
        ",".join([f"m{k}", f"q{n}", *map(str, cells[n, k])]) for n in range(len(cells)) for k in range(cells.shape[1])
    ]
    return "\n".join(lines)


# --- the environment --------------------------------------------------------------------------------------------------


def test_the_nth_pull_of_every_arm_is_its_metrics_in_the_nth_row() -> None:
    env = gym.make(FEASIBLE, instance=Shared(CELLS), budget=500, shuffle_arms=False, **LIMITS)
    env.reset(seed=3)
    for arm in [0, 1, 2, 3] * 31:
        seen, _, _, _, info = env.step(arm)
    order = orders(root_key(3)[:, None], np.zeros(1, np.uint64), 30)[0]
    assert (seen["scores"] == CELLS[order].swapaxes(0, 1)).all()
    assert (seen["pulls"] == 31).all()
    assert seen["mean"] == pytest.approx(CELLS.mean(axis=0), abs=1e-9)
    assert (info["sample"] == seen["mean"][3]).all()
    assert env.observation_space["scores"].shape == (4, 30, 2)
    again = env.reset(seed=3)[0]
    assert not again["scores"].any()


def test_bulk_pulls_are_single_pulls() -> None:
    bulk, single = (gym.make(FEASIBLE, actions=how, budget=500, **LIMITS, instance=Shared(CELLS)) for how in FORMS_OF)
    for times in (1, 3, 20, 35):
        bulk.reset(seed=times), single.reset(seed=times)
        seen = bulk.step({"arm": 1, "times": times, "answer": np.zeros(4, np.int8)})[0]
        for _ in range(times):
            shown = single.step(1)[0]
        for name, value in shown.items():
            assert seen[name] == pytest.approx(value, rel=1e-12), name


FORMS_OF = ("full", "arm")


@pytest.mark.parametrize("check", ["evaluate", "order_of_the_batch", "pickles", "single_is_batch"])
@pytest.mark.parametrize("agent", ["paired-elimination", "uniform(stop='certificate')"])
def test_an_episode_is_the_same_in_every_form(agent: str, check: str) -> None:
    testing._run(agent, getattr(testing, f"check_{check}"), gym.make(FEASIBLE, **KWARGS))


def rows_of(agent: str = "paired-elimination", **changed: Any) -> Any:
    kwargs = KWARGS | changed
    return agents.evaluate(agent, "Feasible", episodes=60, env_kwargs=kwargs, progress=False).episodes


@pytest.mark.parametrize("rules", [{}, {"batch": 4}, {"delay": 3}])
def test_units_and_the_order_of_metrics_decide_nothing(rules: dict[str, Any]) -> None:
    """Latency in seconds, and before accuracy: the same pulls, the same answers."""
    one, columns = rows_of(**rules), ["total_pulls", "correct", "misclassified"]
    seconds = rows_of(instance=Shared(CELLS * [1, 0.001]), b=[-0.6, 0.26], **rules)
    turned = rows_of(instance=Shared(CELLS[..., ::-1]), A=[[0, -1], [1, 0]], b=[-0.6, 260], **rules)
    assert one["certified"].all()
    assert one[columns].equals(seconds[columns])
    assert one[columns].equals(turned[columns])
    assert one["total_pulls"].mean() < 0.95 * CELLS.size / 2


def test_each_metric_has_a_range_of_its_own() -> None:
    """With the range of latency for accuracy too, nothing but all rows decides."""
    wide = Shared(CELLS, (0.0, 2000.0))
    assert rows_of(instance=wide)["total_pulls"].mean() > 1.03 * rows_of()["total_pulls"].mean()
    arms = Shared(CELLS)
    assert arms.ranges == ((0, 1), (TAKES.min(), TAKES.max()))
    assert arms.support == (0, TAKES.max())
    assert Shared(CELLS, [(0, 1), (0, 2000)]).ranges == ((0, 1), (0, 2000))


def test_json_forms_are_read_again() -> None:
    arms = Shared(CELLS, [(0, 1), (0, 2000)])
    form = json.loads(json.dumps(arms.to_dict()))
    task = gym.make(FEASIBLE, **KWARGS | {"instance": form}).unwrapped.task
    assert task.ranges == arms.ranges
    assert Task.from_json(task.to_json()) == task


# --- how such a table is read -----------------------------------------------------------------------------------------


def test_a_long_table_with_columns_of_metrics(tmp_path: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_text(long_table())
    instance = from_table(path, shared=True, values=["accuracy", "latency"])
    assert instance.arm_names == ("m0", "m1", "m2", "m3")
    assert (instance.arms.parameters == Shared(CELLS).parameters).all()
    same = from_table(path, shared=True, value=["accuracy", "latency"])
    assert (same.arms.parameters == instance.arms.parameters).all()
    turned = from_table(path, shared=True, values=["latency", "accuracy"], support=[(0, 5000), (0, 1)])
    assert turned.arms.ranges == ((0, 5000), (0, 1))
    assert turned.arms.means == pytest.approx(instance.arms.means[:, ::-1], rel=1e-9)


def test_a_weighted_sum_is_one_score(tmp_path: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_text(long_table())
    weights = {"accuracy": 1, "latency": -0.001}
    arms = from_table(path, shared=True, values=["accuracy", "latency"], weights=weights).arms
    assert (arms.parameters[:, :-1].T == RIGHT * 1.0 + TAKES * -0.001).all()
    assert arms.D == 1
    one = from_table(path, shared=True, values=["latency", "accuracy"], weights={"accuracy": 1}).arms
    assert (one.parameters == from_table(path, shared=True, value="accuracy").arms.parameters).all()
    env = gym.make("bandit_envs/BestArm-v0", instance=arms, delta=0.1)
    assert env.reset(seed=0)[0]["scores"].shape == (4, 30)


def test_cells_that_are_empty(tmp_path: Any) -> None:
    """A row without a cell of an arm is left out, or counts as said for each metric; half a cell is refused."""
    path, lines = tmp_path / "t.csv", long_table().splitlines()
    lines[5] = "m0,q1,,"
    path.write_text("\n".join(lines))
    told: dict[str, Any] = {"shared": True, "values": ["accuracy", "latency"]}
    with pytest.warns(UserWarning, match="29 of 30 rows"):
        assert from_table(path, **told).arms.items == 29
    with pytest.warns(UserWarning, match="count as the score 0, 2000"):
        arms = from_table(path, missing=[0, 2000], **told).arms
    assert arms.parameters.reshape(4, 31, 2)[0, 1].tolist() == [0, 2000]
    lines[5] = "m0,q1,1,"
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match="a measurement has all of its 2 values, or none"):
        from_table(path, **told)


def reading(tmp: Any, **told: Any) -> Any:
    path = tmp / "metrics.csv"
    path.write_text(long_table())
    return lambda: from_table(path, **{"shared": True, "values": ["accuracy", "latency"]} | told)


def making(problem: str, **told: Any) -> Any:
    return lambda: gym.make(f"bandit_envs/{problem}-v0", **{"instance": Shared(CELLS), "delta": 0.1} | told)


FLAT = np.stack([RIGHT, np.full(RIGHT.shape, 7.0)], axis=2)
test_bad_calls = table(
    {
        "one number is asked": (making("BestArm"), "scalar"),
        "another dimension": (making("Feasible", A=[[1, 0, 0]], b=[1]), "3", "2"),
        "single metrics": (making("Feasible", pull="coordinate", **LIMITS), "row by row"),
        "a range too few": (lambda: Shared(CELLS, [(0, 1)]), "support", "2 metrics"),
        "a range that lacks scores": (lambda: Shared(CELLS, [(0, 1), (0, 100)]), "support", "[0, 100]"),
        "one that cannot be": (lambda: Shared(CELLS, [(0, 1), (5, 5)]), "support", "(5, 5)"),
        "a metric that never differs": (lambda: Shared(FLAT), "all scores are 7", "support"),
        "rows of pools": (lambda: Pools([Shared(CELLS)], arms=3, rows=5), "rows", "one score"),
        "ranges of a task": (lambda: Task("Feasible", LIMITS, 3, 2, items=5, ranges=[(0, 1)]), "ranges", "2"),
        "ranges beyond it": (
            lambda: Task("Feasible", LIMITS, 3, 2, items=5, ranges=[(0, 1), (0, 9)]),
            "ranges",
            "0, 9",
        ),
        "ranges without a table": (lambda: Task("Feasible", LIMITS, 3, 2, ranges=[(0, 1), (0, 1)]), "ranges", "items"),
    }
)


def test_bad_calls_of_tables(tmp_path: Any) -> None:
    for told, words in (
        ({"value": "accuracy"}, "two names"),
        ({"values": ["accuracy", "cost"]}, "no column 'cost'"),
        ({"weights": {"cost": 1}}, "weights .*accuracy.*cost"),
        ({"weights": {}}, "weights"),
        ({"weights": [1, 2]}, "weights"),
        ({"weights": {"accuracy": math.nan}}, "a weight"),
        ({"missing": [0, 1, 2]}, "missing .*2 metrics"),
        ({"shared": False, "weights": {"accuracy": 1}}, "weights is for shared=True"),
    ):
        with pytest.raises(ValueError, match=words):
            reading(tmp_path, **told)()


def test_pools_of_tables_keep_the_ranges() -> None:
    env = gym.make(FEASIBLE, instance=Pools([Shared(CELLS)], arms=3), delta=0.1, **LIMITS)
    assert env.unwrapped.task.ranges == Shared(CELLS).ranges
    seen = env.reset(seed=0)[0]
    for _ in range(30):
        seen = env.step(1)[0]
    assert seen["scores"].shape == (3, 30, 2)
    rows = {tuple(cell) for cell in seen["scores"][1]}
    assert any(rows == {tuple(cell) for cell in CELLS[:, k]} for k in range(4))
