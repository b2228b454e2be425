"""Compiled functions are kept on disk: one file for each function, the types of its arguments, and its sources.

The name of a file holds the function, the stamp of all that it is compiled from (`stamps`), and a digest of types,
options, processor and versions, but no path: all checkouts and environments of a user share one folder. A file is
written whole beside its place, and begins with a checksum of its name and content. What cannot be read is compiled once
more. Files of other stamps stay beside it, until nobody has read them for `UNREAD` or the folder exceeds `MOST`.

The folder is in that of the variable NUMBA_CACHE_DIR; or in the cache directory of this user; or in the system's
temporary one. What is read from it runs as code: the last two must be the user's own, and writable by nobody else.
Where no folder can be written to, each process compiles.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import linecache
import logging
import os
import pickle
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import cloudpickle
import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np

from .stamps import stamp_of

T = TypeVar("T")
NUMBA: Any = numba  # which declares but little of itself to type checkers
_LOGGER = logging.getLogger("bandit_envs.kernels.compiled")
SEAL = 16  # bytes of a checksum
DAY = 86_400.0  # seconds
UNREAD, MOST = 30 * DAY, 10**9  # seconds that a file is kept unread, and bytes of all files, before the oldest go
VERSIONS = f"{NUMBA.__version__} {llvmlite.__version__} {np.__version__} {sys.version}"
NAMELESS = r" at 0x|<locals>|__main__\."  # in types: what no other process can name

# What to do about errors of Numba whose own text says little: a mark of each in that text, and the advice.
_ADVICE = {
    "intrinsic decided": "stops must return whether the episode stops, and in some case returns nothing, or no number",
    r"operator\.or_|built-in function or_": "an arm, or how often it is pulled, is a float",
    "Unsupported array index type float": "an index is a float: a name that holds integers in one place, and floats or "
    "unsigned integers in another, holds floats",
    r"Function\(<built-in function (arange|array|empty|full|ones|zeros)|_ol_array_allocate|array_expr": "a function of "
    "one episode makes no arrays: declare them (scratch), or hand them over as arguments",
    r"Untyped global name '\w+': Cannot determine Numba type of <class 'function'": "a helper is to be marked @part",
    r"Unknown attribute 'desk' of type record of \[\('e',": "this is of algorithms that certify: CertifiedAlgorithm",
    r"Unknown attribute '\w+' of type record of \[\('e',": "an episode has pulls, mean, now, and what `reads` names",
    r"(attribute '\w+' of type |resolve setattr: \()record": "a field is to be declared: own has settings and arrays, "
    "ep.now numbers",
}


class Watcher(Protocol):
    """What is called when a function begins to be compiled, and when that has ended."""

    def begins(self, name: str) -> None:
        """The function of this name."""

    def ends(self) -> None:
        """The one that has begun last."""


WATCHERS = list[Watcher]()


@contextlib.contextmanager
def watched(name: str) -> Iterator[None]:
    """Meanwhile all watchers count the time as that of compiling the function of this name."""
    watching = list[Watcher]()
    try:
        for one in tuple(WATCHERS):
            one.begins(name)
            watching.append(one)
        yield
    finally:
        for one in watching:
            one.ends()


@contextlib.contextmanager
def compiling(function: Callable[..., Any]) -> Iterator[None]:
    """Meanwhile a function is compiled. The logger and all watchers learn of it; an error of Numba gets a summary.

    No garbage is collected: the compiler makes millions of objects, of which few are garbage before it ends.
    """
    _LOGGER.info("compiling %s.%s", function.__module__, function.__qualname__)
    thresholds = gc.get_threshold()
    try:
        with watched(function.__qualname__):
            gc.set_threshold(0)  # and not gc.disable(), which another thread may call meanwhile for good
            yield
    except Exception as error:
        if isinstance(error, (NUMBA.errors.NumbaError, NUMBA.errors.UnsupportedBytecodeError)):
            blamed = getattr(function, "around", function)
            blamed = getattr(blamed, "made_of", blamed)
            vars(error).update(function=blamed, summary=_summary(error, blamed))
        raise
    finally:
        gc.set_threshold(*thresholds)


def _summary(error: Exception, function: Callable[..., Any]) -> str:
    """What Numba says of a function that it cannot compile, in short: the function, its line, and the reason."""
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error))
    lines = [line.strip(" >") for line in text.splitlines() if line.strip(" >")]
    lines = [line for line in lines if not line.startswith("Failed in ")] or lines or [type(error).__name__]
    said = " ".join(lines[: 2 if lines[0].endswith(":") else 1])
    said = re.sub(r"(of type \w+)(\(| of \[).*", r"\1", said)  # without all fields of a struct
    said += next((f"; {advice}" for sign, advice in _ADVICE.items() if re.search(sign, text)), "")
    code = function.__code__
    first, last = code.co_firstlineno, max(line or 0 for _, _, line in code.co_lines())
    place = getattr(error, "loc", None)
    found = getattr(place, "line", None) if getattr(place, "filename", None) == code.co_filename else None
    if found is None:  # of what it calls: the line that calls it
        own = re.findall(rf'File "[^"]*{re.escape(os.path.basename(code.co_filename))}", line (\d+)', text)
        found = next((int(line) for line in own if first < int(line) <= last), None)
    if found is None or not first <= found <= last:
        return f"Numba cannot compile {function.__qualname__} ({code.co_filename}, line {first}): {said}"
    where = f"{code.co_filename}, line {found}"
    source = linecache.getline(code.co_filename, found).strip()
    return f"Numba cannot compile {function.__qualname__} ({where}): {said}" + (f"; at `{source}`" if source else "")


# --- files ------------------------------------------------------------------------------------------------------------


class File:
    """The file of a compiled function.

    Args:
        function: what is compiled, all of whose names are defined by now.
        kinds: the types of its arguments, and of what it returns, if that is given. how: how it is compiled.
    """

    def __init__(self, function: Callable[..., Any], kinds: Any, how: str) -> None:
        self.function, self.kinds = function, kinds
        text = _described(kinds)
        folder = None if re.search(NAMELESS, text) else folder_of(function)
        name = re.sub("-[0-9a-f]{8}$", "", function.__qualname__)  # without what `assemble` has put there
        name = re.sub(r"[^\w.]", "_", f"{Path(function.__code__.co_filename).stem}.{name}")[-120:]
        stamp, key = stamp_of(function)[:16], _digest(f"{text} {how} {function.__qualname__} {VERSIONS}")
        self.path = None if folder is None else folder / f"{name}.{sys.implementation.cache_tag}-{stamp}-{key}.code"

    def read(self, made: Callable[[Any], T]) -> T | None:
        """What `made` makes of that which was written; None where it was not, or cannot be read."""
        if self.path is None:
            return None
        try:
            content = self.path.read_bytes()
            if content[:SEAL] != self._seal(content[SEAL:]):
                return None
            kinds, kept = pickle.loads(content[SEAL:])
            found = made(kept) if kinds == self.kinds else None
        except Exception:  # whatever unpickling brings about
            return None
        with contextlib.suppress(OSError):
            if time.time() - self.path.stat().st_mtime > DAY:
                os.utime(self.path)  # the last day on which it was of use
        _LOGGER.debug("read %s.%s", self.function.__module__, self.function.__qualname__)
        return found

    def write(self, kept: Any) -> None:
        """Keep this, if that can be."""
        if self.path is None:
            return
        partial = self.path.with_name(f"{self.path.name}.{os.getpid()}.{threading.get_ident()}")
        with contextlib.suppress(OSError, pickle.PicklingError, TypeError):  # the disk is full, say
            content = cloudpickle.dumps((self.kinds, kept))
            try:
                partial.write_bytes(self._seal(content) + content)
                os.replace(partial, self.path)
            finally:
                partial.unlink(missing_ok=True)
            thin_out(self.path.parent)

    def _seal(self, content: bytes) -> bytes:
        assert self.path is not None
        return hashlib.blake2b(content, digest_size=SEAL, key=_digest(self.path.name).encode()).digest()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _described(kind: Any) -> str:
    """A type as text, with classes and fields of all structs in it, by whose places compiled code reads them."""
    if isinstance(kind, tuple):
        return f"({', '.join(map(_described, kind))})"
    struct: Any = getattr(kind, "instance_class", None)
    named = f"{struct.__module__}.{struct.__qualname__}{struct._fields}" if hasattr(struct, "_fields") else ""
    return f"{kind!r}{named}{_described(tuple(getattr(kind, 'types', ())))}"


def folder_of(function: Callable[..., Any]) -> Path | None:
    """The folder of a function's files, which can be written to; None where there is none."""
    source, lasting = function.__code__.co_filename, getattr(sys, "frozen", False)
    lasting = lasting or ".zip" in source or "ipykernel_" in source or source.startswith("<ipython-")
    return _folder(NUMBA.config.CACHE_DIR) if lasting or os.path.exists(source) else None


@functools.cache
def _folder(chosen: str) -> Path | None:
    apple = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    user_wide = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME") or os.path.expanduser(apple)
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    places = [Path(user_wide, "bandit_envs-kernels"), Path(tempfile.gettempdir(), f"bandit_envs-{user}")]
    for place in [Path(chosen, "bandit_envs")] * bool(chosen) + places:
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir(mode=0o700, exist_ok=True)
            found = place.lstat()
            if place in places and hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o022):
                continue
            tempfile.TemporaryFile(dir=place).close()
            return place
    return None


@functools.cache
def thin_out(folder: Path) -> None:
    """Once in a process: remove files that were last of use long ago, and the oldest of those that are too many."""
    found, left, now = list[tuple[float, int, Path]](), MOST, time.time()
    for one in folder.rglob("*"):
        with contextlib.suppress(OSError):  # another process has removed it
            found += [(one.stat().st_mtime, one.stat().st_size, one)] if one.is_file() else []
    for used, size, one in sorted(found, reverse=True):
        left -= size
        if left < 0 or now - used > UNREAD:
            one.unlink(missing_ok=True)
