"""Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Figures 1, 3, 4, 5, Appendix A: captions, synthetic instances, drugs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bandit_envs import INSTANCES, captions

from ..evaluation.plots import COLOURS
from .declared import declared
from .panels import Exact, Numbers, bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIXED = 1.5  # "a fixed threshold" of the introduction


def ratings(contest: int, epsilon: float = 0.2) -> Exact:
    """The mean ratings of a contest's captions, best first, and how many are less than this fraction below the best."""
    return Exact(f"Contest {contest}", lambda seed: _rated(contest, epsilon))


def _rated(contest: int, epsilon: float) -> Numbers:
    """Captions, ratings, best mean, threshold, good captions, and how far below the best 1.5 lies."""
    data = captions(contest)
    means, best = np.sort(data.means)[::-1], data.means.max()
    threshold = (1 - epsilon) * float(best)
    good = int((means >= threshold).sum())
    found = {"captions": len(means), "ratings": data.counts.sum(), "best": best, "threshold": threshold}
    found |= {"good": good, "below_best": 1 - FIXED / best}
    labels = ["captions", f"{1 - epsilon:g} of the best"]

    def draw(ax: Axes, order: Sequence[str]) -> None:
        """The means by rank, and a line at the threshold."""
        ax.plot(np.arange(1, len(means) + 1), means, color=COLOURS[0], label=labels[0])
        ax.axhline(threshold, color=COLOURS[1], linestyle="dashed", label=labels[1])
        ax.set(xlabel="rank", ylabel="mean rating", xscale="log")
        ax.grid(True, color="#D9D9D9", linewidth=0.6)
        ax.axvline(good, color="#7F7F7F", linewidth=1, linestyle="dotted")
        ax.annotate(f"{good}", (good, means[-1]), xytext=(4, 2), textcoords="offset points")

    shown = [(name, np.nan, float(value)) for name, value in found.items()]
    return Numbers(shown, draw, {"contest": data.contest, "epsilon": epsilon}, labels)


def _drugs(seed: int) -> Numbers:
    """How many inhibitors there are, and how many are good."""
    arms = INSTANCES["kinase-acvrl1"].build().arms
    good = int((arms.means >= 0.2 * arms.means.max()).sum())
    return bars({"inhibitors": arms.K, "good": good}, {"instance": "kinase-acvrl1"})


FIGURES = declared(
    "mason2020",
    {
        **{f"Contest {contest}": ratings(contest) for contest in (627, 651, 690)},
        "Contest 651, epsilon .1": replace(ratings(651, 0.1), title="Contest 651, epsilon .1"),
        "ACVRL1": Exact("ACVRL1", _drugs),
    },
)
