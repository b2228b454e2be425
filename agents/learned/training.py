"""`train`: an agent learned on fresh instances, its best checkpoint chosen on held-out ones, judged on yet others."""

from __future__ import annotations

import inspect
import math
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import stable_baselines3
import torch
from numpy.typing import NDArray
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import FloatSchedule

import bandit_envs
from bandit_envs.naming import unknown
from bandit_envs.observations import FEATURES
from bandit_envs.problems.base import integer, number
from bandit_envs.rng import root_number

from ..catalogue import AGENTS
from ..evaluation import Evaluation, evaluate
from ..evaluation.statistics import bootstrap_mean
from .model import Trained, load
from .policy import EquivariantPolicy
from .vec_env import SHAPED, NativeVecEnv, make_vec_env

__all__ = ["ALGORITHMS", "load", "train"]

STEPS = 1_000_000  # about a minute on one core, evaluations included
FLOOR = 0.02  # of the learning rate: where its decline ends
EARLIEST = 0.4  # share of the run before which no checkpoint is looked at
RIVALS = ("uniform", "lsa")


@dataclass(frozen=True)
class Algorithm:
    """A class of SB3, its policy, the hyperparameters that differ from SB3's own, and episodes side by side."""

    kind: type[Any]
    policy: Any
    defaults: Mapping[str, Any]
    num_envs: int = 256

    @property
    def allowed(self) -> list[str]:
        """The hyperparameters that SB3's class takes."""
        own = ("policy", "env", "seed", "device")
        return [name for name in inspect.signature(self.kind).parameters if name not in own and name[0] != "_"]

    def settings(self, task: bandit_envs.Task, num_envs: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """All hyperparameters that are handed to SB3."""
        chosen = {**self.defaults, **given}
        if self.kind is PPO:
            rollout = num_envs * chosen["n_steps"]
            chosen.setdefault("batch_size", rollout // 4 if rollout % 4 == 0 else rollout)
        if self.policy is EquivariantPolicy:
            wanted = task.delta is not None or task.pull_cost > 0
            chosen["policy_kwargs"] = {"stop": wanted, **chosen.get("policy_kwargs", {})}
        return chosen


_COMMON = {"gamma": 0.97, "gae_lambda": 0.95, "ent_coef": 0.01, "learning_rate": 1e-3}
ALGORITHMS: dict[str, Algorithm] = {
    "ppo": Algorithm(PPO, EquivariantPolicy, _COMMON | {"n_steps": 32, "n_epochs": 4}),
    "a2c": Algorithm(A2C, EquivariantPolicy,
                     _COMMON | {"n_steps": 16, "use_rms_prop": False, "normalize_advantage": True}),
    "dqn": Algorithm(DQN, "MlpPolicy", {"gamma": 0.97, "learning_rate": 1e-3, "buffer_size": 200_000,
                                        "batch_size": 256, "learning_starts": 10_000}, num_envs=16),
}  # fmt: skip


def train(
    algorithm: str = "ppo", env_id: str = "bandit_envs/Threshold-v0", *, steps: int | None = None,
    seconds: float | None = None, seed: int = 0, num_envs: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None, out: str | Path | None = None, progress: bool | None = None,
    shaping: bool | None = None, pulls_per_action: int = 1, checkpoints: int = 5,
    held_out: int = 2000, **hyperparameters: Any,
) -> Trained:  # fmt: skip
    """Train an agent. Every episode has a fresh instance, where `env_kwargs` do not fix one.

    Checkpoints are compared by their returns on the same `held_out` episodes of a second root seed. The latest that is
    at most one standard error (of the paired difference) worse than the best is kept, and judged, beside handcrafted
    baselines, on twice as many episodes of a third root.

    The same `seed` and `steps` give the same model (on one platform). With `seconds` the clock decides how far the run
    gets and how the learning rate falls: such a run cannot be repeated to the bit.

    Args:
        algorithm: "ppo" or "a2c", with the equivariant policy; "dqn", with SB3's MlpPolicy, for one K only.
        env_id: a registered environment.
        steps: actions in all episodes together; None: 1,000,000, or what `seconds` allow (dqn needs a number).
        seconds: wall time of the whole call, evaluations included; kept roughly.
        seed: of the weights and of all episodes, an integer >= 0; the three roots that come from it are in the card.
        num_envs: episodes side by side; None: 256 (dqn: 16).
        env_kwargs: of the environment, without `actions` and `observation`.
        out: write the model `<out>.zip` and its card `<out>.json`.
        progress: a line on standard error for each checkpoint; None: if that is a terminal.
        shaping, pulls_per_action: of the training environment, see `NativeVecEnv`; shaping=None: where defined.
        checkpoints: how many, in the later part of the run. held_out: episodes that choose among them, >= 2.
        **hyperparameters: of SB3's class: `n_steps`, `gamma`, `ent_coef`, `policy_kwargs={"hidden": 64}`, ... A number
            as `learning_rate` falls linearly to 2 % of itself.

    Raises:
        ValueError: naming the value and what is allowed.
    """
    begun = time.perf_counter()
    if algorithm not in ALGORITHMS:
        raise unknown("algorithm", str(algorithm), ALGORITHMS)
    row, kwargs = ALGORITHMS[algorithm], dict(env_kwargs or {})
    if taken := sorted({"actions", "observation"} & set(kwargs)):
        raise ValueError(f"train chooses {taken[0]!r} itself; take it out of env_kwargs")
    if surplus := sorted(set(hyperparameters) - set(row.allowed)):
        raise unknown(f"hyperparameter of {algorithm}", surplus[0], row.allowed)
    if steps is None and seconds is None:
        steps = STEPS
    if steps is None and row.kind is DQN:
        raise ValueError("dqn needs steps: its exploration follows them, not the clock")
    steps = None if steps is None else integer("steps", steps, 1, 2**53)
    seconds = None if seconds is None else number("seconds", seconds, 0, above=True)
    num_envs = row.num_envs if num_envs is None else integer("num_envs", num_envs, 1, 2**31)
    checkpoints, held_out = integer("checkpoints", checkpoints, 1, 10**6), integer("held_out", held_out, 2, 10**9)
    roots = _roots(seed)
    if shaping is None:
        shaping = make_vec_env(env_id, 1, **kwargs).task.problem in SHAPED
    envs = make_vec_env(env_id, num_envs, shaping=shaping, pulls_per_action=pulls_per_action,
                        observation="features", **kwargs)  # fmt: skip
    settings = row.settings(envs.task, num_envs, hyperparameters)
    judge = _Judge(env_id, kwargs, envs)
    run = _Run(judge, steps, seconds, begun, checkpoints, held_out, roots["choosing"], progress)
    rate = settings["learning_rate"]
    falling = rate if callable(rate) else _Falling(number("learning_rate", rate, 0, above=True), run.time_left)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the fastest for nets as small as these, and one order of every sum
    try:
        model = row.kind(row.policy, envs, seed=roots["learning"] % 2**32, device="cpu",
                         **settings | {"learning_rate": falling})  # fmt: skip
        envs.seed(roots["learning"])
        model.learn(sys.maxsize if steps is None else steps, callback=run)
        story = run.finish()
        result = judge.report(Trained(model), 2 * held_out, roots["judging"])
    finally:
        torch.set_num_threads(threads)
    model.learning_rate, model.lr_schedule = rate, FloatSchedule(rate)
    own = {"num_envs": num_envs, "shaping": shaping, "pulls_per_action": pulls_per_action,
           "checkpoints": checkpoints, "held_out": held_out}  # fmt: skip
    call = {"steps": steps, "seconds": seconds, "seed": seed, "env_kwargs": kwargs or None, **own, **hyperparameters}
    listed = ", ".join(f"{name}={value!r}" for name, value in call.items() if value is not None)
    card = {"call": f"agents.train({algorithm!r}, {env_id!r}, {listed})", "algorithm": algorithm, "env_id": env_id,
            "env_kwargs": kwargs, "features": list(FEATURES), "seed": seed, "roots": roots,
            "hyperparameters": own | settings, **story, "result": result, "versions": _versions()}  # fmt: skip
    card["seconds"] = round(time.perf_counter() - begun, 1)
    trained = Trained(model, card)
    if out is not None:
        trained.save(out)
    return trained


def _roots(seed: int) -> dict[str, int]:
    """Root seeds for three purposes: 63-bit words, so that they are none that anybody would type."""
    words = np.random.SeedSequence(root_number(seed)).generate_state(6, np.uint64)[3:] >> np.uint64(1)
    return dict(zip(("learning", "choosing", "judging"), map(int, words), strict=True))


def _versions() -> dict[str, str]:
    modules = {"numpy": np, "torch": torch, "stable-baselines3": stable_baselines3, "gymnasium": gym,
               "bandit-envs": bandit_envs}  # fmt: skip
    return {"python": platform.python_version()} | {name: str(module.__version__) for name, module in modules.items()}


class _Falling:
    """A learning rate that falls linearly with the steps or with the clock, whichever is further, down to `FLOOR`."""

    def __init__(self, start: float, time_left: Callable[[], float]) -> None:
        self.start, self.time_left = start, time_left

    def __call__(self, left: float) -> float:
        return self.start * max(min(left, self.time_left()), FLOOR)


@dataclass(frozen=True)
class _Judge:
    """Who does how well, on episodes of a given root, all agents on the same ones."""

    env_id: str
    kwargs: Mapping[str, Any]
    envs: NativeVecEnv

    @property
    def rivals(self) -> list[str]:
        return [name for name in RIVALS if self.envs.task.problem in AGENTS[name].solves]

    def evaluate(self, agents: Any, episodes: int, root: int) -> Evaluation:
        return evaluate(agents, self.env_id, episodes=episodes, seed=root, env_kwargs=self.kwargs, progress=False)

    def returns(self, evaluation: Evaluation) -> dict[str, NDArray[np.float64]]:
        """The undiscounted returns of each agent, (episodes,)."""
        prize, cost = self.envs.envs.setting.reward, self.envs.task.pull_cost
        gains = {}
        for run in evaluation.runs:
            column = {name: values[:, 0] for name, values in run.columns.items()}
            gains[run.agent] = np.where(column["truncated"], 0.0, column[prize]) - cost * column["total_pulls"]
        return gains

    def report(self, agent: Trained, episodes: int, root: int) -> dict[str, Any]:
        """JSON-able: of each agent the means with 95 % intervals, and the paired differences to the rivals."""
        evaluation = self.evaluate({agent.name: agent, **{name: name for name in self.rivals}}, episodes, root)
        metrics = ["score", self.envs.task.make_problem().metric_names[0]]
        rows: dict[str, dict[str, Any]] = {}
        differences: dict[str, dict[str, Any]] = {}
        for run, gains in zip(evaluation.runs, self.returns(evaluation).values(), strict=True):
            rows[run.agent] = {"return": float(gains.mean()), "total_pulls": float(run.columns["total_pulls"].mean()),
                               "error_rate": float(1 - run.columns["correct"].mean())}  # fmt: skip
            for metric in metrics:
                values = run.columns[metric][:, 0].astype(np.float64)
                low, high = bootstrap_mean(values)
                rows[run.agent][metric] = {"mean": float(values.mean()), "low": float(low), "high": float(high)}
        for rival in self.rivals:
            for metric in metrics:
                paired = evaluation.compare(agent.name, rival, metric)
                differences.setdefault(rival, {})[metric] = {
                    "difference": paired.difference, "low": paired.low, "high": paired.high, "p": paired.p_value,
                }  # fmt: skip
        return {"episodes": episodes, "root": root, "agents": rows, "differences": differences}


class _Run(BaseCallback):
    """Keeps the clock, looks at checkpoints and remembers their weights."""

    def __init__(
        self, judge: _Judge, steps: int | None, seconds: float | None, begun: float, checkpoints: int, held_out: int,
        root: int, progress: bool | None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.judge, self.steps, self.seconds, self.begun = judge, steps, seconds, begun
        self.held_out, self.root = held_out, root
        self.due = [EARLIEST + (1 - EARLIEST) * k / checkpoints for k in range(1, checkpoints)]  # the last is the end
        self.show = sys.stderr.isatty() if progress is None else progress
        self.changed = False  # since the last look
        self.price = 0.0  # seconds of a look
        self.looks: list[dict[str, float]] = []
        self.returns: list[NDArray[np.float64]] = []  # of each look, (held_out,)
        self.weights: list[dict[str, torch.Tensor]] = []
        self.rivals = judge.returns(judge.evaluate(judge.rivals, held_out, root)) if self.show else {}

    def time_left(self) -> float:
        """The share of the time that is left for learning; 1 where the clock does not matter."""
        if self.seconds is None:
            return 1.0
        learning = max(self.seconds - 3.5 * self.price, self.seconds / 2)  # then a look, and a report twice as large
        return max(0.0, 1.0 - (time.perf_counter() - self.begun) / learning)

    def _on_training_start(self) -> None:
        if self.seconds is not None:  # what will a look cost? A tenth of it costs about a fifth.
            began = time.perf_counter()
            self.judge.evaluate(Trained(self.model), max(2, self.held_out // 10), self.root)
            self.price = 5 * (time.perf_counter() - began)

    def _on_step(self) -> bool:
        return self.time_left() > 0

    def _on_rollout_end(self) -> None:
        self.changed = True

    def _on_rollout_start(self) -> None:
        steps = 0.0 if self.steps is None else self.num_timesteps / self.steps
        coming = [share for share in self.due if share > max(steps, 1.0 - self.time_left())]
        if len(coming) < len(self.due):
            self.due = coming
            if self.seconds is None or self.price < 0.05 * self.seconds:  # else the look at the end must do
                self._look()

    def _look(self) -> None:
        """Evaluate the policy as it is, and remember it."""
        began = time.perf_counter()
        [returns] = self.judge.returns(self.judge.evaluate(Trained(self.model), self.held_out, self.root)).values()
        now = time.perf_counter()
        self.price, self.changed = now - began, False
        value = float(returns.mean())
        self.looks.append({"steps": self.num_timesteps, "seconds": round(now - self.begun, 1), "return": value})
        self.returns.append(returns)
        self.weights.append({name: weight.clone() for name, weight in self.model.policy.state_dict().items()})
        if self.show:
            others = ", ".join(f"{name} {gain.mean():.4f}" for name, gain in self.rivals.items())
            print(f"{now - self.begun:6.0f} s  {self.num_timesteps:12,} steps  return {value:.4f}  ({others})",
                  file=sys.stderr, flush=True)  # fmt: skip

    def finish(self) -> dict[str, Any]:
        """Look at the end, put the weights of the checkpoint that is kept into the model, and tell what happened."""
        if self.changed or not self.looks:
            self._look()
        kept = latest_of_the_best(np.stack(self.returns))
        self.model.policy.load_state_dict(self.weights[kept])
        return {"steps": self.num_timesteps, "kept": self.looks[kept]["steps"], "checkpoints": self.looks}


def latest_of_the_best(returns: NDArray[np.float64]) -> int:
    """Which of the checkpoints with these returns (C, episodes) to keep: the one-standard-error rule.

    The last one whose mean return is at most one standard error of the paired difference below the best. The best
    itself would often be the luckiest, and late checkpoints have gained from a lower learning rate.
    """
    deficit = returns[returns.mean(1).argmax()] - returns
    error = deficit.std(1, ddof=1) / math.sqrt(returns.shape[1])
    return int(np.flatnonzero(deficit.mean(1) <= error).max())
