"""RecurrentPPO of sb3-contrib, an LSTM (the first argument: steps).

It reads beliefs, and is paid for each pull what it gains. An LSTM that was shown single samples, and had to add them up
itself, learned to pull the arms in turn within 400,000 steps, and no more: what is not given must be learned first.
"""

import sys
import time

import torch
from sb3_contrib import RecurrentPPO

import agents
from agents.learned import make_vec_env

torch.set_num_threads(1)  # the fastest for nets as small as these
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
kwargs = {"budget": 50, "instance": "sampler(arms=5)"}
envs = make_vec_env("bandit_envs/Threshold-learn-v0", 64, reward_scale=50, **kwargs)
model = RecurrentPPO(
    "MlpLstmPolicy",
    envs,
    n_steps=50,
    batch_size=1600,
    n_epochs=5,
    gamma=1.0,
    gae_lambda=0.8,
    learning_rate=lambda left: 0.003 * left,
    seed=0,
    device="cpu",
    policy_kwargs={"lstm_hidden_size": 32},
)
begun = time.perf_counter()
model.learn(steps)
print(f"{steps:,} steps in {time.perf_counter() - begun:.0f} seconds")
result = agents.evaluate(
    {"RecurrentPPO": model, "LSA": "lsa", "uniform": "uniform"},
    "bandit_envs/Threshold-learn-v0",
    episodes=2000,
    env_kwargs=kwargs,
)
print(result.summary()[["agent", "misclassified", "error_rate", "error_low", "error_high"]])
print(result.compare("RecurrentPPO", "uniform", "misclassified"))
