"""Speed of feasible arms: projections, and MD-APT on the polyhedra of the paper. Run as test_speed.py."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from race import Race, clock

import agents
from bandit_envs.instances.polyhedra import random_polyhedron
from bandit_envs.kernels.geometry import Polyhedron

speed = functools.partial(pytest.mark.benchmark, timer=clock)
FEASIBLE, THRESHOLD = "bandit_envs/Feasible-v0", "bandit_envs/Threshold-v0"


def evaluation(env_id: str, **kwargs: Any) -> Callable[[], Any]:
    """2000 pulls in each of 1000 episodes."""
    return lambda: agents.evaluate("apt", env_id, episodes=1000, env_kwargs={"budget": 2000} | kwargs, progress=False)


# D = 5, K = 20. Where APT on 20 scalar Gaussian arms runs at 28 million pulls per second, as on the machine of
# docs/performance.md, 6 and 3.5 million pulls per second are 4.7 and 8 times as long.
@speed(group="g. MD-APT through agents.evaluate, times as long")
@pytest.mark.parametrize(("instance", "target"), [(1, 4.7), (4, 8.0), (5, 8.0)], ids=["cube", "simplex", "ordered"])
def test_md_apt(race: Race, instance: int, target: float) -> None:
    scalar = {"instance": {"distribution": "gaussian", "mean": np.linspace(0, 1, 20).tolist()}, "threshold": 0.52}
    race(
        evaluation(FEASIBLE, instance=f"katz-samuels2018-{instance}"),
        evaluation(THRESHOLD, **scalar),
        against="APT, 20 scalar Gaussian arms",
        at_most=target,
        rounds=5,
    )


@speed(group="h. a projection, times as long as that of DAQP")
@pytest.mark.parametrize(("D", "M"), [(5, 10), (5, 100), (24, 200)])
def test_projection_against_daqp(race: Race, D: int, M: int) -> None:
    """Of 200 points at three times the radius of a random polyhedron."""
    daqp = pytest.importorskip("daqp")
    P, x = Polyhedron(*random_polyhedron(D, M, 0)), np.random.default_rng(0).normal(size=(200, D))
    x = 3 * x / np.linalg.norm(x, axis=1, keepdims=True)
    rows, ends, lower, sense, unit = P.A.copy(), P.b.copy(), np.full(M, -1e30), np.zeros(M, np.int32), np.eye(D)

    def theirs() -> None:
        for y in x:
            daqp.solve(unit, -y, rows, ends, lower, sense)

    race(lambda: P.project(x), theirs, against="daqp, cold start", at_most=1.0)
