"""A store of evaluations: each that a panel asks for is run once, and found again, in this process and on the disk.

Each evaluation has a folder of its own, the `out` of `evaluate`, named by a hash of all that is asked for, so that
panels, figures and later runs that ask for the same one share it. A run that was killed goes on at the block of
episodes that it was at.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..evaluation import Evaluation, evaluate, storage
from ..evaluation.identity import versions


class Store:
    """Evaluations by what they were asked for, kept in memory, and in a folder where one is given."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder, self.made = folder, 0  # evaluations that were run, or completed, as the store did not have them
        self._found: dict[str, Evaluation] = {}

    def evaluate(
        self, agents: Mapping[str, object], env_id: str, *, jobs: int = 1, progress: bool | None = None, **asked: Any
    ) -> Evaluation:
        """What `evaluate` yields, which runs only what has not been kept; a warning where that is damaged."""
        given = {name: value for name, value in asked.items() if value is not None}
        order = list(agents.items())  # labels in their order count, as it is that of the rows
        name = storage.root_of(given | {"agents": order, "env_id": env_id, "version": versions()})[:16]
        if name not in self._found:
            run = functools.partial(evaluate, agents, env_id, jobs=jobs, progress=progress, **asked)
            self.made += self.folder is None
            self._found[name] = run() if self.folder is None else self._kept(run, self.folder / name)
        return self._found[name]

    def _kept(self, run: Callable[..., Evaluation], out: Path) -> Evaluation:
        """What is kept in a folder, after what it lacks has been made."""
        before = storage.calls(out)
        try:
            found = run(out=out)
        except storage.RefusedError as error:
            warnings.warn(f"a stored evaluation is damaged, and is run again: {error}", RuntimeWarning, stacklevel=3)
            storage.clear(out)
            before, found = 0, run(out=out)
        self.made += storage.calls(out) > before
        return found
