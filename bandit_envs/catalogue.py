"""The environments: one table of rows, from which registration, documentation and tests derive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["ENVIRONMENTS", "NAMESPACE", "Row"]

NAMESPACE = "bandit_envs"


@dataclass(frozen=True)
class Row:
    """One registered environment.

    Attributes:
        problem: name of the problem; version: raised whenever a change can alter results.
        asks: the question, in one line; source: the papers.
        defaults: keyword arguments that stand in when no instance is given.
    """

    problem: str
    version: int
    asks: str
    source: str
    defaults: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{NAMESPACE}/{self.problem}-v{self.version}"


BUDGET = {"budget": 200}
SQUARE = {"instance": {"sampler": {"dimensions": 2}}, "A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5]}

ENVIRONMENTS: dict[str, Row] = {
    row.problem: row
    for row in (
        Row(
            "Threshold",
            0,
            "all arms with mean at least a threshold",
            "Locatelli, Gutzeit & Carpentier 2016; Tao, Blanco, Peng & Zhou 2019",
            BUDGET,
        ),
        Row("AllGood", 0, "all arms nearly as good as the best", "Mason, Jain, Tripathy & Nowak 2020", BUDGET),
        Row("TopK", 0, "the k best arms", "Kalyanakrishnan & Stone 2010; Chen, Chen, Zhang & Zhou 2017", BUDGET),
        Row(
            "Feasible",
            0,
            "all arms whose mean vector lies in a polyhedron",
            "Katz-Samuels & Scott 2018",
            BUDGET | SQUARE,
        ),
        Row("BestArm", 0, "the best arm", "Even-Dar, Mannor & Mansour 2006", BUDGET),
    )
}
