"""The phases of algorithms that leave out one arm after the other."""

from __future__ import annotations

import functools
import math
from typing import Any

from bandit_envs.kernels import PULLS_LIMIT, jit


@functools.lru_cache(maxsize=64)
def phase_ends(K: int, T: int) -> tuple[int, ...]:
    """Cumulative pulls n_0 .. n_{K-1} of a surviving arm: n_k = ceil((T - K) / (logbar(K) (K + 1 - k))), exactly.

    [Audibert, Bubeck & Munos 2010, section 4; Katz-Samuels & Scott 2018, Alg. 2, line 2]
    """
    unit = math.lcm(*range(1, K + 1))
    logbar = unit // 2 + sum(unit // i for i in range(2, K + 1))  # times unit
    return (0, *(-(-(T - K) * unit // (logbar * (K + 1 - k))) for k in range(1, K)))


@jit
def whole(pulls: Any) -> Any:
    """A number of pulls, rounded up; at most `PULLS_LIMIT`, which no arm reaches."""
    return math.ceil(pulls) if pulls < PULLS_LIMIT else PULLS_LIMIT
