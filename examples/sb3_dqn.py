"""DQN of Stable-Baselines3 as it is (the first argument: steps), which is paid for each pull what it gains."""

import sys
import time

import torch
from stable_baselines3 import DQN

import agents
from agents.learned import make_vec_env

torch.set_num_threads(1)  # the fastest for nets as small as these
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
kwargs = {"budget": 50, "instance": "sampler(arms=5)"}
envs = make_vec_env("bandit_envs/Threshold-learn-v0", 64, reward_scale=50, **kwargs)
model = DQN(
    "MlpPolicy",
    envs,
    learning_rate=lambda left: 0.001 * left,
    buffer_size=100_000,
    learning_starts=1_000,
    batch_size=256,
    gamma=0.99,
    train_freq=1,
    gradient_steps=4,
    target_update_interval=500,
    exploration_fraction=0.3,
    seed=0,
    device="cpu",
)
begun = time.perf_counter()
model.learn(steps)
print(f"{steps:,} steps in {time.perf_counter() - begun:.0f} seconds")
result = agents.evaluate(
    {"DQN": model, "LSA": "lsa", "uniform": "uniform"},
    "bandit_envs/Threshold-learn-v0",
    episodes=2000,
    env_kwargs=kwargs,
)
print(result.summary()[["agent", "misclassified", "error_rate", "error_low", "error_high"]])
print(result.compare("DQN", "uniform", "misclassified"))
