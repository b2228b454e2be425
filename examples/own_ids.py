"""An id of one's own, for programs that take the id of an environment and nothing else, as CleanRL's scripts do.

With this file on the path, CleanRL's own PPO runs as it is, on the id for learners with five arms and 50 pulls:

    PYTHONPATH=examples python ppo.py --env-id own_ids:own/Threshold-learn-v0
"""

import gymnasium as gym

import bandit_envs  # noqa: F401  (registers the environments)

spec = gym.spec("bandit_envs/Threshold-learn-v0")
kwargs = {**spec.kwargs, "instance": "sampler(arms=5)", "budget": 50}
gym.register("own/Threshold-learn-v0", entry_point=spec.entry_point, kwargs=kwargs)

if __name__ == "__main__":
    env = gym.make("own/Threshold-learn-v0")
    print(env.observation_space, env.action_space)
