"""What is shown of an episode at one moment, and the picture of it, by Matplotlib: an image, and a window that moves.

The value of a scalar arm is its mean, where the problem parts the arms of the answer from the others by a mean. In all
other cases, as for arms of several dimensions, it is the margin, whose boundary is 0.

Up to `MANY` arms stand in their places, each with its interval. More arms are sorted by their values, as one curve with
a band. The arms of a two-dimensional polyhedron are points in the plane.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.checks import Bools, Floats, require
from ..kernels.geometry import Polyhedron
from ..problems import Problem
from ..problems.task import Task
from .setting import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


def text(setting: Setting, pulls: NDArray[np.int64], mean: Floats, remaining: int, over: bool) -> str:
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


MANY = 60  # arms from which on they are sorted
BARS = 160  # bars of pulls, at most
INSIDE, OUTSIDE, LINE = "#0072B2", "#D55E00", "#4D4D4D"
SIZE, DPI = (6.4, 4.8), 100  # inches, and pixels of one
PLACES = "arm (dashed: all samples are alike, interval by sigma)"
# Where the axes of values, or of the plane, and those of pulls are: left, bottom, width, height.
FLAT = (0.115, 0.37, 0.86, 0.51), (0.115, 0.11, 0.86, 0.2)
PLANE = (0.095, 0.1, 0.5, 0.78), (0.7, 0.1, 0.275, 0.78)
PAD = 0.04  # of the range of an axis
PAUSE = 0.001  # seconds in which the window shows what was drawn

_CANVASES: WeakKeyDictionary[Viewer, Any] = WeakKeyDictionary()  # with the last picture of each viewer
Limits = tuple[float, float]


def limits_of(views: list[View], support: Limits | None) -> Limits:
    """Limits of the axis of values that show all of some views; intervals are cut where samples cannot lie."""
    ends = [np.concatenate([view.value - view.reach, view.value + view.reach]) for view in views]
    found = np.concatenate([*ends, [view.boundary for view in views if view.boundary is not None]])
    found = found[np.isfinite(found)]
    low, high = (float(found.min()), float(found.max())) if len(found) else support or (0.0, 1.0)
    if support is not None:
        low, high = max(low, support[0]), min(high, support[1])
    pad = PAD * (high - low) or 0.5
    return low - pad, high + pad


def draw(figure: Figure, viewer: Viewer, view: View, title: str, limits: Limits | None = None) -> None:
    """Draw a view into an empty figure of 6.4 by 4.8, or in the place of another one, whose axes and ticks are kept."""
    top, bottom = figure.axes or [figure.add_axes(place) for place in (FLAT if viewer.plane is None else PLANE)]
    for part in [*figure.texts, *(part for ax in (top, bottom) for part in _drawn(ax))]:
        part.remove()
    inside = int(view.answer.sum())
    words = f"{inside:,} of {len(view.answer):,} arms in the answer"
    figure.text(0.5, 0.955, title, ha="center", fontsize=10.5)
    figure.text(0.5, 0.915, words, ha="center", fontsize=9.5, color=LINE)
    if viewer.plane is not None:
        _draw_plane(top, viewer, view)
    else:
        _draw_values(top, view, viewer.value, limits or limits_of([view], viewer.support))
        if (kept := viewer.problem.control_arm) is not None and np.isfinite(view.value[kept]):
            at = np.flatnonzero(_order(view) == kept)
            top.scatter(at, view.value[[kept]], s=110, marker="D", facecolors="none", edgecolors=LINE, zorder=4)
            figure.text(0.8, 0.915, "\N{WHITE DIAMOND} control", fontsize=8.5, color=LINE, ha="right")
        bottom.set_xlim(top.get_xlim())
    _draw_pulls(bottom, view, viewer.plane is None)
    figure.text(0.02, 0.915, "\N{BLACK CIRCLE} in the answer", fontsize=8.5, color=INSIDE)
    figure.text(0.2, 0.915, "\N{BLACK CIRCLE} not in it", fontsize=8.5, color=OUTSIDE)
    figure.text(0.98, 0.915, "- - boundary", fontsize=8.5, color=LINE, ha="right")
    for ax in (top, bottom):
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)


def _drawn(ax: Axes) -> list[Any]:
    """What was drawn into axes, beside the axes themselves."""
    return [*ax.lines, *ax.collections, *ax.patches, *ax.texts]


def _order(view: View) -> NDArray[np.intp]:
    """The arms from left to right: in place, or by their values, those never pulled last."""
    if len(view.value) <= MANY:
        return np.arange(len(view.value))
    return np.argsort(-view.value, kind="stable")


def _colours(answer: Bools) -> list[str]:
    return [INSIDE if one else OUTSIDE for one in answer]


def _draw_values(ax: Axes, view: View, name: str, limits: Limits) -> None:
    """Draw the arms' values, with their intervals and the boundary."""
    order, few = _order(view), len(view.value) <= MANY
    value, reach, answer, known = view.value[order], view.reach[order], view.answer[order], view.told[order]
    seen = np.flatnonzero(np.isfinite(value))
    if few:
        lines: tuple[tuple[Any, Any], ...] = ((known, "solid"), (~known, "dashed"))
        for some, line in lines:
            shown = seen[some[seen]]
            ends = value[shown] - reach[shown], value[shown] + reach[shown]
            ax.vlines(shown, *ends, colors=_colours(answer[shown]), linestyles=line, label=line, linewidth=1.8)
        ax.scatter(seen, value[seen], c=_colours(answer[seen]), s=30, zorder=3)
    else:
        ax.fill_between(seen, value[seen] - reach[seen], value[seen] + reach[seen], color="#BBBBBB", alpha=0.6, lw=0)
        ax.scatter(seen, value[seen], c=_colours(answer[seen]), s=3, lw=0, zorder=3)
    if view.boundary is not None:
        ax.axhline(view.boundary, color=LINE, linewidth=1.2, linestyle=(0, (5, 2)))
    ax.set_ylim(*limits)
    ax.set_xlim(-0.7 - 0.01 * len(value), len(value) - 0.3 + 0.01 * len(value))
    ax.set_ylabel(f"{name}, two standard errors", fontsize=9)
    ax.tick_params(labelbottom=False, labelsize=9)


def _draw_pulls(ax: Axes, view: View, wide: bool) -> None:
    """Draw the pulls: a bar for each arm, or for several neighbours their mean; on `wide` axes words fit."""
    from matplotlib.ticker import MaxNLocator

    pulls, answer = view.pulls[(order := _order(view))], view.answer[order]
    each = max(1, -(-len(pulls) // BARS)) if len(pulls) > MANY else 1
    starts = np.arange(0, len(pulls), each)
    sizes = np.diff(np.append(starts, len(pulls)))
    heights = np.add.reduceat(pulls, starts) / sizes
    colours = _colours(2 * np.add.reduceat(answer, starts, dtype=np.int64) > sizes)
    ax.bar(starts + (sizes - 1) / 2, heights, width=sizes * (0.8 if each == 1 else 1.0), color=colours)
    ax.set_ylim(0, max(1.0, 1.05 * float(heights.max())))
    ax.set_ylabel("pulls" if each == 1 else f"pulls, mean of {each}", fontsize=9 if each == 1 else 8)
    few, many = PLACES if wide else "arm", f"{len(pulls):,} arms{' in the order of their values' if wide else ''}"
    ax.set_xlabel(few if len(pulls) <= MANY else many, fontsize=9)
    ax.tick_params(labelsize=9)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))


def _draw_plane(ax: Axes, viewer: Viewer, view: View) -> None:
    """Draw arms of two dimensions as points, and the polyhedron that they are to lie in."""
    assert viewer.plane is not None
    assert view.points is not None
    points, few = view.points, len(view.points) <= MANY
    low, high = _box(points, viewer.task.support)
    corners = outline(viewer.plane, low, high)
    if len(corners):
        ax.fill(*corners.T, color=INSIDE, alpha=0.12, lw=0)
        ax.plot(*np.vstack([corners, corners[:1]]).T, color=LINE, linewidth=1.2, linestyle=(0, (5, 2)))
    seen = np.isfinite(points).all(axis=1)
    colours = _colours(view.answer[seen])
    if few:
        (x, y), reach = points[seen].T, view.reach[seen]
        ax.hlines(y, x - reach, x + reach, colors=colours, linewidth=1, alpha=0.55)
        ax.vlines(x, y - reach, y + reach, colors=colours, linewidth=1, alpha=0.55)
        for arm in np.flatnonzero(seen):
            ax.annotate(str(arm), points[arm], xytext=(4, 4), textcoords="offset points", fontsize=8, color=LINE)
    ax.scatter(points[seen, 0], points[seen, 1], c=colours, s=30 if few else 4, zorder=3, lw=0)
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.set_xlabel("first coordinate of the mean", fontsize=9)
    ax.set_ylabel("second coordinate of the mean", fontsize=9)
    ax.tick_params(labelsize=9)


def _box(points: Floats, support: Limits | None) -> tuple[Floats, Floats]:
    """Corners of a box around the points, or around all that samples can be."""
    if support is not None:
        low, high = np.full(2, support[0]), np.full(2, support[1])
    else:
        seen = points[np.isfinite(points).all(axis=1)]
        low, high = (seen.min(axis=0), seen.max(axis=0)) if len(seen) else (np.full(2, -1.0), np.full(2, 1.0))
    pad = np.where(high > low, 2 * PAD * (high - low), 1.0)
    return low - pad, high + pad


def image(viewer: Viewer, view: View, title: str, limits: Limits | None = None) -> NDArray[np.uint8]:
    """The picture of a view as an array (480, 640, 3); see `draw`."""
    canvas = _CANVASES.get(viewer)
    if canvas is None:
        agg = require("matplotlib.backends.backend_agg", "an image of an episode")
        figure = require("matplotlib.figure", "an image of an episode").Figure(figsize=SIZE, dpi=DPI)
        canvas = _CANVASES[viewer] = agg.FigureCanvasAgg(figure)
    draw(canvas.figure, viewer, view, title, limits)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


class Window:
    """A window in which the picture moves. Without a display there is a note, and nothing is shown."""

    def __init__(self) -> None:
        self._plt = require("matplotlib.pyplot", "render_mode='human'")
        backends = require("matplotlib.backends", "render_mode='human'")
        used = self._plt.get_backend()
        if used.lower() in backends.backend_registry.list_builtin(backends.BackendFilter.NON_INTERACTIVE):
            text = f"note: render_mode='human' needs a window, and Matplotlib has none here (its backend is {used!r}), "
            text += "so that nothing is shown: use render_mode='rgb_array', or `bandit-envs watch` in the terminal"
            print(text, file=sys.stderr)
            self._figure = None
            return
        self._figure = self._plt.figure("bandit-envs", figsize=SIZE, dpi=DPI)

    def show(self, viewer: Viewer, view: View, title: str) -> None:
        """Show a view, as soon as it is drawn."""
        if self._figure is None:
            return
        draw(self._figure, viewer, view, title)
        self._figure.canvas.draw_idle()
        self._plt.pause(PAUSE)

    def close(self) -> None:
        """Close it."""
        if self._figure is not None:
            self._plt.close(self._figure)
