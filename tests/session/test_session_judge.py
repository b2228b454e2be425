"""Sessions of tables with a judge's scores of the same cells: by hand, in other units and orders, and what is refused.

What may be wrong with probability delta at most is counted over all orders of small tables, exactly.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import twins_paired as twins
from refusals import refused

import agents
from agents.cli import main
from agents.session.setup import Setup
from bandit_envs import BestArm

pytest.importorskip("sqlalchemy")

X = {"a": [1.0, 1, 0, 1, 1, 0], "b": [0.0, 1, 0, 0, 1, 0]}
H = {"a": [1.0, 1, 0, 1, 0, 0], "b": [0.0, 0.75, 0.5, 0, 1, 0]}  # means 1/2 and 3/8
Z = {"a": [0.75, 0.75, 0.25, 0.75, 1.25, 0.25], "b": [0.1875, 0.8125, -0.0625, 0.1875, 0.6875, 0.1875]}  # by hand
ENDS = (-0.3125, 1.25)  # 0 less what is taken off b at 1, 1 with what a at 0 gets
FACTS: dict[str, Any] = {"problem": "BestArm", "arms": ["a", "b"], "items": 6, "range": (0, 1), "delta": 0.5}
JUDGE = pd.DataFrame(H)


def session(store: Any = ":memory:", agent: str = "paired-elimination", **facts: Any) -> agents.Session:
    return agents.Session(agent, {**FACTS, "judge": JUDGE, **facts}, store=store, public_seed=3)


def told(one: agents.Session, table: Any) -> list[float | None]:
    """The certificate after each cell, row by row in the session's order."""
    found = []
    for row in one._state.order.tolist():
        for arm in one.names:
            one.tell(arm, table[arm][row], item=row)
            found.append(one.certificate)
    return found


def test_the_certificate_is_that_of_scores_corrected_by_hand() -> None:
    """To the last bit, after each cell; what is shown are the scores themselves."""
    with session() as one, session(judge=None, range=ENDS, hint=[0.5, 0.375]) as other:
        found = told(one, X)
        assert found == told(other, Z)
        assert len(set(found)) > 2
        assert one.arms()["mean"].tolist() == [4 / 6, 2 / 6]
        assert one.history()["value"].tolist() == [X[arm][row] for row in one._state.order.tolist() for arm in "ab"]


@pytest.mark.parametrize("agent", ["paired-elimination", "uniform(stop='certificate')"])
@pytest.mark.parametrize(
    "asked",
    [
        {"problem": "BestArm"},
        {"problem": "BestArm", "epsilon": 0.25, "hint": [0.5, 0.25]},
        {"problem": "BestArm", "epsilon": 0.25, "cost": [1, 3]},
        {"problem": "TopK", "k": 1},
        {"problem": "AllGood", "epsilon": 0.25},
        {"problem": "AllGood", "epsilon": 0.25, "multiplicative": True},
        {"problem": "Threshold", "threshold": 0.5, "tolerance": 0.1},
    ],
    ids=str,
)
def test_the_certificate_is_that_of_corrected_scores(asked: Any, agent: str) -> None:
    """To the last bit, after each cell of 64 rows, whatever is asked; all numbers are exact in binary."""
    g = np.random.default_rng(1)
    x = (g.random((64, 2)) < (0.9, 0.2)) * 1.0
    judge = np.where(g.random((64, 2)) < 0.8, x, g.integers(0, 9, (64, 2)) / 8)
    off = (judge - judge.mean(axis=0)) / 2
    facts: Any = {"items": 64, "delta": 0.05} | asked
    ends, hint = (-off.max(), 1 - off.min()), {"hint": judge.mean(axis=0).tolist()}
    hint = hint if "hint" not in asked and asked["problem"] in ("BestArm", "TopK") else {}
    given = pd.DataFrame(judge, columns=["a", "b"])
    with (
        session(agent=agent, **facts | {"judge": given}) as one,
        session(agent=agent, **facts | {"judge": None, "range": ends} | hint) as other,
    ):
        found = told(one, pd.DataFrame(x, columns=["a", "b"]))
        assert found == told(other, pd.DataFrame(x - off, columns=["a", "b"]))
        assert len(set(found)) > 4
        assert one.done
        assert one.answer().tolist() == other.answer().tolist() == [True, False]


def test_intervals_and_the_end_are_of_the_scores_themselves() -> None:
    """A mean that is the threshold itself is above it, though the range is wider."""
    column = [0.3, 0.4, 0.2, 0.3, 0.1, 0.5]
    facts: Any = {"problem": "Threshold", "threshold": 0.3, "judge_slope": 0.7}
    with session(**facts) as one, session(problem="Threshold", threshold=0.3, judge=None) as plain:
        for row in one._state.order[:4].tolist():
            for each in (one, plain):
                each.tell_all([(arm, X[arm][row], row) for arm in "ab"])
        assert one.arms()[["low", "high"]].values.tolist() == plain.arms()[["low", "high"]].values.tolist()
    with session(**facts) as one:
        told(one, {"a": column, "b": X["b"]})
        assert one.done
        assert one.answer().tolist() == [True, True]


@pytest.mark.parametrize("unit", [64.0, 1000.0])
def test_other_units_change_nothing(unit: float) -> None:
    scaled: Any = {"range": (0, unit), "judge": JUDGE * unit, "epsilon": 0.25 * unit}
    with session(epsilon=0.25) as one, session(**scaled) as other:
        found = told(one, X)
        assert told(other, pd.DataFrame(X) * unit) == pytest.approx(found, rel=1e-9)
        assert one.task.hint == (0.5, 0.375)
        assert other.task.hint == (0.5 * unit, 0.375 * unit)


def test_lower_is_better() -> None:
    """It is the session of mirrored scores and a mirrored judge."""
    with session(epsilon=0.25) as one, session(epsilon=0.25, minimize=True, judge=1 - JUDGE) as other:
        assert told(other, 1 - pd.DataFrame(X)) == pytest.approx(told(one, X), rel=1e-12)
        assert one.answer().tolist() == other.answer().tolist() == [True, False]
        assert other.task.hint == (0.5, 0.625)
        assert other.arms()["mean"].tolist() == pytest.approx([2 / 6, 4 / 6])


def test_a_judge_in_any_form_and_order(tmp_path: Path) -> None:
    """Cells go by the names of arms and items."""
    items = [f"q{n}" for n in range(6)]
    frame = JUDGE.set_axis(items).rename_axis("id")
    frame.iloc[::-1, ::-1].to_csv(tmp_path / "wide.csv")
    long = frame.reset_index().melt(id_vars="id", var_name="arm").rename(columns={"id": "item"})
    facts = {**FACTS, "items": items}
    wanted = Setup.of("paired-elimination", {**FACTS, "judge": JUDGE}, None, 0)
    assert wanted.judged == {"judge": [*H.values()], "judge_slope": 0.5}
    assert np.abs(wanted.taken_off).max() == 0.3125
    for judge in (frame, frame.sample(frac=1, random_state=0), long, str(tmp_path / "wide.csv")):
        made = Setup.of("paired-elimination", {**facts, "judge": judge}, None, 0)
        assert made.judged == wanted.judged
        assert made.task.hint == wanted.task.hint
    with session() as one, session(arms=["b", "a"]) as other:
        found = told(one, X)
        other.tell_all([(arm, X[arm][row], row) for row in one._state.order.tolist() for arm in "ab"])
        assert other.certificate == found[-1]
        assert other.answer().tolist() == one.answer().tolist()[::-1]


def test_it_is_kept(tmp_path: Path) -> None:
    """In the store, in a copy of it, and with the same facts for an export."""
    with session(tmp_path / "a.db", judge_slope=0.25, epsilon=0.25) as one:
        for row in one._state.order[:3].tolist():
            one.tell_all([(arm, X[arm][row], row) for arm in "ab"])
        known, history = one.certificate, one.history()
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    history.to_csv(tmp_path / "history.csv", index=False)
    for store in ("a.db", "b.db"):
        with agents.Session(store=tmp_path / store) as again:
            assert again.certificate == known
            assert again._state.setup.judged == {"judge": [*H.values()], "judge_slope": 0.25}
    with session(tmp_path / "c.db", judge_slope=0.25, epsilon=0.25) as other:
        other.tell_table(tmp_path / "history.csv")
        assert other.certificate == known
    with session(tmp_path / "a.db", judge_slope=0.25, epsilon=0.25) as same:
        assert same.certificate == known
    for changed in ({"judge": JUDGE.assign(b=0.5)}, {"judge": None}):
        with refused("another session", "judge is"):
            session(tmp_path / "a.db", judge_slope=None, epsilon=0.25, **changed)
    with refused("another session", "judge_slope is 0.25 there, 0.5 asked for"):
        session(tmp_path / "a.db", epsilon=0.25)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("judge", [[1.0]], "2 arms, 6 items"),
        ("judge", [[1.0] * 6, [None] * 6], "2 arms, 6 items"),
        ("judge", [["x"] * 6] * 2, "damaged"),
        ("judge_slope", None, "judge_slope"),
        ("judge_slope", -1, "damaged"),
        ("judge_slope", [0.5], "damaged"),
        ("judge", None, "format"),
    ],
)
def test_a_store_without_its_judge_is_refused(tmp_path: Path, name: str, value: Any, words: str) -> None:
    session(tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as database:
        facts = json.loads(database.execute("select facts from session").fetchone()[0])
        facts = facts | {name: value} if value else {one: facts[one] for one in facts if one != name}
        facts = {one: facts[one] for one in facts if words != "format" or one != "judge_slope"}
        database.execute("update session set facts = ?", [json.dumps(facts)])
    with refused(words):
        agents.Session(store=tmp_path / "a.db")


NAN, INF = JUDGE.copy(), JUDGE.copy()
NAN.loc[4, "b"], INF.loc[4, "b"] = math.nan, math.inf


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"items": None}, ("judge", "items")),
        ({"items": None, "blocks": "day"}, ("judge", "blocks")),
        ({"problem": "Feasible", "A": [[1, 0]], "b": [0.5]}, ("judge", "D = 2")),
        ({"judge": JUDGE[["a"]]}, ("judge", "'b'", "'0'")),
        ({"judge": JUDGE[:5]}, ("judge", "'a'", "'5'")),
        ({"judge": pd.concat([JUDGE, JUDGE[:1]], ignore_index=True)}, ("item of the judge", "'6'")),
        ({"judge": pd.concat([JUDGE, JUDGE[:1]])}, ("judge", "several scores", "'a'", "'0'")),
        ({"judge": JUDGE.assign(doc_id=[3, 1, 2, 0, 5, 4])}, ("the judge", "'doc_id' may number the rows")),
        ({"judge": JUDGE * 10}, ("the unit", "from 0 to 1", "10.0", "'a'", "'0'")),
        ({"judge": JUDGE - 0.25}, ("the unit", "-0.25", "'a'", "'2'")),
        ({"judge": NAN}, ("judge", "'b'", "'4'")),
        ({"judge": INF}, ("judge", "column 'b'", "inf")),
        ({"judge": JUDGE * 1e200}, ("judge", "1e+200")),
        ({"judge": "none.csv"}, ("none.csv",)),
        ({"items": [f"q{n}" for n in range(6)]}, ("item of the judge", "'0'", "q0")),
        ({"judge_slope": 0}, ("judge_slope", "0")),
        ({"judge_slope": 1.5}, ("judge_slope", "1.5")),
        ({"judge": None, "judge_slope": 0.5}, ("judge_slope", "no")),
    ],
    ids=str,
)
def test_judges_that_are_refused(tmp_path: Path, facts: Any, words: tuple[str, ...]) -> None:
    """Nothing is stored then."""
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        session(tmp_path / "store.db", **facts)
    assert all(word in str(error.value) for word in words), error.value
    assert not (tmp_path / "store.db").exists()


def test_a_table_of_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match="judge"):
        session(judge=0.5)


def test_an_agent_that_is_made_for_another_task_is_refused() -> None:
    task = session(judge=None).task
    with refused("judge", "the task that it is given"):
        agents.Session(lambda _: agents.make("paired-elimination", task), {**FACTS, "judge": JUDGE}, store=":memory:")


def test_a_range_in_a_list_is_that_range() -> None:
    with session() as one, session(range=[(0, 1)]) as other:
        assert told(other, X) == told(one, X)
    turned: Any = {"range": (2, 5), "minimize": True, "judge": JUDGE + 2}
    with session(**turned) as one, session(**turned | {"range": [(2, 5)]}) as other:
        assert told(other, pd.DataFrame(X) + 2) == told(one, pd.DataFrame(X) + 2)


@pytest.mark.parametrize("place", [-1e9, 1e12 / 7])
def test_a_judge_far_from_0_leaves_means_as_they_are(place: float) -> None:
    """What is taken off has the mean 0, though the mean of such scores is rounded."""
    facts = {**FACTS, "judge": JUDGE + place, "range": (place, place + 1)}
    off = Setup.of("paired-elimination", facts, None, 0).taken_off
    assert off is not None
    assert np.abs(off.mean(axis=1)).max() < 1e-15


def test_no_cell_is_left_without_a_score(tmp_path: Path) -> None:
    """Neither by a run nor by an export; a number in its place is a score as any other."""

    def fails(arm: str, item: int) -> float:
        raise OSError

    with session() as one:
        with refused("failed='skip'", "judge"):
            one.run(fails, failed="skip")
        assert len(one) == len(one.history()) == 0
    with session(tmp_path / "a.db", judge=None) as plain:
        with pytest.warns(UserWarning, match="could not be scored"):
            plain.run(lambda arm, item: math.nan if item < 2 else X[arm][item], failed="skip", retries=0)
        history = plain.history()
    with session() as one, pytest.raises(ValueError, match=r"failed='skip'"):
        one.tell_table(history)
    with session() as one:
        with pytest.warns(UserWarning, match="count as scores"):
            one.run(lambda arm, item: math.nan if arm == "b" else X[arm][item], failed=0.0, retries=0)
        assert one.done
        assert one.answer().tolist() == [True, False]


def test_a_good_judge_saves_cells() -> None:
    """And its means are the hint, where none is given; one that says nothing of the rows is worth that alone."""
    g, names = np.random.default_rng(0), list("abcde")
    x = (g.random((400, 5)) < np.linspace(0.3, 0.6, 5)) * 1.0
    near = np.where(g.random(x.shape) < 0.95, x, 1 - x)
    facts: Any = {"arms": names, "items": 400, "epsilon": 0.02, "delta": 0.05}
    cells = []
    for judge in (None, pd.DataFrame(near, columns=names)):
        with session(**facts, judge=judge) as one:
            one.run(lambda arm, item: x[item, names.index(arm)])
            assert one.answer().tolist() == [False] * 4 + [True]
            cells.append(len(one))
    assert one.task.hint == pytest.approx(near.mean(axis=0), rel=1e-12)
    assert cells[1] < 0.75 * cells[0]


def test_agents_with_a_budget_go_by_the_scores_themselves() -> None:
    """UCB-E reads means; what is certified of its answer is by the judge."""
    found = []
    for judge in (JUDGE, None):
        with session(agent="ucb-e", judge=judge, delta=None, budget=9) as one:
            one.run(lambda arm, item: X[arm][item])
            found.append((one.history()[["arm", "item"]].dropna().values.tolist(), one.answer().tolist()))
    assert found[0] == found[1]


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    JUDGE.to_csv(tmp_path / "judge.csv", index_label="id")
    new = ["session", "new", str(tmp_path / "a.db"), "--problem", "BestArm", "--arms", "a", "b", "--items", "6"]
    new += ["--range", "0", "1", "--delta", "0.5", "--judge", str(tmp_path / "judge.csv"), "--judge-slope", "0.25"]
    assert main(new) == 0, capsys.readouterr()
    with agents.Session(store=tmp_path / "a.db") as one:
        assert one._state.setup.judged == {"judge": [*H.values()], "judge_slope": 0.25}


# --- all orders of small tables ---------------------------------------------------------------------------------------


def corrected(x: Any, judge: Any, slope: float, epsilon: float, delta: float) -> tuple[Any, Any]:
    """The scores that the certificate is given, as a session has them, and the task of the agent."""
    N, K = x.shape
    facts = {"problem": "BestArm", "epsilon": epsilon, "arms": K, "items": N, "range": (0, 1), "delta": delta}
    facts |= {"judge": pd.DataFrame(judge, columns=[str(k) for k in range(K)]), "judge_slope": slope}
    setup = Setup.of("paired-elimination", facts, None, 0)
    _, task, _ = setup.made_for(dict(zip(range(K), range(K), strict=True)), np.zeros(K, np.int64))
    assert setup.taken_off is not None
    return x - setup.taken_off.T, task


def judged(seed: int) -> tuple[Any, Any, float]:
    """A small table, a judge that is right, wrong, knows nothing, or likes an arm, and a slope."""
    g = np.random.default_rng(seed)
    x = g.integers(0, 3, (5, 3)) / 2 if seed % 2 else (g.random((5, 3)) < (0.3, 0.5, 0.6)) * 1.0
    judge = [x, 1 - x, g.random((5, 3)), g.integers(0, 2, (5, 3)) * 1.0, (x + np.arange(3)) / 3][seed % 5]
    return x, judge, (0.5, 1.0, 0.2)[seed % 3]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.2), (0.25, 0.5), (0.0, 0.3)])
def test_no_more_orders_than_delta_end_wrongly(epsilon: float, delta: float) -> None:
    """Whatever judge there is; far more do where its means are taken off too, and it likes the best arm alone."""
    orders, most = np.array([*itertools.permutations(range(5))]), {True: 0.0, False: 0.0}
    certified = 0
    for seed, honest in itertools.product(range(30), (True, False)):
        x, judge, slope = judged(seed)
        z, task = corrected(x, judge, slope, epsilon, delta)
        if not honest:
            z = x - (np.arange(3) == x.mean(axis=0).argmax())
            task = task.replace(support=(-1.0, 1.0), hint=None)
        wrong, ended = x.mean(axis=0) < x.mean(axis=0).max() - epsilon - 1e-12, np.zeros(len(orders), np.bool_)
        certifier = task.certifier()
        for n in range(1, 5):
            pulls, shown = np.full((len(orders), 3), n), z[orders].transpose(0, 2, 1)
            inside, means = np.full((len(orders), 3), -1, np.int8), x[orders][:, :n].mean(axis=1)
            sure = certifier.levels(pulls, means, means, inside, np.ascontiguousarray(shown)) <= delta
            certified += int(sure.sum()) if honest else 0
            ended |= sure & (inside @ wrong > 0)
        most[honest] = max(most[honest], ended.mean())
    assert most[True] <= delta < most[False]
    assert certified > 0


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_no_capital_against_the_best_grows_on_average(epsilon: float) -> None:
    """Over all orders of 4 rows, after each row, by the certificate in plain Python."""
    for seed in range(10):
        x, judge, slope = judged(seed)
        x, judge = x[:4], judge[:4]
        z, task = corrected(x, judge, slope, epsilon, 1e-9)
        low, high = task.support or (0.0, 1.0)
        scaled, best = (z - low) / (high - low), int(x.mean(axis=0).argmax())
        assert 0 <= scaled.min() <= scaled.max() <= 1
        orders = itertools.permutations(range(4))
        capitals = [twins.histories(scaled[[*order]], epsilon / (high - low), 1e-9)[0][:, best] for order in orders]
        assert np.mean(capitals, axis=0).max() <= 1 + 1e-9
        assert BestArm(epsilon).truth(x.mean(axis=0))[best]
