"""The forms of 0.2.0 in which agents could be written, for code that has them; each warns, and goes with 0.4.

`PlanPolicy`, `BulkPolicy` and `RoundPolicy`, with the functions that their kernels call; `agents.core.bulk` is `bulk`.
`CertifiedPolicy` with `sampling_rule`. `agents.Algorithm` is the form that this package has, and nothing here is used
by any other file.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandit_envs import Simulation
from bandit_envs.kernels import PULLS_LIMIT, fleeting, inlined, jit, part, slot_kernel, view
from bandit_envs.simulation import MOST_TIMES, Playing, Quiet, player

from .certified import CertifiedAlgorithm
from .core.agent import FLOAT, INT, Agent, Bools, Floats, Ints, Observation, unfit
from .core.algorithm import Form, per_episode, pull
from .core.spellings import AgentState


def _warn(kind: type, base: str) -> None:
    """Say that a class is in a form of 0.2.0, once, where it is defined."""
    if not kind.__module__.startswith("agents."):
        text = f"{kind.__qualname__} is in a form of 0.2.0, {base}, which goes with 0.4"
        text += ": derive it from agents.Algorithm, as docs/own-agent.md explains"
        warnings.warn(text, DeprecationWarning, stacklevel=4)


# --- PlanPolicy -------------------------------------------------------------------------------------------------------

MOST_ARMS = 3  # of a plan
NO_ARM = 3  # in place of `overfull`: a plan has an arm that there is not
# The plan of an episode. `times`: how often each of its arms is pulled. `place`: of the next arm, in the plan, or in
# the first passes over the arms while those last (`beginning`). `made`: pulls of that arm. `last`: the arm chosen last.
# `resumed`: whether the state was made in the middle of the episode and no plan has been begun since. `overfull`:
# whether any plan was to have more arms than fit.
PLAN = np.dtype(
    [
        ("arms", np.int64, MOST_ARMS),
        ("times", np.int64, MOST_ARMS),
        *((name, np.int64) for name in ("size", "place", "made", "beginning", "last", "resumed", "overfull")),
    ],
    align=True,
)


@fleeting
class Seen(NamedTuple):
    """What the episodes have shown."""

    pulls: Ints  # (E, K)
    mean: Floats  # (E, K)


@view
def planned(plan):
    """The arms of the plan; none before the first plan."""
    return plan.arms[: plan.size]


@inlined
def clear(plan):
    """Plan nothing; the first passes over the arms are over."""
    plan.size = plan.place = plan.made = plan.beginning = 0


@inlined
def add(plan, i, times=1):
    """Plan to pull arm i too, so often, after the arms planned so far: at most 3, and `PlanPolicy` refuses more."""
    if plan.size < MOST_ARMS:
        plan.arms[np.uint64(plan.size)] = i | 0  # a float is an error
        plan.times[np.uint64(plan.size)] = times | 0
        plan.size += 1
    else:
        plan.overfull = 1


@inlined
def check(plan, K):
    """Empty a plan with an arm that is none of K, or that is to be pulled less than once; `place` tells which."""
    for j in range(plan.size):
        if not 0 <= plan.arms[np.uint64(j)] < K or plan.times[np.uint64(j)] < 1:
            plan.overfull, plan.place = NO_ARM, j
    plan.size = 0 if plan.overfull == NO_ARM else plan.size


@inlined
def following(seen, e, plan, passes=1):
    """The next arm of episode e, of so many first passes over all arms or of its plan; -1 where the plan is over."""
    arm, K = np.int64(-1), seen.pulls.shape[1]
    if seen.pulls[e, np.uint64(plan.last)] == 0:  # a new episode has begun
        clear(plan)
        plan.beginning, plan.resumed = 1, 0
    if plan.beginning:
        while plan.place < passes * K and seen.pulls[e, np.uint64(plan.place % K)] > plan.place // K:
            plan.place += 1
        arm = plan.place % K if plan.place < passes * K else arm
    elif plan.place < plan.size:
        if plan.resumed:  # which arms of the plan before have been pulled is lost: begin with the one that has least
            least: Any = np.uint64(0)
            for j in range(np.uint64(1), np.uint64(plan.size)):
                least = j if seen.pulls[e, plan.arms[j]] < seen.pulls[e, plan.arms[least]] else least
            plan.arms[np.uint64(0)], plan.arms[least] = plan.arms[least], plan.arms[np.uint64(0)]
            plan.times[np.uint64(0)], plan.times[least] = plan.times[least], plan.times[np.uint64(0)]
            plan.resumed = 0
        arm = plan.arms[np.uint64(plan.place)]
        plan.made += 1
        if plan.made >= plan.times[np.uint64(plan.place)]:
            plan.place += 1
            plan.made = 0
    plan.last = arm if arm >= 0 else plan.last
    return arm


@dataclass
class PlanState(AgentState):
    """State of a plan policy that keeps its plans alone, for E episodes."""

    plans: Any  # (E,) of `PLAN`


class PlanPolicy(Agent):
    """Pull every arm; then a few arms at a time, as planned.

    A subclass says in `rule` which kernel, made by `episode_kernel`, tells the next arm of an episode. Where it
    keeps more than its plans, `initial_state` returns a dataclass of its own with a field `plans`, made by `new_plans`.
    """

    anytime: ClassVar[bool] = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _warn(cls, "PlanPolicy")

    def new_plans(self, observation: Observation) -> Any:
        """Empty plans for the episodes of an observation, (E,) of `PLAN`."""
        plans = np.zeros(len(observation["pulls"]), PLAN)
        pulls = observation["pulls"]
        plans["beginning"], plans["last"], plans["resumed"] = 1, np.argmax(pulls, axis=1), pulls.any(axis=1)
        return plans

    def initial_state(self, observation: Observation) -> Any:
        return PlanState(self.new_plans(observation))

    @abstractmethod
    def rule(self, seen: Seen, observation: Observation, state: Any, out: Ints) -> tuple[Any, tuple[Any, ...]]:
        """The kernel of the next arm of an episode, made by `episode_kernel`, and its arguments.

        Args:
            seen: pulls and means.
            observation: the statistics.
            state: what `initial_state` has made.
            out: (E,), the last of the arguments, which the kernel fills in.
        """

    def _seen(self, observation: Observation, state: Any) -> Any:
        """What the episodes have shown, as `rule` takes it, checked."""
        pulls = np.ascontiguousarray(observation["pulls"], INT)
        mean = np.ascontiguousarray(observation["mean"], FLOAT)
        if len(pulls) != len(state.plans):
            raise unfit(pulls, mean, len(state.plans))
        return Seen(pulls, mean)

    def choose(self, observation: Observation, state: Any) -> Ints:
        out = np.empty(len(state.plans), INT)
        kernel, arguments = self.rule(self._seen(observation, state), observation, state, out)
        if self._brought:
            kernel(*arguments)
            self._check_plans(state)
        else:
            kernel.quick(*arguments)
        return out

    @property
    def plays(self) -> bool:
        return True

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> Ints:
        out = np.empty(len(state.plans), INT)
        kernel, arguments = self.rule(self._seen(observation, state), observation, state, out)
        play = player(kernel)
        play(*(kernel.whole(arguments) if self._brought else arguments), Playing(simulation, quiet))
        if self._brought:
            self._check_plans(state)
        return out

    def _check_plans(self, state: Any) -> None:
        """Refuse plans that were to have more arms than fit, and those that must not be empty."""
        wrong = np.flatnonzero(state.plans["overfull"] == NO_ARM)
        if len(wrong):
            plan = state.plans[wrong[0]]
            arm, times, K = plan["arms"][plan["place"]], plan["times"][plan["place"]], self.task.K
            text = f"the sampling rule of {self.name} has planned {times} pulls of arm {arm}:"
            raise ValueError(f"{text} arms are 0 .. {K - 1}, and an arm is pulled once or more often")
        if state.plans["overfull"].any():
            raise ValueError(f"a plan of {self.name} has more than {MOST_ARMS} arms; agents.BulkPolicy plans more")


# --- BulkPolicy and RoundPolicy ---------------------------------------------------------------------------------------

# Where an episode stands in its plan. `size`: arms of the plan. `times`: pulls of each. `place`: that of the next arm,
# and `left`: pulls still to be made of it. `made`: plans made since `begin`. `last`: the arm chosen last. `beginning`:
# an episode has begun, or the state has been built in its middle, and `begin` has not been called. `stopped`: the
# algorithm has answered.
_NUMBERS, _FLAGS = ("size", "times", "place", "left", "made", "last"), ("beginning", "stopped")
BOOK = np.dtype([*((name, np.int64) for name in _NUMBERS), *((name, np.bool_) for name in _FLAGS)], align=True)


@fleeting
class Sums(NamedTuple):
    """What the episodes have shown."""

    pulls: Ints  # (E, K)
    total: Floats  # (E, K) sums of samples


@fleeting
class Times(NamedTuple):
    """How often the chosen arms are to be pulled."""

    out: Ints  # (E,) filled in
    most: int  # at most so often at once


class Plans(NamedTuple):
    """The plans and the answers of a batch of episodes."""

    books: Any  # (E,) of BOOK
    arms: Ints  # (E, K) arms of the plan, in the order of their pulls
    base: Floats  # (E, K) or (E, K, D) sums of the samples that do not count, as they are not fresh
    answer: Bools  # (E, K) read where the algorithm has stopped


class Plan(NamedTuple):
    """The plan and the answer of one episode."""

    book: Any
    arms: Any  # (K,)
    base: Any  # (K,) or (K, D)
    answer: Any  # (K,)


@view
def plan_of(plans, e):
    """The plan of episode e."""
    return Plan(plans.books[e], plans.arms[e], plans.base[e], plans.answer[e])


@view
def bulk_planned(plan):
    """The arms of the plan."""
    return plan.arms[: plan.book.size]


@part
def arm_at(plan, j):
    """The arm at place j of the plan, signed as the integers of a rule are: Numba makes a float of both kinds."""
    return plan.arms[np.uint64(j)]


@part
def put_at(plan, j, i):
    """Put arm i at place j of the plan."""
    plan.arms[np.uint64(j)] = i


@part
def begin(plan):
    """No plan has been made yet."""
    plan.book.size = plan.book.place = plan.book.made = 0
    plan.book.beginning = False


@part
def bulk_clear(plan):
    """Plan no arm."""
    plan.book.size = 0


@part
def bulk_add(plan, i):
    """Plan to pull arm i too, after the arms planned so far."""
    put_at(plan, plan.book.size, i)
    plan.book.size += 1


@part
def repeat(plan, times, first=0):
    """The plan is made: pull its arms `times` times each, beginning at place `first`."""
    plan.book.place = first
    plan.book.times = plan.book.left = times
    plan.book.made += 1


@part
def stop(plan):
    """Stop with the answer of the plan."""
    plan.book.stopped = True


@jit
def whole(pulls):
    """A number of pulls, rounded up; at most `PULLS_LIMIT`, which no arm reaches."""
    return math.ceil(pulls) if pulls < PULLS_LIMIT else PULLS_LIMIT


@part
def mark(plan, total):
    """Only samples from now on are fresh. total (K,): sums of all samples."""
    for i in range(len(total)):
        plan.base[i] = total[i]


@part
def fresh_mean(plan, total, i):
    """The mean of the fresh samples of arm i, which are those of the plan that is over. total (K,): as above."""
    return (total[i] - plan.base[i]) / plan.book.times


@inlined
def watch(plan, pulls, e):
    """Notice where a new episode has begun: the arm chosen last has no pulls. To be called once at every choice."""
    if pulls[e, np.uint64(plan.book.last)] == 0:
        plan.book.size = plan.book.place = 0
        plan.book.beginning, plan.book.stopped = True, False


@inlined
def bulk_following(plan, e, times):
    """The next arm of episode e, K if it has stopped, -1 where its plan is over; fills in how often to pull it."""
    book = plan.book
    times.out[e] = 1
    if book.stopped:
        return np.int64(len(plan.arms))
    if book.place >= book.size:
        return np.int64(-1)
    arm, pulls = plan.arms[np.uint64(book.place)], min(book.left, times.most)
    book.left -= pulls
    if book.left == 0:
        book.place += 1
        book.left = book.times
    book.last = arm
    times.out[e] = pulls
    return arm


@slot_kernel
def deal(e: int, first: bool, pulls, plans: Plans, times: Times, arms):
    """Fill in the next arm of episode e, -1 where its plan is over; `first`: at the first call of a choice."""
    plan = plan_of(plans, e)
    if first:
        watch(plan, pulls, e)
    arms[e] = bulk_following(plan, e, times)


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
    bulk: ClassVar[bool] = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _warn(cls, "BulkPolicy or RoundPolicy")

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


bulk: Any = ModuleType("agents.core.bulk", "The plans of a `BulkPolicy`.")
vars(bulk).update(
    {
        name.removeprefix("bulk_"): globals()[name]
        for name in (
            "BOOK",
            "Plan",
            "Plans",
            "Sums",
            "Times",
            "bulk_add",
            "arm_at",
            "begin",
            "bulk_clear",
            "bulk_following",
            "fresh_mean",
            "mark",
            "plan_of",
            "bulk_planned",
            "put_at",
            "repeat",
            "stop",
            "watch",
            "whole",
        )
    }
)


# --- CertifiedPolicy --------------------------------------------------------------------------------------------------


class Sampling(NamedTuple):
    """A sampling rule, and what is called where an episode begins."""

    own: Any
    rule: Callable[..., None]
    begin: Callable[..., None] | None


def sampling_rule(own: Any, begin: Callable[..., None] | None = None) -> Callable[[Callable[..., None]], Sampling]:
    """A sampling rule `plan(ep, own)`, which plans the next pulls of one episode by `add(ep.plan, arm, times)`.

    Args:
        own: the struct of the rule's own settings and state. begin: `begin(ep, own)`, called where an episode begins.

    Raises:
        TypeError: for another `own`.
    """
    if not hasattr(own, "_fields"):
        raise TypeError(f"sampling_rule takes the class of a struct, as in @sampling_rule(Own), got {own!r:.200}")
    return lambda rule: Sampling(own, rule, begin)


def _sample(ep, own):
    clear(ep.plan)
    RULE(ep, ep.given)  # noqa: F821
    for j in range(ep.plan.size):
        pull(ep, ep.plan.arms[j], ep.plan.times[j])


def _begin(ep, own):
    RULE(ep, ep.given)  # noqa: F821


def _calling(caller: Any, rule: Any) -> Any:
    """One of the two functions above, which calls a rule."""
    made: Any = FunctionType(caller.__code__, {**globals(), "RULE": rule if hasattr(rule, "py_func") else view(rule)})
    made.__qualname__, made.made_of = rule.__qualname__, getattr(rule, "py_func", rule)
    return made


class CertifiedPolicy(CertifiedAlgorithm):
    """An agent that stops when its plug-in answer is certified: see `CertifiedAlgorithm`."""

    sampling: Any = None  # made by `sampling_rule`
    draws = per_episode(int)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _warn(cls, "CertifiedPolicy")
        if isinstance(cls.sampling, Sampling):
            given = {"given": (cls.sampling.own, "batch.given"), "plan": (Any, "batch.plan[e]")}
            cls.parts = CertifiedAlgorithm.parts | given | {"round": (None, "batch.now[e]")}
            cls.rules = {"sample": _calling(_sample, cls.sampling.rule)}
            if cls.sampling.begin is not None:
                cls.rules["begin"] = _calling(_begin, cls.sampling.begin)
            cls.form = Form(cls)
            cls.form.make_structs()

    def __init__(self, task: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(task, *arguments, **options)
        if not isinstance(self.sampling, Sampling):
            raise TypeError(f"the class {type(self).__name__} needs the attribute sampling, made by sampling_rule")

    @abstractmethod
    def own(self, state: Any) -> Any:
        """The struct of the sampling rule's settings and state."""

    def batch(self, state: Any) -> Any:
        """The struct of a state, with what `own` says now."""
        state.bound = None
        return super().batch(state)

    def batch_parts(self, state: Any) -> tuple[tuple[Any, ...], Any]:
        parts, kept = super().batch_parts(state)
        return (*parts, self.own(state), np.zeros(len(state.now), PLAN)), kept

    def choose(self, observation: Observation, state: Any) -> Any:
        state.bound = None
        return super().choose(observation, state)
