"""Panels of figures: what is run for one, and how it is drawn.

A panel's `run` yields a result, which has `agents` (labels, one style each), `summary()` (a table) and `settings`
(JSON-able); its `points` are the cells that claims are tested on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ..core.optional import pandas
from ..evaluation import Evaluation, evaluate
from ..evaluation.plots import Series, draw, pulls_label, series_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Allocation", "AnyPanel", "Panel", "Sweep", "Swept", "Transform"]

Transform = Callable[[NDArray[np.float64], int], NDArray[np.float64]]


class AnyPanel(ABC):
    """What every panel has.

    Attributes:
        title: unique in the figure. label: of the axis of values.
    """

    title: str
    label: str

    @property
    def key(self) -> str:
        """Panels of the same key share one run."""
        return repr(self)

    @abstractmethod
    def run(self, episodes: int | None, seed: int, progress: bool | None) -> Any:
        """The result; `episodes` overrides the panel's own number."""

    @abstractmethod
    def draw(self, ax: Axes, result: Any, level: float, transform: Transform, order: Sequence[str]) -> None:
        """Draw the result; an agent's style is that of its place in `order`."""


@dataclass(frozen=True)
class Panel(AnyPanel):
    """Agents {label: name} on one environment, a metric against the number of pulls.

    Attributes:
        budgets: numbers of pulls. episodes: runs per point in the paper. metric: what is drawn.
        at: the numbers of pulls are checkpoints of one run, not budgets.
    """

    title: str
    env_id: str
    env_kwargs: Mapping[str, Any]
    budgets: Sequence[int]
    agents: Mapping[str, str]
    episodes: int
    metric: str
    label: str
    at: bool = False

    @property
    def key(self) -> str:
        return repr(replace(self, title="", metric="", label=""))  # other metrics of the same runs

    def run(self, episodes: int | None, seed: int, progress: bool | None) -> Evaluation:
        numbers: dict[str, Any] = {"at" if self.at else "budgets": self.budgets}
        return evaluate(
            dict(self.agents),
            self.env_id,
            episodes=episodes or self.episodes,
            seed=seed,
            env_kwargs=self.env_kwargs,
            progress=progress,
            **numbers,
        )

    def points(self, result: Evaluation) -> list[tuple[int, Evaluation, dict[str, int]]]:
        """Per point: the number of pulls, the evaluation that holds it, and where in it."""
        return [(x, result, {"at" if self.at else "budget": x}) for x in self.budgets]

    def draw(self, ax: Axes, result: Evaluation, level: float, transform: Transform, order: Sequence[str]) -> None:
        K = result.runs[0].task.K
        series = series_of(result, self.metric, level, lambda mean: transform(mean, K), order)
        draw(ax, series, f"{self.label} ({100 * level:.4g} % interval)", pulls_label(result), False, True)


@dataclass(frozen=True)
class Allocation(Panel):
    """How the pulls of the last point spread over the arms, in decreasing order of their means, of a fixed instance."""

    metric: str = ""
    label: str = "mean pulls"

    def by_rank(self, result: Evaluation, agent: str) -> NDArray[np.float64]:
        """Mean pulls of an agent by the rank of the arm, (K,)."""
        envs: Any = gym.make_vec(self.env_id, num_envs=1, **self.env_kwargs)
        table, column = result.pulls, "at" if self.at else "budget"
        pulls = table[(table["agent"] == agent) & (table[column] == self.budgets[-1])].sort_values("arm")["pulls"]
        ranked: NDArray[np.float64] = pulls.to_numpy()[np.argsort(-envs.unwrapped.instance.arms.means, kind="stable")]
        return ranked

    def draw(self, ax: Axes, result: Evaluation, level: float, transform: Transform, order: Sequence[str]) -> None:
        none = np.full(result.runs[0].task.K, np.nan)  # sums over the episodes have no interval
        rank = np.arange(1.0, len(none) + 1)
        series = [
            Series(agent, order.index(agent), rank, self.by_rank(result, agent), none, none) for agent in result.agents
        ]
        draw(ax, series, self.label, "arm, by decreasing mean", False, True)


@dataclass(eq=False)
class Swept:
    """Evaluations of the same agents, by the value of what differs between their environments."""

    evaluations: dict[float, Evaluation]

    @property
    def agents(self) -> list[str]:
        return next(iter(self.evaluations.values())).agents

    @property
    def settings(self) -> dict[str, Any]:
        return {str(x): evaluation.settings for x, evaluation in self.evaluations.items()}

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """The summaries one below the other, with the value in the column x."""
        parts = [evaluation.summary(level).assign(x=x) for x, evaluation in self.evaluations.items()]
        table: pd.DataFrame = pandas().concat(parts, ignore_index=True)
        return table


@dataclass(frozen=True)
class Sweep(AnyPanel):
    """Agents {label: name}, a metric at the end of the episode against what differs between environments.

    Attributes:
        sweep: {x: keyword arguments of the environment}. episodes, metric: as for `Panel`. xlabel: what x is.
        log: logarithmic axis of the metric.
    """

    title: str
    env_id: str
    sweep: Mapping[float, Mapping[str, Any]]
    agents: Mapping[str, str]
    episodes: int
    metric: str
    label: str
    xlabel: str
    log: bool = False

    def run(self, episodes: int | None, seed: int, progress: bool | None) -> Swept:
        return Swept(
            {
                x: evaluate(
                    dict(self.agents),
                    self.env_id,
                    episodes=episodes or self.episodes,
                    seed=seed,
                    env_kwargs=kwargs,
                    progress=progress,
                )
                for x, kwargs in self.sweep.items()
            }
        )

    def points(self, result: Swept) -> list[tuple[float, Evaluation, dict[str, int]]]:
        """Per point: x, its evaluation, and no further address."""
        return [(x, evaluation, {}) for x, evaluation in result.evaluations.items()]

    def draw(self, ax: Axes, result: Swept, level: float, transform: Transform, order: Sequence[str]) -> None:
        columns: dict[str, list[Series]] = {agent: [] for agent in result.agents}
        for evaluation in result.evaluations.values():
            K = evaluation.runs[0].task.K
            change = lambda mean, K=K: transform(mean, K)
            for one in series_of(evaluation, self.metric, level, change, order):
                columns[one.agent].append(one)
        x, join = np.array(list(result.evaluations), np.float64), np.concatenate
        series = [
            Series(
                agent,
                parts[0].style,
                x,
                join([one.mean for one in parts]),
                join([one.low for one in parts]),
                join([one.high for one in parts]),
            )
            for agent, parts in columns.items()
        ]
        draw(ax, series, f"{self.label} ({100 * level:.4g} % interval)", self.xlabel, self.log, True)
