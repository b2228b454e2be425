"""Policies that pull single coordinates, against literal twins on random Gaussian instances.

PYTHONPATH=tests/support python tests/campaigns/coordinates.py     200 instances of each cell; in tests six
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from twins import follow, play
from twins_feasible import by_coordinate

import agents
from agents.core.index_policy import SCAN
from bandit_envs import Gaussian, Instance
from bandit_envs.instances.polyhedra import cube

FEASIBLE = "bandit_envs/Feasible-v0"


SHAPES: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "quadrant": ([[-1.0, 0.0], [0.0, 1.0]], [-0.4, 0.5], lambda x: [max(x[0], 0.4), min(x[1], 0.5)]),
    # uneven, so that no two coordinates gain the same but for rounding
    "half-plane": (
        [[0.6, 0.8]],
        [0.7],
        lambda x: [z - a * (0.6 * x[0] + 0.8 * x[1] - 0.7) for z, a in zip(x, (0.6, 0.8), strict=True)],
    ),
    "cube": (*cube(3), lambda x: [min(max(z, 0.0), 1.0) for z in x]),
}


RULES: dict[str, Callable[[float, float], float]] = {
    "apt(tolerance=0.05)": lambda T, D: T**0.5 * (abs(D) + 0.05),
    "ucbe(a=0.5)": lambda T, D: abs(D) - (0.5 / T) ** 0.5,
    "lsa": lambda T, D: 1.35 * T * D * D + 0.5 * np.log(T),
}


def flat(twin: Any, D: int) -> Any:
    """The twin with actions arm * D + coordinate."""
    try:
        i, d = next(twin)
        while True:
            i, d = twin.send((yield i * D + d))
    except StopIteration as stop:
        return stop.value


def check_twins(name: str, shape: str, episodes: int) -> None:
    """The same coordinates and answer, with a scan and, in the last instance, with a tree over the arms."""
    (A, b, project), g = SHAPES[shape], np.random.default_rng(1)
    D = len(A[0])
    for episode in range(episodes):
        K = int(g.integers(2, 9)) if episode < episodes - 1 else SCAN + 4
        budget = int(g.integers(1, 12 * K * D)) if episode < episodes - 1 else K * D + 20
        instance = Instance(Gaussian(g.normal(0.5, 0.4, (K, D)), 0.5))
        given = {"A": A, "b": b, "budget": budget, "normalise": bool(episode % 2), "pull": "coordinate"}
        env: Any = gym.make(FEASIBLE, instance=instance, actions="full", **given).unwrapped
        start = {"seed": 4, "options": {"episode": episode}}
        mine = play(env, agents.make(name, env), env.reset(**start)[0])
        env.reset(**start)
        P = env.problem.polyhedron
        twin = by_coordinate(K, D, budget, P.A.tolist(), P.b.tolist(), project, RULES[name])
        assert mine == follow(env, flat(twin, D)), (episode, K, budget)


def main() -> None:
    for name in RULES:
        for shape in SHAPES:
            check_twins(name, shape, 200)


if __name__ == "__main__":
    main()
