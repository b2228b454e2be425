"""RecurrentPPO of sb3-contrib, an LSTM that remembers the samples itself: it sees the last arm and sample only."""

import sys

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import agents
import bandit_envs  # noqa: F401  (registers the environments)


class LastSample(gym.Wrapper):
    """Shows the arm just pulled, one-hot, its sample and the share of the budget left, instead of statistics."""

    def __init__(self, env):
        super().__init__(env)
        self.K, self.budget = env.unwrapped.task.K, env.unwrapped.task.budget
        self.observation_space = gym.spaces.Box(0.0, 1.0, (self.K + 2,), np.float32)

    def reset(self, **kwargs):
        observation, info = self.env.reset(**kwargs)
        return self.show(observation, None, 0.0), info

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self.show(observation, int(action), info.get("sample", 0.0)), reward, terminated, truncated, info

    def show(self, observation, arm, sample):
        seen = np.zeros(self.K + 2, np.float32)
        if arm is not None and arm < self.K:
            seen[arm], seen[self.K] = 1.0, sample
        seen[-1] = observation["remaining"][0] / self.budget
        return seen


torch.set_num_threads(1)  # the fastest for nets as small as these
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
kwargs = {"budget": 20, "instance": "sampler(arms=3)"}
make = {"env_id": "bandit_envs/Threshold-v0", "n_envs": 8, "env_kwargs": kwargs}
model = RecurrentPPO(
    "MlpLstmPolicy",
    make_vec_env(**make, wrapper_class=LastSample),
    n_steps=128,
    batch_size=256,
    gamma=0.99,
    seed=0,
    policy_kwargs={"lstm_hidden_size": 32},
)
model.learn(steps)
mean, sd = evaluate_policy(model, make_vec_env(**make, wrapper_class=LastSample, seed=1), n_eval_episodes=200)
print(f"RecurrentPPO: score {mean:.3f} (standard deviation of an episode {sd:.3f})")
result = agents.evaluate(["lsa", "uniform"], "bandit_envs/Threshold-v0", episodes=2000, env_kwargs=kwargs)
print(result.summary()[["agent", "score", "score_low", "score_high"]])
