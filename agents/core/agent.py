"""What every agent is: a `predict` like that of a Stable-Baselines3 model, over a batch of episodes.

An agent holds settings only. What moves is its memory, `state`, whose arrays have a leading episode axis and which
`predict` may update in place. An algorithm says which arms to pull (`choose`) and which set to answer (`recommend`);
this class turns that into actions of the form that the environment takes.
"""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Problem, Task, jit

__all__ = ["Agent", "seen_means", "task_of", "unfit"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Observation = Mapping[str, NDArray[Any]]

STATISTICS = ("pulls", "total", "mean", "variance", "remaining", "public_seed")


def task_of(source: Any) -> Task:
    """The task of an environment: single or vector, wrapped or not, an SB3 VecEnv, or a task itself.

    Raises:
        ValueError: if there is none.
    """
    if isinstance(source, Task):
        return source
    task = getattr(getattr(source, "unwrapped", source), "task", None)
    if isinstance(task, Task):
        return task
    layers: tuple[Any, ...] = (source, getattr(source, "unwrapped", None))
    for envs in layers:
        if hasattr(envs, "get_attr"):  # SB3's VecEnv; Gymnasium's Sync- and AsyncVectorEnv
            return task_of(envs.get_attr("unwrapped" if hasattr(envs, "env_is_wrapped") else "task")[0])
    raise ValueError(f"an agent needs a task or an environment of bandit_envs, got {source!r:.200}")


def seen_means(observation: Observation, slots: Ints | None = None) -> Floats:
    """Empirical means, NaN for arms never pulled, of the given rows of an observation (None: all)."""
    pulls, mean = observation["pulls"], observation["mean"]
    if slots is not None:
        pulls, mean = pulls[slots], mean[slots]
    means = np.array(mean, np.float64)
    means[pulls == 0] = np.nan
    return means


def unfit(pulls: Ints, mean: Floats, episodes: int, name: str = "mean") -> ValueError:
    """The error for an observation, its pulls and means or others, that does not fit a memory of so many episodes."""
    return ValueError(f"pulls {pulls.shape} and {name} {mean.shape} do not fit a memory of {episodes} episodes")


@functools.lru_cache(maxsize=64)
def _constants(E: int, K: int) -> tuple[Ints, NDArray[np.int8]]:
    """A single pull for each of E episodes, and an answer that nobody reads."""
    return np.ones(E, np.int64), np.broadcast_to(np.int8(0), (E, K))


@jit
def _any_ends(arms: Any, remaining: Any, stop: Any) -> Any:
    """Whether any episode ends with this action: it stops, or has no budget left."""
    ends = False
    for e in range(len(arms)):
        ends |= (arms[e] == stop) | (remaining[e, 0] == 0)
    return ends


class Agent(ABC):
    """A handcrafted policy.

    Args:
        task: a `Task`, or an environment, from which it is read.
        **parameters: the algorithm's own.

    Raises:
        ValueError: if the algorithm does not solve the task's problem, or cannot read its observations.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    solves: ClassVar[tuple[str, ...]]
    anytime: ClassVar[bool] = True  # its rule does not use the budget
    stops: bool = False  # it stops by itself, where the task names a delta
    coordinates: ClassVar[bool] = False  # it can pull single coordinates of arms
    oracles: ClassVar[dict[str, Callable[[Problem, Floats], Any]]] = {}  # parameters that hold truth

    def __init__(self, task: Any) -> None:
        self.task = task_of(task)
        self.problem = self.task.make_problem()
        if self.task.problem not in self.solves:
            raise ValueError(f"{self.name} solves {', '.join(self.solves)}, not {self.task.problem}")
        if self.task.pull == "coordinate" and not self.coordinates:
            raise ValueError(f"{self.name} pulls whole arms, not single coordinates (pull='coordinate')")
        if self.task.observation != "statistics":
            raise ValueError(f"{self.name} reads observation='statistics', not {self.task.observation!r}")

    def for_task(self, task: Task) -> Agent:
        """This agent on an environment that differs from its own in form only.

        Raises:
            ValueError: if the tasks differ otherwise.
        """
        own = self.task.replace(actions=task.actions, observation=task.observation, max_pulls=task.max_pulls)
        if self.anytime:
            own = own.replace(budget=task.budget)
        if own != task:
            raise ValueError(f"{self.name} was made for another task: {self.task}, not {task}")
        agent = copy.copy(self)
        agent.task = task
        return agent

    # --- what an algorithm is ---------------------------------------------------------------------------------------

    def remember(self, observation: Observation) -> Any:
        """The memory of a batch of episodes, made from whatever they have seen so far."""
        return len(observation["pulls"])

    @abstractmethod
    def choose(self, observation: Observation, state: Any) -> Ints | tuple[Ints, Ints]:
        """The arms to pull next, (E,), K to stop; or the pair of arms and how many times to pull each, (E,).

        Where coordinates are pulled: arm * D + coordinate, and `self.task.stop` to stop.

        May update `state` in place. With `actions="arm"` an arm is pulled once, whatever the times.
        """

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The answer as of now: a mask (E, K), or (K,) for an un-batched observation. Here: the plug-in answer.

        Args:
            observation: as for `predict`. state: the agent's memory. slots: only these rows of the batch.
        """
        return self.problem.plug_in(seen_means(observation, slots))

    # --- what an environment, SB3 or the evaluation call --------------------------------------------------------------

    def predict(
        self, observation: Observation, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """The next action of each episode, and the memory.

        An observation with no pulls starts an episode, whatever `episode_start` says; one with pulls never does. A
        randomised algorithm stays random whatever `deterministic` says.

        Args:
            observation: arrays with a leading episode axis, or without (recognised by the axes of `pulls`).
            state: what the last call returned; None builds the memory from the observation.

        Returns:
            `actions="arm"`: arms (E,); `actions="full"`: a dict of `arm` (E,), `times` (E,), `answer` (E, K) int8,
            filled where the episode ends with this action. Without the axis for an un-batched observation.

        Raises:
            ValueError: if the observation is not the statistics of the task's K arms.
        """
        try:
            single = observation["pulls"].ndim == len(self.task.shape)
            if single:
                observation = {name: array[None] for name, array in observation.items()}
            shape = observation["pulls"].shape
        except (TypeError, KeyError, IndexError, AttributeError):
            raise ValueError(f"{self.name} reads a dict of statistics, got {type(observation).__name__}") from None
        if shape[1:] != self.task.shape:
            raise ValueError(f"{self.name} was made for {self.task.K} arms, got pulls of shape {shape}")
        if state is None:
            if missing := [name for name in STATISTICS if name not in observation]:
                raise ValueError(f"{self.name} reads a dict of statistics, got one without {', '.join(missing)}")
            state = self.remember(observation)
        chosen = self.choose(observation, state)
        arms, times = chosen if isinstance(chosen, tuple) else (chosen, None)
        if self.task.actions == "arm":
            return (int(arms[0]) if single else arms), state
        action = self._full(observation, arms, state)
        if times is not None:
            action["times"] = times
        if single:
            return {"arm": int(arms[0]), "times": int(action["times"][0]), "answer": action["answer"][0]}, state
        return action, state

    def _full(self, observation: Observation, arms: Ints, state: Any) -> dict[str, NDArray[Any]]:
        """The arms as full actions, each pulled once, with answers where the episode ends."""
        E, K = len(arms), self.task.K
        once, unread = _constants(E, K)
        if not _any_ends(arms, observation["remaining"], self.task.stop):
            return {"arm": arms, "times": once.copy(), "answer": unread}
        slots = np.flatnonzero((arms == self.task.stop) | (observation["remaining"][:, 0] == 0))
        answer = np.zeros((E, K), np.int8)
        answer[slots] = self.recommend(observation, state, slots)
        return {"arm": arms, "times": once.copy(), "answer": answer}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.task.problem}, K={self.task.K})"
