"""Plays of agents side by side: replay by literal twins, and copies on the way."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

import agents
from bandit_envs import Bernoulli, Categorical, Gaussian, Instance, Uniform

Twin = Generator["tuple[int, int]", float, "set[int]"]  # yields (arm, times), is sent the average of these samples
Play = tuple[list[tuple[int, int]], list[float], "set[int] | None"]


def sampler(
    distribution: str = "gaussian", arms: int = 6, spread: float = 0.2, mean: Any = None, **more: Any
) -> dict[str, Any]:
    """A sampler of instances; means are uniform on [0, 1], if nothing else is asked for."""
    given = {} if distribution == "bernoulli" else {"spread": spread}
    means = {"mean": mean or {"uniform": [0.0, 1.0]}}
    return {"sampler": {"distribution": distribution, "arms": arms, **means, **given, **more}}


def random_arms(g: np.random.Generator, means: Any, spreads: Sequence[float], uniform: bool = True) -> Instance:
    """Arms of some distribution with these means, of a spread that is one of these."""
    kinds = ["gaussian", "bernoulli", "categorical", "uniform"][: 4 if uniform else 3]
    kind, spread = g.choice(kinds, p=[0.4, 0.3, 0.15, 0.15] if uniform else [0.6, 0.2, 0.2]), float(g.choice(spreads))
    if kind == "bernoulli":
        return Instance(Bernoulli(means))
    if kind == "categorical":
        return Instance(Categorical([1.0, 2.0, 3.0], g.integers(1, 9, (len(means), 3))))
    return Instance(Gaussian(means, spread) if kind == "gaussian" else Uniform(means, 3 * spread))


def seen(
    pulls: Sequence[int],
    mean: Sequence[float],
    variance: Sequence[float] | float = 0.0,
    remaining: int = -1,
    public: int = 7,
) -> dict[str, Any]:
    """What an agent sees of one episode after such pulls."""
    T, m = np.array(pulls), np.array(mean, np.float64)
    statistics = {"pulls": T, "total": T * m, "mean": m, "variance": np.array(variance) + 0 * m}
    return statistics | {"remaining": np.array([remaining]), "public_seed": np.array([public])}


def episode_of(env: Any, agent: Any, number: int = 0, seed: int = 0) -> tuple[list[Any], Any]:
    """The actions of an agent in an episode of a single environment, and the last information."""
    (observation, _), state, actions, over = env.reset(seed=seed, options={"episode": number}), None, list[Any](), False
    while not over:
        action, state = agent.predict(observation, state)
        actions.append(action)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return actions, info


def record(name: str, env_id: str, episodes: int, **kwargs: Any) -> tuple[Any, list[Play]]:
    """Let the agent play these episodes side by side: its pulls, their averages, and its answer (None: cut off)."""
    agent, plays, _ = watched(name, env_id, episodes, **kwargs)
    return agent, plays


def watched(
    name: str, env_id: str, episodes: int, seed: int = 0, at_the_end: bool = False, **kwargs: Any
) -> tuple[Any, list[Play], Any]:
    """The same, with the last observation; `at_the_end`: the answer is that of a spent budget, too."""
    kwargs = {"delta": 0.1, "actions": "full"} | kwargs
    envs: Any = gym.make_vec(env_id, episodes, autoreset_mode="Disabled", **kwargs)
    agent, state, full = agents.make(name, envs), None, kwargs["actions"] == "full"
    observation, _ = envs.reset(seed=seed, options={"episode": np.arange(episodes)})
    plays: list[Any] = [[[], [], None] for _ in range(episodes)]
    live = np.ones(episodes, np.bool_)
    while live.any():
        action, state = agent.predict(observation, state)
        arm, times = (action["arm"], action["times"]) if full else (action, np.ones(episodes, np.int64))
        asked = list(zip(arm.tolist(), times.tolist(), strict=True))
        spent = (observation["remaining"][:, 0] == 0) & at_the_end
        observation, _, terminated, truncated, info = envs.step(action)
        for e in np.flatnonzero(live):
            if asked[e][0] < agent.task.K and not spent[e]:
                plays[e][0].append(asked[e])
                plays[e][1].append(float(info["sample"][e]))
            if asked[e][0] == agent.task.K or terminated[e] and at_the_end:
                plays[e][2] = set(np.flatnonzero(info["answer"][e]).tolist())
        live &= ~(terminated | truncated)
    return agent, [tuple(play) for play in plays], observation


def replay(twin: Twin, samples: list[float]) -> tuple[list[tuple[int, int]], set[int] | None]:
    """Give the twin these samples: its pulls, and its answer (None: it wants more)."""
    asked = []
    try:
        asked.append(next(twin))
        for sample in samples[:-1]:
            asked.append(twin.send(sample))
        twin.send(samples[-1])
    except StopIteration as stop:
        return asked, stop.value
    return asked, None


def singly(twin: Twin) -> Twin:
    """The twin, pulling one by one."""
    try:
        arm, times = next(twin)
        while True:
            total = 0.0
            for _ in range(times):
                total += yield arm, 1
            arm, times = twin.send(total / times)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def as_twins(
    twin_of: Callable[[Any], Twin], name: str, env_id: str, episodes: int, ended: int = 0, **kwargs: Any
) -> list[Play]:
    """The agent and its twin pull the same arms as often and answer the same; at least `ended` episodes end."""
    agent, plays = record(name, env_id, episodes, **kwargs)
    assert sum(answer is not None for *_, answer in plays) >= ended
    for pulls, samples, answer in plays:
        assert replay(twin_of(agent), samples) == (pulls, answer)
    return plays


def right_when_begun_anew(name: str, env_id: str, **kwargs: Any) -> None:
    """Met in the middle of episodes, an algorithm says that its state is missing; begun anew it ends, and is right."""
    envs: Any = gym.make_vec(env_id, 8, **kwargs | {"delta": 0.1, "actions": "full", "autoreset_mode": "Disabled"})
    agent, g = agents.make(name, envs), np.random.default_rng(0)
    observation, _ = envs.reset(seed=0)
    unread = np.zeros((8, agent.task.K), np.int8)
    for _ in range(7):
        arm = g.integers(agent.task.K, size=8)
        observation, *_ = envs.step({"arm": arm, "times": np.full(8, 3), "answer": unread})
    k = agent.task.parameters.get("k")
    assert k is None or (agent.recommend(observation).sum(axis=1) == k).all()
    state, over, correct = agent.begin_anew(observation), np.zeros(8, np.bool_), np.zeros(8, np.bool_)
    while not over.all():
        action, state = agent.predict(observation, state)
        assert k is None or (agent.recommend(observation, state).sum(axis=1) == k).all()
        observation, _, terminated, truncated, info = envs.step(action)
        if "correct" in info:
            correct |= info["correct"] & info["_correct"]
        over |= terminated | truncated
    assert correct.all()
