"""Sessions: what is exported and imported is the same, what failed counts nowhere, intervals agree with verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents

pytest.importorskip("sqlalchemy")
pandas: Any = pytest.importorskip("pandas")

PLAIN: dict[str, Any] = {"problem": "BestArm", "arms": ["a", "NA", "c"], "range": (0, 1), "delta": 0.1, "reserve": 0.2}
KINDS: dict[str, dict[str, Any]] = {
    "names": PLAIN,
    "numbers": {"problem": "Threshold", "threshold": 0.5, "arms": 4, "binary": True, "budget": 60},
    "items": {"problem": "TopK", "k": 1, "arms": 3, "items": 9, "range": (0, 1), "delta": 0.1},
    "named": {"problem": "BestArm", "arms": ["a", "b"], "items": ["1.0", "x y", "NA", *"abcdef"], "range": (-1, 1)},
    "dimensions": {"problem": "Feasible", "A": [[1, 1]], "b": [1], "arms": 3, "range": (0, 1), "dimensions": 2},
}
FACTS = {"problem": "BestArm", "arms": ["A", "B"], "items": 300, "range": (0, 1), "delta": 0.05, "epsilon": 0.02}


def lived(facts: dict[str, Any]) -> Any:
    """A session with all that may happen in one."""
    local = facts["problem"] in ("Threshold", "Feasible")
    shared = "paired-elimination" if "delta" in facts else "uniform"
    agent = shared if "items" in facts else "lsa" if local else "evidence"
    one, D = agents.Session(agent, facts, store="sqlite://", public_seed=5), facts.get("dimensions", 1)
    random = np.random.default_rng(1)

    def value() -> Any:
        drawn = random.integers(0, 2, D).astype(float)
        return float(drawn[0]) if D == 1 else drawn.tolist()

    for who in ("ann", None, "bob"):
        for ask in one.ask(2, who):
            one.tell(int(ask), value(), who, ask.item)
    one.note('a "remark",\nof two lines', "eve")
    one.undo()
    if not facts.get("items"):
        one.add_arm("late, too")
        columns = ["value"] if D == 1 else [f"value_{d}" for d in range(D)]
        rows = {"name": [one.names[0]] * 3, **dict.fromkeys(columns, [0.0, 1.0, 1.0])}
        one.tell_table(pandas.DataFrame(rows))
        one.withdraw_arm(one.names[1])
        one.tell_all([("late, too", value()), (one.names[2], value())])
    ask = one.ask(1, "zoe")[0]
    one._fail(ask.number, None, "zoe", "TimeoutError")
    one.ask(2, "ann")
    return one, agent


def facts_of(one: Any) -> Any:
    """All that can be seen of a session, but for the remark of the import."""
    history = one.history()
    history = history[~((history["kind"] == "note") & history["about"].notna())]
    seen = history.astype(str).to_dict("records"), one.arms().astype(str).to_dict("records")
    now = one.answer().tolist(), one.certificate, one.next(), one.pending, one.remaining, one.done
    return *seen, *now, one.active.tolist(), one.names


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_that_is_imported_is_the_same_session(kind: str, tmp_path: Path) -> None:
    """Through a CSV, also one that pandas has read and written; its twin lacks a column, and is caught."""
    one, agent = lived(KINDS[kind])
    history, path = one.history(), tmp_path / "x.csv"
    texts = dict.fromkeys(("name", "item", "who", "text"), str)

    def same(table: Any) -> bool:
        table.to_csv(path, index=False)
        other = agents.Session(agent, KINDS[kind], store="sqlite://", public_seed=5)
        try:
            other.tell_table(path)
        except ValueError:
            return False
        return bool(facts_of(other) == facts_of(one))

    assert same(history)
    assert same(pandas.read_csv(path, dtype=texts, keep_default_na=False, na_values={"value": ""}))
    for column in ("who", "text", "kind", "about"):
        assert not same(history.drop(columns=column))
    history.to_csv(path, index=False)
    with pytest.raises(ValueError, match="already|withdrawn") if "items" not in KINDS[kind] else open(path):
        one.tell_table(path)


@pytest.mark.parametrize("failed", ["skip", 0.0, None])
def test_a_failed_cell_is_marked_and_an_outage_ends_the_run(failed: Any) -> None:
    """B cannot be scored on a third of its rows."""
    calls: list[Any] = []

    def grade(arm: str, item: int) -> Any:
        calls.append((arm, item))
        if arm == "B" and item % 3 == 0:
            return (None, float("nan"))[item % 2]
        return 0.3 + 0.3 * (arm == "B") + 0.001 * (item % 100)

    one = agents.Session("paired-elimination", FACTS, store="sqlite://", public_seed=1)
    if failed is None:
        with pytest.raises(ValueError, match="there is no score, got") as raised:
            one.run(grade, retries=0)
        assert "measuring 'B' on the item" in raised.value.__notes__[0]
        assert one.pending[0].item % 3 == 0
        return
    with pytest.warns(UserWarning, match="of 'B' .* (could not be scored|count as scores)"):
        one.run(grade, retries=0, failed=failed)
    marked = one.history().query("kind == 'failed'")
    assert len(calls) == len(set(calls))
    assert set(marked["name"]) == {"B"}
    assert marked["value"].isna().all() if failed == "skip" else (marked["value"] == 0).all()
    assert (marked["item"] % 3 == 0).all()
    assert failed == 0.0 or not one.certificate or one.answer().tolist() == [False, True]
    mean = one.history().query("kind == 'told' and name == 'B'")["value"].mean()
    assert bool(one.arms()["mean"][1] == pytest.approx(mean)) is (failed == "skip")  # a number counts as a score
    before = len(marked)
    one.undo(int(marked["event"].iloc[-1]))
    assert (~one.history().query("kind == 'failed'")["undone"]).sum() == before - 1
    other = agents.Session("paired-elimination", FACTS, store="sqlite://", public_seed=1)
    with pytest.raises(RuntimeError, match="10 measurements in a row failed, the last by KeyError"):
        other.run(lambda arm, item: {}[arm], 3, retries=0, failed=failed)
    assert (len(other), other.certificate) == (0, 0.0)


@pytest.mark.parametrize(("sessions", "most"), [(10, 7), (30, 13)])
@pytest.mark.parametrize("items", [None, 200])
def test_intervals_agree_with_the_verdict_and_hold_at_any_time(items: int | None, sessions: int, most: int) -> None:
    """So many sessions at most ever have a wrong end: more of .1 are 1 in a million. A quarter as wide, more do."""
    outside = np.zeros(2)
    for seed in range(sessions):
        random = np.random.default_rng(seed)
        table = (random.random((200, 3)) < [0.1, 0.5, 0.8]).astype(float)
        facts = {"problem": "Threshold", "threshold": 0.3, "arms": 3, "range": (0, 1), "items": items, "delta": 0.05}
        one = agents.Session("paired-elimination" if items else "evidence", facts, store="sqlite://", public_seed=seed)
        truth, wrong = table.mean(axis=0) if items else np.array([0.1, 0.5, 0.8]), np.zeros(2, bool)
        draw = iter(random.random((5000, 3)) < truth)
        for _ in range(4):
            if one.done:
                break
            asks = one.ask(24)
            one.tell_all(
                [(int(a), table[a.item, a], a.item) if items else (int(a), float(next(draw)[a])) for a in asks]
            )
            arms = one.arms().dropna()
            for i, share in enumerate((1.0, 0.25)):
                low, high = (arms["mean"] + share * (arms[end] - arms["mean"]) for end in ("low", "high"))
                wrong[i] |= bool(((low > truth[arms.index] + 1e-9) | (high < truth[arms.index] - 1e-9)).any())
        outside += wrong
        if one.done:
            side = np.where(one.answer(), one.arms()["low"] >= 0.3, one.arms()["high"] <= 0.3)
            assert side.all()
    assert outside[0] <= most < outside[1]


@pytest.mark.parametrize("problem", ["BestArm", "TopK", "AllGood"])
def test_ties_with_the_answer_are_named(problem: str) -> None:
    facts = {"problem": problem, "arms": list("ABCD"), "binary": True, "budget": 8}
    facts |= {"k": 1} if problem == "TopK" else {}
    one = agents.Session("uniform", facts, store="sqlite://", public_seed=1)
    one.tell_all([(arm, 1.0) for arm in "ABCDABCD"])
    assert one.tied == ([] if problem == "AllGood" else [1, 2, 3])
    one.undo()
    one.tell("D", 0.0)
    assert one.tied == ([] if problem == "AllGood" else [1, 2])


def test_a_history_that_was_put_together_by_hand_is_imported_whole_or_refused(tmp_path: Path) -> None:
    one, agent = lived(KINDS["names"])
    twice = pandas.concat([one.history(), one.history()])
    for name, table, facts, said in (
        ("twice", twice, "names", "each once, got '1'"),
        ("none", one.history().assign(event=None), "names", "each once, got ''"),
        ("items", lived(KINDS["items"])[0].history(), "names", "no arm|no items"),
        ("dimensions", lived(KINDS["dimensions"])[0].history(), "numbers", "a measurement must be"),
    ):
        new = agents.Session(
            "uniform", KINDS[facts] | {"delta": None, "budget": 99}, store=f"sqlite:///{tmp_path}/{name}"
        )
        with pytest.raises(ValueError, match=said):
            new.tell_table(table)
        assert len(new) == 0


@pytest.mark.filterwarnings("ignore")
def test_results_that_do_not_vary_exclude_nothing_of_student() -> None:
    facts = {"problem": "BestArm", "arms": 3, "sigma": 1, "delta": 0.05}
    one = agents.Session("evidence(distribution='student')", facts, store="sqlite://")
    one.tell_all([(arm, float(arm)) for arm in range(3) for _ in range(20)])
    assert one.certificate == 0
    assert np.isinf(one.arms()[["low", "high"]].to_numpy()).all()
