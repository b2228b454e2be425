"""Where the blocks of an evaluation are kept: in memory, or in a folder that a kill leaves whole.

    FOLDER/settings.json            what is evaluated: environment, agents, seed, versions, how it is cut into blocks
    FOLDER/episodes.parquet/        a file for each block, NUMBER-HASH.parquet, with columns as `Evaluation.episodes`
    FOLDER/sums.parquet/            in place of it where no rows are kept
    FOLDER/ended.json               after how many blocks a run ended that was to end when it is precise enough
    FOLDER/calls/                   a note of each call: command, machine, versions, seconds

A file has its name only once it is complete. Its name tells the block and, by a hash, the evaluation that it belongs
to; two calls that make the same block write the same bytes. Files may be copied from one folder to another.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import os
import platform
import socket
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task

from ..core.files import SETTINGS, json_form, read_json
from ..core.optional import require
from .blocks import Block, Group, cut
from .moments import Moments, SummedRun
from .rows import Run

__all__ = [
    "Folder",
    "Memory",
    "MemoryOfMoments",
    "Place",
    "Remote",
    "add_tables",
    "claimed",
    "clear",
    "holds",
    "lacking",
    "opened",
    "place_of",
]

FORMAT = "blocks 1"
SUMMED = "sums.parquet"
ENDED = "ended.json"  # after how many blocks a run was precise enough
BLOCKS, CALLS, TABLES = "episodes.parquet", "calls", ("summary.csv", "pulls.parquet")
NOTED = 10.0  # seconds between two notes of a call
FRESH = 60.0  # a note that is younger is of a call that goes on
Content = Any  # of a block: rows as a list with a `Run` for each run


def moments_of(blocks: Sequence[Block], parts: Sequence[Sequence[Run]]) -> list[Moments]:
    """What is kept of blocks without rows.

    Args:
        blocks: what they are.
        parts: for each run the rows of each block.
    """
    return [Moments.of([rows[i] for rows in parts]) for i in range(len(blocks))]


class Memory:
    """Rows in memory.

    Args:
        runs: room for all rows, of each run.
    """

    form: Any = None  # blocks of one span need not be cut

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs

    def has(self, block: Block) -> bool:
        """Whether the block is there."""
        return False

    def put(self, block: Block, content: list[Run]) -> None:
        """Keep what a block, or several neighbours that were made in one go, hold."""
        for i, part in zip(block.runs, content, strict=True):
            self._runs[i].put(block.first, part)

    def spent(self, run: int, pulls: int, seconds: float) -> None:
        """Note how long so many pulls of a run took."""
        self._runs[run].seconds += seconds

    def runs(self) -> list[Run]:
        """All rows."""
        return self._runs

    def close(self) -> None:
        """Nothing is left to do."""


def rows_of(blocks: Sequence[Block], parts: Sequence[Sequence[Run]]) -> list[list[Run]]:
    """The rows of blocks: of each block those of each run."""
    return [[rows[i] for rows in parts] for i in range(len(blocks))]


class MemoryOfBlocks(Memory):
    """Rows in memory, of which only the first blocks may count in the end.

    Args:
        plans: makes room for so many episodes, of each run.
        blocks: all of them.
    """

    form = staticmethod(rows_of)

    def __init__(self, plans: Sequence[Callable[[int], Run]], blocks: Sequence[Block]) -> None:
        super().__init__([room(0) for room in plans])
        self._plans, self.blocks, self._prefix = plans, blocks, _Prefix()
        self._parts: dict[int, list[Run]] = {}

    def put(self, block: Block, content: list[Run]) -> None:
        """Keep what a block holds."""
        self._parts[block.number] = content

    def advance(self, count: int) -> list[Run]:
        """What is known of the first blocks, without their rows."""
        moments = self._prefix.to(count, lambda i: Moments.of(self._parts[i]))
        return [SummedRun(room, moments, i, room.seconds) for i, room in enumerate(self._runs)]

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count."""
        kept = self.blocks[:count]
        for i, (timed, room) in enumerate(zip(self._runs, self._plans, strict=True)):
            run = room(sum(block.episodes for block in kept))
            run.seconds = timed.seconds
            for block in kept:
                run.put(block.first, self._parts[block.number][i])
            self._runs[i] = run


class _Prefix:
    """What is kept of the first blocks, merged in their order."""

    def __init__(self) -> None:
        self.count, self._merged = 0, list[Moments]()

    def to(self, count: int, moments: Callable[[int], Moments]) -> Moments:
        """Of so many blocks, no fewer than before.

        Args:
            count: how many.
            moments: of the block of this number.
        """
        while self.count < count:
            part = moments(self.count)
            self._merged = [self._merged[0].merged(part)] if self._merged else [part]
            self.count += 1
        return self._merged[0]


class MemoryOfMoments(Memory):
    """Counts and sums in memory, merged in the order of the blocks.

    Args:
        rooms: all but the rows, of each run.
        blocks: all of them.
        eager: merge blocks as soon as they are there; else when `advance` says so.
    """

    form = staticmethod(moments_of)

    def __init__(self, rooms: list[Run], blocks: Sequence[Block], eager: bool) -> None:
        super().__init__(rooms)
        self.blocks, self._eager, self._prefix = blocks, eager, _Prefix()
        self._waiting: dict[int, Moments] = {}

    def put(self, block: Block, content: Moments) -> None:  # type: ignore[override]
        """Keep what a block holds."""
        self._waiting[block.number] = content
        while self._eager and self._prefix.count in self._waiting:
            self.advance(self._prefix.count + 1)

    def advance(self, count: int) -> list[Run]:
        """What is known of the first blocks."""
        moments = self._prefix.to(count, self._waiting.pop)
        return [SummedRun(room, moments, i, room.seconds) for i, room in enumerate(self._runs)]

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count."""

    def runs(self) -> list[Run]:
        """All that is kept."""
        return self.advance(self._prefix.count)


# Files ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A folder of this machine.

    Attributes:
        root: its path.
    """

    root: Path

    def __str__(self) -> str:
        return str(self.root)

    def names(self, folder: str = "") -> dict[str, float]:
        """The files of a folder inside, and when each was written last."""
        found = {}
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.root / folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    found[entry.name] = entry.stat().st_mtime
        return found

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return (self.root / name).is_file()

    def open(self, name: str) -> Any:
        """A file for pyarrow to read."""
        return require("pyarrow", "a folder of results").memory_map(str(self.root / name))

    def read(self, name: str) -> bytes:
        """The content of a file."""
        return (self.root / name).read_bytes()

    def write(self, name: str, content: bytes, new: bool = False) -> bool:
        """Write a file, whole or not at all, whoever writes it at the same time.

        Args:
            name: of the file. content: all of it.
            new: leave a file that is there already.

        Returns:
            Whether it was written.

        Raises:
            OSError: naming the file.
        """
        path = self.root / name
        partial = path.with_name(f"{path.name}.{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if new:
                try:
                    os.link(partial, path)
                    partial.unlink()
                except FileExistsError:
                    partial.unlink()
                    return False
                except OSError:  # a file system that has no links
                    os.replace(partial, path)
            else:
                os.replace(partial, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise OSError(f"cannot write {path}: {error.strerror or error}") from error
        return True

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.root / name).unlink(missing_ok=True)

    def tidy(self, folder: str) -> None:
        """Remove what calls of this machine that have been killed left of files that they were writing."""
        for name in self.names(folder):
            _, ours, rest = name.partition(f".{socket.gethostname()}-")
            process = rest.partition("-")[0]
            if ours and name.endswith(".part") and process.isdecimal() and not _alive(int(process)):
                self.remove(f"{folder}/{name}")


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@dataclass(frozen=True)
class Remote:
    """A folder of another file system, by pyarrow.

    Attributes:
        address: as the user has given it. system: of pyarrow. root: the path in it.
        whole: whether the system shows a file only once it is complete.
    """

    address: str
    system: Any
    root: str
    whole: bool

    def __str__(self) -> str:
        return self.address

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def names(self, folder: str = "") -> dict[str, float]:
        """The files of a folder inside, and when each was written last."""
        fs: Any = require("pyarrow.fs", "a folder of results")
        found = self.system.get_file_info(fs.FileSelector(self._path(folder), allow_not_found=True))
        return {one.base_name: one.mtime_ns / 1e9 if one.mtime_ns else 0.0 for one in found}

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return bool(self.system.get_file_info(self._path(name)).is_file)

    def open(self, name: str) -> Any:
        """A file for pyarrow to read."""
        return self.system.open_input_file(self._path(name))

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self.system.open_input_stream(self._path(name), compression=None) as stream:
            content: bytes = stream.read()
        return content

    def write(self, name: str, content: bytes, new: bool = False) -> bool:
        """Write a file; see `Place.write`."""
        if new and self.has(name):
            return False
        path = self._path(name)
        partial = path if self.whole else f"{path}.{uuid.uuid4().hex[:8]}.part"
        try:
            self.system.create_dir(path.rpartition("/")[0], recursive=True)
            with self.system.open_output_stream(partial, compression=None) as stream:
                stream.write(content)
            if not self.whole:
                self.system.move(partial, path)
        except OSError as error:
            raise OSError(f"cannot write {self.address}/{name}: {error}") from error
        return True

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        if self.has(name):
            self.system.delete_file(self._path(name))

    def tidy(self, folder: str) -> None:
        """Nothing: who writes is on other machines."""


OBJECTS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory")  # of which a file is seen once it is complete


def place_of(address: str | Path) -> Place | Remote:
    """The folder that an address stands for: a path, or an address of a file system as s3://bucket/folder.

    Raises:
        ValueError: for an address that neither pyarrow nor fsspec knows.
    """
    text = os.fspath(address)
    protocol, there, path = text.partition("://")
    if not there:
        return Place(Path(text))
    if protocol == "file":
        return Place(Path(path))
    fs: Any = require("pyarrow.fs", f"the address {text}")
    try:
        system, root = fs.FileSystem.from_uri(text)
    except (ValueError, NotImplementedError):
        core: Any = require("fsspec.core", f"the address {text}", "evaluation")
        try:
            found, root = core.url_to_fs(text)
        except ValueError as error:
            raise ValueError(f"out must be a folder, or the address of one, got {text!r}: {error}") from None
        system = fs.PyFileSystem(fs.FSSpecHandler(found))
    return Remote(text.rstrip("/"), system, root.rstrip("/"), protocol in OBJECTS)


# Blocks as files ------------------------------------------------------------------------------------------------------


def _table(run: Run, first: int) -> Any:
    """The rows of a run from episode number `first` on, as `Evaluation.episodes` has them."""
    pa: Any = require("pyarrow", "a folder of results")
    C, n = len(run.cells), run.episodes
    budgets, ats = zip(*run.cells, strict=True)

    def repeated(cells: Sequence[int | None]) -> Any:
        return pa.concat_arrays([pa.repeat(pa.scalar(cell, pa.int64()), n) for cell in cells])

    columns = {
        "agent": pa.DictionaryArray.from_arrays(pa.array(np.zeros(C * n, np.int32)), pa.array([run.agent])),
        "budget": repeated(budgets),
        "at": repeated(ats),
        "episode": pa.array(np.tile(np.arange(first, first + n), C)),
    }
    for name in ("total_pulls", "correct", "score", "truncated", *run.names[2:]):
        columns[name] = pa.array(np.ascontiguousarray(run.columns[name].T).reshape(-1))
    return pa.table(columns)


def _checksum(runs: Sequence[Run], pulls: bytes) -> int:
    """A checksum of all numbers of a block."""
    checksum = zlib.crc32(pulls)
    for run in runs:
        for name in sorted(run.columns):
            values = run.columns[name]
            checksum = zlib.crc32(f"{run.agent} {name} {values.dtype.str} {values.shape}".encode(), checksum)
            checksum = zlib.crc32(np.ascontiguousarray(values.T).data, checksum)
    return checksum


def rows_as_bytes(root: str, blocks: Sequence[Block], parts: Sequence[Sequence[Run]]) -> list[bytes]:
    """The files of blocks, with the rows of one run after another.

    Args:
        root: the hash of the evaluation.
        blocks: what they are.
        parts: for each run the rows of each block.
    """
    pa: Any = require("pyarrow", "a folder of results")
    pq: Any = require("pyarrow.parquet", "a folder of results")
    files = []
    for i, block in enumerate(blocks):
        runs = [rows[i] for rows in parts]
        pulls = b"".join(run.pulls.astype("<i8").tobytes() for run in runs)
        told = {"block": name_of(root, block), "checksum": _checksum(runs, pulls)}
        table = pa.concat_tables([_table(run, block.first) for run in runs]).unify_dictionaries()
        metadata = {b"bandit-envs": json.dumps(told).encode(), b"bandit-envs pulls": zlib.compress(pulls, 1)}
        sink = pa.BufferOutputStream()
        how: dict[str, Any] = {"compression": "lz4", "write_statistics": False, "write_page_checksum": True}
        # The numbers of episodes are told by their differences; all others have few values.
        others = [name for name in table.column_names if name != "episode"]
        how |= {"use_dictionary": others, "column_encoding": {"episode": "DELTA_BINARY_PACKED"}}
        pq.write_table(table.replace_schema_metadata(metadata), sink, row_group_size=2**22, **how)
        files.append(sink.getvalue().to_pybytes())
    return files


def moments_as_bytes(root: str, blocks: Sequence[Block], parts: Sequence[Sequence[Run]]) -> list[bytes]:
    """The files of blocks of several runs of which no rows are kept.

    A file has a row for each run, cell and column; its metadata hold all, to the last bit.

    Args:
        root: the hash of the evaluation.
        blocks: what they are.
        parts: for each run the rows of each block.
    """
    pa: Any = require("pyarrow", "a folder of results")
    pq: Any = require("pyarrow.parquet", "a folder of results")
    files = []
    for i, (block, moments) in enumerate(zip(blocks, moments_of(blocks, parts), strict=True)):
        rows = []
        for run, sums in zip((rows[i] for rows in parts), moments.runs, strict=True):
            for c, (budget, at) in enumerate(run.cells):
                for m, name in enumerate(moments.names):
                    head = {"agent": run.agent, "budget": budget, "at": at, "metric": name, "first": block.first}
                    told = {"episodes": sums.n, "mean": sums.mean[c, m], "spread": sums.spread[c, m]}
                    rows.append(head | told | {"positive": sums.up[c, m], "negative": sums.down[c, m]})
        kinds = {"agent": pa.string(), "metric": pa.string(), "mean": pa.float64(), "spread": pa.float64()}
        schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in rows[0]])
        text = moments.to_json().encode()
        told = {"block": name_of(root, block), "checksum": zlib.crc32(text)}
        metadata = {b"bandit-envs": json.dumps(told).encode(), b"bandit-envs moments": text}
        table = pa.Table.from_pylist(rows, schema).replace_schema_metadata(metadata)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="lz4", write_page_checksum=True)
        files.append(sink.getvalue().to_pybytes())
    return files


def name_of(root: str, block: Block) -> str:
    """The name of the file of a block."""
    told = f"{root} {block.runs} {block.first} {block.episodes}"
    return f"{block.number:06d}-{hashlib.sha256(told.encode()).hexdigest()[:16]}.parquet"


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

    def __init__(self, room: Run, folder: Folder, place: int, episodes: int) -> None:
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
        """Pulls per second of one core, by the notes of all calls."""
        pulls, seconds = self._folder.speed(self._place)
        return pulls / max(seconds, 1e-9)

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """Of one core, that all pulls take."""
        return float(self.columns["total_pulls"][:, -1].sum() / max(self.pulls_per_second, 1e-9))


class Folder:
    """Blocks in a folder.

    Args:
        place: the folder.
        runs: all but the rows, of each run.
        groups: how they are cut into blocks. episodes: of each run.
        root: the hash of the evaluation.
    """

    inside, form_of = BLOCKS, staticmethod(rows_as_bytes)

    def __init__(self, place: Place | Remote, runs: Sequence[Run], groups: Sequence[Group], episodes: int, root: str):
        self.place, self.root, self._rooms, self.episodes = place, root, runs, episodes
        self.blocks = cut(groups, episodes)
        self.form = functools.partial(self.form_of, root)
        self._names = {block.number: name_of(root, block) for block in self.blocks}
        self._prefix = _Prefix()
        self.ended: int | None = None  # the look at which the run has ended
        self.awaited = False  # whether it has not yet
        self._note: dict[str, Any] = {}
        self._noted, self._call = 0.0, ""

    def look(self) -> None:
        """See whether a run has ended that was to end when it is precise enough."""
        self.awaited = True
        if self.place.has(ENDED):
            told = json.loads(self.place.read(ENDED))
            self.shorten(int(told["blocks"]))
            self.ended, self.awaited = int(told["look"]), False

    def _file(self, block: Block) -> str:
        return f"{self.inside}/{self._names[block.number]}"

    def has(self, block: Block) -> bool:
        """Whether the block is there."""
        return self.place.has(self._file(block))

    def missing(self) -> list[Block]:
        """The blocks that are not there."""
        names = self.place.names(self.inside)
        return [block for block in self.blocks if self._names[block.number] not in names]

    def begin(self, told: Mapping[str, Any]) -> bool:
        """Note that a call begins; returns whether others go on at the same time.

        Args:
            told: of the call.
        """
        now = time.time()
        others = [at for name, at in self.place.names(CALLS).items() if now - at < FRESH and self._goes_on(name)]
        self.place.tidy(self.inside)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        self._call = f"{CALLS}/{stamp}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}.json"
        self._note = {
            **told,
            "command": sys.argv,
            "machine": platform.platform(),
            "host": socket.gethostname(),
            "began": stamp,
            "ended": None,
            "pulls": [0] * len(self._rooms),
            "seconds": [0.0] * len(self._rooms),
        }
        self._write_note()
        return bool(others)

    def _goes_on(self, name: str) -> bool:
        try:
            return json.loads(self.place.read(f"{CALLS}/{name}"))["ended"] is None
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _write_note(self) -> None:
        self._noted = time.monotonic()
        self.place.write(self._call, (json.dumps(self._note, indent=1, default=json_form) + "\n").encode())

    def put(self, block: Block, content: bytes) -> None:
        """Keep a block."""
        self.place.write(self._file(block), content)
        if time.monotonic() - self._noted > NOTED:
            self._write_note()

    def spent(self, run: int, pulls: int, seconds: float) -> None:
        """Note how long so many pulls of a run took."""
        self._note["pulls"][run] += pulls
        self._note["seconds"][run] += seconds

    def close(self) -> None:
        """Note that the call has ended."""
        if self._call:
            self._note["ended"] = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            self._write_note()

    def speed(self, run: int) -> tuple[int, float]:
        """Pulls of a run and the seconds that they took, of all calls that have been noted."""
        pulls, seconds = 0, 0.0
        for name in self.place.names(CALLS):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError):
                note = json.loads(self.place.read(f"{CALLS}/{name}"))
                pulls, seconds = pulls + note["pulls"][run], seconds + note["seconds"][run]
        return pulls, seconds

    def _read(self, block: Block, columns: list[str] | None) -> Any:
        pq: Any = require("pyarrow.parquet", "a folder of results")
        try:
            with self.place.open(self._file(block)) as source:
                table = pq.read_table(source, columns=columns, page_checksum_verification=True, use_threads=False)
            told = json.loads(table.schema.metadata[b"bandit-envs"])
            if told["block"] != self._names[block.number]:
                raise ValueError(f"it holds {told['block']}")
            return table, told
        except FileNotFoundError:
            self.refuse_gaps()
            raise
        except Exception as error:
            raise self._damage(block, error) from error

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

    def part(self, block: Block, columns: Sequence[str] | None = None, check: bool = False) -> list[Run]:
        """The rows of a block, of each of its runs.

        Args:
            block: which.
            columns: their names; None: all.
            check: look whether all numbers, and labels, are those that were written.

        Raises:
            ValueError: if the block is missing or damaged.
        """
        rooms = [self._rooms[i] for i in block.runs]
        names = list(rooms[0].columns) if columns is None else list(columns)
        table, told = self._read(block, [*names, "agent"] if check else names)
        try:
            pulls = zlib.decompress(table.schema.metadata[b"bandit-envs pulls"])
            sums, n, first, first_sum = np.frombuffer(pulls, "<i8"), block.episodes, 0, 0
            arrays = {name: table.column(name).to_numpy() for name in names}
            runs = []
            for room in rooms:
                C, K = room.pulls.shape
                own = {
                    name: arrays[name][first : first + C * n].reshape(C, n).T.astype(room.columns[name].dtype)
                    for name in names
                }
                total = sums[first_sum : first_sum + C * K].reshape(C, K).astype(np.float64)
                runs.append(dataclasses.replace(room, columns=own, pulls=total))
                if check and table.column("agent")[first : first + C * n].unique().to_pylist() != [room.agent]:
                    raise ValueError("its labels are not those that were written")
                first, first_sum = first + C * n, first_sum + C * K
            if check and _checksum(runs, pulls) != told["checksum"]:
                raise ValueError("its numbers are not those that were written")
        except Exception as error:
            raise self._damage(block, error) from error
        return runs

    def _damage(self, block: Block, error: Exception) -> ValueError:
        return ValueError(
            f"{self.place}/{self._file(block)} is damaged, and is made anew where evaluate is called again with the "
            f"same out: {' '.join(str(error).split()):.300}"
        )

    def check(self, block: Block) -> None:
        """Refuse a block that is not what was written.

        Raises:
            ValueError: naming the file.
        """
        self.part(block, check=True)

    def moments(self, block: Block) -> Moments:
        """What is known of a block, without its rows."""
        return Moments.of(self.part(block))

    def advance(self, count: int) -> list[Run]:
        """What is known of the first blocks, without their rows."""
        moments = self._prefix.to(count, lambda i: self.moments(self.blocks[i]))
        return [SummedRun(room, moments, i, 0.0) for i, room in enumerate(self._rooms)]

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count, and remove all others."""
        self.place.write(ENDED, (json.dumps({"blocks": count, "look": look}) + "\n").encode())
        beyond = self.blocks[count:]
        self.look()
        for block in beyond:
            self.discard(block)

    def shorten(self, count: int) -> None:
        """Let the first blocks alone count."""
        self.blocks = self.blocks[:count]
        self.episodes = sum(block.episodes for block in self.blocks if 0 in block.runs)

    def discard(self, block: Block) -> None:
        """Remove a block."""
        self.place.remove(self._file(block))

    def runs(self) -> list[Run]:
        """All runs; their rows are read when they are asked for."""
        return [StoredRun(room, self, i, self.episodes) for i, room in enumerate(self._rooms)]

    def describe(self, identity: Mapping[str, Any], settings: Mapping[str, Any], groups: Sequence[Group]) -> bytes:
        """What settings.json holds."""
        content = {
            "format": FORMAT,
            **settings,
            "episodes": self.episodes,
            "identity": identity,
            "groups": [{"runs": group.runs, "size": group.size} for group in groups],
            "runs": [{**room.describe(), "episodes": self.episodes, "seconds": None} for room in self._rooms],
        }
        return (json.dumps(content, indent=1, default=json_form) + "\n").encode()


class FolderOfMoments(Folder):
    """Blocks in a folder that hold counts and sums, and no rows."""

    inside, form_of = SUMMED, staticmethod(moments_as_bytes)

    def moments(self, block: Block) -> Moments:
        """What a block holds.

        Raises:
            ValueError: if the block is missing or damaged.
        """
        table, told = self._read(block, None)
        try:
            text = table.schema.metadata[b"bandit-envs moments"]
            if zlib.crc32(text) != told["checksum"]:
                raise ValueError("its numbers are not those that were written")
            return Moments.from_json(text.decode())
        except Exception as error:
            raise self._damage(block, error) from error

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


class StoredSums(SummedRun):
    """What a folder keeps of one agent at one budget, without rows.

    Args:
        room: all but the rows. folder: holds it. place: of the run in the plan.
    """

    def __init__(self, room: Run, folder: FolderOfMoments, place: int) -> None:
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
        """Of one core, that all pulls take."""
        pulls, seconds = self._folder.speed(self.place)
        return self.mean("total_pulls", -1) * self.episodes * seconds / max(pulls, 1)


def root_of(identity: Mapping[str, Any]) -> str:
    """The hash of an evaluation."""
    text = json.dumps(identity, sort_keys=True, default=json_form)
    return hashlib.sha256(text.encode()).hexdigest()


def claimed(
    address: str | Path,
    rooms: Sequence[Run],
    groups: Sequence[Group],
    episodes: int,
    identity: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Folder:
    """The folder for an evaluation, which may hold blocks of it already.

    Args:
        address: of the folder.
        rooms: all but the rows, of each run.
        groups: how they are cut into blocks. episodes: of each run.
        identity: all that the rows depend on. settings: of the evaluation.

    Raises:
        ValueError: if the folder holds another evaluation, telling what differs. OSError: if it cannot be written to.
    """
    place = place_of(address)
    folder = _folder(settings)(place, rooms, groups, episodes, root_of(identity))
    if not place.has(SETTINGS) and place.write(SETTINGS, folder.describe(identity, settings, groups), new=True):
        return folder
    there = _settings(place)
    asked = json.loads(json.dumps(identity, default=json_form))
    if there.get("format") != FORMAT or not isinstance(there.get("identity"), dict):
        raise ValueError(f"{place} holds an evaluation of another form, to which no blocks can be added")
    if differing := _differences(there["identity"], asked):
        raise ValueError(f"{place} holds another evaluation: {'; '.join(differing)}")
    return folder


def _folder(settings: Mapping[str, Any]) -> type[Folder]:
    return FolderOfMoments if settings["rows"] == "none" else Folder


def _settings(place: Place | Remote) -> dict[str, Any]:
    if isinstance(place, Place):
        return read_json(place.root / SETTINGS)
    try:
        found = json.loads(place.read(SETTINGS))
    except ValueError as error:
        raise ValueError(f"{place}/{SETTINGS} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{place}/{SETTINGS} must hold a JSON object, got {found!r:.80}")
    return found


def _differences(there: Mapping[str, Any], asked: Mapping[str, Any], within: str = "") -> list[str]:
    """What differs between two identities, in words."""
    told = []
    for name in dict.fromkeys([*there, *asked]):
        one, other = there.get(name), asked.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            told += _differences(one, other, f"{within}{name} ")
        elif one != other:
            told.append(f"{within}{name} is {one!r:.80} there, {other!r:.80} asked for")
    return told


def opened(address: str | Path, trust: bool) -> tuple[Folder, dict[str, Any]] | None:
    """The folder with the blocks of an evaluation, and its settings; None if it holds none.

    Args:
        address: of the folder.
        trust: as for `Evaluation.load`.

    Raises:
        ValueError: if its settings are not what this version writes.
    """
    place = place_of(address)
    if not place.has(SETTINGS):
        return None
    settings = _settings(place)
    if settings.get("format") != FORMAT:
        return None
    try:
        del settings["format"]
        identity, forms, groups = settings.pop("identity"), settings.pop("runs"), settings.pop("groups")
        rooms = []
        for form in forms:
            task = Task.from_json(json.dumps(form["task"]), trust=trust)
            numbers = {key: None if form[key] is None else np.array(form[key], np.int64) for key in ("at", "budgets")}
            checks = numbers["budgets"] if numbers["at"] is None else numbers["at"]
            level = bool(form.get("level", False))
            room = Run.empty(form["agent"], task, 0, None if checks is None else checks.tolist(), level)
            room.at, room.budgets = numbers["at"], numbers["budgets"]
            room.lower_bound = math.nan if form["lower_bound"] is None else float(form["lower_bound"])
            room.deterministic, room.stops = form["deterministic"], bool(form["stops"])
            rooms.append(room)
        made = [Group(tuple(map(int, one["runs"])), int(one["size"])) for one in groups]
        kind = _folder(settings)
        folder = kind(place, rooms, made, int(settings["episodes"]), root_of(identity))
        if settings.get("precision") is not None:
            folder.look()
            settings |= {"episodes": folder.episodes, "look": folder.ended}
        return folder, settings
    except Exception as error:
        raise ValueError(f"{place} holds no evaluation that this version reads: {error!r:.300}") from error


def holds(address: str | Path) -> bool:
    """Whether a folder holds blocks of an evaluation, of any."""
    return opened(address, False) is not None


def lacking(address: str | Path) -> int:
    """How many blocks the evaluation in a folder lacks."""
    found = opened(address, False)
    return 0 if found is None else len(found[0].missing())


def clear(address: str | Path) -> None:
    """Remove an evaluation from a folder, of whatever form, and nothing else."""
    place = place_of(address)
    place.remove(SETTINGS)
    if not place.has(BLOCKS):
        for folder in (BLOCKS, SUMMED, CALLS):
            for name in place.names(folder):
                place.remove(f"{folder}/{name}")
    for name in (BLOCKS, ENDED, *TABLES):
        if place.has(name):
            place.remove(name)


def add_tables(address: str | Path, result: Any) -> str | Path:
    """Write summary.csv and pulls.parquet of an evaluation beside its blocks; returns the address."""
    place = place_of(address)
    place.write(TABLES[0], result.summary().to_csv(index=False).encode())
    place.write(TABLES[1], result.pulls.to_parquet())
    return address
