"""Plots of evaluations: a line with a confidence band per agent, or bars where there is a single point.

Agents differ by colour, line and marker. The first colours are those of Okabe & Ito (2008), which colour-blind readers
can distinguish, without their yellow, which is hard to see on white; the others are as far from them, and from each
other, as the first ones are, for colour-blind readers too. Figures are Matplotlib objects that belong to no
window, so that nothing here needs a display or changes Matplotlib's global state.
"""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bandit_envs.kernels import Bools, Floats, choice

from ..core.files import write_alone
from .precision import level_at
from .rows import Evaluated, common_budget, main_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Transform = Callable[[Floats], Floats]

# The numbers of colours, lines and markers have no common divisor: there are 12 * 5 * 11 styles before one is repeated.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00") + (
    *("#000000", "#9024FC", "#6C2400", "#002490", "#482448", "#B4B46C"),
)
LINES: tuple[object, ...] = ("solid", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", ">", "h")
MOST_MARKERS = 12  # on a line
BOUND = 42  # the style of the lower bound: black and dotted
NARROW = 0.7  # bars from 0 are not drawn if all values lie above this share of the largest: they would look the same
WIDE = 100  # last / first point from which the axis of pulls is logarithmic

# The metadata by suffix that keep the time of writing out of the file.
FORMATS: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

# TrueType fonts, which printers and reviewers' programs take; the same names within the file in every run.
SAVED: Any = {"svg.hashsalt": "bandit-envs", "pdf.fonttype": 42}


@dataclass(frozen=True)
class Size:
    """The size of a figure."""

    width: float  # inches
    height: float
    bars: tuple[float, float]  # height of a figure of bars, without them, and of each
    font: float | None  # points; None: Matplotlib's own
    title: float  # points
    beside: bool  # whether the legend stands beside the axes
    letters: int  # of a line of a label, at most; a line of the title has half as many again, at most
    name: int  # letters of the longest name beside bars or lines, or in a column of the legend; others stand apart

    def fitting(self, inches: float, points: float | None = None) -> int:
        """How many letters of so many points, by default those of this size, a line of this length has."""
        return max(10, int(inches / (LETTER * (points or self.font or 10))))

    def taken(self, letters: int) -> float:
        """The length of so many letters, inches."""
        return LETTER * (self.font or 10) * letters


LETTER = 0.0084  # inches of a letter of one point, in text of mixed letters
LEGEND_LINE = 0.17  # inches
SIZES = {
    "screen": Size(7.2, 4.2, (1.5, 0.42), None, 11, True, 80, 28),
    "column": Size(3.3, 2.5, (0.75, 0.24), 8, 8, False, 28, 14),  # of a page with two columns
    "page": Size(6.8, 3.2, (0.9, 0.28), 9, 9, True, 40, 24),
}

LABELS = {
    "error_rate": "error rate",
    "score": "mean score",
    "correct": "rate of correct answers",
    "truncated": "rate of truncated episodes",
    "total_pulls": "mean pulls per episode",
    "misclassified": "mean number of misclassified arms",
    "misidentified": "mean number of misidentified arms",
    "f1": "mean F1",
}


def metric_label(metric: str) -> str:
    """The mean of a metric, in words."""
    return LABELS.get(metric, f"mean {metric.replace('_', ' ')}")


def check_path(path: str | Path) -> Path:
    """The path of a figure, whose suffix names a known format."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"the suffix of a figure must be {', '.join(FORMATS)}, got {str(path)!r}")
    return path


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure, in the format that the suffix names; the same figure gives the same bytes."""
    import matplotlib

    path = check_path(path)
    options: Any = {"dpi": 150, "metadata": dict(FORMATS[path.suffix.lower()])}
    with matplotlib.rc_context(SAVED):
        write_alone(path, lambda place: figure.savefig(place, **options))
    return path


@dataclass(frozen=True)
class Series:
    """The points of one agent."""

    agent: str  # its label
    style: int  # number of its colour, line and marker
    x: Floats | None  # numbers of pulls, or ln(1 / delta), (C,); None for a single point
    mean: Floats  # (C,)
    low: Floats  # confidence limits, (C,), NaN where there is none
    high: Floats
    floor: Floats  # where a mean of 0 is drawn if the axis has no 0: at half an event in all episodes, (C,); else NaN
    episodes: int


def series_of(
    evaluation: Evaluated, metric: str, level: float, transform: Transform | None, order: Sequence[str]
) -> list[Series]:
    """The points of every agent, in styles by their places in `order`; `transform` applies to means and limits."""
    made = []
    level = level_at(evaluation.settings.get("look"), level)
    for agent in evaluation.agents:
        runs = [run for run in evaluation.runs if run.agent == agent]
        cells = [cell for run in runs for cell in run.cells]
        parts = [run.estimate(metric, level) for run in runs]
        mean, low, high = (np.concatenate([np.asarray(part[i], np.float64) for part in parts]) for i in range(3))
        episodes = runs[0].episodes
        floor = np.where(mean == 0, 0.5 / episodes, np.nan)
        if transform is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                mean, one, other, floor = transform(mean), transform(low), transform(high), transform(floor)
            low, high = np.minimum(one, other), np.maximum(one, other)  # a decreasing transform swaps them
        x = [budget if at is None else at for budget, at in cells]
        if runs[0].by_delta:
            x = [-np.log(run.task.delta or 1.0) for run in runs]
        several = len(x) > 1 and None not in x
        places = np.array(x, np.float64) if several else None
        made.append(Series(agent, order.index(agent), places, mean, low, high, floor, episodes))
    bound = np.array([run.lower_bound for run in runs])  # of the task, the same for all agents
    if metric == "total_pulls" and runs[0].by_delta and several and np.isfinite(bound).any():
        bound, none = bound if transform is None else transform(bound), np.full(len(bound), np.nan)
        made.append(Series("lower bound", BOUND, places, bound, none, none, none, episodes))
    return made


def style(i: int) -> dict[str, Any]:
    """Colour, line and marker of the agent at this place in the order of all agents."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)], "marker": MARKERS[i % len(MARKERS)]}


def _shown(one: Series, log: bool) -> tuple[Floats, Bools]:
    """What is drawn for the means, and where it is the floor, as the axis has no place for a mean of 0."""
    seen = np.isfinite(one.mean) & ((one.mean > 0) | (not log))
    return np.where(seen, one.mean, one.floor), ~seen & np.isfinite(one.floor)


def _write_floors(ax: Axes, series: Sequence[Series], log: bool) -> None:
    """Write "0 of n" beside the axis of values wherever means of 0 are drawn."""
    for one in series:
        value, floored = _shown(one, log)
        for place in np.unique(value[floored]):
            text = f"0 of {one.episodes:,}"
            if all((text, place) != (one.get_text(), one.get_position()[1]) for one in ax.texts):
                beside = ax.get_yaxis_transform()
                ax.text(0.01, place, text, transform=beside, va="center", fontsize=8, color="#4D4D4D", zorder=5)


def _limits(series: Sequence[Series], log: bool) -> tuple[float, float]:
    """Limits of the axis of values that show every mean, and every confidence limit that is not infinitely far."""
    values = np.concatenate([part for one in series for part in (_shown(one, log)[0], one.low, one.high)])
    values = values[np.isfinite(values) & ((values > 0) | (not log))]
    if len(values) == 0:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    if log:
        pad = max((high / low) ** 0.05, 1.1)
        return low / pad, high * pad
    pad = 0.04 * (high - low) or 0.05 * abs(high) or 0.05
    return low - pad, high + pad


def _log_ticks(axis: Any, low: float, high: float) -> None:
    """Set the ticks of a logarithmic axis that is shown from low to high: 1, 2, 5 in each decade, or decades alone."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if high <= 1000 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_lines(ax: Axes, series: Sequence[Series], log: bool) -> None:
    """Draw a line with its band for each agent."""
    from matplotlib.ticker import MaxNLocator

    bottom, top = _limits(series, log)
    if log:
        ax.set_yscale("log")
        _log_ticks(ax.yaxis, bottom, top)
    below = bottom / 1e9 if log else bottom - 1e3 * (top - bottom)  # stands for minus infinity, out of sight
    for i, one in enumerate(series):
        assert one.x is not None
        order = np.argsort(one.x)
        x, low, high = one.x[order], one.low[order], one.high[order]
        value, floored = _shown(one, log)
        value, floored = value[order], floored[order]
        low = np.where(np.isneginf(low) | (log & (low <= 0)), below, low)
        high = np.where(floored & ~(high > value), value, high)
        look = style(one.style)
        ax.fill_between(x, low, high, color=look["color"], alpha=0.18 if len(series) <= 6 else 0.1, linewidth=0)
        every, above = -(-len(x) // MOST_MARKERS), 3 - i / len(series)  # the first agent on top
        ax.plot(x, value, label=one.agent, linewidth=1.6, markersize=4.5, markevery=every, zorder=above, **look)
        if floored.any():
            hollow: dict[str, Any] = {"facecolors": "white", "edgecolors": look["color"], "zorder": above + 1}
            ax.scatter(x[floored], value[floored], s=30, marker=look["marker"], **hollow)
    _write_floors(ax, series, log)
    ax.set_ylim(bottom, top)
    xs = np.concatenate([one.x for one in series if one.x is not None])
    if xs.max() >= WIDE * xs.min():
        ax.set_xscale("log")
        _log_ticks(ax.xaxis, xs.min(), xs.max())
    else:
        ax.xaxis.set_major_locator(MaxNLocator(6))  # numbers of pulls are wide
        ax.xaxis.set_major_formatter(lambda x, _: f"{x / 1e6:g}M" if xs.max() >= 1e6 else f"{x:,g}")
    ax.grid(True, color="#D9D9D9", linewidth=0.6)


def _draw_bars(ax: Axes, series: Sequence[Series], log: bool, transformed: bool, share: float = 1.0) -> None:
    """Draw a horizontal bar with an error bar for each agent; points where bars from 0 would all look the same.

    With a share below 1, a bar takes so much of its row, and the agent's name stands above it.
    """
    mean, low, high = (np.array([getattr(one, name)[-1] for one in series]) for name in ("mean", "low", "high"))
    bottom, top = _limits(series, log)
    bars = not log and not transformed and not 0 < bottom > NARROW * top
    if log:
        ax.set_xscale("log")
        _log_ticks(ax.xaxis, bottom, top)
    elif bars:
        bottom = bottom if (np.fmin(low, mean) < 0).any() else 0.0
    low = np.where(np.isneginf(low), bottom, np.maximum(low, bottom))  # no interval (NaN) stays none
    for i, one in enumerate(series):
        (values, floors), look = _shown(one, log), style(one.style)
        value, floored = values[-1], floors[-1]
        colour, ends = look["color"], [low[i], high[i]]
        if bars:
            ax.barh(i, mean[i], height=0.62 * share, color=colour, alpha=0.6)
            ax.plot(ends, [i, i], color="black", linewidth=1.3, marker="|", markersize=7)
        else:
            ax.plot(ends, [i, i], color=colour, linewidth=1.8)
            ax.plot([value], [i], color=colour, marker=look["marker"], markersize=6, mfc="white" if floored else colour)
        end = next((x for x in (high[i], value) if np.isfinite(x) and x >= bottom), bottom)
        words = f"0 of {one.episodes:,}" if floored else _number(mean[i])
        ax.annotate(words, (end, i), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9)
    if share < 1:
        ax.set_yticks([])
        for i, one in enumerate(series):
            beside = ax.get_yaxis_transform()
            ax.text(0.0, i - 0.38 * share, one.agent, transform=beside, ha="left", va="bottom")
        ax.set_ylim(len(series) - 1 + 0.5 * share, 0.5 * share - 1.05)
    else:
        ax.set_yticks(range(len(series)), [one.agent for one in series])
        ax.set_ylim(len(series) - 0.4, -0.6)  # the first agent on top
    wider = 1.14  # for the numbers beside the bars
    ax.set_xlim(bottom, bottom * (top / bottom) ** wider if log else bottom + (top - bottom) * wider)
    if top >= 1000 and not log:
        ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(True, axis="x", color="#D9D9D9", linewidth=0.6)
    ax.tick_params(axis="y", length=0)


def _number(x: float) -> str:
    """A number with three digits, or rounded to a whole number from 1000 on."""
    return (f"{x:,.0f}" if 1000 <= abs(x) < np.inf else f"{x:#.3g}").replace("-", "\N{MINUS SIGN}")


def pulls_label(evaluation: Evaluated) -> str:
    """The label of the axis of points: checkpoints, budgets, or deltas."""
    if evaluation.runs[0].by_delta:
        return "ln(1 / delta)"
    return "pulls" if evaluation.runs[0].at is not None else "budget (pulls)"


def draw(
    ax: Axes,
    series: Sequence[Series],
    label: str,
    xlabel: str,
    log: bool,
    transformed: bool = False,
    share: float = 1.0,
) -> bool:
    """Draw lines, or bars for single points; returns whether there are lines, which need a legend.

    Of `transformed` values bars cannot begin at 0. share: of its row that a bar takes; below 1 names stand above.
    """
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    lines = all(one.x is not None for one in series)
    if lines:
        _draw_lines(ax, series, log)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(label)
    else:
        _draw_bars(ax, series, log, transformed, share)
        ax.set_xlabel(label)
    return lines


def _renamed(evaluation: Evaluated, names: Mapping[str, str]) -> Any:
    """An evaluation whose agents have other names, {label: name}; the rows are not copied."""
    if unknown := set(names) - set(evaluation.agents):
        raise ValueError(f"label must rename agents among {', '.join(evaluation.agents)}, got {min(unknown)!r:.200}")
    shown = [names.get(agent, agent) for agent in evaluation.agents]
    if not all(isinstance(name, str) for name in shown) or len(set(shown)) < len(shown):
        raise ValueError(f"label must give each agent a name of its own, got {', '.join(map(repr, shown)):.200}")
    made: Any = copy.copy(evaluation)
    made.runs = [copy.copy(run) for run in evaluation.runs]
    for run in made.runs:
        run.agent = names.get(run.agent, run.agent)
    return made


def _title(evaluation: Evaluated) -> str:
    """Problem, instance, budget and number of episodes."""
    task, n = evaluation.runs[0].task, evaluation.runs[0].episodes
    instance = evaluation.settings.get("env_kwargs", {}).get("instance")
    named = instance if isinstance(instance, str) else f"{task.K} arms"
    return " · ".join([task.problem, named, *common_budget(evaluation.runs), f"{n:,} episode{'s' if n > 1 else ''}"])


def _draw_own(
    figure: Figure, axes: Axes, form: Size, evaluation: Evaluated, drawing: Callable[[Axes, float, int | None], bool]
) -> float:
    """Draw into a figure of its own, with the legend, so that long names fit; returns the axes' width in inches."""
    names, several = evaluation.agents, len({cell for run in evaluation.runs for cell in run.cells}) > 1
    longest = max(map(len, names))
    long, frame = longest > form.name, 0.75 if several else 0.2
    wrap = form.fitting(form.width - (0.75 if several else 0.3)) if long else longest
    lines_of_names = [len(textwrap.wrap(name, wrap)) for name in names]
    row = form.bars[1] + (LEGEND_LINE * max(lines_of_names) if long else 0.0)
    lines = drawing(axes, form.bars[1] / row, wrap)
    beside = not long and (form.beside or not lines)
    width = form.width - frame - (form.taken(longest) + (0.4 if lines else 0.0) if beside else 0.0)
    axes.set_xlabel(textwrap.fill(axes.get_xlabel(), min(form.letters, form.fitting(width))))
    high = min(form.letters, form.fitting(form.height - 1.1))
    axes.set_ylabel(textwrap.fill(axes.get_ylabel(), high))
    if lines and beside:
        figure.legend(loc="outside right upper", frameon=False, handlelength=3)
    elif lines:
        columns = 1 if long else 2
        figure.legend(loc="outside lower center", frameon=False, handlelength=2.5, ncols=columns)
        more = max(0, -(-sum(lines_of_names) // columns) - (0 if form.beside else 2))  # lines that need height
        figure.set_size_inches(form.width, form.height + LEGEND_LINE * more)
    else:
        figure.set_size_inches(form.width, form.bars[0] + row * len(names))
    return width


def plot(
    evaluation: Evaluated,
    metric: str | None = None,
    *,
    path: str | Path | None = None,
    log: bool = False,
    transform: Transform | None = None,
    label: str | Mapping[str, str] | None = None,
    title: str | None = None,
    level: float = 0.95,
    size: str = "screen",
    ax: Axes | None = None,
) -> Figure:
    """The mean of a metric for each agent, with confidence limits: lines against pulls or budget, bars for one point.

    Of runs at several deltas, lines are drawn against ln(1 / delta), and mean pulls beside the lower bound.

    Args:
        evaluation: what to draw.
        metric: a mean of `summary()`, as "error_rate", "score", "f1"; None: that of `main_metric`.
        path: also write the figure there; the suffix names the format (.png, .svg, .pdf).
        log: logarithmic axis of the metric. A mean of 0 over n episodes has no place there: it is drawn as a hollow
            marker at 1 / (2 n), with the words "0 of n"; so it is where `transform` makes it infinite or NaN.
        transform: applied to means and limits, elementwise, e.g. `numpy.log`.
        label: of the axis of the metric; or {label of an agent: its name in the figure}; None for the metric in words.
        title: of the figure; None: problem, instance and episodes; "" for none.
        level: of the confidence limits, in (0, 1).
        size: "screen", or for a paper "column" (3.3 inches wide, letters of 8 points, the legend below) or "page" (6.8
            inches). A PDF holds its fonts.
        ax: draw into these axes, with the legend inside; None makes a figure.

    Returns:
        The figure, which belongs to no window: `path`, or `figure.savefig`, writes it.
    """
    if path is not None:
        check_path(path)
    if title is not None and not isinstance(title, str):
        raise ValueError(f"title must be a text, or None, got {title!r:.200}")
    if ax is not None and not hasattr(ax, "get_figure"):
        raise ValueError(f"ax must be axes of Matplotlib, or None, got {ax!r:.200}")
    if isinstance(label, Mapping):
        evaluation, label = _renamed(evaluation, label), None
    if label is not None and not isinstance(label, str):
        raise ValueError(f"label must be a text, {{agent: name}}, or None, got {label!r:.200}")
    form = SIZES[choice("size", size, tuple(SIZES))]
    chosen = main_metric(evaluation.runs) if metric is None else metric
    if (words := label) is None:
        name, words = getattr(transform, "__name__", ""), metric_label(chosen)
        if transform is not None:
            words = f"{name}({words})" if name.isidentifier() else f"transformed {words}"
    series = series_of(evaluation, chosen, level, transform, evaluation.agents)
    texts = f"{words} ({100 * level:.4g} % interval)", pulls_label(evaluation)
    import matplotlib

    def drawing(into: Axes, share: float, wrap: int | None) -> bool:
        """Draw, names in lines of `wrap` letters; returns whether there are lines, which need a legend."""
        named = series if wrap is None else [replace(one, agent=textwrap.fill(one.agent, wrap)) for one in series]
        return draw(into, named, *texts, log, transform is not None, share)

    letters = 3 * form.letters // 2  # of a line of the title
    with matplotlib.rc_context({} if form.font is None else {"font.size": form.font, "legend.fontsize": form.font}):
        figure: Any
        if ax is None:
            from matplotlib.figure import Figure

            figure = Figure(figsize=(form.width, form.height), layout="constrained")
            axes = figure.subplots()
            width = _draw_own(figure, axes, form, evaluation, drawing)
            letters = min(letters, form.fitting(width, form.title))
        else:
            figure, axes = ax.get_figure(root=True), ax
            if drawing(ax, 1.0, None):
                ax.legend(frameon=False)
        if title := _title(evaluation) if title is None else title:
            filled = textwrap.fill(title, letters)
            axes.set_title(filled, fontsize=form.title)
            if ax is None and (more := filled.count("\n") - 1) > 0:  # lines beyond two
                width, height = figure.get_size_inches()
                figure.set_size_inches(width, height + LEGEND_LINE * more)
        if path is not None:
            save(figure, path)
    return figure  # type: ignore[no-any-return]
