"""How much of a call went into compiling: the first call on a machine compiles what later ones read from the cache."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from numba.core import event

__all__ = ["CompileTime"]

_event: Any = event  # without types of its own


class CompileTime:
    """A context that counts the wall time for which Numba compiles in this process.

    `kernels` have begun so far; `names` are of those in work, each called by the one before.
    """

    def __init__(self) -> None:
        self.kernels, self.names = 0, list[str]()
        self._before = self._since = 0.0

    def __enter__(self) -> Self:
        _event.register("numba:compile", self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _event.unregister("numba:compile", self)

    @property
    def seconds(self) -> float:
        """So far; that of code which is just being compiled is in it."""
        return self._before + (time.perf_counter() - self._since if self.names else 0.0)

    def notify(self, told: Any) -> None:
        """What Numba calls when it begins with a kernel, and when that is ready or has failed."""
        if told.is_start:
            if not self.names:
                self._since = time.perf_counter()
            self.kernels += 1
            self.names.append(told.data["dispatcher"].py_func.__qualname__)
        elif self.names:
            spent = self.seconds
            self.names.pop()
            if not self.names:
                self._before = spent


_event.Listener.register(CompileTime)
