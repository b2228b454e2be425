"""Katz-Samuels & Scott, ICML 2018, Figures 1 to 7: logarithm of the failure probability against time, one run each.

Beside the printed panels: experiments 1 and 3 with tolerance 0 and the Gaussian crowd workers, whose figures are in the
paper's supplement, with standard deviations of each worker, of each scale, and one for all; experiment 4 on rows of
norm 1, and experiment 5 on rows as written, as 4 needs them. LSA on margins is not in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from .claims import INF, Found, Number, last, ratio
from .declared import declared
from .panels import Exact, Numbers, bars

UCBE = ("MD-UCBE[.1]", "MD-UCBE[1]", "MD-UCBE[10]", "MD-UCBE[100]")
TWICE = "MD-APT pulls arm 4 at least twice as often as MD-SAR"
EVEN = "MD-SAR pulls its most pulled arm less often than MD-APT"
SENSITIVE = "the worst MD-UCBE fails at least 2 times as often as the best"
TENTH = "UA fails ten times as often as the better of MD-SAR and MD-APT"


def pulled(title: str, x: int, agent: str, arm: int, value: float, tolerance: float = 0.05) -> Number:
    """An agent's mean pulls of an arm at x, the last point, are a number that the paper prints, up to a part of it."""
    claim = f"{agent} pulls arm {arm} {value:g} times, within {100 * tolerance:g} %"
    least, most = value - tolerance * value, value + tolerance * value
    return Number(title, claim, lambda panel, result: float(panel.pulls(result, agent)[arm]), least, most, x)


def _most(agent: str, arm: int | None = None) -> Found:
    """An agent's mean pulls of an arm at the last point; of its most pulled one."""
    return lambda panel, result: float(np.max(panel.pulls(result, agent)[slice(None) if arm is None else arm]))


def _ratio(words: str, *of: Any) -> Callable[[str], Number]:
    """The claim with these words: of two numbers found in a panel, and the least and the most of their ratio."""
    return lambda panel: ratio(panel, words, *of)


def _workers(seed: int) -> Numbers:
    """Workers of the crowd that are good, bad and within the tolerance of the boundary."""
    envs: Any = gym.make_vec("bandit_envs/Feasible-v0", num_envs=1, instance="crowdsourcing").unwrapped
    margins = envs.problem.margin(envs.instance.arms.means[None])[0]
    free = np.abs(margins) <= envs.task.parameters["tolerance"]
    found = {"workers": len(free), "good": (margins > 0) & ~free, "bad": (margins < 0) & ~free, "irrelevant": free}
    return bars({name: int(np.sum(x)) for name, x in found.items()}, {"env_id": "bandit_envs/Feasible-v0"})


FIGURES = declared(
    "katz_samuels2018",
    {"workers of the crowd": Exact("workers of the crowd", _workers)},
    {
        "pulled": lambda panel, agent, arm, value: pulled(panel, 2000, agent, arm, value),
        "twice": _ratio(TWICE, _most("MD-APT", 4), _most("MD-SAR", 4), 2, INF, 2000),
        "even": _ratio(EVEN, _most("MD-SAR"), _most("MD-APT"), 0.0, 0.99),
        "sensitive": _ratio(SENSITIVE, last(max, *UCBE), last(min, *UCBE), 2),
        "tenth": _ratio(TENTH, last(min, "UA"), last(min, "MD-SAR", "MD-APT"), 10),
    },
)
