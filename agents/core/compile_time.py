"""How much of a call went into compiling: the first call on a machine compiles what later ones read from the cache."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from numba.core import event

__all__ = ["CompileTime"]

_event: Any = event  # without types of its own


class CompileTime:
    """A context that counts the wall time for which Numba compiles in this process."""

    def __init__(self) -> None:
        self._listener: Any = _event.TimingListener()

    def __enter__(self) -> Self:
        _event.register("numba:compile", self._listener)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _event.unregister("numba:compile", self._listener)

    @property
    def seconds(self) -> float:
        """So far; that of code which is just being compiled is not in it."""
        return float(self._listener.duration) if self._listener.done else 0.0
