"""What papers claim of their figures, and how it is tested: an interval and a verdict for each claim and point.

A verdict is "yes" where the interval lies within what the paper claims, "no" where it lies outside, else "open", also
where values without spread have no interval (`evaluation/statistics.py` says when). What is decided by an interval has
a method `judge`, so that it can be judged by a wider one as well; see `verdicts.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation.statistics import ALIKE, bootstrap_mean, clopper_pearson, paired_difference
from .panels import Allocation, AnyPanel, Lead, Panel, Result, Sweep

__all__ = [
    "Alike",
    "AnyClaim",
    "Claim",
    "Extremes",
    "Growth",
    "Level",
    "Line",
    "Near",
    "Peaks",
    "Printed",
    "Pulled",
    "Quote",
    "Share",
    "Within",
]


def _row(
    verdict: str,
    estimate: float,
    low: float = math.nan,
    high: float = math.nan,
    *,
    x: float = math.nan,
    p_value: float = math.nan,
) -> dict[str, Any]:
    """What is found at one point; NaN where a column does not apply."""
    return {"x": x, "estimate": estimate, "low": low, "high": high, "p_value": p_value, "verdict": verdict}


def _resampled(
    panel: Panel | Sweep, result: Any, agent: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """The points (P,), and an agent's means there, (P, 1001): first of all episodes, then of resampled ones.

    Also whether there is an interval: not where the values at a point are all equal in fewer than `ALIKE` episodes.
    """
    rng, x, means, spread = np.random.default_rng(seed), [], [], True
    for point, evaluation, place in panel.points(result):
        values = evaluation.column(agent, panel.metric, **place).astype(np.float64)
        x.append(float(point))
        means.append(np.append(values.mean(), rng.choice(values, (1000, len(values))).mean(axis=1)))
        spread &= len(values) >= ALIKE or bool(np.ptp(values) > 0)
    return np.array(x), np.array(means), spread


def _limits(resampled: NDArray[np.float64], level: float, spread: bool, **how: Any) -> tuple[float, float]:
    """The interval of what follows from resampled means, (1000,); NaN where there is none."""
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], **how)
    return (float(low), float(high)) if spread else (math.nan, math.nan)


def _between(low: float, high: float, least: float, most: float) -> str:
    """The verdict on a number that is said to lie in [least, most], by its interval [low, high]."""
    if least <= low and high <= most:
        return "yes"
    return "no" if high < least or low > most else "open"


def _at(panel: Panel | Sweep, result: Any, x: float) -> tuple[Any, dict[str, Any]]:
    """The evaluation of a panel that holds a point, and which of its rows."""
    return next((evaluation, place) for point, evaluation, place in panel.points(result) if point == x)


def _part(since: float, until: float) -> str:
    """Which points are meant, in words that follow others."""
    if since == until:
        return f" at {since:g}"
    first = f" from {since:g}" if since > -math.inf else ""
    return first + (f" up to {until:g}" if until < math.inf else "")


@dataclass(frozen=True)
class Claim:
    """An agent has a smaller mean of the panel's metric than another agent, at every point.

    Attributes:
        panel: title of the panel.
        better: the agent whose mean is smaller.
        worse: the agent whose mean is larger.
        larger: the claim is the other way round: the mean of `better` is the larger one.
        since: the claim is about the points from there on.
        until: the claim is about the points up to there.
    """

    panel: str
    better: str
    worse: str
    larger: bool = False
    since: float = -math.inf
    until: float = math.inf

    @property
    def text(self) -> str:
        """The claim in words."""
        order = "above" if self.larger else "below"
        return f"{self.better} {order} {self.worse}{_part(self.since, self.until)}"

    def judge(self, low: float, high: float) -> str:
        """The verdict on a difference better - worse in [low, high]."""
        less, more = ("no", "yes") if self.larger else ("yes", "no")
        return less if high < 0 else more if low > 0 else "open"

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """A row per point: the paired difference better - worse."""
        rows = []
        for x, evaluation, place in panel.points(result):
            if not self.since <= x <= self.until:
                continue
            d = evaluation.compare(self.better, self.worse, panel.metric, level=level, **place)
            rows.append(_row(self.judge(d.low, d.high), d.difference, d.low, d.high, x=x, p_value=d.p_value))
        return rows


@dataclass(frozen=True)
class Within:
    """Two agents' means of the panel's metric differ by at most a tolerance, at every point.

    Attributes:
        panel: title of the panel.
        one: an agent.
        other: the other one.
        tolerance: the largest difference, in units of the metric.
        since: the claim is about the points from there on.
        until: the claim is about the points up to there.
    """

    panel: str
    one: str
    other: str
    tolerance: float
    since: float = -math.inf
    until: float = math.inf

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.one} within {self.tolerance:g} of {self.other}{_part(self.since, self.until)}"

    def judge(self, low: float, high: float) -> str:
        """The verdict on a difference in [low, high]."""
        return _between(low, high, -self.tolerance, self.tolerance)

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """A row per point: the paired difference one - other."""
        rows = []
        for x, evaluation, place in panel.points(result):
            if not self.since <= x <= self.until:
                continue
            d = evaluation.compare(self.one, self.other, panel.metric, level=level, **place)
            rows.append(_row(self.judge(d.low, d.high), d.difference, d.low, d.high, x=x, p_value=d.p_value))
        return rows


@dataclass(frozen=True)
class Alike:
    """Two agents' means of the panel's metric are not distinguishable at one point.

    That is what a paired test at the paper's level says, and so the verdict is "yes" or "no"; "yes" says that these
    episodes do not tell them apart, not that they are the same.

    Attributes:
        panel: title of the panel.
        one: an agent.
        other: the other one.
        x: the point.
        p_value: the largest at which the paper calls agents distinguishable.
    """

    panel: str
    one: str
    other: str
    x: float
    p_value: float = 0.05

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.one} not distinguishable from {self.other} at {self.x:g}"

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the paired difference one - other."""
        evaluation, place = _at(panel, result, self.x)
        d = evaluation.compare(self.one, self.other, panel.metric, level=level, **place)
        verdict = "no" if d.p_value < self.p_value else "yes"
        return [_row(verdict, d.difference, d.low, d.high, x=self.x, p_value=d.p_value)]


@dataclass(frozen=True)
class Growth:
    """An agent's mean of the panel's metric grows as x ** exponent, with an exponent in [low, high].

    The exponent is the slope of log mean against log x by least squares; its interval is from resampled episodes.

    Attributes:
        panel: title of the panel.
        agent: whose mean it is.
        low: the smallest exponent that the claim allows.
        high: the largest one.
        seed: of the resampling.
    """

    panel: str
    agent: str
    low: float
    high: float
    seed: int = 0

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.agent} grows with an exponent of {self.low:g} to {self.high:g}"

    def judge(self, low: float, high: float) -> str:
        """The verdict on an exponent in [low, high]."""
        return _between(low, high, self.low, self.high)

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the exponent over all points."""
        x, means, spread = _resampled(panel, result, self.agent, self.seed)
        design = np.log(x) - np.log(x).mean()
        slopes = design @ np.log(means) / (design @ design)
        low, high = _limits(slopes[1:], level, spread)
        return [_row(self.judge(low, high), slopes[0], low, high)]


@dataclass(frozen=True)
class Line:
    """An agent's mean of the panel's metric grows along a straight line, with any offset.

    The means are fitted by a parabola in x, by least squares. A straight line has the same slope at both ends; the
    estimate is the slope at the last point over that at the first, and its interval is from resampled episodes. The
    claim allows ratios between 1 / `bend` and `bend`; where a slope is not positive, the mean does not grow.

    Attributes:
        panel: title of the panel.
        agent: whose mean it is.
        bend: the largest ratio of the slopes that still counts as a line, > 1.
        seed: of the resampling.
    """

    panel: str
    agent: str
    bend: float = 2.0
    seed: int = 0

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.agent} grows along a line, with slopes that differ by a factor of at most {self.bend:g}"

    def judge(self, low: float, high: float) -> str:
        """The verdict on a ratio of the slopes in [low, high]."""
        return _between(low, high, 1 / self.bend, self.bend)

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the slope at the last point over that at the first."""
        x, means, spread = _resampled(panel, result, self.agent, self.seed)
        if len(x) < 3:
            raise ValueError(f"a curvature needs at least 3 points, got {len(x)}")
        _, slope, curve = np.linalg.lstsq(np.vander(x, 3, increasing=True), means, rcond=None)[0]
        first, last = slope + 2 * curve * x.min(), slope + 2 * curve * x.max()
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((first > 0) & (last > 0), last / first, math.inf)
        low, high = _limits(ratio[1:], level, spread, method="nearest")
        return [_row(self.judge(low, high), ratio[0], low, high)]


@dataclass(frozen=True)
class Level:
    """An agent's mean of the panel's metric is at most a value at one point.

    Attributes:
        panel: title of the panel.
        agent: whose mean it is.
        value: the limit.
        x: the point.
        above: the claim is the other way round: the mean is above the value.
    """

    panel: str
    agent: str
    value: float
    x: float
    above: bool = False

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.agent} {'above' if self.above else 'at most'} {self.value:g} at {self.x:g}"

    def judge(self, low: float, high: float) -> str:
        """The verdict on a mean in [low, high]."""
        below, over = ("no", "yes") if self.above else ("yes", "no")
        return below if high <= self.value else over if low > self.value else "open"

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the mean."""
        return [_mean_row(self, panel, result, level)]


@dataclass(frozen=True)
class Near:
    """An agent's mean of the panel's metric is about a value at one point.

    Attributes:
        panel: title of the panel.
        agent: whose mean it is.
        value: the value.
        tolerance: the largest difference from the value, in units of the metric.
        x: the point.
    """

    panel: str
    agent: str
    value: float
    tolerance: float
    x: float

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.agent} within {self.tolerance:g} of the value {self.value:g} at {self.x:g}"

    def judge(self, low: float, high: float) -> str:
        """The verdict on a mean in [low, high]."""
        return _between(low, high, self.value - self.tolerance, self.value + self.tolerance)

    def test(self, panel: Panel | Sweep, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the mean."""
        return [_mean_row(self, panel, result, level)]


def _mean_row(claim: Level | Near, panel: Panel | Sweep, result: Any, level: float) -> dict[str, Any]:
    """A mean at one point, with its interval and the claim's verdict."""
    evaluation, place = _at(panel, result, claim.x)
    values = evaluation.column(claim.agent, panel.metric, **place)
    if values.dtype == np.bool_:
        low, high = clopper_pearson(int(values.sum()), len(values), level)
    else:
        low, high = bootstrap_mean(values, level)
    return _row(claim.judge(low, high), float(values.mean()), float(low), float(high), x=claim.x)


@dataclass(frozen=True)
class Peaks:
    """In a panel of pulls by rank, an agent pulls certain arms most.

    Attributes:
        panel: title of the panel.
        agent: whose pulls they are.
        ranks: of those arms, counted from 1.
    """

    panel: str
    agent: str
    ranks: tuple[int, ...]

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.agent} pulls ranks {' and '.join(map(str, self.ranks))} most"

    def test(self, panel: Allocation, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: how many of these ranks are among as many most pulled ones."""
        pulls = panel.by_rank(result, self.agent)
        most = np.argsort(-pulls, kind="stable")[: len(self.ranks)] + 1
        found = len(set(most.tolist()) & set(self.ranks))
        return [_row("yes" if found == len(self.ranks) else "no", found)]


@dataclass(frozen=True)
class Share:
    """In a panel of pulls by rank, an agent spends a larger share of its pulls on certain arms than another agent.

    Attributes:
        panel: title of the panel.
        more: the agent whose share is larger.
        less: the agent whose share is smaller.
        ranks: first and last of those arms, counted from 1.
    """

    panel: str
    more: str
    less: str
    ranks: tuple[int, int]

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.more} spends a larger share on ranks {self.ranks[0]} to {self.ranks[1]} than {self.less}"

    def test(self, panel: Allocation, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the difference of the shares, of the pulls of all episodes."""
        shares = []
        for agent in (self.more, self.less):
            pulls = panel.by_rank(result, agent)
            shares.append(pulls[self.ranks[0] - 1 : self.ranks[1]].sum() / pulls.sum())
        return [_row("yes" if shares[0] > shares[1] else "no", float(shares[0] - shares[1]))]


@dataclass(frozen=True)
class Pulled:
    """An agent's mean pulls of an arm at the last point are about a number that the paper prints.

    Attributes:
        panel: title of the panel.
        agent: whose pulls they are.
        arm: number of the arm, from 0 on.
        value: the number printed.
        tolerance: the largest difference, as a part of the value.
    """

    panel: str
    agent: str
    arm: int
    value: float
    tolerance: float = 0.05

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.agent} pulls arm {self.arm} {self.value:g} times, within {100 * self.tolerance:g} %"

    def test(self, panel: Panel, result: Any, level: float) -> list[dict[str, Any]]:
        """One row: the mean pulls of all episodes."""
        table, (x, _, place) = result.pulls, panel.points(result)[-1]
        ((column, value),) = place.items()
        rows = (table["agent"] == self.agent) & (table["arm"] == self.arm) & (table[column] == value)
        pulls = float(table[rows]["pulls"].iloc[0])
        near = abs(pulls - self.value) <= self.tolerance * self.value
        return [_row("yes" if near else "no", pulls, x=x)]


@dataclass(frozen=True)
class Printed:
    """In a panel without chance, a number that the paper prints: a column of the one-row summary.

    Attributes:
        panel: title of the panel.
        column: of the summary.
        value: the number printed.
        or_more: the claim is that it is at least this number.
        tolerance: the largest difference that is due to rounding in the paper.
    """

    panel: str
    column: str
    value: float
    or_more: bool = False
    tolerance: float = 0.0

    @property
    def text(self) -> str:
        """The claim in words."""
        rounded = f", within {self.tolerance:g}" if self.tolerance else ""
        return f"{self.column} {'at least' if self.or_more else '='} {self.value:g}{rounded}"

    def test(self, panel: AnyPanel[Any], result: Result, level: float) -> list[dict[str, Any]]:
        """One row: the number."""
        found = float(result.summary()[self.column].iloc[0])
        right = found >= self.value if self.or_more else abs(found - self.value) <= self.tolerance
        return [_row("yes" if right else "no", found, found, found)]


@dataclass(frozen=True)
class Extremes:
    """In a panel of leads, an agent's lead over another one is larger at every other value than at a middle one.

    Attributes:
        panel: title of the panel.
        better: the agent that leads.
        worse: the agent that is led.
        middle: the value at which the lead is said to be smallest.
    """

    panel: str
    better: str
    worse: str
    middle: float

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"{self.better} leads {self.worse} by more than at {self.middle:g}"

    def judge(self, low: float, high: float) -> str:
        """The verdict on a difference of leads in [low, high]."""
        return "yes" if low > 0 else "no" if high < 0 else "open"

    def test(self, panel: Lead, result: Any, level: float) -> list[dict[str, Any]]:
        """A row per other value: its lead less that at the middle value, paired by episodes."""
        leads, rows = panel.leads(result, self.better, self.worse), []
        for x in (x for x in leads if x != self.middle):
            d = paired_difference(leads[x], leads[self.middle], level=level)
            rows.append(_row(self.judge(d.low, d.high), d.difference, d.low, d.high, x=x, p_value=d.p_value))
        return rows


AnyClaim = Alike | Claim | Extremes | Growth | Level | Line | Near | Peaks | Printed | Pulled | Share | Within


@dataclass(frozen=True)
class Quote:
    """What a paper says of a figure, and the claims that test it.

    Attributes:
        name: short and unique in the figure; the page of the figure tells of it at the anchor "figure-name".
        words: the paper's own; empty for a claim that stands for itself.
        claims: all of what is tested of it.
        reading: what is read otherwise than the paper says it, if something is.
    """

    name: str
    words: str
    claims: Sequence[AnyClaim]
    reading: str = ""
