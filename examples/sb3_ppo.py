"""PPO of Stable-Baselines3 with its own MLP policy (the first argument: steps).

With gamma = 0.9 a pull is credited with what follows within some ten pulls, which is far less noisy than the rest of
the episode. The episode is paid once, at its end: with this the MLP ends behind uniform sampling.
"""

import sys
import time

import torch
from stable_baselines3 import PPO

import agents
from agents.learned import make_vec_env

torch.set_num_threads(1)  # the fastest for nets as small as these
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
kwargs = {"budget": 50, "instance": "sampler(arms=10)"}
envs = make_vec_env("bandit_envs/Threshold-v0", 128, observation="features", **kwargs)
model = PPO(
    "MlpPolicy",
    envs,
    n_steps=50,
    batch_size=1600,
    gamma=0.9,
    gae_lambda=0.9,
    learning_rate=lambda left: 0.003 * left,
    seed=0,
)
begun = time.perf_counter()
model.learn(steps)
print(f"{steps:,} steps in {time.perf_counter() - begun:.0f} seconds")
result = agents.evaluate(
    {"PPO, MLP": model, "LSA": "lsa", "uniform": "uniform"},
    "bandit_envs/Threshold-v0",
    episodes=2000,
    env_kwargs=kwargs,
)
print(result.summary()[["agent", "misclassified", "error_rate", "error_low", "error_high"]])
print(result.compare("PPO, MLP", "uniform", "misclassified"))
