"""The environments: a row for each problem, from which registration, documentation and tests derive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from .problems import PROBLEMS, Problem

__all__ = ["ENVIRONMENTS", "NAMESPACE", "Row", "register_problem"]

NAMESPACE = "bandit_envs"


@dataclass(frozen=True)
class Row:
    """One registered environment.

    Attributes:
        problem: name of the problem. version: it is raised whenever a change can alter results.
        asks: the question, in one line. source: the papers.
        defaults: keyword arguments that stand in when no instance is given.
    """

    problem: str
    version: int
    asks: str
    source: str
    defaults: Mapping[str, Any]

    @property
    def id(self) -> str:
        return environment_id(self.problem, self.version)

    @classmethod
    def of(cls, kind: type[Problem]) -> Row:
        """The row of a problem."""
        own = {} if kind.sampler is None else {"instance": kind.sampler}
        return cls(kind.name, kind.version, kind.asks, kind.source, {**kind.defaults, **own})


class _Environments(Mapping[str, Row]):
    """The rows by the names of their problems; the problem of an installed package is imported when asked for."""

    def __getitem__(self, problem: str) -> Row:
        return Row.of(PROBLEMS[problem])

    def __iter__(self) -> Iterator[str]:
        return iter(PROBLEMS)

    def __len__(self) -> int:
        return len(PROBLEMS)


ENVIRONMENTS = _Environments()


def environment_id(problem: str, version: int = 0) -> str:
    """The id of the environment of a problem."""
    return f"{NAMESPACE}/{problem}-v{version}"


def make_available(problem: str, version: int = 0) -> None:
    """Register the environment of a problem with Gymnasium, single and vector."""
    name = environment_id(problem, version)
    if name not in gym.registry:
        gym.register(
            id=name,
            entry_point="bandit_envs.env:PureExplorationEnv",
            vector_entry_point="bandit_envs.vector:PureExplorationVectorEnv",
            kwargs={"problem": problem},
        )


def register_problem(kind: type[Problem]) -> type[Problem]:
    """Add a problem of one's own: its environment is `bandit_envs/<name>-v<version>`.

    Args:
        kind: a subclass of `Problem`.

    Returns:
        The class, so that this may be its decorator.

    Raises:
        ValueError: for what is no problem, and for a name that belongs to a problem of this package.
    """
    PROBLEMS.register(getattr(kind, "name", None), kind)  # type: ignore[arg-type]
    make_available(kind.name, kind.version)
    return kind


for _name in PROBLEMS:
    make_available(_name)
