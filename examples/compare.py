"""Thresholding algorithms on the same episodes: a table, a paired comparison, a figure with confidence bands."""

import agents
import bandit_envs  # noqa: F401  (registers the environments)

result = agents.evaluate(
    {"LSA": "lsa", "APT(.05)": "apt(tolerance=0.05)", "UCBE": "ucbe", "uniform": "uniform"},
    "bandit_envs/Threshold-v0",
    episodes=1000,
    budgets=[100, 200, 400],
    env_kwargs={"instance": "tao2019-1"},
)
print(result.summary()[["agent", "budget", "misclassified", "error_rate", "error_low", "error_high"]])
print(result.compare("LSA", "uniform", "misclassified", budget=400))
result.plot("misclassified", path="comparison.svg", log=True)
