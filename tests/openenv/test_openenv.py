"""Episodes over a real server: those of `TextView`, whoever plays at the same time, and no truth on the wire."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import httpx
import numpy as np
import pytest
from served_player import replies

from bandit_envs import ENVIRONMENTS
from bandit_envs.text import TextView

pytestmark = pytest.mark.usefixtures("openenv")
PACKAGE = Path(__file__).parents[2] / "examples" / "openenv" / "pure_exploration"
VIEWS, OF_TEXT = ("table", "history", "raw"), ("story", "view", "tool_calls", "patience")
Part, Job = Callable[[str], ModuleType], dict[str, Any]


def jobs_of(part: Part, count: int) -> list[Job]:
    """What `reset` takes: the twelve settings in turn, in all views, each with a seed of its own."""
    settings = part("tasks").SETTINGS
    return [{**settings[i % 12], "view": VIEWS[i // 12 % 3], "seed": 500 + i} for i in range(count)]


def made(job: Job) -> TextView:
    """The environment of a job in this process."""
    kwargs = {name: value for name, value in job.items() if name not in (*OF_TEXT, "problem", "seed")}
    env = gym.make(ENVIRONMENTS[job["problem"]].id, actions="full", **kwargs)
    return TextView(env, **{name: job[name] for name in OF_TEXT if name in job})


def expected(job: Job, place: int) -> list[list[Any]]:
    """The frames of a job in this process, of the player on the server."""
    env = made(job)
    message, _ = env.reset(seed=job["seed"])
    said: list[list[Any]] = [[message, None, False]]
    for reply in replies(message, place):
        message, reward, terminated, truncated, _ = env.step(reply)
        said.append([message, reward, terminated or truncated])
        if terminated or truncated:
            break
    return said


def played(url: str, known: dict[str, str], jobs: list[Job], *at_once: int) -> list[list[dict[str, Any]]]:
    """The plays of jobs by a client in a process of its own, for each number of sessions at the same time."""
    command = [sys.executable, str(Path(__file__).with_name("served_player.py")), url, *map(str, at_once)]
    done = subprocess.run(command, env=known, input=json.dumps(jobs), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("episodes", "at_once"), [(12, 4), (100, 20)], ids=["sample", "hundred"])
def test_a_client_in_another_process_meets_the_episodes_of_text_view(
    server: str, known: dict[str, str], part: Part, episodes: int, at_once: int
) -> None:
    jobs = jobs_of(part, episodes)
    wanted = [expected(job, place) for place, job in enumerate(jobs)]
    (plays,) = played(server, known, jobs, at_once)
    for job, want, one in zip(jobs, wanted, plays, strict=True):
        assert one["said"] == want, job
        assert one["steps"] == len(one["said"]) - 1
        assert one["said"][-1][2]
    assert len({one["id"] for one in plays}) == episodes


@pytest.mark.parametrize("episodes", [6, 48], ids=["sample", "all"])
def test_a_seed_is_an_episode_whatever_is_played_at_the_same_time(
    server: str, known: dict[str, str], part: Part, episodes: int
) -> None:
    jobs = jobs_of(part, episodes)
    jobs += [{**job, "seed": job["seed"] + 1} for job in jobs]
    alone, together = ([one["said"] for one in plays] for plays in played(server, known, jobs, 1, episodes))
    assert alone == together
    assert all(one != other for one, other in zip(alone[:episodes], alone[episodes:], strict=True))


# No truth on the wire

NUMBER = re.compile(r"\d+\.\d+(?:e-?\d+)?")
KEYS = ("means", "truth", "correct", "parameters_of_arms", "public", "regret")


FRACTIONS = {k / n for n in range(1, 61) for k in range(n + 1)}  # means of at most 60 samples of 0 or 1
SHOWN = {digits: {f"{x:.{digits}f}" for x in FRACTIONS} for digits in (4, 5, 6)}


def leaks(text: str, means: list[float], exact: bool = False) -> list[str]:
    """What of a message gives means away: eleven digits of one, anywhere; or a number that is one rounded.

    Rounded ones are left out where statistics are read back exactly or are of Gaussian arms (`exact`). Statistics of 0
    and 1 are fractions: a mean that is one of these when it is rounded to so many digits is not searched for in them.
    """
    found = [repr(mean) for mean in means if repr(mean)[:13] in text]
    numbers = [] if exact else NUMBER.findall(text)
    for mean in means:
        rounded = {f"{mean:.{digits}f}" for digits in SHOWN if f"{mean:.{digits}f}" not in SHOWN[digits]}
        long = repr(mean)[:8]  # six digits, and maybe more
        found += [x for x in numbers if x in rounded or len(long) == 8 and x.startswith(long) and long not in SHOWN[6]]
    return found


def without_score(text: str) -> str:
    """The last message without its score, which may be anything."""
    return re.sub(r"It scores [\d.e-]+\.", "", text)


@pytest.mark.parametrize("least", [300, 10_000], ids=["sample", "ten-thousand"])
def test_no_message_holds_a_mean(server: str, part: Part, least: int) -> None:
    """Of all frames as they come, of episodes with fresh means."""
    from websockets.sync.client import connect

    settings = part("tasks").SETTINGS
    frames = searched = 0
    with connect(server.replace("http", "ws") + "/ws") as socket:

        def answered(kind: str, data: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
            socket.send(json.dumps({"type": kind} if data is None else {"type": kind, "data": data}))
            text = str(socket.recv())
            return text, json.loads(text)["data"]

        for i in range(10**6):
            job = {**settings[i % 12], "view": VIEWS[i // 12 % 3], "seed": 10_000 + i}
            env = made(job)
            env.reset(seed=job["seed"])
            exact = job["view"] == "raw" or env.narrator.task.distribution == "gaussian"
            means = [float(mean) for mean in np.ravel(env.unwrapped._core.means[0])]
            text, data = answered("reset", job)
            texts = [text]
            opening = data["observation"]["message"]
            for reply in replies(opening, i):
                if data["done"]:
                    break
                text, data = answered("step", {"text": reply})
                texts += [text, answered("state")[0], answered("step", {"words": reply})[0]]
            texts += [answered("step", {"text": "PULL"})[0], answered("reset", {**job, "k": -1.5})[0]]
            for text in texts:
                assert not leaks(without_score(text), means, exact), text
                assert not re.search(rf'"\w*({"|".join(KEYS)})\w*"', text), text
                searched += 0 if exact else len(means)
            frames += len(texts)
            if frames >= least:
                break
    assert frames >= least
    assert searched > 2 * least


def test_the_search_finds_means() -> None:
    means = [0.6180339887498949, 0.2718281828459045]
    for text in ("so 0.6180339887498949", "0.6180", "0.61803", "0.618034", '{"a": [0.61803398]}', "0.5, 0.618034"):
        assert leaks(text, means), text
    assert not leaks("0.5000 0.6190 0.6100 0.618 12.6180 0.61801", means)
    assert without_score("It scores 0.6180.") == ""


PATHS = "/state /metadata /schema /health /openapi.json /pure_exploration/splits /list_environments"


def test_http_says_nothing_of_arms(http: httpx.Client, part: Part) -> None:
    """Bodies of all paths without a session."""
    job = {**part("tasks").SETTINGS[0], "seed": 7}
    env = made(job)
    env.reset(seed=7)
    means = [float(mean) for mean in env.unwrapped._core.means[0]]
    posts = {"/reset": job, "/step": {"action": {"text": "PULL"}}, "/pure_exploration/tasks": {"split": "test"}}
    posts |= {"/pure_exploration/task": {"split": "test", "index": 3}, "/mcp": {"method": "tools/list"}}
    bodies = [http.post(path, json=body).text for path, body in posts.items()]
    bodies += [http.get(path).text for path in PATHS.split()]
    assert [text for text in bodies if leaks(text, means)] == []


# What OpenEnv asks for


def test_openenv_validate_finds_no_failure(openenv: None) -> None:
    """What it leaves out, for the lack of a grader or of Docker, is named in README.md."""
    command = [str(Path(sys.executable).with_name("openenv")), "validate", str(PACKAGE), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert {row["status"] for row in report["results"]} == {"pass", "skip"}
    readme = (PACKAGE / "README.md").read_text()
    for row in report["results"]:
        assert row["status"] == "pass" or f"`{row['check_id']}`" in readme, row
    for reason in {row["evidence"][0] for row in report["results"] if row["status"] == "skip"}:
        assert reason in readme


@pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager")  # by OpenEnv 0.10.0
def test_the_graders_of_openenv_pass_the_server(server: str, tmp_path: Path) -> None:
    """Those that it runs in a container, on the server of this test: rewards, observations and `state` of a session."""
    from openenv.validation import Level, run_validation

    class Here:
        """In the place of Docker."""

        name, capabilities, supported_network_modes = "here", {"image_build"}, {"no-network"}

        def __init__(self) -> None:
            self.base_url = server

        def build(self, root: Path, execution: Any) -> str:
            return "sha256:" + "0" * 64

        def start(self, spec: Any) -> Here:
            return self

        def inspect(self) -> dict[str, Any]:
            return {}

        def stop(self) -> None:
            pass

    package = tmp_path / "package"
    package.mkdir()
    manifest = (PACKAGE / "openenv.yaml").read_text()
    (package / "openenv.yaml").write_text(manifest.replace("validation:\n", "validation:\n  execution: {}\n"))
    actions = [{"text": text} for text in ("PULL", "PULL x", "PULL y", "PULL z", "PULL again")]
    plan = {"plan_schema_version": "1", "reset": {"seed": 3, "episode_id": "one"}, "actions": actions}
    (package / "validation").mkdir()
    (package / "validation" / "runtime.json").write_text(json.dumps(plan))
    report = run_validation(package, max_level=Level.RUNTIME, provider=Here())
    status = {row.check_id: row.status.value for row in report.results}
    checks = "startup reward_well_formed observation_schema state_contract"
    assert {status[f"runtime.{name}"] for name in checks.split()} == {"pass"}, report.results


def test_openenv_validates_the_server(server: str) -> None:
    command = [str(Path(sys.executable).with_name("openenv")), "validate", "--url", server]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verdict: PASS" in done.stdout


def test_tasks_are_listed_and_played(server: str, http: httpx.Client, part: Part) -> None:
    from websockets.sync.client import connect

    tasks = part("tasks")
    name = "/pure_exploration"
    assert [one["name"] for one in http.get(f"{name}/splits").json()] == [*tasks.SPLITS]
    for split, (count, _) in tasks.SPLITS.items():
        assert http.post(f"{name}/num_tasks", json={"split": split}).json() == {"num_tasks": count}
        listed = http.post(f"{name}/tasks", json={"split": split}).json()["tasks"]
        assert listed == [tasks.task(split, i) for i in range(count)]
    part_of = http.post(f"{name}/task_range", json={"split": "test", "start": 5, "stop": 7}).json()["tasks"]
    assert part_of == [tasks.task("test", 5), tasks.task("test", 6)]
    seeds = [
        {one["reset"]["seed"] for one in map(tasks.task, [split] * n, range(n))}
        for split, (n, _) in tasks.SPLITS.items()
    ]
    assert not set.intersection(*seeds)
    with connect(server.replace("http", "ws") + "/ws") as socket:
        said = []
        for data in ({"split": "test", "index": 5, "view": "raw"}, {**part_of[0]["reset"], "view": "raw"}):
            socket.send(json.dumps({"type": "reset", "data": data}))
            said.append(json.loads(socket.recv())["data"]["observation"]["message"])
    assert said[0] == said[1]


def test_the_client_of_the_readme_runs_and_needs_no_bandit_envs(server: str, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S)
    code = code.replace("http://localhost:8000", server) + "\nimport sys\nassert 'bandit_envs' not in sys.modules\n"
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "There are 5 adverts" in done.stdout
    assert ", 8 times, on average: " in done.stdout
