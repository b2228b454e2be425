"""DQN of Stable-Baselines3 as it is, on the native VecEnv with shaped rewards (the first argument: steps)."""

import sys

import torch
from stable_baselines3 import DQN

import agents
from agents.learned import make_vec_env

torch.set_num_threads(1)  # the fastest for nets as small as these
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
kwargs = {"budget": 50, "instance": "sampler(arms=5)"}
envs = make_vec_env("bandit_envs/Threshold-v0", 16, shaping=True, observation="features", **kwargs)
model = DQN(
    "MlpPolicy",
    envs,
    learning_rate=1e-3,
    buffer_size=100_000,
    learning_starts=1_000,
    batch_size=256,
    gamma=0.97,
    train_freq=1,
    target_update_interval=500,
    exploration_fraction=0.3,
    seed=0,
)
model.learn(steps)
result = agents.evaluate(
    {"DQN": model, "LSA": "lsa", "uniform": "uniform"}, "bandit_envs/Threshold-v0", episodes=500, env_kwargs=kwargs
)
print(result.summary()[["agent", "misclassified", "error_rate", "error_low", "error_high"]])
