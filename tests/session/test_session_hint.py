"""Sessions with a hint: means of the same arms on other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refused

import agents

FACTS: dict[str, Any] = {"problem": "BestArm", "arms": ["a", "b", "c"], "items": 60, "range": (0, 1), "delta": 0.05}
MEANS = {"a": 0.8, "b": 0.5, "c": 0.3}
ORDER = ["b", "c", "a"]  # of the columns of the table


def answers(arm: str, item: int) -> float:
    return float((item * 37 % 60) / 60 < MEANS[arm])


@pytest.mark.parametrize("form", ["file", "frame", "dict", "list"])
def test_a_hint_in_any_form_is_kept(tmp_path: Path, form: str) -> None:
    """By names where it has names; it is in the store, and the same when the session goes on."""
    frame = pd.DataFrame({name: [MEANS[name], MEANS[name]] for name in ORDER})
    frame.to_csv(tmp_path / "old.csv", index=False)
    hint = {"file": tmp_path / "old.csv", "frame": frame, "dict": MEANS, "list": list(MEANS.values())}[form]
    store = tmp_path / "store.db"
    with agents.Session("paired-elimination", FACTS | {"hint": hint}, store=store) as session:
        assert session.task.hint == pytest.approx((0.8, 0.5, 0.3), rel=1e-12)
        session.run(answers)
        assert session.names[int(np.argmax(session.answer()))] == "a"
    with agents.Session(store=store) as again:
        assert again.task.hint == pytest.approx((0.8, 0.5, 0.3), rel=1e-12)


def test_lower_is_better(tmp_path: Path) -> None:
    """The hint is in the user's own sign, and turned with the values."""
    facts = FACTS | {"hint": {name: 1 - mean for name, mean in MEANS.items()}, "minimize": True}
    with agents.Session("paired-elimination", facts, store=tmp_path / "store.db") as session:
        assert session.task.hint == pytest.approx((0.2, 0.5, 0.7), rel=1e-12)
        assert session.agent.task.hint == pytest.approx((0.8, 0.5, 0.3), rel=1e-12)
        session.run(lambda arm, item: 1 - answers(arm, item))
        assert session.answer().tolist() == [True, False, False]


def test_hints_that_are_refused(tmp_path: Path) -> None:
    """Nothing is stored then."""
    for hint, words in {
        (0.5, 0.5): ("hint", 3),
        (0.5, 0.5, 2.0): ("hint", 0, 1),
        (0.5, 0.5, float("nan")): ("hint", "nan"),
        (0.5, 0.5, "x"): ("hint", "'x'"),
    }.items():
        with refused(*words):
            agents.Session("paired-elimination", FACTS | {"hint": list(hint)}, store=tmp_path / "store.db")
    with refused("the arm 'b'", "['a', 'c']"):
        agents.Session("paired-elimination", FACTS | {"hint": {"a": 0.1, "c": 0.2}}, store=tmp_path / "store.db")
    with refused("hint", "of a table"):
        agents.Session("evidence", {**FACTS, "items": None, "hint": MEANS}, store=tmp_path / "store.db")
    assert not (tmp_path / "store.db").exists()
