"""The tables of docs/learned-results.md on the papers' instances: the stored `evolved` against handcrafted agents.

All play the same episodes. The best handcrafted agent is the best on these very episodes, which favours it. The first
argument is the number of episodes (default 1000), the second, if any, a regular expression for rows.
"""

import re
import sys

import agents
import bandit_envs  # noqa: F401  (registers the environments)

EPISODES = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
ROWS = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
LEARNED = ["evolved"]
TOP_K = [
    "adapt",
    "ocba-m(n0=5)",
    "clucb",
    "lucb(delta=0.1)",
    "opt-mai",
    "kl-lucb",
    "racing(delta=0.1)",
    "adaptive-top-k",
    "top-two",
]
ALL_GOOD = ["st2(delta=0.1)", "ucb(delta=0.1)", "evidence"]
FEASIBLE = ["md-apt", "md-sar", "lsa", "md-ucbe(scale=10)"]
PULLS = (10, 50, 200)  # budgets of TopK, in pulls per arm
CHEN = "(n=50, K=10)"
STONE = {"kalyanakrishnan2010-small": 10, "kalyanakrishnan2010-gaussian": 50, "kalyanakrishnan2010": 50}
INSTANCES = STONE | {f"chen2017-{name}{CHEN}": 50 for name in ("uniform", "two-group", "synthetic-6")}
PAPER = {f"katz-samuels2018-{i}": 2000 for i in range(1, 6)} | {"dose-finding": 1000, "crowdsourcing": 4000}
COSTS = (1e-3, 3e-4, 1e-4)  # prices of a pull


def play(names, problem, **kwargs):
    """All agents on the same episodes; those that refuse the task are left out."""
    good = {}
    for name in names:
        try:
            agents.evaluate(name, problem, episodes=1, env_kwargs=kwargs, progress=False)
        except ValueError as error:
            print(f"{name}: {error}", file=sys.stderr)
        else:
            good[name] = name
    return agents.evaluate(good, problem, episodes=EPISODES, seed=2026, env_kwargs=kwargs, progress=False)


def verdict(difference, sign):
    """Whether the learned agent is better (sign 1: the larger the better)."""
    low, high = sorted((sign * difference.low, sign * difference.high))
    return "better" if low > 0 else "worse" if high < 0 else "level"


def line(cell, result, metric, sign, rivals, digits=4):
    """A row for each learned agent."""
    means = {run.agent: run.values(metric)[:, -1].mean() for run in result.runs}
    best = max((name for name in rivals if name in means), key=lambda name: sign * means[name])
    for name in LEARNED:
        if name in means:
            gap = result.compare(name, best, metric)
            interval = f"{gap.difference:+.{digits}f} [{gap.low:.{digits}f}, {gap.high:.{digits}f}]"
            print(
                f"| {cell} | {metric} | `{name}` {means[name]:.{digits}f} | `{best}` {means[best]:.{digits}f} |",
                f"{interval} | {verdict(gap, sign)} |",
                "; ".join(f"{other} {mean:.{digits}f}" for other, mean in means.items()),
                flush=True,
            )


for pulls in PULLS:
    for instance, arms in INSTANCES.items():
        if ROWS.match(instance):
            result = play(
                [*LEARNED, *TOP_K, "uniform"],
                "bandit_envs/TopK-v0",
                instance=instance,
                budget=pulls * arms,
                shuffle_arms=True,
            )
            line(f"`{instance}`, {pulls * arms}", result, "normalised_sum", 1, TOP_K)
for instance, budget in PAPER.items():
    for pulls in (budget // 2, budget):
        if ROWS.match(instance):
            result = play(
                [*LEARNED, *FEASIBLE, "uniform"],
                "bandit_envs/Feasible-v0",
                instance=instance,
                budget=pulls,
                shuffle_arms=True,
            )
            line(f"`{instance}`, {pulls}", result, "misclassified", -1, FEASIBLE)
for cost in COSTS:
    for name in LEARNED if ROWS.match("mason2020-3a") else []:
        fixed = {"instance": "mason2020-3a(n=25)", "shuffle_arms": True}
        learned = play([name], "bandit_envs/AllGood-v0", **fixed, pull_cost=cost, max_pulls=20_000)
        mean = round(learned.runs[0].values("total_pulls").mean())
        rivals = play([*ALL_GOOD, "apt-oracle"], "bandit_envs/AllGood-v0", **fixed, budget=mean)
        result = agents.evaluation.Evaluation(learned.runs + rivals.runs, learned.settings)
        for names in (ALL_GOOD, ["apt-oracle"]):  # the second is told the true boundary
            line(f"`mason2020-3a(n=25)`, {cost:g}: {mean} pulls", result, "f1", 1, names)
