"""Comparison of a learned agent with the reference agents: returns of all of them on the same episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task

from ..core.forms import Forms, forms_of
from ..evaluation import Evaluation, evaluate
from ..evaluation.expected_loss import losses
from ..evaluation.plan import make_envs
from ..evaluation.statistics import bootstrap_mean, paired_difference
from ..registry import make
from .algorithms import TrainingEnvironment
from .model import Repeated

Floats = NDArray[np.float64]
UNTRAINED = "untrained"  # how the report names what a training began with
# Whichever of them can play; losses are in units of the last one's loss.
REFERENCE_AGENTS = ("uniform", "lsa", "look-ahead")


def reference_agents(task: Task) -> list[str]:
    """The names of the reference agents that can play a task."""
    able = []
    for name in REFERENCE_AGENTS:
        try:
            make(name, task.replace(observation="statistics", can_stop=True))
        except ValueError:
            continue
        able.append(name)
    return able


def _as_played(agent: object, environment: TrainingEnvironment) -> object:
    """The agent as it is compared: it repeats its actions as in training, unless it names ranks, which move."""
    times = environment.pulls_per_action
    alone = times == 1 or isinstance(agent, str) or forms_of(agent, environment.kwargs).ranked
    return agent if alone else Repeated(agent, times)


def _evaluated(
    environment: TrainingEnvironment, agents: Mapping[str, object], episodes: int, root: int
) -> tuple[Evaluation, dict[str, Floats]]:
    """What `evaluate` says of the agents, by label, on the first episodes of a root; and their undiscounted returns."""
    played = {label: _as_played(agent, environment) for label, agent in agents.items()}
    kwargs = {**environment.kwargs, "reward": environment.reward}
    result = evaluate(played, environment.env_id, episodes=episodes, seed=root, env_kwargs=kwargs, progress=False)
    returns = {}
    for run in result.runs:
        column = {name: values[:, 0] for name, values in run.columns.items()}
        prize = np.where(column["truncated"], 0.0, column[environment.reward])
        returns[run.agent] = prize - environment.task.pull_cost * column["total_pulls"]
    return result, returns


def _returns(
    environment: TrainingEnvironment, agents: Mapping[str, object], episodes: int, root: int
) -> dict[str, Floats]:
    """The returns of the agents, (episodes,) each; expected given all samples where the environment is `expectable`."""
    if not environment.expectable:
        return _evaluated(environment, agents, episodes, root)[1]
    returns = {}
    for label, agent in agents.items():
        forms = Forms("arm", "statistics") if isinstance(agent, str) else forms_of(agent, environment.kwargs)
        envs = make_envs(environment.env_id, episodes, forms, environment.kwargs)
        player = make(agent, envs) if isinstance(agent, str) else _as_played(agent, environment)
        returns[label] = 1.0 - losses(envs, player, root, np.arange(episodes))
    return returns


class HeldOut:
    """The first episodes of a root, on which checkpoints are compared; the reference agents play them first."""

    def __init__(self, environment: TrainingEnvironment, episodes: int, root: int) -> None:
        self.environment, self.episodes, self.root = environment, episodes, root
        agents = {name: name for name in reference_agents(environment.task)}
        self.references = _returns(environment, agents, episodes, root) if agents else {}

    def returns(self, agent: Any, episodes: int | None = None) -> Floats:
        """The returns of a learned agent, (episodes,); None: on all held-out episodes."""
        count = self.episodes if episodes is None else episodes
        return _returns(self.environment, {agent.name: agent}, count, self.root)[agent.name]

    @property
    def unit(self) -> float:
        """The mean loss, 1 - return, of the last reference agent; 1 where it loses nothing, or is not there."""
        if not self.references:
            return 1.0
        loss = float(1 - list(self.references.values())[-1].mean())
        return loss if loss > 0 else 1.0


def report(environment: TrainingEnvironment, agent: Any, start: object, episodes: int, root: int) -> dict[str, object]:
    """What a card says of a learned agent, its `start` and the reference agents, on the first episodes of a root.

    Where a pull has a price, there is `net_return` too, the return less that price.
    """
    others = {UNTRAINED: start, **{name: name for name in reference_agents(environment.task)}}
    result, returns = _evaluated(environment, {agent.name: agent, **others}, episodes, root)
    metrics = ["score", *environment.task.make_problem().metric_names[:1]]
    columns: dict[str, dict[str, Floats]] = {}
    rows: dict[str, dict[str, object]] = {}
    for run in result.runs:
        columns[run.agent] = {metric: run.columns[metric][:, 0].astype(np.float64) for metric in metrics}
        columns[run.agent] |= {"net_return": returns[run.agent]} if environment.task.pull_cost > 0 else {}
        rows[run.agent] = {
            "return": float(returns[run.agent].mean()),
            "total_pulls": float(run.columns["total_pulls"].mean()),
            "error_rate": float(1 - run.columns["correct"].mean()),
            "truncated": float(run.columns["truncated"].mean()),
        }
        for metric, values in columns[run.agent].items():
            low, high = bootstrap_mean(values)
            rows[run.agent][metric] = {"mean": float(values.mean()), "low": float(low), "high": float(high)}
    differences: dict[str, dict[str, object]] = {name: {} for name in others}
    for name in others:
        for metric, values in columns[agent.name].items():
            paired = paired_difference(values, columns[name][metric])
            row = {"difference": paired.difference, "low": paired.low, "high": paired.high, "p": paired.p_value}
            differences[name][metric] = row
    made = {"episodes": episodes, "root": root, "max_pulls": environment.task.max_pulls}
    return made | {"agents": rows, "differences": differences}


def advice(name: str, kept: int, result: Mapping[str, Any]) -> list[str]:
    """What to make of a training that has not helped, or that a reference agent outdoes, in sentences."""
    said = []
    if kept == 0:
        said.append(
            "no checkpoint was better than the untrained start, which is kept: train longer (--seconds, --steps), or "
            "with a smaller learning_rate"
        )
    differences = {agent: one for agent, one in result["differences"].items() if agent != UNTRAINED}
    ahead = [agent for agent, one in differences.items() if one.get("net_return", one["score"])["high"] < 0]
    if ahead:
        net = ", net of the price of pulls" if "net_return" in differences[ahead[0]] else ""
        said.append(f"significantly ahead of {name} here{net}: {', '.join(ahead)}. Train longer, or try evolved")
    return said
