"""Bad calls of agents are refused by the names of what is wrong: texts, classes, functions and their methods."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused, table
from test_doors import More, own

import agents
from agents import figures
from agents.core import ALL_PROBLEMS
from agents.registry import AGENTS
from agents.thresholding.lsa import LSA

THRESHOLD = "bandit_envs/Threshold-v0"
TAO: dict[str, Any] = {"instance": "tao2019-1", "budget": 60}


def make(who: Any, env_id: str = THRESHOLD, *, told: dict[str, Any] | None = None, **parameters: Any) -> Any:
    """A call that makes an agent."""
    return lambda: agents.make(who, gym.make(env_id, **(TAO if told is None else told)), **parameters)


def evaluate(who: Any, env_id: str = THRESHOLD, **arguments: Any) -> Any:
    """A call that evaluates one."""
    return lambda: agents.evaluate(who, env_id, **{"episodes": 2, "env_kwargs": TAO, "progress": False} | arguments)


class Nameless(agents.Agent):
    solves = ALL_PROBLEMS

    def choose(self, observation: Any, state: Any) -> Any:
        return observation["pulls"].argmin(axis=1)


def lost(problem: Any, means: Any) -> Any:
    raise KeyError("lost")


UNKNOWN = ["", "lsa\0", "\ud800", "LSA", "opt_kg", "a" * 10_000]
INSIDE = ["alpha", "=1", "alpha=*[1]", "*[]", "**{'alpha': 1}", "alpha=lambda: 1", "alpha:=1", "alpha=print"]
INSIDE += ["alpha={[]: 1}", "alpha=\0", "\ud800=1", "alpha=" + "9" * 5000, "alpha=" + "[" * 300 + "]" * 300]
ODD_FORMS = ["(", ")", "md-apt(", "lsa(alpha=1)x", "lsa(alpha=1)(alpha=2)", *(f"lsa({odd})" for odd in INSIDE)]
ODD_PLACES = [":", ":x", "x:", "a b:c", "a/b:c", "json:", "json:nothing"]


@pytest.mark.parametrize("text", [*UNKNOWN, *ODD_FORMS, *ODD_PLACES], ids=range(31))
def test_odd_texts_are_refused(text: str) -> None:
    """As unknown, as no form of an agent, or as no place of one."""
    with pytest.raises(ValueError, match="unknown agent|not of the form|'module:name'|imported|must|no parameter"):
        agents.make(text, gym.make(THRESHOLD))


NO_AGENT: list[Any] = [3, None, object(), b"lsa", np.zeros(3), ("lsa",)]

ABSTRACT = {"choose": agents.Agent, "index": agents.IndexPolicy}
test_what_is_no_agent = table(
    {f"{type(odd).__name__}, make": (make(odd), "name", "predict") for odd in NO_AGENT}
    | {f"an abstract class, {kind.__name__}": (evaluate(kind), "define", name) for name, kind in ABSTRACT.items()}
    | {
        "an abstract class by its place": (make("agents:Agent"), "define", "choose"),
        "no class": (make("math:pi"), "math:pi"),
        "a function of a number": (evaluate(lambda task: 3), "<lambda>", "predict", 3),
        "a function of a class": (evaluate(lambda task: LSA), "LSA", "predict"),
        "a function of nothing": (evaluate(lambda: 3), "<lambda>", "positional arguments"),
        "a class without a name": (evaluate(Nameless), "Nameless", "'name'"),
        "made by hand": (lambda: Nameless(gym.make(THRESHOLD)), TypeError, "Nameless", "'name'"),
        "problems in a text": (evaluate(own(solves="Threshold")), "solves", "'odd'"),
        "no problems": (evaluate(own(solves=())), "solves", "'odd'"),
        "labels that are alike": (evaluate({1: "lsa", "1": "apt"}), "labels", "'1'"),
    }
)

ENDS = {"delta": 0.1, "max_pulls": 10}
NO_ORACLES: Any = ("H",), {"H": 3}, {3: len}, None, "H"

test_parameters = table(
    {
        "by hand": (lambda: LSA(gym.make(THRESHOLD), beta=2), TypeError, "beta"),
        "the task, twice": (lambda: LSA(gym.make(THRESHOLD), alpha=1, task=3), TypeError, "task"),
        "k of another problem": (make("lucb(k=3)", "bandit_envs/BestArm-v0", told=ENDS), "BestArm", 1, "k=3"),
        "trust": (evaluate("lsa", trust="x"), "trust", True, False),
        "an oracle that fails": (evaluate(own(oracles={"H": lost})), "'H'", "'odd'", "KeyError"),
    }
    | {
        f"{name}=": (evaluate("lsa", env_kwargs={name: None}), f"'{name}'")
        for name in ("id", "wrappers", "vector_kwargs")
    }
    | {f"oracles {oracles!r}": (evaluate(own(oracles=oracles)), "oracles", "'odd'") for oracles in NO_ORACLES}
)


def register(name: Any, target: Any) -> Any:
    return lambda: agents.register(name, target)


NO_WORDS, NO_PLACES = ("my agent", "", "a:b", 3), ("here", ":", "a:", ":A")
test_register = table(
    {"an alias": (register("md-apt", More), "'md-apt'", "'apt'"), "a number": (register("mine", 3), "'mine'", 3)}
    | {f"no word, {odd!r}": (register(odd, More), "letters", "digits") for odd in NO_WORDS}
    | {f"no place, {odd}": (register("mine", odd), "'module:name'", f"'{odd}'") for odd in NO_PLACES}
)


def test_nothing_of_it_is_registered() -> None:
    assert "mine" not in AGENTS


@pytest.mark.parametrize("value", ["no", 1, 2.5, np.int64(1)])
def test_progress_is_true_false_or_none(value: Any) -> None:
    calls = [
        lambda: agents.evaluate("lsa", "Threshold", episodes=2, progress=value),
        lambda: figures.reproduce("tao2019-figure-1", episodes=1, progress=value),
        lambda: agents.train(steps=10, num_envs=2, held_out=2, checkpoints=1, progress=value),
        lambda: agents.evolve("Threshold", generations=1, population=4, progress=value),
    ]
    pytest.importorskip("stable_baselines3")
    for call in calls:
        with refused("progress", True, False):
            call()
