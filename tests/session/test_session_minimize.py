"""A lower value that is better: a session is the mirror image of one on mirrored values, and speaks the user's sign."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import agents
from agents.cli import main
from agents.session.page import state

ARMS = ["A", "B", "C", "D"]
MEANS = np.array([6.0, 3.0, 8.0, 5.5])
Facts = dict[str, Any]
RANGE: Facts = {"range": (0, 10)}
TURNED: Facts = {"range": (-10, 0)}
UNIT: Facts = {"range": (0, 1)}
# The agent, the facts, those of the mirror image, how values are mirrored, and how they are made of numbers in [0, 10].
CASES: dict[str, tuple[str, Facts, Facts, Any, Any]] = {
    "best arm": ("evidence", {"problem": "BestArm"} | RANGE, TURNED, lambda y: -y, float),
    "epsilon": ("kl-lucb", {"problem": "BestArm", "epsilon": 0.1} | UNIT, UNIT, lambda y: 1 - y, lambda y: y / 16),
    "a scale": ("evidence", {"problem": "BestArm", "sigma": 2.0}, {}, lambda y: -y, lambda y: 1000 + y),
    "range and scale": ("evidence", {"problem": "BestArm", "sigma": 1.0} | RANGE, TURNED, lambda y: -y, float),
    "student": ("evidence(distribution='student')", {"problem": "TopK", "k": 2, "sigma": 1}, {}, lambda y: -y, float),
    "top 2": ("evidence", {"problem": "TopK", "k": 2} | RANGE, TURNED, lambda y: -y, float),
    "a budget": (
        "top-two",
        {"problem": "TopK", "k": 2, "delta": None, "budget": 60} | RANGE,
        TURNED,
        lambda y: -y,
        float,
    ),
    "rounds": (
        "sar",
        {"problem": "Threshold", "threshold": 5.0, "delta": None, "budget": 60} | RANGE,
        TURNED | {"threshold": -5.0},
        lambda y: -y,
        float,
    ),
    "all good": ("evidence", {"problem": "AllGood", "epsilon": 1.0} | RANGE, TURNED, lambda y: -y, float),
    "threshold": (
        "evidence",
        {"problem": "Threshold", "threshold": 5.0} | RANGE,
        TURNED | {"threshold": -5.0},
        lambda y: -y,
        float,
    ),
    "binary": (
        "evidence",
        {"problem": "Threshold", "threshold": 0.25, "binary": True},
        {"threshold": 0.75},
        lambda y: 1 - y,
        lambda y: float(y > 5.5),
    ),
    "a table": (
        "paired-elimination",
        {"problem": "BestArm", "items": 40, "epsilon": 0.1} | UNIT,
        {},
        lambda y: 1 - y,
        lambda y: y / 16,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_mirror_image_pull_by_pull(name: str, tmp_path: Path) -> None:
    agent, own, other, mirrored, made = CASES[name]
    facts: Facts = {"arms": ARMS, "delta": 0.1} | own
    rng = np.random.default_rng(5)
    low = agents.Session(agent, facts | {"minimize": True}, store=tmp_path / "low.db", public_seed=3)
    high = agents.Session(agent, facts | other, store=":memory:", public_seed=3)
    support = low.task.support
    assert support is None or list(support) == sorted(own.get("range", (0, 1)))
    assert low.task.parameters.get("threshold") == own.get("threshold")
    for n in range(32):
        if low.done:
            break
        asked, same = low.ask(2), high.ask(2)
        assert [(int(one), one.item) for one in asked] == [(int(one), one.item) for one in same]
        for one, twin in reversed(list(zip(asked, same, strict=True))):  # the second result comes first
            value = made(float(np.clip(MEANS[one] + rng.normal(), 0, 10)))
            low.tell(one, value)
            high.tell(twin, mirrored(value))
        if n == 5:
            low.undo()
            high.undo()
        if n < 10 or n % 10 == 0:
            alike(low, high, mirrored)
        if n == 7:  # opened again, by its store alone and by its facts
            low.close()
            low = agents.Session(store=tmp_path / "low.db")
            alike(low, high, mirrored)
            agents.Session(agent, facts | {"minimize": True}, store=tmp_path / "low.db").close()
            with refused("minimize"):
                agents.Session(agent, facts, store=tmp_path / "low.db")
    alike(low, high, mirrored)
    assert len(low) > 15
    assert not low.doubts or "sigma" in low.doubts[0]


def alike(low: agents.Session, high: agents.Session, mirrored: Any) -> None:
    """The same decisions and certainty; means, intervals and the boundary are mirrored."""
    one, other = low.arms(), high.arms()
    for name in ("name", "pulls", "answer", "pending", "withdrawn", "failed"):
        assert one[name].tolist() == other[name].tolist()
    for name, mirror in (("mean", "mean"), ("low", "high"), ("high", "low")):
        np.testing.assert_allclose(one[name], mirrored(other[mirror].to_numpy()), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(one["sd"], other["sd"])
    assert low.certificate == high.certificate
    assert (low.done, low.remaining, low.tied, low.next()) == (high.done, high.remaining, high.tied, high.next())
    np.testing.assert_array_equal(low.unsure(), high.unsure())
    assert (low.boundary is None) == (high.boundary is None)
    if low.boundary is not None and high.boundary is not None:
        assert low.boundary == pytest.approx(mirrored(high.boundary), rel=1e-12)


FACTS: Facts = {"problem": "Threshold", "threshold": 5.0, "range": (0, 10), "arms": ARMS, "delta": 0.1, "reserve": 0.3}
VALUES = [("A", 9.0), ("B", 1.5), ("C", 0.0), ("D", 10.0), ("B", 2.5)]


def test_all_that_is_shown_has_the_sign_of_the_user(tmp_path: Path) -> None:
    session = agents.Session("evidence", FACTS | {"minimize": True}, store=tmp_path / "a.db")
    session.tell_all(VALUES)
    assert session.asks == "all arms with mean at most a threshold, where a lower value is better"
    assert session.arms()["mean"].tolist() == [9.0, 2.0, 0.0, 10.0]
    assert session.answer().tolist() == [False, True, True, False]
    assert session.history()["value"].tolist() == [value for _, value in VALUES]
    assert session.boundary == 5.0
    with refused("[0, 10]", "-1"):
        session.tell("A", -1.0)
    shown = state(session)
    assert (shown["support"], shown["parameters"]["threshold"], shown["boundary"]) == ((0, 10), 5.0, 5.0)
    assert [arm["mean"] for arm in shown["arms"]] == [9.0, 2.0, 0.0, 10.0]
    assert all(0 <= arm["low"] <= arm["mean"] <= arm["high"] <= 10 for arm in shown["arms"])
    session.add_arm("E")
    session.withdraw_arm("D")
    session.tell("E", 1.0)
    assert session.arms()["mean"].tolist() == [9.0, 2.0, 0.0, 10.0, 1.0]
    assert session.answer().tolist() == [False, True, True, False, True]
    session.history().to_csv(tmp_path / "a.csv", index=False)
    again = agents.Session("evidence", FACTS | {"minimize": True}, store=":memory:", public_seed=1)
    again.tell_table(tmp_path / "a.csv")
    assert again.arms().equals(session.arms())
    assert again.certificate == session.certificate


def test_a_function_measures_in_the_sign_of_the_user() -> None:
    facts = {"problem": "BestArm", "arms": ARMS, "items": 30, "range": (0, 1), "delta": 0.1, "minimize": True}
    session = agents.Session("paired-elimination", facts, store=":memory:")
    session.run(lambda arm, item: 0.1 * ARMS.index(arm) + 0.02 * (item % 5))
    assert session.answer().tolist() == [True, False, False, False]
    means = session.arms()["mean"]
    assert means[0] == pytest.approx(0.04, abs=0.03)  # of the rows that it has been asked for
    session = agents.Session("uniform", FACTS | {"minimize": True, "budget": 8}, store=":memory:")
    session.run(lambda arm: float(MEANS[ARMS.index(arm)]))
    assert session.arms()["mean"].tolist() == MEANS.tolist()


def test_what_cannot_be_mirrored_is_refused(tmp_path: Path) -> None:
    more = {"range": (0, 10), "delta": 0.1, "arms": ARMS}
    for facts in (
        {"problem": "Feasible", "A": [[1.0]], "b": [5.0]},
        {"problem": "Feasible", "A": [[1.0, 1.0]], "b": [5.0], "dimensions": 2},
        {"problem": "AllGood", "epsilon": 0.1, "multiplicative": True},
    ):
        with refused("minimize", facts["problem"]):
            agents.Session("uniform", facts | more | {"minimize": True}, store=tmp_path / "no.db")
    with refused("minimize", "'yes'"):
        agents.Session("uniform", {"problem": "BestArm", "minimize": "yes"} | more, store=":memory:")
    for given in (None, False):
        with agents.Session("evidence", {"problem": "BestArm", "minimize": given} | more, store=":memory:") as session:
            assert "lower" not in session.asks


def test_sentences_have_the_sign_of_the_user() -> None:
    facts: Facts = {"problem": "Threshold", "arms": ARMS, "range": (2, 10), "delta": 0.1, "minimize": True}
    with pytest.warns(UserWarning, match=r"right with threshold=10.0, tolerance=0.0 for all means from 2 to 10"):
        agents.Session("evidence", facts | {"threshold": 10.0, "tolerance": 0.0}, store=":memory:").close()
    facts = {"problem": "BestArm", "arms": ARMS, "sigma": 1.0, "delta": 0.1, "minimize": True}
    session = agents.Session("evidence(distribution='student')", facts, store=":memory:")
    with pytest.warns(UserWarning, match=r"never repeat: \[2.5\] was measured twice"):
        session.tell_all([("A", 2.5), ("A", 2.5)])


def test_earlier_versions_refuse_the_store_and_damage_is_seen(tmp_path: Path) -> None:
    """They know the formats 1 and 2, and would take the highest mean."""
    agents.Session("evidence", FACTS | {"minimize": True}, store=tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as base:
        kept = json.loads(base.execute("select facts from session").fetchone()[0])
        assert kept["format"] == 12
        assert kept["minimize"] is True
        assert json.loads(kept["task"])["support"] == [0, 10]
        del kept["minimize"]
        base.execute("update session set facts = ?", (json.dumps(kept),))
    with refused("format"):
        agents.Session(store=tmp_path / "a.db")


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    new = "session new a.db --problem Threshold --threshold 5 --arms A B C --range 0 10 --delta 0.1 --minimize"
    assert main(new.split()) == 0
    text = "Which of the 3 arms have a mean of 5 or less?"
    assert text in capsys.readouterr().out
    Path("t.csv").write_text("A;B;C\n9;1,5;4\n8;2,5;6\n")
    assert main(["session", "import", "a.db", "t.csv"]) == 0
    assert "answer: B, C" in capsys.readouterr().out
    assert main(["session", "show", "a.db"]) == 0
    shown = capsys.readouterr().out
    assert text in shown
    assert "measurements from 0 to 10" in shown
    assert "8.5" in shown
    assert main(["session", "undo", "a.db"]) == 0
    assert "the result 6 of C" in capsys.readouterr().out
    assert main(["session", "export", "a.db"]) == 0
    assert ",B,1.5," in capsys.readouterr().out
