"""One PPO for three problems: trained side by side on the benchmark's priors of twenty arms, and scored by it.

The first argument: steps (3 million take a few minutes). Its episodes have the root for training, never that of the
benchmark.
"""

import sys
import time
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

import agents
import bandit_envs
from agents.learned import make_vec_env


class Together(VecEnv):
    """Vector environments with the same spaces, as one."""

    def __init__(self, parts: list[VecEnv]) -> None:
        self.parts, self.ends = parts, np.cumsum([part.num_envs for part in parts])
        super().__init__(int(self.ends[-1]), parts[0].observation_space, parts[0].action_space)

    def reset(self) -> Any:
        return np.concatenate([part.reset() for part in self.parts])

    def step_async(self, actions: Any) -> None:
        for part, own in zip(self.parts, np.split(actions, self.ends[:-1]), strict=True):
            part.step_async(own)

    def step_wait(self) -> Any:
        seen, rewards, done, infos = zip(*[part.step_wait() for part in self.parts], strict=True)
        return np.concatenate(seen), np.concatenate(rewards), np.concatenate(done), [x for own in infos for x in own]

    def seed(self, seed: int | None = None) -> Any:
        return [x for part in self.parts for x in part.seed(seed)]

    def close(self) -> None:
        for part in self.parts:
            part.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [x for part in self.parts for x in part.get_attr(attr_name)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        for part in self.parts:
            part.set_attr(attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [x for part in self.parts for x in part.env_method(method_name, *args, **kwargs)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [x for part in self.parts for x in part.env_is_wrapped(wrapper_class)]


torch.set_num_threads(1)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
tasks = [task for task in bandit_envs.benchmark_tasks() if task.name.endswith("-fresh-20")]
envs = Together([make_vec_env(task.learn_id, 16, reward_scale=100, **task.kwargs) for task in tasks])
model = PPO(
    "MlpPolicy",
    envs,
    n_steps=100,
    batch_size=1200,
    n_epochs=6,
    gamma=1.0,
    gae_lambda=0.8,
    ent_coef=0.001,
    learning_rate=5e-4,
    policy_kwargs={"net_arch": [128, 128]},
    seed=tasks[0].train_root,
    device="cpu",
)
begun = time.perf_counter()
model.learn(steps)
print(f"{steps:,} steps in {time.perf_counter() - begun:.0f} seconds")
result = agents.benchmark({"PPO, MLP": model, "uniform": "uniform"}, [task.name for task in tasks])
print(result.table.pivot_table(index="task", columns="agent", values="score"))
print(result.summary()[["agent", "all", "all_low", "all_high"]])
