"""The picture of an episode, by Matplotlib: an image, and a window in which it moves.

Up to `MANY` arms stand in their places, each with its interval. More arms are sorted by their values, as one curve with
a band. The arms of a two-dimensional polyhedron are points in the plane.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..kernels.checks import require
from .views import View, Viewer, outline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def _colours(answer: NDArray[np.bool_]) -> list[str]:
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


def _box(points: NDArray[np.float64], support: Limits | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
