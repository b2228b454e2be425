"""The blocks of an evaluation, in memory or in a folder, and notes of the calls that make them: which run, how long."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import platform
import socket
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.files import json_form
from ..blocks import Block, Group, cut
from ..moments import Moments, SummedRun
from ..rows import KeptRun, Run
from .block_files import check_seal, moments_as_bytes, moments_from, name_of, rows_as_bytes, rows_from
from .places import Place

CALLS = "calls"  # the folder of the notes
NOTED = 10.0  # seconds between two notes of a call
FRESH = 60.0  # a note that is younger is of a call that goes on


def _stamp() -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime())


class Calls:
    """The note of the call of now, written again and again beside those of others; in memory alone without a place."""

    def __init__(self, place: Place | None, runs: int) -> None:
        self.place, self._name, self._written = place, "", 0.0
        self._own: dict[str, Any] = {"pulls": [0] * runs, "seconds": [0.0] * runs}

    @contextlib.contextmanager
    def at_work(self, facts: Mapping[str, object]) -> Iterator[bool]:
        """A context for making blocks; yields whether other calls make some too. `facts`: of this call."""
        if self.place is None:
            yield False
            return
        others = any(note.get("ended", "") is None for note in self._notes(time.time() - FRESH))
        host, began = socket.gethostname(), _stamp()
        self._name = f"{CALLS}/{began}-{host}-{os.getpid()}-{uuid.uuid4().hex[:6]}.json"
        of_now = {"command": sys.argv, "machine": platform.platform(), "host": host, "began": began, "ended": None}
        self._own = {**facts, **of_now, **self._own}
        self._write(self.place)
        try:
            yield others
        finally:
            self._own["ended"] = _stamp()
            with contextlib.suppress(OSError):
                self._write(self.place)

    def _notes(self, since: float = 0.0) -> list[dict[str, Any]]:
        """Those that have been written since then; in memory that of now."""
        if self.place is None:
            return [self._own]
        found = []
        for name, at in self.place.names(CALLS).items():
            if at >= since:
                with contextlib.suppress(OSError, ValueError):
                    found.append(json.loads(self.place.read(f"{CALLS}/{name}")))
        return [note for note in found if isinstance(note, dict)]

    def _write(self, place: Place) -> None:
        self._written = time.monotonic()
        place.write(self._name, (json.dumps(self._own, indent=1, default=json_form) + "\n").encode(), durable=False)

    def alive(self) -> None:
        """Write the note again, if the last one is some time ago."""
        if self.place is not None and self._name and time.monotonic() - self._written > NOTED:
            self._write(self.place)

    def spend(self, run: int, pulls: int, seconds: float) -> None:
        """Note how long so many pulls of a run took."""
        self._own["pulls"][run] += pulls
        self._own["seconds"][run] += seconds

    def pace(self, run: int) -> float:
        """Seconds of one core that a pull of a run takes, by the notes of all calls; NaN where they have none."""
        pulls, seconds = 0, 0.0
        for note in self._notes():
            with contextlib.suppress(KeyError, TypeError, IndexError):
                pulls, seconds = pulls + note["pulls"][run], seconds + note["seconds"][run]
        return seconds / pulls if pulls else math.nan


BLOCKS, SUMS = "episodes.parquet", "sums.parquet"  # the folders of the blocks with rows, and without
ENDED = "ended.json"  # after how many blocks a run was precise enough


def held(sums: bool, block: Block, runs: Sequence[Run]) -> object:
    """What is kept of a block where there is no folder: its rows, or sums."""
    return Moments.of(runs) if sums else runs


class Store:
    """Blocks of an evaluation.

    Args:
        empty_runs: all but the rows, of each run.
        groups: how the runs, of so many `episodes`, are cut into blocks.
        settings: of the evaluation: whether rows are kept, and whether it is to end when it is precise enough.
        place: the folder of the files, which survive a kill; None: memory.
        root: the hash of the evaluation, by which the files are named.
    """

    form: Callable[[Block, Sequence[Run]], object]  # makes the content of a block, given it and the rows of each run

    def __init__(
        self,
        empty_runs: Sequence[Run],
        groups: Sequence[Group],
        episodes: int,
        settings: Mapping[str, object],
        place: Place | None = None,
        root: str = "",
    ) -> None:
        self.empty_runs = empty_runs
        self.blocks = cut(groups, episodes)  # where a run has ended early, those before its end
        self.sums = settings["rows"] == "none"  # whether counts and sums are kept, and no rows
        self.place, self.root, self.inside = place, root, SUMS if self.sums else BLOCKS
        as_bytes = functools.partial(moments_as_bytes if self.sums else rows_as_bytes, root)
        self.form = functools.partial(held, self.sums) if place is None else as_bytes
        self.awaited = settings.get("precision") is not None  # whether it is to end early, and has not yet
        self.ended: int | None = None  # the look at which it has
        self.calls = Calls(place, len(empty_runs))  # notes of what has been spent
        self.counted, self._known = 0, list[Moments]()  # how many of the first blocks have been merged
        self._held = dict[int, Any]()  # in memory, by the numbers of the blocks

    def _file(self, block: Block) -> str:
        return f"{self.inside}/{name_of(self.root, block)}"

    def has(self, block: Block) -> bool:
        """Whether the block is there."""
        if self.place is not None:
            return self.place.has(self._file(block))
        return block.number in self._held or self.sums and block.number < self.counted

    def missing(self) -> list[Block]:
        """The blocks that are not there."""
        if self.place is None:
            return [block for block in self.blocks if not self.has(block)]
        names = self.place.names(self.inside)
        return [block for block in self.blocks if name_of(self.root, block) not in names]

    def lacking(self, blocks: Sequence[Block]) -> list[Block]:
        """Those of these blocks that are to be made: they are missing, or damaged and now removed, with a warning."""
        missing = set(self.missing())
        return [block for block in blocks if block in missing or self._discarded(block)]

    def _discarded(self, block: Block) -> bool:
        try:
            self.check(block)
        except ValueError as error:
            warnings.warn(f"{error}: made again", RuntimeWarning, stacklevel=4)
            self.discard(block)
            return True
        return False

    def refuse_gaps(self) -> None:
        """Refuse to be read while blocks are missing."""
        if self.awaited:
            raise ValueError(f"{self.place} is not complete: call evaluate again with the same out")
        if missing := len(self.missing()):
            text = f"{self.place} is not complete: {missing} of {len(self.blocks)} blocks are missing;"
            raise ValueError(f"{text} call evaluate again with the same out, or copy them there")

    def advice(self) -> str | None:
        """How to go on where the making of blocks was interrupted, in words."""
        count = len(self.blocks)
        said = f"{count - len(self.missing())} of {count} blocks are kept in {self.place}, and the same call goes on"
        return None if self.place is None else f"{said} from them"

    def put(self, block: Block, content: Any) -> None:
        """Keep what a block holds, as `form` has made it."""
        if self.place is not None:
            self.place.write(self._file(block), content)
            self.calls.alive()
            return
        self._held[block.number] = content
        while self.sums and not self.awaited and self.counted in self._held:  # no block is looked at by itself
            self.merged(self.counted + 1)

    def discard(self, block: Block) -> None:
        """Remove a block from the folder, if there is one."""
        if self.place is not None:
            self.place.remove(self._file(block))

    @contextlib.contextmanager
    def _reading(self, block: Block) -> Iterator[Place]:
        """Around all that reads a file: a `ValueError` says whether it is missing, or what is wrong with it."""
        assert self.place is not None
        try:
            yield self.place
        except FileNotFoundError:
            self.refuse_gaps()
            raise
        except Exception as error:
            said = " ".join(str(error).split()) + " is missing" * isinstance(error, KeyError)
            text = f"{self.place}/{self._file(block)} is damaged, and is made again where evaluate"
            raise ValueError(f"{text} is called again with the same out: {said:.300}") from error

    def check(self, block: Block) -> None:
        """Refuse a file that is not what was written, by a `ValueError` that names it."""
        with self._reading(block) as place:
            check_seal(place.read(self._file(block)))
        if self.sums:
            self.moments(block)
        else:
            self.part(block, [])

    def part(self, block: Block, columns: Sequence[str] | None = None) -> list[Run]:
        """The rows of a block, of each of its runs: some columns, or all."""
        if self.place is None:
            return list(self._held[block.number])
        empty_runs = [self.empty_runs[i] for i in block.runs]
        names = list(empty_runs[0].columns) if columns is None else columns
        with self._reading(block) as place, place.open(self._file(block)) as source:
            return rows_from(source, name_of(self.root, block), empty_runs, block.episodes, names)

    def moments(self, block: Block) -> Moments:
        """What is known of a block, without its rows; in memory asked for once."""
        if not self.sums:
            return Moments.of(self.part(block))
        if self.place is None:
            held: Moments = self._held.pop(block.number)
            return held
        with self._reading(block) as place:
            return moments_from(place.read(self._file(block)), name_of(self.root, block))

    def merged(self, count: int | None = None) -> Moments:
        """What is known of the first blocks, merged in their order; no fewer than before, None: of all."""
        if count is None and self.counted < len(self.blocks):
            self.refuse_gaps()
        while self.counted < (len(self.blocks) if count is None else count):
            part = self.moments(self.blocks[self.counted])
            self._known = [self._known[0].merged(part) if self._known else part]
            self.counted += 1
        return self._known[0]

    def advance(self, count: int) -> list[Run]:
        """What is known of the first blocks, by run, without their rows."""
        known, runs = self.merged(count), [SummedRun(empty, i, self) for i, empty in enumerate(self.empty_runs)]
        for run in runs:
            run.moments = known
        return list(runs)

    def look(self) -> None:
        """See whether a run has ended that was to end when it is precise enough."""
        if self.place is not None and self.awaited and self.place.has(ENDED):
            ended = json.loads(self.place.read(ENDED))
            self._cut(int(ended["blocks"]), int(ended["look"]))

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count, as they were found to be enough at this look, and remove all others."""
        for block in self.blocks[count:]:  # before it is written: then a call that follows a kill comes here again
            self.discard(block)
        if self.place is not None:
            self.place.write(ENDED, (json.dumps({"blocks": count, "look": look}) + "\n").encode())
        self._cut(count, look)

    def _cut(self, count: int, look: int) -> None:
        self.blocks, self.ended, self.awaited = self.blocks[:count], look, False

    def runs(self) -> list[Run]:
        """All that is kept, by run; what files hold is read when it is asked for. Of rows in memory once."""
        if self.sums or self.place is not None:
            kind = SummedRun if self.sums else StoredRun
            return [kind(empty, i, self) for i, empty in enumerate(self.empty_runs)]
        made = []
        for i, empty in enumerate(self.empty_runs):
            parts = [self._held[block.number][block.runs.index(i)] for block in self.blocks if i in block.runs]
            made.append(empty.joined(parts, self.calls.pace(i)))
        return made


class _Columns(dict[str, NDArray[np.generic]]):
    """The columns of a run, (episodes, C) each, read when they are first asked for."""

    def __init__(self, parts: Callable[[str], list[Run]]) -> None:
        self._parts = parts

    def __missing__(self, name: str) -> NDArray[np.generic]:
        self[name] = np.ascontiguousarray(np.concatenate([part.columns[name] for part in self._parts(name)]))
        return self[name]


class StoredRun(KeptRun):
    """The rows of one agent at one budget in the blocks of a folder, of which a column is read when it is asked for."""

    def __init__(self, empty: Run, place: int, store: Store) -> None:
        super().__init__(empty, place, store)
        self._blocks = [block for block in store.blocks if place in block.runs]
        self.columns = _Columns(self._parts)

    def _parts(self, *columns: str) -> list[Run]:
        """These columns of each block."""
        return [self._store.part(block, list(columns))[block.runs.index(self.place)] for block in self._blocks]

    @functools.cached_property
    def episodes(self) -> int:
        return sum(block.episodes for block in self._blocks)

    @functools.cached_property
    def pulls(self) -> NDArray[np.float64]:  # type: ignore[override]
        sums: NDArray[np.float64] = np.sum([part.pulls for part in self._parts()], axis=0)
        return sums
