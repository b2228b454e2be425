"""Learned and handcrafted agents, as multiples of LSA with alpha 1.35, on common samples: docs/learned-results.md.

The first argument is the share of the episodes (default 1: hours), the second, if any, a regular expression for rows,
the third the root seed (default 2026; 2027 for `evolved` in the docs, which was chosen on the episodes of 2026). More
are models or cards of further agents to compare with.

    python examples/learned_table.py
    python examples/learned_table.py 0.1 results 2026 results/seed1.safetensors
"""

import math
import re
import sys

import agents
import bandit_envs  # noqa: F401  (registers the environments)

SHARE = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
ROWS = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 2026
CELLS = [
    ("tao2019-1", 200, 50_000),
    ("tao2019-1", 500, 50_000),
    ("tao2019-1", 1000, 300_000),
    ("tao2019-2", 5000, 8_000),
    ("tao2019-2", 20_000, 8_000),
    ("tao2019-3", 20_000, 8_000),
]
AGENTS = {
    "evolved": "evolved",
    "dp-index": "dp-index",
    "LSA, alpha = 1": "lsa(alpha=1.0)",
    "APT 0": "apt(tolerance=0.0)",
    "APT 0.025": "apt(tolerance=0.025)",
    "APT 0.05": "apt(tolerance=0.05)",
    "APT 0.1": "apt(tolerance=0.1)",
    "Opt-KG": "opt-kg",
    "uniform": "uniform",
} | {path: path for path in sys.argv[4:]}


def ratio(evaluation, agent, reference):
    """Mean misclassified arms of one agent over those of another on the same samples, and its standard error."""
    values = {run.agent: run.values("misclassified")[:, 0].astype(float) for run in evaluation.runs}
    mine, theirs = values[agent], values[reference]
    share = mine.mean() / theirs.mean()
    return share, (mine - share * theirs).std(ddof=1) / math.sqrt(len(mine)) / theirs.mean()


print("| agent |", " | ".join(f"{instance}, {budget}" for instance, budget, _ in CELLS), "|")
print("|---" * (len(CELLS) + 1) + "|")
for label, name in AGENTS.items():
    if not ROWS.match(label):
        continue
    texts = []
    for instance, budget, episodes in CELLS:
        count = max(int(episodes * SHARE), 20)
        kwargs = {"instance": instance, "budget": budget}
        result = agents.evaluate(
            {"it": name, "LSA": "lsa"},
            "bandit_envs/Threshold-v0",
            episodes=count,
            seed=SEED,
            env_kwargs=kwargs,
            progress=False,
        )
        share, error = ratio(result, "it", "LSA")
        texts.append(f"{share:.3f} [{share - 1.96 * error:.3f}, {share + 1.96 * error:.3f}]")
    print(f"| {label} |", " | ".join(texts), "|", flush=True)
