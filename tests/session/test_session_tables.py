"""Sessions of tables: questions of a candidate and an item, results in any order, and a function that measures."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import numpy as np
import pytest
from disks import sql
from grading import check_kills, score

import agents
from agents.session.log import Log
from bandit_envs import from_table

pytest.importorskip("sqlalchemy")

FACTS: dict[str, Any] = {"problem": "BestArm", "arms": ["a", "b", "c", "d"], "range": (0, 1), "delta": 0.1}
N = 40
HANG = 600.0  # seconds that only what hangs takes
TABLE = np.array([[score(3 * k, n) for k in range(4)] for n in range(N)])
BEST = int(TABLE.mean(axis=0).argmax())


def session(store: Any = ":memory:", **changes: Any) -> agents.Session:
    """A new session of four candidates and forty items."""
    facts = {**FACTS, "items": N, **changes}
    return agents.Session("paired-elimination", facts, store=store)


def measure(arm: str, item: int) -> float:
    return float(TABLE[item, "abcd".index(arm)])


def test_questions_have_an_item_and_no_cell_is_asked_for_twice():
    with session() as one:
        first, more = one.ask(20), one.ask(11)
        cells = [(question.arm, question.item) for question in first + more]
        assert len(set(cells)) == 31
        assert [int(question) for question in first] == [0, 1, 2, 3] * 5  # row by row
        assert [(ask.arm, ask.item) for ask in one.pending] == cells
        assert one.pending[0] == (1, 0, None)  # as a tuple what it has always been


def test_intervals_are_as_wide_as_what_is_left_of_the_table_allows():
    with session() as one:
        rows = one._state.order[:30].tolist()  # those of the first places: later ones wait for them
        one.tell_all([(arm, measure(arm, item), item) for arm in "abcd" for item in rows])
        shown = one.arms()
    width, left = (shown["high"] - shown["low"]).to_numpy(), np.sqrt((1 - 29 / 40) / 30)
    assert (width < np.sqrt(2 * np.log(40)) * left).all()  # Serfling 1974, of scores that vary as much as they can
    assert (width > 2 * 1.96 * shown["sd"] * left).all()  # at one time; an interval for all times is wider


def test_a_row_that_is_called_by_a_number_is_found_by_its_name():
    import pandas as pd

    with session(items=["3", "1", "2"]) as one:
        one.tell_table(pd.DataFrame({"a": [0.25, 0.5], "b": [0.75, 1.0]}, index=[1.0, 2.0]))
        told = one.history().query("kind == 'told'").sort_values(["arm", "item"])
        cells = [[0, "1", 0.25], [0, "2", 0.5], [1, "1", 0.75], [1, "2", 1]]
        assert told[["arm", "item", "value"]].values.tolist() == cells


def test_results_in_any_order_lead_to_the_same_state():
    shuffled = random.Random(1)
    with (
        session() as one,
        agents.Session("paired-elimination", {**FACTS, "items": N}, store=":memory:", public_seed=5) as two,
        agents.Session("paired-elimination", {**FACTS, "items": N}, store=":memory:", public_seed=5) as three,
    ):
        assert len({tuple(x.item for x in s.ask(16)) for s in (two, three)}) == 1
        assert one.ask(16)[0].item is not None
        questions = [(ask.arm, ask.item) for ask in two.pending]
        for arm, item in questions:
            two.tell(arm, TABLE[item, arm], item=item)
        for arm, item in shuffled.sample(questions, len(questions)):
            three.tell(arm, TABLE[item, arm], item=item)
        assert two.certificate == three.certificate
        assert two.ask(8) == three.ask(8)
        for name in ("pulls", "mean", "sd", "low", "high"):
            assert two.arms()[name].tolist() == pytest.approx(three.arms()[name].tolist(), rel=1e-12)


def test_a_result_without_an_item_answers_the_oldest_question():
    with session() as one:
        with pytest.raises(ValueError, match="which item is the result of the arm 'b' of"):
            one.tell("b", 0.5)
        items = [question.item for question in one.ask(8) if question.arm == 1]
        one.tell("b", 0.5)
        one.tell("b", 0.25)
        told = one.history()
        assert told[told["kind"] == "told"]["item"].tolist() == items


def test_a_question_that_is_never_answered_holds_up_its_arm_but_is_not_asked_around_for_ever():
    with session() as one:
        lost = one.ask(1, "somebody")[0]
        with pytest.warns(UserWarning, match="others are asked for are awaited, 1, of somebody"):
            count = one.run(measure, 2, take_over=None)
        assert not one.done
        assert [(ask.arm, ask.item) for ask in one.pending] == [(lost.arm, lost.item)]
        assert count < 4 * 36  # 32 rows ahead, and one for each question that waits
        one.tell(lost.arm, measure("abcd"[lost.arm], lost.item), "somebody")
        one.run(measure, 2)
        assert one.done
        assert one.answer()[BEST]


def test_a_run_goes_on_where_the_result_that_it_lacks_comes_at_the_last_moment(monkeypatch):
    def alike(arm: str, item: int) -> float:  # so that all cells are needed
        return 0.1 * (item % 3)

    with session() as one:
        lost, ask = one.ask(1, "somebody")[0], one.ask

        def late(*given, **more):
            if not (new := ask(*given, **more)) and len(one) == before:
                one.tell(lost, alike("", lost.item), "somebody")
            return new

        with pytest.warns(UserWarning, match="are awaited, 1, of somebody"):
            before = one.run(alike, 2, take_over=None)
        monkeypatch.setattr(one, "ask", late)
        assert one.run(alike, 2, take_over=None) > 0
        assert one.done


def test_it_ends_with_the_answer_of_the_table(tmp_path):
    with session(tmp_path / "0.db") as one:
        count = one.run(measure)
        assert one.done
        assert count == len(one) <= TABLE.size
        assert one.answer().tolist() == [k == BEST for k in range(4)]
        assert one.certificate >= 0.9
        assert one.ask(5) == []
        history = one.history()
    with agents.Session(store=tmp_path / "0.db") as again:
        assert again.done
        assert again.history().equals(history)


def test_ties_end_when_the_table_is_used_up():
    with session() as one:
        one.run(lambda arm, item: 0.1 * (item % 3) if arm != "d" else 0.0)
        assert one.done
        assert sum(one.answer()) == 1
        assert not one.answer()[3]
        assert one.certificate >= 0.9
        known = one.arms().loc[lambda rows: rows["pulls"] == N]
        assert (known["low"] == known["high"]).all()
        assert len(known) == 3


def test_it_decides_as_the_agent_does_in_the_environment():
    with session() as one:
        order = [one._state.order[place] for place in range(N)]
        one.run(measure)
        agent, rows = one.agent, TABLE[order].T
    pulls, scores, state = np.zeros(4, np.int64), np.zeros((4, N)), None
    for _ in range(TABLE.size + 1):
        mean = np.array([scores[k, : pulls[k]].mean() if pulls[k] else 0.0 for k in range(4)])
        seen = {"pulls": pulls, "mean": mean, "total": mean * pulls, "variance": np.zeros(4), "scores": scores}
        seen |= {"remaining": np.array([-1]), "public_seed": np.array([0])}
        action, state = agent.predict(seen, state)
        if action["arm"] == 4:
            break
        scores[action["arm"], pulls[action["arm"]]] = rows[action["arm"], pulls[action["arm"]]]
        pulls[action["arm"]] += 1
    assert pulls.sum() == len(one)
    assert action["answer"].tolist() == [k == BEST for k in range(4)]


@pytest.mark.parametrize("index", [None, "id"])
def test_a_half_filled_table_is_the_start_and_may_grow(tmp_path, index):
    names = [f"q{n}" for n in range(N)] if index else None
    place, half = tmp_path / "half.csv", random.Random(2).sample(range(TABLE.size), TABLE.size // 2)

    def write(cells: Any) -> None:
        rows = [["" if n * 4 + k not in cells else str(TABLE[n, k]) for k in range(4)] for n in range(N)]
        heads = ["id"] * bool(index) + ["a", "b", "c", "d"]
        lines = [heads, *([*([f"q{n}"] if index else []), *row] for n, row in enumerate(rows))]
        place.write_text("\n".join(map(",".join, lines)) + "\n")

    with session(items=names or N) as one:
        write(half)
        assert one.tell_table(place, index=index) == len(half)
        write({*half, 0, 1, 2, 3})
        assert one.tell_table(place, index=index) == len({0, 1, 2, 3} - {*half})
        asked = set()

        def grade(arm: str, item: Any) -> float:
            cell = (int(item[1:]) if index else item) * 4 + "abcd".index(arm)
            asked.add(cell)
            return float(TABLE.flat[cell])

        one.run(grade, 3)
        assert one.done
        assert one.answer()[BEST]
        assert asked.isdisjoint({*half, 0, 1, 2, 3})
        exported = one.history()
        exported.to_csv(tmp_path / "all.csv", index=False)
        text = place.read_text().replace(str(TABLE[0, 0]), "0.123", 1)
        place.write_text(text)
        with pytest.raises(ValueError, match=r"'a' on the item .* has the result .* already"):
            one.tell_table(place, index=index)
    if len({(row.name, row.item) for row in exported.itertuples()}) == TABLE.size:
        assert from_table(tmp_path / "all.csv", shared=True).arms.items == N


def test_a_budget_ends_it():
    with session(budget=30, delta=None) as one:
        assert one.run(measure, 4) == 30
        assert one.done
        assert one.answer().sum() == 1
        assert one.remaining == 0


@pytest.mark.parametrize("name", ["sysrs", "ucb-e", "uniform", "successive-rejects"])
def test_agents_of_budgets_go_through_their_rows(name):
    if name not in agents.names():
        pytest.skip("no such agent")
    facts = {**FACTS, "items": N, "delta": None, "budget": 60}
    with agents.Session(name, facts, store=":memory:") as one:
        count = one.run(measure, 3)
        assert one.done
        assert 0 < count <= 60
        assert one.answer().sum() == 1


def test_workers_of_uneven_speed_spend_a_budget_as_one_worker_does():
    """The cells of the best three of 12 by `sysrs`: 3 seeds, durations exponential, on a clock of the test."""

    def cells(workers: int, seed: int) -> int:
        generator, running, now = np.random.default_rng(seed), list[Any](), 0.0
        table = generator.random((60, 12)) < np.linspace(0.1, 0.9, 12)
        facts = {"problem": "BestArm", "arms": 12, "items": 60, "binary": True, "budget": 150}
        with agents.Session("sysrs", facts, store=":memory:", public_seed=seed) as one:
            while not one.done:
                running += [(now + generator.exponential(), ask.number, ask) for ask in one.ask(workers - len(running))]
                running.sort()
                now, _, ask = running.pop(0)
                one.tell(ask, bool(table[ask.item, ask]))
            return int(one.arms()["pulls"][9:].sum())

    alone, together = (np.mean([cells(workers, seed) for seed in range(3)]) for workers in (1, 12))
    assert together >= 0.9 * alone  # .84 where results that wait for earlier rows are left out of account


# --- the function that measures ---------------------------------------------------------------------------------------


def test_threads_measure_at_the_same_time():
    together, begun, most, lock = threading.Barrier(6), [0], Counter(), threading.Lock()

    def slow(arm: str, item: int) -> float:
        with lock:
            begun[0] += 1
            most["running"] += 1
            most["all"] = max(most["all"], most["running"])
            first = begun[0] <= 6
        if first:
            together.wait(HANG)
        with lock:
            most["running"] -= 1
        return measure(arm, item)

    with session() as one:
        one.run(slow, 6)
        assert one.done
        assert most["all"] == 6


def test_coroutines_share_an_event_loop():
    loops = set()

    class Grader:
        async def __call__(self, arm: str, item: int) -> float:
            loops.add(asyncio.get_running_loop())
            await asyncio.sleep(0)
            return measure(arm, item)

    with session() as one:
        one.run(Grader(), 5)
        assert one.done
        assert one.answer()[BEST]
        assert len(loops) == 1


def test_what_fails_is_tried_again_and_then_raised_or_counted():
    tries: Counter[Any] = Counter()

    def flaky(arm: str, item: int) -> float:
        tries[arm, item] += 1
        if tries[arm, item] <= (item % 3 == 0) + 10 * (arm == "c" and item == bad):
            raise ConnectionError("busy")
        return measure(arm, item)

    with session() as one:
        bad = one.ask(3)[2].item
        with pytest.raises(ConnectionError, match="busy") as raised:
            one.run(flaky, 4, retries=1)
        assert raised.value.__notes__ == [f"measuring 'c' on the item {bad}"]
        assert [(ask.arm, ask.item) for ask in one.pending if ask.arm == 2][0] == (2, bad)
        assert tries["c", bad] == 2
        before = len(one)
        with pytest.warns(UserWarning, match="1 of .* of 'c' .* failed, and count as scores"):
            one.run(flaky, 4, retries=1, failed=0.0)
        assert one.done
        assert len(one) > before
        assert one._state.cells[2, bad] == 0.0


def test_what_takes_too_long_is_given_up():
    """A call that never ends, tried twice; so is a coroutine that holds up its event loop, which is left alone."""
    tries, go = Counter(), threading.Event()

    async def stuck(arm: str, item: int) -> float:
        tries["stuck"] += 1
        await asyncio.Event().wait()
        return 0.0

    async def blocks(arm: str, item: int) -> float:
        tries["blocks"] += 1
        go.wait(HANG)
        return 0.0

    def hangs(arm: str, item: int) -> float:
        tries["hangs"] += 1
        go.wait(HANG)
        return 0.0

    for grader in (stuck, hangs, blocks):
        with session() as one, pytest.raises(TimeoutError, match="more than 0.05 s"):
            one.run(grader, 1, retries=1, timeout=0.05)
    assert (tries["stuck"], tries["hangs"]) == (2, 2)
    go.set()


def test_a_value_that_is_none_is_refused_and_the_rest_recorded():
    with session() as one:
        with pytest.raises(ValueError, match="a measurement must be a number in"):
            one.run(lambda arm, item: "good" if arm == "b" else measure(arm, item), 4)
        assert 0 < len(one) <= 4


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"measure": 3}, "measure must be a function"),
        ({"measure": measure, "workers": 0}, "workers must be an integer"),
        ({"measure": measure, "retries": -1}, "retries must be"),
        ({"measure": measure, "timeout": 0}, "timeout must be"),
        ({"measure": measure, "failed": 2.0}, "failed must be"),
    ],
)
def test_bad_calls_of_run_name_the_value(given, text):
    with session() as one, pytest.raises(ValueError, match=text):
        one.run(**given)


def test_sessions_without_items_are_run_too():
    facts = {"problem": "BestArm", "arms": ["x", "y"], "range": (0, 1), "delta": 0.1}
    with agents.Session("top-two", facts, store=":memory:") as one:
        one.run(lambda arm: 0.9 if arm == "x" else 0.1, 2)
        assert one.done
        assert one.answer().tolist() == [True, False]
        with pytest.raises(ValueError, match="there are no items"):
            one.tell("x", 0.5, item=1)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"items": 0}, "items must be an integer"),
        ({"items": "q1"}, "items must be a number of rows, or a list"),
        ({"items": ["q", "q"]}, "an item's name must differ"),
        ({"items": 5, "range": None, "sigma": 1.0}, "one number, or several, in a range"),
        ({"items": 5, "problem": "Feasible"}, "Feasible"),
    ],
)
def test_bad_facts_are_refused(changes, text):
    with pytest.raises(ValueError, match=text):
        session(**changes)


def test_cells_that_there_are_not_or_that_are_known_are_refused():
    with session(items=[f"q{n}" for n in range(N)]) as one:
        one.tell("a", 0.5, item="q3")
        for item, text in (
            ("q99", "there is no item 'q99'"),
            (N, "there is no item 40; they are q0, q1"),
            ("q3", "has the result 0.5 already"),
        ):
            with pytest.raises(ValueError, match=text):
                one.tell("a", 0.25, item=item)
        for change in (lambda: one.add_arm("e"), lambda: one.withdraw_arm("a")):
            with pytest.raises(ValueError, match="cannot come or go"):
                change()
        one.undo()
        one.tell("a", 0.25, item="q3")
        assert one.arms()["mean"][0] == 0.25


@pytest.mark.parametrize("kills", [1, 3])
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path, kills):
    check_kills(tmp_path, arms=5, items=60, kills=kills)


# --- what strangers found ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rules", "cells"),
    [
        ("paired-elimination", {"delta": None, "budget": 400}, None),
        ("uniform", {"delta": None, "budget": 400}, 160),
        ("uniform", {}, 160),
        ("kl-lucb", {}, None),
        ("lucb(stop='certificate')", {}, None),
    ],
)
def test_a_session_ends_where_the_agent_wants_only_what_is_known(name, rules, cells):
    with agents.Session(name, {**FACTS, "items": N, **rules}, store=":memory:") as one:
        count = one.run(measure, 3)
        assert one.done
        assert one.answer()[BEST]
        assert count == (count if cells is None else cells) <= TABLE.size


def test_more_questions_than_workers_wait_are_all_measured():
    with session() as one:
        one.ask(30)
        one.run(measure, 4)
        assert one.done
        assert one.pending == []


def test_tables_of_pandas_are_read_by_their_index_and_names_that_come_twice_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    with session() as one:
        one.tell_table(pandas.DataFrame({"a": [0.9, 0.8]}, index=[4, 5]))
        assert one.history()["item"].tolist() == [4, 5]
        twice = tmp_path / "twice.csv"
        twice.write_text("id,a,b\n7,0.1,0.2\n7,0.3,0.4\n")
        with pytest.raises(ValueError, match="'a' on the item 7 has the result 0.1 already"):
            one.tell_table(twice, index="id")
        twice.write_text("name,value\na,0.5\n")
        one.ask(4)
        with pytest.raises(ValueError, match="a result of a table needs its item"):
            one.tell_table(twice)
        assert len(one) == 2


def test_names_that_are_numbers_are_names():
    with session(items=[1, 2, 0]) as one:
        one.tell("a", 0.5, item=1)
        assert one.history()["item"].tolist() == ["1"]
        with pytest.raises(ValueError, match="there is no item 3"):
            one.tell("a", 0.5, item=3)


def test_right_and_wrong_are_zero_and_one():
    with session(binary=True, range=None) as one:
        one.tell("a", True, item=1)
        one.tell("b", np.bool_(False), item=1)
        with pytest.raises(ValueError, match="a measurement must be 0 or 1, got 0.5"):
            one.tell("c", 0.5, item=1)
        assert one.arms()["mean"].tolist()[:2] == [1.0, 0.0]


def test_an_export_is_read_again_also_after_an_undo(tmp_path):
    with (
        session() as one,
        agents.Session("paired-elimination", {**FACTS, "items": N}, store=tmp_path / "other.db") as other,
    ):
        one.ask(3)
        one.tell("a", 0.5)
        one.undo()
        one.tell("a", 0.25)
        one.history().to_csv(tmp_path / "export.csv", index=False)
        assert other.tell_table(tmp_path / "export.csv") == 1
        assert other.arms()["mean"][0] == 0.25


def test_tables_of_other_programs(tmp_path, monkeypatch):
    """Floats beside gaps, days, times of a spreadsheet, 1 for undone; a store that all threads share without a file."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    monkeypatch.setattr("agents.session.session.Log", Log)
    place, items = tmp_path / "t.csv", [7.0, 8.0, date(2024, 1, 1)]
    facts = {**FACTS, "arms": [1.0, 2.0, "v1.0"], "items": items}
    with agents.Session("paired-elimination", facts, store=":memory:") as one:
        assert one.names == ["1", "2", "v1.0"]
        floats = pandas.DataFrame({"item": [7, 8, None], "name": [1, 2, None], "value": [0.5, 1, None]})
        floats.to_csv(place, index=False)
        days = polars.DataFrame({"day": items[2:], "v1.0": [0.25], "2": [1.0]})
        with ThreadPoolExecutor(1) as pool:
            assert [pool.submit(one.tell_table, place).result(), one.tell_table(days, index="day")] == [2, 2]
        table = one.history()
        assert table["item"].tolist() == ["7", "8", "2024-01-01", "2024-01-01"]
        with pytest.raises(ValueError, match=r"there is no arm '2x.0'"):
            one.tell("2x.0", 1, item="7")
    table.assign(at=["01.02.2024 10:00", *table["at"][1:]], undone=[0, 0, 0, 1]).to_csv(place, index=False)
    one = session(arms=["1", "2", "v1.0"], items=["7", "8", "2024-01-01"])
    with pytest.warns(UserWarning, match="t.csv: events whose 'at' is no time"):
        assert one.tell_table(place) == 3
    one.close()


@pytest.mark.parametrize("name", ["paired-elimination", "ucb-e(a=1)"])
def test_what_failed_and_what_waits_is_counted_and_known_means_have_no_width(name):
    with agents.Session(name, {**FACTS, "items": 7, "budget": 28}, store=":memory:") as one:
        of_a, of_b = ([q for q in questions if q.arm == arm] for questions in [one.ask(24)] for arm in (0, 1))
        one.tell(of_a[1], 0.3)
        assert one.waiting == {of_a[0].number: 1}
        one.tell(of_a[0], 0.1)
        one._fail(of_a[2].number, None, None, "no answer")
        assert (one.waiting, one.arms()["failed"].tolist()) == ({}, [1, 0, 0, 0])
        assert ("Nothing is promised" in " ".join(one.doubts)) == (one.certificate == 0)
        for n in range(7):
            one.tell("b", (0.1, 0.7, 0.2)[n % 3], item=n)
        known = one.arms().iloc[1]
        assert known["low"] == known["mean"] == known["high"]


def test_what_a_coroutine_raises_to_end_the_program_ends_it():
    async def leaves(arm: str, item: int) -> float:
        raise SystemExit(3)

    with session() as one, pytest.raises(SystemExit):
        one.run(leaves, 2, retries=0)


def test_the_answer_of_now_rests_on_all_cells_as_long_as_rows_are_few():
    with session() as one:
        late = int(one._state.order[-1])
        one.tell("c", 0.9, item=late)
        one.tell("a", 0.1, item=late)
        assert one.answer().tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("[0.5]", "needs a score and a row"),
        ("[0.5, 1.5]", "is of the row 1.5"),
        ("[0.5, 40]", "is of the row 40"),
        ("[0.5, true]", "is of the row True"),
    ],
)
def test_damaged_cells_are_named(tmp_path, value, text):
    with session(tmp_path / "0.db") as one:
        one.tell("a", 0.5, item=3)
    sql(tmp_path / "0.db", f"update event set vector = '{value}' where kind = 'told'")
    with pytest.raises(ValueError, match=text):
        agents.Session(store=tmp_path / "0.db")


def test_the_page_shows_how_far_the_table_is_filled():
    page = pytest.importorskip("agents.session.page")
    with session() as one:
        for question in one.ask(6):
            one.tell(question.arm, 0.5, item=question.item)
        asked = one.ask(1)[0]
        shown = page.state(one)
        assert shown["items"] == N
        assert [arm["pulls"] for arm in shown["arms"]] == [2, 2, 1, 1]
        assert [ask["item"] for ask in shown["pending"]] == [asked.item]
