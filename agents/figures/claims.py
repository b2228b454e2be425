"""The claims of papers about their figures, and tests of them: an interval and a verdict for each claim and point.

Four kinds, by what is measured: `Claim`, the paired difference of two agents; `Level`, an agent's mean at a point;
`Growth`, how an agent's mean grows over all points; `Number`, a number without an interval.

A verdict is "yes" where the interval lies within what the paper claims, "no" where it lies outside, else "open", also
where values without spread have no interval (`evaluation/statistics.py` says when). The intervals are widened for their
number, and judged again; see `verdicts.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation.statistics import ALIKE, bootstrap_mean, clopper_pearson, paired_difference
from .panels import Numbers

Row = dict[str, Any]
INF, NAN = math.inf, math.nan
Found = Callable[[Any, Any], float]  # a number, given a panel and its result


class AnyClaim(ABC):
    """What every claim has."""

    panel: str  # its title

    @property
    @abstractmethod
    def text(self) -> str:
        """The claim in words."""

    @property
    def allowed(self) -> tuple[float, float]:
        """The least and the most that the claim allows."""
        return -INF, INF

    @property
    def widened(self) -> bool:
        """Whether the verdict is by an interval, which is widened for the number of intervals."""
        return True

    @abstractmethod
    def measure(self, panel: object, result: object, level: float) -> list[Row]:
        """What is found in the panel's result, a row for each point: x, estimate, low, high, p_value.

        Low and high are an interval at this level. NaN where a column does not apply.
        """

    def verdict_on(self, row: Row) -> str:
        """The verdict on a row: "yes" where its interval is within what is allowed, "no" where outside, else "open"."""
        least, most = self.allowed
        if least <= row["low"] and row["high"] <= most:
            return "yes"
        return "no" if row["high"] < least or row["low"] > most else "open"

    def judge_among(self, row: Row, m: int) -> str:
        """The verdict on a row where m comparisons are made: its interval is the one that holds together with them."""
        return self.verdict_on(row)

    def test(self, panel: object, result: object, level: float) -> list[Row]:
        """The rows of `measure`, each with its `verdict`."""
        return [row | {"verdict": self.verdict_on(row)} for row in self.measure(panel, result, level)]


def _row(estimate: float, low: float = NAN, high: float = NAN, x: float = NAN, p_value: float = NAN) -> Row:
    return {"x": x, "estimate": estimate, "low": low, "high": high, "p_value": p_value}


@dataclass(frozen=True)
class Claim(AnyClaim):
    """Of two agents one has the smaller mean of the panel's metric, at every point; the same episodes are compared.

    One of `larger`, `within`, `p_value` and `than` makes it another claim on the same difference.

    Attributes:
        p_value: the claim is that a test at the paper's level, this one, does not distinguish the agents. The verdict
            is the test's, "yes" or "no"; "yes" says that these episodes do not distinguish them, not that they are the
            same.
    """

    panel: str
    better: str  # the agent whose mean is smaller
    worse: str
    larger: bool = False  # the claim is the other way round
    since: float = -INF  # the claim is about the points from there on
    until: float = INF
    within: float | None = None  # the claim is that the means differ by at most this, in units of the metric
    p_value: float | None = None
    than: float | None = None  # the claim is that the lead of `better` is larger at every other point than at this one

    @property
    def text(self) -> str:
        if self.than is not None:
            return f"{self.better} leads {self.worse} by more than at {self.than:g}"
        order = "above" if self.larger else "below"
        order = order if self.within is None else f"within {self.within:g} of"
        order = order if self.p_value is None else "not distinguishable from"
        first = f" from {self.since:g}" if self.since > -INF else ""
        part = first + (f" up to {self.until:g}" if self.until < INF else "")
        return f"{self.better} {order} {self.worse}{f' at {self.since:g}' if self.since == self.until else part}"

    @property
    def widened(self) -> bool:
        return self.p_value is None

    @property
    def allowed(self) -> tuple[float, float]:
        return (-INF, INF) if self.within is None else (-self.within, self.within)

    def measure(self, panel: Any, result: object, level: float) -> list[Row]:
        """A row per point: the paired difference better - worse; or the lead there less that at the point `than`."""
        one, other = (panel.values(result, agent) for agent in (self.better, self.worse))
        if self.than is None:
            pairs = {x: (one[x], other[x]) for x in one if self.since <= x <= self.until}
        else:
            leads = {x: np.subtract(other[x], one[x], dtype=np.float64) for x in one}
            pairs = {x: (leads[x], leads[self.than]) for x in leads if x != self.than}
        found = {x: paired_difference(*pair, level=level) for x, pair in pairs.items()}
        return [_row(d.difference, d.low, d.high, x, d.p_value) for x, d in found.items()]

    def verdict_on(self, row: Row) -> str:
        if self.p_value is not None:
            return "no" if row["p_value"] < self.p_value else "yes"
        if self.within is not None:
            return super().verdict_on(row)
        below, above = ("no", "yes") if self.larger or self.than is not None else ("yes", "no")
        return below if row["high"] < 0 else above if row["low"] > 0 else "open"

    def judge_among(self, row: Row, m: int) -> str:
        """As `verdict_on`; "open" where the paper's test tells the agents apart as one of m tests may do by chance."""
        verdict = self.verdict_on(row)
        chance = self.p_value is not None and row["p_value"] * m >= self.p_value
        return "open" if verdict == "no" and chance else verdict


@dataclass(frozen=True)
class Level(AnyClaim):
    """An agent's mean of the panel's metric is at most a value at one point."""

    panel: str
    agent: str
    value: float
    x: float  # the point
    above: bool = False  # the claim is the other way round: the mean is above the value
    within: float | None = None  # the claim is that the mean differs from the value by at most this

    @property
    def text(self) -> str:
        order = "above" if self.above else "at most"
        order = order if self.within is None else f"within {self.within:g} of the value"
        return f"{self.agent} {order} {self.value:g} at {self.x:g}"

    @property
    def allowed(self) -> tuple[float, float]:
        if self.within is not None:
            return self.value - self.within, self.value + self.within
        return (math.nextafter(self.value, INF), INF) if self.above else (-INF, self.value)

    def measure(self, panel: Any, result: object, level: float) -> list[Row]:
        values = panel.values(result, self.agent)[self.x]
        if values.dtype == np.bool_:
            low, high = clopper_pearson(int(values.sum()), len(values), level)
        else:
            low, high = bootstrap_mean(values, level)
        return [_row(float(values.mean()), float(low), float(high), self.x)]


@dataclass(frozen=True)
class Growth(AnyClaim):
    """An agent's mean of the panel's metric grows as x ** exponent, with an exponent in [low, high].

    The exponent is the slope of log mean against log x by least squares; its interval is from resampled episodes.

    Attributes:
        line: the claim is that the mean grows along a straight line, with any offset. The means are fitted by a
            parabola in x, by least squares. What lies in [low, high] is its slope at the last point over that at the
            first, which is 1 for a line; where a slope is not positive, the mean does not grow.
    """

    panel: str
    agent: str
    low: float  # the smallest and the largest exponent that the claim allows
    high: float
    line: bool = False

    @property
    def text(self) -> str:
        if self.line:
            return f"{self.agent} grows along a line, with slopes that differ by a factor of at most {self.high:g}"
        return f"{self.agent} grows with an exponent of {self.low:g} to {self.high:g}"

    @property
    def allowed(self) -> tuple[float, float]:
        return self.low, self.high

    def measure(self, panel: Any, result: object, level: float) -> list[Row]:
        """As the claim's; there is no interval where values at a point are all equal in fewer than `ALIKE` episodes."""
        rng, points = np.random.default_rng(0), panel.values(result, self.agent)
        episodes = [values.astype(np.float64) for values in points.values()]
        # (points, 1001): the means of all episodes, then of 1000 resamplings
        means = np.array([np.append(y.mean(), rng.choice(y, (1000, len(y))).mean(axis=1)) for y in episodes])
        x = np.array(list(points), np.float64)
        centred = np.log(x) - np.log(x).mean()
        found = _ratio_of_slopes(x, means) if self.line else centred @ np.log(means) / (centred @ centred)
        method: Any = "nearest" if self.line else "linear"  # a ratio may be infinite
        low, high = np.quantile(found[1:], [(1 - level) / 2, (1 + level) / 2], method=method)
        spread = all(len(y) >= ALIKE or np.ptp(y) > 0 for y in episodes)
        return [_row(found[0], float(low), float(high)) if spread else _row(found[0])]


def _ratio_of_slopes(x: Any, means: Any) -> Any:
    """The slope of a parabola at the last point over that at the first, (R,), of points (P,) and means (P, R)."""
    if len(x) < 3:
        raise ValueError(f"a curvature needs at least 3 points, got {len(x)}")
    _, slope, curve = np.linalg.lstsq(np.vander(x, 3, increasing=True), means, rcond=None)[0]
    first, last = slope + 2 * curve * x.min(), slope + 2 * curve * x.max()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((first > 0) & (last > 0), last / first, INF)


@dataclass(frozen=True)
class Number(AnyClaim):
    """A number without an interval lies in [least, most]: one that the paper prints, or one of the pulls."""

    panel: str
    words: str  # the claim itself
    found: Found
    least: float = -INF
    most: float = INF
    x: float = NAN  # the point that is meant; NaN: all of them, or there is none

    @property
    def text(self) -> str:
        return self.words

    @property
    def widened(self) -> bool:
        return False

    def measure(self, panel: object, result: object, level: float) -> list[Row]:
        """One row: the number, which is its own interval where there is no chance in it."""
        number = self.found(panel, result)
        exact = number if isinstance(result, Numbers) else NAN
        return [_row(number, exact, exact, self.x)]

    def verdict_on(self, row: Row) -> str:
        return "yes" if self.least <= row["estimate"] <= self.most else "no"


def printed(panel: str, name: str, value: float, or_more: bool = False, tolerance: float = 0.0) -> Number:
    """In a panel without chance, the number of this name is that which the paper prints, or more.

    `tolerance`: the largest difference that is due to rounding in the paper.
    """
    rounded = f", within {tolerance:g}" if tolerance else ""
    claim = f"{name} {'at least' if or_more else '='} {value:g}{rounded}"
    most = INF if or_more else value + tolerance
    return Number(panel, claim, lambda _, result: result.number(name), value - tolerance, most)


def ratio(
    panel: str, words: str, over: Found, under: Found, least: float = 0.0, most: float = INF, x: float = NAN
) -> Number:
    """Of two numbers that are found in a panel, the one over the other lies in [least, most]; infinite over 0."""

    def found(panel: object, result: object) -> float:
        one, other = float(over(panel, result)), float(under(panel, result))
        return one / other if other else INF

    return Number(panel, words, found, least, most, x)


def last(of: Callable[..., float], *agents: str) -> Found:
    """Of the agents' means at the last point of a panel the smallest (min), the largest (max), or another number."""
    return lambda panel, result: of([panel.values(result, agent)[panel.places[-1]].mean() for agent in agents])


@dataclass(frozen=True)
class Quote:
    """What a paper says of a figure, and the claims that test it."""

    name: str  # short and unique in the figure; the page of the figure has it at the anchor "figure-name"
    words: str  # the paper's own; empty for a claim that stands for itself
    claims: Sequence[AnyClaim]  # all of what is tested of it
    reading: str = ""  # what is read otherwise than the paper says it, if something is
    caveat: str = ""  # what a verdict on it does not say by itself
    beside: bool = False  # the set-up is not the paper's: the verdict is that of the other quotations with these words
