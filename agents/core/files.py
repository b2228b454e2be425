"""Files that belong together: a kill, or a full disk, leaves all of the old ones or all of the new ones.

New files are written under other names first. One of them, the index, is JSON and tells the digests of all the others.
Once it is complete under its other name, the new files count, and what is left is to rename them; whoever comes next,
reader or writer, finishes that. A file that an index does not know by its digest belongs to something else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bandit_envs.kernels import SPELLINGS, respelled

SETTINGS = "settings.json"  # the index of a folder of results
REPRODUCTION = "reproduction"  # the key of an index of a folder in which the figures of a paper are reproduced
DIGESTS = "digests"  # the key of an index that holds {name of a file: its digest}


def find_folder(path: Path) -> None:
    """Refuse a file in a folder that is not there, by a FileNotFoundError: only folders of results are made."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")


def try_out(path: Path, folder: bool = False) -> None:
    """Write to a path, and take it back: what is to be kept there after hours of work can be.

    Args:
        path: of a file to come. folder: make its folder, one of results, where it is missing.

    Raises:
        OSError: naming the path. FileNotFoundError: as `find_folder`.
    """
    if not folder:
        find_folder(path)
    partial = _partial(path)
    probe = _partial(partial)  # the longest name that is written to
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for place in (path, partial, probe):
            if place.is_dir():
                raise IsADirectoryError(f"{place} is a folder")
        with probe.open("ab"):
            pass
        probe.unlink()
    except OSError as error:
        raise OSError(f"cannot write to {path}: {error}") from error


def write_alone(path: Path, write: Callable[[Path], Any]) -> None:
    """Write one file; a kill leaves the old one or the new one."""
    find_folder(path)
    partial = _partial(path)
    try:
        with _naming(path):
            write(partial)
            _settle_on_disk(partial)
            os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Around all that reads a file, and makes something of what it holds: errors name it, whatever is wrong with it.

    Raises:
        OSError: where the disk is to blame. ImportError: where a package is missing.
        ValueError: for all other errors: the file is damaged, or of something else.
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        told = " ".join(str(error).split())
        if str(path) in told and isinstance(error, (ValueError, OSError)):
            raise
        if not isinstance(error, (ValueError, OSError)):
            told = f"{type(error).__name__}: {told}"
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"{path} cannot be read, it is damaged or of another kind: {told:.500}") from error


def write_together(index: Path, content: Mapping[str, Any], files: Mapping[str, Callable[[Path], Any]]) -> None:
    """Write files, and an index of JSON that holds their digests.

    Args:
        index: the path of the index; its folder is that of all files, and is made where it is missing.
        content: of the index.
        files: {name: writes to the path that it is given, of the same suffix}.
    """
    index.parent.mkdir(parents=True, exist_ok=True)
    finish(index)
    for path in (index, *map(index.with_name, files)):
        if path.is_dir():
            raise IsADirectoryError(f"cannot write to {path}: it is a folder")
    partials = {name: _partial(index.with_name(name)) for name in files}
    try:
        for name, write in files.items():
            with _naming(index.with_name(name)):
                write(partials[name])
                _settle_on_disk(partials[name])
        digests = {name: _digest(partial) for name, partial in partials.items()}
        text = json.dumps({**content, DIGESTS: digests}, indent=1, default=json_form) + "\n"
        write_alone(_partial(index), lambda path: path.write_text(text))
    except BaseException:
        for partial in partials.values():
            partial.unlink(missing_ok=True)
        raise
    finish(index)


def read_together(index: Path) -> dict[str, Any]:
    """The content of an index, once all files that it tells have been found to be those that were written with it.

    An index without digests is taken as it is: an older version has written it.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is no JSON object, or if a file is missing or another.
    """
    finish(index)
    content = _read_index(index)
    for name, digest in content.pop(DIGESTS, {}).items():
        file = index.with_name(name)
        if not file.is_file() or _digest(file) != digest:
            state = "is not the file that was" if file.is_file() else "is missing, which was"
            raise ValueError(f"{file} {state} written with {index}")
    return content


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds.

    Raises:
        OSError: if it cannot be read. ValueError: if it holds no JSON, or no object.
    """
    with reading(path):
        text = path.read_bytes()
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object, got {content!r:.80}")
    return content


def _read_index(index: Path) -> dict[str, Any]:
    content = read_json(index)
    digests = content.get(DIGESTS, {})
    names = digests if isinstance(digests, dict) else {"": None}
    if any(Path(name).name != name or not name or not isinstance(digest, str) for name, digest in names.items()):
        raise ValueError(f"{index} must tell the digests of files beside it, got {digests!r:.80}")
    return content


def finish(index: Path) -> None:
    """Rename new files that are complete, if a kill has come between."""
    new = _partial(index)
    if not new.is_file():
        return
    try:
        names = _read_index(new)[DIGESTS]
    except (ValueError, KeyError):  # not written by `write_together`
        new.unlink()
        return
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # it has been renamed before
            os.replace(_partial(index.with_name(name)), index.with_name(name))
    os.replace(new, index)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors of the disk that do not."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(f"cannot write {path}: {error}") from error


def _partial(path: Path) -> Path:
    """The other name of a file, of the same suffix, in the same folder."""
    return path.with_name(f".new-{path.name}")


def _settle_on_disk(path: Path) -> None:
    """Wait until a file is on the disk: its name must not come before it."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_first_spelled(value: Any) -> Any:
    """A value in JSON form, in the spelling of the first folders: what identities are compared and hashed by."""
    return respelled(json.loads(json.dumps(value, default=json_form)), SPELLINGS[0])


def json_form(value: Any) -> Any:
    """What stands for a Python object in a JSON file."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.to_dict() if hasattr(value, "to_dict") else repr(value)
