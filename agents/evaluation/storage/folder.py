"""The blocks of an evaluation in a folder: which are there, which are damaged, and what they hold."""

from __future__ import annotations

import contextlib
import functools
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..blocks import Block, Group, cut
from ..moments import Moments, SummedRun
from ..rows import Run
from .block_files import check_seal, moments_as_bytes, moments_from, name_of, rows_as_bytes, rows_from
from .calls import Calls
from .memory import Store
from .places import Place

BLOCKS, SUMS = "episodes.parquet", "sums.parquet"  # the folders of the blocks with rows, and without
ENDED = "ended.json"  # after how many blocks a run was precise enough


class Folder(Store):
    """Blocks in a folder, a place; `root` is the hash of the evaluation.

    Args:
        groups: how the runs are cut into blocks.
        settings: of the evaluation: whether rows are kept, and whether it is to end when it is precise enough.

    Attributes:
        awaited: whether it has not ended yet, and is to.
    """

    survives = True

    def __init__(
        self,
        place: Place,
        empty_runs: Sequence[Run],
        groups: Sequence[Group],
        episodes: int,
        root: str,
        settings: Mapping[str, object],
    ) -> None:
        super().__init__(empty_runs, cut(groups, episodes), settings["rows"] == "none")
        self.form = functools.partial(moments_as_bytes if self.sums else rows_as_bytes, root)
        self.place, self.groups, self.planned = place, groups, episodes
        self.inside, self.awaited = SUMS if self.sums else BLOCKS, settings.get("precision") is not None
        self.calls = Calls(place, len(empty_runs))
        self.spend, self.spent = self.calls.spend, self.calls.spent  # type: ignore[method-assign]
        self._names = {block.number: name_of(root, block) for block in self.blocks}

    def _file(self, block: Block) -> str:
        return f"{self.inside}/{self._names[block.number]}"

    def has(self, block: Block) -> bool:
        return self.place.has(self._file(block))

    def missing(self) -> list[Block]:
        """The blocks that are not there."""
        names = self.place.names(self.inside)
        return [block for block in self.blocks if self._names[block.number] not in names]

    def lacking(self, blocks: Sequence[Block]) -> list[Block]:
        missing = set(self.missing())
        return [block for block in blocks if block in missing or self._discarded(block)]

    def _discarded(self, block: Block) -> bool:
        """Whether a block is damaged: then there is a warning, and it is removed."""
        try:
            self.check(block)
        except ValueError as error:
            warnings.warn(f"{error}: made anew", RuntimeWarning, stacklevel=4)
            self.discard(block)
            return True
        return False

    def refuse_gaps(self) -> None:
        """Refuse to be read while blocks are missing."""
        if self.awaited:
            raise ValueError(f"{self.place} is not complete: call evaluate again with the same out")
        if missing := len(self.missing()):
            raise ValueError(
                f"{self.place} is not complete: {missing} of {len(self.blocks)} blocks are missing; call evaluate "
                "again with the same out, or copy them there"
            )

    @contextlib.contextmanager
    def at_work(self, told: Mapping[str, object]) -> Iterator[bool]:
        others = self.calls.begin(told)
        try:
            yield others
        finally:
            with contextlib.suppress(OSError):
                self.calls.end()

    def advice(self) -> str:
        count = len(self.blocks)
        there = count - len(self.missing())
        return f"{there} of {count} blocks are kept in {self.place}, and the same call goes on from them"

    def put(self, block: Block, content: bytes) -> None:
        self.place.write(self._file(block), content)
        self.calls.alive()

    def discard(self, block: Block) -> None:
        """Remove a block."""
        self.place.remove(self._file(block))

    @contextlib.contextmanager
    def _reading(self, block: Block) -> Iterator[None]:
        """Around all that reads a block: a `ValueError` says whether it is missing, or what is wrong with it."""
        try:
            yield
        except FileNotFoundError:
            self.refuse_gaps()
            raise
        except Exception as error:
            said = " ".join(str(error).split()) + " is missing" * isinstance(error, KeyError)
            raise ValueError(
                f"{self.place}/{self._file(block)} is damaged, and is made anew where evaluate is called again with "
                f"the same out: {said:.300}"
            ) from error

    def check(self, block: Block) -> None:
        """Refuse a block that is not what was written, by a `ValueError` that names the file."""
        with self._reading(block):
            check_seal(self.place.read(self._file(block)))
        if self.sums:
            self.moments(block)
        else:
            self.part(block, [])

    def part(self, block: Block, columns: Sequence[str] | None = None) -> list[Run]:
        """The rows of a block, of each of its runs: some columns, or all."""
        empty_runs = [self.empty_runs[i] for i in block.runs]
        names = list(empty_runs[0].columns) if columns is None else columns
        with self._reading(block), self.place.open(self._file(block)) as source:
            return rows_from(source, self._names[block.number], empty_runs, block.episodes, names)

    def moments(self, block: Block) -> Moments:
        if not self.sums:
            return Moments.of(self.part(block))
        with self._reading(block):
            return moments_from(self.place.read(self._file(block)), self._names[block.number])

    def merged(self, count: int | None = None) -> Moments:
        if count is None and self.counted < len(self.blocks):
            self.refuse_gaps()
        return super().merged(count)

    def runs(self) -> list[Run]:
        """All runs; what they hold is read when it is asked for."""
        kind = SummedRun if self.sums else StoredRun
        return [kind(empty, i, self) for i, empty in enumerate(self.empty_runs)]

    def look(self) -> None:
        """See whether a run has ended that was to end when it is precise enough."""
        if self.awaited and self.place.has(ENDED):
            ended = json.loads(self.place.read(ENDED))
            super().end(int(ended["blocks"]), int(ended["look"]))
            self.awaited = False

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count, and remove all others."""
        for block in self.blocks[count:]:  # before it is written: then a call that follows a kill comes here again
            self.discard(block)
        self.place.write(ENDED, (json.dumps({"blocks": count, "look": look}) + "\n").encode())
        self.look()


class _Columns(Mapping[str, NDArray[np.generic]]):
    """The columns of a run, (episodes, C) each, read when they are first asked for."""

    def __init__(self, names: Sequence[str], read: Callable[[str], NDArray[np.generic]]) -> None:
        self._names, self._read, self._kept = dict.fromkeys(names), read, dict[str, NDArray[np.generic]]()

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._kept:
            self._kept[name] = self._read(name)
        return self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class StoredRun(Run):
    """The rows of one agent at one budget in the blocks of a folder, of which a column is read when it is asked for."""

    def __init__(self, empty: Run, place: int, folder: Folder) -> None:
        self.keep(empty)
        self._place, self._folder = place, folder
        self._blocks = [block for block in folder.blocks if place in block.runs]
        self.columns = _Columns(list(empty.columns), self._column)  # type: ignore[assignment]

    def _parts(self, *columns: str) -> list[Run]:
        """These columns of each block."""
        return [self._folder.part(block, list(columns))[block.runs.index(self._place)] for block in self._blocks]

    def _column(self, name: str) -> NDArray[np.generic]:
        return np.ascontiguousarray(np.concatenate([part.columns[name] for part in self._parts(name)]))

    @functools.cached_property
    def episodes(self) -> int:
        """How many there are."""
        return sum(block.episodes for block in self._blocks)

    @functools.cached_property
    def pulls(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Sums over the episodes, (C, K)."""
        sums: NDArray[np.float64] = np.sum([part.pulls for part in self._parts()], axis=0)
        return sums

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """Of one core, that all pulls take, by the notes of all calls; NaN where they have none."""
        return self.total * self._folder.pace(self._place)
