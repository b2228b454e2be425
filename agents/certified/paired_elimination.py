"""Paired elimination: ask all candidates that still count the same questions, until one answer is certified.

source      this package, after Even-Dar, Mannor & Mansour, JMLR 2006 (successive elimination), with the certificate of
            Waudby-Smith & Ramdas, NeurIPS 2020 (sampling without replacement), of pairs; see docs/tables.md
symbols     K columns and N rows of a table; the n-th pull of every arm is its score in the n-th row, in random order

P1  Sample     pull the arm with the fewest pulls among those that still count, ties to the lowest.
P2  Stop       when the answer is certified at delta; at the latest when these have been pulled in all rows.
P3  Recommend  what is certified; before, what the rows say in which all these have been seen.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandit_envs import AllGood, Threshold, TopK
from bandit_envs.kernels import episode_kernel, fleeting
from bandit_envs.stopping import Certifier, nearest_alternative

from ..core.agent import FLOAT, INT, Bools, Floats, Ints, Observation, Problems, unfit
from ..core.columns import rows_of
from ..core.confidence import delta_of
from ..core.plan_policy import PlanPolicy
from ..core.spellings import AgentState
from ..core.stopping import Certificate, begin_anew, moments_of, paired_answer, scratch_for

__all__ = ["PairedElimination"]


PROBLEMS_OF_TABLES = Problems(
    lambda kind: kind.evidence_routine in (Threshold.evidence_routine, TopK.evidence_routine, AllGood.evidence_routine),
    "a problem with the alternatives of Threshold, TopK or AllGood",
)


@fleeting
class Cells(NamedTuple):
    """What the episodes have shown of their tables."""

    pulls: Ints  # (E, K)
    mean: Floats  # (E, K)
    scores: Floats  # (E, K N)


@episode_kernel
def paired_elimination(e, cells: Cells, certificate: Certificate):
    """The next arm of an episode, P1, or K, P2."""
    pulls, K, t, out = cells.pulls[e], cells.pulls.shape[1], 0, certificate.out
    for i in range(K):
        t += pulls[i]
    if t == 0:
        begin_anew(certificate, e)
    certificate.inside[0] = -1
    nearest_alternative(
        certificate.address,
        pulls,
        cells.mean[e],
        cells.scores[e],
        certificate.inside,
        certificate.numbers,
        certificate.scratch[e],
        out,
    )
    return K if out[0] >= certificate.need else np.int64(out[2])


@dataclass
class TableState(AgentState):
    """What the rows of E tables have shown."""

    plans: Any  # (E,), which nobody reads
    scratch: Floats  # (E, S)


class PairedElimination(PlanPolicy):
    """Ask all candidates that still count the same questions, and stop when the answer is certified at delta.

    With a budget it goes on until that is spent.

    Raises:
        ValueError: for arms that are no columns of one table (`from_table(.., shared=True)`).
    """

    name, source = "paired-elimination", "this package, after Even-Dar, Mannor & Mansour, JMLR 2006"
    solves: ClassVar[Collection[str]] = PROBLEMS_OF_TABLES
    promises = ("aggregate", "each", "exact")
    needs = "a table, delta or budget"
    ready_for: ClassVar[Collection[str]] = ()  # no problem with any arms
    stops = True

    def __init__(self, task: Any, delta: float | None = None) -> None:
        super().__init__(task)
        rows_of(self.name, self.task)
        self.delta = delta_of(self.name, self.task, delta, with_budget=0.01)
        self.stops = self.task.budget is None

    @functools.cached_property
    def certifier(self) -> Certifier:
        """What says whether an answer is certified."""
        return self.task.certifier().decider(self.delta)

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles keep: the routine is looked up anew."""
        return {name: value for name, value in vars(self).items() if name != "certifier"}

    def initial_state(self, observation: Observation) -> TableState:
        E = len(observation["pulls"])
        return TableState(np.zeros(E), scratch_for(self.certifier, E))

    def _seen(self, observation: Observation, state: TableState) -> Cells:
        pulls = np.ascontiguousarray(observation["pulls"], INT)
        mean = np.ascontiguousarray(observation["mean"], FLOAT)
        if len(pulls) != len(state.plans):
            raise unfit(pulls, mean, len(state.plans))
        return Cells(pulls, mean, moments_of(observation))

    def rule(self, seen: Any, observation: Observation, state: TableState, out: Ints) -> Any:
        K, made = self.task.K, self.certifier
        need = math.log(1.0 / self.delta) if self.stops else math.inf
        buffers = state.scratch, np.empty(K, np.int8), np.zeros(2 + 3 * K)
        certificate = Certificate(made.address, made.numbers, *buffers, need, False, False)
        return paired_elimination, (seen, certificate, out)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        return paired_answer(self.certifier, observation, slots)
