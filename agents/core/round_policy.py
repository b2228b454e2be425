"""Round policies: plan to pull each arm of a set equally often; make these pulls; look at what they have shown; go on.

An algorithm makes its plans in one of two ways:

* `BulkPolicy`: by a compiled function of one episode, from which `episode_kernel` makes a kernel;
* `RoundPolicy`: by a function `look` of all episodes whose plans are over, in NumPy or through a `slot_kernel`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bandit_envs import Simulation
from bandit_envs.kernels import slot_kernel
from bandit_envs.simulation import MOST_TIMES, Playing, Quiet, player

from .agent import FLOAT, INT, Agent, Bools, Floats, Ints, Observation, unfit
from .bulk import BOOK, Plans, Sums, Times, following, plan_of, watch
from .spellings import AgentState

__all__ = ["BulkPolicy", "PlansPulls", "RoundPolicy", "RoundState"]


@slot_kernel
def deal(e: int, first: bool, pulls, plans: Plans, times: Times, arms):
    """Fill in the next arm of episode e, -1 where its plan is over; `first`: at the first call of a choice."""
    plan = plan_of(plans, e)
    if first:
        watch(plan, pulls, e)
    arms[e] = following(plan, e, times)


@dataclass
class RoundState(AgentState):
    """State of a round policy for E episodes."""

    plans: Plans

    @classmethod
    def of(cls, E: int, K: int, D: int = 1) -> dict[str, Any]:
        """The fields before the first choice."""
        books = np.zeros(E, BOOK)
        books["beginning"] = True
        base = np.zeros((E, K) if D == 1 else (E, K, D))
        return {"plans": Plans(books, np.zeros((E, K), np.int64), base, np.zeros((E, K), np.bool_))}

    @property
    def stopped(self) -> Bools:
        """Whether the algorithm has answered, (E,)."""
        stopped: Bools = self.plans.books["stopped"]
        return stopped

    @property
    def answer(self) -> Bools:
        """Its answer, (E, K)."""
        return self.plans.answer

    def write_all(self, slots: Ints, chosen: Bools, times: Any, total: Floats) -> None:
        """The next plans: pull each arm of a row of `chosen`, (S, K), `times` times, in order; total: (E, K)."""
        books, arms, base, _ = self.plans
        arms[slots] = np.argsort(~chosen, axis=1, kind="stable")
        books["size"][slots], books["place"][slots] = chosen.sum(axis=1), 0
        books["times"][slots] = books["left"][slots] = times
        base[slots] = total[slots]

    def stop(self, slots: Any, answer: Any) -> None:
        """Answer and stop."""
        self.stopped[slots], self.answer[slots] = True, answer


class PlansPulls(Agent):
    """What `BulkPolicy` and `RoundPolicy` have in common: arms are pulled in bulk, as planned.

    The state, a `RoundState`, follows the agent's own actions, and tells what the statistics do not: which arms are
    left in which round. So an episode that has begun is not taken over without it, see `resumes`.
    """

    resumes: ClassVar[bool] = False

    def initial_state(self, observation: Observation) -> Any:
        return RoundState(**RoundState.of(*observation["pulls"].shape))

    @abstractmethod
    def next_pulls(self, sums: Sums, observation: Observation, state: Any, times: Times, out: Ints) -> None:
        """Fill in the next arm of each episode, and how often to pull it.

        Args:
            sums: pulls and sums of samples.
            observation: the statistics.
            state: what `initial_state` has made.
            times: what it fills in.
            out: (E,) arms, K to stop.
        """

    def choose(self, observation: Observation, state: Any) -> tuple[Ints, Ints]:
        sums, times, arms = self._arrays(observation, state)
        self.next_pulls(sums, observation, state, times, arms)
        return arms, times.out

    def _arrays(self, observation: Observation, state: Any) -> tuple[Sums, Times, Ints]:
        """Pulls and sums, once they have been found to fit the state; scratch for numbers of pulls and for arms."""
        pulls = np.ascontiguousarray(observation["pulls"], INT)
        total = np.ascontiguousarray(observation["total"], FLOAT)
        E = len(state.plans.books)
        if len(pulls) != E:
            raise unfit(pulls, total, E, "total")
        most = 1 if self.task.actions == "arm" else MOST_TIMES
        return Sums(pulls, total), Times(np.empty(E, INT), most), np.empty(E, INT)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The plug-in answer; the algorithm's own once it has stopped."""
        answer = super().recommend(observation, state, slots)
        if state is None:
            return answer
        rows: Any = (0 if answer.ndim == 1 else slice(None)) if slots is None else slots
        return np.where(state.stopped[rows][..., None], state.answer[rows], answer)


class BulkPolicy(PlansPulls):
    """Pull arms in bulk, by plans that a compiled function of one episode makes."""

    @abstractmethod
    def rule(
        self, sums: Sums, observation: Observation, state: Any, times: Times, out: Ints
    ) -> tuple[Any, tuple[Any, ...]]:
        """The kernel of the next arm of an episode and its times, made by `episode_kernel`; its arguments.

        Args:
            sums: pulls and sums of samples.
            observation: the statistics.
            state: what `initial_state` has made.
            times: what it fills in.
            out: (E,), the last of the arguments, which the kernel fills in.
        """

    def next_pulls(self, sums: Sums, observation: Observation, state: Any, times: Times, out: Ints) -> None:
        kernel, arguments = self.rule(sums, observation, state, times, out)
        (kernel if self._brought else kernel.quick)(*arguments)

    @property
    def plays(self) -> bool:
        return True

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> tuple[Ints, Ints]:
        sums, times, arms = self._arrays(observation, state)
        kernel, arguments = self.rule(sums, observation, state, times, arms)
        player(kernel)(*arguments, Playing(simulation, quiet))
        return arms, times.out


class RoundPolicy(PlansPulls):
    """Pull arms in bulk, by plans that `start` and `look` make for all episodes that need one at a time."""

    @abstractmethod
    def start(self, observation: Observation, state: Any, slots: Ints) -> None:
        """Set up the state of these episodes, which may have pulls already, and write their first plans."""

    @abstractmethod
    def look(self, observation: Observation, state: Any, slots: Ints) -> None:
        """The plans of these episodes are over: update the sets, and write the next plans or stop."""

    def next_pulls(self, sums: Sums, observation: Observation, state: Any, times: Times, out: Ints) -> None:
        slots, first = np.arange(len(out)), True
        while True:
            deal.quick(slots, first, sums.pulls, state.plans, times, out)
            slots, first = (out < 0).nonzero()[0], False
            if not len(slots):
                return
            beginning = state.plans.books["beginning"][slots]
            begun, over = slots[beginning], slots[~beginning]
            state.plans.books["beginning"][begun] = False
            if len(begun):
                self.start(observation, state, begun)
            if len(over):
                self.look(observation, state, over)
