"""Races of the stored networks that play whole episodes in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from race import Race, clock

import agents
from bandit_envs import Quiet

pytest.importorskip("stable_baselines3")

TEN = {"instance": {"sampler": {"arms": 10}}}
PLAYS = {  # environment, its keywords, the rate that was asked for
    "threshold": ("bandit_envs/Threshold-v0", {"budget": 1000}, 5e6),
    "top-k": ("bandit_envs/TopK-v0", {"k": 3, "budget": 1000}, 1e6),
    "all-good": ("bandit_envs/AllGood-v0", {"epsilon": 0.1, "pull_cost": 1e-3, "max_pulls": 2000}, 1e6),
}
EPISODES = 200


def player_of(name: str) -> tuple[Callable[[], int], Callable[[int], int]]:
    """Whole episodes of a stored network, in compiled code; and steps of them by PyTorch. Both return pulls."""
    env_id, kwargs, _ = PLAYS[name]
    envs: Any = gym.make_vec(
        env_id, EPISODES, observation="features", copy=False, autoreset_mode="Disabled", **kwargs, **TEN
    )
    agent, quiet = agents.make("ppo", envs), Quiet(np.full(EPISODES, 999), 2**40)

    def begun() -> Any:
        return envs.reset(seed=1, options={"episode": np.arange(EPISODES)})[0]

    def played() -> int:
        agent.play(envs.simulation, quiet, begun(), None)
        return int(envs.total_pulls.sum())

    def stepped(steps: int) -> int:
        observation = begun()
        for _ in range(steps):
            action = agent.model.policy.predict(observation, deterministic=True)[0]
            observation, *_ = envs.step(np.minimum(action, 9))
        return steps * EPISODES

    return played, stepped


@pytest.mark.benchmark(
    timer=clock, group="j. stored networks, K = 10, times as fast as asked (5 or 1 million pulls a second)"
)
@pytest.mark.parametrize("name", PLAYS)
def test_network_rates(race: Race, name: str) -> None:
    played, _ = player_of(name)
    pulls, rate = played(), PLAYS[name][2]

    def wait() -> None:
        until = clock() + pulls / rate
        while clock() < until:
            pass

    race(played, wait, against=f"{rate / 1e6:g} million pulls a second", at_least=1.0, rounds=5)


@pytest.mark.benchmark(
    timer=clock, group="k. stored networks, K = 10, times as fast per pull as PyTorch, 200 episodes side by side"
)
@pytest.mark.parametrize("name", PLAYS)
def test_networks_beside_pytorch(race: Race, name: str) -> None:
    played, stepped = player_of(name)
    steps = 20
    times = round(played() / stepped(steps))
    race(played, lambda: [stepped(steps) for _ in range(times)], against="PyTorch for every pull", at_least=5, rounds=3)
