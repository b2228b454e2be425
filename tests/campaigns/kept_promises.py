"""What agents that stop by themselves promise: each criterion of TopK and BestArm is obeyed, or refused by its name.

On AllGood there is one criterion, with the slack in both forms. An agent that errs at a rate of exactly delta breaks
its limit with probability 1e-6.

    python tests/campaigns/kept_promises.py     2,000 episodes of each agent, instance, criterion and delta, for hours
"""

from __future__ import annotations

import itertools
from typing import Any

from scipy import stats

import agents
from agents.registry import AGENTS

CRITERIA, DELTAS = ("aggregate", "each", "exact"), (0.1, 0.3)

# Instances on which what is right by one criterion is wrong by another, with k and epsilon.
INSTANCES: dict[str, tuple[list[float], int, float]] = {
    "two close arms": ([0.5, 0.48], 1, 0.5),  # only "exact" tells them apart
    "two arms apart": ([0.4, 0.6], 1, 0.15),  # every criterion does
    "one worse arm among good ones": ([0.9, 0.9, 0.9, 0.7, 0.5, 0.5, 0.5, 0.5], 4, 0.15),  # wrong by "each" alone
    "one better arm among equals": ([0.95, 0.5, 0.5, 0.45, 0.4, 0.4], 3, 0.12),  # without it, wrong by "aggregate"
}
OF_TABLES = {"paired-elimination"}  # whose errors test_paired counts
NOMINAL = {"agentopt-elimination", "agentopt-lucb"}  # of tables, too; they promise nothing
# Stopping on TopK or BestArm, as they are. The fixed-budget ones among them make no promise.
STOPPING = [name for name, row in AGENTS.items() if getattr(row, "promises", ()) and name not in OF_TABLES]

# All good arms. Without slack two means are .1 from the boundary; with slack one lies in it. The best arm is unique.
NEAR = {"distribution": "gaussian", "mean": [1.0, 0.6, 0.4, 0.85], "sd": 0.25}
FORMS: dict[str, dict[str, Any]] = {
    "additive": {"epsilon": 0.5},
    "multiplicative": {"epsilon": 0.5, "multiplicative": True},
    "slack": {"epsilon": 0.35, "slack": 0.15},
    "multiplicative slack": {"epsilon": 0.35, "slack": 0.15, "multiplicative": True},
}
STOPS = [name for name, row in AGENTS.items() if getattr(row, "stops", False) and name not in OF_TABLES]
ALL_GOOD = [name for name in STOPS if "AllGood" in AGENTS[name].solves]


def most(episodes: int, delta: float) -> float:
    """The limit of the number of wrong answers."""
    return float(stats.binom.isf(1e-6, episodes, delta))


def counted(name: str, problem: str, episodes: int, **kwargs: Any) -> tuple[int, int]:
    """Wrong answers by stopping, and how many answers there were."""
    rows = agents.evaluate(name, problem, episodes=episodes, env_kwargs=kwargs, progress=False).episodes
    return int((~rows["correct"] & ~rows["truncated"]).sum()), int((~rows["truncated"]).sum())


def errors(name: str, where: str, criterion: str, delta: float, episodes: int, longest: int = 20_000) -> int | None:
    """Wrong answers by stopping; None where the pair is refused, which names the criterion."""
    mean, k, epsilon = INSTANCES[where]
    best = "TopK" not in AGENTS[name.partition("(")[0]].solves
    kwargs: dict[str, Any] = {"instance": {"distribution": "bernoulli", "mean": mean}, "epsilon": epsilon}
    kwargs |= {"delta": delta, "criterion": criterion, "max_pulls": longest} | ({} if best else {"k": k})
    try:
        return counted(name, "BestArm" if best else "TopK", episodes, **kwargs)[0]
    except ValueError as error:
        if "criterion" not in str(error):
            raise
        return None


def of_all_good(name: str, form: str, delta: float, episodes: int) -> tuple[int, int]:
    """Wrong answers by stopping on AllGood, and how many answers there were."""
    return counted(name, "AllGood", episodes, instance=NEAR, delta=delta, max_pulls=200_000, **FORMS[form])


def adapt_is_nominal(episodes: int = 400, delta: float = 0.1) -> None:
    """Two arms 1e-9 apart and epsilon 0: whatever stops tosses a coin, and a rule that holds at all times never stops.

    delta^c falls to delta where the difference of the means is 3.45 of its standard errors, 2 sqrt(ln(1 / .0513)),
    which happens sooner or later (law of the iterated logarithm): the promise is nominal. But that bound is loose
    (Hoeffding's, for each arm by itself), and within 20,000 pulls few episodes stop: 6 of 400 wrongly, below delta.
    """
    rules: dict[str, Any] = {"epsilon": 0.0, "criterion": "exact", "delta": delta, "max_pulls": 20_000}
    rules["instance"] = {"distribution": "bernoulli", "mean": [0.5, 0.5 - 1e-9]}
    for name, may_stop in (("pi3", True), ("adapt", True), ("clucb", False)):
        wrong, stopped = counted(name, "BestArm", episodes, **rules)
        assert wrong <= most(episodes, delta), name
        assert (stopped > 0) == may_stop, name


if __name__ == "__main__":
    adapt_is_nominal()
    for row in itertools.product(STOPPING, INSTANCES, CRITERIA, DELTAS):
        wrong = errors(*row, 2000)
        assert wrong is None or wrong <= most(2000, row[-1]), (row, wrong)
        print(*row, "refused" if wrong is None else wrong, flush=True)
    for one in itertools.product([name for name in ALL_GOOD if name != "lucb"], FORMS, DELTAS):
        found, stopped = of_all_good(*one, 2000)
        assert found <= most(2000, one[-1]), (one, found)
        print(*one, found, "of", stopped, flush=True)
