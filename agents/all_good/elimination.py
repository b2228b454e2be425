"""EAST and uniform elimination: Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 2 (good filter), section 5.

symbols     m_i empirical mean, N_i pulls, C = C_{delta/n}(t) = sigma sqrt(c ln(log2(2t) n / delta) / t)
            A active arms, G and B arms declared good and bad; U, L bounds on the threshold; gamma slack
departures  D1 t is the common number of pulls of the active arms
            D2 in the multiplicative form the factor applies to mean and width, which the proof needs (lost in print)
            D3 EAST does not use the slack: its answer holds good arms only

Met in the middle of an episode (`state=None`), they bring all arms to a common number of pulls first, and use all
samples seen.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import number

from ..core.agent import Bools, Floats, Ints, Observation
from ..core.confidence import delta_of, scale_of
from ..core.round_policy import RoundMemory, RoundPolicy

__all__ = ["East", "UniformElimination"]


@dataclass
class Memory(RoundMemory):
    """Memory of an elimination for E episodes."""

    A: Bools  # (E, K) active arms
    G: Bools  # (E, K) arms declared good
    B: Bools  # (E, K) arms declared bad


class _Elimination(RoundPolicy):
    """Pull an active arm with the fewest pulls; whenever all active arms have equally many, test."""

    solves, stops = ("AllGood",), True

    def __init__(self, task: Any, delta: float | None = None, c: float = 4.0, sigma: float | None = None) -> None:
        super().__init__(task)
        self.level = delta_of(self.name, self.task, delta) / self.task.K
        self.factor = number("c", c, 0, above=True) * scale_of(self.task, sigma) ** 2
        p = self.task.parameters
        self.epsilon, self.gamma, self.multiplicative = p["epsilon"], p["slack"], p["multiplicative"]

    def remember(self, observation: Observation) -> Memory:
        E, K = observation["pulls"].shape
        A, G, B = np.zeros((3, E, K), np.bool_)
        return Memory(**RoundMemory.of(E, K), A=A, G=G, B=B)

    def width(self, t: Floats) -> Floats:
        """C_{delta/n}(t), elementwise."""
        return np.sqrt(self.factor * np.log(np.log2(2.0 * t) / self.level) / t)

    @abstractmethod
    def test(self, memory: Memory, slots: Ints, m: Floats, C: Floats) -> None:
        """Update the sets of these episodes, by means (S, K) and width (S, 1) of their active arms, or stop."""

    def start(self, observation: Observation, memory: Memory, slots: Ints) -> None:
        memory.A[slots], memory.G[slots], memory.B[slots] = True, False, False
        self.look(observation, memory, slots, begun=True)

    def look(self, observation: Observation, memory: Memory, slots: Ints, begun: bool = False) -> None:
        N, total = observation["pulls"], np.asarray(observation["total"], np.float64)
        least, most = self._fewest(N, memory, slots), np.where(memory.A[slots], N[slots], 0).max(axis=1)
        even = np.flatnonzero((least == most) & (not begun or most > 0))
        if len(even):
            rows, t = slots[even], most[even, None].astype(np.float64)
            with np.errstate(invalid="ignore", divide="ignore"):
                m = total[rows] / np.maximum(N[rows], 1)
            self.test(memory, rows, m, self.width(t))
            slots = slots[~memory.stopped[slots]]
            least = self._fewest(N, memory, slots)
        memory.write_all(slots, memory.A[slots] & (N[slots] == least[:, None]), 1, total)

    def _threshold(self, top: Floats, C: Floats, slack: float) -> tuple[Floats, Floats]:
        """Bounds on the threshold from the best mean and its width: U, lowered by the slack, and L."""
        keep = 1.0 - self.epsilon
        if self.multiplicative:
            return (keep - slack) * (top + C), keep * (top - C)
        return top + C - self.epsilon - slack, top - C - self.epsilon

    @staticmethod
    def _fewest(N: Ints, memory: Memory, slots: Ints) -> Ints:
        """The fewest pulls of an active arm, (S,)."""
        fewest: Ints = np.where(memory.A[slots], N[slots], np.iinfo(np.int64).max).min(axis=1)
        return fewest


class East(_Elimination):
    """EAST, the good filter of FAREAST alone (Mason et al. 2020): all epsilon-good arms with probability 1 - delta.

    Args:
        task: a task or an environment. delta: None takes the task's. c: constant of the width, > 0.
        sigma: sub-Gaussian scale; None takes the task's.
    """

    name, source = "east", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 2 without its bad filter"

    def test(self, memory: Memory, slots: Ints, m: Floats, C: Floats) -> None:
        A, G, B = memory.A[slots], memory.G[slots], memory.B[slots]
        top = np.where(A, m, -np.inf).max(axis=1, keepdims=True)
        U, L = self._threshold(top, C, 0.0)
        G |= A & (m - C >= U)
        bad = A & (m + C <= L)
        B |= bad
        A &= ~(bad | (G & (m + C <= top - C)))
        memory.A[slots], memory.G[slots], memory.B[slots] = A, G, B
        over = ~(A & ~G).any(axis=1) | (G | B).all(axis=1)
        memory.stop(slots[over], G[over])


class UniformElimination(_Elimination):
    """Round robin over all arms until all are known, (ST)^2's answer: right with probability 1 - delta.

    Args:
        task: a task or an environment. delta: None takes the task's. c: constant of the width, > 0.
        sigma: sub-Gaussian scale; None takes the task's.
    """

    name, source = "uniform-elimination", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, section 5"

    def test(self, memory: Memory, slots: Ints, m: Floats, C: Floats) -> None:
        U, L = self._threshold(m.max(axis=1, keepdims=True), C, self.gamma)
        good = m - C > U
        over = (good | (m + C < L)).all(axis=1)
        memory.stop(slots[over], good[over])
