"""Stores of the blocks of an evaluation: in memory, or in a folder that survives a kill.

    FOLDER/settings.json            what is evaluated: environment, agents, seed, versions, how it is cut into blocks
    FOLDER/episodes.parquet/        a file for each block, NUMBER-HASH.parquet, with columns as `Evaluation.episodes`
    FOLDER/sums.parquet/            in place of it where no rows are kept
    FOLDER/ended.json               after how many blocks a run ended that was to end when it is precise enough
    FOLDER/calls/                   a note of each call: command, machine, versions, seconds

A file has its name only once it is complete. Its name gives the block and, by a hash, the evaluation that it belongs
to; two calls that make the same block write the same bytes. Files may be copied from one folder to another.
"""

from .manifest import RefusedError, add_tables, calls, claimed, clear, holds, lacking, opened, root_of
from .places import WriteError, place_of
from .store import Store

__all__ = [
    "RefusedError", "Store", "WriteError", "add_tables", "calls", "claimed", "clear", "holds", "lacking", "opened",
    "place_of", "root_of",
]  # fmt: skip
