"""What `render` shows of an episode: a table, or an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .setting import Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MODES", "image", "picture", "text"]

MODES = ("ansi", "rgb_array")

SHOWN = 20  # arms, at most, in a table
BAR = 20  # length of the longest bar
INSIDE, OUTSIDE = "#0072B2", "#D55E00"


def text(setting: Setting, pulls: NDArray[np.int64], mean: NDArray[np.float64], remaining: int, over: bool) -> str:
    """A table of the arms in decreasing order of their margins, those never pulled last.

    Of many arms it shows the 20 that matter most, and says how many it leaves out: by turns the next best arm of the
    plug-in answer, the next arm nearest to the boundary, and the next most pulled arm.

    Args:
        setting: of the environment.
        pulls: (K,), of coordinates (K, D). mean: (K,) or (K, D).
        remaining: pulls that are left; -1: there is no budget.
        over: the episode has ended.
    """
    seen = mean.copy()
    seen[pulls == 0] = np.nan
    pulls = pulls.reshape(len(mean), -1).sum(axis=1)
    margin, answer = setting.problem.margin(seen), setting.problem.plug_in(seen)
    head = f"{setting.problem!r}  {setting.source.name}  pulls {pulls.sum()}"
    head += f"  remaining {remaining}" if remaining >= 0 else ""
    arms = _that_matter(pulls, margin, answer)
    values = [" ".join("-" if np.isnan(x) else f"{x:.3f}" for x in np.atleast_1d(seen[k])) for k in arms]
    wide, each = max(4, *map(len, values)), max(1, -(-int(pulls.max()) // BAR))
    bar = f"bar: a # for {f'each {each} pulls' if each > 1 else 'each pull'}"
    lines = [head + ("  (ended)" if over else "")]
    lines.append(f"{'arm':>6} {'pulls':>8} {'margin':>9}  answer  {'mean':<{wide}}  {bar}")
    for k, value in zip(arms, values, strict=True):
        distance, place = "-" if np.isnan(margin[k]) else f"{margin[k]:.4f}", "in" if answer[k] else "out"
        row = f"{k:>6} {pulls[k]:>8} {distance:>9}  {place:<6}  {value:<{wide}}  {'#' * -(-int(pulls[k]) // each)}"
        lines.append(row.rstrip())
    if hidden := len(pulls) - len(arms):
        left = np.setdiff1d(np.arange(len(pulls)), arms)
        lines.append(
            f"{hidden} of {len(pulls)} arms are not shown: {answer[left].sum()} in the answer, "
            f"{(pulls[left] == 0).sum()} never pulled"
        )
    return "\n".join(lines)


def _that_matter(pulls: NDArray[np.int64], margin: NDArray[np.float64], answer: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The arms of the table, in its order; NaN, the margin of an arm without a mean, is behind all numbers."""
    best = np.argsort(-margin, kind="stable")
    if len(pulls) <= SHOWN:
        return best
    near, most = np.argsort(np.abs(margin), kind="stable"), np.argsort(-pulls, kind="stable")
    queues = [iter(queue.tolist()) for queue in (best[answer[best]], near, most)]
    chosen: set[int] = set()
    while len(chosen) < SHOWN:
        for queue in queues:
            following = next((k for k in queue if k not in chosen), None)
            if following is not None and len(chosen) < SHOWN:
                chosen.add(following)
    return best[np.isin(best, list(chosen))]


def picture(
    setting: Setting, pulls: NDArray[np.int64], mean: NDArray[np.float64], variance: NDArray[np.float64], over: bool
) -> Figure:
    """The arms' margins with two standard errors, coloured by the plug-in answer, above their pulls.

    The standard error is that of the samples. Where these are all the same, as of an arm pulled once, they tell nothing
    of it; the interval, dashed then, is that of the task's sigma.

    Args:
        setting: of the environment.
        pulls: (K,), of coordinates (K, D). mean, variance: (K,) or (K, D).
        over: the episode has ended.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    seen, arms, K = mean.copy(), np.arange(len(mean)), len(mean)
    seen[pulls == 0] = np.nan
    spread = variance.reshape(K, -1)
    told = spread > 0
    squares = np.where(told, spread, setting.task.sigma**2) / np.maximum(pulls.reshape(K, -1), 1)
    reach, pulls = 2 * np.sqrt(squares.max(axis=1)), pulls.reshape(K, -1).sum(axis=1)
    answer, margin = setting.problem.plug_in(seen), setting.problem.margin(seen)
    colours = np.where(answer, INSIDE, OUTSIDE)
    figure = Figure(figsize=(6.4, 4.8), dpi=100, layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    top.axhline(0.0, color="#7F7F7F", linewidth=1)
    for some, line in ((told.all(axis=1), "solid"), (~told.all(axis=1), "dashed")):
        shown = np.flatnonzero(some & (pulls > 0))
        ends = (margin[shown] - reach[shown], margin[shown] + reach[shown])
        top.vlines(shown, *ends, colors=list(colours[shown]), linestyles=line, label=line)
    pulled = np.flatnonzero(pulls)
    top.scatter(pulled, margin[pulled], c=list(colours[pulled]), s=18)
    top.set_ylabel("margin")
    top.set_title(f"{setting.problem.name}: {pulls.sum()} pulls{', ended' if over else ''}", fontsize=10)
    bottom.bar(arms, pulls, color=list(colours))
    bottom.set_ylabel("pulls")
    bottom.set_ylim(0, max(1.0, 1.05 * float(pulls.max())))
    bottom.set_xlabel("arm (blue: in the plug-in answer; dashed: by sigma, as all samples are alike)")
    for axis in (bottom.xaxis, bottom.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    return figure


def image(
    setting: Setting, pulls: NDArray[np.int64], mean: NDArray[np.float64], variance: NDArray[np.float64], over: bool
) -> NDArray[np.uint8]:
    """The `picture` of an episode as an array (480, 640, 3).

    Raises:
        ImportError: where matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        hint = 'pip install "bandit-envs[evaluation]"'
        raise ImportError(f"render_mode='rgb_array' needs matplotlib: {hint}") from None
    canvas: Any = FigureCanvasAgg(picture(setting, pulls, mean, variance, over))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
