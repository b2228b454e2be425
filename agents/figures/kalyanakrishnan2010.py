"""Kalyanakrishnan & Stone, ICML 2010: Figure 1, the bounds of pi_1 to pi_4 when they stop; Figures 2 and 3, rivals.

Figures 2 and 3 run on one draw of the paper's instance (its own is not printed); so do the two variants that the text
mentions. RACING is shown with both of its bounds, the tightest per arm.

delta^c is by a policy's own bounds: Hoeffding's for pi_1, pi_2 and pi_3, the tightest for ADAPT. The range in the
empirical Bernstein bound is the width of a sample, sqrt(12), and in a second panel 1: the paper's theory is for
Bernoulli arms, and that its experiments have kept their range is a hypothesis, by which its numbers come nearer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from bandit_envs import Categorical, Instance
from bandit_envs.problems import Deviation, Samples, deviations

from ..evaluation.plots import style
from ..registry import make
from .claims import Number, ratio
from .declared import declared
from .panels import Allocation, Exact, Numbers, Sweep, bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENV = "bandit_envs/TopK-v0"
POLICIES = {"pi1 (UNIFORM)": "pi1", "pi2": "pi2", "pi3": "pi3", "pi4 (ADAPT)": "adapt"}

# --- Figure 1 --------------------------------------------------------------------------------------------------------


def _schematic() -> Instance:
    """Five arms on {0, 0.1, ..., 1} with small spreads, so that the empirical Bernstein bound has something to gain."""
    values = np.arange(11) / 10
    means, spreads = np.array([0.85, 0.6, 0.45, 0.3, 0.1]), np.array([0.1, 0.08, 0.08, 0.1, 0.1])
    weights = np.exp(-0.5 * ((values - means[:, None]) / spreads[:, None]) ** 2)
    return Instance(Categorical(values, weights), "five-arms", {"": {"shuffle_arms": False}})


def _bounds(agent: str, label: str, seed: int, epsilon: float = 0.1, delta: float = 0.05) -> Numbers:
    """The pulls of one policy when it stops, in one episode on five arms with m = 2, drawn with its bounds."""
    env: Any = gym.make(
        ENV, instance=_schematic(), k=2, epsilon=epsilon, criterion="each", delta=delta, actions="full"
    ).unwrapped
    policy, (observation, _), state, over = make(agent, env), env.reset(seed=seed), None, False
    while not over:
        action, state = policy.predict(observation, state)
        observation, _, over, *_ = env.step(action)
    order = np.argsort(-observation["mean"], kind="stable")
    pulls, mean, variance = (observation[name][order] for name in ("pulls", "mean", "variance"))
    high, d, W = np.arange(5) < 2, np.full(5, delta / 5), env.task.width
    if agent in ("pi1", "pi2"):
        cut = np.nan
        width = W * np.sqrt(np.log(5 / delta) / (2 * pulls))
    else:
        bound = Deviation(epsilon, W, W, agent == "adapt", False, np.inf)
        deviations(Samples(pulls, mean, variance), high, bound, d)
        error = np.sqrt(variance / (pulls - 1))
        cut = mean[2] + (mean[1] + epsilon - mean[2]) * error[2] / (error[1] + error[2])
        width = np.where(high, mean + epsilon - cut, cut - mean)

    def draw(ax: Axes, order: Sequence[str]) -> None:
        """The interval of each arm on the side that matters, in the policy's colour; filled: in High."""
        colour = style(order.index(label))["color"]
        shown = mean + np.where(high, epsilon, 0.0)
        end = shown + np.where(high, -1, 1) * width
        for i in range(5):
            ax.plot([i + 1, i + 1], [shown[i], end[i]], color=colour, linewidth=1.8)
            ax.plot([i + 1], [shown[i]], "o", color=colour, mfc=colour if high[i] else "white")
            ax.plot([i + 1], [end[i]], "_", color=colour, markersize=14)
            side: dict[str, Any] = {"xytext": (0, -6), "va": "top"} if high[i] else {"xytext": (0, 6), "va": "bottom"}
            text = f"{d[i]:.1g}, {width[i]:.2g}\nN = {pulls[i]:,}"
            ax.annotate(text, (i + 1, end[i]), textcoords="offset points", ha="center", fontsize=7, **side)
        if np.isfinite(cut):
            ax.axhline(cut, color="#7F7F7F", linewidth=0.8, linestyle="dashed")
        ax.set_xlim(0.4, 5.6)
        ax.margins(y=0.18)
        ax.set_xticks(np.arange(1, 6), [f"({i})" for i in range(1, 6)])
        ax.set(xlabel=f"arm, by empirical mean; {pulls.sum():,} pulls", ylabel="mean (filled: in High, + epsilon)")

    return Numbers([(label, i + 1.0, float(n)) for i, n in enumerate(pulls)], draw, {"agent": label}, [label])


# --- Figures 2 and 3 -------------------------------------------------------------------------------------------------

INSTANCE = "kalyanakrishnan2010"


def _schedules(seed: int) -> Numbers:
    """Pulls that DIRECT and HALVING take at the epsilon and delta of the instance, without a single one of them."""
    env: Any = gym.make(ENV, actions="full", instance=INSTANCE).unwrapped
    made = {name: make(name.lower(), env) for name in ("DIRECT", "HALVING")}
    pulls = {name: int(one.sizes[:-1] @ one.times) for name, one in made.items()}
    settings, most = {"env_id": ENV, "env_kwargs": {"instance": INSTANCE}}, 30 * max(pulls.values())
    return bars(pulls, settings, xscale="log", xlabel="pulls", xlim=(1e4, most))


def peaks(panel: str, agent: str, *ranks: int) -> Number:
    """In a panel of pulls by rank, an agent pulls the arms of these ranks most, counted from 1."""

    def found(panel: Allocation, result: Any) -> float:
        """How many of these ranks are among as many most pulled ones."""
        most = np.argsort(-panel.by_rank(result, agent), kind="stable")[: len(ranks)] + 1
        return len(set(most.tolist()) & set(ranks))

    return Number(panel, f"{agent} pulls ranks {' and '.join(map(str, ranks))} most", found, len(ranks))


def share(panel: str, more: str, less: str, first: int, last: int) -> Number:
    """In a panel of pulls by rank, an agent spends a larger share of its pulls on these ranks than another agent."""

    def found(panel: Allocation, result: Any) -> float:
        """The difference of the shares, of the pulls of all episodes."""
        pulls = [panel.by_rank(result, agent) for agent in (more, less)]
        one, other = (some[first - 1 : last].sum() / some.sum() for some in pulls)
        return float(one - other)

    claim = f"{more} spends a larger share on ranks {first} to {last} than {less}"
    return Number(panel, claim, found, np.nextafter(0, 1))  # above 0


def over_draws(panel: str, agent: str, of: str) -> Number:
    """The median or the least over the draws of an agent's mean pulls is what the paper prints, 22,000, within 20 %."""

    def found(panel: Sweep, result: Any) -> float:
        means = [x.mean() for x in panel.values(result, agent).values()]
        return float(np.median(means) if of == "median" else np.min(means))

    text = f"{agent}: the {of} over the draws is 22,000 within 20%"
    return Number(panel, text, found, 22_000 * (1 - 0.2), 22_000 * (1 + 0.2))


def sides(panel: str, agent: str) -> Number:
    """The pulls of ranks 1 to 15 and of ranks 16 to 30 differ by a factor of at most 1.25."""
    above, below = (lambda p, r, i=i: p.by_rank(r, agent)[i : i + 15].sum() for i in (0, 15))
    text = f"{agent}: pulls of ranks 1 to 15 over those of 16 to 30 within a factor of 1.25"
    return ratio(panel, text, above, below, 0.8, 1.25)


FIGURES = declared(
    "kalyanakrishnan2010",
    {
        "DIRECT and HALVING": Exact("DIRECT and HALVING", _schedules),
        **{label: Exact(label, partial(_bounds, name, label), [label]) for label, name in POLICIES.items()},
    },
    {
        "peaks": lambda panel, agent: peaks(panel, agent, 15, 16),
        "share": share,
        "over draws": over_draws,
        "sides": sides,
    },
)
