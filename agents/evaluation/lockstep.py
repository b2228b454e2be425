"""Episodes in lockstep: an agent plays many side by side, in batches of bounded memory.

By the counter-based random numbers all agents meet the same samples: episode e of `evaluate(seed=s)` is episode e of
root s. A slot whose episode has ended takes the next one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import PureExplorationVectorEnv, agent_uniforms
from bandit_envs.kernels import jit
from bandit_envs.simulation import Quiet, quiet_until

from ..core.agent import shown_to
from .blocks import Block
from .drawing import Drawing
from .execution import Watch
from .plan import Plan, bounds_of, certifier_of, make_envs, most_pulls, plays
from .rows import CERTIFIED, LEVEL, ROUNDING, Run

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

PATIENCE = 0.5  # seconds of compiled code without a look at what the user has typed
DRAWS = 2**32 - 1  # the seed of the draws of models among the streams of agents
_INT64 = np.dtype(np.int64)
FORFEITED = "forfeited"  # a count of agents that may end an episode without an answer
NEVER = np.iinfo(np.int64).max  # pulls that no episode reaches


@jit
def _passes(arm, times, stop, most, spent, limit):
    """Whether the next pulls, clipped as the environment does it, lead any episode beyond its limit."""
    beyond = False
    for e in range(len(arm)):
        pulls = min(0 if arm[e] == stop else times[e], most - spent[e])
        beyond |= pulls > limit[e] - spent[e]
    return beyond


@dataclass(frozen=True)
class Played:
    """The blocks that were made, their contents, to be read once, and for each run its label, pulls and seconds."""

    blocks: Sequence[Block]
    contents: Iterable[object]
    spent: Sequence[tuple[str, int, float]]


def play(plans: Sequence[Plan], blocks: Sequence[Block], seed: int, form: Callable[..., Any], watch: Watch) -> Played:
    """Play the episodes of neighbouring blocks, all of the same size but the last one, in one go.

    Args:
        plans: the runs of the blocks. seed: the root. watch: of the tasks that run at the same time.
        form: makes the content of a block, given it and the rows of each run.

    Raises:
        StoppedError: once `watch` is asked to stop.
    """
    episodes, parts, spent = sum(block.episodes for block in blocks), [], []
    for plan in plans:
        started = time.perf_counter()
        if watch.bar is not None:
            watch.bar.label = plan.label
        batches = math.ceil(episodes / min(plan.slots, episodes))
        slots = math.ceil(episodes / batches)  # none of them idles in the last batch
        with closing(make_envs(plan.env_id, slots, plan.forms, plan.kwargs)) as envs:
            rows = Lockstep(plan, envs, blocks[0].first, episodes, seed, blocks[0].episodes, watch).run()
        parts.append(rows)
        pulls = sum(int(part.columns["total_pulls"][:, -1].sum()) for part in rows)
        spent.append((plan.label, pulls, time.perf_counter() - started))
    contents = (form(block, [rows[i] for rows in parts]) for i, block in enumerate(blocks))
    # For another process at once: the file of a block is smaller than its rows.
    return Played(blocks, contents if watch.here else list(contents), spent)


def forfeited(policy: Any, state: object, slots: Ints, verdict: Mapping[str, Any], cut: Any = False) -> dict[str, Any]:
    """What an agent counts in slots, if it does; what it forfeits, or leaves unanswered where it is `cut`, scores 0."""
    found: dict[str, Any] = policy.tallied(state, slots) if getattr(policy, "counts", ()) else {}
    if FORFEITED in found:
        lost = found[FORFEITED] = np.asarray(found[FORFEITED] | cut, np.int64)
        found |= {"score": np.where(lost, 0.0, verdict["score"]), "correct": verdict["correct"] & (lost == 0)}
    return found


class Lockstep:
    """One pass of an agent over so many episodes, from number `first` on, in blocks of this size."""

    def __init__(
        self, plan: Plan, envs: PureExplorationVectorEnv, first: int, episodes: int, seed: int, size: int, watch: Watch
    ) -> None:
        policy, empty = plan.policy, plan.empty(episodes)
        self.policy, self.envs, self.bounds = policy, envs, bounds_of(policy)
        self.handcrafted = envs.task.actions == "full"  # then the agent's own answer is scored
        self.first, self.episodes, self.seed, self.size, self.watch = first, episodes, seed, size, watch
        E = envs.num_envs
        self.plays, self.draws = plays(policy, E, envs.setting.ranked, envs.task.waits), isinstance(policy, Drawing)
        self.steps = 2**10  # actions of an episode between two looks, by which a run can be interrupted within a second
        self.checks, self.result = np.array(plan.checks or [], np.int64), empty
        envs.certifier = certifier_of(policy, envs.task) if LEVEL in empty.names else None
        C, K = empty.pulls.shape
        self.pulls = np.zeros((math.ceil(episodes / size) * C, K))  # sums by block and checkpoint
        self.episode = first + np.arange(E)  # which episode each slot runs
        self.spent = envs.total_pulls  # pulls so far, kept by the environment
        self.counted = 0  # of these, how many the progress bar has counted
        self.next_check = np.zeros(E, np.int64)  # the first checkpoint not yet scored
        self.most = most_pulls(envs.task)
        # Pulls at each checkpoint, a number that is never reached behind the last.
        self.limits = np.append(self.checks, NEVER)
        self.limit = self.limits[self.next_check]  # pulls at the next checkpoint; never, in a slot that is done

    def run(self) -> list[Run]:
        """Decide, score what is due, step, and give ended slots the next episode, until all have ended."""
        envs, E, stop = self.envs, self.envs.num_envs, self.envs.task.stop
        observation, _ = envs.reset(seed=self.seed, options={"episode": self.episode})
        state, begins, following, end = None, np.ones(E, np.bool_), self.first + E, self.first + self.episodes
        one, running = np.ones(E, np.int64), np.zeros(E, np.bool_)
        left, checked, shape = self.episodes, len(self.checks) > 0, (E,)
        watch, bar = self.watch, self.watch.bar
        while left:
            action, state = self._decide(observation, state, begins)
            arm, times = (action["arm"], action["times"]) if self.handcrafted else (action, one)
            if checked:
                if getattr(arm, "dtype", None) is not _INT64 or getattr(times, "dtype", None) is not _INT64:
                    arm, times = np.ascontiguousarray(arm, np.int64), np.ascontiguousarray(times, np.int64)
                # Other shapes are refused by the environment.
                while arm.shape == shape and _passes(arm, times, stop, self.most, self.spent, self.limit):
                    self._score_checkpoint(observation, state, np.where(arm == stop, 0, times))
            observation, _, terminated, truncated, info = envs.step(action)
            if bar is not None:
                before, self.counted = self.counted, int(self.spent.sum())
                bar.add(self.counted - before, int(np.count_nonzero(info.get("_answer", 0))))
            watch.look()
            if "answer" not in info:
                begins = running
                continue
            over = np.flatnonzero(info["_answer"])
            self._record(over, info, truncated, observation, state)
            left -= len(over)
            begins = terminated | truncated
            refill = over[: max(end - following, 0)]
            self.limit[over] = NEVER
            if len(refill):
                self.episode[refill] = np.arange(following, following + len(refill))
                following += len(refill)
                mask = np.zeros(E, np.bool_)
                mask[refill] = True
                self.next_check[refill], self.limit[refill] = 0, self.limits[0]
                observation, _ = envs.reset(options={"reset_mask": mask, "episode": self.episode})
                self.counted = int(self.spent.sum())
        return self.result.cut(self.size, self.pulls)

    def _decide(self, observation: object, state: object, begins: Bools) -> tuple[Any, object]:
        """The next actions; an agent that can plays on to them from wherever nothing is due."""
        if self.draws:
            u = agent_uniforms(self.envs.public_seeds, self.spent, seed=DRAWS)[:, 0]
            return self.policy.drawn(observation, state, begins, u, self.envs.action_masks)  # type: ignore[no-any-return]
        if not self.plays:
            decided: tuple[object, object] = self.policy.predict(
                shown_to(self.policy, "predict", observation), state, begins, deterministic=True
            )
            return decided
        started = time.perf_counter()
        most = np.minimum(self.limit, quiet_until(self.envs.simulation, self.most - 1))
        quiet = Quiet(most, self.steps)
        action, state = self.policy.play(self.envs.simulation, quiet, observation, state)
        seconds = time.perf_counter() - started
        if seconds < PATIENCE / 4:
            self.steps = min(2 * self.steps, 2**40)
        elif seconds > PATIENCE:
            self.steps = max(self.steps // 2, 1)
        return action, state

    def _certify(
        self, slots: Ints, info: Mapping[str, Any] | None = None, answers: Bools | None = None
    ) -> dict[str, NDArray[np.generic]]:
        """What the statistics of slots certify, (n,) each; the info of ended episodes has the level already."""
        known = self.envs.certify(slots, **self.bounds)
        if LEVEL not in self.result.names:
            return known
        level = info[LEVEL][slots] if info is not None and LEVEL in info else self.envs.level(slots, answers)
        delta = self.result.task.delta
        certified = {} if delta is None else {CERTIFIED: level <= delta * (1 + ROUNDING)}
        return known | {LEVEL: level} | certified

    def _pulls(self, slots: Ints) -> Ints:
        """Pulls of each arm of the instance's list, or of all its coordinates, (n, K)."""
        pulls = self.envs.as_listed(slots, self.envs.asked[slots])
        return pulls if pulls.ndim == 2 else pulls.sum(axis=2)

    def _count_pulls(self, episode: Ints, column: Ints, pulls: Ints) -> None:
        """Add the pulls (n, K) of episodes to the sums of their blocks and checkpoints (n,)."""
        place = (episode - self.first) // self.size * len(self.result.pulls) + column
        for one in np.unique(place):
            self.pulls[one] += pulls[place == one].sum(axis=0)

    def _score_checkpoint(self, observation: object, state: object, times: Ints) -> None:
        """Score the answer of now in slots whose next pulls, `times` (E,), lead beyond their next checkpoint."""
        slots = np.flatnonzero(np.minimum(times, self.most - self.spent) > self.limit - self.spent)
        answers = self.policy.recommended(observation, state, slots) if self.handcrafted else None
        verdict = self.envs.assess(slots, answers) | self._certify(slots, answers=answers)
        verdict |= forfeited(self.policy, state, slots, verdict)
        self.result.write(self.episode[slots] - self.first, self.next_check[slots], verdict, self.spent[slots])
        self._count_pulls(self.episode[slots], self.next_check[slots], self._pulls(slots))
        self.next_check[slots] += 1
        self.limit[slots] = self.limits[self.next_check[slots]]

    def _record(self, over: Ints, info: dict[str, Any], truncated: Bools, observation: object, state: object) -> None:
        """The rows of ended episodes: the end itself, or every checkpoint not reached.

        An episode that was cut has not been asked for an answer: an agent's is what it recommends then.
        """
        known = self._certify(over, info)
        own = {*known, *self.result.counts}
        verdict = known | {name: info[name][over] for name in self.result.names if name not in own}
        pulls, total, cut = self._pulls(over), info["total_pulls"][over], truncated[over]
        if self.handcrafted and cut.any():
            asked = self.envs.assess(over[cut], self.policy.recommended(observation, state, over[cut]))
            for name in asked.keys() & verdict.keys():
                verdict[name][cut] = asked[name]
        verdict |= forfeited(self.policy, state, over, verdict, truncated[over])
        for c in range(max(1, len(self.checks))):
            late = np.flatnonzero(self.next_check[over] <= c)
            if len(late):
                column = np.full(len(late), c)
                part = {name: value[late] for name, value in verdict.items()}
                self.result.write(self.episode[over[late]] - self.first, column, part, total[late], cut[late])
                self._count_pulls(self.episode[over[late]], column, pulls[late])
