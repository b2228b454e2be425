"""Decisions do not depend on units: where the range of samples lies, how wide it is, and what means are counted from.

Samples y of a range are played against (y - low) / width, of the same doubles, on [0, 1]: with the same random numbers.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
from bandit_envs import Instance, Shared, Threshold, from_table
from bandit_envs.stopping import Certifier

STOPPING = ["uniform(stop='certificate')", "top-two", "evidence"]
VALUES = np.array([0, 0.04, 0.137, 0.22, 0.31, 0.46, 0.52, 0.67, 0.74, 0.83, 0.91, 1])
SHARES = [[1.0 + 40.0 * (1 - abs(v - top)) ** 6 for v in VALUES] for top in (0.9, 0.6, 0.35, 0.0)]
ROWS = np.random.default_rng(0).beta([[9], [3], [2]], [[2], [3], [9]], (40, 3, 2)).transpose(1, 0, 2)
GRADES = np.random.default_rng(1).beta([5, 4, 2], [3, 4, 6], (50, 3))
PROBLEMS: dict[str, dict[str, Any]] = {
    "Threshold": {"threshold": 0.45, "tolerance": 0.02},
    "BestArm": {"epsilon": 0.1},
    "TopK": {"k": 2, "epsilon": 0.1},
    "AllGood": {"epsilon": 0.2, "slack": 0.1},
    "Feasible": {"A": [[1.0, 0.0], [0.0, -1.0]], "b": [0.93, -0.45]},
}
NEAR = [(0.0, 1e-12), (0.0, 1e9), (1e3, 1.0), (1e3, 1e9), (999999.3, 1.0), (-1e6, 1.0), (1e9, 1e9), (-0.3, 1.0)]
RANGES = [(offset, offset + width) for offset, width in NEAR]  # |offset| / width is 1e6 at most
FAR = [(1e9, 1e9 + 1.0), (-1e9, -1e9 + 1.0), (1e6, 1e6 + 1e-3)]


def asked(problem: str, low: float, width: float) -> dict[str, Any]:
    """The numbers of a problem in other units."""
    found = {name: x * width if name in ("tolerance", "epsilon", "slack") else x for name, x in PROBLEMS[problem].items()}
    found |= {"threshold": low + width * found["threshold"]} if "threshold" in found else {}
    return found | ({"b": list(width * np.array(found["b"]) + low * np.sum(found["A"], axis=1))} if "b" in found else {})


def back(problem: str, given: dict[str, Any], low: float, width: float) -> dict[str, Any]:
    """The numbers of a problem in units of [0, 1], from those in other units."""
    sums = np.sum(given.get("A", [[0.0]]), axis=1)
    shown = {"threshold": lambda x: (x - low) / width, "b": lambda b: list((np.array(b) - low * sums) / width)}
    return {name: shown.get(name, (lambda x: x) if name in ("k", "A") else lambda x: x / width)(x) for name, x in given.items()}


def arms_of(problem: str, scale: Any) -> Any:
    """An instance whose samples are what `scale` makes of samples in [0, 1]."""
    if problem != "Feasible":
        return {"distribution": "categorical", "values": scale(VALUES).tolist(), "probabilities": SHARES}
    return {"distribution": "resampled", "rows": [*scale(np.clip(ROWS, 0, 1))[:2].tolist(), scale(np.eye(2)).tolist()]}


def played(problem: str, instance: Any, numbers: dict[str, Any], players: list[str], **rules: Any) -> list[Any]:
    """What agents do in five episodes."""
    kwargs = {"instance": instance, **numbers, **rules}
    found = agents.evaluate(players, f"bandit_envs/{problem}-v0", episodes=5, seed=0, env_kwargs=kwargs)
    rows = found.episodes[["agent", "total_pulls", "correct", "score", "truncated"]]
    return [*rows.to_numpy().tolist(), found.pulls.to_numpy().tolist()]


@pytest.mark.parametrize(("low", "high"), RANGES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_range_decides_nothing(problem: str, low: float, high: float) -> None:
    numbers, raw = asked(problem, low, high - low), arms_of(problem, lambda x: np.clip(low + (high - low) * x, low, high))
    unit = arms_of(problem, lambda x: (np.clip(low + (high - low) * x, low, high) - low) / (high - low))
    for players, rules in ((STOPPING if problem != "Feasible" else STOPPING[::2], {"delta": 0.1, "max_pulls": 3000}), (["uniform", "successive-rejects"][: 1 + (problem == "BestArm")], {"budget": 50})):
        there, here = (played(problem, arms, given, players, **rules) for arms, given in ((raw, numbers), (unit, back(problem, numbers, low, high - low))))
        assert there == here
