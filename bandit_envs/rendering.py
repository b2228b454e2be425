"""What `render` shows of an episode: a table, or an image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .setting import Setting

__all__ = ["MODES", "image", "text"]

MODES = ("ansi", "rgb_array")

SHOWN = 20


def text(setting: Setting, pulls: NDArray[np.int64], mean: NDArray[np.float64], remaining: int, over: bool) -> str:
    """A table of the arms: pulls (K,) or of coordinates (K, D), means, margins, plug-in answer; at most 20 rows."""
    seen = mean.copy()
    seen[pulls == 0] = np.nan
    pulls = pulls.reshape(len(mean), -1).sum(axis=1)
    margin, answer = setting.problem.margin(seen), setting.problem.plug_in(seen)
    head = f"{setting.problem!r}  {setting.source.name}  pulls {pulls.sum()}"
    head += f"  remaining {remaining}" if remaining >= 0 else ""
    lines = [head + ("  (ended)" if over else ""), f"{'arm':>6} {'pulls':>8} {'margin':>9}  in  mean"]
    width = max(int(pulls.max()), 1)
    for k in np.argsort(-pulls, kind="stable")[:SHOWN]:
        values = " ".join(f"{x:.3f}" for x in np.atleast_1d(seen[k]))
        bar = "#" * int(np.ceil(20 * pulls[k] / width))
        lines.append(f"{k:>6} {pulls[k]:>8} {margin[k]:>9.4f}  {'*' if answer[k] else '.'}   {values}  {bar}")
    if len(pulls) > SHOWN:
        lines.append(f"... and {len(pulls) - SHOWN} more arms")
    return "\n".join(lines)


def image(
    setting: Setting, pulls: NDArray[np.int64], mean: NDArray[np.float64], variance: NDArray[np.float64], over: bool
) -> NDArray[np.uint8]:
    """The arms' margins with two standard errors, coloured by the plug-in answer, above their pulls: (480, 640, 3).

    Args:
        setting: of the environment.
        pulls: (K,), of coordinates (K, D). mean, variance: (K,) or (K, D).
        over: the episode has ended.

    Raises:
        ImportError: where matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        hint = 'pip install "bandit-envs[evaluation]"'
        raise ImportError(f"render_mode='rgb_array' needs matplotlib: {hint}") from None
    seen, arms, K = mean.copy(), np.arange(len(mean)), len(mean)
    seen[pulls == 0] = np.nan
    squares = variance.reshape(K, -1) / np.maximum(pulls.reshape(K, -1), 1)  # of the standard errors
    reach, pulls = 2 * np.sqrt(squares.max(axis=1)), pulls.reshape(K, -1).sum(axis=1)
    pulled = np.flatnonzero(pulls)
    answer, margin = setting.problem.plug_in(seen), setting.problem.margin(seen)
    colours = np.where(answer, "#0072B2", "#D55E00")
    figure = Figure(figsize=(6.4, 4.8), dpi=100, layout="constrained")
    canvas: Any = FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, sharex=True)
    top.axhline(0.0, color="#7F7F7F", linewidth=1)
    top.vlines(pulled, *(margin[pulled] + sign * reach[pulled] for sign in (-1, 1)), colors=list(colours[pulled]))
    top.scatter(pulled, margin[pulled], c=list(colours[pulled]), s=18)
    top.set_ylabel("margin")
    top.set_title(f"{setting.problem.name}: {pulls.sum()} pulls{', ended' if over else ''}", fontsize=10)
    bottom.bar(arms, pulls, color=list(colours))
    bottom.set_ylabel("pulls")
    bottom.set_xlabel("arm (blue: in the plug-in answer)")
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
