"""Stores, exports and addresses of others: no name in them runs code, and nothing in them is taken as it stands."""

from __future__ import annotations

import contextlib
import hmac
import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

import agents
from agents.session import running
from agents.session.setup import checked_name
from agents.session.tables import for_spreadsheets
from agents.thresholding.lsa import LSA

FACTS = {"problem": "Threshold", "threshold": 0.5, "arms": ["a", "b", "c"], "binary": True, "budget": 30}
PRICED = {"problem": "BestArm", "arms": ["a", "b"], "sigma": 1.0, "budget": 100, "cost": [2, 3]}
RAN: list[object] = []
ME = f"{__name__}:ran"


def ran(task: Any = None, **given: object) -> Any:
    """What no store may call."""
    RAN.append(given)
    return LSA(task)


def ran_by(path: Path, statement: str, *values: object) -> Path:
    """A store in which a statement was run."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(statement, values)
        connection.commit()
    return path


def store(path: Path, facts: Any = None, **changes: Any) -> Path:
    """A store with other facts."""
    agents.Session("lsa", FACTS, store=path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        [(text,)] = connection.execute("select facts from session")
    return ran_by(path, "update session set facts = ?", facts or json.dumps(json.loads(text) | changes))


TEXTS = {ME: {"a": 1}, f"{ME}(a=1)": {}, "agents:Session": {"store": "y.db", "trust": True}}
TEXTS |= {"agents.session.page:serve": {"host": "0.0.0.0"}, "agents.core.certified:Certified": {}, " os : system ": {}}


@pytest.mark.parametrize("text", TEXTS)
def test_an_agent_in_a_store_is_a_registered_one(text: str, tmp_path: Path) -> None:
    RAN.clear()
    with pytest.raises(ValueError, match=r"the store names a module: the agent '.*trust=True \(--trust\)"):
        agents.Session(store=store(tmp_path / "a.db", agent=text, parameters=TEXTS[text]))
    assert not RAN


def test_names_of_the_reader_and_of_registered_rows_stay_as_they_were(tmp_path: Path) -> None:
    for agent in (LSA, "agents.thresholding.lsa:LSA"):
        agents.Session(agent, FACTS, store=tmp_path / f"{type(agent)}.db").close()
        assert agents.Session(store=tmp_path / f"{type(agent)}.db").next() == 0
    RAN.clear()
    for i, agent in enumerate((ran, ME)):
        for _ in range(2):  # who has begun it says it again
            agents.Session(agent, FACTS, store=tmp_path / f"{i}.db").close()
    with pytest.raises(ValueError, match="trust=True"):
        agents.Session(store=tmp_path / "1.db")
    agents.Session(store=tmp_path / "1.db", trust=True)
    assert RAN  # so that the tests above can fail


def test_damaged_facts_and_events_are_named(tmp_path: Path) -> None:
    for i, deep in enumerate(("[" * 10**5 + "]" * 10**5, "[" * 500 + "]" * 500)):
        with pytest.raises(ValueError, match="damaged: its facts are no JSON .*nest 100 deep"):
            agents.Session(store=store(tmp_path / f"{i}.db", f'{{"task": {deep}}}'))
    with agents.Session("lsa", FACTS, store=tmp_path / "a.db") as session:
        for _ in range(3):
            session.tell("a", 1)
    ran_by(tmp_path / "a.db", "update event set number = 100 where number = 2")
    with pytest.raises(ValueError, match="it has 3 events, and 3 were recorded: there is no event 2"):
        agents.Session(store=tmp_path / "a.db")


ENDLESS = "with recursive c(x) as (select 1 union all select x + 1 from c) select x as number, 'note' as kind from c"
STRANGE = {
    "the view 'event'": ["alter table event rename to old", f"create view event as {ENDLESS}"],
    "the trigger 't'": ["create trigger t after insert on event begin delete from session; end"],
    "the table 'words'": ["create virtual table words using fts5(a)"],
    "a table 'event' without 'vector'": ["alter table event drop column vector"],
}


@pytest.mark.parametrize("what", STRANGE)
def test_what_runs_when_a_store_is_read_is_refused(what: str, tmp_path: Path) -> None:
    agents.Session("lsa", FACTS, store=tmp_path / "a.db").close()
    for statement in STRANGE[what]:
        ran_by(tmp_path / "a.db", statement)
    for address in (tmp_path / "a.db", f"sqlite:///{tmp_path / 'a.db'}"):
        with pytest.raises(ValueError, match=f"a.db is no session's store: it has {what}"):
            agents.Session(store=address)


@pytest.mark.parametrize("table", ["user (name)", "event (number, kind, at)"])
def test_a_database_of_others_stays_as_it_is(table: str, tmp_path: Path) -> None:
    path = ran_by(tmp_path / "a.db", f"create table {table}")
    before = path.read_bytes()
    for facts in (("lsa", FACTS), ()):
        with pytest.raises(ValueError, match=f"a.db is no session's store: it has .* table '{table.split()[0]}'"):
            agents.Session(*facts, store=path)
    assert (path.read_bytes(), [*tmp_path.iterdir()]) == (before, [path])


@pytest.mark.parametrize("blocks", [False, True])
def test_of_two_runs_of_one_name_that_begin_together_one_measures_all(
    blocks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = {"problem": "BestArm", "arms": ["a", "b"], "range": (0, 1), "blocks": "day", "delta": 0.1}
    facts = days if blocks else FACTS
    agents.Session("paired-elimination" if blocks else "uniform", facts, store=tmp_path / "a.db").close()
    both, look, first, found = threading.Barrier(2), running.Running._open, set[str](), list[object]()
    ask, asked, all_asked = agents.Session.ask, list[object](), threading.Event()

    def counted(session: Any, *given: Any, **more: Any) -> Any:
        asked.append(new := ask(session, *given, **more))
        if len(asked) > 1:
            all_asked.set()
        return new

    def measure(arm: str, *_: object) -> float:
        all_asked.wait()
        return float(arm == "a")

    def together(run: running.Running, held: Any, most: int) -> Any:
        seen = look(run, held, most)
        if run.me not in first:
            first.add(run.me)
            both.wait()
        return seen

    def run() -> None:
        with agents.Session(store=tmp_path / "a.db") as session:
            try:
                found.append(session.run(measure, workers=2, who="ann"))
            except ValueError as error:
                found.append(str(error))

    monkeypatch.setattr(running.Running, "_open", together)
    monkeypatch.setattr(running, "LOOK", 0.01)
    monkeypatch.setattr(agents.Session, "ask", counted)
    threads = [threading.Thread(target=run) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    with agents.Session(store=tmp_path / "a.db") as session:
        assert session.done
        assert not session.pending
        [said] = [one for one in found if one != len(session)]
    assert "another run with who='ann' still runs" in str(said)


def test_an_export_is_imported_with_prices_added_arms_and_texts_that_spreadsheets_run(tmp_path: Path) -> None:
    names = ["=cmd|' /C calc'!A0", "'=q", "-5", "+x", "@y", "＝z", "'plain"]
    with agents.Session("uniform", PRICED, store=tmp_path / "a.db") as session:
        for name in names:
            session.tell(session.add_arm(name), 2.0, who="=1+1")
        session.note("-2+3+cmd|'x'!A")
        for_spreadsheets(session.history()).to_csv(tmp_path / "a.csv", index=False)
        cells = [cell.strip('"') for cell in (tmp_path / "a.csv").read_text().replace("\n", ",").split(",")]
        assert [cell for cell in cells if cell[:1] in (*"=+@＝", "-") and cell != "-5"] == []
        with agents.Session("uniform", PRICED, store=tmp_path / "b.db") as other:
            assert other.tell_table(tmp_path / "a.csv") == len(names)
            assert (other.names, other.money) == (session.names, session.money)
            same = ["kind", "name", "value", "who", "text"]
            assert other.history()[same][:-1].equals(session.history()[same])
        with pytest.raises(ValueError, match="cost .*, and the budget leaves"):
            agents.Session("uniform", PRICED | {"budget": 5}, store=tmp_path / "c.db").tell_table(tmp_path / "a.csv")


def test_a_rater_can_neither_undo_after_the_end_nor_fill_the_store(tmp_path: Path) -> None:
    page = pytest.importorskip("agents.session.page")
    client = pytest.importorskip("starlette.testclient").TestClient
    facts = FACTS | {"raters": ["ann", "bob"], "budget": 4}
    with agents.Session("uniform", facts, store=tmp_path / "a.db") as session:
        web = client(page.application(session, "a token of twelve"), base_url="http://localhost")
        ann = web.get("/link?name=ann&token=a token of twelve").json()["link"][1:]
        assert hmac.new(b"a token of twelve", b"ann", "sha256").hexdigest()[:8] not in ann
        assert web.post(f"/note?{ann}", json={"text": "x" * 2001}).status_code == 400
        replies = [web.post(f"/note?{ann}", json={"text": "good"}).status_code for _ in range(page.MOST_NOTES + 1)]
        assert replies == [200] * page.MOST_NOTES + [400]
        while not session.done:
            session.tell_all([(question, 1) for who in ("bob", "ann") for question in session.ask(1, who)], "ann")
        last = int(session.history()["event"].iloc[-1])
        reply = web.post(f"/undo?{ann}", json={"event": last})
        assert (reply.status_code, session.done) == (400, True)
        assert "the session is over" in reply.json()["error"]
        assert web.post("/undo?token=a token of twelve", json={"event": last}).status_code == 200


def test_names_and_numbers_of_arms_beyond_what_is_usual() -> None:
    assert checked_name("K\udcc3\udca4se") == "Käse"  # as a command line is read in the locale C
    many = {"problem": "BetterThanControl", "control": 0, "arms": 1001, "binary": True, "delta": 0.05}
    with agents.Session("uniform", many, store=":memory:") as session:
        session.tell(0, n=5, successes=2)
        with pytest.raises(ValueError, match="1000 arms at most, got BetterThanControl of 1001 arms"):
            session.comparison()
