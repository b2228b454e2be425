"""Which agent should I use? The tables of docs/which-agent.md, measured.

All agents meet the same episodes. "Level" are those whose paired difference from the best one is not significant: its
interval, Bonferroni-corrected for the number of agents, holds 0. Oracles, which know what nobody knows, are left out.

    python examples/which_agent.py --out docs/which-agent
    python examples/which_agent.py --episodes 100
"""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agents
from agents.registry import recipe_of

LEVEL = 0.05  # of all comparisons with the best agent together
MOST = 10**7  # pulls: an agent that has not stopped by then in all episodes is left out


@dataclass(frozen=True)
class Case:
    """A row of a table: a problem on a distribution of arms, or on a named instance.

    Attributes:
        problem: its name. arms: what the arms are, in words. rules: keyword arguments of the environment.
    """

    problem: str
    arms: str
    rules: dict[str, Any] = field(default_factory=dict)


def bernoulli(arms: int) -> dict[str, Any]:
    """Fresh Bernoulli arms with uniform means in every episode."""
    return {"instance": {"sampler": {"arms": arms}}}


GAUSSIAN = {"instance": {"sampler": {"distribution": "gaussian", "arms": 20, "mean": {"normal": [0, 1]}}}}

BUDGET = [
    Case("Threshold", "10 Bernoulli, 10 pulls each", bernoulli(10) | {"budget": 100}),
    Case("Threshold", "10 Bernoulli, 100 pulls each", bernoulli(10) | {"budget": 1000}),
    Case("Threshold", "100 Bernoulli, 10 pulls each", bernoulli(100) | {"budget": 1000}),
    Case("Threshold", "20 Gaussian, 10 pulls each", GAUSSIAN | {"threshold": 0.0, "budget": 200}),
    Case("TopK", "3 of 10 Bernoulli, 10 pulls each", bernoulli(10) | {"k": 3, "budget": 100}),
    Case("TopK", "3 of 10 Bernoulli, 100 pulls each", bernoulli(10) | {"k": 3, "budget": 1000}),
    Case("TopK", "10 of 100 Bernoulli, 10 pulls each", bernoulli(100) | {"k": 10, "budget": 1000}),
    Case("TopK", "5 of 20 Gaussian, 10 pulls each", GAUSSIAN | {"k": 5, "budget": 200}),
    Case("BestArm", "10 Bernoulli, 10 pulls each", bernoulli(10) | {"budget": 100}),
    Case("BestArm", "100 Bernoulli, 10 pulls each", bernoulli(100) | {"budget": 1000}),
    Case("BestArm", "20 Gaussian, 10 pulls each", GAUSSIAN | {"budget": 200}),
    Case("AllGood", "10 Bernoulli, 10 pulls each", bernoulli(10) | {"budget": 100}),
    Case("AllGood", "10 Bernoulli, 100 pulls each", bernoulli(10) | {"budget": 1000}),
    Case("AllGood", "100 Bernoulli, 10 pulls each", bernoulli(100) | {"budget": 1000}),
    Case("Feasible", "10 arms of 2 dimensions, 20 pulls each", {"budget": 200}),
    Case("Feasible", "polyhedra of all forms", {"instance": "polyhedra", "budget": 200}),
]

CERTAIN = [
    Case("Threshold", "`tao2019-1`, tolerance .04", {"instance": "tao2019-1", "tolerance": 0.04}),
    Case("AllGood", "`mason2020-3a(n=25)`, ε = .75", {"instance": "mason2020-3a(n=25)"}),
    Case("TopK", "`kalyanakrishnan2010-small`, ε = .2", {"instance": "kalyanakrishnan2010-small", "epsilon": 0.2}),
    Case("BestArm", "`garivier2016-2`", {"instance": "garivier2016-2"}),
    Case("BestArm", "`jamieson2014-ladder`", {"instance": "jamieson2014-ladder"}),
    Case("Feasible", "`dose-finding`, tolerance .08", {"instance": "dose-finding", "tolerance": 0.08}),
]
# Samplers that stop by a certificate beside the agents that stop by themselves.
ORACLES = ("ucbe", "static", "offline", "apt-oracle", "ugape")  # of a budget, where lucb is one on AllGood
# By default it is uniform sampling as long as arms have 20 pulls each or fewer.
FIRST_PULLS = {"ocba-m": "ocba-m(n0=5)"}
CERTIFIED = ("uniform(stop='certificate')", "lsa(stop='certificate')", "ocba-m(stop='certificate')")


def candidates(case: Case, wanted: str) -> list[str]:
    """The agents of a problem that need no truth, and can use a budget or a delta."""
    known = agents.names(case.problem)
    if wanted == "delta":
        found = [name for name in known if "delta" in " ".join(recipe_of(name).needs) and name != "evolved"]
        return found + [name for name in CERTIFIED if name.partition("(")[0] in known]
    found = [name for name in known if not (name in ORACLES or case.problem == "AllGood" and name == "lucb")]
    return [FIRST_PULLS.get(name, name) for name in found]


def evaluated(case: Case, names: list[str], episodes: int, **rules: Any) -> agents.Evaluation:
    """The agents on the same episodes, without those that refuse the task."""
    env_id, kwargs, taken = f"bandit_envs/{case.problem}-v0", case.rules | rules, []
    for name in names:
        with contextlib.suppress(ValueError):
            agents.evaluate(name, env_id, episodes=1, env_kwargs=kwargs, progress=False)
            taken.append(name)
    return agents.evaluate(taken, env_id, episodes=episodes, env_kwargs=kwargs, progress=False)


def level_with_the_best(found: agents.Evaluation, names: list[str], metric: str, sign: int) -> list[str]:
    """The best agent, and those whose difference from it is not significant; sign: 1 where more is better, else -1."""
    order = sorted(names, key=lambda name: -sign * float(found.column(name, metric).mean()))
    level = 1 - LEVEL / max(len(order) - 1, 1)
    ends = {name: found.compare(order[0], name, metric, level=level) for name in order[1:]}
    return [order[0], *(name for name, one in ends.items() if (one.low if sign > 0 else -one.high) <= 0)]


def row(case: Case, best: list[str], values: dict[str, float], form: str, baseline: str) -> str:
    """A line of a table: the best agents, the next three, and a baseline, with their values."""
    rest = sorted((name for name in values if name not in best), key=lambda name: abs(values[name] - values[best[0]]))
    told = [", ".join(f"`{name}` {values[name]:{form}}" for name in names) for names in (best, rest[:3])]
    last = f"{values[baseline]:{form}}" if baseline in values else "-"
    return f"| {case.problem} | {case.arms} | {told[0]} | {told[1]} | {last} |"


def budget_table(cases: list[Case], episodes: int) -> str:
    """With a budget: what is missing to the score 1, in hundredths."""
    lines = [
        "| problem | arms and budget | the best, and those level with it | next | `uniform` |",
        "|---|---|---|---|---|",
    ]
    for case in cases:
        rules = {"delta": 0.1} if case.problem == "AllGood" else {}
        found = evaluated(case, candidates(case, "budget"), episodes, **rules)
        lost = {name: 100 * (1 - float(found.column(name, "score").mean())) for name in found.agents}
        lines.append(row(case, level_with_the_best(found, found.agents, "score", 1), lost, ".2f", "uniform"))
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def delta_table(cases: list[Case], episodes: int) -> str:
    """With an error probability: mean pulls until an agent stops, in thousands."""
    uniform = "uniform(stop='certificate')"
    heads = f"| problem | instance | the fewest pulls (thousands), and those level with it | next | `{uniform}` |"
    lines = [heads, "|---|---|---|---|---|"]
    for case in cases:
        found = evaluated(case, candidates(case, "delta"), episodes, delta=0.1, max_pulls=MOST)
        stopped = [name for name in found.agents if not found.column(name, "truncated").any()]
        pulls = {name: float(found.column(name, "total_pulls").mean()) / 1000 for name in stopped}
        lines.append(row(case, level_with_the_best(found, stopped, "total_pulls", -1), pulls, ",.2f", uniform))
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description="Measure which agents are the best.")
    parser.add_argument("--episodes", type=int, default=400, help="with a budget; a tenth of them with a delta")
    parser.add_argument("--out", type=Path, help="folder of the documentation, for budget.md and delta.md")
    parser.add_argument("--problems", nargs="+", help="those of these problems alone")
    asked = parser.parse_args()
    made = {}
    for name, table, cases, part in (("budget", budget_table, BUDGET, 1), ("delta", delta_table, CERTAIN, 10)):
        taken = [case for case in cases if asked.problems is None or case.problem in asked.problems]
        made[name] = table(taken, max(asked.episodes // part, 2))
    if asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (asked.out / f"{name}.md").write_text(text)


if __name__ == "__main__":
    main()
