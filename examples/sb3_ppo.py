"""PPO of Stable-Baselines3 with its own MLP policy (the first argument: steps): the recipe of docs/training.md."""

import sys
import time

import torch
from stable_baselines3 import PPO

import agents
from agents.learned import make_vec_env

torch.set_num_threads(1)  # the fastest for nets as small as these
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 600_000
kwargs = {"budget": 100, "k": 3}
envs = make_vec_env("bandit_envs/TopK-learn-v0", 64, reward_scale=100, **kwargs)
model = PPO(
    "MlpPolicy",
    envs,
    n_steps=100,
    batch_size=800,
    n_epochs=6,
    gamma=1.0,
    gae_lambda=0.8,
    ent_coef=0.001,
    learning_rate=5e-4,
    policy_kwargs={"net_arch": [128, 128]},
    seed=0,
    device="cpu",
)
begun = time.perf_counter()
model.learn(steps)
print(f"{steps:,} steps in {time.perf_counter() - begun:.0f} seconds")
result = agents.evaluate(
    {"PPO, MLP": model, "LUCB": "lucb", "uniform": "uniform"},
    "bandit_envs/TopK-learn-v0",
    episodes=2000,
    env_kwargs=kwargs,
)
print(result.summary()[["agent", "score", "score_low", "score_high"]])
print(result.compare("PPO, MLP", "uniform", "score"))
