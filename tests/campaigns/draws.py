"""Which share of the bare generator a long evaluation reaches, for five distributions: a table of docs/performance.md.

PYTHONPATH=. python tests/campaigns/draws.py     some 20 seconds of one core

The bare generator draws samples 32 at a time in one loop, as episodes do, and does nothing with them. Times are those
of the process; of each, the least of ten rounds that take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import agents
from bandit_envs.kernels import call_routine
from bandit_envs.kernels.structs import kernel
from bandit_envs.simulation import AHEAD, Quiet, Simulation

MEANS = [0.2, 0.25, 0.3, 0.35, 0.45, 0.55, 0.65, 0.7, 0.75, 0.8]
WEIGHTS = [[10 - i, 5, 1 + i] for i in range(10)]
DISTRIBUTIONS: dict[str, dict[str, Any]] = {
    "Bernoulli": {"distribution": "bernoulli", "mean": MEANS},
    "Gaussian": {"distribution": "gaussian", "mean": MEANS, "sd": 0.5},
    "categorical, three values": {"distribution": "categorical", "values": [0.0, 0.5, 1.0], "probabilities": WEIGHTS},
    "uniform": {"distribution": "uniform", "mean": MEANS, "width": 0.4},
    "resampled, 100 rows": {
        "distribution": "resampled",
        "rows": np.random.default_rng(0).beta(2, 2, (10, 100)).tolist(),
    },
}
PLAYS = [("apt", 1, 500_000), ("uniform", 1, 500_000), ("apt", 1000, 500), ("uniform", 1000, 500)]


@kernel
def draw(sim: Simulation, times: int):
    """Draw AHEAD samples of an arm so many times."""
    for i in range(times):
        call_routine(sim.rules.drawer, sim, np.uint64(0), np.uint64(i & 7), np.int64(i) * AHEAD, AHEAD, 0)


def run(name: str, instance: dict[str, Any], episodes: int, pulls: int) -> Callable[[], float]:
    """Seconds for a pull of an agent in long episodes, in compiled code."""
    envs: Any = gym.make_vec(
        "bandit_envs/Threshold-v0", episodes, actions="full", copy=False, instance=instance, budget=10**9
    )
    agent, quiet = agents.make(name, envs), Quiet(np.full(episodes, pulls), pulls)

    def timed() -> float:
        observation = envs.reset(seed=1, options={"episode": np.arange(episodes)})[0]
        start = time.process_time()
        agent.play(envs.simulation, quiet, observation, None)
        return (time.process_time() - start) / (episodes * pulls)

    timed()
    return timed


def bare(instance: dict[str, Any], times: int = 20_000) -> Callable[[], float]:
    """Seconds for a sample that nothing is done with."""
    envs: Any = gym.make_vec("bandit_envs/Threshold-v0", 1, instance=instance, budget=10**9)
    envs.reset(seed=1)

    def timed() -> float:
        start = time.process_time()
        draw.quick(envs.simulation, times)  # type: ignore[attr-defined]
        return (time.process_time() - start) / (times * AHEAD)

    timed()
    return timed


def main(rounds: int = 10) -> None:
    """Print the table."""
    heads = [f"`{name}`, {episodes} episode{'s' * (episodes > 1)}" for name, episodes, _ in PLAYS]
    print("| distribution | samples | " + " | ".join(heads) + " |\n|---|" + "---|" * (len(PLAYS) + 1))
    for words, instance in DISTRIBUTIONS.items():
        runs = [bare(instance), *(run(name, instance, *size) for name, *size in PLAYS)]
        base, *others = np.array([[one() for one in runs] for _ in range(rounds)]).min(axis=0)
        print(f"| {words} | {1e-6 / base:.0f} | " + " | ".join(f"{base / other:.2f}" for other in others) + " |")


if __name__ == "__main__":
    main()
