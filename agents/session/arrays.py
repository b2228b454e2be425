"""An agent's memory as plain arrays, and back: a description in JSON, and bytes. No pickles.

A memory is read into a new one of the same agent: only what has the same form is taken, and no class is looked up by a
name from a file.
"""

from __future__ import annotations

import copy
import dataclasses
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NotPlainError", "packed", "read", "unpacked", "written"]

TREE = "tree"  # the entry with the description, as UTF-8


class NotPlainError(ValueError):
    """A memory that is no tree of arrays and numbers, or that does not fit the one it is to be read into."""


def written(memory: Any, arrays: list[NDArray[Any]]) -> Any:
    """A description of the memory; its arrays are added to the list, as bytes where they are structured.

    Raises:
        NotPlainError: naming the type of what is no array, number, text, or container of such.
    """
    if memory is None or type(memory) in (bool, int, str):
        return {"value": memory}
    if type(memory) is float:
        return {"value": memory.hex()}
    if isinstance(memory, np.generic):
        memory = np.asarray(memory)
    if isinstance(memory, np.ndarray):
        if memory.dtype.hasobject:
            raise NotPlainError(f"an array of {memory.dtype} holds objects")
        arrays.append(np.frombuffer(np.ascontiguousarray(memory).tobytes(), np.uint8))
        return {"array": len(arrays) - 1, "dtype": repr(memory.dtype), "shape": memory.shape}
    parts = _parts(memory)
    return {"of": type(memory).__qualname__, "parts": [[name, written(part, arrays)] for name, part in parts]}


def read(form: Any, arrays: Mapping[int, NDArray[Any]], like: Any) -> Any:
    """The memory that `written` has described, with the classes and types of a new one of the same agent.

    Args:
        form: the description.
        arrays: by their numbers.
        like: the new memory.

    Raises:
        NotPlainError: where it has another form.
    """
    if "value" in form:
        value = form["value"]
        if type(like) is float and isinstance(value, str):
            return float.fromhex(value)
        if value is not None and type(value) is not type(like):
            raise NotPlainError(f"{value!r:.80} in the place of {like!r:.80}")
        return value
    if "array" in form:
        if not isinstance(like, (np.ndarray, np.generic)) or repr(like.dtype) != form["dtype"]:
            raise NotPlainError(f"an array of {form['dtype']} in the place of {like!r:.80}")
        found = np.frombuffer(arrays[form["array"]].tobytes(), like.dtype).reshape(form["shape"]).copy()
        return found if isinstance(like, np.ndarray) else found[()]
    parts, given = dict(_parts(like)), form["parts"]
    if type(like).__qualname__ != form["of"] or [name for name, _ in given] != list(parts):
        raise NotPlainError(f"the memory of {form['of']!r:.80} in the place of {type(like).__qualname__}")
    values = {name: read(part, arrays, parts[name]) for name, part in given}
    if dataclasses.is_dataclass(like):
        again: Any = copy.copy(like)
        for name, value in values.items():
            object.__setattr__(again, name, value)
        return again
    if isinstance(like, dict):
        return values
    return type(like)(*values.values()) if hasattr(like, "_fields") else type(like)(values.values())


def _parts(memory: Any) -> Iterable[tuple[str, Any]]:
    """The parts of a container, by name."""
    if dataclasses.is_dataclass(memory) and not isinstance(memory, type):
        return [(name, value) for name, value in vars(memory).items() if not name.startswith("_")]
    if type(memory) is dict and all(type(name) is str for name in memory):
        return list(memory.items())
    if isinstance(memory, tuple) and hasattr(memory, "_fields"):
        return list(zip(memory._fields, memory, strict=True))
    if type(memory) in (tuple, list):
        return [(str(place), part) for place, part in enumerate(memory)]
    raise NotPlainError(f"{type(memory).__qualname__} is no plain memory")


def packed(form: Any, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A description and arrays by name, as the bytes of an `.npz` file."""
    file = io.BytesIO()
    tree = np.frombuffer(json.dumps(form).encode(), np.uint8)
    np.savez(file, **{TREE: tree}, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(data: bytes) -> tuple[Any, dict[str, NDArray[Any]]]:
    """What `packed` was given."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = dict(_entries(archive))
    return json.loads(arrays.pop(TREE).tobytes()), arrays


def _entries(archive: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    for name in archive.files:
        yield name, archive[name]
