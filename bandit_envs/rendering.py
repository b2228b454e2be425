"""A picture of an episode, as text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .setting import Setting

__all__ = ["text"]

SHOWN = 20


def text(
    setting: Setting, pulls: NDArray[np.int64], mean: NDArray[np.float64], remaining: int, over: bool
) -> str:  # fmt: skip
    """A table of the arms: pulls (K,), means (K,) or (K, D), margins and the plug-in answer; at most 20 rows."""
    seen = mean.copy()
    seen[pulls == 0] = np.nan
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
