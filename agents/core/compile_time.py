"""How much of a call went into compiling: the first call on a machine compiles what later ones read from the cache."""

from __future__ import annotations

import time
from typing import Self

from bandit_envs.kernels import WATCHERS


class CompileTime:
    """A context that counts the wall time, and the `kernels`, that are compiled in this process; `names`: just now."""

    def __init__(self) -> None:
        self.kernels, self.names = 0, list[str]()
        self._before = self._since = 0.0

    def __enter__(self) -> Self:
        WATCHERS.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        WATCHERS.remove(self)

    @property
    def seconds(self) -> float:
        """So far; that of code which is just being compiled is in it."""
        return self._before + (time.perf_counter() - self._since if self.names else 0.0)

    def begins(self, name: str) -> None:
        """A kernel of this name begins to be compiled."""
        if not self.names:
            self._since = time.perf_counter()
        self.kernels += 1
        self.names.append(name)

    def ends(self) -> None:
        """The one that has begun last is ready, or has failed."""
        self._before, self.names = self.seconds if len(self.names) == 1 else self._before, self.names[:-1]
