"""The blocks of an evaluation in a folder: which are there, which are damaged, and what they hold."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..blocks import Block, Group, cut
from ..moments import Moments, SummedRun
from ..rows import Run
from .block_files import check_seal, moments_as_bytes, moments_from, name_of, rows_as_bytes, rows_from
from .calls import Calls
from .memory import Prefix
from .places import Place, Remote
from .reading import StoredRun, StoredSums

__all__ = ["BLOCKS", "ENDED", "SUMS", "Folder", "FolderOfMoments"]

BLOCKS, SUMS = "episodes.parquet", "sums.parquet"  # the folders of the blocks with rows, and without
ENDED = "ended.json"  # after how many blocks a run was precise enough


def _told(error: Exception) -> str:
    """An error in one line; that of a missing key does not tell what it is."""
    said = " ".join(str(error).split())
    return f"{said} is missing" if isinstance(error, KeyError) else said


class Folder:
    """Blocks with rows in a folder.

    Args:
        place: the folder.
        rooms: all but the rows, of each run.
        groups: how they are cut into blocks. episodes: of each run.
        root: the hash of the evaluation.

    Attributes:
        blocks: all of the plan; where a run has ended early, those before its end.
        form: makes the files of blocks.
        ended: the look at which a run has ended that was to end when it is precise enough. awaited: it has not yet.
    """

    inside, form_of = BLOCKS, staticmethod(rows_as_bytes)

    def __init__(
        self, place: Place | Remote, rooms: Sequence[Run], groups: Sequence[Group], episodes: int, root: str
    ) -> None:
        self.place, self.groups, self.episodes, self._rooms = place, groups, episodes, rooms
        self.blocks = cut(groups, episodes)
        self.form: Callable[..., list[bytes]] = functools.partial(self.form_of, root)
        self.calls = Calls(place, len(rooms))
        self.ended: int | None = None
        self.awaited = False
        self._names = {block.number: name_of(root, block) for block in self.blocks}
        self._prefix = Prefix()

    # Which blocks there are

    def _file(self, block: Block) -> str:
        return f"{self.inside}/{self._names[block.number]}"

    def has(self, block: Block) -> bool:
        """Whether the block is there."""
        return self.place.has(self._file(block))

    def missing(self) -> list[Block]:
        """The blocks that are not there."""
        names = self.place.names(self.inside)
        return [block for block in self.blocks if self._names[block.number] not in names]

    def refuse_gaps(self) -> None:
        """Refuse to be read while blocks are missing.

        Raises:
            ValueError: telling how many.
        """
        if self.awaited:
            raise ValueError(f"{self.place} is not complete: call evaluate again with the same out")
        if missing := len(self.missing()):
            raise ValueError(
                f"{self.place} is not complete: {missing} of {len(self.blocks)} blocks are missing; call evaluate "
                "again with the same out, or copy them there"
            )

    # Writing

    def begin(self, told: Mapping[str, Any]) -> bool:
        """Note that a call begins; returns whether others go on at the same time.

        Args:
            told: of the call.
        """
        return self.calls.begin(told)

    def tidy(self) -> None:
        """Remove what calls that have been killed left of blocks that they were writing."""
        self.place.tidy(self.inside)

    def put(self, block: Block, content: bytes) -> None:
        """Keep a block."""
        self.place.write(self._file(block), content)
        self.calls.alive()

    def spent(self, run: int, pulls: int, seconds: float) -> None:
        """Note how long so many pulls of a run took."""
        self.calls.spent(run, pulls, seconds)

    def discard(self, block: Block) -> None:
        """Remove a block."""
        self.place.remove(self._file(block))

    # Reading

    @contextlib.contextmanager
    def _reading(self, block: Block) -> Iterator[None]:
        """Around all that reads a block: errors tell what is wrong with it.

        Raises:
            ValueError: if it is missing or damaged.
        """
        try:
            yield
        except FileNotFoundError:
            self.refuse_gaps()
            raise
        except Exception as error:
            raise ValueError(
                f"{self.place}/{self._file(block)} is damaged, and is made anew where evaluate is called again with "
                f"the same out: {_told(error):.300}"
            ) from error

    def check(self, block: Block) -> None:
        """Refuse a block that is not what was written.

        Raises:
            ValueError: naming the file.
        """
        with self._reading(block):
            check_seal(self.place.read(self._file(block)))
        self.part(block, [])

    def part(self, block: Block, columns: Sequence[str] | None = None) -> list[Run]:
        """The rows of a block, of each of its runs.

        Args:
            block: which.
            columns: their names; None: all.

        Raises:
            ValueError: if the block is missing or damaged.
        """
        rooms = [self._rooms[i] for i in block.runs]
        names = list(rooms[0].columns) if columns is None else columns
        with self._reading(block), self.place.open(self._file(block)) as source:
            return rows_from(source, self._names[block.number], rooms, block.episodes, names)

    def moments(self, block: Block) -> Moments:
        """What is known of a block, without its rows."""
        return Moments.of(self.part(block))

    def runs(self) -> list[Run]:
        """All runs; their rows are read when they are asked for."""
        return [StoredRun(room, self, i, self.episodes) for i, room in enumerate(self._rooms)]

    def speed(self, run: int) -> tuple[int, float]:
        """Pulls of a run and the seconds that they took, of all calls."""
        return self.calls.speed(run)

    # Ending early

    def look(self) -> None:
        """See whether a run has ended that was to end when it is precise enough."""
        self.awaited = True
        if self.place.has(ENDED):
            told = json.loads(self.place.read(ENDED))
            self._shorten(int(told["blocks"]))
            self.ended, self.awaited = int(told["look"]), False

    def advance(self, count: int) -> list[Run]:
        """What is known of the first blocks, without their rows."""
        moments = self._prefix.to(count, lambda i: self.moments(self.blocks[i]))
        return [SummedRun(room, moments, i, 0.0) for i, room in enumerate(self._rooms)]

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count, and remove all others."""
        for block in self.blocks[count:]:  # before it is written: then a call that follows a kill comes here again
            self.discard(block)
        self.place.write(ENDED, (json.dumps({"blocks": count, "look": look}) + "\n").encode())
        self.look()

    def _shorten(self, count: int) -> None:
        self.blocks = self.blocks[:count]
        self.episodes = sum(block.episodes for block in self.blocks if 0 in block.runs)


class FolderOfMoments(Folder):
    """Blocks in a folder that hold counts and sums, and no rows."""

    inside, form_of = SUMS, staticmethod(moments_as_bytes)

    def moments(self, block: Block) -> Moments:
        """What a block holds.

        Raises:
            ValueError: if the block is missing or damaged.
        """
        with self._reading(block):
            return moments_from(self.place.read(self._file(block)), self._names[block.number])

    def check(self, block: Block) -> None:
        """Refuse a block that is not what was written.

        Raises:
            ValueError: naming the file.
        """
        self.moments(block)

    def runs(self) -> list[Run]:
        """All that is kept, merged in the order of the blocks; read when it is asked for."""
        return [StoredSums(room, self, i) for i, room in enumerate(self._rooms)]

    @functools.cached_property
    def merged(self) -> Moments:
        """Of all blocks."""
        self.refuse_gaps()
        return self._prefix.to(len(self.blocks), lambda i: self.moments(self.blocks[i]))
