"""Static allocation by the true margins: Katz-Samuels & Scott, ICML 2018, Proposition 1. An oracle.

symbols     T_i pulls, D_i = |true margin of arm i| + eps, eps tolerance
departures  D1 the pulls follow the proportions 1 / D_i^2 at every time, not only at the end: the next one is of the arm
               with the least T_i D_i^2. After t pulls no arm is a whole pull ahead of its share of t
            D2 ties go to the lowest index

It needs the true margins, which `agents.make` fills in from a fixed instance whose arms keep their order. What it pulls
depends on no sample, and so adaptive algorithms can beat it: it is no floor.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np

from bandit_envs.kernels import number

from ..core.agent import LOCAL_PROBLEMS, Agent, Floats, Ints, Observation


def margins_of(agent: Agent, margins: Sequence[float] | None) -> Floats:
    """The true margins of the arms that an oracle is given, (K,)."""
    if margins is None:
        text = f"{agent.name} is an oracle: it needs margins=, which are known only for a fixed instance"
        raise ValueError(f"{text} whose arms come in the same order in every episode (shuffle_arms=False)")
    margins = margins.tolist() if isinstance(margins, np.ndarray) else margins
    if not isinstance(margins, Sequence) or len(margins) != agent.task.K:
        raise ValueError(f"margins must be a list of {agent.task.K} numbers, one for each arm, got {margins!r:.200}")
    if any(margin == 0 for margin in margins):
        raise ValueError(f"{agent.name} needs margins > 0, got 0: some arms lie exactly on the boundary")
    return np.array([number("margins", margin, 0, 1e100, above=True) for margin in margins])


class Static(Agent):
    """Pulls in proportion to margins^-2, margins > 0 being the true ones (Katz-Samuels & Scott 2018, Proposition 1)."""

    name, source = "static", "Katz-Samuels & Scott, ICML 2018, Proposition 1"
    solves: ClassVar[Collection[str]] = LOCAL_PROBLEMS
    by_place = True
    logs: Any = 0.0
    oracles = {"margins": lambda problem, means: (np.abs(problem.margin(means)) + problem.tolerance).tolist()}

    def __init__(self, task: Any, margins: Sequence[float] | None = None) -> None:
        super().__init__(task)
        self.squares = margins_of(self, margins) ** 2

    def choose(self, observation: Observation, state: Any) -> Ints:
        arms: Ints = (observation["pulls"] * self.squares + self.logs).argmin(axis=1)
        return arms
