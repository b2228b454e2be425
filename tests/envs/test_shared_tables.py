"""Arms that are the columns of one table: one random order of rows for all of them, in each episode."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from instances import check_long_order, check_orders

import agents
from agents.certified.evidence import Evidence
from bandit_envs import Shared, Task, from_table
from bandit_envs.kernels import orders, root_key

GENERATOR = np.random.default_rng(5)
SCORES = GENERATOR.random((30, 4)).round(3)
INSTANCE = from_table(SCORES, shared=True)
BEST = "bandit_envs/BestArm-v0"


def rolled(env: Any, seed: int, arms: list[int], episode: int = 0) -> list[dict[str, Any]]:
    """The observations of an episode in which these arms are pulled."""
    seen = [env.reset(seed=seed, options={"episode": episode})[0]]
    return seen + [env.step(arm)[0] for arm in arms]


# --- the order of the rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("N", [1, 2, 3, 4, 5])
def test_all_orders_are_equally_likely(N):
    check_orders(N, 40_000)


def test_each_place_of_a_long_order_is_uniform_and_independent_of_its_neighbour():
    check_long_order(20_000)


# --- the environment --------------------------------------------------------------------------------------------------


def test_the_nth_pull_of_every_arm_is_its_score_in_the_nth_row():
    env = gym.make(BEST, instance=Shared(SCORES), budget=500, shuffle_arms=False)
    seen = rolled(env, 3, [0, 1, 2, 3] * 30)[-1]
    order = orders(root_key(3)[:, None], np.zeros(1, np.uint64), 30)[0]
    assert (seen["scores"] == SCORES[order].T).all()
    assert (seen["pulls"] == 30).all()
    assert (seen["mean"] == SCORES.mean(axis=0).round(12)).all()
    assert seen["variance"] == pytest.approx(SCORES.var(axis=0), rel=1e-12)


def test_an_arm_that_is_used_up_is_known_and_shows_its_mean():
    env = gym.make(BEST, instance=Shared(SCORES), budget=500, shuffle_arms=False).unwrapped
    env.reset(seed=1)
    for n in range(40):
        seen, _, _, _, info = env.step(2)
        if n >= 30:
            assert info["sample"] == INSTANCE.arms.means[2] == seen["mean"][2]
    assert seen["pulls"][2] == 40
    assert seen["remaining"][0] == 460
    assert seen["total"][2] == pytest.approx(40 * seen["mean"][2], rel=1e-15)
    assert seen["variance"][2] == pytest.approx(SCORES[:, 2].var() * len(SCORES) / 40)  # the others yield its mean
    assert (seen["scores"][2] != 0).sum() == (SCORES[:, 2] != 0).sum()


def test_bulk_pulls_are_single_pulls():
    bulk, single = (gym.make(BEST, instance=INSTANCE, budget=500, actions=how) for how in ("full", "arm"))
    nobody = np.zeros(4, np.int8)
    for times in (1, 3, 20, 35):
        bulk.reset(seed=times)
        seen = bulk.step({"arm": 1, "times": times, "answer": nobody})[0]
        for name, value in rolled(single, times, [1] * times)[-1].items():
            assert seen[name] == pytest.approx(value, rel=1e-12), name


@pytest.mark.parametrize("name", ["uniform", "sequential-halving", "sysrs"])
def test_batches_jobs_and_summed_rows_give_the_same(name):
    kwargs = {"instance": INSTANCE, "budget": 60}
    calls: list[dict[str, Any]] = [{}, {"batch": 3}, {"jobs": 2}, {"rows": "none"}]
    tables = [agents.evaluate(name, "BestArm", episodes=40, env_kwargs=kwargs, **call).summary() for call in calls]
    for column in ("error_rate", "aggregate_regret", "total_pulls"):
        assert len({float(table[column].iloc[0]) for table in tables[:3]}) == 1
        assert float(tables[3][column].iloc[0]) == pytest.approx(float(tables[0][column].iloc[0]), rel=1e-12)


CALLED = set[str]()


def noted(method: str) -> Any:
    """The method of `Evidence` of this name, whose calls are noted."""

    def own(self: Any, *given: Any) -> Any:
        CALLED.add(method)
        return getattr(Evidence, method)(self, *given)

    return own


class Own(Evidence):
    """As evidence, by methods of its own."""

    name = "own"
    initial_state, choose, played, recommend = map(noted, ("initial_state", "choose", "played", "recommend"))


def test_methods_of_ones_own_certified_class_are_called_on_tables_and_copies_keep_the_certifier():
    CALLED.clear()
    kwargs = {"instance": INSTANCE, "delta": 0.1}
    own, ours = (agents.evaluate({"a": one}, "BestArm", episodes=20, env_kwargs=kwargs) for one in (Own, "evidence"))
    assert own.pulls.equals(ours.pulls)
    agent, seen = Own(gym.make(BEST, **kwargs)), gym.make(BEST, **kwargs).reset(seed=0)[0]
    _, state = agent.predict(seen)
    for copied in (copy.copy(agent), copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert copied.certifier.numbers.tolist() == agent.certifier.numbers.tolist()
        assert copied.predict(seen, copy.deepcopy(state))[0] == agent.predict(seen, copy.deepcopy(state))[0]
    assert {"initial_state", "choose", "played", "recommend"} == CALLED


def test_the_task_names_the_rows_and_other_tasks_have_none():
    task = gym.make(BEST, instance=INSTANCE, budget=40).unwrapped.task
    assert task.items == 30
    assert Task.from_json(task.to_json()) == task
    assert "items" not in gym.make(BEST, budget=40).unwrapped.task.to_json()
    with pytest.raises(ValueError, match="items=5: columns of a table have scores in a range"):
        task.replace(items=5, support=None)
    with pytest.raises(ValueError, match="items must be an integer"):
        task.replace(items=0)


# --- tables -----------------------------------------------------------------------------------------------------------


def test_means_are_those_of_the_columns_and_ties_are_ties():
    x = np.array([[0.1, 0.3, 0.2], [0.5, 0.3, 0.2], [0.3, 0.3, 0.2]])
    arms = Shared(x)
    assert arms.means[0] == arms.means[1] == 0.3
    assert arms.support == (0.0, 1.0)
    assert Shared(x * 10).support == (1.0, 5.0)
    assert Shared(x, (0, 2)).support == (0.0, 2.0)
    assert math.isclose(arms.variances[0], x[:, 0].var())


@pytest.mark.filterwarnings("ignore:.*(rows have a score of every arm|count as the score)")
def test_rows_that_lack_a_cell_are_left_out_or_counted():
    x = SCORES.copy()
    x[3, 1] = x[7, 0] = np.nan
    assert from_table(x, shared=True).arms.items == 28
    counted = from_table(x, shared=True, missing=0.0).arms
    assert counted.items == 30
    assert counted.means[1] == pytest.approx((np.nansum(x[:, 1])) / 30)
    with pytest.raises(ValueError, match="no row has a score of every arm"):
        from_table(np.array([[0.1, np.nan], [np.nan, 0.2]]), shared=True)


def test_long_tables_are_read_by_their_items(tmp_path):
    wide, long = tmp_path / "wide.csv", tmp_path / "long.csv"
    wide.write_text("id,a,b\nq1,0.5,0.25\nq2,1,0\n")
    long.write_text("name,item,value\nb,q2,0\na,q1,0.5\nb,q1,0.25\na,q2,1\n")
    one, other = from_table(wide, index="id", shared=True), from_table(long, shared=True)
    assert one.arm_names == ("a", "b")
    assert dict(zip(one.arm_names, one.arms.means, strict=True)) == dict(
        zip(other.arm_names, other.arms.means, strict=True)
    )
    long.write_text("name,item,value\nb,q2,0\nb,q2,0.5\na,q2,1\n")
    with pytest.raises(ValueError, match=r"long.csv, line 3: the arm 'b' has a score of 'q2' already"):
        from_table(long, shared=True)
    long.write_text("name,value\nb,0\na,0.5\n")
    with pytest.raises(ValueError, match="a column 'item'"):
        from_table(long, shared=True)


@pytest.mark.filterwarnings("ignore:.*(rows have a score of every arm|count as the score)")
@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"distribution": "gaussian"}, "shared=True is a distribution of its own"),
        (
            {"support": (0.2, 0.5)},
            r"'arm 1': a measurement must be a number in \[0.2, 0.5\], got 0.808 of 'arm 1' on '0'",
        ),
        ({"support": (1, 0)}, "support must be"),
        ({"missing": "no", "shared": True}, "missing must be"),
        ({"shared": False, "missing": 0.0}, "missing is for shared=True"),
        ({"shared": 2}, "shared must be"),
    ],
)
def test_bad_tables_are_refused(given, text):
    x = SCORES.copy()
    x[0, 0] = np.nan
    with pytest.raises(ValueError, match=text):
        from_table(x, **{"shared": True, **given})


def test_the_command_line_takes_a_shared_table(tmp_path, capsys):
    from agents.cli import main

    place = tmp_path / "scores.csv"
    place.write_text("\n".join([",".join("abcd"), *(",".join(map(str, row)) for row in SCORES)]) + "\n")
    words = ["evaluate", "BestArm", "--data", str(place), "--shared", "--delta", "0.1", "--episodes", "20"]
    assert main([*words, "--epsilon", "0.05", "--agents", "paired-elimination"]) == 0
    assert "paired-elimination" in capsys.readouterr().out
    assert main(["evaluate", "BestArm", "--shared", "--delta", "0.1", "--agents", "uniform"]) != 0
    assert "--shared is of the table that --data names" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*(rows have a score of every arm|count as the score)")
def test_names_of_rows_are_found_and_no_row_vanishes(tmp_path):
    place = tmp_path / "scores.csv"
    for head in ("", "id", "item", "Question"):
        place.write_text(f"{head},A,B\n1,1,0\n2,0,1\n")
        assert from_table(place, shared=True).arm_names == ("A", "B")
    place.write_text("a,b\n , \n1,0\n , \n")
    assert from_table(place, shared=True).arms.items == 1
    assert from_table(place, shared=True, missing=0.0).arms.means.tolist() == [round(1 / 3, 12), 0.0]
    place.write_text("id,a,b\n7,1,0\n7,0,1\n")
    with pytest.raises(ValueError, match="has rows of the same name: '7'"):
        from_table(place, shared=True)
    with pytest.raises(ValueError, match="all scores are 5: say by support"):
        Shared(np.full((4, 2), 5.0))


@pytest.mark.parametrize("name", ["paired-elimination", "uniform(stop='certificate')", "ucb-e-lrf"])
@pytest.mark.parametrize(
    ("scores", "text"),
    [
        (None, "without scores"),
        (np.zeros((1, 4, 7)), r"scores must have the shape \(1, 4, 30\)"),
        (np.full((1, 4, 30), 7.0), r"scores must lie in the support \[0, 1\] of the arms, got 7"),
        (np.zeros((1, 4, 30), complex), "scores must be an array of numbers"),
    ],
)
def test_scores_that_no_table_shows_are_refused(name, scores, text):
    rule = {"budget": 90} if name == "ucb-e-lrf" else {"delta": 0.1}
    env = gym.make_vec(BEST, num_envs=1, instance=INSTANCE, actions="full", **rule)
    agent = agents.make(name, env)
    seen, _ = env.reset(seed=1)
    for arm in (0, 1, 2, 3):
        env.step({"arm": np.array([arm]), "times": np.array([2]), "answer": np.zeros((1, 4), np.int8)})
    seen = {**env.step({"arm": np.array([0]), "times": np.array([1]), "answer": np.zeros((1, 4), np.int8)})[0]}
    if scores is None:
        del seen["scores"]
    else:
        seen["scores"] = scores
    with pytest.raises(ValueError, match=text):
        agent.predict(seen)
