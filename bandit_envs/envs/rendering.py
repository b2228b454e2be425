"""The table that `render` shows of an episode."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .setting import Setting
from .views import arms_that_matter

SHOWN = 20  # arms, at most
BAR = 20  # length of the longest bar


def text(setting: Setting, pulls: NDArray[np.int64], mean: NDArray[np.float64], remaining: int, over: bool) -> str:
    """A table of the arms in decreasing order of their margins, of many arms the 20 that matter most.

    `pulls` (K,) or (K, D), `mean` (K,) or (K, D); `remaining`: -1 without a budget; `over`: the episode has ended.
    """
    seen = mean.copy()
    seen[pulls == 0] = np.nan
    pulls = pulls.reshape(len(mean), -1).sum(axis=1)
    margin, answer = setting.problem.margin(seen), setting.problem.plug_in(seen)
    head = f"{setting.problem!r}  {setting.source.name}  pulls {pulls.sum()}"
    head += f"  remaining {remaining}" if remaining >= 0 else ""
    arms = arms_that_matter(pulls, margin, answer, SHOWN)
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
