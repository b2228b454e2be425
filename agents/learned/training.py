"""`train`: an agent learned on fresh instances, its best checkpoint chosen on held-out ones, judged on yet others."""

from __future__ import annotations

import importlib
import inspect
import math
import platform
import sys
import time
from collections.abc import Mapping, Sequence
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
from bandit_envs import FEATURES, integer, number, root_number, unknown

from ..core.optional import require
from ..evaluation.statistics import latest_of_the_best
from .buffer import RelativeBuffer
from .judging import Judge
from .mixture import Mixture
from .model import Trained, load
from .policy import Equivariant, EquivariantPolicy
from .resuming import Saved

__all__ = ["ALGORITHMS", "latest_of_the_best", "load", "train"]

STEPS = 1_000_000  # about a minute on one core, evaluations included
FLOOR = 0.02  # of the learning rate: where its decline ends
SAVE_EVERY = 30.0  # seconds between two states for a resumption
EARLIEST = 0.4  # share of the run before which no checkpoint is looked at


@dataclass(frozen=True)
class Algorithm:
    """A class of SB3, its policy, the hyperparameters that differ from SB3's own, and episodes side by side.

    A class of sb3-contrib, and a policy made for one, are names to import.
    """

    class_: Any
    policy_: Any
    defaults: Mapping[str, Any]
    num_envs: int = 256
    relative: bool = False  # whether it can use `RelativeBuffer`

    @property
    def kind(self) -> Any:
        return _imported(self.class_)

    @property
    def policy(self) -> Any:
        return _imported(self.policy_)

    @property
    def allowed(self) -> list[str]:
        """The hyperparameters that SB3's class takes."""
        own = ("policy", "env", "seed", "device")
        return [name for name in inspect.signature(self.kind).parameters if name not in own and name[0] != "_"]

    def settings(self, task: bandit_envs.Task, num_envs: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """All hyperparameters that are handed to SB3."""
        chosen = {**self.defaults, **given}
        if "n_epochs" in self.allowed:
            rollout = num_envs * chosen["n_steps"]
            chosen.setdefault("batch_size", rollout // 4 if rollout % 4 == 0 else rollout)
        if isinstance(self.policy, type) and issubclass(self.policy, Equivariant):
            wanted = task.delta is not None or task.pull_cost > 0
            chosen["policy_kwargs"] = {"stop": wanted, **chosen.get("policy_kwargs", {})}
        return chosen


def _imported(name: Any) -> Any:
    """What "module:name" names; anything else as it is."""
    if not isinstance(name, str) or ":" not in name:
        return name
    module, _, attribute = name.partition(":")
    require("sb3_contrib", attribute, "training")
    return getattr(importlib.import_module(module, __package__), attribute)


_COMMON = {"gamma": 0.97, "gae_lambda": 0.95, "ent_coef": 0.01, "learning_rate": 1e-3}
ALGORITHMS: dict[str, Algorithm] = {
    "ppo": Algorithm(PPO, EquivariantPolicy, _COMMON | {"n_steps": 32, "n_epochs": 4}, relative=True),
    "a2c": Algorithm(
        A2C,
        EquivariantPolicy,
        _COMMON | {"n_steps": 16, "use_rms_prop": False, "normalize_advantage": True},
        relative=True,
    ),
    "maskable-ppo": Algorithm(
        "sb3_contrib:MaskablePPO", ".maskable:MaskableEquivariantPolicy", _COMMON | {"n_steps": 32, "n_epochs": 4}
    ),
    "recurrent-ppo": Algorithm(
        "sb3_contrib:RecurrentPPO", "MlpLstmPolicy", _COMMON | {"n_steps": 64, "n_epochs": 4}, num_envs=32
    ),
    "dqn": Algorithm(
        DQN,
        "MlpPolicy",
        {"gamma": 0.97, "learning_rate": 1e-3, "buffer_size": 200_000, "batch_size": 256, "learning_starts": 10_000},
        num_envs=16,
    ),
}


def train(
    algorithm: str = "ppo",
    env_id: str = "bandit_envs/Threshold-v0",
    *,
    steps: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    num_envs: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    mix: Sequence[Mapping[str, Any]] | None = None,
    curriculum: float = 0.0,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool | None = None,
    shaping: bool | None = None,
    expected: bool | None = None,
    pulls_per_action: int = 1,
    checkpoints: int = 5,
    held_out: int = 2000,
    siblings: int = 1,
    **hyperparameters: Any,
) -> Trained:
    """Train an agent. Every episode has a fresh instance, where `env_kwargs` do not fix one.

    Checkpoints are compared by their returns on the same `held_out` episodes of a second root seed. The latest that is
    at most one standard error (of the paired difference) worse than the best is kept, and judged, beside handcrafted
    baselines, on twice as many episodes of a third root.

    The same `seed` and `steps` give the same model (on one platform). With `seconds` the clock decides how far the run
    gets and how the learning rate falls: such a run cannot be repeated to the bit.

    Args:
        algorithm: "ppo", "a2c" or "maskable-ppo", with the equivariant policy; "dqn" and "recurrent-ppo", with SB3's
            own, for one K only. Those of sb3-contrib are "maskable-ppo" and "recurrent-ppo".
        env_id: a registered environment.
        steps: actions in all episodes together; None: 1,000,000, or what `seconds` allow (dqn needs a number).
        seconds: wall time of the whole call, evaluations included; kept roughly.
        seed: of the weights and of all episodes, an integer >= 0; the three roots that come from it are in the card.
        num_envs: episodes side by side; None: 256 (dqn: 16, recurrent-ppo: 32).
        env_kwargs: of the environment, without `actions` and `observation`.
        mix: several environments with one K, to learn on side by side: for each the keyword arguments that it adds to
            `env_kwargs`, and `pulls_per_action` and `slots` (its share of the episodes, a number, 1 by default) where
            wanted. Rewards are in units of how far the last handcrafted agent of `judging.RIVALS` stays below 1.
        curriculum: share of the run in which the environments of the mix come in one after the other, as listed.
        out: write the model `<out>.zip` and its card `<out>.json`. Meanwhile `<out>.resume` is kept.
        resume: go on from `<out>.resume`, if it is there, to the model that an undisturbed run would have reached.
        progress: a line on standard error for each checkpoint; None: if that is a terminal.
        shaping, expected, pulls_per_action: of the training environment, see `NativeVecEnv`; None: where defined.
        checkpoints: how many, in the later part of the run. held_out: episodes that choose among them, >= 2.
        siblings: so many episodes side by side share their samples, so that advantages are compared among them, see
            `RelativeBuffer`; for ppo and a2c with a budget.
        **hyperparameters: of SB3's class: `n_steps`, `gamma`, `ent_coef`, `policy_kwargs={"hidden": 64}`,
            `tensorboard_log="runs"`, ... A number as `learning_rate` falls linearly to 2 % of itself.

    Raises:
        ValueError: naming the value and what is allowed.
    """
    begun = time.perf_counter()
    if algorithm not in ALGORITHMS:
        raise unknown("algorithm", str(algorithm), ALGORITHMS)
    row, kwargs = ALGORITHMS[algorithm], dict(env_kwargs or {})
    if surplus := sorted(set(hyperparameters) - set(row.allowed)):
        raise unknown(f"hyperparameter of {algorithm}", surplus[0], row.allowed)
    if steps is None and seconds is None:
        steps = STEPS
    if steps is None and row.kind is DQN:
        raise ValueError("dqn needs steps: its exploration follows them, not the clock")
    steps = None if steps is None else integer("steps", steps, 1, 2**53)
    seconds = None if seconds is None else number("seconds", seconds, 0, above=True)
    num_envs = row.num_envs if num_envs is None else integer("num_envs", num_envs, 1, 2**31)
    siblings = integer("siblings", siblings, 1, num_envs)
    if siblings > 1 and (num_envs % siblings or not row.relative):
        able = ", ".join(name for name, one in ALGORITHMS.items() if one.relative)
        raise ValueError(
            f"siblings must divide num_envs = {num_envs} and are for {able}, got {siblings} for {algorithm}"
        )
    checkpoints, held_out = integer("checkpoints", checkpoints, 1, 10**6), integer("held_out", held_out, 2, 10**9)
    curriculum = number("curriculum", curriculum, 0, 1, below=True)
    if resume and out is None:
        raise ValueError("resume needs out, whose <out>.resume it reads")
    roots = _roots(seed)
    plan = Mixture(env_id, kwargs, mix, num_envs, shaping, expected, pulls_per_action, siblings)
    settings = row.settings(plan.parts[0].task, num_envs, hyperparameters)
    if row.relative and not plan.stops and (plan.shaping or siblings > 1):
        settings.setdefault("rollout_buffer_class", RelativeBuffer)
        unit = {"power": 1.0 if plan.shaping else 0.0, "siblings": siblings}
        settings["rollout_buffer_kwargs"] = unit | settings.get("rollout_buffer_kwargs", {})
    own = {
        "num_envs": num_envs,
        "shaping": plan.shaping,
        "expected": plan.expected,
        "pulls_per_action": pulls_per_action,
        "mix": mix,
        "curriculum": curriculum or None,
        "siblings": siblings if siblings > 1 else None,
        "checkpoints": checkpoints,
        "held_out": held_out,
    }
    call = {"steps": steps, "seconds": seconds, "seed": seed, "env_kwargs": kwargs or None, **own, **hyperparameters}
    saved = None if out is None else Saved(Path(str(out).removesuffix(".zip") + ".resume"), call)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the fastest for nets as small as these, and one order of every sum
    rate = settings["learning_rate"]
    try:
        judge = plan.judge(held_out, roots["choosing"])
        if resume and saved is not None and saved.path.is_file():
            model, run = saved.read()
            run.go_on(judge, saved, begun, progress)
        else:
            run = _Run(judge, steps, seconds, begun, checkpoints, progress, saved)
            falling = rate if callable(rate) else _Falling(number("learning_rate", rate, 0, above=True), run)
            first = plan.envs(judge, curriculum, 0)
            model = row.kind(
                row.policy, first, seed=roots["learning"] % 2**32, device="cpu", **settings | {"learning_rate": falling}
            )
            first.seed(roots["learning"])
        _learn(model, run, plan, judge, curriculum, roots["learning"])
        story = run.finish()
        result = judge.report(Trained(model), 2 * held_out, roots["judging"])
    finally:
        torch.set_num_threads(threads)
    model.learning_rate, model.lr_schedule = rate, FloatSchedule(rate)
    listed = ", ".join(f"{name}={value!r}" for name, value in call.items() if value is not None)
    card = {
        "call": f"agents.train({algorithm!r}, {env_id!r}, {listed})",
        "algorithm": algorithm,
        "env_id": env_id,
        "env_kwargs": kwargs,
        "features": list(FEATURES),
        "seed": seed,
        "roots": roots,
        "hyperparameters": own | {key: getattr(value, "__name__", value) for key, value in settings.items()},
        **story,
        "result": result,
        "versions": _versions(),
    }
    card["seconds"] = round(time.perf_counter() - run.begun, 1)
    card["cpu_seconds"] = round(run.cpu + time.process_time() - run.cpu_begun, 1)
    trained = Trained(model, card)
    if out is not None:
        trained.save(out)
    if saved is not None:
        saved.remove()
    return trained


def _learn(model: Any, run: _Run, plan: Mixture, judge: Judge, curriculum: float, root: int) -> None:
    """Learn, stage after stage of the curriculum."""
    while not run.over:
        if run.stage > 0 and not run.resumed:
            envs = plan.envs(judge, curriculum, run.stage)
            envs.seed(_roots(root + run.stage)["learning"])
            model.set_env(envs)
        run.resumed = False
        if isinstance(getattr(model, "rollout_buffer", None), RelativeBuffer):
            model.rollout_buffer.parts = model.get_env().widths
        run.until = plan.ends(curriculum)[run.stage]
        steps = sys.maxsize if run.steps is None else math.ceil(run.steps * run.until)
        if steps > model.num_timesteps:
            fresh = model.num_timesteps == 0
            model.learn(steps if fresh else steps - model.num_timesteps, callback=run, reset_num_timesteps=fresh)
        run.stage += 1
        run.over = run.stage == len(plan.ends(curriculum))


def _roots(seed: int) -> dict[str, int]:
    """Root seeds for three purposes: 63-bit words, so that they are none that anybody would type."""
    words = np.random.SeedSequence(root_number(seed)).generate_state(6, np.uint64)[3:] >> np.uint64(1)
    return dict(zip(("learning", "choosing", "judging"), map(int, words), strict=True))


def _versions() -> dict[str, str]:
    modules = {
        "numpy": np,
        "torch": torch,
        "stable-baselines3": stable_baselines3,
        "gymnasium": gym,
        "bandit-envs": bandit_envs,
    }
    return {"python": platform.python_version()} | {name: str(module.__version__) for name, module in modules.items()}


class _Falling:
    """A learning rate that falls linearly with the steps or with the clock, whichever is further, down to `FLOOR`."""

    def __init__(self, start: float, run: _Run) -> None:
        self.start, self.run = start, run

    def __call__(self, left: float) -> float:
        return self.start * max(1.0 - self.run.share(), FLOOR)


class _Run(BaseCallback):
    """Keeps the clock, looks at checkpoints and remembers their weights, and stores what a resumed run needs."""

    def __init__(
        self,
        judge: Judge,
        steps: int | None,
        seconds: float | None,
        begun: float,
        checkpoints: int,
        progress: bool | None,
        saved: Saved | None,
    ) -> None:
        super().__init__()
        self.steps, self.seconds = steps, seconds
        self.due = [EARLIEST + (1 - EARLIEST) * k / checkpoints for k in range(1, checkpoints)]  # the last is the end
        self.changed = False  # since the last look
        self.price = 0.0  # seconds of a look
        self.looks: list[dict[str, Any]] = []
        self.values: list[NDArray[np.float64]] = []  # of each look, one number per held-out episode
        self.weights: list[dict[str, torch.Tensor]] = []
        self.mean: dict[str, torch.Tensor] = {}  # of the weights, over so many rollouts since the last one was due
        self.passes = 0
        self.stage, self.until, self.over, self.resumed = 0, 1.0, False, False
        self.elapsed, self.cpu = 0.0, 0.0  # seconds before a resumption
        self._attach(judge, saved, begun, progress)

    def _attach(self, judge: Judge, saved: Saved | None, begun: float, progress: bool | None) -> None:
        self.judge, self.saved, self.begun, self.written = judge, saved, begun - self.elapsed, time.perf_counter()
        self.cpu_begun = time.process_time()
        self.show = sys.stderr.isatty() if progress is None else progress

    def go_on(self, judge: Judge, saved: Saved, begun: float, progress: bool | None) -> None:
        """After a resumption."""
        self.resumed = True
        self._attach(judge, saved, begun, progress)

    def __getstate__(self) -> dict[str, Any]:
        """What a resumed run needs: `go_on` and SB3 bring the rest; `globals` may hold what cannot be pickled."""
        brought = ("judge", "saved", "locals", "globals")
        own = {name: value for name, value in vars(self).items() if name not in brought}
        return own | {
            "elapsed": time.perf_counter() - self.begun,
            "cpu": self.cpu + time.process_time() - self.cpu_begun,
        }

    def share(self) -> float:
        """The share of the run that is over, by steps or by the clock, whichever is further."""
        return max(0.0 if self.steps is None else self.num_timesteps / self.steps, 1.0 - self.time_left())

    def time_left(self) -> float:
        """The share of the time that is left for learning; 1 where the clock does not matter."""
        if self.seconds is None:
            return 1.0
        learning = max(self.seconds - 3.5 * self.price, self.seconds / 2)  # then a look, and a report twice as large
        return max(0.0, 1.0 - (time.perf_counter() - self.begun) / learning)

    def _on_training_start(self) -> None:
        if self.seconds is not None and self.price == 0.0:  # what will a look cost? A tenth of it costs about a fifth.
            began = time.perf_counter()
            self.judge.look(Trained(self.model), max(2, self.judge.episodes // 10))
            self.price = 5 * (time.perf_counter() - began)

    def _on_step(self) -> bool:
        return self.seconds is None or 1.0 - self.time_left() < self.until

    def _on_rollout_end(self) -> None:
        self.changed = True

    def _on_rollout_start(self) -> None:
        # First of all, for a resumed run begins with this rollout.
        if self.saved is not None and time.perf_counter() - self.written >= SAVE_EVERY:
            self.saved.write(self.model, self)
            self.written = time.perf_counter()
        share = self.share()
        if share >= EARLIEST:
            self._average()
        coming = [due for due in self.due if due > share]
        if len(coming) < len(self.due):
            self.due = coming
            if self.seconds is None or self.price < 0.05 * self.seconds:  # else the look at the end must do
                self._look()
            self.mean, self.passes = {}, 0

    def _average(self) -> None:
        """Take the weights as they are into the mean."""
        self.passes += 1
        for name, weight in self.model.policy.state_dict().items():
            mean = self.mean.setdefault(name, torch.zeros_like(weight))
            mean += (weight - mean) / self.passes

    def _look(self) -> None:
        """Evaluate the mean of the weights since the checkpoint before, and remember it."""
        began = time.perf_counter()
        policy = self.model.policy
        present = {name: weight.clone() for name, weight in policy.state_dict().items()}
        self.weights.append(self.mean)
        policy.load_state_dict(self.mean)
        returns = self.judge.look(Trained(self.model))
        policy.load_state_dict(present)
        now = time.perf_counter()
        self.price, self.changed = now - began, False
        means = [float(own.mean()) for own in returns]
        ratios = [(1 - mean) / self.judge.distance(i) for i, mean in enumerate(means)]
        self.looks.append(
            {
                "steps": self.num_timesteps,
                "seconds": round(now - self.begun, 1),
                "return": means[0] if len(means) == 1 else means,
                "loss_over_yardstick": [round(ratio, 5) for ratio in ratios],
            }
        )
        self.values.append(self.judge.value(returns))
        for i, (mean, ratio) in enumerate(zip(means, ratios, strict=True)):
            name = f"held_out/{self.judge.courts[i].label}" if len(means) > 1 else "held_out"
            self.logger.record(f"{name}/return", mean)
            self.logger.record(f"{name}/loss_over_{list(self.judge.rivals[i])[-1]}", ratio)
        if self.show:
            text = "; ".join(
                f"return {mean:.4f} ({', '.join(f'{name} {gain.mean():.4f}' for name, gain in others.items())})"
                for mean, others in zip(means, self.judge.rivals, strict=True)
            )
            print(f"{now - self.begun:6.0f} s  {self.num_timesteps:12,} steps  {text}", file=sys.stderr, flush=True)

    def finish(self) -> dict[str, Any]:
        """Look at the end, put the weights of the checkpoint that is kept into the model, and tell what happened."""
        if self.changed or not self.looks:
            self._average()
            self._look()
        kept = latest_of_the_best(np.stack(self.values))
        self.model.policy.load_state_dict(self.weights[kept])
        return {"steps": self.num_timesteps, "kept": self.looks[kept]["steps"], "checkpoints": self.looks}
