"""Registries of names: our own, those that users register, and those that installed packages bring.

A row is an object, or the text "module:name" of one, which is imported when the row is first asked for. An installed
package adds rows by entry points of the registry's group, in its `pyproject.toml`:

    [project.entry-points."bandit_envs.problems"]
    MyProblem = "my_package.problems:MyProblem"

Its modules are imported only when such a name is used. A package with an error affects only those who use it.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Any, Generic, TypeVar

from ..kernels.checks import errors_of
from ..kernels.naming import unknown

T = TypeVar("T")
_READ: ContextVar[tuple[str, Any] | None] = ContextVar("which file of others is read, and what its reader has named")


def imported(target: str) -> Any:
    """The object that "module:name" names."""
    module, _, name = (part.strip() for part in target.partition(":"))
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the module does when it is imported, an exit of the process too
        raise ValueError(f"{target!r:.200} cannot be imported: {type(error).__name__}: {error}") from error
    return found


@contextmanager
def names_alone(of: str, trust: bool = False, named: Any = ()) -> Iterator[None]:
    """Around all that looks up names which a file of others holds: "module:name", which may run any code, is refused.

    Args:
        of: the file, for the error. trust: its maker is trusted: nothing is refused.
        named: what the reader has given: the names in it are allowed, as are those of registered rows.
    """
    if trust or _READ.get(None) is not None:
        yield
        return
    token = _READ.set((of, named))
    try:
        yield
    finally:
        _READ.reset(token)


class Registry(Mapping[str, T], Generic[T]):
    """Rows by name, in the order in which they were added; those of installed packages come last.

    As a mapping it has the names only. `find` also takes "module:name", for what is not registered.

    Args:
        kind: what the rows are, for messages: "agent".
        group: of the entry points.
        check: is called with the name and the object of a row before the object is first handed out; it raises
            ValueError for an object that is not of the kind.
        rows: this package's own. Neither these nor those of installed packages can be replaced.
        reserved: further names that cannot be taken.
        refused: returns why a word cannot be a name, such as "must not end in .zip"; None where it can.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        check: Callable[[str, Any], None],
        rows: Mapping[str, T | str],
        reserved: Collection[str] = (),
        refused: Callable[[str], str | None] = lambda name: None,
    ) -> None:
        self.kind, self.group, self._check, self._refused = kind, group, check, refused
        self._own, self._rows, self._reserved = frozenset(rows), dict(rows), frozenset(reserved)
        self._found: dict[str, T] = {}

    def accept(self, name: str, found: Any) -> T:
        """The row that an object makes, after the check. Here: the object itself."""
        self._check(name, found)
        row: T = found
        return row

    def origin(self, target: T | str) -> Any:
        """The object that an entry point for this target would name. Here: the target itself."""
        return target

    def register(self, name: str, target: T | str) -> None:
        """Add a row. A row that was added by `register` before is replaced.

        A package may also register the object of its own entry point.

        Args:
            name: a word of letters, digits, "-", "_" and ".".
            target: the object, or "module:name".

        Raises:
            ValueError: for a name that is no such word, is refused, or is taken by this package or an installed one;
                and for a target that is not of the kind.
        """
        if not _is_word(name):
            word = "a word of letters, digits, '-', '_' and '.'"
            raise ValueError(f"the name of the {self.kind} must be {word}, got {name!r:.200}")
        if (why := self._refused(name)) is not None:
            raise ValueError(f"the name of the {self.kind} {why}, got {name!r}")
        if name in self._own and self._rows[name] is target:
            return
        where = "this package" if name in self._own or name in self._reserved else ""
        if not where and name in self.installed and not _is_named_by(self.installed[name], self.origin(target)):
            where = f"an installed package ({self.installed[name]})"
        if where:
            raise ValueError(f"the {self.kind} {name!r} comes with {where}: choose another name")
        if not isinstance(target, str):
            target = self.accept(name, target)
        elif not re.fullmatch(r"\s*[^:\s]+\s*:\s*[^:\s]+\s*", target):
            raise ValueError(f"the {self.kind} {name!r} must be an object or 'module:name', got {target!r:.200}")
        self._rows[name] = target
        self._found.pop(name, None)

    def find(self, name: str) -> T:
        """The object of the row of this name, or that of "module:name"."""
        if isinstance(name, str) and ":" in name:
            read = _READ.get(None)
            if read and not self.has_target(name) and name not in re.findall(r"[\w.]+:[\w.]+", repr(read[1])):
                text = f"{read[0]} names a module: the {self.kind} {name!r:.200}, and importing it runs its code:"
                raise ValueError(f"{text} register it, name it yourself, or say trust=True (--trust)")
            return self.accept(name, imported(name))
        if name not in self:
            raise unknown(self.kind, name, self)
        return self[name]

    def has_target(self, target: str) -> bool:
        """Whether "module:name" is the target of a row, which is not imported for this."""
        rows = (row if isinstance(row, str) else self.origin(row) for row in self._rows.values())
        of = (
            row if isinstance(row, str) else f"{getattr(row, '__module__', '')}:{getattr(row, '__qualname__', '')}"
            for row in rows
        )
        return target in (*of, *self.installed.values())

    @cached_property
    def installed(self) -> dict[str, str]:
        """The rows of installed packages, "module:name" each, without extras in brackets, by names that are free."""
        return {name: point.value.partition("[")[0].strip() for name, point in self._points.items()}

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        """The entry points of `installed`, by name."""
        found, taken = dict[str, EntryPoint](), self._own | self._reserved
        for point in _points_of(self.group):
            if point.name in taken or not _is_word(point.name):
                continue
            if (why := self._refused(point.name)) is not None:
                package = "" if point.dist is None else f" of the package {point.dist.name!r}"
                text = f"the {self.kind} {point.name!r}{package} is left out: its name {why}"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
                continue
            found[point.name] = point
        return found

    def __getitem__(self, name: str) -> T:
        if name not in self._found:
            if name in self._rows:
                row = self._rows[name]
                self._found[name] = self.accept(name, imported(row) if isinstance(row, str) else row)
            else:
                target, point = self.installed[name], self._points.get(name)
                package = f" of the package {point.dist.name!r}" if point is not None and point.dist is not None else ""
                with errors_of(f"the entry point {name!r}{package} in {self.group}"):
                    self._found[name] = self.accept(name, imported(target))
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._rows, **self.installed})

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._rows or name in self.installed)

    def __len__(self) -> int:
        return len({*self._rows, *self.installed})


def _points_of(group: str) -> list[EntryPoint]:
    """The entry points of installed packages in a group. A package whose entry points cannot be read is left out."""
    try:
        return list(entry_points(group=group))
    except Exception:  # one broken file spoils the call for all packages
        found: dict[str, EntryPoint] = {}
        for distribution in distributions():
            try:
                points = [point for point in distribution.entry_points if point.group == group]
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                said = f"the entry points of {distribution.name!r} cannot be read: {text}"
                warnings.warn(said, RuntimeWarning, stacklevel=2)
                continue
            for point in points:
                found.setdefault(point.name, point)
        return list(found.values())


def _is_word(name: Any) -> bool:
    """Whether this is a word of letters, digits, "-", "_" and "."."""
    return isinstance(name, str) and name.translate(str.maketrans("", "", "-_.")).isalnum()


def _is_named_by(entry: str, target: Any) -> bool:
    """Whether "module:name" names this target, as far as its top-level package says without importing it."""
    if isinstance(target, str):
        return target == entry
    module, _, name = entry.partition(":")
    home = str(getattr(target, "__module__", ""))
    return getattr(target, "__qualname__", None) == name and home.partition(".")[0] == module.partition(".")[0]
