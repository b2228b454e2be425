"""An id of one's own, for programs that take the id of an environment and nothing else, as CleanRL's scripts do.

With this file on the path, CleanRL's own PPO runs as it is, on features, five arms and 50 pulls:

    PYTHONPATH=examples python ppo.py --env-id own_ids:own/Threshold-v0
"""

import gymnasium as gym

kwargs = {"problem": "Threshold", "instance": "sampler(arms=5)", "budget": 50, "observation": "features"}
gym.register("own/Threshold-v0", entry_point="bandit_envs:PureExplorationEnv", kwargs=kwargs)

if __name__ == "__main__":
    env = gym.make("own/Threshold-v0")
    print(env.observation_space, env.action_space)
