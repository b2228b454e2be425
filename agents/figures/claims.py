"""What papers claim of their figures, and how it is tested: an interval and a verdict for each claim and point.

A verdict is "yes" where the interval lies within what the paper claims, "no" where it lies outside, else "open".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation.statistics import bootstrap_mean
from .panels import Allocation, AnyPanel, Panel, Sweep

__all__ = ["AnyClaim", "Claim", "Growth", "Level", "Peaks", "Printed"]


@dataclass(frozen=True)
class Claim:
    """In a panel, `better` has a smaller (or larger) mean of the panel's metric than `worse`, at every point.

    `since`, `until`: at the points from there, up to there only.
    """

    panel: str
    better: str
    worse: str
    larger: bool = False
    since: float = -math.inf
    until: float = math.inf

    @property
    def text(self) -> str:
        where = [f"from {self.since:g}"] * (self.since > -math.inf) + [f"up to {self.until:g}"] * (
            self.until < math.inf
        )
        return " ".join([self.better, "above" if self.larger else "below", self.worse, *where])

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """A row per point: the paired difference better - worse."""
        rows = []
        for x, evaluation, place in panel.points(result):
            if not self.since <= x <= self.until:
                continue
            d = evaluation.compare(self.better, self.worse, panel.metric, level=level, **place)
            less, more = ("no", "yes") if self.larger else ("yes", "no")
            verdict = less if d.high < 0 else more if d.low > 0 else "open"
            rows.append(
                {
                    "x": x,
                    "estimate": d.difference,
                    "low": d.low,
                    "high": d.high,
                    "p_value": d.p_value,
                    "verdict": verdict,
                }
            )
        return rows


@dataclass(frozen=True)
class Growth:
    """In a panel, an agent's mean of the panel's metric grows as x ** exponent, with an exponent in a range.

    The exponent is the slope of log mean against log x by least squares; its interval is from resampled episodes.
    """

    panel: str
    agent: str
    low: float
    high: float
    seed: int = 0

    @property
    def text(self) -> str:
        return f"{self.agent} grows with an exponent of {self.low:g} to {self.high:g}"

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the exponent over all points."""
        rng, x, fitted, resampled = np.random.default_rng(self.seed), [], [], []
        for point, evaluation, place in panel.points(result):
            values = evaluation.column(self.agent, panel.metric, **place).astype(np.float64)
            x.append(point)
            fitted.append(values.mean())
            resampled.append(rng.choice(values, (1000, len(values))).mean(axis=1))
        design = np.log(x) - np.log(x).mean()
        slopes = design @ np.log(np.column_stack([fitted, np.array(resampled)])) / (design @ design)
        low, high = np.quantile(slopes[1:], [(1 - level) / 2, (1 + level) / 2])
        inside, outside = self.low <= low and high <= self.high, high < self.low or low > self.high
        return [
            {
                "x": np.nan,
                "estimate": slopes[0],
                "low": low,
                "high": high,
                "p_value": np.nan,
                "verdict": "yes" if inside else "no" if outside else "open",
            }
        ]


@dataclass(frozen=True)
class Level:
    """In a panel, an agent's mean of the panel's metric is at most (`above`: above) a value at a number of pulls."""

    panel: str
    agent: str
    value: float
    x: float
    above: bool = False

    @property
    def text(self) -> str:
        return f"{self.agent} {'above' if self.above else 'at most'} {self.value:g} at {self.x:g}"

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the mean."""
        evaluation, place = next((e, place) for x, e, place in panel.points(result) if x == self.x)
        values = evaluation.column(self.agent, panel.metric, **place)
        low, high = bootstrap_mean(values[:, None], level)
        below, over = ("no", "yes") if self.above else ("yes", "no")
        verdict = below if high[0] <= self.value else over if low[0] > self.value else "open"
        return [
            {
                "x": self.x,
                "estimate": values.mean(),
                "low": low[0],
                "high": high[0],
                "p_value": np.nan,
                "verdict": verdict,
            }
        ]


@dataclass(frozen=True)
class Peaks:
    """In a panel of pulls by rank, an agent pulls the arms of these ranks most, counted from 1."""

    panel: str
    agent: str
    ranks: tuple[int, ...]

    @property
    def text(self) -> str:
        return f"{self.agent} pulls ranks {' and '.join(map(str, self.ranks))} most"

    def test(self, panel: Allocation, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: how many of these ranks are among as many most pulled ones."""
        pulls = panel.by_rank(result, self.agent)
        most = np.argsort(-pulls, kind="stable")[: len(self.ranks)] + 1
        found = len(set(most.tolist()) & set(self.ranks))
        return [
            {
                "x": np.nan,
                "estimate": found,
                "low": np.nan,
                "high": np.nan,
                "p_value": np.nan,
                "verdict": "yes" if found == len(self.ranks) else "no",
            }
        ]


@dataclass(frozen=True)
class Printed:
    """In a panel without chance, a number that the paper prints: a column of the one-row summary."""

    panel: str
    column: str
    value: float

    @property
    def text(self) -> str:
        return f"{self.column} = {self.value:g}"

    def test(self, panel: AnyPanel, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the number."""
        found = float(result.summary()[self.column].iloc[0])
        return [
            {
                "x": np.nan,
                "estimate": found,
                "low": found,
                "high": found,
                "p_value": np.nan,
                "verdict": "yes" if found == self.value else "no",
            }
        ]


AnyClaim = Claim | Growth | Level | Peaks | Printed
