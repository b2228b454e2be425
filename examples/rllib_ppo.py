"""RLlib's PPO on the native vector environment (the first argument: steps).

RLlib leaves the step out in which a slot starts anew, as autoreset NEXT_STEP has it; "vector_entry_point" asks for the
native vector environment. A worker process imports only what the id names: here, the module before the colon.
"""

import sys

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig

import agents

BATCH = 2048
ROUNDS = int(sys.argv[1]) // BATCH if len(sys.argv) > 1 else 100
ID = "bandit_envs/Threshold-learn-v0"
KWARGS = {"instance": "sampler(arms=5)", "budget": 50}


class Judged:
    """The policy as `agents.evaluate` takes it: `predict` as Stable-Baselines3 has it."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        with torch.no_grad():
            found = module.forward_inference({"obs": torch.as_tensor(observation)})
        return found["action_dist_inputs"].argmax(-1).numpy(), state


ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
config = (
    PPOConfig()
    .environment(f"bandit_envs:{ID}", env_config=KWARGS)
    .env_runners(num_env_runners=0, num_envs_per_env_runner=16, gym_env_vectorize_mode="vector_entry_point")
    .training(train_batch_size_per_learner=BATCH, minibatch_size=512, num_epochs=4, lr=1e-3, entropy_coeff=0.01)
    .debugging(seed=0)
)
algorithm = config.build_algo()
for _ in range(max(1, ROUNDS)):
    algorithm.train()
module = algorithm.get_module()
result = agents.evaluate({"RLlib PPO": Judged(), "uniform": "uniform"}, ID, episodes=4000, seed=1, env_kwargs=KWARGS)
print(result.summary()[["agent", "score", "score_low", "score_high"]])
print(result.compare("RLlib PPO", "uniform", "score"))
algorithm.stop()
ray.shutdown()
