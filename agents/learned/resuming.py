"""What a training needs to go on after a kill exactly as it would have: the model, its environments, all generators.

The file holds pickles, as SB3's own: read none that you do not trust.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import torch

__all__ = ["Saved"]


class Saved:
    """The file `<out>.resume` of a run.

    Args:
        path: of the file. call: what the run was asked for; only the same call goes on.
    """

    def __init__(self, path: Path, call: Mapping[str, Any]) -> None:
        self.path, self.call = path, repr(sorted(call.items()))

    def write(self, model: Any, run: Any) -> None:
        """Store all, under another name first, so that a kill leaves the old file or the new one."""
        logger = model.__dict__.pop("_logger", None)  # holds open files; `learn` makes another
        try:
            state = {
                "call": self.call,
                "model": model,
                "run": run,
                "torch": torch.get_rng_state(),
                "numpy": np.random.get_state(),  # noqa: NPY002 (SB3's)
                "python": random.getstate(),
            }
            text = cloudpickle.dumps(state)
        finally:
            if logger is not None:
                model._logger = logger
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(self.path.name + ".partial")
        partial.write_bytes(text)
        os.replace(partial, self.path)

    def read(self) -> tuple[Any, Any]:
        """The model and the run, the generators set as they were.

        Raises:
            ValueError: if another call has written the file.
        """
        state = cloudpickle.loads(self.path.read_bytes())
        if state["call"] != self.call:
            raise ValueError(f"{self.path} belongs to another call: {state['call']:.500}; not {self.call:.500}")
        torch.set_rng_state(state["torch"])
        np.random.set_state(state["numpy"])  # noqa: NPY002 (SB3's)
        random.setstate(state["python"])
        return state["model"], state["run"]

    def remove(self) -> None:
        """The run is over."""
        self.path.unlink(missing_ok=True)
