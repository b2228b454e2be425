"""Paired elimination: pull the active arms on the same rows, until the answer is certified.

source      this package, after Even-Dar, Mannor & Mansour, JMLR 2006 (successive elimination), with the certificate of
            Waudby-Smith & Ramdas, NeurIPS 2020 (sampling without replacement), of pairs; see docs/tables.md
symbols     K columns and N rows of a table; the n-th pull of every arm is its score in the n-th row, in random order;
            an arm is active until the certificate settles whether it is in the answer, or out

P1  Sample     pull the active arm with the fewest pulls, ties to the lowest.
P2  Stop       when the answer is certified at delta; at the latest when the active arms have been pulled in all rows.
P3  Recommend  the certified answer; before, the answer by the rows in which all active arms have been pulled.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from bandit_envs import AllGood, Feasible, Threshold, TopK
from bandit_envs.stopping import Certifier, counted_arms, nearest_alternative

from ..core.agent import Bools, Ints, Observation, Problems
from ..core.algorithm import Algorithm
from ..core.confidence import delta_of
from ..core.phases import rows_of
from ..core.plans import pull
from ..core.stopping import certificate_of, forget, paired_answer, scratch_for

PROBLEMS_OF_TABLES = Problems(
    lambda kind: kind.evidence_routine in [one.evidence_routine for one in (Threshold, TopK, AllGood, Feasible)],
    "a problem with the alternatives of Threshold, TopK, AllGood or Feasible",
)


class PairedElimination(Algorithm):
    """Pull the active arms on the same rows until the answer is certified at delta; with a budget, until it is spent.

    Raises:
        ValueError: for arms that are no columns of one table (`from_table(.., shared=True)`).
    """

    name, source = "paired-elimination", "this package, after Even-Dar, Mannor & Mansour, JMLR 2006"
    solves: ClassVar[Collection[str]] = PROBLEMS_OF_TABLES
    promises = ("aggregate", "each", "exact")
    needs = "a table, delta or budget"
    ready_for: ClassVar[Collection[str]] = ()  # no problem: it needs arms of a table
    stops, passes, reads, prices, _looked_up = True, 0, ("moments",), True, ("certifier",)

    def begin(ep, own):
        """No row has been pulled."""
        forget(ep.certificate, ep.e)

    def sample(ep, own):
        """The next arm, P1; none where the answer is certified, P2."""
        one = ep.certificate
        one.inside[0] = -1
        nearest_alternative(
            one.address, ep.pulls, ep.mean, ep.moments, one.inside, one.numbers, one.scratch[ep.e], one.out
        )
        if one.out[0] < one.need:
            pull(ep, np.int64(one.out[2]))

    def __init__(self, task: Any, delta: float | None = None) -> None:
        super().__init__(task)
        rows_of(self.name, self.task)
        self.delta = delta_of(self.name, self.task, delta, with_budget=0.01)
        self.may_stop = self.task.budget is None

    @functools.cached_property
    def certifier(self) -> Certifier:
        """The rule by which an answer is certified."""
        return self.task.certifier().decider(self.delta)

    def initial_state(self, observation: Observation) -> Any:
        state = super().initial_state(observation)
        state.own["scratch"] = scratch_for(self.certifier, len(state.now))
        return state

    def counted(self, state: Any) -> Bools:
        """Which arms a row must still show before it counts, of E episodes, (E, K)."""
        return counted_arms(state.own["scratch"], self.task.K)

    def kernels_needed(self) -> tuple[Any, ...]:
        return self.certifier.kernels_needed[:1]

    def beside(self, whole: Any) -> tuple[dict[str, Any], Any]:
        need = math.log(1.0 / self.delta) if self.may_stop else math.inf
        return {"certificate": certificate_of(self.certifier, whole.own["scratch"], self.task.K, need)}, self.certifier

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        return paired_answer(self.certifier, observation, slots)
