"""Registries: names, and what they stand for; ours, a user's own, and those that installed packages bring.

A row is an object, or text "module:name" that is imported when it is first asked for. A package adds rows by entry
points of the registry's group, in its `pyproject.toml`:

    [project.entry-points."bandit_envs.agents"]
    my-agent = "my_package:MyAgent"

Wherever a name is taken, "module:name" is taken too, with parameters where a name has them: "my_module:Mine(alpha=2)".
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from .naming import unknown

__all__ = ["Registry", "imported"]

T = TypeVar("T")


def imported(target: str) -> Any:
    """What "module:name" names.

    Raises:
        ValueError: if there is no such module, or nothing of that name in it.
    """
    module, _, name = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{target!r:.200} cannot be imported: {error}") from error
    return found


class Registry(Mapping[str, T], Generic[T]):
    """Rows by name, in the order in which they were added; those of installed packages come last.

    Args:
        kind: what the rows are, for messages: "agent". group: of the entry points.
        check: raises ValueError for an object that is none of the kind; called once for each row, when it is first
            asked for.
        rows: the first ones.
    """

    def __init__(
        self, kind: str, group: str, check: Callable[[str, Any], None], rows: Mapping[str, T | str] | None = None
    ) -> None:
        self.kind, self.group, self._check = kind, group, check
        self._rows: dict[str, T | str] = dict(rows or {})
        self._checked: dict[str, T] = {}
        self._installed: dict[str, str] | None = None

    def register(self, name: str, target: T | str) -> None:
        """Add a row, or take another object for the row of this name that `register` has added before.

        Args:
            name: letters, digits, "-", "_" and ".", no spaces. target: the object, or "module:name".

        Raises:
            ValueError: for a name that is no such word, or that stands for something of this package.
        """
        if not isinstance(name, str) or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise ValueError(
                f"the name of a {self.kind} is a word of letters, digits, '-', '_' and '.', got {name!r:.200}"
            )
        if name in self._own:
            raise ValueError(f"the {self.kind} {name!r} comes with this package: choose another name")
        if isinstance(target, str):
            if ":" not in target:
                raise ValueError(f"a target is an object or 'module:name', got {target!r:.200}")
        else:
            self._check(name, target)
        self._rows[name] = target
        self._checked.pop(name, None)

    def seal(self) -> None:
        """From now on the rows that are there are this package's own."""
        self._own = frozenset(self._rows)

    _own: frozenset[str] = frozenset()

    def find(self, name: str) -> T:
        """The row of this name, or what "module:name" names.

        Raises:
            ValueError: for an unknown name, with the nearest ones, and for what is none of the kind.
        """
        if ":" in name:
            found: T = imported(name)
            self._check(name, found)
            return found
        if name not in self:
            raise unknown(self.kind, name, self)
        return self[name]

    def _packages(self) -> dict[str, str]:
        """The rows of installed packages; names that are taken already are left out."""
        if self._installed is None:
            self._installed = {point.name: point.value for point in entry_points(group=self.group)}
        return {name: value for name, value in self._installed.items() if name not in self._rows}

    def __getitem__(self, name: str) -> T:
        if name not in self._checked:
            row = self._rows[name] if name in self._rows else self._packages()[name]
            found: Any = imported(row) if isinstance(row, str) else row
            self._check(name, found)
            self._checked[name] = found
        return self._checked[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._rows, *self._packages()])

    def __contains__(self, name: object) -> bool:
        return name in self._rows or name in self._packages()

    def __len__(self) -> int:
        return len(self._rows) + len(self._packages())
