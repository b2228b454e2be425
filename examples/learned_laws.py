"""On priors over instances: the stored `evolved` against the best handcrafted agent: docs/learned-results.md.

The best handcrafted agent is chosen on a tenth of the episodes, of another seed; then both play the same episodes. The
first argument is the number of episodes (default 20,000), the second, if any, a regular expression for rows; more are
cards of further agents to compare with.

    python examples/learned_laws.py
    python examples/learned_laws.py 2000 "TopK|BestArm" results/evolved.json
"""

import functools
import re
import sys

import agents
import bandit_envs  # noqa: F401  (registers the environments)

EPISODES = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
ROWS = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
CARDS = {path: path for path in sys.argv[3:]}
TOP_K = ["top-two", "kl-lucb", "adapt", "ocba-m(n0=5)", "lucb(delta=0.1)"]
BEST = [*TOP_K, "evidence", "successive-rejects", "sequential-halving(reuse=True)"]
THRESHOLD = ["lsa", "lsa(alpha=1.0)", "apt(tolerance=0.05)", "apt(tolerance=0.1)", "dp-index", "opt-kg", "top-two"]
FEASIBLE = ["lsa", "md-apt", "md-sar"]
ALL_GOOD = ["st2(delta=0.1)", "ucb(delta=0.1)", "evidence"]
SHARE = {"epsilon": 0.2, "multiplicative": True}
AROUND = {"sampler": {"mean": {"around": [0.5, 0.05, 0.3]}}}
CUBE = {"A": [[s * float(i == j) for j in range(5)] for s in (1, -1) for i in range(5)], "b": [1.0] * 5 + [0.0] * 5}
CUBED = {
    "sampler": {
        "distribution": "gaussian",
        "arms": 20,
        "dimensions": 5,
        "spread": 0.5,
        "mean": {"uniform": [-0.1, 1.1]},
    }
}
CORNER = {"A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5]}
FLAT = {
    "sampler": {"distribution": "gaussian", "arms": 20, "dimensions": 2, "spread": 0.5, "mean": {"uniform": [0, 1]}}
}


def gaussian(arms):
    """Gaussian arms with means between 0 and 2.4."""
    return {"sampler": {"distribution": "gaussian", "arms": arms, "mean": {"uniform": [0, 2.4]}}}


PRIORS = [
    ("Threshold, K = 10, T = 200", THRESHOLD, {"instance": AROUND, "budget": 200}),
    ("Threshold, K = 10, T = 500", THRESHOLD, {"instance": AROUND, "budget": 500}),
    ("TopK, K = 20, k = 5, T = 500", TOP_K, {"instance": "sampler(arms=20)", "k": 5, "budget": 500}),
    ("TopK, K = 20, k = 5, T = 1000", TOP_K, {"instance": "sampler(arms=20)", "k": 5, "budget": 1000}),
    ("TopK, K = 50, k = 10, T = 1000", TOP_K, {"instance": "sampler(arms=50)", "k": 10, "budget": 1000}),
    ("BestArm, K = 10, T = 100", BEST, {"instance": "sampler(arms=10)", "budget": 100}),
    ("BestArm, K = 10, T = 500", BEST, {"instance": "sampler(arms=10)", "budget": 500}),
    ("BestArm, K = 20, T = 400", BEST, {"instance": "sampler(arms=20)", "budget": 400}),
    ("Feasible, cube, T = 2000", FEASIBLE, {"instance": CUBED, **CUBE, "tolerance": 0.05, "budget": 2000}),
    ("Feasible, corner, Gaussian, T = 1000", FEASIBLE, {"instance": FLAT, **CORNER, "budget": 1000}),
    (
        "Feasible, corner, Bernoulli, T = 500",
        FEASIBLE,
        {"instance": {"sampler": {"dimensions": 2, "arms": 10}}, **CORNER, "budget": 500},
    ),
    *(
        (
            f"AllGood, K = {arms}, {'share of .2' if 'multiplicative' in rule else 'epsilon .1'}, T = {20 * arms}",
            [*ALL_GOOD, "top-two"],
            {"instance": f"sampler(arms={arms})", **rule, "budget": 20 * arms},
        )
        for rule in ({"epsilon": 0.1}, SHARE)
        for arms in (10, 50)
    ),
    *(
        (
            f"AllGood, K = {arms}, price {price:g}",
            ALL_GOOD,
            {"instance": gaussian(arms), "epsilon": 0.75, "pull_cost": price, "max_pulls": most},
        )
        for arms, price, most in ((10, 1e-3, 4000), (25, 1e-3, 4000), (10, 1e-4, 20_000))
    ),
]
if not any(ROWS.search(label) for label, *_ in PRIORS):
    sys.exit(f"no row matches {ROWS.pattern!r}; the rows are {'; '.join(label for label, *_ in PRIORS)}")


def played(names, problem, episodes, seed, kwargs):
    """All agents on the same episodes."""
    return agents.evaluate(names, problem, episodes=episodes, seed=seed, env_kwargs=kwargs, progress=False)


@functools.cache
def handcrafted(label):
    """The best of the handcrafted agents, and its episodes; label: of the prior, and the budget if it has none."""
    prior, _, budget = label.partition("|")
    problem, (rivals, kwargs) = prior.partition(",")[0], RIVALS[prior]
    if budget:  # they do not know the price: they get as many pulls on average
        kwargs = {key: value for key, value in kwargs.items() if key not in ("pull_cost", "max_pulls")}
        kwargs["budget"] = int(budget)
    trial = losses(played(rivals, problem, max(EPISODES // 10, 20), 1, kwargs))
    best = min(trial, key=trial.__getitem__)
    return best, played({best: best}, problem, EPISODES, 2026, kwargs)


def losses(result):
    """What each agent loses on average: 1 less its score."""
    return {run.agent: 1 - run.values("score")[:, -1].mean() for run in result.runs}


RIVALS = {label: (rivals, kwargs) for label, rivals, kwargs in PRIORS}
for label, (_, kwargs) in RIVALS.items():
    if not ROWS.search(label):
        continue
    for name in ["evolved", *CARDS]:
        mine = played({name: name}, label.partition(",")[0], EPISODES, 2026, kwargs)
        spent = mine.runs[0].values("total_pulls").mean()
        priced = "pull_cost" in kwargs
        best, other = handcrafted(f"{label}|{round(spent)}" if priced else label)
        both = agents.evaluation.Evaluation(mine.runs + other.runs, mine.settings)
        gap, lost = both.compare(name, best, "score"), losses(both)
        low, high = sorted((-gap.low, -gap.high))
        verdict = "better" if high < 0 else "worse" if low > 0 else "level"
        print(
            f"| {label} | `{name}` {lost[name]:.5f}{f', {spent:.0f} pulls' if priced else ''} |",
            f"`{best}` {lost[best]:.5f} | {-gap.difference:+.5f} [{low:+.5f}, {high:+.5f}] |",
            f"{lost[name] / max(lost[best], 1e-12):.3f} | {verdict} |",
            flush=True,
        )
