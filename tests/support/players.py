"""Scripted players in the place of language models: functions from messages to text."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import numpy as np

import agents
from bandit_envs import Task

Messages = list[dict[str, str]]
TYPES = {"pulls": np.int64, "remaining": np.int64, "public_seed": np.int64, "pending": np.int64}


def numbers(messages: Messages) -> tuple[Task, list[str], dict[str, Any]]:
    """The task, the names and the observation of the view "raw"."""
    lines = [line for line in messages[-1]["content"].splitlines() if line.startswith("{")]
    facts, seen = json.loads(lines[0]), json.loads(lines[-1])
    arrays = {name: np.array(x, TYPES.get(name, np.float64)) for name, x in seen.items()}
    return Task.from_json(json.dumps(facts["task"])).replace(actions="full"), facts["names"], arrays


def by_rule(name: str, messages: Messages) -> str:
    """What an agent of the suite does, by the numbers in the text."""
    task, names, seen = numbers(messages)
    action, _ = agents.make(name, task).predict(seen)
    if action["arm"] == task.K or seen["remaining"][0] == 0:
        return "ANSWER " + (", ".join(names[k] for k in np.flatnonzero(action["answer"])) or "none")
    return f"So far so good.\nPULL {names[action['arm']]} {action['times']}"


def lsa(messages: Messages) -> tuple[str, int]:
    """The algorithm LSA."""
    text = by_rule("lsa", messages)
    return text, len(text.split())


def rarest(messages: Messages) -> str:
    """Pulls the rarest arm until nothing is left, and gives the plug-in answer."""
    task, names, seen = numbers(messages)
    if seen["remaining"][0] == 0:
        answer = task.make_problem().plug_in(seen["mean"])
        return "ANSWER " + (", ".join(names[k] for k in np.flatnonzero(answer)) or "none")
    return f"PULL {names[np.argmin(seen['pulls'])]}"


def nonsense(messages: Messages) -> str:
    """Nothing that can be read."""
    return "I like turtles."


def early(messages: Messages) -> str:
    """Stops after one round: the arm, or the arms, with the best single results; of the view "history"."""
    text = "\n".join(message["content"] for message in messages)
    first = messages[0]["content"]
    names = first.splitlines()[0].partition(": ")[2].rstrip(".").split(", ")
    done = sum(message["role"] == "assistant" for message in messages)
    if done < len(names):
        return f"PULL {names[done]}"
    size, control = re.search(r"It holds (\d+)", first), re.search(r"control is (\S+);", first)
    results = {name: float(re.findall(rf"^{name}: ([-.\d]+)", text, re.M)[-1]) for name in names}
    best = sorted((name for name in names if not (control and name == control[1])), key=lambda name: -results[name])
    return "ANSWER " + ", ".join(best[: int(size[1]) if size else 2])


class Flaky:
    """An endpoint that fails a third of the time, notes what is paid for in a file, and dies at a call of its own."""

    def __init__(self, log: Path, dies_at: int | None = None) -> None:
        self.log, self.dies_at, self.rng = log, dies_at, random.Random(7)

    def __call__(self, messages: Messages) -> tuple[str, int]:
        if self.rng.random() < 1 / 3:
            raise ConnectionError("503: try again")
        if self.dies_at is not None:
            self.dies_at -= 1
            if self.dies_at < 0:
                os._exit(9)
        with self.log.open("a") as file:
            file.write(f"{hash(json.dumps(messages))}\n")
        return lsa(messages)
