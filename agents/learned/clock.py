"""The share of a training that is over, and the learning rate that falls with it."""

from __future__ import annotations

import time

from ..core.compile_time import CompileTime

FLOOR = 0.02  # the learning rate falls to this share of its first value, and no further


class Clock:
    """How much of a training is over: by its steps or by its wall time, whichever is further.

    `steps` are actions, `seconds` the wall time of the whole call but for compiling, of which at least half is for
    learning; either may be None. `began`: by `time.perf_counter()`. `Checkpoints` sets `steps_taken`, and
    `evaluation_seconds` of one checkpoint, for which time is kept back at the end.
    """

    def __init__(self, steps: int | None, seconds: float | None, began: float, compiling: CompileTime) -> None:
        self.steps, self.limit, self._compiling = steps, seconds, compiling
        self.steps_taken, self.evaluation_seconds, self._most = 0, 0.0, 0.0
        self._began, self._processor_began = began, time.process_time()
        self._before: float | None = None  # seconds that were over when the learning began, but for compiling

    def begin(self) -> None:
        """Say that the learning begins."""
        self._before = self.seconds() - self._compiling.seconds

    def seconds(self) -> float:
        """Wall time so far."""
        return time.perf_counter() - self._began

    def processor_seconds(self) -> float:
        """Processor time so far."""
        return time.process_time() - self._processor_began

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


class FallingRate:
    """A learning rate that falls linearly with the share of the training that is over, to `FLOOR` times its start."""

    def __init__(self, start: float, clock: Clock) -> None:
        self.start, self.clock = start, clock

    def __call__(self, progress_remaining: float) -> float:
        """The learning rate. SB3's argument is not used: it knows of steps only, and of one stage only."""
        return self.start * max(1.0 - self.clock.share(), FLOOR)
