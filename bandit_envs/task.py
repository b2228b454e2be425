"""The task: what an agent may know of an environment. No truth."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .problems import PROBLEMS, Problem

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """What is asked, and what is known of the arms.

    Attributes:
        problem, parameters: name of the problem and its parameters.
        K, D: number of arms, coordinates of a sample.
        budget: pulls of an episode, or None; delta: allowed error probability, or None.
        max_pulls: safety cap, or None; pull_cost: price of a pull in units of the score.
        law: family of the arms; support: (lowest, highest) sample or None; sigma: sub-Gaussian scale.
        actions, observation: the forms that the environment takes and gives.
        pull: what a pull samples, an "arm" or one "coordinate" of one.
    """

    problem: str
    parameters: Mapping[str, Any]
    K: int
    D: int = 1
    budget: int | None = None
    delta: float | None = None
    max_pulls: int | None = None
    pull_cost: float = 0.0
    law: str = "bernoulli"
    support: tuple[float, float] | None = (0.0, 1.0)
    sigma: float = 0.5
    actions: str = "full"
    observation: str = "statistics"
    pull: str = "arm"

    @cached_property
    def stop(self) -> int:
        """The action that stops: K, or K * D where the actions below it are arm * D + coordinate."""
        return self.K * self.D if self.pull == "coordinate" else self.K

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the counts `pulls` of one episode: (K,), or (K, D) where coordinates are pulled."""
        return (self.K, self.D) if self.pull == "coordinate" else (self.K,)

    def make_problem(self) -> Problem:
        """The problem itself: margins, plug-in answers."""
        return PROBLEMS[self.problem](**self.parameters)

    @property
    def width(self) -> float:
        """The range W of a sample for bounds that need one: 2 sigma, and 6 sigma for Gaussian arms."""
        return (6.0 if self.law == "gaussian" else 2.0) * self.sigma

    def replace(self, **changes: Any) -> Task:
        """The same task with some attributes changed."""
        return dataclasses.replace(self, **changes)

    def to_json(self) -> str:
        """JSON text that `from_json` reads."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The task of a JSON text."""
        form = json.loads(text)
        form["support"] = None if form["support"] is None else tuple(form["support"])
        return cls(**form)
