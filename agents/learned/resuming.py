"""`ResumeFile`: what a training needs to go on after a kill exactly as it would have gone on.

The file holds the model with its environments, the callback, and the states of all random number generators. It holds
pickles, as SB3's own files do: read none whose maker you do not trust.
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

from ..models.formats import FORMAT

__all__ = ["ResumeFile"]


class ResumeFile:
    """The file `<out>.resume` of a training.

    Args:
        path: of the file. call: the arguments of `train`; only the same call goes on.
    """

    def __init__(self, path: Path, call: Mapping[str, Any]) -> None:
        self.path, self.call = path, repr(sorted(call.items()))

    def write(self, model: Any, callback: Any) -> None:
        """Store the state under another name first, so that a kill leaves the old file or the new one.

        Args:
            model: SB3's.
            callback: the `Checkpoints` of the run.
        """
        logger = model.__dict__.pop("_logger", None)  # it holds open files; `learn` makes another
        try:
            state = {
                "model": model,
                "callback": callback,
                "torch": torch.get_rng_state(),
                "numpy": np.random.get_state(),  # noqa: NPY002 (SB3 uses this generator)
                "python": random.getstate(),
            }
            content = {"format": FORMAT, "call": self.call, "state": cloudpickle.dumps(state)}
        finally:
            if logger is not None:
                model._logger = logger
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(self.path.name + ".partial")
        partial.write_bytes(cloudpickle.dumps(content))
        os.replace(partial, self.path)

    def read(self) -> tuple[Any, Any]:
        """The model and the callback; the generators are set as they were.

        Raises:
            ValueError: if another call has written the file, or another version of this package.
        """
        try:
            content = cloudpickle.loads(self.path.read_bytes())
            if content.get("format") != FORMAT:
                raise ValueError(f"format {content.get('format')}, not {FORMAT}")
            if content["call"] == self.call:
                state = cloudpickle.loads(content["state"])
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(
                f"{self.path} was written by another version ({error}): delete it, and train again from the beginning"
            ) from error
        if content["call"] != self.call:
            raise ValueError(f"{self.path} belongs to another call: {content['call']:.500}; not {self.call:.500}")
        torch.set_rng_state(state["torch"])
        np.random.set_state(state["numpy"])  # noqa: NPY002 (SB3 uses this generator)
        random.setstate(state["python"])
        return state["model"], state["callback"]

    def remove(self) -> None:
        """Delete the file when the run is over."""
        self.path.unlink(missing_ok=True)
