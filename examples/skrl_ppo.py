"""skrl's PPO on the native vector environment (the first argument: steps).

skrl leaves it to the environment to start finished slots anew, and takes every step for one of an episode: autoreset
SAME_STEP has no other steps.
"""

import sys

import gymnasium as gym
import torch
from skrl import config
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed

import agents
import bandit_envs  # noqa: F401  (registers the environments)

STEPS, N, HORIZON = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000, 16, 128
ID = "bandit_envs/Threshold-learn-v0"
KWARGS = {"instance": "sampler(arms=5)", "budget": 50}


def net(size, outputs):
    return torch.nn.Sequential(
        torch.nn.Linear(size, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, outputs),
    )


class Policy(CategoricalMixin, Model):
    def __init__(self, observation_space, action_space, device):
        Model.__init__(self, observation_space=observation_space, action_space=action_space, device=device)
        CategoricalMixin.__init__(self, unnormalized_log_prob=True)
        self.net = net(self.num_observations, self.num_actions)

    def compute(self, inputs, role):
        return self.net(inputs["observations"]), {}

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        """As Stable-Baselines3 has it, so that `agents.evaluate` takes this policy."""
        with torch.no_grad():
            return self.net(torch.as_tensor(observation)).argmax(-1).numpy(), state


class Value(DeterministicMixin, Model):
    def __init__(self, observation_space, action_space, device):
        Model.__init__(self, observation_space=observation_space, action_space=action_space, device=device)
        DeterministicMixin.__init__(self)
        self.net = net(self.num_observations, 1)

    def compute(self, inputs, role):
        return self.net(inputs["observations"]), {}


torch.set_num_threads(1)
set_seed(0)
config.torch.device = "cpu"  # the fastest for networks as small as these, and that of the observations
env = wrap_env(gym.make_vec(ID, num_envs=N, autoreset_mode="SameStep", **KWARGS))
spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": env.device}
policy = Policy(**spaces)
cfg = PPO_CFG(rollouts=HORIZON, learning_epochs=4, mini_batches=4, entropy_loss_scale=0.01)
cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0  # no files
agent = PPO(
    models={"policy": policy, "value": Value(**spaces)},
    memory=RandomMemory(memory_size=HORIZON, num_envs=N, device=env.device),
    cfg=cfg,
    **spaces,
)
SequentialTrainer(cfg={"timesteps": STEPS // N, "headless": True}, env=env, agents=agent).train()
result = agents.evaluate({"skrl PPO": policy, "uniform": "uniform"}, ID, episodes=4000, seed=1, env_kwargs=KWARGS)
print(result.summary()[["agent", "score", "score_low", "score_high"]])
print(result.compare("skrl PPO", "uniform", "score"))
