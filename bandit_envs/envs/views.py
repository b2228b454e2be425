"""The content of a picture of an episode at one moment: the arms' values and intervals, the boundary, the answer.

The value of a scalar arm is its mean, where the problem parts the arms of the answer from the others by a mean. In all
other cases, as for arms of several dimensions, it is the margin, whose boundary is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.geometry import Polyhedron
from ..problems import Problem
from ..problems.task import Task
from .setting import Setting

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ERRORS = 2.0  # standard errors on each side of an interval
ROUNDING = 1e-9  # relative, of means that are the same
SHOWN, BAR = 20, 20  # arms in a table, and the length of the longest bar, at most


class View(NamedTuple):
    """The arms at one moment, (K,) each."""

    pulls: NDArray[np.int64]  # of each arm, all coordinates together
    value: Floats  # the mean or margin; NaN for arms never pulled
    reach: Floats  # half the length of the interval, two standard errors
    told: Bools  # whether the samples give the standard error; else they are all alike, and it is by the task's sigma
    answer: Bools  # whether the arm is in the answer
    boundary: float | None  # the value that parts the two kinds of arms; None where there is none yet
    points: Floats | None  # (K, D), the means of arms of several dimensions


class Viewer:
    """Makes the views of the episodes of a task; of its problem, where that has been made already.

    Attributes:
        value: what the value of an arm is, "mean" or "margin".
        support: the lowest and highest value of a sample, where values are means and samples have such; else None.
        plane: the polyhedron that the means of two-dimensional arms must lie in, or None.
    """

    def __init__(self, task: Task, problem: Problem | None = None) -> None:
        self.task, self.problem = task, task.make_problem() if problem is None else problem
        low, high = (0.0, 1.0) if task.support is None else task.support
        probe = low + (high - low) * np.arange(1, task.K + 1) / task.K
        by_mean = task.D == 1 and boundary_of(self.problem, probe) is not None
        self.value = "mean" if by_mean else "margin"
        self.support = task.support if by_mean else None
        self.plane: Polyhedron | None = self.problem.polyhedron if task.D == 2 else None

    def view(self, pulls: ArrayLike, mean: ArrayLike, variance: ArrayLike, answer: Bools | None = None) -> View:
        """The arms by their statistics.

        Args:
            pulls: (K,), of coordinates (K, D). mean, variance: (K,) or (K, D), variance with divisor N.
            answer: (K,); None: the plug-in answer.
        """
        counts, K = np.asarray(pulls).reshape(self.task.K, -1), self.task.K
        seen = np.array(mean, np.float64)
        seen[np.asarray(pulls) == 0] = np.nan
        spread = np.asarray(variance, np.float64).reshape(K, -1)
        varied = spread > 0
        squares = np.where(varied, spread, self.task.sigma**2) / np.maximum(counts, 1)
        if answer is None:
            answer = np.asarray(self.problem.plug_in(seen), np.bool_)
        by_mean = self.value == "mean"
        value = seen if by_mean else np.asarray(self.problem.margin(seen), np.float64)
        return View(
            pulls=counts.sum(axis=1),
            value=value,
            reach=ERRORS * np.sqrt(squares.max(axis=1)),
            told=np.asarray(varied.all(axis=1)),
            answer=answer,
            boundary=boundary_of(self.problem, seen) if by_mean else 0.0,
            points=seen if seen.ndim == 2 else None,
        )


def boundary_of(problem: Problem, means: Floats) -> float | None:
    """The mean that parts the scalar arms of the plug-in answer from the others; None where there is none, or not yet.

    Where the problem knows no such mean, as that of the k best arms, it is halfway between the two kinds of arms. Of
    arms never pulled, the means (K,) are NaN.
    """
    if problem.boundary is not None:
        return float(problem.boundary)
    parts, inside = means - problem.margin(means[None])[0], problem.plug_in(means[None])[0]
    finite = np.isfinite(parts)
    for side in (parts[finite & inside], parts[finite & ~inside]):
        if len(side) and np.ptp(side) > ROUNDING * max(1.0, np.abs(side).max()):
            return None
    return float(parts[finite].min() + parts[finite].max()) / 2 if finite.any() else None


def outline(polyhedron: Polyhedron, low: Floats, high: Floats) -> Floats:
    """The corners (V, 2), in order, of a two-dimensional polyhedron in the box from low to high (2,); V may be 0."""
    (x0, y0), (x1, y1) = low, high
    corners = [np.array(corner) for corner in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))]
    for row, end in zip(polyhedron.A, polyhedron.b, strict=True):
        kept = []
        for i, here in enumerate(corners):
            before = corners[i - 1]
            slack, slack_before = float(end - row @ here), float(end - row @ before)
            if (slack >= 0) != (slack_before >= 0):  # the edge crosses the line
                kept.append(before + (here - before) * slack_before / (slack_before - slack))
            if slack >= 0:
                kept.append(here)
        corners = kept
    return np.array(corners).reshape(-1, 2)


def arms_that_matter(pulls: NDArray[np.int64], margin: Floats, answer: Bools, most: int) -> NDArray[np.intp]:
    """At most so many arms (n,) in decreasing order of their margins; NaN, that of an arm without a mean, comes last.

    By turns the next best arm of the answer, the next arm nearest to the boundary, and the next most pulled arm.
    """
    best = np.argsort(-margin, kind="stable")
    if len(pulls) <= most:
        return best
    near, often = np.argsort(np.abs(margin), kind="stable"), np.argsort(-pulls, kind="stable")
    queues = [iter(queue.tolist()) for queue in (best[answer[best]], near, often)]
    chosen: set[int] = set()
    while len(chosen) < most:
        for queue in queues:
            following = next((k for k in queue if k not in chosen), None)
            if following is not None and len(chosen) < most:
                chosen.add(following)
    return best[np.isin(best, list(chosen))]


def text(setting: Setting, pulls: NDArray[np.int64], mean: NDArray[np.float64], remaining: int, over: bool) -> str:
    """A table of the arms in decreasing order of their margins, of many arms the 20 that matter most.

    `pulls` (K,) or (K, D), `mean` (K,) or (K, D); `remaining`: -1 without a budget; `over`: the episode has ended.
    """
    seen = mean.copy()
    seen[pulls == 0] = np.nan
    pulls = pulls.reshape(len(mean), -1).sum(axis=1)
    margin, answer, kept = setting.problem.margin(seen), setting.problem.plug_in(seen), setting.problem.control_arm
    margin[[] if kept is None else kept] = 0.0  # a control stands where arms in the answer and others part
    head = f"{setting.problem!r}  {setting.source.name}  pulls {pulls.sum()}"
    head += f"  remaining {remaining}" if remaining >= 0 else ""
    arms = arms_that_matter(pulls, margin, answer, SHOWN)
    values = [" ".join("-" if np.isnan(x) else f"{x:.3f}" for x in np.atleast_1d(seen[k])) for k in arms]
    wide, each = max(4, *map(len, values)), max(1, -(-int(pulls.max()) // BAR))
    bar = f"bar: a # for {f'each {each} pulls' if each > 1 else 'each pull'}"
    lines = [head + ("  (ended)" if over else "")]
    lines.append(f"{'arm':>6} {'pulls':>8} {'margin':>9}  answer  {'mean':<{wide}}  {bar}")
    for k, value in zip(arms, values, strict=True):
        distance = "-" if np.isnan(margin[k]) else "control" if k == kept else f"{margin[k]:.4f}"
        place = "in" if answer[k] else "out"
        row = f"{k:>6} {pulls[k]:>8} {distance:>9}  {place:<6}  {value:<{wide}}  {'#' * -(-int(pulls[k]) // each)}"
        lines.append(row.rstrip())
    if hidden := len(pulls) - len(arms):
        left = np.setdiff1d(np.arange(len(pulls)), arms)
        parts = f"{answer[left].sum()} in the answer, {(pulls[left] == 0).sum()} never pulled"
        lines.append(f"{hidden} of {len(pulls)} arms are not shown: {parts}")
    return "\n".join(lines)
