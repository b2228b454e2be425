"""The number of an agent: the same in every process and folder, another one for whatever it may decide by."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents.core.certified import certified
from agents.evaluation.identity import described, digest
from bandit_envs import Task

TASK = Task("BestArm", {}, K=3, delta=0.1)
OWN = '''"""An agent."""
import numpy as np
import agents

ANSWERS = {1, 2}


class Own(agents.Agent):
    name, solves = "own", ("BestArm",)

    def __init__(self, task, power=1.0, seen=None):
        super().__init__(task)

    def choose(self, observation, state):
        assert self.name in {"own", "other", "third"}
        return np.array([min((lambda x: x)(t), 2) for t in observation["pulls"].sum(axis=1)])
'''
SHOWN = """
from agents.evaluation.identity import digest
from bandit_envs import Task
task = Task("BestArm", {}, K=3, delta=0.1)
print(digest(Own(task)), digest(Own(task, power=2.0, seen={"a", "b", "c", print})))
print(digest(agents.make(Own, task, stop="certificate")))
"""


def numbers(folder: Path, *command: str, text: str | None = None) -> list[str]:
    """What another Python shows."""
    root = str(Path(agents.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    return done.stdout.split()


def shown(folder: Path, newline: str = "\n", **sources: str) -> list[str]:
    """The numbers of the agents of files, which another script imports."""
    folder.mkdir()
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source, newline=newline)
    script = "".join(f"from {name} import Own\n{SHOWN}" for name in sources)
    (folder / "script.py").write_text(f"import agents\n{script}")
    return numbers(folder, "script.py")


def test_an_own_agent_has_one_number_everywhere(tmp_path: Path) -> None:
    changed = OWN.replace("{1, 2}", "{1, 3}")  # beside the class
    found = shown(tmp_path / "one", own=OWN, changed=changed)
    assert len({*found}) == 6
    assert all(0 <= int(number) < 2**63 for number in found)
    assert shown(tmp_path / "two", mine=OWN, newline="\r\n") == found[:3]


def test_an_agent_that_was_typed_in_counts_by_its_code(tmp_path: Path) -> None:
    other = OWN.replace("(t), 2)", "(t), 1)")
    found = numbers(tmp_path, "-c", OWN + SHOWN + other + SHOWN)
    assert len({*found}) == 6
    assert numbers(tmp_path, "-", text="\n\n" + OWN + SHOWN) == found[:3]


def test_the_numbers_of_our_agents() -> None:
    made: list[Any] = [
        agents.make("lsa", Task("Threshold", {"threshold": 0.5}, K=K, budget=9), alpha=2) for K in (3, 5)
    ]
    assert digest(made[0]) == digest(made[1])  # of the agent, not of its task
    texts = ("uniform", "random", "random(seed=1)", "lucb", "uniform(stop='certificate')")
    texts += ("random(seed=1, stop='certificate')", "uniform(stop='certificate', completes=False)")
    found = {digest(agents.make(text, TASK)) for text in texts}
    assert len(found) == len(texts)
    assert digest(agents.make("lsa", made[0].task)) != digest(made[0])


def test_a_model_within_counts_by_its_weights() -> None:
    torch: Any = pytest.importorskip("torch")
    task = Task("Threshold", {"threshold": 0.5}, K=3, delta=0.1, budget=200)
    one, other = (agents.make("ppo", task, stop="certificate") for _ in range(2))
    before = digest(one)
    assert before == digest(other)
    trained = other.agent.policy
    with torch.no_grad():
        next(iter(trained.model.policy.parameters())).add_(1)
    assert digest(certified(task, trained, {})) != before


def test_the_description_is_as_before() -> None:
    made = agents.make("random", TASK, seed=3)
    assert described(made) == "agents.baselines:Random, seed=3"
    assert np.int64(digest(made)) == digest(agents.make("random(seed=3)", TASK))
