"""Bad parameters, tasks and observations of the agents: what each refusal must name."""

from __future__ import annotations

import ast
from typing import Any

import gymnasium as gym
from refusals import table

import agents
from bandit_envs import Task, TopK

TASKS: dict[str, Task] = {
    "TopK": Task("TopK", {"k": 2, "epsilon": 0.1, "criterion": "each"}, K=4, delta=0.1),
    "BestArm": Task("BestArm", {"epsilon": 0.0, "criterion": "exact"}, K=4, budget=100),
    "AllGood": Task("AllGood", {"epsilon": 0.5, "multiplicative": False, "slack": 0.0}, K=3, delta=0.1),
    "Threshold": Task("Threshold", {"threshold": 0.5, "tolerance": 0.0}, K=3, budget=10, delta=0.1),
}
# Agents | task, and its changes | what the message names, of which NAME is the agent. 1e999 is infinite.
MADE = """
adapt(bernstein_range=0)                       | TopK | bernstein_range 1e-100 0
pi3(cutoff='middle')                           | TopK | cutoff standard-error best middle
pi3(bernstein_range=1)                         | TopK | pi3 bernstein_range
pi1(delta=0)                                   | TopK | delta 0
pi2(width=0)                                   | TopK | width 0
pi2(cap=3)                                     | TopK | cap True False 3
pi1, pi2, adapt(cap=True)                      | TopK budget=100 delta=None | NAME delta
pi3, adapt, clucb, kl-lucb                     | TopK delta=None | NAME delta
st2, two-step, ucb                             | AllGood budget=50 delta=None | NAME delta
lucb(k=1)                                      | AllGood budget=50 delta=None | lucb delta
apt-oracle                                     | AllGood | apt-oracle threshold=
lucb                                           | AllGood | lucb AllGood k=
adapt(cap=True)                                | TopK epsilon=0.0 | cap=True epsilon
adapt(seed=-1)                                 | TopK | seed 4294967295 -1
ocba-m(n0=1)                                   | TopK | n0 2 1
clucb(sigma=-1)                                | TopK | sigma -1
kl-lucb(threshold='2017')                      | TopK | threshold 2013 lil 2017
lil-ucb(constants='best')                      | BestArm | constants theory heuristic best
lil-ucb                                        | TopK | lil-ucb BestArm TopK
adapt                                          | Threshold | adapt TopK BestArm Threshold
direct, halving, adaptive-top-k                | TopK delta=None | NAME delta
incremental(delta=1)                           | TopK | delta 1
adaptive-top-k(constants='best')               | TopK | constants theory practical best
adaptive-top-k(constants='practical',delta=.1) | TopK | practical delta 0.1
adaptive-top-k(sigma=0)                        | TopK | sigma 0
direct, incremental, halving, improved-top-k   | TopK epsilon=0.0 | NAME epsilon TopK
direct, incremental, halving                   | TopK epsilon=1e-9 | NAME 1e-09 pulls
improved-top-k                                 | TopK epsilon=1e-9 | improved-top-k 5e-10 pulls
improved-top-k(reuse=1)                        | TopK | reuse True False 1
opt-mai                                        | TopK | opt-mai budget
opt-mai(reuse='yes')                           | TopK budget=100 | reuse yes
racing(rounds=0)                               | TopK | rounds 1 0
racing(widths='lil')                           | TopK | widths hoeffding lil
racing(width=-1)                               | TopK | width -1
racing(beyond=None)                            | TopK | beyond True False None
direct                                         | Threshold | direct TopK BestArm Threshold
successive-rejects                             | BestArm budget=None delta=0.1 | successive-rejects budget None
successive-rejects                             | BestArm budget=4 | successive-rejects budget 4
sequential-halving                             | BestArm budget=7 | sequential-halving budget 8 7
sequential-halving(reuse=1)                    | BestArm | reuse True False 1
sequential-halving                             | TopK | sequential-halving BestArm TopK
ugape                                          | BestArm | ugape budget H=
ugape(H=5)                                     | BestArm budget=4 | ugape budget 4
ugape(a=0)                                     | BestArm | a 0
ugape(scale=-1,H=3)                            | BestArm | scale -1
ugape                                          | BestArm budget=None | ugape delta
hdoc(sampling='apt')                           | Threshold | sampling hdoc lucb-g apt-g apt
hdoc                                           | Threshold delta=None budget=None max_pulls=99 | hdoc delta
st2(delta=0), fareast(delta=0)                 | AllGood | delta 0
st2(c=0), east(c=0), fareast(c=0)              | AllGood | c 0
ucb(c=1e999)                                   | AllGood | c inf
st2(sigma=-1), east(sigma=-1), fareast(sigma=-1) | AllGood | sigma -1
st2(bounds='best')                             | AllGood | bounds current running best
ucb(bounds=None)                               | AllGood | bounds current running None
apt-oracle(threshold=1e999)                    | AllGood | threshold inf
lucb(k=0)                                      | AllGood | k 2 0
lucb(k=1,widths='wide')                        | AllGood | widths hoeffding lil wide
lucb(k=1,epsilon=-1)                           | AllGood | epsilon -1
east, uniform-elimination, fareast             | AllGood delta=None | NAME delta
fareast(finder='lucb1')                        | AllGood | finder lucb1
fareast(kappa=1)                               | AllGood | kappa 1
fareast(tau=0)                                 | AllGood | tau 0
median-elimination                             | BestArm delta=0.1 | median-elimination epsilon
st2                                            | Threshold | st2 AllGood Threshold
ucb                                            | Threshold | ucb AllGood BestArm Threshold
lucb                                           | Threshold | lucb TopK BestArm AllGood Threshold
apl                                            | Threshold | apl apt
uniform(seed=1)                                | Threshold | uniform seed none
apt(tolerance=-0.1)                            | Threshold | tolerance -0.1
lsa(alpha=0)                                   | Threshold | alpha 0
random(seed=-1)                                | Threshold | seed 4294967295 -1
ucbe(H=0)                                      | Threshold | H 0
ucbe(a=-1)                                     | Threshold | a -1
ucbe(H=1,scale=0)                              | Threshold | scale 0
ucbe(H=1,b=1e999)                              | Threshold | b inf
ucbe(H=1)                                      | Threshold budget=3 | ucbe budget 3
ucbe(H=1)                                      | Threshold budget=None max_pulls=9 | ucbe budget None
opt-kg(prior=1)                                | Threshold | prior 1
opt-kg(prior=(1,2,3))                          | Threshold | prior
opt-kg(prior=(0,1))                            | Threshold | prior 0
opt-kg                                         | Threshold distribution='gaussian' | opt-kg gaussian
lsa                                            | TopK | lsa Threshold Feasible TopK
static(margins=[1,2])                          | Threshold | margins 3
static(margins=[1,2,-1])                       | Threshold | margins -1
offline(margins=[1,2])                         | Threshold | margins 3
sar                                            | Threshold budget=None | sar budget None
sar                                            | Threshold budget=1 | sar budget 1
md-sar                                         | AllGood | sar Threshold Feasible AllGood
look-ahead                                     | Threshold budget=None | look-ahead budget max_pulls
"""


def made(name: str, where: str, words: str) -> tuple[Any, ...]:
    problem, *changes = where.split()
    given = {key: ast.literal_eval(value) for key, value in (change.split("=") for change in changes)}
    task = TASKS[problem]
    parameters = task.parameters | ({"epsilon": given.pop("epsilon")} if "epsilon" in given else {})
    return (
        lambda: agents.make(name, task.replace(parameters=parameters, **given)),
        *words.replace("NAME", name.partition("(")[0]).split(),
    )


ROWS = [[part.strip() for part in line.split("|")] for line in MADE.strip().splitlines()]
test_parameters = table(
    {f"{name} | {where}": made(name, where, words) for names, where, words in ROWS for name in names.split(", ")}
)

BERNOULLI: dict[str, Any] = {"instance": {"distribution": "bernoulli", "mean": [0.9, 0.2, 0.6]}, "budget": 30}
EQUAL = {"instance": {"distribution": "bernoulli", "mean": [0.5, 0.5]}, "budget": 30}
COORDINATES = Task("Feasible", {"A": [[1, 1]], "b": [1]}, K=3, D=2, budget=9, pull="coordinate")


def of(name: Any, problem: str, *words: object, **rules: Any) -> tuple[Any, ...]:
    """A row: an agent for an environment."""
    return (lambda: agents.make(name, gym.make(f"bandit_envs/{problem}-v0", **rules)), *words)


def out_of_order() -> None:
    agent = agents.make("static", gym.make("bandit_envs/Threshold-v0", **BERNOULLI))
    rules = BERNOULLI | {"shuffle_arms": True}
    agents.evaluate(agent, "bandit_envs/Threshold-v0", episodes=2, env_kwargs=rules)


test_environments = table(
    {
        "equal arms": of("ugape", "BestArm", "ugape", "H", "inf", **EQUAL),
        "no k": of("lucb", "AllGood", "lucb", "AllGood", "k=", instance="sampler(arms=4)", delta=0.1),
        "threshold 0": of("opt-kg", "Threshold", "threshold", "(0, 1)", 0, threshold=0),
        "features": of("lsa", "Threshold", "lsa", "statistics", "features", observation="features", **BERNOULLI),
        "ucbe at the boundary": of("ucbe", "Threshold", "ucbe", "H", "inf", "boundary", threshold=0.6, **BERNOULLI),
        "static at the boundary": of("static", "Threshold", "static", "boundary", threshold=0.6, **BERNOULLI),
        "offline at the boundary": of("offline", "Threshold", "offline", "boundary", threshold=0.6, **BERNOULLI),
        "another order": (out_of_order, "static", "same order"),
        "no environment": (lambda: agents.make("lsa", None), "bandit_envs"),
        "another environment": (lambda: agents.make("lsa", gym.make("CartPole-v1")), "bandit_envs"),
        "coordinates": (lambda: agents.make("look-ahead", COORDINATES), "coordinates"),
    }
)


def certified(*words: Any, k: int = 1, **how: Any) -> tuple[Any, ...]:
    return (lambda: TopK(k=k).certificate([1, 1], [0.0, 1.0], [0.0, 0.0], **how), *words)


test_certificates = table(
    {
        "two arms, k = 2": certified("K > 2", "(2,)", k=2),
        "no width": certified("width", 0, width=0),
        "a range below 0": certified("bernstein_range", -1, bernstein_range=-1),
        "other bounds": certified("bounds", "tightest", "hoeffding", "bernstein", bounds="bernstein"),
        "another cutoff": certified("cutoff", "standard-error", "best", "middle", cutoff="middle"),
    }
)
