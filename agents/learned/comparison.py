"""Comparison of a learned agent with the reference agents: returns of all of them on the same episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from bandit_envs import Task
from bandit_envs.kernels import Floats

from ..core.forms import Forms, forms_of
from ..evaluation import evaluate
from ..evaluation.drawing import Drawing
from ..evaluation.expected_loss import losses
from ..evaluation.plan import make_envs
from ..evaluation.statistics import bootstrap_mean, paired_difference
from ..registry import make
from .algorithms import TrainingEnvironment

UNTRAINED, DRAWN = "untrained", "drawn"  # how the report names what a training began with, and drawn actions
# Whichever of them can play; losses are in units of the last one's loss.
REFERENCE_AGENTS = ("uniform", "lsa", "look-ahead")


def reference_agents(task: Task) -> list[str]:
    """The names of the reference agents that can play a task."""
    able = []
    for name in REFERENCE_AGENTS:
        with suppress(ValueError):
            make(name, task.replace(observation="statistics", can_stop=True))
            able.append(name)
    return able


def _evaluated(
    environment: TrainingEnvironment, agents: Mapping[str, object], episodes: int, root: int, deterministic: bool = True
) -> tuple[list[Any], dict[str, Floats]]:
    """The runs of `evaluate` of agents, by label, on the first episodes of a root; and their undiscounted returns."""
    kwargs = {**environment.kwargs, "reward": environment.reward}
    how: dict[str, Any] = {"env_kwargs": kwargs, "progress": False, "deterministic": deterministic}
    runs = evaluate(agents, environment.env_id, episodes=episodes, seed=root, **how).runs
    returns = {}
    for run in runs:
        column = {name: values[:, 0] for name, values in run.columns.items()}
        prize = np.where(column["truncated"], 0.0, column[environment.reward])
        returns[run.agent] = prize - environment.task.pull_cost * column["total_pulls"]
    return runs, returns


def _returns(environment: TrainingEnvironment, agent: Any, episodes: int, root: int) -> Floats:
    """The returns of an agent, (episodes,); expected given all samples where the environment is `expectable`."""
    if not environment.expectable:
        return _evaluated(environment, {"agent": agent}, episodes, root)[1]["agent"]
    forms = Forms("arm", "statistics") if isinstance(agent, str) else forms_of(agent, environment.kwargs)
    envs = make_envs(environment.env_id, episodes, forms, environment.kwargs)
    player = make(agent, envs) if isinstance(agent, str) else agent
    return 1.0 - losses(envs, player, root, np.arange(episodes))


class HeldOut:
    """The first episodes of a root in each environment, where checkpoints are compared; reference agents play first."""

    def __init__(self, environments: Sequence[TrainingEnvironment], root: int) -> None:
        self.environments, self.root = environments, root
        shared = [name for name in REFERENCE_AGENTS if all(name in reference_agents(one.task) for one in environments)]
        self.references = {name: self.returns(name) for name in shared}
        baseline = self.references[shared[-1]] if shared else [np.zeros(1)] * len(environments)
        # The mean loss, 1 - return, of the last of them; 1 where it loses nothing, or is not there.
        self.units = [loss if (loss := float(1 - one.mean())) > 0 else 1.0 for one in baseline]

    def returns(self, agent: Any, episodes: int | None = None) -> list[Floats]:
        """The returns of an agent in each environment, (episodes,); None: in all held-out episodes."""
        return [_returns(one, agent, episodes or one.held_out, self.root) for one in self.environments]

    def values(self, returns: Sequence[Floats]) -> Floats:
        """Minus the losses of all episodes, in `units`, (sum of episodes,); environments weigh the same in the mean."""
        share, parts = sum(map(len, returns)) / len(returns), zip(returns, self.units, strict=True)
        return np.concatenate([(one - 1) / unit * (share / len(one)) for one, unit in parts])

    def row(self, returns: Sequence[Floats]) -> dict[str, float]:
        """What a card says of returns: means over the environments."""
        mean = float(np.mean([one.mean() for one in returns]))
        return {"return": mean, "loss_over_reference": round(0.0 - float(self.values(returns).mean()), 5)}


def report(environment: TrainingEnvironment, agent: Any, start: object, root: int) -> dict[str, object]:
    """What a card says of a learned agent, its `start` and the reference agents, on the first episodes of a root.

    They are twice as many as are held out. Where a pull has a price, there is `net_return` too, the return less it. The
    agent takes its most probable actions, as `evaluate` does, and where it has a distribution of them draws them too.
    """
    episodes = 2 * environment.held_out
    others = {UNTRAINED: start, **{name: name for name in reference_agents(environment.task)}}
    runs, returns = _evaluated(environment, {agent.name: agent, **others}, episodes, root)
    with suppress(ValueError):  # of a model that draws no actions
        others[DRAWN] = Drawing(DRAWN, agent).agent
    if DRAWN in others:
        more, own = _evaluated(environment, {DRAWN: agent}, episodes, root, deterministic=False)
        runs, returns = [*runs, *more], returns | own
    metrics = ["score", *environment.task.make_problem().metric_names[:1]]
    columns: dict[str, dict[str, Floats]] = {}
    rows: dict[str, dict[str, object]] = {}
    for run in runs:
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
        how = "train longer (--seconds, --steps), or with a smaller learning_rate"
        said.append(f"no checkpoint was better than the untrained start, which is kept: {how}")
    differences = {agent: one.get("net_return", one["score"]) for agent, one in result["differences"].items()}
    ahead = [agent for agent, one in differences.items() if agent != UNTRAINED and one["high"] < 0]
    if DRAWN in ahead:
        ahead.remove(DRAWN)
        more = f"drawn actions score {-differences[DRAWN]['difference']:.2g} more than the most probable ones"
        said.append(
            f"the order of the arms is unsettled in {name}: {more}: deterministic=False (--stochastic) draws them"
        )
    if ahead:
        net = ", net of the price of pulls" if "net_return" in result["differences"][ahead[0]] else ""
        said.append(f"significantly ahead of {name} here{net}: {', '.join(ahead)}. Train longer, or try evolved")
    return said
