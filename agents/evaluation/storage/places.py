"""Local and remote folders. In them, a file has its name only once it is complete."""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.optional import require

OBJECTS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory")  # of which a file is seen once it is complete


class WriteError(OSError):
    """A file cannot be written: the disk is full, or the folder does not allow it."""


def place_of(address: str | Path) -> Place:
    """The folder that an address stands for: a path, or an address of a file system as s3://bucket/folder."""
    text = os.fspath(address)
    if "\0" in text:
        raise ValueError(f"out must be a folder, or the address of one, got {text!r:.200}")
    fs = require("pyarrow.fs", "a folder of results")
    protocol, there, path = text.partition("://")
    if not there or protocol == "file":
        local = str(Path(path if there else text).expanduser())
        return Place(local, fs.LocalFileSystem(use_mmap=True), local, local=True)
    try:
        system, root = fs.FileSystem.from_uri(text)
    except (ValueError, NotImplementedError):
        core = require("fsspec.core", f"the address {text}", "evaluation")
        try:
            found, root = core.url_to_fs(text)
        except (ValueError, OSError) as error:
            raise ValueError(f"out must be a folder, or the address of one, got {text!r}: {error}") from None
        system = fs.PyFileSystem(fs.FSSpecHandler(found))
    return Place(text.rstrip("/"), system, root.rstrip("/"), whole=protocol in OBJECTS)


@dataclass(frozen=True)
class Place:
    """A folder of a file system, by pyarrow.

    Attributes:
        address: as the user has given it. system: of pyarrow. root: the path in it.
        whole: whether the system shows a file only once it is complete. local: whether it is of this machine.
    """

    address: str
    system: Any
    root: str
    whole: bool = False
    local: bool = False

    def __str__(self) -> str:
        return self.address

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def names(self, folder: str = "") -> dict[str, float]:
        """The files of a folder inside, and when each was written last."""
        fs = require("pyarrow.fs", "a folder of results")
        with contextlib.suppress(NotADirectoryError):
            found = self.system.get_file_info(fs.FileSelector(self._path(folder), allow_not_found=True))
            return {one.base_name: one.mtime_ns / 1e9 if one.mtime_ns else 0.0 for one in found}
        return {}

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

    def write(self, name: str, content: bytes, new: bool = False, settled: bool = True) -> bool:
        """Write a file, whole or not at all, whoever writes it at the same time; returns whether it was written.

        Args:
            name: of the file. content: all of it. new: leave a file that is there already.
            settled: wait until it is on the disk, so that a power cut leaves it whole, too.
        """
        if new and not self.local and self.has(name):
            return False
        path = self._path(name)
        partial = path if self.whole else f"{path}.{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part"
        try:
            self.system.create_dir(path.rpartition("/")[0], recursive=True)
            with self.system.open_output_stream(partial, compression=None) as stream:
                stream.write(content)
            if self.local and settled:
                with open(partial, "rb") as file:
                    os.fsync(file.fileno())
            if self.local and new:
                try:
                    os.link(partial, path)  # of two calls at the same time one is the first
                    return True
                except FileExistsError:
                    return False
                except OSError:  # a file system that has no links
                    pass
            if not self.whole:
                self.system.move(partial, path)
        except OSError as error:
            blocking = next((one for one in Path(path).parents if one.is_file()), None) if self.local else None
            why = f"{blocking} is a file, not a folder" if blocking else error.strerror or error
            raise WriteError(f"cannot write {self.address}/{name}: {why}") from error
        finally:
            if self.local:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
        return True

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        try:
            self.system.delete_file(self._path(name))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise WriteError(f"cannot remove {self.address}/{name}: {error}") from error

    def tidy(self, folder: str) -> None:
        """Remove what calls of this machine that have been killed left of files that they were writing."""
        for name in self.names(folder) if self.local else ():
            _, ours, rest = name.partition(f".{socket.gethostname()}-")
            process = rest.partition("-")[0]
            if ours and name.endswith(".part") and process.isdecimal() and not _alive(int(process)):
                with contextlib.suppress(OSError):  # a folder that is only read
                    self.remove(f"{folder}/{name}")


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
