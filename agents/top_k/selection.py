"""What the algorithms that adapt to every sample share: a first pass over the arms, and the set High of the k best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import inlined, jit

from ..core.agent import Agent, Bools, Floats, Ints, Observation, unfit
from ..core.confidence import delta_of

__all__ = ["SelectionMemory", "TopKAgent", "open_round"]


@dataclass
class SelectionMemory:
    """Memory for E episodes."""

    inside: Bools  # (E, K) High
    between: Floats  # (E,) a number between the means of Low and those of High
    place: Ints  # (E,) in the first pass over the arms
    made: Ints  # (E,) pulls so far, from the end of the first pass on
    last: Ints  # (E,) arm chosen last


@jit
def gather(mean: Any, inside: Any, between: Any, e: Any, k: Any) -> Any:
    """Set High to the k largest means of episode e, ties to the lowest arm."""
    order = np.argsort(-mean[e], kind="mergesort")
    for i in range(len(order)):
        inside[e, order[i]] = i < k
    between[e] = mean[e, order[k]]


@jit
def move(mean: Any, inside: Any, between: Any, e: Any, i: Any) -> Any:
    """Put High right after the mean of arm i, and no other, has changed: a scan where it has crossed `between`."""
    K, i = np.uint64(mean.shape[1]), np.uint64(i)
    m, within = mean[e, i], inside[e, i]
    if (within and m > between[e]) or (not within and m < between[e]):
        return
    other, x = i, m
    if within:  # the best of Low, if it is now ahead
        highest = -math.inf
        for j in range(K):
            if not inside[e, j]:
                highest = mean[e, j] if mean[e, j] > highest else highest
                if mean[e, j] > x or (mean[e, j] == x and j < other):
                    other, x = j, mean[e, j]
        between[e] = max(highest, m) if other != i else highest + 0.5 * (m - highest)
    else:  # the worst of High
        lowest = math.inf
        for j in range(K):
            if inside[e, j]:
                lowest = mean[e, j] if mean[e, j] < lowest else lowest
                if mean[e, j] < x or (mean[e, j] == x and j > other):
                    other, x = j, mean[e, j]
        between[e] = min(lowest, m) if other != i else m + 0.5 * (lowest - m)
    if other != i:
        inside[e, i], inside[e, other] = not within, within


@inlined
def next_below(pulls: Any, e: Any, K: Any, n: Any, place: Any) -> Any:
    """The place, from this one on, of the next arm to pull in n rounds over all arms; n K if all have n pulls."""
    while place < n * K and pulls[e, np.uint64(place % K)] > place // K:
        place += 1
    return place


@jit
def open_round(
    pulls: Any, mean: Any, e: Any, k: Any, n: Any, inside: Any, between: Any, place: Any, made: Any, last: Any
) -> Any:
    """The arm of a first pass in which all arms are pulled n times; K once it is over and High is right."""
    K = np.int64(mean.shape[1])
    if pulls[e, np.uint64(last[e])] == 0:  # a new episode has begun
        place[e] = 0
    if place[e] == n * K:
        move(mean, inside, between, e, last[e])
        return K
    place[e] = next_below(pulls, e, K, n, place[e])
    if place[e] < n * K:
        last[e] = place[e] % K
        return last[e]
    made[e] = 0
    for i in range(np.uint64(K)):
        made[e] += pulls[e, i]
    gather(mean, inside, between, e, k)
    return K


class TopKAgent(Agent):
    """An algorithm for TopK, and for BestArm as TopK with k = 1. It answers High, the k largest empirical means.

    With a budget it spends it; otherwise it stops by its own rule.
    """

    solves: tuple[str, ...] = ("TopK", "BestArm")  # type: ignore[misc]

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        self.k: int = self.problem.k  # type: ignore[attr-defined]
        self.epsilon: float = self.problem.epsilon  # type: ignore[attr-defined]

    @property
    def budgeted(self) -> bool:
        """Whether it spends a budget."""
        return self.task.budget is not None

    def stopping_level(self, delta: float | None) -> float | None:
        """delta, or None where it is only needed to stop and nobody asks for that."""
        needed = delta is not None or self.task.delta is not None or not self.budgeted
        return delta_of(self.name, self.task, delta) if needed else None

    def remember(self, observation: Observation) -> Any:
        return SelectionMemory(**self.blank(observation))

    def blank(self, observation: Observation) -> dict[str, Any]:
        """The fields of a `SelectionMemory` before the first choice."""
        E, K = observation["pulls"].shape
        return {
            "inside": np.zeros((E, K), np.bool_),
            "between": np.zeros(E),
            "place": np.zeros(E, np.int64),
            "made": np.zeros(E, np.int64),
            "last": np.argmax(observation["pulls"], axis=1),
        }

    @staticmethod
    def read(observation: Observation, state: Any) -> tuple[Ints, Floats]:
        """Pulls and means (E, K) as the kernels take them.

        Raises:
            ValueError: if they do not go with the memory.
        """
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        mean = np.ascontiguousarray(observation["mean"], np.float64)
        if pulls.shape != state.inside.shape or mean.shape != pulls.shape:
            raise unfit(pulls, mean, len(state.last))
        return pulls, mean
