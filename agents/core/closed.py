"""`ClosedState`: the base of states whose numbers kernels go by without a look, so that nobody else may change them."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


class ClosedState:
    """A state whose arrays are shown for reading alone once it is closed.

    Attributes:
        arrays: names of the attributes that are arrays, or dicts and tuples of arrays.
        kept: of a closed state these arrays, for kernels to write into; None of one that is not closed.
    """

    arrays: ClassVar[tuple[str, ...]]
    kept: Any = None
    bound: Any = None  # what is made of the arrays for kernels, which copies do not keep

    @property
    def parts(self) -> tuple[Any, ...]:
        """The arrays, to write into."""
        return self.kept or tuple(getattr(self, name) for name in self.arrays)

    def close(self, anew: bool = False) -> None:
        """Show the arrays for reading alone; `anew`: and copy them, as they may be read alone already."""
        kept = tuple(_mapped(one, lambda x: np.array(x, order="C"), dict) for one in self.parts) if anew else self.parts
        shown = (_mapped(one, lambda x: np.broadcast_to(x, x.shape), MappingProxyType) for one in kept)
        vars(self).update(zip(self.arrays, shown, strict=True), kept=kept)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, no array of a closed state."""
        if self.kept is not None and name in self.arrays:
            raise ValueError(f"a state stays as predict has returned it: {name} cannot be set, got {value!r:.200}")
        vars(self)[name] = value

    def __deepcopy__(self, memo: Any) -> Any:
        made = type(self).__new__(type(self))
        vars(made).update(copy.deepcopy(self._open(), memo))
        if self.kept is not None:
            made.close()
        return made

    def _open(self) -> dict[str, Any]:
        """All attributes as they were before it was closed."""
        return vars(self) | dict(zip(self.arrays, self.parts, strict=True)) | {"kept": None, "bound": None}

    def __getstate__(self) -> dict[str, Any]:
        """What pickles keep; of closed states with a checksum."""
        return self._open() | ({} if self.kept is None else {"checksum": _checksum(self.kept)})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """States that were not closed have no checksum."""
        sealed = state.pop("checksum", None)
        vars(self).update(state)
        if sealed is not None:
            if sealed != _checksum(self.parts):
                raise ValueError("this pickle of a state is damaged: its numbers are not those that were written")
            self.close()


def _mapped(one: Any, change: Callable[[NDArray[Any]], Any], kind: Callable[[dict[Any, Any]], Any]) -> Any:
    """Arrays, and dicts (then of a kind) and tuples of them, with each array changed."""
    if isinstance(one, np.ndarray):
        return change(one)
    if isinstance(one, Mapping):
        return kind({name: _mapped(part, change, kind) for name, part in one.items()})
    if not isinstance(one, tuple):
        return one
    parts = [_mapped(part, change, kind) for part in one]
    return type(one)(*parts) if hasattr(one, "_fields") else tuple(parts)


def _checksum(one: Any) -> int:
    """Of all arrays in arrays, dicts and tuples."""
    if isinstance(one, np.ndarray):
        return zlib.crc32(one.tobytes())
    parts = one.values() if isinstance(one, Mapping) else one if isinstance(one, tuple) else ()
    return zlib.crc32(np.array([_checksum(part) for part in parts], np.int64).tobytes())
