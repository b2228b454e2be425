"""All agents, well beyond the ends of their episodes, in kernels that are compiled with checks of bounds.

python tests/campaigns/beyond_arrays.py     half an hour, and caches of its own
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

import gymnasium as gym
import numpy as np

import agents
import bandit_envs


def play(name: str, env_id: str, kwargs: dict[str, Any], steps: int) -> Any:
    """The pulls of five slots, most of which have ended long before."""
    envs: Any = gym.make_vec(env_id, 5, actions="full", autoreset_mode="Disabled", copy=False, **kwargs)
    agent = agents.make(name, envs)
    observation, state = envs.reset(seed=3, options={"episode": np.arange(5)})[0], None
    for _ in range(steps):
        action, state = agent.predict(observation, state)
        observation, *_ = envs.step(action)
    return envs.total_pulls


def play_all() -> int:
    """How many of all agents and rules were played."""
    played = 0
    for problem in bandit_envs.PROBLEMS:
        epsilons: list[dict[str, Any]] = [{}] if problem in ("Threshold", "Feasible") else [{}, {"epsilon": 0.2}]
        for name in [*agents.names(problem), "fareast(finder='lucb')"]:
            for rules in ({"budget": 300, "delta": 0.1}, {"delta": 0.1, "max_pulls": 300}):
                for epsilon in epsilons if name != "ppo" else []:
                    try:
                        play(name, f"bandit_envs/{problem}-v0", rules | epsilon, 0)
                    except ValueError:
                        continue  # another problem, an oracle, or an agent that needs a budget
                    played += int(play(name, f"bandit_envs/{problem}-v0", rules | epsilon, 1000).min() >= 0)
    return played


def main() -> None:
    if os.environ.get("NUMBA_BOUNDSCHECK") == "1":
        assert play_all() > 80
        return
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": folder}
        subprocess.run([sys.executable, __file__], env=environment, check=True)


if __name__ == "__main__":
    main()
