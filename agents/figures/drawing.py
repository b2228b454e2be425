"""The panels of a paper's figure drawn side by side, with one legend for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evaluation.plots import check_path, save
from .panels import AnyPanel, Result, Transform

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_panels"]


def plot_panels(
    panels: Sequence[AnyPanel[Any]],
    results: Mapping[str, Result],
    *,
    level: float = 0.95,
    transform: Transform,
    order: Sequence[str] = (),
    path: str | Path | None = None,
) -> Figure:
    """Draw panels side by side, at most three in a row; an agent looks the same in all of them.

    Args:
        panels: what to draw.
        results: the result of each panel, by the panel's title.
        level: confidence level of the intervals.
        transform: applied to the means and limits before they are drawn.
        order: labels of agents; the style of an agent is that of its place here. Agents that are not named come behind.
        path: also write the figure there; the suffix names the format (.png, .svg, .pdf).

    Returns:
        A Matplotlib figure that belongs to no window.

    Raises:
        ValueError: for an unknown suffix.
    """
    from matplotlib.figure import Figure

    if path is not None:
        check_path(path)
    order = list(dict.fromkeys([*order, *(agent for result in results.values() for agent in result.agents)]))
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.2 * columns + 1.6, 3.8 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        panel.draw(ax, results[panel.title], level, transform, order)
        ax.set_title(panel.title, fontsize=11)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    legend = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        legend.update(dict(zip(labels, handles, strict=True)))
    names = sorted(legend, key=lambda label: order.index(label) if label in order else len(order))
    figure.legend([legend[name] for name in names], names, loc="outside right upper", frameon=False, handlelength=3)
    if path is not None:
        save(figure, path)
    return figure
