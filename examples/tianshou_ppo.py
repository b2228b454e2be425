"""Tianshou's PPO (the first argument: steps).

Tianshou has vector environments of its own, which start each slot anew by themselves; they are made of single
environments.
"""

import sys

import gymnasium as gym
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

import agents
import bandit_envs  # noqa: F401  (registers the environments)

STEPS, N, BATCH = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000, 16, 2048
ID = "bandit_envs/Threshold-learn-v0"
KWARGS = {"instance": "sampler(arms=5)", "budget": 50}


class Judged:
    """The policy as `agents.evaluate` takes it: `predict` as Stable-Baselines3 has it."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        with torch.no_grad():
            return actor(torch.as_tensor(observation))[0].argmax(-1).numpy(), state


def made():
    return gym.make(ID, **KWARGS)


torch.manual_seed(0)
torch.set_num_threads(1)
envs, one = DummyVectorEnv([made] * N), made()
envs.seed(0)
shape = one.observation_space.shape
actor = DiscreteActor(
    preprocess_net=Net(state_shape=shape, hidden_sizes=[64, 64], activation=torch.nn.Tanh),
    action_shape=one.action_space.n,
    softmax_output=False,
)
critic = DiscreteCritic(preprocess_net=Net(state_shape=shape, hidden_sizes=[64, 64], activation=torch.nn.Tanh))
policy = DiscreteActorPolicy(actor=actor, action_space=one.action_space, observation_space=one.observation_space)
how = {"optim": AdamOptimizerFactory(lr=1e-3), "max_grad_norm": 0.5, "gamma": 1.0, "gae_lambda": 0.8}
ppo = PPO(policy=policy, critic=critic, **how)
collector = Collector[CollectStats](policy, envs, VectorReplayBuffer(BATCH, N))
ppo.run_training(
    OnPolicyTrainerParams(
        training_collector=collector,
        max_epochs=1,
        epoch_num_steps=STEPS,
        collection_step_num_env_steps=BATCH,
        batch_size=512,
        update_step_num_repetitions=4,
        verbose=False,
        show_progress=False,
    )
)
result = agents.evaluate({"Tianshou PPO": Judged(), "uniform": "uniform"}, ID, episodes=4000, seed=1, env_kwargs=KWARGS)
print(result.summary()[["agent", "score", "score_low", "score_high"]])
print(result.compare("Tianshou PPO", "uniform", "score"))
