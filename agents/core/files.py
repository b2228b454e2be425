"""Sets of files that are replaced together: a kill, or a full disk, leaves the whole old set or the whole new one.

New files are first written under temporary names, and last the index: a JSON file with the digests of the others. Once
the temporary index is complete, the new set counts. Then all files are renamed; after a kill, the next reader or writer
finishes this. A file whose digest differs from that in the index is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bandit_envs.kernels import SPELLINGS, json_of, respelled

SETTINGS = "settings.json"  # the index of a folder of results
REPRODUCTION = "reproduction"  # a key of the index of a folder with reproduced figures of a paper
DIGESTS = "digests"  # the key in an index of {name of a file: its digest}


def require_folder(path: Path) -> None:
    """Raise a FileNotFoundError if the folder of a file does not exist: only folders of results are made."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")


def try_out(path: Path, folder: bool = False) -> None:
    """Check that a file can be written, before the hours of work whose result it will hold; an OSError names the path.

    folder: make its folder, one of results, if it does not exist; else it must, as for `require_folder`.
    """
    if not folder:
        require_folder(path)
    partial = _partial(path)
    probe = _partial(partial)  # the longest name that is ever written
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
    require_folder(path)
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
    """A context for code that reads a file: an OSError of the disk, and a ValueError for all else, name the file.

    An ImportError, of a package that is missing, stays as it is.
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        if str(path) in reason and isinstance(error, (ValueError, OSError)):
            raise
        if not isinstance(error, (ValueError, OSError)):
            reason = f"{type(error).__name__}: {reason}"
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"{path} cannot be read, it is damaged or of another kind: {reason:.500}") from error


def write_together(index: Path, content: Mapping[str, Any], files: Mapping[str, Callable[[Path], Any]]) -> None:
    """Write a set of files and its index, with this content and their digests, into a folder, which is made.

    files: {name: function that writes the file to the path that it gets, which has the suffix of the name}.
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
    """The content of an index, without the digests, after a check that its files were written with it.

    A ValueError names a file that is missing or has another digest.
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
    """The object that a JSON file holds; an OSError or a ValueError where there is none."""
    with reading(path):
        text = path.read_bytes()
    try:
        content = json_of(text)
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object, got {content!r:.80}")
    return content


def _read_index(index: Path) -> dict[str, Any]:
    content = read_json(index)
    digests = content.get(DIGESTS, {})
    names = digests if isinstance(digests, dict) else {"": None}
    if any(Path(name).name != name or not name or not isinstance(digest, str) for name, digest in names.items()):
        raise ValueError(f"{index} must hold the digests of files in its folder, got {digests!r:.80}")
    return content


def finish(index: Path) -> None:
    """Finish the renaming of a complete new set that a kill has interrupted."""
    new = _partial(index)
    if not new.is_file():
        return
    try:
        names = _read_index(new)[DIGESTS]
    except (ValueError, KeyError):  # not written by `write_together`
        new.unlink()
        return
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # it was renamed before the kill
            os.replace(_partial(index.with_name(name)), index.with_name(name))
    os.replace(new, index)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an OSError that names none."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(f"cannot write {path}: {error}") from error


def _partial(path: Path) -> Path:
    """The temporary name of a file: same folder, same suffix."""
    return path.with_name(f".new-{path.name}")


def _settle_on_disk(path: Path) -> None:
    """Wait until the content of a file is on the disk, before it gets its name."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_first_spelled(value: Any, form: Callable[[Any], Any] | None = None) -> Any:
    """A value in JSON form in the oldest of `SPELLINGS`: folders of all versions compare and hash identities in it."""
    return respelled(json.loads(json.dumps(value, default=form or json_form)), SPELLINGS[0])


def json_form(value: Any) -> Any:
    """The JSON form of a Python object, for `json.dumps(default=...)`."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.to_dict() if hasattr(value, "to_dict") else repr(value)
