"""The histories of episodes: which arm each pull was of and what it yielded, in order, for agents that read samples.

A history holds H entries, H the most pulls that an episode can have. An entry is a pull, or a bulk pull, which
holds the mean and the number of its samples. Entries after the last pull hold the arm -1, and zeros else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..instances.arms import ends_of
from ..kernels.checks import Floats, Ints, as_array
from ..kernels.compiled import part
from ..kernels.structs import kernel
from ..problems.task import Task
from ..simulation.arrays import Simulation
from ..simulation.simulator import PULLED, Simulator

Array = NDArray[Any]

MOST_NUMBERS = 2**27  # in the histories of all episodes side by side, which then take 1 GiB
NOTHING = -1  # in place of an arm


class Log(NamedTuple):
    """The arrays of a `History`."""

    arms: Ints
    times: Ints
    samples: Floats  # (E, H, D)
    made: Ints  # (2, E), entries, and pulls in them
    length: Ints  # (E, 1), what is shown of it, which others may write to


@part
def note(sim, log, e, arm, pulls):
    """Write down what episode e has just shown of an arm, which has so many pulls with it in the history."""
    i, D = log.made[0, e], log.samples.shape[2]
    log.arms[e, i], log.times[e, i] = arm, pulls - log.made[1, e]
    for d in range(D):
        log.samples[e, i, d] = sim.sample[e * D + d]
    log.made[0, e], log.made[1, e], log.length[e, 0] = i + 1, pulls, i + 1


@kernel
def _record(sim: Simulation, chosen, log: Log):
    """Write down the pulls of a step, of the arms `chosen` (E,)."""
    for e in range(len(sim.did)):
        if sim.did[e] == PULLED:
            note(sim, log, e, chosen[e], sim.spent[e])


def check_size(task: Task, count: int) -> None:
    """Refuse histories that are too long, and tables that are too large for so many episodes."""
    if task.observation == "history":
        numbers, most = count * task.entries * (2 + (task.D if task.pull == "arm" else 1)), MOST_NUMBERS
        what = f"histories of {count:,} episodes side by side, of up to {task.entries:,} pulls each,"
    else:  # those seen and a copy of them, and all in the order of the episode
        numbers, most = 3 * count * task.K * task.D * (task.items or 0), 4 * MOST_NUMBERS
        what = f"scores of {count:,} episodes side by side, of {task.items or 0:,} rows and {task.K} arms each,"
    if numbers > most:
        text = f"the {what} have {numbers:,} numbers of 8 bytes, and at most {most:,} are allowed:"
        raise ValueError(f"{text} give a smaller budget, max_pulls or num_envs")


class History:
    """The histories of so many episodes, E, of a task with observation="history".

    Attributes:
        arms: (E, H), -1 behind the last entry. samples: (E, H), or (E, H, D) where a pull samples D numbers.
        times: (E, H), pulls that an entry stands for. length: (E, 1), entries so far.
        log: all arrays, as kernels take them.
    """

    def __init__(self, task: Task, count: int) -> None:
        check_size(task, count)
        D = task.D if task.pull == "arm" else 1
        self.arms, self.times = np.full((count, task.entries), NOTHING), np.zeros((count, task.entries), np.int64)
        self._samples, self._made = np.zeros((count, task.entries, D)), np.zeros((2, count), np.int64)
        self.samples: Floats = self._samples if D > 1 else self._samples[:, :, 0]
        self.length = np.zeros((count, 1), np.int64)
        self.log = Log(self.arms, self.times, self._samples, self._made, self.length)

    def clear(self, rows: Ints) -> None:
        """Begin new histories of the episodes `rows` (n,)."""
        self.arms[rows], self.length[rows] = NOTHING, 0
        self.times[rows], self._samples[rows], self._made[:, rows] = 0, 0.0, 0

    def record(self, simulator: Simulator, chosen: Ints) -> None:
        """Write down the last step of a simulator, in which the episodes that pulled have pulled the arms `chosen`."""
        _record(simulator.arrays, chosen, self.log)

    def append(self, arm: int, sample: Floats) -> None:
        """Write down a single pull, with its sample (D,), of a history that stands alone; beyond its end, nothing."""
        i = self._made[0, 0]
        if i < self.arms.shape[1]:
            self.arms[0, i], self.times[0, i], self._samples[0, i] = arm, 1, sample
            self._made += 1
            self.length[0, 0] = i + 1

    def shown(self) -> dict[str, Array]:
        """The parts of the observation that are the history's, live views."""
        return {"arms": self.arms, "samples": self.samples, "times": self.times, "length": self.length}

    def state(self) -> list[Array]:
        """The arrays that hold all attributes; no copies."""
        return [self.arms, self._samples, self.times, self._made, self.length]


def entries_of(task: Task, arms: Ints, times: Ints, length: Ints) -> NDArray[np.bool_]:
    """Which places of histories hold entries, (E, H), of arms and times (E, H), and length (E, 1)."""
    H = arms.shape[1]
    inside = np.arange(H) < length
    for name, array, low, high, allowed in (
        ("length", length, 0, H, np.True_),
        ("arms", arms, 0, task.stop - 1, inside),
        ("times", times, 1, task.entries, inside),
    ):
        if (wrong := allowed & ((array < low) | (array > high))).any():
            place = "" if name == "length" else " in the entries of a history"
            raise ValueError(f"{name} must be in {low} .. {high}{place}, got {array[wrong][0]}")
    return inside


def _part(name: str, history: Mapping[str, Array], dtype: Any) -> Array:
    """A part of histories, of integers or of floats."""
    kinds, what = ("iu", "an integer array") if dtype is np.int64 else ("iuf", "an array of numbers")
    array = as_array(history.get(name))
    if array.dtype.kind not in kinds:
        raise ValueError(f"histories have {name}, {what}, got {history.get(name)!r:.200}")
    return np.ascontiguousarray(array, dtype)


def tally(task: Task, history: Mapping[str, Array]) -> tuple[Ints, Floats]:
    """What histories say of each arm: pulls (E, K), and means (E, K) or (E, K, D) of its samples, NaN for none.

    The means are those of the statistics, bit for bit where no pull is a bulk pull, else up to rounding. Where
    coordinates are pulled, pulls too are (E, K, D). `history` is an observation in the form "history" with a leading
    episode axis; only `arms`, `samples`, `times` and `length` are read.
    """
    if not isinstance(history, Mapping):
        raise ValueError(f"histories are a dict of arms, samples, times and length, got {type(history).__name__}")
    arms, times, length = (_part(name, history, np.int64) for name in ("arms", "times", "length"))
    if arms.ndim != 2 or not arms.size:
        raise ValueError(f"arms of histories must be of shape (E, H), got {arms.shape}")
    E, H = arms.shape
    D = task.D if task.pull == "arm" else 1
    samples = _part("samples", history, np.float64)
    wanted = {"times": (times, (E, H)), "length": (length, (E, 1)), "samples": (samples, (E, H, D)[: 2 + (D > 1)])}
    for name, (array, shape) in wanted.items():
        if array.shape != shape:
            raise ValueError(f"{name} of histories whose arms are {arms.shape} must be {shape}, got {array.shape}")
    entries, (low, high) = np.nonzero(entries_of(task, arms, times, length)), ends_of(task)
    places, counts = (entries[0], arms[entries]), times[entries]
    pulls, sums = np.zeros((E, task.stop), np.int64), np.zeros((E, task.stop, D))
    np.add.at(pulls, places, counts)
    np.add.at(sums, places, (samples.reshape(E, H, D)[entries] - low) * counts[:, None])
    with np.errstate(invalid="ignore"):
        means = np.minimum(low + sums / pulls[:, :, None], high)
    return pulls.reshape(E, *task.shape), means.reshape((E, task.K) if task.D == 1 else (E, task.K, task.D))
