"""Sessions that meet damaged stores, lost files, arms that an agent cannot do with, and tables that were wrong."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from disks import rewritten, sql

import agents
from agents.session.log import NOTE, Event, Log

pytest.importorskip("sqlalchemy")

FACTS = {"problem": "Threshold", "threshold": 0.5, "arms": ["a", "b", "c"], "range": (0, 1), "budget": 12}


def damaged(place: Path, *statements: str) -> Path:
    """The store of a session with a result, after some SQL."""
    with agents.Session("uniform", FACTS, store=place) as session:
        session.tell("a", 1)
    return sql(place, *statements)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("update event set arm = 7", "its event 1 .'told'. names the arm 7, and there are 3"),
        ("update event set arm = NULL", "names the arm None"),
        ("update event set value = NULL", "has the value None"),
        ("update event set value = 'x'", "its event 1 .*cannot be read: its .value. is .x."),
        ("update event set vector = '[true]', value = NULL", "has the value .True"),
        ("update event set value = 9e999", "has the value inf"),
        ("update event set value = 1.5", r"its event 1 .*has the value 1.5: .* must be a number in \[0, 1\], got 1.5"),
        ("insert into session (id, writes, facts) select 2, 0, facts from session", "the facts of several sessions"),
        ("update event set vector = '[1', value = NULL", "its event 1 .'told'. cannot be read: Expecting"),
        ("update event set vector = '[1]'", "its 'vector' is '.1.', and its 'value' 1.0"),
        ("update event set vector = '{\"1\": 1}', value = NULL", "its 'vector' is"),
        ("update event set kind = 'foo'", "'foo'. is none that this version knows"),
        ("update event set kind = 'arm added'", "adds no new arm"),
        ("update event set at = 'x'", "its event 1 .'told'. cannot be read: Invalid isoformat string: 'x'"),
        ("update event set arm = 'x'", "its event 1 .'told'. cannot be read: its 'arm' is 'x'"),
        ("update event set who = cast(x'61ff' as text)", "its event 1 .'told'. cannot be read: its 'who' is b'a.xff'"),
        ("update event set about = 77", "its event 1 .'told'. refers to the event 77, which there is not"),
        ("update event set about = 1", "refers to the event 1, which there is not before it"),
        ("update event set about = 'x'", "its event 1 .'told'. cannot be read: its 'about' is 'x'"),
        ("update session set facts = cast(x'ff' as text)", "its facts are no JSON"),
        ("drop table event", "no table 'event'"),
        ("delete from event", "is damaged: it has 0 events, and 1 were recorded: there is no event 1"),
        ("alter table event drop column who", "no session's store: it has a table 'event' without 'who'"),
    ],
)
def test_damaged_events_are_named(statement: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        agents.Session(store=damaged(tmp_path / "a.db", statement))


@pytest.mark.parametrize("name", ["agent", "parameters", "task", "names", "public_seed"])
@pytest.mark.parametrize("value", ["missing", 1.5])
def test_damaged_facts_are_named(name: str, value: Any, tmp_path: Path) -> None:
    place = damaged(tmp_path / "a.db")
    with rewritten(place) as facts:
        if value == "missing":
            del facts[name]
        else:
            facts[name] = value
    with pytest.raises(ValueError, match=f"damaged: the fact '{name}'|holds no session"):
        agents.Session(store=place)


def test_a_store_from_before_dependence_was_said_counts_on_it(tmp_path: Path) -> None:
    """Gaussian coordinates, of which nothing is known: opened by its place, and described anew."""
    facts = {"problem": "Feasible", "A": [[1.0, 1.0]], "b": [1.0], "arms": 2, "sigma": 1.0, "delta": 0.1}
    place = tmp_path / "a.db"
    with agents.Session("evidence", facts, store=place, public_seed=0) as session:
        session.tell_all([(arm, (value, value)) for arm, value in ((0, 0.0), (1, 2.0)) for _ in range(9)])
        certificate = session.certificate
    with rewritten(place) as stored:
        task = json.loads(stored["task"])
        assert task.pop("dependent") is True
        stored["task"] = json.dumps(task)
    for given in ((), ("evidence", facts)):
        with agents.Session(*given, store=place) as session:
            assert session.task.dependent is True
            assert session.certificate == certificate
    with pytest.raises(ValueError, match="dependent is True there, False asked for"):
        agents.Session("evidence", facts | {"independent": True}, store=place)


def test_what_cannot_be_read_again_is_not_recorded(tmp_path: Path) -> None:
    """Arms that come and go leave an agent with a task that it does not take: refused, and the session goes on."""
    facts = {"problem": "BestArm", "arms": ["a", "b", "c"], "range": (0, 1), "budget": 7}
    with agents.Session("sequential-halving", facts, store=tmp_path / "a.db") as session:
        session.withdraw_arm("a")
        session.add_arm("d")
        with pytest.raises(ValueError, match="needs a budget"):
            session.undo(1)  # four arms are too many for 7 measurements
        assert len(session.active) == 3
    with agents.Session("sequential-halving", {**facts, "budget": 12}, store=tmp_path / "b.db") as session:
        session.add_arm("d")
        session.tell_all([("a", 0.5)] * 8)
        with pytest.raises(ValueError, match="needs a budget"):
            session.withdraw_arm("a")  # the 8 measurements of it are spent, 4 are too few
        before = session.version, session.ask()
    for name, active in (("a", 3), ("b", 4)):
        with agents.Session(store=tmp_path / f"{name}.db") as session:
            assert len(session.active) == active
    assert before == (9, [1])


def test_a_file_that_is_lost_takes_no_results(tmp_path: Path) -> None:
    place, other = tmp_path / "a.db", tmp_path / "b.db"
    with agents.Session("uniform", FACTS, store=place) as session:
        session.tell("a", 1)
        shutil.copy(place, other)
        place.unlink()
        with pytest.raises(FileNotFoundError, match="has been deleted or moved: nothing was recorded"):
            session.tell("a", 1)
        other.rename(place)
        with pytest.raises(FileNotFoundError, match="another file has taken the place"):
            session.tell("a", 1)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        agents.Session("uniform", FACTS, store=tmp_path)


def test_a_table_is_undone_as_a_whole(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("name,value\na,0.9\nb,0.8\na,0.7\n")
    with agents.Session("uniform", FACTS, store=tmp_path / "a.db") as session:
        (arm,) = session.ask()
        session.tell("c", 0.5)
        session.tell_table(wrong)
        assert session.pending == []  # a row has answered the question
        session.undo(3)
        session.tell_table(wrong, again=True)
        assert session.undo_table(wrong) == 3  # the later one
        assert session.undo_table("wrong.csv") == 2  # and what is left of the first
        assert [ask.arm for ask in session.pending] == [arm]
        assert session.arms()["pulls"].tolist() == [0, 0, 1]
        with pytest.raises(ValueError, match="recorded from a table 'wrong.csv'; there are: none"):
            session.undo_table(wrong)
        assert session.tell_table(wrong) == 3  # mended, it may come again
        assert session.undo() == session.history().query("kind == 'told'")["event"].iloc[-1]


# What each event of `eventful` is: the questions 1 and 2 of the arms 0 and 1, the results 3 and 4, which answer them, 5
# undoes the result 4, 6 answers the question 2 again, 7 withdraws the arm 2, 8 undoes that, 9 is a remark, 10 a result.
def eventful(session: Any) -> None:
    """Have a session come to events of all kinds but one."""
    session.ask(2)
    session.tell(0, 1)
    session.tell(1, 1)
    session.undo()
    session.tell(1, 0)
    session.withdraw_arm(2)
    session.undo(7)
    session.note("new cups")
    session.tell(0, 1)


TAMPERED = [
    ("set about = 4 where number = 6", "event 6 .'told'. refers to the event 4, which is 'told' of the arm 1"),
    ("set about = 99 where number = 4", "event 4 .'told'. refers to the event 99, which there is not"),
    ("set about = NULL where number = 5", "event 5 .'undone'. refers to the event None, which there is not"),
    ("set about = 3 where number = 5", "event 5 .'undone'. refers to the event 3, which is 'told' of the arm 0"),
    ("set about = 10 where number = 8", "event 8 .'undone'. refers to the event 10, which there is not before it"),
    ("set about = 99 where number = 9", "event 9 .'note'. refers to the event 99, which there is not"),
    ("set arm = 2 where number = 2", "event 4 .'told'. refers to the event 2, which is 'asked' of the arm 2"),
    ("delete from event where number = 3", "it has 9 events, and 10 were recorded: there is no event 3"),
    ("delete from event where number > 8", "it has 8 events, and 10 were recorded: there is no event 9"),
    ("set number = -9 where number = 9", "it has 9 events, and 10 were recorded: there is no event 9"),
    ("insert into event (at, kind) select at, kind from event limit 1", "it has 11 events, and 10 .* among them"),
]


@pytest.mark.parametrize(("statement", "told"), TAMPERED)
def test_events_that_do_not_go_together_are_named(statement: str, told: str, tmp_path: Path) -> None:
    with agents.Session("uniform", FACTS, store=tmp_path / "a.db") as session:
        eventful(session)
    with agents.Session(store=tmp_path / "a.db") as session:
        assert session.version == 10
    sql(tmp_path / "a.db", f"update event {statement}" if statement.startswith("set") else statement)
    with pytest.raises(ValueError, match=f"damaged: .*{told}"):
        agents.Session(store=tmp_path / "a.db")


def test_what_is_rolled_back_is_no_damage(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    with agents.Session("uniform", FACTS, store=place) as session:
        eventful(session)
        with contextlib.suppress(RuntimeError), session._log.writing() as connection:
            session._log.append(connection, [Event(0, NOTE, text="a"), Event(0, NOTE, text="b")], 10)
            raise RuntimeError
        session.note("c")
        assert agents.Session(store=place).version == session.version == 11


def test_what_is_undone_while_a_session_opens_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process undoes a result after the events have been read."""
    read, late = Log.events, [True]
    with agents.Session("uniform", FACTS, store=tmp_path / "a.db") as one:
        one.tell(one.ask()[0], 1)

        def events(log: Log, connection: Any, after: int = 0) -> list[Event]:
            found = read(log, connection, after)
            if late.pop():
                late[:] = [False] * 99
                one.undo()
                one.tell(0, 0)
            return found

        monkeypatch.setattr(Log, "events", events)
        with agents.Session(store=tmp_path / "a.db") as other:
            assert (len(other), other.pending) == (1, [])
            assert other.arms()["mean"][0] == 0


def test_events_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    """In a store whose count fits, so that it can be seen in the events only."""
    facts = {**FACTS, "arms": ["a", "b", "c", "d"]}
    with agents.Session("uniform", facts, store=tmp_path / "s.db") as session:
        session.ask(2, "x")
        session.tell("a", 1)  # event 3, answers event 1
        session.withdraw_arm("c")
    columns = "at, kind, arm, value, vector, about, who, text"
    for number, statement, told in [
        (5, f"insert into event ({columns}) select {columns} from event where number = 3", "answers the question 1"),
        (5, f"insert into event ({columns}) select {columns} from event where number = 4", "which has been withdrawn"),
        (5, "insert into event (at, kind, arm, value) values ('2026-01-01', 'told', 2, 1)", "which has been withdrawn"),
        (6, "insert into event (at, kind, arm) values ('2026-01-01', 'arm withdrawn', 0), "
            "('2026-01-01', 'arm withdrawn', 1)", "leaves fewer than 2 arms"),
    ]:  # fmt: skip
        place = tmp_path / f"{told}.db"
        shutil.copy(tmp_path / "s.db", place)
        sql(place, statement, "update session set events = (select count(*) from event)")
        with pytest.raises(ValueError, match=f"damaged: its event {number} .*{told}"):
            agents.Session(store=place)


def test_what_was_undone_may_come_again(tmp_path: Path) -> None:
    """An arm withdrawn twice and a question answered twice, where the first time was undone, are no damage."""
    with agents.Session("uniform", FACTS, store=tmp_path / "s.db") as session:
        session.ask()
        for value in (0, 1):
            session.tell("a", value)
            session.undo()
        session.withdraw_arm("c")
        session.undo(session.version)
        session.withdraw_arm("c")
        session.tell("a", 0)
        known = session.history()
    with agents.Session(store=tmp_path / "s.db") as again:
        assert again.history().equals(known)
        assert again.pending == []
        assert list(again.active) == [0, 1]


@pytest.mark.parametrize("value", [1e308, -1e101, float("inf")])
def test_results_whose_sums_are_no_numbers_are_refused(value: float, tmp_path: Path) -> None:
    facts = {**FACTS, "range": None, "sigma": 1.0}
    with agents.Session("uniform", facts, store=tmp_path / "s.db") as session:
        with pytest.raises(ValueError, match=r"a measurement must be a number in \[-1e\+100, 1e\+100\], got"):
            session.tell("a", value)
        assert len(session) == 0
        with pytest.warns(UserWarning, match="sigma=1 is refuted"):
            session.tell_all([("a", 1e100), ("a", -1e100), ("a", 1e100)])
        assert session.arms()["mean"][0] == pytest.approx(1e100 / 3)


@pytest.mark.filterwarnings("error")
def test_who_takes_warnings_as_errors_is_left_no_store(tmp_path: Path) -> None:
    with pytest.raises(UserWarning, match="does not reach each of the 3 arms once"):
        agents.Session("uniform", {**FACTS, "budget": 2}, store=tmp_path / "s.db")
    assert list(tmp_path.iterdir()) == []


def test_a_second_result_of_a_question_answers_none(tmp_path: Path) -> None:
    with agents.Session("uniform", FACTS, store=tmp_path / "s.db") as session:
        first, second, _ = session.ask(3)
        session.tell_all([(first, 1), (first, 0), (second, 1)])
        session.tell(second, 0)
        assert session.history()["about"].tolist()[3:] == [first.number, pd.NA, second.number, pd.NA]
    with agents.Session(store=tmp_path / "s.db") as again:
        assert (len(again), len(again.pending)) == (4, 1)


@pytest.mark.parametrize("plates", [{}, {"plate": 4}])
def test_a_lost_plate_or_batch_is_given_back_in_one_call(plates: dict[str, int], tmp_path: Path) -> None:
    """Calls for 3, 3 and 2 questions: three batches, or two plates of four."""
    with agents.Session("uniform", FACTS | plates, store=tmp_path / "a.db") as session:
        for n, who in ((3, "ann"), (3, "ann"), (2, "bob")):
            session.ask(n, who)
        first, second = ([1, 2, 3, 4], [5, 6, 7, 8]) if plates else ([1, 2, 3], [4, 5, 6])
        with contextlib.closing(agents.Session("uniform", FACTS, store=":memory:")) as other:
            with pytest.raises(ValueError, match="there is no question to undo"):
                other.undo_batch()
            other.tell("a", 1)
            with pytest.raises(ValueError, match="the event 1 is of no question"):
                other.undo_batch(1)
        session.tell(next(ask for ask in session.pending if ask.number == second[0]), 1)  # the event 9
        session.tell(session.pending[0], 1)
        assert session.undo_batch(9, results=False) == len(second) - 1  # its result stays
        assert [ask.number for ask in session.pending] == [n for n in range(2, 9) if n not in second]
        assert len(session) == 2
        with pytest.raises(ValueError, match="no question of this plate, or batch, waits"):
            session.undo_batch(9, results=False)
        assert session.undo_batch(1) == len(first) + 1  # with the result of its first question
        assert [ask.number for ask in session.pending] == [n for n in range(1, 9) if n not in first + second]
        assert session.undo_batch(9) == 2
        assert len(session) == 0
        if not plates:
            assert session.undo_batch() == 2  # the last one
        assert session.pending == []
    with agents.Session(store=tmp_path / "a.db") as again:
        assert (again.pending, len(again), len(again.ask(12))) == ([], 0, 12)


def test_questions_of_a_batch_that_were_asked_again_go_with_it(tmp_path: Path) -> None:
    with agents.Session("uniform", FACTS, store=tmp_path / "a.db") as session:
        session.ask(2, "ann")
    sql(tmp_path / "a.db", "update event set at = datetime(at, '-1 hour')")
    with agents.Session(store=tmp_path / "a.db") as session:
        session.ask(1, "bob", take_over=60)
        assert [(ask.number, ask.who) for ask in session.pending] == [(2, "ann"), (3, "bob")]
        assert session.undo_batch(2, results=False) == 3  # with the question that was asked again
        assert session.pending == []


@pytest.mark.filterwarnings("ignore")
def test_whole_blocks_are_given_back(tmp_path: Path) -> None:
    facts = {"problem": "BestArm", "arms": ["a", "b", "c"], "range": (0, 1), "blocks": "day", "delta": 0.1}
    with agents.Session("paired-elimination", facts, store=tmp_path / "a.db") as session:
        for question in session.ask(3):
            session.tell(question, 0.5)
        session.tell(session.ask(3)[0], 1.0)
        assert session.undo_batch() == 3 + 1
        assert (len(session.pending), session.arms()["pulls"].tolist()) == (0, [2, 2, 2])


@pytest.mark.parametrize("failed", ["skip", 0.0, None])
def test_a_value_beyond_the_range_is_a_failure_of_its_measurement(failed: Any) -> None:
    facts = {"problem": "BestArm", "arms": ["a", "b"], "range": (0, 1), "delta": 0.5, "items": 3, "epsilon": 0.1}
    values = {("a", 0): 0.5, ("b", 0): 1.3}
    with agents.Session("paired-elimination", facts, store=":memory:") as session:
        if failed is None:
            with pytest.raises(ValueError, match=r"measuring 'b' on the item 0: .* in \[0, 1\], got 1.3"):
                session.run(lambda *cell: values.get(cell, 0.4), retries=0)
            return
        with pytest.warns(UserWarning, match="1 of . of 'b'"):
            session.run(lambda *cell: values.get(cell, 0.4), failed=failed, retries=0)
        assert session.done
        assert session.arms()["failed"].tolist() == [0, 1]
