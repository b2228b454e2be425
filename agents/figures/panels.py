"""Panels of figures: what is run for one, and how it is drawn.

A panel's `run` yields a `Result`; the `points` of a panel are the places where claims are tested; its `rows` are the
numbers that it shows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ..core.optional import pandas
from ..evaluation import Evaluation, evaluate
from ..evaluation.plots import Series, draw, pulls_label, series_of
from ..evaluation.statistics import bootstrap_mean
from .store import Evaluator

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "Allocation",
    "AnyPanel",
    "Conduct",
    "Lead",
    "OverBound",
    "Panel",
    "Result",
    "Sweep",
    "Swept",
    "Transform",
    "exact_row",
    "unchanged",
]

Transform = Callable[[NDArray[np.float64], int], NDArray[np.float64]]


def unchanged(mean: NDArray[np.float64], K: int) -> NDArray[np.float64]:
    """The transform that leaves all as it is."""
    return mean


@dataclass(frozen=True)
class Conduct:
    """How panels are run.

    Attributes:
        episodes: overrides a panel's own number, unless None.
        seed: root seed.
        progress: whether to tell how far the run is, as for `evaluate`; None: if standard error is a terminal.
        jobs: parts of the episodes that run at the same time, as for `evaluate`.
        evaluator: runs the agents, or knows what came out when they were run before.
    """

    episodes: int | None = None
    seed: int = 0
    progress: bool | None = None
    jobs: int = 1
    evaluator: Evaluator = evaluate

    def evaluate(self, agents: Mapping[str, str], env_id: str, episodes: int, **asked: Any) -> Evaluation:
        """The agents on an environment, in so many episodes unless other ones are wanted; `asked` is for `evaluate`."""
        return self.evaluator(
            dict(agents),
            env_id,
            episodes=self.episodes or episodes,
            seed=self.seed,
            progress=self.progress,
            jobs=self.jobs,
            **asked,
        )


class Result(Protocol):
    """What running a panel yields; an `Evaluation` is one."""

    @property
    def agents(self) -> list[str]:
        """Labels of the lines; each gets a style of its own."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """How the result came about, JSON-able."""
        ...

    def summary(self, level: float = ...) -> pd.DataFrame:
        """The numbers as a table, with intervals of this confidence level."""
        ...


R = TypeVar("R", bound=Result)


class AnyPanel(ABC, Generic[R]):
    """What every panel has.

    Attributes:
        title: a name that is unique in the figure.
        label: of the axis of values.
    """

    title: str
    label: str

    @property
    def labels(self) -> list[str]:
        """Labels of the agents that are drawn."""
        return list(getattr(self, "agents", ()))

    @abstractmethod
    def run(self, how: Conduct) -> R:
        """Run the panel."""

    @abstractmethod
    def rows(self, result: R, level: float, transform: Transform) -> list[dict[str, Any]]:
        """The numbers that the panel shows: agent, x, episodes, mean, low, high, and `drawn`, the transformed mean.

        Args:
            result: what `run` has returned.
            level: confidence level of the intervals.
            transform: as for `draw`.
        """

    @abstractmethod
    def draw(self, ax: Axes, result: R, level: float, transform: Transform, order: Sequence[str]) -> None:
        """Draw a result.

        Args:
            ax: the axes to draw into.
            result: what `run` has returned.
            level: confidence level of the intervals.
            transform: applied to means and limits, given the number of arms.
            order: agents of the paper's figures; an agent's style is that of its place here.
        """


def exact_row(agent: str, value: float, x: float = math.nan) -> dict[str, Any]:
    """A number without chance among the rows of a panel."""
    nan = math.nan
    return {"agent": agent, "x": x, "episodes": nan, "mean": value, "low": nan, "high": nan, "drawn": value}


class Lines(AnyPanel[R]):
    """A panel of lines, one for each agent."""

    @property
    @abstractmethod
    def places(self) -> Sequence[float]:
        """The values on the horizontal axis."""

    @abstractmethod
    def series(self, result: R, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        """The points of every line; arguments as for `draw`."""

    def rows(self, result: R, level: float, transform: Transform) -> list[dict[str, Any]]:
        """The points of all lines."""
        order = result.agents
        plain = self.series(result, level, unchanged, order)
        changed = plain if transform is unchanged else self.series(result, level, transform, order)
        return [
            {
                "agent": one.agent,
                "x": float(x),
                "episodes": one.episodes,
                "mean": float(one.mean[i]),
                "low": float(one.low[i]),
                "high": float(one.high[i]),
                "drawn": float(other.mean[i]),
            }
            for one, other in zip(plain, changed, strict=True)
            for i, x in enumerate(self.places if one.x is None else one.x)
        ]


@dataclass(frozen=True)
class Panel(Lines[Evaluation]):
    """Several agents on one environment, a metric against the number of pulls.

    Attributes:
        title: a name that is unique in the figure.
        env_id: the environment.
        env_kwargs: keyword arguments of the environment.
        budgets: numbers of pulls.
        agents: {label: name of the agent}.
        episodes: runs per point in the paper.
        metric: what is drawn.
        label: of the axis of values.
        at: whether the numbers of pulls are checkpoints of one run rather than budgets of several runs.
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

    def run(self, how: Conduct) -> Evaluation:
        """Evaluate the agents at all numbers of pulls."""
        numbers: dict[str, Any] = {"at" if self.at else "budgets": self.budgets}
        return how.evaluate(self.agents, self.env_id, self.episodes, env_kwargs=self.env_kwargs, **numbers)

    def points(self, result: Evaluation) -> list[tuple[int, Evaluation, dict[str, int]]]:
        """Per point: the number of pulls, the evaluation that holds it, and which of its rows."""
        return [(x, result, {"at" if self.at else "budget": x}) for x in self.budgets]

    @property
    def places(self) -> Sequence[float]:
        """The numbers of pulls."""
        return self.budgets

    def series(self, result: Evaluation, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        """A mean with its interval at each number of pulls."""
        K = result.runs[0].task.K
        return series_of(result, self.metric, level, lambda mean: transform(mean, K), order)

    def draw(self, ax: Axes, result: Evaluation, level: float, transform: Transform, order: Sequence[str]) -> None:
        """Draw a line with a confidence band for each agent."""
        series = self.series(result, level, transform, order)
        draw(ax, series, f"{self.label} ({100 * level:.4g} % interval)", pulls_label(result), False, True)


@dataclass(frozen=True)
class Allocation(Panel):
    """How the pulls of the last point spread over the arms of a fixed instance, in decreasing order of their means."""

    metric: str = ""
    label: str = "mean pulls"

    def by_rank(self, result: Evaluation, agent: str) -> NDArray[np.float64]:
        """Mean pulls of an agent by the rank of the arm, (K,)."""
        envs: Any = gym.make_vec(self.env_id, num_envs=1, **self.env_kwargs)
        table, column = result.pulls, "at" if self.at else "budget"
        pulls = table[(table["agent"] == agent) & (table[column] == self.budgets[-1])].sort_values("arm")["pulls"]
        ranked: NDArray[np.float64] = pulls.to_numpy()[np.argsort(-envs.unwrapped.instance.arms.means, kind="stable")]
        return ranked

    def series(self, result: Evaluation, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        """Mean pulls of each arm; sums over the episodes have no interval."""
        none = np.full(result.runs[0].task.K, np.nan)
        rank, episodes = np.arange(1.0, len(none) + 1), result.settings["episodes"]
        return [
            Series(agent, order.index(agent), rank, self.by_rank(result, agent), none, none, none, episodes)
            for agent in result.agents
        ]

    def draw(self, ax: Axes, result: Evaluation, level: float, transform: Transform, order: Sequence[str]) -> None:
        """Draw a line for each agent."""
        draw(ax, self.series(result, level, transform, order), self.label, "arm, by decreasing mean", False, True)


@dataclass(eq=False)
class Swept:
    """Evaluations of the same agents on environments that differ in one value.

    Attributes:
        evaluations: by that value.
    """

    evaluations: dict[float, Evaluation]

    @property
    def agents(self) -> list[str]:
        """Labels of the agents."""
        return next(iter(self.evaluations.values())).agents

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the evaluations, by the value."""
        return {str(x): evaluation.settings for x, evaluation in self.evaluations.items()}

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """The summaries one below the other, with the value in the column x."""
        parts = [evaluation.summary(level).assign(x=x) for x, evaluation in self.evaluations.items()]
        table: pd.DataFrame = pandas().concat(parts, ignore_index=True)
        return table


@dataclass(frozen=True)
class Sweep(Lines[Swept]):
    """Several agents, a metric at the end of the episode against a value in which the environments differ.

    Attributes:
        title: a name that is unique in the figure.
        env_id: the environment.
        sweep: {value: keyword arguments of the environment}.
        agents: {label: name of the agent}.
        episodes: runs per point in the paper.
        metric: what is drawn.
        label: of the axis of the metric.
        xlabel: of the axis of the value.
        log: whether the axis of the metric is logarithmic.
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

    def horizons(self, x: float) -> Sequence[int] | None:
        """The budgets of the runs on the environment of a value; None: its own."""
        return None

    def run(self, how: Conduct) -> Swept:
        """Evaluate the agents on each of the environments."""
        return Swept(
            {
                x: how.evaluate(self.agents, self.env_id, self.episodes, env_kwargs=kwargs, budgets=self.horizons(x))
                for x, kwargs in self.sweep.items()
            }
        )

    def points(self, result: Swept) -> list[tuple[float, Evaluation, dict[str, int]]]:
        """Per point: the value and its evaluation, whose only row is meant."""
        return [(x, evaluation, {}) for x, evaluation in result.evaluations.items()]

    @property
    def places(self) -> Sequence[float]:
        """The values in which the environments differ."""
        return list(self.sweep)

    def series(self, result: Swept, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        """A mean with its interval at each value."""
        columns: dict[str, list[Series]] = {agent: [] for agent in result.agents}
        for evaluation in result.evaluations.values():
            K = evaluation.runs[0].task.K
            change = lambda mean, K=K: transform(mean, K)
            for one in series_of(evaluation, self.metric, level, change, order):
                columns[one.agent].append(one)
        x, join = np.array(list(result.evaluations), np.float64), np.concatenate
        return [
            Series(
                agent,
                parts[0].style,
                x,
                join([one.mean for one in parts]),
                join([one.low for one in parts]),
                join([one.high for one in parts]),
                join([one.floor for one in parts]),
                parts[0].episodes,
            )
            for agent, parts in columns.items()
        ]

    def draw(self, ax: Axes, result: Swept, level: float, transform: Transform, order: Sequence[str]) -> None:
        """Draw a line with a confidence band for each agent."""
        series = self.series(result, level, transform, order)
        draw(ax, series, f"{self.label} ({100 * level:.4g} % interval)", self.xlabel, self.log, True)


@dataclass(frozen=True)
class OverBound(Sweep):
    """A sweep whose pulls are drawn as multiples of the lower bound on their mean, which each environment has."""

    def series(self, result: Swept, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        """A mean with its interval at each value, over the bound there; NaN where none is known."""
        bounds = np.array([one.runs[0].lower_bound for one in result.evaluations.values()])
        found = super().series(result, level, transform, order)
        return [
            replace(one, mean=one.mean / bounds, low=one.low / bounds, high=one.high / bounds, floor=one.floor / bounds)
            for one in found
        ]


@dataclass(frozen=True)
class Lead(Sweep):
    """How many pulls earlier than a rival's an agent's metric falls, against a value in which the environments differ.

    It is the area between the two curves of the metric against the budget: the sum over the budgets of the rival's
    metric less the agent's, times the step between budgets. Unlike a difference at one budget it does not vanish where
    both curves are 1, or 0.

    Attributes:
        budgets: {value: equally spaced budgets, up to where the metric is 0}.
        rival: label of the agent that the others are compared with.
    """

    budgets: Mapping[float, Sequence[int]] = field(default_factory=dict)
    rival: str = ""

    def horizons(self, x: float) -> Sequence[int]:
        return self.budgets[x]

    def leads(self, result: Swept, agent: str, rival: str) -> dict[float, NDArray[np.float64]]:
        """Pulls by which an agent is ahead of a rival, (episodes,) for each value."""
        return {x: self._area(x, one, rival) - self._area(x, one, agent) for x, one in result.evaluations.items()}

    def _area(self, x: float, evaluation: Evaluation, agent: str) -> NDArray[np.float64]:
        """The area below the curve of an agent, (episodes,)."""
        step = self.budgets[x][1] - self.budgets[x][0]
        columns = [evaluation.column(agent, self.metric, budget=budget) for budget in self.budgets[x]]
        return np.asarray(step * np.sum(columns, axis=0), np.float64)

    def series(self, result: Swept, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        """The mean lead of each agent but the rival at each value; it is not transformed."""
        x, made = np.array(list(result.evaluations), np.float64), []
        for agent in (name for name in result.agents if name != self.rival):
            values = np.stack(list(self.leads(result, agent, self.rival).values()), axis=1)
            low, high = bootstrap_mean(values, level)
            none = np.full(len(x), np.nan)
            made.append(Series(agent, order.index(agent), x, values.mean(axis=0), low, high, none, len(values)))
        return made
