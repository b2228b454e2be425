"""The parts of the server that need no OpenEnv: what settings, texts and tasks it takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bandit_envs.text import LONGEST

Part = Callable[[str], ModuleType]


def test_a_setting_opens_its_environment(part: Part) -> None:
    opened = part("settings").opened
    view = opened("TopK", {"instance": "sampler(arms=5)", "k": 2, "budget": 40, "story": "assays", "view": "raw"})
    assert (view.narrator.task.K, view.narrator.task.budget, view.narrator.view) == (5, 40, "raw")
    for settings in part("tasks").SETTINGS:
        given = {**settings}
        message, _ = opened(given.pop("problem"), given).reset(seed=1)
        assert "The last line of your reply is one command" in message
    forms: list[Any] = [
        {"varied": {"instance": "tao2019-1"}},
        {"pools": {"pools": [[0.1, 0.2], [0.3, 0.4]], "arms": 2}},
    ]
    for instance in (*forms, "ab-tests", {"distribution": "bernoulli", "mean": [0.1, 0.2]}, None):
        opened("BestArm", {"instance": instance}).reset(seed=1)


def test_an_episode_always_ends(part: Part) -> None:
    """With a budget of its own, and else after so many pulls."""
    settings = part("settings")
    for given, most in (
        (dict(budget=9), None),
        (dict(delta=0.1), settings.MOST_PULLS),
        (dict(delta=0.1, max_pulls=7), 7),
    ):
        assert settings.opened("BestArm", given).narrator.task.max_pulls == most
    cheap = settings.opened("BestArm", {"instance": "sampler(arms=2)", "budget": 5, "cost": [1e-9, 1.0]})
    assert cheap.narrator.task.max_pulls == settings.MOST_PULLS


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"instance": "os:getcwd"}, "instance must be one of ab-tests, .*, got 'os:getcwd'"),
        ({"instance": {"distribution": "os:system", "mean": [0, 1]}}, "have a distribution, a name of this package"),
        ({"instance": "sampler(distribution='os:system')"}, "distribution of the instance sampler must be a word"),
        ({"instance": {"table": {"path": "/etc/passwd"}}}, "instance must be one of .* got 'table'"),
        ({"instance": "kinase-acvrl1(folder='here')"}, "takes no parameter, got 'folder'"),
        ({"instance": "sampler(arms=10000)"}, "numbers of the instance sampler must be within 1,000, got 10000"),
        ({"instance": "sampler(dimensions=21)"}, "dimensions must be at most 20, got 21"),
        ({"instance": "score-tables(K=200, N=1000)"}, "must be at most 100,000, got 200,000"),
        ({"budget": 10**6 + 1}, "numbers of settings must be within 1,000,000, got 1000001"),
        ({"delay": "exponential(10001)"}, "delay must be at most 10,000"),
        ({"actions": "full"}, "BestArm takes epsilon, .*, patience, got 'actions'"),
        ({"k": 2}, "got 'k'"),
        ({"cost": [[[[[[[[[1]]]]]]]]]}, "nest at most 8 deep"),
        ({"cost": [1.0] * 10_001}, "at most 10,000 entries"),
        ({"story": "x" * 2001}, "at most 2,000 characters"),
        ({"view": "film"}, "view must be one of"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_what_is_refused_says_what_is_allowed(part: Part, given: dict[str, Any], said: str) -> None:
    with pytest.raises(part("settings").Refused, match=said):
        part("settings").opened("BestArm", given)


def test_problems_are_those_of_the_package(part: Part) -> None:
    for wrong in ("NoSuch", "os:system", 3, None, ["TopK"]):
        with pytest.raises(part("settings").Refused, match="problem must be one of "):
            part("settings").opened(wrong, {})


def test_texts_that_cannot_be_read_back_are_found(part: Part) -> None:
    fault = part("door").fault
    for fine in ('{"a": [1, 2.5, null, true, "\u00e9"]}', "3", "[1]", "[" * 16 + "]" * 16, '"' + "x" * 60_000 + '"'):
        assert fault(fine) is None
    long, deep = "1" * 19, "[" * 17 + "]" * 17
    for wrong in (
        "",
        "{",
        "NaN",
        "1e999",
        "-Infinity",
        long,
        f"[-{long}]",
        deep,
        "[" * 9000,
        r'"\ud800"',
        b"\xff",
        " " * 70_000,
        None,
    ):
        assert fault(wrong) is not None, wrong
    assert fault("[1]", of_object=True) == "a frame is an object"
    assert fault('{"a": 1}', of_object=True) is None


def test_the_door_hands_on_what_it_has_read(part: Part) -> None:
    """A body in pieces is one; a client that has gone is no error."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(await receive())
        await send({"type": "http.response.start", "status": 200})

    async def request(pieces: list[bytes], **of: Any) -> list[Any]:
        events = [{"type": "http.request", "body": one, "more_body": one is not pieces[-1]} for one in pieces]
        sent: list[Any] = []

        async def receive() -> Any:
            return events.pop(0)

        async def send(event: Any) -> None:
            if of.get("gone"):
                raise OSError
            sent.append(event)

        await part("door").Door(app)({"type": of.get("type", "http"), "path": of.get("path", "/reset")}, receive, send)
        return sent

    assert asyncio.run(request([b'{"a":', b" 1}"]))[0]["status"] == 200
    assert seen.pop() == {"type": "http.request", "body": b'{"a": 1}', "more_body": False}
    for pieces, status in (([b"{"], 400), ([b"x" * 40_000, b"x" * 40_000], 413)):
        start, body = asyncio.run(request(pieces))
        assert start["status"] == status
        assert [*json.loads(body["body"])] == ["detail"]
    assert asyncio.run(request([b"{"], path="/web/x"))[0]["status"] == 200
    asyncio.run(request([b""], type="websocket", gone=True))


def test_tasks_open_and_splits_share_no_seed(part: Part) -> None:
    tasks = part("tasks")
    for split, (count, _) in tasks.SPLITS.items():
        rows = [tasks.task(split, i) for i in range(count)]
        assert len({json.dumps(row["reset"]) for row in rows}) == len({row["id"] for row in rows}) == count
        for wrong in (-1, count):
            with pytest.raises(IndexError):
                tasks.task(split, wrong)
    seeds = {split: {tasks.task(split, i)["reset"]["seed"] for i in range(n)} for split, (n, _) in tasks.SPLITS.items()}
    assert len(set().union(*seeds.values())) == sum(map(len, seeds.values()))


def test_clients_know_the_longest_reply() -> None:
    models = Path(__file__).parents[2] / "examples" / "openenv" / "pure_exploration" / "models.py"
    assert f"LONGEST = 2**{LONGEST.bit_length() - 1} " in models.read_text()
