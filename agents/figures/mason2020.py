"""Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Figures 1, 3, 4, 5, Appendix A: captions, synthetic instances, drugs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bandit_envs import Captions, captions

from ..core.optional import pandas
from ..evaluation.plots import COLOURS
from .claims import Claim, Growth, Line, Printed
from .figure import Figure, alike
from .panels import AnyPanel, Panel, Sweep, Transform

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["FIGURES", "Ratings"]

SOURCE = "Mason, Jain, Tripathy & Nowak, NeurIPS 2020"
ENV = "bandit_envs/AllGood-v0"

# --- Figure 1 --------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Rated:
    """The ratings of a contest.

    Attributes:
        data: the ratings.
        epsilon: captions whose mean is less than this fraction below the best are good.
    """

    data: Captions
    epsilon: float

    @property
    def agents(self) -> list[str]:
        """Labels of the two lines."""
        return ["captions", f"{1 - self.epsilon:g} of the best"]

    @property
    def threshold(self) -> float:
        """Captions with at least this mean are good."""
        return (1 - self.epsilon) * float(self.data.means.max())

    @property
    def good(self) -> int:
        """Number of good captions."""
        return int((self.data.means >= self.threshold).sum())

    @property
    def settings(self) -> dict[str, Any]:
        """The contest and epsilon."""
        return {"contest": self.data.contest, "epsilon": self.epsilon}

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """One row: captions, ratings, best mean, threshold, good captions."""
        counts, best = self.data.counts, self.data.means.max()
        table: pd.DataFrame = pandas().DataFrame(
            [
                {
                    "captions": len(counts),
                    "ratings": counts.sum(),
                    "best": best,
                    "threshold": self.threshold,
                    "good": self.good,
                }
            ]
        )
        return table


@dataclass(frozen=True)
class Ratings(AnyPanel[Rated]):
    """Mean ratings of the captions of a contest, best first, and how many are within epsilon of the best.

    Attributes:
        contest: its number.
        epsilon: a fraction of the best mean.
        label: of the axis of ratings.
    """

    contest: int
    epsilon: float = 0.2
    label: str = "mean rating"

    @property
    def title(self) -> str:  # type: ignore[override]
        """The name of the contest."""
        return f"Contest {self.contest}"

    def run(self, episodes: int | None, seed: int, progress: bool | None, jobs: int = 1) -> Rated:
        """Read the ratings, which are the same for all episodes and seeds.

        Raises:
            OSError: where the file is neither in a local folder nor to be downloaded (see `captions`).
        """
        return Rated(captions(self.contest), self.epsilon)

    def draw(self, ax: Axes, result: Rated, level: float, transform: Transform, order: Sequence[str]) -> None:
        """Draw the means by rank, and a line at the threshold."""
        means, (captions_label, threshold_label) = np.sort(result.data.means)[::-1], result.agents
        ax.plot(np.arange(1, len(means) + 1), means, color=COLOURS[0], label=captions_label)
        ax.axhline(result.threshold, color=COLOURS[1], linestyle="dashed", label=threshold_label)
        ax.set(xlabel="rank", ylabel=self.label, xscale="log")
        ax.grid(True, color="#D9D9D9", linewidth=0.6)
        ax.axvline(result.good, color="#7F7F7F", linewidth=1, linestyle="dotted")
        ax.annotate(f"{result.good}", (result.good, means[-1]), xytext=(4, 2), textcoords="offset points")


FIGURE_1 = Figure(
    name="mason2020-figure-1",
    source=f"{SOURCE}, Figure 1",
    panels=[Ratings(contest) for contest in (627, 651, 690)],
    # "in contest 627, only k = 27 arms are within 20% of mu_1, but k = 748 are in contest 651"
    claims=[Printed("Contest 627", "good", 27), Printed("Contest 651", "good", 748)],
)

# --- Figure 3 --------------------------------------------------------------------------------------------------------

# The constants of the authors' simulations: widths 2 sigma sqrt(...), that is c = 4, for (ST)^2, the good filter and
# the finder, whose kappa is 1/2; running bounds. c = 2.08 belongs to the experiments on captions and drugs alone.
ST2, FAREAST, PRINTED = "(ST)^2", "FAREAST, LUCB as finder", "FAREAST, Median Elimination"
BOTH = {ST2: "st2(c=4, bounds='running')", FAREAST: "fareast(finder='lucb', kappa=0.5, c=4, tau=4)"}
LINEAR, FLAT = (0.8, 1.2), (-0.2, 0.2)  # exponents of n
CROSSING = 50  # arms from which on FAREAST is the cheaper one


def _against_n(title: str, instance: str, sizes: Sequence[int], agents: dict[str, str]) -> Sweep:
    sweep: dict[float, dict[str, str]] = {n: {"instance": f"{instance}(n={n})"} for n in sizes}
    return Sweep(title, ENV, sweep, agents, 250, "total_pulls", "pulls", "arms n", log=True)


LEFT = _against_n("3a: diverse means", "mason2020-3a", (25, 50, 100, 200, 400), BOTH)
RIGHT = _against_n("3b: one bad arm", "mason2020-3b", (20, 50, 100, 200), BOTH)
AS_PRINTED = _against_n("3b: as printed", "mason2020-3b", (10, 20, 50), {PRINTED: "fareast"})

FIGURE_3 = Figure(
    name="mason2020-figure-3",
    source=f"{SOURCE}, Figure 3",
    panels=[LEFT, RIGHT, AS_PRINTED],
    # left: both "scale" with n, (ST)^2 with the better constants; right: FAREAST's complexity "is constant, but (ST)^2
    # scales linearly with n"
    claims=[
        Growth(LEFT.title, ST2, *LINEAR),
        Growth(LEFT.title, FAREAST, *LINEAR),
        Claim(LEFT.title, ST2, FAREAST),
        Line(RIGHT.title, ST2),
        Growth(RIGHT.title, FAREAST, *FLAT),
        Claim(RIGHT.title, FAREAST, ST2, since=CROSSING),
        Growth(AS_PRINTED.title, PRINTED, *FLAT),
    ],
)

# --- Figures 4 and 5 -------------------------------------------------------------------------------------------------

# The constants of the experiments on captions and drugs: widths with c = 2.08, running bounds, sigma 1.
PUBLISHED = "st2(c=2.08, bounds='running')"
RIVALS = {"UCB": "ucb", "APT (oracle)": "apt-oracle"}
CAPTIONS = {
    "(ST)^2": PUBLISHED,
    "LUCB, k = 46 (oracle)": "lucb(k=46, widths='lil')",
    "LUCB, k = 23": "lucb(k=23, widths='lil')",
    "LUCB, k = 92": "lucb(k=92, widths='lil')",
    **RIVALS,
}
DRUGS = {"(ST)^2": PUBLISHED, "LUCB, k = 34 (oracle)": "lucb(k=34, widths='lil')", **RIVALS}

BUDGETS = [250_000 * (j + 1) for j in range(12)]
SHORT = [500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000]

PANELS = [
    *(
        Panel(f"Captions 651, {metric}", ENV, {"instance": "captions-651"}, BUDGETS, CAPTIONS, 600, key, metric)
        for metric, key in (("F1", "f1"), ("precision", "precision"), ("recall", "recall"))
    ),
    Panel("ACVRL1 inhibitors, F1", ENV, {"instance": "kinase-acvrl1"}, SHORT, DRUGS, 600, "f1", "F1"),
]

FIGURES_4_5 = Figure(
    name="mason2020-figures-4-5",
    source=f"{SOURCE}, Figures 4 and 5",
    panels=PANELS,
    # "(ST)^2 outperforms all baselines including the oracle APT, and almost matches the performance of the top-k
    # oracle"; k = 23 and 92 "result in a poor performance"; "near-perfect precision quickly, matched only by UCB"
    claims=[
        *(
            Claim("Captions 651, F1", "(ST)^2", other, larger=True)
            for other in ("UCB", "APT (oracle)", "LUCB, k = 23", "LUCB, k = 92")
        ),
        Claim("Captions 651, precision", "(ST)^2", "APT (oracle)", larger=True),
        *(Claim("ACVRL1 inhibitors, F1", "(ST)^2", other, larger=True) for other in RIVALS),
    ],
)

# --- appendix --------------------------------------------------------------------------------------------------------

# Of Appendix A we have only what the main text says: uniform sampling and gamma > 0 on the instances of Figure 3, and
# captions with other epsilon. n = 25 and epsilon = .75 are also those of the authors' simulation with gamma.
UNIFORM = "Uniform"
WITH_UNIFORM = {**BOTH, UNIFORM: "uniform-elimination(c=4)"}
LEFT_UNIFORM = _against_n("A: uniform sampling, diverse means", "mason2020-3a", (25, 50, 100, 200, 400), WITH_UNIFORM)
RIGHT_UNIFORM = _against_n("A: uniform sampling, one bad arm", "mason2020-3b", (20, 50, 100), WITH_UNIFORM)
SLACKS: dict[float, dict[str, Any]] = {
    slack: {"instance": "mason2020-3a(n=25)", "slack": slack} for slack in (0.025, 0.05, 0.1, 0.2, 0.4)
}
SLACK = Sweep("A: slack", ENV, SLACKS, WITH_UNIFORM, 250, "total_pulls", "pulls", "slack gamma", log=True)
ORACLE = "LUCB, the true k (oracle)"
OTHER_EPSILON = [
    Panel(
        f"Captions 651, epsilon {epsilon:g}",
        ENV,
        {"instance": "captions-651", "epsilon": epsilon},
        BUDGETS,
        {ST2: PUBLISHED, ORACLE: "lucb(widths='lil')", **RIVALS},
        600,
        "f1",
        "F1",
    )
    for epsilon in (0.05, 0.15, 0.2)
]

FIGURE_A = Figure(
    name="mason2020-appendix-a",
    source=f"{SOURCE}, Appendix A",
    panels=[LEFT_UNIFORM, RIGHT_UNIFORM, SLACK, *OTHER_EPSILON],
    # "a naive uniform sampling strategy performed very poorly"; Theorem 3.1: no arm needs more than 1/gamma^2, so that
    # the pulls fall with gamma; "(ST)^2 outperforms all baselines" on captions, here with the other epsilon
    claims=[
        *(
            Claim(panel.title, agent, UNIFORM)
            for panel in (LEFT_UNIFORM, RIGHT_UNIFORM, SLACK)
            for agent in (ST2, FAREAST)
        ),
        *(Growth(SLACK.title, agent, -2.0, 0.0) for agent in (ST2, FAREAST, UNIFORM)),
        *(Claim(panel.title, ST2, other, larger=True) for panel in OTHER_EPSILON for other in RIVALS),
    ],
)

FIGURES = alike([FIGURE_1, FIGURE_3, FIGURES_4_5, FIGURE_A])
