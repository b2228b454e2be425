"""The environments: a row for each problem, from which registration, documentation and tests derive.

Gymnasium knows the environments of all problems that are registered when `bandit_envs` is imported, those of installed
packages too; `register_problem` adds one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from ..problems import Problem
from ..problems.registry import PROBLEMS

NAMESPACE = "bandit_envs"
LEARN = {"observation": "relative", "stop": False, "reward": "gain", "ranked": True}  # keywords of the ids for learners


@dataclass(frozen=True)
class Row:
    """One registered environment."""

    problem: str  # its name
    version: int  # it is raised whenever a change can alter results
    asks: str  # the question, in one line
    source: str  # the papers
    defaults: Mapping[str, Any]  # keyword arguments that stand in when no instance is given

    @property
    def id(self) -> str:
        return id_of(self.problem, self.version)

    @property
    def learn_id(self) -> str:
        """The id of the same environment with the keywords `LEARN`."""
        return id_of(f"{self.problem}-learn", self.version)


class _Environments(Mapping[str, Row]):
    """The rows by the names of their problems; the problem of an installed package is imported when asked for."""

    def __getitem__(self, problem: str) -> Row:
        kind = PROBLEMS[problem]
        instance = {} if kind.sampler is None else {"instance": kind.sampler}
        return Row(problem, kind.version, kind.asks, kind.source, {**kind.defaults, **instance})

    def __iter__(self) -> Iterator[str]:
        return iter(PROBLEMS)

    def __len__(self) -> int:
        return len(PROBLEMS)


ENVIRONMENTS = _Environments()


def id_of(problem: str, version: int) -> str:
    """The environment's name for Gymnasium."""
    return f"{NAMESPACE}/{problem}-v{version}"


def _register_environment(problem: str, version: int) -> None:
    """Let Gymnasium make the environments, single and vector, of the problem of this name, for learners too."""
    for name, keywords in ((id_of(problem, version), {}), (id_of(f"{problem}-learn", version), LEARN)):
        if name not in gym.registry:
            gym.register(
                id=name,
                entry_point="bandit_envs.envs.env:PureExplorationEnv",
                vector_entry_point="bandit_envs.envs.vector:PureExplorationVectorEnv",
                kwargs={"problem": problem, **keywords},
            )


def register_problem(kind: type[Problem]) -> type[Problem]:
    """Add a problem of one's own: its environments are `bandit_envs/<name>-v<version>` and `<name>-learn-v<version>`.

    Registered again, say by a cell of a notebook that runs again, the new class takes the place of the old one; where
    its version is another one, the environment of the old version is there no longer.

    Args:
        kind: a subclass of `Problem`; the name is its attribute `name`. It is returned, as by a decorator.

    Raises:
        ValueError: for what is no problem, and for a name of a problem of this package, in a short form too ("top-k",
            "BESTARM"), or of an installed one.
    """
    if not isinstance(kind, type):
        raise ValueError(f"a problem is a class, got {kind!r:.200}")
    PROBLEMS.register(getattr(kind, "name", None), kind)  # type: ignore[arg-type]
    for spec in list(gym.registry.values()):
        ours = spec.namespace == NAMESPACE and spec.name in (kind.name, f"{kind.name}-learn")
        if ours and spec.version != kind.version:
            del gym.registry[spec.id]
    _register_environment(kind.name, kind.version)
    return kind


for _name in PROBLEMS:
    _register_environment(_name, 0 if _name in PROBLEMS.installed else PROBLEMS[_name].version)
