"""PPO in one file, in the manner of CleanRL, on `gym.make_vec`: no Stable-Baselines3 (the first argument: steps).

The vector environment resets a slot in the step after its end (autoreset NEXT_STEP) and ignores that step's action, so
that step is left out of the update. The id for learners pays each pull its expected gain in the score.
"""

import sys

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import agents
from bandit_envs.envs import NUMBERS

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
N, HORIZON, EPOCHS, MINIBATCHES = 64, 64, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, RATE = 1.0, 0.8, 0.2, 0.001, 3e-3
ID, SCALE = "bandit_envs/Threshold-learn-v0", 50  # of the rewards
KWARGS = {"instance": "sampler(arms=5)", "budget": 50}


class Policy(nn.Module):
    """One logit per arm from the arm's numbers, those of all, and their mean over the arms; the value from the mean."""

    def __init__(self, arms):
        super().__init__()
        each, more, _ = NUMBERS["relative"]
        self.arms, self.of_arms = arms, arms * each
        self.code = nn.Sequential(nn.Linear(each + more, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.arm, self.critic = nn.Linear(64, 1), nn.Linear(32, 1)

    def forward(self, x):
        own = x[:, : self.of_arms].reshape(len(x), self.arms, -1)
        shared = x[:, None, self.of_arms :].expand(-1, self.arms, -1)
        codes = self.code(torch.cat([own, shared], 2))
        context = codes.mean(1, keepdim=True)
        logits = self.arm(torch.cat([codes, context.expand_as(codes)], 2))[..., 0]
        return Categorical(logits=logits), self.critic(context[:, 0])[:, 0]

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        """As Stable-Baselines3 has it, so that `agents.evaluate` takes this policy."""
        with torch.no_grad():
            return self(torch.as_tensor(observation))[0].logits.argmax(1).numpy(), state


torch.manual_seed(0)
torch.set_num_threads(1)
envs = gym.make_vec(ID, num_envs=N, **KWARGS)
policy = Policy(int(envs.single_action_space.n))
optimizer = torch.optim.Adam(policy.parameters(), lr=RATE, eps=1e-5)
seen = torch.zeros(HORIZON, N, *envs.single_observation_space.shape)
actions, logs, rewards, dones, values = (torch.zeros(HORIZON, N) for _ in range(5))
observation, _ = envs.reset(seed=0)
over = np.zeros(N, bool)  # the step to come begins an episode, whatever the action
scores = []
for update in range(max(1, STEPS // (N * HORIZON))):
    valid = torch.ones(HORIZON, N, dtype=torch.bool)
    for t in range(HORIZON):
        valid[t] = torch.as_tensor(~over)
        seen[t] = torch.as_tensor(observation)
        with torch.no_grad():
            choice, values[t] = policy(seen[t])
            actions[t] = choice.sample()
            logs[t] = choice.log_prob(actions[t])
        observation, reward, terminated, truncated, info = envs.step(actions[t].numpy().astype(np.int64))
        over = terminated | truncated
        rewards[t], dones[t] = torch.as_tensor(SCALE * reward), torch.as_tensor(over)
        if "score" in info:
            scores += info["score"][info["_score"]].tolist()
    with torch.no_grad():
        following, running = policy(torch.as_tensor(observation))[1], torch.zeros(N)
        advantages = torch.zeros(HORIZON, N)
        for t in reversed(range(HORIZON)):
            delta = rewards[t] + GAMMA * following * (1 - dones[t]) - values[t]
            running = delta + GAMMA * LAMBDA * (1 - dones[t]) * running
            advantages[t], following = running, values[t]
        returns = advantages + values
    for group in optimizer.param_groups:
        group["lr"] = RATE * (1 - update * N * HORIZON / STEPS)
    flat = [table.flatten(0, 1)[valid.flatten()] for table in (seen, actions, logs, advantages, returns)]
    for _ in range(EPOCHS):
        for part in torch.randperm(len(flat[0])).chunk(MINIBATCHES):
            x, a, old, advantage, target = (table[part] for table in flat)
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            choice, value = policy(x)
            ratio = (choice.log_prob(a) - old).exp()
            gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
            loss = -gain + 0.5 * (value - target).pow(2).mean() - ENTROPY * choice.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
    if update % 25 == 0 and scores:
        print(f"{(update + 1) * N * HORIZON:9,} steps  score of the last 500 episodes {np.mean(scores[-500:]):.3f}")
rivals = {"PPO": policy, "LSA": "lsa", "uniform": "uniform"}
result = agents.evaluate(rivals, ID, episodes=4000, seed=1, env_kwargs=KWARGS)
print(result.summary()[["agent", "score", "score_low", "score_high"]])
print(result.compare("PPO", "uniform", "score"))
