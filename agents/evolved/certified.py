"""`EvolvedEvidence`: `evolved` where an answer is to be certified: `evidence` with learned habits.

The certificate alone decides when to stop, as it does for `evidence`: so an answer is wrong with probability delta at
most, whatever the habits are.
"""

from __future__ import annotations

from typing import Any

from ..certified.evidence import Evidence
from ..certified.leaning import GENES, WEIGHTS, Habits
from ..core.agent import by_certificate
from .genes import told

__all__ = ["EvolvedEvidence"]


class EvolvedEvidence(Evidence):
    """`evidence` with learned habits.

    Args:
        task: a task or an environment, with a delta.
        genes: the 4 of `leaning.GENES`, then, where a network is to correct them, those of `leaning.WEIGHTS`; or (P, G)
            for P candidates, each for an equal share of the episodes in a row. "start": those of `evidence`.
            None: those that are stored for the problem.

    Raises:
        ValueError: where no genes are stored for the task, telling how to evolve some; for other tasks.
    """

    name, source = "evolved", "this package: evidence with habits tuned on random instances"
    anytime = False
    needs = "delta"

    def __init__(self, task: Any, genes: Any = None) -> None:
        super().__init__(task)
        if genes is None and not by_certificate(self.task):
            raise ValueError("evolved with learned habits is for tasks with a delta, and neither a budget nor a price")
        names = (*GENES, *WEIGHTS)
        self.genes = told(self.task, genes, names, len(GENES))
        self._habits = Habits.of(self.genes, len(self.genes))

    def habits(self, E: int) -> Habits:
        return self._habits._replace(per_row=max(E // len(self.genes), 1))
