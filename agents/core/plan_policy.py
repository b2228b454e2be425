"""Plan policies: pull every arm a few times; then plan some pulls, make them, look at what they have shown, plan again.

Here is what all of them share: the first pass over the arms, and handing out the arms of a plan one by one. The
algorithm is three rules: `round_rule` makes the kernel of its sampling rule and its stopping rule; `recommend` of the
agent is the third.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandit_envs import Simulation
from bandit_envs.kernels import certain, episode_kernel, inlined, part, view
from bandit_envs.simulation import Playing, Quiet, player

from .agent import FLOAT, INT, Agent, Floats, Ints, Observation, unfit
from .spellings import AgentState

__all__ = [
    "Episode",
    "PlanState",
    "PlanPolicy",
    "Seen",
    "add",
    "assembled",
    "check",
    "clear",
    "count_pulls",
    "following",
    "planned",
    "round_rule",
]

MOST_ARMS = 3  # of a plan
NO_PULL, NO_ARM = 2, 3  # in place of `overfull`: a plan that must not be empty is; one has an arm that there is not
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


@certain
class Seen(NamedTuple):
    """What the episodes have shown."""

    pulls: Ints  # (E, K)
    mean: Floats  # (E, K)


class Episode(NamedTuple):
    """One episode. Its number is unsigned."""

    e: Any
    seen: Any  # what all episodes have shown
    plan: Any


@inlined
def count_pulls(seen, e):
    """The pulls of all arms in episode e so far."""
    t = 0
    for i in range(seen.pulls.shape[1]):
        t += seen.pulls[e, i]
    return t


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


@part
def once(own):
    """How often every arm is pulled first."""
    return 1


@part
def never(ep, own, found):
    """The stopping rule of an algorithm that runs on, unless its sampling rule plans nothing."""
    return False


_NEXT_ARM = """def next_arm(e, seen: Samples, plans, own: Own):
    plan = plans[e]
    arm = following(seen, e, plan, passes(own))
    if arm < 0:
        ep = Episode(e, seen, plan)
        found = observe(ep, own)
        clear(plan)
        if not stops(ep, own, found):
            sample(ep, own, found)
            check(plan, seen.pulls.shape[1])
        arm = following(seen, e, plan, passes(own))
    return arm if arm >= 0 else seen.pulls.shape[1]
"""


def round_rule(
    own: Any, seen: Any = Seen, *, observe: Any, stops: Any = never, passes: Any = once
) -> Callable[[Callable[..., None]], Any]:
    """From a sampling rule, which plans the pulls of the next round of one episode, the kernel of a batch.

    The kernel is `f(seen, plans, own, out)`. Every arm is pulled first. Then, round by round, the kernel observes what
    the planned pulls have shown, stops or plans anew, and pulls. The sampling rule is `f(ep, own, found)`, for an
    `Episode`; it calls `add`. An episode stops, too, where it plans nothing.

    Args:
        own: the struct of the algorithm's rules and state. seen: the struct of the statistics that it reads.
        observe: `observe(ep, own)`, called before the plan is cleared; what it returns is `found`.
        stops: `stops(ep, own, found)`, the stopping rule.
        passes: `passes(own)`, how often every arm is pulled first.
    """

    def make(sample: Callable[..., None]) -> Any:
        return assembled(
            _NEXT_ARM,
            sample,
            Own=own,
            Samples=seen,
            Episode=Episode,
            following=following,
            clear=clear,
            check=check,
            observe=observe,
            stops=stops,
            passes=passes,
            sample=inlined(sample),
        )

    return make


def assembled(source: str, rule: Callable[..., None], **place: Any) -> Any:
    """The kernel of the function `next_arm` in a source, under the name of the sampling rule that it calls."""
    place["__name__"] = rule.__module__
    exec(compile(source, rule.__code__.co_filename, "exec"), place)
    function: Any = place["next_arm"]
    function.__qualname__, function.__doc__, function.made_of = rule.__qualname__, rule.__doc__, rule
    return episode_kernel(function)


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
        if pulls.ndim != 2 or mean.ndim != 2 or len(pulls) != len(state.plans):
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
            raise ValueError(
                f"the sampling rule of {self.name} has planned {times} pulls of arm {arm}: arms are 0 .. {K - 1}, and "
                "an arm is pulled once or more often"
            )
        if (state.plans["overfull"] == NO_PULL).any():
            raise ValueError(f"the sampling rule of {self.name} has planned no pull, where the answer is not certified")
        if state.plans["overfull"].any():
            raise ValueError(f"a plan of {self.name} has more than {MOST_ARMS} arms; agents.BulkPolicy plans more")
