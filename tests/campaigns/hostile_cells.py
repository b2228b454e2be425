"""The catalogue of `hostile`: agents that promise delta, each on some of the instances of its problems.

Cells pair instances, agents and deltas by rotation, so that each agent meets many shapes of instances, each instance
many agents, and all of it at every delta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hostile_feasible import FEASIBLE
from hostile_instances import CONTROL, FINE, HAIR, SCALAR, Instance, Rules
from hostile_instances import INSTANCES as SCALAR_INSTANCES

from bandit_envs import Categorical

__all__ = ["CELLS", "DELTAS", "INSTANCES", "OUTSIDE", "Cell", "bare", "neighbours"]

DELTAS = (0.5, 0.3, 0.1, 0.05, 0.01)
INSTANCES = SCALAR_INSTANCES | {"Feasible": FEASIBLE, "BetterThanControl": CONTROL}
RARE = (1e-3, 1e-6, 1e-9)  # an error in 10,000 episodes is too many at the last two
OUTSIDE = "outside"  # the promise: the rate is recorded, without a verdict


@dataclass(frozen=True)
class Cell:
    """An agent on an instance, at a delta.

    Attributes:
        promise: "proven"; "nominal", where the agent's page says that its delta is not proven, but should hold;
            `OUTSIDE`, where nothing is promised.
    """

    agent: str
    instance: Instance
    delta: float
    promise: str = "proven"

    @property
    def key(self) -> str:
        one = self.instance
        return f"{self.agent} | {one.problem} {one.name}, {one.distribution} | {self.delta:g}"

    @property
    def most(self) -> int:
        """Pulls of an episode."""
        share = SHARES.get(self.agent, SHARES.get(bare(self.agent), 1.0))
        return max(round(share * self.instance.most), 4 * self.instance.K)


def bare(agent: str) -> str:
    """An agent's name without parameters."""
    return agent.partition("(")[0]


# --- samples that are nearly Gaussian ---------------------------------------------------------------------------------


class Rounded(Categorical):
    """Samples of N(mean, sd^2) rounded to multiples of a step, which an environment calls Gaussian."""

    distribution = "gaussian"

    def __init__(self, mean: list[float], sd: float, step: float) -> None:
        from scipy.stats import norm

        reach = int(np.ceil(6 * sd / step)) + 1
        start = int(np.floor(min(mean) / step))
        values = step * np.arange(start - reach, start + reach + 2)
        ends = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])
        super().__init__(values, np.diff(norm.cdf((ends - np.array(mean)[:, None]) / sd), axis=1))
        self.support, self.sigma = None, sd


def _student_outside() -> Iterator[Cell]:
    """The distribution "student" on samples that take few values: how often it errs, without a verdict.

    The boundary is set to the mean that the rounded arm has; where a step is wide, nearly all samples are equal.
    """
    agents = "evidence(distribution='student')", "uniform(stop='certificate', distribution='student')"
    for sd, step, mean in ((1.0, 0.5, 0.1), (1.0, 2.0, 0.5), (0.2, 1.0, 0.1), (0.2, 1.0, 0.4), (0.15, 1.0, 0.0)):
        arms = Rounded([mean, mean + 4 * step], sd, step)
        for side, delta in ((-1, 0.3), (-1, 1e-3), (1, 0.3), (1, 1e-3)):
            name = (
                f"1 arm {'above' if side > 0 else 'below'} by 1e-7, 1 far, N({mean:g}, {sd:g}^2) in steps of {step:g}"
            )
            rules: Rules = {"threshold": float(arms.means[0]) - side * HAIR}
            for agent in agents:
                yield Cell(agent, Instance("Threshold", name, rules, arms, "rounded", 1000), delta, OUTSIDE)
    arms = Rounded([0.4, 0.4 + FINE, -4.0], 0.2, 1.0)
    place = Instance(
        "BestArm", "1 of 3 arms better by 1e-9, 1 far below, N(.4, .2^2) in steps of 1", {}, arms, "rounded", 1000
    )
    for agent in agents:
        yield Cell(agent, place, 0.3, OUTSIDE)


# --- agents -----------------------------------------------------------------------------------------------------------

# Pulls of an episode, as a multiple of the instance's: few of agents that take long for each, many of those that make
# many at once.
SHARES = {
    **{"track-and-stop": 0.3, "top-two": 0.4, "hostile": 0.4, "adapt": 0.5, "adapt(cutoff='best')": 0.1},
    **{
        "evidence(boundary='kaufmann-koolen')": 0.3,
        "evolved": 0.3,
        "top-two(rule='ttts')": 0.2,
        "pi1": 0.5,
        "pi2": 0.5,
    },
    **{"pi3": 0.5, "ugape": 0.5, "direct": 10.0, "halving": 10.0, "incremental": 10.0, "adaptive-top-k": 10.0},
    **{"batched-elimination": 3.0, "tri-bbai": 3.0, "opt-bbai": 30.0, "gsp": 10.0},
    **{"improved-top-k": 10.0, "fareast": 5.0, "median-elimination": 10.0},
}
CERTIFIED = [
    *["evidence", "uniform(stop='certificate')", "evidence(boundary='kaufmann-koolen')", "hostile(stop='certificate')"],
    *["track-and-stop", "evidence(rho=3.0)", "random(stop='certificate')", "evidence(distribution='gaussian')"],
    *["uniform(stop='certificate', boundary='kaufmann-koolen')", "evidence(distribution='student')"],
    *["track-and-stop(tracking='C')", "evolved", "uniform(stop='certificate', rho=300.0)"],
    *["uniform(stop='certificate', distribution='student')"],
]
TOP_TWO = ["top-two", "top-two(rule='ttts')", "top-two(rule='eb-tc', proportions='fixed', distribution='student')"]
LOCAL = ["lsa(stop='certificate')", "apt(stop='certificate')", "md-apt(stop='certificate', rho=30.0)"]
RACE = 2000  # rounds planned, more than an episode has: the promise is for these
OWN_TOP_K = [
    *["batched-elimination", "batched-elimination(growth=1.1, first=1)"],
    *["lucb", "kl-lucb", "clucb", f"racing(rounds={RACE})", "adapt", "ugape", "pi1", "pi2", "pi3"],
    *[f"racing(rounds={RACE}, widths='hoeffding')", f"racing(rounds={RACE}, widths='bernstein')", "kl-lucb(sigma=0.5)"],
    *["direct", "halving", "incremental", "adaptive-top-k", "improved-top-k", "adapt(cutoff='best')"],
]
BATCHED = ["tri-bbai", "tri-bbai(alpha=4)", "opt-bbai", "opt-bbai(precision=2, repeats=0)"]
AGENTS: dict[str, list[str]] = {
    "Threshold": [*CERTIFIED, *TOP_TWO, *LOCAL, "hdoc", "hdoc(sampling='lucb-g')", "hdoc(sampling='apt-g')"],
    "BestArm": [
        *CERTIFIED,
        *TOP_TWO,
        *OWN_TOP_K,
        "lil-ucb",
        "median-elimination",
        "lucb(stop='certificate')",
        *BATCHED,
        "gsp",
    ],
    "TopK": [*CERTIFIED, *TOP_TWO, *OWN_TOP_K, "kl-lucb(stop='certificate')", "ocba-m(stop='certificate')"],
    "AllGood": [
        *CERTIFIED,
        *TOP_TWO,
        *["st2", "st2(bounds='running')", "two-step", "fareast", "fareast(finder='lucb')", "east"],
        *["uniform-elimination", "ucb(stop='certificate')", "st2(stop='certificate')"],
    ],
    "Feasible": [
        *["evidence", "uniform(stop='certificate')", *LOCAL, "hostile(stop='certificate')", "track-and-stop"],
        *["random(stop='certificate')", "evidence(rho=30.0)"],
    ],
    "BetterThanControl": [
        *["uniform(stop='certificate')", "hostile(stop='certificate')", "random(stop='certificate')"],
        *["uniform(stop='certificate', distribution='student')", "evidence", "top-two", "track-and-stop"],
        *["evidence(boundary='kaufmann-koolen')", "apt(stop='certificate')"],
    ],
}
OFTEN = {"evidence": 2, "uniform(stop='certificate')": 3}  # on every second instance, and on every third one
FEW = {"Feasible": 8, "AllGood": 5}  # instances that each other agent meets of a problem, at most; 4 of others
NEED_TOLERANCE = (
    "gsp",
    "direct",
    "halving",
    "incremental",
    "adaptive-top-k",
    "improved-top-k",
    "median-elimination",
    "pi1",
)
WIDE = 0.6  # the least epsilon of these, as a share of how far means are that differ much


def _fits(agent: str, instance: Instance) -> bool:
    """Whether the agent runs on the instance, and can stop there."""
    gaussian = instance.distribution.startswith("Gaussian")
    if ("student" in agent or agent == "gsp") and not gaussian:
        return False
    if agent == "evidence(distribution='gaussian')":  # where that is not the default
        return not gaussian
    if agent == "kl-lucb(sigma=0.5)":
        return instance.distribution.startswith("Bernoulli")
    if bare(agent) in NEED_TOLERANCE:
        wide = instance.rules.get("epsilon", 0.0) >= WIDE * (SCALAR[instance.distribution].down or 1.0)
        return wide and instance.rules.get("criterion") != "exact"
    return True


def _promise(agent: str, instance: Instance) -> str:
    """What the agent promises on an instance."""
    if "certificate" in agent:
        return "proven"
    if bare(agent) in ("adapt", "pi2", "pi3", "lil-ucb"):  # their pages say what is not proven
        return "nominal"
    bernstein = agent.startswith("racing") and "hoeffding" not in agent
    return "nominal" if bernstein and instance.distribution.startswith("Gaussian") else "proven"  # W is 6 sd there


def neighbours(cell: Cell) -> Iterator[Cell]:
    """The same agent at the same delta on the other instances of the problem, every fifth one first: shapes differ.

    Cells of the catalogue are left out; there is none where nothing is promised.
    """
    met = [instance for instance in INSTANCES[cell.instance.problem] if _fits(cell.agent, instance)]
    at = next((i for i, instance in enumerate(met) if instance is cell.instance), len(met))
    if cell.promise != OUTSIDE:
        rest = met[at + 1 :] + met[:at]
        for instance in (instance for k in range(5) for instance in rest[k::5]):
            other = Cell(cell.agent, instance, cell.delta, _promise(cell.agent, instance))
            if other.key not in KEYS:
                yield other


def _paired(problem: str) -> Iterator[Cell]:
    for j, agent in enumerate(AGENTS[problem]):
        met = [instance for instance in INSTANCES[problem] if _fits(agent, instance)]
        stride = OFTEN.get(agent, -(-len(met) // FEW.get(problem, 4)))
        for i in range(j % stride, len(met), stride):
            yield Cell(agent, met[i], DELTAS[(i // stride + j) % len(DELTAS)], _promise(agent, met[i]))


def _rare() -> Iterator[Cell]:
    """Small deltas, where few errors in 10,000 episodes are too many."""
    for p, problem in enumerate(INSTANCES):
        agents = AGENTS[problem]
        for i, delta in enumerate(RARE * 2):
            agent = agents[i % 2] if i < 3 else agents[(5 * p + 3 * i) % len(agents)]
            met = [instance for instance in INSTANCES[problem] if _fits(agent, instance)]
            instance = met[(4 * i + p) % len(met)]
            yield Cell(agent, instance, delta, _promise(agent, instance))


def _cells() -> tuple[Cell, ...]:
    found = {cell.key: cell for problem in INSTANCES for cell in _paired(problem)}
    for more in (_rare(), _student_outside()):
        found |= {cell.key: cell for cell in more}
    return tuple(found.values())


CELLS = _cells()
KEYS = {cell.key for cell in CELLS}
