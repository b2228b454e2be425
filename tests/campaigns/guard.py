"""Every array of an observation, and of a state and all that it holds, is replaced by one of another kind.

python tests/campaigns/guard.py PROBLEM AGENT ...     these agents, in this process
python tests/campaigns/guard.py                       one agent of each kind after the other, each in its own
"""

from __future__ import annotations

import copy
import dataclasses
import faulthandler
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np

import agents
from agents.core.index_policy import IndexState

AGENTS = {
    "Threshold": ["uniform", "random", "apt", "sar", "lsa", "hdoc", "look-ahead", "evolved"],
    "TopK": ["lucb", "kl-lucb", "ugape", "racing", "adapt", "ocba-m", "clucb"],
    "BestArm": ["top-two", "track-and-stop", "evidence", "lil-ucb", "sequential-halving"],
    "AllGood": ["st2", "fareast", "east"],
}
KINDS: dict[str, Callable[[Any], Any]] = {
    "dtype": lambda x: x.view("u1") if x.dtype.names else x.astype("f4" if x.dtype.kind == "f" else "i2"),
    "other kind": lambda x: x[[x.dtype.names[0]]] if x.dtype.names else x.astype("i8" if x.dtype.kind == "f" else "f8"),
    "order": lambda x: np.asfortranarray(x) if x.ndim > 1 else np.repeat(x, 2)[::2],
    "axis more": lambda x: x[..., None],
    "axis fewer": lambda x: x.reshape(-1)[0] if x.ndim == 1 else x[0],
    "rows fewer": lambda x: x[:-1],
    "read-only": lambda x: frozen(x),
    "a list": lambda x: x.tolist(),
}
SURE = [
    *["evidence", "top-two", "track-and-stop", "lucb", "kl-lucb", "ugape", "lil-ucb", "hdoc", "st2", "fareast"],
    *["east", "racing"],
]


def frozen(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


def places(one: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(one, np.ndarray):
        yield place
    elif isinstance(one, tuple) and hasattr(one, "_fields"):
        for name, value in zip(one._fields, one, strict=True):
            yield from places(value, (*place, name))
    elif isinstance(one, dict):
        for name, value in one.items():
            yield from places(value, (*place, name))
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            yield from places(getattr(one, field.name), (*place, field.name))


def changed(one: Any, place: tuple[str, ...], change: Callable[[Any], Any]) -> Any:
    if not place:
        return change(one)
    first, rest = place[0], place[1:]
    if isinstance(one, dict):
        return {**one, first: changed(one[first], rest, change)}
    value = changed(getattr(one, first), rest, change)
    if isinstance(one, tuple):
        return one._replace(**{first: value})
    one = copy.copy(one)
    object.__setattr__(one, first, value)
    return one


def play(problem: str, names: list[str]) -> None:
    for name in names:
        rules = dict(delta=0.1, max_pulls=500) if name in SURE else dict(budget=500)
        envs = gym.make_vec(f"bandit_envs/{problem}-v0", 3, actions="full", **rules)
        try:
            agent = agents.make(name, envs)
        except ValueError:
            envs = gym.make_vec(f"bandit_envs/{problem}-v0", 3, actions="full", budget=500)
            agent = agents.make(name, envs)
        observation, state = envs.reset(seed=1)[0], None
        for _ in range(30):
            action, state = agent.predict(observation, state)
            observation, *_ = envs.step(action)
        wanted = agent.predict(observation, copy.deepcopy(state))[0]
        tried = 0
        for what in ("observation", "state"):
            for place in places({"observation": observation, "state": state}[what]):
                for kind, change in KINDS.items():
                    if what == "state" and kind == "rows fewer" and not isinstance(state, IndexState):
                        continue  # no kernel compares the lengths of the arrays of a state with each other
                    given = {"observation": observation, "state": copy.deepcopy(state)}
                    tried += 1
                    try:
                        given[what] = changed(given[what], place, change)
                        agent.predict(given["observation"], given["state"])
                    except Exception as error:
                        if not str(error):
                            raise AssertionError((name, what, place, kind)) from error
        again = agent.predict(observation, copy.deepcopy(state))[0]
        assert all((again[part] == wanted[part]).all() for part in ("arm", "times")), name
        print(name, tried, flush=True)


def main() -> None:
    faulthandler.enable()
    if sys.argv[1:]:
        play(sys.argv[1], sys.argv[2:])
        return
    for problem, names in AGENTS.items():
        for name in names:
            subprocess.run([sys.executable, "-W", "ignore", __file__, problem, name], check=True)


if __name__ == "__main__":
    main()
