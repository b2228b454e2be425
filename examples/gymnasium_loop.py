"""All good arms with a guarantee: (ST)^2 stops by itself, in a plain Gymnasium loop with full actions."""

import gymnasium as gym

import agents
import bandit_envs  # noqa: F401  (registers the environments)

arms = {"distribution": "gaussian", "mean": [1.0, 0.9, 0.2, 0.1, 0.0], "sd": 0.3}
env = gym.make("bandit_envs/AllGood-v0", instance=arms, epsilon=0.4, delta=0.05, actions="full")
agent = agents.make("st2", env)
observation, info = env.reset(seed=0)
state, over = None, False
while not over:
    action, state = agent.predict(observation, state)
    observation, reward, terminated, truncated, info = env.step(action)
    over = terminated or truncated
print(f"answer {info['answer']}, correct {info['correct']}, after {info['total_pulls']} pulls")
