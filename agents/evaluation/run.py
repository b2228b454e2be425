"""Episodes in lockstep: one agent after another over the same episodes, in batches of bounded memory.

All agents meet the same episodes and, by the counter-based random numbers, the same samples in them: episode e of
`evaluate(seed=s)` is episode e of root s. A slot whose episode has ended takes the next one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from bandit_envs import PureExplorationVectorEnv
from bandit_envs.problems.base import integer
from bandit_envs.rng import EPISODES_LIMIT

from .. import catalogue
from ..agent import Agent
from .result import Evaluation, Run

__all__ = ["evaluate"]

MEMORY = 2**28  # bytes that the arrays of one batch may take, roughly


def evaluate(
    agents: Any, env_id: str, *, episodes: int, seed: int = 0, at: Sequence[int] | None = None,
    budgets: Sequence[int] | None = None, env_kwargs: Mapping[str, Any] | None = None, batch: int | None = None,
    jobs: int = 1, out: str | None = None, progress: bool | None = None,
) -> Evaluation:  # fmt: skip
    """Run agents on the same episodes of an environment and score their answers.

    Args:
        agents: a name ("lsa", "apt(tolerance=0.05)", a path to a saved model, "model.zip"), an `Agent`, an SB3 model,
            a list of these, or a dict {label: one of these}.
        env_id: a registered environment, e.g. "bandit_envs/Threshold-v0".
        episodes: how many, from episode 0 of root `seed` on.
        at: numbers of pulls at which the answer is scored too, at the last decision with no more pulls than that; an
            episode that ended before counts with its final answer. None: one row per episode, at its end.
        budgets: one run per budget; agents that do not use the budget make one run at the largest, scored at each.
        env_kwargs: keyword arguments of the environment (without actions and observation).
        batch: episodes side by side; by default as many as memory allows, at most 4096. Results do not depend on it.
        jobs: processes; only 1 so far. out: a folder for results; not yet.
        progress: show a progress bar on standard error; None: on runs that take long, if it is a terminal.

    Raises:
        ValueError: naming the value and what is allowed.
    """
    episodes = integer("episodes", episodes, 1, EPISODES_LIMIT)
    if jobs != 1:
        raise ValueError(f"jobs must be 1 in this version, got {jobs!r}")
    if out is not None:
        raise ValueError(f"out must be None in this version (use Evaluation.save), got {out!r}")
    kwargs = dict(env_kwargs or {})
    for name in ("actions", "observation", "num_envs", "autoreset_mode", "copy"):
        if name in kwargs:
            raise ValueError(f"evaluate chooses {name!r} itself; take it out of env_kwargs")
    if at is not None:
        at = sorted({integer("at", t, 1, 2**40) for t in at})
        if not at:
            raise ValueError("at must name at least one number of pulls, or be None")
    if budgets is not None:
        if at is not None:
            raise ValueError("give at= or budgets=, not both")
        budgets = sorted({integer("budgets", budget, 1, 2**40) for budget in budgets})
        if not budgets:
            raise ValueError("budgets must name at least one budget, or be None")
    runs: list[Run] = []
    for label, agent in _labelled(agents).items():
        if budgets is None:
            runs.append(_run(label, agent, env_id, kwargs, episodes, seed, at, batch, progress))
            continue
        largest = kwargs | {"budget": budgets[-1]}
        if _is_anytime(agent) and len(budgets) > 1:
            run = _run(label, agent, env_id, largest, episodes, seed, budgets, batch, progress)
            runs.append(run.as_budgets())
        else:
            for budget in budgets:
                runs.append(_run(label, agent, env_id, kwargs | {"budget": budget}, episodes, seed, None, batch, progress))
    return Evaluation.of(runs, env_id=env_id, env_kwargs=kwargs, episodes=episodes, seed=seed)


def _labelled(agents: Any) -> dict[str, Any]:
    """The agents by label; a label is the string given, or the name of the agent or of the model's class."""
    if isinstance(agents, Mapping):
        return {str(label): agent for label, agent in agents.items()}
    many = list(agents) if isinstance(agents, (list, tuple)) else [agents]
    if not many:
        raise ValueError("evaluate needs at least one agent, got none")
    labels: dict[str, Any] = {}
    for agent in many:
        name = agent if isinstance(agent, str) else getattr(agent, "name", None) or type(agent).__name__.lower()
        label, n = name, 1
        while label in labels:
            if isinstance(agent, str):
                raise ValueError(f"agent {agent!r} is given twice")
            n += 1
            label = f"{name}-{n}"
        labels[label] = agent
    return labels


def _resolve(agent: Any) -> Any:
    """A model behind a path, else what was given."""
    if isinstance(agent, str) and agent.endswith(".zip"):
        from ..learned.training import load

        return load(agent)
    return agent


def _is_anytime(agent: Any) -> bool:
    """Whether the agent's decisions do not depend on the budget."""
    if isinstance(agent, str):
        if agent.endswith(".zip"):
            return False
        name = catalogue.parse_call(agent)[0]
        kind = catalogue.AGENTS.get(catalogue.ALIASES.get(name, name))
        return kind is not None and kind.anytime
    return bool(getattr(agent, "anytime", False))


def _batch_size(envs: Callable[[int], PureExplorationVectorEnv], episodes: int, batch: int | None) -> int:
    """Slots: all episodes, or as many as fit into MEMORY; `batch` overrides."""
    if batch is not None:
        return min(integer("batch", batch, 1, 2**24), episodes)
    one = envs(1)
    per_slot = 40 + one.task.K * (8 * 8 + 24 * one.task.D) + (0 if one.instance is not None else 64 * one.task.K)
    one.close()
    most = max(1, min(episodes, 4096, MEMORY // per_slot))
    return math.ceil(episodes / math.ceil(episodes / most))  # batches of equal size: no slot idles in the last


def _run(
    label: str, agent: Any, env_id: str, kwargs: dict[str, Any], episodes: int, seed: int, at: Sequence[int] | None,
    batch: int | None, progress: bool | None,
) -> Run:  # fmt: skip
    """All episodes of one agent at one budget."""
    policy = _resolve(agent)
    handcrafted = isinstance(policy, (str, Agent))
    observation = "statistics" if handcrafted else getattr(policy, "observation", "features")

    def build(slots: int) -> PureExplorationVectorEnv:
        envs = gym.make_vec(env_id, num_envs=slots, copy=False, autoreset_mode=AutoresetMode.DISABLED,
                            actions="full" if handcrafted else "arm", observation=observation, **kwargs)  # fmt: skip
        if not isinstance(envs, PureExplorationVectorEnv):
            raise ValueError(f"evaluate needs an environment of bandit_envs, got {env_id!r}")
        return envs

    E = _batch_size(build, episodes, batch)
    envs = build(E)
    if isinstance(policy, str):
        policy = catalogue.make(policy, envs)
    elif isinstance(policy, Agent):
        policy = policy.for_task(envs.task)
    if handcrafted and not policy.stops and envs.task.budget is None and envs.task.max_pulls is None:
        raise ValueError(f"{label} does not stop by itself: give budget= or max_pulls= in env_kwargs")
    try:
        return _Lockstep(label, policy, envs, episodes, seed, at, handcrafted, progress).run()
    finally:
        envs.close()


class _Lockstep:
    """One pass of an agent over all episodes."""

    def __init__(
        self, label: str, policy: Any, envs: PureExplorationVectorEnv, episodes: int, seed: int,
        at: Sequence[int] | None, handcrafted: bool, progress: bool | None,
    ) -> None:  # fmt: skip
        self.label, self.policy, self.envs, self.handcrafted = label, policy, envs, handcrafted
        self.episodes, self.seed, self.progress = episodes, seed, progress
        E = envs.num_envs
        self.checks = np.array([] if at is None else at, np.int64)
        self.result = Run.empty(label, envs.task, episodes, at)
        self.episode = np.arange(E)  # which episode each slot runs
        self.active = np.ones(E, np.bool_)
        self.spent = np.zeros(E, np.int64)  # pulls so far
        self.next_check = np.zeros(E, np.int64)  # the first checkpoint not yet scored
        self.free = 0  # pulls that every slot may still make before a checkpoint is near
        # Pulls at the next checkpoint, a number that is never reached behind the last.
        self.limits = np.append(self.checks, np.iinfo(np.int64).max)

    def run(self) -> Run:
        """Run all episodes; returns their rows."""
        from .progress import Progress

        envs, E, K = self.envs, self.envs.num_envs, self.envs.task.K
        started = time.perf_counter()
        observation, _ = envs.reset(seed=self.seed, options={"episode": self.episode})
        state, begins, following = None, np.ones(E, np.bool_), E
        one = np.ones(E, np.int64)
        bar = Progress(self.label, self.episodes, envs.task.budget, self.progress)
        while self.active.any():
            action, state = self.policy.predict(observation, state, begins, deterministic=True)
            arm, times = (action["arm"], action["times"]) if self.handcrafted else (action, one)
            times = np.where(arm == K, 0, times)
            if len(self.checks):
                self._score_checkpoints(observation, state, times)
            self.spent += times
            observation, _, terminated, truncated, info = envs.step(action)
            bar.step(E)
            if "answer" not in info:
                if begins[0]:
                    begins = np.zeros(E, np.bool_)
                continue
            over = np.flatnonzero(info["_answer"])
            self._record(over, info, truncated)
            bar.ended(len(over))
            begins = terminated | truncated
            refill = over[: max(self.episodes - following, 0)]
            self.active[over] = False
            if len(refill):
                self.episode[refill] = np.arange(following, following + len(refill))
                following += len(refill)
                mask = np.zeros(E, np.bool_)
                mask[refill] = True
                self.active[refill], self.spent[refill], self.next_check[refill], self.free = True, 0, 0, 0
                observation, _ = envs.reset(options={"reset_mask": mask, "episode": self.episode})
        bar.close()
        self.result.seconds = time.perf_counter() - started
        return self.result

    def _score_checkpoints(self, observation: Any, state: Any, times: NDArray[np.int64]) -> None:
        """Score the answer of now in slots whose next pulls lead beyond their next checkpoint."""
        self.free -= int(times.max())
        if self.free >= 0:
            return
        remaining = self.envs.remaining
        step = np.where(remaining >= 0, np.minimum(times, remaining), times)
        while True:
            beyond = self.limits[self.next_check] - self.spent - step
            slots = np.flatnonzero(self.active & (beyond < 0))
            if len(slots) == 0:
                self.free = int(beyond[self.active].min())
                return
            answers = self.policy.recommend(observation, state, slots) if self.handcrafted else None
            verdict = self.envs.assess(slots, answers)
            self.result.write(self.episode[slots], self.next_check[slots], verdict, self.spent[slots])
            self.result.count_pulls(self.next_check[slots], self.envs.pulls[slots])
            self.next_check[slots] += 1

    def _record(self, over: NDArray[np.int64], info: dict[str, Any], truncated: NDArray[np.bool_]) -> None:
        """The rows of ended episodes: the end itself, or every checkpoint not reached."""
        verdict = {name: info[name][over] for name in self.result.names}
        pulls, total, cut = self.envs.pulls[over], info["total_pulls"][over], truncated[over]
        if len(self.checks) == 0:
            column = np.zeros(len(over), np.int64)
            self.result.write(self.episode[over], column, verdict, total, cut)
            self.result.count_pulls(column, pulls)
            return
        for c in range(len(self.checks)):
            late = np.flatnonzero(self.next_check[over] <= c)
            if len(late):
                column = np.full(len(late), c)
                part = {name: value[late] for name, value in verdict.items()}
                self.result.write(self.episode[over[late]], column, part, total[late], cut[late])
                self.result.count_pulls(column, pulls[late])
