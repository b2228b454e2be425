"""TorchRL's PPO on the native vector environment (the first argument: steps).

TorchRL starts finished slots anew by itself, with autoreset DISABLED; it takes SAME_STEP too, and refuses NEXT_STEP.
`torchrl.envs.GymEnv("bandit_envs/Threshold-learn-v0")` is the single environment.
"""

import sys

import gymnasium as gym
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import MLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import agents
import bandit_envs  # noqa: F401  (registers the environments)

BATCH, MINIBATCH = 4096, 512
STEPS = int(sys.argv[1]) // BATCH * BATCH if len(sys.argv) > 1 else 100 * BATCH
ID = "bandit_envs/Threshold-learn-v0"
KWARGS = {"instance": "sampler(arms=5)", "budget": 50}


class Judged:
    """The policy as `agents.evaluate` takes it: `predict` as Stable-Baselines3 has it."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        with torch.no_grad():
            return net(torch.as_tensor(observation)).argmax(-1).numpy(), state


torch.manual_seed(0)
torch.set_num_threads(1)
native = gym.make_vec(ID, num_envs=64, autoreset_mode="Disabled", **KWARGS)
envs = GymWrapper(native, categorical_action_encoding=True)
size, actions = native.single_observation_space.shape[0], int(native.single_action_space.n)
net = MLP(size, actions, num_cells=[64, 64], activation_class=torch.nn.Tanh)
logits = TensorDictModule(net, in_keys=["observation"], out_keys=["logits"])
actor = ProbabilisticActor(
    logits, in_keys=["logits"], distribution_class=torch.distributions.Categorical, return_log_prob=True
)
critic = ValueOperator(MLP(size, 1, num_cells=[64, 64], activation_class=torch.nn.Tanh))
advantage = GAE(gamma=1.0, lmbda=0.8, value_network=critic, average_gae=True)
loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
for batch in Collector(envs, actor, frames_per_batch=BATCH, total_frames=STEPS):
    for _ in range(4):
        advantage(batch)
        flat = batch.reshape(-1)
        for part in torch.randperm(BATCH).split(MINIBATCH):
            found = loss(flat[part])
            optimizer.zero_grad()
            (found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]).backward()
            torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
            optimizer.step()
result = agents.evaluate({"TorchRL PPO": Judged(), "uniform": "uniform"}, ID, episodes=4000, seed=1, env_kwargs=KWARGS)
print(result.summary()[["agent", "score", "score_low", "score_high"]])
print(result.compare("TorchRL PPO", "uniform", "score"))
