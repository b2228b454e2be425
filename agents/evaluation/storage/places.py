"""Local and remote folders. A file gets its name there once it is complete."""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.optional import require

OBJECTS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory")  # these show a file once it is complete


class WriteError(OSError):
    """A file cannot be written: the disk is full, or the folder does not allow it."""


def place_of(address: str | Path) -> Place:
    """The folder at an address: a path, or a URL of a file system such as s3://bucket/folder."""
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
    return Place(text.rstrip("/"), system, root.rstrip("/"), atomic=protocol in OBJECTS)


@dataclass(frozen=True)
class Place:
    """A folder."""

    address: str  # as the user has given it
    system: Any  # the file system, of pyarrow
    root: str  # the path of the folder in it
    atomic: bool = False  # the system shows a file once it is complete
    local: bool = False  # the file system is that of this machine

    def __str__(self) -> str:
        return self.address

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def names(self, folder: str) -> dict[str, float]:
        """The files of a folder in this one, {name: when it was last written, in seconds}."""
        fs = require("pyarrow.fs", "a folder of results")
        with contextlib.suppress(NotADirectoryError):
            found = self.system.get_file_info(fs.FileSelector(self._path(folder), allow_not_found=True))
            return {one.base_name: one.mtime_ns / 1e9 if one.mtime_ns else 0.0 for one in found}
        return {}

    def has(self, name: str) -> bool:
        """Whether a file of this name exists."""
        return bool(self.system.get_file_info(self._path(name)).is_file)

    def open(self, name: str) -> Any:
        """A file for pyarrow to read."""
        return self.system.open_input_file(self._path(name))

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self.system.open_input_stream(self._path(name), compression=None) as stream:
            content: bytes = stream.read()
        return content

    def write(self, name: str, content: bytes, new: bool = False, durable: bool = True) -> bool:
        """Write a file completely or not at all; several processes may write it at once. Returns whether this one did.

        Args:
            name: the name of the file. content: all of it. new: do not replace a file that exists.
            durable: wait until a local file is on the disk, so that it survives a power cut.
        """
        if new and not self.local and self.has(name):
            return False
        path = self._path(name)
        partial = path if self.atomic else f"{path}.{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part"
        try:
            self.system.create_dir(path.rpartition("/")[0], recursive=True)
            with self.system.open_output_stream(partial, compression=None) as stream:
                stream.write(content)
            if self.local and durable:
                with open(partial, "rb") as file:
                    os.fsync(file.fileno())
            if self.local and new:
                try:
                    os.link(partial, path)  # fails if another process was first
                    return True
                except FileExistsError:
                    return False
                except OSError:  # the file system has no links
                    pass
            if not self.atomic:
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
        """Remove a file, if it exists."""
        try:
            self.system.delete_file(self._path(name))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise WriteError(f"cannot remove {self.address}/{name}: {error}") from error

    def tidy(self, folder: str) -> None:
        """Remove incomplete files of processes on this machine that were killed."""
        for name in self.names(folder) if self.local else ():
            _, mark, rest = name.partition(f".{socket.gethostname()}-")
            process = rest.partition("-")[0]
            if mark and name.endswith(".part") and process.isdecimal() and not _alive(int(process)):
                with contextlib.suppress(OSError):  # the folder is read-only
                    self.remove(f"{folder}/{name}")


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
