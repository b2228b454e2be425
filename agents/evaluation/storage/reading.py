"""Runs whose numbers lie in the blocks of a folder, and are read when they are asked for."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..blocks import Block
from ..moments import Moments, SummedRun
from ..rows import Run

__all__ = ["StoredRun", "StoredSums"]


class Blocks(Protocol):
    """What blocks hold of rows.

    Attributes:
        blocks: all of them.
    """

    blocks: list[Block]

    def part(self, block: Block, columns: Sequence[str] | None = None) -> list[Run]:
        """Some columns of the rows of a block, of each of its runs."""
        ...

    def speed(self, run: int) -> tuple[int, float]:
        """Pulls of a run and the seconds that they took."""
        ...


class Merged(Protocol):
    """What blocks without rows hold."""

    @property
    def merged(self) -> Moments:
        """Of all blocks."""
        ...

    def speed(self, run: int) -> tuple[int, float]:
        """Pulls of a run and the seconds that they took."""
        ...


class _Columns(Mapping[str, NDArray[Any]]):
    """The columns of a run, (episodes, C) each, read when they are first asked for."""

    def __init__(self, room: Run, read: Callable[[str], NDArray[Any]]) -> None:
        self._names, self._read, self._kept = list(room.columns), read, dict[str, NDArray[Any]]()

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._kept:
            if name not in self._names:
                raise KeyError(name)
            self._kept[name] = self._read(name)
        return self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class StoredRun(Run):
    """The rows of one agent at one budget in the blocks of a folder, of which a column is read when it is asked for.

    Args:
        room: all but the rows.
        folder: holds them. place: of the run in the plan. episodes: how many there are.
    """

    def __init__(self, room: Run, folder: Blocks, place: int, episodes: int) -> None:
        for name in ("agent", "task", "at", "names", "budgets", "lower_bound", "deterministic", "stops"):
            setattr(self, name, getattr(room, name))
        self._types = {name: values.dtype for name, values in room.columns.items()}
        self._folder, self._place, self._episodes = folder, place, episodes
        self._blocks = [block for block in folder.blocks if place in block.runs and block.first < episodes]
        self.columns = _Columns(room, self._column)  # type: ignore[assignment]

    @property
    def episodes(self) -> int:
        """How many there are."""
        return self._episodes

    def _column(self, name: str) -> NDArray[Any]:
        values = np.empty((self._episodes, len(self.cells)), self._types[name])
        for block in self._blocks:
            part = self._folder.part(block, [name])[block.runs.index(self._place)]
            values[block.first : block.first + block.episodes] = part.columns[name]
        return values

    @functools.cached_property
    def pulls(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Sums over the episodes, (C, K)."""
        parts = [self._folder.part(block, [])[block.runs.index(self._place)].pulls for block in self._blocks]
        sums: NDArray[np.float64] = np.sum(parts, axis=0)
        return sums

    @property
    def pulls_per_second(self) -> float:
        """Pulls per second of one core, by the notes of all calls; NaN where they tell nothing, as of a killed one."""
        pulls, seconds = self._folder.speed(self._place)
        return pulls / seconds if pulls else math.nan

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """Of one core, that all pulls take."""
        return float(self.columns["total_pulls"][:, -1].sum() / max(self.pulls_per_second, 1e-9))


class StoredSums(SummedRun):
    """What a folder keeps of one agent at one budget, without rows.

    Args:
        room: all but the rows. folder: holds it. place: of the run in the plan.
    """

    def __init__(self, room: Run, folder: Merged, place: int) -> None:
        self._folder = folder
        self.keep(room, place)

    @property
    def moments(self) -> Moments:  # type: ignore[override]
        """Of all runs."""
        return self._folder.merged

    @property
    def pulls(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Sums over the episodes, (C, K)."""
        return self.moments.pulls[self.place]

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """Of one core, that all pulls take; NaN where the notes of calls tell nothing."""
        pulls, seconds = self._folder.speed(self.place)
        return self.mean("total_pulls", -1) * self.episodes * (seconds / pulls if pulls else math.nan)
