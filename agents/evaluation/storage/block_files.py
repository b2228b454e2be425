"""The file of a block: rows, or counts and sums. A reader finds out whether the file is complete.

A file is Parquet. Its metadata hold the name of the block, what its columns do not hold, and a seal: the checksum of
all other bytes of the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.optional import require
from ..blocks import Block
from ..moments import Moments
from ..rows import Run

# Keys of the metadata. That of the seal comes last, so that its mark is the last one in the file.
NAME, PULLS, MOMENTS, SEAL = (f"bandit-envs {what}".encode() for what in ("block", "pulls", "moments", "seal"))
MARK, DIGITS = b"seal:", 8  # before the checksum, and its length


def _arrow(part: str = "") -> Any:
    return require(f"pyarrow{part}", "a folder of results")


def name_of(root: str, block: Block) -> str:
    """The name of the file of a block, in an evaluation of this hash."""
    text = f"{root} {block.runs} {block.first} {block.episodes}"
    return f"{block.number:06d}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.parquet"


def rows_as_bytes(root: str, block: Block, runs: Sequence[Run]) -> bytes:
    """The file of a block of the evaluation with this hash: the rows of one run after another."""
    pa = _arrow()
    table = pa.concat_tables([_table(run, block.first) for run in runs]).unify_dictionaries()
    pulls = b"".join(run.pulls.astype("<i8").tobytes() for run in runs)
    # Whole numbers are stored as their differences, which is fast; all others have few values.
    whole = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    how: dict[str, object] = {"use_dictionary": [name for name in table.column_names if name not in whole]}
    how |= {"column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED")}
    how |= {"write_statistics": False, "row_group_size": 2**22}
    return _file(table, name_of(root, block), {PULLS: zlib.compress(pulls, 1)}, **how)


def rows_from(source: object, name: str, empty_runs: Sequence[Run], episodes: int, columns: Sequence[str]) -> list[Run]:
    """Some columns of what `rows_as_bytes` has written under this name, of each run, so many episodes each.

    An error where the file is no Parquet, of something else, or damaged where the columns are.
    """
    table = _read(source, name, list(columns))
    arrays = {column: table.column(column).to_numpy() for column in columns}
    sums = np.frombuffer(zlib.decompress(table.schema.metadata[PULLS]), "<i8").astype(np.float64)
    runs, row, place = [], 0, 0
    for empty in empty_runs:
        C, K = empty.pulls.shape
        own = {}
        for column, values in arrays.items():
            cells = values[row : row + C * episodes].reshape(C, episodes)
            own[column] = cells.T.astype(empty.columns[column].dtype)
        pulls = sums[place : place + C * K].reshape(C, K)
        runs.append(dataclasses.replace(empty, columns=own, pulls=pulls))
        row, place = row + C * episodes, place + C * K
    return runs


def _table(run: Run, first: int) -> object:
    """The rows of a run from episode number `first` on, as `Evaluation.episodes` has them."""
    pa = _arrow()
    C, n = len(run.cells), run.episodes
    budgets, ats = zip(*run.cells, strict=True)

    def repeated(cells: Sequence[int | None]) -> object:
        return pa.nulls(C * n, pa.int64()) if None in cells else pa.array(np.repeat(np.array(cells, np.int64), n))

    columns = {
        "agent": pa.DictionaryArray.from_arrays(pa.array(np.zeros(C * n, np.int32)), pa.array([run.agent])),
        "budget": repeated(budgets),
        "at": repeated(ats),
        **({"delta": pa.array(np.full(C * n, run.task.delta))} if run.by_delta else {}),
        "episode": pa.array(np.tile(np.arange(first, first + n), C)),
    }
    for name in ("total_pulls", "correct", "score", "truncated", *run.names[2:]):
        columns[name] = pa.array(np.ascontiguousarray(run.columns[name].T).reshape(-1))
    # Where nothing can be missing, nothing need be written on what is.
    kinds = [pa.field(name, array.type, nullable=name in ("budget", "at")) for name, array in columns.items()]
    return pa.table(columns, pa.schema(kinds))


def moments_as_bytes(root: str, block: Block, runs: Sequence[Run]) -> bytes:
    """The file of a block without rows: one for each run, cell and column; its metadata hold all, to the last bit."""
    pa, moments, rows = _arrow(), Moments.of(runs), []
    for run, sums in zip(runs, moments.runs, strict=True):
        for c, keys in enumerate(run.keys):
            for m, name in enumerate(moments.names):
                head = {"agent": run.agent, **keys, "metric": name, "first": block.first}
                numbers = {"episodes": sums.n, "mean": sums.mean[c, m], "spread": sums.spread[c, m]}
                rows.append(head | numbers | {"positive": sums.up[c, m], "negative": sums.down[c, m]})
    kinds = {"agent": pa.string(), "metric": pa.string()}
    kinds |= dict.fromkeys(("delta", "mean", "spread"), pa.float64())
    table = pa.Table.from_pylist(rows, pa.schema([(name, kinds.get(name, pa.int64())) for name in rows[0]]))
    return _file(table, name_of(root, block), {MOMENTS: moments.to_json().encode()})


def moments_from(content: bytes, name: str) -> Moments:
    """What `moments_as_bytes` has written; an error where the file is of something else, or damaged."""
    pa = _arrow()
    check_seal(content)
    return Moments.from_json(_read(pa.BufferReader(content), name, []).schema.metadata[MOMENTS].decode())


def _file(table: Any, name: str, metadata: Mapping[bytes, bytes], **how: object) -> bytes:
    """A table as a sealed file."""
    pa = _arrow()
    pq = _arrow(".parquet")
    sink = pa.BufferOutputStream()
    own = {NAME: name.encode(), **metadata, SEAL: MARK + b"0" * DIGITS}
    how |= {"compression": "lz4", "write_page_checksum": True}
    pq.write_table(table.replace_schema_metadata(own), sink, **how)
    return _sealed(sink.getvalue())


def _sealed(content: Any) -> bytes:
    """A file with the checksum of all of its bytes but the checksum itself; a `ValueError` where it has no place."""
    whole = bytearray(content)
    start = whole.rfind(MARK) + len(MARK)
    if start < len(MARK):
        raise ValueError("it has no seal")
    whole[start : start + DIGITS] = b"0" * DIGITS
    whole[start : start + DIGITS] = b"%08x" % zlib.crc32(whole)
    return bytes(whole)


def check_seal(content: bytes) -> None:
    """Refuse a file of which any byte is not what was written, by a `ValueError`."""
    if _sealed(content) != content:
        raise ValueError("its bytes are not those that were written")


def _read(source: object, name: str, columns: list[str]) -> Any:
    """Some columns of a file that ought to have this name."""
    pq = _arrow(".parquet")
    table = pq.read_table(source, columns=columns, page_checksum_verification=True, use_threads=False)
    if (found := table.schema.metadata[NAME].decode()) != name:
        raise ValueError(f"it holds {found}")
    return table
