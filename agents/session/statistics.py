"""What the arms of a session have shown: counts, sums, means and variances, as an environment keeps them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task, jit, number, updated

from ..core.confidence import MOST

__all__ = ["Statistics", "sample_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@jit
def _add(pulls, total, mean, variance, arm, sample):
    """Add a sample (D,) of an arm to pulls (K,), and to sums, means and variances (K, D)."""
    n = float(pulls[arm])
    for d in range(len(sample)):
        total[arm, d], mean[arm, d], variance[arm, d] = updated(
            n, total[arm, d], mean[arm, d], variance[arm, d], sample[d]
        )
    pulls[arm] += 1


@dataclass
class Statistics:
    """Statistics of K arms of D dimensions."""

    pulls: Ints  # (K,)
    total: Floats  # (K, D) each
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, K: int, D: int) -> Statistics:
        """Those of arms that have not been pulled."""
        return cls(np.zeros(K, np.int64), *(np.zeros((K, D)) for _ in range(3)))

    @property
    def spent(self) -> int:
        """Pulls of all arms."""
        return int(self.pulls.sum())

    def add(self, arm: int, sample: Floats) -> None:
        """Add a sample, (D,), of an arm."""
        _add(self.pulls, self.total, self.mean, self.variance, arm, sample)

    def at(self, arms: Any) -> Statistics:
        """Those of some arms, a copy."""
        return Statistics(*(getattr(self, field.name)[arms].copy() for field in fields(self)))

    def with_one_more(self) -> Statistics:
        """These, and those of an arm that has not been pulled."""
        return Statistics(
            *(
                np.concatenate([array, np.zeros((1, *array.shape[1:]), array.dtype)])
                for array in (getattr(self, field.name) for field in fields(self))
            )
        )

    def observation(self, remaining: int, public_seed: int) -> dict[str, NDArray[Any]]:
        """The statistics of a batch of one episode, as an environment shows them: live views."""
        D = self.total.shape[1]
        values = {name: getattr(self, name) for name in ("total", "mean", "variance")}
        return {
            "pulls": self.pulls[None],
            **{name: (array[:, 0] if D == 1 else array)[None] for name, array in values.items()},
            "remaining": np.array([[remaining]], np.int64),
            "public_seed": np.array([[public_seed]], np.int64),
        }

    def seen(self) -> Floats:
        """The means of a batch of one episode, (1, K) or (1, K, D), NaN for arms never pulled."""
        means = np.where(self.pulls[:, None] > 0, self.mean, np.nan)
        return (means[:, 0] if means.shape[1] == 1 else means)[None]


def sample_of(task: Task, value: Any) -> Any:
    """What was measured: a float, or a tuple of those of the dimensions.

    Raises:
        ValueError: naming the value and what is allowed.
    """
    low, high = task.support if task.support is not None and task.law != "gaussian" else (-MOST, MOST)
    if task.D == 1:
        found = number("a measurement", value, low, high)
        if task.law == "bernoulli" and found not in (low, high):
            raise ValueError(f"a measurement must be {low:g} or {high:g}, got {value!r:.200}")
        return found
    try:
        values = list(value)
    except TypeError:
        values = []
    if isinstance(value, str) or len(values) != task.D:
        raise ValueError(f"a measurement must be {task.D} numbers, got {value!r:.200}")
    return tuple(number("a measurement", one, low, high) for one in values)
