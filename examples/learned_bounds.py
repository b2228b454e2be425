"""What any policy can reach on Threshold, BestArm and TopK, and what agents do: docs/learned-results.md.

`evolved`, uniform sampling and, on Threshold, other indices are functions of the statistics, and their losses are
exact. The others are played on common episodes, and what they lose beyond `evolved` is added to its exact loss. The
first argument is the number of episodes (default 400,000), the second, if any, a regular expression for rows.

    python examples/learned_bounds.py
    python examples/learned_bounds.py 20000 "BestArm 2"
"""

import math
import re
import sys

import gymnasium as gym
from bounds import best, reached

import agents
import bandit_envs  # noqa: F401  (registers the environments)

EPISODES = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
ROWS = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
EXACT = {"Threshold": ["dp-index", "lsa", "opt-kg", "apt"]}
BOTH = ["top-two", "kl-lucb"]
PLAYED = {
    "BestArm": [*BOTH, "successive-rejects", "sequential-halving", "sequential-halving(reuse=True)"],
    "TopK": [*BOTH, "adapt", "lucb(delta=0.1)"],
}
CASES = [
    *(("Threshold", K, None, T) for K, T in ((2, 20), (2, 60), (3, 18), (3, 24), (4, 10))),
    *(("BestArm", K, 1, T) for K, T in ((2, 20), (2, 40), (3, 12), (3, 18), (3, 24), (4, 10), (4, 12))),
    *(("TopK", K, 2, T) for K, T in ((3, 18), (4, 10), (4, 12))),
]


def against(evaluation, agent, loss):
    """What an agent loses beyond `evolved` on the same samples, and the standard error of that."""
    values = {run.agent: run.values("correct" if loss == "error" else loss)[:, 0] for run in evaluation.runs}
    more = (values["evolved"] * 1.0 - values[agent]) * (-1 if loss == "misclassified" else 1)
    return more.mean(), more.std(ddof=1) / math.sqrt(len(more))


for problem, K, k, T in CASES:
    label = f"{problem} {K}, {k}, {T}" if problem == "TopK" else f"{problem} {K}, {T}"
    if not ROWS.match(label):
        continue
    kwargs = {"instance": f"sampler(arms={K})", "budget": T} | ({"k": k} if problem == "TopK" else {})
    env = gym.make(f"bandit_envs/{problem}-v0", **kwargs)
    played = agents.evaluate(
        {name: name for name in ("evolved", *PLAYED.get(problem, []))},
        problem,
        episodes=EPISODES,
        seed=2026,
        env_kwargs=kwargs,
        progress=False,
    )
    for loss in ("misclassified",) if problem == "Threshold" else ("score", "error"):
        least = best(env, loss=loss)
        exact = {
            name: reached(agents.make(name, env), loss=loss) for name in ["evolved", *EXACT.get(problem, []), "uniform"]
        }
        texts = [f"{name} {value / least:.3f}" for name, value in exact.items()]
        for run in played.runs[1:]:
            more, error = against(played, run.agent, loss)
            value, width = exact["evolved"] + more, 1.96 * error
            texts.append(f"{run.agent} {value / least:.3f} ± {width / least:.3f}")
        print(
            f"| {label} | {'1 - score' if loss == 'score' else 'errors'} {least:.5f} |",
            " | ".join(texts),
            "|",
            flush=True,
        )
