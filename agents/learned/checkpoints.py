"""`Checkpoints`: SB3's callback of a training. It evaluates checkpoints, and keeps the best.

Checkpoints lie in the later part of a run, at equal distances. The weights of a checkpoint are the mean of the weights
after each rollout since the checkpoint before, which has less noise. The latest checkpoint is kept whose mean return on
the held-out episodes is at most one standard error of the paired difference below the best, or the untrained start
where that is better.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

from ..core.compile_time import CompileTime
from ..evaluation.statistics import latest_of_the_best
from .comparison import HeldOut
from .model import Trained

PRINT_EVERY = 10.0  # seconds between two lines that say how far the run is, at least
PRINT_SHARE = 0.05  # share of the run between two such lines, at least, so that a long run has no endless list of them
EARLIEST = 0.4  # share of the run before which there is no checkpoint, and no weights enter a mean
FLOOR = 0.02  # the learning rate falls to this share of its first value, and no further


class Clock:
    """How much of a training is over: by its steps or by its wall time, whichever is further.

    `steps` are actions, `seconds` the wall time of the whole call but for compiling, of which at least half is for
    learning; either may be None. `Checkpoints` sets `steps_taken`, and `evaluation_seconds` of one checkpoint, for
    which time is kept back at the end.
    """

    def __init__(self, steps: int | None, seconds: float | None, began: float, compiling: CompileTime) -> None:
        self.steps, self.limit, self._compiling = steps, seconds, compiling
        self.steps_taken, self.evaluation_seconds, self._most = 0, 0.0, 0.0
        self._began, self.processor_began = began, time.process_time()
        self._before: float | None = None  # seconds that were over when the learning began, but for compiling

    def begin(self) -> None:
        """Say that the learning begins."""
        self._before = self.seconds() - self._compiling.seconds

    def seconds(self) -> float:
        """Wall time so far."""
        return time.perf_counter() - self._began

    def falling(self, start: float) -> Callable[[float], float]:
        """A learning rate that falls linearly with the share of the training, to `FLOOR` times its start."""
        return lambda _: start * max(1.0 - self.share(), FLOOR)

    def share(self) -> float:
        """The share of the training that is over, from 0 to about 1."""
        by_steps = 0.0 if self.steps is None else self.steps_taken / self.steps
        self._most = max(by_steps, self.time_share(), self._most)  # time that went into compiling is given back
        return self._most

    def time_share(self) -> float:
        """The share of the time for learning that has passed, at most 1; 0 where time is not limited."""
        if self.limit is None or self._before is None:
            return 0.0
        # Kept back are a last checkpoint, and the report on twice as many episodes, with the untrained start and the
        # reference agents.
        learning = max(self.limit - self._before - 5.5 * self.evaluation_seconds, self.limit / 2)
        return min(1.0, (self.seconds() - self._compiling.seconds - self._before) / learning)


class Checkpoints(BaseCallback):
    """Evaluates checkpoints during SB3's `learn`, and ends it when its time is over; `rows` are those on the card."""

    def __init__(self, held_out: HeldOut, clock: Clock, checkpoints: int, show: bool) -> None:
        super().__init__()
        self.held_out, self.clock, self.show = held_out, clock, show
        self.due = [EARLIEST + (1 - EARLIEST) * k / checkpoints for k in range(1, checkpoints)]  # the last is the end
        self.changed = False  # whether the policy has learned since the last checkpoint
        self.rows: list[dict[str, Any]] = []
        self.values: list[NDArray[np.float64]] = []  # of each checkpoint a number per held-out episode
        self.weights: list[dict[str, torch.Tensor]] = []  # of each checkpoint
        self.mean: dict[str, torch.Tensor] = {}  # of the weights since the last checkpoint was due
        self.averaged = 0  # how many weights are in the mean
        self.printed = self.printed_share = -math.inf  # when the last line was printed, and the share of the run

    def _on_training_start(self) -> None:
        self.held_out.returns(Trained(self.model), 2)  # compiles what there is to compile
        self._average()
        self._evaluate()  # the start is a candidate, too
        self.mean, self.averaged = {}, 0
        self.clock.begin()

    def _on_step(self) -> bool:
        self.clock.steps_taken = self.num_timesteps
        if self.clock.limit is not None:  # the exploration of DQN follows the steps that there will be
            self.model._total_timesteps = int(self.num_timesteps / max(self.clock.share(), 1e-6))
        return self.clock.limit is None or self.clock.time_share() < 1.0

    def _on_rollout_end(self) -> None:
        self.changed = True

    def _on_rollout_start(self) -> None:
        share = self.clock.share()
        if time.perf_counter() - self.printed >= PRINT_EVERY and share - self.printed_share >= PRINT_SHARE:
            self._print("learning")
        if share >= EARLIEST:
            self._average()
        coming = [due for due in self.due if due > share]
        if len(coming) < len(self.due):
            self.due = coming
            limit = self.clock.limit
            if limit is None or self.clock.evaluation_seconds < 0.05 * limit:  # else the checkpoint at the end must do
                self._evaluate()
            self.mean, self.averaged = {}, 0

    def _average(self) -> None:
        """Take the weights as they are into the mean."""
        self.averaged += 1
        for name, weight in self.model.policy.state_dict().items():
            mean = self.mean.setdefault(name, torch.zeros_like(weight))
            mean += (weight - mean) / self.averaged

    def _evaluate(self) -> None:
        """Evaluate the mean of the weights, and keep it as a checkpoint."""
        began, policy = time.perf_counter(), self.model.policy
        present = {name: weight.clone() for name, weight in policy.state_dict().items()}
        policy.load_state_dict(self.mean)
        returns = self.held_out.returns(Trained(self.model))
        policy.load_state_dict(present)
        self.clock.evaluation_seconds, self.changed = time.perf_counter() - began, False
        row = {"steps": self.num_timesteps, "seconds": round(self.clock.seconds(), 1)} | self.held_out.row(returns)
        self.rows.append(row)
        self.values.append(self.held_out.values(returns))
        self.weights.append(self.mean)
        references = self.held_out.references
        self.logger.record("held_out/return", row["return"])
        over = "".join(f"_over_{last}" for last in list(references)[-1:])
        self.logger.record(f"held_out/loss{over}", row["loss_over_reference"])
        others = ", ".join(f"{name} {np.mean([one.mean() for one in own]):.4f}" for name, own in references.items())
        self._print(f"return {row['return']:.4f}" + (f" ({others})" if others else ""))

    def _print(self, text: str) -> None:
        """Print a line that begins with how far the run is."""
        share = self.clock.share()
        self.printed, self.printed_share = time.perf_counter(), share
        if self.show:
            line = f"{self.clock.seconds():6.0f} s  {self.num_timesteps:12,} steps  {min(share, 1):4.0%}  {text}"
            print(line, file=sys.stderr, flush=True)

    def keep_best(self) -> dict[str, object]:
        """Evaluate a checkpoint at the end, and put the best weights into the model; returns what the card says."""
        if self.changed or len(self.rows) < 2:
            self._average()
            self._evaluate()
        kept = 1 + latest_of_the_best(np.stack(self.values[1:]))
        if self.values[kept].mean() <= self.values[0].mean():
            kept = 0  # the start
        self.model.policy.load_state_dict(self.weights[kept])
        return {"steps": self.num_timesteps, "kept": self.rows[kept]["steps"], "checkpoints": self.rows}
