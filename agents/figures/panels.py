"""Panels of figures: the evaluations that one needs, and its plot.

Four kinds: `Panel`, a metric against the number of pulls; `Allocation`, the pulls of each arm; `Sweep`, a metric
against a value in which environments differ; `Exact`, numbers without chance. A panel's `run` yields a `Result`; its
`rows` are the numbers that it shows; its `values` are those of the episodes, by which claims are tested.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ..evaluation import Evaluation, evaluate
from ..evaluation.plots import Series, draw, pulls_label, series_of
from ..evaluation.statistics import bootstrap_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Transform = Callable[[NDArray[np.float64], int], NDArray[np.float64]]


def unchanged(mean: NDArray[np.float64], K: int) -> NDArray[np.float64]:
    """The transform that leaves all as it is."""
    return mean


def log_rates(rate: NDArray[np.float64], K: int) -> NDArray[np.float64]:
    """Natural logarithm; NaN, a gap in the line, where nothing failed."""
    return np.log(np.where(rate > 0, rate, np.nan))


@dataclass(frozen=True)
class Conduct:
    """How panels are run; as for `evaluate`."""

    episodes: int | None = None  # overrides a panel's own number, unless None
    seed: int = 0
    progress: bool | None = None
    jobs: int = 1
    evaluator: Callable[..., Evaluation] = evaluate  # or what knows what came out when the agents were run before

    def evaluate(self, agents: Mapping[str, str], env_id: str, episodes: int, **asked: object) -> Evaluation:
        """The agents on an environment, in so many episodes unless other ones are wanted; `asked` is for `evaluate`."""
        how: dict[str, object] = {"seed": self.seed, "progress": self.progress, "jobs": self.jobs}
        return self.evaluator(dict(agents), env_id, episodes=self.episodes or episodes, **how, **asked)


R = TypeVar("R", bound="Result")  # what running a panel yields


class AnyPanel(ABC, Generic[R]):
    """What every panel has."""

    title: str  # unique in the figure
    agents: Collection[str]  # labels of those that are drawn

    @abstractmethod
    def run(self, how: Conduct) -> R:
        """Run the panel; an `OSError` where its data cannot be had."""

    @abstractmethod
    def rows(self, result: R, level: float, transform: Transform) -> list[dict[str, object]]:
        """The numbers that the panel shows: agent, x, episodes, mean, low, high, and `drawn`, the transformed mean."""

    @abstractmethod
    def draw(self, ax: Axes, result: R, level: float, transform: Transform, order: Sequence[str]) -> None:
        """Draw what `run` has returned.

        Args:
            ax: the axes to draw into. result: what is drawn. level: confidence level of the intervals.
            transform: applied to means and limits, given the number of arms.
            order: agents of the paper's figures; an agent's style is that of its place here.
        """


class Lines(AnyPanel[R]):
    """A panel of lines, one for each agent."""

    @property
    @abstractmethod
    def places(self) -> Sequence[float]:
        """The values on the horizontal axis, (P,): the points at which claims are tested."""

    @abstractmethod
    def values(self, result: R, agent: str) -> dict[float, NDArray[np.generic]]:
        """The panel's metric in each episode of an agent, (episodes,) for each point, without the transform."""

    @abstractmethod
    def series(self, result: R, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        """The points of every line; arguments as for `draw`."""

    @abstractmethod
    def axes(self, result: R, level: float) -> tuple[str, str, bool]:
        """The labels of the axes of values and of points, and whether the first one is logarithmic."""

    def rows(self, result: R, level: float, transform: Transform) -> list[dict[str, object]]:
        order = result.agents
        plain = self.series(result, level, unchanged, order)
        changed = plain if transform is unchanged else self.series(result, level, transform, order)
        return [
            {"agent": one.agent, "x": float(x), "episodes": one.episodes}
            | {name: float(getattr(one, name)[i]) for name in ("mean", "low", "high")}
            | {"drawn": float(other.mean[i])}
            for one, other in zip(plain, changed, strict=True)
            for i, x in enumerate(self.places if one.x is None else one.x)
        ]

    def draw(self, ax: Axes, result: R, level: float, transform: Transform, order: Sequence[str]) -> None:
        draw(ax, self.series(result, level, transform, order), *self.axes(result, level), True)


@dataclass(frozen=True)
class Panel(Lines[Evaluation]):
    """Several agents on one environment, a metric against the number of pulls."""

    title: str
    env_id: str
    env_kwargs: Mapping[str, Any]
    budgets: Sequence[int]  # numbers of pulls
    agents: Mapping[str, str]  # {label: name of the agent}
    episodes: int  # runs per point
    metric: str
    label: str  # of the axis of values
    at: bool = False  # whether the numbers of pulls are checkpoints of one run rather than budgets of several runs
    trials: float | None = None  # runs per point in the paper; None: as many as `episodes`; NaN: it does not say

    @property
    def places(self) -> Sequence[float]:
        return self.budgets

    def run(self, how: Conduct) -> Evaluation:
        numbers: dict[str, object] = {"at" if self.at else "budgets": self.budgets}
        return how.evaluate(self.agents, self.env_id, self.episodes, env_kwargs=self.env_kwargs, **numbers)

    def values(self, result: Evaluation, agent: str) -> dict[float, NDArray[np.generic]]:
        kind = "at" if self.at else "budget"
        return {x: result.column(agent, self.metric, **{kind: x}) for x in self.budgets}

    def pulls(self, result: Evaluation, agent: str) -> NDArray[np.float64]:
        """Mean pulls of each arm by an agent at the last point, (K,)."""
        table = result.pulls
        chosen = (table["agent"] == agent) & (table["at" if self.at else "budget"] == self.budgets[-1])
        return table[chosen].sort_values("arm")["pulls"].to_numpy()

    def series(self, result: Evaluation, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        K = result.runs[0].task.K
        return series_of(result, self.metric, level, lambda mean: transform(mean, K), order)

    def axes(self, result: Evaluation, level: float) -> tuple[str, str, bool]:
        return f"{self.label} ({100 * level:.4g} % interval)", pulls_label(result), False


@dataclass(frozen=True)
class Allocation(Panel):
    """How the pulls of the last point spread over the arms of a fixed instance, in decreasing order of their means."""

    metric: str = ""
    label: str = "mean pulls"

    def by_rank(self, result: Evaluation, agent: str) -> NDArray[np.float64]:
        """Mean pulls of an agent by the rank of the arm, (K,)."""
        envs: Any = gym.make_vec(self.env_id, num_envs=1, **self.env_kwargs)
        return self.pulls(result, agent)[np.argsort(-envs.unwrapped.instance.arms.means, kind="stable")]

    def series(self, result: Evaluation, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        """Mean pulls of each arm; sums over the episodes have no interval."""
        none = np.full(result.runs[0].task.K, np.nan)
        rank, episodes = np.arange(1.0, len(none) + 1), result.settings["episodes"]
        return [
            Series(agent, order.index(agent), rank, self.by_rank(result, agent), none, none, none, episodes)
            for agent in result.agents
        ]

    def axes(self, result: Evaluation, level: float) -> tuple[str, str, bool]:
        return self.label, "arm, by decreasing mean", False


@dataclass(eq=False)
class Swept:
    """Evaluations of the same agents on environments that differ in one value."""

    evaluations: dict[float, Evaluation]

    @property
    def agents(self) -> list[str]:
        """Their labels."""
        return next(iter(self.evaluations.values())).agents

    @property
    def settings(self) -> dict[str, object]:
        """The settings of the evaluations, by the value."""
        return {str(x): evaluation.settings for x, evaluation in self.evaluations.items()}


@dataclass(frozen=True)
class Sweep(Lines[Swept]):
    """Several agents, a metric at the end of the episode against a value in which the environments differ; as `Panel`.

    Attributes:
        budgets: {value: equally spaced budgets, up to where the metric is 0}: the metric is then the area below its
            curve against the budget, the sum over the budgets times the step between them, in pulls. Unlike the metric
            at one budget, the areas of two agents differ also where both curves begin at 1 and end at 0. None: one run
            of each environment, as it is.
        rival: label of an agent whose metric less that of each other agent is drawn; with budgets these are the pulls
            by which the others are ahead. "": the metric is drawn.
    """

    title: str
    env_id: str
    sweep: Mapping[float, Mapping[str, object]]  # {value: keyword arguments of the environment}
    agents: Mapping[str, str]
    episodes: int
    metric: str
    label: str
    xlabel: str  # of the axis of the value
    log: bool = False  # whether the axis of the metric is logarithmic
    over_bound: bool = False  # whether the means are drawn as multiples of the environment's lower bound on pulls
    budgets: Mapping[float, Sequence[int]] | None = None
    rival: str = ""
    trials: float | None = None

    @property
    def places(self) -> Sequence[float]:
        return list(self.sweep)

    def run(self, how: Conduct) -> Swept:
        budgets, played = self.budgets or {}, partial(how.evaluate, self.agents, self.env_id, self.episodes)
        return Swept({x: played(env_kwargs=own, budgets=budgets.get(x)) for x, own in self.sweep.items()})

    def values(self, result: Swept, agent: str) -> dict[float, NDArray[Any]]:
        if self.budgets is None:
            return {x: evaluation.column(agent, self.metric) for x, evaluation in result.evaluations.items()}
        areas = {}
        for x, evaluation in result.evaluations.items():
            columns = [evaluation.column(agent, self.metric, budget=budget) for budget in self.budgets[x]]
            step = self.budgets[x][1] - self.budgets[x][0]
            areas[x] = np.asarray(step * np.sum(columns, axis=0), np.float64)
        return areas

    def series(self, result: Swept, level: float, transform: Transform, order: Sequence[str]) -> list[Series]:
        """The points of every line; leads over a rival are not transformed, and NaN is where no bound is known."""
        x = np.array(list(result.evaluations), np.float64)
        if self.rival:
            return self._leads(result, level, order, x)
        columns: dict[str, list[Series]] = {agent: [] for agent in result.agents}
        for evaluation in result.evaluations.values():
            change = lambda mean, K=evaluation.runs[0].task.K: transform(mean, K)
            for one in series_of(evaluation, self.metric, level, change, order):
                columns[one.agent].append(one)
        unit = np.array([one.runs[0].lower_bound for one in result.evaluations.values()]) if self.over_bound else 1.0

        def joined(parts: list[Series]) -> dict[str, Any]:
            names = ("mean", "low", "high", "floor")
            return {name: np.concatenate([getattr(one, name) for one in parts]) / unit for name in names}

        return [replace(parts[0], x=x, **joined(parts)) for parts in columns.values()]

    def _leads(self, result: Swept, level: float, order: Sequence[str], x: NDArray[np.float64]) -> list[Series]:
        """The mean by which each agent is ahead of the rival, at each value (P,)."""
        made, rival = [], self.values(result, self.rival)
        for agent in (name for name in result.agents if name != self.rival):
            leads = np.stack([rival[place] - own for place, own in self.values(result, agent).items()], axis=1)
            low, high = bootstrap_mean(leads, level)
            none = np.full(len(x), np.nan)
            made.append(Series(agent, order.index(agent), x, leads.mean(axis=0), low, high, none, len(leads)))
        return made

    def axes(self, result: Swept, level: float) -> tuple[str, str, bool]:
        return f"{self.label} ({100 * level:.4g} % interval)", self.xlabel, self.log


@dataclass(eq=False)
class Numbers:
    """Numbers without chance, and how they are drawn."""

    shown: Sequence[tuple[str, float, float]]  # of each its name, its place on the axis, NaN where it has none, itself
    draw: Callable[[Axes, Sequence[str]], None]  # draws them into axes, given the order of agents
    settings: dict[str, object]  # how they came about, JSON-able
    agents: list[str] = field(default_factory=list)  # labels of the lines; each gets a style of its own

    def number(self, name: str) -> float:
        """The first number of this name."""
        return next(number for known, _, number in self.shown if known == name)


def bars(found: Mapping[str, float], settings: dict[str, Any], **axes: object) -> Numbers:
    """Numbers by their names, each drawn as a bar. `axes`: properties of the axes, as `xscale="log"`."""

    def draw(ax: Axes, order: Sequence[str]) -> None:
        drawn = ax.barh(list(found), list(found.values()), color="#BFBFBF")
        ax.bar_label(drawn, [f"{x:,.10g}" for x in found.values()], padding=4)
        ax.margins(x=0.25)
        ax.set(**axes)

    return Numbers([(name, math.nan, float(x)) for name, x in found.items()], draw, settings)


Result = Evaluation | Swept | Numbers


@dataclass(frozen=True)
class Exact(AnyPanel[Numbers]):
    """Numbers without chance: of a schedule, of a file, of a single episode, for any number of episodes."""

    title: str
    find: Callable[[int], Numbers]  # given the root seed
    agents: Collection[str] = ()

    def run(self, how: Conduct) -> Numbers:
        return self.find(how.seed)

    def rows(self, result: Numbers, level: float, transform: Transform) -> list[dict[str, object]]:
        columns, nan = ("agent", "x", "episodes", "mean", "low", "high", "drawn"), math.nan
        return [dict(zip(columns, (name, x, nan, y, nan, nan, y), strict=True)) for name, x, y in result.shown]

    def draw(self, ax: Axes, result: Numbers, level: float, transform: Transform, order: Sequence[str]) -> None:
        result.draw(ax, order)
