"""Kalyanakrishnan & Stone, ICML 2010: Figure 1, the bounds of pi_1 to pi_4 when they stop; Figures 2 and 3, rivals.

Figures 2 and 3 run on one draw of the paper's instance (its own is not printed); so do the two variants that the text
tells of. RACING is shown with both of its bounds, the tightest per arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from bandit_envs import Categorical, Deviation, Instance, Samples, deviations

from ..catalogue import make
from ..core.optional import pandas
from ..evaluation.plots import style
from .claims import Claim, Level, Peaks
from .figure import Figure, alike
from .panels import Allocation, AnyPanel, Panel, Transform

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["FIGURES"]

SOURCE, ENV = "Kalyanakrishnan & Stone, ICML 2010", "bandit_envs/TopK-v0"
PI1, PI2, PI3, ADAPT = "pi1 (UNIFORM)", "pi2", "pi3", "pi4 (ADAPT)"
POLICIES = {PI1: "pi1", PI2: "pi2", PI3: "pi3", ADAPT: "adapt"}

# --- Figure 1 --------------------------------------------------------------------------------------------------------


def _schematic() -> Instance:
    """Five arms on {0, 0.1, ..., 1} with small spreads, so that the empirical Bernstein bound has something to gain."""
    values = np.arange(11) / 10
    means, spreads = np.array([0.85, 0.6, 0.45, 0.3, 0.1]), np.array([0.1, 0.08, 0.08, 0.1, 0.1])
    weights = np.exp(-0.5 * ((values - means[:, None]) / spreads[:, None]) ** 2)
    return Instance(Categorical(values, weights), "five-arms")


@dataclass(eq=False)
class Stopped:
    """The statistics of an episode that has ended, and the bounds by which it did.

    Attributes:
        label: of the policy.
        pulls: (K,), here and below the arms are in decreasing order of their empirical means.
        mean: empirical means, (K,).
        inside: whether an arm is in High, (K,).
        width: of the bound on the side that matters, (K,).
        delta: the error probability of that bound, (K,).
        cut: c of pi_3 and pi_4; NaN for the other policies.
    """

    label: str
    pulls: Any
    mean: Any
    inside: Any
    width: Any
    delta: Any
    cut: float

    @property
    def agents(self) -> list[str]:
        """The label of the policy."""
        return [self.label]

    @property
    def settings(self) -> dict[str, Any]:
        """The label of the policy."""
        return {"agent": self.label}

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """A row per arm: pulls, mean, whether it is in High, delta_i and the width of its bound."""
        table: pd.DataFrame = pandas().DataFrame(
            {
                "arm": np.arange(1, len(self.pulls) + 1),
                "pulls": self.pulls,
                "mean": self.mean,
                "high": self.inside,
                "delta": self.delta,
                "width": self.width,
            }
        )
        return table


@dataclass(frozen=True)
class Bounds(AnyPanel[Stopped]):
    """The bounds of one policy when it stops: an episode on five arms with m = 2.

    Attributes:
        title: of the panel.
        agent: name of the policy.
        label: of the axis of means.
        epsilon: of the environment.
        delta: of the environment.
    """

    title: str
    agent: str
    label: str = "mean (filled: in High, + epsilon)"
    epsilon: float = 0.1
    delta: float = 0.05

    @property
    def labels(self) -> list[str]:
        """The title, which is the policy's label."""
        return [self.title]

    def run(self, episodes: int | None, seed: int, progress: bool | None, jobs: int = 1) -> Stopped:
        """Run one episode, whatever `episodes` says."""
        env: Any = gym.make(
            ENV, instance=_schematic(), k=2, epsilon=self.epsilon, criterion="each", delta=self.delta, actions="full"
        ).unwrapped
        agent, (observation, _), state, over = make(self.agent, env), env.reset(seed=seed), None, False
        while not over:
            action, state = agent.predict(observation, state)
            observation, _, over, *_ = env.step(action)
        order = np.argsort(-observation["mean"], kind="stable")
        pulls, mean, variance = (observation[name][order][None] for name in ("pulls", "mean", "variance"))
        inside, d, W = np.arange(5)[None] < 2, np.empty(5), env.task.width
        if self.agent in ("pi1", "pi2"):
            d[:], cut = self.delta / 5, np.nan
            width = W * np.sqrt(np.log(5 / self.delta) / (2 * pulls[0]))
        else:
            bound = Deviation(self.epsilon, W, self.agent == "adapt", np.inf)
            deviations(Samples(pulls, mean, variance), np.uint64(0), inside, bound, d)
            error = np.sqrt(variance[0] / (pulls[0] - 1))
            cut = mean[0, 2] + (mean[0, 1] + self.epsilon - mean[0, 2]) * error[2] / (error[1] + error[2])
            width = np.where(inside[0], mean[0] + self.epsilon - cut, cut - mean[0])
        return Stopped(self.title, pulls[0], mean[0], inside[0], width, d, cut)

    def draw(self, ax: Axes, result: Stopped, level: float, transform: Transform, order: Sequence[str]) -> None:
        """Draw the interval of each arm on the side that matters, in the policy's colour; filled: in High."""
        place = np.arange(1, 6)
        shown = result.mean + np.where(result.inside, self.epsilon, 0.0)
        end, colour = shown + np.where(result.inside, -1, 1) * result.width, style(order.index(self.title))["color"]
        for i in range(5):
            ax.plot([place[i], place[i]], [shown[i], end[i]], color=colour, linewidth=1.8)
            ax.plot([place[i]], [shown[i]], "o", color=colour, mfc=colour if result.inside[i] else "white")
            ax.plot([place[i]], [end[i]], "_", color=colour, markersize=14)
            text = f"{result.delta[i]:.1g}, {result.width[i]:.2g}\nN = {result.pulls[i]:,}"
            above = not result.inside[i]
            ax.annotate(
                text,
                (place[i], end[i]),
                xytext=(0, 6 if above else -6),
                textcoords="offset points",
                ha="center",
                va="bottom" if above else "top",
                fontsize=7,
            )
        if np.isfinite(result.cut):
            ax.axhline(result.cut, color="#7F7F7F", linewidth=0.8, linestyle="dashed")
        ax.set_xlim(0.4, 5.6)
        ax.margins(y=0.18)
        ax.set_xticks(place, [f"({i})" for i in place])
        ax.set_xlabel(f"arm, by empirical mean; {result.pulls.sum():,} pulls")
        ax.set_ylabel(self.label)


FIGURE_1 = Figure(
    name="kalyanakrishnan2010-figure-1",
    source=f"{SOURCE}, Figure 1",
    panels=[Bounds(label, name) for label, name in POLICIES.items()],
    claims=[],
)

# --- Figures 2 and 3 -------------------------------------------------------------------------------------------------

INSTANCE = "kalyanakrishnan2010"
PULLS = [1_000 * (j + 1) for j in range(30)]
EPISODES = 1000


def _against_pulls(title: str, agents: dict[str, str], metric: str, label: str, instance: str = INSTANCE) -> Panel:
    return Panel(title, ENV, {"instance": instance}, PULLS, agents, EPISODES, metric, label)


def _by_rank(title: str, agents: dict[str, str]) -> Allocation:
    return Allocation(title, ENV, {"instance": INSTANCE}, PULLS, agents, EPISODES)


DELTA_C = _against_pulls("2a: delta^c", POLICIES, "delta_c", "delta^c")
NSS = _against_pulls("2b: NSS", POLICIES, "normalised_sum", "NSS")
BY_RANK = _by_rank("2c: pulls by rank", POLICIES)

FIGURE_2 = Figure(
    name="kalyanakrishnan2010-figure-2",
    source=f"{SOURCE}, Figure 2",
    panels=[DELTA_C, NSS, BY_RANK],
    claims=[
        # "only pi_4 is able to achieve the desired threshold of .15 within the 30,000 samples", "roughly 22,000 pulls"
        Level(DELTA_C.title, ADAPT, 0.15, 22_000),
        Level(DELTA_C.title, ADAPT, 0.15, 30_000),
        *(Level(DELTA_C.title, name, 0.15, 30_000, above=True) for name in (PI1, PI2, PI3)),
        # "the order among the policies is consistent with our expectation"
        *(Claim(DELTA_C.title, *pair) for pair in ((ADAPT, PI3), (PI3, PI2), (PI2, PI1))),
        # "a clear gulf between pi_3 and pi_4 on the one hand, and pi_1 and pi_2 on the other"
        *(Claim(NSS.title, better, worse, larger=True) for better in (PI3, ADAPT) for worse in (PI1, PI2)),
        # "peaks around 15 (m) and 16 (m+1) under policies pi_3 and pi_4"
        *(Peaks(BY_RANK.title, name, (15, 16)) for name in (PI3, ADAPT)),
    ],
)

OCBA = {f"OCBA-m, n0 = {n0}": f"ocba-m(n0={n0})" for n0 in (20, 100, 500)}
RACING = {f"RACING, R = {R}": f"racing(rounds={R})" for R in (1, 5, 20, 100, 500)}
RACING_1 = "RACING, R = 1"
BASE = {PI1: "pi1", ADAPT: "adapt"}
WITH_OCBA = _against_pulls("3a: OCBA-m", BASE | OCBA, "normalised_sum", "NSS")
WITH_RACING = _against_pulls("3b: RACING", BASE | RACING, "normalised_sum", "NSS")
ALL_BY_RANK = _by_rank("3c: pulls by rank", {ADAPT: "adapt"} | OCBA | {RACING_1: RACING[RACING_1]})
GAUSSIAN = _against_pulls("Gaussian arms, epsilon 0", BASE | OCBA, "normalised_sum", "NSS", f"{INSTANCE}-gaussian")
SMALL = _against_pulls(
    "10 arms, epsilon 0", BASE | {RACING_1: RACING[RACING_1]}, "normalised_sum", "NSS", f"{INSTANCE}-small"
)

FIGURE_3 = Figure(
    name="kalyanakrishnan2010-figure-3",
    source=f"{SOURCE}, Figure 3 and the variants of section 5",
    panels=[WITH_OCBA, WITH_RACING, ALL_BY_RANK, GAUSSIAN, SMALL],
    claims=[
        # "ADAPT predominantly achieves the best results"; n0 = 20: "premature plateauing"
        *(Claim(WITH_OCBA.title, ADAPT, name, larger=True) for name in OCBA),
        *(Claim(WITH_OCBA.title, name, "OCBA-m, n0 = 20", larger=True) for name in OCBA if name != "OCBA-m, n0 = 20"),
        # "the best NSS results are achieved when we set R = 1"
        *(Claim(WITH_RACING.title, RACING_1, name, larger=True) for name in RACING if name != RACING_1),
        Claim(WITH_RACING.title, ADAPT, RACING_1, larger=True),
        # "in these experiments ADAPT still outperforms OCBA-m, for all the n0 values, after 30,000 samples"
        *(Claim(GAUSSIAN.title, ADAPT, name, larger=True) for name in OCBA),
        # n = 10: "RACING (R = 1) achieves a higher NSS after 30,000 pulls compared to UNIFORM"
        Claim(SMALL.title, RACING_1, PI1, larger=True),
    ],
)

FIGURES = alike([FIGURE_1, FIGURE_2, FIGURE_3])
