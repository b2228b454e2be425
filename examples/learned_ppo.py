"""The table of docs/learned-results.md on `ppo`: its stored models beside other agents, on common episodes.

The first argument is the number of episodes of each row (default 20,000: half an hour), the second, if any, a regular
expression for rows.

    python examples/learned_ppo.py 500 TopK
"""

import re
import sys

import gymnasium as gym

import agents
import bandit_envs  # noqa: F401  (registers the environments)

EPISODES = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
ROWS = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
RIVALS = ["lsa", "dp-index", "top-two", "kl-lucb", "lucb", "evidence", "md-apt", "look-ahead", "evolved"]
PARAMETERS = {
    "Threshold": {"threshold": 0.5},
    "BestArm": {},
    "TopK": {"k": 3},
    "AllGood": {"epsilon": 0.2},
    "Feasible": {},
}
CASES = [(problem, 10, 100) for problem in PARAMETERS]  # what it was trained on
CASES += [("TopK", 5, 50), ("TopK", 20, 200), ("TopK", 50, 500), ("TopK", 10, 300), ("Threshold", 10, 300)]


def able(name, env):
    """Whether an agent solves the problem of an environment."""
    try:
        agents.make(name, env)
    except ValueError:
        return False
    return True


for problem, K, T in CASES:
    if not ROWS.search(f"{problem}, K = {K}, T = {T}"):
        continue
    kwargs = {"budget": T, **PARAMETERS[problem]}
    if K != 10:
        kwargs["instance"] = {"sampler": {"arms": K}}
    env = gym.make(f"bandit_envs/{problem}-v0", **kwargs)
    names = ["ppo", "uniform", *(name for name in RIVALS if able(name, env))]
    result = agents.evaluate(names, problem, episodes=EPISODES, seed=2026, env_kwargs=kwargs, progress=False)
    means = {run.agent: float(run.columns["score"].mean()) for run in result.runs}
    made = [name for name in names[2:] if name not in ("look-ahead", "evolved")]
    cells = [f"| {problem}, K = {K}, T = {T} | {means['ppo']:.4f} "]
    for name in ("uniform", max(made, key=means.__getitem__), "look-ahead", "evolved"):
        if name not in means:
            cells.append("| - ")
            continue
        paired = result.compare("ppo", name, "score")
        cells.append(f"| `{name}` {means[name]:.4f}: {paired.difference:+.4f} [{paired.low:+.4f}, {paired.high:+.4f}] ")
    print("".join(cells) + "|", flush=True)
