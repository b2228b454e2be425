"""Stable-Baselines3 as it is, with its own MLP policy, and how far that gets in so many steps (the first argument)."""

import sys

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import agents
import bandit_envs  # noqa: F401  (registers the environments)

torch.set_num_threads(1)  # the fastest for nets as small as these
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
kwargs = {"budget": 50}
envs = make_vec_env("bandit_envs/Threshold-v0", n_envs=16, env_kwargs=kwargs | {"observation": "features"})
model = PPO("MlpPolicy", envs, n_steps=128, batch_size=512, gamma=0.99, seed=0)
model.learn(steps)
result = agents.evaluate(
    {"PPO, MLP": model, "LSA": "lsa", "uniform": "uniform"}, "bandit_envs/Threshold-v0", episodes=500, env_kwargs=kwargs
)
print(result.summary()[["agent", "misclassified", "error_rate", "error_low", "error_high"]])
