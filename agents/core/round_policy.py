"""Round policies: pull every arm of a set so many times, then look.

A plan is a list of arms, each to be pulled `times` times. One compiled dealer hands the arms out: in bulk where the
environment takes full actions, by repetition where it takes single arms. When the plan of an episode is over, the
algorithm's `look` is called for the episodes that are due: it updates its sets and writes the next plan, or stops.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs import MOST_TIMES, jit

from .agent import Agent, Bools, Floats, Ints, Observation

__all__ = ["RoundMemory", "RoundPolicy"]


@dataclass
class RoundMemory:
    """Memory of a round policy for E episodes."""

    plan: Ints  # (E, K) arms of the plan, in the order of their pulls
    size: Ints  # (E,) how many
    place: Ints  # (E,) the arm of the plan that is being pulled
    times: Ints  # (E,) pulls of each arm
    left: Ints  # (E,) pulls that the arm at this place is still owed
    last: Ints  # (E,) arm chosen last; K before the first choice
    fresh: Bools  # (E,) an episode has begun, or is met in its middle
    stopped: Bools  # (E,) the algorithm has answered
    answer: Bools  # (E, K) its answer
    base: Floats  # (E, K) or (E, K, D) sums of samples when the plan was written

    @classmethod
    def of(cls, E: int, K: int, D: int = 1) -> dict[str, Any]:
        """The fields before the first choice."""
        counts = {name: np.zeros(E, np.int64) for name in ("size", "place", "times", "left")}
        return {
            **counts,
            "plan": np.zeros((E, K), np.int64),
            "base": np.zeros((E, K) if D == 1 else (E, K, D)),
            "last": np.full(E, K),
            "fresh": np.ones(E, np.bool_),
            "stopped": np.zeros(E, np.bool_),
            "answer": np.zeros((E, K), np.bool_),
        }

    def write(self, slot: int, arms: Any, times: int, total: Floats) -> None:
        """The next plan of one episode: pull each of these arms `times` times."""
        n = len(arms)
        self.plan[slot, :n], self.size[slot], self.place[slot] = arms, n, 0
        self.times[slot] = self.left[slot] = times
        self.base[slot] = total[slot]

    def write_all(self, slots: Ints, chosen: Bools, times: Any, total: Floats) -> None:
        """The next plans of these episodes: pull each arm of a row of `chosen`, (S, K), `times` times, in order."""
        self.plan[slots] = np.argsort(~chosen, axis=1, kind="stable")
        self.size[slots], self.place[slots] = chosen.sum(axis=1), 0
        self.times[slots] = self.left[slots] = times
        self.base[slots] = total[slots]

    def rest(self, slot: int) -> None:
        """No plan for one episode: something else chooses its arms, until it is asked for a plan."""
        self.size[slot] = self.place[slot] = self.left[slot] = 0

    def means(self, slots: Any, total: Floats) -> Floats:
        """Means of the samples of the plan just carried out, (S, K) or (S, K, D); 0 for arms outside it."""
        sums = total[slots] - self.base[slots]
        fresh: Floats = sums / self.times[slots].reshape(-1, *(1,) * (sums.ndim - 1))
        return fresh

    def stop(self, slots: Any, answer: Any) -> None:
        """Answer and stop."""
        self.stopped[slots], self.answer[slots] = True, answer


@jit
def _deal(
    pulls: Any,
    K: Any,
    most: Any,
    plan: Any,
    size: Any,
    place: Any,
    times: Any,
    left: Any,
    last: Any,
    fresh: Any,
    stopped: Any,
    rows: Any,
    arms: Any,
    counts: Any,
    due: Any,
) -> Any:
    """Arm and number of pulls, at most `most`, of each slot in `rows`; how many plans are over (their slots in `due`).

    pulls (E * K,); an arm chosen last that has no pulls tells that a new episode has begun.
    """
    n = 0
    for j in range(len(rows)):
        e = rows[j]
        if last[e] < K and pulls[e * K + last[e]] == 0:
            fresh[e] = True
        counts[e] = 1
        if fresh[e]:
            due[n] = e
            n += 1
            continue
        if stopped[e]:
            arms[e] = K
            continue
        if left[e] == 0 and place[e] < size[e]:
            place[e] += 1
            left[e] = times[e]
        if place[e] >= size[e]:
            due[n] = e
            n += 1
            continue
        counts[e] = min(left[e], most)
        left[e] -= counts[e]
        arms[e] = last[e] = plan[e, place[e]]
    return n


class RoundPolicy(Agent):
    """Pull every arm of a set so many times, then look.

    The memory follows the agent's own actions: where another arm is pulled in its place, call `predict` with
    `state=None`, which lets the algorithm begin anew from what has been seen.
    """

    def remember(self, observation: Observation) -> Any:
        return RoundMemory(**RoundMemory.of(*observation["pulls"].shape))

    @abstractmethod
    def start(self, observation: Observation, memory: Any, slots: Ints) -> None:
        """Set up the memory of these episodes and write their first plans; they may have been met in their middle."""

    @abstractmethod
    def look(self, observation: Observation, memory: Any, slots: Ints) -> None:
        """The plans of these episodes are over: update the sets, and write the next plans or stop."""

    def choose(self, observation: Observation, state: Any) -> tuple[Ints, Ints]:
        E = len(state.size)
        arms, counts, rows = np.empty(E, np.int64), np.empty(E, np.int64), np.arange(E)
        while len(rows):
            rows = self.serve(observation, state, rows, arms, counts)
        return arms, counts

    def serve(self, observation: Observation, state: Any, rows: Ints, arms: Ints, counts: Ints) -> Ints:
        """Fill in arms and counts of the slots `rows` by their plans; look where these are over, and return those."""
        m, due = state, np.empty(len(rows), np.int64)
        pulls = np.ascontiguousarray(observation["pulls"], np.int64).reshape(-1)
        most = 1 if self.task.actions == "arm" else MOST_TIMES
        n = _deal(
            pulls,
            self.task.K,
            most,
            m.plan,
            m.size,
            m.place,
            m.times,
            m.left,
            m.last,
            m.fresh,
            m.stopped,
            rows,
            arms,
            counts,
            due,
        )
        due = due[:n]
        begun, over = due[m.fresh[due]], due[~m.fresh[due]]
        if len(begun):
            m.fresh[begun] = m.stopped[begun] = False
            m.last[begun] = self.task.K
            self.start(observation, m, begun)
        if len(over):
            self.look(observation, m, over)
        return due

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The plug-in answer; the algorithm's own once it has stopped."""
        answer = super().recommend(observation, state, slots)
        if state is None:
            return answer
        rows: Any = (0 if answer.ndim == 1 else slice(None)) if slots is None else slots
        return np.where(state.stopped[rows][..., None], state.answer[rows], answer)
