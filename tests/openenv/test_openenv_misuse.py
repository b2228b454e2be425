"""What is not meant for the server gets 4xx or a frame of an error, and the next request is served."""

from __future__ import annotations

import json
import random
import socket as sockets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.usefixtures("openenv")
GOOD: dict[str, Any] = {"problem": "TopK", "instance": "sampler(arms=4)", "k": 1, "budget": 20, "seed": 3}
DEEP = "[" * 3000 + "]" * 3000
SETTINGS: list[dict[str, Any]] = [  # what `reset` does not take
    {"problem": "NoSuch"},
    {"problem": "os:system"},
    {"problem": "bandit_envs.problems.top_k:TopK"},
    {"problem": ["TopK"]},
    {"problem": None},
    {"problem": {"TopK": 1}},
    {"k": 0},
    {"k": 99},
    {"k": "two"},
    {"k": [1]},
    {"budget": 0},
    {"budget": -5},
    {"budget": 10**7},
    {"budget": 10**17},
    {"budget": 2.5},
    {"budget": "all"},
    {"budget": True},
    {"budget": {"a": 1}},
    {"delta": 2},
    {"delta": "x", "budget": None},
    {"max_pulls": 10**8, "budget": None, "delta": 0.1},
    {"batch": 10**6},
    {"delay": "exponential(1e9)"},
    {"delay": 10**6},
    {"delay": "exponential(x)"},
    {"delay": "exponential(1_000_000)"},
    {"batch": "1" * 40},
    {"cost": [1, 2]},
    {"cost": "row"},
    {"pull_cost": -1},
    {"reward": "gain"},
    {"salt": -1},
    {"actions": "arm"},
    {"observation": "history"},
    {"render_mode": "human"},
    {"ranked": True},
    {"stop": False},
    {"self": 1},
    {"func": 1},
    {"session_id": "a"},
    {"": 1},
    {"options": {"episode": 1}},
    {"story": "novel"},
    {"view": 3},
    {"tool_calls": "yes"},
    {"patience": 0},
    {"patience": 1e300},
    {"seed": -1},
    {"seed": 10**12},
    {"seed": 1.5},
    {"seed": [1]},
    {"episode": -1},
    {"episode": "last"},
    {"episode_id": "x" * 300},
    {"split": "test", "index": 10**6},
    {"split": "test", "index": -1},
    {"split": "exam", "index": 0},
    {"split": ["test"], "index": 0},
    {"index": 0},
    {"split": "test"},
    {"instance": "sampler(arms=100000000)"},
    {"instance": "sampler(arms=1000, dimensions=1000)", "problem": "Feasible"},
    {"instance": "sampler(arms=1000, dimensions=1000)"},
    {"instance": "sampler(arms=0)"},
    {"instance": "sampler(dimensions='9999')"},
    {"instance": "polyhedra(dimensions=50)", "problem": "Feasible", "k": None},
    {"instance": {"distribution": "gaussian", "mean": [[0.1] * 50] * 3}},
    {"instance": "sampler(arms=__import__('os').getcwd())"},
    {"instance": "sampler(distribution='os:system')"},
    {"instance": "sampler(" + "(" * 900},
    {"instance": "score-tables(K=1000, N=1000)", "problem": "BestArm"},
    {"instance": "chen2017-uniform(n=50000)"},
    {"instance": "os:getcwd"},
    {"instance": "bandit_envs:captions"},
    {"instance": "table(path='/etc/passwd')"},
    {"instance": {"table": {"path": "/etc/passwd"}}},
    {"instance": "captions-651(folder='/etc')"},
    {"instance": "real-prompts(folder='etc')"},
    {"instance": {"pools": {"pools": "/etc/passwd"}}},
    {"instance": {"pools": {"pools": ["table(path='/etc/passwd')"]}}},
    {"instance": {"pools": {"pools": [{"table": {"path": "/etc/passwd"}}]}}},
    {"instance": {"varied": {"instance": {"table": {"path": "/etc/passwd"}}}}},
    {
        "instance": {
            "varied": {"instance": {"varied": {"instance": {"varied": {"instance": {"varied": {"instance": 1}}}}}}}
        }
    },
    {"instance": {"os:system": {"command": "ls"}}},
    {"instance": {"distribution": "os:system", "mean": [0.1, 0.2]}},
    {"instance": {"law": "os:system", "mean": [0.1, 0.2]}},
    {"instance": {"distribution": "bernoulli", "mean": [2.0, 0.1]}},
    {"instance": {"distribution": "bernoulli", "mean": [0.5] * 20_000}},
    {"instance": {"distribution": "bernoulli", "mean": "0.5"}},
    {"instance": {"distribution": "bernoulli"}},
    {"instance": {"distribution": "gaussian", "mean": [1e17, 0.0]}},
    {"instance": {}},
    {"instance": []},
    {"instance": 7},
    {"instance": "no-such"},
    {"instance": "x" * 5000},
]
BODIES = {  # what is no JSON that can be read back
    "nothing": "",
    "half": '{"problem": ',
    "no object": "[1, 2]",
    "a number": "3",
    "null": "null",
    "deep": '{"problem": ' + DEEP + "}",
    "deeper than frames": '{"problem": ' + "[" * 40 + "]" * 40 + "}",
    "NaN": '{"budget": NaN}',
    "infinite": '{"budget": 1e999}',
    "-Infinity": '{"budget": -Infinity}',
    "huge integer": '{"budget": 1' + "0" * 6000 + "}",
    "large integer": '{"seed": 1' + "0" * 30 + "}",
    "half a character": r'{"problem": "\ud800"}',
    "no UTF-8": b'{"problem": "\xff\xfe"}',
    "too long": '{"problem": "' + "x" * 70_000 + '"}',
}


@pytest.fixture
def talk(server: str) -> Iterator[Callable[..., dict[str, Any]]]:
    """Send a frame, as text or bytes or an object, and return the answer."""
    from websockets.sync.client import connect

    with connect(server.replace("http", "ws") + "/ws") as socket:

        def answered(frame: Any) -> dict[str, Any]:
            socket.send(frame if isinstance(frame, (str, bytes)) else json.dumps(frame))
            return json.loads(socket.recv(timeout=60))

        yield answered


def reset(data: Any) -> dict[str, Any]:
    return {"type": "reset", "data": data}


def step(text: Any) -> dict[str, Any]:
    return {"type": "step", "data": {"text": text}}


def test_settings_that_are_not_taken_are_refused_on_both_ways(http: httpx.Client, talk: Any) -> None:
    assert talk(reset(GOOD))["type"] == "observation"
    first = talk(step("PULL"))["data"]
    for wrong in SETTINGS:
        answer = talk(reset({**GOOD, **wrong}))
        assert answer["type"] == "error", (wrong, answer)
        assert len(json.dumps(answer)) < 2500, wrong
        response = http.post("/reset", json={**GOOD, **wrong})
        assert 400 <= response.status_code < 500, (wrong, response.text)
        assert "root:" not in response.text + json.dumps(answer), wrong
    assert talk(step("PULL"))["data"] == {**first, "reward": 0.0}  # the episode of before goes on
    assert talk({"type": "state"})["data"]["step_count"] == 2
    assert http.post("/reset", json=GOOD).status_code == 200


@pytest.mark.parametrize("what", BODIES)
def test_what_is_no_json_is_refused_on_both_ways(http: httpx.Client, talk: Any, what: str) -> None:
    body = BODIES[what]
    for path in ("/reset", "/step", "/pure_exploration/task"):
        response = http.post(path, content=body, headers={"content-type": "application/json"})
        fine = (path, what) == ("/reset", "nothing")  # the body may be left out
        assert response.status_code == 200 if fine else 400 <= response.status_code < 500, (path, response.text)
    for frame in (body, f'{{"type": "reset", "data": {body}}}' if isinstance(body, str) else body):
        assert talk(frame)["type"] == "error", frame[:80]
    assert talk(reset(GOOD))["type"] == "observation"
    assert talk(step("PULL"))["type"] == "observation"


def test_frames_of_other_forms_are_refused(talk: Any) -> None:
    frames: list[Any] = [{}, {"type": "fly"}, {"type": ["reset"]}, {"type": None}, {"type": "reset", "data": [1]}]
    frames += [{"type": "reset", "data": {}, "more": 1}, {"type": "step"}, {"type": "step", "data": {}}]
    frames += [{"type": "state", "data": 1}, {"type": "step", "data": {"text": "PULL", "more": 1}}, "7", "null", '"a"']
    frames += [step(wrong) for wrong in (None, 3, True, ["PULL"], {"a": 1}, "x" * 20_000)]
    frames += [{"type": "step", "data": {"text": "PULL", "metadata": 3}}]
    for begun in (False, True):
        for frame in frames:
            assert talk(frame)["type"] == "error", frame
        if not begun:
            assert talk(step("PULL"))["data"]["message"].startswith("there is no episode: reset first")
            assert talk({"type": "state"})["data"] == {"episode_id": None, "step_count": 0}
            assert talk(reset({**GOOD, "episode_id": "mine"}))["type"] == "observation"
    assert talk({"type": "state"})["data"] == {"episode_id": "mine", "step_count": 0}


def test_replies_that_cannot_be_read_are_messages_and_an_ended_episode_is_over(talk: Any) -> None:
    opening = talk(reset(GOOD))["data"]["observation"]["message"]
    assert "There are 4 buttons" in opening
    for wrong in ("", "\x00", "PULL " + "9" * 4000, "\U0001f600" * 100, "ANSWER all of them", "PULL a b c"):
        talk(reset(GOOD))
        answer = talk(step(wrong))
        assert answer["type"] == "observation", wrong
        assert answer["data"]["done"] is False
    for i in range(3):
        talk(reset(GOOD)) if i == 0 else None
        answer = talk(step("?"))["data"]
        assert (answer["done"], answer["reward"]) == (i == 2, 0.0)
    over = talk(step("PULL"))
    assert (over["type"], over["data"]["message"]) == ("error", "the episode has ended: reset first")
    assert talk(reset(GOOD))["data"]["observation"]["message"] == opening


PATHS = "/ /ws /reset /step /state /schema /nothing /../etc/passwd /%2e%2e/x /pure_exploration/tasks /mcp /docs"


def test_paths_and_methods_that_are_not_there_get_4xx(http: httpx.Client) -> None:
    assert http.post("/step", json={"action": {"text": "PULL"}}).status_code == 409
    name = "/pure_exploration"
    bodies: list[Any] = [
        {},
        {"split": "exam"},
        {"split": 3},
        {"split": "test", "index": 10**9},
        {"split": "test", "index": -1},
    ]
    for body in bodies:
        assert 400 <= http.post(f"{name}/task", json=body).status_code < 500, body
    for path in ("tasks", "num_tasks", "task_range"):
        assert 400 <= http.post(f"{name}/{path}", json={"split": "exam"}).status_code < 500
    assert http.get("/other/splits").status_code == 404
    for path in PATHS.split():
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "FLY"):
            response = http.request(method, path, content=b"{}" if method == "POST" else None)
            assert response.status_code < 500, (method, path)
            if path in ("/", "/ws", "/nothing") or method in ("PUT", "PATCH", "DELETE", "FLY"):
                assert response.status_code in (404, 405), (method, path)
    form = http.post("/reset", data={"problem": "TopK"})
    assert 400 <= form.status_code < 500
    assert http.get("/health").json() == {"status": "healthy"}


def test_a_session_too_many_and_a_connection_that_breaks_off(server: str, http: httpx.Client) -> None:
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.client import connect

    address = server.replace("http", "ws")
    with pytest.raises(InvalidStatus), connect(f"{address}/nothing"):
        pass
    with connect(f"{address}/ws?session_id=mine") as socket:
        assert json.loads(socket.recv())["type"] == "error"
    for _ in range(20):  # half a request, half a session
        with sockets.create_connection(("127.0.0.1", int(server.rpartition(":")[2]))) as raw:
            raw.sendall(b"POST /reset HTTP/1.1\r\ncontent-length: 50\r\n\r\n{")
        with connect(f"{address}/ws") as socket:
            socket.send(json.dumps(reset(GOOD)))
            socket.socket.close()
    with ExitStack() as stack:

        def code() -> str | None:
            socket = stack.enter_context(connect(f"{address}/ws"))
            with suppress(ConnectionClosed):  # where it is one too many the server says so at once, and ends it
                socket.send('{"type": "state"}')
            return json.loads(socket.recv(timeout=60))["data"].get("code")

        codes = [code() for _ in range(101)]
        assert {*codes} == {None, "CAPACITY_REACHED"}
        assert codes[-1] == "CAPACITY_REACHED"  # the server has 100, and maybe sessions whose end it has not seen
    assert http.get("/health").status_code == 200
    for _ in range(100):  # until the server has seen the end of these
        with connect(f"{address}/ws") as socket:
            with suppress(ConnectionClosed):
                socket.send('{"type": "state"}')
            if "code" not in json.loads(socket.recv(timeout=60))["data"]:
                return
    pytest.fail("the sessions have ended, and there is no place for another")


NAMES = """problem instance budget delta max_pulls pull_cost reward shuffle_arms salt batch delay cost story view
threshold tolerance epsilon multiplicative slack k criterion A b normalise control margin lift guardrails expected
tool_calls patience seed episode split index episode_id"""


@pytest.mark.parametrize("count", [200, 3000], ids=["sample", "many"])
def test_whatever_is_drawn_is_answered(talk: Any, count: int) -> None:
    """Settings drawn from values of all kinds: an observation or an error, never the end of the connection."""
    draw = random.Random(count)
    numbers = [0, 1, -1, 2, 3, 0.5, 1e-300, 1e300, 10**17, 0.1, 999, 100.0]
    values: list[Any] = [*numbers, None, True, False, "", "a", "1", [], {}, [1, 2], [[1.0, 0.0]], {"a": 1}, "row"]
    values += ["sampler(arms=3)", "polyhedra", "ab-tests", "prompt-selection", "score-tables(K=4, N=20)", "tao2019-1"]
    values += [{"distribution": "gaussian", "mean": [0.1, 0.2]}, {"sampler": {"arms": 3, "dimensions": 2}}]
    names = NAMES.split()
    problems = ["Threshold", "AllGood", "TopK", "Feasible", "BestArm", "BetterThanControl"]
    begun = 0
    for _ in range(count):
        data = {draw.choice(names): draw.choice(values) for _ in range(draw.randrange(4))}
        if draw.random() < 0.9:
            data["problem"] = draw.choice(problems)
        answer = talk(reset(data))
        assert answer["type"] in ("observation", "error"), data
        assert answer["data"].get("code") in (None, "EXECUTION_ERROR"), data
        begun += answer["type"] == "observation"
        if answer["type"] == "observation":
            assert talk(step("PULL 3"))["type"] == "observation", data
    assert begun > count / 20
