"""The page of a session: its answers, who may read and write, and what a browser shows."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import browser as browser
from browsing import shot
from counted import calls
from refusals import refused

import agents
from agents.cli import main

pytest.importorskip("sqlalchemy")
pytest.importorskip("starlette")
pytest.importorskip("httpx")

from agents.session import page

DRINKS = ["tea", "coffee", "milk", "juice", "hot chocolate with cinnamon and cream"]
HANG = 600.0  # seconds that only what hangs takes
FACTS = {"problem": "TopK", "k": 2, "arms": DRINKS, "range": (0, 10), "budget": 40}
HTML = Path(page.__file__).with_name("page.html").read_text()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Any]:
    with agents.Session("uniform", FACTS, store=tmp_path / "a.db") as made:
        yield made


def web_of(application: Any, base: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the newest Starlette would rather have another package than httpx
        from starlette.testclient import TestClient

    return TestClient(application, base_url=base)


def client(session: Any, token: str | None = None, base: str = "http://localhost") -> Any:
    return web_of(page.application(session, token), base)


def test_asking_telling_and_undoing(session: Any) -> None:
    web = client(session)
    assert web.get("/").text == HTML
    begin = web.get("/state").json()
    assert (begin["question"], begin["next"]["name"]) == ("Which 2 of the 5 options are the best?", "tea")
    assert (begin["count"], begin["ended"]) == (0, None)
    assert begin["boundary"] is None
    assert web.post("/ask", json={"n": 2, "who": "ann"}).json() == {"done": [0, 1]}
    state = web.get("/state").json()
    assert [(ask["name"], ask["who"]) for ask in state["pending"]] == [("tea", "ann"), ("coffee", "ann")]
    for arm, value in (("tea", 3), (1, 8.5), ("milk", 2), ("juice", 7), (DRINKS[-1], 1)):
        assert web.post("/tell", json={"arm": arm, "value": value}).json() == {"done": None}
    state = web.get("/state").json()
    assert state["answer"] == ["coffee", "juice"]
    assert state["remaining"] == 35
    assert 3 < state["boundary"] < 7
    assert state["least"]["name"] in ("tea", "juice")
    assert [arm["pulls"] for arm in state["arms"]] == [1] * 5
    assert all(arm["low"] <= arm["mean"] <= arm["high"] for arm in state["arms"])
    last = state["events"][0]
    assert (last["kind"], last["value"], last["undoable"]) == ("told", [1.0], True)
    assert web.post("/undo", json={"event": last["event"]}).json() == {"done": last["event"]}
    state = web.get("/state").json()
    assert [(event["kind"], event["undone"]) for event in state["events"][:2]] == [("undone", False), ("told", True)]
    assert state["events"][0]["about"] == last["event"]
    web.post("/note", json={"text": "new cups"})
    assert web.get("/state").json()["events"][0]["text"] == "new cups"
    assert session.history()["kind"].tolist()[-2:] == ["undone", "note"]


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/tell", {"arm": "tee", "value": 1}, "there is no arm 'tee'"),
        ("/tell", {"arm": "tea", "value": 11}, "must be a number in [0, 10]"),
        ("/tell", {}, "there is no arm ''"),
        ("/tell", ["tea", 1], "send a JSON object"),
        ("/ask", {"n": 0}, "n must be an integer"),
        ("/undo", {"event": 7}, "there is no event 7"),
        ("/undo", {}, "there is no result to undo"),
        ("/undo", {"event": 10**30}, "event must be an integer in [1, 9223372036854775807], got 1000"),
    ],
)
def test_what_is_wrong_is_told_and_not_recorded(session: Any, path: str, body: Any, told: str) -> None:
    reply = client(session).post(path, json=body)
    assert reply.status_code == 400
    assert told in reply.json()["error"]
    assert session.version == 0


def test_a_huge_post_is_refused(session: Any) -> None:
    web = client(session)
    assert web.post("/note", json={"text": "x" * 200_000}).status_code == 413
    deep = web.post("/note", content="[" * 90_000, headers={"content-type": "application/json"})
    assert deep.status_code == 400
    assert session.version == 0


def test_a_store_that_is_lost_while_it_serves(session: Any, tmp_path: Path) -> None:
    web = client(session)
    assert web.get("/state").status_code == 200
    (tmp_path / "a.db").unlink()
    reply = web.post("/tell", json={"arm": "tea", "value": 1})
    assert (reply.status_code, "nothing was recorded" in reply.json()["error"]) == (400, True)
    assert web.get("/state").status_code == 503


def test_who_may_read_and_write(session: Any) -> None:
    local, guarded = client(session), client(session, "secret", "http://example.org")
    for path in ("/", "/state"):
        assert local.get(path).status_code == 200
        assert client(session, None, "http://evil.example").get(path).status_code == 400  # another name of this machine
        assert guarded.get(path).status_code == 403
        assert guarded.get(f"{path}?token=wrong").status_code == 403
        assert guarded.get(f"{path}?token=secret").status_code == 200
    for host, code in (("[::1]:8765", 200), ("127.0.0.1:1", 200), ("[::1].evil.example", 400), ("[", 400), ("", 400)):
        assert local.get("/", headers={"host": host}).status_code == code, host
    assert local.get("/").headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in local.get("/").headers["content-security-policy"]
    assert guarded.get("/news").status_code == 403
    assert guarded.post("/ask", json={}).status_code == 403
    assert guarded.post("/ask?token=secret", json={}).status_code == 200
    # A form of another page could send this without being asked; JSON it cannot.
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert local.post("/ask", content='{"n": 1}', headers={"content-type": kind}).status_code == 415
    assert local.get("/ask").status_code == 405
    assert len(session.pending) == 1


def test_the_page_takes_nothing_from_elsewhere() -> None:
    assert not re.findall(r"(?:src|href|url\()\s*=?\s*[\"'(]?(?:https?:)?//", HTML)
    assert set(re.findall(r"https?://[^\"' ]+", HTML)) == {"http://www.w3.org/2000/svg"}  # a name, which nobody fetches
    assert "innerHTML" not in HTML  # names of arms are text


def test_news(session: Any) -> None:
    async def listen() -> list[str]:
        found: list[str] = []

        async def gone() -> bool:
            if len(found) == 1:
                session.ask()
            return len(found) >= 3

        async for text in page.news(session, gone, 0.001):
            found.append(text)
        return found

    assert asyncio.run(listen()) == ["data: 0\n\n", "data: 1\n\n", ": still there\n\n"]


def test_of_many_arms_some_are_shown(tmp_path: Path) -> None:
    facts = {"problem": "Threshold", "threshold": 0.5, "arms": 2000, "binary": True, "budget": 10**6}
    with agents.Session("lsa", facts, store=tmp_path / "a.db") as session:
        session.tell_all((arm, arm % 2) for arm in range(2000))
        for _ in range(3):
            session.tell(1000, 1)  # now at 3/4, with four measurements as near as others with one
        (asked,) = session.ask()
        page.state(session)
        state = page.state(session)
        assert calls(lambda: page.state(session)) < 25_000  # 14,000, of which 4,000 are for each arm twice
        assert len(state["arms"]) == page.MOST_ARMS < state["of"] == 2000
        assert {asked, state["next"]["arm"]} <= {arm["arm"] for arm in state["arms"]}
        found = page.state(session, "192")["arms"]
        assert {arm["name"] for arm in found} == {name for name in map(str, range(2000)) if "192" in name}


SERVERS: dict[str, subprocess.Popen[str]] = {}  # by address


@contextlib.contextmanager
def served(place: str | Path, *options: str, errors: int | None = None) -> Iterator[str]:
    """The address of a page that a process of its own serves; `errors`: where its errors go."""
    words = [sys.executable, "-m", "agents", "session", "serve", str(place), "--port", "0", *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()  # once it listens
        SERVERS[address] = process
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=HANG)


@pytest.mark.parametrize("port", ["99999999", "-1", "65536", str(10**30)])
def test_what_is_no_port_is_named(session: Any, port: str) -> None:
    with refused("port", "[0, 65535]", port):
        page.serve(session, port=int(port), tell=pytest.fail)


def test_a_port_that_is_taken_is_named(session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for host in ("127.0.0.1", "0.0.0.0", "localhost"):
            with pytest.raises(OSError, match=f"the port {port} of {host} is taken by another program"):
                page.serve(session, host, port, tell=pytest.fail)
        assert main(["session", "serve", str(tmp_path / "a.db"), "--port", str(port)]) == 2
        printed, errors = capsys.readouterr()
        assert printed == ""  # no address, which would be that of the other
        assert re.fullmatch(rf"bandit-envs: the port {port} of 127.0.0.1 is taken by another program: .*\n", errors)


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1", "", "x" * 300])
def test_an_address_of_another_machine_is_named(session: Any, host: str) -> None:
    with pytest.raises(OSError, match="no address"):
        page.serve(session, host, 0, tell=pytest.fail)


def broken_off(address: str, times: int, request: str) -> None:
    """Begin a request many times, and break off each time."""
    port = int(address.rpartition(":")[2].strip("/"))
    for _ in range(times):
        with socket.create_connection(("127.0.0.1", port), HANG) as line:
            line.sendall(request.format(host=f"127.0.0.1:{port}").encode())


POST = "POST /{path} HTTP/1.1\r\nhost: {{host}}\r\ncontent-type: application/json\r\n"
POST += "content-length: {length}\r\n\r\n{body}"
BROKEN_OFF = [
    *(POST.format(path=path, length=99, body='{{"arm"') for path in ("tell", "ask", "undo", "note")),
    POST.format(path="note", length=15, body='{{"text": "tea"}}'),  # all of it, but nobody waits for the answer
    POST.format(path="note", length=99, body="")[:60],
    "GET /state HTTP/1.1\r\nhost: {host}\r\n\r\n",
    "GET /news HTTP/1.1\r\nhost: {host}\r\n\r\n",
]


def test_the_command_serves_and_neither_broken_requests_nor_a_full_pipe_harm_it(session: Any, tmp_path: Path) -> None:
    import httpx

    reading, writing = os.pipe()

    def said() -> bytes:
        os.set_blocking(reading, False)
        with contextlib.suppress(BlockingIOError):
            return os.read(reading, 10**6)
        return b""

    with served(tmp_path / "a.db", errors=writing) as address:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
        assert httpx.get(address, timeout=HANG).text == HTML
        for request in BROKEN_OFF:
            broken_off(address, 3, request)
        assert set(session.history()["kind"]) <= {"note"}
        with httpx.stream("GET", address + "news", timeout=HANG) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data"))
            version = int(next(lines).removeprefix("data: "))
            session.ask()
            while version < session.version:
                version = int(next(lines).removeprefix("data: "))
        assert re.sub(rb"(note: )?compiling kernel.*\n", b"", said()) == b""
        os.set_blocking(writing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, b"x")
        os.set_blocking(writing, True)
        for request in ("no request at all\r\n\r\n", *BROKEN_OFF):  # of the first one, the server would write a line
            broken_off(address, 3, request)
            assert httpx.get(address + "state", timeout=HANG).status_code == 200
        assert set(said()) == set(b"x")
    assert said() == b""
    os.close(reading)
    os.close(writing)


def test_a_page_for_other_machines_has_a_token_and_any_port_that_is_free(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command, but for the server itself."""
    import uvicorn

    served = list[Any]()
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: served.append((self.config.app, sockets)))
    for options in (["--token", "tokens-of-mine"], []):
        assert main(["session", "serve", str(tmp_path / "a.db"), "--host", "0.0.0.0", "--port", "0", *options]) == 0
        address = capsys.readouterr().out.strip()
        plain, _, token = address.partition("?token=")
        web = web_of(served[-1][0], plain)
        assert (web.get("/").status_code, web.get(f"/?token={token}").status_code) == (403, 200)
        assert re.fullmatch(r"http://(?!0\.0\.0\.0)[^:/]+:[1-9]\d*/", plain)  # which a phone can open
        assert token == "tokens-of-mine" if options else len(token) > 20


def paged(browser: Any, width: int = 390) -> Any:
    """A page of a browser, still empty."""
    view = browser.new_page(viewport={"width": width, "height": 844})
    view.set_default_timeout(1000 * HANG)
    return view


def until(view: Any, expression: str) -> None:
    """Wait until the page has come to this. The page forbids `eval`, which Playwright's own waiting uses."""
    patience = time.monotonic() + HANG
    while not view.evaluate(expression):
        assert time.monotonic() < patience, (expression, view.inner_text("main"))
        view.wait_for_timeout(50)


@pytest.mark.parametrize("width", [1280, 390])
def test_in_a_browser(browser: Any, session: Any, tmp_path: Path, width: int) -> None:
    errors: list[str] = []
    with served(tmp_path / "a.db") as address:
        view = paged(browser, width)
        view.on("pageerror", lambda error: errors.append(str(error)))
        view.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        view.on("request", lambda request: errors.append(request.url) if address not in request.url else None)
        view.goto(address)
        until(view, "document.querySelectorAll('#chart circle').length === 0")
        view.fill("#who", "ann")
        view.fill("#n", "3")
        view.click("#ask")
        until(view, "document.querySelectorAll('.ask').length === 3")
        for name, value in (("tea", "3"), ("coffee", "8,5"), ("milk", "2.5")):
            field = view.locator(f".ask input[aria-label='result of {name}']")
            field.fill(value)
            view.click("#record")
            field.wait_for(state="detached")
        view.click("#others summary")
        for arm, value in (("juice", 7), (DRINKS[-1], 1)):  # told by another process: the page hears of it
            session.tell(arm, value)
        until(view, "document.getElementById('answer').textContent === 'coffee, juice'")
        view.wait_for_selector("#chart line[data-boundary]", state="attached")
        before = float(view.get_attribute("#chart line[data-boundary]", "data-boundary"))
        until(view, "document.querySelectorAll('#chart circle').length === 5")
        view.fill("#arm", "tea")
        view.fill("#value", "twelve")
        view.click("#other button")
        until(view, "document.getElementById('error').textContent.includes('must be a number')")
        view.fill("#value", "10")
        view.click("#other button")
        until(view, "document.getElementById('left').textContent.startsWith('6 measurements')")
        moved = float(view.get_attribute("#chart line[data-boundary]", "data-boundary"))
        assert moved > before
        shot(view, f"session-{width}")
        view.locator("#events button").first.click()
        until(view, "document.querySelectorAll('#events .undone').length === 1")
        until(view, "document.getElementById('left').textContent.startsWith('5 measurements')")
        assert float(view.get_attribute("#chart line[data-boundary]", "data-boundary")) == before
        assert view.evaluate("document.documentElement.scrollWidth") <= width  # nothing to scroll sideways
        outside = """() => [...document.querySelectorAll("button, input")].map(one => one.getBoundingClientRect())
            .filter(box => box.width && (box.left < 0 || box.right > innerWidth)).length"""
        assert view.evaluate(outside) == 0
        shot(view, f"session-{width}-undone")
        while not session.done:
            for arm in session.ask(5):
                session.tell(arm, float(np.clip(2 * arm + 1, 0, 10)))
        until(view, "document.getElementById('left').textContent.includes('the session is over')")
        assert view.is_disabled("#ask")
        shot(view, f"session-{width}-over")
        view.close()
    errors = [text for text in errors if "400 (Bad Request)" not in text]
    assert errors == []


def test_in_a_browser_with_a_token_and_many_arms(browser: Any, tmp_path: Path) -> None:
    facts = {"problem": "Threshold", "threshold": 0.5, "arms": 300, "binary": True, "budget": 5000}
    with agents.Session("lsa", facts, store=tmp_path / "b.db") as session:
        session.tell_all((arm, int(arm % 3 == 0)) for arm in range(300))
    with served(tmp_path / "b.db", "--host", "0.0.0.0") as address:
        view = paged(browser)
        view.goto(address)
        until(view, "document.getElementById('hidden').textContent.startsWith('60 of 300 options')")
        view.click("#ask")
        until(view, "document.querySelectorAll('.ask').length === 1")
        view.fill("#find", "29")
        until(view, "document.querySelectorAll('#chart g').length < 60")
        shot(view, "session-many")
        view.close()


def test_a_batch_is_recorded_as_a_whole_or_not_at_all(session: Any) -> None:
    web = client(session)
    web.post("/ask", json={"n": 3, "who": "ann"})
    first, second, third = (ask.number for ask in session.pending)

    def told(*rows: tuple[object, object], **more: Any) -> tuple[int, Any]:
        results = [{"question": question, "value": value} for question, value in rows]
        reply = web.post("/tell_all", json={"results": results, **more})
        return reply.status_code, reply.json().get("error", reply.json().get("done"))

    for rows, row in (
        ([(first, 3), (second, 11)], "row 2: a measurement must be a number in [0, 10]"),
        ([(first, "x"), (second, 1)], "row 1: a measurement must be a number"),
        ([(first, 3), (first, 3)], "row 2: no question is open for this value"),
        ([(first, 3), (99, 3)], "row 2: no question is open for this value"),
    ):
        code, error = told(*rows)
        assert (code, row in error, len(session), len(session.pending)) == (400, True, 0, 3)
    for body in ({}, {"results": 3}, {"results": [3]}, {"results": [{"question": []}]}):
        assert web.post("/tell_all", json=body).status_code == 400
    assert told((second, 8), (first, 3)) == (200, 2)
    assert told((first, 3))[0] == 400  # sent once more, as after a reply that was lost
    assert session.arms()["mean"].tolist()[:2] == [3, 8]
    assert set(session.history()["who"]) == {"ann"}  # who was asked, where another one does not say who he is
    assert told((third, 5), who="eve") == (200, 1)
    assert session.history()["who"].tolist()[-1] == "eve"


def test_a_batch_is_given_back_in_one_call_and_not_by_a_rater(session: Any) -> None:
    web = client(session)
    for n in (2, 3):
        web.post("/ask", json={"n": n, "who": "ann"})
    assert web.post("/undo?who=ann", json={"event": 1, "batch": "open"}).json() == {"done": 1}  # a single question
    assert web.post("/undo", json={"batch": "open"}).json() == {"done": 3}
    web.post("/tell", json={"question": 2, "arm": session.pending[0].arm, "value": 3})
    assert web.post("/undo", json={"event": 2, "batch": "open"}).status_code == 400
    assert web.post("/undo", json={"event": 2, "batch": "each"}).status_code == 400
    assert web.post("/undo", json={"event": 2, "batch": "all"}).json() == {"done": 2}
    assert (session.pending, len(session)) == ([], 0)


def test_files_arms_and_the_history(session: Any) -> None:
    web = client(session)

    def sent(text: bytes, **more: Any) -> Any:
        return web.post("/table", json={"name": "../last year.csv", "data": base64.b64encode(text).decode(), **more})

    assert "line 3" in sent(b"name,value\ntea,3\nmilk,12x\n").json()["error"]
    assert "/tmp" not in sent(b"name,value\ntea,3\nmilk,12x\n").json()["error"]
    for name in ("..", "", "a" * 5000, "a\0b"):
        assert web.post("/table", json={"name": name, "data": "%"}).status_code == 400
    assert session.version == 0
    table = b"name,value\ntea,3\nmilk,1\ntea,5\n"
    assert sent(table, who="ann").json() == {"done": 3}
    assert session.history()["text"].tolist() == ["from last year.csv"] * 3
    assert "again=True" in sent(table).json()["error"]
    assert sent(table, again=True).json() == {"done": 3}
    assert web.post("/undo", json={"table": "last year.csv"}).json() == {"done": 3}
    assert web.post("/add", json={"arm": "cocoa"}).json() == {"done": 5}
    assert web.post("/withdraw", json={"arm": "milk"}).status_code == 200
    assert web.get("/state").json()["question"] == "Which 2 of the 5 options are the best?"
    reply = web.get("/history.csv")
    assert reply.text == session.history().to_csv(index=False)
    assert "attachment" in reply.headers["content-disposition"]
    events = web.get("/state?events=4").json()["events"]
    assert [event["kind"] for event in events] == ["arm withdrawn", "arm added", "undone", "undone"]
    assert all(event["at"].endswith("+00:00") for event in events)
    assert web.get("/state?events=x").status_code == web.get("/state?events=0").status_code == 503


def test_the_end_is_a_measurement(tmp_path: Path) -> None:
    facts = {"problem": "BestArm", "arms": 2, "sigma": 1, "delta": 0.1}
    with agents.Session("evidence", facts, store=tmp_path / "e.db") as session:
        while not session.done:
            session.tell_all([(arm, 3 * int(arm)) for arm in session.ask(2)])
        ended = len(session)
        session.tell(0, 0)
        assert (session.ended, page.state(session)["ended"], len(session)) == (ended, ended, ended + 1)


DYES = {"problem": "Threshold", "threshold": 50, "tolerance": 5, "range": (-20, 130), "delta": 0.05}
DYES |= {"title": "Which dyes bind?", "unit": "mg / l", "noun": "dye", "arms": [f"dye {x}" for x in "ABCDEFGHIJKL"]}
PASTE = """text => {
    const data = new DataTransfer();
    data.setData("text", text);
    const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    document.activeElement.dispatchEvent(event);
}"""
FIELDS = "[...document.querySelectorAll('.ask input')].map(one => one.value)"
FOCUS = "document.activeElement.getAttribute('aria-label') || document.activeElement.id"


@contextlib.contextmanager
def viewed(browser: Any, address: str, width: int = 1280) -> Iterator[Any]:
    """A page in a browser, which has no error of its own in the end, and nothing to scroll sideways."""
    errors: list[str] = []
    view = paged(browser, width)
    view.on("pageerror", lambda error: errors.append(str(error)))
    view.goto(address)
    until(view, "document.getElementById('title').textContent !== 'Session'")
    yield view
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    view.close()
    assert errors == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_plate_by_keyboard_alone(browser: Any, tmp_path: Path, width: int) -> None:
    with (
        agents.Session("evidence", DYES, store=tmp_path / "d.db", public_seed=1) as session,
        served(tmp_path / "d.db") as address,
        viewed(browser, address, width) as view,
    ):
        assert view.inner_text("h1") == "Which dyes bind?"
        assert "12 dyes have a mean of 50 mg / l or more? Those within 5 mg / l" in view.inner_text("#question")
        assert view.inner_text("#answer") == "none yet, as nothing has been measured"
        press = view.keyboard.press
        for _ in range(20):  # the words that are explained, then the button
            press("Tab")
            if view.evaluate(FOCUS) == "ask":
                break
        press("Tab")
        view.keyboard.type("24")
        press("Enter")
        until(view, "document.querySelectorAll('.ask').length === 12")  # each twice
        assert view.inner_text(".ask b").strip() == "dye A × 2"
        until(view, "document.activeElement.getAttribute('aria-label')?.startsWith('result of dye A')")
        for i in range(12):
            view.keyboard.type(f"{20 + 5 * i},5 {21 + 5 * i}")
            session.note(f"news {i}")  # the page is told of it meanwhile, and the focus stays
            press("Enter")
        assert view.evaluate(FOCUS) == "record"
        press("Shift+Tab")
        press("End")
        view.keyboard.type(" 999")
        press("Enter")
        press("Enter")
        until(view, "document.activeElement.getAttribute('aria-invalid') === 'true'")
        assert "no question is open for this value" in view.inner_text(".wrong:not(:empty)")
        for _ in range(4):
            press("Backspace")
        view.keyboard.type("0")  # 760 is beyond the range
        press("Enter")
        press("Enter")
        until(view, "document.activeElement.getAttribute('aria-invalid') === 'true'")
        assert "[-20, 130]" in view.inner_text("#error")
        assert (len(session), view.evaluate(FOCUS)) == (0, "result of dye L, up to 2 values with blanks between")
        assert "[-20, 130]" in view.inner_text(".wrong:not(:empty)")
        press("End")
        press("Backspace")
        press("Enter")
        press("Enter")
        until(view, "document.getElementById('status').textContent === '24 results recorded.'")
        until(view, "document.activeElement.id === 'ask'")
        assert len(session) == 24
        means = [20.75 + 5 * i for i in range(12)]
        assert session.arms()["mean"].tolist() == pytest.approx(means)
        for _ in range(2):
            press("Shift+Tab")  # from the button to the words above it
        press("Enter")
        until(view, "document.getElementById('word').open")
        assert (view.inner_text("#term"), "so far" in view.inner_text("#sense")) == ("answer", True)
        press("Escape")
        until(view, "!document.getElementById('word').open")
        assert view.evaluate("document.activeElement.className") == "word"


def test_what_is_pasted_from_a_spreadsheet(browser: Any, tmp_path: Path) -> None:
    with agents.Session("evidence", DYES, store=tmp_path / "d.db", public_seed=1) as session:
        session.ask(24)
        with served(tmp_path / "d.db") as address, viewed(browser, address) as view:
            until(view, "document.querySelectorAll('.ask').length === 12")

            def pasted(text: str, field: int = 0) -> list[str]:
                for i in range(12):
                    view.locator(".ask input").nth(i).fill("")
                view.locator(".ask input").nth(field).focus()
                view.evaluate(PASTE, text)
                return list(view.evaluate(FIELDS))

            plate = [[10 * row + column for column in range(1, 9)] for row in range(3)]
            block = "\r\n".join("\t".join(map(str, row)) for row in plate) + "\r\n"
            pairs = ["1 2", "3 4", "5 6", "7 8", "11 12", "13 14", "15 16", "17 18", "21 22", "23 24", "25 26", "27 28"]
            assert pasted(block) == pairs
            heads = "\t" + "\t".join("12345678") + "\n"
            labelled = heads + "".join("ABC"[i] + "\t" + "\t".join(map(str, row)) + "\n" for i, row in enumerate(plate))
            assert pasted(labelled) == pairs
            assert pasted("1\n2\n3\n\n5\n", 9) == [""] * 9 + ["1 2", "3", "5"]
            named = pasted("dye\tvalue\ndye L\t7,5\ndye A\t3\ndye L\t8\nno dye\t4\n")
            assert named == ["3", *[""] * 10, "7,5 8"]
            assert view.inner_text("#error") == "No open question is about: no dye"
            assert pasted("7", 3) == [""] * 12  # one cell is left to the browser
            pasted("1\n2\n3", 11)
            assert view.inner_text("#error") == "1 value more than fields."
            pasted(block)
            view.click("#record")
            until(view, "document.getElementById('status').textContent === '24 results recorded.'")
            assert session.arms()["mean"].tolist() == [np.mean(list(map(int, pair.split()))) for pair in pairs]
            view.click("#others summary")
            data = b"name,value\ndye A,3\ndye B,4\ndye B,5\n"
            view.set_input_files("#file", {"name": "more.csv", "mimeType": "text/csv", "buffer": data})
            until(view, "document.getElementById('status').textContent === '3 results of more.csv recorded.'")
            view.on("dialog", lambda dialog: dialog.accept())
            view.set_input_files("#file", {"name": "more.csv", "mimeType": "text/csv", "buffer": data})
            until(view, "document.getElementById('left').textContent.startsWith('30 measurements')")
            view.get_by_role("button", name="undo file of event").first.click()
            until(view, "document.getElementById('left').textContent.startsWith('27 measurements')")


def test_counts_of_many_equal_questions(browser: Any, tmp_path: Path) -> None:
    facts = {"problem": "Threshold", "threshold": 0.5, "arms": ["A", "B"], "binary": True, "budget": 1000}
    with agents.Session("uniform", facts, store=tmp_path / "c.db") as session:
        session.ask(405)
        with served(tmp_path / "c.db") as address, viewed(browser, address, 390) as view:
            until(view, "document.querySelectorAll('.ask').length === 2")
            assert view.inner_text(".ask b").strip() == "A × 203"
            view.locator(".ask input").first.fill("160/200")
            view.locator(".ask input").nth(1).fill("1 0, true")
            view.click("#record")
            until(view, "document.getElementById('status').textContent === '203 results recorded.'")
            arms, told = session.arms(), session.history()
            assert (arms["pulls"].tolist(), arms["mean"].tolist()) == ([200, 3], [0.8, pytest.approx(2 / 3)])
            ones = told[(told["kind"] == "told") & (told["name"] == "A")]["value"].to_numpy()
            assert 10 < ones[:100].sum() - 60 < 30  # in no order: false alarms below 1e-3, and all ones first give 40


def test_a_server_that_is_killed_and_begins_again(browser: Any, tmp_path: Path) -> None:
    with agents.Session("evidence", DYES, store=tmp_path / "d.db", public_seed=1) as session:
        session.ask(3)
        with served(tmp_path / "d.db") as address, viewed(browser, address) as view:
            until(view, "document.querySelectorAll('.ask').length === 3")
            view.locator(".ask input").first.fill("55")
            SERVERS[address].kill()
            SERVERS[address].wait()
            view.click("#record")
            until(view, "document.getElementById('error').textContent.includes('does not answer')")
            with served(tmp_path / "d.db", "--port", re.findall(r":(\d+)/", address)[0]):
                until(view, "document.getElementById('error').textContent === ''")
                assert view.evaluate(FIELDS) == ["55", "", ""]
                view.click("#record")
                until(view, "document.getElementById('status').textContent === '1 result recorded.'")
        assert session.arms()["pulls"].sum() == 1


PERFUMES = ["Rose Royale", "Cedar No. 5", "Amber Nights", "Sea Salt"]
PANEL = {"problem": "BestArm", "arms": PERFUMES, "range": (0, 10), "budget": 24, "blind": True, "repeats": 3}
PANEL |= {"raters": ["ann", "bob & co"], "title": "Which scent?", "noun": "scent"}


def test_a_rater_sees_own_questions_by_codes_alone(tmp_path: Path) -> None:
    with agents.Session("uniform", PANEL, store=tmp_path / "p.db", public_seed=7) as session:
        owner = client(session, "secret", "http://example.org")
        link = owner.get("/link?name=bob+%26+co&token=secret").json()["link"]
        bob, ann = link[1:], owner.get("/link?name=ann&token=secret").json()["link"][1:]
        assert "secret" not in bob + ann
        session.ask(2, "ann")
        assert owner.post(f"/ask?{bob}", json={"n": 2, "who": "ann"}).json() == {"done": [3, 4]}
        for key in (bob.replace("bob", "rob"), bob.replace("who=bob", "who=ann"), bob.split("&")[-1], "token="):
            assert owner.get(f"/state?{key}").status_code == 403
        for path in ("add", "withdraw", "table", "tell"):
            assert owner.post(f"/{path}?{bob}", json={"arm": 0, "value": 1}).status_code == 403
        assert owner.get(f"/history.csv?{bob}").status_code == owner.get(f"/link?name=eve&{bob}").status_code == 403
        assert owner.get(f"/?{bob}").status_code == owner.get(f"/news?{ann[:-1]}").status_code - 203 == 200

        def seen(of: str) -> Any:
            text = owner.get(f"/state?{of}").text
            assert session.done or not any(name in text for name in PERFUMES)
            return json.loads(text)

        asks = seen(bob)["pending"]
        assert [ask["name"] for ask in asks] == [ask.code for ask in session.pending if ask.who == "bob & co"]
        assert {"arm", "least", "certificate", "arms", "answer"} & {*seen(bob), *asks[0]} == {"answer"}
        others = [ask.number for ask in session.pending if ask.who == "ann"]
        for wrong in ([{"question": others[0], "value": 3}], [{"question": asks[0]["event"], "value": 33}]):
            reply = owner.post(f"/tell_all?{bob}", json={"results": wrong})
            assert (reply.status_code, len(session)) == (400, 0)
            assert not any(name in reply.text for name in PERFUMES)
        results = [{"question": ask["event"], "value": 3 + i} for i, ask in enumerate(asks)]
        assert owner.post(f"/tell_all?{bob}", json={"results": results, "who": "ann"}).json() == {"done": 2}
        assert set(session.history()["who"][4:]) == {"bob & co"}
        session.tell(session.pending[0], 9)
        assert (seen(bob)["count"], seen(ann)["count"], seen(ann)["answer"]) == (2, 1, [])
        marks = [owner.get(f"/state?{of}").text for of in (ann, bob)]  # a time of day may hold 9.0, but not [9.0]
        assert ["[9.0]" in one for one in marks] == [True, False]  # marks of others
        mine = seen(bob)["events"][0]
        assert owner.post(f"/undo?{ann}", json={"event": mine["event"]}).status_code == 400
        for event in (others[1], None, 99, "x"):  # of ann, none, and what there is not
            assert owner.post(f"/undo?{bob}", json={"event": event, "table": "a.csv"}).status_code == 400
        assert owner.post(f"/undo?{bob}", json={"event": mine["event"]}).status_code == 200
        while not session.done:
            for who in PANEL["raters"]:
                session.ask(12, who)
            session.tell_all([(ask, 2 * ask.arm) for ask in session.pending])
        assert seen(bob)["answer"] == ["Sea Salt"]
        assert PERFUMES[0] in owner.get("/state?token=secret").text


def test_two_raters_on_phones_at_once(browser: Any, tmp_path: Path) -> None:
    with (
        agents.Session("uniform", PANEL, store=tmp_path / "p.db", public_seed=7) as session,
        served(tmp_path / "p.db", "--host", "0.0.0.0") as address,
        viewed(browser, address) as owner,
    ):
        owner.click("#more details summary")
        owner.fill("#rater", "guest")
        owner.keyboard.press("Enter")
        until(owner, "document.querySelectorAll('#links a').length === 3")
        links = owner.evaluate("[...document.querySelectorAll('#links a')].map(one => one.textContent)")
        assert address.partition("?")[0] in links[0]
        with viewed(browser, links[0], 390) as ann, viewed(browser, links[1], 390) as bob:
            for _ in range(3):
                for view in (ann, bob):
                    view.fill("#n", "4")
                    view.click("#ask")
                for i, view in enumerate((ann, bob)):
                    until(view, "document.querySelectorAll('.ask').length === 4")
                    assert not any(name in view.inner_text("main") for name in PERFUMES)
                    assert not any(map(view.is_visible, ("#arms", "#others", "#who", "#bar")))
                    mine = [ask for ask in session.pending if ask.who == PANEL["raters"][i]]
                    codes = view.locator(".ask b").all_inner_texts()
                    assert [text.strip() for text in codes] == [ask.code for ask in mine]
                    for j, ask in enumerate(mine):
                        view.locator(".ask input").nth(j).fill(str(2 * ask.arm))
                    shot(view, f"rater-{i}")
                for view in (ann, bob):
                    view.click("#record")
                for view in (ann, bob):
                    until(view, "document.querySelectorAll('.ask').length === 0")
            for view in (ann, bob):
                until(view, "document.getElementById('answer').textContent === 'Sea Salt'")
                assert "12 results so far" in view.inner_text("#facts")
            assert session.history()["who"].value_counts().tolist() == [24, 24]
        until(owner, "document.getElementById('left').textContent.includes('the session is over')")
        assert owner.locator("#table").is_visible()


def test_claims_and_axes(browser: Any, tmp_path: Path) -> None:
    """Arms that are certain are marked, axes fit the means, and bars that end beyond them have arrows."""
    with agents.Session("uniform", {**PANEL, "raters": None}, store=tmp_path / "p.db") as session:
        for _ in range(5):
            session.tell_all([(arm, 4 + arm / 3) for arm in range(4)])
        assert page.state(session)["settled"] in (None, 0)
    with served(tmp_path / "p.db") as address:
        view = paged(browser)

        def claimed(route: Any) -> None:
            reply = route.fetch()
            state = reply.json() | {"settled": 2}
            for arm, claim in zip(state["arms"], ("out", "open", "open", "in"), strict=True):
                arm["claim"] = claim
            route.fulfill(response=reply, json=state)

        view.route("**/state*", claimed)
        view.goto(address)
        until(view, "document.querySelectorAll('#chart circle').length === 4")
        names = view.locator("#chart g > text:first-child").all_text_contents()
        assert [name.startswith("✓") for name in names] == [True, False, False, True]
        assert "2 scents of 4 already certain" in view.inner_text("#left")
        arrows = view.evaluate("[...document.querySelectorAll('[data-arrow]')].map(one => one.dataset.arrow)")
        assert sorted(arrows) == ["high"] * 4 + ["low"] * 4
        inside = """() => [...document.querySelectorAll("#chart circle, #chart path")]
            .map(one => one.getBoundingClientRect()).every(box => box.left >= 0 && box.right <= innerWidth)"""
        assert view.evaluate(inside)
        view.click("#tabled summary")
        assert "already certain" in view.inner_text("#table")
        view.get_by_role("button", name="already certain").first.click()
        assert "can be used now" in view.inner_text("#sense")
        shot(view, "claims")
        view.close()


def test_a_lost_plate_and_the_table_of_all_arms(browser: Any, tmp_path: Path) -> None:
    facts = {"problem": "Threshold", "threshold": 50, "arms": 61, "range": (0, 20000), "delta": 0.05, "plate": 96}
    with agents.Session("uniform", facts, store=tmp_path / "p.db", public_seed=1) as session:
        session.tell_all([(ask, 12078 if i < 61 else 12345.678) for i, ask in enumerate(session.ask(96))])
        session.ask(4)
        with served(tmp_path / "p.db") as address, viewed(browser, address, 1280) as view:
            until(view, "document.querySelectorAll('.ask').length === 4")
            assert [text.split(maxsplit=1)[1] for text in view.locator(".ask b").all_inner_texts()] == [
                f"A{n} of plate 2" for n in range(1, 5)
            ]
            assert view.locator("#chart circle").count() >= page.MOST_ARMS
            assert view.locator("#table tr").count() == 1 + page.MOST_ARMS
            view.click("#tabled summary")
            until(view, "document.querySelectorAll('#table tr').length === 62")
            assert "12078" in view.inner_text("#table")
            assert "12211.8" in view.inner_text("#table")  # the mean of two results, not 12210
            assert "the table has all" in view.inner_text("#hidden")
            assert view.input_value("#plate") == "2"
            view.fill("#plate", "1")
            with view.expect_download() as found:
                view.click("#map")
            assert Path(found.value.path()).read_text().startswith("plate 1,1,2,3")
            shot(view, "plate")
            asked = list[str]()
            for answer in (False, True):

                def said(one: Any, done: bool = answer) -> None:
                    asked.append(one.message)
                    one.accept() if done else one.dismiss()

                view.once("dialog", said)
                view.get_by_role("button", name="Undo this plate").click()
                until(view, f"document.getElementById('status').textContent === '{'192 events undone.' * answer}'")
            assert asked == ["Undo plate 1, all its results and questions?"] * 2
            assert (len(session), [ask.plate for ask in session.pending]) == (0, [2] * 4)


@pytest.mark.parametrize("token", ["short", "eleven-long", "a b c d e f g", "", "ä" * 12, "x" * 101])
def test_what_is_no_token_is_named(session: Any, token: str) -> None:
    with pytest.raises(ValueError, match="a token has 12 to 100 letters, digits, - or _, got '"):
        page.serve(session, token=token, tell=pytest.fail)
