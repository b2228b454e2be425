"""What several test files share: random actions, rollouts, and comparison bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Arms, Task
from bandit_envs.envs.catalogue import ENVIRONMENTS
from bandit_envs.kernels import rng
from bandit_envs.simulation.simulator import Simulator

IDS = [row.id for row in ENVIRONMENTS.values()]
FORMS = [(actions, seen) for actions in ("arm", "full") for seen in ("statistics", "features", "history")]
SIZES: dict[int, tuple[Task, int | None]] = {}  # of answers, by the identity of a task that is kept here


def simulator(arms: Arms, episodes: int, root: int = 0, first: int = 0, **rules: Any) -> Simulator:
    """A simulator at the start of episodes first, first + 1, ... of one root."""
    rules = {"budget": None, "max_pulls": None, "full": True, "pull_cost": 0.0} | rules
    sim = Simulator(arms, episodes, **rules)
    key = np.repeat(rng.root_key(root)[:, None], episodes, axis=1)
    sim.begin(np.arange(episodes), key, np.arange(first, first + episodes, dtype=np.uint64))
    return sim


def same(a: Any, b: Any) -> bool:
    """Equality bit for bit: types, dtypes, shapes, values (NaN equals NaN), in dicts and tuples alike."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        form = isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape
        if form and a.dtype == object:
            return all(map(same, a.flat, b.flat))
        return bool(form and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    return type(a) is type(b) and (a == b or a != a and b != b)


def some_action(task: Task, generator: np.random.Generator, stop: float = 0.02) -> Any:
    """A random action that the task allows; the stop action with probability `stop`."""
    arm = task.stop if generator.random() < stop and task.can_stop else int(generator.integers(task.stop))
    if task.actions == "arm":
        return arm
    if id(task) not in SIZES:
        SIZES[id(task)] = task, task.make_problem().answer_size
    k = SIZES[id(task)][1]
    order, size = generator.permutation(task.K), generator.integers(task.K + 1) if k is None else k
    answer = np.zeros(task.K, np.int8)
    answer[order[:size]] = 1
    return {"arm": arm, "times": np.array(generator.integers(1, 9)), "answer": answer}


def batch(actions: list[Any]) -> Any:
    """Actions of the slots of a vector environment, as one."""
    if isinstance(actions[0], dict):
        return {name: np.array([action[name] for action in actions]) for name in actions[0]}
    return np.array(actions)


def rollout(env: Any, steps: int, seed: int | None = 0, choices: int = 0, stop: float = 0.02) -> list[Any]:
    """What an environment returns, step after step of random actions, starting anew when an episode ends."""
    generator, task = np.random.default_rng(choices), env.unwrapped.task
    seen: list[Any] = [env.reset(seed=seed)] if seed is not None else []
    for _ in range(steps):
        seen.append(env.step(some_action(task, generator, stop)))
        if seen[-1][2] or seen[-1][3]:
            seen.append(env.reset())
    return seen


def full(arm: int, times: int = 1, answer: Any = None, K: int = 10) -> dict[str, Any]:
    """A full action."""
    return {"arm": arm, "times": times, "answer": np.zeros(K, np.int8) if answer is None else answer}


def mask(K: int, *arms: int) -> NDArray[np.int8]:
    """The answer that holds these arms."""
    return np.isin(np.arange(K), arms).astype(np.int8)


def forgetful(envs: Any, agent: Any, steps: int) -> None:
    """Assert that the agent decides the same with its state as without it at random times (full actions)."""
    g = np.random.default_rng(0)
    observation, _ = envs.reset(seed=2)
    kept = lost = None
    for _ in range(steps):
        action, kept = agent.predict(observation, kept)
        again, lost = agent.predict(observation, None if g.random() < 0.3 else lost)
        live = observation["remaining"][:, 0] > 0
        assert all(action[part][live].tolist() == again[part][live].tolist() for part in ("arm", "times"))
        assert action["answer"].tolist() == again["answer"].tolist()
        observation, *_ = envs.step(action)
