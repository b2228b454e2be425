"""A race: two functions that do the same work, timed in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

clock = time.process_time


@dataclass
class Race:
    """Runs two functions in turn and stores the ratio of their times with the benchmark."""

    benchmark: Any

    def __call__(
        self,
        ours: Callable[[], Any],
        reference: Callable[[], Any],
        *,
        against: str,
        at_least: float | None = None,
        at_most: float | None = None,
        rounds: int = 15,
        prepare: Callable[[], Any] | None = None,
        timer: Callable[[], float] = clock,
    ) -> None:
        """Time `ours` and `reference`.

        Args:
            ours, reference: the two, doing work of the same size. against: the reference in words.
            at_least: target for how many times as fast ours is. at_most: target for how many times as long ours takes.
                Neither: how many times as long, for orientation.
            rounds: of each. prepare: called before each round of the reference, not timed.
            timer: of the reference, the same as that of the benchmark.
        """
        times: list[float] = []

        def before() -> None:
            if prepare is not None:
                prepare()
            start = timer()
            reference()
            times.append(timer() - start)

        self.benchmark.pedantic(ours, setup=before, rounds=rounds, warmup_rounds=1)
        if self.benchmark.stats is None:  # --benchmark-disable
            return
        ours_to_reference = np.array(self.benchmark.stats.stats.data) / np.array(times[-rounds:])
        ratios = 1 / ours_to_reference if at_least is not None else ours_to_reference
        low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
        met = ratio >= at_least if at_least is not None else at_most is None or ratio <= at_most
        sign = "" if at_least is at_most is None else f">= {at_least:g}" if at_least is not None else f"<= {at_most:g}"
        self.benchmark.extra_info.update(ratio=ratio, quartiles=[low, high], target=sign, met=met, against=against)
