"""Who does how well: learned agents beside handcrafted ones, all on the same episodes of given roots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from bandit_envs import Sampler

from ..catalogue import AGENTS, make
from ..evaluation import Evaluation, evaluate
from ..evaluation.expected_loss import expectable, losses
from ..evaluation.statistics import bootstrap_mean
from .model import Repeated
from .vec_env import NativeVecEnv

__all__ = ["RIVALS", "Judge"]

Floats = NDArray[np.float64]
RIVALS = ("uniform", "lsa")  # those that solve the problem; the last one is the yardstick


@dataclass(frozen=True)
class Court:
    """One environment of a training mix, and who plays on it."""

    env_id: str
    kwargs: Mapping[str, Any]
    envs: NativeVecEnv

    @property
    def label(self) -> str:
        """For curves: the budget and the law of the means."""
        source = self.envs.envs.setting.source
        [(kind, values)] = source.to_dict()["sampler"]["mean"].items() if isinstance(source, Sampler) else [("", "")]
        return f"budget {self.envs.task.budget} {kind} {values}".strip() if kind else f"budget {self.envs.task.budget}"

    @property
    def rivals(self) -> list[str]:
        """Handcrafted agents to compare with."""
        return [name for name in RIVALS if self.envs.task.problem in AGENTS[name].solves]

    def as_played(self, agent: Any) -> Any:
        """The agent as it is judged: a network with context repeats its actions as in training, which takes less time;
        all others pull one by one."""
        times = self.envs.pulls_per_action
        return agent if times == 1 or isinstance(agent, str) or agent.by_index else Repeated(agent, times)

    def evaluate(self, agents: Mapping[str, Any], episodes: int, root: int) -> Evaluation:
        """The agents on the same episodes."""
        played = {label: self.as_played(agent) for label, agent in agents.items()}
        return evaluate(played, self.env_id, episodes=episodes, seed=root, env_kwargs=self.kwargs, progress=False)

    def gains(self, evaluation: Evaluation) -> dict[str, Floats]:
        """The undiscounted returns of each agent, (episodes,)."""
        prize, cost = self.envs.envs.setting.reward, self.envs.task.pull_cost
        gains = {}
        for run in evaluation.runs:
            column = {name: values[:, 0] for name, values in run.columns.items()}
            gains[run.agent] = np.where(column["truncated"], 0.0, column[prize]) - cost * column["total_pulls"]
        return gains

    def returns(self, agents: Mapping[str, Any], episodes: int, root: int) -> dict[str, Floats]:
        """The same on the same episodes; where the law of the instances allows it, expected given all samples."""
        if not expectable(self.envs.envs):
            return self.gains(self.evaluate(agents, episodes, root))
        returns = {}
        for label, agent in agents.items():
            form = "statistics" if isinstance(agent, str) else "features"
            envs: Any = gym.make_vec(
                self.env_id,
                num_envs=episodes,
                copy=False,
                actions="arm",
                observation=form,
                autoreset_mode=AutoresetMode.DISABLED,
                **self.kwargs,
            )
            player = make(agent, envs) if isinstance(agent, str) else self.as_played(agent)
            returns[label] = 1.0 - losses(envs, player, root, np.arange(episodes))
        return returns

    def report(self, agent: Any, episodes: int, root: int) -> dict[str, Any]:
        """JSON-able: of each agent the means with 95 % intervals, and the paired differences to the rivals."""
        evaluation = self.evaluate({agent.name: agent, **{name: name for name in self.rivals}}, episodes, root)
        metrics = ["score", self.envs.task.make_problem().metric_names[0]]
        rows: dict[str, dict[str, Any]] = {}
        differences: dict[str, dict[str, Any]] = {}
        for run, gains in zip(evaluation.runs, self.gains(evaluation).values(), strict=True):
            rows[run.agent] = {
                "return": float(gains.mean()),
                "total_pulls": float(run.columns["total_pulls"].mean()),
                "error_rate": float(1 - run.columns["correct"].mean()),
            }
            for metric in metrics:
                values = run.columns[metric][:, 0].astype(np.float64)
                low, high = bootstrap_mean(values)
                rows[run.agent][metric] = {"mean": float(values.mean()), "low": float(low), "high": float(high)}
        for rival in self.rivals:
            for metric in metrics:
                paired = evaluation.compare(agent.name, rival, metric)
                differences.setdefault(rival, {})[metric] = {
                    "difference": paired.difference,
                    "low": paired.low,
                    "high": paired.high,
                    "p": paired.p_value,
                }
        return {"episodes": episodes, "root": root, "agents": rows, "differences": differences}


class Judge:
    """All environments of a training mix.

    Args:
        courts: one for each. episodes, root: those on which checkpoints are compared.
    """

    def __init__(self, courts: list[Court], episodes: int, root: int) -> None:
        self.courts, self.episodes, self.root = courts, episodes, root
        self._rivals: list[dict[str, Floats]] | None = None

    @property
    def rivals(self) -> list[dict[str, Floats]]:
        """Of each environment, the returns of the handcrafted agents, (episodes,) each, as `Court.returns`."""
        if self._rivals is None:
            self._rivals = [
                one.returns({name: name for name in one.rivals}, self.episodes, self.root) for one in self.courts
            ]
        return self._rivals

    def look(self, agent: Any, episodes: int | None = None) -> list[Floats]:
        """The returns of a learned agent on each environment, (episodes,) each, as `Court.returns`."""
        count = self.episodes if episodes is None else episodes
        return [one.returns({agent.name: agent}, count, self.root)[agent.name] for one in self.courts]

    def value(self, returns: list[Floats]) -> Floats:
        """One number per episode, the larger the better, its mean that of the environments, all of the same weight.

        On a mix a return counts by how far it lies below 1, as a multiple of the yardstick's mean distance.
        """
        if len(returns) == 1:
            return returns[0]
        return np.concatenate([-(1 - own) / self.distance(i) for i, own in enumerate(returns)])

    def distance(self, i: int) -> float:
        """How far the yardstick's mean return on environment i lies below 1; 1 where it is perfect."""
        far = float(1 - list(self.rivals[i].values())[-1].mean())
        return far if far > 0 else 1.0

    def report(self, agent: Any, episodes: int, root: int) -> Any:
        """What `Court.report` tells of the environment, or a list of them for a mix."""
        reports = [court.report(agent, episodes, root) for court in self.courts]
        return reports[0] if len(reports) == 1 else reports
